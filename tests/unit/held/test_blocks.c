/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which block of glibc's malloc an address lies in, and which of them are free.
 *
 * Invariant: the process that is read is this one; of a thread it has an arena
 * and a cache that nobody allocates from, laid out as one glibc has them.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held/memory.h"
#include "seep_test.h"

/* Each heap begins at a multiple of it. */
#define HEAP_BYTES (UINT64_C(64) << 20)
#define USED_BYTES 0x21000U
#define ARENA_AT 0x30U
#define FLAGS 5U /* of an arena of its own, and the one before is in use */
#define BLOCK_BYTES 0x40U
#define BLOCKS 8U
#define FREED 3U /* the block that the thread has set aside, */
#define FAST 5U  /* and one in a list of the arena's own */
#define LIST 2U  /* of blocks so large */

/* What differs between versions of glibc. */
struct layout {
    const char *name;
    uint32_t first;       /* chunk of an arena's first heap */
    uint32_t top_at;      /* in an arena */
    uint32_t cache_bytes; /* of the chunk that is a thread's cache */
    uint32_t list_count;
    bool has_fastbins;
};

static const struct layout layouts[] = {
    {"2.36", 0x8d0, 96, 0x290, 64, true},
    {"2.42", 0x8d0, 96, 0x300, 76, true},
    {"2.43", 0x870, 8, 0x300, 76, false},
};

struct fixture {
    uint8_t *reserved; /* of which one heap is */
    uint64_t *heap;
    uint64_t *thread; /* and pages that are not there around it */
    struct seep_held_memory memory;
    struct seep_held_blocks blocks;
};

static uint64_t address_of(const void *at)
{
    return (uintptr_t)at;
}

