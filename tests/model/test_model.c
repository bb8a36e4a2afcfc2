/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ring, the fold and the reader in all orders of their steps; README.md.
 *
 * Each event has a size that is a power of four, so that the sums of a call
 * site tell how often each was counted: a digit an event.
 *
 * Invariant: of an event whose hook has returned each sum has 1, unless it is
 * counted as lost, or was under way in a fold that was killed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"
#include "format/fold.h"
#include "format/layout.h"
#include "intercept.h"
#include "reader/recording/snapshot.h"
#include "record/recorder.h"
#include "record/ring.h"

#define SITE 1U
#define SITES 4U
#define RING_SLOTS 4U
#define EVENTS 12U
#define SHORT_EXECUTIONS 10000U
#define BIT(i) (UINT32_C(1) << (i))

static struct seep_rec_header *recording;
static void *copy;
static int sized_fd = -1;           /* what the reader asks for its size */
static struct seep_thread *threads; /* not shared: on the heap */

/* What the actors began and what they came back from, a bit an event. */
static bool is_stale; /* what came before a reader need not be seen by it */
static struct {
    uint32_t allocating;
    uint32_t allocated;
    uint32_t freeing;
    uint32_t freed;
} ledger;

static bool always(void)
{
    return true;
}

/* In the place of base/own.c: that of the filter, which is there. */
void *seep_own_make(seep_own_table *table, size_t bytes)
{
    static _Atomic uint64_t words[SEEP_FILTER_WORDS];

    if (bytes > sizeof(words)) {
        return NULL;
    }
    atomic_store_explicit(table, (void *)words, memory_order_relaxed);
    return (void *)words;
}

static uint64_t size_of(unsigned event)
{
    return UINT64_C(1) << (2 * event);
}

static unsigned digit(uint64_t sum, unsigned event)
{
    return (unsigned)(sum >> (2 * event)) & 3;
}

static uint64_t address_of(unsigned event)
{
    return 0x7000000 + (uint64_t)event * 64;
}

static struct seep_thread *self(void)
{
    return &threads[model_self() - 100];
}

static void allocate(unsigned event)
{
    ledger.allocating |= BIT(event);
    seep_recorder_allocated(self(), SITE, address_of(event), size_of(event));
    ledger.allocated |= BIT(event);
}

static void release(unsigned event)
{
    if (!seep_filter_maybe(address_of(event)) &&
        seep_word_load(
            &seep_recorder_view()->counters[SEEP_COUNT_DROPPED_ALLOCS]) == 0) {
        model_fail("a block that lives is not in the filter");
    }
    ledger.freeing |= BIT(event);
    seep_recorder_freed(self(), address_of(event), SEEP_EVENT_FREE);
    ledger.freed |= BIT(event);
}

/* The recording: as layout.c would have it, if it could be so small. */

