/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Prototypes of the wrappers, from hooks.def, and what each of them begins
 * with.
 *
 * Invariant: a wrapper calls its real target with the caller's arguments, once,
 * and gives back what that gave. The one error of our own is for a caller
 * whose driver cannot be found, who could not have called without us.
 */
#ifndef SEEP_CUDA_HOOKS_H
#define SEEP_CUDA_HOOKS_H

#include "base/compiler.h"
#include "cuda/abi.h"
#include "cuda/resolve.h"

#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters) \
    int seep_cuda_##name parameters;
#include "cuda/hooks.def"
#undef SEEP_CUDA_HOOK

/**
 * Behind each wrapper: the name by which others bind to it. The version, which
 * is not the default one, is seen by no dlsym, so that nobody takes us for a
 * driver; a directly linked program, which asks for no version, gets the first
 * version that an object has. We ourselves mean ours, also where another
 * library stands before us.
 */
#define SEEP_CUDA_EXPORT(name)                                              \
    SEEP_EXPORT extern __typeof__(seep_cuda_##name) seep_export_##name      \
        __attribute__((alias("seep_cuda_" #name), copy(seep_cuda_##name))); \
    __asm__(".symver seep_export_" #name ", " #name "@SEEP_CUDA, remove")

/** The real target of a wrapper, and in it; NULL if there is none. */
#define SEEP_CUDA_REAL(name)                                           \
    ((__typeof__(&seep_cuda_##name))seep_cuda_target(                  \
        SEEP_CUDA_ID_##name, (uintptr_t)__builtin_extract_return_addr( \
                                 __builtin_return_address(0))))

#endif
