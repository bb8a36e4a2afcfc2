/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload/stacks: the names of threads, and what a stack says where Python
 * cannot be read, or not all of it. The walkers, Python and the tables of the
 * recording are made up here.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "seep_test.h"

#include "base/word.h"
#include "capture/native/elf.h"
#include "capture/python/interpreter.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/real.h"
#include "preload/track.h"
#include "record/modules.h"
#include "record/sites.h"

#define PID 1000U
#define CODE 5U
#define FRAMES 3U
#define LINE_BEHIND (1 << SEEP_FRAME_LINE_BITS)

struct seep_options seep_options;
_Atomic uint64_t seep_objects_unloads;

static struct seep_rec_header header;
static _Atomic uint64_t counters[SEEP_COUNTER_COUNT];
static const struct seep_view recording = {.header = &header,
                                           .counters = counters};
static bool is_restricted;
static uintptr_t stack_low;
static uintptr_t stack_high;

/* Python: one frame of it, in the middle of three. */
static bool is_on;
static bool is_busy;
static bool is_read; /* the code object */
static bool has_text;
static bool has_line;
static int32_t line;
static struct seep_python_stack python;
static struct seep_python_known known;

/* What came of it. */
static struct seep_codes_code interned;
static char interned_name[32];
static int intern_count;
static uint64_t site_frames[SEEP_STACK_FRAMES_MAX];
static size_t site_count;
static size_t modules;

bool seep_life_is_restricted(void)
{
    return is_restricted;
}

const char *seep_identity_executable(void)
{
    return "/bin/it";
}

int seep_native_init(enum seep_unwinder unwinder)
{
    return (int)unwinder;
}

size_t seep_native_capture(const struct seep_capture_start *start,
                           struct seep_stack_bounds *bounds, uintptr_t *pcs,
                           size_t capacity, struct seep_capture_end *ret_end)
{
    assert_true(capacity >= FRAMES);
    bounds->low = stack_low;
    bounds->high = stack_high;
    *ret_end = (struct seep_capture_end){.cut = SEEP_CUT_NONE};
    for (size_t i = 0; i < FRAMES; i++) {
        pcs[i] = start->pc + i;
    }
    return FRAMES;
}

void seep_native_after_fork(void)
{
}

void seep_native_restrict(void)
{
}

bool seep_allocator_is_outside(const struct seep_capture_start *start,
                               const struct seep_stack_bounds *bounds,
                               const struct seep_capture_end *end,
                               const uintptr_t *pcs, size_t count)
{
    (void)start;
    (void)bounds;
    (void)end;
    (void)pcs;
    return count == FRAMES;
}

bool seep_objects_find(uintptr_t address, struct seep_elf_image *ret_image)
{
    *ret_image = (struct seep_elf_image){.start = address, .path = ""};
    return true;
}

const uint8_t *seep_elf_build_id(const struct seep_elf_image *image,
                                 size_t *ret_bytes)
{
    (void)image;
    *ret_bytes = 0;
    return NULL;
}

uint32_t seep_modules_intern(const struct seep_view *view,
                             const struct seep_modules_object *object)
{
    assert_ptr_equal(view, &recording);
    assert_string_equal(object->path, "/bin/it");
    modules++;
    return 1;
}

uint64_t seep_modules_frame(const struct seep_view *view, uint32_t id,
                            uint64_t address)
{
    (void)view;
    assert_int_equal(id, 1);
    return address;
}

void seep_short_stack_always(bool always)
{
    assert_false(always);
}

uint32_t seep_sites_intern(const struct seep_view *view,
                           struct seep_place place,
                           struct seep_sites_stack *stack,
                           seep_sites_frame frame_of)
{
    assert_int_equal(place.space, SEEP_SPACE_HEAP);
    site_count = stack->count;
    for (size_t i = 0; i < site_count; i++) {
        site_frames[i] = frame_of(view, stack->addresses[i]);
    }
    return 9;
}

bool seep_codes_find(uint64_t identity, uint32_t *ret_code)
{
    (void)identity;
    (void)ret_code;
    return false;
}

uint32_t seep_codes_intern(const struct seep_view *view, uint64_t identity,
                           const struct seep_codes_code *code)
{
    (void)view;
    (void)identity;
    interned = *code;
    snprintf(interned_name, sizeof(interned_name), "%s", code->name);
    intern_count++;
    return CODE;
}

uint32_t seep_codes_traits(const struct seep_view *view, uint64_t frame)
{
    (void)view;
    (void)frame;
    return 0;
}

void seep_python_init(void)
{
}

void seep_python_consider(uintptr_t address)
{
    (void)address;
}

enum seep_python_state seep_python_state(void)
{
    return is_on ? SEEP_PYTHON_ON : SEEP_PYTHON_NONE;
}

bool seep_python_is_on(void)
{
    return is_on;
}

uint32_t seep_python_version(void)
{
    return 0;
}

enum seep_python_objects seep_python_objects_state(void)
{
    return SEEP_PYTHON_OBJECTS_OFF;
}

struct seep_python_stack *seep_python_stack_take(void)
{
    return is_busy ? NULL : &python;
}

