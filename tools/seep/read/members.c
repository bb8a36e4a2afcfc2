/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Members by DWARF, asked for behind the wall of symbols; see members.h.
 *
 * Invariant: a step is an attribute only where DWARF has one at that place.
 */
#include "read/members.h"

#include <stdio.h>
#include <string.h>

#include "read/ask.h"
#include "reader/recording/store.h"
#include "reader/symbols/symbolise.h"

#define GROUPS_MOST 8U
#define LAST_WORD_BYTES 8U /* of a chunk of glibc, in the next one's head */
#define FILES_MOST 16U
#define WORDS_MOST 64U /* of a holder that are asked for */

struct naming {
    struct seep_store *store;
    struct seep_symbol_module files[FILES_MOST];
    size_t file_count;
    struct seep_symboliser *symboliser;
};

/* of an answer that is nobody else's yet */
static struct seep_held_step *step_of(const struct seep_held_group *group,
                                      size_t i)
{
    return (struct seep_held_step *)(uintptr_t)&group->steps[i];
}

/* @return FILES_MOST: it is none of them */
static size_t file_of(const struct naming *naming,
                      const struct seep_held_step *step)
{
    size_t i = 0;

    while (i < naming->file_count &&
           strcmp(naming->files[i].path, step->type_file) != 0) {
        i++;
    }
    return i < naming->file_count ? i : FILES_MOST;
}

static bool has_type(const struct seep_held_step *step)
{
    return step->type_file != NULL && step->type_file[0] == '/' &&
           step->hop_bytes >= 0;
}

/* Of one call site its first groups, of several the first of each; NULL: there
 * are no more. */
static const struct seep_held_group *
group_of(const struct seep_held_answer *answer, size_t i)
{
    if (answer->part_count > 1) {
        return i < answer->part_count && answer->parts[i].group_count > 0
                   ? &answer->groups[answer->parts[i].group_first]
                   : NULL;
    }
    return i < answer->group_count && i < GROUPS_MOST ? &answer->groups[i]
                                                      : NULL;
}

static void gather_files(struct naming *naming,
                         const struct seep_held_answer *answer)
{
    const struct seep_held_group *group;

    for (size_t i = 0; (group = group_of(answer, i)) != NULL; i++) {

        for (size_t k = 0; k < group->step_count; k++) {
            const struct seep_held_step *step = &group->steps[k];

            if (has_type(step) && file_of(naming, step) == FILES_MOST &&
                naming->file_count < FILES_MOST) {
                naming->files[naming->file_count++].path = step->type_file;
            }
        }
    }
}

/* Step @at of @group, and down to where a type is no more known by it. */
static struct seep_symbol_thing thing_of(const struct seep_held_group *group,
                                         size_t at)
{
    const struct seep_held_step *step = &group->steps[at];
    struct seep_symbol_thing thing = {
        .class_symbol = step->type_symbol,
        .address = step->type_address,
        .is_thread_local = step->kind == SEEP_HELD_KIND_THREAD_LOCAL,
    };

    while (thing.hop_count < SEEP_SYMBOL_HOPS_MOST) {
        thing.hops[thing.hop_count++] =
            (struct seep_symbol_hop){(uint64_t)group->steps[at].hop_bytes,
                                     group->steps[at].bytes + LAST_WORD_BYTES};
        if (at-- == 0 || group->steps[at].kind != SEEP_HELD_KIND_BLOCK ||
            group->steps[at].hop_bytes < 0) {
            break;
        }
    }
    return thing;
}

static void set_member(struct naming *naming, struct seep_held_step *step,
                       const struct seep_symbol_frame *frame)
{
    const char *name = seep_store_text(naming->store, frame->function);
    const char *type = seep_store_text(naming->store, frame->file);

    if (type != NULL && *type != '\0' && step->kind == SEEP_HELD_KIND_BLOCK) {
        step->name = type;
    }
    if (name != NULL && *name != '\0') {
        step->edge = SEEP_HELD_EDGE_ATTRIBUTE;
        step->edge_name = name;
    }
}

/* Is it by one member that the holder has all, by words of it that differ? */
static bool shares_member(const struct naming *naming,
                          const struct seep_held_group *group, size_t file,
                          struct seep_symbol_thing thing, size_t hop)
{
    const struct seep_held_step *step = &group->steps[group->holder];
    uint64_t pointed_to = (uint64_t)(step->offset_bytes - step->hop_bytes);
    size_t every = group->edge_count / WORDS_MOST + 1;
    const struct seep_symbol_frame *frames;

    thing.hop_count = hop + 1;
    for (size_t i = 0; i < group->edge_count; i += every) {
        thing.hops[hop].offset = group->edge_offsets[i] - pointed_to;
        if (group->edge_offsets[i] < pointed_to ||
            !seep_symboliser_members(naming->symboliser, file, &thing,
                                     &frames) ||
            strcmp(frames[hop].function, step->edge_name) != 0) {
            return false;
        }
    }
    return *step->edge_name != '\0' && group->edge_count > 0;
}

static void name_steps(struct naming *naming, struct seep_held_group *group)
{
    for (size_t i = group->step_count; i-- > 0;) {
        const struct seep_held_step *step = &group->steps[i];
        size_t file = has_type(step) ? file_of(naming, step) : FILES_MOST;
        struct seep_symbol_thing thing;
        const struct seep_symbol_frame *frames;

        if (file == FILES_MOST) {
            continue;
        }
        thing = thing_of(group, i);
        if (!seep_symboliser_members(naming->symboliser, file, &thing,
                                     &frames)) {
            continue;
        }
        for (size_t k = 0; k < thing.hop_count; k++) {
            set_member(naming, step_of(group, i - k), &frames[k]);
        }
        if (!group->shares_edge && group->holder <= i &&
            i - group->holder < thing.hop_count) {
            group->shares_edge =
                shares_member(naming, group, file, thing, i - group->holder);
        }
    }
}

void seep_members_name(const struct seep_ask *ask,
                       struct seep_held_answer *answer)
{
    struct naming naming = {.store = answer->store};
    struct seep_symboliser_options options = {.sysroot = NULL};
    const struct seep_held_group *group;
    char root[32];

    gather_files(&naming, answer);
    snprintf(root, sizeof(root), "/proc/%d/root", (int)ask->pid);
    options.sysroot = ask->core_path == NULL ? root : NULL;
    if (naming.file_count == 0 ||
        seep_symboliser_open(naming.files, naming.file_count, &options,
                             &naming.symboliser) != 0) {
        return;
    }
    for (size_t i = 0; (group = group_of(answer, i)) != NULL; i++) {
        name_steps(&naming, (struct seep_held_group *)(uintptr_t)group);
    }
    seep_symboliser_close(naming.symboliser);
}
