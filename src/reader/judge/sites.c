/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the tables of a snapshot to one entry a row.
 *
 * Invariant: the tables are read once, and what all rows hold together is what
 * all sites hold, whatever a row is.
 */
#include "reader/judge/sites.h"
#include "reader/recording/rewind.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/account.h"
#include "format/live.h"
#include "format/series.h"
#include "reader/recording/footprint.h"

/* The series of a row as the sum of its sites'. Invariant: a row of one site
 * reads as that site does, to the byte. */

bool seep_sites_has_series(const struct seep_site_work *work)
{
    return work->series.kind != SEEP_SERIES_NONE || work->loose_count > 0;
}

/* On the grid of the run; not of a damaged file, where it may be on another. */
static bool fits(const struct seep_series_table *sum,
                 const struct seep_series_table *table)
{
    return table->width_log2 == sum->width_log2 && table->count == sum->count;
}

static void add_bucket(struct seep_series_bucket *sum,
                       const struct seep_series_bucket *bucket)
{
    sum->live_bytes += bucket->live_bytes;
    sum->low_bytes += bucket->low_bytes;
    sum->allocated_bytes += bucket->allocated_bytes;
    sum->freed_bytes += bucket->freed_bytes;
    sum->born_freed_bytes += bucket->born_freed_bytes;
    sum->born_count_q16 += bucket->born_count_q16;
    sum->born_freed_count_q16 += bucket->born_freed_count_q16;
    sum->died_bytes += bucket->died_bytes;
    sum->died_count_q16 += bucket->died_count_q16;
}

static void add_table(struct seep_series_table *sum,
                      const struct seep_series_table *table)
{
    if (!fits(sum, table)) {
        return;
    }
    sum->first = table->first < sum->first ? table->first : sum->first;
    for (uint32_t i = 0; i < sum->count; i++) {
        add_bucket(&sum->buckets[i], &table->buckets[i]);
    }
}

/* @rise: live bytes from each bucket on */
static void add_loose(struct seep_series_table *sum, uint64_t *rise,
                      const struct seep_site_loose *loose)
{
    uint32_t at = loose->birth_tick >> sum->width_log2;

    at = at < sum->count ? at : sum->count - 1;
    sum->first = at < sum->first ? at : sum->first;
    sum->buckets[at].allocated_bytes += loose->bytes;
    sum->buckets[at].born_count_q16 += loose->count_q16;
    rise[at] += loose->bytes;
}

static void raise(struct seep_series_table *sum, const uint64_t *rise)
{
    uint64_t live = 0;

    for (uint32_t i = 0; i < sum->count; i++) {
        sum->buckets[i].low_bytes += live;
        live += rise[i];
        sum->buckets[i].live_bytes += live;
        /* Of a damaged file the sums may have gone round. */
        if (sum->buckets[i].low_bytes > sum->buckets[i].live_bytes) {
            sum->buckets[i].low_bytes = sum->buckets[i].live_bytes;
        }
    }
}

void seep_sites_read_series(const struct seep_sites *sites,
                            const struct seep_site_work *work,
                            struct seep_series_grid grid,
                            struct seep_series_table *ret_table)
{
    uint64_t rise[SEEP_BUCKET_COUNT] = {0};

    if (work->member_count <= 1) {
        seep_series_read(work->series, work->first_tick, grid, ret_table);
        return;
    }
    seep_series_start_table(grid, ret_table);
    for (size_t i = 0; i < work->member_count; i++) {
        const struct seep_site_member *member =
            &sites->members[work->member_first + i];
        struct seep_series_table table;

        if (member->series.kind != SEEP_SERIES_NONE) {
            seep_series_read(member->series, member->first_tick, grid, &table);
            add_table(ret_table, &table);
        }
    }
    for (size_t i = 0; i < work->loose_count; i++) {
        add_loose(ret_table, rise, &sites->loose[work->loose_first + i]);
    }
    raise(ret_table, rise);
}

/*
 * The survivors. Invariant: the survivors of all rows lie in one array,
 * grouped by counting, never searched; in a row in the order of the live table.
 */

/* What counts of an entry of the live table. */
struct entry {
    uint32_t work; /* index in works */
    uint32_t tick;
    uint64_t size_level;
    uint32_t rounding; /* that it takes of memory beyond its size */
    bool loose;        /* nothing but this tells when it was born */
};

