/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whoever reads "it has stopped" looks no further: each class that reassures
 * is a claim, and has a test of its own here that a leak hardly passes. What
 * passes none is suspect, or too little.
 *
 * What must hold: a claim is made on both clocks, of work and of time, or not
 * at all; and its reason says what was tested.
 */
#include <math.h>
#include <string.h>

#include "reader/statistics/parts.h"

#define BUCKETS SEEP_GROWTH_LIFE_BUCKETS

/** Where blocks came, in blocks of equal weight, on one clock. */
struct arrivals {
    double sum[BUCKETS + 1];
    size_t bucket[BUCKETS]; /* that at least a quarter of a block came in */
    size_t count;
    const double *clock;
};

enum { WORK, TIME, CLOCKS };

/* One site whose claim is looked at. */
struct proof {
    const struct seep_growth_input *input;
    struct seep_growth *growth;
    const struct seep_growth_ages *ages;
    const struct seep_growth_births *births;
    double total; /* bytes that are kept (R) */
    double unit;  /* bytes of one of the blocks of equal weight */
    double count; /* of those (n) */
    struct arrivals by[CLOCKS];
};

/*
 * When blocks came that are kept: whether they have ceased, slow down, come in
 * bursts.
 */

/* Tuned on simulated sites; another value needs another study. */
#define STOP_P 0.012
#define STOP_BEFORE 3.0 /* blocks before it */
#define STOP_SHARE 0.25 /* of the rate, that may go on */
#define STOP_MANY 0.1   /* ditto, where that is many blocks: */
#define STOP_COUNT 31.0 /* as far as a silent tenth tells */
#define STOP_GAPS 1.5   /* times the longest silence before */
#define SILENT_TIME 0.12
#define SILENT_WORK 0.02
#define SILENT_GAPS 2.0
#define BURSTS_DISPERSION 3.0
#define FALLS 2.1 /* standard errors below 0 */
#define FALLS_LATE (-0.15)
#define FALLS_COUNT 12.0

static const double rests[] = {0.9, 0.8,  0.7, 0.6,  0.5, 0.4,
                               0.3, 0.25, 0.2, 0.15, 0.1};
static const double fits_from[] = {0.05, 0.1, 0.2};

/* ln P(Bin(count, share) <= found) below the mean, from the largest term down;
 * 0 from the mean on, where it proves nothing. */
static double ln_binomial(double found, double count, double share)
{
    double whole = floor(fmax(0, found));
    double odds = (1 - share) / share;
    double term = 1;
    double sum = 1;
    int sign;

    if (!(count > 0) || found >= count * share) {
        return 0;
    }
    for (double i = whole; i > 0 && term > 1e-17 * sum; i--) {
        term *= i / (count - i + 1) * odds;
        sum += term;
    }
    return fmin(0, lgamma_r(count + 1, &sign) - lgamma_r(whole + 1, &sign) -
                       lgamma_r(count - whole + 1, &sign) + whole * log(share) +
                       (count - whole) * log1p(-share) + log(sum));
}

/* Of stretches of equal length, shrunk towards Poisson's. */
static double dispersion_of(const double *clock, const double *sum,
                            size_t buckets, double begin, double end)
{
    int count = (int)fmin(8, fmax(2, (sum[buckets] - sum[0]) / 4));
    double step = (end - begin) / count;
    double mean = 0;
    double square = 0;
    double found[8];

    for (int i = 0; i < count; i++) {
        found[i] =
            seep_growth_life_at(clock, sum, buckets + 1,
                                begin + step * (i + 1)) -
            seep_growth_life_at(clock, sum, buckets + 1, begin + step * i);
        mean += found[i] / count;
    }
    if (!(mean > 0)) {
        return 1;
    }
    for (int i = 0; i < count; i++) {
        square += (found[i] - mean) * (found[i] - mean) / mean;
    }
    return fmax(1, (square + 4) / (count - 1 + 4));
}

/* @arrivals is all 0. */
static void list_arrivals(const struct proof *proof, const double *clock,
                          struct arrivals *arrivals)
{
    arrivals->clock = clock;
    for (size_t i = 0; i < proof->births->count; i++) {
        double blocks = proof->births->bytes[i] / proof->unit;

        arrivals->sum[i + 1] = arrivals->sum[i] + blocks;
        if (blocks > 0.25) {
            arrivals->bucket[arrivals->count++] = i;
        }
    }
}

