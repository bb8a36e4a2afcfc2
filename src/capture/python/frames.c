/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is read of the interpreter: the texts of a code object, the
 * frames of a thread state from the innermost outwards, and whether all that is
 * what the offsets say; then these frames and the native ones as one stack.
 *
 * Invariant: a walk ends, by a limit on all that is passed; a frame is passed
 * only if it is aligned and what is read of it is in range.
 */
#include "capture/python/interpreter.h"

/* Objects. */

/* Is it an object of that type? */
static bool is_a(struct seep_python_memory *memory, uintptr_t object,
                 uintptr_t type)
{
    uintptr_t seen;

    return seep_python_is_plausible(object) &&
           seep_python_read_word(memory, object + SEEP_PYTHON_OBJECT_TYPE,
                                 &seen) &&
           seen == type;
}

static bool read_int(struct seep_python_memory *memory, uintptr_t from,
                     int32_t *ret_int)
{
    return seep_python_read(memory, ret_int, from, sizeof(*ret_int));
}

/*
 * Strings of a code object as UTF-8.
 *
 * Invariant: a string is read only if it is a compact one of a sane length,
 * and character by character from one small window.
 */

#define TEXT_MAX (INT64_C(1) << 20)
#define CODE_MAX (INT64_C(1) << 28)
#define LINES_MAX (INT64_C(1) << 24)
#define WINDOW_BYTES 64U

/* The characters of a string, by a window that moves on with what is read. */
struct characters {
    struct seep_python_memory *memory;
    uintptr_t at;
    size_t count;
    size_t width; /* 1, 2 or 4 bytes each */
    size_t first; /* in the window; SIZE_MAX: nothing is */
    uint8_t window[WINDOW_BYTES];
};

static bool find_characters(const struct seep_python *python,
                            struct seep_python_memory *memory, uintptr_t text,
                            struct characters *ret_characters)
{
    int32_t state;
    int64_t length;
    unsigned int kind;
    bool ascii;
    bool compact;
    int header = python->offsets.text_header;

    if (!is_a(memory, text, python->text_type) ||
        !read_int(memory, text + SEEP_PYTHON_TEXT_STATE, &state) ||
        !seep_python_read(memory, &length, text + SEEP_PYTHON_OBJECT_SIZE,
                          sizeof(length))) {
        return false;
    }
    kind = (unsigned int)state >> 2 & 7;
    compact = ((unsigned int)state >> 5 & 1) != 0;
    ascii = ((unsigned int)state >> 6 & 1) != 0;
    if (!compact || length < 0 || length > TEXT_MAX ||
        (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1)) {
        return false;
    }
    /* Behind a PyASCIIObject, or a PyCompactUnicodeObject: to 3.11 it has
     * wstr_length, utf8_length and utf8 more, later the last two. */
    header += ascii ? 0 : (python->offsets.minor < 12 ? 24 : 16);
    ret_characters->memory = memory;
    ret_characters->first = SIZE_MAX;
    ret_characters->at = text + (uintptr_t)header;
    ret_characters->count = (size_t)length;
    ret_characters->width = kind;
    return true;
}

/* @return bytes written, at most 4 */
static size_t put_utf8(uint32_t c, char *to)
{
    size_t bytes;

    if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) {
        c = 0xfffd; /* file names hold what was no UTF-8 as lone surrogates */
    }
    bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (c & 63));
        c >>= 6;
    }
    to[0] = (char)(bytes == 1 ? c : 0xff00U >> bytes | c);
    return bytes;
}

static bool get_character(struct characters *from, size_t index,
                          uint32_t *ret_c)
{
    size_t per_window = WINDOW_BYTES / from->width;
    uint32_t c = 0;

    if (from->first == SIZE_MAX || index - from->first >= per_window) {
        size_t left = from->count - index;

        if (!seep_python_read(
                from->memory, from->window, from->at + index * from->width,
                (left < per_window ? left : per_window) * from->width)) {
            return false;
        }
        from->first = index;
    }
    memcpy(&c, from->window + (index - from->first) * from->width, from->width);
    *ret_c = c;
    return true;
}

/* As many characters as fit, from @first on. */
static bool copy_from(struct characters *from, size_t first, char *buffer,
                      size_t size, size_t *ret_bytes)
{
    size_t bytes = 0;

    for (size_t i = first; i < from->count; i++) {
        char utf8[4];
        uint32_t c;
        size_t more;

        if (!get_character(from, i, &c)) {
            return false;
        }
        more = put_utf8(c, utf8);
        if (more >= size - bytes) {
            break;
        }
        memcpy(buffer + bytes, utf8, more);
        bytes += more;
    }
    buffer[bytes] = '\0';
    *ret_bytes = bytes;
    return true;
}

