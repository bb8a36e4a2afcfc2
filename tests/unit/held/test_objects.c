/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What belongs to an object of CPython and what only lies near it, where nobody
 * knows where blocks begin.
 *
 * Invariant: the process that is read is this one; its types and objects are
 * words of the fixture, laid out as CPython 3.11 has them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "held/search.h"
#include "seep_test.h"

#define TYPE_WORDS 64U
#define OBJECT_WORDS 64U
#define NAME_WORD 3U
#define BASIC_WORD 4U
#define FLAGS_WORD 21U
#define BASE_WORD 32U
#define HEAD_BYTES 16U /* of what is collected */

struct fixture {
    _Alignas(16) uint64_t type_type[TYPE_WORDS];
    uint64_t code_type[TYPE_WORDS];
    uint64_t dict_type[TYPE_WORDS];
    uint64_t function_type[TYPE_WORDS];
    uint64_t list_type[TYPE_WORDS];
    uint64_t bytearray_type[TYPE_WORDS];
    uint64_t text_type[TYPE_WORDS];
    uint64_t array_type[TYPE_WORDS];
    _Alignas(16) uint64_t object[OBJECT_WORDS];
    _Alignas(16) uint64_t other[OBJECT_WORDS];
    _Alignas(16) uint64_t code[OBJECT_WORDS];
    _Alignas(16) uint64_t globals[OBJECT_WORDS];
    struct seep_held_memory memory;
    struct seep_store store;
    struct seep_held_search search;
};

static uint64_t address_of(const void *at)
{
    return (uintptr_t)at;
}

static void make_type(struct fixture *f, uint64_t *type, const char *name,
                      uint64_t basic_bytes, uint64_t flags)
{
    type[0] = 1;
    type[1] = address_of(f->type_type);
    type[NAME_WORD] = address_of(name);
    type[BASIC_WORD] = basic_bytes;
    type[FLAGS_WORD] = flags;
}

static void make_object(uint64_t *object, const uint64_t *type)
{
    object[0] = 1;
    object[1] = address_of(type);
}

static int set_up(void **state)
{
    static const struct seep_held_question question = {.pid = 0};
    struct fixture *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);
    const struct seep_held_source source = {.pid = getpid()};

    assert_non_null(f);
    memset(f, 0, sizeof(*f));
    f->search.question = &question;
    make_type(f, f->type_type, "type", 920, SEEP_HELD_FLAG_TYPE);
    make_type(f, f->code_type, "code", 176, 0);
    make_type(f, f->dict_type, "dict", 48,
              SEEP_HELD_FLAG_COLLECTED | SEEP_HELD_FLAG_DICT);
    make_type(f, f->function_type, "function", 144, SEEP_HELD_FLAG_COLLECTED);
    make_type(f, f->list_type, "list", 40,
              SEEP_HELD_FLAG_COLLECTED | SEEP_HELD_FLAG_LIST);
    make_type(f, f->bytearray_type, "bytearray", 56, 0);
    make_type(f, f->text_type, "str", 80, SEEP_HELD_FLAG_STRING);
    make_type(f, f->array_type, "numpy.ndarray", 88, 0);
    make_object(f->code, f->code_type);
    make_object(f->globals, f->dict_type);
    assert_int_equal(seep_held_memory_open(&source, &f->memory), 0);
    f->search.memory = &f->memory;
    f->search.store = &f->store;
    assert_int_equal(seep_held_graph_init(&f->search), 0);
    assert_true(seep_held_python_init(&f->search.python, &f->memory, &f->store,
                                      address_of(f->type_type), 11));
    f->search.has_python = true;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    seep_held_python_fini(&f->search.python);
    seep_held_graph_fini(&f->search);
    seep_held_memory_close(&f->memory);
    seep_store_fini(&f->store);
    free(f);
    return 0;
}

