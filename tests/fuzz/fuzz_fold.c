/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for the fold. The first byte says of what: 0, events that a
 * process could have pushed onto a whole recording, after which allocated -
 * freed = live must hold at every site; else the same onto a damaged one.
 *
 * An event is 8 bytes: kind and shard, address, size, site, tick (twice),
 * level.
 */
#include <stdlib.h>
#include <string.h>

#include "format/account.h"
#include "format/fold.h"
#include "format/layout.h"
#include "format/live.h"
#include "small.h"

#define HEAD_BYTES 4U
#define EVENT_BYTES 8U
#define EVENTS_MOST 512U
#define SITES 4U
#define FIXED_BYTES offsetof(struct seep_rec_header, sample_log2)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct seep_view copy;
static size_t copy_bytes;

static void start(size_t seed)
{
    const struct seep_view *honest = small_honest(seed);

    if (copy.header == NULL) {
        copy_bytes = honest->header->file_bytes;
        seep_view_init(&copy, malloc(copy_bytes + 1));
    }
    memcpy(copy.header, honest->header, copy_bytes);
    seep_view_init(&copy, copy.header);
}

/* Nothing in it but sites, which hold nothing. */
static void start_empty(void)
{
    struct seep_rec_header layout;

    start(0);
    layout = *copy.header;
    memset(copy.header, 0, copy_bytes);
    memcpy((void *)copy.header, (void *)&layout, FIXED_BYTES);
    seep_layout_start(copy.header);
    for (uint32_t i = 1; i <= SITES; i++) {
        copy.sites[i].space = i == SITES ? SEEP_SPACE_MAPPED : SEEP_SPACE_HEAP;
        seep_word_store(&copy.sites[i].state, SEEP_PUBLISHED);
    }
}

static void push(uint64_t *positions, const uint8_t *data, uint32_t *tick)
{
    enum seep_event_kind kind = (enum seep_event_kind)(1 + data[0] % 7);
    bool is_range = kind >= SEEP_EVENT_MAP || (data[0] & 0x80) != 0;
    uint32_t shard = is_range ? copy.shard_count - 1 : 0;
    uint64_t position = positions[shard]++;
    struct seep_rec_event *slot =
        &seep_view_ring(&copy, shard)[position & (copy.ring_slots - 1)];
    uint64_t page = is_range ? 4096 : 16;
    uint64_t size =
        is_range ? (data[2] % 32 + 1) * page : data[2] * UINT64_C(7);
    /* Of a mapping nothing is sampled. */
    uint64_t level = is_range ? 0 : data[6] % 24;

    *tick += (uint32_t)data[4] << (data[5] % 20);
    seep_word_store(&slot->address, 0x10000 + data[1] % 64 * page);
    seep_word_store(&slot->size_kind,
                    size | level << SEEP_SIZE_BITS |
                        (uint64_t)kind << (SEEP_SIZE_BITS + 8));
    seep_word_store(&slot->site, is_range ? SITES : 1 + data[3] % (SITES - 1));
    seep_word_store(&slot->tick, *tick);
    seep_word_store(&slot->state,
                    seep_view_state(&copy, position,
                                    (data[7] & 31) == 31 ? SEEP_SLOT_CLAIMED
                                                         : SEEP_SLOT_READY,
                                    1));
    seep_word_store(&copy.shards[shard].tail_hint, position + 1);
}

/* Of a claim that nobody completes it stays so. */
static bool is_full(const uint64_t *positions)
{
    for (uint32_t i = 0; i < copy.shard_count; i++) {
        if (positions[i] - seep_word_load(&copy.shards[i].head) >=
            copy.ring_slots) {
            return true;
        }
    }
    return false;
}

static void fold_all(bool copied)
{
    struct seep_fold fold = {.view = &copy, .thread = 1, .random = 1};
    uint64_t applied = 0;
    uint64_t torn = 0;

    for (uint32_t i = 0; i < copy.shard_count && !copied; i++) {
        (void)seep_fold_try_lock(&copy.shards[i].lock, 1);
        seep_fold_shard(&fold, i, UINT32_MAX);
        seep_fold_unlock(&copy.shards[i].lock, 1);
    }
    if (copied) {
        seep_fold_private_copy(&copy, true, &applied, &torn);
    }
}

/* What a site has is what its blocks in the table have. */
static void must_balance(void)
{
    uint64_t bytes[SITES + 1] = {0};
    uint64_t counts[SITES + 1] = {0};

    for (uint32_t i = 0; i < copy.live_capacity; i++) {
        struct seep_block block = seep_live_read(&copy.live[i]);
        struct seep_weight weight = seep_account_weight(&block);

        if (block.address != 0) {
            bytes[block.site] += weight.bytes;
            counts[block.site] += weight.count_q16;
        }
    }
    for (uint32_t i = 1; i <= SITES; i++) {
        const struct seep_rec_site *site = &copy.sites[i];

        if (seep_word_load(&site->allocated_bytes) -
                    seep_word_load(&site->freed_bytes) !=
                bytes[i] ||
            seep_word_load(&site->allocated_count_q16) -
                    seep_word_load(&site->freed_count_q16) !=
                counts[i]) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t positions[2] = {0};
    uint32_t tick = 1;
    struct small small;

    if (size < HEAD_BYTES || small_seeds() == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        start_empty();
        for (size_t at = HEAD_BYTES;
             at + EVENT_BYTES <= size && at < EVENTS_MOST * EVENT_BYTES;
             at += EVENT_BYTES) {
            if (is_full(positions) || data[at] % 4 == 0) {
                fold_all(false);
            }
            if (!is_full(positions)) {
                push(positions, data + at, &tick);
            }
        }
        fold_all(true);
        must_balance();
    } else if (small_damage(data, size, &small)) {
        start(small.seed);
        memcpy(copy.header, small.bytes, copy_bytes);
        memcpy((void *)copy.header, (void *)small_honest(small.seed)->header,
               FIXED_BYTES);
        fold_all(true);
        fold_all(false);
    }
    return 0;
}
