/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that speaks of itself by seep.h, in the ways in which that could
 * go wrong: calls CASE.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "seep/seep.h"

#define BLOCK_BYTES 10000
#define THREADS 4
#define STEPS 25000

static void *volatile kept;
static volatile sig_atomic_t handled;

static void sleep_ms(long milliseconds)
{
    struct timespec time = {0, milliseconds * 1000000};

    nanosleep(&time, NULL);
}

static void print_stats(void)
{
    struct seep_stats stats;

    if (seep_stats(&stats) != 0) {
        puts("nothing is recorded");
        return;
    }
    printf("{\"live_bytes\": %llu, \"units\": %llu, \"size_bytes\": %llu, "
           "\"growth\": %.0f}\n",
           (unsigned long long)stats.live_bytes,
           (unsigned long long)stats.units,
           (unsigned long long)stats.size_bytes,
           stats.growth_bytes_per_s == stats.growth_bytes_per_s
               ? stats.growth_bytes_per_s
               : -1.0);
}

/* All four, and blocks that stay. */
static int all(void)
{
    seep_mark("start");
    for (int i = 0; i < 100; i++) {
        kept = malloc(BLOCK_BYTES);
        seep_progress(2);
        if (i == 49) {
            seep_mark("warm-up done");
        }
        sleep_ms(5);
    }
    seep_label("version", "14");
    seep_label("model", "bert-13");
    print_stats();
    return 0;
}

static void *step(void *argument)
{
    for (int i = 0; i < STEPS; i++) {
        seep_progress(1);
        free(malloc(100));
    }
    return argument;
}

static int threads(void)
{
    pthread_t ids[THREADS];

    for (int i = 0; i < THREADS; i++) {
        pthread_create(&ids[i], NULL, step, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
    }
    return 0;
}

static void on_alarm(int signal)
{
    struct seep_stats stats;

    (void)signal;
    handled++;
    seep_progress(1);
    seep_mark("alarm");
    seep_label("alarm", "yes");
    seep_stats(&stats);
}

/* A handler that speaks, in the middle of all that is recorded. */
static int handler(void)
{
    const struct itimerval every = {{0, 500}, {0, 500}};
    const struct itimerval never = {{0, 0}, {0, 0}};

    seep_mark("start");
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
    while (handled < 400) {
        free(malloc(3000));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", (int)handled);
    return 0;
}

static int forked(void)
{
    pid_t child;

    seep_mark("parent");
    seep_progress(10);
    child = fork();
    if (child == 0) {
        seep_progress(3);
        seep_mark("child");
        seep_label("role", "child");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    seep_progress(1);
    return 0;
}

/* Marks for ever, labels for ever new, texts that are none. */
static int many(void)
{
    char value[32];

    for (int i = 0; i < 5000; i++) {
        snprintf(value, sizeof(value), "%d", i);
        seep_mark("again");
        seep_label("id", value);
    }
    seep_mark(NULL);
    seep_mark("");
    seep_label(NULL, "x");
    seep_label("x", NULL);
    return 0;
}

/* @return 1 if errno changed or the stack of calls did */
static int quiet(void)
{
    struct seep_stats stats;

    errno = 77;
    seep_mark("x");
    seep_label("a", "b");
    seep_progress(1);
    seep_stats(&stats);
    return errno != 77;
}

static pthread_barrier_t all_are_there;

static void *step_at_once(void *ignored)
{
    pthread_barrier_wait(&all_are_there);
    for (int i = 0; i < 10; i++) {
        seep_progress(1);
    }
    return ignored;
}

/* Threads of a child that all have done something before it is recorded. */
static int beginning(void)
{
    struct seep_stats stats;
    pthread_t threads_of_child[THREADS];
    int status;

    seep_progress(1);
    if (fork() == 0) {
        pthread_barrier_init(&all_are_there, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            pthread_create(&threads_of_child[i], NULL, step_at_once, NULL);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads_of_child[i], NULL);
        }
        _exit(seep_stats(&stats) == 0 && stats.units == THREADS * 10 ? 0 : 1);
    }
    wait(&status);
    return WEXITSTATUS(status);
}

/* Between a failure of the loader and the question why. */
static int linker(void)
{
    struct seep_stats stats;
    const char *why;

    if (dlerror() != NULL || dlopen("/no/such/library", RTLD_NOW) != NULL) {
        return 1;
    }
    seep_mark("x");
    seep_label("a", "b");
    seep_progress(1);
    seep_stats(&stats);
    why = dlerror();
    if (why == NULL || strstr(why, "/no/such/library") == NULL) {
        return 2;
    }
    seep_mark("y");
    return dlerror() == NULL ? 0 : 3;
}

/* In a sandbox that kills for any system call but read, write and exit. */
static int strict(void)
{
    struct seep_stats stats;

    seep_mark("before");
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    seep_mark("inside");
    seep_label("box", "strict");
    seep_progress(7);
    seep_stats(&stats);
    return (int)syscall(SYS_exit, stats.units == 7 ? 0 : 1);
}

/* The struct of a program that was built before a field was added. */
static int old(void)
{
    struct seep_stats stats;
    int (*call)(struct seep_stats *) = &seep_preload_stats;

    memset(&stats, 0x55, sizeof(stats));
    stats.size_bytes = 16;
    if (call(&stats) != 0 || stats.size_bytes != 16 ||
        stats.units != UINT64_C(0x5555555555555555)) {
        return 1;
    }
    stats.size_bytes = 4096;
    if (call(&stats) != 0 || stats.size_bytes != sizeof(stats)) {
        return 2;
    }
    stats.size_bytes = 0;
    return call(&stats) == 0 || call(NULL) == 0 ? 3 : 0;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"all", all},         {"threads", threads},
        {"handler", handler}, {"many", many},
        {"forked", forked},   {"quiet", quiet},
        {"old", old},         {"strict", strict},
        {"linker", linker},   {"beginning", beginning},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (count > 1 && strcmp(arguments[1], cases[i].name) == 0) {
            return cases[i].run();
        }
    }
    return 64;
}
