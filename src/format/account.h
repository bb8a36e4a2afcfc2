/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a site's totals and series become by one event.
 *
 * Invariant: allocated - freed = live, in bytes and in count, for the site and
 * for each cohort of its series, after every call.
 *
 * Threads: one at a time a site, who holds its lock.
 */
#ifndef SEEP_FORMAT_ACCOUNT_H
#define SEEP_FORMAT_ACCOUNT_H

#include "format/live.h"
#include "format/view.h"

/** Live bytes of a site by its totals. */
uint64_t seep_account_live_bytes(const struct seep_rec_site *site);

/** The weight of @block: bytes and count, 0 blocks for a fragment. */
struct seep_weight seep_account_weight(const struct seep_block *block);

/**
 * Do the totals of a site without a series say all? Of a site that has had one
 * allocation, and at most a free of all of it, they do.
 */
bool seep_account_is_whole(const struct seep_rec_site *site);

/** Tell @brief, which is all zero, what the totals of such a site say. */
void seep_account_tell(const struct seep_view *view, uint32_t index,
                       struct seep_rec_brief *brief);

/**
 * @block was born, at its birth_tick, at its site.
 *
 * @param young_bytes  what was live there besides, and is accounted as freed
 */
void seep_account_allocated(const struct seep_view *view,
                            const struct seep_block *block,
                            uint64_t young_bytes);

/** The same, and then it was freed at @tick: as by the two in turn. */
void seep_account_passed(const struct seep_view *view,
                         const struct seep_block *block, uint32_t tick,
                         uint64_t young_bytes);

/**
 * @weight of those born at @birth_tick at @site was freed at @tick.
 *
 * @return false if the site has no series that saw it
 */
bool seep_account_freed(const struct seep_view *view, uint32_t site,
                        uint32_t tick, uint32_t birth_tick,
                        struct seep_weight weight);

/** The free of @block at @tick is taken back; see its .in_series. */
void seep_account_restored(const struct seep_view *view, uint32_t tick,
                           const struct seep_block *block);

/** Thinning: a block born at @birth_tick weighs @after instead of @before. */
void seep_account_reweighed(const struct seep_view *view, uint32_t site,
                            uint32_t birth_tick, struct seep_weight before,
                            struct seep_weight after);

#endif
