/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hook is left, or interrupted, at each of its instructions in turn.
 *
 *     steps ACTION WORK FIRST STRIDE
 *
 * Which instructions of libseep.so WORK (start, record, map) comes to is found
 * by single steps, once. Then for each of them, from the FIRST on in steps of
 * STRIDE, a child is made that has a breakpoint there, takes ACTION (jump,
 * allocate, fork, kill) when it comes to it, and goes on. Prints of each that
 * did not end as it should at which instruction, and on stderr how many
 * children there were, of how many instructions.
 *
 * Invariant: nothing is done where the C library was interrupted: there the
 * program itself would be wrong, with or without seep.
 */
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include "truth.h"

#define TRAP_FLAG 0x100U
#define BREAKPOINT 0xccU
#define PAGE_BYTES 4096U
#define NOT_THERE 3
#define NOT_FORKED 4
#define TURNS_MOST 100 /* after which a loop is one step */
#define AFTER_COUNT 20
#define WORK_COUNT 30
#define MAP_BYTES (256U << 10)

enum action { JUMP, ALLOCATE, FORK, KILL, ACTION_COUNT };

static const char *const action_names[ACTION_COUNT] = {"jump", "allocate",
                                                       "fork", "kill"};
static enum action wanted;
static sigjmp_buf place;
static volatile bool has_acted;

/* The code of libseep.so, and for each of its bytes how often the work came to
 * an instruction there, up to TURNS_MOST. Written by the child that looks. */
static uintptr_t code_start;
static uintptr_t code_end;
static uint16_t *reached_count;

/* Where this child acts, or goes on with its steps, and what was there. */
static unsigned char *act_at;
static unsigned char *resume_at;
static bool was_own; /* of libseep.so, the last step's code */
static unsigned char was_there;

static int find_code(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (strstr(info->dlpi_name, "libseep") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            code_start = (uintptr_t)(info->dlpi_addr + segment->p_vaddr);
            code_end = code_start + (uintptr_t)segment->p_memsz;
        }
    }
    return 1;
}

static bool write_code(unsigned char *at, unsigned char byte)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)(PAGE_BYTES - 1);

    if (mprotect((void *)page, PAGE_BYTES,
                 PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return false;
    }
    *at = byte;
    return true;
}

SITE_FUNCTION static void *site_work(size_t bytes)
{
    return malloc(bytes);
}

SITE_FUNCTION static void *site_handler(void)
{
    return malloc(40);
}

SITE_FUNCTION static void *site_after(void)
{
    return malloc(4000);
}

/* Children of children end here. */
static void fork_one(void)
{
    int status = -1;
    pid_t child = fork();

    if (child < 0) {
        _exit(NOT_FORKED);
    }
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) {
        _exit(NOT_FORKED);
    }
}

static void act(void)
{
    has_acted = true;
    switch (wanted) {
    case JUMP:
        siglongjmp(place, 1);
    case ALLOCATE:
        free(site_handler());
        break;
    case FORK:
        fork_one();
        break;
    default:
        raise(SIGKILL);
        break;
    }
}

/* The length of an instruction that repeats itself, which steps by itself at
 * each turn; 0: it is another. */
static size_t repeated_bytes(const unsigned char *at)
{
    size_t rex = (at[1] & 0xf0U) == 0x40;

    return at[0] == 0xf3 && (at[1 + rex] & 0xf4U) == 0xa4 ? 2 + rex : 0;
}

/* The same of a jump back, the end of a loop; behind it is what follows. */
static size_t loop_bytes(const unsigned char *at)
{
    if (((at[0] & 0xf0U) == 0x70 || at[0] == 0xeb) && at[1] >= 0x80) {
        return 2;
    }
    if (at[0] == 0xe9 && at[4] >= 0x80) {
        return 5;
    }
    return at[0] == 0x0f && (at[1] & 0xf0U) == 0x80 && at[5] >= 0x80 ? 6 : 0;
}

static void go_on_until(unsigned char *end, greg_t *registers)
{
    resume_at = end;
    was_there = *end;
    if (write_code(end, BREAKPOINT)) {
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    }
}

/* Who looks steps over what others do for the hooks, over repetitions, and over
 * the rest of a loop of many turns. */
static void note_step(uintptr_t at, greg_t *registers)
{
    bool is_own = at >= code_start && at < code_end;

    if (is_own) {
        unsigned char *code = (unsigned char *)at;
        uint16_t *count = &reached_count[at - code_start];
        size_t bytes = repeated_bytes(code);

        if (*count < TURNS_MOST) {
            ++*count;
        } else if (bytes == 0) {
            bytes = loop_bytes(code);
        }
        if (bytes != 0) {
            go_on_until(code + bytes, registers);
        }
    } else if (was_own) { /* by a call */
        uintptr_t back = *(uintptr_t *)registers[REG_RSP];

        if (back >= code_start && back < code_end) {
            go_on_until((unsigned char *)back, registers);
        }
    }
    was_own = is_own;
}

