/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The frames of a thread state, from the innermost outwards.
 *
 * Most of the outer frames of a stack are as they were in the last one. Where a
 * walk comes to a frame of that, those from there on are compared, which takes
 * a third of the time, and not walked.
 *
 * Invariant: a walk ends, by a limit on all that is passed; a frame is passed
 * only if it is aligned and what is read of it is in range. Of the last stack
 * nothing is taken over but frames of which all that a walk reads was read
 * again, and is as it was.
 */
#include "base/compiler.h"
#include "base/hash.h"
#include "capture/python/interpreter.h"

#define INSTRUCTION_MAX (INT64_C(1) << 28)
#define CALLS_APART_MAX (UINT64_C(64) << 20)
/* Of a frame's owner from 3.12 on; 3.14 has another name for the first. */
#define OWNED_BY_C 3
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
    size_t marked;                 /* frames before it have their marker */
    struct seep_python_kept *kept; /* NULL: nothing is taken over, or kept */
    size_t next; /* of those kept: frames before it are not as they were */
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

/*
 * The last stack, whose outermost frame is the last of the array. From 3.11 on,
 * where a frame knows its caller and what runs it.
 */

#define KEPT_END SEEP_STACK_FRAMES_MAX

static_assert(KEPT_END <= UINT8_MAX, "their numbers are bytes");

/* Two at one entry: the later one is found. */
static uint8_t *number_at(struct seep_python_kept *kept, uintptr_t frame)
{
    return &kept->numbers[(frame >> 4) * SEEP_HASH_SEED >> 56];
}

void seep_python_kept_forget(struct seep_python_kept *kept)
{
    kept->python = NULL;
}

static inline __attribute__((no_sanitize("address"))) uintptr_t
word_at(uintptr_t address, int offset)
{
    return *(const uintptr_t *)(address + (uintptr_t)offset);
}

static inline __attribute__((no_sanitize("address"))) uint8_t
owner_of(const struct seep_python_offsets *at, uintptr_t frame)
{
    return *(const uint8_t *)(frame + (uintptr_t)at->frame_owner);
}

/* Is what the frame runs, and where in it, as it was? */
static inline bool is_same_place(const struct seep_python_offsets *at,
                                 const struct seep_python_frame *frame)
{
    uintptr_t code = word_at(frame->at, at->frame_code);

    code &= ~(uintptr_t)(at->minor >= 14 ? 3 : 0);
    return code == frame->code &&
           word_at(frame->at, at->frame_instruction) ==
               code + (uintptr_t)(at->code_instructions + frame->instruction) &&
           owner_of(at, frame->at) < OWNED_BY_C;
}

/* Of a call of the evaluator: is it C's own, which no code runs in? */
static inline bool is_owned_by_c(const struct seep_python_offsets *at,
                                 uintptr_t frame)
{
    return (uint8_t)(owner_of(at, frame) - OWNED_BY_C) <=
           OWNER_MAX - OWNED_BY_C;
}

/* Behind the outermost call, whose entry is @call, there is nothing to 3.14;
 * then one frame of C's more, in the thread state. */
static inline bool is_outermost(const struct seep_python_offsets *at,
                                uintptr_t call)
{
    uintptr_t base = word_at(call, at->frame_back);

    return base == 0 ||
           (at->minor >= 15 && seep_python_is_plausible(base) &&
            is_owned_by_c(at, base) && word_at(base, at->frame_back) == 0);
}

/* Does frame @i lead to the next one, by the same calls of the evaluator? */
static inline bool leads_on(const struct walk *walk, size_t i)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    const struct seep_python_frame *frame = &walk->kept->frames[i];
    bool is_last = i + 1 == KEPT_END;
    uintptr_t next = is_last ? 0 : frame[1].at;
    uintptr_t call = is_last ? 0 : frame[1].marker;
    uintptr_t back = word_at(frame->at, at->frame_back);
    struct walk outer = {.python = walk->python, .memory = walk->memory};

    if (call == frame->marker) {
        return back == next;
    }
    if (at->minor >= 12) {
        return back == frame->marker && is_owned_by_c(at, back) &&
               (is_last ? is_outermost(at, back)
                        : word_at(back, at->frame_back) == next);
    }
    outer.call = frame->marker;
    return back == next && find_outer_call(&outer) &&
           outer.outer_frame == next && (is_last || outer.outer_call == call);
}

