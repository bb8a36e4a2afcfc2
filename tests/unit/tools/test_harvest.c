/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/harvest: the recordings of a run, and the status in one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/layout.h"
#include "reader/recording/open.h"
#include "run/run.h"
#include "seep/recording.h"

#define STACK 0x7ffd0000

struct fixture {
    char folder[64];
    char pattern[128];
};

static int make_folder(void **state)
{
    static struct fixture fixture;

    strcpy(fixture.folder, "/tmp/seep-harvest-XXXXXX");
    if (mkdtemp(fixture.folder) == NULL) {
        return -1;
    }
    snprintf(fixture.pattern, sizeof(fixture.pattern), "%s/a.%%p.seep",
             fixture.folder);
    *state = &fixture;
    return 0;
}

static int remove_folder(void **state)
{
    struct fixture *fixture = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", fixture->folder);
    return system(command);
}

static void write_recording(const struct fixture *fixture, const char *name,
                            uint32_t pid, uint64_t start_ns)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_int_equal(ftruncate(fd, SEEP_LAYOUT_LEAST_BYTES), 0);
    struct seep_rec_header *header =
        mmap(NULL, SEEP_LAYOUT_LEAST_BYTES, PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES, false, false, header), 0);
    header->pid = pid;
    header->process_start_clock = 77;
    header->start_realtime_ns = start_ns;
    header->start_monotonic_ns = 1000;
    header->fixed_hash = seep_layout_fixed_hash(header);
    atomic_store_explicit(&header->image_stack, STACK, memory_order_relaxed);
    seep_layout_start(header);
    atomic_store_explicit(&header->ready, SEEP_PUBLISHED, memory_order_relaxed);
    munmap(header, SEEP_LAYOUT_LEAST_BYTES);
    close(fd);
}

static struct seep_rec_header header_of(const struct fixture *fixture,
                                        const char *name)
{
    struct seep_rec_header header;
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, (void *)&header, sizeof(header)), sizeof(header));
    close(fd);
    return header;
}

static uint32_t end_tick_in(const struct fixture *fixture, const char *name)
{
    struct seep_rec_header header = header_of(fixture, name);

    return header.exit_tick;
}

/* has_status << 16 | status */
static uint32_t status_in(const struct fixture *fixture, const char *name)
{
    struct seep_rec_header header = header_of(fixture, name);

    return header.has_status << 16 | header.status;
}

static void write_junk(const struct fixture *fixture, const char *name)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no recording\n", file);
    fclose(file);
}

static void only_new_recordings_are_this_runs(void **state)
{
    struct fixture *fixture = *state;
    struct seep_harvest *harvest;
    char **paths;
    size_t count;

    write_recording(fixture, "a.1.seep", 1, 1);
    assert_int_equal(seep_harvest_open(fixture->pattern, &harvest), 0);
    write_recording(fixture, "a.2.seep", 2, 2);
    write_recording(fixture, "a.2.1.seep", 2, 3);
    write_recording(fixture, "b.2.seep", 2, 2);
    write_junk(fixture, "a.3.seep");

    assert_int_equal(seep_harvest_collect(harvest, &paths, &count), 0);

    assert_int_equal(count, 2);
    assert_non_null(strstr(paths[0], "/a.2.1.seep"));
    assert_non_null(strstr(paths[1], "/a.2.seep"));
    seep_harvest_close(harvest);
}

