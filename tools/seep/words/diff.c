/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a diff came to, in words. Invariant: every view says the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/compare/patterns.h"
#include "words/compare.h"
#include "words/words.h"

static const char digits[] = "0123456789";

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

/* What weighs, with @outcome, and first of them. */
static size_t tally(const struct seep_diff_set *set,
                    enum seep_diff_outcome outcome,
                    enum seep_diff_answer answer,
                    const struct seep_diff_pair **ret_pair,
                    const struct seep_diff_row **ret_row)
{
    size_t count = 0;

    for (size_t i = 0; i < set->count; i++) {
        const struct seep_diff *diff = &set->pairs[i].diff;

        for (size_t k = 0; k < diff->row_count; k++) {
            const struct seep_diff_row *row = &diff->rows[k];

            if (!row->weighs || row->outcome != outcome ||
                seep_diff_row_answer(row) != answer) {
                continue;
            }
            if (*ret_row == NULL) {
                *ret_pair = &set->pairs[i];
                *ret_row = row;
            }
            count++;
        }
    }
    return count;
}

static char *where_of(const struct seep_diff_site *site)
{
    return site->site == NULL ? NULL
                              : seep_words_where(site->report, site->site);
}

/* "server.py:54 Model.remember" without what comes behind the user's frame. */
static char *plain_where(const struct seep_diff_site *site)
{
    return site->site == NULL ? NULL : seep_words_user_frame(site->site);
}

/* By how much the row changed, "main.c:5 f +33.1 MiB/min"; for what is new or
 * gone, that is all of it. */
static char *changed(const struct seep_diff_pair *pair,
                     const struct seep_diff_row *row)
{
    double change = row->change.estimate;
    char *where =
        row->is_outside
            ? seep_words_make("outside call sites")
            : plain_where(row->now.site != NULL ? &row->now : &row->before);
    char *text = seep_words_make("%s %s%s", where == NULL ? "?" : where,
                                 pair->diff.by_unit ? SEEP_UNITS_CHANGE(change)
                                                    : SEEP_UNITS_RATE(change),
                                 pair->diff.by_unit ? " per unit of work" : "");

    free(where);
    return text;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* "+700 MiB held at serve.py:17 load (oneDNN primitive cache)" */
static char *held_words(const struct seep_diff_held *held)
{
    double change =
        held->at_peak ? held->peak_change.estimate : held->change.estimate;
    const char *bytes = SEEP_UNITS_CHANGE(change);
    const char *when = held->at_peak ? " at the peak" : "";
    char *where = seep_diff_held_where(held);
    const char *at = held->holder == SEEP_DIFF_HOLDER_SITE      ? " at"
                     : held->holder == SEEP_DIFF_HOLDER_PATTERN ? " by"
                                                                : "";
    char *text = seep_words_make("%s held%s%s %s", bytes, when, at,
                                 where == NULL ? "?" : where);

    free(where);
    return text;
}

/* What speaks for what is held by all programs, if that is @outcome. */
static const struct seep_diff_held *
first_held_of(const struct seep_diff_set *set, enum seep_diff_outcome outcome)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct seep_diff *diff = &set->pairs[i].diff;

        if (seep_diff_held_outcome(diff) == outcome &&
            diff->first_held != NULL) {
            return diff->first_held;
        }
    }
    return NULL;
}

static char *held_headline(const char *lead, const struct seep_diff_held *held)
{
    char *what = held == NULL ? NULL : held_words(held);
    char *text = seep_words_make("%s%s", lead, what == NULL ? "?" : what);

    free(what);
    return text;
}

/* Which leaks are new or worse, "1 leak got worse, f +33.1 MiB/min"; NULL where
 * it is what is held that is. */
static char *worse_words(const struct seep_diff_set *set)
{
    const struct seep_diff_pair *pair = NULL;
    const struct seep_diff_row *row = NULL;
    size_t news = tally(set, SEEP_DIFF_NEW, SEEP_DIFF_LEAKS, &pair, &row);
    size_t worse = tally(set, SEEP_DIFF_WORSE, SEEP_DIFF_LEAKS, &pair, &row);

    if (news + worse == 0) {
        return NULL;
    }
    char *first = row == NULL ? NULL : changed(pair, row);
    const char *begin = news + worse > 1 ? "; first " : ", ";
    const char *at = first == NULL ? "?" : first;
    char *text;

    if (news == 0) {
        text = seep_words_make("%zu leak%s got worse%s%s", worse, plural(worse),
                               begin, at);
    } else if (worse == 0) {
        text = seep_words_make("%zu new leak%s%s%s", news, plural(news), begin,
                               at);
    } else {
        text = seep_words_make("%zu new leak%s, and %zu got worse%s%s", news,
                               plural(news), worse, begin, at);
    }
    free(first);
    return text;
}

