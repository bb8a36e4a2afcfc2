/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a code object says of itself: names, file, lines.
 *
 * Invariant: everything is checked before it is followed (the type of each
 * object, each length), so that a wrong offset ends in `false`. What is copied
 * is valid UTF-8 and ends within the buffer. No pointer of Python's is to be
 * kept past the capture: a code object dies, and its address is used again.
 */
#ifndef SEEP_CAPTURE_PYTHON_CODE_H
#define SEEP_CAPTURE_PYTHON_CODE_H

#include "capture/python_memory.h"
#include "capture/python_symbols.h"

/** Which code object it is, to notice another at the same address. */
struct seep_python_identity {
    uint64_t code;
    uint64_t filename; /* where it lies, and how it ends */
    uint64_t name;     /* the one that is told */
    uint64_t lines;
    uint64_t lines_bytes;
    uint64_t lines_head; /* its first and last 8 bytes */
    uint64_t lines_tail;
    int64_t first_line;
    uint64_t hash; /* of the above */
};

/** By products that do not wait for each other: the key of two caches. */
static inline uint64_t
seep_python_identity_hash(const struct seep_python_identity *identity)
{
    return identity->code * UINT64_C(0x9e3779b97f4a7c15) +
           identity->filename * UINT64_C(0xbf58476d1ce4e5b9) +
           identity->name * UINT64_C(0x94d049bb133111eb) +
           identity->lines * UINT64_C(0xd6e8feb86659fd93) +
           identity->lines_bytes * UINT64_C(0xff51afd7ed558ccd) +
           identity->lines_head * UINT64_C(0xc4ceb9fe1a85ec53) +
           identity->lines_tail * UINT64_C(0x87c37b91114253d5) +
           (uint64_t)identity->first_line * UINT64_C(0xa0761d6478bd642f);
}

bool seep_python_identify(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          struct seep_python_identity *ret_identity);

enum seep_python_text {
    SEEP_PYTHON_FILE, /* too long: its end is kept */
    SEEP_PYTHON_NAME, /* the qualified name from 3.11 on; its beginning is */
};

/**
 * Copy a name, with a NUL.
 *
 * @param size       of @buffer, at least 5
 * @param ret_bytes  without the NUL
 * @return false: @buffer may be partly written
 */
bool seep_python_text(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t code,
                      enum seep_python_text which, char *buffer, size_t size,
                      size_t *ret_bytes);

/** Is it an object of that type? */
static inline bool seep_python_is_a(struct seep_python_memory *memory,
                                    uintptr_t object, uintptr_t type)
{
    uintptr_t seen;

    return seep_python_is_plausible(object) &&
           seep_python_read_word(memory, object + SEEP_PYTHON_OBJECT_TYPE,
                                 &seen) &&
           seen == type;
}

/** Bytes of the instructions of a code object. */
bool seep_python_code_bytes(const struct seep_python *python,
                            struct seep_python_memory *memory, uintptr_t code,
                            int64_t *ret_bytes);

#endif
