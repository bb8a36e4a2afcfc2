/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dlsym(), dlvsym() and dlopen().
 *
 * They must be jumps and not calls: the next dlsym takes its return address for
 * its caller, who is the start of RTLD_NEXT and has a scope of his own for
 * RTLD_DEFAULT. Every argument register is kept; the stack is as the caller
 * left it. Only a name that begins with "cu" and a capital letter, "cf" or
 * "fre" is looked at further, and never with RTLD_NEXT (-1), nor with RTLD_DEFAULT (0) by dlvsym,
 * which nobody was seen to do. Of dlopen those with RTLD_DEEPBIND (8) are
 * counted.
 */
#if defined(__x86_64__)
    .macro keep
    push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    push %rdx
    .cfi_adjust_cfa_offset 8
    .endm

    .macro restore
    pop %rdx
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    .endm

    .macro go_on next
    mov \next(%rip), %rax
    test %rax, %rax
    jz 8f
    jmp *%rax
8:  keep
    call seep_cuda_find_lookups
    restore
    mov \next(%rip), %rax
    test %rax, %rax
    jz 9f
    jmp *%rax
9:  ret
    .endm

    .macro lookup name, next, ours, passes_default
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    cmp $-1, %rdi
    je 1f
    .if \passes_default
    test %rdi, %rdi
    jz 1f
    .endif
    cmpb $'c', (%rsi)
    jne 2f
    cmpb $'f', 1(%rsi)
    je 3f
    cmpb $'u', 1(%rsi)
    jne 1f
    movzbl 2(%rsi), %eax
    sub $'A', %eax
    cmp $25, %eax
    ja 1f
    jmp 3f
2:  cmpb $'f', (%rsi)
    jne 1f
    cmpb $'r', 1(%rsi)
    jne 1f
    cmpb $'e', 2(%rsi)
    jne 1f
3:  keep
    call seep_cuda_answers
    restore
    test %al, %al
    jnz \ours
1:  go_on \next
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    lookup dlsym, seep_cuda_next_dlsym, seep_cuda_dlsym, 0
    lookup dlvsym, seep_cuda_next_dlvsym, seep_cuda_dlvsym, 1

    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    endbr64
    test $8, %esi
    jz 1f
    keep
    call seep_cuda_opens_deep
    restore
1:  go_on seep_cuda_next_dlopen
    .cfi_endproc
    .size dlopen, . - dlopen
#elif defined(__aarch64__)
    .macro keep
    stp x29, x30, [sp, -48]!
    .cfi_def_cfa_offset 48
    .cfi_offset x29, -48
    .cfi_offset x30, -40
    mov x29, sp
    stp x0, x1, [sp, 16]
    str x2, [sp, 32]
    .endm

    .macro restore
    ldr x2, [sp, 32]
    ldp x0, x1, [sp, 16]
    ldp x29, x30, [sp], 48
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    .endm

    .macro go_on next
    adrp x16, \next
    ldr x16, [x16, :lo12:\next]
    cbz x16, 8f
    br x16
8:  keep
    bl seep_cuda_find_lookups
    restore
    adrp x16, \next
    ldr x16, [x16, :lo12:\next]
    cbz x16, 9f
    br x16
9:  mov x0, 0
    ret
    .endm

    .macro lookup name, next, ours, passes_default
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint 34 // bti c
    cmn x0, 1
    b.eq 1f
    .if \passes_default
    cbz x0, 1f
    .endif
    ldrb w9, [x1]
    cmp w9, 'c'
    b.ne 2f
    ldrb w9, [x1, 1]
    cmp w9, 'f'
    b.eq 3f
    cmp w9, 'u'
    b.ne 1f
    ldrb w9, [x1, 2]
    sub w9, w9, 'A'
    cmp w9, 25
    b.hi 1f
    b 3f
2:  cmp w9, 'f'
    b.ne 1f
    ldrb w9, [x1, 1]
    cmp w9, 'r'
    b.ne 1f
    ldrb w9, [x1, 2]
    cmp w9, 'e'
    b.ne 1f
3:  keep
    bl seep_cuda_answers
    mov w9, w0
    restore
    tst w9, 0xff
    b.eq 1f
    b \ours
1:  go_on \next
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    lookup dlsym, seep_cuda_next_dlsym, seep_cuda_dlsym, 0
    lookup dlvsym, seep_cuda_next_dlvsym, seep_cuda_dlvsym, 1

    .globl dlopen
    .type dlopen, %function
    .p2align 4
dlopen:
    .cfi_startproc
    hint 34 // bti c
    tbz w1, 3, 1f
    keep
    bl seep_cuda_opens_deep
    restore
1:  go_on seep_cuda_next_dlopen
    .cfi_endproc
    .size dlopen, . - dlopen
#endif

    .section .note.GNU-stack, "", %progbits
