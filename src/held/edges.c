/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How one thing has another: an item, an attribute, a local variable.
 *
 * Invariant: a word that the object itself says is past what it has (a slot of
 * a list behind its size) is stale, and told as such; what no rule knows is an
 * offset.
 */
#include <stdio.h>
#include <string.h>

#include "held/search.h"

#define ITEMS_AT 24U  /* of a list */
#define SIZE_AT 16U   /* of what has items */
#define USED_AT 24U   /* of a set */
#define TABLE_AT 40U  /* of a set */
#define KEYS_AT 32U   /* of a dict */
#define VALUES_AT 40U /* of a dict */
#define DATA_AT 16U   /* of an array of numpy */
/* Of a deque: its first and its last block, and slots of these; a block is a
 * link, slots, and a link. */
#define FIRST_BLOCK_AT 24
#define LAST_BLOCK_AT 32
#define FIRST_SLOT_AT 40
#define LAST_SLOT_AT 48
#define BLOCK_SLOTS 64U

static bool is_list(const struct seep_held_type *type)
{
    return (type->flags & SEEP_HELD_FLAG_LIST) != 0;
}

static bool is_dict(const struct seep_held_type *type)
{
    return (type->flags & SEEP_HELD_FLAG_DICT) != 0;
}

static bool is_set(const struct seep_held_type *type)
{
    return type->species == SEEP_HELD_IS_SET ||
           type->species == SEEP_HELD_IS_FROZENSET;
}

static bool is_class(const struct seep_held_type *type)
{
    return (type->flags & SEEP_HELD_FLAG_TYPE) != 0;
}

/* The word before an instance that leads to the values of its attributes: at
 * -32 in 3.11, at -24 in 3.12, where it is less by one. */
static bool is_values_word(const struct seep_held_search *search,
                           int64_t offset)
{
    return (search->python.minor == 11 || search->python.minor == 12) &&
           (offset == -32 || offset == -24);
}

bool seep_held_owns(struct seep_held_search *search,
                    const struct seep_held_node *node, uint64_t at)
{
    const struct seep_held_type *type =
        seep_held_type_at(&search->python, node->type);
    int64_t offset = (int64_t)(at - node->address);

    return (is_list(type) && offset == ITEMS_AT) ||
           type->species == SEEP_HELD_IS_DEQUE ||
           (is_dict(type) && (offset == KEYS_AT || offset == VALUES_AT)) ||
           (is_set(type) && offset == TABLE_AT) ||
           is_values_word(search, offset) ||
           type->species == SEEP_HELD_IS_NDARRAY ||
           type->species == SEEP_HELD_IS_BYTEARRAY ||
           (is_class(type) &&
            (uint64_t)offset == search->python.cached_keys_offset);
}

static void set_name(struct seep_held_search *search,
                     struct seep_held_step *step, enum seep_held_edge edge,
                     const char *name)
{
    step->edge = edge;
    step->edge_name = seep_held_text(search, name);
}

/* A value of a dict, by where in its table of entries the word lies. */
static bool dict_edge(struct seep_held_search *search,
                      const struct seep_held_node *node, int64_t offset,
                      const struct seep_held_node *buffer, uint64_t in_buffer,
                      struct seep_held_step *step)
{
    struct seep_held_python *python = &search->python;
    uint64_t keys = seep_held_word(search->memory, node->address + KEYS_AT);
    struct seep_held_keys found;
    char name[SEEP_HELD_NAME_BYTES] = "";
    uint64_t index;

    step->edge = SEEP_HELD_EDGE_KEY;
    if (!seep_held_keys_at(python, keys, &found)) {
        return true; /* it is being made larger: some key */
    }
    if (offset == VALUES_AT) {
        uint64_t values =
            seep_held_word(search->memory, node->address + VALUES_AT) +
            (python->minor >= 13 ? 8 : 0);

        index = (in_buffer - values) / 8;
    } else {
        /* The table may be a new one by now: by the one that was seen. */
        uint64_t entries = found.entries - keys + buffer->start;

        if (keys != buffer->start && keys - buffer->start < 64) {
            entries = found.entries;
        }
        index = (in_buffer - entries) / found.entry_bytes;
        if (in_buffer < entries || index >= found.count) {
            return false;
        }
        if ((in_buffer - entries) % found.entry_bytes == found.key_offset) {
            step->edge = SEEP_HELD_EDGE_KEY_ITSELF;
        }
    }
    if (seep_held_key_text(python, keys, index, name, sizeof(name))) {
        step->edge_name = seep_held_text(search, name);
    }
    return true;
}

