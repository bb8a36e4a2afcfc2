/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text in fixed buffers; see text.h for the promise. */
#include "base/text.h"

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

static unsigned suffix_power(char c)
{
    switch (c) {
    case 'K':
    case 'k':
        return 1;
    case 'M':
    case 'm':
        return 2;
    case 'G':
    case 'g':
        return 3;
    default:
        return 0;
    }
}

/* The unit at @at: 1024 to a power, 1000 to it if written as KB. */
static uint64_t read_unit(const char **at)
{
    unsigned power = suffix_power(**at);
    uint64_t base = 1024;
    uint64_t unit = 1;

    if (power != 0) {
        ++*at;
        if (**at == 'i') {
            ++*at;
        } else if (**at == 'B') {
            base = 1000;
        }
    }
    if (**at == 'B') {
        ++*at;
    }
    for (; power > 0; power--) {
        unit *= base;
    }
    return unit;
}

bool seep_text_parse_size(const char *string, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = string;
    uint64_t unit;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (number > UINT64_MAX / 10 - 1) {
            return false;
        }
        number = number * 10 + (uint64_t)(*at - '0');
    }
    if (at == string) {
        return false;
    }
    unit = read_unit(&at);
    if (*at != '\0' || number > UINT64_MAX / unit) {
        return false;
    }
    *ret_number = number * unit;
    return true;
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
    const char *base = path;

    for (; *path != '\0'; path++) {
        if (*path == '/') {
            base = path + 1;
        }
    }
    return base;
}
