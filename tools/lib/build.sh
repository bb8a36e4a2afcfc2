# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Configures and compiles the builds of tools/test, which exports what it
# needs: GPU_TOOLKIT, packages, the name of a sorted list, and patience.
#
# Invariant: a build that fails leaves FOLDER.json.log, the log of one failed
# test; one that succeeds leaves FOLDER/meson-logs/build.log.

# clang's compiler warnings are errors in build-asan; that its optimised code
# does the same is asked with --long alone.
others=(build-asan build-tsan)
[ -z "${SEEP_TEST_LONG:-}" ] || others=(build-clang "${others[@]}")

# The sanitizers replace malloc, as the preload does: these builds hold what
# runs outside of other processes. See meson.build. At -Og they compile in a
# quarter of the time of -O2, and no access is optimised away unseen.
configure() {
    local folder=$1 unsized
    # Frames and loops are not what the optimised build makes of them.
    unsized='-Wno-error=frame-larger-than -Wno-error=pass-failed'
    shift
    case $folder in
    build) set -- "$@" --werror -Dtests=enabled -Dlibunwind=enabled ;;
    build-clang) set -- "$@" --werror -Dtests=enabled ;;
    build-asan)
        set -- "$@" --werror -Db_sanitize=address,undefined \
            -Dc_args="-fsanitize=fuzzer-no-link $unsized"
        ;;
    build-tsan) set -- "$@" -Db_sanitize=thread ;;
    esac
    case $folder in
    build-asan | build-tsan) set -- "$@" -Db_lundef=false -Doptimization=g ;;
    esac
    # gcc has no fuzzer.
    if [ "$folder" = build-clang ] || [ "$folder" = build-asan ]; then
        CC=clang meson setup "$folder" "-Dgpu_toolkit=$GPU_TOOLKIT" "$@"
    else
        meson setup "$folder" "-Dgpu_toolkit=$GPU_TOOLKIT" "$@"
    fi
}

# Once, and again where more packages are there than it has seen: what Meson
# did not find it would not look for again.
configure_once() {
    local folder=$1 known=$1/packages
    if [ ! -f "$folder/build.ninja" ]; then
        configure "$folder" || return 1
    elif [ -z "$(comm -13 "$known" "${packages:?}" 2>&1)" ]; then
        return 0
    else
        meson configure "$folder" --clearcache || return 1
        configure "$folder" --reconfigure || return 1
    fi
    cp "$packages" "$known"
}

fail_build() {
    tail -n 40 "$1.log"
    printf '{"name": "build %s", "result": "FAIL"}\n' "$1" >"$1.json.log"
    return 1
}

# compile FOLDER TARGET...: all, where none is named.
compile() {
    local folder=$1
    shift
    if ! ninja -C "$folder" "$@" >>"$folder.log" 2>&1; then
        fail_build "$folder"
        return
    fi
    mv "$folder.log" "$folder/meson-logs/build.log"
}

prepare() {
    rm -f "$1.json.log" "$1/meson-logs/build.log"
    configure_once "$1" >"$1.log" 2>&1 || fail_build "$1"
}

# threaded WORD: the unit tests that start threads, which the programs of the
# main build tell. Where one thread runs, ThreadSanitizer has nothing to find.
threaded() {
    comm -12 <(python3 tools/lib/results.py threaded build | sort) \
        <(python3 tools/lib/results.py match build-tsan testlog "$1" unit |
            sort)
}

# run_units FOLDER ARGUMENT...: its unit tests, with what meson test takes.
run_units() {
    local folder=$1 asked=()
    shift
    if [ "$folder" = build-tsan ]; then
        mapfile -t asked < <(threaded '')
    fi
    rm -f "$folder/meson-logs/testlog.json"
    TSAN_OPTIONS=halt_on_error=1 meson test -C "$folder" --no-rebuild \
        --print-errorlogs --suite unit "$@" ${asked[@]+"${asked[@]}"} || true
}

# All others, one after the other, and their tests, in what else runs leaves of
# the processors: their own session, since a session is what the kernel is fair
# to. Such a test may get little: it has time.
build_others() {
    local folder targets
    { echo 19 >/proc/self/autogroup; } 2>/dev/null || true
    for folder in "${others[@]}"; do
        prepare "$folder" || continue
        targets=()
        if [ "$folder" = build-tsan ]; then
            mapfile -t targets < <(threaded '' |
                python3 tools/lib/results.py targets "$folder")
        fi
        ! compile "$folder" ${targets[@]+"${targets[@]}"} ||
            run_units "$folder" --num-processes 2 \
                --timeout-multiplier "$((10 * ${patience:?}))" >"$folder.units"
    done
}
