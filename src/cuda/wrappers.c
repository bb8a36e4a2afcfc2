/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrappers of the driver's entry points, made from the rows of hooks.def,
 * and what each kind of row notes; at the end those in front of PyTorch.
 *
 * Invariant: as in hooks.h. Only the outermost wrapper of a thread notes
 * anything: what came, after the driver gave it; what goes, before the driver
 * is asked, and put back if it refuses. Whatever is taken of the caller's place
 * (return address, frame, registers) is taken in the wrapper itself.
 */
#include "cuda/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/word.h"
#include "capture/native/elf.h"
#include "capture/native/unwind.h"
#include "cuda/driver.h"
#include "cuda/ledger.h"
#include "cuda/resolve.h"

/* Threads inside the driver. */

#define SLOTS 4096U
#define WINDOW 16U
#define NESTED_MOST 256U

/* Only threads that are inside a call of the driver stand here. */
static struct {
    _Atomic uint64_t thread; /* address of its storage; 0: free */
    _Atomic uint64_t frame;  /* of its outermost wrapper */
    _Atomic uint64_t nested; /* calls since then that seemed to be inside it */
} inside[SLOTS] __attribute__((aligned(64)));

static uint64_t self(void)
{
    return (uintptr_t)&seep_thread;
}

static uint32_t window_of(uint64_t thread)
{
    return (uint32_t)seep_hash_mix(thread) & (SLOTS - WINDOW);
}

/* Nobody but the thread itself writes or removes its own entry. */
static uint32_t find(uint64_t thread)
{
    uint32_t window = window_of(thread);

    for (uint32_t i = window; i < window + WINDOW; i++) {
        if (seep_word_load(&inside[i].thread) == thread) {
            return i + 1;
        }
    }
    return 0;
}

/* With its outermost wrapper at @frame. */
static void stand(uint32_t slot, uintptr_t frame)
{
    seep_word_store(&inside[slot - 1].frame, frame);
    seep_word_store(&inside[slot - 1].nested, 0);
    seep_thread.in_driver = 1;
}

/*
 * Was the call that the entry is of left without a word? By a thread that ended
 * in it, whose storage this one has; or by a jump: at the same height or above
 * at once to be known, below by calls in a number that no driver makes of
 * itself.
 */
static bool is_abandoned(uint32_t slot, uintptr_t frame)
{
    uint64_t nested = seep_word_load(&inside[slot - 1].nested) + 1;

    seep_word_store(&inside[slot - 1].nested, nested);
    return !seep_thread.in_driver ||
           frame >= seep_word_load(&inside[slot - 1].frame) ||
           nested > NESTED_MOST;
}

static uint32_t claim(uint64_t thread, uintptr_t frame)
{
    uint32_t window = window_of(thread);

    for (uint32_t i = window; i < window + WINDOW; i++) {
        uint64_t seen = seep_word_load(&inside[i].thread);

        if (seen == 0 && seep_word_replace(&inside[i].thread, &seen, thread)) {
            stand(i + 1, frame);
            return i + 1;
        }
    }
    return 0;
}

struct seep_cuda_nest seep_cuda_nest_enter(uintptr_t frame)
{
    uint64_t thread = self();
    uint32_t slot = find(thread);

    if (seep_likely(slot == 0)) {
        slot = claim(thread, frame);
        if (slot == 0) {
            seep_cuda_count_add(SEEP_COUNT_CUDA_NEST_FULL);
        }
        return (struct seep_cuda_nest){slot};
    }
    if (is_abandoned(slot, frame)) {
        stand(slot, frame);
        return (struct seep_cuda_nest){slot};
    }
    seep_cuda_count_add(SEEP_COUNT_CUDA_NESTED);
    return (struct seep_cuda_nest){0};
}

void seep_cuda_nest_leave(struct seep_cuda_nest nest)
{
    if (nest.slot != 0) {
        seep_thread.in_driver = 0;
        seep_word_store(&inside[nest.slot - 1].frame, 0);
        seep_word_store(&inside[nest.slot - 1].thread, 0);
    }
}

/* Sizes of arrays, by their format. */

#define BLOCK_SIDE 4U

