/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Do names match a pattern, and which known pattern fits best. Invariant: which
 * one is told does not depend on the order of sites, only on site and
 * catalogue.
 */
#include <string.h>

#include "base/text.h"
#include "reader/compare/catalogue.h"
#include "reader/compare/suppress.h"
#include "reader/symbols/where.h"

/*
 * Patterns over names. Invariant: the part of the text that a
 * part of the pattern took is never looked at again. The leftmost place of each
 * part is enough: what fits behind a later place fits behind an earlier one.
 */

bool seep_match_text(const char *pattern, const char *text)
{
    const char *end = pattern + strlen(pattern);
    const char *text_end = text + strlen(text);
    bool is_tied = *pattern == '^'; /* the part at hand, to where .text is */
    bool is_end_tied;

    if (pattern == end || text == text_end) {
        return false;
    }
    is_end_tied = end[-1] == '$';
    end -= is_end_tied;
    pattern += is_tied;
    for (;;) {
        const char *star = memchr(pattern, '*', (size_t)(end - pattern));
        size_t length = (size_t)((star != NULL ? star : end) - pattern);
        size_t left = (size_t)(text_end - text);
        const char *found = text;

        if (length > left) {
            return false;
        }
        if (!is_tied) {
            found = star == NULL && is_end_tied
                        ? text_end - length
                        : memmem(text, left, pattern, length);
        }
        if (found == NULL || memcmp(found, pattern, length) != 0) {
            return false;
        }
        if (star == NULL) {
            return !is_end_tied || found + length == text_end;
        }
        text = found + length;
        pattern = star + 1;
        is_tied = false;
    }
}

static bool matches_path(const char *pattern, const char *path)
{
    return seep_match_text(pattern, path) ||
           seep_match_text(pattern, seep_text_base_name(path));
}

bool seep_match_frame(const char *pattern,
                      const struct seep_report_frame *frame)
{
    return seep_match_text(pattern, frame->function) ||
           matches_path(pattern, frame->file) ||
           matches_path(pattern, frame->module);
}

/*
 * A glance at a site before its patterns are matched. Invariant: what matches
 * is never out. A pattern's letters stand in a name only if each three of them
 * do.
 *
 * Each pattern at each frame cost 540 us for a site of 40 frames, 11 s for a
 * report of 20,000.
 */

#define GRAM_LENGTH 3
#define FILTER_BITS 16

/* Every three letters that stand together in a name of the site's frames. */
struct filter {
    uint64_t words[(1 << FILTER_BITS) / 64];
};

static uint32_t hash_gram(const char *letters)
{
    uint32_t gram = (uint32_t)(unsigned char)letters[0] << 16 |
                    (uint32_t)(unsigned char)letters[1] << 8 |
                    (unsigned char)letters[2];

    return gram * UINT32_C(2654435761) >> (32 - FILTER_BITS);
}

static void add_text(struct filter *filter, const char *text)
{
    if (text[0] == '\0' || text[1] == '\0') {
        return;
    }
    for (; text[2] != '\0'; text++) {
        uint32_t hash = hash_gram(text);

        filter->words[hash / 64] |= UINT64_C(1) << hash % 64;
    }
}

