/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a recording can go, and what is said where it cannot. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/place.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static char folder[64];
static struct seep_place_found place;
static struct seep_place_terms terms;

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/seep-place-XXXXXX");
    terms =
        (struct seep_place_terms){.size_bytes = 65536, .any_filesystem = true};
    seep_place_floor = (struct seep_place_floor){.given = true};
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static const char *below(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void a_folder_of_any_mode_holds_recordings(void **state)
{
    static const mode_t modes[] = {0700, 0755, 0777, 01777, 02777, 0770};

    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_int_equal(seep_place_look(below("%p.seep"), &terms, &place),
                         SEEP_PLACE_FINE);
        assert_string_equal(place.folder, folder);
        assert_int_equal(place.others_may_move,
                         (modes[i] & 022) != 0 && (modes[i] & 01000) == 0);
        assert_true(place.total_bytes >= place.free_bytes);
    }
}

static void what_is_missing_or_no_folder_is_told(void **state)
{
    int fd = open(below("file"), O_CREAT | O_WRONLY, 0600);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(seep_place_look(below("none/%p.seep"), &terms, &place),
                     SEEP_PLACE_MISSING);
    assert_int_equal(place.error, -ENOENT);
    assert_string_equal(place.folder, below("none"));
    assert_int_equal(seep_place_look(below("none/"), &terms, &place),
                     SEEP_PLACE_MISSING);
    assert_int_equal(seep_place_look(below("file/x.seep"), &terms, &place),
                     SEEP_PLACE_NO_FOLDER);
}

static void a_folder_that_this_user_cannot_write_is_told(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        assert_int_equal(setresuid(65534, 0, 0), 0);
    }
    assert_int_equal(seep_place_look("/usr/x.seep", &terms, &place),
                     SEEP_PLACE_FORBIDDEN);
    if (geteuid() == 0) {
        assert_int_equal(setresuid(0, 0, 0), 0);
    }
}

static void a_name_that_is_too_long_is_told(void **state)
{
    static char name[2000];

    (void)state;
    memset(name, 'x', 300);
    assert_int_equal(seep_place_look(name, &terms, &place),
                     SEEP_PLACE_NAME_LONG);
    for (size_t i = 0; i < sizeof(name) - 1; i++) {
        name[i] = i % 100 == 0 ? '/' : 'x';
    }
    assert_int_equal(seep_place_look(name, &terms, &place),
                     SEEP_PLACE_NAME_LONG);
}

static void the_limit_of_file_sizes_is_told(void **state)
{
    struct rlimit before;
    struct rlimit small;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(seep_place_look(below("x.seep"), &terms, &place),
                     SEEP_PLACE_FILE_LIMIT);
    terms.size_bytes = 4096;
    assert_int_equal(seep_place_look(below("x.seep"), &terms, &place),
                     SEEP_PLACE_FINE);
    terms.file_bytes = 4097;
    assert_int_equal(seep_place_look(below("x.seep"), &terms, &place),
                     SEEP_PLACE_FILE_LIMIT);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void a_folder_of_this_machine_is_known(void **state)
{
    char path[SEEP_PLACE_PATH_BYTES];
    char relative[] = "tmp";

    (void)state;
    strcpy(path, below(""));
    assert_true(seep_place_is_local(path));
    assert_string_equal(path, below(""));
    strcpy(path, below("missing/folder"));
    assert_false(seep_place_is_local(path));
    assert_string_equal(path, below("missing/folder"));
    assert_false(seep_place_is_local(relative));
}

static void the_last_of_a_disk_is_left_alone(void **state)
{
    int fd = open(below("file"), O_CREAT | O_RDWR, 0600);
    struct statfs status;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fstatfs(fd, &status), 0);
    assert_int_equal(seep_place_judge(fd, &terms, &place), SEEP_PLACE_FINE);
    assert_true(seep_place_floor_allows(&status, 4096));
    seep_place_floor.bytes = place.free_bytes + GIB;
    assert_int_equal(seep_place_judge(fd, &terms, &place), SEEP_PLACE_FLOOR);
    assert_int_equal(place.floor_bytes, seep_place_floor.bytes);
    assert_int_equal(seep_place_look(below("x.seep"), &terms, &place),
                     SEEP_PLACE_FLOOR);
    assert_false(seep_place_floor_allows(&status, 4096));
    seep_place_floor.bytes = 0;
    terms.size_bytes = place.free_bytes + 64 * GIB;
    assert_int_equal(seep_place_judge(fd, &terms, &place), SEEP_PLACE_FULL);
    assert_false(seep_place_floor_allows(&status, terms.size_bytes));
    close(fd);
}

