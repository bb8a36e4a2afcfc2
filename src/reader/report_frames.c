/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a site's stack to frames with names, an id, and the user's line.
 *
 * Invariant: the id depends on the space and on module names and offsets: not
 * on where code lay, in which folder, nor on which symbols could be had. Two
 * call sites in one function are two ids.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "reader/report_build.h"
#include "reader/symbolise.h"
#include "reader/where.h"

#define FRAMES_MAX 1024U /* with those inlined */
#define WHERE_BYTES 512U

/* Between all frames of one report. */
struct naming {
    struct seep_report_build *build;
    const char **paths; /* by module id - 1 */
    const char **build_ids;
    struct seep_report_frame *frames; /* of the site at hand */
    size_t frame_count;
    uint64_t id;
};

static const char *hexadecimal(struct seep_store *store, const uint8_t *bytes,
                               size_t count)
{
    static const char digits[] = "0123456789abcdef";
    char *text = seep_store_take(store, 2 * count + 1, 1);

    for (size_t i = 0; text != NULL && i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return text;
}

static int name_modules(struct naming *naming,
                        struct seep_symbol_module *ret_modules)
{
    const struct seep_view *view = &naming->build->snapshot.view;
    struct seep_store *store = &naming->build->store;

    for (uint32_t i = 0; i < view->module_capacity; i++) {
        struct seep_rec_module *module = &view->modules[i];
        struct seep_symbol_module *named = &ret_modules[i];

        naming->paths[i] = "";
        naming->build_ids[i] = "";
        named->path = "";
        if (seep_snapshot_load(module->state) != SEEP_PUBLISHED) {
            continue;
        }
        if (module->build_id_bytes <= SEEP_BUILD_ID_MAX) {
            named->build_id = module->build_id;
            named->build_id_bytes = module->build_id_bytes;
        }
        naming->paths[i] =
            seep_store_text(store, seep_view_string(view, module->path));
        naming->build_ids[i] =
            hexadecimal(store, named->build_id, named->build_id_bytes);
        if (naming->paths[i] == NULL || naming->build_ids[i] == NULL) {
            return -ENOMEM;
        }
        named->path = naming->paths[i];
    }
    return 0;
}

/* For who asks what was loaded, whatever sites are listed. */
static int list_modules(struct seep_report_build *build,
                        const char *const *paths, size_t capacity)
{
    const char **modules =
        seep_store_take(&build->store, capacity, sizeof(*modules));
    size_t count = 0;

    if (modules == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < capacity; i++) {
        if (*paths[i] != '\0') {
            modules[count++] = paths[i];
        }
    }
    build->report.modules = modules;
    build->report.module_count = count;
    return 0;
}

static int open_symboliser(struct naming *naming,
                           const struct seep_symbol_module *modules)
{
    const struct seep_report_options *options = naming->build->options;
    struct seep_symboliser_options wanted = {.sysroot = NULL};
    char perf_map[64];

    if (options == NULL || !options->symbols) {
        return 0;
    }
    snprintf(perf_map, sizeof(perf_map), "/tmp/perf-%u.map",
             naming->build->report.pid);
    wanted.sysroot = options->sysroot;
    wanted.use_debuginfod = options->use_debuginfod;
    wanted.perf_map = perf_map;
    return seep_symboliser_open(modules,
                                naming->build->snapshot.view.module_capacity,
                                &wanted, &naming->build->symboliser);
}

static void hash_text(uint64_t *hash, const char *text)
{
    *hash = seep_hash_add(*hash, seep_hash_bytes(text, strlen(text)));
}

/* One frame of the machine code. What a JIT made lies elsewhere in each run,
 * so only its name can count. */
static void hash_frame(uint64_t *hash, const struct seep_report_frame *frame)
{
    if (frame->module[0] == '\0') {
        hash_text(hash, frame->function);
        return;
    }
    hash_text(hash, seep_where_base_name(frame->module));
    *hash = seep_hash_add(*hash, frame->offset);
}

static void add_frame(struct naming *naming, uint64_t word)
{
    static const struct seep_symbol_frame nameless = {"", "", 0, false};
    const struct seep_symbol_frame *symbols = &nameless;
    uint64_t module = word >> SEEP_FRAME_OFFSET_BITS;
    struct seep_report_frame frame = {
        .function = "",
        .file = "",
        .module = "",
        .build_id = "",
        .offset = word & SEEP_FRAME_OFFSET_MASK,
    };
    size_t count = 1;
    size_t number = SIZE_MAX;

    if (module != SEEP_MODULE_NONE &&
        module <= naming->build->snapshot.view.module_capacity) {
        number = (size_t)module - 1;
        frame.module = naming->paths[number];
        frame.build_id = naming->build_ids[number];
    }
    /* What goes wrong with one name costs that name only. */
    if (naming->build->symboliser != NULL &&
        (seep_symboliser_resolve(naming->build->symboliser, number,
                                 frame.offset, &symbols, &count) != 0 ||
         count == 0)) {
        symbols = &nameless;
        count = 1;
    }
    for (size_t i = 0; i < count && naming->frame_count < FRAMES_MAX; i++) {
        frame.function = symbols[i].function;
        frame.file = symbols[i].file;
        frame.line = symbols[i].line;
        frame.inlined = symbols[i].inlined;
        naming->frames[naming->frame_count++] = frame;
    }
    if (naming->frame_count > 0) {
        hash_frame(&naming->id, &naming->frames[naming->frame_count - 1]);
    }
}

/* The frames of @stack into naming->frames, each index checked. */
static void add_stack(struct naming *naming, struct seep_report_site *site,
                      uint32_t stack_index)
{
    const struct seep_view *view = &naming->build->snapshot.view;
    struct seep_rec_stack *stack;
    uint32_t count;

    if (stack_index >= view->stack_capacity) {
        return;
    }
    stack = &view->stacks[stack_index];
    count = seep_snapshot_load(stack->frame_count);
    if (count > SEEP_STACK_FRAMES_MAX ||
        stack->first_frame > view->frame_capacity ||
        count > view->frame_capacity - stack->first_frame) {
        return;
    }
    site->cut =
        stack->cut < SEEP_CUT_COUNT ? (enum seep_cut)stack->cut : SEEP_CUT_NONE;
    for (uint32_t i = 0; i < count; i++) {
        add_frame(naming,
                  seep_snapshot_load(view->frames[stack->first_frame + i]));
    }
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

static int name_sites(struct naming *naming, struct seep_report_site *sites,
                      size_t count)
{
    const struct seep_view *view = &naming->build->snapshot.view;
    int error = 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        uint32_t index = naming->build->sites.works[i].index;

        naming->frame_count = 0;
        naming->id = seep_hash_add(SEEP_HASH_SEED, sites[i].space);
        if (index != 0) {
            add_stack(naming, &sites[i], view->sites[index].stack);
        }
        error = finish_site(naming, &sites[i], index != 0);
    }
    return error;
}

int seep_report_add_frames(struct seep_report_build *build,
                           struct seep_report_site *sites, size_t count)
{
    size_t modules = build->snapshot.view.module_capacity;
    struct naming naming = {.build = build};
    struct seep_symbol_module *named = calloc(modules + 1, sizeof(*named));
    int error = -ENOMEM;

    naming.paths = calloc(modules + 1, sizeof(*naming.paths));
    naming.build_ids = calloc(modules + 1, sizeof(*naming.build_ids));
    naming.frames = calloc(FRAMES_MAX, sizeof(*naming.frames));
    if (named != NULL && naming.paths != NULL && naming.build_ids != NULL &&
        naming.frames != NULL) {
        error = name_modules(&naming, named);
    }
    if (error == 0) {
        error = list_modules(build, naming.paths, modules);
    }
    if (error == 0 && count > 0) {
        error = open_symboliser(&naming, named);
    }
    if (error == 0) {
        error = name_sites(&naming, sites, count);
    }
    free(named);
    free(naming.paths);
    free(naming.build_ids);
    free(naming.frames);
    return error;
}
