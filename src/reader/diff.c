/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is new, worse, the same, better or gone; see diff.h.
 *
 * Invariant: nothing is called new or worse that is not proved to grow now,
 * and by more than before beyond the errors of both.
 */
#include "reader/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SAME_SHARE 0.5 /* "same" excludes that it grows by so much more */
#define ERROR_SHARE 0.025
#define T_COUNT 10

/* Student's t at 97.5 %, by degrees of freedom; beyond them that of 10. */
static const double t975[T_COUNT + 1] = {
    0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
};

static const struct {
    const char *name;
    const char *words;
} outcomes[] = {
#define DIFF_NAMES(symbol, name, words) {name, words},
    SEEP_DIFFS(DIFF_NAMES)
#undef DIFF_NAMES
};

const char *seep_diff_name(enum seep_diff_outcome outcome)
{
    return (unsigned)outcome < SEEP_DIFF_COUNT ? outcomes[outcome].name : "";
}

const char *seep_diff_words(enum seep_diff_outcome outcome)
{
    return (unsigned)outcome < SEEP_DIFF_COUNT ? outcomes[outcome].words : "";
}

struct seep_interval seep_diff_change(const struct seep_interval *before,
                                      const struct seep_interval *now)
{
    double more = now->estimate - before->estimate;

    return (struct seep_interval){
        more,
        more - hypot(now->estimate - now->low, before->high - before->estimate),
        more + hypot(now->high - now->estimate, before->estimate - before->low),
    };
}

/* By how much wider an interval of 95 % is that holds for all of @count. */
static double widening_of(size_t count)
{
    double share = ERROR_SHARE / (double)(count > 0 ? count : 1);
    double low = 0;
    double high = 10;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (erfc(middle / sqrt(2)) / 2 > share) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low / 1.959964;
}

static double variance_of(double sum, double squares, size_t count)
{
    return count < 2 ? 0 : fmax(0, squares - sum * sum / (double)count);
}

/* Half of the interval of the difference of two means, by how the processes of
 * each side differ: the t-test. 0 where each is one process. */
static double spread_of(const struct seep_diff *diff,
                        const struct seep_diff_row *row)
{
    const struct seep_diff_sum *a = &row->before.sum;
    const struct seep_diff_sum *b = &row->now.sum;
    size_t m = diff->before.judged_count;
    size_t n = diff->now.judged_count;
    size_t freedom = m + n < 2 ? 0 : m + n - 2;
    double squares = diff->by_unit
                         ? variance_of(a->unit_sum, a->unit_squares, m) +
                               variance_of(b->unit_sum, b->unit_squares, n)
                         : variance_of(a->rate_sum, a->rate_squares, m) +
                               variance_of(b->rate_sum, b->rate_squares, n);

    if (freedom == 0 || m == 0 || n == 0) {
        return 0;
    }
    return t975[freedom < T_COUNT ? freedom : T_COUNT] *
           sqrt(squares / (double)freedom * (1 / (double)m + 1 / (double)n));
}

static const struct seep_interval *growth_of(const struct seep_diff *diff,
                                             const struct seep_diff_site *site)
{
    return diff->by_unit ? &site->per_unit : &site->per_s;
}

/* What is not proved to grow may grow by nothing. */
static struct seep_interval careful(const struct seep_diff *diff,
                                    const struct seep_diff_site *site)
{
    struct seep_interval growth = *growth_of(diff, site);

    if (!site->proved) {
        growth.low = fmin(growth.low, 0);
    }
    return growth;
}

static void widen(struct seep_interval *change, double factor, double spread)
{
    double below = change->estimate - change->low;
    double above = change->high - change->estimate;

    change->low = change->estimate - fmax(factor * below, spread);
    change->high = change->estimate + fmax(factor * above, spread);
}

