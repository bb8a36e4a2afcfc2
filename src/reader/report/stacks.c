/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks of a recording, each by itself: what flame graphs are made of.
 *
 * Invariant: the stacks of a row are its members, so that their sums are the
 * row's figures.
 */
#include <errno.h>
#include <stdlib.h>

#include "reader/report/build.h"

/* The place among the report's rows of each site of the recording, by its
 * index in SITES, + 1; 0: it is in none of them. */
static size_t *rows_of(const struct seep_report_build *build)
{
    const struct seep_sites *sites = &build->sites;
    uint32_t capacity = build->snapshot.view.site_capacity;
    size_t *row_of = calloc((size_t)capacity + 1, sizeof(*row_of));

    for (size_t i = 0; row_of != NULL && i < build->report.site_count; i++) {
        row_of[build->report.sites[i].entry] = i + 1;
    }
    for (size_t i = 0; row_of != NULL && i < sites->count; i++) {
        const struct seep_site_work *work = &sites->works[i];
        size_t row = row_of[work->index];

        for (size_t j = 0; j < work->member_count; j++) {
            row_of[sites->members[work->member_first + j].index] = row;
        }
    }
    return row_of;
}

#define NAMED_AT_ONCE 1024 /* a second copy of all would be much */

static int name_some(struct seep_report_build *build,
                     const struct seep_site_work *works,
                     struct seep_report_stack *stacks, size_t count)
{
    struct seep_report_site *named = calloc(count + 1, sizeof(*named));
    int error = named == NULL ? -ENOMEM : 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        named[i] = works[i].site;
        named[i].entry = works[i].index;
        error = seep_report_add_points(build, &works[i], &named[i]);
    }
    if (error == 0) {
        error = seep_report_name_sites(build, works, named, count);
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        stacks[i].site = named[i];
    }
    free(named);
    return error;
}

/* The rows of @build are some of the stacks, now. */
static int name_stacks(struct seep_report_build *build,
                       struct seep_report_stack *stacks)
{
    const struct seep_sites *sites = &build->sites;
    int error = 0;

    for (size_t i = 0; error == 0 && i < sites->count; i += NAMED_AT_ONCE) {
        size_t left = sites->count - i;

        error = name_some(build, &sites->works[i], &stacks[i],
                          left < NAMED_AT_ONCE ? left : NAMED_AT_ONCE);
    }
    return error;
}

static size_t count_stacks(const struct seep_view *view)
{
    size_t count = 0;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        count += seep_sites_is_used(&view->sites[i], i);
    }
    return count;
}

static int add_stacks(struct seep_report_build *build, const size_t *row_of)
{
    const struct seep_view *view = &build->snapshot.view;
    size_t most = count_stacks(view);
    struct seep_report_stack *stacks =
        seep_store_take(&build->store, most, sizeof(*stacks));
    size_t count = 0;
    int error = stacks == NULL ? -ENOMEM : 0;

    for (uint32_t first = 0;
         error == 0 && first < view->site_capacity && count < most;
         first += SEEP_SITES_AT_ONCE) {
        seep_sites_fini(&build->sites);
        error = seep_sites_sum(&build->snapshot, &build->clock, first,
                               &build->sites);
        error = error == 0 ? name_stacks(build, &stacks[count]) : error;
        count += build->sites.count;
    }
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        size_t row = row_of[stacks[i].site.entry];

        stacks[i].row = row == 0 ? SIZE_MAX : row - 1;
    }
    build->report.stacks = stacks;
    build->report.stack_count = count;
    return 0;
}

/* What was judged is in the report: its rows make room for the stacks. */
int seep_report_add_stacks(struct seep_report_build *build)
{
    size_t *row_of;
    int error;

    if (build->options == NULL || !build->options->stacks) {
        return 0;
    }
    row_of = rows_of(build);
    if (row_of == NULL) {
        return -ENOMEM;
    }
    error = add_stacks(build, row_of);
    free(row_of);
    return error;
}
