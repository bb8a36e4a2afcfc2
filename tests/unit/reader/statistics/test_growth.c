/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whole verdicts on sites that can be checked by hand, and what each kind of
 * behaviour is called. leak200 by hand: 20 blocks of 1000 bytes a window give
 * 20000 a window; its error is 1.96 sqrt(120 * 1000^2) / 6 = 3578.45.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reader/statistics/parts.h"
#include "test_growth_site.h"

struct judged {
    struct seep_growth growth;
    struct seep_growth_detail detail;
};

/* Birth and death of block number i of 200. */
typedef struct site_block (*site_rule)(double i);

static struct judged judge(site_rule rule, size_t count)
{
    static struct site_block blocks[SITE_BLOCKS_MAX];
    static struct site_input site;
    struct judged judged;

    for (size_t i = 0; i < count; i++) {
        blocks[i] = rule((double)i);
        blocks[i].weight = 1000;
    }
    site_build(blocks, count, &site);
    seep_growth_explain(&site.input, &judged.growth, &judged.detail);
    return judged;
}

static void assert_near(double got, double want)
{
    /* The published vectors have six digits after the point. */
    if (!(fabs(got - want) <= 6e-7 + 1e-9 * fabs(want))) {
        print_error("%.9g instead of %.9g\n", got, want);
        fail();
    }
}

static void assert_interval(struct seep_interval rate, double estimate,
                            double low, double high)
{
    assert_near(rate.estimate / 10, estimate);
    assert_near(rate.low / 10, low);
    assert_near(rate.high / 10, high);
}

static void assert_counts(const struct seep_growth *growth,
                          const int counts[SEEP_GROWTH_WINDOWS], int onset)
{
    for (int i = 0; i < SEEP_GROWTH_WINDOWS; i++) {
        assert_int_equal((int)growth->window_count[i], counts[i]);
        assert_near(growth->window_bytes[i], 1000.0 * counts[i]);
    }
    assert_int_equal(growth->onset, onset);
}

static void assert_class(const struct seep_growth *growth,
                         enum seep_class class)
{
    assert_string_equal(seep_class_name(growth->class), seep_class_name(class));
    assert_non_null(growth->reason);
}

/* A class that stands on no rate has none to show. */
static void assert_no_rate(const struct seep_growth *growth)
{
    assert_near(growth->rate.estimate, 0);
    assert_near(growth->rate.low, 0);
    assert_near(growth->rate.high, 0);
    assert_near(growth->p, 1);
    assert_near(growth->confidence, 0);
}

struct flow {
    double half_ratio, net_growth, tail, guard_first, guard_last;
    double exponent, exponent_error;
};

static void assert_flow(const struct judged *judged, struct flow want)
{
    const struct seep_growth_detail *detail = &judged->detail;

    assert_near(detail->half_ratio, want.half_ratio);
    assert_near(detail->net_growth, want.net_growth);
    assert_near(detail->tail_growth, want.tail);
    assert_near(detail->guard_rate[0], want.guard_first);
    assert_near(detail->guard_rate[1], want.guard_last);
    assert_near(detail->exponent, want.exponent);
    assert_near(detail->exponent_error, want.exponent_error);
    assert_near(detail->died_share, 0);
    /* 1 / 16!: every block of the trend test above those before it */
    assert_true(fabs(judged->growth.p / 4.779477332387385e-14 - 1) < 1e-9);
}

static struct site_block kept(double i)
{
    return (struct site_block){(i + .5) / 200, SITE_NEVER, 0};
}

static void blocks_never_freed_are_a_leak(void **state)
{
    const int counts[] = {20, 20, 20, 20, 20, 20, 20, 20, 20, 20};
    struct judged judged = judge(kept, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_LEAK);
    assert_interval(judged.growth.rate, 20000, 16421.545958, 23578.454042);
    assert_flow(&judged, (struct flow){1, 1.00625, 1, 1, 1, 0, .160262});
    assert_near(judged.growth.confidence, .999);
    assert_counts(&judged.growth, counts, 2);
    assert_true(judged.growth.tested);
    assert_near(judged.growth.mature_count, 120);
}

static struct site_block evicted(double i)
{
    return (struct site_block){(i + .5) / 200, (i + .5) / 200 + .1, 0};
}

