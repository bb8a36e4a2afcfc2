/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways into and out of a hook that look like something else.
 *
 *     odd_hooks CASE
 *
 * Invariant: each case prints one line and exits 0, with us and without; so a
 * handler jumps only where the C library was not interrupted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "in_libc.h"

#define UNASKED_FD 77

static volatile sig_atomic_t signals_seen;
static sigjmp_buf before;

static void every(long microseconds)
{
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};

    setitimer(ITIMER_REAL, &timer, NULL);
}

static __attribute__((noinline)) void churn(long pairs)
{
    for (long i = 0; i < pairs; i++) {
        void *volatile block = malloc((size_t)(64 + i % 64 * 16));

        free(block);
    }
}

static void map_in_handler(int number)
{
    void *volatile page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)number;
    munmap(page, 4096);
    signals_seen = signals_seen + 1;
}

/* The handler's stack is an array of main's: above every hook it interrupts. */
static void signal_stack_above(void)
{
    char own[65536];
    stack_t stack = {.ss_sp = own, .ss_size = sizeof(own)};
    struct sigaction action = {.sa_handler = map_in_handler,
                               .sa_flags = SA_ONSTACK | SA_RESTART};

    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    every(700);
    churn(1000000);
    every(0);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
}

static void jump(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (!in_libc(context)) {
        signals_seen = signals_seen + 1;
        siglongjmp(before, 1);
    }
}

/* Out of a hook, and on from the very depth that it was called at. */
static void jump_to_the_same_depth(void)
{
    static volatile long i;
    struct sigaction action = {.sa_sigaction = jump,
                               .sa_flags = SA_SIGINFO | SA_RESTART};

    in_libc_find();
    churn(1000); /* a first recording takes longer than the timer */
    sigaction(SIGALRM, &action, NULL);
    sigsetjmp(before, 1);
    every(signals_seen < 40 ? 1000 : 0);
    for (; i < 1000000; i++) {
        void *volatile block = malloc((size_t)(64 + i % 64 * 16));

        free(block);
    }
    every(0);
}

