/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of frames: one entry a name, refusal when full, hints that can go. */
#include <stdio.h>
#include <string.h>

#include "seep_test.h"

#include "base/hash.h"
#include "empty_recording.h"
#include "record/modules.h"
#include "record/sites.h"

static struct seep_view view;
static void *index_memory;

static int set_up(void **state)
{
    (void)state;
    seep_codes_forget();
    if (empty_recording_make(&view) != 0) {
        return -1;
    }
    index_memory = calloc(1, seep_index_bytes(view.header));
    seep_index_start(&view, index_memory);
    return index_memory == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    seep_index_start(NULL, NULL);
    free(index_memory);
    empty_recording_free(&view);
    return 0;
}

static uint32_t intern(uint64_t identity, const char *file, const char *name,
                       uint32_t first_line)
{
    struct seep_codes_code code = {.kind = SEEP_CODE_PYTHON,
                                   .file = file,
                                   .name = name,
                                   .first_line = first_line};

    return seep_codes_intern(&view, seep_hash_mix(identity), &code);
}

static uint64_t counter(enum seep_counter which)
{
    return atomic_load_explicit(&view.counters[which], memory_order_relaxed);
}

static void code_that_came_back_elsewhere_is_the_same(void **state)
{
    uint32_t first = intern(1, "serve.py", "handle", 31);
    const struct seep_rec_code *entry = &view.codes[first];

    (void)state;
    assert_int_not_equal(first, SEEP_CODE_NONE);
    assert_int_equal(intern(2, "serve.py", "handle", 31), first);
    assert_int_equal(entry->kind, SEEP_CODE_PYTHON);
    assert_int_equal(entry->first_line, 31);
    assert_string_equal(seep_view_string(&view, entry->file), "serve.py");
    assert_string_equal(seep_view_string(&view, entry->name), "handle");
    assert_int_equal(
        atomic_load_explicit(&view.header->code_count, memory_order_relaxed),
        1);
}

static uint32_t intern_module(uint64_t start, const char *path,
                              const uint8_t *build_id, size_t id_bytes)
{
    struct seep_modules_object object = {.start = start,
                                         .end = start + 4096,
                                         .bias = start,
                                         .path = path,
                                         .build_id = build_id,
                                         .build_id_bytes = id_bytes};

    return seep_modules_intern(&view, &object);
}

/* By where it lies and its build-id; by its path where it has none. */
static void a_module_is_known_again(void **state)
{
    static const uint8_t one[SEEP_BUILD_ID_MAX + 8] = {1, 2, 3};
    static const uint8_t two[SEEP_BUILD_ID_MAX] = {1, 2, 4};
    uint32_t with_id = intern_module(4096, "a.so", one, 20);
    uint32_t without = intern_module(8192, "b.so", NULL, 0);
    uint32_t longest = intern_module(16384, "c.so", one, sizeof(one));

    (void)state;
    assert_int_equal(with_id, 1);
    assert_int_equal(without, 2);
    assert_int_equal(longest, 3);
    assert_int_equal(intern_module(4096, "by another name", one, 20), with_id);
    assert_int_equal(intern_module(8192, "b.so", NULL, 99), without);
    assert_int_equal(view.modules[without - 1].build_id_bytes, 0);
    assert_int_equal(view.modules[longest - 1].build_id_bytes,
                     SEEP_BUILD_ID_MAX);
    assert_int_equal(intern_module(16384, "c.so", one, SEEP_BUILD_ID_MAX),
                     longest);
    assert_int_equal(intern_module(4096, "a.so", two, 20), 4);
    assert_int_equal(intern_module(8192, "d.so", NULL, 0), 5);
    assert_int_equal(intern_module(4096, "a.so", one, 19), 6);
    /* One that is being written is not looked at, and comes twice. */
    atomic_store(&view.modules[without - 1].state, 1);
    assert_int_equal(intern_module(8192, "b.so", NULL, 0), 7);
}

