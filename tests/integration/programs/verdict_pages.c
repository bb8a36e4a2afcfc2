/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kinds of services whose memory grows while their live blocks do not: the
 * allocator keeps it, in one piece or in many, or no allocator knows of it. And
 * those that map more than they touch.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verdict.h"

#define WORKERS 4
#define BURST_COUNT 1400 /* blocks of the largest one */
#define BURST_BYTES ((size_t)16 << 10)
#define BURSTS 40
/* Above what a burst may leave free below it, so it comes to lie on top. */
#define PIN_BYTES ((size_t)40 << 10)
#define ROUND_BLOCKS 80
#define ROUND_TICKS 40
#define SHORT_BYTES 4096
#define SHORT_STEP 16 /* so that no hole of an earlier round fits */
#define LONG_BYTES 24
#define MAPPING_BYTES ((size_t)256 << 10)
#define MAPPING_TICKS 20
#define PAST_BLOCKS 4
#define PAST_BYTES ((size_t)3000)
#define SEGMENT_TICKS 16
#define SEGMENT_BYTES (SEGMENT_TICKS * EXTENDED_BYTES)
#define EXTENDED_BYTES ((size_t)16 << 10)
#define TOUCHED_BYTES ((size_t)64 << 10) /* of each mapping */
#define PAGE_BYTES 4096
#define BUFFER_BYTES ((size_t)512 << 10)
#define ARENA_BYTES ((size_t)2 << 30)

static pthread_t workers[WORKERS];
static atomic_uint burst; /* which one is to be done by every worker */

SITE_FUNCTION static void *pin_top(void)
{
    return verdict_touch(malloc(PIN_BYTES), PIN_BYTES);
}

SITE_FUNCTION static void do_burst(void **blocks, size_t count, void **pin)
{
    void *old = *pin;

    for (size_t i = 0; i < count; i++) {
        blocks[i] = verdict_touch(malloc(BURST_BYTES), BURST_BYTES);
    }
    *pin = pin_top();
    free(old);
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

/* Each burst is larger than those before: a new peak. */
static void *work(void *argument)
{
    static void *blocks[WORKERS][BURST_COUNT];
    void **mine = blocks[(size_t)argument];
    void *pin = NULL;

    for (unsigned done = 0; done < BURSTS;) {
        if (atomic_load_explicit(&burst, memory_order_relaxed) > done) {
            done++;
            do_burst(mine, BURST_COUNT * done / BURSTS, &pin);
        } else {
            usleep(20000);
        }
    }
    return NULL;
}

static void begin_bursts(struct verdict_run *run)
{
    (void)run;
    for (size_t i = 0; i < WORKERS; i++) {
        if (pthread_create(&workers[i], NULL, work, (void *)i) != 0) {
            abort();
        }
    }
}

static void next_burst(struct verdict_run *run)
{
    unsigned due = (run->tick + 1) * BURSTS / run->tick_count;

    atomic_store_explicit(&burst, due, memory_order_relaxed);
}

static void end_bursts(struct verdict_run *run)
{
    (void)run;
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
}

SITE_FUNCTION static void *read_reply(size_t bytes)
{
    return verdict_touch(malloc(bytes), bytes);
}

/* Its first bytes stay where they are, and so does the hole behind them. */
SITE_FUNCTION static void keep_digest(void *reply)
{
    if (realloc(reply, LONG_BYTES) == NULL) {
        abort();
    }
}

static void interleave(struct verdict_run *run)
{
    static void *replies[ROUND_BLOCKS];
    unsigned round = run->tick / ROUND_TICKS;
    size_t in_tick = ROUND_BLOCKS / ROUND_TICKS;
    size_t at = run->tick % ROUND_TICKS * in_tick;

    for (size_t i = at; i < at + in_tick; i++) {
        replies[i] = read_reply(SHORT_BYTES + (size_t)round * SHORT_STEP);
    }
    if (at + in_tick == ROUND_BLOCKS) {
        for (size_t i = 0; i < ROUND_BLOCKS; i++) {
            keep_digest(replies[i]);
        }
    }
}

/* Past every hook: what a runtime with an allocator of its own does. */
static void map_unseen(struct verdict_run *run)
{
    long address;

    if (run->tick % MAPPING_TICKS != 0) {
        return;
    }
    address = syscall(SYS_mmap, NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    if (address == -1) {
        abort();
    }
    verdict_touch((void *)address, MAPPING_BYTES);
    run->leaked_bytes += MAPPING_BYTES;
}

/* As a library does that was loaded with RTLD_DEEPBIND: the C library's own. */
void *__libc_malloc(size_t bytes);

static void keep_past_malloc(struct verdict_run *run)
{
    for (size_t i = 0; i < PAST_BLOCKS; i++) {
        verdict_touch(__libc_malloc(PAST_BYTES), PAST_BYTES);
        run->leaked_bytes += PAST_BYTES;
    }
}

/* Who has the heap besides malloc. */
SITE_FUNCTION static void extend_heap(struct verdict_run *run)
{
    void *before = sbrk(EXTENDED_BYTES);

    if ((intptr_t)before == -1) {
        abort();
    }
    verdict_touch(before, EXTENDED_BYTES);
    run->leaked_bytes += EXTENDED_BYTES;
}

SITE_FUNCTION static void attach_segment(struct verdict_run *run)
{
    int id = shmget(IPC_PRIVATE, SEGMENT_BYTES, 0600);
    void *address = shmat(id, NULL, 0);

    if (id == -1 || shmctl(id, IPC_RMID, NULL) != 0 ||
        (intptr_t)address == -1) {
        abort();
    }
    verdict_touch(address, SEGMENT_BYTES);
    run->leaked_bytes += SEGMENT_BYTES;
}

/* A system has 4,096 of them. */
static void attach_segments(struct verdict_run *run)
{
    static unsigned ticks;

    if (++ticks % SEGMENT_TICKS == 0) {
        attach_segment(run);
    }
}

SITE_FUNCTION static void *map_buffer(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (address == MAP_FAILED) {
        abort();
    }
    return address;
}

/* Memory that others have as well. What goes into it by the descriptor is in
 * the page table of nobody, as what a worker wrote is not in its parent's. */
SITE_FUNCTION static void *map_shared(size_t bytes, bool is_written)
{
    static const char words[PAGE_BYTES];
    int fd = memfd_create("batch", MFD_CLOEXEC);
    void *address;

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        abort();
    }
    address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (size_t at = 0; is_written && at < bytes; at += PAGE_BYTES) {
        if (pwrite(fd, words, PAGE_BYTES, (off_t)at) != PAGE_BYTES) {
            abort();
        }
    }
    close(fd);
    if (address == MAP_FAILED) {
        abort();
    }
    return address;
}

static void keep_batch(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        map_shared(MAPPING_BYTES, true);
        run->leaked_bytes += MAPPING_BYTES;
    }
}

