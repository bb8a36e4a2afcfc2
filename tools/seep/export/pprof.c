/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pprof's profile.proto, compressed by gzip: for `go tool pprof`, Pyroscope,
 * Parca and others.
 *
 * A message is the same as its parts one behind the other, so that strings,
 * functions, locations and samples are written as they come; what stays in
 * memory is what tells whether one was written before.
 *
 * Invariant: an id that is named is written once, and is the number of its
 * place, from 1 on: readers look it up there. Code of a module has an address
 * within its mapping, code of Python and of no module has no mapping.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/export.h"
#include "reader/recording/store.h"
#include "words/clean.h"
#include "words/verdict.h"
#include "words/words.h"

#ifndef SEEP_HAVE_PPROF

int seep_pprof_begin(struct seep_export *export)
{
    (void)export;
    return -ENOTSUP;
}

int seep_pprof_add(struct seep_export *export, const struct seep_report *report)
{
    (void)export;
    (void)report;
    return -ENOTSUP;
}

int seep_pprof_end(struct seep_export *export)
{
    (void)export;
    return 0;
}

#else

#include <protobuf-c/protobuf-c.h>
#include <zlib.h>

#include "profile.pb-c.h"

#define GZIP_WINDOW (15 + 16) /* the largest, with a header of gzip's */
#define GZIP_MEMORY 9
#define PIECE_BYTES 65536

/* Each module has a range of addresses of its own, which none has in fact. */
#define MODULE_BITS SEEP_FRAME_OFFSET_BITS
#define PAGE_MASK UINT64_C(0xfff)

#define LABELS_MOST 64

/* As Go names those of its heap, and in its order. */
static const struct {
    enum seep_export_weight weight;
    const char *type;
} types[] = {
    {SEEP_EXPORT_ALLOCATIONS, "alloc_objects"},
    {SEEP_EXPORT_ALLOCATED, "alloc_space"},
    {SEEP_EXPORT_COUNT, "inuse_objects"},
    {SEEP_EXPORT_LIVE, "inuse_space"},
    {SEEP_EXPORT_GROWTH, "growth_per_second"},
};

/* Of a module, until all its code is known. */
struct mapping {
    int64_t path;
    int64_t build_id;
    uint64_t limit; /* offset behind the last that was seen */
};

struct pprof {
    ProtobufCBuffer sink; /* first: what messages are packed into */
    struct seep_export *export;
    z_stream gzip;
    bool gzip_is_open;
    int error; /* the first stays */
    uint8_t piece[PIECE_BYTES];
    size_t piece_bytes;
    uint8_t packed[PIECE_BYTES];
    struct seep_store store; /* of the keys */
    struct seep_store_table strings;
    struct seep_store_table functions;
    struct seep_store_table locations;
    struct seep_store_table modules;
    struct mapping *mappings;
    size_t mapping_count;
    int64_t *comments;
    size_t comment_count;
    uint64_t start_ns; /* of the first process */
    uint64_t end_ns;
    uint64_t period_bytes;
};

/* Into the file. */

static void fail(struct pprof *pprof, int error)
{
    pprof->error = pprof->error == 0 ? error : pprof->error;
}

static void deflate_piece(struct pprof *pprof, int flush)
{
    z_stream *gzip = &pprof->gzip;
    int answer;

    gzip->next_in = pprof->piece;
    gzip->avail_in = (uInt)pprof->piece_bytes;
    pprof->piece_bytes = 0;
    do {
        size_t size;

        gzip->next_out = pprof->packed;
        gzip->avail_out = sizeof(pprof->packed);
        answer = deflate(gzip, flush);
        size = sizeof(pprof->packed) - gzip->avail_out;
        if (answer == Z_STREAM_ERROR ||
            fwrite(pprof->packed, 1, size, pprof->export->file) != size) {
            fail(pprof, -EIO);
            return;
        }
    } while (gzip->avail_out == 0 ||
             (flush == Z_FINISH && answer != Z_STREAM_END));
}

