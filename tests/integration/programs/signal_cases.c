/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that leave an allocation in other ways than by returning.
 *
 *     signal_cases CASE
 *
 * Invariant: a handler acts only where the interrupted code is not the C
 * library's: there the program itself would be wrong, with or without seep.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "in_libc.h"
#include "truth.h"

#define JUMPS 1000
#define HANDLED 1000
#define CANCELLED 200
#define ROUNDS 400
#define FORKED 500
#define STARTED 400

static sigjmp_buf place;
static volatile sig_atomic_t jump_count;
static volatile sig_atomic_t handled_count;
static volatile sig_atomic_t forked_count;
static volatile sig_atomic_t killed_count; /* of the children */
static volatile sig_atomic_t is_child;
static volatile sig_atomic_t is_waiting;

SITE_FUNCTION static void *site_storm(size_t bytes)
{
    return malloc(bytes);
}

SITE_FUNCTION static void *site_after(void)
{
    return malloc(4000);
}

SITE_FUNCTION static void *site_handler(void)
{
    return malloc(40);
}

static void on_jump(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    if (!in_libc(context)) {
        jump_count = jump_count + 1;
        siglongjmp(place, 1);
    }
}

static void on_allocate(int signal, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)signal;
    (void)info;
    if (!in_libc(context)) {
        void *block = site_handler();

        memset(block, 1, 40);
        free(block);
        handled_count = handled_count + 1;
    }
    errno = saved;
}

static void every_100_us(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval timer = {{0, 100}, {0, 100}};

    in_libc_find();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void no_more(void)
{
    struct itimerval timer = {{0, 0}, {0, 0}};

    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Thousands of hooks are abandoned by a jump out of a handler. */
static int jump_out(void)
{
    volatile uint64_t pairs = 0;

    (void)sigsetjmp(place, 1);
    if (jump_count == 0) {
        every_100_us(on_jump);
    }
    while (jump_count < JUMPS) {
        free(site_storm(16 + pairs % 512));
        pairs = pairs + 1;
    }
    no_more();
    for (int i = 0; i < 10000; i++) {
        free(site_storm(64));
    }
    puts("jumped out");
    return 0;
}

static void *storm(void *argument)
{
    while (
        !atomic_load_explicit((atomic_bool *)argument, memory_order_relaxed)) {
        free(site_storm(100));
    }
    return NULL;
}

/* The same beside threads that need the shards which the jumps leave. */
/* Enough that a ring which nobody folds any more is full, whichever it is. */
static void *fill_all_rings(void *argument)
{
    static void *blocks[1024];

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < 1024; i++) {
            blocks[i] = site_after();
        }
        for (size_t i = 0; i < 1024; i++) {
            free(blocks[i]);
        }
    }
    return argument;
}

/* At last a thread of its own, while nobody else allocates: what the one that
 * jumped still held it could not take for its own. */
static int jump_out_beside_threads(void)
{
    static atomic_bool stop;
    pthread_t threads[3];
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, storm, &stop);
    }
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    jump_out();
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_create(&threads[0], NULL, fill_all_rings, NULL);
    pthread_join(threads[0], NULL);
    return 0;
}

static void on_fork(int signal, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)signal;
    (void)info;
    is_waiting = 0;
    /* A child that set the timer once more before it ended is no parent. */
    if (!is_child && !in_libc(context) && forked_count < FORKED) {
        pid_t child = fork();

        is_child = child == 0;
        if (child > 0) {
            int status = 0;

            waitpid(child, &status, 0);
            killed_count = killed_count + (WIFSIGNALED(status) != 0);
            forked_count = forked_count + 1;
        }
    }
    errno = saved;
}

/* The child comes out of the hook that its parent was in, and ends. The blocks
 * are of all rings, so that this thread fills none. */
static int handler_forks(void)
{
    static void *blocks[256];
    struct itimerval once = {{0, 0}, {0, 0}};
    pthread_t last;

    free(site_storm(4000)); /* so that the recording has begun */
    every_100_us(on_fork);
    for (size_t i = 0; forked_count < FORKED && !is_child; i++) {
        if (!is_waiting) {
            is_waiting = 1;
            once.it_value.tv_usec = 20 + forked_count % 16;
            setitimer(ITIMER_REAL, &once, NULL);
        }
        free(blocks[i % 256]);
        if (!is_child) {
            blocks[i % 256] = site_storm(4000);
        }
    }
    if (is_child) {
        _exit(0);
    }
    no_more();
    for (size_t i = 0; i < 256; i++) {
        free(blocks[i]);
    }
    pthread_create(&last, NULL, fill_all_rings, NULL);
    pthread_join(last, NULL);
    printf("forked, %d of the children killed\n", killed_count);
    return 0;
}

