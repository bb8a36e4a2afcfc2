# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a program takes from the break, and segments that it attaches, are
recorded as mapped, and answered as without us."""
import pytest

from conftest import dump, execute, program

KEPT = {"keep_of_the_break": 25 * 65536,
        # of whole pages; what is attached to be read is another's
        "keep_segment": 7 * (300000 // 4096 + 1) * 4096}
GONE = {"keep_of_the_break": 15 * 65536,
        "keep_segment": 5 * (300000 // 4096 + 1) * 4096}


@pytest.mark.parametrize("sample", [1, 4096])
def test_what_is_kept_of_the_break_and_of_segments_is_live(folder, sample):
    plain = execute([program("segments")])
    run = execute([program("segments")], folder, sample=sample)

    assert plain.status == 0
    assert run.seen == plain.seen
    path, = run.recordings
    document = dump(path)
    for function, live_bytes in KEPT.items():
        sites = [site for site in document["sites"]
                 if site["space"] == "mapped" and function in site["frames"]]
        assert [site["live_bytes"] for site in sites] == [live_bytes]
        assert [site["freed_bytes"] for site in sites] == [GONE[function]]
