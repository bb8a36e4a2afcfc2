/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See diff_set.h. Invariant: a program is compared with itself only. */
#include "diff_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "words.h"

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

static size_t select_of(const struct side *side, const char *program,
                        const struct seep_report **out)
{
    size_t count = 0;

    for (size_t i = 0; i < side->count; i++) {
        if (is_of(side, i, program)) {
            out[count++] = side->reports[i];
        }
    }
    return count;
}

static bool has(const struct side *side, const char *program)
{
    for (size_t i = 0; i < side->count; i++) {
        if (is_of(side, i, program)) {
            return true;
        }
    }
    return false;
}

static bool is_one_program(const struct side *side)
{
    for (size_t i = 1; i < side->count; i++) {
        if (!is_of(side, i, side->programs[0])) {
            return false;
        }
    }
    return side->count > 0;
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

enum seep_diff_answer seep_diff_set_answer(const struct seep_diff_set *set)
{
    enum seep_diff_answer worst =
        set->count == 0 ? SEEP_DIFF_INSUFFICIENT : SEEP_DIFF_FINE;

    for (size_t i = 0; i < set->count; i++) {
        enum seep_diff_answer answer = seep_diff_answer_of(&set->pairs[i].diff);

        worst = answer > worst ? answer : worst;
    }
    return worst;
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
