/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * DWARF to places, through three indexes, each built when first needed:
 * address to unit, to function, to inlined call.
 *
 * .debug_aranges is not used: clang writes none by default.
 *
 * Invariant: an entry's next sibling lies behind it in the same unit, and all
 * walks together look at no more entries than two honest ones would, so no
 * DWARF can keep us in a loop.
 */
#include "reader/symbolise_dwarf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#define DEPTH_MAX 200
#define RANGES_MAX 1000000
#define NO_CALL SIZE_MAX

struct call {
    Dwarf_Off entry;
    size_t parent; /* the call around it; NO_CALL: the function itself */
};

struct function {
    Dwarf_Off entry;
    bool is_indexed;
    struct call *calls;
    size_t call_count;
    struct seep_symbolise_index ranges; /* value: a call's number */
};

struct seep_symbolise_unit {
    Dwarf_Off entry;
    bool is_indexed;
    struct function *functions;
    size_t function_count;
    struct seep_symbolise_index ranges; /* value: a function's number */
};

/* Room for one more; capacities are powers of two, so none is kept. */
static void *grow(void *items, size_t count, size_t item_bytes)
{
    if (count != 0 && (count & (count - 1)) != 0) {
        return items;
    }
    return reallocarray(items, count == 0 ? 1 : 2 * count, item_bytes);
}

static int add_ranges(struct seep_symbolise_index *index, Dwarf_Die *entry,
                      uint64_t value, uint32_t class)
{
    Dwarf_Addr base = 0;
    ptrdiff_t at = 0;
    int result = 0;

    for (int i = 0; i < RANGES_MAX && result == 0; i++) {
        struct seep_symbolise_range range = {.value = value, .class = class};

        at = dwarf_ranges(entry, at, &base, &range.start, &range.end);
        if (at <= 0) {
            break;
        }
        /* The linker leaves functions that it dropped at address 0. */
        if (range.start != 0) {
            result = seep_symbolise_index_add(index, &range);
        }
    }
    return result;
}

static bool step(struct seep_symbolise_dwarf *dwarf)
{
    return dwarf->steps_left > 0 && dwarf->steps_left-- > 0;
}

static bool go_to_sibling(Dwarf_Die *entry)
{
    Dwarf_Die next;

    if (dwarf_siblingof(entry, &next) != 0 || next.cu != entry->cu ||
        (const char *)next.addr <= (const char *)entry->addr) {
        return false;
    }
    *entry = next;
    return true;
}

static int add_unit(struct seep_symbolise_dwarf *dwarf, Dwarf_Off offset)
{
    struct seep_symbolise_unit *units;
    Dwarf_Die entry;
    int tag;

    if (dwarf_offdie(dwarf->dwarf, offset, &entry) == NULL) {
        return 0;
    }
    tag = dwarf_tag(&entry);
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) {
        return 0;
    }
    units = grow(dwarf->units, dwarf->unit_count, sizeof(*units));
    if (units == NULL) {
        return -ENOMEM;
    }
    dwarf->units = units;
    units[dwarf->unit_count] = (struct seep_symbolise_unit){.entry = offset};
    return add_ranges(&dwarf->ranges, &entry, dwarf->unit_count++, 0);
}

int seep_symbolise_dwarf_init(Dwfl_Module *module,
                              struct seep_symbolise_dwarf *ret_dwarf)
{
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    size_t header_bytes = 0;
    int result = 0;

    ret_dwarf->dwarf = dwfl_module_getdwarf(module, &ret_dwarf->bias);
    if (ret_dwarf->dwarf == NULL) {
        return 0;
    }
    while (result == 0 &&
           dwarf_nextcu(ret_dwarf->dwarf, offset, &next, &header_bytes, NULL,
                        NULL, NULL) == 0 &&
           next > offset) {
        result = add_unit(ret_dwarf, offset + header_bytes);
        ret_dwarf->steps_left += 2 * (next - offset);
        offset = next;
    }
    return result != 0 ? result : seep_symbolise_index_seal(&ret_dwarf->ranges);
}

static int add_function(struct seep_symbolise_unit *unit, Dwarf_Die *entry)
{
    size_t before = unit->ranges.range_count;
    struct function *functions;
    int result;

    result = add_ranges(&unit->ranges, entry, unit->function_count, 0);
    if (result != 0 || unit->ranges.range_count == before) {
        return result;
    }
    functions = grow(unit->functions, unit->function_count, sizeof(*functions));
    if (functions == NULL) {
        return -ENOMEM;
    }
    unit->functions = functions;
    functions[unit->function_count++] =
        (struct function){.entry = dwarf_dieoffset(entry)};
    return 0;
}

