/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the memory of the process is: the sums of each space over time, the
 * addresses that seep knows of, and the process as it saw itself and as it was
 * seen from outside.
 *
 * Invariant: whatever a damaged file says, times ascend and figures are finite.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "reader/judge/balance.h"
#include "reader/report/build.h"

/*
 * Sums by space, over all sites: what is live in each, and was at each time.
 *
 * Invariant: the memory of the process does not depend on what a row is, so
 * these are the sites of the recording, not the rows.
 */

#define ARENA_BLOCK_BYTES_MAX 512.0 /* pymalloc's SMALL_REQUEST_THRESHOLD */
#define HOLDINGS_MAX (SEEP_SPACE_COUNT * (SEEP_DEVICES_MAX + 1))

struct space_sum {
    struct seep_report_space space;
    double variance;
    bool used;
    double live[SEEP_BUCKET_COUNT];    /* at the end of each bucket */
    double touched[SEEP_BUCKET_COUNT]; /* what of it is resident here */
};

static void add_live(struct space_sum *sum, const struct seep_site_work *work,
                     uint32_t bucket, uint64_t bytes)
{
    sum->live[bucket] += (double)bytes;
    sum->touched[bucket] +=
        (double)bytes * work->touched_share * (1 - work->elsewhere_share);
}

/* The live bytes of one site at the end of each bucket of the run's grid. */
static void add_series(struct space_sum *sum, const struct seep_site_work *work,
                       const struct seep_clock *clock)
{
    struct seep_series_course course;

    seep_series_read_course(work->series, work->first_tick,
                            seep_clock_grid(clock), &course);
    for (uint32_t i = 0, end; i < course.step_count; i++) {
        uint64_t bytes = course.steps[i].live_bytes;

        for (uint32_t at =
                 seep_series_span(&course, i, seep_clock_grid(clock), &end);
             bytes > 0 && at < end; at++) {
            add_live(sum, work, at, bytes);
        }
    }
}

/* A site without a series is small: what it holds is there from its birth. */
static void add_constant(struct space_sum *sum,
                         const struct seep_site_work *work,
                         const struct seep_clock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if ((uint64_t)(i + 1) << clock->width_log2 > work->first_tick) {
            add_live(sum, work, i, work->site.live_bytes);
        }
    }
}

static void add_site(struct space_sum *sum, const struct seep_site_work *work,
                     const struct seep_clock *clock)
{
    sum->used = true;
    sum->space.space = work->site.space;
    sum->space.live_bytes += work->site.live_bytes;
    seep_sites_add_requested(&sum->space.requested, &work->site.requested);
    sum->space.allocated_bytes += work->site.allocated_bytes;
    sum->space.freed_bytes += work->site.freed_bytes;
    sum->variance += work->variance;
    if (work->series.kind != SEEP_SERIES_NONE) {
        add_series(sum, work, clock);
    } else {
        add_constant(sum, work, clock);
    }
}

/* When each bucket of the grid ends, and what of the space was live then. */
static int keep_grid(struct seep_report_build *build)
{
    const struct seep_clock *clock = &build->clock;
    double *end_s =
        seep_store_take(&build->course, clock->count, sizeof(*end_s));

    if (end_s == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < clock->count; i++) {
        end_s[i] =
            seep_sites_bucket_end_s(i, clock->width_log2, clock->end_tick);
    }
    build->report.bucket_end_s = end_s;
    build->report.bucket_count = clock->count;
    return 0;
}

static int keep_series(struct seep_report_build *build, struct space_sum *sum)
{
    uint32_t count = build->clock.count;
    double *live = seep_store_take(&build->course, count, sizeof(*live));

    if (live == NULL) {
        return -ENOMEM;
    }
    memcpy(live, sum->live, count * sizeof(*live));
    sum->space.live = live;
    return 0;
}

