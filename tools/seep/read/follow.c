/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The set of recordings that are followed.
 *
 * Invariant: entries are sorted by path, one a path, and exactly those that
 * are kept have a report. Whether one lives is asked of its header and of
 * /proc; a report, which is dear, is made only of those that live, and once of
 * one that has ended.
 */
#include "read/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/word.h"
#include "format/layout.h"
#include "read/ask.h"
#include "reader/process/cgroup.h"
#include "reader/recording/open.h"
#include "reader/recording/pack.h"
#include "reader/recording/store.h"
#include "reader/symbols/names.h"
#include "seep/recording.h"

#define LIMIT_DEFAULT 64
#define TOLD_MOST 3 /* refusals at once: the others are alike, mostly */
#define NAMELESS_MOST 10

enum state {
    IS_NEW, /* not known to be a recording yet */
    IS_LIVE,
    HAS_ENDED,
    IS_REFUSED
};

struct entry {
    char *path;
    dev_t device;
    ino_t inode;
    uint64_t start_ns; /* CLOCK_REALTIME, as .end_ns */
    uint64_t end_ns;   /* of HAS_ENDED */
    enum state state;
    unsigned tries; /* of reading it, that failed since one did not */
    bool failed;    /* its head was read, and no report could be made */
    bool fresh;     /* the first of these was the last refresh */
    bool is_packed; /* whatever its process does, no more is written */
    bool named;
    bool found;                 /* by the scan of this refresh */
    bool chosen;                /* to be kept */
    bool final;                 /* read after its end, as far as is known */
    struct seep_followed shown; /* all zero: not kept */
    struct seep_report *report; /* of it */
};

struct seep_follow {
    char *const *words;
    size_t word_count;
    struct seep_follow_options options;
    struct entry **entries;
    size_t count;
    size_t sorted_count; /* of them, that are by path: the others are new */
    const struct seep_followed **list;
    size_t list_count;
    struct seep_follow_counts counts;
    char *nameless[NAMELESS_MOST]; /* that were told */
    size_t nameless_count;
};

static void let_go(const struct seep_follow *follow, struct seep_report *report)
{
    if (report != NULL && follow->options.let_go != NULL) {
        follow->options.let_go(follow->options.context, report);
    } else {
        seep_report_close(report);
    }
}

static void drop_report(struct seep_follow *follow, struct entry *entry)
{
    follow->counts.forgotten_ever += entry->report != NULL;
    let_go(follow, entry->report);
    entry->report = NULL;
    entry->shown = (struct seep_followed){.path = NULL};
    entry->final = false;
}

/*
 * Whether the process of a recording lives.
 *
 * Invariant: only the header is read here, by pread, so a file that is cut
 * short meanwhile harms nobody; one that has ended stays ended.
 */

#define SECOND_NS UINT64_C(1000000000)
/* A file that is none yet may be in the making. */
#define TRIES 3
/* Of a process that cannot be seen (another container) the last word tells
 * whether it lives. Words come at every bucket at least, while it works: a
 * bucket is at most a 64th of its life. */
#define SILENCE_NS (600 * SECOND_NS)
#define SILENCE_SHARE 32

static uint64_t now_ns(void)
{
    return seep_clock_ns(CLOCK_REALTIME);
}

/* @return 0; negative errno of opening it, -EBADMSG and -EPROTO of what is in
 * it; @ret_refusal may be NULL */
static int read_header(struct entry *entry, struct seep_refusal *ret_refusal,
                       struct seep_rec_header *ret_header)
{
    enum seep_recording_check result;
    uint64_t size_bytes;
    int fd;
    struct seep_packed packed;
    int error =
        seep_packed_open(entry->path, ret_refusal, &fd, &size_bytes, &packed);

    if (error < 0) {
        return error;
    }
    entry->is_packed = packed.pack != NULL;
    seep_packed_fini(&packed);
    ssize_t got = pread(fd, (void *)ret_header, sizeof(*ret_header), 0);
    close(fd);
    /* The check looks at no more than the header. */
    result = seep_check(ret_header, got == (ssize_t)sizeof(*ret_header)
                                        ? (size_t)size_bytes
                                        : (size_t)(got < 0 ? 0 : got));
    return result == SEEP_CHECK_VALID
               ? 0
               : seep_open_refuse_check(ret_refusal, result);
}

static void refuse(struct entry *entry, int error)
{
    entry->tries += entry->tries < TRIES;
    entry->fresh = entry->tries == 1;
    /* another one's may be given to us, without being another file */
    if (entry->tries >= TRIES && (error == -EBADMSG || error == -EPROTO)) {
        entry->state = IS_REFUSED;
    }
}

