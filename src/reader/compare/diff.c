/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is new, worse, the same, better or gone between two runs.
 *
 * Invariant: nothing is called new or worse that is not proved to grow now,
 * and by more than before beyond the errors of both.
 */
#include "reader/compare/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/limits.h"
#include "reader/judge/sites.h"

/*
 * One side of a diff: several processes as one.
 *
 * A rate is the bytes that all of them kept, by all of their time (or work):
 * a long run tells more than a short one. Their errors are independent.
 *
 * Invariant: a process that tells too little for a verdict adds neither bytes
 * nor time; in one that has a site not, it may have grown by what is never
 * sampled.
 */

/* A site of one process. */
struct entry {
    const struct seep_report *report;
    const struct seep_report_site *site;
};

static bool is_judged(const struct seep_report *report)
{
    return report->verdict.class != SEEP_VERDICT_INSUFFICIENT &&
           report->duration_s > 0;
}

/* What was seen to stop, or to be given back, does not grow. */
static bool may_grow(const struct seep_report_site *site)
{
    return site->has_growth &&
           (seep_check_is_proved(site) || seep_class_may_leak(site->class) ||
            site->class == SEEP_CLASS_WARMING ||
            site->class == SEEP_CLASS_AGING ||
            site->class == SEEP_CLASS_INSUFFICIENT);
}

/* Where nothing is known of its growth it is at most what is there. */
static struct seep_interval side_growth_of(const struct seep_report *report,
                                           const struct seep_report_site *site)
{
    double unseen = seep_check_unseen_bytes(report, (int)site->space);
    double most = (double)site->live_bytes + site->live_bytes_error + unseen;

    if (may_grow(site)) {
        return site->growth_bytes_per_s;
    }
    if (site->class != SEEP_CLASS_INSUFFICIENT &&
        site->class != SEEP_CLASS_LEAK) {
        most = unseen;
    }
    return (struct seep_interval){0, 0, most / report->duration_s};
}

static void add_bytes(struct seep_diff_sum *sum,
                      const struct seep_report *report,
                      const struct seep_interval *per_s)
{
    double seconds = report->duration_s;
    double below = (per_s->estimate - per_s->low) * seconds;
    double above = (per_s->high - per_s->estimate) * seconds;
    double rate = per_s->estimate;

    sum->bytes += rate * seconds;
    sum->below_squares += below * below;
    sum->above_squares += above * above;
    sum->rate_sum += rate;
    sum->rate_squares += rate * rate;
    if (report->units > 0) {
        double unit = rate * seconds / (double)report->units;

        sum->unit_sum += unit;
        sum->unit_squares += unit * unit;
    }
}

static struct seep_interval divided(const struct seep_diff_sum *sum,
                                    double divisor)
{
    return (struct seep_interval){
        sum->bytes / divisor,
        (sum->bytes - sqrt(sum->below_squares)) / divisor,
        (sum->bytes + sqrt(sum->above_squares)) / divisor,
    };
}

static void finish(const struct seep_diff_side *side,
                   struct seep_diff_site *site)
{
    static const struct seep_interval unknown = {0, 0, INFINITY};

    site->per_s =
        side->exposure_s > 0 ? divided(&site->sum, side->exposure_s) : unknown;
    site->per_unit =
        side->units > 0 ? divided(&site->sum, side->units) : unknown;
}

/* Ordered as SEEP_CLASSES are: the first is the worst. */
static void add_entry(struct seep_diff_site *site, const struct entry *entry,
                      double age_s)
{
    struct seep_interval per_s = side_growth_of(entry->report, entry->site);

    if (seep_diff_is_holding(entry->report)) {
        seep_diff_hold_site(entry->report, entry->site, age_s, site->held);
    }
    if (site->site == NULL || entry->site->class < site->class ||
        (entry->site->class == site->class &&
         per_s.low > side_growth_of(site->report, site->site).low)) {
        site->site = entry->site;
        site->report = entry->report;
        site->class = entry->site->class;
    }
    if (!is_judged(entry->report)) {
        return;
    }
    site->process_count++;
    site->grows |= may_grow(entry->site);
    site->proved |= seep_check_is_proved(entry->site);
    site->live_bytes += (double)entry->site->live_bytes;
    add_bytes(&site->sum, entry->report, &per_s);
}

static int compare_entries(const void *a, const void *b)
{
    const struct seep_report_site *left = ((const struct entry *)a)->site;
    const struct seep_report_site *right = ((const struct entry *)b)->site;

    if (left->space != right->space) {
        return left->space < right->space ? -1 : 1;
    }
    if (left->device != right->device) {
        return left->device < right->device ? -1 : 1;
    }
    return strcmp(left->id, right->id);
}

