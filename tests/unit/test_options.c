/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SEEP_* variables: what is no value takes its default. */
#include <string.h>

#include "seep_test.h"

#include "format/layout.h"
#include "preload/options.h"

static void read_one(char *variable, const char *base_name)
{
    char *environment[] = {variable, NULL};

    memset(&seep_options, 0, sizeof(seep_options));
    seep_options_read(environment, base_name);
}

static void the_defaults_are_sampled_and_small(void **state)
{
    (void)state;
    memset(&seep_options, 0, sizeof(seep_options));
    seep_options_read(NULL, "python3");
    assert_int_equal(seep_options.sample_log2, 19);
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DEFAULT_BYTES);
    assert_string_equal(seep_options.pattern, "seep.%e.%p.%t.seep");
    assert_false(seep_options.pattern_given);
    assert_false(seep_options.skipped);
    assert_int_equal(seep_options.python, SEEP_OPTIONS_PYTHON_FRAMES);
    assert_int_equal(seep_options.unwinder, SEEP_UNWINDER_EH_FRAME);
}

static void a_sample_of_one_is_exact_and_large(void **state)
{
    (void)state;
    read_one("SEEP_SAMPLE=1", "x");
    assert_int_equal(seep_options.sample_log2, 0);
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_EXACT_BYTES);
    read_one("SEEP_SAMPLE=64KiB", "x");
    assert_int_equal(seep_options.sample_log2, 16);
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DEFAULT_BYTES);
    read_one("SEEP_SAMPLE=16KiB", "x");
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DENSE_BYTES);
}

static void stacks_are_short_if_that_is_the_word(void **state)
{
    (void)state;
    read_one("SEEP_STACKS=short", "x");
    assert_true(seep_options.short_stacks);
    read_one("SEEP_STACKS=long", "x");
    assert_false(seep_options.short_stacks);
}

static void what_is_no_size_takes_the_default(void **state)
{
    static const char *const bad[] = {"SEEP_SAMPLE=0",
                                      "SEEP_SAMPLE=", "SEEP_SAMPLE=often",
                                      "SEEP_SAMPLE=-1", "SEEP_SAMPLE=9999999G"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char variable[64];

        strcpy(variable, bad[i]);
        read_one(variable, "x");
        assert_int_equal(seep_options.sample_log2, 19);
    }
    read_one("SEEP_SIZE=1", "x");
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DEFAULT_BYTES);
}

static void shells_and_launchers_are_skipped_unless_asked_for(void **state)
{
    (void)state;
    read_one("SEEP_OUT=/x", "bash");
    assert_true(seep_options.skipped);
    read_one("SEEP_OUT=/x", "bashful");
    assert_false(seep_options.skipped);
    read_one("SEEP_SKIP=", "bash");
    assert_false(seep_options.skipped);
    read_one("SEEP_SKIP=cicc:ptxas", "ptxas");
    assert_true(seep_options.skipped);
}

static void a_folder_takes_the_default_name_in_it(void **state)
{
    (void)state;
    read_one("SEEP_OUT=/data/", "x");
    assert_string_equal(seep_options.pattern, "/data/seep.%e.%p.%t.seep");
    assert_true(seep_options.pattern_given);
    read_one("SEEP_OUT=/data/%p", "x");
    assert_string_equal(seep_options.pattern, "/data/%p");
    read_one("SEEP_OUT=", "x");
    assert_string_equal(seep_options.pattern, "seep.%e.%p.%t.seep");
    assert_false(seep_options.pattern_given);
}

/* A name that is cut short would be another file's. */
static void a_path_that_does_not_fit_is_no_path(void **state)
{
    char variable[2000] = "SEEP_OUT=/";

    (void)state;
    memset(variable + 10, 'x', sizeof(variable) - 11);
    variable[sizeof(variable) - 1] = '\0';
    read_one(variable, "x");
    assert_true(seep_options.skipped);
    memcpy(variable, "TMPDIR=//x", 10);
    read_one(variable, "x");
    assert_string_equal(seep_options.fallback_folder, "/tmp");
}

static void how_much_of_python_is_looked_at_is_one_word(void **state)
{
    (void)state;
    read_one("SEEP_PYTHON=objects", "x");
    assert_int_equal(seep_options.python, SEEP_OPTIONS_PYTHON_OBJECTS);
    read_one("SEEP_PYTHON=1", "x");
    assert_int_equal(seep_options.python, SEEP_OPTIONS_PYTHON_OBJECTS);
    read_one("SEEP_PYTHON=off", "x");
    assert_int_equal(seep_options.python, SEEP_OPTIONS_PYTHON_OFF);
    read_one("SEEP_PYTHON=0", "x");
    assert_int_equal(seep_options.python, SEEP_OPTIONS_PYTHON_OFF);
    read_one("SEEP_PYTHON=maybe", "x");
    assert_int_equal(seep_options.python, SEEP_OPTIONS_PYTHON_FRAMES);
}

static void how_much_of_the_driver_is_looked_at_is_one_word(void **state)
{
    static const struct {
        const char *variable;
        enum seep_options_cuda cuda;
    } words[] = {
        {"SEEP_CUDA=off", SEEP_OPTIONS_CUDA_OFF},
        {"SEEP_CUDA=0", SEEP_OPTIONS_CUDA_OFF},
        {"SEEP_CUDA=driver", SEEP_OPTIONS_CUDA_DRIVER},
        {"SEEP_CUDA=tensors", SEEP_OPTIONS_CUDA_TENSORS},
        {"SEEP_CUDA=", SEEP_OPTIONS_CUDA_TENSORS},
        {"SEEP_CUDA=yes please", SEEP_OPTIONS_CUDA_TENSORS},
        {"SEEP_CUDA=offend", SEEP_OPTIONS_CUDA_TENSORS},
        {"SEEP_CUDAS=off", SEEP_OPTIONS_CUDA_TENSORS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char variable[64];

        strcpy(variable, words[i].variable);
        read_one(variable, "x");
        assert_int_equal(seep_options.cuda, words[i].cuda);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_sampled_and_small),
        cmocka_unit_test(a_sample_of_one_is_exact_and_large),
        cmocka_unit_test(what_is_no_size_takes_the_default),
        cmocka_unit_test(stacks_are_short_if_that_is_the_word),
        cmocka_unit_test(shells_and_launchers_are_skipped_unless_asked_for),
        cmocka_unit_test(a_folder_takes_the_default_name_in_it),
        cmocka_unit_test(a_path_that_does_not_fit_is_no_path),
        cmocka_unit_test(how_much_of_python_is_looked_at_is_one_word),
        cmocka_unit_test(how_much_of_the_driver_is_looked_at_is_one_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