/* Where less is held, too, neither is left out. */
static char *worse_headline(const struct seep_diff_set *set)
{
    const struct seep_diff_held *less = first_held_of(set, SEEP_DIFF_BETTER);
    char *leaks = worse_words(set);
    char *held = less == NULL ? NULL : held_words(less);
    char *text;

    if (leaks == NULL) {
        free(held);
        return held_headline("WORSE: ", first_held_of(set, SEEP_DIFF_WORSE));
    }
    text =
        held == NULL
            ? seep_words_make("WORSE: %s", leaks)
            : seep_words_make("WORSE by growth, BETTER by what is held: %s; %s",
                              leaks, held);
    free(leaks);
    free(held);
    return text;
}

/* "1 call site may be worse, f +119 KiB/min" */
static char *open_words(const struct seep_diff_set *set)
{
    const struct seep_diff_pair *pair = NULL;
    const struct seep_diff_row *row = NULL;
    size_t count =
        tally(set, SEEP_DIFF_UNTOLD, SEEP_DIFF_INSUFFICIENT, &pair, &row) +
        tally(set, SEEP_DIFF_NEW, SEEP_DIFF_INSUFFICIENT, &pair, &row) +
        tally(set, SEEP_DIFF_WORSE, SEEP_DIFF_INSUFFICIENT, &pair, &row);
    char *first = row == NULL ? NULL : changed(pair, row);
    char *text = seep_words_make("%zu call site%s may be worse%s%s", count,
                                 plural(count), count > 1 ? "; first " : ", ",
                                 first == NULL ? "?" : first);

    free(first);
    return text;
}

/* Of which side too little is known, and why. @return "": of neither */
static const char *open_side(const struct seep_diff_set *set,
                             const char **ret_reason)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct seep_diff *diff = &set->pairs[i].diff;

        if (diff->before.reason != NULL || diff->now.reason != NULL) {
            bool is_now = diff->before.reason == NULL;

            *ret_reason = is_now ? diff->now.reason : diff->before.reason;
            return is_now ? " now" : " before";
        }
    }
    *ret_reason = NULL;
    return "";
}

/* What is held is known, whatever growth comes to: less of it comes first. */
static char *open_headline(const struct seep_diff_set *set)
{
    const struct seep_diff_held *less = first_held_of(set, SEEP_DIFF_BETTER);
    const char *reason;
    const char *when = open_side(set, &reason);
    char *held = less == NULL ? NULL : held_words(less);
    char *open;
    char *text;

    if (set->count == 0) {
        free(held);
        return seep_words_make("NOT ENOUGH DATA: no program ran on both sides");
    }
    open = reason == NULL ? open_words(set) : seep_words_make("%s", reason);
    text =
        held == NULL
            ? seep_words_make("NOT ENOUGH DATA%s: %s", when,
                              open == NULL ? "?" : open)
            : seep_words_make(
                  "BETTER by what is held, NOT ENOUGH DATA on growth%s: %s; %s",
                  when, held, open == NULL ? "?" : open);
    free(held);
    free(open);
    return text;
}

/* "1 leak is gone, f -33.1 MiB/min"; NULL: none is, nor grows less.
 * @param ret_row  the first of them; NULL */
static char *better_words(const struct seep_diff_set *set,
                          const struct seep_diff_row **ret_row)
{
    const struct seep_diff_pair *pair = NULL;
    const struct seep_diff_row *row = NULL;
    size_t gone = tally(set, SEEP_DIFF_GONE, SEEP_DIFF_FINE, &pair, &row);
    size_t better = tally(set, SEEP_DIFF_BETTER, SEEP_DIFF_FINE, &pair, &row);
    const char *begin = gone + better > 1 ? "; first " : ", ";
    char *first;
    char *text;

    *ret_row = row;
    if (gone + better == 0) {
        return NULL;
    }
    first = row == NULL ? NULL : changed(pair, row);
    if (better == 0) {
        text = seep_words_make("%zu leak%s gone%s%s", gone,
                               gone == 1 ? " is" : "s are", begin,
                               first == NULL ? "?" : first);
    } else {
        text = seep_words_make("%zu call site%s less%s%s%s", better,
                               better == 1 ? " grows" : "s grow",
                               gone > 0 ? ", and others no longer grow" : "",
                               begin, first == NULL ? "?" : first);
    }
    free(first);
    return text;
}