/* Messages come in pieces of a few bytes. */
static void append(ProtobufCBuffer *sink, size_t count, const uint8_t *bytes)
{
    struct pprof *pprof = (struct pprof *)sink;

    while (count > 0 && pprof->error == 0) {
        size_t room = sizeof(pprof->piece) - pprof->piece_bytes;
        size_t taken = count < room ? count : room;

        memcpy(pprof->piece + pprof->piece_bytes, bytes, taken);
        pprof->piece_bytes += taken;
        bytes += taken;
        count -= taken;
        if (pprof->piece_bytes == sizeof(pprof->piece)) {
            deflate_piece(pprof, Z_NO_FLUSH);
        }
    }
}

static void put(struct pprof *pprof, const Seep__Pprof__Profile *part)
{
    protobuf_c_message_pack_to_buffer(&part->base, &pprof->sink);
}

/* What is named by a number. */

/* The number of @key, from @first on. @return whether it is new */
static bool number(struct pprof *pprof, struct seep_store_table *table,
                   const void *key, size_t bytes, uint64_t first,
                   uint64_t *ret_number)
{
    struct seep_store_entry *entry =
        seep_store_find(&pprof->store, table, key, bytes);
    bool is_new = entry != NULL && entry->value == NULL;

    if (entry == NULL) {
        fail(pprof, -ENOMEM);
        *ret_number = 0;
        return false;
    }
    if (is_new) {
        entry->value = (const void *)(uintptr_t)(first + table->count);
    }
    *ret_number = (uintptr_t)entry->value - 1;
    return is_new;
}

/* Printable UTF-8: who shows a profile may do so on a terminal. */
static int64_t string(struct pprof *pprof, const char *text)
{
    Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
    char *clean = seep_clean_for_terminal(text == NULL ? "" : text);
    uint64_t id = 0;

    if (clean == NULL) {
        fail(pprof, -ENOMEM);
        return 0;
    }
    if (number(pprof, &pprof->strings, clean, strlen(clean), 0, &id)) {
        part.n_string_table = 1;
        part.string_table = &clean;
        put(pprof, &part);
    }
    free(clean);
    return (int64_t)id;
}

/* Takes @text. */
static int64_t string_made(struct pprof *pprof, char *text)
{
    int64_t id = string(pprof, text);

    free(text);
    return id;
}

static uint64_t function(struct pprof *pprof,
                         const struct seep_report_frame *frame)
{
    Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
    Seep__Pprof__Function one = SEEP__PPROF__FUNCTION__INIT;
    Seep__Pprof__Function *list = &one;
    int64_t key[2];
    uint64_t id;

    key[0] = *frame->function != '\0'
                 ? string(pprof, frame->function)
                 : string_made(pprof, seep_export_frame(frame));
    key[1] = string(pprof, frame->file);
    if (number(pprof, &pprof->functions, key, sizeof(key), 1, &id)) {
        one.id = id;
        one.name = one.system_name = key[0];
        one.filename = key[1];
        part.n_function = 1;
        part.function = &list;
        put(pprof, &part);
    }
    return id;
}

/* @return from 1 on; 0: it is of no module */
static uint64_t mapping(struct pprof *pprof,
                        const struct seep_report_frame *frame)
{
    int64_t key[2];
    uint64_t id;

    if (frame->python || *frame->module == '\0') {
        return 0;
    }
    key[0] = string(pprof, frame->module);
    key[1] = string(pprof, frame->build_id);
    if (number(pprof, &pprof->modules, key, sizeof(key), 1, &id)) {
        struct mapping *more = seep_list_grow(
            pprof->mappings, pprof->mapping_count, sizeof(*more));

        if (more == NULL) {
            fail(pprof, -ENOMEM);
            return 0;
        }
        pprof->mappings = more;
        more[pprof->mapping_count++] =
            (struct mapping){.path = key[0], .build_id = key[1]};
    }
    if (id > 0 && id <= pprof->mapping_count &&
        pprof->mappings[id - 1].limit <= frame->offset) {
        pprof->mappings[id - 1].limit = frame->offset + 1;
    }
    return id;
}

/* A place: one frame, with the calls that were inlined there before it. */
#define LINES_MOST 256

