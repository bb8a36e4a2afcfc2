/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Depot and site table: one site a stack and space, refusal when full. */
#include <stdio.h>
#include <string.h>

#include "seep_test.h"

#include "base/hash.h"
#include "base/word.h"
#include "empty_recording.h"
#include "record/modules.h"
#include "record/sites.h"

static struct seep_view view;
static void *index_memory;

static int set_up(void **state)
{
    (void)state;
    seep_sites_forget();
    seep_codes_forget();
    if (empty_recording_make(&view) != 0) {
        return -1;
    }
    index_memory = calloc(1, seep_index_bytes(view.header));
    seep_index_start(&view, index_memory);
    return index_memory == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    seep_index_start(NULL, NULL);
    free(index_memory);
    empty_recording_free(&view);
    return 0;
}

static uint64_t frame_of(const struct seep_view *unused, uint64_t address)
{
    (void)unused;
    return address + 1;
}

static const struct seep_place heap = {SEEP_SPACE_HEAP, 0};

static uint64_t same_frame(const struct seep_view *unused, uint64_t word)
{
    (void)unused;
    return word;
}

static uint32_t intern(enum seep_space space, uint64_t first, uint64_t second,
                       uint64_t epoch)
{
    uint64_t addresses[2] = {first, second};
    struct seep_sites_stack stack = {
        .addresses = addresses, .count = 2, .epoch = epoch};

    return seep_sites_intern(&view, (struct seep_place){space, 0}, &stack,
                             frame_of);
}

static uint64_t counter(enum seep_counter which)
{
    return atomic_load_explicit(&view.counters[which], memory_order_relaxed);
}

static void one_stack_is_one_site(void **state)
{
    uint32_t site = intern(SEEP_SPACE_HEAP, 10, 20, 0);

    (void)state;
    assert_int_not_equal(site, 0);
    assert_int_equal(intern(SEEP_SPACE_HEAP, 10, 20, 0), site);
    assert_int_not_equal(intern(SEEP_SPACE_HEAP, 10, 21, 0), site);
    assert_int_not_equal(intern(SEEP_SPACE_MAPPED, 10, 20, 0), site);
    /* After a dlclose the same addresses are looked up anew. */
    assert_int_equal(intern(SEEP_SPACE_HEAP, 10, 20, 2), site);
}

static uint32_t intern_at(struct seep_place place, bool cached)
{
    uint64_t addresses[2] = {10, 20};
    struct seep_sites_stack stack = {.addresses = addresses, .count = 2};

    if (!cached) {
        seep_sites_forget();
    }
    return seep_sites_intern(&view, place, &stack, frame_of);
}

static void each_device_has_a_site_of_its_own(void **state)
{
    uint32_t sites[SEEP_DEVICES_MAX + 1];

    (void)state;
    for (uint32_t i = 0; i <= SEEP_DEVICES_MAX; i++) {
        struct seep_place place = {SEEP_SPACE_DEVICE, i};

        sites[i] = intern_at(place, true);
        assert_int_equal(view.sites[sites[i]].device, i);
        assert_int_equal(view.sites[sites[i]].space, SEEP_SPACE_DEVICE);
        assert_int_equal(view.sites[sites[i]].stack,
                         view.sites[sites[0]].stack);
        assert_int_equal(intern_at(place, true), sites[i]);
        assert_int_equal(intern_at(place, false), sites[i]);
        for (uint32_t j = 0; j < i; j++) {
            assert_int_not_equal(sites[i], sites[j]);
        }
    }
}

/* A site without a device is what it was before there were devices. */
static void without_a_device_the_key_is_of_stack_and_space(void **state)
{
    const struct seep_rec_site *site =
        &view.sites[intern_at((struct seep_place){SEEP_SPACE_HEAP, 0}, true)];
    uint64_t words[2] = {
        atomic_load_explicit(&view.stacks[site->stack].key,
                             memory_order_relaxed),
        SEEP_SPACE_HEAP,
    };

    (void)state;
    assert_true(atomic_load_explicit(&site->key, memory_order_relaxed) ==
                seep_hash_words(0, words, 2));
}

