/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a pc to its entry in .eh_frame, and by the programs of that (a CIE and
 * an FDE) to the row that holds there.
 *
 * Invariant: every operation of DWARF 5 and of GNU is parsed to its end, also
 * where its effect is on a register that we do not follow; the number of steps
 * is bounded by the bytes of the program.
 */
#include "capture/native/cfi.h"

#include <dwarf.h> /* numbers: nothing of elfutils is called */
#include <string.h>

#include "base/compiler.h"

/* Of DW_EH_PE_*: how a pointer is written, and what it is relative to. */
#define PE_FORMAT_MASK 0x0fU
#define PE_RELATIVE_MASK 0x70U

/* Take @size bytes. @return where they are, or NULL */
static const uint8_t *take(struct seep_cfi_cursor *cursor, uint64_t size)
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

/* Read @size (1, 2, 4, 8) bytes, little-endian. */
static uint64_t take_unsigned(struct seep_cfi_cursor *cursor, size_t size)
{
    const uint8_t *bytes = take(cursor, size);
    uint64_t value = 0;

    for (size_t i = 0; bytes != NULL && i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

/* As take_unsigned(), with the sign extended. */
static int64_t take_signed(struct seep_cfi_cursor *cursor, size_t size)
{
    unsigned int shift = 64 - 8 * (unsigned int)size;

    return (int64_t)(take_unsigned(cursor, size) << shift) >> shift;
}

/* One LEB128 number; @ret_bits receives how many bits it had. */
static uint64_t take_leb(struct seep_cfi_cursor *cursor, unsigned int *ret_bits,
                         bool *ret_negative)
{
    uint64_t value = 0;
    unsigned int bits = 0;
    uint8_t byte;

    do {
        byte = (uint8_t)take_unsigned(cursor, 1);
        if (bits < 64) {
            value |= (uint64_t)(byte & 0x7f) << bits;
        }
        bits += 7;
    } while ((byte & 0x80) != 0 && !cursor->failed);
    *ret_bits = bits;
    *ret_negative = (byte & 0x40) != 0;
    return value;
}

static uint64_t take_uleb(struct seep_cfi_cursor *cursor)
{
    unsigned int bits;
    bool negative;

    return take_leb(cursor, &bits, &negative);
}

static int64_t take_sleb(struct seep_cfi_cursor *cursor)
{
    unsigned int bits;
    bool negative;
    uint64_t value = take_leb(cursor, &bits, &negative);

    if (negative && bits < 64) {
        value |= ~UINT64_C(0) << bits;
    }
    return (int64_t)value;
}

/* The number of a pointer, without what it is relative to. */
static uint64_t take_number(struct seep_cfi_cursor *cursor, uint8_t encoding)
{
    switch (encoding & PE_FORMAT_MASK) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return take_unsigned(cursor, 8);
    case DW_EH_PE_uleb128:
        return take_uleb(cursor);
    case DW_EH_PE_sleb128:
        return (uint64_t)take_sleb(cursor);
    case DW_EH_PE_udata2:
        return take_unsigned(cursor, 2);
    case DW_EH_PE_udata4:
        return take_unsigned(cursor, 4);
    case DW_EH_PE_sdata2:
        return (uint64_t)take_signed(cursor, 2);
    case DW_EH_PE_sdata4:
        return (uint64_t)take_signed(cursor, 4);
    default:
        cursor->failed = true;
        return 0;
    }
}

/*
 * A pointer. An indirect one fails: to follow it would be to read outside.
 *
 * @param shift      how much higher the cursor stands than in the object
 * @param data_base  what a data-relative one is relative to, in the object
 */
static uintptr_t take_pointer(struct seep_cfi_cursor *cursor, uint8_t encoding,
                              uintptr_t shift, uintptr_t data_base)
{
    uintptr_t here = (uintptr_t)cursor->at - shift;
    uintptr_t number = take_number(cursor, encoding);

    if ((encoding & DW_EH_PE_indirect) != 0) {
        cursor->failed = true;
        return 0;
    }
    switch (encoding & PE_RELATIVE_MASK) {
    case 0:
        return number;
    case DW_EH_PE_pcrel:
        return here + number;
    case DW_EH_PE_datarel:
        return data_base + number;
    default:
        cursor->failed = true;
        return 0;
    }
}

/*
 * From a pc to its FDE and CIE, by the sorted table of .eh_frame_hdr.
 *
 * Invariant: every pointer that the tables hold is checked against the section
 * before anything is read through it.
 */

#define TABLE_ENTRY_BYTES 8U
#define TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)
#define EXTENDED_LENGTH 0xffffffffU

static int32_t table_word(const uint8_t *at)
{
    struct seep_cfi_cursor cursor = {.at = at, .end = at + 4};

    return (int32_t)take_signed(&cursor, 4);
}

/* The last entry of the table that begins at or before @pc. */
static enum seep_cut search_table(const struct seep_cfi_section *section,
                                  const uint8_t *table, uint64_t count,
                                  uintptr_t pc, const uint8_t **ret_entry)
{
    int64_t wanted = (int64_t)(pc - ((uintptr_t)section->hdr - section->shift));
    uint64_t low = 0;
    uint64_t high = count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (table_word(table + middle * TABLE_ENTRY_BYTES) <= wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return SEEP_CUT_NO_RULE;
    }
    *ret_entry =
        section->hdr + table_word(table + (low - 1) * TABLE_ENTRY_BYTES + 4);
    return SEEP_CUT_NONE;
}

static enum seep_cut find_entry(const struct seep_cfi_section *section,
                                uintptr_t pc, const uint8_t **ret_entry)
{
    struct seep_cfi_cursor cursor = {.at = section->hdr, .end = section->high};
    const uint8_t *head = take(&cursor, 4);
    uint64_t count;

    if (head == NULL || head[0] != 1) {
        return SEEP_CUT_MALFORMED;
    }
    if (head[2] == DW_EH_PE_omit || head[3] != TABLE_ENCODING) {
        return SEEP_CUT_NO_RULE;
    }
    take_pointer(&cursor, head[1], 0, (uintptr_t)section->hdr);
    count = take_pointer(&cursor, head[2], 0, (uintptr_t)section->hdr);
    if (cursor.failed ||
        count > (uint64_t)(cursor.end - cursor.at) / TABLE_ENTRY_BYTES) {
        return SEEP_CUT_MALFORMED;
    }
    return search_table(section, cursor.at, count, pc, ret_entry);
}

/* Narrow a cursor to the body of the record at @at; its id is read too. */
static bool open_record(const struct seep_cfi_section *section,
                        const uint8_t *at, struct seep_cfi_cursor *cursor,
                        const uint8_t **ret_id_at, uint64_t *ret_id)
{
    uint64_t length;
    size_t id_bytes = 4;

    if (at < section->low || at >= section->high) {
        return false;
    }
    *cursor = (struct seep_cfi_cursor){.at = at, .end = section->high};
    length = take_unsigned(cursor, 4);
    if (length == EXTENDED_LENGTH) {
        length = take_unsigned(cursor, 8);
        id_bytes = 8;
    }
    if (cursor->failed || length < id_bytes ||
        length > (uint64_t)(cursor->end - cursor->at)) {
        return false;
    }
    cursor->end = cursor->at + length;
    *ret_id_at = cursor->at;
    *ret_id = take_unsigned(cursor, id_bytes);
    return true;
}

/* The letters after the 'z' of a CIE's augmentation. */
static bool read_augmentation(struct seep_cfi_cursor *data,
                              const uint8_t *letters,
                              struct seep_cfi_entry *entry)
{
    for (; *letters != 0; letters++) {
        switch (*letters) {
        case 'R':
            entry->pointer_encoding = (uint8_t)take_unsigned(data, 1);
            break;
        case 'P': {
            uint8_t encoding = (uint8_t)take_unsigned(data, 1);

            /* The personality itself is not wanted, only its length. */
            take_number(data, encoding);
            break;
        }
        case 'L':
            take_unsigned(data, 1);
            break;
        case 'S':
            entry->signal_frame = true;
            break;
        case 'B':
            break;
        default:
            return false;
        }
    }
    return !data->failed;
}

static bool read_common(const struct seep_cfi_section *section,
                        const uint8_t *at, struct seep_cfi_entry *entry)
{
    struct seep_cfi_cursor cursor;
    const uint8_t *id_at;
    const uint8_t *letters;
    uint64_t id;
    uint64_t version;
    uint64_t alignment;

    if (!open_record(section, at, &cursor, &id_at, &id) || id != 0) {
        return false;
    }
    version = take_unsigned(&cursor, 1);
    letters = cursor.at;
    while (take_unsigned(&cursor, 1) != 0) {
    }
    alignment = take_uleb(&cursor);
    entry->code_alignment = (uint32_t)alignment;
    entry->data_alignment = take_sleb(&cursor);
    if (version == 1) {
        id = take_unsigned(&cursor, 1);
    } else {
        id = take_uleb(&cursor);
    }
    if (cursor.failed || alignment > UINT32_MAX ||
        (version != 1 && version != 3) || id != SEEP_CFI_RETURN ||
        (letters[0] != 'z' && letters[0] != 0)) {
        return false;
    }
    if (letters[0] == 'z') {
        uint64_t bytes = take_uleb(&cursor);
        const uint8_t *data_at = take(&cursor, bytes);
        struct seep_cfi_cursor data = {.at = data_at, .end = cursor.at};

        if (data_at == NULL || !read_augmentation(&data, letters + 1, entry)) {
            return false;
        }
        entry->augmented = true;
    }
    entry->common = cursor;
    return true;
}

static bool read_own(const struct seep_cfi_section *section, const uint8_t *at,
                     struct seep_cfi_entry *entry)
{
    struct seep_cfi_cursor cursor;
    const uint8_t *id_at;
    uint64_t id;

    if (!open_record(section, at, &cursor, &id_at, &id) || id == 0 ||
        id > (uint64_t)(id_at - section->low) ||
        !read_common(section, id_at - id, entry)) {
        return false;
    }
    entry->shift = section->shift;
    entry->pc_low =
        take_pointer(&cursor, entry->pointer_encoding, section->shift,
                     (uintptr_t)section->hdr - section->shift);
    entry->pc_high =
        entry->pc_low + take_number(&cursor, entry->pointer_encoding);
    /* A CIE with 'z' says so of all its FDEs; the data is the exception
     * tables' and not ours. */
    if (entry->augmented) {
        take(&cursor, take_uleb(&cursor));
    }
    entry->own = cursor;
    return !cursor.failed;
}

enum seep_cut seep_cfi_find(const struct seep_cfi_section *section,
                            uintptr_t pc, struct seep_cfi_entry *ret_entry)
{
    const uint8_t *at = NULL;
    enum seep_cut cut = find_entry(section, pc, &at);

    if (cut != SEEP_CUT_NONE) {
        return cut;
    }
    *ret_entry = (struct seep_cfi_entry){.pointer_encoding = DW_EH_PE_absptr};
    if (!read_own(section, at, ret_entry)) {
        return SEEP_CUT_MALFORMED;
    }
    return pc < ret_entry->pc_low || pc >= ret_entry->pc_high ? SEEP_CUT_NO_RULE
                                                              : SEEP_CUT_NONE;
}

/*
 * DWARF expressions, evaluated symbolically: "register + offset", or a load
 * of that and a constant more. It covers what compilers write for realigned
 * stacks, the PLT and signal frames, and what OpenSSL's assembler does; the pc
 * is known, so the PLT's comparison folds to a constant.
 *
 * Invariant: at most STACK_MAX values; anything else is answered false.
 */

#define STACK_MAX 4U
#define NO_BASE 0xffU

/* register + offset, or, loaded, *(register + offset) + added. */
struct value {
    uint8_t base; /* DWARF number; NO_BASE: a constant */
    bool loaded;
    int64_t offset;
    int64_t added;
};

struct evaluator {
    struct value stack[STACK_MAX];
    size_t depth;
    uintptr_t pc;
};

static bool push(struct evaluator *it, uint8_t base, int64_t offset)
{
    if (it->depth == STACK_MAX) {
        return false;
    }
    it->stack[it->depth++] = (struct value){.base = base, .offset = offset};
    return true;
}

static bool add(struct value *left, const struct value *right)
{
    int64_t *sum = left->loaded ? &left->added : &left->offset;

    if (right->base != NO_BASE) {
        return false;
    }
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)right->offset);
    return true;
}

