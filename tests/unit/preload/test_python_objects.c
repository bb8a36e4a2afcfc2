/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload/python_objects: which of Python's allocators are wrapped, how it is
 * seen who stands in front, and whose arenas are marked. Python, the loader and
 * the wrappers are made up here.
 */
#include <dlfcn.h>

#include "seep_test.h"

#include "capture/native/elf.h"
#include "capture/python/interpreter.h"
#include "preload/hooks.h"
#include "preload/options.h"
#include "preload/python/wrap.h"
#include "preload/real.h"
#include "preload/track.h"

#define VERSION_3_11 0x030b0000U
#define VERSION_3_12 0x030c0000U
#define LOOKS 8

struct seep_options seep_options;
bool seep_real_is_behind;

/* Python. */
struct arenas {
    void *context;
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *arena, size_t size);
};
static enum seep_python_state python;
static uint32_t version;
static struct seep_python_allocator raw; /* what is set for RAW */
static struct seep_python_allocator obj;
static uintptr_t runtime[64]; /* _PyRuntime: RAW, MEM and OBJ in a row */
static size_t runtime_bytes;
static struct arenas arenas_set;
static bool was_marked;
static int arenas_freed;
static const char *missing; /* a symbol */
static int lookups;

/* The loader and the wrappers. */
static bool is_found;
static bool is_open;
static uintptr_t object_start;
static uintptr_t object_end;
static int tag; /* the context of who is ours */
static int wrapped;
static bool frees_left;
static bool came;
static bool is_used;
static bool is_blind;
static const struct seep_python_allocator *kept;
static seep_python_allocator_call *asked;

static void get_allocator(int domain, struct seep_python_allocator *it)
{
    *it = domain == SEEP_PYTHON_DOMAIN_RAW ? raw : obj;
}

static void set_allocator(int domain, struct seep_python_allocator *it)
{
    (void)domain;
    (void)it;
}

static void *arena_alloc(void *context, size_t size)
{
    assert_ptr_equal(context, &arenas_set);
    (void)size;
    was_marked = seep_track_is_marked();
    return runtime;
}

static void arena_free(void *context, void *arena, size_t size)
{
    assert_ptr_equal(context, &arenas_set);
    assert_ptr_equal(arena, runtime);
    (void)size;
    arenas_freed++;
}

static void get_arenas(struct arenas *it)
{
    *it = (struct arenas){&arenas_set, arena_alloc, arena_free};
}

static void set_arenas(struct arenas *it)
{
    arenas_set = *it;
}

/* In place of dlsym(), by meson.build. */
void *dlsym(void *handle, const char *name)
{
    seep_python_allocator_call *allocator =
        strcmp(name, "PyMem_GetAllocator") == 0 ? get_allocator : set_allocator;
    void (*of_arenas)(struct arenas *) =
        strcmp(name, "PyObject_GetArenaAllocator") == 0 ? get_arenas
                                                        : set_arenas;
    void *symbol = NULL;

    (void)handle;
    lookups++;
    if (missing == NULL || strcmp(name, missing) != 0) {
        if (strstr(name, "Arena") != NULL) {
            memcpy(&symbol, &of_arenas, sizeof(symbol));
        } else {
            memcpy(&symbol, &allocator, sizeof(symbol));
        }
    }
    return symbol;
}

enum seep_python_state seep_python_state(void)
{
    return python;
}

uint32_t seep_python_version(void)
{
    return version;
}

bool seep_objects_find(uintptr_t address, struct seep_elf_image *ret_image)
{
    seep_python_allocator_call *get = get_allocator;

    assert_memory_equal(&address, &get, sizeof(get));
    *ret_image =
        (struct seep_elf_image){.start = object_start, .end = object_end};
    return is_found;
}

bool seep_elf_symbols_open(const struct seep_elf_image *image,
                           struct seep_elf_symbols *ret_symbols)
{
    ret_symbols->image = image;
    return is_open;
}

uintptr_t seep_elf_symbols_find(const struct seep_elf_symbols *symbols,
                                const char *name, size_t *ret_bytes)
{
    assert_true(symbols->image->end == object_end);
    assert_string_equal(name, "_PyRuntime");
    *ret_bytes = runtime_bytes;
    return (uintptr_t)runtime;
}

