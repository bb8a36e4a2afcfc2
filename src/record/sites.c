/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a stack to its site: the index of the tables, the depot of stacks, the
 * sites, and the cache before them.
 *
 * An entry is filled and published by the one thread that was given it; who
 * comes at the same time with the same key gets the same entry.
 */
#include "record/sites.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/clear.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/own.h"
#include "base/thread.h"
#include "base/word.h"
#include "record/sampler.h"

/*
 * The index: key -> entry, in private memory.
 *
 * A slot is one word, so that it is never read half written: 40 bits of the key
 * above the entry's index, 0 is empty. Half of the slots are used at the most.
 */

#define INDEX_BITS 24U
#define INDEX_MASK ((UINT64_C(1) << INDEX_BITS) - 1)
#define PROBE_LIMIT 512U

static struct index {
    _Atomic uint64_t *slots;
    uint32_t mask;
    _Atomic uint32_t used;  /* entries that were given, with entry 0 */
    _Atomic uint32_t spare; /* one that was given and not needed; 0: none */
} indexes[SEEP_INDEX_COUNT];

static const enum seep_section sections[SEEP_INDEX_COUNT] = {
    [SEEP_INDEX_STACKS] = SEEP_SECTION_STACKS,
    [SEEP_INDEX_SITES] = SEEP_SECTION_SITES,
    [SEEP_INDEX_CODES] = SEEP_SECTION_CODES,
};

static uint32_t slots_for(const struct seep_rec_header *header,
                          enum seep_index_table table)
{
    uint32_t entries = header->sections[sections[table]].entry_count;
    uint32_t slots = 2;

    /* Of which format/layout.c makes a million at the most. */
    while (slots / 2 < entries) {
        slots *= 2;
    }
    return slots;
}

uint64_t seep_index_bytes(const struct seep_rec_header *header)
{
    uint64_t slots = 0;

    for (unsigned i = 0; i < SEEP_INDEX_COUNT; i++) {
        slots += slots_for(header, (enum seep_index_table)i);
    }
    return slots * sizeof(_Atomic uint64_t);
}

void seep_index_start(const struct seep_view *view, void *memory)
{
    _Atomic uint64_t *slots = memory;

    for (unsigned i = 0; i < SEEP_INDEX_COUNT; i++) {
        uint32_t count = memory != NULL
                             ? slots_for(view->header, (enum seep_index_table)i)
                             : 0;

        indexes[i].slots = slots;
        indexes[i].mask = count - 1;
        seep_word_store(&indexes[i].used, 1);
        seep_word_store(&indexes[i].spare, 0);
        slots += count;
    }
}

/* All of these entries begin with their key, or have it behind a lock. */
static _Atomic uint64_t *key_of(const struct seep_view *view,
                                enum seep_index_table table, uint32_t entry)
{
    switch (table) {
    case SEEP_INDEX_STACKS:
        return &view->stacks[entry].key;
    case SEEP_INDEX_SITES:
        return &view->sites[entry].key;
    default:
        return &view->codes[entry].key;
    }
}

/* An entry that nobody has, in a page that may be touched. */
static enum seep_index_answer take_entry(const struct seep_view *view,
                                         enum seep_index_table table,
                                         uint32_t *ret_entry)
{
    struct index *index = &indexes[table];
    uint32_t capacity = view->header->sections[sections[table]].entry_count;
    uint32_t entry = seep_word_exchange(&index->spare, 0);

    if (entry == 0) {
        entry = seep_word_load(&index->used);
        do {
            if (entry >= capacity) {
                return SEEP_INDEX_FULL;
            }
            if (!seep_view_reserve_entry(view, sections[table], entry)) {
                return SEEP_INDEX_NO_ROOM;
            }
        } while (!seep_word_replace(&index->used, &entry, entry + 1));
    }
    *ret_entry = entry;
    return SEEP_INDEX_NEW;
}

/* The entry of @key from slot *@at on; 0: none, and the first empty slot is in
 * *@at, unless @limit slots were not enough. */
static uint32_t find(const struct seep_view *view, enum seep_index_table table,
                     uint64_t key, uint32_t *at, uint32_t *limit)
{
    const struct index *index = &indexes[table];

    for (; *limit > 0; (*limit)--, (*at)++) {
        /* Acquire: the entry's key; pairs with the release in claim(). */
        uint64_t seen = atomic_load_explicit(&index->slots[*at & index->mask],
                                             memory_order_acquire);

        if (seen == 0) {
            return 0;
        }
        if (((seen ^ key) & ~INDEX_MASK) == 0) {
            uint32_t entry = (uint32_t)(seen & INDEX_MASK);

            /* Not tested: two keys whose upper half is the same. */
            if (seep_word_load(key_of(view, table, entry)) == key) {
                return entry;
            }
        }
    }
    return 0;
}

