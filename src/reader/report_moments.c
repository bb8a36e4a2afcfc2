/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The moments of a process in order: those that it took of itself, and between
 * them the looks that others took of it.
 *
 * Invariant: whatever a damaged file says, times ascend and figures are finite.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/balance.h"
#include "reader/look.h"
#include "reader/look_growth.h"
#include "reader/report_build.h"
#include "reader/report_ranges.h"

#define MAPPING_LIMIT 16U
#define LATE_SHARE 1.05 /* a look so long after the last event still counts */

static double known(uint64_t bytes)
{
    return bytes > 0 ? (double)bytes : -1;
}

static bool read_moment(struct seep_rec_moment *moment, uint64_t after,
                        struct seep_balance_point *ret_point)
{
    uint64_t tick = seep_snapshot_load(moment->tick);
    double rss = (double)seep_snapshot_load(moment->rss_bytes);
    double shared = (double)seep_snapshot_load(moment->shared_bytes);

    if (tick <= after || tick > SEEP_SITES_TICK_MAX) {
        return false;
    }
    *ret_point = (struct seep_balance_point){
        .t_s = seep_sites_seconds((double)tick),
        .rss = rss > 0 ? rss : -1,
        .anonymous = rss > 0 ? fmax(rss - shared, 0) : -1,
        .swap = known(seep_snapshot_load(moment->swap_bytes)),
        .cgroup = known(seep_snapshot_load(moment->cgroup_bytes)),
        .allocated =
            known(seep_snapshot_load(moment->allocator_allocated_bytes)),
        .active = known(seep_snapshot_load(moment->allocator_active_bytes)),
        .resident = known(seep_snapshot_load(moment->allocator_resident_bytes)),
        .chunks = (double)seep_snapshot_load(moment->allocator_free_chunks),
        .held = -1,
    };
    return true;
}

/* The last that each was told as. */
static void note_moment(struct seep_report_memory *memory,
                        struct seep_rec_moment *moment)
{
    uint64_t limit = seep_snapshot_load(moment->cgroup_limit_bytes);

    if (seep_snapshot_load(moment->cgroup_bytes) > 0) {
        memory->cgroup_limit_bytes = limit;
    }
    if (seep_snapshot_load(moment->allocator_resident_bytes) == 0) {
        return;
    }
    memory->allocator_told = true;
    memory->allocator_allocated_bytes =
        seep_snapshot_load(moment->allocator_allocated_bytes);
    memory->allocator_active_bytes =
        seep_snapshot_load(moment->allocator_active_bytes);
    memory->allocator_resident_bytes =
        seep_snapshot_load(moment->allocator_resident_bytes);
    memory->allocator_retained_bytes =
        seep_snapshot_load(moment->allocator_retained_bytes);
    memory->allocator_free_chunks =
        seep_snapshot_load(moment->allocator_free_chunks);
}

static size_t add_moments(struct seep_report_build *build,
                          struct seep_balance_point *points)
{
    const struct seep_view *view = &build->snapshot.view;
    uint32_t capacity =
        view->header->sections[SEEP_SECTION_TIMELINE].entry_count;
    uint64_t last = 0;
    size_t count = 0;

    for (uint32_t i = 0; i < capacity && count < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_moment *moment = &view->timeline[i];

        if (read_moment(moment, last, &points[count])) {
            last = seep_snapshot_load(moment->tick);
            note_moment(&build->report.memory, moment);
            count++;
        }
    }
    return count;
}

/* Resident in mappings of the allocator; -1 where it cannot be told. */
static double held_in(const struct seep_look *look,
                      const struct seep_looks *looks, bool glibc,
                      const struct seep_ranges *heap)
{
    double sum = 0;
    bool any = false;

    for (size_t i = 0; i < look->mapping_count; i++) {
        const struct seep_look_mapping *mapping = &look->mappings[i];

        if (seep_ranges_is_allocator(mapping, looks, glibc) ||
            (mapping->name[0] == '\0' &&
             seep_ranges_meet(heap, mapping->start, mapping->end))) {
            sum +=
                (double)mapping->anonymous_bytes + (double)mapping->swap_bytes;
            any = true;
        }
    }
    return any ? sum : -1;
}

static void read_look(struct seep_report_build *build,
                      const struct seep_look *look,
                      const struct seep_looks *looks,
                      const struct seep_ranges *heap,
                      struct seep_balance_point *ret_point)
{
    struct seep_report_memory *memory = &build->report.memory;
    bool glibc = memory->allocator == SEEP_ALLOCATOR_GLIBC;

    *ret_point = (struct seep_balance_point){
        .t_s = look->t_s,
        .rss = known(look->rss_bytes),
        .anonymous = look->rss_bytes > 0 ? (double)look->anonymous_bytes : -1,
        .swap = (double)look->swap_bytes,
        .cgroup = known(look->cgroup_bytes),
        .allocated = -1,
        .active = -1,
        .resident = -1,
        .held = held_in(look, looks, glibc, heap),
    };
    if (look->cgroup_bytes > 0) {
        memory->cgroup_limit_bytes = look->cgroup_limit_bytes;
    }
    if (look->available_bytes > 0) {
        memory->available_bytes = look->available_bytes;
    }
}

static size_t add_looks(struct seep_report_build *build,
                        const struct seep_looks *looks,
                        const struct seep_ranges *heap,
                        struct seep_balance_point *points)
{
    double latest_s = build->report.duration_s * LATE_SHARE + 1;
    size_t count = 0;

