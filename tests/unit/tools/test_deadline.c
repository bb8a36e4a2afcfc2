/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tool/deadline: what is done in time, what is not, and what is left of it. */
#include "seep_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "probe/probe.h"

#define SECOND_NS UINT64_C(1000000000)

struct shared {
    _Atomic int child;
    _Atomic int done;
    _Atomic int open_count;
};

static struct shared *shared;

static int set_up(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

/* What is not waited for long ends all the same: else this hangs. */
static int tear_down(void **state)
{
    (void)state;
    munmap(shared, sizeof(*shared));
    while (waitpid(-1, NULL, 0) > 0) {
    }
    return errno == ECHILD ? 0 : -1;
}

static int load(_Atomic int *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic int *word, int value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t in(double seconds)
{
    return seep_clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * SECOND_NS);
}

static void succeed(void *context)
{
    store(&shared->done, *(int *)context);
}

static void hang(void *context)
{
    (void)context;
    store(&shared->child, getpid());
    for (;;) {
        pause();
    }
}

static void crash(void *context)
{
    (void)context;
    raise(SIGKILL);
}

static void leave(void *context)
{
    (void)context;
    _exit(3);
}

static void count_open(void *context)
{
    int count = 0;

    (void)context;
    seep_deadline_let_go();
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    store(&shared->open_count, count);
}

static void what_is_done_in_time_is_done(void **state)
{
    int value = 7;
    int ended = -1;

    (void)state;
    assert_int_equal(seep_deadline_run(succeed, &value, in(30), &ended),
                     SEEP_DEADLINE_DONE);
    assert_int_equal(load(&shared->done), 7);
    assert_int_equal(ended, 0);
}

static void what_hangs_is_left_and_ends(void **state)
{
    uint64_t begin = seep_clock_ns(CLOCK_MONOTONIC);

    (void)state;
    assert_int_equal(seep_deadline_run(hang, NULL, in(0.1), NULL),
                     SEEP_DEADLINE_LATE);
    assert_true(seep_clock_ns(CLOCK_MONOTONIC) - begin >= SECOND_NS / 10);
    assert_true(seep_clock_ns(CLOCK_MONOTONIC) - begin < 20 * SECOND_NS);
    while (load(&shared->child) != 0 && kill(load(&shared->child), 0) == 0) {
        waitpid(load(&shared->child), NULL, 0);
    }
}

static void who_is_late_before_it_began_is_late(void **state)
{
    (void)state;
    assert_int_equal(seep_deadline_run(hang, NULL, 0, NULL),
                     SEEP_DEADLINE_LATE);
    waitpid(-1, NULL, 0);
}

static void what_ends_without_being_done_has_died(void **state)
{
    int ended = 0;

    (void)state;
    assert_int_equal(seep_deadline_run(crash, NULL, in(30), &ended),
                     SEEP_DEADLINE_DIED);
    assert_int_equal(ended, SIGKILL);
    assert_int_equal(seep_deadline_run(leave, NULL, in(30), &ended),
                     SEEP_DEADLINE_DIED);
    assert_int_equal(ended, 0);
}

static void a_child_holds_nothing_of_ours(void **state)
{
    (void)state;
    assert_int_equal(seep_deadline_run(count_open, NULL, in(30), NULL),
                     SEEP_DEADLINE_DONE);
    assert_int_equal(load(&shared->open_count), 1); /* the pipe */
}

/* The pipe would be the child's stdout, else. */
static void a_pipe_never_takes_the_place_of_a_stream(void **state)
{
    int kept[3];
    int value = 9;
    int result;

    (void)state;
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    result = seep_deadline_run(succeed, &value, in(30), NULL);
    for (int i = 0; i < 3; i++) {
        if (kept[i] >= 0) {
            dup2(kept[i], i);
            close(kept[i]);
        }
    }
    assert_int_equal(result, SEEP_DEADLINE_DONE);
    assert_int_equal(load(&shared->done), 9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_done_in_time_is_done),
        TEST(what_hangs_is_left_and_ends),
        TEST(who_is_late_before_it_began_is_late),
        TEST(what_ends_without_being_done_has_died),
        TEST(a_child_holds_nothing_of_ours),
        TEST(a_pipe_never_takes_the_place_of_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
