/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * preload/python_wrap: what the wrappers give, what they tell, and the mark
 * of a thread that is inside of them. Python's allocators and the recorder are
 * made up here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "seep_test.h"

#include "preload/python/wrap.h"
#include "preload/real.h"
#include "preload/track.h"
#include "preload/twins.h"

#define RAW 0
#define MEM 1
#define OBJ 2

/* What was told, by one letter an event. */
static char told[64];
static size_t lasting_count;
static const void *last_block;
static size_t last_size;

static void tell(char what, const void *block, size_t size_bytes)
{
    assert_true(lasting_count + 1 < sizeof(told));
    told[lasting_count++] = what;
    told[lasting_count] = '\0';
    last_block = block;
    last_size = size_bytes;
}

void seep_track_object_allocated(const struct seep_capture_start *start,
                                 const void *block, size_t size_bytes)
{
    assert_true(start->pc != 0 && start->sp > (uintptr_t)&start);
    tell('A', block, size_bytes);
}

/* As in preload/track.c. */
void seep_track_freed(const void *block)
{
    if (!seep_track_is_marked_for(block)) {
        tell('F', block, 0);
    }
}

struct seep_track_out seep_track_realloc_out(const void *block)
{
    struct seep_track_out out = {true, 7};

    if (seep_track_is_marked_for(block)) {
        out.recorded = false;
    } else {
        tell('O', block, 0);
    }
    return out;
}

void seep_track_realloc_failed(const void *block, struct seep_track_out out)
{
    assert_int_equal(out.tick, 7);
    tell('R', block, 0);
}

/* Python's allocators: of this test. */
enum beneath {
    PLAIN,
    FAILS,
    JUMPS,
    FREES,
    QUIET,
    ARENAS, /* malloc only for what is large, as pymalloc */
    POOR,   /* the same where malloc has nothing left */
    TALL,   /* malloc is asked for more */
};
static enum beneath beneath;
static struct seep_python_allocator set[3];
static int tag;
static int marks_seen;
static size_t size_asked;
static jmp_buf out_of_it;
static char block_of[512] __attribute__((aligned(512)));
static int frees; /* of Python's */
static int libc_frees;

struct seep_real seep_real;

static void libc_free(void *block)
{
    assert_ptr_equal(block, block_of);
    libc_frees++;
}

static SEEP_NOINLINE void *give(void *context, size_t size)
{
    assert_ptr_equal(context, &tag);
    size_asked = size;
    if (beneath == QUIET || (beneath >= ARENAS && size <= 512)) {
        marks_seen += seep_track_is_marked();
        return block_of;
    }
    marks_seen += seep_track_is_marked();
    if (beneath == FAILS || beneath == POOR) {
        errno = ENOMEM;
        return NULL;
    }
    /* Malloc beneath passes by itself. */
    assert_true(seep_track_passes(block_of, size + (beneath == TALL ? 16 : 0)));
    if (beneath == JUMPS) {
        longjmp(out_of_it, 1);
    }
    return block_of;
}

static void *real_malloc(void *context, size_t size)
{
    return give(context, size);
}

static void *real_calloc(void *context, size_t count, size_t size)
{
    return give(context, count * size);
}

static void *real_realloc(void *context, void *block, size_t size)
{
    (void)block;
    return give(context, size);
}

static void real_free(void *context, void *block)
{
    assert_ptr_equal(context, &tag);
    if (block == NULL) {
        return;
    }
    assert_ptr_equal(block, block_of);
    frees++;
    if (beneath == FREES) { /* as the hook of free does */
        seep_track_freed(block);
        seep_track_freed(block_of + 16);
    }
}

static void get_allocator(int domain, struct seep_python_allocator *it)
{
    *it = set[domain];
}

static void set_allocator(int domain, struct seep_python_allocator *it)
{
    set[domain] = *it;
}

