/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parts of a frame that are text: who, the answer, a stack, help, keys.
 * Invariant: all of it goes through a page, which cleans it.
 */
#include "top_draw.h"

#include <stdlib.h>
#include <string.h>

#include "top_pad.h"
#include "units.h"
#include "view_sites.h"
#include "view_text.h"
#include "words.h"

#define WRAP_LEAST 50 /* columns, to make paragraphs of the sentences */
#define WIDE 10000
#define LABEL_LEAST 60 /* columns; a narrower page begins with the process */

bool seep_top_pad_open(struct seep_top_pad *pad,
                       const struct seep_top_size *size)
{
    pad->text = NULL;
    pad->page = (struct seep_page){
        .file = open_memstream(&pad->text, &pad->bytes),
        .columns = size->columns,
        .color = true,
    };
    return pad->page.file != NULL;
}

char *seep_top_pad_close(struct seep_top_pad *pad)
{
    fclose(pad->page.file);
    return pad->text;
}

struct seep_top_window seep_top_draw_window(size_t selected, size_t count,
                                            size_t most)
{
    size_t shown = most < 1 ? 1 : most < count ? most : count;
    size_t first = selected > shown / 2 ? selected - shown / 2 : 0;

    if (first + shown > count) {
        first = count > shown ? count - shown : 0;
    }
    return (struct seep_top_window){first, first + shown < count ? first + shown
                                                                 : count};
}

char *seep_top_draw_head(const struct seep_top_model *model,
                         const struct seep_top_size *size)
{
    const struct seep_report *report = seep_top_model_report(model);
    struct seep_top_pad pad;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    if (report == NULL) {
        seep_page_paragraph(&pad.page, SEEP_INK_STRONG, "seep top:", 10,
                            "%s: %s", size->target == NULL ? "?" : size->target,
                            size->waiting ? "is being read"
                                          : "nothing is recorded there yet");
    } else {
        seep_view_text_head(&pad.page, report,
                            size->columns < LABEL_LEAST ? "" : "seep top:");
    }
    return seep_top_pad_close(&pad);
}

char *seep_top_draw_answer(const struct seep_report *report,
                           const struct seep_top_size *size)
{
    struct seep_top_pad pad;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    if (size->columns < WRAP_LEAST) {
        pad.page.columns = WIDE; /* a line for each sentence, cut at the end */
    }
    seep_view_text_answer(&pad.page, report);
    return seep_top_pad_close(&pad);
}

char *seep_top_draw_no_sites(const struct seep_top_model *model,
                             const struct seep_top_size *size)
{
    const struct seep_report *report = seep_top_model_report(model);
    struct seep_top_pad pad;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    if (model->all_count > 0) {
        seep_page_paragraph(
            &pad.page, SEEP_INK_PLAIN, "", 1,
            "none of %zu call sites is as asked for: %s%s%s%s",
            model->all_count, model->filter,
            *model->filter != '\0' && model->space >= 0 ? ", " : "",
            model->space >= 0 ? "space " : "",
            model->space >= 0 ? seep_words_space((enum seep_space)model->space)
                              : "");
    } else if (report != NULL) {
        seep_page_paragraph(&pad.page, SEEP_INK_PLAIN, "", 1,
                            "no call site was recorded yet");
    }
    return seep_top_pad_close(&pad);
}

char *seep_top_draw_left_out(const struct seep_top_model *model,
                             const struct seep_top_size *size, size_t shown)
{
    const struct seep_report *report = seep_top_model_report(model);
    size_t more = model->row_count - shown;
    struct seep_top_pad pad;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    if (*model->filter == '\0' && report->site_total > report->site_count) {
        more += report->site_total - report->site_count;
    }
    if (more > 0) {
        seep_page_paragraph(&pad.page, SEEP_INK_FAINT, "", 1,
                            "and %zu more call site%s (--sites 0 shows all)",
                            more, more == 1 ? "" : "s");
    }
    return seep_top_pad_close(&pad);
}

