/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frame is the user's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reader/where.h"

static struct seep_report_frame frame(const char *module, const char *function)
{
    return (struct seep_report_frame){
        .module = module,
        .function = function,
        .file = "",
        .build_id = "",
        .offset = 0x1234,
    };
}

static bool is_user(const char *module, const char *function)
{
    struct seep_report_frame f = frame(module, function);

    return seep_where_is_user(&f);
}

static void what_stands_before_memory_is_not_the_user(void **state)
{
    (void)state;
    assert_false(is_user("/lib/x86_64-linux-gnu/libc.so.6", "strdup"));
    assert_false(is_user("/usr/lib/libstdc++.so.6.0.30", "foo"));
    assert_false(is_user("/opt/seep/libseep.so", "malloc"));
    assert_false(is_user("/usr/lib/libjemalloc.so.2", ""));
    assert_false(is_user("/usr/lib/libpython3.11.so.1.0", "main"));
    assert_false(is_user("/usr/bin/python3.11", "_PyEval_EvalFrameDefault"));
    assert_false(is_user("/usr/bin/python", "f"));
    assert_false(is_user("/usr/lib/libcuda.so.535.1", "cuMemAlloc_v2"));
    assert_false(is_user("worker", "operator new(unsigned long)"));
    assert_false(is_user("worker", "std::vector<int, std::allocator<int> >::"
                                   "push_back(int const&)"));
    assert_false(is_user("worker", "void std::vector<a, b<c> >::_M_realloc_"
                                   "insert<d>(e)"));
    assert_false(is_user("worker", "PyMem_RawMalloc"));
    assert_false(is_user("worker", "malloc"));
    assert_false(is_user("", ""));
}

static void what_uses_memory_is_the_user(void **state)
{
    (void)state;
    assert_true(is_user("/usr/bin/worker", "main"));
    assert_true(is_user("/usr/bin/worker", ""));
    assert_true(is_user("/usr/lib/libcurl.so.4", "Curl_open"));
    assert_true(is_user("/venv/torch/lib/libc10.so", "c10::alloc_cpu"));
    assert_true(is_user("/usr/lib/pythonic.so", "f"));
    assert_true(is_user("worker", "malloc_stats_of_mine"));
    assert_true(is_user("worker", "std::vector<int> mine::make<int>(int)"));
    assert_true(is_user("worker", "(anonymous namespace)::serve(int)"));
    assert_true(is_user("", "JIT:handler"));
}

static void the_first_of_the_user_is_picked(void **state)
{
    const struct seep_report_frame frames[] = {
        frame("/lib/libc.so.6", "strdup"),
        frame("worker", "operator new[](unsigned long)"),
        frame("worker", "handle"),
        frame("worker", "main"),
    };
    struct seep_report_frame with_python[] = {
        frame("worker", "handle"),
        frame("", "serve"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(frames, 4), 2);
    assert_int_equal(seep_where_pick(frames, 2), 0);
    with_python[1].python = true;
    assert_int_equal(seep_where_pick(with_python, 2), 1);
}

/* A python that holds its own interpreter has no other frames. */
static void without_a_user_what_asked_for_the_memory_is_picked(void **state)
{
    const struct seep_report_frame frames[] = {
        frame("/bin/python3.11", "_PyObject_Malloc"),
        frame("/bin/python3.11", ""),
        frame("/bin/python3.11", "PyByteArray_Resize"),
        frame("/bin/python3.11", "main"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(frames, 4), 2);
    assert_int_equal(seep_where_pick(frames, 1), 0);
}

static void as_much_as_is_known_is_said(void **state)
{
    char text[64];
    struct seep_report_frame f = frame("/usr/bin/worker", "handle");

    (void)state;
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "worker handle");
    f.file = "/src/serve.c";
    f.line = 31;
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "serve.c:31 handle");
    f = frame("/usr/bin/worker", "");
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "worker+0x1234");
    seep_where_format(&f, text, 5);
    assert_string_equal(text, "work");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_before_memory_is_not_the_user),
        cmocka_unit_test(what_uses_memory_is_the_user),
        cmocka_unit_test(the_first_of_the_user_is_picked),
        cmocka_unit_test(without_a_user_what_asked_for_the_memory_is_picked),
        cmocka_unit_test(as_much_as_is_known_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