/* An operation on the two uppermost values; but for plus both constants. */
static bool combine(struct evaluator *it, uint8_t op)
{
    struct value *left;
    struct value *right;

    if (it->depth < 2) {
        return false;
    }
    left = &it->stack[it->depth - 2];
    right = &it->stack[it->depth - 1];
    it->depth--;
    if (op == DW_OP_plus && left->base == NO_BASE) {
        struct value swapped = *left;

        *left = *right;
        return add(left, &swapped);
    }
    if (op == DW_OP_plus) {
        return add(left, right);
    }
    if (op == DW_OP_minus) {
        right->offset = (int64_t)(0 - (uint64_t)right->offset);
        return add(left, right);
    }
    if (left->base != NO_BASE || right->base != NO_BASE) {
        return false;
    }
    if (op == DW_OP_and) {
        left->offset &= right->offset;
    } else if (op == DW_OP_ge) {
        left->offset = left->offset >= right->offset;
    } else {
        left->offset =
            (int64_t)((uint64_t)left->offset << ((uint64_t)right->offset & 63));
    }
    return true;
}

static bool load(struct evaluator *it)
{
    struct value *top;

    if (it->depth == 0) {
        return false;
    }
    top = &it->stack[it->depth - 1];
    if (top->base == NO_BASE || top->loaded) {
        return false;
    }
    top->loaded = true;
    return true;
}

