/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Look-ups of the driver's names, by whichever way, and where the entry points
 * behind the wrappers are; see resolve.h.
 *
 * Invariant: the real look-up is the last of the loader's functions that is
 * called before a failure is answered, so that dlerror() tells of the
 * program's own.
 */
#include "cuda/resolve.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "capture/native/elf.h"
#include "cuda/abi.h"
#include "cuda/driver.h"
#include "cuda/ledger.h"

#define DRIVER "libcuda.so.1"

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOBAL_DATA R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOBAL_DATA R_AARCH64_GLOB_DAT
#else
#error "no relocations for this architecture"
#endif

size_t seep_cuda_find_exact(const char *name)
{
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        if (strcmp(seep_cuda_variants[i].name, name) == 0) {
            return i;
        }
    }
    return SEEP_CUDA_NONE;
}

size_t seep_cuda_find_version(const char *base, int version, uint64_t flags)
{
    bool wants_twin = (flags & SEEP_CUDA_LOOKUP_PER_THREAD_STREAM) != 0;
    size_t best[2] = {SEEP_CUDA_NONE, SEEP_CUDA_NONE};

    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        const struct seep_cuda_variant *variant = &seep_cuda_variants[i];

        if (variant->version <= version && strcmp(variant->base, base) == 0) {
            best[variant->per_thread] = i;
        }
    }
    return wants_twin && best[1] != SEEP_CUDA_NONE ? best[1] : best[0];
}

/*
 * Do both lie in one object? A driver may give one address by its own look-up
 * and another by its symbol, and both are the same entry point. What lies in
 * an object that is not known yet is taken for the driver that was just loaded.
 */
static bool is_same_object(uintptr_t a, uintptr_t b)
{
    struct seep_elf_image image_a;
    struct seep_elf_image image_b;
    bool known_a = seep_objects_locate(a, &image_a);
    bool known_b = seep_objects_locate(b, &image_b);

    return known_a == known_b && (!known_a || image_a.bias == image_b.bias);
}

uintptr_t seep_cuda_substitute(size_t index, uintptr_t target)
{
    uintptr_t wrapper = (uintptr_t)seep_cuda_variants[index].wrapper;
    uintptr_t known = 0;

    /* A driver that binds its own names as everybody does finds ours. */
    if (target == wrapper) {
        seep_cuda_target((enum seep_cuda_id)index, 0);
        return target;
    }
    if (!seep_word_replace(&seep_cuda_targets[index], &known, target) &&
        known != target && !is_same_object(known, target)) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_OTHER_DRIVER);
        return target;
    }
    seep_cuda_count_add(SEEP_COUNT_CUDA_WRAPPED);
    return wrapper;
}

/*
 * The loader's own list: the next definition of a name behind this library,
 * found without dlsym, where dlsym itself is what is looked for. Nothing of
 * another library is called: a sanitizer asks dlsym for what its own strcmp is
 * to jump to.
 */

/* Filled by a relocation: the list cannot be reached before that. */
static const volatile void *const volatile relocated = &relocated;

uintptr_t seep_cuda_next(const char *name)
{
    bool is_behind = false;
    uintptr_t found = 0;

    if (relocated != &relocated) {
        return 0;
    }
    for (const struct link_map *map = _r_debug.r_map; map != NULL && found == 0;
         map = map->l_next) {
        if (is_behind) {
            struct seep_elf_symbols symbols = seep_elf_symbols_of(map);

            found = seep_elf_symbols_find(&symbols, name, NULL);
        }
        is_behind = is_behind || map->l_ld == _DYNAMIC;
    }
    return found;
}

/* The next functions of the loader. */

typedef void *dlsym_function(void *, const char *);
typedef void *dlvsym_function(void *, const char *, const char *);
typedef int dlclose_function(void *);

_Atomic uintptr_t seep_cuda_next_dlsym __attribute__((visibility("hidden")));
_Atomic uintptr_t seep_cuda_next_dlvsym __attribute__((visibility("hidden")));
_Atomic uintptr_t seep_cuda_next_dlopen __attribute__((visibility("hidden")));
static _Atomic uintptr_t next_dlclose;

