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

bool seep_cuda_bindings_of(const struct link_map *map,
                           struct seep_cuda_bindings *ret_bindings)
{
    *ret_bindings = (struct seep_cuda_bindings){.dynamic = map->l_ld};
    if (map->l_ld == NULL ||
        !seep_object_map_find((uintptr_t)map->l_ld, &ret_bindings->image) ||
        ret_bindings->image.headers == NULL) {
        return false;
    }
    read_sealed(ret_bindings);
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        read_entry(ret_bindings, entry);
    }
    return ret_bindings->symbols != NULL && ret_bindings->strings != NULL;
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

static enum seep_cuda_rebound visit(struct seep_cuda_bindings *bindings,
                                    const ElfW(Rela) * relocation,
                                    seep_cuda_rebind *rebind)
{
    uint64_t type = ELF64_R_TYPE(relocation->r_info);
    const ElfW(Sym) * symbol;
    uintptr_t slot, bound, wanted;

    if ((type != JUMP_SLOT && type != GLOBAL_DATA) ||
        relocation->r_addend != 0) {
        return SEEP_CUDA_REBOUND_NONE;
    }
    symbol = &bindings->symbols[ELF64_R_SYM(relocation->r_info)];
    if (symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0) {
        return SEEP_CUDA_REBOUND_NONE;
    }
    slot = bindings->image.bias + relocation->r_offset;
    bound =
        atomic_load_explicit((_Atomic uintptr_t *)slot, memory_order_relaxed);
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