static int64_t take_constant(struct seep_cfi_cursor *at, uint8_t op)
{
    size_t size = (size_t)1 << ((op - DW_OP_const1u) / 2);

    return op % 2 == 0 ? (int64_t)take_unsigned(at, size)
                       : take_signed(at, size);
}

static bool step(struct evaluator *it, uint8_t op, struct seep_cfi_cursor *at)
{
    if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
        return push(it, NO_BASE, op - DW_OP_lit0);
    }
#if defined(__x86_64__)
    /* There it stands for the pc; on aarch64 it is x30, a register. */
    if (op == DW_OP_breg0 + SEEP_CFI_RETURN) {
        return push(it, NO_BASE, (int64_t)(it->pc + (uint64_t)take_sleb(at)));
    }
#endif
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
        return push(it, (uint8_t)(op - DW_OP_breg0), take_sleb(at));
    }
    if (op >= DW_OP_const1u && op <= DW_OP_const4s) { /* 1s, 2u, 2s, 4u */
        return push(it, NO_BASE, take_constant(at, op));
    }
    switch (op) {
    case DW_OP_deref:
        return load(it);
    case DW_OP_constu:
        return push(it, NO_BASE, (int64_t)take_uleb(at));
    case DW_OP_consts:
        return push(it, NO_BASE, take_sleb(at));
    case DW_OP_plus_uconst:
        return push(it, NO_BASE, (int64_t)take_uleb(at)) &&
               combine(it, DW_OP_plus);
    case DW_OP_and:
    case DW_OP_minus:
    case DW_OP_plus:
    case DW_OP_shl:
    case DW_OP_ge:
        return combine(it, op);
    default:
        return false;
    }
}

