/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose filters a process is behind, by what the kernel says of it and of the
 * first process: those of other kernels and containers too. */
#include <string.h>

#include "seep_test.h"

#include "base/proc.h"
#include "base/syscall.h"
#include "preload/life.h"

static const char *own; /* NULL: it cannot be read */
static const char *first;

/* Built as another function, which filter.c calls for it. */
size_t seep_proc_read(const char *path, char *bytes, size_t size)
{
    const char *text = strcmp(path, "/proc/1/status") == 0 ? first : own;
    size_t length = text == NULL ? 0 : strlen(text);

    assert_true(length < size);
    memcpy(bytes, text == NULL ? "" : text, length + 1);
    return length;
}

#define STATUS(mode, count)             \
    "Name:\tx\nNoNewPrivs:\t1\nSeccomp" \
    ":\t" mode "\nSeccomp_filters:\t" count "\nThreads:\t1\n"
#define OLD_STATUS "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nThreads:\t1\n"

/* Without a word of `seep run`. @return is something recorded? */
static bool settles(const char *own_status, const char *first_status)
{
    char *environment[] = {NULL};

    own = own_status;
    first = first_status;
    seep_calls_denied = 0;
    return seep_filter_settle(environment) == NULL;
}

static void who_has_none_is_recorded(void **state)
{
    (void)state;
    assert_true(settles(STATUS("0", "0"), NULL));
    assert_true(settles(STATUS("1", "0"), NULL)); /* strict: as it lives */
    /* Where a kernel knows of none, and where there is no /proc. */
    assert_true(settles("Name:\tx\nThreads:\t1\n", NULL));
    assert_true(settles(NULL, NULL));
}

static void as_many_as_the_first_process_are_the_containers(void **state)
{
    (void)state;
    assert_true(settles(STATUS("2", "1"), STATUS("2", "1")));
    assert_int_equal(seep_calls_denied, 0);
    assert_false(settles(STATUS("2", "2"), STATUS("2", "1")));
    assert_false(settles(STATUS("2", "1"), STATUS("0", "0")));
    assert_false(settles(STATUS("2", "1"), NULL));
}

/* Before Linux 5.9: one of them could be its own. */
static void a_kernel_that_does_not_count_them_is_not_believed(void **state)
{
    (void)state;
    assert_false(settles(OLD_STATUS, OLD_STATUS));
    assert_false(settles(STATUS("2", "1"), OLD_STATUS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_none_is_recorded),
        cmocka_unit_test(as_many_as_the_first_process_are_the_containers),
        cmocka_unit_test(a_kernel_that_does_not_count_them_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
