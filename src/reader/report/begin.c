/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the work of a process began, and what of its memory is from before.
 *
 * Invariant: the beginning is never later than half of the run, and a leak that
 * runs is never part of the start: a beginning only cuts off what is over.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/recording/series.h"
#include "reader/report/build.h"
#include "reader/symbols/where.h"

/* A service that runs inside of an import is no import. */
#define IMPORTS_MOST 0.75 /* of the run */
#define WAIT_MOST 0.75    /* of the run: a burst at its end is no work */
#define LATEST 0.5 /* of the run: growth counts from here at the latest */
#define SOON 0.05  /* of the run: what the statistics take as start */
/* Imports may rest for so much of the time that they took until then. */
#define PAUSE_SHARE 0.25
#define PAUSE_BUCKETS 2U

/* A bucket with so much of the mean work of what follows is a wait: one at the
 * start counts where it is so many times as long as any later one. */
#define IDLE_SHARE 0.1
#define IDLE_GAPS 2.0
#define WORK_LEAST 0.5  /* of all work, that follows */
#define LOAD_KEEPS 0.25 /* of what is allocated by whom it is */
#define LOAD_THEN 0.5   /* of that, behind what it began with */
#define LOAD_WORK 0.001 /* of that, that is allocated in the rest */

/* A row from before the work is start-up, but for what is a large part. */
#define EARLY_SHARE 0.9
#define LARGE_SHARE 0.05

static const char *const names[] = {
#define BEGINNING_NAME(symbol, name, words) name,
    SEEP_BEGINNINGS(BEGINNING_NAME)
#undef BEGINNING_NAME
};
static const char *const words_of[] = {
#define BEGINNING_WORDS(symbol, name, words) words,
    SEEP_BEGINNINGS(BEGINNING_WORDS)
#undef BEGINNING_WORDS
};

const char *seep_beginning_name(enum seep_beginning source)
{
    return names[(unsigned)source % SEEP_BEGINNING_COUNT];
}

const char *seep_beginning_words(enum seep_beginning source)
{
    return words_of[(unsigned)source % SEEP_BEGINNING_COUNT];
}

/*
 * Which stacks are an import's: from the innermost frame on the machinery of
 * imports comes before any function of the user's. The body of a module of his
 * is the import's work, what a function of his does is his own.
 */
static bool is_import(struct seep_report_build *build, uint32_t site)
{
    struct seep_names_stack stack;
    struct seep_report_frame frame;

    seep_names_stack(build, site, &stack);
    for (uint32_t i = 0; i < stack.count; i++) {
        if ((stack.words[i] & SEEP_FRAME_IS_CODE) == 0) {
            continue;
        }
        seep_names_frames(build, stack.words[i], &frame, 1);
        if (seep_where_python_imports(frame.file)) {
            return true;
        }
        if (seep_where_python_origin(frame.file) == SEEP_PYTHON_USER &&
            (frame.function[0] != '<' ||
             strcmp(frame.function, "<lambda>") == 0)) {
            return false;
        }
    }
    return false;
}

/* What was allocated, by time. */
struct flow {
    double imports[SEEP_BUCKET_COUNT];
    double all[SEEP_BUCKET_COUNT];
    /* Of sites that allocated last in bucket [last], and what they keep; but
     * for imports'. */
    double until[SEEP_BUCKET_COUNT][SEEP_BUCKET_COUNT];
    double kept[SEEP_BUCKET_COUNT];
};

/* Of a site without a series all of it when it first did. */
static void read_flow(const struct seep_report_build *build, uint32_t index,
                      double bytes[SEEP_BUCKET_COUNT])
{
    const struct seep_view *view = &build->snapshot.view;
    const struct seep_clock *clock = &build->clock;
    struct seep_rec_site *site = &view->sites[index];
    uint32_t first_tick = seep_word_load(&site->first_tick);
    uint32_t series = seep_word_load(&site->series);
    struct seep_series_table table = {.count = 0};
    uint32_t at = first_tick >> clock->width_log2;

    if (series > 0 && series <= view->series_capacity) {
        seep_series_read(&view->series[series - 1], first_tick, clock->end_tick,
                         &table);
    }
    if (table.count != clock->count) {
        bytes[at < clock->count ? at : clock->count - 1] =
            (double)seep_word_load(&site->allocated_bytes);
        return;
    }
    for (uint32_t i = 0; i < table.count; i++) {
        bytes[i] = fmax(0, (double)(int64_t)table.buckets[i].allocated_bytes);
    }
}

static void add_flow(const struct seep_report_build *build, uint32_t index,
                     struct flow *flow)
{
    struct seep_rec_site *site = &build->snapshot.view.sites[index];
    double freed = (double)seep_word_load(&site->freed_bytes);
    double bytes[SEEP_BUCKET_COUNT] = {0};
    uint32_t last = 0;