static void finish(struct space_sum *sum, const struct seep_clock *clock)
{
    struct seep_window_series series;
    double end_s = seep_sites_seconds((double)clock->end_tick);

    seep_clock_series(clock, sum->live, 0, &series);
    sum->space.live_bytes_error = 1.96 * sqrt(sum->variance);
    sum->space.first_bytes = (uint64_t)fmin(sum->live[0], 1e18);
    sum->space.slope_bytes_per_s =
        seep_balance_extent_of(
            &series, seep_sites_seconds((double)clock->begin_tick), end_s)
            .slope_bytes_per_s;
}

/* What of the spaces lies in RSS. Memory of devices does not, nor do tensors
 * and imports, which are views of it; what is managed does where the host
 * touched it last. What is mapped of files is page cache where it was read:
 * shared, and none of what is private. */
static void keep_live(struct seep_report_build *build,
                      const struct space_sum *sums,
                      const struct space_sum *arenas)
{
    for (uint32_t i = 0; i < build->clock.count; i++) {
        double large = sums[SEEP_SPACE_PYTHON].live[i] - arenas->live[i];

        build->heap_live[i] = sums[SEEP_SPACE_HEAP].live[i] + large;
        build->beside_live[i] = sums[SEEP_SPACE_MAPPED].touched[i] +
                                sums[SEEP_SPACE_PINNED].live[i] +
                                sums[SEEP_SPACE_MANAGED].live[i] +
                                arenas->live[i];
        build->pinned_live[i] = sums[SEEP_SPACE_PINNED].live[i];
        build->file_live[i] = sums[SEEP_SPACE_FILE].live[i];
    }
    build->beside_variance = arenas->variance;
}

/*
 * Python's small blocks lie in mappings of its own, its large ones in the
 * allocator's. What a site allocates is mostly the one or the other.
 */
static bool is_in_arenas(const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_PYTHON &&
           (double)site->allocated_bytes <=
               ARENA_BLOCK_BYTES_MAX * site->allocated_count;
}

/* What a device holds for its calls; of managed memory it is at most that. */
static void keep_device(struct seep_report_build *build,
                        const struct seep_site_work *work)
{
    unsigned ordinal = (unsigned)work->site.device;
    struct seep_device_live *live;
    struct space_sum sum;

    if (work->site.device < 0 || ordinal >= SEEP_DEVICES_MAX) {
        return;
    }
    live = &build->devices[ordinal];
    memset(&sum, 0, sizeof(sum));
    add_site(&sum, work, &build->clock);
    for (uint32_t i = 0; i < build->clock.count; i++) {
        live->device[i] +=
            work->site.space == SEEP_SPACE_DEVICE ? sum.live[i] : 0;
        live->managed[i] +=
            work->site.space == SEEP_SPACE_MANAGED ? sum.live[i] : 0;
        live->tensors[i] +=
            work->site.space == SEEP_SPACE_TENSOR ? sum.live[i] : 0;
    }
    live->has_tensors |= work->site.space == SEEP_SPACE_TENSOR;
}

/* All that is added up before there are rows. */
struct totals {
    struct space_sum spaces[SEEP_SPACE_COUNT];
    struct space_sum arenas; /* of python, what lies in its own mappings */
    bool used[HOLDINGS_MAX];
    struct seep_report_holding holdings[HOLDINGS_MAX];
};

static void add_holding(struct totals *totals,
                        const struct seep_report_site *site)
{
    size_t device = site->device < 0 ? 0 : (size_t)site->device + 1;
    size_t at = site->space * (SEEP_DEVICES_MAX + 1) + device;
    struct seep_report_holding *holding;

    if (device > SEEP_DEVICES_MAX) {
        return;
    }
    holding = &totals->holdings[at];
    totals->used[at] = true;
    holding->space = site->space;
    holding->device = site->device;
    holding->live_bytes += site->live_bytes;
    holding->allocated_bytes += site->allocated_bytes;
    holding->freed_bytes += site->freed_bytes;
}

/* One of each space and device that there is, by both. */
static int keep_holdings(struct seep_report_build *build, struct totals *totals)
{
    struct seep_report_holding *kept;
    size_t count = 0;

    for (size_t i = 0; i < HOLDINGS_MAX; i++) {
        if (totals->used[i]) {
            totals->holdings[count++] = totals->holdings[i];
        }
    }
    kept = seep_store_take(&build->store, count, sizeof(*kept));
    if (kept == NULL) {
        return -ENOMEM;
    }
    memcpy(kept, totals->holdings, count * sizeof(*kept));
    build->report.holdings = kept;
    build->report.holding_count = count;
    return 0;
}

