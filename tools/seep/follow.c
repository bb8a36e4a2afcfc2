/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The set of recordings that are followed; see follow.h.
 *
 * Invariant: entries are sorted by path, one a path, and exactly those that
 * are kept have a report. Whether one lives is asked of its header and of
 * /proc; a report, which is dear, is made only of those that live, and once of
 * one that has ended.
 */
#include "follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "follow_entry.h"
#include "follow_find.h"
#include "reader/symbol_memory.h"

struct seep_follow {
    char *const *words;
    size_t word_count;
    struct seep_follow_options options;
    struct seep_follow_entry **entries;
    size_t count;
    size_t capacity;
    const struct seep_followed **list;
    size_t list_count;
    struct seep_follow_counts counts;
};

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
        follow->options.limit = SEEP_FOLLOW_LIMIT_DEFAULT;
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

static void let_go(const struct seep_follow *follow, struct seep_report *report)
{
    if (report != NULL && follow->options.let_go != NULL) {
        follow->options.let_go(follow->options.context, report);
    } else {
        seep_report_close(report);
    }
}

static void drop_report(struct seep_follow *follow,
                        struct seep_follow_entry *entry)
{
    if (entry->report != NULL) {
        follow->counts.forgotten_ever++;
    }
    let_go(follow, entry->report);
    free(entry->kept);
    entry->report = NULL;
    entry->kept = NULL;
    entry->final = false;
}

static void drop_entry(struct seep_follow *follow,
                       struct seep_follow_entry *entry)
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
    free(follow->entries);
    free(follow->list);
    free(follow);
}

