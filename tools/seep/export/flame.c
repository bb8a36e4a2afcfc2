/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stacks for viewers of flame graphs: folded, a line a stack, and speedscope's
 * file. Invariant: in both a stack goes from the outermost frame to the
 * innermost, and the outermost is the space that the memory is of.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "reader/recording/store.h"
#include "words/clean.h"
#include "words/words.h"
#include "json/json.h"

/*
 * Folded stacks, as flamegraph.pl, speedscope, inferno and others read them: a
 * line a stack, frames from the outermost on with ; between, a blank, a weight.
 * The outermost is the space, and before it the process where there are many.
 *
 * Invariant: nothing that is of a recording ends a frame or a line, and a line
 * has no other number at its end than its weight.
 */

/* Takes @text. A # would begin a comment, ; the next frame. */
static int put_name(FILE *file, char *text)
{
    char *clean = text == NULL ? NULL : seep_clean_for_terminal(text);

    free(text);
    if (clean == NULL) {
        return -ENOMEM;
    }
    for (char *at = clean; *at != '\0'; at++) {
        if (*at == ';' || *at == '#') {
            *at = *at == ';' ? ':' : '_';
        }
    }
    fputs(*clean == '\0' ? "?" : clean, file);
    free(clean);
    return 0;
}

static int put_folded(struct seep_export *export,
                      const struct seep_report *report,
                      const struct seep_export_stack *stack)
{
    const struct seep_report_site *site = stack->site;
    int error = 0;

    if (export->process_count > 1) {
        error = put_name(export->file, seep_export_process(report));
        fputc(';', export->file);
    }
    fprintf(export->file, "[%s]", seep_words_space(site->space));
    for (size_t i = site->frame_count; error == 0 && i-- > 0;) {
        fputc(';', export->file);
        error = put_name(export->file, seep_export_frame(site->frames[i]));
    }
    fprintf(export->file, " %" PRId64 "\n", stack->weights[export->weight]);
    return error;
}

/* What weighs nothing would be nothing of a picture; what shrinks cannot be
 * drawn. */
int seep_folded_add(struct seep_export *export,
                    const struct seep_report *report)
{
    size_t count = seep_export_stack_count(export, report);
    struct seep_export_stack stack;
    int error = 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        seep_export_stack_at(export, report, i, &stack);
        if (stack.weights[export->weight] > 0) {
            error = put_folded(export, report, &stack);
        }
    }
    return error != 0 ? error : ferror(export->file) ? -EIO : 0;
}

/*
 * speedscope's file format: for each process a profile of each weight, the one
 * that was asked for first. The outermost frame is the space.
 *
 * Frames are numbered as they come, and written after what names them.
 *
 * Invariant: the sum of a profile's weights is its end.
 */

struct speedscope {
    const struct seep_export *export;
    struct seep_json_out out;
    struct seep_store store;
    struct seep_store_table frames;
    json_t *list; /* of frames, by number */
    size_t profile_count;
};

/* The stacks of one process as numbers of frames, outermost first. */
struct numbered {
    size_t *ends; /* behind the last frame of each stack */
    uint32_t *frames;
};

static uint32_t add_frame(struct speedscope *scope, const char *key,
                          size_t bytes, const char *name,
                          const struct seep_report_frame *frame)
{
    struct seep_store_entry *entry =
        seep_store_find(&scope->store, &scope->frames, key, bytes);

    if (entry == NULL) {
        scope->out.error = -ENOMEM;
        return 0;
    }
    if (entry->value == NULL) {
        json_t *object = json_object();

        seep_json_put(object, "name", name);
        if (frame != NULL && *frame->file != '\0') {
            seep_json_put(object, "file", frame->file);
        }
        if (frame != NULL && frame->line > 0) {
            seep_json_put(object, "line", frame->line);
        }
        json_array_append_new(scope->list, object);
        entry->value = (const void *)(uintptr_t)json_array_size(scope->list);
    }
    return (uint32_t)((uintptr_t)entry->value - 1);
}

static uint32_t number_space(struct speedscope *scope, enum seep_space space)
{
    char *name = seep_words_make("[%s]", seep_words_space(space));
    uint32_t number =
        name == NULL ? 0 : add_frame(scope, name, strlen(name), name, NULL);

    scope->out.error = name == NULL ? -ENOMEM : scope->out.error;
    free(name);
    return number;
}

static uint32_t number_frame(struct speedscope *scope,
                             const struct seep_report_frame *frame)
{
    char *name = *frame->function != '\0' ? strdup(frame->function)
                                          : seep_export_frame(frame);
    char *key = name == NULL ? NULL
                             : seep_words_make("%s\n%s\n%" PRIu32, name,
                                               frame->file, frame->line);
    uint32_t number =
        key == NULL ? 0 : add_frame(scope, key, strlen(key), name, frame);

    scope->out.error = key == NULL ? -ENOMEM : scope->out.error;
    free(key);
    free(name);
    return number;
}