/* A row of one site without series is not judged at all. */
static bool is_loose(const struct seep_view *view,
                     const struct seep_site_work *work, uint32_t site)
{
    return work->member_count > 1 &&
           seep_series_source_of(view, site).kind == SEEP_SERIES_NONE;
}

/* 0 where nothing was charged. */
static uint32_t rounding_of(const struct seep_snapshot *snapshot,
                            enum seep_space space,
                            const struct seep_rec_live *live)
{
    struct seep_block block = seep_live_read(live);

    return snapshot->requested == NULL
               ? 0
               : (uint32_t)(seep_footprint_of(snapshot->allocator, space,
                                              block.address, block.size) -
                            block.size);
}

/* What is at @index of the live table. @return whether it belongs to a site */
static bool read_entry(const struct seep_snapshot *snapshot,
                       const struct seep_sites *sites,
                       const uint32_t *work_of_site, uint32_t index,
                       struct entry *ret_entry)
{
    const struct seep_view *view = &snapshot->view;
    struct seep_rec_live *live = &view->live[index];
    uint32_t site = seep_word_load(&live->site);

    if (seep_word_load(&live->address) == 0 || site >= view->site_capacity ||
        work_of_site[site] == 0) {
        return false;
    }
    *ret_entry = (struct entry){
        .work = work_of_site[site] - 1,
        .tick = seep_word_load(&live->birth_tick),
        .size_level = seep_word_load(&live->size_level),
        .rounding = rounding_of(snapshot,
                                (enum seep_space)view->sites[site].space, live),
        .loose = is_loose(view, &sites->works[work_of_site[site] - 1], site),
    };
    return true;
}

/* The entries that belong to a site, in one array: the table is large, mostly
 * empty, and read once. @return their number, or SIZE_MAX without memory */
static size_t list_entries(const struct seep_snapshot *snapshot,
                           struct seep_sites *sites,
                           const uint32_t *work_of_site,
                           struct entry **ret_entries)
{
    const struct seep_view *view = &snapshot->view;
    struct entry *entries;
    size_t count = 0;

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        count += seep_word_load(&view->live[i].address) != 0;
    }
    entries = malloc((count + 1) * sizeof(*entries));
    if (entries == NULL) {
        return SIZE_MAX;
    }
    count = 0;
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        if (read_entry(snapshot, sites, work_of_site, i, &entries[count])) {
            struct seep_site_work *work = &sites->works[entries[count].work];

            work->survivor_count++;
            work->loose_count += entries[count].loose;
            count++;
        }
    }
    *ret_entries = entries;
    return count;
}

static unsigned level_of(const struct entry *entry)
{
    return (unsigned)(entry->size_level >> SEEP_SIZE_BITS) & 63;
}

/* Its bytes are those that it takes of memory; it was sampled by its size. */
static struct seep_weight weight_of(const struct entry *entry)
{
    uint64_t size = entry->size_level & SEEP_SIZE_MASK;
    struct seep_weight weight = seep_weight_of(size, level_of(entry));

    if (entry->rounding != 0) {
        weight.bytes +=
            (uint64_t)(entry->rounding /
                           seep_weight_probability(size, level_of(entry)) +
                       0.5);
    }
    return weight;
}

/* So many that were looked at stand for all, or so large a share. */
#define LOOKED_COUNT 32
#define LOOKED_SHARE 0.5

static bool has_pages(enum seep_space space)
{
    return space == SEEP_SPACE_MAPPED || space == SEEP_SPACE_HEAP ||
           space == SEEP_SPACE_PYTHON;
}

static void add_touched(struct seep_site_work *work, const struct entry *entry,
                        bool is_late)
{
    struct seep_site_look *look = is_late ? &work->late : &work->early;
    double bytes = (double)weight_of(entry).bytes;
    double share = seep_live_touched(entry->size_level);

    if (!has_pages(work->site.space)) {
        return;
    }
    if (work->site.space != SEEP_SPACE_MAPPED &&
        (entry->size_level & SEEP_SIZE_MASK) < SEEP_TOUCHED_LEAST_BYTES) {
        look->small_bytes += bytes;
    } else if (share >= 0) {
        look->count++;
        look->bytes += bytes;
        look->touched_bytes += bytes * fmin(share, 1);
    }
}

