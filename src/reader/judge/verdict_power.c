/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a verdict is worth: the largest leak that could hide behind it, and how
 * much longer a run would tell.
 *
 * A leak is found by the survivors that were sampled of it, or by what private
 * memory grew by; it hides if neither shows it:
 *
 *   by samples  max(SURVIVORS * sample_bytes, FLOORS * floor) / duration
 *   by balance  (floor + free) / span + (1 + 1.64 / 1.96) * error
 *
 * In the pool of an allocator inside a library there are no samples, and all of
 * it may be free.
 *
 * Of a Poisson number with a mean of 20 at least 12, which a leak rests on, are
 * seen in 98 of 100 runs; a leak of the floor is measured to be less than that
 * in half of them, and of one and a half floors hardly ever. The balance sees
 * growth whose lower bound, an error below the estimate, is above the floor; in
 * 95 of 100 runs the estimate is not lower than 1.64 sigma below the truth, and
 * an error is 1.96 of them. What the allocator holds free can be filled without
 * any growth. And nothing less than the upper bound of what was seen can be
 * excluded, of the process and of each of its rows. tests/simulate/power.py
 * holds it against simulated leaks of exactly so much.
 *
 * Invariant: only what was tested reassures.
 */
#include <math.h>

#include "reader/judge/verdict.h"

#define SURVIVORS 20.0
#define FLOORS 1.5
/* Of work, and for a second of imports: then they are no longer most of it. */
#define WORK_S 30.0
#define WORK_TO_IMPORTS (1 / 3.0)
#define POWER (1 + 1.64 / 1.96)
#define LN_STOPPED (-4.605170186) /* a gap of one chance in 100 */

static double hidden_from_samples(const struct seep_verdict_input *input,
                                  double floor_bytes)
{
    return fmax(SURVIVORS * input->sample_bytes, FLOORS * floor_bytes) /
           seep_verdict_worked_s(input);
}

static double hidden_from_balance(const struct seep_verdict_input *input)
{
    const struct seep_drift *drift = &input->private_drift;
    double span_s = (1 - SEEP_WINDOW_SETTLE) * seep_verdict_worked_s(input);
    double floor_bytes = seep_drift_floor_bytes(drift->last_bytes);
    const struct seep_site_work *pool = seep_verdict_pool(input);
    double free_bytes = fmax(0, input->free_bytes);

    if (!drift->known) {
        return INFINITY;
    }
    if (pool != NULL) { /* how much of it is free is not known */
        free_bytes += fmin((double)pool->site.live_bytes, drift->last_bytes);
    }
    return fmax(drift->most_bytes_per_s, (floor_bytes + free_bytes) / span_s +
                                             POWER * drift->error_bytes_per_s);
}

static bool is_quiet(const struct seep_report_verdict *verdict)
{
    if (verdict->open_reason != NULL) {
        return false;
    }
    switch (verdict->class) {
    case SEEP_VERDICT_STEADY:
        return true;
    case SEEP_VERDICT_BOUNDED:
        return !verdict->filling;
    case SEEP_VERDICT_RETENTION:
    case SEEP_VERDICT_FRAGMENTATION:
        return !verdict->has_growth;
    default:
        return false;
    }
}

/* Until so many survivors of what grows are there, or until a pause as long is
 * no chance any more; at the least as long again. */
static double need_of(const struct seep_verdict_input *input,
                      const struct seep_verdict_counts *counts,
                      const struct seep_report_verdict *verdict)
{
    double need_s = input->duration_s;
    double rate = verdict->growth_bytes_per_s.estimate;

    if (verdict->class != SEEP_VERDICT_INSUFFICIENT &&
        verdict->open_reason == NULL) {
        return 0;
    }
    if (input->imports_s > 0) {
        need_s = fmax(WORK_S, input->imports_s * WORK_TO_IMPORTS) -
                 (input->duration_s - input->imports_s);
    }
    if (verdict->private_grows && rate > 0) {
        need_s = fmax(need_s, SURVIVORS * input->sample_bytes / rate);
    }
    if (verdict->too_little && rate > 0) {
        need_s = fmax(need_s, verdict->floor_bytes / rate -
                                  seep_verdict_worked_s(input));
    }
    if (!verdict->private_grows && input->private_drift.may_go_on) {
        need_s = input->private_drift.need_s;
    }
    if (counts->unstopped.count > 0 && counts->unstopped_ln_p < 0) {
        need_s = fmax(0, counts->unstopped_gap_s *
                             (LN_STOPPED / counts->unstopped_ln_p - 1));
    }
    if (counts->unstopped_next_s > 0) {
        need_s = fmax(need_s, counts->unstopped_next_s);
    }
    return need_s > 0 ? need_s : input->duration_s;
}

/* Of call sites that were seen for too short a time to be tested: all that they
 * kept may be a leak, with what was not sampled of it. */
static double hidden_untested(const struct seep_verdict_input *input)
{
    double work_s = input->duration_s - input->imports_s;

    return work_s > 0
               ? (input->kept_bytes + SURVIVORS * input->sample_bytes) / work_s
               : INFINITY;
}

/* Where call sites were not tested, or not well enough to be called quiet, all
 * that bounds a leak is what the process grew by. */
static double hidden_of(const struct seep_verdict_input *input,
                        const struct seep_verdict_counts *counts,
                        const struct seep_report_verdict *verdict)
{
    double balance = hidden_from_balance(input);

    if (!isfinite(balance) && input->imports_s > 0 &&
        seep_verdict_pool(input) == NULL) {
        balance = hidden_untested(input);
    }
    if (!isfinite(balance) || input->unreachable) {
        return 0;
    }
    if (is_quiet(verdict) && seep_verdict_pool(input) == NULL) {
        return fmin(fmax(hidden_from_samples(input, verdict->floor_bytes),
                         counts->possible_bytes_per_s),
                    balance);
    }
    return verdict->has_growth && verdict->device < 0
               ? fmax(balance, verdict->growth_bytes_per_s.high)
               : balance;
}

void seep_verdict_add_power(const struct seep_verdict_input *input,
                            const struct seep_verdict_counts *counts,
                            struct seep_report_verdict *verdict)
{
    if (seep_verdict_worked_s(input) > 0) {
        verdict->hidden_bytes_per_s = hidden_of(input, counts, verdict);
        if (verdict->hidden_bytes_per_s > 0) {
            verdict->hidden_bytes_per_s = fmax(
                verdict->hidden_bytes_per_s, input->hidden_tensor_bytes_per_s);
        }
        verdict->need_s = need_of(input, counts, verdict);
    }
    verdict->reassures = is_quiet(verdict) && verdict->hidden_bytes_per_s > 0;
}
