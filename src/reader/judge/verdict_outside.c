/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where that lies which grows outside of call sites: in what one of them
 * allocated before and uses only now, as a buffer that fills or the arena of an
 * allocator of the program's own; or in the pool of a library's allocator.
 *
 * Invariant: it is said of a site only if what was seen to fill of its blocks
 * is most of what grows outside of call sites; and never that it is no leak,
 * since what is put into a block is seen by nobody.
 */
#include <math.h>
#include <stdio.h>

#include "reader/judge/verdict.h"

/* Whoever mapped most of what is resident of what was mapped. */
static const struct seep_report_site *
find_mapping(const struct seep_verdict_input *input)
{
    const struct seep_report_site *found = NULL;

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_report_site *site = &input->works[i].site;

        if (site->space == SEEP_SPACE_MAPPED && site->touched_bytes > 0 &&
            site->suppressed_by == NULL &&
            (found == NULL || site->touched_bytes > found->touched_bytes)) {
            found = site;
        }
    }
    return found;
}

/* As seen from outside, mapping by mapping; else as the process saw what of all
 * its mappings is resident. */
static struct seep_verdict_fill
find_fill(const struct seep_verdict_input *input)
{
    const struct seep_balance_outside *outside = &input->outside;
    struct seep_verdict_fill fill = input->fill;

    if (fill.site != NULL &&
        fill.bytes_per_s >=
            SEEP_VERDICT_MOSTLY * outside->bytes_per_s.estimate) {
        return fill;
    }
    fill = (struct seep_verdict_fill){.site = NULL};
    if (outside->mapped_growth_bytes >=
        SEEP_VERDICT_MOSTLY * outside->growth_bytes) {
        fill.site = find_mapping(input);
    }
    if (fill.site != NULL) {
        fill.used_bytes = fill.site->touched_bytes;
        fill.of_bytes = (double)fill.site->live_bytes;
    }
    return fill;
}

bool seep_verdict_fills(const struct seep_verdict_input *input,
                        struct seep_report_verdict *verdict,
                        struct seep_verdict_now *ret_now)
{
    const struct seep_verdict_fill fill = find_fill(input);

    if (fill.site == NULL || fill.site->pool != NULL) {
        return false;
    }
    verdict->class = SEEP_VERDICT_UNEXPLAINED;
    verdict->reason =
        fill.site->space == SEEP_SPACE_MAPPED
            ? "the mapping was recorded, but not what is put into it: it may be the arena of an allocator of its own, or a buffer that fills"
            : "it was allocated before and is written to only now, by whom no hook sees: it may be a buffer or a cache that fills";
    verdict->growing_count = 1;
    verdict->fills_used_bytes = fmin(fill.used_bytes, fill.of_bytes);
    verdict->fills_of_bytes = fill.of_bytes;
    snprintf(verdict->first_id, sizeof(verdict->first_id), "%s", fill.site->id);
    ret_now->left_bytes = fill.of_bytes - verdict->fills_used_bytes;
    ret_now->ends = true;
    return true;
}

/* It is memory, and nobody else gives it back. */
struct seep_verdict_now
seep_verdict_open_files(const struct seep_verdict_input *input,
                        struct seep_report_verdict *verdict)
{
    verdict->class = SEEP_VERDICT_UNEXPLAINED;
    verdict->reason =
        "what is written to a file without a name (a memfd, one of a tmpfs that was removed) is memory until its last descriptor is closed";
    verdict->has_growth = true;
    verdict->growth_bytes_per_s = input->open_files_drift.bytes_per_s;
    verdict->open_files = true;
    return (struct seep_verdict_now){
        .basis = SEEP_FORECAST_GROWS,
        .bytes_per_s = input->open_files_drift.bytes_per_s,
    };
}

void seep_verdict_unexplained(const struct seep_balance_outside *outside,
                              bool all_recorded,
                              struct seep_report_verdict *verdict)
{
    verdict->class = SEEP_VERDICT_UNEXPLAINED;
    verdict->unseen =
        all_recorded && outside->unseen_growth_bytes >=
                            SEEP_VERDICT_MOSTLY * outside->growth_bytes;
    if (!all_recorded) {
        verdict->reason =
            "resident memory grows, and so many events were not recorded that it may be live blocks";
    } else if (verdict->unseen) {
        verdict->reason =
            "resident memory grows, and the allocator has ever more blocks in use that no hook saw: something calls it past the preload, as a library does that was loaded with RTLD_DEEPBIND";
    } else if (outside->has_overhead) {
        verdict->reason =
            "resident memory grows, and neither live blocks nor the allocator account for it";
    } else {
        verdict->reason =
            "resident memory grows and live blocks do not; how much the allocator keeps is unknown";
    }
}

const struct seep_site_work *
seep_verdict_pool(const struct seep_verdict_input *input)
{
    const struct seep_site_work *found = NULL;
    double most = 0;

    for (size_t i = 0; i < input->count; i++) {
        const struct seep_site_work *work = &input->works[i];
        const struct seep_report_site *site = &work->site;
        double rise;

        if (site->pool == NULL || site->suppressed_by != NULL ||
            site->known_bound_bytes > 0) {
            continue;
        }
        rise = fmax(
            0, seep_verdict_rise_of(input, work, input->private_drift.from_s));
        if (found == NULL || rise > most ||
            (rise == most && site->live_bytes > found->site.live_bytes)) {
            found = work;
            most = rise;
        }
    }
    return found;
}

/* By what lies elsewhere: a pool may be mapped long before it is touched. */
double seep_verdict_pool_rise(const struct seep_verdict_input *input,
                              const struct seep_site_work *pool)
{
    const struct seep_drift *drift = &input->private_drift;
    double rest = drift->growth_bytes;

    if (pool == NULL) {
        return 0;
    }
    if (input->outside.has_overhead) {
        rest -= fmax(0, input->outside.overhead_growth_bytes);
    }
    for (size_t i = 0; i < input->count; i++) {
        const struct seep_report_site *site = &input->works[i].site;

        if (site->pool == NULL && seep_sites_space_is_judged(site->space) &&
            seep_sites_place_of(site) == SEEP_PLACE_HOST) {
            rest -= fmax(0, seep_verdict_rise_of(input, &input->works[i],
                                                 drift->from_s));
        }
    }
    return fmax(0, fmin(rest, (double)pool->site.live_bytes));
}

bool seep_verdict_is_in_pool(const struct seep_verdict_input *input,
                             const struct seep_site_work *pool)
{
    const struct seep_balance_outside *outside = &input->outside;

    return pool != NULL &&
           (double)pool->site.live_bytes >= outside->growth_bytes &&
           input->stray_bytes_per_s <
               SEEP_VERDICT_MOSTLY * outside->bytes_per_s.estimate;
}
