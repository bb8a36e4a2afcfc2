/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is recorded by a key that is no address (SEEP_ADDRESS_IS_KEY: what a
 * driver gave) beside sampled blocks of the heap: it is there whole, whatever
 * thinning does to these.
 *
 * What these tests cannot catch: who pushes a key with a level or asks the
 * filter for it (tests/integration/test_cuda_truth.py does).
 */
#include <stdlib.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "recording_builder.h"

#define KEY(number) (UINT64_C(1) << 56 | (uint64_t)(number) << 9)
#define HEAP(number) (UINT64_C(0x100000) + (uint64_t)(number)*4096)
#define KEYS 2000U

struct fixture {
    struct recording_builder builder;
    uint32_t heap;
    uint32_t device;
};

static struct {
    uint64_t addresses;
    uint64_t keys;
} forgotten;

static void forget(void *context, uint64_t address)
{
    (void)context;
    if (SEEP_ADDRESS_IS_KEY(address)) {
        forgotten.keys++;
    } else {
        forgotten.addresses++;
    }
}

static int set_up(void **state, int exact)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t frame[1];

    if (f == NULL) {
        return -1;
    }
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, exact);
    f->builder.fold.forget = forget;
    frame[0] = builder_frame(0, 0x1000);
    f->heap = builder_site(&f->builder, builder_stack(&f->builder, frame, 1),
                           SEEP_SPACE_HEAP);
    frame[0] = builder_frame(0, 0x2000);
    f->device = builder_site(&f->builder, builder_stack(&f->builder, frame, 1),
                             SEEP_SPACE_DEVICE);
    forgotten.addresses = 0;
    forgotten.keys = 0;
    *state = f;
    return 0;
}

static int set_up_exact(void **state)
{
    return set_up(state, 1);
}

static int set_up_sampled(void **state)
{
    return set_up(state, 0);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    free(f);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t counter(const struct fixture *f, enum seep_counter which)
{
    return get(&f->builder.view.counters[which]);
}

static const struct seep_rec_site *device(struct fixture *f)
{
    builder_fold(&f->builder);
    return &f->builder.view.sites[f->device];
}

static uint64_t live_count(const struct seep_rec_site *s)
{
    return (get(&s->allocated_count_q16) - get(&s->freed_count_q16)) >> 16;
}

static unsigned level(const struct fixture *f)
{
    return atomic_load_explicit(&f->builder.view.header->sample_log2,
                                memory_order_relaxed);
}

static void set_level(struct fixture *f, unsigned log2)
{
    atomic_store_explicit(&f->builder.view.header->sample_log2, log2,
                          memory_order_relaxed);
}

static uint64_t size_of(uint64_t number)
{
    return 1 + number * 7919 % 5000;
}

/* Sizes of which most blocks of the heap would go. */
static uint64_t add_keys(struct fixture *f, uint64_t count)
{
    uint64_t sum_bytes = 0;

    for (uint64_t i = 0; i < count; i++) {
        builder_alloc(&f->builder, KEY(i), size_of(i), f->device, 1);
        sum_bytes += size_of(i);
    }
    return sum_bytes;
}

/* So many blocks that the tables are thinned again and again. */
static void flood(struct fixture *f)
{
    for (uint64_t i = 0; i < 300000; i++) {
        builder_alloc(&f->builder, HEAP(i), 16 + i % 3000, f->heap,
                      (uint32_t)(i / 100));
    }
    builder_fold(&f->builder);
    assert_true(counter(f, SEEP_COUNT_THINNINGS) >= 4);
    assert_true(counter(f, SEEP_COUNT_THINNED_BLOCKS) > 0);
}

static void keys_are_never_thinned(void **state)
{
    struct fixture *f = *state;
    uint64_t sum_bytes = add_keys(f, KEYS);

    flood(f);
    assert_int_equal(seep_account_live_bytes(device(f)), sum_bytes);
    assert_int_equal(live_count(device(f)), KEYS);
    assert_int_equal(get(&device(f)->allocated_bytes), sum_bytes);
    assert_int_equal(counter(f, SEEP_COUNT_LIVE_FULL), 0);
    for (uint64_t i = 0; i < KEYS; i++) {
        builder_free(&f->builder, KEY(i), 4000);
    }
    assert_int_equal(seep_account_live_bytes(device(f)), 0);
    assert_int_equal(get(&device(f)->freed_bytes), sum_bytes);
    assert_int_equal(counter(f, SEEP_COUNT_FOREIGN_FREES), 0);
}

static void no_coin_is_flipped_for_a_key(void **state)
{
    struct fixture *f = *state;
    uint64_t sum_bytes;

    set_level(f, 30);
    sum_bytes = add_keys(f, KEYS);
    assert_int_equal(seep_account_live_bytes(device(f)), sum_bytes);
    assert_int_equal(live_count(device(f)), KEYS);
}

static void a_key_in_a_sampled_recording_stands_for_itself(void **state)
{
    struct fixture *f = *state;

    set_level(f, 19);
    builder_alloc(&f->builder, KEY(1), 4096, f->device, 1);
    builder_alloc(&f->builder, HEAP(1), 4096, f->heap, 1);
    assert_int_equal(seep_account_live_bytes(device(f)), 4096);
    assert_true(seep_account_live_bytes(&f->builder.view.sites[f->heap]) >
                512 << 10);
}

static void no_key_is_told_to_the_filter(void **state)
{
    struct fixture *f = *state;

    add_keys(f, KEYS);
    flood(f);
    assert_true(forgotten.addresses > 0);
    forgotten.addresses = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        builder_alloc(&f->builder, KEY(i), 1, f->device, 4000); /* closes */
        builder_free(&f->builder, KEY(i), 4000);
    }
    builder_fold(&f->builder);
    assert_int_equal(forgotten.keys, 0);
    assert_int_equal(forgotten.addresses, 0);
}

