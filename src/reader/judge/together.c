/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sites that grow in step: a lender that backs what another site keeps.
 *
 * Invariant: nothing that grows is hidden. A member keeps its class; a lender
 * loses that of a leak only where its keeper is one, and its growth counts all
 * the same. Where no keeper is found nothing changes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/judge/sites.h"
#include "reader/symbols/where.h"

/* In step? Invariant: too few survivors are never in step. */

#define SETTLE 0.1   /* of the run's work: what a start keeps tells nothing */
#define LEAST 8.0    /* survivors after that */
#define PER_PART 6.0 /* survivors that a part of the run should have */
#define PARTS_MIN 4
#define APART_SHARE 0.15 /* of what is kept, that may be elsewhere in time */
#define APART_NOISE 1.5  /* times what chance puts there */
/* Of CPython 3.8 to 3.15: float 24, list 56, dict 48 or 64, tables of small
 * dicts up to 184, tuples of 1 to 20. All are multiples of 8, as texts and
 * numbers are not but by chance. */
#define LENT_LEAST 24U
#define LENT_MOST 208U
#define LENT_GRAIN 8U
#define BURST_SIGMAS 4.0
#define BURST_FACTOR 2.0 /* times the mean of the other bins, at least */
#define BURSTS_MIN 3
#define BURST_P 1e-4
#define BURST_RATIO_SPREAD 0.5 /* of the one to the other, over the bursts */

static bool is_lendable(const struct seep_survivor *survivor)
{
    return survivor->size_bytes >= LENT_LEAST &&
           survivor->size_bytes <= LENT_MOST &&
           survivor->size_bytes % LENT_GRAIN == 0;
}

void seep_step_init(const struct seep_survivor *survivors, size_t count,
                    struct seep_step *ret_step)
{
    memset(ret_step, 0, sizeof(*ret_step));
    for (size_t i = 0; i < count; i++) {
        double share = (survivors[i].birth - SETTLE) / (1 - SETTLE);

        if (!(share >= 0)) {
            continue;
        }
        ret_step
            ->count[(int)fmin(share * SEEP_STEP_BINS, SEEP_STEP_BINS - 1)]++;
        ret_step->total++;
        ret_step->lendable += is_lendable(&survivors[i]);
    }
}

/* Into as many parts as the fewer survivors fill. */
static int part_count(double survivors)
{
    static const int counts[] = {20, 15, 12, 10, 6, 5};

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        if (survivors >= PER_PART * counts[i]) {
            return counts[i];
        }
    }
    return PARTS_MIN;
}

static double share_of(const struct seep_step *step, int part, int parts)
{
    int width = SEEP_STEP_BINS / parts;
    double sum = 0;

    for (int i = part * width; i < (part + 1) * width; i++) {
        sum += step->count[i];
    }
    return sum / step->total;
}

/* Half of the sum of the differences of shares (total variation), against what
 * is expected of two samples of one distribution: each part's difference is
 * normal with variance p (1 / n + 1 / m), so its mean size is sqrt(2 / pi) of
 * the root. */
bool seep_step_is_shared(const struct seep_step *a, const struct seep_step *b)
{
    double least = fmin(a->total, b->total);
    int parts = part_count(least);
    double apart = 0;
    double noise = 0;

    if (least < LEAST) {
        return false;
    }
    for (int i = 0; i < parts; i++) {
        double of_a = share_of(a, i, parts);
        double of_b = share_of(b, i, parts);
        double variance = (of_a + of_b) / 2 * (1 / a->total + 1 / b->total);

        apart += fabs(of_a - of_b) / 2;
        noise += sqrt(variance * 2 / M_PI) / 2;
    }
    return apart <= APART_SHARE + APART_NOISE * noise;
}

/* What stands out: by chance one bin of 30,000, and not by clumps of a few. */
static void find_bursts(const struct seep_step *step,
                        bool bursts[SEEP_STEP_BINS])
{
    double mean = step->total / SEEP_STEP_BINS;

    /* Bursts are in the mean too: take them out of it, twice. */
    for (int round = 0; round < 3; round++) {
        double sum = 0;
        int count = 0;

        for (int i = 0; i < SEEP_STEP_BINS; i++) {
            bursts[i] =
                step->count[i] > BURST_FACTOR * mean &&
                step->count[i] > mean + BURST_SIGMAS * sqrt(fmax(mean, 1));
            if (!bursts[i]) {
                sum += step->count[i];
                count++;
            }
        }
        mean = count > 0 ? sum / count : mean;
    }
}

