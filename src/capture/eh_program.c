/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call frame instructions: run the programs of a CIE and an FDE to the row
 * that holds at a pc.
 *
 * Invariant: every operation of DWARF 5 and of GNU is parsed to its end, also
 * where its effect is on a register that we do not follow; the number of steps
 * is bounded by the bytes of the program.
 */
#include "capture/eh_frame.h"

/* Compilers nest them once. */
#define REMEMBERED_MAX 2U

enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_SHORT_MASK = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_ADVANCE8 = 0x1d,
    CFA_GNU_WINDOW_SAVE = 0x2d, /* aarch64: the return address is signed */
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

struct machine {
    const struct seep_eh_entry *entry;
    struct seep_eh_cursor at;
    uintptr_t target; /* the pc that is asked for */
    uintptr_t pc;     /* the pc that the program has reached */
    struct seep_eh_row *row;
    struct seep_eh_row first; /* after the CIE: what restore goes back to */
    struct seep_eh_row remembered[REMEMBERED_MAX];
    size_t remembered_count;
};

static void set_place(struct machine *machine, uint64_t number,
                      enum seep_eh_place_kind kind, uint64_t base,
                      int64_t offset)
{
    size_t index = seep_eh_place_index(number);

    if (index == SEEP_EH_PLACES) {
        return;
    }
    if (base != (uint8_t)base || offset != (seep_eh_offset)offset) {
        kind = SEEP_EH_UNSUPPORTED;
    }
    machine->row->places[index] = (struct seep_eh_place){
        .kind = (uint8_t)kind,
        .base = (uint8_t)base,
        .offset = (seep_eh_offset)offset,
    };
}

static int64_t factored(const struct machine *machine, int64_t value)
{
    return (int64_t)((uint64_t)value *
                     (uint64_t)machine->entry->data_alignment);
}

static void restore_place(struct machine *machine, uint64_t number)
{
    size_t index = seep_eh_place_index(number);

    if (index != SEEP_EH_PLACES) {
        machine->row->places[index] = machine->first.places[index];
    }
}

static void set_cfa(struct machine *machine, uint64_t base, int64_t offset)
{
    bool fits = base < SEEP_EH_NO_BASE && offset == (int32_t)offset;

    machine->row->cfa = (struct seep_eh_cfa){
        .kind = fits ? SEEP_EH_CFA_REGISTER : SEEP_EH_CFA_UNSUPPORTED,
        .base = (uint8_t)base,
        .offset = (int32_t)offset,
    };
}

/* The block of an expression operation: its length, then its bytes. */
static struct seep_eh_cursor take_block(struct machine *machine)
{
    uint64_t bytes = seep_eh_uleb(&machine->at);
    const uint8_t *block = seep_eh_take(&machine->at, bytes);

    return (struct seep_eh_cursor){
        .at = block, .end = machine->at.at, .failed = block == NULL};
}

static void set_cfa_expression(struct machine *machine)
{
    struct seep_eh_cursor block = take_block(machine);
    struct seep_eh_value value;

    set_cfa(machine, SEEP_EH_NO_BASE, 0);
    if (!block.failed && seep_eh_evaluate(block, machine->target, &value) &&
        value.base != SEEP_EH_NO_BASE) {
        set_cfa(machine, value.base, value.offset);
        if (value.loaded && machine->row->cfa.kind == SEEP_EH_CFA_REGISTER) {
            machine->row->cfa.kind = value.added == (int16_t)value.added
                                         ? SEEP_EH_CFA_LOADED
                                         : SEEP_EH_CFA_UNSUPPORTED;
            machine->row->cfa.added = (int16_t)value.added;
        }
    }
}

/* An expression for where a register is, or for what it is. */
static void set_expression(struct machine *machine,
                           enum seep_eh_place_kind kind)
{
    uint64_t number = seep_eh_uleb(&machine->at);
    struct seep_eh_cursor block = take_block(machine);
    struct seep_eh_value value;

    if (!block.failed && seep_eh_evaluate(block, machine->target, &value) &&
        value.base != SEEP_EH_NO_BASE &&
        (!value.loaded || (kind == SEEP_EH_IS_REGISTER && value.added == 0))) {
        set_place(machine, number, value.loaded ? SEEP_EH_AT_REGISTER : kind,
                  value.base, value.offset);
    } else {
        set_place(machine, number, SEEP_EH_UNSUPPORTED, 0, 0);
    }
}

/* Go on to another pc. @return false if the row for the target is reached */
static bool advance(struct machine *machine, uint64_t units)
{
    uintptr_t pc = machine->pc + units * machine->entry->code_alignment;

    if (pc > machine->target) {
        return false;
    }
    machine->pc = pc;
    return true;
}

static bool set_location(struct machine *machine)
{
    uintptr_t pc =
        seep_eh_pointer(&machine->at, machine->entry->pointer_encoding, 0);

    if (pc > machine->target) {
        return false;
    }
    machine->pc = pc;
    return true;
}

static void remember(struct machine *machine)
{
    if (machine->remembered_count == REMEMBERED_MAX) {
        machine->at.failed = true;
        return;
    }
    machine->remembered[machine->remembered_count++] = *machine->row;
}

static void restore_state(struct machine *machine)
{
    if (machine->remembered_count == 0) {
        machine->at.failed = true;
        return;
    }
    *machine->row = machine->remembered[--machine->remembered_count];
}