static void filter_fill(struct filter *ret_filter,
                        const struct seep_report_site *site)
{
    const struct seep_report_frame *last = NULL;

    memset(ret_filter, 0, sizeof(*ret_filter));
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct seep_report_frame *frame = site->frames[i];

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

static bool has_gram(const struct filter *filter, const char *gram)
{
    uint32_t hash = hash_gram(gram);

    return (filter->words[hash / 64] >> hash % 64 & 1) != 0;
}

/* Nearly always the first letters are in no name. */
static bool may_text(const struct filter *filter, const char *pattern)
{
    size_t length = 0; /* of letters that a name must have, up to here */

    for (const char *at = pattern; at != NULL && *at != '\0'; at++) {
        length = *at == '*' || *at == '^' || *at == '$' ? 0 : length + 1;
        if (length >= GRAM_LENGTH && !has_gram(filter, at + 1 - GRAM_LENGTH)) {
            return false;
        }
    }
    return true;
}

static bool may_names(const struct filter *filter,
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

/* false: @entry does not fit the site. */
static bool may_fit(const struct filter *filter,
                    const struct seep_catalogue_entry *entry)
{
    for (size_t i = 0; i < entry->frame_count; i++) {
        if (!may_names(filter, &entry->frames[i])) {
            return false;
        }
    }
    return true;
}

/*
 * Which pattern fits best, by the order in patterns.h: what lies further in is
 * next to the memory, and what was added later is the user's own.
 */

struct fit {
    size_t weight; /* of the frames: 2 by function or file, 1 by module */
    int condition_count;
    size_t first_frame; /* the less the better */
    size_t text_length;
};

static bool is_better(const struct fit *fit, const struct fit *best)
{
    if (fit->weight != best->weight) {
        return fit->weight > best->weight;
    }
    if (fit->condition_count != best->condition_count) {
        return fit->condition_count > best->condition_count;
    }
    if (fit->first_frame != best->first_frame) {
        return fit->first_frame < best->first_frame;
    }
    return fit->text_length >= best->text_length;
}

static size_t length_of(const char *text)
{
    return text != NULL ? strlen(text) : 0;
}

static bool matches_function(const char *pattern,
                             const struct seep_report_frame *frame)
{
    return frame->function[0] != '\0' &&
           seep_match_text(pattern, frame->function);
}

static bool matches_any(const char *pattern,
                        const struct seep_report_frame *frame)
{
    return matches_function(pattern, frame) ||
           matches_path(pattern, frame->file) ||
           matches_path(pattern, frame->module);
}

static bool matches_name(const struct seep_catalogue_name *name,
                         const struct seep_report_frame *frame)
{
    return (name->any == NULL || matches_any(name->any, frame)) &&
           (name->function == NULL ||
            matches_function(name->function, frame)) &&
           (name->file == NULL || matches_path(name->file, frame->file)) &&
           (name->module == NULL || matches_path(name->module, frame->module));
}

/* The first alternative that matches; NULL: none does. */
static const struct seep_catalogue_name *
match_names(const struct seep_catalogue_names *names,
            const struct seep_report_frame *frame)
{
    for (size_t i = 0; i < names->count; i++) {
        if (matches_name(&names->names[i], frame)) {
            return &names->names[i];
        }
    }
    return NULL;
}

static bool is_by_module(const struct seep_catalogue_name *name,
                         const struct seep_report_frame *frame)
{
    return name->any != NULL ? !matches_function(name->any, frame) &&
                                   !matches_path(name->any, frame->file)
                             : name->function == NULL && name->file == NULL;
}

static void count_match(const struct seep_catalogue_name *name,
                        const struct seep_report_frame *frame, struct fit *fit)
{
    fit->weight += is_by_module(name, frame) ? 1 : 2;
    fit->text_length += length_of(name->any) + length_of(name->function) +
                        length_of(name->file) + length_of(name->module);
}

/* How many frames lie up to and with the @depth-th of the user. */
static size_t frames_in_depth(const struct seep_report_site *site, size_t depth)
{
    for (size_t i = 0; depth > 0 && i < site->frame_count; i++) {
        depth -= seep_where_is_user(site->frames[i]);
        if (depth == 0) {
            return i + 1;
        }
    }
    return site->frame_count;
}

/* Each element at the frame of the one before or further out. The nearest
 * place of each is enough: what lies outside a later one lies outside it. */
static bool match_frames(const struct seep_catalogue_entry *entry,
                         const struct seep_report_site *site, struct fit *fit)
{
    size_t at = 0;

    for (size_t element = 0; element < entry->frame_count; element++) {
        const struct seep_catalogue_name *name = NULL;
        size_t end = element == 0 ? frames_in_depth(site, entry->depth)
                                  : site->frame_count;

        while (at < end && name == NULL) {
            name = match_names(&entry->frames[element], site->frames[at]);
            at += name == NULL;
        }
        if (name == NULL) {
            return false;
        }
        count_match(name, site->frames[at], fit);
        fit->first_frame = element == 0 ? at : fit->first_frame;
    }
    return true;
}

static bool matches_at_a_frame(const struct seep_catalogue_names *names,
                               const struct seep_report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++) {
        if (match_names(names, site->frames[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_in_set(uint32_t bits, unsigned value)
{
    return bits == 0 || (value < 32 && (bits >> value & 1) != 0);
}

static bool fits_block(const struct seep_catalogue_entry *entry,
                       const struct seep_report_site *site)
{
    /* Frames are of one stack, so what is asked of blocks is, too. */
    bool is_row = site->stack_count > 1;
    double bytes =
        (double)(is_row ? site->stack_allocated_bytes : site->allocated_bytes);
    double count = is_row ? site->stack_allocated_count : site->allocated_count;
    double mean;

    if (entry->block_bytes_low == 0 && entry->block_bytes_high == 0) {
        return true;
    }
    if (!(count > 0)) {
        return false;
    }
    mean = bytes / count;
    return mean >= (double)entry->block_bytes_low &&
           (entry->block_bytes_high == 0 ||
            mean <= (double)entry->block_bytes_high);
}

/* What is cheap to ask. */
static bool fits_figures(const struct seep_catalogue_entry *entry,
                         const struct seep_report_site *site)
{
    return entry->frame_count > 0 &&
           is_in_set(entry->spaces, (unsigned)site->space) &&
           is_in_set(entry->classes, (unsigned)site->class) &&
           fits_block(entry, site);
}

static bool fits_site(const struct seep_catalogue_entry *entry,
                      const struct seep_report_site *site, struct fit *ret_fit)
{
    struct fit fit = {.condition_count = entry->condition_count};

    if (!match_frames(entry, site, &fit) ||
        matches_at_a_frame(&entry->no, site)) {
        return false;
    }
    *ret_fit = fit;
    return true;
}

const struct seep_pattern *
seep_catalogue_find(const struct seep_catalogue *catalogue,
                    const struct seep_report_site *site)
{
    const struct seep_pattern *found = NULL;
    struct fit best = {.weight = 0};
    struct filter filter;

    if (catalogue != NULL) {
        filter_fill(&filter, site);
    }
    for (size_t i = 0; catalogue != NULL && i < catalogue->count; i++) {
        struct fit fit;

        if (fits_figures(&catalogue->entries[i], site) &&
            may_fit(&filter, &catalogue->entries[i]) &&
            fits_site(&catalogue->entries[i], site, &fit) &&
            (found == NULL || is_better(&fit, &best))) {
            found = &catalogue->entries[i].pattern;
            best = fit;
        }
    }
    return found;
}

static bool matches_module(const struct seep_catalogue_names *names,
                           const char *path)
{
    struct seep_report_frame frame = {
        .function = "", .file = "", .module = path};

    return match_names(names, &frame) != NULL;
}

static bool is_executable(const struct seep_catalogue_names *names,
                          const struct seep_report *report)
{
    return names->count == 0 || (report->executable != NULL &&
                                 matches_module(names, report->executable));
}

static bool is_loaded(const struct seep_catalogue_names *names,
                      const struct seep_report *report)
{
    for (size_t i = 0; names->count > 0 && i < report->module_count; i++) {
        if (matches_module(names, report->modules[i])) {
            return true;
        }
    }
    return names->count == 0;
}

static bool grows_mapping(const struct seep_catalogue_names *names,
                          const struct seep_report *report)
{
    const struct seep_report_memory *memory = &report->memory;

    for (size_t i = 0; names->count > 0 && i < memory->mapping_count; i++) {
        if (memory->mappings[i].slope_bytes_per_s > 0 &&
            matches_module(names, memory->mappings[i].name)) {
            return true;
        }
    }
    return names->count == 0;
}

const struct seep_pattern *
seep_catalogue_find_process(const struct seep_catalogue *catalogue,
                            const struct seep_report *report)
{
    const struct seep_catalogue_entry *found = NULL;

    for (size_t i = 0; catalogue != NULL && i < catalogue->count; i++) {
        const struct seep_catalogue_entry *entry = &catalogue->entries[i];

        if (entry->for_process &&
            is_in_set(entry->verdicts, (unsigned)report->verdict.class) &&
            is_in_set(entry->allocators, (unsigned)report->memory.allocator) &&
            is_executable(&entry->executable, report) &&
            (found == NULL ||
             entry->condition_count >= found->condition_count) &&
            grows_mapping(&entry->mapping, report) &&
            is_loaded(&entry->loaded, report)) {
            found = entry;
        }
    }
    return found != NULL ? &found->pattern : NULL;
}