static uint32_t add_node(struct fixture *f, const void *at, size_t bytes,
                         const uint64_t *type)
{
    const struct seep_held_node node = {
        .key = address_of(at),
        .address = address_of(at),
        .start = address_of(at),
        .end = address_of(at) + bytes,
        .type = type == NULL ? 0 : address_of(type),
        .kind = type == NULL ? SEEP_HELD_RAW : SEEP_HELD_OBJECT,
        .place = SEEP_HELD_CHUNK,
        .rank = SEEP_HELD_NO_RANK,
        .child = SEEP_HELD_NOTHING,
        .name = "",
    };

    return seep_held_node_add(&f->search, &node);
}

static uint32_t add_root(struct fixture *f, const void *at, uint8_t rank)
{
    const struct seep_held_node node = {
        .start = address_of(at),
        .words = SEEP_HELD_KIND_GLOBAL,
        .rank = rank,
        .name = "",
    };

    return seep_held_root_add(&f->search, address_of(at), &node);
}

/* {data, nd, dimensions, strides, base, descr, ...} behind the head, in numpy
 * 1 and 2. */
static void a_view_has_its_base(void **state)
{
    struct fixture *f = *state;
    const struct seep_held_type *type =
        seep_held_type_at(&f->search.python, address_of(f->array_type));
    char name[SEEP_HELD_NAME_BYTES];

    assert_true(
        seep_held_field_text(&f->search.python, type, 48, name, sizeof(name)));
    assert_string_equal(name, "base");
    assert_false(
        seep_held_field_text(&f->search.python, type, 56, name, sizeof(name)));
}

/* {f_func, f_globals, builtins, locals, f_code, ...}; variables from 72 on. */
static void a_frame_is_of_a_function(void **state)
{
    struct fixture *f = *state;
    uint64_t *frame = f->other;
    struct seep_held_frame found;

    make_object(f->object, f->function_type);
    frame[0] = address_of(f->object);
    frame[1] = address_of(f->globals);
    frame[4] = address_of(f->code);

    assert_true(seep_held_frame_at(&f->search.python, address_of(&frame[9]),
                                   address_of(frame), &found));
    assert_int_equal(found.address, address_of(frame));
    assert_int_equal(found.index, 0);
}

static bool is_entry(struct fixture *f, uint32_t child, const uint64_t *at)
{
    const struct seep_held_hit hit = {.at = address_of(at), .value = *at};
    uint32_t holder = add_node(f, f->globals, sizeof(f->globals), NULL);

    seep_held_memory_forget(&f->memory);
    return seep_held_is_entry(&f->search, child, holder, &hit);
}

static void make_wrapper(struct fixture *f)
{
    make_type(f, f->text_type, "pybind11_type", 920, SEEP_HELD_FLAG_TYPE);
    make_type(f, f->array_type, "module.Renderer", 56,
              SEEP_HELD_FLAG_HEAP_TYPE);
    f->array_type[1] = address_of(f->text_type);
    f->text_type[BASE_WORD] = address_of(f->type_type);
    make_object(f->object, f->array_type);
    f->object[2] = address_of(f->other);
}

/* {next, address, wrapper}, as a table of pybind11 has it: both are borrowed. A
 * map of the program's own has a wrapper of something else, or none. */
static void
a_table_of_wrappers_has_neither_them_nor_what_they_wrap(void **state)
{
    struct fixture *f = *state;
    uint64_t *entry = &f->globals[4];
    uint32_t wrapper;
    uint32_t wrapped;

    make_wrapper(f);
    wrapper = add_node(f, f->object, 56, f->array_type);
    wrapped = add_node(f, f->other, 64, NULL);
    entry[1] = address_of(f->other);
    entry[2] = address_of(f->object);
    assert_true(is_entry(f, wrapped, &entry[1]));
    assert_true(is_entry(f, wrapper, &entry[2]));
    f->search.has_python = false;
    assert_false(is_entry(f, wrapped, &entry[1]));
    f->search.has_python = true;
    f->object[2] = address_of(f->code);
    assert_false(is_entry(f, wrapped, &entry[1]));
    assert_false(is_entry(f, wrapper, &entry[2]));
    /* nanobind: what is wrapped lies in its wrapper */
    entry[1] = address_of(&f->object[4]);
    assert_true(is_entry(f, wrapper, &entry[2]));
    entry[1] = 7;
    assert_false(is_entry(f, wrapper, &entry[2]));
}

