/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrappers around Python's allocators.
 *
 * Nearly all blocks are small and not sampled. Those need no mark where the
 * real allocator was seen to do without malloc for their size, so the wrapper
 * counts them down and calls it last: no frame of ours is on the stack. All
 * else goes to a function that is called last too, for the same reason: the
 * stack begins at the wrapper's caller.
 *
 * Each domain has functions of its own: the context that they are called with
 * is the real one, and where frees are left to malloc the real free is set.
 */
#include "preload/python/wrap.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/word.h"
#include "preload/real.h"
#include "preload/track.h"
#include "preload/twins.h"

/* Python's own numbers of its domains. */
#define SEEP_PYTHON_DOMAIN_MEM 1

/* The most that pymalloc takes from its arenas. */
#define SMALL_BYTES_MAX 512U

/* Names that the cache of methods takes (twins.h): of 100 characters at most,
 * a byte each, behind a head that was longer to 3.11. */
#define NAME_BYTES_LEAST 42U
#define NAME_BYTES_MOST 149U

struct domain {
    struct seep_python_allocator real;
    /* Up to this size the real malloc was seen to do without the malloc of
     * the process: there is nothing to mark for. */
    _Atomic size_t small_most;
    _Atomic size_t proven_most; /* what the above goes back to */
    /* What is larger was seen to be malloc's, to the byte: what malloc's hook
     * counts down need not be marked for. */
    _Atomic bool large_passes;
    _Atomic bool doubted; /* nobody has come since this was set; implies that
                             small_most is 0 and large_passes not set, so that
                             who comes is seen */
};

/* One line of the cache each: the fast path reads no more of ours but the
 * countdown, and where that is. */
static struct domain mem_domain
    __attribute__((aligned(64))) = {.doubted = true};
static struct domain obj_domain
    __attribute__((aligned(64))) = {.doubted = true};
static_assert(sizeof(struct domain) <= 64, "one line of the cache");

/* Every block that is recorded is malloc's: its free is seen there. */
static bool frees_are_mallocs;
/* The last that was to be was not: its free will not be seen. */
static _Atomic bool unseen;

/* What RAW was, and how that is seen now: where it is kept, or by asking. With
 * neither it is not known. */
static struct seep_python_allocator first_raw;
static const struct seep_python_allocator *kept_raw;
static seep_python_allocator_call *get_raw;

/* Nearly always it is so already: the line is not taken from who reads it. */
SEEP_INLINE void set_flag(_Atomic bool *flag, bool value)
{
    if (seep_word_load(flag) != value) {
        seep_word_store(flag, value);
    }
}

/* Somebody came, for @size_bytes, and was given @block; @malloced_bytes of it
 * were malloced. What could not be given proves nothing: malloc was asked for
 * it, and has not counted it. */
static void trust(struct domain *domain, const void *block, size_t size_bytes,
                  size_t malloced_bytes)
{
    size_t proven = seep_word_load(&domain->proven_most);

    if (size_bytes > SMALL_BYTES_MAX) {
        set_flag(&domain->large_passes, malloced_bytes == size_bytes);
    } else if (block != NULL && malloced_bytes == 0 && size_bytes > proven) {
        proven = size_bytes;
        seep_word_store(&domain->proven_most, proven);
    }
    set_flag(&domain->doubted, false);
    if (seep_word_load(&domain->small_most) != proven) {
        seep_word_store(&domain->small_most, proven);
    }
}

/* Whoever comes next is to be seen. @return has anybody since the last time? */
static bool doubt(struct domain *domain)
{
    bool came = !seep_word_exchange(&domain->doubted, true);

    seep_word_store(&domain->small_most, 0);
    seep_word_store(&domain->large_passes, false);
    return came;
}

/*
 * Is this a small block that does not end the countdown? Then it is counted
 * here, before it is made, and the real allocator is all that is left to call:
 * no frame of ours is on the stack. (A block that then cannot be made was
 * counted: where the threshold lies has no memory.) A mark that a jump has left
 * is counted down too, until a block comes that is marked.
 */
SEEP_INLINE bool passes_small(struct domain *domain, size_t size)
{
    int64_t left = seep_thread.countdown_bytes - (int64_t)size;

    if (seep_unlikely(left <= 0 ||
                      size - 1 >= seep_word_load(&domain->small_most))) {
        return false;
    }
    seep_thread.countdown_bytes = left;
    return true;
}