/* The longest silence that ended by @end. */
static double longest_gap(const struct arrivals *arrivals, double end)
{
    const double *clock = arrivals->clock;
    double longest = 0;

    for (size_t i = 1; i < arrivals->count; i++) {
        size_t to = arrivals->bucket[i];

        if (clock[to] <= end) {
            longest =
                fmax(longest, clock[to] - clock[arrivals->bucket[i - 1] + 1]);
        }
    }
    return longest;
}

/* Blocks over the run, of @all, that may go on where it is said to have
 * stopped: a cache that filled early is no reason to miss the leak behind it.
 */
static double may_go_on(double all)
{
    return fmin(STOP_SHARE * all, fmax(STOP_COUNT, STOP_MANY * all));
}

/* ln p of so little in the last @rest; 0 where that proves nothing. */
static double silence_of(const struct proof *proof,
                         const struct arrivals *arrivals, double rest)
{
    const double *clock = arrivals->clock;
    size_t count = proof->births->count;
    double all = arrivals->sum[count];
    double before =
        seep_growth_life_at(clock, arrivals->sum, count + 1, 1 - rest);
    double found = all - before;
    double most = (found + 1.64 * sqrt(found + 1) + 1.4) / rest;
    double dispersion = 1;
    size_t last = count;
    size_t buckets = 0;

    for (size_t i = 0; i < arrivals->count; i++) {
        if (clock[arrivals->bucket[i]] <= 1 - rest) {
            last = arrivals->bucket[i] + 1;
        }
    }
    if (before < STOP_BEFORE || most > may_go_on(all) || last == count ||
        rest < STOP_GAPS * longest_gap(arrivals, 1 - rest)) {
        return 0;
    }
    while (clock[buckets] < clock[last] - 1e-12) {
        buckets++;
    }
    if (clock[last] > 0.02) {
        dispersion =
            dispersion_of(clock, arrivals->sum, buckets, 0, clock[last]);
    }
    return ln_binomial(found / dispersion, all / dispersion, rest);
}

/* Nothing was kept for so long that it is no chance at the former rate, and
 * what may go on is a small part of it: on the clock that says less. */
static bool has_stopped(const struct proof *proof)
{
    const struct seep_growth_births *births = proof->births;
    struct seep_growth *growth = proof->growth;
    double whole = proof->input->life->time_edge[births->count];

    growth->stopped_ln_p = 0;
    for (int k = 0; k < CLOCKS; k++) {
        double least = 0;
        double at = 1;

        for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
            double ln_p = silence_of(proof, &proof->by[k], rests[i]);

            if (ln_p < least) {
                least = ln_p;
                at = 1 - rests[i];
            }
        }
        if (k == 0 || least > growth->stopped_ln_p) {
            growth->stopped_ln_p = least;
            growth->stopped_since =
                whole * seep_growth_life_at(proof->by[k].clock, births->time,
                                            births->count + 1, at);
        }
    }
    if (growth->stopped_ln_p <= log(STOP_P)) {
        return true;
    }
    growth->stopped_since = -1;
    return false;
}

/* The rate falls with age, by both clocks, and late as well. */
static bool is_filling(const struct proof *proof)
{
    for (int k = 0; k < CLOCKS; k++) {
        double steepest = INFINITY;
        double late = INFINITY;

        for (size_t i = 0; i < sizeof(fits_from) / sizeof(fits_from[0]); i++) {
            struct seep_growth_fit fit = seep_growth_fit_from(
                proof->births, proof->by[k].clock, fits_from[i], 0);

            if (fit.usable && fit.count >= FALLS_COUNT * fit.dispersion) {
                steepest = fmin(steepest, fit.exponent / fit.error);
                late = fit.exponent;
            }
        }
        if (!(steepest <= -FALLS) || !(late <= FALLS_LATE)) {
            return false;
        }
    }
    return true;
}

/* It kept nothing at the end for far longer than ever, though work went on. */
static bool is_unlike_before(const struct proof *proof)
{
    const struct seep_growth_births *births = proof->births;
    const struct arrivals *arrivals = &proof->by[TIME];
    size_t end;

    if (arrivals->count < 4) {
        return false;
    }
    end = arrivals->bucket[arrivals->count - 1] + 1;
    return 1 - births->time[end] >= SILENT_TIME &&
           1 - births->work[end] >= SILENT_WORK &&
           1 - births->time[end] >= SILENT_GAPS * longest_gap(arrivals, 1);
}