/* {next, wrapper, begin, end, room}: the wrapper has them, not the table. */
static void a_table_of_what_wrappers_keep_alive_has_neither(void **state)
{
    struct fixture *f = *state;
    uint64_t *entry = &f->globals[4];
    uint64_t *kept = f->code;
    uint32_t wrapper;
    uint32_t vector;

    make_wrapper(f);
    make_object(f->other, f->list_type);
    kept[0] = address_of(f->other);
    wrapper = add_node(f, f->object, 56, f->array_type);
    vector = add_node(f, kept, 16, NULL);
    entry[1] = address_of(f->object);
    entry[2] = address_of(kept);
    entry[3] = address_of(&kept[1]);
    entry[4] = address_of(&kept[2]);
    assert_true(is_entry(f, wrapper, &entry[1]));
    assert_true(is_entry(f, vector, &entry[2]));
    kept[0] = 8; /* numbers */
    assert_false(is_entry(f, wrapper, &entry[1]));
    assert_false(is_entry(f, vector, &entry[2]));
    kept[0] = address_of(f->other);
    entry[3] = entry[2]; /* empty */
    assert_false(is_entry(f, wrapper, &entry[1]));
}

/* A class of the program's, which pybind11 did not make. */
static void a_map_of_objects_and_what_they_have_has_both(void **state)
{
    struct fixture *f = *state;
    uint64_t *entry = &f->globals[4];
    uint32_t wrapped;

    make_wrapper(f);
    f->array_type[1] = address_of(f->type_type);
    wrapped = add_node(f, f->other, 64, NULL);
    entry[1] = address_of(f->other);
    entry[2] = address_of(f->object);
    assert_false(is_entry(f, wrapped, &entry[1]));
}

/* Is the word @number of the frame @frame one that it has? */
static bool is_used(struct fixture *f, unsigned minor, const uint64_t *frame,
                    size_t number, uint64_t first)
{
    const struct seep_held_frame found = {.address = address_of(frame),
                                          .index = number - first};

    f->search.python.minor = minor;
    seep_held_memory_forget(&f->memory);
    return seep_held_frame_is_used(&f->search.python, &found,
                                   address_of(&frame[number]));
}

static void put_int(uint64_t *words, size_t at, int32_t value)
{
    memcpy((uint8_t *)words + at, &value, sizeof(value));
}

/* Two locals, and room for operands. */
static void what_lies_behind_the_operands_is_from_before(void **state)
{
    struct fixture *f = *state;
    uint64_t *frame = f->object;

    put_int(frame, 64, 3);
    assert_true(is_used(f, 11, frame, 11, 9));
    assert_false(is_used(f, 11, frame, 12, 9));
    put_int(frame, 64, -1);
    assert_true(is_used(f, 12, frame, 12, 9));

    frame[8] = address_of(&frame[52]);
    put_int(frame, 80, 1);
    assert_true(is_used(f, 10, frame, 51, 50));
    assert_true(is_used(f, 10, frame, 52, 50));
    assert_false(is_used(f, 10, frame, 53, 50));
    put_int(frame, 80, -1);
    assert_true(is_used(f, 10, frame, 53, 50));

    frame[9] = address_of(&frame[53]);
    assert_true(is_used(f, 9, frame, 52, 50));
    assert_false(is_used(f, 9, frame, 53, 50));
    frame[9] = 0;
    assert_true(is_used(f, 8, frame, 51, 50));
    assert_false(is_used(f, 8, frame, 52, 50));
    put_int(frame, 116, 1);
    assert_true(is_used(f, 8, frame, 52, 50));
}

