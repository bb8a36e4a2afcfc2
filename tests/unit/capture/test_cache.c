/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rule cache: what is found is what was kept, for that pc and that epoch.
 */
#include "seep_test.h"

#include <pthread.h>

#include "capture/native/cache.h"
#include "capture/native/elf.h"

#define THREADS 4U
#define ROUNDS 300000U
#define CROWD 12U

static uintptr_t crowd[CROWD];

/* A rule that tells for what it was made. */
static uint64_t rule_of(uintptr_t pc, uint64_t generation)
{
    uint64_t rule = pc * 31 + generation * UINT64_C(0x9e3779b97f4a7c15);

    return (rule & SEEP_RULE_CACHE_RULE_MASK) | 1;
}

static void a_rule_is_found_again(void **state)
{
    (void)state;
    seep_rule_cache_put(0x401234, 6, rule_of(0x401234, 6));
    assert_true(seep_rule_cache_get(0x401234, 6) == rule_of(0x401234, 6));
    assert_true(seep_rule_cache_get(0x401235, 6) == 0);
}

static void no_rule_outlives_its_epoch(void **state)
{
    (void)state;
    seep_rule_cache_put(0x402000, 8, rule_of(0x402000, 8));
    assert_true(seep_rule_cache_get(0x402000, 9) == 0);
    assert_true(seep_rule_cache_get(0x402000, 7) == 0);
}

static void while_a_dlclose_is_under_way_there_is_no_cache(void **state)
{
    uint64_t first;
    uint64_t second;

    (void)state;
    assert_true(seep_rule_cache_open(&first));
    seep_objects_unload_begin();
    assert_true(seep_objects_epoch() % 2 == 1);
    assert_false(seep_rule_cache_open(&second));
    seep_objects_unload_begin();
    seep_objects_unload_end();
    assert_false(seep_rule_cache_open(&second));
    seep_objects_unload_end();
    assert_true(seep_rule_cache_open(&second));
    assert_true(second > first);
}

static void a_forked_child_waits_for_no_dlclose_of_its_parent(void **state)
{
    uint64_t generation;

    (void)state;
    seep_objects_unload_begin();
    seep_objects_after_fork();
    assert_true(seep_rule_cache_open(&generation));
    /* The end of one that only the parent began. */
    seep_objects_unload_end();
    assert_true(seep_rule_cache_open(&generation));
}

/* The key has 16 bits of the epoch: after 32,768 dlcloses they are the same. */
static void a_wrapped_epoch_finds_nothing_of_the_one_before(void **state)
{
    uint64_t before;
    uint64_t after;

    (void)state;
    assert_true(seep_rule_cache_open(&before));
    seep_rule_cache_put(0x403000, before, rule_of(0x403000, before));
    for (unsigned int i = 0; i < 32768; i++) {
        seep_objects_unload_begin();
        seep_objects_unload_end();
    }
    assert_true(seep_rule_cache_open(&after));
    assert_true((after & 0xffff) == (before & 0xffff));
    assert_true(seep_rule_cache_get(0x403000, after) == 0);
}

static void addresses_beyond_48_bits_are_not_kept(void **state)
{
    uintptr_t far = (UINT64_C(1) << 50) | 0x404000;

    (void)state;
    seep_rule_cache_put(far, 2, rule_of(far, 2));
    assert_true(seep_rule_cache_get(far, 2) == 0);
}

static void *hammer(void *argument)
{
    uint64_t seed = (uintptr_t)argument;
    uintptr_t wrong = 0;

    for (unsigned int i = 0; i < ROUNDS; i++) {
        uintptr_t pc;
        uint64_t generation;
        uint64_t rule;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        pc = crowd[(seed >> 40) % CROWD];
        generation = 10 + (seed >> 60 & 1);
        rule = seep_rule_cache_get(pc, generation);
        wrong += rule != 0 && rule != rule_of(pc, generation);
        if (rule == 0) {
            seep_rule_cache_put(pc, generation, rule_of(pc, generation));
        }
    }
    return (void *)wrong;
}

/* All in one pair of slots, so that every put is another's loss. */
static void threads_at_one_slot_never_see_a_torn_rule(void **state)
{
    pthread_t threads[THREADS];
    uint32_t wanted = seep_rule_cache_index(seep_rule_cache_hash(0x500000)) / 2;
    uintptr_t pc = 0x500000;
    void *wrong;

    (void)state;
    for (unsigned int i = 0; i < CROWD; pc++) {
        if (seep_rule_cache_index(seep_rule_cache_hash(pc)) / 2 == wanted) {
            crowd[i++] = pc;
        }
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, hammer, (void *)(i + 1));
    }
    for (unsigned int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_is_found_again),
        cmocka_unit_test(no_rule_outlives_its_epoch),
        cmocka_unit_test(while_a_dlclose_is_under_way_there_is_no_cache),
        cmocka_unit_test(a_forked_child_waits_for_no_dlclose_of_its_parent),
        cmocka_unit_test(a_wrapped_epoch_finds_nothing_of_the_one_before),
        cmocka_unit_test(addresses_beyond_48_bits_are_not_kept),
        cmocka_unit_test(threads_at_one_slot_never_see_a_torn_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
