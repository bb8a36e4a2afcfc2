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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "reader/symbols/wall.h"

static void *volatile kept; /* that no compiler leaves the malloc out */
static const struct seep_symbol_frame fine = {"work", "work.c", 7, false};

/* What one that has taken the child over would try. */
static int misbehave(void *context, const struct seep_wall_question *question,
                     struct seep_symbol_answer *ret_answer)
{
    static char first[8];

    (void)context;
    if (*first == '\0') {
        snprintf(first, sizeof(first), "%s", question->source->path);
    }
    *ret_answer = (struct seep_symbol_answer){&fine, 1};
    switch (question->offset) {
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
    case 8: /* there is room for the file only where it is alone */
        return strcmp(first, question->source->path) == 0 ? 0 : -ENOMEM;
    default:
        return 0;
    }
}

static int ask_for(struct seep_wall *wall, struct seep_symbol_memory *memory,
                   const char *path, uint64_t what,
                   struct seep_wall_spent spent)
{
    struct seep_symbol_answer answer = {NULL, 0};
    struct seep_symbol_module source = {path, (const uint8_t *)"id", 2};
    struct seep_wall_question question = {&source, false, what, NULL};
    int result = seep_wall_ask(wall, &question, &spent, memory, &answer);

    if (result == 0) {
        assert_int_equal(answer.count, 1);
        assert_string_equal(answer.frames[0].function, "work");
        assert_string_equal(answer.frames[0].file, "work.c");
        assert_int_equal(answer.frames[0].line, 7);
    }
    return result;
}

static int ask(struct seep_wall *wall, struct seep_symbol_memory *memory,
               uint64_t what)
{
    /* of twelve seconds: enough for a child that is well */
    struct seep_wall_spent spent = {.cpu_ns =
                                        what == 2 ? UINT64_C(11900000000) : 0};

    return ask_for(wall, memory, "a", what, spent);
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

/* The same where bytes are asked for. */
static int misread(void *context, const char *path, uint32_t what,
                   uint64_t most, void **ret_bytes, uint64_t *ret_count)
{
    (void)context;
    (void)path;
    switch (what) {
    case 2:
        raise(SIGKILL);
        _exit(1);
    case 3:
        for (;;) {
        }
    case 4:
        return -ENOENT;
    default:
        break;
    }
    *ret_count = what == 5 ? 0 : what == 6 ? most + 1 : most;
    *ret_bytes = calloc(1, (size_t)most + 1);
    return *ret_bytes == NULL ? -ENOMEM : 0;
}

static void what_hurts_the_child_costs_what_was_read(void **state)
{
    static const int expected[] = {0,       0,        -ECHILD, -ETIMEDOUT,
                                   -ENOENT, -EBADMSG, -EBADMSG};
    struct seep_wall wall = {.read = misread};

    (void)state;
    for (uint32_t what = 1; what < 7; what++) {
        for (uint32_t each = 0; each < 2; each++) {
            struct seep_wall_request request = {
                .path = "a",
                .what = each == 0 ? what : 1,
                .most_bytes = 200000,
                .most_ns = what == 3 && each == 0 ? 20000000 : 0,
            };
            struct seep_wall_spent spent = {0};
            void *bytes = NULL;
            uint64_t count = 0;

            assert_int_equal(
                seep_wall_request(&wall, &request, &spent, &bytes, &count),
                expected[request.what]);
            assert_int_equal(count, request.what == 1 ? 200000 : 0);
            free(bytes);
        }
    }
    seep_wall_fini(&wall);
}

static void a_file_is_tried_alone_before_it_is_given_up(void **state)
{
    struct seep_wall wall = {.answer = misbehave};
    struct seep_symbol_memory memory = {0};
    const struct seep_wall_spent none = {0, 0};

    (void)state;
    assert_int_equal(ask_for(&wall, &memory, "a", 8, none), 0);
    assert_int_equal(ask_for(&wall, &memory, "b", 8, none), 0);
    assert_int_equal(ask_for(&wall, &memory, "b", 8, none), 0);
    seep_wall_fini(&wall);
    seep_symbol_memory_fini(&memory);
}

/* Waiting for a processor is nothing that a file does. */
static void good_answers_on_a_busy_machine_are_taken(void **state)
{
    struct seep_wall wall = {.answer = misbehave};
    struct seep_symbol_memory memory = {0};
    const struct seep_wall_spent waited = {.wait_ns = UINT64_C(13000000000)};

    (void)state;
    assert_int_equal(ask_for(&wall, &memory, "a", 0, waited), 0);
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
        cmocka_unit_test(what_hurts_the_child_costs_what_was_read),
        cmocka_unit_test(a_file_is_tried_alone_before_it_is_given_up),
        cmocka_unit_test(good_answers_on_a_busy_machine_are_taken),
    };

    return cmocka_run_group_tests_name("wall", tests, NULL, NULL);
}
