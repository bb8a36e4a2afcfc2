/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ways to get a second process: each child allocates, and says that it could.
 *
 *     fork_cases CASE [FOLDER]
 *
 * Invariant: what is printed depends on the case only.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

#define CHILD_BLOCKS 500
#define CHILD_BYTES 48
#define CHILDREN_A_THREAD 8
#define STORM_THREADS 4
#define MAPPED_BYTES (1U << 20)

extern char **environ;

static atomic_bool stop;
static atomic_int good_children;

SITE_FUNCTION static void *site_parent(void)
{
    return malloc(64);
}

SITE_FUNCTION static void *site_child(void)
{
    return malloc(CHILD_BYTES);
}

/* What every child does; its recording must say exactly this. */
static int child(void)
{
    static void *kept[CHILD_BLOCKS];

    for (int i = 0; i < CHILD_BLOCKS; i++) {
        kept[i] = site_child();
        if (kept[i] == NULL) {
            return 1;
        }
        memset(kept[i], i, CHILD_BYTES);
    }
    for (int i = 0; i < CHILD_BLOCKS / 2; i++) {
        free(kept[i]);
    }
    return 0;
}

static void wait_for(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) {
        atomic_fetch_add_explicit(&good_children, 1, memory_order_relaxed);
    }
}

static void *allocate(void *argument)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        free(site_parent());
    }
    return argument;
}

static void *fork_some(void *argument)
{
    for (int i = 0; i < CHILDREN_A_THREAD; i++) {
        void *inherited = site_parent();
        pid_t pid = fork();

        if (pid == 0) {
            free(inherited);
            _exit(child());
        }
        free(inherited);
        wait_for(pid);
    }
    return argument;
}

/* Threads that allocate beside threads that fork. */
static int fork_threads(void)
{
    pthread_t threads[STORM_THREADS];

    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_create(&threads[i], NULL, i % 2 == 0 ? allocate : fork_some,
                       NULL);
    }
    for (int i = 1; i < STORM_THREADS; i += 2) {
        pthread_join(threads[i], NULL);
    }
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < STORM_THREADS; i += 2) {
        pthread_join(threads[i], NULL);
    }
    printf("%d children of threads\n", good_children);
    return 0;
}

/* No atfork handler runs, and nobody tells the library. */
static int raw_clone(void)
{
    free(site_parent());
    for (int i = 0; i < 5; i++) {
        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

        if (pid == 0) {
            _exit(child());
        }
        wait_for(pid);
    }
    printf("%d children by clone\n", good_children);
    return 0;
}

static int plain_fork(void)
{
    pid_t pid;

    free(site_parent());
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        exit(child());
    }
    wait_for(pid);
    printf("%d children by fork\n", good_children);
    return 0;
}

/* A child in which nothing happens but its end; its parent is killed later. */
static int exit_at_once(void)
{
    pid_t pid;

    free(site_parent()); /* else a child's first block makes it known */
    mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid = fork();
    if (pid == 0) {
        exit(0);
    }
    wait_for(pid);
    if (good_children == 1) {
        raise(SIGKILL);
    }
    return 1;
}

static int spawn(void)
{
    char *words[] = {"true", NULL};

    for (int i = 0; i < 20; i++) {
        pid_t pid;

        free(site_parent());
        if (posix_spawnp(&pid, "true", NULL, NULL, words, environ) == 0) {
            wait_for(pid);
        }
    }
    printf("%d children by posix_spawn\n", good_children);
    return 0;
}

/* The child borrows our memory, and allocates in it. */
static int use_vfork(void)
{
    void *block = site_parent();

    for (int i = 0; i < 20; i++) {
        pid_t pid = vfork();

        if (pid == 0) {
            free(site_child());
            if (i % 2 == 0) {
                execlp("true", "true", (char *)NULL);
            }
            _exit(0);
        }
        wait_for(pid);
    }
    free(block);
    printf("%d children by vfork\n", good_children);
    return 0;
}

/* The daemon's life: nothing that was open stays open. */
static void serve(const char *folder)
{
    char path[4096];
    int files[8];

    chdir(folder);
    for (int i = 0; i < 1024; i++) {
        close(i);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof(path), "daemon.%d", i);
        files[i] = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    }
    for (int round = 0; round < 2000; round++) {
        free(site_parent());
        (void)site_child();
        if (write(files[round % 8], "0123456\n", 8) != 8) {
            _exit(1);
        }
    }
    snprintf(path, sizeof(path), "first %d last %d\n", files[0], files[7]);
    write(files[0], path, strlen(path));
    close(open("daemon.done", O_WRONLY | O_CREAT, 0600));
    _exit(0);
}

static int make_daemon(const char *folder)
{
    char path[4096];
    struct stat status;
    pid_t pid;

    free(site_parent());
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() == 0) {
            serve(folder);
        }
        _exit(0);
    }
    wait_for(pid);
    snprintf(path, sizeof(path), "%s/daemon.done", folder);
    for (int i = 0; i < 3000 && stat(path, &status) < 0; i++) {
        usleep(10000);
    }
    puts(stat(path, &status) == 0 ? "daemon done" : "daemon lost");
    return 0;
}

int main(int argument_count, char **arguments)
{
    const char *name = argument_count > 1 ? arguments[1] : "";

    if (!strcmp(name, "fork_threads")) {
        return fork_threads();
    }
    if (!strcmp(name, "raw_clone")) {
        return raw_clone();
    }
    if (!strcmp(name, "fork")) {
        return plain_fork();
    }
    if (!strcmp(name, "exit_at_once")) {
        return exit_at_once();
    }
    if (!strcmp(name, "spawn")) {
        return spawn();
    }
    if (!strcmp(name, "vfork")) {
        return use_vfork();
    }
    if (!strcmp(name, "daemon") && argument_count == 3) {
        return make_daemon(arguments[2]);
    }
    return 2;
}
