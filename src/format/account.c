/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A site's totals and series by one event.
 *
 * What keeps its series grows with what there is to tell: the totals alone,
 * then a brief, then a series. Each begins with all that the one before said,
 * so that no event is told twice, nor left out.
 */
#include "format/account.h"

#include <string.h>

#include "base/word.h"
#include "format/series.h"

/* What a site must hold to be given a series when few are left, and how long
 * it must have been there, by how many quarters of the pool are used: what a
 * program makes as it starts comes once, and never grows. */
#define SERIES_AT_BYTES (UINT64_C(64) << 10)
#define SERIES_QUARTERS 4U
static const uint32_t series_after_ticks[SERIES_QUARTERS] = {0, 1000, 4000,
                                                             16000};

uint64_t seep_account_live_bytes(const struct seep_rec_site *site)
{
    uint64_t allocated = seep_word_load(&site->allocated_bytes);
    uint64_t freed = seep_word_load(&site->freed_bytes);

    /* An event that was under way when its folder was abandoned may have been
     * applied twice. */
    return freed < allocated ? allocated - freed : 0;
}

struct seep_weight seep_account_weight(const struct seep_block *block)
{
    struct seep_weight weight = seep_weight_of(block->size, block->sample_log2);

    if (block->fragment) {
        weight.count_q16 = 0;
    }
    return weight;
}

static uint32_t edge_of(const struct seep_view *view, uint32_t tick)
{
    return seep_series_edge(tick, seep_word_load(&view->header->final_tick));
}

/* What keeps a site's time series; both NULL: nothing does. */
struct track {
    struct seep_rec_series *series;
    struct seep_rec_brief *brief;
};

static struct track track_at(const struct seep_view *view, uint32_t index)
{
    uint32_t number = seep_word_load(&view->sites[index].series);
    uint32_t brief = number & ~SEEP_SERIES_IS_BRIEF;
    struct track track = {NULL, NULL};

    if (number == 0) {
        return track;
    }
    if (brief == number && number <= view->series_capacity) {
        track.series = &view->series[number - 1];
    } else if (brief != number && brief != 0 && brief <= view->brief_capacity) {
        track.brief = &view->briefs[brief - 1];
    }
    return track;
}

static void set_track(const struct seep_view *view, uint32_t index,
                      uint32_t number)
{
    seep_word_store(&view->sites[index].series, number);
}

/* Is it worth a series, at an event of @tick? What is charged to no call site
 * always is; and what has shown that it comes again, with a brief that goes
 * on, sooner than others. */
static bool deserves_series(const struct seep_view *view, uint32_t index,
                            uint32_t tick, bool goes_on, uint32_t used)
{
    const struct seep_rec_site *site = &view->sites[index];
    uint32_t first = seep_word_load(&site->first_tick);
    uint64_t quarter = (uint64_t)used * SERIES_QUARTERS / view->series_capacity;

    quarter -= goes_on && quarter > 0;
    if (index == 0 || quarter == 0) {
        return true;
    }
    if (tick < first || tick - first < series_after_ticks[quarter]) {
        return false;
    }
    return quarter < SERIES_QUARTERS - 1 ||
           seep_account_live_bytes(site) >= SERIES_AT_BYTES;
}

/* An entry of SERIES for a site that is worth one; its number, 0: none. */
static uint32_t take_series(const struct seep_view *view, uint32_t index,
                            uint32_t tick, bool goes_on)
{
    _Atomic uint32_t *count = &view->header->series_count;
    uint32_t used = seep_word_load(count);
    uint32_t taken;

    return used < view->series_capacity &&
                   deserves_series(view, index, tick, goes_on, used) &&
                   seep_view_take(view, SEEP_SECTION_SERIES, count,
                                  view->series_capacity, &taken)
               ? taken + 1
               : 0;
}

/*
 * A series for a site: with what @brief says, if there is one, and else from
 * here on. Where there is none to be had the site has neither.
 */