static void a_site_has_its_frames(void **state)
{
    const struct seep_rec_site *site =
        &view.sites[intern(SEEP_SPACE_MAPPED, 10, 20, 0)];
    uint64_t frames[SEEP_STACK_FRAMES_MAX];

    (void)state;
    assert_int_equal(atomic_load_explicit(&site->state, memory_order_relaxed),
                     SEEP_PUBLISHED);
    assert_int_equal(site->space, SEEP_SPACE_MAPPED);
    assert_int_equal(seep_view_frames(&view, site->stack, frames), 2);
    assert_int_equal(frames[0], 11);
    assert_int_equal(frames[1], 21);
}

/* Deep ones that differ in their inner frames only: each is told whole, and
 * the outer ones are there once. */
static void stacks_share_their_outer_frames(void **state)
{
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t sites[40];

    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t words[SEEP_STACK_FRAMES_MAX];
        struct seep_sites_stack stack = {.addresses = words, .count = 60};

        for (uint32_t k = 0; k < 60; k++) {
            words[k] = k < 1 + i % 7 ? 1000 * (i + 1) + k : 60 - k;
        }
        sites[i] = seep_sites_intern(&view, heap, &stack, same_frame);
    }
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(
            seep_view_frames(&view, view.sites[sites[i]].stack, frames), 60);
        for (uint32_t k = 0; k < 60; k++) {
            assert_int_equal(frames[k],
                             k < 1 + i % 7 ? 1000 * (i + 1) + k : 60 - k);
        }
    }
    assert_true(atomic_load_explicit(&view.header->frames_used,
                                     memory_order_relaxed) < 60 + 40 * 10);
}

static void a_full_table_refuses_and_keeps_the_old_sites(void **state)
{
    uint32_t first = intern(SEEP_SPACE_HEAP, 1, 1, 0);
    uint32_t refused = 0;

    (void)state;
    for (uint64_t i = 2; i < 4 * view.site_capacity; i++) {
        refused += intern(SEEP_SPACE_HEAP, i, i, 0) == 0;
    }

    assert_true(refused > 2 * view.site_capacity);
    /* Told for each event, also of a stack that is known to have no room. */
    assert_int_equal(counter(SEEP_COUNT_SITES_FULL), refused);
    assert_int_equal(intern(SEEP_SPACE_HEAP, 1 << 20, 1, 0), 0);
    assert_int_equal(intern(SEEP_SPACE_HEAP, 1 << 20, 1, 0), 0);
    assert_int_equal(counter(SEEP_COUNT_SITES_FULL), refused + 2);
    assert_int_equal(intern(SEEP_SPACE_HEAP, 1, 1, 0), first);
}

static void a_full_depot_costs_frames_and_not_sites(void **state)
{
    uint32_t site;

    (void)state;
    atomic_store_explicit(&view.header->frames_used, view.frame_capacity - 1,
                          memory_order_relaxed);
    site = intern(SEEP_SPACE_HEAP, 10, 20, 0);

    assert_int_not_equal(site, 0);
    assert_int_equal(counter(SEEP_COUNT_STACKS_FULL), 1);
    assert_int_equal(
        atomic_load_explicit(&view.stacks[view.sites[site].stack].frame_count,
                             memory_order_relaxed),
        0);
}

/* From a file that somebody else has written into. */
static void more_frames_than_there_are_leave_no_room(void **state)
{
    uint32_t site;

    (void)state;
    seep_word_store(&view.header->frames_used, UINT64_MAX);
    site = intern(SEEP_SPACE_HEAP, 10, 20, 0);
    assert_int_not_equal(site, 0);
    assert_int_equal(counter(SEEP_COUNT_STACKS_FULL), 1);
    assert_int_equal(seep_word_load(&view.header->frames_used), UINT64_MAX);
}

static void a_stack_of_no_frames_has_a_site(void **state)
{
    uint64_t none[1];
    struct seep_sites_stack stack = {.addresses = none, .cut = SEEP_CUT_BOUNDS};
    uint32_t site = seep_sites_intern(&view, heap, &stack, frame_of);

    (void)state;
    assert_int_not_equal(site, 0);
    assert_int_equal(view.stacks[view.sites[site].stack].cut, SEEP_CUT_BOUNDS);
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, none), 0);
}

