/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second look: what the life of a site's blocks says.
 *
 * The first test goes by ten windows and leaves out the last two, for their
 * blocks are young. Here every survivor counts, with the chance that it gets
 * old; the rate is fitted on both clocks by bucket; and that it has stopped is
 * asked of every end that a run may have. What has no old age from which on
 * blocks hardly die is left as the first test has it, but for `leak`.
 *
 * What must hold: `leak` needs a fit with blocks enough whose exponent is above
 * a cache's, live bytes that grow by what is kept, and no silence at the end.
 */
#include <math.h>
#include <string.h>

#include "reader/statistics/parts.h"

/*
 * The life table of a site: how old its blocks get, and which of the young
 * ones will stay. Deaths by age and the ages of survivors are all there is to
 * know of it, so the share that reaches an age is exact (Kaplan and Meier
 * 1958), and a young block counts with its chance to get old.
 *
 * What must hold: every figure is finite, and no count exceeds the blocks that
 * there were.
 */

#define DYING 1.25 /* a bucket that so many more reach than leave */
#define DIED_OLD_MAX 0.10

/* Shares of the run at which a block may be called old. */
static const double old_ages[] = {0.2, 0.3, 0.4};

static size_t bucket_of(double ticks, const struct seep_growth_life *life,
                        size_t count)
{
    double bucket = ticks > 0 ? ticks / life->width_ticks : 0;

    return bucket < (double)count - 1 ? (size_t)bucket : count - 1;
}

static size_t age_of(const struct seep_survivor *survivor,
                     const struct seep_growth_life *life, size_t count)
{
    return bucket_of(life->end_tick - (double)survivor->birth_tick, life,
                     count);
}

/* The age in buckets that is @share of the run. */
static size_t age_at(const struct seep_growth_life *life, double share,
                     size_t count)
{
    double bucket = ceil(share * life->end_tick / life->width_ticks);

    return bucket < (double)count ? (size_t)bucket : count;
}

/* The smallest age from which on blocks hardly die. */
static void find_old(const struct seep_growth_life *life,
                     struct seep_growth_ages *ages)
{
    int count = (int)ages->count;

    for (size_t i = 0; i < sizeof(old_ages) / sizeof(old_ages[0]); i++) {
        size_t first = age_at(life, old_ages[i], ages->count);
        double died = seep_growth_sum(ages->died, (int)first, count);
        double all = died + seep_growth_sum(ages->left, (int)first, count);

        if (died <= DIED_OLD_MAX * fmax(1, all) &&
            seep_growth_shape_binomial(rint(died), rint(all)) <=
                SEEP_GROWTH_ALPHA) {
            ages->old = first;
            ages->has_old = true;
            return;
        }
    }
}

/* @ages is all 0. */
static void tabulate_ages(const struct seep_growth_input *input,
                          struct seep_growth_ages *ages)
{
    const struct seep_growth_life *life = input->life;
    size_t count = input->bucket_count;
    double alive = 1;
    double reach = 0;

    ages->count = count;
    for (size_t i = 0; i < input->survivor_count; i++) {
        ages->left[age_of(&input->survivors[i], life, count)] += 1;
    }
    for (size_t i = 0; i < count; i++) {
        ages->died[i] = life->died_count[i];
        reach += ages->died[i] + ages->left[i];
    }
    ages->share[0] = 1;
    for (size_t i = 0; i < count; i++) {
        double watched = fmax(reach - ages->left[i] / 2, 0.5);

        alive *= 1 - fmin(1, ages->died[i] / watched);
        ages->share[i + 1] = alive;
        reach -= ages->died[i] + ages->left[i];
    }
    find_old(life, ages);
}

/* Births of the last buckets of the run tell nothing where blocks still die
 * in droves at that age. Ages are counted back from the end of the run, which
 * lies anywhere in the last bucket of births: of one that is hardly begun, the
 * youngest births of the bucket before are as young as its own. */
