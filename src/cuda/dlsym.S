/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dlsym(), dlvsym() and dlopen().
 *
 * They must be jumps and not calls: the next dlsym takes its return address for
 * its caller, who is the start of RTLD_NEXT and has a scope of his own for
 * RTLD_DEFAULT. Every argument register is kept; the stack is as the caller
 * left it. Only a name that begins with "cu" and a capital letter is looked at
 * further, and never with RTLD_NEXT (-1), nor with RTLD_DEFAULT (0) by dlvsym,
 * which nobody was seen to do. dlopen is looked at where its flags have
 * RTLD_DEEPBIND (8), and is a call only where deep.c says that it may be.
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

    .macro door name, next, ours, passes_default
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
    jne 1f
    cmpb $'u', 1(%rsi)
    jne 1f
    movzbl 2(%rsi), %eax
    sub $'A', %eax
    cmp $25, %eax
    ja 1f
    keep
    call seep_cuda_answers
    restore
    test %al, %al
    jnz \ours
1:  mov \next(%rip), %rax
    test %rax, %rax
    jz 2f
    jmp *%rax
2:  keep
    call seep_cuda_open_doors
    restore
    mov \next(%rip), %rax
    test %rax, %rax
    jz 3f
    jmp *%rax
3:  ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    door dlsym, seep_cuda_next_dlsym, seep_cuda_dlsym, 0
    door dlvsym, seep_cuda_next_dlvsym, seep_cuda_dlvsym, 1

    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    endbr64
    test $8, %esi
    jnz 3f
1:  mov seep_cuda_next_dlopen(%rip), %rax
    test %rax, %rax
    jz 2f
    jmp *%rax
2:  keep
    call seep_cuda_open_doors
    restore
    mov seep_cuda_next_dlopen(%rip), %rax
    test %rax, %rax
    jz 4f
    jmp *%rax
3:  keep
    call seep_cuda_opens_deep
    restore
    test %al, %al
    jz 1b
    jmp seep_cuda_dlopen
4:  ret
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

    .macro load_next next
    adrp x16, \next
    ldr x16, [x16, :lo12:\next]
    .endm

    .macro door name, next, ours, passes_default
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
    b.ne 1f
    ldrb w9, [x1, 1]
    cmp w9, 'u'
    b.ne 1f
    ldrb w9, [x1, 2]
    sub w9, w9, 'A'
    cmp w9, 25
    b.hi 1f
    keep
    bl seep_cuda_answers
    mov w9, w0
    restore
    tst w9, 0xff
    b.eq 1f
    b \ours
1:  load_next \next
    cbz x16, 2f
    br x16
2:  keep
    bl seep_cuda_open_doors
    restore
    load_next \next
    cbz x16, 3f
    br x16
3:  mov x0, 0
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    .text
    door dlsym, seep_cuda_next_dlsym, seep_cuda_dlsym, 0
    door dlvsym, seep_cuda_next_dlvsym, seep_cuda_dlvsym, 1

    .globl dlopen
    .type dlopen, %function
    .p2align 4
dlopen:
    .cfi_startproc
    hint 34 // bti c
    tbnz w1, 3, 3f
1:  load_next seep_cuda_next_dlopen
    cbz x16, 2f
    br x16
2:  keep
    bl seep_cuda_open_doors
    restore
    load_next seep_cuda_next_dlopen
    cbz x16, 4f
    br x16
3:  keep
    bl seep_cuda_opens_deep
    mov w9, w0
    restore
    tst w9, 0xff
    b.eq 1b
    b seep_cuda_dlopen
4:  mov x0, 0
    ret
    .cfi_endproc
    .size dlopen, . - dlopen
#endif

    // The same under names that nobody stands before.
    .globl seep_cuda_door_dlsym
    .hidden seep_cuda_door_dlsym
    .set seep_cuda_door_dlsym, dlsym
    .globl seep_cuda_door_dlvsym
    .hidden seep_cuda_door_dlvsym
    .set seep_cuda_door_dlvsym, dlvsym
    .section .note.GNU-stack, "", %progbits
