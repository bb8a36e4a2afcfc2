/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table, and what _Py_DebugOffsets must say.
 *
 * Invariant: a version is known if and only if it has a row.
 */
#include <stdbool.h>

#include "capture/python/interpreter.h"

#define NONE SEEP_PYTHON_OFFSET_NONE
#define COOKIE UINT64_C(0x7970677562656478) /* "xdebugpy" */

/* What versions have in common: 3.8 to 3.10, and 3.12 and later. */
#define FRAME_OBJECTS                                                \
    .thread_id = 176, .thread_frame = 24, .cframe_current = NONE,    \
    .cframe_previous = NONE, .frame_back = 24, .frame_code = 32,     \
    .frame_owner = NONE, .code_filename = 104, .code_name = 112,     \
    .code_qualname = NONE, .code_first_line = 40, .code_lines = 120, \
    .code_instructions = 48, .text_header = 48
#define INTERPRETER_FRAMES                                        \
    .frame_back = 8, .frame_code = 0, .frame_instruction = 56,    \
    .code_filename = 112, .code_name = 120, .code_qualname = 128, \
    .code_first_line = 68, .code_lines = 136, .text_header = 40
#define WITHOUT_CFRAMES                                           \
    .thread_id = 152, .thread_frame = 72, .cframe_current = NONE, \
    .cframe_previous = NONE

/* 3.14 is from its headers alone. */
static const struct seep_python_offsets rows[] = {
    {.minor = 8, .frame_instruction = 104, FRAME_OBJECTS},
    {.minor = 9, .frame_instruction = 104, FRAME_OBJECTS},
    {.minor = 10, .frame_instruction = 96, FRAME_OBJECTS},
    {
        .minor = 11,
        .thread_id = 152,
        .thread_frame = 56,
        .cframe_current = 8,
        .cframe_previous = 16,
        .frame_back = 48,
        .frame_code = 32,
        .frame_instruction = 56,
        .frame_owner = 69,
        .code_filename = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_first_line = 72,
        .code_lines = 136,
        .code_instructions = 184,
        .text_header = 48,
    },
    {
        .minor = 12,
        .thread_id = 136,
        .thread_frame = 56,
        .cframe_current = 0,
        .cframe_previous = 8,
        .frame_owner = 70,
        .code_instructions = 192,
        INTERPRETER_FRAMES,
    },
    {
        .minor = 13,
        .frame_owner = 70,
        .code_instructions = 200,
        INTERPRETER_FRAMES,
        WITHOUT_CFRAMES,
    },
    {
        .minor = 14,
        .frame_owner = 74,
        .code_instructions = 208,
        INTERPRETER_FRAMES,
        WITHOUT_CFRAMES,
    },
};

/* The groups of _Py_DebugOffsets that are looked at: their first words, which
 * are their sizes. They stand where they do only within a released version. */
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

/* And the words in each, counted from the first. */
enum {
    THREAD_CURRENT_FRAME = 4,
    THREAD_ID = 5,
    FRAME_PREVIOUS = 1,
    FRAME_EXECUTABLE = 2,
    FRAME_INSTR_PTR = 3,
    FRAME_OWNER = 5,
    CODE_FILENAME = 1,
    CODE_NAME = 2,
    CODE_QUALNAME = 3,
    CODE_LINETABLE = 4,
    CODE_FIRSTLINENO = 5,
    CODE_ADAPTIVE = 9, /* co_code_adaptive */
    OBJECT_TYPE = 1,
    BYTES_SIZE = 1,
    BYTES_DATA = 2,
    TEXT_STATE = 1,
    TEXT_LENGTH = 2,
    TEXT_ASCII_BYTES = 3,
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
        {at->thread + THREAD_CURRENT_FRAME, row->thread_frame},
        {at->thread + THREAD_ID, row->thread_id},
        {at->frame + FRAME_PREVIOUS, row->frame_back},
        {at->frame + FRAME_EXECUTABLE, row->frame_code},
        {at->frame + FRAME_INSTR_PTR, row->frame_instruction},
        {at->frame + FRAME_OWNER, row->frame_owner},
        {at->code + CODE_FILENAME, row->code_filename},
        {at->code + CODE_NAME, row->code_name},
        {at->code + CODE_QUALNAME, row->code_qualname},
        {at->code + CODE_LINETABLE, row->code_lines},
        {at->code + CODE_FIRSTLINENO, row->code_first_line},
        {at->code + CODE_ADAPTIVE, row->code_instructions},
        {at->object + OBJECT_TYPE, SEEP_PYTHON_OBJECT_TYPE},
        {at->bytes + BYTES_SIZE, SEEP_PYTHON_OBJECT_SIZE},
        {at->bytes + BYTES_DATA, SEEP_PYTHON_BYTES_DATA},
        {at->text + TEXT_STATE, SEEP_PYTHON_TEXT_STATE},
        {at->text + TEXT_LENGTH, SEEP_PYTHON_OBJECT_SIZE},
        {at->text + TEXT_ASCII_BYTES, row->text_header},
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