    read_flow(build, index, bytes);
    for (uint32_t i = 0; i < build->clock.count; i++) {
        last = bytes[i] > 0 ? i : last;
    }
    for (uint32_t i = 0; i <= last; i++) {
        flow->all[i] += bytes[i];
        *(build->is_import[index] ? &flow->imports[i]
                                  : &flow->until[last][i]) += bytes[i];
    }
    if (!build->is_import[index]) {
        flow->kept[last] +=
            fmax(0, (double)seep_word_load(&site->allocated_bytes) - freed);
    }
}

/* The bucket behind the imports that the process began with: those in which
 * they are most of what is allocated. 0: there are none. */
static uint32_t end_of_imports(const struct flow *flow, uint32_t count)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < count; i++) {
        double pause = fmax(PAUSE_BUCKETS, PAUSE_SHARE * end);

        if (flow->imports[i] > 0 &&
            flow->imports[i] >= flow->all[i] - flow->imports[i] &&
            (double)(i - end) <= pause) {
            end = i + 1;
        }
    }
    return end;
}

static void add_flows(struct seep_report_build *build, struct flow *flow)
{
    const struct seep_view *view = &build->snapshot.view;

    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            build->is_import[i] =
                build->report.python_version != 0 && is_import(build, i);
            add_flow(build, i, flow);
        }
    }
}

static void find_imports(const struct seep_clock *clock,
                         const struct flow *flow,
                         struct seep_report_begin *begin)
{
    uint32_t end = end_of_imports(flow, clock->count);

    if (end > 0 && end <= IMPORTS_MOST * clock->count) {
        begin->source = SEEP_BEGINS_AT_IMPORTS;
        begin->at_s = seep_sites_bucket_end_s(end - 1, clock->width_log2,
                                              clock->end_tick);
    }
}

/* What the program said of itself counts, and its mark before all else. */
static void find_told(const struct seep_report_build *build,
                      struct seep_report_begin *begin)
{
    const struct seep_report *report = &build->report;
    const struct seep_clock *clock = &build->clock;
    uint32_t first = 0;

    while (first < clock->count && !(clock->units_at[first + 1] > 0)) {
        first++;
    }
    if (first > 0 && first < clock->count) {
        begin->source = SEEP_BEGINS_AT_PROGRESS;
        begin->at_s = seep_sites_bucket_end_s(first - 1, clock->width_log2,
                                              clock->end_tick);
    }
    for (size_t i = 0; i < report->mark_count; i++) {
        if (strcmp(report->marks[i].name, SEEP_MARK_WARM) == 0) {
            begin->source = SEEP_BEGINS_AT_MARK;
            begin->at_s = report->marks[i].at_s;
            return;
        }
    }
}

/* Is next to no work done in bucket @i, by the mean of what follows? */
static bool is_idle(const struct seep_clock *clock, uint32_t i)
{
    double mean = (1 - clock->at[i]) / (double)(clock->count - i);

    return clock->at[i + 1] - clock->at[i] <= IDLE_SHARE * mean;
}

static uint32_t bucket_of(const struct seep_clock *clock, double at_s)
{
    return (uint32_t)((uint64_t)(at_s / seep_sites_seconds(1)) >>
                      clock->width_log2);
}

/* The longest wait from bucket @from on that ended. */
static uint32_t longest_wait(const struct seep_clock *clock, uint32_t from)
{
    uint32_t longest = 0;
    uint32_t since = from;

    for (uint32_t i = from; i < clock->count; i++) {
        if (!is_idle(clock, i)) {
            longest = i - since > longest ? i - since : longest;
            since = i + 1;
        }
    }
    return longest;
}

/*
 * A process that waits for its first request does no work, and what leaks by
 * work kept nothing then: a rate over that time would be too low. Waits that
 * come again are part of the load.
 *
 * @return false, and leaves @begin alone, if it did not wait by @clock
 */
static bool find_wait(const struct seep_clock *clock,
                      enum seep_beginning source,
                      struct seep_report_begin *begin)
{
    uint32_t soon = (uint32_t)ceil(SOON * clock->count);
    uint32_t first = bucket_of(clock, begin->at_s);
    uint32_t start = first;
    uint32_t end;

    while (start < clock->count && start < first + soon &&
           !is_idle(clock, start)) {
        start++;
    }
    end = start;
    while (end < clock->count && is_idle(clock, end)) {
        end++;
    }
    if (end > WAIT_MOST * clock->count || end - start < soon ||
        1 - clock->at[end] < WORK_LEAST ||
        end - start < IDLE_GAPS * longest_wait(clock, end)) {
        return false;
    }
    begin->source = source;
    begin->at_s =
        seep_sites_bucket_end_s(end - 1, clock->width_log2, clock->end_tick);
    return true;
}

static double sum_of(const double *bytes, uint32_t from, uint32_t to)
{
    double sum = 0;

    for (uint32_t i = from; i < to; i++) {
        sum += bytes[i];
    }
    return sum;
}

