/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Layouts of CPython's objects; of its frames: cpython_frames.c; see cpython.h.
 * Each offset is that of the headers of the versions named beside it
 * (Include/cpython/, Objects/).
 */
#include "held/cpython.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define TYPE_AT 8U /* PyObject: reference count, type */
#define SIZE_AT 16U
#define TYPE_NAME_AT 24U
#define TYPE_BASIC_AT 32U
#define TYPE_ITEM_AT 40U
#define TYPE_FLAGS_AT 168U
#define TYPE_MEMBERS_AT 240U
#define TYPE_BASE_AT 256U
#define TYPE_DICT_AT 264U
#define TYPE_DICT_OFFSET_AT 288U
#define DICT_KEYS_AT 32U
#define DICT_VALUES_AT 40U
#define TYPES_MOST 262144U /* with what was asked and is none */
#define OBJECT_BYTES_MOST (UINT64_C(1) << 20) /* of a basic size */

bool seep_held_knows_python(uint32_t version)
{
    unsigned minor = version >> 16 & 0xff;

    return version == 0 ||
           (version >> 24 == 3 && minor >= SEEP_HELD_MINOR_MIN &&
            minor <= SEEP_HELD_MINOR_MAX);
}

bool seep_held_python_init(struct seep_held_python *python,
                           struct seep_held_memory *memory,
                           struct seep_store *store, uint64_t type_type,
                           unsigned minor)
{
    /* Where ht_cached_keys is in a heap type. */
    static const uint16_t cached_keys[] = {
        [8] = 872,  [9] = 864,  [10] = 872, [11] = 872,
        [12] = 880, [13] = 880, [14] = 880, [15] = 888,
    };

    if (minor < SEEP_HELD_MINOR_MIN || minor > SEEP_HELD_MINOR_MAX) {
        return false;
    }
    *python = (struct seep_held_python){
        .memory = memory,
        .store = store,
        .type_type = type_type,
        .minor = minor,
        .pool_bytes = minor < 10 ? 4096 : 16384,
        .cached_keys_offset = cached_keys[minor],
        .tuple_items_offset = minor < 14 ? 24 : 32,
        .module_name_offset = minor < 15 ? 48 : 40,
    };
    return true;
}

void seep_held_python_fini(struct seep_held_python *python)
{
    seep_store_table_fini(&python->types);
}

static bool is_address(uint64_t address)
{
    return address % 8 == 0 && address >= 65536 &&
           address < SEEP_HELD_ADDRESS_END;
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (!isprint((unsigned char)*text)) {
            return false;
        }
    }
    return true;
}

/* Its type is PyType_Type, or a type whose type that is. */
static bool is_type(struct seep_held_python *python, uint64_t address)
{
    struct seep_held_memory *memory = python->memory;
    uint64_t meta;

    if (!is_address(address)) {
        return false;
    }
    meta = seep_held_word(memory, address + TYPE_AT);
    return address == python->type_type || meta == python->type_type ||
           (meta != address && is_address(meta) &&
            seep_held_word(memory, meta + TYPE_AT) == python->type_type &&
            (seep_held_word(memory, meta + TYPE_FLAGS_AT) &
             SEEP_HELD_FLAG_TYPE) != 0);
}

static enum seep_held_species species_of(const char *name)
{
    static const struct {
        const char *name;
        enum seep_held_species species;
    } all[] = {
#define SPECIES_ROW(symbol, name) {name, SEEP_HELD_IS_##symbol},
        SEEP_HELD_SPECIES(SPECIES_ROW)
#undef SPECIES_ROW
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].species;
        }
    }
    return SEEP_HELD_SPECIES_NONE;
}

/* What lies before an object: links of the collector, and where instances have
 * their dict or their values (3.11) or these and weak references (3.12). */
static uint64_t head_bytes(const struct seep_held_python *python,
                           uint64_t flags)
{
    bool has_more = python->minor == 11   ? (flags >> 4 & 1) != 0
                    : python->minor >= 12 ? (flags >> 3 & 3) != 0
                                          : false;

    if ((flags & SEEP_HELD_FLAG_COLLECTED) == 0) {
        return 0;
    }
    return has_more ? 32 : 16;
}

