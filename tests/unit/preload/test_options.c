/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SEEP_* variables: what is no value takes its default. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/place.h"
#include "base/variables.h"
#include "format/layout.h"
#include "preload/options.h"

static void read_one(char *variable, const char *base_name)
{
    char *environment[] = {variable, NULL};

    memset(&seep_options, 0, sizeof(seep_options));
    seep_options_read(environment, base_name);
}

static void the_defaults_are_sampled_and_begin_dense(void **state)
{
    (void)state;
    memset(&seep_options, 0, sizeof(seep_options));
    seep_options_read(NULL, "python3");
    assert_int_equal(seep_options.sample_log2, 19);
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DENSE_BYTES);
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
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DENSE_BYTES);
    read_one("SEEP_SAMPLE=128KiB", "x");
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DEFAULT_BYTES);
    assert_false(seep_options.size_given);
    read_one("SEEP_SIZE=64MiB", "x");
    assert_true(seep_options.size_given);
    read_one("SEEP_SAMPLE=16KiB", "x");
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DENSE_BYTES);
}

static void a_budget_is_a_share_in_percent(void **state)
{
    static const char *const bad[] = {"SEEP_BUDGET=0",    "SEEP_BUDGET=-1",
                                      "SEEP_BUDGET=101%", "SEEP_BUDGET=%",
                                      "SEEP_BUDGET=1 K",  "SEEP_BUDGET=little"};

    (void)state;
    read_one("SEEP_BUDGET=1", "x");
    assert_int_equal(seep_options.budget, 1000);
    read_one("SEEP_BUDGET=0.25%", "x");
    assert_int_equal(seep_options.budget, 250);
    assert_true(seep_options.paced);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char variable[64];

        strcpy(variable, bad[i]);
        read_one(variable, "x");
        assert_int_equal(seep_options.budget, 0);
        assert_string_equal(seep_options.rejected + strlen(bad[i]), "\n");
    }
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
    assert_int_equal(seep_options.size_bytes, SEEP_LAYOUT_DENSE_BYTES);
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

static void a_folder_needs_no_slash(void **state)
{
    (void)state;
    read_one("SEEP_OUT=/tmp", "x");
    assert_string_equal(seep_options.pattern, "/tmp/seep.%e.%p.%t.seep");
    read_one("SEEP_OUT=/tmp/none-such", "x");
    assert_string_equal(seep_options.pattern, "/tmp/none-such");
}

static void what_is_not_understood_is_kept(void **state)
{
    static const char *const cases[][2] = {
        {"SEEP_SAMPLE=exact", "SEEP_SAMPLE=exact\n"},
        {"SEEP_SAMPLE=0", "SEEP_SAMPLE=0\n"},
        {"SEEP_SAMPLE=1.5M", ""},
        {"SEEP_SAMPL=1", "SEEP_SAMPL\n"},
        {"SEEP_EXACT=secret", "SEEP_EXACT\n"},
        {"SEEP_SIZE=1", "SEEP_SIZE=1\n"},
        {"SEEP_PYTHON=yes", "SEEP_PYTHON=yes\n"},
        {"SEEP_CUDA=on", "SEEP_CUDA=on\n"},
        {"SEEP_UNWINDER=fp", "SEEP_UNWINDER=fp\n"},
        {"SEEP_STACKS=deep", "SEEP_STACKS=deep\n"},
        {"SEEP_OUT_ANY=true", "SEEP_OUT_ANY=true\n"},
        {"SEEP_VERBOSE=a\nb", "SEEP_VERBOSE=a\n"},
        {"SEEP_FLOOR=some", "SEEP_FLOOR=some\n"},
        {"SEEP_KEEP=0", "SEEP_KEEP=0\n"},
        {"SEEP_PYTHON=", ""},
        {"SEEP_PYTHON=frames", ""},
        {"SEEP_CUDA=0", ""},
        {"SEEP_LABELS=a=b", ""},
        {"SEEP_PATTERNS=/x", ""},
        {"SEEP_TEST_LONG=1", ""},
        {"SEEP_SERVICE_HOST=10.0.0.1", ""},
        {"SEEP_PORT_9100_TCP=tcp://10.0.0.1:9100", ""},
        {"SEEPAGE=1", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char variable[64];

        strcpy(variable, cases[i][0]);
        read_one(variable, "x");
        assert_string_equal(seep_options.rejected, cases[i][1]);
    }
    seep_place_floor = (struct seep_place_floor){0};
}

static void very_much_that_is_not_understood_is_cut(void **state)
{
    static char names[40][32];
    char *environment[41] = {0};

    (void)state;
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "SEEP_NONSENSE_NUMBER_%d=1", i);
        environment[i] = names[i];
    }
    memset(&seep_options, 0, sizeof(seep_options));
    seep_options_read(environment, "x");
    assert_in_range(strlen(seep_options.rejected), 400,
                    sizeof(seep_options.rejected) - 1);
}

