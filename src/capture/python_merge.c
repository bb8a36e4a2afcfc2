/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From 3.11 on by address: the marker of a Python frame lies in the C frame of
 * the call that runs it. Before, each call runs one frame: they are paired
 * from the innermost by the evaluator's code.
 *
 * Invariant: as in python_merge.h.
 */
#include "capture/python_merge.h"

struct merge {
    const struct seep_native_stack *native;
    const struct seep_python_chain *chain;
    struct seep_merged_frame *merged;
    size_t capacity;
    size_t count;
    size_t taken; /* Python frames that are in */
    bool full;
};

static void put(struct merge *merge, struct seep_merged_frame frame)
{
    if (merge->count == merge->capacity) {
        merge->full = true;
        return;
    }
    merge->merged[merge->count++] = frame;
}

static void put_native(struct merge *merge, size_t index)
{
    put(merge, (struct seep_merged_frame){.address = merge->native->pcs[index],
                                          .instruction = -1});
}

/* The Python frames before @end that are not in yet. */
static void put_python(struct merge *merge, size_t end)
{
    for (; merge->taken < end; merge->taken++) {
        const struct seep_python_frame *frame =
            &merge->chain->frames[merge->taken];

        put(merge, (struct seep_merged_frame){.address = frame->code,
                                              .instruction = frame->instruction,
                                              .is_python = true});
    }
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

static void merge_by_address(struct merge *merge)
{
    const struct seep_native_stack *native = merge->native;

    for (size_t i = 0; i < native->count; i++) {
        uintptr_t low = native->sps[i];
        /* How far the last one reaches nobody knows. */
        uintptr_t high = i + 1 < native->count ? native->sps[i + 1] : low;
        size_t end = end_of_call(merge, low, high);

        if (end > merge->taken) {
            put_python(merge, end);
        } else {
            put_native(merge, i);
        }
    }
    /* Of calls that a cut stack does not reach. */
    put_python(merge, merge->chain->count);
}

static bool is_evaluator(const struct seep_python *python, uintptr_t pc)
{
    return pc >= python->evaluate_low && pc < python->evaluate_high;
}

static void merge_by_code(struct merge *merge, const struct seep_python *python)
{
    const struct seep_native_stack *native = merge->native;
    size_t outermost = native->count;

    for (size_t i = 0; i < native->count; i++) {
        if (is_evaluator(python, native->pcs[i])) {
            outermost = i;
        }
    }
    for (size_t i = 0; i < native->count; i++) {
        if (!is_evaluator(python, native->pcs[i]) ||
            merge->taken == merge->chain->count) {
            put_native(merge, i);
        } else if (i != outermost) {
            put_python(merge, merge->taken + 1);
        } else {
            /* An exception that is thrown into a delegating generator links
             * frames that no call runs. */
            put_python(merge, merge->chain->count);
        }
    }
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

    if (python->offsets.minor >= 11) {
        merge_by_address(&merge);
    } else {
        merge_by_code(&merge, python);
    }
    *ret_full = merge.full;
    return merge.count;
}
