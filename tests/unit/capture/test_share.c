/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A walk that takes over frames of the one before it finds what a walk finds
 * that takes over nothing: on stacks full of return addresses and pointers, by
 * rules of all kinds, which are made up, as is the code that they are of.
 */
#include "seep_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "capture/native/cache.h"
#include "capture/native/elf.h"
#include "capture/native/rule.h"
#include "capture/native/walk.h"

#define WORDS 1536U
#define CODES 48U
#define ROUNDS 300000U

/* So many words do two ways into a stack differ in. */
#define INNER 64U

/* Where the code is that is made up: no object is there. */
#define CODE_BASE UINT64_C(0x10000)

struct world {
    uintptr_t words[WORDS + 16] __attribute__((aligned(4096)));
    uint64_t rules[CODES];
    struct seep_stack_bounds bounds;
    uint64_t seed;
    uint32_t framed; /* of ten rules so many are of frame pointers */
    uint32_t noted;  /* of ten of those so many do not look like it */
    bool plain;      /* nearly all rules are simple, and stacks end */
    size_t joined;
    size_t again; /* by the short cut */
    bool taken;   /* the last one was */
    size_t walks;
    size_t frames;
};

struct walked {
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    size_t count;
    struct seep_capture_end end;
};

static struct world world;

static uint32_t any(uint32_t below)
{
    world.seed = world.seed * UINT64_C(6364136223846793005) +
                 UINT64_C(1442695040888963407);
    return (uint32_t)((world.seed >> 33) % below);
}

static uintptr_t any_slot(void)
{
    return (uintptr_t)&world.words[any(WORDS)];
}

/* A place: not touched, below the CFA, somewhere at rbp, or lost. */
static uint64_t any_place(void)
{
    switch (world.plain ? 1 + any(7) : any(8)) {
    case 0:
        return SEEP_RULE_AT_RBP | (uint64_t)(any(8) & 0x3ff) << 2;
    case 1:
        return SEEP_RULE_LOST;
    case 2:
    case 3:
    case 4:
        return SEEP_RULE_AT_CFA | (uint64_t)(-(2 + any(5)) & 0x3ff) << 2;
    default:
        return SEEP_RULE_SAME;
    }
}

static uint64_t rule_of(uint64_t kind, uint64_t words, uint64_t rbp,
                        uint64_t rbx)
{
    return kind | (words & 0xffffff) << 4 | rbp << SEEP_RULE_RBP_SHIFT |
           rbx << SEEP_RULE_RBX_SHIFT;
}

static uint64_t any_rule(void)
{
    uint64_t at_cfa = SEEP_RULE_AT_CFA | (UINT64_C(0x3fe) << 2);

    if (any(10) < world.framed && any(10) < world.noted) {
        return rule_of(SEEP_RULE_RBP, 2, SEEP_RULE_AT_RBP, any_place());
    }
    if (any(10) < world.framed) {
        return rule_of(SEEP_RULE_RBP, 2, at_cfa, any_place());
    }
    switch (any(world.plain ? 1000 : 120)) {
    case 0:
        return SEEP_RULE_END;
    case 1:
        return rule_of(SEEP_RULE_LOADED_RBP, any(4), any_place(), any_place());
    case 2:
        return rule_of(SEEP_RULE_RBX, any(6), any_place(), any_place());
    case 3:
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    case 4:
        return SEEP_RULE_SIGNAL;
    case 5:
    case 6:
        return rule_of(SEEP_RULE_RBP, any(4), any_place(), any_place());
    default:
        return rule_of(SEEP_RULE_RSP,
                       world.framed != 0 ? 2 + 2 * any(5) : 1 + any(9),
                       any_place(), any_place());
    }
}

/* With frame pointers each pair of words is a record: the next record's address
 * and a return address. */