/* Is this a large block that does not end the countdown, and that malloc's hook
 * counts down? Not where a jump has left a mark: that is to be undone. */
SEEP_INLINE bool passes_large(struct domain *domain, size_t size)
{
    uint64_t left = (uint64_t)seep_thread.countdown_bytes - size;

    return size > SMALL_BYTES_MAX && left - 1 < SEEP_SAMPLER_NEVER &&
           seep_word_load(&domain->large_passes);
}

/*
 * A small block that ends the countdown is to be malloc's: pymalloc is asked
 * for more than it has itself.
 */
static bool is_to_be_mallocs(int64_t countdown_bytes, size_t size_bytes)
{
    return frees_are_mallocs && size_bytes <= SMALL_BYTES_MAX &&
           countdown_bytes <= (int64_t)size_bytes;
}

/* How much malloc was asked for under the mark of @block. */
static size_t size_malloced(const void *block)
{
    return (size_t)(seep_track_mark(block) - seep_thread.countdown_bytes);
}

/* @block of @size_bytes ends the countdown; @is_mallocs: all of it is. */
static void record(const struct seep_capture_start *start, const void *block,
                   size_t size_bytes, bool is_mallocs)
{
    bool lost = frees_are_mallocs && !is_mallocs;

    seep_track_object_allocated(start, block, size_bytes);
    if (lost) {
        seep_track_freed(block); /* rather than never */
    }
    seep_word_store(&unseen, lost);
}

/*
 * What pymalloc does not know it gives to RAW, and that to free(). A twin is
 * for free()'s hook alone: it is none while RAW is another's, who may look at
 * what it has not given. (Who comes later has to pass on what is older.)
 */
static bool raw_is_mallocs(void)
{
    struct seep_python_allocator now;

    if (kept_raw != NULL) {
        now = *kept_raw;
    } else if (get_raw != NULL) {
        get_raw(SEEP_PYTHON_DOMAIN_RAW, &now);
    } else {
        return false;
    }
    return memcmp(&now, &first_raw, sizeof(now)) == 0;
}

static bool may_be_name(size_t size_bytes)
{
    return size_bytes >= NAME_BYTES_LEAST && size_bytes <= NAME_BYTES_MOST;
}

/*
 * In place of @block, which goes; NULL: it stays. Python counts what it has of
 * RAW by its own calls, and will count that the twin goes: so it asks for one
 * of RAW's, and that goes behind its back. It shows, too, that RAW is malloc.
 */
static void *twin_of(struct domain *domain, void *block, size_t size)
{
    const struct seep_python_allocator *real = &domain->real;
    int64_t mark = seep_thread.countdown_bytes;
    void *twin = seep_twins_make(block, size);
    void *counted;

    if (twin == NULL) {
        return NULL;
    }
    counted = real->malloc(real->context, SMALL_BYTES_MAX + 1);
    if (counted == NULL ||
        mark - seep_thread.countdown_bytes != SMALL_BYTES_MAX + 1) {
        real->free(real->context, counted);
        seep_twins_free(twin);
        return NULL;
    }
    seep_real.free(counted);
    memcpy(twin, block, size);
    real->free(real->context, block);
    return twin;
}

/* The two that follow are for a block that is to be malloc's, and not else;
 * under a mark. Where it cannot be it is given as the real one gives it. */

static SEEP_NOINLINE void *malloc_mallocs(struct domain *domain, size_t size,
                                          bool *ret_is_mallocs)
{
    const struct seep_python_allocator *real = &domain->real;
    bool is_name = may_be_name(size) && raw_is_mallocs();
    int error = errno;
    void *own = NULL; /* the one that Python would have had */
    void *block;

    if (is_name) {
        own = real->malloc(real->context, size);
        trust(domain, own, size, size_malloced(NULL));
        block = own == NULL ? NULL : twin_of(domain, own, size);
        *ret_is_mallocs = block != NULL;
        if (own == NULL || block != NULL) {
            return block;
        }
        seep_thread.countdown_bytes = seep_track_mark(NULL);
    }
    block = real->malloc(real->context, SMALL_BYTES_MAX + 1);
    *ret_is_mallocs = size_malloced(NULL) == SMALL_BYTES_MAX + 1;
    trust(domain, block, SMALL_BYTES_MAX + 1, size_malloced(NULL));
    if (seep_unlikely(block == NULL)) {
        errno = error;
        return is_name ? own : real->malloc(real->context, size);
    }
    if (is_name) {
        real->free(real->context, own);
    }
    return block;
}

