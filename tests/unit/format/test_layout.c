/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layout and check: what the one makes the other accepts, and nothing else. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "seep_test.h"

#include "format/layout.h"
#include "format/view.h"

struct recording {
    struct seep_rec_header *header;
    size_t size;
};

/* Pages that nothing touches cost nothing: calloc() would fill them all where
 * MALLOC_PERTURB_ is set, as Meson does. */
static struct recording make(uint64_t size, int exact, int inert)
{
    struct seep_rec_header header = {.inert = inert ? SEEP_INERT_VALGRIND : 0};
    struct recording made;

    assert_int_equal(seep_layout_make(size, exact, inert, &header), 0);
    made.size = header.file_bytes;
    made.header = mmap(NULL, made.size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(made.header, MAP_FAILED);
    memcpy((void *)made.header, (void *)&header, sizeof(header));
    seep_layout_start(made.header);
    atomic_store_explicit(&made.header->ready, SEEP_PUBLISHED,
                          memory_order_relaxed);
    return made;
}

static void drop(const struct recording *made)
{
    assert_int_equal(munmap(made->header, made->size), 0);
}

static void every_size_gives_a_valid_recording_that_fits(void **state)
{
    (void)state;
    for (uint64_t size = SEEP_LAYOUT_LEAST_BYTES; size <= (UINT64_C(1) << 29);
         size = size * 3 / 2) {
        for (int exact = 0; exact < 2; exact++) {
            struct recording made = make(size, exact, 0);

            assert_true(made.size <= size);
            assert_int_equal(seep_check(made.header, made.size),
                             SEEP_CHECK_VALID);
            drop(&made);
        }
    }
}

/* A site without a series has no verdict: those that hold something, which
 * are few, must all find one. */
static void every_size_has_a_series_for_a_sixteenth_of_its_sites(void **state)
{
    (void)state;
    for (uint64_t size = SEEP_LAYOUT_LEAST_BYTES; size <= (UINT64_C(1) << 29);
         size += size / 8) {
        for (int exact = 0; exact < 2; exact++) {
            struct seep_rec_header header = {.inert = 0};
            uint32_t series;
            uint32_t sites;

            assert_int_equal(seep_layout_make(size, exact, 0, &header), 0);
            series = header.sections[SEEP_SECTION_SERIES].entry_count;
            sites = header.sections[SEEP_SECTION_SITES].entry_count;
            assert_true(series >= 64);
            assert_true(series * 16 >= sites);
        }
    }
}

static uint32_t range_slots(uint64_t size)
{
    struct seep_rec_header header = {.inert = 0};

    assert_int_equal(seep_layout_make(size, 0, 0, &header), 0);
    return header.range_slots;
}

/* Who is told to record with a larger size must have more of it. */
static void a_larger_recording_has_room_for_more_mappings(void **state)
{
    (void)state;
    for (uint64_t mib = 4; mib < 128; mib *= 2) {
        assert_true(range_slots(mib << 21) == 2 * range_slots(mib << 20));
    }
}

static void sizes_outside_the_limits_are_refused(void **state)
{
    struct seep_rec_header header;

    (void)state;
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_LEAST_BYTES - 1, 0, 0, &header), -EINVAL);
    assert_int_equal(
        seep_layout_make(SEEP_LAYOUT_MOST_BYTES + 1, 0, 0, &header), -EINVAL);
}

static void an_inert_recording_is_small_and_valid(void **state)
{
    struct recording made = make(SEEP_LAYOUT_DEFAULT_BYTES, 0, 1);

    (void)state;
    assert_true(made.size < (64 << 10));
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_VALID);
    drop(&made);
}

static void each_kind_of_damage_has_its_own_answer(void **state)
{
    struct recording made = make(SEEP_LAYOUT_LEAST_BYTES, 0, 0);
    struct seep_rec_header saved;

    (void)state;
    memcpy((void *)&saved, (void *)made.header, sizeof(saved));
    assert_int_equal(seep_check(made.header, 0), SEEP_CHECK_EMPTY);
    assert_int_equal(seep_check(made.header, 4), SEEP_CHECK_TRUNCATED);
    assert_int_equal(seep_check("SEED", 4), SEEP_CHECK_NOT_A_RECORDING);
    assert_int_equal(seep_check(made.header, 100), SEEP_CHECK_TRUNCATED);
    assert_int_equal(seep_check(made.header, made.size - 1),
                     SEEP_CHECK_TRUNCATED);
    made.header->file_bytes = SEEP_LAYOUT_MOST_BYTES + SEEP_PAGE_BYTES;
    made.header->fixed_hash = seep_layout_fixed_hash(made.header);
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_DAMAGED);
    memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    made.header->magic[0] = 'x';
    assert_int_equal(seep_check(made.header, made.size),
                     SEEP_CHECK_NOT_A_RECORDING);
    memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    made.header->byte_order = __builtin_bswap32(SEEP_BYTE_ORDER);
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_BYTE_ORDER);
    memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    made.header->format_major++;
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_NEWER);
    memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    made.header->pid++;
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_DAMAGED);
    memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    atomic_store_explicit(&made.header->ready, 0, memory_order_relaxed);
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_UNFINISHED);
    drop(&made);
}