static struct track give_series(const struct seep_view *view, uint32_t index,
                                uint32_t tick,
                                const struct seep_rec_brief *brief)
{
    bool goes_on = track_at(view, index).brief != NULL;
    uint32_t number = take_series(view, index, tick, goes_on);
    struct track track = {NULL, NULL};

    if (number != 0) {
        track.series = &view->series[number - 1];
    } else if (goes_on) {
        seep_view_count(view, SEEP_COUNT_SERIES_FULL, 1);
    }
    if (number != 0 && brief != NULL) {
        seep_brief_expand(brief, track.series);
    } else if (number != 0) {
        seep_series_start(track.series, index, tick,
                          seep_account_live_bytes(&view->sites[index]));
    }
    set_track(view, index, number);
    return track;
}

bool seep_account_is_whole(const struct seep_rec_site *site)
{
    uint64_t events = seep_word_load(&site->event_count);
    uint64_t freed = seep_word_load(&site->freed_bytes);

    return (events == 1 && freed == 0) ||
           (events == 2 && freed == seep_word_load(&site->allocated_bytes) &&
            seep_word_load(&site->freed_count_q16) ==
                seep_word_load(&site->allocated_count_q16));
}

void seep_account_tell(const struct seep_view *view, uint32_t index,
                       struct seep_rec_brief *brief)
{
    struct seep_rec_site *site = &view->sites[index];
    struct seep_weight weight = {seep_word_load(&site->allocated_bytes),
                                 seep_word_load(&site->allocated_count_q16)};
    uint32_t first = seep_word_load(&site->first_tick);
    uint32_t last = seep_word_load(&site->last_tick);

    seep_brief_start(brief, index, first, 0);
    seep_brief_allocated(brief, first, 0, weight);
    if (seep_word_load(&site->freed_bytes) != 0) {
        seep_brief_freed(brief,
                         (struct seep_series_moment){last, edge_of(view, last)},
                         first, weight.bytes, weight);
    }
}

/* A brief for a site whose totals do not say all any more; it is told of what
 * they say. */
static struct track give_brief(const struct seep_view *view, uint32_t index)
{
    struct track track = {NULL, NULL};
    uint32_t taken;

    if (seep_view_take(view, SEEP_SECTION_BRIEFS, &view->header->brief_count,
                       view->brief_capacity, &taken)) {
        track.brief = &view->briefs[taken];
        seep_account_tell(view, index, track.brief);
        set_track(view, index, SEEP_SERIES_IS_BRIEF | (taken + 1));
    }
    return track;
}

/* The same without a brief to be had. */
static struct track give_from_totals(const struct seep_view *view,
                                     uint32_t index, uint32_t tick)
{
    struct seep_rec_brief brief;

    memset((void *)&brief, 0, sizeof(brief));
    seep_account_tell(view, index, &brief);
    return give_series(view, index, tick, &brief);
}

/* What keeps the series of a site, at an event of @tick; @closes: it frees all
 * that the site has. */
static struct track track_of(const struct seep_view *view, uint32_t index,
                             uint32_t tick, bool closes)
{
    struct seep_rec_site *site = &view->sites[index];
    uint64_t events = seep_word_load(&site->event_count);
    struct track track = track_at(view, index);

    if (seep_word_load(&site->series) != 0 ||
        (index != 0 && (events == 0 || (events == 1 && closes)))) {
        return track;
    }
    if (index != 0 && seep_account_is_whole(site)) {
        track = give_brief(view, index);
        return track.brief != NULL ? track
                                   : give_from_totals(view, index, tick);
    }
    return give_series(view, index, tick, NULL);
}

/* Events of other shards may be folded late: neither tick is the last seen. */
static void touch(struct seep_rec_site *site, uint32_t tick)
{
    uint32_t first = seep_word_load(&site->first_tick);
    uint32_t last = seep_word_load(&site->last_tick);

    if (seep_word_load(&site->event_count) == 0 || tick < first) {
        seep_word_store(&site->first_tick, tick);
    }
    if (tick > last) {
        seep_word_store(&site->last_tick, tick);
    }
    seep_word_add(&site->event_count, 1);
}

/*
 * Before an event at @tick: how the site stands at the edge of its era, if it
 * is the first one there. @return whether it is from before the edge that is
 * kept, so that what it does belongs there too
 */