static size_t observed(const struct seep_growth_life *life,
                       const struct seep_growth_ages *ages)
{
    double whole = floor((life->end_tick + 1) / life->width_ticks);
    size_t dying = 0;

    for (size_t i = 0; i < ages->old; i++) {
        if (ages->share[i] > DYING * fmax(ages->share[i + 1], 1e-12)) {
            dying = i + 1;
        }
    }
    if (dying == 0 || whole >= (double)ages->count) {
        return ages->count - dying;
    }
    return whole > (double)dying ? (size_t)whole - dying : 0;
}

static void cut_clock(const double *edges, size_t count, double *ret_clock)
{
    double whole = fmax(edges[count], 1e-12);

    for (size_t i = 0; i <= count; i++) {
        ret_clock[i] = edges[i] / whole;
    }
}

void seep_growth_life_births(const struct seep_growth_input *input,
                             const struct seep_growth_ages *ages,
                             struct seep_growth_births *ret_births)
{
    const struct seep_growth_life *life = input->life;
    struct seep_growth_births *births = ret_births;
    double reach_old = ages->share[ages->old];
    double variance = 0;
    double squares = 0;

    memset(births, 0, sizeof(*births));
    births->count = observed(life, ages);
    for (size_t i = 0; i < input->survivor_count; i++) {
        const struct seep_survivor *survivor = &input->survivors[i];
        size_t age = age_of(survivor, life, ages->count);
        size_t born = bucket_of(survivor->birth_tick, life, ages->count);
        double chance =
            age >= ages->old
                ? 1
                : fmin(1, reach_old / fmax(ages->share[age], 1e-12));
        double kept = chance * survivor->weight;

        variance += survivor->variance;
        squares += survivor->weight * survivor->weight;
        births->bytes[born] += kept;
        births->squares[born] += kept * kept;
    }
    births->exact = variance <= 0.05 * squares;
    cut_clock(life->work_edge, births->count, births->work);
    cut_clock(life->time_edge, births->count, births->time);
}

double seep_growth_life_at(const double *x, const double *y, size_t count,
                           double at)
{
    size_t high = seep_growth_first_beyond(x, count, at);

    if (high == 0) {
        return y[0];
    }
    if (high == count) {
        return y[count - 1];
    }
    return y[high - 1] + (y[high] - y[high - 1]) * (at - x[high - 1]) /
                             (x[high] - x[high - 1]);
}

/*
 * How the rate of what a site keeps changes with age: a power of it, fitted to
 * births by bucket by maximum likelihood, on either clock.
 *
 * What must hold: a fit rests on blocks enough and on a dispersion that was
 * measured, or it is not usable.
 */

#define BUCKETS SEEP_GROWTH_LIFE_BUCKETS
#define TENTHS 10
#define CLOSE 1e-9
#define NEWTON_STEPS 12
#define NEWTON_DONE 1e-11
#define EXPONENT_LIMIT 6.0
#define BUCKETS_MIN 6U /* that a fit needs */
#define STRETCHES_MAX 8
#define STRETCHES_MIN 3

/* Tuned on simulated sites; another value needs another study. */
#define DISPERSION_PRIOR 4.0   /* degrees of freedom at 1 (DNU) */
#define COUNT_MIN 12.0         /* equal blocks, clumps as one (NMIN) */
#define COUNT_MIN_EXACT 8.0    /* (NEXACT) */
#define COUNT_MIN_LATE 20.0    /* that began late (NONSET) */
#define REGULAR_DISPERSION 2.0 /* (DREG) */
#define EXPONENT_MAX 1.5       /* above, what is older has died (BMAX) */
#define FIT_EXPLODES (-8.0)

/* The end of a start-up, and what the best of several fits has too much. */
static const struct {
    double start;
    double margin;
} start_ups[] = {{0.05, 1.1}, {0.1, 1.3}, {0.2, 1.6}, {0.3, 1.9}};

