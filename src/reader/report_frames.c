/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a site's stack to frames with names, an id, and the user's line.
 *
 * Invariant: the id depends on the space and on module names and offsets, of
 * Python on files, names and lines: not on where code lay, in which folder it
 * was installed, nor on which symbols could be had. Two call sites in one
 * function are two ids.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/report_build.h"
#include "reader/report_names.h"
#include "reader/where.h"
#include "reader/where_python.h"

#define WHERE_BYTES 512U

/* The site at hand. */
struct naming {
    struct seep_report_build *build;
    struct seep_report_frame *frames; /* SEEP_NAMES_FRAMES_MAX */
    size_t frame_count;
    uint64_t id;
};

static void hash_text(uint64_t *hash, const char *text)
{
    *hash = seep_hash_add(*hash, seep_hash_bytes(text, strlen(text)));
}

/* Threads are numbered as they come ("Thread-12"), so the same work is done
 * under another number in the next run: no digit counts. */
static void hash_thread(uint64_t *hash, const char *name)
{
    uint64_t seen = SEEP_HASH_SEED;

    for (const char *at = name; *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            seen = seep_hash_add(seen, (unsigned char)*at);
        }
    }
    if (name[0] != '\0') {
        *hash = seep_hash_add(*hash, seen);
    }
}

/* One frame of code. What a JIT made lies elsewhere in each run, so only its
 * name can count; of Python's lines of code the file as installed anywhere. */
static void hash_frame(uint64_t *hash, const struct seep_report_frame *frame)
{
    if (frame->python) {
        hash_text(hash, seep_where_python_tail(frame->file));
        hash_text(hash, frame->function);
        *hash = seep_hash_add(*hash, frame->line);
        return;
    }
    if (frame->module[0] == '\0') {
        hash_text(hash, frame->function);
        return;
    }
    hash_text(hash, seep_where_base_name(frame->module));
    *hash = seep_hash_add(*hash, frame->offset);
}

static void add_stack(struct naming *naming, struct seep_report_site *site,
                      uint32_t index)
{
    struct seep_names_stack stack;

    seep_names_stack(naming->build, index, &stack);
    site->cut = stack.cut;
    site->thread = stack.thread;
    for (uint32_t i = 0;
         i < stack.count && naming->frame_count < SEEP_NAMES_FRAMES_MAX; i++) {
        naming->frame_count += seep_names_frames(
            naming->build, stack.words[i], naming->frames + naming->frame_count,
            SEEP_NAMES_FRAMES_MAX - naming->frame_count);
        hash_frame(&naming->id, &naming->frames[naming->frame_count - 1]);
    }
    hash_thread(&naming->id, stack.thread);
}

static int finish_site(struct naming *naming, struct seep_report_site *site,
                       bool charged)
{
    struct seep_store *store = &naming->build->store;
    struct seep_report_frame *frames =
        seep_store_take(store, naming->frame_count, sizeof(*frames));
    char where[WHERE_BYTES];

    if (frames == NULL) {
        return -ENOMEM;
    }
    memcpy(frames, naming->frames, naming->frame_count * sizeof(*frames));
    site->frames = frames;
    site->frame_count = naming->frame_count;
    snprintf(site->id, sizeof(site->id), "%016llx",
             (unsigned long long)naming->id);
    if (naming->frame_count == 0) {
        site->where = charged ? "a call site without frames"
                              : "no call site: the tables were full";
        return 0;
    }
    site->where_frame = seep_where_pick(frames, naming->frame_count);
    seep_where_format(&frames[site->where_frame], where, sizeof(where));
    site->where = seep_store_text(store, where);
    return site->where != NULL ? 0 : -ENOMEM;
}

int seep_report_add_frames(struct seep_report_build *build,
                           struct seep_report_site *sites, size_t count)
{
    struct naming naming = {.build = build};
    int error = 0;

    naming.frames = calloc(SEEP_NAMES_FRAMES_MAX, sizeof(*naming.frames));
    if (naming.frames == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        uint32_t index = build->sites.works[i].index;

        naming.frame_count = 0;
        naming.id = seep_hash_add(SEEP_HASH_SEED, sites[i].space);
        add_stack(&naming, &sites[i], index);
        error = finish_site(&naming, &sites[i], index != 0);
    }
    free(naming.frames);
    return error;
}
