# SPDX-License-Identifier: LGPL-2.1-or-later
"""The runner of the stories, where no library is installed.

One story that needs none is recorded; what its demands say of reports that
are wrong is shown by such reports.
"""
import json

import run
import server_hour
import stories

MIB = 1 << 20


def seen(said, name, growth=10 * MIB, live=100 * MIB, frames=()):
    """A report with one row."""
    site = {"where": f"program.py:7 {name}", "live_bytes": live,
            "pattern": None, "frames": [{"function": word}
                                        for word in frames]}
    verdict = {"class": said, "growth_bytes_per_s": growth and {
        "low": 0.9 * growth, "estimate": growth, "high": 1.1 * growth}}
    return stories.Seen(
        {"kept_bytes": 200 * MIB, "work_s": 20},
        [{"verdict": verdict, "sites": [site], "memory": {"anonymous": {
            "first_bytes": 0, "last_bytes": 10 * MIB}},
          "process": {"duration_s": 60}}],
        f"{said.upper()} at {name}\nseep: python program.py, which keeps\n\n")


def test_a_leak_must_be_called_by_its_line_and_at_its_rate():
    demand = stories.called("keep")
    assert demand(seen("leak", "keep")) is None
    assert demand(seen("steady", "keep")) == "steady, and it leaks"
    assert "named" in demand(seen("leak", "module"))  # the arguments say it
    assert stories.at_its_rate(seen("leak", "keep")) is None
    assert "it is 10.0" in stories.at_its_rate(seen("leak", "keep", 2 * MIB))
    assert stories.at_its_rate(seen("leak", "keep", None)) == "no rate"


def test_what_is_unexplained_is_right_if_its_library_is_named():
    demand = stories.called("make_one", library="libarrow")
    assert demand(seen("unexplained", "libarrow's own memory")) is None
    assert demand(seen("unexplained", "libarrow.so")) is not None
    assert demand(seen("unexplained", "0x7f00")) is not None
    assert stories.called("keep")(seen("unexplained", "keep")) is not None


def test_a_cache_is_no_leak_and_is_where_the_most_is_held():
    assert stories.no_leak(seen("bounded", "encode")) is None
    assert stories.no_leak(seen("leak", "encode")) is not None
    demand = stories.holder("encode", "dnnl", 50 * MIB)
    assert demand(seen("bounded", "encode", frames=["dnnl::run"])) is None
    assert "dnnl" in demand(seen("bounded", "encode"))
    assert "0 MiB" in demand(seen("bounded", "<module>"))
    assert "grows" in stories.no_faster_than_memory(seen("leak", "encode"))


def test_of_many_processes_the_one_that_leaks_is_told_and_no_other():
    def two(first, second):
        both = seen(first, "keep")
        both.processes += seen(second, "keep").processes
        for pid, process in enumerate(both.processes):
            process["process"]["pid"] = pid
        both.truth["pid"] = 0
        return both

    demand = stories.it_alone("at keep")
    assert demand(two("leak", "insufficient-data")) is None
    assert "pid 1 is told" in demand(two("leak", "unexplained"))
    assert "pid 1 is told" in demand(two("steady", "leak"))
    assert demand(two("steady", "steady")) == "pid 0 is not told"
    tools = two("leak", "steady")
    tools.families = [{"name": "tool", "class": "leak", "pids": [1, 2]}]
    assert "tool is told" in demand(tools)
    tools.families[0]["pids"] = [0]
    assert demand(tools) is None
    assert "lacks ray::" in stories.it_alone("ray::")(two("leak", "steady"))


def test_another_may_have_free_memory_that_truly_grows():
    def one(rise, growth=MIB / 60):
        both = seen("leak", "keep")
        both.processes += seen("fragmentation", "keep", growth).processes
        for pid, process in enumerate(both.processes):
            process["process"]["pid"] = pid
            process["timeline"] = {"moments": [
                {"t_s": t, "private_bytes": 100 * MIB + rise * t}
                for t in range(60)]}
        both.truth["pid"] = 0
        both.families = [{"name": "other", "class": "fragmentation",
                          "pids": [1]}]
        return stories.it_alone("at keep")(both)

    assert one(MIB / 60) is None
    assert "pid 1 is told to be fragmentation" in one(0)
    assert one(0, growth=None) is None


