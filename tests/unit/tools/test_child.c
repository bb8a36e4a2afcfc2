/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A command whose orphans become children of this process, as those of a
 * container become children of process 1, beside a child that the pastime
 * waits for.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/run.h"
#include "seep_test.h"

#define OWN_STATUS 5
#define TURN_NS UINT64_C(10000000)

/* A child of the pastime's own, and what it learned of its end. */
struct own {
    pid_t pid;
    bool was_reaped;
    int status;
};

static uint64_t attend_own(void *context)
{
    struct own *own = context;

    if (own->pid == 0) {
        own->pid = fork();
        if (own->pid == 0) {
            _exit(OWN_STATUS);
        }
    } else if (!own->was_reaped) {
        own->was_reaped = waitpid(own->pid, &own->status, WNOHANG) == own->pid;
    }
    return TURN_NS;
}

static bool owns(void *context, pid_t pid)
{
    const struct own *own = context;

    return !own->was_reaped && own->pid == pid;
}

/* Leaves 40 orphans, and waits until its parent has no child beside it. */
static char *command[] = {"/bin/sh", "-c",
                          "for i in 1 2 3 4 5 6 7 8 9 10; do\n"
                          "    (: & : & : & : &)\n"
                          "done\n"
                          "for i in $(seq 600); do\n"
                          "    set -- $(cat /proc/$PPID/task/$PPID/children)\n"
                          "    [ $# -gt 1 ] || exit 7\n"
                          "    sleep 0.05\n"
                          "done\n",
                          NULL};

static void run_with(const struct seep_child_pastime *pastime)
{
    struct seep_child child;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(seep_child_run(command, pastime, &child), 0);
    assert_true(WIFEXITED(child.status));
    assert_int_equal(WEXITSTATUS(child.status), 7);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void orphans_of_the_command_are_reaped(void **state)
{
    (void)state;
    run_with(NULL);
}

static void a_child_of_the_pastime_is_left_to_it(void **state)
{
    struct own own = {.pid = 0};
    const struct seep_child_pastime pastime = {attend_own, owns, &own};

    (void)state;
    run_with(&pastime);
    assert_true(own.was_reaped);
    assert_true(WIFEXITED(own.status));
    assert_int_equal(WEXITSTATUS(own.status), OWN_STATUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orphans_of_the_command_are_reaped),
        cmocka_unit_test(a_child_of_the_pastime_is_left_to_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
