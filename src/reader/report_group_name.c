/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See report_group_name.h. Invariant: a name says what all stacks of the row
 * have in common, and nothing that only one of them has.
 */
#include "reader/report_group_name.h"

#include <stdio.h>
#include <string.h>

#include "reader/where.h"
#include "reader/where_python.h"

void seep_name_without_numbers(const char *name, char text[SEEP_NAME_BYTES])
{
    size_t length = 0;

    while (*name != '\0' && length + 1 < SEEP_NAME_BYTES) {
        size_t digits = strspn(name, "0123456789");

        text[length++] = digits > 0 ? '*' : *name;
        name += digits > 0 ? digits : 1;
    }
    text[length] = '\0';
}

bool seep_name_is_nearest(const char *function)
{
    return strstr(function, "+0x") != NULL;
}

int seep_name_module(const struct seep_report_frame *frame, char *text,
                     size_t capacity)
{
    const char *module = seep_where_base_name(frame->module);

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
outermost(const struct seep_report_frame *frames, size_t count)
{
    const struct seep_report_frame *found = NULL;
    const struct seep_report_frame *library = NULL;

    for (size_t i = count; i-- > 0;) {
        if (frames[i].python &&
            seep_where_python_origin(frames[i].file) >= SEEP_PYTHON_COMMAND) {
            return &frames[i];
        }
        if (found == NULL && seep_where_is_user(&frames[i])) {
            found = &frames[i];
        }
        if (library == NULL && is_library(&frames[i])) {
            library = &frames[i];
        }
    }
    return found != NULL ? found : library;
}

/* The coroutine or callback that asyncio runs: the Python frame inside of its
 * Handle._run. NULL: it runs none. */
static const struct seep_report_frame *
find_task(const struct seep_report_frame *frames, size_t count)
{
    const struct seep_report_frame *inside = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!frames[i].python) {
            continue;
        }
        if (inside != NULL &&
            seep_where_python_runs_task(frames[i].file, frames[i].function)) {
            return inside;
        }
        inside = &frames[i];
    }
    return NULL;
}

int seep_name_thread(const char *name, const struct seep_report_frame *frames,
                     size_t count, char *text, size_t capacity)
{
    const struct seep_report_frame *frame = find_task(frames, count);
    char module[SEEP_NAME_BYTES];

    if (name[0] != '\0') {
        seep_name_without_numbers(name, module);
        return snprintf(text, capacity, "%s", module);
    }
    if (frame != NULL && frame->function[0] != '\0') {
        return snprintf(text, capacity, "task of %s", frame->function);
    }
    if (count > 0 && is_start(&frames[count - 1])) {
        return snprintf(text, capacity, "main");
    }
    frame = outermost(frames, count);
    if (frame == NULL) {
        return snprintf(text, capacity, "a thread without a name");
    }
    if (is_main(frame->function)) {
        return snprintf(text, capacity, "main");
    }
    if (frame->function[0] != '\0' && !seep_name_is_nearest(frame->function)) {
        return snprintf(text, capacity, "thread of %s", frame->function);
    }
    seep_name_module(frame, module, sizeof(module));
    return snprintf(text, capacity, "thread of %s", module);
}

static int function_name(const struct seep_report_frame *frame, char *text,
                         size_t capacity)
{
    struct seep_report_frame lineless = *frame;

    lineless.line = 0;
    return seep_where_format(&lineless, text, capacity);
}

int seep_name_row(enum seep_grouping by, const struct seep_report_site *site,
                  char *text, size_t capacity)
{
    const struct seep_report_frame *frame = &site->frames[site->where_frame];

    switch (by) {
    case SEEP_BY_FUNCTION:
        return function_name(frame, text, capacity);
    case SEEP_BY_MODULE:
        return seep_name_module(frame, text, capacity);
    case SEEP_BY_THREAD:
        return seep_name_thread(site->thread, site->frames, site->frame_count,
                                text, capacity);
    default:
        return seep_where_format(frame, text, capacity);
    }
}
