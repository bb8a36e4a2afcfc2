/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Every SEEP_ variable that means something to some part of seep. One that is
 * not here was meant to be another, and is told.
 */
#ifndef SEEP_BASE_VARIABLES_H
#define SEEP_BASE_VARIABLES_H

/** X("NAME"): read by the recorder in the target process. */
#define SEEP_VARIABLES(X) \
    X("SEEP_BUDGET")      \
    X("SEEP_COMMAND_PID") \
    X("SEEP_CUDA")        \
    X("SEEP_FILTER")      \
    X("SEEP_FLOOR")       \
    X("SEEP_KEEP")        \
    X("SEEP_LABELS")      \
    X("SEEP_OUT")         \
    X("SEEP_OUT_ANY")     \
    X("SEEP_PYTHON")      \
    X("SEEP_SAMPLE")      \
    X("SEEP_SIZE")        \
    X("SEEP_SKIP")        \
    X("SEEP_STACKS")      \
    X("SEEP_UNWINDER")    \
    X("SEEP_VERBOSE")

/** X("NAME"): read by the command, or by those who build and test seep. */
#define SEEP_VARIABLES_OF_OTHERS(X) \
    X("SEEP_BUILD")                 \
    X("SEEP_CUDA_TOOLKIT")          \
    X("SEEP_PATTERNS")              \
    X("SEEP_PRELOAD")               \
    X("SEEP_SOURCE")                \
    X("SEEP_SUPPRESSIONS")

/** X("PREFIX"): of tests. */
#define SEEP_VARIABLE_PREFIXES(X) \
    X("SEEP_FAKE_")               \
    X("SEEP_ORACLE_")             \
    X("SEEP_PYTEST_")             \
    X("SEEP_TEST_")

/** X("PART"): Kubernetes tells a pod of its services, and one may be called
 * seep: SEEP_PORT_9100_TCP, SEEP_METRICS_SERVICE_HOST. */
#define SEEP_VARIABLE_PARTS(X) \
    X("_PORT")                 \
    X("_SERVICE_")

#endif