/* Its end, where that is known, or its last event. */
static uint64_t last_word_ns(struct seep_rec_header *header)
{
    uint64_t last_ns = seep_word_load(&header->last_ns);
    uint64_t exit_tick = seep_word_load(&header->exit_tick);
    uint64_t since_ns = exit_tick << SEEP_TICK_LOG2_NS;

    if (exit_tick == 0 && last_ns > header->start_monotonic_ns) {
        since_ns = last_ns - header->start_monotonic_ns;
    }
    return header->start_realtime_ns + since_ns;
}

static bool is_silent(const struct seep_rec_header *header, uint64_t last_ns)
{
    uint64_t now = now_ns();
    uint64_t age_ns =
        now > header->start_realtime_ns ? now - header->start_realtime_ns : 0;
    uint64_t most_ns = age_ns / SILENCE_SHARE > SILENCE_NS
                           ? age_ns / SILENCE_SHARE
                           : SILENCE_NS;

    return now > last_ns && now - last_ns > most_ns;
}

static void judge(struct entry *entry, struct seep_rec_header *header)
{
    uint64_t last_ns = last_word_ns(header);
    enum seep_process_state state =
        seep_process_state_of(header, seep_process_presence_of(header, NULL));
    bool lives = !entry->is_packed &&
                 (state == SEEP_STATE_RUNNING ||
                  (state == SEEP_STATE_UNKNOWN && !is_silent(header, last_ns)));

    entry->start_ns = header->start_realtime_ns;
    if (lives) {
        entry->state = IS_LIVE;
    } else if (entry->state != HAS_ENDED) {
        uint64_t now = now_ns();

        /* One that was seen to live ended just now, whatever it said last; and
         * none will end in the future. */
        entry->end_ns =
            entry->state == IS_LIVE || last_ns > now ? now : last_ns;
        entry->state = HAS_ENDED;
    }
}

/* It is another file, or another run in it: nothing is known but its name. */
static void renew(struct seep_follow *follow, struct entry *entry,
                  const struct stat *status)
{
    drop_report(follow, entry);
    entry->device = status->st_dev;
    entry->inode = status->st_ino;
    entry->state = IS_NEW;
    entry->tries = 0;
}

/* `seep run` writes how a process ended after its end, which may have been read
 * by then. */
static void await_status(struct entry *entry)
{
    struct seep_rec_header header;

    if (entry->final && !entry->report->has_status &&
        read_header(entry, NULL, &header) == 0) {
        entry->final = seep_word_load(&header.has_status) == 0;
    }
}

/*
 * Bring .state up to date with the file and its process.
 *
 * @return false if there is no such file any more
 */
static bool update(struct seep_follow *follow, struct entry *entry)
{
    struct seep_rec_header header;
    struct stat status;
    int error;

    entry->fresh = false;
    if (seep_pack_stat(entry->path, &status) != 0) {
        return false;
    }
    if (status.st_ino != entry->inode || status.st_dev != entry->device) {
        renew(follow, entry, &status);
    }
    if (entry->state != IS_NEW && entry->state != IS_LIVE) {
        await_status(entry);
        return true;
    }
    error = read_header(entry, NULL, &header);
    if (error < 0) {
        refuse(entry, error);
        return true;
    }
    if (entry->state == IS_LIVE &&
        header.start_realtime_ns != entry->start_ns) {
        renew(follow, entry, &status);
    }
    entry->tries = 0;
    judge(entry, &header);
    return true;
}

/* Seconds since its end; 0 while it lives. */
static double entry_ended_s(const struct entry *entry)
{
    uint64_t now = now_ns();

    return entry->state == HAS_ENDED && now > entry->end_ns
               ? (double)(now - entry->end_ns) / (double)SECOND_NS
               : 0;
}

int seep_follow_open(char *const *paths, size_t count,
                     const struct seep_follow_options *options,
                     struct seep_follow **ret_follow)
{
    struct seep_follow *follow = calloc(1, sizeof(*follow));

    if (follow == NULL) {
        return -ENOMEM;
    }
    follow->words = paths;
    follow->word_count = count;
    follow->options = *options;
    if (follow->options.limit == 0) {
        follow->options.limit = LIMIT_DEFAULT;
    }
    follow->list = calloc(follow->options.limit, sizeof(*follow->list));
    if (follow->list == NULL ||
        seep_symbol_memory_open(&follow->options.report.memory) < 0) {
        free(follow->list);
        free(follow);
        return -ENOMEM;
    }
    *ret_follow = follow;
    return 0;
}

static void drop_entry(struct seep_follow *follow, struct entry *entry)
{
    drop_report(follow, entry);
    free(entry->path);
    free(entry);
}

