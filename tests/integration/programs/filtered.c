/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program behind a filter that kills for some system calls:
 *
 *     filtered NUMBER[,NUMBER]... PROGRAM [ARGUMENT]...
 *
 * FILTERED_PRELOAD, if it is set, is the LD_PRELOAD of PROGRAM alone. Exits
 * with 77 where there are no filters.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define CALLS_MAX 64

static unsigned short parse(char *text, struct sock_filter *code)
{
    unsigned short length = 0;

    code[length++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS_MAX && *text != '\0'; i++) {
        unsigned number = (unsigned)strtoul(text, &text, 10);

        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                      number, 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                      SECCOMP_RET_KILL_PROCESS);
        text += *text == ',';
    }
    code[length++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return length;
}

int main(int argc, char **argv)
{
    struct sock_filter code[2 * CALLS_MAX + 2];
    struct sock_fprog program = {.filter = code};
    const char *preload = getenv("FILTERED_PRELOAD");

    if (argc < 3) {
        return 2;
    }
    program.len = parse(argv[1], code);
    if (preload != NULL) {
        setenv("LD_PRELOAD", preload, 1);
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        return 77;
    }
    execvp(argv[2], argv + 2);
    return 127;
}
