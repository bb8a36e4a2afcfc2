/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The live table of one shard: its shape, finding, moving, growing, repair.
 *
 * An entry is written before its address, and moved before it is taken away:
 * whoever stops in between leaves one too many, and never one too few.
 */
#include "format/live.h"

#include "base/compiler.h"
#include "base/hash.h"
#include "base/word.h"

#define SEEP_LIVE_SLOTS_MOST (UINT64_C(1) << 28)
#define GRAIN_LOG2 4U  /* no two blocks begin in the same 16 bytes */
#define WINDOW_LOG2 6U /* SEEP_WINDOW_SLOTS */
#define OLD_GROUP_LOG2 10U

static_assert(SEEP_WINDOW_SLOTS == 1U << WINDOW_LOG2, "slots of a window");
static_assert(OLD_GROUP_LOG2 - GRAIN_LOG2 <= WINDOW_LOG2,
              "a group lies in one window");

static uint32_t windows_most(const struct seep_live *live)
{
    return (live->mask + 1) / SEEP_WINDOW_SLOTS;
}

static uint32_t windows_of(const struct seep_live *live)
{
    return seep_word_load(&live->shard->live_windows);
}

/* Behind the windows in use come some that take what finds no room in the last
 * of these. */
static uint32_t end_window_of(const struct seep_live *live)
{
    return seep_word_load(&live->shard->live_end);
}

uint32_t seep_live_end(const struct seep_live *live)
{
    return end_window_of(live) * SEEP_WINDOW_SLOTS;
}

/* The table as it is while nobody makes it larger. */
struct shape {
    uint32_t windows;
    uint32_t end;
    uint32_t wrap; /* ANDed to an index: only with all windows in use does the
                      last one go on at the first */
};

static inline struct shape shape_of(const struct seep_live *live)
{
    struct shape shape = {
        .windows = windows_of(live),
        .end = seep_live_end(live),
        .wrap = UINT32_MAX,
    };

    if (shape.windows * SEEP_WINDOW_SLOTS > live->mask) {
        shape.wrap = live->mask;
    }
    return shape;
}

/* The window that @hash has among @windows of them, which are not 0. */
static inline uint32_t window_for(uint32_t hash, uint32_t windows)
{
    uint32_t half = UINT32_C(1) << (31 - (unsigned)__builtin_clz(windows));
    uint32_t window = hash & (2 * half - 1);

    return window < windows ? window : window - half;
}

/*
 * Blocks of the same group of bytes have neighbouring homes, in the order in
 * which they lie, and groups are hashed: a table of 100 MiB hashed block by
 * block cost a page fault for nearly every new block (38 us each on ext4, and
 * 100 MiB resident under a python3 that imports numpy). Groups are small beside
 * a window: with those of 1 KiB one window of six was more than full when they
 * were half full on the average, and a removal passed 55 entries.
 */
static uint32_t hash_of(const struct seep_live *live, uint64_t address)
{
    return (uint32_t)seep_hash_mix(address >> live->group_log2);
}

/* With @windows, which are not 0, in use. The lower bits of the hash choose the
 * window, the upper ones where in it the group lies. */
static inline uint32_t home_in(const struct seep_live *live, uint32_t windows,
                               uint64_t address)
{
    uint32_t hash = hash_of(live, address);
    uint32_t in_group = (UINT32_C(1) << (live->group_log2 - GRAIN_LOG2)) - 1;
    uint32_t slot = (hash >> (32 - WINDOW_LOG2) & ~in_group) |
                    ((uint32_t)(address >> GRAIN_LOG2) & in_group);

    return window_for(hash, windows) * SEEP_WINDOW_SLOTS + slot;
}

uint32_t seep_live_home(const struct seep_live *live, uint64_t address)
{
    uint32_t windows = windows_of(live);

    return windows != 0 ? home_in(live, windows, address) : 0;
}

void seep_live_ask(const struct seep_live *live, uint64_t address)
{
    uint32_t windows = windows_of(live);

    if (seep_likely(windows != 0)) {
        __builtin_prefetch(&live->entries[home_in(live, windows, address)], 1);
    }
}

bool seep_live_init(struct seep_live *ret_live, const struct seep_view *view,
                    uint32_t shard)
{
    struct seep_rec_shard *header = &view->shards[shard];
    uint64_t first = header->live_first;
    uint64_t slots = header->live_slots;
    uint32_t group_log2 = header->live_group_log2 == SEEP_LIVE_GROUP_LOG2
                              ? SEEP_LIVE_GROUP_LOG2
                              : OLD_GROUP_LOG2;

    /* Written once, yet behind the fixed part: a damaged file can lie. */
    if (slots < SEEP_WINDOW_SLOTS || (slots & (slots - 1)) != 0 ||
        slots > SEEP_LIVE_SLOTS_MOST || first > view->live_capacity ||
        slots > view->live_capacity - first) {
        return false;
    }
    ret_live->view = view;
    ret_live->shard = header;
    ret_live->entries = view->live + first;
    ret_live->mask = (uint32_t)(slots - 1);
    ret_live->group_log2 = group_log2;
    return windows_of(ret_live) <= end_window_of(ret_live) &&
           end_window_of(ret_live) <= windows_most(ret_live);
}