/* Bursts that last are one each. */
static int count_runs(const bool bursts[SEEP_STEP_BINS], int *ret_bins)
{
    int runs = 0;

    *ret_bins = 0;
    for (int i = 0; i < SEEP_STEP_BINS; i++) {
        runs += bursts[i] && (i == 0 || !bursts[i - 1]);
        *ret_bins += bursts[i];
    }
    return runs;
}

static double log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Fisher's exact test: of @cells, @a and @b were drawn, and @both by both. */
static double overlap_p(int cells, int a, int b, int both)
{
    double p = 0;

    for (int k = both; k <= a && k <= b; k++) {
        if (b - k <= cells - a) {
            p += exp(log_choose(a, k) + log_choose(cells - a, b - k) -
                     log_choose(cells, b));
        }
    }
    return p;
}

static bool is_ratio_stable(const struct seep_step *a,
                            const struct seep_step *b, const bool *shared)
{
    double sum = 0;
    double squares = 0;
    int count = 0;

    for (int i = 0; i < SEEP_STEP_BINS; i++) {
        if (shared[i]) {
            double ratio = log(a->count[i] / b->count[i]);

            sum += ratio;
            squares += ratio * ratio;
            count++;
        }
    }
    return count > 0 && squares / count - sum / count * (sum / count) <=
                            BURST_RATIO_SPREAD * BURST_RATIO_SPREAD;
}

bool seep_step_has_same_bursts(const struct seep_step *a,
                               const struct seep_step *b)
{
    bool of_a[SEEP_STEP_BINS];
    bool of_b[SEEP_STEP_BINS];
    bool shared[SEEP_STEP_BINS];
    int bins_a, bins_b, bins;

    find_bursts(a, of_a);
    find_bursts(b, of_b);
    for (int i = 0; i < SEEP_STEP_BINS; i++) {
        shared[i] = of_a[i] && of_b[i];
    }
    int runs_a = count_runs(of_a, &bins_a);
    int runs_b = count_runs(of_b, &bins_b);
    int runs = count_runs(shared, &bins);

    if (runs < BURSTS_MIN || runs > runs_a || runs > runs_b) {
        return false;
    }
    /* A burst of several bins leaves fewer places for another to be in. */
    double length = fmax((double)bins_a / runs_a, (double)bins_b / runs_b);
    int cells = (int)(SEEP_STEP_BINS / length);

    return cells >= runs_a && cells >= runs_b &&
           overlap_p(cells, runs_a, runs_b, runs) < BURST_P &&
           is_ratio_stable(a, b, shared);
}

/* Who lends keeps little of what it allocates; who keeps, much more, or more
 * and most of it of sizes that are never lent: no other line can have put that
 * there. Of what is lent nearly all is of sizes that free lists hold. */
#define LENDER_KEEPS_MOST 0.1
#define LENDER_TO_OWNER_MOST 0.25
#define KEEPER_FACTOR 3
#define OWN_SHARE 0.5
#define LENT_SHARE 0.9
/* Of what a keeper keeps, not all is lent: a dict's texts and numbers are its
 * own. */
#define LENT_FACTOR 2
/* A head keeps as large a share as any, or nearly; of such, the one that grows
 * most. */
#define HEAD_FACTOR 1.5
#define HEAD_GROWTH 0.1 /* of the group's, that a head must have */

struct candidate {
    size_t site;  /* in sites */
    size_t group; /* the first candidate of it */
    bool lends;
    struct seep_step step;
};

struct together {
    const struct seep_sites *all;
    struct seep_report_site *sites;
    size_t site_count;
    struct candidate candidates[SEEP_TOGETHER_MOST];
    size_t count;
};

/* Of its blocks, not of its bytes: a line that keeps small records makes large
 * texts on the way to them. */
static double keeps_share(const struct seep_report_site *site)
{
    return site->allocated_count > 0
               ? fmin(1, site->live_count / site->allocated_count)
               : 0;
}

