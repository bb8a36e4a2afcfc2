/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a child behind the wall can do to its reader: nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/symbols/wall.h"

static void *volatile kept; /* that no compiler leaves the malloc out */
static const struct seep_symbol_frame fine = {"work", "work.c", 7, false};

/* What one that has taken the child over would try. */
static int misbehave(void *context, size_t what, uint64_t offset,
                     struct seep_symbol_answer *ret_answer)
{
    (void)context;
    (void)offset;
    *ret_answer = (struct seep_symbol_answer){&fine, 1};
    switch (what) {
    case 1:
        raise(SIGKILL);
        _exit(1);
    case 2:
        for (;;) {
        }
    case 3:
        kept = malloc((size_t)2 << 30);
        return kept == NULL ? -ENOMEM : 0;
    case 4:
        return open("/tmp", O_RDWR | O_TMPFILE, 0600) < 0 ? 0 : -EPERM;
    case 5:
        return fork() < 0 ? 0 : -EPERM;
    case 6:
        return socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : -EPERM;
    case 7:
        return send(3, "what is no answer at all", 24, 0) == 24 ? 0 : -EPERM;
    default:
        return 0;
    }
}

static int ask(struct seep_wall *wall, struct seep_symbol_memory *memory,
               size_t what)
{
    struct seep_symbol_answer answer = {NULL, 0};
    /* of twelve seconds: enough for a child that is well */
    uint64_t spent_ns = what == 2 ? UINT64_C(11900000000) : 0;
    int result = seep_wall_ask(wall, what, 0, &spent_ns, memory, &answer);

    if (result == 0) {
        assert_int_equal(answer.count, 1);
        assert_string_equal(answer.frames[0].function, "work");
        assert_string_equal(answer.frames[0].file, "work.c");
        assert_int_equal(answer.frames[0].line, 7);
    }
    return result;
}

static void what_hurts_the_child_costs_one_module(void **state)
{
    static const int expected[] = {0, -ECHILD, -ETIMEDOUT, -ENOMEM};
    struct seep_wall wall = {.answer = misbehave};
    struct seep_symbol_memory memory = {0};

    (void)state;
    for (size_t what = 0; what < 4; what++) {
        /* A sanitizer's malloc ends the process instead. */
        int result = ask(&wall, &memory, what);

        assert_true(result == expected[what] ||
                    (what == 3 && result == -ECHILD));
        assert_int_equal(ask(&wall, &memory, 0), 0);
    }
    seep_wall_fini(&wall);
    seep_symbol_memory_fini(&memory);
}

static void what_is_no_answer_is_not_believed(void **state)
{
    struct seep_wall wall = {.answer = misbehave};
    struct seep_symbol_memory memory = {0};

    (void)state;
    assert_int_equal(ask(&wall, &memory, 7), -EBADMSG);
    assert_int_equal(ask(&wall, &memory, 0), 0);
    seep_wall_fini(&wall);
    seep_symbol_memory_fini(&memory);
}

static void the_child_has_no_rights(void **state)
{
    struct seep_wall wall = {.answer = misbehave};
    struct seep_symbol_memory memory = {0};

    (void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    for (size_t what = 4; what < 7; what++) {
        assert_int_equal(ask(&wall, &memory, what), 0);
    }
#endif
    seep_wall_fini(&wall);
    seep_symbol_memory_fini(&memory);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_has_no_rights),
        cmocka_unit_test(what_is_no_answer_is_not_believed),
        cmocka_unit_test(what_hurts_the_child_costs_one_module),
    };

    return cmocka_run_group_tests_name("wall", tests, NULL, NULL);
}
