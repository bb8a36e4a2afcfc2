/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which reports are one family, and what it comes to.
 *
 * Invariant: that of family.h. What members have in common comes first, the
 * line through children next, then the families.
 */
#include "reader/judge/family.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What the members of a family have in common.
 *
 * Invariant: a number counts as that of a replica only where it stands for
 * itself (--port=8080, tracker_fd=5) or behind a word for replicas (worker3,
 * gpu0): not in 7b, gpt2 or 1.5, which name other models.
 */

#define LABELS_MAX 64U /* of one process; the others do not count */

static const char *const replica_words[] = {
    "cuda", "gpu", "pid", "port", "rank", "replica", "shard", "worker",
};
static const char *const replica_labels[] = {"rank", "replica", "worker"};

static bool is_letter(char byte)
{
    return isalpha((unsigned char)byte) || (unsigned char)byte >= 0x80;
}

/* Does one of the words for replicas end at @at? */
static bool is_behind_word(const char *text, const char *at)
{
    size_t before = 0;

    while (at - before > text && is_letter(at[-(ptrdiff_t)before - 1])) {
        before++;
    }
    for (size_t i = 0; i < sizeof(replica_words) / sizeof(*replica_words);
         i++) {
        if (strlen(replica_words[i]) == before &&
            strncmp(replica_words[i], at - before, before) == 0) {
            return true;
        }
    }
    return before == 0;
}

/* "1.5" is a version, "worker.1.log" is not. */
static bool is_fraction(const char *text, const char *at, const char *end)
{
    return (*end == '.' && isdigit((unsigned char)end[1])) ||
           (at - text >= 2 && at[-1] == '.' && isdigit((unsigned char)at[-2]));
}

static void put_argument(FILE *file, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        size_t digits = strspn(at, "0123456789");
        const char *end = at + digits;

        if (digits == 0) {
            fputc(*at++, file);
            continue;
        }
        if (!is_letter(*end) && is_behind_word(text, at) &&
            !is_fraction(text, at, end)) {
            fputc('#', file);
        } else {
            fwrite(at, 1, digits, file);
        }
        at = end;
    }
    fputc('\0', file);
}

/* It may have NULs in it. */
struct text {
    char *at;
    size_t length;
};

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a;
    const struct text *right = b;
    size_t length = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->at, right->at, length);

    return order != 0 ? order
                      : (left->length > right->length) -
                            (left->length < right->length);
}

static bool is_replica_label(const char *label, size_t length)
{
    const char *equals = memchr(label, '=', length);
    size_t key = equals != NULL ? (size_t)(equals - label) : length;

    for (size_t i = 0; i < sizeof(replica_labels) / sizeof(*replica_labels);
         i++) {
        if (strlen(replica_labels[i]) == key &&
            memcmp(replica_labels[i], label, key) == 0) {
            return true;
        }
    }
    return false;
}

/* In an order of their own: who gave them may have had another. */
static void put_labels(FILE *file, const char *labels)
{
    struct text found[LABELS_MAX];
    size_t count = 0;

    for (const char *at = labels; *at != '\0' && count < LABELS_MAX;) {
        size_t length = strcspn(at, ",");

        if (length > 0 && !is_replica_label(at, length)) {
            found[count++] = (struct text){(char *)at, length};
        }
        at += length + (at[length] == ',');
    }
    qsort(found, count, sizeof(*found), compare_texts);
    for (size_t i = 0; i < count; i++) {
        fwrite(found[i].at, 1, found[i].length, file);
        fputc(',', file);
    }
}

