/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes and cores that lie about what they have cost no more than their
 * limit, and are told nothing that was not seen.
 *
 * Invariant: what is asserted of time is the processor's.
 */
#include <elf.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held/held.h"
#include "seep_test.h"

#define BLOCKS 32U
#define BLOCK_BYTES 4096U
#define LIMIT_S 0.2
#define MOST_S 10.0 /* the limit, and what goes on between two looks */
#define MOST_KIB (UINT64_C(512) << 10)
#define MIB (UINT64_C(1) << 20)
#define NOWHERE UINT64_C(0x123456780000) /* an address without memory */

struct fixture {
    char *blocks;
    struct seep_held_block asked[BLOCKS];
    int pipe[2];
    pid_t child;
    char path[64];
};

static int set_up(void **state)
{
    struct fixture *f;

    malloc_trim(0);
    f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->blocks = mmap(NULL, BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f->blocks != MAP_FAILED);
    for (size_t i = 0; i < BLOCKS; i++) {
        f->asked[i].address = (uintptr_t)f->blocks + i * BLOCK_BYTES;
        f->asked[i].bytes = BLOCK_BYTES;
    }
    assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->child > 0) {
        kill(f->child, SIGKILL);
        waitpid(f->child, NULL, 0);
    }
    if (*f->path != '\0') {
        unlink(f->path);
    }
    munmap(f->blocks, BLOCKS * BLOCK_BYTES);
    close(f->pipe[0]);
    close(f->pipe[1]);
    free(f);
    return 0;
}

/* A child of ours with the same addresses, which does @make and waits. */
static void begin(struct fixture *f, void (*make)(struct fixture *f))
{
    char ready = 0;

    f->child = fork();
    assert_true(f->child >= 0);
    if (f->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        make(f);
        ready = write(f->pipe[1], "r", 1) == 1;
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(f->pipe[0], &ready, 1), 1);
}

static char *take(uint64_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        _exit(1);
    }
    return memory;
}

/* Ask, in a child whose memory is its own. @return what it says */
static struct seep_held_answer *ask(struct fixture *f, double limit_s)
{
    struct seep_held_question question = {
        .pid = f->child,
        .core_path = f->child > 0 ? NULL : f->path,
        .blocks = f->asked,
        .block_count = BLOCKS,
        .cpu_limit_s = limit_s,
    };
    struct seep_held_answer *answer = NULL;
    struct rusage usage;
    size_t told = 0;

    assert_int_equal(seep_held_ask(&question, &answer), 0);
    assert_true(answer->cpu_s < MOST_S);
    getrusage(RUSAGE_SELF, &usage);
    assert_true((uint64_t)usage.ru_maxrss < MOST_KIB);
    for (size_t i = 0; i < answer->group_count; i++) {
        told += answer->groups[i].block_count;
    }
    assert_int_equal(told, BLOCKS);
    return answer;
}

static void was_late_and_told_nothing(struct fixture *f)
{
    struct seep_held_answer *answer = ask(f, LIMIT_S);

    assert_true(answer->was_late);
    assert_true(answer->was_cut_short);
    assert_true(answer->cpu_limit_s >= LIMIT_S);
    for (size_t i = 0; i < answer->group_count; i++) {
        assert_int_not_equal(answer->groups[i].end, SEEP_HELD_END_LOST);
        assert_int_not_equal(answer->groups[i].end, SEEP_HELD_END_HELD);
    }
    seep_held_close(answer);
}

static void have_nothing(struct fixture *f)
{
    (void)f;
}

static void a_block_without_a_pointer_is_lost(void **state)
{
    struct seep_held_answer *answer;
    struct fixture *f = *state;

    begin(f, have_nothing);
    for (size_t i = 0; i < BLOCKS; i++) {
        f->asked[i].address = NOWHERE + i * BLOCK_BYTES;
    }
    answer = ask(f, 0);
    assert_false(answer->was_late);
    assert_int_equal(answer->group_count, 1);
    assert_int_equal(answer->groups[0].end, SEEP_HELD_END_LOST);
    assert_true(answer->cpu_limit_s >= 1);
    seep_held_close(answer);
}

