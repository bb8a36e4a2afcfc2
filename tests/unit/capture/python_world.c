/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An interpreter that is made up; see python_world.h. */
#include "python_world.h"

#include <pthread.h>
#include <string.h>

#define ARENA_BYTES (1U << 16)
#define C_FRAME_BYTES 256U
#define CODE_UNITS 20U
#define EVALUATE UINT64_C(0x7e0000400000)
#define OTHER_CODE UINT64_C(0x7e0000500000)

struct python_world world;

static uint8_t arena[ARENA_BYTES] __attribute__((aligned(4096)));
static size_t arena_used;
static uint64_t c_stack[WORLD_NATIVE_MAX * C_FRAME_BYTES / 8];

/* Which call of the evaluator runs the frame. */
static const unsigned int call_of[WORLD_FRAMES] = {0, 0, 1, 2, 2, 2};

static void *current_state(void)
{
    return (void *)world.now;
}

static void *own_state(void)
{
    return (void *)world.own;
}

static int is_finalizing(void)
{
    if (world.finalizing_after > 0 && --world.finalizing_after == 0) {
        world.finalizing = true;
        return false;
    }
    return world.finalizing;
}

static int is_initialized(void)
{
    return world.initialized;
}

uint64_t *python_world_word(uintptr_t address)
{
    return (uint64_t *)address;
}

static uintptr_t take(size_t bytes)
{
    uintptr_t at = (uintptr_t)&arena[arena_used];

    arena_used += (bytes + 31) & ~(size_t)15;
    return at;
}

static void put(uintptr_t at, int offset, uint64_t word)
{
    *python_world_word(at + (uintptr_t)offset) = word;
}

static void put_int(uintptr_t at, int offset, int32_t number)
{
    memcpy((void *)(at + (uintptr_t)offset), &number, sizeof(number));
}

static uintptr_t make_bytes(const void *data, size_t bytes)
{
    uintptr_t at = take(33 + bytes);

    put(at, SEEP_PYTHON_OBJECT_TYPE, world.python.bytes_type);
    put(at, SEEP_PYTHON_OBJECT_SIZE, bytes);
    memcpy((void *)(at + SEEP_PYTHON_BYTES_DATA), data, bytes);
    ((char *)at)[SEEP_PYTHON_BYTES_DATA + bytes] = '\0';
    return at;
}

/* A str of characters of one width; @ascii ones have a shorter header. */
static uintptr_t make_text(const void *data, size_t count, unsigned int width,
                           bool ascii, unsigned int minor)
{
    int header = minor < 12 ? 48 : 40;
    uintptr_t at;

    header += ascii ? 0 : minor < 12 ? 24 : 16;
    at = take((size_t)header + (count + 1) * width);
    put(at, SEEP_PYTHON_OBJECT_TYPE, world.python.text_type);
    put(at, SEEP_PYTHON_OBJECT_SIZE, count);
    put_int(at, SEEP_PYTHON_TEXT_STATE,
            (int32_t)(1U | width << 2 | 1U << 5 | (ascii ? 1U << 6 : 0)));
    memcpy((void *)(at + (uintptr_t)header), data, count * width);
    return at;
}

const char *python_world_name(unsigned int frame)
{
    static const char *const names[WORLD_FRAMES] = {
        "keep", "<lambda>", "Cache.put", "handle", "serve", "<module>"};

    return names[frame];
}

/* Half of the code is of the first line, half of one @delta below it. */
static uintptr_t make_lines(unsigned int minor, unsigned int delta)
{
    uint8_t table[16];
    size_t bytes = 0;
    uint8_t half = CODE_UNITS;

    if (minor >= 11) {
        table[bytes++] = (uint8_t)(0x80 | 10 << 3 | 7); /* 8 units, line + 0 */
        bytes += 2;
        table[bytes++] = (uint8_t)(0x80 | 10 << 3 | 1); /* 2 units more */
        bytes += 2;
        table[bytes++] = (uint8_t)(0x80 | 13 << 3 | 7);
        table[bytes++] = (uint8_t)(delta << 1);
        table[bytes++] = (uint8_t)(0x80 | 15 << 3 | 1); /* without a line */
    } else if (minor == 10) {
        const uint8_t pairs[] = {half, 0, half - 4, (uint8_t)delta, 4, 0x80};

        memcpy(table, pairs, bytes = sizeof(pairs));
    } else {
        const uint8_t pairs[] = {0, 0, half, (uint8_t)delta};

        memcpy(table, pairs, bytes = sizeof(pairs));
    }
    return make_bytes(table, bytes);
}