/*
 * What loads a model is silent once it is there, and what works later was not
 * at work yet. So it is a wait by the clock of those who allocate in the rest
 * of the run. They are all who do, however little, so that whoever may go on
 * with a leak is one of them; and a load keeps what it allocates: a day of
 * requests and the night that follows it differ from one in that.
 */
static bool find_load(const struct seep_clock *clock, const struct flow *flow,
                      double rest, struct seep_report_begin *begin)
{
    struct seep_clock lasting = *clock;
    struct seep_report_begin found = *begin;
    double work[SEEP_BUCKET_COUNT] = {0};
    double load[SEEP_BUCKET_COUNT] = {0};
    double kept = 0;
    double loaded;

    for (uint32_t last = 0; last < clock->count; last++) {
        bool lasts = last >= rest * clock->count;

        kept += lasts ? 0 : flow->kept[last];
        for (uint32_t i = 0; i <= last; i++) {
            *(lasts ? &work[i] : &load[i]) += flow->until[last][i];
        }
    }
    loaded = sum_of(load, 0, clock->count);
    if (!(loaded > 0) || kept < LOAD_KEEPS * loaded ||
        sum_of(work, 0, clock->count) < LOAD_WORK * loaded ||
        !seep_clock_by_work(&lasting, work) ||
        !find_wait(&lasting, SEEP_BEGINS_AT_LOAD, &found) ||
        sum_of(load, bucket_of(clock, begin->at_s),
               bucket_of(clock, found.at_s)) < LOAD_THEN * loaded) {
        return false;
    }
    *begin = found;
    return true;
}

static void find_work(const struct seep_clock *clock, const struct flow *flow,
                      struct seep_report_begin *begin)
{
    if (clock->kind == SEEP_CLOCK_WALL ||
        begin->source == SEEP_BEGINS_AT_MARK ||
        find_wait(clock, SEEP_BEGINS_AT_WORK, begin) || clock->units > 0) {
        return;
    }
    if (!find_load(clock, flow, LATEST, begin)) {
        find_load(clock, flow, WAIT_MOST, begin);
    }
}

int seep_report_add_begin(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    struct seep_report_begin begin = {.source = SEEP_BEGINS_AT_START};
    struct seep_clock *clock = &build->clock;
    struct flow *flow = calloc(1, sizeof(*flow));

    build->is_import = calloc((size_t)build->snapshot.view.site_capacity + 1,
                              sizeof(*build->is_import));
    if (flow == NULL || build->is_import == NULL) {
        free(flow);
        return -ENOMEM;
    }
    add_flows(build, flow);
    find_imports(clock, flow, &begin);
    find_told(build, &begin);
    find_work(clock, flow, &begin);
    free(flow);
    if (begin.at_s >= SOON * report->duration_s) {
        double latest = fmin(begin.at_s, LATEST * report->duration_s);

        seep_clock_begin(clock, (uint64_t)(latest / seep_sites_seconds(1)));
    }
    if (begin.source == SEEP_BEGINS_AT_WORK ||
        begin.source == SEEP_BEGINS_AT_LOAD) {
        clock->waited_s = begin.at_s;
    }
    begin.from_s = seep_sites_seconds((double)clock->begin_tick);
    begin.units = clock->units;
    report->begin = begin;
    report->units_per_s = seep_clock_units_per_s(clock);
    return 0;
}

/* Of what the row allocated, imports did most. */
static bool is_of_imports(const struct seep_report_build *build,
                          const struct seep_site_work *work)
{
    const struct seep_view *view = &build->snapshot.view;
    double imports = 0;
    bool any = false;

    for (size_t i = 0; i < work->member_count; i++) {
        uint32_t index = build->sites.members[work->member_first + i].index;

        if (build->is_import[index]) {
            any = true;
            imports +=
                (double)seep_word_load(&view->sites[index].allocated_bytes);
        }
    }
    return any && imports >= (double)work->site.allocated_bytes / 2;
}

void seep_report_mark_start(struct seep_report_build *build)
{
    double live = 0;

    for (size_t i = 0; i < build->sites.count; i++) {
        live += (double)build->sites.works[i].site.live_bytes;
    }
    for (size_t i = 0; i < build->sites.count; i++) {
        struct seep_site_work *work = &build->sites.works[i];
        double bytes = (double)work->site.live_bytes;
        bool early = work->early_bytes > 0 &&
                     work->early_bytes >= EARLY_SHARE * bytes &&
                     bytes < LARGE_SHARE * live;

        work->site.is_start =
            work->index != 0 && (early || is_of_imports(build, work));
    }
}

void seep_report_add_start(struct seep_report_build *build)
{
    struct seep_report_begin *begin = &build->report.begin;

    for (size_t i = 0; i < build->sites.count; i++) {
        const struct seep_report_site *site = &build->sites.works[i].site;

        if (site->is_start && !seep_sites_is_loud(site) &&
            !site->backs_tensors && site->suppressed_by == NULL) {
            begin->site_count++;
            begin->live_bytes += seep_report_held_bytes(&build->report, site);
            begin->live_count += site->live_count;
        }
    }
}
