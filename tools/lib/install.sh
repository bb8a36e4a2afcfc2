# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Installs the Debian packages that a machine lacks. Sourced by demo and test.
#
# Invariant: where nothing is missing nothing is called but dpkg-query, so a
# second run costs milliseconds and needs neither root nor a network.

say() {
    printf '== %s\n' "$*"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# An argument is a package, or command:package where the command is enough.
missing_packages() {
    local need package
    for need in "$@"; do
        package=${need#*:}
        if [ "$package" != "$need" ] && command -v "${need%%:*}" >/dev/null; then
            continue
        fi
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
        ii*) ;;
        *) printf '%s\n' "$package" ;;
        esac
    done
}

# Debian starts a service when it installs one. We want the programs, not the
# services: a policy that says no stands while we install, if none does yet.
policy=/usr/sbin/policy-rc.d
forbid_services() {
    [ ! -e "$policy" ] || return 1
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
}

install_missing() {
    local missing
    if ! command -v dpkg-query >/dev/null; then
        say "no Debian here: these packages must be there already: $*"
        return
    fi
    missing=$(missing_packages "$@" | tr '\n' ' ')
    if [ -z "$missing" ]; then
        say 'installed: everything that is needed'
        return
    fi
    say "installing: $missing"
    # In a shell of its own, whose trap takes no place of the caller's.
    (
        if forbid_services; then
            trap 'as_root rm -f "$policy"' EXIT
        fi
        as_root apt-get update -q -o APT::Update::Error-Mode=any ||
            as_root apt-get update -q ||
            say 'some package lists could not be read; trying with what is there'
        # Word splitting is wanted: one word a package.
        # shellcheck disable=SC2086
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends $missing
    )
}

# fetch_wheel NAME==VERSION FOLDER: unpacked there, once. Fails quietly: what
# needs it is skipped.
fetch_wheel() {
    local name=${1%%==*} folder=$2
    [ ! -f "$folder/$name.fetched" ] || return 0
    say "fetching $1"
    mkdir -p "$folder"
    if python3 -m pip download -q --no-deps --disable-pip-version-check \
        -d "$folder" "$1" &&
        python3 -m zipfile -e "$folder/${name//-/_}"-*.whl "$folder"; then
        rm -f "$folder"/*.whl
        touch "$folder/$name.fetched"
        return 0
    fi
    say "not to be had: $1"
    return 1
}

# packages_for SCOPE WORD: what tools/lib/packages says that these tests need,
# one a line.
packages_for() {
    local scope=$1 word=$2 row needs
    while IFS='|' read -r row needs; do
        case $row in '#'*) continue ;; esac
        case $scope:${needs# } in
        *:) ;;
        quick:*'unit / '* | quick:*'lint / '*)
            [ "$needs" != ' lint / tidy' ] || continue
            ;;
        quick:*) continue ;;
        *) [[ -z $word || $needs == *"$word"* ]] || continue ;;
        esac
        # Word splitting is wanted: one a line.
        # shellcheck disable=SC2086
        printf '%s\n' $row
    done <tools/lib/packages
}
