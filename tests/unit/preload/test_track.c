/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload/track: what is told to the recorder, and that the guard is left by
 * whoever entered it. The recorder and the guard are made up here.
 */
#include "seep_test.h"

#include "base/word.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/track.h"
#include "record/recorder.h"
#include "record/timeline.h"

#define KEY UINT64_C(0xffff000000000010)

struct seep_options seep_options;

static struct seep_rec_header header;
static _Atomic uint64_t counters[SEEP_COUNTER_COUNT];
static const struct seep_view recording = {.header = &header,
                                           .counters = counters};
static const struct seep_view *shown;
static const struct seep_capture_start from = {.pc = 1, .sp = 2, .fp = 3};
static enum seep_life_state life_state;
static bool has_waited;
static uint64_t waited_bytes;
static bool is_ours;
static bool is_first;  /* each event is timed */
static bool is_closed; /* the guard lets nobody in */
static int inside;
static uint32_t tick;
static void (*in_event)(void);
/* What was told, by one letter a call. */
static char told[64];

static void tell(char what)
{
    size_t length = strlen(told);

    assert_true(length + 1 < sizeof(told));
    told[length] = what;
    told[length + 1] = '\0';
}

struct seep_thread *seep_guard_enter(uintptr_t frame)
{
    assert_true(frame != 0);
    if (is_closed) {
        return NULL;
    }
    inside++;
    return &seep_thread;
}

void seep_guard_leave(struct seep_thread *thread)
{
    assert_ptr_equal(thread, &seep_thread);
    inside--;
}

const struct seep_view *
seep_guard_enter_recording(uintptr_t frame, struct seep_thread **ret_thread)
{
    if (shown == NULL || seep_guard_enter(frame) == NULL) {
        return NULL;
    }
    *ret_thread = &seep_thread;
    return shown;
}

bool seep_life_has_waited(void)
{
    return has_waited;
}

void seep_life_waited(uint64_t bytes)
{
    waited_bytes += bytes;
}

enum seep_life_state seep_life_state(void)
{
    return life_state;
}

bool seep_limits_give_way(size_t size_bytes)
{
    (void)size_bytes;
    return false;
}

void seep_life_count_failed(uint64_t size_bytes)
{
    (void)size_bytes;
}

const struct seep_view *seep_life_current(void)
{
    return shown;
}

const struct seep_view *seep_life_recording(void)
{
    return shown;
}

uint64_t seep_life_take_missed(void)
{
    return 0;
}

bool seep_identity_is_ours(void)
{
    return is_ours;
}

void seep_native_settle(void)
{
}

void seep_cuda_events_count(const struct seep_view *view)
{
    assert_ptr_equal(view, &recording);
}

uint32_t seep_stacks_site(const struct seep_view *view,
                          const struct seep_capture_start *start,
                          struct seep_place place, bool *may_ask)
{
    assert_ptr_equal(view, &recording);
    assert_ptr_equal(start, &from);
    (void)place;
    *may_ask = false;
    return 9;
}

void seep_stacks_describe(const struct seep_view *view)
{
    assert_ptr_equal(view, &recording);
}

bool seep_pace_is_first(void)
{
    return is_first;
}

void seep_pace_spent(const struct seep_view *view, uint64_t cycles, bool first)
{
    assert_ptr_equal(view, &recording);
    assert_true(first);
    (void)cycles;
    tell('$');
}

/* What costs no budget. */
void seep_pace_counted(const struct seep_view *view, uint64_t cycles,
                       bool first)
{
    assert_ptr_equal(view, &recording);
    assert_true(first);
    (void)cycles;
    tell('c');
}

void seep_pace_for_tensor(uint64_t cycles, bool first)
{
    assert_true(first);
    (void)cycles;
    tell('t');
}

unsigned seep_pace_tensor_log2(const struct seep_view *view)
{
    assert_ptr_equal(view, &recording);
    return 0;
}

