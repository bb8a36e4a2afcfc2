/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code whose functions, lines and inlined calls are known: each function calls
 * back with nothing but its return address to tell where it is.
 *
 * Invariant: the lines after #line are what test_symbolise.c expects.
 */
using callback = void (*)();

extern "C" int fixture_plain(callback call);
extern "C" int fixture_chain(callback call);
extern "C" int fixture_via_hidden(callback call);

#define INLINED [[gnu::always_inline]] inline
#define VISIBLE [[gnu::visibility("default"), gnu::noinline]]

/* A label of no size, in a section that the linker puts in among the code. */
__asm__(".pushsection .text.unlikely, \"ax\"\n"
        ".globl fixture_label\n"
        "fixture_label: nop\n nop\n nop\n nop\n"
        ".popsection\n");

/* Keeps the call from becoming a jump. */
static volatile int sink;

namespace fixture
{
template <typename T> struct holder {
#line 100 "fixture_lines.cc"
    INLINED static int innermost(callback call)
    {
        call();
        return sink;
    }
};

#line 200 "fixture_lines.cc"
INLINED int middle(callback call, long twice)
{
    return holder<int>::innermost(call) + static_cast<int>(twice);
}

struct server {
    VISIBLE int handle(callback call, const char *name);
};

#line 300 "fixture_lines.cc"
int server::handle(callback call, const char *name)
{
    int result = name[0];
    result += middle(call, 2);
    return result + sink;
}
} // namespace fixture

#line 400 "fixture_lines.cc"
VISIBLE int fixture_plain(callback call)
{
    call();
    return sink;
}

#line 500 "fixture_lines.cc"
VISIBLE int fixture_chain(callback call)
{
    fixture::server server;
    return server.handle(call, "x") + sink;
}

namespace
{
#line 600 "fixture_lines.cc"
[[gnu::noinline, gnu::section(".text.behind")]] int hidden(callback call)
{
    call();
    return sink;
}
} // namespace

#line 700 "fixture_lines.cc"
VISIBLE int fixture_via_hidden(callback call)
{
    return hidden(call) + sink;
}
