/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Reading of Python's memory: by plain loads where it cannot go away, else by
 * copies of whole pages, which fail where a load would fault.
 *
 * Invariant: with pages an address that is not there is an answer and no
 * fault, and no more than `budget` pages are copied for one stack. Without
 * pages the caller vouches for the address.
 */
#ifndef SEEP_CAPTURE_PYTHON_MEMORY_H
#define SEEP_CAPTURE_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#define SEEP_PYTHON_PAGES 128U

struct seep_python_pages;

struct seep_python_memory {
    struct seep_python_pages *pages; /* NULL: plain loads */
    uint32_t budget;                 /* pages that may still be copied */
    bool spent;                      /* the budget was not enough */
};

/**
 * Pages for a thread, of a few that all share.
 *
 * @param self  the thread; it gets back what it left behind when a hook of its
 *              own was abandoned
 * @return NULL if all are taken
 */
struct seep_python_pages *seep_python_pages_take(uintptr_t self);
void seep_python_pages_give(struct seep_python_pages *pages);

/** In the child of a fork: those of the other threads are free again. */
void seep_python_pages_after_fork(void);

/**
 * Is a page copied in one step with the look whether it is there? Where the
 * system call for that is refused (old seccomp profiles, some sandboxes) it is
 * two: enough for memory that only the calling thread could free.
 */
bool seep_python_pages_are_atomic(const struct seep_python_pages *pages);

/** Copy from pages. For seep_python_read() only. */
bool seep_python_read_pages(struct seep_python_memory *memory, void *to,
                            uintptr_t from, size_t bytes);

/** Could an object of Python lie there? */
static inline bool seep_python_is_plausible(uintptr_t address)
{
    return address >= UINT64_C(0x10000) && address < UINT64_C(1) << 56 &&
           address % 8 == 0;
}

/** @return false if it cannot be read: then @to may be partly written */
static inline __attribute__((no_sanitize("address"))) bool
seep_python_read(struct seep_python_memory *memory, void *to, uintptr_t from,
                 size_t bytes)
{
    if (seep_likely(memory->pages == NULL)) {
        memcpy(to, (const void *)from, bytes);
        return true;
    }
    return seep_python_read_pages(memory, to, from, bytes);
}

static inline bool seep_python_read_word(struct seep_python_memory *memory,
                                         uintptr_t from, uintptr_t *ret_word)
{
    return seep_python_read(memory, ret_word, from, sizeof(*ret_word));
}

static inline bool seep_python_read_int(struct seep_python_memory *memory,
                                        uintptr_t from, int32_t *ret_int)
{
    return seep_python_read(memory, ret_int, from, sizeof(*ret_int));
}

#endif