/* What two members have in common, to be freed. */
static int make_key(const struct seep_report *report, struct text *ret_key)
{
    FILE *file = open_memstream(&ret_key->at, &ret_key->length);
    bool is_whole;

    if (file == NULL) {
        return -ENOMEM;
    }
    fputs(report->host != NULL ? report->host : "", file);
    fputc('\0', file);
    fputs(report->executable != NULL ? report->executable : "", file);
    fputc('\0', file);
    put_labels(file, report->labels != NULL ? report->labels : "");
    fputc('\0', file);
    for (size_t i = 0; i < report->argument_count; i++) {
        put_argument(file, report->arguments[i]);
    }
    is_whole = ferror(file) == 0;
    return fclose(file) == 0 && is_whole ? 0 : -ENOMEM;
}

/*
 * A line through children, by least squares. Invariant: an input that is no
 * number, or has no spread, gives UNTOLD.
 *
 * The standard error is the larger of that of least squares and of HC3
 * (MacKinnon and White 1985), since children that run longer scatter more.
 */

#define TWO_SIDED 0.05
#define LINE_MIN 6 /* of fewer children no line is drawn */
/* Of what would be kept if all grew from nothing: a tight interval is within
 * a quarter of it. */
#define ONCE_SHARE 0.25
/* In the longer of the children it goes on by at least so much of it. */
#define GOES_ON_SHARE 0.5

const char *seep_family_trend_name(enum seep_family_trend trend)
{
    static const char *const names[] = {SEEP_FAMILY_TRENDS(SEEP_NAME_ALONE)};

    return (unsigned)trend < SEEP_FAMILY_TREND_COUNT ? names[trend] : "";
}

struct line {
    double slope;
    double error; /* standard */
    double mean_x;
    double mean_y;
    double sum_xx; /* about the mean */
};

/* Of the children whose length is at least @least. @return how many */
static size_t mean_of(const double *x, const double *y, size_t count,
                      double least, struct line *line)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (x[i] >= least) {
            line->mean_x += x[i];
            line->mean_y += y[i];
            used++;
        }
    }
    line->mean_x /= (double)used;
    line->mean_y /= (double)used;
    return used;
}

static double error_of(const double *x, const double *y, size_t count,
                       double least, size_t used, const struct line *line)
{
    double squares = 0;
    double robust = 0;

    for (size_t i = 0; i < count; i++) {
        double dx = x[i] - line->mean_x;
        double rest = y[i] - line->mean_y - line->slope * dx;
        double lever = 1 / (double)used + dx * dx / line->sum_xx;

        if (x[i] >= least) {
            squares += rest * rest;
            robust += pow(dx * rest / fmax(1 - lever, 1e-3), 2);
        }
    }
    return fmax(sqrt(squares / ((double)used - 2) / line->sum_xx),
                sqrt(robust) / line->sum_xx);
}

static bool fit(const double *x, const double *y, size_t count, double least,
                double tail, struct line *ret_line,
                struct seep_interval *ret_slope)
{
    struct line line = {0};
    double half;
    size_t used = mean_of(x, y, count, least, &line);
    double sum_xy = 0;

    for (size_t i = 0; i < count; i++) {
        if (x[i] >= least) {
            line.sum_xx += (x[i] - line.mean_x) * (x[i] - line.mean_x);
            sum_xy += (x[i] - line.mean_x) * (y[i] - line.mean_y);
        }
    }
    /* Lengths that differ by less than 2 % do not differ. */
    if (used < 5 ||
        !(line.sum_xx > 4e-4 * (double)used * line.mean_x * line.mean_x)) {
        return false;
    }
    line.slope = sum_xy / line.sum_xx;
    line.error = error_of(x, y, count, least, used, &line);
    half = line.error * seep_family_student(tail, used - 2);
    *ret_slope = seep_interval_around(line.slope, half);
    *ret_line = line;
    return isfinite(half) && isfinite(line.slope);
}

/* A cache that fills has grown less in those that run longer, a leak not. */
static bool goes_on(const double *length, const double *bytes, size_t count,
                    const struct line *all)
{
    struct seep_interval upper;
    struct line line;

    return fit(length, bytes, count, all->mean_x, TWO_SIDED / 2, &line,
               &upper) &&
           upper.low > 0 && upper.estimate >= GOES_ON_SHARE * all->slope;
}