/* Of a path that is too long its end: it tells files apart. */
static bool copy_end(struct characters *from, char *buffer, size_t size,
                     size_t *ret_bytes)
{
    size_t first = from->count >= size ? from->count - (size - 1) : 0;
    size_t bytes = 0;
    char utf8[4];
    uint32_t c;

    for (size_t i = first; i < from->count; i++) {
        if (!get_character(from, i, &c)) {
            return false;
        }
        bytes += put_utf8(c, utf8);
    }
    for (; bytes >= size; first++) {
        if (!get_character(from, first, &c)) {
            return false;
        }
        bytes -= put_utf8(c, utf8);
    }
    return copy_from(from, first, buffer, size, ret_bytes);
}

/* What a frame refers to stays, but not all that this refers to in turn: from
 * 3.13 on the end takes names from under the code that has them, long after it
 * has begun. */
static bool has_ended(const struct seep_python *python,
                      const struct seep_python_memory *memory)
{
    return memory->may_end && python->is_finalizing() != 0;
}

/* Of the name that is recorded: the qualified one where there is one. */
static int name_offset(const struct seep_python_offsets *at)
{
    return at->code_qualname != SEEP_PYTHON_OFFSET_NONE ? at->code_qualname
                                                        : at->code_name;
}

bool seep_python_text(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t code,
                      enum seep_python_text which, char *buffer, size_t size,
                      size_t *ret_bytes)
{
    int offset = python->offsets.code_filename;
    struct characters from;
    uintptr_t text;

    if (which == SEEP_PYTHON_NAME) {
        offset = name_offset(&python->offsets);
    }
    if (has_ended(python, memory) ||
        !seep_python_read_word(memory, code + (uintptr_t)offset, &text) ||
        !find_characters(python, memory, text, &from)) {
        return false;
    }
    return which == SEEP_PYTHON_FILE
               ? copy_end(&from, buffer, size, ret_bytes)
               : copy_from(&from, 0, buffer, size, ret_bytes);
}

/* Texts that are made in a loop get the same address again, too, and differ
 * in a number, which most have near their end. */
static bool mark_text(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t text,
                      uint64_t *ret_mark)
{
    uint64_t end[2] = {0, 0};
    struct characters from;
    size_t bytes;
    size_t part;

    if (!find_characters(python, memory, text, &from)) {
        return false;
    }
    bytes = from.count * from.width;
    part = bytes < sizeof(end) ? bytes : sizeof(end);
    if (!seep_python_read(memory, end, from.at + bytes - part, part)) {
        return false;
    }
    *ret_mark = text + end[0] * UINT64_C(0xc2b2ae3d27d4eb4f) +
                end[1] * UINT64_C(0x165667b19e3779f9) + bytes;
    return true;
}

bool seep_python_identify(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          struct seep_python_identity *ret_identity)
{
    const struct seep_python_offsets *at = &python->offsets;
    struct seep_python_identity it = {.code = code};
    uintptr_t filename;
    uintptr_t name;
    uintptr_t data;
    size_t part;
    int32_t first_line;

    if (has_ended(python, memory) ||
        !seep_python_read_word(memory, code + (uintptr_t)at->code_filename,
                               &filename) ||
        !seep_python_read_word(memory, code + (uintptr_t)name_offset(at),
                               &name) ||
        !seep_python_read_word(memory, code + (uintptr_t)at->code_lines,
                               &it.lines) ||
        !read_int(memory, code + (uintptr_t)at->code_first_line, &first_line) ||
        !is_a(memory, it.lines, python->bytes_type) ||
        !seep_python_read_word(memory, it.lines + SEEP_PYTHON_OBJECT_SIZE,
                               &it.lines_bytes) ||
        it.lines_bytes > (uintptr_t)LINES_MAX ||
        !mark_text(python, memory, filename, &it.filename) ||
        !mark_text(python, memory, name, &it.name)) {
        return false;
    }
    /* Code that is made and dies in a loop gets the same addresses again, for
     * tables of the same length. */
    data = it.lines + SEEP_PYTHON_BYTES_DATA;
    part = it.lines_bytes < sizeof(it.lines_head) ? it.lines_bytes
                                                  : sizeof(it.lines_head);
    if (!seep_python_read(memory, &it.lines_head, data, part) ||
        !seep_python_read(memory, &it.lines_tail, data + it.lines_bytes - part,
                          part)) {
        return false;
    }
    it.first_line = first_line;
    it.hash = seep_python_identity_hash(&it);
    *ret_identity = it;
    return true;
}