static void keep_empty_batch(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        map_shared(MAPPING_BYTES, false);
    }
}

/* As a JIT does: address space for code that never comes. */
static void reserve(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        map_buffer(MAPPING_BYTES);
    }
}

/* All of it was used once, and was given back to the kernel. */
static void give_back(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        void *address = verdict_touch(map_buffer(MAPPING_BYTES), MAPPING_BYTES);

        madvise(address, MAPPING_BYTES, MADV_DONTNEED);
    }
}

/* A quarter of each buffer is filled. */
static void keep_quarter(struct verdict_run *run)
{
    if (run->tick % (MAPPING_TICKS / 2) == 0) {
        verdict_touch(map_buffer(MAPPING_BYTES), TOUCHED_BYTES);
        run->leaked_bytes += TOUCHED_BYTES;
    }
}

static void keep_whole(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        verdict_touch(map_buffer(MAPPING_BYTES), MAPPING_BYTES);
        run->leaked_bytes += MAPPING_BYTES;
    }
}

/* As mimalloc does: one reservation, used from its beginning on. */
static char *arena;

static void reserve_arena(struct verdict_run *run)
{
    (void)run;
    arena = map_buffer(ARENA_BYTES);
}

static void use_arena(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0 &&
        run->leaked_bytes + MAPPING_BYTES <= ARENA_BYTES) {
        verdict_touch(arena + run->leaked_bytes, MAPPING_BYTES);
        run->leaked_bytes += MAPPING_BYTES;
    }
}

SITE_FUNCTION static void *allocate_buffer(size_t bytes)
{
    void *buffer = malloc(bytes);

    if (buffer == NULL) {
        abort();
    }
    return buffer;
}

/* As for results that never come: malloc() maps what is that large, and writes
 * its size to the first page. */
static void keep_unwritten(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        allocate_buffer(BUFFER_BYTES);
        run->leaked_bytes += PAGE_BYTES;
    }
}

/* A leak a tenth as large beside it, of which all is written to. */
static void keep_beside_unwritten(struct verdict_run *run)
{
    if (run->tick % MAPPING_TICKS == 0) {
        allocate_buffer(BUFFER_BYTES);
        read_reply(BUFFER_BYTES / 10);
        run->leaked_bytes += BUFFER_BYTES / 10;
    }
}

/* Each is filled when the one after the next comes. */
static void keep_written_later(struct verdict_run *run)
{
    static void *waiting[2];
    unsigned turn = run->tick / MAPPING_TICKS;

    if (run->tick % MAPPING_TICKS != 0) {
        return;
    }
    if (waiting[turn % 2] != NULL) {
        verdict_touch(waiting[turn % 2], BUFFER_BYTES);
        run->leaked_bytes += BUFFER_BYTES;
    }
    waiting[turn % 2] = allocate_buffer(BUFFER_BYTES);
}

/* One buffer for the whole run, filled from its beginning on. */
static void allocate_arena(struct verdict_run *run)
{
    (void)run;
    arena = allocate_buffer(ARENA_BYTES);
}

static void free_arena(struct verdict_run *run)
{
    (void)run;
    free(arena);
}

const struct verdict_kind verdict_page_kinds[] = {
    {.name = "retention",
     .begin = begin_bursts,
     .tick = next_burst,
     .end = end_bursts},
    {.name = "fragmentation", .tick = interleave},
    {.name = "mapping", .tick = map_unseen},
    {.name = "past-malloc", .tick = keep_past_malloc},
    {.name = "sbrk", .tick = extend_heap},
    {.name = "segments", .tick = attach_segments},
    {.name = "reserved", .tick = reserve},
    {.name = "given-back", .tick = give_back},
    {.name = "part-touched", .tick = keep_quarter},
    {.name = "all-touched", .tick = keep_whole},
    {.name = "written-elsewhere", .tick = keep_batch},
    {.name = "shared-reserved", .tick = keep_empty_batch},
    {.name = "arena", .begin = reserve_arena, .tick = use_arena},
    {.name = "unwritten", .tick = keep_unwritten},
    {.name = "beside-unwritten", .tick = keep_beside_unwritten},
    {.name = "written-later", .tick = keep_written_later},
    {.name = "buffer-fills", .begin = allocate_arena, .tick = use_arena},
    {.name = "buffer-freed",
     .begin = allocate_arena,
     .tick = use_arena,
     .end = free_arena},
    {.name = NULL},
};