struct seep_block seep_live_get(const struct seep_live *live, uint32_t index)
{
    return seep_live_read(&live->entries[index]);
}

/* From the slot behind @index, which is another's, on. */
static uint32_t probe_on(const struct seep_live *live, uint32_t index,
                         uint64_t address)
{
    struct shape shape = shape_of(live);

    for (uint32_t step = 1; step < shape.end; step++) {
        uint64_t seen;

        index = (index + 1) & shape.wrap;
        if (index >= shape.end) {
            break;
        }
        seen = seep_word_load(&live->entries[index].address);
        if (seen == address) {
            return index;
        }
        if (seen == 0) {
            break;
        }
    }
    return SEEP_LIVE_NONE;
}

/* The slot from the home of @address on that has @wanted: that, or 0, an empty
 * one. */
static inline uint32_t probe(const struct seep_live *live, uint64_t address,
                             uint64_t wanted)
{
    uint32_t windows = windows_of(live);
    uint32_t index;
    uint64_t seen;

    if (seep_unlikely(windows == 0)) {
        return SEEP_LIVE_NONE;
    }
    index = home_in(live, windows, address);
    seen = seep_word_load(&live->entries[index].address);
    if (seen == wanted) {
        return index;
    }
    return seen == 0 ? SEEP_LIVE_NONE : probe_on(live, index, wanted);
}

uint32_t seep_live_find(const struct seep_live *live, uint64_t address)
{
    return probe(live, address, address);
}

static uint32_t find_empty(const struct seep_live *live, uint64_t address)
{
    return probe(live, address, 0);
}

/*
 * A thread that left a fold by a jump may have put an entry in and not counted
 * it, or counted it out and not taken it. So the counts can be low by as many;
 * below 0 they would be a table more than full, and the sampling interval
 * would double with every event.
 */
static uint64_t less(uint64_t count, uint64_t by)
{
    return count > by ? count - by : 0;
}

/* What thinning can act on. */
static uint64_t sampled_bytes(const struct seep_block *block)
{
    return SEEP_ADDRESS_IS_KEY(block->address) ? 0 : block->size;
}

void seep_live_update(const struct seep_live *live, uint32_t index,
                      const struct seep_block *block)
{
    struct seep_block old = seep_live_get(live, index);

    seep_word_store(&live->entries[index].size_level,
                    seep_live_size_level(block));
    seep_word_store(
        &live->shard->live_bytes,
        less(seep_word_load(&live->shard->live_bytes), sampled_bytes(&old)) +
            sampled_bytes(block));
}

static void copy_entry(const struct seep_live *live, uint32_t from, uint32_t to)
{
    const struct seep_rec_live *source = &live->entries[from];
    struct seep_rec_live *target = &live->entries[to];

    seep_word_copy(&target->size_level, &source->size_level);
    seep_word_copy(&target->site, &source->site);
    seep_word_copy(&target->birth_tick, &source->birth_tick);
    seep_word_copy(&target->address, &source->address);
}

/* While the word says so, an entry may be in both places. */
static void note_move(const struct seep_live *live, uint32_t from, uint32_t to)
{
    seep_word_store(&live->shard->move, ((uint64_t)from + 1) << 32 | (to + 1));
}

/* Fill @hole with what may move there, until a hole is left that may stay. */
static void move_back(const struct seep_live *live, uint32_t hole)
{
    struct shape shape = shape_of(live);
    uint32_t next = hole;

    for (uint32_t step = 0; step < live->mask; step++) {
        uint64_t address;
        uint32_t distance;

        next = (next + 1) & shape.wrap;
        address =
            next < shape.end ? seep_word_load(&live->entries[next].address) : 0;
        if (address == 0) {
            break;
        }
        distance = (next - home_in(live, shape.windows, address)) & live->mask;
        if (distance < ((next - hole) & live->mask)) {
            continue; /* its home lies behind the hole: it may not move */
        }
        note_move(live, next, hole);
        copy_entry(live, next, hole);
        hole = next;
    }
    seep_word_store(&live->entries[hole].address, 0);
    seep_word_store(&live->shard->move, 0);
}