#define LATE_MARGIN 1.3

/** What is fitted: expected at a flat rate, found, and ln of age. */
struct points {
    double flat[BUCKETS];
    double found[BUCKETS];
    double at[BUCKETS]; /* middle of the bucket on the clock */
    double log_age[BUCKETS];
    double share[BUCKETS]; /* fitted; sums up to 1 */
    double first;
    double total;
    size_t count;
};

struct power {
    double exponent;
    double variance; /* of ln age under it */
};

static struct seep_growth_moments moments_of(struct points *points,
                                             double exponent, double middle)
{
    return seep_growth_shape_moments(points->log_age, points->flat,
                                     points->count, exponent, middle,
                                     points->share);
}

/* Fills .share, too. */
static struct power maximise(struct points *points)
{
    struct power power = {0, 0};
    double middle = 0;
    double seen = 0;

    for (size_t i = 0; i < points->count; i++) {
        middle += points->log_age[i] / (double)points->count;
        seen += points->found[i] * points->log_age[i] / points->total;
    }
    for (int step = 0; step < NEWTON_STEPS; step++) {
        double before = power.exponent;
        struct seep_growth_moments found = moments_of(points, before, middle);
        double move = (seen - found.mean) / fmax(found.variance, 1e-9);

        power.exponent = before + fmax(-1, fmin(1, move));
        power.exponent =
            fmax(-EXPONENT_LIMIT, fmin(EXPONENT_LIMIT, power.exponent));
        if (fabs(power.exponent - before) < NEWTON_DONE) {
            break;
        }
    }
    power.variance = moments_of(points, power.exponent, middle).variance;
    return power;
}

/* Pearson's over up to eight equal stretches, shrunk towards Poisson's. */
static double dispersion_of(const struct points *points)
{
    double found[STRETCHES_MAX] = {0};
    double expected[STRETCHES_MAX] = {0};
    int count =
        (int)fmin(STRETCHES_MAX, fmax(STRETCHES_MIN, points->total / 3));
    double square = 0;
    int filled = 0;
    double freedom;

    for (size_t i = 0; i < points->count; i++) {
        int into = (int)((points->at[i] - points->first) / (1 - points->first) *
                         count);
        into = into < count ? into : count - 1;
        found[into] += points->found[i];
        expected[into] += points->total * points->share[i];
    }
    for (int i = 0; i < count; i++) {
        if (expected[i] > 0) {
            double off = found[i] - expected[i];
            square += off * off / expected[i];
            filled++;
        }
    }
    freedom = fmax(1, filled - 2);
    return fmax(1, (square + DISPERSION_PRIOR) / (freedom + DISPERSION_PRIOR));
}

/* In blocks of equal weight. @return false if there is nothing */
static bool count_blocks(struct points *points, double squares)
{
    double total = 0;

    for (size_t i = 0; i < points->count; i++) {
        total += points->found[i];
    }
    if (!(total > 0) || !(squares > 0)) {
        return false;
    }
    points->total = 0;
    for (size_t i = 0; i < points->count; i++) {
        points->found[i] /= squares / total;
        points->total += points->found[i];
    }
    return true;
}

/* Buckets from @start on that time went by in. */
static bool gather(const struct seep_growth_births *births, const double *clock,
                   double start, double origin, struct points *points)
{
    double squares = 0;
    size_t count = 0;

    for (size_t i = 0; i < births->count; i++) {
        double width = clock[i + 1] - clock[i];

        if (clock[i] < start - CLOSE || !(width > CLOSE)) {
            continue;
        }
        points->first = count == 0 ? clock[i] : points->first;
        points->flat[count] = width;
        points->found[count] = births->bytes[i];
        points->at[count] = (clock[i] + clock[i + 1]) / 2;
        points->log_age[count] = log(fmax(points->at[count] - origin, 1e-4));
        squares += births->squares[i];
        count++;
    }
    points->count = count;
    return count >= BUCKETS_MIN && count_blocks(points, squares);
}

