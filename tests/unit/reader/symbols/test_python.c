/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Python's frames of recordings that were made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "recording_builder.h"

struct fixture {
    char path[BUILDER_PATH_BYTES];
    struct recording_builder builder;
    struct seep_report *report;
    uint32_t libpython;
    uint64_t next;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    builder_temporary(f->path);
    builder_init(&f->builder, SEEP_LAYOUT_LEAST_BYTES, true);
    f->libpython =
        builder_module(&f->builder, "/usr/lib/libpython3.11.so.1.0", 0xab);
    f->next = 0x10000;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    seep_report_close(f->report);
    builder_fini(&f->builder);
    unlink(f->path);
    free(f);
    return 0;
}

static uint64_t line_in(struct fixture *f, const char *file, const char *name,
                        uint32_t line)
{
    return builder_code_frame(
        builder_code(&f->builder, SEEP_CODE_PYTHON, file, name, 1), line);
}

static uint64_t thread_named(struct fixture *f, const char *name)
{
    return builder_code_frame(
        builder_code(&f->builder, SEEP_CODE_THREAD, "", name, 0), 0);
}

/* A site of one block, in the order of their sizes. */
static void add_site(struct fixture *f, const uint64_t *frames, uint32_t count,
                     uint64_t size)
{
    uint32_t stack = builder_stack(&f->builder, frames, count);

    f->next += 0x10000;
    builder_alloc(&f->builder, f->next, size,
                  builder_site(&f->builder, stack, SEEP_SPACE_HEAP), 10);
}

static const struct seep_report *report_of(struct fixture *f)
{
    static const struct seep_report_options options = {.symbols = false};

    builder_exit(&f->builder, 1000);
    builder_write(&f->builder, f->path);
    seep_report_close(f->report);
    f->report = NULL;
    assert_int_equal(seep_report_open(f->path, &options, NULL, &f->report), 0);
    return f->report;
}

static const struct seep_report_site *only_site(struct fixture *f)
{
    const struct seep_report *report = report_of(f);

    assert_int_equal(report->site_count, 1);
    return &report->sites[0];
}

static void a_frame_of_python_is_told_by_file_line_and_name(void **state)
{
    struct fixture *f = *state;
    const uint64_t frames[] = {
        builder_frame(f->libpython, 0x1234),
        line_in(f, "/srv/serve.py", "Handler.handle", 31),
    };
    const struct seep_report_site *site;

    add_site(f, frames, 2, 100);
    site = only_site(f);
    assert_int_equal(site->frame_count, 2);
    assert_false(site->frames[0]->python);
    assert_true(site->frames[1]->python);
    assert_string_equal(site->frames[1]->function, "Handler.handle");
    assert_string_equal(site->frames[1]->file, "/srv/serve.py");
    assert_int_equal(site->frames[1]->line, 31);
    assert_string_equal(site->frames[1]->module, "");
    assert_string_equal(site->where, "serve.py:31 Handler.handle");
    assert_int_equal(site->where_frame, 1);
    assert_string_equal(site->thread, "");
    assert_int_equal(f->report->usage_codes.used, 1);
    assert_true(f->report->usage_codes.capacity > 1);
}

/* Every entry of a damaged file may be called by all of its strings. */
static void a_name_without_end_is_cut(void **state)
{
    struct fixture *f = *state;
    char *text = malloc(30001);
    const struct seep_report_site *site;
    uint64_t frames[2];

    assert_non_null(text);
    memset(text, 'x', 30000);
    text[30000] = '\0';
    frames[0] = builder_frame(builder_module(&f->builder, text, 1), 0x10);
    frames[1] = line_in(f, "/srv/serve.py", "handle", 31);
    f->builder.view.codes[1].name = f->builder.view.modules[1].path;
    f->builder.view.codes[1].file = f->builder.view.modules[1].path;
    free(text);
    add_site(f, frames, 2, 100);
    site = only_site(f);
    assert_int_equal(strlen(site->frames[0]->module), 4096);
    assert_int_equal(strlen(site->frames[1]->function), 1024);
    assert_int_equal(strlen(site->frames[1]->file), 1024);
}

