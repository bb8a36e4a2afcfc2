/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of JIT code from a perf map, which anyone may have written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/symbols/names.h"
#include "reader/symbols/symbolise.h"

struct fixture {
    char folder[64];
    char path[96];
};

static int setup(void **state)
{
    static struct fixture fixture;

    strcpy(fixture.folder, "/tmp/seep-perf-map-XXXXXX");
    if (mkdtemp(fixture.folder) == NULL) {
        return -1;
    }
    snprintf(fixture.path, sizeof(fixture.path), "%s/perf-1.map",
             fixture.folder);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unlink(f->path);
    return rmdir(f->folder);
}

static void write_map(const struct fixture *f, const char *text, size_t bytes)
{
    FILE *file = fopen(f->path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void code_of_no_module_gets_its_name_from_the_map(void **state)
{
    static const char text[] = "7f0000001000 40 py::handle:/app/serve.py\n"
                               "7f0000001040 20 LazyCompile:~work a.js:1\n"
                               "7f0000002000 10 _ZN3foo3barEv";
    struct fixture *f = *state;
    struct seep_symboliser_options options = {.perf_map = f->path};
    struct seep_symboliser *symboliser = NULL;
    static const struct {
        uint64_t address;
        const char *expected;
    } answers[] = {
        {0x7f0000001000, "py::handle:/app/serve.py"},
        {0x7f000000103f, "py::handle:/app/serve.py"},
        {0x7f0000001040, "LazyCompile:~work a.js:1"},
        {0x7f000000200f, "foo::bar()"},
        {0x7f0000001060, ""},
        {0x7f0000000fff, ""},
    };

    write_map(f, text, sizeof(text) - 1);
    assert_int_equal(seep_symboliser_open(NULL, 0, &options, &symboliser), 0);
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        const struct seep_symbol_frame *frames = NULL;
        size_t count = 0;

        assert_int_equal(seep_symboliser_resolve(symboliser, SIZE_MAX,
                                                 answers[i].address, &frames,
                                                 &count),
                         0);
        assert_int_equal(count, 1);
        assert_string_equal(frames[0].function, answers[i].expected);
    }
    seep_symboliser_close(symboliser);
}

static void the_last_line_about_an_address_wins(void **state)
{
    static const char text[] = "1000 100 old\n1010 10 new\n1000 8 newest\n";
    struct fixture *f = *state;
    struct seep_perf_map *map = NULL;

    write_map(f, text, sizeof(text) - 1);
    assert_int_equal(seep_perf_map_open(f->path, &map), 0);
    assert_string_equal(seep_perf_map_find(map, 0x1000), "newest");
    assert_string_equal(seep_perf_map_find(map, 0x1008), "old");
    assert_string_equal(seep_perf_map_find(map, 0x1010), "new");
    seep_perf_map_close(map);
}

static void a_malformed_line_costs_only_itself(void **state)
{
    static const char text[] =
        "\n \n-1 10 negative\n0x5000 10 prefix\nzz 10 word\n"
        "1000\n1000 \n1000 10\n1000 10 \n1000 0 empty\n"
        "ffffffffffffffff 10 wraps\n"
        "11111111111111111 10 seventeen digits\n"
        "2000 10\0name\n3000 10 good one\n4000 10 \xff\x01odd";
    struct fixture *f = *state;
    struct seep_perf_map *map = NULL;

    write_map(f, text, sizeof(text) - 1);
    assert_int_equal(seep_perf_map_open(f->path, &map), 0);
    assert_null(seep_perf_map_find(map, 0x1000));
    assert_null(seep_perf_map_find(map, 0x2000));
    assert_null(seep_perf_map_find(map, UINT64_MAX));
    assert_string_equal(seep_perf_map_find(map, 0x3000), "good one");
    assert_string_equal(seep_perf_map_find(map, 0x5000), "prefix");
    assert_string_equal(seep_perf_map_find(map, 0x4000), "\xff\x01odd");
    seep_perf_map_close(map);
}

static void an_empty_map_has_no_names(void **state)
{
    struct fixture *f = *state;
    struct seep_perf_map *map = NULL;

    write_map(f, "", 0);
    assert_int_equal(seep_perf_map_open(f->path, &map), 0);
    assert_null(seep_perf_map_find(map, 0));
    seep_perf_map_close(map);
}

static void only_a_regular_file_of_ours_or_root_is_read(void **state)
{
    struct fixture *f = *state;
    struct seep_perf_map *map = NULL;

    assert_true(seep_perf_map_open(f->path, &map) < 0);
    assert_true(seep_perf_map_open("/dev/zero", &map) < 0);
    assert_true(seep_perf_map_open(f->folder, &map) < 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_true(seep_perf_map_open(f->path, &map) < 0);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink("/etc/hostname", f->path), 0);
    assert_true(seep_perf_map_open(f->path, &map) < 0);
    assert_int_equal(unlink(f->path), 0);
    if (geteuid() == 0) {
        write_map(f, "1000 10 stranger\n", 17);
        assert_int_equal(chown(f->path, 65534, 65534), 0);
        assert_true(seep_perf_map_open(f->path, &map) < 0);
    }
    assert_null(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            code_of_no_module_gets_its_name_from_the_map, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_line_about_an_address_wins,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_malformed_line_costs_only_itself,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_map_has_no_names, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            only_a_regular_file_of_ours_or_root_is_read, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