struct seep_growth_fit
seep_growth_fit_from(const struct seep_growth_births *births,
                     const double *clock, double start, double origin)
{
    struct seep_growth_fit fit = {.start = start};
    struct points points;
    struct power power;

    if (!gather(births, clock, start, origin, &points)) {
        return fit;
    }
    power = maximise(&points);
    fit.usable = true;
    fit.exponent = power.exponent;
    fit.count = points.total;
    fit.dispersion = dispersion_of(&points);
    fit.error =
        sqrt(fit.dispersion) / sqrt(fmax(points.total * power.variance, 1e-9));
    return fit;
}

/* Blocks enough, clumps counted once? */
static bool is_enough(const struct seep_growth_births *births,
                      const struct seep_growth_fit *fit, int onset)
{
    double count = fit->count / fit->dispersion;
    bool regular = births->exact && fit->dispersion < REGULAR_DISPERSION &&
                   fit->start < 0.2;

    return count >= (regular ? COUNT_MIN_EXACT : COUNT_MIN) &&
           (onset < 4 || count >= COUNT_MIN_LATE);
}

/* The best fit over the ends that a start-up may have; .usable false: none
 * with blocks enough. @param limit  the exponent that a cache is below */
static struct seep_growth_fit best_fit(const struct seep_growth_births *births,
                                       const double *clock, int onset,
                                       double limit)
{
    struct seep_growth_fit best = {.usable = false};
    bool late = onset > 2;
    int count = late ? 1 : (int)(sizeof(start_ups) / sizeof(start_ups[0]));

    for (int i = 0; i < count; i++) {
        double begin = (double)onset / TENTHS;
        struct seep_growth_fit fit =
            late ? seep_growth_fit_from(births, clock, begin, begin - 0.025)
                 : seep_growth_fit_from(births, clock, start_ups[i].start, 0);

        /* A late one counts as one with a start-up of a tenth. */
        fit.start = late ? 0.1 : fit.start;
        if (!fit.usable || !is_enough(births, &fit, onset)) {
            continue;
        }
        fit.margin = fit.exponent - fit.error <= EXPONENT_MAX
                         ? (fit.exponent - limit) / fit.error -
                               (late ? LATE_MARGIN : start_ups[i].margin)
                         : FIT_EXPLODES;
        if (!best.usable || fit.margin > best.margin) {
            best = fit;
        }
    }
    return best;
}

/* The first tenth of @clock from which on all keep some; 9 or 10: none. */
static int find_onset(const struct seep_growth_births *births,
                      const double *clock)
{
    double sum[BUCKETS + 1] = {0};
    double kept[TENTHS];

    for (size_t i = 0; i < births->count; i++) {
        sum[i + 1] = sum[i] + births->bytes[i];
    }
    for (int i = 0; i < TENTHS; i++) {
        kept[i] = seep_growth_life_at(clock, sum, births->count + 1,
                                      (i + 1) / (double)TENTHS) -
                  seep_growth_life_at(clock, sum, births->count + 1,
                                      i / (double)TENTHS);
    }
    return seep_growth_find_onset(kept, 0, TENTHS);
}

#define BOTH_FROM 0.05
#define BOTH_MIN 10U
/* Of a bucket in which no work was done. */
#define IDLE_WIDTH (0.02 / BUCKETS)

/* ln of the likelihood of the fitted share. */
static double likelihood(struct points *points)
{
    double sum = 0;

    (void)maximise(points);
    for (size_t i = 0; i < points->count; i++) {
        if (points->found[i] > 0) {
            sum += points->found[i] * log(fmax(points->share[i], 1e-300));
        }
    }
    return sum;
}

/* ln of the likelihood by time over that by work, each with an exponent of
 * its own. */
