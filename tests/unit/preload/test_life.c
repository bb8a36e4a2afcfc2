/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload/life: what a fork, a jump and a restriction make of the state and
 * of the guard, at moments that no program can be made to meet. The recorder
 * and the process are made up here.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seep_test.h"

#include "base/hash.h"
#include "base/proc.h"
#include "base/syscall.h"
#include "base/word.h"
#include "cuda/ledger.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/track.h"
#include "record/keep.h"
#include "record/recorder.h"
#include "record/region.h"
#include "record/sampler.h"

#define FRAME ((uintptr_t)0x7f0000100000)
#define OWN_ID 77U
#define OTHER_ID 78U

/* What was asked for, by one letter a call. */
static char told[64];
static struct seep_rec_header header;
static const struct seep_view recording = {.header = &header};
static const struct seep_view *shown;
static bool is_ours;
static bool is_this_process;
static bool has_ended;
static uint32_t tick;
static const void *dropped;
static uint64_t dropped_bytes;
static uint64_t seed;
static uint32_t nested_count;
static jmp_buf out_of_it;
static void (*in_create)(void);
static void (*in_start)(void);
static void (*at_fork)(void);
static uint64_t now_ns;

struct seep_options seep_options;

static int read_clock(clockid_t clock, struct timespec *ret_now)
{
    (void)clock;
    ret_now->tv_sec = (time_t)(now_ns / 1000000000);
    ret_now->tv_nsec = (long)(now_ns % 1000000000);
    return 0;
}

static void tell(char what)
{
    size_t length = strlen(told);

    assert_true(length + 1 < sizeof(told));
    told[length] = what;
    told[length + 1] = '\0';
}

/* The C library's: a later handler is none of ours. */
int seep_register_atfork(void (*prepare)(void), void (*parent)(void),
                         void (*child)(void),
                         void *library) __asm__("__register_atfork");

int seep_register_atfork(void (*prepare)(void), void (*parent)(void),
                         void (*child)(void), void *library)
{
    (void)library;
    if (prepare == NULL && parent == NULL) {
        at_fork = child;
    }
    return 0;
}

bool seep_ending_has_begun(void)
{
    return has_ended;
}

bool seep_identity_is_ours(void)
{
    return is_ours;
}

bool seep_identity_is_this_process(void)
{
    return is_this_process;
}

void seep_identity_adopt(void)
{
    tell('a');
    is_ours = true;
}

int seep_identity_create(enum seep_inert_reason reason, void **ret_mapping)
{
    assert_int_equal(reason, SEEP_INERT_NONE);
    tell('c');
    if (in_create != NULL) {
        in_create();
    }
    *ret_mapping = &header;
    return 0;
}

const struct seep_view *seep_recorder_view(void)
{
    return shown;
}

void seep_recorder_start(void *mapping)
{
    assert_ptr_equal(mapping, &header);
    shown = &recording;
    if (in_start != NULL) {
        in_start();
    }
}

void seep_recorder_drop(void)
{
    tell('d');
    shown = NULL;
}

uint32_t seep_recorder_tick(void)
{
    return tick;
}

void seep_recorder_recover(struct seep_thread *thread)
{
    (void)thread;
    tell('r');
}

void seep_recorder_restrict(void)
{
}

void seep_recorder_set_identity(bool (*still_ours)(void))
{
    assert_true(still_ours == seep_identity_is_ours);
}

void seep_region_drop(void *mapping, size_t size_bytes)
{
    dropped = mapping;
    dropped_bytes = size_bytes;
}

void seep_region_settle(void)
{
    tell('s');
}

void seep_region_abandon(void)
{
    tell('b');
}

void seep_region_leave(void)
{
    tell('l');
}

void seep_region_forsake(void)
{
    tell('f');
}

/* Zeros in its place: as the real one leaves it. */
bool seep_region_replace(void *mapping, size_t size_bytes)
{
    assert_ptr_equal(mapping, &header);
    assert_int_equal(size_bytes, header.file_bytes);
    tell('p');
    memset((void *)&header, 0, sizeof(header));
    return true;
}

void seep_keep_abandon(void)
{
}

bool seep_keep_is_minor(const struct seep_view *view)
{
    assert_ptr_equal(view, &recording);
    return true;
}

void seep_proc_close(void)
{
}

void seep_sampler_seed(struct seep_thread *thread, uint64_t entropy)
{
    assert_ptr_equal(thread, &seep_thread);
    seed = entropy;
}

void seep_stacks_after_fork(void)
{
}