static bool may_hold_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module ||
           tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
           tag == DW_TAG_variant_part || tag == DW_TAG_variant;
}

static int walk_unit(struct seep_symbolise_dwarf *dwarf,
                     struct seep_symbolise_unit *unit, Dwarf_Die *parent,
                     unsigned depth)
{
    Dwarf_Die entry;
    int result = 0;

    if (depth > DEPTH_MAX || dwarf_child(parent, &entry) != 0) {
        return 0;
    }
    do {
        int tag = dwarf_tag(&entry);

        if (tag == DW_TAG_subprogram) {
            result = add_function(unit, &entry);
        } else if (may_hold_functions(tag)) {
            result = walk_unit(dwarf, unit, &entry, depth + 1);
        }
    } while (result == 0 && step(dwarf) && go_to_sibling(&entry));
    return result;
}

static int index_unit(struct seep_symbolise_dwarf *dwarf,
                      struct seep_symbolise_unit *unit, Dwarf_Die *entry)
{
    int result;

    if (unit->is_indexed) {
        return 0;
    }
    unit->is_indexed = true;
    result = walk_unit(dwarf, unit, entry, 0);
    return result != 0 ? result : seep_symbolise_index_seal(&unit->ranges);
}

static int add_call(struct function *function, Dwarf_Die *entry, size_t parent,
                    unsigned depth)
{
    struct call *calls =
        grow(function->calls, function->call_count, sizeof(*calls));

    if (calls == NULL) {
        return -ENOMEM;
    }
    function->calls = calls;
    calls[function->call_count] =
        (struct call){.entry = dwarf_dieoffset(entry), .parent = parent};
    return add_ranges(&function->ranges, entry, function->call_count++,
                      DEPTH_MAX - depth);
}

static int walk_function(struct seep_symbolise_dwarf *dwarf,
                         struct function *function, Dwarf_Die *parent,
                         size_t parent_call, unsigned depth)
{
    Dwarf_Die entry;
    int result = 0;

    if (depth > DEPTH_MAX || dwarf_child(parent, &entry) != 0) {
        return 0;
    }
    do {
        int tag = dwarf_tag(&entry);

        if (tag == DW_TAG_inlined_subroutine) {
            size_t call = function->call_count;

            result = add_call(function, &entry, parent_call, depth);
            if (result == 0) {
                result =
                    walk_function(dwarf, function, &entry, call, depth + 1);
            }
        } else if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
                   tag == DW_TAG_catch_block) {
            result =
                walk_function(dwarf, function, &entry, parent_call, depth + 1);
        }
    } while (result == 0 && step(dwarf) && go_to_sibling(&entry));
    return result;
}

static int index_function(struct seep_symbolise_dwarf *dwarf,
                          struct function *function, Dwarf_Die *entry)
{
    int result;

    if (function->is_indexed) {
        return 0;
    }
    function->is_indexed = true;
    result = walk_function(dwarf, function, entry, NO_CALL, 0);
    return result != 0 ? result : seep_symbolise_index_seal(&function->ranges);
}

/* An attribute of the entry or of what it is an instance of. */
static const char *string_of(Dwarf_Die *entry, unsigned name)
{
    Dwarf_Attribute attribute;

    return dwarf_formstring(dwarf_attr_integrate(entry, name, &attribute));
}

static uint32_t number_of(Dwarf_Die *entry, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;

    if (dwarf_formudata(dwarf_attr(entry, name, &attribute), &value) != 0 ||
        value > INT32_MAX) {
        return 0;
    }
    return (uint32_t)value;
}

static void set_names(struct seep_symbolise_place *place, Dwarf_Die *entry)
{
    place->symbol = string_of(entry, DW_AT_linkage_name);
    if (place->symbol == NULL) {
        place->symbol = string_of(entry, DW_AT_MIPS_linkage_name);
    }
    place->name = string_of(entry, DW_AT_name);
}

static void set_line(struct seep_symbolise_place *place, Dwarf_Die *unit,
                     Dwarf_Addr address)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    int number = 0;

    if (line == NULL) {
        return;
    }
    place->file = dwarf_linesrc(line, NULL, NULL);
    if (dwarf_lineno(line, &number) == 0 && number > 0) {
        place->line = (uint32_t)number;
    }
}