/* Of @live bytes the share that is touched; @unknown where too few of those
 * that can be looked at were. */
static double share_of(const struct seep_site_look *look, double live,
                       double unknown)
{
    double large = fmax(0, live - look->small_bytes);

    if (!(look->bytes > 0) ||
        (look->count < LOOKED_COUNT && look->bytes < LOOKED_SHARE * large)) {
        return unknown;
    }
    return live > 0 ? (fmin(live, look->small_bytes) +
                       large * look->touched_bytes / look->bytes) /
                          live
                    : look->touched_bytes / look->bytes;
}

/* What is reserved and not touched is no memory: neither live nor a reason for
 * a higher floor. */
static void finish_touched(struct seep_sites *sites,
                           struct seep_site_work *work)
{
    struct seep_report_site *site = &work->site;
    const struct seep_site_look all = {
        work->early.count + work->late.count,
        work->early.bytes + work->late.bytes,
        work->early.touched_bytes + work->late.touched_bytes,
        work->early.small_bytes + work->late.small_bytes,
    };
    double live = (double)site->live_bytes;
    double early = fmin(site->window_bytes[0], live);
    double share = share_of(&all, live, -1);
    uint64_t *sum = &sites->live_bytes[seep_sites_place_of(site)];

    work->touched_share = 1;
    work->grown_share = 1;
    work->elsewhere_share =
        work->there_bytes > 0
            ? fmin(1, work->elsewhere_bytes / work->there_bytes)
            : 0;
    site->touched_bytes = -1;
    if (share < 0) {
        return;
    }
    work->grown_share = share_of(&work->late, live - early, share);
    site->touched_bytes = early * share_of(&work->early, early, share) +
                          (live - early) * work->grown_share;
    site->elsewhere_bytes = work->elsewhere_share * site->touched_bytes;
    work->touched_share = live > 0 ? site->touched_bytes / live : share;
    *sum -= (uint64_t)(live - site->touched_bytes);
}

static void add_survivor(struct seep_site_work *work, const struct entry *entry,
                         const struct seep_clock *clock, uint64_t old_ticks,
                         struct seep_survivor *ret_survivor)
{
    uint64_t size = entry->size_level & SEEP_SIZE_MASK;
    double tick = entry->tick;
    double bytes = (double)weight_of(entry).bytes;
    double born = fmax(0, tick - (double)clock->begin_tick);
    double worked = fmax(1, (double)(clock->end_tick - clock->begin_tick));
    int window =
        (int)fmin(born * SEEP_GROWTH_WINDOWS / worked, SEEP_GROWTH_WINDOWS - 1);

    ret_survivor->birth = seep_clock_at(clock, tick);
    ret_survivor->birth_tick = (uint32_t)born;
    ret_survivor->size_bytes = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    ret_survivor->weight = bytes;
    ret_survivor->variance =
        level_of(entry) == 0
            ? 0
            : bytes * bytes *
                  (1 - seep_weight_probability(size, level_of(entry)));
    work->variance += ret_survivor->variance;
    work->site.window_bytes[window] += bytes;
    work->early_bytes += tick < (double)clock->begin_tick ? bytes : 0;
    work->old_count += entry->tick + old_ticks <= clock->end_tick;
    add_touched(work, entry, window > 0);
}

static void add_loose_block(struct seep_site_work *work,
                            const struct entry *entry,
                            struct seep_site_loose *ret_loose)
{
    struct seep_weight weight = weight_of(entry);
    bool is_fragment = (entry->size_level & SEEP_LIVE_FRAGMENT) != 0;

    *ret_loose = (struct seep_site_loose){
        .birth_tick = entry->tick,
        .bytes = weight.bytes,
        .count_q16 = is_fragment ? 0 : weight.count_q16,
    };
    work->loose_bytes += (double)weight.bytes;
}

/* Where each row's part of the arrays begins. */
static size_t place_rows(struct seep_sites *sites, size_t *next)
{
    size_t first = 0;
    size_t loose = 0;

    for (size_t i = 0; i < sites->count; i++) {
        struct seep_site_work *work = &sites->works[i];

        work->survivor_first = first;
        next[i] = first;
        first += work->survivor_count;
        work->loose_first = loose;
        loose += work->loose_count;
    }
    return loose;
}