void seep_stacks_restrict(void)
{
}

void seep_cuda_events_after_fork(void)
{
}

void seep_cuda_events_count(const struct seep_view *view)
{
    assert_ptr_equal(view, &recording);
}

void seep_cuda_events_restrict(void)
{
}

void seep_track_count(enum seep_counter counter, uint64_t amount)
{
    nested_count += counter == SEEP_COUNT_NESTED ? (uint32_t)amount : 0;
}

void seep_filter_fill(bool all)
{
    assert_false(all);
}

void seep_recorder_end(void)
{
    tell('E');
}

void seep_region_shrink(void)
{
    tell('S');
}

bool seep_cuda_ledger_was_used(void)
{
    return false;
}

enum seep_inert_reason seep_identity_tell_lacking(void)
{
    return SEEP_INERT_NONE;
}

void seep_verbose_inert(enum seep_inert_reason reason)
{
    (void)reason;
    tell('i');
}

void seep_verbose_created(int error, const struct seep_rec_header *created)
{
    assert_int_equal(error, 0);
    assert_ptr_equal(created, &header);
}

/* As the constructor leaves it, in a thread that was here before. */
static int begin(void **state)
{
    (void)state;
    memset(told, 0, sizeof(told));
    memset((void *)&header, 0, sizeof(header));
    header.file_bytes = 4096;
    header.shard_count = 4;
    shown = NULL;
    is_ours = true;
    is_this_process = true;
    has_ended = false;
    tick = 5;
    dropped = &dropped;
    dropped_bytes = 1;
    nested_count = 0;
    in_create = NULL;
    in_start = NULL;
    now_ns = UINT64_C(1000000000000);
    seep_clock_gettime = read_clock;
    seep_options.sample_log2 = 0;
    memset((void *)&seep_thread, 0, sizeof(seep_thread));
    seep_life_arm(false);
    seep_thread.id = OWN_ID;
    return 0;
}

static void begin_recording(void)
{
    assert_ptr_equal(seep_life_recording(), &recording);
    assert_int_equal(seep_life_state(), SEEP_LIFE_ON);
    told[0] = '\0';
}

static void a_child_lets_go_of_the_recording_of_its_parent(void **state)
{
    (void)state;
    begin_recording();
    is_ours = false;
    seep_thread.held_site = 3;
    assert_non_null(seep_guard_enter(FRAME));
    assert_string_equal(told, "da");
    assert_ptr_equal(dropped, &header);
    assert_int_equal(dropped_bytes, 4096);
    assert_int_equal(seep_thread.held_site, 0);
    assert_int_equal(seep_thread.id, syscall(SYS_gettid));
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
}

static void a_child_of_who_has_no_recording_lets_go_of_none(void **state)
{
    (void)state;
    is_ours = false;
    assert_non_null(seep_guard_enter(FRAME));
    assert_string_equal(told, "da");
    assert_null(dropped);
    assert_int_equal(dropped_bytes, 0);
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
}

/* As where a handler forks between the look at the state and the guard. */
static void a_child_of_who_is_done_records_nothing(void **state)
{
    (void)state;
    seep_life_disarm();
    is_ours = false;
    assert_non_null(seep_guard_enter(FRAME));
    assert_string_equal(told, "da");
    assert_int_equal(seep_life_state(), SEEP_LIFE_DONE);
    assert_null(seep_life_recording());
    assert_string_equal(told, "da");
}

static void a_child_forked_in_pythons_allocator_is_not_marked(void **state)
{
    (void)state;
    seep_track_enter_mark(told);
    assert_true(seep_track_is_marked());
    at_fork();
    assert_false(seep_track_is_marked());
    assert_int_equal(seep_thread.countdown_bytes, 0);
}

static void a_handlers_child_writes_on_into_zeros_of_its_own(void **state)
{
    (void)state;
    begin_recording();
    assert_non_null(seep_guard_enter(FRAME));
    is_ours = false;
    at_fork();
    assert_string_equal(told, "p");
    assert_int_equal(header.file_bytes, 4096);
    assert_int_equal(header.shard_count, 4);
}

static void fork_here(void)
{
    is_ours = false;
    at_fork();
}

