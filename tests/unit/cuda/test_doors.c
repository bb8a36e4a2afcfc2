/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda/resolve and proc_address: which variant a look-up means, and what the
 * caller gets for it. The driver is made up.
 */
#include "seep_test.h"

#include <search.h>
#include <stdlib.h>

#include "capture/native/elf.h"
#include "cuda/driver.h"
#include "cuda/ledger.h"
#include "cuda/resolve.h"

/* Of one base two versions, of another a twin, and the driver's own look-up. */
enum {
    OLD = SEEP_CUDA_ID_cuMemHostRegister,    /* 4000 */
    NEW = SEEP_CUDA_ID_cuMemHostRegister_v2, /* 6050 */
    PLAIN = SEEP_CUDA_ID_cuMemAllocAsync,    /* 11020 */
    TWIN = SEEP_CUDA_ID_cuMemAllocAsync_ptsz,
    FIRST = SEEP_CUDA_ID_cuGetProcAddress,     /* 11030 */
    SECOND = SEEP_CUDA_ID_cuGetProcAddress_v2, /* 12000 */
};
#define BASE "cuMemHostRegister"
#define TWINNED "cuMemAllocAsync"
#define LOOK_UP "cuGetProcAddress"

/* Entry points of the driver that this program is. */
static char driver[SEEP_CUDA_IDS];

static uintptr_t entry(size_t index)
{
    return (uintptr_t)&driver[index];
}

static uintptr_t wrapper(size_t index)
{
    return (uintptr_t)seep_cuda_variants[index].wrapper;
}

static int forget_targets(void **state)
{
    (void)state;
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        atomic_store_explicit(&seep_cuda_targets[i], 0, memory_order_relaxed);
    }
    return 0;
}

static uintptr_t target(size_t index)
{
    return atomic_load_explicit(&seep_cuda_targets[index],
                                memory_order_relaxed);
}

static void a_name_is_found_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_int_equal(seep_cuda_find_exact(BASE), OLD);
    assert_int_equal(seep_cuda_find_exact(BASE "_v2"), NEW);
    assert_int_equal(seep_cuda_find_exact(TWINNED "_ptsz"), TWIN);
    assert_true(seep_cuda_find_exact("cuMemHostRegiste") == SEEP_CUDA_NONE);
    assert_true(seep_cuda_find_exact(BASE "_v3") == SEEP_CUDA_NONE);
    assert_true(seep_cuda_find_exact("") == SEEP_CUDA_NONE);
}

static void a_base_name_means_the_newest_that_the_caller_knows(void **state)
{
    (void)state;
    assert_true(seep_cuda_find_version(BASE, 3000, 0) == SEEP_CUDA_NONE);
    assert_int_equal(seep_cuda_find_version(BASE, 4000, 0), OLD);
    assert_int_equal(seep_cuda_find_version(BASE, 6040, 0), OLD);
    assert_int_equal(seep_cuda_find_version(BASE, 6050, 0), NEW);
    assert_int_equal(seep_cuda_find_version(BASE, 13000, 0), NEW);
    assert_int_equal(seep_cuda_find_version(LOOK_UP, 11030, 0), FIRST);
    assert_int_equal(seep_cuda_find_version(LOOK_UP, 12000, 0), SECOND);
    assert_true(seep_cuda_find_version(BASE "_v2", 13000, 0) == SEEP_CUDA_NONE);
    assert_true(seep_cuda_find_version("", 0, 0) == SEEP_CUDA_NONE);
}

static void a_stream_of_the_threads_own_means_the_twin(void **state)
{
    (void)state;
    assert_int_equal(seep_cuda_find_version(TWINNED, 12000, 0), PLAIN);
    assert_int_equal(seep_cuda_find_version(TWINNED, 12000, 1), PLAIN);
    assert_int_equal(seep_cuda_find_version(TWINNED, 12000, 2), TWIN);
    assert_int_equal(seep_cuda_find_version(BASE, 12000, 2), NEW);
    assert_true(seep_cuda_find_version(TWINNED, 11000, 2) == SEEP_CUDA_NONE);
}

static void a_wrapper_is_handed_out_with_its_target_known(void **state)
{
    (void)state;
    assert_true(seep_cuda_substitute(NEW, entry(NEW)) == wrapper(NEW));
    assert_true(target(NEW) == entry(NEW));
    assert_true(target(OLD) == 0);
}

static void another_address_of_the_same_driver_is_the_same_entry(void **state)
{
    (void)state;
    seep_cuda_substitute(NEW, entry(NEW));
    assert_true(seep_cuda_substitute(NEW, entry(7)) == wrapper(NEW));
    assert_true(target(NEW) == entry(NEW));
}

static void what_another_library_gives_is_passed_on(void **state)
{
    uint64_t before = seep_cuda_count(SEEP_COUNT_CUDA_OTHER_DRIVER);
    uintptr_t other = seep_cuda_next("qsort");

    (void)state;
    assert_true(other != 0);
    seep_cuda_substitute(NEW, entry(NEW));
    assert_true(seep_cuda_substitute(NEW, other) == other);
    assert_true(target(NEW) == entry(NEW));
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_OTHER_DRIVER), before + 1);
}