static double compare_clocks(const struct seep_growth_births *births)
{
    const double *const clocks[] = {births->work, births->time};
    double result[2] = {0, 0};

    for (int k = 0; k < 2; k++) {
        struct points points = {.count = 0};
        double squares = 0;

        for (size_t i = 0; i < births->count; i++) {
            const double *edge = &clocks[k][i];
            size_t n = points.count;

            if (births->work[i] < BOTH_FROM || births->time[i] < BOTH_FROM) {
                continue;
            }
            points.flat[n] = fmax(edge[1] - edge[0], IDLE_WIDTH);
            points.found[n] = births->bytes[i];
            points.log_age[n] = log(fmax((edge[0] + edge[1]) / 2, 1e-3));
            squares += births->squares[i];
            points.count++;
        }
        if (points.count < BOTH_MIN || !count_blocks(&points, squares)) {
            return 0;
        }
        result[k] = likelihood(&points);
    }
    return result[1] - result[0];
}

/* Tuned on simulated sites; another value needs another study. */
#define SURVIVORS_MANY 60 /* five times what a fit needs */
#define SURVIVORS_MIN 5
#define LIMIT_WORK (-0.5) /* exponent of a cache, by work (B0W) */
#define LIMIT_TIME (-0.3) /* ditto, by time (B0T) */
#define WARMING_MAX (-0.3)
#define BY_TIME 8.0     /* ln likelihood (LLR_T) */
#define BY_WORK (-4.0)  /* (LLR_AMBIG) */
#define CLUMPS_MAX 25.0 /* dispersion that is believed */
#define EXPLODES (-7.0)
#define NET_MIN 0.2    /* (BETA0) */
#define NET_SURE 0.5   /* (BETA) */
#define STOPPED (-8.0) /* ln p (STOP) */
#define SILENT_TIME 0.15
#define SILENT_WORK 0.05
#define OLD_ELSE 0.3 /* of the run, where no age is found to be old */
#define CONTAINER_P 1e-6
#define CONTAINER_CONFIDENCE 0.9
#define START_PART 16 /* of the run */
#define START_WORK 1.5
#define OVERRULE 0.3 /* margin over what the first test says */

/** One site during the look. */
struct look {
    const struct seep_growth_input *input;
    struct seep_growth *growth;
    struct seep_growth_ages ages;
    struct seep_growth_births births;
    struct seep_growth_fit fit;
    const double *clock; /* that the fit is by */
    double limit;
    double by_time; /* ln likelihood by time over by work */
    bool is_by_time;
    int onset;
    int onset_by_work;
};

static void decide(struct look *look, enum seep_class class, const char *reason)
{
    look->growth->class = class;
    look->growth->reason = reason;
    look->growth->by_life = true;
}

/* Nothing new but that it is not sure. */
static void doubt(struct look *look, const char *reason)
{
    if (look->growth->class == SEEP_CLASS_LEAK) {
        decide(look, SEEP_CLASS_SUSPECT, reason);
    }
}

static void fit_both(struct look *look)
{
    const struct seep_growth_births *births = &look->births;
    int by_time = find_onset(births, births->time);
    double dispersion;

    look->onset_by_work = find_onset(births, births->work);
    look->by_time = compare_clocks(births);
    look->fit = best_fit(births, births->work, look->onset_by_work, LIMIT_WORK);
    look->onset = look->onset_by_work;
    look->clock = births->work;
    look->limit = LIMIT_WORK;
    dispersion = look->fit.usable ? fmin(CLUMPS_MAX, look->fit.dispersion) : 1;
    if (look->by_time > BY_TIME * dispersion) {
        look->fit = best_fit(births, births->time, by_time, LIMIT_TIME);
        look->onset = by_time;
        look->clock = births->time;
        look->limit = LIMIT_TIME;
        look->is_by_time = true;
    }
}

/* So much is kept and live bytes do not grow by it. */
static bool is_replaced(const struct look *look)
{
    double net =
        seep_growth_stop_net(look->input, &look->births, look->onset_by_work);

    return net < NET_SURE && (net < NET_MIN || !look->growth->live_grows);
}

