/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types describe part of themselves: where their members lie, how large their
 * objects are. Frames are checked down to their names and line tables.
 *
 * Invariant: as in python_check.h.
 */
#include "capture/python_check.h"

#include "capture/python_code.h"
#include "capture/python_lines.h"

#define MEMBERS_MAX 64
#define DEBUG_WORDS_MAX 96U
#define FRAMES_CHECKED 32U

static bool is_string(struct seep_python_memory *memory, uintptr_t at,
                      const char *wanted)
{
    char seen;

    do {
        if (!seep_python_read(memory, &seen, at++, 1) || seen != *wanted) {
            return false;
        }
    } while (*wanted++ != '\0');
    return true;
}

/* Does the type say that its member @name lies there? */
static bool has_member(struct seep_python_memory *memory, uintptr_t type,
                       const char *name, int offset)
{
    uintptr_t member;
    uintptr_t at;
    uintptr_t place;

    if (!seep_python_read_word(memory, type + SEEP_PYTHON_TYPE_MEMBERS,
                               &member)) {
        return false;
    }
    for (int i = 0; i < MEMBERS_MAX; i++) {
        if (!seep_python_read_word(memory, member, &at) || at == 0) {
            return false;
        }
        if (is_string(memory, at, name)) {
            return seep_python_read_word(
                       memory, member + SEEP_PYTHON_MEMBER_OFFSET, &place) &&
                   place == (uintptr_t)offset;
        }
        member += SEEP_PYTHON_MEMBER_BYTES;
    }
    return false;
}

static bool has_size(struct seep_python_memory *memory, uintptr_t type,
                     int size_bytes)
{
    uintptr_t seen;

    return seep_python_read_word(memory, type + SEEP_PYTHON_TYPE_BASIC_SIZE,
                                 &seen) &&
           seen == (uintptr_t)size_bytes;
}

bool seep_python_types_agree(const struct seep_python *python,
                             struct seep_python_memory *memory)
{
    const struct seep_python_offsets *at = &python->offsets;
    uintptr_t code = python->code_type;

    return has_member(memory, code, "co_filename", at->code_filename) &&
           has_member(memory, code, "co_name", at->code_name) &&
           has_member(memory, code, "co_firstlineno", at->code_first_line) &&
           (at->minor >= 11 ||
            (has_member(memory, python->frame_type, "f_back", at->frame_back) &&
             has_member(memory, python->frame_type, "f_code",
                        at->frame_code))) &&
           (at->minor < 11 ||
            (has_member(memory, code, "co_qualname", at->code_qualname) &&
             has_member(memory, code, "co_linetable", at->code_lines) &&
             has_size(memory, code, at->code_instructions))) &&
           has_size(memory, python->text_type,
                    at->text_header + (at->minor < 12 ? 32 : 24)) &&
           has_size(memory, python->bytes_type, SEEP_PYTHON_BYTES_DATA + 1);
}

static bool read_version(struct seep_python *python,
                         struct seep_python_memory *memory)
{
    uintptr_t hex;

    if (python->version == 0) {
        return true;
    }
    if (!seep_python_read_word(memory, python->version, &hex) ||
        hex > UINT32_MAX) {
        return false;
    }
    python->hex = (uint32_t)hex;
    return true;
}

enum seep_python_state
seep_python_check_types(struct seep_python *python,
                        struct seep_python_memory *memory)
{
    uint64_t words[DEBUG_WORDS_MAX] = {0};
    enum seep_python_state state;
    size_t count;

    if (!read_version(python, memory)) {
        return SEEP_PYTHON_SYMBOLS;
    }
    count = seep_python_offsets_words(python->hex >> 16 & 0xff);
    if (count > DEBUG_WORDS_MAX ||
        !seep_python_read(memory, words, python->runtime,
                          count * sizeof(words[0]))) {
        return SEEP_PYTHON_OFFSETS;
    }
    state = seep_python_offsets_find(python->hex, words, &python->offsets);
    if (state != SEEP_PYTHON_ON) {
        return state;
    }
    return seep_python_types_agree(python, memory) ? SEEP_PYTHON_PROBATION
                                                   : SEEP_PYTHON_TYPES;
}

static enum seep_python_state check_frame(const struct seep_python *python,
                                          struct seep_python_memory *memory,
                                          const struct seep_python_frame *frame)
{
    struct seep_python_identity identity;
    int64_t code_bytes;
    size_t bytes;
    char text[64];

    if (!seep_python_is_a(memory, frame->code, python->code_type) ||
        !seep_python_code_bytes(python, memory, frame->code, &code_bytes) ||
        frame->instruction >= code_bytes) {
        return SEEP_PYTHON_FRAME;
    }
    if (!seep_python_identify(python, memory, frame->code, &identity) ||
        identity.first_line < 0 ||
        !seep_python_text(python, memory, frame->code, SEEP_PYTHON_FILE, text,
                          sizeof(text), &bytes) ||
        !seep_python_text(python, memory, frame->code, SEEP_PYTHON_NAME, text,
                          sizeof(text), &bytes) ||
        bytes == 0 ||
        !seep_python_lines_check(python, memory, &identity, code_bytes)) {
        return SEEP_PYTHON_CODE;
    }
    return SEEP_PYTHON_ON;
}

enum seep_python_state
seep_python_check_chain(const struct seep_python *python,
                        struct seep_python_memory *memory,
                        const struct seep_python_chain *chain)
{
    if (python->offsets.minor >= 11 && !chain->whole && !chain->truncated) {
        return SEEP_PYTHON_FRAME;
    }
    for (size_t i = 0; i < chain->count && i < FRAMES_CHECKED; i++) {
        enum seep_python_state state =
            check_frame(python, memory, &chain->frames[i]);

        if (state != SEEP_PYTHON_ON) {
            return state;
        }
    }
    return SEEP_PYTHON_ON;
}
