/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames in words, short for a line and long for a stack, which frames of a
 * stack are folded, and a call site in one line. Invariant: a name that is only
 * the nearest one is never shown in short; what is folded has Python frames
 * outside or inside of it that say more, so no stack loses the only thing it
 * tells.
 */
#include "words/words.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "reader/symbols/where.h"

#define USER_FRAME_BYTES 512

/* Without its arguments: up to a parenthesis that is no part of the name. */
static size_t name_length(const char *function)
{
    static const char nameless[] = "(anonymous namespace)";
    static const char call[] = "operator()";
    size_t length = strcspn(function, "(");

    for (;;) {
        const char *at = function + length;
        size_t inside = 0;

        if (strncmp(at, nameless, sizeof(nameless) - 1) == 0) {
            inside = sizeof(nameless) - 1;
        } else if (length >= sizeof(call) - 3 &&
                   strncmp(at - (sizeof(call) - 3), call, sizeof(call) - 1) ==
                       0) {
            inside = 2;
        } else if (length >= 7 && strncmp(at - 7, "{lambda", 7) == 0) {
            inside = strcspn(at, "}");
        }
        if (inside == 0) {
            return length;
        }
        length += inside;
        length += strcspn(function + length, "(");
    }
}

/* The name without what its arguments add: "std::vector::push_back". */
static char *short_function(const char *function)
{
    size_t length = name_length(function);
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
    free(text); /* "<lambda>" */
    return strdup(function);
}

/* "libpython3.11" of "/usr/lib/libpython3.11.so.1.0", "_json" of
 * "_json.cpython-311-x86_64-linux-gnu.so". */
static char *short_module(const char *module)
{
    const char *name = seep_text_base_name(module);
    const char *end = strstr(name, ".cpython-");

    end = end == NULL ? strstr(name, ".so") : end;
    return strndup(name, end == NULL ? strlen(name) : (size_t)(end - name));
}

/* "parse in libfoo", "libfoo+0x12" */
static char *native_text(const struct seep_report_frame *frame)
{
    char *text = NULL;
    char *function = short_function(frame->function);
    char *module = short_module(frame->module);
    if (module != NULL && *frame->function == '\0') {
        text = seep_words_make("%s+0x%llx", module,
                               (unsigned long long)frame->offset);
    } else if (function != NULL && module != NULL) {
        text = seep_words_make("%s in %s", function, module);
    }
    free(function);
    free(module);
    return text;
}

/* "pool.cc:31 net::Pool::take", whatever it takes. */
static char *line_text(const struct seep_report_frame *frame)
{
    struct seep_report_frame brief = *frame;
    char *function = short_function(frame->function);
    char text[USER_FRAME_BYTES];

    if (function == NULL) {
        return NULL;
    }
    brief.function = function;
    seep_where_format(&brief, text, sizeof(text));
    free(function);
    return strdup(text);
}

/* Is a row of @report more than one place in the code? */
static bool is_broad(const struct seep_report *report)
{
    return report->by == SEEP_BY_FUNCTION || report->by == SEEP_BY_MODULE ||
           report->by == SEEP_BY_THREAD;
}

char *seep_words_where(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;

    if (site->where_frame >= site->frame_count || is_broad(report) ||
        site->where == site->pool) {
        return strdup(*site->where == '\0' ? "(no stack)" : site->where);
    }
    frame = site->frames[site->where_frame];
    if (*frame->file == '\0' && *frame->module != '\0') {
        return native_text(frame);
    }
    return frame->python || *frame->file == '\0' || frame->line == 0
               ? strdup(site->where)
               : line_text(frame);
}

char *seep_words_user_frame(const struct seep_report_site *site)
{
    const struct seep_report_frame *frame;
    char text[USER_FRAME_BYTES];

    if (site->where_frame >= site->frame_count) {
        return strdup("(no stack)");
    }
    frame = site->frames[site->where_frame];
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
    const char *name = seep_text_base_name(path);
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
    char *text =
        file == NULL || *frame->function == '\0'
            ? seep_words_frame(frame)
            : seep_words_make("%s.%s", file, short_python(frame->function));

    free(file);
    return text;
}