static bool is_weak(enum seep_held_species species)
{
    switch (species) {
    case SEEP_HELD_IS_WEAKREF:
    case SEEP_HELD_IS_WEAK_PROXY:
    case SEEP_HELD_IS_WEAK_CALLABLE:
    case SEEP_HELD_IS_REFERENCE:
    case SEEP_HELD_IS_PROXY:
    case SEEP_HELD_IS_CALLABLE_PROXY:
        return true;
    default:
        return false;
    }
}

static bool is_inherited(enum seep_held_species species)
{
    return is_weak(species) || species == SEEP_HELD_IS_FROZENDICT;
}

#define BASES_MOST 12

/* A class that is made from weak references is one (KeyedRef), and one made
 * from frozendict has its table. */
static enum seep_held_species base_species(struct seep_held_python *python,
                                           uint64_t type)
{
    char name[SEEP_HELD_NAME_BYTES];

    for (int i = 0; i < BASES_MOST && is_address(type); i++) {
        struct seep_held_memory *memory = python->memory;

        if (seep_held_string(memory,
                             seep_held_word(memory, type + TYPE_NAME_AT), name,
                             sizeof(name)) &&
            is_inherited(species_of(name))) {
            return species_of(name);
        }
        type = seep_held_word(memory, type + TYPE_BASE_AT);
    }
    return SEEP_HELD_SPECIES_NONE;
}

/* More and more types of C are made as classes are, but named with their
 * module. */
static bool is_made_by_c(const struct seep_held_type *type)
{
    return (type->flags & SEEP_HELD_FLAG_HEAP_TYPE) == 0 ||
           strchr(type->name, '.') != NULL;
}

uint64_t seep_held_bytes_of_c(struct seep_held_python *python,
                              const struct seep_held_type *type)
{
    for (int i = 0; type->is_type && i < BASES_MOST; i++) {
        if (is_made_by_c(type)) {
            return type->basic_bytes;
        }
        type = seep_held_type_at(
            python,
            seep_held_word(python->memory, type->address + TYPE_BASE_AT));
    }
    return 0;
}

static void fill_type(struct seep_held_python *python,
                      struct seep_held_type *type)
{
    struct seep_held_memory *memory = python->memory;
    uint64_t at = type->address;
    char name[SEEP_HELD_NAME_BYTES];

    type->name = "";
    if (!is_type(python, at) ||
        !seep_held_string(memory, seep_held_word(memory, at + TYPE_NAME_AT),
                          name, sizeof(name)) ||
        *name == '\0' || !is_printable(name)) {
        return;
    }
    type->basic_bytes = seep_held_word(memory, at + TYPE_BASIC_AT);
    type->name = seep_store_text(python->store, name);
    if (type->basic_bytes < 16 || type->basic_bytes > OBJECT_BYTES_MOST ||
        type->name == NULL) {
        type->name = "";
        return;
    }
    type->item_bytes = seep_held_word(memory, at + TYPE_ITEM_AT);
    type->flags = seep_held_word(memory, at + TYPE_FLAGS_AT);
    type->dict_offset = seep_held_word(memory, at + TYPE_DICT_OFFSET_AT);
    type->head_bytes = head_bytes(python, type->flags);
    /* A class of the program's may have any name. */
    type->species =
        is_made_by_c(type) ? species_of(name) : base_species(python, at);
    type->is_weak = is_weak(type->species);
    /* 3.15: it begins as a dict does, which its type does not say. */
    type->flags |=
        type->species == SEEP_HELD_IS_FROZENDICT ? SEEP_HELD_FLAG_DICT : 0;
    type->is_type = true;
}

const struct seep_held_type *seep_held_type_at(struct seep_held_python *python,
                                               uint64_t address)
{
    static const struct seep_held_type none = {.name = ""};
    struct seep_store_entry *entry;
    struct seep_held_type *type;

    if (!is_address(address)) {
        return &none;
    }
    entry = seep_store_find(python->types.count < TYPES_MOST ||
                                    is_type(python, address)
                                ? python->store
                                : NULL,
                            &python->types, &address, sizeof(address));
    if (entry == NULL) {
        return &none;
    }
    if (entry->value != NULL) {
        return entry->value;
    }
    type = seep_store_take(python->store, 1, sizeof(*type));
    if (type == NULL) {
        return &none;
    }
    type->address = address;
    entry->value = type;
    fill_type(python, type);
    return type;
}

