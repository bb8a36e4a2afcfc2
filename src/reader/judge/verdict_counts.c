/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The call sites of a process, added up by what the verdict makes of them.
 *
 * Invariant: a site counts in one tally at most, a suppressed one in its own;
 * leaks and suspects of memory in that of both as well.
 */
#include <math.h>
#include <string.h>

#include "reader/judge/verdict.h"

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

/* The first of a group stands for it: the others are in step with it, and what
 * a line lent grows at the line that keeps it. */
static void add_to_first(struct seep_verdict_tally *tally,
                         const struct seep_report_site *site)
{
    if (site->has_growth && tally->count > 0 && *site->group_id != '\0' &&
        strcmp(tally->id, site->group_id) == 0) {
        tally->first += site->growth_bytes_per_s.estimate;
    }
}

static void add_to_tally(struct seep_verdict_tally *tally,
                         const struct seep_report_site *site)
{
    if (site->has_growth) {
        add_growth(tally, site);
    }
    add_to_first(tally, site);
    if (tally->count == 0) {
        tally->first = tally->estimate;
        tally->reason = site->class_reason != NULL ? site->class_reason : "";
        tally->id = *site->group_id != '\0' ? site->group_id : site->id;
    }
    if (site->role == SEEP_ROLE_HEAD && strcmp(tally->id, site->id) == 0 &&
        site->class_reason != NULL) {
        tally->reason = site->class_reason;
    }
    tally->count++;
    tally->parts[seep_sites_place_of(site)].count++;
}

bool seep_verdict_is_proved(const struct seep_verdict_tally *leak)
{
    return leak->count > 0 &&
           (leak->estimate <= 0 || leak->estimate > sqrt(leak->squares));
}

/* Born after the start, and live: at most so much did a site rise by. */
static double rise_of(const struct seep_report_site *site)
{
    return seep_growth_sum(site->window_bytes, 1, SEEP_GROWTH_WINDOWS);
}

/* What a row shows of itself, whatever its class is. */
static bool surely_grew(const struct seep_report_site *site)
{
    return site->has_growth && site->growth_bytes_per_s.low > 0;
}

