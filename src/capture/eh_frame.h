/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Unwind information of x86-64 code: from a pc to the row that holds there.
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

/** DWARF's numbers of the registers that we follow. */
enum {
    SEEP_EH_RBX = 3,
    SEEP_EH_RBP = 6,
    SEEP_EH_RSP = 7,
    SEEP_EH_RETURN = 16,
};

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
    SEEP_EH_UNDEFINED,   /* lost; of the return address: no caller */
    SEEP_EH_UNSUPPORTED, /* somewhere that cannot be expressed here */
};

struct seep_eh_place {
    uint8_t kind;
    uint8_t base; /* AT_REGISTER: DWARF number */
    int32_t offset;
};

enum seep_eh_cfa_kind {
    SEEP_EH_CFA_NONE = 0,
    SEEP_EH_CFA_REGISTER, /* register + offset */
    SEEP_EH_CFA_LOADED,   /* *(register + offset) */
    SEEP_EH_CFA_UNSUPPORTED,
};

struct seep_eh_cfa {
    uint8_t kind;
    uint8_t base;
    int32_t offset;
};

struct seep_eh_row {
    struct seep_eh_cfa cfa;
    struct seep_eh_place rbx;
    struct seep_eh_place rbp;
    struct seep_eh_place rsp;
    struct seep_eh_place return_address;
};

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

/** An expression as far as rows can say it: register + offset, or *that. */
struct seep_eh_value {
    uint8_t base; /* DWARF number; SEEP_EH_NO_BASE: a constant */
    bool loaded;
    int64_t offset;
};

#define SEEP_EH_NO_BASE 0xffU

/** Evaluate at @pc. @return false if it says more than the struct can */
bool seep_eh_evaluate(struct seep_eh_cursor expression, uintptr_t pc,
                      struct seep_eh_value *ret_value);

#endif