static void a_refused_free_brings_a_key_back_whole(void **state)
{
    struct fixture *f = *state;
    uint64_t sum_bytes = add_keys(f, KEYS);

    flood(f);
    builder_push(&f->builder, SEEP_EVENT_REALLOC_OUT, KEY(7), 0, 0, 4000);
    assert_int_equal(seep_account_live_bytes(device(f)),
                     sum_bytes - size_of(7));
    builder_push(&f->builder, SEEP_EVENT_RESTORE, KEY(7), 0, 0, 4000);
    assert_int_equal(seep_account_live_bytes(device(f)), sum_bytes);
    assert_int_equal(live_count(device(f)), KEYS);
}

static void assert_counts(const struct seep_live *live, uint64_t count,
                          uint64_t keys, uint64_t bytes)
{
    assert_int_equal(get(&live->shard->live_count), count);
    assert_int_equal(get(&live->shard->key_count), keys);
    assert_int_equal(get(&live->shard->live_bytes), bytes);
}

static void insert(const struct seep_live *live, uint64_t address,
                   uint64_t size)
{
    struct seep_block block = {.address = address, .size = size, .site = 1};

    assert_true(seep_live_insert(live, &block));
}

static void remove_one(const struct seep_live *live, uint64_t address)
{
    seep_live_remove(live, seep_live_find(live, address));
}

