/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the memory of a process is, from moments made by hand. */
#include "seep_test.h"

#include <math.h>
#include <string.h>

#include "reader/judge/balance.h"

#define MIB 1048576.0
#define POINTS 128

/* A run of 128 s with a moment each second: 10 MiB of base, nothing else. */
static struct seep_balance_point points[SEEP_WINDOW_POINTS];
static struct seep_balance_input input;
static struct seep_report_memory memory;
static struct seep_balance_outside outside;

static int begin(void **state)
{
    (void)state;
    memset(&input, 0, sizeof(input));
    memset(&memory, 0, sizeof(memory));
    for (int i = 0; i < POINTS; i++) {
        points[i] = (struct seep_balance_point){
            .t_s = i + 1,
            .rss = 14 * MIB,
            .anonymous = 10 * MIB,
            .swap = -1,
            .cgroup = -1,
            .allocated = -1,
            .active = -1,
            .resident = -1,
            .held = -1,
        };
    }
    input.points = points;
    input.count = POINTS;
    input.end_s = POINTS;
    input.free_most_bytes = INFINITY;
    return 0;
}

static void fill(void)
{
    seep_balance_fill(&input, &memory, &outside, NULL);
}

/* @field rises by @mib a second. */
#define RISE(field, mib)                                          \
    do {                                                          \
        for (int i_ = 0; i_ < POINTS; i_++) {                     \
            points[i_].field =                                    \
                fmax(points[i_].field, 0) + (mib)*MIB * (i_ + 1); \
        }                                                         \
    } while (0)

/* The allocator tells every tenth moment: of @kept MiB per second more. */
static void tell(double allocated, double kept)
{
    for (int i = 0; i < POINTS; i += 10) {
        points[i].allocated = allocated * MIB * (i + 1) + MIB;
        points[i].resident = (allocated + kept) * MIB * (i + 1) + MIB;
        points[i].chunks = 10;
    }
}

static void no_moment_is_no_memory(void **state)
{
    (void)state;
    input.count = 0;
    fill();
    assert_false(memory.valid);
    assert_false(memory.rss.valid);
    assert_false(outside.known);
}

static void a_process_at_rest_has_no_slope_and_no_growth(void **state)
{
    (void)state;
    fill();
    assert_true(memory.valid);
    assert_true(memory.rss.first_bytes == 14 * MIB);
    assert_true(memory.anonymous.last_bytes == 10 * MIB);
    assert_true(memory.shared.last_bytes == 4 * MIB);
    assert_true(memory.rss.slope_bytes_per_s == 0);
    assert_false(memory.swap.valid);
    assert_false(memory.cgroup.valid);
    assert_false(memory.allocator_overhead.valid);
    assert_true(memory.unexplained.last_bytes == 10 * MIB);
    assert_true(outside.known);
    assert_true(outside.p == 1);
    assert_false(outside.has_overhead);
}

static void what_blocks_hold_is_tracked_and_no_growth_outside(void **state)
{
    (void)state;
    RISE(rss, 1);
    RISE(anonymous, 1);
    RISE(heap, .75);
    RISE(beside, .25);
    fill();
    assert_true(fabs(memory.tracked.slope_bytes_per_s - MIB) < .02 * MIB);
    assert_true(fabs(memory.unexplained.slope_bytes_per_s) < 1);
    assert_true(outside.p == 1);
    assert_true(fabs(outside.growth_bytes) < 1);
    assert_true(fabs(outside.tracked_bytes - .8 * 128 * MIB) < 1 * MIB);
}

static void what_nobody_holds_is_unexplained_growth(void **state)
{
    (void)state;
    RISE(rss, 1);
    RISE(anonymous, 1);
    tell(0, 0);
    fill();
    assert_true(fabs(memory.unexplained.slope_bytes_per_s - MIB) < .05 * MIB);
    assert_true(outside.p < 1e-9);
    assert_true(outside.going_on);
    assert_true(outside.growth_bytes > 90 * MIB);
    assert_true(fabs(outside.bytes_per_s.estimate - MIB) < .02 * MIB);
    assert_true(outside.has_overhead);
    assert_true(outside.overhead_growth_bytes < MIB);
    assert_true(outside.error_bytes == 0);
}

/* One reservation, which was all there from the start, fills. */
static void what_fills_a_known_mapping_is_told_by_its_pages(void **state)
{
    (void)state;
    RISE(rss, 1);
    RISE(anonymous, 1);
    for (int i = 0; i < POINTS; i++) {
        points[i].beside = 128 * MIB;
    }
    fill();
    assert_true(outside.mapped_growth_bytes == 0);
    RISE(mapped, 1);
    fill();
    assert_true(outside.growth_bytes > 90 * MIB);
    assert_true(outside.mapped_growth_bytes > .95 * outside.growth_bytes);
    assert_true(fabs(memory.tracked.slope_bytes_per_s - MIB) < .02 * MIB);
    assert_true(fabs(memory.unexplained.slope_bytes_per_s) < .02 * MIB);
}

