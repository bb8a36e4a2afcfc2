/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A service under even load for some seconds: it keeps so many bytes a second
 * for ever, and turns so many over among those that it holds.
 *
 *     paced SECONDS KEPT_BYTES_PER_S TURNED_BYTES_PER_S HELD_BYTES SEED
 *
 * Prints the bytes that it kept, and how long it ran, in nanoseconds.
 * Invariant: what is kept comes of keep() alone, what is held of turn_over();
 * what is held is there from the start.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_NS 1000000L
#define HELD_BLOCK_BYTES 512
#define STEP_BYTES_MOST (16 << 20) /* what it cannot turn over is left out */

struct kept {
    struct kept *next;
};

static struct kept *all_kept;
static void **held;
static size_t held_count;
static uint64_t random_state;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static size_t keep(void)
{
    size_t bytes = sizeof(struct kept) + random_number() % 2000;
    struct kept *kept = malloc(bytes);

    if (kept == NULL) {
        return 0;
    }
    kept->next = all_kept;
    all_kept = kept;
    return bytes;
}

__attribute__((noinline)) static size_t turn_over(void)
{
    size_t at = random_number() % held_count;
    size_t bytes = 1 + random_number() % (2 * HELD_BLOCK_BYTES);

    free(held[at]);
    held[at] = malloc(bytes);
    return bytes;
}

int main(int argc, char **argv)
{
    uint64_t start;
    uint64_t passed = 0;
    uint64_t before = 0;
    uint64_t kept = 0;
    uint64_t turned;
    double rate[3];

    if (argc != 6) {
        return 2;
    }
    for (int i = 0; i < 3; i++) {
        rate[i] = strtod(argv[1 + i], NULL);
    }
    random_state = strtoull(argv[5], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    held_count = strtoull(argv[4], NULL, 10) / HELD_BLOCK_BYTES + 1;
    held = calloc(held_count, sizeof(*held));
    if (held == NULL) {
        return 1;
    }
    for (size_t i = 0; i < held_count; i++) {
        held[i] = malloc(HELD_BLOCK_BYTES);
    }
    start = now_ns();
    while (passed < (uint64_t)(rate[0] * 1e9)) {
        const struct timespec step = {0, STEP_NS};

        passed = now_ns() - start;
        while ((double)kept < rate[1] * (double)passed / 1e9) {
            kept += keep();
        }
        turned = 0;
        while ((double)turned < rate[2] * (double)(passed - before) / 1e9 &&
               turned < STEP_BYTES_MOST) {
            turned += turn_over();
        }
        before = passed;
        nanosleep(&step, NULL);
    }
    printf("%llu %llu\n", (unsigned long long)kept, (unsigned long long)passed);
    fflush(stdout);
    _Exit(0); /* as the OOM killer would: nothing is given back */
}