char *seep_words_object(const struct seep_report_frame *frame)
{
    return *frame->module == '\0' ? seep_words_frame(frame)
                                  : short_module(frame->module);
}

char *seep_words_frame(const struct seep_report_frame *frame)
{
    if (frame->python) { /* "<module>" is all name */
        return strdup(short_python(frame->function));
    }
    if (*frame->function != '\0') {
        return short_function(frame->function);
    }
    if (*frame->module != '\0') {
        return short_module(frame->module);
    }
    return seep_words_make("0x%llx", (unsigned long long)frame->offset);
}

static void put_python(FILE *file, const struct seep_report_frame *frame)
{
    fputs(*frame->file == '\0' ? "?" : frame->file, file);
    if (frame->line > 0) {
        fprintf(file, ":%u", frame->line);
    }
    fprintf(file, " %s", *frame->function == '\0' ? "?" : frame->function);
}

/* @brief: without its arguments. */
static void put_function(FILE *file, const char *function, bool brief)
{
    char *name = brief ? short_function(function) : NULL;

    fputs(name == NULL ? function : name, file);
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
                seep_text_base_name(frame->module),
                (unsigned long long)frame->offset);
    } else {
        fprintf(file, "%s0x%llx", ftell(file) > 0 ? "  " : "",
                (unsigned long long)frame->offset);
    }
}

char *seep_words_frame_long(const struct seep_report_frame *frame, bool brief)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    if (frame->python) {
        put_python(file, frame);
    } else {
        put_native(file, frame, brief);
    }
    return seep_words_close(&text);
}

/*
 * Folding: between Python frames the native ones are the machinery.
 */

#define INNER_KEPT 3   /* next to the allocation */
#define ENTRIES_KEPT 2 /* what Python called, of no interpreter */
#define NAMES_TOLD 2
#define NAMES_MAX 16

bool seep_fold_has_python(const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (site->frames[i]->python) {
            return true;
        }
    }
    return false;
}

bool seep_fold_is_machinery(const struct seep_report_frame *frame)
{
    return frame->python && seep_where_python_imports(frame->file);
}

/* Frames in front of the first of Python: how Python came to allocate. */
static size_t inner_count(const struct seep_report_site *site)
{
    size_t count = 0;

    while (count < site->frame_count && !site->frames[count]->python) {
        count++;
    }
    return count;
}

/* Where the last frames begin that Python called and that are not its own. */
static size_t entries_begin(const struct seep_report_site *site, size_t inner)
{
    size_t begin = inner;
    size_t found = 0;

    for (size_t i = inner; i > 0 && found < ENTRIES_KEPT; i--) {
        if (seep_where_is_user(site->frames[i - 1])) {
            begin = i - 1;
            found++;
        }
    }
    return begin;
}

static bool is_kept(const struct seep_report_site *site, size_t i, size_t inner,
                    size_t entries)
{
    const struct seep_report_frame *frame = site->frames[i];

    return (frame->python && !seep_fold_is_machinery(frame)) ||
           i == site->where_frame || (i < inner && i < INNER_KEPT) ||
           (i < inner && i >= entries && seep_where_is_user(frame));
}

size_t seep_fold(const struct seep_report_site *site,
                 struct seep_fold_piece *pieces)
{
    bool folds = seep_fold_has_python(site);
    size_t inner = inner_count(site);
    size_t entries = entries_begin(site, inner);
    size_t count = 0;
    size_t end;

    for (size_t i = 0; i < site->frame_count; i = end) {
        end = i;
        while (folds && end < site->frame_count &&
               !is_kept(site, end, inner, entries)) {
            end++;
        }
        bool lone = end == i + 1 && seep_where_is_user(site->frames[i]);
        bool folded = end > i && !lone; /* whose fold would take its room */
        end = folded ? end : i + 1;
        pieces[count++] = (struct seep_fold_piece){i, end - i, folded};
    }
    return count;
}