static uintptr_t any_word(uint32_t index)
{
    uint32_t what = world.plain ? (any(300) == 0 ? 55 : 0) : any(60);

    if (world.plain && index >= WORDS - 200 && index % 2 != 0) {
        return CODE_BASE + (CODES - 1) * 16 + 1;
    }
    if (world.framed != 0 && what < 58) {
        return index % 2 == 0 ? (uintptr_t)&world.words[index + 2 + 2 * any(6)]
                              : CODE_BASE + any(CODES) * 16 + 1;
    }
    if (what < 50) {
        return CODE_BASE + any(CODES) * 16 + 1;
    }
    return what < 59 ? any_slot() : any(2) * 8;
}

static void change(uint32_t below)
{
    uint32_t index = any(below);

    world.words[index] = any_word(index);
}

/* In the table of all threads, from where walks take them. @return they were
 * there: a walk may put one out, by a word that it takes for code */
static bool tell_rules(void)
{
    uint64_t generation;
    bool all = true;

    assert_true(seep_rule_cache_open(&generation));
    for (uint32_t i = 0; i < CODES; i++) {
        uintptr_t pc = CODE_BASE + i * 16;

        if (seep_rule_cache_get(pc, generation) != world.rules[i]) {
            seep_rule_cache_put(pc, generation, world.rules[i]);
            all = false;
        }
    }
    return all;
}

/* No code may have another rule in the same epoch. */
static void make_world(uint64_t seed, uint32_t framed, uint32_t noted,
                       bool plain)
{
    world.seed = seed;
    world.plain = plain;
    world.framed = framed;
    world.noted = noted;
    world.joined = 0;
    world.again = 0;
    world.walks = 0;
    world.frames = 0;
    seep_objects_unload_begin();
    seep_objects_unload_end();
    for (uint32_t i = 0; i < CODES; i++) {
        world.rules[i] = any_rule();
    }
    if (plain) {
        world.rules[CODES - 1] = SEEP_RULE_END;
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        world.words[i] = any_word(i);
    }
    world.bounds.low = (uintptr_t)world.words;
    world.bounds.high = (uintptr_t)(world.words + WORDS);
}

/* @return false: no rule was to be had for code that has one */
static bool walk(const struct seep_capture_start *start, size_t capacity,
                 struct seep_unwind_cache *cache, struct walked *walked)
{
    struct seep_capture_start from = *start;

    if (from.sps != NULL) {
        from.sps = walked->sps;
    }
    memset(walked->sps, 0, sizeof(walked->sps));
    tell_rules();
    if (cache == NULL) {
        walked->count = seep_unwind_walk(&from, &world.bounds, NULL,
                                         walked->pcs, capacity, &walked->end);
        return tell_rules();
    }
    cache->walk.count = SIZE_MAX;
    walked->count = seep_unwind_capture(&from, &world.bounds, cache,
                                        walked->pcs, capacity, &walked->end);
    /* Else there was no need to walk. */
    world.taken = cache->walk.count == SIZE_MAX;
    world.again += world.taken;
    return tell_rules();
}

/* With what is remembered, and without. */
static void walk_both(const struct seep_capture_start *start, size_t capacity)
{
    static struct walked with;
    static struct walked without;
    struct seep_unwind_cache *cache = seep_unwind_cache_take(
        (uintptr_t)&world, start->sp, &world.bounds, true);

    bool sound;

    assert_non_null(cache);
    sound = walk(start, capacity, cache, &with);
    world.joined += cache->joint.at != SEEP_CACHED_FRAMES;
    if (!walk(start, capacity, NULL, &without) || !sound) {
        return;
    }
    world.walks++;
    world.frames += with.count;
    if (with.count != without.count || with.end.cut != without.end.cut ||
        with.end.through_signal != without.end.through_signal ||
        memcmp(with.pcs, without.pcs, with.count * sizeof(with.pcs[0])) != 0 ||
        memcmp(with.sps, without.sps, sizeof(with.sps)) != 0) {
        fail_msg("walk %zu: %zu frames, cut %d, instead of %zu, cut %d",
                 world.walks, with.count, (int)with.end.cut, without.count,
                 (int)without.end.cut);
    }
}