/* Where a frame has its blocks of try and with is what was there before. */
static void blocks_of_a_frame_refer_to_nothing(void **state)
{
    struct fixture *f = *state;
    const struct seep_held_node node = {
        .address = address_of(f->object),
        .type = address_of(f->function_type),
        .kind = SEEP_HELD_OBJECT,
    };

    f->search.python.minor = 10;
    make_type(f, f->function_type, "frame", 360, 0);
    make_object(f->object, f->function_type);
    assert_true(
        seep_held_is_weak(&f->search, &node, address_of(&f->object[35])));
    assert_false(
        seep_held_is_weak(&f->search, &node, address_of(&f->object[44])));
    assert_false(
        seep_held_is_weak(&f->search, &node, address_of(&f->object[3])));
}

/* To 3.10, where a frame that somebody keeps is above one that runs. */
static void an_operand_of_who_runs_is_worth_less_than_a_stack(void **state)
{
    struct fixture *f = *state;
    uint64_t *frame = f->object;
    uint32_t asked = add_node(f, f->other, 64, NULL);
    uint32_t holder = add_node(f, frame, 256, f->function_type);
    uint32_t module = add_root(f, f->globals, SEEP_HELD_RANK_NAMED);
    uint32_t stack = add_root(f, f->text_type, SEEP_HELD_RANK_RUNTIME);
    struct seep_held_way way = {.asked = asked};
    struct seep_held_ways ways;

    f->search.python.minor = 10;
    make_type(f, f->function_type, "frame", 168, 0);
    make_object(frame, f->function_type);
    frame[4] = address_of(f->code);
    put_int(frame, 80, -1);
    seep_held_link_add(&f->search, asked, holder, address_of(&frame[22]),
                       address_of(f->other));
    seep_held_link_add(&f->search, asked, stack, address_of(f->text_type),
                       address_of(f->other));
    seep_held_link_add(&f->search, holder, module, address_of(f->globals),
                       address_of(frame));

    assert_int_equal(seep_held_ways_open(&f->search, &ways), 0);
    assert_int_equal(seep_held_tell_all(&ways, &way, 1), 0);
    assert_int_equal(way.root, stack);
    free(way.steps);
    seep_held_ways_close(&ways);
}

#define CHUNK_PAGES 8U

/* Where a thread of CPython 3.11 has its frames: {previous, bytes, top, ...},
 * whole pages; a frame of no variables in its fifth. */
static uint64_t *make_chunk(struct fixture *f, uint64_t bytes)
{
    uint64_t *chunk =
        mmap(NULL, CHUNK_PAGES * SEEP_HELD_PAGE_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *frame;

    assert_true(chunk != MAP_FAILED);
    frame = chunk + 4 * SEEP_HELD_PAGE_BYTES / sizeof(*chunk) + 5;
    chunk[1] = bytes;
    chunk[2] = bytes / sizeof(*chunk);
    make_object(f->object, f->function_type);
    frame[0] = address_of(f->object);
    frame[1] = address_of(f->globals);
    frame[4] = address_of(f->code);
    put_int(frame, 64, -1);
    assert_int_equal(seep_held_memory_reload(&f->memory), 0);
    return frame;
}

/* What looks like a frame elsewhere was one, or a copy of one. */
static void a_frame_lies_in_a_chunk_of_the_stack_of_frames(void **state)
{
    static const uint64_t sizes[] = {
        CHUNK_PAGES * SEEP_HELD_PAGE_BYTES, /* it is one, */
        4 * SEEP_HELD_PAGE_BYTES,           /* that ends before it, */
        CHUNK_PAGES * SEEP_HELD_PAGE_BYTES + 8,
        CHUNK_PAGES * SEEP_HELD_PAGE_BYTES * 64, /* and what is none */
        0,
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t *frame = make_chunk(f, sizes[i]);
        uint64_t *chunk = frame - 5 - 4 * SEEP_HELD_PAGE_BYTES / sizeof(*frame);
        uint64_t at = address_of(&frame[9]);
        const struct seep_held_map *map = seep_held_map_at(&f->memory, at);
        bool is_frame;
        uint32_t node;

        f->search.top_count = 0;
        node = seep_held_resolve_frame(&f->search, map, at, &is_frame);
        assert_int_equal(is_frame, i == 0);
        assert_int_equal(node != SEEP_HELD_NOTHING, i == 0);
        if (i == 0) { /* the same page is asked for once */
            chunk[1] = 0;
            seep_held_resolve_frame(&f->search, map, at, &is_frame);
            assert_true(is_frame);
            seep_held_memory_forget(&f->memory);
            seep_held_resolve_frame(&f->search, map, at, &is_frame);
            assert_false(is_frame);
        }
        munmap(chunk, CHUNK_PAGES * SEEP_HELD_PAGE_BYTES);
    }
}

/* Its globals, its builtins, its code are where a frame has the like. */
static void a_function_is_no_frame(void **state)
{
    struct fixture *f = *state;
    uint64_t *function = f->object;
    struct seep_held_frame found;

    make_object(function, f->function_type);
    function[2] = address_of(f->globals);
    function[3] = address_of(f->globals);
    function[6] = address_of(f->code);

    assert_false(seep_held_frame_at(&f->search.python,
                                    address_of(&function[11]),
                                    address_of(function), &found));
}

static void an_object_begins_where_its_head_does(void **state)
{
    struct fixture *f = *state;
    uint64_t *list = &f->object[2];
    uint64_t start = 0;
    uint64_t end = 0;

    make_object(list, f->list_type);

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(
            seep_held_object_near(&f->search.python,
                                  address_of(i == 0 ? list : f->object), &start,
                                  &end),
            address_of(list));
        assert_int_equal(start, address_of(f->object));
        assert_int_equal(end, address_of(list) + 40);
    }
    assert_int_equal(seep_held_object_near(&f->search.python,
                                           address_of(f->other), &start, &end),
                     0);
}

