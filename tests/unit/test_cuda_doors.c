/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda/resolve and proc_address: which variant a look-up means, and what the
 * caller gets for it. The table and the driver are made up.
 */
#include "seep_test.h"

#include <stdlib.h>

#include "capture/objects.h"
#include "cuda/driver.h"
#include "cuda/next.h"
#include "cuda/proc_address.h"

#define VARIANTS 6

static void wrap_old(void)
{
}

static void wrap_new(void)
{
    wrap_old();
}

static void wrap_plain(void)
{
    wrap_new();
}

static void wrap_twin(void)
{
    wrap_plain();
}

static void wrap_first(void)
{
    wrap_twin();
}

static void wrap_second(void)
{
    wrap_first();
}

static const struct seep_cuda_variant variants[VARIANTS] = {
    {"cuThing", "cuThing", 2000, false, wrap_old},
    {"cuThing_v2", "cuThing", 3020, false, wrap_new},
    {"cuLater", "cuLater", 11020, false, wrap_plain},
    {"cuLater_ptsz", "cuLater", 11020, true, wrap_twin},
    {"cuGet", "cuGet", 11030, false, wrap_first},
    {"cuGet_v2", "cuGet", 12000, false, wrap_second},
};

static _Atomic uintptr_t real[VARIANTS];

static const struct seep_cuda_table table = {variants, real, VARIANTS};

/* Entry points of the driver that this program is. */
static char driver[64];

static uintptr_t entry(size_t index)
{
    return (uintptr_t)&driver[index];
}

static uintptr_t wrapper(size_t index)
{
    return (uintptr_t)variants[index].wrapper;
}

static int forget_targets(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        atomic_store_explicit(&real[i], 0, memory_order_relaxed);
    }
    return 0;
}

static uintptr_t target(size_t index)
{
    return atomic_load_explicit(&real[index], memory_order_relaxed);
}

static void a_name_is_found_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_int_equal(seep_cuda_find_exact(&table, "cuThing"), 0);
    assert_int_equal(seep_cuda_find_exact(&table, "cuThing_v2"), 1);
    assert_int_equal(seep_cuda_find_exact(&table, "cuLater_ptsz"), 3);
    assert_true(seep_cuda_find_exact(&table, "cuThin") == SEEP_CUDA_NONE);
    assert_true(seep_cuda_find_exact(&table, "cuThing_v3") == SEEP_CUDA_NONE);
    assert_true(seep_cuda_find_exact(&table, "") == SEEP_CUDA_NONE);
}

static void a_base_name_means_the_newest_that_the_caller_knows(void **state)
{
    (void)state;
    assert_true(seep_cuda_find_version(&table, "cuThing", 1000, 0) ==
                SEEP_CUDA_NONE);
    assert_int_equal(seep_cuda_find_version(&table, "cuThing", 2000, 0), 0);
    assert_int_equal(seep_cuda_find_version(&table, "cuThing", 3010, 0), 0);
    assert_int_equal(seep_cuda_find_version(&table, "cuThing", 3020, 0), 1);
    assert_int_equal(seep_cuda_find_version(&table, "cuThing", 13000, 0), 1);
    assert_int_equal(seep_cuda_find_version(&table, "cuGet", 11030, 0), 4);
    assert_int_equal(seep_cuda_find_version(&table, "cuGet", 12000, 0), 5);
    assert_true(seep_cuda_find_version(&table, "cuThing_v2", 13000, 0) ==
                SEEP_CUDA_NONE);
    assert_true(seep_cuda_find_version(&table, "", 0, 0) == SEEP_CUDA_NONE);
}

static void a_stream_of_the_threads_own_means_the_twin(void **state)
{
    (void)state;
    assert_int_equal(seep_cuda_find_version(&table, "cuLater", 12000, 0), 2);
    assert_int_equal(seep_cuda_find_version(&table, "cuLater", 12000, 1), 2);
    assert_int_equal(seep_cuda_find_version(&table, "cuLater", 12000, 2), 3);
    assert_int_equal(seep_cuda_find_version(&table, "cuThing", 12000, 2), 1);
    assert_true(seep_cuda_find_version(&table, "cuLater", 11000, 2) ==
                SEEP_CUDA_NONE);
}

static void a_wrapper_is_handed_out_with_its_target_known(void **state)
{
    (void)state;
    assert_true(seep_cuda_substitute(&table, 1, entry(1)) == wrapper(1));
    assert_true(target(1) == entry(1));
    assert_true(target(0) == 0);
}

static void another_address_of_the_same_driver_is_the_same_entry(void **state)
{
    (void)state;
    seep_cuda_substitute(&table, 1, entry(1));
    assert_true(seep_cuda_substitute(&table, 1, entry(7)) == wrapper(1));
    assert_true(target(1) == entry(1));
}

static void what_another_library_gives_is_passed_on(void **state)
{
    uint64_t before = seep_cuda_door_count(SEEP_CUDA_OTHER_DRIVER);
    uintptr_t other = seep_cuda_next("qsort");

    (void)state;
    assert_true(other != 0);
    seep_cuda_substitute(&table, 1, entry(1));
    assert_true(seep_cuda_substitute(&table, 1, other) == other);
    assert_true(target(1) == entry(1));
    assert_int_equal(seep_cuda_door_count(SEEP_CUDA_OTHER_DRIVER), before + 1);
}

static void a_wrapper_is_never_its_own_target(void **state)
{
    (void)state;
    assert_true(seep_cuda_substitute(&table, 1, wrapper(1)) == wrapper(1));
    assert_true(target(1) == 0);
}

