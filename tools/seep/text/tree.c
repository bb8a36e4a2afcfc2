/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites as a tree: from main() down to what allocates, or from what
 * allocates up to its callers.
 *
 * Stacks are sorted by their frames, so that a branch is a range of them. What
 * only leads on is a line without figures; a branch of its own has its figures.
 * Frames are folded as in a stack, and those of one object are one label.
 *
 * Invariant: what a branch has is what the branches below it have, with those
 * that are too thin for a line and what it allocates itself.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/recording/series.h"
#include "reader/recording/store.h"
#include "text/report.h"
#include "text/table.h"
#include "words/notes.h"
#include "words/units.h"
#include "words/words.h"

#define THIN_SHARE 0.01 /* of all: a branch that has less is no line */
#define CHAIN_MOST 12U  /* lines that only lead on */
#define CHAIN_HEAD 4U   /* of more, the first and the last ones */
#define CHAIN_TAIL 6U
#define INDENT_SHARE 3U /* of the page */

/* A stack, and its labels from the root of the tree on. */
struct path {
    const struct seep_report_site *site;
    const struct seep_span_row *row;
    const char **labels; /* each text is there once */
    size_t count;
};

struct tree {
    const struct seep_span *span;
    const struct seep_text_options *options;
    struct seep_table *table;
    size_t columns; /* of the page */
    struct path *paths;
    size_t count;
    double least; /* weight of a branch that is a line */
    bool failed;  /* there was no memory for a part of it */
    struct seep_store store;
    struct seep_store_table texts;
    struct seep_store_table frames; /* by their fields, to the label */
};

/* Paths [first, last). */
struct range {
    size_t first;
    size_t last;
    double weight;
};

/*
 * Labels.
 */

/* The same text at the same place; takes @text. NULL without memory. */
static const char *intern(struct tree *tree, char *text)
{
    struct seep_store_entry *entry =
        text == NULL ? NULL
                     : seep_store_find(&tree->store, &tree->texts, text,
                                       strlen(text) + 1);

    free(text);
    return entry == NULL ? NULL : entry->key;
}

/* As a row of the table is named. */
static char *name_frame(const struct seep_report_frame *frame)
{
    const struct seep_report_site site = {.frames = &frame, .frame_count = 1};

    return seep_words_user_frame(&site);
}

/* Of frames that many stacks share the label is made once. */
static const char *label_frame(struct tree *tree,
                               const struct seep_report_frame *frame)
{
    const struct {
        const char *strings[3];
        uint64_t numbers[2];
    } key = {{frame->function, frame->file, frame->module},
             {frame->offset, frame->line * 2 + frame->python}};
    struct seep_store_entry *entry =
        seep_store_find(&tree->store, &tree->frames, &key, sizeof(key));

    if (entry == NULL) {
        return NULL;
    }
    if (entry->value == NULL) {
        entry->value = intern(tree, name_frame(frame));
    }
    return entry->value;
}

static const char *label_piece(struct tree *tree,
                               const struct seep_report_site *site,
                               const struct seep_fold_piece *piece)
{
    const struct seep_report_frame **frames = &site->frames[piece->first];
    char *object;
    const char *label;

    if (!piece->folded) {
        return label_frame(tree, frames[0]);
    }
    object = seep_words_object(frames[seep_fold_speaker(frames, piece->count)]);
    label =
        object == NULL ? NULL : intern(tree, seep_words_make("… %s …", object));
    free(object);
    return label;
}

/*
 * Paths.
 */

/* What the tree is about: of a part how it changed, else what stood. */
static double weight_of(const struct tree *tree, const struct path *path)
{
    return tree->span->is_moment || tree->span->is_whole ||
                   !seep_span_is_wished(&tree->options->wish)
               ? path->row->live_bytes
               : fabs(path->row->growth_bytes);
}

