/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Classes and variables of a module, found in DWARF; see members.h.
 *
 * A class is found by its name, as its type information has it: DWARF has no
 * address of it. Names of templates are written in more than one way, so these
 * count without their arguments, and a member function's mangled name decides.
 *
 * Invariant: whatever DWARF says, no more entries are looked at than stand
 * below.
 */
#include "reader/symbols/members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sorted.h"
#include "reader/recording/store.h"
#include "reader/symbols/names.h"

#define DEPTH_MAX 200
#define ENTRIES_MOST ((size_t)2 << 20)
#define STEPS_MOST (UINT64_C(64) << 20) /* for the index: some seconds */
#define UNNAMED "(anonymous namespace)"

static uint64_t address_of(const Dwarf_Die *entry)
{
    return (uint64_t)(uintptr_t)entry->addr;
}

/*
 * Keys of classes and of variables.
 */

#define CLASSES SEEP_HASH_SEED
#define VARIABLES 1U
#define THREAD_LOCALS 2U

/* One more name on the way into it, without arguments of a template. */
static uint64_t key_below(uint64_t scope, const char *name, size_t bytes)
{
    const char *arguments = bytes > 1 ? memchr(name + 1, '<', bytes - 1) : NULL;

    if (arguments != NULL) {
        bytes = (size_t)(arguments - name);
    }
    return seep_hash_add(scope, seep_hash_bytes(name, bytes));
}

static uint64_t key_of_variable(uint64_t address, bool is_thread_local)
{
    return seep_hash_add(is_thread_local ? THREAD_LOCALS : VARIABLES, address);
}

/* How long the first of the names of @text is, with its arguments. */
static size_t first_name(const char *text)
{
    size_t angles = 0;
    size_t rounds = 0;
    size_t at = 0;

    for (; text[at] != '\0'; at++) {
        if (text[at] == '(') {
            rounds++;
        } else if (text[at] == ')') {
            rounds -= rounds > 0;
        } else if (rounds == 0 && text[at] == '<') {
            angles++;
        } else if (rounds == 0 && text[at] == '>') {
            angles -= angles > 0;
        } else if (rounds == 0 && angles == 0 && text[at] == ':') {
            break;
        }
    }
    return at;
}

/* Of "ns::Box<int>::Item". */
static uint64_t key_of_class(const char *text)
{
    uint64_t key = CLASSES;

    while (*text != '\0') {
        size_t bytes = first_name(text);

        key = key_below(key, text, bytes);
        text += bytes;
        text += strspn(text, ":");
    }
    return key;
}

/*
 * The index.
 */

#define DECLARED_MOST 4096U /* of one unit, that one may complete later */

struct declared {
    uint64_t address;
    uint64_t key;
};

struct walk {
    struct seep_symbolise_members *members;
    bool in_functions; /* variables there, and nothing else */
    bool is_rust;      /* the unit that is walked */
    uint64_t last;     /* entry, where it lies */
    struct declared *declared;
    size_t declared_count;
};

