/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A frame is put together from parts, tables and texts, of which each is drawn
 * as a text. Invariant: parts are dropped whole or cut at the end, so that the
 * lines are never more than were asked for, and the rows of call sites are the
 * last to go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/page.h"
#include "text/report.h"
#include "text/table.h"
#include "top/top.h"
#include "words/common.h"
#include "words/held.h"
#include "words/units.h"
#include "words/verdict.h"
#include "words/words.h"

#define KEYS_LEAST 4      /* lines; a smaller page has no room for them */
#define MEMORY_LEAST 14   /* for the table of memory */
#define PROCESSES_LEAST 8 /* for that of processes */
#define FAMILIES_LEAST 24 /* a family each so many lines, and two of those */
#define BLANKS_LEAST 24   /* for lines between the parts */
#define UNBOUND ((size_t)1 << 20)

/* What a part is drawn of. */
struct part {
    const struct seep_top_model *model;
    const struct seep_report *report; /* that is shown; NULL: none */
    const struct seep_top_size *size;
    struct {
        size_t first;
        size_t end;
    } window;   /* the rows of a table that are shown, of many */
    bool brief; /* there is no room for all of a command line */
};

typedef void drawer(struct seep_page *page, const struct part *part);

/* Lines that are left, and where they go. */
struct builder {
    struct part part; /* the one that is drawn */
    struct seep_top_frame frame;
    size_t room; /* lines that are left */
    bool failed;
};

/*
 * Parts of a frame that are tables: processes, memory, call sites. Invariant:
 * one line a row, so that the frame knows where the selected one is.
 */

#define FIRST_LEAST 120 /* columns of a page with it */
#define TREND_SHARE 10  /* of the columns are bars */
#define TREND_MOST 24

/* A title, and one line each of the rows in the window. */
static void draw_sites(struct seep_page *page, const struct part *part)
{
    const struct seep_report *report = part->report;
    struct seep_table *table = seep_view_sites_open(report, true);
    size_t cells = page->columns / TREND_SHARE;

    cells = cells > TREND_MOST ? TREND_MOST : cells;
    for (size_t i = part->window.first; i < part->window.end; i++) {
        const struct seep_top_row *row = part->model->rows[i];

        seep_view_sites_row(
            table, report, row->site, row->where,
            seep_spark_site(row->site, report->duration_s, cells));
        if (part->size->lines == 0) {
            seep_table_paragraph(
                table, "held by",
                seep_words_held_line(row->site->held, row->site->live_bytes));
        }
    }
    seep_table_print(table, page, 1);
}

enum process_column {
    PID,
    VERDICT,
    RATE,
    HELD,
    AGE,
    STATE,
    COMMAND,
    PROCESS_COLUMN_COUNT
};

static void fill_process(struct seep_table *table,
                         const struct seep_report *report)
{
    uint64_t live =
        seep_words_host_bytes(report) + seep_words_gpu_bytes(report);

    seep_table_row(table, SEEP_STYLE_PLAIN);
    seep_table_cell(table, PID, "%u", report->pid);
    seep_table_cell(table, VERDICT, "%s",
                    seep_verdict_name(report->verdict.class));
    seep_table_style(table, VERDICT,
                     seep_view_verdict_style(report->verdict.class));
    if (report->verdict.has_growth) {
        seep_table_cell(
            table, RATE, "%s",
            SEEP_UNITS_INTERVAL(&report->verdict.growth_bytes_per_s, 60));
    }
    seep_table_cell(table, HELD, "%s", SEEP_UNITS_BYTES((double)live));
    seep_table_cell(table, AGE, "%s",
                    SEEP_UNITS_DURATION(seep_words_life_s(report)));
    seep_table_cell(table, STATE, "%s", seep_words_state_name(report->state));
    seep_table_take(table, COMMAND, seep_words_command(report));
}

/* A title, and one line each of the processes in the window. */
static void draw_processes(struct seep_page *page, const struct part *part)
{
    static const struct seep_table_column columns[PROCESS_COLUMN_COUNT] = {
        [PID] = {"pid", true, 0},          [VERDICT] = {"verdict", false, 0},
        [RATE] = {"growth/min", true, 0},  [HELD] = {"live", true, 50},
        [AGE] = {"age", true, 100},        [STATE] = {"state", false, 70},
        [COMMAND] = {"command", false, 0},
    };
    struct seep_table *table = seep_table_open(columns, PROCESS_COLUMN_COUNT);

    for (size_t i = part->window.first; i < part->window.end; i++) {
        fill_process(table, part->model->reports[i]);
    }
    seep_table_print(table, page, 1);
}