/* Counting sort by row. Takes @entries, which are gone before there is more:
 * of a million blocks each array is 24 MB.
 * @return as many, to be freed; NULL without memory */
static struct entry *sort_entries(struct seep_sites *sites,
                                  struct entry *entries, size_t count,
                                  size_t *ret_loose_count)
{
    struct entry *sorted = malloc((count + 1) * sizeof(*sorted));
    size_t *next = malloc((sites->count + 1) * sizeof(*next));

    if (sorted == NULL || next == NULL) {
        free(sorted);
        sorted = NULL;
    } else {
        *ret_loose_count = place_rows(sites, next);
        for (size_t i = 0; i < count; i++) {
            sorted[next[entries[i].work]++] = entries[i];
        }
    }
    free(next);
    free(entries);
    return sorted;
}

/* One row after the other. */
static int group_entries(struct seep_sites *sites,
                         const struct seep_clock *clock,
                         const struct entry *sorted, size_t count,
                         size_t loose_count)
{
    uint64_t old_ticks = seep_evidence_old_ticks(clock);
    size_t loose = 0;

    sites->survivors = malloc((count + 1) * sizeof(*sites->survivors));
    sites->loose = malloc((loose_count + 1) * sizeof(*sites->loose));
    if (sites->survivors == NULL || sites->loose == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct seep_site_work *work = &sites->works[sorted[i].work];

        add_survivor(work, &sorted[i], clock, old_ticks, &sites->survivors[i]);
        if (sorted[i].loose) {
            add_loose_block(work, &sorted[i], &sites->loose[loose++]);
        }
    }
    sites->survivor_count = count;
    return 0;
}

/* Fill survivors and loose blocks of @sites, whose rows are listed. */
static int add_survivors(const struct seep_snapshot *snapshot,
                         const struct seep_clock *clock,
                         const uint32_t *work_of_site, struct seep_sites *sites)
{
    struct entry *entries = NULL;
    size_t count = list_entries(snapshot, sites, work_of_site, &entries);
    size_t loose_count = 0;
    struct entry *sorted =
        count == SIZE_MAX ? NULL
                          : sort_entries(sites, entries, count, &loose_count);
    int error = sorted == NULL
                    ? -ENOMEM
                    : group_entries(sites, clock, sorted, count, loose_count);

    free(sorted);
    return error;
}

/* What the survivors add up to in each row, and none of them. */
static void sum_survivors(const struct seep_snapshot *snapshot,
                          const struct seep_clock *clock,
                          const uint32_t *work_of_site,
                          struct seep_sites *sites)
{
    uint64_t old_ticks = seep_evidence_old_ticks(clock);
    struct seep_survivor survivor;
    struct entry entry;

    for (uint32_t i = 0; i < snapshot->view.live_capacity; i++) {
        if (read_entry(snapshot, sites, work_of_site, i, &entry)) {
            add_survivor(&sites->works[entry.work], &entry, clock, old_ticks,
                         &survivor);
        }
    }
}