/* Who keeps what was lent may be seen by too few blocks to be sure. */
static bool is_candidate(const struct seep_report_site *site)
{
    return (seep_class_grows(site->class) ||
            site->class == SEEP_CLASS_INSUFFICIENT) &&
           site->suppressed_by == NULL && !site->backs_tensors &&
           seep_sites_space_is_judged(site->space) && site->has_growth &&
           site->growth_bytes_per_s.estimate > 0 && site->frame_count > 0;
}

static void find_candidates(struct together *together)
{
    const struct seep_sites *all = together->all;

    for (size_t i = 0;
         i < together->site_count && together->count < SEEP_TOGETHER_MOST;
         i++) {
        struct candidate *candidate = &together->candidates[together->count];
        const struct seep_site_work *work = &all->works[i];

        if (is_candidate(&together->sites[i])) {
            candidate->site = i;
            candidate->group = together->count++;
            seep_step_init(all->survivors + work->survivor_first,
                           work->survivor_count, &candidate->step);
            if (candidate->step.total > 0) {
                together->sites[i].lendable_share =
                    candidate->step.lendable / candidate->step.total;
            }
        }
    }
}

static struct seep_report_site *site_of(const struct together *together,
                                        size_t candidate)
{
    return &together->sites[together->candidates[candidate].site];
}

static const struct seep_report_frame *
user_frame_of(const struct seep_report_site *site)
{
    return site->frames[site->where_frame];
}

static void join(struct together *together, size_t a, size_t b)
{
    size_t from = together->candidates[a].group;
    size_t to = together->candidates[b].group;

    if (to > from) {
        size_t other = to;

        to = from;
        from = other;
    }
    for (size_t i = 0; i < together->count; i++) {
        if (together->candidates[i].group == from) {
            together->candidates[i].group = to;
        }
    }
}

static bool is_python(const struct seep_report_site *site)
{
    return user_frame_of(site)->python &&
           (site->space == SEEP_SPACE_PYTHON || site->space == SEEP_SPACE_HEAP);
}

static bool keeps_more(const struct together *together, size_t keeper,
                       double lender_share)
{
    const struct seep_step *step = &together->candidates[keeper].step;
    double share = keeps_share(site_of(together, keeper));

    if (step->lendable <= (1 - OWN_SHARE) * step->total) {
        return lender_share < LENDER_TO_OWNER_MOST && share > lender_share;
    }
    return lender_share < LENDER_KEEPS_MOST &&
           share > KEEPER_FACTOR * lender_share;
}

/* CPython keeps freed dicts, lists, tuples and floats in lists, and the next
 * one is made of them: the block stays charged to the line that had it first,
 * which makes and frees many. The line that keeps it grows in step, by as many
 * blocks of its own, or more. */
static bool may_lend(const struct together *together, size_t lender,
                     size_t keeper)
{
    const struct seep_report_site *from = site_of(together, lender);
    const struct seep_report_site *to = site_of(together, keeper);
    const struct seep_step *step = &together->candidates[lender].step;
    double share = keeps_share(from);

    return to->class != SEEP_CLASS_MINOR && is_python(from) && is_python(to) &&
           keeps_more(together, keeper, share) &&
           step->lendable >= LENT_SHARE * step->total &&
           from->live_count <= LENT_FACTOR * to->live_count &&
           seep_step_is_shared(step, &together->candidates[keeper].step);
}

/* Of several that may keep what @lender lent, the surest leak that keeps the
 * most blocks; SIZE_MAX: none. */
static size_t find_keeper(const struct together *together, size_t lender)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < together->count; i++) {
        if (i == lender || together->candidates[i].lends ||
            !may_lend(together, lender, i)) {
            continue;
        }
        if (found == SIZE_MAX ||
            site_of(together, i)->class < site_of(together, found)->class ||
            (site_of(together, i)->class == site_of(together, found)->class &&
             site_of(together, i)->live_count >
                 site_of(together, found)->live_count)) {
            found = i;
        }
    }
    return found;
}