static void a_line_that_is_not_known_is_left_out(void **state)
{
    struct fixture *f = *state;
    const uint64_t frame = line_in(f, "/srv/serve.py", "handle", 0);

    add_site(f, &frame, 1, 100);
    assert_string_equal(only_site(f)->where, "serve.py handle");
}

static void the_name_of_a_thread_is_no_frame(void **state)
{
    struct fixture *f = *state;
    const uint64_t frames[] = {
        line_in(f, "/srv/serve.py", "handle", 31),
        thread_named(f, "pool-3"),
    };
    const struct seep_report_site *site;

    add_site(f, frames, 2, 100);
    site = only_site(f);
    assert_int_equal(site->frame_count, 1);
    assert_string_equal(site->thread, "pool-3");
}

/* A recording is hostile: each of these is a frame whose name is lost. */
static void what_names_nothing_is_a_frame_without_a_name(void **state)
{
    struct fixture *f = *state;
    uint32_t unfinished = builder_code(&f->builder, SEEP_CODE_PYTHON,
                                       "/srv/serve.py", "handle", 1);
    uint32_t unknown = builder_code(&f->builder, (enum seep_code_kind)77,
                                    "/srv/serve.py", "handle", 1);
    const uint64_t frames[] = {
        builder_code_frame(SEEP_CODE_NONE, 5),
        builder_code_frame(unfinished, 5),
        builder_code_frame(unknown, 5),
        builder_code_frame(f->builder.view.code_capacity, 5),
        UINT64_MAX,
        thread_named(f, "in the middle"),
        builder_frame(f->libpython, 0x1234),
    };
    const struct seep_report_site *site;

    atomic_store_explicit(&f->builder.view.codes[unfinished].state, 1,
                          memory_order_relaxed);
    add_site(f, frames, 7, 100);
    site = only_site(f);
    assert_int_equal(site->frame_count, 7);
    for (size_t i = 0; i < 6; i++) {
        assert_true(site->frames[i]->python);
        assert_string_equal(site->frames[i]->function, "");
        assert_string_equal(site->frames[i]->file, "");
        assert_int_equal(site->frames[i]->line, 0);
    }
    assert_string_equal(site->thread, "");
    assert_string_equal(site->where, "libpython3.11.so.1.0+0x1234");
}

static void a_string_outside_of_its_section_is_empty(void **state)
{
    struct fixture *f = *state;
    uint32_t code = builder_code(&f->builder, SEEP_CODE_PYTHON, "/srv/serve.py",
                                 "handle", 1);
    const uint64_t frame = builder_code_frame(code, 31);

    f->builder.view.codes[code].file = UINT32_MAX;
    add_site(f, &frame, 1, 100);
    assert_string_equal(only_site(f)->frames[0]->file, "");
    assert_string_equal(only_site(f)->where, "Python handle");
}

/* The id that a stack has in a process of its own. */
static void id_of(const uint64_t *(*make)(struct fixture *f), char ret_id[20])
{
    struct fixture *f;
    const uint64_t *frames;

    setup((void **)&f);
    frames = make(f);
    add_site(f, frames, 3, 100);
    strcpy(ret_id, only_site(f)->id);
    teardown((void **)&f);
}

#define MAKE(name, file, function, line, thread)            \
    static const uint64_t *name(struct fixture *f)          \
    {                                                       \
        static uint64_t frames[3];                          \
                                                            \
        frames[0] = builder_frame(f->libpython, 0x1234);    \
        frames[1] = line_in(f, (file), (function), (line)); \
        frames[2] = thread_named(f, (thread));              \
        return frames;                                      \
    }

MAKE(here, "/srv/lib/python3.11/site-packages/a/b.py", "f", 3, "pool-1")
MAKE(elsewhere, "/venv/lib/python3.12/site-packages/a/b.py", "f", 3, "pool-22")
MAKE(other_file, "/srv/lib/python3.11/site-packages/c/b.py", "f", 3, "pool-1")
MAKE(other_name, "/srv/lib/python3.11/site-packages/a/b.py", "g", 3, "pool-1")
MAKE(other_line, "/srv/lib/python3.11/site-packages/a/b.py", "f", 4, "pool-1")
MAKE(other_pool, "/srv/lib/python3.11/site-packages/a/b.py", "f", 3, "tank-1")

