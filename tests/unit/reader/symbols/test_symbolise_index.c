/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The index of nested and overlapping ranges, against looking at all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "reader/symbols/module.h"

#define RANGES 60
#define ADDRESSES 300

static const struct seep_symbolise_range *
find_slowly(const struct seep_symbolise_index *index, uint64_t address)
{
    const struct seep_symbolise_range *best = NULL;

    for (size_t i = 0; i < index->range_count; i++) {
        const struct seep_symbolise_range *range = &index->ranges[i];

        if (address < range->start || address >= range->end) {
            continue;
        }
        if (best == NULL || range->class < best->class ||
            (range->class == best->class &&
             (range->start > best->start ||
              (range->start == best->start && range->tie < best->tie)))) {
            best = range;
        }
    }
    return best;
}

static void every_address_finds_the_range_that_wins(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct seep_symbolise_index index = {0};

        for (uint64_t i = 0; i < RANGES; i++) {
            random = seep_hash_add(random, i);

            struct seep_symbolise_range range = {
                .start = random % ADDRESSES,
                .end = random % ADDRESSES + (random >> 32) % 80,
                .value = i,
                .class = (uint32_t)(random >> 20) % 3,
                .tie = (uint32_t)i,
            };

            assert_int_equal(seep_symbolise_index_add(&index, &range), 0);
        }
        assert_int_equal(seep_symbolise_index_seal(&index), 0);
        for (uint64_t address = 0; address < ADDRESSES + 100; address++) {
            assert_ptr_equal(seep_symbolise_index_find(&index, address),
                             find_slowly(&index, address));
        }
        seep_symbolise_index_fini(&index);
    }
}

static void an_index_of_nothing_finds_nothing(void **state)
{
    struct seep_symbolise_index index = {0};
    struct seep_symbolise_range empty = {.start = 5, .end = 5};

    (void)state;
    assert_int_equal(seep_symbolise_index_add(&index, &empty), 0);
    assert_int_equal(seep_symbolise_index_seal(&index), 0);
    assert_null(seep_symbolise_index_find(&index, 5));
    seep_symbolise_index_fini(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_finds_the_range_that_wins),
        cmocka_unit_test(an_index_of_nothing_finds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
