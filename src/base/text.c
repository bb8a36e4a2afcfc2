/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text in fixed buffers, and the one parser of sizes: no libc call that could
 * allocate, lock or look at the locale. */
#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void seep_text_init(struct seep_text *text, char *bytes, size_t size)
{
    text->bytes = bytes;
    text->size = size;
    text->length = 0;
    text->cut = false;
    bytes[0] = '\0';
}

void seep_text_add_char(struct seep_text *text, char c)
{
    if (text->length + 1 >= text->size) {
        text->cut = true;
        return;
    }
    text->bytes[text->length++] = c;
    text->bytes[text->length] = '\0';
}

void seep_text_add(struct seep_text *text, const char *string)
{
    for (; *string != '\0'; string++) {
        seep_text_add_char(text, *string);
    }
}

void seep_text_add_bytes(struct seep_text *text, const char *bytes,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        seep_text_add_char(text, bytes[i]);
    }
}

bool seep_text_copy(char *to, size_t size, const char *from)
{
    struct seep_text text;

    seep_text_init(&text, to, size);
    seep_text_add(&text, from);
    return !text.cut;
}

void seep_text_add_number(struct seep_text *text, uint64_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0) {
        seep_text_add_char(text, digits[--count]);
    }
}

bool seep_text_equal(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

const char *seep_text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/*
 * Sizes and numbers, as people write them.
 */

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The power of 1024 that @c stands for, or 0. */
static unsigned power_of(char c)
{
    static const char letters[] = "KMGTPE";

    for (unsigned i = 0; letters[i] != '\0'; i++) {
        if (letters[i] == upper(c)) {
            return i + 1;
        }
    }
    return 0;
}

/* @return its bytes; 0 if it is no unit */
static uint64_t unit_of(const char *text)
{
    unsigned power = power_of(*text);
    uint64_t base = 1024;
    uint64_t unit = 1;

    if (power != 0) {
        text++;
        if (upper(*text) == 'I') {
            text++;
        } else if (upper(*text) == 'B') {
            base = 1000;
        }
    }
    if (upper(*text) == 'B') {
        text++;
    }
    for (; power > 0; power--) {
        unit *= base;
    }
    return *text == '\0' ? unit : 0;
}

/* The digits at @at, maybe none; @at is behind them then. */
static int take_digits(const char **at, uint64_t *ret_number)
{
    uint64_t number = 0;
    int error = 0;

    for (; is_digit(**at); ++*at) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number)) {
            error = -ERANGE;
        }
    }
    *ret_number = number;
    return error;
}

/* A tenth of @unit for the first digit, and so on, from the last one back:
 * floor((a + x) / 10) is floor((a + floor(x)) / 10), so that rounding down at
 * each is rounding down once. 9 units of 2^60 and what is carried fit. */
static uint64_t part_of(const char *begin, const char *end, uint64_t unit)
{
    uint64_t part = 0;

    while (end > begin) {
        part = ((uint64_t)(*--end - '0') * unit + part) / 10;
    }
    return part;
}

static bool are_zeros(const char *begin, const char *end)
{
    while (begin < end && *begin == '0') {
        begin++;
    }
    return begin == end;
}

int seep_size_parse(const char *text, uint64_t *ret_bytes)
{
    const char *end = text;
    uint64_t bytes;
    int error = take_digits(&end, &bytes);
    const char *part = end; /* its digits are from here to before @end */

    if (*end == '.') {
        for (part = ++end; is_digit(*end); end++) {
        }
    }
    const char *name = end;
    while (*name == ' ' || *name == '\t') {
        name++;
    }
    uint64_t unit = unit_of(name);
    bool has_dot = part > text && part[-1] == '.';
    if (unit == 0 || end == text || (has_dot && (part == end || unit == 1))) {
        return -EINVAL;
    }
    if (error < 0 || __builtin_mul_overflow(bytes, unit, &bytes) ||
        __builtin_add_overflow(bytes, part_of(part, end, unit), &bytes)) {
        return -ERANGE;
    }
    if (bytes == 0 && !are_zeros(part, end)) {
        return -EINVAL;
    }
    *ret_bytes = bytes;
    return 0;
}

int seep_size_parse_number(const char *text, uint64_t *ret_number)
{
    const char *end = text;
    uint64_t number;
    int error = take_digits(&end, &number);

    if (end == text || *end != '\0') {
        return -EINVAL;
    }
    if (error == 0) {
        *ret_number = number;
    }
    return error;
}

int seep_share_parse(const char *text, uint32_t *ret_share)
{
    char thousands[16];
    size_t length = strlen(text);
    struct seep_text copy;
    uint64_t share;
    int error;

    seep_text_init(&copy, thousands, sizeof(thousands));
    length -= length > 0 && text[length - 1] == '%';
    seep_text_add_bytes(&copy, text, length);
    seep_text_add(&copy, "KB"); /* the unit of which percents are whole parts */
    error = copy.cut || length == 0 || !is_digit(text[length - 1])
                ? -EINVAL
                : seep_size_parse(thousands, &share);
    if (error < 0 || share == 0) {
        return error < 0 ? error : -EINVAL;
    }
    if (share > 100000) {
        return -ERANGE;
    }
    *ret_share = (uint32_t)share;
    return 0;
}

int seep_size_mean_log2(uint64_t bytes, unsigned *ret_log2)
{
    unsigned log2 = bytes == 0 ? 0 : 63U - (unsigned)__builtin_clzll(bytes);

    if (bytes == 0 || log2 > SEEP_SIZE_MEAN_LOG2_MAX) {
        return -ERANGE;
    }
    *ret_log2 = log2;
    return 0;
}