static void values_edge(struct seep_held_search *search,
                        const struct seep_held_type *type, uint64_t at,
                        uint64_t in_buffer, struct seep_held_step *step)
{
    struct seep_held_python *python = &search->python;
    uint64_t values =
        seep_held_word(search->memory, at) + (python->minor == 12 ? 1 : 0);
    uint64_t keys = seep_held_word(search->memory,
                                   type->address + python->cached_keys_offset);
    char name[SEEP_HELD_NAME_BYTES];

    if (seep_held_key_text(python, keys, (in_buffer - values) / 8, name,
                           sizeof(name))) {
        set_name(search, step, SEEP_HELD_EDGE_ATTRIBUTE, name);
    } else {
        set_name(search, step, SEEP_HELD_EDGE_ATTRIBUTE, "?");
    }
}

static bool field_edge(struct seep_held_search *search,
                       const struct seep_held_type *type, int64_t offset,
                       struct seep_held_step *step)
{
    char name[SEEP_HELD_NAME_BYTES];

    if (offset < 0 ||
        !seep_held_field_text(&search->python, type, (uint64_t)offset, name,
                              sizeof(name))) {
        return false;
    }
    set_name(search, step, SEEP_HELD_EDGE_ATTRIBUTE, name);
    return true;
}

/* Of a deque's first and last block the slots between its two indices; blocks
 * that it keeps for later have none. What was there before still stands in
 * them: of a waiter that is gone, whatever the memory was before. */
static bool deque_has(struct seep_held_search *search,
                      const struct seep_held_node *node, int64_t offset,
                      const struct seep_held_node *buffer, uint64_t in_buffer)
{
    struct seep_held_memory *memory = search->memory;
    uint64_t first = seep_held_word(memory, node->address + FIRST_BLOCK_AT);
    uint64_t last = seep_held_word(memory, node->address + LAST_BLOCK_AT);
    uint64_t slot = (in_buffer - buffer->start) / 8 - 1;

    if (offset != FIRST_BLOCK_AT && offset != LAST_BLOCK_AT) {
        return false;
    }
    if (slot >= BLOCK_SLOTS) {
        return true; /* the way to its neighbours */
    }
    return (buffer->start != first ||
            slot >= seep_held_word(memory, node->address + FIRST_SLOT_AT)) &&
           (buffer->start != last ||
            (int64_t)slot <=
                (int64_t)seep_held_word(memory, node->address + LAST_SLOT_AT));
}

bool seep_held_joins(struct seep_held_search *search,
                     const struct seep_held_node *node,
                     const struct seep_held_node *buffer, uint64_t at)
{
    return seep_held_type_at(&search->python, node->type)->species ==
               SEEP_HELD_IS_DEQUE &&
           (at - buffer->start) / 8 - 1 >= BLOCK_SLOTS;
}

/* Through a buffer that the object has. */
static bool buffer_edge(struct seep_held_search *search,
                        const struct seep_held_node *node, uint64_t at,
                        const struct seep_held_node *buffer, uint64_t in_buffer,
                        struct seep_held_step *step)
{
    const struct seep_held_type *type =
        seep_held_type_at(&search->python, node->type);
    int64_t offset = (int64_t)(at - node->address);

    if (is_list(type)) {
        step->edge = SEEP_HELD_EDGE_ITEM;
        return (in_buffer - buffer->start) / 8 <
               seep_held_word(search->memory, node->address + SIZE_AT);
    }
    if (type->species == SEEP_HELD_IS_DEQUE) {
        step->edge = SEEP_HELD_EDGE_ITEM;
        return deque_has(search, node, offset, buffer, in_buffer);
    }
    if (is_class(type) &&
        (uint64_t)offset == search->python.cached_keys_offset) {
        return false;
    }
    if (is_dict(type) && (offset == KEYS_AT || offset == VALUES_AT)) {
        return dict_edge(search, node, offset, buffer, in_buffer, step);
    }
    if (is_set(type) && offset == TABLE_AT) {
        step->edge = SEEP_HELD_EDGE_MEMBER;
        return true;
    }
    if (is_values_word(search, offset)) {
        values_edge(search, type, at, in_buffer, step);
        return true;
    }
    if ((type->species == SEEP_HELD_IS_NDARRAY && offset == DATA_AT) ||
        type->species == SEEP_HELD_IS_BYTEARRAY) {
        step->edge = SEEP_HELD_EDGE_DATA;
        /* Bytes refer to nothing, whatever they look like, or lies behind. */
        return type->species == SEEP_HELD_IS_NDARRAY;
    }
    if (!field_edge(search, type, offset, step)) {
        step->edge = SEEP_HELD_EDGE_OFFSET;
        step->offset_bytes = offset;
    }
    return true;
}

