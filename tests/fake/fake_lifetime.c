/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How each kind of object ends: what it gives back, and what it held.
 *
 * Invariant: every object that counts as live is counted out here, once.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

#define PAGE_BYTES 4096

CUresult fake_allocate(struct fake_object **made, enum fake_type type,
                       int device, uint64_t bytes)
{
    int section = type == FAKE_MANAGED || type == FAKE_PINNED ? -1 : device;
    uint64_t charged = fake_rounded(bytes, FAKE_BLOCK_BYTES);
    struct fake_object *object;
    uint64_t address;
    uint64_t offset = 0;

    if (!fake_charge(section, charged) &&
        (section < 0 || !fake_pools_trim(section) ||
         !fake_charge(section, charged))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    address = fake_take(section, bytes, &offset);
    object = address != 0 ? fake_new(type, address) : NULL;
    if (object == NULL) {
        fake_discharge(section, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->device = device;
    object->size_bytes = bytes;
    object->charged_bytes = charged;
    object->offset_bytes = offset;
    fake_live(type, (int64_t)bytes, 1);
    *made = object;
    return CUDA_SUCCESS;
}

void fake_release_use(struct fake_object *object)
{
    if (object == NULL) {
        return;
    }
    object->uses--;
    if (object->uses == 0 && object->refs == 0) {
        fake_end(object);
    }
}

static void end_fd(struct fake_object *object)
{
    if (object->fd >= 0) {
        syscall(SYS_close, object->fd);
    }
}

/* What lies in a section of the memory file. */
static void give_back(struct fake_object *object)
{
    int section = object->type == FAKE_MANAGED || object->type == FAKE_PINNED
                      ? -1
                      : object->device;

    fake_give(section, object->offset_bytes, object->size_bytes);
    fake_discharge(section, object->charged_bytes);
}

/* Whole pages: what is imported need not start on one. */
static void unmap(const struct fake_object *object)
{
    uint64_t in_page = object->address % PAGE_BYTES;

    fake_unmap_space(object->address - in_page,
                     fake_rounded(in_page + object->size_bytes, PAGE_BYTES));
}

static void end_memory(struct fake_object *object)
{
    switch (object->type) {
    case FAKE_DEVICE:
    case FAKE_MANAGED:
    case FAKE_PINNED:
    case FAKE_PHYSICAL:
        give_back(object);
        break;
    case FAKE_ASYNC:
        fake_give(object->device, object->offset_bytes, object->size_bytes);
        fake_pool_returned(object);
        break;
    case FAKE_MEMORY:
        fake_give(object->device, object->offset_bytes, object->size_bytes);
        break;
    case FAKE_MAP:
        if (object->address != 0) {
            fake_map_nothing(object->address, object->size_bytes);
        }
        break;
    case FAKE_RESERVED:
    case FAKE_IPC:
    case FAKE_SHARED:
    case FAKE_BUFFER:
        unmap(object);
        break;
    case FAKE_STREAM:
        fake_stream_ends(object);
        break;
    default:
        if (object->charged_bytes != 0) {
            fake_discharge(object->device, object->charged_bytes);
        }
        break;
    }
}

/* Levels that were handed out end with their mipmap. */
static void end_levels(const struct fake_object *mipmap)
{
    struct fake_object *next;

    for (struct fake_object *at = fake_first(FAKE_ARRAY); at != NULL;
         at = next) {
        next = at->next;
        if (at->owner == mipmap) {
            at->owner = NULL;
            fake_end(at);
        }
    }
}

/* What was mapped into a sparse one ends with it. */
static void end_parts(const struct fake_object *array)
{
    struct fake_object *next;

    for (struct fake_object *at = fake_first(FAKE_MAP); at != NULL; at = next) {
        next = at->next;
        if (at->target == array) {
            fake_end(at);
        }
    }
}

void fake_end(struct fake_object *object)
{
    struct fake_object *owner = object->owner;
    bool counted = object->type != FAKE_MEMORY || (object->flags & 1) != 0;
    bool uses_owner = object->type == FAKE_MAP || object->type == FAKE_HANDLE ||
                      object->type == FAKE_SHARED;

    if (object->type == FAKE_MIPMAP) {
        end_levels(object);
    }
    if (object->type == FAKE_MIPMAP || object->type == FAKE_ARRAY) {
        end_parts(object);
    }
    if (counted) {
        fake_live(object->type, -(int64_t)object->size_bytes, -1);
    }
    end_memory(object);
    end_fd(object);
    fake_delete(object);
    if (uses_owner) {
        fake_release_use(owner);
    }
}
