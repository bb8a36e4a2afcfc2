#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A CPython of a newer suite of Debian, unpacked into a folder with the libc that
# it needs. Nothing of the system changes: apt has lists and a state of its own.
# Prints where the interpreter is, for SEEP_TEST_PYTHONS. By hand only.
#
#     tools/lib/newer_python.sh VERSION FOLDER [SUITE]
#
# Needs Debian, the lists that `apt-get update` leaves, and patchelf (but 0.18,
# under which Python dies).

set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '/^#     tools/s/^# *//p' "$0" >&2
    exit 2
fi
version=$1
mkdir -p "$2"
root=$(realpath "$2")
suite=${3:-sid}
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

# From where this machine has its own packages.
# shellcheck disable=SC2016 # apt's own variable
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Component: main' | head -n 1)
[ -n "$archive" ] || { echo "no lists of Debian: apt-get update" >&2; exit 1; }

mkdir -p "$state"/{lists,archives}/partial "$state/parts"
touch "$state/status"
echo "deb $archive $suite main" > "$state/sources.list"
options=(-q -o "Dir::Etc::SourceList=$state/sources.list"
    -o "Dir::Etc::SourceParts=$state/parts" -o "Dir::State::Lists=$state/lists"
    -o "Dir::Cache=$state" -o "Dir::State::Status=$state/status"
    -o APT::Install-Recommends=false -o Debug::NoLocking=1)
apt-get "${options[@]}" update >&2
apt-get "${options[@]}" install -y --download-only \
    "python$version-minimal" "libpython$version-stdlib" \
    "libpython$version-dev" >&2
for package in "$state"/archives/*.deb; do
    dpkg -x "$package" "$root"
done

# It runs with the loader of that suite, and finds its libraries.
libraries=$(dirname "$(find "$root/usr/lib" -name libc.so.6 | head -n 1)")
loader=$(find "$libraries" -name 'ld-linux*' | head -n 1)
python=$root/usr/bin/python$version
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" \
    "$python"
"$python" -VV >&2
echo "$python"
