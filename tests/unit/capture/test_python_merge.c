/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Merging by address, of stacks that do not fit together. */
#include "seep_test.h"

#include "capture/python/interpreter.h"

static const struct seep_python python = {.offsets = {.minor = 12}};

/* Python frames are named by their markers, native ones by their pcs. */
static void merge_markers(const uintptr_t *markers, size_t python_count,
                          size_t native_count, const uintptr_t *wanted)
{
    static const uintptr_t pcs[] = {1, 2, 3};
    static const uintptr_t sps[] = {1000, 2000, 3000};
    struct seep_native_stack native = {pcs, sps, native_count};
    struct seep_python_frame frames[4] = {0};
    struct seep_python_chain chain = {.frames = frames, .count = python_count};
    struct seep_merged_frame merged[8];
    bool full = true;
    size_t count;

    for (size_t i = 0; i < python_count; i++) {
        frames[i].marker = markers[i];
        frames[i].code = 100 + i;
    }
    count = seep_python_merge(&python, &native, &chain, merged, 8, &full);
    assert_false(full);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(merged[i].address, wanted[i]);
        assert_int_equal(merged[i].is_python, wanted[i] >= 100);
    }
    assert_int_equal(wanted[count], 0);
    assert_int_equal(
        seep_python_merge(&python, &native, &chain, merged, count - 1, &full),
        count - 1);
    assert_true(full);
}

static void frames_of_calls_that_are_not_seen_keep_their_order(void **state)
{
    (void)state;
    merge_markers((uintptr_t[]){500, 2100, 0}, 3, 3,
                  (uintptr_t[]){1, 100, 101, 3, 102, 0});
    merge_markers((uintptr_t[]){2100, 2100, 9000}, 3, 3,
                  (uintptr_t[]){1, 100, 101, 3, 102, 0});
    /* How far the last frame of a cut stack reaches nobody knows. */
    merge_markers((uintptr_t[]){2100, 9000}, 2, 2,
                  (uintptr_t[]){1, 2, 100, 101, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_calls_that_are_not_seen_keep_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
