/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frame is the user's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "reader/report/build.h"
#include "reader/symbols/where.h"

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

/* Of frames that follow each other, until the next call. */
static const struct seep_report_frame **
list(const struct seep_report_frame *frames, size_t count)
{
    static const struct seep_report_frame *each[8];

    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++) {
        each[i] = &frames[i];
    }
    return each;
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

/* The mapping of a stack, innermost first: OBJECT:FUNCTION, or a line of Python
 * where there is no object. @return "library allocator"; "" of none */
static const char *pool_of(const char *const *stack)
{
    static char text[128];
    struct seep_report_frame frames[8];
    struct seep_where_pool pool;
    char objects[8][64];
    size_t count = 0;

    for (; stack[count] != NULL; count++) {
        const char *colon = strchr(stack[count], ':');

        snprintf(objects[count], sizeof(objects[count]), "/venv/%.*s",
                 (int)(colon - stack[count]), stack[count]);
        frames[count] = frame(objects[count], colon + 1);
        if (colon == stack[count]) {
            frames[count].python = true;
            frames[count].module = "";
        }
    }
    if (!seep_where_is_pool(list(frames, count), count, &pool)) {
        return "";
    }
    snprintf(text, sizeof(text), "%s %s", pool.library, pool.allocator);
    return text;
}

#define POOL_OF(...) pool_of((const char *const[]){__VA_ARGS__, NULL})
#define POLARS "_polars_runtime.abi3.so:"
#define ARROW "libarrow.so.2600:"

static void an_allocator_inside_a_library_is_known_by_its_names(void **state)
{
    (void)state;
    assert_string_equal(
        POOL_OF(POLARS "_rjem_je_pages_map", POLARS "polars::f", ":step"),
        "polars jemalloc");
    assert_string_equal(
        POOL_OF(ARROW "unix_mmap.constprop.0", ARROW "_mi_prim_alloc", ":step"),
        "pyarrow mimalloc");
    assert_string_equal(
        POOL_OF("libarrow.so.1500:je_arrow_private_je_pages_map", ":step"),
        "pyarrow jemalloc");
    assert_string_equal(
        POOL_OF("_duckdb.cpython-311.so:duckdb_je_pages_map", ":step"),
        "duckdb jemalloc");
    /* of a library that nobody has heard of */
    assert_string_equal(POOL_OF("libx.so:mi_arena_reserve", "libx.so:f"),
                        "libx.so mimalloc");
    assert_string_equal(POOL_OF("libc.so.6:mmap", "libx.so:os_map",
                                "libx.so:_rjem_malloc", ":step"),
                        "libx.so jemalloc");
    /* stripped: a library that is known to have one has no other use of it */
    assert_string_equal(POOL_OF(ARROW, ":step"), "pyarrow mimalloc");
    assert_string_equal(POOL_OF(POLARS, ":step"), "polars jemalloc");
}

static void other_mappings_are_of_who_asked_for_them(void **state)
{
    (void)state;
    /* polars maps stacks for deep recursion */
    assert_string_equal(
        POOL_OF(POLARS "stacker::grow", POLARS "polars::f", ":step"), "");
    /* it called another library, whose mapping it is */
    assert_string_equal(POOL_OF("libx.so:f", POLARS "_rjem_malloc", ":step"),
                        "");
    assert_string_equal(POOL_OF("libx.so:", ":step"), "");
    assert_string_equal(POOL_OF("libx.so:f", "libx.so:g", ":step"), "");
    assert_string_equal(POOL_OF("libpython3.11.so.1.0:_PyObject_Arena"), "");
    assert_string_equal(POOL_OF(":step"), "");
    assert_string_equal(POOL_OF("libc.so.6:mmap"), "");
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
    assert_int_equal(seep_where_pick(list(frames, 4), 4), 2);
    assert_int_equal(seep_where_pick(list(frames, 2), 2), 0);
    with_python[1].python = true;
    assert_int_equal(seep_where_pick(list(with_python, 2), 2), 1);
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
    assert_int_equal(seep_where_pick(list(frames, 4), 4), 2);
    assert_int_equal(seep_where_pick(list(frames, 1), 1), 0);
}

