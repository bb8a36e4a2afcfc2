/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrappers, and the watch over them; see python_objects.h.
 *
 * They are set once, by the constructor, and never taken away: others may have
 * put theirs on top. Whoever sets allocators that do not lead to ours (the
 * debug allocators do, PYTHONMALLOC does) is noticed by a look at the words
 * that Python keeps of them, and told.
 */
#include "preload/python_objects.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "capture/elf_symbols.h"
#include "capture/object_map.h"
#include "capture/python.h"
#include "preload/options.h"
#include "preload/track.h"

/* Python's own numbers of its domains. */
#define DOMAIN_MEM 1
#define DOMAIN_OBJ 2

#define FRAME_SHIFT 4
#define FRAME_MASK ((UINT64_C(1) << 44) - 1)
#define MARK_SHIFT 17
#define SILENT_LOOKS_MAX 8U

struct domain {
    struct seep_python_allocator real;
    _Atomic bool doubted; /* nobody has come through since this was set */
};

static struct domain mem_domain = {.doubted = true};
static struct domain obj_domain = {.doubted = true};
static _Atomic int objects_state = SEEP_PYTHON_OBJECTS_OFF;

/* Where Python keeps what it calls for OBJ, or how it is asked: one of them,
 * or none. */
static const struct seep_python_allocator *in_force;
static seep_python_allocator_call *get_without_lock;
static _Atomic uint32_t silent_looks = SILENT_LOOKS_MAX; /* in a row */

/* More than any countdown. What the malloc beneath takes from it moves the
 * frame by 16 bytes for 128 KiB, down: at worst a mark is given up early. */
static int64_t mark_of(uintptr_t frame)
{
    return SEEP_SAMPLER_NEVER + 1 +
           (int64_t)((frame >> FRAME_SHIFT & FRAME_MASK) << MARK_SHIFT);
}

bool seep_python_objects_unmark(uintptr_t frame)
{
    if (seep_thread.countdown_bytes > mark_of(frame)) {
        return false;
    }
    /* As a thread that was never seen: a threshold is drawn at its next
     * block. The process has no memory, so nothing is lost by that. */
    seep_thread.sample_log2 = 0;
    seep_thread.countdown_bytes = 0;
    return true;
}

/* @return false: this thread is in there already, and passes through */
SEEP_INLINE bool enter(uintptr_t frame, int64_t *ret_countdown_bytes)
{
    if (seep_python_objects_is_inside(frame)) {
        return false;
    }
    *ret_countdown_bytes = seep_thread.countdown_bytes;
    seep_thread.countdown_bytes = mark_of(frame);
    return true;
}

SEEP_INLINE void leave(int64_t countdown_bytes)
{
    seep_thread.countdown_bytes = countdown_bytes;
}

SEEP_INLINE void trust(struct domain *domain)
{
    if (seep_unlikely(
            atomic_load_explicit(&domain->doubted, memory_order_relaxed))) {
        atomic_store_explicit(&domain->doubted, false, memory_order_relaxed);
    }
}

#define FRAME() ((uintptr_t)__builtin_frame_address(0))