/* Of a compressed format: the bytes of a block of 4 by 4; else 0. */
static unsigned int block_bytes(int format)
{
    switch (format) {
    case SEEP_CUDA_FORMAT_BC1_UNORM:
    case SEEP_CUDA_FORMAT_BC1_UNORM_SRGB:
    case SEEP_CUDA_FORMAT_BC4_UNORM:
    case SEEP_CUDA_FORMAT_BC4_SNORM:
        return 8;
    default:
        return format >= SEEP_CUDA_FORMAT_BC2_UNORM &&
                       format <= SEEP_CUDA_FORMAT_BC7_UNORM_SRGB
                   ? 16
                   : 0;
    }
}

/* Of one channel. What is not known is taken for a byte. */
static unsigned int channel_bytes(int format)
{
    switch (format) {
    case SEEP_CUDA_FORMAT_UNSIGNED_INT16:
    case SEEP_CUDA_FORMAT_SIGNED_INT16:
    case SEEP_CUDA_FORMAT_HALF:
    case SEEP_CUDA_FORMAT_UNORM_INT16X1:
    case SEEP_CUDA_FORMAT_UNORM_INT16X2:
    case SEEP_CUDA_FORMAT_UNORM_INT16X4:
    case SEEP_CUDA_FORMAT_SNORM_INT16X1:
    case SEEP_CUDA_FORMAT_SNORM_INT16X2:
    case SEEP_CUDA_FORMAT_SNORM_INT16X4:
        return 2;
    case SEEP_CUDA_FORMAT_UNSIGNED_INT32:
    case SEEP_CUDA_FORMAT_SIGNED_INT32:
    case SEEP_CUDA_FORMAT_FLOAT:
        return 4;
    default:
        return 1;
    }
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result;

    return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

static uint64_t at_least_one(uint64_t value)
{
    return value == 0 ? 1 : value;
}

static uint64_t blocks(uint64_t pixels)
{
    return pixels / BLOCK_SIDE + (pixels % BLOCK_SIDE != 0);
}

static uint64_t size_bytes(uint64_t width, uint64_t height, uint64_t depth,
                           int format, unsigned int channels_count)
{
    unsigned int block = block_bytes(format);
    uint64_t area;

    if (block != 0) {
        area = product(product(blocks(width), blocks(at_least_one(height))),
                       block);
    } else {
        area = product(width, at_least_one(height));
        if (format == SEEP_CUDA_FORMAT_NV12) {
            area += area / 2;
        } else if (format == SEEP_CUDA_FORMAT_UNORM_INT_101010_2) {
            area = product(area, 4);
        } else {
            area =
                product(area, product(channels_count, channel_bytes(format)));
        }
    }
    return product(area, at_least_one(depth));
}

uint64_t seep_cuda_array_bytes(const struct seep_cuda_array3d *array)
{
    return size_bytes(array->width, array->height, array->depth, array->format,
                      array->channels_count);
}

static uint64_t half(uint64_t size)
{
    return size > 1 ? size / 2 : size;
}

uint64_t seep_cuda_mipmap_bytes(const struct seep_cuda_array3d *array,
                                unsigned int levels_count)
{
    struct seep_cuda_array3d level = *array;
    bool is_layered =
        (array->flags & (SEEP_CUDA_ARRAY_LAYERED | SEEP_CUDA_ARRAY_CUBEMAP)) !=
        0;
    uint64_t sum = 0;

    /* After 64 halvings nothing changes. */
    for (unsigned int i = 0; i < levels_count && i < 64; i++) {
        uint64_t bytes = seep_cuda_array_bytes(&level);

        if (__builtin_add_overflow(sum, bytes, &sum)) {
            return 0;
        }
        level.width = half(level.width);
        level.height = half(level.height);
        level.depth = is_layered ? level.depth : half(level.depth);
    }
    return sum;
}

bool seep_cuda_array_has_memory(const struct seep_cuda_array3d *array)
{
    return (array->flags &
            (SEEP_CUDA_ARRAY_SPARSE | SEEP_CUDA_ARRAY_DEFERRED_MAPPING)) == 0;
}

/* Something came. */

/* The current device had too little: what it has left is worth a look. A
 * process that starves is served with nothing, and would never tell. */
SEEP_COLD static void note_refused(void)
{
    seep_cuda_driver_look(seep_cuda_driver_device());
}

/* Is what the driver gave in @result to be noted? If nobody is told, the
 * driver is not asked about it either. */
static inline bool came(struct seep_cuda_nest nest, int result)
{
    if (nest.slot == 0 || seep_cuda_events() == NULL) {
        return false;
    }
    if (seep_unlikely(result == SEEP_CUDA_OUT_OF_MEMORY)) {
        note_refused();
    }
    return result == SEEP_CUDA_SUCCESS;
}

/* Something that the wrapper's caller, @from, was given. */
#define NOTE(...) \
    seep_cuda_ledger_add(from, &(struct seep_cuda_block){__VA_ARGS__})

/* A thing that lives as long as the context that is current. */
static void note(const struct seep_capture_start *from,
                 enum seep_cuda_kind kind, enum seep_space space, int device,
                 uint64_t value, uint64_t size_bytes)
{
    NOTE(.kind = kind, .space = space, .device = device, .value = value,
         .size_bytes = size_bytes, .context = seep_cuda_driver_context());
}

/* Memory of the current device. */
static void note_pointer(const struct seep_capture_start *from,
                         enum seep_space space, uint64_t pointer,
                         uint64_t size_bytes)
{
    int device = seep_cuda_driver_device();

    note(from, SEEP_CUDA_POINTER, space, device, pointer, size_bytes);
    seep_cuda_driver_look(device);
}

/* Memory of a pool, which outlives contexts; @is_node: of a graph, so far. */
static void note_pooled(const struct seep_capture_start *from, uint64_t pointer,
                        uint64_t size_bytes, bool is_node)
{
    NOTE(.kind = SEEP_CUDA_POINTER, .space = SEEP_SPACE_DEVICE,
         .device = seep_cuda_driver_device_of(pointer), .silent = is_node,
         .value = pointer, .size_bytes = size_bytes);
    seep_cuda_driver_look(seep_cuda_driver_device());
}

static void note_pool_import(const struct seep_capture_start *from,
                             uint64_t pointer)
{
    NOTE(.kind = SEEP_CUDA_POINTER, .space = SEEP_SPACE_IMPORTED,
         .device = seep_cuda_driver_device_of(pointer), .value = pointer,
         .size_bytes = seep_cuda_driver_size_of(pointer));
}

/* Physical memory of a device, or of the host as what is pinned. No context is
 * needed for it; where there is one, its device is looked at. */
static void note_handle(const struct seep_capture_start *from, uint64_t handle,
                        uint64_t size_bytes,
                        const struct seep_cuda_location *location)
{
    bool is_device = location->type == SEEP_CUDA_LOCATION_DEVICE;

    NOTE(.kind = SEEP_CUDA_HANDLE,
         .space = is_device ? SEEP_SPACE_DEVICE : SEEP_SPACE_PINNED,
         .device = is_device ? location->id : -1, .value = handle,
         .size_bytes = size_bytes);
    seep_cuda_driver_look(seep_cuda_driver_device());
}

/* A handle of memory that is not this process's, or that is none. */
static void note_silent(const struct seep_capture_start *from, uint64_t handle,
                        uint64_t size_bytes, enum seep_space space)
{
    NOTE(.kind = SEEP_CUDA_HANDLE, .space = space, .device = -1, .silent = true,
         .value = handle, .size_bytes = size_bytes);
}

/* Addresses alone are no memory. */
static void note_reserved(const struct seep_capture_start *from,
                          uint64_t address, uint64_t size_bytes)
{
    NOTE(.kind = SEEP_CUDA_RESERVED, .space = SEEP_SPACE_RESERVED, .device = -1,
         .value = address, .size_bytes = size_bytes);
}

static void note_array(const struct seep_capture_start *from,
                       enum seep_cuda_kind kind, const void *handle,
                       const struct seep_cuda_array3d *array,
                       uint64_t size_bytes)
{
    NOTE(.kind = kind, .space = SEEP_SPACE_DEVICE,
         .device = seep_cuda_driver_device(),
         .silent = !seep_cuda_array_has_memory(array),
         .value = (uintptr_t)handle, .size_bytes = size_bytes,
         .context = seep_cuda_driver_context());
}

static void note_flat_array(const struct seep_capture_start *from,
                            const void *handle,
                            const struct seep_cuda_array *wanted)
{
    const struct seep_cuda_array3d array = {
        .width = wanted->width,
        .height = wanted->height,
        .format = wanted->format,
        .channels_count = wanted->channels_count,
    };

    note_array(from, SEEP_CUDA_ARRAY, handle, &array,
               seep_cuda_array_bytes(&array));
}

static void note_opened(const struct seep_capture_start *from, uint64_t pointer)
{
    note(from, SEEP_CUDA_IPC, SEEP_SPACE_IMPORTED, seep_cuda_driver_device(),
         pointer, seep_cuda_driver_size_of(pointer));
}

/* A part of an external memory, which it keeps alive: no bytes of its own. */
static void note_part(const struct seep_capture_start *from,
                      enum seep_cuda_kind kind, uint64_t value,
                      const void *memory, uint64_t size_bytes)
{
    NOTE(.kind = kind, .space = SEEP_SPACE_IMPORTED,
         .device = seep_cuda_driver_device(), .silent = true, .value = value,
         .size_bytes = size_bytes, .context = seep_cuda_driver_context(),
         .holder = (uintptr_t)memory, .holder_kind = SEEP_CUDA_EXTERNAL);
}

/* A node of a graph that frees what another one allocates. */
static void note_freed(uint64_t pointer)
{
    struct seep_cuda_leave leave =
        seep_cuda_ledger_leave(SEEP_CUDA_POINTER, pointer);

    seep_cuda_ledger_settle(&leave, true);
}

static void note_node(const struct seep_capture_start *from,
                      const struct seep_cuda_node *node)
{
    const struct seep_cuda_graph_allocation *allocation =
        &node->parameters.allocation;

    if (node->type == SEEP_CUDA_NODE_ALLOCATION) {
        note_pooled(from, allocation->pointer, allocation->size_bytes, true);
    } else if (node->type == SEEP_CUDA_NODE_FREE) {
        note_freed(node->parameters.freed_pointer);
    }
}

/* The wrappers. */

/*
 * Behind each wrapper: the name by which others bind to it. The version, which
 * is not the default one, is seen by no dlsym, so that nobody takes us for a
 * driver; a directly linked program, which asks for no version, gets the first
 * version that an object has. We ourselves mean ours, also where another
 * library stands before us.
 */
#define EXPORT(name) SEEP_EXPORT_AS(seep_cuda_##name, name, "SEEP_CUDA", name)

/* The real target of a wrapper, and in it; NULL if there is none. */
#define REAL(name)                                                     \
    ((__typeof__(&seep_cuda_##name))seep_cuda_target(                  \
        SEEP_CUDA_ID_##name, (uintptr_t)__builtin_extract_return_addr( \
                                 __builtin_return_address(0))))

/* Of the wrapper that this is written in. */
#define FRAME() ((uintptr_t)__builtin_frame_address(0))

/*
 * A wrapper: @before the driver is asked, if this is the thread's outermost
 * call, and @after it has answered with `result`, in any case.
 */
#define WRAPPER(name, parameters, arguments, locals, before, after) \
    int seep_cuda_##name parameters                                 \
    {                                                               \
        __typeof__(&seep_cuda_##name) real = REAL(name);            \
        struct seep_cuda_nest nest;                                 \
        int result;                                                 \
        locals;                                                     \
                                                                    \
        if (real == NULL) {                                         \
            return SEEP_CUDA_NOT_INITIALIZED;                       \
        }                                                           \
        nest = seep_cuda_nest_enter(FRAME());                       \
        if (nest.slot != 0) {                                       \
            before;                                                 \
        }                                                           \
        result = real arguments;                                    \
        after;                                                      \
        seep_cuda_nest_leave(nest);                                 \
        return result;                                              \
    }                                                               \
    EXPORT(name);

#define NOTE_WHAT_CAME(noted)                                   \
    if (came(nest, result)) {                                   \
        struct seep_capture_start start = SEEP_CAPTURE_START(); \
                                                                \
        (void)start;                                            \
        noted;                                                  \
    }

#define SEEP_CUDA_GIVES(name, base, version, per_thread, parameters, \
                        arguments, noted)                            \
    WRAPPER(name, parameters, arguments, , , NOTE_WHAT_CAME(noted))

#define SEEP_CUDA_TAKES(name, base, version, per_thread, parameters,         \
                        arguments, kind, value)                              \
    WRAPPER(name, parameters, arguments, struct seep_cuda_leave leave = {0}, \
            leave = seep_cuda_ledger_leave(kind, value),                     \
            seep_cuda_ledger_settle(&leave, result == SEEP_CUDA_SUCCESS))