/* Clumps counted once, since the first; on the clock that is kinder. */
static double effective_count(const struct proof *proof)
{
    const struct seep_growth_births *births = proof->births;
    double least = INFINITY;
    size_t first = 0;

    while (first + 1 < births->count && !(births->bytes[first] > 0)) {
        first++;
    }
    for (int k = 0; k < CLOCKS; k++) {
        const double *clock = &proof->by[k].clock[first];

        least = fmin(least, dispersion_of(clock, &proof->by[k].sum[first],
                                          births->count - first, clock[0], 1));
    }
    return proof->count / least;
}

/* Sets .in_bursts. */
static void note_bursts(struct proof *proof)
{
    const struct arrivals *arrivals = &proof->by[TIME];
    const double *clock = arrivals->clock;

    proof->growth->in_bursts =
        arrivals->count >= 5 &&
        dispersion_of(clock, arrivals->sum, proof->births->count, 0, 1) >=
            BURSTS_DISPERSION &&
        1 - clock[arrivals->bucket[arrivals->count - 1] + 1] <=
            STOP_GAPS * longest_gap(arrivals, 1);
}

/* Tuned on simulated sites; another value needs another study. */
#define DIED_P 0.06      /* of more living than dead among what got old */
#define DIED_FREED_MIN 8 /* that it takes to say that old blocks die */
#define FLAT_COUNT 16.0  /* kept blocks that live bytes are held against */
#define FLAT_MOVED_MOST 0.35
#define FLAT_REPLACED 0.5     /* of what came in the second half */
#define HIDDEN_COUNT 20.0     /* blocks over the run */
#define STOOD_MOVED_MOST 0.35 /* of the rise */
#define EVENT_PART 0.02 /* of what is kept, that a bucket of an event has */
#define EVENT_WIDTH 3U
#define EVENT_BLOCKS 3.0
#define EVENT_TAIL 0.1
#define EVENT_SINCE 0.05
#define EVENT_SINCE_BUCKETS 4
#define START_TAIL 0.9  /* all of it came with the start */
#define STEPS_FREED 0.4 /* of what was allocated */
#define SUSPECT_COUNT 12.0
#define SUSPECT_EFFECTIVE 5.0

static const double grid[] = {0.1, 0.15, 0.2, 0.25, 0.3, 0.35,
                              0.4, 0.45, 0.5, 0.55, 0.6};

static void decide(struct proof *proof, enum seep_class class,
                   const char *reason)
{
    proof->growth->class = class;
    proof->growth->reason = reason;
    proof->growth->by_life = true;
}

/* At no age from a tenth of the run on do more live than have died of it. */
static bool gives_back(const struct proof *proof)
{
    const struct seep_growth_life *life = proof->input->life;
    const struct seep_growth_ages *ages = proof->ages;
    size_t i = ages->count;
    double died = 0;
    double left = 0;

    if (life->freed_seen < DIED_FREED_MIN) {
        return false;
    }
    for (size_t k = sizeof(grid) / sizeof(grid[0]); k > 0; k--) {
        double first = ceil(grid[k - 1] * life->end_tick / life->width_ticks);

        for (; i > 0 && (double)(i - 1) >= first; i--) {
            died += ages->died[i - 1];
            left += ages->left[i - 1];
        }
        if (ln_binomial(died, died + left, 0.5) < log(DIED_P)) {
            return false;
        }
    }
    return true;
}

/* Was a block seen to die that was older than a tenth of the run? */
static bool dies_old(const struct proof *proof)
{
    for (size_t i = proof->ages->count / 10; i < proof->ages->count; i++) {
        if (proof->ages->died[i] > 0) {
            return true;
        }
    }
    return false;
}

/* The least of the mean live bytes in eight parts of the second half, and their
 * range. */
static bool live_stood(const struct proof *proof, const double *clock,
                       double *ret_least, double *ret_moved)
{
    double mean[SEEP_GROWTH_STOOD_PARTS];
    int filled = seep_growth_stood_parts(proof->input, clock, mean);
    double least = INFINITY;
    double most = 0;

    for (int part = 0; part < SEEP_GROWTH_STOOD_PARTS; part++) {
        least = fmin(least, mean[part]); /* of NAN and a number the number */
        most = fmax(most, mean[part]);
    }
    *ret_least = least;
    *ret_moved = most - least;
    return filled >= SEEP_GROWTH_STOOD_MIN;
}