/* Evaluate at @pc. @return false if it says more than the struct can */
static bool evaluate(struct seep_cfi_cursor expression, uintptr_t pc,
                     struct value *ret_value)
{
    struct evaluator evaluator = {.depth = 0, .pc = pc};

    while (expression.at < expression.end) {
        uint8_t op = (uint8_t)take_unsigned(&expression, 1);

        if (!step(&evaluator, op, &expression) || expression.failed) {
            return false;
        }
    }
    if (expression.failed || evaluator.depth != 1) {
        return false;
    }
    *ret_value = evaluator.stack[0];
    return true;
}

/* Call frame instructions. */

#define CFA_SHORT_MASK 0xc0U

static void set_place(struct seep_cfi_machine *machine, uint64_t number,
                      enum seep_cfi_place_kind kind, uint64_t base,
                      int64_t offset)
{
    size_t index = seep_cfi_place_index(number);

    if (index == SEEP_CFI_PLACES) {
        return;
    }
    if (base != (uint8_t)base || offset != (seep_cfi_offset)offset) {
        kind = SEEP_CFI_UNSUPPORTED;
    }
    machine->row.places[index] = (struct seep_cfi_place){
        .kind = (uint8_t)kind,
        .base = (uint8_t)base,
        .offset = (seep_cfi_offset)offset,
    };
}