static void make_recording(bool exact)
{
    static const uint32_t counts[SEEP_SECTION_COUNT] = {
        [SEEP_SECTION_COUNTERS] = SEEP_COUNTER_COUNT,
        [SEEP_SECTION_SHARDS] = 2,
        [SEEP_SECTION_TIMELINE] = SEEP_BUCKET_COUNT,
        [SEEP_SECTION_STRINGS] = 64,
        [SEEP_SECTION_MODULES] = 1,
        [SEEP_SECTION_CODES] = 1,
        [SEEP_SECTION_FRAMES] = 1,
        [SEEP_SECTION_STACKS] = 1,
        [SEEP_SECTION_SITES] = SITES,
        [SEEP_SECTION_BRIEFS] = 2,
        [SEEP_SECTION_SERIES] = 2,
        [SEEP_SECTION_DEVICES] = 0,
        [SEEP_SECTION_MARKS] = 1,
        [SEEP_SECTION_RINGS] = 2 * RING_SLOTS,
        [SEEP_SECTION_LIVE] = 2 * SEEP_WINDOW_SLOTS,
    };
    struct seep_rec_header header = {0};
    struct seep_view view;

    model_set_memory(NULL, 0);
    header.file_bytes = SEEP_PAGE_BYTES;
    for (unsigned i = 0; i < SEEP_SECTION_COUNT; i++) {
        struct seep_rec_section *section = &header.sections[i];

        section->offset_bytes = header.file_bytes;
        section->entry_bytes = seep_layout_entry_bytes[i];
        section->entry_count = counts[i];
        section->bytes = (uint64_t)section->entry_bytes * counts[i];
        header.file_bytes += (section->bytes + SEEP_PAGE_BYTES - 1) &
                             ~(uint64_t)(SEEP_PAGE_BYTES - 1);
    }
    header.exact = exact;
    header.shard_count = 1;
    header.ring_slots = RING_SLOTS;
    header.live_slots = SEEP_WINDOW_SLOTS;
    header.range_slots = SEEP_WINDOW_SLOTS;
    if (recording == NULL) {
        recording = aligned_alloc(SEEP_PAGE_BYTES, header.file_bytes);
        copy = aligned_alloc(SEEP_PAGE_BYTES, header.file_bytes);
        threads = calloc(MODEL_ACTORS_MOST, sizeof(*threads));
        sized_fd = memfd_create("model", MFD_CLOEXEC);
    }
    if (recording == NULL || copy == NULL || threads == NULL ||
        ftruncate(sized_fd, (off_t)header.file_bytes) != 0) {
        abort();
    }
    memset((void *)recording, 0, header.file_bytes);
    memcpy((void *)recording, (void *)&header, sizeof(header));
    seep_layout_start(recording);
    seep_view_init(&view, recording);
    for (uint32_t i = 1; i < SITES; i++) {
        seep_word_store(&view.sites[i].state, SEEP_PUBLISHED);
    }
    seep_recorder_set_identity(always);
    seep_recorder_start(recording);
    model_set_memory(recording, header.file_bytes);
}

static void start(void)
{
    memset(&ledger, 0, sizeof(ledger));
    memset((void *)threads, 0, MODEL_ACTORS_MOST * sizeof(*threads));
    for (uint32_t i = 0; i < MODEL_ACTORS_MOST; i++) {
        threads[i].id = 100 + i;
        threads[i].random = i + 1;
    }
}

/* What a reader finds at the end. */

struct found {
    uint64_t allocated;
    uint64_t freed;
    uint32_t live;      /* a bit an event */
    uint32_t deviating; /* how many were not counted as they should be */
    bool is_folding;    /* the shard was held */
};

static uint32_t live_events(const struct seep_view *view)
{
    struct seep_live live;
    uint32_t found = 0;

    if (!seep_live_init(&live, view, 0)) {
        return 0;
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        found |=
            seep_live_find(&live, address_of(i)) != SEEP_LIVE_NONE ? BIT(i) : 0;
    }
    return found;
}

/* A snapshot has its live blocks in a list. */
static uint32_t listed_events(const struct seep_view *view)
{
    uint32_t found = 0;

    for (uint64_t i = 0; i < view->live_capacity; i++) {
        for (unsigned event = 0; event < EVENTS; event++) {
            found |= seep_word_load(&view->live[i].address) == address_of(event)
                         ? BIT(event)
                         : 0;
        }
    }
    return found;
}

static void look(const struct seep_view *view, uint32_t live,
                 struct found *ret_found)
{
    ret_found->allocated = seep_word_load(&view->sites[SITE].allocated_bytes);
    ret_found->freed = seep_word_load(&view->sites[SITE].freed_bytes);
    ret_found->live = live;
}

/* Does it hold what it must, and nothing else? @must, @may: bits of events */
static bool is_counted(unsigned times, unsigned event, uint32_t must,
                       uint32_t may)
{
    return times == 1 ? (may & BIT(event)) != 0
                      : times == 0 && (must & BIT(event)) == 0;
}

