/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Objects of CPython 3.8 to 3.15, read from outside: types, names, dicts,
 * frames. x86-64 and aarch64 alike; builds with a GIL, without --with-pydebug.
 *
 * Invariant: an address is an object only if the word behind it is a type, and
 * a type only if its own type leads to PyType_Type within two steps; nothing is
 * believed beyond the read that shows it, and each walk has an end.
 *
 * Units: bytes. Threads: one at a time.
 */
#ifndef SEEP_HELD_CPYTHON_H
#define SEEP_HELD_CPYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "held/held.h"
#include "held/memory.h"
#include "reader/recording/store.h"

#define SEEP_HELD_NAME_BYTES 96U
/* The versions that are known: 3.8 to 3.15. */
#define SEEP_HELD_MINOR_MIN 8U
#define SEEP_HELD_MINOR_MAX 15U

/** What a type is to the search: X(SYMBOL, "its name"). Others are NONE. */
#define SEEP_HELD_SPECIES(X)                       \
    X(LIST, "list")                                \
    X(TUPLE, "tuple")                              \
    X(DICT, "dict")                                \
    X(FROZENDICT, "frozendict")                    \
    X(SET, "set")                                  \
    X(FROZENSET, "frozenset")                      \
    X(DEQUE, "collections.deque")                  \
    X(STR, "str")                                  \
    X(INT, "int")                                  \
    X(CODE, "code")                                \
    X(FRAME, "frame")                              \
    X(GENERATOR, "generator")                      \
    X(COROUTINE, "coroutine")                      \
    X(ASYNC_GENERATOR, "async_generator")          \
    X(FUNCTION, "function")                        \
    X(METHOD, "method")                            \
    X(BUILTIN, "builtin_function_or_method")       \
    X(CELL, "cell")                                \
    X(MODULE, "module")                            \
    X(TRACEBACK, "traceback")                      \
    X(NDARRAY, "numpy.ndarray")                    \
    X(BYTEARRAY, "bytearray")                      \
    X(LRU_CACHE, "functools._lru_cache_wrapper")   \
    X(LRU_ELEMENT, "functools._lru_list_elem")     \
    X(WEAKREF, "weakref")                          \
    X(WEAK_PROXY, "weakproxy")                     \
    X(WEAK_CALLABLE, "weakcallableproxy")          \
    X(REFERENCE, "weakref.ReferenceType")          \
    X(PROXY, "weakref.ProxyType")                  \
    X(CALLABLE_PROXY, "weakref.CallableProxyType") \
    X(PROPERTY, "property")                        \
    X(STATIC_METHOD, "staticmethod")               \
    X(CLASS_METHOD, "classmethod")

enum seep_held_species {
    SEEP_HELD_SPECIES_NONE,
#define SEEP_HELD_SPECIES_VALUE(symbol, name) SEEP_HELD_IS_##symbol,
    SEEP_HELD_SPECIES(SEEP_HELD_SPECIES_VALUE)
#undef SEEP_HELD_SPECIES_VALUE
};

/** What is known of a type; it is read once. */
struct seep_held_type {
    uint64_t address;
    bool is_type;
    bool is_weak; /* what it refers to it does not hold */
    enum seep_held_species species;
    const char *name; /* as tp_name has it */
    uint64_t flags;
    uint64_t basic_bytes;
    uint64_t item_bytes;
    uint64_t dict_offset;
    uint64_t head_bytes; /* of the collector and the like, before an object */
};

#define SEEP_HELD_FLAG_INLINE_VALUES (UINT64_C(1) << 2) /* 3.13 on */
#define SEEP_HELD_FLAG_HEAP_TYPE (UINT64_C(1) << 9)
#define SEEP_HELD_FLAG_COLLECTED (UINT64_C(1) << 14)
#define SEEP_HELD_FLAG_LONG (UINT64_C(1) << 24)
#define SEEP_HELD_FLAG_LIST (UINT64_C(1) << 25)
#define SEEP_HELD_FLAG_TUPLE (UINT64_C(1) << 26)
#define SEEP_HELD_FLAG_BYTES (UINT64_C(1) << 27)
#define SEEP_HELD_FLAG_STRING (UINT64_C(1) << 28)
#define SEEP_HELD_FLAG_DICT (UINT64_C(1) << 29)
#define SEEP_HELD_FLAG_EXCEPTION (UINT64_C(1) << 30)
#define SEEP_HELD_FLAG_TYPE (UINT64_C(1) << 31)

struct seep_held_python {
    struct seep_held_memory *memory;
    struct seep_store *store; /* of names */
    uint64_t type_type;       /* PyType_Type */
    unsigned minor;           /* of one that is known */
    struct seep_store_table types;
    uint64_t pool_bytes;
    uint64_t cached_keys_offset; /* in a heap type */
    uint64_t tuple_items_offset;
    uint64_t module_name_offset;
};