static int64_t factored(const struct seep_cfi_machine *machine, int64_t value)
{
    return (int64_t)((uint64_t)value *
                     (uint64_t)machine->entry->data_alignment);
}

static void restore_place(struct seep_cfi_machine *machine, uint64_t number)
{
    size_t index = seep_cfi_place_index(number);

    if (index != SEEP_CFI_PLACES) {
        machine->row.places[index] = machine->first.places[index];
    }
}

static void set_cfa(struct seep_cfi_machine *machine, uint64_t base,
                    int64_t offset)
{
    bool fits = base < NO_BASE && offset == (int32_t)offset;

    machine->row.cfa = (struct seep_cfi_cfa){
        .kind = fits ? SEEP_CFI_CFA_REGISTER : SEEP_CFI_CFA_UNSUPPORTED,
        .base = (uint8_t)base,
        .offset = (int32_t)offset,
    };
}

/* The block of an expression operation: its length, then its bytes. */
static struct seep_cfi_cursor take_block(struct seep_cfi_machine *machine)
{
    uint64_t bytes = take_uleb(&machine->at);
    const uint8_t *block = take(&machine->at, bytes);

    return (struct seep_cfi_cursor){
        .at = block, .end = machine->at.at, .failed = block == NULL};
}

static void set_cfa_expression(struct seep_cfi_machine *machine)
{
    struct seep_cfi_cursor block = take_block(machine);
    struct value value;

    set_cfa(machine, NO_BASE, 0);
    machine->by_target = true;
    if (!block.failed && evaluate(block, machine->target, &value) &&
        value.base != NO_BASE) {
        set_cfa(machine, value.base, value.offset);
        if (value.loaded && machine->row.cfa.kind == SEEP_CFI_CFA_REGISTER) {
            machine->row.cfa.kind = value.added == (int16_t)value.added
                                        ? SEEP_CFI_CFA_LOADED
                                        : SEEP_CFI_CFA_UNSUPPORTED;
            machine->row.cfa.added = (int16_t)value.added;
        }
    }
}

/* An expression for where a register is, or for what it is. */
static void set_expression(struct seep_cfi_machine *machine,
                           enum seep_cfi_place_kind kind)
{
    uint64_t number = take_uleb(&machine->at);
    struct seep_cfi_cursor block = take_block(machine);
    struct value value;

