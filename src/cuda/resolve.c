/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The wrappers and their real targets; see resolve.h. */
#include "cuda/resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "capture/elf_symbols.h"
#include "capture/object_map.h"
#include "cuda/abi.h"
#include "cuda/bindings.h"
#include "cuda/dlsym.h"
#include "cuda/driver.h"
#include "cuda/next.h"

#define DRIVER "libcuda.so.1"

/* What is behind us in the program as it was started, and stays. */
static uintptr_t at_start[SEEP_CUDA_IDS];

static _Atomic uint64_t counts[SEEP_CUDA_DOOR_COUNTS];

uint64_t seep_cuda_door_count(enum seep_cuda_door_count which)
{
    return atomic_load_explicit(&counts[which], memory_order_relaxed);
}

void seep_cuda_door_counted(enum seep_cuda_door_count which)
{
    atomic_fetch_add_explicit(&counts[which], 1, memory_order_relaxed);
}

size_t seep_cuda_find_exact(const struct seep_cuda_table *table,
                            const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->variants[i].name, name) == 0) {
            return i;
        }
    }
    return SEEP_CUDA_NONE;
}

size_t seep_cuda_find_version(const struct seep_cuda_table *table,
                              const char *base, int version, uint64_t flags)
{
    bool wants_twin = (flags & SEEP_CUDA_LOOKUP_PER_THREAD_STREAM) != 0;
    size_t best[2] = {SEEP_CUDA_NONE, SEEP_CUDA_NONE};

    for (size_t i = 0; i < table->count; i++) {
        const struct seep_cuda_variant *variant = &table->variants[i];

        if (variant->version <= version && strcmp(variant->base, base) == 0) {
            best[variant->per_thread] = i;
        }
    }
    return wants_twin && best[1] != SEEP_CUDA_NONE ? best[1] : best[0];
}

/*
 * Do both lie in one object? A driver may give one address by its own look-up
 * and another by its symbol, and both are the same entry point. What lies in
 * an object that is not known yet is taken for the driver that was just loaded.
 */
static bool is_same_object(uintptr_t a, uintptr_t b)
{
    struct seep_elf_image image_a;
    struct seep_elf_image image_b;
    bool known_a = seep_object_map_locate(a, &image_a);
    bool known_b = seep_object_map_locate(b, &image_b);

    return known_a == known_b && (!known_a || image_a.bias == image_b.bias);
}

uintptr_t seep_cuda_substitute(const struct seep_cuda_table *table,
                               size_t index, uintptr_t target)
{
    uintptr_t wrapper = (uintptr_t)table->variants[index].wrapper;
    uintptr_t known = 0;

    /* A driver that binds its own names as everybody does finds ours. */
    if (target == wrapper) {
        if (table == &seep_cuda_table) {
            seep_cuda_target((enum seep_cuda_id)index, 0);
        }
        return target;
    }
    if (!atomic_compare_exchange_strong_explicit(&table->real[index], &known,
                                                 target, memory_order_relaxed,
                                                 memory_order_relaxed) &&
        known != target && !is_same_object(known, target)) {
        seep_cuda_door_counted(SEEP_CUDA_OTHER_DRIVER);
        return target;
    }
    seep_cuda_door_counted(SEEP_CUDA_SUBSTITUTIONS);
    return wrapper;
}

/* By an image; seep_cuda_by_name. */
static uintptr_t defined_in(void *image, const char *name)
{
    struct seep_elf_symbols symbols;
    uintptr_t address = 0;
    size_t size_bytes;

    return seep_elf_symbols_open(image, &symbols) &&
                   seep_elf_symbols_find(&symbols, name, &address, &size_bytes)
               ? address
               : 0;
}

/* Without the loader: by what the program was linked with, or else by what the
 * caller is bound to beside us. */
static uintptr_t find_quietly(size_t index, uintptr_t caller)
{
    struct seep_elf_image image;
    uintptr_t found = at_start[index];

    if (found != 0) {
        seep_cuda_driver_learn(seep_cuda_symbol, RTLD_NEXT);
    } else if (caller != 0) {
        found = seep_cuda_bindings_definition(
            caller, seep_cuda_table.variants[index].name, &image);
        if (found != 0) {
            seep_cuda_driver_learn(defined_in, &image);
        }
    }
    return found;
}

/*
 * Of a directly linked caller: what would have been bound is the next
 * definition behind ours; a driver that was loaded out of the global scope is
 * found by its name. Not there is not there: it is not loaded for this.
 */
static uintptr_t find_by_loader(size_t index)
{
    const char *name = seep_cuda_table.variants[index].name;
    void *handle = RTLD_NEXT;
    uintptr_t found = seep_cuda_symbol(handle, name);

    if (found == 0) {
        handle = dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD);
        found = handle != NULL ? seep_cuda_symbol(handle, name) : 0;
    }
    if (found != 0) {
        seep_cuda_meet_driver(handle, found);
    }
    if (handle != NULL && handle != RTLD_NEXT) {
        seep_cuda_close(handle);
    }
    dlerror(); /* ours, not the program's */
    return found;
}

SEEP_COLD uintptr_t seep_cuda_find_target(size_t index, uintptr_t caller)
{
    int saved_errno = errno;
    uintptr_t found = find_quietly(index, caller);
    uintptr_t known = 0;

    if (found == 0) {
        found = find_by_loader(index);
    }
    errno = saved_errno;
    if (found != 0 && !atomic_compare_exchange_strong_explicit(
                          &seep_cuda_table.real[index], &known, found,
                          memory_order_relaxed, memory_order_relaxed)) {
        found = known;
    }
    return found;
}

void seep_cuda_prepare(void)
{
    if (seep_cuda_next("cuInit") == 0) {
        return;
    }
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        at_start[i] =
            seep_cuda_symbol(RTLD_NEXT, seep_cuda_table.variants[i].name);
    }
    seep_cuda_driver_prepare(seep_cuda_symbol, RTLD_NEXT);
    dlerror(); /* ours, not the program's */
}

static bool is_unloaded(uintptr_t function)
{
    struct seep_elf_image image;

    return function != 0 && !seep_object_map_locate(function, &image);
}

/* They came from one object, and go with it. */
static void forget_questions(void)
{
    for (int i = 0; i < SEEP_CUDA_QUESTION_COUNT; i++) {
        if (is_unloaded(
                seep_cuda_driver_function((enum seep_cuda_question)i))) {
            seep_cuda_driver_forget();
            return;
        }
    }
}

void seep_cuda_forget_unloaded(const struct seep_cuda_table *table)
{
    forget_questions();
    for (size_t i = 0; i < table->count; i++) {
        uintptr_t known =
            atomic_load_explicit(&table->real[i], memory_order_relaxed);

        if (is_unloaded(known)) {
            atomic_compare_exchange_strong_explicit(&table->real[i], &known, 0,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed);
        }
    }
}

/* Where @found is not known either, too little is known of what is loaded. */
void seep_cuda_meet_driver(void *handle, uintptr_t found)
{
    if (!is_unloaded(found)) {
        seep_cuda_forget_unloaded(&seep_cuda_table);
    }
    seep_cuda_driver_learn(seep_cuda_symbol, handle);
}
