# SPDX-License-Identifier: LGPL-2.1-or-later
"""Odd arguments to every function of malloc's family, mmap's and operator new:
the same answers and the same errno, at any time, and nothing left behind.
"""
import pytest

from built import BUILD, PRELOAD
from conftest import ALLOCATORS, dump, execute, frame_functions, program

MODES = [pytest.param(None, id="sampled"), pytest.param(1, id="exact")]
ALL_NEWS = b"++++++00++++++00\n"
# That the C++ runtime throws inside of a nothrow operator that fails.
EXCEPTIONS = {"glibc": 4}
UNSERVED = 4  # the last ones of odd_calls_early
EARLY_ERRNO = b"77"  # of odd_calls: as it was


def live_of(path, function):
    """{space: blocks} that are live where that function was."""
    live = {}
    for site in dump(path)["sites"]:
        if function in frame_functions(site):
            live[site["space"]] = (live.get(site["space"], 0)
                                   + site["live_count"])
    return live


@pytest.mark.parametrize("sample", MODES)
@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("seep_first", [True, False],
                         ids=["in_front", "behind"])
def test_odd_arguments_have_the_same_answers(folder, allocator, sample,
                                             seep_first):
    case = "glibc" if allocator == "glibc" else "all"
    words = [program("odd_calls"), case]
    plain = execute(words, allocator=allocator)
    run = execute(words, folder, sample=sample, allocator=allocator,
                  seep_first=seep_first)
    assert plain.status == 0
    assert run.seen == plain.seen


def test_what_is_refused_is_counted_and_what_is_given_back_is_not_held(folder):
    run = execute([program("odd_calls"), "glibc"], folder, sample=1)
    path, = run.recordings
    live = live_of(path, "odd_calls_maps")
    assert live == {"mapped": 0}
    assert live_of(path, "odd_calls_all").get("heap") == 0
    assert dump(path)["losses"] == {}


@pytest.mark.parametrize("sample", MODES)
def test_a_library_may_call_before_we_are_relocated(folder, sample):
    """errno cannot be reached from here then, and a few things are refused
    that need the loader or more than a few MiB; all else is the same."""
    words = [program("odd_calls_early")]
    plain = execute(words)
    run = execute(words, folder, sample=sample)
    assert (run.status, run.stderr) == (0, b"")
    plain_lines = [line.split() for line in plain.stdout.splitlines()]
    lines = [line.split() for line in run.stdout.splitlines()]
    assert len(lines) > 50
    answers = [line[1] for line in plain_lines[:-UNSERVED]]
    assert [line[1] for line in lines] == answers + [b"0"] * UNSERVED
    for line, expected in zip(lines, plain_lines):
        assert line[2] in (expected[2], EARLY_ERRNO)


@pytest.mark.parametrize("sample", MODES)
@pytest.mark.parametrize("name", ["odd_news", "odd_news_early"])
def test_operator_new_is_served_where_nobody_has_it(folder, name, sample):
    """By malloc: a program may look for it by name."""
    assert execute([program(name)]).seen == (0, b"\n", b"")
    run = execute([program(name)], folder, sample=sample)
    assert run.seen == (0, ALL_NEWS, b"")
    if sample == 1 and name == "odd_news":
        path, = run.recordings
        assert live_of(path, "odd_news_site") == {"heap": 0}


@pytest.mark.parametrize("sample", MODES)
def test_a_runtime_that_comes_later_has_the_operators(folder, sample):
    """Each is looked for at its first call, in a library of nobody else's."""
    argv = [program("odd_news"), "libstdc++.so.6"]
    plain = execute(argv)
    if plain.status == 77:
        pytest.skip("no C++ runtime")
    assert plain.seen == (0, b"\n", b"")
    run = execute(argv, folder, sample=sample)
    assert run.seen == (0, ALL_NEWS, b"")
    if sample == 1:
        path, = run.recordings
        # What the runtime keeps of a thread that throws is made there.
        assert live_of(path, "odd_news_site")["heap"] <= 1


@pytest.mark.parametrize("sample", MODES)
@pytest.mark.parametrize("name", ["news_alone", "new_alone"])
def test_an_allocator_may_have_some_operators_and_lack_others(folder, name,
                                                              sample):
    run = execute([program("odd_news")], folder, sample=sample,
                  LD_PRELOAD=f"{PRELOAD}:{program(name + '.so')}")
    assert run.seen == (0, ALL_NEWS, b"")
    if sample == 1:
        path, = run.recordings
        assert live_of(path, "odd_news_site").get("heap", 0) == 0


@pytest.mark.parametrize("sample", MODES)
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_operator_new_and_delete_is_one_event(folder, allocator, sample):
    if not (BUILD / "tests/integration/programs/odd_news_cxx").exists():
        pytest.skip("no C++ compiler")
    words = [program("odd_news_cxx")]
    plain = execute(words, allocator=allocator)
    assert plain.seen == (0, ALL_NEWS, b"")
    run = execute(words, folder, sample=sample, allocator=allocator)
    assert run.seen == plain.seen
    if sample == 1:
        path, = run.recordings
        assert live_of(path, "odd_news_site") == {"heap": 0}
        assert sum(site["allocated_count"] for site in dump(path)["sites"]
                   if "odd_news_site" in frame_functions(site)) == (
                       12 + EXCEPTIONS.get(allocator, 0))


@pytest.mark.parametrize("sample", MODES)
@pytest.mark.parametrize("allocator", ["libc", "of_c23"])
def test_the_ends_of_c23_are_ends_wherever_they_are(folder, allocator, sample):
    """And blocks of before we were relocated have any end, each once."""
    assert execute([program("odd_frees")]).seen == (0, b"4 -1\n", b"")
    libraries = [PRELOAD]
    if allocator == "of_c23":
        libraries.append(program("odd_frees_allocator.so"))
    run = execute([program("odd_frees")], folder, sample=sample,
                  LD_PRELOAD=":".join(str(path) for path in libraries))
    # The allocator is asked for its own blocks alone: none of the library's.
    called = b"4 -1\n" if allocator == "libc" else b"4 20\n"
    assert run.seen == (0, called, b"")
    if sample == 1:
        path, = run.recordings
        assert live_of(path, "odd_frees_site") == {"heap": 0}
        assert dump(path)["counters"]["dropped_frees"] == 0


@pytest.mark.parametrize("sample", MODES)
def test_any_call_may_be_a_programs_first(folder, sample):
    names = execute([program("odd_first")]).stdout.decode().split()
    assert len(names) > 20
    for name in names:
        plain = execute([program("odd_first"), name])
        run = execute([program("odd_first"), name], folder, sample=sample)
        assert run.seen == plain.seen, name
        assert run.stdout != b"" or (name, run.status) == ("exit", 3)


def test_a_library_may_end_the_process_before_we_are_relocated(folder):
    assert execute([program("exit_early")]).seen == (5, b"", b"")
    run = execute([program("exit_early")], folder, sample=1)
    assert run.seen == (5, b"", b"")
    assert run.recordings == []
