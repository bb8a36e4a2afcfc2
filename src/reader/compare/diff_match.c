/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which call site of one run is which of another.
 *
 * Ids have lines and, where there are none, offsets in them, and lines move: a
 * site that has the id of another by chance of a shift is not that one. So
 * sites are put together by function first, and within it by the shift that
 * fits most of them.
 *
 * Invariant: reports are hostile: what is tried for all pairs is bounded.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "reader/compare/diff.h"
#include "reader/symbols/where.h"

#define PAIRS_MAX 4096U /* of one function; beyond it, ids alone */
#define GROWING_WEIGHT 3U
#define SIZE_RATIO 1.25
#define LINE_MAX_KNOWN (1L << 30)

struct key {
    const struct seep_report_site *site;
    size_t index;
    uint64_t function; /* space, device, file or module, function */
    uint64_t around;   /* the names of the other frames, and the file */
    long line;         /* 0: not known */
    bool grows;
    size_t match;
};

struct list {
    struct key *keys;
    size_t count;
};

/* Two of one function. */
struct pair {
    struct key *before;
    struct key *now;
    unsigned long off; /* lines beside the shift */
    bool is_other_id;
    bool is_elsewhere; /* the names around it differ */
    bool is_other_size;
};

static uint64_t add_text(uint64_t hash, const char *text, size_t length)
{
    return seep_hash_add(hash, seep_hash_bytes(text, length));
}

/* Of "libfoo+0x40": how far is a matter of the build. */
static size_t length_of_name(const char *where)
{
    const char *plus = strrchr(where, '+');
    bool is_offset = plus != NULL && plus[1] == '0' && plus[2] == 'x' &&
                     plus[3 + strspn(plus + 3, "0123456789abcdef")] == '\0';

    return is_offset ? (size_t)(plus - where) : strlen(where);
}

static uint64_t add_frame(uint64_t hash, const struct seep_report_frame *frame)
{
    const char *name = frame->function;

    if (*name == '\0') {
        name = seep_text_base_name(frame->module);
    }
    return add_text(hash, name, strlen(name));
}

/* Lines are told by their names alone: 0 where there are none. */
static uint64_t around_of(const struct seep_report_site *site, uint64_t file)
{
    uint64_t hash = file;

    if (site->frame_count < 2) {
        return 0;
    }
    for (size_t i = 0; i < site->frame_count; i++) {
        hash = i == site->where_frame ? seep_hash_add(hash, 1)
                                      : add_frame(hash, site->frames[i]);
    }
    return hash;
}

static bool grows(const struct seep_report_site *site)
{
    return site->has_growth && (seep_class_may_leak(site->class) ||
                                site->class == SEEP_CLASS_MINOR);
}

/* Small enough that a difference of differences fits. */
static long line_of(const char *digits, const char **ret_behind)
{
    char *behind;
    long line = strtol(digits, &behind, 10);

    *ret_behind = behind;
    return line < LINE_MAX_KNOWN ? line : LINE_MAX_KNOWN;
}

/* "serve.py:31 handle" is file, line and function; "libfoo+0x1240" is what is
 * known of stripped code. */
static uint64_t function_of(const struct seep_report_site *site, int device,
                            uint64_t *ret_file, long *ret_line)
{
    const char *where = site->where == NULL ? "" : site->where;
    size_t file = strcspn(where, ":");
    const char *behind = where + file;
    uint64_t hash = seep_hash_add(SEEP_HASH_SEED, site->space);

    *ret_line = 0;
    if (*behind == ':' && behind[1] >= '0' && behind[1] <= '9') {
        *ret_line = line_of(behind + 1, &behind);
    } else {
        behind = where + strcspn(where, " ");
        file = length_of_name(where) < (size_t)(behind - where)
                   ? length_of_name(where)
                   : (size_t)(behind - where);
    }
    *ret_file = add_text(seep_hash_add(hash, (uint64_t)device), where, file);
    return add_text(*ret_file, behind, length_of_name(behind));
}

uint64_t seep_diff_function(const struct seep_report_site *site)
{
    uint64_t file;
    long line;

    return function_of(site, -1, &file, &line);
}

