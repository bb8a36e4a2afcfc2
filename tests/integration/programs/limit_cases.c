/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process may see of itself, and what it may forbid itself.
 *
 *     limit_cases CASE
 *
 * Invariant: what is printed depends on the case and on what the caller
 * handed over, not on who is preloaded.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

SITE_FUNCTION static void *site_limit(size_t bytes)
{
    return malloc(bytes);
}

static void use(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        void *block = site_limit(16 + (size_t)i % 1000);

        if (i % 64 != 0) {
            free(block);
        }
    }
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

/* Descriptors, threads, signals, mask, next descriptor. */
/* "SigQ" is of the user: the timers of all their processes are in it. */
static bool is_of_process(const char *line)
{
    return (!strncmp(line, "Sig", 3) && strncmp(line, "SigQ", 4) != 0) ||
           !strncmp(line, "Shd", 3) || !strncmp(line, "Seccomp", 7) ||
           !strncmp(line, "NoNew", 5);
}

static void show(const char *path, bool (*is_shown)(const char *line))
{
    char line[256];
    FILE *file = fopen(path, "r");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (is_shown(line)) {
            fputs(line, stdout);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool is_timer(const char *line)
{
    return !strncmp(line, "ID:", 3);
}

static int traces(void)
{
    mode_t mask;

    use(20000);
    printf("first open gives %d\n", open("/dev/null", O_RDONLY));
    printf("descriptors %d tasks %d\n", count_entries("/proc/self/fd"),
           count_entries("/proc/self/task"));
    show("/proc/self/status", is_of_process);
    show("/proc/self/timers", is_timer);
    mask = umask(0);
    printf("umask %03o dumpable %d\n", mask, prctl(PR_GET_DUMPABLE));
    return 0;
}

static int error_numbers(void)
{
    int changed = 0;

    for (int i = 0; i < 100000; i++) {
        void *block;

        errno = 1234;
        block = site_limit((size_t)i % 3000);
        changed += errno != 1234;
        block = realloc(block, 100);
        changed += errno != 1234;
        free(block);
        changed += errno != 1234;
    }
    errno = 0;
    printf("changed %d; too much: %d", changed,
           site_limit(SIZE_MAX / 2) == NULL);
    printf(" errno %d\n", errno);
    return 0;
}

static int loader_state(void)
{
    const char *at_start = dlerror();
    const char *later;

    printf("at start: %s\n", at_start != NULL ? at_start : "no error");
    dlsym(RTLD_DEFAULT, "no_such_symbol_at_all");
    use(10000);
    later = dlerror();
    printf("after a failed dlsym: %s\n",
           later != NULL && strstr(later, "no_such") ? "its error" : "lost");
    use(1000);
    printf("and then: %s\n", dlerror() == NULL ? "no error" : "an error");
    return 0;
}

static long resident_kib(void)
{
    long total = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
        return -1;
    }
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int lazy_calloc(void)
{
    long before = resident_kib();
    char *block = calloc((size_t)1 << 20, 1 << 10);
    long after = resident_kib();

    printf("calloc of 1 GiB: %s, %s\n", block != NULL ? "given" : "refused",
           after - before < 8192 ? "untouched" : "touched");
    free(block);
    return 0;
}

static void *small_work(void *argument)
{
    use(200);
    free(calloc(10, 10));
    free(realloc(site_limit(10), 1000));
    free(aligned_alloc(64, 640));
    return argument;
}

static int small_stacks(void)
{
    pthread_attr_t attributes;
    int started = 0;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;

        if (pthread_create(&thread, &attributes, small_work, NULL) == 0) {
            pthread_join(thread, NULL);
            started++;
        }
    }
    printf("%d threads of 16 KiB\n", started);
    return 0;
}

/* Room in the heap, so that the C library itself asks for nothing later. */
static void make_room(void)
{
    mallopt(M_TOP_PAD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    free(malloc(4 << 20));
}

static void leave(const char *words)
{
    write(STDOUT_FILENO, words, strlen(words));
    syscall(SYS_exit, 0);
}

/* Only read, write, exit and sigreturn remain. */
static int strict(bool early)
{
    if (!early) {
        use(20000);
    }
    make_room();
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        return 77;
    }
    use(50000);
    for (int i = 0; i < 20; i++) {
        free(site_limit(1 << 20));
    }
    leave("went on under seccomp\n");
    return 3;
}

#define ALLOW(number)                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* A filter of the program's own: what it does not name kills. */
static int filtered(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_brk),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_futex),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    use(20000);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        return 77;
    }
    /* long enough to cross into the next buckets of the timeline */
    for (int i = 0; i < 60; i++) {
        use(20000);
    }
    leave("went on under a filter\n");
    return 3;
}

int main(int argument_count, char **arguments)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"traces", traces},
        {"error_numbers", error_numbers},
        {"loader_state", loader_state},
        {"lazy_calloc", lazy_calloc},
        {"small_stacks", small_stacks},
        {"filtered", filtered},
    };
    const char *name = argument_count == 2 ? arguments[1] : "";

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(name, cases[i].name)) {
            return cases[i].run();
        }
    }
    if (!strcmp(name, "strict") || !strcmp(name, "strict_early")) {
        return strict(!strcmp(name, "strict_early"));
    }
    return 2;
}
