/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sites of a report in their order, with what the user and the catalogue
 * know of them.
 *
 * Invariant: every site that may be a leak has frames, whatever limit was
 * asked for (but for MAYBE_LIMIT); where there are rules, all have: without
 * frames no rule could match them.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "reader/compare/patterns.h"
#include "reader/compare/suppress.h"
#include "reader/report/build.h"
#include "reader/symbols/names.h"
#include "reader/symbols/where.h"

#define FRAMES_MAX 1024U /* of a stack, with those inlined */

/*
 * What rows are called: in their ids, and for people. Pure functions of names.
 *
 * Invariant: a name says what all stacks of the row have in common, and nothing
 * that only one of them has.
 */

/* "torch", "serve.py", "libtorch_cpu.so". @return as snprintf */
static int name_module(const struct seep_report_frame *frame, char *text,
                       size_t capacity)
{
    const char *module = seep_text_base_name(frame->module);

    if (frame->python) {
        return seep_where_python_module(frame->file, text, capacity);
    }
    return snprintf(text, capacity, "%s",
                    module[0] != '\0' ? module : "code of no module");
}

static bool is_main(const char *function)
{
    return strcmp(function, "main") == 0 || strcmp(function, "_start") == 0 ||
           strcmp(function, "<module>") == 0;
}

/* Of the first thread, which no other started. */
static bool is_start(const struct seep_report_frame *frame)
{
    return !frame->python && (strcmp(frame->function, "_start") == 0 ||
                              strncmp(frame->function, "__libc_start_",
                                      strlen("__libc_start_")) == 0);
}

/* serve_forever() of Python's library, but not what starts every thread. */
static bool is_library(const struct seep_report_frame *frame)
{
    return frame->python && frame->function[0] != '\0' &&
           seep_where_python_origin(frame->file) == SEEP_PYTHON_LIBRARY &&
           strcmp(seep_where_python_tail(frame->file), "threading.py") != 0;
}

/* What runs in the thread: the outermost of the user's frames. */
static const struct seep_report_frame *
outermost(const struct seep_report_frame **frames, size_t count)
{
    const struct seep_report_frame *found = NULL;
    const struct seep_report_frame *library = NULL;

    for (size_t i = count; i-- > 0;) {
        if (frames[i]->python &&
            seep_where_python_origin(frames[i]->file) >= SEEP_PYTHON_COMMAND) {
            return frames[i];
        }
        if (found == NULL && seep_where_is_user(frames[i])) {
            found = frames[i];
        }
        if (library == NULL && is_library(frames[i])) {
            library = frames[i];
        }
    }
    return found != NULL ? found : library;
}

/* The coroutine or callback that asyncio runs: the Python frame inside of its
 * Handle._run. NULL: it runs none. */
static const struct seep_report_frame *
find_task(const struct seep_report_frame **frames, size_t count)
{
    const struct seep_report_frame *inside = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!frames[i]->python) {
            continue;
        }
        if (inside != NULL &&
            seep_where_python_runs_task(frames[i]->file, frames[i]->function)) {
            return inside;
        }
        inside = frames[i];
    }
    return NULL;
}

int seep_name_thread(const char *name, const struct seep_report_frame **frames,
                     size_t count, char *text, size_t capacity)
{
    const struct seep_report_frame *frame = find_task(frames, count);
    char module[SEEP_NAME_BYTES];

    if (seep_where_thread_is_redacted(name)) {
        return snprintf(text, capacity, "%s", name);
    }
    if (name[0] != '\0') {
        seep_where_thread_without_numbers(name, module);
        return snprintf(text, capacity, "%s", module);
    }
    if (frame != NULL && frame->function[0] != '\0') {
        return snprintf(text, capacity, "task of %s", frame->function);
    }
    if (count > 0 && is_start(frames[count - 1])) {
        return snprintf(text, capacity, "main");
    }
    frame = outermost(frames, count);
    if (frame == NULL) {
        return snprintf(text, capacity, "a thread without a name");
    }
    if (is_main(frame->function)) {
        return snprintf(text, capacity, "main");
    }
    if (frame->function[0] != '\0') {
        return snprintf(text, capacity, "thread of %s", frame->function);
    }
    name_module(frame, module, sizeof(module));
    return snprintf(text, capacity, "thread of %s", module);
}