/* Of a million sites no more than some are there at once. */
static int add_totals(struct seep_report_build *build, struct totals *totals)
{
    uint32_t capacity = build->snapshot.view.site_capacity;
    int error = 0;

    for (uint32_t first = 0; error == 0 && first < capacity;) {
        struct seep_sites sites = {.works = NULL};

        error = seep_sites_sum(&build->snapshot, &build->clock, first, &sites);
        for (size_t i = 0; error == 0 && i < sites.count; i++) {
            const struct seep_site_work *work = &sites.works[i];

            add_site(&totals->spaces[work->site.space], work, &build->clock);
            if (is_in_arenas(&work->site)) {
                add_site(&totals->arenas, work, &build->clock);
            }
            keep_device(build, work);
            add_holding(totals, &work->site);
        }
        seep_sites_fini(&sites);
        if (capacity - first <= SEEP_SITES_AT_ONCE) {
            break;
        }
        first += SEEP_SITES_AT_ONCE;
    }
    return error;
}

static int keep_spaces(struct seep_report_build *build, struct totals *totals,
                       struct seep_report_space *spaces)
{
    size_t count = 0;
    int error = keep_grid(build);

    for (unsigned i = 0; error == 0 && i < SEEP_SPACE_COUNT; i++) {
        struct space_sum *sum = &totals->spaces[i];

        if (sum->used) {
            finish(sum, &build->clock);
            error = keep_series(build, sum);
            spaces[count++] = sum->space;
        }
    }
    keep_live(build, totals->spaces, &totals->arenas);
    build->report.spaces = spaces;
    build->report.space_count = count;
    return error;
}

int seep_report_add_spaces(struct seep_report_build *build)
{
    struct seep_report_space *spaces =
        seep_store_take(&build->store, SEEP_SPACE_COUNT, sizeof(*spaces));
    struct totals *totals = calloc(1, sizeof(*totals));
    int error = -ENOMEM;

    if (spaces != NULL && totals != NULL) {
        error = add_totals(build, totals);
        error = error == 0 ? keep_spaces(build, totals, spaces) : error;
        error = error == 0 ? keep_holdings(build, totals) : error;
    }
    free(totals);
    return error;
}

/*
 * Where live blocks lie: which addresses seep knows of.
 *
 * Invariant: addresses come from a recording and may overlap, or wrap around;
 * a range that wraps is cut at the top.
 */

struct range {
    uint64_t start;
    uint64_t end;
    uint64_t reach; /* the highest end up to this one */
};

struct ranges {
    struct range *ranges; /* by start */
    size_t count;
};

static size_t count_mappings(const struct seep_external_samples *samples)
{
    size_t count = 0;

    for (size_t i = 0; samples != NULL && i < samples->count; i++) {
        count += samples->samples[i].mapping_count;
    }
    return count;
}

static void ranges_add(struct ranges *ranges, uint64_t start, uint64_t end)
{
    if (end < start) {
        end = UINT64_MAX;
    }
    if (end > start) {
        ranges->ranges[ranges->count++] = (struct range){start, end, 0};
    }
}

static bool is_wanted(const struct seep_view *view, struct seep_rec_live *live,
                      bool heap_only)
{
    uint32_t site = seep_word_load(&live->site);

    return seep_word_load(&live->address) != 0 && site < view->site_capacity &&
           (!heap_only || view->sites[site].space == SEEP_SPACE_HEAP);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *left = a;
    const struct range *right = b;

    return (left->start > right->start) - (left->start < right->start);
}

static void seal(struct ranges *ranges)
{
    uint64_t reach = 0;

    qsort(ranges->ranges, ranges->count, sizeof(*ranges->ranges),
          compare_ranges);
    for (size_t i = 0; i < ranges->count; i++) {
        reach = ranges->ranges[i].end > reach ? ranges->ranges[i].end : reach;
        ranges->ranges[i].reach = reach;
    }
}

