/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A look-up by DT_GNU_HASH, or by DT_HASH where there is no other.
 *
 * Invariant: each word is checked against the segments before it is read, and
 * every chain has an end by the size of the segment that it lies in.
 */
#include "capture/elf_symbols.h"

#include <elf.h>
#include <string.h>

#define CHAIN_MAX (1U << 20)

/* @return @bytes at @address, or NULL if not all of them are loaded */
static const void *loaded(const struct seep_elf_image *image, uintptr_t address,
                          size_t bytes)
{
    uintptr_t low;
    uintptr_t high;

    if (!seep_elf_segment(image, address, &low, &high) ||
        bytes > high - address) {
        return NULL;
    }
    return (const void *)address;
}

static bool word_at(const struct seep_elf_image *image, uintptr_t address,
                    uint32_t *ret_word)
{
    const void *at = loaded(image, address, sizeof(*ret_word));

    if (at == NULL) {
        return false;
    }
    memcpy(ret_word, at, sizeof(*ret_word));
    return true;
}

/* Most loaders put addresses into the section, some leave file addresses. */
static uintptr_t address_of(const struct seep_elf_image *image, uintptr_t value)
{
    return value >= image->start && value < image->end ? value
                                                       : image->bias + value;
}

static void take_entry(const ElfW(Dyn) * entry,
                       struct seep_elf_symbols *symbols)
{
    uintptr_t address = address_of(symbols->image, entry->d_un.d_ptr);

    switch (entry->d_tag) {
    case DT_SYMTAB:
        symbols->symbols = address;
        break;
    case DT_STRTAB:
        symbols->strings = address;
        break;
    case DT_STRSZ:
        symbols->strings_bytes = entry->d_un.d_val;
        break;
    case DT_GNU_HASH:
        symbols->gnu_hash = address;
        break;
    case DT_HASH:
        symbols->hash = address;
        break;
    default:
        break;
    }
}

bool seep_elf_symbols_open(const struct seep_elf_image *image,
                           struct seep_elf_symbols *ret_symbols)
{
    struct seep_elf_symbols symbols = {.image = image};

    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        size_t count = header->p_memsz / sizeof(ElfW(Dyn));
        const ElfW(Dyn) * entry;

        if (header->p_type != PT_DYNAMIC) {
            continue;
        }
        entry = loaded(image, image->bias + header->p_vaddr, header->p_memsz);
        for (; entry != NULL && count > 0 && entry->d_tag != DT_NULL; count--) {
            take_entry(entry++, &symbols);
        }
    }
    if (symbols.symbols == 0 ||
        loaded(image, symbols.strings, symbols.strings_bytes) == NULL ||
        (symbols.gnu_hash == 0 && symbols.hash == 0)) {
        return false;
    }
    *ret_symbols = symbols;
    return true;
}

/* Is it the @index-th symbol, and defined here? */
static bool is_symbol(const struct seep_elf_symbols *symbols, uint32_t index,
                      const char *name, uintptr_t *ret_address,
                      size_t *ret_bytes)
{
    size_t length = strlen(name);
    const ElfW(Sym) *symbol = loaded(
        symbols->image, symbols->symbols + (uintptr_t)index * sizeof(ElfW(Sym)),
        sizeof(ElfW(Sym)));
    unsigned int type;

    if (symbol == NULL || symbol->st_name >= symbols->strings_bytes ||
        length >= symbols->strings_bytes - symbol->st_name ||
        memcmp((const char *)symbols->strings + symbol->st_name, name,
               length + 1) != 0) {
        return false;
    }
    type = ELF64_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE)) {
        return false;
    }
    *ret_address = symbols->image->bias + symbol->st_value;
    *ret_bytes = symbol->st_size;
    return true;
}

static bool find_by_gnu_hash(const struct seep_elf_symbols *symbols,
                             const char *name, uintptr_t *ret_address,
                             size_t *ret_bytes)
{
    const struct seep_elf_image *image = symbols->image;
    uint32_t head[4]; /* buckets, first symbol, words of the filter, shift */
    uint32_t wanted = 5381;
    uint32_t index;
    uint32_t hash;
    uintptr_t buckets;
    uintptr_t chains;

    for (const char *at = name; *at != '\0'; at++) {
        wanted = wanted * 33 + (uint8_t)*at;
    }
    for (size_t i = 0; i < 4; i++) {
        if (!word_at(image, symbols->gnu_hash + 4 * i, &head[i])) {
            return false;
        }
    }
    buckets = symbols->gnu_hash + sizeof(head) +
              (uintptr_t)head[2] * sizeof(ElfW(Addr));
    chains = buckets + (uintptr_t)head[0] * 4;
    if (head[0] == 0 ||
        !word_at(image, buckets + (uintptr_t)(wanted % head[0]) * 4, &index) ||
        index < head[1]) {
        return false;
    }
    for (uint32_t i = 0; i < CHAIN_MAX; i++, index++) {
        if (!word_at(image, chains + (uintptr_t)(index - head[1]) * 4, &hash)) {
            return false;
        }
        if ((hash | 1) == (wanted | 1) &&
            is_symbol(symbols, index, name, ret_address, ret_bytes)) {
            return true;
        }
        if ((hash & 1) != 0) {
            return false;
        }
    }
    return false;
}

static bool find_by_hash(const struct seep_elf_symbols *symbols,
                         const char *name, uintptr_t *ret_address,
                         size_t *ret_bytes)
{
    const struct seep_elf_image *image = symbols->image;
    uint32_t buckets;
    uint32_t wanted = 0;
    uint32_t index;

    for (const char *at = name; *at != '\0'; at++) {
        wanted = (wanted << 4) + (uint8_t)*at;
        wanted = (wanted ^ (wanted >> 24 & 0xf0)) & 0x0fffffff;
    }
    if (!word_at(image, symbols->hash, &buckets) || buckets == 0 ||
        !word_at(image, symbols->hash + 8 + (uintptr_t)(wanted % buckets) * 4,
                 &index)) {
        return false;
    }
    for (uint32_t i = 0; i < CHAIN_MAX && index != 0; i++) {
        if (is_symbol(symbols, index, name, ret_address, ret_bytes)) {
            return true;
        }
        if (!word_at(image,
                     symbols->hash + 8 + ((uintptr_t)buckets + index) * 4,
                     &index)) {
            return false;
        }
    }
    return false;
}

bool seep_elf_symbols_find(const struct seep_elf_symbols *symbols,
                           const char *name, uintptr_t *ret_address,
                           size_t *ret_bytes)
{
    if (symbols->gnu_hash != 0) {
        return find_by_gnu_hash(symbols, name, ret_address, ret_bytes);
    }
    return symbols->hash != 0 &&
           find_by_hash(symbols, name, ret_address, ret_bytes);
}
