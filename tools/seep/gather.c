/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From paths to reports. Invariant: one file that cannot be read costs one
 * line and the exit code, never the reports of the others.
 */
#include "gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "words.h"

static void refuse(struct seep_gathering *gathering, const char *path,
                   const struct seep_refusal *refusal, int error)
{
    gathering->refused_count++;
    if (*refusal->reason != '\0') {
        seep_say(path, refusal->reason, refusal->remedy);
    } else {
        seep_say(path, strerror(-error), "see whether it can be read");
    }
}

static void open_one(struct seep_gathering *gathering, const char *path,
                     const struct seep_report_options *options)
{
    struct seep_refusal refusal = {0};
    struct seep_report **grown =
        reallocarray(gathering->reports, gathering->count + 1, sizeof(*grown));

    if (grown == NULL) {
        refuse(gathering, path, &refusal, -ENOMEM);
        return;
    }
    gathering->reports = grown;
    int error = seep_report_open(path, options, &refusal,
                                 &gathering->reports[gathering->count]);
    if (error < 0) {
        refuse(gathering, path, &refusal, error);
    } else {
        gathering->count++;
    }
}

static double growth_of(const struct seep_report *report)
{
    return report->verdict.has_growth ? report->verdict.growth_bytes_per_s.low
                                      : 0;
}

static double live_of(const struct seep_report *report)
{
    double live = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        live += (double)report->spaces[i].live_bytes;
    }
    return live;
}

static int descending(double a, double b)
{
    return (a < b) - (a > b);
}

int seep_gather_compare(const struct seep_report *a,
                        const struct seep_report *b)
{
    int order = (int)seep_words_is_brief(a) - (int)seep_words_is_brief(b);

    if (order == 0) {
        order = (a->verdict.class > b->verdict.class) -
                (a->verdict.class < b->verdict.class);
    }
    if (order == 0) {
        order = descending(growth_of(a), growth_of(b));
    }
    if (order == 0) {
        order = descending(live_of(a), live_of(b));
    }
    return order != 0 ? order : strcmp(a->path, b->path);
}

static int compare_pointers(const void *a, const void *b)
{
    return seep_gather_compare(*(struct seep_report *const *)a,
                               *(struct seep_report *const *)b);
}

void seep_gather(char *const *paths, size_t path_count,
                 const struct seep_report_options *options,
                 struct seep_gathering *ret_gathering)
{
    struct seep_gathering gathering = {0};

    for (size_t i = 0; i < path_count; i++) {
        struct seep_refusal refusal = {0};
        char **found;
        int error = seep_report_list(paths[i], &refusal, &found);
        if (error < 0) {
            refuse(&gathering, paths[i], &refusal, error);
            continue;
        }
        for (char **path = found; *path != NULL; path++) {
            open_one(&gathering, *path, options);
        }
        seep_report_list_free(found);
    }
    if (gathering.count > 1) {
        qsort(gathering.reports, gathering.count, sizeof(*gathering.reports),
              compare_pointers);
    }
    *ret_gathering = gathering;
}

void seep_gather_close(struct seep_gathering *gathering)
{
    for (size_t i = 0; i < gathering->count; i++) {
        seep_report_close(gathering->reports[i]);
    }
    free(gathering->reports);
}

int seep_gather_exit(const struct seep_gathering *gathering)
{
    return gathering->refused_count > 0 ? SEEP_EXIT_FAILED : SEEP_EXIT_FINE;
}

size_t seep_gather_held(const struct seep_gathering *gathering)
{
    size_t count = 0;

    while (count < gathering->count &&
           !seep_words_is_brief(gathering->reports[count])) {
        count++;
    }
    return count > 0 ? count : gathering->count;
}
