/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Between the files of the fold; nobody else includes this.
 *
 * A seep_fold_<event> function returns false, having changed nothing that
 * doing it again would change twice, when a site it needs is held by another
 * thread.
 */
#ifndef SEEP_FORMAT_FOLD_PARTS_H
#define SEEP_FORMAT_FOLD_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/fold.h"
#include "format/live.h"

struct seep_fold_event {
    uint64_t address;
    uint64_t size;
    uint32_t site;
    uint32_t tick;
    unsigned kind;
    unsigned sample_log2;
};

bool seep_fold_lock_site(struct seep_fold *fold, uint32_t site);
void seep_fold_unlock_site(struct seep_fold *fold, uint32_t site);
void seep_fold_forget(struct seep_fold *fold, uint64_t address);
void seep_fold_flow(struct seep_rec_shard *shard, uint32_t tick,
                    uint64_t allocated_bytes, uint64_t freed_bytes);

/* fold_blocks.c: blocks, found by their exact address */
bool seep_fold_alloc(struct seep_fold *fold, const struct seep_live *live,
                     const struct seep_fold_event *event);
bool seep_fold_free(struct seep_fold *fold, const struct seep_live *live,
                    const struct seep_fold_event *event);
bool seep_fold_restore(struct seep_fold *fold, const struct seep_live *live,
                       const struct seep_fold_event *event);
/**
 * Take the entry at @index out and account it as freed at @tick.
 *
 * @param ret_block  what was taken out, for seep_fold_stash()
 */
bool seep_fold_close(struct seep_fold *fold, const struct seep_live *live,
                     uint32_t index, uint32_t tick,
                     struct seep_block *ret_block);
/** Forget what earlier events took out at @address: those succeeded. */
void seep_fold_unstash(const struct seep_live *live, uint64_t address);
void seep_fold_stash(const struct seep_live *live, uint64_t address,
                     const struct seep_block *block);
bool seep_fold_insert(struct seep_fold *fold, const struct seep_live *live,
                      const struct seep_block *block);

/* fold_ranges.c: mappings, cut and joined as munmap pleases */
bool seep_fold_map(struct seep_fold *fold, const struct seep_live *live,
                   const struct seep_fold_event *event);
bool seep_fold_unmap(struct seep_fold *fold, const struct seep_live *live,
                     const struct seep_fold_event *event);

/* fold_thin.c: keeping the table small */
unsigned seep_fold_level(const struct seep_view *view);
bool seep_fold_coin(struct seep_fold *fold, uint64_t size, unsigned from_log2,
                    unsigned to_log2);
void seep_fold_thin(struct seep_fold *fold, const struct seep_live *live,
                    uint32_t shard);

#endif
