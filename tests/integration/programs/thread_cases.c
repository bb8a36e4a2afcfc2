/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads, stacks and libraries that come and go while others allocate.
 *
 *     thread_cases CASE
 *
 * Invariant: what is printed depends on the case only.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "truth.h"

#define STORM_THREADS 3
#define STACK_BYTES 32768

static atomic_bool stop;
static pthread_t storm_threads[STORM_THREADS];

SITE_FUNCTION static void *site_thread(size_t bytes)
{
    return malloc(bytes);
}

static void *allocate(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        free(site_thread(48));
    }
    return argument;
}

static void start_storm(void)
{
    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_create(&storm_threads[i], NULL, allocate, NULL);
    }
}

static void end_storm(void)
{
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_join(storm_threads[i], NULL);
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info;
    (void)size;
    free(site_thread(24));
    *(int *)context += 1;
    return 0;
}

/* The loader's lock is held by one, wanted by another, while all allocate. */
static int dlopen_storm(void)
{
    int seen = 0;

    start_storm();
    for (int i = 0; i < 300; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        void *other = dlopen("libnsl.so.2", RTLD_NOW | RTLD_LOCAL);

        dl_iterate_phdr(look, &seen);
        if (library != NULL) {
            dlclose(library);
        }
        if (other != NULL) {
            dlclose(other);
        }
    }
    end_storm();
    puts(seen > 0 ? "no deadlock" : "nothing seen");
    return 0;
}

static void allocate_at_end(void *value)
{
    free(value);
    free(site_thread(100));
}

static pthread_key_t key;

static void *short_life(void *argument)
{
    pthread_setspecific(key, site_thread(10));
    free(site_thread(20));
    return argument;
}

/* More threads in turn than there can be slots, allocating to their end. */
static int thread_storm(void)
{
    int ended = 0;

    pthread_key_create(&key, allocate_at_end);
    for (int i = 0; i < 5000; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, short_life, NULL) == 0) {
            ended += pthread_join(thread, NULL) == 0;
        }
    }
    printf("%d threads\n", ended);
    return 0;
}

static int exit_beside_threads(void)
{
    start_storm();
    usleep(20000);
    puts("exits");
    exit(6);
}

static void on_fork(void)
{
    free(site_thread(30));
}

/* Handlers that allocate before and after ours, if we had any. */
static int atfork_allocates(void)
{
    int good = 0;

    pthread_atfork(on_fork, on_fork, on_fork);
    start_storm();
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
            free(site_thread(40));
            _exit(0);
        }
        waitpid(pid, &status, 0);
        good += status == 0;
    }
    end_storm();
    printf("%d children\n", good);
    return 0;
}

static ucontext_t outside;
static ucontext_t inside;
static int switches;

static void coroutine(void)
{
    for (;;) {
        void *block = site_thread(60);

        switches++;
        swapcontext(&inside, &outside);
        free(block);
    }
}

/* Stacks that no thread has: a walk must end at their edges. */
static int coroutines(void)
{
    char *stack = malloc(STACK_BYTES);

    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK_BYTES;
    inside.uc_link = NULL;
    makecontext(&inside, coroutine, 0);
    for (int i = 0; i < 1000; i++) {
        swapcontext(&outside, &inside);
        free(site_thread(70));
    }
    printf("%d switches\n", switches);
    free(stack);
    return 0;
}

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    (void)number;
    free(site_thread(80));
    handled = handled + 1;
}

static int other_stack(void)
{
    stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 1000; i++) {
        raise(SIGUSR1);
    }
    printf("%d on another stack\n", handled);
    return 0;
}

static unsigned deep(unsigned depth)
{
    volatile unsigned here = depth;

    if (depth == 0) {
        free(site_thread(90));
        return 1;
    }
    return deep(depth - 1) + here - here;
}

static int deep_stack(void)
{
    unsigned sum = 0;

    for (int i = 0; i < 20; i++) {
        sum += deep(20000);
    }
    printf("%u deep\n", sum);
    return 0;
}

#define WAIT_MS 20000
#define LARGE_BYTES (64U << 20)
#define DESCRIPTORS 64

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        count += fcntl(fd, F_GETFD) != -1;
    }
    return count;
}

/* This thread's calls of fallocate() wait for who reads what is returned. The C
 * library's own function is asked: who hears of a filter asks for no more. */
static int stop_at_fallocate(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                 .filter = filter};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *found = libc == NULL ? NULL : dlsym(libc, "syscall");
    long (*call)(long, ...) = NULL;

    if (found == NULL) {
        return -1;
    }
    memcpy(&call, &found, sizeof(found));
    call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)call(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                     SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static atomic_int listener;

/* A block that is sampled: with it the recording begins. */
static void *begin(void *argument)
{
    atomic_store_explicit(&listener, stop_at_fallocate(), memory_order_relaxed);
    free(site_thread(LARGE_BYTES));
    return argument;
}

/* What a child has open that its parent had not. */
static int count_held(int own)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(count_descriptors() - own);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A fork while another thread is about to reserve the recording's file. */
static int fork_beside_a_start(void)
{
    struct seccomp_notif asked = {0};
    struct seccomp_notif_resp answer = {.flags =
                                            SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    struct pollfd poll_fd = {.events = POLLIN};
    int own = count_descriptors() + 1; /* and the listener */
    pthread_t thread;

    pthread_create(&thread, NULL, begin, NULL);
    while ((poll_fd.fd =
                atomic_load_explicit(&listener, memory_order_relaxed)) == 0) {
        usleep(100);
    }
    if (poll_fd.fd > 0 && poll(&poll_fd, 1, WAIT_MS) == 1 &&
        (poll_fd.revents & POLLIN) != 0) {
        printf("stopped, %d held by a child\n", count_held(own));
        ioctl(poll_fd.fd, SECCOMP_IOCTL_NOTIF_RECV, &asked);
        answer.id = asked.id;
        ioctl(poll_fd.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    } else {
        puts("not stopped");
    }
    pthread_join(thread, NULL);
    return 0;
}

int main(int argument_count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"dlopen_storm", dlopen_storm},
        {"thread_storm", thread_storm},
        {"exit_beside_threads", exit_beside_threads},
        {"atfork_allocates", atfork_allocates},
        {"coroutines", coroutines},
        {"other_stack", other_stack},
        {"deep_stack", deep_stack},
        {"fork_beside_a_start", fork_beside_a_start},
    };
    const char *name = argument_count == 2 ? arguments[1] : "";

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(name, cases[i].name)) {
            return cases[i].run();
        }
    }
    return 2;
}