#define MOVE_ASKS 10
#define BESIDE                                                               \
    64U           /* blocks that come and go, so that no place is free twice \
                   */
#define SPOILT 4U /* words that a free block does not keep */

/* The only array that has the blocks is somewhere else each time. Only a
 * register has it, while the thread waits. */
static void *move_on(void *every_us)
{
    static void *beside[BESIDE];
    uint64_t *array = calloc(BLOCKS + SPOILT, 8);
    size_t chance = 1;

    for (size_t i = 0; array != NULL && i < BLOCKS; i++) {
        array[i + SPOILT] = NOWHERE + i * BLOCK_BYTES;
    }
    while (array != NULL) {
        uint64_t *next;

        chance = chance * 6364136223846793005U + 1442695040888963407U;
        free(beside[chance >> 32 & (BESIDE - 1)]);
        beside[chance >> 32 & (BESIDE - 1)] = malloc(chance >> 50);
        next = malloc(8 * (BLOCKS + SPOILT) + (chance >> 40 & 1023));
        if (next != NULL) {
            memcpy(next, array, 8 * (BLOCKS + SPOILT));
            free(array);
            array = next;
        }
        usleep(*(const useconds_t *)every_us);
    }
    return NULL;
}

static useconds_t every_us;

static void have_what_moves(struct fixture *f)
{
    pthread_t thread;

    memset(f->asked, 0, sizeof(f->asked));
    if (pthread_create(&thread, NULL, move_on, &every_us) != 0) {
        _exit(1);
    }
}

static void is_not_lost(struct fixture *f, useconds_t us)
{
    every_us = us;
    for (size_t i = 0; i < BLOCKS; i++) {
        f->asked[i].address = NOWHERE + i * BLOCK_BYTES;
    }
    begin(f, have_what_moves);
    for (int times = 0; times < MOVE_ASKS; times++) {
        struct seep_held_answer *answer = ask(f, 0);

        for (size_t i = 0; i < answer->group_count; i++) {
            assert_int_not_equal(answer->groups[i].end, SEEP_HELD_END_LOST);
        }
        seep_held_close(answer);
    }
    kill(f->child, SIGKILL);
    waitpid(f->child, NULL, 0);
    f->child = 0;
}

static void what_moves_is_not_lost(void **state)
{
    is_not_lost(*state, 300);
    is_not_lost(*state, 10000);
}

/* It has blocks of all ages: somebody puts them there. */
static void what_only_a_register_has_is_not_lost(void **state)
{
    is_not_lost(*state, 200000);
}

/* Words of which no rule knows what they are part of. */
static void have_words_in_a_mapping(struct fixture *f)
{
    char *words = take(4096);

    for (size_t i = 0; i < BLOCKS; i++) {
        uintptr_t word = (uintptr_t)f->blocks + i * BLOCK_BYTES;

        memcpy(words + 64 * i, &word, sizeof(word));
    }
    memset(f->asked, 0, sizeof(f->asked)); /* else these have them */
}

static void what_a_mapping_has_is_not_lost(void **state)
{
    struct seep_held_answer *answer;

    begin(*state, have_words_in_a_mapping);
    answer = ask(*state, 0);
    for (size_t i = 0; i < answer->group_count; i++) {
        assert_int_not_equal(answer->groups[i].end, SEEP_HELD_END_LOST);
    }
    seep_held_close(answer);
}

static void have_room_for_all(struct fixture *f)
{
    for (int i = 0; i < 4; i++) {
        char *room = take(UINT64_C(1) << 43);

        memcpy(room, &f->blocks, sizeof(f->blocks));
    }
}