static bool local_edge(struct seep_held_search *search,
                       const struct seep_held_node *node,
                       const struct seep_held_type *type, uint64_t at,
                       struct seep_held_step *step)
{
    struct seep_held_python *python = &search->python;
    struct seep_held_frame frame;
    struct seep_held_code code;
    char name[SEEP_HELD_NAME_BYTES];

    if (!seep_held_frame_in_object(python, node->address, type, at, &frame) ||
        !seep_held_code_read(python, frame.code, &code)) {
        return false;
    }
    step->edge = SEEP_HELD_EDGE_OPERAND;
    step->edge_function = seep_held_text(search, code.function);
    if (frame.index < code.local_count &&
        seep_held_local_text(python, &code, frame.index, name, sizeof(name))) {
        set_name(search, step, SEEP_HELD_EDGE_LOCAL, name);
    }
    return true;
}

/* 3.13 on: values behind the object itself, after a byte count and the like. */
static bool inline_edge(struct seep_held_search *search,
                        const struct seep_held_type *type, int64_t offset,
                        struct seep_held_step *step)
{
    struct seep_held_python *python = &search->python;
    uint64_t from = type->basic_bytes + 8;
    uint64_t keys = seep_held_word(search->memory,
                                   type->address + python->cached_keys_offset);
    char name[SEEP_HELD_NAME_BYTES];

    if (python->minor < 13 ||
        (type->flags & SEEP_HELD_FLAG_INLINE_VALUES) == 0 ||
        offset < (int64_t)from ||
        !seep_held_key_text(python, keys, ((uint64_t)offset - from) / 8, name,
                            sizeof(name))) {
        return false;
    }
    set_name(search, step, SEEP_HELD_EDGE_ATTRIBUTE, name);
    return true;
}

static void own_edge(struct seep_held_search *search,
                     const struct seep_held_node *node, uint64_t at,
                     struct seep_held_step *step)
{
    const struct seep_held_type *type =
        seep_held_type_at(&search->python, node->type);
    int64_t offset = (int64_t)(at - node->address);

    if ((type->flags & SEEP_HELD_FLAG_TUPLE) != 0) {
        step->edge = SEEP_HELD_EDGE_ITEM;
        return;
    }
    if (is_set(type)) { /* a small one has its table in itself */
        step->edge = SEEP_HELD_EDGE_MEMBER;
        return;
    }
    if ((type->species == SEEP_HELD_IS_NDARRAY && offset == DATA_AT) ||
        type->species == SEEP_HELD_IS_BYTEARRAY ||
        seep_held_is_number(search, node, at)) {
        step->edge = SEEP_HELD_EDGE_DATA;
        return;
    }
    if (field_edge(search, type, offset, step) ||
        inline_edge(search, type, offset, step)) {
        return;
    }
    if (offset == -24 && search->python.minor >= 11) {
        set_name(search, step, SEEP_HELD_EDGE_ATTRIBUTE, "__dict__");
        return;
    }
    if (seep_held_has_frame(type) && local_edge(search, node, type, at, step)) {
        return;
    }
    step->edge = SEEP_HELD_EDGE_OFFSET;
    step->offset_bytes = offset;
}

bool seep_held_edge_of(struct seep_held_search *search,
                       const struct seep_held_node *node, uint64_t at,
                       const struct seep_held_node *buffer, uint64_t in_buffer,
                       struct seep_held_step *ret_step)
{
    ret_step->edge_name = "";
    ret_step->edge_function = "";
    ret_step->offset_bytes = 0;
    if (node->kind == SEEP_HELD_OBJECT &&
        seep_held_word(search->memory, node->address) == 0) {
        ret_step->edge = SEEP_HELD_EDGE_OFFSET;
        return false; /* no reference: it lies in a free list of its kind */
    }
    if (buffer != NULL) {
        return buffer_edge(search, node, at, buffer, in_buffer, ret_step);
    }
    own_edge(search, node, at, ret_step);
    return true;
}