static void add_spaces(struct seep_table *table,
                       const struct seep_report *report)
{
    for (size_t i = 0; i < report->space_count; i++) {
        struct seep_report_extent extent = seep_view_space_extent(report, i);

        seep_view_balance_row(
            table, report, seep_words_space(report->spaces[i].space), &extent);
    }
}

/* "in 2 h 51 min (2 h 44 min to ..)". That the process does not grow is not
 * said where the row itself does, by page cache or by what else is there. */
static char *when_of(const struct seep_report_forecast *forecast,
                     const struct seep_report_extent *filled)
{
    if (forecast == NULL) {
        return NULL;
    }
    return forecast->answer == SEEP_FORECAST_NEVER &&
                   filled->slope_bytes_per_s > filled->slope_error
               ? seep_words_make("never by the process itself")
               : seep_words_when(forecast);
}

/* "6.6 GiB of 8 GiB free, full in 2 h 51 min (2 h 44 min to ..)"
 * @param when  NULL, or to free */
static void note_limit(struct seep_table *table, uint64_t limit_bytes,
                       double used_bytes, char *when)
{
    double left = (double)limit_bytes - used_bytes;

    seep_table_cell(table, SEEP_VIEW_BALANCE_NOTE, "%s of %s free%s%s",
                    SEEP_UNITS_BYTES(left > 0 ? left : 0),
                    SEEP_UNITS_BYTES((double)limit_bytes),
                    when == NULL ? "" : ", full ", when == NULL ? "" : when);
    free(when);
}

static const struct seep_report_forecast *
forecast_of(const struct seep_report *report, const char *what)
{
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    return forecast->what != NULL && strcmp(forecast->what, what) == 0
               ? forecast
               : NULL;
}

static void add_host(struct seep_table *table, const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;
    struct seep_report_extent ram = {
        .valid = true,
        .last_bytes =
            (double)memory->machine_bytes - (double)memory->available_bytes,
    };

    if (memory->rss.valid) {
        seep_view_balance_row(table, report, "RSS", &memory->rss);
        seep_table_take(table, SEEP_VIEW_BALANCE_NOTE,
                        seep_spark_held(report, 16));
    }
    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        seep_view_balance_row(table, report, "cgroup", &memory->cgroup);
        note_limit(table, memory->cgroup_limit_bytes, memory->cgroup.last_bytes,
                   when_of(forecast_of(report, "cgroup"), &memory->cgroup));
    }
    if (memory->machine_bytes > 0 && memory->available_bytes > 0) {
        seep_view_balance_row(table, report, "machine", &ram);
        seep_table_cell(table, SEEP_VIEW_BALANCE_FIRST, "%s", "");
        seep_table_cell(table, SEEP_VIEW_BALANCE_GROWTH, "%s", "");
        note_limit(table, memory->machine_bytes, ram.last_bytes,
                   when_of(forecast_of(report, "ram"), &ram));
    }
}

static void add_devices(struct seep_table *table,
                        const struct seep_report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        const struct seep_report_device *device = &report->devices[i];
        bool followed = seep_words_is_followed(device);
        char name[SEEP_WORDS_GPU_BYTES];

        seep_words_gpu((int)device->ordinal, name);
        seep_view_balance_row(table, report, name, &device->used);
        if (!followed) {
            seep_table_cell(table, SEEP_VIEW_BALANCE_GROWTH, "%s", "");
        }
        note_limit(table, device->total_bytes,
                   (double)device->total_bytes - (double)device->free_bytes,
                   followed ? seep_words_when(&device->forecast) : NULL);
    }
}

/* What is live, what the process holds, and how far the limits are. */
static void draw_memory(struct seep_page *page, const struct part *part)
{
    struct seep_table *table = seep_view_balance_open("memory", FIRST_LEAST);

    add_spaces(table, part->report);
    add_host(table, part->report);
    add_devices(table, part->report);
    seep_table_print(table, page, 1);
}