/* Of 56 bytes, of which glibc gives 72 where the rest were no chunk. */
static void an_object_may_have_the_rest_of_a_free_chunk(void **state)
{
    struct fixture *f = *state;
    const uint64_t one = address_of(f->object);
    const uint64_t other = address_of(f->other);
    uint32_t node;

    make_object(f->object, f->bytearray_type);
    make_object(f->other, f->bytearray_type);
    node = seep_held_block_node(&f->search, one, one + 64, SEEP_HELD_CHUNK);
    assert_int_equal(f->search.nodes[node].kind, SEEP_HELD_OBJECT);
    node = seep_held_block_node(&f->search, other, other + 80, SEEP_HELD_CHUNK);
    assert_int_equal(f->search.nodes[node].kind, SEEP_HELD_RAW);
}

/* Its block is larger than it is, and had another use before. */
static void an_int_holds_nothing_unless_its_class_has_a_dict(void **state)
{
    struct fixture *f = *state;
    const struct seep_held_node number = {
        .address = address_of(f->object),
        .type = address_of(f->bytearray_type),
        .kind = SEEP_HELD_OBJECT,
    };
    const struct seep_held_node level = {
        .address = address_of(f->other),
        .type = address_of(f->text_type),
        .kind = SEEP_HELD_OBJECT,
    };

    make_type(f, f->bytearray_type, "int", 24, SEEP_HELD_FLAG_LONG);
    make_type(f, f->text_type, "Level", 24,
              SEEP_HELD_FLAG_LONG | SEEP_HELD_FLAG_HEAP_TYPE);
    make_object(f->object, f->bytearray_type);
    make_object(f->other, f->text_type);
    f->object[4] = address_of(f->globals);
    f->other[4] = address_of(f->globals);
    f->other[5] = address_of(f->code);

    assert_true(
        seep_held_is_weak(&f->search, &number, address_of(&f->object[4])));
    assert_false(
        seep_held_is_weak(&f->search, &level, address_of(&f->other[4])));
    assert_true(
        seep_held_is_weak(&f->search, &level, address_of(&f->other[5])));
}

static void what_lies_behind_a_guess_is_not_in_it(void **state)
{
    struct fixture *f = *state;
    struct seep_held_node node = {
        .address = address_of(f->object),
        .type = address_of(f->bytearray_type),
        .kind = SEEP_HELD_OBJECT,
        .is_guessed = true,
    };

    make_object(f->object, f->bytearray_type);

    assert_false(
        seep_held_is_weak(&f->search, &node, address_of(&f->object[5])));
    assert_true(
        seep_held_is_weak(&f->search, &node, address_of(&f->object[7])));
    node.is_guessed = false;
    assert_false(
        seep_held_is_weak(&f->search, &node, address_of(&f->object[7])));
}

