/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One side of a diff: several processes as one; see diff.h.
 *
 * A rate is the bytes that all of them kept, by all of their time (or work):
 * a long run tells more than a short one. Their errors are independent.
 *
 * Invariant: a process that tells too little for a verdict adds neither bytes
 * nor time; in one that has a site not, it may have grown by what is never
 * sampled.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/check.h"
#include "reader/check_series.h"
#include "reader/diff.h"
#include "reader/sites.h"

/* A site of one process. */
struct entry {
    const struct seep_report *report;
    const struct seep_report_site *site;
};

static bool is_judged(const struct seep_report *report)
{
    return report->verdict.class != SEEP_VERDICT_INSUFFICIENT &&
           report->duration_s > 0;
}

static bool is_proved(const struct seep_report_site *site)
{
    return site->has_growth &&
           (site->class == SEEP_CLASS_LEAK || site->class == SEEP_CLASS_MINOR);
}

/* What was seen to stop, or to be given back, does not grow. */
static bool may_grow(const struct seep_report_site *site)
{
    return site->has_growth &&
           (is_proved(site) || seep_class_may_leak(site->class) ||
            site->class == SEEP_CLASS_WARMING ||
            site->class == SEEP_CLASS_AGING ||
            site->class == SEEP_CLASS_INSUFFICIENT);
}

/* Where nothing is known of its growth it is at most what is there. */
static struct seep_interval growth_of(const struct seep_report *report,
                                      const struct seep_report_site *site)
{
    double unseen = seep_check_unseen_bytes(report, (int)site->space);
    double most = (double)site->live_bytes + site->live_bytes_error + unseen;

    if (may_grow(site)) {
        return site->growth_bytes_per_s;
    }
    if (site->class != SEEP_CLASS_INSUFFICIENT &&
        site->class != SEEP_CLASS_LEAK) {
        most = unseen;
    }
    return (struct seep_interval){0, 0, most / report->duration_s};
}

static void add_bytes(struct seep_diff_sum *sum,
                      const struct seep_report *report,
                      const struct seep_interval *per_s)
{
    double seconds = report->duration_s;
    double below = (per_s->estimate - per_s->low) * seconds;
    double above = (per_s->high - per_s->estimate) * seconds;
    double rate = per_s->estimate;

    sum->bytes += rate * seconds;
    sum->below_squares += below * below;
    sum->above_squares += above * above;
    sum->rate_sum += rate;
    sum->rate_squares += rate * rate;
    if (report->units > 0) {
        double unit = rate * seconds / (double)report->units;

        sum->unit_sum += unit;
        sum->unit_squares += unit * unit;
    }
}

static struct seep_interval divided(const struct seep_diff_sum *sum,
                                    double divisor)
{
    return (struct seep_interval){
        sum->bytes / divisor,
        (sum->bytes - sqrt(sum->below_squares)) / divisor,
        (sum->bytes + sqrt(sum->above_squares)) / divisor,
    };
}

static void finish(const struct seep_diff_side *side,
                   struct seep_diff_site *site)
{
    static const struct seep_interval unknown = {0, 0, INFINITY};

    site->per_s =
        side->exposure_s > 0 ? divided(&site->sum, side->exposure_s) : unknown;
    site->per_unit =
        side->units > 0 ? divided(&site->sum, side->units) : unknown;
}

void seep_diff_side_absent(const struct seep_diff_side *side,
                           const struct seep_report_site *like,
                           struct seep_diff_site *ret_site)
{
    *ret_site = (struct seep_diff_site){.class = SEEP_CLASS_STEADY};
    for (size_t i = 0; i < side->count; i++) {
        double unseen =
            seep_check_unseen_bytes(side->reports[i], (int)like->space);

        if (is_judged(side->reports[i])) {
            ret_site->sum.above_squares += unseen * unseen;
        }
    }
    finish(side, ret_site);
}