/*
 * Parts of a frame that are text: who, the answer, a stack, help, keys.
 * Invariant: all of it goes through a page, which cleans it.
 */

#define WRAP_LEAST 50 /* columns, to make paragraphs of the sentences */
#define WIDE 10000
#define LABEL_LEAST 60 /* columns; a narrower page begins with the process */

static void draw_head(struct seep_page *page, const struct part *part)
{
    const struct seep_top_size *size = part->size;

    if (part->report == NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "seep top:", 10, "%s: %s",
                            size->target == NULL ? "?" : size->target,
                            size->waiting ? "is being read"
                                          : "nothing is recorded there yet");
    } else {
        seep_view_text_head(
            page, part->report,
            size->columns < LABEL_LEAST ? "" : "seep top:", part->brief);
    }
}

/* A row is one line where one is selected, so it stands with the answer. */
static void draw_holder(struct seep_page *page,
                        const struct seep_report *report)
{
    const struct seep_report_site *site = seep_words_site(report);
    char *held = site == NULL
                     ? NULL
                     : seep_words_held_line(site->held, site->live_bytes);

    if (held != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", SEEP_VIEW_ANSWER_INDENT,
                            "Held by %s.", held);
    }
    free(held);
}

/* "12 of 16 call sites that leak or may leak are held by ..." */
static void draw_common(struct seep_page *page,
                        const struct seep_report *report)
{
    char *common = seep_words_common_news(report);

    if (common != NULL) {
        seep_view_reason(page, common);
        free(common);
    }
}

static void draw_answer(struct seep_page *page, const struct part *part)
{
    if (page->columns < WRAP_LEAST) {
        page->columns = WIDE; /* a line for each sentence, cut at the end */
    }
    seep_view_text_answer(page, part->report);
    if (part->size->lines > 0) {
        draw_holder(page, part->report);
    }
    draw_common(page, part->report);
}

/* How much of the page may go to something that is not the rows. */
static size_t share(const struct part *part, size_t divisor)
{
    size_t lines = part->size->lines;

    return lines == 0 ? UNBOUND : lines < divisor ? 1 : lines / divisor;
}

/*
 * What the processes of one command grow by together, and until when, as
 * `seep report` has it: of the worst families that are more than one process, a
 * sentence and a forecast.
 */
static void draw_families(struct seep_page *page, const struct part *part)
{
    const struct seep_families *families = &part->model->families;
    size_t left = share(part, FAMILIES_LEAST);

    if (part->size->lines > 0) {
        page->columns = WIDE; /* a line for each sentence, cut at the end */
    }
    for (size_t i = 0; i < families->count && left > 0; i++) {
        if (seep_words_family_is_reported(&families->list[i])) {
            seep_view_family(page, &families->list[i], false);
            left--;
        }
    }
}

/* Why there are none. */
static void draw_no_sites(struct seep_page *page, const struct part *part)
{
    const struct seep_top_model *model = part->model;

    if (model->all_count > 0) {
        seep_page_paragraph(
            page, SEEP_STYLE_PLAIN, "", 1,
            "none of %zu call sites matches: %s%s%s%s", model->all_count,
            model->filter,
            *model->filter != '\0' && model->space >= 0 ? ", " : "",
            model->space >= 0 ? "space " : "",
            model->space >= 0 ? seep_words_space((enum seep_space)model->space)
                              : "");
    } else if (part->report != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "", 1,
                            "no call site recorded yet");
    }
}

/* How many more there are than are shown; nothing if none. */
static void draw_left_out(struct seep_page *page, const struct part *part)
{
    const struct seep_top_model *model = part->model;
    const struct seep_report *report = part->report;
    size_t more = model->row_count - (part->window.end - part->window.first);

    if (*model->filter == '\0' && report->site_total > report->site_count) {
        more += report->site_total - report->site_count;
    }
    if (more > 0) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, "", 1,
                            "and %zu more call site%s (--sites 0 shows all)",
                            more, more == 1 ? "" : "s");
    }
}

static void draw_stack(struct seep_page *page, const struct part *part)
{
    const struct seep_top_model *model = part->model;
    const struct seep_report *report = part->report;
    const struct seep_text_options options = {.stacks = true,
                                              .site_id = model->site_id};
    bool found = false;

    for (size_t i = 0; report != NULL && i < report->site_count; i++) {
        found = found || strcmp(report->sites[i].id, model->site_id) == 0;
    }
    if (found) {
        seep_view_sites_stacks(page, report, &options);
    } else {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "", 0,
                            "site %.8s is no longer among the call sites",
                            model->site_id);
    }
}

