# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the build is: SEEP_BUILD, SEEP and SEEP_PRELOAD (meson sets them)."""
import os
import pathlib

BUILD = pathlib.Path(os.environ.get("SEEP_BUILD", "build"))
PRELOAD = pathlib.Path(
    os.environ.get("SEEP_PRELOAD", BUILD / "src/preload/libseep.so"))
SEEP = pathlib.Path(os.environ.get("SEEP", BUILD / "tools/seep/seep"))