struct tally {
    const char *names[NAMES_MAX];
    size_t counts[NAMES_MAX];
    size_t used;
    bool more; /* than can be kept apart */
};

static const char *object_of(const struct seep_report_frame *frame)
{
    if (frame->python) {
        return "importlib";
    }
    return *frame->module == '\0' ? "no object"
                                  : seep_text_base_name(frame->module);
}

/* Kept by their number, most first; of equals the inner one first. */
static void count_object(struct tally *tally, const char *name)
{
    size_t at = 0;

    while (at < tally->used && strcmp(tally->names[at], name) != 0) {
        at++;
    }
    if (at == NAMES_MAX) {
        tally->more = true;
        return;
    }
    if (at == tally->used) {
        tally->names[tally->used++] = name;
    }
    size_t count = ++tally->counts[at];
    for (; at > 0 && tally->counts[at - 1] < count; at--) {
        tally->names[at] = tally->names[at - 1];
        tally->counts[at] = tally->counts[at - 1];
    }
    tally->names[at] = name;
    tally->counts[at] = count;
}

char *seep_fold_words(const struct seep_report_frame **frames, size_t count)
{
    struct tally tally = {.used = 0};
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        count_object(&tally, object_of(frames[i]));
    }
    fprintf(file, "%zu frame%s", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < tally.used && i < NAMES_TOLD; i++) {
        fprintf(file, "%s%s", i == 0 ? " in " : ", ", tally.names[i]);
    }
    if (tally.more) {
        fputs(" and more", file);
    } else if (tally.used > NAMES_TOLD) {
        fprintf(file, " and %zu more", tally.used - NAMES_TOLD);
    }
    return seep_words_close(&text);
}

size_t seep_fold_speaker(const struct seep_report_frame **frames, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        if (seep_where_is_user(frames[i - 1])) {
            return i - 1;
        }
    }
    return 0;
}

/*
 * A call site in one line: the user's frame, then "> what it called" down to
 * the allocation, then "< who called it". Of a stack with Python frames the
 * native ones between them are the machinery: a run of them is named by the
 * frame that speaks for it, and outside of the user's by its object alone.
 *
 * Invariant: no name stands twice in a row.
 */

#define INNER_LINKS 3 /* links, of a stack without Python */
#define OUTER_LINKS 6
#define LINKS_MAX 256U /* more than a stack has frames that are not inlined */

/* Names in a row, each different from the one before it. */
struct links {
    char *names[LINKS_MAX];
    size_t count;
};

/* Takes @name. @return was it kept? */
static bool add_link(struct links *links, char *name)
{
    bool news = name != NULL && links->count < LINKS_MAX &&
                (links->count == 0 ||
                 strcmp(links->names[links->count - 1], name) != 0);

    if (news) {
        links->names[links->count++] = name;
    } else {
        free(name);
    }
    return news;
}

static void free_links(struct links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        free(links->names[i]);
    }
}

/* "json.loads", where the user's own file has no need of it. An import is no
 * news: what it runs is. */
static void add_python(struct links *links, const struct seep_report_site *site,
                       size_t i)
{
    const struct seep_report_frame *frame = site->frames[i];
    const struct seep_report_frame *user = site->frames[site->where_frame];
    bool same = user->python && strcmp(frame->file, user->file) == 0;

    if (!seep_fold_is_machinery(frame)) {
        add_link(links, same ? seep_words_frame(frame)
                             : seep_words_frame_with_file(frame));
    }
}

/* The native frames [@first, @end): who was called, and whose memory it is.
 * Between Python's frames the interpreter's own are no news. */
static void add_run(struct links *links, const struct seep_report_site *site,
                    size_t first, size_t end)
{
    const struct seep_report_frame **run = &site->frames[first];
    size_t speaker = seep_fold_speaker(run, end - first);

    if (first > 0 && !seep_where_is_user(run[speaker])) {
        return;
    }
    add_link(links, seep_words_frame(run[speaker]));
    for (size_t i = 0; first == 0 && i < speaker; i++) {
        if (seep_where_is_user(run[i])) {
            add_link(links, seep_words_object(run[i]));
            return;
        }
    }
    if (first == 0) {
        add_link(links, seep_words_object(run[speaker]));
    }
}

