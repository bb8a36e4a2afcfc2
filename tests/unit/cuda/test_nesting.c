/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cuda/nesting: which of a thread's calls of the driver are the program's. */
#include "seep_test.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/thread.h"
#include "cuda/hooks.h"
#include "cuda/ledger.h"

static bool enters(uintptr_t frame)
{
    struct seep_cuda_nest nest = seep_cuda_nest_enter(frame);

    seep_cuda_nest_leave(nest);
    return nest.slot != 0;
}

static void a_call_inside_a_call_is_the_drivers(void **state)
{
    struct seep_cuda_nest outer = seep_cuda_nest_enter(0x8000);
    uint64_t nested = seep_cuda_count(SEEP_COUNT_CUDA_NESTED);

    (void)state;
    assert_int_not_equal(outer.slot, 0);
    assert_true(seep_thread.in_driver);
    assert_false(enters(0x7000));
    assert_false(enters(0x6000));
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_NESTED), nested + 2);
    seep_cuda_nest_leave(outer);
    assert_false(seep_thread.in_driver);
    assert_true(enters(0x7000));
}

static void a_call_left_by_a_jump_is_over(void **state)
{
    (void)state;
    assert_int_not_equal(seep_cuda_nest_enter(0x8000).slot, 0);
    assert_true(enters(0x8000));
    assert_int_not_equal(seep_cuda_nest_enter(0x8000).slot, 0);
    assert_true(enters(0x9000));
    assert_false(seep_thread.in_driver);
}

/* A handler jumps out of the driver, and its program goes on further down. */
static void a_call_left_by_a_jump_is_over_further_down_too(void **state)
{
    int calls = 0;

    (void)state;
    assert_int_not_equal(seep_cuda_nest_enter(0x8000).slot, 0);
    while (calls < 1000 && !enters(0x7000)) {
        calls++;
    }
    assert_in_range(calls, 1, 999);
    assert_true(enters(0x7000));
    assert_false(seep_thread.in_driver);
}

/* Where the storage of each thread was. */
static const void *storages[2];

static void *end_inside(void *unused)
{
    storages[0] = &seep_thread;
    seep_cuda_nest_enter(0x8000);
    return unused;
}

static void *come_after(void *is_right)
{
    storages[1] = &seep_thread;
    *(bool *)is_right = enters(0x7000);
    return NULL;
}

static void a_thread_that_ended_inside_leaves_nothing_to_the_next(void **state)
{
    pthread_t thread;
    bool is_right = false;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, end_inside, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(pthread_create(&thread, NULL, come_after, &is_right), 0);
    pthread_join(thread, NULL);
    assert_ptr_equal(storages[0], storages[1]);
    assert_true(is_right);
}

static void *another_thread(void *inside)
{
    *(bool *)inside = !enters(0x7000);
    return NULL;
}

static void each_thread_is_inside_for_itself(void **state)
{
    struct seep_cuda_nest outer = seep_cuda_nest_enter(0x8000);
    pthread_t thread;
    bool was_inside = true;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, another_thread, &was_inside),
                     0);
    pthread_join(thread, NULL);
    assert_false(was_inside);
    seep_cuda_nest_leave(outer);
}

/* Many at once, in windows that meet. */
#define THREADS 64U

static pthread_barrier_t all_inside;

static void *stay_inside(void *is_right)
{
    struct seep_cuda_nest nest = seep_cuda_nest_enter(0x8000);

    pthread_barrier_wait(&all_inside);
    *(bool *)is_right = nest.slot != 0 && !enters(0x7000);
    pthread_barrier_wait(&all_inside);
    seep_cuda_nest_leave(nest);
    return NULL;
}

static void many_threads_are_inside_at_once(void **state)
{
    pthread_t threads[THREADS];
    bool is_right[THREADS];

    (void)state;
    pthread_barrier_init(&all_inside, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        is_right[i] = false;
        assert_int_equal(
            pthread_create(&threads[i], NULL, stay_inside, &is_right[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(is_right[i]);
    }
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_NEST_FULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_inside_a_call_is_the_drivers),
        cmocka_unit_test(a_call_left_by_a_jump_is_over),
        cmocka_unit_test(a_call_left_by_a_jump_is_over_further_down_too),
        cmocka_unit_test(a_thread_that_ended_inside_leaves_nothing_to_the_next),
        cmocka_unit_test(each_thread_is_inside_for_itself),
        cmocka_unit_test(many_threads_are_inside_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
