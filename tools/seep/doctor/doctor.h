/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What works here and what does not: facts are taken first, by trials and by
 * looking; then each check judges them, and says one line, or more.
 *
 * Invariant: a check starts nothing and changes nothing; what it knows is in
 * the facts and in files below .root.
 */
#ifndef SEEP_TOOL_DOCTOR_DOCTOR_H
#define SEEP_TOOL_DOCTOR_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/own.h"
#include "run/launch.h"
#include "seep/recording.h"
#include "text/page.h"

/** In the order in which they are reported. */
#define SEEP_DOCTOR_CHECKS(X) \
    X(command)                \
    X(recording)              \
    X(glibc)                  \
    X(folder)                 \
    X(rotation)               \
    X(variables)              \
    X(limits)                 \
    X(container)              \
    X(security)               \
    X(holders)                \
    X(allocator)              \
    X(unwinder)               \
    X(python)                 \
    X(cuda)                   \
    X(torch)                  \
    X(symbols)

enum seep_doctor_level {
    SEEP_DOCTOR_OK,
    SEEP_DOCTOR_ABSENT, /* not here, and nothing is lost by it */
    SEEP_DOCTOR_WARN,   /* a limit: something is seen less well */
    SEEP_DOCTOR_NO,     /* essential: nothing would be recorded */
};

/** A program that was run under libseep.so for a short time. */
struct seep_doctor_trial {
    int error;  /* of starting it; -ETIMEDOUT: it was ended at its limit */
    int status; /* as wait() gives it */
    char output[1024];
    char complaint[512]; /* the first line that it, or the loader, wrote to
                            stderr */
    bool recorded;
    enum seep_inert_reason inert;
    enum seep_unwinder unwinder;
    enum seep_python_state python_state;
    uint64_t event_count;
    uint64_t stack_count;
    uint64_t whole_count;  /* of the stacks, those that end where they should */
    uint64_t python_count; /* and those with lines of Python */
};

#define SEEP_DOCTOR_PYTHONS_MOST 8

struct seep_doctor_python {
    char path[PATH_MAX]; /* as PATH has it; once it ran, as it calls itself */
    char version[32];    /* "" unless it ran */
    char name[32];       /* cpython, pypy; "" unless it ran */
    char torch[PATH_MAX];
    struct seep_doctor_trial trial;
};

struct seep_doctor_facts {
    const char *root; /* goes before the path of every file of the system */
    const char *(*variable)(const char *name); /* getenv() */
    char *const *environment;                  /* all of them */
    const char *library;   /* libseep.so; NULL: not found, for .library_error */
    int library_error;     /* as of seep_launch_find_preload() */
    char *const *command;  /* NULL: none was given */
    uint64_t size_bytes;   /* of a recording, the smallest that is tried */
    const char *glibc;     /* its version; "": another C library */
    const char *libc_path; /* "" if not found */
    uint64_t file_limit_bytes; /* UINT64_MAX: none */
    struct seep_own_limits limits;
    enum seep_own_limit lacking; /* of them, for a recording of .size_bytes */
    bool library_noexec;         /* its file system gives no code */
    bool root_read_only;
    uint64_t denied_calls; /* base/syscall.h: a filter kills for them */
    int vm_readv_error; /* of process_vm_readv(); -ECANCELED: it was killed */
    struct seep_launch_trial folder;
    struct seep_doctor_trial trial;
    struct seep_doctor_python pythons[SEEP_DOCTOR_PYTHONS_MOST];
    size_t python_count;
};

struct seep_doctor_finding {
    const char *check;
    enum seep_doctor_level level;
    char *reason;
    char *remedy; /* NULL: nothing to be done */
};

struct seep_doctor {
    struct seep_doctor_finding *findings;
    size_t count;
    bool failed; /* memory ran out: something is missing */
};

/** Add one line. @param remedy  NULL: nothing to be done */
__attribute__((format(printf, 5, 6))) void
seep_doctor_find(struct seep_doctor *doctor, const char *check,
                 enum seep_doctor_level level, const char *remedy,
                 const char *reason, ...);

#define SEEP_DOCTOR_DECLARE(name)                                        \
    void seep_doctor_check_##name(const struct seep_doctor_facts *facts, \
                                  struct seep_doctor *doctor);
SEEP_DOCTOR_CHECKS(SEEP_DOCTOR_DECLARE)
#undef SEEP_DOCTOR_DECLARE

/** All of them. */
void seep_doctor_check(const struct seep_doctor_facts *facts,
                       struct seep_doctor *doctor);
void seep_doctor_close(struct seep_doctor *doctor);

/** How many lines of @level there are. */
size_t seep_doctor_count(const struct seep_doctor *doctor,
                         enum seep_doctor_level level);

/** "ok", "absent", "warn", "no". */
const char *seep_doctor_level_name(enum seep_doctor_level level);

/** The answer in one line; to be freed, NULL without memory. */
char *seep_doctor_sentence(const struct seep_doctor_facts *facts,
                           const struct seep_doctor *doctor);

/** The path of @path below the root. */
const char *seep_doctor_path(const struct seep_doctor_facts *facts,
                             const char *path, char text[PATH_MAX]);

/** May this user access @path below the root? @param mode  as of access() */
bool seep_doctor_can(const struct seep_doctor_facts *facts, const char *path,
                     int mode);

/** Where the loader would find the library @name, as far as it matters. */
bool seep_doctor_find_library(const struct seep_doctor_facts *facts,
                              const char *name, char found[PATH_MAX]);

/** The beginning of the file @path below the root. @return false: not there */
bool seep_doctor_read(const struct seep_doctor_facts *facts, const char *path,
                      char *text, size_t bytes);

/* Facts. */

/**
 * @param out      -o; NULL: as `seep run` would have it
 * @param command  NULL: none
 * @return 0; an exit code after saying what is wrong
 */
int seep_doctor_facts_take(const char *out, char *const *command,
                           struct seep_doctor_facts *ret_facts);
void seep_doctor_facts_close(struct seep_doctor_facts *facts);

void seep_doctor_python_take(struct seep_doctor_facts *facts);

/* Printing. */

void seep_doctor_print(struct seep_page *page,
                       const struct seep_doctor_facts *facts,
                       const struct seep_doctor *doctor);
/** @return 0 or negative errno */
int seep_doctor_print_json(FILE *file, const struct seep_doctor_facts *facts,
                           const struct seep_doctor *doctor);

/*
 * A program run under libseep.so for a short time, and its recording read back.
 *
 * Invariant: it ends within its limit, with all that it started in its process
 * group, and of its recording nothing stays.
 */

/**
 * @param library  NULL: it runs without, and nothing is recorded
 * @param sample   as SEEP_SAMPLE
 */
void seep_doctor_try(char *const *argv, const char *library, const char *sample,
                     double limit_s, struct seep_doctor_trial *ret_trial);

#endif