static void a_full_table_of_modules_refuses_and_counts(void **state)
{
    uint32_t capacity = view.module_capacity;

    (void)state;
    for (uint32_t i = 0; i < capacity; i++) {
        assert_int_equal(intern_module(4096 * (i + 1), "m.so", NULL, 0), i + 1);
    }
    assert_int_equal(intern_module(1, "m.so", NULL, 0), SEEP_MODULE_NONE);
    assert_int_equal(counter(SEEP_COUNT_MODULES_FULL), 1);
    assert_int_equal(intern_module(4096, "m.so", NULL, 0), 1);
    atomic_store(&view.header->module_count, capacity + 1); /* damaged */
    assert_int_equal(intern_module(1, "m.so", NULL, 0), SEEP_MODULE_NONE);
}

static void each_part_of_a_name_tells_codes_apart(void **state)
{
    uint32_t codes[] = {
        intern(1, "a.py", "f", 1),
        intern(2, "b.py", "f", 1),
        intern(3, "a.py", "g", 1),
        intern(4, "a.py", "f", 2),
    };
    struct seep_codes_code thread = {
        .kind = SEEP_CODE_THREAD, .file = "a.py", .name = "f", .first_line = 1};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
        }
        assert_int_not_equal(seep_codes_intern(&view, 9, &thread), codes[i]);
    }
}

static void the_cache_knows_what_was_interned_until_it_forgets(void **state)
{
    uint32_t code = intern(1, "a.py", "f", 1);
    uint32_t found = 12345;

    (void)state;
    assert_false(seep_codes_find(seep_hash_mix(2), &found));
    assert_int_equal(found, 12345);
    assert_true(seep_codes_find(seep_hash_mix(1), &found));
    assert_int_equal(found, code);
    seep_codes_forget();
    assert_false(seep_codes_find(seep_hash_mix(1), &found));
}

static void a_file_is_written_once_for_all_of_its_code(void **state)
{
    uint32_t first = intern(1, "a_rather_long_path/a.py", "f", 1);
    uint64_t used = atomic_load_explicit(&view.header->string_bytes_used,
                                         memory_order_relaxed);
    uint32_t second = intern(2, "a_rather_long_path/a.py", "g", 2);

    (void)state;
    assert_int_equal(view.codes[first].file, view.codes[second].file);
    assert_int_equal(atomic_load_explicit(&view.header->string_bytes_used,
                                          memory_order_relaxed),
                     used + sizeof("g"));
}

/* The counter says once a code, not once a stack. */
static void a_full_table_refuses_and_remembers_that_it_did(void **state)
{
    uint32_t refused = 0;
    uint32_t code = 1;

    (void)state;
    for (uint32_t i = 1; i <= view.code_capacity * 2; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%u", i);
        if (intern(i, "a.py", name, i) == SEEP_CODE_NONE) {
            refused = i;
        }
    }
    assert_int_not_equal(refused, 0);
    assert_true(counter(SEEP_COUNT_CODES_FULL) > 0);
    assert_true(seep_codes_find(seep_hash_mix(refused), &code));
    assert_int_equal(code, SEEP_CODE_NONE);
}

static void names_without_room_are_empty(void **state)
{
    uint32_t code;

    (void)state;
    atomic_store_explicit(&view.header->string_bytes_used, view.string_bytes,
                          memory_order_relaxed);
    code = intern(1, "a.py", "f", 1);
    assert_string_equal(seep_view_string(&view, view.codes[code].file), "");
    assert_string_equal(seep_view_string(&view, view.codes[code].name), "");
    assert_true(counter(SEEP_COUNT_STRINGS_FULL) > 0);
}

/* The cache tells files apart by 44 bits of a hash, and then by their names. */
static void files_of_one_hash_keep_their_names(void **state)
{
    static const char *const files[] = {"2344730.py", "8276311.py"};
    uint64_t differ = seep_hash_bytes(files[0], strlen(files[0])) ^
                      seep_hash_bytes(files[1], strlen(files[1]));

    (void)state;
    assert_int_equal(differ & UINT64_C(0xffffffff00000fff), 0);
    for (uint64_t i = 0; i < 4; i++) {
        uint32_t code = intern(i + 1, files[i % 2], "f", (uint32_t)i);

        assert_string_equal(seep_view_string(&view, view.codes[code].file),
                            files[i % 2]);
    }
}