void seep_cuda_find_lookups(void)
{
    seep_word_store(&next_dlclose, seep_cuda_next("dlclose"));
    seep_word_store(&seep_cuda_next_dlopen, seep_cuda_next("dlopen"));
    seep_word_store(&seep_cuda_next_dlvsym, seep_cuda_next("dlvsym"));
    seep_word_store(&seep_cuda_next_dlsym, seep_cuda_next("dlsym"));
}

/* One of the next definitions; 0 if it cannot be had. */
static uintptr_t next(_Atomic uintptr_t *function)
{
    if (seep_word_load(function) == 0) {
        seep_cuda_find_lookups();
    }
    return seep_word_load(function);
}

/* Never by a jump: the caller that dlsym sees is this library. */
uintptr_t seep_cuda_symbol(void *handle, const char *name)
{
    uintptr_t function = next(&seep_cuda_next_dlsym);
    void *volatile found = NULL;

    if (function != 0) {
        found = ((dlsym_function *)function)(handle, name);
    }
    return (uintptr_t)found;
}

static uintptr_t versioned_symbol(void *handle, const char *name,
                                  const char *version)
{
    uintptr_t function = next(&seep_cuda_next_dlvsym);
    void *volatile found = NULL;

    if (function != 0) {
        found = ((dlvsym_function *)function)(handle, name, version);
    }
    return (uintptr_t)found;
}

void seep_cuda_close(void *handle)
{
    uintptr_t function = next(&next_dlclose);

    if (function != 0) {
        ((dlclose_function *)function)(handle);
    }
}

/* What a loaded object is bound to. */

static bool is_binding(const ElfW(Rela) * relocation)
{
    uint64_t type = ELF64_R_TYPE(relocation->r_info);

    return (type == JUMP_SLOT || type == GLOBAL_DATA) &&
           relocation->r_addend == 0;
}

static uintptr_t bound_to(uintptr_t bias, const ElfW(Rela) * relocation)
{
    uintptr_t slot = bias + relocation->r_offset;

    return seep_word_load((_Atomic uintptr_t *)slot);
}

/* Does the object of @bound, which is not @last, define @name? */
static uintptr_t definition_in(uintptr_t bound, const char *name,
                               struct seep_elf_image *last)
{
    if ((bound >= last->start && bound < last->end) ||
        !seep_objects_find(bound, last) ||
        (uintptr_t)definition_in - last->start < last->end - last->start) {
        return 0;
    }
    return seep_elf_definition(last, name);
}

uintptr_t seep_cuda_bound_definition(uintptr_t caller, const char *name,
                                     struct seep_elf_image *ret_image)
{
    struct seep_elf_image image;
    struct seep_elf_image last;
    struct seep_elf_symbols symbols;

    if (!seep_objects_find(caller, &image) ||
        !seep_elf_symbols_open(&image, &symbols)) {
        return 0;
    }
    last = image;
    for (size_t i = 0; i < 2; i++) {
        const ElfW(Rela) *table = (const ElfW(Rela) *)symbols.relocations[i];

        for (size_t j = 0; table != NULL && j < symbols.relocation_counts[i];
             j++) {
            uintptr_t found =
                is_binding(&table[j])
                    ? definition_in(bound_to(image.bias, &table[j]), name,
                                    &last)
                    : 0;

            if (found != 0) {
                *ret_image = last;
                return found;
            }
        }
    }
    return 0;
}

/* The targets of the wrappers. */

/* What is behind us in the program as it was started, and stays. */
static uintptr_t at_start[SEEP_CUDA_IDS];

static bool is_unloaded(uintptr_t function)
{
    struct seep_elf_image image;

    return function != 0 && !seep_objects_locate(function, &image);
}

bool seep_cuda_is_driver(uintptr_t pc)
{
    struct seep_elf_image image;

    return seep_objects_find(pc, &image) &&
           seep_elf_definition(&image, "cuMemAlloc_v2") != 0;
}

/* They came from one object, and go with it. */
static void forget_questions(void)
{
    for (int i = 0; i < SEEP_CUDA_QUESTION_COUNT; i++) {
        if (is_unloaded(
                seep_cuda_driver_function((enum seep_cuda_question)i))) {
            seep_cuda_driver_forget();
            return;
        }
    }
}

