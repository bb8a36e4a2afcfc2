/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows to rules: the common shapes of compiled code, and nothing by halves.
 *
 * Invariant: what does not fit into a rule exactly becomes a cut (the frame's
 * CFA, its return address) or a lost register (rbp, rbx).
 */
#include "capture/eh_rule.h"

#include "base/compiler.h"
#include "capture/object_map.h"

#define OFFSET_UNITS_MAX (INT32_C(1) << 23)
#define PLACE_UNITS_MAX 512

static uint64_t pack_place(const struct seep_eh_place *place)
{
    int32_t units = place->offset / 8;
    uint64_t kind;

    if (place->kind == SEEP_EH_SAME) {
        return SEEP_RULE_SAME;
    }
    if (place->kind == SEEP_EH_AT_CFA) {
        kind = SEEP_RULE_AT_CFA;
    } else if (place->kind == SEEP_EH_AT_REGISTER &&
               place->base == SEEP_EH_RBP) {
        kind = SEEP_RULE_AT_RBP;
    } else {
        return SEEP_RULE_LOST;
    }
    if (place->offset % 8 != 0 || units < -PLACE_UNITS_MAX ||
        units >= PLACE_UNITS_MAX) {
        return SEEP_RULE_LOST;
    }
    return kind | ((uint64_t)units & 0x3ff) << 2;
}

static bool is_saved_at(const struct seep_eh_place *place, int32_t offset)
{
    return place->kind == SEEP_EH_AT_REGISTER && place->base == SEEP_EH_RSP &&
           place->offset == offset;
}

/* The trampoline that a signal handler returns to, as glibc describes it. */
static bool is_signal_row(const struct seep_eh_row *row)
{
    return row->cfa.kind == SEEP_EH_CFA_LOADED &&
           row->cfa.base == SEEP_EH_RSP && row->cfa.offset == SEEP_SIGNAL_RSP &&
           is_saved_at(&row->return_address, SEEP_SIGNAL_RIP) &&
           is_saved_at(&row->rbp, SEEP_SIGNAL_RBP) &&
           is_saved_at(&row->rbx, SEEP_SIGNAL_RBX);
}

static uint64_t pack_cfa(const struct seep_eh_cfa *cfa)
{
    int32_t units = cfa->offset / 8;
    uint64_t kind;

    if (cfa->kind != SEEP_EH_CFA_REGISTER && cfa->kind != SEEP_EH_CFA_LOADED) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (cfa->offset % 8 != 0 || units < -OFFSET_UNITS_MAX ||
        units >= OFFSET_UNITS_MAX) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (cfa->kind == SEEP_EH_CFA_LOADED) {
        if (cfa->base != SEEP_EH_RBP) {
            return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
        }
        kind = SEEP_RULE_LOADED_RBP;
    } else if (cfa->base == SEEP_EH_RSP) {
        kind = SEEP_RULE_RSP;
    } else if (cfa->base == SEEP_EH_RBP) {
        kind = SEEP_RULE_RBP;
    } else if (cfa->base == SEEP_EH_RBX) {
        kind = SEEP_RULE_RBX;
    } else {
        return seep_rule_of_cut(SEEP_CUT_REGISTER);
    }
    return kind | ((uint64_t)units & 0xffffff) << 4;
}

uint64_t seep_rule_pack(const struct seep_eh_row *row, bool signal_frame)
{
    const struct seep_eh_place *back = &row->return_address;
    const struct seep_eh_place *rsp = &row->rsp;
    uint64_t rule;

    if (back->kind == SEEP_EH_UNDEFINED) {
        return SEEP_RULE_END;
    }
    if (signal_frame) {
        return is_signal_row(row) ? SEEP_RULE_SIGNAL
                                  : seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (back->kind == SEEP_EH_SAME) {
        return seep_rule_of_cut(SEEP_CUT_REGISTER);
    }
    /* The caller's rsp is the CFA unless a row says otherwise. */
    if (back->kind != SEEP_EH_AT_CFA || back->offset != -8 ||
        (rsp->kind != SEEP_EH_SAME &&
         (rsp->kind != SEEP_EH_IS_CFA || rsp->offset != 0))) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    rule = pack_cfa(&row->cfa);
    if (seep_rule_kind(rule) == SEEP_RULE_CUT) {
        return rule;
    }
    return rule | pack_place(&row->rbp) << SEEP_RULE_RBP_SHIFT |
           pack_place(&row->rbx) << SEEP_RULE_RBX_SHIFT;
}

/* In two steps, so that the stack of the first is free in the second. */
static SEEP_NOINLINE enum seep_cut find(uintptr_t pc,
                                        struct seep_eh_entry *ret_entry)
{
    struct seep_elf_image image;
    struct seep_eh_section section;
    uintptr_t low;
    uintptr_t high;

    if (!seep_object_map_find(pc, &image)) {
        return SEEP_CUT_NO_OBJECT;
    }
    if (image.eh_frame_hdr == NULL) {
        return SEEP_CUT_NO_RULE;
    }
    if (!seep_elf_segment(&image, (uintptr_t)image.eh_frame_hdr, &low, &high)) {
        return SEEP_CUT_MALFORMED;
    }
    section.hdr = image.eh_frame_hdr;
    section.low = (const uint8_t *)low;
    section.high = (const uint8_t *)high;
    return seep_eh_find(&section, pc, ret_entry);
}

SEEP_COLD uint64_t seep_rule_compile(uintptr_t pc)
{
    struct seep_eh_entry entry;
    struct seep_eh_row row;
    enum seep_cut cut = find(pc, &entry);

    if (cut == SEEP_CUT_NONE) {
        cut = seep_eh_run(&entry, pc, &row);
    }
    if (cut != SEEP_CUT_NONE) {
        return seep_rule_of_cut(cut);
    }
    return seep_rule_pack(&row, entry.signal_frame);
}