/* A file that grows, of which no page of strings is there. */
static _Atomic uint64_t no_pages[64];

static bool refuse_pages(const struct seep_view *grown, uint64_t from,
                         uint64_t end, uint64_t most)
{
    (void)grown;
    (void)from;
    (void)end;
    (void)most;
    return false;
}

static void a_string_on_a_full_disk_is_empty_and_counted(void **state)
{
    const struct seep_view_room full = {no_pages, refuse_pages};
    uint64_t used = atomic_load(&view.header->string_bytes_used);

    (void)state;
    assert_true(view.header->file_bytes / SEEP_PAGE_BYTES <= 64 * 64);
    view.room = &full;
    assert_int_equal(seep_modules_string(&view, "lost"), 0);
    assert_int_equal(counter(SEEP_COUNT_STRINGS_FULL), 1);
    assert_int_equal(atomic_load(&view.header->string_bytes_used), used);
}

/* As another thread may while this one waits for a page. */
static bool write_another_string(const struct seep_view *grown, uint64_t from,
                                 uint64_t end, uint64_t most)
{
    const struct seep_view here = view;

    (void)grown;
    (void)from;
    (void)end;
    (void)most;
    view.room = NULL;
    if (atomic_load(&here.header->string_bytes_used) == 1) {
        seep_modules_string(&view, "other");
    }
    view.room = here.room;
    return true;
}

static void strings_that_are_written_at_once_lie_apart(void **state)
{
    const struct seep_view_room growing = {no_pages, write_another_string};
    seep_string string;

    (void)state;
    assert_int_equal(atomic_load(&view.header->string_bytes_used), 1);
    view.room = &growing;
    string = seep_modules_string(&view, "mine");
    assert_string_equal(seep_view_string(&view, 1), "other");
    assert_int_equal(string, 1 + sizeof("other"));
    assert_string_equal(seep_view_string(&view, string), "mine");
    assert_int_equal(atomic_load(&view.header->string_bytes_used),
                     1 + sizeof("other") + sizeof("mine"));
}

static void a_frame_of_no_code_that_is_there_has_no_traits(void **state)
{
    uint32_t code = intern(1, "serve.py", "<module>", 1);

    (void)state;
    assert_int_equal(seep_codes_traits(&view, seep_codes_frame(code, 3)),
                     SEEP_CODE_IS_USERS | SEEP_CODE_IS_MODULE);
    assert_int_equal(
        seep_codes_traits(&view, seep_codes_frame(view.code_capacity, 3)), 0);
    assert_int_equal(seep_codes_traits(&view, seep_modules_frame(&view, 0, 9)),
                     0);
}

static void a_line_that_does_not_fit_is_not_known(void **state)
{
    static const struct {
        int64_t line;
        uint64_t known;
    } cases[] = {
        {123, 123},
        {SEEP_FRAME_LINE_MASK, SEEP_FRAME_LINE_MASK},
        {SEEP_FRAME_LINE_MASK + 1, 0},
        {INT64_MAX, 0},
        {-1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t frame = seep_codes_frame(7, cases[i].line);

        assert_true((frame & SEEP_FRAME_IS_CODE) != 0);
        assert_int_equal(frame & SEEP_FRAME_LINE_MASK, cases[i].known);
        assert_int_equal((frame & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS,
                         7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(code_that_came_back_elsewhere_is_the_same),
        CASE(a_module_is_known_again),
        CASE(a_full_table_of_modules_refuses_and_counts),
        CASE(each_part_of_a_name_tells_codes_apart),
        CASE(the_cache_knows_what_was_interned_until_it_forgets),
        CASE(a_file_is_written_once_for_all_of_its_code),
        CASE(a_full_table_refuses_and_remembers_that_it_did),
        CASE(names_without_room_are_empty),
        CASE(files_of_one_hash_keep_their_names),
        CASE(a_string_on_a_full_disk_is_empty_and_counted),
        CASE(strings_that_are_written_at_once_lie_apart),
        CASE(a_frame_of_no_code_that_is_there_has_no_traits),
        cmocka_unit_test(a_line_that_does_not_fit_is_not_known),
#undef CASE
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