/* A context that a call is about to destroy: what lives in it is let go after
 * the driver has done so, and nothing that was allocated since the call. */
struct ending {
    const void *context;
    uint32_t mark;
};

#define SEEP_CUDA_ENDS(name, base, version, per_thread, parameters, arguments, \
                       context_before, is_gone)                                \
    WRAPPER(name, parameters, arguments, struct ending ending = {0},           \
            ending.context = context_before;                                   \
            ending.mark = seep_cuda_ledger_mark(), LET_GO(ending, is_gone))

#define LET_GO(ending, is_gone)                                               \
    if (ending.context != NULL && result == SEEP_CUDA_SUCCESS && (is_gone)) { \
        seep_cuda_ledger_context_gone(ending.mark, ending.context);           \
    }

/* Below, by hand. */
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters)
#include "cuda/hooks.def"

WRAPPER(cuMemUnmap, (uint64_t address, size_t size_bytes),
        (address, size_bytes), struct seep_cuda_leave_range range = {0},
        range = seep_cuda_ledger_unmap(address, size_bytes),
        seep_cuda_ledger_unmap_settle(&range, result == SEEP_CUDA_SUCCESS))

/* A form of the driver's look-up: only the pointer of an answer that succeeded
 * is exchanged. @asking: the arguments of a question of ours. */
