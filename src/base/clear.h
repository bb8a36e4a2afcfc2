/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Tables that are emptied.
 *
 * Invariant: each word is 0 afterwards, unless another thread has written to it
 * meanwhile; nothing beside the words is touched.
 */
#ifndef SEEP_BASE_CLEAR_H
#define SEEP_BASE_CLEAR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/syscall.h"
#include "base/word.h"

/** Zeros; a page of them that was only ever read costs no memory. */
static inline void seep_clear_words(_Atomic uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (seep_word_load(&words[i]) != 0) {
            seep_word_store(&words[i], 0);
        }
    }
}

/**
 * The same of a table of .bss, or of a private mapping of zeros: whole pages
 * are given back. To read one that is new, or a parent's, is a page fault, and
 * to write to it another.
 */
static inline void seep_clear_pages(_Atomic uint64_t *words, size_t count)
{
    const uintptr_t page = getauxval(AT_PAGESZ); /* 0: nobody knows */
    const uintptr_t start = (uintptr_t)words;
    const uintptr_t first = (start + page - 1) & ~(page - 1);
    const uintptr_t end = (start + count * sizeof(*words)) & ~(page - 1);

    if (first < end && seep_syscall3(SYS_madvise, (long)first,
                                     (long)(end - first), MADV_DONTNEED) == 0) {
        seep_clear_words(words, (first - start) / sizeof(*words));
        count -= (end - start) / sizeof(*words);
        words += (end - start) / sizeof(*words);
    }
    seep_clear_words(words, count);
}

#endif
