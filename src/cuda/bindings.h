/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Where a loaded object keeps what its calls of others are bound to.
 *
 * Invariant: the caller holds the object open, and the loader is done with it.
 * What its dynamic section says is what the loader went by. A page that is
 * read-only is so again when the object is done.
 */
#ifndef SEEP_CUDA_BINDINGS_H
#define SEEP_CUDA_BINDINGS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/elf_image.h"

struct seep_cuda_bindings {
    struct seep_elf_image image;
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t counts[2];
    uintptr_t sealed_start; /* read-only since the loader was done */
    uintptr_t sealed_end;
    bool is_open; /* now it is not */
};

/**
 * What is a function that is defined in another object to be bound to?
 *
 * @param bound  what it is bound to; 0: not bound yet, at its first call
 * @return 0: leave it
 */
typedef uintptr_t seep_cuda_rebind(const char *name, uintptr_t bound);

enum seep_cuda_rebound {
    SEEP_CUDA_REBOUND_NONE,
    SEEP_CUDA_REBOUND_ALL,
    SEEP_CUDA_REBOUND_REFUSED, /* the system did not let us */
};

/** @return false: it is not known */
bool seep_cuda_bindings_of(const struct link_map *map,
                           struct seep_cuda_bindings *ret_bindings);

/** The @index-th library that it needs; NULL: it needs no more. */
const char *seep_cuda_bindings_needs(const struct seep_cuda_bindings *bindings,
                                     size_t index);

/**
 * Who defines @name among the objects that the one of @caller is bound to, us
 * left out? Without the loader: @caller is code on the stack, so it stays and
 * all that it is bound to.
 *
 * @return its address; 0, and ret_image untouched, if nobody is known to
 */
uintptr_t seep_cuda_bindings_definition(uintptr_t caller, const char *name,
                                        struct seep_elf_image *ret_image);

/** Ask about every function that the object calls, and bind it so. */
enum seep_cuda_rebound
seep_cuda_bindings_visit(struct seep_cuda_bindings *bindings,
                         seep_cuda_rebind *rebind);

#endif