static void a_child_that_is_sampled_waits_a_tenth_of_a_second(void **state)
{
    (void)state;
    begin_recording();
    seep_options.sample_log2 = 19;
    fork_here();
    assert_int_equal(seep_life_state(), SEEP_LIFE_WAITING);
    now_ns += 99000000;
    assert_false(seep_life_is_open());
    assert_string_equal(told, "");
    now_ns += 1000000;
    assert_true(seep_life_is_open());
    assert_non_null(seep_guard_enter(FRAME));
    assert_string_equal(told, "da");
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
    assert_ptr_equal(seep_life_recording(), &recording);
    seep_guard_leave(&seep_thread);
}

static void a_child_that_allocates_much_waits_no_longer(void **state)
{
    (void)state;
    begin_recording();
    seep_options.sample_log2 = 19;
    fork_here();
    seep_life_waited((16 << 20) - 1);
    assert_false(seep_life_is_open());
    seep_life_waited(UINT64_MAX);
    assert_true(seep_life_is_open());
    fork_here(); /* one of its own begins anew */
    assert_false(seep_life_is_open());
}

static void a_child_that_is_recorded_whole_does_not_wait(void **state)
{
    (void)state;
    begin_recording();
    fork_here();
    assert_true(seep_life_is_open());
    assert_non_null(seep_guard_enter(FRAME));
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
}

static void a_child_waits_no_longer_than_it_has_something_to_tell(void **state)
{
    struct seep_thread *thread;

    (void)state;
    begin_recording();
    seep_options.sample_log2 = 19;
    fork_here();
    assert_ptr_equal(seep_guard_enter_recording(FRAME, &thread), &recording);
    assert_string_equal(told, "dacs");
    assert_int_equal(seep_life_state(), SEEP_LIFE_ON);
    seep_guard_leave(thread);
}

/* Its own child was made by clone(), which no handler sees. */
static void a_clock_that_was_set_back_makes_nobody_wait(void **state)
{
    (void)state;
    begin_recording();
    seep_options.sample_log2 = 19;
    fork_here();
    now_ns -= UINT64_C(999000000000);
    assert_true(seep_life_is_open());
}

static void a_child_that_waits_and_is_restricted_records_nothing(void **state)
{
    (void)state;
    begin_recording();
    seep_options.sample_log2 = 19;
    fork_here();
    seep_life_restrict();
    assert_int_equal(seep_life_state(), SEEP_LIFE_DONE);
}

static void fork_in_another(void)
{
    seep_thread.id = OTHER_ID;
    fork_here();
    seep_thread.id = OWN_ID;
}

/* A handler interrupts the first hook of all, and forks. */
static void a_child_forked_before_the_start_has_nothing_to_forsake(void **state)
{
    (void)state;
    assert_non_null(seep_guard_enter(FRAME));
    fork_here();
    assert_string_equal(told, "");
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
}

/* The hook that goes on in the child is the one that creates it, or not. */
static void only_the_creators_child_forsakes_what_it_creates(void **state)
{
    (void)state;
    in_create = fork_here;
    assert_non_null(seep_guard_enter(FRAME));
    assert_null(seep_life_recording());
    assert_string_equal(told, "cfl");
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
    begin(NULL);
    in_create = fork_in_another;
    assert_non_null(seep_guard_enter(FRAME));
    assert_null(seep_life_recording());
    assert_string_equal(told, "cl");
}

static void jump_out(void)
{
    longjmp(out_of_it, 1);
}

static void a_jump_out_of_a_start_leaves_what_is_already_shown(void **state)
{
    (void)state;
    in_start = jump_out;
    if (setjmp(out_of_it) == 0) {
        assert_non_null(seep_guard_enter(FRAME));
        seep_life_recording();
        fail();
    }
    assert_int_equal(seep_life_state(), SEEP_LIFE_STARTING);
    assert_non_null(seep_guard_enter(FRAME));
    assert_string_equal(told, "csr");
    assert_int_equal(seep_life_state(), SEEP_LIFE_ON);
}

static void a_jump_out_of_a_start_gives_up_what_nobody_has_seen(void **state)
{
    (void)state;
    in_create = jump_out;
    if (setjmp(out_of_it) == 0) {
        assert_non_null(seep_guard_enter(FRAME));
        seep_life_recording();
        fail();
    }
    assert_non_null(seep_guard_enter(FRAME));
    assert_string_equal(told, "cb");
    assert_int_equal(seep_life_state(), SEEP_LIFE_ARMED);
}

static void the_end_of_a_run_is_noted_once(void **state)
{
    (void)state;
    begin_recording();
    has_ended = true;
    assert_null(seep_life_current());
    assert_int_equal(seep_life_state(), SEEP_LIFE_DONE);
    tick = 9;
    assert_null(seep_life_current()); /* who looked at the state before */
    assert_int_equal(header.exit_tick, 5);
}