static int function_name(const struct seep_report_frame *frame, char *text,
                         size_t capacity)
{
    struct seep_report_frame lineless = *frame;

    lineless.line = 0;
    return seep_where_format(&lineless, text, capacity);
}

/* The name of a row, by its largest stack. */
static int name_row(enum seep_grouping by, const struct seep_report_site *site,
                    char *text, size_t capacity)
{
    const struct seep_report_frame *frame = site->frames[site->where_frame];

    switch (by) {
    case SEEP_BY_FUNCTION:
        return function_name(frame, text, capacity);
    case SEEP_BY_MODULE:
        return name_module(frame, text, capacity);
    case SEEP_BY_THREAD:
        return seep_name_thread(site->thread, site->frames, site->frame_count,
                                text, capacity);
    default:
        return seep_where_format(frame, text, capacity);
    }
}

/*
 * From a row's largest stack to frames with names, and the row's name.
 *
 * Invariant: every row that is listed has an id, a name and a thread's name,
 * also where it has no frames.
 */

#define WHERE_BYTES 512U

/* The site at hand. */
struct naming {
    struct seep_report_build *build;
    struct seep_names_stack stack;
    const char *pool;                        /* that it is a part of; NULL */
    const struct seep_report_frame **frames; /* FRAMES_MAX */
    size_t frame_count; /* 0: not all have been named yet */
};

static void name_all(struct naming *naming)
{
    const struct seep_names_stack *stack = &naming->stack;
    size_t count = 0;

    for (uint32_t i = 0; i < stack->count && count < FRAMES_MAX; i++) {
        count += seep_names_frames(naming->build, stack->words[i],
                                   naming->frames + count, FRAMES_MAX - count);
    }
    naming->frame_count = count;
}

static int set_frames(struct naming *naming, struct seep_report_site *site,
                      struct seep_alike *known)
{
    struct seep_report_build *build = naming->build;
    const struct seep_report_frame **frames;

    if (known != NULL && known->frames != NULL) {
        site->frames = known->frames;
        site->frame_count = known->frame_count;
        site->where_frame = known->where_frame;
        return 0;
    }
    name_all(naming);
    /* Nobody writes there: C takes no list of lists that cannot be. */
    frames = (const struct seep_report_frame **)seep_symbol_memory_keep_run(
        build->options == NULL ? NULL : build->options->memory, &build->store,
        naming->frames, naming->frame_count * sizeof(*frames));
    if (frames == NULL) {
        return -ENOMEM;
    }
    site->frames = frames;
    site->frame_count = naming->frame_count;
    if (naming->frame_count > 0) {
        site->where_frame = seep_where_pick(frames, naming->frame_count);
    }
    if (known != NULL) {
        known->frames = frames;
        known->frame_count = site->frame_count;
        known->where_frame = site->where_frame;
    }
    return 0;
}

static int set_where(struct naming *naming, struct seep_report_site *site,
                     struct seep_alike *known)
{
    struct seep_report_build *build = naming->build;
    char where[WHERE_BYTES];

    if (site->pool != NULL && build->report.by != SEEP_BY_THREAD) {
        site->where = site->pool;
        return 0;
    }
    if (known != NULL && known->where != NULL) {
        site->where = known->where;
        return 0;
    }
    name_row(build->report.by, site, where, sizeof(where));
    site->where = seep_symbol_memory_keep(
        build->options == NULL ? NULL : build->options->memory, &build->store,
        where, SIZE_MAX);
    if (known != NULL) {
        known->where = site->where;
    }
    return site->where != NULL ? 0 : -ENOMEM;
}

