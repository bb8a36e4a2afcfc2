/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How an interpreter is found, and told which it is: names, versions, and what
 * it says of its own memory.
 */
#include "seep_test.h"

#include <string.h>
#include <unistd.h>

#include "capture/native/elf.h"
#include "capture/python/interpreter.h"
#include "python_world.h"

static void names_lead_to_the_version_and_its_types(void **state)
{
    (void)state;
    for (unsigned int minor = SEEP_PYTHON_MINOR_MIN;
         minor <= SEEP_PYTHON_MINOR_MAX; minor++) {
        struct seep_python_memory memory = {0};
        struct seep_python found;

        python_world_make(minor, 2);
        assert_int_equal(
            seep_python_symbols_find(python_world_lookup, NULL, &found),
            SEEP_PYTHON_ON);
        assert_int_equal(seep_python_check_types(&found, &memory),
                         SEEP_PYTHON_PROBATION);
        assert_int_equal(found.hex >> 16, 0x300 + minor);
        assert_memory_equal(&found.offsets, &world.python.offsets,
                            sizeof(found.offsets));
    }
}

static enum seep_python_state find_without(const char *missing,
                                           const char *extra)
{
    struct seep_python found;

    world.missing = missing;
    world.extra = extra;
    return seep_python_symbols_find(python_world_lookup, NULL, &found);
}

static void what_lacks_a_name_is_refused(void **state)
{
    (void)state;
    python_world_make(12, 1);
    assert_int_equal(find_without("PyCode_Type", NULL), SEEP_PYTHON_NONE);
    assert_int_equal(find_without("_PyRuntime", NULL), SEEP_PYTHON_SYMBOLS);
    assert_int_equal(find_without("Py_IsInitialized", NULL),
                     SEEP_PYTHON_SYMBOLS);
    assert_int_equal(find_without("_PyEval_EvalFrameDefault", NULL),
                     SEEP_PYTHON_ON);
    assert_int_equal(find_without(NULL, "_Py_NegativeRefcount"),
                     SEEP_PYTHON_DEBUG);
    world.minor = 7;
    assert_int_equal(find_without(NULL, NULL), SEEP_PYTHON_OLD);
}

static void other_versions_are_refused(void **state)
{
    static const struct {
        uint32_t hex;
        enum seep_python_state wanted;
    } cases[] = {
        {0x030700f0, SEEP_PYTHON_OLD},        {0x02071200, SEEP_PYTHON_OLD},
        {0x031000f0, SEEP_PYTHON_NEW},        {0x040000f0, SEEP_PYTHON_NEW},
        {0x030c00b4, SEEP_PYTHON_UNFINISHED}, {0x030c00c1, SEEP_PYTHON_ON},
        {0x030c00f0, SEEP_PYTHON_ON}};
    struct seep_python_offsets offsets;
    uint64_t words[WORLD_DEBUG_WORDS] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            seep_python_offsets_find(cases[i].hex, words, &offsets),
            cases[i].wanted);
    }
}

static void debug_offsets_must_be_those_of_the_table(void **state)
{
    (void)state;
    for (unsigned int minor = 13; minor <= SEEP_PYTHON_MINOR_MAX; minor++) {
        uint32_t hex = 0x030000f0U | minor << 16;
        struct seep_python_offsets offsets;
        uint64_t words[WORLD_DEBUG_WORDS];
        unsigned int refused = 0;

        assert_true(seep_python_offsets_words(minor) <
                    python_world_debug_words(minor, words));
        assert_int_equal(seep_python_offsets_find(hex, words, &offsets),
                         SEEP_PYTHON_ON);
        words[2] = 1;
        assert_int_equal(seep_python_offsets_find(hex, words, &offsets),
                         SEEP_PYTHON_FREE_THREADED);
        python_world_debug_words(minor == 13 ? 14 : 13, words);
        words[1] = hex;
        assert_int_equal(seep_python_offsets_find(hex, words, &offsets),
                         SEEP_PYTHON_OFFSETS);
        for (size_t i = 0; i < seep_python_offsets_words(minor); i++) {
            python_world_debug_words(minor, words);
            words[i] += UINT64_C(8) << 16;
            refused += seep_python_offsets_find(hex, words, &offsets) ==
                       SEEP_PYTHON_OFFSETS;
        }
        /* Cookie, version, free_threaded, and each word that is used. */
        assert_int_equal(refused, 21);
    }
}

static void symbols_are_those_that_the_loader_finds(void **state)
{
    struct seep_elf_symbols symbols;
    struct seep_elf_image image;
    size_t bytes = 0;

    (void)state;
    seep_objects_init();
    assert_true(seep_objects_find((uintptr_t)getpid, &image));
    assert_true(seep_elf_symbols_open(&image, &symbols));
    assert_true(seep_elf_symbols_find(&symbols, "getpid", &bytes) ==
                (uintptr_t)getpid);
    assert_true(bytes > 0);
    assert_true(seep_elf_symbols_find(&symbols, "no_such_name", NULL) == 0);
    assert_true(seep_elf_symbols_find(&symbols, "", NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lead_to_the_version_and_its_types),
        cmocka_unit_test(what_lacks_a_name_is_refused),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(debug_offsets_must_be_those_of_the_table),
        cmocka_unit_test(symbols_are_those_that_the_loader_finds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
