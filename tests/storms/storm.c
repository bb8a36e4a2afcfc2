/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One thing done very often, beside threads that allocate.
 *
 *     storm CASE COUNT [LIBRARY|LOG]
 *
 * Invariant: what is printed depends on the arguments only, and no more is
 * alive at a time than BESIDE threads, a batch of them, or one child of each.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "in_libc.h"
#include "truth.h"

#define BESIDE 4
#define BATCH 16
#define CHILD_BLOCKS 40
#define CODES 100 /* that children exit with */
#define PAGE_BYTES 4096
#define SKIPPED 77

struct storm {
    const char *program;
    uint32_t count;
    const char *path;
};

static atomic_bool stop;
static atomic_uint done_count;

SITE_FUNCTION static void *site_kept(size_t bytes)
{
    return malloc(bytes);
}

SITE_FUNCTION static void *site_beside(size_t bytes)
{
    return malloc(bytes);
}

/* Each number below 2^16 is another stack. */
SITE_FUNCTION static void *site_of(uint32_t number, uint32_t depth);

SITE_FUNCTION static void *site_even(uint32_t number, uint32_t depth)
{
    return site_of(number, depth);
}

SITE_FUNCTION static void *site_odd(uint32_t number, uint32_t depth)
{
    return site_of(number, depth);
}

SITE_FUNCTION static void *site_of(uint32_t number, uint32_t depth)
{
    return depth == 0            ? site_kept(16 + number % 500)
           : number >> depth & 1 ? site_odd(number, depth - 1)
                                 : site_even(number, depth - 1);
}

static void *allocate(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        free(site_beside(48));
        sched_yield();
    }
    return argument;
}

static void start(pthread_t *threads, void *(*work)(void *), void *argument)
{
    for (int i = 0; i < BESIDE; i++) {
        if (pthread_create(&threads[i], NULL, work, argument) != 0) {
            exit(3);
        }
    }
}

static void join(const pthread_t *threads)
{
    for (int i = 0; i < BESIDE; i++) {
        pthread_join(threads[i], NULL);
    }
}

