/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a class or a variable down to members; see members.h.
 *
 * Invariant: what several classes of one name do not agree about is not known,
 * nor is what lies where DWARF has no member, or more than one.
 */
#include "reader/symbols/members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number_of(Dwarf_Die *entry, unsigned name, uint64_t *ret_value)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    if (dwarf_formudata(dwarf_attr(entry, name, &attribute), &value) != 0) {
        return false;
    }
    *ret_value = value;
    return true;
}

/*
 * From a type and an offset to a member.
 */

struct path {
    struct seep_symbolise_members *members;
    char *text;
    bool is_silent;     /* it goes on in the standard library */
    bool is_nowhere;    /* no member is there */
    Dwarf_Die type;     /* where it has come to */
    bool type_is_known; /* it ends at what is no class, */
    uint64_t offset;
};

static bool type_of(Dwarf_Die *entry, Dwarf_Die *ret_type)
{
    Dwarf_Attribute attribute;

    return dwarf_formref_die(
               dwarf_attr_integrate(entry, DW_AT_type, &attribute), ret_type) !=
               NULL &&
           seep_symbolise_peel(ret_type);
}

/* 0: not known */
static uint64_t size_of(Dwarf_Die *type)
{
    Dwarf_Word bytes;

    return dwarf_aggregate_size(type, &bytes) == 0 ? bytes : 0;
}

static void append(struct path *path, const char *name, bool is_item)
{
    size_t used = strlen(path->text);
    size_t room = sizeof(((struct seep_symbolise_member *)0)->path) - used;

    if (!path->is_silent && *name != '\0') {
        snprintf(path->text + used, room, "%s%s",
                 used > 0 && !is_item ? "." : "", name);
    }
}

/* Older compilers have it as a sum, and of a virtual base it is in the object.
 */
static bool offset_of(Dwarf_Die *member, uint64_t *ret_offset)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *operations;
    size_t count;

    *ret_offset = 0;
    if (!dwarf_hasattr(member, DW_AT_data_member_location) ||
        number_of(member, DW_AT_data_member_location, ret_offset)) {
        return true;
    }
    if (dwarf_getlocation(
            dwarf_attr(member, DW_AT_data_member_location, &attribute),
            &operations, &count) != 0 ||
        count != 1 || operations->atom != DW_OP_plus_uconst) {
        return false;
    }
    *ret_offset = operations->number;
    return true;
}

/* Is it in each object, by itself? */
static bool is_member(Dwarf_Die *entry)
{
    int tag = dwarf_tag(entry);

    return (tag == DW_TAG_member || tag == DW_TAG_inheritance) &&
           !dwarf_hasattr(entry, DW_AT_external) &&
           !dwarf_hasattr(entry, DW_AT_declaration) &&
           !dwarf_hasattr(entry, DW_AT_bit_size) &&
           !(tag == DW_TAG_inheritance &&
             dwarf_hasattr(entry, DW_AT_virtuality)) &&
           strncmp(seep_symbolise_name(entry), "_vptr", 5) != 0;
}

/* Where a member begins; of what it is, if it may have @offset. */
struct found {
    Dwarf_Die member;
    Dwarf_Die type;
    uint64_t start;
    uint64_t bytes; /* 0: nobody says: an array without an end, a class that is
                       defined elsewhere */
};

static bool look_at(Dwarf_Die *entry, uint64_t offset, struct found *ret_found)
{
    ret_found->member = *entry;
    if (!is_member(entry) || !offset_of(entry, &ret_found->start) ||
        ret_found->start > offset || !type_of(entry, &ret_found->type)) {
        return false;
    }
    ret_found->bytes = size_of(&ret_found->type);
    return true;
}

static bool has_end(struct found *found)
{
    return dwarf_tag(&found->type) != DW_TAG_array_type &&
           !dwarf_hasattr(&found->type, DW_AT_declaration);
}

/* What has the offset of @path, of a union it may be more than one; else the
 * last before it, if that is one of which nobody says where it ends. @return
 * how many */
