/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What lies elsewhere in one version of CPython than in another, and how far
 * versions are known.
 *
 * Invariant: the process that is read is this one; its types and objects are
 * words of the fixture, laid out as the version of the test has them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "held/search.h"
#include "seep_test.h"

#define TYPE_WORDS 128U
#define OBJECT_WORDS 32U
#define NAME_WORD 3U
#define BASIC_WORD 4U
#define FLAGS_WORD 21U
#define INTERNED 2U /* and immortal */

struct fixture {
    _Alignas(16) uint64_t type_type[TYPE_WORDS];
    uint64_t class[TYPE_WORDS];
    uint64_t code_type[TYPE_WORDS];
    uint64_t dict_type[TYPE_WORDS];
    uint64_t function_type[TYPE_WORDS];
    uint64_t module_type[TYPE_WORDS];
    uint64_t text_type[TYPE_WORDS];
    _Alignas(16) uint64_t object[OBJECT_WORDS];
    _Alignas(16) uint64_t keys[OBJECT_WORDS];
    _Alignas(16) uint64_t text[OBJECT_WORDS];
    _Alignas(16) uint64_t code[OBJECT_WORDS];
    _Alignas(16) uint64_t function[OBJECT_WORDS];
    _Alignas(16) uint64_t globals[OBJECT_WORDS];
    struct seep_held_question question;
    struct seep_held_memory memory;
    struct seep_store store;
    struct seep_held_search search;
};

static uint64_t address_of(const void *at)
{
    return (uintptr_t)at;
}

static void make_object(uint64_t *object, const uint64_t *type)
{
    object[0] = 1;
    object[1] = address_of(type);
}

static void make_type(struct fixture *f, uint64_t *type, const char *name,
                      uint64_t basic_bytes, uint64_t flags)
{
    make_object(type, f->type_type);
    type[NAME_WORD] = address_of(name);
    type[BASIC_WORD] = basic_bytes;
    type[FLAGS_WORD] = flags;
}

static int set_up(void **state)
{
    struct fixture *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);
    const struct seep_held_source source = {.pid = getpid()};

    assert_non_null(f);
    memset(f, 0, sizeof(*f));
    make_type(f, f->type_type, "type", 928, SEEP_HELD_FLAG_TYPE);
    make_type(f, f->class, "Model", 16,
              SEEP_HELD_FLAG_HEAP_TYPE | SEEP_HELD_FLAG_INLINE_VALUES);
    make_type(f, f->code_type, "code", 208, 0);
    make_type(f, f->dict_type, "dict", 48,
              SEEP_HELD_FLAG_COLLECTED | SEEP_HELD_FLAG_DICT);
    make_type(f, f->function_type, "function", 144, SEEP_HELD_FLAG_COLLECTED);
    make_type(f, f->module_type, "module", 56, 0);
    make_type(f, f->text_type, "str", 64, SEEP_HELD_FLAG_STRING);
    make_object(f->code, f->code_type);
    make_object(f->function, f->function_type);
    make_object(f->globals, f->dict_type);
    assert_int_equal(seep_held_memory_open(&source, &f->memory), 0);
    f->search.question = &f->question;
    f->search.memory = &f->memory;
    f->search.store = &f->store;
    assert_int_equal(seep_held_graph_init(&f->search), 0);
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

/* The process has CPython 3.@minor, and what was read before is forgotten. */
static struct seep_held_python *be_version(struct fixture *f, unsigned minor)
{
    seep_held_python_fini(&f->search.python);
    seep_held_memory_forget(&f->memory);
    assert_true(seep_held_python_init(&f->search.python, &f->memory, &f->store,
                                      address_of(f->type_type), minor));
    f->search.has_python = true;
    return &f->search.python;
}

/* Of ASCII characters, behind a head of 48 bytes or (3.12 on) 40. */
static void make_text(struct fixture *f, const char *text, unsigned minor)
{
    uint32_t state = INTERNED | 1U << 2 | 1U << 5 | 1U << 6;

    make_object(f->text, f->text_type);
    f->text[2] = strlen(text);
    memcpy(&f->text[4], &state, sizeof(state));
    memcpy((uint8_t *)f->text + (minor <= 11 ? 48 : 40), text, strlen(text));
}

/* A table of keys of str alone (3.11 on), of which the first is @text. */
static void make_keys(struct fixture *f)
{
    const uint8_t head[] = {3, 3, 1}; /* 8 places, a byte each */

    f->keys[0] = 1;
    memcpy(&f->keys[1], head, sizeof(head));
    f->keys[3] = 1;
    f->keys[5] = address_of(f->text);
}

