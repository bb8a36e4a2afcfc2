/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Words for frames, short for a line and long for a stack. Invariant: a name
 * that is only the nearest one is never shown in short.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/where.h"
#include "words.h"

#define USER_FRAME_BYTES 512

/* The name without what its arguments add: "std::vector::push_back". */
static char *short_function(const char *function)
{
    size_t length = strcspn(function, "(");
    char *text = malloc(length + 1);
    size_t out = 0;
    size_t depth = 0;

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < length; i++) {
        char c = function[i];
        if (c == '<') {
            depth++;
        } else if (c == '>' && depth > 0) {
            depth--;
        } else if (depth == 0) {
            text[out++] = c;
        }
    }
    text[out] = '\0';
    if (out > 0) {
        return text;
    }
    free(text); /* "(anonymous namespace)::f" and "operator<" */
    return strdup(function);
}

/* "libpython3.11" of "/usr/lib/libpython3.11.so.1.0", "_json" of
 * "_json.cpython-311-x86_64-linux-gnu.so". */
static char *short_module(const char *module)
{
    const char *name = seep_where_base_name(module);
    const char *end = strstr(name, ".cpython-");

    end = end == NULL ? strstr(name, ".so") : end;
    return strndup(name, end == NULL ? strlen(name) : (size_t)(end - name));
}

/* "PyObject_IS_GC+0x167f": the nearest name in a stripped file, of another
 * function. In full it may help; in short it would mislead. */
static bool is_named(const struct seep_report_frame *frame)
{
    return *frame->function != '\0' &&
           (*frame->module == '\0' || *frame->file != '\0' ||
            strstr(frame->function, "+0x") == NULL);
}

/* "parse in libfoo", "libfoo+0x12" */
static char *native_text(const struct seep_report_frame *frame)
{
    char *text = NULL;
    char *function = short_function(frame->function);
    char *module = short_module(frame->module);
    if (module != NULL && !is_named(frame)) {
        if (asprintf(&text, "%s+0x%llx", module,
                     (unsigned long long)frame->offset) < 0) {
            text = NULL;
        }
    } else if (function != NULL && module != NULL &&
               asprintf(&text, "%s in %s", function, module) < 0) {
        text = NULL;
    }
    free(function);
    free(module);
    return text;
}

bool seep_words_is_broad(const struct seep_report *report)
{
    return report->by == SEEP_BY_FUNCTION || report->by == SEEP_BY_MODULE ||
           report->by == SEEP_BY_THREAD;
}

char *seep_words_where(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;

    if (site->where_frame >= site->frame_count || seep_words_is_broad(report)) {
        return strdup(*site->where == '\0' ? "(no stack)" : site->where);
    }
    frame = &site->frames[site->where_frame];
    return *frame->file != '\0' || *frame->module == '\0' ? strdup(site->where)
                                                          : native_text(frame);
}

char *seep_words_user_frame(const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;
    char text[USER_FRAME_BYTES];

    if (site->where_frame >= site->frame_count) {
        return strdup("(no stack)");
    }
    frame = &site->frames[site->where_frame];
    if (*frame->file == '\0' && *frame->module != '\0') {
        return native_text(frame);
    }
    seep_where_format(frame, text, sizeof(text));
    return strdup(text);
}

/* "wrapper" of "decorate.<locals>.wrapper": what is inside of what is in full
 * elsewhere. */
static const char *short_python(const char *function)
{
    static const char locals[] = ".<locals>.";
    const char *at;

    while ((at = strstr(function, locals)) != NULL) {
        function = at + sizeof(locals) - 1;
    }
    return *function == '\0' ? "?" : function;
}

/* "json" of "/usr/lib/python3.11/json/__init__.py"; NULL: "<string>". */
static char *short_file(const char *path)
{
    const char *name = seep_where_base_name(path);
    const char *end = strrchr(name, '.');

    if (*name == '<' || *name == '\0') {
        return NULL;
    }
    if (strcmp(name, "__init__.py") == 0 && name - path > 1) {
        end = name - 1;
        for (name = end; name > path && name[-1] != '/'; name--) {
        }
    }
    return strndup(name, end == NULL ? strlen(name) : (size_t)(end - name));
}

char *seep_words_frame_with_file(const struct seep_report_frame *frame)
{
    char *file = frame->python ? short_file(frame->file) : NULL;
    char *text;

    if (file == NULL || *frame->function == '\0') {
        free(file);
        return seep_words_frame(frame);
    }
    int length = asprintf(&text, "%s.%s", file, short_python(frame->function));
    free(file);
    return length < 0 ? NULL : text;
}

char *seep_words_object(const struct seep_report_frame *frame)
{
    return *frame->module == '\0' ? seep_words_frame(frame)
                                  : short_module(frame->module);
}

char *seep_words_frame(const struct seep_report_frame *frame)
{
    char *text;

    if (frame->python) { /* "<module>" is all name */
        return strdup(short_python(frame->function));
    }
    if (is_named(frame)) {
        return short_function(frame->function);
    }
    if (*frame->module != '\0') {
        return short_module(frame->module);
    }
    if (asprintf(&text, "0x%llx", (unsigned long long)frame->offset) < 0) {
        return NULL;
    }
    return text;
}

static void put_python(FILE *file, const struct seep_report_frame *frame)
{
    fputs(*frame->file == '\0' ? "?" : frame->file, file);
    if (frame->line > 0) {
        fprintf(file, ":%u", frame->line);
    }
    fprintf(file, " %s", *frame->function == '\0' ? "?" : frame->function);
}

/* The function without its arguments, yet with how far behind it the frame
 * is: the nearest name may be another function's. */
static void put_function(FILE *file, const char *function, bool brief)
{
    const char *behind = strstr(function, "+0x");
    char *name = brief ? short_function(function) : NULL;

    fputs(name == NULL ? function : name, file);
    if (name != NULL && behind != NULL && strstr(name, behind) == NULL) {
        fputs(behind, file);
    }
    free(name);
}

static void put_native(FILE *file, const struct seep_report_frame *frame,
                       bool brief)
{
    if (*frame->function != '\0') {
        put_function(file, frame->function, brief);
    }
    if (*frame->file != '\0') {
        fprintf(file, "%s%s", *frame->function == '\0' ? "" : "  ",
                frame->file);
        if (frame->line > 0) {
            fprintf(file, ":%u", frame->line);
        }
    }
    if (frame->inlined) {
        fputs("  (inlined)", file);
    } else if (*frame->module != '\0') {
        fprintf(file, "%s(%s+0x%llx)", ftell(file) > 0 ? "  " : "",
                seep_where_base_name(frame->module),
                (unsigned long long)frame->offset);
    } else {
        fprintf(file, "%s0x%llx", ftell(file) > 0 ? "  " : "",
                (unsigned long long)frame->offset);
    }
}

char *seep_words_frame_long(const struct seep_report_frame *frame, bool brief)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }
    if (frame->python) {
        put_python(file, frame);
    } else {
        put_native(file, frame, brief);
    }
    fclose(file);
    return text;
}