/* It grew before and grows now: by more, or by less? */
static enum seep_diff_outcome compare(const struct seep_diff *diff,
                                      struct seep_diff_row *row, size_t count)
{
    const struct seep_interval *before = growth_of(diff, &row->before);
    double margin = SEEP_DIFF_MARGIN * fabs(before->estimate);

    row->change = seep_diff_change(before, growth_of(diff, &row->now));
    widen(&row->change, widening_of(count), spread_of(diff, row));
    if (row->change.low > 0 && row->change.estimate > margin) {
        return row->now.proved ? SEEP_DIFF_WORSE : SEEP_DIFF_UNTOLD;
    }
    if (row->change.high < 0 && row->change.estimate < -margin) {
        return SEEP_DIFF_BETTER;
    }
    return row->change.high <= SAME_SHARE * fabs(before->estimate)
               ? SEEP_DIFF_SAME
               : SEEP_DIFF_UNTOLD;
}

static enum seep_diff_outcome decide(const struct seep_diff *diff,
                                     struct seep_diff_row *row, size_t count)
{
    struct seep_interval before = careful(diff, &row->before);
    struct seep_interval now = careful(diff, &row->now);

    if (row->before.grows && row->now.grows) {
        return compare(diff, row, count);
    }
    row->change = seep_diff_change(&before, &now);
    if (row->now.grows) {
        return row->change.low > 0 ? SEEP_DIFF_NEW : SEEP_DIFF_UNTOLD;
    }
    if (row->before.grows) {
        return row->change.high < 0 ? SEEP_DIFF_GONE : SEEP_DIFF_UNTOLD;
    }
    return SEEP_DIFF_SAME;
}

/* What fills, or is small, is shown and decides nothing. */
static bool is_weighty(const struct seep_diff_site *site, bool is_outside)
{
    return site->grows && (is_outside || site->class == SEEP_CLASS_LEAK ||
                           site->class == SEEP_CLASS_SUSPECT);
}

static void add_row(struct seep_diff *diff, struct seep_diff_row row)
{
    row.weighs = is_weighty(&row.before, row.is_outside) ||
                 is_weighty(&row.now, row.is_outside);
    if (row.before.grows || row.now.grows) {
        diff->rows[diff->row_count++] = row;
    } else if (!row.is_outside) {
        diff->still_count++;
    }
}

/* Rows of what is now, with what it was; then of what was. */
static void add_rows(struct seep_diff *diff, const size_t *match,
                     bool *was_matched)
{
    struct seep_diff_row outside = {.is_outside = true,
                                    .before = diff->before.outside,
                                    .now = diff->now.outside};

    for (size_t i = 0; i < diff->now.site_count; i++) {
        struct seep_diff_row row = {.now = diff->now.sites[i]};

        if (match[i] == SEEP_DIFF_NONE) {
            seep_diff_side_absent(&diff->before, row.now.site, &row.before);
        } else {
            row.before = diff->before.sites[match[i]];
            was_matched[match[i]] = true;
        }
        add_row(diff, row);
    }
    for (size_t i = 0; i < diff->before.site_count; i++) {
        struct seep_diff_row row = {.before = diff->before.sites[i]};

        if (!was_matched[i]) {
            seep_diff_side_absent(&diff->now, row.before.site, &row.now);
            add_row(diff, row);
        }
    }
    add_row(diff, outside);
}

/* All that are compared by how much they grow share the risk of one. */
static void decide_all(struct seep_diff *diff)
{
    size_t count = 0;

    for (size_t i = 0; i < diff->row_count; i++) {
        count += diff->rows[i].before.grows && diff->rows[i].now.grows;
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        diff->rows[i].outcome = decide(diff, &diff->rows[i], count);
    }
    diff->process.before = diff->before.process;
    diff->process.now = diff->now.process;
    diff->process.outcome = decide(diff, &diff->process, 1);
}

enum seep_diff_answer seep_diff_row_answer(const struct seep_diff_row *row)
{
    bool leaks = row->now.proved &&
                 (row->is_outside || row->now.class == SEEP_CLASS_LEAK);