/** @return false: this version is not known */
bool seep_held_python_init(struct seep_held_python *python,
                           struct seep_held_memory *memory,
                           struct seep_store *store, uint64_t type_type,
                           unsigned minor);
void seep_held_python_fini(struct seep_held_python *python);

/** What stands at @address; .is_type false for what is no type. NULL only
 * without memory. */
const struct seep_held_type *seep_held_type_at(struct seep_held_python *python,
                                               uint64_t address);

/** The type of the object at @object; never NULL, .is_type may be false. */
const struct seep_held_type *seep_held_type_of(struct seep_held_python *python,
                                               uint64_t object);

/** How much of an object has a layout that C gave it: all of it, or, of a class
 * that is made from such, what it has from there. */
uint64_t seep_held_bytes_of_c(struct seep_held_python *python,
                              const struct seep_held_type *type);

/** The object in the block [start, end); 0: there is none. */
uint64_t seep_held_object_in(struct seep_held_python *python, uint64_t start,
                             uint64_t end);

/** The object that begins, or whose head begins, at @address, of which nobody
 * knows the block; 0: there is none. */
uint64_t seep_held_object_near(struct seep_held_python *python,
                               uint64_t address, uint64_t *ret_start,
                               uint64_t *ret_end);

/** The object's size; 0: it varies, and is not known. */
uint64_t seep_held_object_bytes(struct seep_held_python *python,
                                uint64_t object,
                                const struct seep_held_type *type);

/** Text of the str at @object into @text. @return false: it is none */
bool seep_held_python_text(struct seep_held_python *python, uint64_t object,
                           char *text, size_t capacity);

/** Does the word @offset of the str at @object lead to another form of its
 * text: wchar_t (to 3.11), UTF-8, or all of it in one that is not compact? What
 * else it has is characters. @type: of a str or of bytes, no class made from
 * them. */
bool seep_held_is_other_text(struct seep_held_python *python, uint64_t object,
                             const struct seep_held_type *type,
                             uint64_t offset);

/** Entries of a dict's keys. */
struct seep_held_keys {
    uint64_t entries;
    uint64_t entry_bytes;
    uint64_t key_offset; /* in an entry; the value is the next word */
    uint64_t count;
};
bool seep_held_keys_at(struct seep_held_python *python, uint64_t keys,
                       struct seep_held_keys *ret_keys);

/** Name of key @index; false if it is no str. */
bool seep_held_key_text(struct seep_held_python *python, uint64_t keys,
                        uint64_t index, char *text, size_t capacity);

/** The value of @name in the dict; 0: it has none, at its beginning. */
uint64_t seep_held_dict_get(struct seep_held_python *python, uint64_t dict,
                            const char *name, uint64_t most);

/** Is @dict the globals of a module? Its name, or file, into @text. */
bool seep_held_module_of(struct seep_held_python *python, uint64_t dict,
                         char *text, size_t capacity);

/** "module.Class", of the type at @type. */
void seep_held_type_text(struct seep_held_python *python, uint64_t type,
                         char *text, size_t capacity);

/** The name of the field at @offset of objects of @type. */
bool seep_held_field_text(struct seep_held_python *python,
                          const struct seep_held_type *type, uint64_t offset,
                          char *text, size_t capacity);

/* Frames. */

struct seep_held_code {
    uint64_t local_count;
    uint64_t stack_count;
    uint64_t names[3]; /* tuples of the locals' names; 0: none */
    char function[SEEP_HELD_NAME_BYTES];
    char file[SEEP_HELD_NAME_BYTES]; /* without its folder */
};

/** Do objects of @type have a frame in themselves? */
bool seep_held_has_frame(const struct seep_held_type *type);

/** A word of a running or suspended frame. */
struct seep_held_frame {
    uint64_t address;
    uint64_t code;
    uint64_t index; /* of the word: a local, or an operand behind them */
};

bool seep_held_code_read(struct seep_held_python *python, uint64_t code,
                         struct seep_held_code *ret_code);
bool seep_held_local_text(struct seep_held_python *python,
                          const struct seep_held_code *code, uint64_t index,
                          char *text, size_t capacity);

/** The frame whose locals or operands @address is one of, not below @lowest;
 * of 3.11 and later. */
bool seep_held_frame_at(struct seep_held_python *python, uint64_t address,
                        uint64_t lowest, struct seep_held_frame *ret_frame);

/** The same of a frame object of any version that has its locals itself. */
bool seep_held_frame_in_object(struct seep_held_python *python, uint64_t object,
                               const struct seep_held_type *type,
                               uint64_t address,
                               struct seep_held_frame *ret_frame);

/** To 3.10: does the frame run that is the object @object? How many operands it
 * has is not known then. */
bool seep_held_frame_runs(struct seep_held_python *python, uint64_t object);

/** Is the word @address of @frame one of its locals, or an operand that it has?
 * What lies behind these is from before. */
bool seep_held_frame_is_used(struct seep_held_python *python,
                             const struct seep_held_frame *frame,
                             uint64_t address);

#endif
