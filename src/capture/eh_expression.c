/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * DWARF expressions, evaluated symbolically: "register + offset", or a load
 * of that and a constant more. It covers what compilers write for realigned
 * stacks, the PLT and signal frames, and what OpenSSL's assembler does; the pc
 * is known, so the PLT's comparison folds to a constant.
 *
 * Invariant: at most STACK_MAX values; anything else is answered false.
 */
#include "capture/eh_frame.h"

#define STACK_MAX 4U

enum {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_GE = 0x2a,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
};

struct machine {
    struct seep_eh_value stack[STACK_MAX];
    size_t depth;
    uintptr_t pc;
};

static bool push(struct machine *machine, uint8_t base, int64_t offset)
{
    if (machine->depth == STACK_MAX) {
        return false;
    }
    machine->stack[machine->depth++] =
        (struct seep_eh_value){.base = base, .offset = offset};
    return true;
}

static bool add(struct seep_eh_value *left, const struct seep_eh_value *right)
{
    int64_t *sum = left->loaded ? &left->added : &left->offset;

    if (right->base != SEEP_EH_NO_BASE) {
        return false;
    }
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)right->offset);
    return true;
}

/* An operation on the two uppermost values; but for plus both constants. */
static bool combine(struct machine *machine, uint8_t op)
{
    struct seep_eh_value *left;
    struct seep_eh_value *right;

    if (machine->depth < 2) {
        return false;
    }
    left = &machine->stack[machine->depth - 2];
    right = &machine->stack[machine->depth - 1];
    machine->depth--;
    if (op == OP_PLUS && left->base == SEEP_EH_NO_BASE) {
        struct seep_eh_value swapped = *left;

        *left = *right;
        return add(left, &swapped);
    }
    if (op == OP_PLUS) {
        return add(left, right);
    }
    if (op == OP_MINUS) {
        right->offset = (int64_t)(0 - (uint64_t)right->offset);
        return add(left, right);
    }
    if (left->base != SEEP_EH_NO_BASE || right->base != SEEP_EH_NO_BASE) {
        return false;
    }
    if (op == OP_AND) {
        left->offset &= right->offset;
    } else if (op == OP_GE) {
        left->offset = left->offset >= right->offset;
    } else {
        left->offset =
            (int64_t)((uint64_t)left->offset << ((uint64_t)right->offset & 63));
    }
    return true;
}

static bool load(struct machine *machine)
{
    struct seep_eh_value *top;

    if (machine->depth == 0) {
        return false;
    }
    top = &machine->stack[machine->depth - 1];
    if (top->base == SEEP_EH_NO_BASE || top->loaded) {
        return false;
    }
    top->loaded = true;
    return true;
}

static bool push_constant(struct machine *machine, uint8_t op,
                          struct seep_eh_cursor *at)
{
    size_t size = (size_t)1 << ((op - OP_CONST1U) / 2);

    if (op == OP_CONSTU) {
        return push(machine, SEEP_EH_NO_BASE, (int64_t)seep_eh_uleb(at));
    }
    if (op == OP_CONSTS) {
        return push(machine, SEEP_EH_NO_BASE, seep_eh_sleb(at));
    }
    return push(machine, SEEP_EH_NO_BASE,
                op % 2 == 0 ? (int64_t)seep_eh_unsigned(at, size)
                            : seep_eh_signed(at, size));
}

static bool step(struct machine *machine, uint8_t op, struct seep_eh_cursor *at)
{
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        return push(machine, SEEP_EH_NO_BASE, op - OP_LIT0);
    }
#if defined(__x86_64__)
    /* There it stands for the pc; on aarch64 it is x30, a register. */
    if (op == OP_BREG0 + SEEP_EH_RETURN) {
        return push(machine, SEEP_EH_NO_BASE,
                    (int64_t)(machine->pc + (uint64_t)seep_eh_sleb(at)));
    }
#endif
    if (op >= OP_BREG0 && op <= OP_BREG31) {
        return push(machine, (uint8_t)(op - OP_BREG0), seep_eh_sleb(at));
    }
    switch (op) {
    case OP_DEREF:
        return load(machine);
    case OP_CONST1U:
    case OP_CONST1S:
    case OP_CONST2U:
    case OP_CONST2S:
    case OP_CONST4U:
    case OP_CONST4S:
    case OP_CONSTU:
    case OP_CONSTS:
        return push_constant(machine, op, at);
    case OP_PLUS_UCONST:
        return push(machine, SEEP_EH_NO_BASE, (int64_t)seep_eh_uleb(at)) &&
               combine(machine, OP_PLUS);
    case OP_AND:
    case OP_MINUS:
    case OP_PLUS:
    case OP_SHL:
    case OP_GE:
        return combine(machine, op);
    default:
        return false;
    }
}

bool seep_eh_evaluate(struct seep_eh_cursor expression, uintptr_t pc,
                      struct seep_eh_value *ret_value)
{
    struct machine machine = {.depth = 0, .pc = pc};

    while (expression.at < expression.end) {
        uint8_t op = (uint8_t)seep_eh_unsigned(&expression, 1);

        if (!step(&machine, op, &expression) || expression.failed) {
            return false;
        }
    }
    if (expression.failed || machine.depth != 1) {
        return false;
    }
    *ret_value = machine.stack[0];
    return true;
}