static void whose_a_file_of_python_is_stands_in_its_path(void **state)
{
    static const struct {
        const char *file;
        enum seep_python_origin origin;
        const char *tail;
        const char *module;
    } files[] = {
        {"/srv/app/serve.py", SEEP_PYTHON_USER, "serve.py", "serve.py"},
        {"serve.py", SEEP_PYTHON_USER, "serve.py", "serve.py"},
        {"/srv/app/core/__init__.py", SEEP_PYTHON_USER, "core/__init__.py",
         "core"},
        {"__main__.py", SEEP_PYTHON_USER, "__main__.py", "__main__.py"},
        {"/srv/python3.11/serve.py", SEEP_PYTHON_USER, "serve.py", "serve.py"},
        {"/srv/lib/python3.x/serve.py", SEEP_PYTHON_USER, "serve.py",
         "serve.py"},
        {"/usr/lib/python3.11/json/decoder.py", SEEP_PYTHON_LIBRARY,
         "json/decoder.py", "json"},
        {"lib/python3.13t/json/decoder.py", SEEP_PYTHON_LIBRARY,
         "json/decoder.py", "json"},
        {"/opt/lib/python311.zip/queue.py", SEEP_PYTHON_LIBRARY, "queue.py",
         "queue.py"},
        {"/usr/lib/python3/dist-packages/numpy/core/fromnumeric.py",
         SEEP_PYTHON_PACKAGE, "numpy/core/fromnumeric.py", "numpy"},
        {"/v/lib/python3.11/site-packages/torch/nn/modules/module.py",
         SEEP_PYTHON_PACKAGE, "torch/nn/modules/module.py", "torch"},
        {"/v/bin/gunicorn", SEEP_PYTHON_COMMAND, "gunicorn", "gunicorn"},
        {"/v/bin/serve.py", SEEP_PYTHON_USER, "serve.py", "serve.py"},
        {"<frozen importlib._bootstrap>", SEEP_PYTHON_FROZEN,
         "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"},
        {"<string>", SEEP_PYTHON_TEXT, "<string>", "<string>"},
        {"", SEEP_PYTHON_NAMELESS, "", ""},
        {"/", SEEP_PYTHON_USER, "", ""},
        {"site-packages/", SEEP_PYTHON_PACKAGE, "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char module[64];

        assert_int_equal(seep_where_python_origin(files[i].file),
                         files[i].origin);
        assert_string_equal(seep_where_python_tail(files[i].file),
                            files[i].tail);
        seep_where_python_module(files[i].file, module, sizeof(module));
        assert_string_equal(module, files[i].module);
    }
}

static struct seep_report_frame python(const char *file, const char *function)
{
    struct seep_report_frame f = frame("", function);

    f.python = true;
    f.file = file;
    f.line = 31;
    return f;
}

#define LIBRARY "/usr/lib/python3.11/"
#define PACKAGES "/venv/lib/python3.11/site-packages/"

static void the_users_own_line_wins(void **state)
{
    const struct seep_report_frame frames[] = {
        frame("/opt/libtorch_cpu.so", "at::empty"),
        python(LIBRARY "json/decoder.py", "decode"),
        python(PACKAGES "torch/nn/modules/module.py", "_call_impl"),
        python("<string>", "__init__"),
        python("/srv/model.py", "forward"),
        python("/srv/serve.py", "handle"),
        python("/venv/bin/gunicorn", "<module>"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(list(frames, 7), 7), 4);
    assert_int_equal(seep_where_pick(list(frames, 4), 4), 3);
    assert_int_equal(seep_where_pick(list(frames, 3), 3), 2);
    assert_int_equal(seep_where_pick(list(frames, 2), 2), 1);
    assert_int_equal(seep_where_pick(list(frames, 1), 1), 0);
}

static void a_dataclass_of_a_package_is_the_packages_line(void **state)
{
    const struct seep_report_frame frames[] = {
        python("<string>", "<lambda>"),
        python("<string>", "__create_fn__.<locals>.__init__"),
        frame("/usr/bin/python3.11", "_PyObject_MakeTpCall"),
        python(PACKAGES "serving/app.py", "handle"),
        python("<string>", "<module>"),
    };
    const struct seep_report_frame given[] = {
        python("<string>", "work"),
        python(PACKAGES "serving/app.py", "handle"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(list(frames, 4), 4), 3);
    /* What was given to python -c is a user's, also where it makes one. */
    assert_int_equal(seep_where_pick(list(frames, 5), 5), 4);
    assert_int_equal(seep_where_pick(list(frames, 2), 2), 0);
    assert_int_equal(seep_where_pick(list(given, 2), 2), 0);
}

static void the_file_of_a_package_is_told_with_its_folder(void **state)
{
    struct seep_report_frame f =
        python(LIBRARY "encodings/__init__.py", "<module>");
    char text[64];

    (void)state;
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "encodings/__init__.py:31 <module>");
    f.file = "__main__.py";
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "__main__.py:31 <module>");
    f.file = "/__init__.py";
    f.line = 0;
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "/__init__.py <module>");
    f.file = "/srv/serve.py";
    seep_where_format(&f, text, sizeof(text));
    assert_string_equal(text, "serve.py <module>");
}

static void assert_thread(const struct seep_report_frame *frames, size_t count,
                          const char *wanted)
{
    char text[SEEP_NAME_BYTES];

    seep_name_thread("", list(frames, count), count, text, sizeof(text));
    assert_string_equal(text, wanted);
}

