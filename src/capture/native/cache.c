/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rule cache that all threads share, and the unwind caches, one a thread.
 *
 * Invariant: whoever finds a slot of the rule cache BUSY leaves it alone, so
 * nobody waits; a thread that is gone while it wrote costs the table one slot.
 * Only the thread whose address is the owner touches the rest of an unwind
 * cache, and only in the outermost of its walks under way.
 */
#include "capture/native/cache.h"

#include <signal.h>
#include <string.h>

#include "base/syscall.h"
#include "capture/native/bounds.h"
#include "capture/native/elf.h"

/* The rule cache. */

#define EMPTY UINT64_C(0)
#define BUSY UINT64_C(1)

_Static_assert(SEEP_RULE_CACHE_SLOTS == 1U << 13,
               "seep_rule_cache_index() takes 13 bits");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "the table must be lock-free");

struct seep_rule_cache_slot seep_rule_cache_slots[SEEP_RULE_CACHE_SLOTS]
    __attribute__((aligned(64)));

/* Twice the number of wraps of the 16 bits that the table is emptied for, plus
 * one while that is being done. */
static _Atomic uint64_t wraps;

static void clear_keys(void)
{
    for (uint32_t i = 0; i < SEEP_RULE_CACHE_SLOTS; i++) {
        atomic_store_explicit(&seep_rule_cache_slots[i].key, EMPTY,
                              memory_order_relaxed);
    }
}

/* @return false: this walk goes without the table */
static SEEP_COLD bool empty(uint64_t seen, uint64_t wanted)
{
    /* Acquire: pairs with the release at the end of the emptying before. */
    if (seen % 2 != 0 || !atomic_compare_exchange_strong_explicit(
                             &wraps, &seen, seen + 1, memory_order_acquire,
                             memory_order_relaxed)) {
        return false;
    }
    clear_keys();
    /* Release: pairs with the acquire in seep_rule_cache_open(). */
    atomic_store_explicit(&wraps, wanted, memory_order_release);
    return true;
}

bool seep_rule_cache_open(uint64_t *ret_generation)
{
    uint64_t epoch = seep_objects_epoch();
    uint64_t wanted = epoch >> 17 << 1;
    /* Acquire: pairs with the release in empty(). */
    uint64_t seen = atomic_load_explicit(&wraps, memory_order_acquire);

    *ret_generation = epoch >> 1;
    if (epoch % 2 != 0) {
        return false;
    }
    /* Behind: another thread has seen a later epoch already. */
    return seep_likely(seen == wanted) ||
           (seen < wanted && empty(seen, wanted));
}

void seep_rule_cache_after_fork(void)
{
    uint64_t seen = atomic_load_explicit(&wraps, memory_order_relaxed);

    if (seen % 2 != 0) {
        clear_keys();
        atomic_store_explicit(&wraps, seep_objects_epoch() >> 17 << 1,
                              memory_order_relaxed);
    }
}

/* The slot of the pair to write: one of no use if there is one. */
static struct seep_rule_cache_slot *choose(uint64_t hash, uint64_t generation)
{
    uint32_t index = seep_rule_cache_index(hash);

    for (uint32_t i = 0; i < 2; i++) {
        struct seep_rule_cache_slot *slot = &seep_rule_cache_slots[index ^ i];
        uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);

        if (key != BUSY && (key & 0xffff) != (generation & 0xffff)) {
            return slot;
        }
        if (key == EMPTY) {
            return slot;
        }
    }
    return &seep_rule_cache_slots[index ^ (hash >> 50 & 1)];
}

void seep_rule_cache_put(uintptr_t pc, uint64_t generation, uint64_t rule)
{
    uint64_t hash = seep_rule_cache_hash(pc);
    uint64_t key = seep_rule_cache_key(pc, generation);
    struct seep_rule_cache_slot *slot = choose(hash, generation);
    uint64_t seen = atomic_load_explicit(&slot->key, memory_order_relaxed);

    /* Acquire: pairs with the release below of who wrote the slot before. */
    if (pc >> 48 != 0 || seen == BUSY ||
        !atomic_compare_exchange_strong_explicit(&slot->key, &seen, BUSY,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        return;
    }
    /* Release: pairs with the acquire of the rule in seep_rule_cache_read(). */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->rule,
                          (rule & SEEP_RULE_CACHE_RULE_MASK) |
                              seep_rule_cache_check(hash, key)
                                  << SEEP_RULE_CACHE_CHECK_SHIFT,
                          memory_order_relaxed);
    /* Release: pairs with the acquire of the key in seep_rule_cache_read(). */
    atomic_store_explicit(&slot->key, key, memory_order_release);
}

