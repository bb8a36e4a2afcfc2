/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of C++ and Rust, and names that nobody's compiler wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reader/symbols/names.h"

static void a_mangled_name_becomes_what_its_author_wrote(void **state)
{
    static const struct {
        const char *mangled;
        const char *expected;
    } names[] = {
        {"_Z3fooi", "foo(int)"},
        {"_ZN3foo3bazE", "foo::baz"},
        {"_ZN2at6native3addERKNS_6TensorEd",
         "at::native::add(at::Tensor const&, double)"},
        {"_ZNSt6vectorIiSaIiEE9push_backEOi",
         "std::vector<int, std::allocator<int> >::push_back(int&&)"},
        {"_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work()"},
        {"_ZN3FooC1Ev", "Foo::Foo()"},
        {"_ZN3FooC4Ev", "Foo::Foo()"},
        {"_Znwm", "operator new(unsigned long)"},
        {"_Z4workv.cold", "work() [clone .cold]"},
        {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
         "core::ptr::drop_in_place"},
        {"_ZN54_$LT$std..fs..File$u20$as$u20$std..os..fd..AsRawFd$GT$9as_raw_"
         "fd17h0123456789abcdefE",
         "<std::fs::File as std::os::fd::AsRawFd>::as_raw_fd"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$"
         "GT$$GT$3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvC03foo", "::foo"}, /* of a crate without a name */
        {"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char text[SEEP_DEMANGLE_TEXT_MAX] = "";

        assert_true(seep_demangle(names[i].mangled, text, sizeof(text)));
        assert_string_equal(text, names[i].expected);
    }
}

static void what_is_not_mangled_is_left_alone(void **state)
{
    static const char *const names[] = {
        "",      "malloc",    "_start",        "__libc_start_main",
        "_Z",    "_R",        "_ZN",           "_Zfoo",
        "i",     "_Z3fo",     "_ZN3fooE_junk", "_R\xff\xfe",
        "_ZZZZ", "\x01\x02_Z"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char text[16] = "untouched";

        assert_false(seep_demangle(names[i], text, sizeof(text)));
        assert_string_equal(text, "untouched");
    }
}

static void a_long_result_is_cut_to_the_room_there_is(void **state)
{
    char text[8];

    (void)state;
    assert_true(seep_demangle("_Z3fooiiiiiiiii", text, sizeof(text)));
    assert_string_equal(text, "foo(int");
    assert_false(seep_demangle("_Z3fooi", text, 0));
}

/* Each argument names the one before twice: 2^40 times the first. */
static void a_name_that_doubles_itself_ends(void **state)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char mangled[1024];
    char text[SEEP_DEMANGLE_TEXT_MAX];
    int used = snprintf(mangled, sizeof(mangled), "_Z1f1aIiiES_IS0_S0_E");

    (void)state;
    for (int i = 0; i < 30; i++) {
        used += snprintf(mangled + used, sizeof(mangled) - (size_t)used,
                         "S_IS%c_S%c_E", digits[i + 1], digits[i + 1]);
    }
    assert_true(seep_demangle(mangled, text, sizeof(text)));
    assert_int_equal(strlen(text), sizeof(text) - 1);
}

static void a_deep_or_long_name_neither_crashes_nor_hangs(void **state)
{
    static const char *const units[] = {"P",  "N",   "I",    "1aI", "S_",
                                        "F",  "DpT", "_RNv", "Nv",  "INv",
                                        "XX", "cv",  "L",    "Z",   "B_"};
    char *mangled = calloc(1, 65536);
    char text[SEEP_DEMANGLE_TEXT_MAX];

    (void)state;
    assert_non_null(mangled);
    for (size_t i = 0; i < 2 * sizeof(units) / sizeof(*units); i++) {
        const char *unit = units[i / 2];
        size_t used = 2;

        memcpy(mangled, i % 2 == 0 ? "_Z1f" : "_RNv", 4);
        used = 4;
        while (used + strlen(unit) <= SEEP_DEMANGLE_INPUT_MAX) {
            memcpy(mangled + used, unit, strlen(unit) + 1);
            used += strlen(unit);
        }
        (void)seep_demangle(mangled, text, sizeof(text));
    }
    memset(mangled, 'P', 65535);
    memcpy(mangled, "_Z1f", 4);
    assert_false(seep_demangle(mangled, text, sizeof(text)));
    free(mangled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mangled_name_becomes_what_its_author_wrote),
        cmocka_unit_test(what_is_not_mangled_is_left_alone),
        cmocka_unit_test(a_long_result_is_cut_to_the_room_there_is),
        cmocka_unit_test(a_name_that_doubles_itself_ends),
        cmocka_unit_test(a_deep_or_long_name_neither_crashes_nor_hangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