static size_t count_lines(const struct seep_report_frame **frames, size_t count)
{
    size_t lines = 1;

    while (lines < count && lines < LINES_MOST && frames[lines - 1]->inlined) {
        lines++;
    }
    return lines;
}

static void put_location(struct pprof *pprof, uint64_t id, uint64_t module,
                         const struct seep_report_frame **frames, size_t count)
{
    Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
    Seep__Pprof__Location one = SEEP__PPROF__LOCATION__INIT;
    Seep__Pprof__Location *list = &one;
    Seep__Pprof__Line lines[LINES_MOST];
    Seep__Pprof__Line *pointers[LINES_MOST];

    for (size_t i = 0; i < count; i++) {
        seep__pprof__line__init(&lines[i]);
        lines[i].function_id = function(pprof, frames[i]);
        lines[i].line = frames[i]->line;
        pointers[i] = &lines[i];
    }
    one.id = id;
    one.mapping_id = module;
    if (module > 0) {
        one.address = (module << MODULE_BITS) + frames[0]->offset;
    }
    /* Who has the file may name it better than we could. */
    if (module == 0 || pprof->export->has_symbols) {
        one.n_line = count;
        one.line = pointers;
    }
    part.n_location = 1;
    part.location = &list;
    put(pprof, &part);
}

static uint64_t location(struct pprof *pprof,
                         const struct seep_report_frame **frames, size_t count)
{
    uint64_t module = mapping(pprof, frames[0]);
    uint64_t key[3] = {module, frames[0]->offset, 0};
    uint64_t id;

    if (module == 0) {
        key[1] = function(pprof, frames[0]);
        key[2] = frames[0]->line;
    }
    if (number(pprof, &pprof->locations, key, sizeof(key), 1, &id)) {
        put_location(pprof, id, module, frames, count);
    }
    return id;
}

/* Samples. */

struct labels {
    Seep__Pprof__Label list[LABELS_MOST];
    Seep__Pprof__Label *pointers[LABELS_MOST];
    size_t count;
};

static Seep__Pprof__Label *add_label(struct labels *labels, int64_t key)
{
    Seep__Pprof__Label *label = &labels->list[labels->count];

    seep__pprof__label__init(label);
    label->key = key;
    labels->pointers[labels->count++] = label;
    return label;
}

static void add_text(struct pprof *pprof, struct labels *labels,
                     const char *key, const char *text)
{
    if (text[0] != '\0' && labels->count < LABELS_MOST) {
        add_label(labels, string(pprof, key))->str = string(pprof, text);
    }
}

/* "model=bert-13,canary" of the process. */
static void add_process(struct pprof *pprof, const struct seep_report *report,
                        struct labels *labels)
{
    char *copy = strdup(report->labels);
    char *rest = copy;
    char *word;

    if (copy == NULL) {
        fail(pprof, -ENOMEM);
    }
    if (pprof->export->process_count > 1) {
        add_label(labels, string(pprof, "pid"))->num = report->pid;
    }
    while (rest != NULL && (word = strsep(&rest, ",")) != NULL &&
           labels->count < LABELS_MOST - 4) {
        char *value = strchr(word, '=');

        if (*word == '\0' || *word == '=') {
            continue;
        }
        if (value != NULL) {
            *value++ = '\0';
        }
        add_text(pprof, labels, word, value == NULL ? "1" : value);
    }
    free(copy);
}

static void put_sample(struct pprof *pprof,
                       const struct seep_export_stack *stack,
                       struct labels labels, uint64_t *ids)
{
    Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
    Seep__Pprof__Sample one = SEEP__PPROF__SAMPLE__INIT;
    Seep__Pprof__Sample *list = &one;
    const struct seep_report_site *site = stack->site;
    int64_t values[SEEP_EXPORT_WEIGHT_COUNT];

