/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What we take of the process's memory: how much of it limits leave us, and
 * tables of our own: zeros, in a mapping that is made when a table is first
 * needed. In .bss they would be mapped with the library, before anybody can
 * ask what the process may have.
 *
 * Each begins with a head that says what it is, for who looks for the program's
 * own memory from outside, and is no neighbour's part: the kernel joins no
 * mapping to one that may have no huge pages.
 *
 * Invariant: a table that was published stays where it is. Who finds none does
 * without; after one refusal nobody asks again.
 */
#ifndef SEEP_BASE_OWN_H
#define SEEP_BASE_OWN_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SEEP_OWN_MAGIC "seep: its table" /* 16 bytes, with the last */

struct seep_own_head {
    char magic[16];
    uint64_t start; /* of the mapping, which is where the head is */
    uint64_t bytes; /* of the mapping */
    uint64_t unused[4];
};

static_assert(sizeof(struct seep_own_head) == 64,
              "tables begin with a line of the cache");

static inline bool seep_own_is_head(const void *bytes)
{
    return memcmp(bytes, SEEP_OWN_MAGIC, sizeof(SEEP_OWN_MAGIC)) == 0;
}

/** What the mapping of a table of @bytes takes. */
#define SEEP_OWN_TAKES(bytes) \
    ((sizeof(struct seep_own_head) + (size_t)(bytes) + 4095) & ~(size_t)4095)

typedef _Atomic(void *) seep_own_table;

/** @return NULL: there is none, or not yet */
static inline void *seep_own_get(const seep_own_table *table)
{
    /* Acquire: zeros, and the head; pairs with the release in
     * seep_own_make(). */
    return atomic_load_explicit(table, memory_order_acquire);
}

/** The same, made if there is none yet: @bytes of it, aligned to 64. @return
 * NULL: limits leave no room for it, or it was refused. */
void *seep_own_make(seep_own_table *table, size_t bytes);

/** The same of one that goes with the recording: it is looked at by those
 * inside of a hook alone. */
void *seep_own_make_guarded(seep_own_table *table, size_t bytes);

/** The same whatever the limits: without it the program would not go on. */
void *seep_own_make_needed(seep_own_table *table, size_t bytes);

/** Those that are guarded go, and nothing is made any more. Nobody is inside of
 * a hook. */
void seep_own_give_back(void);

/** What goes by that. */
uint64_t seep_own_guarded_bytes(void);

/** The process restricts itself: nothing is mapped any more. */
void seep_own_restrict(void);

/* Limits. The program knows nothing of what we take of them: that is a
 * sixteenth at the most, or nothing at all. */

#define SEEP_OWN_SHARE 16U

/* All tables of the recorder together, and those for Python besides: the
 * filter, the cache of call sites, what walks remember of each thread, stacks;
 * copies of Python's memory. The others come where there is room. */
#define SEEP_OWN_TABLES_BYTES (UINT64_C(19) << 19)
#define SEEP_OWN_PYTHON_BYTES (UINT64_C(2) << 19)

enum seep_own_limit {
    SEEP_OWN_NO_LIMIT,
    SEEP_OWN_ADDRESSES, /* RLIMIT_AS, ulimit -v */
    SEEP_OWN_DATA,      /* RLIMIT_DATA, ulimit -d: private memory */
    SEEP_OWN_COMMIT,    /* vm.overcommit_memory=2: what is left of it */
};

struct seep_own_limits {
    uint64_t address_bytes; /* UINT64_MAX: no limit */
    uint64_t data_bytes;
    uint64_t commit_bytes;
};

/** Of this process, now. Where nobody may ask there is none. */
struct seep_own_limits seep_own_limits_now(void);

/**
 * Which limit has no room for as much as this, besides all tables?
 *
 * @param address_bytes  of addresses
 * @param private_bytes  of private memory, which is part of them
 */
enum seep_own_limit seep_own_lacks(const struct seep_own_limits *limits,
                                   uint64_t address_bytes,
                                   uint64_t private_bytes);

/** How large a recording may be, and why there is none. */
struct seep_own_wish {
    uint64_t bytes;       /* that it would have without limits */
    uint64_t least_bytes; /* it is a quarter, as often as it takes; the same as
                             .bytes: that, or none */
    uint64_t table_bytes; /* of all tables that belong to it */
};

/** @return 0: none, for *ret_limit */
uint64_t seep_own_fit(const struct seep_own_limits *limits,
                      const struct seep_own_wish *wish,
                      enum seep_own_limit *ret_limit);

#endif
