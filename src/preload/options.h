/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SEEP_* of the environment, read once by the constructor.
 *
 * Invariant: copied out of the environment, which the program may change. A
 * value that is none takes its default, and is kept as rejected: a profiler
 * must not stop a server, nor say nothing. SEEP_FLOOR goes to base/place.
 */
#ifndef SEEP_PRELOAD_OPTIONS_H
#define SEEP_PRELOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/keep.h"
#include "record/region.h"
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
    char rejected[512];        /* see seep_rec_header.rejected_options */
    bool pattern_given;
    bool skipped;         /* this executable is one of SEEP_SKIP */
    bool any_filesystem;  /* SEEP_OUT_ANY=1 */
    bool short_stacks;    /* SEEP_STACKS=short */
    bool verbose;         /* SEEP_VERBOSE=1 */
    bool name_cut;        /* SEEP_OUT is too long: as .skipped */
    unsigned sample_log2; /* SEEP_SAMPLE; 0: exact */
    bool paced;           /* it was not given: denser while it costs little */
    uint32_t budget;      /* SEEP_BUDGET, of 100,000; 0: not given */
    uint64_t size_bytes;  /* SEEP_SIZE */
    bool size_given;
    struct seep_place_keep keep;     /* SEEP_KEEP */
    enum seep_region_role role;      /* SEEP_COMMAND_PID */
    enum seep_unwinder unwinder;     /* SEEP_UNWINDER */
    enum seep_options_python python; /* SEEP_PYTHON */
    enum seep_options_cuda cuda;     /* SEEP_CUDA */
};

extern struct seep_options seep_options __attribute__((visibility("hidden")));

/** The value of a variable in @environment; NULL if it is not there. */
const char *seep_options_find(char *const *environment, const char *name);

/** Read @environment for the program @base_name. */
void seep_options_read(char *const *environment, const char *base_name);

#endif
