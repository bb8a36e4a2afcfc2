/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the live series of a site says: troughs, trend, swing, one growing
 * block. A window or block of work that holds no bucket end is interpolated,
 * so every figure exists.
 */
#include <math.h>

#include "base/math.h"
#include "reader/statistics/parts.h"

#define WINDOWS SEEP_GROWTH_WINDOWS
#define BLOCK_LIVE_MAX 4.0  /* more live blocks are no growing block */
#define BLOCK_ALLOCATIONS 8 /* fewer are too few reallocs */
#define BLOCK_FILL 0.2      /* of the mean, grown in every window */
#define BLOCK_RATIO 0.6     /* late half over early half: not slowing down */

size_t seep_growth_first_beyond(const double *x, size_t count, double at)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (x[middle] <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return high;
}

/* The window that a bucket belongs to, by its end. */
static int window_of(double bucket_end)
{
    int window = (int)((bucket_end - 1e-9) * WINDOWS);

    return window < WINDOWS ? window : WINDOWS - 1;
}

/*
 * Live bytes at @clock, linear between bucket ends: as numpy.interp() does it,
 * to the last bit, for a trend test compares the result with measured values.
 * The series may begin with a point at 0.
 */
static double interpolate(const struct seep_growth_input *input, double clock,
                          bool from_zero)
{
    const double *ends = input->bucket_end;
    const double *live = input->live_bytes;
    size_t high = seep_growth_first_beyond(ends, input->bucket_count, clock);
    double start = 0;
    double start_bytes = 0;

    if (high == input->bucket_count) {
        return live[high - 1];
    }
    if (high > 0) {
        start = ends[high - 1];
        start_bytes = live[high - 1];
    } else if (!from_zero) {
        return live[0];
    }
    if (start == clock) {
        return start_bytes;
    }
    return (live[high] - start_bytes) / (ends[high] - start) * (clock - start) +
           start_bytes;
}

/*
 * Lower quartile of the lows of the buckets from number *@next on that end
 * until @end; *@next moves behind them. None: live bytes in mid-way.
 */
static double low_until(const struct seep_growth_input *input, size_t *next,
                        double start, double end)
{
    double lows[SEEP_GROWTH_BUCKET_LIMIT];
    size_t count = 0;

    while (*next < input->bucket_count && input->bucket_end[*next] <= end) {
        lows[count++] = input->low_bytes[(*next)++];
    }
    return count > 0 ? seep_math_lower_quartile(lows, count)
                     : interpolate(input, (start + end) / 2, false);
}

void seep_growth_series_lows(const struct seep_growth_input *input,
                             double ret_low_bytes[SEEP_GROWTH_WINDOWS])
{
    double lows[SEEP_GROWTH_BUCKET_LIMIT];
    size_t next = 0;

    for (int window = 0; window < WINDOWS; window++) {
        size_t count = 0;
        while (next < input->bucket_count &&
               window_of(input->bucket_end[next]) == window) {
            lows[count++] = input->low_bytes[next++];
        }
        ret_low_bytes[window] =
            count > 0 ? seep_math_lower_quartile(lows, count)
                      : interpolate(input, (window + 0.5) / WINDOWS, false);
    }
}

double seep_growth_series_trend(const struct seep_growth_input *input,
                                int onset)
{
    double lows[SEEP_GROWTH_BLOCKS];
    double begin = (double)onset / WINDOWS;
    double start = begin;
    size_t next =
        seep_growth_first_beyond(input->bucket_end, input->bucket_count, begin);

    for (int i = 0; i < SEEP_GROWTH_BLOCKS; i++) {
        double end = begin + (1 - begin) * (i + 1) / SEEP_GROWTH_BLOCKS;
        lows[i] = low_until(input, &next, start, end);
        start = end;
    }
    return seep_rank_kendall(lows, SEEP_GROWTH_BLOCKS);
}

