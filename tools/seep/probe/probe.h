/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * `seep probe`: may this process be given requests? One line and an exit code,
 * for who asks again and again.
 *
 * What may wait for ever (a file system that does not answer) is done by a
 * child into a set that both share; what it came to by the deadline is judged
 * here, in memory. So what is known to be wrong is said whatever hangs later.
 */
#ifndef SEEP_TOOL_PROBE_PROBE_H
#define SEEP_TOOL_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/word.h"
#include "reader/process/vitals.h"

/** Beside those of every verb (options/option.h). 3 is headroom. */
enum seep_probe_exit {
    SEEP_PROBE_EXIT_GROWTH = 5,
    SEEP_PROBE_EXIT_STALE = 6,
    SEEP_PROBE_EXIT_NOT_CONFIGURED = 7,
};

#define SEEP_PROBE_UNTOLD (-1.0)
#define SEEP_PROBE_LINE_BYTES 1024 /* with its end */
#define SEEP_PROBE_PROCESSES 256   /* that are told apart */
#define SEEP_PROBE_PATH_BYTES 512
#define SEEP_PROBE_FINDINGS (SEEP_PROBE_PROCESSES * (2 * SEEP_DEVICES_MAX + 4))

struct seep_probe_arguments {
    double gpu_free_bytes; /* limits; each may be SEEP_PROBE_UNTOLD */
    double host_free_bytes;
    double growth_bytes_per_s;
    double age_s;
    double deadline_s;
    const char *tell; /* where the line goes, too; NULL */
    bool strict;
    bool tolerant; /* what is not configured is ready */
    bool json;
};

/** A recording that was found; one of a process that has ended is counted
 * only. */
struct seep_probe_process {
    char path[SEEP_PROBE_PATH_BYTES]; /* cut where it is longer */
    struct seep_refusal refusal;      /* .error is 0 where it was read */
    struct seep_vitals vitals;
    bool misplaced; /* nothing can ever be read there: an argument that is not
                       there, or may not be read */
    bool replaced;  /* by a later one of the same program */
};

/** Filled by the child; the parent reads what is below .count. */
struct seep_probe_set {
    _Atomic uint32_t count;
    _Atomic uint32_t ended; /* processes that have */
    _Atomic uint32_t left_out;
    char at[SEEP_PROBE_PATH_BYTES]; /* what is being read */
    struct seep_probe_process processes[SEEP_PROBE_PROCESSES];
};

/** X(SYMBOL, "name", exit code), in the order in which they are told. */
#define SEEP_PROBE_KINDS(X)                                     \
    X(GPU_FREE, "gpu-free", SEEP_EXIT_OVER_LIMIT)               \
    X(HOST_FREE, "host-free", SEEP_EXIT_OVER_LIMIT)             \
    X(GROWTH, "growth", SEEP_PROBE_EXIT_GROWTH)                 \
    X(AGE, "age", SEEP_PROBE_EXIT_STALE)                        \
    X(ENDED, "ended", SEEP_PROBE_EXIT_STALE)                    \
    X(CONFIGURED, "configured", SEEP_PROBE_EXIT_NOT_CONFIGURED) \
    X(READ, "read", SEEP_EXIT_INSUFFICIENT)

enum seep_probe_kind {
#define SEEP_PROBE_VALUE(symbol, name, code) SEEP_PROBE_##symbol,
    SEEP_PROBE_KINDS(SEEP_PROBE_VALUE)
#undef SEEP_PROBE_VALUE
        SEEP_PROBE_KIND_COUNT
};

/** Better first. */
enum seep_probe_outcome {
    SEEP_PROBE_READY,
    SEEP_PROBE_CANNOT_TELL,
    SEEP_PROBE_NOT_READY
};

struct seep_probe_finding {
    enum seep_probe_kind kind;
    enum seep_probe_outcome outcome;
    int process;                /* index in the set; -1: of all */
    int device;                 /* -1: of the host */
    struct seep_interval value; /* bytes, bytes a second or seconds */
    double limit;
    const char *reason; /* of what cannot be told; else NULL */
};

struct seep_probe_answer {
    const struct seep_probe_arguments *arguments;
    struct seep_probe_set *set;
    uint32_t count; /* of the set, when it was judged */
    bool late;      /* the child did not come to its end in time */
    int signal;     /* that ended the child; 0 */
    double elapsed_s;
    enum seep_probe_outcome outcome;
    int code;
    size_t finding_count;
    struct seep_probe_finding findings[SEEP_PROBE_FINDINGS];
};

/** Child's side: read everything that @paths mean into @set. */
void seep_probe_gather(char *const *paths, size_t count,
                       struct seep_probe_set *set);

/** Judge what is in .set by .arguments, .late and .signal. */
void seep_probe_judge(struct seep_probe_answer *answer);

/** One line without its end, cleaned. */
void seep_probe_line(const struct seep_probe_answer *answer,
                     char line[SEEP_PROBE_LINE_BYTES]);

/** The same as a document, seep-probe/1. */
void seep_probe_json(const struct seep_probe_answer *answer, const char *line,
                     FILE *file);

/*
 * Work that may hang, in a child that is left behind when the time is over.
 *
 * A thread would not do: a process does not end before all its threads have,
 * and one that waits for a file system in the kernel does not.
 */

enum seep_deadline_result {
    SEEP_DEADLINE_DONE,
    SEEP_DEADLINE_LATE, /* it was told to end, and not waited for */
    SEEP_DEADLINE_DIED, /* of a signal, or it left by itself */
};

/**
 * Call @work in a child until it returns, or until @until_ns of
 * CLOCK_MONOTONIC. What it is to say it says in memory that both share.
 *
 * @param ret_signal  that ended it; 0. NULL: nobody asks
 * @return a result, or negative errno where no child could be made
 */
int seep_deadline_run(void (*work)(void *context), void *context,
                      uint64_t until_ns, int *ret_signal);

/** For @work: close all that was inherited, so that nobody who waits for the
 * end of our output waits for a child that hangs. */
void seep_deadline_let_go(void);

#endif
