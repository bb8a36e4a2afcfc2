/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which blocks are recorded: the thresholds of threads, and the pace at which
 * their mean doubles in a recording that nobody gave one.
 *
 * A threshold is drawn anew for each block, and the mean only ever rises.
 */
#include "record/sampler.h"

#include <stdatomic.h>
#include <time.h>

#include "base/hash.h"
#include "base/math.h"
#include "base/thread.h"
#include "base/word.h"

void seep_sampler_seed(struct seep_thread *thread, uint64_t entropy)
{
    thread->random = seep_hash_mix(entropy) | 1;
}

void seep_sampler_draw(struct seep_thread *thread, unsigned sample_log2)
{
    double mean = (double)(UINT64_C(1) << sample_log2);
    double uniform; /* in (0, 1] */

    thread->sample_log2 = (uint8_t)sample_log2;
    if (sample_log2 == 0) {
        thread->countdown_bytes = 0;
        return;
    }
    uniform = (double)((seep_hash_random(&thread->random) >> 11) + 1) * 0x1p-53;
    thread->countdown_bytes = (int64_t)(-seep_math_log(uniform) * mean) + 1;
}

/*
 * The pace.
 */

/* Of the run, and of the processor time. What a program feels is about twice
 * what is measured here: caches, and the way to what is timed. */
#define BUDGET 1000U /* of 100,000 */
#define FELT 2U      /* for one that is measured */
#define CREDIT_NS 100000000.0
#define LOOK_EVERY 16U /* timed events, of about a thousand */
/* What took longer was the first of its stack, a page fault, or a sample of
 * the timeline: that one stands for 64 as dear is too much to decide by. */
#define CYCLES_MOST (UINT64_C(1) << 17)

static _Atomic uint32_t
    first_events; /* that were timed, until there are enough */
static _Atomic uint64_t timed;
static _Atomic uint64_t spent_cycles;  /* since the last look */
static _Atomic uint64_t tensor_cycles; /* of these */
static _Atomic bool has_tensors;
static _Atomic uint64_t debt_cycles;   /* beyond the budget */
static _Atomic uint64_t looked_cycles; /* when the last look was, */
static _Atomic uint64_t looked_cpu_ns; /* by the two clocks */
static _Atomic bool restricted;

static unsigned level_of(const struct seep_view *view)
{
    return seep_word_load(&view->header->sample_log2);
}

static bool is_settled(const struct seep_view *view)
{
    unsigned level = level_of(view);

    return level == 0 || level >= view->header->settled_sample_log2;
}

/* As far as its cost may double the mean. */
static unsigned dearest_level(const struct seep_view *view)
{
    return view->header->budget != 0 ? SEEP_PACE_BUDGET_LOG2
                                     : view->header->settled_sample_log2;
}

static bool is_sparsest(const struct seep_view *view)
{
    unsigned level = level_of(view);

    return level == 0 || level >= dearest_level(view);
}

unsigned seep_pace_tensor_log2(const struct seep_view *view)
{
    unsigned level = level_of(view);
    unsigned doublings = seep_word_load(&view->header->tensor_doublings);

    /* The file may be anybody's who has written into it. */
    return level == 0 ? 0
                      : level + (doublings < SEEP_PACE_TENSOR_DOUBLINGS
                                     ? doublings
                                     : SEEP_PACE_TENSOR_DOUBLINGS);
}

/* Of a program that gave a mean, and no budget, it stays. */
static bool may_spare_tensors(const struct seep_view *view)
{
    const struct seep_rec_header *header = view->header;

    return seep_word_load(&has_tensors) && level_of(view) != 0 &&
           (header->settled_sample_log2 != 0 || header->budget != 0) &&
           seep_word_load(&header->tensor_doublings) <
               SEEP_PACE_TENSOR_DOUBLINGS;
}

static void spare_tensors(const struct seep_view *view)
{
    uint32_t seen = seep_word_load(&view->header->tensor_doublings);

    /* Not tested: another thread has spared them since they were asked for. */
    if (seen < SEEP_PACE_TENSOR_DOUBLINGS) {
        seep_word_replace(&view->header->tensor_doublings, &seen, seen + 1);
    }
}

static uint64_t cycles_of_all(uint64_t cycles, bool first)
{
    cycles = cycles < CYCLES_MOST ? cycles : CYCLES_MOST;
    return cycles * (first ? 1 : SEEP_PACE_TIMED_EVERY);
}

void seep_pace_for_tensor(uint64_t cycles, bool first)
{
    seep_word_store(&has_tensors, true);
    seep_word_fetch_add(&tensor_cycles, cycles_of_all(cycles, first));
}

/* What may be spent of @cycles. */
static double budget_of(const struct seep_view *view, double cycles)
{
    uint32_t given = view->header->budget;

    return cycles * (given != 0 ? given : BUDGET) / (100000.0 * FELT);
}

static uint32_t tick_now(const struct seep_rec_header *header)
{
    uint64_t tick = (seep_clock_monotonic_ns() - header->start_monotonic_ns) >>
                    SEEP_TICK_LOG2_NS;

    return tick < UINT32_MAX / 2 ? (uint32_t)tick : UINT32_MAX / 2;
}

/* Of one that is not exact. Unless another has: twice at once is once. */
static void double_mean(const struct seep_view *view, unsigned level,
                        unsigned most)
{
    uint32_t seen = level;

    /* Not tested: another thread doubles it at the same moment. */
    if (level < most &&
        seep_word_replace(&view->header->sample_log2, &seen, level + 1)) {
        seep_word_store(&view->header->rose_tick, tick_now(view->header));
        seep_view_count(view, SEEP_COUNT_THINNINGS, 1);
    }
}