double seep_growth_series_swing(const struct seep_growth_input *input)
{
    double peaks[WINDOWS] = {0};
    double troughs[WINDOWS] = {0};
    bool seen[WINDOWS] = {false};
    double swings[WINDOWS];

    for (size_t i = 0; i < input->bucket_count; i++) {
        int window = window_of(input->bucket_end[i]);
        if (!seen[window] || input->live_bytes[i] > peaks[window]) {
            peaks[window] = input->live_bytes[i];
        }
        if (!seen[window] || input->low_bytes[i] < troughs[window]) {
            troughs[window] = input->low_bytes[i];
        }
        seen[window] = true;
    }
    for (int i = 0; i < WINDOWS; i++) {
        double whole = peaks[i] > 1e-9 ? peaks[i] : 1e-9;
        swings[i] = (peaks[i] - troughs[i]) / whole;
    }
    return seep_rank_median(swings, WINDOWS);
}

/* Does a bucket end in every window that counts? Where the work of several was
 * done in one, what happened in it looks as if it had happened in each. */
static bool tells_windows_apart(const struct seep_growth_input *input)
{
    for (int window = SEEP_GROWTH_SETTLE; window < WINDOWS; window++) {
        size_t next = seep_growth_first_beyond(
            input->bucket_end, input->bucket_count, (double)window / WINDOWS);

        if (next == input->bucket_count ||
            input->bucket_end[next] > (window + 1.0) / WINDOWS) {
            return false;
        }
    }
    return true;
}

bool seep_growth_series_block(const struct seep_growth_input *input,
                              double *ret_rate)
{
    double grown[WINDOWS - SEEP_GROWTH_SETTLE];
    const int count = WINDOWS - SEEP_GROWTH_SETTLE;
    double early = 0;
    double late = 0;
    double rate;

    if (input->allocations == NULL || input->live_count > BLOCK_LIVE_MAX ||
        input->allocations[input->bucket_count - 1] < BLOCK_ALLOCATIONS ||
        !tells_windows_apart(input)) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        int window = SEEP_GROWTH_SETTLE + i;
        grown[i] = interpolate(input, (window + 1.0) / WINDOWS, true) -
                   interpolate(input, (double)window / WINDOWS, true);
        *(i < count / 2 ? &early : &late) += grown[i];
    }
    rate = (early + late) / count;
    for (int i = 0; i < count; i++) {
        if (!(rate > 0) || grown[i] < BLOCK_FILL * rate) {
            return false;
        }
    }
    if (!(late >= BLOCK_RATIO * early)) {
        return false;
    }
    *ret_rate = rate;
    return true;
}

bool seep_growth_series_is_flat(const struct seep_growth_input *input)
{
    for (size_t i = 1; i < input->bucket_count; i++) {
        if (input->live_bytes[i] != input->live_bytes[0]) {
            return false;
        }
    }
    return true;
}

/*
 * Containers that grow: one block that is reallocated by a factor, or many of
 * them at one site. No block of theirs gets old, and yet they are a leak of
 * what is put in.
 *
 * What must hold: a step is foretold only where the last four came as those of
 * one that fills evenly do: each takes as much longer as it is larger.
 */

#define BUCKETS SEEP_GROWTH_LIFE_BUCKETS
#define PARTS 8

/* Tuned on simulated sites; another value needs another study. */
#define LIVE_MAX 4U
#define STEP 1.1
#define STEPS_MIN 4
#define FELL 0.95
#define SPACING_LOW 0.7
#define SPACING_HIGH 1.4
#define OVERDUE 1.15
#define RISE_FROM 0.3
#define RISE 1.25
#define RISE_LATE 1.08
#define RISE_FELL 0.93
#define LIFE 1.25
#define SIZE 1.4
#define SIZE_BEND 0.1
#define SIZE_BIRTHS 5.0
#define BEND 0.07
#define BEND_FROM 0.6
#define STRAIGHT_BEND 0.03
#define STRAIGHT_FROM 0.45
#define SURE_BEND 0.06
#define SURE_BIRTHS 8.0
#define ROSE 1.3
#define RATE_ERROR 0.3 /* capacity is above content by up to a step */
#define SMALL_STEPS_MIN 6
#define SMALL_STEP 1.01
#define SMALL_FACTOR 1.5
#define SMALL_FELL 0.01
#define SMALL_ALLOCATIONS 8.0
#define SLOPE_LOW 0.75
#define SLOPE_HIGH 1.6
#define SLOPE_SPREAD 0.12
#define SLOPE_FROM 0.1
#define FACTOR_FROM 0.3