static void a_wrapper_is_never_its_own_target(void **state)
{
    (void)state;
    assert_true(seep_cuda_substitute(NEW, wrapper(NEW)) == wrapper(NEW));
    assert_true(target(NEW) == 0);
}

static void a_target_that_was_unloaded_is_forgotten(void **state)
{
    (void)state;
    seep_cuda_substitute(OLD, entry(OLD));
    seep_cuda_substitute(NEW, 4096);
    seep_cuda_forget_unloaded();
    assert_true(target(OLD) == entry(OLD));
    assert_true(target(NEW) == 0);
    assert_true(seep_cuda_substitute(NEW, entry(NEW)) == wrapper(NEW));
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
    answers_at = entry(OLD);
    seep_cuda_driver_learn(find_question, NULL);
    seep_cuda_forget_unloaded();
    assert_true(seep_cuda_driver_function(SEEP_CUDA_ASK_cuCtxGetDevice) ==
                entry(OLD));
    seep_cuda_driver_forget();
    answers_at = 4096;
    seep_cuda_driver_learn(find_question, NULL);
    seep_cuda_forget_unloaded();
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
    assert_string_equal(name, BASE);
    assert_int_equal(version, SEEP_CUDA_NEWEST);
    assert_int_equal(flags, 1);
    asked++;
    return answer;
}

static uintptr_t exchange(const char *name, int version, uint64_t flags,
                          uintptr_t found)
{
    return seep_cuda_exchange(name, version, flags, found, ask, driver);
}

static void the_variant_that_was_given_is_exchanged(void **state)
{
    (void)state;
    asked = 0;
    assert_true(exchange(BASE, 4000, 0, entry(OLD)) == wrapper(OLD));
    assert_true(exchange(BASE, 6050, 0, entry(NEW)) == wrapper(NEW));
    assert_true(exchange(TWINNED, 12000, 2, entry(TWIN)) == wrapper(TWIN));
    assert_true(target(OLD) == entry(OLD));
    assert_true(target(NEW) == entry(NEW));
    assert_true(target(PLAIN) == 0);
    assert_true(target(TWIN) == entry(TWIN));
    assert_int_equal(asked, 0);
}

static void what_is_not_wrapped_or_not_there_is_passed_on(void **state)
{
    (void)state;
    assert_true(exchange("", 0, 0, entry(OLD)) == entry(OLD));
    assert_true(exchange("cuOther", 13000, 0, entry(OLD)) == entry(OLD));
    assert_true(exchange(BASE, 6050, 0, 0) == 0);
    assert_true(exchange(BASE, 3000, 0, entry(OLD)) == entry(OLD));
    assert_true(target(OLD) == 0);
}

/* Of 32 bits, and what is mapped into sparse arrays; as asked of the driver and
 * of dlsym. */
static void what_is_met_and_not_recorded_is_counted(void **state)
{
    uint64_t before = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN_VARIANT);

    (void)state;
    exchange(BASE, 3000, 0, entry(OLD));
    exchange("cuMemMapArrayAsync", 12000, 0, entry(OLD));
    assert_false(seep_cuda_answers(driver, "cuMemAlloc"));
    assert_false(seep_cuda_answers(driver, "cuMemMapArrayAsync_ptsz"));
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN_VARIANT),
                     before + 4);
    exchange("cuOther", 12000, 0, entry(OLD));
    exchange(BASE, 6050, 0, entry(NEW));
    assert_false(seep_cuda_answers(driver, "cuMemGetInfo_v2"));
    assert_true(seep_cuda_answers(driver, "cuMemAlloc_v2"));
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN_VARIANT),
                     before + 4);
}

static void flags_of_tomorrow_are_passed_on(void **state)
{
    uint64_t before = seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN_VARIANT);

    (void)state;
    assert_true(exchange(BASE, 6050, 4, entry(NEW)) == entry(NEW));
    assert_true(target(NEW) == 0);
    assert_int_equal(seep_cuda_count(SEEP_COUNT_CUDA_UNKNOWN_VARIANT),
                     before + 1);
}

static void a_version_of_tomorrow_is_exchanged_if_nothing_is_new(void **state)
{
    (void)state;
    asked = 0;
    answer = entry(NEW);
    assert_true(exchange(BASE, SEEP_CUDA_NEWEST + 1, 1, entry(NEW)) ==
                wrapper(NEW));
    assert_int_equal(asked, 1);
}

static void a_variant_of_tomorrow_is_passed_on(void **state)
{
    (void)state;
    answer = entry(NEW);
    assert_true(exchange(BASE, SEEP_CUDA_NEWEST + 1, 1, entry(9)) == entry(9));
    assert_true(target(NEW) == 0);
}

static void libc_is_found_without_asking_the_loader(void **state)
{
    (void)state;
    assert_true(seep_cuda_next("lfind") == (uintptr_t)lfind);
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
        TEST(what_is_met_and_not_recorded_is_counted),
        TEST(flags_of_tomorrow_are_passed_on),
        TEST(a_version_of_tomorrow_is_exchanged_if_nothing_is_new),
        TEST(a_variant_of_tomorrow_is_passed_on),
        TEST(libc_is_found_without_asking_the_loader),
    };

    seep_objects_init();
    return cmocka_run_group_tests_name("cuda doors", tests, NULL, NULL);
}
