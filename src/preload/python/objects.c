/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finding Python's allocators, and the watch over our wrappers.
 *
 * Whoever sets allocators that do not lead to ours (the debug allocators do,
 * PYTHONMALLOC does) is noticed by a look at the words that Python keeps of
 * them, and by nobody coming through.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/word.h"
#include "capture/native/elf.h"
#include "capture/python/interpreter.h"
#include "preload/hooks.h"
#include "preload/options.h"
#include "preload/python/wrap.h"
#include "preload/real.h"
#include "preload/track.h"

#define SILENT_LOOKS_MAX 8U
/* A block of 513 bytes for each 64 KiB that were asked for is 0.8 % of them. */
#define FREES_LEFT_LOG2_LEAST 16U

/** PyObjectArenaAllocator. */
struct arenas {
    void *context;
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *arena, size_t size);
};

typedef void arenas_call(struct arenas *it);

static struct arenas real_arenas;
static _Atomic int objects_state = SEEP_PYTHON_OBJECTS_OFF;

/* Where Python keeps what it calls for OBJ, or how it is asked: one of them,
 * or none. */
static const struct seep_python_allocator *in_force;
static seep_python_allocator_call *get_without_lock;
static _Atomic uint32_t silent_looks = SILENT_LOOKS_MAX; /* in a row */

/*
 * From 3.12 on Python locks to say what is set, so the words are read where
 * they are, which is found once by what was just put into them.
 */
static void find_words(uintptr_t function)
{
    struct seep_elf_image image;
    struct seep_elf_symbols symbols;
    uintptr_t start;
    size_t bytes = 0;

    if (!seep_objects_find(function, &image) ||
        !seep_elf_symbols_open(&image, &symbols)) {
        return;
    }
    start = seep_elf_symbols_find(&symbols, "_PyRuntime", &bytes);
    for (size_t i = 0; i + sizeof(*in_force) <= bytes; i += sizeof(uintptr_t)) {
        const struct seep_python_allocator *it = (const void *)(start + i);

        if (seep_python_wrap_is(it)) {
            in_force = it;
            return;
        }
    }
}

static bool is_in_front(void)
{
    struct seep_python_allocator now;

    if (in_force != NULL) {
        return seep_python_wrap_is(in_force);
    }
    if (get_without_lock == NULL) {
        return true; /* it cannot be known */
    }
    get_without_lock(SEEP_PYTHON_DOMAIN_OBJ, &now);
    return seep_python_wrap_is(&now);
}

/*
 * An arena is the allocator's own mapping where its blocks are recorded by us.
 * What else comes from here (3.11's stacks of frames) has other sizes.
 */
static void *arena_alloc(void *context, size_t size)
{
    int64_t countdown_bytes;
    void *arena;

    (void)context;
    if ((size != SEEP_PYTHON_ARENA_BYTES_TO_3_9 &&
         size != SEEP_PYTHON_ARENA_BYTES &&
         size != SEEP_PYTHON_ARENA_BYTES_HUGE) ||
        seep_track_is_marked() || seep_python_wrap_is_blind() ||
        (!is_in_front() && !seep_python_wrap_is_used())) {
        return real_arenas.alloc(real_arenas.context, size);
    }
    /* Not tested: a mark that is undone here. Who is marked went on above. */
    countdown_bytes = seep_track_enter_mark(NULL);
    arena = real_arenas.alloc(real_arenas.context, size);
    seep_track_leave_mark(countdown_bytes);
    return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
    (void)context;
    real_arenas.free(real_arenas.context, arena, size);
}

enum seep_python_objects seep_python_objects_state(void)
{
    int state = seep_word_load(&objects_state);
    bool came;
    uint32_t silent = 0;

    if (state != SEEP_PYTHON_OBJECTS_ON &&
        state != SEEP_PYTHON_OBJECTS_REPLACED) {
        return (enum seep_python_objects)state;
    }
    /* Others may stand before us and lead here (tracemalloc does). */
    came = seep_python_wrap_doubt();
    if (!came && !is_in_front()) {
        silent = 1 + seep_word_load(&silent_looks);
    }
    seep_word_store(&silent_looks, silent);
    state = silent > SILENT_LOOKS_MAX || seep_python_wrap_is_blind()
                ? SEEP_PYTHON_OBJECTS_REPLACED
                : SEEP_PYTHON_OBJECTS_ON;
    seep_word_store(&objects_state, state);
    return (enum seep_python_objects)state;
}

static void wrap_arenas(void *get_symbol, void *set_symbol)
{
    struct arenas ours = {NULL, arena_alloc, arena_free};
    arenas_call *get;
    arenas_call *set;

    memcpy(&get, &get_symbol, sizeof(get));
    memcpy(&set, &set_symbol, sizeof(set));
    get(&real_arenas);
    set(&ours);
}

/*
 * May RAW's free be taken for free(), as long as nobody sets another? Not
 * where malloc is not ours: who stands before it may know its blocks. From 3.12
 * on what is set stands in one row: RAW, MEM, OBJ.
 */
static void watch_raw(seep_python_allocator_call *get)
{
    struct seep_python_allocator raw;
    struct seep_elf_image python;

    get(SEEP_PYTHON_DOMAIN_RAW, &raw);
    if (seep_real_is_behind || !seep_objects_find((uintptr_t)get, &python) ||
        (uintptr_t)raw.free < python.start ||
        (uintptr_t)raw.free >= python.end) {
        return;
    }
    if (get_without_lock != NULL) {
        seep_python_wrap_watch_raw(NULL, get);
    } else if (in_force != NULL &&
               memcmp(&in_force[-2], &raw, sizeof(raw)) == 0) {
        seep_python_wrap_watch_raw(&in_force[-2], NULL);
    }
}

static enum seep_python_objects find_and_wrap(void)
{
    enum seep_python_state python = seep_python_state();
    seep_python_allocator_call *get;
    seep_python_allocator_call *set;
    void *get_symbol;
    void *set_symbol;
    void *get_arenas;
    void *set_arenas;

    if (python == SEEP_PYTHON_NONE) {
        return SEEP_PYTHON_OBJECTS_ABSENT;
    }
    get_symbol = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    set_symbol = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    get_arenas = dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator");
    set_arenas = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    dlerror();
    if ((python != SEEP_PYTHON_ON && python != SEEP_PYTHON_PROBATION) ||
        get_symbol == NULL || set_symbol == NULL || get_arenas == NULL ||
        set_arenas == NULL) {
        return SEEP_PYTHON_OBJECTS_UNKNOWN;
    }
    memcpy(&get, &get_symbol, sizeof(get));
    memcpy(&set, &set_symbol, sizeof(set));
    wrap_arenas(get_arenas, set_arenas);
    seep_python_wrap(get, set,
                     seep_options.sample_log2 >= FREES_LEFT_LOG2_LEAST);
    if (seep_python_version() >= 0x030c0000) {
        find_words((uintptr_t)get_symbol);
    } else {
        get_without_lock = get;
    }
    watch_raw(get);
    return SEEP_PYTHON_OBJECTS_ON;
}

void seep_python_objects_init(void)
{
    if (seep_options.python == SEEP_OPTIONS_PYTHON_OBJECTS) {
        seep_word_store(&objects_state, find_and_wrap());
    }
}