static void compare(struct found *found)
{
    for (unsigned i = 0; i < EVENTS; i++) {
        unsigned in = digit(found->allocated, i);
        unsigned out = digit(found->freed, i);

        found->deviating +=
            !is_counted(in, i, ledger.allocated, ledger.allocating) ||
            !is_counted(out, i, ledger.freed, ledger.freeing) ||
            in - out != ((found->live & BIT(i)) != 0);
    }
}

static bool flow_agrees(const struct seep_view *view, const struct found *found)
{
    uint64_t in = 0;
    uint64_t out = 0;

    for (unsigned i = 0; i < SEEP_BUCKET_COUNT; i++) {
        in += seep_word_load(&view->shards[0].flow[i].allocated_bytes);
        out += seep_word_load(&view->shards[0].flow[i].freed_bytes);
    }
    return in == found->allocated && out == found->freed;
}

/* Nothing that only a dead process leaves behind. */
static bool all_is_given_back(const struct seep_view *view)
{
    return seep_word_load(&view->shards[0].lock) % 2 == 0 &&
           seep_word_load(&view->sites[SITE].lock) % 2 == 0 &&
           seep_ring_blocker(view, 0) == 0;
}

static uint64_t dropped(const struct seep_view *view)
{
    return seep_word_load(&view->counters[SEEP_COUNT_DROPPED_ALLOCS]) +
           seep_word_load(&view->counters[SEEP_COUNT_DROPPED_FREES]);
}

/* The copy as the reader of a dead process folds it. */
static struct seep_view fold_copy(struct found *ret_found)
{
    struct found found = {0};
    struct seep_view view;
    uint64_t applied;
    uint64_t torn;

    memcpy(copy, (void *)recording, recording->file_bytes);
    seep_view_init(&view, copy);
    found.is_folding = seep_word_load(&view.shards[0].lock) % 2 != 0;
    seep_fold_private_copy(&view, true, &applied, &torn);
    look(&view, live_events(&view), &found);
    compare(&found);
    *ret_found = found;
    return view;
}

/* Else the free of what lives would be taken for that of a stranger. */
static bool filter_has_what_lives(void)
{
    bool has = true;

    for (unsigned i = 0; i < EVENTS; i++) {
        has = has && ((ledger.allocated & ~ledger.freeing & BIT(i)) == 0 ||
                      seep_filter_maybe(address_of(i)));
    }
    return has;
}

static bool all_is_counted(void)
{
    struct found found;
    struct seep_view view = fold_copy(&found);

    return (filter_has_what_lives() || dropped(&view) != 0) &&
           all_is_given_back(seep_recorder_view()) &&
           found.deviating <= dropped(&view) && flow_agrees(&view, &found);
}

static bool all_but_one_is_counted(void)
{
    struct found found;
    struct seep_view view = fold_copy(&found);
    uint64_t most = dropped(&view) + found.is_folding;

    /* What was done by half, or twice, agrees with what lives. */
    for (unsigned i = 0; i < EVENTS; i++) {
        if (digit(found.allocated, i) - digit(found.freed, i) !=
            ((found.live & BIT(i)) != 0)) {
            return false;
        }
    }
    return found.deviating <= most;
}

/* A thread died; the others went on, and what it held is taken from it. */
static bool others_are_counted(void)
{
    struct found found;
    struct seep_view view = fold_copy(&found);
    uint64_t torn = seep_word_load(&view.counters[SEEP_COUNT_TORN]);

    return found.deviating <=
           dropped(&view) + (model_was_killed() ? 1 + torn : 0);
}

/* The actors. */

static void come_and_go_0(void)
{
    allocate(0);
    release(0);
}

static void come_and_go_1(void)
{
    allocate(1);
    release(1);
}

static void come_0(void)
{
    allocate(0);
}

static void fill_ring(void)
{
    allocate(1);
    allocate(2);
    allocate(3);
}

