# SPDX-License-Identifier: LGPL-2.1-or-later
"""`seep metrics`: what a scraper gets, and what a real Prometheus makes of it.

Invariant: every process that is started here is ended by its id and waited
for, and every port is one that the system chose on loopback.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from command_line import seep
from conftest import LONG, SEEP, environment, need, program

PYTHON = "/usr/bin/python3"
EXAMPLE = pathlib.Path(
    os.environ.get("SEEP_SOURCE", pathlib.Path(__file__).parents[2])
) / "examples/03-prometheus"
WORKER = EXAMPLE / "worker.py"
SAMPLE = 16 << 10
SIZE = 4 << 20  # of a recording: there are many
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
SAMPLE_LINE = re.compile(
    r'^(seep_\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)$')


@contextlib.contextmanager
def started(*words, **more):
    """A process that is ended when it is no longer needed."""
    process = subprocess.Popen([*map(str, words)], start_new_session=True,
                               **more)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def worker(folder, what, *options, **variables):
    """One of the example's workers, recorded."""
    variables = {"SEEP_SIZE": SIZE} | variables
    return started(PYTHON, WORKER, what, *options,
                   env=environment(folder, SAMPLE, **variables),
                   stdout=subprocess.PIPE, text=True)


def pid_of(process):
    """It is recorded from its start on, so once it has said who it is."""
    return process.stdout.readline().split()[0]


@contextlib.contextmanager
def exporter(*words, interval="0.2s", **more):
    """`seep metrics --listen`: the process and its address."""
    with started(SEEP, "metrics", "--listen", "127.0.0.1:0", "--interval",
                 interval, *words, stdout=subprocess.PIPE, text=True,
                 **more) as process:
        word, url = process.stdout.readline().split()
        assert word == "serving"
        wait_for(lambda: get(url.replace("/metrics", "/-/ready"))[0] == 200)
        yield process, url


def get(url, method="GET", accept=None, data=None):
    """Status, headers, text; a refusal is an answer too."""
    request = urllib.request.Request(url, method=method, data=data)
    if accept is not None:
        request.add_header("Accept", accept)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def wait_for(is_true, limit_s=30, pause_s=0.05):
    """Until it is true; what it was then."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = is_true()
        if value:
            return value
        time.sleep(pause_s)
    raise AssertionError("it did not come true")


def samples(text):
    """{(name, labels as text): value}; fails at a line that is none."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE_LINE.match(line)
        assert match, line
        key = match.group(1), match.group(2) or ""
        assert key not in found, line
        found[key] = float(match.group(3))
    return found


def names(text):
    """Which metrics there are."""
    return {name for name, _ in samples(text)}


def promtool(*words, text=None):
    """Debian's checker of all that Prometheus reads."""
    need("promtool")
    return subprocess.run(["promtool", *map(str, words)], input=text,
                          text=True, capture_output=True, timeout=60,
                          check=False)


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    """A folder with the recording of a worker that runs."""
    data = tmp_path_factory.mktemp("data")
    with worker(data, "leak", SEEP_LABELS='model=b"\\,x=1') as process:
        pid_of(process)
        wait_for(lambda: list(data.glob("*.seep")))
        time.sleep(1)
        yield data


def test_promtool_finds_no_fault(leaking):
    done = seep("metrics", "--once", leaking)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert {"seep_live_bytes", "seep_allocated_bytes_total", "seep_verdict",
            "seep_site_live_bytes", "seep_target_info", "seep_build_info",
            "seep_running", "seep_events_lost_total"} <= names(text)
    checked = promtool("check", "metrics", text=text)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_textfile_is_replaced_at_once(leaking, tmp_path):
    path = tmp_path / "seep.prom"
    path.write_text("old\n")
    with open(path, encoding="utf-8") as old:
        os.umask(0o022)
        done = seep("metrics", "--once", "--textfile", path, leaking)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert old.read() == "old\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert "seep_live_bytes" in names(path.read_text())
    assert not list(tmp_path.glob("seep.prom?*"))


