/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose recording may go: what a cleaning knows of processes that it cannot
 * see, and of file systems that do not tell. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seep_test.h"

#include "answered_calls.h"
#include "base/syscall.h"
#include "keep_folder.h"
#include "own_mounts.h"
#include "record/keep.h"

static void of_before_the_last_boot_goes_what_nobody_has_mapped(void **state)
{
    struct seep_rec_header header = make_header();

    (void)state;
    header.boot_id[0] ^= 1;
    atomic_store(&header.exited, 1);
    put("a.seep", &header, 0);
    header.pid = (uint32_t)getpid(); /* it was another one's */
    put("b.seep", &header, 1);
    clean(1);
    assert_int_equal(count_files(), 1);
    assert_true(is_there("b.seep"));
}

/* A container that was killed for its memory leaves no process to ask for. */
static void of_another_container_goes_what_nobody_has_mapped(void **state)
{
    struct seep_rec_header header = make_header();
    void *mapping;
    int fd;

    (void)state;
    header.pid_namespace++;
    put("living.seep", &header, 0);
    put("gone.seep", &header, 1);
    fd = open(below("living.seep"), O_RDWR);
    mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_ptr_not_equal(mapping, MAP_FAILED);
    clean(1);
    assert_true(is_there("living.seep"));
    if (is_there("gone.seep")) { /* an overlay: nobody can know */
        munmap(mapping, 4096);
        skip();
    }
    put("other.seep", &header, 2);
    munmap(mapping, 4096);
    clean(1);
    assert_false(is_there("living.seep"));
}

/* A lease may be what the process has forbidden itself, and so may each call
 * that is needed to know whether it says anything. */
static void where_it_may_not_be_asked_who_has_a_file_it_stays(void **state)
{
    static const uint64_t denied[] = {
        SEEP_CALL_BIT(fstatfs), SEEP_CALL_BIT(fcntl), SEEP_CALL_BIT(flock),
        SEEP_CALL_BIT(lseek)};
    struct seep_rec_header header = make_header();

    (void)state;
    header.pid_namespace++;
    put("a.seep", &header, 0);
    put("b.seep", &header, 1);
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        seep_calls_denied = denied[i];
        clean(1);
        seep_calls_denied = 0;
        assert_int_equal(count_files(), 2);
    }
}

/* In a child, with mounts of its own. @return as it, or 77: not allowed */
static int in_own_mounts(int (*body)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        _exit(own_mounts_begin() ? body() : 77);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    return WEXITSTATUS(status);
}

/* Of another container, and nobody has them mapped. @return how many stay */
static int clean_two_of_another_container(void)
{
    struct seep_rec_header header = make_header();

    header.pid_namespace++;
    put("a.seep", &header, 0);
    put("b.seep", &header, 1);
    clean(1);
    return count_files();
}

static int clean_on_ramfs(void)
{
    return mount("seep-test", folder, "ramfs", 0, NULL) == 0
               ? clean_two_of_another_container()
               : 77;
}

static void on_a_file_system_that_nobody_knows_all_stay(void **state)
{
    (void)state;
    assert_int_equal(in_own_mounts(clean_on_ramfs), 2);
}

/* As /dev/shm, but for what it says to be. */
static long say_nfs(long number, const long *arguments)
{
    struct statfs *status = (struct statfs *)arguments[1];

    (void)number;
    memset(status, 0, sizeof(*status));
    status->f_type = 0x6969;
    return 0;
}

static int clean_on_nfs(void)
{
    return answered_calls_begin(SYS_fstatfs, -1, say_nfs)
               ? clean_two_of_another_container()
               : 77;
}

static void on_a_network_file_system_all_stay(void **state)
{
    (void)state;
    assert_int_equal(in_own_mounts(clean_on_nfs), 2);
}

static int clean_on_overlay(void)
{
    static const char *const parts[] = {"lower", "upper", "work", "all"};
    char options[512];

    for (size_t i = 0; i < 4; i++) {
        mkdir(below(parts[i]), 0700);
    }
    snprintf(options, sizeof(options),
             "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", folder,
             folder, folder);
    if (mount("seep-test", below("all"), "overlay", 0, options) != 0) {
        return 77;
    }
    strcat(folder, "/all");
    return clean_two_of_another_container();
}

static void on_an_overlay_a_lease_says_nothing(void **state)
{
    (void)state;
    assert_int_equal(in_own_mounts(clean_on_overlay), 2);
}

/* It had no /proc, or died before it could ask. */
static void of_an_unknown_container_goes_what_nobody_has_mapped(void **state)
{
    struct seep_rec_header header = make_header();
    int fd;

    (void)state;
    header.pid_namespace = 0;
    put("living.seep", &header, 0);
    fd = open(below("living.seep"), O_RDWR);
    atomic_store(&header.exited, 1);
    put("ended.seep", &header, 1);
    clean(1);
    close(fd);
    assert_true(is_there("living.seep"));
    assert_false(is_there("ended.seep"));
}

/* Of two that are not told, "" and "", nobody knows that they are one. */
static int clean_without_boot_id(void)
{
    struct seep_rec_header header = make_header();
    int fd;

    memset(header.boot_id, 0, sizeof(header.boot_id));
    put("living.seep", &header, 0);
    put("other.seep", &header, 1);
    fd = open(below("living.seep"), O_RDWR);
    if (mount("seep-test", "/proc/sys/kernel/random", "tmpfs", 0, NULL) != 0) {
        return 77;
    }
    clean(1);
    close(fd);
    return is_there("living.seep") ? 0 : 1;
}

static void where_no_boot_is_told_a_recording_in_use_stays(void **state)
{
    (void)state;
    assert_int_equal(in_own_mounts(clean_without_boot_id), 0);
}

static void of_another_user_nothing_goes(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    put_ended("a.seep", true, 0);
    put_ended("b.seep", true, 1);
    assert_int_equal(chown(below("a.seep"), 12345, 12345), 0);
    assert_int_equal(chown(below("b.seep"), 12345, 12345), 0);
    clean(1);
    assert_int_equal(count_files(), 2);
}

/* exit() was called, and the process is still there: a destructor waits. */
static void a_living_process_keeps_its_recording(void **state)
{
    struct seep_rec_header header = make_header();
    char line[1024];
    char *at;

    (void)state;
    read_line("/proc/self/stat", line, sizeof(line));
    at = strrchr(line, ')');
    for (int field = 2; field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    header.pid = (uint32_t)getpid();
    header.process_start_clock = strtoull(at, NULL, 10);
    atomic_store(&header.exited, 1);
    atomic_store(&header.minor, 1);
    put("mine.seep", &header, 0);
    header.process_start_clock--; /* the pid was another's before */
    put("former.seep", &header, 1);
    clean(1);
    assert_true(is_there("mine.seep"));
    assert_false(is_there("former.seep"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(of_before_the_last_boot_goes_what_nobody_has_mapped),
        TEST(of_another_container_goes_what_nobody_has_mapped),
        TEST(where_it_may_not_be_asked_who_has_a_file_it_stays),
        TEST(on_a_file_system_that_nobody_knows_all_stay),
        TEST(on_a_network_file_system_all_stay),
        TEST(on_an_overlay_a_lease_says_nothing),
        TEST(of_an_unknown_container_goes_what_nobody_has_mapped),
        TEST(where_no_boot_is_told_a_recording_in_use_stays),
        TEST(of_another_user_nothing_goes),
        TEST(a_living_process_keeps_its_recording),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
