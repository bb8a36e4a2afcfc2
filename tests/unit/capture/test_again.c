/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The short cut for stacks that are nearly as they were: where it is taken, and
 * each thing that it must not be taken over. Stack, code and rules are made up;
 * every walk is compared with one that remembers nothing.
 */
#include "seep_test.h"

#include <string.h>

#include "capture/native/cache.h"
#include "capture/native/elf.h"
#include "capture/native/rule.h"
#include "capture/native/walk.h"

/* Where the code is that is made up: no object is there. */
#define CODE_BASE UINT64_C(0x20000)
#define CODES 96U
#define WORDS 512U

/* F: the frame has a frame pointer, R: it leaves that alone, E: no caller. */
#define SHAPE "FFRRRFFFFFRRFFFFFFFFRRRRFFE"
#define WITHOUT_F "RRRRRRRRRRRRRRRRRRRRRRRRRRE"
#define FRAMES (sizeof(SHAPE) - 1)
#define BELOW 200U /* words below the first frame */

struct world {
    uintptr_t words[WORDS] __attribute__((aligned(4096)));
    uint64_t rules[CODES];
    uintptr_t sps[FRAMES];
    size_t record_count; /* frame pointers that must be as they were */
    struct seep_stack_bounds bounds;
    struct seep_capture_start start;
    bool taken; /* the last walk was cut short */
};

struct walked {
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];
    size_t count;
    struct seep_capture_end end;
};

static struct world world;

static uintptr_t code(size_t index)
{
    return CODE_BASE + index * 16 + 1;
}

static uint64_t rule_of(char shape, uint64_t words)
{
    uint64_t at_cfa = SEEP_RULE_AT_CFA | (UINT64_C(0x3fe) << 2);

    switch (shape) {
    case 'F':
        return SEEP_RULE_RBP | 2 << 4 | at_cfa << SEEP_RULE_RBP_SHIFT;
    case 'R':
        return SEEP_RULE_RSP | words << 4;
    default:
        return SEEP_RULE_END;
    }
}

/* In the table of all threads, from where walks take them. */
static void tell_rules(void)
{
    uint64_t generation;

    assert_true(seep_rule_cache_open(&generation));
    for (size_t i = 0; i < CODES; i++) {
        seep_rule_cache_put(CODE_BASE + i * 16, generation, world.rules[i]);
    }
}

static void unload(void)
{
    seep_objects_unload_begin();
    seep_objects_unload_end();
    tell_rules();
}

/* Frames of 4, 5, 6, 4 ... words; the words that no rule reads are numbers. */
static int make_shape(const char *shape)
{
    size_t at = BELOW;
    uintptr_t *saved = &world.start.fp;

    world.record_count = 0;
    for (size_t i = 0; i < WORDS; i++) {
        world.words[i] = i;
    }
    for (size_t i = 0; i < CODES; i++) {
        world.rules[i] = rule_of(i < FRAMES ? shape[i] : 'F', 4 + i % 3);
    }
    for (size_t i = 0; i < FRAMES; i++) {
        world.sps[i] = (uintptr_t)&world.words[at];
        at += 4 + i % 3;
        world.words[at - 1] = code(i + 1);
        if (shape[i] == 'F') {
            *saved = (uintptr_t)&world.words[at - 2];
            saved = &world.words[at - 2];
            world.record_count += i != 0;
        }
    }
    world.start.pc = code(0);
    world.start.sp = world.sps[0];
    world.start.sps = NULL;
    world.bounds.low = (uintptr_t)world.words;
    world.bounds.high = (uintptr_t)(world.words + WORDS);
    unload();
    return 0;
}

static int make_world(void **state)
{
    (void)state;
    return make_shape(SHAPE);
}