/* Of a launcher the name stays free, and those that it starts get numbers. */
static void
a_name_without_a_placeholder_has_numbered_ones_beside_it(void **state)
{
    struct fixture *fixture = *state;
    struct seep_harvest *harvest;
    char pattern[160];
    char **paths;
    size_t count;

    snprintf(pattern, sizeof(pattern), "%s/name.seep", fixture->folder);
    assert_int_equal(seep_harvest_open(pattern, &harvest), 0);
    write_recording(fixture, "name.1.seep", 1, 1);
    write_recording(fixture, "name.12.seep", 2, 2);
    write_recording(fixture, "names.seep", 3, 3);
    assert_int_equal(seep_harvest_collect(harvest, &paths, &count), 0);
    assert_int_equal(count, 2);
    assert_non_null(strstr(paths[0], "/name.1.seep"));
    assert_non_null(strstr(paths[1], "/name.12.seep"));
    seep_harvest_close(harvest);
    snprintf(pattern, sizeof(pattern), "%s/plain", fixture->folder);
    assert_int_equal(seep_harvest_open(pattern, &harvest), 0);
    write_recording(fixture, "plain.1", 1, 1);
    assert_int_equal(seep_harvest_collect(harvest, &paths, &count), 0);
    assert_int_equal(count, 1);
    seep_harvest_close(harvest);
}

/* sh, exec'd into python: both have the pid, the second one ended so. */
static void the_status_goes_into_the_last_image_of_the_child(void **state)
{
    struct fixture *fixture = *state;
    struct seep_child child = {.pid = 2, .status = 9, .start_clock = 77};
    struct seep_harvest *harvest;
    char **paths;
    size_t count;

    assert_int_equal(seep_harvest_open(fixture->pattern, &harvest), 0);
    write_recording(fixture, "a.1.seep", 2, 5);
    write_recording(fixture, "a.2.seep", 2, 6);
    write_recording(fixture, "a.3.seep", 3, 7);
    assert_int_equal(seep_harvest_collect(harvest, &paths, &count), 0);

    assert_int_equal(seep_harvest_put_status(paths, count, &child), 0);

    assert_int_equal(status_in(fixture, "a.1.seep"), 0);
    assert_int_equal(status_in(fixture, "a.2.seep"), 1 << 16 | 9);
    assert_int_equal(status_in(fixture, "a.3.seep"), 0);
    seep_harvest_close(harvest);
}

/* What it became since was seen, and has no recording. */
static void an_image_that_another_took_the_place_of_has_no_status(void **state)
{
    struct fixture *fixture = *state;
    struct seep_child child = {
        .pid = 2, .status = 9, .start_clock = 77, .image_stack = STACK + 16};
    char path[160];
    char *paths[] = {path};

    snprintf(path, sizeof(path), "%s/a.1.seep", fixture->folder);
    write_recording(fixture, "a.1.seep", 2, 5);
    child.image_ns = header_of(fixture, "a.1.seep").start_monotonic_ns + 1;
    assert_int_equal(seep_harvest_put_status(paths, 1, &child), -ENOENT);
    assert_int_equal(status_in(fixture, "a.1.seep"), 0);
    child.image_ns -= 2; /* what was there before it */
    assert_int_equal(seep_harvest_put_status(paths, 1, &child), 0);
    assert_int_equal(status_in(fixture, "a.1.seep"), 1 << 16 | 9);
}

/* One that is killed cannot say when; what stopped being recorded did. */
static void the_end_of_one_that_was_killed_is_when_it_was_reaped(void **state)
{
    struct fixture *fixture = *state;
    struct seep_child child = {.pid = 2, .status = 9, .start_clock = 77};
    char path[160];
    char *paths[] = {path};

    snprintf(path, sizeof(path), "%s/a.1.seep", fixture->folder);
    write_recording(fixture, "a.1.seep", 2, 5);
    child.end_ns = header_of(fixture, "a.1.seep").start_monotonic_ns +
                   (UINT64_C(1000) << SEEP_TICK_LOG2_NS);
    assert_int_equal(seep_harvest_put_status(paths, 1, &child), 0);
    assert_int_equal(end_tick_in(fixture, "a.1.seep"), 1000);
    child.end_ns *= 2;
    assert_int_equal(seep_harvest_put_status(paths, 1, &child), 0);
    assert_int_equal(end_tick_in(fixture, "a.1.seep"), 1000);
}

