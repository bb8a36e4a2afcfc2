/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Processes and their recordings while they come and go: recordings that are
 * followed (follow.c), what a word means to one who follows and whose a
 * recording is (find.c), and external samples of them (watch.c).
 *
 * Nothing is printed, no process is touched. Errors: 0 or negative errno.
 */
#ifndef SEEP_TOOL_READ_FOLLOW_H
#define SEEP_TOOL_READ_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/process/cgroup.h"
#include "reader/report/report.h"
#include "seep/recording.h"

/*
 * Recordings followed while their processes come and go: for who shows the
 * same things again and again (metrics, a live view).
 *
 * A recording is known by path, inode and start: a file that was replaced is
 * another one. Those of processes that live are read anew at each refresh;
 * when one has ended it is read once more, kept for a while, and forgotten.
 * Bounded: of at most .limit recordings a report is kept, those that live
 * before those that ended, then by their start, the latest first; the others
 * are counted. What is remembered of a file beyond that are its name and
 * inode, as long as it is there.
 *
 * One thread.
 */

struct seep_follow;
struct seep_ask_memory;

struct seep_follow_options {
    struct seep_report_options report; /* of each; what it points to must
                                          outlive the follower */
    /* Those that live are asked who holds what leaks, and answers remembered
     * here; NULL: they are not. */
    struct seep_ask_memory *answers;
    size_t limit;  /* recordings that are read; 0: the default */
    double keep_s; /* one that ended so long ago is forgotten, unless it was
                      named itself; INFINITY: never */
    /* Takes a report that is no longer in the list, to close it later, where
     * another thread may still look at it. NULL: it is closed at once. */
    void (*let_go)(void *context, struct seep_report *report);
    void *context;
};

/** One of those that are kept. */
struct seep_followed {
    const char *path;
    uint64_t inode;
    uint64_t start_realtime_ns;
    bool ended; /* no more will be written, as far as is known */
    const struct seep_report *report; /* the last that could be made; never
                                         NULL in a list */
    int error; /* of the last reading; then .report is older */
    struct seep_refusal refusal; /* and why */
};

struct seep_follow_counts {
    size_t live; /* of those in the list */
    size_t ended;
    size_t past;             /* ended longer ago than is kept */
    size_t left_out;         /* live, or ended lately, and beyond the limit */
    size_t refused;          /* files that cannot be read as recordings */
    uint64_t forgotten_ever; /* had been in the list, and are no more */
    uint64_t readings_ever;
};

/**
 * @param paths  recordings, folders or process ids; a folder may be empty, and
 *               need not be there yet. Borrowed.
 */
int seep_follow_open(char *const *paths, size_t count,
                     const struct seep_follow_options *options,
                     struct seep_follow **ret_follow);
void seep_follow_close(struct seep_follow *follow);

/**
 * Look which recordings there are and read those that may have changed. What
 * seep_follow_list() gave before is no longer valid.
 *
 * @return 0; negative errno of the first of @paths that means nothing, with
 *         @ret_refusal and @ret_path, both of which may be NULL, filled: the
 *         others are followed all the same
 */
int seep_follow_refresh(struct seep_follow *follow,
                        struct seep_refusal *ret_refusal,
                        const char **ret_path);

/** Those that are kept: who lives first, then the latest start first. */
const struct seep_followed *const *
seep_follow_list(const struct seep_follow *follow, size_t *ret_count);

void seep_follow_counts(const struct seep_follow *follow,
                        struct seep_follow_counts *ret_counts);

/**
 * What could not be read at the last refresh, and was not known before.
 *
 * @return how many more there are than were told
 */
size_t seep_follow_visit_refused(
    const struct seep_follow *follow,
    void (*visit)(const char *path, const struct seep_refusal *refusal));

/**
 * Files that gave up their names in what is in the list, each once in the
 * follower's life, and so many that nobody's log is filled.
 */
void seep_follow_visit_nameless(
    struct seep_follow *follow,
    void (*visit)(const struct seep_report_nameless *nameless));

/*
 * What a word on the command line means to one who follows: a recording, the
 * recordings of a folder now, or those of a process.
 */

/** Is @word a process id: a number, and not the name of a file? */
bool seep_follow_is_pid(const char *word);

/**
 * The recordings that @word means now.
 *
 * @param ret_paths  NULL-terminated; give it to seep_report_list_free()
 * @return 0, also when it is a folder without any; -ENOENT, -ESRCH and others
 *         with @ret_refusal filled
 */
int seep_follow_find(const char *word, struct seep_refusal *ret_refusal,
                     char ***ret_paths);

/*
 * The process that a recording is of, as it is seen from here: after an exec
 * what is seen is not taken for what was recorded.
 */

/**
 * The process of the recording with @header, also in a namespace below ours.
 *
 * @return -ESRCH if it has ended, or cannot be told: another machine, or boot
 */
int seep_target_find(const struct seep_rec_header *header,
                     struct seep_target *ret_target);

/** Does it live, as that image? */
bool seep_target_is_there(const struct seep_target *target);

/*
 * External samples of processes while they live, kept beside their recordings.
 *
 * What cannot be sampled is silently left out. A sample takes the lock of the
 * address space, so of a processor at most 1 % is spent on one process, and 5 %
 * on all. One thread, which calls when it has time.
 */

/** So many processes at a time; others wait until some have ended. */
#define SEEP_WATCH_LIMIT 64

struct seep_watch;

int seep_watch_open(struct seep_watch **ret_watch);
void seep_watch_close(struct seep_watch *watch);

/** From now on those whose rows may leak are asked who holds them, too, by
 * children of this process (read/ask.h), one at a time: their ends are to be
 * followed by a call of seep_watch_attend(). */
void seep_watch_ask(struct seep_watch *watch);

/** No question is asked any more; one that is being asked ends, and what it
 * found is known. @watch may be NULL. */
void seep_watch_stop(struct seep_watch *watch);

/** Was there one that may not be asked? @watch may be NULL. */
bool seep_watch_was_refused(const struct seep_watch *watch);

/** Is @pid its child, which it waits for? */
bool seep_watch_owns(const struct seep_watch *watch, pid_t pid);

/**
 * Watch the process of the recording at @path from now on, after the
 * samples that are there already. What is known is not asked again.
 *
 * @return 0, also when it is no recording or its process is not to be seen;
 *         -ENOMEM
 */
int seep_watch_add(struct seep_watch *watch, const char *path);

/**
 * Sample the process that has waited longest, if one is due.
 *
 * @return nanoseconds until the next one is; UINT64_MAX: none is watched
 */
uint64_t seep_watch_attend(struct seep_watch *watch);

#endif