static void walk_with_cache(const struct seep_capture_start *start,
                            size_t capacity, struct walked *walked)
{
    struct seep_unwind_cache *cache = seep_unwind_cache_take(
        (uintptr_t)&world, start->sp, &world.bounds, true);

    assert_non_null(cache);
    cache->walk.count = SIZE_MAX;
    walked->count = seep_unwind_capture(start, &world.bounds, cache,
                                        walked->pcs, capacity, &walked->end);
    /* Else no walk was begun. */
    world.taken = cache->walk.count == SIZE_MAX;
    assert_in_range(cache->last->end, cache->last->first, SEEP_CACHED_FRAMES);
}

/* With what is remembered and without. @return number of frames */
static size_t walk_up_to(const struct seep_capture_start *start,
                         size_t capacity)
{
    static struct walked with;
    static struct walked without;
    struct seep_capture_start from = *start;

    memset(&with, 0, sizeof(with));
    memset(&without, 0, sizeof(without));
    if (from.sps != NULL) {
        from.sps = with.sps;
    }
    walk_with_cache(&from, capacity, &with);
    if (from.sps != NULL) {
        from.sps = without.sps;
    }
    without.count = seep_unwind_walk(&from, &world.bounds, NULL, without.pcs,
                                     capacity, &without.end);
    assert_int_equal(with.count, without.count);
    assert_int_equal(with.end.cut, without.end.cut);
    assert_int_equal(with.end.through_signal, without.end.through_signal);
    assert_memory_equal(with.pcs, without.pcs,
                        with.count * sizeof(with.pcs[0]));
    assert_memory_equal(with.sps, without.sps, sizeof(with.sps));
    return with.count;
}

static size_t walk(const struct seep_capture_start *start)
{
    return walk_up_to(start, SEEP_STACK_FRAMES_MAX);
}

/* Until the stack is known well. */
static void walk_thrice(void)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(walk(&world.start), FRAMES);
    }
    assert_true(world.taken);
}

static void a_stack_that_is_as_it_was_is_not_walked(void **state)
{
    (void)state;
    assert_int_equal(walk(&world.start), FRAMES);
    assert_false(world.taken);
    assert_int_equal(walk(&world.start), FRAMES);
    assert_false(world.taken);
    for (int i = 0; i < 20; i++) {
        walk(&world.start);
        assert_true(world.taken);
    }
}

/* Return addresses and frame pointers; of the other words none. */
static void each_word_that_a_rule_read_is_looked_at(void **state)
{
    size_t looked_at = 0;

    (void)state;
    walk_thrice();
    for (uintptr_t *word = &world.words[BELOW];
         word < (uintptr_t *)world.sps[FRAMES - 1]; word++) {
        uintptr_t was = *word;

        *word = was ^ 0x40;
        walk(&world.start);
        looked_at += !world.taken;
        *word = was;
        walk_thrice();
    }
    assert_int_equal(looked_at, FRAMES - 1 + world.record_count);
}

static void the_frame_pointer_of_the_first_frame_is_looked_at(void **state)
{
    struct seep_capture_start start = world.start;

    (void)state;
    walk_thrice();
    start.fp += 16;
    walk(&start);
    assert_false(world.taken);
}

static void another_caller_of_the_hook_is_walked(void **state)
{
    struct seep_capture_start start = world.start;

    (void)state;
    walk_thrice();
    start.pc = code(1);
    walk(&start);
    walk_thrice();
    start.pc = code(FRAMES - 1);
    assert_int_equal(walk(&start), 1);
}

static void walk_thrice_from(size_t frame)
{
    struct seep_capture_start start = world.start;

    start.pc = code(frame);
    start.sp = world.sps[frame];
    start.fp = world.sps[frame + 1] - 2 * sizeof(uintptr_t);
    for (int i = 0; i < 3; i++) {
        walk(&start);
    }
    assert_true(world.taken);
}

/* Remember the stack from @frame on, and no other, but all rules. */
static void remember_from(size_t frame)
{
    world.bounds.high ^= 8;
    walk_thrice_from(frame);
}

/* A way into frame @to by @count frames, all F; the one next to it is of the
 * code behind @first. */