static void wrap_how(bool leave_frees)
{
    for (int domain = MEM; domain <= OBJ; domain++) {
        set[domain] = (struct seep_python_allocator){
            &tag, real_malloc, real_calloc, real_realloc, real_free};
    }
    seep_python_wrap(get_allocator, set_allocator, leave_frees);
}

static int wrap(void **state)
{
    (void)state;
    wrap_how(false);
    return 0;
}

static int wrap_leaving_frees(void **state)
{
    (void)state;
    wrap_how(true);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    beneath = PLAIN;
    lasting_count = 0;
    told[0] = '\0';
    marks_seen = 0;
    frees = 0;
    libc_frees = 0;
    seep_real.free = libc_free;
    set[RAW] = (struct seep_python_allocator){0};
    seep_python_wrap_watch_raw(NULL, NULL);
    seep_thread.countdown_bytes = 1 << 20;
    seep_thread.sample_log2 = 19;
    seep_filter_fill(false);
    seep_python_wrap_doubt(); /* what was proven counts from the next call */
    return 0;
}

static void *obj_malloc(size_t size)
{
    return set[OBJ].malloc(set[OBJ].context, size);
}

static void a_block_counts_down_and_is_not_told(void **state)
{
    (void)state;
    assert_ptr_equal(obj_malloc(100), block_of);
    assert_ptr_equal(set[MEM].calloc(set[MEM].context, 10, 30), block_of);
    assert_ptr_equal(set[MEM].realloc(set[MEM].context, block_of, 50),
                     block_of);
    set[OBJ].free(set[OBJ].context, block_of);
    assert_int_equal(seep_thread.countdown_bytes, (1 << 20) - 450);
    assert_string_equal(told, "");
    assert_int_equal(marks_seen, 3);
    assert_false(seep_track_is_marked());
}

static void
the_block_that_ends_the_countdown_is_told_with_its_size(void **state)
{
    (void)state;
    seep_thread.countdown_bytes = 100;
    obj_malloc(100);
    assert_string_equal(told, "A");
    assert_ptr_equal(last_block, block_of);
    assert_int_equal(last_size, 100);
    set[MEM].calloc(set[MEM].context, 3, 40);
    assert_int_equal(last_size, 120);
    assert_string_equal(told, "AA");
}

static void what_is_resized_is_told_out_and_in(void **state)
{
    (void)state;
    seep_filter_fill(true);
    seep_thread.countdown_bytes = 0;
    set[OBJ].realloc(set[OBJ].context, block_of, 60);
    assert_string_equal(told, "OA");
    assert_int_equal(last_size, 60);
}

static void what_could_not_be_resized_is_put_back(void **state)
{
    (void)state;
    seep_filter_fill(true);
    beneath = FAILS;
    errno = 0;
    assert_null(set[OBJ].realloc(set[OBJ].context, block_of, 60));
    assert_int_equal(errno, ENOMEM);
    assert_string_equal(told, "OR");
    assert_null(set[MEM].realloc(set[MEM].context, block_of, 60));
    assert_string_equal(told, "OROR");
    assert_int_equal(seep_thread.countdown_bytes, 1 << 20);
}

static void a_failure_counts_nothing(void **state)
{
    (void)state;
    seep_thread.countdown_bytes = 0;
    beneath = FAILS;
    assert_null(obj_malloc(10));
    assert_null(set[MEM].calloc(set[MEM].context, 1, 10));
    assert_int_equal(seep_thread.countdown_bytes, 0);
    assert_string_equal(told, "");
}

/* Where all of Python's are malloc's (PYTHONMALLOC=malloc): that malloc counted
 * nothing does not say that it was not asked. */
static void what_could_not_be_had_is_no_proof_of_arenas(void **state)
{
    (void)state;
    beneath = FAILS;
    obj_malloc(16);
    set[OBJ].calloc(set[OBJ].context, 2, 8);
    beneath = PLAIN;
    obj_malloc(16);
    obj_malloc(16);
    assert_int_equal(marks_seen, 4);
    assert_int_equal(seep_thread.countdown_bytes, (1 << 20) - 32);
}

