/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one thing holds of several rows; see common.h.
 *
 * Invariant: a row is in one of them at most, so that no byte is counted twice.
 */
#include "words/common.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "held/kept.h"
#include "words/held.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

/* So much of what most is held by has to be held by what is lower down, for
 * that to be told instead: as src/held chooses a holder of blocks. */
#define LOWER_SHARE 0.75
/* So many times what the first row grows by is news. */
#define NEWS_TIMES 1.25
#define LONG_AGO_TIMES 1.25

/* A clear answer, of a row; or of many stacks, which have that of their line:
 * thousands, where there are 64 answers. */
struct row {
    const struct seep_held_kept *kept;
    const struct seep_held_group *group;
    double growth;
    size_t site_count;
    bool is_taken;
};

struct rows {
    const struct seep_report *report;
    struct row *list;
    size_t count;
    bool *holds; /* by two rows: what holds the first has what the other keeps,
                    too */
};

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* What is asked of a line is no answer for a function that has it, and more. */
static bool is_asked(const struct seep_report *report,
                     const struct seep_report_site *site)
{
    const struct seep_held_kept *kept = site->held;

    return seep_words_held_is_wanted(report, site) && kept != NULL &&
           kept->answer != NULL &&
           (is(kept->site_id, site->id) || is(kept->site_id, site->line_id));
}

static bool is_known(const struct seep_report *report,
                     const struct seep_report_site *site)
{
    const struct seep_held_answer *answer;

    if (!is_asked(report, site) || site->backs_tensors) {
        return false;
    }
    answer = site->held->answer;
    return answer->asked_count >= SEEP_WORDS_HELD_LEAST &&
           answer->group_count > 0 &&
           answer->groups[0].end == SEEP_HELD_END_HELD &&
           answer->groups[0].holder < answer->groups[0].step_count &&
           seep_words_held_share(answer) >= SEEP_WORDS_HELD_CLEAR;
}

/*
 * The same thing?
 */

/* Does the holder have all by one name? Then the variable is the thing, and
 * what it refers to may be another each time. */
static bool is_variable(const struct seep_held_group *group)
{
    const struct seep_held_step *step = &group->steps[group->holder];

    return group->shares_edge && *step->edge_name != '\0' &&
           *step->edge_name != '[' &&
           (step->edge == SEEP_HELD_EDGE_ATTRIBUTE ||
            (step->edge == SEEP_HELD_EDGE_KEY &&
             step->kind == SEEP_HELD_KIND_MODULE));
}

/* What has many things, one beside the other, is none. */
static bool is_namespace(const struct seep_held_step *step)
{
    return step->kind == SEEP_HELD_KIND_MODULE ||
           step->kind == SEEP_HELD_KIND_CLASS ||
           step->kind == SEEP_HELD_KIND_STACK ||
           step->kind == SEEP_HELD_KIND_MAPPING ||
           (step->kind == SEEP_HELD_KIND_FRAME && *step->name == '\0');
}

static bool is_thing(const struct seep_held_group *group)
{
    return group->call_count <= 1 &&
           (is_variable(group) || !is_namespace(&group->steps[group->holder]));
}

static bool is_same_edge(const struct seep_held_step *a,
                         const struct seep_held_step *b)
{
    return a->edge == b->edge && is(a->edge_name, b->edge_name) &&
           is(a->edge_function, b->edge_function) &&
           ((a->edge != SEEP_HELD_EDGE_OFFSET &&
             a->edge != SEEP_HELD_EDGE_NONE) ||
            a->offset_bytes == b->offset_bytes);
}

/* Does the step have one thing by this edge, and not many? */
static bool names_one(const struct seep_held_step *step)
{
    switch (step->edge) {
    case SEEP_HELD_EDGE_NONE:
    case SEEP_HELD_EDGE_DATA:
    case SEEP_HELD_EDGE_OFFSET:
    case SEEP_HELD_EDGE_LOCAL:
        return true;
    case SEEP_HELD_EDGE_ATTRIBUTE:
        return *step->edge_name != '[';
    case SEEP_HELD_EDGE_KEY:
        return step->kind == SEEP_HELD_KIND_MODULE && *step->edge_name != '\0';
    default:
        return false;
    }
}