/* Ordered as SEEP_CLASSES are: the first is the worst. */
static void add_entry(struct seep_diff_site *site, const struct entry *entry)
{
    struct seep_interval per_s = growth_of(entry->report, entry->site);

    if (site->site == NULL || entry->site->class < site->class ||
        (entry->site->class == site->class &&
         per_s.low > growth_of(site->report, site->site).low)) {
        site->site = entry->site;
        site->report = entry->report;
        site->class = entry->site->class;
    }
    site->process_count++;
    site->grows |= may_grow(entry->site);
    site->proved |= is_proved(entry->site);
    site->live_bytes += (double)entry->site->live_bytes;
    add_bytes(&site->sum, entry->report, &per_s);
}

static int compare_sites(const struct seep_report_site *a,
                         const struct seep_report_site *b)
{
    if (a->space != b->space) {
        return a->space < b->space ? -1 : 1;
    }
    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return strcmp(a->id, b->id);
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;

    return compare_sites(left->site, right->site);
}

/* The processes that have it not. */
static void add_others(const struct seep_diff_side *side,
                       const struct entry *entries, size_t count,
                       struct seep_diff_site *site)
{
    for (size_t i = 0; i < side->count; i++) {
        double unseen =
            seep_check_unseen_bytes(side->reports[i], (int)site->site->space);
        bool has = !is_judged(side->reports[i]);

        for (size_t k = 0; k < count && !has; k++) {
            has = entries[k].report == side->reports[i];
        }
        site->sum.above_squares += has ? 0 : unseen * unseen;
    }
}

static void pool(struct seep_diff_side *side, const struct entry *entries,
                 size_t count)
{
    size_t last;

    for (size_t first = 0; first < count; first = last) {
        struct seep_diff_site *site = &side->sites[side->site_count++];

        *site = (struct seep_diff_site){.site = NULL};
        for (last = first;
             last < count &&
             compare_sites(entries[first].site, entries[last].site) == 0;
             last++) {
            add_entry(site, &entries[last]);
        }
        add_others(side, &entries[first], last - first, site);
        site->live_bytes /= (double)side->judged_count;
        finish(side, site);
    }
}

/* Segments of a cache are told by what is in them. */
static bool counts(const struct seep_report_site *site)
{
    return seep_sites_space_is_judged(site->space) &&
           site->class != SEEP_CLASS_BACKING && site->where != NULL;
}

static size_t gather(struct seep_diff_side *side, struct entry *entries)
{
    size_t count = 0;

    for (size_t i = 0; i < side->count; i++) {
        const struct seep_report *report = side->reports[i];

        for (size_t k = 0; is_judged(report) && k < report->site_count; k++) {
            const struct seep_report_site *site = &report->sites[k];

            if (!counts(site)) {
                continue;
            }
            if (seep_check_is_excused(site)) {
                side->excused_count++;
            } else {
                entries[count++] = (struct entry){report, site};
            }
        }
    }
    return count;
}

static bool is_outside(enum seep_verdict_class class)
{
    return class == SEEP_VERDICT_UNEXPLAINED ||
           class == SEEP_VERDICT_FRAGMENTATION ||
           class == SEEP_VERDICT_RETENTION;
}

/* Of what is not told: what lies outside of call sites can grow by that. */
static struct seep_interval outside_of(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_interval most = {0, 0, INFINITY};

    if (memory->valid && memory->unexplained.valid) {
        const struct seep_report_extent *a = &memory->unexplained;
        const struct seep_report_extent *b = &memory->allocator_overhead;

        most.high = fmax(0, a->slope_bytes_per_s + b->slope_bytes_per_s) +
                    hypot(a->slope_error, b->slope_error);
    }
    return most;
}

