/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pieces of our own memory, copied by process_vm_readv or, where that is
 * refused, as they are after a system call has read from them.
 *
 * The stacks of a thread have most of their frames in common, so what the one
 * before was read from is copied again, by one call, before it is asked for.
 *
 * Invariant: a set of pieces belongs to one thread at a time, by compare and
 * swap; who finds none goes without. No copy for one stack is used for the
 * next, only where it was taken from.
 */
#include <stdatomic.h>
#include <sys/uio.h>

#include "base/own.h"
#include "base/syscall.h"
#include "base/word.h"
#include "capture/native/bounds.h"
#include "capture/python/interpreter.h"

/* A code object, or six frames; a page is too much: 80 of them fill a cache. */
#define PIECE_BYTES 512U
#define FIRST_PAGE_BYTES 4096U /* where nothing lies */
#define SETS 4U
#define SORTED_MOST 64U
#define FRAMES_PAGE_BYTES 4096U

/* Of SYS_process_vm_readv. */
enum { UNKNOWN, WORKS, REFUSED };

struct seep_python_pages {
    _Atomic uintptr_t owner; /* 0: nobody */
    long pid;
    size_t last;                             /* the slot that was read last */
    uintptr_t addresses[SEEP_PYTHON_PIECES]; /* 0: none */
    bool asked_for[SEEP_PYTHON_PIECES];      /* for the stack at work */
    uintptr_t wanted[SEEP_PYTHON_PIECES];    /* by a copy under way */
    uint16_t slots[SEEP_PYTHON_PIECES];
    struct iovec from[SEEP_PYTHON_PIECES];
    struct iovec to[SEEP_PYTHON_PIECES];
    uint8_t bytes[SEEP_PYTHON_PIECES][PIECE_BYTES];
};

static seep_own_table sets; /* struct seep_python_pages[SETS] */
static _Atomic int copying;

/*
 * Where the copy of @piece is, or is to be. While there is room none takes
 * another's place: pieces that are read in turns, a frame after a frame, would
 * be copied each time, and the budget spent by where the loader put them.
 */
static size_t slot_of(const struct seep_python_pages *pages, uintptr_t piece)
{
    size_t home =
        (piece / PIECE_BYTES * UINT64_C(2654435761) >> 8) % SEEP_PYTHON_PIECES;

    for (size_t i = 0; i < SEEP_PYTHON_PIECES; i++) {
        size_t slot = (home + i) % SEEP_PYTHON_PIECES;

        if (pages->addresses[slot] == piece || pages->addresses[slot] == 0) {
            return slot;
        }
    }
    return home;
}

/* One of those to be copied, in the order of their addresses: those that lie
 * side by side are one to the kernel, which finds a mapping and a page for
 * each. Of many the order is not worth its time. */
static void add_wanted(struct seep_python_pages *pages, size_t count,
                       uintptr_t piece)
{
    size_t at = count;

    while (at > 0 && count < SORTED_MOST && pages->wanted[at - 1] > piece) {
        pages->wanted[at] = pages->wanted[at - 1];
        at--;
    }
    pages->wanted[at] = piece;
}

/* Copy pages->wanted. What is gone since ends the call; the rest is copied when
 * asked for. */
static void copy_wanted(struct seep_python_pages *pages, size_t count)
{
    size_t runs = 0;
    size_t copied;
    long bytes;

    for (size_t i = 0; i < count; i++) {
        size_t slot = slot_of(pages, pages->wanted[i]);

        pages->addresses[slot] = pages->wanted[i];
        pages->slots[i] = (uint16_t)slot;
        pages->to[i] = (struct iovec){pages->bytes[slot], PIECE_BYTES};
        if (i > 0 && pages->wanted[i] == pages->wanted[i - 1] + PIECE_BYTES) {
            pages->from[runs - 1].iov_len += PIECE_BYTES;
        } else {
            pages->from[runs++] =
                (struct iovec){(void *)pages->wanted[i], PIECE_BYTES};
        }
    }
    bytes = seep_syscall6(SYS_process_vm_readv, pages->pid, (long)pages->to,
                          (long)count, (long)pages->from, (long)runs, 0);
    copied = bytes > 0 ? (size_t)bytes / PIECE_BYTES : 0;
    for (size_t i = copied; i < count; i++) {
        pages->addresses[pages->slots[i]] = 0;
    }
}

/* What the stack before was read from. */
static void copy_again(struct seep_python_pages *pages)
{
    size_t count = 0;

    for (size_t i = 0; i < SEEP_PYTHON_PIECES; i++) {
        if (pages->addresses[i] != 0 && pages->asked_for[i]) {
            add_wanted(pages, count++, pages->addresses[i]);
        }
    }
    memset(pages->addresses, 0, sizeof(pages->addresses));
    memset(pages->asked_for, 0, sizeof(pages->asked_for));
    if (count != 0 && seep_word_load(&copying) == WORKS) {
        copy_wanted(pages, count);
    }
}

struct seep_python_pages *seep_python_pages_take(uintptr_t self)
{
    struct seep_python_pages *all =
        seep_own_make_guarded(&sets, SETS * sizeof(*all));