static void how_much_is_kept_and_left_free_is_asked(void **state)
{
    (void)state;
    read_one("SEEP_KEEP=20,1GiB", "x");
    assert_int_equal(seep_options.keep.file_count, 20);
    read_one("SEEP_FLOOR=10%", "x");
    assert_int_equal(seep_options.keep.file_count,
                     seep_place_keep_default.file_count);
    assert_int_equal(seep_place_floor.percent, 10);
    read_one("SEEP_FLOOR=2GiB", "x");
    assert_int_equal(seep_place_floor.bytes, UINT64_C(2) << 30);
    seep_place_floor = (struct seep_place_floor){0};
}

/* What a script calls on its way is left out, unless it was asked for. */
static void the_command_itself_is_no_helper(void **state)
{
    char variable[64];

    (void)state;
    read_one("SEEP_OUT=/x", "readlink");
    assert_true(seep_options.skipped);
    assert_int_equal(seep_options.role, SEEP_REGION_ANY);
    snprintf(variable, sizeof(variable), "SEEP_COMMAND_PID=%010d", getpid());
    read_one(variable, "readlink");
    assert_false(seep_options.skipped);
    assert_int_equal(seep_options.role, SEEP_REGION_COMMAND);
    read_one(variable, "bash");
    assert_true(seep_options.skipped);
    snprintf(variable, sizeof(variable), "SEEP_COMMAND_PID=%d", getpid() + 1);
    read_one(variable, "readlink");
    assert_true(seep_options.skipped);
    assert_int_equal(seep_options.role, SEEP_REGION_OTHER);
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

/* Also those that only the command and tests read, and Kubernetes' own. */
static void what_means_something_to_anybody_is_not_rejected(void **state)
{
#define AS_TEXT(name) name "=",
    static const char *const known[] = {
        SEEP_VARIABLES_OF_OTHERS(AS_TEXT) "SEEP_TEST_LONG=1",
        "SEEP_PORT_9100_TCP=x",
        "SEEP_METRICS_SERVICE_HOST=x",
    };
    static const char *const unknown[] = {
        "SEEP_SUPPRESSION=", "SEEP_TES=", "SEEP_SERVICE="};
    char variable[64];

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        strcpy(variable, known[i]);
        read_one(variable, "x");
        assert_string_equal(seep_options.rejected, "");
    }
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        strcpy(variable, unknown[i]);
        read_one(variable, "x");
        assert_string_not_equal(seep_options.rejected, "");
    }
}

static void a_command_that_is_no_number_is_anybody(void **state)
{
    char variable[64];

    (void)state;
    read_one("SEEP_COMMAND_PID=x", "x");
    assert_int_equal(seep_options.role, SEEP_REGION_ANY);
    read_one("SEEP_COMMAND_PID=1", "x");
    assert_int_equal(seep_options.role, SEEP_REGION_OTHER);
    snprintf(variable, sizeof(variable), "SEEP_COMMAND_PID=%d", (int)getpid());
    read_one(variable, "x");
    assert_int_equal(seep_options.role, SEEP_REGION_COMMAND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_sampled_and_begin_dense),
        cmocka_unit_test(a_sample_of_one_is_exact_and_large),
        cmocka_unit_test(what_is_no_size_takes_the_default),
        cmocka_unit_test(a_budget_is_a_share_in_percent),
        cmocka_unit_test(stacks_are_short_if_that_is_the_word),
        cmocka_unit_test(shells_and_launchers_are_skipped_unless_asked_for),
        cmocka_unit_test(a_folder_takes_the_default_name_in_it),
        cmocka_unit_test(a_folder_needs_no_slash),
        cmocka_unit_test(what_is_not_understood_is_kept),
        cmocka_unit_test(very_much_that_is_not_understood_is_cut),
        cmocka_unit_test(how_much_is_kept_and_left_free_is_asked),
        cmocka_unit_test(the_command_itself_is_no_helper),
        cmocka_unit_test(a_path_that_does_not_fit_is_no_path),
        cmocka_unit_test(how_much_of_python_is_looked_at_is_one_word),
        cmocka_unit_test(how_much_of_the_driver_is_looked_at_is_one_word),
        cmocka_unit_test(what_means_something_to_anybody_is_not_rejected),
        cmocka_unit_test(a_command_that_is_no_number_is_anybody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
