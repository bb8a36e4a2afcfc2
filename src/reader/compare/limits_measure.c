/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What limits are held against.
 *
 * The lower bound of a growth is what is proved: the test of each call site,
 * and of memory outside of them. The upper bound is all that it can be: what
 * live blocks, and the private memory of the process, rose by once warm. A
 * cache that still fills is thus no failure, and no pass.
 *
 * Invariant: each site is walked once, so the time is that of what the report
 * has.
 */
#include <math.h>
#include <string.h>

#include "format/view.h"
#include "reader/compare/limits.h"
#include "reader/judge/family.h"
#include "reader/judge/sites.h"
#include "reader/judge/verdict.h"
#include "reader/recording/store.h"

/* The share of a run that is warm-up where none is named. */
#define WARMUP_SHARE 0.2

/* Where a process made it, and nothing is named, it is the end. */
#define WARMUP_MARK "warm-up done"

#define STOPPED_SHARE 0.6
/* Levels lie in the middles of their windows. */
#define SPAN_SHARE ((SEEP_MATH_WINDOWS - 1.0) / SEEP_MATH_WINDOWS)

#define POINTS 128
/* Of what was never sampled up to 3 intervals may be there, at 95 %. */
#define UNSEEN_SAMPLES 3.0

/* In the place of a space: memory that lies in no resident page. */
#define DEVICES (-2)

bool seep_check_is_proved(const struct seep_report_site *site)
{
    return site->has_growth &&
           (site->class == SEEP_CLASS_LEAK || site->class == SEEP_CLASS_MINOR ||
            site->leaks_in_step);
}

bool seep_check_is_excused(const struct seep_report_site *site)
{
    return site->suppressed_by != NULL || site->known_bound_bytes > 0;
}

bool seep_check_counts(const struct seep_report_site *site, int space)
{
    /* Tensors say whose the growth of segments is; see seep_class BACKING. */
    bool is_judged = space == SEEP_CHECK_ALL_SPACES
                         ? seep_sites_space_is_judged(site->space)
                         : (int)site->space == space;

    return is_judged && !seep_check_is_excused(site) &&
           (seep_check_is_proved(site) ||
            (site->has_growth && site->class == SEEP_CLASS_SUSPECT));
}

bool seep_check_grows_outside(const struct seep_report_verdict *verdict)
{
    return verdict->has_growth &&
           (verdict->in_pool || verdict->class == SEEP_VERDICT_UNEXPLAINED ||
            verdict->class == SEEP_VERDICT_FRAGMENTATION ||
            verdict->class == SEEP_VERDICT_RETENTION);
}

/* What was live over time. */

static bool is_in(const struct seep_report_site *site, int space)
{
    if (space == DEVICES) {
        return site->space == SEEP_SPACE_DEVICE;
    }
    return space == SEEP_CHECK_ALL_SPACES ? seep_sites_space_holds(site->space)
                                          : (int)site->space == space;
}

/* At @t_s, which may be behind @point: what is in no bucket is flat. */
static double level_of(const struct seep_report_point *point, double t_s,
                       bool lowest)
{
    return lowest && t_s < point->start_s + point->width_s
               ? (double)point->low_bytes
               : (double)point->live_bytes;
}

/* A site without a series is small: what it holds is there from its birth. */
static void add_site(const struct seep_report_site *site, bool lowest,
                     const double times[POINTS], double sums[POINTS])
{
    size_t next = 0; /* the first point that begins later */

    for (int k = 0; k < POINTS; k++) {
        while (next < site->point_count &&
               site->series[next].start_s <= times[k]) {
            next++;
        }
        if (next > 0) {
            sums[k] += level_of(&site->series[next - 1], times[k], lowest);
        } else if (site->point_count == 0 && times[k] >= site->first_s) {
            sums[k] += (double)site->live_bytes;
        }
    }
}

/*
 * Live bytes in @space from @from_s to the end.
 *
 * @param lowest  the least of each part of the run, of sites that no rule
 *                excuses; else what was live, of all
 */