static int add_entry(struct seep_symbolise_members *members, uint64_t key,
                     const Dwarf_Die *die)
{
    struct seep_symbolise_entry *entries;

    if (members->entry_count == ENTRIES_MOST) {
        members->steps_left = 0;
        return 0;
    }
    entries = seep_list_grow(members->entries, members->entry_count,
                             sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    members->entries = entries;
    entries[members->entry_count++] = (struct seep_symbolise_entry){key, *die};
    return 0;
}

static int note_library(struct walk *walk, const Dwarf_Die *entry)
{
    struct seep_symbolise_members *members = walk->members;
    struct seep_symbolise_extent *library = seep_list_grow(
        members->library, members->library_count, sizeof(*library));

    if (library == NULL) {
        return -ENOMEM;
    }
    members->library = library;
    library[members->library_count++] =
        (struct seep_symbolise_extent){address_of(entry), walk->last};
    return 0;
}

/* The one address that a location says; of a thread-local where in its segment.
 */
static bool place_of(Dwarf_Die *entry, uint64_t *ret_address,
                     bool *ret_is_thread_local)
{
    Dwarf_Attribute attribute;
    Dwarf_Attribute indexed;
    Dwarf_Block block;
    Dwarf_Op *operations;
    size_t count;
    uint32_t half;

    if (dwarf_formblock(dwarf_attr(entry, DW_AT_location, &attribute),
                        &block) != 0 ||
        block.length < 2) {
        return false;
    }
    *ret_is_thread_local =
        block.data[block.length - 1] == DW_OP_GNU_push_tls_address ||
        block.data[block.length - 1] == DW_OP_form_tls_address;
    if (block.length == 9 + (size_t)*ret_is_thread_local &&
        block.data[0] == (*ret_is_thread_local ? DW_OP_const8u : DW_OP_addr)) {
        memcpy(ret_address, block.data + 1, sizeof(*ret_address));
        return true;
    }
    if (block.length == 6 && *ret_is_thread_local &&
        block.data[0] == DW_OP_const4u) {
        memcpy(&half, block.data + 1, sizeof(half));
        *ret_address = half;
        return true;
    }
    return (block.data[0] == DW_OP_addrx ||
            block.data[0] == DW_OP_GNU_addr_index) &&
           dwarf_getlocation(&attribute, &operations, &count) == 0 &&
           count == 1 &&
           dwarf_getlocation_attr(&attribute, operations, &indexed) == 0 &&
           dwarf_formaddr(&indexed, ret_address) == 0;
}

static int add_variable(struct walk *walk, Dwarf_Die *entry)
{
    uint64_t address;
    bool is_thread_local;

    return place_of(entry, &address, &is_thread_local)
               ? add_entry(walk->members,
                           key_of_variable(address, is_thread_local), entry)
               : 0;
}

/* That of a class defined elsewhere than it was declared: there. */
static uint64_t key_of_declared(const struct walk *walk, Dwarf_Die *entry)
{
    Dwarf_Die declared;

    if (seep_symbolise_follow(entry, DW_AT_specification, &declared)) {
        for (size_t i = walk->declared_count; i > 0; i--) {
            if (walk->declared[i - 1].address == address_of(&declared)) {
                return walk->declared[i - 1].key;
            }
        }
    }
    return 0;
}

static int walk_scope(struct walk *walk, Dwarf_Die *parent, uint64_t scope,
                      unsigned depth);

static int visit_class(struct walk *walk, Dwarf_Die *entry, uint64_t scope,
                       unsigned depth)
{
    const char *name = seep_symbolise_name(entry);
    uint64_t key = key_below(scope, name, strlen(name));
    int result;

    if (*name == '\0') {
        return 0;
    }
    if (dwarf_hasattr(entry, DW_AT_declaration)) {
        /* What its unit has of a class that has a unit of its own. */
        result = dwarf_hasattr(entry, DW_AT_signature)
                     ? add_entry(walk->members, key, entry)
                     : 0;
        if (result != 0) {
            return result;
        }
        if (walk->declared_count < DECLARED_MOST) {
            walk->declared[walk->declared_count++] =
                (struct declared){address_of(entry), key};
        }
        return walk_scope(walk, entry, key, depth + 1);
    }
    if (dwarf_hasattr(entry, DW_AT_specification)) {
        key = key_of_declared(walk, entry);
    }
    result = key == 0 ? 0 : add_entry(walk->members, key, entry);
    return result != 0 ? result : walk_scope(walk, entry, key, depth + 1);
}

/* Whose containers have nothing inside that the program has written. */
static bool is_library(const struct walk *walk, const char *name)
{
    return strcmp(name, "std") == 0 ||
           (walk->is_rust &&
            (strcmp(name, "alloc") == 0 || strcmp(name, "core") == 0 ||
             strcmp(name, "hashbrown") == 0));
}

static int visit_namespace(struct walk *walk, Dwarf_Die *entry, uint64_t scope,
                           unsigned depth)
{
    const char *name = seep_symbolise_name(entry);
    int result;

    name = *name == '\0' ? UNNAMED : name;
    result = walk_scope(walk, entry, key_below(scope, name, strlen(name)),
                        depth + 1);
    return result == 0 && scope == CLASSES && !walk->in_functions &&
                   is_library(walk, name)
               ? note_library(walk, entry)
               : result;
}

static int visit(struct walk *walk, Dwarf_Die *entry, uint64_t scope,
                 unsigned depth)
{
    int tag = dwarf_tag(entry);

    if (tag == DW_TAG_namespace) {
        return visit_namespace(walk, entry, scope, depth);
    }
    if (walk->in_functions) {
        return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block
                   ? walk_scope(walk, entry, 0, depth + 1)
               : tag == DW_TAG_variable && scope == 0
                   ? add_variable(walk, entry)
                   : 0;
    }
    return seep_symbolise_is_class(tag) ? visit_class(walk, entry, scope, depth)
           : tag == DW_TAG_variable     ? add_variable(walk, entry)
                                        : 0;
}

static int walk_scope(struct walk *walk, Dwarf_Die *parent, uint64_t scope,
                      unsigned depth)
{
    Dwarf_Die entry;
    int result = 0;

    if (depth > DEPTH_MAX || dwarf_child(parent, &entry) != 0) {
        return 0;
    }
    do {
        walk->last = address_of(&entry);
        result = visit(walk, &entry, scope, depth);
    } while (result == 0 && seep_symbolise_step(walk->members) &&
             seep_symbolise_next(&entry));
    return result;
}

static int compare_entries(const void *one, const void *other)
{
    const struct seep_symbolise_entry *a = one;
    const struct seep_symbolise_entry *b = other;
    uint64_t first = address_of(&a->die);
    uint64_t second = address_of(&b->die);

    return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
                            : (first > second) - (first < second);
}

static int compare_extents(const void *one, const void *other)
{
    const struct seep_symbolise_extent *a = one;
    const struct seep_symbolise_extent *b = other;

    return (a->start > b->start) - (a->start < b->start);
}

/* Units of types and parts that others import stand beside the others. What is
 * in a .dwo file is not looked for. */
static int walk_units(struct walk *walk, Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Half version;
    uint8_t kind;
    Dwarf_Die entry;
    int result = 0;

    while (result == 0 && dwarf_get_units(dwarf, unit, &unit, &version, &kind,
                                          &entry, NULL) == 0) {
        walk->declared_count = 0;
        walk->is_rust = dwarf_srclang(&entry) == DW_LANG_Rust;
        if (kind != DW_UT_skeleton) {
            result = walk_scope(walk, &entry, CLASSES, 0);
        }
    }
    return result;
}

static int make_index(struct seep_symbolise_members *members, Dwarf *dwarf,
                      bool in_functions)
{
    struct walk walk = {.members = members,
                        .in_functions = in_functions,
                        .declared =
                            calloc(DECLARED_MOST, sizeof(*walk.declared))};
    int result;

    members->steps_left = STEPS_MOST;
    result = walk.declared == NULL ? -ENOMEM : walk_units(&walk, dwarf);
    members->is_cut |= !in_functions && members->steps_left == 0;
    free(walk.declared);
    if (members->entry_count > 0) {
        qsort(members->entries, members->entry_count, sizeof(*members->entries),
              compare_entries);
    }
    if (members->library_count > 0) {
        qsort(members->library, members->library_count,
              sizeof(*members->library), compare_extents);
    }
    return result;
}

int seep_symbolise_index_all(struct seep_symbolise_members *members,
                             const struct seep_symbolise_dwarf *dwarf)
{
    if (members->is_indexed) {
        return 0;
    }
    members->is_indexed = true;
    return make_index(members, dwarf->dwarf, false);
}

void seep_symbolise_members_fini(struct seep_symbolise_members *members)
{
    free(members->entries);
    free(members->library);
    *members = (struct seep_symbolise_members){.entries = NULL};
}

static bool lies_in_library(const struct seep_symbolise_members *members,
                            const Dwarf_Die *type)
{
    uint64_t at = address_of(type);
    size_t count =
        SEEP_SORTED_UP_TO(members->library, members->library_count, start, at);

    return count > 0 && at <= members->library[count - 1].last;
}

/* By itself, or where it was declared: in a unit of types. */
bool seep_symbolise_is_in_library(const struct seep_symbolise_members *members,
                                  Dwarf_Die *type)
{
    Dwarf_Die declared;

    return lies_in_library(members, type) ||
           (seep_symbolise_follow(type, DW_AT_specification, &declared) &&
            lies_in_library(members, &declared));
}

/*
 * Classes by their names.
 */

#define NAME_BYTES 1024U

/* "N2ns3BoxIiEE" begins the names of its functions: _ZN2ns3BoxIiE3putEi. */
static bool is_function_of(const char *name, const char *symbol)
{
    bool is_nested = symbol[0] == 'N';
    size_t bytes = strlen(symbol);

    if (name == NULL || strncmp(name, "_ZN", 3) != 0 || bytes < 3) {
        return false;
    }
    symbol += is_nested;
    bytes -= is_nested ? 2 : 0;
    name += 3;
    name += strspn(name, "VKRO");
    return strncmp(name, symbol, bytes) == 0 && name[bytes] != 'E';
}

/* What is written between names, "> >" or ">>", is no difference. */
static bool is_written_like(const char *one, const char *other)
{
    for (;; one++, other++) {
        one += strspn(one, " ");
        other += strspn(other, " ");
        if (*one != *other || *one == '\0') {
            return *one == *other;
        }
    }
}

static const char *last_name(const char *text)
{
    for (;;) {
        size_t bytes = first_name(text);

        if (text[bytes] == '\0') {
            return text;
        }
        text += bytes + strspn(text + bytes, ":");
    }
}

/* Of several that a template made: is it this one? */
static bool is_it(struct seep_symbolise_members *members, Dwarf_Die *type,
                  const char *symbol, const char *name)
{
    const char *last = last_name(name);
    bool has_functions = false;
    Dwarf_Die entry;

    if (strchr(name, '<') == NULL) {
        return true;
    }
    if (dwarf_child(type, &entry) == 0) {
        do {
            Dwarf_Attribute attribute;
            const char *function =
                dwarf_tag(&entry) != DW_TAG_subprogram
                    ? NULL
                    : dwarf_formstring(
                          dwarf_attr(&entry, DW_AT_linkage_name, &attribute));

            if (is_function_of(function, symbol)) {
                return true;
            }
            has_functions |= function != NULL;
        } while (seep_symbolise_step(members) && seep_symbolise_next(&entry));
    }
    return !has_functions && (size_t)(last - name) == strcspn(name, "<") &&
           is_written_like(seep_symbolise_name(type), last);
}

static bool demangle_class(const char *symbol, char name[NAME_BYTES])
{
    static const char words[] = "typeinfo name for ";
    char mangled[NAME_BYTES];

    if ((size_t)snprintf(mangled, sizeof(mangled), "_ZTS%s", symbol) >=
            sizeof(mangled) ||
        !seep_demangle(mangled, name, NAME_BYTES) ||
        strncmp(name, words, sizeof(words) - 1) != 0 ||
        strlen(name) == NAME_BYTES - 1) {
        return false;
    }
    memmove(name, name + sizeof(words) - 1,
            strlen(name + sizeof(words) - 1) + 1);
    return true;
}

bool seep_symbolise_peel(Dwarf_Die *type)
{
    for (unsigned i = 0; i < SEEP_SYMBOLISE_TYPES_MOST; i++) {
        switch (dwarf_tag(type)) {
        case DW_TAG_typedef:
        case DW_TAG_const_type:
        case DW_TAG_volatile_type:
        case DW_TAG_restrict_type:
        case DW_TAG_atomic_type:
            if (!seep_symbolise_follow(type, DW_AT_type, type)) {
                return false;
            }
            break;
        default:
            return !dwarf_hasattr(type, DW_AT_signature) ||
                   seep_symbolise_follow(type, DW_AT_signature, type);
        }
    }
    return false;
}

/* Those of @key. @return how many; 0 too where nothing is known */
static size_t find_entries(struct seep_symbolise_members *members, uint64_t key,
                           const struct seep_symbolise_entry **ret_first)
{
    size_t at =
        SEEP_SORTED_BELOW(members->entries, members->entry_count, key, key);
    size_t count = 0;

    *ret_first = at < members->entry_count ? &members->entries[at] : NULL;
    while (at + count < members->entry_count &&
           members->entries[at + count].key == key) {
        count++;
    }
    return count;
}

static bool is_of_unit(Dwarf_Die *entry, Dwarf_Off unit)
{
    Dwarf_Die of;

    return dwarf_diecu(entry, &of, NULL, NULL) != NULL &&
           dwarf_dieoffset(&of) == unit;
}

size_t
seep_symbolise_find_classes(struct seep_symbolise_members *members,
                            const char *symbol, const Dwarf_Off *unit,
                            Dwarf_Die ret_found[SEEP_SYMBOLISE_FOUND_MOST],
                            bool *ret_is_sure)
{
    const struct seep_symbolise_entry *entries;
    char name[NAME_BYTES];
    size_t entry_count;
    size_t count = 0;

    *ret_is_sure = false;
    if (!demangle_class(symbol, name)) {
        return 0;
    }
    entry_count = find_entries(members, key_of_class(name), &entries);
    for (size_t i = 0; i < entry_count && seep_symbolise_step(members); i++) {
        Dwarf_Die type = entries[i].die;
        bool is_there = unit != NULL && is_of_unit(&type, *unit);

        if ((!is_there && count == SEEP_SYMBOLISE_FOUND_MOST) ||
            !seep_symbolise_peel(&type) ||
            !is_it(members, &type, symbol, name)) {
            continue;
        }
        if (is_there) {
            ret_found[0] = type;
            *ret_is_sure = true;
            return 1;
        }
        ret_found[count++] = type;
    }
    return count;
}

int seep_symbolise_find_variables(
    struct seep_symbolise_members *members,
    const struct seep_symbolise_dwarf *dwarf, uint64_t address,
    bool is_thread_local, Dwarf_Die ret_found[SEEP_SYMBOLISE_FOUND_MOST],
    size_t *ret_count)
{
    uint64_t key = key_of_variable(
        is_thread_local ? address : address - dwarf->bias, is_thread_local);
    const struct seep_symbolise_entry *entries;
    size_t count = find_entries(members, key, &entries);
    int result = 0;

    if (count == 0 && !members->has_functions) {
        members->has_functions = true;
        result = make_index(members, dwarf->dwarf, true);
        members->steps_left = SEEP_SYMBOLISE_STEPS_MOST;
        count = find_entries(members, key, &entries);
    }
    count =
        count < SEEP_SYMBOLISE_FOUND_MOST ? count : SEEP_SYMBOLISE_FOUND_MOST;
    for (size_t i = 0; i < count; i++) {
        ret_found[i] = entries[i].die;
    }
    *ret_count = count;
    return result;
}