static bool is_same_kind(const struct seep_held_step *a,
                         const struct seep_held_step *b)
{
    return a->kind == b->kind && is(a->name, b->name) &&
           is(a->function, b->function) && is(a->file, b->file);
}

/*
 * The rest of the ways, above step @at of @a and @to of @b, to one root by the
 * same words. @is_one_place: each of them leads to one thing, so that what is
 * below is the same, whatever its address: a row of pointers has another one
 * each time that it grows.
 */
static bool is_same_way(const struct seep_held_group *a, size_t at,
                        const struct seep_held_group *b, size_t to,
                        bool *ret_is_one_place)
{
    const struct seep_held_step *root = &a->steps[a->step_count - 1];

    if (a->step_count - at != b->step_count - to) {
        return false;
    }
    *ret_is_one_place = root->address != 0 &&
                        root->address == b->steps[b->step_count - 1].address &&
                        at + 1 < a->step_count;
    for (size_t i = 1; at + i < a->step_count; i++) {
        const struct seep_held_step *one = &a->steps[at + i];
        const struct seep_held_step *other = &b->steps[to + i];

        if (!is_same_kind(one, other) || !is_same_edge(one, other)) {
            return false;
        }
        *ret_is_one_place &= names_one(one);
    }
    return true;
}

/* Is step @to of @b what holds @a? Of what was asked at another time an address
 * alone tells nothing: it may be another thing's since. */
static bool is_same(const struct row *a, const struct row *b, size_t to)
{
    const struct seep_held_group *group = a->group;
    const struct seep_held_step *one = &group->steps[group->holder];
    const struct seep_held_step *other = &b->group->steps[to];
    bool is_one_place = false;
    bool is_same_address = one->address != 0 && one->address == other->address;
    bool is_one_asking = a->kept->asked_s == b->kept->asked_s;

    if (!is_same_kind(one, other) ||
        (is_variable(group) &&
         (!is_same_edge(one, other) ||
          (to == b->group->holder && !b->group->shares_edge)))) {
        return false;
    }
    return (is_same_address && is_one_asking) ||
           (is_same_way(group, group->holder, b->group, to, &is_one_place) &&
            (is_same_address || is_one_place));
}

/* What holds @a has all that @b keeps, at what holds that or further up? */
static bool find_above(const struct row *a, const struct row *b)
{
    for (size_t i = b->group->holder; i < b->group->step_count; i++) {
        if (is_same(a, b, i)) {
            return true;
        }
    }
    return false;
}

/*
 * Which rows, and things.
 */

static double growth_of(const struct seep_report_site *site)
{
    return site->has_growth ? site->growth_bytes_per_s.estimate : 0;
}

/* The row of @site's answer; NULL: it is not clear. */
static struct row *row_of(const struct rows *rows,
                          const struct seep_report_site *site)
{
    for (size_t i = 0; is_known(rows->report, site) && i < rows->count; i++) {
        if (rows->list[i].kept == site->held) {
            return &rows->list[i];
        }
    }
    return NULL;
}

static void add_to_rows(struct rows *rows, const struct seep_report_site *site)
{
    struct row *row = row_of(rows, site);

    if (row == NULL) {
        row = &rows->list[rows->count++];
        row->kept = site->held;
        row->group = &site->held->answer->groups[0];
    }
    row->growth += growth_of(site);
    row->site_count++;
}

static int rows_init(struct rows *rows, const struct seep_report *report,
                     size_t asked_count)
{
    rows->report = report;
    rows->list = calloc(asked_count + 1, sizeof(*rows->list));
    if (rows->list == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        if (is_known(report, &report->sites[i])) {
            add_to_rows(rows, &report->sites[i]);
        }
    }
    rows->holds = calloc(rows->count * rows->count + 1, sizeof(*rows->holds));
    if (rows->holds == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < rows->count; i++) {
        for (size_t k = 0; k < rows->count; k++) {
            rows->holds[i * rows->count + k] =
                find_above(&rows->list[i], &rows->list[k]);
        }
    }
    return 0;
}

static bool holds(const struct rows *rows, size_t holder, size_t row)
{
    return rows->holds[holder * rows->count + row];
}

/* What grows by the rows that are left and that @holder's thing has. */
static double sum_of(const struct rows *rows, size_t holder)
{
    double sum = 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (!rows->list[i].is_taken && holds(rows, holder, i)) {
            sum += rows->list[i].growth;
        }
    }
    return sum;
}

