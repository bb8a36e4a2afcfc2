# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits on the memory of tests, as markers of pytest.

    @pytest.mark.limit_growth("1 MiB/min")
    @pytest.mark.limit_growth_per_call("64 B", calls=200, warmup=20)
    @pytest.mark.limit_device_memory("2 GiB")

`pytest --seep` holds tests against them. Invariant: without --seep (or
`seep = true` in the ini file) the markers are known, and that is all.
"""
import contextlib
import inspect
import os
import shutil
import sys
import warnings

import pytest

from . import _calls, _gate_limits, _gate_restart

_HELP = (
    'limit_growth(rate, seconds=5, warmup=1): memory grows by no more than '
    'that, such as "1 MiB/min", while the body is repeated (--seep)',
    'limit_growth_per_call(size, calls=200, warmup=20): by no more for each '
    'call of the body, such as "64 B" (--seep)',
    'limit_device_memory(size): the process holds no more than that of any '
    'GPU while the test runs, such as "2 GiB" (--seep)')
_NAMES = {"limit_growth": ("grows by", "/min", 60),
          "limit_growth_per_call": ("grows by", " per call", 1),
          "limit_device_memory": ("of a GPU reaches", "", 1)}
_UNSEEN = "seep_{}_unseen"  # of a test that passed
_ROWS = 5
_SEEN = {"pass": "within", "fail": "over", "not enough data":
         "not enough data", "not measured": "not measured"}


def pytest_addoption(parser):
    """--seep, and what goes with it."""
    group = parser.getgroup("seep", "limits on memory (seep)")
    group.addoption("--seep", action="store_true", default=False,
                    help="check tests against their limit_* markers; pytest "
                    "restarts itself under libseep.so")
    group.addoption("--seep-strict", action="store_true", default=False,
                    help="treat not enough data as a failure, not a skip")
    group.addoption("--seep-command", metavar="PATH", default=None,
                    help="path of the seep command, if it is not in PATH")
    parser.addini("seep", "as --seep", type="bool", default=False)


def _is_asked(config, options):
    return options.seep or config.getini("seep")


def _has_workers(options):
    """pytest-xdist's: they are the ones that run tests."""
    if getattr(options, "numprocesses", None) is not None:
        return options.numprocesses != 0
    return bool(getattr(options, "tx", None)) or \
        getattr(options, "dist", "no") != "no"


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Start again under the preload, before output is captured."""
    options = early_config.known_args_namespace
    idle = options.help or options.version or \
        getattr(options, "collectonly", False) or _has_workers(options)
    if _is_asked(early_config, options) and not idle and \
            not _calls.recorded() and "PYTEST_XDIST_WORKER" not in os.environ:
        try:
            _gate_restart.restart(options.seep_command)
        except _gate_restart.CannotRestart as error:
            raise pytest.UsageError(str(error)) from None
    yield


def pytest_configure(config):
    """Know the markers; with --seep, measure."""
    for line in _HELP:
        config.addinivalue_line("markers", line)
    if _is_asked(config, config.option):
        config.pluginmanager.register(Gate(config), "seep-gate")


class Runner:
    """What pytest keeps of each call (log records, output, warnings) would be
    taken for the body's."""

    def __init__(self, item):
        manager = item.config.pluginmanager
        logs = manager.get_plugin("logging-plugin")
        self._handlers = [
            handler for handler in (getattr(logs, "caplog_handler", None),
                                    getattr(logs, "report_handler", None))
            if handler is not None]
        self._capture = manager.get_plugin("capturemanager")
        made = getattr(item, "funcargs", {})
        self._captures = [made[name] for name in (
            "capsys", "capfd", "capsysbinary", "capfdbinary") if name in made]
        self._recwarn = made.get("recwarn")

    def tidy(self):
        """After each call."""
        for handler in self._handlers:
            handler.records.clear()
            handler.stream.seek(0)
            handler.stream.truncate()
        for capture in self._captures:
            capture.readouterr()
        if self._recwarn is not None:
            self._recwarn.clear()

    def between(self):
        """Between windows. @return what was printed since"""
        if self._capture is None or not self._capture.is_globally_capturing():
            return "", ""
        sys.stdout.flush()
        sys.stderr.flush()
        return self._capture.read_global_capture()

    @contextlib.contextmanager
    def quietly(self):
        """Warnings go nowhere; the first call's output is what is shown."""
        out, err = self.between()
        logs = [(handler, list(handler.records), handler.stream.getvalue())
                for handler in self._handlers]
        self.tidy()
        with warnings.catch_warnings():
            warnings.showwarning = lambda *_, **__: None
            yield
        self.between()
        for handler, records, text in logs:
            handler.records[:] = records
            handler.stream.write(text)
        sys.stdout.write(out)
        sys.stderr.write(err)


