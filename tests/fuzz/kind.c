/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See kind.h. What is looked for is in our printers and not here: this is built
 * without sanitizers, and counts nothing, so that all that is printed is looked
 * through and not a part.
 *
 * Invariant: nothing is read behind the length.
 */
#include "kind.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MOST 64U
#define KEYS_MOST 4096U

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

bool kind_is_page(const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end) {
        if (*text == '\033') {
            text += 1;
            if (text == end || *text++ != '[') {
                return false;
            }
            while (text < end && (is_digit(*text) || *text == ';')) {
                text++;
            }
            if (text == end || *text != 'm') {
                return false;
            }
        } else if (((uint8_t)*text < ' ' && *text != '\n') || *text == 0x7f) {
            return false;
        }
        text++;
    }
    return true;
}

bool kind_is_markup(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((uint8_t)text[i] < ' ' && !is_white(text[i])) {
            return false;
        }
    }
    return true;
}

static bool is_base64(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           is_digit(byte) || byte == '+' || byte == '/' || byte == '=' ||
           byte == '\n';
}

size_t kind_base64(const char *text, size_t length)
{
    size_t count = 0;

    while (count < length && is_base64(text[count])) {
        count++;
    }
    return count;
}

/*
 * JSON, of RFC 8259.
 */

struct reader {
    const char *at;
    const char *end;
    unsigned depth;
    size_t key_count; /* of all objects that are open */
    uint64_t keys[KEYS_MOST];
};

static char peek(const struct reader *reader)
{
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool take(struct reader *reader, char byte)
{
    bool is_it = reader->at < reader->end && *reader->at == byte;

    reader->at += is_it;
    return is_it;
}

static void skip_white(struct reader *reader)
{
    while (reader->at < reader->end && is_white(*reader->at)) {
        reader->at++;
    }
}

static size_t skip_digits(struct reader *reader)
{
    const char *from = reader->at;

    while (is_digit(peek(reader))) {
        reader->at++;
    }
    return (size_t)(reader->at - from);
}

static int hex_of(char byte)
{
    return is_digit(byte)               ? byte - '0'
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                                        : -1;
}

/* Behind "\u". */
static bool read_unit(struct reader *reader, unsigned *ret_unit)
{
    unsigned unit = 0;

    if (reader->end - reader->at < 4) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_of(*reader->at++);

        if (digit < 0) {
            return false;
        }
        unit = unit << 4 | (unsigned)digit;
    }
    *ret_unit = unit;
    return true;
}

/* Behind "\". Half a pair of UTF-16 is no text. */
static bool read_escape(struct reader *reader)
{
    char byte = peek(reader);
    unsigned unit;

    if (byte == '\0' || strchr("\"\\/bfnrtu", byte) == NULL) {
        return false;
    }
    reader->at++;
    if (byte != 'u') {
        return true;
    }
    if (!read_unit(reader, &unit) || (unit >= 0xdc00 && unit < 0xe000)) {
        return false;
    }
    return unit < 0xd800 || unit >= 0xdc00 ||
           (take(reader, '\\') && take(reader, 'u') &&
            read_unit(reader, &unit) && unit >= 0xdc00 && unit < 0xe000);
}

/* @ret_hash is of the text as it stands: the same key is written the same. */
static bool read_string(struct reader *reader, uint64_t *ret_hash)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const char *from;

    if (!take(reader, '"')) {
        return false;
    }
    from = reader->at;
    while (!take(reader, '"')) {
        char byte = peek(reader);

        if ((uint8_t)byte < ' ' || (uint8_t)byte >= 0x80) {
            return false;
        }
        reader->at++;
        if (byte == '\\' && !read_escape(reader)) {
            return false;
        }
    }
    for (; ret_hash != NULL && from < reader->at; from++) {
        hash = (hash ^ (uint8_t)*from) * UINT64_C(1099511628211);
    }
    if (ret_hash != NULL) {
        *ret_hash = hash;
    }
    return true;
}

/* May @digits, of which there are @count, be an int64_t? */
static bool fits(const char *digits, size_t count, bool is_negative)
{
    const char *most =
        is_negative ? "9223372036854775808" : "9223372036854775807";

    return count < 19 || (count == 19 && memcmp(digits, most, 19) <= 0);
}

static bool read_number(struct reader *reader)
{
    bool is_negative = take(reader, '-');
    const char *digits = reader->at;
    size_t count = skip_digits(reader);
    bool is_real = false;

    if (count == 0 || (*digits == '0' && count > 1)) {
        return false;
    }
    if (take(reader, '.')) {
        is_real = true;
        if (skip_digits(reader) == 0) {
            return false;
        }
    }
    if (take(reader, 'e') || take(reader, 'E')) {
        is_real = true;
        if (!take(reader, '-')) {
            (void)take(reader, '+');
        }
        if (skip_digits(reader) == 0) {
            return false;
        }
    }
    return is_real || fits(digits, count, is_negative);
}

static bool read_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(reader->end - reader->at) < length ||
        memcmp(reader->at, word, length) != 0) {
        return false;
    }
    reader->at += length;
    return true;
}

static bool read_value(struct reader *reader);

/* A key that the object has not had, whose keys are from @first. */
static bool read_key(struct reader *reader, size_t first)
{
    uint64_t hash;

    if (!read_string(reader, &hash) || reader->key_count == KEYS_MOST) {
        return false;
    }
    for (size_t i = first; i < reader->key_count; i++) {
        if (reader->keys[i] == hash) {
            return false;
        }
    }
    reader->keys[reader->key_count++] = hash;
    skip_white(reader);
    return take(reader, ':');
}

/* From behind "{" or "[" to behind what closes it. */
static bool read_members(struct reader *reader, bool is_object)
{
    char close = is_object ? '}' : ']';
    size_t first = reader->key_count;

    skip_white(reader);
    if (take(reader, close)) {
        return true;
    }
    do {
        skip_white(reader);
        if ((is_object && !read_key(reader, first)) || !read_value(reader)) {
            return false;
        }
        skip_white(reader);
    } while (take(reader, ','));
    reader->key_count = first;
    return take(reader, close);
}

static bool read_value(struct reader *reader)
{
    char byte;
    bool is_it;

    skip_white(reader);
    byte = peek(reader);
    switch (byte) {
    case '{':
    case '[':
        reader->at++;
        if (++reader->depth > DEPTH_MOST) {
            return false;
        }
        is_it = read_members(reader, byte == '{');
        reader->depth--;
        return is_it;
    case '"':
        return read_string(reader, NULL);
    case 't':
        return read_word(reader, "true");
    case 'f':
        return read_word(reader, "false");
    case 'n':
        return read_word(reader, "null");
    default:
        return read_number(reader);
    }
}

bool kind_is_json(const char *text, size_t length)
{
    static struct reader reader;

    reader.at = text;
    reader.end = text + length;
    reader.depth = 0;
    reader.key_count = 0;
    if (!read_value(&reader)) {
        return false;
    }
    skip_white(&reader);
    return reader.at == reader.end;
}
