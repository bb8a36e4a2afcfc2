/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether growth has stopped, whether live bytes grow by what is kept, and
 * whether it only follows a load that sets records.
 *
 * What must hold: "stopped" is a question of what was expected against what
 * was found, with the dispersion measured before it; where earlier stretches
 * were as empty, it comes in bursts and is not asked.
 */
#include <math.h>

#include "reader/statistics/parts.h"

#define BUCKETS SEEP_GROWTH_LIFE_BUCKETS
#define CLOSE 1e-9

/* Tuned on simulated sites; another value needs another study. */
#define BEGIN_MIN 0.1
#define DISPERSION_PRIOR 4.0
#define EXPECTED_MIN 3.0 /* (STOPMIN) */
#define FOUND_SHORT 0.5  /* of what was expected (SHORT) */
#define GAP_REM_MAX 0.2  /* an end so short may be a gap between bursts */
#define GAP 0.67
#define RECORD 0.9 /* of the most work of a bucket so far */
#define RECORD_FROM 0.1
#define RECORD_KEPT 0.9
#define RECORD_WORK 0.9
#define RECORD_Z 3.0
#define RISING_Z 5.0
#define RISING_KEPT_Z 1.0
#define RISING_WORK 0.8

static const double ends[] = {0.02, 0.03, 0.05, 0.075, 0.1,
                              0.15, 0.2,  0.25, 0.3,   0.4};
static const double rate_from[] = {0, 0.25, 0.4};

/* ln P(Poisson(expected) <= count): from the largest term down. */
static double whole_poisson(double count, double expected)
{
    int sign;
    double first =
        count * log(expected) - expected - lgamma_r(count + 1, &sign);
    double term = 1;
    double sum = 1;

    if (count > expected) { /* terms rise first: by the other tail */
        double other = 0;

        term = 1;
        for (double i = count + 1; i < count + 1000 && term > 1e-17; i++) {
            term *= expected / i;
            other += term;
        }
        return log(fmax(1e-300, 1 - fmin(1, exp(first) * other)));
    }
    for (double i = count; i > 0 && term > 1e-17 * sum; i--) {
        term *= i / expected;
        sum += term;
    }
    return first + log(sum);
}

/* ln P(Poisson(@expected) <= @found), between whole numbers linear. */
static double ln_poisson(double found, double expected)
{
    double below = floor(found);
    double low;
    double high;

    if (!(expected > 0) || !(found >= 0)) {
        return 0;
    }
    low = whole_poisson(below, expected);
    high = whole_poisson(below + 1, expected);
    return fmin(0, low + (high - low) * (found - below));
}

/** Kept so far, in blocks of equal weight, on a clock. */
struct kept {
    double sum[BUCKETS + 1];
    const double *clock;
    size_t count;
    double begin; /* where growth began */
};

static double kept_at(const struct kept *kept, double at)
{
    return seep_growth_life_at(kept->clock, kept->sum, kept->count + 1, at);
}

static bool sum_up(const struct seep_growth_births *births, const double *clock,
                   double begin, struct kept *kept)
{
    double bytes = 0;
    double squares = 0;
    size_t first = 0;

    while (first < births->count && clock[first] < begin - CLOSE) {
        first++;
    }
    for (size_t i = first; i < births->count; i++) {
        bytes += births->bytes[i];
        squares += births->squares[i];
    }
    if (!(bytes > 0) || !(squares > 0)) {
        return false;
    }
    kept->sum[0] = 0;
    for (size_t i = 0; i < births->count; i++) {
        kept->sum[i + 1] = kept->sum[i] + births->bytes[i] / (squares / bytes);
    }
    kept->clock = clock;
    kept->count = births->count;
    kept->begin = clock[first];
    return true;
}

/* The lowest rate before @end, of several beginnings; below 0: too short. */
static double former_rate(const struct kept *kept, double end)
{
    double least = -1;

    for (size_t i = 0; i < sizeof(rate_from) / sizeof(rate_from[0]); i++) {
        double from = kept->begin + rate_from[i] * (1 - kept->begin);

        if (end > from + 0.15) {
            double rate =
                (kept_at(kept, end) - kept_at(kept, from)) / (end - from);
            least = least < 0 ? rate : fmin(least, rate);
        }
    }
    return least;
}

static double dispersion_before(const struct kept *kept, double end)
{
    double all = kept_at(kept, end) - kept_at(kept, kept->begin);
    int count = (int)fmin(6, fmax(2, all / 4));
    double step = (end - kept->begin) / count;
    double expected = 0;
    double found[6];
    double square = 0;
    double measured = 1;

    for (int i = 0; i < count; i++) {
        double from = kept->begin + step * i;
        double to = i + 1 < count ? kept->begin + step * (i + 1) : end;
        found[i] = kept_at(kept, to) - kept_at(kept, from);
        expected += found[i] / count;
    }
    for (int i = 0; i < count; i++) {
        square += (found[i] - expected) * (found[i] - expected);
    }
    if (expected > 0) {
        measured = square / expected / (count - 1);
    }
    return fmax(1, ((count - 1) * measured + DISPERSION_PRIOR) /
                       (count - 1 + DISPERSION_PRIOR));
}

/* The least of any stretch of length @rest before @end. */
static double least_before(const struct kept *kept, double end, double rest,
                           double expected)
{
    double step = fmax(rest / 4, 0.01);
    double from = kept->begin + rest;
    double least = -1;

    for (int i = 0; from + i * step < end + CLOSE; i++) {
        double to = from + i * step;
        double found = kept_at(kept, to) - kept_at(kept, to - rest);
        least = least < 0 ? found : fmin(least, found);
    }
    return least < 0 ? expected : least;
}

