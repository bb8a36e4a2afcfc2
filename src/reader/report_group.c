/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See report_group.h. Invariant: what is suppressed or bounded by a rule is
 * never in one row with what is not, however rows are made, so that a rule
 * says the same of a stack in every grouping.
 */
#include "reader/report_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/report_build.h"
#include "reader/report_group_name.h"
#include "reader/report_names.h"
#include "reader/suppress.h"
#include "reader/where.h"
#include "reader/where_python.h"

/* What a row is made by, in its id. A stack's has none. */
enum kind { BY_LINE = 1, BY_FUNCTION, BY_MODULE, BY_THREAD };

struct grouping {
    struct seep_report_build *build;
    struct seep_names_stack stack;    /* of the site at hand */
    struct seep_report_frame *frames; /* SEEP_NAMES_FRAMES_MAX */
    size_t frame_count;               /* 0: not all have been named yet */
};

static uint64_t add_text(uint64_t hash, const char *text)
{
    return seep_hash_add(hash, seep_hash_bytes(text, strlen(text)));
}

static uint64_t add_python(uint64_t hash, const struct seep_report_frame *frame)
{
    hash = add_text(hash, seep_where_python_tail(frame->file));
    return add_text(hash, frame->function);
}

/* What a JIT made lies elsewhere in each run, so only its name can count. */
static uint64_t add_word(uint64_t hash, struct seep_report_build *build,
                         uint64_t word)
{
    struct seep_report_frame frame;

    if ((word & SEEP_FRAME_IS_CODE) != 0) {
        seep_names_frames(build, word, &frame, 1);
        return seep_hash_add(add_python(hash, &frame), frame.line);
    }
    if (*seep_names_module(build->names, word) == '\0') {
        seep_names_frames(build, word, &frame, 1);
        return add_text(hash, frame.function);
    }
    hash = add_text(
        hash, seep_where_base_name(seep_names_module(build->names, word)));
    return seep_hash_add(hash, word & SEEP_FRAME_OFFSET_MASK);
}

static uint64_t add_stack(uint64_t hash, struct grouping *grouping)
{
    const struct seep_names_stack *stack = &grouping->stack;
    char thread[SEEP_NAME_BYTES];

    for (uint32_t i = 0; i < stack->count; i++) {
        hash = add_word(hash, grouping->build, stack->words[i]);
    }
    if (stack->thread[0] != '\0') {
        seep_name_without_numbers(stack->thread, thread);
        hash = add_text(hash, thread);
    }
    return hash;
}

static void name_all(struct grouping *grouping)
{
    const struct seep_names_stack *stack = &grouping->stack;
    size_t count = 0;

    for (uint32_t i = 0; i < stack->count && count < SEEP_NAMES_FRAMES_MAX;
         i++) {
        count += seep_names_frames(grouping->build, stack->words[i],
                                   grouping->frames + count,
                                   SEEP_NAMES_FRAMES_MAX - count);
    }
    grouping->frame_count = count;
}

/* The user's line, if it is one of Python. */
static bool pick_python(struct grouping *grouping,
                        struct seep_report_frame *ret_frame)
{
    const struct seep_names_stack *stack = &grouping->stack;
    size_t count = 0;
    size_t picked;

    for (uint32_t i = 0; i < stack->count; i++) {
        if ((stack->words[i] & SEEP_FRAME_IS_CODE) != 0) {
            count += seep_names_frames(grouping->build, stack->words[i],
                                       &grouping->frames[count], 1);
        }
    }
    if (count == 0) {
        return false;
    }
    picked = seep_where_pick(grouping->frames, count);
    *ret_frame = grouping->frames[picked];
    return ret_frame->file[0] != '\0' || ret_frame->function[0] != '\0';
}

/*
 * The frame that seep_where_pick() finds among all. Names are dear: they are
 * asked for from the innermost on, and only until the user's is found.
 */
static void pick(struct grouping *grouping, struct seep_report_frame *ret_frame)
{
    const struct seep_names_stack *stack = &grouping->stack;

    if (pick_python(grouping, ret_frame)) {
        return;
    }
    for (uint32_t i = 0; i < stack->count; i++) {
        uint64_t word = stack->words[i];
        size_t count;

        if ((word & SEEP_FRAME_IS_CODE) != 0 ||
            seep_where_is_plumbing(
                seep_names_module(grouping->build->names, word))) {
            continue;
        }
        count = seep_names_frames(grouping->build, word, grouping->frames,
                                  SEEP_NAMES_FRAMES_MAX);
        for (size_t j = 0; j < count; j++) {
            if (seep_where_is_user(&grouping->frames[j])) {
                *ret_frame = grouping->frames[j];
                return;
            }
        }
    }
    name_all(grouping);
    *ret_frame =
        grouping
            ->frames[seep_where_pick(grouping->frames, grouping->frame_count)];
}

