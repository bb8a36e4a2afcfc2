/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process whose threads may only read, write, exit and return from signal
 * handlers any more, and that goes on allocating; anything else kills it.
 *
 *     sandbox ROUNDS
 *
 * As a library: the parts of it that a Python program cannot do.
 *
 * Invariant: after the filter one thread runs at a time and memory is there,
 * so that neither a lock nor malloc makes a system call.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

#define ROOM_BYTES (64 << 20)

enum turn { TURN_MAIN, TURN_KNOWN, TURN_LATE, TURN_BORROWED, TURN_COUNT };

int sandbox_prepare(void);
int sandbox_enter(void);
void sandbox_thread(int turn, int rounds);
void sandbox_give_turn(int turn);
void *site_main(size_t bytes);
void *site_known(size_t bytes);
void *site_late(size_t bytes);
void *site_borrowed(size_t bytes);
void *site_handler(size_t bytes);

static _Atomic int turn_of;

#define SITE(name)                         \
    SITE_FUNCTION void *name(size_t bytes) \
    {                                      \
        return malloc(bytes);              \
    }
SITE(site_main)
SITE(site_known)
SITE(site_late)
SITE(site_borrowed)
SITE(site_handler)

/* All in one heap, which never gives back and never needs more. */
int sandbox_prepare(void)
{
    void *room;

    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, ROOM_BYTES * 2);
    mallopt(M_TOP_PAD, ROOM_BYTES);
    room = malloc(ROOM_BYTES);
    free(room);
    return room != NULL;
}

#define ALLOW(number)                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* For all threads at once. @return 0 if there is no such thing here */
int sandbox_enter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static void wait_for(int turn)
{
    while (atomic_load_explicit(&turn_of, memory_order_acquire) != turn) {
        __asm__ volatile("" ::: "memory");
    }
}

/* A full round: everyone has had a turn. */
void sandbox_give_turn(int turn)
{
    atomic_store_explicit(&turn_of, turn, memory_order_release);
    wait_for(TURN_MAIN);
}

/* One block of each round stays. */
static void use(void *(*site)(size_t), int rounds)
{
    for (int i = 0; i < rounds; i++) {
        void *kept = site(40 + (size_t)i % 200);

        free(site(900));
        if (kept == NULL) {
            abort();
        }
    }
}

/* Two turns, then for ever. */
void sandbox_thread(int turn, int rounds)
{
    static void *(*const sites[TURN_COUNT])(size_t) = {
        site_main, site_known, site_late, site_borrowed};

    for (int i = 0; i < 2; i++) {
        wait_for(turn);
        use(sites[turn], turn == TURN_LATE && i == 0 ? 0 : rounds);
        atomic_store_explicit(&turn_of, TURN_MAIN, memory_order_release);
    }
    wait_for(TURN_COUNT);
}

#ifndef SANDBOX_LIBRARY

static int rounds;

static void *known(void *argument)
{
    sandbox_thread(TURN_KNOWN, rounds);
    return argument;
}

/* Whose first allocation comes after the filter. */
static void *late(void *argument)
{
    sandbox_thread(TURN_LATE, rounds);
    return argument;
}

static void on_trap(int number)
{
    (void)number;
    use(site_handler, 10);
}

static void turns(void)
{
    use(site_main, rounds);
    sandbox_give_turn(TURN_KNOWN);
    sandbox_give_turn(TURN_LATE);
}

int main(int argument_count, char **arguments)
{
    static const char words[] = "went on in the sandbox\n";
    struct sigaction action = {.sa_handler = on_trap};
    pthread_t thread;

    rounds = argument_count > 1 ? atoi(arguments[1]) : 1000;
    if (!sandbox_prepare() || sigaction(SIGTRAP, &action, NULL) != 0 ||
        pthread_create(&thread, NULL, known, NULL) != 0 ||
        pthread_create(&thread, NULL, late, NULL) != 0) {
        return 1;
    }
    turns();
    if (!sandbox_enter()) {
        return 77;
    }
    turns();
#if defined(__x86_64__)
    for (int i = 0; i < 10; i++) {
        __asm__ volatile("int3");
    }
#endif
    if (write(STDOUT_FILENO, words, sizeof(words) - 1) < 0) {
        return 1;
    }
    _exit(0);
}

#endif