/* Where an inlined call stands is a line of the next place. */
static void set_call_line(struct seep_symbolise_place *place, Dwarf_Die *unit,
                          Dwarf_Die *call)
{
    Dwarf_Files *files = NULL;
    size_t file_count = 0;
    uint32_t file = number_of(call, DW_AT_call_file);

    place->line = number_of(call, DW_AT_call_line);
    if (dwarf_getsrcfiles(unit, &files, &file_count) == 0 &&
        file < file_count) {
        place->file = dwarf_filesrc(files, file, NULL, NULL);
    }
}

struct chain {
    struct seep_symbolise_place *places;
    size_t count;
};

/* Inlined calls from the innermost outwards; the last place stays open. */
static void follow(struct seep_symbolise_dwarf *dwarf,
                   const struct function *function, Dwarf_Die *unit,
                   size_t call, struct chain *chain)
{
    while (call != NO_CALL && chain->count < SEEP_SYMBOLISE_PLACES_MAX - 1) {
        struct seep_symbolise_place *place = &chain->places[chain->count];
        Dwarf_Die entry;

        if (dwarf_offdie(dwarf->dwarf, function->calls[call].entry, &entry) ==
            NULL) {
            return;
        }
        set_names(place, &entry);
        chain->count++;
        set_call_line(place + 1, unit, &entry);
        call = function->calls[call].parent;
    }
}

static int find_in_unit(struct seep_symbolise_dwarf *dwarf,
                        struct seep_symbolise_unit *unit, Dwarf_Die *unit_entry,
                        Dwarf_Addr address, struct chain *chain)
{
    const struct seep_symbolise_range *range;
    struct function *function;
    Dwarf_Die entry;
    int result = index_unit(dwarf, unit, unit_entry);

    set_line(&chain->places[0], unit_entry, address);
    range = seep_symbolise_index_find(&unit->ranges, address);
    if (result != 0 || range == NULL) {
        return result;
    }
    function = &unit->functions[range->value];
    if (dwarf_offdie(dwarf->dwarf, function->entry, &entry) == NULL) {
        return 0;
    }
    result = index_function(dwarf, function, &entry);
    range = seep_symbolise_index_find(&function->ranges, address);
    if (result == 0 && range != NULL) {
        follow(dwarf, function, unit_entry, range->value, chain);
    }
    set_names(&chain->places[chain->count], &entry);
    return result;
}

int seep_symbolise_dwarf_find(struct seep_symbolise_dwarf *dwarf,
                              uint64_t address,
                              struct seep_symbolise_place *ret_places,
                              size_t *ret_count)
{
    Dwarf_Addr unbiased = address - dwarf->bias;
    const struct seep_symbolise_range *range =
        seep_symbolise_index_find(&dwarf->ranges, unbiased);
    struct chain chain = {.places = ret_places};
    struct seep_symbolise_unit *unit;
    const char *folder;
    Dwarf_Die entry;
    int result;

    if (range == NULL ||
        dwarf_offdie(dwarf->dwarf, dwarf->units[range->value].entry, &entry) ==
            NULL) {
        *ret_count = 0;
        return 0;
    }
    unit = &dwarf->units[range->value];
    memset(ret_places, 0, SEEP_SYMBOLISE_PLACES_MAX * sizeof(*ret_places));
    result = find_in_unit(dwarf, unit, &entry, unbiased, &chain);
    if (result != 0) {
        return result;
    }
    folder = string_of(&entry, DW_AT_comp_dir);
    *ret_count = chain.count + 1;
    for (size_t i = 0; i < *ret_count; i++) {
        ret_places[i].folder = folder;
    }
    return 0;
}

static void fini_unit(struct seep_symbolise_unit *unit)
{
    for (size_t i = 0; i < unit->function_count; i++) {
        free(unit->functions[i].calls);
        seep_symbolise_index_fini(&unit->functions[i].ranges);
    }
    free(unit->functions);
    seep_symbolise_index_fini(&unit->ranges);
}

void seep_symbolise_dwarf_fini(struct seep_symbolise_dwarf *dwarf)
{
    for (size_t i = 0; i < dwarf->unit_count; i++) {
        fini_unit(&dwarf->units[i]);
    }
    free(dwarf->units);
    seep_symbolise_index_fini(&dwarf->ranges);
}
