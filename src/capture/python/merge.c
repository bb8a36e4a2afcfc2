/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Native frames and Python's into one stack.
 *
 * From 3.11 on by address: the marker of a Python frame lies in the C frame of
 * the call that runs it. Before, each call runs one frame: they are paired
 * from the innermost by the evaluator's code.
 *
 * Invariant: the order of either kind is kept, and every Python frame is in the
 * merged stack unless that is full.
 */
#include "capture/python/interpreter.h"

struct merge {
    const struct seep_native_stack *native;
    const struct seep_python_chain *chain;
    struct seep_merged_frame *merged;
    size_t capacity;
    size_t count;
    size_t taken; /* Python frames that are in */
    bool full;
};

/* Room for as many more as that, of @wanted. */
static size_t room(struct merge *merge, size_t wanted)
{
    size_t left = merge->capacity - merge->count;

    if (wanted > left) {
        merge->full = true;
        return left;
    }
    return wanted;
}

static void put_native(struct merge *merge, size_t begin, size_t end)
{
    const uintptr_t *pcs = merge->native->pcs + begin;
    struct seep_merged_frame *to = merge->merged + merge->count;
    size_t count = room(merge, end - begin);

    for (size_t i = 0; i < count; i++) {
        to[i].address = pcs[i];
        to[i].instruction = -1;
        to[i].is_python = false;
    }
    merge->count += count;
}

/* The Python frames before @end that are not in yet. */
static void put_python(struct merge *merge, size_t end)
{
    const struct seep_python_frame *from = merge->chain->frames + merge->taken;
    struct seep_merged_frame *to = merge->merged + merge->count;
    size_t count = room(merge, end - merge->taken);

    for (size_t i = 0; i < count; i++) {
        to[i].address = from[i].code;
        to[i].instruction = from[i].instruction;
        to[i].is_python = true;
    }
    merge->count += count;
    merge->taken = end;
}

/* Behind the last frame that the C frame at [low, high) runs; the number of
 * those that are in, if it runs none. */
static size_t end_of_call(const struct merge *merge, uintptr_t low,
                          uintptr_t high)
{
    const struct seep_python_frame *frames = merge->chain->frames;
    size_t count = merge->chain->count;
    size_t at = merge->taken;
    size_t end;

    /* Calls lie the higher the farther out they are: those below were missed,
     * and there is nothing for this one behind one above it. */
    while (at < count && frames[at].marker < low) {
        at++;
    }
    for (end = at;
         end < count && frames[end].marker >= low && frames[end].marker < high;
         end++) {
    }
    return end > at ? end : merge->taken;
}

/* The lowest marker of the frames that are not in yet. */
static uintptr_t next_marker(const struct merge *merge)
{
    return merge->taken < merge->chain->count
               ? merge->chain->frames[merge->taken].marker
               : UINTPTR_MAX;
}

static void merge_by_address(struct merge *merge)
{
    const uintptr_t *sps = merge->native->sps;
    size_t last = merge->native->count;
    uintptr_t marker = next_marker(merge);
    size_t begin = 0; /* of the native frames that are not in yet */

    /* How far the last one reaches nobody knows: it runs none. */
    for (size_t i = 0; i + 1 < last; i++) {
        size_t end;

        if (marker >= sps[i + 1]) {
            continue;
        }
        end = end_of_call(merge, sps[i], sps[i + 1]);
        if (end > merge->taken) {
            put_native(merge, begin, i);
            put_python(merge, end);
            begin = i + 1;
            marker = next_marker(merge);
        }
    }
    put_native(merge, begin, last);
    /* Of calls that a cut stack does not reach. */
    put_python(merge, merge->chain->count);
}

static bool is_evaluator(const struct seep_python *python, uintptr_t pc)
{
    return pc - python->evaluate_low <
           python->evaluate_high - python->evaluate_low;
}

static void merge_by_code(struct merge *merge, const struct seep_python *python)
{
    const uintptr_t *pcs = merge->native->pcs;
    size_t last = merge->native->count;
    size_t outermost = last;
    size_t begin = 0; /* of the native frames that are not in yet */

    while (outermost > 0 && !is_evaluator(python, pcs[outermost - 1])) {
        outermost--;
    }
    for (size_t i = 0; i < outermost; i++) {
        if (!is_evaluator(python, pcs[i]) ||
            merge->taken == merge->chain->count) {
            continue;
        }
        put_native(merge, begin, i);
        begin = i + 1;
        /* An exception that is thrown into a delegating generator links frames
         * that no call runs: what is left is the outermost one's. */
        put_python(merge,
                   i + 1 == outermost ? merge->chain->count : merge->taken + 1);
    }
    put_native(merge, begin, last);
    put_python(merge, merge->chain->count);
}

size_t seep_python_merge(const struct seep_python *python,
                         const struct seep_native_stack *native,
                         const struct seep_python_chain *chain,
                         struct seep_merged_frame *merged, size_t capacity,
                         bool *ret_full)
{
    struct merge merge = {.native = native,
                          .chain = chain,
                          .merged = merged,
                          .capacity = capacity};

    if (python == NULL) {
        put_native(&merge, 0, native->count);
    } else if (python->offsets.minor >= 11) {
        merge_by_address(&merge);
    } else {
        merge_by_code(&merge, python);
    }
    *ret_full = merge.full;
    return merge.count;
}