static double time_at(const struct look *look, double on_clock)
{
    const struct seep_growth_births *births = &look->births;

    return seep_growth_life_at(look->clock, births->time, births->count + 1,
                               on_clock) *
           look->input->life->time_edge[births->count];
}

static bool has_stopped(struct look *look)
{
    struct seep_growth *growth = look->growth;
    struct seep_growth_stop stop =
        seep_growth_stop_find(&look->births, look->clock, look->onset);

    if (!look->is_by_time && look->by_time > BY_WORK * look->fit.dispersion) {
        const double *time = look->births.time;
        struct seep_growth_stop other = seep_growth_stop_find(
            &look->births, time, find_onset(&look->births, time));

        if (other.ln_p < stop.ln_p) {
            stop = other;
            look->clock = time;
        }
    }
    growth->stopped_ln_p = stop.ln_p;
    if (stop.ln_p < STOPPED) {
        growth->stopped_since = time_at(look, stop.since);
        return true;
    }
    return false;
}

/* Nothing was kept at the end, and hardly any work was done there. */
static bool ends_idle(const struct look *look)
{
    const struct seep_growth_births *births = &look->births;
    size_t last = births->count;

    while (last > 0 && !(births->bytes[last - 1] > 0)) {
        last--;
    }
    return (double)(births->count - last) >
               SILENT_TIME * (double)births->count &&
           1 - births->work[last] < SILENT_WORK;
}

void seep_growth_life_take_out_start(const struct seep_growth_input *input,
                                     struct seep_interval *rate)
{
    const struct seep_growth_life *life = input->life;
    size_t first = input->bucket_count / START_PART;
    double part = (double)first / (double)input->bucket_count;
    double factor = (1 - life->work_edge[first]) / (1 - part);

    if (life->bytes_are_work && life->work_edge[first] > START_WORK * part) {
        rate->estimate *= factor;
        rate->low *= factor;
        rate->high *= factor;
    }
}

/* The rate of the first test, where it has none, and by the clock that fits. */
static void measure_rate(struct look *look)
{
    struct seep_growth *growth = look->growth;
    struct seep_growth_detail detail = {.mature_windows = 0};
    struct seep_growth rated = {.onset = look->onset};
    struct seep_growth_site site = {
        .input = look->input,
        .growth = &rated,
        .detail = &detail,
    };

    if (growth->tested && growth->rate.high > growth->rate.low &&
        !look->is_by_time) {
        return;
    }
    rated.onset =
        rated.onset < SEEP_GROWTH_SETTLE ? SEEP_GROWTH_SETTLE : rated.onset;
    seep_growth_measure_gather(&site, look->is_by_time);
    seep_growth_measure_rate(&site);
    if (site.rate > 0) {
        growth->rate = rated.rate;
        if (!look->is_by_time) {
            seep_growth_life_take_out_start(look->input, &growth->rate);
        }
        growth->mature_count = rated.mature_count;
        growth->effective_count = rated.effective_count;
        growth->onset = look->onset_by_work < SEEP_GROWTH_SETTLE
                            ? SEEP_GROWTH_SETTLE
                            : look->onset_by_work;
    }
}

static bool was_none(enum seep_class class)
{
    return class == SEEP_CLASS_WARMING || class == SEEP_CLASS_PLATEAU ||
           class == SEEP_CLASS_TURNOVER || class == SEEP_CLASS_AGING ||
           class == SEEP_CLASS_STEP;
}

static void call_leak(struct look *look)
{
    struct seep_growth *growth = look->growth;
    double z = (look->fit.exponent - look->limit) / look->fit.error;

    if (was_none(growth->class) && look->fit.margin < OVERRULE) {
        decide(look, SEEP_CLASS_SUSPECT,
               "it keeps growing, but not clearly at one rate");
        measure_rate(look);
        return;
    }
    measure_rate(look);
    growth->confidence =
        fmax(growth->confidence, fmin(0.999, 1 - 0.5 * erfc(z / sqrt(2))));
    growth->p = fmin(growth->p, 0.5 * erfc(z / sqrt(2)));
    growth->zs = fmax(growth->zs, z);
    decide(look, SEEP_CLASS_LEAK, seep_growth_leak_reason(look->onset));
}