static void a_free_is_told_once_though_there_is_one_beneath(void **state)
{
    (void)state;
    beneath = FREES;
    seep_filter_fill(true);
    set[OBJ].free(set[OBJ].context, block_of);
    /* What else goes there (a debugger's own) is told too. */
    assert_string_equal(told, "FF");
    assert_ptr_equal(last_block, block_of + 16);
    assert_int_equal(seep_thread.countdown_bytes, 1 << 20);
}

static void a_small_block_that_needs_no_malloc_is_not_marked(void **state)
{
    (void)state;
    beneath = QUIET;
    obj_malloc(64);
    assert_int_equal(marks_seen, 1);
    obj_malloc(64);
    obj_malloc(1);
    set[OBJ].calloc(set[OBJ].context, 8, 8);
    assert_int_equal(marks_seen, 1);
    obj_malloc(65); /* not seen before */
    assert_int_equal(marks_seen, 2);
    set[OBJ].calloc(set[OBJ].context, SIZE_MAX / 2, 4);
    assert_int_equal(marks_seen, 3);
    obj_malloc(513);
    obj_malloc(513);
    obj_malloc(0);
    assert_int_equal(marks_seen, 6);
    assert_string_equal(told, "");
}

static void a_small_block_is_told_when_it_is_time(void **state)
{
    (void)state;
    beneath = QUIET;
    obj_malloc(64);
    seep_thread.countdown_bytes = 64;
    obj_malloc(64);
    assert_string_equal(told, "A");
    assert_int_equal(last_size, 64);
    assert_int_equal(seep_thread.countdown_bytes, 0);
}

static void who_comes_after_a_doubt_is_noticed(void **state)
{
    (void)state;
    beneath = QUIET;
    obj_malloc(64);
    assert_true(seep_python_wrap_is_used());
    assert_true(seep_python_wrap_doubt());
    assert_false(seep_python_wrap_is_used());
    assert_false(seep_python_wrap_doubt());
    obj_malloc(1); /* the small ones as well */
    assert_true(seep_python_wrap_doubt());
    set[MEM].malloc(set[MEM].context, 1); /* to either */
    assert_true(seep_python_wrap_is_used());
    assert_false(seep_python_wrap_doubt());
}

static void a_wrapper_is_known_by_its_functions(void **state)
{
    struct seep_python_allocator other = set[OBJ];

    (void)state;
    assert_true(seep_python_wrap_is(&set[OBJ]));
    assert_false(seep_python_wrap_is(&set[MEM]));
    other.realloc = real_realloc; /* by half is not at all */
    assert_false(seep_python_wrap_is(&other));
}

/* At the same depth each time, as a loop does. */
static SEEP_NOINLINE void jump_out(void)
{
    beneath = JUMPS;
    if (setjmp(out_of_it) == 0) {
        obj_malloc(1000);
        fail();
    }
}

static void after_a_jump_out_of_it_the_thread_is_sampled_again(void **state)
{
    (void)state;
    jump_out();
    assert_true(seep_thread.countdown_bytes > SEEP_SAMPLER_NEVER);
    jump_out();
    beneath = PLAIN;
    assert_int_equal(marks_seen, 2);
    obj_malloc(10);
    assert_string_equal(told, "A"); /* as the first block of a thread */
    assert_int_equal(seep_thread.sample_log2, 0);
}

static void a_fork_inside_leaves_no_mark_in_the_child(void **state)
{
    (void)state;
    jump_out();
    seep_track_unmark();
    assert_int_equal(seep_thread.countdown_bytes, 0);
    seep_thread.countdown_bytes = SEEP_SAMPLER_NEVER;
    seep_track_unmark();
    assert_int_equal(seep_thread.countdown_bytes, SEEP_SAMPLER_NEVER);
}

