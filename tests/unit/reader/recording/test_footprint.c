/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What blocks take of memory: held against the allocators, and in a report. */
#include "judge_run.h"

#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/recording/footprint.h"

#define EXACT(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_exact, judge_tear_down)
#define SAMPLED(test) \
    cmocka_unit_test_setup_teardown(test, judge_set_up_sampled, judge_tear_down)

#define SIZES_END 200000U
#define ALL_BELOW \
    8192U /* then one of 61: they may be filled (MALLOC_PERTURB_) */
#define HEADER 8U
#define PAGE 4096U
#define IN_PLACE                                                \
    16U /* that glibc leaves at the end of a chunk that it cuts \
         */

static uint64_t glibc_takes(const void *block, size_t size)
{
    return seep_footprint_of(SEEP_ALLOCATOR_GLIBC, SEEP_SPACE_HEAP,
                             (uintptr_t)block, size);
}

/* A sanitizer brings its own malloc. */
static bool is_glibc(void)
{
    Dl_info info;
    void *block = malloc(1);
    bool plain = malloc_usable_size(block) == 24;
    void *symbol = dlsym(RTLD_DEFAULT, "malloc");

    free(block);
    return plain && symbol != NULL && dladdr(symbol, &info) != 0 &&
           strstr(info.dli_fname, "libc.so") != NULL;
}

/* Of a chunk its usable bytes and the word before them, of a mapping two. */
static void a_block_takes_what_glibc_gives_it(void **state)
{
    size_t mapped = 0;

    (void)state;
    if (!is_glibc()) {
        skip();
    }
    for (size_t size = 0; size < SIZES_END; size += size < ALL_BELOW ? 1 : 61) {
        void *block = malloc(size);
        size_t usable = malloc_usable_size(block);
        uint64_t takes = glibc_takes(block, size);
        bool is_mapped = (uintptr_t)block % PAGE == 2 * HEADER &&
                         (usable + 2 * HEADER) % PAGE == 0;

        mapped += is_mapped;
        if (takes != usable + (is_mapped ? 2 * HEADER : HEADER)) {
            fail_msg("%zu bytes: usable %zu, said to take %llu", size, usable,
                     (unsigned long long)takes);
        }
        free(block);
    }
    assert_true(mapped > 0);
}

static void what_realloc_and_aligned_give_is_near(void **state)
{
    (void)state;
    if (!is_glibc()) {
        skip();
    }
    for (size_t size = 1; size < 100000; size += size < ALL_BELOW ? 7 : 611) {
        void *block = realloc(malloc(size + size / 2), size);
        uint64_t takes = glibc_takes(block, size);
        size_t usable = malloc_usable_size(block) + HEADER;

        if (usable < takes || usable > takes + IN_PLACE) {
            fail_msg("%zu bytes: usable %zu, said to take %llu", size, usable,
                     (unsigned long long)takes);
        }
        free(block);
        block = aligned_alloc(64, size);
        takes = glibc_takes(block, size);
        usable = malloc_usable_size(block) + HEADER;
        if (usable < takes || usable > takes + 64) {
            fail_msg("%zu aligned: usable %zu, said to take %llu", size, usable,
                     (unsigned long long)takes);
        }
        free(block);
    }
}

/* Of @library the share that blocks of all small sizes take beyond what is
 * said; NAN: it cannot be asked here. */
static double error_of(const char *library, enum seep_allocator_kind allocator)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    size_t (*usable_of)(void *) = NULL;
    void *(*allocate)(size_t) = NULL;
    void *symbol;
    double usable = 0;
    double said = 0;

    if (handle == NULL) {
        return NAN;
    }
    symbol = dlsym(handle, "malloc");
    memcpy(&allocate, &symbol, sizeof(allocate));
    symbol = dlsym(handle, "malloc_usable_size");
    memcpy(&usable_of, &symbol, sizeof(usable_of));
    if (allocate == NULL || usable_of == NULL) {
        return NAN;
    }
    for (size_t size = 1; size <= 4096; size++) {
        void *block = allocate(size); /* the process is short */

        usable += (double)usable_of(block) / (double)size;
        said += (double)seep_footprint_of(allocator, SEEP_SPACE_HEAP, 0, size) /
                (double)size;
    }
    return usable / said - 1;
}

static void the_classes_of_others_are_known(void **state)
{
    static const struct {
        const char *library;
        enum seep_allocator_kind allocator;
    } kinds[] = {
        {"libjemalloc.so.2", SEEP_ALLOCATOR_JEMALLOC},
        {"libmimalloc.so.2", SEEP_ALLOCATOR_MIMALLOC},
        {"libtcmalloc_minimal.so.4", SEEP_ALLOCATOR_TCMALLOC},
    };

    (void)state;
    if (!is_glibc()) {
        skip();
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        double error = error_of(kinds[i].library, kinds[i].allocator);

        if (!isnan(error) && !(fabs(error) < .02)) {
            fail_msg("%s: %.3f", kinds[i].library, error);
        }
    }
}

