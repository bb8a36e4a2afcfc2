/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites with their whole stacks, and all that is known of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "fold.h"
#include "reader/catalogue.h"
#include "units.h"
#include "verdict_words.h"
#include "view_sites.h"
#include "words.h"

#define ID_COLUMNS 8
#define INDENT 4 /* of frames */

/* What is known of it beside its frames. */
static void print_evidence(struct seep_page *page,
                           const struct seep_report *report,
                           const struct seep_report_site *site)
{
    char *kept = seep_verdict_words_kept(report, site);

    if (site->class_reason != NULL && *site->class_reason != '\0') {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 2, "%s",
                            site->class_reason);
    }
    if (kept != NULL) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 2, "%s", kept);
        free(kept);
    }
    if (site->suppressed_by != NULL) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 2,
                            "suppressed by leak:%s", site->suppressed_by);
    }
    if (site->pattern != NULL) {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 2,
                            "known: %s. %s %s (%s)", site->pattern->name,
                            site->pattern->cause, site->pattern->remedy,
                            site->pattern->source);
    }
}

/* Of a row of several stacks one is shown. */
static void print_largest(struct seep_page *page,
                          const struct seep_report_site *site)
{
    char live[SEEP_UNITS_TEXT_BYTES];

    if (site->stack_count > 1) {
        seep_page_paragraph(
            page, SEEP_INK_PLAIN, "", 2,
            "the largest of %zu stacks, %s live (--by stack lists them)",
            site->stack_count,
            seep_units_bytes((double)site->stack_live_bytes, live));
    }
    if (*site->thread != '\0') {
        seep_page_paragraph(page, SEEP_INK_PLAIN, "", 2, "thread %s",
                            site->thread);
    }
}

static bool is_too_wide(const struct seep_page *page, const char *text)
{
    return text != NULL && seep_clean_columns(text) + INDENT > page->columns;
}

/* The same with a file that begins behind as many folders as are too many, or
 * behind all. Takes @text. */
static char *without_folders(const struct seep_page *page,
                             const struct seep_report_frame *frame, char *text)
{
    size_t excess = seep_clean_columns(text) + INDENT - page->columns;
    struct seep_report_frame shorter = *frame;
    const char *rest = strlen(frame->file) <= excess
                           ? NULL
                           : strchr(frame->file + excess + 1, '/');
    char *file;

    rest = rest == NULL ? strrchr(frame->file, '/') : rest;
    if (rest == NULL || rest == frame->file ||
        asprintf(&file, "…%s", rest) < 0) {
        return text;
    }
    free(text);
    shorter.file = file;
    text = seep_words_frame_long(&shorter, true);
    free(file);
    return text;
}

/* What is wider than the page loses the arguments of a name of C++, then
 * folders; but the line that a user looks for is told as it is. */
static char *frame_text(const struct seep_page *page,
                        const struct seep_report_frame *frame, bool user,
                        bool whole)
{
    char *text = seep_words_frame_long(frame, false);

    if (!whole && is_too_wide(page, text)) {
        free(text);
        text = seep_words_frame_long(frame, true);
    }
    return !whole && !user && is_too_wide(page, text)
               ? without_folders(page, frame, text)
               : text;
}

static void print_frame(struct seep_page *page,
                        const struct seep_report_site *site, size_t i,
                        bool whole)
{
    bool user = i == site->where_frame;
    char *frame = frame_text(page, &site->frames[i], user, whole);

    seep_page_print(page, user ? SEEP_INK_STRONG : SEEP_INK_PLAIN, "  %s %s",
                    user ? ">" : " ", frame == NULL ? "?" : frame);
    seep_page_end_line(page);
    free(frame);
}

static void print_fold(struct seep_page *page,
                       const struct seep_report_site *site,
                       const struct seep_fold_piece *piece)
{
    char *words = seep_fold_words(&site->frames[piece->first], piece->count);

    seep_page_print(page, SEEP_INK_FAINT, "    … %s …",
                    words == NULL ? "frames" : words);
    seep_page_end_line(page);
    free(words);
}

/* Without memory to fold them they are printed one by one. */
static void print_frames(struct seep_page *page,
                         const struct seep_report_site *site,
                         const struct seep_text_options *options)
{
    struct seep_fold_piece *pieces =
        options->whole_stacks ? NULL
                              : calloc(site->frame_count + 1, sizeof(*pieces));
    size_t count = pieces == NULL ? site->frame_count : seep_fold(site, pieces);

    for (size_t i = 0; i < count; i++) {
        if (pieces != NULL && pieces[i].folded) {
            print_fold(page, site, &pieces[i]);
        } else {
            print_frame(page, site, pieces == NULL ? i : pieces[i].first,
                        options->whole_stacks);
        }
    }
    free(pieces);
}

static void print_stack(struct seep_page *page,
                        const struct seep_report *report,
                        const struct seep_report_site *site,
                        const struct seep_text_options *options)
{
    char live[SEEP_UNITS_TEXT_BYTES];
    char blocks[SEEP_UNITS_TEXT_BYTES];
    char place[SEEP_WORDS_GPU_BYTES];

    seep_page_print(page, SEEP_INK_STRONG, "site %.*s", ID_COLUMNS, site->id);
    seep_page_print(page, SEEP_INK_PLAIN, "  %s, %s, %s live in %s blocks",
                    site->backs_tensors ? "segments of PyTorch's cache"
                                        : seep_class_name(site->class),
                    seep_words_place(report, site, place),
                    seep_units_bytes((double)site->live_bytes, live),
                    seep_units_count(site->live_count, blocks));
    seep_page_end_line(page);
    print_largest(page, site);
    print_evidence(page, report, site);
    print_frames(page, site, options);
    if (site->cut != SEEP_CUT_NONE) {
        seep_page_print(page, SEEP_INK_FAINT, "    (cut here: %s)",
                        seep_words_cut(site->cut));
        seep_page_end_line(page);
    }
    seep_page_end_line(page);
}

void seep_view_sites_stacks(struct seep_page *page,
                            const struct seep_report *report,
                            const struct seep_text_options *options)
{
    struct seep_view_choice choice = seep_view_sites_start(report, options);

    for (size_t i = 0; i < report->site_count; i++) {
        if (seep_view_sites_choose(&choice, &report->sites[i], options)) {
            print_stack(page, report, &report->sites[i], options);
        }
    }
}