static double blocks_of(uint64_t count_q16)
{
    return (double)count_q16 / (double)SEEP_COUNT_ONE;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void seep_sites_add_requested(struct seep_report_requested *sum,
                              const struct seep_report_requested *more)
{
    sum->live_bytes += more->live_bytes;
    sum->allocated_bytes += more->allocated_bytes;
    sum->freed_bytes += more->freed_bytes;
}

/* Of several sites it is not known when each was at its peak: the least that
 * the peak of all can have been. */
static void add_totals(const struct seep_snapshot *snapshot,
                       struct seep_site_work *work, uint32_t index)
{
    struct seep_rec_site *from = &snapshot->view.sites[index];
    struct seep_report_site *site = &work->site;
    uint64_t allocated = seep_word_load(&from->allocated_bytes);
    uint64_t freed = seep_word_load(&from->freed_bytes);
    uint64_t live = allocated > freed ? allocated - freed : 0;
    uint32_t first_tick = seep_word_load(&from->first_tick);

    if (work->member_count == 0 || live > site->stack_live_bytes) {
        work->index = index;
        site->stack_live_bytes = live;
        site->stack_allocated_bytes = allocated;
        site->stack_allocated_count =
            blocks_of(seep_word_load(&from->allocated_count_q16));
    }
    site->space = (enum seep_space)from->space;
    site->device = seep_sites_device_of(from);
    site->allocated_bytes += allocated;
    site->freed_bytes += freed;
    seep_sites_add_requested(
        &site->requested,
        snapshot->requested != NULL
            ? &snapshot->requested[index]
            : &(struct seep_report_requested){live, allocated, freed});
    site->allocated_count +=
        blocks_of(seep_word_load(&from->allocated_count_q16));
    site->freed_count += blocks_of(seep_word_load(&from->freed_count_q16));
    site->peak_bytes =
        larger(site->peak_bytes, seep_word_load(&from->peak_bytes));
    site->largest_bytes =
        larger(site->largest_bytes, seep_word_load(&from->largest_bytes));
    work->event_count += seep_word_load(&from->event_count);
    if (work->member_count == 0 || first_tick < work->first_tick) {
        work->first_tick = first_tick;
    }
    site->last_s = fmax(site->last_s,
                        seep_sites_seconds(seep_word_load(&from->last_tick)));
}

/* @series may be NULL */
static void add_elsewhere(struct seep_site_work *work,
                          const struct seep_rec_series *series)
{
    if (series != NULL) {
        work->there_bytes += (double)seep_word_load(&series->touched_bytes);
        work->elsewhere_bytes +=
            (double)seep_word_load(&series->elsewhere_bytes);
    }
}

static void add_member(const struct seep_snapshot *snapshot,
                       struct seep_site_work *work, uint32_t index,
                       struct seep_site_member *ret_member)
{
    const struct seep_view *view = &snapshot->view;
    struct seep_rec_site *site = &view->sites[index];

    ret_member->index = index;
    ret_member->first_tick = seep_word_load(&site->first_tick);
    ret_member->series = seep_series_source_of(view, index);
    if (work->series.kind == SEEP_SERIES_NONE) {
        work->series = ret_member->series;
    }
    if (ret_member->series.kind == SEEP_SERIES_NONE) {
        work->loose_born +=
            blocks_of(seep_word_load(&site->allocated_count_q16));
        work->loose_freed += blocks_of(seep_word_load(&site->freed_count_q16));
    }
    work->site.torn |= snapshot->torn[index] != 0;
    add_elsewhere(work, seep_rewind_series_of(view, index));
    add_totals(snapshot, work, index);
    work->member_count++;
}

static void finish_totals(struct seep_sites *sites)
{
    for (size_t i = 0; i < sites->count; i++) {
        struct seep_site_work *work = &sites->works[i];
        struct seep_report_site *site = &work->site;

        work->index = work->is_rest ? 0 : work->index;
        if (site->allocated_bytes > site->freed_bytes) {
            site->live_bytes = site->allocated_bytes - site->freed_bytes;
        }
        site->live_count = fmax(0, site->allocated_count - site->freed_count);
        site->peak_bytes = larger(site->peak_bytes, site->live_bytes);
        site->stack_count = work->member_count;
        site->first_s = seep_sites_seconds(work->first_tick);
        if (seep_sites_space_holds(site->space) ||
            site->space == SEEP_SPACE_FILE) {
            sites->live_bytes[seep_sites_place_of(site)] += site->live_bytes;
        }
    }
}

/* A site by the row that it is of. */
struct keyed {
    uint64_t key;
    uint32_t index; /* in SITES */
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *left = a;
    const struct keyed *right = b;

    return left->key != right->key
               ? (left->key > right->key) - (left->key < right->key)
               : (left->index > right->index) - (left->index < right->index);
}

/*
 * Where there are very many rows, by stack of a recording that was given room
 * for a million of them: all but those that hold most.
 */

#define REST_KEY UINT64_C(0x7265737400000000) /* and the place */
#define CLASS_COUNT 65U

/* The rows that are sorted by their keys. */
struct run {
    size_t first;
    size_t end;
    unsigned class; /* of the live bytes: 0, or by powers of two */
};

static bool next_run(const struct seep_view *view, const struct keyed *keyed,
                     size_t count, struct run *run)
{
    uint64_t live = 0;

    run->first = run->end;
    for (; run->end < count && keyed[run->end].key == keyed[run->first].key;
         run->end++) {
        uint64_t more =
            seep_account_live_bytes(&view->sites[keyed[run->end].index]);

        live = live + more < live ? UINT64_MAX : live + more;
    }
    run->class = live == 0 ? 0 : 64 - (unsigned)__builtin_clzll(live);
    return run->first < run->end;
}

static uint64_t rest_key_of(const struct seep_rec_site *from)
{
    const struct seep_report_site site = {.space = (enum seep_space)from->space,
                                          .device = seep_sites_device_of(from)};

    return REST_KEY + seep_sites_place_of(&site);
}

static void merge_least(const struct seep_view *view, struct keyed *keyed,
                        size_t count)
{
    size_t counts[CLASS_COUNT] = {0};
    size_t room = SEEP_SITES_ROWS_MOST;
    unsigned class = CLASS_COUNT;
    struct run run = {.end = 0};

    while (next_run(view, keyed, count, &run)) {
        counts[run.class]++;
    }
    while (class -- > 0 && counts[class] <= room) {
        room -= counts[class];
    }
    run.end = 0;
    while (next_run(view, keyed, count, &run)) {
        if (run.class > class || (run.class == class && room > 0)) {
            room -= run.class == class;
            continue;
        }
        for (size_t i = run.first; i < run.end; i++) {
            keyed[i].key = rest_key_of(&view->sites[keyed[i].index]);
        }
    }
    qsort(keyed, count, sizeof(*keyed), compare_keyed);
}

/* The first site of its row + 1, of each. @return how many rows there are */
static size_t count_rows(const struct keyed *keyed, size_t count,
                         uint32_t *ret_work_of)
{
    uint32_t first = 0;
    size_t rows = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_new = i == 0 || keyed[i].key != keyed[i - 1].key;

        rows += is_new;
        first = is_new ? keyed[i].index : first;
        ret_work_of[keyed[i].index] = first + 1;
    }
    return rows;
}