static struct seep_capture_start way_to(size_t to, size_t count, size_t first)
{
    uintptr_t *end = (uintptr_t *)world.sps[to] - 4 * count;
    struct seep_capture_start start = world.start;
    uintptr_t *saved = &start.fp;

    start.pc = code(count != 0 ? first + count : to);
    start.sp = (uintptr_t)end;
    for (size_t i = count; i > 0; i--) {
        end += 4;
        *saved = (uintptr_t)(end - 2);
        saved = end - 2;
        end[-1] = code(i > 1 ? first + i - 1 : to);
    }
    *saved = world.sps[to + 1] - 2 * sizeof(uintptr_t);
    return start;
}

static void two_ways_into_a_stack_take_turns(void **state)
{
    struct seep_capture_start start;

    (void)state;
    walk_thrice();
    for (int i = 0; i < 40; i++) {
        start = way_to(7, i % 2 == 0 ? 2 : 3, i % 2 == 0 ? 40 : 60);
        start.sps = i % 3 == 0 ? world.sps : NULL;
        assert_int_equal(walk(&start), FRAMES - 7 + (i % 2 == 0 ? 2 : 3));
        assert_true(world.taken || i < 4);
    }
}

static void stacks_may_become_deeper_and_less_deep(void **state)
{
    (void)state;
    walk_thrice();
    for (size_t i = 0; i < 60; i++) {
        size_t to = 6 + i * 7 % 3;
        struct seep_capture_start start = way_to(to, i % 6, 40);

        assert_int_equal(walk(&start), FRAMES - to + i % 6);
    }
}

/* And their words are looked at as those of the frames that were there. */
static void a_stack_may_grow_by_frames_before_its_first(void **state)
{
    size_t taken_count = 0;
    size_t walk_count = 0;

    (void)state;
    for (size_t count = 1; count <= 24; count++) {
        struct seep_capture_start start = way_to(7, count, 40);
        uintptr_t *top = (uintptr_t *)world.sps[7];

        remember_from(7);
        start = way_to(7, count, 40);
        walk(&start);
        remember_from(7);
        start = way_to(7, count, 40);
        for (int i = 0; i < 9; i++) {
            assert_int_equal(walk(&start), FRAMES - 7 + count);
            taken_count += world.taken;
            walk_count++;
        }
        for (uintptr_t *word = (uintptr_t *)start.sp; word < top; word++) {
            *word ^= 0x40;
            walk(&start);
            *word ^= 0x40;
            walk(&start);
            walk(&start);
        }
    } /* Where the loader puts things decides over one walk in some 200. */
    assert_true(taken_count * 10 >= walk_count * 9);
}

/* Of 20 frames the inner three are replaced by 31. */
static void frames_for_which_there_is_no_room_are_walked(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct seep_capture_start start = way_to(7, 20, 61);

        remember_from(7);
        start = way_to(7, 20, 61);
        for (int k = 0; k < 8 + i; k++) {
            walk(&start);
        }
        start = way_to(7, 48, 33);
        for (size_t k = 1; k <= 17; k++) {
            *(uintptr_t *)(world.sps[7] - 8 * (1 + 4 * k)) = code(61 + k);
        }
        for (int k = 0; k < 9; k++) {
            assert_int_equal(walk(&start), FRAMES - 7 + 48);
        }
    }
}

static void a_frame_pointer_that_is_garbage_is_not_followed(void **state)
{
    static const uintptr_t garbage[] = {
        0, 1, 8, UINTPTR_MAX - 15, UINTPTR_MAX, UINTPTR_MAX / 16 * 8};

    (void)state;
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]) + 9; i++) {
        struct seep_capture_start start = way_to(7, 2, 40);

        walk(&start);
        walk_thrice_from(7);
        start = way_to(7, 2, 40);
        start.fp = i < 6 ? garbage[i] : start.sp - 40 + 8 * i;
        walk(&start);
        walk_thrice_from(7);
        start = way_to(7, 2, 40);
        *(uintptr_t *)start.fp = i < 6 ? garbage[i] : start.fp - 40 + 8 * i;
        walk(&start);
        start = way_to(7, 2, 40);
        start.fp += i;
        walk(&start);
        /* Where it leads to there is another record, which is sound. */
        walk_thrice_from(7);
        start = way_to(7, 2, 40);
        memmove((char *)start.fp + i, (void *)start.fp, 16);
        start.fp += i;
        walk(&start);
    }
}

