/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Patterns over names: see match.h. Invariant: the part of the text that a
 * part of the pattern took is never looked at again. The leftmost place of each
 * part is enough: what fits behind a later place fits behind an earlier one.
 */
#include "reader/match.h"

#include <string.h>

#include "base/text.h"

/* What is matched next, and in what. */
struct parts {
    const char *pattern;
    size_t pattern_length;
    const char *text;
    size_t text_length;
};

/* Cut the part up to the next * off the pattern; its length. */
static size_t next_part(const struct parts *parts)
{
    const char *star = memchr(parts->pattern, '*', parts->pattern_length);

    return star != NULL ? (size_t)(star - parts->pattern)
                        : parts->pattern_length;
}

static bool take_beginning(struct parts *parts, size_t length)
{
    if (length > parts->text_length ||
        memcmp(parts->text, parts->pattern, length) != 0) {
        return false;
    }
    parts->text += length;
    parts->text_length -= length;
    parts->pattern += length;
    parts->pattern_length -= length;
    return true;
}

/* The part behind the last *, or all: it is tied to the end of the text. */
static bool take_end(struct parts *parts)
{
    const char *star = memrchr(parts->pattern, '*', parts->pattern_length);
    const char *part = star != NULL ? star + 1 : parts->pattern;
    size_t length = parts->pattern_length - (size_t)(part - parts->pattern);

    if (length > parts->text_length ||
        memcmp(parts->text + parts->text_length - length, part, length) != 0) {
        return false;
    }
    parts->text_length -= length;
    parts->pattern_length -= length;
    return true;
}

static bool take_anywhere(struct parts *parts)
{
    while (parts->pattern_length > 0) {
        size_t length = next_part(parts);
        const char *found =
            memmem(parts->text, parts->text_length, parts->pattern, length);

        if (found == NULL) {
            return false;
        }
        parts->text_length -= (size_t)(found - parts->text) + length;
        parts->text = found + length;
        parts->pattern += length;
        parts->pattern_length -= length;
        if (parts->pattern_length > 0) {
            parts->pattern++;
            parts->pattern_length--;
        }
    }
    return true;
}

bool seep_match_text(const char *pattern, const char *text)
{
    struct parts parts = {pattern, strlen(pattern), text, strlen(text)};

    if (parts.pattern_length == 0 || parts.text_length == 0) {
        return false;
    }
    bool tied_end = pattern[parts.pattern_length - 1] == '$';
    bool tied_beginning = pattern[0] == '^';

    parts.pattern_length -= tied_end;
    if (tied_beginning) {
        parts.pattern += parts.pattern_length > 0;
        parts.pattern_length -= parts.pattern_length > 0;
        if (tied_end &&
            memchr(parts.pattern, '*', parts.pattern_length) == NULL) {
            return parts.pattern_length == parts.text_length &&
                   memcmp(parts.pattern, text, parts.text_length) == 0;
        }
        if (!take_beginning(&parts, next_part(&parts))) {
            return false;
        }
    }
    return (!tied_end || take_end(&parts)) && take_anywhere(&parts);
}

bool seep_match_frame(const char *pattern,
                      const struct seep_report_frame *frame)
{
    return seep_match_text(pattern, frame->function) ||
           seep_match_text(pattern, frame->file) ||
           seep_match_text(pattern, frame->module) ||
           seep_match_text(pattern, seep_text_base_name(frame->file)) ||
           seep_match_text(pattern, seep_text_base_name(frame->module));
}
