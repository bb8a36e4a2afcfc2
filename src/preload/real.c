/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looking up what the hooks stand before; see real.h. */
#include "preload/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "preload/bootstrap.h"
#include "preload/hooks.h"

enum resolve_state { UNRESOLVED, RESOLVING, RESOLVED };

struct seep_real seep_real __attribute__((visibility("hidden")));

bool seep_real_is_behind __attribute__((visibility("hidden")));

static _Atomic int state;

/* Filled by a relocation of this library: not its own address, which code
 * knows without one, until that has happened. */
static const volatile void *const volatile relocated = &relocated;

/* One by one through a table: a look-up is data, not code. */
static const struct {
    const char *name;
    size_t offset;
} entries[] = {
#define SEEP_HOOK(name, result, parameters) \
    {#name, offsetof(struct seep_real, name)},
#include "preload/hooks.def"
#undef SEEP_HOOK
};

/* mmap64 for a libc that has only mmap, and so on: never a missing pointer. */
static void fill_gaps(void)
{
    if (seep_real.mmap64 == NULL) {
        seep_real.mmap64 = seep_real.mmap;
    }
}

/*
 * Who answers to `malloc`? Addresses cannot tell: a program that is linked at
 * a fixed address has one of its own for every function it points to. So it is
 * called: while we look up, ours answers from the arena.
 */
static bool is_behind(void)
{
    void *(*volatile front)(size_t) = malloc;
    void (*volatile give_back)(void *) = free;
    void *block = front(1);
    bool behind = !seep_bootstrap_owns(block);

    give_back(block);
    return behind;
}

SEEP_COLD static void resolve(void)
{
    void *real_malloc = NULL;

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *symbol;

        /* A name that is missing costs an allocation of the loader's. */
        if (strncmp(entries[i].name, "_Z", 2) == 0 &&
            entries[i].offset != offsetof(struct seep_real, _Znwm) &&
            seep_real._Znwm == NULL) {
            continue;
        }
        symbol = dlsym(RTLD_NEXT, entries[i].name);
        if (entries[i].offset == offsetof(struct seep_real, malloc)) {
            real_malloc = symbol;
            continue;
        }
        memcpy((char *)&seep_real + entries[i].offset, &symbol, sizeof(symbol));
    }
    fill_gaps();
    seep_real_is_behind = is_behind();
    dlerror(); /* the names that libc lacks left a message for the program */
    atomic_thread_fence(memory_order_seq_cst);
    memcpy(&seep_real.malloc, &real_malloc, sizeof(real_malloc));
    atomic_store_explicit(&state, RESOLVED, memory_order_relaxed);
}

bool seep_real_resolve(void)
{
    int expected = UNRESOLVED;

    if (relocated != &relocated) {
        return false;
    }
    if (atomic_compare_exchange_strong_explicit(&state, &expected, RESOLVING,
                                                memory_order_relaxed,
                                                memory_order_relaxed)) {
        resolve();
        return true;
    }
    return expected == RESOLVED;
}

void *seep_real_find_cxx(const char *name)
{
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++abi.so.1",
                                           "libc++.so.1"};
    void *symbol = dlsym(RTLD_NEXT, name);
    bool failed = symbol == NULL;

    for (size_t i = 0; symbol == NULL && i < 3; i++) {
        void *handle = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);

        if (handle != NULL) {
            symbol = dlsym(handle, name);
            if (seep_real.dlclose != NULL) {
                seep_real.dlclose(handle);
            }
        }
    }
    if (failed) {
        dlerror(); /* ours; a message of the program's stays if it can */
    }
    return symbol;
}

struct object_query {
    uintptr_t address;
    uintptr_t start;
    uintptr_t end;
    const char *path;
};

static int match_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct object_query *query = data;
    uintptr_t start = UINTPTR_MAX;
    uintptr_t end = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];

        if (header->p_type == PT_LOAD) {
            uintptr_t at = info->dlpi_addr + header->p_vaddr;

            start = at < start ? at : start;
            end = at + header->p_memsz > end ? at + header->p_memsz : end;
        }
    }
    if (query->address < start || query->address >= end) {
        return 0;
    }
    query->start = start;
    query->end = end;
    query->path = info->dlpi_name;
    return 1;
}

static struct object_query object_of(const void *address)
{
    struct object_query query = {.address = (uintptr_t)address, .path = ""};

    if (address != NULL && seep_real.dl_iterate_phdr != NULL) {
        seep_real.dl_iterate_phdr(match_object, &query);
    }
    return query;
}

static const void *malloc_address(void)
{
    const void *address;

    memcpy(&address, &seep_real.malloc, sizeof(address));
    return address;
}

void seep_real_allocator(const void **ret_start, const void **ret_end,
                         const char **ret_path)
{
    struct object_query query = object_of(malloc_address());

    *ret_start = (const void *)query.start;
    *ret_end = (const void *)query.end;
    *ret_path = query.path;
}

bool seep_real_new_is_allocators(void)
{
    struct object_query query = object_of(malloc_address());
    uintptr_t operator_new;

    memcpy(&operator_new, &seep_real._Znwm, sizeof(operator_new));
    return operator_new >= query.start && operator_new < query.end;
}