/* After a step, or at a breakpoint. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)registers[REG_RIP];

    (void)signal;
    (void)info;
    if (act_at != NULL) {
        *act_at = was_there;
        registers[REG_RIP] = (greg_t)(uintptr_t)act_at;
        act();
        return;
    }
    if (resume_at != NULL && at == (uintptr_t)resume_at + 1) {
        *resume_at = was_there;
        at--;
        registers[REG_RIP] = (greg_t)at;
        registers[REG_EFL] |= TRAP_FLAG;
        resume_at = NULL;
    }
    note_step(at, registers);
}

static void step(bool on)
{
    uint64_t flags = __readeflags();

    __writeeflags(on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG);
}

static void work_start(void)
{
    free(site_work(100));
}

static void work_record(void)
{
    void *blocks[WORK_COUNT];

    for (size_t i = 0; i < WORK_COUNT; i++) {
        blocks[i] = site_work(100);
    }
    for (size_t i = 0; i < WORK_COUNT; i++) {
        free(blocks[i]);
    }
}

static void work_map(void)
{
    char *mapped = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(mapped, MAP_BYTES / 2);
    munmap(mapped + MAP_BYTES / 2, MAP_BYTES / 2);
    free(realloc(site_work(100), 3000));
}

static const struct work {
    const char *name;
    void (*run)(void);
    bool has_begun; /* the child's recording, before */
} works[] = {
    {"start", work_start, false},
    {"record", work_record, true},
    {"map", work_map, true},
};

/* The life of the child that looks where the work comes to. */
static void look(const struct work *work)
{
    if (work->has_begun) {
        work->run();
    }
    step(true);
    work->run();
    step(false);
    _exit(0);
}

/* The life of one that acts. */
static void live(const struct work *work)
{
    if (work->has_begun) {
        work->run();
    }
    was_there = *act_at;
    if (sigsetjmp(place, 1) == 0) {
        if (!write_code(act_at, BREAKPOINT)) {
            _exit(NOT_THERE);
        }
        work->run();
        if (!has_acted) {
            _exit(NOT_THERE);
        }
    }
    for (int i = 0; i < AFTER_COUNT; i++) {
        free(site_after());
    }
    _exit(0);
}

static int run_child(void (*life)(const struct work *), const struct work *work)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        life(work);
    }
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void each_instruction(const struct work *work, size_t first,
                             size_t stride)
{
    size_t bytes = code_end - code_start;
    size_t number = 0;
    size_t child_count = 0;
    size_t missed_count = 0;

    for (size_t i = 0; i < bytes; i++) {
        int status;

        if (reached_count[i] == 0 || number++ < first ||
            (number - first) % stride) {
            continue;
        }
        act_at = (unsigned char *)code_start + i;
        status = run_child(live, work);
        act_at = NULL;
        child_count++;
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_THERE) {
            missed_count++; /* it went another way than who looked */
        } else if (status != (wanted == KILL ? SIGKILL : 0)) {
            printf("%s at +%#zx of %s: status %#x\n", action_names[wanted], i,
                   work->name, (unsigned)status);
        }
    }
    fprintf(stderr, "%zu of %zu instructions, %zu not come to\n", child_count,
            number, missed_count);
}

static int run(const struct work *work, size_t first, size_t stride)
{
    int status;

    if (dl_iterate_phdr(find_code, NULL) == 0) {
        puts("ended");
        return 0;
    }
    reached_count =
        mmap(NULL, (code_end - code_start) * sizeof(*reached_count),
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    status = reached_count == MAP_FAILED ? -1 : run_child(look, work);
    if (status != 0) {
        printf("stepping: status %#x\n", (unsigned)status);
        return 1;
    }
    each_instruction(work, first, stride);
    puts("ended");
    return 0;
}

int main(int argument_count, char **arguments)
{
    struct sigaction action = {.sa_sigaction = on_trap,
                               .sa_flags = SA_SIGINFO | SA_RESTART};

    if (argument_count != 5) {
        return 2;
    }
    while (wanted < ACTION_COUNT &&
           strcmp(arguments[1], action_names[wanted]) != 0) {
        wanted++;
    }
    sigaction(SIGTRAP, &action, NULL);
    free(site_work(100));
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
        if (strcmp(arguments[2], works[i].name) == 0) {
            return run(&works[i], strtoul(arguments[3], NULL, 10),
                       strtoul(arguments[4], NULL, 10));
        }
    }
    return 2;
}