/* A liar that knows the hash still cannot name a section outside the file. */
static void sections_that_leave_the_file_are_refused(void **state)
{
    struct recording made = make(SEEP_LAYOUT_LEAST_BYTES, 0, 0);
    struct seep_rec_header saved;

    (void)state;
    memcpy((void *)&saved, (void *)made.header, sizeof(saved));
    for (int i = 0; i < SEEP_SECTION_COUNT; i++) {
        struct seep_rec_section *section = &made.header->sections[i];

        section->offset_bytes = made.size;
        made.header->fixed_hash = seep_layout_fixed_hash(made.header);
        assert_int_equal(seep_check(made.header, made.size),
                         SEEP_CHECK_DAMAGED);
        memcpy((void *)made.header, (void *)&saved, sizeof(saved));
        section->entry_count = UINT32_MAX;
        section->bytes = (uint64_t)section->entry_bytes * UINT32_MAX;
        made.header->fixed_hash = seep_layout_fixed_hash(made.header);
        assert_int_equal(seep_check(made.header, made.size),
                         SEEP_CHECK_DAMAGED);
        memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    }
    made.header->ring_slots = 3;
    made.header->fixed_hash = seep_layout_fixed_hash(made.header);
    assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_DAMAGED);
    drop(&made);
}

/* Readers compare marks with each other: so many that it takes for ever are
 * none of ours. Room for them is taken from the section before. */
static void more_marks_than_a_program_may_make_are_refused(void **state)
{
    struct recording made = make(SEEP_LAYOUT_DEFAULT_BYTES, 0, 0);
    struct seep_rec_section *devices =
        &made.header->sections[SEEP_SECTION_DEVICES];
    struct seep_rec_section *marks = &made.header->sections[SEEP_SECTION_MARKS];

    (void)state;
    marks->offset_bytes = devices->offset_bytes;
    devices->entry_count = 0;
    devices->bytes = 0;
    for (uint32_t more = 0; more < 2; more++) {
        marks->entry_count = SEEP_MARKS_MAX + more;
        marks->bytes = (uint64_t)marks->entry_bytes * marks->entry_count;
        made.header->fixed_hash = seep_layout_fixed_hash(made.header);
        assert_int_equal(seep_check(made.header, made.size),
                         more ? SEEP_CHECK_DAMAGED : SEEP_CHECK_VALID);
    }
    drop(&made);
}

/* Make @which one of @count entries, if need be where the section before is,
 * which keeps one. */
static void resize(struct seep_rec_header *header, enum seep_section which,
                   uint32_t count)
{
    struct seep_rec_section *section = &header->sections[which];
    struct seep_rec_section *before = &header->sections[which - 1];
    uint64_t bytes = (uint64_t)section->entry_bytes * count;

    if (bytes > section->bytes) {
        before->entry_count = 1;
        before->bytes = before->entry_bytes;
        section->offset_bytes =
            before->offset_bytes + (before->bytes + SEEP_PAGE_BYTES - 1) /
                                       SEEP_PAGE_BYTES * SEEP_PAGE_BYTES;
    }
    section->entry_count = count;
    section->bytes = bytes;
    header->fixed_hash = seep_layout_fixed_hash(header);
}

/* A liar that knows the hash again: what the one count allows the other does
 * not. */
