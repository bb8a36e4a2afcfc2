/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects that were loaded with RTLD_DEEPBIND; see deep.h.
 *
 * Invariant: none of the loader's locks is held while we look; those that are
 * taken for moments, the program's own dlopen has just taken as well. Only
 * objects are looked at that the handle holds, whole and complete, so that no
 * other thread is loading or unloading them. A thread that meets another one at
 * this work leaves it undone, and counts.
 *
 * dlopen takes its return address for its caller in three cases: where a name
 * without a slash is to be searched, for the caller's own paths; where a path
 * has a token ($ORIGIN); and for the namespace, which is ours for who finds our
 * dlopen. So a path without a token may be opened by a call of ours. All else
 * goes by a jump, and what comes of it is never looked at, only counted.
 */
#include "cuda/deep.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "cuda/bindings.h"
#include "cuda/dlsym.h"
#include "cuda/events.h"
#include "cuda/resolve.h"

#define DRIVER "libcuda.so.1"

/* Among a library and all that it needs; Debian's libtorch has 290. */
#define OBJECTS 1024U

typedef void *dlopen_function(const char *, int);

/* Ours, whoever else exports the names; in dlsym.S. */
extern void seep_cuda_door_dlsym(void) __attribute__((visibility("hidden")));
extern void seep_cuda_door_dlvsym(void) __attribute__((visibility("hidden")));

/* What a deep-bound object has, and what it would have without its depth. */
struct door {
    const char *name;
    uintptr_t target;  /* what is behind us; 0: nothing */
    uintptr_t wrapper; /* 0: to be asked for */
    bool is_first;     /* nobody stands before us */
};

enum { DOOR_DLSYM = SEEP_CUDA_IDS, DOOR_DLVSYM, DOORS };

/* Of the thread that has them. */
static struct door doors[DOORS];
static void *objects[OBJECTS]; /* each held by a handle, the root by dlopen's */
static size_t object_count;
static _Atomic bool are_taken;
static _Atomic bool is_restricted;

void seep_cuda_deep_restrict(void)
{
    atomic_store_explicit(&is_restricted, true, memory_order_relaxed);
}

bool seep_cuda_opens_deep(const char *file)
{
    if (file == NULL || seep_cuda_events() == NULL) {
        return false;
    }
    if (strchr(file, '/') == NULL || strchr(file, '$') != NULL ||
        atomic_load_explicit(&is_restricted, memory_order_relaxed)) {
        seep_cuda_door_counted(SEEP_CUDA_DEEP_MISSED);
        return false;
    }
    return true;
}

/* Does a library in front of us in the global scope have @name? */
static bool is_first(const char *name, uintptr_t wrapper)
{
    uintptr_t found = seep_cuda_symbol(RTLD_DEFAULT, name);

    return found == 0 || found == wrapper ||
           found == seep_cuda_symbol(RTLD_NEXT, name);
}

static void set(struct door *door, const char *name, uintptr_t target,
                uintptr_t wrapper)
{
    *door = (struct door){name, target, wrapper,
                          target != 0 && is_first(name, wrapper)};
}

/* @driver: NULL if there is none, and so nobody who is bound to one. */
static void set_all(void *driver)
{
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        const char *name = seep_cuda_table.variants[i].name;

        set(&doors[i], name,
            driver != NULL ? seep_cuda_symbol(driver, name) : 0, 0);
    }
    set(&doors[DOOR_DLSYM], "dlsym",
        atomic_load_explicit(&seep_cuda_next_dlsym, memory_order_relaxed),
        (uintptr_t)seep_cuda_door_dlsym);
    set(&doors[DOOR_DLVSYM], "dlvsym",
        atomic_load_explicit(&seep_cuda_next_dlvsym, memory_order_relaxed),
        (uintptr_t)seep_cuda_door_dlvsym);
}

/* What is not bound yet will be bound by the object's scope, and ours is right
 * for a deep one and for one that had been loaded as usual before, unless
 * somebody stands before us. */