static void read_live(const struct seep_report *report, int space, bool lowest,
                      double from_s, struct seep_window_series *ret_series)
{
    double step_s = (report->duration_s - from_s) / POINTS;
    double times[POINTS];
    double sums[POINTS] = {0};

    for (int k = 0; k < POINTS; k++) {
        times[k] = from_s + step_s * (k + 0.5);
    }
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (is_in(site, space) && !(lowest && seep_check_is_excused(site))) {
            add_site(site, lowest, times, sums);
        }
    }
    ret_series->count = 0;
    for (int k = 0; k < POINTS; k++) {
        seep_window_add(ret_series, times[k], sums[k]);
    }
}

static struct seep_window_slope slope_of_live(const struct seep_report *report,
                                              int space, double from_s)
{
    struct seep_window_series series;

    read_live(report, space, true, from_s, &series);
    return seep_window_slope_of(&series, from_s, report->duration_s);
}

/* Private memory of the process, where it was seen. */
static struct seep_window_slope
slope_of_private(const struct seep_report *report, double from_s)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_window_series series = {.count = 0};

    for (size_t i = 0; i < memory->moment_count; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];

        if (moment->private_bytes >= 0) {
            seep_window_add(&series, moment->t_s, moment->private_bytes);
        }
    }
    return seep_window_slope_of(&series, from_s, report->duration_s);
}

double seep_check_unseen_bytes(const struct seep_report *report, int space)
{
    /* Of the other spaces every block is known. */
    bool is_sampled =
        report->sample_bytes > 1 && (space == SEEP_CHECK_ALL_SPACES ||
                                     seep_view_is_sampled((uint32_t)space));
    uint64_t mean = space == SEEP_SPACE_TENSOR ? report->tensor_sample_bytes
                                               : report->sample_bytes;

    return is_sampled ? UNSEEN_SAMPLES * (double)mean : 0;
}

/* Growth. */

/* A sum whose parts are independent; squares until it is finished. */
struct sum {
    size_t count;
    struct seep_interval value;
};

static void add(struct sum *sum, const struct seep_interval *interval)
{
    sum->count++;
    seep_family_add_rate(&sum->value, interval);
}

/* The mean of the run since the work began, as rates are. */
static double seconds_a_unit(const struct seep_report *report)
{
    const struct seep_report_begin *begin = &report->begin;

    return begin->from_s > 0 && begin->units > 0
               ? (report->duration_s - begin->from_s) / (double)begin->units
               : report->duration_s / (double)report->units;
}

static struct seep_interval scaled(const struct seep_interval *interval,
                                   double scale)
{
    return (struct seep_interval){interval->estimate * scale,
                                  interval->low * scale,
                                  interval->high * scale};
}

/* Of a site. Where units are no clock, what was kept of each while it grew, as
 * uncertain as the rate is. */
static struct seep_interval growth_of(const struct seep_report *report,
                                      const struct seep_report_site *site,
                                      bool by_unit)
{
    const struct seep_interval *rate = &site->growth_bytes_per_s;
    double scale = 1;

    if (by_unit && site->has_growth_per_unit) {
        return site->growth_bytes_per_unit;
    }
    if (by_unit) {
        scale = site->kept.bytes_per_unit > 0 && rate->estimate > 0
                    ? site->kept.bytes_per_unit / rate->estimate
                    : seconds_a_unit(report);
    }
    return scaled(rate, scale);
}

/* What grows for sure, by a lower bound of each, is not less for others whose
 * growth is not known so well. */
static void add_proved(struct sum *proved, struct sum *sure,
                       const struct seep_interval *growth)
{
    add(proved, growth);
    if (growth->low > 0) {
        add(sure, growth);
    }
}

static void sum_sites(const struct seep_report *report, int space, bool by_unit,
                      struct sum *ret_proved, struct sum *ret_possible)
{
    struct seep_interval growth;
    struct sum sure = {0};