void seep_sampler_draw(struct seep_thread *thread, unsigned sample_log2)
{
    thread->sample_log2 = (uint8_t)sample_log2;
    thread->countdown_bytes = 1;
}

bool seep_timeline_due(uint32_t now)
{
    assert_int_equal(now, tick);
    return false;
}

bool seep_timeline_looks_at_pages(uint32_t now)
{
    assert_int_equal(now, tick);
    return false;
}

void seep_timeline_take(const struct seep_view *view, uint32_t thread,
                        uint32_t now)
{
    assert_ptr_equal(view, &recording);
    assert_int_equal(thread, seep_thread.id);
    assert_int_equal(now, tick);
    tell('T');
}

bool seep_timeline_wants_allocator(void)
{
    return false;
}

void seep_timeline_ask_allocator(const struct seep_view *view, uint32_t thread,
                                 uint32_t now)
{
    (void)view;
    (void)thread;
    (void)now;
    fail();
}

const struct seep_view *seep_recorder_view(void)
{
    return shown;
}

uint32_t seep_recorder_tick(void)
{
    return tick;
}

static uint32_t event(char what)
{
    assert_int_equal(inside, 1);
    tell(what);
    if (in_event != NULL) {
        in_event();
    }
    return tick;
}

uint32_t seep_recorder_allocated(struct seep_thread *thread, uint32_t site,
                                 uint64_t address, uint64_t size_bytes)
{
    assert_ptr_equal(thread, &seep_thread);
    assert_int_equal(site, 9);
    assert_true(address != 0 && size_bytes != 0);
    return event('A');
}

uint32_t seep_recorder_sampled(struct seep_thread *thread, unsigned sample_log2,
                               uint32_t site, uint64_t address,
                               uint64_t size_bytes)
{
    assert_int_equal(sample_log2, 0);
    seep_recorder_allocated(thread, site, address, size_bytes);
    return tick;
}

uint32_t seep_recorder_freed(struct seep_thread *thread, uint64_t address,
                             enum seep_event_kind kind)
{
    (void)thread;
    (void)address;
    return event(kind == SEEP_EVENT_FREE ? 'F' : 'O');
}

void seep_recorder_restored(struct seep_thread *thread, uint64_t address,
                            uint32_t out_tick)
{
    (void)thread;
    (void)address;
    assert_int_equal(out_tick, tick);
    event('R');
}

uint32_t seep_recorder_range(struct seep_thread *thread,
                             enum seep_event_kind kind, uint32_t site,
                             uint64_t address, uint64_t size_bytes)
{
    (void)thread;
    (void)site;
    (void)address;
    (void)size_bytes;
    return event(kind == SEEP_EVENT_MAP ? 'M' : 'm');
}

bool seep_recorder_knows_range(struct seep_thread *thread, uint64_t address,
                               uint64_t size_bytes, enum seep_space *ret_space,
                               uint64_t *ret_bytes)
{
    (void)thread;
    (void)address;
    event('K');
    *ret_space = SEEP_SPACE_MAPPED;
    *ret_bytes = size_bytes;
    return true;
}

void seep_recorder_range_restored(struct seep_thread *thread, uint64_t address,
                                  uint32_t out_tick)
{
    (void)thread;
    (void)address;
    assert_int_equal(out_tick, tick);
    event('r');
}

void seep_recorder_settle(struct seep_thread *thread)
{
    (void)thread;
}

static int begin(void **state)
{
    (void)state;
    memset((void *)&header, 0, sizeof(header));
    memset((void *)counters, 0, sizeof(counters));
    memset(told, 0, sizeof(told));
    shown = &recording;
    life_state = SEEP_LIFE_ON;
    has_waited = false;
    waited_bytes = 0;
    is_ours = true;
    is_first = true;
    is_closed = false;
    inside = 0;
    tick = 100;
    in_event = NULL;
    seep_clock_forbidden = false;
    memset((void *)&seep_thread, 0, sizeof(seep_thread));
    seep_thread.id = 7;
    return 0;
}

