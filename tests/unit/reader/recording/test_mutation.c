/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording is hostile input: thousands of damaged ones, each opened and
 * read to its last byte. Deterministic; the sanitizers are the judges.
 */
#include "seep_test.h"

#include "recording_damage.h"

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Values that sit at an edge of something, and any value. */
static uint64_t edge(uint64_t *random)
{
    static const uint64_t values[] = {
        0,          1,          2,
        0x7fffffff, 0x80000000, 0xffffffff,
        1ULL << 32, 1ULL << 48, (1ULL << 48) - 1,
        1ULL << 63, UINT64_MAX, 127,
        128,        129,        4096,
    };
    uint64_t which = next(random) % 20;

    return which < 15 ? values[which] : next(random);
}

static void any_word_may_be_damaged(void **state)
{
    struct recording_damage damage;
    uint32_t rounds = seep_test_times(300, 1500);
    uint64_t random = 88172645463325252ULL;

    (void)state;
    recording_damage_init(&damage);
    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t count = 1 + next(&random) % 24;

        recording_damage_reset(&damage);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = next(&random);

            recording_damage_word(&damage, at, edge(&random));
        }
        recording_damage_read(&damage, damage.builder.size_bytes,
                              next(&random) % 4 != 0);
    }
    recording_damage_fini(&damage);
}

static void any_length_may_be_missing(void **state)
{
    struct recording_damage damage;
    uint64_t random = 1234567;

    (void)state;
    recording_damage_init(&damage);
    for (int round = 0; round < 100; round++) {
        size_t size = next(&random) % (damage.builder.size_bytes + 8192);

        recording_damage_reset(&damage);
        recording_damage_read(&damage, size, true);
    }
    recording_damage_fini(&damage);
}

/* Every field that indexes something, set to each edge, one at a time. */
static void every_index_may_lead_outside(void **state)
{
    struct recording_damage damage;
    uint64_t random = 42;

    (void)state;
    recording_damage_init(&damage);
    for (int field = 0; field < RECORDING_DAMAGE_FIELDS; field++) {
        for (int round = 0; round < 12; round++) {
            recording_damage_reset(&damage);
            recording_damage_field(&damage, field, edge(&random));
            recording_damage_read(&damage, damage.builder.size_bytes, true);
        }
    }
    recording_damage_fini(&damage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_word_may_be_damaged),
        cmocka_unit_test(any_length_may_be_missing),
        cmocka_unit_test(every_index_may_lead_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