static void nothing_begins_once_all_is_over(void **state)
{
    (void)state;
    seep_life_disarm();
    assert_null(seep_life_recording());
    has_ended = true;
    begin(NULL);
    has_ended = true;
    assert_null(seep_life_recording());
    assert_string_equal(told, "");
}

static void exit_is_noted_by_who_is_recorded_alone(void **state)
{
    (void)state;
    begin_recording();
    is_this_process = false; /* a child of vfork() */
    seep_life_exiting();
    assert_int_equal(header.final_tick, 0);
    is_this_process = true;
    is_ours = false;
    seep_life_exiting();
    assert_int_equal(header.final_tick, 0);
    is_ours = true;
    seep_life_exiting();
    tick = 8;
    seep_life_exiting();
    assert_int_equal(header.final_tick, 5);
}

static void an_exit_behind_the_end_of_the_run_is_not_noted(void **state)
{
    (void)state;
    begin_recording();
    has_ended = true;
    seep_life_current();
    tick = 8;
    seep_life_exiting();
    seep_life_exit();
    assert_int_equal(header.final_tick, 0);
    assert_int_equal(header.exit_tick, 5);
    assert_int_equal(header.exited, 1);
}

static bool is_let_in(uintptr_t frame)
{
    return seep_guard_enter(frame) != NULL;
}

/* Each with a hook at FRAME under way. */
static void who_comes_from_above_knows_that_the_hook_was_left(void **state)
{
    (void)state;
    seep_guard_enter(FRAME);
    assert_false(is_let_in(FRAME - 4096)); /* a handler's */
    assert_int_equal(nested_count, 1);
    assert_true(is_let_in(FRAME + 64));
    assert_true(is_let_in(FRAME + 64)); /* and at the same depth */
    assert_int_equal(seep_thread.hook_frame, FRAME + 64);
}

static void what_lies_far_above_is_another_stack(void **state)
{
    (void)state;
    seep_guard_enter(FRAME);
    assert_false(is_let_in(FRAME + (64 << 20)));
    assert_int_equal(seep_thread.hook_frame, FRAME);
}

static void what_is_known_of_the_stack_decides(void **state)
{
    (void)state;
    seep_thread.stack_low = FRAME - (1 << 20);
    seep_thread.stack_high = FRAME + (64 << 20);
    seep_guard_enter(FRAME);
    assert_false(is_let_in(seep_thread.stack_high));     /* a coroutine's */
    assert_true(is_let_in(seep_thread.stack_high - 64)); /* however far */
    seep_guard_leave(&seep_thread);
    seep_guard_enter(seep_thread.stack_low - 4096); /* a coroutine's hook */
    assert_false(is_let_in(FRAME));
}

static void *signal_stack;
static size_t signal_stack_bytes;
static int let_in[3];

static void enter_in_handler(int number)
{
    (void)number;
    seep_guard_enter((uintptr_t)signal_stack - 4096);
    let_in[0] = is_let_in((uintptr_t)signal_stack + 64);
    let_in[1] = is_let_in((uintptr_t)signal_stack + signal_stack_bytes);
    seep_calls_denied = SEEP_CALL_BIT(sigaltstack);
    let_in[2] = is_let_in((uintptr_t)signal_stack + signal_stack_bytes);
    seep_calls_denied = 0;
}

/* It may lie above the hook that it interrupts. What lies beside it does not
 * count, and where it cannot be known nothing is taken for left. */
static void a_handler_on_its_own_stack_leaves_no_hook(void **state)
{
    stack_t stack = {.ss_size = 1 << 16};
    struct sigaction action = {.sa_handler = enter_in_handler,
                               .sa_flags = SA_ONSTACK};

    (void)state;
    stack.ss_sp = malloc(stack.ss_size);
    assert_non_null(stack.ss_sp);
    signal_stack = stack.ss_sp;
    signal_stack_bytes = stack.ss_size;
    assert_int_equal(sigaltstack(&stack, NULL), 0);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    signal(SIGUSR1, SIG_DFL);
    free(signal_stack);
    assert_int_equal(let_in[0], 0);
    assert_int_equal(let_in[1], 1);
    assert_int_equal(let_in[2], 0);
}

/* From here on the process is restricted. */

static int restrict_it(void **state)
{
    begin(state);
    begin_recording();
    seep_life_restrict();
    return 0;
}

