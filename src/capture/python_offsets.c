/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table, and what _Py_DebugOffsets must say.
 *
 * Invariant: a version is known if and only if it has a row.
 */
#include "capture/python_offsets.h"

#include <stdbool.h>

#define NONE SEEP_PYTHON_OFFSET_NONE
#define COOKIE UINT64_C(0x7970677562656478) /* "xdebugpy" */

/* In the order of SEEP_PYTHON_FIELDS; 3.14 is from its headers alone. */
static const struct seep_python_offsets rows[] = {
    {8, 176, 24, NONE, NONE, 24, 32, 104, NONE, 104, 112, NONE, 40, 120, 48,
     48},
    {9, 176, 24, NONE, NONE, 24, 32, 104, NONE, 104, 112, NONE, 40, 120, 48,
     48},
    {10, 176, 24, NONE, NONE, 24, 32, 96, NONE, 104, 112, NONE, 40, 120, 48,
     48},
    {11, 152, 56, 8, 16, 48, 32, 56, 69, 112, 120, 128, 72, 136, 184, 48},
    {12, 136, 56, 0, 8, 8, 0, 56, 70, 112, 120, 128, 68, 136, 192, 40},
    {13, 152, 72, NONE, NONE, 8, 0, 56, 70, 112, 120, 128, 68, 136, 200, 40},
    {14, 152, 72, NONE, NONE, 8, 0, 56, 74, 112, 120, 128, 68, 136, 208, 40},
};

/* The groups of _Py_DebugOffsets that are looked at: their first words. They
 * stand where they do only within a released version. */
struct groups {
    unsigned int minor;
    unsigned int thread;
    unsigned int frame;
    unsigned int code;
    unsigned int object;
    unsigned int bytes;
    unsigned int text;
    unsigned int total;
};

static const struct groups groups[] = {
    {13, 19, 28, 34, 44, 64, 67, 71},
    {14, 22, 31, 39, 50, 74, 77, 81},
};

static const struct groups *groups_of(unsigned int minor)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (groups[i].minor == minor) {
            return &groups[i];
        }
    }
    return NULL;
}

size_t seep_python_offsets_words(unsigned int minor)
{
    const struct groups *found = groups_of(minor);

    return found != NULL ? found->total : 0;
}

static bool agrees(const struct seep_python_offsets *row,
                   const struct groups *at, const uint64_t *words)
{
    const struct {
        unsigned int index;
        int value;
    } wanted[] = {
        {at->thread + 4, row->thread_frame},
        {at->thread + 5, row->thread_id},
        {at->frame + 1, row->frame_back},
        {at->frame + 2, row->frame_code},
        {at->frame + 3, row->frame_instruction},
        {at->frame + 5, row->frame_owner},
        {at->code + 1, row->code_filename},
        {at->code + 2, row->code_name},
        {at->code + 3, row->code_qualname},
        {at->code + 4, row->code_lines},
        {at->code + 5, row->code_first_line},
        {at->code + 9, row->code_instructions},
        {at->object + 1, SEEP_PYTHON_OBJECT_TYPE},
        {at->bytes + 1, SEEP_PYTHON_OBJECT_SIZE},
        {at->bytes + 2, SEEP_PYTHON_BYTES_DATA},
        {at->text + 1, SEEP_PYTHON_TEXT_STATE},
        {at->text + 2, SEEP_PYTHON_OBJECT_SIZE},
        {at->text + 3, row->text_header},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (words[wanted[i].index] != (uint64_t)wanted[i].value) {
            return false;
        }
    }
    return true;
}

static enum seep_python_state check_words(uint32_t hex, const uint64_t *words,
                                          const struct seep_python_offsets *row)
{
    const struct groups *at = groups_of(row->minor);

    if (at == NULL) {
        return SEEP_PYTHON_ON;
    }
    if (words[0] != COOKIE || words[1] >> 16 != hex >> 16 || words[2] > 1) {
        return SEEP_PYTHON_OFFSETS;
    }
    if (words[2] == 1) {
        return SEEP_PYTHON_FREE_THREADED;
    }
    return agrees(row, at, words) ? SEEP_PYTHON_ON : SEEP_PYTHON_OFFSETS;
}

enum seep_python_state
seep_python_offsets_find(uint32_t hex, const uint64_t *words,
                         struct seep_python_offsets *ret_offsets)
{
    unsigned int minor = hex >> 16 & 0xff;
    enum seep_python_state state;

    if (hex >> 24 < 3 || (hex >> 24 == 3 && minor < SEEP_PYTHON_MINOR_MIN)) {
        return SEEP_PYTHON_OLD;
    }
    if (hex >> 24 > 3 || minor > SEEP_PYTHON_MINOR_MAX) {
        return SEEP_PYTHON_NEW;
    }
    /* The betas of a version had other layouts; a candidate has its own. */
    if ((hex >> 4 & 0xf) < 0xc) {
        return SEEP_PYTHON_UNFINISHED;
    }
    state = check_words(hex, words, &rows[minor - SEEP_PYTHON_MINOR_MIN]);
    if (state == SEEP_PYTHON_ON) {
        *ret_offsets = rows[minor - SEEP_PYTHON_MINOR_MIN];
    }
    return state;
}