static void add_verdict(struct seep_diff_side *side,
                        const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    bool outside = verdict->has_growth && is_outside(verdict->class);
    bool leaks = verdict->has_growth && verdict->class == SEEP_VERDICT_LEAK;
    bool grows = verdict->has_growth &&
                 (outside || verdict->class <= SEEP_VERDICT_SUSPECT);
    struct seep_interval none = {0, 0, 0};
    struct seep_interval beyond =
        outside ? verdict->growth_bytes_per_s : outside_of(report);

    add_bytes(&side->process.sum, report,
              grows ? &verdict->growth_bytes_per_s : &none);
    add_bytes(&side->outside.sum, report, &beyond);
    side->process.grows |= grows;
    side->process.proved |= leaks || outside;
    side->outside.grows |= outside;
    side->outside.proved |= outside;
    if (side->process.report == NULL ||
        verdict->class < side->process.report->verdict.class) {
        side->process.report = report;
    }
    if (outside && side->outside.report == NULL) {
        side->outside.report = report;
    }
}

static void add_memory(struct seep_diff_side *side,
                       struct seep_diff_sum *private,
                       const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    const struct seep_report_extent *extent = &memory->anonymous;
    struct seep_interval slope = {
        extent->slope_bytes_per_s,
        extent->slope_bytes_per_s - extent->slope_error,
        extent->slope_bytes_per_s + extent->slope_error,
    };

    add_bytes(private, report, &slope);
    side->has_private &= memory->valid && extent->valid;
    side->rss_bytes += memory->valid ? memory->rss.last_bytes : 0;
    for (size_t i = 0; i < report->space_count; i++) {
        if (seep_sites_space_holds(report->spaces[i].space)) {
            side->live_bytes += (double)report->spaces[i].live_bytes;
        }
    }
}

/* Work counts only if all of them told it. */
static void add_exposure(struct seep_diff_side *side)
{
    bool all_tell = true;

    for (size_t i = 0; i < side->count; i++) {
        const struct seep_report *report = side->reports[i];

        if (is_judged(report)) {
            side->judged_count++;
            side->exposure_s += report->duration_s;
            side->units += (double)report->units;
            all_tell &= report->units > 0;
        } else if (side->reason == NULL) {
            side->reason = report->verdict.reason;
        }
    }
    if (side->judged_count > 0) {
        side->reason = NULL;
    } else if (side->reason == NULL) {
        side->reason = "there is no process";
    }
    if (!all_tell) {
        side->units = 0;
    }
}

static void add_processes(struct seep_diff_side *side)
{
    double count = (double)side->judged_count;
    struct seep_diff_sum private = {.bytes = 0};

    side->has_private = side->judged_count > 0;
    for (size_t i = 0; i < side->count; i++) {
        if (is_judged(side->reports[i])) {
            add_verdict(side, side->reports[i]);
            add_memory(side, &private, side->reports[i]);
        }
    }
    finish(side, &side->process);
    finish(side, &side->outside);
    if (side->judged_count > 0) {
        side->private_per_s = divided(&private, side->exposure_s);
        side->rss_bytes /= count;
        side->live_bytes /= count;
        side->units_per_s = side->units / side->exposure_s;
    }
}

int seep_diff_side_init(const struct seep_report *const *reports, size_t count,
                        struct seep_diff_side *ret_side)
{
    struct seep_diff_side side = {.reports = reports, .count = count};
    struct entry *entries;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += reports[i]->site_count;
    }
    entries = calloc(total + 1, sizeof(*entries));
    side.sites = calloc(total + 1, sizeof(*side.sites));
    if (entries == NULL || side.sites == NULL) {
        free(entries);
        free(side.sites);
        return -ENOMEM;
    }
    add_exposure(&side);
    add_processes(&side);
    total = gather(&side, entries);
    if (total > 0) {
        qsort(entries, total, sizeof(*entries), compare_entries);
    }
    pool(&side, entries, total);
    free(entries);
    *ret_side = side;
    return 0;
}

void seep_diff_side_fini(struct seep_diff_side *side)
{
    free(side->sites);
}