static enum seep_family_trend trend_of(const struct line *line,
                                       const struct seep_interval *slope,
                                       size_t count, double floor_bytes)
{
    double from_nothing = line->mean_y / line->mean_x;
    double grown = slope->estimate * line->mean_x * (double)count;

    if (slope->low > 0 && grown >= floor_bytes) {
        return SEEP_FAMILY_MAY_GROW;
    }
    return slope->high < ONCE_SHARE * from_nothing ||
                   slope->high * line->mean_x * (double)count < floor_bytes
               ? SEEP_FAMILY_ONCE
               : SEEP_FAMILY_UNTOLD;
}

void seep_family_kept_test(const double *length, const double *bytes,
                           size_t count, size_t line_count, double floor_bytes,
                           struct seep_family_kept *ret_kept)
{
    double tail = TWO_SIDED / 2 / (double)(line_count > 0 ? line_count : 1);
    struct seep_family_kept kept = {.trend = SEEP_FAMILY_UNTOLD};
    struct line line;

    for (size_t i = 0; i < count; i++) {
        kept.count += bytes[i] > 0;
        kept.bytes += bytes[i];
    }
    if (count >= LINE_MIN &&
        fit(length, bytes, count, 0, tail, &line, &kept.slope)) {
        kept.has_slope = true;
        kept.trend = trend_of(&line, &kept.slope, count, floor_bytes);
        if (kept.trend == SEEP_FAMILY_MAY_GROW &&
            goes_on(length, bytes, count, &line)) {
            kept.trend = SEEP_FAMILY_GROWS;
        }
    }
    *ret_kept = kept;
}

#define NS_PER_S 1e9
#define FNV_OFFSET UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

struct keyed {
    struct text key;
    const struct seep_report *report;
    size_t index; /* in what was given: the worst come first */
};

bool seep_family_is_brief(const struct seep_report *report)
{
    return report->verdict.class == SEEP_VERDICT_INSUFFICIENT &&
           report->inert == SEEP_INERT_NONE &&
           report->duration_s < SEEP_FAMILY_BRIEF_S;
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *left = a;
    const struct keyed *right = b;
    int order = compare_texts(&left->key, &right->key);

    return order != 0
               ? order
               : (left->index > right->index) - (left->index < right->index);
}

static void put_id(const struct text *key, char id[20])
{
    uint64_t hash = FNV_OFFSET;

    for (size_t i = 0; i < key->length; i++) {
        hash = (hash ^ (unsigned char)key->at[i]) * FNV_PRIME;
    }
    snprintf(id, 20, "%016" PRIx64, hash);
}

static double start_of(const struct seep_report *report)
{
    return (double)report->start_realtime_ns / NS_PER_S;
}

double seep_family_end_s(const struct seep_report *report)
{
    return start_of(report) + report->duration_s;
}

void seep_family_add_rate(struct seep_interval *sum,
                          const struct seep_interval *rate)
{
    sum->estimate += rate->estimate;
    sum->low += pow(rate->estimate - rate->low, 2);
    sum->high += pow(rate->high - rate->estimate, 2);
}

void seep_family_finish_rate(struct seep_interval *sum)
{
    sum->low = sum->estimate - sqrt(sum->low);
    sum->high = sum->estimate + sqrt(sum->high);
}

static bool runs(const struct seep_report *report)
{
    return report->state == SEEP_STATE_RUNNING;
}

static bool is_at(const struct seep_report *report, double at_s)
{
    return start_of(report) <= at_s && seep_family_end_s(report) >= at_s;
}

struct edge {
    double at_s;
    int step; /* 1 begins, -1 has ended */
};

/* Who begins when another ends was there with it. */
static int compare_edges(const void *a, const void *b)
{
    const struct edge *left = a;
    const struct edge *right = b;

    return left->at_s < right->at_s   ? -1
           : left->at_s > right->at_s ? 1
                                      : right->step - left->step;
}