void seep_python_stack_give(struct seep_python_stack *stack)
{
    assert_ptr_equal(stack, &python);
}

void seep_python_stack_fill(struct seep_python_stack *stack)
{
    stack->count = FRAMES;
    for (uint16_t i = 0; i < FRAMES; i++) {
        stack->merged[i] =
            (struct seep_merged_frame){.address = stack->pcs[i], .number = 0};
    }
    stack->merged[1].is_python = true;
    stack->chain.frames = stack->frames;
    stack->chain.count = 1;
}

bool seep_python_stack_text(struct seep_python_stack *stack, uintptr_t code)
{
    assert_int_equal(code, 0x10000);
    strcpy(stack->file, "file.py");
    strcpy(stack->name, "function");
    return has_text;
}

const struct seep_python_known *
seep_python_stack_know(struct seep_python_stack *stack, uintptr_t code)
{
    assert_ptr_equal(stack, &python);
    assert_int_equal(code, 0x10000);
    return is_read ? &known : NULL;
}

bool seep_python_line_cached(const struct seep_python *it,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int32_t instruction, int32_t *ret_line)
{
    (void)it;
    (void)memory;
    assert_ptr_equal(identity, &known.identity);
    assert_int_equal(instruction, 8);
    if (has_line) {
        *ret_line = line;
    }
    return has_line;
}

void seep_python_after_fork(void)
{
}

void seep_python_restrict(void)
{
}

/* What a thread of its own says, whose id nobody has had. */
static int begin(void **state)
{
    static uint32_t id = PID;

    (void)state;
    memset((void *)&header, 0, sizeof(header));
    memset((void *)counters, 0, sizeof(counters));
    header.pid = PID;
    is_restricted = false;
    stack_low = 0x6000;
    stack_high = 0x8000;
    is_on = false;
    is_busy = false;
    is_read = true;
    has_text = true;
    has_line = true;
    line = 12;
    memset(&python.frames[0], 0, sizeof(python.frames[0]));
    python.frames[0].code = 0x10000;
    python.frames[0].instruction = 8;
    memset(&known, 0, sizeof(known));
    known.version = 1;
    known.identity.code = 0x10000;
    known.identity.first_line = 10;
    memset(interned_name, 0, sizeof(interned_name));
    intern_count = 0;
    memset((void *)&seep_thread, 0, sizeof(seep_thread));
    seep_thread.id = ++id;
    prctl(PR_SET_NAME, "main thread", 0, 0, 0);
    return 0;
}

static int begin_all(void **state)
{
    begin(state);
    seep_stacks_init();
    return 0;
}

static void take(uintptr_t sp)
{
    struct seep_capture_start start = {.pc = 0x400000, .sp = sp, .fp = 0};
    struct seep_place place = {SEEP_SPACE_HEAP, 0};
    bool may_ask = false;

    assert_int_equal(seep_stacks_site(&recording, &start, place, &may_ask), 9);
}

/* The name in the last frame of a thread that is called @name; "": none. */
static const char *name_of(const char *name)
{
    begin(NULL);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    take(0x7000);
    if (intern_count == 0) {
        assert_int_equal(site_count, FRAMES);
        return "";
    }
    assert_int_equal(site_count, FRAMES + 1);
    assert_int_equal(interned.kind, SEEP_CODE_THREAD);
    assert_int_equal(site_frames[FRAMES], seep_codes_frame(CODE, 0));
    return interned_name;
}

static void a_threads_own_name_stands_last(void **state)
{
    (void)state;
    assert_string_equal(name_of("loader"), "loader");
    assert_string_equal(name_of("main thr"), "main thr");
    assert_string_equal(name_of("main thread 2x"), "main thread 2x");
}

static void an_inherited_name_and_none_are_no_frame(void **state)
{
    (void)state;
    assert_string_equal(name_of("main thread"), "");
    assert_string_equal(name_of(""), "");
}

static void *take_a_name(void *name)
{
    seep_thread_name_changed(name);
    return NULL;
}