    *ret_proved = *ret_possible = (struct sum){0};
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (!seep_check_counts(site, space)) {
            continue;
        }
        growth = growth_of(report, site, by_unit);
        add(ret_possible, &growth);
        if (seep_check_is_proved(site)) {
            add_proved(ret_proved, &sure, &growth);
        }
    }
    if (space == SEEP_CHECK_ALL_SPACES &&
        seep_check_grows_outside(&report->verdict)) {
        growth = scaled(&report->verdict.growth_bytes_per_s,
                        by_unit ? seconds_a_unit(report) : 1);
        add_proved(ret_proved, &sure, &growth);
        add(ret_possible, &growth);
    }
    seep_family_finish_rate(&ret_proved->value);
    seep_family_finish_rate(&ret_possible->value);
    seep_family_finish_rate(&sure.value);
    ret_proved->value.low = fmax(ret_proved->value.low, sure.value.low);
    ret_proved->value.estimate =
        fmax(ret_proved->value.estimate, ret_proved->value.low);
}

/* A warm-up happens once: what is marked so again is of a later model. */
static double first_mark(const struct seep_report *report, const char *name)
{
    for (size_t i = 0; i < report->mark_count; i++) {
        if (strcmp(report->marks[i].name, name) == 0) {
            return report->marks[i].at_s;
        }
    }
    return NAN;
}

double seep_check_warmup_of(const struct seep_check_options *options,
                            const struct seep_report *report)
{
    return options->warmup_mark != NULL
               ? first_mark(report, options->warmup_mark)
               : options->warmup_s;
}

/* What is not told is what the process said, else a share of the run. */
static double end_of_warmup(const struct seep_report *report, double warmup_s)
{
    double marked_s = first_mark(report, WARMUP_MARK);

    if (!(warmup_s < 0)) {
        return warmup_s;
    }
    return isnan(marked_s) ? WARMUP_SHARE * report->duration_s : marked_s;
}

/* The verdict has tested that it stopped: the part that shows it is the last.
 */
static double settled_from(const struct seep_report *report, double from_s)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    return verdict->class == SEEP_VERDICT_BOUNDED && verdict->reassures
               ? fmax(from_s, STOPPED_SHARE * report->duration_s)
               : from_s;
}

static bool bound_live(const struct seep_report *report, int space,
                       double from_s, struct seep_interval *ret_bound)
{
    double unseen =
        seep_check_unseen_bytes(report, space) / (report->duration_s - from_s);
    struct seep_window_slope slope = slope_of_live(report, space, from_s);

    *ret_bound =
        (struct seep_interval){slope.per_s, slope.per_s - slope.error - unseen,
                               slope.per_s + slope.error + unseen};
    return slope.valid;
}

/*
 * Of the process, where it is known, private memory: what comes and goes in
 * blocks between collections is no growth of it. It can be that blocks grow
 * into memory that the allocator had free already; that is for the test of
 * call sites to find.
 */
static bool bound_growth(const struct seep_report *report, int space,
                         double from_s, struct seep_interval *ret_bound)
{
    struct seep_window_slope slope;
    struct seep_interval devices;
    double excused = fmax(0, report->verdict.suppressed_bytes_per_s);

    if (!bound_live(report, space, from_s, ret_bound)) {
        return false;
    }
    if (space != SEEP_CHECK_ALL_SPACES) {
        return true;
    }
    slope = slope_of_private(report, from_s);
    if (slope.valid && bound_live(report, DEVICES, from_s, &devices)) {
        *ret_bound = (struct seep_interval){
            slope.per_s - excused + devices.estimate,
            slope.per_s - excused - slope.error + fmin(0, devices.low),
            slope.per_s - excused + slope.error + fmax(0, devices.high),
        };
    }
    return true;
}

