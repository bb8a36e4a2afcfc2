/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The walk, rule by rule from the hook's caller to the thread's first frame,
 * and the choice between the ways to walk.
 *
 * Invariant: a capture answers at least the hook's caller, whatever fails. Each
 * frame lies above the one before it, and every word that is read between that
 * frame's stack pointer and `high`. On a stack that is not the thread's own
 * (coroutine, alternate signal stack) `high` is the end of the last page that
 * was proved readable.
 */
#include "capture/native/unwind.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "base/word.h"
#include "capture/native/bounds.h"
#include "capture/native/cache.h"
#include "capture/native/elf.h"
#include "capture/native/rule.h"
#include "capture/native/walk.h"

/* The trampoline that a handler returns to is never called: its address as it
 * is. */
static inline void mark_signal(struct seep_walk *walk, uint64_t rule)
{
    if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_SIGNAL)) {
        walk->pcs[walk->count - 1]++;
        walk->through_signal = true;
    }
}

/* Without an unwind cache: each rule from the one of all threads. */
static enum seep_cut walk_plainly(struct seep_walk *walk)
{
    enum seep_cut cut = SEEP_CUT_NONE;

    while (cut == SEEP_CUT_NONE && walk->pc != UINTPTR_MAX) {
        uint64_t rule = 0;

        if (walk->count == walk->capacity) {
            return SEEP_CUT_DEPTH;
        }
        if (seep_likely(walk->cached)) {
            rule = seep_rule_cache_get(walk->pc, walk->generation);
        }
        if (seep_unlikely(rule == 0)) {
            rule =
                seep_rule_cache_fill(walk->pc, walk->generation, walk->cached);
        }
        if (walk->sps != NULL) {
            walk->sps[walk->count] = walk->sp;
        }
        walk->pcs[walk->count++] = walk->pc;
        if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_END)) {
            return SEEP_CUT_NONE;
        }
        mark_signal(walk, rule);
        cut = seep_walk_step(walk, rule);
    }
    return cut;
}

/* The rest of a step to which no short cut leads. */
static SEEP_READS_THE_STACK SEEP_NOINLINE enum seep_cut
step_oddly(struct seep_walk *walk, uint64_t rule)
{
    struct seep_unwind_cache *cache = walk->cache;
    size_t frame = walk->count - 1;
    uintptr_t sp = walk->sp;
    enum seep_cut cut;

    for (unsigned int i = 0; i < SEEP_WALK_REGISTERS; i++) {
        cache->before[i] = seep_reuse_settle(walk, i, frame);
    }
    mark_signal(walk, rule);
    cut = seep_walk_step(walk, rule);
    if (cut != SEEP_CUT_NONE) {
        return cut;
    }
    walk->known[SEEP_WALK_RBP] = walk->count;
    walk->known[SEEP_WALK_RBX] = walk->count;
    /* Only what lies right above its return address can be verified. */
    if (walk->barrier != walk->count &&
        (walk->sp <= sp || walk->sp > walk->high ||
         *(const uintptr_t *)(walk->sp - sizeof(uintptr_t)) != walk->pc + 1)) {
        seep_walk_bar(walk);
    }
    return SEEP_CUT_NONE;
}

/* Where a walk stands, in registers. */
struct stand {
    uintptr_t back; /* pc + 1 */
    uintptr_t sp;
    const uintptr_t *old; /* where the last stack may be joined next */
    uintptr_t next;       /* what lies there */
    uintptr_t high;       /* 0: no short cuts */
    size_t count;
    bool framed; /* one was FRAMED behind another */
};

static inline void lay_down(struct seep_walk *walk, const struct stand *stand)
{
    walk->pc = stand->back - 1;
    walk->sp = stand->sp;
    walk->count = stand->count;
    walk->cache->now->framed = stand->framed;
}

static inline void take_up(const struct seep_walk *walk, struct stand *stand)
{
    stand->back = walk->pc + 1;
    stand->sp = walk->sp;
    stand->count = walk->count;
    stand->high = walk->sp % sizeof(uintptr_t) == 0 ? walk->high : 0;
}