static void who_is_restricted_goes_on_and_its_child_does_not(void **state)
{
    (void)state;
    assert_true(seep_life_is_restricted());
    assert_int_equal(seep_life_state(), SEEP_LIFE_ON);
    is_ours = false;
    assert_non_null(seep_guard_enter(FRAME));
    assert_int_equal(seep_life_state(), SEEP_LIFE_DONE);
}

static void who_is_restricted_exits_without_a_question(void **state)
{
    (void)state;
    is_this_process = false;
    seep_life_exiting();
    assert_int_equal(header.final_tick, 5);
}

static void who_may_not_ask_for_its_stack_takes_no_hook_for_left(void **state)
{
    (void)state;
    seep_guard_enter(FRAME);
    assert_false(is_let_in(FRAME + 64));
}

static void who_may_not_ask_for_a_number_is_known_by_its_place(void **state)
{
    uint32_t mask = (1U << SEEP_SLOT_THREAD_BITS) - 1;
    uint32_t hash = (uint32_t)seep_hash_mix((uintptr_t)&seep_thread) & mask;

    (void)state;
    seep_thread.id = 0;
    assert_non_null(seep_guard_enter(FRAME));
    assert_int_equal(seep_thread.id, hash == 0 ? 1 : hash);
}

static void a_counter_that_is_forbidden_seeds_nothing(void **state)
{
    (void)state;
    seep_life_arm(false);
    assert_int_equal(seed, (uintptr_t)&seep_thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_child_lets_go_of_the_recording_of_its_parent,
                               begin),
        cmocka_unit_test_setup(a_child_of_who_has_no_recording_lets_go_of_none,
                               begin),
        cmocka_unit_test_setup(a_child_of_who_is_done_records_nothing, begin),
        cmocka_unit_test_setup(
            a_child_forked_in_pythons_allocator_is_not_marked, begin),
        cmocka_unit_test_setup(a_handlers_child_writes_on_into_zeros_of_its_own,
                               begin),
        cmocka_unit_test_setup(
            a_child_forked_before_the_start_has_nothing_to_forsake, begin),
        cmocka_unit_test_setup(
            a_child_that_is_sampled_waits_a_tenth_of_a_second, begin),
        cmocka_unit_test_setup(a_child_that_allocates_much_waits_no_longer,
                               begin),
        cmocka_unit_test_setup(a_child_that_is_recorded_whole_does_not_wait,
                               begin),
        cmocka_unit_test_setup(
            a_child_waits_no_longer_than_it_has_something_to_tell, begin),
        cmocka_unit_test_setup(a_clock_that_was_set_back_makes_nobody_wait,
                               begin),
        cmocka_unit_test_setup(only_the_creators_child_forsakes_what_it_creates,
                               begin),
        cmocka_unit_test_setup(
            a_jump_out_of_a_start_leaves_what_is_already_shown, begin),
        cmocka_unit_test_setup(
            a_jump_out_of_a_start_gives_up_what_nobody_has_seen, begin),
        cmocka_unit_test_setup(the_end_of_a_run_is_noted_once, begin),
        cmocka_unit_test_setup(nothing_begins_once_all_is_over, begin),
        cmocka_unit_test_setup(exit_is_noted_by_who_is_recorded_alone, begin),
        cmocka_unit_test_setup(an_exit_behind_the_end_of_the_run_is_not_noted,
                               begin),
        cmocka_unit_test_setup(
            who_comes_from_above_knows_that_the_hook_was_left, begin),
        cmocka_unit_test_setup(what_lies_far_above_is_another_stack, begin),
        cmocka_unit_test_setup(what_is_known_of_the_stack_decides, begin),
        cmocka_unit_test_setup(a_handler_on_its_own_stack_leaves_no_hook,
                               begin),
    };
    const struct CMUnitTest restricted[] = {
        cmocka_unit_test_setup(
            a_child_that_waits_and_is_restricted_records_nothing, begin),
        cmocka_unit_test_setup(who_is_restricted_goes_on_and_its_child_does_not,
                               restrict_it),
        cmocka_unit_test_setup(who_is_restricted_exits_without_a_question,
                               restrict_it),
        cmocka_unit_test_setup(
            who_may_not_ask_for_its_stack_takes_no_hook_for_left, restrict_it),
        cmocka_unit_test_setup(
            who_may_not_ask_for_a_number_is_known_by_its_place, restrict_it),
        cmocka_unit_test_setup(a_counter_that_is_forbidden_seeds_nothing,
                               restrict_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) +
           cmocka_run_group_tests(restricted, NULL, NULL);
}