static void what_is_not_rounded_takes_what_it_is(void **state)
{
    (void)state;
    assert_int_equal(
        seep_footprint_of(SEEP_ALLOCATOR_UNKNOWN, SEEP_SPACE_HEAP, 0, 24), 24);
    assert_int_equal(
        seep_footprint_of(SEEP_ALLOCATOR_GLIBC, SEEP_SPACE_DEVICE, 0, 24), 24);
    assert_int_equal(
        seep_footprint_of(SEEP_ALLOCATOR_GLIBC, SEEP_SPACE_PYTHON, 0, 24), 32);
    assert_int_equal(
        seep_footprint_of(SEEP_ALLOCATOR_GLIBC, SEEP_SPACE_PYTHON, 0, 512),
        512);
    assert_int_equal(
        seep_footprint_of(SEEP_ALLOCATOR_GLIBC, SEEP_SPACE_PYTHON, 0, 513),
        528);
}

static void be_of_glibc(struct judge_run *f)
{
    f->builder.view.header->allocator =
        builder_string(&f->builder, "/lib/x86_64-linux-gnu/libc.so.6");
    builder_seal(&f->builder);
}

/* The mean of the growth, over what was kept a second. */
static double told_share(struct judge_run *f, uint64_t size, double period)
{
    judge_leak(f, judge_site(f, 0x10), size, period);
    judge_work(f);
    return judge_first(f)->growth_bytes_per_s.estimate * period / (double)size;
}

static void a_leak_grows_by_what_its_blocks_take(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *site;

    be_of_glibc(f);
    assert_true(fabs(told_share(f, 3000, .02) / (3008. / 3000) - 1) < .01);
    site = f->report->sites;
    assert_int_equal(site->live_bytes % 3008, 0);
    assert_int_equal(site->requested.live_bytes,
                     site->live_bytes / 3008 * 3000);
    assert_int_equal(site->allocated_bytes, site->live_bytes);
    assert_int_equal(site->largest_bytes, 3008);
}

static void small_ones_by_a_third_more(void **state)
{
    struct judge_run *f = *state;
    const struct seep_report_site *site;

    be_of_glibc(f);
    told_share(f, 24, .001);
    site = f->report->sites;
    assert_true(fabs(site->growth_bytes_per_s.estimate * JUDGE_RUN_S /
                         (double)site->live_bytes -
                     1) < .3);
    assert_true(fabs((double)site->live_bytes * .75 /
                         (double)site->requested.live_bytes -
                     1) < 1e-3);
}

/* One large block that comes and goes, where little ones stay. */
static void what_has_gone_is_not_charged_as_what_stays(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;

    be_of_glibc(f);
    for (uint32_t i = 0; i < 100; i++) {
        judge_born(f, site, 8, i);
        judge_died(f, judge_born(f, site, 1 << 20, i + .2), i + .7);
    }
    seen = judge_first(f);

    assert_int_equal(seen->live_bytes, 100 * 32);
    assert_int_equal(seen->requested.live_bytes, 100 * 8);
    assert_true(fabs((double)seen->peak_bytes / (1 << 20) - 1) < .01);
    assert_true(fabs((double)seen->allocated_bytes / (100 << 20) - 1) < .01);
    for (size_t i = 0; i < seen->point_count; i++) {
        assert_true(seen->series[i].live_bytes < 2 << 20);
    }
}

/* What the points add up to is what the totals say, also of a mixture. */
static void the_points_are_the_totals(void **state)
{
    struct judge_run *f = *state;
    uint32_t site = judge_site(f, 0x10);
    const struct seep_report_site *seen;
    uint64_t allocated = 0;
    uint64_t freed = 0;

    be_of_glibc(f);
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t address = judge_born(f, site, 1 + i * 37 % 300, i * .09);

        if (i % 3 != 0) {
            judge_died(f, address, i * .09 + 1);
        }
    }
    seen = judge_first(f);
    for (size_t i = 0; i < seen->point_count; i++) {
        allocated += seen->series[i].allocated_bytes;
        freed += seen->series[i].freed_bytes;
        assert_true(seen->series[i].born_freed_bytes <=
                    seen->series[i].allocated_bytes);
        assert_true(seen->series[i].low_bytes <= seen->series[i].live_bytes);
    }

    assert_int_equal(allocated, seen->allocated_bytes);
    assert_int_equal(freed, seen->freed_bytes);
    assert_int_equal(seen->series[seen->point_count - 1].live_bytes,
                     seen->live_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_takes_what_glibc_gives_it),
        cmocka_unit_test(what_realloc_and_aligned_give_is_near),
        cmocka_unit_test(the_classes_of_others_are_known),
        cmocka_unit_test(what_is_not_rounded_takes_what_it_is),
        EXACT(a_leak_grows_by_what_its_blocks_take),
        SAMPLED(small_ones_by_a_third_more),
        EXACT(what_has_gone_is_not_charged_as_what_stays),
        EXACT(the_points_are_the_totals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