static inline void close_hole(const struct seep_live *live, uint32_t hole)
{
    if (hole + 1 < seep_live_end(live) &&
        seep_word_load(&live->entries[hole + 1].address) == 0) {
        seep_word_store(&live->entries[hole].address, 0);
        seep_word_store(&live->shard->move, 0);
        return;
    }
    move_back(live, hole);
}

/* The entry at @from goes where it would be found now. */
static void move_home(const struct seep_live *live, uint32_t from)
{
    uint32_t to =
        find_empty(live, seep_word_load(&live->entries[from].address));

    if (to != SEEP_LIVE_NONE) {
        note_move(live, from, to);
        copy_entry(live, from, to);
        close_hole(live, from);
    }
}

/*
 * What lies in the run of entries around the last window's sibling and belongs
 * into the last window goes there. Doing it again does nothing.
 */
static void settle_last(const struct seep_live *live)
{
    uint32_t windows = windows_of(live);
    uint32_t end = seep_live_end(live);
    uint32_t sibling;
    uint32_t index;

    if (windows < 2) {
        return;
    }
    sibling = windows - 1 -
              (UINT32_C(1) << (31 - (unsigned)__builtin_clz(windows - 1)));
    index = sibling * SEEP_WINDOW_SLOTS;
    for (uint32_t step = 0; step < 2 * end && index < end; step++) {
        uint64_t address = seep_word_load(&live->entries[index].address);

        if (address == 0 && index >= (sibling + 1) * SEEP_WINDOW_SLOTS) {
            return;
        }
        if (address != 0 &&
            seep_live_home(live, address) / SEEP_WINDOW_SLOTS == windows - 1 &&
            seep_live_find(live, address) != index) {
            move_home(live, index);
            /* Another entry may have moved here; in a damaged table it may not
             * have found any room. */
            index += seep_word_load(&live->entries[index].address) == address;
            continue;
        }
        index++;
    }
}

/* How many entries of the run around @sibling will belong to window @windows,
 * once that is in use. */
static uint32_t count_movers(const struct seep_live *live, uint32_t sibling,
                             uint32_t windows)
{
    uint32_t end = seep_live_end(live);
    uint32_t count = 0;

    for (uint32_t i = sibling * SEEP_WINDOW_SLOTS; i < end; i++) {
        uint64_t address = seep_word_load(&live->entries[i].address);

        if (address == 0 && i >= (sibling + 1) * SEEP_WINDOW_SLOTS) {
            break;
        }
        count += address != 0 &&
                 window_for(hash_of(live, address), windows + 1) == windows;
    }
    return count;
}

/* Have the windows up to @end, which are empty from the last end on. */
static bool extend(const struct seep_live *live, uint32_t end)
{
    uint32_t before = end_window_of(live);
    uint64_t bytes = ((uint64_t)live->mask + 1) * sizeof(live->entries[0]);

    if (end <= before) {
        return true;
    }
    if (!seep_view_reserve(live->view, live->entries, bytes,
                           &live->entries[before * SEEP_WINDOW_SLOTS],
                           (end - before) * SEEP_WINDOW_SLOTS *
                               sizeof(live->entries[0]))) {
        return false;
    }
    seep_word_store(&live->shard->live_end, end);
    return true;
}

/* Make so many slots empty behind window @windows that what moves into it finds
 * one, wherever in it its home is. */
static bool make_room(const struct seep_live *live, uint32_t windows,
                      uint32_t movers)
{
    uint32_t most = windows_most(live);
    uint32_t from = (windows + 1) * SEEP_WINDOW_SLOTS;
    uint32_t room = 0;

    if (windows + 1 == most) {
        return extend(live, most); /* behind the last one comes the first */
    }
    for (uint32_t end = windows + 2; end <= most; end++) {
        if (!extend(live, end)) {
            return false;
        }
        for (; from < end * SEEP_WINDOW_SLOTS; from++) {
            room += seep_word_load(&live->entries[from].address) == 0;
        }
        if (room >= movers) {
            return true;
        }
    }
    return false;
}

/*
 * One window more: what had its home in the sibling and now has it in the new
 * one moves, some dozens of entries. @return false: there are all, or there is
 * no room for another
 */
static bool grow(const struct seep_live *live)
{
    uint32_t windows = windows_of(live);
    uint32_t movers = 0;

    if (windows == windows_most(live)) {
        return false;
    }
    if (windows != 0) {
        uint32_t half = UINT32_C(1) << (31 - (unsigned)__builtin_clz(windows));

        movers = count_movers(live, windows - half, windows);
    }
    if (!make_room(live, windows, movers)) {
        return false;
    }
    seep_word_store(&live->shard->live_windows, windows + 1);
    settle_last(live);
    return true;
}

/*
 * A window that is still to be split has twice as much as one that was, and it
 * is what makes long runs: it grows when those are 9 of 20 full, and faster
 * than what comes, so that they stay below 12 of 20.
 */
