/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Depot and site table: one site a stack and space, refusal when full. */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/layout.h"
#include "record/sites.h"

static struct seep_view view;

static int set_up(void **state)
{
    struct seep_rec_header header = {0};
    void *bytes;

    (void)state;
    seep_sites_forget();
    if (seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, true, false, &header) != 0) {
        return -1;
    }
    bytes = calloc(1, header.file_bytes);
    if (bytes == NULL) {
        return -1;
    }
    memcpy(bytes, (void *)&header, sizeof(header));
    seep_layout_start(bytes);
    seep_view_init(&view, bytes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(view.header);
    return 0;
}

static uint64_t frame_of(const struct seep_view *unused, uint64_t address)
{
    (void)unused;
    return address + 1;
}

static uint32_t intern(enum seep_space space, uint64_t first, uint64_t second,
                       uint64_t epoch)
{
    uint64_t addresses[2] = {first, second};
    struct seep_sites_stack stack = {
        .addresses = addresses, .count = 2, .epoch = epoch};

    return seep_sites_intern(&view, space, &stack, frame_of);
}

static uint64_t counter(enum seep_counter which)
{
    return atomic_load_explicit(&view.counters[which], memory_order_relaxed);
}

static void one_stack_is_one_site(void **state)
{
    uint32_t site = intern(SEEP_SPACE_HEAP, 10, 20, 0);

    (void)state;
    assert_int_not_equal(site, 0);
    assert_int_equal(intern(SEEP_SPACE_HEAP, 10, 20, 0), site);
    assert_int_not_equal(intern(SEEP_SPACE_HEAP, 10, 21, 0), site);
    assert_int_not_equal(intern(SEEP_SPACE_MAPPED, 10, 20, 0), site);
    /* After a dlclose the same addresses are looked up anew. */
    assert_int_equal(intern(SEEP_SPACE_HEAP, 10, 20, 2), site);
}

static void a_site_has_its_frames(void **state)
{
    const struct seep_rec_site *site =
        &view.sites[intern(SEEP_SPACE_MAPPED, 10, 20, 0)];
    const struct seep_rec_stack *stack = &view.stacks[site->stack];

    (void)state;
    assert_int_equal(atomic_load_explicit(&site->state, memory_order_relaxed),
                     SEEP_PUBLISHED);
    assert_int_equal(site->space, SEEP_SPACE_MAPPED);
    assert_int_equal(
        atomic_load_explicit(&stack->frame_count, memory_order_relaxed), 2);
    assert_int_equal(atomic_load_explicit(&view.frames[stack->first_frame],
                                          memory_order_relaxed),
                     11);
    assert_int_equal(atomic_load_explicit(&view.frames[stack->first_frame + 1],
                                          memory_order_relaxed),
                     21);
}

static void a_full_table_refuses_and_keeps_the_old_sites(void **state)
{
    uint32_t first = intern(SEEP_SPACE_HEAP, 1, 1, 0);
    uint32_t refused = 0;

    (void)state;
    for (uint64_t i = 2; i < 4 * view.site_capacity; i++) {
        refused += intern(SEEP_SPACE_HEAP, i, i, 0) == 0;
    }

    assert_true(refused > 2 * view.site_capacity);
    assert_true(counter(SEEP_COUNT_SITES_FULL) > 0);
    assert_int_equal(intern(SEEP_SPACE_HEAP, 1, 1, 0), first);
}

static void a_full_depot_costs_frames_and_not_sites(void **state)
{
    uint32_t site;

    (void)state;
    atomic_store_explicit(&view.header->frames_used, view.frame_capacity - 1,
                          memory_order_relaxed);
    site = intern(SEEP_SPACE_HEAP, 10, 20, 0);

    assert_int_not_equal(site, 0);
    assert_int_equal(counter(SEEP_COUNT_STACKS_FULL), 1);
    assert_int_equal(
        atomic_load_explicit(&view.stacks[view.sites[site].stack].frame_count,
                             memory_order_relaxed),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(one_stack_is_one_site),
        TEST(a_site_has_its_frames),
        TEST(a_full_table_refuses_and_keeps_the_old_sites),
        TEST(a_full_depot_costs_frames_and_not_sites),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