static void an_id_outlives_folders_and_numbers_of_threads(void **state)
{
    char ids[6][20];

    (void)state;
    id_of(here, ids[0]);
    id_of(elsewhere, ids[1]);
    id_of(other_file, ids[2]);
    id_of(other_name, ids[3]);
    id_of(other_line, ids[4]);
    id_of(other_pool, ids[5]);
    assert_string_equal(ids[0], ids[1]);
    for (size_t i = 2; i < 6; i++) {
        assert_string_not_equal(ids[0], ids[i]);
    }
}

static void what_became_of_python_is_told(void **state)
{
    struct fixture *f = *state;
    struct seep_rec_header *header = f->builder.view.header;
    const struct seep_report *report;

    atomic_store_explicit(&header->python_state, SEEP_PYTHON_DEBUG,
                          memory_order_relaxed);
    atomic_store_explicit(&header->python_version, 0x030b07f0,
                          memory_order_relaxed);
    atomic_store_explicit(&header->python_objects, SEEP_PYTHON_OBJECTS_ABSENT,
                          memory_order_relaxed);
    report = report_of(f);
    assert_string_equal(seep_python_state_words(report->python_state),
                        "off: debug build of Python");
    assert_int_equal(report->python_version, 0x030b07f0);
    assert_string_equal(seep_python_objects_words(report->python_objects),
                        "not recorded: Python was not there at the start");
    atomic_store_explicit(&header->python_state, 0xffffffff,
                          memory_order_relaxed);
    report = report_of(f);
    assert_string_equal(seep_python_state_words(report->python_state),
                        "unknown");
}

static uint32_t site_in(struct fixture *f, uint64_t offset,
                        enum seep_space space)
{
    uint64_t frame = builder_frame(f->libpython, offset);

    return builder_site(&f->builder, builder_stack(&f->builder, &frame, 1),
                        space);
}

/* Small ones in arenas, in classes of 16 bytes, large ones in the allocator's
 * heap. */
static void pythons_objects_are_memory_of_the_process(void **state)
{
    struct fixture *f = *state;

    builder_alloc(&f->builder, 0x1000, 100, site_in(f, 0, SEEP_SPACE_PYTHON),
                  10);
    builder_alloc(&f->builder, 0x2000, 900, site_in(f, 1, SEEP_SPACE_PYTHON),
                  10);
    builder_alloc(&f->builder, 0x3000, 2000, site_in(f, 2, SEEP_SPACE_HEAP),
                  10);
    builder_moment(&f->builder, 0, 100, 10000, 0);
    builder_moment(&f->builder, 1, 200, 10000, 0);

    assert_int_equal(report_of(f)->memory.tracked.last_bytes, 112 + 900 + 2000);
}

static void groupings_have_names(void **state)
{
    enum seep_grouping by = SEEP_BY_STACK;

    (void)state;
    for (unsigned i = 0; i < SEEP_GROUPING_COUNT; i++) {
        assert_int_equal(
            seep_grouping_parse(seep_grouping_name((enum seep_grouping)i), &by),
            0);
        assert_int_equal(by, i);
    }
    by = SEEP_BY_LINE;
    assert_int_not_equal(seep_grouping_parse("lines", &by), 0);
    assert_int_equal(by, SEEP_BY_LINE);
}

#define PYTHON(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PYTHON(a_frame_of_python_is_told_by_file_line_and_name),
        PYTHON(a_name_without_end_is_cut),
        PYTHON(a_line_that_is_not_known_is_left_out),
        PYTHON(the_name_of_a_thread_is_no_frame),
        PYTHON(what_names_nothing_is_a_frame_without_a_name),
        PYTHON(a_string_outside_of_its_section_is_empty),
        cmocka_unit_test(an_id_outlives_folders_and_numbers_of_threads),
        PYTHON(what_became_of_python_is_told),
        PYTHON(pythons_objects_are_memory_of_the_process),
        cmocka_unit_test(groupings_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
