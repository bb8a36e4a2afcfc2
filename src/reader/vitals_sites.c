/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The call sites, for what they hold together; see vitals_parts.h.
 *
 * Invariant: the table is read once, a piece at a time: of a large recording
 * it is megabytes, of which few are used.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/word.h"
#include "format/account.h"
#include "reader/snapshot_copy.h"
#include "reader/vitals_parts.h"

#define CHUNK_SITES 512U

static uint32_t load32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* Entry 0 is no call site, and counts when anything happened at it. */
static bool is_used(const struct seep_rec_site *site, uint32_t index)
{
    return index == 0 ? seep_word_load(&site->event_count) != 0
                      : load32(&site->state) == SEEP_PUBLISHED;
}

static int keep(struct seep_vitals_copy *copy,
                const struct seep_vitals_site *site)
{
    if (copy->other_count == copy->other_capacity) {
        size_t capacity = copy->other_capacity * 2 + 64;
        struct seep_vitals_site *grown =
            reallocarray(copy->others, capacity, sizeof(*grown));

        if (grown == NULL) {
            return -ENOMEM;
        }
        copy->others = grown;
        copy->other_capacity = capacity;
    }
    copy->others[copy->other_count++] = *site;
    return 0;
}

/* What is pending of it lies in the private entry, which began at 0. */
static int add_site(struct seep_vitals_copy *copy,
                    const struct seep_rec_site *from, uint32_t index,
                    struct seep_vitals_totals *totals)
{
    const struct seep_rec_site *more = &copy->view.sites[index];
    struct seep_vitals_site site = {
        .series = load32(&from->series),
        .device = seep_vitals_device_of(from),
        .first_tick = load32(&from->first_tick),
        .pending_tick = load32(&more->last_tick),
        .live_bytes = (double)seep_account_live_bytes(from),
        .pending_bytes =
            (double)(int64_t)(seep_word_load(&more->allocated_bytes) -
                              seep_word_load(&more->freed_bytes)),
    };
    double live = site.live_bytes + site.pending_bytes;
    uint32_t last = load32(&from->last_tick);

    if (from->space >= SEEP_SPACE_COUNT) {
        return 0;
    }
    totals->live_bytes[from->space] += live;
    if (site.device >= 0) {
        totals->device_bytes[site.device] += live;
    }
    seep_vitals_note(&totals->when, last);
    seep_vitals_note(&totals->when, site.pending_tick);
    return seep_vitals_is_on_host(from->space) ? 0 : keep(copy, &site);
}

int seep_vitals_add_sites(struct seep_vitals_copy *copy,
                          struct seep_vitals_totals *totals)
{
    const struct seep_rec_section *section =
        &copy->view.header->sections[SEEP_SECTION_SITES];
    struct seep_rec_site *chunk = malloc(CHUNK_SITES * sizeof(*chunk));
    int error = chunk == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; error == 0 && i < section->entry_count;
         i += CHUNK_SITES) {
        uint32_t count = section->entry_count - i;

        count = count < CHUNK_SITES ? count : CHUNK_SITES;
        error = seep_snapshot_read(copy->fd, chunk,
                                   section->offset_bytes +
                                       (uint64_t)i * sizeof(*chunk),
                                   count * sizeof(*chunk));
        for (uint32_t j = 0; error == 0 && j < count; j++) {
            if (is_used(&chunk[j], i + j)) {
                error = add_site(copy, &chunk[j], i + j, totals);
            }
        }
    }
    free(chunk);
    return error;
}