/** The last steps, as they came. */
struct last_steps {
    size_t bucket[STEPS_MIN];
    double at[STEPS_MIN]; /* on the clock of work */
};

/* What was live at the end of a bucket, without a block that was on its way
 * out: the old one goes when the new one has its content. */
static double level_at(const struct seep_growth_input *input, size_t bucket)
{
    const double *live = input->live_bytes;

    return bucket + 1 < input->bucket_count
               ? fmin(live[bucket], live[bucket + 1])
               : live[bucket];
}

static double factor_at(const struct seep_growth_input *input, size_t bucket)
{
    return level_at(input, bucket) / level_at(input, bucket - 1);
}

static bool find_last(const struct seep_growth_input *input,
                      struct last_steps *last)
{
    const double *clock = input->life->work_edge;
    double most = 0;
    int count = 0;

    for (size_t i = input->bucket_count - 1; i > 0 && count < STEPS_MIN; i--) {
        double before = level_at(input, i - 1);

        if (before > 0 && level_at(input, i) > STEP * before) {
            count++;
            last->bucket[STEPS_MIN - count] = i;
            last->at[STEPS_MIN - count] = (clock[i] + clock[i + 1]) / 2;
        }
    }
    if (count < STEPS_MIN) {
        return false;
    }
    for (size_t i = 0; i < input->bucket_count; i++) {
        if (i >= last->bucket[0] && level_at(input, i) < FELL * most) {
            return false;
        }
        most = fmax(most, level_at(input, i));
    }
    return true;
}

bool seep_growth_steps_doubles(const struct seep_growth_input *input,
                               struct seep_growth_steps *ret_steps)
{
    double blur = 1.0 / (double)input->bucket_count;
    struct last_steps last;
    double spacing[STEPS_MIN - 1];
    double factor = 1;

    if (input->survivor_count == 0 || input->survivor_count > LIVE_MAX ||
        input->life->born_seen < STEPS_MIN || !find_last(input, &last)) {
        return false;
    }
    for (int i = 0; i + 1 < STEPS_MIN; i++) {
        spacing[i] = last.at[i + 1] - last.at[i];
        if (!(spacing[i] > 0)) {
            return false;
        }
    }
    for (int i = 1; i + 1 < STEPS_MIN; i++) {
        factor = factor_at(input, last.bucket[i]);
        if (spacing[i] + blur <
                SPACING_LOW * factor * (spacing[i - 1] - blur) ||
            spacing[i] - blur >
                SPACING_HIGH * factor * (spacing[i - 1] + blur)) {
            return false;
        }
    }
    factor = factor_at(input, last.bucket[STEPS_MIN - 1]);
    if (last.at[STEPS_MIN - 1] + OVERDUE * spacing[STEPS_MIN - 2] * factor <
        1) {
        return false;
    }
    *ret_steps = (struct seep_growth_steps){
        .next = last.at[STEPS_MIN - 1] + spacing[STEPS_MIN - 2] * factor,
        .next_bytes = factor * level_at(input, last.bucket[STEPS_MIN - 1]),
    };
    return true;
}

/* Content fills up to the capacity that it had when the next step came. */
void seep_growth_steps_foretell(const struct seep_growth_input *input,
                                const struct seep_growth_steps *steps,
                                struct seep_growth *growth)
{
    const struct seep_growth_life *life = input->life;
    size_t count = input->bucket_count;
    double live = input->live_bytes[count - 1];
    double pace = (1 - seep_growth_life_at(life->time_edge, life->work_edge,
                                           count + 1, 0.8)) /
                  0.2;
    double rate = steps->next > 0 ? live / steps->next : 0;

    growth->in_steps = true;
    growth->step_next_bytes = steps->next_bytes;
    growth->step_next_time =
        steps->next <= 1 ? seep_growth_life_at(life->work_edge, life->time_edge,
                                               count + 1, steps->next)
        : pace > 0.01    ? 1 + (steps->next - 1) / pace
                         : 0;
    growth->rate = (struct seep_interval){rate, rate * 0.5, rate * 1.5};
}

