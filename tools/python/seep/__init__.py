# SPDX-License-Identifier: LGPL-2.1-or-later
"""For programs that seep may record: say what you are at, ask how you are.

    import seep

    with seep.phase("warm-up"):
        model = load()
    seep.label("model", "bert-13")
    application = seep.WSGIMiddleware(application)  # a unit a request
    print(seep.stats())

Invariant: without the preload, or without ctypes, everything here does
nothing, and says so only by stats() being None. Nothing raises that would not
have been raised without us.
"""
from ._calls import Stats, label, mark, progress, recorded, stats
from ._phase import phase
from ._web import ASGIMiddleware, WSGIMiddleware

__all__ = ["ASGIMiddleware", "Stats", "WSGIMiddleware", "label", "mark",
           "phase", "progress", "recorded", "stats"]
