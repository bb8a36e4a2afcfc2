/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text for people. Invariant: colour sequences are the only escapes that come
 * out, and every one is closed on the same line.
 */
#include "text/page.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_UNKNOWN 120
#define COLUMNS_LEAST 40

static const char *const style_codes[] = {
    [SEEP_STYLE_PLAIN] = "",
    [SEEP_STYLE_STRONG] = "\033[1m",
    [SEEP_STYLE_FAINT] = "\033[2m",
    [SEEP_STYLE_BAD] = "\033[1;31m",
    [SEEP_STYLE_WARNING] = "\033[1;33m",
    [SEEP_STYLE_GOOD] = "\033[1;32m",
};

static const char plain_code[] = "\033[0m";

size_t seep_page_read_style(const char *text, enum seep_style *ret_style)
{
    if (*text != '\033') {
        return 0;
    }
    if (strncmp(text, plain_code, sizeof(plain_code) - 1) == 0) {
        *ret_style = SEEP_STYLE_PLAIN;
        return sizeof(plain_code) - 1;
    }
    for (size_t i = SEEP_STYLE_STRONG; i <= SEEP_STYLE_GOOD; i++) {
        size_t length = strlen(style_codes[i]);

        if (strncmp(text, style_codes[i], length) == 0) {
            *ret_style = (enum seep_style)i;
            return length;
        }
    }
    return 0;
}

static size_t width_of(FILE *file)
{
    const char *variable = getenv("COLUMNS");
    struct winsize size;
    unsigned long columns = COLUMNS_UNKNOWN;

    if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    } else if (variable != NULL && strtoul(variable, NULL, 10) > 0) {
        columns = strtoul(variable, NULL, 10);
    }
    columns = columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
    return columns > 1000 ? 1000 : columns;
}

void seep_page_init(struct seep_page *page, FILE *file, enum seep_color color)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool refused = (no_color != NULL && *no_color != '\0') ||
                   (term != NULL && strcmp(term, "dumb") == 0);

    page->file = file;
    page->columns = width_of(file);
    page->color =
        color == SEEP_COLOR_ALWAYS ||
        (color == SEEP_COLOR_AUTO && !refused && isatty(fileno(file)));
}

static void put(struct seep_page *page, enum seep_style style, const char *text,
                size_t length)
{
    bool colored = page->color && style != SEEP_STYLE_PLAIN && length > 0;

    if (colored) {
        fputs(style_codes[style], page->file);
    }
    fwrite(text, 1, length, page->file);
    if (colored) {
        fputs(plain_code, page->file);
    }
}

void seep_page_print(struct seep_page *page, enum seep_style style,
                     const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = seep_clean_vformat(format, arguments);
    va_end(arguments);
    if (text != NULL) {
        put(page, style, text, strlen(text));
        free(text);
    }
}

void seep_page_end_line(struct seep_page *page)
{
    fputc('\n', page->file);
}

/* "MiB/min" and "min)" belong to the number before them. */
static bool is_unit(const char *word)
{
    static const char *const units[] = {"B",  "KiB", "MiB", "GiB", "TiB", "%",
                                        "ms", "s",   "min", "h",   "d"};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i]);

        if (strncmp(word, units[i], length) == 0 &&
            strchr(" ,.;:)/", word[length]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Bytes up to where a line may end. */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, " ");

    while (length > 0 && text[length] == ' ' && text[length - 1] >= '0' &&
           text[length - 1] <= '9' && is_unit(text + length + 1)) {
        length += 1 + strcspn(text + length + 1, " ");
    }
    return length;
}

static void put_wrapped(struct seep_page *page, size_t indent, size_t start,
                        const char *text)
{
    size_t column = start;
    bool first_word = true;

    while (*text != '\0') {
        size_t length = word_length(text);
        size_t width = seep_clean_columns_of(text, length);

        if (!first_word && column + 1 + width > page->columns) {
            fprintf(page->file, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first_word) {
            fputc(' ', page->file);
            column++;
        }
        fwrite(text, 1, length, page->file);
        column += width;
        first_word = false;
        text += length;
        text += strspn(text, " ");
    }
}

void seep_page_paragraph(struct seep_page *page, enum seep_style style,
                         const char *label, size_t indent, const char *format,
                         ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = seep_clean_vformat(format, arguments);
    va_end(arguments);
    if (text == NULL) {
        return;
    }
    put(page, style, label, strlen(label));
    size_t start = seep_clean_columns(label);
    if (start < indent) {
        fprintf(page->file, "%*s", (int)(indent - start), "");
        start = indent;
    }
    put_wrapped(page, indent, start, text);
    seep_page_end_line(page);
    free(text);
}