/* Where a walk may first join the last stack, which ends at its `high`; not
 * where it begins above all of its frames. */
static inline const uintptr_t *first_joint(struct seep_walk *walk)
{
    const struct seep_cached_stack *last = walk->cache->last;
    size_t end = last->end;

    walk->cache->joint.at = SEEP_CACHED_FRAMES;
    return &last->sps[last->high == walk->high && end != 0 &&
                              last->sps[end - 1] >= walk->sp
                          ? last->first
                          : end];
}

/* Is the frame that the walk has come to one of the last stack? Then go on at
 * its end. */
static inline bool join(struct seep_walk *walk, struct stand *stand)
{
    const struct seep_cached_stack *last = walk->cache->last;
    const uintptr_t *old = stand->old;
    bool joined = false;

    while (*old < stand->sp) {
        old++;
    }
    if (*old == stand->sp) {
        if (last->pcs[old - last->sps] == stand->back - 1) {
            lay_down(walk, stand);
            joined = seep_reuse_join(walk, &old);
        } else {
            old++;
        }
    }
    stand->old = old;
    stand->next = *old;
    if (joined) {
        take_up(walk, stand);
    }
    return joined;
}

/* To the caller of a frame that is FRAMED, as is the one before, or that is the
 * first. */
static inline SEEP_READS_THE_STACK bool
step_framed(const struct seep_walk *walk, struct stand *stand,
            const struct seep_cached_rule *entry, uint32_t before)
{
    uintptr_t cfa = SEEP_FRAMED_BYTES;

    if (seep_likely((entry->places & before & SEEP_PLACES_FRAMED) != 0)) {
        cfa += *(const uintptr_t *)(stand->sp - SEEP_FRAMED_BYTES);
    } else if (entry->kind == SEEP_CACHED_FRAMED && stand->count == 1) {
        cfa += walk->kept[SEEP_WALK_RBP];
    } else {
        return false;
    }
    /* Also where the sum has overflown. */
    if (seep_unlikely(cfa < stand->sp + SEEP_FRAMED_BYTES ||
                      cfa > stand->high || cfa % sizeof(uintptr_t) != 0)) {
        return false;
    }
    stand->back = ((const uintptr_t *)cfa)[-1];
    stand->sp = cfa;
    stand->framed = true;
    return true;
}

/* To the caller of a frame that is @hot's. */
static inline SEEP_READS_THE_STACK bool
step(const struct seep_walk *walk, struct stand *stand,
     const struct seep_cached_rule *entry, uint32_t before)
{
    uintptr_t cfa = stand->sp + (uintptr_t)entry->offset;

    if (seep_likely(entry->kind == SEEP_CACHED_RSP)) {
        if (seep_unlikely(cfa > stand->high)) {
            return false;
        }
        stand->back = ((const uintptr_t *)cfa)[-1];
        stand->sp = cfa;
        return true;
    }
    return step_framed(walk, stand, entry, before);
}

/* The step that has no short cut. @return false: the walk is over */
static SEEP_NOINLINE bool step_aside(struct seep_walk *walk,
                                     const struct seep_cached_rule *entry,
                                     enum seep_cut *ret_cut)
{
    walk->cache->ended = seep_rule_kind(entry->rule) == SEEP_RULE_END;
    if (!walk->cache->ended) {
        *ret_cut = step_oddly(walk, entry->rule);
    }
    return !walk->cache->ended && *ret_cut == SEEP_CUT_NONE;
}

/* One of the callers that this code had before: its rule need not wait for the
 * return address. */
static inline struct seep_cached_rule *
next_rule(struct seep_walk *walk, struct seep_unwind_cache *cache,
          struct seep_cached_rule *from, uintptr_t back)
{
    struct seep_cached_rule *entry = seep_unwind_cache_next(cache, from, 0);