static void add_label(struct path *path, const char *label)
{
    if (label != NULL &&
        (path->count == 0 || path->labels[path->count - 1] != label)) {
        path->labels[path->count++] = label;
    }
}

/* @return 0 or -ENOMEM */
static int fill_path(struct tree *tree, const struct seep_report_site *site,
                     bool with_place, struct path *path)
{
    bool down = tree->options->tree == SEEP_TREE_DOWN;
    struct seep_fold_piece *pieces =
        calloc(site->frame_count + 1, sizeof(*pieces));
    char place[SEEP_WORDS_GPU_BYTES];
    size_t count = pieces == NULL ? 0 : seep_fold(site, pieces);

    path->site = site;
    path->labels = seep_store_take(&tree->store, count + 2, sizeof(char *));
    if (pieces == NULL || path->labels == NULL) {
        free(pieces);
        return -ENOMEM;
    }
    if (with_place) {
        add_label(path, intern(tree, strdup(seep_words_place(tree->span->report,
                                                             site, place))));
    }
    for (size_t i = 0; i < count; i++) {
        add_label(path,
                  label_piece(tree, site, &pieces[down ? count - 1 - i : i]));
    }
    if (count == 0) {
        add_label(path, intern(tree, strdup(site->where)));
    }
    free(pieces);
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    const struct path *left = a;
    const struct path *right = b;

    for (size_t i = 0; i < left->count && i < right->count; i++) {
        if (left->labels[i] != right->labels[i]) {
            return left->labels[i] < right->labels[i] ? -1 : 1;
        }
    }
    return (left->count > right->count) - (left->count < right->count);
}

static bool has_several_places(const struct seep_report *report)
{
    for (size_t i = 1; i < report->site_count; i++) {
        if (report->sites[i].space != report->sites[0].space ||
            report->sites[i].device != report->sites[0].device) {
            return true;
        }
    }
    return false;
}

/* Of all stacks, also of those that hold nothing by now: they are of the peak.
 * @return 0 or -ENOMEM */
static int find_paths(struct tree *tree)
{
    const struct seep_report *report = tree->span->report;
    bool with_place = has_several_places(report);
    int error = 0;

    tree->paths = calloc(report->site_count + 1, sizeof(*tree->paths));
    if (tree->paths == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; error == 0 && i < report->site_count; i++) {
        const struct seep_span_row *row = &tree->span->rows[i];
        struct path *path = &tree->paths[tree->count];

        if (seep_words_is_wanted(&report->sites[i], tree->options->site_id)) {
            *path = (struct path){.row = row};
            error = fill_path(tree, &report->sites[i], with_place, path);
            tree->count += error == 0 && path->count > 0;
        }
    }
    qsort(tree->paths, tree->count, sizeof(*tree->paths), compare_paths);
    return error;
}

/*
 * Lines.
 */

enum column { GROWTH, LIVE, PEAK, LABEL, COLUMN_COUNT };

static struct range range_of(const struct tree *tree, size_t first, size_t last)
{
    struct range range = {first, last, 0};

    for (size_t i = first; i < last; i++) {
        range.weight += weight_of(tree, &tree->paths[i]);
    }
    return range;
}

/* The label of @path at @depth; NULL: it ends before. */
static const char *label_at(const struct path *path, size_t depth)
{
    return depth < path->count ? path->labels[depth] : NULL;
}

static int indent_of(const struct tree *tree, size_t level)
{
    size_t most = tree->columns / INDENT_SHARE;

    return (int)(2 * level < most ? 2 * level : most);
}