int python_world_line(unsigned int frame)
{
    return WORLD_FIRST_LINE + (frame % 2 != 0 ? 1 + (int)frame : 0);
}

static int instruction_of(unsigned int frame)
{
    return frame % 2 != 0 ? CODE_UNITS + 4 : 8;
}

static uintptr_t make_code(unsigned int frame)
{
    const struct seep_python_offsets *o = &world.python.offsets;
    const char *name = python_world_name(frame);
    static const char latin[] = "/srv/w\xf6rk/serve.py";
    uint8_t instructions[2 * CODE_UNITS] = {0};
    uintptr_t code = take(sizeof(instructions) + 256);
    uintptr_t text = make_text(name, strlen(name), 1, true, o->minor);

    put(code, SEEP_PYTHON_OBJECT_TYPE, world.python.code_type);
    put(code, SEEP_PYTHON_OBJECT_SIZE, CODE_UNITS);
    put(code, o->code_filename,
        make_text(latin, sizeof(latin) - 1, 1, false, o->minor));
    put(code, o->code_name, text);
    if (o->minor >= 11) {
        put(code, o->code_qualname, text);
    } else {
        put(code, o->code_instructions,
            make_bytes(instructions, sizeof(instructions)));
    }
    put_int(code, o->code_first_line, WORLD_FIRST_LINE);
    put(code, o->code_lines, make_lines(o->minor, 1 + frame));
    return code;
}

/* From 3.15 on a frame of C's stands behind the outermost call, in the thread
 * state. */
static uintptr_t make_base(void)
{
    const struct seep_python_offsets *o = &world.python.offsets;
    uintptr_t base = world.state + 240;

    put(base, o->frame_back, 0);
    put(base, o->frame_code, 0x7e0000);
    ((uint8_t *)base)[o->frame_owner] = 3;
    return base;
}

/* The C frame of the @call-th call: behind the leaf, with one in between. */
static uintptr_t c_frame(unsigned int call)
{
    return (uintptr_t)c_stack + (2 * (uintptr_t)call + 1) * C_FRAME_BYTES;
}

static void make_frame(unsigned int i)
{
    const struct seep_python_offsets *o = &world.python.offsets;
    uintptr_t at = world.frames[i];
    uintptr_t back = i + 1 < WORLD_FRAMES ? world.frames[i + 1] : 0;
    uintptr_t code = world.codes[i] = make_code(i);
    int instruction = instruction_of(i);

    put(at, o->frame_code, o->minor >= 14 ? code | 1 : code);
    if (o->minor >= 12 && (back == 0 || call_of[i] != call_of[i + 1])) {
        uintptr_t shim = c_frame(call_of[i]) + 64;

        put(shim, o->frame_back,
            back == 0 && o->minor >= 15 ? make_base() : back);
        put(shim, o->frame_code, 0x7e0000);
        ((uint8_t *)shim)[o->frame_owner] = 3;
        back = shim;
    }
    put(at, o->frame_back, back);
    if (o->minor >= 11) {
        put(at, o->frame_instruction,
            code + (uintptr_t)(o->code_instructions + instruction));
        ((uint8_t *)at)[o->frame_owner] = i == 1;
    } else {
        put_int(at, o->frame_instruction,
                o->minor == 10 ? instruction / 2 : instruction);
    }
}

/* 3.11: a _PyCFrame in each call, and the last one in the thread state. */
static uintptr_t make_calls(uintptr_t root)
{
    const struct seep_python_offsets *o = &world.python.offsets;
    uintptr_t outer = root;

    put(root, o->cframe_current, 0);
    put(root, o->cframe_previous, 0);
    for (unsigned int i = WORLD_FRAMES; i-- > 0;) {
        uintptr_t at = c_frame(call_of[i]) + 64;

        if (i > 0 && call_of[i - 1] == call_of[i]) {
            continue;
        }
        put(at, o->cframe_current, world.frames[i]);
        put(at, o->cframe_previous, outer);
        outer = at;
    }
    return outer;
}