static void change_something(void)
{
    for (uint32_t i = any(3); i > 0; i--) {
        change(WORDS);
    }
    /* What lies below is written over all the time. */
    for (uint32_t i = any(4) * 8; i > 0; i--) {
        change(64);
    }
    if (any(200) == 0) {
        world.bounds.low = (uintptr_t)&world.words[any(8) == 0 ? 700 : 0];
        world.bounds.high = (uintptr_t)&world.words[WORDS - 8 * any(3)];
    }
    if (any(500) == 0) {
        seep_objects_unload_begin();
        seep_objects_unload_end();
    }
}

static void walk_often(uint32_t rounds)
{
    static uintptr_t wanted[1];
    struct seep_capture_start start = {.sp = (uintptr_t)world.words};

    for (uint32_t i = 0; i < rounds; i++) {
        if (any(4) != 0) {
            start.pc = CODE_BASE + any(CODES) * 16 + 1;
            start.sp = (uintptr_t)&world.words[any(any(3) == 0 ? 450 : 20) * 2];
            start.fp = start.sp + 16 * any(10);
        }
        start.sps = any(2) == 0 ? wanted : NULL;
        walk_both(&start, any(10) == 0 ? 1 + any(40) : SEEP_STACK_FRAMES_MAX);
        change_something();
    }
}

static void frames_that_are_taken_over_are_those_of_a_walk(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        make_world(seed, 0, 0, false);
        walk_often(ROUNDS / 80);
        if (seed == 1) {
            assert_true(world.joined > world.walks / 10);
        }
    }
}

static void frames_of_frame_pointers_are_those_of_a_walk(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        make_world(seed * 7919, 3 + seed % 6, 0, false);
        walk_often(ROUNDS / 80);
    }
}

/* Rules that save rbp where it points to are noted word by word. */
static void what_rules_read_beside_is_looked_at_again(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        make_world(seed * 104729, 8 + seed % 3, 2 + seed % 9, false);
        walk_often(ROUNDS / 80);
    }
}

/* A stack that two ways lead into, which change seldom, as do the frames that
 * they have in common. */
static void walk_in_turns(uint32_t rounds)
{
    static uintptr_t wanted[1];
    static uintptr_t ways[2][INNER];
    struct seep_capture_start starts[2];

    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t way = any(2);
        uint32_t capacity = SEEP_STACK_FRAMES_MAX;

        if (i == 0 || any(40) == 0) {
            for (uint32_t k = 0; k < INNER; k++) {
                ways[way][k] = any_word(k);
            }
            starts[way].pc = CODE_BASE + any(CODES) * 16 + 1;
            starts[way].sp = (uintptr_t)&world.words[any(20) * 2];
            starts[way].fp = starts[way].sp + 16 * any(10);
            starts[1 - way] = i == 0 ? starts[way] : starts[1 - way];
        }
        memcpy(world.words, ways[way], sizeof(ways[way]));
        if (any(12) == 0) {
            change(any(3) == 0 ? WORDS : 200);
        }
        if (any(500) == 0) {
            change_something();
        }
        starts[way].sps = any(4) == 0 ? wanted : NULL;
        if (any(30) == 0) {
            capacity = 1 + any(120);
        }
        walk_both(&starts[way], capacity);
    }
}

static void stacks_that_are_nearly_the_same_are_those_of_a_walk(void **state)
{
    size_t again = 0;
    size_t walks = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= 80; seed++) {
        make_world(seed * 15485863, seed % 2 == 0 ? 0 : 4 + seed % 7,
                   seed % 5 == 0 ? 1 : 0, true);
        walk_in_turns(ROUNDS / 80);
        again += world.again;
        walks += world.walks;
    }
    assert_true(again > walks / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_that_are_nearly_the_same_are_those_of_a_walk),
        cmocka_unit_test(frames_that_are_taken_over_are_those_of_a_walk),
        cmocka_unit_test(frames_of_frame_pointers_are_those_of_a_walk),
        cmocka_unit_test(what_rules_read_beside_is_looked_at_again),
    };

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