/* Live bytes hardly moved in the second half, by either clock: all that is
 * kept is older, or has replaced what went. A share of all that is kept would
 * be no measure: a line that also holds weights since the start may leak. */
static bool hardly_moved(const struct proof *proof)
{
    const struct seep_growth_life *life = proof->input->life;
    const double *const clocks[] = {life->work_edge, life->time_edge};

    if (!(proof->count >= FLAT_COUNT)) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        double late = 0;
        double least;
        double moved;

        if (!live_stood(proof, clocks[k], &least, &moved)) {
            return false;
        }
        for (size_t i = 0; i < proof->births->count; i++) {
            late += clocks[k][i] >= 0.5 ? proof->births->bytes[i] : 0;
        }
        if (moved > FLAT_MOVED_MOST * proof->total ||
            moved > FLAT_REPLACED * late) {
            return false;
        }
    }
    return true;
}

/* A leak of so many blocks would have been found: a claim that leaves room for
 * one is none. In a full cache, or among sessions, live bytes move by more. */
static bool may_hide_a_leak(const struct proof *proof)
{
    struct seep_growth_hidden hidden = seep_growth_hidden_in(proof->input);

    return hidden.rate.high >= HIDDEN_COUNT * hidden.unit;
}

/* The most that lived in the first tenth. */
static double most_at_first(const struct proof *proof, const double *clock)
{
    double most = proof->input->live_bytes[0];

    for (size_t i = 1;
         i < proof->input->bucket_count && clock[i + 1] <= 0.1 + 1e-12; i++) {
        most = fmax(most, proof->input->live_bytes[i]);
    }
    return most;
}

/* In the second half its live bytes stand, far above where they were in the
 * first tenth, by either clock: it rose, whatever of it was replaced since.
 * @return by how much; 0: it did not, or moves */
static double stood_above_start(const struct proof *proof)
{
    const struct seep_growth_life *life = proof->input->life;
    const double *const clocks[] = {life->work_edge, life->time_edge};
    double rise = INFINITY;

    for (int k = 0; k < 2; k++) {
        double least;
        double moved;

        if (!live_stood(proof, clocks[k], &least, &moved)) {
            return 0;
        }
        least -= most_at_first(proof, clocks[k]);
        if (!(moved <= STOOD_MOVED_MOST * least)) {
            return 0;
        }
        rise = fmin(rise, least);
    }
    return fmax(0, rise);
}

/** Stretches of at most four buckets that all that is kept came in. */
struct events {
    size_t begin[2];
    size_t end[2];
    size_t count; /* 3: more than two */
};

static void list_events(const struct proof *proof, struct events *events)
{
    events->count = 0;
    for (size_t i = 0; i < proof->births->count; i++) {
        if (!(proof->births->bytes[i] > EVENT_PART * proof->total)) {
            continue;
        }
        if (events->count == 0 ||
            i - events->begin[events->count - 1] > EVENT_WIDTH) {
            if (events->count == 2) {
                events->count = 3;
                return;
            }
            events->begin[events->count++] = i;
        }
        events->end[events->count - 1] = i + 1;
    }
}

/* All that is kept came in one or two short stretches, and next to nothing
 * since: little of it, and not again and again. */
static bool is_one_event(const struct proof *proof)
{
    const struct seep_growth_births *births = proof->births;
    struct events events;
    double since = 0;
    int since_buckets = 0;
    double tail;
    size_t end;

    list_events(proof, &events);
    if (events.count == 0 || events.count > 2) {
        return false;
    }
    end = events.end[events.count - 1];
    for (size_t i = end; i < births->count; i++) {
        since += births->bytes[i];
        since_buckets += births->bytes[i] > 0 ? 1 : 0;
    }
    tail = fmin(1 - births->work[end], 1 - births->time[end]);
    if (tail < EVENT_TAIL || since > EVENT_SINCE * proof->total ||
        since_buckets >= EVENT_SINCE_BUCKETS) {
        return false;
    }
    if (events.count == 2 &&
        tail <
            fmax(births->time[events.begin[1]] - births->time[events.end[0]],
                 births->work[events.begin[1]] - births->work[events.end[0]])) {
        return false;
    }
    return proof->count >= EVENT_BLOCKS * (double)events.count ||
           1 - births->time[end] >= START_TAIL;
}

