/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Who holds what call sites keep: asked of a process that lives, kept beside
 * its recording by who runs it, and attached to the rows of a report.
 *
 * A question reads the memory of the process and neither stops nor changes it
 * (held/held.h). What it costs is bounded: a second of processor and one a GiB,
 * for all rows. Errors: 0 or negative errno. Threads: one at a time.
 */
#ifndef SEEP_TOOL_READ_ASK_H
#define SEEP_TOOL_READ_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "held/held.h"
#include "held/kept.h"
#include "reader/process/cgroup.h"
#include "reader/report/report.h"

/** Rows that are asked about of one process, one by one and in the same passes
 * over its memory, and blocks of each. */
#define SEEP_ASK_ROWS_MOST 3U
#define SEEP_ASK_TOGETHER_MOST 64U
#define SEEP_ASK_BLOCKS 64U
/** Processes whose answers are remembered; others are not asked. */
#define SEEP_ASK_KNOWN_MOST 16U

/** Whom, and how. */
struct seep_ask {
    pid_t pid;
    const char *core_path; /* NULL: the living process */
    int memory_fd;         /* see struct seep_held_question */
    uint32_t freeze_ms;
    uint32_t share_count; /* see there, too */
    double cpu_limit_s;   /* 0: by the size of its memory */
};

/** This process may have so much memory as a question takes. @return false: no
 * limit was set */
bool seep_ask_limit_memory(const struct seep_report *report,
                           struct rlimit *ret_before);

/** Ask who holds @site of @report, which was opened with .block_limit.
 * @return as seep_held_ask() */
int seep_ask_site(const struct seep_ask *ask, const struct seep_report *report,
                  const struct seep_report_site *site,
                  struct seep_held_answer **ret_answer);

/** Attach what is kept beside the recording of @report to its rows. */
void seep_ask_attach(struct seep_report *report);

/**
 * Ask the process of @report about its first rows, if it lives, and attach what
 * it says in the place of what was kept.
 *
 * @param options  that @report was opened with
 */
void seep_ask_living(struct seep_report *report,
                     const struct seep_report_options *options);

/** The same again and again, of processes that go on: what was answered is
 * remembered, and a row asked about anew when it has become four times as
 * large. Start from an all-zero struct, which outlives the reports. */
struct seep_ask_memory {
    struct seep_store store;
    struct seep_ask_known {
        const char *path;
        struct seep_held_book book;
    } known[SEEP_ASK_KNOWN_MOST];
    size_t count;
};

void seep_ask_again(struct seep_ask_memory *memory, struct seep_report *report,
                    const struct seep_report_options *options);
void seep_ask_memory_fini(struct seep_ask_memory *memory);

/*
 * For who runs the process: in a child of its own, when there is time.
 */

/** How such a child ended. */
enum seep_ask_exit {
    SEEP_ASK_EXIT_FINE,   /* nothing was to be asked, or the answer is kept */
    SEEP_ASK_EXIT_FAILED, /* it could not be; later, perhaps */
    SEEP_ASK_EXIT_REFUSED /* this process may not be asked */
};

/**
 * Start a child at the lowest priority that judges the recording at @path and,
 * where a row is a leak or a suspect, or the verdict is about it, asks who
 * holds it: the first time, and when it has become four times as large.
 *
 * @return its id, which SIGTERM ends at any time; negative errno
 */
pid_t seep_ask_start(const char *path, const struct seep_target *target);

#endif