static bool may_hold(const struct row *row)
{
    return !row->is_taken && is_thing(row->group);
}

/* What most grows by, or of that the lowest that three quarters are of.
 * SIZE_MAX: nothing is left. */
static size_t choose(const struct rows *rows)
{
    size_t top = SIZE_MAX;
    size_t best = SIZE_MAX;
    double most = 0;
    double least = INFINITY;

    for (size_t i = 0; i < rows->count; i++) {
        double sum = may_hold(&rows->list[i]) ? sum_of(rows, i) : -INFINITY;

        if (top == SIZE_MAX ? isfinite(sum) : sum > most) {
            top = i;
            most = sum;
        }
    }
    for (size_t i = 0; top != SIZE_MAX && i < rows->count; i++) {
        double sum = may_hold(&rows->list[i]) && holds(rows, top, i)
                         ? sum_of(rows, i)
                         : -INFINITY;

        if (sum >= LOWER_SHARE * most && sum < least) {
            best = i;
            least = sum;
        }
    }
    return best == SIZE_MAX ? top : best;
}

static void add_site(struct seep_words_common *common,
                     const struct seep_report_site *site, double *squares)
{
    const struct seep_interval *rate = &site->growth_bytes_per_s;

    common->sites[common->site_count++] = site;
    common->leak_count += site->class == SEEP_CLASS_LEAK;
    common->live_bytes += site->live_bytes;
    if (site->has_growth) {
        double half = (rate->high - rate->low) / 2;

        /* As the verdict adds them up. */
        common->growth_bytes_per_s.estimate += rate->estimate;
        *squares += half * half;
    }
}

static int add_sites(struct seep_words_common *common,
                     const struct seep_report *report, const struct rows *rows,
                     size_t holder, size_t site_count)
{
    double squares = 0;

    common->sites = calloc(site_count, sizeof(struct seep_report_site *));
    if (common->sites == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        const struct row *row = row_of(rows, &report->sites[i]);

        if (row != NULL && !row->is_taken &&
            holds(rows, holder, (size_t)(row - rows->list))) {
            add_site(common, &report->sites[i], &squares);
        }
    }
    common->growth_bytes_per_s = seep_interval_around(
        common->growth_bytes_per_s.estimate, sqrt(squares));
    return 0;
}

/* Take what the thing of @holder has out of @rows: of two answers at least, or
 * it is not together. @return 0 or -ENOMEM */
static int take(struct rows *rows, size_t holder,
                const struct seep_report *report,
                struct seep_words_commons *commons)
{
    struct seep_words_common common = {.held_by = *rows->list[holder].group};
    size_t row_count = 0;
    size_t site_count = 0;
    int error = 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (!rows->list[i].is_taken && holds(rows, holder, i)) {
            row_count++;
            site_count += rows->list[i].site_count;
            common.asked_live_bytes += rows->list[i].kept->live_bytes;
        }
    }
    if (row_count > 1) {
        error = add_sites(&common, report, rows, holder, site_count);
    }
    if (row_count > 1 && error == 0) {
        commons->list[commons->count++] = common;
    }
    /* Whose address is not known is not even the same as itself. */
    for (size_t i = 0; i < rows->count; i++) {
        rows->list[i].is_taken |= i == holder || holds(rows, holder, i);
    }
    return error;
}

static int compare_growth(const void *one, const void *other)
{
    const struct seep_words_common *a = one;
    const struct seep_words_common *b = other;

    return (a->growth_bytes_per_s.estimate < b->growth_bytes_per_s.estimate) -
           (a->growth_bytes_per_s.estimate > b->growth_bytes_per_s.estimate);
}

int seep_words_commons_make(const struct seep_report *report,
                            struct seep_words_commons *ret_commons)
{
    struct seep_words_commons commons = {.list = NULL};
    struct rows rows = {.list = NULL};
    size_t holder;
    int error;