static bool pass_edge(struct seep_rec_site *site, uint32_t edge)
{
    uint32_t last = seep_word_load(&site->edge_tick);

    if (edge > last) {
        seep_word_copy(&site->edge_allocated_bytes, &site->allocated_bytes);
        seep_word_copy(&site->edge_freed_bytes, &site->freed_bytes);
        seep_word_store(&site->edge_live_count_q16,
                        seep_word_load(&site->allocated_count_q16) -
                            seep_word_load(&site->freed_count_q16));
        seep_word_store(&site->edge_tick, edge);
    }
    return edge < last;
}

/* Of the totals: @block came, with @live bytes there. */
static void raise_peak(struct seep_rec_site *site, uint64_t live,
                       uint64_t size_bytes)
{
    if (live > seep_word_load(&site->peak_bytes)) {
        seep_word_store(&site->peak_bytes, live);
    }
    if (size_bytes > seep_word_load(&site->largest_bytes)) {
        seep_word_store(&site->largest_bytes, size_bytes);
    }
}

void seep_account_allocated(const struct seep_view *view,
                            const struct seep_block *block,
                            uint64_t young_bytes)
{
    struct seep_rec_site *site = &view->sites[block->site];
    struct track track = track_of(view, block->site, block->birth_tick, false);
    struct seep_weight weight = seep_account_weight(block);
    uint64_t live = seep_account_live_bytes(site);

    if (pass_edge(site, edge_of(view, block->birth_tick))) {
        seep_word_add(&site->edge_allocated_bytes, weight.bytes);
        seep_word_add(&site->edge_live_count_q16, weight.count_q16);
    }
    if (track.brief != NULL &&
        !seep_brief_allocated(track.brief, block->birth_tick, live, weight)) {
        track = give_series(view, block->site, block->birth_tick, track.brief);
    }
    if (track.series != NULL) {
        seep_series_allocated(track.series, block->birth_tick, live, weight);
    } else if (track.brief == NULL && seep_word_load(&site->event_count) != 0 &&
               live < SERIES_AT_BYTES &&
               live + weight.bytes >= SERIES_AT_BYTES &&
               seep_word_load(&view->header->series_count) >=
                   view->series_capacity) {
        seep_view_count(view, SEEP_COUNT_SERIES_FULL, 1);
    }
    seep_word_add(&site->allocated_bytes, weight.bytes);
    seep_word_add(&site->allocated_count_q16, weight.count_q16);
    raise_peak(site, live + young_bytes + weight.bytes, block->size);
    touch(site, block->birth_tick);
}

/* What both events of a block that was born in @birth and freed in @tick do,
 * where they only add: there is a series, and both are in its last bucket, and
 * in the era of the site's last event. */
static bool pass_within(const struct seep_view *view,
                        const struct seep_block *block, uint32_t tick,
                        struct seep_weight weight)
{
    struct seep_rec_site *site = &view->sites[block->site];
    struct track track = track_at(view, block->site);
    uint32_t edge = seep_word_load(&site->edge_tick);

    if (track.series == NULL || edge_of(view, block->birth_tick) != edge ||
        edge_of(view, tick) != edge ||
        !seep_series_passed(track.series, block->birth_tick, tick,
                            seep_account_live_bytes(site), weight)) {
        return false;
    }
    seep_word_add(&site->allocated_bytes, weight.bytes);
    seep_word_add(&site->freed_bytes, weight.bytes);
    seep_word_add(&site->allocated_count_q16, weight.count_q16);
    seep_word_add(&site->freed_count_q16, weight.count_q16);
    return true;
}

void seep_account_passed(const struct seep_view *view,
                         const struct seep_block *block, uint32_t tick,
                         uint64_t young_bytes)
{
    struct seep_rec_site *site = &view->sites[block->site];
    struct seep_weight weight = seep_account_weight(block);
    uint64_t live = seep_account_live_bytes(site);

    if (!pass_within(view, block, tick, weight)) {
        seep_account_allocated(view, block, young_bytes);
        seep_account_freed(view, block->site, tick, block->birth_tick, weight);
        return;
    }
    raise_peak(site, live + young_bytes + weight.bytes, block->size);
    touch(site, block->birth_tick);
    touch(site, tick);
}