static unsigned find_member(struct path *path, struct found *ret_found)
{
    struct found last = {.start = 0};
    unsigned last_count = 0;
    unsigned count = 0;
    Dwarf_Die entry;

    if (dwarf_child(&path->type, &entry) != 0) {
        return 0;
    }
    do {
        struct found found;

        if (!look_at(&entry, path->offset, &found)) {
            continue;
        }
        /* What has no member of its own has a byte all the same. */
        if (found.bytes > 1 && path->offset - found.start < found.bytes) {
            *ret_found = found;
            count++;
        }
        last_count =
            last_count == 0 || found.start > last.start ? 0 : last_count;
        if (last_count == 0 || found.start == last.start) {
            last_count++;
            last = found;
        }
    } while (seep_symbolise_step(path->members) && seep_symbolise_next(&entry));
    if (count == 0 && last_count == 1 && last.bytes == 0 && !has_end(&last)) {
        *ret_found = last;
        count = 1;
    }
    return count;
}

/* @return false: it can go no further */
static bool go_into_class(struct path *path)
{
    struct found found;
    unsigned count;

    path->is_silent |= seep_symbolise_is_in_library(path->members, &path->type);
    if (dwarf_hasattr(&path->type, DW_AT_declaration)) {
        return false;
    }
    count = find_member(path, &found);
    path->is_nowhere = count == 0 && !path->is_silent;
    if (count != 1) {
        return false;
    }
    if (dwarf_tag(&found.member) == DW_TAG_member) {
        append(path, seep_symbolise_name(&found.member), false);
    }
    path->type = found.type;
    path->offset -= found.start;
    return true;
}

static bool go_into_array(struct path *path)
{
    Dwarf_Die type;
    uint64_t bytes = type_of(&path->type, &type) ? size_of(&type) : 0;

    if (bytes == 0) {
        return false;
    }
    append(path, "[...]", true);
    path->type = type;
    path->offset %= bytes;
    return true;
}

/* From its .type and .offset to where that is no class and no array. */
static void go_down(struct path *path)
{
    path->type_is_known = false;
    for (unsigned i = 0; i < SEEP_SYMBOLISE_TYPES_MOST; i++) {
        int tag = dwarf_tag(&path->type);

        if (seep_symbolise_is_class(tag)) {
            if (!go_into_class(path)) {
                return;
            }
        } else if (tag == DW_TAG_array_type) {
            if (!go_into_array(path)) {
                return;
            }
        } else {
            path->type_is_known = path->offset == 0;
            return;
        }
    }
}

/*
 * From one thing down to the next.
 */

/* Through the pointer that the path has come to. */
static bool go_through(struct path *path)
{
    int tag = dwarf_tag(&path->type);

    return path->type_is_known &&
           (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
            tag == DW_TAG_rvalue_reference_type) &&
           type_of(&path->type, &path->type);
}

/*
 * A pointer of the program's own points to one, or to a row of pointers: what
 * lies behind may be of a class that has this one in front. One of a container
 * points to as many as there is room for; but what is the library's own has
 * behind it what the program put in.
 */
static bool enter(struct path *path, const struct seep_symbol_hop *hop,
                  bool is_of_library)
{
    uint64_t bytes = size_of(&path->type);

    path->offset = hop->offset;
    if (dwarf_tag(&path->type) == DW_TAG_pointer_type) {
        append(path, "[...]", true);
        path->offset %= bytes == 0 ? 8 : bytes;
        return true;
    }
    if (!seep_symbolise_is_class(dwarf_tag(&path->type)) || bytes == 0 ||
        dwarf_hasattr(&path->type, DW_AT_declaration) ||
        seep_symbolise_is_in_library(path->members, &path->type)) {
        return false;
    }
    if (is_of_library && hop->bytes / 2 >= bytes) {
        append(path, "[...]", true);
        path->offset %= bytes;
    }
    return true;
}

/* A part of a name is none. */
static void set_type(struct seep_symbolise_member *member, const char *name)
{
    if (strlen(name) < sizeof(member->type)) {
        strcpy(member->type, name);
    }
}

/* @type: what the first of the hops is in */
static void tell(struct seep_symbolise_members *members, const Dwarf_Die *type,
                 const struct seep_symbol_thing *thing,
                 struct seep_symbolise_member *ret_members)
{
    struct path path = {
        .members = members, .type = *type, .offset = thing->hops[0].offset};

