/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loaded objects, listed at start and after every dlclose.
 *
 * Invariant: an entry is used only if `version` was even and the same before
 * and after it was copied; there is one writer at a time, by compare and swap.
 */
#include "capture/snapshot.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>

#include "base/compiler.h"

#define OBJECTS_MAX 1024U
#define READ_RETRIES 4U

typedef int iterate_function(int (*)(struct dl_phdr_info *, size_t, void *),
                             void *);

struct entry {
    _Atomic uintptr_t start;
    _Atomic uintptr_t end;
    _Atomic uintptr_t bias;
    _Atomic uintptr_t path;
    _Atomic uintptr_t eh_frame_hdr;
};

static iterate_function *real_iterate;
static struct entry entries[OBJECTS_MAX];
static _Atomic uint32_t entry_count;
static _Atomic uint32_t version;

static uintptr_t peek(const _Atomic uintptr_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void poke(_Atomic uintptr_t *word, uintptr_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/* The callback of dl_iterate_phdr: one object into the next entry. */
static int list_object(struct dl_phdr_info *info, size_t size, void *data)
{
    uint32_t *count = data;
    struct entry *entry = &entries[*count];
    uintptr_t low = UINTPTR_MAX;
    uintptr_t high = 0;
    uintptr_t hdr = 0;

    (void)size;
    if (*count == OBJECTS_MAX) {
        return 1;
    }
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;

        if (header->p_type == PT_GNU_EH_FRAME) {
            hdr = start;
        } else if (header->p_type == PT_LOAD) {
            low = start < low ? start : low;
            high =
                start + header->p_memsz > high ? start + header->p_memsz : high;
        }
    }
    if (low < high) {
        poke(&entry->start, low & ~(uintptr_t)4095);
        poke(&entry->end, high);
        poke(&entry->bias, info->dlpi_addr);
        poke(&entry->path, (uintptr_t)info->dlpi_name);
        poke(&entry->eh_frame_hdr, hdr);
        ++*count;
    }
    return 0;
}

void seep_snapshot_init(void)
{
    /* Not by name: that would be the hook of our own. */
    void *found = dlsym(RTLD_NEXT, "dl_iterate_phdr");

    __builtin_memcpy(&real_iterate, &found, sizeof(found));
    seep_snapshot_refresh();
}

void seep_snapshot_refresh(void)
{
    uint32_t seen = atomic_load_explicit(&version, memory_order_relaxed);
    uint32_t count = 0;

    /* Acquire: pairs with the release below, that the writes of the refresh
     * before this one come first. */
    if (real_iterate == NULL || seen % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&version, &seen, seen + 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        return;
    }
    /* Release: pairs with the acquire fence in seep_snapshot_find(), so that
     * who sees one of the new words sees the odd version too. */
    atomic_thread_fence(memory_order_release);
    real_iterate(list_object, &count);
    atomic_store_explicit(&entry_count, count, memory_order_relaxed);
    /* Release: pairs with the acquire load in seep_snapshot_find(). */
    atomic_store_explicit(&version, seen + 2, memory_order_release);
}

static bool search(uintptr_t address, struct seep_elf_image *image)
{
    uint32_t count = atomic_load_explicit(&entry_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count && i < OBJECTS_MAX; i++) {
        const struct entry *entry = &entries[i];

        image->start = peek(&entry->start);
        image->end = peek(&entry->end);
        if (address >= image->start && address < image->end) {
            image->bias = peek(&entry->bias);
            image->path = (const char *)peek(&entry->path);
            image->eh_frame_hdr = (const void *)peek(&entry->eh_frame_hdr);
            return true;
        }
    }
    return false;
}

bool seep_snapshot_find(uintptr_t address, struct seep_elf_image *ret_image)
{
    for (unsigned int i = 0; i < READ_RETRIES; i++) {
        /* Acquire: pairs with the release store in refresh. */
        uint32_t before = atomic_load_explicit(&version, memory_order_acquire);
        struct seep_elf_image image = {0};
        bool found;

        if (before % 2 != 0) {
            continue;
        }
        found = search(address, &image);
        /* Acquire: pairs with the release fence in refresh. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&version, memory_order_relaxed) == before) {
            if (found) {
                *ret_image = image;
            }
            return found;
        }
    }
    return false;
}

void seep_snapshot_after_fork(void)
{
    uint32_t seen = atomic_load_explicit(&version, memory_order_relaxed);

    if (seen % 2 != 0) {
        /* Half written: nothing of it may be used. */
        atomic_store_explicit(&entry_count, 0, memory_order_relaxed);
        atomic_store_explicit(&version, seen + 1, memory_order_relaxed);
    }
}