static char *same_headline(const struct seep_diff_set *set)
{
    const struct seep_diff_pair *pair = NULL;
    const struct seep_diff_row *row = NULL;
    size_t same = tally(set, SEEP_DIFF_SAME, SEEP_DIFF_FINE, &pair, &row);

    return same == 0
               ? seep_words_make(
                     "SAME: nothing grows that did not grow before, and no more is held")
               : seep_words_make(
                     "SAME: %zu call site%s as before, and none is new or worse",
                     same, same == 1 ? " grows" : "s grow");
}

/* What leaks less holds less: that is not told twice. */
static bool is_of_row(const struct seep_diff_held *held,
                      const struct seep_diff_row *row)
{
    return row != NULL && held->site != NULL &&
           (held->site == row->now.site || held->site == row->before.site);
}

/* What is held less comes first: it is memory that is there already. */
static char *fine_headline(const struct seep_diff_set *set)
{
    const struct seep_diff_held *less = first_held_of(set, SEEP_DIFF_BETTER);
    const struct seep_diff_row *row;
    char *growth = better_words(set, &row);
    char *held = less == NULL || is_of_row(less, row) ? NULL : held_words(less);
    char *text = held == NULL && growth == NULL ? same_headline(set)
                 : held == NULL ? seep_words_make("BETTER: %s", growth)
                 : growth == NULL
                     ? seep_words_make("BETTER: %s", held)
                     : seep_words_make("BETTER: %s; %s", held, growth);

    free(growth);
    free(held);
    return text;
}

char *seep_diff_headline(const struct seep_diff_set *set)
{
    switch (seep_diff_set_answer(set)) {
    case SEEP_DIFF_LEAKS:
        return worse_headline(set);
    case SEEP_DIFF_INSUFFICIENT:
        return open_headline(set);
    default:
        return fine_headline(set);
    }
}

const char *seep_diff_set_name(const struct seep_diff_set *set)
{
    const struct seep_diff_pair *pair = NULL;
    const struct seep_diff_row *row = NULL;

    switch (seep_diff_set_answer(set)) {
    case SEEP_DIFF_LEAKS:
        return "worse";
    case SEEP_DIFF_INSUFFICIENT:
        return "not-enough-data";
    default:
        return tally(set, SEEP_DIFF_GONE, SEEP_DIFF_FINE, &pair, &row) +
                               tally(set, SEEP_DIFF_BETTER, SEEP_DIFF_FINE,
                                     &pair, &row) >
                           0 ||
                       first_held_of(set, SEEP_DIFF_BETTER) != NULL
                   ? "better"
                   : "same";
    }
}

static char *side(const struct seep_diff_set *set, const char *name,
                  const struct seep_diff_side *side)
{
    double sum = 0;

    for (size_t i = 0; i < side->count; i++) {
        sum += side->reports[i]->duration_s;
    }
    const char *seconds = SEEP_UNITS_DURATION(sum);
    return side->count == 1 && set->key == NULL
               ? seep_words_make("%s (%s)", name, seconds)
               : seep_words_make("%s%s%s (%zu process%s, %s)",
                                 set->key == NULL ? "" : set->key,
                                 set->key == NULL ? "" : "=", name, side->count,
                                 side->count == 1 ? "" : "es", seconds);
}

char *seep_diff_sides(const struct seep_diff_set *set,
                      const struct seep_diff_pair *pair)
{
    char *before = side(set, set->before_name, &pair->diff.before);
    char *now = side(set, set->now_name, &pair->diff.now);
    char *text =
        seep_words_make("before %s, now %s", before == NULL ? "?" : before,
                        now == NULL ? "?" : now);

    free(before);
    free(now);
    return text;
}

/* "server.py:54 remember" and "server.py:44 remember": how long is what is
 * equal before the line? 0: not all else is equal. */
static size_t length_of_file(const char *left, const char *right)
{
    size_t file = strcspn(left, ":");

    if (left[file] == '\0' || strncmp(left, right, file + 1) != 0) {
        return 0;
    }
    left += file + 1;
    right += file + 1;
    return strcmp(left + strspn(left, digits), right + strspn(right, digits)) ==
                   0
               ? file
               : 0;
}

