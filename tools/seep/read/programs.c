/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two runs of programs side by side. Invariant: a program is compared with
 * itself only.
 */
#include "read/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/option.h"
#include "reader/report/report.h"
#include "words/words.h"

/*
 * The two values of a label. Invariant: it is hostile text, and no C string.
 */

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

static bool has_word(const struct words *words, const char *text, size_t length)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strlen(words->at[i]) == length &&
            strncmp(words->at[i], text, length) == 0) {
            return true;
        }
    }
    return false;
}

static void add_word(struct words *words, const char *text, size_t length)
{
    if (words->count < VALUES_MAX && !has_word(words, text, length)) {
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
        snprintf(remedy, sizeof(remedy), "set SEEP_LABELS=%.64s=... for a run",
                 key);
    } else if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean %s?", nearest);
    } else {
        snprintf(remedy, sizeof(remedy), "the labels are %s", list);
    }
    seep_say(key, "no recording has this label", remedy);
    free_words(&keys);
    return SEEP_EXIT_USAGE;
}

static int say_no_value(const char *key, const char *value,
                        const struct words *values)
{
    char reason[128];
    char remedy[160];
    char list[128];

    list_words(values, list, sizeof(list));
    snprintf(reason, sizeof(reason), "no recording has this %.64s", key);
    snprintf(remedy, sizeof(remedy), "the values are %s", list);
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
             values->count == 1 ? "two are needed"
                                : "choose two: --by KEY OLD NEW RECORDING...");
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
    } else if (!has_word(&values, *ret_before, strlen(*ret_before))) {
        code = say_no_value(key, *ret_before, &values);
    } else if (!has_word(&values, *ret_now, strlen(*ret_now))) {
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

struct side {
    const struct seep_report *const *reports;
    char **programs;
    size_t count;
};

static void close_side(struct side *side)
{
    for (size_t i = 0; side->programs != NULL && i < side->count; i++) {
        free(side->programs[i]);
    }
    free(side->programs);
}

static int open_side(const struct seep_report *const *reports, size_t count,
                     struct side *ret_side)
{
    *ret_side = (struct side){
        reports, calloc(count + 1, sizeof(*ret_side->programs)), count};
    if (ret_side->programs == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        ret_side->programs[i] = seep_words_program(reports[i]);
        if (ret_side->programs[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* NULL: any. */
static bool is_of(const struct side *side, size_t index, const char *program)
{
    return program == NULL || strcmp(side->programs[index], program) == 0;
}

/* @out: room for all of the side; NULL: they are counted only */
static size_t select_of(const struct side *side, const char *program,
                        const struct seep_report **out)
{
    size_t count = 0;

    for (size_t i = 0; i < side->count; i++) {
        if (is_of(side, i, program)) {
            if (out != NULL) {
                out[count] = side->reports[i];
            }
            count++;
        }
    }
    return count;
}

static bool has(const struct side *side, const char *program)
{
    return select_of(side, program, NULL) > 0;
}

static bool is_one_program(const struct side *side)
{
    return side->count > 0 &&
           select_of(side, side->programs[0], NULL) == side->count;
}

static int add_pair(struct seep_diff_set *set, const struct side *before,
                    const struct side *now, const char *program,
                    const char *name)
{
    struct seep_diff_pair *pair = &set->pairs[set->count];
    int error;

    *pair = (struct seep_diff_pair){
        .program = strdup(name),
        .before = calloc(before->count + 1, sizeof(*pair->before)),
        .now = calloc(now->count + 1, sizeof(*pair->now)),
    };
    if (pair->program == NULL || pair->before == NULL || pair->now == NULL) {
        error = -ENOMEM;
    } else {
        pair->before_count = select_of(before, program, pair->before);
        pair->now_count = select_of(now, program, pair->now);
        error = seep_diff_run(pair->before, pair->before_count, pair->now,
                              pair->now_count, &pair->diff);
    }
    if (error < 0) {
        free(pair->program);
        free(pair->before);
        free(pair->now);
        return error;
    }
    set->count++;
    return 0;
}

static int add_pairs(struct seep_diff_set *set, const struct side *before,
                     const struct side *now)
{
    int error = 0;

    if (is_one_program(before) && is_one_program(now)) {
        return add_pair(set, before, now, NULL, now->programs[0]);
    }
    for (size_t i = 0; error == 0 && i < now->count; i++) {
        const char *program = now->programs[i];
        bool again = false;

        for (size_t k = 0; k < i && !again; k++) {
            again = is_of(now, k, program);
        }
        if (!again && has(before, program)) {
            error = add_pair(set, before, now, program, program);
        } else if (!again && set->only_now == NULL) {
            set->only_now = strdup(program);
        }
    }
    for (size_t i = 0; i < before->count && set->only_before == NULL; i++) {
        if (!has(now, before->programs[i])) {
            set->only_before = strdup(before->programs[i]);
        }
    }
    return error;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct seep_diff_pair *left = a;
    const struct seep_diff_pair *right = b;
    int order = (int)seep_diff_answer_of(&right->diff) -
                (int)seep_diff_answer_of(&left->diff);

    return order != 0 ? order : strcmp(left->program, right->program);
}

int seep_diff_set_make(const struct seep_report *const *before,
                       size_t before_count,
                       const struct seep_report *const *now, size_t now_count,
                       struct seep_diff_set *ret_set)
{
    struct seep_diff_set set = {.pairs =
                                    calloc(now_count + 1, sizeof(*set.pairs))};
    struct side left = {.count = 0};
    struct side right = {.count = 0};
    int error = set.pairs == NULL ? -ENOMEM : 0;

    if (error == 0) {
        error = open_side(before, before_count, &left);
    }
    if (error == 0) {
        error = open_side(now, now_count, &right);
    }
    if (error == 0) {
        error = add_pairs(&set, &left, &right);
    }
    close_side(&left);
    close_side(&right);
    if (error < 0) {
        seep_diff_set_close(&set);
        return error;
    }
    if (set.count > 1) {
        qsort(set.pairs, set.count, sizeof(*set.pairs), compare_pairs);
    }
    *ret_set = set;
    return 0;
}

void seep_diff_set_close(struct seep_diff_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        seep_diff_fini(&set->pairs[i].diff);
        free(set->pairs[i].program);
        free(set->pairs[i].before);
        free(set->pairs[i].now);
    }
    free(set->pairs);
    free(set->only_before);
    free(set->only_now);
    free(set->before_name);
    free(set->now_name);
}

int seep_diff_set_exit(const struct seep_diff_set *set)
{
    enum seep_diff_answer answer = seep_diff_set_answer(set);

    if (answer == SEEP_DIFF_LEAKS) {
        return SEEP_EXIT_OVER_LIMIT;
    }
    if (set->refused_count > 0) {
        return SEEP_EXIT_FAILED;
    }
    return answer == SEEP_DIFF_FINE ? SEEP_EXIT_FINE : SEEP_EXIT_INSUFFICIENT;
}
