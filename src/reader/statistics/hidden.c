/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How large a leak may hide in a site whose blocks are replaced.
 *
 * A leak is at most what is kept of what was born long ago, and at most what
 * live bytes rose by in the second half of the run. Where one of the two
 * denies it, it is not there; where both leave room for one, that blocks are
 * replaced reassures nobody.
 *
 * What must hold: both bounds have the error of what they were measured by in
 * them, and of two clocks the one counts that leaves more room.
 */
#include <math.h>

#include "reader/statistics/parts.h"

#define PARTS SEEP_GROWTH_STOOD_PARTS
#define OLD_FROM 0.1 /* of the run: what came before is start-up */
#define OLD_Z 1.64   /* of a Poisson number: 95 %, one-sided */
#define OLD_MORE 1.4 /* that makes it right for small ones */
#define LIVE_T 1.94  /* Student's of six degrees, ditto */
#define LIVE_Z 1.96  /* of what replaces by chance, in the lower bound */

/* What was born from OLD_FROM to each of these is old: the less of it there is
 * by one of them, the less was kept in every part of the run. */
static const double old_until[] = {0.3, 0.4, 0.5};

/** Survivors born in a part of the run. */
struct born {
    double bytes;
    double squares;
};

static double birth_of(const struct seep_growth_input *input,
                       const struct seep_survivor *survivor, bool by_time)
{
    return by_time ? (double)survivor->birth_tick / input->life->end_tick
                   : survivor->birth;
}

static struct born born_in(const struct seep_growth_input *input, bool by_time,
                           double from, double until)
{
    struct born born = {0, 0};

    for (size_t i = 0; i < input->survivor_count; i++) {
        const struct seep_survivor *survivor = &input->survivors[i];
        double birth = birth_of(input, survivor, by_time);

        if (birth > from && birth <= until) {
            born.bytes += survivor->weight;
            born.squares += survivor->weight * survivor->weight;
        }
    }
    return born;
}

/* Bytes over the run that were kept of what is old, as a Poisson number. */
static struct seep_growth_hidden
kept_of_old(const struct seep_growth_input *input, bool by_time)
{
    struct born all = born_in(input, by_time, -INFINITY, INFINITY);
    struct seep_growth_hidden least = {.unit = 1, .rate.high = INFINITY};

    for (size_t i = 0; i < sizeof(old_until) / sizeof(old_until[0]); i++) {
        struct born old = born_in(input, by_time, OLD_FROM, old_until[i]);
        const struct born *sized = old.bytes > 0 ? &old : &all;
        double unit = sized->bytes > 0 ? sized->squares / sized->bytes : 1;
        double count = old.bytes / unit;
        double scale = unit / (old_until[i] - OLD_FROM);
        double high = count + OLD_Z * sqrt(count + 1) + OLD_MORE;

        if (scale * high < least.rate.high) {
            least.unit = unit;
            least.rate = (struct seep_interval){
                scale * count,
                scale * (count - OLD_Z * sqrt(count)),
                scale * high,
            };
        }
    }
    return least;
}

int seep_growth_stood_parts(const struct seep_growth_input *input,
                            const double *clock, double ret_mean[PARTS])
{
    int filled = 0;

    for (int part = 0; part < PARTS; part++) {
        double from = 0.5 + part / 16.0;
        double sum = 0;
        int count = 0;

        for (size_t i = 0; i < input->bucket_count; i++) {
            if (clock[i + 1] > from &&
                clock[i + 1] <= from + 1 / 16.0 + 1e-12) {
                sum += input->live_bytes[i];
                count++;
            }
        }
        ret_mean[part] = count > 0 ? sum / count : NAN;
        filled += count > 0;
    }
    return filled;
}

/** A line through those of the parts that are known. */
struct line {
    double slope;
    double variance; /* of the slope, by what is off the line */
};

static struct line line_of(const double mean[PARTS], int filled)
{
    double at = 0;
    double level = 0;
    double xx = 0;
    double xy = 0;
    double yy = 0;

    for (int part = 0; part < PARTS; part++) {
        at += isnan(mean[part]) ? 0 : part / 16.0 / filled;
        level += isnan(mean[part]) ? 0 : mean[part] / filled;
    }
    for (int part = 0; part < PARTS; part++) {
        double x = part / 16.0 - at;
        double y = mean[part] - level;

        if (!isnan(y)) {
            xx += x * x;
            xy += x * y;
            yy += y * y;
        }
    }
    return (struct line){
        xy / xx,
        fmax(0, yy - xy * xy / xx) / (filled - 2) / xx,
    };
}

/* Bytes over the run that live bytes rise by in its second half. What replaces
 * there is as many blocks as were there only by chance: that alone is no
 * growth. */
static bool live_rise(const struct seep_growth_input *input, bool by_time,
                      struct seep_interval *ret_rate)
{
    const struct seep_growth_life *life = input->life;
    double chance = sqrt(born_in(input, by_time, 0.5, INFINITY).squares) /
                    SEEP_GROWTH_STOOD_SPAN;
    double mean[PARTS];
    int filled = seep_growth_stood_parts(
        input, by_time ? life->time_edge : life->work_edge, mean);
    struct line line;

    if (filled < SEEP_GROWTH_STOOD_MIN) {
        return false;
    }
    line = line_of(mean, filled);
    *ret_rate = (struct seep_interval){
        line.slope,
        line.slope - sqrt(LIVE_T * LIVE_T * line.variance +
                          LIVE_Z * LIVE_Z * chance * chance),
        line.slope + LIVE_T * sqrt(line.variance),
    };
    return true;
}

static struct seep_growth_hidden
hidden_by(const struct seep_growth_input *input, bool by_time)
{
    struct seep_growth_hidden hidden = kept_of_old(input, by_time);
    struct seep_interval live;

    if (live_rise(input, by_time, &live)) {
        hidden.rate.estimate = fmin(hidden.rate.estimate, live.estimate);
        hidden.rate.low = fmin(hidden.rate.low, live.low);
        hidden.rate.high = fmin(hidden.rate.high, live.high);
    }
    hidden.rate.estimate = fmax(0, hidden.rate.estimate);
    hidden.rate.low = fmax(0, hidden.rate.low);
    hidden.rate.high = fmax(0, hidden.rate.high);
    return hidden;
}

struct seep_growth_hidden
seep_growth_hidden_in(const struct seep_growth_input *input)
{
    struct seep_growth_hidden by_work = hidden_by(input, false);
    struct seep_growth_hidden by_time = hidden_by(input, true);

    seep_growth_life_take_out_start(input, &by_work.rate);
    return by_work.rate.high >= by_time.rate.high ? by_work : by_time;
}