    machine->by_target = true;
    if (!block.failed && evaluate(block, machine->target, &value) &&
        value.base != NO_BASE &&
        (!value.loaded || (kind == SEEP_CFI_IS_REGISTER && value.added == 0))) {
        set_place(machine, number, value.loaded ? SEEP_CFI_AT_REGISTER : kind,
                  value.base, value.offset);
    } else {
        set_place(machine, number, SEEP_CFI_UNSUPPORTED, 0, 0);
    }
}

/* Go on to another pc. @return false if the row for the target is reached */
static bool go_to(struct seep_cfi_machine *machine, uintptr_t pc)
{
    if (pc > machine->target) {
        return false;
    }
    machine->pc = pc;
    return true;
}

static bool advance(struct seep_cfi_machine *machine, uint64_t units)
{
    return go_to(machine, machine->pc + units * machine->entry->code_alignment);
}

static void remember(struct seep_cfi_machine *machine)
{
    if (machine->remembered_count == SEEP_CFI_REMEMBERED) {
        machine->at.failed = true;
        return;
    }
    machine->remembered[machine->remembered_count++] = machine->row;
}

static void restore_state(struct seep_cfi_machine *machine)
{
    if (machine->remembered_count == 0) {
        machine->at.failed = true;
        return;
    }
    machine->row = machine->remembered[--machine->remembered_count];
}

/* The operations that say where the CFA is. @return false: not one */
static bool run_cfa(struct seep_cfi_machine *machine, uint8_t op)
{
    struct seep_cfi_cursor *at = &machine->at;
    const struct seep_cfi_cfa *cfa = &machine->row.cfa;
    uint64_t base;

    switch (op) {
    case DW_CFA_def_cfa:
        base = take_uleb(at);
        set_cfa(machine, base, (int64_t)take_uleb(at));
        return true;
    case DW_CFA_def_cfa_sf:
        base = take_uleb(at);
        set_cfa(machine, base, factored(machine, take_sleb(at)));
        return true;
    case DW_CFA_def_cfa_register:
        set_cfa(machine, take_uleb(at), cfa->offset);
        return true;
    case DW_CFA_def_cfa_offset:
        set_cfa(machine, cfa->base, (int64_t)take_uleb(at));
        return true;
    case DW_CFA_def_cfa_offset_sf:
        set_cfa(machine, cfa->base, factored(machine, take_sleb(at)));
        return true;
    case DW_CFA_def_cfa_expression:
        set_cfa_expression(machine);
        return true;
    default:
        return false;
    }
}

/* The operations that say where a register is. @return false: not one */
static bool run_register(struct seep_cfi_machine *machine, uint8_t op)
{
    struct seep_cfi_cursor *at = &machine->at;
    uint64_t number;

    switch (op) {
    case DW_CFA_expression:
        set_expression(machine, SEEP_CFI_AT_REGISTER);
        return true;
    case DW_CFA_restore_extended:
        restore_place(machine, take_uleb(at));
        return true;
    case DW_CFA_offset_extended:
    case DW_CFA_offset_extended_sf:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_GNU_negative_offset_extended: {
        bool is_signed =
            op == DW_CFA_offset_extended_sf || op == DW_CFA_val_offset_sf;
        bool is_value = op == DW_CFA_val_offset || op == DW_CFA_val_offset_sf;
        int64_t offset;

        number = take_uleb(at);
        offset = is_signed ? take_sleb(at) : (int64_t)take_uleb(at);
        offset = factored(machine, offset);
        if (op == DW_CFA_GNU_negative_offset_extended) {
            offset = (int64_t)(0 - (uint64_t)offset);
        }
        set_place(machine, number, is_value ? SEEP_CFI_IS_CFA : SEEP_CFI_AT_CFA,
                  0, offset);
        return true;
    }
    case DW_CFA_undefined:
        set_place(machine, take_uleb(at), SEEP_CFI_UNDEFINED, 0, 0);
        return true;
    case DW_CFA_same_value:
        set_place(machine, take_uleb(at), SEEP_CFI_SAME, 0, 0);
        return true;
    case DW_CFA_register:
        number = take_uleb(at);
        set_place(machine, number, SEEP_CFI_IS_REGISTER, take_uleb(at), 0);
        return true;
    case DW_CFA_val_expression:
        set_expression(machine, SEEP_CFI_IS_REGISTER);
        return true;
    default:
        return false;
    }
}