def test_servers_answer_complain_and_end_as_they_do_without_seep():
    with_us = seen("leak", "keep")
    with_us.truth |= {"failed": 0, "status": 0, "complaints": ["no GPU"]}
    with_us.plain = dict(with_us.truth)
    assert stories.unharmed(with_us) is None
    with_us.truth["failed"] = 1
    assert stories.unharmed(with_us) == "1 requests failed"
    with_us.truth |= {"failed": 0, "complaints": ["no GPU", "no stub"]}
    assert "no stub" in stories.unharmed(with_us)
    with_us.truth |= {"complaints": ["no GPU"], "status": -11}
    assert stories.unharmed(with_us) == "status: -11, and 0 without seep"


def test_a_story_can_have_an_environment_of_its_own(tmp_path):
    apart = stories.Story("x", ["-"], "", [], apart="other", needs="sys")
    assert run.python_of(apart, tmp_path / "bin/python") == (
        tmp_path / "other/bin/python")
    assert run.lacks(apart, tmp_path / "bin/python") == "other"


def test_every_program_of_the_table_is_there():
    table = stories.STORIES + stories.GPU_STORIES
    for story in table:
        assert (run.HERE / "programs" / story.command[0]).is_file()
    assert len({story.name for story in table}) == len(table)


def test_a_row_that_is_wrong_is_told_by_the_exit_status(
        tmp_path, monkeypatch, capsys):
    def rows(line, *more):
        monkeypatch.setattr(stories, "STORIES", [
            stories.Story("over-limit", ["over_limit.py", "--limit",
                                         str(200 * MIB), "--rate",
                                         str(5 * MIB // 2)],
                          "kept until it dies", [stories.called(line)]),
            stories.Story("not-here", ["-"], "", [], needs="no_such_module")])
        return run.main(["--python", "/usr/bin/python3", "--modes",
                         "default", "--keep", str(tmp_path), *more])

    assert rows("keep_answer") == 0
    table = capsys.readouterr().out
    assert "| right |" in table and "not run: no no_such_module" in table
    assert rows("another_line", "--rejudge") == 1
    assert "| wrong: none of another_line" in capsys.readouterr().out


def turn(took_s, cpu_s=1):
    """Of as many requests, each of which took as long."""
    return {"took_s": took_s, "cpu_s": cpu_s}


def test_pairs_of_turns_are_drawn_together():
    plain = [turn([1, 1]), turn([4, 4])]
    seep = [turn([2, 2]), turn([8, 8])]
    assert server_hour.interval(server_hour.rate, plain, seep) == (0.5, 0.5)
    assert server_hour.at(0.99)(plain) == 4000
    assert server_hour.per_request(plain) == 500


def test_two_servers_are_asked_the_same_by_turns(tmp_path, capsys):
    assert server_hour.main([
        "--python", "/usr/bin/python3", "--model", "words", "--seconds", "1",
        "--turn", "0.2", "--keep", str(tmp_path)]) in (0, 1)
    both = json.loads((tmp_path / "turns.json").read_text("ascii"))
    counts = {name: [len(each["took_s"]) for each in turns]
              for name, turns in both.items()}
    assert counts["plain"] == counts["under seep"] != []
    said = capsys.readouterr().out
    assert "| requests a second |" in said and "| p99.9, ms |" in said
    assert "seep says: " in said and "LEAK" not in said


def test_published_leaks_are_run_by_their_name_alone():
    assert not [story for story in run.wanted("")
                if story in stories.PUBLISHED]
    assert run.wanted("published-") == stories.PUBLISHED
    leaks, mended = [story for story in stories.PUBLISHED
                     if story.name.startswith("published-ssl")]
    assert leaks.command == mended.command
    assert leaks.apart != mended.apart


def test_an_environment_that_cannot_be_made_is_told(tmp_path):
    story = stories.Story("x", [], "", [], pins=("3.999",), apart="x")
    assert run.lacks(story, tmp_path / "bin/python") == "python3.999"