/*
 * The live blocks and ranges of a snapshot; with @samples the mappings of the
 * allocator in them, too. Give it to ranges_fini() in any case.
 */
static int ranges_init(struct ranges *ret_ranges, const struct seep_view *view,
                       const struct seep_external_samples *samples,
                       bool heap_only, bool glibc)
{
    size_t count = count_mappings(samples);

    for (uint32_t i = 0; i < view->live_capacity; i++) {
        count += is_wanted(view, &view->live[i], heap_only);
    }
    ret_ranges->count = 0;
    ret_ranges->ranges = malloc((count + 1) * sizeof(*ret_ranges->ranges));
    if (ret_ranges->ranges == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->live_capacity; i++) {
        struct seep_rec_live *live = &view->live[i];

        if (is_wanted(view, live, heap_only)) {
            uint64_t start = seep_word_load(&live->address);

            ranges_add(
                ret_ranges, start,
                start + (seep_word_load(&live->size_level) & SEEP_SIZE_MASK));
        }
    }
    for (size_t i = 0; samples != NULL && i < samples->count; i++) {
        for (size_t j = 0; j < samples->samples[i].mapping_count; j++) {
            const struct seep_external_mapping *at =
                &samples->samples[i].mappings[j];

            if (seep_report_is_allocator(at, samples, glibc)) {
                ranges_add(ret_ranges, at->start, at->end);
            }
        }
    }
    seal(ret_ranges);
    return 0;
}

static void ranges_fini(struct ranges *ranges)
{
    free(ranges->ranges);
    ranges->ranges = NULL;
    ranges->count = 0;
}

/* How many begin below @end. */
static size_t below(const struct ranges *ranges, uint64_t end)
{
    return SEEP_SORTED_BELOW(ranges->ranges, ranges->count, start, end);
}

/* Does anything lie in [@start, @end)? */
static bool ranges_meet(void *context, uint64_t start, uint64_t end)
{
    const struct ranges *ranges = context;
    size_t count = below(ranges, end);

    return count > 0 && ranges->ranges[count - 1].reach > start;
}

/* Bytes of the pages that live heap blocks touch; 0 without memory. */
static double ranges_pages(const struct seep_view *view)
{
    struct ranges heap;
    uint64_t next = 0; /* page that is not counted yet */
    double pages = 0;

    if (ranges_init(&heap, view, NULL, true, false) != 0) {
        return 0;
    }
    for (size_t i = 0; i < heap.count; i++) {
        uint64_t first = heap.ranges[i].start / SEEP_PAGE_BYTES;
        uint64_t last = (heap.ranges[i].end - 1) / SEEP_PAGE_BYTES;

        first = first > next ? first : next;
        if (last >= first) {
            pages += (double)(last - first) + 1;
            next = last + 1;
        }
    }
    ranges_fini(&heap);
    return pages * SEEP_PAGE_BYTES;
}

/* The timeline samples of a process, and between them the external samples. */

#define MAPPING_LIMIT 16U
/* A sample so long after the last event still counts. */
#define LATE_SHARE 1.05

static double known(uint64_t bytes)
{
    return bytes > 0 ? (double)bytes : -1;
}

static bool read_moment(struct seep_rec_moment *moment, uint64_t after,
                        struct seep_balance_point *ret_point)
{
    uint64_t tick = seep_word_load(&moment->tick);
    double rss = (double)seep_word_load(&moment->rss_bytes);
    double shared = (double)seep_word_load(&moment->shared_bytes);