/* A child's recording begins with its first block, which is left by a jump. */
static void begin_and_leave(int number)
{
    struct itimerval timer = {{0, 500}, {0, 20 + number * 7 % 2800}};

    if (sigsetjmp(place, 1) == 0) {
        setitimer(ITIMER_REAL, &timer, NULL);
        while (jump_count == 0) {
            free(site_storm(64));
        }
    }
    no_more();
    free(site_storm(4000));
}

static int jump_out_of_start(void)
{
    struct sigaction action = {.sa_sigaction = on_jump,
                               .sa_flags = SA_SIGINFO | SA_RESTART};
    int ended = 0;

    in_libc_find();
    sigaction(SIGALRM, &action, NULL);
    free(site_storm(4000));
    for (int i = 0; i < STARTED; i++) {
        pid_t child = fork();
        int status = -1;

        if (child == 0) {
            begin_and_leave(i);
            _exit(0);
        }
        waitpid(child, &status, 0);
        ended += status == 0;
    }
    printf("%d children ended\n", ended);
    return 0;
}

static int handler_allocates(void)
{
    uint64_t pairs = 0;

    every_100_us(on_allocate);
    while (handled_count < HANDLED) {
        void *block = site_storm(16 + pairs++ % 512);

        block = realloc(block, 700);
        free(block);
    }
    no_more();
    puts("handled");
    return 0;
}

/* Only sizes that the thread's own cache serves: there the C library bears
 * to be left at any instruction. */
static void *cancelled(void *argument)
{
    int old;

    for (int i = 0; i < 16; i++) {
        free(site_storm(64));
    }
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    atomic_store_explicit((atomic_bool *)argument, true, memory_order_relaxed);
    while (argument != NULL) {
        free(site_storm(64));
    }
    return NULL;
}

static int cancel_anywhere(void)
{
    int ended = 0;

    for (int i = 0; i < CANCELLED; i++) {
        atomic_bool started = false;
        pthread_t thread;
        void *result = NULL;

        pthread_create(&thread, NULL, cancelled, &started);
        while (!atomic_load_explicit(&started, memory_order_relaxed)) {
            usleep(50);
        }
        usleep((useconds_t)(i % 17) * 10);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        ended += result == PTHREAD_CANCELED;
    }
    for (int i = 0; i < 10000; i++) {
        free(site_storm(64));
    }
    printf("%d threads cancelled\n", ended);
    return 0;
}

static void *cancelled_later(void *argument)
{
    int *calls = argument;

    pthread_cancel(pthread_self());
    for (*calls = 0; *calls < 20000; ++*calls) {
        free(site_storm(64));
    }
    pthread_testcancel();
    return NULL;
}

/* An allocation is no cancellation point, however full a ring may be. */
static int cancel_at_a_point(void)
{
    pthread_t thread;
    void *result;
    int calls = 0;

    pthread_create(&thread, NULL, cancelled_later, &calls);
    pthread_join(thread, &result);
    printf("%d calls before it was cancelled: %d\n", calls,
           result == PTHREAD_CANCELED);
    return 0;
}

int main(int argument_count, char **arguments)
{
    const char *name = argument_count == 2 ? arguments[1] : "";

    if (!strcmp(name, "jump_out")) {
        return jump_out();
    }
    if (!strcmp(name, "jump_out_beside_threads")) {
        return jump_out_beside_threads();
    }
    if (!strcmp(name, "jump_out_of_start")) {
        return jump_out_of_start();
    }
    if (!strcmp(name, "handler_forks")) {
        return handler_forks();
    }
    if (!strcmp(name, "handler_allocates")) {
        return handler_allocates();
    }
    if (!strcmp(name, "cancel_anywhere")) {
        return cancel_anywhere();
    }
    if (!strcmp(name, "cancel_at_a_point")) {
        return cancel_at_a_point();
    }
    return 2;
}
