/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs whose allocator is asked for its figures while they are busy with
 * it, in the ways that could make the question a deadlock.
 *
 *     allocator_cases CASE
 *
 * Invariant: without us each case ends, prints the same, and leaves errno as
 * it was; 1 is the exit code of one that saw errno change.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUSY_S 1.0
#define LONG_BUSY_S 4.0
#define ERRNO_MARK 77
/* Of handlers alone: their thread's cache serves it, nearly always. */
#define HANDLER_BYTES 48
#define HANDLER_MAP_BYTES 65536

static double busy_s = BUSY_S;
static atomic_bool stop;
static atomic_int errno_changes;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check_errno(void)
{
    if (errno != ERRNO_MARK) {
        atomic_fetch_add_explicit(&errno_changes, 1, memory_order_relaxed);
    }
    errno = ERRNO_MARK;
}

/* Sizes that go past a thread's cache, to where the locks are. */
static void churn(unsigned int rounds)
{
    void *held[64] = {NULL};

    errno = ERRNO_MARK;
    for (unsigned int i = 0; i < rounds; i++) {
        void **slot = &held[i * 7 % 64];

        free(*slot);
        *slot = malloc(1100 + i * 131 % 9000);
        check_errno();
    }
    for (int i = 0; i < 64; i++) {
        free(held[i]);
    }
}

static void *churn_on(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        churn(1000);
    }
    return argument;
}

static void start_threads(pthread_t *threads, int count)
{
    atomic_store_explicit(&stop, false, memory_order_relaxed);
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, churn_on, NULL);
    }
}

static void end_threads(pthread_t *threads, int count)
{
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void busy(double for_s)
{
    double end = seconds() + for_s;

    while (seconds() < end) {
        churn(500);
    }
}

/* What the program itself is told: allocated, resident, retained, chunks. */
static void ask(size_t *figures)
{
    int (*control)(const char *, void *, size_t *, void *, size_t);
    int (*number)(const char *, size_t *);
    size_t size = sizeof(size_t);
    uint64_t epoch = 1;

    *(void **)&control = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&number =
        dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    if (control != NULL) {
        control("epoch", NULL, NULL, &epoch, sizeof(epoch));
        control("stats.allocated", &figures[0], &size, NULL, 0);
        control("stats.resident", &figures[1], &size, NULL, 0);
        control("stats.retained", &figures[2], &size, NULL, 0);
    } else if (number != NULL) {
        number("generic.current_allocated_bytes", &figures[0]);
        number("generic.heap_size", &figures[1]);
        number("tcmalloc.pageheap_unmapped_bytes", &figures[2]);
        figures[1] -= figures[2];
    } else {
        struct mallinfo2 info = mallinfo2();

        figures[0] = info.uordblks + info.hblkhd;
        figures[1] = info.arena + info.hblkhd;
        figures[3] = info.ordblks + info.smblks;
    }
}

static void tell_figures(void)
{
    size_t figures[4] = {0};

    ask(figures);
    printf("%zu %zu %zu %zu\n", figures[0], figures[1], figures[2], figures[3]);
}

/* Blocks of several kinds, every second of the small ones free again. */
static void figures(void)
{
    enum { COUNT = 2000 };
    static void *volatile blocks[COUNT];

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(10000);
        memset(blocks[i], 1, 10000);
    }
    for (int i = 0; i < COUNT; i += 2) {
        free(blocks[i]);
    }
    blocks[0] = malloc(32 << 20);
    memset(blocks[0], 1, 32 << 20);
    busy(0.3);
    tell_figures();
}

/* The allocator's own mappings, and one of the program's. */
static void allocator_moves(void)
{
    void (*moves)(void);

    *(void **)&moves = dlsym(RTLD_DEFAULT, "strict_moves");
    churn(100);
    for (int i = 0; i < 100; i++) {
        moves();
    }
    mmap(NULL, HANDLER_MAP_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
         0);
}

static void map_in_handler(int number)
{
    int saved = errno;
    void *block = mmap(NULL, HANDLER_MAP_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)number;
    if (block != MAP_FAILED) {
        munmap(block, HANDLER_MAP_BYTES);
    }
    errno = saved;
}

