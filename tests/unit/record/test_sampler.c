/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sampler: blocks are chosen with the probability that weights assume. */
#include <math.h>
#include <stdbool.h>

#include "seep_test.h"

#include "format/view.h"
#include "record/sampler.h"

#define MEAN_LOG2 16U

/* Share of blocks of @size that are chosen, among others of another size. */
static double chosen_share(uint64_t size, uint64_t beside, uint32_t rounds)
{
    struct seep_thread thread = {0};
    uint32_t chosen = 0;

    seep_sampler_seed(&thread, 12345 + size);
    seep_sampler_draw(&thread, MEAN_LOG2);
    for (uint32_t i = 0; i < rounds; i++) {
        thread.countdown_bytes -= (int64_t)size;
        if (thread.countdown_bytes <= 0) {
            chosen++;
            seep_sampler_draw(&thread, MEAN_LOG2);
        }
        thread.countdown_bytes -= (int64_t)beside;
        if (thread.countdown_bytes <= 0) {
            seep_sampler_draw(&thread, MEAN_LOG2);
        }
    }
    return (double)chosen / rounds;
}

static void blocks_are_chosen_with_their_probability(void **state)
{
    static const uint64_t sizes[] = {512, 4096, 65536, 200000};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        uint32_t rounds = 400000;
        double p = seep_weight_probability(sizes[i], MEAN_LOG2);
        double sigma = sqrt(p * (1.0 - p) / rounds);

        assert_true(fabs(chosen_share(sizes[i], 0, rounds) - p) < 4.5 * sigma);
        assert_true(fabs(chosen_share(sizes[i], 3000, rounds) - p) <
                    4.5 * sigma);
    }
}

static void exact_mode_chooses_every_block(void **state)
{
    struct seep_thread thread = {0};

    (void)state;
    seep_sampler_seed(&thread, 1);
    seep_sampler_draw(&thread, 0);
    assert_true(thread.countdown_bytes <= 0);
}

static void threads_draw_different_thresholds(void **state)
{
    struct seep_thread one = {0};
    struct seep_thread two = {0};

    (void)state;
    seep_sampler_seed(&one, 1);
    seep_sampler_seed(&two, 2);
    seep_sampler_draw(&one, 19);
    seep_sampler_draw(&two, 19);
    assert_true(one.countdown_bytes != two.countdown_bytes);
    assert_true(one.countdown_bytes > 0);
}

/* By them one in 64 of the events is measured, which stands for the rest. */
static void an_events_bits_are_even_and_not_those_of_its_threshold(void **state)
{
    const double rounds = 640000;
    const double sigma = sqrt(rounds / 64);
    struct seep_thread thread = {0};
    double drawn = 0;
    double all = 0;
    double hits = 0;

    (void)state;
    seep_sampler_seed(&thread, 1);
    for (uint32_t i = 0; i < (uint32_t)rounds; i++) {
        bool hit = seep_sampler_bits(&thread) % 64 == 0;

        seep_sampler_draw(&thread, 19);
        all += (double)thread.countdown_bytes;
        hits += hit;
        drawn += hit ? (double)thread.countdown_bytes : 0;
    }
    assert_true(fabs(hits - rounds / 64) < 4.5 * sigma);
    /* An exponential's standard deviation is its mean. */
    assert_true(fabs(drawn / hits / (all / rounds) - 1) < 4.5 / sqrt(hits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_chosen_with_their_probability),
        cmocka_unit_test(exact_mode_chooses_every_block),
        cmocka_unit_test(threads_draw_different_thresholds),
        cmocka_unit_test(
            an_events_bits_are_even_and_not_those_of_its_threshold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