static uint64_t full_enough(uint32_t windows)
{
    uint64_t half =
        windows == 0 ? 0
                     : UINT64_C(1) << (31 - (unsigned)__builtin_clz(windows));

    return SEEP_WINDOW_SLOTS * (9 * half + 3 * (windows - half)) / 20;
}

/* Where it may not grow, or is as large as may be, 15 of 16 are full. */
static bool has_slot(const struct seep_live *live, uint64_t count)
{
    uint32_t windows = windows_of(live);
    uint64_t slots = (uint64_t)windows * SEEP_WINDOW_SLOTS;

    if (count >= full_enough(windows) && grow(live)) {
        slots += SEEP_WINDOW_SLOTS;
    }
    return count + 1 < slots - slots / 16;
}

/* One window more behind those in use. @return false: there is none */
static bool lengthen(const struct seep_live *live)
{
    uint32_t end = end_window_of(live);

    return end < windows_most(live) && extend(live, end + 1);
}

/*
 * A run of dense blocks, which fill whole windows, may have reached the end of
 * the table. One window more in use parts them, but need not move that end;
 * and at the end of all, only with all in use the last goes on at the first.
 */
static uint32_t find_room(const struct seep_live *live, uint64_t address)
{
    uint32_t index = find_empty(live, address);

    if (index == SEEP_LIVE_NONE && grow(live)) {
        index = find_empty(live, address);
    }
    while (index == SEEP_LIVE_NONE && (lengthen(live) || grow(live))) {
        index = find_empty(live, address);
    }
    return index;
}

bool seep_live_insert(const struct seep_live *live,
                      const struct seep_block *block)
{
    uint64_t count = seep_word_load(&live->shard->live_count);
    struct seep_rec_live *entry;
    uint32_t index;

    if (block->address == 0 || !has_slot(live, count)) {
        return false;
    }
    index = find_room(live, block->address);
    if (index == SEEP_LIVE_NONE) {
        return false;
    }
    entry = &live->entries[index];
    seep_word_store(&entry->size_level, seep_live_size_level(block));
    seep_word_store(&entry->site, block->site);
    seep_word_store(&entry->birth_tick, block->birth_tick);
    seep_word_add(&live->shard->live_bytes, sampled_bytes(block));
    /* Release: whoever looks from outside, after a kill say, sees an
     * address only with its fields; pairs with the copy by the
     * kernel's page cache, which keeps x86 and arm64 store order. */
    atomic_store_explicit(&entry->address, block->address,
                          memory_order_release);
    seep_word_store(&live->shard->live_count, count + 1);
    if (SEEP_ADDRESS_IS_KEY(block->address)) {
        seep_word_add(&live->shard->key_count, 1);
    }
    return true;
}

void seep_live_remove(const struct seep_live *live, uint32_t index)
{
    struct seep_block old = seep_live_get(live, index);

    seep_word_store(
        &live->shard->live_bytes,
        less(seep_word_load(&live->shard->live_bytes), sampled_bytes(&old)));
    if (SEEP_ADDRESS_IS_KEY(old.address)) {
        seep_word_store(&live->shard->key_count,
                        less(seep_word_load(&live->shard->key_count), 1));
    }
    seep_word_store(&live->shard->live_count,
                    less(seep_word_load(&live->shard->live_count), 1));
    close_hole(live, index);
}

void seep_live_repair(const struct seep_live *live)
{
    uint64_t move = seep_word_load(&live->shard->move);
    uint64_t from = (move >> 32) - 1;
    uint64_t to = (move & UINT32_MAX) - 1;
    uint64_t end = seep_live_end(live);

    if (move != 0 && from < end && to < end && from != to &&
        seep_word_load(&live->entries[from].address) != 0) {
        copy_entry(live, (uint32_t)from, (uint32_t)to);
        close_hole(live, (uint32_t)from);
    }
    seep_word_store(&live->shard->move, 0);
    settle_last(live);
}

void seep_live_recount(const struct seep_live *live)
{
    uint32_t end = seep_live_end(live);
    uint64_t count = 0;
    uint64_t bytes = 0;
    uint64_t keys = 0;

    for (uint32_t i = 0; i < end; i++) {
        struct seep_block block = seep_live_get(live, i);

        count += block.address != 0;
        bytes += block.address != 0 ? sampled_bytes(&block) : 0;
        keys += SEEP_ADDRESS_IS_KEY(block.address);
    }
    seep_word_store(&live->shard->key_count, keys);
    seep_word_store(&live->shard->live_count, count);
    seep_word_store(&live->shard->live_bytes, bytes);
}

uint64_t seep_live_slots(const struct seep_live *live)
{
    return (uint64_t)windows_of(live) * SEEP_WINDOW_SLOTS;
}
