/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A run of a command, after what run/launch.h prepares: the child (child.c),
 * the recordings that it leaves (harvest.c), and what is said beside the report
 * (notice.c).
 */
#ifndef SEEP_TOOL_RUN_RUN_H
#define SEEP_TOOL_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "seep/recording.h"

/*
 * Run a command as if we were not there.
 *
 * The child stays in our process group and on our terminal, with the signal
 * mask, the ignored signals and the files that we were started with. We do
 * not die of the terminal's signals, stop and go on when it does, and forward
 * what is sent to us alone.
 */

struct seep_child {
    pid_t pid;
    int status;           /* as wait() gives it */
    uint64_t start_clock; /* field 22 of /proc/PID/stat; 0 unknown */
};

/** What is done while the child runs, between two signals. */
struct seep_child_pastime {
    /** @return nanoseconds until it is to be called again; UINT64_MAX: never */
    uint64_t (*call)(void *context);
    void *context;
};

/**
 * Start @argv and wait until it has ended. One thread only.
 *
 * @param pastime  may be NULL. While it is called signals wait: let it be short
 * @return 0; negative errno of fork or, when nothing was started, of exec
 */
int seep_child_run(char *const *argv, const struct seep_child_pastime *pastime,
                   struct seep_child *ret_child);

/*
 * Which recordings a run made, and the child's status in its own.
 *
 * They are the files that the pattern can name and that were not there
 * before; another run into the same folder at the same time is not told apart.
 */

struct seep_harvest;

/** Remember what is there already. @pattern is an absolute SEEP_OUT. */
int seep_harvest_open(const char *pattern, struct seep_harvest **ret_harvest);
void seep_harvest_close(struct seep_harvest *harvest);

/** Look again. @return the new files, owned by @harvest; NULL: none */
int seep_harvest_collect(struct seep_harvest *harvest, char ***ret_paths,
                         size_t *ret_count);

/** Every new file that can be a recording by its name, valid or not. */
int seep_harvest_visit(const struct seep_harvest *harvest,
                       void (*visit)(void *context, const char *path),
                       void *context);

/** The header of the recording at @path. @return false if it is not valid */
bool seep_harvest_read_header(const char *path,
                              struct seep_rec_header *ret_header);

/**
 * Write the status of @child into the recording of its last image: the two
 * words that the format leaves to `seep run`, and only into a valid recording
 * of that very process.
 *
 * @return 0; -ENOENT if it has none
 */
int seep_harvest_put_status(char *const *paths, size_t count,
                            const struct seep_child *child);

/** The glob that matches what @pattern can name. To be freed. */
char *seep_harvest_glob(const char *pattern);

struct seep_open_list;
/** Add what @glob matches, in no order. @return 0 or -ENOMEM */
int seep_harvest_match(const char *glob, struct seep_open_list *list);

/*
 * What `seep run` says beside the report, on stderr: before, what cannot work;
 * after, what was written, or why nothing was. Each is one line.
 */

/**
 * With the variables of the run in this process's environment.
 *
 * @param out           absolute SEEP_OUT
 * @param folder_error  of creating its folder: negative errno, or 0
 */
void seep_notice_before(const char *command, const char *out, int folder_error);

/**
 * @param paths     what was recorded, if anything
 * @param reported  what to do next is said by the report
 */
void seep_notice_after(char *const *paths, size_t count, const char *command,
                       const char *out, const struct seep_child *child,
                       bool reported);

#endif