enum seep_index_answer seep_index_claim(const struct seep_view *view,
                                        enum seep_index_table table,
                                        uint64_t key, uint32_t *ret_index)
{
    struct index *index = &indexes[table];
    enum seep_index_answer answer;
    uint32_t limit = PROBE_LIMIT;
    uint32_t at = (uint32_t)key;
    uint32_t found;
    uint32_t entry;

    if (index->slots == NULL) {
        return SEEP_INDEX_FULL;
    }
    found = find(view, table, key, &at, &limit);
    if (found != 0) {
        *ret_index = found;
        return SEEP_INDEX_FOUND;
    }
    answer = limit > 0 ? take_entry(view, table, &entry) : SEEP_INDEX_FULL;
    if (answer != SEEP_INDEX_NEW) {
        return answer;
    }
    seep_word_store(key_of(view, table, entry), key);
    while (limit > 0) {
        uint64_t empty = 0;

        /* Release: the key; pairs with the acquire in find(). */
        if (atomic_compare_exchange_strong_explicit(
                &index->slots[at & index->mask], &empty,
                (key & ~INDEX_MASK) | entry, memory_order_release,
                memory_order_relaxed)) {
            *ret_index = entry;
            return SEEP_INDEX_NEW;
        }
        found = find(view, table, key, &at, &limit);
        if (found != 0) {
            break; /* another thread was first */
        }
    }
    seep_word_store(key_of(view, table, entry), 0);
    seep_word_store(&index->spare, entry);
    *ret_index = found;
    return found != 0 ? SEEP_INDEX_FOUND : SEEP_INDEX_FULL;
}

bool seep_index_has(const struct seep_view *view, enum seep_index_table table,
                    uint64_t key)
{
    uint32_t limit = PROBE_LIMIT;
    uint32_t at = (uint32_t)key;

    return indexes[table].slots != NULL &&
           find(view, table, key, &at, &limit) != 0;
}

#define CACHE_SLOTS 262144U
#define CACHE_INDEX_BITS 20U
#define CACHE_INDEX_MASK ((UINT64_C(1) << CACHE_INDEX_BITS) - 1)
/* In place of an index: there was no room, nor will there be. The last site of
 * the largest table is never cached. */
#define CACHE_REFUSED CACHE_INDEX_MASK

/*
 * Raw addresses -> site. One word an entry, so that it is never read half
 * written: 44 bits of the hash above the site's index; with the 18 that chose
 * the entry 62 bits must agree. 0 is empty.
 */
static seep_own_table cache; /* _Atomic uint64_t[CACHE_SLOTS] */

/*
 * The last stack that was added by a thread of each slot: what comes next has
 * most of its outer frames. Whoever finds it busy does without.
 */
#define RECENT_SLOTS 8U
static struct recent {
    _Atomic uint32_t busy;
    uint32_t stack; /* 0: none yet */
    uint32_t count;
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
} recents[RECENT_SLOTS];

void seep_sites_forget(void)
{
    for (uint32_t i = 0; i < RECENT_SLOTS; i++) {
        recents[i].stack = 0;
        seep_word_store(&recents[i].busy, 0);
    }
    if (seep_own_get(&cache) != NULL) {
        seep_clear_pages(seep_own_get(&cache), CACHE_SLOTS);
    }
}

static struct recent *take_recent(void)
{
    struct recent *recent = &recents[seep_thread.id % RECENT_SLOTS];

    /* Acquire: what the last holder wrote; pairs with the release below. */
    return atomic_exchange_explicit(&recent->busy, 1, memory_order_acquire) == 0
               ? recent
               : NULL;
}

static void keep_recent(struct recent *recent, uint32_t stack,
                        const uint64_t *frames, uint32_t count)
{
    recent->stack = stack;
    recent->count = count;
    memcpy(recent->frames, frames, count * sizeof(frames[0]));
    /* Release: pairs with the acquire in take_recent(). */
    atomic_store_explicit(&recent->busy, 0, memory_order_release);
}

/* How many outer frames are those of @recent; one at least is left. */
static uint32_t count_shared(const struct recent *recent,
                             const uint64_t *frames, uint32_t count)
{
    uint32_t shared = 0;

    while (recent->stack != 0 && shared + 1 < count && shared < recent->count &&
           frames[count - 1 - shared] ==
               recent->frames[recent->count - 1 - shared]) {
        shared++;
    }
    return shared;
}

/* The stack that has the first of the @shared, not 0, as its own: a reader that
 * follows finds one frame at least in each. */
