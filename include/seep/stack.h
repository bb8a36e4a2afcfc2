/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The vocabulary of native stacks, shared by who captures them and who
 * records or reads them. The values are part of the format.
 */
#ifndef SEEP_STACK_H
#define SEEP_STACK_H

#define SEEP_STACK_FRAMES_MAX 128U

/** Why a native stack ends: X(SYMBOL, value, "words for the report"). */
#define SEEP_CUTS(X)                                                  \
    X(NONE, 0, "complete")                                            \
    X(DEPTH, 1, "deeper than the limit")                              \
    X(NO_OBJECT, 2, "code of no loaded object")                       \
    X(NO_RULE, 3, "code without unwind information")                  \
    X(EXPRESSION, 4, "unwind expression not supported")               \
    X(REGISTER, 5, "unwind rule needs a register that was not saved") \
    X(BOUNDS, 6, "frame outside the thread's stack")                  \
    X(ORDER, 7, "frames do not ascend")                               \
    X(MALFORMED, 8, "unwind information is malformed")                \
    X(DISABLED, 9, "unwinding not available")

enum seep_cut {
#define SEEP_CUT_VALUE(symbol, value, words) SEEP_CUT_##symbol = (value),
    SEEP_CUTS(SEEP_CUT_VALUE)
#undef SEEP_CUT_VALUE
        SEEP_CUT_COUNT = 10
};

enum seep_unwinder { SEEP_UNWINDER_EH_FRAME = 0, SEEP_UNWINDER_LIBUNWIND = 1 };

#endif