/* The first frame from @i on that is not as it was. */
static size_t find_other(const struct walk *walk, size_t i)
{
    while (i < KEPT_END &&
           is_same_place(&walk->python->offsets, &walk->kept->frames[i]) &&
           leads_on(walk, i)) {
        i++;
    }
    return i;
}

/* The frames of the chain are those before number @end, now. */
static void keep_before(struct walk *walk, size_t end)
{
    struct seep_python_kept *kept = walk->kept;
    struct seep_python_chain *chain = walk->chain;
    size_t first = end - chain->count;

    /* Who never comes back leaves none. */
    seep_python_kept_forget(kept);
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(&kept->frames[first], chain->frames,
           chain->count * sizeof(chain->frames[0]));
    for (size_t i = first; i < end; i++) {
        *number_at(kept, kept->frames[i].at) = (uint8_t)i;
    }
    kept->first = first;
    atomic_signal_fence(memory_order_seq_cst);
    kept->python = walk->python;
    chain->frames = &kept->frames[first];
    chain->count = KEPT_END - first;
    walk->marked = chain->count;
}

/* The walk stands before a frame: the rest may be that of the last stack. */
static bool join(struct walk *walk)
{
    struct seep_python_kept *kept = walk->kept;
    size_t number = *number_at(kept, walk->frame);
    size_t other;

    if (number < walk->next || kept->frames[number].at != walk->frame ||
        walk->chain->count > number ||
        (walk->python->offsets.minor == 11 &&
         kept->frames[number].marker != walk->call)) {
        return false;
    }
    other = find_other(walk, number);
    if (other < KEPT_END) {
        walk->next = other + 1;
        return false;
    }
    mark(walk, kept->frames[number].marker);
    keep_before(walk, number);
    walk->outer_frame = 0;
    return true;
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
    struct seep_python_frame frame = {.at = walk->frame};
    bool broken = false;

    if (!read_word(walk, walk->frame, python->offsets.frame_code,
                   &frame.code)) {
        return false;
    }
    if (python->offsets.minor >= 14) {
        frame.code &= ~(uintptr_t)3; /* the tag of a _PyStackRef */
    }
    if ((!walk->memory->frames_only &&
         !seep_python_is_a(walk->memory, frame.code, python->code_type)) ||
        !find_instruction(walk, frame.code, &frame.instruction)) {
        return false;
    }
    if (is_cleanup(walk, frame.code, &broken) || broken) {
        return !broken;
    }
    if (chain->count == chain->capacity) {
        /* The last is the outermost that was come to, however many are left
         * out before it: it may be the user's. */
        chain->truncated = true;
        frame.marker = chain->frames[chain->count - 1].marker;
        chain->frames[chain->count - 1] = frame;
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
    if (walk->kept != NULL && join(walk)) {
        *ret_back = 0;
        return true;
    }
    return take_frame(walk);
}

bool seep_python_walk(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t state,
                      struct seep_python_chain *chain)
{
    struct walk walk = {.python = python, .memory = memory, .chain = chain};
    bool fine;

    if (chain->kept != NULL && python->offsets.minor >= 11 &&
        memory->pages == NULL) {
        walk.kept = chain->kept;
        walk.next = walk.kept->python == python ? walk.kept->first : KEPT_END;
    }

    chain->frames = chain->room;
    chain->count = 0;
    chain->truncated = false;
    chain->whole = false;
    fine = begin(&walk, state);
    for (size_t hops = 0; fine && walk.frame != 0; hops++) {
        uintptr_t back = 0;

        if (hops == 4 * chain->capacity ||
            (chain->truncated && memory->pages != NULL &&
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
    if (walk.kept != NULL && chain->whole && !chain->truncated &&
        chain->frames == chain->room) {
        keep_before(&walk, KEPT_END);
    }
    return true;
}

bool seep_python_chain_is_code(const struct seep_python *python,
                               struct seep_python_memory *memory,
                               const struct seep_python_chain *chain)
{
    for (size_t i = 0; i < chain->count; i++) {
        if (!seep_python_is_a(memory, chain->frames[i].code,
                              python->code_type)) {
            return false;
        }
    }
    return true;
}
