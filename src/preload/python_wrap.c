/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrappers; see python_wrap.h.
 *
 * Nearly all blocks are small and not sampled. Those need no mark where the
 * real allocator was seen to do without malloc for their size, so the wrapper
 * counts them down and calls it last: no frame of ours is on the stack. All
 * else goes to a function that is called last too, for the same reason: the
 * stack begins at the wrapper's caller.
 */
#include "preload/python_wrap.h"

#include <stdatomic.h>

#include "preload/track.h"

/* The most that pymalloc takes from its arenas. */
#define SMALL_BYTES_MAX 512U

struct domain {
    struct seep_python_allocator real;
    /* Up to this size the real malloc was seen to do without the malloc of
     * the process: there is nothing to mark for. */
    _Atomic size_t small_most;
    _Atomic size_t proven_most; /* what the above goes back to */
    _Atomic bool doubted; /* nobody has come since this was set; implies that
                             small_most is 0, so that who comes is seen */
};

static struct domain mem_domain = {.doubted = true};
static struct domain obj_domain = {.doubted = true};

/* Somebody came, for @size_bytes; @quiet: malloc was not called for it. */
static void trust(struct domain *domain, size_t size_bytes, bool quiet)
{
    size_t proven =
        atomic_load_explicit(&domain->proven_most, memory_order_relaxed);

    if (quiet && size_bytes <= SMALL_BYTES_MAX && size_bytes > proven) {
        proven = size_bytes;
        atomic_store_explicit(&domain->proven_most, proven,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&domain->doubted, false, memory_order_relaxed);
    atomic_store_explicit(&domain->small_most, proven, memory_order_relaxed);
}

/* Whoever comes next is to be seen. @return has anybody since the last time? */
static bool doubt(struct domain *domain)
{
    bool came =
        !atomic_exchange_explicit(&domain->doubted, true, memory_order_relaxed);

    atomic_store_explicit(&domain->small_most, 0, memory_order_relaxed);
    return came;
}

/*
 * Is this a small block that does not end the countdown? Then it is counted
 * here, before it is made, and the real allocator is all that is left to call:
 * no frame of ours is on the stack. (A block that then cannot be made was
 * counted: where the threshold lies has no memory.)
 */
SEEP_INLINE bool passes_small(struct domain *domain, size_t size)
{
    int64_t left = seep_thread.countdown_bytes - (int64_t)size;

    if (seep_unlikely(size - 1 >= atomic_load_explicit(&domain->small_most,
                                                       memory_order_relaxed) ||
                      (uint64_t)left - 1 >= SEEP_SAMPLER_NEVER)) {
        return false; /* or it is marked */
    }
    seep_thread.countdown_bytes = left;
    return true;
}

/* Called last by the wrapper, so that the stack begins at its caller. */
static SEEP_NOINLINE void *malloc_marked(struct domain *domain, size_t size)
{
    int64_t countdown_bytes = seep_python_wrap_enter(NULL);
    void *block;

    block = domain->real.malloc(domain->real.context, size);
    trust(domain, size,
          seep_thread.countdown_bytes == seep_python_wrap_mark(NULL));
    seep_python_wrap_leave(countdown_bytes);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_object_allocated(&start, block, size);
    }
    return block;
}

static void *object_malloc(void *context, size_t size)
{
    struct domain *domain = context;

    return seep_likely(passes_small(domain, size))
               ? domain->real.malloc(domain->real.context, size)
               : malloc_marked(domain, size);
}

static SEEP_NOINLINE void *calloc_marked(struct domain *domain, size_t count,
                                         size_t size)
{
    int64_t countdown_bytes = seep_python_wrap_enter(NULL);
    void *block;

    block = domain->real.calloc(domain->real.context, count, size);
    /* If it failed the product may have overflown, and proves nothing. */
    trust(domain, block != NULL ? count * size : SIZE_MAX,
          seep_thread.countdown_bytes == seep_python_wrap_mark(NULL));
    seep_python_wrap_leave(countdown_bytes);
    /* It succeeded, so the product does not overflow. */
    if (seep_unlikely(!seep_track_passes(block, count * size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_object_allocated(&start, block, count * size);
    }
    return block;
}

static void *object_calloc(void *context, size_t count, size_t size)
{
    struct domain *domain = context;
    size_t total;

    return seep_likely(!__builtin_mul_overflow(count, size, &total) &&
                       passes_small(domain, total))
               ? domain->real.calloc(domain->real.context, count, size)
               : calloc_marked(domain, count, size);
}

/* Marked whatever the size: the block may be malloc's, and shrink. */
static void *object_realloc(void *context, void *block, size_t size)
{
    struct domain *domain = context;
    struct seep_track_out out = {false, 0};
    int64_t countdown_bytes;
    void *moved;

    if (seep_unlikely(!seep_track_ignores(block))) {
        out = seep_track_realloc_out(block);
    }
    countdown_bytes = seep_python_wrap_enter(block);
    moved = domain->real.realloc(domain->real.context, block, size);
    seep_python_wrap_leave(countdown_bytes);
    if (seep_unlikely(moved == NULL)) {
        /* Of whatever size: to Python, none of 0 bytes is a failure too. */
        seep_track_realloc_failed(block, out);
        return NULL;
    }
    if (seep_unlikely(!seep_track_passes(moved, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_object_allocated(&start, moved, size);
    }
    return moved;
}

/* Marked, so that the free beneath is not told a second time. */
static SEEP_NOINLINE void free_recorded(struct domain *domain, void *block)
{
    int64_t countdown_bytes;

    seep_track_freed(block);
    countdown_bytes = seep_python_wrap_enter(block);
    domain->real.free(domain->real.context, block);
    seep_python_wrap_leave(countdown_bytes);
}

static void object_free(void *context, void *block)
{
    struct domain *domain = context;

    if (seep_unlikely(!seep_track_ignores(block))) {
        free_recorded(domain, block);
        return;
    }
    /* The free beneath asks the same filter: it needs no mark. */
    domain->real.free(domain->real.context, block);
}

bool seep_python_wrap_is(const struct seep_python_allocator *it)
{
    return it->context == &obj_domain && it->malloc == object_malloc;
}

bool seep_python_wrap_doubt(void)
{
    doubt(&mem_domain);
    return doubt(&obj_domain);
}

bool seep_python_wrap_is_used(void)
{
    return !atomic_load_explicit(&obj_domain.doubted, memory_order_relaxed) ||
           !atomic_load_explicit(&mem_domain.doubted, memory_order_relaxed);
}

static void wrap(struct domain *domain, int number,
                 seep_python_allocator_call *get,
                 seep_python_allocator_call *set)
{
    struct seep_python_allocator ours = {domain, object_malloc, object_calloc,
                                         object_realloc, object_free};

    get(number, &domain->real);
    set(number, &ours);
}

void seep_python_wrap(seep_python_allocator_call *get,
                      seep_python_allocator_call *set)
{
    wrap(&mem_domain, SEEP_PYTHON_DOMAIN_MEM, get, set);
    wrap(&obj_domain, SEEP_PYTHON_DOMAIN_OBJ, get, set);
}
