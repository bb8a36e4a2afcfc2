/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A listener of static probes that needs no privileges: breakpoints in a
 * child of its own.
 *
 *     probe_watch LIBRARY OUT ADDRESS... -- PROGRAM ARGUMENTS...
 *
 * PROGRAM runs with LIBRARY in LD_PRELOAD. From its entry point on, each time
 * it comes to one of the ADDRESSes of LIBRARY a line goes to OUT: which one,
 * and the first three integer registers of a call.
 *
 *     probe_watch work BLOCKS
 *
 * is a program to watch: it allocates BLOCKS blocks and frees every other one.
 *
 * Invariant: what lies at an ADDRESS is a no-operation of one byte, so nothing
 * has to be put back for the child to go on behind it.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBES_MOST 8
#define NOP 0x90
#define INT3 0xcc

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static int work(long blocks)
{
    void **kept = calloc((size_t)blocks, sizeof(*kept));

    for (long i = 0; i < blocks; i++) {
        kept[i] = malloc(100 + (size_t)(i * 7919 % 20000));
    }
    for (long i = 0; i < blocks; i += 2) {
        free(kept[i]);
    }
    for (long i = 1; i < blocks; i += 4) {
        kept[i] = realloc(kept[i], 30000);
    }
    return 0;
}

/* Of /proc/PID/auxv. */
static uint64_t entry_of(pid_t pid)
{
    char path[64];
    Elf64_auxv_t word;
    uint64_t entry = 0;

    snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fread(&word, sizeof(word), 1, file) == 1) {
        entry = word.a_type == AT_ENTRY ? word.a_un.a_val : entry;
    }
    if (file != NULL) {
        fclose(file);
    }
    return entry;
}

/* Where the first mapping of @library begins. */
static uint64_t base_of(pid_t pid, const char *library)
{
    char path[64];
    char line[4096];
    uint64_t base = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && base == 0 &&
           fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        size_t length = strlen(line);
        if (length > strlen(library) &&
            strcmp(line + length - strlen(library), library) == 0) {
            base = strtoull(line, NULL, 16);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return base;
}

/* @return the byte that was there, less than 0 on failure */
static int put_byte(pid_t pid, uint64_t address, uint8_t byte)
{
    uint64_t at = address & ~UINT64_C(7);
    unsigned shift = (unsigned)(address & 7) * 8;
    long word;

    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, pid, (void *)at, NULL);
    if (errno != 0) {
        return -1;
    }
    uint64_t changed =
        ((uint64_t)word & ~(UINT64_C(0xff) << shift)) | (uint64_t)byte << shift;
    if (ptrace(PTRACE_POKETEXT, pid, (void *)at, (void *)changed) < 0) {
        return -1;
    }
    return (int)((uint64_t)word >> shift & 0xff);
}

/* Let it run until it stops by a trap. @return false if it has ended */
static bool resume(pid_t pid, int *ret_status)
{
    int signal = 0;

    for (;;) {
        if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal) < 0 ||
            waitpid(pid, ret_status, 0) != pid || !WIFSTOPPED(*ret_status)) {
            return false;
        }
        signal = WSTOPSIG(*ret_status);
        if (signal == SIGTRAP) {
            return true;
        }
    }
}

/* By then the loader has mapped all, and nothing of the program has run. */
static int go_to_entry(pid_t pid)
{
    struct user_regs_struct registers;
    uint64_t entry = entry_of(pid);
    int status;
    int byte = put_byte(pid, entry, INT3);

    if (byte < 0 || !resume(pid, &status) ||
        ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0 ||
        registers.rip != entry + 1) {
        return fail("entry point");
    }
    registers.rip = entry;
    put_byte(pid, entry, (uint8_t)byte);
    return ptrace(PTRACE_SETREGS, pid, NULL, &registers) < 0 ? fail("registers")
                                                             : 0;
}

static int watch(pid_t pid, const uint64_t *addresses, int count, FILE *out)
{
    struct user_regs_struct registers;
    int status;

    for (int i = 0; i < count; i++) {
        if (put_byte(pid, addresses[i], INT3) != NOP) {
            fprintf(stderr, "no nop at probe %d\n", i);
            return 1;
        }
    }
    while (resume(pid, &status)) {
        if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) < 0) {
            return fail("registers");
        }
        for (int i = 0; i < count; i++) {
            if (registers.rip == addresses[i] + 1) {
                fprintf(out, "%d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i,
                        (uint64_t)registers.rdi, (uint64_t)registers.rsi,
                        (uint64_t)registers.rdx);
            }
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static pid_t start(const char *library, char **argv)
{
    pid_t pid = fork();

    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        setenv("LD_PRELOAD", library, 1);
        execv(argv[0], argv);
        _exit(127);
    }
    return pid;
}

int main(int argc, char **argv)
{
    uint64_t addresses[PROBES_MOST];
    int count = 0;
    int status;
    int code;

    if (argc == 3 && strcmp(argv[1], "work") == 0) {
        return work(atol(argv[2]));
    }
    while (count < PROBES_MOST && 3 + count < argc &&
           strcmp(argv[3 + count], "--") != 0) {
        addresses[count] = strtoull(argv[3 + count], NULL, 16);
        count++;
    }
    if (4 + count >= argc) {
        return 2;
    }
    FILE *out = fopen(argv[2], "w");
    pid_t pid = start(argv[1], argv + 4 + count);
    if (out == NULL || pid < 0 || waitpid(pid, &status, 0) != pid ||
        !WIFSTOPPED(status)) {
        return fail("start");
    }
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
    code = go_to_entry(pid);
    for (int i = 0; i < count; i++) {
        addresses[i] += base_of(pid, argv[1]);
    }
    code = code == 0 ? watch(pid, addresses, count, out) : code;
    return fclose(out) == 0 ? code : 1;
}