void seep_python_wrap(seep_python_allocator_call *get,
                      seep_python_allocator_call *set, bool leave_frees)
{
    assert_true(get == get_allocator && set == set_allocator);
    wrapped++;
    frees_left = leave_frees;
}

void seep_python_wrap_watch_raw(const struct seep_python_allocator *where,
                                seep_python_allocator_call *get)
{
    kept = where;
    asked = get;
}

bool seep_python_wrap_is(const struct seep_python_allocator *it)
{
    return it->context == &tag;
}

bool seep_python_wrap_is_blind(void)
{
    return is_blind;
}

bool seep_python_wrap_doubt(void)
{
    return came;
}

bool seep_python_wrap_is_used(void)
{
    return is_used;
}

static void raw_free(void *context, void *block)
{
    (void)context;
    (void)block;
}

static int begin(void **state)
{
    (void)state;
    seep_options.python = SEEP_OPTIONS_PYTHON_OBJECTS;
    seep_options.sample_log2 = 16;
    seep_real_is_behind = false;
    python = SEEP_PYTHON_ON;
    version = VERSION_3_12;
    raw = (struct seep_python_allocator){.free = raw_free};
    obj = (struct seep_python_allocator){.context = &tag};
    memset(runtime, 0, sizeof(runtime));
    memcpy(&runtime[7], &raw, sizeof(raw));
    runtime[17] = (uintptr_t)&tag;
    runtime_bytes = sizeof(runtime);
    was_marked = false;
    missing = NULL;
    lookups = 0;
    is_found = true;
    is_open = true;
    object_start = 4096;
    object_end = UINTPTR_MAX;
    wrapped = 0;
    came = true;
    is_used = true;
    is_blind = false;
    kept = NULL;
    asked = NULL;
    seep_thread.countdown_bytes = 1000;
    return 0;
}

static enum seep_python_objects state_after_init(void)
{
    seep_python_objects_init();
    return seep_python_objects_state();
}

static void nothing_is_wrapped_unasked(void **state)
{
    (void)state;
    seep_options.python = SEEP_OPTIONS_PYTHON_FRAMES;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_OFF);
    assert_int_equal(lookups, 0);
}

static void where_there_is_no_python_nothing_is_looked_up(void **state)
{
    (void)state;
    python = SEEP_PYTHON_NONE;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_ABSENT);
    assert_int_equal(lookups, 0);
}

static void a_python_that_is_not_known_is_left_alone(void **state)
{
    static const char *const names[] = {
        "PyMem_GetAllocator", "PyMem_SetAllocator",
        "PyObject_GetArenaAllocator", "PyObject_SetArenaAllocator"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        missing = names[i];
        assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_UNKNOWN);
    }
    missing = NULL;
    python = SEEP_PYTHON_TYPES;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_UNKNOWN);
    assert_int_equal(wrapped, 0);
    assert_null(arenas_set.alloc);
}

/* Who is in front cannot be seen then, and silence says nothing. */
static void assert_is_wrapped_unseen(void)
{
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_ON);
    assert_int_equal(wrapped, 1);
    assert_null(kept);
    assert_null(asked);
    came = false;
    for (int i = 0; i < 2 * LOOKS; i++) {
        assert_int_equal(seep_python_objects_state(), SEEP_PYTHON_OBJECTS_ON);
    }
    begin(NULL);
}

static void words_that_are_not_found_leave_it_on(void **state)
{
    (void)state;
    is_found = false;
    assert_is_wrapped_unseen();
    is_open = false;
    assert_is_wrapped_unseen();
    runtime_bytes = 0;
    assert_is_wrapped_unseen();
    runtime[17] = 0;
    assert_is_wrapped_unseen();
}

static void raw_is_watched_where_its_words_lie(void **state)
{
    (void)state;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_ON);
    assert_ptr_equal(kept, &runtime[7]);
    assert_null(asked);
    assert_true(frees_left);
}

static void raw_is_not_watched_where_its_free_may_be_anothers(void **state)
{
    (void)state;
    seep_real_is_behind = true; /* malloc is */
    seep_python_objects_init();
    seep_real_is_behind = false;
    is_found = false;
    seep_python_objects_init();
    is_found = true;
    object_end = (uintptr_t)raw.free;
    seep_python_objects_init();
    object_end = UINTPTR_MAX;
    object_start = (uintptr_t)raw.free + 1;
    seep_python_objects_init();
    object_start = 4096;
    runtime[7] = 1; /* the words before those of MEM are not RAW's */
    seep_python_objects_init();
    assert_null(kept);
    assert_null(asked);
    assert_int_equal(wrapped, 5);
}

