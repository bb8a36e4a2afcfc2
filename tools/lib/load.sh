# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Busy loops beside the tests.
#
# Invariant: none outlives the shell that started it, however that one ends.

loops=()

# start_load COUNT: each of them looks whether this shell is still there.
start_load() {
    local i
    for ((i = 0; i < $1; i++)); do
        bash -c 'while kill -0 "$1" 2>/dev/null; do
                for ((i = 0; i < 50000; i++)); do :; done
            done' loop "$$" >/dev/null 2>&1 &
        loops+=("$!")
    done
}

end_load() {
    [ "${#loops[@]}" -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true
    loops=()
}
