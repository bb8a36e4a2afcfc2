/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From what the symbol tables and DWARF say of an address to its frames.
 *
 * Invariant: a frame has no NULL in it; what is not known is empty.
 */
#include "reader/symbolise_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "reader/demangle.h"

static int name_file(struct seep_symbolise_strings *strings,
                     const struct seep_symbolise_place *place,
                     const char **ret_file)
{
    char path[PATH_MAX];
    const char *file = place->file != NULL ? place->file : "";
    int used = 0;

    *ret_file = "";
    if (file[0] != '\0' && file[0] != '/' && place->folder != NULL) {
        used = snprintf(path, sizeof(path), "%s/%s", place->folder, file);
    } else {
        used = snprintf(path, sizeof(path), "%s", file);
    }
    if (used <= 0 || (size_t)used >= sizeof(path)) {
        return 0;
    }
    *ret_file = seep_symbolise_strings_keep(strings, path, (size_t)used);
    return *ret_file != NULL ? 0 : -ENOMEM;
}

static int name_function(struct seep_symbolise_strings *strings,
                         const char *symbol, const char **ret_function)
{
    *ret_function = "";
    if (symbol == NULL) {
        return 0;
    }
    *ret_function = seep_symbolise_strings_function(strings, symbol);
    return *ret_function != NULL ? 0 : -ENOMEM;
}

static bool is_mangled(const char *symbol)
{
    return symbol != NULL && symbol[0] == '_' &&
           (symbol[1] == 'Z' || symbol[1] == 'R');
}

/*
 * DWARF also has what an assembler name was changed to, which no one would
 * look for: only a mangled name says more than the source's own.
 */
static const char *choose_name(const struct seep_symbolise_place *place)
{
    return is_mangled(place->symbol) || place->name == NULL ? place->symbol
                                                            : place->name;
}

/*
 * Is the symbol table's name better than DWARF's? It is where DWARF has lost
 * the class (-g1), and where libc exports under a plain name, strdup, what it
 * calls __strdup itself. Otherwise DWARF's, for a symbol may be a local part.
 */
static bool is_better(const char *symbol, const char *name)
{
    return name == NULL || (is_mangled(symbol) && !is_mangled(name)) ||
           (name[0] == '_' && symbol[0] != '_');
}

/*
 * The function that stands in the machine code. "name+0x40" is not inside
 * name: it is the nearest symbol that a stripped file still has.
 */
static int name_outermost(struct seep_symbolise_strings *strings,
                          const struct seep_symbolise_elf *elf, uint64_t offset,
                          const struct seep_symbolise_place *place,
                          const char **ret_function)
{
    char text[SEEP_DEMANGLE_TEXT_MAX + 32];
    uint64_t distance_bytes = 0;
    const char *name = choose_name(place);
    const char *symbol = seep_symbolise_elf_find(elf, offset, &distance_bytes);

    if (symbol != NULL && distance_bytes == 0 && is_better(symbol, name)) {
        name = symbol;
    }
    if (name != NULL || symbol == NULL) {
        return name_function(strings, name, ret_function);
    }
    if (name_function(strings, symbol, &symbol) != 0) {
        return -ENOMEM;
    }
    snprintf(text, sizeof(text), "%s+0x%" PRIx64, symbol, distance_bytes);
    *ret_function = seep_symbolise_strings_keep(strings, text, strlen(text));
    return *ret_function != NULL ? 0 : -ENOMEM;
}

int seep_symbolise_frames_make(struct seep_symbolise_strings *strings,
                               const struct seep_symbolise_elf *elf,
                               uint64_t offset,
                               const struct seep_symbolise_place *places,
                               size_t count,
                               const struct seep_symbol_frame **ret_frames)
{
    struct seep_symbol_frame *frames =
        seep_symbolise_strings_allocate(strings, count * sizeof(*frames));
    int result = frames != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; i < count && result == 0; i++) {
        const struct seep_symbolise_place *place = &places[i];

        frames[i].inlined = i + 1 < count;
        frames[i].line = place->line;
        result = name_file(strings, place, &frames[i].file);
        if (result != 0) {
            break;
        }
        result = i + 1 < count ? name_function(strings, choose_name(place),
                                               &frames[i].function)
                               : name_outermost(strings, elf, offset, place,
                                                &frames[i].function);
    }
    if (result == 0) {
        *ret_frames = frames;
    }
    return result;
}