static void draw_help(struct seep_page *page, const struct part *part)
{
    static const struct {
        const char *keys;
        const char *words;
    } lines[] = {
        {"arrows, j k", "select a call site; page keys, Home and End as well"},
        {"Enter", "its stack, and back"},
        {"g l n w",
         "order: growth (as the report has it), live bytes, number of blocks, where"},
        {"/",
         "only call sites with this text in where, class or space; Enter ends it, Escape takes it away"},
        {"s", "only the next space: heap, mapped, python, device, ..."},
        {"Tab, 1 to 9", "the next process, or the one in that row"},
        {"p", "pause, and go on"},
        {"r", "read now"},
        {"+ -", "seconds between two readings"},
        {"h", "this, and back"},
        {"q", "quit"},
    };

    (void)part;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, lines[i].keys, 13, "%s",
                            lines[i].words);
    }
    seep_page_end_line(page);
    seep_page_paragraph(
        page, SEEP_STYLE_PLAIN, "", 0,
        "A rate is a mean of the run with its 95 %% interval; \"-\" does not grow, \"?\" is not known yet. The bars are live bytes from the start of the run to now, the highest of the row is full.");
}

static void put_state(struct seep_page *page,
                      const struct seep_top_model *model)
{
    if (model->paused) {
        seep_page_print(page, SEEP_STYLE_WARNING, "PAUSED");
        seep_page_print(page, SEEP_STYLE_PLAIN, "  ");
    }
    if (*model->filter != '\0') {
        seep_page_print(page, SEEP_STYLE_STRONG, "/%s", model->filter);
        seep_page_print(page, SEEP_STYLE_PLAIN, "  ");
    }
    if (model->space >= 0) {
        seep_page_print(page, SEEP_STYLE_STRONG, "space %s",
                        seep_words_space((enum seep_space)model->space));
        seep_page_print(page, SEEP_STYLE_PLAIN, "  ");
    }
    seep_page_print(
        page, SEEP_STYLE_FAINT,
        "h help  q quit  %zu of %zu by %s  every %s%s  Enter stack  / filter  s space  p pause  + - slower, faster",
        model->row_count > 0 ? model->row + 1 : 0, model->row_count,
        seep_top_sort_names[model->sort],
        SEEP_UNITS_DURATION(model->interval_s),
        model->report_count > 1 ? "  Tab process" : "");
}

/* What was noticed, if anything, then what keys do now. */
static void draw_keys(struct seep_page *page, const struct part *part)
{
    const struct seep_top_model *model = part->model;

    if (part->size->notice != NULL) {
        seep_page_print(page, SEEP_STYLE_WARNING, "%s", part->size->notice);
        seep_page_end_line(page);
    }
    if (model->typing) {
        seep_page_print(page, SEEP_STYLE_STRONG, "/%s_", model->filter);
        seep_page_print(page, SEEP_STYLE_FAINT,
                        "  Enter keeps it, Escape takes it away");
    } else if (model->pane != SEEP_TOP_SITES) {
        seep_page_print(page, SEEP_STYLE_FAINT,
                        "Escape back  arrows scroll  q quit");
    } else {
        put_state(page, model);
    }
    seep_page_end_line(page);
}

struct seep_top_piece seep_top_frame_piece(const char *line)
{
    struct seep_top_piece piece = {.style = SEEP_STYLE_PLAIN};

    piece.bytes = seep_page_read_style(line, &piece.style);
    piece.is_style = piece.bytes > 0;
    if (!piece.is_style) {
        piece.bytes = strcspn(line, "\033");
    }
    return piece;
}

