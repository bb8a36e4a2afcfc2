/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Is a site a leak? The cohort-flow test.
 *
 * Input is what a recording keeps of one site: its survivors (births, weights,
 * variances), its series of live and lowest live bytes by bucket, and how many
 * blocks died old. Time is mapped through a work clock X(t) in [0, 1] first.
 * Output is a class, a rate with a 95 % interval, and why.
 *
 * Sizes are bytes (double: they are estimates), times are shares of the run.
 * Pure functions: no state, no allocation; any thread.
 */
#ifndef SEEP_READER_STATISTICS_GROWTH_H
#define SEEP_READER_STATISTICS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEP_GROWTH_WINDOWS 10
#define SEEP_GROWTH_SETTLE 2     /* windows that a start-up may take (S0) */
#define SEEP_GROWTH_MATURE 8     /* first window that is too young */
#define SEEP_GROWTH_ONSET_LAST 5 /* three mature windows at least */
#define SEEP_GROWTH_NO_ONSET 9

#define SEEP_GROWTH_BUCKET_LIMIT 1024 /* more are refused */

/**
 * Ordered as a report lists them: X(SYMBOL, "name in JSON"). BACKING grows and
 * is no leak of its own: a cache that grows with what is in it, or for its own
 * reasons (judge/cache.c). No test of a site by itself gives it.
 */
#define SEEP_CLASSES(X)                  \
    X(LEAK, "leak")                      \
    X(SUSPECT, "suspect")                \
    X(WARMING, "warming")                \
    X(AGING, "aging")                    \
    X(MINOR, "minor")                    \
    X(BACKING, "backing")                \
    X(INSUFFICIENT, "insufficient-data") \
    X(TURNOVER, "turnover")              \
    X(PLATEAU, "plateau")                \
    X(STEP, "step")                      \
    X(SAWTOOTH, "sawtooth")              \
    X(STEADY, "steady")

/** Of such a list the names, in the order of its values. */
#define SEEP_NAME_ALONE(symbol, name) (name),

enum seep_class {
#define SEEP_CLASS_VALUE(symbol, name) SEEP_CLASS_##symbol,
    SEEP_CLASSES(SEEP_CLASS_VALUE)
#undef SEEP_CLASS_VALUE
        SEEP_CLASS_COUNT
};

/** One block that is still live. */
struct seep_survivor {
    double birth;        /* on the work clock, 0 to 1 */
    double weight;       /* bytes it stands for: those it takes / p */
    double variance;     /* of that: weight^2 (1 - p); 0 if exact */
    uint32_t birth_tick; /* the same on the clock of time */
    uint32_t size_bytes; /* that it was asked for with */
};

/**
 * What a recording keeps of a site beside its survivors: when blocks were
 * born and freed, how old they died, and both clocks. All arrays are by
 * bucket of time, the edges one longer and ascending from 0 to 1.
 */
struct seep_growth_life {
    const double *work_edge;
    const double *time_edge;
    const double *allocated_bytes;
    const double *allocated_count; /* blocks that were seen */
    const double *died_count;      /* by age: entry i is of [i, i + 1) widths */
    double born_seen;              /* blocks, of all of the run */
    double freed_seen;
    double end_tick;
    double width_ticks;
    bool has_work;       /* else time is all there is to go by */
    bool bytes_are_work; /* nothing better was told */
    bool load_rises;     /* it sets records in the second half */
};

struct seep_growth_input {
    const struct seep_survivor *survivors;
    size_t survivor_count;
    const double *bucket_end;  /* on the work clock, ascending, last is 1 */
    const double *live_bytes;  /* at the end of each bucket */
    const double *low_bytes;   /* lowest inside each bucket */
    const double *allocations; /* cumulative count by bucket, for the
                                  growing-block path; NULL: not known */
    size_t bucket_count;
    /* Blocks that were seen, not what they stand for: evidence is counted. */
    double
        died_old; /* blocks that died at an age of at least 2/10 of the run */
    double live_old; /* blocks still live of at least that age */
    double live_count;
    const struct seep_growth_life *life; /* NULL: not known */
};

/** 95 % interval. */
struct seep_interval {
    double estimate;
    double low;
    double high;
};

static inline struct seep_interval seep_interval_around(double estimate,
                                                        double half)
{
    return (struct seep_interval){estimate, estimate - half, estimate + half};
}

struct seep_growth {
    enum seep_class class;
    struct seep_interval rate; /* bytes per whole run (ten windows) of work */
    double confidence;         /* an order, 0 to 0.999; not a probability */
    double p;                  /* before correction over sites */
    double zs;                 /* z of the flat-rate evidence (zs of cft.py) */
    double window_bytes[SEEP_GROWTH_WINDOWS]; /* born in each tenth, alive */
    double window_count[SEEP_GROWTH_WINDOWS]; /* survivors, unweighted */
    int onset; /* first window of the unbroken chain; 9: none */
    bool growing_block;
    bool tested;            /* enough survivors: counts for Holm's m */
    double mature_count;    /* survivors that the rate rests on */
    double effective_count; /* the same, clumps counted once */
    double died_share;      /* of the blocks that got old, that died */
    double stopped_ln_p;    /* ln P of so long a silence at the former rate;
                               0: not tested */
    double stopped_since;   /* share of the run's time at which growth stopped;
                               below 0: it did not */
    double step_next_time;  /* share of the run's time at which a container
                               takes its next step; 0: none is foretold */
    double step_next_bytes; /* the size of that step; 0: ditto */
    double kept_time;       /* share of the run's time, its last, in which the
                               rate was kept, whatever work was done; 0: all */
    double stood_bytes;     /* in the second half live bytes stood by so much
                               above the first tenth, though they are replaced;
                               0: they did not */
    bool in_steps;          /* a container that grows in steps */
    bool in_bursts;         /* it grows in bursts, up to the end */
    bool by_life;           /* the second look decided */
    bool contradicts;       /* its figures cannot all be true */
    bool live_grows;        /* live bytes were seen to, by a test of trend */
    bool flat;              /* they have not moved in the second half */
    const char *reason;     /* a phrase for the report; never NULL */
};

/** Of @values from @first to @end - 1. */
double seep_growth_sum(const double *values, int first, int end);

/** Name of @class as JSON has it. */
const char *seep_class_name(enum seep_class class);

/** Does such a site grow, for all that is known of it? */
bool seep_class_may_leak(enum seep_class class);

/** Also by less than is worth a word? */
bool seep_class_grows(enum seep_class class);

/** What is said of a leak whose chain begins at @onset. */
const char *seep_growth_leak_reason(int onset);

/** Of a site of which nothing can be told. */
void seep_growth_clear(struct seep_growth *growth, const char *reason);

/**
 * Judge one site. Only @ret_growth is written. An input that contradicts
 * itself or is too short is SEEP_CLASS_INSUFFICIENT, never a guess.
 */
void seep_growth_analyse(const struct seep_growth_input *input,
                         struct seep_growth *ret_growth);

/**
 * Look again at a site that was analysed and whose life is known: what gets
 * old, how its rate changes, whether it has stopped. May change any figure
 * and the class of @growth, both ways. Without @input->life nothing changes.
 */
void seep_growth_look_again(const struct seep_growth_input *input,
                            struct seep_growth *growth);

#endif