bool seep_account_freed(const struct seep_view *view, uint32_t site,
                        uint32_t tick, uint32_t birth_tick,
                        struct seep_weight weight)
{
    struct seep_rec_site *entry = &view->sites[site];
    struct seep_series_moment when = {tick, edge_of(view, tick)};
    uint64_t live = seep_account_live_bytes(entry);
    struct track track = track_of(
        view, site, tick,
        weight.bytes == seep_word_load(&entry->allocated_bytes) &&
            weight.count_q16 == seep_word_load(&entry->allocated_count_q16));

    if (pass_edge(entry, when.edge)) {
        seep_word_add(&entry->edge_freed_bytes, weight.bytes);
        seep_word_add(&entry->edge_live_count_q16, 0 - weight.count_q16);
    }
    if (track.brief != NULL &&
        !seep_brief_freed(track.brief, when, birth_tick, live, weight)) {
        track = give_series(view, site, tick, track.brief);
    }
    if (track.series != NULL) {
        seep_series_freed(track.series, when, birth_tick, live, weight);
    }
    seep_word_add(&entry->freed_bytes, weight.bytes);
    seep_word_add(&entry->freed_count_q16, weight.count_q16);
    touch(entry, tick);
    /* What the totals say a series will be told, if there comes one. */
    return track.series != NULL || track.brief != NULL ||
           (site != 0 && seep_account_is_whole(entry));
}

void seep_account_restored(const struct seep_view *view, uint32_t tick,
                           const struct seep_block *block)
{
    struct seep_rec_site *entry = &view->sites[block->site];
    struct track track = track_at(view, block->site);
    struct seep_weight weight = seep_account_weight(block);
    struct seep_series_moment when = {tick, edge_of(view, tick)};

    if (pass_edge(entry, when.edge)) {
        seep_word_add(&entry->edge_freed_bytes, 0 - weight.bytes);
        seep_word_add(&entry->edge_live_count_q16, weight.count_q16);
    }
    /* A brief begins only where the totals say all: it knows of every free. */
    if (track.brief != NULL &&
        !seep_brief_restored(track.brief, when, block->birth_tick, weight)) {
        track = give_series(view, block->site, tick, track.brief);
    }
    if (track.series != NULL && block->in_series) {
        seep_series_restored(track.series, when, block->birth_tick, weight);
    } else if (track.series != NULL) {
        /* It began in between, and knows nothing of it: it is found. */
        seep_word_add(&track.series->base_bytes, weight.bytes);
    }
    /* Of totals that say all the free is not an event any more. */
    if (track.series == NULL && track.brief == NULL &&
        seep_account_is_whole(entry)) {
        seep_word_store(&entry->event_count, 1);
    }
    seep_word_add(&entry->freed_bytes, 0 - weight.bytes);
    seep_word_add(&entry->freed_count_q16, 0 - weight.count_q16);
}

void seep_account_reweighed(const struct seep_view *view, uint32_t site,
                            uint32_t birth_tick, struct seep_weight before,
                            struct seep_weight after)
{
    struct seep_rec_site *entry = &view->sites[site];
    struct track track = track_at(view, site);

    /* It was alive at every edge since its birth. */
    if (birth_tick < seep_word_load(&entry->edge_tick)) {
        seep_word_add(&entry->edge_allocated_bytes, after.bytes - before.bytes);
        seep_word_add(&entry->edge_live_count_q16,
                      after.count_q16 - before.count_q16);
    }
    if (track.brief != NULL &&
        !seep_brief_reweighed(track.brief, birth_tick, before, after)) {
        track = give_series(view, site, birth_tick, track.brief);
    }
    if (track.series != NULL) {
        seep_series_reweighed(track.series, birth_tick, before, after);
    }
    seep_word_add(&entry->allocated_bytes, after.bytes - before.bytes);
    seep_word_add(&entry->allocated_count_q16,
                  after.count_q16 - before.count_q16);
}