const struct seep_held_type *seep_held_type_of(struct seep_held_python *python,
                                               uint64_t object)
{
    return seep_held_type_at(python,
                             seep_held_word(python->memory, object + TYPE_AT));
}

/* Variable objects whose size field says something else. */
static bool size_is_odd(const struct seep_held_type *type)
{
    switch (type->species) {
    case SEEP_HELD_IS_INT:
    case SEEP_HELD_IS_FRAME:
    case SEEP_HELD_IS_GENERATOR:
    case SEEP_HELD_IS_COROUTINE:
    case SEEP_HELD_IS_ASYNC_GENERATOR:
    case SEEP_HELD_IS_CODE:
        return true;
    default:
        return (type->flags & SEEP_HELD_FLAG_LONG) != 0;
    }
}

uint64_t seep_held_object_bytes(struct seep_held_python *python,
                                uint64_t object,
                                const struct seep_held_type *type)
{
    int64_t count;
    uint64_t items;

    if (type->item_bytes == 0) {
        return type->basic_bytes;
    }
    if (size_is_odd(type)) {
        return 0;
    }
    count = (int64_t)seep_held_word(python->memory, object + SIZE_AT);
    items = count < 0 ? (uint64_t)0 - (uint64_t)count : (uint64_t)count;
    return items < (UINT64_C(1) << 40) && type->item_bytes < OBJECT_BYTES_MOST
               ? type->basic_bytes + items * type->item_bytes
               : UINT64_C(1) << 50;
}

/* A word that lay where a type was once, in a block that is something else
 * now, has no count of references, and does not fill its block. */
static bool is_object(struct seep_held_python *python, uint64_t at,
                      uint64_t start, uint64_t end)
{
    const struct seep_held_type *type = seep_held_type_of(python, at);
    uint64_t references;
    uint64_t bytes;

    if (!type->is_type || type->head_bytes != at - start) {
        return false;
    }
    references = seep_held_word(python->memory, at);
    if ((uint32_t)references == 0 ||
        (python->minor < 14 ? references >> 40 != 0
                            : (references >> 32 & 0xffff) != 0)) {
        return false;
    }
    bytes = seep_held_object_bytes(python, at, type);
    if (bytes == 0) {
        return true;
    }
    if (bytes > end - at) {
        return false;
    }
    return end - start > 520 || end - at - bytes < 16 || python->minor >= 13 ||
           type->item_bytes != 0 || (type->flags & SEEP_HELD_FLAG_TUPLE) != 0;
}

uint64_t seep_held_object_in(struct seep_held_python *python, uint64_t start,
                             uint64_t end)
{
    static const uint8_t heads[] = {0, 16, 32};

    for (size_t i = 0; i < sizeof(heads); i++) {
        uint64_t at = start + heads[i];

        if (end >= 16 && at <= end - 16 && is_object(python, at, start, end)) {
            return at;
        }
    }
    return 0;
}

#define ANY_BYTES (UINT64_C(1) << 40)

uint64_t seep_held_object_near(struct seep_held_python *python,
                               uint64_t address, uint64_t *ret_start,
                               uint64_t *ret_end)
{
    const struct seep_held_type *type = seep_held_type_of(python, address);
    uint64_t start = address - (type->is_type ? type->head_bytes : 0);
    uint64_t object = seep_held_object_in(python, start, start + ANY_BYTES);
    uint64_t bytes;

    if (object == 0 && start != address) {
        start = address;
        object = seep_held_object_in(python, start, start + ANY_BYTES);
    }
    if (object != 0) {
        type = seep_held_type_of(python, object);
        bytes = seep_held_object_bytes(python, object, type);
        *ret_start = start;
        *ret_end =
            object + (bytes < type->basic_bytes ? type->basic_bytes : bytes);
    }
    return object;
}

#define TEXT_CHARACTERS_MOST 64U

/* In the state of a str: its kind, whether its text lies behind it. */
struct text_state {
    unsigned kind;
    bool is_compact;
    bool is_ascii;
};