/* What another thread does, whose id is in the same slot, while room is made
 * for the frames of a stack. */
static void (*meanwhile)(void);

static bool reserve(const struct seep_view *of, uint64_t from, uint64_t end,
                    uint64_t most)
{
    const struct seep_rec_section *frames =
        &of->header->sections[SEEP_SECTION_FRAMES];
    void (*action)(void) = meanwhile;

    (void)end;
    (void)most;
    if (action != NULL && from >= frames->offset_bytes &&
        from < frames->offset_bytes + frames->bytes) {
        meanwhile = NULL;
        action();
    }
    return true;
}

static uint32_t intern_meanwhile(void (*action)(void), uint64_t first,
                                 uint64_t second)
{
    static _Atomic uint64_t none[SEEP_LAYOUT_LEAST_BYTES / 4096 / 64];
    static const struct seep_view_room room = {none, reserve};
    uint32_t site;

    meanwhile = action;
    view.room = &room;
    site = intern(SEEP_SPACE_HEAP, first, second, 0);
    view.room = NULL;
    return site;
}

static uint32_t others_site;

static void intern_another(void)
{
    others_site = intern(SEEP_SPACE_HEAP, 31, 20, 0);
}

static void intern_another_without_room(void)
{
    uint64_t used = seep_word_load(&view.header->frames_used);

    seep_word_store(&view.header->frames_used, view.frame_capacity);
    intern_another();
    seep_word_store(&view.header->frames_used, used);
}

/* Only one thread may look into the last stack: the other's is told whole. */
static void a_stack_that_comes_while_one_is_added_shares_nothing(void **state)
{
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t site;

    (void)state;
    intern(SEEP_SPACE_HEAP, 30, 20, 0);
    site = intern_meanwhile(intern_another, 32, 20);
    assert_int_equal(view.stacks[view.sites[site].stack].shared_count, 1);
    assert_int_equal(view.stacks[view.sites[others_site].stack].shared_count,
                     0);
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, frames),
                     2);
    assert_int_equal(frames[0], 33);
    assert_int_equal(frames[1], 21);
    assert_int_equal(
        seep_view_frames(&view, view.sites[others_site].stack, frames), 2);
    assert_int_equal(frames[0], 32);
    assert_int_equal(frames[1], 21);
}

static void such_a_stack_without_room_leaves_the_other_alone(void **state)
{
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t site;

    (void)state;
    intern(SEEP_SPACE_HEAP, 30, 20, 0);
    site = intern_meanwhile(intern_another_without_room, 32, 20);
    assert_int_equal(counter(SEEP_COUNT_STACKS_FULL), 1);
    assert_int_not_equal(others_site, 0);
    assert_int_equal(
        seep_view_frames(&view, view.sites[others_site].stack, frames), 0);
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, frames),
                     2);
    assert_int_equal(view.stacks[view.sites[site].stack].shared_count, 1);
}

static void fill_frames_to(uint32_t eighths)
{
    atomic_store_explicit(&view.header->frames_used,
                          view.frame_capacity / 8 * (uint64_t)eighths + 1,
                          memory_order_relaxed);
}

/* A stack of native frames below Python's lines. */
static uint32_t intern_python(uint64_t first, uint32_t natives, uint32_t codes,
                              bool named, uint32_t thread)
{
    uint64_t words[SEEP_STACK_FRAMES_MAX];
    struct seep_sites_stack stack = {.addresses = words};

    for (uint32_t i = 0; i < natives; i++) {
        words[stack.count++] = first + i;
    }
    for (uint32_t i = 0; i < codes; i++) {
        words[stack.count++] = SEEP_FRAME_IS_CODE | (first + i);
    }
    if (named) {
        words[stack.count++] = SEEP_FRAME_IS_CODE | (uint64_t)thread
                                                        << SEEP_FRAME_LINE_BITS;
    }
    return seep_sites_intern(&view, heap, &stack, same_frame);
}

static uint32_t frames_of(uint32_t site)
{
    return atomic_load_explicit(
        &view.stacks[view.sites[site].stack].frame_count, memory_order_relaxed);
}

static void fill_to(uint32_t sites)
{
    atomic_store_explicit(&view.header->site_count, sites,
                          memory_order_relaxed);
}

