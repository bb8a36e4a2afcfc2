# SPDX-License-Identifier: LGPL-2.1-or-later
"""What recording costs a server of embeddings: two of them, by turns.

    server_hour.py --python PYTHON [--seconds 3600] [--turn 5] [--keep FOLDER]

One is plain, one runs under seep at its default; both are alive all the time.
One client asks them in turns A B B A, the same sentences in both turns of a
pair, so that what else the machine does meets both alike. SIGTERM ends it
early, and what was measured until then is told.

Invariant: one request is under way at a time; a pair of turns counts only if
it is whole; both servers are waited for.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import run

PROGRAM = run.HERE / "programs" / "embed_server.py"
PLAIN, SEEP = "plain", "under seep"
START_S = 300
WARM_TURNS = 1
RESAMPLES = 200
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Server:
    """A process, its one connection, and what it has answered, by turns."""

    def __init__(self, words, folder):
        self.process = subprocess.Popen(
            [str(word) for word in words], text=True, cwd=folder,
            stdout=subprocess.PIPE, start_new_session=True,
            env=run.variables({"PYTHONHASHSEED": "0"}))
        self.turns = []

    def connect(self):
        """As soon as its model is loaded."""
        for line in self.process.stdout:
            if line[:1] == "{":
                said = json.loads(line)
                self.pid = said["pid"]
                self.connection = http.client.HTTPConnection(
                    "127.0.0.1", said["port"], timeout=START_S)
                return
        raise RuntimeError("the server ended before it listened")

    def ask(self, body):
        """One request. @return seconds"""
        start = time.perf_counter()
        self.connection.request("POST", "/", body)
        answer = self.connection.getresponse().read()
        took = time.perf_counter() - start
        if len(json.loads(answer)) != len(json.loads(body)):
            raise RuntimeError("not as many vectors as sentences")
        return took

    def cpu_s(self):
        """User and system time of the process."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text(
            "ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def memory_bytes(self):
        """{VmRSS: ..., RssAnon: ..., RssFile: ..., RssShmem: ...}"""
        lines = pathlib.Path(f"/proc/{self.pid}/status").read_text(
            "ascii").splitlines()
        return {name: int(rest.split()[0]) << 10
                for name, _, rest in (line.partition(":") for line in lines)
                if name in ("VmRSS", "RssAnon", "RssFile", "RssShmem")}

    def turn(self, bodies, seconds):
        """So many requests as there are, or so long. @return the turn"""
        cpu_s, start, took = self.cpu_s(), time.monotonic(), []
        for body in bodies:
            took.append(self.ask(body))
            if seconds and time.monotonic() - start >= seconds:
                break
        return {"took_s": took, "cpu_s": self.cpu_s() - cpu_s}

    def stop(self):
        """By its own way out, or by force."""
        with contextlib.suppress(OSError, AttributeError,
                                 http.client.HTTPException):
            self.connection.request("GET", "/stop")
            self.connection.getresponse().read()
            self.process.wait(START_S)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def requests(seed, longest):
    """Without an end, the same for the same seed."""
    source = random.Random(seed)
    while True:
        yield json.dumps([
            " ".join(f"w{source.randrange(2000)}"
                     for _ in range(source.randint(3, longest)))
            for _ in range(source.randint(1, 2))])


def take_turns(servers, options):
    """Pairs, A B then B A; the second of a pair gets as many requests."""
    deadline = time.monotonic() + options.seconds
    count = 0
    while time.monotonic() < deadline or count <= WARM_TURNS:
        order = [PLAIN, SEEP] if count % 2 == 0 else [SEEP, PLAIN]
        first = servers[order[0]].turn(requests(count, options.longest),
                                       options.turn)
        bodies = [body for body, _ in zip(requests(count, options.longest),
                                          first["took_s"])]
        second = servers[order[1]].turn(bodies, None)
        count += 1
        if count <= WARM_TURNS:
            continue
        servers[order[0]].turns.append(first)
        servers[order[1]].turns.append(second)
        print(json.dumps({"pair": count, "rate_per_s": {
            name: round(len(each.turns[-1]["took_s"]) /
                        sum(each.turns[-1]["took_s"]), 2)
            for name, each in servers.items()}, "rss_bytes": {
                name: each.memory_bytes()["VmRSS"]
                for name, each in servers.items()}}),
            file=sys.stderr, flush=True)


def at(fraction):
    """A quantile of all latencies, in ms."""
    def quantile(turns):
        took = sorted(value for turn in turns for value in turn["took_s"])
        return 1000 * took[min(int(fraction * len(took)), len(took) - 1)]
    return quantile


