/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was found of a stack in one recording holds in the others. */
#include "seep_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/report/report.h"
#include "reader/symbols/names.h"
#include "recording_builder.h"

#define STACKS 7U

/* One program, whose objects are numbered as they came in each run. */
enum run { FIRST, SECOND, RUNS };

struct world {
    char paths[RUNS][BUILDER_PATH_BYTES];
    struct seep_symbol_memory *memory;
};

static uint32_t add_nameless(struct recording_builder *b)
{
    uint32_t module = builder_module(b, "/opt/app/stripped.so", 3);

    b->view.modules[module - 1].build_id_bytes = 0;
    return module;
}

static void add_site(struct recording_builder *b, enum seep_space space,
                     const uint64_t *frames, uint32_t count)
{
    static uint64_t address = 0x10000;
    uint32_t site = builder_site(b, builder_stack(b, frames, count), space);

    for (uint32_t i = 0; i < 20; i++) {
        builder_alloc(b, address += 4096, 600, site, 100 * i);
    }
}

/* @turn: the later run loaded and called something else first. */
static void fill(struct recording_builder *b, bool turn)
{
    uint32_t other = turn ? builder_module(b, "/opt/app/other.so", 4) : 0;
    uint32_t odd =
        turn ? builder_code(b, SEEP_CODE_PYTHON, "/srv/odd.py", "odd", 1) : 0;
    uint32_t library = builder_module(b, "/opt/app/library.so", 2);
    uint32_t app = builder_module(b, "/opt/app/python3.11", 1);
    uint32_t nameless = add_nameless(b);
    uint32_t serve =
        builder_code(b, SEEP_CODE_PYTHON, "/srv/serve.py", "serve", 10);
    uint32_t load = builder_code(b, SEEP_CODE_PYTHON,
                                 "<frozen importlib._bootstrap>", "_load", 1);
    uint32_t body =
        builder_code(b, SEEP_CODE_PYTHON, "/srv/serve.py", "<module>", 1);
    uint32_t thread = builder_code(b, SEEP_CODE_THREAD, "", "worker-7", 0);
    const uint64_t native[] = {builder_frame(library, 0x10),
                               builder_frame(app, 0x20)};
    const uint64_t python[] = {builder_frame(app, 0x30),
                               builder_code_frame(serve, 12)};
    const uint64_t line[] = {builder_frame(app, 0x30),
                             builder_code_frame(serve, 13)};
    const uint64_t import[] = {builder_frame(app, 0x30),
                               builder_code_frame(body, 3),
                               builder_code_frame(load, 1)};
    const uint64_t named[] = {builder_frame(library, 0x10),
                              builder_frame(app, 0x20),
                              builder_code_frame(thread, 0)};
    const uint64_t unknown[] = {builder_frame(nameless, 0x10),
                                builder_frame(app, 0x20)};

    if (turn) {
        const uint64_t before[] = {builder_frame(other, 0x10),
                                   builder_code_frame(odd, 2)};

        add_site(b, SEEP_SPACE_HEAP, before, 2);
    }
    b->view.header->python_version = 0x030b0000;
    add_site(b, SEEP_SPACE_HEAP, native, 2);
    add_site(b, SEEP_SPACE_MAPPED, native, 2);
    add_site(b, SEEP_SPACE_HEAP, python, 2);
    add_site(b, SEEP_SPACE_HEAP, line, 2);
    add_site(b, SEEP_SPACE_HEAP, import, 3);
    add_site(b, SEEP_SPACE_HEAP, named, 3);
    add_site(b, SEEP_SPACE_HEAP, unknown, 2);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    for (unsigned i = 0; i < RUNS; i++) {
        struct recording_builder builder;

        builder_temporary(world->paths[i]);
        builder_init(&builder, SEEP_LAYOUT_LEAST_BYTES, true);
        fill(&builder, i == SECOND);
        builder_exit(&builder, 60 * BUILDER_TICKS_PER_S);
        builder_fold(&builder);
        builder_write(&builder, world->paths[i]);
        builder_fini(&builder);
    }
    assert_int_equal(seep_symbol_memory_open(&world->memory), 0);
    world->memory->keeps = true;
    world->memory->shares = true;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    seep_symbol_memory_close(world->memory);
    for (unsigned i = 0; i < RUNS; i++) {
        unlink(world->paths[i]);
    }
    free(world);
    return 0;
}

static struct seep_report *open_run(const struct world *world, enum run run,
                                    enum seep_grouping by, bool remembers)
{
    const struct seep_report_options options = {
        .symbols = true,
        .by = by,
        .memory = remembers ? world->memory : NULL,
    };
    struct seep_report *report = NULL;

    assert_int_equal(
        seep_report_open(world->paths[run], &options, NULL, &report), 0);
    return report;
}

static void assert_same_site(const struct seep_report_site *a,
                             const struct seep_report_site *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->line_id, b->line_id);
    assert_string_equal(a->where, b->where);
    assert_string_equal(a->thread, b->thread);
    assert_int_equal(a->where_frame, b->where_frame);
    assert_int_equal(a->is_start, b->is_start);
    assert_int_equal(a->space, b->space);
    assert_int_equal(a->frame_count, b->frame_count);
    for (size_t i = 0; i < a->frame_count; i++) {
        assert_string_equal(a->frames[i]->module, b->frames[i]->module);
        assert_string_equal(a->frames[i]->file, b->frames[i]->file);
        assert_string_equal(a->frames[i]->function, b->frames[i]->function);
        assert_int_equal(a->frames[i]->line, b->frames[i]->line);
        assert_true(a->frames[i]->offset == b->frames[i]->offset);
    }
}

/* In the memory of others it is told as alone, whoever came before. */
static void a_report_is_the_same_behind_others(void **state)
{
    static const enum run order[] = {FIRST, SECOND, FIRST, SECOND};
    const struct world *world = *state;

    for (unsigned by = 0; by < SEEP_GROUPING_COUNT; by++) {
        for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
            struct seep_report *alone =
                open_run(world, order[i], (enum seep_grouping)by, false);
            struct seep_report *behind =
                open_run(world, order[i], (enum seep_grouping)by, true);

            assert_int_equal(alone->site_count, behind->site_count);
            for (size_t j = 0; j < alone->site_count; j++) {
                assert_same_site(&alone->sites[j], &behind->sites[j]);
            }
            assert_true(alone->begin.imports_s == behind->begin.imports_s);
            seep_report_close(alone);
            seep_report_close(behind);
        }
    }
}

/* Numbers of a run are none of the program: its stacks are found again; what
 * has no build-id may be another file in each run. */
static void only_what_tells_a_stack_tells_it(void **state)
{
    const struct world *world = *state;
    size_t count;

    seep_report_close(open_run(world, FIRST, SEEP_BY_LINE, true));
    count = world->memory->stacks.count;
    assert_int_equal(count, STACKS - 1);
    seep_report_close(open_run(world, SECOND, SEEP_BY_LINE, true));
    assert_int_equal(world->memory->stacks.count, count + 1);
}

static void a_memory_that_is_not_shared_knows_no_stack(void **state)
{
    struct world *world = *state;

    world->memory->shares = false;
    seep_report_close(open_run(world, FIRST, SEEP_BY_LINE, true));
    seep_report_close(open_run(world, SECOND, SEEP_BY_LINE, true));
    assert_int_equal(world->memory->stacks.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_report_is_the_same_behind_others,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_what_tells_a_stack_tells_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_memory_that_is_not_shared_knows_no_stack, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