static SEEP_NOINLINE void *realloc_mallocs(struct domain *domain, void *block,
                                           size_t size, bool *ret_is_mallocs)
{
    const struct seep_python_allocator *real = &domain->real;
    bool is_name = may_be_name(size) && raw_is_mallocs();
    int64_t mark = seep_thread.countdown_bytes;
    int error = errno;
    void *own = block;
    void *moved;

    if (is_name) {
        own = real->realloc(real->context, block, size);
        moved = own == NULL ? NULL : twin_of(domain, own, size);
        *ret_is_mallocs = moved != NULL;
        seep_thread.countdown_bytes = mark;
        if (own == NULL || moved != NULL) {
            return moved;
        }
    }
    moved = real->realloc(real->context, own, SMALL_BYTES_MAX + 1);
    *ret_is_mallocs = mark - seep_thread.countdown_bytes == SMALL_BYTES_MAX + 1;
    if (seep_unlikely(moved == NULL)) {
        errno = error;
        return is_name ? own : real->realloc(real->context, own, size);
    }
    return moved;
}

/* Called last by the wrapper, so that the stack begins at its caller. */
static SEEP_NOINLINE void *malloc_marked(struct domain *domain, size_t size)
{
    int64_t countdown_bytes = seep_track_enter_mark(NULL);
    bool is_mallocs;
    void *block;

    if (seep_unlikely(is_to_be_mallocs(countdown_bytes, size))) {
        block = malloc_mallocs(domain, size, &is_mallocs);
    } else {
        block = domain->real.malloc(domain->real.context, size);
        is_mallocs = size_malloced(NULL) == size;
        trust(domain, block, size, size_malloced(NULL));
    }
    seep_track_leave_mark(countdown_bytes);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        record(&start, block, size, is_mallocs);
    }
    return block;
}

static SEEP_NOINLINE void *malloc_other(struct domain *domain, size_t size)
{
    return seep_likely(passes_large(domain, size))
               ? domain->real.malloc(domain->real.context, size)
               : malloc_marked(domain, size);
}

SEEP_INLINE void *object_malloc(struct domain *domain, void *context,
                                size_t size)
{
    return seep_likely(passes_small(domain, size))
               ? domain->real.malloc(context, size)
               : malloc_other(domain, size);
}

static SEEP_NOINLINE void *calloc_marked(struct domain *domain, size_t count,
                                         size_t size)
{
    int64_t countdown_bytes = seep_track_enter_mark(NULL);
    int error = errno;
    bool is_mallocs;
    size_t total;
    size_t asked;
    void *block = NULL;

    if (__builtin_mul_overflow(count, size, &total)) {
        total = SIZE_MAX;
    }
    asked =
        is_to_be_mallocs(countdown_bytes, total) ? SMALL_BYTES_MAX + 1 : total;
    if (asked != total) {
        block = domain->real.calloc(domain->real.context, 1, asked);
    }
    if (block == NULL) {
        errno = error;
        block = domain->real.calloc(domain->real.context, count, size);
    }
    is_mallocs = size_malloced(NULL) == asked;
    trust(domain, block, asked, size_malloced(NULL));
    seep_track_leave_mark(countdown_bytes);
    if (seep_unlikely(!seep_track_passes(block, total))) {
        /* Not tested: an exception. None comes from here, but gcc has a way out
         * for it where @start ends (-fexceptions). */
        struct seep_capture_start start = SEEP_CAPTURE_START();

        record(&start, block, total, is_mallocs); /* Not tested: the same */
    }
    return block;
}

SEEP_INLINE void *object_calloc(struct domain *domain, void *context,
                                size_t count, size_t size)
{
    size_t total;

    return seep_likely(
               !__builtin_mul_overflow(count, size, &total) &&
               (passes_small(domain, total) || passes_large(domain, total)))
               ? domain->real.calloc(context, count, size)
               : calloc_marked(domain, count, size);
}