def _written(marker, low, high):
    _, unit, scale = _NAMES[marker]
    return _gate_limits.written(low * scale, high * scale) + unit


def _measured(limit, found):
    return _written(limit.marker, found.low, found.high)


def _largest_unseen(told):
    """Of what tests that passed could not see: the most by call, by time."""
    most = {}
    for name, text in told:
        for marker, (_, unit, _) in _NAMES.items():
            if name == _UNSEEN.format(marker):
                size = _gate_limits.size(text[:-len(unit)])
                most[unit] = max(most.get(unit, (0, "")), (size, text))
    return [most[unit][1] for unit in sorted(most)]


def _where(row, root):
    if row["file"] is None:
        return row["function"]
    path = os.path.relpath(row["file"], root)
    path = row["file"] if path.startswith("..") else path
    return f"{path}:{row['line']}: {row['function']}"


def _lines_of(rows, root):
    lines = []
    for row in rows[:_ROWS]:
        if row["bytes"] <= 0:
            break
        blocks = f" in {row['count']:.0f} blocks" if row.get("count", 0) > 0 \
            else ""
        lines.append(f"  {_where(row, root)}  "
                     f"+{_gate_limits.written(row['bytes'])}{blocks}, "
                     f"{row['space']}")
        if row.get("held"):
            lines.append(f"    held by  {row['held']}")
    more = [row["bytes"] for row in rows[_ROWS:] if row["bytes"] > 0]
    if more:
        lines.append(f"  and {len(more)} more, "
                     f"+{_gate_limits.written(sum(more))}")
    return lines


def _message(limit, found, root):
    verb = _NAMES[limit.marker][0]
    lines = [f"seep: memory {verb} {_measured(limit, found)}, the limit is "
             f"{limit.text} ({found.told})"]
    lines += _lines_of(found.rows, root)
    if found.outcome == "fail" and (limit.calls or limit.seconds):
        lines.append("  next: if that is a cache, let it fill first (warmup)")
    return "\n".join(lines)


def _advice(limit):
    if limit.calls:
        return f"use more calls: calls={limit.calls * 4}"
    if limit.seconds:
        return f"use more time: seconds={limit.seconds * 4:g}"
    return "the bounds are of sites that did not peak together"


def _limit_of(mark):
    try:
        return _gate_limits.read(mark)
    except _gate_limits.BadLimit as error:
        wrong = str(error)
    pytest.fail(f"seep: marker {mark.name}: {wrong}", pytrace=False)


