/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks to bucket series, by replaying every birth and death in order. */
#include "test_growth_site.h"

#include <stdlib.h>
#include <string.h>

struct change {
    double time;
    size_t order; /* births before deaths, then as given */
    double bytes;
    double count;
};

static int compare(const void *left, const void *right)
{
    const struct change *a = left;
    const struct change *b = right;

    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

static size_t list_changes(const struct site_block *blocks, size_t count,
                           struct change *changes)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        changes[used++] =
            (struct change){blocks[i].birth, i, blocks[i].weight, 1};
        if (blocks[i].death <= 1) {
            changes[used++] = (struct change){blocks[i].death, count + i,
                                              -blocks[i].weight, -1};
        }
    }
    qsort(changes, used, sizeof(*changes), compare);
    return used;
}

static void replay(const struct change *changes, size_t used,
                   struct site_input *site)
{
    double live_bytes = 0;
    double live_count = 0;
    double born = 0;
    size_t next = 0;

    for (size_t i = 0; i < SITE_BUCKETS; i++) {
        double low = live_bytes;
        site->bucket_end[i] = (double)(i + 1) / SITE_BUCKETS;
        for (; next < used && changes[next].time <= site->bucket_end[i];
             next++) {
            live_bytes += changes[next].bytes;
            live_count += changes[next].count;
            born += changes[next].count > 0;
            low = live_bytes < low ? live_bytes : low;
        }
        site->live_bytes[i] = live_bytes;
        site->low_bytes[i] = low;
        site->allocations[i] = born;
    }
    site->input.live_count = live_count;
}

void site_build(const struct site_block *blocks, size_t count,
                struct site_input *ret_site)
{
    static struct change changes[2 * SITE_BLOCKS_MAX];
    struct seep_growth_input *input = &ret_site->input;

    memset(ret_site, 0, sizeof(*ret_site));
    for (size_t i = 0; i < count; i++) {
        const struct site_block *block = &blocks[i];
        if (block->death > 1) {
            ret_site->survivors[input->survivor_count++] =
                (struct seep_survivor){.birth = block->birth,
                                       .weight = block->weight};
            input->live_old += block->birth <= 0.8;
        } else {
            input->died_old += block->death - block->birth >= 0.2;
        }
    }
    replay(changes, list_changes(blocks, count, changes), ret_site);
    input->survivors = ret_site->survivors;
    input->bucket_end = ret_site->bucket_end;
    input->live_bytes = ret_site->live_bytes;
    input->low_bytes = ret_site->low_bytes;
    input->allocations = ret_site->allocations;
    input->bucket_count = SITE_BUCKETS;
}

void site_build_leak(size_t count, struct site_input *ret_site)
{
    static struct site_block blocks[SITE_BLOCKS_MAX];

    for (size_t i = 0; i < count; i++) {
        blocks[i] = (struct site_block){((double)i + 0.5) / (double)count,
                                        SITE_NEVER, 1000};
    }
    site_build(blocks, count, ret_site);
}
