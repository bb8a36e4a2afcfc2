/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is held, before and now: by the process, at call sites, by known
 * patterns; at the end and at the peak.
 *
 * Two equal runs do not hold the same. What they differ by is known from the
 * error of sampling, from how much a figure swings in the last fifth of a life,
 * and from how processes of one side differ (Student's t); and since private
 * memory depends on which thread came first, nothing counts below a share.
 * Where lives differ in length both their ends and one age are compared.
 *
 * Invariant: nothing is worse unless private memory, or that of devices, is:
 * what is only reserved, or has another name now, costs nobody anything.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/diff.h"
#include "reader/compare/limits.h"
#include "reader/compare/patterns.h"
#include "reader/judge/sites.h"

#define MIB 1048576.0
#define LIFE_MIN_S 1.0 /* of what lived less nothing is held against it */
#define LEVEL_FROM 0.8 /* of a life: a level is the mean from there on */
#define SAME_LIFE 0.9  /* lives that differ by less are as long */
#define FLOOR_BYTES (8 * MIB)
#define PROCESS_SHARE 0.1  /* of what a process holds */
#define SITE_SHARE 0.05    /* of that, for a call site or a pattern, and */
#define OWN_SHARE 0.1      /* of what itself holds */
#define PEAK_FACTOR 2      /* one figure, not a mean of many */
#define BEYOND_BLOCKS 1.25 /* pages, for a byte of blocks */
#define SEVERAL 1.25       /* a pattern speaks for its sites if it is more */

static const char *const holders[] = {
#define HOLDER_NAME(symbol, name) name,
    SEEP_DIFF_HOLDERS(HOLDER_NAME)
#undef HOLDER_NAME
};

const char *seep_diff_holder_name(enum seep_diff_holder holder)
{
    return (size_t)holder < sizeof(holders) / sizeof(*holders) ? holders[holder]
                                                               : "";
}

bool seep_diff_is_holding(const struct seep_report *report)
{
    return report->duration_s >= LIFE_MIN_S;
}

double seep_diff_age_of(const struct seep_report *const *reports, size_t count)
{
    double age_s = INFINITY;

    for (size_t i = 0; i < count; i++) {
        if (seep_diff_is_holding(reports[i])) {
            age_s = fmin(age_s, reports[i]->duration_s);
        }
    }
    return age_s;
}

/* What a figure was over the last fifth of a life, and at the most. */
struct level {
    double seconds;
    double sum;
    double low;
    double high;
    double peak;
};

static const struct level no_level = {.low = INFINITY};

/* It was @bytes from @from_s to @to_s, of a life of @life_s. */
static void add_stretch(struct level *level, double life_s, double from_s,
                        double to_s, double bytes)
{
    double seconds = fmin(to_s, life_s) - fmax(from_s, LEVEL_FROM * life_s);

    if (from_s <= life_s) {
        level->peak = fmax(level->peak, bytes);
    }
    if (seconds > 0) {
        level->seconds += seconds;
        level->sum += seconds * bytes;
        level->low = fmin(level->low, bytes);
        level->high = fmax(level->high, bytes);
    }
}

static double bytes_of(const struct level *level)
{
    return level->seconds > 0 ? level->sum / level->seconds : 0;
}

static double swing_of(const struct level *level)
{
    return level->seconds > 0 ? (level->high - level->low) / 2 : 0;
}

static void add(struct seep_diff_level *to, double bytes, double error,
                double swing)
{
    to->bytes += bytes;
    to->squares += bytes * bytes;
    to->error_squares += error * error + swing * swing;
}

static struct level level_of(const struct seep_report_site *site, double life_s)
{
    struct level level = no_level;

    for (size_t i = 0; i < site->point_count; i++) {
        const struct seep_report_point *point = &site->series[i];

        add_stretch(&level, life_s, point->start_s,
                    i + 1 < site->point_count ? point[1].start_s : INFINITY,
                    (double)point->live_bytes);
    }
    if (site->point_count == 0) {
        add_stretch(&level, life_s, 0, life_s, (double)site->live_bytes);
    }
    return level;
}

/* Of sampling: more of it where more is held. */
static double error_of(const struct seep_report_site *site, double bytes)
{
    double live = (double)site->live_bytes;

    return site->live_bytes_error *
           (live > 0 ? sqrt(fmax(bytes, live) / live) : 1);
}

void seep_diff_hold_site(const struct seep_report *report,
                         const struct seep_report_site *site, double age_s,
                         struct seep_diff_level levels[SEEP_DIFF_WHENS])
{
    struct level at_end = level_of(site, report->duration_s);
    struct level at_age = level_of(site, age_s);

    add(&levels[SEEP_DIFF_END], bytes_of(&at_end),
        error_of(site, bytes_of(&at_end)), swing_of(&at_end));
    add(&levels[SEEP_DIFF_AGE], bytes_of(&at_age),
        error_of(site, bytes_of(&at_age)), swing_of(&at_age));
    add(&levels[SEEP_DIFF_PEAK], at_age.peak, error_of(site, at_age.peak),
        swing_of(&at_age));
}

static struct level private_level(const struct seep_report_memory *memory,
                                  double life_s)
{
    struct level level = no_level;

    for (size_t i = 0; i < memory->moment_count; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];
        double bytes = moment->private_bytes - fmax(0, moment->own_bytes);

        if (moment->private_bytes >= 0) {
            add_stretch(&level, life_s, moment->t_s,
                        i + 1 < memory->moment_count ? moment[1].t_s : INFINITY,
                        fmax(0, bytes));
        }
    }
    return level;
}

