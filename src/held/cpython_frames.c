/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames of CPython: whose local variable a word is. Each offset is that of the
 * headers of the versions named beside it.
 *
 * Invariant: a frame is believed only if its code is a code object, its
 * globals an object, and the word within what that code says it has.
 */
#include "held/cpython.h"

#include <stdio.h>
#include <string.h>

/* In an interpreter's frame (3.11 on): _PyInterpreterFrame. */
struct frame_layout {
    uint16_t code;
    uint16_t function;
    uint16_t globals;
    uint16_t locals;
};

static struct frame_layout layout_of(const struct seep_held_python *python)
{
    if (python->minor == 11) {
        return (struct frame_layout){32, 0, 8, 72};
    }
    return (struct frame_layout){0, 16, 24, python->minor < 14 ? 72 : 80};
}

/* What else a frame has: a function object has a code and globals, too. */
static bool has_function(struct seep_held_python *python,
                         const struct frame_layout *layout, uint64_t frame)
{
    uint64_t function =
        seep_held_word(python->memory, frame + layout->function);
    uint64_t globals = seep_held_word(python->memory, frame + layout->globals);

    function &= python->minor >= 14 ? ~UINT64_C(7) : UINT64_MAX;
    return seep_held_type_of(python, function)->species ==
               SEEP_HELD_IS_FUNCTION &&
           (seep_held_type_of(python, globals)->flags & SEEP_HELD_FLAG_DICT) !=
               0;
}

bool seep_held_has_frame(const struct seep_held_type *type)
{
    return type->species == SEEP_HELD_IS_FRAME ||
           type->species == SEEP_HELD_IS_GENERATOR ||
           type->species == SEEP_HELD_IS_COROUTINE ||
           type->species == SEEP_HELD_IS_ASYNC_GENERATOR;
}

/* In a code object. */
struct code_layout {
    uint16_t local_count;
    uint16_t stack_count;
    uint16_t names[3];
    uint16_t file;
    uint16_t function;
};

static struct code_layout code_layout_of(const struct seep_held_python *python)
{
    if (python->minor <= 10) {
        return (struct code_layout){28, 32, {72, 88, 80}, 104, 112};
    }
    if (python->minor == 11) {
        return (struct code_layout){76, 68, {96, 0, 0}, 112, 128};
    }
    return (struct code_layout){72, 64, {96, 0, 0}, 112, 128};
}

static bool is_code(struct seep_held_python *python, uint64_t object)
{
    const struct seep_held_type *type;

    if (object % 8 != 0 || object < 65536) {
        return false;
    }
    type = seep_held_type_of(python, object);
    return type->is_type && type->species == SEEP_HELD_IS_CODE;
}

#define LOCALS_MOST 65536U

bool seep_held_code_read(struct seep_held_python *python, uint64_t code,
                         struct seep_held_code *ret_code)
{
    struct seep_held_memory *memory = python->memory;
    struct code_layout layout = code_layout_of(python);
    char path[SEEP_HELD_NAME_BYTES];
    const char *name;

    if (!is_code(python, code)) {
        return false;
    }
    *ret_code = (struct seep_held_code){
        .local_count =
            (uint32_t)seep_held_int(memory, code + layout.local_count),
        .stack_count =
            (uint32_t)seep_held_int(memory, code + layout.stack_count),
    };
    if (ret_code->local_count > LOCALS_MOST ||
        ret_code->stack_count > LOCALS_MOST) {
        return false;
    }
    for (size_t i = 0; i < 3 && layout.names[i] != 0; i++) {
        ret_code->names[i] = seep_held_word(memory, code + layout.names[i]);
    }
    if (python->minor <= 10) {
        /* Cells and free variables lie behind the locals. */
        ret_code->stack_count +=
            seep_held_word(memory, ret_code->names[1] + 16) +
            seep_held_word(memory, ret_code->names[2] + 16);
    }
    if (!seep_held_python_text(
            python, seep_held_word(memory, code + layout.function),
            ret_code->function, sizeof(ret_code->function))) {
        snprintf(ret_code->function, sizeof(ret_code->function), "?");
    }
    if (!seep_held_python_text(python,
                               seep_held_word(memory, code + layout.file), path,
                               sizeof(path))) {
        path[0] = '\0';
    }
    name = strrchr(path, '/');
    snprintf(ret_code->file, sizeof(ret_code->file), "%s",
             name == NULL ? path : name + 1);
    return true;
}

bool seep_held_local_text(struct seep_held_python *python,
                          const struct seep_held_code *code, uint64_t index,
                          char *text, size_t capacity)
{
    for (size_t i = 0; i < 3 && code->names[i] != 0; i++) {
        uint64_t count = seep_held_word(python->memory, code->names[i] + 16);

        if (index < count) {
            uint64_t at =
                code->names[i] + python->tuple_items_offset + 8 * index;

            return seep_held_python_text(
                python, seep_held_word(python->memory, at), text, capacity);
        }
        index -= count;
    }
    return false;
}