static void a_mark_that_was_left_lasts_until_a_block_is_marked(void **state)
{
    (void)state;
    beneath = QUIET;
    obj_malloc(512);
    jump_out();
    beneath = QUIET;
    for (int i = 0; i < 4096; i++) {
        obj_malloc(512);
    }
    assert_true(seep_track_is_marked());
    beneath = PLAIN;
    obj_malloc(513);
    assert_false(seep_track_is_marked());
    assert_string_equal(told, "A");
}

/* Each is told as a thread's first block is, but a free. */
static void any_call_that_marks_undoes_what_a_jump_has_left(void **state)
{
    (void)state;
    jump_out();
    beneath = PLAIN;
    set[MEM].calloc(set[MEM].context, 3, 200);
    assert_string_equal(told, "A");
    jump_out();
    beneath = PLAIN;
    set[MEM].realloc(set[MEM].context, block_of, 600);
    assert_string_equal(told, "AA");
    jump_out();
    beneath = PLAIN;
    set[OBJ].realloc(set[OBJ].context, block_of, 600);
    assert_string_equal(told, "AAA");
    jump_out();
    beneath = PLAIN;
    seep_filter_fill(true);
    set[OBJ].free(set[OBJ].context, block_of);
    assert_string_equal(told, "AAAF");
    assert_int_equal(seep_thread.countdown_bytes, 0);
}

static void a_thread_that_is_not_recorded_stays_so(void **state)
{
    (void)state;
    seep_thread.countdown_bytes = SEEP_SAMPLER_NEVER;
    for (int i = 0; i < 100; i++) {
        obj_malloc(1000);
    }
    assert_int_equal(seep_thread.countdown_bytes, SEEP_SAMPLER_NEVER - 100000);
    assert_string_equal(told, "");
}

static void frees_that_are_left_are_the_real_ones(void **state)
{
    (void)state;
    assert_true(set[MEM].free == real_free);
    assert_true(set[OBJ].free == real_free);
    assert_ptr_equal(set[OBJ].context, &tag);
    assert_true(seep_python_wrap_is(&set[OBJ]));
}

static void a_small_block_that_is_to_be_told_is_mallocs(void **state)
{
    (void)state;
    beneath = ARENAS;
    obj_malloc(64);
    obj_malloc(64);
    assert_int_equal(size_asked, 64);
    assert_int_equal(marks_seen, 1);
    seep_thread.countdown_bytes = 64;
    obj_malloc(64);
    assert_int_equal(size_asked, 513);
    assert_string_equal(told, "A");
    assert_int_equal(last_size, 64);
    assert_int_equal(seep_thread.countdown_bytes, 0);
    set[MEM].calloc(set[MEM].context, 10, 4);
    assert_int_equal(size_asked, 513);
    assert_int_equal(last_size, 40);
    set[MEM].realloc(set[MEM].context, block_of, 70);
    assert_int_equal(size_asked, 513);
    assert_int_equal(last_size, 70);
    assert_string_equal(told, "AAA");
    assert_false(seep_python_wrap_is_blind());
}

static void what_malloc_gives_anyway_is_asked_for_as_it_is(void **state)
{
    (void)state;
    beneath = ARENAS;
    seep_thread.countdown_bytes = 0;
    obj_malloc(600);
    assert_int_equal(size_asked, 600);
    set[MEM].calloc(set[MEM].context, 3, 200);
    assert_int_equal(size_asked, 600);
    set[MEM].realloc(set[MEM].context, block_of, 700);
    assert_int_equal(size_asked, 700);
    assert_string_equal(told, "AAA");
    assert_false(seep_python_wrap_is_blind());
    set[OBJ].calloc(set[OBJ].context, SIZE_MAX / 2, 4);
    assert_true(size_asked != 513);
}

