/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kinds of services that leak; each says where, and from when on. */
#include <malloc.h>
#include <stdlib.h>

#include "verdict.h"

#define LEAKED_BYTES 64
#define NODE_BYTES 16
#define FLOAT_BYTES 24
#define LATE_BYTES 128
#define GARBAGE_BYTES 256
#define GARBAGE_TICKS 200
#define GARBAGE_KEPT 4 /* one of so many survives a collection */
#define LOAD_TICKS 500
#define CHURN_BLOCKS 20 /* a tick: 1 GB per second */
#define CHURN_BYTES 250000
#define CHURN_LEAKED_BYTES 1024
#define TRIMMED_BYTES 200000 /* glibc maps it by itself */
#define TRIMMED_KEPT 24
#define TRIMMED_RING 64
#define CHURN_LEAK_MOST ((uint64_t)100000000)
#define CHURN_LEAK_LITTLE ((uint64_t)2000000)

/* What it takes of memory, with the word before it. */
static void leaked(struct verdict_run *run, void *block)
{
    if (block == NULL) {
        abort();
    }
    run->leaked_bytes += malloc_usable_size(block) + sizeof(size_t);
}

SITE_FUNCTION static void leak_request(struct verdict_run *run)
{
    leaked(run, malloc(LEAKED_BYTES));
}

/* A node of C++, or a float of Python: both take 32 bytes. */
SITE_FUNCTION static void leak_small(struct verdict_run *run)
{
    bool is_node = (run->random >> 20) % 2 == 0;

    leaked(run, malloc(is_node ? NODE_BYTES : FLOAT_BYTES));
}

SITE_FUNCTION static void leak_under_load(struct verdict_run *run)
{
    leaked(run, malloc(LEAKED_BYTES));
}

/* As it was, twice that, as it was, half of it, and so on. */
static unsigned swinging(const struct verdict_run *run)
{
    static const unsigned halves[] = {2, 4, 2, 1};

    return REQUESTS_PER_TICK * halves[run->tick / LOAD_TICKS % 4] / 2;
}

SITE_FUNCTION static void leak_later(struct verdict_run *run)
{
    if (verdict_past(run, run->leaked_from)) {
        leaked(run, malloc(LATE_BYTES));
    }
}

static void begin_halfway(struct verdict_run *run)
{
    run->leaked_from = 0.5;
}

static void begin_third(struct verdict_run *run)
{
    run->leaked_from = 1.0 / 3;
}

/* Garbage until it is collected; the first word of each links to the next. */
static void **garbage;

SITE_FUNCTION static void leak_collected(struct verdict_run *run)
{
    void **block = malloc(GARBAGE_BYTES);

    (void)run;
    if (block == NULL) {
        abort();
    }
    *block = garbage;
    garbage = block;
}

static void collect(struct verdict_run *run)
{
    unsigned index = 0;

    if (run->tick % GARBAGE_TICKS != GARBAGE_TICKS - 1) {
        return;
    }
    while (garbage != NULL) {
        void **block = garbage;

        garbage = *block;
        if (index++ % GARBAGE_KEPT == 0) {
            leaked(run, block);
        } else {
            free(block);
        }
    }
}

SITE_FUNCTION static void churn(void)
{
    char *block = malloc(CHURN_BYTES);

    if (block == NULL) {
        abort();
    }
    *block = 1;
    free(block);
}

SITE_FUNCTION static void leak_in_churn(struct verdict_run *run)
{
    leaked(run, malloc(CHURN_LEAKED_BYTES));
}

/* Evenly, @budget_bytes in the whole run. */
static void churn_and_leak(struct verdict_run *run, uint64_t budget_bytes)
{
    uint64_t due = budget_bytes * (run->tick + 1) / run->tick_count;

    for (unsigned i = 0; i < CHURN_BLOCKS; i++) {
        churn();
    }
    while (run->leaked_bytes + CHURN_LEAKED_BYTES <= due) {
        leak_in_churn(run);
    }
}

/* Some bytes are left of a large buffer, and keep the page that they are on. */
SITE_FUNCTION static void *keep_head(void)
{
    char *block = malloc(TRIMMED_BYTES);

    block = block == NULL ? NULL : realloc(block, TRIMMED_KEPT);
    if (block == NULL) {
        abort();
    }
    *block = 1;
    return block;
}

static void leak_head(struct verdict_run *run)
{
    void *block = keep_head();

    leaked(run, block);
}

static void renew_head(struct verdict_run *run)
{
    static void *ring[TRIMMED_RING];
    void **oldest = &ring[run->tick % TRIMMED_RING];

    free(*oldest);
    *oldest = keep_head();
}

static void leak_most(struct verdict_run *run)
{
    churn_and_leak(run, CHURN_LEAK_MOST);
}

static void leak_little(struct verdict_run *run)
{
    churn_and_leak(run, CHURN_LEAK_LITTLE);
}

const struct verdict_kind verdict_leak_kinds[] = {
    {.name = "leak", .request = leak_request},
    {.name = "leak-small", .request = leak_small},
    {.name = "leak-load", .request = leak_under_load, .load = swinging},
    {.name = "leak-halfway", .request = leak_later, .begin = begin_halfway},
    {.name = "leak-third", .request = leak_later, .begin = begin_third},
    {.name = "leak-sawtooth", .request = leak_collected, .tick = collect},
    {.name = "trimmed", .tick = leak_head},
    {.name = "trimmed-freed", .tick = renew_head},
    {.name = "churn-most", .tick = leak_most},
    {.name = "churn-little", .tick = leak_little},
    {.name = NULL},
};