static void what_another_thread_is_called_is_a_name_of_its_own(void **state)
{
    static char name[] = "decoder";
    pthread_t other;

    (void)state;
    assert_int_equal(pthread_create(&other, NULL, take_a_name, name), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_string_equal(name_of(name), "decoder");
}

static void the_numbers_of_a_pool_are_one_name(void **state)
{
    (void)state;
    assert_string_equal(name_of("worker-12"), "worker-*");
    assert_string_equal(name_of("worker-7:"), "worker-7:");
    assert_string_equal(name_of("123456789012345"), "123456789012345");
}

static void a_name_is_asked_once(void **state)
{
    (void)state;
    assert_string_equal(name_of("loader"), "loader");
    take(0x7000);
    assert_int_equal(intern_count, 1);
    assert_int_equal(site_count, FRAMES + 1);
    seep_thread_name_changed(NULL);
    take(0x7000);
    assert_int_equal(intern_count, 2);
}

static void that_there_is_no_name_is_asked_once_too(void **state)
{
    (void)state;
    assert_string_equal(name_of("main thread"), "");
    prctl(PR_SET_NAME, "other", 0, 0, 0);
    take(0x7000);
    assert_int_equal(intern_count, 0);
    seep_thread.id++; /* another, of no name that is known */
    take(0x7000);
    assert_int_equal(intern_count, 1);
}

static void who_is_restricted_has_no_name(void **state)
{
    (void)state;
    prctl(PR_SET_NAME, "loader", 0, 0, 0);
    is_restricted = true;
    take(0x7000);
    assert_int_equal(site_count, FRAMES);
}

static void a_module_is_looked_up_once(void **state)
{
    (void)state;
    seep_stacks_after_fork();
    modules = 0;
    take(0x7000);
    assert_int_equal(modules, FRAMES);
    take(0x7000);
    assert_int_equal(modules, FRAMES);
}

static void assert_python_frame(uint32_t code, int64_t of_line, uint64_t lost)
{
    take(0x7000);
    assert_int_equal(site_count, FRAMES);
    assert_int_equal(site_frames[0], 0x400000);
    assert_int_equal(site_frames[1], seep_codes_frame(code, of_line));
    assert_int_equal(site_frames[2], 0x400002);
    assert_int_equal(counters[SEEP_COUNT_CODES_FULL], lost);
}

static int begin_python(void **state)
{
    begin(state);
    is_on = true;
    return 0;
}

static void a_frame_of_python_has_its_code_and_line(void **state)
{
    (void)state;
    assert_python_frame(CODE, 12, 0);
    assert_int_equal(interned.kind, SEEP_CODE_PYTHON);
    assert_int_equal(interned.first_line, 10);
    assert_python_frame(CODE, 12, 0);
    assert_int_equal(intern_count, 1); /* for as long as it is the same */
}

static void without_a_line_it_is_the_first_one(void **state)
{
    (void)state;
    has_line = false;
    assert_python_frame(CODE, 10, 0);
    begin_python(NULL);
    line = 0;
    assert_python_frame(CODE, 10, 0);
}

static void a_line_that_cannot_be_is_not_known(void **state)
{
    (void)state;
    known.identity.first_line = -1;
    line = LINE_BEHIND;
    assert_python_frame(CODE, 0, 0);
    assert_int_equal(interned.first_line, 0);
    begin_python(NULL);
    known.identity.first_line = -1;
    has_line = false;
    assert_python_frame(CODE, 0, 0);
}

static void a_name_that_cannot_be_read_is_tried_again(void **state)
{
    (void)state;
    has_text = false;
    assert_python_frame(SEEP_CODE_NONE, 12, 1);
    has_text = true;
    assert_python_frame(CODE, 12, 1);
}

static void a_code_object_that_is_gone_leaves_a_frame(void **state)
{
    (void)state;
    is_read = false;
    assert_python_frame(SEEP_CODE_NONE, 0, 1);
}

static void where_all_are_busy_the_stack_is_native(void **state)
{
    (void)state;
    is_busy = true;
    take(0x7000);
    assert_int_equal(site_count, FRAMES);
    assert_int_equal(site_frames[1], 0x400001);
    assert_int_equal(counters[SEEP_COUNT_PYTHON_BUSY], 1);
    is_on = false; /* nothing is missing then */
    take(0x7000);
    assert_int_equal(counters[SEEP_COUNT_PYTHON_BUSY], 1);
}

static void nothing_of_another_stack_is_read_as_ones_own(void **state)
{
    (void)state;
    take(0x7000);
    assert_int_equal(python.own_low, 0x7000);
    assert_int_equal(python.own_high, 0x8000);
    take(0x5fff);
    assert_int_equal(python.own_high, 0);
    take(0x8000);
    assert_int_equal(python.own_low, 0);
    assert_int_equal(python.own_high, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_threads_own_name_stands_last, begin),
        cmocka_unit_test_setup(an_inherited_name_and_none_are_no_frame, begin),
        cmocka_unit_test_setup(
            what_another_thread_is_called_is_a_name_of_its_own, begin),
        cmocka_unit_test_setup(the_numbers_of_a_pool_are_one_name, begin),
        cmocka_unit_test_setup(a_name_is_asked_once, begin),
        cmocka_unit_test_setup(that_there_is_no_name_is_asked_once_too, begin),
        cmocka_unit_test_setup(who_is_restricted_has_no_name, begin),
        cmocka_unit_test_setup(a_module_is_looked_up_once, begin),
        cmocka_unit_test_setup(a_frame_of_python_has_its_code_and_line,
                               begin_python),
        cmocka_unit_test_setup(without_a_line_it_is_the_first_one,
                               begin_python),
        cmocka_unit_test_setup(a_line_that_cannot_be_is_not_known,
                               begin_python),
        cmocka_unit_test_setup(a_name_that_cannot_be_read_is_tried_again,
                               begin_python),
        cmocka_unit_test_setup(a_code_object_that_is_gone_leaves_a_frame,
                               begin_python),
        cmocka_unit_test_setup(where_all_are_busy_the_stack_is_native,
                               begin_python),
        cmocka_unit_test_setup(nothing_of_another_stack_is_read_as_ones_own,
                               begin_python),
    };

    return cmocka_run_group_tests(tests, begin_all, NULL);
}
