/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the work of a process began, and what of its memory is from before.
 *
 * Invariant: a leak that runs is never part of the start: a beginning only cuts
 * off what is over, and growth of call sites counts from half of the run at the
 * latest. Behind imports that took longer the work alone is the clock.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/recording/series.h"
#include "reader/report/build.h"
#include "reader/symbols/where.h"

/* Behind longer imports the work is too little to say that nothing leaks. */
#define IMPORTS_MOST 0.75 /* of the run */
/* Whoever imports ever more modules for so long is a service, and may leak
 * them. */
#define IMPORTS_MOST_S 3600.0
/* So is what runs inside of an import: what it does comes again, and a module
 * is imported once. Where the table filled up all that a line imports is one
 * stack. */
#define MODULE_MOST 0.5 /* of the run, from its first to its last bytes */
#define WAIT_MOST 0.75  /* of the run: a burst at its end is no work */
#define LATEST 0.5      /* of the run: growth counts from here at the latest */
#define SOON 0.05       /* of the run: what the statistics take as start */
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

/* What a stack has to do with imports. */
enum part {
    PART_NONE,
    PART_INSIDE, /* what a function of the user's does inside of one */
    PART_MODULE, /* an import's */
    PART_COARSE, /* the same, of all modules of a line */
};

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
static enum part find_part(struct seep_report_build *build,
                           const struct seep_names_stack *stack)
{
    const struct seep_report_frame *frame;
    enum part part = PART_MODULE;

    for (uint32_t i = 0; i < stack->count; i++) {
        if ((stack->words[i] & SEEP_FRAME_IS_CODE) == 0) {
            continue;
        }
        seep_names_frames(build, stack->words[i], &frame, 1);
        if (seep_where_python_imports(frame->file)) {
            return i == 0 && stack->count <= 2 ? PART_COARSE : part;
        }
        if (seep_where_python_origin(frame->file) == SEEP_PYTHON_USER &&
            (frame->function[0] != '<' ||
             strcmp(frame->function, "<lambda>") == 0)) {
            part = PART_INSIDE;
        }
    }
    return PART_NONE;
}

static enum part part_of(struct seep_report_build *build, uint32_t site)
{
    struct seep_alike *known = seep_names_alike(build, site);
    struct seep_names_stack stack;
    enum part part;

    if (known != NULL && known->has_part) {
        return (enum part)known->part;
    }
    seep_names_stack(build, site, &stack);
    part = find_part(build, &stack);
    if (known != NULL) {
        known->has_part = true;
        known->part = (unsigned char)part;
    }
    return part;
}

static bool is_import(const struct seep_report_build *build, uint32_t site)
{
    return build->import_parts[site] >= PART_MODULE;
}

/* What was allocated, by time. */
struct flow {
    double imports[SEEP_BUCKET_COUNT];
    double inside[SEEP_BUCKET_COUNT]; /* of them, besides */
    double all[SEEP_BUCKET_COUNT];
    /* Of sites that allocated last in bucket [last], and what they keep; but
     * for imports'. */
    double until[SEEP_BUCKET_COUNT][SEEP_BUCKET_COUNT];
    double kept[SEEP_BUCKET_COUNT];
};

/* What a site allocated, where it did. */
struct part_flow {
    uint32_t count;
    uint32_t buckets[SEEP_BUCKET_COUNT]; /* ascending */
    double bytes[SEEP_BUCKET_COUNT];
};

static void add_bytes(struct part_flow *flow, uint32_t bucket, double bytes)
{
    if (bytes > 0) {
        flow->buckets[flow->count] = bucket;
        flow->bytes[flow->count++] = bytes;
    }
}

/* Of a site without a series all of it when it first did. */
static void read_flow(const struct seep_report_build *build, uint32_t index,
                      struct part_flow *ret_flow)
{
    const struct seep_view *view = &build->snapshot.view;
    const struct seep_clock *clock = &build->clock;
    struct seep_rec_site *site = &view->sites[index];
    uint32_t first_tick = seep_word_load(&site->first_tick);
    struct seep_series_source source = seep_series_source_of(view, index);
    struct seep_series_course course;
    uint32_t at = first_tick >> clock->width_log2;

    ret_flow->count = 0;
    course.count = 0;
    if (source.kind != SEEP_SERIES_NONE) {
        seep_series_read_course(source, first_tick, seep_clock_grid(clock),
                                &course);
    }
    if (course.count != clock->count) {
        add_bytes(ret_flow, at < clock->count ? at : clock->count - 1,
                  (double)seep_word_load(&site->allocated_bytes));
        return;
    }
    for (uint32_t i = 0; i < course.step_count; i++) {
        add_bytes(ret_flow, course.steps[i].bucket,
                  (double)(int64_t)course.steps[i].allocated_bytes);
    }
}