/* New mappings are call sites' growth: what was looked at is no more. */
static void pages_of_new_mappings_are_not_counted_twice(void **state)
{
    (void)state;
    RISE(rss, 2);
    RISE(anonymous, 2);
    RISE(beside, 1);
    RISE(mapped, 1);
    fill();
    assert_true(outside.growth_bytes > 90 * MIB);
    assert_true(outside.mapped_growth_bytes < MIB);
}

static void memory_in_swap_is_not_gone(void **state)
{
    (void)state;
    RISE(swap, 1);
    fill();
    assert_true(memory.swap.valid);
    assert_true(outside.p < 1e-9);
    assert_true(outside.growth_bytes > 90 * MIB);
}

static void what_the_allocator_keeps_is_its_overhead(void **state)
{
    (void)state;
    RISE(rss, 1);
    RISE(anonymous, 1);
    tell(0, 1);
    fill();
    assert_true(memory.allocator_overhead.valid);
    assert_true(fabs(memory.allocator_overhead.slope_bytes_per_s - MIB) <
                .05 * MIB);
    assert_true(fabs(memory.unexplained.slope_bytes_per_s) < .05 * MIB);
    assert_true(outside.overhead_growth_bytes > .9 * outside.growth_bytes);
    assert_true(outside.overhead_bytes > 100 * MIB);
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_PAGES);
}

static void many_small_holes_are_no_pages(void **state)
{
    (void)state;
    RISE(anonymous, 1);
    tell(0, 1);
    for (int i = 0; i < POINTS; i++) {
        points[i].chunks = 100000; /* of 1.2 KiB */
    }
    fill();
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_SCATTERED);
    /* where every block is known, the pages between them are counted */
    input.heap_pages_bytes = 2 * MIB;
    fill();
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_PAGES);
    input.heap_pages_bytes = 127 * MIB;
    fill();
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_SCATTERED);
}

static void an_allocator_that_knows_its_pages_tells_which(void **state)
{
    (void)state;
    RISE(anonymous, 1);
    tell(0, 1);
    for (int i = 0; i < POINTS; i += 10) {
        points[i].active = points[i].resident - MIB;
    }
    fill();
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_SCATTERED);
    for (int i = 0; i < POINTS; i += 10) {
        points[i].active = points[i].allocated + MIB;
    }
    fill();
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_PAGES);
}

/* Sampled blocks seem to shrink; the allocator knows that they grow. */
static void sampling_makes_no_growth_where_the_allocator_tells(void **state)
{
    (void)state;
    input.sampled_error = 70 * MIB;
    RISE(anonymous, 1);
    fill();
    assert_true(outside.error_bytes == 70 * MIB);
    tell(1, 0);
    fill();
    assert_true(outside.error_bytes == 0);
    /* What the allocator does not tell of, it cannot correct. */
    input.beside_error = 3 * MIB;
    fill();
    assert_true(outside.error_bytes == 3 * MIB);
    assert_true(outside.growth_bytes < MIB);
}

static void looks_tell_what_an_allocator_that_is_silent_keeps(void **state)
{
    (void)state;
    RISE(anonymous, 1);
    RISE(held, .9);
    fill();
    assert_true(outside.has_overhead);
    assert_true(outside.overhead_growth_bytes > .85 * outside.growth_bytes);
    assert_true(memory.allocator_overhead.valid);
    assert_int_equal(outside.free, SEEP_BALANCE_FREE_UNKNOWN);
}

/* Blocks of a library that looks past us: they are in use, whoever has them. */
static void
what_is_in_use_and_was_not_seen_is_no_memory_that_was_freed(void **state)
{
    (void)state;
    RISE(anonymous, 1);
    RISE(held, 1);
    tell(1, 0);
    fill();
    assert_true(outside.has_overhead);
    assert_true(fabs(outside.overhead_growth_bytes) < 10 * MIB);
    assert_true(outside.growth_bytes > 90 * MIB);
    assert_true(memory.allocator_overhead.last_bytes < 15 * MIB);
    assert_true(fabs(memory.unexplained.slope_bytes_per_s - MIB) < .1 * MIB);
    /* headers of as many blocks as there are */
    RISE(heap, .5);
    input.headers_share = 1;
    fill();
    assert_true(outside.growth_bytes < 10 * MIB);
    assert_true(fabs(memory.unexplained.slope_bytes_per_s) < .1 * MIB);
}

