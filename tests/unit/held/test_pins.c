/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which blocks keep free memory apart, of heaps that are made up.
 *
 * Invariant: the process that is read is this one; of an arena it has nothing
 * but chunks, the heads of which alone are written.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "held/pins.h"
#include "seep_test.h"

#define HEAP_BYTES (UINT64_C(256) << 20)
#define USED true
#define FREE false
#define SMALL 32U
#define LARGE 65536U

struct fixture {
    uint64_t *heap;
    uint64_t offset;     /* of the next chunk */
    bool is_before_used; /* of which the next head tells */
    struct seep_held_memory memory;
    struct seep_held_arena arena;
    struct seep_held_blocks blocks;
    struct seep_held_pins pins;
};

static int set_up(void **state)
{
    const struct seep_held_source source = {.pid = getpid()};
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(f->heap != MAP_FAILED);
    madvise(f->heap, HEAP_BYTES, MADV_NOHUGEPAGE);
    f->is_before_used = true;
    f->arena.start = f->arena.first = (uintptr_t)f->heap;
    f->arena.end = f->arena.start + HEAP_BYTES;
    assert_int_equal(seep_held_memory_open(&source, &f->memory), 0);
    f->blocks = (struct seep_held_blocks){
        .memory = &f->memory, .arenas = &f->arena, .arena_count = 1};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    seep_held_pins_fini(&f->pins);
    seep_held_memory_close(&f->memory);
    free(f->blocks.idle.values);
    munmap(f->heap, HEAP_BYTES);
    free(f);
    return 0;
}

/* @return where its block begins */
static uint64_t put(struct fixture *f, uint64_t bytes, bool is_used)
{
    uint64_t *chunk = f->heap + f->offset / sizeof(*f->heap);

    chunk[1] = bytes | (f->is_before_used ? 1 : 0);
    f->is_before_used = is_used;
    f->offset += bytes;
    return (uintptr_t)(chunk + 2);
}

/* What is behind all of them, as the top chunk of a heap. */
static void walk(struct fixture *f)
{
    put(f, HEAP_BYTES - f->offset, FREE);
    seep_held_memory_forget(&f->memory);
    assert_int_equal(seep_held_pins_walk(&f->blocks, &f->pins), 0);
}

static void what_stands_between_free_pieces_is_told(void **state)
{
    struct fixture *f = *state;
    uint64_t first;
    uint64_t second;

    put(f, 10 * LARGE, USED);
    put(f, LARGE, FREE);
    first = put(f, SMALL, USED);
    second = put(f, SMALL, USED);
    put(f, LARGE, FREE);
    put(f, 10 * LARGE, USED);
    walk(f);
    assert_int_equal(f->pins.piece_count, 2);
    assert_int_equal(f->pins.piece_bytes, 2 * (LARGE - 16));
    assert_int_equal(f->pins.count, 2);
    assert_int_equal(f->pins.items[0].address, first);
    assert_int_equal(f->pins.items[1].address, second);
    assert_int_equal(f->pins.items[1].bytes, SMALL - 16);
    assert_int_equal(f->pins.pin_count, 2);
    assert_int_equal(f->pins.pin_bytes, 2 * (SMALL - 16));
    assert_true(f->pins.apart_bytes == LARGE - 16);
    assert_true(f->pins.items[0].apart_bytes == (LARGE - 16) / 2);
}

static void what_is_larger_than_the_pieces_keeps_nothing_apart(void **state)
{
    struct fixture *f = *state;

    put(f, LARGE, FREE);
    put(f, LARGE + 1024, USED);
    put(f, LARGE, FREE);
    put(f, SMALL, USED);
    put(f, 512, FREE); /* no piece: what comes next fits into it */
    put(f, 10 * LARGE, USED);
    walk(f);
    assert_int_equal(f->pins.piece_count, 2);
    assert_int_equal(f->pins.pin_count, 0);
    assert_int_equal(f->pins.count, 0);
}

static void what_a_thread_has_set_aside_is_free(void **state)
{
    struct fixture *f = *state;
    uint64_t pin;

    put(f, LARGE, FREE);
    assert_true(seep_held_addresses_add(&f->blocks.idle, put(f, SMALL, USED)));
    put(f, LARGE, FREE);
    pin = put(f, SMALL, USED);
    put(f, LARGE, FREE);
    put(f, 10 * LARGE, USED);
    walk(f);
    assert_int_equal(f->pins.piece_count, 2);
    assert_int_equal(f->pins.count, 1);
    assert_int_equal(f->pins.items[0].address, pin);
}

static void a_size_that_makes_no_sense_ends_the_walk(void **state)
{
    static const uint64_t sizes[] = {0, 16, 40, HEAP_BYTES + 16,
                                     UINT64_MAX & ~UINT64_C(15)};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        f->offset = 0;
        f->is_before_used = true;
        put(f, LARGE, FREE);
        put(f, SMALL, USED);
        put(f, LARGE, FREE);
        put(f, SMALL, USED);
        f->heap[f->offset / 8 + 1] = sizes[i] & ~UINT64_C(7);
        seep_held_memory_forget(&f->memory);
        assert_int_equal(seep_held_pins_walk(&f->blocks, &f->pins), 0);
        /* Of the last block nobody tells whether it is in use. */
        assert_int_equal(f->pins.piece_count, 2);
        assert_int_equal(f->pins.count, 1);
        seep_held_pins_fini(&f->pins);
    }
}

#define RUNS 70U
#define RUN_BLOCKS 4000U

static void what_is_kept_of_many_has_a_bound(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < RUNS; i++) {
        put(f, 20 * LARGE, FREE);
        for (unsigned k = 0; k < RUN_BLOCKS; k++) {
            put(f, SMALL, USED);
        }
    }
    put(f, LARGE, FREE);
    for (unsigned k = 0; k < 2 * RUN_BLOCKS; k++) {
        put(f, SMALL, USED); /* too many for one run */
    }
    put(f, 10 * LARGE, FREE);
    walk(f);
    assert_int_equal(f->pins.pin_count, RUNS * RUN_BLOCKS);
    assert_true(f->pins.count <= SEEP_HELD_PINS_MOST);
    assert_true(f->pins.count >= SEEP_HELD_PINS_MOST / 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_stands_between_free_pieces_is_told),
        CASE(what_is_larger_than_the_pieces_keeps_nothing_apart),
        CASE(what_a_thread_has_set_aside_is_free),
        CASE(a_size_that_makes_no_sense_ends_the_walk),
        CASE(what_is_kept_of_many_has_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