    if (tick <= after || tick > SEEP_SITES_TICK_MAX) {
        return false;
    }
    *ret_point = (struct seep_balance_point){
        .t_s = seep_sites_seconds((double)tick),
        .rss = rss > 0 ? rss : -1,
        .anonymous = rss > 0 ? fmax(rss - shared, 0) : -1,
        .swap = known(seep_word_load(&moment->swap_bytes)),
        .cgroup = known(seep_word_load(&moment->cgroup_bytes)),
        .allocated = known(seep_word_load(&moment->allocator_allocated_bytes)),
        .active = known(seep_word_load(&moment->allocator_active_bytes)),
        .resident = known(seep_word_load(&moment->allocator_resident_bytes)),
        .chunks = (double)seep_word_load(&moment->allocator_free_chunks),
        .held = -1,
        .own = known(seep_word_load(&moment->own_bytes)),
        .mapped = known(seep_word_load(&moment->mapped_bytes)),
    };
    return true;
}

/* The last that each was told as. */
static void note_moment(struct seep_report_memory *memory,
                        struct seep_rec_moment *moment)
{
    uint64_t limit = seep_word_load(&moment->cgroup_limit_bytes);

    if (seep_word_load(&moment->cgroup_bytes) > 0) {
        memory->cgroup_limit_bytes = limit;
    }
    if (seep_word_load(&moment->allocator_resident_bytes) == 0) {
        return;
    }
    memory->allocator_reported = true;
#define NOTE(figure) memory->figure = seep_word_load(&moment->figure)
    NOTE(allocator_allocated_bytes);
    NOTE(allocator_active_bytes);
    NOTE(allocator_resident_bytes);
    NOTE(allocator_retained_bytes);
    NOTE(allocator_free_chunks);
#undef NOTE
}

static struct seep_report_bound read_bound(struct seep_rec_bound *bound)
{
    return (struct seep_report_bound){seep_word_load(&bound->limit_bytes),
                                      seep_word_load(&bound->used_bytes)};
}

static size_t add_moments(struct seep_report_build *build,
                          struct seep_balance_point *points)
{
    const struct seep_view *view = &build->snapshot.view;
    uint32_t capacity =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    uint64_t last = 0;
    size_t count = 0;

    build->report.memory.address_space =
        read_bound(&view->header->address_space);
    build->report.memory.data = read_bound(&view->header->data);
    for (uint32_t i = 0; i < capacity && count < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_moment *moment = &view->timeline[i];

        if (read_moment(moment, last, &points[count])) {
            last = seep_word_load(&moment->tick);
            note_moment(&build->report.memory, moment);
            count++;
        }
    }
    return count;
}

/* Resident in mappings of the allocator; -1 where it cannot be told. */
static double held_in(const struct seep_external_sample *sample,
                      const struct seep_external_samples *samples, bool glibc,
                      struct ranges *heap)
{
    double sum = 0;
    bool any = false;

    for (size_t i = 0; i < sample->mapping_count; i++) {
        const struct seep_external_mapping *mapping = &sample->mappings[i];

        if (seep_report_is_allocator(mapping, samples, glibc) ||
            (mapping->name[0] == '\0' &&
             ranges_meet(heap, mapping->start, mapping->end))) {
            sum +=
                (double)mapping->anonymous_bytes + (double)mapping->swap_bytes;
            any = true;
        }
    }
    return any ? sum : -1;
}

static void read_sample(struct seep_report_build *build,
                        const struct seep_external_sample *sample,
                        const struct seep_external_samples *samples,
                        struct ranges *heap,
                        struct seep_balance_point *ret_point)
{
    struct seep_report_memory *memory = &build->report.memory;
    bool glibc = memory->allocator == SEEP_ALLOCATOR_GLIBC;

    *ret_point = (struct seep_balance_point){
        .t_s = sample->t_s,
        .rss = known(sample->rss_bytes),
        .anonymous =
            sample->rss_bytes > 0 ? (double)sample->anonymous_bytes : -1,
        .swap = (double)sample->swap_bytes,
        .cgroup = known(sample->cgroup_bytes),
        .allocated = -1,
        .active = -1,
        .resident = -1,
        .held = held_in(sample, samples, glibc, heap),
        .own = -1,
        .mapped = -1,
    };
    if (sample->cgroup_bytes > 0) {
        memory->cgroup_limit_bytes = sample->cgroup_limit_bytes;
    }
    if (sample->available_bytes > 0) {
        memory->available_bytes = sample->available_bytes;
    }
}