/* Who extends the heap besides malloc (sbrk) has it, and not what was freed. */
static void looks_give_an_allocator_no_more_than_was_freed(void **state)
{
    (void)state;
    RISE(anonymous, 1);
    RISE(held, 1);
    input.free_most_bytes = 10 * MIB;
    fill();
    assert_true(outside.overhead_growth_bytes < .5 * outside.growth_bytes);
    assert_true(memory.allocator_overhead.last_bytes <= 14 * MIB);
    assert_true(memory.unexplained.last_bytes > 100 * MIB);
    assert_true(fabs(memory.unexplained.slope_bytes_per_s - MIB) < .1 * MIB);
}

/* It told its figures at the start only, and looks go on. */
static void a_look_goes_on_from_what_the_allocator_told(void **state)
{
    (void)state;
    RISE(anonymous, 1);
    RISE(held, 1);
    points[0].allocated = MIB;
    points[0].resident = 6 * MIB;
    fill();
    assert_true(fabs(memory.allocator_overhead.first_bytes - 6 * MIB) < 1);
    assert_true(fabs(memory.allocator_overhead.last_bytes - 133 * MIB) < 1);
}

static void growth_that_stopped_is_not_going_on(void **state)
{
    (void)state;
    for (int i = 0; i < POINTS; i++) {
        points[i].anonymous += MIB * (i < 90 ? i : 90);
    }
    fill();
    assert_true(outside.p < .001);
    assert_false(outside.going_on);
    assert_true(outside.rise_bytes > 60 * MIB);
}

/* A burst at a third of the run: RSS stays, its blocks are gone. */
static void a_rise_that_stays_without_its_blocks_is_seen(void **state)
{
    (void)state;
    tell(0, 0);
    for (int i = 40; i < POINTS; i++) {
        points[i].anonymous += 50 * MIB;
        points[i].heap = i < 45 ? 50 * MIB : 0;
        points[i].resident += points[i].resident > 0 ? 50 * MIB : 0;
    }
    fill();
    assert_true(outside.p > .001 || !outside.going_on);
    assert_true(fabs(outside.rise_bytes - 50 * MIB) < 1);
    assert_true(outside.tracked_rise_bytes < 1);
    assert_true(outside.overhead_bytes >= 50 * MIB);
}

/* Three moments of eleven fall into a burst, whose blocks need what is kept. */
static void what_is_kept_between_bursts_is_kept(void **state)
{
    (void)state;
    RISE(rss, 1);
    RISE(anonymous, 1);
    for (int i = 0; i < POINTS; i++) {
        points[i].heap = i * 7 % 11 < 3 ? .9 * MIB * i : 0;
    }
    fill();
    assert_true(outside.p < 1e-9);
    assert_true(outside.going_on);
    assert_true(outside.bytes_per_s.low > .8 * MIB);
    assert_true(outside.bytes_per_s.high < 1.2 * MIB);
}

/* Each time they come they need it: nothing is kept in vain. */
static void blocks_that_come_and_go_need_their_peak(void **state)
{
    (void)state;
    for (int i = 40; i < POINTS; i++) {
        points[i].anonymous += 50 * MIB;
        points[i].heap = i % 10 == 0 ? 50 * MIB : 0;
    }
    fill();
    assert_true(fabs(outside.tracked_rise_bytes - 50 * MIB) < 1);
}

/* numpy.zeros: tracked is more than what is resident. */
static void blocks_that_are_not_resident_leave_nothing_below_zero(void **state)
{
    (void)state;
    RISE(heap, 2);
    tell(2, 0);
    fill();
    assert_true(memory.unexplained.last_bytes == 0);
    assert_true(memory.unexplained.slope_bytes_per_s <= 0);
    assert_true(memory.allocator_overhead.last_bytes >= 0);
    assert_true(outside.growth_bytes < 0);
}

static void assert_finite_extent(const struct seep_report_extent *extent)
{
    assert_true(isfinite(extent->first_bytes));
    assert_true(isfinite(extent->last_bytes));
    assert_true(isfinite(extent->slope_bytes_per_s));
    assert_true(isfinite(extent->slope_error) && extent->slope_error >= 0);
}

