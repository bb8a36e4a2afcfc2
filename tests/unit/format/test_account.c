/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A site's totals, and which of its sites a recording gives a series.
 *
 * What these tests cannot catch: what a series says (test_brief.c, the tests of
 * the fold).
 */
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "format/account.h"
#include "format/layout.h"
#include "format/series.h"
#include "recording_builder.h"

#define SERIES_AT (UINT64_C(64) << 10) /* of a site, when few are left */

struct fixture {
    struct recording_builder builder;
    const struct seep_view *view;
    struct seep_rec_header *header;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return -1;
    }
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    f->view = &f->builder.view;
    f->header = f->view->header;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    builder_fini(&f->builder);
    free(f);
    return 0;
}

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint32_t new_site(struct fixture *f)
{
    return builder_site(&f->builder, 0, SEEP_SPACE_HEAP);
}

static struct seep_rec_site *entry(const struct fixture *f, uint32_t site)
{
    return &f->view->sites[site];
}

static uint32_t track(const struct fixture *f, uint32_t site)
{
    return seep_word_load(&entry(f, site)->series);
}

static bool is_brief(uint32_t number)
{
    return (number & SEEP_SERIES_IS_BRIEF) != 0;
}

static struct seep_block block(uint32_t site, uint32_t tick, uint64_t size)
{
    return (struct seep_block){
        .address = 0x1000, .size = size, .site = site, .birth_tick = tick};
}

static void come(const struct fixture *f, uint32_t site, uint32_t tick,
                 uint64_t size)
{
    struct seep_block one = block(site, tick, size);

    seep_account_allocated(f->view, &one, 0);
}

static bool go(const struct fixture *f, uint32_t site, uint32_t tick,
               uint64_t size)
{
    return seep_account_freed(f->view, site, tick, 0,
                              (struct seep_weight){size, SEEP_COUNT_ONE});
}

static void leave_no_briefs(struct fixture *f)
{
    seep_word_store(&f->header->brief_count, f->view->brief_capacity);
}

/* So that the pool of series is so many quarters full, and a little. */
static void use_quarters(struct fixture *f, uint32_t quarters)
{
    seep_word_store(&f->header->series_count,
                    quarters == 4
                        ? f->view->series_capacity
                        : f->view->series_capacity * quarters / 4 + 1);
}

