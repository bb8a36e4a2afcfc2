/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Foreign strings made harmless. Invariant: what the functions return is valid
 * UTF-8, and but for JSON holds no control character and no mark that misleads.
 */
#include "words/clean.h"

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define LONGEST_ESCAPE 16
/* Of what is printed at once nearly all is shorter. */
#define ROOM_BYTES 256

static bool ascii_only; /* set once, before anything is printed */

void seep_clean_init(void)
{
    /* Only characters: numbers stay those of the C locale. */
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        setlocale(LC_CTYPE, "");
    }
}

static bool is_set(const char *value)
{
    return value != NULL && *value != '\0';
}

void seep_clean_follow_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *value = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        value = is_set(value) ? value : getenv(names[i]);
    }
    ascii_only = is_set(value) && strcasestr(value, "utf-8") == NULL &&
                 strcasestr(value, "utf8") == NULL;
}

const char *seep_clean_ellipsis(void)
{
    return ascii_only ? "..." : "…";
}

/* Our own marks have a form in ASCII; other text is shown by its code. */
static const char *ascii_of(uint32_t code)
{
    static const char *const bars[] = {"_", ".", "-", "~", "=", "+", "*", "#"};

    if (code >= 0x2581 && code <= 0x2588) {
        return bars[code - 0x2581];
    }
    return code == 0x2026 ? "..." : code == 0xb1 ? "+-" : NULL;
}

/* Length of the valid sequence at @text, or 0; RFC 3629: no overlong form, no
 * surrogate, nothing above U+10FFFF. */
static size_t decode(const unsigned char *text, uint32_t *ret_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = text[0];
    size_t length = lead < 0x80   ? 1
                    : lead < 0xc2 ? 0
                    : lead < 0xe0 ? 2
                    : lead < 0xf0 ? 3
                    : lead < 0xf5 ? 4
                                  : 0;
    if (length <= 1) {
        *ret_code = lead;
        return length;
    }
    uint32_t code = lead & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) { /* also the terminating NUL */
            return 0;
        }
        code = code << 6 | (text[i] & 0x3fU);
    }
    if (code < least[length] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    *ret_code = code;
    return length;
}

static int columns_of(uint32_t code)
{
    if (code < 0x80) {
        return code >= 0x20 && code < 0x7f ? 1 : -1;
    }
    return wcwidth((wchar_t)code);
}

/* Marks without width that reorder or join what stands around them: two
 * different names would look the same. Combining accents are let through. */
static bool misleads(uint32_t code)
{
    return (code >= 0x80 && code < 0xa0) || code == 0xad || code == 0x61c ||
           (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
           (code >= 0xfff9 && code <= 0xfffb) ||
           (code >= 0xe0000 && code <= 0xe007f);
}

/* Bytes of @text before the first that is more than a printable one of ASCII:
 * mostly all of them. */
static size_t count_plain(const char *text)
{
    size_t count = 0;

    while (text[count] >= 0x20 && text[count] < 0x7f) {
        count++;
    }
    return count;
}

/* @text up to @plain as it is, with room for @left bytes more. */
static char *begin(const char *text, size_t plain, size_t left)
{
    char *clean = malloc(plain + left + 1);

    if (clean != NULL) {
        memcpy(clean, text, plain);
    }
    return clean;
}

char *seep_clean_for_terminal(const char *text)
{
    size_t plain = count_plain(text);
    const unsigned char *in = (const unsigned char *)text + plain;
    char *clean = begin(text, plain, strlen(text + plain) * LONGEST_ESCAPE);
    char *out = clean + plain;
    uint32_t code;

    if (clean == NULL) {
        return NULL;
    }
    while (*in != '\0') {
        size_t length = decode(in, &code);
        if (length == 0 || (length == 1 && columns_of(code) < 0)) {
            out += sprintf(out, "\\x%02x", *in++);
        } else if (ascii_only && ascii_of(code) != NULL) {
            out = stpcpy(out, ascii_of(code));
            in += length;
        } else if (columns_of(code) < 0 || misleads(code) ||
                   (ascii_only && code >= 0x80)) {
            out += sprintf(out, "\\u{%04x}", (unsigned)code);
            in += length;
        } else {
            memcpy(out, in, length);
            out += length;
            in += length;
        }
    }
    *out = '\0';
    return clean;
}

char *seep_clean_vformat(const char *format, va_list arguments)
{
    char room[ROOM_BYTES];
    va_list again;
    char *raw;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(room, sizeof(room), format, again);
    va_end(again);
    if (length >= 0 && (size_t)length < sizeof(room)) {
        return seep_clean_for_terminal(room);
    }
    if (vasprintf(&raw, format, arguments) < 0) {
        return NULL;
    }
    char *clean = seep_clean_for_terminal(raw);
    free(raw);
    return clean;
}

char *seep_clean_format(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = seep_clean_vformat(format, arguments);
    va_end(arguments);
    return text;
}

static char *replace(const char *text, bool (*is_bad)(uint32_t code))
{
    size_t plain = count_plain(text);
    const unsigned char *in = (const unsigned char *)text + plain;
    char *clean = begin(text, plain, strlen(text + plain) * 3);
    char *out = clean + plain;
    uint32_t code;

    if (clean == NULL) {
        return NULL;
    }
    while (*in != '\0') {
        size_t length = decode(in, &code);
        if (length == 0 || is_bad(code)) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            in += length == 0 ? 1 : length;
        } else {
            memcpy(out, in, length);
            out += length;
            in += length;
        }
    }
    *out = '\0';
    return clean;
}

static bool is_never(uint32_t code)
{
    (void)code;
    return false;
}

static bool is_no_text(uint32_t code)
{
    return (code < 0x20 && code != '\n') || code == 0x7f || misleads(code);
}

char *seep_clean_for_json(const char *text)
{
    return replace(text, is_never);
}

char *seep_clean_for_lines(const char *text)
{
    return replace(text, is_no_text);
}

/* Of the first @bytes of @text those that fit; *ret_columns is what they take.
 */
static size_t measure(const char *text, size_t bytes, size_t limit,
                      size_t *ret_columns)
{
    const unsigned char *in = (const unsigned char *)text;
    size_t columns = 0;
    size_t used = 0;

    while (used < bytes && in[used] >= 0x20 && in[used] < 0x7f &&
           used < limit) {
        used++;
    }
    columns = used;
    while (used < bytes && in[used] != '\0') {
        uint32_t code;
        size_t length = decode(in + used, &code);
        int width = length == 0 ? 1 : columns_of(code);
        size_t next = columns + (width > 0 ? (size_t)width : 0);
        if (next > limit) {
            break;
        }
        columns = next;
        used += length == 0 ? 1 : length;
    }
    *ret_columns = columns;
    return used;
}

size_t seep_clean_columns(const char *text)
{
    size_t columns;

    measure(text, SIZE_MAX, SIZE_MAX, &columns);
    return columns;
}

size_t seep_clean_columns_of(const char *text, size_t bytes)
{
    size_t columns;

    measure(text, bytes, SIZE_MAX, &columns);
    return columns;
}

size_t seep_clean_fit(const char *text, size_t columns)
{
    size_t used;

    return measure(text, SIZE_MAX, columns, &used);
}

size_t seep_clean_cut(const char *text, size_t most_bytes)
{
    size_t length = strnlen(text, most_bytes + 1);

    if (length > most_bytes) {
        length = most_bytes;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    return length;
}
