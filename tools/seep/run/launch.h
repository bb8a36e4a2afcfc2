/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The variables that make a process record itself: from options of `run` and
 * `env` to SEEP_* and LD_PRELOAD.
 */
#ifndef SEEP_TOOL_RUN_LAUNCH_H
#define SEEP_TOOL_RUN_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/place.h"
#include "options/option.h"

#define SEEP_LAUNCH_PATTERN "seep.%e.%p.%t.seep"

struct seep_launch_options {
    const char *out;       /* pattern or folder; NULL: SEEP_OUT, or here */
    uint64_t sample_bytes; /* 0: as the environment says */
    const char *budget;    /* NULL: as the environment says */
    uint64_t size_bytes;   /* 0: as the environment says */
    const char *keep;      /* NULL: as the environment says */
    const char *floor;     /* NULL: as the environment says */
    const char *allocator; /* NULL: none */
    const char *unwinder;  /* NULL: as the environment says */
    const char *python;    /* NULL: as the environment says, else objects */
    const char *cuda;      /* NULL: as the environment says, else tensors */
};

struct seep_launch_variable {
    const char *name;
    char *value;
};

#define SEEP_LAUNCH_VARIABLES_MAX 11
struct seep_launch {
    struct seep_launch_variable variables[SEEP_LAUNCH_VARIABLES_MAX];
    size_t count;
    char *out;            /* absolute pattern of the recordings */
    size_t made_bytes;    /* of its first folder that was made; 0: none was */
    char *preload;        /* what LD_PRELOAD must begin with */
    bool short_of_memory; /* a variable is missing */
};

/** The options of `run` and `env` but -o, for struct seep_launch_options. */
extern const struct seep_option seep_launch_options[];

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

/** Where recordings would go, and whether one can be made there. */
struct seep_launch_trial {
    struct seep_place_found place;       /* of the nearest that exists */
    char missing[SEEP_PLACE_PATH_BYTES]; /* what was named; "": it exists */
    int error;        /* of making a file there, reserving and mapping it */
    const char *step; /* that failed: "be created", "be mapped" */
};

/** Try it for @out, an absolute pattern. Leaves no file. */
void seep_launch_try(const char *out, uint64_t file_limit_bytes,
                     struct seep_launch_trial *ret_trial);

/** "@front:@back" for LD_PRELOAD, @front alone if there is no other; to be
 * freed, NULL without memory. */
char *seep_launch_join(const char *front, const char *back);

/** Create the folders of the pattern up to its first placeholder. */
int seep_launch_make_folders(struct seep_launch *launch);

/** Remove those that were made, as far as nothing is in them. */
void seep_launch_drop_folders(const struct seep_launch *launch);

/** Set all in this process's environment, LD_PRELOAD in front. */
int seep_launch_apply(const struct seep_launch *launch);

/*
 * What an inherited seccomp filter kills for: a set as in base/syscall.h.
 */

/** The names of a set: "linkat, madvise". */
void seep_launch_name_calls(uint64_t denied, char *text, size_t size);

/** Try, and hand it over to what is started, in SEEP_FILTER; this process makes
 * none of the set from here on by base/syscall.h. */
int seep_launch_put_filter(uint64_t *ret_denied);

/*
 * Where files lie that seep is installed with. Errors: 0 or negative errno;
 * ret_* untouched on failure. Paths are to be freed.
 */

/**
 * libseep.so: $SEEP_PRELOAD, else beside this program's own installation or
 * build, else where it was configured to be installed.
 *
 * @return -ENOENT; -EINVAL if its path cannot stand in LD_PRELOAD
 */
int seep_launch_find_preload(char **ret_path);

/**
 * patterns.json: $SEEP_PATTERNS, else as above. A file that the variable names
 * is returned whether it can be read or not: who opens it says so.
 *
 * @return -ENOENT: there is none; a report goes on without
 */
int seep_launch_find_patterns(char **ret_path);

#endif