static void a_text_is_read_in_every_version(void **state)
{
    struct fixture *f = *state;
    char text[SEEP_HELD_NAME_BYTES];

    for (unsigned minor = SEEP_HELD_MINOR_MIN; minor <= SEEP_HELD_MINOR_MAX;
         minor++) {
        struct seep_held_python *python = be_version(f, minor);

        make_text(f, "audit", minor);
        assert_true(seep_held_python_text(python, address_of(f->text), text,
                                          sizeof(text)));
        assert_string_equal(text, "audit");
    }
}

/* Of one of ASCII none but wchar_t, which is of 3.11 and older. */
static void characters_of_a_text_refer_to_nothing(void **state)
{
    static const uint64_t utf8_words[] = {7, 6}; /* to 3.11, and since */
    struct fixture *f = *state;
    const struct seep_held_node node = {
        .kind = SEEP_HELD_OBJECT,
        .address = address_of(f->text),
        .type = address_of(f->text_type),
    };

    for (unsigned minor = 11; minor <= 12; minor++) {
        uint64_t utf8 = utf8_words[minor - 11];
        uint8_t kept;

        make_text(f, "audit", minor);
        be_version(f, minor);
        for (uint64_t i = 2; i < 10; i++) {
            assert_int_equal(
                seep_held_is_weak(&f->search, &node, address_of(&f->text[i])),
                minor > 11 || i != 5);
        }
        memcpy(&kept, &f->text[4], sizeof(kept));
        kept &= (uint8_t) ~(1U << 6); /* not of ASCII */
        memcpy(&f->text[4], &kept, sizeof(kept));
        be_version(f, minor);
        for (uint64_t i = 2; i < 10; i++) {
            assert_int_equal(
                seep_held_is_weak(&f->search, &node, address_of(&f->text[i])),
                i != utf8 && (minor > 11 || i != 5));
        }
    }
}

/* Of what is newer nothing is believed: it has blocks, and no objects. */
static void a_version_that_is_not_known_has_no_objects(void **state)
{
    static const unsigned minors[] = {SEEP_HELD_MINOR_MIN - 1,
                                      SEEP_HELD_MINOR_MAX + 1};
    struct fixture *f = *state;
    struct seep_held_python python;

    for (size_t i = 0; i < sizeof(minors) / sizeof(*minors); i++) {
        assert_false(seep_held_python_init(&python, &f->memory, &f->store,
                                           address_of(f->type_type),
                                           minors[i]));
        assert_false(seep_held_knows_python(3U << 24 | minors[i] << 16));
    }
    assert_true(seep_held_knows_python(0x030f02f0));
    assert_true(seep_held_knows_python(0));
    assert_false(seep_held_knows_python(0x040f02f0));
}

/* A class knows the names of its instances' attributes, which (3.13 on) lie in
 * these. */
static void an_attribute_has_its_name(void **state)
{
    static const uint64_t offsets[] = {880, 880, 888};
    struct fixture *f = *state;
    const struct seep_held_node node = {
        .kind = SEEP_HELD_OBJECT,
        .address = address_of(f->object),
        .type = address_of(f->class),
    };

    make_object(f->object, f->class);
    make_keys(f);
    for (unsigned minor = 13; minor <= 15; minor++) {
        struct seep_held_step step;

        make_text(f, "audit", minor);
        memset(&f->class[110], 0, 16);
        f->class[offsets[minor - 13] / 8] = address_of(f->keys);
        be_version(f, minor);
        assert_true(seep_held_edge_of(
            &f->search, &node, address_of(&f->object[3]), NULL, 0, &step));
        assert_int_equal(step.edge, SEEP_HELD_EDGE_ATTRIBUTE);
        assert_string_equal(step.edge_name, "audit");
    }
}

static void a_module_has_its_name(void **state)
{
    static const uint64_t offsets[] = {48, 48, 40};
    struct fixture *f = *state;

    for (unsigned minor = 13; minor <= 15; minor++) {
        uint64_t *module = &f->object[8 * (minor - 13)];
        uint32_t node;

        make_text(f, "service", minor);
        make_object(module, f->module_type);
        module[offsets[minor - 13] / 8] = address_of(f->text);
        be_version(f, minor);
        node = seep_held_block_node(&f->search, address_of(module),
                                    address_of(&module[7]), SEEP_HELD_POOL);
        assert_int_equal(f->search.nodes[node].words, SEEP_HELD_KIND_MODULE);
        assert_string_equal(f->search.nodes[node].name, "service");
    }
}

/* 3.15: its own type, which does not say that it is a dict; so is one of a
 * class that is made from it. */