SEEP_COLD uint64_t seep_rule_cache_fill(uintptr_t pc, uint64_t generation,
                                        bool cached)
{
    uint64_t rule = seep_rule_compile(pc);

    /* Of code that no object holds nothing is kept: a dlopen, which bumps no
     * epoch, may put an object there. */
    if (cached && rule != seep_rule_of_cut(SEEP_CUT_NO_OBJECT)) {
        seep_rule_cache_put(pc, generation, rule);
    }
    return rule;
}

/* Unwind caches. */

/* A thread may have the cache at its own index, or one of those behind. */
#define PROBES 4U

/* In the frame, at an odd address. */
#define PLACE_LOST UINT32_C(0xfff9)

/* Instead of an offset: no stack reaches so far. */
#define FAR ((intptr_t)1 << 62)

_Static_assert(SEEP_CACHED_SETS *SEEP_CACHED_WAYS *
                       sizeof(struct seep_cached_rule) <=
                   UINT16_MAX,
               "seep_cached_rule.next counts bytes");

seep_own_table seep_unwind_caches __attribute__((visibility("hidden")));

static struct seep_unwind_cache *claim(uintptr_t thread, bool may_call)
{
    uint32_t index = seep_unwind_cache_index(thread);
    struct seep_unwind_cache *caches =
        may_call ? seep_own_make_guarded(&seep_unwind_caches,
                                         SEEP_UNWIND_CACHES * sizeof(*caches))
                 : seep_own_get(&seep_unwind_caches);

    for (uint32_t i = 0; caches != NULL && i < PROBES; i++) {
        struct seep_unwind_cache *cache =
            &caches[(index + i) % SEEP_UNWIND_CACHES];
        uintptr_t owner = seep_word_load(&cache->owner);

        if (owner == thread ||
            (owner == 0 && atomic_compare_exchange_strong_explicit(
                               &cache->owner, &owner, thread,
                               memory_order_relaxed, memory_order_relaxed))) {
            return cache;
        }
    }
    return NULL;
}

/* Whoever asks is in a handler that came in the middle of a walk; or that walk
 * was left by a jump: then its frame is gone, and its writing half done. */
static bool is_abandoned(struct seep_unwind_cache *cache, uintptr_t busy,
                         uintptr_t sp, const struct seep_stack_bounds *bounds,
                         bool may_call)
{
    stack_t now = {.ss_flags = SS_ONSTACK};

    if (busy > sp || busy < bounds->low || sp >= bounds->high || !may_call) {
        return false;
    }
    seep_syscall2(SYS_sigaltstack, 0, (long)&now);
    if ((now.ss_flags & SS_ONSTACK) != 0) {
        return false;
    }
    seep_unwind_cache_renew(cache, 0);
    return true;
}

SEEP_COLD struct seep_unwind_cache *
seep_unwind_cache_take(uintptr_t thread, uintptr_t sp,
                       const struct seep_stack_bounds *bounds, bool may_call)
{
    struct seep_unwind_cache *cache = claim(thread, may_call);
    uintptr_t busy;

    if (cache == NULL) {
        return NULL;
    }
    busy = seep_word_load(&cache->busy);
    if (busy != 0 && !is_abandoned(cache, busy, sp, bounds, may_call)) {
        return NULL;
    }
    seep_unwind_cache_enter(cache, sp);
    return cache;
}

SEEP_COLD void seep_unwind_cache_renew(struct seep_unwind_cache *cache,
                                       uint64_t generation)
{
    memset(cache->rules, 0, sizeof(cache->rules));
    cache->spare.back = 0;
    cache->last = &cache->frames[0];
    cache->now = &cache->frames[1];
    seep_unwind_cache_forget(cache);
    /* Generations begin at 0, as what is mapped does. */
    cache->generation = generation + 1;
}