static void make_thread(void)
{
    const struct seep_python_offsets *o = &world.python.offsets;
    uintptr_t frame = world.frames[0];

    if (o->minor == 11) {
        frame = make_calls(world.state + 320);
    } else if (o->minor == 12) {
        put(world.state + 320, o->cframe_current, frame);
        put(world.state + 320, o->cframe_previous, 0);
        frame = world.state + 320;
    }
    put(world.state, o->thread_frame, frame);
    put(world.state, o->thread_id, (uintptr_t)pthread_self());
}

static void add_native(uintptr_t pc)
{
    world.pcs[world.native_count] = pc;
    world.sps[world.native_count] =
        (uintptr_t)c_stack + world.native_count * C_FRAME_BYTES;
    world.native_count++;
}

/* Leaf, calls with one frame between each two, the program's start. */
static void make_native(void)
{
    add_native(OTHER_CODE);
    for (unsigned int i = 0; i < WORLD_FRAMES; i++) {
        bool is_new = i > 0 && call_of[i] != call_of[i - 1];

        if (is_new) {
            add_native(OTHER_CODE + i);
        }
        if (world.minor < 11 || i == 0 || is_new) {
            add_native(EVALUATE + 16 + i);
        }
    }
    add_native(OTHER_CODE + 99);
}

static void make_type(uintptr_t type, size_t size_bytes)
{
    put(type, SEEP_PYTHON_TYPE_BASIC_SIZE, size_bytes);
    put(type, SEEP_PYTHON_TYPE_MEMBERS, 0);
}

struct member {
    const char *name;
    int offset;
};

static void make_members(uintptr_t type, const struct member *members,
                         size_t count)
{
    uintptr_t table = take((count + 1) * SEEP_PYTHON_MEMBER_BYTES);

    put(type, SEEP_PYTHON_TYPE_MEMBERS, table);
    for (size_t i = 0; i < count; i++) {
        put(table, 0, (uintptr_t)members[i].name);
        put(table, SEEP_PYTHON_MEMBER_OFFSET, (uint64_t)members[i].offset);
        table += SEEP_PYTHON_MEMBER_BYTES;
    }
    put(table, 0, 0);
}

static void make_types(const struct seep_python_offsets *o)
{
    const struct member code[] = {{"co_argcount", 24},
                                  {"co_filename", o->code_filename},
                                  {"co_name", o->code_name},
                                  {"co_firstlineno", o->code_first_line},
                                  {"co_linetable", o->code_lines},
                                  {"co_qualname", o->code_qualname}};
    const struct member frame[] = {{"f_back", o->frame_back},
                                   {"f_code", o->frame_code}};

    make_type(world.python.code_type,
              o->minor >= 11 ? (size_t)o->code_instructions : 176);
    make_type(world.python.text_type, o->minor < 12 ? 80 : 64);
    make_type(world.python.bytes_type, 33);
    make_type(world.python.frame_type, 0);
    make_members(world.python.code_type, code, 6);
    make_members(world.python.frame_type, frame, 2);
}

size_t python_world_debug_words(unsigned int minor, uint64_t *words)
{
    /* First words of thread_state, interpreter_frame, code_object, pyobject,
     * bytes and unicode, and the number of all, as the headers say. */
    static const unsigned int at[][7] = {{19, 28, 34, 44, 64, 67, 73},
                                         {22, 31, 39, 50, 74, 77, 95},
                                         {22, 39, 47, 58, 86, 89, 111}};
    const unsigned int *group = at[minor - 13];
    const uint64_t thread_to_14[] = {0, 8, 0, 16, 72, 152, 160};
    const uint64_t thread_from_15[] = {0, 8, 0, 16, 72, 80, 88, 96, 176, 184};
    const uint64_t frame[] = {88, 8, 0, 56, 80, minor == 13 ? 70 : 74};
    const uint64_t code[] = {216, 112, 120, 128, 136,
                             68,  0,   0,   0,   minor == 13 ? 200 : 208};
    const uint64_t object[] = {16, 8};
    const uint64_t bytes[] = {40, 16, 32};
    const uint64_t text[] = {64, 32, 16, 40};

    memset(words, 0, group[6] * sizeof(words[0]));
    memcpy(words, "xdebugpy", 8);
    words[1] = 0x030000f0U | minor << 16;
    if (minor >= 15) {
        memcpy(&words[group[0]], thread_from_15, sizeof(thread_from_15));
    } else {
        memcpy(&words[group[0]], thread_to_14, sizeof(thread_to_14));
    }
    memcpy(&words[group[1]], frame, sizeof(frame));
    memcpy(&words[group[2]], code, sizeof(code));
    memcpy(&words[group[3]], object, sizeof(object));
    memcpy(&words[group[4]], bytes, sizeof(bytes));
    memcpy(&words[group[5]], text, sizeof(text));
    return group[6];
}

