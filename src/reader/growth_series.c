/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the live series of a site says: troughs, trend, swing, one growing
 * block. A window or block of work that holds no bucket end is interpolated,
 * so every figure exists.
 */
#include "reader/growth_parts.h"

#define WINDOWS SEEP_GROWTH_WINDOWS
#define BLOCK_LIVE_MAX 4.0  /* more live blocks are no growing block */
#define BLOCK_ALLOCATIONS 8 /* fewer are too few reallocs */
#define BLOCK_FILL 0.2      /* of the mean, grown in every window */
#define BLOCK_RATIO 0.6     /* late half over early half: not slowing down */

int seep_growth_series_window(double bucket_end)
{
    int window = (int)((bucket_end - 1e-9) * WINDOWS);

    return window < WINDOWS ? window : WINDOWS - 1;
}

/*
 * As numpy.interp() does it, to the last bit: a trend test compares the
 * result with measured values. The series may begin with a point at 0.
 */
static double interpolate(const struct seep_growth_input *input, double clock,
                          bool from_zero)
{
    const double *ends = input->bucket_end;
    const double *live = input->live_bytes;
    size_t low = 0;
    size_t high = input->bucket_count; /* first end beyond the clock */
    double start = 0;
    double start_bytes = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ends[middle] <= clock) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
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

double seep_growth_series_live(const struct seep_growth_input *input,
                               double clock)
{
    return interpolate(input, clock, false);
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
    return count > 0 ? seep_growth_rank_quartile(lows, count)
                     : seep_growth_series_live(input, (start + end) / 2);
}

void seep_growth_series_lows(const struct seep_growth_input *input,
                             double ret_low_bytes[SEEP_GROWTH_WINDOWS])
{
    double lows[SEEP_GROWTH_BUCKET_LIMIT];
    size_t next = 0;

    for (int window = 0; window < WINDOWS; window++) {
        size_t count = 0;
        while (next < input->bucket_count &&
               seep_growth_series_window(input->bucket_end[next]) == window) {
            lows[count++] = input->low_bytes[next++];
        }
        ret_low_bytes[window] =
            count > 0
                ? seep_growth_rank_quartile(lows, count)
                : seep_growth_series_live(input, (window + 0.5) / WINDOWS);
    }
}

double seep_growth_series_trend(const struct seep_growth_input *input,
                                int onset)
{
    double lows[SEEP_GROWTH_BLOCKS];
    double begin = (double)onset / WINDOWS;
    double start = begin;
    size_t next = 0;

    while (next < input->bucket_count && input->bucket_end[next] <= begin) {
        next++;
    }
    for (int i = 0; i < SEEP_GROWTH_BLOCKS; i++) {
        double end = begin + (1 - begin) * (i + 1) / SEEP_GROWTH_BLOCKS;
        lows[i] = low_until(input, &next, start, end);
        start = end;
    }
    return seep_growth_rank_kendall(lows, SEEP_GROWTH_BLOCKS);
}

double seep_growth_series_swing(const struct seep_growth_input *input)
{
    double peaks[WINDOWS] = {0};
    double troughs[WINDOWS] = {0};
    bool seen[WINDOWS] = {false};
    double swings[WINDOWS];

    for (size_t i = 0; i < input->bucket_count; i++) {
        int window = seep_growth_series_window(input->bucket_end[i]);
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
    return seep_growth_rank_median(swings, WINDOWS);
}

/* Does a bucket end in every window that counts? Where the work of several was
 * done in one, what happened in it looks as if it had happened in each. */
static bool tells_windows_apart(const struct seep_growth_input *input)
{
    size_t next = 0;

    for (int window = SEEP_GROWTH_SETTLE; window < WINDOWS; window++) {
        double start = (double)window / WINDOWS;

        while (next < input->bucket_count && input->bucket_end[next] <= start) {
            next++;
        }
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