static int status_of(pid_t child)
{
    int status = -1;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One in two ends in order. */
static void live_as_child(int code)
{
    for (int i = 0; i < CHILD_BLOCKS; i++) {
        void *block = site_kept(64);

        memset(block, i, 64);
        if (i % 2 == 0) {
            free(block);
        }
    }
    if (code % 2 == 0) {
        exit(code);
    }
    _exit(code);
}

/* Each of four threads allocates, forks and waits. */
static void *fork_and_wait(void *argument)
{
    const struct storm *storm = argument;

    for (uint32_t i = 0; i < storm->count / BESIDE; i++) {
        void *inherited = site_beside(64);
        pid_t child = fork();

        if (child == 0) {
            free(inherited);
            live_as_child((int)i % CODES);
        }
        free(inherited);
        for (int j = 0; j < 20; j++) {
            free(site_beside(16U << (j % 6)));
        }
        if (status_of(child) == (int)i % CODES) {
            atomic_fetch_add_explicit(&done_count, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

static int forks(struct storm *storm)
{
    pthread_t threads[BESIDE];

    start(threads, fork_and_wait, storm);
    join(threads);
    printf("%u children ended as they should\n", done_count);
    return 0;
}

static void *live_shortly(void *argument)
{
    free(site_kept(20));
    (void)site_kept(1);
    return argument;
}

static int threads_in_turn(struct storm *storm)
{
    pthread_t threads[BATCH];
    uint32_t joined = 0;

    for (uint32_t i = 0; i < storm->count / BATCH; i++) {
        for (int j = 0; j < BATCH; j++) {
            if (pthread_create(&threads[j], NULL, live_shortly, NULL) != 0) {
                return 3;
            }
        }
        for (int j = 0; j < BATCH; j++) {
            joined += pthread_join(threads[j], NULL) == 0;
        }
    }
    printf("%u threads\n", joined);
    return 0;
}

static int use(void *library)
{
    void *(*make)(size_t) = NULL;
    void (*drop)(void *) = NULL;

    if (library == NULL) {
        return 0;
    }
    *(void **)&make = dlsym(library, "storm_make");
    *(void **)&drop = dlsym(library, "storm_drop");
    drop(make(100));
    return dlclose(library) == 0;
}

static int loads(struct storm *storm)
{
    pthread_t beside;
    uint32_t loaded = 0;

    pthread_create(&beside, NULL, allocate, NULL);
    for (uint32_t i = 0; i < storm->count; i++) {
        loaded += (uint32_t)use(dlopen(storm->path, RTLD_NOW));
    }
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    pthread_join(beside, NULL);
    printf("%u loads\n", loaded);
    return 0;
}

/* With a C library of its own, which no hook stands before. */
static int loads_apart(struct storm *storm)
{
    uint32_t loaded = 0;

    for (uint32_t i = 0; i < storm->count; i++) {
        free(site_kept(100));
        loaded += (uint32_t)use(dlmopen(LM_ID_NEWLM, storm->path, RTLD_NOW));
    }
    printf("%u loads apart\n", loaded);
    return 0;
}

static int execs(struct storm *storm)
{
    char left[16];

    for (int i = 0; i < CHILD_BLOCKS; i++) {
        free(site_kept(64));
    }
    if (storm->count == 0) {
        puts("no more to execute");
        return 5;
    }
    snprintf(left, sizeof(left), "%u", storm->count - 1);
    execl(storm->program, storm->program, "execs", left, (char *)NULL);
    return 3;
}

/* Mostly outside of the C library, where a handler may do something. */
static void *allocate_slowly(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        free(site_beside(48));
        for (volatile int i = 0; i < 200; i++) {
        }
    }
    return argument;
}

/* Where it does not interrupt the C library it allocates; now and then a child
 * comes out of it that ends at once. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    static atomic_uint turns;
    int saved = errno;

    (void)number;
    (void)info;
    if (!in_libc(context)) {
        uint32_t turn =
            atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);

        free(site_kept(40));
        if (turn % 200 == 0) {
            pid_t child = fork();

            if (child == 0) {
                free(site_kept(40));
                _exit(0);
            }
            (void)status_of(child);
        }
    }
    atomic_fetch_add_explicit(&done_count, 1, memory_order_relaxed);
    errno = saved;
}

/* One after the other: each is handled before the next is sent. Two threads,
 * since a signal waits until the scheduler lets its thread run. */
static int signals(struct storm *storm)
{
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_t threads[2];

    in_libc_find();
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, allocate_slowly, NULL);
    }
    for (uint32_t i = 0; i < storm->count; i++) {
        pthread_kill(threads[i % 2], SIGUSR1);
        while (atomic_load_explicit(&done_count, memory_order_relaxed) <= i) {
            usleep(10);
        }
    }
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%u signals\n", done_count);
    return 0;
}

/* Until it is killed, or COUNT blocks are there: every section grows. LOG has
 * how many were begun, and how many are there. */
static int grow(struct storm *storm)
{
    _Atomic uint64_t *log;
    int file = open(storm->path, O_RDWR | O_CREAT, 0600);

    if (file < 0 || ftruncate(file, PAGE_BYTES) < 0) {
        return 3;
    }
    log = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    for (uint32_t i = 0; i < storm->count; i++) {
        atomic_fetch_add_explicit(&log[0], 1, memory_order_seq_cst);
        if (site_of(i, 15) == NULL) {
            return 3;
        }
        atomic_fetch_add_explicit(&log[1], 1, memory_order_seq_cst);
    }
    printf("%u blocks\n", storm->count);
    return 0;
}

/* A little of all that makes a recorder ask the kernel for something. */
static int all(struct storm *storm)
{
    void *library = dlopen(storm->path, RTLD_NOW);
    pthread_t thread;
    pid_t child;
    char *map;

    for (uint32_t i = 0; i < storm->count; i++) {
        (void)site_of(i, 15);
    }
    map = mmap(NULL, PAGE_BYTES << 6, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map = mremap(map, PAGE_BYTES << 6, PAGE_BYTES << 7, MREMAP_MAYMOVE);
    map[PAGE_BYTES << 6] = 1;
    munmap(map, PAGE_BYTES << 7);
    pthread_create(&thread, NULL, live_shortly, NULL);
    pthread_join(thread, NULL);
    child = fork();
    if (child == 0) {
        live_as_child(7);
    }
    printf("%d of %u, library %d\n", status_of(child), storm->count,
           use(library));
    return 9;
}

struct faults {
    char *pages;
    int fd;
};

/* Who serves a page allocates for it, while the other waits in that page. */
static void *serve(void *argument)
{
    const struct faults *faults = argument;
    struct uffd_msg message;

    while (read(faults->fd, &message, sizeof(message)) == sizeof(message)) {
        char *filled = site_kept(PAGE_BYTES);
        struct uffdio_copy copy = {.dst = message.arg.pagefault.address &
                                          ~(uint64_t)(PAGE_BYTES - 1),
                                   .src = (uintptr_t)filled,
                                   .len = PAGE_BYTES};

        memset(filled, 'x', PAGE_BYTES);
        ioctl(faults->fd, UFFDIO_COPY, &copy);
        free(filled);
    }
    return NULL;
}

static int user_faults(struct storm *storm)
{
    size_t bytes = (size_t)storm->count * PAGE_BYTES;
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    struct faults faults = {.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC)};
    uint32_t right = 0;
    pthread_t thread;

    faults.pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    range.range.start = (uintptr_t)faults.pages;
    range.range.len = bytes;
    if (faults.fd < 0 || ioctl(faults.fd, UFFDIO_API, &api) < 0 ||
        ioctl(faults.fd, UFFDIO_REGISTER, &range) < 0) {
        return SKIPPED;
    }
    pthread_create(&thread, NULL, serve, &faults);
    for (uint32_t i = 0; i < storm->count; i++) {
        free(site_kept(200));
        right += faults.pages[(size_t)i * PAGE_BYTES + 7] == 'x';
        free(site_kept((size_t)faults.pages[(size_t)i * PAGE_BYTES]));
    }
    printf("%u pages\n", right);
    return 0;
}

int main(int argument_count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)(struct storm *storm);
    } cases[] = {
        {"forks", forks},
        {"threads", threads_in_turn},
        {"loads", loads},
        {"loads_apart", loads_apart},
        {"execs", execs},
        {"signals", signals},
        {"grow", grow},
        {"all", all},
        {"user_faults", user_faults},
    };
    struct storm storm = {.program = arguments[0]};

    if (argument_count < 3) {
        return 2;
    }
    storm.count = (uint32_t)strtoul(arguments[2], NULL, 10);
    storm.path = argument_count > 3 ? arguments[3] : "";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(arguments[1], cases[i].name)) {
            return cases[i].run(&storm);
        }
    }
    return 2;
}