static void
frame_pointers_before_a_stack_without_any_are_looked_at(void **state)
{
    struct seep_capture_start start = way_to(7, 3, 40);

    (void)state;
    make_shape(WITHOUT_F);
    for (uintptr_t by = 8; by <= 64; by += 8) {
        start = way_to(7, 3, 40);
        walk(&start);
        remember_from(7);
        for (int i = 0; i < 9; i++) {
            start = way_to(7, 3, 40);
            assert_int_equal(walk(&start), FRAMES - 7 + 3);
            assert_true(world.taken);
        }
        *(uintptr_t *)start.fp += by;
        walk(&start);
    }
}

static void what_was_unloaded_is_not_remembered(void **state)
{
    (void)state;
    walk_thrice();
    unload();
    walk(&world.start);
    assert_false(world.taken);
    walk_thrice();
    /* While one is under way no walk has rules of code without an object. */
    seep_objects_unload_begin();
    assert_true(walk(&world.start) < FRAMES);
    seep_objects_unload_end();
}

static void a_walk_that_was_left_by_a_jump_leaves_nothing_behind(void **state)
{
    (void)state;
    walk_thrice();
    assert_non_null(seep_unwind_cache_take(
        (uintptr_t)&world, world.start.sp - 64, &world.bounds, true));
    walk(&world.start);
    assert_false(world.taken);
    walk_thrice();
}

static void no_more_frames_than_there_is_room_for(void **state)
{
    struct seep_capture_start start;

    (void)state;
    walk_thrice();
    for (size_t capacity = 1; capacity < FRAMES; capacity++) {
        assert_int_equal(walk_up_to(&world.start, capacity), capacity);
        assert_false(world.taken);
        walk_thrice();
    }
    for (int i = 0; i < 3; i++) {
        start = way_to(7, 20, 40);
        walk(&start);
    }
    assert_int_equal(walk_up_to(&start, FRAMES + 12), FRAMES + 12);
    assert_int_equal(walk_up_to(&start, FRAMES + 13), FRAMES + 13);
}

static void another_stack_is_walked(void **state)
{
    (void)state;
    walk_thrice();
    world.bounds.high -= 8;
    walk(&world.start);
    assert_false(world.taken);
    walk_thrice();
    world.bounds.low = world.sps[4];
    walk(&world.start);
    assert_false(world.taken);
}

#define TEST(function) cmocka_unit_test_setup(function, make_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stack_that_is_as_it_was_is_not_walked),
        TEST(each_word_that_a_rule_read_is_looked_at),
        TEST(the_frame_pointer_of_the_first_frame_is_looked_at),
        TEST(another_caller_of_the_hook_is_walked),
        TEST(two_ways_into_a_stack_take_turns),
        TEST(stacks_may_become_deeper_and_less_deep),
        TEST(a_stack_may_grow_by_frames_before_its_first),
        TEST(frames_for_which_there_is_no_room_are_walked),
        TEST(a_frame_pointer_that_is_garbage_is_not_followed),
        TEST(frame_pointers_before_a_stack_without_any_are_looked_at),
        TEST(what_was_unloaded_is_not_remembered),
        TEST(a_walk_that_was_left_by_a_jump_leaves_nothing_behind),
        TEST(no_more_frames_than_there_is_room_for),
        TEST(another_stack_is_walked),
    };

    seep_objects_init();
    if (seep_native_init(SEEP_UNWINDER_EH_FRAME) != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
