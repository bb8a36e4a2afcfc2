/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Native frames folded. Invariant: what is folded has Python frames outside or
 * inside of it that say more, so no stack loses the only thing it tells.
 */
#include "fold.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/where.h"

#define INNER_KEPT 3   /* next to the allocation */
#define ENTRIES_KEPT 2 /* what Python called, of no interpreter */
#define NAMES_TOLD 2
#define NAMES_MAX 16

bool seep_fold_has_python(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (site->frames[i].python) {
            return true;
        }
    }
    return false;
}

bool seep_fold_is_machinery(const struct seep_report_frame *frame)
{
    static const char importer[] = "<frozen importlib";

    return frame->python &&
           strncmp(frame->file, importer, sizeof(importer) - 1) == 0;
}

/* Frames in front of the first of Python: how Python came to allocate. */
static size_t inner_count(const struct seep_report_site *site)
{
    size_t count = 0;

    while (count < site->frame_count && !site->frames[count].python) {
        count++;
    }
    return count;
}

/* Where the last frames begin that Python called and that are not its own. */
static size_t entries_begin(const struct seep_report_site *site, size_t inner)
{
    size_t begin = inner;
    size_t found = 0;

    for (size_t i = inner; i > 0 && found < ENTRIES_KEPT; i--) {
        if (seep_where_is_user(&site->frames[i - 1])) {
            begin = i - 1;
            found++;
        }
    }
    return begin;
}

static bool is_kept(const struct seep_report_site *site, size_t i, size_t inner,
                    size_t entries)
{
    const struct seep_report_frame *frame = &site->frames[i];

    return (frame->python && !seep_fold_is_machinery(frame)) ||
           i == site->where_frame || (i < inner && i < INNER_KEPT) ||
           (i < inner && i >= entries && seep_where_is_user(frame));
}

size_t seep_fold(const struct seep_report_site *site,
                 struct seep_fold_piece *pieces)
{
    bool folds = seep_fold_has_python(site);
    size_t inner = inner_count(site);
    size_t entries = entries_begin(site, inner);
    size_t count = 0;
    size_t end;

    for (size_t i = 0; i < site->frame_count; i = end) {
        end = i;
        while (folds && end < site->frame_count &&
               !is_kept(site, end, inner, entries)) {
            end++;
        }
        bool lone = end == i + 1 && seep_where_is_user(&site->frames[i]);
        bool folded = end > i && !lone; /* whose fold would take its room */
        end = folded ? end : i + 1;
        pieces[count++] = (struct seep_fold_piece){i, end - i, folded};
    }
    return count;
}

struct tally {
    const char *names[NAMES_MAX];
    size_t counts[NAMES_MAX];
    size_t used;
    bool more; /* than can be kept apart */
};

static const char *object_of(const struct seep_report_frame *frame)
{
    if (frame->python) {
        return "importlib";
    }
    return *frame->module == '\0' ? "no object"
                                  : seep_where_base_name(frame->module);
}

/* Kept by their number, most first; of equals the inner one first. */
static void count_object(struct tally *tally, const char *name)
{
    size_t at = 0;

    while (at < tally->used && strcmp(tally->names[at], name) != 0) {
        at++;
    }
    if (at == NAMES_MAX) {
        tally->more = true;
        return;
    }
    if (at == tally->used) {
        tally->names[tally->used++] = name;
    }
    size_t count = ++tally->counts[at];
    for (; at > 0 && tally->counts[at - 1] < count; at--) {
        tally->names[at] = tally->names[at - 1];
        tally->counts[at] = tally->counts[at - 1];
    }
    tally->names[at] = name;
    tally->counts[at] = count;
}

char *seep_fold_words(const struct seep_report_frame *frames, size_t count)
{
    struct tally tally = {.used = 0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        count_object(&tally, object_of(&frames[i]));
    }
    fprintf(file, "%zu frame%s", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < tally.used && i < NAMES_TOLD; i++) {
        fprintf(file, "%s%s", i == 0 ? " in " : ", ", tally.names[i]);
    }
    if (tally.more) {
        fputs(" and more", file);
    } else if (tally.used > NAMES_TOLD) {
        fprintf(file, " and %zu more", tally.used - NAMES_TOLD);
    }
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

size_t seep_fold_speaker(const struct seep_report_frame *frames, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        if (seep_where_is_user(&frames[i - 1])) {
            return i - 1;
        }
    }
    return 0;
}
