/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Function symbols of a module, sorted once.
 *
 * libdwfl's own look-up walks the whole table for each address.
 *
 * Invariant: every symbol kept starts in a section of code and ends in it.
 */
#include "reader/symbolise_elf.h"

#include <errno.h>
#include <string.h>

/* Which symbol to believe where several hold an address. */
enum { CLASS_FUNCTION, CLASS_SIZED, CLASS_LABEL };

static int add_section(struct seep_symbolise_elf *elf, uint64_t start,
                       uint64_t size_bytes)
{
    struct seep_symbolise_range range = {.start = start};

    if (__builtin_add_overflow(start, size_bytes, &range.end)) {
        return 0;
    }
    return seep_symbolise_index_add(&elf->sections, &range);
}

static int add_sections(struct seep_symbolise_elf *elf, Elf *image,
                        Dwarf_Addr bias)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    int result = 0;

    while (result == 0 && (section = elf_nextscn(image, section)) != NULL) {
        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_flags & SHF_EXECINSTR) != 0) {
            result = add_section(elf, header.sh_addr + bias, header.sh_size);
        }
    }
    return result;
}

/* Of a file whose section headers were stripped off. */
static int add_segments(struct seep_symbolise_elf *elf, Elf *image,
                        Dwarf_Addr bias)
{
    size_t count = 0;
    GElf_Phdr header;
    int result = 0;

    if (elf_getphdrnum(image, &count) != 0) {
        return 0;
    }
    for (size_t i = 0; i < count && i < INT32_MAX && result == 0; i++) {
        if (gelf_getphdr(image, (int)i, &header) != NULL &&
            header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
            result = add_section(elf, header.p_vaddr + bias, header.p_memsz);
        }
    }
    return result;
}

/* Of aliases the one without underscores, then the more global one. */
static uint32_t rank_alias(const char *name, const GElf_Sym *symbol)
{
    static const uint32_t bindings[] = {
        [STB_GLOBAL] = 0, [STB_WEAK] = 1, [STB_LOCAL] = 2};
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    uint32_t underscores = (uint32_t)strspn(name, "_");

    return (underscores < 3 ? underscores : 3) * 4 +
           (binding < 3 ? bindings[binding] : 3);
}

static int add_symbol(struct seep_symbolise_elf *elf, const char *name,
                      const GElf_Sym *symbol, GElf_Addr address)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    const struct seep_symbolise_range *section =
        seep_symbolise_index_find(&elf->sections, address);
    struct seep_symbolise_range range = {
        .start = address,
        .value = (uintptr_t)name,
        .tie = rank_alias(name, symbol),
    };

    /* $x and the like mark code for disassemblers. */
    if (section == NULL || name[0] == '\0' || name[0] == '$' ||
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) {
        return 0;
    }
    range.class = type == STT_NOTYPE ? CLASS_SIZED : CLASS_FUNCTION;
    if (symbol->st_size == 0) {
        range.class = CLASS_LABEL;
        range.end = section->end;
    } else if (symbol->st_size > section->end - address) {
        range.end = section->end;
    } else {
        range.end = address + symbol->st_size;
    }
    return seep_symbolise_index_add(&elf->symbols, &range);
}

/* A label without size, as assembly has them, reaches to the next symbol. */
static void end_labels(struct seep_symbolise_index *symbols)
{
    uint64_t next_start = UINT64_MAX;
    uint64_t start = UINT64_MAX;

    seep_symbolise_index_sort(symbols);
    for (size_t i = symbols->range_count; i-- > 0;) {
        struct seep_symbolise_range *range = &symbols->ranges[i];

        if (range->start != start) {
            next_start = start;
            start = range->start;
        }
        if (range->class == CLASS_LABEL && range->end > next_start) {
            range->end = next_start;
        }
    }
}

int seep_symbolise_elf_init(Dwfl_Module *module,
                            struct seep_symbolise_elf *ret_elf)
{
    Dwarf_Addr bias = 0;
    Elf *image = dwfl_module_getelf(module, &bias);
    int count = dwfl_module_getsymtab(module);
    int result;

    if (image == NULL) {
        return -ENOEXEC;
    }
    result = add_sections(ret_elf, image, bias);
    if (result == 0 && ret_elf->sections.range_count == 0) {
        result = add_segments(ret_elf, image, bias);
    }
    if (result == 0) {
        result = seep_symbolise_index_seal(&ret_elf->sections);
    }
    for (int i = 1; i < count && result == 0; i++) {
        GElf_Sym symbol;
        GElf_Addr address = 0;
        GElf_Word section = 0;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address,
                                                   &section, NULL, NULL);

        if (name != NULL && section != SHN_UNDEF && section != SHN_ABS) {
            result = add_symbol(ret_elf, name, &symbol, address);
        }
    }
    if (result != 0) {
        return result;
    }
    end_labels(&ret_elf->symbols);
    return seep_symbolise_index_seal(&ret_elf->symbols);
}

const char *seep_symbolise_elf_find(const struct seep_symbolise_elf *elf,
                                    uint64_t address,
                                    uint64_t *ret_distance_bytes)
{
    const struct seep_symbolise_range *section =
        seep_symbolise_index_find(&elf->sections, address);
    const struct seep_symbolise_range *symbol =
        seep_symbolise_index_find(&elf->symbols, address);

    if (section == NULL) {
        return NULL;
    }
    if (symbol != NULL) {
        *ret_distance_bytes = 0;
        return (const char *)(uintptr_t)symbol->value;
    }
    symbol = seep_symbolise_index_below(&elf->symbols, address);
    if (symbol == NULL || symbol->start < section->start) {
        return NULL;
    }
    *ret_distance_bytes = address - symbol->start;
    return (const char *)(uintptr_t)symbol->value;
}

void seep_symbolise_elf_fini(struct seep_symbolise_elf *elf)
{
    seep_symbolise_index_fini(&elf->symbols);
    seep_symbolise_index_fini(&elf->sections);
}
