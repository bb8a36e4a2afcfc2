/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A look-up in the loader's own list; see next.h.
 *
 * Invariant: only dynamic sections, symbol and hash tables are read, which the
 * loader has used itself; what it has not is never reached. Nothing is called:
 * a sanitizer asks dlsym for what its own strcmp is to jump to.
 */
#include "cuda/next.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct tables {
    uintptr_t bias;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

/* Filled by a relocation: the list cannot be reached before that. */
static const volatile void *const volatile relocated = &relocated;

/* Most loaders put addresses into the section, some leave file addresses. */
static uintptr_t address_of(const struct link_map *map, uintptr_t value)
{
    return value < map->l_addr ? map->l_addr + value : value;
}

static struct tables tables_of(const struct link_map *map)
{
    struct tables tables = {.bias = map->l_addr};

    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = address_of(map, entry->d_un.d_ptr);

        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables.symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            tables.strings = (const char *)address;
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = (const uint32_t *)address;
            break;
        case DT_HASH:
            tables.hash = (const uint32_t *)address;
            break;
        default:
            break;
        }
    }
    return tables;
}

/* The function @name if the @index-th symbol is its definition, else 0. */
static uintptr_t match(const struct tables *tables, uint32_t index,
                       const char *name)
{
    const ElfW(Sym) *symbol = &tables->symbols[index];

    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
        !seep_text_equal(tables->strings + symbol->st_name, name)) {
        return 0;
    }
    return tables->bias + symbol->st_value;
}

static uintptr_t by_gnu_hash(const struct tables *tables, const char *name)
{
    const uint32_t *head = tables->gnu_hash; /* buckets, first, words, shift */
    const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chains = buckets + head[0];
    uint32_t wanted = 5381;
    uint32_t index;

    for (const char *at = name; *at != '\0'; at++) {
        wanted = wanted * 33 + (uint8_t)*at;
    }
    index = head[0] != 0 ? buckets[wanted % head[0]] : 0;
    for (; index >= head[1] && index != 0; index++) {
        uint32_t hash = chains[index - head[1]];
        uintptr_t found =
            (hash | 1) == (wanted | 1) ? match(tables, index, name) : 0;

        if (found != 0 || (hash & 1) != 0) {
            return found;
        }
    }
    return 0;
}

static uintptr_t by_hash(const struct tables *tables, const char *name)
{
    uint32_t buckets = tables->hash[0];
    uint32_t wanted = 0;
    uintptr_t found = 0;

    for (const char *at = name; *at != '\0'; at++) {
        wanted = (wanted << 4) + (uint8_t)*at;
        wanted = (wanted ^ (wanted >> 24 & 0xf0)) & 0x0fffffff;
    }
    for (uint32_t index = buckets != 0 ? tables->hash[2 + wanted % buckets] : 0;
         index != 0 && found == 0; index = tables->hash[2 + buckets + index]) {
        found = match(tables, index, name);
    }
    return found;
}

static uintptr_t definition(const struct link_map *map, const char *name)
{
    struct tables tables = tables_of(map);

    if (tables.symbols == NULL || tables.strings == NULL) {
        return 0;
    }
    if (tables.gnu_hash != NULL) {
        return by_gnu_hash(&tables, name);
    }
    return tables.hash != NULL ? by_hash(&tables, name) : 0;
}

uintptr_t seep_cuda_next(const char *name)
{
    bool is_behind = false;
    uintptr_t found = 0;

    if (relocated != &relocated) {
        return 0;
    }
    for (const struct link_map *map = _r_debug.r_map; map != NULL && found == 0;
         map = map->l_next) {
        if (is_behind) {
            found = definition(map, name);
        }
        is_behind = is_behind || map->l_ld == _DYNAMIC;
    }
    return found;
}