static void a_cache_that_evicts_is_steady(void **state)
{
    const int counts[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 20};
    struct judged judged = judge(evicted, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_STEADY);
    assert_no_rate(&judged.growth);
    assert_counts(&judged.growth, counts, 9);
    assert_false(judged.growth.tested);
}

static struct site_block at_once(double i)
{
    return (struct site_block){.5 + i * 1e-5, SITE_NEVER, 0};
}

static void what_is_allocated_at_one_moment_is_a_step(void **state)
{
    const int counts[] = {0, 0, 0, 0, 0, 200, 0, 0, 0, 0};
    struct judged judged = judge(at_once, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_STEP);
    assert_no_rate(&judged.growth);
    assert_counts(&judged.growth, counts, 9);
}

static struct site_block stopped(double i)
{
    return (struct site_block){.7 * (i + .5) / 200, SITE_NEVER, 0};
}

static void growth_that_stopped_is_a_plateau(void **state)
{
    const int counts[] = {29, 28, 29, 28, 29, 28, 29, 0, 0, 0};
    struct judged judged = judge(stopped, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_PLATEAU);
    assert_no_rate(&judged.growth);
    assert_counts(&judged.growth, counts, 8);
}

static struct site_block warming(double i)
{
    return (struct site_block){.02 * (pow(51, (i + .5) / 200) - 1), SITE_NEVER,
                               0};
}

static void a_cache_that_fills_ever_slower_is_warming(void **state)
{
    const int counts[] = {91, 31, 19, 14, 11, 9, 7, 7, 6, 5};
    struct judged judged = judge(warming, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_WARMING);
    assert_interval(judged.growth.rate, 11166.666667, 6269.753368,
                    16063.579965);
    assert_flow(&judged, (struct flow){.522727, 1.097015, .537313, .537313,
                                       .447761, -.95735, .250373});
    assert_near(judged.growth.confidence, .033874);
    assert_counts(&judged.growth, counts, 2);
}

static struct site_block late(double i)
{
    return (struct site_block){.3 + .7 * (i + .5) / 200, SITE_NEVER, 0};
}

static void a_leak_may_begin_in_mid_run(void **state)
{
    const int counts[] = {0, 0, 0, 29, 28, 29, 28, 29, 28, 29};
    struct judged judged = judge(late, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_LEAK);
    assert_interval(judged.growth.rate, 28600, 23912.361789, 33287.638211);
    assert_flow(&judged, (struct flow){1, .889111, 1.013986, .979021, 1.013986,
                                       -.003548, .128107});
    assert_near(judged.growth.confidence, .999);
    assert_counts(&judged.growth, counts, 3);
}

static struct site_block collected(double i)
{
    double birth = (i + .5) / 200;

    return (struct site_block){birth, (floor(birth / .15) + 1) * .15, 0};
}

static void what_a_collector_frees_is_a_sawtooth(void **state)
{
    const int counts[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 20};
    struct judged judged = judge(collected, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_SAWTOOTH);
    assert_no_rate(&judged.growth);
    assert_counts(&judged.growth, counts, 9);
}

static struct site_block long_lived(double i)
{
    return (struct site_block){(i + .5) / 200, (i + .5) / 200 + .3, 0};
}

static void long_lives_that_end_are_steady(void **state)
{
    const int counts[] = {0, 0, 0, 0, 0, 0, 0, 20, 20, 20};
    struct judged judged = judge(long_lived, 200);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_STEADY);
    assert_no_rate(&judged.growth);
    assert_counts(&judged.growth, counts, 9);
}

static struct site_block one_of_eight(double i)
{
    return (struct site_block){(i + .5) / 8, SITE_NEVER, 0};
}

static void eight_blocks_are_too_few_to_tell(void **state)
{
    const int counts[] = {1, 1, 0, 1, 1, 1, 1, 0, 1, 1};
    struct judged judged = judge(one_of_eight, 8);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_INSUFFICIENT);
    assert_interval(judged.growth.rate, 666.666667, 13.333333, 1320);
    assert_near(judged.growth.p, 1);
    assert_near(judged.growth.confidence, 0);
    assert_counts(&judged.growth, counts, 2);
    assert_false(judged.growth.tested);
}