static void a_target_that_was_unloaded_is_forgotten(void **state)
{
    (void)state;
    seep_cuda_substitute(&table, 0, entry(0));
    seep_cuda_substitute(&table, 1, 4096);
    seep_cuda_forget_unloaded(&table);
    assert_true(target(0) == entry(0));
    assert_true(target(1) == 0);
    assert_true(seep_cuda_substitute(&table, 1, entry(1)) == wrapper(1));
}

static uintptr_t answers_at;

static uintptr_t find_question(void *how, const char *name)
{
    (void)how;
    (void)name;
    return answers_at;
}

static void a_driver_that_was_unloaded_is_asked_no_more(void **state)
{
    (void)state;
    answers_at = entry(0);
    seep_cuda_driver_learn(find_question, NULL);
    seep_cuda_forget_unloaded(&table);
    assert_true(seep_cuda_driver_function(SEEP_CUDA_ASK_cuCtxGetDevice) ==
                entry(0));
    seep_cuda_driver_forget();
    answers_at = 4096;
    seep_cuda_driver_learn(find_question, NULL);
    seep_cuda_forget_unloaded(&table);
    assert_int_equal(seep_cuda_driver_device(), -1);
    answers_at = 0;
    seep_cuda_driver_learn(find_question, NULL);
    assert_int_equal(seep_cuda_driver_device(), -1);
    seep_cuda_driver_forget();
}

static size_t asked;
static uintptr_t answer;

static uintptr_t ask(const void *how, const char *name, int version,
                     uint64_t flags)
{
    assert_ptr_equal(how, driver);
    assert_string_equal(name, "cuThing");
    assert_int_equal(version, SEEP_CUDA_NEWEST);
    assert_int_equal(flags, 1);
    asked++;
    return answer;
}

static uintptr_t exchange(const char *name, int version, uint64_t flags,
                          uintptr_t found)
{
    return seep_cuda_exchange(&table, name, version, flags, found, ask, driver);
}

static void the_variant_that_was_given_is_exchanged(void **state)
{
    (void)state;
    asked = 0;
    assert_true(exchange("cuThing", 2000, 0, entry(0)) == wrapper(0));
    assert_true(exchange("cuThing", 3020, 0, entry(1)) == wrapper(1));
    assert_true(exchange("cuLater", 12000, 2, entry(3)) == wrapper(3));
    assert_true(target(0) == entry(0));
    assert_true(target(1) == entry(1));
    assert_true(target(2) == 0);
    assert_true(target(3) == entry(3));
    assert_int_equal(asked, 0);
}

static void what_is_not_wrapped_or_not_there_is_passed_on(void **state)
{
    (void)state;
    assert_true(exchange("", 0, 0, entry(0)) == entry(0));
    assert_true(exchange("cuOther", 13000, 0, entry(0)) == entry(0));
    assert_true(exchange("cuThing", 3020, 0, 0) == 0);
    assert_true(exchange("cuThing", 1000, 0, entry(0)) == entry(0));
    assert_true(target(0) == 0);
}

static void flags_of_tomorrow_are_passed_on(void **state)
{
    uint64_t before = seep_cuda_door_count(SEEP_CUDA_UNKNOWN_VARIANT);

    (void)state;
    assert_true(exchange("cuThing", 3020, 4, entry(1)) == entry(1));
    assert_true(target(1) == 0);
    assert_int_equal(seep_cuda_door_count(SEEP_CUDA_UNKNOWN_VARIANT),
                     before + 1);
}

static void a_version_of_tomorrow_is_exchanged_if_nothing_is_new(void **state)
{
    (void)state;
    asked = 0;
    answer = entry(1);
    assert_true(exchange("cuThing", SEEP_CUDA_NEWEST + 1, 1, entry(1)) ==
                wrapper(1));
    assert_int_equal(asked, 1);
}

static void a_variant_of_tomorrow_is_passed_on(void **state)
{
    (void)state;
    answer = entry(1);
    assert_true(exchange("cuThing", SEEP_CUDA_NEWEST + 1, 1, entry(9)) ==
                entry(9));
    assert_true(target(1) == 0);
}

static void libc_is_found_without_asking_the_loader(void **state)
{
    (void)state;
    assert_true(seep_cuda_next("qsort") == (uintptr_t)qsort);
    assert_true(seep_cuda_next("no_such_function") == 0);
}

#define TEST(name) cmocka_unit_test_setup(name, forget_targets)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_found_whole_or_not_at_all),
        TEST(a_base_name_means_the_newest_that_the_caller_knows),
        TEST(a_stream_of_the_threads_own_means_the_twin),
        TEST(a_wrapper_is_handed_out_with_its_target_known),
        TEST(another_address_of_the_same_driver_is_the_same_entry),
        TEST(what_another_library_gives_is_passed_on),
        TEST(a_wrapper_is_never_its_own_target),
        TEST(a_target_that_was_unloaded_is_forgotten),
        TEST(a_driver_that_was_unloaded_is_asked_no_more),
        TEST(the_variant_that_was_given_is_exchanged),
        TEST(what_is_not_wrapped_or_not_there_is_passed_on),
        TEST(flags_of_tomorrow_are_passed_on),
        TEST(a_version_of_tomorrow_is_exchanged_if_nothing_is_new),
        TEST(a_variant_of_tomorrow_is_passed_on),
        TEST(libc_is_found_without_asking_the_loader),
    };

    seep_objects_init();
    return cmocka_run_group_tests_name("cuda doors", tests, NULL, NULL);
}