void seep_diff_hold_process(struct seep_diff_side *side,
                            const struct seep_report *report, double age_s)
{
    struct level at_end = private_level(&report->memory, report->duration_s);
    struct level at_age = private_level(&report->memory, age_s);
    struct seep_diff_level *held = side->private_held;
    double devices = 0;

    side->holding_count++;
    side->knows_private &= at_end.seconds > 0 && at_age.seconds > 0;
    add(&held[SEEP_DIFF_END], bytes_of(&at_end), 0, swing_of(&at_end));
    add(&held[SEEP_DIFF_AGE], bytes_of(&at_age), 0, swing_of(&at_age));
    add(&held[SEEP_DIFF_PEAK], at_age.peak, 0, swing_of(&at_age));
    for (size_t i = 0; i < report->device_count; i++) {
        devices += report->devices[i].tracked.last_bytes;
    }
    for (int when = 0; when < SEEP_DIFF_WHENS; when++) {
        add(&side->devices_held[when], devices, 0, 0);
    }
}

/* Outcomes. */

static double mean_of(const struct seep_diff_side *side,
                      const struct seep_diff_level *level)
{
    return level->bytes / fmax(1, (double)side->holding_count);
}

/* @slack is what the two may differ by for reasons of their own. */
static struct seep_interval change_of(const struct seep_diff *diff,
                                      const struct seep_diff_level *before,
                                      const struct seep_diff_level *now,
                                      double slack)
{
    double m = fmax(1, (double)diff->before.holding_count);
    double n = fmax(1, (double)diff->now.holding_count);
    double measured =
        sqrt(before->error_squares / (m * m) + now->error_squares / (n * n));
    double spread =
        seep_diff_spread(seep_diff_variance(before->bytes, before->squares,
                                            diff->before.holding_count) +
                             seep_diff_variance(now->bytes, now->squares,
                                                diff->now.holding_count),
                         diff->before.holding_count, diff->now.holding_count);

    return seep_interval_around(now->bytes / n - before->bytes / m,
                                fmax(measured, spread) + slack);
}

static enum seep_diff_outcome outcome_of(const struct seep_interval *change,
                                         double floor_bytes)
{
    return change->low > 0 && change->estimate >= floor_bytes ? SEEP_DIFF_WORSE
           : change->high < 0 && change->estimate <= -floor_bytes
               ? SEEP_DIFF_BETTER
               : SEEP_DIFF_SAME;
}

static double most_of(const struct seep_diff *diff,
                      const struct seep_diff_level *before,
                      const struct seep_diff_level *now)
{
    return fmax(mean_of(&diff->before, before), mean_of(&diff->now, now));
}

/* Where lives differ in length, what only the one has had time for is no
 * difference, nor is what the other was still beginning with. */