/* What a site in @space may have grown by in the processes that have it not. */
static void add_others(const struct seep_diff_side *side, enum seep_space space,
                       const struct entry *entries, size_t count,
                       struct seep_diff_site *site)
{
    for (size_t i = 0; i < side->count; i++) {
        double unseen = seep_check_unseen_bytes(side->reports[i], (int)space);
        bool has = !is_judged(side->reports[i]);

        for (size_t k = 0; k < count && !has; k++) {
            has = entries[k].report == side->reports[i];
        }
        site->sum.above_squares += has ? 0 : unseen * unseen;
    }
}

static void pool(struct seep_diff_side *side, const struct entry *entries,
                 size_t count, double age_s)
{
    size_t last;

    for (size_t first = 0; first < count; first = last) {
        struct seep_diff_site *site = &side->sites[side->site_count++];

        *site = (struct seep_diff_site){.site = NULL};
        for (last = first; last < count && compare_entries(&entries[first],
                                                           &entries[last]) == 0;
             last++) {
            add_entry(site, &entries[last], age_s);
        }
        add_others(side, site->site->space, &entries[first], last - first,
                   site);
        site->live_bytes /= fmax(1, (double)side->judged_count);
        finish(side, site);
    }
}

/* Of a site that is nowhere on @side. */
static struct seep_diff_site absent(const struct seep_diff_side *side,
                                    const struct seep_report_site *like)
{
    struct seep_diff_site site = {.class = SEEP_CLASS_STEADY};

    add_others(side, like->space, NULL, 0, &site);
    finish(side, &site);
    return site;
}

/* Segments of a cache are told by what is in them. */
static bool counts(const struct seep_report_site *site)
{
    return seep_sites_space_is_judged(site->space) &&
           site->class != SEEP_CLASS_BACKING && site->where != NULL;
}

static size_t gather(struct seep_diff_side *side, double age_s,
                     struct entry *entries)
{
    size_t count = 0;

    for (size_t i = 0; i < side->count; i++) {
        const struct seep_report *report = side->reports[i];

        for (size_t k = 0; k < report->site_count; k++) {
            const struct seep_report_site *site = &report->sites[k];

            if (!counts(site) ||
                (!is_judged(report) && !seep_diff_is_holding(report))) {
                continue;
            }
            if (seep_check_is_excused(site)) {
                side->excused_count += is_judged(report);
                seep_diff_hold_site(report, site, age_s, side->excused_held);
            } else {
                entries[count++] = (struct entry){report, site};
            }
        }
    }
    return count;
}

/* Of what is not told: what lies outside call sites can grow by that. */
static struct seep_interval outside_of(const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_interval most = {0, 0, INFINITY};

    if (memory->valid && memory->unexplained.valid) {
        const struct seep_report_extent *a = &memory->unexplained;
        const struct seep_report_extent *b = &memory->allocator_overhead;

        most.high = fmax(0, a->slope_bytes_per_s + b->slope_bytes_per_s) +
                    hypot(a->slope_error, b->slope_error);
    }
    return most;
}

static void add_verdict(struct seep_diff_side *side,
                        const struct seep_report *report)
{
    const struct seep_report_verdict *verdict = &report->verdict;
    bool outside = seep_check_grows_outside(verdict);
    bool leaks = verdict->has_growth && verdict->class == SEEP_VERDICT_LEAK;
    bool grows = verdict->has_growth &&
                 (outside || verdict->class <= SEEP_VERDICT_SUSPECT);
    struct seep_interval none = {0, 0, 0};
    struct seep_interval beyond =
        outside ? verdict->growth_bytes_per_s : outside_of(report);

    add_bytes(&side->process.sum, report,
              grows ? &verdict->growth_bytes_per_s : &none);
    add_bytes(&side->outside.sum, report, &beyond);
    side->process.grows |= grows;
    side->process.proved |= leaks || outside;
    side->outside.grows |= outside;
    side->outside.proved |= outside;
    if (side->process.report == NULL ||
        verdict->class < side->process.report->verdict.class) {
        side->process.report = report;
    }
    if (outside && side->outside.report == NULL) {
        side->outside.report = report;
    }
}

static void add_memory(struct seep_diff_side *side,
                       struct seep_diff_sum *private,
                       const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    const struct seep_report_extent *extent = &memory->anonymous;
    struct seep_interval slope =
        seep_interval_around(extent->slope_bytes_per_s, extent->slope_error);

    add_bytes(private, report, &slope);
    side->has_private &= memory->valid && extent->valid;
    side->rss_bytes += memory->valid ? memory->rss.last_bytes : 0;
    for (size_t i = 0; i < report->space_count; i++) {
        if (seep_sites_space_holds(report->spaces[i].space)) {
            side->live_bytes += (double)report->spaces[i].live_bytes;
        }
    }
}