/* The frames of a model's layers were full before the sites were. */
static void frames_that_fill_up_make_stacks_short_too(void **state)
{
    (void)state;
    fill_frames_to(2);
    assert_int_equal(frames_of(intern_python(100, 10, 20, false, 0)), 30);
    fill_frames_to(5);
    assert_int_equal(frames_of(intern_python(200, 10, 20, false, 0)), 13);
    fill_frames_to(6);
    assert_int_equal(frames_of(intern_python(500, 10, 20, false, 0)), 10);
    fill_frames_to(7);
    assert_int_equal(frames_of(intern_python(700, 10, 20, false, 0)), 1);
    assert_int_equal(counter(SEEP_COUNT_STACKS_FULL), 0);
}

/* What is left is inside, and a few lines; the native frames go last. */
static void a_table_that_fills_up_takes_stacks_in_short_form(void **state)
{
    uint32_t eighth = view.site_capacity / 8;
    uint32_t whole = intern_python(100, 10, 20, false, 0);

    (void)state;
    assert_int_equal(frames_of(whole), 30);
    fill_to(eighth * 5 + 1);
    assert_int_equal(frames_of(intern_python(200, 10, 20, false, 0)), 13);
    assert_int_equal(frames_of(intern_python(300, 30, 0, false, 0)), 16);
    assert_int_equal(frames_of(intern_python(400, 3, 1, false, 0)), 4);
    fill_to(eighth * 6 + 1);
    assert_int_equal(frames_of(intern_python(500, 10, 20, false, 0)), 10);
    assert_int_equal(frames_of(intern_python(600, 30, 0, false, 0)), 8);
    fill_to(eighth * 7 + 1);
    assert_int_equal(frames_of(intern_python(700, 10, 20, false, 0)), 1);
    assert_int_equal(frames_of(intern_python(800, 30, 0, false, 0)), 4);
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 6);
}

static uint64_t line_in(const char *file, const char *name, uint32_t line)
{
    struct seep_codes_code code = {
        .kind = SEEP_CODE_PYTHON, .file = file, .name = name};

    return seep_codes_frame(
        seep_codes_intern(&view, seep_hash_bytes(file, strlen(file)), &code),
        line);
}

static uint64_t line_of(const char *file, uint32_t line)
{
    return line_in(file, "f", line);
}

/* Their native frames are the interpreter's; those of a library's malloc name
 * what took the memory, and stay for longer. */
static void pythons_objects_lose_their_native_frames_first(void **state)
{
    static const struct {
        uint32_t eighths;
        uint32_t python; /* frames of 30 that are left of an object's stack */
        uint32_t heap;
    } cases[] = {{0, 30, 30}, {3, 30, 30}, {4, 30, 30},
                 {5, 2, 14},  {6, 2, 11},  {7, 2, 2}};
    uint64_t user = line_of("/srv/serve.py", 31);

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int heaps = 0; heaps < 2; heaps++) {
            struct seep_place place = {
                heaps != 0 ? SEEP_SPACE_HEAP : SEEP_SPACE_PYTHON, 0};
            uint64_t words[30];
            struct seep_sites_stack stack = {.addresses = words, .count = 30};

            for (uint32_t j = 0; j < 30; j++) {
                words[j] = j < 10 ? 1000 * (i + 1) + 100 * (uint32_t)heaps + j
                                  : SEEP_FRAME_IS_CODE | UINT64_C(1) << 30 | j;
            }
            words[29] = user;
            fill_to(view.site_capacity / 8 * cases[i].eighths + 1);
            assert_int_equal(
                frames_of(seep_sites_intern(&view, place, &stack, same_frame)),
                heaps != 0 ? cases[i].heap : cases[i].python);
        }
    }
}

static void a_short_stack_keeps_the_users_line(void **state)
{
    uint64_t inner = line_of("/usr/lib/python3.11/json/decoder.py", 355);
    uint64_t package = line_of("/x/site-packages/torch/functional.py", 7);
    uint64_t frozen = line_of("<frozen os>", 241);
    uint64_t user = line_of("/srv/serve.py", 31);
    uint64_t words[] = {1, inner, 2, package, frozen, user, 3, user + 1};
    struct seep_sites_stack stack = {.addresses = words, .count = 8};
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t site;

    (void)state;
    fill_to(view.site_capacity / 8 * 7 + 1);
    site = seep_sites_intern(&view, heap, &stack, same_frame);
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, frames),
                     2);
    assert_true(frames[0] == inner);
    assert_true(frames[1] == user);
}