static int finish_site(struct naming *naming, struct seep_report_site *site,
                       const struct seep_site_work *work)
{
    struct seep_alike *known = seep_names_alike(naming->build, work->index);
    int error = set_frames(naming, site, known);

    if (error != 0) {
        return error;
    }
    snprintf(site->id, sizeof(site->id), "%016" PRIx64, work->id);
    if (work->line_id != 0) {
        snprintf(site->line_id, sizeof(site->line_id), "%016" PRIx64,
                 work->line_id);
    }
    if (site->frame_count == 0) {
        site->where = work->is_rest      ? "call sites that hold least"
                      : work->index != 0 ? "a call site without frames"
                                         : "no call site: the tables were full";
        return 0;
    }
    return set_where(naming, site, known);
}

static int set_entries(struct seep_report_build *build,
                       struct seep_report_site *site,
                       const struct seep_site_work *work)
{
    size_t count = work->member_count == 0 ? 1 : work->member_count;
    uint32_t *entries = seep_store_take(&build->store, count, sizeof(*entries));

    if (entries == NULL) {
        return -ENOMEM;
    }
    entries[0] = work->index;
    for (size_t i = 0; i < work->member_count; i++) {
        entries[i] = build->sites.members[work->member_first + i].index;
    }
    site->entries = entries;
    site->stack_count = count;
    return 0;
}

int seep_report_name_sites(struct seep_report_build *build,
                           const struct seep_site_work *works,
                           struct seep_report_site *sites, size_t count)
{
    struct naming naming = {.build = build};
    int error = 0;

    naming.frames = calloc(FRAMES_MAX, sizeof(*naming.frames));
    if (naming.frames == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; error == 0 && i < count; i++) {
        const struct seep_site_work *work = &works[i];

        seep_names_stack(build, work->index, &naming.stack);
        sites[i].cut = naming.stack.cut;
        sites[i].thread = naming.stack.thread;
        error = finish_site(&naming, &sites[i], work);
        error = error == 0 ? set_entries(build, &sites[i], work) : error;
    }
    free(naming.frames);
    return error;
}

/*
 * Which sites are one row. Invariant: what is suppressed or bounded by a rule
 * is never in one row with what is not, however rows are made, so that a rule
 * says the same of a stack in every naming.
 */

/* What a row is made by, in its id. A stack's has none. */
enum kind { BY_LINE = 1, BY_FUNCTION, BY_MODULE, BY_THREAD, BY_POOL, SEGMENT };

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
    const struct seep_report_frame *frame;

    if ((word & SEEP_FRAME_IS_CODE) != 0) {
        seep_names_frames(build, word, &frame, 1);
        return seep_hash_add(add_python(hash, frame), frame->line);
    }
    if (*seep_names_module(build->names, word) == '\0') {
        seep_names_frames(build, word, &frame, 1);
        return add_text(hash, frame->function);
    }
    hash = add_text(hash,
                    seep_text_base_name(seep_names_module(build->names, word)));
    return seep_hash_add(hash, word & SEEP_FRAME_OFFSET_MASK);
}

static uint64_t add_words(uint64_t hash, struct naming *naming)
{
    const struct seep_names_stack *stack = &naming->stack;

    for (uint32_t i = 0; i < stack->count; i++) {
        hash = add_word(hash, naming->build, stack->words[i]);
    }
    return stack->thread[0] != '\0'
               ? seep_hash_add(hash, seep_where_thread_hash(stack->thread))
               : hash;
}

/* The user's line, if it is one of Python; else NULL. */
static const struct seep_report_frame *pick_python(struct naming *naming)
{
    const struct seep_names_stack *stack = &naming->stack;
    const struct seep_report_frame *picked;
    size_t count = 0;

    for (uint32_t i = 0; i < stack->count; i++) {
        if ((stack->words[i] & SEEP_FRAME_IS_CODE) != 0) {
            count += seep_names_frames(naming->build, stack->words[i],
                                       &naming->frames[count], 1);
        }
    }
    if (count == 0) {
        return NULL;
    }
    picked = naming->frames[seep_where_pick(naming->frames, count)];
    return picked->file[0] != '\0' || picked->function[0] != '\0' ? picked
                                                                  : NULL;
}

