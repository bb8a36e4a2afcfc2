/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a stack of Python's takes over from the last one, and what it must not:
 * of an interpreter that is made up, by versions that know their callers. */
#include "seep_test.h"

#include <string.h>

#include "capture/python/interpreter.h"
#include "python_world.h"

#define WALKED UINT64_C(0)
#define FOR_EACH_MINOR(minor) \
    for (unsigned int minor = 11; minor <= SEEP_PYTHON_MINOR_MAX; minor++)

/* As a hook does. */
static struct seep_python_stack *capture(void)
{
    struct seep_python_stack *stack = seep_python_stack_take();

    assert_non_null(stack);
    memcpy(stack->pcs, world.pcs, sizeof(world.pcs));
    memcpy(stack->sps, world.sps, sizeof(world.sps));
    stack->native_count = world.native_count;
    seep_python_stack_fill(stack);
    return stack;
}

static void give(struct seep_python_stack *stack)
{
    seep_python_stack_give(stack);
}

/* A world whose stack was captured once, each frame with a word. */
static void begin(unsigned int minor)
{
    struct seep_python_stack *stack;

    python_world_make(minor, 1);
    seep_python_use(&world.python);
    for (int i = 0; i < 65; i++) { /* past the probation */
        give(capture());
    }
    stack = capture();
    assert_int_equal(stack->chain.count, WORLD_FRAMES);
    for (unsigned int i = 0; i < WORLD_FRAMES; i++) {
        stack->chain.frames[i].word = 100 + i;
    }
    give(stack);
}

/* How many of the outermost frames were taken over with their words. */
static size_t count_taken_over(void)
{
    struct seep_python_stack *stack = capture();
    size_t count = 0;

    while (count < stack->chain.count &&
           stack->chain.frames[stack->chain.count - 1 - count].word != WALKED) {
        count++;
    }
    give(stack);
    return count;
}

static bool is_same_frame(const struct seep_python_frame *a,
                          const struct seep_python_frame *b)
{
    return a->code == b->code && a->marker == b->marker &&
           a->instruction == b->instruction && a->at == b->at;
}

/* Is what a capture finds now what one finds that knows of none before it? */
static void expect_as_by_a_whole_walk(void)
{
    struct seep_python_frame frames[SEEP_STACK_FRAMES_MAX];
    struct seep_python_stack *stack = capture();
    size_t count = stack->chain.count;

    memcpy(frames, stack->chain.frames, count * sizeof(frames[0]));
    give(stack);
    seep_python_kept_forget(&stack->kept);
    stack = capture();
    assert_int_equal(stack->chain.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(is_same_frame(&stack->chain.frames[i], &frames[i]));
    }
    give(stack);
}

static uint64_t *word_of(unsigned int frame, int offset)
{
    return python_world_word(world.frames[frame] + (uintptr_t)offset);
}

static void frames_that_are_as_they_were_are_not_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        begin(minor);
        assert_int_equal(count_taken_over(), WORLD_FRAMES);
        *word_of(0, world.python.offsets.frame_instruction) += 2;
        assert_int_equal(count_taken_over(), WORLD_FRAMES - 1);
        expect_as_by_a_whole_walk();
    }
}

static void frames_inside_of_one_that_went_on_are_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        for (unsigned int i = 0; i < WORLD_FRAMES; i++) {
            begin(minor);
            *word_of(i, world.python.offsets.frame_instruction) += 2;
            assert_int_equal(count_taken_over(), WORLD_FRAMES - 1 - i);
            begin(minor);
            *word_of(i, world.python.offsets.frame_instruction) += 2;
            expect_as_by_a_whole_walk();
        }
    }
}

static void a_frame_that_runs_other_code_is_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        const struct seep_python_offsets *o = &world.python.offsets;

        for (unsigned int i = 0; i + 1 < WORLD_FRAMES; i++) {
            begin(minor);
            *word_of(i, o->frame_code) = *word_of(i + 1, o->frame_code);
            *word_of(i, o->frame_instruction) =
                *word_of(i + 1, o->frame_instruction);
            assert_int_equal(count_taken_over(), WORLD_FRAMES - 1 - i);
            expect_as_by_a_whole_walk();
        }
    }
}

/* Within one call of the evaluator, which frames 3 to 5 are in. */
static void a_frame_that_returned_to_another_is_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        begin(minor);
        *word_of(3, world.python.offsets.frame_back) = world.frames[5];
        assert_int_equal(count_taken_over(), 1);
        begin(minor);
        *word_of(3, world.python.offsets.frame_back) = world.frames[5];
        expect_as_by_a_whole_walk();
    }
}

/* The frame that a call begins at: from 3.12 on behind a shim, in 3.11 by what
 * the call says. */