    if (seep_unlikely(entry->back != back)) {
        entry = seep_unwind_cache_next(cache, from, 1);
        if (entry->back != back) {
            entry = seep_unwind_cache_rule(walk, from, back);
        }
    }
    return entry;
}

static enum seep_cut walk_on(struct seep_walk *walk)
{
    struct seep_unwind_cache *cache = walk->cache;
    struct seep_cached_stack *now = cache->now;
    struct seep_cached_rule *from = &cache->start;
    enum seep_cut cut = SEEP_CUT_NONE;
    size_t capacity = walk->capacity;
    uint32_t before = 0; /* the places of the frame before */
    uintptr_t *pcs = walk->pcs;
    uint32_t *places = &now->places[SEEP_CACHED_BEFORE];
    uintptr_t *sps = &now->sps[SEEP_CACHED_BEFORE];
    struct stand stand = {.framed = false};

    take_up(walk, &stand);
    stand.old = first_joint(walk);
    stand.next = *stand.old;
    places[-1] = 0;
    while (seep_likely(stand.back != 0)) {
        struct seep_cached_rule *entry;

        if (seep_unlikely(stand.count == capacity)) {
            cut = SEEP_CUT_DEPTH;
            break;
        }
        if (seep_unlikely(stand.sp >= stand.next) && join(walk, &stand)) {
            from = &cache->resumed;
            if (stand.count != cache->joint.count) {
                /* What saved rbp there is in the last stack. */
                places[stand.count - 1] = 0;
                before = 0;
            }
            continue;
        }
        entry = next_rule(walk, cache, from, stand.back);
        pcs[stand.count] = stand.back - 1;
        sps[stand.count] = stand.sp;
        places[stand.count] = entry->places;
        stand.count++;
        if (seep_unlikely(!step(walk, &stand, entry, before))) {
            uintptr_t high = walk->high;

            lay_down(walk, &stand);
            if (!step_aside(walk, entry, &cut)) {
                return cut;
            }
            take_up(walk, &stand);
            if (high != walk->high && cache->joint.at == SEEP_CACHED_FRAMES) {
                stand.old = first_joint(walk);
                stand.next = *stand.old;
            }
            /* It may be FRAMED and have lost rbp all the same. */
            if (walk->at[SEEP_WALK_RBP] != stand.sp - SEEP_FRAMED_BYTES) {
                places[stand.count - 1] &= ~SEEP_PLACES_FRAMED;
            }
        }
        before = places[stand.count - 1];
        from = entry;
    }
    lay_down(walk, &stand);
    return cut;
}

static void begin(struct seep_walk *walk,
                  const struct seep_capture_start *start,
                  const struct seep_stack_bounds *bounds, uintptr_t *pcs,
                  size_t capacity)
{
    walk->pc = start->pc - 1;
    walk->sp = start->sp;
    walk->at[SEEP_WALK_RBP] = SEEP_WALK_KEPT;
    walk->at[SEEP_WALK_RBX] = SEEP_WALK_LOST;
    walk->kept[SEEP_WALK_RBP] = start->fp;
    walk->bounds = bounds;
    walk->pcs = pcs;
    walk->sps = start->sps;
    walk->count = 0;
    walk->capacity = capacity;
    walk->through_signal = false;
    walk->interrupted = SIZE_MAX;
    walk->high = seep_walk_is_own(walk, walk->sp)
                     ? bounds->high
                     : seep_stack_bounds_page_end(walk->sp);
}

static size_t end(const struct seep_walk *walk, enum seep_cut cut,
                  struct seep_capture_end *ret_end)
{
    ret_end->cut = cut;
    ret_end->through_signal = walk->through_signal;
    return walk->count;
}

