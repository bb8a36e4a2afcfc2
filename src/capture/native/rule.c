/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows to rules: the common shapes of compiled code, and nothing by halves.
 *
 * Invariant: what does not fit into a rule exactly becomes a cut (the frame's
 * CFA, its return address) or a lost register (rbp, rbx).
 */
#include "capture/native/rule.h"

#include <string.h>

#include "base/compiler.h"
#include "capture/native/elf.h"
#include "capture/native/tables.h"

#define OFFSET_UNITS_MAX (INT32_C(1) << 23)
#define PLACE_UNITS_MAX 512

static bool is_packable(int64_t offset)
{
    return offset % 8 == 0 && offset / 8 >= -PLACE_UNITS_MAX &&
           offset / 8 < PLACE_UNITS_MAX;
}

static uint64_t pack_place(const struct seep_cfi_row *row, uint64_t number)
{
    const struct seep_cfi_place *place = seep_cfi_place(row, number);
    int64_t offset = place->offset;
    uint64_t kind = SEEP_RULE_LOST;

    if (place->kind == SEEP_CFI_SAME) {
        return SEEP_RULE_SAME;
    }
#if defined(__aarch64__)
    /* From the register of the CFA on, near which registers are saved. */
    if (place->kind == SEEP_CFI_AT_CFA) {
        kind = SEEP_RULE_AT_BASE;
        offset += row->cfa.offset;
    }
#else
    if (place->kind == SEEP_CFI_AT_CFA) {
        kind = SEEP_RULE_AT_CFA;
    } else if (place->kind == SEEP_CFI_AT_REGISTER &&
               place->base == SEEP_CFI_FP) {
        kind = SEEP_RULE_AT_RBP;
    }
#endif
    if (kind == SEEP_RULE_LOST || !is_packable(offset)) {
        return SEEP_RULE_LOST;
    }
    return kind | ((uint64_t)(offset / 8) & 0x3ff) << 2;
}

#if defined(__aarch64__)
/* The kernel describes its trampoline by the frame record that lies in the
 * signal's frame, which has no pc; beside it lies the whole context. */
static bool is_signal_row(const struct seep_cfi_row *row)
{
    return row->cfa.kind == SEEP_CFI_CFA_REGISTER &&
           row->cfa.base == SEEP_CFI_FP;
}
#else
static bool is_saved_at(const struct seep_cfi_row *row, uint64_t number,
                        int32_t offset)
{
    const struct seep_cfi_place *place = seep_cfi_place(row, number);

    return place->kind == SEEP_CFI_AT_REGISTER && place->base == SEEP_CFI_SP &&
           place->offset == offset;
}

/* The trampoline that a signal handler returns to, as glibc describes it. */
static bool is_signal_row(const struct seep_cfi_row *row)
{
    return row->cfa.kind == SEEP_CFI_CFA_LOADED && row->cfa.added == 0 &&
           row->cfa.base == SEEP_CFI_SP && row->cfa.offset == SEEP_SIGNAL_RSP &&
           is_saved_at(row, SEEP_CFI_RETURN, SEEP_SIGNAL_RIP) &&
           is_saved_at(row, SEEP_CFI_FP, SEEP_SIGNAL_RBP) &&
           is_saved_at(row, SEEP_CFI_RBX, SEEP_SIGNAL_RBX);
}
#endif

