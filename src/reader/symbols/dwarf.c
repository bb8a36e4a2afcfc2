/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an address to source lines and inlined calls, and the index of ranges
 * that this and the symbol tables use.
 *
 * Invariant: whatever DWARF says, work is bounded: an entry's next sibling lies
 * behind it in the same unit, and all walks together look at no more entries
 * than two honest ones would.
 */
#include <assert.h>
#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "reader/recording/store.h"
#include "reader/symbols/module.h"

/*
 * Ranges into segments by a sweep with a heap of those that are open.
 *
 * Invariant: segments ascend, do not overlap, and are at most twice as many as
 * ranges: each begins where a range begins or ends.
 */

struct sweep {
    struct seep_symbolise_index *index;
    size_t *heap; /* range numbers, the winner on top */
    size_t heap_count;
};

int seep_symbolise_index_add(struct seep_symbolise_index *index,
                             const struct seep_symbolise_range *range)
{
    struct seep_symbolise_range *ranges;

    if (range->start >= range->end) {
        return 0;
    }
    ranges = seep_list_grow(index->ranges, index->range_count, sizeof(*ranges));
    if (ranges == NULL) {
        return -ENOMEM;
    }
    index->ranges = ranges;
    ranges[index->range_count++] = *range;
    return 0;
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Of one start the best comes last. */
static int compare_ranges(const void *left, const void *right)
{
    const struct seep_symbolise_range *a = left;
    const struct seep_symbolise_range *b = right;
    int result = order(a->start, b->start);

    if (result == 0) {
        result = order(b->class, a->class);
    }
    if (result == 0) {
        result = order(b->tie, a->tie);
    }
    return result != 0 ? result : order(b->value, a->value);
}

void seep_symbolise_index_sort(struct seep_symbolise_index *index)
{
    if (index->range_count > 1) {
        qsort(index->ranges, index->range_count, sizeof(*index->ranges),
              compare_ranges);
    }
}

/* Range numbers ascend by start, and among equal starts by merit. */
static bool beats(const struct sweep *sweep, size_t a, size_t b)
{
    const struct seep_symbolise_range *ranges = sweep->index->ranges;

    if (ranges[a].class != ranges[b].class) {
        return ranges[a].class < ranges[b].class;
    }
    return a > b;
}

static void push(struct sweep *sweep, size_t range)
{
    size_t at = sweep->heap_count++;

    while (at > 0 && beats(sweep, range, sweep->heap[(at - 1) / 2])) {
        sweep->heap[at] = sweep->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sweep->heap[at] = range;
}

static void pop(struct sweep *sweep)
{
    size_t last = sweep->heap[--sweep->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < sweep->heap_count &&
            beats(sweep, sweep->heap[child + 1], sweep->heap[child])) {
            child++;
        }
        if (child >= sweep->heap_count ||
            !beats(sweep, sweep->heap[child], last)) {
            break;
        }
        sweep->heap[at] = sweep->heap[child];
        at = child;
    }
    sweep->heap[at] = last;
}

static void emit(struct seep_symbolise_index *index, uint64_t start,
                 uint64_t end, size_t range)
{
    struct seep_symbolise_segment *last =
        index->segment_count > 0 ? &index->segments[index->segment_count - 1]
                                 : NULL;

    if (last != NULL && last->range == range && last->end == start) {
        last->end = end;
        return;
    }
    index->segments[index->segment_count++] =
        (struct seep_symbolise_segment){start, end, range};
}

static void cut(struct sweep *sweep)
{
    struct seep_symbolise_index *index = sweep->index;
    const struct seep_symbolise_range *ranges = index->ranges;
    size_t next = 0;
    uint64_t at = 0;

    for (;;) {
        while (sweep->heap_count > 0 && ranges[sweep->heap[0]].end <= at) {
            pop(sweep);
        }
        if (sweep->heap_count == 0) {
            if (next == index->range_count) {
                return;
            }
            at = ranges[next].start;
        }
        while (next < index->range_count && ranges[next].start <= at) {
            push(sweep, next++);
        }

        size_t winner = sweep->heap[0];
        uint64_t end = ranges[winner].end;

        if (next < index->range_count && ranges[next].start < end) {
            end = ranges[next].start;
        }
        emit(index, at, end, winner);
        at = end;
    }
}

int seep_symbolise_index_seal(struct seep_symbolise_index *index)
{
    struct sweep sweep = {.index = index};

    if (index->range_count == 0) {
        return 0;
    }
    seep_symbolise_index_sort(index);
    index->segments = calloc(index->range_count, 2 * sizeof(*index->segments));
    sweep.heap = calloc(index->range_count, sizeof(*sweep.heap));
    if (index->segments == NULL || sweep.heap == NULL) {
        free(sweep.heap);
        return -ENOMEM;
    }
    cut(&sweep);
    free(sweep.heap);
    return 0;
}

const struct seep_symbolise_range *
seep_symbolise_index_find(const struct seep_symbolise_index *index,
                          uint64_t address)
{
    const struct seep_symbolise_segment *segments = index->segments;
    size_t count =
        SEEP_SORTED_UP_TO(segments, index->segment_count, start, address);

    return count > 0 && segments[count - 1].end > address
               ? &index->ranges[segments[count - 1].range]
               : NULL;
}

void seep_symbolise_index_fini(struct seep_symbolise_index *index)
{
    free(index->ranges);
    free(index->segments);
    *index = (struct seep_symbolise_index){0};
}

/*
 * DWARF to places, through three indexes, each built when first needed:
 * address to unit, to function, to inlined call. .debug_aranges is not used:
 * clang writes none by default.
 */

#define DEPTH_MAX 200
#define RANGES_MAX 1000000
#define NO_CALL SIZE_MAX

static int add_item(struct seep_symbolise_scope *scope, Dwarf_Off entry,
                    size_t parent)
{
    struct seep_symbolise_scope *items =
        seep_list_grow(scope->items, scope->item_count, sizeof(*items));

    if (items == NULL) {
        return -ENOMEM;
    }
    scope->items = items;
    items[scope->item_count++] =
        (struct seep_symbolise_scope){.entry = entry, .parent = parent};
    return 0;
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

bool seep_symbolise_next(Dwarf_Die *entry)
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
    struct seep_symbolise_scope *module = &dwarf->module;
    Dwarf_Die entry;
    int tag;
    int result;

    if (dwarf_offdie(dwarf->dwarf, offset, &entry) == NULL) {
        return 0;
    }
    tag = dwarf_tag(&entry);
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) {
        return 0;
    }
    result = add_item(module, offset, NO_CALL);
    return result != 0
               ? result
               : add_ranges(&module->ranges, &entry, module->item_count - 1, 0);
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
    return result != 0 ? result
                       : seep_symbolise_index_seal(&ret_dwarf->module.ranges);
}

