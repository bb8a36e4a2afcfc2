/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was answered once needs no file. */
#include <stdio.h>
#include <string.h>

#include "reader/symbols/names.h"
#include "seep_test.h"

static const uint8_t build_id[] = {1, 2, 3, 4};
static const uint8_t other_build_id[] = {1, 2, 3, 5};
static const struct seep_symbol_module module = {"/no/such/library.so",
                                                 build_id, sizeof(build_id)};

static int open_memory(void **state)
{
    return seep_symbol_memory_open((struct seep_symbol_memory **)state);
}

static int close_memory(void **state)
{
    seep_symbol_memory_close(*state);
    return 0;
}

static void remember(struct seep_symbol_memory *memory, uint64_t offset,
                     const char *name)
{
    char text[64];
    struct seep_symbol_frame frames[] = {
        {.function = text, .file = "in.c", .line = 7, .inlined = true},
        {.function = "outer", .file = ""},
    };

    snprintf(text, sizeof(text), "%s", name);
    seep_symbol_memory_put(memory, seep_symbol_memory_key(&module), offset,
                           (struct seep_symbol_answer){frames, 2});
    memset(text, 'x', sizeof(text) - 1); /* it was copied */
}

/* The innermost function at @offset of @of, which has no file. */
static void check_answer(struct seep_symbol_memory *memory,
                         const struct seep_symbol_module *of, uint64_t offset,
                         const char *expected, size_t expected_count)
{
    struct seep_symboliser_options options = {.memory = memory};
    const struct seep_symbol_frame *frames;
    struct seep_symboliser *symboliser;
    size_t count;

    assert_int_equal(seep_symboliser_open(of, 1, &options, &symboliser), 0);
    assert_int_equal(
        seep_symboliser_resolve(symboliser, 0, offset, &frames, &count), 0);
    assert_int_equal(count, expected_count);
    assert_string_equal(frames[0].function, expected);
    seep_symboliser_close(symboliser);
}

static void what_was_answered_needs_no_file(void **state)
{
    remember(*state, 100, "inner");
    check_answer(*state, &module, 100, "inner", 2);
    check_answer(NULL, &module, 100, "", 1);
}

static void another_address_or_module_is_not_known(void **state)
{
    struct seep_symbol_module other = module;

    remember(*state, 100, "inner");
    check_answer(*state, &module, 101, "", 1);
    other.build_id = other_build_id;
    check_answer(*state, &other, 100, "", 1);
    other = module;
    other.path = "/no/other/library.so";
    check_answer(*state, &other, 100, "", 1);
}

static void a_module_without_a_build_id_is_not_remembered(void **state)
{
    struct seep_symbol_module nameless = module;

    (void)state;
    nameless.build_id_bytes = 0;
    assert_true(seep_symbol_memory_key(&nameless) == 0);
    assert_true(seep_symbol_memory_key(&module) != 0);
}

static void what_no_file_answered_is_asked_again(void **state)
{
    uint64_t key = seep_symbol_memory_key(&module);

    check_answer(*state, &module, 100, "", 1);
    assert_null(seep_symbol_memory_find(*state, key, 100));
}

static void an_answer_outlives_what_it_was_copied_from(void **state)
{
    struct seep_symboliser_options options = {.memory = *state};
    const struct seep_symbol_frame *frames;
    struct seep_symboliser *symboliser;
    size_t count;

    remember(*state, 100, "inner");
    assert_int_equal(seep_symboliser_open(&module, 1, &options, &symboliser),
                     0);
    assert_int_equal(
        seep_symboliser_resolve(symboliser, 0, 100, &frames, &count), 0);
    seep_symboliser_settle(symboliser);
    seep_symbol_memory_close(*state);
    *state = NULL;
    assert_string_equal(frames[0].function, "inner");
    assert_string_equal(frames[0].file, "in.c");
    assert_true(frames[0].inlined);
    seep_symboliser_close(symboliser);
}

static void when_it_is_full_it_begins_anew(void **state)
{
    uint64_t key = seep_symbol_memory_key(&module);

    for (uint64_t i = 0; i <= SEEP_SYMBOL_MEMORY_MOST; i++) {
        remember(*state, i, "inner");
    }
    assert_null(seep_symbol_memory_find(*state, key, 0));
    assert_non_null(
        seep_symbol_memory_find(*state, key, SEEP_SYMBOL_MEMORY_MOST));
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(name, open_memory, close_memory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_answered_needs_no_file),
        TEST(another_address_or_module_is_not_known),
        TEST(a_module_without_a_build_id_is_not_remembered),
        TEST(what_no_file_answered_is_asked_again),
        TEST(an_answer_outlives_what_it_was_copied_from),
        TEST(when_it_is_full_it_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