static uint64_t pack_cfa_kind(const struct seep_cfi_cfa *cfa)
{
    if (cfa->kind == SEEP_CFI_CFA_LOADED) {
        return cfa->base == SEEP_CFI_FP && cfa->added == 0
                   ? SEEP_RULE_LOADED_RBP
                   : seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (cfa->kind != SEEP_CFI_CFA_REGISTER) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (cfa->base == SEEP_CFI_SP) {
        return SEEP_RULE_RSP;
    }
    if (cfa->base == SEEP_CFI_FP) {
        return SEEP_RULE_RBP;
    }
#if defined(__x86_64__)
    if (cfa->base == SEEP_CFI_RBX) {
        return SEEP_RULE_RBX;
    }
#endif
    return seep_rule_of_cut(SEEP_CUT_REGISTER);
}

static uint64_t pack_cfa(const struct seep_cfi_cfa *cfa)
{
    uint64_t kind = pack_cfa_kind(cfa);
    int32_t units = cfa->offset / 8;

    if (seep_rule_kind(kind) == SEEP_RULE_CUT) {
        return kind;
    }
    if (cfa->offset % 8 != 0 || units < -OFFSET_UNITS_MAX ||
        units >= OFFSET_UNITS_MAX) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    return kind | ((uint64_t)units & 0xffffff) << 4;
}

/* The caller's stack pointer is the CFA unless a row says otherwise. */
static bool is_usual_sp(const struct seep_cfi_place *sp)
{
    return sp->kind == SEEP_CFI_SAME ||
           (sp->kind == SEEP_CFI_IS_CFA && sp->offset == 0);
}

/* The other register of a rule. @return false: that row is beyond rules */
static bool pack_second(const struct seep_cfi_row *row, uint64_t *ret_place)
{
    const struct seep_cfi_place *back = seep_cfi_place(row, SEEP_CFI_RETURN);

#if defined(__aarch64__)
    *ret_place = pack_place(row, SEEP_CFI_RETURN) << SEEP_RULE_RETURN_SHIFT;
    return back->kind == SEEP_CFI_SAME ||
           (*ret_place >> SEEP_RULE_RETURN_SHIFT & 3) == SEEP_RULE_AT_BASE;
#else
    *ret_place = pack_place(row, SEEP_CFI_RBX) << SEEP_RULE_RBX_SHIFT;
    return back->kind == SEEP_CFI_AT_CFA && back->offset == -8;
#endif
}

uint64_t seep_rule_pack(const struct seep_cfi_row *row, bool signal_frame)
{
    const struct seep_cfi_place *back = seep_cfi_place(row, SEEP_CFI_RETURN);
    uint64_t second;
    uint64_t rule;

    if (back->kind == SEEP_CFI_UNDEFINED) {
        return SEEP_RULE_END;
    }
    if (signal_frame) {
        return is_signal_row(row) ? SEEP_RULE_SIGNAL
                                  : seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
#if defined(__x86_64__)
    if (back->kind == SEEP_CFI_SAME) {
        return seep_rule_of_cut(SEEP_CUT_REGISTER);
    }
#endif
    if (!pack_second(row, &second) ||
        !is_usual_sp(seep_cfi_place(row, SEEP_CFI_SP))) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    rule = pack_cfa(&row->cfa);
    if (seep_rule_kind(rule) == SEEP_RULE_CUT) {
        return rule;
    }
    return rule | second | pack_place(row, SEEP_CFI_FP) << SEEP_RULE_RBP_SHIFT;
}

/* Where to read the entry of @pc. In steps, here and below, so that the stack
 * of the first is free in the second. */
static SEEP_COLD SEEP_NOINLINE enum seep_cut
find_section(uintptr_t pc, struct seep_cfi_section *ret_section)
{
    struct seep_elf_image image;
    uintptr_t low;
    uintptr_t high;

    if (!seep_objects_find(pc, &image)) {
        return SEEP_CUT_NO_OBJECT;
    }
    if (image.eh_frame_hdr == NULL) {
        return SEEP_CUT_NO_RULE;
    }
    if (!seep_elf_segment(&image, (uintptr_t)image.eh_frame_hdr, &low, &high)) {
        return SEEP_CUT_MALFORMED;
    }
    *ret_section = (struct seep_cfi_section){
        .hdr = image.eh_frame_hdr,
        .low = (const uint8_t *)low,
        .high = (const uint8_t *)high,
    };
    seep_tables_move(&image, ret_section);
    return SEEP_CUT_NONE;
}

SEEP_COLD SEEP_NOINLINE enum seep_cut
seep_rule_entry(uintptr_t pc, struct seep_cfi_entry *ret_entry)
{
    struct seep_cfi_section section;
    enum seep_cut cut = find_section(pc, &section);

    return cut == SEEP_CUT_NONE ? seep_cfi_find(&section, pc, ret_entry) : cut;
}

/*
 * Code whose rows are missing or not true, known by other means: where stacks
 * are switched, and the kernel's trampoline.
 *
 * Invariant: what is not known for sure is answered false; code is read only
 * inside a segment of an object that the walk stands in.
 */

static void no_caller(struct seep_cfi_row *row)
{
    *row = (struct seep_cfi_row){0};
    row->places[seep_cfi_place_index(SEEP_CFI_RETURN)].kind =
        SEEP_CFI_UNDEFINED;
}

/* No call returns to where a function begins, with none before it: such an
 * address was put there for the first function of a coroutine to return to. */
static bool is_put_there(uintptr_t back, struct seep_cfi_entry *entry)
{
    return seep_rule_entry(back, entry) == SEEP_CUT_NONE &&
           entry->pc_low == back;
}

#if defined(__aarch64__)
/* The kernel's trampoline has no rule since Linux 5.8, because its row cannot
 * tell the pc: it is known by its code, mov x8, 139; svc 0. */
static bool is_trampoline(uintptr_t back)
{
    static const uint32_t code[] = {0xd2801168, 0xd4000001};
    struct seep_elf_image image;

    return back % sizeof(code[0]) == 0 && seep_objects_find(back, &image) &&
           seep_elf_is_code(&image, back) &&
           seep_elf_is_code(&image, back + sizeof(code) - 1) &&
           memcmp((const void *)back, code, sizeof(code)) == 0;
}
#endif

/*
 * The row at @pc, where the sections have none.
 *
 * @param scratch  room to look for other entries in
 */
SEEP_COLD static bool known_row(uintptr_t pc, struct seep_cfi_entry *scratch,
                                struct seep_cfi_row *ret_row,
                                bool *ret_signal_frame)
{
    if (is_put_there(pc + 1, scratch)) {
        no_caller(ret_row);
        *ret_signal_frame = false;
        return true;
    }
#if defined(__aarch64__)
    if (is_trampoline(pc + 1)) {
        *ret_row = (struct seep_cfi_row){
            .cfa = {.kind = SEEP_CFI_CFA_REGISTER, .base = SEEP_CFI_FP}};
        *ret_signal_frame = true;
        return true;
    }
#endif
    return false;
}

/* greenlet 2 and 3 by what the first C++ function on a greenlet's stack is
 * called there. */
static const char *const greenlet_names[] = {
    "_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenlet"
    "I9_greenletXadL_ZNS1_15GreenletCheckerEPvEEEERNS1_14OwnedReference"
    "I7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE",
    "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object",
};

static bool is_greenlet(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && strncmp(slash, "/_greenlet.", 11) == 0;
}

/* A greenlet's frames are put back on the thread's stack wherever it goes on.
 * Where its first function would return to is of who switched to it first;
 * what lies there now is of who did last. */
SEEP_COLD static bool known_end(const struct seep_cfi_entry *entry,
                                struct seep_cfi_row *ret_row)
{
    struct seep_elf_image image;
    struct seep_elf_symbols symbols;

    if (!seep_objects_find(entry->pc_low, &image) || !is_greenlet(image.path) ||
        !seep_elf_symbols_open(&image, &symbols)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(greenlet_names) / sizeof(greenlet_names[0]);
         i++) {
        if (seep_elf_symbols_find(&symbols, greenlet_names[i], NULL) ==
            entry->pc_low) {
            no_caller(ret_row);
            return true;
        }
    }
    return false;
}

SEEP_COLD enum seep_cut seep_rule_row(uintptr_t pc,
                                      struct seep_cfi_row *ret_row,
                                      bool *ret_signal_frame)
{
    struct seep_cfi_entry entry;
    enum seep_cut cut = seep_rule_entry(pc, &entry);

    *ret_signal_frame = false;
    if (cut == SEEP_CUT_NO_RULE &&
        known_row(pc, &entry, ret_row, ret_signal_frame)) {
        return SEEP_CUT_NONE;
    }
    if (cut != SEEP_CUT_NONE || known_end(&entry, ret_row)) {
        return cut;
    }
    *ret_signal_frame = entry.signal_frame;
    return seep_cfi_run(&entry, pc, ret_row);
}

SEEP_COLD uint64_t seep_rule_compile(uintptr_t pc)
{
    struct seep_cfi_row row;
    bool signal_frame;
    enum seep_cut cut = seep_rule_row(pc, &row, &signal_frame);

    if (cut != SEEP_CUT_NONE) {
        return seep_rule_of_cut(cut);
    }
    return seep_rule_pack(&row, signal_frame);
}