char *seep_top_draw_stack(const struct seep_top_model *model,
                          const struct seep_top_size *size)
{
    const struct seep_report *report = seep_top_model_report(model);
    const struct seep_text_options options = {.stacks = true,
                                              .site_id = model->site_id};
    struct seep_top_pad pad;
    bool found = false;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    for (size_t i = 0; report != NULL && i < report->site_count; i++) {
        found = found || strcmp(report->sites[i].id, model->site_id) == 0;
    }
    if (found) {
        seep_view_sites_stacks(&pad.page, report, &options);
    } else {
        seep_page_paragraph(&pad.page, SEEP_INK_WARNING, "", 0,
                            "site %.8s is no longer among the call sites",
                            model->site_id);
    }
    return seep_top_pad_close(&pad);
}

char *seep_top_draw_help(const struct seep_top_size *size)
{
    static const struct {
        const char *keys;
        const char *words;
    } lines[] = {
        {"arrows, j k", "select a call site; page keys, Home and End as well"},
        {"Enter", "its stack, and back"},
        {"g l n w", "order: growth (as the report has it), live bytes, number "
                    "of blocks, where"},
        {"/", "only call sites with this text in where, class or space; Enter "
              "ends it, Escape takes it away"},
        {"s", "only the next space: heap, mapped, python, device, ..."},
        {"Tab, 1 to 9", "the next process, or the one in that row"},
        {"p", "pause, and go on"},
        {"r", "read now"},
        {"+ -", "seconds between two readings"},
        {"h", "this, and back"},
        {"q", "quit"},
    };
    struct seep_top_pad pad;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        seep_page_paragraph(&pad.page, SEEP_INK_STRONG, lines[i].keys, 13, "%s",
                            lines[i].words);
    }
    seep_page_end_line(&pad.page);
    seep_page_paragraph(
        &pad.page, SEEP_INK_PLAIN, "", 0,
        "A rate is a mean of the run with its 95 %% interval; \"-\" does not "
        "grow, \"?\" cannot be told yet. The bars are live bytes from the "
        "start of the run to now, the highest of the row is full.");
    return seep_top_pad_close(&pad);
}

static void put_state(struct seep_page *page,
                      const struct seep_top_model *model)
{
    char interval[SEEP_UNITS_TEXT_BYTES];

    if (model->paused) {
        seep_page_print(page, SEEP_INK_WARNING, "PAUSED");
        seep_page_print(page, SEEP_INK_PLAIN, "  ");
    }
    if (*model->filter != '\0') {
        seep_page_print(page, SEEP_INK_STRONG, "/%s", model->filter);
        seep_page_print(page, SEEP_INK_PLAIN, "  ");
    }
    if (model->space >= 0) {
        seep_page_print(page, SEEP_INK_STRONG, "space %s",
                        seep_words_space((enum seep_space)model->space));
        seep_page_print(page, SEEP_INK_PLAIN, "  ");
    }
    seep_page_print(
        page, SEEP_INK_FAINT,
        "h help  q quit  %zu of %zu by %s  every %s%s  Enter stack  / filter"
        "  s space  p pause  + - slower, faster",
        model->row_count > 0 ? model->row + 1 : 0, model->row_count,
        seep_top_sort_name(model->sort),
        seep_units_duration(model->interval_s, interval),
        model->report_count > 1 ? "  Tab process" : "");
}

char *seep_top_draw_keys(const struct seep_top_model *model,
                         const struct seep_top_size *size)
{
    struct seep_top_pad pad;

    if (!seep_top_pad_open(&pad, size)) {
        return NULL;
    }
    if (size->notice != NULL) {
        seep_page_print(&pad.page, SEEP_INK_WARNING, "%s", size->notice);
        seep_page_end_line(&pad.page);
    }
    if (model->typing) {
        seep_page_print(&pad.page, SEEP_INK_STRONG, "/%s_", model->filter);
        seep_page_print(&pad.page, SEEP_INK_FAINT,
                        "  Enter keeps it, Escape takes it away");
    } else if (model->pane != SEEP_TOP_SITES) {
        seep_page_print(&pad.page, SEEP_INK_FAINT,
                        "Escape back  arrows scroll  q quit");
    } else {
        put_state(&pad.page, model);
    }
    seep_page_end_line(&pad.page);
    return seep_top_pad_close(&pad);
}