static bool is_one_of(enum seep_class class, unsigned classes)
{
    return (classes >> class & 1) != 0;
}

#define STOPPED "it grew, and has stopped: such a long silence is not chance"
#define ONE(symbol) (1U << SEEP_CLASS_##symbol)
#define MOVES (ONE(STEADY) | ONE(SAWTOOTH) | ONE(TURNOVER))
#define STANDS (ONE(STEADY) | ONE(TURNOVER) | ONE(STEP) | ONE(PLATEAU))
#define UNDECIDED (ONE(SUSPECT) | ONE(INSUFFICIENT))
#define REASSURES (MOVES | STANDS | ONE(AGING) | ONE(WARMING))

/* @class, or what stands for it where that is not of @classes. */
static void confirm(struct proof *proof, unsigned classes,
                    enum seep_class class, const char *reason)
{
    decide(
        proof,
        is_one_of(proof->growth->class, classes) ? proof->growth->class : class,
        reason);
}

/* What began late is kept since then, not over the run. So much of it may be
 * from before, and the rate is of a quarter of the run at the least: a burst at
 * the end is none. */
#define BEGUN_SHARE 0.05
#define BEGUN_EARLY 0.2
#define BEGUN_LATEST 0.75

static double kept_time_of(const struct proof *proof)
{
    const struct seep_growth_births *births = proof->births;
    double before = 0;
    double begun;
    size_t i = 0;

    while (i < births->count &&
           before + births->bytes[i] <= BEGUN_SHARE * proof->total) {
        before += births->bytes[i++];
    }
    begun = births->time[i] * proof->input->life->time_edge[births->count];
    return begun > BEGUN_EARLY ? 1 - fmin(begun, BEGUN_LATEST) : 0;
}

/* What has no proof: bytes that are kept over the run, if no better rate. */
static void suspect(struct proof *proof, const char *reason)
{
    struct seep_growth *growth = proof->growth;
    double half = 1.96 * sqrt(proof->total * proof->unit);

    decide(proof, SEEP_CLASS_SUSPECT, reason);
    if (!(growth->rate.high > growth->rate.low) && proof->total > 0) {
        growth->rate = (struct seep_interval){
            proof->total, fmax(0, proof->total - half), proof->total + half};
        growth->kept_time = kept_time_of(proof);
    }
}

/* What is replaced looks kept by its ages: as much as may hide in it. */
static void suspect_hidden(struct proof *proof)
{
    struct seep_growth_hidden hidden = seep_growth_hidden_in(proof->input);

    decide(proof, SEEP_CLASS_SUSPECT,
           "most of it is replaced, and a leak may be among what is kept");
    proof->growth->rate = hidden.rate;
}

/* What was kept, and has neither stopped nor slowed down for certain.
 * @param is_replaced  by what is born, as far as that shows */
static void judge_kept(struct proof *proof, bool is_replaced)
{
    bool is_flat = hardly_moved(proof);

    if (is_flat && !may_hide_a_leak(proof)) {
        proof->growth->flat = true;
        confirm(proof, STANDS, SEEP_CLASS_TURNOVER,
                "its live bytes have not moved in the second half of the run");
        if (proof->growth->class == SEEP_CLASS_PLATEAU && has_stopped(proof)) {
            proof->growth->reason = STOPPED;
        }
    } else if (is_one_event(proof)) {
        decide(proof, SEEP_CLASS_STEP,
               "all of it was allocated at one or two moments and kept");
        (void)has_stopped(proof);
    } else if (has_stopped(proof)) {
        confirm(proof, ONE(PLATEAU) | ONE(STEP), SEEP_CLASS_PLATEAU, STOPPED);
    } else if (is_filling(proof)) {
        decide(proof, SEEP_CLASS_WARMING,
               "its growth keeps slowing down, like a cache that fills up");
    } else if (proof->count >= SUSPECT_COUNT &&
               effective_count(proof) >= SUSPECT_EFFECTIVE) {
        if (is_flat || is_replaced) {
            suspect_hidden(proof);
            return;
        }
        suspect(
            proof,
            "it keeps blocks, and nothing shows that it stops, slows down or frees them");
    } else {
        decide(proof, SEEP_CLASS_INSUFFICIENT,
               "too few blocks survive to tell");
    }
}

