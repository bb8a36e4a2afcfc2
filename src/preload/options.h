/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SEEP_* of the environment, read once by the constructor.
 *
 * Invariant: copied out of the environment, which the program may change. A
 * value that is none takes its default: a profiler must not stop a server.
 */
#ifndef SEEP_PRELOAD_OPTIONS_H
#define SEEP_PRELOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "seep/stack.h"

/** How much of Python is looked at. */
enum seep_options_python {
    SEEP_OPTIONS_PYTHON_OFF,     /* native frames only */
    SEEP_OPTIONS_PYTHON_FRAMES,  /* and Python's */
    SEEP_OPTIONS_PYTHON_OBJECTS, /* and its own objects are recorded */
};

/** How much of CUDA is recorded. */
enum seep_options_cuda {
    SEEP_OPTIONS_CUDA_OFF,
    SEEP_OPTIONS_CUDA_DRIVER,  /* what the driver gives */
    SEEP_OPTIONS_CUDA_TENSORS, /* and what PyTorch makes of it */
};

struct seep_options {
    char pattern[1024];        /* SEEP_OUT */
    char fallback_folder[512]; /* TMPDIR, or /tmp */
    char labels[512];          /* SEEP_LABELS */
    bool pattern_given;
    bool skipped;                    /* this executable is one of SEEP_SKIP */
    bool any_filesystem;             /* SEEP_OUT_ANY=1 */
    bool short_stacks;               /* SEEP_STACKS=short */
    unsigned sample_log2;            /* SEEP_SAMPLE; 0: exact */
    uint64_t size_bytes;             /* SEEP_SIZE */
    enum seep_unwinder unwinder;     /* SEEP_UNWINDER */
    enum seep_options_python python; /* SEEP_PYTHON */
    enum seep_options_cuda cuda;     /* SEEP_CUDA */
};

extern struct seep_options seep_options __attribute__((visibility("hidden")));

/** Read @environment for the program @base_name. */
void seep_options_read(char *const *environment, const char *base_name);

#endif
