/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/fold, view_stacks, view_chain: stacks with Python frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_report.h"
#include "text/page.h"
#include "text/report.h"
#include "words/words.h"

#define TORCH "/opt/torch/lib/libtorch_cpu.so"
#define BRIDGE "/opt/torch/lib/libtorch_python.so"
#define PYTHON "/usr/bin/python3.11"

static struct fake_report fake;
static struct seep_report_frame frames[64];
static const struct seep_report_frame *list[64];

static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    memset(frames, 0, sizeof(frames));
    for (size_t i = 0; i < 64; i++) {
        list[i] = &frames[i];
    }
    fake.sites[0].frames = list;
    fake.sites[0].frame_count = 0;
    return 0;
}

static void add(bool python, const char *function, const char *file,
                uint32_t line, const char *module)
{
    frames[fake.sites[0].frame_count++] = (struct seep_report_frame){
        .python = python,
        .function = function,
        .file = file,
        .line = line,
        .module = module,
        .build_id = "",
        .offset = 0x1234,
    };
}

static void add_native(const char *function, const char *module, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(false, function, "", 0, module);
    }
}

static void add_python(const char *function, const char *file, uint32_t line)
{
    add(true, function, file, line, "");
}

/* What a tensor that a model's forward() makes looks like. */
static void add_forward(void)
{
    add_native("c10::alloc_cpu(unsigned long)", "/opt/torch/lib/libc10.so", 2);
    add_native("at::empty_cpu(long)", TORCH, 9);
    add_native("THPVariable_zeros(_object*)", BRIDGE, 1);
    add_native("_PyObject_Call", PYTHON, 2);
    add_python("forward", "/srv/app/model.py", 12);
    add_native("torch::autograd::apply()", BRIDGE, 1);
    add_native("_PyEval_Vector", PYTHON, 3);
    add_python("handle", "/srv/app/serve.py", 31);
    add_native("_PyEval_Vector", PYTHON, 1);
    add_python("<module>", "/srv/app/serve.py", 80);
    add_native("Py_RunMain", PYTHON, 4);
    add_native("__libc_start_main", "/lib/libc.so.6", 2);
    fake.sites[0].where_frame = 14;
    fake.sites[0].where = "model.py:12 forward";
}

static char *print(size_t columns, const struct seep_text_options *options)
{
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = columns};

    seep_view_text_report(&page, &fake.report, options);
    fclose(page.file);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void native_frames_between_python_frames_are_folded(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    add_forward();
    char *text = print(200, &options);
    assert_has(text,
               "    c10::alloc_cpu(unsigned long)  (libc10.so+0x1234)\n"
               "    c10::alloc_cpu(unsigned long)  (libc10.so+0x1234)\n"
               "    at::empty_cpu(long)  (libtorch_cpu.so+0x1234)\n"
               "    … 7 frames in libtorch_cpu.so …\n"
               "    at::empty_cpu(long)  (libtorch_cpu.so+0x1234)\n"
               "    THPVariable_zeros(_object*)  (libtorch_python.so+0x1234)\n"
               "    … 2 frames in python3.11 …\n"
               "  > /srv/app/model.py:12 forward\n"
               "    … 4 frames in python3.11, libtorch_python.so …\n"
               "    /srv/app/serve.py:31 handle\n"
               "    … 1 frame in python3.11 …\n"
               "    /srv/app/serve.py:80 <module>\n"
               "    … 6 frames in python3.11, libc.so.6 …\n\n");
    free(text);
}

static void a_stack_is_whole_where_that_is_asked_for(void **state)
{
    struct seep_text_options options = {
        .site_limit = 10, .stacks = true, .whole_stacks = true};

    (void)state;
    add_forward();
    char *text = print(200, &options);
    assert_null(strstr(text, " frames in "));
    assert_has(text, "__libc_start_main");
    free(text);
}

static void
a_row_of_several_stacks_shows_the_largest_and_its_thread(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    add_forward();
    fake.sites[0].thread = "worker\033-1";
    char *text = print(200, &options);
    assert_has(text,
               "  the largest of 3 stacks, 500 MiB live (--by stack lists "
               "them)\n  thread worker\\x1b-1\n");
    free(text);
    fake.sites[0].stack_count = 1;
    fake.sites[0].thread = "";
    text = print(200, &options);
    assert_null(strstr(text, "the largest of"));
    assert_null(strstr(text, "  thread "));
    free(text);
}

