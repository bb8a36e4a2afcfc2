/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The variables that make a process record itself: from options of `run` and
 * `env` to SEEP_* and LD_PRELOAD.
 */
#ifndef SEEP_TOOL_LAUNCH_H
#define SEEP_TOOL_LAUNCH_H

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#define SEEP_LAUNCH_PATTERN "seep.%e.%p.%t.seep"

/** Options of getopt_long that `run` and `env` share. */
enum seep_launch_option {
    SEEP_LAUNCH_OUT = 'o',
    SEEP_LAUNCH_EXACT = 512,
    SEEP_LAUNCH_SAMPLE,
    SEEP_LAUNCH_SIZE,
    SEEP_LAUNCH_ALLOCATOR,
    SEEP_LAUNCH_UNWINDER,
    SEEP_LAUNCH_PYTHON,
    SEEP_LAUNCH_CUDA,
};

#define SEEP_LAUNCH_OPTIONS                                            \
    {"exact", no_argument, NULL, SEEP_LAUNCH_EXACT},                   \
        {"sample", required_argument, NULL, SEEP_LAUNCH_SAMPLE},       \
        {"size", required_argument, NULL, SEEP_LAUNCH_SIZE},           \
        {"allocator", required_argument, NULL, SEEP_LAUNCH_ALLOCATOR}, \
        {"unwinder", required_argument, NULL, SEEP_LAUNCH_UNWINDER},   \
        {"python", required_argument, NULL, SEEP_LAUNCH_PYTHON},       \
    {                                                                  \
        "cuda", required_argument, NULL, SEEP_LAUNCH_CUDA              \
    }

#define SEEP_LAUNCH_HELP                                                      \
    "  --exact           record every block (default: a sample)\n"            \
    "  --sample BYTES    mean bytes between samples (default 512KiB)\n"       \
    "  --size BYTES      size of a recording (default 16MiB, exact 256MiB)\n" \
    "  --allocator NAME  jemalloc, tcmalloc, mimalloc or none (default):\n"   \
    "                    what serves the memory below seep\n"                 \
    "  --unwinder NAME   eh_frame (default) or libunwind\n"                   \
    "  --python WHAT     objects (default), frames or off: Python's own\n"    \
    "                    objects and lines, lines only, or neither\n"         \
    "  --cuda WHAT       tensors (default), driver or off: what the driver\n" \
    "                    gives and what PyTorch makes of it, or no tensors\n"

struct seep_launch_options {
    const char *verb;
    const char *out;       /* pattern or folder; NULL: SEEP_OUT, or here */
    uint64_t sample_bytes; /* 0: as the environment says */
    uint64_t size_bytes;   /* 0: as the environment says */
    const char *allocator; /* NULL: none */
    const char *unwinder;  /* NULL: as the environment says */
    const char *python;    /* NULL: as the environment says, else objects */
    const char *cuda;      /* NULL: as the environment says, else tensors */
};

struct seep_launch_variable {
    const char *name;
    char *value;
};

#define SEEP_LAUNCH_VARIABLES_MAX 8
struct seep_launch {
    struct seep_launch_variable variables[SEEP_LAUNCH_VARIABLES_MAX];
    size_t count;
    char *out;     /* absolute pattern of the recordings */
    char *preload; /* what LD_PRELOAD must begin with */
};

/** Take one option. @return 0, or the exit code after saying what is wrong */
int seep_launch_take(int option, const char *value,
                     struct seep_launch_options *options);

/**
 * Find the libraries and make the values. LD_PRELOAD is not among the
 * variables: what stands in it already is not ours to judge.
 *
 * @return 0, or the exit code after saying what is wrong
 */
int seep_launch_prepare(const struct seep_launch_options *options,
                        struct seep_launch *ret_launch);
void seep_launch_close(struct seep_launch *launch);

/**
 * The absolute pattern of recordings for -o @given, or NULL: that of SEEP_OUT,
 * or the default. To be freed; NULL without memory or a current folder.
 */
char *seep_launch_out(const char *given);

/** Create the folders of the pattern up to its first placeholder. */
int seep_launch_make_folders(const struct seep_launch *launch);

/** Set all in this process's environment, LD_PRELOAD in front. */
int seep_launch_apply(const struct seep_launch *launch);

#endif
