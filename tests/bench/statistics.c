/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the statistics of 20,000 call sites cost.
 *
 *     bench_statistics [SITES]
 *
 * Prints, in milliseconds of processor time: the cohort-flow test alone, on
 * sites of 10 to 5,000 survivors; and on a recording in memory with as many
 * sites what a report does with them: work clock, survivors grouped by site,
 * judgement. Invariant: it measures and judges nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reader/judge/sites.h"
#include "recording_builder.h"

#define SITES 20000U
#define DISTINCT 1000U /* sites that take turns, or they would fill the RAM */
#define BUCKETS SEEP_BUCKET_COUNT
#define SURVIVORS_MIN 10.0
#define SURVIVORS_MAX 5000.0
#define ROUNDS 5
#define RECORDING_BYTES (UINT64_C(256) << 20)
#define EVENTS 3000000U
#define RUN_TICKS (BUILDER_TICKS_PER_S * 60)

struct made {
    struct seep_growth_input input;
    struct seep_survivor *survivors;
    double bucket_end[BUCKETS];
    double live_bytes[BUCKETS];
    double low_bytes[BUCKETS];
    double allocations[BUCKETS];
};

static uint64_t random_state = 1;

/* Uniform in [0, 1). Knuth's MMIX generator. */
static double drawn(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) +
                   UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) * 0x1p-53;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A leak, a cache that warms, or what is still in flight, in turn. */
static double birth_of(size_t kind)
{
    double share = drawn();

    if (kind == 0) {
        return share;
    }
    return kind == 1 ? 0.02 * (pow(51, share) - 1) : 1 - 0.05 * share;
}

static void make(struct made *made, size_t kind)
{
    size_t count =
        (size_t)(SURVIVORS_MIN * pow(SURVIVORS_MAX / SURVIVORS_MIN, drawn()));
    double live = 0;

    memset(made, 0, sizeof(*made));
    made->survivors = calloc(count, sizeof(*made->survivors));
    if (made->survivors == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        double birth = birth_of(kind);
        made->survivors[i] = (struct seep_survivor){
            .birth = birth, .weight = 524288, .variance = 2.7e11};
        made->live_bytes[(size_t)(birth * BUCKETS)] += 524288;
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        live += made->live_bytes[i];
        made->bucket_end[i] = (double)(i + 1) / BUCKETS;
        made->live_bytes[i] = live * (1 + 0.1 * drawn());
        made->low_bytes[i] = live;
        made->allocations[i] = (double)(count * (i + 1)) / BUCKETS;
    }
    made->input = (struct seep_growth_input){
        .survivors = made->survivors,
        .survivor_count = count,
        .bucket_end = made->bucket_end,
        .live_bytes = made->live_bytes,
        .low_bytes = made->low_bytes,
        .allocations = made->allocations,
        .bucket_count = BUCKETS,
        .live_old = (double)count * (kind == 2 ? 0 : 0.8),
        .live_count = (double)count,
    };
}

static void measure_test(size_t sites)
{
    struct made *made = calloc(DISTINCT, sizeof(*made));
    size_t survivors = 0;
    double least = INFINITY;

    if (made == NULL) {
        abort();
    }
    for (size_t i = 0; i < DISTINCT; i++) {
        make(&made[i], i % 3);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ms();
        survivors = 0;
        for (size_t i = 0; i < sites; i++) {
            struct seep_growth growth;
            seep_growth_analyse(&made[i % DISTINCT].input, &growth);
            survivors += made[i % DISTINCT].input.survivor_count;
        }
        least = fmin(least, now_ms() - start);
    }
    printf("cohort-flow test    %8zu sites %10zu survivors %8.1f ms\n", sites,
           survivors, least);
    for (size_t i = 0; i < DISTINCT; i++) {
        free(made[i].survivors);
    }
    free(made);
}

/* Every third site leaks, every third warms up, the rest give all back. */
static void fill(struct recording_builder *builder, uint32_t sites)
{
    uint32_t module = builder_module(builder, "/opt/worker", 1);
    uint64_t next = 0x10000;

    for (uint32_t i = 0; i < sites; i++) {
        uint64_t frame = builder_frame(module, 0x1000 + i);
        builder_site(builder, builder_stack(builder, &frame, 1),
                     SEEP_SPACE_HEAP);
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t site = 1 + (uint32_t)(drawn() * sites);
        uint32_t tick = (uint32_t)((uint64_t)i * RUN_TICKS / EVENTS);
        bool keeps = site % 3 == 0 || (site % 3 == 1 && drawn() * (double)tick <
                                                            0.05 * RUN_TICKS);
        builder_alloc(builder, next, 65536, site, tick);
        if (!keeps || drawn() < 0.5) {
            builder_free(builder, next, tick + 1);
        }
        next += 64;
    }
    for (uint32_t i = 0; i < BUCKETS; i++) {
        builder_moment(builder, i, (i + 1) * RUN_TICKS / BUCKETS,
                       UINT64_C(1) << 30, (i + 1) * UINT64_C(100));
    }
    builder_fold(builder);
    builder_exit(builder, RUN_TICKS);
}

static void measure_recording(uint32_t wanted)
{
    struct recording_builder builder;
    struct seep_snapshot snapshot = {.bytes = NULL};
    struct seep_clock clock;
    struct seep_sites sites;
    size_t series = 0;
    double start;
    double grouped;
    double judged;

    builder_init(&builder, RECORDING_BYTES, true);
    fill(&builder, wanted);
    snapshot.view = builder.view;
    snapshot.torn = calloc(builder.view.site_capacity, 1);
    start = now_ms();
    seep_clock_init(&clock, &snapshot.view, seep_series_grid_of(RUN_TICKS));
    if (snapshot.torn == NULL ||
        seep_sites_init(&snapshot, &clock, NULL, &sites) != 0) {
        abort();
    }
    grouped = now_ms();
    seep_sites_judge(&sites, &clock);
    judged = now_ms();
    for (size_t i = 0; i < sites.count; i++) {
        series += sites.works[i].series.kind != SEEP_SERIES_NONE;
    }
    printf("of a recording      %8zu sites %10zu survivors %8.1f ms\n"
           "  with series       %8zu\n"
           "  clock, survivors  %46.1f ms\n"
           "  judgement         %46.1f ms\n",
           sites.count, sites.survivor_count, judged - start, series,
           grouped - start, judged - grouped);
    seep_sites_fini(&sites);
    free(snapshot.torn);
    builder_fini(&builder);
}

int main(int argc, char **argv)
{
    unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : SITES;

    measure_test(wanted);
    measure_recording((uint32_t)wanted);
    return 0;
}