static uintptr_t rebind(const char *name, uintptr_t bound)
{
    if ((name[0] != 'c' || name[1] != 'u') &&
        (name[0] != 'd' || name[1] != 'l')) {
        return 0;
    }
    for (size_t i = 0; i < DOORS; i++) {
        const struct door *door = &doors[i];
        uintptr_t wanted = door->wrapper;

        if (door->target == 0 || strcmp(door->name, name) != 0) {
            continue;
        }
        if (bound == 0 ? !door->is_first : bound != door->target) {
            return 0;
        }
        if (i < SEEP_CUDA_IDS) {
            wanted = seep_cuda_substitute(&seep_cuda_table, i, door->target);
        }
        return wanted != door->target ? wanted : 0;
    }
    return 0;
}

static void visit(struct seep_cuda_bindings *bindings)
{
    enum seep_cuda_rebound result = seep_cuda_bindings_visit(bindings, rebind);

    if (result != SEEP_CUDA_REBOUND_NONE) {
        seep_cuda_door_counted(result == SEEP_CUDA_REBOUND_ALL
                                   ? SEEP_CUDA_DEEP_OBJECTS
                                   : SEEP_CUDA_DEEP_MISSED);
    }
}

/* @return false: there is no room */
static bool add(void *object)
{
    for (size_t i = 0; i < object_count; i++) {
        if (objects[i] == object) {
            seep_cuda_close(object);
            return true;
        }
    }
    if (object_count == OBJECTS) {
        seep_cuda_close(object);
        return false;
    }
    objects[object_count++] = object;
    return true;
}

/* What @bindings need is loaded with them, and known by that name. */
static bool add_needs(const struct seep_cuda_bindings *bindings)
{
    bool is_whole = true;
    const char *name;

    for (size_t i = 0; (name = seep_cuda_bindings_needs(bindings, i)) != NULL;
         i++) {
        void *object = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

        is_whole = object != NULL && add(object) && is_whole;
    }
    return is_whole;
}

static void walk(void *root)
{
    bool is_whole = true;

    objects[0] = root;
    object_count = 1;
    for (size_t i = 0; i < object_count; i++) {
        struct seep_cuda_bindings bindings;
        struct link_map *map = NULL;

        if (dlinfo(objects[i], RTLD_DI_LINKMAP, &map) != 0 ||
            !seep_cuda_bindings_of(map, &bindings)) {
            is_whole = false;
            continue;
        }
        visit(&bindings);
        is_whole = add_needs(&bindings) && is_whole;
    }
    while (object_count > 1) {
        seep_cuda_close(objects[--object_count]);
    }
    if (!is_whole) {
        seep_cuda_door_counted(SEEP_CUDA_DEEP_MISSED);
    }
}

/* At what was loaded as @root, and what it needs. */
SEEP_COLD static void look(void *root)
{
    void *driver;

    /* Acquire: the doors are this thread's; pairs with the release below. */
    if (atomic_exchange_explicit(&are_taken, true, memory_order_acquire)) {
        seep_cuda_door_counted(SEEP_CUDA_DEEP_MISSED);
        return;
    }
    driver = dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD);
    if (driver != NULL) {
        seep_cuda_meet_driver(driver, seep_cuda_symbol(driver, "cuInit"));
    }
    set_all(driver);
    walk(root);
    if (driver != NULL) {
        seep_cuda_close(driver);
    }
    dlerror(); /* ours: the program's dlopen succeeded */
    /* Release: done with the doors; pairs with the acquire above. */
    atomic_store_explicit(&are_taken, false, memory_order_release);
}

void *seep_cuda_dlopen(const char *file, int flags)
{
    uintptr_t next =
        atomic_load_explicit(&seep_cuda_next_dlopen, memory_order_relaxed);
    void *volatile handle = NULL;
    int kept;

    if (next == 0) {
        seep_cuda_open_doors();
        next =
            atomic_load_explicit(&seep_cuda_next_dlopen, memory_order_relaxed);
    }
    if (next != 0) {
        handle = ((dlopen_function *)next)(file, flags);
    }
    /* A constructor of it may have restricted the process. */
    if (handle != NULL &&
        !atomic_load_explicit(&is_restricted, memory_order_relaxed)) {
        kept = errno;
        look(handle);
        errno = kept;
    }
    return handle;
}
