/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What counts comparisons, for targets with a mutator of their own: nothing.
 * libFuzzer only makes dictionaries of them for its own mutator, and they take
 * a third of the time of a report. The linker puts these in their place
 * (--wrap in meson.build).
 */
#include <stdint.h>

#define UNSEEN(name, type)                                    \
    void __wrap___sanitizer_cov_trace_##name(type a, type b); \
    void __wrap___sanitizer_cov_trace_##name(type a, type b)  \
    {                                                         \
        (void)a;                                              \
        (void)b;                                              \
    }

UNSEEN(cmp1, uint8_t)
UNSEEN(cmp2, uint16_t)
UNSEEN(cmp4, uint32_t)
UNSEEN(cmp8, uint64_t)
UNSEEN(const_cmp1, uint8_t)
UNSEEN(const_cmp2, uint16_t)
UNSEEN(const_cmp4, uint32_t)
UNSEEN(const_cmp8, uint64_t)