def per_request(turns):
    """CPU time, in ms."""
    return (1000 * sum(turn["cpu_s"] for turn in turns) /
            sum(len(turn["took_s"]) for turn in turns))


def rate(turns):
    """Requests a second of the client's waiting."""
    return (sum(len(turn["took_s"]) for turn in turns) /
            sum(sum(turn["took_s"]) for turn in turns))


MEASURES = {"requests a second": rate, "p50, ms": at(0.5), "p99, ms": at(0.99),
            "p99.9, ms": at(0.999), "CPU a request, ms": per_request}


def interval(measure, plain, seep):
    """Of the ratio, 95 %: pairs of turns are drawn again."""
    source = random.Random(1)
    ratios = []
    for _ in range(RESAMPLES):
        drawn = source.choices(range(len(plain)), k=len(plain))
        ratios.append(measure([seep[one] for one in drawn]) /
                      measure([plain[one] for one in drawn]))
    ratios.sort()
    return ratios[RESAMPLES // 40], ratios[-1 - RESAMPLES // 40]


def tell(servers, memory, took_s):
    """The table. @return the ratios by name"""
    plain, seep = servers[PLAIN].turns, servers[SEEP].turns
    asked = sum(len(turn["took_s"]) for turn in plain)
    print(f"{took_s:.0f} s, {len(plain)} pairs of turns, {asked} requests to "
          f"each server\n\n| | {PLAIN} | {SEEP} | ratio, 95 % |\n"
          "| --- | --- | --- | --- |")
    ratios = {}
    for name, measure in MEASURES.items():
        both = measure(plain), measure(seep)
        low, high = interval(measure, plain, seep)
        ratios[name] = both[1] / both[0]
        print(f"| {name} | {both[0]:.2f} | {both[1]:.2f} | "
              f"{ratios[name]:.3f} ({low:.3f} to {high:.3f}) |")
    for name in memory[PLAIN]:
        both = [memory[which][name] / 2**20 for which in (PLAIN, SEEP)]
        ratios[name] = both[1] / max(both[0], 1 / 2**20)
        print(f"| {name} at the end, MiB | {both[0]:.1f} | {both[1]:.1f} | "
              f"{both[1] - both[0]:+.1f} MiB |", flush=True)
    return ratios


def parse(words):
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--model", choices=["bert", "words"], default="bert")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--turn", type=float, default=5)
    parser.add_argument("--longest", type=int, default=60,
                        help="words of a sentence")
    parser.add_argument("--keep", type=pathlib.Path,
                        help="where the recording stays (default: nowhere)")
    return parser.parse_args(words)


def measure_both(options, folder):
    """Start, ask, stop. @return the ratios"""
    program = [options.python, PROGRAM, "--model", options.model]
    servers = {}
    try:
        servers[PLAIN] = Server(program, folder)
        servers[SEEP] = Server(
            [run.SEEP.absolute(), "run", "--quiet", "--no-report", "-o",
             folder / "server.seep", "--", *program], folder)
        for server in servers.values():
            server.connect()
        start = time.monotonic()
        with contextlib.suppress(KeyboardInterrupt):
            take_turns(servers, options)
        whole = min(len(server.turns) for server in servers.values())
        for server in servers.values():
            del server.turns[whole:]
        (folder / "turns.json").write_text(json.dumps({
            name: each.turns for name, each in servers.items()}), "ascii")
        memory = {name: each.memory_bytes() for name, each in servers.items()}
        return tell(servers, memory, time.monotonic() - start)
    finally:
        for server in servers.values():
            server.stop()


def interrupt(*_):
    """What SIGTERM does."""
    raise KeyboardInterrupt


def main(words=None):
    """@return an exit status: 0 within 5 % of throughput, 3 % of RSS"""
    options = parse(words)
    signal.signal(signal.SIGTERM, interrupt)
    with tempfile.TemporaryDirectory(prefix="seep-real-") as temporary:
        folder = (options.keep or pathlib.Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        ratios = measure_both(options, folder)
        print(f"\n{(folder / 'server.seep').stat().st_blocks >> 11} MiB of "
              "recording; seep says: " + run.read(
                  folder / "server.seep", "report").partition("\n")[0])
    return 0 if (ratios["requests a second"] >= 0.95 and
                 ratios["VmRSS"] <= 1.03) else 1


if __name__ == "__main__":
    sys.exit(main())
