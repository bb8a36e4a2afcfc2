/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Unwind information: from a pc to the row that holds there, on x86-64 and on
 * aarch64.
 *
 * Pure functions over bytes that lie in memory: no state, no call, nothing
 * read outside the section. The input is not trusted.
 */
#ifndef SEEP_CAPTURE_EH_FRAME_H
#define SEEP_CAPTURE_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/eh_cursor.h"
#include "seep/stack.h"

/**
 * DWARF's numbers of the registers that we follow, by the part they have:
 * those that calls keep, as far as the CFA of compiled code is told by them.
 */
#if defined(__aarch64__)
enum {
    SEEP_EH_FP = 29,
    SEEP_EH_RETURN = 30, /* x30, which holds it until it is saved */
    SEEP_EH_SP = 31,
    SEEP_EH_PLACES = 3,
};
#else
enum {
    SEEP_EH_RBX = 3,
    SEEP_EH_FP = 6, /* rbp */
    SEEP_EH_SP = 7, /* rsp */
    SEEP_EH_R12 = 12,
    SEEP_EH_R15 = 15,
    SEEP_EH_RETURN = 16, /* no register: where the call left it */
    SEEP_EH_PLACES = 8,
};
#endif

/** What may be read: the segment in which the sections lie. */
struct seep_eh_section {
    const uint8_t *hdr; /* .eh_frame_hdr, inside [low, high) */
    const uint8_t *low;
    const uint8_t *high;
};

/** The entry (FDE with its CIE) of a function. */
struct seep_eh_entry {
    uintptr_t pc_low;
    uintptr_t pc_high;
    uint64_t code_alignment;
    int64_t data_alignment;
    struct seep_eh_cursor common; /* instructions of the CIE */
    struct seep_eh_cursor own;    /* instructions of the FDE */
    uint8_t pointer_encoding;
    bool signal_frame;
    bool augmented; /* the FDE has augmentation data too */
};

/** Where the caller's value of a register is. */
enum seep_eh_place_kind {
    SEEP_EH_SAME = 0,    /* still in the register */
    SEEP_EH_AT_CFA,      /* in memory, at CFA + offset */
    SEEP_EH_AT_REGISTER, /* in memory, at register + offset */
    SEEP_EH_IS_CFA,      /* it is CFA + offset */
    SEEP_EH_IS_REGISTER, /* it is register + offset */
    SEEP_EH_UNDEFINED,   /* lost; of the return address: no caller */
    SEEP_EH_UNSUPPORTED, /* somewhere that cannot be expressed here */
};

/* Small, since rows are remembered on a hook's stack. But aarch64 has the
 * return address at the lower end of a frame, so at any distance. */
#if defined(__aarch64__)
typedef int32_t seep_eh_offset;
#else
typedef int16_t seep_eh_offset;
#endif

struct seep_eh_place {
    uint8_t kind;
    uint8_t base; /* a register: its DWARF number */
    seep_eh_offset offset;
};

enum seep_eh_cfa_kind {
    SEEP_EH_CFA_NONE = 0,
    SEEP_EH_CFA_REGISTER, /* register + offset */
    SEEP_EH_CFA_LOADED,   /* *(register + offset) + added */
    SEEP_EH_CFA_UNSUPPORTED,
};

struct seep_eh_cfa {
    uint8_t kind;
    uint8_t base;
    int16_t added; /* LOADED only */
    int32_t offset;
};

struct seep_eh_row {
    struct seep_eh_cfa cfa;
    struct seep_eh_place places[SEEP_EH_PLACES]; /* by seep_eh_place_index() */
};

/** A return address without the bits that a processor has signed it with. */
static inline uintptr_t seep_eh_code_address(uintptr_t word)
{
#if defined(__aarch64__)
    register uintptr_t x30 __asm__("x30") = word;

    /* xpaclri, which does nothing where nothing is signed. */
    __asm__("hint #7" : "+r"(x30));
    return x30;
#else
    return word;
#endif
}

/** Where in a row a register stands; SEEP_EH_PLACES: it is not followed. */
static inline size_t seep_eh_place_index(uint64_t number)
{
#if defined(__aarch64__)
    return number >= SEEP_EH_FP && number <= SEEP_EH_SP
               ? (size_t)(number - SEEP_EH_FP)
               : SEEP_EH_PLACES;
#else
    if (number >= SEEP_EH_R12 && number <= SEEP_EH_RETURN) {
        return (size_t)(number - SEEP_EH_R12 + 3);
    }
    if (number == SEEP_EH_RBX) {
        return 0;
    }
    return number == SEEP_EH_FP || number == SEEP_EH_SP
               ? (size_t)(number - SEEP_EH_FP + 1)
               : SEEP_EH_PLACES;
#endif
}

/** The register of a place: the other way round. */
static inline uint8_t seep_eh_place_number(size_t index)
{
#if defined(__aarch64__)
    return (uint8_t)(SEEP_EH_FP + index);
#else
    return (uint8_t)(index == 0  ? SEEP_EH_RBX
                     : index < 3 ? SEEP_EH_FP + index - 1
                                 : SEEP_EH_R12 + index - 3);
#endif
}

/** The place of a register that is followed. */
static inline const struct seep_eh_place *
seep_eh_place(const struct seep_eh_row *row, uint64_t number)
{
    return &row->places[seep_eh_place_index(number)];
}

/**
 * Find the entry that covers @pc by the table of .eh_frame_hdr.
 *
 * @return SEEP_CUT_NONE, SEEP_CUT_NO_RULE or SEEP_CUT_MALFORMED
 */
enum seep_cut seep_eh_find(const struct seep_eh_section *section, uintptr_t pc,
                           struct seep_eh_entry *ret_entry);

/** Run the programs of @entry up to @pc. @return as seep_eh_find() */
enum seep_cut seep_eh_run(const struct seep_eh_entry *entry, uintptr_t pc,
                          struct seep_eh_row *ret_row);

/**
 * An expression as far as rows can say it: register + offset, or, loaded,
 * *(register + offset) + added.
 */
struct seep_eh_value {
    uint8_t base; /* DWARF number; SEEP_EH_NO_BASE: a constant */
    bool loaded;
    int64_t offset;
    int64_t added;
};

#define SEEP_EH_NO_BASE 0xffU

/** Evaluate at @pc. @return false if it says more than the struct can */
bool seep_eh_evaluate(struct seep_eh_cursor expression, uintptr_t pc,
                      struct seep_eh_value *ret_value);

#endif
