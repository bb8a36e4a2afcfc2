/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A single frame for scripts. Invariant: what cannot be read costs a line on
 * stderr and the exit code, never what can be.
 */
#include "top_once.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "follow_find.h"
#include "gather.h"
#include "say.h"
#include "top_frame.h"
#include "view_json.h"

/* Paths of all that is meant, a process id among them. */
static char **find_all(char *const *words, size_t count, size_t *ret_count,
                       bool *ret_refused)
{
    char **all = NULL;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        struct seep_refusal refusal = {0};
        char **found = NULL;
        int error = seep_follow_find(words[i], &refusal, &found);
        size_t more = 0;

        while (error == 0 && found[more] != NULL) {
            more++;
        }
        if (error < 0 || more == 0) {
            seep_say(words[i],
                     *refusal.reason != '\0' ? refusal.reason
                                             : strerror(-error),
                     refusal.remedy);
            *ret_refused = true;
        }
        char **grown = reallocarray(all, total + more + 1, sizeof(*grown));
        if (grown != NULL) {
            all = grown;
            for (size_t j = 0; j < more; j++) {
                all[total++] = found[j];
            }
            free(found); /* the texts in it are ours now */
        } else {
            seep_report_list_free(found);
        }
    }
    if (all != NULL) {
        all[total] = NULL;
    }
    *ret_count = total;
    return all;
}

static int print_frame(const struct seep_gathering *gathering,
                       const struct seep_top_arguments *arguments)
{
    struct seep_top_model model;
    struct seep_top_frame frame;
    struct seep_page page;

    seep_page_init(&page, stdout, arguments->color);
    const struct seep_top_size size = {.columns = page.columns,
                                       .rows = arguments->row_limit};
    seep_top_model_init(&model, arguments->interval_s);
    model.sort = arguments->sort;
    snprintf(model.filter, sizeof(model.filter), "%s", arguments->filter);
    seep_top_model_take(&model,
                        (const struct seep_report *const *)gathering->reports,
                        gathering->count);
    int error = seep_top_frame_make(&model, &size, &frame);
    if (error == 0) {
        seep_top_frame_print(&frame, stdout, page.color);
        seep_top_frame_fini(&frame);
    }
    seep_top_model_fini(&model);
    return error;
}

static int print_json(const struct seep_gathering *gathering,
                      const struct seep_top_arguments *arguments)
{
    const struct seep_json_options json = {
        .catalogue = arguments->knowledge.catalogue,
    };

    return seep_view_json_reports(
        stdout, (const struct seep_report *const *)gathering->reports,
        gathering->count, gathering->refused_count, &json);
}

int seep_top_once(char *const *words, size_t count,
                  const struct seep_top_arguments *arguments)
{
    struct seep_report_options report = arguments->report;
    struct seep_gathering gathering;
    bool refused = false;
    size_t path_count;
    char **paths = find_all(words, count, &path_count, &refused);
    int error = 0;

    if (arguments->json || arguments->row_limit == 0 ||
        arguments->row_limit > report.site_limit) {
        report.site_limit = 0;
    }
    seep_gather(paths, path_count, &report, &gathering);
    int code = refused ? SEEP_EXIT_FAILED : seep_gather_exit(&gathering);
    if (arguments->json) {
        error = print_json(&gathering, arguments);
    } else if (gathering.count > 0) {
        error = print_frame(&gathering, arguments);
    }
    seep_gather_close(&gathering);
    seep_report_list_free(paths);
    return error < 0 ? SEEP_EXIT_FAILED : code;
}