static void fill(struct key *key, const struct seep_report_site *site,
                 size_t index)
{
    uint64_t file;

    *key = (struct key){.site = site,
                        .index = index,
                        .grows = grows(site),
                        .match = SEEP_DIFF_NONE};
    key->function = function_of(site, site->device, &file, &key->line);
    key->around = around_of(site, file);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *left = a;
    const struct key *right = b;
    int order = compare_numbers(left->function, right->function);

    order = order != 0
                ? order
                : (left->line > right->line) - (left->line < right->line);
    order = order != 0 ? order : strcmp(left->site->id, right->site->id);
    return order != 0 ? order : compare_numbers(left->index, right->index);
}

static int compare_around(const void *a, const void *b)
{
    const struct key *left = *(struct key *const *)a;
    const struct key *right = *(struct key *const *)b;

    return compare_numbers(left->around, right->around);
}

static int make_list(const struct seep_report_site *const *sites, size_t count,
                     struct list *ret_list)
{
    struct key *keys = calloc(count + 1, sizeof(*keys));

    if (keys == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        fill(&keys[i], sites[i], i);
    }
    qsort(keys, count, sizeof(*keys), compare_keys);
    *ret_list = (struct list){keys, count};
    return 0;
}

/* How well does it fit if all lines have moved by @shift? */
static size_t weigh_shift(const struct list *before, const struct list *now,
                          long shift)
{
    size_t weight = 0;
    size_t j = 0;

    for (size_t i = 0; i < before->count; i++) {
        long line = before->keys[i].line + shift;

        while (j < now->count && now->keys[j].line < line) {
            j++;
        }
        if (j < now->count && now->keys[j].line == line) {
            weight += before->keys[i].grows && now->keys[j].grows
                          ? GROWING_WEIGHT
                          : 1;
            j++;
        }
    }
    return weight;
}

static bool is_same_around(const struct key *before, const struct key *now)
{
    return before->around != 0 && before->around == now->around;
}

/* A line goes on asking for what it asked for, more or less. */
static bool is_other_size(const struct seep_report_site *before,
                          const struct seep_report_site *now)
{
    double left = (double)before->allocated_bytes * now->allocated_count;
    double right = (double)now->allocated_bytes * before->allocated_count;

    return left > SIZE_RATIO * right || right > SIZE_RATIO * left;
}

/* The best one of all that two sites tell of; of equal ones that whose names
 * agree, then the least. */
static long find_shift(const struct list *before, const struct list *now)
{
    size_t most = weigh_shift(before, now, 0);
    bool most_agrees = true;
    long found = 0;

    for (size_t i = 0; i < before->count; i++) {
        for (size_t j = 0; j < now->count; j++) {
            long shift = now->keys[j].line - before->keys[i].line;
            size_t weight = weigh_shift(before, now, shift);
            bool agrees = is_same_around(&before->keys[i], &now->keys[j]);

            if (weight > most ||
                (weight == most && found != 0 &&
                 (agrees > most_agrees ||
                  (agrees == most_agrees && labs(shift) < labs(found))))) {
                most = weight;
                most_agrees = agrees;
                found = shift;
            }
        }
    }
    return found;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *left = a;
    const struct pair *right = b;
    int order = (left->off != 0) - (right->off != 0);

    order = order != 0 ? order : left->is_other_id - right->is_other_id;
    order = order != 0 ? order : left->is_elsewhere - right->is_elsewhere;
    order = order != 0 ? order : left->is_other_size - right->is_other_size;
    order = order != 0 ? order : compare_numbers(left->off, right->off);
    order = order != 0 ? order
                       : compare_numbers(left->now->index, right->now->index);
    return order != 0
               ? order
               : compare_numbers(left->before->index, right->before->index);
}

static void tie(struct key *before, struct key *now)
{
    if (before->match == SEEP_DIFF_NONE && now->match == SEEP_DIFF_NONE) {
        before->match = now->index;
        now->match = before->index;
    }
}