static void the_stacks_of_a_line_are_asked_for_by_its_id(void **state)
{
    struct seep_text_options options = {
        .site_limit = 10, .stacks = true, .site_id = "feedbeef"};

    (void)state;
    add_forward();
    fake.report.by = SEEP_BY_STACK;
    strcpy(fake.sites[0].line_id, "feedbeef00112233");
    char *text = print(200, &options);
    assert_has(text, "\nsite 3f9a0011  leak");
    assert_null(strstr(text, "\nsite 77aa0011"));
    free(text);
}

/* The row is named by what it stands for, and by the most of it. */
static void a_row_of_a_module_or_a_thread_tells_its_largest_place(void **state)
{
    static const enum seep_grouping groupings[] = {SEEP_BY_MODULE,
                                                   SEEP_BY_THREAD};

    (void)state;
    add_forward();
    for (size_t i = 0; i < 2; i++) {
        fake.report.by = groupings[i];
        fake.sites[0].where = "loader";
        char *text = seep_words_chain(&fake.report, &fake.sites[0]);
        assert_ptr_equal(
            strstr(text, "loader: model.py:12 forward > THPVariable_zeros"),
            text);
        free(text);
    }
    fake.report.by = SEEP_BY_MODULE;
    fake.sites[0].where_frame = 3; /* which would say it in its own way */
    char *native = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_ptr_equal(strstr(native, "loader: at::empty_cpu in libtorch_cpu"),
                     native);
    free(native);
    fake.sites[0].where_frame = 14;
    fake.report.by = SEEP_BY_FUNCTION;
    fake.sites[0].where = "model.py forward";
    char *text = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_ptr_equal(strstr(text, "model.py forward > THPVariable_zeros"),
                     text);
    free(text);
}

/* Nothing else tells of it. */
static void a_native_stack_is_not_folded(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    add_native("_PyEval_EvalFrameDefault", PYTHON, 30);
    fake.sites[0].where_frame = 3;
    char *text = print(80, &options);
    assert_null(strstr(text, " frames in "));
    free(text);
}

static void rows_are_called_what_they_are(void **state)
{
    struct seep_text_options options = {.site_limit = 1};

    (void)state;
    add_forward();
    fake.report.by = SEEP_BY_MODULE;
    fake.report.verdict.growing_count = 2;
    char *text = print(200, &options);
    assert_has(text, "the rest at 1 other module.");
    assert_has(text, " and 1 more module (--sites 0 shows all)\n");
    free(text);
    fake.report.site_total = 9;
    fake.report.by = SEEP_BY_THREAD;
    text = print(200, &options);
    assert_has(text, " and 8 more threads (");
    free(text);
}

/* One of them can be longer than all else of a stack. */
static void a_wide_name_of_cplusplus_loses_its_arguments(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    add_native("at::empty(c10::optional<c10::Layout>, c10::optional<bool>, "
               "c10::optional<c10::MemoryFormat>)",
               TORCH, 1);
    add_native("std::map<void*, std::pair<void*, int>, std::less<void*> >::at("
               "void* const&)",
               TORCH, 1);
    add_native("operator new(unsigned long)", TORCH, 1);
    add_python("handle", "/srv/serve.py", 31);
    fake.sites[0].where_frame = 3;
    char *text = print(80, &options);
    assert_has(text, "    at::empty  (libtorch_cpu.so+0x1234)\n"
                     "    std::map::at  (libtorch_cpu.so+0x1234)\n"
                     "    operator new(unsigned long)  (libtorch_cpu.so");
    free(text);
    text = print(200, &options);
    assert_has(text, "c10::optional<c10::MemoryFormat>)  (lib");
    free(text);
    options.whole_stacks = true;
    text = print(80, &options);
    assert_has(text, "c10::optional<c10::MemoryFormat>)  (lib");
    free(text);
}