static void another_process_of_that_pid_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    struct seep_child child = {.pid = 2, .status = 9, .start_clock = 78};
    struct seep_harvest *harvest;
    char **paths;
    size_t count;

    assert_int_equal(seep_harvest_open(fixture->pattern, &harvest), 0);
    write_recording(fixture, "a.1.seep", 2, 5);
    assert_int_equal(seep_harvest_collect(harvest, &paths, &count), 0);

    assert_int_equal(seep_harvest_put_status(paths, count, &child), -ENOENT);

    assert_int_equal(status_in(fixture, "a.1.seep"), 0);
    seep_harvest_close(harvest);
}

static void a_link_is_not_followed(void **state)
{
    struct fixture *fixture = *state;
    struct seep_harvest *harvest;
    char from[160];
    char **paths;
    size_t count;

    write_recording(fixture, "victim", 2, 5);
    assert_int_equal(seep_harvest_open(fixture->pattern, &harvest), 0);
    snprintf(from, sizeof(from), "%s/a.1.seep", fixture->folder);
    assert_int_equal(symlink("victim", from), 0);

    assert_int_equal(seep_harvest_collect(harvest, &paths, &count), 0);

    assert_int_equal(count, 0);
    seep_harvest_close(harvest);
}

/* What is cut short as soon as somebody has asked for its size. */
static const char *cut_path;

int fstat(int fd, struct stat *status)
{
    int result = fstatat(fd, "", status, AT_EMPTY_PATH);

    if (cut_path != NULL) {
        assert_int_equal(truncate(cut_path, 0), 0);
    }
    return result;
}

static void what_is_cut_while_it_is_read_is_no_recording(void **state)
{
    struct fixture *fixture = *state;
    struct seep_rec_header header;
    char path[160];

    write_recording(fixture, "a.1.seep", 1, 1);
    snprintf(path, sizeof(path), "%s/a.1.seep", fixture->folder);
    assert_true(seep_harvest_read_header(path, &header));

    cut_path = path;
    bool valid = seep_harvest_read_header(path, &header);
    cut_path = NULL;

    assert_false(valid);
}

static void what_is_below_folders_of_any_name_is_matched(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const names[] = {"h[1]", "h[2]", "h[1]/.a.seep",
                                        "h[1]/a.seep", "h[2]/a.seep"};
    struct seep_open_list found = {.paths = NULL};
    char path[160];

    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "%s/%s", fixture->folder, names[i]);
        if (i < 2) {
            assert_int_equal(mkdir(path, 0700), 0);
        } else {
            write_recording(fixture, names[i], 1, 1);
        }
    }
    snprintf(path, sizeof(path), "%s//h\\[*]/[!.]*.seep", fixture->folder);
    assert_int_equal(seep_harvest_match(path, &found), 0);
    assert_int_equal(found.count, 2);
    for (size_t i = 0; i < found.count; i++) {
        assert_non_null(strstr(found.paths[i], "]/a.seep"));
        assert_int_equal(access(found.paths[i], R_OK), 0);
    }
    seep_report_list_free(found.paths);
}

static void a_pattern_matches_only_what_it_can_name(void **state)
{
    char *glob = seep_harvest_glob("/a[1]/%%x*/%e.%p.%q%");

    (void)state;
    assert_string_equal(glob, "/a\\[1\\]/%x\\*/*.*.q%");
    free(glob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_name_without_a_placeholder_has_numbered_ones_beside_it,
            make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(only_new_recordings_are_this_runs,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            the_status_goes_into_the_last_image_of_the_child, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            an_image_that_another_took_the_place_of_has_no_status, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            the_end_of_one_that_was_killed_is_when_it_was_reaped, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            another_process_of_that_pid_is_left_alone, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(a_link_is_not_followed, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(
            what_is_cut_while_it_is_read_is_no_recording, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            what_is_below_folders_of_any_name_is_matched, make_folder,
            remove_folder),
        cmocka_unit_test(a_pattern_matches_only_what_it_can_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