/* Bytes of the instructions of a code object. */
static bool code_bytes_of(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          int64_t *ret_bytes)
{
    uintptr_t of = code;
    int64_t bytes;

    if (python->offsets.minor < 11 &&
        (!seep_python_read_word(
             memory, code + (uintptr_t)python->offsets.code_instructions,
             &of) ||
         !is_a(memory, of, python->bytes_type))) {
        return false;
    }
    if (!seep_python_read(memory, &bytes, of + SEEP_PYTHON_OBJECT_SIZE,
                          sizeof(bytes)) ||
        bytes < 0 || bytes > CODE_MAX) {
        return false;
    }
    *ret_bytes = python->offsets.minor < 11 ? bytes : 2 * bytes;
    return true;
}

/* The frames of a thread state. */

#define INSTRUCTION_MAX (INT64_C(1) << 28)
#define CALLS_APART_MAX (UINT64_C(64) << 20)
/* Of a frame's owner from 3.12 on; 3.14 has another name for the first. */
#define OWNED_BY_C 3
#define OWNER_MAX 4

struct walk {
    const struct seep_python *python;
    struct seep_python_memory *memory;
    struct seep_python_chain *chain;
    uintptr_t frame;
    /* 3.11: the call of the evaluator that runs the frame, and the next one
     * out, with the frame that it begins at. */
    uintptr_t call;
    uintptr_t outer_call;
    uintptr_t outer_frame;
    size_t marked; /* frames before it have their marker */
};

static bool read_word(struct walk *walk, uintptr_t base, int offset,
                      uintptr_t *ret_word)
{
    return seep_python_read_word(walk->memory, base + (uintptr_t)offset,
                                 ret_word);
}

/* The call outside of walk->call. The outermost _PyCFrame is none: it is part
 * of the thread state, away from the stack. */
static bool find_outer_call(struct walk *walk)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    uintptr_t previous;

    walk->outer_call = 0;
    walk->outer_frame = 0;
    if (!read_word(walk, walk->call, at->cframe_previous, &previous)) {
        return false;
    }
    if (previous <= walk->call || previous - walk->call > CALLS_APART_MAX ||
        !seep_python_is_plausible(previous)) {
        return true;
    }
    walk->outer_call = previous;
    return read_word(walk, previous, at->cframe_current, &walk->outer_frame);
}

static bool begin(struct walk *walk, uintptr_t state)
{
    const struct seep_python_offsets *at = &walk->python->offsets;

    if (!seep_python_is_plausible(state) ||
        !read_word(walk, state, at->thread_frame, &walk->frame)) {
        return false;
    }
    if (at->cframe_current == SEEP_PYTHON_OFFSET_NONE) {
        return true;
    }
    walk->call = walk->frame;
    return seep_python_is_plausible(walk->call) &&
           read_word(walk, walk->call, at->cframe_current, &walk->frame) &&
           (at->minor != 11 || find_outer_call(walk));
}

/* All frames since the last marker were run by one call. */
static void mark(struct walk *walk, uintptr_t marker)
{
    while (walk->marked < walk->chain->count) {
        walk->chain->frames[walk->marked++].marker = marker;
    }
}

static bool find_instruction(struct walk *walk, uintptr_t code,
                             int32_t *ret_instruction)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    uintptr_t place;
    int64_t offset;
    int32_t last;

    if (at->minor >= 11) {
        if (!read_word(walk, walk->frame, at->frame_instruction, &place)) {
            return false;
        }
        offset = (int64_t)(place - code) - at->code_instructions;
    } else {
        if (!read_int(walk->memory,
                      walk->frame + (uintptr_t)at->frame_instruction, &last)) {
            return false;
        }
        offset = at->minor == 10 ? 2 * (int64_t)last : last;
    }
    *ret_instruction = (int32_t)offset;
    return offset >= -2 && offset < INSTRUCTION_MAX;
}

/* 3.13 and later: the frame that tidies up behind __init__ has a code object
 * of its own inside the interpreter, without a file. */
static bool is_cleanup(struct walk *walk, uintptr_t code, bool *ret_broken)
{
    const struct seep_python *python = walk->python;
    uintptr_t filename;
    uintptr_t name;

    if (python->offsets.minor < 13 || code < python->start ||
        code >= python->end) {
        return false;
    }
    *ret_broken =
        !read_word(walk, code, python->offsets.code_filename, &filename) ||
        !read_word(walk, code, python->offsets.code_name, &name);
    return !*ret_broken && filename == name;
}