/* The line of @length bytes, cut to the page; colours cost no columns. */
static char *cut(const char *line, size_t length, size_t columns)
{
    const char *mark = seep_clean_ellipsis();
    char *text = strndup(line, length);
    char *result = text == NULL ? NULL : malloc(length + strlen(mark) + 8);
    char *out = result;
    size_t used = 0;

    for (const char *at = text; result != NULL && *at != '\0';) {
        struct seep_top_piece piece = seep_top_frame_piece(at);
        size_t width =
            piece.is_style ? 0 : seep_clean_columns_of(at, piece.bytes);

        if (piece.bytes == 0) {
            break;
        }
        if (used + width > columns) {
            size_t marked = seep_clean_columns(mark);
            size_t fit = seep_clean_fit(
                at, columns > used + marked ? columns - used - marked : 0);

            out = mempcpy(out, at, fit);
            out = stpcpy(out, used + marked <= columns ? mark : "");
            out = stpcpy(out, "\033[0m");
            break;
        }
        out = mempcpy(out, at, piece.bytes);
        used += width;
        at += piece.bytes;
    }
    if (result != NULL) {
        *out = '\0';
    }
    free(text);
    return result;
}

static void add_line(struct builder *builder, const char *line, size_t length)
{
    struct seep_top_frame *frame = &builder->frame;
    char **lines = reallocarray(frame->lines, frame->count + 1, sizeof(*lines));
    char *text = cut(line, length, builder->part.size->columns);

    if (lines != NULL) {
        frame->lines = lines;
    }
    if (lines == NULL || text == NULL) {
        free(text);
        builder->failed = true;
        return;
    }
    frame->lines[frame->count++] = text;
    builder->room--;
}