static size_t add_samples(struct seep_report_build *build,
                          const struct seep_external_samples *samples,
                          struct ranges *heap,
                          struct seep_balance_point *points)
{
    double latest_s = build->report.duration_s * LATE_SHARE + 1;
    size_t count = 0;

    for (size_t i = 0; i < samples->count && count < SEEP_EXTERNAL_SAMPLES_MAX;
         i++) {
        const struct seep_external_sample *sample = &samples->samples[i];

        if (sample->t_s > 0 && sample->t_s <= latest_s) {
            read_sample(build, sample, samples, heap, &points[count++]);
        }
    }
    return count;
}

static int compare_points(const void *a, const void *b)
{
    const struct seep_balance_point *left = a;
    const struct seep_balance_point *right = b;

    return (left->t_s > right->t_s) - (left->t_s < right->t_s);
}

/* An external sample does not tell it: it is as the process told last, or
 * first. It cannot be more than what is of files and shared. */
static void fill_own(struct seep_balance_point *points, size_t count)
{
    double last = -1;

    for (size_t i = 0; i < count && last < 0; i++) {
        last = points[i].own;
    }
    for (size_t i = 0; i < count; i++) {
        last = points[i].own >= 0 ? points[i].own : last;
        points[i].own =
            points[i].rss >= 0 && points[i].anonymous >= 0
                ? fmin(last, fmax(points[i].rss - points[i].anonymous, 0))
                : last;
    }
}

/* Live bytes at @t_s, which is in @bucket, linear between the ends of these. */
static double live_at(const struct seep_report *report, const double *live,
                      size_t bucket, double t_s)
{
    const double *end_s = report->bucket_end_s;
    double before_s = bucket > 0 ? end_s[bucket - 1] : 0;
    double before = live[bucket > 0 ? bucket - 1 : 0];

    if (bucket == report->bucket_count) { /* behind the last */
        return before;
    }
    return end_s[bucket] > before_s
               ? before + (live[bucket] - before) * (t_s - before_s) /
                              (end_s[bucket] - before_s)
               : live[bucket];
}

/* @points: by time */
static void add_live_at(const struct seep_report_build *build,
                        struct seep_balance_point *points, size_t count)
{
    const struct seep_report *report = &build->report;
    size_t bucket = 0;

    for (size_t i = 0; i < count; i++) {
        double t_s = points[i].t_s;

        while (bucket < report->bucket_count &&
               t_s > report->bucket_end_s[bucket]) {
            bucket++;
        }
        points[i].heap = live_at(report, build->heap_live, bucket, t_s);
        points[i].beside = live_at(report, build->beside_live, bucket, t_s);
        points[i].pinned = live_at(report, build->pinned_live, bucket, t_s);
        points[i].files = live_at(report, build->file_live, bucket, t_s);
    }
}

static int add_mappings(struct seep_report_build *build,
                        const struct seep_external_samples *samples,
                        struct ranges *all)
{
    struct seep_report_memory *memory = &build->report.memory;
    struct seep_report_mapping *mappings =
        seep_store_take(&build->store, MAPPING_LIMIT, sizeof(*mappings));
    double from_s =
        seep_window_time_at(build->report.begin.from_s,
                            build->report.duration_s, SEEP_WINDOW_SETTLE);
    size_t count = 0;
    int error;

    if (mappings == NULL) {
        return -ENOMEM;
    }
    error = seep_external_growth(samples, from_s, ranges_meet, all, mappings,
                                 MAPPING_LIMIT, &count);
    for (size_t i = 0; error == 0 && i < count; i++) {
        mappings[i].name = seep_store_text(&build->store, mappings[i].name);
        error = mappings[i].name == NULL ? -ENOMEM : 0;
    }
    if (error == 0) {
        memory->has_samples = samples->count > 0;
        memory->mappings = mappings;
        memory->mapping_count = count;
        error = seep_report_find_fills(build, samples, from_s, mappings);
    }
    return error;
}

/* With what external samples tell: their figures, and the mappings that grew.
 */