static void decide(const struct seep_diff *diff, struct seep_diff_held *held,
                   const struct seep_diff_level *before,
                   const struct seep_diff_level *now, double floor_bytes,
                   double slack)
{
    enum seep_diff_when when = diff->age_s > 0 ? SEEP_DIFF_AGE : SEEP_DIFF_END;
    struct seep_interval at_end =
        change_of(diff, &before[SEEP_DIFF_END], &now[SEEP_DIFF_END], slack);
    enum seep_diff_outcome peak;

    held->before_bytes = mean_of(&diff->before, &before[when]);
    held->now_bytes = mean_of(&diff->now, &now[when]);
    held->before_peak_bytes = mean_of(&diff->before, &before[SEEP_DIFF_PEAK]);
    held->now_peak_bytes = mean_of(&diff->now, &now[SEEP_DIFF_PEAK]);
    held->change = change_of(diff, &before[when], &now[when], slack);
    held->peak_change =
        change_of(diff, &before[SEEP_DIFF_PEAK], &now[SEEP_DIFF_PEAK], slack);
    held->outcome = outcome_of(&held->change, floor_bytes);
    if (held->outcome != outcome_of(&at_end, floor_bytes)) {
        held->outcome = SEEP_DIFF_SAME;
    }
    peak = outcome_of(&held->peak_change, PEAK_FACTOR * floor_bytes);
    if (held->outcome == SEEP_DIFF_SAME && peak != SEEP_DIFF_SAME) {
        held->outcome = peak;
        held->at_peak = true;
    }
}

/* A site that keeps of each unit of work holds more after more of it. */
static double slack_of(const struct seep_diff *diff,
                       const struct seep_diff_site *before,
                       const struct seep_diff_site *now)
{
    double units =
        diff->now.units / fmax(1, (double)diff->now.judged_count) -
        diff->before.units / fmax(1, (double)diff->before.judged_count);

    return diff->by_unit && before->grows && now->grows
               ? fabs(units) * BEYOND_BLOCKS *
                     fmax(before->per_unit.estimate, now->per_unit.estimate)
               : 0;
}

static double process_bytes(const struct seep_diff *diff)
{
    return most_of(diff, &diff->before.private_held[SEEP_DIFF_PEAK],
                   &diff->now.private_held[SEEP_DIFF_PEAK]);
}

static double floor_of(double bytes)
{
    return fmax(FLOOR_BYTES, PROCESS_SHARE * bytes);
}

static bool has_both(const struct seep_diff *diff)
{
    return diff->before.holding_count > 0 && diff->now.holding_count > 0;
}

/* What the user excused is no change of the process. */
static void compare_private(struct seep_diff *diff)
{
    const struct seep_diff_side *before = &diff->before;
    const struct seep_diff_side *now = &diff->now;
    double excused =
        fabs(mean_of(now, &now->excused_held[SEEP_DIFF_PEAK]) -
             mean_of(before, &before->excused_held[SEEP_DIFF_PEAK]));
    struct seep_diff_held *held = &diff->held[diff->held_count++];

    held->holder = SEEP_DIFF_HOLDER_PROCESS;
    decide(diff, held, before->private_held, now->private_held,
           floor_of(most_of(diff, &before->private_held[SEEP_DIFF_END],
                            &now->private_held[SEEP_DIFF_END])),
           BEYOND_BLOCKS * excused +
               slack_of(diff, &before->process, &now->process));
}

void seep_diff_compare_process(struct seep_diff *diff)
{
    const struct seep_diff_side *before = &diff->before;
    const struct seep_diff_side *now = &diff->now;
    double longest_s = 0;
    double age_s = fmin(seep_diff_age_of(before->reports, before->count),
                        seep_diff_age_of(now->reports, now->count));

    if (!has_both(diff)) {
        return;
    }
    for (size_t i = 0; i < before->count + now->count; i++) {
        const struct seep_report *report =
            i < before->count ? before->reports[i]
                              : now->reports[i - before->count];

        longest_s = fmax(longest_s, report->duration_s);
    }
    diff->age_s = age_s < SAME_LIFE * longest_s ? age_s : 0;
    if (before->knows_private && now->knows_private) {
        compare_private(diff);
    }
    if (before->devices_held[SEEP_DIFF_END].bytes +
            now->devices_held[SEEP_DIFF_END].bytes >
        0) {
        struct seep_diff_held *held = &diff->held[diff->held_count++];

        held->holder = SEEP_DIFF_HOLDER_DEVICES;
        decide(diff, held, before->devices_held, now->devices_held,
               floor_of(most_of(diff, before->devices_held, now->devices_held)),
               0);
    }
}