/* "libfoo+0x40" and "libfoo+0x80": how far is a matter of the build. */
static bool only_offsets_differ(const char *left, const char *right)
{
    const char *offset = strstr(left, "+0x");
    size_t name = offset == NULL ? 0 : (size_t)(offset - left) + 3;
    static const char hexadecimal[] = "0123456789abcdef";

    return name > 0 && strncmp(left, right, name) == 0 &&
           left[name + strspn(left + name, hexadecimal)] == '\0' &&
           right[name + strspn(right + name, hexadecimal)] == '\0';
}

static char *with_before(char *now, const char *old, const char *new)
{
    size_t file = length_of_file(old, new);
    char *text;

    if (strcmp(old, new) == 0 || only_offsets_differ(old, new)) {
        return now;
    }
    text = file > 0 ? seep_words_make("%s (was line %.*s)", now,
                                      (int)strspn(old + file + 1, digits),
                                      old + file + 1)
                    : seep_words_make("%s (was %s)", now, old);
    if (text != NULL) {
        free(now);
        return text;
    }
    return now;
}

char *seep_diff_where(const struct seep_diff_row *row)
{
    char *now = where_of(&row->now);
    char *old;
    char *new;

    if (row->is_outside) {
        return seep_words_make("outside call sites");
    }
    if (now == NULL) {
        return where_of(&row->before);
    }
    old = plain_where(&row->before);
    new = plain_where(&row->now);
    if (old != NULL && new != NULL) {
        now = with_before(now, old, new);
    }
    free(old);
    free(new);
    return now;
}

char *seep_diff_held_where(const struct seep_diff_held *held)
{
    const char *pattern = held->pattern != NULL ? held->pattern->name : "";
    char *where;
    char *text;

    if (held->holder == SEEP_DIFF_HOLDER_PROCESS) {
        return seep_words_make("in private memory, at no one call site");
    }
    if (held->holder == SEEP_DIFF_HOLDER_DEVICES) {
        return seep_words_make("on GPUs, at no one call site");
    }
    if (held->holder == SEEP_DIFF_HOLDER_PATTERN) {
        return seep_words_make("%s, %zu call sites", pattern, held->site_count);
    }
    where = seep_words_user_frame(held->site);
    text = seep_words_make("%s%s%s%s", where == NULL ? "?" : where,
                           *pattern != '\0' ? " (" : "", pattern,
                           *pattern != '\0' ? ")" : "");
    free(where);
    return text;
}

const char *seep_diff_growth(const struct seep_diff *diff,
                             const struct seep_diff_site *site,
                             char text[SEEP_UNITS_TEXT_BYTES])
{
    return !site->grows    ? "-"
           : diff->by_unit ? seep_units_interval(&site->per_unit, 1, text)
                           : seep_units_interval(&site->per_s, 60, text);
}

const char *seep_diff_change_text(const struct seep_diff *diff,
                                  const struct seep_diff_row *row,
                                  char text[SEEP_UNITS_TEXT_BYTES])
{
    return seep_units_interval(&row->change, diff->by_unit ? 1 : 60, text);
}

/* Nothing is worse: what there is to see is in the run of now. */
static char *next_of_fine(const struct seep_diff_set *set)
{
    const struct seep_diff_side *now =
        set->count == 0 ? NULL : &set->pairs[0].diff.now;
    char *path = now == NULL || now->count == 0
                     ? NULL
                     : seep_words_quote(now->reports[0]->path);
    char *text = path == NULL ? NULL : seep_words_make("seep report %s", path);

    free(path);
    return text;
}

char *seep_diff_next(const struct seep_diff_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct seep_diff *diff = &set->pairs[i].diff;

        for (size_t k = 0; k < diff->row_count; k++) {
            const struct seep_diff_row *row = &diff->rows[k];

            if (row->weighs && row->now.site != NULL &&
                seep_diff_row_answer(row) != SEEP_DIFF_FINE) {
                return seep_words_stack_command(row->now.report, row->now.site);
            }
        }
        if (seep_diff_held_outcome(diff) == SEEP_DIFF_WORSE &&
            diff->first_held != NULL && diff->first_held->site != NULL) {
            return seep_words_stack_command(diff->first_held->report,
                                            diff->first_held->site);
        }
        if (diff->before.reason != NULL || diff->now.reason != NULL) {
            return seep_words_make(
                "run it longer: a verdict needs 30 s of work");
        }
    }
    return next_of_fine(set);
}
