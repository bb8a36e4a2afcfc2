/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many instructions of libseep.so a malloc and a free run that are not
 * sampled: "MALLOC FREE" on stdout.
 *
 * A child is stepped through PAIRS of them; the least counts. Invariant:
 * between two breakpoints of the child stands one call and nothing else.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM 20000
#define PAIRS 64
#define BYTES 24

#if defined(__x86_64__)
#define BREAK() __asm__ volatile("int3" ::: "memory")

static void child_main(void)
{
    for (int i = 0; i < WARM; i++) {
        free(malloc(BYTES));
    }
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    for (int i = 0; i < PAIRS; i++) {
        void *block;

        BREAK();
        block = malloc(BYTES);
        BREAK();
        BREAK();
        free(block);
        BREAK();
    }
    _exit(0);
}

struct code {
    uintptr_t start;
    uintptr_t end;
};

static struct code code_of_seep(pid_t child)
{
    struct code code = {0, 0};
    char path[64];
    char line[512];
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)child);
    maps = fopen(path, "r");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start;
        unsigned long end;
        char rights[8];

        if (strstr(line, "libseep.so") != NULL &&
            sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 &&
            strchr(rights, 'x') != NULL) {
            code = (struct code){start, end};
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return code;
}

/* One step, or on to a breakpoint. @return false: the child is gone */
static int go_on(pid_t child, enum __ptrace_request how, int *ret_is_break)
{
    siginfo_t info;
    int status;

    if (ptrace(how, child, NULL, NULL) != 0 ||
        waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        WSTOPSIG(status) != SIGTRAP ||
        ptrace(PTRACE_GETSIGINFO, child, NULL, &info) != 0) {
        return 0;
    }
    *ret_is_break = info.si_code == SI_KERNEL;
    return 1;
}

/* From one breakpoint to the next. @return instructions of @code, < 0: none */
static long count_call(pid_t child, struct code code)
{
    int is_break = 0;
    long count = 0;

    if (!go_on(child, PTRACE_CONT, &is_break) || !is_break) {
        return -1;
    }
    do {
        struct user_regs_struct registers;

        if (ptrace(PTRACE_GETREGS, child, NULL, &registers) != 0) {
            return -1;
        }
        count += registers.rip >= code.start && registers.rip < code.end;
        if (!go_on(child, PTRACE_SINGLESTEP, &is_break)) {
            return -1;
        }
    } while (!is_break);
    return count;
}

int main(void)
{
    pid_t child = fork();
    long least[2] = {-1, -1};
    struct code code;
    int status;

    if (child == 0) {
        child_main();
    }
    if (child < 0 || waitpid(child, &status, 0) != child ||
        !WIFSTOPPED(status)) {
        return 1;
    }
    code = code_of_seep(child);
    for (int i = 0; i < 2 * PAIRS; i++) {
        long count = count_call(child, code);

        if (count < 0) {
            break;
        }
        if (least[i % 2] < 0 || count < least[i % 2]) {
            least[i % 2] = count;
        }
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("%ld %ld\n", least[0], least[1]);
    return 0;
}
#else
int main(void)
{
    return 77; /* how to break and to step is another's */
}
#endif
