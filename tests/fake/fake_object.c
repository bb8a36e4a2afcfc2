/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The objects behind the driver's handles and pointers.
 *
 * Invariant: a slot is reused only after all that were freed before it and
 * KEPT_DEAD that were freed after, so a dead handle is told for a while.
 */
#include "fake.h"

#define SLOTS (UINT32_C(1) << 20)
#define BUCKETS (UINT32_C(1) << 16)
#define KEPT_DEAD 1024 /* slots that stay recognisable */

static struct fake_object *slots;
static struct fake_object **buckets;
static struct fake_object *lists[FAKE_TYPES];
static struct fake_object *free_first, *free_last;
static uint32_t used_slots, dead_slots;

static uint32_t bucket_of(uint64_t address)
{
    return (uint32_t)((address >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 48) %
           BUCKETS;
}

static struct fake_object *slot(void)
{
    struct fake_object *object = free_first;

    if (slots == NULL) {
        slots = fake_zeroed(SLOTS * sizeof(slots[0]));
        buckets = fake_zeroed(BUCKETS * sizeof(buckets[0]));
    }
    if (slots == NULL || buckets == NULL) {
        return NULL;
    }
    if (object != NULL && (dead_slots > KEPT_DEAD || used_slots == SLOTS)) {
        dead_slots--;
        free_first = object->next;
        free_last = free_first != NULL ? free_last : NULL;
        return object;
    }
    return used_slots < SLOTS ? &slots[used_slots++] : NULL;
}

static void unchain(struct fake_object *object)
{
    struct fake_object **link = &buckets[bucket_of(object->address)];

    while (*link != NULL && *link != object) {
        link = &(*link)->chained;
    }
    if (*link != NULL) {
        *link = object->chained;
    }
}

void fake_place(struct fake_object *object, uint64_t address)
{
    struct fake_object **link;

    if (object->address != 0) {
        unchain(object);
    }
    object->address = address;
    if (address != 0) {
        link = &buckets[bucket_of(address)];
        object->chained = *link;
        *link = object;
    }
}

struct fake_object *fake_new(enum fake_type type, uint64_t address)
{
    struct fake_object *object = slot();
    uint32_t generation;

    if (object == NULL) {
        return NULL;
    }
    generation = object->generation + 1;
    *object = (struct fake_object){
        .type = type,
        .generation = generation,
        .refs = 1,
        .fd = -1,
        .next = lists[type],
    };
    if (lists[type] != NULL) {
        lists[type]->previous = object;
    }
    lists[type] = object;
    fake_place(object, address);
    return object;
}

void fake_delete(struct fake_object *object)
{
    fake_place(object, 0);
    if (object->previous != NULL) {
        object->previous->next = object->next;
    } else {
        lists[object->type] = object->next;
    }
    if (object->next != NULL) {
        object->next->previous = object->previous;
    }
    object->type = FAKE_FREE;
    object->previous = NULL;
    object->next = NULL;
    dead_slots++;
    if (free_last != NULL) {
        free_last->next = object;
    } else {
        free_first = object;
    }
    free_last = object;
}

struct fake_object *fake_first(enum fake_type type)
{
    return lists[type];
}

struct fake_object *fake_check(const void *handle, enum fake_type type)
{
    uintptr_t at = (uintptr_t)handle;
    uintptr_t first = (uintptr_t)slots;
    struct fake_object *object;

    if (slots == NULL || at < first ||
        at >= first + used_slots * sizeof(slots[0]) ||
        (at - first) % sizeof(slots[0]) != 0) {
        return NULL;
    }
    object = &slots[(at - first) / sizeof(slots[0])];
    return object->type == type ? object : NULL;
}

uint64_t fake_number(const struct fake_object *object)
{
    return (uint64_t)object->generation << 32 |
           ((uint64_t)(object - slots) + 1);
}

struct fake_object *fake_by_number(uint64_t number, uint32_t types)
{
    uint64_t index = (number & UINT32_MAX) - 1;
    struct fake_object *object;

    if (slots == NULL || index >= used_slots) {
        return NULL;
    }
    object = &slots[index];
    if (object->type == FAKE_FREE || object->generation != number >> 32 ||
        (types & FAKE_BIT(object->type)) == 0) {
        return NULL;
    }
    return object;
}

struct fake_object *fake_at(uint64_t address, uint32_t types)
{
    struct fake_object *object;

    if (buckets == NULL || address == 0) {
        return NULL;
    }
    object = buckets[bucket_of(address)];
    while (object != NULL && (object->address != address ||
                              (types & FAKE_BIT(object->type)) == 0)) {
        object = object->chained;
    }
    return object;
}

struct fake_object *fake_around(uint64_t address, uint32_t types)
{
    struct fake_object *object = fake_at(address, types);

    for (int type = 1; object == NULL && type < FAKE_TYPES; type++) {
        if ((types & FAKE_BIT(type)) == 0) {
            continue;
        }
        object = lists[type];
        while (object != NULL &&
               (object->address == 0 || address < object->address ||
                address - object->address >= object->size_bytes)) {
            object = object->next;
        }
    }
    return object;
}
