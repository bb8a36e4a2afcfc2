/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SEEP_* variables: which are understood, and what was meant. */
#include "seep_test.h"

#include "options/variables.h"

static enum seep_variable_state check(const char *entry)
{
    struct seep_variable_words words;

    return seep_variable_check(entry, &words);
}

static void assert_all(const char *const *entries, size_t count,
                       enum seep_variable_state state)
{
    for (size_t i = 0; i < count; i++) {
        if (check(entries[i]) != state) {
            fail_msg("%s is %d", entries[i], check(entries[i]));
        }
    }
}

#define ASSERT_ALL(entries, state) \
    assert_all(entries, sizeof(entries) / sizeof((entries)[0]), state)

static void what_is_documented_is_understood(void **state)
{
    static const char *const fine[] = {
        "SEEP_OUT=/x",         "SEEP_OUT_ANY=1",         "SEEP_SAMPLE=1",
        "SEEP_SAMPLE=1MiB",    "SEEP_SAMPLE=",           "SEEP_SIZE=16MiB",
        "SEEP_FLOOR=5%",       "SEEP_FLOOR=2GiB",        "SEEP_LABELS=a=b",
        "SEEP_PYTHON=objects", "SEEP_PYTHON=frames",     "SEEP_PYTHON=0",
        "SEEP_CUDA=driver",    "SEEP_UNWINDER=eh_frame", "SEEP_STACKS=short",
        "SEEP_SKIP=",          "SEEP_VERBOSE=1",         "SEEP_KEEP=all",
        "SEEP_KEEP=500",       "SEEP_KEEP=2GiB",         "SEEP_KEEP=64,1GiB",
    };

    (void)state;
    ASSERT_ALL(fine, SEEP_VARIABLE_FINE);
}

static void a_value_that_would_be_ignored_is_told(void **state)
{
    static const char *const wrong[] = {
        "SEEP_SAMPLE=exact", "SEEP_SAMPLE=0",     "SEEP_SAMPLE=-1",
        "SEEP_SAMPLE=9999T", "SEEP_SIZE=1",       "SEEP_SIZE=2EiB",
        "SEEP_SIZE=large",   "SEEP_PYTHON=yes",   "SEEP_CUDA=offend",
        "SEEP_FLOOR=200%",   "SEEP_UNWINDER=fp",  "SEEP_STACKS=shor",
        "SEEP_OUT_ANY=yes",  "SEEP_VERBOSE=true", "SEEP_KEEP=none",
        "SEEP_KEEP=1GiB,64", "SEEP_KEEP=,",
    };
    (void)state;
    ASSERT_ALL(wrong, SEEP_VARIABLE_WRONG);
}

static void a_name_that_is_none_is_told_unless_it_is_anothers(void **state)
{
    static const char *const unknown[] = {"SEEP_SAMPL=1", "SEEP_EXACT=1",
                                          "SEEP_=1", "SEEP_OUTS=x"};
    static const char *const foreign[] = {
        "PATH=/bin",
        "SEEP_PRELOAD=/x",
        "SEEP_METRICS_PORT_9464_TCP=x",
        "SEEP_TEST_LONG=1",
        "SEEP",
        "SEEPAGE=1",
        "XSEEP_OUT=1",
        "SEEP_PORT=tcp://10.0.0.1:9464",
        "SEEP_SERVICE_HOST=10.0.0.1",
        "",
    };

    (void)state;
    ASSERT_ALL(unknown, SEEP_VARIABLE_UNKNOWN);
    ASSERT_ALL(foreign, SEEP_VARIABLE_FOREIGN);
}

static void what_was_meant_is_said(void **state)
{
    static const struct {
        const char *entry;
        const char *remedy;
    } meant[] = {
        {"SEEP_SAMPL=1", "did you mean SEEP_SAMPLE?"},
        {"SEEP_EXACT=1", "did you mean SEEP_SAMPLE=1?"},
        {"SEEP_SAMPLE=exact", "did you mean SEEP_SAMPLE=1?"},
        {"SEEP_SAMPLE=often",
         "expected a size such as 64KiB, or 1 for every block"},
        {"SEEP_PYTHON=object", "did you mean SEEP_PYTHON=objects?"},
        {"SEEP_PYTHON=yes", "expected objects, frames or off"},
        {"SEEP_XYZZY=1", "`man seep` lists them"},
    };
    struct seep_variable_words words = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
        seep_variable_check(meant[i].entry, &words);
        assert_string_equal(words.thing, meant[i].entry);
        assert_string_equal(words.remedy, meant[i].remedy);
    }
    assert_int_equal(seep_variable_check("SEEP_SAMPLE=1.5M", &words),
                     SEEP_VARIABLE_ROUNDED);
    assert_string_equal(words.reason, "rounded down to 1 MiB, a power of two");
    /* as a recording keeps it: a name that is none comes without its value */
    seep_variable_explain("SEEP_SAMPL", &words);
    assert_string_equal(words.remedy, "did you mean SEEP_SAMPLE?");
}

static void count(void *context, const struct seep_variable_words *words)
{
    assert_string_not_equal(words->reason, "");
    ++*(unsigned *)context;
}

static void an_environment_is_gone_through(void **state)
{
    char *environment[] = {(char[]){"SEEP_OUT=/x"}, (char[]){"SEEP_SIZE=1"},
                           (char[]){"HOME=/"}, (char[]){"SEEP_EXACT=1"}, NULL};
    unsigned told = 0;

    (void)state;
    seep_variables_visit(environment, count, &told);
    assert_int_equal(told, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_documented_is_understood),
        cmocka_unit_test(a_value_that_would_be_ignored_is_told),
        cmocka_unit_test(a_name_that_is_none_is_told_unless_it_is_anothers),
        cmocka_unit_test(what_was_meant_is_said),
        cmocka_unit_test(an_environment_is_gone_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
