/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For a Python program to load by ctypes: a signal handler that maps a page,
 * wherever Python is.
 *
 * Invariant: the handler does nothing that a handler may not do.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void python_signals_every(long microseconds);

static void handler(int number)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)number;
    if (page != MAP_FAILED) {
        munmap(page, 4096);
    }
}

/* 0: no more of them. */
EXPORT void python_signals_every(long microseconds)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}
