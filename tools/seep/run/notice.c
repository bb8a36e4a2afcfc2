/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `seep run` says before and after. Invariant: the run is
 * never silent about a recording that is missing, or that misses something.
 */
#include "run/run.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/word.h"
#include "format/layout.h"
#include "options/option.h"
#include "options/variables.h"
#include "reader/process/vitals.h"
#include "run/launch.h"
#include "text/page.h"
#include "words/units.h"
#include "words/words.h"

/*
 * Why there is no recording. Invariant: a reason is given only when the file,
 * the folder or a trial shows it; else what is left, said as such.
 */

/* It could not come into the program, or sees a part of it only. */
static bool is_refused_by(const struct seep_program *program)
{
    return program->kind != SEEP_PROGRAM_FINE &&
           program->kind != SEEP_PROGRAM_LAUNCHER &&
           program->kind != SEEP_PROGRAM_MISSING &&
           program->kind != SEEP_PROGRAM_FORBIDDEN;
}

static void put(struct seep_why *why, const char *thing, const char *reason,
                const char *remedy)
{
    why->is_place = false;
    snprintf(why->thing, sizeof(why->thing), "%s", thing);
    snprintf(why->reason, sizeof(why->reason), "%s", reason);
    snprintf(why->remedy, sizeof(why->remedy), "%s",
             remedy == NULL ? "" : remedy);
}

/*
 * What speaks against a recording of @command at @out, an absolute SEEP_OUT:
 * its file, or the place.
 *
 * @return false, and *ret_why untouched, if nothing does
 */
static bool absent_foresee(const char *command, const char *out,
                           struct seep_why *ret_why)
{
    struct seep_place_found place;
    struct seep_program program;

    seep_program_look(command, getenv("PATH"), &program);
    if (is_refused_by(&program)) {
        put(ret_why, command, program.reason, program.remedy);
        return true;
    }
    seep_why_look(out, &place);
    return seep_why_place(&place, ret_why);
}

/* A quota, or a policy: only who tries meets them. */
static bool is_refused_by_trial(const char *out, struct seep_why *why)
{
    struct seep_launch_trial folder;

    seep_launch_try(out, UINT64_MAX, &folder);
    if (folder.error >= 0) {
        return false;
    }
    put(why, folder.place.folder, "",
        seep_place_remedy(seep_place_reason_of(folder.error)));
    why->is_place = true;
    snprintf(why->reason, sizeof(why->reason),
             "a recording cannot %s there (%s)", folder.step,
             strerror(-folder.error));
    return true;
}

/* After it left none: the same, or what a trial shows, or what is left. */
static void absent_explain(const char *command, const char *out,
                           struct seep_why *ret_why)
{
    struct seep_program program;

    if (absent_foresee(command, out, ret_why) ||
        is_refused_by_trial(out, ret_why)) {
        return;
    }
    seep_program_look(command, getenv("PATH"), &program);
    put(ret_why, command,
        program.kind == SEEP_PROGRAM_LAUNCHER
            ? "is not recorded itself, and what it started allocated too little to be sampled, or is linked statically"
            : "left no recording: it allocated too little to be sampled",
        "try --exact; `seep doctor -- COMMAND` checks a program");
}

#define BLOCK_BYTES 512 /* of st_blocks, whatever the file system's are */
#define LOOKED_AT_MOST 64

static void say_variable(void *context, const struct seep_variable_words *words)
{
    (void)context;
    seep_say(words->thing, words->reason, words->remedy);
}

/* Of a program the reason tells how much is recorded. */
static void say_why(const struct seep_why *why, const char *outcome)
{
    char reason[sizeof(why->reason) + 64];

    snprintf(reason, sizeof(reason), "%s%s%s", why->reason,
             why->is_place ? ": " : "", why->is_place ? outcome : "");
    seep_say(why->thing, reason, why->remedy);
}

void seep_notice_before(const char *command, const char *out, int folder_error)
{
    struct seep_why why = {.is_place = true};

    seep_variables_visit(environ, say_variable, NULL);
    if (folder_error < 0) {
        seep_place_folder(out, why.thing, sizeof(why.thing));
        snprintf(why.reason, sizeof(why.reason), "could not be created (%s)",
                 strerror(-folder_error));
        snprintf(why.remedy, sizeof(why.remedy),
                 "choose another folder with -o");
    }
    if (folder_error < 0 || absent_foresee(command, out, &why)) {
        say_why(&why, "nothing will be recorded");
    }
}

/* Below the current folder as "./x", else as it is. */
static const char *short_path(const char *path, char text[PATH_MAX])
{
    char *here = getcwd(NULL, 0);
    size_t length = here == NULL ? 0 : strlen(here);

    if (length > 1 && strncmp(path, here, length) == 0 && path[length] == '/') {
        path += length;
        while (strncmp(path, "/./", 3) == 0) { /* of -o ./ */
            path += 2;
        }
        snprintf(text, PATH_MAX, ".%s", path);
    } else {
        snprintf(text, PATH_MAX, "%s", path);
    }
    free(here);
    return text;
}

static uint64_t bytes_on_disk(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 ? (uint64_t)status.st_blocks * BLOCK_BYTES
                                     : 0;
}

