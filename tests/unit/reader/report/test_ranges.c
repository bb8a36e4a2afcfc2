/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which mappings are an allocator's, by where they begin in all looks. */
#include "seep_test.h"

#include "reader/report/build.h"

#define HEAP UINT64_C(0x7f0000000000) /* a multiple of 64 MiB */
#define PIECE UINT64_C(0x40000)

static char anonymous[] = "";
static char brk[] = "[heap]";

static struct seep_external_mapping mapping(uint64_t start, uint64_t end,
                                            char *name)
{
    return (struct seep_external_mapping){
        .start = start, .end = end, .name = name};
}

static void the_brk_heap_is_malloc_s_whoever_it_is(void **state)
{
    struct seep_external_mapping heap = mapping(PIECE, 2 * PIECE, brk);
    struct seep_external_samples samples = {0};

    (void)state;
    assert_true(seep_report_is_allocator(&heap, &samples, false));
    assert_true(seep_report_is_allocator(&heap, &samples, true));
}

static void an_arena_begins_at_its_alignment_in_every_look(void **state)
{
    struct seep_external_mapping mappings[2] = {
        mapping(HEAP, HEAP + PIECE, anonymous),
        mapping(HEAP, HEAP + 9 * PIECE, anonymous),
    };
    struct seep_external_sample all[2] = {
        {.mappings = &mappings[0], .mapping_count = 1},
        {.mappings = &mappings[1], .mapping_count = 1}};
    struct seep_external_samples samples = {all, 2};

    (void)state;
    assert_true(seep_report_is_allocator(&mappings[1], &samples, true));
    assert_false(seep_report_is_allocator(&mappings[1], &samples, false));
}

/* The program's own mappings join downwards: one look in 256 sees them begin
 * where an arena could. */
static void what_passes_an_alignment_is_no_arena(void **state)
{
    struct seep_external_mapping mappings[2] = {
        mapping(HEAP, HEAP + 3 * PIECE, anonymous),
        mapping(HEAP - PIECE, HEAP + 3 * PIECE, anonymous),
    };
    struct seep_external_sample all[2] = {
        {.mappings = &mappings[0], .mapping_count = 1},
        {.mappings = &mappings[1], .mapping_count = 1}};
    struct seep_external_samples samples = {all, 2};

    (void)state;
    assert_false(seep_report_is_allocator(&mappings[0], &samples, true));
    assert_false(seep_report_is_allocator(&mappings[1], &samples, true));
}

/* A full arena below it: the kernel shows the two as one. */
static void an_arena_behind_another_is_still_one(void **state)
{
    struct seep_external_mapping mappings[2] = {
        mapping(HEAP, HEAP + PIECE, anonymous),
        mapping(HEAP - (UINT64_C(64) << 20), HEAP + PIECE, anonymous),
    };
    struct seep_external_sample all[2] = {
        {.mappings = &mappings[0], .mapping_count = 1},
        {.mappings = &mappings[1], .mapping_count = 1}};
    struct seep_external_samples samples = {all, 2};

    (void)state;
    assert_true(seep_report_is_allocator(&mappings[0], &samples, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_brk_heap_is_malloc_s_whoever_it_is),
        cmocka_unit_test(an_arena_begins_at_its_alignment_in_every_look),
        cmocka_unit_test(what_passes_an_alignment_is_no_arena),
        cmocka_unit_test(an_arena_behind_another_is_still_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
