/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See diff_labels.h. Invariant: a label is hostile text, and no C string. */
#include "diff_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "reader/report_labels.h"
#include "say.h"

#define VALUES_MAX 64 /* that are looked at; more are too many to choose of */

struct words {
    char *at[VALUES_MAX];
    size_t count;
};

static void free_words(struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->at[i]);
    }
}

static void add_word(struct words *words, const char *text, size_t length)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strlen(words->at[i]) == length &&
            strncmp(words->at[i], text, length) == 0) {
            return;
        }
    }
    if (words->count < VALUES_MAX) {
        words->at[words->count] = strndup(text, length);
        words->count += words->at[words->count] != NULL;
    }
}

static int compare_versions(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static void read_values(const char *key,
                        const struct seep_report *const *reports, size_t count,
                        struct words *values)
{
    const char *value;
    size_t length;

    for (size_t i = 0; i < count; i++) {
        if (seep_labels_value(reports[i], key, strlen(key), &value, &length)) {
            add_word(values, value, length);
        }
    }
    if (values->count > 0) {
        qsort(values->at, values->count, sizeof(*values->at), compare_versions);
    }
}

static void read_keys(const struct seep_report *const *reports, size_t count,
                      struct words *keys)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = reports[i]->labels;

        while (at != NULL && *at != '\0') {
            size_t length = strcspn(at, ",");

            add_word(keys, at, strcspn(at, "=,"));
            at += length + (at[length] == ',');
        }
    }
}

/* "11, 12, 13", as much of it as fits. */
static void list_words(const struct words *words, char *text, size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; i < words->count && used < size; i++) {
        int length = snprintf(text + used, size - used, "%s%s",
                              i == 0 ? "" : ", ", words->at[i]);

        used += length < 0 ? size : (size_t)length;
    }
}

static int say_no_key(const char *key, const struct seep_report *const *reports,
                      size_t count)
{
    struct words keys = {.count = 0};
    char remedy[192];
    char list[128];
    const char *nearest;

    read_keys(reports, count, &keys);
    nearest = seep_nearest(key, (const char *const *)keys.at, keys.count);
    list_words(&keys, list, sizeof(list));
    if (keys.count == 0) {
        snprintf(remedy, sizeof(remedy),
                 "SEEP_LABELS=%.64s=... gives one to a run", key);
    } else if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean %s?", nearest);
    } else {
        snprintf(remedy, sizeof(remedy), "there is %s", list);
    }
    seep_say(key, "no recording has this label", remedy);
    free_words(&keys);
    return SEEP_EXIT_USAGE;
}

static bool has_word(const struct words *words, const char *text)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->at[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static int say_no_value(const char *key, const char *value,
                        const struct words *values)
{
    char reason[128];
    char remedy[160];
    char list[128];

    list_words(values, list, sizeof(list));
    snprintf(reason, sizeof(reason), "no recording has this %.64s", key);
    snprintf(remedy, sizeof(remedy), "there is %s", list);
    seep_say(value, reason, remedy);
    return SEEP_EXIT_USAGE;
}

static int say_no_two(const char *key, const struct words *values)
{
    char reason[192];
    char list[128];

    list_words(values, list, sizeof(list));
    snprintf(reason, sizeof(reason), "has %s (%s) in these recordings",
             values->count == 1 ? "one value" : "more than two values", list);
    seep_say(key, reason,
             values->count == 1 ? "two are compared"
                                : "name two: --by KEY OLD NEW RECORDING...");
    return SEEP_EXIT_USAGE;
}

int seep_diff_labels_choose(const char *key,
                            const struct seep_report *const *reports,
                            size_t count, char **ret_before, char **ret_now)
{
    struct words values = {.count = 0};
    int code = 0;

    read_values(key, reports, count, &values);
    if (values.count == 0) {
        code = say_no_key(key, reports, count);
    } else if (*ret_before == NULL && values.count != 2) {
        code = say_no_two(key, &values);
    } else if (*ret_before == NULL) {
        *ret_before = strdup(values.at[0]);
        *ret_now = strdup(values.at[1]);
    } else if (!has_word(&values, *ret_before)) {
        code = say_no_value(key, *ret_before, &values);
    } else if (!has_word(&values, *ret_now)) {
        code = say_no_value(key, *ret_now, &values);
    }
    if (code == 0 && (*ret_before == NULL || *ret_now == NULL)) {
        code = SEEP_EXIT_FAILED;
    }
    free_words(&values);
    return code;
}

size_t seep_diff_labels_select(const char *key, const char *value,
                               const struct seep_report *const *reports,
                               size_t count,
                               const struct seep_report **ret_selected)
{
    size_t selected = 0;
    const char *own;
    size_t length;

    for (size_t i = 0; i < count; i++) {
        if (seep_labels_value(reports[i], key, strlen(key), &own, &length) &&
            length == strlen(value) && strncmp(own, value, length) == 0) {
            ret_selected[selected++] = reports[i];
        }
    }
    return selected;
}