static int is_left(void **state)
{
    (void)state;
    assert_int_equal(inside, 0);
    return 0;
}

static void an_event_is_told_with_what_it_cost(void **state)
{
    (void)state;
    seep_track_allocated(&from, told, 10);
    assert_string_equal(told, "A$");
}

static void forbid_the_counter(void)
{
    seep_clock_forbidden = true;
}

static void become_a_child(void)
{
    is_ours = false;
}

/* In the middle of the event: by another thread, by a handler. */
static void of_a_clock_that_stopped_nothing_is_told(void **state)
{
    (void)state;
    in_event = forbid_the_counter;
    seep_track_allocated(&from, told, 10);
    assert_string_equal(told, "A");
}

static void a_child_tells_nothing_of_its_parents_time(void **state)
{
    (void)state;
    in_event = become_a_child;
    seep_track_allocated(&from, told, 10);
    assert_string_equal(told, "A");
}

static void the_first_failure_is_told_at_once_and_others_not_each(void **state)
{
    (void)state;
    seep_track_allocated(&from, NULL, 10);
    assert_string_equal(told, "T");
    assert_int_equal(header.failed_count, 1);
    assert_int_equal(header.failed_site, 9);
    assert_int_equal(header.failed_bytes, 10);
    tick += 15;
    seep_track_allocated(&from, NULL, 20);
    assert_string_equal(told, "T");
    assert_int_equal(header.failed_bytes, 20);
    tick += 16;
    seep_track_allocated(&from, NULL, 20);
    assert_string_equal(told, "TT");
    assert_int_equal(header.failed_count, 3);
}

/* A handler forked since the guard was entered. */
static void a_childs_failure_takes_no_sample_of_its_parent(void **state)
{
    (void)state;
    is_ours = false;
    seep_track_allocated(&from, NULL, 10);
    assert_string_equal(told, "");
}

static void no_block_of_no_bytes_is_no_failure(void **state)
{
    (void)state;
    seep_track_allocated(&from, NULL, 0);
    assert_int_equal(header.failed_count, 0);
    assert_string_equal(told, "");
}

static void what_a_realloc_could_not_do_is_put_back(void **state)
{
    struct seep_track_out out = seep_track_realloc_out(told);

    (void)state;
    assert_true(out.recorded);
    seep_track_realloc_failed(told, out);
    assert_string_equal(told, "O$R");
    out = seep_track_range(SEEP_EVENT_REMAP_OUT, told, 4096);
    assert_true(out.recorded);
    seep_track_remap_failed(told, out);
    assert_string_equal(told, "O$Rmcr");
}

/* The real realloc was left by a fork, or by a jump into it. */
static void what_another_process_took_out_is_not_put_back(void **state)
{
    struct seep_track_out out = {true, 100};

    (void)state;
    shown = NULL;
    seep_track_realloc_failed(told, out);
    seep_track_remap_failed(told, out);
    assert_string_equal(told, "");
}

static void in_a_handler_nothing_is_put_back(void **state)
{
    struct seep_track_out out = {true, 100};

    (void)state;
    is_closed = true;
    seep_track_realloc_failed(told, out);
    seep_track_remap_failed(told, out);
    assert_string_equal(told, "");
}

static void a_range_is_known_by_who_may_look(void **state)
{
    enum seep_space space = SEEP_SPACE_HEAP;
    uint64_t bytes = 0;

    (void)state;
    assert_true(seep_track_knows_range(told, 4096, &space, &bytes));
    assert_int_equal(space, SEEP_SPACE_MAPPED);
    is_closed = true;
    assert_false(seep_track_knows_range(told, 4096, &space, &bytes));
    is_closed = false;
    shown = NULL;
    assert_false(seep_track_knows_range(told, 4096, &space, &bytes));
    shown = &recording;
    life_state = SEEP_LIFE_STARTING;
    assert_false(seep_track_knows_range(told, 4096, &space, &bytes));
    assert_string_equal(told, "K");
}

