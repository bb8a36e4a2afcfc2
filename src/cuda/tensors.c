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
#include "capture/elf_symbols.h"
#include "capture/native.h"
#include "capture/object_map.h"
#include "capture/objects.h"
#include "cuda/bindings.h"
#include "cuda/dlsym.h"
#include "cuda/driver.h"
#include "cuda/entry.h"
#include "cuda/events.h"

#define DEVICES_MAX 64
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
} totals[DEVICES_MAX];

/* The definition behind ours, of each name. */
struct target {
    const char *name;
    _Atomic uintptr_t function; /* 0: not looked for; NOT_THERE */
    _Atomic uint32_t tries;
    _Atomic uint64_t epoch; /* of the objects when it was found, + 1; 0: none */
};

void seep_cuda_tensors_set(bool on)
{
    atomic_store_explicit(&is_on, on, memory_order_relaxed);
}

bool seep_cuda_tensors_totals(int device,
                              struct seep_cuda_tensor_totals *ret_totals)
{
    if (device < 0 || device >= DEVICES_MAX ||
        !atomic_load_explicit(&totals[device].is_known, memory_order_relaxed)) {
        return false;
    }
    ret_totals->allocated_bytes =
        seep_word_load(&totals[device].allocated_bytes);
    ret_totals->reserved_bytes = seep_word_load(&totals[device].reserved_bytes);
    return true;
}

static void note_totals(struct device device, uint64_t allocated_bytes,
                        uint64_t reserved_bytes)
{
    if (device.index >= 0 && device.index < DEVICES_MAX) {
        seep_word_store(&totals[device.index].allocated_bytes, allocated_bytes);
        seep_word_store(&totals[device.index].reserved_bytes, reserved_bytes);
        atomic_store_explicit(&totals[device.index].is_known, true,
                              memory_order_relaxed);
    }
}

static void note(const struct seep_capture_start *from, const void *block,
                 int64_t size_bytes, struct device device)
{
    const struct seep_cuda_events *events = seep_cuda_entry_events();
    uint64_t key = seep_cuda_entry_key(SEEP_CUDA_TENSOR, (uintptr_t)block);

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
    struct seep_object object;
    void *handle = NULL;
    uintptr_t function = seep_cuda_bindings_definition(caller, name, &image);

    if (function != 0) {
        return function;
    }
    if (seep_objects_find(caller, &object) && object.path[0] != '\0') {
        handle = dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD);
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
    struct seep_elf_symbols symbols;
    struct seep_elf_image image;
    uintptr_t address;
    size_t size_bytes;

    return seep_object_map_find(function, &image) &&
           seep_elf_symbols_open(&image, &symbols) &&
           seep_elf_symbols_find(&symbols, name, &address, &size_bytes) &&
           address == function;
}

SEEP_COLD static uintptr_t find(struct target *target, uintptr_t caller,
                                uint64_t epoch)
{
    uintptr_t function =
        atomic_load_explicit(&target->function, memory_order_relaxed);
    int saved_errno = errno;

    if (function <= NOT_THERE || !is_still_there(function, target->name)) {
        function = look_up(caller, target->name);
    }
    atomic_store_explicit(&target->function, function, memory_order_relaxed);
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
        function =
            atomic_load_explicit(&target->function, memory_order_relaxed);
    }
    /* A call by a jump comes from elsewhere: the next caller may be the one
     * that depends on it. */
    if (function == NOT_THERE &&
        atomic_load_explicit(&target->tries, memory_order_relaxed) < TRIES) {
        atomic_fetch_add_explicit(&target->tries, 1, memory_order_relaxed);
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

    if (atomic_load_explicit(&is_on, memory_order_relaxed) &&
        device.type != TYPE_HOST) {
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
#undef SEEP_CUDA_HOOK
#undef SEEP_TENSOR_HOOK