/* The operations without a short form. @return false: the row is reached */
static bool run_extended(struct seep_cfi_machine *machine, uint8_t op)
{
    struct seep_cfi_cursor *at = &machine->at;

    switch (op) {
    case DW_CFA_nop:
    case DW_CFA_GNU_window_save: /* aarch64: the return address is signed */
        return true;
    case DW_CFA_set_loc:
        return go_to(machine, take_pointer(at, machine->entry->pointer_encoding,
                                           machine->entry->shift, 0));
    case DW_CFA_advance_loc1:
        return advance(machine, take_unsigned(at, 1));
    case DW_CFA_advance_loc2:
        return advance(machine, take_unsigned(at, 2));
    case DW_CFA_advance_loc4:
        return advance(machine, take_unsigned(at, 4));
    case DW_CFA_MIPS_advance_loc8:
        return advance(machine, take_unsigned(at, 8));
    case DW_CFA_remember_state:
        remember(machine);
        return true;
    case DW_CFA_restore_state:
        restore_state(machine);
        return true;
    case DW_CFA_GNU_args_size:
        take_uleb(at);
        return true;
    default:
        if (!run_cfa(machine, op) && !run_register(machine, op)) {
            at->failed = true;
        }
        return true;
    }
}

/* From where the machine stands on, which is where it can go on from then.
 * @return false if anything in the program is malformed */
static bool run_program(struct seep_cfi_machine *machine)
{
    while (machine->at.at < machine->at.end && !machine->at.failed) {
        const uint8_t *here = machine->at.at;
        uint8_t op = (uint8_t)take_unsigned(&machine->at, 1);
        uint8_t operand = op & (uint8_t)~CFA_SHORT_MASK;
        bool goes_on = true;

        switch (op & CFA_SHORT_MASK) {
        case DW_CFA_advance_loc:
            goes_on = advance(machine, operand);
            break;
        case DW_CFA_offset:
            set_place(machine, operand, SEEP_CFI_AT_CFA, 0,
                      factored(machine, (int64_t)take_uleb(&machine->at)));
            break;
        case DW_CFA_restore:
            restore_place(machine, operand);
            break;
        default:
            goes_on = run_extended(machine, op);
        }
        if (!goes_on && !machine->at.failed) {
            machine->at.at = here;
            return true;
        }
    }
    return !machine->at.failed;
}

bool seep_cfi_begin(struct seep_cfi_machine *machine,
                    const struct seep_cfi_entry *entry, uintptr_t pc)
{
    /* In place: a hook's stack has no room for a second one. */
    memset(machine, 0, sizeof(*machine));
    machine->entry = entry;
    machine->at = entry->common;
    machine->pc = entry->pc_low;
    machine->target = pc;
    if (!run_program(machine)) {
        return false;
    }
    machine->by_target |= machine->at.at < machine->at.end;
    machine->first = machine->row;
    machine->pc = entry->pc_low;
    machine->at = entry->own;
    return true;
}

bool seep_cfi_go_on(struct seep_cfi_machine *machine, uintptr_t pc)
{
    machine->target = pc;
    return run_program(machine);
}

SEEP_NOINLINE enum seep_cut seep_cfi_run(const struct seep_cfi_entry *entry,
                                         uintptr_t pc,
                                         struct seep_cfi_row *ret_row)
{
    struct seep_cfi_machine machine;

    if (!seep_cfi_begin(&machine, entry, pc) || !seep_cfi_go_on(&machine, pc)) {
        return SEEP_CUT_MALFORMED;
    }
    *ret_row = machine.row;
    return SEEP_CUT_NONE;
}