static void counts_that_nobody_could_index_by_are_refused(void **state)
{
    static const struct {
        enum seep_section which;
        uint32_t right;
        uint32_t wrong;
    } bounds[] = {
        {SEEP_SECTION_COUNTERS, SEEP_COUNTER_COUNT, SEEP_COUNTER_COUNT - 1},
        {SEEP_SECTION_STRINGS, 1, 0},
        {SEEP_SECTION_SITES, 1, 0},
        {SEEP_SECTION_STACKS, 1, 0},
        {SEEP_SECTION_CODES, 1, 0},
        {SEEP_SECTION_MODULES, SEEP_MODULES_MAX, SEEP_MODULES_MAX + 1},
        {SEEP_SECTION_TIMELINE, SEEP_BUCKET_COUNT, SEEP_BUCKET_COUNT - 1},
        {SEEP_SECTION_DEVICES, SEEP_BUCKET_COUNT, SEEP_BUCKET_COUNT - 1},
        {SEEP_SECTION_DEVICES, SEEP_DEVICES_MAX * SEEP_BUCKET_COUNT,
         (SEEP_DEVICES_MAX + 1) * SEEP_BUCKET_COUNT},
    };
    struct recording made = make(SEEP_LAYOUT_DENSE_BYTES, 0, 0);
    struct seep_rec_header saved;

    (void)state;
    memcpy((void *)&saved, (void *)made.header, sizeof(saved));
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        resize(made.header, bounds[i].which, bounds[i].right);
        assert_int_equal(seep_check(made.header, made.size), SEEP_CHECK_VALID);
        memcpy((void *)made.header, (void *)&saved, sizeof(saved));
        resize(made.header, bounds[i].which, bounds[i].wrong);
        assert_int_equal(seep_check(made.header, made.size),
                         SEEP_CHECK_DAMAGED);
        memcpy((void *)made.header, (void *)&saved, sizeof(saved));
    }
    drop(&made);
}

static void a_string_outside_its_section_is_empty(void **state)
{
    struct recording made = make(SEEP_LAYOUT_LEAST_BYTES, 0, 0);
    struct seep_view view;

    (void)state;
    seep_view_init(&view, made.header);
    assert_string_equal(seep_view_string(&view, UINT32_MAX), "");
    assert_string_equal(seep_view_string(&view, 0), "");
    drop(&made);
}

/* A stack of its own frame 7 and one of @shared_stack's. */
static struct seep_rec_stack stack_of(uint32_t shared_stack)
{
    return (struct seep_rec_stack){
        .frame_count = 2,
        .first_frame = 7,
        .shared_stack = shared_stack,
        .shared_count = 1,
    };
}

/* Of a damaged copy a stack has all of its frames, or none. */
static void a_stack_that_contradicts_itself_has_no_frames(void **state)
{
    struct recording made = make(SEEP_LAYOUT_LEAST_BYTES, 0, 0);
    uint64_t frames[SEEP_STACK_FRAMES_MAX] = {0};
    struct seep_rec_stack good = stack_of(2);
    struct seep_rec_stack bad[8];
    struct seep_view view;

    (void)state;
    seep_view_init(&view, made.header);
    for (uint32_t i = 0; i < 8; i++) {
        bad[i] = good;
    }
    bad[0].first_frame = view.frame_capacity + 1; /* its own are outside, */
    bad[1].first_frame = view.frame_capacity;     /* by one */
    bad[2].frame_count = SEEP_STACK_FRAMES_MAX + 1;
    bad[3].shared_count = 2;                   /* it has none of its own */
    bad[4].shared_stack = view.stack_capacity; /* there is no such stack */
    bad[5].shared_stack = 3;                   /* which is not published */
    bad[6].shared_stack = 1;                   /* itself, for ever */
    bad[7].shared_count = 3;                   /* more than the other one has */
    bad[7].frame_count = 4;
    view.stacks[2] = good;
    view.stacks[2].shared_count = 0;
    view.stacks[1] = good;
    assert_int_equal(seep_view_frames(&view, 1, frames), 2);
    for (uint32_t i = 0; i < 8; i++) {
        view.stacks[1] = bad[i];
        assert_int_equal(seep_view_frames(&view, 1, frames), 0);
    }
    assert_int_equal(seep_view_frames(&view, view.stack_capacity, frames), 0);
    drop(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_gives_a_valid_recording_that_fits),
        cmocka_unit_test(every_size_has_a_series_for_a_sixteenth_of_its_sites),
        cmocka_unit_test(a_larger_recording_has_room_for_more_mappings),
        cmocka_unit_test(sizes_outside_the_limits_are_refused),
        cmocka_unit_test(an_inert_recording_is_small_and_valid),
        cmocka_unit_test(each_kind_of_damage_has_its_own_answer),
        cmocka_unit_test(sections_that_leave_the_file_are_refused),
        cmocka_unit_test(more_marks_than_a_program_may_make_are_refused),
        cmocka_unit_test(counts_that_nobody_could_index_by_are_refused),
        cmocka_unit_test(a_string_outside_its_section_is_empty),
        cmocka_unit_test(a_stack_that_contradicts_itself_has_no_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
