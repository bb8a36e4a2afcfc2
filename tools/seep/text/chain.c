/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call site in one line: the user's frame, then "> what it called" down to
 * the allocation, then "< who called it". Of a stack with Python frames the
 * native ones between them are the machinery: a run of them is named by the
 * frame that speaks for it, and outside of the user's by its object alone.
 *
 * Invariant: no name stands twice in a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/symbols/where.h"
#include "text/report.h"
#include "words/frames.h"
#include "words/words.h"

#define INNER 3 /* links, of a stack without Python */
#define OUTER 6
#define LINKS_MAX 256U /* more than a stack has frames that are not inlined */

/* Names in a row, each different from the one before it. */
struct links {
    char *names[LINKS_MAX];
    size_t count;
};

/* Takes @name. @return was it kept? */
static bool add_link(struct links *links, char *name)
{
    bool news = name != NULL && links->count < LINKS_MAX &&
                (links->count == 0 ||
                 strcmp(links->names[links->count - 1], name) != 0);

    if (news) {
        links->names[links->count++] = name;
    } else {
        free(name);
    }
    return news;
}

static void free_links(struct links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        free(links->names[i]);
    }
}

/* "json.loads", where the user's own file has no need of it. An import is no
 * news: what it runs is. */
static void add_python(struct links *links, const struct seep_report_site *site,
                       size_t i)
{
    const struct seep_report_frame *frame = site->frames[i];
    const struct seep_report_frame *user = site->frames[site->where_frame];
    bool same = user->python && strcmp(frame->file, user->file) == 0;

    if (!seep_fold_is_machinery(frame)) {
        add_link(links, same ? seep_words_frame(frame)
                             : seep_words_frame_with_file(frame));
    }
}

/* The native frames [@first, @end): who was called, and whose memory it is.
 * Between Python's frames the interpreter's own are no news. */
static void add_run(struct links *links, const struct seep_report_site *site,
                    size_t first, size_t end)
{
    const struct seep_report_frame **run = &site->frames[first];
    size_t speaker = seep_fold_speaker(run, end - first);

    if (first > 0 && !seep_where_is_user(run[speaker])) {
        return;
    }
    add_link(links, seep_words_frame(run[speaker]));
    for (size_t i = 0; first == 0 && i < speaker; i++) {
        if (seep_where_is_user(run[i])) {
            add_link(links, seep_words_object(run[i]));
            return;
        }
    }
    if (first == 0) {
        add_link(links, seep_words_object(run[speaker]));
    }
}

static size_t run_begin(const struct seep_report_site *site, size_t end)
{
    while (end > 0 && !site->frames[end - 1]->python) {
        end--;
    }
    return end;
}

/* The first thing that it called, and the last. */
static void put_inner(FILE *file, const struct seep_report_site *site)
{
    struct links links = {.count = 0};
    size_t begin;

    for (size_t i = site->where_frame; i > 0; i = begin) {
        begin = run_begin(site, i);
        if (begin < i) {
            add_run(&links, site, begin, i);
        } else {
            begin = i - 1;
            add_python(&links, site, begin);
        }
    }
    for (size_t i = 0; i < links.count; i++) {
        if (i == 0 || i + 1 == links.count) {
            fprintf(file, " > %s", links.names[i]);
        } else if (i == 1) {
            fputs(" > …", file);
        }
    }
    free_links(&links);
}

/* Native frames outside of all of Python's are the interpreter's start. */
static void put_outer(FILE *file, const struct seep_report_site *site)
{
    const struct seep_report_frame *user = site->frames[site->where_frame];
    struct links links = {.count = 0};
    size_t first = site->where_frame + 1;

    add_link(&links, seep_words_frame(user));
    for (size_t i = first; i < site->frame_count && links.count <= OUTER; i++) {
        if (site->frames[i]->python) {
            size_t speaker =
                seep_fold_speaker(&site->frames[first], i - first) + first;
            if (speaker < i && seep_where_is_user(site->frames[speaker])) {
                add_link(&links, seep_words_object(site->frames[speaker]));
            }
            add_python(&links, site, i);
            first = i + 1;
        }
    }
    for (size_t i = 1; i < links.count && i <= OUTER; i++) {
        fprintf(file, " < %s", links.names[i]);
    }
    free_links(&links);
}

/* Every frame by its name, where no Python frames tell more. */
static void put_native(FILE *file, const struct seep_report_site *site)
{
    struct links inner = {.count = 0};
    struct links outer = {.count = 0};
    size_t middle = site->where_frame;

    for (size_t i = 0; i < INNER && i < middle; i++) {
        add_link(&inner, seep_words_frame(site->frames[middle - 1 - i]));
    }
    for (size_t i = middle; i < site->frame_count && outer.count <= OUTER;
         i++) {
        add_link(&outer, seep_words_frame(site->frames[i]));
    }
    for (size_t i = 0; i < inner.count; i++) {
        fprintf(file, " > %s", inner.names[i]);
    }
    for (size_t i = 1; i < outer.count; i++) {
        fprintf(file, " < %s", outer.names[i]);
    }
    free_links(&inner);
    free_links(&outer);
}

/* Of what is more than one place, the one that holds the most. */
static void put_where(FILE *file, const struct seep_report *report,
                      const struct seep_report_site *site)
{
    char *where = seep_words_where(report, site);

    fputs(where == NULL ? "?" : where, file);
    free(where);
    if (report->by == SEEP_BY_THREAD ||
        report->by == (site->pool != NULL ? SEEP_BY_STACK : SEEP_BY_MODULE)) {
        char *user = seep_words_user_frame(site);
        fprintf(file, ": %s", user == NULL ? "?" : user);
        free(user);
    }
}

char *seep_view_sites_chain(const struct seep_report *report,
                            const struct seep_report_site *site)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    put_where(file, report, site);
    if (site->where_frame < site->frame_count &&
        (site->pool == NULL || report->by == SEEP_BY_STACK)) {
        if (seep_fold_has_python(site)) {
            put_inner(file, site);
            put_outer(file, site);
        } else {
            put_native(file, site);
        }
    }
    return seep_words_close(&text);
}