static struct site_block one_of_four(double i)
{
    return (struct site_block){(i + .5) / 4, SITE_NEVER, 0};
}

static void four_blocks_that_stay_are_a_plateau(void **state)
{
    const int counts[] = {0, 1, 0, 1, 0, 0, 1, 0, 1, 0};
    struct judged judged = judge(one_of_four, 4);

    (void)state;
    assert_class(&judged.growth, SEEP_CLASS_PLATEAU);
    assert_no_rate(&judged.growth);
    assert_counts(&judged.growth, counts, 9);
}

/* Ever larger reallocs of one block leave one survivor, born last. */
static void judge_reallocs(double step, size_t others,
                           struct seep_growth *ret_growth)
{
    static struct site_block blocks[SITE_BLOCKS_MAX];
    static struct site_input site;
    const size_t count = 100;

    for (size_t i = 0; i < count; i++) {
        double birth = ((double)i + .5) / (double)count;
        bool last = i + 1 == count;
        double size = step > 0 ? 1000 * (1 + step * (double)i)
                               : ldexp(1000, (int)(i / 10));
        blocks[i] = (struct site_block){
            birth, last ? SITE_NEVER : birth + 1 / (double)count, size};
    }
    for (size_t i = 0; i < others; i++) {
        blocks[count + i] = (struct site_block){.01, SITE_NEVER, 1};
    }
    site_build(blocks, count + others, &site);
    seep_growth_analyse(&site.input, ret_growth);
}

static void a_block_reallocated_ever_larger_is_a_leak(void **state)
{
    struct seep_growth growth;

    (void)state;
    judge_reallocs(1, 3, &growth);
    assert_class(&growth, SEEP_CLASS_LEAK);
    assert_true(growth.growing_block);
    assert_near(growth.rate.low, growth.rate.estimate / 2);
    assert_near(growth.rate.high, growth.rate.estimate * 1.5);
    assert_true(growth.rate.estimate > 95e3 && growth.rate.estimate < 105e3);
    assert_near(growth.p, 1e-6);
    assert_near(growth.confidence, .9);
}

static void five_live_blocks_are_no_growing_block(void **state)
{
    struct seep_growth growth;

    (void)state;
    judge_reallocs(1, 4, &growth);
    assert_false(growth.growing_block);
    assert_int_not_equal(growth.class, SEEP_CLASS_LEAK);
}

/* A buffer that doubles has a bound sooner than a run has an end. */
static void a_block_that_doubles_is_no_growing_block(void **state)
{
    struct seep_growth growth;

    (void)state;
    judge_reallocs(0, 0, &growth);
    assert_false(growth.growing_block);
    assert_int_not_equal(growth.class, SEEP_CLASS_LEAK);
}

static void every_class_has_a_name_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(seep_class_name(SEEP_CLASS_LEAK), "leak");
    assert_string_equal(seep_class_name(SEEP_CLASS_MINOR), "minor");
    assert_string_equal(seep_class_name(SEEP_CLASS_COUNT), "insufficient-data");
    assert_string_equal(seep_class_name((enum seep_class) - 1),
                        "insufficient-data");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_never_freed_are_a_leak),
        cmocka_unit_test(a_cache_that_evicts_is_steady),
        cmocka_unit_test(what_is_allocated_at_one_moment_is_a_step),
        cmocka_unit_test(growth_that_stopped_is_a_plateau),
        cmocka_unit_test(a_cache_that_fills_ever_slower_is_warming),
        cmocka_unit_test(a_leak_may_begin_in_mid_run),
        cmocka_unit_test(what_a_collector_frees_is_a_sawtooth),
        cmocka_unit_test(long_lives_that_end_are_steady),
        cmocka_unit_test(eight_blocks_are_too_few_to_tell),
        cmocka_unit_test(four_blocks_that_stay_are_a_plateau),
        cmocka_unit_test(a_block_reallocated_ever_larger_is_a_leak),
        cmocka_unit_test(five_live_blocks_are_no_growing_block),
        cmocka_unit_test(a_block_that_doubles_is_no_growing_block),
        cmocka_unit_test(every_class_has_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