/* The entry of @path, or where it belongs. */
static bool find(const struct seep_follow *follow, const char *path,
                 size_t *ret_at)
{
    size_t low = 0;
    size_t high = follow->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(follow->entries[middle]->path, path);

        if (order == 0) {
            *ret_at = middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_at = low;
    return false;
}

static int reserve(struct seep_follow *follow)
{
    size_t capacity = follow->capacity * 2 + 64;

    if (follow->count < follow->capacity) {
        return 0;
    }
    struct seep_follow_entry **grown =
        reallocarray(follow->entries, capacity, sizeof(*grown));
    if (grown == NULL) {
        return -ENOMEM;
    }
    follow->entries = grown;
    follow->capacity = capacity;
    return 0;
}

static int add(struct seep_follow *follow, const char *path, bool named)
{
    size_t at;

    if (!find(follow, path, &at)) {
        struct seep_follow_entry *entry = calloc(1, sizeof(*entry));
        char *copy = strdup(path);

        if (entry == NULL || copy == NULL || reserve(follow) < 0) {
            free(entry);
            free(copy);
            return -ENOMEM;
        }
        entry->path = copy;
        memmove(&follow->entries[at + 1], &follow->entries[at],
                (follow->count - at) * sizeof(*follow->entries));
        follow->entries[at] = entry;
        follow->count++;
    }
    follow->entries[at]->found = true;
    follow->entries[at]->named |= named;
    return 0;
}

static int scan_word(struct seep_follow *follow, const char *word,
                     struct seep_refusal *ret_refusal)
{
    bool named = !seep_follow_is_folder(word);
    char **paths;
    int error = seep_follow_find(word, ret_refusal, &paths);

    if (error < 0) {
        return error;
    }
    for (char **path = paths; *path != NULL && error == 0; path++) {
        error = add(follow, *path, named);
    }
    seep_report_list_free(paths);
    return error;
}

/* @return false if there is no such file any more */
static bool look_at(struct seep_follow *follow, struct seep_follow_entry *entry)
{
    bool renewed;
    int error = seep_follow_entry_look(entry, &renewed);

    if (renewed) {
        drop_report(follow, entry);
    }
    return error == 0;
}

/* Those whose file is gone are let go. A recording of a process that was named
 * by its number is no longer found once that has ended, and stays. */
static void look_at_all(struct seep_follow *follow)
{
    size_t kept = 0;

    for (size_t i = 0; i < follow->count; i++) {
        struct seep_follow_entry *entry = follow->entries[i];

        if ((entry->found || entry->named) && look_at(follow, entry)) {
            follow->entries[kept++] = entry;
        } else {
            drop_entry(follow, entry);
        }
    }
    follow->count = kept;
}

static bool is_wanted(const struct seep_follow *follow,
                      const struct seep_follow_entry *entry)
{
    return entry->state == SEEP_FOLLOW_LIVE ||
           (entry->state == SEEP_FOLLOW_ENDED &&
            (entry->named ||
             seep_follow_entry_ended_s(entry) <= follow->options.keep_s));
}

static int compare(const void *a, const void *b)
{
    const struct seep_follow_entry *left =
        *(struct seep_follow_entry *const *)a;
    const struct seep_follow_entry *right =
        *(struct seep_follow_entry *const *)b;
    int order =
        (left->state != SEEP_FOLLOW_LIVE) - (right->state != SEEP_FOLLOW_LIVE);

    if (order == 0) {
        order = (left->start_ns < right->start_ns) -
                (left->start_ns > right->start_ns);
    }
    return order != 0 ? order : strcmp(left->path, right->path);
}

/* @return those that are to be kept, in order; to be freed */
static struct seep_follow_entry **choose(struct seep_follow *follow,
                                         size_t *ret_count)
{
    struct seep_follow_entry **wanted =
        calloc(follow->count + 1, sizeof(*wanted));
    size_t count = 0;

    for (size_t i = 0; wanted != NULL && i < follow->count; i++) {
        struct seep_follow_entry *entry = follow->entries[i];

        entry->chosen = false;
        follow->counts.refused += entry->state == SEEP_FOLLOW_REFUSED;
        if (is_wanted(follow, entry)) {
            wanted[count++] = entry;
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

static void describe(struct seep_follow_entry *entry)
{
    struct seep_followed *kept = entry->kept;

    kept->path = entry->path;
    kept->inode = (uint64_t)entry->inode;
    kept->start_realtime_ns = entry->start_ns;
    kept->named = entry->named;
    kept->ended = entry->state == SEEP_FOLLOW_ENDED;
    kept->ended_s = seep_follow_entry_ended_s(entry);
    kept->report = entry->report;
}

static void read_report(struct seep_follow *follow,
                        struct seep_follow_entry *entry)
{
    struct seep_report *report;

    if (entry->kept == NULL) {
        entry->kept = calloc(1, sizeof(*entry->kept));
    }
    if (entry->kept == NULL || entry->final) {
        return;
    }
    entry->kept->error = seep_report_open(entry->path, &follow->options.report,
                                          &entry->kept->refusal, &report);
    follow->counts.readings_ever++;
    if (entry->kept->error == 0) {
        let_go(follow, entry->report);
        entry->report = report;
        entry->kept->read_ns = seep_clock_ns(CLOCK_MONOTONIC);
        entry->final = entry->state == SEEP_FOLLOW_ENDED;
    }
}

static void read_all(struct seep_follow *follow,
                     struct seep_follow_entry **wanted, size_t count)
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
            follow->list[follow->list_count++] = wanted[i]->kept;
            follow->counts.live += wanted[i]->state == SEEP_FOLLOW_LIVE;
            follow->counts.ended += wanted[i]->state == SEEP_FOLLOW_ENDED;
        } else {
            follow->counts.refused++;
        }
    }
}

static void begin(struct seep_follow *follow)
{
    follow->list_count = 0;
    follow->counts.live = 0;
    follow->counts.ended = 0;
    follow->counts.left_out = 0;
    follow->counts.refused = 0;
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
    look_at_all(follow);
    struct seep_follow_entry **wanted = choose(follow, &count);
    if (wanted == NULL) {
        return -ENOMEM;
    }
    read_all(follow, wanted, count);
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
