/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Included before everything else in the sources that the model runs: each of
 * their atomic operations becomes a call of engine.c, and so do sleep, clock
 * and system calls.
 *
 * Invariant: the sources themselves are those of the product, unchanged.
 */
#ifndef SEEP_TESTS_MODEL_INTERCEPT_H
#define SEEP_TESTS_MODEL_INTERCEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/** One atomic operation of the sources. */
struct model_place {
    const char *function; /* NULL: it was not reached yet */
    const char *file;
    const char *kind;
    int line;
    int order;
    bool is_weak;  /* planted: its order is relaxed */
    bool is_split; /* planted: it is a load and a store */
    struct model_place *next;
};

uint64_t model_load(struct model_place *place, const char *function,
                    const volatile void *at, size_t bytes);
void model_store(struct model_place *place, const char *function,
                 volatile void *at, size_t bytes, uint64_t value);
bool model_replace(struct model_place *place, const char *function,
                   volatile void *at, size_t bytes, uint64_t *seen,
                   uint64_t value);
/** @param operation '+', '|' or '=' @return what was there */
uint64_t model_update(struct model_place *place, const char *function,
                      volatile void *at, size_t bytes, char operation,
                      uint64_t value);
void model_fence(struct model_place *place, const char *function);
int model_clock_gettime(clockid_t clock, struct timespec *ret_now);
int model_nanosleep(const struct timespec *time, struct timespec *ret_left);
long model_syscall(long number, long b);

#define MODEL_PLACE(its_kind, its_order)       \
    static struct model_place model_place_ = { \
        NULL, __FILE__, its_kind, __LINE__, its_order, false, false, NULL}
#define MODEL_VALUE(at) __typeof__((void)0, *(at))

#undef atomic_load_explicit
#define atomic_load_explicit(at, order)                             \
    __extension__({                                                 \
        MODEL_PLACE("load", order);                                 \
        (MODEL_VALUE(at))                                           \
            model_load(&model_place_, __func__, at, sizeof(*(at))); \
    })
#undef atomic_store_explicit
#define atomic_store_explicit(at, value, order)                 \
    __extension__({                                             \
        MODEL_PLACE("store", order);                            \
        model_store(&model_place_, __func__, at, sizeof(*(at)), \
                    (uint64_t)(MODEL_VALUE(at))(value));        \
    })
#undef atomic_compare_exchange_strong_explicit
#define atomic_compare_exchange_strong_explicit(at, seen, value, order, other) \
    __extension__({                                                            \
        MODEL_PLACE("replace", order);                                         \
        uint64_t model_seen_ = *(seen);                                        \
        bool model_done_ =                                                     \
            model_replace(&model_place_, __func__, at, sizeof(*(at)),          \
                          &model_seen_, (uint64_t)(value));                    \
        *(seen) = (MODEL_VALUE(at))model_seen_;                                \
        model_done_;                                                           \
    })
#define MODEL_UPDATE(at, value, order, operation)                        \
    __extension__({                                                      \
        MODEL_PLACE("update", order);                                    \
        (MODEL_VALUE(at))                                                \
            model_update(&model_place_, __func__, at, sizeof(*(at)),     \
                         operation, (uint64_t)(MODEL_VALUE(at))(value)); \
    })
#undef atomic_fetch_add_explicit
#define atomic_fetch_add_explicit(at, value, order) \
    MODEL_UPDATE(at, value, order, '+')
#undef atomic_fetch_or_explicit
#define atomic_fetch_or_explicit(at, value, order) \
    MODEL_UPDATE(at, value, order, '|')
#undef atomic_exchange_explicit
#define atomic_exchange_explicit(at, value, order) \
    MODEL_UPDATE(at, value, order, '=')
#undef atomic_thread_fence
#define atomic_thread_fence(order)            \
    __extension__({                           \
        MODEL_PLACE("fence", order);          \
        model_fence(&model_place_, __func__); \
    })
/* A signal is not among what is modelled. */
#undef atomic_signal_fence
#define atomic_signal_fence(order) ((void)0)

#define clock_gettime model_clock_gettime
#define nanosleep model_nanosleep

/* In the place of base/syscall.h. */
#define SEEP_BASE_SYSCALL_H
static inline long seep_syscall2(long number, long a, long b)
{
    (void)a;
    return model_syscall(number, b);
}

static inline long seep_syscall3(long number, long a, long b, long c)
{
    (void)a;
    (void)c;
    return model_syscall(number, b);
}

#endif
