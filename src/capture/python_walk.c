/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a thread state along its frames, from the innermost outwards.
 *
 * Invariant: the walk ends, by a limit on all that is passed; a frame is
 * passed only if it is aligned and what is read of it is in range.
 */
#include "capture/python_walk.h"

#include "capture/python_code.h"

#define INSTRUCTION_MAX (INT64_C(1) << 28)
#define CALLS_APART_MAX (UINT64_C(64) << 20)
#define OWNED_BY_C                                             \
    3 /* from 3.12 on, 3.14's name for it is another: or above \
       */
#define OWNER_MAX 4

struct walk {
    const struct seep_python *python;
    struct seep_python_memory *memory;
    struct seep_python_chain *chain;
    uintptr_t frame;
    /* 3.11: the call of the evaluator that runs the frame, and the next one
     * out, with the frame that it begins at. */
    uintptr_t call;
    uintptr_t outer_call;
    uintptr_t outer_frame;
    size_t marked; /* frames before it have their marker */
};

static bool read_word(struct walk *walk, uintptr_t base, int offset,
                      uintptr_t *ret_word)
{
    return seep_python_read_word(walk->memory, base + (uintptr_t)offset,
                                 ret_word);
}

/* The call outside of walk->call. The outermost _PyCFrame is none: it is part
 * of the thread state, away from the stack. */
static bool find_outer_call(struct walk *walk)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    uintptr_t previous;

    walk->outer_call = 0;
    walk->outer_frame = 0;
    if (!read_word(walk, walk->call, at->cframe_previous, &previous)) {
        return false;
    }
    if (previous <= walk->call || previous - walk->call > CALLS_APART_MAX ||
        !seep_python_is_plausible(previous)) {
        return true;
    }
    walk->outer_call = previous;
    return read_word(walk, previous, at->cframe_current, &walk->outer_frame);
}

static bool begin(struct walk *walk, uintptr_t state)
{
    const struct seep_python_offsets *at = &walk->python->offsets;

    if (!seep_python_is_plausible(state) ||
        !read_word(walk, state, at->thread_frame, &walk->frame)) {
        return false;
    }
    if (at->cframe_current == SEEP_PYTHON_OFFSET_NONE) {
        return true;
    }
    walk->call = walk->frame;
    return seep_python_is_plausible(walk->call) &&
           read_word(walk, walk->call, at->cframe_current, &walk->frame) &&
           (at->minor != 11 || find_outer_call(walk));
}

/* All frames since the last marker were run by one call. */
static void mark(struct walk *walk, uintptr_t marker)
{
    while (walk->marked < walk->chain->count) {
        walk->chain->frames[walk->marked++].marker = marker;
    }
}

static bool find_instruction(struct walk *walk, uintptr_t code,
                             int32_t *ret_instruction)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    uintptr_t place;
    int64_t offset;
    int32_t last;

    if (at->minor >= 11) {
        if (!read_word(walk, walk->frame, at->frame_instruction, &place)) {
            return false;
        }
        offset = (int64_t)(place - code) - at->code_instructions;
    } else {
        if (!seep_python_read_int(
                walk->memory, walk->frame + (uintptr_t)at->frame_instruction,
                &last)) {
            return false;
        }
        offset = at->minor == 10 ? 2 * (int64_t)last : last;
    }
    *ret_instruction = (int32_t)offset;
    return offset >= -2 && offset < INSTRUCTION_MAX;
}

/* 3.13 and later: the frame that tidies up behind __init__ has a code object
 * of its own inside the interpreter, without a file. */
static bool is_cleanup(struct walk *walk, uintptr_t code, bool *ret_broken)
{
    const struct seep_python *python = walk->python;
    uintptr_t filename;
    uintptr_t name;

    if (python->offsets.minor < 13 || code < python->start ||
        code >= python->end) {
        return false;
    }
    *ret_broken =
        !read_word(walk, code, python->offsets.code_filename, &filename) ||
        !read_word(walk, code, python->offsets.code_name, &name);
    return !*ret_broken && filename == name;
}

static bool take_frame(struct walk *walk)
{
    const struct seep_python *python = walk->python;
    struct seep_python_chain *chain = walk->chain;
    struct seep_python_frame frame = {0};
    bool broken = false;

    if (!read_word(walk, walk->frame, python->offsets.frame_code,
                   &frame.code)) {
        return false;
    }
    if (python->offsets.minor >= 14) {
        frame.code &= ~(uintptr_t)3; /* the tag of a _PyStackRef */
    }
    if (!seep_python_is_a(walk->memory, frame.code, python->code_type) ||
        !find_instruction(walk, frame.code, &frame.instruction)) {
        return false;
    }
    if (is_cleanup(walk, frame.code, &broken) || broken) {
        return !broken;
    }
    if (chain->count == chain->capacity) {
        chain->truncated = true;
        return true;
    }
    chain->frames[chain->count++] = frame;
    return true;
}

/* To the frame that called this one. */
static bool step(struct walk *walk, uintptr_t *ret_back)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    uint8_t owner = 0;

    if (!seep_python_is_plausible(walk->frame) ||
        !read_word(walk, walk->frame, at->frame_back, ret_back) ||
        (at->frame_owner != SEEP_PYTHON_OFFSET_NONE &&
         !seep_python_read(walk->memory, &owner,
                           walk->frame + (uintptr_t)at->frame_owner, 1))) {
        return false;
    }
    if (owner >= OWNED_BY_C) {
        mark(walk, walk->frame);
        return at->minor >= 12 && owner <= OWNER_MAX;
    }
    if (at->minor == 11 && walk->frame == walk->outer_frame) {
        mark(walk, walk->call);
        walk->call = walk->outer_call;
        if (!find_outer_call(walk)) {
            return false;
        }
    }
    return take_frame(walk);
}

bool seep_python_walk(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t state,
                      struct seep_python_chain *chain)
{
    struct walk walk = {.python = python, .memory = memory, .chain = chain};
    bool fine;

    chain->count = 0;
    chain->truncated = false;
    chain->whole = false;
    fine = begin(&walk, state);
    for (size_t hops = 0; fine && walk.frame != 0; hops++) {
        uintptr_t back = 0;

        if (hops == 4 * chain->capacity ||
            (chain->truncated &&
             (python->offsets.minor < 11 || walk.marked == chain->count))) {
            chain->truncated = true;
            break;
        }
        fine = step(&walk, &back);
        walk.frame = back;
    }
    if (!fine) {
        chain->count = 0;
        return false;
    }
    if (python->offsets.minor == 11) {
        mark(&walk, walk.call);
    }
    chain->whole = walk.marked == chain->count && walk.outer_frame == 0;
    return true;
}