/* Behind two bits that say how it is interned. */
static struct text_state text_state(uint32_t state)
{
    return (struct text_state){
        .kind = state >> 2 & 7,
        .is_compact = (state >> 5 & 1) != 0,
        .is_ascii = (state >> 6 & 1) != 0,
    };
}

bool seep_held_python_text(struct seep_held_python *python, uint64_t object,
                           char *text, size_t capacity)
{
    const struct seep_held_type *type = seep_held_type_of(python, object);
    struct text_state state;
    uint8_t bytes[4 * TEXT_CHARACTERS_MOST];
    uint64_t length;
    uint64_t at;
    size_t used = 0;

    if (!type->is_type || (type->flags & SEEP_HELD_FLAG_STRING) == 0) {
        return false;
    }
    state = text_state((uint32_t)seep_held_int(python->memory, object + 32));
    length = seep_held_word(python->memory, object + SIZE_AT);
    length = length < TEXT_CHARACTERS_MOST ? length : TEXT_CHARACTERS_MOST;
    if (!state.is_compact ||
        (state.kind != 1 && state.kind != 2 && state.kind != 4)) {
        return false;
    }
    at = object + (python->minor <= 11 ? (state.is_ascii ? 48 : 72)
                                       : (state.is_ascii ? 40 : 56));
    if (!seep_held_read(python->memory, at, bytes, length * state.kind)) {
        return false;
    }
    for (uint64_t i = 0; i < length && used + 1 < capacity; i++) {
        const uint8_t *character = &bytes[i * state.kind];
        bool is_plain = *character >= 0x20 && *character < 0x7f;

        for (unsigned k = 1; k < state.kind; k++) {
            is_plain &= character[k] == 0;
        }
        text[used++] = is_plain ? (char)*character : '?';
    }
    text[used] = '\0';
    return true;
}

bool seep_held_is_other_text(struct seep_held_python *python, uint64_t object,
                             const struct seep_held_type *type, uint64_t offset)
{
    bool has_wide = python->minor <= 11;
    struct text_state state;

    if ((type->flags & SEEP_HELD_FLAG_STRING) == 0) {
        return false;
    }
    state = text_state((uint32_t)seep_held_int(python->memory, object + 32));
    return (has_wide && offset == 40) ||
           (!(state.is_compact && state.is_ascii) &&
            offset == (has_wide ? 56 : 48)) ||
           (!state.is_compact && offset == (has_wide ? 72 : 56));
}

static bool keys_since_11(struct seep_held_python *python, uint64_t keys,
                          struct seep_held_keys *ret_keys)
{
    uint8_t head[32];
    int64_t count;

    if (!seep_held_read(python->memory, keys, head, sizeof(head)) ||
        head[10] > 2 || head[9] > 40) {
        return false;
    }
    memcpy(&count, head + 24, sizeof(count));
    ret_keys->entries = keys + 32 + (UINT64_C(1) << head[9]);
    ret_keys->entry_bytes = head[10] == 0 ? 24 : 16;
    ret_keys->key_offset = head[10] == 0 ? 8 : 0;
    ret_keys->count = count < 0 ? 0 : (uint64_t)count;
    return true;
}

bool seep_held_keys_at(struct seep_held_python *python, uint64_t keys,
                       struct seep_held_keys *ret_keys)
{
    uint64_t size;
    uint64_t index_bytes;

    if (python->minor >= 11) {
        return keys_since_11(python, keys, ret_keys);
    }
    size = seep_held_word(python->memory, keys + 8);
    if (size == 0 || size > UINT64_C(1) << 40) {
        return false;
    }
    index_bytes = size <= UINT8_MAX    ? 1
                  : size <= UINT16_MAX ? 2
                  : size <= UINT32_MAX ? 4
                                       : 8;
    *ret_keys = (struct seep_held_keys){
        .entries = keys + 40 + size * index_bytes,
        .entry_bytes = 24,
        .key_offset = 8,
        .count = seep_held_word(python->memory, keys + 32),
    };
    return true;
}

bool seep_held_key_text(struct seep_held_python *python, uint64_t keys,
                        uint64_t index, char *text, size_t capacity)
{
    struct seep_held_keys found;

    return seep_held_keys_at(python, keys, &found) && index < found.count &&
           seep_held_python_text(
               python,
               seep_held_word(python->memory, found.entries +
                                                  index * found.entry_bytes +
                                                  found.key_offset),
               text, capacity);
}