static void totals_say_all_of_one_block_and_of_its_free(void **state)
{
    static const struct {
        uint64_t events;
        uint64_t allocated;
        uint64_t freed;
        uint64_t freed_count;
        bool whole;
    } cases[] = {
        {1, 100, 0, 0, true},    {1, 100, 50, 0, false},
        {2, 100, 100, 1, true},  {2, 100, 99, 1, false},
        {2, 100, 100, 0, false}, {2, 100, 0, 0, false},
        {3, 100, 100, 1, false}, {0, 0, 0, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct seep_rec_site site = {
            .event_count = cases[i].events,
            .allocated_bytes = cases[i].allocated,
            .allocated_count_q16 = SEEP_COUNT_ONE,
            .freed_bytes = cases[i].freed,
            .freed_count_q16 = cases[i].freed_count * SEEP_COUNT_ONE,
        };

        assert_int_equal(seep_account_is_whole(&site), cases[i].whole);
    }
}

static void a_site_is_told_from_its_first_to_its_last(void **state)
{
    struct fixture *f = *state;
    uint32_t site = new_site(f);

    come(f, site, 50, 300);
    come(f, site, 40, 100);
    come(f, site, 60, 200);
    go(f, site, 45, 300);
    assert_int_equal(entry(f, site)->first_tick, 40);
    assert_int_equal(entry(f, site)->last_tick, 60);
    assert_int_equal(get(&entry(f, site)->event_count), 4);
    assert_int_equal(get(&entry(f, site)->largest_bytes), 300);
    assert_int_equal(get(&entry(f, site)->peak_bytes), 600);
    assert_int_equal(seep_account_live_bytes(entry(f, site)), 300);
}

/* A brief is taken once the totals do not say all; of no call site a series is,
 * at once. */
static void a_brief_comes_with_what_the_totals_cannot_say(void **state)
{
    struct fixture *f = *state;
    uint32_t passing = new_site(f);
    uint32_t staying = new_site(f);

    come(f, passing, 1, 100);
    assert_true(go(f, passing, 2, 100));
    assert_int_equal(track(f, passing), 0);
    come(f, passing, 3, 100);
    assert_true(is_brief(track(f, passing)));
    come(f, staying, 1, 100);
    assert_int_equal(track(f, staying), 0);
    assert_true(go(f, staying, 2, 40));
    assert_true(is_brief(track(f, staying)));
    come(f, 0, 1, 100);
    assert_true(track(f, 0) != 0 && !is_brief(track(f, 0)));
}

static void a_brief_stays_one_when_a_free_is_taken_back(void **state)
{
    struct fixture *f = *state;
    uint32_t site = new_site(f);
    struct seep_block one = block(site, 1, 100);

    one.in_series = true;
    come(f, site, 1, 100);
    come(f, site, 1, 100);
    go(f, site, 2, 100);
    seep_account_restored(f->view, 2, &one);
    assert_true(is_brief(track(f, site)));
    assert_int_equal(seep_account_live_bytes(entry(f, site)), 200);
}

static void a_brief_stays_one_when_a_block_weighs_more(void **state)
{
    struct fixture *f = *state;
    uint32_t site = new_site(f);

    come(f, site, 1, 100);
    come(f, site, 1, 100);
    seep_account_reweighed(f->view, site, 1,
                           (struct seep_weight){100, SEEP_COUNT_ONE},
                           (struct seep_weight){250, 2 * SEEP_COUNT_ONE});
    assert_true(is_brief(track(f, site)));
    assert_int_equal(seep_account_live_bytes(entry(f, site)), 350);
    /* And it is enough of a series. */
    use_quarters(f, 4);
    come(f, site, 1, SERIES_AT);
    assert_int_equal(get(&f->view->counters[SEEP_COUNT_SERIES_FULL]), 0);
}

/* Nobody keeps a series of it: who takes such a free back must know. */
static void a_free_that_nothing_was_told_of_is_said_so(void **state)
{
    struct fixture *f = *state;
    uint32_t site = new_site(f);
    struct seep_block one = block(site, 1, 100);

    leave_no_briefs(f);
    use_quarters(f, 4);
    come(f, site, 1, 100);
    come(f, site, 1, 100);
    assert_false(go(f, site, 2, 100));
    /* It is an event of more than the totals say: also taken back. */
    seep_account_restored(f->view, 2, &one);
    assert_int_equal(get(&entry(f, site)->event_count), 3);
    assert_false(go(f, site, 2, 100));
    come(f, 0, 1, 100);
    assert_int_equal(track(f, 0), 0);
    /* What is charged to no call site has a series, or nothing. */
    assert_false(go(f, 0, 2, 100));
}

static void few_series_are_for_what_holds_much(void **state)
{
    struct fixture *f = *state;
    uint32_t sites[4];

    leave_no_briefs(f);
    for (uint32_t i = 0; i < 4; i++) {
        sites[i] = new_site(f);
        come(f, sites[i], 0, i == 3 ? SERIES_AT : SERIES_AT - 1);
        use_quarters(f, 4);
        come(f, sites[i], 0, 0);
        assert_int_equal(track(f, sites[i]), 0);
    }
    use_quarters(f, 2);
    come(f, sites[0], 4000, 0);
    assert_int_not_equal(track(f, sites[0]), 0);
    use_quarters(f, 3);
    come(f, sites[1], 16000, 0);
    assert_int_equal(track(f, sites[1]), 0);
    come(f, sites[3], 16000, 0);
    assert_int_not_equal(track(f, sites[3]), 0);
    come(f, 0, 0, 1);
    assert_int_not_equal(track(f, 0), 0);
    assert_int_equal(get(&f->view->counters[SEEP_COUNT_SERIES_FULL]), 0);
}

/* It is counted once of a site, as it comes to hold what is worth a series. */
static void a_site_that_gets_none_is_counted(void **state)
{
    struct fixture *f = *state;
    uint32_t site = new_site(f);
    const _Atomic uint64_t *full = &f->view->counters[SEEP_COUNT_SERIES_FULL];

    leave_no_briefs(f);
    use_quarters(f, 3);
    come(f, site, 0, 100);
    come(f, site, 0, SERIES_AT - 101);
    assert_int_equal(get(full), 0);
    come(f, site, 0, 1); /* there are series, and it is too young for one */
    assert_int_equal(get(full), 0);
    go(f, site, 0, 1);
    use_quarters(f, 4);
    come(f, site, 0, 1);
    assert_int_equal(get(full), 1);
    come(f, site, 0, SERIES_AT);
    assert_int_equal(get(full), 1);
    /* The first event of a site says all, however large. */
    come(f, new_site(f), 0, 2 * SERIES_AT);
    assert_int_equal(get(full), 1);
}

/* What it said in brief is lost with it: it is counted. */
static void a_brief_that_cannot_become_a_series_is_counted(void **state)
{
    struct fixture *f = *state;
    uint32_t site = new_site(f);

    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        come(f, site, 16 * i, 100);
    }
    assert_true(is_brief(track(f, site)));
    use_quarters(f, 4);
    come(f, site, 16 * SEEP_BRIEF_BUCKETS, 100);
    assert_int_equal(track(f, site), 0);
    assert_int_equal(get(&f->view->counters[SEEP_COUNT_SERIES_FULL]), 1);
    assert_int_equal(seep_account_live_bytes(entry(f, site)), 700);
}