/* Figures of several ranges together. */
static void fill_figures(struct tree *tree, const struct range *ranges,
                         size_t count)
{
    struct seep_span_course course;
    double growth = 0;
    double live = 0;

    seep_span_course_init(tree->span->report, &course);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = ranges[i].first; j < ranges[i].last; j++) {
            growth += tree->paths[j].row->growth_bytes;
            live += tree->paths[j].row->live_bytes;
            seep_span_course_add(&course, tree->paths[j].site);
        }
    }
    seep_table_cell(tree->table, GROWTH, "%s", SEEP_UNITS_CHANGE(growth));
    seep_table_cell(tree->table, LIVE, "%s", SEEP_UNITS_BYTES(live));
    seep_table_cell(tree->table, PEAK, "%s",
                    SEEP_UNITS_BYTES(seep_span_course_peak(&course).bytes));
}

static void put_label(struct tree *tree, enum seep_style style, size_t level,
                      const char *label)
{
    seep_table_row(tree->table, style);
    seep_table_cell(tree->table, LABEL, "%*s%s", indent_of(tree, level), "",
                    label);
}

/* The labels of a way on which nothing branches off. */
static void put_chain(struct tree *tree, const struct path *path, size_t depth,
                      size_t end, size_t level)
{
    size_t left = end - depth;
    bool is_cut = left > CHAIN_MOST && !tree->options->whole_stacks;

    for (size_t i = depth; i < end; i++) {
        if (is_cut && i == depth + CHAIN_HEAD) {
            char more[64];

            snprintf(more, sizeof(more), SEEP_NOTE_CALLS,
                     left - CHAIN_HEAD - CHAIN_TAIL);
            put_label(tree, SEEP_STYLE_FAINT, level, more);
            i = end - CHAIN_TAIL;
        }
        put_label(tree, SEEP_STYLE_PLAIN, level, path->labels[i]);
    }
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *left = a;
    const struct range *right = b;

    if (left->weight != right->weight) {
        return left->weight < right->weight ? 1 : -1;
    }
    return (left->first > right->first) - (left->first < right->first);
}

/* Ranges that are told together, or one after the other. */
struct ranges {
    struct range *list;
    size_t count;
    size_t capacity;
    double weight;
};

/* What there is no memory for is missing, and said to be. */
static void add_range(struct tree *tree, struct ranges *ranges,
                      const struct range *range)
{
    if (ranges->count == ranges->capacity) {
        size_t capacity = 2 * ranges->capacity + 8;
        struct range *list =
            reallocarray(ranges->list, capacity, sizeof(*list));

        if (list == NULL) {
            tree->failed = true;
            return;
        }
        ranges->list = list;
        ranges->capacity = capacity;
    }
    ranges->list[ranges->count++] = *range;
    ranges->weight += range->weight;
}

/* By the label at @depth, the heaviest first; one are those that end there. */
static void split(struct tree *tree, const struct range *range, size_t depth,
                  struct ranges *ret_ranges)
{
    size_t first = range->first;

    ret_ranges->count = 0;
    ret_ranges->weight = 0;
    while (first < range->last) {
        const char *label = label_at(&tree->paths[first], depth);
        struct range part;
        size_t last = first + 1;

        while (last < range->last &&
               label_at(&tree->paths[last], depth) == label) {
            last++;
        }
        part = range_of(tree, first, last);
        add_range(tree, ret_ranges, &part);
        first = last;
    }
    if (ret_ranges->count > 0) {
        qsort(ret_ranges->list, ret_ranges->count, sizeof(struct range),
              compare_ranges);
    }
}

/* How many of @ranges are lines. */
static size_t count_shown(const struct tree *tree, const struct ranges *ranges)
{
    size_t most =
        tree->options->site_limit == 0 ? SIZE_MAX : tree->options->site_limit;
    size_t count = 0;

    while (count < ranges->count && count < most &&
           ranges->list[count].weight >= tree->least) {
        count++;
    }
    return count;
}

/* Does all but a thin rest go on to one label at @depth? */
static bool leads_on(const struct tree *tree, const struct ranges *ranges,
                     const struct ranges *rest, size_t depth)
{
    double beside = rest->weight + ranges->weight -
                    (ranges->count > 0 ? ranges->list[0].weight : 0);

    return ranges->count > 0 && count_shown(tree, ranges) == 1 &&
           label_at(&tree->paths[ranges->list[0].first], depth) != NULL &&
           (ranges->count == 1 || beside < tree->least);
}