static void who_is_silent_for_long_was_replaced(void **state)
{
    (void)state;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_ON);
    came = false;
    runtime[17] = 0; /* another is set */
    for (int i = 0; i < LOOKS; i++) {
        assert_int_equal(seep_python_objects_state(), SEEP_PYTHON_OBJECTS_ON);
    }
    assert_int_equal(seep_python_objects_state(), SEEP_PYTHON_OBJECTS_REPLACED);
    came = true; /* who stands before us leads here */
    assert_int_equal(seep_python_objects_state(), SEEP_PYTHON_OBJECTS_ON);
}

static void who_is_blind_was_replaced(void **state)
{
    (void)state;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_ON);
    is_blind = true;
    assert_int_equal(seep_python_objects_state(), SEEP_PYTHON_OBJECTS_REPLACED);
    is_blind = false;
    assert_int_equal(seep_python_objects_state(), SEEP_PYTHON_OBJECTS_ON);
}

static bool is_marked_for(size_t size)
{
    int64_t countdown_bytes = seep_thread.countdown_bytes;

    assert_ptr_equal(arenas_set.alloc(arenas_set.context, size), runtime);
    assert_int_equal(seep_thread.countdown_bytes, countdown_bytes);
    return was_marked;
}

static void an_arena_is_not_the_programs_mapping(void **state)
{
    (void)state;
    seep_python_objects_init();
    assert_true(is_marked_for(SEEP_PYTHON_ARENA_BYTES_TO_3_9));
    assert_true(is_marked_for(SEEP_PYTHON_ARENA_BYTES));
    assert_true(is_marked_for(SEEP_PYTHON_ARENA_BYTES_HUGE));
    assert_false(is_marked_for(16384)); /* a stack of frames */
    arenas_set.free(arenas_set.context, runtime, 16384);
    assert_int_equal(arenas_freed, 1);
}

static void an_arena_of_who_does_not_lead_to_us_is(void **state)
{
    (void)state;
    seep_python_objects_init();
    runtime[17] = 0;
    assert_true(is_marked_for(SEEP_PYTHON_ARENA_BYTES));
    is_used = false;
    assert_false(is_marked_for(SEEP_PYTHON_ARENA_BYTES));
    is_used = true;
    is_blind = true;
    assert_false(is_marked_for(SEEP_PYTHON_ARENA_BYTES));
}

static void an_arena_under_a_mark_keeps_it(void **state)
{
    (void)state;
    seep_python_objects_init();
    seep_thread.countdown_bytes = seep_track_mark(&tag);
    assert_true(is_marked_for(SEEP_PYTHON_ARENA_BYTES));
    assert_true(seep_track_is_marked_for(&tag));
}

/* The last: what was found of 3.12 is not forgotten. */
static void to_3_11_python_is_asked(void **state)
{
    (void)state;
    version = VERSION_3_11;
    seep_options.sample_log2 = 15;
    assert_int_equal(state_after_init(), SEEP_PYTHON_OBJECTS_ON);
    assert_true(asked == get_allocator);
    assert_null(kept);
    assert_false(frees_left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_wrapped_unasked, begin),
        cmocka_unit_test_setup(where_there_is_no_python_nothing_is_looked_up,
                               begin),
        cmocka_unit_test_setup(a_python_that_is_not_known_is_left_alone, begin),
        cmocka_unit_test_setup(words_that_are_not_found_leave_it_on, begin),
        cmocka_unit_test_setup(raw_is_watched_where_its_words_lie, begin),
        cmocka_unit_test_setup(
            raw_is_not_watched_where_its_free_may_be_anothers, begin),
        cmocka_unit_test_setup(who_is_silent_for_long_was_replaced, begin),
        cmocka_unit_test_setup(who_is_blind_was_replaced, begin),
        cmocka_unit_test_setup(an_arena_is_not_the_programs_mapping, begin),
        cmocka_unit_test_setup(an_arena_of_who_does_not_lead_to_us_is, begin),
        cmocka_unit_test_setup(an_arena_under_a_mark_keeps_it, begin),
        cmocka_unit_test_setup(to_3_11_python_is_asked, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
