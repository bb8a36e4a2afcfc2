#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# soak.sh FOLDER [ARGUMENT...]: soaks the model server and holds it against its
# limits. The recording and results go to FOLDER, ARGUMENTs to soak.py.
# Exit 0: limits kept. 3: one is broken. 4: not enough data. Others: soak.py's.
set -eu
folder=$1
shift
# The imports have more stacks than the soak itself: the user's line will do.
export SEEP_STACKS=short
exec "${SEEP:-seep}" run --exact --no-report -o "$folder/%e.%p.seep" \
    --check "--max-growth 1MiB/min --max-growth-per-unit 1KiB --cap 512MiB \
        --junit '$folder/soak.xml' --github" \
    -- "${PYTHON:-python3}" "$(dirname "$0")/soak.py" "$@"
