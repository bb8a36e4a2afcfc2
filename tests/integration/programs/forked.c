/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker that was forked when its data was loaded: forked write|read MIB
 * SECONDS. The parent waits. The child uses all of the data once in that time,
 * page by page, and allocates and frees for each; "write" writes to each page,
 * "read" only reads it. The child prints the bytes that it used as JSON.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096U
#define STEPS_PER_S 50U

static volatile unsigned char sum;

static void pause_until(const struct timespec *start, double after_s)
{
    double at_s = (double)start->tv_sec + (double)start->tv_nsec * 1e-9;
    struct timespec until = {
        .tv_sec = (time_t)(at_s + after_s),
        .tv_nsec =
            (long)((at_s + after_s - (double)(time_t)(at_s + after_s)) * 1e9),
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

static void use(unsigned char *data, size_t pages, unsigned seconds, int writes)
{
    size_t steps = (size_t)seconds * STEPS_PER_S;
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t step = 0; step < steps; step++) {
        for (size_t page = pages * step / steps;
             page < pages * (step + 1) / steps; page++) {
            unsigned char *at = data + page * PAGE_BYTES;
            unsigned char *work = malloc(PAGE_BYTES);

            if (work == NULL) {
                abort();
            }
            memset(work, *at, PAGE_BYTES);
            sum = (unsigned char)(sum + work[page % PAGE_BYTES]);
            if (writes) {
                *at = sum;
            }
            free(work);
        }
        pause_until(&start, (double)(step + 1) / STEPS_PER_S);
    }
}

int main(int argc, char **argv)
{
    int writes = argc == 4 && strcmp(argv[1], "write") == 0;
    size_t bytes = argc == 4 ? strtoul(argv[2], NULL, 10) << 20 : 0;
    unsigned char *data = malloc(bytes);
    pid_t child;

    if (bytes == 0 || data == NULL) {
        return 2;
    }
    memset(data, 1, bytes);
    child = fork();
    if (child == 0) {
        use(data, bytes / PAGE_BYTES, (unsigned)strtoul(argv[3], NULL, 10),
            writes);
        printf("{\"used_bytes\": %zu}\n", bytes);
        fflush(stdout);
        _exit(0);
    }
    return child < 0 || waitpid(child, NULL, 0) != child;
}