/* What comes and goes is work: what imports freed was none. */
static double freed_by(const struct seep_report *report)
{
    double bytes = 0;

    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (seep_sites_space_holds(site->space) && !site->is_start) {
            bytes += (double)site->freed_bytes;
        }
    }
    return bytes;
}

/* One of them grows and nobody knows by what: it is not left out for that. */
static const char *grown_unknown(const struct seep_diff_side *side)
{
    for (size_t i = 0; i < side->count; i++) {
        const struct seep_report_verdict *verdict = &side->reports[i]->verdict;

        if (verdict->class == SEEP_VERDICT_INSUFFICIENT &&
            verdict->private_grows) {
            return verdict->reason;
        }
    }
    return NULL;
}

/* Work counts only if all of them told it. */
static void add_exposure(struct seep_diff_side *side)
{
    bool all_tell = true;

    for (size_t i = 0; i < side->count; i++) {
        const struct seep_report *report = side->reports[i];

        if (is_judged(report)) {
            side->judged_count++;
            side->exposure_s += report->duration_s;
            side->units += (double)report->units;
            all_tell &= report->units > 0;
        } else if (side->reason == NULL) {
            side->reason = report->verdict.reason;
        }
    }
    if (side->judged_count > 0) {
        side->reason = grown_unknown(side);
    } else if (side->reason == NULL) {
        side->reason = "no process";
    }
    if (!all_tell) {
        side->units = 0;
    }
}

static void add_processes(struct seep_diff_side *side, double age_s)
{
    double count = (double)side->judged_count;
    struct seep_diff_sum private = {.bytes = 0};

    side->has_private = side->judged_count > 0;
    side->knows_private = true;
    for (size_t i = 0; i < side->count; i++) {
        if (seep_diff_is_holding(side->reports[i])) {
            seep_diff_hold_process(side, side->reports[i], age_s);
        }
        if (is_judged(side->reports[i])) {
            add_verdict(side, side->reports[i]);
            add_memory(side, &private, side->reports[i]);
            side->freed_per_s += freed_by(side->reports[i]) / side->exposure_s;
        }
    }
    finish(side, &side->process);
    finish(side, &side->outside);
    if (side->judged_count > 0) {
        side->private_per_s = divided(&private, side->exposure_s);
        side->rss_bytes /= count;
        side->live_bytes /= count;
        side->units_per_s = side->units / side->exposure_s;
    }
}

/* Everything of a side but its outcome. */
static int side_init(const struct seep_report *const *reports, size_t count,
                     double age_s, struct seep_diff_side *ret_side)
{
    struct seep_diff_side side = {.reports = reports, .count = count};
    struct entry *entries;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += reports[i]->site_count;
    }
    entries = calloc(total + 1, sizeof(*entries));
    side.sites = calloc(total + 1, sizeof(*side.sites));
    if (entries == NULL || side.sites == NULL) {
        free(entries);
        free(side.sites);
        return -ENOMEM;
    }
    add_exposure(&side);
    add_processes(&side, age_s);
    total = gather(&side, age_s, entries);
    qsort(entries, total, sizeof(*entries), compare_entries);
    pool(&side, entries, total, age_s);
    free(entries);
    *ret_side = side;
    return 0;
}

/* The outcome of each row, and of all. */

#define SAME_SHARE 0.5 /* "same" excludes that it grows by so much more */
#define ERROR_SHARE 0.025

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

double seep_diff_variance(double sum, double squares, size_t count)
{
    return count < 2 ? 0 : fmax(0, squares - sum * sum / (double)count);
}

double seep_diff_spread(double squares, size_t before_count, size_t now_count)
{
    double m = (double)before_count;
    double n = (double)now_count;
    size_t freedom =
        before_count + now_count < 2 ? 0 : before_count + now_count - 2;

    if (freedom == 0 || before_count == 0 || now_count == 0) {
        return 0;
    }
    /* Beyond what is known, that of the last. */
    return seep_rank_t975[freedom < SEEP_RANK_FREEDOM ? freedom
                                                      : SEEP_RANK_FREEDOM] *
           sqrt(squares / (double)freedom * (1 / m + 1 / n));
}

