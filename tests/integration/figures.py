# SPDX-License-Identifier: LGPL-2.1-or-later
"""What each way out of one recording says of the call sites that grow: text,
JSON, the page, pprof, digest, JSON lines.

Invariant: what is compared is what was printed, read as its readers read it;
a figure for people is held to half of its last digit.
"""
import base64
import collections
import gzip
import json
import re

from command_line import seep

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WIDTH = 240
# pprof's names of what JSON has by site.
TYPES = {"inuse_space": "live_bytes", "inuse_objects": "live_count",
         "alloc_space": "allocated_bytes", "alloc_objects": "allocated_count"}
# What a line of the digest has as JSON has it.
DIGEST = ("live_bytes", "live_count", "peak_bytes", "class", "where", "space")


def fields(message):
    """(number, value) of each field of a message of protobuf's."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
        else:
            assert key & 7 == 0
        yield key >> 3, value


def numbers(packed):
    """Signed numbers, one behind the other."""
    return [value - (value >> 63 << 64) for _, value in
            fields(b"".join(b"\x08" + piece for piece in
                            re.findall(b"[\x80-\xff]*[\0-\x7f]", packed)))]


def profile_of(zipped):
    """{number of a field: its values}, of a whole profile."""
    found = collections.defaultdict(list)
    for number, value in fields(gzip.decompress(zipped)):
        found[number].append(value)
    return found


def samples_of(profile):
    """[({type: value}, {label: text}, [locations])]"""
    texts = [text.decode() for text in profile[6]]
    assert texts[0] == ""
    types = [texts[dict(fields(kind))[1]] for kind in profile[1]]
    for sample in profile[2]:
        parts = collections.defaultdict(list)
        for number, value in fields(sample):
            parts[number].append(value)
        labels = [dict(fields(label)) for label in parts[3]]
        yield (dict(zip(types, numbers(parts[2][0]))),
               {texts[one[1]]: texts[one[2]] for one in labels if 2 in one},
               numbers(b"".join(parts[1])))


def data_of_page(page):
    """The document in it, and the page without."""
    head, data, tail = re.fullmatch(
        r'(.*<script [^>]* id="data">\n)([A-Za-z0-9+/=\n]*)(</script>\n.*)',
        page, re.S).groups()
    return json.loads(gzip.decompress(base64.b64decode(data))), head + tail


def printed(*words):
    """What it says; it must say it."""
    done = seep(*words, COLUMNS=str(WIDTH))
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_near(text, value):
    """Is "41.3 MiB" what @value is rounded to?"""
    number, unit = re.fullmatch(r"\+?(-?[\d.,]+) ?(\w*)", text).groups()
    digits = len(number.partition(".")[2])
    scale = UNITS[unit or "B"]
    return abs(float(number.replace(",", "")) * scale - value) <= (
        0.51 * scale / 10 ** digits)


def is_near_interval(text, interval, scale=60):
    """Is "+40.1 ±1.1 MiB" that?"""
    estimate, half, unit = re.fullmatch(r"(\S+) ±(\S+) (\S+)", text).groups()
    return (is_near(f"{estimate} {unit}", interval["estimate"] * scale) and
            is_near(f"{half} {unit}",
                    (interval["high"] - interval["low"]) / 2 * scale))


def rows_of_text(text):
    """[{head: cell}] of the table of call sites."""
    lines = text.splitlines()
    start, = (i for i, line in enumerate(lines)
              if re.match(r" class +growth/min ", line))
    heads = re.split(r" {2,}", lines[start].strip())
    rows = []
    for line in lines[start + 1:lines.index("", start)]:
        cells = re.split(r" {2,}", line.strip(), maxsplit=len(heads) - 1)
        if not line.startswith(7 * " ") and len(cells) == len(heads):
            rows.append(dict(zip(heads, cells)))
    return rows


def is_row_of(row, site):
    """Are all its figures those of @site?"""
    return (row["where"].startswith(site["where"].split(" ")[0]) and
            is_near_interval(row["growth/min"], site["growth_bytes_per_s"]) and
            is_near(row["live"], site["live_bytes"]) and
            is_near(row["blocks"], site["live_count"]))


def of_text(path, sites):
    """What the text says otherwise. Of those that grow in step it has the
    first."""
    rows = [row for row in
            rows_of_text(printed("report", "--sites", "0", path).decode())
            if row["class"] in ("leak", "suspect", "with")]
    for row in rows:
        if not any(is_row_of(row, site) for site in sites):
            yield f"text: {row}"
    for site in sites:
        if site["group"] is None and not any(is_row_of(row, site)
                                             for row in rows):
            yield f"text has not: {site['where']}"


def of_page(path, process):
    """What the page has otherwise."""
    page, _ = data_of_page(printed("report", "--html", "-", path).decode())
    other, = page["report"]["processes"]
    for site, same in zip(process["sites"], other["sites"], strict=True):
        for key, value in site.items():
            if key not in ("series", "frames") and same[key] != value:
                yield f"page: {site['where']} {key} {same[key]} not {value}"


def of_profile(path, process):
    """What pprof has otherwise; each stack is rounded."""
    sums = collections.defaultdict(collections.Counter)
    counts = collections.Counter()
    for values, labels, _ in samples_of(profile_of(
            printed("export", "--format", "pprof", path))):
        sums[labels["site"]].update(values)
        counts[labels["site"]] += 1
    for site in process["sites"]:
        figures = {name: site[key] for name, key in TYPES.items()}
        growth = site["growth_bytes_per_s"]
        if growth and site["live_bytes"] > 0:
            figures["growth_per_second"] = growth["estimate"]
        for name, value in figures.items():
            if abs(sums[site["id"]][name] - value) > counts[site["id"]] / 2:
                yield (f"pprof: {site['where']} {name} "
                       f"{sums[site['id']][name]} not {value}")


def of_digest(path, sites):
    """What the digest has otherwise."""
    lines = {line["site"]: line for line in
             map(json.loads, printed("digest", path).splitlines())}
    for site in sites:
        line = lines.get(site["id"], {})
        growth = site["growth_bytes_per_s"]
        told = line.get("growth_bytes_per_s") or {}
        same = {key: line.get(key) for key in DIGEST} == \
            {key: site[key] for key in DIGEST}
        if not same or any(told.get(key) != value for key, value in
                           growth.items()):
            yield f"digest: {line} not {site}"


def of_lines(path, sites):
    """What the lines of JSON have otherwise."""
    lines = {line["id"]: line for line in
             map(json.loads, printed("export", "--format", "jsonl",
                                     path).splitlines())
             if line["type"] == "site"}
    for site in sites:
        line = lines.get(site["id"], {})
        if any(line.get(key) != site[key] for key in
               ("live_bytes", "growth_bytes_per_s", "where")):
            yield f"jsonl: {line} not {site}"


def differences(path):
    """Whatever one of them says and the JSON of the report does not."""
    process, = json.loads(printed("report", "--json", path))["processes"]
    sites = [site for site in process["sites"]
             if site["class"] in ("leak", "suspect") and
             not site["suppressed_by"]]
    assert sites, "none grows: nothing is compared"
    return [*of_text(path, sites), *of_page(path, process),
            *of_profile(path, process), *of_digest(path, sites),
            *of_lines(path, sites)]