/* A system call. */
static uint64_t processor_ns(void)
{
    return seep_word_load(&restricted)
               ? 0
               : seep_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void seep_pace_start(const struct seep_view *view)
{
    seep_word_store(&timed, 0);
    seep_word_store(&spent_cycles, 0);
    seep_word_store(&tensor_cycles, 0);
    seep_word_store(&has_tensors, false);
    seep_word_store(&debt_cycles, 0);
    seep_word_store(&looked_cycles, view->header->start_cycles);
    seep_word_store(&looked_cpu_ns, is_sparsest(view) ? 0 : processor_ns());
    if (view->header->start_cycles == 0) {
        seep_pace_restrict(view); /* there is no counter */
    }
}

void seep_pace_restrict(const struct seep_view *view)
{
    seep_word_store(&restricted, true);
    while (view != NULL && !is_settled(view)) {
        double_mean(view, level_of(view), view->header->settled_sample_log2);
    }
}

void seep_pace_drop(void)
{
    seep_word_store(&first_events, 0);
}

bool seep_pace_is_first(void)
{
    return seep_word_load(&first_events) < SEEP_PACE_FIRST_EVENTS;
}

/* Cycles of the counter a nanosecond; 0 while too little time has passed for
 * the coarse clock to tell. */
static double cycles_a_ns(const struct seep_rec_header *header, uint64_t now)
{
    uint64_t ns = seep_clock_monotonic_ns() - header->start_monotonic_ns;

    return ns < UINT64_C(50000000) || now <= header->start_cycles
               ? 0
               : (double)(now - header->start_cycles) / (double)ns;
}

/* What passed since the last look, by the clock of which less did: a program
 * of many threads has more processor time than time, an idle one less. */
static double passed_cycles(uint64_t now, double rate)
{
    uint64_t cpu_ns = processor_ns();
    uint64_t before_ns = seep_word_load(&looked_cpu_ns);
    double run = (double)(now - seep_word_exchange(&looked_cycles, now));
    double used;

    if (cpu_ns == 0) {
        return run; /* it may not be asked */
    }
    seep_word_store(&looked_cpu_ns, cpu_ns);
    used = cpu_ns > before_ns ? (double)(cpu_ns - before_ns) * rate : 0;
    return used < run ? used : run;
}

/* The budget is a bucket that leaks: what is spent beyond it gathers, what is
 * not spent is not saved up. */
static void look(const struct seep_view *view)
{
    uint64_t now = seep_clock_cycles();
    double rate = cycles_a_ns(view->header, now);
    uint64_t spent;
    uint64_t for_tensors;
    double debt;

    if (rate <= 0) {
        return; /* it adds up until the next look */
    }
    spent = seep_word_exchange(&spent_cycles, 0);
    for_tensors = seep_word_exchange(&tensor_cycles, 0);
    debt = (double)seep_word_load(&debt_cycles) + (double)spent -
           budget_of(view, passed_cycles(now, rate));
    if (debt > CREDIT_NS * rate) {
        if (for_tensors >= spent / 2 && may_spare_tensors(view)) {
            spare_tensors(view);
        } else {
            double_mean(view, level_of(view), dearest_level(view));
        }
        debt = CREDIT_NS * rate / 2;
    }
    seep_word_store(&debt_cycles, debt > 0 ? (uint64_t)debt : 0);
}

void seep_pace_counted(const struct seep_view *view, uint64_t cycles,
                       bool first)
{
    if (first) {
        seep_word_fetch_add(&first_events, 1);
    }
    seep_view_count(
        view, first ? SEEP_COUNT_FIRST_EVENTS : SEEP_COUNT_TIMED_EVENTS, 1);
    seep_view_count(view,
                    first ? SEEP_COUNT_FIRST_CYCLES : SEEP_COUNT_TIMED_CYCLES,
                    cycles);
}

void seep_pace_spent(const struct seep_view *view, uint64_t cycles, bool first)
{
    seep_pace_counted(view, cycles, first);
    if (is_sparsest(view) && !may_spare_tensors(view)) {
        return;
    }
    seep_word_fetch_add(&spent_cycles, cycles_of_all(cycles, first));
    if (seep_word_fetch_add(&timed, 1) % LOOK_EVERY == LOOK_EVERY - 1) {
        look(view);
    }
}

/* Over half of @capacity, and a sixteenth more for each doubling? */
static bool is_filling(uint64_t used, uint64_t capacity, unsigned doublings)
{
    unsigned sixteenths = doublings < 4 ? 8 + doublings : 12;

    return used > capacity / 16 * sixteenths;
}

void seep_pace_site_came(const struct seep_view *view)
{
    const struct seep_rec_header *header = view->header;
    unsigned level = level_of(view);
    unsigned doublings = level - header->first_sample_log2;

    if (!is_settled(view) && (is_filling(seep_word_load(&header->site_count),
                                         view->site_capacity, doublings) ||
                              is_filling(seep_word_load(&header->stack_count),
                                         view->stack_capacity, doublings) ||
                              is_filling(seep_word_load(&header->frames_used),
                                         view->frame_capacity, doublings))) {
        double_mean(view, level, header->settled_sample_log2);
    }
}

void seep_pace_folded(const struct seep_view *view, uint32_t shard)
{
    const struct seep_rec_shard *header = &view->shards[shard];
    unsigned level = level_of(view);
    uint64_t keys = seep_word_load(&header->key_count);
    uint64_t most = header->live_slots / 2;

    most = most < SEEP_PACE_LIVE_MOST ? most : SEEP_PACE_LIVE_MOST;
    /* Not before the last doubling has come through. */
    if (!is_settled(view) && shard + 1 != view->shard_count &&
        seep_word_load(&header->live_count) > most + keys &&
        seep_word_load(&header->thin_level) == level) {
        double_mean(view, level, view->header->settled_sample_log2);
    }
}