/* The lowest of each of eight parts from 0.3 of the work on. */
static bool find_troughs(const struct seep_growth_input *input,
                         double troughs[PARTS])
{
    const double *clock = input->life->work_edge;

    for (int part = 0; part < PARTS; part++) {
        double from = RISE_FROM + (1 - RISE_FROM) * part / PARTS;
        double to = RISE_FROM + (1 - RISE_FROM) * (part + 1) / PARTS;
        double least = INFINITY;

        for (size_t i = 0; i < input->bucket_count; i++) {
            if (clock[i + 1] > from && clock[i + 1] <= to + 1e-12) {
                least = fmin(least,
                             fmin(input->low_bytes[i], input->live_bytes[i]));
            }
        }
        if (!isfinite(least)) {
            return false;
        }
        troughs[part] = least;
    }
    return true;
}

static bool do_rise(const double troughs[PARTS])
{
    double most = troughs[0];

    if (troughs[7] < RISE * fmax(troughs[0], 1e-9) ||
        troughs[7] < RISE_LATE * troughs[3]) {
        return false;
    }
    for (int i = 1; i < PARTS; i++) {
        if (troughs[i] < RISE_FELL * most) {
            return false;
        }
        most = fmax(most, troughs[i]);
    }
    return true;
}

/** Two halves of what came after the start-up. */
struct half {
    double held; /* live bytes, over the work */
    double bytes;
    double births;
};

static struct half sum_half(const struct seep_growth_input *input, double from,
                            double to)
{
    const struct seep_growth_life *life = input->life;
    struct half half = {0, 0, 0};

    for (size_t i = 0; i < input->bucket_count; i++) {
        if (life->work_edge[i + 1] > from && life->work_edge[i + 1] <= to) {
            half.held += input->live_bytes[i] *
                         (life->work_edge[i + 1] - life->work_edge[i]);
            half.bytes += life->allocated_bytes[i];
            half.births += life->allocated_count[i];
        }
    }
    return half;
}

/* Slope of the line through what rises in steps, by least squares, and how far
 * off the points are. It is a shape that is asked for, without an interval. */
