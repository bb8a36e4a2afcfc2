/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a row's largest stack to frames with names, and the row's name.
 *
 * Invariant: every row that is listed has an id, a name and a thread's name,
 * also where it has no frames.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/report_build.h"
#include "reader/report_group_name.h"
#include "reader/report_names.h"
#include "reader/where.h"

#define WHERE_BYTES 512U

/* The site at hand. */
struct naming {
    struct seep_report_build *build;
    struct seep_report_frame *frames; /* SEEP_NAMES_FRAMES_MAX */
    size_t frame_count;
};

static void add_stack(struct naming *naming, struct seep_report_site *site,
                      uint32_t index)
{
    struct seep_names_stack stack;

    seep_names_stack(naming->build, index, &stack);
    site->cut = stack.cut;
    site->thread = stack.thread;
    for (uint32_t i = 0;
         i < stack.count && naming->frame_count < SEEP_NAMES_FRAMES_MAX; i++) {
        naming->frame_count += seep_names_frames(
            naming->build, stack.words[i], naming->frames + naming->frame_count,
            SEEP_NAMES_FRAMES_MAX - naming->frame_count);
    }
}

static int finish_site(struct naming *naming, struct seep_report_site *site,
                       const struct seep_site_work *work)
{
    struct seep_store *store = &naming->build->store;
    struct seep_report_frame *frames =
        seep_store_take(store, naming->frame_count, sizeof(*frames));
    char where[WHERE_BYTES];

    if (frames == NULL) {
        return -ENOMEM;
    }
    memcpy(frames, naming->frames, naming->frame_count * sizeof(*frames));
    site->frames = frames;
    site->frame_count = naming->frame_count;
    snprintf(site->id, sizeof(site->id), "%016llx",
             (unsigned long long)work->id);
    if (work->line_id != 0) {
        snprintf(site->line_id, sizeof(site->line_id), "%016llx",
                 (unsigned long long)work->line_id);
    }
    if (naming->frame_count == 0) {
        site->where = work->index != 0 ? "a call site without frames"
                                       : "no call site: the tables were full";
        return 0;
    }
    site->where_frame = seep_where_pick(frames, naming->frame_count);
    seep_name_row(naming->build->report.by, site, where, sizeof(where));
    site->where = seep_store_text(store, where);
    return site->where != NULL ? 0 : -ENOMEM;
}

int seep_report_add_frames(struct seep_report_build *build,
                           struct seep_report_site *sites, size_t count)
{
    struct naming naming = {.build = build};
    int error = 0;

    naming.frames = calloc(SEEP_NAMES_FRAMES_MAX, sizeof(*naming.frames));
    if (naming.frames == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        const struct seep_site_work *work = &build->sites.works[i];

        naming.frame_count = 0;
        add_stack(&naming, &sites[i], work->index);
        error = finish_site(&naming, &sites[i], work);
    }
    free(naming.frames);
    return error;
}
