/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A glance at a site; see catalogue_filter.h. Invariant: what matches is never
 * out. A pattern's letters stand in a name only if each three of them do.
 *
 * Each pattern at each frame cost 540 us for a site of 40 frames, 11 s for a
 * report of 20,000.
 */
#include "reader/catalogue_filter.h"

#include <string.h>

#define GRAM_LENGTH 3

static uint32_t hash_gram(const char *letters)
{
    uint32_t gram = (uint32_t)(unsigned char)letters[0] << 16 |
                    (uint32_t)(unsigned char)letters[1] << 8 |
                    (unsigned char)letters[2];

    return gram * UINT32_C(2654435761) >> (32 - SEEP_CATALOGUE_FILTER_BITS);
}

static void add_text(struct seep_catalogue_filter *filter, const char *text)
{
    if (text[0] == '\0' || text[1] == '\0') {
        return;
    }
    for (; text[2] != '\0'; text++) {
        uint32_t hash = hash_gram(text);

        filter->words[hash / 64] |= UINT64_C(1) << hash % 64;
    }
}

void seep_catalogue_filter_fill(struct seep_catalogue_filter *ret_filter,
                                const struct seep_report_site *site)
{
    const struct seep_report_frame *last = NULL;

    memset(ret_filter, 0, sizeof(*ret_filter));
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct seep_report_frame *frame = &site->frames[i];

        /* Texts are kept once, and neighbours often are of one module. */
        if (last == NULL || frame->function != last->function) {
            add_text(ret_filter, frame->function);
        }
        if (last == NULL || frame->file != last->file) {
            add_text(ret_filter, frame->file);
        }
        if (last == NULL || frame->module != last->module) {
            add_text(ret_filter, frame->module);
        }
        last = frame;
    }
}

/* @length letters that a name must have. */
static bool has_letters(const struct seep_catalogue_filter *filter,
                        const char *letters, size_t length)
{
    for (size_t i = 0; i + GRAM_LENGTH <= length; i++) {
        uint32_t hash = hash_gram(letters + i);

        if ((filter->words[hash / 64] >> hash % 64 & 1) == 0) {
            return false;
        }
    }
    return true;
}

static bool may_text(const struct seep_catalogue_filter *filter,
                     const char *pattern)
{
    while (pattern != NULL && *pattern != '\0') {
        size_t length = strcspn(pattern, "*^$");

        if (!has_letters(filter, pattern, length)) {
            return false;
        }
        pattern += length;
        pattern += strspn(pattern, "*^$");
    }
    return true;
}

static bool may_names(const struct seep_catalogue_filter *filter,
                      const struct seep_catalogue_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct seep_catalogue_name *name = &names->names[i];

        if (may_text(filter, name->any) && may_text(filter, name->function) &&
            may_text(filter, name->file) && may_text(filter, name->module)) {
            return true;
        }
    }
    return false;
}

bool seep_catalogue_filter_may(const struct seep_catalogue_filter *filter,
                               const struct seep_catalogue_entry *entry)
{
    for (size_t i = 0; i < entry->frame_count; i++) {
        if (!may_names(filter, &entry->frames[i])) {
            return false;
        }
    }
    return true;
}
