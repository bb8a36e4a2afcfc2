/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What guards the cohort-flow test: a recording is hostile input, and figures
 * that cannot be true must not become a verdict. Whatever passes
 * seep_growth_check_input() is finite, ordered and of a bounded size.
 */
#include "reader/growth_parts.h"

#include <math.h>

#define WINDOWS SEEP_GROWTH_WINDOWS
#define ROUNDING 1e-6 /* of sums of weights, once all of them are freed */

static bool all_finite(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

static bool survivors_are_sound(const struct seep_growth_input *input)
{
    for (size_t i = 0; i < input->survivor_count; i++) {
        const struct seep_survivor *survivor = &input->survivors[i];
        if (isnan(survivor->birth) || !isfinite(survivor->weight) ||
            !isfinite(survivor->variance) || survivor->weight < 0 ||
            survivor->variance < 0) {
            return false;
        }
    }
    return true;
}

static bool clock_is_sound(const struct seep_growth_input *input)
{
    const double *ends = input->bucket_end;

    for (size_t i = 0; i < input->bucket_count; i++) {
        if (!(ends[i] >= (i > 0 ? ends[i - 1] : 0))) {
            return false;
        }
    }
    return fabs(ends[input->bucket_count - 1] - 1) <= 1e-6;
}

static bool counts_are_sound(const struct seep_growth_input *input)
{
    return isfinite(input->died_old) && isfinite(input->live_old) &&
           isfinite(input->live_count) && input->died_old >= 0 &&
           input->live_old >= 0 && input->live_count >= 0 &&
           (input->allocations == NULL ||
            isfinite(input->allocations[input->bucket_count - 1]));
}

/* Why @input cannot be judged at all, or NULL. */
const char *seep_growth_check_input(const struct seep_growth_input *input)
{
    size_t count = input->bucket_count;

    if (count == 0) {
        return "it has no series";
    }
    if (count < SEEP_GROWTH_BUCKET_MINIMUM) {
        return "the run is too short: fewer than 32 intervals were recorded";
    }
    if (count > SEEP_GROWTH_BUCKET_LIMIT) {
        return "its series has more intervals than any recording";
    }
    if (input->bucket_end[count - 1] <= 0) {
        return "no work was done";
    }
    if (!clock_is_sound(input)) {
        return "its work clock does not run from 0 to 1";
    }
    if (!all_finite(input->live_bytes, count) ||
        !all_finite(input->low_bytes, count) || !counts_are_sound(input) ||
        !survivors_are_sound(input)) {
        return "its figures are damaged";
    }
    return NULL;
}

/* Survivors and the live series come from one recording: where they cannot
 * both be true, neither is evidence. */
bool seep_growth_check_contradiction(const struct seep_growth_site *site)
{
    const struct seep_growth_input *input = site->input;
    double most = seep_growth_largest(input->live_bytes, input->bucket_count);

    if (seep_growth_sum(site->cohorts.bytes, 0, WINDOWS) <= 0) {
        return input->live_bytes[input->bucket_count - 1] > ROUNDING * most;
    }
    if (most <= 0) {
        return true;
    }
    /* Old blocks that die can keep the curve flat; else it must have risen. */
    return site->growth->onset <= SEEP_GROWTH_ONSET_LAST &&
           site->detail->died_share <= SEEP_GROWTH_DIED_IMMORTAL &&
           seep_growth_series_is_flat(input);
}

bool seep_growth_check_figures(const struct seep_growth *growth)
{
    const double figures[] = {
        growth->rate.estimate,
        growth->rate.low,
        growth->rate.high,
        growth->confidence,
        growth->p,
        growth->zs,
        growth->mature_count,
        growth->effective_count,
        growth->died_share,
    };

    return all_finite(figures, sizeof(figures) / sizeof(figures[0])) &&
           all_finite(growth->window_bytes, WINDOWS);
}