class Gate:
    """The plugin where it was asked for."""

    def __init__(self, config):
        # pylint: disable-next=import-outside-toplevel
        from . import _gate_measure, _gate_verdict
        self._measure, self._verdict = _gate_measure, _gate_verdict
        self._is_strict = config.option.seep_strict
        self._root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._folder = None
        self._tool = self._recording = None
        self._why_not = "this process is not recorded"
        self._was_asked, self._why_no_growth = False, None
        self._is_of_workers = False
        if hasattr(config, "workerinput"):
            self._find(config)
            _gate_restart.take_folder()
        elif _has_workers(config.option) and not _calls.recorded():
            self._prepare_workers(config)
        else:
            self._find(config)
            self._folder = _gate_restart.take_folder()

    def _prepare_workers(self, config):
        if config.option.collectonly:
            return
        try:
            self._folder = _gate_restart.prepare_workers(
                config.option.seep_command)
            self._tool = _gate_restart.command(config.option.seep_command)
        except _gate_restart.CannotRestart as error:
            raise pytest.UsageError(str(error)) from None
        self._recording = os.path.join(self._folder, "*.seep")
        self._is_of_workers = True

    def _find(self, config):
        try:
            if _calls.stats() is not None:
                self._recording = _gate_restart.recording()
                self._tool = _gate_restart.command(config.option.seep_command)
        except _gate_restart.CannotRestart as error:
            self._why_not = str(error)
            self._recording = None

    def pytest_report_header(self):
        """Who reads a log wants to know what tests ran under."""
        return f"seep: limits are checked with {self._recording}" \
            if self._recording else f"seep: {self._why_not}"

    def pytest_unconfigure(self):
        """Recordings go with the run that they are of."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _limits(self, item):
        limits = []
        for name in _gate_limits.MARKERS:
            mark = item.get_closest_marker(name)
            if mark is not None:
                limits.append(_limit_of(mark))
        return limits

    def pytest_runtest_setup(self, item):
        """A marker that cannot be read fails before anything is set up."""
        self._limits(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        """In the place of the one call."""
        limits = self._limits(pyfuncitem)
        if not limits or self._recording is None or \
                inspect.iscoroutinefunction(pyfuncitem.obj) or \
                inspect.isasyncgenfunction(pyfuncitem.obj):
            return None
        pyfuncitem.seep_measured = True
        # What a fixture is named by is given; others were made all the same.
        made = {name: pyfuncitem.funcargs[name]
                for name in pyfuncitem._fixtureinfo.argnames}

        def call():
            pyfuncitem.obj(**made)

        self._hold(pyfuncitem, limits, call)
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_call(self, item):
        """What is no plain function was run by somebody else, once."""
        limits = self._limits(item)
        if limits and not getattr(item, "seep_measured", False):
            why = self._why_not if self._recording is None else \
                "only plain functions and methods are repeated, no " \
                "coroutines and no methods of unittest"
            self._end(item, "not measured", f"seep: not measured: {why}")

    def _hold(self, item, limits, call):
        devices = [limit for limit in limits
                   if limit.marker == "limit_device_memory"]
        sites = self._measure.Sites(self._tool, self._recording)
        told = []
        try:
            if devices:
                sites.begin()
            call()  # as without us: what it raises is the test's own
            told += self._repeated(item, limits, call)
            if devices:
                since = sites.end()
                told += [(limit, self._measure.device(limit, since))
                         for limit in devices]
        except self._measure.NotMeasured as error:
            self._end(item, "not measured", f"seep: not measured: {error}")
        finally:
            sites.close()
        self._tell(item, told)

    def _repeated(self, item, limits, call):
        told = []
        growing = [limit for limit in limits if limit.seconds or limit.calls]
        if not growing:
            return told
        if not self._was_asked:
            self._was_asked = True
            self._why_no_growth = self._measure.why_not_exact(
                self._tool, self._recording)
        if self._why_no_growth is not None:
            raise self._measure.NotMeasured(self._why_no_growth)
        count = 1

        def counted():
            nonlocal count
            count += 1
            call()

        runner = Runner(item)
        try:
            with runner.quietly():
                told += [(limit, self._measure.growth(
                    limit, counted, runner, self._tool, self._recording))
                    for limit in growing]
        except (self._measure.NotMeasured, KeyboardInterrupt):
            raise
        except BaseException:
            item.add_report_section("call", "seep", f"call {count} of the "
                                    f"body, which seep repeats, ended so")
            raise
        return told

    def _tell(self, item, told):
        for limit, found in told:
            item.user_properties += [
                (f"seep_{limit.marker}", limit.text),
                (f"seep_{limit.marker}_measured", _measured(limit, found))]
            if found.unseen > 0:
                item.user_properties.append(
                    (_UNSEEN.format(limit.marker), _written(
                        limit.marker, found.unseen, found.unseen)))
        worst = [(limit, found) for outcome in ("fail", "not enough data")
                 for limit, found in told if found.outcome == outcome]
        if not worst:
            item.user_properties.append(("seep_outcome", "pass"))
            return
        limit, found = worst[0]
        text = "\n".join(_message(*one, self._root) for one in worst
                         if one[1].outcome == found.outcome)
        if found.rows:
            item.user_properties.append(
                ("seep_where", _where(found.rows[0], self._root)))
        if found.outcome != "fail":
            text = f"seep: not enough data: {text[len('seep: '):]}; " + \
                (found.advice or _advice(limit))
        self._end(item, found.outcome, text)

    def _end(self, item, outcome, text):
        item.user_properties.append(("seep_outcome", outcome))
        if outcome == "fail" or self._is_strict:
            pytest.fail(text, pytrace=False)
        try:  # the test's place, not this one
            skipped = pytest.skip.Exception(text, _use_item_location=True)
        except TypeError:  # an older pytest
            skipped = pytest.skip.Exception(text)
        raise skipped

    def pytest_terminal_summary(self, terminalreporter):
        """How many were held against their limits, what those could not see,
        and what the report says of the processes that they ran in."""
        counts = dict.fromkeys(_SEEN, 0)
        told = []
        for reports in terminalreporter.stats.values():
            for report in reports:
                if getattr(report, "when", None) == "call":
                    outcome = dict(report.user_properties).get("seep_outcome")
                    counts[outcome] = counts.get(outcome, 0) + 1
                    told += report.user_properties
        words = [f"{counts[name]} {said}" for name, said in _SEEN.items()
                 if counts[name]]
        if not words:
            return
        terminalreporter.write_line("seep: " + ", ".join(words))
        unseen = _largest_unseen(told)
        if unseen:
            terminalreporter.write_line(
                "seep: within: memory that no hook sees may still grow by up "
                f"to {', '.join(unseen)}")
        # Workers have ended by now, and each has left its recording.
        where = self._folder if self._is_of_workers else self._recording
        if where:
            for line in self._verdict.lines(self._tool, where,
                                            counts["fail"] > 0):
                terminalreporter.write_line(line)