static void a_small_block_is_had_though_malloc_has_none(void **state)
{
    (void)state;
    beneath = POOR;
    errno = 0;
    seep_thread.countdown_bytes = 0;
    assert_ptr_equal(obj_malloc(64), block_of);
    assert_int_equal(size_asked, 64);
    assert_ptr_equal(set[MEM].calloc(set[MEM].context, 2, 8), block_of);
    assert_int_equal(size_asked, 16);
    assert_ptr_equal(set[MEM].realloc(set[MEM].context, block_of, 64),
                     block_of);
    assert_int_equal(size_asked, 64);
    assert_int_equal(errno, 0);
    assert_string_equal(told, "AFAFAF"); /* nobody will tell that it goes */
}

static void a_block_whose_free_will_not_be_seen_goes_at_once(void **state)
{
    (void)state;
    beneath = TALL;
    seep_thread.countdown_bytes = 0;
    obj_malloc(64);
    assert_string_equal(told, "AF");
    assert_true(seep_python_wrap_is_blind());
    set[MEM].calloc(set[MEM].context, 2, 300);
    set[MEM].realloc(set[MEM].context, block_of, 700);
    assert_string_equal(told, "AFAFAF");
    beneath = ARENAS;
    obj_malloc(64);
    assert_string_equal(told, "AFAFAFA");
    assert_false(seep_python_wrap_is_blind());
}

static void a_large_block_that_malloc_counts_is_not_marked(void **state)
{
    (void)state;
    beneath = ARENAS;
    obj_malloc(1000);
    assert_int_equal(marks_seen, 1);
    obj_malloc(1000);
    set[OBJ].calloc(set[OBJ].context, 3, 1000);
    assert_int_equal(marks_seen, 1);
    assert_int_equal(seep_thread.countdown_bytes, (1 << 20) - 5000);
    seep_thread.countdown_bytes = 1000;
    obj_malloc(1000); /* it is to be told as an object */
    assert_int_equal(marks_seen, 2);
    assert_string_equal(told, "A");
    seep_thread.countdown_bytes = 1 << 20;
    seep_python_wrap_doubt();
    obj_malloc(1000);
    assert_int_equal(marks_seen, 3);
    beneath = TALL;
    seep_python_wrap_doubt();
    obj_malloc(1000);
    obj_malloc(1000);
    assert_int_equal(marks_seen, 5);
    assert_string_equal(told, "A");
}

static void a_large_block_undoes_what_a_jump_has_left(void **state)
{
    (void)state;
    jump_out();
    beneath = ARENAS;
    obj_malloc(1000);
    seep_thread.countdown_bytes = seep_track_mark(NULL);
    obj_malloc(1000);
    assert_false(seep_track_is_marked());
    assert_int_equal(marks_seen, 3);
}

static void who_is_not_recorded_asks_for_what_it_needs(void **state)
{
    (void)state;
    beneath = ARENAS;
    seep_thread.countdown_bytes = SEEP_SAMPLER_NEVER;
    obj_malloc(64);
    assert_int_equal(size_asked, 64);
    set[MEM].realloc(set[MEM].context, block_of, 70);
    assert_int_equal(size_asked, 70);
    assert_string_equal(told, "");
}

static bool is_twin(const void *block)
{
    return seep_twins_own(block) &&
           ((uintptr_t)block - (uintptr_t)block_of) % SEEP_TWINS_SPAN_BYTES ==
               0;
}

static void
a_short_text_that_is_to_be_told_lies_where_pythons_would(void **state)
{
    void *block;

    (void)state;
    beneath = ARENAS;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    seep_thread.countdown_bytes = 64;
    block = obj_malloc(64);
    assert_true(is_twin(block));
    assert_string_equal(told, "A");
    assert_ptr_equal(last_block, block);
    assert_int_equal(last_size, 64);
    assert_int_equal(seep_thread.countdown_bytes, 0);
    /* Python's goes; it counts one of RAW, which is none. */
    assert_int_equal(frees, 1);
    assert_int_equal(libc_frees, 1);
    assert_false(seep_python_wrap_is_blind());
    seep_twins_free(block);
    seep_python_wrap_watch_raw(NULL, get_allocator);
    block = obj_malloc(149);
    assert_true(is_twin(block));
    seep_twins_free(block);
}

