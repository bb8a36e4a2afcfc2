# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verbs and their options, as the program itself tells them.

Invariant: no verb is named here but with a reason, so that a new one is held
to what holds for all as soon as `seep --help` lists it.
"""
import functools
import re

from command_line import PYTHON, seep

OPTION = re.compile(r"^  ((?:-\w, )?--[a-z0-9-]+|-\w)(?: ([A-Z][A-Z=|]*))?"
                    r"(?: |$)", re.M)

# What a verb must be told besides its recordings, and why.
NEEDED = {
    "check": ("--cap", "1TiB"),  # no limit, nothing to decide
    "export": ("--format", "folded"),  # no format, nothing to write
    "metrics": ("--once", "--textfile", "metrics.prom"),  # else it goes on
    "pack": ("--replace", "-o", "made.seeppack"),  # it is made again and again
    "probe": ("--max-age", "1h"),  # no limit, nothing to decide
    "top": ("--once",),  # else it goes on
    "unpack": ("--replace", "-o", "unpacked"),  # again and again
}
# A command that leaves a recording.
COMMAND = ("--", PYTHON, "-c", "x = [bytearray(1 << 20) for _ in range(64)]")
# A verb without --json, and why.
NO_JSON = {
    "digest": "its lines are JSON",
    "run": "what it prints is the command's",
    "export": "its formats are those of its readers",
    "pack": "it writes a file, which has verbs of its own",
    "unpack": "it writes files, and prints their names",
    "metrics": "its formats are those of its readers",
}
# A verb whose answer is its status, whoever reads its line; it may be asked
# before there is a recording.
ANSWERS = {"probe"}
# `seep doctor` tries every Python of PATH.
PATH = "/usr/bin:/bin"


@functools.lru_cache
def verbs():
    """As `seep --help` lists them."""
    return re.findall(r"^  ([a-z]+) ", seep("--help").stdout.decode(), re.M)


@functools.lru_cache
def help_of(verb):
    """What it says of itself."""
    return seep(verb, "--help").stdout.decode()


@functools.lru_cache
def options(verb):
    """{--name: has a value}."""
    found = OPTION.findall(help_of(verb))
    return {names.split(", ")[-1]: value != "" for names, value in found}


def codes(verb):
    """Exit codes that are said to be its own."""
    said = help_of(verb).split("\n\n")[-1]
    return {int(code) for code in re.findall(r"\d+", said)}


def positionals(verb):
    """The words that must follow the options, by the first usage of help."""
    usage = help_of(verb).split("\n\n", 1)[0]
    usage = re.split(r"\n +seep ", usage)[0].split(maxsplit=3)[3]
    before = None
    while usage != before:  # what is in brackets, from within
        before = usage
        usage = re.sub(r"\[[^][]*\]|\([^()]*\)", "", usage)
    return [word for word in usage.split()
            if re.match(r"[A-Z]", word) and word != "LIMITS"]


def reading():
    """Verbs that are given recordings."""
    return [verb for verb in verbs() if any(
        re.search("RECORDING|DIR|OLD|NEW", word)
        for word in positionals(verb))]


def arguments(verb, recording):
    """What makes a verb do its work on that recording, NAME.seep, or on its
    pack, NAME.seeppack."""
    words = []
    for word in positionals(verb):
        words += COMMAND if word == "COMMAND" else [
            f"{recording}pack" if word == "PACK..." else recording]
    return [*NEEDED.get(verb, ()), *words]