static bool is_material(const struct seep_report_site *site, double duration_s,
                        double floor_bytes)
{
    return surely_grew(site) &&
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

static void count_leak(struct seep_verdict_counts *counts,
                       const struct seep_report_site *site)
{
    bool is_file = seep_sites_place_of(site) == SEEP_PLACE_FILE;

    add_to_tally(is_file ? &counts->file_leak : &counts->leak, site);
    if (!is_file) {
        add_to_tally(&counts->either, site);
    }
    if (surely_grew(site)) {
        add_to_tally(is_file ? &counts->sure_file_leak : &counts->sure_leak,
                     site);
    }
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

/* Called improbable where it would be seen once in 20 such runs. */
#define LN_PAUSE (-2.995732274)

/* The test of the site tells how improbable its pause is; where it does not
 * tell, the class is all there is. */
static bool is_pausing(const struct seep_report_site *site)
{
    bool may_go_on = site->stopped_since_s > 0 && site->stopped_ln_p > LN_PAUSE;

    return may_go_on || site->in_steps || site->in_bursts;
}

static void count_filled(struct seep_verdict_counts *counts,
                         const struct seep_report_site *site, double rise,
                         double duration_s, double floor_bytes)
{
    if (!(rise >= floor_bytes)) {
        return;
    }
    if (is_pausing(site) && site->known_bound_bytes == 0) {
        if (counts->unstopped.count == 0) {
            counts->unstopped_in_steps = site->in_steps;
            counts->unstopped_ln_p = site->stopped_ln_p;
            counts->unstopped_gap_s =
                fmax(0, duration_s - site->stopped_since_s);
            counts->unstopped_next_s = fmax(0, site->step_next_s - duration_s);
        }
        add_to_tally(&counts->unstopped, site);
        return;
    }
    add_to_tally(&counts->filled, site);
    if (rise > counts->filled_bytes) {
        counts->filled_bytes = rise;
        counts->filled_tested = site->stopped_since_s > 0;
        counts->filled.id = site->id;
    }
}

/* A cache that is full, and evicts: it grew, by what was kept in each part of
 * the run, and its live bytes stand. */
static bool filled_and_is_replaced(const struct seep_site_work *work)
{
    return work->growth.flat && work->growth.rate.low > 0;
}

/* Of what has no growth of its own: unknown, rising, or full and replaced. */
static void count_rest(struct seep_verdict_counts *counts,
                       const struct seep_site_work *work,
                       const struct seep_verdict_input *input,
                       double floor_bytes)
{
    const struct seep_report_site *site = &work->site;
    unsigned place = seep_sites_place_of(site);
    double large_bytes = LARGE_SHARE * (double)input->live_bytes[place];
    double stood_bytes = work->growth.stood_bytes;

    if (site->class == SEEP_CLASS_INSUFFICIENT && place == SEEP_PLACE_HOST) {
        counts->unknown_bytes += (double)site->live_bytes;
    }
    if (site->known_bound_bytes == 0 && surely_grew(site)) {
        add_to_tally(&counts->rising, site);
    } else if (filled_and_is_replaced(work)) {
        count_filled(counts, site, fmax(rise_of(site), stood_bytes),
                     input->duration_s, floor_bytes);
    } else {
        count_filled(counts, site, stood_bytes, input->duration_s,
                     fmax(floor_bytes, large_bytes));
    }
}

static void count_suspect(struct seep_verdict_counts *counts,
                          const struct seep_report_site *site)
{
    if (seep_sites_place_of(site) == SEEP_PLACE_FILE) {
        add_to_tally(&counts->file_suspect, site);
    } else {
        add_to_tally(&counts->suspect, site);
        add_to_tally(&counts->either, site);
    }
}

/* Nothing of it is more than the floor, and it is seen to grow all the same; a
 * step of one block is not known to be growth. */
static void count_little(struct seep_verdict_counts *counts,
                         const struct seep_report_site *site)
{
    if (seep_sites_place_of(site) == SEEP_PLACE_HOST && surely_grew(site) &&
        !site->in_steps && site->known_bound_bytes == 0) {
        add_to_tally(&counts->little, site);
    }
}

static void count_class(struct seep_verdict_counts *counts,
                        const struct seep_site_work *work,
                        const struct seep_verdict_input *input)
{
    const struct seep_report_site *site = &work->site;
    unsigned place = seep_sites_place_of(site);
    uint64_t live_bytes = input->live_bytes[place];
    double floor_bytes = seep_sites_floor_bytes(live_bytes);
    double worked_s = seep_verdict_worked_s(input);
    bool material = is_material(site, worked_s, floor_bytes);
    bool large = is_large(site, worked_s,
                          fmax((double)live_bytes, floor_bytes / LARGE_SHARE));

    switch (site->class) {
    case SEEP_CLASS_LEAK:
        count_leak(counts, site);
        break;
    case SEEP_CLASS_SUSPECT:
    case SEEP_CLASS_AGING:
        if (site->leaks_in_step) {
            count_leak(counts, site);
        } else if (material || large) {
            count_suspect(counts, site);
        } else {
            counts->doubtful++;
            count_little(counts, site);
        }
        break;
    case SEEP_CLASS_WARMING:
        if (material && slows_doubtfully(work)) {
            count_suspect(counts, site);
        } else {
            count_filling(counts, site,
                          material || rise_of(site) >= floor_bytes);
        }
        break;
    case SEEP_CLASS_PLATEAU:
    case SEEP_CLASS_STEP:
        count_filled(counts, site, rise_of(site), input->duration_s,
                     floor_bytes);
        break;
    case SEEP_CLASS_MINOR:
        add_to_tally(&counts->minor, site);
        count_little(counts, site);
        break;
    case SEEP_CLASS_BACKING: /* grows with what is in it */
        break;
    default:
        count_rest(counts, work, input, floor_bytes);
        break;
    }
}

/* What one leak is sure to grow by, another one of which that is not known does
 * not take back. */
static void leave_unsure(struct seep_verdict_tally *leak,
                         const struct seep_verdict_tally *sure)
{
    if (sure->count > 0 && !(leak->estimate > sqrt(leak->squares))) {
        *leak = *sure;
    }
}

static void count_lent(struct seep_verdict_tally *leak,
                       const struct seep_report_site *site)
{
    add_growth(leak, site);
    add_to_first(leak, site);
}

/* A row that shows how fast it may grow cannot be told to grow by less. */
static double possible_of(const struct seep_report_site *site)
{
    bool counts = site->has_growth && site->known_bound_bytes == 0 &&
                  site->class != SEEP_CLASS_BACKING &&
                  seep_sites_place_of(site) == SEEP_PLACE_HOST;

    return counts ? site->growth_bytes_per_s.high : 0;
}

void seep_verdict_count(const struct seep_verdict_input *input,
                        struct seep_verdict_counts *ret_counts)
{
    memset(ret_counts, 0, sizeof(*ret_counts));
    for (size_t i = 0; i < input->count; i++) {
        const struct seep_report_site *site = &input->works[i].site;

        if (!seep_sites_space_is_judged(site->space)) {
            continue;
        }
        if (site->suppressed_by == NULL) {
            ret_counts->grew += site->known_bound_bytes == 0 &&
                                site->class != SEEP_CLASS_BACKING &&
                                surely_grew(site);
            ret_counts->possible_bytes_per_s =
                fmax(ret_counts->possible_bytes_per_s, possible_of(site));
            count_class(ret_counts, &input->works[i], input);
        } else if (seep_class_may_leak(site->class)) {
            add_to_tally(&ret_counts->suppressed, site);
        }
    }
    /* What was lent: its keeper is a leak, and in the tally by now. */
    for (size_t i = 0; i < input->count; i++) {
        const struct seep_report_site *site = &input->works[i].site;

        if (site->role == SEEP_ROLE_LENDER &&
            site->class == SEEP_CLASS_BACKING) {
            count_lent(&ret_counts->leak, site);
            count_lent(&ret_counts->either, site);
            if (surely_grew(site)) {
                count_lent(&ret_counts->sure_leak, site);
            }
        }
    }
    leave_unsure(&ret_counts->leak, &ret_counts->sure_leak);
    leave_unsure(&ret_counts->file_leak, &ret_counts->sure_file_leak);
}

const char *seep_verdict_why_steady(const struct seep_verdict_counts *counts)
{
    if (counts->minor.count + counts->doubtful + counts->grew > 0) {
        return counts->suppressed.count > 0
                   ? "what is not suppressed grows too little for a verdict"
                   : "its growth is too small for a verdict";
    }
    return counts->suppressed.count > 0 ? "all growth is suppressed"
                                        : "no call site grows";
}

/* What of @site was born from @from_s on, and lives. In the last tenth it may
 * be what is on its way only. */
static double late_rise_of(const struct seep_verdict_input *input,
                           const struct seep_report_site *site, double from_s)
{
    double sum = 0;

    for (int i = 1; i + 1 < SEEP_GROWTH_WINDOWS; i++) {
        if (seep_window_time_at(input->began_s, input->duration_s,
                                (i + 1.0) / SEEP_GROWTH_WINDOWS) > from_s) {
            sum += site->window_bytes[i];
        }
    }
    return fmin(sum, (double)site->live_bytes);
}

/* Blocks that are reallocated are always young: by its live bytes, if known. */
double seep_verdict_rise_of(const struct seep_verdict_input *input,
                            const struct seep_site_work *work, double from_s)
{
    return from_s > 0 && work->has_late_rise
               ? work->late_rise_bytes
               : late_rise_of(input, &work->site, from_s);
}

const struct seep_report_site *
seep_verdict_most(const struct seep_verdict_input *input, double from_s,
                  double *ret_rise)
{
    const struct seep_report_site *found = NULL;

    *ret_rise = 0;
    for (size_t i = 0; i < input->count; i++) {
        const struct seep_report_site *site = &input->works[i].site;
        double rise = seep_verdict_rise_of(input, &input->works[i], from_s);

        if (seep_sites_space_is_judged(site->space) &&
            seep_sites_place_of(site) == SEEP_PLACE_HOST &&
            site->pool == NULL && site->suppressed_by == NULL &&
            site->known_bound_bytes == 0 && rise > *ret_rise) {
            found = site;
            *ret_rise = rise;
        }
    }
    return found;
}

int seep_verdict_cache(const struct seep_verdict_input *input)
{
    int found = -1;
    double most = 0;

    for (int i = 0; i < (int)SEEP_DEVICES_MAX; i++) {
        if (input->caches[i].estimate > most) {
            most = input->caches[i].estimate;
            found = i;
        }
    }
    return found;
}

double seep_verdict_low_of(const struct seep_verdict_tally *tally)
{
    double low = 0;

    for (unsigned i = 0; i < SEEP_PLACE_COUNT; i++) {
        low += tally->parts[i].low;
    }
    return low;
}
