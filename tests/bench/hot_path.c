/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of a malloc/free pair, at a stack depth, on a number of threads.
 *
 *     hot_path DEPTH THREADS PAIRS OUT
 *
 * Writes three numbers to OUT: nanoseconds a pair (wall time of the slowest
 * thread over its pairs), nanoseconds of processor time a pair, and the
 * longest single malloc in nanoseconds as seen in a last, timed tenth.
 * Invariant: the timed loop calls nothing but malloc and free.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREAD_LIMIT 64
#define KEPT 32

struct worker {
    pthread_t thread;
    unsigned depth;
    long pairs;
    double wall_ns;
    double cpu_ns;
    double longest_ns;
};

static double now_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pairs(long count)
{
    void *kept[KEPT] = {0};

    for (long i = 0; i < count; i++) {
        free(kept[i % KEPT]);
        kept[i % KEPT] = malloc(16 + (size_t)(i * 7919 % 240));
    }
    for (int i = 0; i < KEPT; i++) {
        free(kept[i]);
    }
}

static double longest(long count)
{
    double worst = 0;

    for (long i = 0; i < count; i++) {
        double start = now_ns(CLOCK_MONOTONIC);
        void *block = malloc(100);
        double took = now_ns(CLOCK_MONOTONIC) - start;

        free(block);
        worst = took > worst ? took : worst;
    }
    return worst;
}

static void measure(struct worker *worker)
{
    double wall;
    double cpu;

    pairs(worker->pairs / 10);
    wall = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    pairs(worker->pairs);
    worker->wall_ns = now_ns(CLOCK_MONOTONIC) - wall;
    worker->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    worker->longest_ns = longest(worker->pairs / 10);
}

static void descend(struct worker *worker, unsigned depth)
{
    volatile unsigned here = depth;

    if (depth == 0) {
        measure(worker);
    } else {
        descend(worker, depth - 1);
    }
    here = 0;
    (void)here;
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    descend(worker, worker->depth);
    return NULL;
}

static int print(const struct worker *workers, unsigned count, const char *path)
{
    FILE *file = fopen(path, "w");
    double wall = 0;
    double cpu = 0;
    double worst = 0;

    if (file == NULL) {
        return 3;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct worker *worker = &workers[i];
        double pair_count = (double)worker->pairs;

        wall = worker->wall_ns > wall ? worker->wall_ns : wall;
        cpu += worker->cpu_ns / pair_count / count;
        worst = worker->longest_ns > worst ? worker->longest_ns : worst;
    }
    fprintf(file, "%.2f %.2f %.0f\n", wall / (double)workers[0].pairs, cpu,
            worst);
    return fclose(file) == 0 ? 0 : 3;
}

int main(int argument_count, char **arguments)
{
    static struct worker workers[THREAD_LIMIT];
    unsigned count;

    if (argument_count != 5) {
        return 2;
    }
    count = (unsigned)atoi(arguments[2]);
    if (count == 0 || count > THREAD_LIMIT) {
        return 2;
    }
    for (unsigned i = 0; i < count; i++) {
        /* main's own frames and the thread's start stand below */
        workers[i].depth = (unsigned)atoi(arguments[1]);
        workers[i].pairs = atol(arguments[3]);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            return 3;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    return print(workers, count, arguments[4]);
}