static uint64_t add_line(uint64_t hash, const struct seep_report_frame *frame,
                         struct grouping *grouping)
{
    if (!frame->python && (frame->file[0] == '\0' || frame->line == 0)) {
        return add_stack(hash, grouping);
    }
    hash = seep_hash_add(hash, BY_LINE);
    if (frame->python) {
        hash = add_python(hash, frame);
    } else {
        hash = add_text(hash, seep_where_base_name(frame->file));
        hash = add_text(hash, frame->function);
    }
    return seep_hash_add(hash, frame->line);
}

static uint64_t add_function(uint64_t hash,
                             const struct seep_report_frame *frame)
{
    hash = seep_hash_add(hash, BY_FUNCTION);
    if (frame->python) {
        return add_python(hash, frame);
    }
    hash = add_text(hash, seep_where_base_name(frame->module));
    return frame->function[0] == '\0' || seep_name_is_nearest(frame->function)
               ? seep_hash_add(hash, frame->offset)
               : add_text(hash, frame->function);
}

static uint64_t add_module(uint64_t hash, const struct seep_report_frame *frame)
{
    char name[SEEP_NAME_BYTES];

    seep_name_module(frame, name, sizeof(name));
    return add_text(seep_hash_add(hash, BY_MODULE), name);
}

static uint64_t add_thread(uint64_t hash, struct grouping *grouping)
{
    char name[SEEP_NAME_BYTES];

    name_all(grouping);
    seep_name_thread(grouping->stack.thread, grouping->frames,
                     grouping->frame_count, name, sizeof(name));
    return add_text(seep_hash_add(hash, BY_THREAD), name);
}

static uint64_t id_of(struct grouping *grouping, enum seep_grouping by,
                      uint64_t hash)
{
    struct seep_report_frame frame;

    if (grouping->stack.count == 0) {
        return hash;
    }
    if (by == SEEP_BY_STACK) {
        return add_stack(hash, grouping);
    }
    if (by == SEEP_BY_THREAD) {
        return add_thread(hash, grouping);
    }
    pick(grouping, &frame);
    switch (by) {
    case SEEP_BY_FUNCTION:
        return add_function(hash, &frame);
    case SEEP_BY_MODULE:
        return add_module(hash, &frame);
    default:
        return add_line(hash, &frame, grouping);
    }
}

/* What rules say of a stack by its frames; ids and lines are asked later. */
static uint64_t add_rules(uint64_t hash, struct grouping *grouping)
{
    const struct seep_report_options *options = grouping->build->options;
    struct seep_report_site site = {.id = ""};
    const char *rule;

    if (options == NULL ||
        (options->suppressions == NULL && options->known == NULL)) {
        return hash;
    }
    if (grouping->frame_count == 0) {
        name_all(grouping);
    }
    site.frames = grouping->frames;
    site.frame_count = grouping->frame_count;
    rule = seep_suppressions_find(options->suppressions, &site);
    hash = rule != NULL ? add_text(hash, rule) : hash;
    return seep_hash_add(hash, seep_known_find(options->known, &site));
}

/* What is of no device has the id that it had before devices were told. */
static uint64_t start_of(const struct seep_rec_site *site)
{
    uint64_t hash = seep_hash_add(SEEP_HASH_SEED, site->space);
    int device = seep_sites_device_of(site);

    return device < 0 ? hash : seep_hash_add(hash, (uint64_t)device);
}

int seep_group_keys(struct seep_report_build *build,
                    struct seep_site_key **ret_keys)
{
    const struct seep_view *view = &build->snapshot.view;
    enum seep_grouping by = build->report.by;
    struct grouping grouping = {.build = build};
    struct seep_site_key *keys =
        calloc((size_t)view->site_capacity + 1, sizeof(*keys));

    grouping.frames = calloc(SEEP_NAMES_FRAMES_MAX, sizeof(*grouping.frames));
    if (keys == NULL || grouping.frames == NULL) {
        free(keys);
        free(grouping.frames);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        uint64_t hash;

        if (!seep_sites_is_used(&view->sites[i], i)) {
            continue;
        }
        hash = start_of(&view->sites[i]);
        grouping.frame_count = 0;
        seep_names_stack(build, i, &grouping.stack);
        keys[i].id = id_of(&grouping, by, hash);
        if (by == SEEP_BY_STACK) {
            keys[i].line_id = id_of(&grouping, SEEP_BY_LINE, hash);
        }
        /* No call site at all is not one whose frames are missing. */
        keys[i].row = add_rules(keys[i].id + (i == 0), &grouping);
    }
    free(grouping.frames);
    *ret_keys = keys;
    return 0;
}