static void bytes_refer_to_nothing(void **state)
{
    struct fixture *f = *state;
    struct seep_held_node object = {
        .address = address_of(f->object),
        .type = address_of(f->bytearray_type),
        .kind = SEEP_HELD_OBJECT,
    };
    const struct seep_held_node buffer = {.start = address_of(f->other)};
    struct seep_held_step step;

    make_object(f->object, f->bytearray_type);

    assert_true(seep_held_edge_of(&f->search, &object,
                                  address_of(&f->object[5]), NULL, 0, &step));
    assert_int_equal(step.edge, SEEP_HELD_EDGE_DATA);
    assert_false(seep_held_edge_of(&f->search, &object,
                                   address_of(&f->object[5]), &buffer,
                                   address_of(&f->other[3]), &step));
}

static void one_who_has_it_over_and_over_leaves_room_for_others(void **state)
{
    struct fixture *f = *state;
    uint32_t child = add_node(f, f->object, 64, NULL);
    uint32_t many = add_node(f, f->other, sizeof(f->other), NULL);
    uint32_t another = add_node(f, f->code, 64, NULL);

    for (size_t i = 0; i < OBJECT_WORDS; i++) {
        seep_held_link_add(&f->search, child, many, address_of(&f->other[i]),
                           address_of(f->object));
    }

    assert_int_not_equal(seep_held_link_add(&f->search, child, another,
                                            address_of(f->code),
                                            address_of(f->object)),
                         SEEP_HELD_NOTHING);
}

static bool has_room_for(struct fixture *f, uint16_t level, size_t count)
{
    uint32_t child = add_node(f, &f->object[level], 64, NULL);
    uint32_t link = SEEP_HELD_NOTHING;

    f->search.nodes[child].level = level;
    for (size_t i = 0; i < count; i++) {
        uint32_t holder =
            add_node(f, (uint8_t *)f + 4096 * level + 16 * i, 16, NULL);

        link = seep_held_link_add(&f->search, child, holder,
                                  address_of(&f->other[i % OBJECT_WORDS]),
                                  address_of(&f->object[level]));
    }
    return link != SEEP_HELD_NOTHING;
}

/* What is left of an array that was replaced again and again. */
static void near_a_block_hundreds_may_hold_it(void **state)
{
    struct fixture *f = *state;

    assert_true(has_room_for(f, 1, 200));
    assert_false(has_room_for(f, 2, 200));
}

#define CROWD 200U

/* Of @CROWD objects of a type that have the same thing at the same place, how
 * many are looked at; and is one of another type, behind them? */
static size_t count_of_crowd(struct fixture *f, uint16_t level,
                             bool *ret_has_other)
{
    uint64_t(*crowd)[4] = calloc(CROWD + 1, sizeof(*crowd));
    uint32_t child = add_node(f, &f->object[8 * level], 64, NULL);
    size_t count = 0;

    assert_non_null(crowd);
    f->search.nodes[child].level = level;
    for (size_t i = 0; i <= CROWD; i++) {
        make_object(crowd[i], i < CROWD ? f->text_type : f->list_type);
    }
    seep_held_memory_forget(&f->memory);
    for (size_t i = 0; i <= CROWD; i++) {
        const uint64_t *type = i < CROWD ? f->text_type : f->list_type;
        uint64_t at = address_of(&crowd[i][3]);

        *ret_has_other = !seep_held_is_of_crowd(&f->search, child, at);
        if (*ret_has_other) {
            uint32_t holder = add_node(f, crowd[i], sizeof(crowd[i]), type);

            *ret_has_other =
                seep_held_link_add(&f->search, child, holder, at,
                                   address_of(&f->object[8 * level])) !=
                SEEP_HELD_NOTHING;
            count += *ret_has_other && i < CROWD;
        }
    }
    assert_int_equal(f->search.nodes[child].was_crowded, count < CROWD);
    free(crowd);
    return count;
}

