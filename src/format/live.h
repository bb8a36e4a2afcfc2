/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A shard's live table: address -> size, site, birth. Open addressing, linear
 * probing, deletion by shifting back, so that a week of churn leaves no
 * tombstones. It grows a window at a time, with what is in it (linear hashing),
 * so that no insertion has more to move than some dozens of entries.
 *
 * Invariant: an entry can be found from its home slot without crossing an
 * empty one; a shift that a killed or abandoned thread left half done is
 * named in the shard's .move, and that and what a new window is still to get
 * is completed by seep_live_repair().
 *
 * Threads: one at a time, who holds the shard's lock.
 */
#ifndef SEEP_FORMAT_LIVE_H
#define SEEP_FORMAT_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/word.h"
#include "format/view.h"

#define SEEP_LIVE_NONE UINT32_MAX

struct seep_live {
    const struct seep_view *view;
    struct seep_rec_shard *shard;
    struct seep_rec_live *entries;
    uint32_t mask;       /* of the slots that it may come to use */
    uint32_t group_log2; /* of bytes whose blocks have neighbouring homes */
};

/** One entry as plain values. */
struct seep_block {
    uint64_t address;
    uint64_t size;
    uint32_t site;
    uint32_t birth_tick;
    unsigned sample_log2;
    bool fragment;
    bool in_series; /* of one taken out: the site's series saw it go */
};

/** A table's entry, or a stashed one, as such. */
static inline struct seep_block
seep_live_read(const struct seep_rec_live *entry)
{
    uint64_t size_level = seep_word_load(&entry->size_level);

    return (struct seep_block){
        .address = seep_word_load(&entry->address),
        .size = size_level & SEEP_SIZE_MASK,
        .site = seep_word_load(&entry->site),
        .birth_tick = seep_word_load(&entry->birth_tick),
        .sample_log2 = (unsigned)(size_level >> SEEP_SIZE_BITS) & 63,
        .fragment = (size_level & SEEP_LIVE_FRAGMENT) != 0,
        .in_series = (size_level & SEEP_STASHED_IN_SERIES) != 0,
    };
}

/** The share of a mapping that was there when it was last looked at; below 0:
 * it was not. */
static inline double seep_live_touched(uint64_t size_level)
{
    uint64_t touched = (size_level & SEEP_TOUCHED_MASK) >> SEEP_TOUCHED_SHIFT;

    return ((double)touched - 1) / SEEP_TOUCHED_ALL;
}

/** Its .size_level as the table has it: of .in_series nothing, nor of what was
 * touched. */
static inline uint64_t seep_live_size_level(const struct seep_block *block)
{
    return (block->size & SEEP_SIZE_MASK) |
           (uint64_t)block->sample_log2 << SEEP_SIZE_BITS |
           (block->fragment ? SEEP_LIVE_FRAGMENT : 0);
}

/** The table of @shard; an empty one if the shard's fields are damaged. */
bool seep_live_init(struct seep_live *ret_live, const struct seep_view *view,
                    uint32_t shard);

/** No entry lies at this index or behind it. */
uint32_t seep_live_end(const struct seep_live *live);

/** Slots in use: half of them are full at most, while it can grow. */
uint64_t seep_live_slots(const struct seep_live *live);

struct seep_block seep_live_get(const struct seep_live *live, uint32_t index);

/** Where the look for @address begins. */
uint32_t seep_live_home(const struct seep_live *live, uint64_t address);

/** Ask the cache for where the look for @address begins. */
void seep_live_ask(const struct seep_live *live, uint64_t address);

/** @return index or SEEP_LIVE_NONE */
uint32_t seep_live_find(const struct seep_live *live, uint64_t address);

/** False when the table is as full as it may be. */
bool seep_live_insert(const struct seep_live *live,
                      const struct seep_block *block);

/** Overwrite size, level and fragment of the entry at @index. */
void seep_live_update(const struct seep_live *live, uint32_t index,
                      const struct seep_block *block);

/** Other entries may move, to @index or away from behind it. */
void seep_live_remove(const struct seep_live *live, uint32_t index);

/** Complete what was interrupted: some dozens of entries, in a hook. */
void seep_live_repair(const struct seep_live *live);

/** Count everything again: reads the whole table, so not in a hook. */
void seep_live_recount(const struct seep_live *live);

#endif