def test_a_textfile_that_cannot_be_written_is_said(leaking, tmp_path):
    done = seep("metrics", "--textfile", tmp_path / "no/such/x.prom", leaking)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1 and b"x.prom" in done.stderr


def test_a_scraper_gets_the_format_that_it_asks_for(leaking):
    with exporter(leaking) as (_, url):
        status, headers, text = get(url)
        assert status == 200
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "# EOF" not in text and "# TYPE seep_build_info gauge" in text
        _, headers, text = get(url, accept=OPENMETRICS)
        assert headers["Content-Type"].startswith(
            "application/openmetrics-text; version=1.0.0")
        assert text.endswith("\n# EOF\n")
        assert "# UNIT seep_live_bytes bytes\n" in text
        assert "# TYPE seep_allocated_bytes counter\n" in text


def test_only_what_is_served_is_served(leaking):
    with exporter(leaking) as (_, url):
        root = url.replace("/metrics", "")
        assert get(f"{root}/healthz")[0] == 200
        assert get(f"{root}/-/ready")[0] == 200
        assert get(root + "/")[0] == 404
        assert get(f"{root}/metrics/x")[0] == 404
        status, headers, text = get(url, method="HEAD")
        assert (status, text) == (200, "")
        assert int(headers["Content-Length"]) > 1000
        status, headers, _ = get(url, method="POST", data=b"x=1")
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_unix_socket_is_there_as_long_as_it_is_served(leaking, tmp_path):
    path = tmp_path / "metrics.socket"
    # one that was killed left it behind
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    with started(SEEP, "metrics", "--listen", f"unix:{path}", leaking,
                 stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == f"serving unix:{path}\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        second = seep("metrics", "--listen", f"unix:{path}", leaking)
        assert second.returncode == 1 and b"another process" in second.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert not path.exists()


def test_a_server_that_accepts_nobody_is_not_waited_for(leaking, tmp_path):
    path = tmp_path / "metrics.socket"
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(socket.socket(socket.AF_UNIX))
        other.bind(str(path))
        other.listen(0)
        waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
        waiting.connect(str(path))
        done = seep("metrics", "--listen", f"unix:{path}", leaking)
        assert done.returncode == 1 and b"another process" in done.stderr
        assert path.exists()


def test_a_file_in_the_way_of_a_socket_stays(leaking, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    done = seep("metrics", "--listen", f"unix:{path}", leaking)
    assert done.returncode == 1 and b"is not a socket" in done.stderr
    assert path.read_text() == "mine"


def test_who_can_be_reached_from_elsewhere_is_warned(leaking):
    with started(SEEP, "metrics", "--listen", "0.0.0.0:0", leaking,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        warning = process.stderr.read()
    assert warning.count("\n") == 1 and "other machines" in warning


@pytest.mark.parametrize("words, said", [
    ((), "expected --listen, --textfile or --once"),
    (("--listen", ":0", "--once", "x"), "cannot be combined with --listen"),
    (("--once",), "no recording"),
    (("--texfile", "x", "y"), "did you mean --textfile"),
    (("--once", "--interval", "soon", "x"), "expected a time"),
    (("--once", "--sites", "-1", "x"), "expected a number"),
    (("--once", "--processes", "0", "x"), "expected a number"),
])
def test_a_wrong_command_line_is_told(words, said):
    done = seep("metrics", *words)
    assert done.returncode == 2 and done.stdout == b""
    assert done.stderr.count(b"\n") == 1 and said in done.stderr.decode()


@pytest.mark.parametrize("address, status", [
    ("", 2), ("9464", 2), ("127.0.0.1:", 2), ("x:y", 2), ("unix:", 2),
    ("127.0.0.1:99999", 2), ("[::1", 1), ("no.such.host.invalid:1", 1)])
def test_an_address_that_is_none_is_told(address, status, folder):
    done = seep("metrics", "--listen", address, folder)
    assert done.returncode == status and done.stderr.count(b"\n") == 1


def test_a_port_that_is_taken_is_told(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = seep("metrics", "--listen", f"127.0.0.1:{port}", folder)
    assert done.returncode == 1 and b"already in use" in done.stderr


def test_connections_that_say_nothing_hold_nobody_up(leaking):
    """There are more of them than are let in at once."""
    with exporter(leaking) as (process, url), contextlib.ExitStack() as stack:
        target = urllib.parse.urlparse(url)
        before = descriptors(process.pid)
        for _ in range(80):
            idle = stack.enter_context(socket.create_connection(
                (target.hostname, target.port)))
            idle.sendall(b"GET /metr")
        assert descriptors(process.pid) < before + 70
        # those that wait are served when the idle ones have had their time
        wait_for(lambda: is_served(url), 60, 1)


def is_open(client):
    """Did the other side not end it?"""
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        return len(client.recv(1)) > 0
    return True


def test_a_byte_now_and_then_holds_no_place(leaking):
    """Who comes last is answered while the others that came last still drip:
    not when all have had their time."""
    with exporter(leaking) as (_, url), contextlib.ExitStack() as stack:
        target = urllib.parse.urlparse(url)
        slow = [stack.enter_context(socket.create_connection(
            (target.hostname, target.port))) for _ in range(200)]
        ended = threading.Event()

        def drip():
            while not ended.wait(0.5):
                for client in slow:
                    with contextlib.suppress(OSError):
                        client.send(b"X")
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with socket.create_connection(
                    (target.hostname, target.port), 40) as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 200")
            staying = [is_open(client) for client in slow]
            assert not any(staying[:100]) and sum(staying) > 30, staying
        finally:
            ended.set()
            thread.join()


def test_a_body_that_nobody_asked_for_is_passed_over(leaking):
    with exporter(leaking) as (_, url):
        assert get(url, data=b"x" * 400000, method="GET")[0] == 200


def is_served(url):
    """A scrape that takes too long is one that failed."""
    with contextlib.suppress(OSError):
        return get(url)[0] == 200


def test_what_is_not_there_is_said_and_the_others_are_told(leaking):
    done = seep("metrics", "--once", leaking, "/no/such/folder")
    assert done.returncode == 1
    assert b"/no/such/folder" in done.stderr
    assert "seep_live_bytes" in names(done.stdout.decode())


def recordings_of(text):
    """{state: count} of seep_recordings."""
    return {state: int(count) for state, count in re.findall(
        r'^seep_recordings{state="(\w+)"} (\d+)$', text, re.MULTILINE)}


def test_what_is_refused_counts_at_the_first_look_and_is_said(folder):
    for i in range(5):
        (folder / f"{i}.seep").write_bytes(os.urandom(20000))
    done = seep("metrics", "--once", folder)
    assert done.returncode == 1
    assert recordings_of(done.stdout.decode())["refused"] == 5
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 4
    assert all("is not a seep recording; give" in line for line in lines[:3])
    assert lines[3].startswith(f"seep: {folder}: and 2 more cannot be read; ")


def test_who_is_refused_beside_others_costs_them_nothing(leaking, tmp_path):
    (tmp_path / "x.seep").write_bytes(b"none")
    done = seep("metrics", "--once", leaking, tmp_path)
    text = done.stdout.decode()
    assert done.returncode == 0
    assert recordings_of(text)["refused"] == 1
    assert "seep_live_bytes" in names(text)
    assert done.stderr.count(b"\n") == 1 and b"x.seep: is " in done.stderr


def test_a_folder_without_recordings_is_named(folder):
    done = seep("metrics", "--once", folder)
    assert done.returncode == 1
    assert set(recordings_of(done.stdout.decode()).values()) == {0}
    assert done.stderr.startswith(
        f"seep: {folder}: contains no recordings; ".encode())


def test_what_is_served_says_a_refusal_once(folder):
    (folder / "x.seep").write_bytes(b"none")
    with exporter(folder, stderr=subprocess.PIPE) as (process, url):
        wait_for(lambda: recordings_of(get(url)[2]).get("refused") == 1)
        time.sleep(1)
        process.terminate()
        assert process.stderr.read().count("x.seep") == 1


def test_a_process_that_ends_is_let_go(folder):
    with exporter("--keep", "1s", folder) as (_, url):
        with worker(folder, "steady") as process:
            pid = pid_of(process)
            wait_for(lambda: f'seep_running{{pid="{pid}"' in get(url)[2])
        wait_for(lambda: re.search(
            rf'seep_running{{pid="{pid}",[^}}]*}} 0', get(url)[2]))
        wait_for(lambda: f'pid="{pid}"' not in get(url)[2])


def test_a_folder_may_come_later(folder):
    later = folder / "later"
    with exporter(later, stderr=subprocess.DEVNULL) as (_, url):
        assert "seep_running" not in names(get(url)[2])
        later.mkdir()
        with worker(later, "steady") as process:
            pid = pid_of(process)
            wait_for(lambda: f'seep_running{{pid="{pid}"' in get(url)[2])


def refreshed(url):
    """When the figures were read, by the exporter's own word."""
    return samples(get(url)[2])[("seep_refresh_timestamp_seconds", "")]


def test_a_scrape_and_the_end_wait_for_no_file_system(leaking, tmp_path):
    gate = tmp_path / "gate"
    slow = environment(SLOW_READS=gate) | {
        "LD_PRELOAD": program("slow_reads.so")}
    with exporter(leaking, env=slow) as (process, url):
        before = refreshed(url)
        wait_for(lambda: refreshed(url) > before)
        gate.touch()
        time.sleep(1)
        held = refreshed(url)
        time.sleep(1)
        assert refreshed(url) == held
        assert "seep_live_bytes" in names(get(url)[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert gate.exists()


def rss_bytes(pid):
    """Resident memory of a process."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) << 10


def descriptors(pid):
    """How many files it has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


COMERS = (200, 20000 if LONG else 2000)
PAGE = 64 << 10


class Copier:
    """Copies one recording many times: most of it are holes."""

    def __init__(self, source):
        text = source.read_bytes()
        self.size = len(text)
        self.pages = [(at, text[at:at + PAGE])
                      for at in range(0, len(text), PAGE)
                      if text[at:at + PAGE].strip(b"\0")]

    def copy(self, path):
        """It is there at once, as a worker's own is."""
        made = path.with_suffix(".tmp")
        with open(made, "wb") as file:
            file.truncate(self.size)
            for at, page in self.pages:
                file.seek(at)
                file.write(page)
        made.rename(path)


def test_many_that_come_and_go_leave_the_exporter_as_it_is(folder):
    """Recordings of a process that ended, each another file and start."""
    model = folder / "model"
    model.mkdir()
    with worker(model, "leak", "--seconds", "2", SEEP_SIZE=2 << 20) as process:
        process.wait(30)
    source, = model.glob("*.seep")
    copier = Copier(source)
    comers = folder / "comers"
    comers.mkdir()
    came = 0
    seen = []
    with exporter("--processes", "8", "--keep", "1h", comers,
                  interval="0.1s") as (process, url):
        for limit in COMERS:
            while came < limit:
                for _ in range(min(40, limit - came)):
                    copier.copy(comers / f"{came}.seep")
                    came += 1
                    gone = comers / f"{came - 60}.seep"
                    gone.unlink(missing_ok=True)
                time.sleep(0.1)
            text = wait_for(lambda: fresh(url, came))
            seen.append((rss_bytes(process.pid), descriptors(process.pid),
                         len(samples(text))))
    (rss, files, lines), (rss_later, files_later, lines_later) = seen
    print(f"after {COMERS}: {seen}")
    assert rss_later < 1.25 * rss + (4 << 20)
    assert files_later <= files + 2
    assert lines_later == lines


def fresh(url, came):
    """The text, once the last of those that came is told."""
    text = get(url)[2]
    refreshed = samples(text)[("seep_refresh_timestamp_seconds", "")]
    return text if refreshed > fresh.since.setdefault(came, time.time()) \
        else None


fresh.since = {}


def free_port():
    """A port that the system chose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def prometheus(folder, url):
    """A real one, which scrapes @url each second; its API."""
    need("prometheus")
    rules = (EXAMPLE / "seep.rules.yml").read_text()
    (folder / "seep.rules.yml").write_text(
        re.sub(r"for: \d+m", "for: 3s", rules))
    target = urllib.parse.urlparse(url).netloc
    config = (EXAMPLE / "prometheus.yml").read_text()
    (folder / "prometheus.yml").write_text(
        config.replace("127.0.0.1:9464", target).replace("15s", "1s"))
    port = free_port()
    with open(folder / "prometheus.log", "wb") as log, started(
            "prometheus", f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}", stderr=log,
            stdout=log) as process:
        api = f"http://127.0.0.1:{port}"

        def is_ready():
            assert process.poll() is None, \
                (folder / "prometheus.log").read_text()
            with contextlib.suppress(OSError):
                return get(f"{api}/-/ready")[0] == 200
        wait_for(is_ready, 60)
        yield f"{api}/api/v1"


def query(api, expression):
    """What an expression is now: [(labels, value)]."""
    words = urllib.parse.urlencode({"query": expression})
    answer = json.loads(get(f"{api}/query?{words}")[2])
    assert answer["status"] == "success", answer
    return [(row["metric"], float(row["value"][1]))
            for row in answer["data"]["result"]]


def firing(api):
    """Process ids of which growth is told now."""
    answer = json.loads(get(f"{api}/alerts")[2])
    return {alert["labels"]["pid"] for alert in answer["data"]["alerts"]
            if alert["labels"]["alertname"] == "SeepMemoryGrows"
            and alert["state"] == "firing"}


def restart(folder, until):
    """A worker that lives for three seconds, again and again."""
    while not until.is_set():
        with worker(folder, "steady", "--seconds", "3") as process:
            process.wait(30)


@contextlib.contextmanager
def restarting(folder):
    """The same, beside what is done meanwhile."""
    ended = threading.Event()
    thread = threading.Thread(target=restart, args=(folder, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


STEADY_S = 120 if LONG else 5


def test_prometheus_tells_the_leak_and_not_the_warm_up(folder):
    recordings = folder / "recordings"
    recordings.mkdir()
    with worker(recordings, "leak") as leak, \
            worker(recordings, "warm-up") as warm_up, \
            restarting(recordings), \
            exporter("--keep", "5s", recordings, interval="1s") as (_, url), \
            prometheus(folder, url) as api:
        leaks, warms = pid_of(leak), pid_of(warm_up)
        wait_for(lambda: leaks in firing(api), 150, 0.5)
        time.sleep(STEADY_S)
        told = query(api, 'count by (pid) (count_over_time(ALERTS{alertname='
                          '"SeepMemoryGrows",alertstate="firing"}[10m]))')
        assert {labels["pid"] for labels, _ in told} == {leaks}
        # every scrape was read, and both that live are there
        assert query(api, "min_over_time(up[10m])")[0][1] == 1
        running = {labels["pid"]
                   for labels, value in query(api, "seep_running")
                   if value == 1}
        assert {leaks, warms} <= running
        # those that restart came, and their series went
        came = query(api, "count(count by (pid) (max_over_time("
                          "seep_running[10m])))")[0][1]
        now = query(api, "count(seep_running)")[0][1]
        assert came >= now + 3, (came, now)
        assert query(api, "sum(rate(seep_allocated_bytes_total[20s]))")[0][1] \
            < 1 << 30