/* Is it one that says what grows, or that nothing does? All else is open. */
static bool is_known(const struct seep_report_verdict *verdict)
{
    return verdict->reassures || verdict->too_little ||
           verdict->class == SEEP_VERDICT_LEAK ||
           (seep_verdict_open_reason(verdict) == NULL &&
            seep_check_grows_outside(verdict));
}

/*
 * One judgement: what the verdict does not say is no pass, and where it says
 * that nothing leaks, what could hide is all that there may be. Of one space
 * the verdict, which is of them all, only takes back what it did not judge.
 */
static void agree(const struct seep_report *report, int space,
                  struct seep_check_measure *measure)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    const char *open = seep_verdict_open_reason(verdict);
    struct seep_interval *value = &measure->value;

    if (space != SEEP_CHECK_ALL_SPACES) {
        if (open != NULL && !verdict->too_little) {
            value->high = INFINITY;
            measure->reason = open;
        }
        return;
    }
    if (!is_known(verdict)) {
        value->high = INFINITY;
        measure->reason = open != NULL ? open : verdict->reason;
    } else if (verdict->reassures || verdict->too_little) {
        value->high = fmin(value->high, verdict->hidden_bytes_per_s);
        value->estimate = fmin(value->estimate, value->high);
    }
}

static void measure_growth(const struct seep_report *report, int space,
                           double from_s, bool by_unit,
                           struct seep_check_measure *measure)
{
    struct seep_interval *value = &measure->value;
    struct sum proved;
    struct sum possible;

    if (!bound_growth(report, space, settled_from(report, from_s), value)) {
        measure->reason = "the run after the warm-up is too short";
        return;
    }
    measure->valid = true;
    sum_sites(report, space, by_unit, &proved, &possible);
    agree(report, space, measure);
    if (by_unit) {
        *value = scaled(value, seconds_a_unit(report));
    }
    value->low = fmin(value->low, 0);
    if (possible.count > 0) {
        value->high = fmax(value->high, possible.value.high);
    }
    if (proved.count > 0) {
        value->estimate = proved.value.estimate;
        value->low = fmax(value->low, proved.value.low);
        value->high = fmax(value->high, proved.value.estimate);
    }
}

static void measure_drift(const struct seep_report *report, int space,
                          double from_s, struct seep_check_measure *measure)
{
    double span_s = SPAN_SHARE * (report->duration_s - from_s);
    struct seep_window_slope slope = {.valid = false};
    double error = 0;

    if (space == SEEP_CHECK_ALL_SPACES) {
        slope = slope_of_private(report, from_s);
    }
    if (!slope.valid) {
        slope = slope_of_live(report, space, from_s);
        error = seep_check_unseen_bytes(report, space);
    }
    if (!slope.valid) {
        measure->reason = "the run after the warm-up is too short";
        return;
    }
    error += slope.error * span_s;
    measure->valid = true;
    measure->value = seep_interval_around(slope.growth_bytes, error);
}

/* What is there. */

/* The process by its resident memory and swap, else by its live blocks. */
static void measure_cap(const struct seep_report *report, int space,
                        struct seep_check_measure *measure)
{
    struct seep_window_series series;
    double most = 0;
    double error = 0;

    for (size_t i = 0;
         space == SEEP_CHECK_ALL_SPACES && i < report->memory.moment_count;
         i++) {
        most = fmax(most, report->memory.moments[i].held_bytes);
    }
    if (!(most > 0)) {
        read_live(report, space, false, 0, &series);
        for (size_t i = 0; i < series.count; i++) {
            most = fmax(most, series.value[i]);
        }
        for (size_t i = 0; i < report->space_count; i++) {
            if (space == SEEP_CHECK_ALL_SPACES ||
                (int)report->spaces[i].space == space) {
                error = hypot(error, report->spaces[i].live_bytes_error);
            }
        }
        error += seep_check_unseen_bytes(report, space);
    }
    measure->valid = true;
    measure->value =
        (struct seep_interval){most, fmax(0, most - error), most + error};
}