static void fill_ring_and_more(void)
{
    for (unsigned i = 1; i < 10; i++) {
        allocate(i);
    }
}

static void hand_over(void)
{
    allocate(0);
    model_signal(0);
    allocate(2);
}

static void take_over(void)
{
    model_await(0);
    release(0);
    allocate(1);
}

static void fold_twice(void)
{
    seep_recorder_settle(self());
    seep_recorder_settle(self());
}

static bool nobody_is_dead(const struct seep_rec_header *header)
{
    (void)header;
    return false;
}

/* Of a living process: what was there before must be there, what is not begun
 * must not; and all of it agrees where the reader says that it does. */
static void read_live(void)
{
    uint32_t allocated = is_stale ? 0 : ledger.allocated;
    uint32_t freed = is_stale ? 0 : ledger.freed;
    struct seep_snapshot snapshot;
    struct seep_refusal refusal;
    struct found found = {0};
    bool is_whole = true;

    if (seep_snapshot_init(sized_fd, recording->file_bytes, nobody_is_dead,
                           &refusal, &snapshot) != 0) {
        model_fail("the reader refused");
        return;
    }
    look(&snapshot.view, listed_events(&snapshot.view), &found);
    for (unsigned i = 0; i < EVENTS; i++) {
        unsigned in = digit(found.allocated, i);
        unsigned out = digit(found.freed, i);

        is_whole = is_whole &&
                   is_counted(in, i, snapshot.restless_shards ? 0 : allocated,
                              ledger.allocating) &&
                   is_counted(out, i, snapshot.restless_shards ? 0 : freed,
                              ledger.freeing) &&
                   out <= in &&
                   (snapshot.restless_shards != 0 ||
                    in - out == ((found.live & BIT(i)) != 0));
    }
    is_whole = is_whole || snapshot.torn[SITE] != 0;
    seep_snapshot_fini(&snapshot);
    if (!is_whole) {
        model_fail("a reader saw sums that are not whole");
    }
}

static const struct model_scenario scenarios[] = {
    {"two",
     "two threads: every event once",
     start,
     {come_and_go_0, come_and_go_1},
     MODEL_KILL_NONE,
     {1, 1, 0},
     all_is_counted},
    {"hand-over",
     "a free by another thread never overtakes its allocation",
     start,
     {hand_over, take_over},
     MODEL_KILL_NONE,
     {1, 1, 0},
     all_is_counted},
    {"full",
     "a full ring: every event once, or counted as lost",
     start,
     {fill_ring, come_0, fold_twice},
     MODEL_KILL_NONE,
     {1, 0, 0},
     all_is_counted},
    {"exact",
     "exact mode: a full ring is waited for, nothing is lost",
     start,
     {fill_ring_and_more, come_and_go_0},
     MODEL_KILL_NONE,
     {1, 0, 0},
     all_is_counted},
    {"reader",
     "a living process is read whole, or said to be torn",
     start,
     {come_and_go_0, read_live},
     MODEL_KILL_NONE,
     {1, 1, 0},
     all_is_counted},
    {"killed",
     "after a kill at any store one event at most is not as it was",
     start,
     {come_and_go_0, come_and_go_1},
     MODEL_KILL_PROCESS,
     {1, 0, SHORT_EXECUTIONS},
     all_but_one_is_counted},
    {"dead thread",
     "a dead thread's claim and locks stop nobody",
     start,
     {come_0, fill_ring_and_more},
     MODEL_KILL_FIRST,
     {1, 0, SHORT_EXECUTIONS},
     others_are_counted},
};
#define SCENARIOS (sizeof(scenarios) / sizeof(*scenarios))

static bool is_exact(const struct model_scenario *scenario)
{
    return strcmp(scenario->name, "exact") == 0;
}