/* Everything of one function: the nearest first. */
static int match_function(const struct list *before, const struct list *now)
{
    long shift = find_shift(before, now);
    size_t count = 0;
    struct pair *pairs = malloc(before->count * now->count * sizeof(*pairs));

    if (pairs == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < before->count; i++) {
        for (size_t j = 0; j < now->count; j++) {
            struct key *left = &before->keys[i];
            struct key *right = &now->keys[j];

            pairs[count++] = (struct pair){
                .before = left,
                .now = right,
                .off = (unsigned long)labs(right->line - left->line - shift),
                .is_other_id =
                    shift == 0 && strcmp(left->site->id, right->site->id) != 0,
                .is_elsewhere = !is_same_around(left, right),
                .is_other_size = is_other_size(left->site, right->site),
            };
        }
    }
    qsort(pairs, count, sizeof(*pairs), compare_pairs);
    for (size_t i = 0; i < count; i++) {
        tie(pairs[i].before, pairs[i].now);
    }
    free(pairs);
    return 0;
}

/* Too many of one function: those of one id, which are in order in both. */
static void match_ids(const struct list *before, const struct list *now)
{
    size_t j = 0;

    for (size_t i = 0; i < before->count && j < now->count; i++) {
        const struct key *key = &before->keys[i];

        while (j < now->count &&
               (now->keys[j].line < key->line ||
                (now->keys[j].line == key->line &&
                 strcmp(now->keys[j].site->id, key->site->id) < 0))) {
            j++;
        }
        if (j < now->count &&
            strcmp(now->keys[j].site->id, key->site->id) == 0) {
            tie(&before->keys[i], &now->keys[j++]);
        }
    }
}

static struct list function_from(const struct list *list, size_t first)
{
    size_t end = first;

    while (end < list->count &&
           list->keys[end].function == list->keys[first].function) {
        end++;
    }
    return (struct list){&list->keys[first], end - first};
}

static int match_functions(const struct list *before, const struct list *now)
{
    size_t i = 0;
    size_t j = 0;
    int error = 0;

    while (error == 0 && i < before->count && j < now->count) {
        struct list left = function_from(before, i);
        struct list right = function_from(now, j);
        int order =
            compare_numbers(left.keys[0].function, right.keys[0].function);

        i += order <= 0 ? left.count : 0;
        j += order >= 0 ? right.count : 0;
        if (order != 0) {
            continue;
        }
        if (left.count > PAIRS_MAX / right.count) {
            match_ids(&left, &right);
        } else {
            error = match_function(&left, &right);
        }
    }
    return error;
}

/* What grows, is left over, and has names around it. */
static size_t leftovers(const struct list *list, struct key **out)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct key *key = &list->keys[i];

        if (key->match == SEEP_DIFF_NONE && key->grows && key->around != 0) {
            out[count++] = key;
        }
    }
    qsort(out, count, sizeof(*out), compare_around);
    return count;
}

static size_t count_equal(struct key *const *keys, size_t count)
{
    size_t equal = 0;

    while (equal < count && keys[equal]->around == keys[0]->around) {
        equal++;
    }
    return equal;
}

/* A function that was renamed is called by the same, and calls the same. */
static int match_renamed(const struct list *before, const struct list *now)
{
    struct key **left =
        malloc((before->count + now->count + 1) * sizeof(struct key *));
    struct key **right = left + before->count;
    size_t i = 0;
    size_t j = 0;

    if (left == NULL) {
        return -ENOMEM;
    }
    size_t left_count = leftovers(before, left);
    size_t right_count = leftovers(now, right);
    while (i < left_count && j < right_count) {
        size_t here = count_equal(left + i, left_count - i);
        size_t there = count_equal(right + j, right_count - j);
        int order = compare_numbers(left[i]->around, right[j]->around);

        if (order == 0 && here == 1 && there == 1) {
            tie(left[i], right[j]);
        }
        i += order <= 0 ? here : 0;
        j += order >= 0 ? there : 0;
    }
    free(left);
    return 0;
}

int seep_diff_match(const struct seep_report_site *const *before,
                    size_t before_count,
                    const struct seep_report_site *const *now, size_t now_count,
                    size_t *ret_match)
{
    struct list left = {NULL, 0};
    struct list right = {NULL, 0};
    int error = make_list(before, before_count, &left);

    if (error == 0) {
        error = make_list(now, now_count, &right);
    }
    if (error == 0) {
        error = match_functions(&left, &right);
    }
    if (error == 0) {
        error = match_renamed(&left, &right);
    }
    for (size_t j = 0; error == 0 && j < right.count; j++) {
        ret_match[right.keys[j].index] = right.keys[j].match;
    }
    free(left.keys);
    free(right.keys);
    return error;
}