/* Add it to those that differ, if it does. */
static void keep_if_differs(struct seep_diff *diff, struct seep_diff_held *held,
                            const struct seep_diff_level *before,
                            const struct seep_diff_level *now, double slack)
{
    double share = SITE_SHARE * process_bytes(diff);
    double own = OWN_SHARE *
                 most_of(diff, &before[SEEP_DIFF_PEAK], &now[SEEP_DIFF_PEAK]);

    decide(diff, held, before, now,
           fmax(FLOOR_BYTES / PEAK_FACTOR, fmax(share, own)), slack);
    if (held->outcome != SEEP_DIFF_SAME) {
        diff->held[diff->held_count++] = *held;
    }
}

/* Of a site that is nowhere on @side: what sampling can have missed. */
static double unseen_of(const struct seep_diff_side *side,
                        const struct seep_diff_site *site,
                        enum seep_space space)
{
    return site->site == NULL && side->count > 0
               ? seep_check_unseen_bytes(side->reports[0], (int)space)
               : 0;
}

void seep_diff_compare_site(struct seep_diff *diff,
                            const struct seep_diff_row *row)
{
    const struct seep_diff_site *any =
        row->now.site != NULL ? &row->now : &row->before;
    const struct seep_diff_site *other =
        any == &row->now && row->before.site != NULL ? &row->before : any;
    struct seep_diff_held held = {.holder = SEEP_DIFF_HOLDER_SITE,
                                  .site = any->site,
                                  .report = any->report,
                                  .pattern = any->site->pattern,
                                  .site_count = 1};

    if (held.pattern == NULL) {
        held.pattern = other->site->pattern;
    }
    if (has_both(diff)) {
        keep_if_differs(
            diff, &held, row->before.held, row->now.held,
            slack_of(diff, &row->before, &row->now) +
                unseen_of(&diff->before, &row->before, any->site->space) +
                unseen_of(&diff->now, &row->now, any->site->space));
    }
}

static bool has_pattern(const struct seep_diff_site *site,
                        const struct seep_pattern *pattern)
{
    return site->site->pattern != NULL &&
           strcmp(site->site->pattern->id, pattern->id) == 0;
}

/* @return how many sites of @side are of it */
static size_t sum_pattern(const struct seep_diff_side *side,
                          const struct seep_pattern *pattern,
                          struct seep_diff_level levels[SEEP_DIFF_WHENS])
{
    size_t count = 0;

    for (size_t i = 0; i < side->site_count; i++) {
        const struct seep_diff_level *held = side->sites[i].held;

        for (int when = 0;
             has_pattern(&side->sites[i], pattern) && when < SEEP_DIFF_WHENS;
             when++) {
            levels[when].bytes += held[when].bytes;
            levels[when].squares += held[when].squares;
            levels[when].error_squares += held[when].error_squares;
        }
        count += has_pattern(&side->sites[i], pattern);
    }
    return count;
}

/* Of several call sites: of one the row says it. */
static void compare_pattern(struct seep_diff *diff,
                            const struct seep_diff_site *first)
{
    struct seep_diff_level before[SEEP_DIFF_WHENS] = {{0}};
    struct seep_diff_level now[SEEP_DIFF_WHENS] = {{0}};
    struct seep_diff_held held = {
        .holder = SEEP_DIFF_HOLDER_PATTERN,
        .report = first->report,
        .pattern = first->site->pattern,
    };
    size_t was = sum_pattern(&diff->before, held.pattern, before);

    held.site_count = sum_pattern(&diff->now, held.pattern, now);
    held.site_count = was > held.site_count ? was : held.site_count;
    if (held.site_count > 1) {
        keep_if_differs(diff, &held, before, now, 0);
    }
}

