/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A service that leaks, or only looks as if it did.
 *
 *     verdict_cases KIND SECONDS SEED
 *
 * It serves requests, each of which allocates and frees a little, does what
 * its kind does beside, and prints as JSON what it leaked, and how fast.
 *
 * Invariant: what is allocated depends on the arguments only.
 */
#include "verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE_BYTES 4096
#define NS_PER_SECOND 1000000000L

void *verdict_touch(void *address, size_t bytes)
{
    volatile char *at = address;

    if (at == NULL) {
        abort();
    }
    for (size_t i = 0; i < bytes; i += PAGE_BYTES) {
        at[i] = 1;
    }
    at[bytes - 1] = 1;
    return address;
}

bool verdict_past(const struct verdict_run *run, double share)
{
    return run->tick >= share * run->tick_count;
}

/* What every service does: nothing of it stays. */
SITE_FUNCTION static void serve(struct verdict_run *run)
{
    size_t bytes = 200 + truth_random(&run->random) % 1000;
    void *request = verdict_touch(malloc(bytes), bytes);
    void *reply = verdict_touch(malloc(bytes / 4), bytes / 4);

    free(request);
    free(reply);
}

static void do_tick(const struct verdict_kind *kind, struct verdict_run *run)
{
    unsigned requests =
        kind->load != NULL ? kind->load(run) : REQUESTS_PER_TICK;

    for (unsigned i = 0; i < requests; i++) {
        serve(run);
        if (kind->request != NULL) {
            kind->request(run);
        }
    }
    run->requests += requests;
    if (kind->tick != NULL) {
        kind->tick(run);
    }
}

static void wait_until(const struct timespec *start, unsigned tick)
{
    long ns = start->tv_nsec + (long)(tick % TICKS_PER_SECOND) * NS_PER_SECOND /
                                   TICKS_PER_SECOND;
    struct timespec then = {
        start->tv_sec + (time_t)(tick / TICKS_PER_SECOND) + ns / NS_PER_SECOND,
        ns % NS_PER_SECOND,
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) ==
           EINTR) {
    }
}

static void run_all(const struct verdict_kind *kind, struct verdict_run *run)
{
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    if (kind->begin != NULL) {
        kind->begin(run);
    }
    for (run->tick = 0; run->tick < run->tick_count; run->tick++) {
        wait_until(&start, run->tick);
        do_tick(kind, run);
    }
    wait_until(&start, run->tick_count);
    if (kind->end != NULL) {
        kind->end(run);
    }
}

static const struct verdict_kind *find(const char *name)
{
    const struct verdict_kind *lists[] = {
        verdict_leak_kinds, verdict_clean_kinds, verdict_page_kinds,
        verdict_file_kinds};

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        for (const struct verdict_kind *kind = lists[i]; kind->name; kind++) {
            if (strcmp(kind->name, name) == 0) {
                return kind;
            }
        }
    }
    return NULL;
}

int main(int argument_count, char **arguments)
{
    const struct verdict_kind *kind =
        argument_count == 4 ? find(arguments[1]) : NULL;
    struct verdict_run run = {0};
    int seconds;

    if (kind == NULL) {
        return 2;
    }
    seconds = atoi(arguments[2]);
    run.tick_count = (unsigned)seconds * TICKS_PER_SECOND;
    run.random =
        88172645463325252ULL + strtoull(arguments[3], NULL, 10) * 2654435761ULL;
    run_all(kind, &run);
    printf("{\"requests\": %llu, \"leaked_bytes\": %llu, "
           "\"leaked_per_s\": %.1f}\n",
           (unsigned long long)run.requests,
           (unsigned long long)run.leaked_bytes,
           (double)run.leaked_bytes / (seconds * (1 - run.leaked_from)));
    return 0;
}