/* One that grows though each block of it is given back. */
static void grows(struct proof *proof, const struct seep_growth_steps *steps)
{
    proof->growth->rate = steps->rate;
    if (steps->next > 0) {
        seep_growth_steps_foretell(proof->input, steps, proof->growth);
        suspect(
            proof,
            "one block that is reallocated ever larger, by the same factor each time");
    } else if (steps->container) {
        suspect(
            proof,
            "its blocks are replaced by ever larger ones: containers that grow");
    } else {
        suspect(
            proof,
            "its live bytes keep growing, though each block is freed: a queue, or containers");
    }
    if (steps->certain) {
        proof->growth->class = SEEP_CLASS_LEAK;
    }
}

static bool find_steps(const struct proof *proof,
                       struct seep_growth_steps *ret_steps)
{
    const struct seep_growth_life *life = proof->input->life;

    return life->freed_seen >= fmax(3, STEPS_FREED * life->born_seen) &&
           (seep_growth_steps_doubles(proof->input, ret_steps) ||
            seep_growth_steps_rise(proof->input, ret_steps));
}

static const char *how_given_back(struct proof *proof)
{
    return proof->growth->class == SEEP_CLASS_SAWTOOTH
               ? "it fills and is freed, again and again"
           : dies_old(proof)
               ? "what it allocates is freed, even if old"
               : "what it allocates is freed, except for a few blocks at most";
}

static void prove(struct proof *proof)
{
    struct seep_growth_steps steps;
    bool has_steps = find_steps(proof, &steps);
    bool is_container = has_steps && (steps.container || steps.next > 0);
    bool is_undecided = is_one_of(proof->growth->class, UNDECIDED);
    bool is_certain = has_steps && steps.certain;
    bool is_given_back = !is_certain && !is_undecided && gives_back(proof);
    bool is_in_steps = is_undecided ? is_container
                       : is_given_back
                           ? has_steps
                           : is_container || (has_steps && steps.straight);

    if (is_certain || is_in_steps) {
        grows(proof, &steps);
    } else if (is_given_back && !seep_growth_steps_rose(proof->input) &&
               !may_hide_a_leak(proof)) {
        confirm(proof, MOVES, SEEP_CLASS_TURNOVER, how_given_back(proof));
    } else if (!is_undecided) {
        judge_kept(proof, is_given_back);
    }
}

/* Is what a leak keeps denied by its live bytes, or by a silence? Where it
 * shares its line with all that was loaded at the start, live bytes move by
 * little of that and yet by all of what came since. */
static void contest(struct proof *proof)
{
    if (hardly_moved(proof)) {
        suspect(
            proof,
            "it keeps blocks, but its live bytes have not moved in the second half");
    } else if (is_unlike_before(proof)) {
        suspect(proof,
                "it has kept nothing lately, for longer than ever before");
    }
}

void seep_growth_prove(const struct seep_growth_input *input,
                       struct seep_growth_ages *ages, bool was_fitted,
                       struct seep_growth *growth)
{
    struct seep_growth_births births;
    struct proof proof = {
        .input = input,
        .growth = growth,
        .ages = ages,
        .births = &births,
    };
    double squares = 0;

    seep_growth_life_births(input, ages, &births);
    for (size_t i = 0; i < births.count; i++) {
        proof.total += births.bytes[i];
        squares += births.squares[i];
    }
    if (proof.total > 0 && squares > 0) {
        proof.unit = squares / proof.total;
        proof.count = proof.total / proof.unit;
    }
    proof.unit = proof.unit > 0 ? proof.unit : 1;
    if (input->survivor_count == 0) {
        return; /* all of it was given back */
    }
    list_arrivals(&proof, births.work, &proof.by[WORK]);
    list_arrivals(&proof, births.time, &proof.by[TIME]);
    if (is_one_of(growth->class, REASSURES | UNDECIDED)) {
        prove(&proof);
    } else if (growth->class == SEEP_CLASS_LEAK && was_fitted) {
        contest(&proof);
    }
    if (growth->class == SEEP_CLASS_LEAK ||
        growth->class == SEEP_CLASS_SUSPECT) {
        note_bursts(&proof);
    }
    if (is_one_of(growth->class, MOVES)) {
        growth->stood_bytes = stood_above_start(&proof);
    }
}