    for (size_t i = 0; all != NULL && i < SETS; i++) {
        /* Thread descriptors lie pages apart. */
        struct seep_python_pages *pages = &all[((self >> 12) + i) % SETS];
        uintptr_t owner = seep_word_load(&pages->owner);

        /* Acquire: pairs with the release in seep_python_pages_give(). */
        if (owner == self ||
            (owner == 0 && atomic_compare_exchange_strong_explicit(
                               &pages->owner, &owner, self,
                               memory_order_acquire, memory_order_relaxed))) {
            pages->pid = seep_syscall0(SYS_getpid);
            copy_again(pages);
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
    struct seep_python_pages *all = seep_own_get(&sets);

    for (size_t i = 0; all != NULL && i < SETS; i++) {
        seep_word_store(&all[i].owner, 0);
    }
}

static bool copy_by_call(long pid, void *to, uintptr_t from, size_t bytes)
{
    struct iovec local = {to, bytes};
    struct iovec remote = {(void *)from, bytes};

    return seep_syscall6(SYS_process_vm_readv, pid, (long)&local, 1,
                         (long)&remote, 1, 0) == (long)bytes;
}

/* Garbage is read here, which AddressSanitizer takes for an error. */
static __attribute__((no_sanitize("address", "thread"))) bool
copy_by_hand(uint8_t *to, uintptr_t piece)
{
    const volatile uint64_t *words = (const volatile uint64_t *)piece;

    if (!seep_page_is_readable(piece)) {
        return false;
    }
    for (size_t i = 0; i < PIECE_BYTES / sizeof(words[0]); i++) {
        uint64_t word = words[i];

        memcpy(to + i * sizeof(word), &word, sizeof(word));
    }
    return true;
}

static bool copy(const struct seep_python_pages *pages, uint8_t *to,
                 uintptr_t piece)
{
    return seep_python_pages_are_atomic(pages)
               ? copy_by_call(pages->pid, to, piece, PIECE_BYTES)
               : copy_by_hand(to, piece);
}

bool seep_python_pages_are_atomic(const struct seep_python_pages *pages)
{
    int known = seep_word_load(&copying);

    if (seep_unlikely(known == UNKNOWN)) {
        uintptr_t here = (uintptr_t)&here;
        uintptr_t seen = 0;

        known =
            copy_by_call(pages->pid, &seen, here, sizeof(seen)) && seen == here
                ? WORKS
                : REFUSED;
        seep_word_store(&copying, known);
    }
    return known == WORKS;
}

/* A frame's caller lies below it, mostly, and is asked for next: the pieces of
 * its page up to @piece, which are there together, or none is. What there is no
 * room for is left out. */
static const uint8_t *copy_down(struct seep_python_pages *pages,
                                uintptr_t piece)
{
    uintptr_t page = piece - piece % FRAMES_PAGE_BYTES;
    size_t count = 0;
    size_t slot;

    for (uintptr_t at = page; at <= piece; at += PIECE_BYTES) {
        slot = slot_of(pages, at);
        if (pages->addresses[slot] == 0) {
            pages->wanted[count++] = at;
        }
    }
    copy_wanted(pages, count);
    slot = slot_of(pages, piece);
    pages->asked_for[slot] = true;
    return pages->addresses[slot] == piece ? pages->bytes[slot] : NULL;
}

/* @return the piece's copy, or NULL */
static const uint8_t *piece_of(struct seep_python_memory *memory,
                               uintptr_t piece)
{
    struct seep_python_pages *pages = memory->pages;
    size_t slot = slot_of(pages, piece);

    pages->asked_for[slot] = true;
    if (pages->addresses[slot] == piece) {
        return pages->bytes[slot];
    }
    pages->addresses[slot] = 0;
    if (memory->budget == 0) {
        memory->spent = true;
        return NULL;
    }
    memory->budget--;
    if (memory->frames_only && seep_python_pages_are_atomic(pages)) {
        return copy_down(pages, piece);
    }
    if (!copy(pages, pages->bytes[slot], piece)) {
        return NULL;
    }
    pages->addresses[slot] = piece;
    return pages->bytes[slot];
}

bool seep_python_read_pages(struct seep_python_memory *memory, void *to,
                            uintptr_t from, size_t bytes)
{
    struct seep_python_pages *pages = memory->pages;
    uint8_t *at = to;

    /* Word after word of one frame. */
    if (seep_likely(
            pages->addresses[pages->last] == from - from % PIECE_BYTES &&
            bytes <= PIECE_BYTES - from % PIECE_BYTES &&
            pages->asked_for[pages->last] && from >= FIRST_PAGE_BYTES)) {
        memcpy(at, pages->bytes[pages->last] + from % PIECE_BYTES, bytes);
        return true;
    }
    while (bytes > 0) {
        uintptr_t offset = from % PIECE_BYTES;
        size_t part =
            PIECE_BYTES - offset < bytes ? PIECE_BYTES - offset : bytes;
        const uint8_t *piece;

        if (from < FIRST_PAGE_BYTES) {
            return false;
        }
        piece = piece_of(memory, from - offset);
        if (piece == NULL) {
            return false;
        }
        pages->last = (size_t)(piece - &pages->bytes[0][0]) / PIECE_BYTES;
        memcpy(at, piece + offset, part);
        at += part;
        from += part;
        bytes -= part;
    }
    return true;
}