/* Which of the rows are of the rest. */
static void mark_rest(const struct keyed *keyed, size_t count,
                      const uint32_t *work_of, struct seep_sites *sites)
{
    for (size_t i = 0; i < count; i++) {
        if (keyed[i].key >= REST_KEY &&
            keyed[i].key < REST_KEY + SEEP_PLACE_COUNT) {
            struct seep_site_work *work =
                &sites->works[work_of[keyed[i].index] - 1];

            work->is_rest = true;
            work->id = keyed[i].key;
            work->line_id = 0;
            work->site.pool = NULL;
        }
    }
}

/* Number the rows as they come. @ret_work_of: index in SITES -> row + 1 */
static int list_rows(const struct seep_view *view, struct keyed *keyed,
                     size_t count, const struct seep_site_key *keys,
                     struct seep_sites *sites, uint32_t *ret_work_of)
{
    size_t rows;

    if (keys != NULL) { /* else each is one, and they stand in order */
        qsort(keyed, count, sizeof(*keyed), compare_keyed);
    }
    rows = count_rows(keyed, count, ret_work_of);
    if (rows > SEEP_SITES_ROWS_MOST) {
        merge_least(view, keyed, count);
        rows = count_rows(keyed, count, ret_work_of);
    }
    /* A row is a kilobyte, and a line may have very many stacks. */
    sites->works = calloc(rows + 1, sizeof(*sites->works));
    if (sites->works == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (ret_work_of[i] == i + 1) {
            struct seep_site_work *work = &sites->works[sites->count++];

            work->id = keys != NULL ? keys[i].id : i;
            work->line_id = keys != NULL ? keys[i].line_id : 0;
            work->site.pool = keys != NULL ? keys[i].pool : NULL;
            ret_work_of[i] = (uint32_t)sites->count;
        } else if (ret_work_of[i] != 0) {
            ret_work_of[i] = ret_work_of[ret_work_of[i] - 1];
        }
        if (ret_work_of[i] != 0) {
            sites->works[ret_work_of[i] - 1].member_count++;
        }
    }
    mark_rest(keyed, count, ret_work_of, sites);
    return 0;
}