#define FRAME_WORDS_MOST 300U

bool seep_held_frame_at(struct seep_held_python *python, uint64_t address,
                        uint64_t lowest, struct seep_held_frame *ret_frame)
{
    struct seep_held_memory *memory = python->memory;
    struct frame_layout layout = layout_of(python);

    if (python->minor < 11) {
        return false;
    }
    for (uint64_t i = 0; i < FRAME_WORDS_MOST; i++) {
        uint64_t frame = address - layout.locals - 8 * i;
        uint64_t code = seep_held_word(memory, frame + layout.code);
        struct seep_held_code found;

        if (frame < lowest || frame > address) {
            break;
        }
        /* 3.14: the low bits say who counts its references. */
        code &= python->minor >= 14 ? ~UINT64_C(7) : UINT64_MAX;
        if (!is_code(python, code) ||
            !seep_held_code_read(python, code, &found)) {
            continue;
        }
        if (i <= found.local_count + found.stack_count &&
            has_function(python, &layout, frame)) {
            *ret_frame = (struct seep_held_frame){frame, code, i};
            return true;
        }
    }
    return false;
}

bool seep_held_frame_in_object(struct seep_held_python *python, uint64_t object,
                               const struct seep_held_type *type,
                               uint64_t address,
                               struct seep_held_frame *ret_frame)
{
    uint64_t code;
    uint64_t locals;

    if (python->minor >= 11) {
        return seep_held_frame_at(python, address, object, ret_frame);
    }
    /* The last word of the basic size is the first local. */
    if (type->species != SEEP_HELD_IS_FRAME) {
        return false;
    }
    locals = object + type->basic_bytes - 8;
    code = seep_held_word(python->memory, object + 32);
    if (address < locals || !is_code(python, code)) {
        return false;
    }
    *ret_frame = (struct seep_held_frame){object, code, (address - locals) / 8};
    return true;
}

/* Where operands begin, and where they end (0 while it runs and when it has) or
 * how many there are (less than 0 while it runs); with locals from 3.11 on. */
#define FRAME_OPERANDS_AT 64U /* to 3.10 */
#define FRAME_TOP_AT 72U      /* to 3.9 */
#define FRAME_RUNS_AT 116U    /* to 3.9 */
#define FRAME_DEPTH_AT 80U    /* 3.10 */
#define FRAME_COUNT_AT 64U    /* 3.11 to 3.13 */
#define FRAME_END_AT 64U      /* 3.14 on: where they end */

bool seep_held_frame_runs(struct seep_held_python *python, uint64_t object)
{
    return python->minor == 10
               ? seep_held_int(python->memory, object + FRAME_DEPTH_AT) < 0
               : python->minor < 10 &&
                     (seep_held_int(python->memory, object + FRAME_RUNS_AT) &
                      0xff) != 0;
}

/* 3.14 on: an end is written at each call that may last, and is from the last
 * one while the frame runs. */
static bool is_below_end(struct seep_held_python *python,
                         const struct seep_held_frame *frame, uint64_t address)
{
    uint64_t end =
        seep_held_word(python->memory, frame->address + FRAME_END_AT);
    struct seep_held_code code;
    uint64_t operands;

    if (!seep_held_code_read(python, frame->code, &code) ||
        frame->index < code.local_count) {
        return true;
    }
    operands = address - 8 * (frame->index - code.local_count);
    return address < end || end < operands ||
           end > operands + 8 * code.stack_count;
}

bool seep_held_frame_is_used(struct seep_held_python *python,
                             const struct seep_held_frame *frame,
                             uint64_t address)
{
    struct seep_held_memory *memory = python->memory;
    uint64_t at = frame->address;
    uint64_t operands;
    uint64_t top;
    int32_t count;

    if (python->minor >= 14) {
        return is_below_end(python, frame, address);
    }
    if (python->minor >= 11) {
        count = seep_held_int(memory, at + FRAME_COUNT_AT);
        return count < 0 || frame->index < (uint64_t)count;
    }
    operands = seep_held_word(memory, at + FRAME_OPERANDS_AT);
    if (address < operands) {
        return true;
    }
    if (python->minor == 10) {
        count = seep_held_int(memory, at + FRAME_DEPTH_AT);
        return count < 0 || address < operands + 8 * (uint64_t)count;
    }
    top = seep_held_word(memory, at + FRAME_TOP_AT);
    return top != 0 ? address < top : seep_held_frame_runs(python, at);
}