static const char *explore(const struct model_scenario *scenario,
                           const struct model_bounds *bounds, bool tell)
{
    struct model_result result;

    is_stale = bounds->stale != 0;
    make_recording(is_exact(scenario));
    model_explore(scenario, bounds, &result);
    if (tell) {
        printf("%-12s %u preemptions, %u stale: %8lu executions%s: %s\n",
               scenario->name, bounds->preemptions, bounds->stale,
               (unsigned long)result.executions,
               result.is_whole ? "" : " (not all)",
               result.fault == NULL ? "holds" : result.fault);
        fflush(stdout);
    }
    return result.fault;
}

/*
 * The checker checked: each order and each step of the sources is planted as a
 * fault, and a scenario must find it. What none can find says why not.
 */

enum fault { IN_TWO_STEPS, WITHOUT_ACQUIRE, WITHOUT_RELEASE };

static const char *const fault_words[] = {"in two steps", "without acquire",
                                          "without release"};

struct planted {
    const char *function;
    enum fault fault;
    const char *found_by; /* NULL: by none */
    const char *why_not;
};

static const char not_compared[] = "what it counts is not compared here";
static const char dead_only[] =
    "nobody else changes it, but who takes it from the dead";
static const char no_promises[] =
    "it keeps a load before a store of another: not in a memory of views";
static const char before_threads[] = "it is done before there are threads";
static const char one_reader[] = "it passes between readers, and here is one";

static const struct planted expected[] = {
    {"claim", IN_TWO_STEPS, "two", NULL},
    {"publish", WITHOUT_RELEASE, "two", NULL},
    {"seep_fold_try_lock", IN_TWO_STEPS, "two", NULL},
    {"seep_fold_try_lock", WITHOUT_ACQUIRE, "two", NULL},
    {"seep_fold_unlock", WITHOUT_RELEASE, "two", NULL},
    {"gather", WITHOUT_ACQUIRE, "two", NULL},
    {"seep_snapshot_read", WITHOUT_ACQUIRE, "reader", NULL},
    {"change", IN_TWO_STEPS, "hand-over", NULL},
    {"take_room", IN_TWO_STEPS, NULL, one_reader},
    {"take_room", WITHOUT_ACQUIRE, NULL, one_reader},
    {"seep_snapshot_leave_series", IN_TWO_STEPS, NULL, one_reader},
    {"claim", WITHOUT_ACQUIRE, NULL, no_promises},
    {"give_back", WITHOUT_RELEASE, NULL, no_promises},
    {"publish", IN_TWO_STEPS, NULL, dead_only},
    {"seep_fold_unlock", IN_TWO_STEPS, NULL, dead_only},
    {"make_void", IN_TWO_STEPS, NULL, "its owner is dead"},
    {"make_void", WITHOUT_RELEASE, NULL, "who makes it void folds it"},
    {"take_over", IN_TWO_STEPS, NULL, "it takes two who find the dead"},
    {"take_over", WITHOUT_ACQUIRE, NULL, "the kernel tells of the dead"},
    {"seep_fold_try_lock", WITHOUT_RELEASE, NULL,
     "it takes two stale reads, of the lock before and after"},
    {"seep_live_insert", WITHOUT_RELEASE, NULL,
     "a reader reads again what changes under the shard's lock"},
    {"seep_view_take", IN_TWO_STEPS, NULL, "one call site takes alone"},
    {"copy_site", IN_TWO_STEPS, NULL, "it is in the reader's own copy"},
    {"count_dropped", IN_TWO_STEPS, NULL, "one thread drops"},
    {"change_page", IN_TWO_STEPS, NULL,
     "no scenario has it, and why is not known"},
    {"rescue", IN_TWO_STEPS, NULL, not_compared},
    {"seep_view_count", IN_TWO_STEPS, NULL, not_compared},
    {"note_wait", IN_TWO_STEPS, NULL, not_compared},
    {"seep_recorder_view", WITHOUT_ACQUIRE, NULL, before_threads},
    {"seep_recorder_start", WITHOUT_RELEASE, NULL, before_threads},
    {"seep_own_get", WITHOUT_ACQUIRE, NULL, before_threads},
};
#define PLANTED (sizeof(expected) / sizeof(*expected))

