/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What limits are held against; see check.h.
 *
 * The lower bound of a growth is what is proved: the test of each call site,
 * and of memory outside of them. The upper bound is all that it can be: what
 * live blocks, and the private memory of the process, rose by once warm. A
 * cache that still fills is thus no failure, and no pass.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "reader/check.h"
#include "reader/check_series.h"
#include "reader/sites.h"

#define STOPPED_SHARE 0.6
/* Levels lie in the middles of their windows. */
#define SPAN_SHARE ((SEEP_WINDOW_SLOPE - 1.0) / SEEP_WINDOW_SLOPE)

/* Tensors say whose the growth of segments is; see seep_class BACKING. */
static bool is_judged(const struct seep_report_site *site, int space)
{
    return space == SEEP_CHECK_ALL_SPACES
               ? seep_sites_space_is_judged(site->space)
               : (int)site->space == space;
}

static bool is_proved(enum seep_class class)
{
    return class == SEEP_CLASS_LEAK || class == SEEP_CLASS_MINOR;
}

bool seep_check_counts(const struct seep_report_site *site, int space)
{
    return is_judged(site, space) && !seep_check_is_excused(site) &&
           site->has_growth &&
           (is_proved(site->class) || site->class == SEEP_CLASS_SUSPECT);
}

/* A sum whose parts are independent: their errors add as squares. */
struct sum {
    size_t count;
    double estimate;
    double low_squares;
    double high_squares;
};

static void add(struct sum *sum, const struct seep_interval *interval)
{
    double below = interval->estimate - interval->low;
    double above = interval->high - interval->estimate;

    sum->count++;
    sum->estimate += interval->estimate;
    sum->low_squares += below * below;
    sum->high_squares += above * above;
}

static double low_of(const struct sum *sum)
{
    return sum->estimate - sqrt(sum->low_squares);
}

static double high_of(const struct sum *sum)
{
    return sum->estimate + sqrt(sum->high_squares);
}

/* What grows outside of call sites, of the process as a whole. */
static bool grows_outside(const struct seep_report_verdict *verdict)
{
    return verdict->has_growth &&
           (verdict->class == SEEP_VERDICT_UNEXPLAINED ||
            verdict->class == SEEP_VERDICT_FRAGMENTATION ||
            verdict->class == SEEP_VERDICT_RETENTION);
}

static void sum_sites(const struct seep_report *report, int space,
                      struct sum *ret_proved, struct sum *ret_possible)
{
    *ret_proved = *ret_possible = (struct sum){0};
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (!seep_check_counts(site, space)) {
            continue;
        }
        add(ret_possible, &site->growth_bytes_per_s);
        if (is_proved(site->class)) {
            add(ret_proved, &site->growth_bytes_per_s);
        }
    }
    if (space == SEEP_CHECK_ALL_SPACES && grows_outside(&report->verdict)) {
        add(ret_proved, &report->verdict.growth_bytes_per_s);
        add(ret_possible, &report->verdict.growth_bytes_per_s);
    }
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
    double marked_s = first_mark(report, SEEP_CHECK_WARMUP_MARK);

    if (!(warmup_s < 0)) {
        return warmup_s;
    }
    return isnan(marked_s) ? SEEP_CHECK_WARMUP_SHARE * report->duration_s
                           : marked_s;
}

static void refuse(struct seep_check_measure *measure, const char *reason)
{
    measure->valid = false;
    measure->reason = reason;
}

/* The verdict says that it has stopped: the part that shows it is the last. */
static double settled_from(const struct seep_report *report, double from_s)
{
    const struct seep_report_verdict *verdict = &report->verdict;

    return verdict->class == SEEP_VERDICT_BOUNDED && !verdict->filling
               ? fmax(from_s, STOPPED_SHARE * report->duration_s)
               : from_s;
}

