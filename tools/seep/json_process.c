/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which process it was, as JSON. Invariant: every key stands in every document.
 */
#include "json_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "clean.h"
#include "json_parts.h"
#include "words.h"

#define NS_PER_S UINT64_C(1000000000)

json_t *seep_json_started(const struct seep_report *report)
{
    time_t seconds = (time_t)(report->start_realtime_ns / NS_PER_S);
    unsigned milliseconds =
        (unsigned)(report->start_realtime_ns % NS_PER_S / 1000000);
    struct tm utc;
    char day[40];
    char text[64];

    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        return json_null();
    }
    snprintf(text, sizeof(text), "%s.%03uZ", day, milliseconds);
    return json_string(text);
}

/* "model=bert,role=worker", as SEEP_LABELS has it; a word alone has "". */
static json_t *labels_of(const char *labels)
{
    json_t *object = json_object();
    char *copy = seep_clean_for_json(labels);
    char *rest = copy;
    char *label;

    while (copy != NULL && (label = strsep(&rest, ",")) != NULL) {
        char *value = strchr(label, '=');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (*label != '\0') {
            seep_json_put(object, label,
                          json_string(value == NULL ? "" : value));
        }
    }
    free(copy);
    return object;
}

static json_t *status_of(const struct seep_report *report)
{
    json_t *object;

    if (!report->has_status) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "exit",
                  WIFEXITED(report->status)
                      ? json_integer(WEXITSTATUS(report->status))
                      : json_null());
    seep_json_put(object, "signal",
                  WIFSIGNALED(report->status)
                      ? json_integer(WTERMSIG(report->status))
                      : json_null());
    return object;
}

static json_t *python_of(const struct seep_report *report)
{
    json_t *object;
    char version[32];

    if (!seep_words_has_python(report)) {
        return json_null();
    }
    object = json_object();
    seep_words_python_version(report->python_version, version, sizeof(version));
    seep_json_put(object, "version",
                  report->python_version == 0 ? json_null()
                                              : json_string(version));
    seep_json_put(object, "state",
                  json_string(seep_python_state_words(report->python_state)));
    seep_json_put(
        object, "objects",
        json_string(seep_python_objects_words(report->python_objects)));
    return object;
}

json_t *seep_json_process(const struct seep_report *report)
{
    json_t *object = json_object();
    json_t *argv = json_array();

    for (size_t i = 0; i < report->argument_count; i++) {
        json_array_append_new(argv, seep_json_text(report->arguments[i]));
    }
    seep_json_put(object, "pid", json_integer(report->pid));
    seep_json_put(object, "exe", seep_json_text(report->executable));
    seep_json_put(object, "argv", argv);
    seep_json_put(object, "host", seep_json_text(report->host));
    seep_json_put(object, "labels", labels_of(report->labels));
    seep_json_put(object, "state",
                  json_string(seep_words_state_name(report->state)));
    seep_json_put(object, "status", status_of(report));
    seep_json_put(object, "started", seep_json_started(report));
    seep_json_put(object, "duration_s", seep_json_real(report->duration_s));
    seep_json_put(object, "units",
                  report->units == 0 ? json_null()
                                     : seep_json_count(report->units));
    seep_json_put(object, "mode", json_string(seep_words_mode_name(report)));
    seep_json_put(object, "exact", json_boolean(report->exact));
    seep_json_put(object, "sample_bytes",
                  seep_json_count(report->sample_bytes));
    seep_json_put(object, "fork", json_boolean(report->is_fork));
    seep_json_put(object, "inert",
                  report->inert == SEEP_INERT_NONE
                      ? json_null()
                      : json_string(seep_words_inert(report->inert)));
    seep_json_put(object, "allocator",
                  seep_json_text_or_null(report->allocator));
    seep_json_put(object, "unwinder",
                  json_string(seep_words_unwinder(report->unwinder)));
    seep_json_put(object, "python", python_of(report));
    seep_json_put(object, "seep_version", seep_json_text(report->version));
    seep_json_put(object, "recording", seep_json_text(report->path));
    return object;
}

json_t *seep_json_marks(const struct seep_report *report)
{
    json_t *array = json_array();

    for (size_t i = 0; i < report->mark_count; i++) {
        const struct seep_report_mark *mark = &report->marks[i];
        json_t *object = json_object();

        seep_json_put(object, "t_s", seep_json_real(mark->at_s));
        seep_json_put(object, "name", seep_json_text(mark->name));
        seep_json_put(object, "units", seep_json_count(mark->units));
        json_array_append_new(array, object);
    }
    return array;
}
