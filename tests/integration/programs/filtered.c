/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program behind a filter that kills for some system calls, or refuses them:
 *
 *     filtered CALL[,CALL]... PROGRAM [ARGUMENT]...
 *
 * CALL is NUMBER[@ARGUMENT:VALUE][=ERRNO]: where that argument, the first is 0,
 * ends in these 32 bits; killed without ERRNO.
 *
 * FILTERED_PRELOAD, if it is set, is the LD_PRELOAD of PROGRAM alone. Exits
 * with 77 where there are no filters.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define CALLS_MAX 64

static unsigned number(char **text)
{
    return (unsigned)strtoul(*text, text, 0);
}

static struct sock_filter load(size_t offset)
{
    return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                        (unsigned)offset);
}

/* Jump over @steps unless what is loaded is @value. */
static struct sock_filter unless(unsigned value, unsigned char steps)
{
    return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0,
                                        steps);
}

static struct sock_filter answer(unsigned what)
{
    return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
}

static unsigned short parse(char *text, struct sock_filter *code)
{
    unsigned short length = 0;

    for (int i = 0; i < CALLS_MAX && *text != '\0'; i++) {
        unsigned what = SECCOMP_RET_KILL_PROCESS;
        unsigned call = number(&text);
        unsigned argument = 0;
        unsigned value = 0;
        int has_value = *text == '@';

        if (has_value) {
            text++;
            argument = number(&text);
            text++;
            value = number(&text);
        }
        if (*text == '=') {
            text++;
            what = SECCOMP_RET_ERRNO | number(&text);
        }
        code[length++] = load(offsetof(struct seccomp_data, nr));
        code[length++] = unless(call, has_value ? 3 : 1);
        if (has_value) {
            code[length++] = load(offsetof(struct seccomp_data, args) +
                                  argument * sizeof(uint64_t));
            code[length++] = unless(value, 1);
        }
        code[length++] = answer(what);
        text += *text == ',';
    }
    code[length++] = answer(SECCOMP_RET_ALLOW);
    return length;
}

int main(int argc, char **argv)
{
    struct sock_filter code[5 * CALLS_MAX + 1];
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
