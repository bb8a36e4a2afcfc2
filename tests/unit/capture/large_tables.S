/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unwind tables of a megabyte and a half: 50,000 functions of 16 bytes, each of
 * which calls what its first argument points to. The frame of the i-th has
 * 16 * (1 + (i + VARIANT) % 4) bytes, as its rule says.
 */
    .text
    .globl large_tables_code
    .type large_tables_code, %function
    .balign 16
large_tables_code:
    .set number, VARIANT
    .rept 50000
    .set frame, 16 * (1 + number % 4)
    .cfi_startproc
#if defined(__aarch64__)
    stp x29, x30, [sp, -frame]!
    .cfi_def_cfa_offset frame
    .cfi_offset 29, -frame
    .cfi_offset 30, 8 - frame
    blr x0
    ldp x29, x30, [sp], frame
    ret
#else
    sub $(frame - 8), %rsp
    .cfi_def_cfa_offset frame
    call *%rdi
    add $(frame - 8), %rsp
    ret
#endif
    .cfi_endproc
    .balign 16
    .set number, number + 1
    .endr
    .size large_tables_code, . - large_tables_code

    .section .note.GNU-stack, "", %progbits
