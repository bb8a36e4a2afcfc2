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

/* gcc wants an alias to have the attributes of what it is of; clang knows none
 * of that. */
#if defined(__has_attribute)
#if __has_attribute(copy)
#define SEEP_ALIAS(function) alias(#function), copy(function)
#endif
#endif
#ifndef SEEP_ALIAS
#define SEEP_ALIAS(function) alias(#function)
#endif

/**
 * By its name, exported as @name with @version, which is not the default one:
 * so no dlsym() sees it. Who asks for that version is bound to it, and to the
 * first one of an object who asks for none.
 *
 * @param id  of this export alone
 */
#define SEEP_EXPORT_AS(function, name, version, id)          \
    SEEP_EXPORT extern __typeof__(function) seep_export_##id \
        __attribute__((SEEP_ALIAS(function)));               \
    __asm__(".symver seep_export_" #id ", " #name "@" version ", remove")

#define SEEP_PRINTF(format, first) \
    __attribute__((format(printf, format, first)))

#endif