static void a_thread_without_a_name_is_told_by_what_runs_in_it(void **state)
{
    const struct seep_report_frame server[] = {
        python(LIBRARY "selectors.py", "select"),
        python(LIBRARY "socketserver.py", "BaseServer.serve_forever"),
        python(LIBRARY "threading.py", "Thread.run"),
        python(LIBRARY "threading.py", "Thread._bootstrap"),
        frame("/lib/libc.so.6", "start_thread"),
    };
    const struct seep_report_frame first[] = {
        python(LIBRARY "encodings/__init__.py", "search_function"),
        frame("/usr/bin/python3.11", "Py_InitializeFromConfig"),
        frame("/lib/libc.so.6", "__libc_start_call_main"),
        frame("/usr/bin/python3.11", "_start"),
    };

    (void)state;
    assert_thread(server, 5, "thread of BaseServer.serve_forever");
    assert_thread(server + 2, 3, "a thread without a name");
    assert_thread(first, 4, "main");
    assert_thread(first, 3, "main");
    assert_thread(first, 2, "thread of search_function");
}

static void a_package_wins_over_the_command_that_started_it(void **state)
{
    const struct seep_report_frame frames[] = {
        python(PACKAGES "serving/app.py", "handle"),
        python("/venv/bin/gunicorn", "<module>"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(list(frames, 2), 2), 0);
}

/* serve.py:80 runs the loop: that it does is no news. */
static void who_started_an_event_loop_did_not_call_its_handlers(void **state)
{
    const struct seep_report_frame frames[] = {
        python(LIBRARY "json/decoder.py", "decode"),
        python(PACKAGES "starlette/routing.py", "app"),
        python(LIBRARY "asyncio/events.py", "Handle._run"),
        python(LIBRARY "asyncio/base_events.py", "run_forever"),
        python("/srv/serve.py", "main"),
    };
    const struct seep_report_frame own[] = {
        python(PACKAGES "starlette/routing.py", "app"),
        python("/srv/socketserver.py", "serve"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(list(frames, 5), 5), 1);
    /* Nobody's code ran inside: then who started it is better than nothing. */
    assert_int_equal(seep_where_pick(list(frames + 2, 3), 3), 2);
    assert_int_equal(seep_where_pick(list(own, 2), 2), 1);
}

/* python -c "from multiprocessing.spawn import spawn_main; spawn_main(...)" */
static void who_spawned_a_worker_did_not_call_its_code(void **state)
{
    const struct seep_report_frame frames[] = {
        python(PACKAGES "serving/worker.py", "<module>"),
        python("<frozen importlib._bootstrap>", "_find_and_load"),
        python(LIBRARY "multiprocessing/spawn.py", "_main"),
        python(LIBRARY "multiprocessing/spawn.py", "spawn_main"),
        python("<string>", "<module>"),
    };

    (void)state;
    assert_int_equal(seep_where_pick(list(frames, 5), 5), 0);
}

static void python_that_lost_its_names_is_not_the_answer(void **state)
{
    struct seep_report_frame frames[] = {
        frame("/usr/lib/libpython3.11.so.1.0", "PyDict_New"),
        python("", ""),
        frame("/opt/worker", "handle"),
        python("", "named"),
    };
    char text[64];

    (void)state;
    assert_int_equal(seep_where_pick(list(frames, 3), 3), 2);
    assert_int_equal(seep_where_pick(list(frames, 4), 4), 3);
    frames[1].line = 0;
    seep_where_format(&frames[1], text, sizeof(text));
    assert_string_equal(text, "Python ?");
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
        cmocka_unit_test(an_allocator_inside_a_library_is_known_by_its_names),
        cmocka_unit_test(other_mappings_are_of_who_asked_for_them),
        cmocka_unit_test(what_uses_memory_is_the_user),
        cmocka_unit_test(the_first_of_the_user_is_picked),
        cmocka_unit_test(without_a_user_what_asked_for_the_memory_is_picked),
        cmocka_unit_test(whose_a_file_of_python_is_stands_in_its_path),
        cmocka_unit_test(the_users_own_line_wins),
        cmocka_unit_test(a_dataclass_of_a_package_is_the_packages_line),
        cmocka_unit_test(the_file_of_a_package_is_told_with_its_folder),
        cmocka_unit_test(a_thread_without_a_name_is_told_by_what_runs_in_it),
        cmocka_unit_test(a_package_wins_over_the_command_that_started_it),
        cmocka_unit_test(who_started_an_event_loop_did_not_call_its_handlers),
        cmocka_unit_test(who_spawned_a_worker_did_not_call_its_code),
        cmocka_unit_test(python_that_lost_its_names_is_not_the_answer),
        cmocka_unit_test(as_much_as_is_known_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
