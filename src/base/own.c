/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits of memory, and the mappings of our tables: see base/own.h.
 *
 * Invariant: raw system calls, and no word of this file needs a relocation: the
 * first table may be made for an IFUNC resolver.
 */
#include "base/own.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/compiler.h"
#include "base/syscall.h"
#include "base/word.h"

/* The index of a recording takes a twentieth of it at the most. */
#define INDEX_SHARE 20U

#define GUARDED_MOST 8U

static _Atomic bool refused;
static _Atomic(seep_own_table *) guarded[GUARDED_MOST];
static _Atomic uint64_t held_bytes; /* by all tables */

void seep_own_restrict(void)
{
    seep_word_store(&refused, true);
}

/* Limits. */

static uint64_t limit_of(long which)
{
    struct rlimit limit = {0};

    return seep_syscall4(SYS_prlimit64, 0, which, 0, (long)&limit) < 0 ||
                   limit.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX
               : limit.rlim_cur;
}

struct seep_own_limits seep_own_limits_now(void)
{
    return (struct seep_own_limits){
        .address_bytes = limit_of(RLIMIT_AS),
        .data_bytes = limit_of(RLIMIT_DATA),
        .commit_bytes = UINT64_MAX,
    };
}

static bool is_above_share(uint64_t bytes, uint64_t limit_bytes)
{
    return limit_bytes != UINT64_MAX && bytes > limit_bytes / SEEP_OWN_SHARE;
}

enum seep_own_limit seep_own_lacks(const struct seep_own_limits *limits,
                                   uint64_t address_bytes,
                                   uint64_t private_bytes)
{
    uint64_t held = seep_word_load(&held_bytes);

    if (is_above_share(held + address_bytes, limits->address_bytes)) {
        return SEEP_OWN_ADDRESSES;
    }
    if (is_above_share(held + private_bytes, limits->data_bytes)) {
        return SEEP_OWN_DATA;
    }
    /* Tables that are there have been committed to already. */
    return is_above_share(private_bytes, limits->commit_bytes)
               ? SEEP_OWN_COMMIT
               : SEEP_OWN_NO_LIMIT;
}

/* With the tables that are not there yet, and an index. */
static enum seep_own_limit lacks_for(const struct seep_own_limits *limits,
                                     const struct seep_own_wish *wish,
                                     uint64_t bytes)
{
    uint64_t held = seep_word_load(&held_bytes);
    uint64_t tables = held < wish->table_bytes ? wish->table_bytes - held : 0;

    tables += bytes / INDEX_SHARE;
    return seep_own_lacks(limits, bytes + tables, tables);
}

uint64_t seep_own_fit(const struct seep_own_limits *limits,
                      const struct seep_own_wish *wish,
                      enum seep_own_limit *ret_limit)
{
    uint64_t bytes = wish->bytes;

    *ret_limit = lacks_for(limits, wish, bytes);
    while (*ret_limit != SEEP_OWN_NO_LIMIT && bytes / 4 >= wish->least_bytes) {
        bytes /= 4;
        *ret_limit = lacks_for(limits, wish, bytes);
    }
    return *ret_limit == SEEP_OWN_NO_LIMIT ? bytes : 0;
}

/* Tables. */

static struct seep_own_head *map(size_t bytes)
{
    static const char magic[] = SEEP_OWN_MAGIC;
    struct seep_own_head *head;
    long mapped;

    static_assert(sizeof(magic) == sizeof(head->magic), "the whole of it");
    mapped = seep_syscall_zeros(bytes);
    if (seep_syscall_failed(mapped)) {
        return NULL;
    }
    /* Else a table of which little is used would be whole huge pages. */
    seep_syscall3(SYS_madvise, mapped, (long)bytes, MADV_NOHUGEPAGE);
    head = (struct seep_own_head *)(uintptr_t)mapped;
    for (size_t i = 0; i < sizeof(magic); i++) {
        ((volatile char *)head->magic)[i] = magic[i];
    }
    head->start = (uint64_t)mapped;
    head->bytes = bytes;
    return head;
}

static void *make(seep_own_table *table, size_t bytes)
{
    struct seep_own_head *head = map(bytes);
    void *found = NULL;

    if (head == NULL) {
        seep_word_store(&refused, true);
        return NULL;
    }
    /* Release: the head; pairs with the acquires of who gets it. */
    if (!atomic_compare_exchange_strong_explicit(table, &found, head + 1,
                                                 memory_order_acq_rel,
                                                 memory_order_acquire)) {
        /* Not tested: another thread was first. */
        seep_syscall2(SYS_munmap, (long)head, (long)head->bytes);
        return found;
    }
    seep_word_fetch_add(&held_bytes, bytes);
    return head + 1;
}

SEEP_COLD void *seep_own_make(seep_own_table *table, size_t bytes)
{
    void *found = seep_own_get(table);
    struct seep_own_limits limits;

    if (found != NULL || seep_word_load(&refused)) {
        return found;
    }
    bytes = SEEP_OWN_TAKES(bytes);
    limits = seep_own_limits_now();
    if (seep_own_lacks(&limits, bytes, bytes) != SEEP_OWN_NO_LIMIT) {
        seep_word_store(&refused, true);
        return NULL;
    }
    return make(table, bytes);
}

/* Each table once: by who has made it. */
static void note_guarded(seep_own_table *table)
{
    for (size_t i = 0; i < GUARDED_MOST; i++) {
        seep_own_table *seen = NULL;

        if (seep_word_replace(&guarded[i], &seen, table) || seen == table) {
            return;
        }
    }
}

SEEP_COLD void *seep_own_make_guarded(seep_own_table *table, size_t bytes)
{
    void *found = seep_own_get(table);

    if (found == NULL) {
        found = seep_own_make(table, bytes);
        if (found != NULL) {
            note_guarded(table);
        }
    }
    return found;
}

uint64_t seep_own_guarded_bytes(void)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < GUARDED_MOST; i++) {
        seep_own_table *table = seep_word_load(&guarded[i]);
        struct seep_own_head *head = table == NULL ? NULL : seep_own_get(table);

        bytes += head == NULL ? 0 : head[-1].bytes;
    }
    return bytes;
}

void seep_own_give_back(void)
{
    seep_own_restrict();
    for (size_t i = 0; i < GUARDED_MOST; i++) {
        seep_own_table *table = seep_word_load(&guarded[i]);
        struct seep_own_head *head =
            table == NULL ? NULL : seep_word_exchange(table, NULL);

        if (head != NULL) {
            seep_word_fetch_add(&held_bytes, -head[-1].bytes);
            seep_syscall2(SYS_munmap, (long)(head - 1), (long)head[-1].bytes);
        }
    }
}

SEEP_COLD void *seep_own_make_needed(seep_own_table *table, size_t bytes)
{
    void *found = seep_own_get(table);

    return found != NULL ? found : make(table, SEEP_OWN_TAKES(bytes));
}