static size_t run_begin(const struct seep_report_site *site, size_t end)
{
    while (end > 0 && !site->frames[end - 1]->python) {
        end--;
    }
    return end;
}

/* The first thing that it called, and the last. */
static void put_inner(FILE *file, const struct seep_report_site *site)
{
    struct links links = {.count = 0};
    size_t begin;

    for (size_t i = site->where_frame; i > 0; i = begin) {
        begin = run_begin(site, i);
        if (begin < i) {
            add_run(&links, site, begin, i);
        } else {
            begin = i - 1;
            add_python(&links, site, begin);
        }
    }
    for (size_t i = 0; i < links.count; i++) {
        if (i == 0 || i + 1 == links.count) {
            fprintf(file, " > %s", links.names[i]);
        } else if (i == 1) {
            fputs(" > …", file);
        }
    }
    free_links(&links);
}

/* Native frames outside of all of Python's are the interpreter's start. */
static void put_outer(FILE *file, const struct seep_report_site *site)
{
    const struct seep_report_frame *user = site->frames[site->where_frame];
    struct links links = {.count = 0};
    size_t first = site->where_frame + 1;

    add_link(&links, seep_words_frame(user));
    for (size_t i = first; i < site->frame_count && links.count <= OUTER_LINKS;
         i++) {
        if (site->frames[i]->python) {
            size_t speaker =
                seep_fold_speaker(&site->frames[first], i - first) + first;
            if (speaker < i && seep_where_is_user(site->frames[speaker])) {
                add_link(&links, seep_words_object(site->frames[speaker]));
            }
            add_python(&links, site, i);
            first = i + 1;
        }
    }
    for (size_t i = 1; i < links.count && i <= OUTER_LINKS; i++) {
        fprintf(file, " < %s", links.names[i]);
    }
    free_links(&links);
}

/* Every frame by its name, where no Python frames tell more. */
static void put_native_links(FILE *file, const struct seep_report_site *site)
{
    struct links inner = {.count = 0};
    struct links outer = {.count = 0};
    size_t middle = site->where_frame;

    for (size_t i = 0; i < INNER_LINKS && i < middle; i++) {
        add_link(&inner, seep_words_frame(site->frames[middle - 1 - i]));
    }
    for (size_t i = middle; i < site->frame_count && outer.count <= OUTER_LINKS;
         i++) {
        add_link(&outer, seep_words_frame(site->frames[i]));
    }
    for (size_t i = 0; i < inner.count; i++) {
        fprintf(file, " > %s", inner.names[i]);
    }
    for (size_t i = 1; i < outer.count; i++) {
        fprintf(file, " < %s", outer.names[i]);
    }
    free_links(&inner);
    free_links(&outer);
}

/* Of what is more than one place, the one that holds the most. */
static void put_site(FILE *file, const struct seep_report *report,
                     const struct seep_report_site *site)
{
    char *where = seep_words_where(report, site);

    fputs(where == NULL ? "?" : where, file);
    free(where);
    if (report->by == SEEP_BY_THREAD ||
        report->by == (site->pool != NULL ? SEEP_BY_STACK : SEEP_BY_MODULE)) {
        char *user = seep_words_user_frame(site);
        fprintf(file, ": %s", user == NULL ? "?" : user);
        free(user);
    }
}

char *seep_words_chain(const struct seep_report *report,
                       const struct seep_report_site *site)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    put_site(file, report, site);
    if (site->where_frame < site->frame_count &&
        (site->pool == NULL || report->by == SEEP_BY_STACK)) {
        if (seep_fold_has_python(site)) {
            put_inner(file, site);
            put_outer(file, site);
        } else {
            put_native_links(file, site);
        }
    }
    return seep_words_close(&text);
}
