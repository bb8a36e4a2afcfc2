/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose filters a process is behind, by what the kernel says of it and of the
 * first process: those of other kernels and containers too. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/proc.h"
#include "base/syscall.h"
#include "preload/life.h"

static const char *own; /* NULL: it cannot be read */
static const char *first;

/* Built as another function, which filter.c calls for it. */
long seep_proc_open(const char *path)
{
    const char *text = strcmp(path, "/proc/1/status") == 0 ? first : own;
    int fd = text == NULL ? -1 : memfd_create("status", 0);

    if (text != NULL) {
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    }
    return fd;
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

/* A process can be in 65,536 groups. */
static void wherever_the_lines_stand_they_are_found(void **state)
{
    char *text = calloc(1, 20000);

    (void)state;
    assert_non_null(text);
    for (size_t before = 0; before < 8400; before += before < 3900 ? 300 : 1) {
        memset(text, ' ', before);
        strcpy(text + before, STATUS("2", "12"));
        assert_true(settles(text, text));
        assert_false(settles(text, STATUS("2", "1")));
        assert_false(settles(text, STATUS("2", "2")));
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_none_is_recorded),
        cmocka_unit_test(as_many_as_the_first_process_are_the_containers),
        cmocka_unit_test(a_kernel_that_does_not_count_them_is_not_believed),
        cmocka_unit_test(wherever_the_lines_stand_they_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