/* A callback has whose method it is, and one variable has that, too. */
static void a_crowd_of_one_type_leaves_room_for_others(void **state)
{
    bool has_other = false;

    assert_int_equal(count_of_crowd(*state, 2, &has_other), 24);
    assert_true(has_other);
    /* Near a block one of them may be the one that counts. */
    assert_int_equal(count_of_crowd(*state, 1, &has_other), CROWD);
    assert_true(has_other);
}

/* A slot of a cache of what was free once, with a way of one step, and a list
 * that a module has by way of four blocks. */
static void what_a_list_consists_of_is_nobody_elses(void **state)
{
    struct fixture *f = *state;
    uint64_t *list = f->object;
    uint32_t buffer = add_node(f, f->other, sizeof(f->other), NULL);
    uint32_t owner = add_node(f, list, 40, f->list_type);
    uint32_t stale = add_root(f, f->globals, SEEP_HELD_RANK_NAMELESS);
    uint32_t module = add_root(f, f->text_type, SEEP_HELD_RANK_NAMED);
    uint32_t above = owner;
    struct seep_held_way way = {.asked = buffer};
    struct seep_held_ways ways;

    make_object(list, f->list_type);
    list[3] = address_of(f->other);
    seep_held_link_add(&f->search, buffer, stale, address_of(f->globals),
                       address_of(f->other));
    seep_held_link_add(&f->search, buffer, owner, address_of(&list[3]),
                       address_of(f->other));
    for (size_t i = 0; i < 4; i++) {
        uint32_t next = add_node(f, &f->code[8 * i], 64, NULL);

        seep_held_link_add(&f->search, above, next, address_of(&f->code[8 * i]),
                           f->search.nodes[above].address);
        above = next;
    }
    seep_held_link_add(&f->search, above, module, address_of(f->text_type),
                       f->search.nodes[above].address);

    assert_int_equal(seep_held_ways_open(&f->search, &ways), 0);
    assert_int_equal(seep_held_tell_all(&ways, &way, 1), 0);
    assert_int_equal(way.root, module);
    free(way.steps);
    seep_held_ways_close(&ways);
}

/* As g++ lays them out: the class's information before where objects point. */
static const char class_name[] = "4Node";
static const void *const information[] = {NULL, class_name};
static const void *const table[] = {information, NULL};

static int die(void *context, const char *path, uint32_t what, uint64_t most,
               void **ret_bytes, uint64_t *ret_count)
{
    (void)context;
    (void)what;
    (void)most;
    (void)ret_bytes;
    (void)ret_count;
    if (strstr(path, "absent") != NULL) {
        return -ENOENT;
    }
    _exit(1);
}

/* Its reader died of it, which is not to be seen of what has no name. */
static void a_file_that_its_reader_dies_of_is_told(void **state)
{
    struct fixture *f = *state;
    struct seep_held_images images = {.memory = &f->memory,
                                      .wall = {.read = die}};

    assert_non_null(seep_held_image_of(&images, "/lib/absent.so"));
    assert_null(f->memory.nameless_path);
    assert_non_null(seep_held_image_of(&images, "/lib/damaged.so"));
    assert_non_null(seep_held_image_of(&images, "/lib/another.so"));
    assert_string_equal(f->memory.nameless_path, "/lib/damaged.so");
    assert_int_equal(f->memory.nameless_error, -ECHILD);
    seep_held_images_fini(&images);
}