/* Of a damaged copy: the last of each is one, and behind it is none. */
static void a_number_of_no_series_is_none(void **state)
{
    struct fixture *f = *state;
    const uint32_t none[] = {
        f->view->series_capacity + 1,
        SEEP_SERIES_IS_BRIEF,
        SEEP_SERIES_IS_BRIEF | (f->view->brief_capacity + 1),
        UINT32_MAX,
        SEEP_SERIES_IS_BRIEF - 1,
    };
    uint32_t site = new_site(f);
    size_t end = (size_t)((char *)entry(f, site + 1) - (char *)f->header);
    size_t size = f->builder.size_bytes;
    char *saved = malloc(size);

    assert_non_null(saved);
    memcpy(saved, f->builder.bytes, size);
    for (uint32_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        seep_word_store(&entry(f, site)->series, none[i]);
        come(f, site, 1, 100);
        go(f, site, 2, 100);
        assert_memory_equal(saved + end, (char *)f->builder.bytes + end,
                            size - end);
    }
    free(saved);
    seep_word_store(&entry(f, site)->series, f->view->series_capacity);
    come(f, site, 1, 100);
    assert_int_equal(get(&f->view->series[f->view->series_capacity - 1]
                              .buckets[0]
                              .allocated_bytes),
                     100);
    seep_word_store(&entry(f, site)->series,
                    SEEP_SERIES_IS_BRIEF | f->view->brief_capacity);
    come(f, site, 1, 100);
    assert_int_equal(get(&f->view->briefs[f->view->brief_capacity - 1]
                              .buckets[0]
                              .allocated_bytes),
                     100);
}

/* A site with a series, whose last event was at tick 100. */
static uint32_t with_series(struct fixture *f)
{
    uint32_t site = new_site(f);

    leave_no_briefs(f);
    come(f, site, 99, 1000);
    come(f, site, 100, 1000);
    assert_true(track(f, site) != 0 && !is_brief(track(f, site)));
    return site;
}

/* A block that came and went in one batch, on the two sides of the moment of
 * exit(), or behind it: as if its events had come one by one. */
static void a_block_that_passes_the_end_is_told_as_two_events(void **state)
{
    static const uint32_t ticks[][2] = {{101, 103}, {102, 103}, {103, 103}};
    struct fixture *f = *state;
    uint32_t one[3];
    uint32_t two[3];

    for (uint32_t i = 0; i < 3; i++) {
        one[i] = with_series(f);
        two[i] = with_series(f);
    }
    seep_word_store(&f->header->final_tick, 102);
    for (uint32_t i = 0; i < 3; i++) {
        struct seep_block block_one = block(one[i], ticks[i][0], 50);
        struct seep_rec_site *a = entry(f, one[i]);
        struct seep_rec_site *b = entry(f, two[i]);

        seep_account_passed(f->view, &block_one, ticks[i][1], 0);
        come(f, two[i], ticks[i][0], 50);
        seep_account_freed(f->view, two[i], ticks[i][1], ticks[i][0],
                           (struct seep_weight){50, SEEP_COUNT_ONE});
        assert_int_equal(seep_word_load(&a->edge_tick), 102);
        assert_int_equal(seep_word_load(&b->edge_tick), 102);
        assert_int_equal(get(&a->edge_allocated_bytes),
                         get(&b->edge_allocated_bytes));
        assert_int_equal(get(&a->edge_freed_bytes), get(&b->edge_freed_bytes));
        assert_memory_equal(f->view->series[track(f, one[i]) - 1].eras,
                            f->view->series[track(f, two[i]) - 1].eras,
                            sizeof(f->view->series[0].eras));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        cmocka_unit_test(totals_say_all_of_one_block_and_of_its_free),
        WITH(a_site_is_told_from_its_first_to_its_last),
        WITH(a_brief_comes_with_what_the_totals_cannot_say),
        WITH(a_brief_stays_one_when_a_free_is_taken_back),
        WITH(a_brief_stays_one_when_a_block_weighs_more),
        WITH(a_free_that_nothing_was_told_of_is_said_so),
        WITH(few_series_are_for_what_holds_much),
        WITH(a_site_that_gets_none_is_counted),
        WITH(a_brief_that_cannot_become_a_series_is_counted),
        WITH(a_number_of_no_series_is_none),
        WITH(a_block_that_passes_the_end_is_told_as_two_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
