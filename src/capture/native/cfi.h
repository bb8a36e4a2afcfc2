/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Unwind information: from a pc to the row that holds there, on x86-64 and on
 * aarch64.
 *
 * Pure functions over bytes that lie in memory: no state, no call, nothing
 * read outside the section. The input is not trusted.
 */
#ifndef SEEP_CAPTURE_NATIVE_CFI_H
#define SEEP_CAPTURE_NATIVE_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seep/stack.h"

/*
 * Reading of unwind sections: bounded, and sticky in failure.
 *
 * Invariant: no byte outside [at, end) is ever read. What goes beyond reads as
 * 0, sets `failed` and leaves the cursor at its end.
 */

struct seep_cfi_cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

/**
 * DWARF's numbers of the registers that we follow, by the part they have:
 * those that calls keep, as far as the CFA of compiled code is computed from
 * them.
 */
#if defined(__aarch64__)
enum {
    SEEP_CFI_FP = 29,
    SEEP_CFI_RETURN = 30, /* x30, which holds it until it is saved */
    SEEP_CFI_SP = 31,
    SEEP_CFI_PLACES = 3,
};
#else
enum {
    SEEP_CFI_RBX = 3,
    SEEP_CFI_FP = 6, /* rbp */
    SEEP_CFI_SP = 7, /* rsp */
    SEEP_CFI_R12 = 12,
    SEEP_CFI_R15 = 15,
    SEEP_CFI_RETURN = 16, /* no register: where the call left it */
    SEEP_CFI_PLACES = 8,
};
#endif

/** What may be read: the segment in which the sections lie. */
struct seep_cfi_section {
    const uint8_t *hdr; /* .eh_frame_hdr, inside [low, high) */
    const uint8_t *low;
    const uint8_t *high;
    uintptr_t shift; /* so much higher lies this copy than the object's own */
};

/** The entry (FDE with its CIE) of a function. */
struct seep_cfi_entry {
    uintptr_t pc_low;
    uintptr_t pc_high;
    int64_t data_alignment;
    struct seep_cfi_cursor common; /* instructions of the CIE */
    struct seep_cfi_cursor own;    /* instructions of the FDE */
    uintptr_t shift;               /* of the section */
    uint32_t code_alignment;
    uint8_t pointer_encoding;
    bool signal_frame;
    bool augmented; /* the FDE has augmentation data too */
};

/** Where the caller's value of a register is. */
enum seep_cfi_place_kind {
    SEEP_CFI_SAME = 0,    /* still in the register */
    SEEP_CFI_AT_CFA,      /* in memory, at CFA + offset */
    SEEP_CFI_AT_REGISTER, /* in memory, at register + offset */
    SEEP_CFI_IS_CFA,      /* it is CFA + offset */
    SEEP_CFI_IS_REGISTER, /* it is register + offset */
    SEEP_CFI_UNDEFINED,   /* lost; of the return address: no caller */
    SEEP_CFI_UNSUPPORTED, /* somewhere that cannot be expressed here */
};

/* Small, since rows are remembered on a hook's stack. But aarch64 has the
 * return address at the lower end of a frame, so at any distance. */
#if defined(__aarch64__)
typedef int32_t seep_cfi_offset;
#else
typedef int16_t seep_cfi_offset;
#endif

struct seep_cfi_place {
    uint8_t kind;
    uint8_t base; /* a register: its DWARF number */
    seep_cfi_offset offset;
};

enum seep_cfi_cfa_kind {
    SEEP_CFI_CFA_NONE = 0,
    SEEP_CFI_CFA_REGISTER, /* register + offset */
    SEEP_CFI_CFA_LOADED,   /* *(register + offset) + added */
    SEEP_CFI_CFA_UNSUPPORTED,
};

struct seep_cfi_cfa {
    uint8_t kind;
    uint8_t base;
    int16_t added; /* LOADED only */
    int32_t offset;
};

struct seep_cfi_row {
    struct seep_cfi_cfa cfa;
    struct seep_cfi_place
        places[SEEP_CFI_PLACES]; /* by seep_cfi_place_index() */
};

/** A return address without the bits that a processor has signed it with. */
static inline uintptr_t seep_cfi_code_address(uintptr_t word)
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

/** Where in a row a register stands; SEEP_CFI_PLACES: it is not followed. */
static inline size_t seep_cfi_place_index(uint64_t number)
{
#if defined(__aarch64__)
    return number >= SEEP_CFI_FP && number <= SEEP_CFI_SP
               ? (size_t)(number - SEEP_CFI_FP)
               : SEEP_CFI_PLACES;
#else
    if (number >= SEEP_CFI_R12 && number <= SEEP_CFI_RETURN) {
        return (size_t)(number - SEEP_CFI_R12 + 3);
    }
    if (number == SEEP_CFI_RBX) {
        return 0;
    }
    return number == SEEP_CFI_FP || number == SEEP_CFI_SP
               ? (size_t)(number - SEEP_CFI_FP + 1)
               : SEEP_CFI_PLACES;
#endif
}

/** The register of a place: the other way round. */
static inline uint8_t seep_cfi_place_number(size_t index)
{
#if defined(__aarch64__)
    return (uint8_t)(SEEP_CFI_FP + index);
#else
    return (uint8_t)(index == 0  ? SEEP_CFI_RBX
                     : index < 3 ? SEEP_CFI_FP + index - 1
                                 : SEEP_CFI_R12 + index - 3);
#endif
}

/** The place of a register that is followed. */
static inline const struct seep_cfi_place *
seep_cfi_place(const struct seep_cfi_row *row, uint64_t number)
{
    return &row->places[seep_cfi_place_index(number)];
}

/**
 * Find the entry that covers @pc by the table of .eh_frame_hdr.
 *
 * @return SEEP_CUT_NONE, SEEP_CUT_NO_RULE or SEEP_CUT_MALFORMED
 */
enum seep_cut seep_cfi_find(const struct seep_cfi_section *section,
                            uintptr_t pc, struct seep_cfi_entry *ret_entry);

/** Compilers nest them once. */
#define SEEP_CFI_REMEMBERED 2U

/** The programs of an entry, run so far. */
struct seep_cfi_machine {
    const struct seep_cfi_entry *entry;
    struct seep_cfi_cursor at;
    uintptr_t target; /* the pc that is asked for */
    uintptr_t pc;     /* the pc that the program has reached */
    struct seep_cfi_row row;
    struct seep_cfi_row first; /* after the CIE: what restore goes back to */
    struct seep_cfi_row remembered[SEEP_CFI_REMEMBERED];
    size_t remembered_count;
    bool by_target; /* .row is so at the target alone */
};

/** Begin, to go on to @pc. @return false: malformed */
bool seep_cfi_begin(struct seep_cfi_machine *machine,
                    const struct seep_cfi_entry *entry, uintptr_t pc);

/** To the row at @pc, which is not before .pc. From there it can go on, unless
 * .by_target. @return false: malformed */
bool seep_cfi_go_on(struct seep_cfi_machine *machine, uintptr_t pc);

/** Run the programs of @entry up to @pc. @return as seep_cfi_find() */
enum seep_cut seep_cfi_run(const struct seep_cfi_entry *entry, uintptr_t pc,
                           struct seep_cfi_row *ret_row);

#endif
