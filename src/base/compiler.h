/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What C11 leaves to the compiler: attributes and branch hints, nothing else.
 */
#ifndef SEEP_BASE_COMPILER_H
#define SEEP_BASE_COMPILER_H

#define seep_likely(x) __builtin_expect(!!(x), 1)
#define seep_unlikely(x) __builtin_expect(!!(x), 0)
#define SEEP_NOINLINE __attribute__((noinline))
#define SEEP_INLINE static inline __attribute__((always_inline))
#define SEEP_COLD __attribute__((cold, noinline))
#define SEEP_EXPORT __attribute__((visibility("default")))
#define SEEP_PRINTF(format, first) \
    __attribute__((format(printf, format, first)))

#endif
