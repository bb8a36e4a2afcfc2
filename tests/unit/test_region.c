/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file of a recording: private, whole, never another's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seep_test.h"

#include "format/check.h"
#include "format/layout.h"
#include "record/region.h"

static char folder[64];
static struct seep_rec_header header;

static void complete(void *mapping)
{
    struct seep_rec_header *mapped = mapping;

    mapped->pid = 4242;
    mapped->fixed_hash = seep_layout_fixed_hash(mapped);
}

static struct seep_region_options options = {
    .executable = "prog",
    .host = "box",
    .start_s = 99,
    .pid = 4242,
    .complete = complete,
    .any_filesystem = true,
};

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/seep-region-XXXXXX");
    memset((void *)&header, 0, sizeof(header));
    return mkdtemp(folder) == NULL ||
           seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, &header) !=
               0;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static int create(const char *name, void **ret_mapping)
{
    static char pattern[256];

    snprintf(pattern, sizeof(pattern), "%s/%s", folder, name);
    options.pattern = pattern;
    return seep_region_create(&options, &header, ret_mapping);
}

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void a_recording_is_valid_private_and_whole(void **state)
{
    struct stat status;
    void *mapping = NULL;
    int lowest = open("/dev/null", O_RDONLY);

    (void)state;
    close(lowest);
    umask(0);
    assert_int_equal(create("%e.%p.%h.%t.seep", &mapping), 0);

    assert_int_equal(seep_check(mapping, header.file_bytes), SEEP_CHECK_VALID);
    assert_int_equal(stat(path_of("prog.4242.box.99.seep"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_size, header.file_bytes);
    assert_true(status.st_blocks * 512 >= status.st_size);
    /* No descriptor is left. */
    assert_int_equal(open("/dev/null", O_RDONLY), lowest);
    close(lowest);
    seep_region_drop(mapping, header.file_bytes);
}

static void a_taken_name_is_left_alone(void **state)
{
    FILE *other = fopen(path_of("x.seep"), "w");
    char text[8] = "";
    void *mapping = NULL;
    struct stat status;

    (void)state;
    assert_non_null(other);
    fputs("precious", other);
    fclose(other);
    assert_int_equal(create("x.seep", &mapping), 0);

    other = fopen(path_of("x.seep"), "r");
    assert_int_equal(fread(text, 1, 8, other), 8);
    assert_memory_equal(text, "precious", 8);
    fclose(other);
    assert_int_equal(stat(path_of("x.1.seep"), &status), 0);
    assert_int_equal(status.st_size, header.file_bytes);
    seep_region_drop(mapping, header.file_bytes);
}

static void a_number_in_the_pattern_takes_the_next(void **state)
{
    void *mapping = NULL;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(create("r.%n.seep", &mapping), 0);
        seep_region_drop(mapping, header.file_bytes);
    }
    assert_int_equal(access(path_of("r.2.seep"), F_OK), 0);
}

static void a_planted_link_is_not_followed(void **state)
{
    void *mapping = NULL;
    struct stat status;

    (void)state;
    assert_int_equal(symlink("victim", path_of("l.seep")), 0);
    assert_int_equal(symlink("/nonexistent/victim", path_of("l.1.seep")), 0);
    assert_int_equal(create("l.seep", &mapping), 0);

    assert_int_equal(lstat(path_of("victim"), &status), -1);
    assert_int_equal(lstat(path_of("l.2.seep"), &status), 0);
    seep_region_drop(mapping, header.file_bytes);
}

static void a_folder_that_others_may_write_is_refused(void **state)
{
    void *mapping = NULL;

    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(create("x.seep", &mapping), -EPERM);
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(create("x.seep", &mapping), 0);
    seep_region_drop(mapping, header.file_bytes);
}

static void a_missing_folder_is_refused(void **state)
{
    void *mapping = NULL;

    (void)state;
    assert_int_equal(create("none/x.seep", &mapping), -ENOENT);
}

/* A file over the limit would be a SIGXFSZ for the worker. */
static void the_file_size_limit_is_asked_first(void **state)
{
    struct rlimit before;
    struct rlimit small;
    void *mapping = NULL;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(create("x.seep", &mapping), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(access(path_of("x.seep"), F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_recording_is_valid_private_and_whole),
        TEST(a_taken_name_is_left_alone),
        TEST(a_number_in_the_pattern_takes_the_next),
        TEST(a_planted_link_is_not_followed),
        TEST(a_folder_that_others_may_write_is_refused),
        TEST(a_missing_folder_is_refused),
        TEST(the_file_size_limit_is_asked_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