static bool is_first(const struct seep_diff_side *side, size_t index,
                     const struct seep_pattern *pattern)
{
    for (size_t i = 0; i < index; i++) {
        if (has_pattern(&side->sites[i], pattern)) {
            return false;
        }
    }
    return true;
}

static void compare_sides(struct seep_diff *diff)
{
    const struct seep_diff_side *now = &diff->now;
    const struct seep_diff_side *before = &diff->before;

    for (size_t i = 0; i < now->site_count; i++) {
        const struct seep_pattern *pattern = now->sites[i].site->pattern;

        if (pattern != NULL && is_first(now, i, pattern)) {
            compare_pattern(diff, &now->sites[i]);
        }
    }
    for (size_t i = 0; i < before->site_count; i++) {
        const struct seep_pattern *pattern = before->sites[i].site->pattern;

        if (pattern != NULL && is_first(before, i, pattern) &&
            is_first(now, now->site_count, pattern)) {
            compare_pattern(diff, &before->sites[i]);
        }
    }
}

static double size_of(const struct seep_diff_held *held)
{
    return fabs(held->at_peak ? held->peak_change.estimate
                              : held->change.estimate);
}

static bool is_whole(const struct seep_diff_held *held)
{
    return held->holder == SEEP_DIFF_HOLDER_PROCESS ||
           held->holder == SEEP_DIFF_HOLDER_DEVICES;
}

/* The process, its devices, then what differs by most. */
static int compare_held(const void *a, const void *b)
{
    const struct seep_diff_held *left = a;
    const struct seep_diff_held *right = b;

    if (is_whole(left) || is_whole(right)) {
        return (int)left->holder - (int)right->holder;
    }
    return (size_of(left) < size_of(right)) - (size_of(left) > size_of(right));
}

/* The sum over the sites that differ: two names of one thing make none. */
static double net_of(const struct seep_diff *diff)
{
    double sum = 0;

    for (size_t i = 0; i < diff->held_count; i++) {
        const struct seep_diff_held *held = &diff->held[i];

        if (held->holder == SEEP_DIFF_HOLDER_SITE && !held->at_peak) {
            sum += held->change.estimate;
        }
    }
    return sum;
}

enum seep_diff_outcome seep_diff_held_outcome(const struct seep_diff *diff)
{
    bool is_known = false;
    bool is_better = false;
    double net = net_of(diff);
    double floor_bytes = floor_of(process_bytes(diff));

    for (size_t i = 0; i < diff->held_count && is_whole(&diff->held[i]); i++) {
        if (diff->held[i].outcome == SEEP_DIFF_WORSE) {
            return SEEP_DIFF_WORSE;
        }
        is_better |= diff->held[i].outcome == SEEP_DIFF_BETTER;
        is_known |= diff->held[i].holder == SEEP_DIFF_HOLDER_PROCESS;
    }
    if (is_better || net <= -floor_bytes) {
        return SEEP_DIFF_BETTER;
    }
    return !is_known && net >= floor_bytes ? SEEP_DIFF_WORSE : SEEP_DIFF_SAME;
}

/* A call site speaks for its pattern where it has nearly all of it; the process
 * where no site does. */
static const struct seep_diff_held *first_of(const struct seep_diff *diff)
{
    enum seep_diff_outcome outcome = seep_diff_held_outcome(diff);
    const struct seep_diff_held *first = NULL;

    for (size_t i = 0; outcome != SEEP_DIFF_SAME && i < diff->held_count; i++) {
        const struct seep_diff_held *held = &diff->held[i];

        if (held->outcome == outcome &&
            (first == NULL || is_whole(first) ||
             (first->holder == SEEP_DIFF_HOLDER_PATTERN &&
              held->pattern == first->pattern &&
              SEVERAL * size_of(held) >= size_of(first)))) {
            first = held;
        }
    }
    return first;
}

void seep_diff_compare_patterns(struct seep_diff *diff)
{
    if (has_both(diff)) {
        compare_sides(diff);
    }
    qsort(diff->held, diff->held_count, sizeof(*diff->held), compare_held);
    diff->first_held = first_of(diff);
}
