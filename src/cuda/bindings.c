/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The slots of a loaded object; see bindings.h.
 *
 * Invariant: a slot is written by one aligned store, so that a thread that
 * calls through it finds the one or the other.
 */
#include "cuda/bindings.h"

#include <elf.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/syscall.h"
#include "capture/elf_symbols.h"
#include "capture/object_map.h"

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOBAL_DATA R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOBAL_DATA R_AARCH64_GLOB_DAT
#else
#error "no relocations for this architecture"
#endif

/* Whole pages, as the loader seals them: the last one, where it is shared with
 * what stays writable, not. */
static void read_sealed(struct seep_cuda_bindings *bindings)
{
    uintptr_t mask = ~(uintptr_t)(getauxval(AT_PAGESZ) - 1);

    for (size_t i = 0; i < bindings->image.header_count; i++) {
        const ElfW(Phdr) *header = &bindings->image.headers[i];
        uintptr_t start = bindings->image.bias + header->p_vaddr;

        if (header->p_type == PT_GNU_RELRO) {
            bindings->sealed_start = start & mask;
            bindings->sealed_end = (start + header->p_memsz) & mask;
        }
    }
}

static void read_entry(struct seep_cuda_bindings *bindings,
                       const ElfW(Dyn) * entry)
{
    uintptr_t bias = bindings->image.bias;
    uintptr_t value = entry->d_un.d_val;
    /* Most loaders put addresses into the section, some file addresses. */
    uintptr_t address = value < bias ? bias + value : value;

    switch (entry->d_tag) {
    case DT_SYMTAB:
        bindings->symbols = (const ElfW(Sym) *)address;
        break;
    case DT_STRTAB:
        bindings->strings = (const char *)address;
        break;
    case DT_RELA:
        bindings->tables[0] = (const ElfW(Rela) *)address;
        break;
    case DT_RELASZ:
        bindings->counts[0] = value / sizeof(ElfW(Rela));
        break;
    case DT_JMPREL:
        bindings->tables[1] = (const ElfW(Rela) *)address;
        break;
    case DT_PLTRELSZ:
        bindings->counts[1] = value / sizeof(ElfW(Rela));
        break;
    default:
        break;
    }
}

/* @bindings have .dynamic. */
static bool read_all(struct seep_cuda_bindings *bindings)
{
    const ElfW(Dyn) *entry = bindings->dynamic;

    if (entry == NULL ||
        !seep_object_map_find((uintptr_t)entry, &bindings->image) ||
        bindings->image.headers == NULL) {
        return false;
    }
    read_sealed(bindings);
    for (; entry->d_tag != DT_NULL; entry++) {
        read_entry(bindings, entry);
    }
    return bindings->symbols != NULL && bindings->strings != NULL;
}

bool seep_cuda_bindings_of(const struct link_map *map,
                           struct seep_cuda_bindings *ret_bindings)
{
    *ret_bindings = (struct seep_cuda_bindings){.dynamic = map->l_ld};
    return read_all(ret_bindings);
}

static const ElfW(Dyn) * dynamic_of(const struct seep_elf_image *image)
{
    for (size_t i = 0; i < image->header_count; i++) {
        if (image->headers[i].p_type == PT_DYNAMIC) {
            return (const ElfW(Dyn) *)(image->bias + image->headers[i].p_vaddr);
        }
    }
    return NULL;
}

const char *seep_cuda_bindings_needs(const struct seep_cuda_bindings *bindings,
                                     size_t index)
{
    for (const ElfW(Dyn) *entry = bindings->dynamic; entry->d_tag != DT_NULL;
         entry++) {
        if (entry->d_tag == DT_NEEDED && index-- == 0) {
            return bindings->strings + entry->d_un.d_val;
        }
    }
    return NULL;
}

static bool protect(const struct seep_cuda_bindings *bindings,
                    unsigned long how)
{
    return seep_syscall3(SYS_mprotect, (long)bindings->sealed_start,
                         (long)(bindings->sealed_end - bindings->sealed_start),
                         (long)how) == 0;
}