void seep_unwind_cache_forget(struct seep_unwind_cache *cache)
{
    struct seep_cached_stack *last = cache->last;

    last->first = 0;
    last->end = 0;
    last->sps[0] = UINTPTR_MAX;
    cache->reusable = false;
}

/* The place of a register, at @lowest or above it; else it is lost. */
static uint32_t place_of(uint64_t rule, unsigned int shift, intptr_t lowest)
{
    intptr_t offset = seep_rule_place_offset(rule, shift);

    if (seep_rule_place(rule, shift) == SEEP_RULE_SAME) {
        return 0;
    }
    if (seep_rule_place(rule, shift) != SEEP_RULE_AT_CFA || offset < lowest ||
        offset > -(intptr_t)sizeof(uintptr_t)) {
        return PLACE_LOST;
    }
    return (uint16_t)offset;
}

static void take_apart(struct seep_cached_rule *entry, uint64_t rule)
{
    intptr_t offset = seep_rule_offset(rule);
    enum seep_rule_kind kind = seep_rule_kind(rule);
    intptr_t lowest = INT16_MIN;

    entry->kind = SEEP_CACHED_ODD;
    entry->rule = rule;
    entry->offset = FAR;
    entry->places = 0;
    if (seep_rule_place(rule, SEEP_RULE_RBP_SHIFT) == SEEP_RULE_AT_RBP ||
        seep_rule_place(rule, SEEP_RULE_RBX_SHIFT) == SEEP_RULE_AT_RBP) {
        return;
    }
    if (kind == SEEP_RULE_RSP && offset >= (intptr_t)sizeof(uintptr_t)) {
        entry->kind = SEEP_CACHED_RSP;
        entry->offset = offset;
        lowest = -offset;
    } else if (kind == SEEP_RULE_RBP && offset == SEEP_FRAMED_BYTES &&
               place_of(rule, SEEP_RULE_RBP_SHIFT, lowest) ==
                   (uint16_t)-SEEP_FRAMED_BYTES) {
        entry->kind = SEEP_CACHED_FRAMED;
        entry->places = SEEP_PLACES_FRAMED;
    } else {
        return;
    }
    entry->places |= place_of(rule, SEEP_RULE_RBP_SHIFT, lowest) |
                     place_of(rule, SEEP_RULE_RBX_SHIFT, lowest) << 16;
}

/* The rule of @back by the table of all threads. */
static SEEP_NOINLINE struct seep_cached_rule *
fill(struct seep_walk *walk, uintptr_t back, struct seep_cached_rule *set)
{
    struct seep_unwind_cache *cache = walk->cache;
    struct seep_cached_rule *entry = &set[cache->victim++ % SEEP_CACHED_WAYS];
    uint64_t generation;
    uint64_t rule = 0;
    bool cached =
        seep_rule_cache_open(&generation) && generation == walk->generation;

    if (cached) {
        rule = seep_rule_cache_get(back - 1, generation);
    }
    if (rule == 0) {
        rule = seep_rule_cache_fill(back - 1, generation, cached);
    }
    if (rule == seep_rule_of_cut(SEEP_CUT_NO_OBJECT)) {
        take_apart(&cache->spare, rule);
        return &cache->spare;
    }
    for (uint32_t i = 0; i < SEEP_CACHED_WAYS; i++) {
        entry = set[i].back == 0 ? &set[i] : entry;
    }
    take_apart(entry, rule);
    entry->back = back;
    entry->next[0] = 0;
    entry->next[1] = 0;
    return entry;
}

static struct seep_cached_rule *find(struct seep_walk *walk, uintptr_t back)
{
    struct seep_cached_rule *set = seep_unwind_cache_set(walk->cache, back);

    for (uint32_t i = 0; i < SEEP_CACHED_WAYS; i++) {
        if (set[i].back == back) {
            return &set[i];
        }
    }
    return fill(walk, back, set);
}

struct seep_cached_rule *seep_unwind_cache_rule(struct seep_walk *walk,
                                                struct seep_cached_rule *from,
                                                uintptr_t back)
{
    struct seep_unwind_cache *cache = walk->cache;
    struct seep_cached_rule *next = find(walk, back);

    if (next != &cache->spare) {
        from->next[1] = from->next[0];
        from->next[0] = (uint16_t)((char *)next - (char *)cache->rules);
    }
    return next;
}