static void the_bytes_of_a_shard_leave_keys_out(void **state)
{
    struct fixture *f = *state;
    struct seep_live live;
    struct seep_block block;

    assert_true(seep_live_init(&live, &f->builder.view, 0));
    insert(&live, KEY(1), 1000);
    insert(&live, HEAP(1), 10);
    insert(&live, KEY(2), 2000);
    assert_counts(&live, 3, 2, 10);
    block = seep_live_get(&live, seep_live_find(&live, KEY(1)));
    block.size = 500;
    seep_live_update(&live, seep_live_find(&live, KEY(1)), &block);
    assert_counts(&live, 3, 2, 10);
    remove_one(&live, KEY(2));
    assert_counts(&live, 2, 1, 10);
    remove_one(&live, HEAP(1));
    assert_counts(&live, 1, 1, 0);
    insert(&live, HEAP(2), 20);
    atomic_store_explicit(&live.shard->live_count, 0, memory_order_relaxed);
    atomic_store_explicit(&live.shard->key_count, 9, memory_order_relaxed);
    atomic_store_explicit(&live.shard->live_bytes, 9, memory_order_relaxed);
    seep_live_recount(&live);
    assert_counts(&live, 2, 1, 20);
    remove_one(&live, KEY(1));
    remove_one(&live, HEAP(2));
    assert_counts(&live, 0, 0, 0);
}

/* Whoever left in the middle had not counted it. */
static void a_count_of_keys_left_too_low_does_not_wrap(void **state)
{
    struct fixture *f = *state;
    struct seep_live live;

    assert_true(seep_live_init(&live, &f->builder.view, 0));
    insert(&live, KEY(1), 1000);
    atomic_store_explicit(&live.shard->key_count, 0, memory_order_relaxed);
    remove_one(&live, KEY(1));
    assert_counts(&live, 0, 0, 0);
}

/* So that shard 0 has @count more. @return the next number */
static uint64_t fill_shard(struct fixture *f, uint64_t number, uint64_t count,
                           bool keys)
{
    uint32_t site = keys ? f->device : f->heap;

    for (; count > 0; number++) {
        uint64_t address = keys ? KEY(number) : HEAP(number);

        if (seep_view_shard_of(&f->builder.view, address) == 0) {
            builder_alloc(&f->builder, address, 100, site, 1);
            count--;
        }
    }
    builder_fold(&f->builder);
    return number;
}

/* Thinning gives nothing back of it: every block of the heap would be lost
 * for nothing. */
static void a_shard_full_of_keys_does_not_raise_the_level(void **state)
{
    struct fixture *f = *state;
    uint64_t slots = f->builder.view.shards[0].live_slots;
    uint64_t next;

    fill_shard(f, 0, slots / 16, false);
    next = fill_shard(f, 0, slots / 8 * 7 - slots / 16, true);
    assert_int_equal(counter(f, SEEP_COUNT_THINNINGS), 0);
    assert_int_equal(level(f), 0);
    assert_int_equal(counter(f, SEEP_COUNT_LIVE_FULL), 0);
    /* And beyond that they are refused, and it is told. */
    fill_shard(f, next, slots / 8, true);
    assert_int_equal(level(f), 0);
    assert_true(counter(f, SEEP_COUNT_LIVE_FULL) > 0);
}

/* With them in the sum it would be the mean of all. */
static void the_first_level_is_about_the_mean_block_of_the_heap(void **state)
{
    struct fixture *f = *state;
    uint64_t slots = f->builder.view.shards[0].live_slots;

    fill_shard(f, 0, slots / 4 * 2, true);
    fill_shard(f, 0, slots / 4 + 1, false);
    assert_int_equal(counter(f, SEEP_COUNT_THINNINGS), 1);
    assert_int_equal(level(f), 7); /* 128 bytes: blocks are of 100 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, set_up_exact, tear_down)
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, set_up_sampled, tear_down)
        EXACT(keys_are_never_thinned),
        EXACT(no_coin_is_flipped_for_a_key),
        SAMPLED(no_coin_is_flipped_for_a_key),
        SAMPLED(a_key_in_a_sampled_recording_stands_for_itself),
        EXACT(no_key_is_told_to_the_filter),
        EXACT(a_refused_free_brings_a_key_back_whole),
        EXACT(the_bytes_of_a_shard_leave_keys_out),
        EXACT(a_count_of_keys_left_too_low_does_not_wrap),
        EXACT(a_shard_full_of_keys_does_not_raise_the_level),
        EXACT(the_first_level_is_about_the_mean_block_of_the_heap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
