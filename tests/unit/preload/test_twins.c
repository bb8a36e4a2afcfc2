/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload/twins: blocks lie where they are to, alone, and come back.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "preload/twins.h"

#define ROUNDS 20000
#define HELD 64

/* Somewhere; of this only the low bits count. */
static const void *place(size_t offset_bytes)
{
    return (const void *)(uintptr_t)(0x7f0012340000 + offset_bytes);
}

static const char *twins(void)
{
    return seep_own_get(&seep_twins_table);
}

static size_t offset_of(const void *block)
{
    return (uintptr_t)block % SEEP_TWINS_SPAN_BYTES;
}

static void a_block_lies_where_it_is_to_and_knows_its_size(void **state)
{
    (void)state;
    for (size_t at = 16; at + 149 <= SEEP_TWINS_SPAN_BYTES; at += 16) {
        void *block = seep_twins_make(place(at), 149);

        assert_true(seep_twins_own(block) && seep_arena_owns(block));
        assert_int_equal(offset_of(block), at);
        assert_int_equal(seep_arena_size(block), 149);
        seep_twins_free(block);
    }
}

static void a_place_has_as_many_as_there_are_spans(void **state)
{
    void *blocks[128] = {NULL};
    size_t count = 0;

    (void)state;
    while (count < 128 &&
           (blocks[count] = seep_twins_make(place(1000 * 16), 64)) != NULL) {
        memset(blocks[count], 0xff, 64);
        count++;
    }
    assert_int_equal(count, 64);
    assert_null(seep_twins_make(place(1000 * 16 + 48), 64)); /* on its end */
    assert_null(seep_twins_make(place(1000 * 16 + 64), 64)); /* on its size */
    assert_null(seep_twins_make(place(1000 * 16 - 64), 80));
    seep_twins_free(seep_twins_make(place(1000 * 16 + 80), 64));
    seep_twins_free(seep_twins_make(place(1000 * 16 - 80), 64));
    seep_twins_free(blocks[40]);
    assert_ptr_equal(seep_twins_make(place(1000 * 16), 64), blocks[40]);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seep_arena_size(blocks[i]), 64);
        seep_twins_free(blocks[i]);
    }
    assert_ptr_equal(seep_twins_make(place(1000 * 16), 64), blocks[0]);
    seep_twins_free(blocks[0]);
}

static void where_there_is_no_room_there_is_none(void **state)
{
    (void)state;
    assert_null(seep_twins_make(place(0), 64)); /* no place for its size */
    assert_null(seep_twins_make(place(24), 64));
    assert_null(seep_twins_make(place(SEEP_TWINS_SPAN_BYTES - 48), 64));
    assert_null(seep_twins_make(place(64), SEEP_TWINS_MOST_BYTES + 1));
    seep_twins_free(seep_twins_make(place(64), 64));
    assert_false(seep_twins_own(twins() - 1));
    assert_false(seep_arena_owns(twins() - 1));
    assert_true(seep_twins_own(twins()));
    assert_false(seep_twins_own(twins() + SEEP_TWINS_BYTES));
    assert_false(seep_arena_owns(twins() + SEEP_TWINS_BYTES));
}

/* Each holds a few, of places that the others want, too. */
static void *hold_some(void *argument)
{
    unsigned char mark = (unsigned char)(uintptr_t)argument;
    unsigned seed = mark;
    unsigned char *held[HELD] = {NULL};

    for (int i = 0; i < ROUNDS; i++) {
        unsigned char **one = &held[rand_r(&seed) % HELD];
        size_t at = 16U * (50U + (unsigned)rand_r(&seed) % 24U);
        size_t bytes = 1U + (unsigned)rand_r(&seed) % 200U;

        if (*one != NULL) {
            for (size_t j = 0; j < seep_arena_size(*one); j++) {
                if ((*one)[j] != mark) {
                    return argument;
                }
            }
            seep_twins_free(*one);
        }
        *one = seep_twins_make(place(at), bytes);
        if (*one != NULL) {
            memset(*one, mark, bytes);
        }
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i] != NULL) {
            seep_twins_free(held[i]);
        }
    }
    return NULL;
}

static void threads_never_share_one(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (uintptr_t i = 0; i < 4; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, hold_some, (void *)(i + 1)), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *failed = NULL;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    a_block_lies_where_it_is_to_and_knows_its_size(state);
    a_place_has_as_many_as_there_are_spans(state); /* none was lost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_lies_where_it_is_to_and_knows_its_size),
        cmocka_unit_test(a_place_has_as_many_as_there_are_spans),
        cmocka_unit_test(where_there_is_no_room_there_is_none),
        cmocka_unit_test(threads_never_share_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
