/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pages of our own memory, copied by process_vm_readv or, where that is
 * refused, as they are after a system call has read from them.
 *
 * Invariant: a set of pages belongs to one thread at a time, by compare and
 * swap; who finds none goes without. No page of one stack is used for the next.
 */
#include "capture/python_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "base/syscall.h"

#define PAGE_BYTES 4096U
#define SETS 4U

/* Of SYS_process_vm_readv. */
enum { UNKNOWN, WORKS, REFUSED };

struct seep_python_pages {
    _Atomic uintptr_t owner; /* 0: nobody */
    long pid;
    uintptr_t addresses[SEEP_PYTHON_PAGES]; /* 0: none */
    uint8_t bytes[SEEP_PYTHON_PAGES][PAGE_BYTES];
};

static struct seep_python_pages sets[SETS];
static _Atomic int copying;

struct seep_python_pages *seep_python_pages_take(uintptr_t self)
{
    for (size_t i = 0; i < SETS; i++) {
        struct seep_python_pages *pages = &sets[i];
        uintptr_t owner =
            atomic_load_explicit(&pages->owner, memory_order_relaxed);

        /* Acquire: pairs with the release in seep_python_pages_give(). */
        if (owner == self ||
            (owner == 0 && atomic_compare_exchange_strong_explicit(
                               &pages->owner, &owner, self,
                               memory_order_acquire, memory_order_relaxed))) {
            memset(pages->addresses, 0, sizeof(pages->addresses));
            pages->pid = seep_syscall0(SYS_getpid);
            return pages;
        }
    }
    return NULL;
}

void seep_python_pages_give(struct seep_python_pages *pages)
{
    /* Release: pairs with the acquire in seep_python_pages_take(). */
    atomic_store_explicit(&pages->owner, 0, memory_order_release);
}

void seep_python_pages_after_fork(void)
{
    for (size_t i = 0; i < SETS; i++) {
        atomic_store_explicit(&sets[i].owner, 0, memory_order_relaxed);
    }
}

static bool copy_by_call(long pid, void *to, uintptr_t from, size_t bytes)
{
    struct iovec local = {to, bytes};
    struct iovec remote = {(void *)from, bytes};

    return seep_syscall6(SYS_process_vm_readv, pid, (long)&local, 1,
                         (long)&remote, 1, 0) == (long)bytes;
}

/* The kernel reads a signal mask there before it finds that it knows no such
 * operation. */
static bool is_readable(uintptr_t page)
{
    return seep_syscall4(SYS_rt_sigprocmask, -1, (long)page, 0, 8) == -EINVAL;
}

/* Garbage is read here, which AddressSanitizer takes for an error. */
static __attribute__((no_sanitize("address", "thread"))) bool
copy_by_hand(uint8_t *to, uintptr_t page)
{
    const volatile uint64_t *words = (const volatile uint64_t *)page;

    if (!is_readable(page)) {
        return false;
    }
    for (size_t i = 0; i < PAGE_BYTES / sizeof(words[0]); i++) {
        uint64_t word = words[i];

        memcpy(to + i * sizeof(word), &word, sizeof(word));
    }
    return true;
}

static bool copy(const struct seep_python_pages *pages, uint8_t *to,
                 uintptr_t page)
{
    return seep_python_pages_are_atomic(pages)
               ? copy_by_call(pages->pid, to, page, PAGE_BYTES)
               : copy_by_hand(to, page);
}

bool seep_python_pages_are_atomic(const struct seep_python_pages *pages)
{
    int known = atomic_load_explicit(&copying, memory_order_relaxed);

    if (seep_unlikely(known == UNKNOWN)) {
        uintptr_t here = (uintptr_t)&here;
        uintptr_t seen = 0;

        known =
            copy_by_call(pages->pid, &seen, here, sizeof(seen)) && seen == here
                ? WORKS
                : REFUSED;
        atomic_store_explicit(&copying, known, memory_order_relaxed);
    }
    return known == WORKS;
}

/* @return the page's copy, or NULL */
static const uint8_t *page_of(struct seep_python_memory *memory, uintptr_t page)
{
    struct seep_python_pages *pages = memory->pages;
    size_t slot =
        (page / PAGE_BYTES * UINT64_C(2654435761) >> 8) % SEEP_PYTHON_PAGES;

    if (pages->addresses[slot] == page) {
        return pages->bytes[slot];
    }
    pages->addresses[slot] = 0;
    if (memory->budget == 0) {
        memory->spent = true;
        return NULL;
    }
    memory->budget--;
    if (!copy(pages, pages->bytes[slot], page)) {
        return NULL;
    }
    pages->addresses[slot] = page;
    return pages->bytes[slot];
}

bool seep_python_read_pages(struct seep_python_memory *memory, void *to,
                            uintptr_t from, size_t bytes)
{
    uint8_t *at = to;

    while (bytes > 0) {
        uintptr_t offset = from % PAGE_BYTES;
        size_t part = PAGE_BYTES - offset < bytes ? PAGE_BYTES - offset : bytes;
        const uint8_t *page;

        if (from < PAGE_BYTES) {
            return false;
        }
        page = page_of(memory, from - offset);
        if (page == NULL) {
            return false;
        }
        memcpy(at, page + offset, part);
        at += part;
        from += part;
        bytes -= part;
    }
    return true;
}