/* Late or not: from 6.7 on the kernel tells where a hole ends. */
static void mappings_of_32_tib_end_at_the_limit(void **state)
{
    struct seep_held_answer *answer;

    begin(*state, have_room_for_all);
    answer = ask(*state, LIMIT_S);
    assert_true(answer->was_cut_short || !answer->was_late);
    for (size_t i = 0; i < answer->group_count; i++) {
        assert_int_not_equal(answer->groups[i].end, SEEP_HELD_END_LOST);
    }
    seep_held_close(answer);
}

/* Words that lead to other words, all over it, and at last to the blocks. */
static void have_a_maze(struct fixture *f)
{
    size_t count = (size_t)(128 * MIB / 8);
    uintptr_t *words = (uintptr_t *)(void *)take(128 * MIB);
    uint64_t chance = 1;

    for (size_t i = 0; i < count; i++) {
        chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407U;
        words[i] = i % 64 == 0 ? (uintptr_t)f->blocks +
                                     (chance >> 33) % BLOCKS * BLOCK_BYTES
                               : (uintptr_t)&words[(chance >> 20) % count];
    }
}

static void a_maze_of_pointers_ends_at_the_limit(void **state)
{
    begin(*state, have_a_maze);
    was_late_and_told_nothing(*state);
}

/* A cycle of many, each with a pointer to a block, one to the first. */
static void have_a_cycle(struct fixture *f)
{
    void **first = NULL;
    void **last = NULL;

    for (size_t i = 0; i < 400000; i++) {
        void **next = malloc(40);

        if (next == NULL) {
            _exit(1);
        }
        first = first == NULL ? next : first;
        next[0] = last;
        next[1] = f->blocks + i % BLOCKS * BLOCK_BYTES;
        next[2] = first;
        last = next;
    }
    first[0] = last;
}

static void a_cycle_of_many_ends(void **state)
{
    begin(*state, have_a_cycle);
    seep_held_close(ask(*state, 1));
}

/* The child's own list of blocks is a holder like any other. */
static void forget(struct fixture *f)
{
    memset(f->asked, 0, sizeof(f->asked));
    f->blocks = NULL;
}

/* Blocks of a queue, as deque has them, without what has the first: each knows
 * its neighbours. */
static void have_a_row(struct fixture *f)
{
    void **last = NULL;

    for (size_t i = 0; i < BLOCKS; i++) {
        void **next = calloc(1, 528);

        if (next == NULL) {
            _exit(1);
        }
        next[0] = last;
        next[1] = f->blocks + i * BLOCK_BYTES;
        if (last != NULL) {
            last[65] = next;
        }
        last = next;
    }
    forget(f);
}

/* Each by two that hold each other. */
static void have_knots(struct fixture *f)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        void **one = calloc(1, 40);
        void **other = calloc(1, 40);

        if (one == NULL || other == NULL) {
            _exit(1);
        }
        one[0] = other;
        other[0] = one;
        one[1] = f->blocks + i * BLOCK_BYTES;
    }
    forget(f);
}

static void blocks_of_a_queue_are_no_cycle(void **state)
{
    struct seep_held_answer *answer;

    begin(*state, have_a_row);
    answer = ask(*state, 1);
    for (size_t i = 0; i < answer->group_count; i++) {
        assert_int_equal(answer->groups[i].end, SEEP_HELD_END_UNROOTED);
    }
    seep_held_close(answer);
}

static void what_holds_only_each_other_is_a_cycle(void **state)
{
    struct seep_held_answer *answer;
    size_t blocks = 0;

    begin(*state, have_knots);
    answer = ask(*state, 1);
    for (size_t i = 0; i < answer->group_count; i++) {
        /* What was left over in memory may make some look otherwise. */
        if (answer->groups[i].end == SEEP_HELD_END_CYCLE) {
            blocks += answer->groups[i].block_count;
        }
    }
    assert_int_equal(answer->groups[0].end, SEEP_HELD_END_CYCLE);
    assert_true(blocks * 10 >= BLOCKS * 9);
    seep_held_close(answer);
}