static int number_all(struct speedscope *scope,
                      const struct seep_report *report,
                      struct numbered *numbered)
{
    size_t count = seep_export_stack_count(scope->export, report);
    struct seep_export_stack stack;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        seep_export_stack_at(scope->export, report, i, &stack);
        total += stack.site->frame_count + 1;
    }
    numbered->ends = calloc(count + 1, sizeof(*numbered->ends));
    numbered->frames = calloc(total + 1, sizeof(*numbered->frames));
    if (numbered->ends == NULL || numbered->frames == NULL) {
        return -ENOMEM;
    }
    total = 0;
    for (size_t i = 0; i < count && scope->out.error == 0; i++) {
        seep_export_stack_at(scope->export, report, i, &stack);
        numbered->frames[total++] = number_space(scope, stack.site->space);
        for (size_t k = stack.site->frame_count; k-- > 0;) {
            numbered->frames[total++] =
                number_frame(scope, stack.site->frames[k]);
        }
        numbered->ends[i] = total;
    }
    return scope->out.error;
}

static void put_stack(FILE *file, const struct numbered *numbered, size_t i,
                      bool is_first)
{
    fputs(is_first ? "[" : ",\n[", file);
    for (size_t k = i == 0 ? 0 : numbered->ends[i - 1]; k < numbered->ends[i];
         k++) {
        bool is_outermost = k == (i == 0 ? 0 : numbered->ends[i - 1]);

        fprintf(file, "%s%" PRIu32, is_outermost ? "" : ",",
                numbered->frames[k]);
    }
    fputc(']', file);
}

static void put_profile(struct speedscope *scope,
                        const struct seep_report *report,
                        const struct numbered *numbered,
                        enum seep_export_weight weight)
{
    FILE *file = scope->out.file;
    size_t count = seep_export_stack_count(scope->export, report);
    char *process = seep_export_process(report);
    char *name = seep_words_make("%s: %s", process == NULL ? "?" : process,
                                 seep_export_weight_words(weight));
    bool is_bytes = strcmp(seep_export_weight_unit(weight), "bytes") == 0;
    struct seep_export_stack stack;
    int64_t sum = 0;
    bool is_first = true;

    seep_json_out_raw(&scope->out, scope->profile_count++ == 0 ? "{" : ",\n{");
    seep_json_out_members(
        &scope->out, json_pack("{s:s,s:o,s:s,s:i}", "type", "sampled", "name",
                               seep_json_text(name), "unit",
                               is_bytes ? "bytes" : "none", "startValue", 0));
    seep_json_out_raw(&scope->out, ",\"samples\":[");
    for (size_t i = 0; i < count; i++) {
        seep_export_stack_at(scope->export, report, i, &stack);
        if (stack.weights[weight] > 0) {
            put_stack(file, numbered, i, is_first);
            is_first = false;
        }
    }
    seep_json_out_raw(&scope->out, "],\"weights\":[");
    is_first = true;
    for (size_t i = 0; i < count; i++) {
        seep_export_stack_at(scope->export, report, i, &stack);
        if (stack.weights[weight] > 0) {
            /* Of a damaged recording they may be more than there is. */
            int64_t part = stack.weights[weight] < INT64_MAX - sum
                               ? stack.weights[weight]
                               : INT64_MAX - sum;

            fprintf(file, "%s%" PRId64, is_first ? "" : ",", part);
            sum += part;
            is_first = false;
        }
    }
    fprintf(file, "],\"endValue\":%" PRId64 "}", sum);
    free(name);
    free(process);
}

int seep_speedscope_begin(struct seep_export *export)
{
    struct speedscope *scope = calloc(1, sizeof(*scope));

    if (scope == NULL) {
        return -ENOMEM;
    }
    export->state = scope;
    scope->export = export;
    scope->out.file = export->file;
    scope->list = json_array();
    seep_json_out_raw(
        &scope->out,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
        "\"exporter\":\"seep@" SEEP_VERSION
        "\",\"activeProfileIndex\":0,\"profiles\":[\n");
    return scope->list == NULL ? -ENOMEM : scope->out.error;
}

int seep_speedscope_add(struct seep_export *export,
                        const struct seep_report *report)
{
    struct speedscope *scope = export->state;
    struct numbered numbered = {NULL, NULL};
    int error = number_all(scope, report, &numbered);

    if (error == 0) {
        put_profile(scope, report, &numbered, export->weight);
    }
    for (unsigned i = 0; i < SEEP_EXPORT_WEIGHT_COUNT && error == 0; i++) {
        if (i != (unsigned)export->weight) {
            put_profile(scope, report, &numbered, (enum seep_export_weight)i);
        }
    }
    free(numbered.ends);
    free(numbered.frames);
    return error != 0 ? error : scope->out.error;
}

int seep_speedscope_end(struct seep_export *export)
{
    struct speedscope *scope = export->state;
    size_t index;
    json_t *frame;
    int error;

    if (scope == NULL) {
        return 0;
    }
    seep_json_out_raw(&scope->out, "],\n\"shared\":{\"frames\":[\n");
    json_array_foreach(scope->list, index, frame)
    {
        seep_json_out_raw(&scope->out, index == 0 ? "" : ",\n");
        seep_json_out_value(&scope->out, json_incref(frame));
    }
    seep_json_out_raw(&scope->out, "]}}");
    error = seep_json_out_finish(&scope->out);
    json_decref(scope->list);
    seep_store_table_fini(&scope->frames);
    seep_store_fini(&scope->store);
    free(scope);
    export->state = NULL;
    return error;
}