uintptr_t python_world_lookup(const void *data, const char *name,
                              size_t *ret_bytes)
{
    const struct {
        const char *name;
        uintptr_t address;
        unsigned int since;
        unsigned int until;
    } names[] = {
        {"Py_Version", world.version, 11, 99},
        {"Py_NewRef", 1, 10, 99},
        {"PyFrame_GetCode", 1, 9, 99},
        {"Py_BytesMain", 1, 8, 99},
        {"_PyRuntime", world.runtime, 7, 99},
        {"PyCode_Type", world.python.code_type, 0, 99},
        {"PyUnicode_Type", world.python.text_type, 0, 99},
        {"PyBytes_Type", world.python.bytes_type, 0, 99},
        {"PyFrame_Type", world.python.frame_type, 0, 99},
        {"_PyEval_EvalFrameDefault", EVALUATE, 0, 99},
        {"PyGILState_GetThisThreadState", (uintptr_t)own_state, 0, 99},
        {"_PyThreadState_UncheckedGet", (uintptr_t)current_state, 0, 12},
        {"PyThreadState_GetUnchecked", (uintptr_t)current_state, 13, 99},
        {"_Py_IsFinalizing", (uintptr_t)is_finalizing, 0, 12},
        {"Py_IsFinalizing", (uintptr_t)is_finalizing, 13, 99},
        {"Py_IsInitialized", (uintptr_t)is_initialized, 0, 99},
    };

    (void)data;
    if (world.extra != NULL && strcmp(world.extra, name) == 0) {
        return 1;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].name, name) == 0 && world.minor >= names[i].since &&
            world.minor <= names[i].until &&
            (world.missing == NULL || strcmp(world.missing, name) != 0)) {
            if (ret_bytes != NULL) {
                *ret_bytes = 4096;
            }
            return names[i].address;
        }
    }
    return 0;
}

/* Small numbers, addresses in the arena and nowhere: what could be met. */
static void fill_with_garbage(unsigned int seed)
{
    uint64_t *words = (uint64_t *)arena;
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < ARENA_BYTES / 8; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        switch (random >> 32 & 3) {
        case 0:
            words[i] = 0;
            break;
        case 1:
            words[i] = random & 0xffff;
            break;
        case 2:
            words[i] = (uintptr_t)arena + (random & 0xfff8);
            break;
        default:
            words[i] = seed % 2 != 0 ? random : 0;
            break;
        }
    }
}

void python_world_make(unsigned int minor, unsigned int seed)
{
    uint64_t words[WORLD_DEBUG_WORDS] = {0};
    uint32_t hex = 0x030000f0U | minor << 16;

    memset(&world, 0, sizeof(world));
    memset(c_stack, 0, sizeof(c_stack));
    fill_with_garbage(seed);
    arena_used = 64;
    world.minor = minor;
    world.initialized = true;
    world.python.code_type = take(400);
    world.python.text_type = take(400);
    world.python.bytes_type = take(400);
    world.python.frame_type = take(400);
    world.runtime = take(sizeof(words));
    world.version = take(8);
    if (minor >= 13) {
        python_world_debug_words(minor, words);
    }
    memcpy((void *)world.runtime, words, sizeof(words));
    put(world.version, 0, hex);
    seep_python_offsets_find(hex, words, &world.python.offsets);
    make_types(&world.python.offsets);
    world.state = take(400);
    world.own = world.state;
    world.now = world.state;
    for (unsigned int i = 0; i < WORLD_FRAMES; i++) {
        world.frames[i] = take(160);
    }
    for (unsigned int i = 0; i < WORLD_FRAMES; i++) {
        make_frame(i);
    }
    make_thread();
    make_native();
    seep_python_symbols_find(python_world_lookup, NULL, &world.python);
    seep_python_offsets_find(hex, words, &world.python.offsets);
    world.python.hex = hex;
    world.python.start = EVALUATE;
    world.python.end = EVALUATE + 0x1000;
}
