/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The live table of one shard; see live.h. */
#include "format/live.h"

#include "base/hash.h"
#include "base/word.h"

/*
 * Blocks of the same KiB have neighbouring homes, in the order in which they
 * lie: a table of 100 MiB hashed block by block cost a page fault for nearly
 * every new block (38 us each on ext4, and 100 MiB resident under a python3
 * that imports numpy).
 */
uint32_t seep_live_home(const struct seep_live *live, uint64_t address)
{
    uint32_t window = (uint32_t)seep_hash_mix(address >> 10) << 6;

    return (window | ((uint32_t)(address >> 4) & 63)) & live->mask;
}

bool seep_live_init(struct seep_live *ret_live, const struct seep_view *view,
                    uint32_t shard)
{
    struct seep_rec_shard *header = &view->shards[shard];
    uint64_t first = header->live_first;
    uint64_t slots = header->live_slots;

    /* Written once, yet behind the fixed part: a damaged file can lie. */
    if (slots == 0 || (slots & (slots - 1)) != 0 ||
        first > view->live_capacity || slots > view->live_capacity - first) {
        return false;
    }
    ret_live->shard = header;
    ret_live->entries = view->live + first;
    ret_live->mask = (uint32_t)(slots - 1);
    return true;
}

struct seep_block seep_live_get(const struct seep_live *live, uint32_t index)
{
    const struct seep_rec_live *entry = &live->entries[index];
    uint64_t size_level = seep_word_load(&entry->size_level);

    return (struct seep_block){
        .address = seep_word_load(&entry->address),
        .size = size_level & SEEP_SIZE_MASK,
        .site = atomic_load_explicit(&entry->site, memory_order_relaxed),
        .birth_tick =
            atomic_load_explicit(&entry->birth_tick, memory_order_relaxed),
        .sample_log2 = (unsigned)(size_level >> SEEP_SIZE_BITS) & 63,
        .fragment = (size_level & SEEP_LIVE_FRAGMENT) != 0,
    };
}

uint32_t seep_live_find(const struct seep_live *live, uint64_t address)
{
    uint32_t index = seep_live_home(live, address);

    for (uint32_t step = 0; step <= live->mask; step++) {
        uint64_t seen = seep_word_load(&live->entries[index].address);

        if (seen == address) {
            return index;
        }
        if (seen == 0) {
            break;
        }
        index = (index + 1) & live->mask;
    }
    return SEEP_LIVE_NONE;
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
                    (block->size & SEEP_SIZE_MASK) |
                        (uint64_t)block->sample_log2 << SEEP_SIZE_BITS |
                        (block->fragment ? SEEP_LIVE_FRAGMENT : 0));
    seep_word_store(
        &live->shard->live_bytes,
        less(seep_word_load(&live->shard->live_bytes), sampled_bytes(&old)) +
            sampled_bytes(block));
}

bool seep_live_insert(const struct seep_live *live,
                      const struct seep_block *block)
{
    uint64_t count = seep_word_load(&live->shard->live_count);
    uint32_t index = seep_live_home(live, block->address);

    if (block->address == 0 || count >= live->mask - live->mask / 16) {
        return false;
    }
    for (uint32_t step = 0; step <= live->mask; step++) {
        struct seep_rec_live *entry = &live->entries[index];

        if (seep_word_load(&entry->address) == 0) {
            seep_word_store(&entry->size_level, 0);
            atomic_store_explicit(&entry->site, block->site,
                                  memory_order_relaxed);
            atomic_store_explicit(&entry->birth_tick, block->birth_tick,
                                  memory_order_relaxed);
            seep_live_update(live, index, block);
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
        index = (index + 1) & live->mask;
    }
    return false;
}

static void copy_entry(const struct seep_live *live, uint32_t from, uint32_t to)
{
    const struct seep_rec_live *source = &live->entries[from];
    struct seep_rec_live *target = &live->entries[to];

    seep_word_store(&target->size_level, seep_word_load(&source->size_level));
    atomic_store_explicit(
        &target->site,
        atomic_load_explicit(&source->site, memory_order_relaxed),
        memory_order_relaxed);
    atomic_store_explicit(
        &target->birth_tick,
        atomic_load_explicit(&source->birth_tick, memory_order_relaxed),
        memory_order_relaxed);
    seep_word_store(&target->address, seep_word_load(&source->address));
}

/* Fill @hole with what may move there, until a hole is left that may stay. */
static void close_hole(const struct seep_live *live, uint32_t hole)
{
    uint32_t next = hole;

    for (uint32_t step = 0; step < live->mask; step++) {
        uint64_t address;
        uint32_t distance;

        next = (next + 1) & live->mask;
        address = seep_word_load(&live->entries[next].address);
        if (address == 0) {
            break;
        }
        distance = (next - seep_live_home(live, address)) & live->mask;
        if (distance < ((next - hole) & live->mask)) {
            continue; /* its home lies behind the hole: it may not move */
        }
        seep_word_store(&live->shard->move,
                        ((uint64_t)next + 1) << 32 | (hole + 1));
        copy_entry(live, next, hole);
        hole = next;
    }
    seep_word_store(&live->entries[hole].address, 0);
    seep_word_store(&live->shard->move, 0);
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

    if (move != 0 && from <= live->mask && to <= live->mask && from != to &&
        seep_word_load(&live->entries[from].address) != 0) {
        copy_entry(live, (uint32_t)from, (uint32_t)to);
        close_hole(live, (uint32_t)from);
    }
    seep_word_store(&live->shard->move, 0);
}

void seep_live_recount(const struct seep_live *live)
{
    uint64_t count = 0;
    uint64_t bytes = 0;
    uint64_t keys = 0;

    for (uint32_t i = 0; i <= live->mask; i++) {
        struct seep_block block = seep_live_get(live, i);

        count += block.address != 0;
        bytes += block.address != 0 ? sampled_bytes(&block) : 0;
        keys += SEEP_ADDRESS_IS_KEY(block.address);
    }
    seep_word_store(&live->shard->key_count, keys);
    seep_word_store(&live->shard->live_count, count);
    seep_word_store(&live->shard->live_bytes, bytes);
}