static void measure_free(const struct seep_report *report,
                         struct seep_check_measure *measure)
{
    double least = INFINITY;

    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];

        if (device->total_bytes > 0 && (double)device->low_free_bytes < least) {
            least = (double)device->low_free_bytes;
            measure->device = (int)device->ordinal;
        }
    }
    if (measure->device < 0) {
        measure->reason = "no GPU was queried in this process";
        return;
    }
    measure->valid = true;
    measure->value = (struct seep_interval){least, least, least};
}

void seep_check_measure(enum seep_check_kind kind, int space,
                        const struct seep_report *report, double warmup_s,
                        struct seep_check_measure *ret_measure)
{
    double from_s = end_of_warmup(report, warmup_s);
    struct seep_check_measure measure = {.reason = "", .device = -1};

    if (kind == SEEP_CHECK_CAP) {
        measure_cap(report, space, &measure);
    } else if (kind == SEEP_CHECK_GPU_FREE) {
        measure_free(report, &measure);
    } else if (isnan(from_s)) {
        measure.reason = "the mark that ends the warm-up was not made";
    } else if (!(report->duration_s > from_s)) {
        measure.reason = "the run ended before the warm-up did";
    } else if (kind == SEEP_CHECK_DRIFT) {
        measure_drift(report, space, from_s, &measure);
    } else if (kind == SEEP_CHECK_GROWTH_PER_UNIT && report->units == 0) {
        measure.reason =
            "the process reported no work: it must call seep_progress()";
    } else {
        measure_growth(report, space, from_s,
                       kind == SEEP_CHECK_GROWTH_PER_UNIT, &measure);
    }
    *ret_measure = measure;
}

void seep_check_measure_limit(const struct seep_check_options *options,
                              const struct seep_check_limit *limit,
                              const struct seep_report *report,
                              struct seep_check_measure *ret_measure)
{
    enum seep_check_kind kind = limit->kind == SEEP_CHECK_GROWTH_TOTAL
                                    ? SEEP_CHECK_GROWTH
                                    : limit->kind;

    if (report->measures != NULL) {
        *ret_measure = report->measures[limit - options->limits];
        return;
    }
    seep_check_measure(kind, limit->space, report,
                       seep_check_warmup_of(options, report), ret_measure);
}

bool seep_check_measure_all(const struct seep_check_options *options,
                            struct seep_report *report)
{
    struct seep_check_measure *measures = seep_store_take(
        seep_report_store(report), options->count, sizeof(*measures));

    for (size_t i = 0; measures != NULL && i < options->count; i++) {
        seep_check_measure_limit(options, &options->limits[i], report,
                                 &measures[i]);
    }
    report->measures = measures;
    return measures != NULL;
}

/*
 * What all processes of a service grow by. A member of which nothing was
 * measured can have grown by any amount: it takes the upper bound of the sum
 * away, and nothing from the lower.
 */
static struct seep_check_measure
measure_family(const struct seep_check_options *options,
               const struct seep_family *family,
               const struct seep_check_limit *limit)
{
    struct seep_check_measure all = {.reason = "", .device = -1};

    for (size_t i = 0; i < family->together_count; i++) {
        struct seep_check_measure one;

        seep_check_measure_limit(options, limit, family->together[i], &one);
        if (one.valid) {
            seep_family_add_rate(&all.value, &one.value);
        } else {
            all.value.high = INFINITY;
        }
        all.valid |= one.valid;
        all.reason = *one.reason != '\0' ? one.reason : all.reason;
    }
    seep_family_finish_rate(&all.value);
    if (family->together_count == 0) {
        all.reason = "none of its processes ran";
    }
    return all;
}

void seep_check_measure_result(const struct seep_check_options *options,
                               struct seep_check_result *result)
{
    const struct seep_check_limit *limit = result->limit;

    if (result->family != NULL) {
        result->measure = measure_family(options, result->family, limit);
    } else {
        seep_check_measure_limit(options, limit, result->report,
                                 &result->measure);
    }
}
