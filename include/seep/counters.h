/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The counters of a recording, in the order in which COUNTERS has them.
 */
#ifndef SEEP_COUNTERS_H
#define SEEP_COUNTERS_H

#include "seep/stack.h"

/**
 * Every counter of the recording: X(SYMBOL, "name in JSON", kind, words).
 * kind LOSS: not 0 means that a figure is less exact than it looks, and the
 * report says so. kind FACT: how much of something there was. kind COST: what
 * we took.
 */
#define SEEP_COUNTERS(X)                                                      \
    X(DROPPED_ALLOCS, "dropped_allocs", LOSS,                                 \
      "allocations not recorded because a ring was full")                     \
    X(DROPPED_FREES, "dropped_frees", LOSS,                                   \
      "frees not recorded because a ring was full")                           \
    X(NESTED, "nested", LOSS,                                                 \
      "calls not recorded because they came from a signal handler inside "    \
      "seep")                                                                 \
    X(TORN, "torn", LOSS, "events left half written by an abandoned thread")  \
    X(LOST_FREES_CLOSED, "lost_frees_closed", LOSS,                           \
      "blocks closed late because their free was not seen")                   \
    X(LIVE_FULL, "live_full", LOSS,                                           \
      "blocks not tracked because the live table was full")                   \
    X(SITES_FULL, "sites_full", LOSS,                                         \
      "events charged to no call site because the site table was full")       \
    X(STACKS_FULL, "stacks_full", LOSS,                                       \
      "call sites without frames because the stack depot was full")           \
    X(STACKS_SHORT, "stacks_short", LOSS,                                     \
      "call sites told apart by a part of their frames only: the table was "  \
      "filling up")                                                           \
    X(SERIES_FULL, "series_full", LOSS,                                       \
      "call sites without a time series because there was no room for more")  \
    X(MODULES_FULL, "modules_full", LOSS,                                     \
      "frames without a module because the module table was full")            \
    X(CODES_FULL, "codes_full", LOSS,                                         \
      "Python frames without a name because their table was full, or "        \
      "because Python was ending")                                            \
    X(PYTHON_BUSY, "python_busy", LOSS,                                       \
      "stacks without Python frames because too many were taken at once")     \
    X(STRINGS_FULL, "strings_full", LOSS,                                     \
      "names cut because the string section was full")                        \
    X(ROOM_REFUSED, "room_refused", LOSS,                                     \
      "times the disk had no room for the recording to grow")                 \
    X(RESTORE_LOST, "restore_lost", LOSS,                                     \
      "failed reallocs whose block could not be put back")                    \
    X(FILTER_SATURATED, "filter_saturated", FACT,                             \
      "filter cells that stay set for good")                                  \
    X(START_MISSED, "start_missed", LOSS,                                     \
      "events of other threads while the recording was being created")        \
    X(CLOCK_SATURATED, "clock_saturated", LOSS,                               \
      "events after the end of the time grid")                                \
    X(ABANDONED, "abandoned", FACT,                                           \
      "hooks left by a jump out of a signal handler")                         \
    X(FOREIGN_FREES, "foreign_frees", FACT,                                   \
      "frees of blocks that were not recorded")                               \
    X(THINNINGS, "thinnings", FACT, "times the mean interval was doubled")    \
    X(THINNED_BLOCKS, "thinned_blocks", FACT, "blocks dropped by thinning")   \
    X(FILE_MAPS, "file_maps", FACT, "file mappings seen")                     \
    X(FILE_MAP_BYTES, "file_map_bytes", FACT, "bytes of file mappings seen")  \
    X(ALLOCATOR_MAPS, "allocator_maps", FACT,                                 \
      "mappings of the allocator's own, and the CUDA driver's")               \
    X(ALLOCATOR_MAP_BYTES, "allocator_map_bytes", FACT,                       \
      "bytes of the allocator's own mappings, and of the driver's")           \
    X(UNLOADS, "unloads", FACT, "calls of dlclose")                           \
    X(RESTRICTED, "restricted", FACT,                                         \
      "the process restricted its system calls: no more process samples")     \
    X(ALLOCATOR_ASKED, "allocator_asked", FACT,                               \
      "times the allocator was asked for its own figures")                    \
    X(ALLOCATOR_GIVEN_UP, "allocator_given_up", FACT,                         \
      "the allocator is no longer queried: slow, or not safe to query")       \
    X(CUDA_LOOKUPS, "cuda_lookups", FACT,                                     \
      "look-ups of names of the CUDA driver")                                 \
    X(CUDA_WRAPPED, "cuda_wrapped", FACT, "of these, answered with a hook")   \
    X(CUDA_UNKNOWN_VARIANT, "cuda_unknown_variant", LOSS,                     \
      "look-ups of functions of the driver that are not recorded")            \
    X(CUDA_OTHER_DRIVER, "cuda_other_driver", LOSS,                           \
      "look-ups in a second CUDA driver: not recorded")                       \
    X(RANGES_FULL, "ranges_full", LOSS,                                       \
      "mappings not tracked because their table was full")                    \
    X(CUDA_DEEP_MISSED, "cuda_deep_missed", LOSS,                             \
      "objects with RTLD_DEEPBIND, which look past seep: not recorded")       \
    X(CUDA_FULL, "cuda_full", LOSS,                                           \
      "device allocations not recorded because their table was full")         \
    X(CUDA_UNKNOWN, "cuda_unknown", FACT,                                     \
      "frees of device memory that was not recorded")                         \
    X(CUDA_REPLACED, "cuda_replaced", LOSS,                                   \
      "device allocations closed late because their free was not seen")       \
    X(CUDA_BUSY, "cuda_busy", LOSS,                                           \
      "changes of device memory given up because of another thread")          \
    X(CUDA_SATURATED, "cuda_saturated", LOSS,                                 \
      "references to device memory beyond what can be counted")               \
    X(CUDA_NESTED, "cuda_nested", FACT, "calls of the driver by itself")      \
    X(CUDA_NEST_FULL, "cuda_nest_full", LOSS,                                 \
      "calls of the driver not recorded: too many threads in it")             \
    X(DEVICES_FULL, "devices_full", LOSS,                                     \
      "answers about devices for which there was no room")                    \
    X(MARKS_FULL, "marks_full", LOSS,                                         \
      "marks and labels not recorded because there was no room")              \
    X(IMPORT_SITES, "import_sites", FACT,                                     \
      "call sites of imports: line of the user's, module, innermost frames")  \
    X(STACKS_CAPTURED, "stacks_captured", FACT, "distinct stacks captured")   \
    X(FRAMES_CAPTURED, "frames_captured", FACT,                               \
      "frames of the distinct stacks")                                        \
    X(EVENTS, "events", COST, "events pushed")                                \
    X(FOLDS, "folds", COST, "batches folded")                                 \
    X(ROOM_STEPS, "room_steps", COST, "steps in which the recording grew")    \
    X(WAITS, "waits", COST, "times a full ring was waited for")               \
    X(WAIT_NS, "wait_ns", COST, "nanoseconds waited for full rings")          \
    X(WAIT_MAX_NS, "wait_max_ns", COST, "longest single wait in nanoseconds") \
    X(FIRST_EVENTS, "first_events", COST,                                     \
      "events at the beginning, each of which was measured")                  \
    X(FIRST_CYCLES, "first_cycles", COST, "cycles that these took")           \
    X(TIMED_EVENTS, "timed_events", COST, "events whose cost was measured")   \
    X(TIMED_CYCLES, "timed_cycles", COST,                                     \
      "cycles of the time stamp counter that the measured events took")

enum seep_counter_kind { SEEP_KIND_LOSS, SEEP_KIND_FACT, SEEP_KIND_COST };

enum seep_counter {
#define SEEP_COUNTER_VALUE(symbol, name, kind, words) SEEP_COUNT_##symbol,
    SEEP_COUNTERS(SEEP_COUNTER_VALUE)
#undef SEEP_COUNTER_VALUE
    /* one for each enum seep_cut: stacks that ended so */
    SEEP_COUNT_CUT_FIRST,
    SEEP_COUNT_CUT_LAST = SEEP_COUNT_CUT_FIRST + SEEP_CUT_COUNT - 1,
    SEEP_COUNTER_COUNT
};

#endif