static void allocate_in_vfork(void)
{
    pid_t child = vfork();

    if (child == 0) {
        void *volatile block = malloc(1 << 26);

        free(block);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    churn(100000);
}

static void grow_a_file_map(void)
{
    char name[] = "/tmp/seep-odd-XXXXXX";
    int fd = mkstemp(name);
    size_t size = 65536;
    char *map;

    unlink(name);
    if (fd < 0 || ftruncate(fd, 1 << 22) != 0) {
        exit(1);
    }
    map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    for (; size < 1 << 22; size += 65536) {
        map = mremap(map, size, size + 65536, MREMAP_MAYMOVE);
    }
    close(fd);
    churn(1000);
}

static void ask_seccomp(void)
{
    unsigned int action = SECCOMP_RET_ERRNO;

    syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
    for (int i = 0; i < 1000; i++) {
        void *volatile kept = malloc(10000);

        (void)kept;
    }
}

/* Not in line: the site that a test looks for. */
static __attribute__((noinline)) void *site_restricted(void *argument)
{
    for (int i = 0; i < 100; i++) {
        void *volatile kept = malloc(10000);

        (void)kept;
    }
    return argument;
}

static __attribute__((noinline)) void *site_mapped(void)
{
    return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* What begins now, in a thread, a child or a mapping, makes no system call. */
static void go_on(void)
{
    int fd = memfd_create("odd", MFD_CLOEXEC);
    pthread_t thread;
    pid_t child;
    void *map;

    pthread_create(&thread, NULL, site_restricted, NULL);
    pthread_join(thread, NULL);
    if (fd < 0 || ftruncate(fd, 1 << 20) != 0) {
        exit(1);
    }
    map = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
    munmap(map, 1 << 20);
    close(fd);
    site_mapped();
    child = fork();
    if (child == 0) {
        site_restricted(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    site_restricted(NULL);
}

/* As it is already; a program that may read the counter goes on with that. */
static void restrict_by_prctl(void)
{
    site_restricted(NULL);
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    go_on();
}

static void restrict_by_filter(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};

    site_restricted(NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    go_on();
}

static void restrict_first(void)
{
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    go_on();
}

static __attribute__((noinline)) void site_zero(int flags)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

    if (fd < 0 || mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, fd, 0) ==
                      MAP_FAILED) {
        exit(1);
    }
    close(fd);
}

/* A ring of the kernel's, where that may be had: no memory and no file. */
static __attribute__((noinline)) void site_ring(void)
{
    uint64_t parameters[15] = {0}; /* struct io_uring_params */
    int fd = (int)syscall(SYS_io_uring_setup, 4, parameters);

    if (fd >= 0) {
        mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
}

static void map_devices(void)
{
    free(malloc(1 << 20)); /* from here on all is recorded */
    site_zero(MAP_PRIVATE);
    site_zero(MAP_SHARED);
    site_ring();
}

/* Memory that goes by a descriptor. */
static void map_memory(int fd)
{
    if (fd < 0 || ftruncate(fd, 1 << 20) != 0 ||
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
            MAP_FAILED) {
        exit(1);
    }
}

static __attribute__((noinline)) void site_unasked(void)
{
    map_memory(dup2(memfd_create("odd", MFD_CLOEXEC), UNASKED_FD));
}

static __attribute__((noinline)) void site_asked(void)
{
    map_memory(memfd_create("odd", MFD_CLOEXEC));
}

/* A test has the kernel answer no question about that descriptor. */
static void map_unasked(void)
{
    free(malloc(1 << 20)); /* from here on all is recorded */
    site_unasked();
    site_asked();
}

/* Before anything is recorded. */
static void leave_stderr(void)
{
    close(STDERR_FILENO);
    free(malloc(1 << 20));
}

static void replace_stderr(void)
{
    int fd = open("own", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (dup2(fd, STDERR_FILENO) < 0) {
        exit(1);
    }
    free(malloc(1 << 20));
}

/* By another of the same kind. */
static void replace_stderr_by_a_pipe(void)
{
    int ends[2];
    char byte;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 ||
        dup2(ends[1], STDERR_FILENO) < 0) {
        exit(1);
    }
    free(malloc(1 << 20));
    if (read(ends[0], &byte, 1) >= 0) {
        exit(1);
    }
}

/* The place is free, and not the one that the kernel would choose. */
static void wish_for_a_place(void)
{
    const size_t size = 1 << 20;
    char *range =
        mmap(NULL, 4 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *old = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *moved;

    munmap(range + size, size);
    munmap(range + 3 * size, size);
    moved = mremap(old, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
                   range + size);
    if (moved != range + size) {
        exit(moved == MAP_FAILED ? 77 : 1);
    }
}

static void *wait_for_a_name(void *gate)
{
    void *volatile block;

    pthread_barrier_wait(gate);
    pthread_barrier_wait(gate);
    block = malloc(1 << 20);
    (void)block;
    return NULL;
}

/* That of a thread is not the one that it gives to another. */
static __attribute__((noinline)) void *site_of_own(void *gate)
{
    pthread_t thread;
    void *volatile block;

    pthread_create(&thread, NULL, wait_for_a_name, gate);
    pthread_barrier_wait(gate);
    pthread_setname_np(pthread_self(), "own");
    if (pthread_setname_np(pthread_self(), "longer than 15 bytes") != ERANGE ||
        pthread_setname_np(thread, "other") != 0) {
        exit(1);
    }
    block = malloc(1 << 20);
    (void)block;
    pthread_barrier_wait(gate);
    pthread_join(thread, NULL);
    return NULL;
}

static void name_others(void)
{
    pthread_barrier_t gate;
    pthread_t thread;

    pthread_barrier_init(&gate, NULL, 2);
    pthread_create(&thread, NULL, site_of_own, &gate);
    pthread_join(thread, NULL);
}

#define PAINTED_WORDS 2048U
#define PAINT UINT64_C(0xa5a5a5a5a5a5a5a5)

static __attribute__((noinline)) void paint(void)
{
    volatile uint64_t words[PAINTED_WORDS];

    for (size_t i = 0; i < PAINTED_WORDS; i++) {
        words[i] = PAINT;
    }
    __asm__ volatile("" : : "r"(words) : "memory");
}

/* How far down the paint is gone. What lies here was written by paint(). */
static __attribute__((noinline)) size_t painted_over(void)
{
    volatile uint64_t words[PAINTED_WORDS];
    size_t left = 0;

    __asm__ volatile("" : : "r"(words) : "memory");
    while (left < PAINTED_WORDS && words[left] == PAINT) {
        left++;
    }
    return (PAINTED_WORDS - left) * sizeof(words[0]);
}

/* The first hooks of a thread look for its stack, its name and all rules. */
static void *use_little_stack(void *most_bytes)
{
    for (int i = 0; i < 3; i++) {
        size_t bytes;
        void *volatile block;

        paint();
        block = malloc(100000);
        bytes = painted_over();
        if (bytes > *(size_t *)most_bytes) {
            *(size_t *)most_bytes = bytes;
        }
        free(block);
    }
    return NULL;
}

static void use_stack(void)
{
    size_t most_bytes = 0;
    pthread_t thread;

    use_little_stack(&most_bytes);
    most_bytes = 0; /* one event has started the recording, which takes more */
    use_little_stack(&most_bytes);
    pthread_create(&thread, NULL, use_little_stack, &most_bytes);
    pthread_join(thread, NULL);
    if (most_bytes >= 2048) {
        fprintf(stderr, "a hook takes %zu bytes of stack\n", most_bytes);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"signal_stack_above", signal_stack_above},
        {"jump_to_the_same_depth", jump_to_the_same_depth},
        {"allocate_in_vfork", allocate_in_vfork},
        {"grow_a_file_map", grow_a_file_map},
        {"ask_seccomp", ask_seccomp},
        {"use_stack", use_stack},
        {"restrict_by_prctl", restrict_by_prctl},
        {"restrict_by_filter", restrict_by_filter},
        {"restrict_first", restrict_first},
        {"map_devices", map_devices},
        {"map_unasked", map_unasked},
        {"leave_stderr", leave_stderr},
        {"replace_stderr", replace_stderr},
        {"replace_stderr_by_a_pipe", replace_stderr_by_a_pipe},
        {"name_others", name_others},
        {"wish_for_a_place", wish_for_a_place},
    };

    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            printf("%d\n", (int)getpid());
            return 0;
        }
    }
    return 2;
}
