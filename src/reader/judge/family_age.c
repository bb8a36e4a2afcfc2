/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Growth by the age of a process, over those that come and go: each is too
 * short to be judged, and what a line holds at one age can be compared with
 * what it holds at another, in all of them.
 *
 * Invariant: what decides is the scatter between processes, so that a process
 * counts once, however many blocks it has; an input that is no number tells
 * nothing. docs/statistics.md has the figures.
 */
#include <math.h>

#include "reader/judge/family.h"

#define OLD_SHARE 0.5   /* of the longest life; who lived less tells less */
#define RISING_MOST 0.2 /* of the children, that may not rise at the line */
#define FREEDOM_MOST 200
#define TAIL 0.025 /* of an interval of 95 % */
/* What a line keeps in the last third of a life, to the third before: as much
 * in a leak, 0.77 of it where the rate falls with the root of the age, 0.59
 * where it falls with the age, as in a cache that fills. */
#define KEPT_UP 0.77
#define KEPT_UP_TAIL 0.05
#define TAIL_SHARE 0.5 /* of its rate, in the last sixth of the life */

/* The tail of Student's t above sqrt(freedom) * tan(angle), exact: Abramowitz
 * and Stegun 26.7.3 and 26.7.4. */
static double student_tail(double angle, size_t freedom)
{
    bool is_odd = freedom % 2 == 1;
    double cosine = cos(angle);
    double term = is_odd ? cosine : 1;
    double sum = freedom == 1 ? 0 : term;

    for (size_t k = is_odd ? 3 : 2; k + 1 < freedom; k += 2) {
        term *= cosine * cosine * (double)(k - 1) / (double)k;
        sum += term;
    }
    sum *= sin(angle);
    return (1 - (is_odd ? 2 / M_PI * (angle + sum) : sum)) / 2;
}

double seep_family_student(double tail, size_t freedom)
{
    double low = 0;
    double high = M_PI / 2;

    freedom = freedom < FREEDOM_MOST ? freedom : FREEDOM_MOST;
    for (int i = 0; i < 60 && freedom > 0; i++) {
        double middle = (low + high) / 2;

        if (student_tail(middle, freedom) > tail) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return freedom > 0 ? sqrt((double)freedom) * tan(low) : INFINITY;
}

/* From where to where of its life each level is the mean of. */
static const double parts[SEEP_FAMILY_AGE_LEVELS][2] = {
    {2 / 6.0, 3 / 6.0},     {3 / 6.0, 4 / 6.0},     {4 / 6.0, 5 / 6.0},
    {10 / 12.0, 11 / 12.0}, {11 / 12.0, 12 / 12.0},
};

/* A point that is not there is flat. */
static double mean_between(const struct seep_report_site *site, double from_s,
                           double to_s)
{
    double sum = 0;

    for (size_t i = 0; i < site->point_count; i++) {
        const struct seep_report_point *point = &site->series[i];
        double until_s = i + 1 < site->point_count ? point[1].start_s : to_s;
        double seconds = fmin(to_s, until_s) - fmax(from_s, point->start_s);

        sum += seconds > 0 ? seconds * (double)point->live_bytes : 0;
    }
    return sum / (to_s - from_s);
}

void seep_family_age_levels(const struct seep_report_site *site, double life_s,
                            double ret_levels[SEEP_FAMILY_AGE_LEVELS])
{
    for (size_t i = 0; i < SEEP_FAMILY_AGE_LEVELS; i++) {
        ret_levels[i] =
            mean_between(site, parts[i][0] * life_s, parts[i][1] * life_s);
    }
}

void seep_family_age_add(const struct seep_report_site *site, double life_s,
                         struct seep_family_ages *ages)
{
    double levels[SEEP_FAMILY_AGE_LEVELS];
    const double *of = site->age_levels;

    if (of == NULL) {
        seep_family_age_levels(site, life_s, levels);
        of = levels;
    }
    ages->is_unknown |= (site->point_count == 0 && site->age_levels == NULL) ||
                        site->has_totals_only;
    for (size_t i = 0; i < SEEP_FAMILY_AGE_LEVELS; i++) {
        ages->level[i] += of[i];
    }
}

/* Of values of independent processes. */
struct sample {
    size_t count;
    double sum;
    double squares;
};

static void add(struct sample *sample, double value)
{
    sample->count++;
    sample->sum += value;
    sample->squares += value * value;
}

static struct seep_interval mean_of(const struct sample *sample, double tail)
{
    double count = (double)sample->count;
    double mean = sample->sum / count;
    double squares = fmax(0, sample->squares - mean * sample->sum);

    return seep_interval_around(mean,
                                seep_family_student(tail, sample->count - 1) *
                                    sqrt(squares / (count - 1) / count));
}

/* Over one process: bytes a second, and by how much the last third of its life
 * keeps up with the third before. */
struct rates {
    double growth;
    double kept_up;
    double tail; /* over its last sixth */
};

static struct rates rates_of(const struct seep_family_ages *ages)
{
    double sixth_s = ages->life_s / 6;
    double last = (ages->level[3] + ages->level[4]) / 2;
    double before = ages->level[1] - ages->level[0];

    return (struct rates){
        .growth = (last - ages->level[0]) / (3 * sixth_s),
        .kept_up = (last - ages->level[2] - KEPT_UP * before) / sixth_s,
        .tail = (ages->level[4] - ages->level[3]) / (sixth_s / 2),
    };
}

static double oldest_of(const struct seep_family_ages *ages, size_t count)
{
    double oldest_s = 0;

    for (size_t i = 0; i < count; i++) {
        oldest_s = fmax(oldest_s, ages[i].life_s);
    }
    return oldest_s;
}

void seep_family_age_test(const struct seep_family_ages *ages, size_t count,
                          size_t line_count, double floor_bytes,
                          struct seep_family_age *ret_age)
{
    struct seep_family_age age = {.trend = SEEP_FAMILY_UNTOLD};
    double oldest_s = oldest_of(ages, count);
    double life_s = 0;
    double tail = 0;
    struct sample growth = {0};
    struct sample kept_up = {0};
    struct seep_interval keeps;

    for (size_t i = 0; i < count; i++) {
        struct rates rates = rates_of(&ages[i]);

        if (!ages[i].is_unknown && ages[i].life_s >= OLD_SHARE * oldest_s) {
            add(&growth, rates.growth);
            add(&kept_up, rates.kept_up);
            tail += rates.tail;
            life_s += ages[i].life_s;
            age.rising += rates.growth > 0;
        }
    }
    *ret_age = age;
    /* who lives for a moment does nothing else than to begin */
    if (growth.count < SEEP_FAMILY_CHILDREN_MIN || !isfinite(growth.squares) ||
        oldest_s < SEEP_FAMILY_BRIEF_S) {
        return;
    }
    age.count = growth.count;
    age.rate = mean_of(&growth, TAIL / (double)line_count);
    keeps = mean_of(&kept_up, KEPT_UP_TAIL);
    if (age.rate.low > 0 && age.rate.estimate * life_s >= floor_bytes &&
        (double)age.rising >= (1 - RISING_MOST) * (double)age.count) {
        age.flattens = keeps.estimate <= 0;
        if (keeps.low > 0 && tail >= TAIL_SHARE * growth.sum) {
            age.trend = SEEP_FAMILY_GROWS;
        } else if (!age.flattens) {
            age.trend = SEEP_FAMILY_MAY_GROW;
        }
    }
    *ret_age = age;
}