/* The first rule that fits. */
static void judge(struct look *look)
{
    fit_both(look);
    if (look->onset > SEEP_GROWTH_ONSET_LAST) {
        doubt(look, "it does not keep memory in every part of the run");
    } else if (!look->fit.usable) {
        doubt(
            look,
            look->input->survivor_count < SURVIVORS_MANY
                ? "too few of its blocks stay to be sure"
                : "a few blocks or bursts hold most of its bytes: too few to be sure");
    } else if (look->fit.margin < EXPLODES) {
        decide(look, SEEP_CLASS_TURNOVER,
               "what it keeps replaces what it frees");
    } else if (look->fit.margin < 0 && look->fit.exponent < WARMING_MAX) {
        decide(look, SEEP_CLASS_WARMING,
               "its growth keeps slowing down, like a cache that fills up");
    } else if (look->fit.margin < 0) {
        decide(
            look, SEEP_CLASS_SUSPECT,
            "it keeps growing, but may be slowing down: too few blocks to tell");
    } else if (is_replaced(look)) {
        decide(look, SEEP_CLASS_TURNOVER,
               "the blocks it keeps do not add to its live bytes");
    } else if (has_stopped(look)) {
        decide(look, SEEP_CLASS_PLATEAU, "it grew, and has stopped");
    } else if (ends_idle(look)) {
        decide(
            look, SEEP_CLASS_SUSPECT,
            "it grew until work almost ceased: too little to tell since then");
    } else if (seep_growth_stop_follows(look->input, &look->births, &look->fit,
                                        look->limit)) {
        decide(look, SEEP_CLASS_SUSPECT,
               "the load is still rising, and it may just follow the load");
    } else {
        call_leak(look);
    }
}

/* One block, in steps of less than half. */
static bool is_container(struct look *look)
{
    struct seep_growth *growth = look->growth;
    struct seep_growth_steps steps;

    if (growth->class == SEEP_CLASS_LEAK ||
        !seep_growth_steps_small(look->input, &steps)) {
        return false;
    }
    seep_growth_steps_foretell(look->input, &steps, growth);
    growth->rate = steps.rate;
    growth->p = CONTAINER_P;
    growth->confidence = CONTAINER_CONFIDENCE;
    growth->growing_block = true;
    decide(look, SEEP_CLASS_LEAK,
           "one block that is reallocated ever larger, as the work goes on");
    return true;
}

void seep_growth_look_again(const struct seep_growth_input *input,
                            struct seep_growth *growth)
{
    struct look look = {.input = input, .growth = growth};
    bool is_fitted = false;

    if (input->life == NULL || growth->growing_block || growth->contradicts ||
        input->bucket_count > SEEP_GROWTH_LIFE_BUCKETS ||
        seep_growth_check_input(input) != NULL) {
        return;
    }
    seep_growth_life_take_out_start(input, &growth->rate);
    if (is_container(&look)) {
        return;
    }
    tabulate_ages(input, &look.ages);
    if (input->survivor_count < SURVIVORS_MIN) {
        doubt(&look, "too few of its blocks stay to be sure");
    } else if (!look.ages.has_old) {
        doubt(&look, "its old blocks are freed as well: run longer");
    } else {
        seep_growth_life_births(input, &look.ages, &look.births);
        judge(&look);
        is_fitted = look.fit.usable;
    }
    if (!look.ages.has_old) {
        look.ages.old = age_at(input->life, OLD_ELSE, look.ages.count);
    }
    seep_growth_prove(input, &look.ages, is_fitted, growth);
}
