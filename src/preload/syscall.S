/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * syscall(): a program may restrict itself by it, without prctl().
 *
 * It must be a jump and not a call: syscall(SYS_vfork) returns twice, on this
 * stack. Every argument register is kept; the stack is as the caller left it.
 */
#if defined(__x86_64__)
    .text
    .globl syscall
    .type syscall, @function
    .p2align 4
syscall:
    .cfi_startproc
    endbr64
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    push %rcx
    .cfi_adjust_cfa_offset 8
    push %r8
    .cfi_adjust_cfa_offset 8
    push %r9
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call seep_restrict_syscall
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %r9
    .cfi_adjust_cfa_offset -8
    pop %r8
    .cfi_adjust_cfa_offset -8
    pop %rcx
    .cfi_adjust_cfa_offset -8
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size syscall, . - syscall
#elif defined(__aarch64__)
    .text
    .globl syscall
    .type syscall, %function
    .p2align 2
syscall:
    .cfi_startproc
    stp x29, x30, [sp, -80]!
    .cfi_def_cfa_offset 80
    .cfi_offset x29, -80
    .cfi_offset x30, -72
    stp x0, x1, [sp, 16]
    stp x2, x3, [sp, 32]
    stp x4, x5, [sp, 48]
    str x6, [sp, 64]
    bl seep_restrict_syscall
    mov x16, x0
    ldp x0, x1, [sp, 16]
    ldp x2, x3, [sp, 32]
    ldp x4, x5, [sp, 48]
    ldr x6, [sp, 64]
    ldp x29, x30, [sp], 80
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
    .size syscall, . - syscall
#endif
    .section .note.GNU-stack, "", %progbits