/* Marked whatever the size: the block may be malloc's, and shrink. */
SEEP_INLINE void *object_realloc(struct domain *domain, void *context,
                                 void *block, size_t size)
{
    struct seep_track_out out = {false, 0};
    int64_t countdown_bytes;
    bool is_mallocs;
    void *moved;

    if (seep_unlikely(!seep_track_ignores(block))) {
        out = seep_track_realloc_out(block);
    }
    countdown_bytes = seep_track_enter_mark(block);
    if (seep_unlikely(is_to_be_mallocs(countdown_bytes, size))) {
        moved = realloc_mallocs(domain, block, size, &is_mallocs);
    } else {
        moved = domain->real.realloc(context, block, size);
        is_mallocs = size_malloced(block) == size;
    }
    seep_track_leave_mark(countdown_bytes);
    if (seep_unlikely(moved == NULL)) {
        /* Of whatever size: to Python, none of 0 bytes is a failure too. */
        seep_track_realloc_failed(block, out);
        return NULL;
    }
    if (seep_unlikely(!seep_track_passes(moved, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        record(&start, moved, size, is_mallocs);
    }
    return moved;
}

/* Marked, so that the free beneath is not recorded a second time. */
static SEEP_NOINLINE void free_recorded(struct domain *domain, void *block)
{
    int64_t countdown_bytes;

    seep_track_freed(block);
    countdown_bytes = seep_track_enter_mark(block);
    domain->real.free(domain->real.context, block);
    seep_track_leave_mark(countdown_bytes);
}

SEEP_INLINE void object_free(struct domain *domain, void *context, void *block)
{
    if (seep_unlikely(!seep_track_ignores(block))) {
        free_recorded(domain, block);
        return;
    }
    /* The free beneath asks the same filter: it needs no mark. */
    domain->real.free(context, block);
}

/* That of malloc lies in one line of the cache too. */
#define FUNCTIONS_OF(name)                                                 \
    static __attribute__((aligned(64))) void *name##_malloc(void *context, \
                                                            size_t size)   \
    {                                                                      \
        return object_malloc(&name##_domain, context, size);               \
    }                                                                      \
    static void *name##_calloc(void *context, size_t count, size_t size)   \
    {                                                                      \
        return object_calloc(&name##_domain, context, count, size);        \
    }                                                                      \
    static void *name##_realloc(void *context, void *block, size_t size)   \
    {                                                                      \
        return object_realloc(&name##_domain, context, block, size);       \
    }                                                                      \
    static void name##_free(void *context, void *block)                    \
    {                                                                      \
        object_free(&name##_domain, context, block);                       \
    }

FUNCTIONS_OF(mem)
FUNCTIONS_OF(obj)

void seep_python_wrap_watch_raw(const struct seep_python_allocator *kept,
                                seep_python_allocator_call *get)
{
    kept_raw = kept;
    get_raw = get;
}

bool seep_python_wrap_is(const struct seep_python_allocator *it)
{
    return it->malloc == obj_malloc && it->realloc == obj_realloc;
}

bool seep_python_wrap_is_blind(void)
{
    return seep_word_load(&unseen);
}

bool seep_python_wrap_doubt(void)
{
    doubt(&mem_domain);
    return doubt(&obj_domain);
}

bool seep_python_wrap_is_used(void)
{
    return !seep_word_load(&obj_domain.doubted) ||
           !seep_word_load(&mem_domain.doubted);
}

void seep_python_wrap(seep_python_allocator_call *get,
                      seep_python_allocator_call *set, bool leave_frees)
{
    struct seep_python_allocator mem = {NULL, mem_malloc, mem_calloc,
                                        mem_realloc, mem_free};
    struct seep_python_allocator obj = {NULL, obj_malloc, obj_calloc,
                                        obj_realloc, obj_free};

    get(SEEP_PYTHON_DOMAIN_RAW, &first_raw);
    get(SEEP_PYTHON_DOMAIN_MEM, &mem_domain.real);
    get(SEEP_PYTHON_DOMAIN_OBJ, &obj_domain.real);
    mem.context = mem_domain.real.context;
    obj.context = obj_domain.real.context;
    frees_are_mallocs = leave_frees;
    if (leave_frees) {
        mem.free = mem_domain.real.free;
        obj.free = obj_domain.real.free;
    }
    set(SEEP_PYTHON_DOMAIN_MEM, &mem);
    set(SEEP_PYTHON_DOMAIN_OBJ, &obj);
}
