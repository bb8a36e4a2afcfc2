/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In front of PyTorch's report of its memory; see tensors.h. */
#include "cuda/tensors.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/word.h"
#include "capture/native/elf.h"
#include "capture/native/unwind.h"
#include "cuda/driver.h"
#include "cuda/ledger.h"
#include "cuda/resolve.h"

#define TYPE_HOST 0
#define NOT_THERE 1U
#define TRIES 64U

/* c10::Device, passed by value: the type of a device and its ordinal. */
struct device {
    int8_t type;
    int8_t index;
};

typedef void report_function(void *block, int64_t size_bytes,
                             uint64_t allocated_bytes, uint64_t reserved_bytes,
                             struct device device);

static _Atomic bool is_on;

static struct {
    _Atomic bool is_known;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t reserved_bytes;
} totals[SEEP_CUDA_DEVICES_MAX];

/* The definition behind ours, of each name. */
struct target {
    const char *name;
    _Atomic uintptr_t function; /* 0: not looked for; NOT_THERE */
    _Atomic uint32_t tries;
    _Atomic uint64_t epoch; /* of the objects when it was found, + 1; 0: none */
};

void seep_cuda_tensors_set(bool on)
{
    seep_word_store(&is_on, on);
}

bool seep_cuda_tensors_totals(int device, uint64_t *ret_allocated_bytes,
                              uint64_t *ret_reserved_bytes)
{
    if (device < 0 || device >= SEEP_CUDA_DEVICES_MAX ||
        !seep_word_load(&totals[device].is_known)) {
        return false;
    }
    *ret_allocated_bytes = seep_word_load(&totals[device].allocated_bytes);
    *ret_reserved_bytes = seep_word_load(&totals[device].reserved_bytes);
    return true;
}

static void note_totals(struct device device, uint64_t allocated_bytes,
                        uint64_t reserved_bytes)
{
    if (device.index >= 0 && device.index < SEEP_CUDA_DEVICES_MAX) {
        seep_word_store(&totals[device.index].allocated_bytes, allocated_bytes);
        seep_word_store(&totals[device.index].reserved_bytes, reserved_bytes);
        seep_word_store(&totals[device.index].is_known, true);
    }
}

static void note(const struct seep_capture_start *from, const void *block,
                 int64_t size_bytes, struct device device)
{
    const struct seep_cuda_events *events = seep_cuda_ledger_events();
    uint64_t key = seep_cuda_ledger_key(SEEP_CUDA_TENSOR, (uintptr_t)block);

    if (events == NULL || block == NULL || size_bytes == 0) {
        return;
    }
    if (size_bytes > 0) {
        events->allocated(from, SEEP_SPACE_TENSOR, device.index, key,
                          (uint64_t)size_bytes);
    } else {
        events->freed(key);
    }
}

/*
 * What the caller would have called without us: what its own dependencies
 * define, and they need not be visible to anybody else. Ours is not among
 * them.
 * The loader is asked only where its bindings do not tell: another thread may
 * be inside it, and wait for a lock of the caller's.
 */
static uintptr_t look_up(uintptr_t caller, const char *name)
{
    struct seep_elf_image image;
    void *handle = NULL;
    uintptr_t function = seep_cuda_bound_definition(caller, name, &image);

    if (function != 0) {
        return function;
    }
    if (seep_objects_locate(caller, &image) && image.path[0] != '\0') {
        handle = dlopen(image.path, RTLD_LAZY | RTLD_NOLOAD);
    }
    if (handle != NULL) {
        function = seep_cuda_symbol(handle, name);
        seep_cuda_close(handle); /* its code is on the stack: it stays */
    }
    if (function == 0) {
        function = seep_cuda_symbol(RTLD_NEXT, name);
    }
    return function != 0 ? function : NOT_THERE;
}

/* Is that function still where it was, after objects went? */
static bool is_still_there(uintptr_t function, const char *name)
{
    struct seep_elf_image image;

    return seep_objects_find(function, &image) &&
           seep_elf_definition(&image, name) == function;
}

SEEP_COLD static uintptr_t find(struct target *target, uintptr_t caller,
                                uint64_t epoch)
{
    uintptr_t function = seep_word_load(&target->function);
    int saved_errno = errno;

    if (function <= NOT_THERE || !is_still_there(function, target->name)) {
        function = look_up(caller, target->name);
    }
    seep_word_store(&target->function, function);
    /* Release: the function is that of the epoch; pairs with the acquire in
     * behind(). */
    atomic_store_explicit(&target->epoch, epoch + 1, memory_order_release);
    errno = saved_errno;
    return function;
}

static report_function *behind(struct target *target, uintptr_t caller)
{
    uint64_t epoch = seep_objects_epoch();
    uintptr_t function;
    report_function *report;

    /* Acquire: pairs with the release in find(). */
    if (atomic_load_explicit(&target->epoch, memory_order_acquire) !=
        epoch + 1) {
        function = find(target, caller, epoch);
    } else {
        function = seep_word_load(&target->function);
    }
    /* A call by a jump comes from elsewhere: the next caller may be the one
     * that depends on it. */
    if (function == NOT_THERE && seep_word_load(&target->tries) < TRIES) {
        seep_word_fetch_add(&target->tries, 1);
        function = find(target, caller, epoch);
    }
    if (function == NOT_THERE) {
        return NULL;
    }
    memcpy(&report, &function, sizeof(report));
    return report;
}

static void reported(const struct seep_capture_start *from,
                     struct target *target, void *block, int64_t size_bytes,
                     uint64_t allocated_bytes, uint64_t reserved_bytes,
                     struct device device)
{
    report_function *report = behind(target, from->pc);

    if (seep_word_load(&is_on) && device.type != TYPE_HOST) {
        note_totals(device, allocated_bytes, reserved_bytes);
        note(from, block, size_bytes, device);
        seep_cuda_driver_look(device.index);
    }
    if (report != NULL) {
        report(block, size_bytes, allocated_bytes, reserved_bytes, device);
    }
}

/* The forms differ in nothing but the signs of the totals. */
#define SEEP_TENSOR_HOOK(mangled)                                         \
    SEEP_EXPORT void report##mangled(                                     \
        void *block, int64_t size_bytes, uint64_t allocated_bytes,        \
        uint64_t reserved_bytes, struct device device) __asm__(#mangled); \
    SEEP_EXPORT void report##mangled(                                     \
        void *block, int64_t size_bytes, uint64_t allocated_bytes,        \
        uint64_t reserved_bytes, struct device device)                    \
    {                                                                     \
        static struct target target = {.name = #mangled};                 \
        struct seep_capture_start start = SEEP_CAPTURE_START();           \
                                                                          \
        reported(&start, &target, block, size_bytes, allocated_bytes,     \
                 reserved_bytes, device);                                 \
    }
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters)
#include "cuda/hooks.def"