static void add_flow(const struct seep_report_build *build, uint32_t index,
                     struct flow *flow)
{
    struct seep_rec_site *site = &build->snapshot.view.sites[index];
    double freed = (double)seep_word_load(&site->freed_bytes);
    struct part_flow part;
    uint32_t first;
    uint32_t last;

    read_flow(build, index, &part);
    first = part.count > 0 ? part.buckets[0] : build->clock.count;
    last = part.count > 0 ? part.buckets[part.count - 1] : 0;
    if (build->import_parts[index] == PART_MODULE && first < last &&
        last - first > MODULE_MOST * build->clock.count) {
        build->import_parts[index] = PART_INSIDE;
    }
    for (uint32_t i = 0; i < part.count; i++) {
        uint32_t at = part.buckets[i];

        flow->all[at] += part.bytes[i];
        flow->inside[at] +=
            build->import_parts[index] == PART_INSIDE ? part.bytes[i] : 0;
        *(is_import(build, index) ? &flow->imports[at]
                                  : &flow->until[last][at]) += part.bytes[i];
    }
    if (!is_import(build, index)) {
        flow->kept[last] +=
            fmax(0, (double)seep_word_load(&site->allocated_bytes) - freed);
    }
}

/* Are imports most of what is allocated in bucket @i? */
static bool imports_most(const struct flow *flow, uint32_t i)
{
    return flow->imports[i] > 0 &&
           flow->imports[i] >= flow->all[i] - flow->imports[i];
}

/* Buckets from @from on, which imports, to where they next pause. */
static uint32_t stretch_from(const struct flow *flow, uint32_t from,
                             uint32_t count)
{
    uint32_t end = from;

    for (uint32_t i = from; i < count && i - end <= PAUSE_BUCKETS; i++) {
        end = imports_most(flow, i) ? i + 1 : end;
    }
    return end - from;
}

/*
 * The bucket behind the imports that the process began with: those in which
 * they are most of what is allocated. 0: there are none. What comes before
 * imports that take several times as long, such as to read a configuration,
 * is of the beginning too.
 */
static uint32_t end_of_imports(const struct flow *flow, uint32_t count)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < count; i++) {
        double pause = fmax(PAUSE_BUCKETS, PAUSE_SHARE * end);

        if (imports_most(flow, i) &&
            ((double)(i - end) <= pause ||
             i - end <= PAUSE_SHARE * stretch_from(flow, i, count))) {
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
            build->import_parts[i] = build->report.python_version != 0
                                         ? (unsigned char)part_of(build, i)
                                         : PART_NONE;
            add_flow(build, i, flow);
        }
    }
}

static void find_imports(const struct seep_clock *clock,
                         const struct flow *flow,
                         struct seep_report_begin *begin)
{
    uint32_t end = end_of_imports(flow, clock->count);

    double at_s = end > 0 ? seep_sites_bucket_end_s(end - 1, clock->width_log2,
                                                    clock->end_tick)
                          : 0;