/* First only how deep native code recurses is no longer told. */
static void native_recursion_is_folded_between_lines_of_python(void **state)
{
    uint64_t code = SEEP_FRAME_IS_CODE | 1 << 24;
    uint64_t words[] = {1, 2, 3, 2, 4, 2, 5, code, 2, 5, 2, 6, code};
    const uint64_t left[] = {1, 2, 5, code, 2, 6, code};
    struct seep_sites_stack stack = {.addresses = words, .count = 13};
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t site;

    (void)state;
    fill_to(view.site_capacity / 8 * 3 + 1);
    site = seep_sites_intern(&view, heap, &stack, same_frame);
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, frames),
                     7);
    for (size_t i = 0; i < 7; i++) {
        assert_true(frames[i] == left[i]);
    }
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 0);
    fill_to(view.site_capacity / 8 * 6 + 1);
    words[0] = 9;
    seep_sites_intern(&view, heap, &stack, same_frame);
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 1);
}

static void native_recursion_alone_tells_sites_apart(void **state)
{
    uint64_t once[] = {1, 2, 3};
    uint64_t twice[] = {1, 2, 1, 2, 3};
    struct seep_sites_stack stack = {.addresses = once, .count = 3};
    struct seep_sites_stack deeper = {.addresses = twice, .count = 5};

    (void)state;
    fill_to(view.site_capacity / 8 * 3 + 1);
    assert_int_not_equal(seep_sites_intern(&view, heap, &stack, same_frame),
                         seep_sites_intern(&view, heap, &deeper, same_frame));
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 0);
}

static void a_stack_that_was_whole_stays_whole(void **state)
{
    uint32_t whole = intern_python(100, 10, 20, false, 0);

    (void)state;
    fill_to(view.site_capacity / 8 * 5 + 1);
    seep_sites_forget();
    assert_int_equal(intern_python(100, 10, 20, false, 0), whole);
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 0);
}

static void a_short_stack_keeps_its_threads_name(void **state)
{
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t site;

    (void)state;
    view.codes[5].kind = SEEP_CODE_THREAD;
    fill_to(view.site_capacity / 8 * 5 + 1);
    site = intern_python(100, 30, 0, true, 5);
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, frames),
                     17);
    assert_true(frames[16] ==
                (SEEP_FRAME_IS_CODE | UINT64_C(5) << SEEP_FRAME_LINE_BITS));
}

/* From a file that somebody else has written into. */
static void a_code_that_is_none_names_no_thread(void **state)
{
    (void)state;
    fill_to(view.site_capacity / 8 * 7 + 1);
    assert_int_equal(
        frames_of(intern_python(100, 3, 1, true, view.code_capacity)), 1);
}

/* Of a program that is known to have more stacks than there is room for. */
static void stacks_are_short_from_the_start_if_asked(void **state)
{
    uint64_t inner = line_of("/usr/lib/python3.11/json/decoder.py", 355);
    uint64_t user = line_of("/srv/serve.py", 31);
    uint64_t words[] = {1, inner, 2, user, 3, user + 1};
    struct seep_sites_stack stack = {.addresses = words, .count = 6};
    uint32_t site;

    (void)state;
    seep_short_stack_always(true);
    site = seep_sites_intern(&view, heap, &stack, same_frame);
    seep_short_stack_always(false);
    assert_int_equal(frames_of(site), 2);
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 0);
}

/* The user's line imports one module, which imports @module; at work is a line
 * of a third, and under it are native frames. @return the site */