static bool can_have(const struct model_place *place, enum fault fault)
{
    switch (fault) {
    case IN_TWO_STEPS:
        return strcmp(place->kind, "replace") == 0 ||
               strcmp(place->kind, "update") == 0;
    case WITHOUT_ACQUIRE:
        return place->order == memory_order_acquire;
    default:
        return place->order == memory_order_release;
    }
}

/* @found_by: NULL: any. @return the scenario that finds it, or NULL */
static const char *finder(struct model_place *place, enum fault fault,
                          const char *found_by)
{
    const char *found = NULL;

    place->is_weak = fault != IN_TWO_STEPS;
    place->is_split = fault == IN_TWO_STEPS;
    for (size_t i = 0; i < SCENARIOS && found == NULL; i++) {
        struct model_bounds bounds = {1, 1, SHORT_EXECUTIONS};

        if ((found_by == NULL || strcmp(found_by, scenarios[i].name) == 0) &&
            explore(&scenarios[i], &bounds, false) != NULL) {
            found = scenarios[i].name;
        }
    }
    place->is_weak = false;
    place->is_split = false;
    return found;
}

static bool is_of(const struct model_place *place,
                  const struct planted *planted)
{
    return strcmp(place->function, planted->function) == 0 &&
           can_have(place, planted->fault);
}

/* One of the places of a function that have an order may do without it. */
static int plant(const struct planted *planted)
{
    const char *found = NULL;
    bool right;

    for (struct model_place *place = model_places();
         place != NULL && found == NULL; place = place->next) {
        if (is_of(place, planted)) {
            found = finder(place, planted->fault, planted->found_by);
        }
    }
    right = (found != NULL) == (planted->found_by != NULL);
    printf(
        "%s %s %s: %s%s%s\n", right ? "ok    " : "WRONG ", planted->function,
        fault_words[planted->fault],
        found != NULL ? "found by " : "not found: ", found != NULL ? found : "",
        planted->why_not == NULL ? "" : planted->why_not);
    return !right;
}

/* Who adds an order to the sources adds a row. */
static int every_place_has_a_row(void)
{
    int status = 0;

    for (struct model_place *place = model_places(); place != NULL;
         place = place->next) {
        for (enum fault fault = 0; fault <= WITHOUT_RELEASE; fault++) {
            bool has_row = !can_have(place, fault);

            for (size_t i = 0; i < PLANTED && !has_row; i++) {
                has_row =
                    expected[i].fault == fault && is_of(place, &expected[i]);
            }
            if (!has_row) {
                printf("WRONG  %s:%d %s %s is not in the table\n", place->file,
                       place->line, place->function, fault_words[fault]);
                status = 1;
            }
        }
    }
    return status;
}

static int plant_all(bool is_long)
{
    int status = every_place_has_a_row();

    for (size_t i = 0; i < PLANTED; i++) {
        if (is_long || expected[i].found_by != NULL) {
            status |= plant(&expected[i]);
        }
    }
    return status;
}

/* The scenario @name, and the steps of its fault. */
static int trace_one(const char *name)
{
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (strcmp(name, scenarios[i].name) == 0 &&
            explore(&scenarios[i], &scenarios[i].bounds, true) != NULL) {
            model_trace(&scenarios[i], &scenarios[i].bounds);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("SEEP_TEST_LONG");
    bool is_long = wanted != NULL && strcmp(wanted, "1") == 0;
    int status = 0;

    if (argc == 3 && strcmp(argv[1], "--trace") == 0) {
        return trace_one(argv[2]);
    }
    for (size_t i = 0; i < SCENARIOS; i++) {
        struct model_bounds bounds = scenarios[i].bounds;

        bounds.executions = is_long ? 0 : bounds.executions;
        status |= explore(&scenarios[i], &bounds, true) != NULL;
    }
    return status | plant_all(is_long);
}