/*
 * The frame that seep_where_pick() finds among all. Names are dear: they are
 * asked for from the innermost on, and only until the user's is found.
 */
static const struct seep_report_frame *pick(struct naming *naming)
{
    const struct seep_names_stack *stack = &naming->stack;
    const struct seep_report_frame *python = pick_python(naming);

    if (python != NULL) {
        return python;
    }
    for (uint32_t i = 0; i < stack->count; i++) {
        uint64_t word = stack->words[i];
        size_t count;

        if ((word & SEEP_FRAME_IS_CODE) != 0 ||
            seep_where_is_plumbing(
                seep_names_module(naming->build->names, word))) {
            continue;
        }
        count =
            seep_names_frames(naming->build, word, naming->frames, FRAMES_MAX);
        for (size_t j = 0; j < count; j++) {
            if (seep_where_is_user(naming->frames[j])) {
                return naming->frames[j];
            }
        }
    }
    name_all(naming);
    return naming->frames[seep_where_pick(naming->frames, naming->frame_count)];
}

static uint64_t add_line(uint64_t hash, const struct seep_report_frame *frame,
                         struct naming *naming)
{
    if (!frame->python && (frame->file[0] == '\0' || frame->line == 0)) {
        return add_words(hash, naming);
    }
    hash = seep_hash_add(hash, BY_LINE);
    if (frame->python) {
        hash = add_python(hash, frame);
    } else {
        hash = add_text(hash, seep_text_base_name(frame->file));
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
    hash = add_text(hash, seep_text_base_name(frame->module));
    return frame->function[0] == '\0' ? seep_hash_add(hash, frame->offset)
                                      : add_text(hash, frame->function);
}

static uint64_t add_module(uint64_t hash, const struct seep_report_frame *frame)
{
    char name[SEEP_NAME_BYTES];

    name_module(frame, name, sizeof(name));
    return add_text(seep_hash_add(hash, BY_MODULE), name);
}

static uint64_t add_thread(uint64_t hash, struct naming *naming)
{
    char name[SEEP_NAME_BYTES];

    name_all(naming);
    seep_name_thread(naming->stack.thread, naming->frames, naming->frame_count,
                     name, sizeof(name));
    hash = seep_hash_add(hash, BY_THREAD);
    return seep_where_thread_is_redacted(name)
               ? seep_hash_add(hash, seep_where_thread_hash(name))
               : add_text(hash, name);
}

static uint64_t id_of(struct naming *naming, enum seep_grouping by,
                      uint64_t hash)
{
    const struct seep_report_frame *frame;

    if (naming->pool != NULL && by != SEEP_BY_STACK) {
        hash = add_text(seep_hash_add(hash, BY_POOL), naming->pool);
        return by == SEEP_BY_THREAD ? add_thread(hash, naming) : hash;
    }
    if (naming->stack.count == 0) {
        return hash;
    }
    if (by == SEEP_BY_STACK) {
        return add_words(hash, naming);
    }
    if (by == SEEP_BY_THREAD) {
        return add_thread(hash, naming);
    }
    frame = pick(naming);
    switch (by) {
    case SEEP_BY_FUNCTION:
        return add_function(hash, frame);
    case SEEP_BY_MODULE:
        return add_module(hash, frame);
    default:
        return add_line(hash, frame, naming);
    }
}

/* What was asked for in vain has no row: nothing was ever live there. */
static int add_failed(struct seep_report_build *build)
{
    struct seep_rec_header *header = build->snapshot.view.header;
    struct seep_report_failed *failed = &build->report.failed;
    uint32_t site = seep_word_load(&header->failed_site);
    struct naming naming = {.build = build};
    char where[WHERE_BYTES] = "";

    failed->count = seep_word_load(&header->failed_count);
    failed->last_bytes = seep_word_load(&header->failed_bytes);
    failed->last_s = seep_sites_seconds(seep_word_load(&header->failed_tick));
    naming.frames = calloc(FRAMES_MAX, sizeof(*naming.frames));
    if (naming.frames == NULL) {
        return -ENOMEM;
    }
    if (site < build->snapshot.view.site_capacity) {
        seep_names_stack(build, site, &naming.stack);
    }
    if (naming.stack.count > 0) {
        seep_where_format(pick(&naming), where, sizeof(where));
    }
    free(naming.frames);
    failed->where = seep_store_text(&build->store, where);
    return failed->where != NULL ? 0 : -ENOMEM;
}

/* A rule that was matched against some sites only would make the verdict depend
 * on how many are shown. */
static bool has_rules(const struct seep_report_options *options)
{
    return options != NULL &&
           (options->suppressions != NULL || options->known != NULL);
}

/* What rules say of a stack by its frames; ids and lines are asked later. */
static uint64_t add_rules(uint64_t hash, struct naming *naming)
{
    const struct seep_report_options *options = naming->build->options;
    struct seep_report_site site = {.id = ""};
    const char *rule;

    if (!has_rules(options)) {
        return hash;
    }
    if (naming->frame_count == 0) {
        name_all(naming);
    }
    site.frames = naming->frames;
    site.frame_count = naming->frame_count;
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

/* A segment of PyTorch's cache, by the object that asked CUDA's runtime: what a
 * library takes for itself at the same line is memory beside it. */
static bool is_segment(struct naming *naming, const struct seep_rec_site *site)
{
    const struct seep_names_stack *stack = &naming->stack;

    for (uint32_t i = 0; site->space == SEEP_SPACE_DEVICE && i < stack->count;
         i++) {
        const char *module;

        if ((stack->words[i] & SEEP_FRAME_IS_CODE) != 0) {
            continue;
        }
        module = seep_names_module(naming->build->names, stack->words[i]);
        if (!seep_where_is_plumbing(module)) {
            return seep_where_is_cache_of_tensors(module);
        }
    }
    return false;
}

/* What the row of site @index is, found or known. A pool is one by what is
 * around it in the recording, and rules ask for frames. */
static void find_key(struct naming *naming, uint32_t index,
                     struct seep_site_key *ret_key)
{
    struct seep_report_build *build = naming->build;
    const struct seep_rec_site *site = &build->snapshot.view.sites[index];
    enum seep_grouping by = build->report.by;
    uint64_t hash = start_of(site);
    uint64_t of_many; /* stacks in one row */
    struct seep_alike *known = NULL;

    if (naming->pool == NULL && !has_rules(build->options)) {
        known = seep_names_alike(build, index);
    }
    if (known != NULL && known->has_ids) {
        *ret_key =
            (struct seep_site_key){known->id, known->id, known->line_id, NULL};
        return;
    }
    naming->frame_count = 0;
    seep_names_stack(build, index, &naming->stack);
    of_many = is_segment(naming, site) ? seep_hash_add(hash, SEGMENT) : hash;
    ret_key->id = id_of(naming, by, by == SEEP_BY_STACK ? hash : of_many);
    if (by == SEEP_BY_STACK) {
        ret_key->line_id = id_of(naming, SEEP_BY_LINE, of_many);
    }
    ret_key->pool = naming->pool;
    /* No call site at all is not one whose frames are missing. */
    ret_key->row = add_rules(ret_key->id + (index == 0), naming);
    if (known != NULL) {
        known->has_ids = true;
        known->id = ret_key->id;
        known->line_id = ret_key->line_id;
    }
}

int seep_group_keys(struct seep_report_build *build,
                    struct seep_site_key **ret_keys)
{
    const struct seep_view *view = &build->snapshot.view;
    struct naming naming = {.build = build};
    struct seep_site_key *keys =
        calloc((size_t)view->site_capacity + 1, sizeof(*keys));
    const char **pools = NULL;

    naming.frames = calloc(FRAMES_MAX, sizeof(*naming.frames));
    if (keys == NULL || naming.frames == NULL ||
        seep_report_find_pools(build, &pools) != 0) {
        free(keys);
        free(naming.frames);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->site_capacity; i++) {
        if (seep_sites_is_used(&view->sites[i], i)) {
            naming.pool = pools[i];
            find_key(&naming, i, &keys[i]);
        }
    }
    free(naming.frames);
    free(pools);
    *ret_keys = keys;
    return 0;
}

/*
 * What the user and the catalogue know of a site, once it has its frames.
 *
 * Invariant: a mark never makes a site look worse than it was judged, and
 * never hides that the site is there.
 */

/* Growth up to a bound that was named is what its owner expects of it. */
static void apply_bound(struct seep_report_site *site)
{
    if (site->known_bound_bytes == 0 || !seep_class_may_leak(site->class)) {
        return;
    }
    if (site->live_bytes <= site->known_bound_bytes) {
        site->class = SEEP_CLASS_WARMING;
        site->class_reason = "it fills up to its known bound";
    } else {
        site->class_reason = "it grows beyond its known bound";
    }
}

static void mark_site(const struct seep_report_options *options,
                      struct seep_report_site *site)
{
    if (options == NULL) {
        return;
    }
    if (options->suppressions != NULL) {
        site->suppressed_by =
            seep_suppressions_find(options->suppressions, site);
    }
    if (options->known != NULL) {
        site->known_bound_bytes = seep_known_find(options->known, site);
        apply_bound(site);
    }
    if (options->catalogue != NULL) {
        site->pattern = seep_catalogue_find(options->catalogue, site);
    }
}

/* The rows in their order. */

#define MAYBE_LIMIT 200U /* of those that may leak, that are shown anyway */

/* Of Python, a line that is told by few blocks may keep what one that is told
 * by many lent it. */
static bool may_keep(const struct seep_report_build *build,
                     const struct seep_site_work *work)
{
    return build->report.python_version != 0 &&
           work->site.class == SEEP_CLASS_INSUFFICIENT &&
           work->site.has_growth && work->site.growth_bytes_per_s.estimate > 0;
}

/* A pool may hold what the verdict is about, whatever the order is.
 * @return how many are shown with it */
static size_t show_pools(struct seep_report_build *build, size_t count)
{
    struct seep_site_work *works = build->sites.works;

    size_t most = count + MAYBE_LIMIT;

    for (size_t i = count; count < most && i < build->sites.count; i++) {
        if (works[i].site.pool != NULL) {
            struct seep_site_work work = works[i];

            memmove(&works[count + 1], &works[count],
                    (i - count) * sizeof(work));
            works[count++] = work;
        }
    }
    return count;
}

/* Those that may leak stand first already. */
static size_t count_shown(const struct seep_report_build *build)
{
    size_t limit = build->options != NULL ? build->options->site_limit : 0;
    size_t count = 0;

    if (limit == 0 || limit >= build->sites.count ||
        has_rules(build->options)) {
        return build->sites.count;
    }
    while (count < build->sites.count && count < MAYBE_LIMIT &&
           seep_class_may_leak(build->sites.works[count].site.class)) {
        count++;
    }
    for (size_t i = count;
         count > 0 && i < build->sites.count && i < MAYBE_LIMIT; i++) {
        count = may_keep(build, &build->sites.works[i]) ? i + 1 : count;
    }
    return count > limit ? count : limit;
}

static int group_of(const struct seep_report_site *site)
{
    if (site->suppressed_by != NULL) {
        return 3;
    }
    return site->class == SEEP_CLASS_LEAK      ? 0
           : site->class == SEEP_CLASS_SUSPECT ? 1
                                               : 2;
}

/* Marks only ever move a site down; within a group the order stays. */
static int move_marked(struct seep_report_site *sites, size_t count)
{
    uint32_t *from = calloc(count + 1, sizeof(*from)); /* by place */
    size_t next = 0;

    if (from == NULL) {
        return -ENOMEM;
    }
    for (int group = 0; group <= 3; group++) {
        for (size_t i = 0; i < count; i++) {
            if (group_of(&sites[i]) == group) {
                from[next++] = (uint32_t)i;
            }
        }
    }
    /* A copy of all would be much: they go round in circles. */
    for (size_t i = 0; i < count; i++) {
        struct seep_report_site first = sites[i];
        size_t at = i;

        while (from[at] != i) {
            size_t source = from[at];

            sites[at] = sites[source];
            from[at] = (uint32_t)at;
            at = source;
        }
        sites[at] = first;
        from[at] = (uint32_t)at;
    }
    free(from);
    return 0;
}

static void mark_caches(struct seep_report_build *build,
                        struct seep_report_site *sites, size_t count)
{
    seep_cache_mark(&build->clock, build->devices, build->sites.live_bytes,
                    sites, count, build->caches);
    for (size_t i = 0; i < SEEP_DEVICES_MAX; i++) {
        if (build->device_of[i] != NULL) {
            build->device_of[i]->cache_fragments =
                build->caches[i].estimate > 0;
        }
    }
}

static int group_sites(struct seep_report_build *build,
                       struct seep_report_site *sites, size_t count)
{
    struct seep_together_loans loans;
    int error = seep_together_group(&build->sites, sites, count, &loans);

    for (size_t i = 0; error == 0 && i < loans.count; i++) {
        struct seep_report_site *lender = &sites[loans.list[i].lender];
        char *text;

        if (asprintf(
                &text,
                "CPython's free lists pass its blocks on, and %s keeps them",
                sites[loans.list[i].keeper].where) < 0) {
            return -ENOMEM;
        }
        lender->class_reason = seep_store_text(&build->store, text);
        free(text);
        error = lender->class_reason != NULL ? 0 : -ENOMEM;
    }
    return error;
}

int seep_report_add_sites(struct seep_report_build *build)
{
    struct seep_report_site *sites;
    size_t count;
    int error;

    count = seep_report_show_largest(build, count_shown(build));
    count = show_pools(build, count);
    sites = seep_store_take(&build->listed, count, sizeof(*sites));
    if (sites == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        sites[i] = build->sites.works[i].site;
        sites[i].entry = build->sites.works[i].index;
        error =
            seep_report_add_points(build, &build->sites.works[i], &sites[i]);
        if (error != 0) {
            return error;
        }
    }
    error = seep_report_name_sites(build, build->sites.works, sites, count);
    error = error == 0 ? add_failed(build) : error;
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        mark_site(build->options, &sites[i]);
    }
    mark_caches(build, sites, count);
    error = group_sites(build, sites, count);
    seep_sites_forget_survivors(&build->sites);
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < count; i++) {
        /* What is judged next sees the same. */
        build->sites.works[i].site = sites[i];
    }
    error = move_marked(sites, count);
    if (error != 0) {
        return error;
    }
    seep_together_order(sites, count);
    seep_report_add_start(build);
    build->report.sites = sites;
    build->report.site_count = count;
    build->report.site_total = build->sites.count;
    return 0;
}

void seep_report_show_named(struct seep_report_build *build)
{
    struct seep_report *report = &build->report;
    struct seep_report_site *sites = (struct seep_report_site *)report->sites;
    struct seep_report_site named;

    for (size_t i = 1; i < report->site_count; i++) {
        if (*report->verdict.first_id != '\0' &&
            strcmp(sites[i].id, report->verdict.first_id) == 0) {
            named = sites[i];
            memmove(&sites[1], &sites[0], i * sizeof(*sites));
            sites[0] = named;
            return;
        }
    }
}