static void follow(struct tree *tree, struct range range, size_t depth,
                   size_t level);

/* Do they change nothing, and did they never hold as much as a line is for? */
static bool is_nothing(const struct tree *tree, const struct ranges *ranges)
{
    struct seep_span_course course;

    if (ranges->weight > 0 || tree->options->site_limit == 0) {
        return ranges->count == 0;
    }
    seep_span_course_init(tree->span->report, &course);
    for (size_t i = 0; i < ranges->count; i++) {
        for (size_t j = ranges->list[i].first; j < ranges->list[i].last; j++) {
            seep_span_course_add(&course, tree->paths[j].site);
        }
    }
    return seep_span_course_peak(&course).bytes <
           THIN_SHARE * tree->span->peak.bytes;
}

static void put_rest(struct tree *tree, const struct ranges *rest, size_t level)
{
    char text[64];

    snprintf(text, sizeof(text), SEEP_NOTE_THIN, rest->count,
             rest->count == 1 ? "" : "es");
    put_label(tree, SEEP_STYLE_FAINT, level, text);
    fill_figures(tree, rest->list, rest->count);
}

/* What ends where others go on, or had others beside it on the way. */
static void put_end(struct tree *tree, const struct range *range, bool beside,
                    size_t level)
{
    put_label(tree, SEEP_STYLE_FAINT, level,
              beside ? SEEP_NOTE_THIS_WAY : SEEP_NOTE_ITSELF);
    fill_figures(tree, range, 1);
}

/* Where several go on: each, and the rest as one line. */
static void put_branches(struct tree *tree, const struct ranges *ranges,
                         struct ranges *rest, size_t depth, size_t level)
{
    size_t shown = count_shown(tree, ranges);
    bool has_rest;

    for (size_t i = shown; i < ranges->count; i++) {
        add_range(tree, rest, &ranges->list[i]);
    }
    has_rest = !is_nothing(tree, rest);
    for (size_t i = 0; i < shown; i++) {
        const struct range *range = &ranges->list[i];
        const char *label = label_at(&tree->paths[range->first], depth);

        if (label != NULL) {
            put_label(tree, SEEP_STYLE_PLAIN, level, label);
            fill_figures(tree, range, 1);
            follow(tree, *range, depth + 1, level);
        } else if (shown > 1 || has_rest) {
            put_end(tree, range, shown == 1, level);
        }
    }
    if (has_rest) {
        put_rest(tree, rest, level);
    }
}

/* What comes below a line at @level, whose stacks are @range: as long as nearly
 * all of it goes on together, at its own level. */
static void follow(struct tree *tree, struct range range, size_t depth,
                   size_t level)
{
    struct ranges ranges = {.list = NULL};
    struct ranges rest = {.list = NULL};
    size_t first = depth;

    for (split(tree, &range, depth, &ranges);
         leads_on(tree, &ranges, &rest, depth);
         split(tree, &range, ++depth, &ranges)) {
        for (size_t i = 1; i < ranges.count; i++) {
            add_range(tree, &rest, &ranges.list[i]);
        }
        range = ranges.list[0];
    }
    put_chain(tree, &tree->paths[range.first], first, depth, level);
    put_branches(tree, &ranges, &rest, depth, level + 1);
    free(ranges.list);
    free(rest.list);
}

/* Where there are several places, each is a branch; what lies in another's
 * memory is not in the sum. */