static double slope_of(const double *x, const double *y, size_t count,
                       double *ret_off)
{
    double mean_x = 0;
    double mean_y = 0;
    double square = 0;
    double product = 0;
    double off = 0;

    for (size_t i = 0; i < count; i++) {
        mean_x += x[i] / (double)count;
        mean_y += y[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        square += (x[i] - mean_x) * (x[i] - mean_x);
        product += (x[i] - mean_x) * (y[i] - mean_y);
    }
    for (size_t i = 0; i < count; i++) {
        double one = y[i] - mean_y - product / square * (x[i] - mean_x);
        off += one * one;
    }
    *ret_off = sqrt(off / (double)count);
    return square > 0 ? product / square : 0;
}

bool seep_growth_steps_rise(const struct seep_growth_input *input,
                            struct seep_growth_steps *ret_steps)
{
    static const double part[PARTS] = {0, 1, 2, 3, 4, 5, 6, 7};
    double troughs[PARTS];
    struct half early;
    struct half late;
    double rate;
    double bend;
    double life;
    double size;
    bool container;

    if (!find_troughs(input, troughs) || !do_rise(troughs)) {
        return false;
    }
    early = sum_half(input, RISE_FROM, 0.65);
    late = sum_half(input, 0.65, 1);
    rate = slope_of(part, troughs, PARTS, &bend) * PARTS / (1 - RISE_FROM);
    bend /= fmax(troughs[7] - troughs[0], 1e-9);
    life = late.held / fmax(late.bytes, 1e-9) /
           fmax(early.held / fmax(early.bytes, 1e-9), 1e-9);
    size = late.bytes / fmax(late.births, 1e-9) /
           fmax(early.bytes / fmax(early.births, 1e-9), 1e-9);
    container = size >= SIZE && bend < SIZE_BEND && life >= 1 &&
                late.births >= SIZE_BIRTHS;
    if (!container &&
        (life < LIFE || bend >= BEND || troughs[0] >= BEND_FROM * troughs[7])) {
        return false;
    }
    *ret_steps = (struct seep_growth_steps){
        .rate = {rate, rate * (1 - RATE_ERROR), rate * (1 + RATE_ERROR)},
        .container = container,
        .straight =
            bend < STRAIGHT_BEND && troughs[0] < STRAIGHT_FROM * troughs[7],
        .certain = container && bend < SURE_BEND && life >= LIFE &&
                   late.births >= SURE_BIRTHS && !input->life->load_rises &&
                   input->life->has_work,
    };
    return true;
}

bool seep_growth_steps_rose(const struct seep_growth_input *input)
{
    const double *clock = input->life->work_edge;
    double least = INFINITY;
    double most = -1;

    for (size_t i = 0; i < input->bucket_count; i++) {
        if (clock[i + 1] > 0.75) {
            least =
                fmin(least, fmin(input->low_bytes[i], input->live_bytes[i]));
        } else if (clock[i + 1] <= 0.5) {
            most = fmax(most, input->live_bytes[i]);
        }
    }
    return most >= 0 && isfinite(least) && least > ROSE * most;
}

/** Steps of less than half, and what was full when they came. */
struct small_steps {
    double at[BUCKETS];
    double full[BUCKETS];
    double factor[BUCKETS];
    size_t count;
};

static bool list_small(const struct seep_growth_input *input,
                       struct small_steps *steps)
{
    const double *live = input->live_bytes;
    const double *clock = input->life->work_edge;
    size_t count = input->bucket_count;
    double most = 0;

    steps->count = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, live[i]);
    }
    if (!(live[count - 1] > 0) || live[count - 1] < 0.999 * most) {
        return false;
    }
    for (size_t i = 1; i < count; i++) {
        size_t after = i + 1 < count ? i + 1 : count;
        double at = (clock[i] + clock[after]) / 2;

        if (live[i] - live[i - 1] < -SMALL_FELL * most) {
            return false;
        }
        if (live[i] > SMALL_STEP * live[i - 1] && at >= SLOPE_FROM &&
            live[i - 1] > 0) {
            steps->at[steps->count] = at;
            steps->full[steps->count] = live[i - 1];
            steps->factor[steps->count++] = live[i] / live[i - 1];
        }
    }
    return steps->count >= SMALL_STEPS_MIN;
}

static double median_factor(const struct small_steps *steps)
{
    double late[BUCKETS];
    size_t count = 0;

    for (size_t i = 0; i < steps->count; i++) {
        if (steps->at[i] >= FACTOR_FROM) {
            late[count++] = steps->factor[i];
        }
    }
    return count >= 2 ? seep_rank_median(late, count) : 9;
}

/* Exponent of what was full over the work, and the spread about it. */
static double exponent_of(const struct small_steps *steps, double *ret_spread)
{
    double x[BUCKETS];
    double y[BUCKETS];

    for (size_t i = 0; i < steps->count; i++) {
        x[i] = log(steps->at[i]);
        y[i] = log(steps->full[i]);
    }
    return slope_of(x, y, steps->count, ret_spread);
}

bool seep_growth_steps_small(const struct seep_growth_input *input,
                             struct seep_growth_steps *ret_steps)
{
    struct small_steps steps;
    double factor;
    double slope;
    double spread;
    double last;
    double rate;

    if (input->survivor_count > LIVE_MAX ||
        input->life->born_seen < SMALL_ALLOCATIONS ||
        !list_small(input, &steps)) {
        return false;
    }
    slope = exponent_of(&steps, &spread);
    factor = median_factor(&steps);
    last = steps.at[steps.count - 1];
    if (!(slope >= SLOPE_LOW && slope <= SLOPE_HIGH) ||
        !(spread < SLOPE_SPREAD) || factor > SMALL_FACTOR ||
        1 / last > pow(factor, 1.5)) {
        return false;
    }
    rate = steps.full[steps.count - 1] / last;
    *ret_steps = (struct seep_growth_steps){
        .rate = {rate, rate * (1 - RATE_ERROR), rate * (1 + RATE_ERROR)},
        .next = last * factor,
        .next_bytes = factor * input->live_bytes[input->bucket_count - 1],
        .certain = true,
    };
    return true;
}