void seep_cuda_forget_unloaded(void)
{
    forget_questions();
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        uintptr_t known = seep_word_load(&seep_cuda_targets[i]);

        if (is_unloaded(known)) {
            seep_word_replace(&seep_cuda_targets[i], &known, 0);
        }
    }
}

/*
 * A driver was found at @handle, where @found lies. One that was known may have
 * been unloaded unseen, by an object that is bound to libc's own dlclose: what
 * is left of it is forgotten first. Where @found is not known either, too
 * little is known of what is loaded.
 */
static void meet_driver(void *handle, uintptr_t found)
{
    if (!is_unloaded(found)) {
        seep_cuda_forget_unloaded();
    }
    seep_cuda_driver_learn(seep_cuda_symbol, handle);
}

/* seep_cuda_by_name */
static uintptr_t defined_in(void *image, const char *name)
{
    return seep_elf_definition(image, name);
}

/* Without the loader: by what the program was linked with, or else by what the
 * caller is bound to beside us. */
static uintptr_t find_quietly(size_t index, uintptr_t caller)
{
    struct seep_elf_image image;
    uintptr_t found = at_start[index];

    if (found != 0) {
        seep_cuda_driver_learn(seep_cuda_symbol, RTLD_NEXT);
    } else if (caller != 0) {
        found = seep_cuda_bound_definition(
            caller, seep_cuda_variants[index].name, &image);
        if (found != 0) {
            seep_cuda_driver_learn(defined_in, &image);
        }
    }
    return found;
}

/*
 * Of a directly linked caller: what would have been bound is the next
 * definition behind ours; a driver that was loaded out of the global scope is
 * found by its name. Not there is not there: it is not loaded for this.
 */
static uintptr_t find_by_loader(size_t index)
{
    const char *name = seep_cuda_variants[index].name;
    void *handle = RTLD_NEXT;
    uintptr_t found = seep_cuda_symbol(handle, name);

    if (found == 0) {
        handle = dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD);
        found = handle != NULL ? seep_cuda_symbol(handle, name) : 0;
    }
    if (found != 0) {
        meet_driver(handle, found);
    }
    if (handle != NULL && handle != RTLD_NEXT) {
        seep_cuda_close(handle);
    }
    dlerror(); /* ours, not the program's */
    return found;
}

SEEP_COLD uintptr_t seep_cuda_find_target(size_t index, uintptr_t caller)
{
    int saved_errno = errno;
    uintptr_t found = find_quietly(index, caller);
    uintptr_t known = 0;

    if (found == 0) {
        found = find_by_loader(index);
    }
    errno = saved_errno;
    if (found != 0 &&
        !seep_word_replace(&seep_cuda_targets[index], &known, found)) {
        found = known;
    }
    return found;
}

void seep_cuda_prepare(void)
{
    if (seep_cuda_next("cuInit") == 0) {
        return;
    }
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        at_start[i] = seep_cuda_symbol(RTLD_NEXT, seep_cuda_variants[i].name);
    }
    seep_cuda_driver_prepare(seep_cuda_symbol, RTLD_NEXT);
    dlerror(); /* ours, not the program's */
}

/* dlsym and dlvsym, from dlsym.S. */

/*
 * Is @name one whose memory goes unrecorded? A form of what is wrapped that no
 * row is of, and what is mapped into sparse arrays.
 */
