/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An allocator that says so when it is asked for its figures at a moment at
 * which a real one would hang, or worse.
 *
 * Its lock is one of words only: who comes with it held by his own thread is
 * told, and the process ends. It calls the program at will while it is held, so
 * that what is luck with a real allocator happens each time here. It takes no
 * block back, which makes it safe in signal handlers, and in threads that are
 * never to go on.
 *
 * It is taken for the allocator that its file is named after: jemalloc or
 * tcmalloc, whose code is known by where it lies, or libc, whose code is not.
 *
 * A realloc to nothing gives a block in a page that nobody may read, as that of
 * hardened allocators.
 *
 * STRICT_FAILS=N: the Nth figure is one that it does not know; 9: one is too
 * high. STRICT_NAMELESS: built without a function that could be asked.
 *
 * Invariant: blocks below LARGE_BYTES are made without the lock.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define LARGE_BYTES 1024U
#define POOLED_BYTES 16384U /* all up to these have as much room */
#define HEADER_BYTES sizeof(struct head)
#define MAP_BYTES 4096U
#define REGION_BYTES (UINT64_C(512) << 20)

static char region[REGION_BYTES] __attribute__((aligned(4096)));
static _Atomic uint64_t used_bytes;
static _Thread_local int held __attribute__((tls_model("initial-exec")));
static char empty_page[MAP_BYTES] __attribute__((aligned(MAP_BYTES)));
/* Of this thread, each with the next in its first word. */
static _Thread_local void *pool __attribute__((tls_model("initial-exec")));

/* Of the program: called with the lock held, by a block and by a question. */
EXPORTED void (*strict_inside)(void);
EXPORTED void (*strict_asked)(void);

static void fail(const char *text)
{
    ssize_t written = write(2, text, strlen(text));

    _exit(written > 0 ? 3 : 4);
}

static void lock(void)
{
    if (held != 0) {
        fail("the allocator was entered with its lock held\n");
    }
    held = 1;
}

static void unlock(void)
{
    held = 0;
}

/* Before each block. */
struct head {
    size_t is_pooled;
    size_t size;
};

static struct head *head_of(void *block)
{
    return (struct head *)block - 1;
}

static void *take(size_t alignment, size_t size)
{
    uint64_t room = size + HEADER_BYTES + alignment;
    uint64_t at;
    uintptr_t block;

    if (size > REGION_BYTES / 2 || alignment > REGION_BYTES / 4 ||
        (at = atomic_fetch_add_explicit(&used_bytes, room,
                                        memory_order_relaxed)) +
                room >
            REGION_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    block = ((uintptr_t)region + at + HEADER_BYTES + alignment - 1) &
            ~(uintptr_t)(alignment - 1);
    *head_of((void *)block) = (struct head){0, size};
    return (void *)block;
}

static int is_pooled(size_t alignment, size_t size)
{
    return alignment == HEADER_BYTES && size >= LARGE_BYTES &&
           size <= POOLED_BYTES;
}

static void *take_pooled(size_t size)
{
    void *block = pool;

    if (block == NULL) {
        block = take(HEADER_BYTES, POOLED_BYTES);
    } else {
        memcpy(&pool, block, sizeof(pool));
    }
    if (block != NULL) {
        *head_of(block) = (struct head){1, size};
    }
    return block;
}

static void *allocate(size_t alignment, size_t size)
{
    void *block;

    if (size < LARGE_BYTES) {
        return take(alignment, size);
    }
    lock();
    if (strict_inside != NULL) {
        strict_inside();
    }
    block =
        is_pooled(alignment, size) ? take_pooled(size) : take(alignment, size);
    unlock();
    return block;
}

EXPORTED void *malloc(size_t size)
{
    return allocate(HEADER_BYTES, size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    size_t total = 0;
    void *block;

    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    block = allocate(HEADER_BYTES, total);
    return block == NULL ? NULL : memset(block, 0, total);
}

static void *empty_block(void)
{
    mprotect(empty_page, sizeof(empty_page), PROT_NONE);
    return empty_page + HEADER_BYTES;
}

static int is_empty(const void *block)
{
    return block == empty_page + HEADER_BYTES;
}

EXPORTED size_t malloc_usable_size(void *block)
{
    return block == NULL || is_empty(block) ? 0 : head_of(block)->size;
}

EXPORTED void free(void *block)
{
    if (block != NULL && !is_empty(block) && head_of(block)->is_pooled) {
        lock();
        memcpy(block, &pool, sizeof(pool));
        pool = block;
        unlock();
    }
}

EXPORTED void *realloc(void *block, size_t size)
{
    size_t old = malloc_usable_size(block);
    void *moved = size == 0 ? empty_block() : allocate(HEADER_BYTES, size);

    if (moved != NULL && block != NULL) {
        memcpy(moved, block, old < size ? old : size);
        free(block);
    }
    return moved;
}

EXPORTED void *memalign(size_t alignment, size_t size)
{
    return allocate(alignment < HEADER_BYTES ? HEADER_BYTES : alignment, size);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

EXPORTED void *valloc(size_t size)
{
    return memalign(4096, size);
}

EXPORTED int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    void *block = memalign(alignment, size);

    if (block == NULL) {
        return ENOMEM;
    }
    *ret_block = block;
    return 0;
}

/* Maps a page, has it grow, and gives it back. */
EXPORTED void strict_moves(void);
EXPORTED void strict_moves(void)
{
    void *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    map = mremap(map, MAP_BYTES, 16 * MAP_BYTES, MREMAP_MAYMOVE);
    munmap(map, 16 * MAP_BYTES);
}

#ifndef STRICT_NAMELESS

static int failing(void)
{
    const char *text = getenv("STRICT_FAILS");

    return text == NULL ? 0 : atoi(text);
}

static size_t allocated_bytes(void)
{
    lock();
    if (strict_asked != NULL) {
        strict_asked();
    }
    unlock();
    return (size_t)atomic_load_explicit(&used_bytes, memory_order_relaxed);
}

EXPORTED int mallctl(const char *name, void *old, size_t *old_bytes, void *new,
                     size_t new_bytes);
EXPORTED int mallctl(const char *name, void *old, size_t *old_bytes, void *new,
                     size_t new_bytes)
{
    size_t allocated = allocated_bytes();

    (void)new;
    (void)new_bytes;
    if (failing() == 1 && strcmp(name, "stats.allocated") == 0) {
        return ENOENT;
    }
    if (old != NULL && *old_bytes == sizeof(allocated)) {
        memcpy(old, &allocated, sizeof(allocated));
    }
    return 0;
}

EXPORTED struct mallinfo2 mallinfo2(void)
{
    return (struct mallinfo2){.uordblks = allocated_bytes()};
}

EXPORTED int MallocExtension_GetNumericProperty(const char *name,
                                                size_t *bytes);
EXPORTED int MallocExtension_GetNumericProperty(const char *name, size_t *bytes)
{
    static const char *const names[] = {"generic.current_allocated_bytes",
                                        "generic.heap_size",
                                        "tcmalloc.pageheap_unmapped_bytes"};
    const int fails = failing();

    *bytes = allocated_bytes();
    if (strcmp(name, names[2]) == 0) {
        *bytes = fails == 9 ? 2 * *bytes + 1 : *bytes / 2;
    }
    return fails < 1 || fails > 3 || strcmp(name, names[fails - 1]) != 0;
}

#endif

/* As real ones do it: after the handlers that the program has registered
 * earlier, so those run with the lock held. */
__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(lock, unlock, unlock);
}
