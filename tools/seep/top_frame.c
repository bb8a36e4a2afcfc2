/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A frame is put together from parts of which each is a text. Invariant: parts
 * are dropped whole or cut at the end, so that the lines are never more than
 * were asked for, and the rows of call sites are the last to go.
 */
#include "top_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "page.h"
#include "top_draw.h"
#include "view_text.h"

#define KEYS_LEAST 4      /* lines; a smaller page has no room for them */
#define MEMORY_LEAST 14   /* for the table of memory */
#define PROCESSES_LEAST 8 /* for that of processes */
#define BLANKS_LEAST 24   /* for lines between the parts */
#define UNBOUND ((size_t)1 << 20)

/* Lines that are left, and where they go. */
struct builder {
    const struct seep_top_model *model;
    const struct seep_top_size *size;
    struct seep_top_frame frame;
    size_t room; /* lines that are left */
    bool failed;
};

struct seep_top_piece seep_top_frame_piece(const char *line)
{
    struct seep_top_piece piece = {.ink = SEEP_INK_PLAIN};

    piece.bytes = seep_page_read_ink(line, &piece.ink);
    piece.is_ink = piece.bytes > 0;
    if (!piece.is_ink) {
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
        char *part = strndup(at, piece.bytes);
        size_t width =
            piece.is_ink || part == NULL ? 0 : seep_clean_columns(part);

        if (piece.bytes == 0 || part == NULL) {
            free(part);
            break;
        }
        if (used + width > columns) {
            size_t marked = seep_clean_columns(mark);
            size_t fit = seep_clean_fit(
                part, columns > used + marked ? columns - used - marked : 0);

            out = mempcpy(out, part, fit);
            out = stpcpy(out, used + marked <= columns ? mark : "");
            out = stpcpy(out, "\033[0m");
            free(part);
            break;
        }
        out = mempcpy(out, part, piece.bytes);
        used += width;
        at += piece.bytes;
        free(part);
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
    char *text = cut(line, length, builder->size->columns);

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
    if (builder->size->lines == 0 || builder->size->lines >= BLANKS_LEAST) {
        add_text(builder, "\n", 0, 1);
    }
}

/* How much of the page may go to something that is not the rows. */
static size_t share(const struct builder *builder, size_t part, size_t least)
{
    size_t lines = builder->size->lines;

    if (lines == 0) {
        return UNBOUND;
    }
    return lines / part > least ? lines / part : least;
}

static void add_answer(struct builder *builder)
{
    const struct seep_report *report = seep_top_model_report(builder->model);
    char *head = seep_top_draw_head(builder->model, builder->size);

    add_text(builder, head, 0, share(builder, 12, 1));
    free(head);
    if (report != NULL) {
        char *answer = seep_top_draw_answer(report, builder->size);
        add_text(builder, answer, 0, share(builder, 6, 1));
        free(answer);
    }
}

static void add_processes(struct builder *builder)
{
    const struct seep_top_model *model = builder->model;
    size_t lines = builder->size->lines;
    size_t most = lines == 0 ? SEEP_TOP_SITES_DEFAULT : lines / 5;

    if (model->report_count < 2 || (lines > 0 && lines < PROCESSES_LEAST)) {
        return;
    }
    struct seep_top_window window =
        seep_top_draw_window(model->process, model->report_count, most);
    char *text = seep_top_draw_processes(model, builder->size, &window);
    add_blank(builder);
    builder->frame.process =
        builder->frame.count + 1 + model->process - window.first;
    add_text(builder, text, 0, UNBOUND);
    free(text);
}

static void add_memory(struct builder *builder)
{
    const struct seep_report *report = seep_top_model_report(builder->model);
    size_t lines = builder->size->lines;

    if (report == NULL || report->inert != SEEP_INERT_NONE ||
        (lines > 0 && lines < MEMORY_LEAST)) {
        return;
    }
    char *text = seep_top_draw_memory(report, builder->size);
    add_blank(builder);
    add_text(builder, text, 0, share(builder, 3, 1));
    free(text);
}

static void add_sites(struct builder *builder)
{
    const struct seep_top_model *model = builder->model;
    size_t most = builder->size->lines == 0
                      ? builder->size->rows == 0 ? UNBOUND : builder->size->rows
                      : builder->room;
    bool titled = builder->room > 2;

    if (model->row_count == 0) {
        char *text = seep_top_draw_no_sites(model, builder->size);
        add_text(builder, text, 0, UNBOUND);
        free(text);
        return;
    }
    if (builder->size->lines > 0 && titled) {
        most--;
    }
    struct seep_top_window window =
        seep_top_draw_window(model->row, model->row_count, most);
    char *text = seep_top_draw_sites(model, builder->size, &window);
    builder->frame.selected =
        builder->frame.count + titled + model->row - window.first;
    add_text(builder, text, titled ? 0 : 1, UNBOUND);
    free(text);
    if (builder->size->lines == 0) {
        text = seep_top_draw_left_out(model, builder->size,
                                      window.end - window.first);
        add_text(builder, text, 0, UNBOUND);
        free(text);
    }
}

/* What lies over the rows: as much of it as there is room for. */
static void add_pane(struct builder *builder)
{
    const struct seep_top_model *model = builder->model;
    char *text = model->pane == SEEP_TOP_HELP
                     ? seep_top_draw_help(builder->size)
                     : seep_top_draw_stack(model, builder->size);
    size_t count = count_lines(text);
    size_t most = count > builder->room ? count - builder->room : 0;
    size_t first = model->scroll < most ? model->scroll : most;

    builder->frame.scroll_most = most;
    add_text(builder, text, first, UNBOUND);
    free(text);
}

static void add_keys(struct builder *builder, size_t kept)
{
    char *text;

    while (builder->room > 0 && !builder->failed) {
        add_line(builder, "", 0);
    }
    builder->room += kept;
    text = seep_top_draw_keys(builder->model, builder->size);
    add_text(builder, text, 0, kept);
    free(text);
}

static void build(struct builder *builder)
{
    size_t lines = builder->size->lines;
    size_t kept = lines < KEYS_LEAST ? 0
                  : builder->size->notice != NULL && lines >= PROCESSES_LEAST
                      ? 2
                      : 1;

    builder->room = lines == 0 ? UNBOUND : lines - kept;
    add_answer(builder);
    if (builder->model->pane == SEEP_TOP_SITES || lines == 0) {
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
        .model = model,
        .size = size,
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
            if (color || !piece.is_ink) {
                fwrite(at, 1, piece.bytes, file);
            }
            at += piece.bytes;
        }
        fputc('\n', file);
    }
}