uint64_t seep_held_dict_get(struct seep_held_python *python, uint64_t dict,
                            const char *name, uint64_t most)
{
    struct seep_held_memory *memory = python->memory;
    uint64_t keys = seep_held_word(memory, dict + DICT_KEYS_AT);
    uint64_t values = seep_held_word(memory, dict + DICT_VALUES_AT);
    struct seep_held_keys found;
    char text[SEEP_HELD_NAME_BYTES];

    if (!seep_held_keys_at(python, keys, &found)) {
        return 0;
    }
    for (uint64_t i = 0; i < found.count && i < most; i++) {
        uint64_t at = found.entries + i * found.entry_bytes + found.key_offset;

        if (!seep_held_python_text(python, seep_held_word(memory, at), text,
                                   sizeof(text)) ||
            strcmp(text, name) != 0) {
            continue;
        }
        /* 3.13: a byte count and the like stand before the values. */
        return values == 0
                   ? seep_held_word(memory, at + 8)
                   : seep_held_word(memory, values + 8 * i +
                                                (python->minor >= 13 ? 8 : 0));
    }
    return 0;
}

#define GLOBALS_LEAST 4U

bool seep_held_module_of(struct seep_held_python *python, uint64_t dict,
                         char *text, size_t capacity)
{
    struct seep_held_memory *memory = python->memory;
    uint64_t name;

    if (seep_held_word(memory, dict + SIZE_AT) < GLOBALS_LEAST ||
        seep_held_word(memory, dict + DICT_VALUES_AT) != 0) {
        return false;
    }
    name = seep_held_dict_get(python, dict, "__name__", 8);
    return name != 0 &&
           seep_held_dict_get(python, dict, "__loader__", 8) != 0 &&
           seep_held_dict_get(python, dict, "__spec__", 8) != 0 &&
           seep_held_python_text(python, name, text, capacity);
}

void seep_held_type_text(struct seep_held_python *python, uint64_t type,
                         char *text, size_t capacity)
{
    const struct seep_held_type *found = seep_held_type_at(python, type);
    char module[SEEP_HELD_NAME_BYTES];
    uint64_t dict = 0;
    uint64_t name = 0;

    if ((found->flags & SEEP_HELD_FLAG_HEAP_TYPE) != 0) {
        dict = seep_held_word(python->memory, type + TYPE_DICT_AT);
    }
    if (is_address(dict)) {
        name = seep_held_dict_get(python, dict, "__module__", 60);
    }
    if (name != 0 &&
        seep_held_python_text(python, name, module, sizeof(module)) &&
        strcmp(module, "builtins") != 0 && strchr(found->name, '.') == NULL) {
        snprintf(text, capacity, "%s.%s", module, found->name);
    } else {
        snprintf(text, capacity, "%s", found->name);
    }
}

#define MEMBERS_MOST 64U

/* PyMemberDef: name, type, offset, flags, text. */
static bool member_text(struct seep_held_python *python,
                        const struct seep_held_type *type, uint64_t offset,
                        char *text, size_t capacity)
{
    struct seep_held_memory *memory = python->memory;

    for (int i = 0; type->is_type && i < BASES_MOST; i++) {
        uint64_t at = seep_held_word(memory, type->address + TYPE_MEMBERS_AT);

        for (uint32_t k = 0; at != 0 && k < MEMBERS_MOST; k++, at += 40) {
            uint64_t name = seep_held_word(memory, at);

            if (name == 0) {
                break;
            }
            if (seep_held_word(memory, at + 16) == offset) {
                return seep_held_string(memory, name, text, capacity) &&
                       *text != '\0' && is_printable(text);
            }
        }
        type = seep_held_type_at(
            python, seep_held_word(memory, type->address + TYPE_BASE_AT));
    }
    return false;
}

/* Fields that no table of the type's tells; 0 in a version: not there. */
struct field {
    enum seep_held_species species;
    unsigned from; /* minor versions */
    unsigned to;
    uint16_t offset;
    const char *name;
};

#define LAST SEEP_HELD_MINOR_MAX