static void a_wide_path_loses_its_first_folders(void **state)
{
    struct seep_text_options options = {.site_limit = 10, .stacks = true};
    const char *path = "/build/of/python-3.11/Objects/with/folders/unicode.c";
    const char *mine = "/srv/a/folder/that/is/the/users/own/and/wide/"
                       "enough/to/go/over/the/page.py";

    (void)state;
    add(false, "PyUnicode_New", path, 1000, "/usr/lib/libpython3.11.so.1.0");
    add(false, "PyUnicode_New", "/unicode_object_of_a_wide_name_that_stays.c",
        1000, "/usr/lib/libpython3.11.so.1.0");
    add_python("handle", mine, 31);
    fake.sites[0].where_frame = 2;
    char *text = print(80, &options);
    assert_has(text, "    PyUnicode_New  …/with/folders/unicode.c:1000  ("
                     "libpython3.11.so.1.0+0x1234)\n");
    assert_has(text, "  /unicode_object_of_a_wide_name_that_stays.c:1000  (");
    assert_has(text, mine);
    free(text);
    options.whole_stacks = true;
    text = print(80, &options);
    assert_has(text, path);
    free(text);
}

static void every_frame_is_in_one_piece(void **state)
{
    struct seep_fold_piece pieces[64];

    (void)state;
    add_forward();
    for (size_t count = 0; count <= 29; count++) {
        for (size_t where = 0; where <= count; where += 7) {
            size_t next = 0;

            fake.sites[0].frame_count = count;
            fake.sites[0].where_frame = where;
            size_t pieces_count = seep_fold(&fake.sites[0], pieces);
            for (size_t i = 0; i < pieces_count; i++) {
                assert_int_equal(pieces[i].first, next);
                assert_true(pieces[i].count > 0);
                next += pieces[i].count;
            }
            assert_int_equal(next, count);
        }
    }
}

static void a_fold_names_the_objects_with_most_of_it(void **state)
{
    (void)state;
    add_native("f", "/a/one.so", 1);
    add_native("f", "/a/two.so", 2);
    add_native("f", "/a/three.so", 3);
    add_native("f", "", 2);
    char *text = seep_fold_words(list, 8);
    assert_string_equal(text, "8 frames in three.so, two.so and 2 more");
    free(text);
    text = seep_fold_words(list, 1);
    assert_string_equal(text, "1 frame in one.so");
    free(text);
    text = seep_fold_words(list + 6, 2);
    assert_string_equal(text, "2 frames in no object");
    free(text);
}

/* More objects than are kept apart: none is written past the end. */
static void a_fold_of_many_objects_is_counted_to_its_limit(void **state)
{
    static char names[40][8];

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "/o%zu", i);
        add_native("f", names[i], 1);
    }
    char *text = seep_fold_words(list, 40);
    assert_string_equal(text, "40 frames in o0, o1 and more");
    free(text);
}

static void the_line_goes_from_python_to_the_object_that_allocates(void **state)
{
    (void)state;
    add_forward();
    char *text = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_string_equal(text, "model.py:12 forward > THPVariable_zeros > "
                              "libc10 < libtorch_python < serve.handle < "
                              "serve.<module>");
    free(text);
}

/* The user's line is not the innermost one of Python. */
static void the_line_tells_what_the_users_line_called(void **state)
{
    (void)state;
    add_native("scanstring_unicode", "/x/_json.cpython-311-x86_64.so", 2);
    add_native("_PyObject_Call", PYTHON, 2);
    add_python("JSONDecoder.raw_decode", "/usr/lib/python3.11/json/decoder.py",
               353);
    add_python("JSONDecoder.decode", "/usr/lib/python3.11/json/decoder.py",
               337);
    add_python("loads", "/usr/lib/python3.11/json/__init__.py", 346);
    add_native("_PyFunction_Vectorcall", PYTHON, 3);
    add_python("handle", "/srv/serve.py", 31);
    add_python("main", "/srv/serve.py", 80);
    fake.sites[0].where_frame = 10;
    fake.sites[0].where = "serve.py:31 handle";
    char *text = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_string_equal(text, "serve.py:31 handle > json.loads > … > "
                              "_json < main");
    free(text);
}