static void find_lenders(struct together *together,
                         struct seep_together_loans *loans)
{
    for (size_t i = 0; i < together->count; i++) {
        struct seep_report_site *from = site_of(together, i);
        size_t keeper = seep_class_may_leak(from->class)
                            ? find_keeper(together, i)
                            : SIZE_MAX;

        if (keeper == SIZE_MAX) {
            continue;
        }
        together->candidates[i].lends = true;
        join(together, i, keeper);
        if (from->class == SEEP_CLASS_LEAK &&
            site_of(together, keeper)->class == SEEP_CLASS_LEAK) {
            from->class = SEEP_CLASS_BACKING;
            loans->list[loans->count].lender = together->candidates[i].site;
            loans->list[loans->count++].keeper =
                together->candidates[keeper].site;
        }
    }
}

/* All that a program does is in these. */
static bool is_whole_program(const char *function)
{
    return *function == '\0' || strcmp(function, "<module>") == 0 ||
           strcmp(function, "main") == 0;
}

/* "put" of "put.<locals>.<listcomp>". */
static size_t function_length(const struct seep_report_frame *frame)
{
    const char *end =
        frame->python ? strstr(frame->function, ".<locals>.<") : NULL;

    return end != NULL ? (size_t)(end - frame->function)
                       : strlen(frame->function);
}

static bool is_one_function(const struct seep_report_frame *a,
                            const struct seep_report_frame *b)
{
    size_t length = function_length(a);

    return a->python == b->python && length == function_length(b) &&
           memcmp(a->function, b->function, length) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->module, b->module) == 0 &&
           !is_whole_program(a->function);
}

/* The one function, or the one that called the other's. */
static bool has_same_function(const struct seep_report_site *a,
                              const struct seep_report_site *b)
{
    const struct seep_report_frame *frame = user_frame_of(a);

    if (is_one_function(frame, user_frame_of(b))) {
        return true;
    }
    for (size_t i = b->where_frame + 1; i < b->frame_count; i++) {
        if (b->frames[i]->python == frame->python) {
            return is_one_function(frame, b->frames[i]);
        }
    }
    return false;
}

/* One array that is made anew ever larger: its births tell nothing of what is
 * put into it. */
static bool is_one_block(const struct together *together, size_t candidate)
{
    const struct seep_report_site *site = site_of(together, candidate);
    size_t work = together->candidates[candidate].site;

    return together->all->works[work].growth.growing_block ||
           2 * site->largest_bytes > site->live_bytes;
}

static bool is_one_cause(const struct together *together, size_t a, size_t b)
{
    const struct seep_report_site *of_a = site_of(together, a);
    const struct seep_report_site *of_b = site_of(together, b);
    const struct seep_step *step_a = &together->candidates[a].step;
    const struct seep_step *step_b = &together->candidates[b].step;

    if (!seep_class_grows(of_a->class) || !seep_class_grows(of_b->class) ||
        seep_sites_place_of(of_a) != seep_sites_place_of(of_b)) {
        return false;
    }
    if (seep_step_has_same_bursts(step_a, step_b)) {
        return true;
    }
    return (has_same_function(of_a, of_b) || has_same_function(of_b, of_a)) &&
           (is_one_block(together, a) || is_one_block(together, b) ||
            seep_step_is_shared(step_a, step_b));
}

static void find_causes(struct together *together)
{
    for (size_t i = 0; i < together->count; i++) {
        for (size_t j = i + 1; j < together->count; j++) {
            if (!together->candidates[i].lends &&
                !together->candidates[j].lends &&
                is_one_cause(together, i, j)) {
                join(together, i, j);
            }
        }
    }
}

/* Too small to be a row is too small to count among those of a group. */
static bool counts(const struct together *together, size_t candidate,
                   size_t group)
{
    return together->candidates[candidate].group == group &&
           site_of(together, candidate)->class != SEEP_CLASS_MINOR;
}

/* Is it of the group, and no lender? */
static bool is_own(const struct together *together, size_t candidate,
                   size_t group)
{
    return together->candidates[candidate].group == group &&
           !together->candidates[candidate].lends;
}

/* What the lines of a group that are judged @class grow by, but for lenders. */
static double growth_of(const struct together *together, size_t group,
                        enum seep_class class)
{
    double sum = 0;

    for (size_t i = 0; i < together->count; i++) {
        const struct seep_report_site *site = site_of(together, i);

        if (is_own(together, i, group) && site->class == class) {
            sum += site->growth_bytes_per_s.estimate;
        }
    }
    return sum;
}