static void a_frozendict_has_keys(void **state)
{
    struct fixture *f = *state;
    const struct seep_held_node node = {
        .kind = SEEP_HELD_OBJECT,
        .address = address_of(f->object),
        .type = address_of(f->class),
    };
    const struct seep_held_node buffer = {.start = address_of(f->keys)};

    make_type(f, f->code_type, "frozendict", 56, SEEP_HELD_FLAG_COLLECTED);
    f->class[32] = address_of(f->code_type); /* tp_base */
    make_object(f->object, f->class);
    f->object[4] = address_of(f->keys);
    make_keys(f);
    make_text(f, "weights", 15);
    be_version(f, 15);
    for (unsigned i = 0; i < 2; i++) {
        struct seep_held_step step;

        assert_true(seep_held_edge_of(&f->search, &node,
                                      address_of(&f->object[4]), &buffer,
                                      address_of(&f->keys[6]), &step));
        assert_int_equal(step.edge, SEEP_HELD_EDGE_KEY);
        assert_string_equal(step.edge_name, "weights");
        make_object(f->object, f->code_type);
    }
}

#define LOCALS 2U
#define OPERANDS 3U

/* {executable, previous, function, globals, ..., end of what is used, ...}; the
 * low bits say who counts the references. */
static void make_frame(struct fixture *f, uint64_t *frame, size_t first)
{
    const uint32_t counts[] = {LOCALS, OPERANDS};

    memcpy((uint8_t *)f->code + 72, &counts[0], sizeof(counts[0]));
    memcpy((uint8_t *)f->code + 64, &counts[1], sizeof(counts[1]));
    frame[0] = address_of(f->code) | 1;
    frame[2] = address_of(f->function) | 1;
    frame[3] = address_of(f->globals);
    frame[8] = address_of(&frame[first + LOCALS + 1]);
}

/* Its function has no argument by keyword alone, which is the count before. */
static void a_word_behind_the_locals_is_an_operand(void **state)
{
    struct fixture *f = *state;
    uint64_t *frame = f->object;

    for (unsigned minor = 12; minor <= 15; minor++) {
        size_t first = minor < 14 ? 9 : 10;
        struct seep_held_python *python;
        struct seep_held_frame found;

        make_frame(f, frame, first);
        frame[0] &= minor < 14 ? ~UINT64_C(1) : UINT64_MAX;
        frame[2] &= minor < 14 ? ~UINT64_C(1) : UINT64_MAX;
        python = be_version(f, minor);
        for (size_t i = 0; i <= LOCALS + OPERANDS; i++) {
            assert_true(seep_held_frame_at(python,
                                           address_of(&frame[first + i]),
                                           address_of(frame), &found));
            assert_int_equal(found.address, address_of(frame));
            assert_int_equal(found.index, i);
        }
        assert_false(seep_held_frame_at(
            python, address_of(&frame[first + LOCALS + OPERANDS + 1]),
            address_of(frame), &found));
    }
}

static bool is_used(struct fixture *f, const uint64_t *frame, size_t index)
{
    const uint64_t *word = &frame[10 + index];
    struct seep_held_frame found;

    seep_held_memory_forget(&f->memory);
    assert_true(seep_held_frame_at(&f->search.python, address_of(word),
                                   address_of(frame), &found));
    return seep_held_frame_is_used(&f->search.python, &found, address_of(word));
}

/* 3.14: an address, where a count of them was. */
static void operands_end_where_the_frame_says(void **state)
{
    struct fixture *f = *state;
    uint64_t *frame = f->object;

    make_frame(f, frame, 10);
    for (unsigned minor = 14; minor <= 15; minor++) {
        be_version(f, minor);
        frame[8] = address_of(&frame[10 + LOCALS + 1]);
        assert_true(is_used(f, frame, LOCALS));
        assert_false(is_used(f, frame, LOCALS + 1));
        frame[8] = address_of(&frame[10 + LOCALS]);
        assert_true(is_used(f, frame, LOCALS - 1));
        assert_false(is_used(f, frame, LOCALS));
        frame[8] = 0; /* not known, as where it says what cannot be */
        assert_true(is_used(f, frame, LOCALS + 1));
        frame[8] = address_of(&frame[10 + LOCALS + OPERANDS + 1]);
        assert_true(is_used(f, frame, LOCALS + 1));
        frame[8] = address_of(frame);
        assert_true(is_used(f, frame, LOCALS + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_is_read_in_every_version, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(characters_of_a_text_refer_to_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_version_that_is_not_known_has_no_objects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_attribute_has_its_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_module_has_its_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_frozendict_has_keys, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_word_behind_the_locals_is_an_operand,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(operands_end_where_the_frame_says,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