static void the_interpreters_own_memory_is_named_by_its_function(void **state)
{
    (void)state;
    add_native("PyDict_New", "/usr/lib/libpython3.12.so.1.0", 1);
    add_native("dict_new", "/usr/lib/libpython3.12.so.1.0", 1);
    add_python("put", "cache.py", 88);
    fake.sites[0].where_frame = 2;
    fake.sites[0].where = "cache.py:88 put";
    char *text = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_string_equal(text, "cache.py:88 put > PyDict_New > libpython3.12");
    free(text);
}

/* Six lines of it for every module would hide which modules they are. */
static void an_import_is_folded_into_what_it_runs(void **state)
{
    static const char importer[] = "<frozen importlib._bootstrap>";
    struct seep_text_options options = {.site_limit = 10, .stacks = true};

    (void)state;
    add_native("Dict::Load()", "/usr/lib/libdict.so", 1);
    add_python("<module>", "/usr/lib/torch/__init__.py", 218);
    add_native("_PyFunction_Vectorcall", PYTHON, 2);
    add_python("_load_unlocked", importer, 690);
    add_python("_find_and_load", importer, 1178);
    add_native("_PyFunction_Vectorcall", PYTHON, 2);
    add_python("<module>", "/srv/app.py", 1);
    fake.sites[0].where_frame = 8;
    fake.sites[0].where = "app.py:1 <module>";
    char *text = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_string_equal(text, "app.py:1 <module> > torch.<module> > … > "
                              "libdict");
    free(text);
    text = print(80, &options);
    assert_has(text, "/__init__.py:218 <module>\n"
                     "    … 6 frames in python3.11, importlib …\n"
                     "  > /srv/app.py:1 <module>\n");
    free(text);
    fake.sites[0].where_frame = 5; /* it is asked for by name */
    text = print(80, &options);
    assert_has(text, "  > <frozen importlib._bootstrap>:1178 _find_and_load\n");
    free(text);
}

static void names_of_python_that_are_odd_are_told(void **state)
{
    (void)state;
    add_python("", "", 0);
    add_python("<lambda>", "<string>", 1);
    add_python("_find_and_load", "<frozen importlib._bootstrap>", 1027);
    add_python("run", "__init__.py", 3);
    add_python("decorate.<locals>.<lambda>", "lib/other.py", 3);
    fake.sites[0].where_frame = 1;
    fake.sites[0].where = "<string>:1 <lambda>";
    char *text = seep_words_chain(&fake.report, &fake.sites[0]);
    assert_string_equal(text, "<string>:1 <lambda> > ? < __init__.run < "
                              "other.<lambda>");
    free(text);
    text = print(80,
                 &(struct seep_text_options){.site_limit = 10, .stacks = true});
    assert_has(text, "\n    ? ?\n  > <string>:1 <lambda>\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(native_frames_between_python_frames_are_folded,
                               fill),
        cmocka_unit_test_setup(a_stack_is_whole_where_that_is_asked_for, fill),
        cmocka_unit_test_setup(
            a_row_of_several_stacks_shows_the_largest_and_its_thread, fill),
        cmocka_unit_test_setup(the_stacks_of_a_line_are_asked_for_by_its_id,
                               fill),
        cmocka_unit_test_setup(
            a_row_of_a_module_or_a_thread_tells_its_largest_place, fill),
        cmocka_unit_test_setup(a_wide_path_loses_its_first_folders, fill),
        cmocka_unit_test_setup(a_native_stack_is_not_folded, fill),
        cmocka_unit_test_setup(rows_are_called_what_they_are, fill),
        cmocka_unit_test_setup(a_wide_name_of_cplusplus_loses_its_arguments,
                               fill),
        cmocka_unit_test_setup(every_frame_is_in_one_piece, fill),
        cmocka_unit_test_setup(a_fold_names_the_objects_with_most_of_it, fill),
        cmocka_unit_test_setup(a_fold_of_many_objects_is_counted_to_its_limit,
                               fill),
        cmocka_unit_test_setup(
            the_line_goes_from_python_to_the_object_that_allocates, fill),
        cmocka_unit_test_setup(the_line_tells_what_the_users_line_called, fill),
        cmocka_unit_test_setup(
            the_interpreters_own_memory_is_named_by_its_function, fill),
        cmocka_unit_test_setup(an_import_is_folded_into_what_it_runs, fill),
        cmocka_unit_test_setup(names_of_python_that_are_odd_are_told, fill),
    };

    seep_clean_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