static uint32_t find_owner(const struct seep_view *view, uint32_t stack,
                           uint32_t shared)
{
    while (view->stacks[stack].shared_count >= shared) {
        stack = view->stacks[stack].shared_stack;
    }
    return stack;
}

/* Room for @count frames. @return false: there is none */
static bool take_frames(const struct seep_view *view, uint32_t count,
                        uint64_t *ret_first)
{
    _Atomic uint64_t *used = &view->header->frames_used;
    uint64_t first = seep_word_load(used);

    do {
        if (first > view->frame_capacity ||
            count > view->frame_capacity - first ||
            !seep_view_reserve(view, view->frames,
                               (uint64_t)view->frame_capacity * 8,
                               &view->frames[first], (size_t)count * 8)) {
            return false;
        }
    } while (!seep_word_replace(used, &first, first + count));
    *ret_first = first;
    return true;
}

static void publish_stack(const struct seep_view *view, uint32_t index,
                          const uint64_t *frames, uint32_t count,
                          enum seep_cut cut)
{
    struct seep_rec_stack *stack = &view->stacks[index];
    struct recent *recent = take_recent();
    uint32_t shared = recent != NULL ? count_shared(recent, frames, count) : 0;
    uint64_t first;

    seep_word_fetch_add(&view->header->stack_count, 1);
    if (!take_frames(view, count - shared, &first)) {
        seep_view_count(view, SEEP_COUNT_STACKS_FULL, 1);
        if (recent != NULL) {
            keep_recent(recent, 0, frames, 0);
        }
        return;
    }
    for (uint32_t i = 0; i < count - shared; i++) {
        seep_word_store(&view->frames[first + i], frames[i]);
    }
    stack->cut = (uint16_t)cut;
    stack->first_frame = (uint32_t)first;
    stack->shared_count = (uint16_t)shared;
    stack->shared_stack =
        shared != 0 ? find_owner(view, recent->stack, shared) : 0;
    /* Release: the frames and fields above; pairs with the acquire load of
     * frame_count in seep_view_frames(). */
    atomic_store_explicit(&stack->frame_count, count, memory_order_release);
    if (recent != NULL) {
        keep_recent(recent, index, frames, count);
    }
}

static uint32_t intern_stack(const struct seep_view *view,
                             const uint64_t *frames, uint32_t count,
                             enum seep_cut cut, uint64_t *ret_key)
{
    uint64_t key = seep_hash_words(cut, frames, count);
    uint32_t index = 0;
    enum seep_index_answer answer =
        seep_index_claim(view, SEEP_INDEX_STACKS, key, &index);

    *ret_key = key;
    if (answer == SEEP_INDEX_FULL || answer == SEEP_INDEX_NO_ROOM) {
        seep_view_count(view, SEEP_COUNT_STACKS_FULL, 1);
        return 0;
    }
    if (answer == SEEP_INDEX_NEW) {
        publish_stack(view, index, frames, count, cut);
        seep_view_count(view, SEEP_COUNT_STACKS_CAPTURED, 1);
        seep_view_count(view, SEEP_COUNT_FRAMES_CAPTURED, count);
        seep_view_count(view, SEEP_COUNT_CUT_FIRST + (unsigned)cut, 1);
    }
    return index;
}

/* @return the site; 0: no room, for good unless *@ret_later */
static uint32_t intern_site(const struct seep_view *view,
                            struct seep_place place, uint32_t stack,
                            uint64_t stack_key, bool is_import, bool *ret_later)
{
    uint64_t words[2] = {stack_key, place.space};
    uint64_t key = seep_hash_words(place.device, words, 2);
    uint32_t index = 0;
    enum seep_index_answer answer =
        seep_index_claim(view, SEEP_INDEX_SITES, key, &index);

    *ret_later = answer == SEEP_INDEX_NO_ROOM;
    if (answer == SEEP_INDEX_FULL || answer == SEEP_INDEX_NO_ROOM) {
        seep_view_count(view, SEEP_COUNT_SITES_FULL, 1);
        return 0;
    }
    if (answer == SEEP_INDEX_NEW) {
        view->sites[index].space = place.space;
        view->sites[index].device = place.device;
        view->sites[index].stack = stack;
        /* Release: place and stack; pairs with the acquire load of state in
         * reader/recording/snapshot.c. */
        atomic_store_explicit(&view->sites[index].state, SEEP_PUBLISHED,
                              memory_order_release);
        seep_word_fetch_add(&view->header->site_count, 1);
        seep_view_count(view, SEEP_COUNT_IMPORT_SITES, is_import);
        seep_pace_site_came(view);
    }
    return index;
}