static bool is_unrecorded(const char *name)
{
    static const char sparse[] = "cuMemMapArrayAsync";

    if (strncmp(name, sparse, sizeof(sparse) - 1) == 0) {
        return true;
    }
    for (size_t i = 0; i < SEEP_CUDA_IDS; i++) {
        if (strcmp(seep_cuda_variants[i].base, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Names of another part; written by the constructor only. */
#define BESIDE_MOST 4U

static struct beside {
    const char *name;
    uintptr_t ours;
    uintptr_t real;
} beside[BESIDE_MOST];

void seep_cuda_answer_for(const char *name, uintptr_t ours, uintptr_t real)
{
    static size_t count;

    if (real != 0 && count < BESIDE_MOST) {
        beside[count++] = (struct beside){name, ours, real};
    }
}

static const struct beside *find_beside(const char *name)
{
    for (size_t i = 0; i < BESIDE_MOST && beside[i].name != NULL; i++) {
        if (strcmp(beside[i].name, name) == 0) {
            return &beside[i];
        }
    }
    return NULL;
}

/*
 * RTLD_DEFAULT is answered here only from the global scope, where no place of
 * the caller's matters. What is not there, he may have in a scope of his own.
 */
bool seep_cuda_answers(void *handle, const char *name)
{
    if (name[1] != 'u') {
        return find_beside(name) != NULL &&
               (handle != RTLD_DEFAULT ||
                seep_cuda_symbol(RTLD_DEFAULT, name) != 0);
    }
    seep_cuda_count_add(SEEP_COUNT_CUDA_LOOKUPS);
    if (seep_cuda_find_exact(name) == SEEP_CUDA_NONE) {
        if (is_unrecorded(name)) {
            seep_cuda_count_add(SEEP_COUNT_CUDA_UNKNOWN_VARIANT);
        }
        return false;
    }
    return handle != RTLD_DEFAULT || seep_cuda_symbol(RTLD_DEFAULT, name) != 0;
}

void seep_cuda_opens_deep(const char *file, int flags)
{
    if (file != NULL && (flags & RTLD_NOLOAD) == 0 &&
        seep_cuda_events() != NULL) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_DEEP_MISSED);
    }
}

/* Of a library that stands before us in the global scope, and may well call
 * us: it is no target of ours. */
static bool is_before_us(const char *name, uintptr_t found)
{
    return found == seep_cuda_symbol(RTLD_DEFAULT, name) &&
           found != seep_cuda_symbol(RTLD_NEXT, name);
}

/* @found by the program, at @handle. */
static void *exchange(const char *name, void *handle, uintptr_t found)
{
    size_t index = seep_cuda_find_exact(name);
    const struct beside *other = find_beside(name);

    if (other != NULL) {
        return (void *)(found == other->real ? other->ours : found);
    }
    if (found == 0 || index == SEEP_CUDA_NONE) {
        return (void *)found;
    }
    if (!is_before_us(name, found)) {
        meet_driver(handle, found);
        found = seep_cuda_substitute(index, found);
    }
    dlerror(); /* of a question of ours: the program's look-up succeeded */
    return (void *)found;
}

void *seep_cuda_dlsym(void *handle, const char *name)
{
    return exchange(name, handle, seep_cuda_symbol(handle, name));
}

void *seep_cuda_dlvsym(void *handle, const char *name, const char *version)
{
    return exchange(name, handle, versioned_symbol(handle, name, version));
}

/* cuGetProcAddress. */

/* Flags that would mean another variant than is known here. */
#define KNOWN_FLAGS                              \
    ((uint64_t)(SEEP_CUDA_LOOKUP_LEGACY_STREAM | \
                SEEP_CUDA_LOOKUP_PER_THREAD_STREAM))

/*
 * Above the newest version that is known here, a name may have got a variant
 * of another form: what is not the entry point of the known version is passed
 * on.
 */
static bool is_known_variant(int version, const char *name, uint64_t flags,
                             uintptr_t target, seep_cuda_ask *ask,
                             const void *driver)
{
    return (flags & ~KNOWN_FLAGS) == 0 &&
           (version <= SEEP_CUDA_NEWEST ||
            ask(driver, name, SEEP_CUDA_NEWEST, flags) == target);
}

uintptr_t seep_cuda_exchange(const char *name, int version, uint64_t flags,
                             uintptr_t target, seep_cuda_ask *ask,
                             const void *driver)
{
    size_t index = seep_cuda_find_version(name, version, flags);

    seep_cuda_count_add(SEEP_COUNT_CUDA_LOOKUPS);
    if (target == 0 || (index == SEEP_CUDA_NONE && !is_unrecorded(name))) {
        return target;
    }
    if (index == SEEP_CUDA_NONE ||
        !is_known_variant(version, name, flags, target, ask, driver)) {
        seep_cuda_count_add(SEEP_COUNT_CUDA_UNKNOWN_VARIANT);
        return target;
    }
    return seep_cuda_substitute(index, target);
}