static void a_call_that_is_another_is_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        struct seep_python_stack *stack;
        uintptr_t call;

        begin(minor);
        stack = capture();
        call = stack->chain.frames[minor == 11 ? 3 : 2].marker;
        give(stack);
        if (minor == 11) {
            /* Frame 3 is of the same call as frame 2, then. */
            *python_world_word(call +
                               (uintptr_t)world.python.offsets.cframe_current) =
                world.frames[4];
            assert_int_equal(count_taken_over(), 2);
        } else {
            *python_world_word(call +
                               (uintptr_t)world.python.offsets.frame_back) =
                world.frames[4];
            assert_int_equal(count_taken_over(), 2);
        }
        expect_as_by_a_whole_walk();
    }
}

/* What a capture in the middle of a signal's frames, or on probation, finds is
 * not kept, nor does it take over anything. */
static void where_python_may_be_changing_its_frames_all_are_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        struct seep_python_stack *stack;

        begin(minor);
        stack = seep_python_stack_take();
        memcpy(stack->pcs, world.pcs, sizeof(world.pcs));
        memcpy(stack->sps, world.sps, sizeof(world.sps));
        stack->native_count = world.native_count;
        stack->interrupted = true;
        seep_python_stack_fill(stack);
        assert_int_equal(stack->chain.count, WORLD_FRAMES);
        assert_true(stack->chain.frames[0].word == WALKED);
        give(stack);
    }
}

static void a_child_takes_over_nothing(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        begin(minor);
        seep_python_after_fork();
        assert_int_equal(count_taken_over(), 0);
    }
}

static uint32_t version_now(void)
{
    struct seep_python_stack *stack = capture();
    const struct seep_python_known *known =
        seep_python_stack_know(stack, world.codes[0]);
    uint32_t version = known != NULL ? known->version : 0;

    /* Once more in the same capture, and another one in between. */
    assert_non_null(seep_python_stack_know(stack, world.codes[1]));
    assert_true(seep_python_stack_know(stack, world.codes[0]) == known);
    give(stack);
    return version;
}

/* The last character of a text that the first code object refers to. */
static uint8_t *last_character(int offset)
{
    uintptr_t text = *python_world_word(world.codes[0] + (uintptr_t)offset);
    uintptr_t header = (uintptr_t)world.python.offsets.text_header;

    if (offset == world.python.offsets.code_filename) { /* it is not ASCII */
        header += world.minor < 12 ? 24 : 16;
    }
    return (uint8_t *)(text + header +
                       *python_world_word(text + SEEP_PYTHON_OBJECT_SIZE) - 1);
}

/* As another code object would be that lies there, part by part. */
static void change_code(unsigned int part)
{
    const struct seep_python_offsets *o = &world.python.offsets;
    uintptr_t lines =
        *python_world_word(world.codes[0] + (uintptr_t)o->code_lines);

    switch (part) {
    case 0:
        ++*(int32_t *)(world.codes[0] + (uintptr_t)o->code_first_line);
        break;
    case 1:
        ++*last_character(o->code_filename);
        break;
    case 2:
        ++*last_character(o->code_qualname);
        break;
    case 3: /* how its lines begin, and then end */
        ++*(uint8_t *)(lines + SEEP_PYTHON_BYTES_DATA + 1);
        break;
    case 4:
        ++*(uint8_t *)(lines + SEEP_PYTHON_BYTES_DATA +
                       *python_world_word(lines + SEEP_PYTHON_OBJECT_SIZE) - 1);
        break;
    case 5:
        --*python_world_word(lines + SEEP_PYTHON_OBJECT_SIZE);
        break;
    case 6: /* the same table elsewhere */
        *python_world_word(world.codes[0] + (uintptr_t)o->code_lines) =
            *python_world_word(world.codes[1] + (uintptr_t)o->code_lines);
        break;
    default:
        *python_world_word(world.codes[0] + (uintptr_t)o->code_filename) =
            *python_world_word(world.codes[1] + (uintptr_t)o->code_filename);
        break;
    }
}

static void code_is_known_until_another_lies_there(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        for (unsigned int part = 0; part < 8; part++) {
            uint32_t version;

            begin(minor);
            version = version_now();
            assert_int_not_equal(version, 0);
            assert_int_equal(version_now(), version);
            assert_int_equal(version_now(), version);
            change_code(part);
            assert_int_not_equal(version_now(), version);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_that_are_as_they_were_are_not_walked),
        cmocka_unit_test(frames_inside_of_one_that_went_on_are_walked),
        cmocka_unit_test(a_frame_that_runs_other_code_is_walked),
        cmocka_unit_test(a_frame_that_returned_to_another_is_walked),
        cmocka_unit_test(a_call_that_is_another_is_walked),
        cmocka_unit_test(
            where_python_may_be_changing_its_frames_all_are_walked),
        cmocka_unit_test(a_child_takes_over_nothing),
        cmocka_unit_test(code_is_known_until_another_lies_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