SEEP_COLD static uint32_t intern(const struct seep_view *view,
                                 struct seep_place place,
                                 const struct seep_sites_stack *stack,
                                 bool is_import, seep_sites_frame frame_of,
                                 bool *ret_later)
{
    /* In place: a hook must do with 2 KiB of stack. */
    uint64_t *frames = stack->addresses;
    uint64_t stack_key = 0;
    uint32_t count = (uint32_t)stack->count;
    enum seep_cut cut = stack->cut;
    uint32_t index;

    for (uint32_t i = 0; i < count; i++) {
        frames[i] = frame_of(view, frames[i]);
    }
    seep_short_stack_make(view, place.space, is_import, frames, &count, &cut);
    index = intern_stack(view, frames, count, cut, &stack_key);
    return intern_site(view, place, index, stack_key, is_import, ret_later);
}

/*
 * Four lanes, each (lane ^ address) * odd: a bijection in either, so that no
 * difference is lost, and the multiplications of four frames overlap. High bits
 * of a product are better than low ones: each lane is turned to where another's
 * low ones are. Mixed once at the end: 4 frames cost a third of what they did
 * when each lane was.
 */
SEEP_INLINE uint64_t turn(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static uint64_t hash_addresses(const struct seep_sites_stack *stack,
                               uint64_t seed)
{
    const uint64_t *address = stack->addresses;
    uint64_t lane0 = seed;
    uint64_t lane1 = seed + 1;
    uint64_t lane2 = seed + 2;
    uint64_t lane3 = seed + 3;
    size_t left = stack->count;

    for (; left >= 4; left -= 4, address += 4) {
        lane0 = (lane0 ^ address[0]) * SEEP_HASH_SEED;
        lane1 = (lane1 ^ address[1]) * SEEP_HASH_SEED;
        lane2 = (lane2 ^ address[2]) * SEEP_HASH_SEED;
        lane3 = (lane3 ^ address[3]) * SEEP_HASH_SEED;
    }
    lane0 = left > 0 ? (lane0 ^ address[0]) * SEEP_HASH_SEED : lane0;
    lane1 = left > 1 ? (lane1 ^ address[1]) * SEEP_HASH_SEED : lane1;
    lane2 = left > 2 ? (lane2 ^ address[2]) * SEEP_HASH_SEED : lane2;
    lane0 = (lane0 ^ turn(lane1, 32)) * SEEP_HASH_SEED;
    lane2 = (lane2 ^ turn(lane3, 32)) * SEEP_HASH_SEED;
    return seep_hash_mix(lane0 ^ turn(lane2, 32) ^ stack->count);
}

/* Where the site of @hash is; NULL: there is no cache. */
SEEP_INLINE _Atomic uint64_t *cache_entry(uint64_t hash)
{
    _Atomic uint64_t *entries = seep_own_get(&cache);

    if (seep_unlikely(entries == NULL)) {
        entries = seep_own_make_guarded(&cache, CACHE_SLOTS * sizeof(*entries));
    }
    return entries != NULL ? &entries[hash % CACHE_SLOTS] : NULL;
}

uint32_t seep_sites_intern(const struct seep_view *view,
                           struct seep_place place,
                           struct seep_sites_stack *stack,
                           seep_sites_frame frame_of)
{
    bool is_import = !stack->is_native &&
                     seep_short_stack_import(view, stack->addresses,
                                             &stack->count, &stack->cut);
    uint64_t hash = hash_addresses(
        stack, (uint64_t)place.space << 48 ^ (uint64_t)place.device << 52 ^
                   stack->epoch << 8 ^ (uint64_t)stack->cut);
    _Atomic uint64_t *entry = cache_entry(hash);
    uint64_t tag = hash & ~CACHE_INDEX_MASK;
    uint64_t seen = entry != NULL ? seep_word_load(entry) : 0;
    bool later = false;
    uint32_t site;

    /* Not tested: a stack of which 44 bits of the hash are 0. */
    if (seep_likely((seen & ~CACHE_INDEX_MASK) == tag && seen != 0)) {
        site = (uint32_t)(seen & CACHE_INDEX_MASK);
        if (seep_unlikely(site == CACHE_REFUSED)) {
            seep_view_count(view, SEEP_COUNT_SITES_FULL, 1);
            site = 0;
        }
        return site;
    }
    site = intern(view, place, stack, is_import, frame_of, &later);
    /* Not tested: the last of a million sites. */
    if (site != CACHE_REFUSED && !later && entry != NULL) {
        seep_word_store(entry, tag | (site != 0 ? site : CACHE_REFUSED));
    }
    return site;
}
