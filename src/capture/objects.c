/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The object of an address, and the epoch of unloading.
 *
 * Invariant: after seep_objects_init() nothing here takes the loader's lock
 * but seep_objects_unload_end() on a glibc without _dl_find_object, where the
 * real dlclose has just taken and released it.
 */
#include "capture/objects.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "capture/object_map.h"
#include "capture/snapshot.h"

/* As glibc 2.35 has it since; said here so that older headers do. */
struct found_object {
    unsigned long long int flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame_hdr;
    unsigned long long int reserved[7];
};

typedef int find_function(void *, struct found_object *);

static find_function *real_find;

/* The program itself. If there are holes between its segments (node is so),
 * the loader knows it only segment by segment. */
static struct seep_elf_image program;
_Atomic uint64_t seep_objects_unloads;

/* By what the kernel says of its program headers. */
static void find_program(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    uintptr_t low = UINTPTR_MAX;
    uintptr_t high = 0;
    uintptr_t bias = 0;

    for (size_t i = 0; headers != NULL && i < count; i++) {
        const ElfW(Phdr) *header = &headers[i];

        if (header->p_type == PT_PHDR) {
            bias = (uintptr_t)headers - header->p_vaddr;
        } else if (header->p_type == PT_LOAD) {
            low = header->p_vaddr < low ? header->p_vaddr : low;
            high = header->p_vaddr + header->p_memsz > high
                       ? header->p_vaddr + header->p_memsz
                       : high;
        }
    }
    if (low < high) {
        program.start = bias + (low & ~(uintptr_t)4095);
        program.end = bias + high;
        program.bias = bias;
        program.headers = headers;
        program.header_count = count;
    }
}

void seep_objects_init(void)
{
    /* Weak by hand: a reference would need GLIBC_2.35. */
    void *found = dlsym(RTLD_DEFAULT, "_dl_find_object");

    __builtin_memcpy(&real_find, &found, sizeof(found));
    find_program();
    if (real_find == NULL) {
        seep_snapshot_init();
    }
}

void seep_object_map_use_snapshot(void)
{
    real_find = NULL;
    seep_snapshot_init();
}

bool seep_object_map_locate(uintptr_t address, struct seep_elf_image *ret_image)
{
    ret_image->headers = NULL;
    ret_image->header_count = 0;
    if (seep_likely(real_find != NULL)) {
        struct found_object found;

        if (real_find((void *)address, &found) != 0 || found.link_map == NULL) {
            return false;
        }
        ret_image->start = (uintptr_t)found.map_start;
        ret_image->end = (uintptr_t)found.map_end;
        ret_image->bias = found.link_map->l_addr;
        ret_image->path = found.link_map->l_name;
        ret_image->eh_frame_hdr = found.eh_frame_hdr;
    } else if (!seep_snapshot_find(address, ret_image)) {
        return false;
    }
    if (ret_image->bias == program.bias && ret_image->start >= program.start &&
        ret_image->end <= program.end) {
        ret_image->start = program.start;
        ret_image->end = program.end;
        ret_image->headers = program.headers;
        ret_image->header_count = program.header_count;
    }
    return true;
}

bool seep_object_map_find(uintptr_t address, struct seep_elf_image *ret_image)
{
    if (!seep_object_map_locate(address, ret_image)) {
        return false;
    }
    if (ret_image->headers == NULL) {
        seep_elf_headers(ret_image);
    }
    return true;
}

bool seep_objects_find(uintptr_t address, struct seep_object *ret_object)
{
    struct seep_elf_image image;
    size_t build_id_bytes = 0;

    if (!seep_object_map_find(address, &image)) {
        return false;
    }
    *ret_object = (struct seep_object){
        .start = image.start,
        .end = image.end,
        .bias = image.bias,
        .path = image.path != NULL ? image.path : "",
        .eh_frame_hdr = image.eh_frame_hdr,
        .build_id = seep_elf_build_id(&image, &build_id_bytes),
        .build_id_bytes = build_id_bytes,
    };
    return true;
}

void seep_objects_unload_begin(void)
{
    /* Acquire and release: nothing of dlclose may be seen before this; pairs
     * with the acquire in seep_objects_epoch(). */
    atomic_fetch_add_explicit(&seep_objects_unloads,
                              SEEP_UNLOADS_GENERATION + 1,
                              memory_order_acq_rel);
}

void seep_objects_unload_end(void)
{
    uint64_t seen =
        atomic_load_explicit(&seep_objects_unloads, memory_order_relaxed);
    uint64_t next;

    if (real_find == NULL) {
        seep_snapshot_refresh();
    }
    /* A fork may have forgotten the begin: the count never goes below 0. */
    do {
        next = seen + SEEP_UNLOADS_GENERATION -
               ((seen & SEEP_UNLOADS_ACTIVE) != 0);
        /* Release: pairs with the acquire in seep_objects_epoch(). */
    } while (!atomic_compare_exchange_weak_explicit(
        &seep_objects_unloads, &seen, next, memory_order_release,
        memory_order_relaxed));
}

void seep_object_map_after_fork(void)
{
    uint64_t seen =
        atomic_load_explicit(&seep_objects_unloads, memory_order_relaxed);

    seep_snapshot_after_fork();
    if ((seen & SEEP_UNLOADS_ACTIVE) != 0) {
        atomic_store_explicit(&seep_objects_unloads,
                              (seen & ~SEEP_UNLOADS_ACTIVE) +
                                  SEEP_UNLOADS_GENERATION,
                              memory_order_relaxed);
    }
}

void seep_object_map_serve(uintptr_t pc)
{
    seep_thread.served_pc = pc;
    seep_thread.serving = pc != 0;
}

bool seep_objects_serves_this_thread(void)
{
    return seep_thread.serving != 0;
}

int seep_objects_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *),
                         void *data)
{
    struct seep_elf_image image;
    struct dl_phdr_info info = {0};

    if (!seep_object_map_find(seep_thread.served_pc, &image) ||
        image.headers == NULL) {
        return 0;
    }
    info.dlpi_addr = image.bias;
    info.dlpi_name = image.path;
    info.dlpi_phdr = image.headers;
    info.dlpi_phnum = (ElfW(Half))image.header_count;
    /* A cache keyed by these two must not outlive a dlclose. */
    info.dlpi_adds = seep_objects_epoch();
    info.dlpi_subs = info.dlpi_adds;
    return callback(&info, sizeof(info), data);
}
