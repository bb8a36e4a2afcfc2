/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Module table and strings of a recording; see modules.h. */
#include "record/modules.h"

#include <stdbool.h>
#include <string.h>

#define CLAIMED 1U

seep_string seep_modules_string(const struct seep_view *view,
                                const char *string)
{
    size_t length = strlen(string);
    uint64_t at;

    if (length == 0) {
        return 0;
    }
    /* One byte, the last, is never written: the end of every string. */
    at = atomic_fetch_add_explicit(&view->header->string_bytes_used, length + 1,
                                   memory_order_relaxed);
    if (at + length + 1 >= view->string_bytes) {
        seep_view_count(view, SEEP_COUNT_STRINGS_FULL, 1);
        return 0;
    }
    memcpy(view->strings + at, string, length + 1);
    return (seep_string)at;
}

static bool same(const struct seep_view *view,
                 const struct seep_rec_module *module,
                 const struct seep_modules_object *object)
{
    size_t id_bytes = object->build_id == NULL ? 0 : object->build_id_bytes;

    if (module->start != object->start || module->end != object->end ||
        module->build_id_bytes != id_bytes) {
        return false;
    }
    if (id_bytes != 0) {
        return memcmp(module->build_id, object->build_id, id_bytes) == 0;
    }
    return strcmp(view->strings + module->path, object->path) == 0;
}

static uint32_t find(const struct seep_view *view,
                     const struct seep_modules_object *object)
{
    uint32_t count =
        atomic_load_explicit(&view->header->module_count, memory_order_relaxed);

    if (count > view->module_capacity) {
        count = view->module_capacity;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct seep_rec_module *module = &view->modules[i];

        /* Acquire: the module's fields; pairs with the release in publish. */
        if (atomic_load_explicit(&module->state, memory_order_acquire) ==
                SEEP_PUBLISHED &&
            same(view, module, object)) {
            return i + 1;
        }
    }
    return SEEP_MODULE_NONE;
}

static void publish(const struct seep_view *view,
                    struct seep_rec_module *module,
                    const struct seep_modules_object *object)
{
    size_t id_bytes = object->build_id == NULL ? 0 : object->build_id_bytes;

    atomic_store_explicit(&module->state, CLAIMED, memory_order_relaxed);
    module->start = object->start;
    module->end = object->end;
    module->bias = object->bias;
    module->path = seep_modules_string(view, object->path);
    if (id_bytes != 0) {
        memcpy(module->build_id, object->build_id, id_bytes);
    }
    module->build_id_bytes = (uint32_t)id_bytes;
    /* Release: the fields above; pairs with the acquire in find() and in
     * reader/snapshot. */
    atomic_store_explicit(&module->state, SEEP_PUBLISHED, memory_order_release);
}

uint32_t seep_modules_intern(const struct seep_view *view,
                             const struct seep_modules_object *object)
{
    struct seep_modules_object known = *object;
    uint32_t id;
    uint32_t index;

    if (known.build_id_bytes > SEEP_BUILD_ID_MAX) {
        known.build_id_bytes = SEEP_BUILD_ID_MAX;
    }
    id = find(view, &known);
    if (id != SEEP_MODULE_NONE) {
        return id;
    }
    /* Two threads that meet an object at once may both add it: one name twice
     * costs an entry, waiting for each other could cost the worker. Readers
     * match modules by build-id and path, not by number. */
    index = atomic_fetch_add_explicit(&view->header->module_count, 1,
                                      memory_order_relaxed);
    if (index >= view->module_capacity) {
        atomic_fetch_sub_explicit(&view->header->module_count, 1,
                                  memory_order_relaxed);
        seep_view_count(view, SEEP_COUNT_MODULES_FULL, 1);
        return SEEP_MODULE_NONE;
    }
    publish(view, &view->modules[index], &known);
    return index + 1;
}

uint64_t seep_modules_frame(const struct seep_view *view, uint32_t id,
                            uint64_t address)
{
    uint64_t bias = id == SEEP_MODULE_NONE ? 0 : view->modules[id - 1].bias;

    return (uint64_t)id << SEEP_FRAME_OFFSET_BITS |
           ((address - bias) & SEEP_FRAME_OFFSET_MASK);
}