static void *churn_interrupted(void *argument)
{
    sigset_t alarm;
    size_t figures[4] = {0};

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int i = 0; i < 20; i++) {
            ask(figures); /* most of the time its locks are held */
        }
        churn(10);
    }
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    return argument;
}

/* Anywhere in the allocator, and in us. Not with malloc, which no handler may
 * call: its thread's cache serves it mostly, but jemalloc and tcmalloc tidy
 * that up every so many bytes, and hang when it was interrupted at that. */
static void handlers_map(void)
{
    struct sigaction action = {.sa_handler = map_in_handler,
                               .sa_flags = SA_RESTART};
    static void *volatile blocks[4000];
    pthread_t threads[4];
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 4000; i++) {
        blocks[i] = malloc(1100);
    }
    for (int i = 0; i < 4000; i += 2) {
        free(blocks[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, churn_interrupted, NULL);
    }
    for (double end = seconds() + busy_s; seconds() < end; usleep(250)) {
        for (int i = 0; i < 4; i++) {
            pthread_kill(threads[i], SIGALRM);
        }
    }
    end_threads(threads, 4);
}

static void allocate_a_little(void)
{
    for (int i = 0; i < 2; i++) {
        void *volatile block = malloc(HANDLER_BYTES);

        free(block);
    }
}

static void allocate_in_handler(int number)
{
    (void)number;
    allocate_a_little();
}

static void handle_alarm(void (*handle)(int))
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

    sigaction(SIGALRM, &action, NULL);
}

static void raise_alarm(void)
{
    raise(SIGALRM);
}

/* Busy with strict_allocator.c, which calls @call in its middle, where its
 * variable @name says. */
static void busy_with(const char *name, void (*call)(void))
{
    void (**where)(void) = dlsym(RTLD_DEFAULT, name);
    void *volatile block;

    if (where == NULL) {
        exit(2);
    }
    *where = call;
    for (double end = seconds() + busy_s / 4; seconds() < end;) {
        for (int i = 0; i < 20; i++) {
            block = malloc(1100);
            free(block);
        }
    }
    *where = NULL;
}

static void handler_inside(void)
{
    handle_alarm(allocate_in_handler);
    busy_with("strict_inside", raise_alarm);
}

static void call_inside(void)
{
    busy_with("strict_inside", allocate_a_little);
}

static void lock_in_handler(int number)
{
    void *volatile block = malloc(1100);

    (void)number;
    free(block);
}

static void handler_in_question(void)
{
    handle_alarm(lock_in_handler);
    busy_with("strict_asked", raise_alarm);
}

static atomic_int stopped_count;

static void stop_for_ever(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&stopped_count, 1, memory_order_relaxed);
    for (;;) {
        pause();
    }
}

static void *allocate_until_stopped(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        void *volatile block = malloc(HANDLER_BYTES);

        free(block);
    }
    return argument;
}

/* Threads that stop anywhere and stay, as those do that wait for the lock of
 * an interpreter which has ended. */
static void stopped_threads(void)
{
    enum { COUNT = 32, BLOCKS = 50000 };
    static void *volatile blocks[BLOCKS];
    pthread_t threads[COUNT];

    churn(500); /* else one may stop while it creates the recording */
    handle_alarm(stop_for_ever);
    atomic_store_explicit(&stop, false, memory_order_relaxed);
    for (int i = 0; i < COUNT; i++) {
        pthread_create(&threads[i], NULL, allocate_until_stopped, NULL);
    }
    usleep(50000);
    for (int i = 0; i < COUNT; i++) {
        pthread_kill(threads[i], SIGALRM);
    }
    while (atomic_load_explicit(&stopped_count, memory_order_relaxed) < COUNT) {
        usleep(1000);
    }
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(HANDLER_BYTES);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    puts("ends");
}

static bool serves_while_locked;

/* In the middle of a fork, with all of the allocator locked: glibc's serves
 * this from the thread's cache, and the strict one without its lock. The others
 * may not. */