struct summary {
    const char *first; /* of the command itself, or the first there is */
    uint64_t bytes;
    size_t process_count;
    uint64_t lost;
    uint64_t room_refused;
    uint64_t removed_count; /* recordings of others, SEEP_KEEP */
    uint64_t removed_bytes;
    const char *inert_path;
    enum seep_inert_reason inert;
};

/* One process has several recordings where it executed another program. */
static bool is_known(const uint32_t *pids, size_t count, uint32_t pid)
{
    for (size_t i = 0; i < count; i++) {
        if (pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static void look_at(const char *path, struct summary *summary)
{
    struct seep_vitals vitals;

    if (seep_vitals_open(path, false, NULL, &vitals) < 0) {
        return;
    }
    summary->lost += vitals.lost_events;
    summary->room_refused += vitals.room_refused;
    if (vitals.inert != SEEP_INERT_NONE && summary->inert_path == NULL) {
        summary->inert_path = path;
        summary->inert = vitals.inert;
    }
}

static struct summary sum_up(char *const *paths, size_t count,
                             const struct seep_child *child)
{
    struct summary summary = {.first = paths[0]};
    uint32_t *pids = calloc(count, sizeof(*pids));

    for (size_t i = 0; i < count; i++) {
        struct seep_rec_header header;

        summary.bytes += bytes_on_disk(paths[i]);
        if (!seep_harvest_read_header(paths[i], &header)) {
            continue;
        }
        if (header.pid == (uint32_t)child->pid) {
            summary.first = paths[i];
        }
        summary.removed_count += seep_word_load(&header.removed_count);
        summary.removed_bytes += seep_word_load(&header.removed_bytes);
        if (pids != NULL &&
            !is_known(pids, summary.process_count, header.pid)) {
            pids[summary.process_count++] = header.pid;
        }
        if (i < LOOKED_AT_MOST) {
            look_at(paths[i], &summary);
        }
    }
    free(pids);
    return summary;
}

/* What to type to see them all: the one, or the folder that has the others. */
static void put_next(struct seep_page *page, const struct summary *summary,
                     size_t count)
{
    char path[PATH_MAX];
    char *slash;
    char *word;

    short_path(summary->first, path);
    slash = strrchr(path, '/');
    if (count > 1 && slash != NULL) {
        slash[slash == path] = '\0';
    }
    word = seep_words_quote(path);
    if (word != NULL) {
        seep_page_print(page, SEEP_STYLE_PLAIN, "; what grew: seep report %s",
                        word);
    }
    free(word);
}

static void say_recorded(const struct summary *summary, size_t count,
                         bool reported)
{
    char path[PATH_MAX];
    char more[32] = "";
    struct seep_page page;

    if (count > 1) {
        snprintf(more, sizeof(more), " and %zu more", count - 1);
    }
    seep_page_init(&page, stderr, SEEP_COLOR_AUTO);
    seep_page_print(
        &page, SEEP_STYLE_PLAIN, "seep: recorded %s%s, %s, %zu process%s",
        short_path(summary->first, path), more,
        SEEP_UNITS_BYTES((double)summary->bytes), summary->process_count,
        summary->process_count == 1 ? "" : "es");
    if (!reported) {
        put_next(&page, summary, count);
    }
    seep_page_end_line(&page);
}

/* What is not there any more, and was before. */
static void say_removed(const struct summary *summary, const char *out)
{
    char folder[SEEP_PLACE_PATH_BYTES];
    char reason[192];

    if (summary->removed_count == 0 ||
        !seep_place_folder(out, folder, sizeof(folder))) {
        return;
    }
    snprintf(
        reason, sizeof(reason),
        "held more than SEEP_KEEP allows: %llu older recording%s, %s, %s removed",
        (unsigned long long)summary->removed_count,
        summary->removed_count == 1 ? "" : "s",
        SEEP_UNITS_BYTES((double)summary->removed_bytes),
        summary->removed_count == 1 ? "was" : "were");
    seep_say(folder, reason, "--keep all keeps them");
}

/* What is there, and is less than was meant. */
static void say_too_little(const struct summary *summary)
{
    char reason[192];

    if (summary->inert_path != NULL) {
        snprintf(reason, sizeof(reason), "is empty: %s",
                 seep_words_inert(summary->inert));
        seep_say(summary->inert_path, reason,
                 "`seep doctor -- COMMAND` says what can be done");
    }
    if (summary->lost > 0) {
        bool full = summary->room_refused > 0;

        snprintf(reason, sizeof(reason), "%s %s missing from its figures%s",
                 SEEP_UNITS_COUNT((double)summary->lost),
                 summary->lost == 1 ? "event is" : "events are",
                 full ? ": its disk was full (SEEP_FLOOR)" : "");
        seep_say(summary->first, reason,
                 full ? "free some space, or choose another folder with -o"
                      : "`seep report` says which; --size makes room for more");
    }
}

void seep_notice_after(char *const *paths, size_t count, const char *command,
                       const char *out, const struct seep_child *child,
                       bool reported)
{
    struct summary summary;
    struct seep_why why;

    if (count == 0) {
        absent_explain(command, out, &why);
        say_why(&why, "nothing was recorded");
        return;
    }
    summary = sum_up(paths, count, child);
    if (count > 1 || summary.inert_path == NULL) { /* else nothing was */
        say_recorded(&summary, count, reported);
    }
    say_removed(&summary, out);
    say_too_little(&summary);
}
