/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strings of a code object as UTF-8.
 *
 * Invariant: a string is read only if it is a compact one of a sane length,
 * and character by character from one small window.
 */
#include "capture/python_code.h"

#define TEXT_MAX (INT64_C(1) << 20)
#define CODE_MAX (INT64_C(1) << 28)
#define LINES_MAX (INT64_C(1) << 24)
#define WINDOW_BYTES 64U

/* Where the characters of a string lie. */
struct characters {
    uintptr_t at;
    size_t count;
    size_t width; /* 1, 2 or 4 bytes each */
};

static bool find_characters(const struct seep_python *python,
                            struct seep_python_memory *memory, uintptr_t text,
                            struct characters *ret_characters)
{
    int32_t state;
    int64_t length;
    unsigned int kind;
    bool ascii;
    bool compact;
    int header = python->offsets.text_header;

    if (!seep_python_is_a(memory, text, python->text_type) ||
        !seep_python_read_int(memory, text + SEEP_PYTHON_TEXT_STATE, &state) ||
        !seep_python_read(memory, &length, text + SEEP_PYTHON_OBJECT_SIZE,
                          sizeof(length))) {
        return false;
    }
    kind = (unsigned int)state >> 2 & 7;
    compact = ((unsigned int)state >> 5 & 1) != 0;
    ascii = ((unsigned int)state >> 6 & 1) != 0;
    if (!compact || length < 0 || length > TEXT_MAX ||
        (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1)) {
        return false;
    }
    /* Behind a PyASCIIObject, or a PyCompactUnicodeObject: to 3.11 it has
     * wstr_length, utf8_length and utf8 more, later the last two. */
    header += ascii ? 0 : (python->offsets.minor < 12 ? 24 : 16);
    ret_characters->at = text + (uintptr_t)header;
    ret_characters->count = (size_t)length;
    ret_characters->width = kind;
    return true;
}

/* @return bytes written, at most 4 */
static size_t put_utf8(uint32_t c, char *to)
{
    if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) {
        c = 0xfffd; /* file names hold what was no UTF-8 as lone surrogates */
    }
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* The @index-th character, from a window that moves on with it. */
static bool get_character(struct seep_python_memory *memory,
                          const struct characters *from, size_t index,
                          uint8_t *window, size_t *window_index,
                          uint32_t *ret_c)
{
    size_t per_window = WINDOW_BYTES / from->width;
    uint32_t c = 0;

    if (*window_index == SIZE_MAX || index - *window_index >= per_window) {
        size_t left = from->count - index;

        if (!seep_python_read(memory, window, from->at + index * from->width,
                              (left < per_window ? left : per_window) *
                                  from->width)) {
            return false;
        }
        *window_index = index;
    }
    memcpy(&c, window + (index - *window_index) * from->width, from->width);
    *ret_c = c;
    return true;
}

/* As many characters as fit, from @first on. */
static bool copy_from(struct seep_python_memory *memory,
                      const struct characters *from, size_t first, char *buffer,
                      size_t size, size_t *ret_bytes)
{
    uint8_t window[WINDOW_BYTES];
    size_t window_index = SIZE_MAX;
    size_t bytes = 0;
    size_t i;

    for (i = first; i < from->count; i++) {
        char utf8[4];
        uint32_t c;
        size_t more;

        if (!get_character(memory, from, i, window, &window_index, &c)) {
            return false;
        }
        more = put_utf8(c, utf8);
        if (more >= size - bytes) {
            break;
        }
        memcpy(buffer + bytes, utf8, more);
        bytes += more;
    }
    buffer[bytes] = '\0';
    *ret_bytes = bytes;
    return true;
}

/* Of a path that is too long its end: it is the part that tells. */
static bool copy_end(struct seep_python_memory *memory,
                     const struct characters *from, char *buffer, size_t size,
                     size_t *ret_bytes)
{
    uint8_t window[WINDOW_BYTES];
    size_t window_index = SIZE_MAX;
    size_t first = from->count >= size ? from->count - (size - 1) : 0;
    size_t bytes = 0;
    size_t i = first;
    char utf8[4];
    uint32_t c;

    for (; i < from->count; i++) {
        if (!get_character(memory, from, i, window, &window_index, &c)) {
            return false;
        }
        bytes += put_utf8(c, utf8);
    }
    for (window_index = SIZE_MAX; bytes >= size; first++) {
        if (!get_character(memory, from, first, window, &window_index, &c)) {
            return false;
        }
        bytes -= put_utf8(c, utf8);
    }
    return copy_from(memory, from, first, buffer, size, ret_bytes);
}