static void a_text_that_is_resized_and_told_takes_what_is_in_it(void **state)
{
    void *block;

    (void)state;
    beneath = ARENAS;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    seep_thread.countdown_bytes = 42;
    memset(block_of, 'x', sizeof(block_of));
    block = set[OBJ].realloc(set[OBJ].context, block_of, 42);
    assert_true(is_twin(block));
    assert_memory_equal(block, block_of, 42);
    assert_string_equal(told, "A");
    assert_int_equal(frees, 1);
    assert_int_equal(libc_frees, 1);
    assert_int_equal(seep_thread.countdown_bytes, 0);
    seep_twins_free(block);
}

static void what_is_no_short_text_is_no_twin(void **state)
{
    (void)state;
    beneath = ARENAS;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    seep_thread.countdown_bytes = 0;
    assert_ptr_equal(obj_malloc(41), block_of);
    assert_ptr_equal(obj_malloc(150), block_of);
    assert_ptr_equal(set[OBJ].calloc(set[OBJ].context, 1, 64), block_of);
    assert_ptr_equal(set[OBJ].realloc(set[OBJ].context, block_of, 150),
                     block_of);
    assert_int_equal(size_asked, 513);
    assert_string_equal(told, "AAAA");
    assert_int_equal(frees, 0);
}

static void there_is_no_twin_while_raw_is_anothers(void **state)
{
    (void)state;
    beneath = ARENAS;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    set[RAW].context = &tag;
    seep_thread.countdown_bytes = 0;
    assert_ptr_equal(obj_malloc(64), block_of);
    assert_ptr_equal(set[OBJ].realloc(set[OBJ].context, block_of, 64),
                     block_of);
    seep_python_wrap_watch_raw(NULL, get_allocator);
    assert_ptr_equal(obj_malloc(64), block_of);
    assert_int_equal(size_asked, 513);
    assert_string_equal(told, "AAA");
    assert_int_equal(frees, 0);
    assert_int_equal(libc_frees, 0);
}

static void where_malloc_is_not_asked_for_it_there_is_no_twin(void **state)
{
    (void)state;
    beneath = POOR;
    errno = 0;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    seep_thread.countdown_bytes = 0;
    assert_ptr_equal(obj_malloc(64), block_of);
    assert_ptr_equal(set[OBJ].realloc(set[OBJ].context, block_of, 64),
                     block_of);
    assert_int_equal(errno, 0);
    assert_string_equal(told, "AFAF");
    assert_int_equal(frees, 0);
    assert_int_equal(libc_frees, 0);
    beneath = TALL;
    assert_ptr_equal(obj_malloc(64), block_of);
    assert_string_equal(told, "AFAFAF");
    assert_int_equal(libc_frees, 0);
    assert_true(seep_python_wrap_is_blind());
}

static void a_text_that_cannot_be_had_is_no_twin(void **state)
{
    (void)state;
    beneath = FAILS;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    seep_thread.countdown_bytes = 0;
    errno = 0;
    assert_null(obj_malloc(64));
    assert_int_equal(size_asked, 64);
    assert_int_equal(errno, ENOMEM);
    seep_filter_fill(true);
    assert_null(set[OBJ].realloc(set[OBJ].context, block_of, 70));
    assert_int_equal(size_asked, 70);
    assert_int_equal(seep_thread.countdown_bytes, 0);
    assert_int_equal(frees, 0);
    assert_string_equal(told, "OR");
}

