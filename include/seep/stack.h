/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The vocabulary of stacks, shared by who captures them and who records or
 * reads them. The values are part of the format.
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

/** Python frames in a process: X(SYMBOL, value, "words for the report"). */
#define SEEP_PYTHON_STATES(X)                                      \
    X(NONE, 0, "no Python")                                        \
    X(ON, 1, "on")                                                 \
    X(PROBATION, 2, "on, still being checked")                     \
    X(OLD, 3, "off: Python before 3.8")                            \
    X(NEW, 4, "off: this Python is too new")                       \
    X(UNFINISHED, 5, "off: Python from before its release")        \
    X(FREE_THREADED, 6, "off: free-threaded build of Python")      \
    X(DEBUG, 7, "off: debug build of Python")                      \
    X(SYMBOLS, 8, "off: symbols of Python are missing")            \
    X(OFFSETS, 9, "off: _Py_DebugOffsets is not as expected")      \
    X(TYPES, 10, "off: Python's types are not as expected")        \
    X(MEMORY, 11, "off: memory cannot be read safely")             \
    X(THREAD, 12, "off: thread states do not match their threads") \
    X(FRAME, 13, "off: a frame of Python was not as expected")     \
    X(CODE, 14, "off: a code object of Python was not as expected")

enum seep_python_state {
#define SEEP_PYTHON_VALUE(symbol, value, words) SEEP_PYTHON_##symbol = (value),
    SEEP_PYTHON_STATES(SEEP_PYTHON_VALUE)
#undef SEEP_PYTHON_VALUE
        SEEP_PYTHON_STATE_COUNT = 15
};

/** Are Python's own objects recorded: X(SYMBOL, value, "words"). */
#define SEEP_PYTHON_OBJECTS(X)                                          \
    X(OFF, 0, "not recorded: SEEP_PYTHON=objects was not given")        \
    X(ON, 1, "recorded")                                                \
    X(ABSENT, 2, "not recorded: Python was not there at the start")     \
    X(UNKNOWN, 3, "not recorded: this Python's allocators are unknown") \
    X(REPLACED, 4, "not recorded: the program set other allocators")

enum seep_python_objects {
#define SEEP_PYTHON_OBJECTS_VALUE(symbol, value, words) \
    SEEP_PYTHON_OBJECTS_##symbol = (value),
    SEEP_PYTHON_OBJECTS(SEEP_PYTHON_OBJECTS_VALUE)
#undef SEEP_PYTHON_OBJECTS_VALUE
        SEEP_PYTHON_OBJECTS_COUNT = 5
};

enum seep_unwinder { SEEP_UNWINDER_EH_FRAME = 0, SEEP_UNWINDER_LIBUNWIND = 1 };

#endif