/* The surest class of a group but for lenders; they never are all of it. */
static enum seep_class class_of(const struct together *together, size_t group)
{
    enum seep_class class = SEEP_CLASS_COUNT;

    for (size_t i = 0; i < together->count; i++) {
        if (is_own(together, i, group) && site_of(together, i)->class < class) {
            class = site_of(together, i)->class;
        }
    }
    return class;
}

/* Of those as sure as any that grow by a fair part of it, one that keeps the
 * largest share or nearly, and of those the first in reading order. */
static size_t head_of(const struct together *together, size_t group)
{
    enum seep_class class = class_of(together, group);
    double least = HEAD_GROWTH * growth_of(together, group, class);
    size_t head = group;
    double most = 0;

    for (size_t i = 0; i < together->count; i++) {
        const struct seep_report_site *site = site_of(together, i);

        if (is_own(together, i, group) && site->class == class &&
            site->growth_bytes_per_s.estimate >= least &&
            (most <= 0 || keeps_share(site) > HEAD_FACTOR * most)) {
            head = i;
            most = keeps_share(site);
        }
    }
    return head;
}

/* A cause that is a leak at one line is one at the other. */
static bool leaks_in_step(const struct seep_report_site *site,
                          const struct seep_report_site *head)
{
    return site->role == SEEP_ROLE_MEMBER &&
           site->class == SEEP_CLASS_SUSPECT &&
           head->class == SEEP_CLASS_LEAK && site->growth_bytes_per_s.low > 0 &&
           head->growth_bytes_per_s.low > 0;
}

static void fill_group(struct together *together, size_t group)
{
    size_t at = head_of(together, group);
    struct seep_report_site *head = site_of(together, at);
    struct seep_interval sum = {0, 0, 0};
    size_t count = 0;

    for (size_t i = 0; i < together->count; i++) {
        const struct seep_interval *rate =
            &site_of(together, i)->growth_bytes_per_s;

        if (counts(together, i, group)) {
            /* What is in step errs in step. */
            sum.estimate += rate->estimate;
            sum.low += rate->low;
            sum.high += rate->high;
            count++;
        }
    }
    if (count < 2) {
        return;
    }
    for (size_t i = 0; i < together->count; i++) {
        struct seep_report_site *site = site_of(together, i);

        if (together->candidates[i].group == group) {
            memcpy(site->group_id, head->id, sizeof(site->group_id));
            site->role = i == at                         ? SEEP_ROLE_HEAD
                         : together->candidates[i].lends ? SEEP_ROLE_LENDER
                                                         : SEEP_ROLE_MEMBER;
            site->leaks_in_step = leaks_in_step(site, head);
        }
    }
    head->group_growth_bytes_per_s = sum;
}

/* Site @from to place @to, before it; those between them one further. */
static void move_up(struct seep_report_site *sites, size_t from, size_t to)
{
    struct seep_report_site site = sites[from];

    memmove(&sites[to + 1], &sites[to], (from - to) * sizeof(*sites));
    sites[to] = site;
}

void seep_together_order(struct seep_report_site *sites, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; sites[i].role > SEEP_ROLE_HEAD && j < count;
             j++) {
            if (sites[j].role == SEEP_ROLE_HEAD &&
                strcmp(sites[j].id, sites[i].group_id) == 0) {
                move_up(sites, j, i);
            }
        }
    }
}

int seep_together_group(const struct seep_sites *all,
                        struct seep_report_site *sites, size_t count,
                        struct seep_together_loans *ret_loans)
{
    struct together *together = calloc(1, sizeof(*together));

    if (together == NULL) {
        return -ENOMEM;
    }
    together->all = all;
    together->sites = sites;
    together->site_count = count;
    for (size_t i = 0; i < count; i++) {
        sites[i].keeps_share = keeps_share(&sites[i]);
    }
    ret_loans->count = 0;
    find_candidates(together);
    find_lenders(together, ret_loans);
    find_causes(together);
    for (size_t i = 0; i < together->count; i++) {
        if (together->candidates[i].group == i) {
            fill_group(together, i);
        }
    }
    free(together);
    return 0;
}