void seep_follow_close(struct seep_follow *follow)
{
    if (follow == NULL) {
        return;
    }
    for (size_t i = 0; i < follow->count; i++) {
        drop_entry(follow, follow->entries[i]);
    }
    seep_symbol_memory_close(follow->options.report.memory);
    for (size_t i = 0; i < follow->nameless_count; i++) {
        free(follow->nameless[i]);
    }
    free(follow->entries);
    free(follow->list);
    free(follow);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp((*(struct entry *const *)a)->path,
                  (*(struct entry *const *)b)->path);
}

/* The entry of @path, behind the sorted ones if it is new; NULL: no memory. */
static struct entry *know(struct seep_follow *follow, const char *path)
{
    struct entry *entry = &(struct entry){.path = (char *)(uintptr_t)path};
    struct entry **found =
        bsearch(&entry, follow->entries, follow->sorted_count, sizeof(*found),
                compare_paths);

    if (found != NULL) {
        return *found;
    }
    found = seep_list_grow(follow->entries, follow->count, sizeof(*found));
    if (found == NULL) {
        return NULL;
    }
    follow->entries = found;
    entry = calloc(1, sizeof(*entry));
    if (entry != NULL && (entry->path = strdup(path)) == NULL) {
        free(entry);
        entry = NULL;
    }
    found[follow->count] = entry;
    follow->count += entry != NULL;
    return entry;
}

static int scan_word(struct seep_follow *follow, const char *word,
                     struct seep_refusal *ret_refusal)
{
    bool named = !seep_open_is_folder(word);
    char **paths;
    int error = seep_follow_find(word, ret_refusal, &paths);

    if (error < 0) {
        return error;
    }
    for (char **path = paths; *path != NULL && error == 0; path++) {
        struct entry *entry = know(follow, *path);

        error = entry == NULL ? -ENOMEM : 0;
        if (entry != NULL) {
            entry->found = true;
            entry->named |= named;
        }
    }
    seep_report_list_free(paths);
    /* No path stands twice in what one word means. */
    if (follow->count > follow->sorted_count) {
        qsort(follow->entries, follow->count, sizeof(*follow->entries),
              compare_paths);
    }
    follow->sorted_count = follow->count;
    return error;
}

/* Those whose file is gone are let go. A recording of a process that was named
 * by its number is no longer found once that has ended, and stays. */
static void update_all(struct seep_follow *follow)
{
    size_t kept = 0;

    for (size_t i = 0; i < follow->count; i++) {
        struct entry *entry = follow->entries[i];

        if ((entry->found || entry->named) && update(follow, entry)) {
            follow->entries[kept++] = entry;
        } else {
            drop_entry(follow, entry);
        }
    }
    follow->count = kept;
    follow->sorted_count = kept;
}

static bool is_wanted(const struct seep_follow *follow,
                      const struct entry *entry)
{
    return entry->state == IS_LIVE ||
           (entry->state == HAS_ENDED &&
            (entry->named || entry_ended_s(entry) <= follow->options.keep_s));
}

static int compare(const void *a, const void *b)
{
    const struct entry *left = *(struct entry *const *)a;
    const struct entry *right = *(struct entry *const *)b;
    int order = (left->state != IS_LIVE) - (right->state != IS_LIVE);

    if (order == 0) {
        order = (left->start_ns < right->start_ns) -
                (left->start_ns > right->start_ns);
    }
    return order != 0 ? order : strcmp(left->path, right->path);
}

/* @return those that are to be kept, in order; to be freed */
static struct entry **choose(struct seep_follow *follow, size_t *ret_count)
{
    struct entry **wanted = calloc(follow->count + 1, sizeof(*wanted));
    size_t count = 0;

    for (size_t i = 0; wanted != NULL && i < follow->count; i++) {
        struct entry *entry = follow->entries[i];

        entry->chosen = false;
        follow->counts.refused +=
            entry->state == IS_REFUSED || entry->tries > 0;
        if (is_wanted(follow, entry)) {
            wanted[count++] = entry;
        } else {
            follow->counts.past += entry->state == HAS_ENDED;
        }
    }
    if (wanted == NULL) {
        return NULL;
    }
    if (count > 1) {
        qsort(wanted, count, sizeof(*wanted), compare);
    }
    *ret_count = count < follow->options.limit ? count : follow->options.limit;
    follow->counts.left_out = count - *ret_count;
    for (size_t i = 0; i < *ret_count; i++) {
        wanted[i]->chosen = true;
    }
    return wanted;
}

static void describe(struct entry *entry)
{
    struct seep_followed *shown = &entry->shown;

    shown->path = entry->path;
    shown->inode = (uint64_t)entry->inode;
    shown->start_realtime_ns = entry->start_ns;
    shown->ended = entry->state == HAS_ENDED;
    shown->report = entry->report;
}