static bool take_frame(struct walk *walk)
{
    const struct seep_python *python = walk->python;
    struct seep_python_chain *chain = walk->chain;
    struct seep_python_frame frame = {0};
    bool broken = false;

    if (!read_word(walk, walk->frame, python->offsets.frame_code,
                   &frame.code)) {
        return false;
    }
    if (python->offsets.minor >= 14) {
        frame.code &= ~(uintptr_t)3; /* the tag of a _PyStackRef */
    }
    if ((!walk->memory->frames_only &&
         !is_a(walk->memory, frame.code, python->code_type)) ||
        !find_instruction(walk, frame.code, &frame.instruction)) {
        return false;
    }
    if (is_cleanup(walk, frame.code, &broken) || broken) {
        return !broken;
    }
    if (chain->count == chain->capacity) {
        /* The last is the outermost that was come to, however many are left
         * out before it: it may be the user's. */
        chain->truncated = true;
        frame.marker = chain->frames[chain->count - 1].marker;
        chain->frames[chain->count - 1] = frame;
        return true;
    }
    chain->frames[chain->count++] = frame;
    return true;
}

/* To the frame that called this one. */
static bool step(struct walk *walk, uintptr_t *ret_back)
{
    const struct seep_python_offsets *at = &walk->python->offsets;
    uint8_t owner = 0;

    if (!seep_python_is_plausible(walk->frame) ||
        !read_word(walk, walk->frame, at->frame_back, ret_back) ||
        (at->frame_owner != SEEP_PYTHON_OFFSET_NONE &&
         !seep_python_read(walk->memory, &owner,
                           walk->frame + (uintptr_t)at->frame_owner, 1))) {
        return false;
    }
    if (owner >= OWNED_BY_C) {
        mark(walk, walk->frame);
        return at->minor >= 12 && owner <= OWNER_MAX;
    }
    if (at->minor == 11 && walk->frame == walk->outer_frame) {
        mark(walk, walk->call);
        walk->call = walk->outer_call;
        if (!find_outer_call(walk)) {
            return false;
        }
    }
    return take_frame(walk);
}

bool seep_python_walk(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t state,
                      struct seep_python_chain *chain)
{
    struct walk walk = {.python = python, .memory = memory, .chain = chain};
    bool fine;

    chain->count = 0;
    chain->truncated = false;
    chain->whole = false;
    fine = begin(&walk, state);
    for (size_t hops = 0; fine && walk.frame != 0; hops++) {
        uintptr_t back = 0;

        if (hops == 4 * chain->capacity ||
            (chain->truncated && memory->pages != NULL &&
             (python->offsets.minor < 11 || walk.marked == chain->count))) {
            chain->truncated = true;
            break;
        }
        fine = step(&walk, &back);
        walk.frame = back;
    }
    if (!fine) {
        chain->count = 0;
        return false;
    }
    if (python->offsets.minor == 11) {
        mark(&walk, walk.call);
    }
    chain->whole = walk.marked == chain->count && walk.outer_frame == 0;
    return true;
}

bool seep_python_chain_is_code(const struct seep_python *python,
                               struct seep_python_memory *memory,
                               const struct seep_python_chain *chain)
{
    for (size_t i = 0; i < chain->count; i++) {
        if (!is_a(memory, chain->frames[i].code, python->code_type)) {
            return false;
        }
    }
    return true;
}