/* Lines [@first, @first + @most) of @text, as far as there is room. */
static size_t add_text(struct builder *builder, const char *text, size_t first,
                       size_t most)
{
    size_t count = 0;

    for (size_t i = 0; text != NULL && *text != '\0'; i++) {
        size_t length = strcspn(text, "\n");

        if (i >= first && count < most && builder->room > 0) {
            add_line(builder, text, length);
            count++;
        }
        text += length + (text[length] == '\n');
    }
    return count;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; text != NULL && *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void add_blank(struct builder *builder)
{
    if (builder->part.size->lines == 0 ||
        builder->part.size->lines >= BLANKS_LEAST) {
        add_text(builder, "\n", 0, 1);
    }
}

/* At most @most of @count rows, @selected among them and in the middle where
 * it can be; at least one. */
static void set_window(struct builder *builder, size_t selected, size_t count,
                       size_t most)
{
    size_t shown = most < 1 ? 1 : most < count ? most : count;
    size_t first = selected > shown / 2 ? selected - shown / 2 : 0;

    if (first + shown > count) {
        first = count > shown ? count - shown : 0;
    }
    builder->part.window.first = first;
    builder->part.window.end = first + shown < count ? first + shown : count;
}

static char *text_of(const struct builder *builder, drawer *draw)
{
    char *text = NULL;
    size_t bytes;
    struct seep_page page = {
        .file = open_memstream(&text, &bytes),
        .columns = builder->part.size->columns,
        .color = true,
    };

    if (page.file != NULL) {
        draw(&page, &builder->part);
        fclose(page.file);
    }
    return text;
}

static size_t add_part(struct builder *builder, drawer *draw, size_t first,
                       size_t most)
{
    char *text = text_of(builder, draw);
    size_t count = add_text(builder, text, first, most);

    free(text);
    return count;
}

/* Whatever the command is: how old its process is, and whether it lives. */
static void add_head(struct builder *builder)
{
    size_t most = share(&builder->part, 12);
    char *text = text_of(builder, draw_head);

    builder->part.brief = count_lines(text) > most;
    free(text);
    add_part(builder, draw_head, 0, most);
}

static void add_answer(struct builder *builder)
{
    add_head(builder);
    if (builder->part.report != NULL) {
        add_part(builder, draw_answer, 0, share(&builder->part, 6));
    }
}

static void add_processes(struct builder *builder)
{
    const struct seep_top_model *model = builder->part.model;
    size_t lines = builder->part.size->lines;
    size_t most = lines == 0 ? SEEP_TOP_SITES_DEFAULT : lines / 5;
    size_t family_lines;

    if (model->report_count < 2 || (lines > 0 && lines < PROCESSES_LEAST)) {
        return;
    }
    add_blank(builder);
    /* On a small page the forecast of the worst is what is left out. */
    family_lines = add_part(builder, draw_families, 0,
                            share(&builder->part, FAMILIES_LEAST / 2));
    if (lines > 0) {
        most = most > family_lines ? most - family_lines : 1;
    }
    set_window(builder, model->process, model->report_count, most);
    builder->frame.process =
        builder->frame.count + 1 + model->process - builder->part.window.first;
    add_part(builder, draw_processes, 0, UNBOUND);
}

static void add_memory(struct builder *builder)
{
    size_t lines = builder->part.size->lines;

    if (builder->part.report != NULL &&
        builder->part.report->inert == SEEP_INERT_NONE &&
        (lines == 0 || lines >= MEMORY_LEAST)) {
        add_blank(builder);
        add_part(builder, draw_memory, 0, share(&builder->part, 3));
    }
}

static void add_sites(struct builder *builder)
{
    const struct seep_top_model *model = builder->part.model;
    size_t most =
        builder->part.size->lines == 0
            ? builder->part.size->rows == 0 ? UNBOUND : builder->part.size->rows
            : builder->room;
    bool titled = builder->room > 2;

    if (model->row_count == 0) {
        add_part(builder, draw_no_sites, 0, UNBOUND);
        return;
    }
    if (builder->part.size->lines > 0 && titled) {
        most--;
    }
    set_window(builder, model->row, model->row_count, most);
    builder->frame.selected =
        builder->frame.count + titled + model->row - builder->part.window.first;
    add_part(builder, draw_sites, titled ? 0 : 1, UNBOUND);
    if (builder->part.size->lines == 0) {
        add_part(builder, draw_left_out, 0, UNBOUND);
    }
}

/* What lies over the rows: as much of it as there is room for. */
static void add_pane(struct builder *builder)
{
    const struct seep_top_model *model = builder->part.model;
    char *text =
        text_of(builder, model->pane == SEEP_TOP_HELP ? draw_help : draw_stack);
    size_t count = count_lines(text);
    size_t most = count > builder->room ? count - builder->room : 0;
    size_t first = model->scroll < most ? model->scroll : most;

    builder->frame.scroll_most = most;
    add_text(builder, text, first, UNBOUND);
    free(text);
}

static void add_keys(struct builder *builder, size_t kept)
{
    while (builder->room > 0 && !builder->failed) {
        add_line(builder, "", 0);
    }
    builder->room += kept;
    add_part(builder, draw_keys, 0, kept);
}

static void build(struct builder *builder)
{
    size_t lines = builder->part.size->lines;
    size_t kept =
        lines < KEYS_LEAST                                               ? 0
        : builder->part.size->notice != NULL && lines >= PROCESSES_LEAST ? 2
                                                                         : 1;

    builder->room = lines == 0 ? UNBOUND : lines - kept;
    add_answer(builder);
    if (builder->part.model->pane == SEEP_TOP_SITES || lines == 0) {
        add_processes(builder);
        add_memory(builder);
        add_blank(builder);
        add_sites(builder);
    } else {
        add_blank(builder);
        add_pane(builder);
    }
    if (lines > 0) {
        add_keys(builder, kept);
    }
}

int seep_top_frame_make(const struct seep_top_model *model,
                        const struct seep_top_size *size,
                        struct seep_top_frame *ret_frame)
{
    struct builder builder = {
        .part = {.model = model,
                 .report = seep_top_model_report(model),
                 .size = size},
        .frame = {.selected = SEEP_TOP_NO_LINE, .process = SEEP_TOP_NO_LINE},
    };

    build(&builder);
    if (builder.failed) {
        seep_top_frame_fini(&builder.frame);
        return -ENOMEM;
    }
    *ret_frame = builder.frame;
    return 0;
}

void seep_top_frame_fini(struct seep_top_frame *frame)
{
    for (size_t i = 0; i < frame->count; i++) {
        free(frame->lines[i]);
    }
    free(frame->lines);
    *frame = (struct seep_top_frame){0};
}

void seep_top_frame_print(const struct seep_top_frame *frame, FILE *file,
                          bool color)
{
    for (size_t i = 0; i < frame->count; i++) {
        const char *at = frame->lines[i];

        while (*at != '\0') {
            struct seep_top_piece piece = seep_top_frame_piece(at);

            if (piece.bytes == 0) {
                break; /* no colour of ours: nothing that may go out */
            }
            if (color || !piece.is_style) {
                fwrite(at, 1, piece.bytes, file);
            }
            at += piece.bytes;
        }
        fputc('\n', file);
    }
}