/* Members in the order of their rows. */
static void list_members(const struct seep_snapshot *snapshot,
                         struct seep_sites *sites, const uint32_t *work_of)
{
    const struct seep_view *view = &snapshot->view;
    size_t first = 0;

    for (size_t i = 0; i < sites->count; i++) {
        sites->works[i].member_first = first;
        first += sites->works[i].member_count;
        sites->works[i].member_count = 0;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (work_of[i] != 0) {
            struct seep_site_work *work = &sites->works[work_of[i] - 1];
            size_t at = work->member_first + work->member_count;

            add_member(snapshot, work, i, &sites->members[at]);
        }
    }
    finish_totals(sites);
}

/* Which sites of a recording. */
struct part {
    uint32_t first;
    uint32_t end;
    bool is_judged; /* their survivors are listed */
};

static int list_sites(const struct seep_snapshot *snapshot, struct part part,
                      const struct seep_site_key *keys,
                      struct seep_sites *sites, uint32_t *ret_work_of)
{
    const struct seep_view *view = &snapshot->view;
    struct keyed *keyed;
    size_t count = 0;
    int error;

    for (uint32_t i = part.first; i < part.end; i++) {
        count += seep_sites_is_used(&view->sites[i], i);
    }
    keyed = calloc(count + 1, sizeof(*keyed));
    count = 0;
    for (uint32_t i = part.first; keyed != NULL && i < part.end; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            keyed[count++] = (struct keyed){keys != NULL ? keys[i].row : i, i};
        }
    }
    sites->members = calloc(count + 1, sizeof(*sites->members));
    error = keyed == NULL || sites->members == NULL
                ? -ENOMEM
                : list_rows(view, keyed, count, keys, sites, ret_work_of);
    if (error == 0) {
        list_members(snapshot, sites, ret_work_of);
    }
    free(keyed);
    return error;
}

static int init(const struct seep_snapshot *snapshot,
                const struct seep_clock *clock, struct part part,
                const struct seep_site_key *keys, struct seep_sites *ret_sites)
{
    uint32_t *work_of_site =
        calloc((size_t)snapshot->view.site_capacity + 1, sizeof(*work_of_site));
    struct seep_sites sites = {.works = NULL};
    int error = -ENOMEM;

    if (work_of_site != NULL) {
        error = list_sites(snapshot, part, keys, &sites, work_of_site);
    }
    if (error == 0 && part.is_judged) {
        error = add_survivors(snapshot, clock, work_of_site, &sites);
    } else if (error == 0) {
        sum_survivors(snapshot, clock, work_of_site, &sites);
    }
    free(work_of_site);
    if (error != 0) {
        seep_sites_fini(&sites);
        return error;
    }
    for (size_t i = 0; i < sites.count; i++) {
        sites.works[i].site.live_bytes_error =
            1.96 * sqrt(sites.works[i].variance);
        finish_touched(&sites, &sites.works[i]);
    }
    *ret_sites = sites;
    return 0;
}

int seep_sites_init(const struct seep_snapshot *snapshot,
                    const struct seep_clock *clock,
                    const struct seep_site_key *keys,
                    struct seep_sites *ret_sites)
{
    return init(snapshot, clock,
                (struct part){0, snapshot->view.site_capacity, true}, keys,
                ret_sites);
}

int seep_sites_sum(const struct seep_snapshot *snapshot,
                   const struct seep_clock *clock, uint32_t first,
                   struct seep_sites *ret_sites)
{
    uint32_t count = snapshot->view.site_capacity;
    uint32_t end =
        count - first < SEEP_SITES_AT_ONCE ? count : first + SEEP_SITES_AT_ONCE;

    return init(snapshot, clock, (struct part){first, end, false}, NULL,
                ret_sites);
}

void seep_sites_forget_survivors(struct seep_sites *sites)
{
    free(sites->survivors);
    sites->survivors = NULL;
    sites->survivor_count = 0;
    for (size_t i = 0; i < sites->count; i++) {
        sites->works[i].survivor_count = 0;
    }
}

void seep_sites_fini(struct seep_sites *sites)
{
    free(sites->works);
    free(sites->members);
    free(sites->loose);
    free(sites->survivors);
    *sites = (struct seep_sites){.works = NULL};
}
