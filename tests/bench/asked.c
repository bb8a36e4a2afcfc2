/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker that is asked who holds what while it works; see asked.py.
 *
 * For each line of its input it does the same work once more, and prints the
 * latencies of it, in ns (median, 99 %, 99.9 %), and a sum of all that it did.
 *
 * Invariant: the sum depends on the count of turns alone.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define OPERATIONS 200000U
#define SLOTS 65536U
#define KEPT 400U
#define KEPT_BYTES 4096U
#define MAP_BYTES (UINT64_C(256) << 10)

struct node {
    struct node *next;
    uint64_t value;
    char rest[112];
};

static struct node *table[SLOTS];
static void *kept[KEPT];
static uint64_t taken_ns[OPERATIONS];
static uint64_t state = 1;

static uint64_t random_bits(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return state >> 33;
}

__attribute__((noinline)) static void *keep_one(void)
{
    return malloc(KEPT_BYTES);
}

static void push(struct node **slot, uint64_t value)
{
    struct node *node = calloc(1, sizeof(*node));

    if (node != NULL) {
        node->value = value;
        node->next = *slot;
        *slot = node;
    }
}

static uint64_t pop(struct node **slot)
{
    struct node *node = *slot;
    uint64_t value = node == NULL ? 0 : node->value;

    if (node != NULL) {
        *slot = node->next;
        free(node);
    }
    return value;
}

/* What a server does: look, replace, and now and then a large buffer. */
static uint64_t operate(void)
{
    struct node **slot = &table[random_bits() % SLOTS];
    uint64_t sum = pop(slot) + (kept[random_bits() % KEPT] != NULL);

    push(slot, random_bits());
    if (random_bits() % 16 == 0) {
        char *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (map != MAP_FAILED) {
            memset(map, (int)(sum & 0xff), MAP_BYTES / 4);
            sum += (uint64_t)map[MAP_BYTES / 8];
            munmap(map, MAP_BYTES);
        }
    }
    return sum;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static uint64_t work(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < OPERATIONS; i++) {
        uint64_t start = now_ns();

        sum = sum * 31 + operate();
        taken_ns[i] = now_ns() - start;
    }
    qsort(taken_ns, OPERATIONS, sizeof(*taken_ns), compare);
    return sum;
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    uint64_t sum = 0;
    char line[64];

    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = keep_one();
    }
    for (size_t i = 0; i < (mib << 20) / (sizeof(struct node) + 16); i++) {
        push(&table[i % SLOTS], i);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        sum = sum * 31 + work();
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIx64 "\n",
               taken_ns[OPERATIONS / 2], taken_ns[OPERATIONS / 100 * 99],
               taken_ns[OPERATIONS / 1000 * 999], sum);
        fflush(stdout);
    }
    return 0;
}