static void read_report(struct seep_follow *follow, struct entry *entry)
{
    struct seep_followed *shown = &entry->shown;
    struct seep_report *report;

    if (entry->final) {
        return;
    }
    shown->error = seep_report_open(entry->path, &follow->options.report,
                                    &shown->refusal, &report);
    follow->counts.readings_ever++;
    entry->fresh |= shown->error < 0 && !entry->failed;
    entry->failed = shown->error < 0;
    if (shown->error == 0) {
        seep_ask_attach(report);
        if (follow->options.answers != NULL) {
            seep_ask_again(follow->options.answers, report,
                           &follow->options.report);
        }
        let_go(follow, entry->report);
        entry->report = report;
        entry->final = entry->state == HAS_ENDED;
    }
}

static void read_all(struct seep_follow *follow, struct entry **wanted,
                     size_t count)
{
    for (size_t i = 0; i < follow->count; i++) {
        if (!follow->entries[i]->chosen) {
            drop_report(follow, follow->entries[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        read_report(follow, wanted[i]);
        if (wanted[i]->report != NULL) {
            describe(wanted[i]);
            follow->list[follow->list_count++] = &wanted[i]->shown;
            follow->counts.live += wanted[i]->state == IS_LIVE;
            follow->counts.ended += wanted[i]->state == HAS_ENDED;
        } else {
            follow->counts.refused++;
        }
    }
}

static void begin(struct seep_follow *follow)
{
    follow->list_count = 0;
    follow->counts = (struct seep_follow_counts){
        .forgotten_ever = follow->counts.forgotten_ever,
        .readings_ever = follow->counts.readings_ever,
    };
    for (size_t i = 0; i < follow->count; i++) {
        follow->entries[i]->found = false;
    }
}

int seep_follow_refresh(struct seep_follow *follow,
                        struct seep_refusal *ret_refusal, const char **ret_path)
{
    struct seep_refusal refusal = {0};
    size_t count = 0;
    int first = 0;

    begin(follow);
    for (size_t i = 0; i < follow->word_count; i++) {
        int error = scan_word(follow, follow->words[i], &refusal);
        if (error < 0 && first == 0) {
            first = error;
            if (ret_refusal != NULL) {
                *ret_refusal = refusal;
            }
            if (ret_path != NULL) {
                *ret_path = follow->words[i];
            }
        }
    }
    update_all(follow);
    struct entry **wanted = choose(follow, &count);
    if (wanted == NULL) {
        return -ENOMEM;
    }
    read_all(follow, wanted, count);
    seep_symbol_memory_rest(follow->options.report.memory);
    free(wanted);
    return first;
}

const struct seep_followed *const *
seep_follow_list(const struct seep_follow *follow, size_t *ret_count)
{
    *ret_count = follow->list_count;
    return follow->list;
}

void seep_follow_counts(const struct seep_follow *follow,
                        struct seep_follow_counts *ret_counts)
{
    *ret_counts = follow->counts;
}

size_t seep_follow_visit_refused(
    const struct seep_follow *follow,
    void (*visit)(const char *path, const struct seep_refusal *refusal))
{
    size_t count = 0;

    for (size_t i = 0; i < follow->count; i++) {
        struct entry *entry = follow->entries[i];
        struct seep_refusal refusal = {0};
        struct seep_rec_header header;

        if (!entry->fresh || count++ >= TOLD_MOST) {
            continue;
        }
        if (entry->shown.error < 0) {
            refusal = entry->shown.refusal;
        } else {
            read_header(entry, &refusal, &header); /* once more: why? */
        }
        if (refusal.error < 0) {
            visit(entry->path, &refusal);
        }
    }
    return count > TOLD_MOST ? count - TOLD_MOST : 0;
}

/* @return false: it was told, or there is no room to remember it */
static bool is_untold(struct seep_follow *follow, const char *path)
{
    for (size_t i = 0; i < follow->nameless_count; i++) {
        if (strcmp(follow->nameless[i], path) == 0) {
            return false;
        }
    }
    if (follow->nameless_count == NAMELESS_MOST) {
        return false;
    }
    follow->nameless[follow->nameless_count] = strdup(path);
    return follow->nameless[follow->nameless_count] != NULL;
}

void seep_follow_visit_nameless(
    struct seep_follow *follow,
    void (*visit)(const struct seep_report_nameless *nameless))
{
    for (size_t i = 0; i < follow->list_count; i++) {
        const struct seep_report *report = follow->list[i]->report;

        for (size_t j = 0; j < report->nameless_count; j++) {
            if (is_untold(follow, report->nameless[j].path)) {
                follow->nameless_count++;
                visit(&report->nameless[j]);
            }
        }
    }
}