    for (size_t i = 0; i < looks->count && count < SEEP_LOOK_LIMIT; i++) {
        const struct seep_look *look = &looks->looks[i];

        if (look->t_s > 0 && look->t_s <= latest_s) {
            read_look(build, look, looks, heap, &points[count++]);
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

/* Live bytes at @t_s, linear between the ends of the buckets. */
static double live_at(const struct seep_clock *clock, const double *live,
                      double t_s)
{
    double before_s = 0;
    double before = live[0];

    for (uint32_t i = 0; i < clock->count; i++) {
        double end_s = seep_sites_seconds(
            fmin((double)((uint64_t)(i + 1) << clock->width_log2),
                 (double)clock->end_tick));

        if (t_s <= end_s) {
            return end_s > before_s
                       ? before + (live[i] - before) * (t_s - before_s) /
                                      (end_s - before_s)
                       : live[i];
        }
        before_s = end_s;
        before = live[i];
    }
    return before;
}

static bool meets(void *context, uint64_t start, uint64_t end)
{
    return seep_ranges_meet(context, start, end);
}

static int add_mappings(struct seep_report_build *build,
                        const struct seep_looks *looks, struct seep_ranges *all)
{
    struct seep_report_memory *memory = &build->report.memory;
    struct seep_report_mapping *mappings =
        seep_store_take(&build->store, MAPPING_LIMIT, sizeof(*mappings));
    size_t count = 0;
    int error;

    if (mappings == NULL) {
        return -ENOMEM;
    }
    error =
        seep_look_growth(looks, SEEP_BALANCE_SETTLE * build->report.duration_s,
                         meets, all, mappings, MAPPING_LIMIT, &count);
    for (size_t i = 0; error == 0 && i < count; i++) {
        mappings[i].name = seep_store_text(&build->store, mappings[i].name);
        error = mappings[i].name == NULL ? -ENOMEM : 0;
    }
    if (error == 0) {
        memory->looked = looks->count > 0;
        memory->mappings = mappings;
        memory->mapping_count = count;
    }
    return error;
}

/* With what looks tell: their figures, and the mappings that grew. */
static int add_outside(struct seep_report_build *build,
                       struct seep_balance_point *points, size_t *count)
{
    const struct seep_view *view = &build->snapshot.view;
    bool glibc = build->report.memory.allocator == SEEP_ALLOCATOR_GLIBC;
    struct seep_looks looks = {.looks = NULL};
    struct seep_ranges heap = {.count = 0};
    struct seep_ranges all = {.count = 0};
    int error;

    if (seep_looks_read(build->report.path, &looks) != 0) {
        return 0; /* there are none, or they are damaged */
    }
    error = seep_ranges_init(&heap, view, NULL, true, glibc);
    if (error == 0) {
        error = seep_ranges_init(&all, view, &looks, false, glibc);
    }
    if (error == 0) {
        *count += add_looks(build, &looks, &heap, &points[*count]);
        error = add_mappings(build, &looks, &all);
    }
    seep_ranges_fini(&heap);
    seep_ranges_fini(&all);
    seep_looks_fini(&looks);
    return error;
}

static enum seep_allocator_kind kind_of(const char *path)
{
    static const struct {
        const char *part;
        enum seep_allocator_kind kind;
    } kinds[] = {
        {"jemalloc", SEEP_ALLOCATOR_JEMALLOC},
        {"tcmalloc", SEEP_ALLOCATOR_TCMALLOC},
        {"mimalloc", SEEP_ALLOCATOR_MIMALLOC},
        {"/libc.so", SEEP_ALLOCATOR_GLIBC},
        {"/libc-2", SEEP_ALLOCATOR_GLIBC},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strstr(path, kinds[i].part) != NULL) {
            return kinds[i].kind;
        }
    }
    return SEEP_ALLOCATOR_UNKNOWN;
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
                        const struct seep_balance_point *points, size_t count)
{
    struct seep_report_moment *moments =
        seep_store_take(&build->store, count, sizeof(*moments));

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
        };
    }
    build->report.memory.moments = moments;
    build->report.memory.moment_count = count;
    return 0;
}

int seep_report_add_memory(struct seep_report_build *build)
{
    struct seep_balance_point points[SEEP_WINDOW_POINTS];
    struct seep_report_memory *memory = &build->report.memory;
    struct seep_balance_input input = {
        .points = points,
        .end_s = build->report.duration_s,
        .sampled_error = sampling_error(build, variance_of(&build->sites)),
        .beside_error = build->beside_variance > 0
                            ? sampling_error(build, build->beside_variance)
                            : 0,
    };
    int error;

    memory->machine_bytes = build->snapshot.view.header->memory_total_bytes;
    memory->allocator = kind_of(build->report.allocator);
    input.allocator = memory->allocator;
    input.count = add_moments(build, points);
    error = add_outside(build, points, &input.count);
    if (error != 0) {
        return error;
    }
    qsort(points, input.count, sizeof(*points), compare_points);
    for (size_t i = 0; i < input.count; i++) {
        points[i].heap =
            live_at(&build->clock, build->heap_live, points[i].t_s);
        points[i].beside =
            live_at(&build->clock, build->beside_live, points[i].t_s);
    }
    if (memory->allocator_told && build->report.exact) {
        input.heap_pages_bytes = seep_ranges_pages(&build->snapshot.view);
    }
    seep_balance_fill(&input, memory, &build->outside);
    return keep_moments(build, points, input.count);
}