#define LOOK_UP(form, parameters, arguments, asking)                           \
    static uintptr_t ask_##form(const void *driver, const char *name,          \
                                int version, uint64_t flags)                   \
    {                                                                          \
        __typeof__(&seep_cuda_##form) real =                                   \
            (__typeof__(&seep_cuda_##form))(uintptr_t)driver;                  \
        void *found = NULL;                                                    \
                                                                               \
        return real asking == SEEP_CUDA_SUCCESS ? (uintptr_t)found : 0;        \
    }                                                                          \
    int seep_cuda_##form parameters                                            \
    {                                                                          \
        __typeof__(&seep_cuda_##form) real = REAL(form);                       \
        int result;                                                            \
                                                                               \
        if (real == NULL) {                                                    \
            return SEEP_CUDA_NOT_INITIALIZED;                                  \
        }                                                                      \
        result = real arguments;                                               \
        if (result == SEEP_CUDA_SUCCESS && name != NULL && function != NULL) { \
            *function = (void *)seep_cuda_exchange(                            \
                name, version, flags, (uintptr_t)*function, ask_##form,        \
                (const void *)(uintptr_t)real);                                \
        }                                                                      \
        return result;                                                         \
    }                                                                          \
    EXPORT(form);

LOOK_UP(cuGetProcAddress,
        (const char *name, void **function, int version, uint64_t flags),
        (name, function, version, flags), (name, &found, version, flags))
LOOK_UP(cuGetProcAddress_v2,
        (const char *name, void **function, int version, uint64_t flags,
         int *status),
        (name, function, version, flags, status),
        (name, &found, version, flags, &(int){0}))

/* The table of all of them, which look-ups go by. */
const struct seep_cuda_variant seep_cuda_variants[SEEP_CUDA_IDS] = {
#define SEEP_CUDA_HOOK(name, base, version, per_thread, parameters) \
    {#name, #base, version, per_thread, (seep_cuda_function *)seep_cuda_##name},
#include "cuda/hooks.def"
};

_Atomic uintptr_t seep_cuda_targets[SEEP_CUDA_IDS];

/* In front of PyTorch's report of its memory. */

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

static void note_tensor(const struct seep_capture_start *from,
                        const void *block, int64_t size_bytes,
                        struct device device)
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

SEEP_COLD static uintptr_t find_behind(struct target *target, uintptr_t caller,
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

    /* Acquire: pairs with the release in find_behind(). */
    if (atomic_load_explicit(&target->epoch, memory_order_acquire) !=
        epoch + 1) {
        function = find_behind(target, caller, epoch);
    } else {
        function = seep_word_load(&target->function);
    }
    /* A call by a jump comes from elsewhere: the next caller may be the one
     * that depends on it. */
    if (function == NOT_THERE && seep_word_load(&target->tries) < TRIES) {
        seep_word_fetch_add(&target->tries, 1);
        function = find_behind(target, caller, epoch);
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
        note_tensor(from, block, size_bytes, device);
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