/* Of a module of C++ that gives no names to its fields. */
static void an_object_of_cxx_is_known_in_one_of_python(void **state)
{
    struct fixture *f = *state;
    uint32_t asked = add_node(f, f->other, 64, NULL);
    uint32_t wrapper = add_node(f, f->object, 64, f->code_type);
    uint32_t module = add_root(f, f->globals, SEEP_HELD_RANK_NAMED);

    make_type(f, f->code_type, "module.Wrapper", 64, 0);
    make_object(f->object, f->code_type);
    f->search.images.memory = &f->memory;
    f->search.asked = &asked;
    f->search.asked_count = 1;
    f->search.nodes[asked].is_asked = true;
    seep_held_link_add(&f->search, wrapper, module, address_of(f->globals),
                       address_of(f->object));
    seep_held_link_add(&f->search, asked, wrapper, address_of(&f->object[3]),
                       address_of(f->other));
    assert_int_equal(seep_held_count_named(&f->search, SEEP_HELD_RANK_NAMED),
                     0);

    f->search.links[1].cost = 0;
    f->search.nodes[asked].type_is_read = false;
    seep_held_memory_forget(&f->memory);
    f->other[0] = address_of(&table[1]);
    assert_int_equal(seep_held_count_named(&f->search, SEEP_HELD_RANK_NAMED),
                     1);
}

/* Its fields are written when it is made; what lies behind them is not. C makes
 * types as classes are made, too; then they are named with their module. What
 * is made from one has what it has. */
static void a_field_that_no_rule_knows_is_nearly_a_name(void **state)
{
    static const struct {
        const char *name;
        uint64_t flags;
        size_t word;
        size_t nearly;
    } cases[] = {{"_io.Stream", 0, 3, 1},
                 {"_io.Stream", 0, 7, 0},
                 {"_io.Stream", SEEP_HELD_FLAG_HEAP_TYPE, 3, 1},
                 {"Stream", SEEP_HELD_FLAG_HEAP_TYPE, 3, 0},
                 {"Mine", SEEP_HELD_FLAG_HEAP_TYPE, 3, 1}};
    struct fixture *f = *state;
    uint64_t *types[] = {f->code_type, f->function_type, f->text_type,
                         f->array_type, f->bytearray_type};
    uint32_t asked[5];

    for (size_t i = 0; i < 5; i++) {
        uint64_t *object = &f->object[12 * i];
        uint64_t *module = &f->code[12 * i];
        uint32_t stream = add_node(f, object, 64, types[i]);

        make_type(f, types[i], cases[i].name, 48, cases[i].flags);
        types[i][BASE_WORD] = i < 4 ? 0 : address_of(types[0]);
        make_object(object, types[i]);
        asked[i] = add_node(f, &f->other[12 * i], 64, NULL);
        seep_held_link_add(&f->search, stream,
                           add_root(f, module, SEEP_HELD_RANK_NAMED),
                           address_of(module), address_of(object));
        seep_held_link_add(&f->search, asked[i], stream,
                           address_of(&object[cases[i].word]),
                           address_of(&f->other[12 * i]));
    }
    f->search.asked_count = 1;
    for (size_t i = 0; i < 5; i++) {
        f->search.asked = &asked[i];
        assert_int_equal(
            seep_held_count_named(&f->search, SEEP_HELD_RANK_NAMED), 0);
        assert_int_equal(
            seep_held_count_nearly_named(&f->search, SEEP_HELD_RANK_NAMED),
            cases[i].nearly);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_field_that_no_rule_knows_is_nearly_a_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_view_has_its_base, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_table_of_wrappers_has_neither_them_nor_what_they_wrap, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_table_of_what_wrappers_keep_alive_has_neither, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_map_of_objects_and_what_they_have_has_both, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_frame_is_of_a_function, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            what_lies_behind_the_operands_is_from_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_of_a_frame_refer_to_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_operand_of_who_runs_is_worth_less_than_a_stack, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_frame_lies_in_a_chunk_of_the_stack_of_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_function_is_no_frame, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_object_begins_where_its_head_does,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_object_may_have_the_rest_of_a_free_chunk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_int_holds_nothing_unless_its_class_has_a_dict, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(what_lies_behind_a_guess_is_not_in_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_refer_to_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            one_who_has_it_over_and_over_leaves_room_for_others, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_crowd_of_one_type_leaves_room_for_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(near_a_block_hundreds_may_hold_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_its_reader_dies_of_is_told,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_object_of_cxx_is_known_in_one_of_python, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_list_consists_of_is_nobody_elses,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