static const struct field fields[] = {
    {SEEP_HELD_IS_FUNCTION, 8, 8, 16, "__code__"},
    {SEEP_HELD_IS_FUNCTION, 8, 8, 24, "__globals__"},
    {SEEP_HELD_IS_FUNCTION, 8, 8, 32, "__defaults__"},
    {SEEP_HELD_IS_FUNCTION, 8, 8, 40, "__kwdefaults__"},
    {SEEP_HELD_IS_FUNCTION, 8, 8, 48, "__closure__"},
    {SEEP_HELD_IS_FUNCTION, 8, 8, 72, "__dict__"},
    {SEEP_HELD_IS_FUNCTION, 9, 9, 16, "__code__"},
    {SEEP_HELD_IS_FUNCTION, 9, 9, 24, "__globals__"},
    {SEEP_HELD_IS_FUNCTION, 9, 9, 32, "__defaults__"},
    {SEEP_HELD_IS_FUNCTION, 9, 9, 40, "__kwdefaults__"},
    {SEEP_HELD_IS_FUNCTION, 9, 9, 48, "__closure__"},
    {SEEP_HELD_IS_FUNCTION, 9, 9, 72, "__dict__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 16, "__globals__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 24, "__builtins__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 48, "__code__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 56, "__defaults__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 64, "__kwdefaults__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 72, "__closure__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 80, "__doc__"},
    {SEEP_HELD_IS_FUNCTION, 10, LAST, 88, "__dict__"},
    {SEEP_HELD_IS_CELL, 8, LAST, 16, "cell_contents"},
    {SEEP_HELD_IS_METHOD, 8, LAST, 16, "__func__"},
    {SEEP_HELD_IS_METHOD, 8, LAST, 24, "__self__"},
    {SEEP_HELD_IS_BUILTIN, 8, LAST, 24, "__self__"},
    {SEEP_HELD_IS_MODULE, 8, LAST, 16, "__dict__"},
    {SEEP_HELD_IS_TRACEBACK, 8, LAST, 16, "tb_next"},
    {SEEP_HELD_IS_TRACEBACK, 8, LAST, 24, "tb_frame"},
    {SEEP_HELD_IS_PROPERTY, 8, LAST, 16, "fget"},
    {SEEP_HELD_IS_NDARRAY, 8, LAST, 48, "base"},
    {SEEP_HELD_IS_FRAME, 8, 10, 24, "f_back"},
    {SEEP_HELD_IS_FRAME, 11, LAST, 16, "f_back"},
    {SEEP_HELD_IS_LRU_CACHE, 8, LAST, 72, "cache"},
    {SEEP_HELD_IS_LRU_ELEMENT, 8, LAST, 40, "key"},
    {SEEP_HELD_IS_LRU_ELEMENT, 8, LAST, 48, "result"},
    {SEEP_HELD_IS_CODE, 8, 10, 56, "co_consts"},
    {SEEP_HELD_IS_CODE, 11, LAST, 24, "co_consts"},
};

#undef LAST

/* Of every exception: {3.8 to 3.10, 3.11 on}. */
static const struct {
    uint16_t offsets[2];
    const char *name;
} exception_fields[] = {
    {{16, 16}, "__dict__"},      {{24, 24}, "args"},
    {{32, 40}, "__traceback__"}, {{40, 48}, "__context__"},
    {{48, 56}, "__cause__"},
};

bool seep_held_field_text(struct seep_held_python *python,
                          const struct seep_held_type *type, uint64_t offset,
                          char *text, size_t capacity)
{
    size_t count = sizeof(exception_fields) / sizeof(exception_fields[0]);

    if (member_text(python, type, offset, text, capacity)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const struct field *field = &fields[i];

        if (field->species == type->species && field->offset == offset &&
            python->minor >= field->from && python->minor <= field->to) {
            snprintf(text, capacity, "%s", field->name);
            return true;
        }
    }
    for (size_t i = 0;
         (type->flags & SEEP_HELD_FLAG_EXCEPTION) != 0 && i < count; i++) {
        if (exception_fields[i].offsets[python->minor >= 11] == offset) {
            snprintf(text, capacity, "%s", exception_fields[i].name);
            return true;
        }
    }
    if (type->dict_offset == offset && offset != 0) {
        snprintf(text, capacity, "__dict__");
        return true;
    }
    return false;
}
