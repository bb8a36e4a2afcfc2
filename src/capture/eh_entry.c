/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a pc to its FDE and CIE, by the sorted table of .eh_frame_hdr.
 *
 * Invariant: every pointer that the tables hold is checked against the section
 * before anything is read through it.
 */
#include "capture/eh_frame.h"

#define TABLE_ENTRY_BYTES 8U
#define TABLE_ENCODING (SEEP_EH_DATA_RELATIVE | SEEP_EH_SDATA4)
#define EXTENDED_LENGTH 0xffffffffU

static int32_t table_word(const uint8_t *at)
{
    struct seep_eh_cursor cursor = {.at = at, .end = at + 4};

    return (int32_t)seep_eh_signed(&cursor, 4);
}

/* The last entry of the table that begins at or before @pc. */
static enum seep_cut search_table(const struct seep_eh_section *section,
                                  const uint8_t *table, uint64_t count,
                                  uintptr_t pc, const uint8_t **ret_entry)
{
    int64_t wanted = (int64_t)(pc - (uintptr_t)section->hdr);
    uint64_t low = 0;
    uint64_t high = count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (table_word(table + middle * TABLE_ENTRY_BYTES) <= wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return SEEP_CUT_NO_RULE;
    }
    *ret_entry =
        section->hdr + table_word(table + (low - 1) * TABLE_ENTRY_BYTES + 4);
    return SEEP_CUT_NONE;
}

static enum seep_cut find_entry(const struct seep_eh_section *section,
                                uintptr_t pc, const uint8_t **ret_entry)
{
    struct seep_eh_cursor cursor = {.at = section->hdr, .end = section->high};
    const uint8_t *head = seep_eh_take(&cursor, 4);
    uint64_t count;

    if (head == NULL || head[0] != 1) {
        return SEEP_CUT_MALFORMED;
    }
    if (head[2] == SEEP_EH_OMITTED || head[3] != TABLE_ENCODING) {
        return SEEP_CUT_NO_RULE;
    }
    seep_eh_pointer(&cursor, head[1], (uintptr_t)section->hdr);
    count = seep_eh_pointer(&cursor, head[2], (uintptr_t)section->hdr);
    if (cursor.failed ||
        count > (uint64_t)(cursor.end - cursor.at) / TABLE_ENTRY_BYTES) {
        return SEEP_CUT_MALFORMED;
    }
    return search_table(section, cursor.at, count, pc, ret_entry);
}

/* Narrow a cursor to the body of the record at @at; its id is read too. */
static bool open_record(const struct seep_eh_section *section,
                        const uint8_t *at, struct seep_eh_cursor *cursor,
                        const uint8_t **ret_id_at, uint64_t *ret_id)
{
    uint64_t length;
    size_t id_bytes = 4;

    if (at < section->low || at >= section->high) {
        return false;
    }
    *cursor = (struct seep_eh_cursor){.at = at, .end = section->high};
    length = seep_eh_unsigned(cursor, 4);
    if (length == EXTENDED_LENGTH) {
        length = seep_eh_unsigned(cursor, 8);
        id_bytes = 8;
    }
    if (cursor->failed || length < id_bytes ||
        length > (uint64_t)(cursor->end - cursor->at)) {
        return false;
    }
    cursor->end = cursor->at + length;
    *ret_id_at = cursor->at;
    *ret_id = seep_eh_unsigned(cursor, id_bytes);
    return true;
}

/* The letters after the 'z' of a CIE's augmentation. */
static bool read_augmentation(struct seep_eh_cursor *data,
                              const uint8_t *letters,
                              struct seep_eh_entry *entry)
{
    for (; *letters != 0; letters++) {
        switch (*letters) {
        case 'R':
            entry->pointer_encoding = (uint8_t)seep_eh_unsigned(data, 1);
            break;
        case 'P': {
            uint8_t encoding = (uint8_t)seep_eh_unsigned(data, 1);

            /* The personality itself is not wanted, only its length. */
            seep_eh_number(data, encoding);
            break;
        }
        case 'L':
            seep_eh_unsigned(data, 1);
            break;
        case 'S':
            entry->signal_frame = true;
            break;
        case 'B':
            break;
        default:
            return false;
        }
    }
    return !data->failed;
}

static bool read_common(const struct seep_eh_section *section,
                        const uint8_t *at, struct seep_eh_entry *entry)
{
    struct seep_eh_cursor cursor;
    const uint8_t *id_at;
    const uint8_t *letters;
    uint64_t id;
    uint64_t version;

    if (!open_record(section, at, &cursor, &id_at, &id) || id != 0) {
        return false;
    }
    version = seep_eh_unsigned(&cursor, 1);
    letters = cursor.at;
    while (seep_eh_unsigned(&cursor, 1) != 0) {
    }
    entry->code_alignment = seep_eh_uleb(&cursor);
    entry->data_alignment = seep_eh_sleb(&cursor);
    if (version == 1) {
        id = seep_eh_unsigned(&cursor, 1);
    } else {
        id = seep_eh_uleb(&cursor);
    }
    if (cursor.failed || (version != 1 && version != 3) ||
        id != SEEP_EH_RETURN || (letters[0] != 'z' && letters[0] != 0)) {
        return false;
    }
    if (letters[0] == 'z') {
        uint64_t bytes = seep_eh_uleb(&cursor);
        const uint8_t *data_at = seep_eh_take(&cursor, bytes);
        struct seep_eh_cursor data = {.at = data_at, .end = cursor.at};

        if (data_at == NULL || !read_augmentation(&data, letters + 1, entry)) {
            return false;
        }
        entry->augmented = true;
    }
    entry->common = cursor;
    return true;
}

static bool read_own(const struct seep_eh_section *section, const uint8_t *at,
                     struct seep_eh_entry *entry)
{
    struct seep_eh_cursor cursor;
    const uint8_t *id_at;
    uint64_t id;

    if (!open_record(section, at, &cursor, &id_at, &id) || id == 0 ||
        id > (uint64_t)(id_at - section->low) ||
        !read_common(section, id_at - id, entry)) {
        return false;
    }
    entry->pc_low = seep_eh_pointer(&cursor, entry->pointer_encoding,
                                    (uintptr_t)section->hdr);
    entry->pc_high =
        entry->pc_low + seep_eh_number(&cursor, entry->pointer_encoding);
    /* A CIE with 'z' says so of all its FDEs; the data is the exception
     * tables' and not ours. */
    if (entry->augmented) {
        seep_eh_take(&cursor, seep_eh_uleb(&cursor));
    }
    entry->own = cursor;
    return !cursor.failed;
}

enum seep_cut seep_eh_find(const struct seep_eh_section *section, uintptr_t pc,
                           struct seep_eh_entry *ret_entry)
{
    const uint8_t *at = NULL;
    enum seep_cut cut = find_entry(section, pc, &at);

    if (cut != SEEP_CUT_NONE) {
        return cut;
    }
    *ret_entry = (struct seep_eh_entry){.pointer_encoding = SEEP_EH_ABSOLUTE};
    if (!read_own(section, at, ret_entry)) {
        return SEEP_CUT_MALFORMED;
    }
    return pc < ret_entry->pc_low || pc >= ret_entry->pc_high ? SEEP_CUT_NO_RULE
                                                              : SEEP_CUT_NONE;
}