/* The operations that say where the CFA is. @return false: not one */
static bool run_cfa(struct machine *machine, uint8_t op)
{
    struct seep_eh_cursor *at = &machine->at;
    const struct seep_eh_cfa *cfa = &machine->row->cfa;
    uint64_t base;

    switch (op) {
    case CFA_DEF_CFA:
        base = seep_eh_uleb(at);
        set_cfa(machine, base, (int64_t)seep_eh_uleb(at));
        return true;
    case CFA_DEF_CFA_SF:
        base = seep_eh_uleb(at);
        set_cfa(machine, base, factored(machine, seep_eh_sleb(at)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        set_cfa(machine, seep_eh_uleb(at), cfa->offset);
        return true;
    case CFA_DEF_CFA_OFFSET:
        set_cfa(machine, cfa->base, (int64_t)seep_eh_uleb(at));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        set_cfa(machine, cfa->base, factored(machine, seep_eh_sleb(at)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(machine);
        return true;
    default:
        return false;
    }
}

/* The operations that say where a register is. @return false: not one */
static bool run_register(struct machine *machine, uint8_t op)
{
    struct seep_eh_cursor *at = &machine->at;
    uint64_t number;

    switch (op) {
    case CFA_EXPRESSION:
        set_expression(machine, SEEP_EH_AT_REGISTER);
        return true;
    case CFA_RESTORE_EXTENDED:
        restore_place(machine, seep_eh_uleb(at));
        return true;
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SF:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
    case CFA_GNU_NEGATIVE_OFFSET: {
        bool is_signed =
            op == CFA_OFFSET_EXTENDED_SF || op == CFA_VAL_OFFSET_SF;
        bool is_value = op == CFA_VAL_OFFSET || op == CFA_VAL_OFFSET_SF;
        int64_t offset;

        number = seep_eh_uleb(at);
        offset = is_signed ? seep_eh_sleb(at) : (int64_t)seep_eh_uleb(at);
        offset = factored(machine, offset);
        if (op == CFA_GNU_NEGATIVE_OFFSET) {
            offset = (int64_t)(0 - (uint64_t)offset);
        }
        set_place(machine, number, is_value ? SEEP_EH_IS_CFA : SEEP_EH_AT_CFA,
                  0, offset);
        return true;
    }
    case CFA_UNDEFINED:
        set_place(machine, seep_eh_uleb(at), SEEP_EH_UNDEFINED, 0, 0);
        return true;
    case CFA_SAME_VALUE:
        set_place(machine, seep_eh_uleb(at), SEEP_EH_SAME, 0, 0);
        return true;
    case CFA_REGISTER:
        number = seep_eh_uleb(at);
        set_place(machine, number, SEEP_EH_IS_REGISTER, seep_eh_uleb(at), 0);
        return true;
    case CFA_VAL_EXPRESSION:
        set_expression(machine, SEEP_EH_IS_REGISTER);
        return true;
    default:
        return false;
    }
}

/* The operations without a short form. @return false: the row is reached */
static bool run_extended(struct machine *machine, uint8_t op)
{
    struct seep_eh_cursor *at = &machine->at;

    switch (op) {
    case CFA_NOP:
    case CFA_GNU_WINDOW_SAVE:
        return true;
    case CFA_SET_LOC:
        return set_location(machine);
    case CFA_ADVANCE1:
        return advance(machine, seep_eh_unsigned(at, 1));
    case CFA_ADVANCE2:
        return advance(machine, seep_eh_unsigned(at, 2));
    case CFA_ADVANCE4:
        return advance(machine, seep_eh_unsigned(at, 4));
    case CFA_ADVANCE8:
        return advance(machine, seep_eh_unsigned(at, 8));
    case CFA_REMEMBER:
        remember(machine);
        return true;
    case CFA_RESTORE_STATE:
        restore_state(machine);
        return true;
    case CFA_GNU_ARGS_SIZE:
        seep_eh_uleb(at);
        return true;
    default:
        if (!run_cfa(machine, op) && !run_register(machine, op)) {
            at->failed = true;
        }
        return true;
    }
}

/* @return false if anything in the program is malformed */
static bool run_program(struct machine *machine, struct seep_eh_cursor program)
{
    machine->at = program;
    while (machine->at.at < machine->at.end && !machine->at.failed) {
        uint8_t op = (uint8_t)seep_eh_unsigned(&machine->at, 1);
        uint8_t operand = op & (uint8_t)~CFA_SHORT_MASK;

        switch (op & CFA_SHORT_MASK) {
        case CFA_ADVANCE:
            if (!advance(machine, operand)) {
                return true;
            }
            break;
        case CFA_OFFSET:
            set_place(machine, operand, SEEP_EH_AT_CFA, 0,
                      factored(machine, (int64_t)seep_eh_uleb(&machine->at)));
            break;
        case CFA_RESTORE:
            restore_place(machine, operand);
            break;
        default:
            if (!run_extended(machine, op)) {
                return !machine->at.failed;
            }
        }
    }
    return !machine->at.failed;
}

enum seep_cut seep_eh_run(const struct seep_eh_entry *entry, uintptr_t pc,
                          struct seep_eh_row *ret_row)
{
    struct machine machine;

    machine.entry = entry;
    machine.target = pc;
    machine.pc = entry->pc_low;
    machine.row = ret_row;
    *ret_row = (struct seep_eh_row){0};
    machine.first = *ret_row;
    machine.remembered_count = 0;
    if (!run_program(&machine, entry->common)) {
        return SEEP_CUT_MALFORMED;
    }
    machine.first = *ret_row;
    machine.pc = entry->pc_low;
    if (!run_program(&machine, entry->own)) {
        return SEEP_CUT_MALFORMED;
    }
    return SEEP_CUT_NONE;
}
