/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The place of a number in a sorted array, beside counting one by one. */
#include "seep_test.h"

#include "base/sorted.h"

struct range {
    uint32_t kind; /* what comes before the key is not looked at */
    uint64_t start;
    uint64_t end;
};

static const uint64_t STARTS[] = {
    0, 1, 1, 7, 7, 7, 1000, UINT64_MAX - 1, UINT64_MAX,
};

#define COUNT (sizeof(STARTS) / sizeof(STARTS[0]))

static void as_many_as_counting_finds(void **state)
{
    struct range ranges[COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        ranges[i] = (struct range){.kind = UINT32_MAX, .start = STARTS[i]};
    }
    for (size_t count = 0; count <= COUNT; count++) {
        for (size_t i = 0; i < 3 * COUNT; i++) {
            uint64_t at = STARTS[i / 3] + i % 3 - 1; /* 0 - 1 wraps: the most */
            size_t up_to = 0;
            size_t below = 0;

            for (size_t k = 0; k < count; k++) {
                up_to += STARTS[k] <= at;
                below += STARTS[k] < at;
            }
            assert_int_equal(SEEP_SORTED_UP_TO(ranges, count, start, at),
                             up_to);
            assert_int_equal(SEEP_SORTED_BELOW(ranges, count, start, at),
                             below);
        }
    }
}

static void an_array_that_is_not_there_has_none(void **state)
{
    const struct range *ranges = NULL;

    (void)state;
    assert_int_equal(SEEP_SORTED_UP_TO(ranges, 0, start, 7), 0);
    assert_int_equal(SEEP_SORTED_BELOW(ranges, 0, start, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_counting_finds),
        cmocka_unit_test(an_array_that_is_not_there_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