/* @return false: it is not to be had writable */
static bool write_slot(struct seep_cuda_bindings *bindings, uintptr_t slot,
                       uintptr_t value)
{
    if (slot >= bindings->sealed_start && slot < bindings->sealed_end &&
        !bindings->is_open) {
        bindings->is_open = protect(bindings, PROT_READ | PROT_WRITE);
        if (!bindings->is_open) {
            return false;
        }
    }
    atomic_store_explicit((_Atomic uintptr_t *)slot, value,
                          memory_order_relaxed);
    return true;
}

static bool is_binding(const ElfW(Rela) * relocation)
{
    uint64_t type = ELF64_R_TYPE(relocation->r_info);

    return (type == JUMP_SLOT || type == GLOBAL_DATA) &&
           relocation->r_addend == 0;
}

static uintptr_t bound_to(const struct seep_cuda_bindings *bindings,
                          const ElfW(Rela) * relocation)
{
    uintptr_t slot = bindings->image.bias + relocation->r_offset;

    return atomic_load_explicit((_Atomic uintptr_t *)slot,
                                memory_order_relaxed);
}

static enum seep_cuda_rebound visit(struct seep_cuda_bindings *bindings,
                                    const ElfW(Rela) * relocation,
                                    seep_cuda_rebind *rebind)
{
    const ElfW(Sym) * symbol;
    uintptr_t slot, bound, wanted;

    if (!is_binding(relocation)) {
        return SEEP_CUDA_REBOUND_NONE;
    }
    symbol = &bindings->symbols[ELF64_R_SYM(relocation->r_info)];
    if (symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0) {
        return SEEP_CUDA_REBOUND_NONE;
    }
    slot = bindings->image.bias + relocation->r_offset;
    bound = bound_to(bindings, relocation);
    /* Into the object itself, which has no such function: its own stub. */
    wanted = rebind(bindings->strings + symbol->st_name,
                    seep_elf_is_code(&bindings->image, bound) ? 0 : bound);
    if (wanted == 0) {
        return SEEP_CUDA_REBOUND_NONE;
    }
    return write_slot(bindings, slot, wanted) ? SEEP_CUDA_REBOUND_ALL
                                              : SEEP_CUDA_REBOUND_REFUSED;
}

enum seep_cuda_rebound
seep_cuda_bindings_visit(struct seep_cuda_bindings *bindings,
                         seep_cuda_rebind *rebind)
{
    enum seep_cuda_rebound result = SEEP_CUDA_REBOUND_NONE;

    for (size_t i = 0; i < 2; i++) {
        const ElfW(Rela) *table = bindings->tables[i];

        for (size_t j = 0; table != NULL && j < bindings->counts[i]; j++) {
            enum seep_cuda_rebound one = visit(bindings, &table[j], rebind);

            result = one > result ? one : result;
        }
    }
    if (bindings->is_open) {
        protect(bindings, PROT_READ);
    }
    return result;
}

/* Does the object of @bound, which is not @last, define @name? */
static uintptr_t definition_in(uintptr_t bound, const char *name,
                               struct seep_elf_image *last)
{
    struct seep_elf_symbols symbols;
    uintptr_t address = 0;
    size_t size_bytes;

    if ((bound >= last->start && bound < last->end) ||
        !seep_object_map_find(bound, last) ||
        (uintptr_t)definition_in - last->start < last->end - last->start ||
        !seep_elf_symbols_open(last, &symbols) ||
        !seep_elf_symbols_find(&symbols, name, &address, &size_bytes)) {
        return 0;
    }
    return address;
}

uintptr_t seep_cuda_bindings_definition(uintptr_t caller, const char *name,
                                        struct seep_elf_image *ret_image)
{
    struct seep_cuda_bindings bindings = {.dynamic = NULL};
    struct seep_elf_image last;

    if (!seep_object_map_find(caller, &last)) {
        return 0;
    }
    bindings.dynamic = dynamic_of(&last);
    if (!read_all(&bindings)) {
        return 0;
    }
    for (size_t i = 0; i < 2; i++) {
        const ElfW(Rela) *table = bindings.tables[i];

        for (size_t j = 0; table != NULL && j < bindings.counts[i]; j++) {
            uintptr_t found =
                is_binding(&table[j])
                    ? definition_in(bound_to(&bindings, &table[j]), name, &last)
                    : 0;

            if (found != 0) {
                *ret_image = last;
                return found;
            }
        }
    }
    return 0;
}