static void *object_malloc(void *context, size_t size)
{
    struct domain *domain = context;
    int64_t countdown_bytes;
    void *block;

    trust(domain);
    if (!enter(FRAME(), &countdown_bytes)) {
        return domain->real.malloc(domain->real.context, size);
    }
    block = domain->real.malloc(domain->real.context, size);
    leave(countdown_bytes);
    if (seep_unlikely(!seep_track_passes(block, size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_object_allocated(&start, block, size);
    }
    return block;
}

static void *object_calloc(void *context, size_t count, size_t size)
{
    struct domain *domain = context;
    int64_t countdown_bytes;
    void *block;

    trust(domain);
    if (!enter(FRAME(), &countdown_bytes)) {
        return domain->real.calloc(domain->real.context, count, size);
    }
    block = domain->real.calloc(domain->real.context, count, size);
    leave(countdown_bytes);
    /* It succeeded, so the product does not overflow. */
    if (seep_unlikely(!seep_track_passes(block, count * size))) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_object_allocated(&start, block, count * size);
    }
    return block;
}

static void *object_realloc(void *context, void *block, size_t size)
{
    struct domain *domain = context;
    struct seep_track_out out = {false, 0};
    int64_t countdown_bytes;
    void *moved;

    if (seep_unlikely(!seep_track_ignores(block))) {
        out = seep_track_realloc_out(block);
    }
    if (!enter(FRAME(), &countdown_bytes)) {
        return domain->real.realloc(domain->real.context, block, size);
    }
    moved = domain->real.realloc(domain->real.context, block, size);
    leave(countdown_bytes);
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
    if (!enter(FRAME(), &countdown_bytes)) {
        domain->real.free(domain->real.context, block);
        return;
    }
    domain->real.free(domain->real.context, block);
    leave(countdown_bytes);
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

static bool leads_to_us(const struct seep_python_allocator *it)
{
    return it->context == &obj_domain && it->malloc == object_malloc;
}

/*
 * From 3.12 on Python locks to say what is set, so the words are read where
 * they are, which is found once by what was just put into them.
 */
static void find_words(uintptr_t function)
{
    struct seep_elf_image image;
    struct seep_elf_symbols symbols;
    uintptr_t start;
    size_t bytes;

    if (!seep_object_map_find(function, &image) ||
        !seep_elf_symbols_open(&image, &symbols) ||
        !seep_elf_symbols_find(&symbols, "_PyRuntime", &start, &bytes)) {
        return;
    }
    for (size_t i = 0; i + sizeof(*in_force) <= bytes; i += sizeof(uintptr_t)) {
        const struct seep_python_allocator *it = (const void *)(start + i);

        if (leads_to_us(it) && it->free == object_free) {
            in_force = it;
            return;
        }
    }
}

static bool is_in_front(void)
{
    struct seep_python_allocator now;

    if (in_force != NULL) {
        return leads_to_us(in_force);
    }
    if (get_without_lock == NULL) {
        return true; /* it cannot be known */
    }
    get_without_lock(DOMAIN_OBJ, &now);
    return leads_to_us(&now);
}

enum seep_python_objects seep_python_objects_look(void)
{
    int state = atomic_load_explicit(&objects_state, memory_order_relaxed);
    bool came;
    uint32_t silent = 0;

    if (state != SEEP_PYTHON_OBJECTS_ON &&
        state != SEEP_PYTHON_OBJECTS_REPLACED) {
        return (enum seep_python_objects)state;
    }
    /* Others may stand before us and lead here (tracemalloc does). */
    came = !atomic_exchange_explicit(&obj_domain.doubted, true,
                                     memory_order_relaxed);
    if (!came && !is_in_front()) {
        silent = 1 + atomic_load_explicit(&silent_looks, memory_order_relaxed);
    }
    atomic_store_explicit(&silent_looks, silent, memory_order_relaxed);
    state = silent > SILENT_LOOKS_MAX ? SEEP_PYTHON_OBJECTS_REPLACED
                                      : SEEP_PYTHON_OBJECTS_ON;
    atomic_store_explicit(&objects_state, state, memory_order_relaxed);
    return (enum seep_python_objects)state;
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

void seep_python_objects_wrap(seep_python_allocator_call *get,
                              seep_python_allocator_call *set)
{
    wrap(&mem_domain, DOMAIN_MEM, get, set);
    wrap(&obj_domain, DOMAIN_OBJ, get, set);
    atomic_store_explicit(&objects_state, SEEP_PYTHON_OBJECTS_ON,
                          memory_order_relaxed);
}

static enum seep_python_objects find_and_wrap(void)
{
    enum seep_python_state python = seep_python_state();
    seep_python_allocator_call *get;
    seep_python_allocator_call *set;
    void *get_symbol = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void *set_symbol = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");

    dlerror();
    if (python == SEEP_PYTHON_NONE) {
        return SEEP_PYTHON_OBJECTS_ABSENT;
    }
    if ((python != SEEP_PYTHON_ON && python != SEEP_PYTHON_PROBATION) ||
        get_symbol == NULL || set_symbol == NULL) {
        return SEEP_PYTHON_OBJECTS_UNKNOWN;
    }
    memcpy(&get, &get_symbol, sizeof(get));
    memcpy(&set, &set_symbol, sizeof(set));
    seep_python_objects_wrap(get, set);
    if (seep_python_version() >= 0x030c0000) {
        find_words((uintptr_t)get_symbol);
    } else {
        get_without_lock = get;
    }
    return SEEP_PYTHON_OBJECTS_ON;
}

void seep_python_objects_init(void)
{
    if (seep_options.python == SEEP_OPTIONS_PYTHON_OBJECTS) {
        atomic_store_explicit(&objects_state, find_and_wrap(),
                              memory_order_relaxed);
    }
}