/* Those of the frames that the walk found by itself. */
static void copy_sps(const struct seep_walk *walk, uintptr_t *sps)
{
    const struct seep_joint *joint = &walk->cache->joint;
    size_t to = walk->count;

    if (joint->at != SEEP_CACHED_FRAMES) {
        to = joint->count + walk->cache->last->end - joint->at -
             !walk->cache->last->ended;
        for (size_t i = to; i < walk->count; i++) {
            sps[i] = walk->sps[i];
        }
        to = joint->count;
    }
    memcpy(sps, walk->sps, to * sizeof(uintptr_t));
}

static SEEP_NOINLINE size_t
without_cache(const struct seep_capture_start *start,
              const struct seep_stack_bounds *bounds, uintptr_t *pcs,
              size_t capacity, struct seep_capture_end *ret_end)
{
    struct seep_walk walk = {.cache = NULL};

    begin(&walk, start, bounds, pcs, capacity);
    walk.cached = seep_rule_cache_open(&walk.generation);
    return end(&walk, walk_plainly(&walk), ret_end);
}

size_t seep_unwind_walk(const struct seep_capture_start *start,
                        const struct seep_stack_bounds *bounds,
                        struct seep_unwind_cache *cache, uintptr_t *pcs,
                        size_t capacity, struct seep_capture_end *ret_end)
{
    struct seep_walk *walk;
    uint64_t epoch = seep_objects_epoch();
    enum seep_cut cut;

    if (seep_unlikely(cache == NULL || epoch % 2 != 0)) {
        return without_cache(start, bounds, pcs, capacity, ret_end);
    }
    walk = &cache->walk;
    walk->generation = epoch / 2;
    begin(walk, start, bounds, pcs, capacity);
    walk->cache = cache;
    walk->known[SEEP_WALK_RBP] = 0;
    walk->known[SEEP_WALK_RBX] = 0;
    walk->barrier = 0;
    if (seep_unlikely(cache->generation != walk->generation + 1)) {
        seep_unwind_cache_renew(cache, walk->generation);
    }
    walk->wanted_sps = start->sps;
    walk->sps = &cache->now->sps[SEEP_CACHED_BEFORE];
    cache->now->note_count = 0;
    cache->ended = false;
    cut = walk_on(walk);
    if (start->sps != NULL) {
        copy_sps(walk, start->sps);
    }
    cache->reusable = false;
    seep_reuse_keep(walk);
    return end(walk, cut, ret_end);
}

/* Is it worth a try, after a walk that ended so? */
static inline bool registers_may_help(enum seep_cut cut)
{
    return cut == SEEP_CUT_REGISTER || cut == SEEP_CUT_EXPRESSION;
}

/* With a cache that has been entered, or without one. */
static SEEP_NOINLINE size_t walk_anew(const struct seep_capture_start *start,
                                      const struct seep_stack_bounds *bounds,
                                      struct seep_unwind_cache *cache,
                                      uintptr_t *pcs, size_t capacity,
                                      struct seep_capture_end *ret_end)
{
    size_t count =
        seep_unwind_walk(start, bounds, cache, pcs, capacity, ret_end);

    if (seep_likely(cache != NULL)) {
        seep_unwind_cache_leave(cache);
    }
    if (seep_unlikely(registers_may_help(ret_end->cut))) {
        count =
            seep_unwind_registers(start, bounds, pcs, count, capacity, ret_end);
    }
    return count;
}

size_t seep_unwind_capture(const struct seep_capture_start *start,
                           const struct seep_stack_bounds *bounds,
                           struct seep_unwind_cache *cache, uintptr_t *pcs,
                           size_t capacity, struct seep_capture_end *ret_end)
{
    size_t count;

    if (seep_likely(cache != NULL && cache->reusable)) {
        count = seep_reuse_walk(start, bounds, cache, pcs, capacity);
        if (seep_likely(count != 0)) {
            seep_unwind_cache_leave(cache);
            *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_NONE};
            return count;
        }
    }
    return walk_anew(start, bounds, cache, pcs, capacity, ret_end);
}

/* No system calls from now on. */
static _Atomic bool restricted;

