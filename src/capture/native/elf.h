/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which loaded object an address belongs to, and what that object says of
 * itself: its segments, its build-id, its symbols. Asked from inside a hook.
 *
 * By _dl_find_object where the loader has it (glibc 2.35, found by dlsym at
 * start, lock-free), else from a list taken at start and after every dlclose.
 * Never takes the loader's lock after seep_objects_init().
 *
 * Invariant: what a caller gets is valid while the object is loaded; code that
 * is on the calling thread's stack cannot be unloaded by a correct program.
 * What is kept longer is tied to seep_objects_epoch(). Nothing is read but the
 * first page of an object, what the program headers there say is loaded, and
 * inside [start, end); what does not add up is answered as "not there".
 */
#ifndef SEEP_CAPTURE_NATIVE_ELF_H
#define SEEP_CAPTURE_NATIVE_ELF_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object. */

/** A loaded object, before anything is read from it. */
struct seep_elf_image {
    uintptr_t start; /* first mapped address */
    uintptr_t end;   /* first address behind it */
    uintptr_t bias;  /* load address: address - bias = file address */
    const ElfW(Phdr) * headers; /* NULL: none that can be trusted */
    size_t header_count;
    const char *path;         /* "" for the program: see /proc/self/exe */
    const void *eh_frame_hdr; /* NULL: none */
};

/** Find the program headers behind the ELF header at image->start. */
void seep_elf_headers(struct seep_elf_image *image);

/** The loaded segment around @address. @return false if there is none */
bool seep_elf_segment(const struct seep_elf_image *image, uintptr_t address,
                      uintptr_t *ret_low, uintptr_t *ret_high);

/** Does @address lie in a segment that may be executed? */
bool seep_elf_is_code(const struct seep_elf_image *image, uintptr_t address);

/** The GNU build-id in the notes. @return its bytes, or NULL */
const uint8_t *seep_elf_build_id(const struct seep_elf_image *image,
                                 size_t *ret_bytes);

/**
 * What the dynamic section of one object names; all 0 of one that defines
 * nothing.
 */
struct seep_elf_symbols {
    /* NULL: nothing is checked, as the loader has used it all itself */
    const struct seep_elf_image *image;
    uintptr_t bias;
    uintptr_t symbols;
    uintptr_t strings;
    size_t strings_bytes;
    uintptr_t gnu_hash;       /* 0: none */
    uintptr_t hash;           /* 0: none */
    uintptr_t relocations[2]; /* DT_RELA, DT_JMPREL; not checked; 0: none */
    uint32_t relocation_counts[2];
    /* What a resolver gives (STT_GNU_IFUNC) is found as well, by its address:
     * that is none to call. */
    bool with_resolvers;
};

/** Find the tables of @image, which must outlive them. */
bool seep_elf_symbols_open(const struct seep_elf_image *image,
                           struct seep_elf_symbols *ret_symbols);

/** The same of an object that the loader has listed, and without a call of any
 * other library: a sanitizer's may not be called yet. */
struct seep_elf_symbols seep_elf_symbols_of(const struct link_map *map);

/** The same of the C library. @return false if there is none of that name */
bool seep_elf_symbols_of_libc(struct seep_elf_symbols *ret_symbols);

/**
 * A function or an object that the image itself defines.
 *
 * @param ret_bytes  its size, if it is found; may be NULL
 * @return its address; 0 if the image defines no such name
 */
uintptr_t seep_elf_symbols_find(const struct seep_elf_symbols *symbols,
                                const char *name, size_t *ret_bytes);

/**
 * Does an object other than ours define @name? To be asked before dlsym(),
 * which leaves a message on the program's heap where it finds nothing. While
 * the process starts: no object may come or go meanwhile.
 */
bool seep_elf_is_defined(const char *name);

/** As above, of one name only. */
uintptr_t seep_elf_definition(const struct seep_elf_image *image,
                              const char *name);

/* The object of an address. */

/** Take the first list; from the constructor only. */
void seep_objects_init(void);

/** In the child of a fork: a dlclose that was under way elsewhere is gone. */
void seep_objects_after_fork(void);

/** Go without _dl_find_object, as on glibc before 2.35. For tests. */
void seep_objects_use_snapshot(void);

/** The object of @address, its program headers included. The caller knows that
 * it stays: the address is one of the calling thread's code. */
bool seep_objects_find(uintptr_t address, struct seep_elf_image *ret_image);

/**
 * As above, and nothing of the object itself is read: of any address, also one
 * whose object may go at this very moment.
 *
 * @param ret_image  has no program headers, but of the program itself
 */
bool seep_objects_locate(uintptr_t address, struct seep_elf_image *ret_image);

/* Objects that go. */

/** Generation in the upper 48 bits, dlcloses under way in the lower 16. */
extern _Atomic uint64_t seep_objects_unloads
    __attribute__((visibility("hidden")));

#define SEEP_UNLOADS_ACTIVE UINT64_C(0xffff)
#define SEEP_UNLOADS_GENERATION (SEEP_UNLOADS_ACTIVE + 1)

/** Bumped before and after every dlclose: odd while one is under way. */
static inline uint64_t seep_objects_epoch(void)
{
    /* Acquire: pairs with the release in seep_objects_unload_end(), so that
     * what is found after it is found in the objects that are left. */
    uint64_t state =
        atomic_load_explicit(&seep_objects_unloads, memory_order_acquire);

    return (state / SEEP_UNLOADS_GENERATION) << 1 |
           ((state & SEEP_UNLOADS_ACTIVE) != 0);
}

/** Around the real dlclose, from its hook. */
void seep_objects_unload_begin(void);
void seep_objects_unload_end(void);

/* The loader's list, for libunwind. */

/**
 * From now on seep_objects_iterate() answers this thread with the one object
 * that holds @pc, which is on its stack; 0: serve no longer.
 */
void seep_objects_serve(uintptr_t pc);

/** True while this thread's capture must be served by the call below. */
bool seep_objects_serves_this_thread(void);

/** What dl_iterate_phdr answers meanwhile, without the loader's lock. */
int seep_objects_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *),
                         void *data);

#endif