static uint8_t *reserve(uint64_t bytes)
{
    uint8_t *at = mmap(NULL, bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(at != MAP_FAILED);
    return at;
}

static void *open_page(uint8_t *at, size_t bytes)
{
    assert_int_equal(mprotect(at, bytes, PROT_READ | PROT_WRITE), 0);
    return at;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->reserved = reserve(2 * HEAP_BYTES);
    f->heap = open_page(f->reserved + (-address_of(f->reserved) % HEAP_BYTES),
                        USED_BYTES);
    f->thread =
        open_page(reserve(3 * SEEP_HELD_PAGE_BYTES) + SEEP_HELD_PAGE_BYTES,
                  SEEP_HELD_PAGE_BYTES);
    f->blocks.memory = &f->memory;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    munmap(f->reserved, 2 * HEAP_BYTES);
    munmap(f->thread - SEEP_HELD_PAGE_BYTES / sizeof(*f->thread),
           3 * SEEP_HELD_PAGE_BYTES);
    free(f);
    return 0;
}

/* @return where the block of the chunk at @offset of the heap begins */
static uint64_t *put_chunk(struct fixture *f, uint64_t offset, uint64_t bytes)
{
    uint64_t *chunk = f->heap + offset / sizeof(*f->heap);

    chunk[1] = bytes | FLAGS;
    return chunk + 2;
}

/* A heap with a cache and @BLOCKS blocks, of which two are free although their
 * neighbours say otherwise; a control block whose thread has that cache. */
static void lay_out(struct fixture *f, const struct layout *layout,
                    uint64_t **ret_blocks)
{
    uint64_t *control = f->thread + 256;
    uint64_t *arena = f->heap + ARENA_AT / sizeof(*f->heap);
    uint64_t offset = layout->first;
    uint64_t *cache;

    memset(f->heap, 0, USED_BYTES);
    f->heap[0] = address_of(arena);
    f->heap[2] = USED_BYTES;
    f->heap[3] = USED_BYTES;
    cache = put_chunk(f, offset, layout->cache_bytes);
    offset += layout->cache_bytes;
    for (size_t i = 0; i < BLOCKS; i++) {
        ret_blocks[i] = put_chunk(f, offset, BLOCK_BYTES);
        offset += BLOCK_BYTES;
    }
    arena[layout->top_at / 8] =
        address_of(put_chunk(f, offset, USED_BYTES - offset) - 2);
    control[0] = address_of(control);
    control[2] = address_of(control);
    control[-9] = address_of(cache);
    cache[layout->list_count / 4 + LIST] = address_of(ret_blocks[FREED]);
    ret_blocks[FREED][0] = address_of(ret_blocks[FREED]) >> 12;
    if (layout->has_fastbins) {
        arena[2 + LIST] = address_of(ret_blocks[FAST] - 2);
        ret_blocks[FAST][0] = address_of(ret_blocks[FAST]) >> 12;
    }
}

static void a_block_of_a_threads_arena_is_found(void **state)
{
    struct fixture *f = *state;
    const struct seep_held_source source = {.pid = getpid()};

    for (size_t k = 0; k < sizeof(layouts) / sizeof(*layouts); k++) {
        uint64_t *blocks[BLOCKS];

        lay_out(f, &layouts[k], blocks);
        assert_int_equal(seep_held_memory_open(&source, &f->memory), 0);
        assert_int_equal(seep_held_blocks_init(&f->blocks), 0);
        for (size_t i = 0; i < BLOCKS; i++) {
            bool is_free = i == FREED || (i == FAST && layouts[k].has_fastbins);
            uint64_t start = 0;
            uint64_t end = 0;

            if ((seep_held_block_at(&f->blocks, address_of(&blocks[i][1]),
                                    &start, &end) == SEEP_HELD_FREE) !=
                is_free) {
                fail_msg("block %zu of glibc %s", i, layouts[k].name);
            }
            assert_int_equal(start, address_of(blocks[i]));
            assert_int_equal(end, start + BLOCK_BYTES - 16);
        }
        seep_held_blocks_fini(&f->blocks);
        seep_held_memory_close(&f->memory);
    }
}

#define STACK_BYTES (UINT64_C(8) << 20)
#define TOUCHED 3U /* pages, at its top */

/* A process has hundreds of stacks, of which hardly a page was ever touched:
 * no other page is read, or cleared here. */
static void of_a_stack_what_was_touched_is_read(void **state)
{
    const struct seep_held_source source = {.pid = getpid()};
    uint8_t *reserved = reserve(STACK_BYTES + 2 * SEEP_HELD_PAGE_BYTES);
    uint8_t *stack = open_page(reserved + SEEP_HELD_PAGE_BYTES, STACK_BYTES);
    uint64_t *control =
        (uint64_t *)(void *)(stack + STACK_BYTES - SEEP_HELD_PAGE_BYTES + 64);
    struct seep_held_memory memory;
    struct seep_held_map *map;
    uint64_t found[8];
    uint32_t before;

    (void)state;
    madvise(stack, STACK_BYTES, MADV_NOHUGEPAGE);
    memset(stack + STACK_BYTES - TOUCHED * SEEP_HELD_PAGE_BYTES, 1,
           TOUCHED * SEEP_HELD_PAGE_BYTES);
    control[0] = control[2] = address_of(control);
    assert_int_equal(seep_held_memory_open(&source, &memory), 0);
    memory.threads[0].stack_pointer = address_of(control) - 4096;
    map = seep_held_map_at(&memory, address_of(control));
    assert_non_null(map);
    before = memory.read_count;
    assert_int_equal(seep_held_thread_blocks(&memory, map, found, 8), 1);
    assert_int_equal(found[0], address_of(control));
    assert_int_equal(memory.read_count - before, TOUCHED);
    seep_held_memory_close(&memory);
    munmap(reserved, STACK_BYTES + 2 * SEEP_HELD_PAGE_BYTES);
}

#define GROWN_BLOCKS 64U
#define GROWN_BYTES 20000U

/* Blocks at the end of what it has from its parent, and behind that. */
static void grow(uint64_t (*ret_blocks)[GROWN_BLOCKS])
{
    uint64_t end = address_of(sbrk(0));

    for (size_t i = 0; i < GROWN_BLOCKS;) {
        (*ret_blocks)[i] = address_of(malloc(GROWN_BYTES));
        i += (*ret_blocks)[i] + GROWN_BLOCKS / 2 * GROWN_BYTES > end;
    }
}

static pid_t fork_one_that_grows(uint64_t (*ret_blocks)[GROWN_BLOCKS])
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        grow(ret_blocks);
        if (write(ends[1], *ret_blocks, sizeof(*ret_blocks)) > 0) {
            pause();
        }
        _exit(0);
    }
    assert_int_equal(read(ends[0], *ret_blocks, sizeof(*ret_blocks)),
                     sizeof(*ret_blocks));
    close(ends[0]);
    close(ends[1]);
    return child;
}

/* What a child adds to its heap is another mapping than what it has from its
 * parent, and a block may lie in both. */
static void the_heap_of_a_forked_child_is_whole(void **state)
{
    uint64_t grown[GROWN_BLOCKS];
    pid_t child = fork_one_that_grows(&grown);
    const struct seep_held_source source = {.pid = child};
    struct seep_held_memory memory;
    struct seep_held_blocks blocks = {.memory = &memory};
    size_t heaps = 0;

    (void)state;
    assert_int_equal(seep_held_memory_open(&source, &memory), 0);
    assert_int_equal(seep_held_blocks_init(&blocks), 0);
    for (size_t i = 0; i < memory.map_count; i++) {
        heaps += strcmp(memory.maps[i].path, "[heap]") == 0;
    }
    assert_true(heaps > 1);
    for (size_t i = 0; i < GROWN_BLOCKS; i++) {
        uint64_t start = 0;
        uint64_t end = 0;

        assert_int_equal(
            seep_held_block_at(&blocks, grown[i] + 8, &start, &end),
            SEEP_HELD_CHUNK);
        assert_int_equal(start, grown[i]);
        assert_true(end >= grown[i] + GROWN_BYTES);
    }
    seep_held_blocks_fini(&blocks);
    seep_held_memory_close(&memory);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_block_of_a_threads_arena_is_found,
                                        set_up, tear_down),
        cmocka_unit_test(of_a_stack_what_was_touched_is_read),
        cmocka_unit_test(the_heap_of_a_forked_child_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