static bool slope_of_live(const struct seep_report *report, int space,
                          double from_s, struct seep_interval *ret_slope)
{
    double unseen =
        seep_check_unseen_bytes(report, space) / (report->duration_s - from_s);
    struct seep_window_series series;
    struct seep_window_slope slope;

    seep_check_read_live(report, space, SEEP_CHECK_LOW, false, from_s, &series);
    slope = seep_window_slope_of(&series, from_s, report->duration_s);
    *ret_slope =
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
    struct seep_window_series series;
    struct seep_window_slope slope;
    struct seep_interval devices;
    double excused = fmax(0, report->verdict.suppressed_bytes_per_s);

    if (!slope_of_live(report, space, from_s, ret_bound)) {
        return false;
    }
    if (space != SEEP_CHECK_ALL_SPACES) {
        return true;
    }
    seep_check_read_private(report, &series);
    slope = seep_window_slope_of(&series, from_s, report->duration_s);
    if (!slope.valid ||
        !slope_of_live(report, SEEP_CHECK_DEVICES, from_s, &devices)) {
        return true;
    }
    *ret_bound = (struct seep_interval){
        slope.per_s - excused + devices.estimate,
        slope.per_s - excused - slope.error + fmin(0, devices.low),
        slope.per_s - excused + slope.error + fmax(0, devices.high),
    };
    return true;
}

/* Does the verdict itself say that more must be seen? */
static bool is_open(const struct seep_report_verdict *verdict)
{
    return verdict->class == SEEP_VERDICT_SUSPECT ||
           verdict->class == SEEP_VERDICT_INSUFFICIENT ||
           (verdict->class == SEEP_VERDICT_BOUNDED && verdict->filling);
}

static void measure_growth(const struct seep_report *report, int space,
                           double from_s, struct seep_check_measure *measure)
{
    struct seep_interval *value = &measure->value;
    struct sum proved;
    struct sum possible;

    if (!bound_growth(report, space, settled_from(report, from_s), value)) {
        refuse(measure, "too short a run after the warm-up");
        return;
    }
    measure->valid = true;
    if (is_open(&report->verdict)) {
        measure->reason = report->verdict.reason;
    }
    sum_sites(report, space, &proved, &possible);
    value->low = fmin(value->low, 0);
    if (possible.count > 0) {
        value->high = fmax(value->high, high_of(&possible));
    }
    if (proved.count > 0) {
        value->estimate = proved.estimate;
        value->low = fmax(value->low, low_of(&proved));
        measure->reason = "";
    } else if (report->verdict.class == SEEP_VERDICT_INSUFFICIENT) {
        /* Seen too little to be sure that there is no more to it. */
        value->high = INFINITY;
    }
}

static void measure_per_unit(const struct seep_report *report, int space,
                             double from_s, struct seep_check_measure *measure)
{
    double scale = report->duration_s / (double)report->units;

    if (report->units == 0) {
        refuse(measure, "the process told no work: seep_progress() tells it");
        return;
    }
    measure_growth(report, space, from_s, measure);
    measure->value.estimate *= scale;
    measure->value.low *= scale;
    measure->value.high *= scale;
}

static void measure_drift(const struct seep_report *report, int space,
                          double from_s, struct seep_check_measure *measure)
{
    double span_s = SPAN_SHARE * (report->duration_s - from_s);
    struct seep_window_series series;
    struct seep_window_slope slope = {.valid = false};
    double error = 0;

    if (space == SEEP_CHECK_ALL_SPACES) {
        seep_check_read_private(report, &series);
        slope = seep_window_slope_of(&series, from_s, report->duration_s);
    }
    if (!slope.valid) {
        seep_check_read_live(report, space, SEEP_CHECK_LOW, false, from_s,
                             &series);
        slope = seep_window_slope_of(&series, from_s, report->duration_s);
        error = seep_check_unseen_bytes(report, space);
    }
    if (!slope.valid) {
        refuse(measure, "too short a run after the warm-up");
        return;
    }
    error += slope.error * span_s;
    measure->valid = true;
    measure->value =
        (struct seep_interval){slope.growth_bytes, slope.growth_bytes - error,
                               slope.growth_bytes + error};
}

static double most_of(const struct seep_window_series *series)
{
    double most = 0;

    for (size_t i = 0; i < series->count; i++) {
        most = fmax(most, series->value[i]);
    }
    return most;
}

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
        seep_check_read_live(report, space, SEEP_CHECK_LIVE, true, 0, &series);
        most = most_of(&series);
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
        refuse(measure, "no GPU was asked in this process");
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
        refuse(&measure, "the mark that ends the warm-up was not made");
    } else if (!(report->duration_s > from_s)) {
        refuse(&measure, "the run ended before the warm-up did");
    } else if (kind == SEEP_CHECK_GROWTH) {
        measure_growth(report, space, from_s, &measure);
    } else if (kind == SEEP_CHECK_GROWTH_PER_UNIT) {
        measure_per_unit(report, space, from_s, &measure);
    } else {
        measure_drift(report, space, from_s, &measure);
    }
    *ret_measure = measure;
}