/*
 * Where the type of a thing may be known: which file, and what of it. The
 * search itself needs no types; who tells the answer asks for them.
 *
 * Invariant: nothing but headers of a file is read for it.
 */

#define FUNCTIONS_LOOKED_AT 4U

/* Code of the class, by which one of several of its name is known: the first of
 * its virtual functions that are of the same file. 0: none */
static uint64_t function_of(struct seep_held_search *search, uint64_t vtable,
                            const char *file)
{
    for (uint64_t i = 0; i < FUNCTIONS_LOOKED_AT; i++) {
        uint64_t function = seep_held_word(search->memory, vtable + 8 * i);
        const struct seep_held_map *map =
            seep_held_map_at(search->memory, function);

        if (map != NULL && map->is_code && strcmp(map->path, file) == 0) {
            return function;
        }
    }
    return 0;
}

static void note_class(struct seep_held_search *search, uint64_t vtable,
                       struct seep_held_step *step)
{
    const struct seep_held_map *map = seep_held_map_at(search->memory, vtable);
    char symbol[SEEP_HELD_CLASS_BYTES];
    uint64_t function;
    uint64_t bias;

    if (map == NULL ||
        !seep_held_class_symbol_of(&search->images, vtable, symbol)) {
        return;
    }
    function = function_of(search, vtable, map->path);
    if (function != 0 &&
        seep_held_image_bias(&search->images, map->path, &bias)) {
        step->type_address = function - bias;
    }
    step->type_symbol = seep_held_text(search, symbol);
    step->type_file = seep_held_text(search, map->path);
}

static void note_global(struct seep_held_search *search,
                        const struct seep_held_node *node,
                        struct seep_held_step *step)
{
    const struct seep_held_image *image =
        seep_held_image_at(&search->images, node->start);

    if (image != NULL && *node->name != '\0') {
        step->type_file = seep_held_text(search, image->path);
        step->type_address = node->start - image->bias;
    }
}

void seep_held_note_type(struct seep_held_search *search,
                         const struct seep_held_node *node,
                         struct seep_held_step *step)
{
    step->type_file = "";
    step->type_symbol = "";
    step->type_address = 0;
    if (step->kind == SEEP_HELD_KIND_CXX_OBJECT) {
        note_class(search, node->type, step);
    } else if (step->kind == SEEP_HELD_KIND_GLOBAL) {
        note_global(search, node, step);
    } else if (step->kind == SEEP_HELD_KIND_THREAD_LOCAL && node->type != 0) {
        step->type_file =
            seep_held_text(search, seep_held_program_path(search->memory));
        step->type_address = node->type - 1;
    }
}

/*
 * Words for a node.
 */

static void count_items(struct seep_held_search *search,
                        const struct seep_held_node *node,
                        const struct seep_held_type *type,
                        struct seep_held_step *step)
{
    step->has_items = is_list(type) || is_dict(type) ||
                      type->species == SEEP_HELD_IS_DEQUE || is_set(type);
    step->items = !step->has_items
                      ? 0
                      : seep_held_word(search->memory,
                                       node->address +
                                           (is_set(type) ? USED_AT : SIZE_AT));
}

void seep_held_describe(struct seep_held_search *search,
                        struct seep_held_node *node,
                        struct seep_held_step *ret_step)
{
    char name[2 * SEEP_HELD_NAME_BYTES];

    ret_step->name = node->name;
    ret_step->function = node->function;
    ret_step->file = node->file;
    ret_step->address = node->address;
    ret_step->bytes = node->end - node->start;
    ret_step->has_items = false;
    ret_step->items = 0;
    if (node->kind == SEEP_HELD_ROOT || node->rank != SEEP_HELD_NO_RANK) {
        ret_step->kind = node->words;
        return;
    }
    if (node->kind == SEEP_HELD_OBJECT) {
        ret_step->kind = SEEP_HELD_KIND_OBJECT;
        seep_held_type_text(&search->python, node->type, name, sizeof(name));
        ret_step->name = seep_held_text(search, name);
        count_items(search, node,
                    seep_held_type_at(&search->python, node->type), ret_step);
        return;
    }
    seep_held_read_class(search, node);
    ret_step->kind =
        node->type != 0 ? SEEP_HELD_KIND_CXX_OBJECT : SEEP_HELD_KIND_BLOCK;
}