static void a_beginning_that_fails_leaves_nothing_open(void **state)
{
    (void)state;
    life_state = SEEP_LIFE_ARMED;
    seep_track_begin();
    assert_int_equal(inside, 0);
    shown = NULL;
    seep_track_begin();
    assert_string_equal(told, "");
}

static void what_devices_have_is_told_where_there_is_a_recording(void **state)
{
    struct seep_place place = {SEEP_SPACE_DEVICE, 1};

    (void)state;
    seep_track_key_allocated(&from, place, KEY, 512);
    seep_track_tensor_allocated(&from, 1, told, 512);
    assert_string_equal(told, "A$At$");
    is_closed = true;
    seep_track_key_allocated(&from, place, KEY, 512);
    seep_track_tensor_allocated(&from, 1, told, 512);
    shown = NULL;
    seep_track_key_allocated(&from, place, KEY, 512);
    seep_track_tensor_allocated(&from, 1, told, 512);
    assert_string_equal(told, "A$At$");
}

static void what_a_child_allocates_while_it_waits_is_counted_alone(void **state)
{
    (void)state;
    life_state = SEEP_LIFE_WAITING;
    seep_thread.sample_log2 = 19;
    seep_thread.countdown_bytes = -100;
    seep_track_allocated(&from, told, 200);
    assert_int_equal(waited_bytes, (1 << 19) + 100);
    assert_int_equal(seep_thread.sample_log2, 0); /* no sample ends this one */
    assert_int_equal(seep_thread.countdown_bytes, 16384);
    seep_thread.countdown_bytes = -1;
    seep_track_allocated(&from, told, 200);
    assert_int_equal(waited_bytes, (1 << 19) + 100 + 16384 + 1);
    seep_track_freed(told);
    seep_track_mapped(&from, SEEP_SPACE_MAPPED, told, 1 << 20);
    assert_int_equal(waited_bytes, (1 << 19) + 100 + 16384 + 1 + (1 << 20));
    assert_string_equal(told, "");
    has_waited = true;
    seep_track_allocated(&from, told, 200);
    assert_string_equal(told, "A$");
}

static void a_mapping_is_timed_and_charged_to_no_budget(void **state)
{
    (void)state;
    seep_track_mapped(&from, SEEP_SPACE_MAPPED, told, 4096);
    assert_string_equal(told, "Mc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_event_is_told_with_what_it_cost,
                                        begin, is_left),
        cmocka_unit_test_setup_teardown(of_a_clock_that_stopped_nothing_is_told,
                                        begin, is_left),
        cmocka_unit_test_setup_teardown(
            a_child_tells_nothing_of_its_parents_time, begin, is_left),
        cmocka_unit_test_setup_teardown(
            the_first_failure_is_told_at_once_and_others_not_each, begin,
            is_left),
        cmocka_unit_test_setup_teardown(
            a_childs_failure_takes_no_sample_of_its_parent, begin, is_left),
        cmocka_unit_test_setup_teardown(no_block_of_no_bytes_is_no_failure,
                                        begin, is_left),
        cmocka_unit_test_setup_teardown(what_a_realloc_could_not_do_is_put_back,
                                        begin, is_left),
        cmocka_unit_test_setup_teardown(
            what_another_process_took_out_is_not_put_back, begin, is_left),
        cmocka_unit_test_setup_teardown(in_a_handler_nothing_is_put_back, begin,
                                        is_left),
        cmocka_unit_test_setup_teardown(a_range_is_known_by_who_may_look, begin,
                                        is_left),
        cmocka_unit_test_setup_teardown(
            a_beginning_that_fails_leaves_nothing_open, begin, is_left),
        cmocka_unit_test_setup_teardown(
            what_devices_have_is_told_where_there_is_a_recording, begin,
            is_left),
        cmocka_unit_test_setup_teardown(
            what_a_child_allocates_while_it_waits_is_counted_alone, begin,
            is_left),
        cmocka_unit_test_setup_teardown(
            a_mapping_is_timed_and_charged_to_no_budget, begin, is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