    if (!is_weighty(&row->now, row->is_outside)) {
        return SEEP_DIFF_FINE;
    }
    if (row->outcome == SEEP_DIFF_NEW || row->outcome == SEEP_DIFF_WORSE) {
        return leaks ? SEEP_DIFF_LEAKS : SEEP_DIFF_INSUFFICIENT;
    }
    return row->outcome == SEEP_DIFF_UNTOLD ? SEEP_DIFF_INSUFFICIENT
                                            : SEEP_DIFF_FINE;
}

enum seep_diff_answer seep_diff_answer_of(const struct seep_diff *diff)
{
    enum seep_diff_answer worst =
        diff->before.reason != NULL || diff->now.reason != NULL
            ? SEEP_DIFF_INSUFFICIENT
            : SEEP_DIFF_FINE;

    for (size_t i = 0; i < diff->row_count; i++) {
        enum seep_diff_answer answer = seep_diff_row_answer(&diff->rows[i]);

        worst = answer > worst ? answer : worst;
    }
    return worst;
}

/* By how much it grows for sure: now, or where it is gone, then. */
static double size_of(const struct seep_diff_row *row)
{
    return fmax(row->now.grows ? row->now.per_s.low : -INFINITY,
                row->before.grows ? row->before.per_s.low : -INFINITY);
}

static int compare_rows(const void *a, const void *b)
{
    const struct seep_diff_row *left = a;
    const struct seep_diff_row *right = b;
    int order =
        (int)seep_diff_row_answer(right) - (int)seep_diff_row_answer(left);

    if (order == 0) {
        order = (int)right->weighs - (int)left->weighs;
    }
    if (order == 0) {
        order = (int)left->outcome - (int)right->outcome;
    }
    return order != 0 ? order
                      : (size_of(left) < size_of(right)) -
                            (size_of(left) > size_of(right));
}

static int match(struct seep_diff *diff)
{
    size_t before_count = diff->before.site_count;
    size_t now_count = diff->now.site_count;
    size_t count = before_count + now_count + 1;
    const struct seep_report_site **sites = calloc(count, sizeof(*sites));
    size_t *found = calloc(count, sizeof(*found));
    bool *was_matched = calloc(count, sizeof(*was_matched));
    int error = -ENOMEM;

    diff->rows = calloc(count, sizeof(*diff->rows));
    if (sites != NULL && found != NULL && was_matched != NULL &&
        diff->rows != NULL) {
        for (size_t i = 0; i < before_count; i++) {
            sites[i] = diff->before.sites[i].site;
        }
        for (size_t i = 0; i < now_count; i++) {
            sites[before_count + i] = diff->now.sites[i].site;
        }
        error = seep_diff_match(sites, before_count, sites + before_count,
                                now_count, found);
    }
    if (error == 0) {
        add_rows(diff, found, was_matched);
    }
    free(sites);
    free(found);
    free(was_matched);
    return error;
}

int seep_diff_run(const struct seep_report *const *before, size_t before_count,
                  const struct seep_report *const *now, size_t now_count,
                  struct seep_diff *ret_diff)
{
    struct seep_diff diff = {.rows = NULL};
    int error = seep_diff_side_init(before, before_count, &diff.before);

    if (error == 0) {
        error = seep_diff_side_init(now, now_count, &diff.now);
    }
    if (error == 0) {
        diff.by_unit = diff.before.units > 0 && diff.now.units > 0;
        error = match(&diff);
    }
    if (error < 0) {
        seep_diff_fini(&diff);
        return error;
    }
    decide_all(&diff);
    if (diff.row_count > 0) {
        qsort(diff.rows, diff.row_count, sizeof(*diff.rows), compare_rows);
    }
    *ret_diff = diff;
    return 0;
}

void seep_diff_fini(struct seep_diff *diff)
{
    seep_diff_side_fini(&diff->before);
    seep_diff_side_fini(&diff->now);
    free(diff->rows);
}
