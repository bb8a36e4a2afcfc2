/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is read of code objects, and whether that and the frames are what the
 * offsets say; then Python's frames (chain.c) and the native ones as one stack.
 *
 * Invariant: nothing is read of an object whose type is not as it must be.
 */
#include "capture/python/interpreter.h"

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

SEEP_INLINE bool find_characters(const struct seep_python *python,
                                 struct seep_python_memory *memory,
                                 uintptr_t text,
                                 struct characters *ret_characters)
{
    int32_t state;
    int64_t length;
    unsigned int kind;
    bool ascii;
    bool compact;
    int header = python->offsets.text_header;

    if (!seep_python_is_a(memory, text, python->text_type) ||
        !seep_python_read_int(memory, text + SEEP_PYTHON_TEXT_STATE, &state) ||
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
SEEP_INLINE bool has_ended(const struct seep_python *python,
                           const struct seep_python_memory *memory)
{
    return memory->may_end && python->is_finalizing() != 0;
}

/* Of the name that is recorded: the qualified one where there is one. */
SEEP_INLINE int name_offset(const struct seep_python_offsets *at)
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
SEEP_INLINE bool mark_text(const struct seep_python *python,
                           struct seep_python_memory *memory, uintptr_t text,
                           uint64_t *ret_mark)
{
    uint64_t end[2] = {0, 0};
    struct characters from;
    size_t bytes;

    if (!find_characters(python, memory, text, &from)) {
        return false;
    }
    bytes = from.count * from.width;
    if (!(bytes >= sizeof(end)
              ? seep_python_read(memory, end, from.at + bytes - sizeof(end),
                                 sizeof(end))
              : seep_python_read(memory, end, from.at, bytes))) {
        return false;
    }
    *ret_mark = text + end[0] * UINT64_C(0xc2b2ae3d27d4eb4f) +
                end[1] * UINT64_C(0x165667b19e3779f9) + bytes;
    return true;
}

SEEP_INLINE bool identify(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          struct seep_python_identity *ret_identity)
{
    const struct seep_python_offsets *at = &python->offsets;
    struct seep_python_identity it = {.code = code};
    uintptr_t filename;
    uintptr_t name;
    uintptr_t data;
    int32_t first_line;

    if (has_ended(python, memory) ||
        !seep_python_read_word(memory, code + (uintptr_t)at->code_filename,
                               &filename) ||
        !seep_python_read_word(memory, code + (uintptr_t)name_offset(at),
                               &name) ||
        !seep_python_read_word(memory, code + (uintptr_t)at->code_lines,
                               &it.lines) ||
        !seep_python_read_int(memory, code + (uintptr_t)at->code_first_line,
                              &first_line) ||
        !seep_python_is_a(memory, it.lines, python->bytes_type) ||
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
    if (it.lines_bytes >= sizeof(it.lines_head)) {
        if (!seep_python_read_word(memory, data, &it.lines_head) ||
            !seep_python_read_word(
                memory, data + it.lines_bytes - sizeof(it.lines_tail),
                &it.lines_tail)) {
            return false;
        }
    } else if (!seep_python_read(memory, &it.lines_head, data,
                                 it.lines_bytes)) {
        return false;
    } else {
        it.lines_tail = it.lines_head;
    }
    it.first_line = first_line;
    it.hash = seep_python_identity_hash(&it);
    *ret_identity = it;
    return true;
}

bool seep_python_identify(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          struct seep_python_identity *ret_identity)
{
    /* Mostly, and then without a question at each load. */
    if (seep_likely(memory->pages == NULL)) {
        struct seep_python_memory plain = {.may_end = memory->may_end};

        return identify(python, &plain, code, ret_identity);
    }
    return identify(python, memory, code, ret_identity);
}

/*
 * Words as they were, without a question what they mean. A part of eight bytes
 * that ends where a string does begins in its object, however short it is.
 */

static inline __attribute__((no_sanitize("address"))) uint64_t
word_at(uintptr_t address)
{
#ifdef SEEP_PYTHON_COPY_BYTEWISE
    struct seep_python_memory plain = {0};
    uint64_t word = 0;

    seep_python_read(&plain, &word, address, sizeof(word));
#else
    uint64_t word;

    memcpy(&word, (const void *)address, sizeof(word));
#endif
    return word;
}

static inline void read_code(const struct seep_python_offsets *at,
                             uintptr_t code, uint64_t words[5])
{
    words[0] = word_at(code + SEEP_PYTHON_OBJECT_TYPE);
    words[1] = word_at(code + (uintptr_t)at->code_filename);
    words[2] = word_at(code + (uintptr_t)name_offset(at));
    words[3] = word_at(code + (uintptr_t)at->code_lines);
    words[4] = word_at(code + (uintptr_t)at->code_first_line);
}

static inline void read_objects(const uint64_t code[5], uint64_t words[8])
{
    for (size_t i = 0; i < 3; i++) {
        words[2 * i] = word_at(code[1 + i] + SEEP_PYTHON_OBJECT_TYPE);
        words[2 * i + 1] = word_at(code[1 + i] + SEEP_PYTHON_OBJECT_SIZE);
    }
    words[6] = word_at(code[1] + SEEP_PYTHON_TEXT_STATE);
    words[7] = word_at(code[2] + SEEP_PYTHON_TEXT_STATE);
}

static inline void read_parts(const uintptr_t places[6], uint64_t words[6])
{
    for (size_t i = 0; i < 6; i++) {
        words[i] = word_at(places[i]);
    }
}

static inline bool are_same(const uint64_t *a, const uint64_t *b, size_t count)
{
    uint64_t other = 0;

    for (size_t i = 0; i < count; i++) {
        other |= a[i] ^ b[i];
    }
    return other == 0;
}

bool seep_python_is_proved(const struct seep_python *python, uintptr_t code,
                           const struct seep_python_proof *proof)
{
    uint64_t words[8];

    if (proof->python != python) {
        return false;
    }
    read_code(&python->offsets, code, words);
    if (!are_same(words, proof->code, 5)) {
        return false;
    }
    read_objects(proof->code, words);
    if (!are_same(words, proof->objects, 8)) {
        return false;
    }
    read_parts(proof->places, words);
    return are_same(words, proof->parts, 6);
}

void seep_python_prove(const struct seep_python *python, uintptr_t code,
                       const struct seep_python_identity *identity,
                       struct seep_python_proof *ret_proof)
{
    struct seep_python_memory plain = {0};
    uintptr_t lines = identity->lines + SEEP_PYTHON_BYTES_DATA;
    uintptr_t end = lines + identity->lines_bytes - sizeof(uint64_t);

    ret_proof->python = NULL;
    read_code(&python->offsets, code, ret_proof->code);
    if (ret_proof->code[0] != python->code_type) {
        return;
    }
    read_objects(ret_proof->code, ret_proof->objects);
    for (size_t i = 0; i < 2; i++) {
        struct characters text;

        if (!find_characters(python, &plain, ret_proof->code[1 + i], &text)) {
            return;
        }
        text.at += text.count * text.width;
        ret_proof->places[2 * i] = text.at - 2 * sizeof(uint64_t);
        ret_proof->places[2 * i + 1] = text.at - sizeof(uint64_t);
    }
    ret_proof->places[4] = lines < end ? lines : end;
    ret_proof->places[5] = end;
    read_parts(ret_proof->places, ret_proof->parts);
    ret_proof->python = python;
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
         !seep_python_is_a(memory, of, python->bytes_type))) {
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

    if (!seep_python_is_a(memory, frame->code, python->code_type) ||
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
        to[i].number = (uint16_t)(merge->taken + i);
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