/* The last time that the most of them were there; 0 without memory. */
static double fullest_of(const struct seep_family *family)
{
    struct edge *edges = calloc(2 * family->count, sizeof(*edges));
    double at_s = 0;
    long now = 0;
    long most = 0;

    if (edges == NULL) {
        return 0;
    }
    for (size_t i = 0; i < family->count; i++) {
        edges[2 * i] = (struct edge){start_of(family->members[i]), 1};
        edges[2 * i + 1] =
            (struct edge){seep_family_end_s(family->members[i]), -1};
    }
    qsort(edges, 2 * family->count, sizeof(*edges), compare_edges);
    for (size_t i = 0; i < 2 * family->count; i++) {
        now += edges[i].step;
        if (edges[i].step > 0 && now >= most) {
            most = now;
            at_s = edges[i].at_s;
        }
    }
    free(edges);
    return at_s;
}

static void find_together(struct seep_family *family,
                          const struct seep_report **room)
{
    double at_s = family->running_count > 0 ? 0 : fullest_of(family);

    family->together = room;
    for (size_t i = 0; i < family->count; i++) {
        const struct seep_report *report = family->members[i];

        if (family->running_count > 0 ? runs(report) : is_at(report, at_s)) {
            room[family->together_count++] = report;
        }
    }
}

static bool is_reassuring(enum seep_verdict_class class)
{
    return class == SEEP_VERDICT_STEADY || class == SEEP_VERDICT_BOUNDED ||
           class == SEEP_VERDICT_RETENTION;
}

/* What the children keep with each second is worse than what one of them
 * could tell; that they keep it once is better, where none else is open. */
static void judge_children(struct seep_family *family)
{
    const struct seep_family_children *children = &family->children;
    enum seep_verdict_class class = family->class;

    if (children->count == 0) {
        return;
    }
    if (children->trend == SEEP_FAMILY_GROWS) {
        class = SEEP_VERDICT_LEAK;
    } else if (children->trend == SEEP_FAMILY_MAY_GROW) {
        class = SEEP_VERDICT_SUSPECT;
    } else if (children->trend == SEEP_FAMILY_ONCE && family->open_count == 0 &&
               class == SEEP_VERDICT_INSUFFICIENT) {
        family->class = SEEP_VERDICT_BOUNDED;
        return;
    }
    family->class = class < family->class ? class : family->class;
}

static void judge(struct seep_family *family)
{
    family->class = SEEP_VERDICT_COUNT;
    for (size_t i = 0; i < family->count; i++) {
        const struct seep_report *report = family->members[i];
        enum seep_verdict_class class = report->verdict.class;

        family->running_count += runs(report);
        if (seep_family_is_brief(report) || class >= SEEP_VERDICT_COUNT) {
            continue;
        }
        family->lasting_count++;
        family->by_class[class]++;
        if (class < family->class) {
            family->class = class;
            family->worst = report;
        }
    }
    if (family->worst == NULL) {
        family->class = SEEP_VERDICT_INSUFFICIENT;
        family->worst = family->members[0];
    }
    if (is_reassuring(family->class) &&
        family->by_class[SEEP_VERDICT_INSUFFICIENT] > 0) {
        family->class = SEEP_VERDICT_INSUFFICIENT;
    }
}

static int finish(struct seep_family *family, const struct seep_report **room)
{
    int error;

    judge(family);
    find_together(family, room);
    error = seep_family_add_sites(family);
    if (error < 0) {
        return error;
    }
    judge_children(family);
    seep_family_add_growth(family);
    return 0;
}

static int open_keys(const struct seep_report *const *reports, size_t count,
                     struct keyed *keyed)
{
    for (size_t i = 0; i < count; i++) {
        keyed[i].report = reports[i];
        keyed[i].index = i;
        if (make_key(reports[i], &keyed[i].key) != 0) {
            return -ENOMEM;
        }
    }
    qsort(keyed, count, sizeof(*keyed), compare_keyed);
    return 0;
}