    for (size_t i = 0; i < report->site_count; i++) {
        commons.wanted_count +=
            seep_words_held_is_wanted(report, &report->sites[i]);
        commons.asked_count += is_asked(report, &report->sites[i]);
    }
    error = rows_init(&rows, report, commons.asked_count);
    commons.list = calloc(rows.count + 1, sizeof(*commons.list));
    error = commons.list == NULL ? -ENOMEM : error;
    while (error == 0 && (holder = choose(&rows)) != SIZE_MAX) {
        error = take(&rows, holder, report, &commons);
    }
    free(rows.list);
    free(rows.holds);
    if (error < 0) {
        seep_words_commons_fini(&commons);
        return error;
    }
    qsort(commons.list, commons.count, sizeof(*commons.list), compare_growth);
    *ret_commons = commons;
    return 0;
}

void seep_words_commons_fini(struct seep_words_commons *commons)
{
    for (size_t i = 0; i < commons->count; i++) {
        free(commons->list[i].sites);
    }
    free(commons->list);
    *commons = (struct seep_words_commons){.list = NULL};
}

/*
 * In words.
 */

#define GROW "leak or may leak"

bool seep_words_common_is_news(const struct seep_report *report,
                               const struct seep_words_common *common)
{
    const struct seep_report_site *site = seep_words_site(report);

    return site == NULL ||
           common->growth_bytes_per_s.estimate >= NEWS_TIMES * growth_of(site);
}

/* "12 of 16 call sites that leak or may leak" */
static void put_rows(FILE *file, const struct seep_report *report,
                     const struct seep_words_commons *commons,
                     const struct seep_words_common *common)
{
    size_t asked = commons->asked_count;
    const char *rows = seep_words_rows(report, 2);

    if (asked < commons->wanted_count) {
        fprintf(file, "of %zu %s that were asked about, of %zu that %s, %zu",
                asked, rows, commons->wanted_count, GROW, common->site_count);
    } else if (common->site_count < asked) {
        fprintf(file, "%zu of %zu %s that %s", common->site_count, asked, rows,
                GROW);
    } else {
        fprintf(file, "all %zu %s that %s", asked, rows, GROW);
    }
}

char *seep_words_common_line(const struct seep_report *report,
                             const struct seep_words_commons *commons,
                             const struct seep_words_common *common)
{
    size_t suspects = common->site_count - common->leak_count;
    char *held = seep_words_held(&common->held_by);
    struct seep_words_text text;
    FILE *file = held == NULL ? NULL : seep_words_open(&text);

    if (file == NULL) {
        free(held);
        return NULL;
    }
    put_rows(file, report, commons, common);
    fprintf(file, " are held by %s", held);
    if ((double)common->live_bytes >=
        LONG_AGO_TIMES * (double)common->asked_live_bytes) {
        fprintf(file, " (when they kept %s)",
                SEEP_UNITS_BYTES((double)common->asked_live_bytes));
    }
    fputs(": together they grow by ", file);
    seep_words_put_growth(file, &common->growth_bytes_per_s);
    if (suspects > 0 && common->leak_count > 0) {
        fprintf(file, ", %zu of them %s", suspects,
                suspects == 1 ? "a suspect" : "suspects");
    }
    free(held);
    return seep_words_close(&text);
}

/* Take the first out of all, if it is news. @return false: there is none */
static bool find_news(const struct seep_report *report,
                      struct seep_words_commons *ret_commons)
{
    if (seep_words_commons_make(report, ret_commons) < 0) {
        return false;
    }
    if (ret_commons->count > 0 &&
        seep_words_common_is_news(report, &ret_commons->list[0])) {
        return true;
    }
    seep_words_commons_fini(ret_commons);
    return false;
}

char *seep_words_common_news(const struct seep_report *report)
{
    struct seep_words_commons commons;
    char *line;

    if (!find_news(report, &commons)) {
        return NULL;
    }
    line = seep_words_common_line(report, &commons, &commons.list[0]);
    seep_words_commons_fini(&commons);
    return line;
}

char *seep_words_common_advice(const struct seep_report *report,
                               const struct seep_report_site *site)
{
    struct seep_words_commons commons;
    char *advice;
    bool has_it = false;

    if (!find_news(report, &commons)) {
        return NULL;
    }
    for (size_t i = 0; i < commons.list[0].site_count; i++) {
        has_it |= commons.list[0].sites[i] == site;
    }
    advice =
        has_it ? NULL : seep_words_held_advice(commons.list[0].sites[0]->held);
    seep_words_commons_fini(&commons);
    return advice;
}