static void put_all(struct tree *tree)
{
    const struct seep_span_sum *total = &tree->span->total;
    struct range all = range_of(tree, 0, tree->count);

    put_label(tree, SEEP_STYLE_STRONG, 0, "all");
    fill_figures(tree, &all, 1);
    if (tree->options->site_id == NULL) {
        seep_table_cell(tree->table, GROWTH, "%s",
                        SEEP_UNITS_CHANGE(total->growth_bytes));
        seep_table_cell(tree->table, LIVE, "%s",
                        SEEP_UNITS_BYTES(total->live_bytes));
        seep_table_cell(tree->table, PEAK, "%s",
                        SEEP_UNITS_BYTES(tree->span->peak.bytes));
    }
    tree->least = tree->options->site_limit == 0 ? 0 : THIN_SHARE * all.weight;
    follow(tree, all, 0, 0);
}

static struct seep_table *open_table(const struct tree *tree)
{
    bool part = !tree->span->is_moment;
    const struct seep_table_column columns[COLUMN_COUNT] = {
        [GROWTH] = {"growth", true, part ? 0 : SEEP_TABLE_NEVER},
        [LIVE] = {tree->span->is_moment ? "live then" : "live", true,
                  part ? 50 : 0},
        [PEAK] = {"peak", true, 70},
        [LABEL] = {tree->options->tree == SEEP_TREE_DOWN ? SEEP_NOTE_TREE_DOWN
                                                         : SEEP_NOTE_TREE_UP,
                   false, 0},
    };

    return seep_table_open(columns, COLUMN_COUNT);
}

static void print_tree(struct seep_page *page, const struct seep_span *span,
                       const struct seep_text_options *options)
{
    struct tree tree = {
        .span = span, .options = options, .columns = page->columns};

    tree.failed = find_paths(&tree) != 0;
    if (!tree.failed) {
        tree.table = open_table(&tree);
        put_all(&tree);
        seep_table_print(tree.table, page, 1);
    }
    if (tree.failed) {
        seep_page_print(page, SEEP_STYLE_WARNING, " not enough memory");
        seep_page_end_line(page);
    }
    seep_page_end_line(page);
    free(tree.paths);
    seep_store_table_fini(&tree.texts);
    seep_store_table_fini(&tree.frames);
    seep_store_fini(&tree.store);
}

/*
 * What of it: the part that was asked for, else what the work did; of a process
 * that freed all at its end, the peak.
 */

static struct seep_span_wish wish_of(const struct seep_report *report,
                                     const struct seep_text_options *options)
{
    struct seep_span_wish wish = options->wish;

    if (seep_span_is_wished(&wish)) {
        return wish;
    }
    if (report->freed_all) {
        wish.at.when = SEEP_SPAN_PEAK;
    } else if (report->begin.from_s > 0) {
        wish.since.when = SEEP_SPAN_TIME;
        wish.since.seconds = report->begin.from_s;
    }
    return wish;
}

static void print_report(struct seep_page *page,
                         const struct seep_report *report,
                         const struct seep_text_options *options)
{
    struct seep_span_wish wish = wish_of(report, options);
    struct seep_span *span = NULL;
    int error = seep_span_open(report, &wish, &span);

    if (error != 0) {
        seep_view_span_refused(page, report, &wish, error);
        return;
    }
    seep_view_span_head(page, span, &wish);
    print_tree(page, span, options);
    seep_span_close(span);
}

/* Rows of one line are several stacks: they are read again, each by itself. */
void seep_view_tree(struct seep_page *page, const struct seep_report *report,
                    const struct seep_text_options *options)
{
    struct seep_report *stacks = NULL;
    struct seep_refusal refusal = {.error = 0};

    if (report->by == SEEP_BY_STACK || options->by_stack == NULL) {
        print_report(page, report, options);
        return;
    }
    if (seep_report_open(report->path, options->by_stack, &refusal, &stacks) !=
        0) {
        seep_page_print(page, SEEP_STYLE_WARNING, " %s: %s", report->path,
                        refusal.reason);
        seep_page_end_line(page);
        return;
    }
    print_report(page, stacks, options);
    seep_report_close(stacks);
}
