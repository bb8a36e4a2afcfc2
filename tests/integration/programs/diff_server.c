/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A service of which there are versions, for `seep diff`.
 *
 *     diff_server SECONDS RATE
 *
 * serves so many requests in ten milliseconds, and tells each as a unit of
 * work. It is built by the test, with other lines and names:
 *
 *     SECOND_LEAK   note() keeps 2,000 bytes of each request
 *     NO_LEAK       remember() keeps nothing, where else it keeps 1,000 bytes
 *
 * Invariant: what is kept is what the version keeps, whatever the clock says.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "seep/seep.h"

#define TICK_NS 10000000L
#define SECOND_NS 1000000000L

static void **kept;

static void keep(void *block)
{
    void **link = block;

    if (link == NULL) {
        abort();
    }
    *link = kept;
    kept = link;
}

__attribute__((noinline)) static void remember(size_t bytes)
{
    void *block = malloc(bytes);

#ifdef NO_LEAK
    free(block);
#else
    keep(block);
#endif
}

__attribute__((noinline)) static void note(size_t bytes)
{
    void *block = malloc(bytes);

#ifdef SECOND_LEAK
    keep(block);
#else
    free(block);
#endif
}

__attribute__((noinline)) static void serve(void)
{
    char *reply = malloc(3000);

    memset(reply, 1, 3000);
    remember(1000);
    note(2000);
    free(reply);
    seep_progress(1);
}

static void wait_for_tick(struct timespec *next)
{
    next->tv_nsec += TICK_NS;
    if (next->tv_nsec >= SECOND_NS) {
        next->tv_nsec -= SECOND_NS;
        next->tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

int main(int argument_count, char **arguments)
{
    struct timespec next;

    if (argument_count != 3) {
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = atoi(arguments[1]) * 100; i > 0; i--) {
        for (int k = atoi(arguments[2]); k > 0; k--) {
            serve();
        }
        wait_for_tick(&next);
    }
    return 0;
}