static int fill(struct seep_families *families, const struct keyed *keyed,
                size_t count)
{
    size_t next;
    int error = 0;

    for (size_t first = 0; first < count && error == 0; first = next) {
        struct seep_family *family = &families->list[families->count++];

        family->members = &families->members[first];
        put_id(&keyed[first].key, family->id);
        for (next = first; next < count && compare_texts(&keyed[first].key,
                                                         &keyed[next].key) == 0;
             next++) {
            families->members[next] = keyed[next].report;
            family->count++;
        }
        error = finish(family, &families->together[first]);
    }
    return error;
}

static double growth_of(const struct seep_family *family)
{
    return family->has_growth ? family->growth_bytes_per_s.low : 0;
}

/* As reports are: class, then growth; a family of brief members comes last. */
static int compare_families(const void *a, const void *b)
{
    const struct seep_family *left = a;
    const struct seep_family *right = b;
    double order = growth_of(right) - growth_of(left);

    if ((left->lasting_count == 0) != (right->lasting_count == 0)) {
        return left->lasting_count == 0 ? 1 : -1;
    }
    if (left->class != right->class) {
        return left->class < right->class ? -1 : 1;
    }
    return order < 0 ? -1 : order > 0 ? 1 : strcmp(left->id, right->id);
}

int seep_families_make(const struct seep_report *const *reports, size_t count,
                       struct seep_families *ret_families)
{
    /* One more: none is no failure. */
    struct seep_families families = {
        .list = calloc(count + 1, sizeof(*families.list)),
        .members = calloc(count + 1, sizeof(*families.members)),
        .together = calloc(count + 1, sizeof(*families.together)),
    };
    struct keyed *keyed = calloc(count + 1, sizeof(*keyed));
    int error = -ENOMEM;

    if (families.list != NULL && families.members != NULL &&
        families.together != NULL && keyed != NULL) {
        error = open_keys(reports, count, keyed);
    }
    if (error == 0) {
        error = fill(&families, keyed, count);
    }
    for (size_t i = 0; keyed != NULL && i < count; i++) {
        free(keyed[i].key.at);
    }
    free(keyed);
    if (error < 0) {
        seep_families_fini(&families);
        return error;
    }
    qsort(families.list, families.count, sizeof(*families.list),
          compare_families);
    *ret_families = families;
    return 0;
}

void seep_families_fini(struct seep_families *families)
{
    for (size_t i = 0; i < families->count; i++) {
        free(families->list[i].sites);
        free(families->list[i].faces);
    }
    free(families->list);
    free(families->members);
    free(families->together);
}

static bool is_of_moments(const struct seep_family *family)
{
    return family->lasting_count == 0 &&
           family->class == SEEP_VERDICT_INSUFFICIENT;
}

enum seep_verdict_class
seep_families_class(const struct seep_families *families)
{
    enum seep_verdict_class class = SEEP_VERDICT_COUNT;

    for (size_t i = 0; i < families->count; i++) {
        const struct seep_family *family = &families->list[i];

        if (!is_of_moments(family) && family->class < class) {
            class = family->class;
        }
    }
    return class == SEEP_VERDICT_COUNT ? SEEP_VERDICT_INSUFFICIENT : class;
}

const struct seep_report *
seep_families_first(const struct seep_families *families,
                    const struct seep_report *worst)
{
    const struct seep_report *first = worst;
    enum seep_verdict_class class = worst->verdict.class;

    for (size_t i = 0; i < families->count; i++) {
        const struct seep_family *family = &families->list[i];

        if (family->class < class) {
            class = family->class;
            first = family->site_count > 0 ? family->sites[0].report
                                           : family->worst;
        }
    }
    return first;
}