static void the_floor_follows_the_size_of_the_disk(void **state)
{
    struct seep_place_floor floor = {0};

    (void)state;
    assert_int_equal(seep_place_floor_of(&floor, 100 * GIB, false), 5 * GIB);
    assert_int_equal(seep_place_floor_of(&floor, 10 * GIB, false), GIB);
    assert_int_equal(seep_place_floor_of(&floor, 2 * GIB, false), GIB / 2);
    assert_int_equal(seep_place_floor_of(&floor, 64 * MIB, true), 16 * MIB);
    assert_int_equal(seep_place_floor_of(&floor, 64 * GIB, true), 16 * GIB);
    floor = (struct seep_place_floor){.bytes = 7, .given = true};
    assert_int_equal(seep_place_floor_of(&floor, 64 * GIB, true), 7);
    floor = (struct seep_place_floor){.percent = 10, .given = true};
    assert_int_equal(seep_place_floor_of(&floor, 100 * MIB, true), 10 * MIB);
    floor = (struct seep_place_floor){.given = true};
    assert_int_equal(seep_place_floor_of(&floor, 64 * GIB, false), 0);
}

static void a_floor_is_a_size_or_a_part(void **state)
{
    static const char *const wrong[] = {
        "", "%", "101%", "-1", "5 %", "1.%", "GiB", "x%", "99999999999%"};
    struct seep_place_floor floor = {.percent = 77};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(seep_place_floor_parse(wrong[i], &floor));
        assert_int_equal(floor.percent, 77);
    }
    assert_true(seep_place_floor_parse("2GiB", &floor));
    assert_int_equal(floor.bytes, 2 * GIB);
    assert_true(seep_place_floor_parse("100%", &floor));
    assert_int_equal(floor.bytes, 0);
    assert_int_equal(floor.percent, 100);
    assert_true(seep_place_floor_parse("0", &floor) && floor.given);
}

static void a_folder_is_found_in_a_pattern(void **state)
{
    static const char *const cases[][2] = {
        {"x.seep", "."},
        {"/x.seep", "/"},
        {"/usr/x.%p.seep", "/usr"},
        {"/usr/%h/x.seep", "/usr"},
        {"/a%%b/x.%p", "/a%b"},
        {"a/b.seep", "a"},
        {"/usr", "/usr"},
        {"/none/", "/none/"},
        {"/usr%p/x", "/"},
        {"/a%q/x", "/aq"},
    };
    char found[64];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(seep_place_folder(cases[i][0], found, sizeof(found)));
        assert_string_equal(found, cases[i][1]);
    }
    assert_false(seep_place_folder("/abcdefgh/x", found, 4));
}

static void a_pattern_that_is_not_absolute_has_another_place(void **state)
{
    (void)state;
    terms.fallback_folder = folder;
    assert_int_equal(seep_place_look("none/x.seep", &terms, &place),
                     SEEP_PLACE_FINE);
    assert_true(place.is_fallback);
    assert_string_equal(place.folder, folder);
    assert_int_equal(seep_place_look(below("none/x.seep"), &terms, &place),
                     SEEP_PLACE_MISSING);
    assert_false(place.is_fallback);
}

static void every_reason_has_words_of_its_own(void **state)
{
    static const int errors[] = {ENOENT, ENOTDIR, EACCES, EROFS,  ENOSPC,
                                 EFBIG,  EEXIST,  EXDEV,  ENOMEM, EMFILE};

    (void)state;
    for (unsigned i = 0; i < SEEP_PLACE_COUNT; i++) {
        assert_non_null(seep_place_words(i));
        assert_true((seep_place_remedy(i)[0] == '\0') == (i == 0));
        assert_int_equal(seep_place_reason_of(seep_place_error_of(i)), i);
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(seep_place_words(i), seep_place_words(j));
        }
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(seep_place_reason_of(-errors[i]),
                                 seep_place_reason_of(-errors[j]));
        }
    }
    assert_int_equal(seep_place_reason_of(0), SEEP_PLACE_FINE);
    assert_int_equal(seep_place_reason_of(-EDQUOT), SEEP_PLACE_FULL);
    assert_int_equal(seep_place_reason_of(-12345), SEEP_PLACE_REFUSED);
    assert_non_null(seep_place_unsafe(0x6969));
    assert_null(seep_place_unsafe(0xef53));
    assert_string_equal(seep_place_system(0x01021994), "tmpfs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_folder_of_any_mode_holds_recordings),
        TEST(what_is_missing_or_no_folder_is_told),
        TEST(a_folder_that_this_user_cannot_write_is_told),
        TEST(a_name_that_is_too_long_is_told),
        TEST(the_limit_of_file_sizes_is_told),
        TEST(a_folder_of_this_machine_is_known),
        TEST(the_last_of_a_disk_is_left_alone),
        TEST(the_floor_follows_the_size_of_the_disk),
        TEST(a_floor_is_a_size_or_a_part),
        TEST(a_folder_is_found_in_a_pattern),
        TEST(a_pattern_that_is_not_absolute_has_another_place),
        TEST(every_reason_has_words_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