    if (end > 0 &&
        (end <= IMPORTS_MOST * clock->count || at_s <= IMPORTS_MOST_S)) {
        begin->source = SEEP_BEGINS_AT_IMPORTS;
        begin->at_s = begin->imports_s = at_s;
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
    if (first < clock->count) {
        begin->source =
            first > 0 ? SEEP_BEGINS_AT_PROGRESS : SEEP_BEGINS_AT_START;
        begin->at_s =
            first > 0 ? seep_sites_bucket_end_s(first - 1, clock->width_log2,
                                                clock->end_tick)
                      : 0;
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

/*
 * Imports are no work. Where they took more than half of the run, what else was
 * allocated alone is the clock. @return false if that is nothing
 */
static bool leave_imports_out(const struct flow *flow, double imports_s,
                              struct seep_clock *clock)
{
    double work[SEEP_BUCKET_COUNT];

    for (uint32_t i = 0; i < clock->count; i++) {
        double before = i < bucket_of(clock, imports_s) ? flow->inside[i] : 0;

        work[i] = fmax(0, flow->all[i] - flow->imports[i] - before);
    }
    return seep_clock_by_work(clock, work);
}

/* Was next to nothing else done while it imported, once the clock began? */
static bool idled(const struct seep_clock *clock, double imports_s)
{
    uint32_t from = (uint32_t)(clock->begin_tick >> clock->width_log2);
    uint32_t end = bucket_of(clock, imports_s);

    return from < end && end < clock->count &&
           clock->at[end] * (clock->count - end) <=
               IDLE_SHARE * (1 - clock->at[end]) * (end - from);
}

/* What of the time since the clock began was imports: none of it is growth. No
 * span is empty, nor shorter than a bucket. */
static void count_imports(struct seep_report_begin *begin, bool works,
                          double duration_s, struct seep_clock *clock)
{
    double last_s =
        duration_s -
        seep_sites_seconds((double)(UINT64_C(1) << clock->width_log2));

    begin->mostly_imports = begin->imports_s > IMPORTS_MOST * duration_s;
    begin->from_s = seep_sites_seconds((double)clock->begin_tick);
    if (begin->imports_s > begin->from_s && begin->from_s > 0) {
        begin->from_s = fmax(begin->from_s, fmin(begin->imports_s, last_s));
        clock->late_s =
            !works || idled(clock, begin->imports_s) ? begin->imports_s : 0;
    }
    clock->mostly_imports = begin->mostly_imports;
}

int seep_report_add_begin(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    struct seep_report_begin begin = {.source = SEEP_BEGINS_AT_START};
    struct seep_clock *clock = &build->clock;
    struct flow *flow = calloc(1, sizeof(*flow));
    bool works = true;

    build->import_parts = calloc((size_t)build->snapshot.view.site_capacity + 1,
                                 sizeof(*build->import_parts));
    if (flow == NULL || build->import_parts == NULL) {
        free(flow);
        return -ENOMEM;
    }
    add_flows(build, flow);
    find_imports(clock, flow, &begin);
    find_told(build, &begin);
    begin.imports_s = fmin(begin.imports_s, begin.at_s);
    if (clock->kind == SEEP_CLOCK_BYTES &&
        begin.imports_s > LATEST * report->duration_s) {
        works = leave_imports_out(flow, begin.imports_s, clock);
    }
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
    count_imports(&begin, works, report->duration_s, clock);
    if (begin.source == SEEP_BEGINS_AT_PROGRESS &&
        clock->kind == SEEP_CLOCK_UNITS && begin.from_s > 0) {
        clock->late_s = begin.from_s = begin.at_s;
    }
    begin.units = clock->units;
    report->begin = begin;
    report->units_per_s = seep_clock_units_per_s(clock);
    return 0;
}

/* Of what the row allocated, the share of imports; or also of what was done
 * inside of them. */
static double share_of_imports(const struct seep_report_build *build,
                               const struct seep_site_work *work,
                               enum part least)
{
    const struct seep_view *view = &build->snapshot.view;
    double imports = 0;

    for (size_t i = 0; i < work->member_count; i++) {
        uint32_t index = build->sites.members[work->member_first + i].index;

        if (build->import_parts[index] >= least) {
            imports +=
                (double)seep_word_load(&view->sites[index].allocated_bytes);
        }
    }
    return imports / fmax(1, (double)work->site.allocated_bytes);
}

/* What of the row was born since the imports, and lives. */
static double kept_since_imports(const struct seep_report_build *build,
                                 const struct seep_site_work *work)
{
    double since = build->report.begin.imports_s / seep_sites_seconds(1) -
                   (double)build->clock.begin_tick;
    double bytes = 0;

    for (size_t i = 0; i < work->survivor_count; i++) {
        const struct seep_survivor *survivor =
            &build->sites.survivors[work->survivor_first + i];

        bytes += survivor->birth_tick >= since ? survivor->weight : 0;
    }
    return bytes;
}

/* Imports that went on while growth was counted already are none: where what
 * the row keeps is of them all, it grew no more once they were over. Of most of
 * a run, where nothing is said to be no leak, also those behind their end are
 * none: while a thread works it is not sharp. */
static bool is_over(const struct seep_report_build *build,
                    const struct seep_site_work *work)
{
    const struct seep_sites *sites = &build->sites;
    double floor_bytes = seep_sites_floor_bytes(
        sites->live_bytes[seep_sites_place_of(&work->site)]);

    if (build->report.begin.imports_s <=
        seep_sites_seconds((double)build->clock.begin_tick)) {
        return false;
    }
    return (build->report.begin.mostly_imports &&
            share_of_imports(build, work, PART_MODULE) >= EARLY_SHARE) ||
           (share_of_imports(build, work, PART_INSIDE) >= EARLY_SHARE &&
            kept_since_imports(build, work) < floor_bytes);
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

        if (build->report.begin.mostly_imports &&
            seep_sites_space_is_judged(work->site.space) &&
            seep_sites_place_of(&work->site) == SEEP_PLACE_HOST) {
            build->report.begin.kept_bytes += kept_since_imports(build, work);
        }
        work->is_over = work->index != 0 && is_over(build, work);
        work->site.is_start =
            work->index != 0 &&
            (early || work->is_over ||
             share_of_imports(build, work, PART_MODULE) >= 0.5);
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