static void find_what_serves(void)
{
    serves_while_locked =
        dlsym(RTLD_DEFAULT, "strict_inside") != NULL ||
        (dlsym(RTLD_DEFAULT, "mallctl") == NULL &&
         dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty") == NULL);
    dlerror();
}

static void allocate_while_locked(void)
{
    if (serves_while_locked) {
        allocate_a_little();
    }
}

/* Before any allocator has registered its own handlers. */
static void register_early(void)
{
    pthread_atfork(allocate_while_locked, allocate_while_locked,
                   allocate_while_locked);
}

__attribute__((section(".preinit_array"),
               used)) static void (*const early)(void) = register_early;

static void wait_for(pid_t child)
{
    int status = 0;

    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        printf("a child ended with %d\n", status);
    }
}

static pid_t fork_primed(void)
{
    allocate_a_little(); /* the thread's cache serves the handlers now */
    return fork();
}

static void forks(void)
{
    enum { CHILDREN = 80 };

    find_what_serves();
    busy(0.2);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork_primed();

        if (child == 0) {
            churn(100);
            _exit(0);
        }
        wait_for(child);
        usleep(1000);
    }
}

static void fork_storm(void)
{
    pthread_t threads[4];

    start_threads(threads, 4);
    forks();
    end_threads(threads, 4);
}

/* One child as the C library makes it, one as the kernel does; in a namespace
 * of processes, whose first this is, that one has our number too. */
static void sound_and_raw_children(void)
{
    long flags = SIGCHLD | (getpid() == 1 ? CLONE_NEWPID : 0);
    pid_t child;

    find_what_serves();
    busy(0.1);
    fflush(NULL);
    child = fork_primed();
    if (child == 0) {
        busy(0.1);
        _exit(0);
    }
    wait_for(child);
    printf("%d ", child);
    fflush(NULL);
    child = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (child == 0) {
        busy(0.1);
        _exit(0);
    }
    wait_for(child);
    printf("%d\n", child);
}

/* After this any system call of ours is the end. */
static void restrict_itself(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {5, filter};

    busy(0.2);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        exit(2);
    }
    busy(0.3);
}

static void many_threads(void)
{
    pthread_t threads[16];

    start_threads(threads, 16);
    busy(busy_s);
    end_threads(threads, 16);
}

static void thread_in_dlopen(void)
{
    pthread_t threads[3];

    start_threads(threads, 3);
    for (double end = seconds() + busy_s; seconds() < end;) {
        void *library = dlopen("libfirst.so", RTLD_NOW);

        if (library == NULL) {
            puts(dlerror());
            break;
        }
        dlclose(library);
    }
    end_threads(threads, 3);
}

/* To walk so many free chunks takes far more than a millisecond. */
static void many_chunks(void)
{
    enum { COUNT = 600000 };
    static void *volatile blocks[COUNT];

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(1100);
    }
    for (int i = 0; i < COUNT; i += 2) {
        free(blocks[i]);
    }
    busy(0.5);
}

/* NULL of glibc; of others a block that may not be looked at. */
static void empty_block(void)
{
    static volatile size_t size = 0;
    void *block = malloc(64);

    errno = ERRNO_MARK;
    block = realloc(block, size);
    check_errno();
    free(block);
}

int main(int argument_count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"empty_block", empty_block},
        {"figures", figures},
        {"allocator_moves", allocator_moves},
        {"forks", forks},
        {"fork_storm", fork_storm},
        {"handlers_map", handlers_map},
        {"handler_inside", handler_inside},
        {"call_inside", call_inside},
        {"handler_in_question", handler_in_question},
        {"stopped_threads", stopped_threads},
        {"many_chunks", many_chunks},
        {"many_threads", many_threads},
        {"restrict_itself", restrict_itself},
        {"sound_and_raw_children", sound_and_raw_children},
        {"thread_in_dlopen", thread_in_dlopen},
    };
    const char *full = getenv("SEEP_TEST_LONG");

    if (full != NULL && *full != '\0' && strcmp(full, "0") != 0) {
        busy_s = LONG_BUSY_S;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argument_count == 2 && strcmp(arguments[1], cases[i].name) == 0) {
            cases[i].run();
            return atomic_load_explicit(&errno_changes, memory_order_relaxed) !=
                   0;
        }
    }
    return 2;
}