static int add_function(struct seep_symbolise_scope *unit, Dwarf_Die *entry)
{
    size_t before = unit->ranges.range_count;
    int result = add_ranges(&unit->ranges, entry, unit->item_count, 0);

    return result != 0 || unit->ranges.range_count == before
               ? result
               : add_item(unit, dwarf_dieoffset(entry), NO_CALL);
}

static bool may_hold_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module ||
           tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
           tag == DW_TAG_variant_part || tag == DW_TAG_variant;
}

static int walk_unit(struct seep_symbolise_dwarf *dwarf,
                     struct seep_symbolise_scope *unit, Dwarf_Die *parent,
                     size_t unused, unsigned depth)
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
            result = walk_unit(dwarf, unit, &entry, unused, depth + 1);
        }
    } while (result == 0 && step(dwarf) && seep_symbolise_next(&entry));
    return result;
}

static int add_call(struct seep_symbolise_scope *function, Dwarf_Die *entry,
                    size_t parent, unsigned depth)
{
    int result = add_item(function, dwarf_dieoffset(entry), parent);

    return result != 0
               ? result
               : add_ranges(&function->ranges, entry, function->item_count - 1,
                            DEPTH_MAX - depth);
}

static int walk_function(struct seep_symbolise_dwarf *dwarf,
                         struct seep_symbolise_scope *function,
                         Dwarf_Die *parent, size_t parent_call, unsigned depth)
{
    Dwarf_Die entry;
    int result = 0;

    if (depth > DEPTH_MAX || dwarf_child(parent, &entry) != 0) {
        return 0;
    }
    do {
        int tag = dwarf_tag(&entry);

        if (tag == DW_TAG_inlined_subroutine) {
            size_t call = function->item_count;

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
    } while (result == 0 && step(dwarf) && seep_symbolise_next(&entry));
    return result;
}

/* What is in @scope, the first time that an address falls into it. */
static int index_scope(struct seep_symbolise_dwarf *dwarf,
                       struct seep_symbolise_scope *scope, Dwarf_Die *entry,
                       int (*walk)(struct seep_symbolise_dwarf *dwarf,
                                   struct seep_symbolise_scope *scope,
                                   Dwarf_Die *parent, size_t parent_call,
                                   unsigned depth))
{
    int result;

    if (scope->is_indexed) {
        return 0;
    }
    scope->is_indexed = true;
    result = walk(dwarf, scope, entry, NO_CALL, 0);
    return result != 0 ? result : seep_symbolise_index_seal(&scope->ranges);
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
                   const struct seep_symbolise_scope *function, Dwarf_Die *unit,
                   size_t call, struct chain *chain)
{
    while (call != NO_CALL && chain->count < SEEP_SYMBOLISE_PLACES_MAX - 1) {
        struct seep_symbolise_place *place = &chain->places[chain->count];
        Dwarf_Die entry;

        if (dwarf_offdie(dwarf->dwarf, function->items[call].entry, &entry) ==
            NULL) {
            return;
        }
        set_names(place, &entry);
        chain->count++;
        set_call_line(place + 1, unit, &entry);
        call = function->items[call].parent;
    }
}

static int find_in_unit(struct seep_symbolise_dwarf *dwarf,
                        struct seep_symbolise_scope *unit,
                        Dwarf_Die *unit_entry, Dwarf_Addr address,
                        struct chain *chain)
{
    const struct seep_symbolise_range *range;
    struct seep_symbolise_scope *function;
    Dwarf_Die entry;
    int result = index_scope(dwarf, unit, unit_entry, walk_unit);

    set_line(&chain->places[0], unit_entry, address);
    range = seep_symbolise_index_find(&unit->ranges, address);
    if (result != 0 || range == NULL) {
        return result;
    }
    function = &unit->items[range->value];
    if (dwarf_offdie(dwarf->dwarf, function->entry, &entry) == NULL) {
        return 0;
    }
    result = index_scope(dwarf, function, &entry, walk_function);
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
        seep_symbolise_index_find(&dwarf->module.ranges, unbiased);
    struct chain chain = {.places = ret_places};
    struct seep_symbolise_scope *unit;
    const char *folder;
    Dwarf_Die entry;
    int result;

    if (range == NULL ||
        dwarf_offdie(dwarf->dwarf, dwarf->module.items[range->value].entry,
                     &entry) == NULL) {
        *ret_count = 0;
        return 0;
    }
    unit = &dwarf->module.items[range->value];
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

bool seep_symbolise_dwarf_unit(const struct seep_symbolise_dwarf *dwarf,
                               uint64_t address, Dwarf_Off *ret_entry)
{
    const struct seep_symbolise_range *range =
        seep_symbolise_index_find(&dwarf->module.ranges, address - dwarf->bias);

    if (range != NULL) {
        *ret_entry = dwarf->module.items[range->value].entry;
    }
    return range != NULL;
}

static void fini_scope(struct seep_symbolise_scope *scope)
{
    for (size_t i = 0; i < scope->item_count; i++) {
        fini_scope(&scope->items[i]);
    }
    free(scope->items);
    seep_symbolise_index_fini(&scope->ranges);
}

void seep_symbolise_dwarf_fini(struct seep_symbolise_dwarf *dwarf)
{
    fini_scope(&dwarf->module);
    *dwarf = (struct seep_symbolise_dwarf){.dwarf = NULL};
}