/* As below, where it is not as simple. */
static SEEP_COLD size_t prepare(const struct seep_capture_start *start,
                                struct seep_stack_bounds *bounds,
                                uintptr_t *pcs, size_t capacity,
                                struct seep_capture_end *ret_end)
{
    bool may_call = !seep_word_load(&restricted);
    struct seep_unwind_cache *cache = NULL;

    if (bounds->high == 0) {
        seep_stack_bounds_find(bounds, start->sp, may_call);
    }
#if defined(__x86_64__)
    cache = seep_unwind_cache_take((uintptr_t)&seep_thread, start->sp, bounds,
                                   may_call);
#endif
    return walk_anew(start, bounds, cache, pcs, capacity, ret_end);
}

static size_t capture_by_rules(const struct seep_capture_start *start,
                               struct seep_stack_bounds *bounds, uintptr_t *pcs,
                               size_t capacity,
                               struct seep_capture_end *ret_end)
{
#if defined(__x86_64__)
    struct seep_unwind_cache *cache =
        seep_unwind_cache_of((uintptr_t)&seep_thread);

    if (seep_likely(cache != NULL && bounds->high != 0)) {
        seep_unwind_cache_enter(cache, start->sp);
        return seep_unwind_capture(start, bounds, cache, pcs, capacity,
                                   ret_end);
    }
#endif
    return prepare(start, bounds, pcs, capacity, ret_end);
}

/* The backends. */

enum backend { BACKEND_NONE, BACKEND_EH_FRAME, BACKEND_LIBUNWIND };

static _Atomic int backend;

int seep_native_init(enum seep_unwinder unwinder)
{
    enum backend chosen = BACKEND_NONE;

    if (unwinder == SEEP_UNWINDER_LIBUNWIND) {
        if (seep_libunwind_init() == 0) {
            chosen = BACKEND_LIBUNWIND;
        }
    } else {
        chosen = BACKEND_EH_FRAME;
    }
    /* Release: pairs with the acquire in seep_native_capture(). */
    atomic_store_explicit(&backend, chosen, memory_order_release);
    return chosen != BACKEND_NONE ? 0 : -ENOTSUP;
}

static size_t one_frame(const struct seep_capture_start *start, uintptr_t *pcs)
{
    pcs[0] = start->pc - 1;
    if (start->sps != NULL) {
        start->sps[0] = start->sp;
    }
    return 1;
}

static SEEP_NOINLINE size_t capture_otherwise(
    const struct seep_capture_start *start, int chosen, uintptr_t *pcs,
    size_t capacity, struct seep_capture_end *ret_end)
{
    size_t count = 0;

    *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_DISABLED};
    if (chosen == BACKEND_LIBUNWIND) {
        count = seep_libunwind_walk(start, pcs, capacity, ret_end);
    }
    return count != 0 ? count : one_frame(start, pcs);
}

size_t seep_native_capture(const struct seep_capture_start *start,
                           struct seep_stack_bounds *bounds, uintptr_t *pcs,
                           size_t capacity, struct seep_capture_end *ret_end)
{
    /* Acquire: pairs with the release in seep_native_init(). */
    int chosen = atomic_load_explicit(&backend, memory_order_acquire);

    if (capacity > SEEP_STACK_FRAMES_MAX) {
        capacity = SEEP_STACK_FRAMES_MAX;
    }
    if (seep_unlikely(capacity == 0)) {
        *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_DEPTH};
        return 0;
    }
    if (seep_likely(chosen == BACKEND_EH_FRAME)) {
        return capture_by_rules(start, bounds, pcs, capacity, ret_end);
    }
    return capture_otherwise(start, chosen, pcs, capacity, ret_end);
}

void seep_native_after_fork(void)
{
    seep_rule_cache_after_fork();
    seep_objects_after_fork();
    seep_tables_after_fork();
}

void seep_native_settle(void)
{
    seep_tables_give_back();
}

void seep_native_restrict(void)
{
    seep_word_store(&restricted, true);
    seep_stack_bounds_restrict();
    seep_tables_restrict();
}
