/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What came and went in a shard, bucket by bucket, against a plain list.
 *
 * What these tests cannot catch: what thinning makes of it (test_fold.c holds
 * the totals that it must agree with).
 */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/fold.h"
#include "format/layout.h"
#include "format/series.h"
#include "recording_builder.h"

#define PAGE UINT64_C(4096)
#define RANGE UINT64_C(0x10000000)
#define SLOTS 300U
#define EVENTS 6000U
#define TICKS_MOST (SEEP_BUCKET_COUNT << 9)

struct fixture {
    struct recording_builder builder;
    uint32_t heap;
    uint32_t mapped;
    uint32_t file;
    /* By shard and tick, of what is no file. */
    struct seep_rec_flow *true_flow;
    uint64_t sizes[SLOTS];
    uint32_t seed;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t frame = builder_frame(0, 0x1000);
    uint32_t stack;

    if (f == NULL) {
        return -1;
    }
    f->seed = 1;
    builder_init(&f->builder, UINT64_C(8) << 20, true);
    stack = builder_stack(&f->builder, &frame, 1);
    f->heap = builder_site(&f->builder, stack, SEEP_SPACE_HEAP);
    f->mapped = builder_site(&f->builder, stack, SEEP_SPACE_MAPPED);
    f->file = builder_site(&f->builder, stack, SEEP_SPACE_FILE);
    f->true_flow = calloc((size_t)f->builder.view.shard_count * TICKS_MOST,
                          sizeof(*f->true_flow));
    *state = f;
    return f->true_flow != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    free(f->true_flow);
    free(f);
    return 0;
}

static uint32_t pick(struct fixture *f, uint32_t below)
{
    f->seed = f->seed * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)(f->seed >> 8) * below) >> 24);
}

static void count(struct fixture *f, uint32_t shard, uint32_t tick,
                  uint64_t allocated, uint64_t freed)
{
    struct seep_rec_flow *flow =
        &f->true_flow[(size_t)shard * TICKS_MOST + tick];

    seep_word_add(&flow->allocated_bytes, allocated);
    seep_word_add(&flow->freed_bytes, freed);
}

/* A block comes, goes, or was to go and stays. */
static void block_step(struct fixture *f, uint32_t tick)
{
    uint32_t slot = pick(f, SLOTS);
    uint64_t address = 0x100000 + slot * UINT64_C(1040);
    uint32_t shard = seep_view_shard_of(&f->builder.view, address);
    uint64_t *size = &f->sizes[slot];

    if (*size == 0) {
        *size = 1 + pick(f, 2000);
        builder_alloc(&f->builder, address, *size, f->heap, tick);
        count(f, shard, tick, *size, 0);
    } else if (pick(f, 8) == 0) {
        builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, address, 0, 0, tick);
        builder_push(&f->builder, SEEP_EVENT_RESTORE, address, 0, 0, tick);
    } else {
        builder_free(&f->builder, address, tick);
        count(f, shard, tick, 0, *size);
        *size = 0;
    }
}

/* A mapping of memory and one of a file, of which a middle goes. */
static void range_step(struct fixture *f, uint32_t tick)
{
    uint32_t shard = f->builder.view.shard_count - 1;

    builder_push(&f->builder, SEEP_EVENT_MAP, RANGE, 8 * PAGE, f->mapped, tick);
    builder_push(&f->builder, SEEP_EVENT_MAP, RANGE + 8 * PAGE, 8 * PAGE,
                 f->file, tick);
    builder_push(&f->builder, SEEP_EVENT_UNMAP, RANGE + 2 * PAGE, PAGE, 0,
                 tick);
    builder_push(&f->builder, SEEP_EVENT_UNMAP, RANGE, 16 * PAGE, 0, tick);
    count(f, shard, tick, 8 * PAGE, 8 * PAGE);
}

static void assert_flow(const struct fixture *f, uint32_t shard)
{
    const struct seep_rec_shard *header = &f->builder.view.shards[shard];
    uint32_t width = seep_word_load(&header->flow_width_log2);
    struct seep_rec_flow flow[SEEP_BUCKET_COUNT];

    memset((void *)flow, 0, sizeof(flow));
    for (uint32_t tick = 0; tick < SEEP_BUCKET_COUNT << width; tick++) {
        const struct seep_rec_flow *one =
            &f->true_flow[(size_t)shard * TICKS_MOST + tick];

        seep_word_add(&flow[tick >> width].allocated_bytes,
                      seep_word_load(&one->allocated_bytes));
        seep_word_add(&flow[tick >> width].freed_bytes,
                      seep_word_load(&one->freed_bytes));
    }
    assert_memory_equal(flow, header->flow, sizeof(flow));
}

/* Folded by and by, so that some events come with those that undo them, and as
 * the width doubles. */
static void a_flow_is_what_a_plain_list_says(void **state)
{
    struct fixture *f = *state;
    uint32_t shards = f->builder.view.shard_count;
    uint32_t tick = 0;

    for (uint32_t i = 0; i < EVENTS; i++) {
        tick += pick(f, 2) * pick(f, 1 + i / 300);
        assert_true(tick < TICKS_MOST);
        block_step(f, tick);
        if (i % 50 == 0) {
            range_step(f, tick);
        }
        if (i % 500 == 499) {
            builder_fold(&f->builder);
            for (uint32_t shard = 0; shard < shards; shard++) {
                assert_flow(f, shard);
            }
        }
    }
    assert_true(seep_series_width_for(tick) >= SEEP_FIRST_WIDTH_LOG2 + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flow_is_what_a_plain_list_says,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