    for (size_t i = 0, lines; i < site->frame_count; i += lines) {
        lines = count_lines(&site->frames[i], site->frame_count - i);
        ids[one.n_location_id++] = location(pprof, &site->frames[i], lines);
    }
    for (size_t i = 0; i < SEEP_EXPORT_WEIGHT_COUNT; i++) {
        values[i] = stack->weights[types[i].weight];
    }
    labels.count =
        labels.count < LABELS_MOST - 3 ? labels.count : LABELS_MOST - 3;
    add_text(pprof, &labels, "space", seep_words_space(site->space));
    add_text(pprof, &labels, "site", stack->site_id);
    add_text(pprof, &labels, "thread", site->thread);
    one.location_id = ids;
    one.n_value = SEEP_EXPORT_WEIGHT_COUNT;
    one.value = values;
    one.n_label = labels.count;
    one.label = labels.pointers;
    part.n_sample = 1;
    part.sample = &list;
    put(pprof, &part);
}

/* The process. */

static void add_comment(struct pprof *pprof, char *text)
{
    int64_t *more =
        seep_list_grow(pprof->comments, pprof->comment_count, sizeof(*more));

    if (more == NULL) {
        fail(pprof, -ENOMEM);
    } else {
        pprof->comments = more;
        more[pprof->comment_count++] = string(pprof, text);
    }
    free(text);
}

/* By stack a process is not judged as the report judges it. */
static void add_verdict(struct pprof *pprof, const struct seep_report *report)
{
    struct seep_words_verdict words;

    seep_words_verdict(report, NULL, &words);
    add_comment(pprof,
                seep_words_make("%s: %s", words.label,
                                words.sentence == NULL ? "" : words.sentence));
    if (words.forecast != NULL) {
        add_comment(pprof, strdup(words.forecast));
    }
    seep_words_verdict_fini(&words);
}

static void add_comments(struct pprof *pprof, const struct seep_report *report)
{
    const struct seep_span *span = pprof->export->span;
    char mode[128];

    if (span == NULL) {
        add_verdict(pprof, report);
    } else if (span->is_moment) {
        add_comment(pprof, seep_words_make("what stood %.6g s after the start",
                                           span->to_s));
    } else {
        add_comment(pprof,
                    seep_words_make("from %.6g s to %.6g s after the start",
                                    span->from_s, span->to_s));
    }
    seep_words_mode(report, mode, sizeof(mode));
    add_comment(pprof, seep_words_make("recorded %s by seep %s", mode,
                                       report->version));
}

static void add_times(struct pprof *pprof, const struct seep_report *report)
{
    const struct seep_span *span = pprof->export->span;
    double from_s = span == NULL ? 0 : span->from_s;
    double to_s = span == NULL ? report->duration_s : span->to_s;
    uint64_t start = report->start_realtime_ns + (uint64_t)(from_s * 1e9);
    uint64_t end = report->start_realtime_ns + (uint64_t)(to_s * 1e9);

    if (pprof->end_ns == 0 || start < pprof->start_ns) {
        pprof->start_ns = start;
    }
    if (end > pprof->end_ns) {
        pprof->end_ns = end;
    }
    if (report->sample_bytes > pprof->period_bytes) {
        pprof->period_bytes = report->sample_bytes;
    }
}

/* What stands first of all is taken for the program. */
static void number_program(struct pprof *pprof,
                           const struct seep_report *report, size_t count)
{
    struct seep_export_stack stack;

    for (size_t i = 0; i < count && pprof->mapping_count == 0; i++) {
        seep_export_stack_at(pprof->export, report, i, &stack);
        for (size_t k = stack.site->frame_count;
             k > 0 && pprof->mapping_count == 0; k--) {
            const struct seep_report_frame *frame = stack.site->frames[k - 1];

            if (strcmp(frame->module, report->executable) == 0) {
                mapping(pprof, frame);
            }
        }
    }
}

int seep_pprof_add(struct seep_export *export, const struct seep_report *report)
{
    struct pprof *pprof = export->state;
    size_t count = seep_export_stack_count(export, report);
    struct seep_export_stack stack;
    struct labels labels = {.count = 0};
    uint64_t *ids = NULL;
    size_t room = 0;

    add_times(pprof, report);
    add_comments(pprof, report);
    add_process(pprof, report, &labels);
    number_program(pprof, report, count);
    for (size_t i = 0; i < count && pprof->error == 0; i++) {
        seep_export_stack_at(export, report, i, &stack);
        if (ids == NULL || stack.site->frame_count > room) {
            free(ids);
            room = stack.site->frame_count + 64;
            ids = calloc(room, sizeof(*ids));
        }
        if (ids == NULL) {
            fail(pprof, -ENOMEM);
        } else {
            put_sample(pprof, &stack, labels, ids);
        }
    }
    free(ids);
    return pprof->error;
}

