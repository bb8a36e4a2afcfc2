/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Reading of unwind sections: bounded, and sticky in failure.
 *
 * Invariant: no byte outside [at, end) is ever read. What goes beyond reads as
 * 0, sets `failed` and leaves the cursor at its end.
 */
#ifndef SEEP_CAPTURE_EH_CURSOR_H
#define SEEP_CAPTURE_EH_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seep_eh_cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

/** How a pointer is written (DW_EH_PE_*): format and what it is relative to. */
enum {
    SEEP_EH_ABSOLUTE = 0x00,
    SEEP_EH_ULEB = 0x01,
    SEEP_EH_UDATA2 = 0x02,
    SEEP_EH_UDATA4 = 0x03,
    SEEP_EH_UDATA8 = 0x04,
    SEEP_EH_SLEB = 0x09,
    SEEP_EH_SDATA2 = 0x0a,
    SEEP_EH_SDATA4 = 0x0b,
    SEEP_EH_SDATA8 = 0x0c,
    SEEP_EH_FORMAT_MASK = 0x0f,
    SEEP_EH_PC_RELATIVE = 0x10,
    SEEP_EH_DATA_RELATIVE = 0x30,
    SEEP_EH_RELATIVE_MASK = 0x70,
    SEEP_EH_INDIRECT = 0x80,
    SEEP_EH_OMITTED = 0xff,
};

/** Take @size bytes. @return where they are, or NULL */
static inline const uint8_t *seep_eh_take(struct seep_eh_cursor *cursor,
                                          uint64_t size)
{
    const uint8_t *at = cursor->at;

    if (cursor->failed || size > (uint64_t)(cursor->end - at)) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return NULL;
    }
    cursor->at = at + size;
    return at;
}

/** Read @size (1, 2, 4, 8) bytes, little-endian. */
static inline uint64_t seep_eh_unsigned(struct seep_eh_cursor *cursor,
                                        size_t size)
{
    const uint8_t *bytes = seep_eh_take(cursor, size);
    uint64_t value = 0;

    for (size_t i = 0; bytes != NULL && i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

/** As seep_eh_unsigned(), with the sign extended. */
static inline int64_t seep_eh_signed(struct seep_eh_cursor *cursor, size_t size)
{
    unsigned int shift = 64 - 8 * (unsigned int)size;

    return (int64_t)(seep_eh_unsigned(cursor, size) << shift) >> shift;
}

/** One LEB128 number; @ret_bits receives how many bits it had. */
static inline uint64_t seep_eh_leb(struct seep_eh_cursor *cursor,
                                   unsigned int *ret_bits, bool *ret_negative)
{
    uint64_t value = 0;
    unsigned int bits = 0;
    uint8_t byte;

    do {
        byte = (uint8_t)seep_eh_unsigned(cursor, 1);
        if (bits < 64) {
            value |= (uint64_t)(byte & 0x7f) << bits;
        }
        bits += 7;
    } while ((byte & 0x80) != 0 && !cursor->failed);
    *ret_bits = bits;
    *ret_negative = (byte & 0x40) != 0;
    return value;
}

static inline uint64_t seep_eh_uleb(struct seep_eh_cursor *cursor)
{
    unsigned int bits;
    bool negative;

    return seep_eh_leb(cursor, &bits, &negative);
}

static inline int64_t seep_eh_sleb(struct seep_eh_cursor *cursor)
{
    unsigned int bits;
    bool negative;
    uint64_t value = seep_eh_leb(cursor, &bits, &negative);

    if (negative && bits < 64) {
        value |= ~UINT64_C(0) << bits;
    }
    return (int64_t)value;
}

/** The number of a pointer, without what it is relative to. */
static inline uint64_t seep_eh_number(struct seep_eh_cursor *cursor,
                                      uint8_t encoding)
{
    switch (encoding & SEEP_EH_FORMAT_MASK) {
    case SEEP_EH_ABSOLUTE:
    case SEEP_EH_UDATA8:
    case SEEP_EH_SDATA8:
        return seep_eh_unsigned(cursor, 8);
    case SEEP_EH_ULEB:
        return seep_eh_uleb(cursor);
    case SEEP_EH_SLEB:
        return (uint64_t)seep_eh_sleb(cursor);
    case SEEP_EH_UDATA2:
        return seep_eh_unsigned(cursor, 2);
    case SEEP_EH_UDATA4:
        return seep_eh_unsigned(cursor, 4);
    case SEEP_EH_SDATA2:
        return (uint64_t)seep_eh_signed(cursor, 2);
    case SEEP_EH_SDATA4:
        return (uint64_t)seep_eh_signed(cursor, 4);
    default:
        cursor->failed = true;
        return 0;
    }
}

/**
 * A pointer. An indirect one fails: to follow it would be to read outside.
 *
 * @param data_base  what a data-relative one is relative to
 */
static inline uintptr_t seep_eh_pointer(struct seep_eh_cursor *cursor,
                                        uint8_t encoding, uintptr_t data_base)
{
    uintptr_t here = (uintptr_t)cursor->at;
    uintptr_t number = seep_eh_number(cursor, encoding);

    if ((encoding & SEEP_EH_INDIRECT) != 0) {
        cursor->failed = true;
        return 0;
    }
    switch (encoding & SEEP_EH_RELATIVE_MASK) {
    case 0:
        return number;
    case SEEP_EH_PC_RELATIVE:
        return here + number;
    case SEEP_EH_DATA_RELATIVE:
        return data_base + number;
    default:
        cursor->failed = true;
        return 0;
    }
}

#endif
