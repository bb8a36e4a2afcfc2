/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See verdict_counts.h. */
#include "reader/verdict_counts.h"

#include <math.h>
#include <string.h>

#define LARGE_SHARE 0.1 /* of the live bytes of the process */

static double half_of(const struct seep_interval *interval)
{
    return (interval->high - interval->low) / 2;
}

static void add_growth(struct seep_verdict_tally *tally,
                       const struct seep_report_site *site)
{
    struct seep_verdict_part *part = &tally->parts[seep_sites_place_of(site)];
    const struct seep_interval *rate = &site->growth_bytes_per_s;
    double half = half_of(rate);
    double pace = 0;

    if (rate->estimate > 0 && site->growth_now_bytes_per_s > 0) {
        pace = site->growth_now_bytes_per_s / rate->estimate;
    }
    tally->estimate += rate->estimate;
    tally->squares += half * half;
    part->estimate += rate->estimate;
    part->low += fmax(rate->low, 0);
    part->now += rate->estimate * pace;
    part->now_squares += half * pace * half * pace;
    if (site->has_growth_per_unit) {
        half = half_of(&site->growth_bytes_per_unit);
        tally->unit_count++;
        tally->unit_estimate += site->growth_bytes_per_unit.estimate;
        tally->unit_squares += half * half;
    }
}

static void add_to_tally(struct seep_verdict_tally *tally,
                         const struct seep_report_site *site)
{
    if (site->has_growth) {
        add_growth(tally, site);
    }
    if (tally->count == 0) {
        tally->first = tally->estimate;
        tally->reason = site->class_reason != NULL ? site->class_reason : "";
        tally->id = site->id;
    }
    tally->count++;
    tally->parts[seep_sites_place_of(site)].count++;
}

/* Born after the start, and live: at most so much did a site rise by. */
static double rise_of(const struct seep_report_site *site)
{
    double sum = 0;

    for (int i = 1; i < SEEP_GROWTH_WINDOWS; i++) {
        sum += site->window_bytes[i];
    }
    return sum;
}

static bool is_material(const struct seep_report_site *site, double duration_s,
                        double floor_bytes)
{
    return site->has_growth && site->growth_bytes_per_s.low > 0 &&
           site->growth_bytes_per_s.estimate * duration_s >= floor_bytes;
}

/* Of so much a suspect is one however wide its interval: not to be sure of its
 * rate is no reason to call the process steady. */
static bool is_large(const struct seep_report_site *site, double duration_s,
                     double live_bytes)
{
    return site->class == SEEP_CLASS_SUSPECT && site->has_growth &&
           site->growth_bytes_per_s.estimate * duration_s >=
               LARGE_SHARE * live_bytes;
}

static void count_filling(struct seep_verdict_counts *counts,
                          const struct seep_report_site *site, bool material)
{
    double left = INFINITY;

    if (site->known_bound_bytes > 0) {
        left = (double)site->known_bound_bytes - (double)site->live_bytes;
        counts->known++;
    }
    if (material) {
        add_to_tally(&counts->filling, site);
        if (seep_sites_place_of(site) == SEEP_PLACE_HOST) {
            counts->bound_left_bytes += fmax(left, 0);
        }
    }
}

/* Nearer to a steady rate than to the slowing of a cache that fills: one leak
 * of 20 with 200 to 400 survivors looks so by chance. */
static bool slows_doubtfully(const struct seep_site_work *work)
{
    return work->site.known_bound_bytes == 0 && work->growth.zs > 0;
}

static void count_site(struct seep_verdict_counts *counts,
                       const struct seep_site_work *work,
                       const struct seep_verdict_input *input)
{
    const struct seep_report_site *site = &work->site;
    unsigned place = seep_sites_place_of(site);
    uint64_t live_bytes = input->live_bytes[place];
    double floor_bytes = seep_sites_floor_bytes(live_bytes);
    bool material = is_material(site, input->duration_s, floor_bytes);
    bool large = is_large(site, input->duration_s,
                          fmax((double)live_bytes, floor_bytes / LARGE_SHARE));

    if (!seep_sites_space_is_judged(site->space)) {
        return;
    }
    if (site->suppressed_by != NULL) {
        if (seep_class_may_leak(site->class)) {
            add_to_tally(&counts->suppressed, site);
        }
        return;
    }
    switch (site->class) {
    case SEEP_CLASS_LEAK:
        add_to_tally(&counts->leak, site);
        break;
    case SEEP_CLASS_SUSPECT:
    case SEEP_CLASS_AGING:
        if (material || large) {
            add_to_tally(&counts->suspect, site);
        } else {
            counts->doubtful++;
        }
        break;
    case SEEP_CLASS_WARMING:
        if (material && slows_doubtfully(work)) {
            add_to_tally(&counts->suspect, site);
        } else {
            count_filling(counts, site,
                          material || rise_of(site) >= floor_bytes);
        }
        break;
    case SEEP_CLASS_PLATEAU:
    case SEEP_CLASS_STEP:
        if (rise_of(site) >= floor_bytes) {
            add_to_tally(&counts->filled, site);
        }
        break;
    case SEEP_CLASS_MINOR:
        add_to_tally(&counts->minor, site);
        break;
    case SEEP_CLASS_INSUFFICIENT:
        if (place == SEEP_PLACE_HOST) {
            counts->untold_bytes += (double)site->live_bytes;
        }
        break;
    default:
        break;
    }
}

void seep_verdict_count(const struct seep_verdict_input *input,
                        struct seep_verdict_counts *ret_counts)
{
    memset(ret_counts, 0, sizeof(*ret_counts));
    for (size_t i = 0; i < input->count; i++) {
        count_site(ret_counts, &input->works[i], input);
    }
}