    for (size_t i = 0; i < thing->hop_count; i++) {
        bool is_of_library = path.is_silent;

        path.text = ret_members[i].path;
        path.is_silent = false;
        path.is_nowhere = false;
        if (i > 0 && (!go_through(&path) ||
                      !enter(&path, &thing->hops[i], is_of_library))) {
            return;
        }
        if (seep_symbolise_is_class(dwarf_tag(&path.type))) {
            set_type(&ret_members[i], seep_symbolise_name(&path.type));
        }
        go_down(&path);
        if (path.is_nowhere) {
            ret_members[i].path[0] = '\0';
        }
    }
}

/* Larger than what there is it cannot be. */
static bool fits(Dwarf_Die *type, const struct seep_symbol_hop *hop)
{
    uint64_t bytes = size_of(type);

    return bytes > 0 && (hop->bytes == 0 || bytes <= hop->bytes);
}

/* What all of @types say that fit. */
static int tell_agreed(struct seep_symbolise_members *members,
                       const struct seep_symbol_thing *thing, Dwarf_Die *types,
                       size_t count, struct seep_symbolise_member *ret_members)
{
    struct seep_symbolise_member *other =
        calloc(thing->hop_count, sizeof(*other));
    size_t bytes = thing->hop_count * sizeof(*other);
    bool is_told = false;
    bool agree = true;

    if (other == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (!fits(&types[i], &thing->hops[0])) {
            continue;
        }
        memset(other, 0, bytes);
        tell(members, &types[i], thing, other);
        agree &= !is_told || memcmp(other, ret_members, bytes) == 0;
        is_told = true;
        memcpy(ret_members, other, bytes);
    }
    if (!agree) {
        memset(ret_members, 0, bytes);
    }
    free(other);
    return 0;
}

/* The class, or those that it may be; where not all were seen, none. */
static size_t find_classes(struct seep_symbolise_members *members,
                           const struct seep_symbolise_dwarf *dwarf,
                           const struct seep_symbol_thing *thing,
                           Dwarf_Die ret_types[SEEP_SYMBOLISE_FOUND_MOST])
{
    Dwarf_Off unit = 0;
    bool has_unit = thing->address != 0 &&
                    seep_symbolise_dwarf_unit(dwarf, thing->address, &unit);
    bool is_sure;
    size_t count = seep_symbolise_find_classes(members, thing->class_symbol,
                                               has_unit ? &unit : NULL,
                                               ret_types, &is_sure);

    return is_sure || !members->is_cut ? count : 0;
}

static int find_variables(struct seep_symbolise_members *members,
                          const struct seep_symbolise_dwarf *dwarf,
                          const struct seep_symbol_thing *thing,
                          Dwarf_Die ret_types[SEEP_SYMBOLISE_FOUND_MOST],
                          size_t *ret_count)
{
    Dwarf_Die found[SEEP_SYMBOLISE_FOUND_MOST];
    size_t found_count = 0;
    int result = seep_symbolise_find_variables(members, dwarf, thing->address,
                                               thing->is_thread_local, found,
                                               &found_count);

    *ret_count = 0;
    for (size_t i = 0; i < found_count; i++) {
        *ret_count += type_of(&found[i], &ret_types[*ret_count]);
    }
    return result;
}

int seep_symbolise_members_find(struct seep_symbolise_members *members,
                                const struct seep_symbolise_dwarf *dwarf,
                                const struct seep_symbol_thing *thing,
                                struct seep_symbolise_member *ret_members)
{
    Dwarf_Die types[SEEP_SYMBOLISE_FOUND_MOST];
    size_t count = 0;
    int result = seep_symbolise_index_all(members, dwarf);

    members->steps_left = SEEP_SYMBOLISE_STEPS_MOST;
    memset(ret_members, 0, thing->hop_count * sizeof(*ret_members));
    if (result == 0 && *thing->class_symbol != '\0') {
        count = find_classes(members, dwarf, thing, types);
    } else if (result == 0) {
        result = find_variables(members, dwarf, thing, types, &count);
    }
    return result != 0 || thing->hop_count == 0
               ? result
               : tell_agreed(members, thing, types, count, ret_members);
}