/* As heaps of glibc's begin: each of pages that say they are chunks. */
static void have_heads(struct fixture *f)
{
    uintptr_t at = (uintptr_t)take(UINT64_C(1) << 41);

    at = (at + 64 * MIB - 1) & ~(uintptr_t)(64 * MIB - 1);
    for (size_t i = 0; i < 8000; i++, at += 64 * MIB) {
        uint64_t *words = (uint64_t *)at;

        words[0] = at + 0x30;
        words[2] = 64 * MIB;
        for (size_t k = 270; k < 512; k += 4) {
            words[k + 1] = 33;
            words[k + 2] = (uintptr_t)f->blocks + i % BLOCKS * BLOCK_BYTES;
        }
    }
}

static void heads_of_8000_heaps_cost_little_memory(void **state)
{
    begin(*state, have_heads);
    seep_held_close(ask(*state, 1));
}

#define SEGMENTS 3U

/* A core: notes, then segments of which each says that it has @filesz. */
static void write_core(struct fixture *f, Elf64_Phdr *segments,
                       const uint64_t *words, size_t word_count)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = EM_X86_64,
        .e_phoff = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = SEGMENTS,
    };
    int fd;

    snprintf(f->path, sizeof(f->path), "/tmp/seep-core-XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    assert_int_equal(
        pwrite(fd, segments, SEGMENTS * sizeof(*segments), sizeof(header)),
        SEGMENTS * sizeof(*segments));
    assert_int_equal(pwrite(fd, words, word_count * 8, 4096), word_count * 8);
    assert_int_equal(ftruncate(fd, (off_t)(UINT64_C(1) << 40)), 0);
    close(fd);
}

static Elf64_Phdr segment_at(uint64_t address, uint64_t file_bytes,
                             uint64_t bytes)
{
    return (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_W,
        .p_offset = 4096,
        .p_vaddr = address,
        .p_filesz = file_bytes,
        .p_memsz = bytes,
    };
}

static void a_core_of_holes_ends_at_the_limit(void **state)
{
    struct fixture *f = *state;
    uint64_t word = (uintptr_t)f->blocks;
    Elf64_Phdr segments[SEGMENTS];

    for (size_t i = 0; i < SEGMENTS; i++) {
        segments[i] =
            segment_at(UINT64_C(0x100000000000) * (i + 1),
                       (UINT64_C(1) << 40) - 4096, (UINT64_C(1) << 40) - 4096);
    }
    write_core(f, segments, &word, 1);
    was_late_and_told_nothing(f);
}

/* The break: a first chunk, then one that says it is all of 120 TiB. */
static void a_heap_that_says_it_is_all_there_is_costs_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t words[0x300 / 8] = {0};
    Elf64_Phdr segments[SEGMENTS] = {{0}};

    words[1] = 0x291;
    words[0x290 / 8 + 1] = (UINT64_C(119) << 40) | 1;
    words[3] = (uintptr_t)f->blocks;
    segments[0] =
        segment_at(UINT64_C(0x1000000), sizeof(words), UINT64_C(120) << 40);
    segments[1] = segment_at((uintptr_t)f->blocks, 64, 4096);
    write_core(f, segments, words, sizeof(words) / 8);
    seep_held_close(ask(f, 1));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    /* What a question took goes back, and is no memory of the next process: of
     * a million nodes each has the address of a block. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);

    const struct CMUnitTest tests[] = {
        EACH(a_block_without_a_pointer_is_lost),
        EACH(what_moves_is_not_lost),
        EACH(what_only_a_register_has_is_not_lost),
        EACH(what_a_mapping_has_is_not_lost),
        EACH(mappings_of_32_tib_end_at_the_limit),
        EACH(a_maze_of_pointers_ends_at_the_limit),
        EACH(a_cycle_of_many_ends),
        EACH(blocks_of_a_queue_are_no_cycle),
        EACH(what_holds_only_each_other_is_a_cycle),
        EACH(heads_of_8000_heaps_cost_little_memory),
        EACH(a_core_of_holes_ends_at_the_limit),
        EACH(a_heap_that_says_it_is_all_there_is_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