/* Of the name that is told: the qualified one where there is one. */
static int name_offset(const struct seep_python_offsets *at)
{
    return at->code_qualname != SEEP_PYTHON_OFFSET_NONE ? at->code_qualname
                                                        : at->code_name;
}

bool seep_python_text(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t code,
                      enum seep_python_text which, char *buffer, size_t size,
                      size_t *ret_bytes)
{
    int offset = python->offsets.code_filename;
    struct characters from;
    uintptr_t text;

    if (which == SEEP_PYTHON_NAME) {
        offset = name_offset(&python->offsets);
    }
    if (!seep_python_read_word(memory, code + (uintptr_t)offset, &text) ||
        !find_characters(python, memory, text, &from)) {
        return false;
    }
    return which == SEEP_PYTHON_FILE
               ? copy_end(memory, &from, buffer, size, ret_bytes)
               : copy_from(memory, &from, 0, buffer, size, ret_bytes);
}

/* Texts that are made in a loop get the same address again, too, and differ
 * in a number, which most have near their end. */
static bool mark_text(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t text,
                      uint64_t *ret_mark)
{
    uint64_t end[2] = {0, 0};
    struct characters from;
    size_t bytes;
    size_t part;

    if (!find_characters(python, memory, text, &from)) {
        return false;
    }
    bytes = from.count * from.width;
    part = bytes < sizeof(end) ? bytes : sizeof(end);
    if (!seep_python_read(memory, end, from.at + bytes - part, part)) {
        return false;
    }
    *ret_mark = text + end[0] * UINT64_C(0xc2b2ae3d27d4eb4f) +
                end[1] * UINT64_C(0x165667b19e3779f9) + bytes;
    return true;
}

bool seep_python_identify(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          struct seep_python_identity *ret_identity)
{
    const struct seep_python_offsets *at = &python->offsets;
    uintptr_t filename;
    uintptr_t name;
    uint64_t filename_mark;
    uint64_t name_mark;
    uintptr_t lines;
    uintptr_t lines_bytes;
    uintptr_t data;
    uint64_t head = 0;
    uint64_t tail = 0;
    size_t part;
    int32_t first_line;

    if (!seep_python_read_word(memory, code + (uintptr_t)at->code_filename,
                               &filename) ||
        !seep_python_read_word(memory, code + (uintptr_t)name_offset(at),
                               &name) ||
        !seep_python_read_word(memory, code + (uintptr_t)at->code_lines,
                               &lines) ||
        !seep_python_read_int(memory, code + (uintptr_t)at->code_first_line,
                              &first_line) ||
        !seep_python_is_a(memory, lines, python->bytes_type) ||
        !seep_python_read_word(memory, lines + SEEP_PYTHON_OBJECT_SIZE,
                               &lines_bytes) ||
        lines_bytes > (uintptr_t)LINES_MAX ||
        !mark_text(python, memory, filename, &filename_mark) ||
        !mark_text(python, memory, name, &name_mark)) {
        return false;
    }
    /* Code that is made and dies in a loop gets the same addresses again, for
     * tables of the same length. */
    data = lines + SEEP_PYTHON_BYTES_DATA;
    part = lines_bytes < sizeof(head) ? lines_bytes : sizeof(head);
    if (!seep_python_read(memory, &head, data, part) ||
        !seep_python_read(memory, &tail, data + lines_bytes - part, part)) {
        return false;
    }
    *ret_identity = (struct seep_python_identity){
        code, filename_mark, name_mark,  lines, lines_bytes,
        head, tail,          first_line, 0};
    ret_identity->hash = seep_python_identity_hash(ret_identity);
    return true;
}

bool seep_python_code_bytes(const struct seep_python *python,
                            struct seep_python_memory *memory, uintptr_t code,
                            int64_t *ret_bytes)
{
    uintptr_t of = code;
    int64_t bytes;

    if (python->offsets.minor < 11 &&
        (!seep_python_read_word(
             memory, code + (uintptr_t)python->offsets.code_instructions,
             &of) ||
         !seep_python_is_a(memory, of, python->bytes_type))) {
        return false;
    }
    if (!seep_python_read(memory, &bytes, of + SEEP_PYTHON_OBJECT_SIZE,
                          sizeof(bytes)) ||
        bytes < 0 || bytes > CODE_MAX) {
        return false;
    }
    *ret_bytes = python->offsets.minor < 11 ? bytes : 2 * bytes;
    return true;
}