/* The t-test. */
static double spread_of(const struct seep_diff *diff,
                        const struct seep_diff_row *row)
{
    const struct seep_diff_sum *a = &row->before.sum;
    const struct seep_diff_sum *b = &row->now.sum;
    size_t m = diff->before.judged_count;
    size_t n = diff->now.judged_count;
    double squares =
        diff->by_unit ? seep_diff_variance(a->unit_sum, a->unit_squares, m) +
                            seep_diff_variance(b->unit_sum, b->unit_squares, n)
                      : seep_diff_variance(a->rate_sum, a->rate_squares, m) +
                            seep_diff_variance(b->rate_sum, b->rate_squares, n);

    return seep_diff_spread(squares, m, n);
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
    if (!row.is_outside) {
        seep_diff_compare_site(diff, &row);
    }
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

    seep_diff_compare_process(diff);
    for (size_t i = 0; i < diff->now.site_count; i++) {
        struct seep_diff_row row = {.now = diff->now.sites[i]};

        if (match[i] == SEEP_DIFF_NONE) {
            row.before = absent(&diff->before, row.now.site);
        } else {
            row.before = diff->before.sites[match[i]];
            was_matched[match[i]] = true;
        }
        add_row(diff, row);
    }
    for (size_t i = 0; i < diff->before.site_count; i++) {
        struct seep_diff_row row = {.before = diff->before.sites[i]};

        if (!was_matched[i]) {
            row.now = absent(&diff->now, row.before.site);
            add_row(diff, row);
        }
    }
    add_row(diff, outside);
    seep_diff_compare_patterns(diff);
}

/* So many times as much is freed now, in the same time; 0: not known. */
static double pace_of(const struct seep_diff *diff)
{
    return diff->by_unit || !(diff->before.freed_per_s > 0)
               ? 0
               : diff->now.freed_per_s / diff->before.freed_per_s;
}

/*
 * By the clock it grows faster, and what is held is less: then it may only have
 * worked faster. It is not known to be worse unless it grows by more than what
 * it did before would be at the pace of now.
 */
static void doubt(struct seep_diff *diff, struct seep_diff_row *row,
                  size_t count)
{
    double pace = pace_of(diff);
    struct seep_interval before = row->before.per_s;
    struct seep_interval change;

    if (row->outcome != SEEP_DIFF_WORSE || !(pace > 1)) {
        return;
    }
    before.estimate *= pace;
    before.low *= pace;
    before.high *= pace;
    change = seep_diff_change(&before, &row->now.per_s);
    widen(&change, widening_of(count), spread_of(diff, row));
    if (!(change.low > 0 &&
          change.estimate > SEEP_DIFF_MARGIN * fabs(before.estimate))) {
        row->outcome = SEEP_DIFF_UNTOLD;
        diff->pace = pace;
    }
}

/* What the process surely grows by hides it: equal runs differ by more. */
static bool is_trifle(const struct seep_diff *diff,
                      const struct seep_diff_row *row)
{
    const struct seep_diff_row *all = &diff->process;
    double least = fmin(growth_of(diff, &all->before)->estimate,
                        growth_of(diff, &all->now)->estimate);

    return row->outcome == SEEP_DIFF_UNTOLD && all->before.proved &&
           all->now.proved && row->change.high <= SEEP_DIFF_MARGIN * least;
}

/* All that are compared by how much they grow share the risk of one. */
static void decide_all(struct seep_diff *diff)
{
    bool holds_less = seep_diff_held_outcome(diff) == SEEP_DIFF_BETTER;
    size_t count = 0;

    diff->process.before = diff->before.process;
    diff->process.now = diff->now.process;
    diff->process.outcome = decide(diff, &diff->process, 1);
    for (size_t i = 0; i < diff->row_count; i++) {
        count += diff->rows[i].before.grows && diff->rows[i].now.grows;
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        struct seep_diff_row *row = &diff->rows[i];

        row->outcome = decide(diff, row, count);
        if (holds_less) {
            doubt(diff, row, count);
        }
        row->is_trifle = is_trifle(diff, row);
    }
}

enum seep_diff_answer seep_diff_row_answer(const struct seep_diff_row *row)
{
    bool leaks = row->now.proved &&
                 (row->is_outside || row->now.class == SEEP_CLASS_LEAK);

    if (row->is_trifle || !is_weighty(&row->now, row->is_outside)) {
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
        seep_diff_held_outcome(diff) == SEEP_DIFF_WORSE ? SEEP_DIFF_LEAKS
        : diff->before.reason != NULL || diff->now.reason != NULL
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

    order = order != 0 ? order : (int)right->weighs - (int)left->weighs;
    order = order != 0 ? order : (int)left->outcome - (int)right->outcome;
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
    /* A row or a pattern of each, and the process and the devices. */
    diff->held = calloc(2 * count + 2, sizeof(*diff->held));
    if (sites != NULL && found != NULL && was_matched != NULL &&
        diff->rows != NULL && diff->held != NULL) {
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
    double age_s = fmin(seep_diff_age_of(before, before_count),
                        seep_diff_age_of(now, now_count));
    int error = side_init(before, before_count, age_s, &diff.before);

    if (error == 0) {
        error = side_init(now, now_count, age_s, &diff.now);
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
    qsort(diff.rows, diff.row_count, sizeof(*diff.rows), compare_rows);
    *ret_diff = diff;
    return 0;
}

void seep_diff_fini(struct seep_diff *diff)
{
    free(diff->before.sites);
    free(diff->now.sites);
    free(diff->rows);
    free(diff->held);
}