static void assert_finite(void)
{
    assert_finite_extent(&memory.rss);
    assert_finite_extent(&memory.anonymous);
    assert_finite_extent(&memory.shared);
    assert_finite_extent(&memory.swap);
    assert_finite_extent(&memory.cgroup);
    assert_finite_extent(&memory.tracked);
    assert_finite_extent(&memory.allocator_overhead);
    assert_finite_extent(&memory.unexplained);
    assert_true(memory.unexplained.last_bytes >= 0);
    assert_true(memory.allocator_overhead.last_bytes >= 0);
    assert_true(outside.p >= 0 && outside.p <= 1);
    assert_true(isfinite(outside.growth_bytes));
    assert_true(isfinite(outside.overhead_growth_bytes));
    assert_true(isfinite(outside.overhead_bytes));
    assert_true(isfinite(outside.rise_bytes));
    assert_true(isfinite(outside.tracked_rise_bytes));
    assert_true(isfinite(outside.bytes_per_s.low));
    assert_true(isfinite(outside.bytes_per_s.high));
}

/* What was pinned since lies in a mapping of the device's, as shared. */
static void what_is_pinned_is_the_processes_own(void **state)
{
    struct seep_balance_point moments[3] = {
        {.rss = 300, .anonymous = 100, .own = -1, .pinned = 0},
        {.rss = 300 + 2e7, .anonymous = 100, .own = -1, .pinned = 2e7},
        {.rss = 300 + 5e7, .anonymous = 100, .own = -1, .pinned = 3e7},
    };

    (void)state;
    seep_balance_own_pinned(moments, 3);
    assert_true(moments[0].anonymous == 100);
    assert_true(moments[1].anonymous == 100 + 2e7);
    assert_true(moments[2].anonymous == 100 + 3e7);
}

static void what_is_pinned_in_private_memory_stays_there(void **state)
{
    struct seep_balance_point moments[3] = {
        {.rss = -1, .anonymous = -1, .own = -1, .pinned = 5e7},
        {.rss = 300 + 2e7, .anonymous = 100 + 2e7, .own = -1, .pinned = 2e7},
        {.rss = 300 + 3e7, .anonymous = 100 + 3e7, .own = -1, .pinned = 3e7},
    };

    (void)state;
    seep_balance_own_pinned(moments, 3);
    assert_true(moments[0].anonymous == -1);
    assert_true(moments[1].anonymous == 100 + 2e7);
    assert_true(moments[2].anonymous == 100 + 3e7);
}

/* Figures of a damaged recording, of any size and any mixture. */
static void odd_figures_give_odd_memory_and_no_nan(void **state)
{
    static const double odd[] = {-1, 0, 1, 4096, 1e9, 1.8446744073709552e19};
    uint32_t word = 7;

    (void)state;
    for (int run = 0; run < 3000; run++) {
        begin(NULL);
        for (int i = 0; i < POINTS; i++) {
            double *figures = &points[i].rss;

            for (int j = 0; j < 11; j++) {
                word = word * 1664525 + 1013904223;
                if ((word >> 24) % 4 == 0) {
                    figures[j] = odd[(word >> 16) % 6];
                }
            }
            points[i].t_s = run % 3 == 0 ? 5 : i;
        }
        word = word * 1664525 + 1013904223;
        input.count = run % 5 == 0 ? (word >> 24) % 4 : POINTS;
        input.end_s = run % 7 == 0 ? 0 : run % 11 == 0 ? 1e-9 : POINTS;
        fill();
        assert_finite();
    }
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        WITH(no_moment_is_no_memory),
        WITH(a_process_at_rest_has_no_slope_and_no_growth),
        WITH(what_blocks_hold_is_tracked_and_no_growth_outside),
        WITH(what_nobody_holds_is_unexplained_growth),
        WITH(what_fills_a_known_mapping_is_told_by_its_pages),
        WITH(pages_of_new_mappings_are_not_counted_twice),
        WITH(memory_in_swap_is_not_gone),
        WITH(what_the_allocator_keeps_is_its_overhead),
        WITH(many_small_holes_are_no_pages),
        WITH(an_allocator_that_knows_its_pages_tells_which),
        WITH(sampling_makes_no_growth_where_the_allocator_tells),
        WITH(looks_tell_what_an_allocator_that_is_silent_keeps),
        WITH(what_is_in_use_and_was_not_seen_is_no_memory_that_was_freed),
        WITH(looks_give_an_allocator_no_more_than_was_freed),
        WITH(a_look_goes_on_from_what_the_allocator_told),
        WITH(growth_that_stopped_is_not_going_on),
        WITH(a_rise_that_stays_without_its_blocks_is_seen),
        WITH(what_is_kept_between_bursts_is_kept),
        WITH(blocks_that_come_and_go_need_their_peak),
        WITH(blocks_that_are_not_resident_leave_nothing_below_zero),
        WITH(what_is_pinned_is_the_processes_own),
        WITH(what_is_pinned_in_private_memory_stays_there),
        WITH(odd_figures_give_odd_memory_and_no_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