static void where_no_twin_has_room_malloc_gives_it(void **state)
{
    void *twins[128];
    size_t count = 0;

    (void)state;
    while ((twins[count] = seep_twins_make(block_of, 64)) != NULL) {
        count++;
    }
    beneath = ARENAS;
    seep_python_wrap_watch_raw(&set[RAW], NULL);
    seep_thread.countdown_bytes = 0;
    assert_ptr_equal(obj_malloc(64), block_of);
    assert_int_equal(size_asked, 513);
    assert_int_equal(frees, 1); /* the one that was to have a twin */
    assert_ptr_equal(set[OBJ].realloc(set[OBJ].context, block_of, 64),
                     block_of);
    assert_string_equal(told, "AA");
    assert_int_equal(libc_frees, 0);
    while (count > 0) {
        seep_twins_free(twins[--count]);
    }
}

static int run_leaving_frees(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(frees_that_are_left_are_the_real_ones, begin),
        cmocka_unit_test_setup(a_small_block_that_is_to_be_told_is_mallocs,
                               begin),
        cmocka_unit_test_setup(what_malloc_gives_anyway_is_asked_for_as_it_is,
                               begin),
        cmocka_unit_test_setup(a_small_block_is_had_though_malloc_has_none,
                               begin),
        cmocka_unit_test_setup(a_block_whose_free_will_not_be_seen_goes_at_once,
                               begin),
        cmocka_unit_test_setup(a_large_block_that_malloc_counts_is_not_marked,
                               begin),
        cmocka_unit_test_setup(a_large_block_undoes_what_a_jump_has_left,
                               begin),
        cmocka_unit_test_setup(who_is_not_recorded_asks_for_what_it_needs,
                               begin),
        cmocka_unit_test_setup(
            a_short_text_that_is_to_be_told_lies_where_pythons_would, begin),
        cmocka_unit_test_setup(
            a_text_that_is_resized_and_told_takes_what_is_in_it, begin),
        cmocka_unit_test_setup(what_is_no_short_text_is_no_twin, begin),
        cmocka_unit_test_setup(there_is_no_twin_while_raw_is_anothers, begin),
        cmocka_unit_test_setup(
            where_malloc_is_not_asked_for_it_there_is_no_twin, begin),
        cmocka_unit_test_setup(a_text_that_cannot_be_had_is_no_twin, begin),
        cmocka_unit_test_setup(where_no_twin_has_room_malloc_gives_it, begin),
    };

    return cmocka_run_group_tests_name("frees are left", tests,
                                       wrap_leaving_frees, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_block_counts_down_and_is_not_told, begin),
        cmocka_unit_test_setup(
            the_block_that_ends_the_countdown_is_told_with_its_size, begin),
        cmocka_unit_test_setup(what_is_resized_is_told_out_and_in, begin),
        cmocka_unit_test_setup(what_could_not_be_resized_is_put_back, begin),
        cmocka_unit_test_setup(a_failure_counts_nothing, begin),
        cmocka_unit_test_setup(what_could_not_be_had_is_no_proof_of_arenas,
                               begin),
        cmocka_unit_test_setup(a_free_is_told_once_though_there_is_one_beneath,
                               begin),
        cmocka_unit_test_setup(a_small_block_that_needs_no_malloc_is_not_marked,
                               begin),
        cmocka_unit_test_setup(a_small_block_is_told_when_it_is_time, begin),
        cmocka_unit_test_setup(who_comes_after_a_doubt_is_noticed, begin),
        cmocka_unit_test_setup(a_wrapper_is_known_by_its_functions, begin),
        cmocka_unit_test_setup(
            after_a_jump_out_of_it_the_thread_is_sampled_again, begin),
        cmocka_unit_test_setup(a_fork_inside_leaves_no_mark_in_the_child,
                               begin),
        cmocka_unit_test_setup(
            a_mark_that_was_left_lasts_until_a_block_is_marked, begin),
        cmocka_unit_test_setup(any_call_that_marks_undoes_what_a_jump_has_left,
                               begin),
        cmocka_unit_test_setup(a_thread_that_is_not_recorded_stays_so, begin),
    };

    return cmocka_run_group_tests(tests, wrap, NULL) + run_leaving_frees();
}