/* ln p of the last @rest of the run; 0 where it says nothing. */
static double silence_of(const struct kept *kept, double rest)
{
    double end = 1 - rest;
    double rate = former_rate(kept, end);
    double expected = rate * rest;
    double found = kept_at(kept, 1) - kept_at(kept, end);
    double dispersion;

    if (end < kept->begin + 0.2 || rate < 0) {
        return 0;
    }
    dispersion = dispersion_before(kept, end);
    if (expected / dispersion < EXPECTED_MIN ||
        found >= FOUND_SHORT * expected) {
        return 0;
    }
    if (rest <= GAP_REM_MAX) {
        double least = least_before(kept, end, rest, expected);
        if (found >= GAP * least && least < 0.5 * expected) {
            return 0;
        }
    }
    return ln_poisson(found / dispersion, expected / dispersion);
}

struct seep_growth_stop
seep_growth_stop_find(const struct seep_growth_births *births,
                      const double *clock, int onset)
{
    struct seep_growth_stop stop = {0, -1};
    double begin = onset <= 2 ? 0 : (double)onset / 10;
    struct kept kept;

    if (!sum_up(births, clock, fmax(BEGIN_MIN, begin), &kept)) {
        return (struct seep_growth_stop){-99, fmax(BEGIN_MIN, begin)};
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        double ln_p = silence_of(&kept, ends[i]);

        if (ln_p < stop.ln_p) {
            stop = (struct seep_growth_stop){ln_p, 1 - ends[i]};
        }
    }
    return stop;
}

/** A column of a regression, of the rows that count. */
struct column {
    double at[BUCKETS];
};

static double product(const struct column *a, const struct column *b,
                      size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += a->at[i] * b->at[i];
    }
    return sum;
}

/* What of @column no multiple of @other explains. */
static void take_out(struct column *column, const struct column *other,
                     size_t count)
{
    double whole = product(other, other, count);
    double part = whole > 0 ? product(column, other, count) / whole : 0;

    for (size_t i = 0; i < count; i++) {
        column->at[i] -= part * other->at[i];
    }
}

double seep_growth_stop_net(const struct seep_growth_input *input,
                            const struct seep_growth_births *births, int onset)
{
    double from = fmax(0.05, onset <= 2 ? 0 : (double)onset / 10);
    double other[BUCKETS + 2] = {0};
    struct column one;
    struct column own;
    struct column kept;
    struct column live;
    double before;
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < births->count; i++) {
        other[i + 1] = input->life->allocated_bytes[i] - births->bytes[i];
    }
    for (size_t i = 0; i < births->count; i++) {
        sum += births->bytes[i];
        if (births->work[i + 1] >= from) {
            one.at[count] = 1;
            own.at[count] = (other[i] + other[i + 1] + other[i + 2]) / 3;
            kept.at[count] = sum;
            live.at[count] = input->live_bytes[i];
            count++;
        }
    }
    if (count < 8) {
        return 1;
    }
    before = product(&own, &own, count);
    take_out(&own, &one, count);
    take_out(&kept, &one, count);
    if (product(&own, &own, count) > 1e-16 * before) {
        take_out(&kept, &own, count);
    }
    sum = product(&kept, &kept, count);
    return sum > 0 ? product(&kept, &live, count) / sum : 0;
}

/* Of three: a block that stays is allocated, too, and where bytes are the
 * work it must not make the record that it is said to follow. */
static double middle_of(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static double work_of(const struct seep_growth_life *life, size_t i,
                      size_t count)
{
    const double *edge = life->work_edge;
    double own = edge[i + 1] - edge[i];

    if (!life->bytes_are_work) {
        return own;
    }
    return middle_of(i > 0 ? edge[i] - edge[i - 1] : own, own,
                     i + 1 < count ? edge[i + 2] - edge[i + 1] : own);
}

bool seep_growth_stop_follows(const struct seep_growth_input *input,
                              const struct seep_growth_births *births,
                              const struct seep_growth_fit *fit, double limit)
{
    const double *edge = input->life->work_edge;
    double most = 0;
    double work = 0;
    double work_record = 0;
    double kept = 0;
    double kept_record = 0;
    double squares = 0;
    double share;
    double z;

    for (size_t i = 0; i < births->count; i++) {
        double done = work_of(input->life, i, births->count);

        if (edge[i] >= RECORD_FROM) {
            bool is_record = done >= RECORD * most;
            work += done;
            work_record += is_record ? done : 0;
            kept += births->bytes[i];
            kept_record += is_record ? births->bytes[i] : 0;
            squares += births->squares[i];
        }
        most = fmax(most, done);
    }
    if (!(kept > 0)) {
        return false;
    }
    work_record /= fmax(work, 1e-12);
    kept_record /= kept;
    share = fmax(0.001, fmin(0.999, work_record));
    z = (kept_record - share) /
        sqrt(share * (1 - share) /
             fmax(1, kept * kept / squares / fit->dispersion));
    if (work_record < RECORD_WORK && kept_record >= RECORD_KEPT &&
        z > RECORD_Z) {
        return true;
    }
    return input->life->load_rises &&
           (fit->exponent - limit) / fit->error < RISING_Z &&
           (z > RISING_KEPT_Z || work_record > RISING_WORK ||
            input->life->bytes_are_work);
}