static uint32_t intern_import(const char *module, uint32_t line,
                              uint64_t native, uint32_t outer_natives)
{
    uint64_t machinery = line_of("<frozen importlib._bootstrap>", 241);
    uint64_t words[SEEP_STACK_FRAMES_MAX] = {
        native,
        native + 1,
        native + 2,
        native + 3,
        native + 4,
        line_of("/usr/lib/python3.11/enum.py", 5),
        7,
        line_in(module, "<module>", line),
        8,
        machinery,
        machinery - 1,
        9,
        line_in("/x/site-packages/a/__init__.py", "<module>", 3),
        machinery,
        line_of("/srv/serve.py", 31),
    };
    struct seep_sites_stack stack = {
        .addresses = words, .count = 15 + outer_natives, .cut = SEEP_CUT_DEPTH};

    for (uint32_t i = 0; i < outer_natives; i++) {
        words[15 + i] = 1000 + i;
    }
    return seep_sites_intern(&view, heap, &stack, same_frame);
}

static void
an_import_is_its_line_the_module_and_the_innermost_frames(void **state)
{
    const char *module = "/x/site-packages/a/b.py";
    uint32_t site = intern_import(module, 10, 1, 0);
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t stack = view.sites[site].stack;

    (void)state;
    assert_int_equal(seep_view_frames(&view, stack, frames), 8);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(frames[i], 1 + i);
    }
    assert_true(frames[4] == line_of("/usr/lib/python3.11/enum.py", 5));
    assert_true(frames[5] == line_in(module, "<module>", 0));
    assert_true(frames[6] == line_of("<frozen importlib._bootstrap>", 0));
    assert_true(frames[7] == line_of("/srv/serve.py", 31));
    assert_int_equal(view.stacks[stack].cut, SEEP_CUT_NONE);
    /* Whatever lies between, and how deep it is. */
    assert_int_equal(intern_import(module, 11, 1, 40), site);
    assert_int_equal(counter(SEEP_COUNT_IMPORT_SITES), 1);
    assert_int_equal(counter(SEEP_COUNT_STACKS_SHORT), 0);
}

static uint32_t asked_frames;

static uint64_t counted_frame(const struct seep_view *of, uintptr_t address)
{
    asked_frames++;
    return same_frame(of, address);
}

/* Native frames on both sides of the module, and what imports it: @outer of
 * that and @inner are in no site's frames. */
static uint32_t intern_module(uint64_t inner, uint64_t outer)
{
    uint64_t machinery = line_of("<frozen importlib._bootstrap>", 241);
    uint64_t words[] = {1,
                        line_of("/usr/lib/python3.11/enum.py", 5),
                        2,
                        line_in("/x/site-packages/a.py", "<module>", 7),
                        3,
                        line_of("/usr/lib/python3.11/runpy.py", 8),
                        inner,
                        machinery,
                        outer,
                        machinery,
                        line_of("/srv/serve.py", 31)};
    struct seep_sites_stack stack = {.addresses = words,
                                     .count = sizeof(words) / sizeof(words[0])};

    return seep_sites_intern(&view, heap, &stack, counted_frame);
}

static void an_imports_frames_that_are_not_kept_are_not_asked_for(void **state)
{
    uint64_t frames[SEEP_STACK_FRAMES_MAX];
    uint32_t site = intern_module(4, 5);
    uint32_t asked = asked_frames;

    (void)state;
    assert_int_equal(seep_view_frames(&view, view.sites[site].stack, frames),
                     8);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(frames[2 * i], 1 + i);
    }
    assert_int_equal(asked, 8);
    assert_int_equal(intern_module(4, 6), site);
    assert_int_equal(intern_module(7, 5), site);
    assert_int_equal(asked_frames, asked);
}

static void
imports_take_a_third_of_the_table_and_are_never_refused(void **state)
{
    uint32_t first = intern_import("/x/site-packages/a/m0.py", 1, 1, 0);

    (void)state;
    for (uint32_t i = 1; i < 2 * view.site_capacity; i++) {
        char module[64];

        snprintf(module, sizeof(module), "/x/site-packages/a/m%u.py", i % 300);
        assert_int_not_equal(intern_import(module, 1, i * 8, 0), 0);
    }
    assert_true(counter(SEEP_COUNT_IMPORT_SITES) > view.site_capacity / 8);
    assert_true(counter(SEEP_COUNT_IMPORT_SITES) <= view.site_capacity / 3);
    assert_int_equal(counter(SEEP_COUNT_SITES_FULL), 0);
    assert_int_equal(
        frames_of(intern_import("/x/site-packages/a/last.py", 1, 1, 0)), 2);
    /* What was told with more stays so, and what is no import is whole. */
    seep_sites_forget();
    assert_int_equal(intern_import("/x/site-packages/a/m0.py", 1, 1, 0), first);
    assert_int_equal(frames_of(intern_python(100, 10, 20, false, 0)), 30);
}