/*
 * Checks. Types describe part of themselves: where their members lie, how large
 * their objects are. Frames are checked down to their names and line tables.
 *
 * Invariant: to be asked with pages, so that a wrong answer is never a crash.
 */

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

    if (!is_a(memory, frame->code, python->code_type) ||
        !code_bytes_of(python, memory, frame->code, &code_bytes) ||
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

/*
 * Native frames and Python's into one stack.
 *
 * From 3.11 on by address: the marker of a Python frame lies in the C frame of
 * the call that runs it. Before, each call runs one frame: they are paired
 * from the innermost by the evaluator's code.
 *
 * Invariant: the order of either kind is kept, and every Python frame is in the
 * merged stack unless that is full.
 */

struct merge {
    const struct seep_native_stack *native;
    const struct seep_python_chain *chain;
    struct seep_merged_frame *merged;
    size_t capacity;
    size_t count;
    size_t taken; /* Python frames that are in */
    bool full;
};

/* Room for as many more as that, of @wanted. */
static size_t room(struct merge *merge, size_t wanted)
{
    size_t left = merge->capacity - merge->count;

    if (wanted > left) {
        merge->full = true;
        return left;
    }
    return wanted;
}

static void put_native(struct merge *merge, size_t begin, size_t end)
{
    const uintptr_t *pcs = merge->native->pcs + begin;
    struct seep_merged_frame *to = merge->merged + merge->count;
    size_t count = room(merge, end - begin);

    for (size_t i = 0; i < count; i++) {
        to[i].address = pcs[i];
        to[i].instruction = -1;
        to[i].is_python = false;
    }
    merge->count += count;
}

/* The Python frames before @end that are not in yet. */
static void put_python(struct merge *merge, size_t end)
{
    const struct seep_python_frame *from = merge->chain->frames + merge->taken;
    struct seep_merged_frame *to = merge->merged + merge->count;
    size_t count = room(merge, end - merge->taken);

    for (size_t i = 0; i < count; i++) {
        to[i].address = from[i].code;
        to[i].instruction = from[i].instruction;
        to[i].is_python = true;
    }
    merge->count += count;
    merge->taken = end;
}

/* Behind the last frame that the C frame at [low, high) runs; the number of
 * those that are in, if it runs none. */
static size_t end_of_call(const struct merge *merge, uintptr_t low,
                          uintptr_t high)
{
    const struct seep_python_frame *frames = merge->chain->frames;
    size_t count = merge->chain->count;
    size_t at = merge->taken;
    size_t end;

    /* Calls lie the higher the farther out they are: those below were missed,
     * and there is nothing for this one behind one above it. */
    while (at < count && frames[at].marker < low) {
        at++;
    }
    for (end = at;
         end < count && frames[end].marker >= low && frames[end].marker < high;
         end++) {
    }
    return end > at ? end : merge->taken;
}

/* The lowest marker of the frames that are not in yet. */
static uintptr_t next_marker(const struct merge *merge)
{
    return merge->taken < merge->chain->count
               ? merge->chain->frames[merge->taken].marker
               : UINTPTR_MAX;
}

static void merge_by_address(struct merge *merge)
{
    const uintptr_t *sps = merge->native->sps;
    size_t last = merge->native->count;
    uintptr_t marker = next_marker(merge);
    size_t begin = 0; /* of the native frames that are not in yet */

    /* How far the last one reaches nobody knows: it runs none. */
    for (size_t i = 0; i + 1 < last; i++) {
        size_t end;

        if (marker >= sps[i + 1]) {
            continue;
        }
        end = end_of_call(merge, sps[i], sps[i + 1]);
        if (end > merge->taken) {
            put_native(merge, begin, i);
            put_python(merge, end);
            begin = i + 1;
            marker = next_marker(merge);
        }
    }
    put_native(merge, begin, last);
    /* Of calls that a cut stack does not reach. */
    put_python(merge, merge->chain->count);
}

static bool is_evaluator(const struct seep_python *python, uintptr_t pc)
{
    return pc - python->evaluate_low <
           python->evaluate_high - python->evaluate_low;
}

static void merge_by_code(struct merge *merge, const struct seep_python *python)
{
    const uintptr_t *pcs = merge->native->pcs;
    size_t last = merge->native->count;
    size_t outermost = last;
    size_t begin = 0; /* of the native frames that are not in yet */

    while (outermost > 0 && !is_evaluator(python, pcs[outermost - 1])) {
        outermost--;
    }
    for (size_t i = 0; i < outermost; i++) {
        if (!is_evaluator(python, pcs[i]) ||
            merge->taken == merge->chain->count) {
            continue;
        }
        put_native(merge, begin, i);
        begin = i + 1;
        /* An exception that is thrown into a delegating generator links frames
         * that no call runs: what is left is the outermost one's. */
        put_python(merge,
                   i + 1 == outermost ? merge->chain->count : merge->taken + 1);
    }
    put_native(merge, begin, last);
    put_python(merge, merge->chain->count);
}

size_t seep_python_merge(const struct seep_python *python,
                         const struct seep_native_stack *native,
                         const struct seep_python_chain *chain,
                         struct seep_merged_frame *merged, size_t capacity,
                         bool *ret_full)
{
    struct merge merge = {.native = native,
                          .chain = chain,
                          .merged = merged,
                          .capacity = capacity};

    if (python == NULL) {
        put_native(&merge, 0, native->count);
    } else if (python->offsets.minor >= 11) {
        merge_by_address(&merge);
    } else {
        merge_by_code(&merge, python);
    }
    *ret_full = merge.full;
    return merge.count;
}