static int add_outside(struct seep_report_build *build,
                       struct seep_balance_point *points, size_t *count)
{
    const struct seep_view *view = &build->snapshot.view;
    bool glibc = build->report.memory.allocator == SEEP_ALLOCATOR_GLIBC;
    struct seep_external_samples *samples = &build->samples;
    struct ranges heap = {.count = 0};
    struct ranges all = {.count = 0};
    int error;

    if (samples->count == 0) {
        return 0;
    }
    /* What is behind the moment that the process is judged to did not happen.
     */
    while (build->report.end.judged_before && samples->count > 0 &&
           samples->samples[samples->count - 1].t_s >
               build->report.duration_s) {
        seep_external_sample_fini(&samples->samples[--samples->count]);
    }
    error = ranges_init(&heap, view, NULL, true, glibc);
    if (error == 0) {
        error = ranges_init(&all, view, samples, false, glibc);
    }
    if (error == 0) {
        *count += add_samples(build, samples, &heap, &points[*count]);
        error = add_mappings(build, samples, &all);
    }
    ranges_fini(&heap);
    ranges_fini(&all);
    return error;
}

/* What blocks may seem to have grown by and have not: both ends are estimates,
 * and of what was never sampled up to 3 intervals may be there. */
static double sampling_error(const struct seep_report_build *build,
                             double variance)
{
    return build->report.began_exact && build->report.sample_bytes <= 1
               ? 0
               : 1.96 * sqrt(2 * variance) +
                     3 * (double)build->report.sample_bytes;
}

static double variance_of(const struct seep_sites *sites)
{
    double variance = 0;

    for (size_t i = 0; i < sites->count; i++) {
        variance += sites->works[i].variance;
    }
    return variance;
}

static int keep_moments(struct seep_report_build *build,
                        const struct seep_balance_point *points,
                        const struct seep_balance_parts *parts, size_t count)
{
    struct seep_report_moment *moments =
        seep_store_take(&build->course, count, sizeof(*moments));

    if (moments == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        double swap = fmax(points[i].swap, 0);

        moments[i] = (struct seep_report_moment){
            .t_s = points[i].t_s,
            .held_bytes = points[i].rss < 0 ? -1 : points[i].rss + swap,
            .private_bytes =
                points[i].anonymous < 0 ? -1 : points[i].anonymous + swap,
            .own_bytes = fmax(points[i].own, 0),
            .cgroup_bytes = points[i].cgroup,
            .tracked_bytes = parts[i].tracked,
            .allocator_overhead_bytes = parts[i].overhead,
            .unexplained_bytes = parts[i].unexplained,
        };
    }
    build->report.memory.moments = moments;
    build->report.memory.moment_count = count;
    return 0;
}

int seep_report_add_memory(struct seep_report_build *build)
{
    struct seep_balance_point points[SEEP_WINDOW_POINTS];
    struct seep_balance_parts parts[SEEP_WINDOW_POINTS];
    struct seep_report_memory *memory = &build->report.memory;
    struct seep_balance_input input = {
        .points = points,
        .begin_s = build->report.begin.from_s,
        .end_s = build->report.duration_s,
        .sampled_error = sampling_error(build, variance_of(&build->sites)),
        .beside_error = build->beside_variance > 0
                            ? sampling_error(build, build->beside_variance)
                            : 0,
    };
    int error;

    memory->machine_bytes = build->snapshot.view.header->memory_total_bytes;
    memory->allocator = seep_report_allocator_of(build->report.allocator);
    input.count = add_moments(build, points);
    error = add_outside(build, points, &input.count);
    if (error != 0) {
        return error;
    }
    qsort(points, input.count, sizeof(*points), compare_points);
    fill_own(points, input.count);
    add_live_at(build, points, input.count);
    seep_balance_own_pinned(points, input.count);
    seep_report_bound_heap(build, &input);
    if (memory->allocator_reported && build->report.exact) {
        input.heap_pages_bytes = ranges_pages(&build->snapshot.view);
    }
    seep_balance_fill(&input, memory, &build->outside, parts);
    return keep_moments(build, points, parts, input.count);
}