/* A thread that was given a name, by how many sites of imports there are. */
static void an_import_keeps_its_threads_name(void **state)
{
    static const char *const modules[] = {"/x/site-packages/a.py",
                                          "/x/site-packages/b.py",
                                          "/x/site-packages/c.py"};
    static const uint32_t kept[] = {7, 4, 3}; /* with the name */
    uint32_t number = view.code_capacity - 1;
    uint64_t name = SEEP_FRAME_IS_CODE | (uint64_t)number
                                             << SEEP_FRAME_LINE_BITS;
    uint64_t user = line_of("/srv/serve.py", 31);

    (void)state;
    view.codes[number].kind = SEEP_CODE_THREAD;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t words[] = {1,
                            line_of("/usr/lib/python3.11/enum.py", 5),
                            line_in(modules[i], "<module>", 7),
                            3,
                            line_of("<frozen importlib._bootstrap>", 241),
                            user,
                            name};
        struct seep_sites_stack stack = {.addresses = words, .count = 7};
        uint64_t frames[SEEP_STACK_FRAMES_MAX];
        uint32_t site;

        words[0] = 1 + i;
        seep_word_store(&view.counters[SEEP_COUNT_IMPORT_SITES],
                        view.site_capacity / 16 * (uint64_t)(i + 1) + i);
        site = seep_sites_intern(&view, heap, &stack, same_frame);
        assert_int_equal(
            seep_view_frames(&view, view.sites[site].stack, frames), kept[i]);
        assert_true(frames[kept[i] - 2] == user);
        assert_true(frames[kept[i] - 1] == name);
    }
}

/* A server that runs while its module is imported. */
static void a_users_line_inside_of_an_import_has_its_whole_stack(void **state)
{
    uint64_t words[] = {1,
                        2,
                        line_of("/x/site-packages/torch/nn.py", 7),
                        3,
                        line_of("/srv/model.py", 12),
                        line_of("<frozen importlib._bootstrap>", 241),
                        line_of("/srv/serve.py", 31)};
    struct seep_sites_stack stack = {.addresses = words, .count = 7};

    (void)state;
    assert_int_equal(
        frames_of(seep_sites_intern(&view, heap, &stack, same_frame)), 7);
    assert_int_equal(counter(SEEP_COUNT_IMPORT_SITES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(one_stack_is_one_site),
        TEST(each_device_has_a_site_of_its_own),
        TEST(without_a_device_the_key_is_of_stack_and_space),
        TEST(a_site_has_its_frames),
        TEST(stacks_share_their_outer_frames),
        TEST(a_full_table_refuses_and_keeps_the_old_sites),
        TEST(a_full_depot_costs_frames_and_not_sites),
        TEST(more_frames_than_there_are_leave_no_room),
        TEST(a_stack_of_no_frames_has_a_site),
        TEST(a_stack_that_comes_while_one_is_added_shares_nothing),
        TEST(such_a_stack_without_room_leaves_the_other_alone),
        TEST(a_table_that_fills_up_takes_stacks_in_short_form),
        TEST(frames_that_fill_up_make_stacks_short_too),
        TEST(pythons_objects_lose_their_native_frames_first),
        TEST(a_short_stack_keeps_the_users_line),
        TEST(native_recursion_is_folded_between_lines_of_python),
        TEST(native_recursion_alone_tells_sites_apart),
        TEST(a_stack_that_was_whole_stays_whole),
        TEST(a_short_stack_keeps_its_threads_name),
        TEST(a_code_that_is_none_names_no_thread),
        TEST(stacks_are_short_from_the_start_if_asked),
        TEST(an_import_is_its_line_the_module_and_the_innermost_frames),
        TEST(an_import_keeps_its_threads_name),
        TEST(an_imports_frames_that_are_not_kept_are_not_asked_for),
        TEST(imports_take_a_third_of_the_table_and_are_never_refused),
        TEST(a_users_line_inside_of_an_import_has_its_whole_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
