/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Which wrapper stands before which entry point of the driver, where the entry
 * point itself is, and the look-ups by which a program comes to it: dlsym,
 * dlvsym, and the driver's own cuGetProcAddress.
 *
 * Invariant: a wrapper is handed out only once its real target is known, and
 * only to a caller who would have got that target, or one of the same driver.
 * The driver is never loaded by us. The loader's lock is taken only by the
 * first call of a directly linked caller of whom nothing else tells the target:
 * another thread may hold it, and wait for a lock of the caller's.
 *
 * What is no name of the driver's reaches the next dlsym by a jump, with the
 * caller's registers, stack and return address: RTLD_NEXT and RTLD_DEFAULT mean
 * the caller's place in the order of objects. What is one is looked up first,
 * and only an answer is exchanged, never its absence. So is dlopen a jump.
 */
#ifndef SEEP_CUDA_RESOLVE_H
#define SEEP_CUDA_RESOLVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/word.h"
#include "capture/native/elf.h"

enum seep_cuda_id {
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters) \
    SEEP_CUDA_ID_##name,
#include "cuda/hooks.def"
    SEEP_CUDA_IDS
};

/** No such variant. */
#define SEEP_CUDA_NONE SIZE_MAX

/** The version of CUDA up to which every variant of our names is known. */
#define SEEP_CUDA_NEWEST 13000

typedef void seep_cuda_function(void);

struct seep_cuda_variant {
    const char *name;
    const char *base;
    int version;
    bool per_thread;
    seep_cuda_function *wrapper;
};

/** By enum seep_cuda_id. */
extern const struct seep_cuda_variant seep_cuda_variants[SEEP_CUDA_IDS]
    __attribute__((visibility("hidden")));

/** The real targets of the wrappers; 0: not known. */
extern _Atomic uintptr_t seep_cuda_targets[SEEP_CUDA_IDS]
    __attribute__((visibility("hidden")));

/** The variant that is exported as @name. @return SEEP_CUDA_NONE if none is */
size_t seep_cuda_find_exact(const char *name);

/** The variant that a driver gives for @base at @version with @flags. */
size_t seep_cuda_find_version(const char *base, int version, uint64_t flags);

/**
 * A look-up of the variant @index found @target.
 *
 * @return what the caller is to get: the wrapper, or @target
 */
uintptr_t seep_cuda_substitute(size_t index, uintptr_t target);

/** Look for what the program is linked with; from the constructor only. */
void seep_cuda_prepare(void);

/** The real target of a wrapper, looked for if it is not known. 0: none.
 * @caller: who called the wrapper; 0: nobody. */
uintptr_t seep_cuda_find_target(size_t index, uintptr_t caller);

static inline uintptr_t seep_cuda_target(enum seep_cuda_id id, uintptr_t caller)
{
    uintptr_t real = seep_word_load(&seep_cuda_targets[id]);

    return __builtin_expect(real != 0, 1) ? real
                                          : seep_cuda_find_target(id, caller);
}

/** Does @pc, of the calling thread's code, lie in a driver? Also before
 * anything was looked up in it: its first call sets most address space aside.
 * No lock. */
bool seep_cuda_is_driver(uintptr_t pc);

/** Behind a dlclose: targets that went with their object are forgotten, and
 * what we ask of the driver ourselves (driver.h) with it. */
void seep_cuda_forget_unloaded(void);

/**
 * The function @name of the first object behind this one that has it, in the
 * order in which the loader would look; of the objects that were there at the
 * start. No lock, no allocation.
 *
 * @return 0 if there is none, or if this library is not relocated yet
 */
uintptr_t seep_cuda_next(const char *name);

/**
 * Who defines @name among the objects that the one of @caller is bound to, us
 * left out? Without the loader: @caller is code on the stack, so it stays and
 * all that it is bound to.
 *
 * @return its address; 0, and ret_image untouched, if nobody is known to
 */
uintptr_t seep_cuda_bound_definition(uintptr_t caller, const char *name,
                                     struct seep_elf_image *ret_image);

/** What dlsym finds for this library: RTLD_NEXT is behind it. */
uintptr_t seep_cuda_symbol(void *handle, const char *name);

/** dlclose, past our own hook. */
void seep_cuda_close(void *handle);

/* For dlsym.S. The next definitions; 0 until the first call. */
extern _Atomic uintptr_t seep_cuda_next_dlsym
    __attribute__((visibility("hidden")));
extern _Atomic uintptr_t seep_cuda_next_dlvsym
    __attribute__((visibility("hidden")));
extern _Atomic uintptr_t seep_cuda_next_dlopen
    __attribute__((visibility("hidden")));

/** Find them, at the first call. */
void seep_cuda_find_lookups(void);

/**
 * From the constructor: a name that is exported as a wrapper is, but not of the
 * driver. Whoever looks it up and finds @real gets @ours; 0: nobody will.
 */
void seep_cuda_answer_for(const char *name, uintptr_t ours, uintptr_t real);

/** Is the look-up of @name, which begins as the driver's do or those of the
 * above, for one of the two below? Counts it. */
bool seep_cuda_answers(void *handle, const char *name);

/** dlsym and dlvsym of a name that is wrapped. */
void *seep_cuda_dlsym(void *handle, const char *name);
void *seep_cuda_dlvsym(void *handle, const char *name, const char *version);

/** Counts a dlopen with RTLD_DEEPBIND, whose object looks into its own scope
 * before the global one and so past this library. */
void seep_cuda_opens_deep(const char *file, int flags);

/** Ask the driver for the same name at another version. 0: it has none. */
typedef uintptr_t seep_cuda_ask(const void *driver, const char *name,
                                int version, uint64_t flags);

/**
 * The driver gave @target for @name at @version with @flags.
 *
 * @param ask     asks again, where @version is newer than what is known here
 * @param driver  for @ask
 * @return what the caller is to get
 */
uintptr_t seep_cuda_exchange(const char *name, int version, uint64_t flags,
                             uintptr_t target, seep_cuda_ask *ask,
                             const void *driver);

#endif