static void put_type(struct pprof *pprof, const char *type, const char *unit)
{
    Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
    Seep__Pprof__ValueType one = SEEP__PPROF__VALUE_TYPE__INIT;
    Seep__Pprof__ValueType *list = &one;

    one.type = string(pprof, type);
    one.unit = string(pprof, unit);
    part.n_sample_type = 1;
    part.sample_type = &list;
    put(pprof, &part);
}

int seep_pprof_begin(struct seep_export *export)
{
    struct pprof *pprof = calloc(1, sizeof(*pprof));

    if (pprof == NULL) {
        return -ENOMEM;
    }
    export->state = pprof;
    pprof->export = export;
    pprof->sink.append = append;
    if (deflateInit2(&pprof->gzip, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW,
                     GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        return -ENOMEM;
    }
    pprof->gzip_is_open = true;
    string(pprof, ""); /* number 0 */
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        put_type(pprof, types[i].type,
                 seep_export_weight_unit(types[i].weight));
    }
    return pprof->error;
}

static void put_mappings(struct pprof *pprof)
{
    bool has_symbols = pprof->export->has_symbols;

    for (size_t i = 0; i < pprof->mapping_count; i++) {
        const struct mapping *mapping = &pprof->mappings[i];
        Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
        Seep__Pprof__Mapping one = SEEP__PPROF__MAPPING__INIT;
        Seep__Pprof__Mapping *list = &one;

        one.id = i + 1;
        one.memory_start = one.id << MODULE_BITS;
        one.memory_limit =
            one.memory_start + ((mapping->limit + PAGE_MASK) & ~PAGE_MASK);
        one.filename = mapping->path;
        one.build_id = mapping->build_id;
        one.has_functions = has_symbols;
        one.has_filenames = has_symbols;
        one.has_line_numbers = has_symbols;
        one.has_inline_frames = has_symbols;
        part.n_mapping = 1;
        part.mapping = &list;
        put(pprof, &part);
    }
}

static void put_rest(struct pprof *pprof)
{
    Seep__Pprof__Profile part = SEEP__PPROF__PROFILE__INIT;
    Seep__Pprof__ValueType period = SEEP__PPROF__VALUE_TYPE__INIT;
    const char *first = "inuse_space";

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (types[i].weight == pprof->export->weight) {
            first = types[i].type;
        }
    }
    period.type = string(pprof, "space");
    period.unit = string(pprof, "bytes");
    part.default_sample_type = string(pprof, first);
    part.period_type = &period;
    part.period = (int64_t)(pprof->period_bytes & INT64_MAX);
    part.time_nanos = (int64_t)(pprof->start_ns & INT64_MAX);
    part.duration_nanos =
        (int64_t)((pprof->end_ns - pprof->start_ns) & INT64_MAX);
    part.n_comment = pprof->comment_count;
    part.comment = pprof->comments;
    put(pprof, &part);
}

int seep_pprof_end(struct seep_export *export)
{
    struct pprof *pprof = export->state;
    int error;

    if (pprof == NULL) {
        return 0;
    }
    if (pprof->gzip_is_open) {
        put_mappings(pprof);
        put_rest(pprof);
        if (pprof->error == 0) {
            deflate_piece(pprof, Z_FINISH);
        }
        deflateEnd(&pprof->gzip);
    }
    error = pprof->error;
    seep_store_table_fini(&pprof->strings);
    seep_store_table_fini(&pprof->functions);
    seep_store_table_fini(&pprof->locations);
    seep_store_table_fini(&pprof->modules);
    seep_store_fini(&pprof->store);
    free(pprof->mappings);
    free(pprof->comments);
    free(pprof);
    export->state = NULL;
    return error;
}

#endif
