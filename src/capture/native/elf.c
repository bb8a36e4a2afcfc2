/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loaded objects: what their headers and symbols say, a list of them for old
 * loaders, and the object of an address.
 *
 * Invariant: after seep_objects_init() nothing here takes the loader's lock
 * but seep_objects_unload_end() on a glibc without _dl_find_object, where the
 * real dlclose has just taken and released it.
 */
#include "capture/native/elf.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/compiler.h"
#include "base/text.h"
#include "base/thread.h"

/*
 * Program headers and notes of a loaded object.
 *
 * Invariant: every address is checked against [start, end) before it is read,
 * and a note against its own segment.
 */

#define FIRST_PAGE_BYTES 4096U
#define BUILD_ID_BYTES_MAX 64U

void seep_elf_headers(struct seep_elf_image *image)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)image->start;
    size_t table_bytes;

    image->headers = NULL;
    image->header_count = 0;
    if (image->end - image->start < FIRST_PAGE_BYTES ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr))) {
        return;
    }
    table_bytes = (size_t)header->e_phnum * sizeof(ElfW(Phdr));
    if (header->e_phoff > FIRST_PAGE_BYTES ||
        table_bytes > FIRST_PAGE_BYTES - header->e_phoff ||
        header->e_phoff % _Alignof(ElfW(Phdr)) != 0) {
        return;
    }
    image->headers = (const ElfW(Phdr) *)(image->start + header->e_phoff);
    image->header_count = header->e_phnum;
}

/* The first header of that type, or NULL. */
static const ElfW(Phdr) *
    find_header(const ElfW(Phdr) * headers, size_t count, ElfW(Word) type)
{
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type == type) {
            return &headers[i];
        }
    }
    return NULL;
}

/* From the page of the first loaded segment to the end of the last one. */
static bool find_extent(const ElfW(Phdr) * headers, size_t count,
                        uintptr_t bias, uintptr_t *ret_start,
                        uintptr_t *ret_end)
{
    uintptr_t low = UINTPTR_MAX;
    uintptr_t high = 0;

    for (size_t i = 0; i < count; i++) {
        uintptr_t start = bias + headers[i].p_vaddr;
        uintptr_t end = start + headers[i].p_memsz;

        if (headers[i].p_type == PT_LOAD) {
            low = start < low ? start : low;
            high = end > high ? end : high;
        }
    }
    *ret_start = low & ~(uintptr_t)4095;
    *ret_end = high;
    return low < high;
}

/* The loaded segment around @address that has all of @flags. */
static bool find_segment(const struct seep_elf_image *image, uintptr_t address,
                         ElfW(Word) flags, uintptr_t *ret_low,
                         uintptr_t *ret_high)
{
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t low = image->bias + header->p_vaddr;

        if (header->p_type == PT_LOAD && (header->p_flags & flags) == flags &&
            low >= image->start && low < image->end &&
            header->p_memsz <= image->end - low && address >= low &&
            address - low < header->p_memsz) {
            *ret_low = low;
            *ret_high = low + header->p_memsz;
            return true;
        }
    }
    return false;
}

bool seep_elf_segment(const struct seep_elf_image *image, uintptr_t address,
                      uintptr_t *ret_low, uintptr_t *ret_high)
{
    return find_segment(image, address, PF_R, ret_low, ret_high);
}

bool seep_elf_is_code(const struct seep_elf_image *image, uintptr_t address)
{
    uintptr_t low;
    uintptr_t high;

    return find_segment(image, address, PF_X, &low, &high);
}

/* @return @bytes at @address, or NULL if not all of them are loaded, by one
 * segment or by some that touch (patchelf makes such); of no image nothing is
 * checked */
static const void *loaded(const struct seep_elf_image *image, uintptr_t address,
                          size_t bytes)
{
    uintptr_t at = address;
    uintptr_t low;
    uintptr_t high;

    while (image != NULL) {
        if (!seep_elf_segment(image, at, &low, &high)) {
            return NULL;
        }
        if (bytes <= high - at) {
            break;
        }
        bytes -= high - at;
        at = high;
    }
    return (const void *)address;
}

static size_t aligned(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) & ~(alignment - 1);
}

/* Walk one note segment. @return the build-id in it, or NULL */
static const uint8_t *search_notes(const uint8_t *at, size_t left_bytes,
                                   size_t alignment, size_t *ret_bytes)
{
    while (left_bytes >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
        size_t head_bytes = aligned(sizeof(*note) + note->n_namesz, alignment);
        size_t note_bytes = aligned(head_bytes + note->n_descsz, alignment);

        if (head_bytes > left_bytes ||
            note->n_descsz > left_bytes - head_bytes) {
            return NULL;
        }
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp(note + 1, "GNU", 4) == 0 && note->n_descsz > 0 &&
            note->n_descsz <= BUILD_ID_BYTES_MAX) {
            *ret_bytes = note->n_descsz;
            return at + head_bytes;
        }
        if (note_bytes > left_bytes) {
            return NULL;
        }
        at += note_bytes;
        left_bytes -= note_bytes;
    }
    return NULL;
}

const uint8_t *seep_elf_build_id(const struct seep_elf_image *image,
                                 size_t *ret_bytes)
{
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t low = image->bias + header->p_vaddr;
        const uint8_t *notes;
        const uint8_t *found = NULL;

        if (header->p_type != PT_NOTE || low % 4 != 0) {
            continue;
        }
        notes = loaded(image, low, header->p_memsz);
        if (notes != NULL) {
            found = search_notes(notes, header->p_memsz,
                                 header->p_align == 8 ? 8 : 4, ret_bytes);
        }
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

/*
 * A look-up by DT_GNU_HASH, or by DT_HASH where there is no other.
 *
 * Invariant: each word is checked against the segments before it is read, and
 * every chain has an end by the size of the segment that it lies in.
 */

#define CHAIN_MAX (1U << 20)

/* By a load: memcpy() may be a call of a sanitizer's. */
static bool word_at(const struct seep_elf_image *image, uintptr_t address,
                    uint32_t *ret_word)
{
    const uint32_t *at = loaded(image, address, sizeof(*at));

    if (at == NULL || address % sizeof(*at) != 0) {
        return false;
    }
    *ret_word = *at;
    return true;
}

/* Most loaders put addresses into the section, some leave file addresses. */
static uintptr_t address_of(const struct seep_elf_symbols *symbols,
                            uintptr_t value)
{
    const struct seep_elf_image *image = symbols->image;
    bool is_address = image != NULL
                          ? value >= image->start && value < image->end
                          : value >= symbols->bias;

    return is_address ? value : symbols->bias + value;
}

static void take_entry(const ElfW(Dyn) * entry,
                       struct seep_elf_symbols *symbols)
{
    uintptr_t value = entry->d_un.d_val;
    uintptr_t address = address_of(symbols, value);

    switch (entry->d_tag) {
    case DT_SYMTAB:
        symbols->symbols = address;
        break;
    case DT_STRTAB:
        symbols->strings = address;
        break;
    case DT_STRSZ:
        symbols->strings_bytes = value;
        break;
    case DT_GNU_HASH:
        symbols->gnu_hash = address;
        break;
    case DT_HASH:
        symbols->hash = address;
        break;
    case DT_RELA:
        symbols->relocations[0] = address;
        break;
    case DT_RELASZ:
        symbols->relocation_counts[0] = (uint32_t)(value / sizeof(ElfW(Rela)));
        break;
    case DT_JMPREL:
        symbols->relocations[1] = address;
        break;
    case DT_PLTRELSZ:
        symbols->relocation_counts[1] = (uint32_t)(value / sizeof(ElfW(Rela)));
        break;
    default:
        break;
    }
}

static void take_entries(const ElfW(Dyn) * entry, size_t count,
                         struct seep_elf_symbols *symbols)
{
    for (; count > 0 && entry->d_tag != DT_NULL; count--) {
        take_entry(entry++, symbols);
    }
}

/* So that to compare a name with one of them ends inside it. */
static bool are_strings(const struct seep_elf_symbols *symbols)
{
    const char *strings =
        loaded(symbols->image, symbols->strings, symbols->strings_bytes);

    return strings != NULL && symbols->strings_bytes > 0 &&
           strings[symbols->strings_bytes - 1] == '\0';
}

bool seep_elf_symbols_open(const struct seep_elf_image *image,
                           struct seep_elf_symbols *ret_symbols)
{
    struct seep_elf_symbols symbols = {.image = image, .bias = image->bias};
    const ElfW(Phdr) *header =
        find_header(image->headers, image->header_count, PT_DYNAMIC);
    const void *entries =
        header != NULL
            ? loaded(image, image->bias + header->p_vaddr, header->p_memsz)
            : NULL;

    if (entries != NULL && (uintptr_t)entries % _Alignof(ElfW(Dyn)) == 0) {
        take_entries(entries, header->p_memsz / sizeof(ElfW(Dyn)), &symbols);
    }
    if (symbols.symbols == 0 || symbols.symbols % _Alignof(ElfW(Sym)) != 0 ||
        !are_strings(&symbols) ||
        (symbols.gnu_hash == 0 && symbols.hash == 0)) {
        return false;
    }
    *ret_symbols = symbols;
    return true;
}

struct seep_elf_symbols seep_elf_symbols_of(const struct link_map *map)
{
    struct seep_elf_symbols symbols = {.bias = map->l_addr};

    take_entries(map->l_ld, SIZE_MAX, &symbols);
    return symbols;
}

bool seep_elf_symbols_of_libc(struct seep_elf_symbols *ret_symbols)
{
    for (const struct link_map *map = _r_debug.r_map; map != NULL;
         map = map->l_next) {
        if (seep_text_equal(seep_text_base_name(map->l_name), "libc.so.6")) {
            *ret_symbols = seep_elf_symbols_of(map);
            return true;
        }
    }
    return false;
}

/* The address of the @index-th symbol, if it is defined here as @name. */
static uintptr_t match(const struct seep_elf_symbols *symbols, uint32_t index,
                       const char *name, size_t *ret_bytes)
{
    const ElfW(Sym) *symbol = loaded(
        symbols->image, symbols->symbols + (uintptr_t)index * sizeof(ElfW(Sym)),
        sizeof(ElfW(Sym)));
    unsigned int type;

    if (symbol == NULL || symbol->st_name >= symbols->strings_bytes ||
        !seep_text_equal((const char *)symbols->strings + symbol->st_name,
                         name)) {
        return 0;
    }
    type = ELF64_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE &&
         !(symbols->with_resolvers && type == STT_GNU_IFUNC))) {
        return 0;
    }
    if (ret_bytes != NULL) {
        *ret_bytes = symbol->st_size;
    }
    return symbols->bias + symbol->st_value;
}

static uintptr_t find_by_gnu_hash(const struct seep_elf_symbols *symbols,
                                  const char *name, size_t *ret_bytes)
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
            return 0;
        }
    }
    buckets = symbols->gnu_hash + sizeof(head) +
              (uintptr_t)head[2] * sizeof(ElfW(Addr));
    chains = buckets + (uintptr_t)head[0] * 4;
    if (head[0] == 0 ||
        !word_at(image, buckets + (uintptr_t)(wanted % head[0]) * 4, &index) ||
        index < head[1]) {
        return 0;
    }
    for (uint32_t i = 0; i < CHAIN_MAX; i++, index++) {
        uintptr_t found = 0;

        if (!word_at(image, chains + (uintptr_t)(index - head[1]) * 4, &hash)) {
            return 0;
        }
        if ((hash | 1) == (wanted | 1)) {
            found = match(symbols, index, name, ret_bytes);
        }
        if (found != 0 || (hash & 1) != 0) {
            return found;
        }
    }
    return 0;
}

static uintptr_t find_by_hash(const struct seep_elf_symbols *symbols,
                              const char *name, size_t *ret_bytes)
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
        return 0;
    }
    for (uint32_t i = 0; i < CHAIN_MAX && index != 0; i++) {
        uintptr_t found = match(symbols, index, name, ret_bytes);

        if (found != 0 ||
            !word_at(image,
                     symbols->hash + 8 + ((uintptr_t)buckets + index) * 4,
                     &index)) {
            return found;
        }
    }
    return 0;
}

uintptr_t seep_elf_symbols_find(const struct seep_elf_symbols *symbols,
                                const char *name, size_t *ret_bytes)
{
    if (symbols->gnu_hash != 0) {
        return find_by_gnu_hash(symbols, name, ret_bytes);
    }
    return symbols->hash != 0 ? find_by_hash(symbols, name, ret_bytes) : 0;
}

uintptr_t seep_elf_definition(const struct seep_elf_image *image,
                              const char *name)
{
    struct seep_elf_symbols symbols;

    return seep_elf_symbols_open(image, &symbols)
               ? seep_elf_symbols_find(&symbols, name, NULL)
               : 0;
}

SEEP_COLD bool seep_elf_is_defined(const char *name)
{
    for (const struct link_map *map = _r_debug.r_map; map != NULL;
         map = map->l_next) {
        struct seep_elf_symbols symbols = seep_elf_symbols_of(map);

        symbols.with_resolvers = true;
        if (map->l_ld != _DYNAMIC &&
            seep_elf_symbols_find(&symbols, name, NULL) != 0) {
            return true;
        }
    }
    return false;
}

/*
 * The loaded objects, listed at start and after every dlclose.
 *
 * Invariant: an entry is used only if `version` was even and the same before
 * and after it was copied; there is one writer at a time, by compare and swap.
 */

#define OBJECTS_MAX 1024U
#define READ_RETRIES 4U

typedef int iterate_function(int (*)(struct dl_phdr_info *, size_t, void *),
                             void *);

struct entry {
    _Atomic uintptr_t start;
    _Atomic uintptr_t end;
    _Atomic uintptr_t bias;
    _Atomic uintptr_t path;
    _Atomic uintptr_t eh_frame_hdr;
};

static iterate_function *real_iterate;
static struct entry entries[OBJECTS_MAX];
static _Atomic uint32_t entry_count;
static _Atomic uint32_t version;

/* The callback of dl_iterate_phdr: one object into the next entry. */
static int list_object(struct dl_phdr_info *info, size_t size, void *data)
{
    uint32_t *count = data;
    struct entry *entry = &entries[*count];
    const ElfW(Phdr) *hdr =
        find_header(info->dlpi_phdr, info->dlpi_phnum, PT_GNU_EH_FRAME);
    uintptr_t start;
    uintptr_t end;

    (void)size;
    if (*count == OBJECTS_MAX) {
        return 1;
    }
    if (find_extent(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &start,
                    &end)) {
        seep_word_store(&entry->start, start);
        seep_word_store(&entry->end, end);
        seep_word_store(&entry->bias, info->dlpi_addr);
        seep_word_store(&entry->path, (uintptr_t)info->dlpi_name);
        seep_word_store(&entry->eh_frame_hdr,
                        hdr != NULL ? info->dlpi_addr + hdr->p_vaddr : 0);
        ++*count;
    }
    return 0;
}

/* List again. Takes the loader's lock: only where dlclose itself may. */
static void snapshot_refresh(void)
{
    uint32_t seen = seep_word_load(&version);
    uint32_t count = 0;

    /* Acquire: pairs with the release below, that the writes of the refresh
     * before this one come first. */
    if (real_iterate == NULL || seen % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&version, &seen, seen + 1,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        return;
    }
    /* Release: pairs with the acquire fence in snapshot_find(), so that
     * who sees one of the new words sees the odd version too. */
    atomic_thread_fence(memory_order_release);
    real_iterate(list_object, &count);
    seep_word_store(&entry_count, count);
    /* Release: pairs with the acquire load in snapshot_find(). */
    atomic_store_explicit(&version, seen + 2, memory_order_release);
}

/* Look up the real dl_iterate_phdr and list for the first time. */
static void snapshot_init(void)
{
    /* Not by name: that would be the hook of our own. */
    void *found = dlsym(RTLD_NEXT, "dl_iterate_phdr");

    __builtin_memcpy(&real_iterate, &found, sizeof(found));
    snapshot_refresh();
}

static bool search(uintptr_t address, struct seep_elf_image *image)
{
    uint32_t count = seep_word_load(&entry_count);

    for (uint32_t i = 0; i < count && i < OBJECTS_MAX; i++) {
        const struct entry *entry = &entries[i];

        image->start = seep_word_load(&entry->start);
        image->end = seep_word_load(&entry->end);
        if (address >= image->start && address < image->end) {
            image->bias = seep_word_load(&entry->bias);
            image->path = (const char *)seep_word_load(&entry->path);
            image->eh_frame_hdr =
                (const void *)seep_word_load(&entry->eh_frame_hdr);
            return true;
        }
    }
    return false;
}

/* Find the object of @address in the last list. */
static bool snapshot_find(uintptr_t address, struct seep_elf_image *ret_image)
{
    for (unsigned int i = 0; i < READ_RETRIES; i++) {
        /* Acquire: pairs with the release store in refresh. */
        uint32_t before = atomic_load_explicit(&version, memory_order_acquire);
        struct seep_elf_image image = {0};
        bool found;

        if (before % 2 != 0) {
            continue;
        }
        found = search(address, &image);
        /* Acquire: pairs with the release fence in refresh. */
        atomic_thread_fence(memory_order_acquire);
        if (seep_word_load(&version) == before) {
            if (found) {
                *ret_image = image;
            }
            return found;
        }
    }
    return false;
}

/* In the child of a fork: a refresh that was under way elsewhere is gone. */
static void snapshot_after_fork(void)
{
    uint32_t seen = seep_word_load(&version);

    if (seen % 2 != 0) {
        /* Half written: nothing of it may be used. */
        seep_word_store(&entry_count, 0);
        seep_word_store(&version, seen + 1);
    }
}

/* The object of an address. */

/* As glibc 2.35 has it since; said here so that older headers do. */
struct found_object {
    unsigned long long int flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame_hdr;
    unsigned long long int reserved[7];
};

typedef int find_function(void *, struct found_object *);

static find_function *real_find;

/* The program itself. If there are holes between its segments (node is so),
 * the loader knows it only segment by segment. */
static struct seep_elf_image program;
_Atomic uint64_t seep_objects_unloads;

/* By what the kernel says of its program headers. */
static void find_program(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = headers != NULL ? getauxval(AT_PHNUM) : 0;
    const ElfW(Phdr) *own = find_header(headers, count, PT_PHDR);
    uintptr_t bias = own != NULL ? (uintptr_t)headers - own->p_vaddr : 0;
    uintptr_t start;
    uintptr_t end;

    if (find_extent(headers, count, bias, &start, &end)) {
        program.start = start;
        program.end = end;
        program.bias = bias;
        program.headers = headers;
        program.header_count = count;
    }
}

void seep_objects_init(void)
{
    /* Weak by hand: a reference would need GLIBC_2.35. */
    void *found = seep_elf_is_defined("_dl_find_object")
                      ? dlsym(RTLD_DEFAULT, "_dl_find_object")
                      : NULL;

    __builtin_memcpy(&real_find, &found, sizeof(found));
    find_program();
    if (real_find == NULL) {
        snapshot_init();
    }
}

void seep_objects_use_snapshot(void)
{
    real_find = NULL;
    snapshot_init();
}

bool seep_objects_locate(uintptr_t address, struct seep_elf_image *ret_image)
{
    ret_image->headers = NULL;
    ret_image->header_count = 0;
    if (seep_likely(real_find != NULL)) {
        struct found_object found;

        if (real_find((void *)address, &found) != 0 || found.link_map == NULL) {
            return false;
        }
        ret_image->start = (uintptr_t)found.map_start;
        ret_image->end = (uintptr_t)found.map_end;
        ret_image->bias = found.link_map->l_addr;
        ret_image->path = found.link_map->l_name;
        ret_image->eh_frame_hdr = found.eh_frame_hdr;
    } else if (!snapshot_find(address, ret_image)) {
        return false;
    }
    if (ret_image->path == NULL) {
        ret_image->path = "";
    }
    if (ret_image->bias == program.bias && ret_image->start >= program.start &&
        ret_image->end <= program.end) {
        ret_image->start = program.start;
        ret_image->end = program.end;
        ret_image->headers = program.headers;
        ret_image->header_count = program.header_count;
    }
    return true;
}

bool seep_objects_find(uintptr_t address, struct seep_elf_image *ret_image)
{
    if (!seep_objects_locate(address, ret_image)) {
        return false;
    }
    if (ret_image->headers == NULL) {
        seep_elf_headers(ret_image);
    }
    return true;
}

void seep_objects_unload_begin(void)
{
    /* Acquire and release: nothing of dlclose may be seen before this; pairs
     * with the acquire in seep_objects_epoch(). */
    atomic_fetch_add_explicit(&seep_objects_unloads,
                              SEEP_UNLOADS_GENERATION + 1,
                              memory_order_acq_rel);
}

void seep_objects_unload_end(void)
{
    uint64_t seen = seep_word_load(&seep_objects_unloads);
    uint64_t next;

    if (real_find == NULL) {
        snapshot_refresh();
    }
    /* A fork may have forgotten the begin: the count never goes below 0. */
    do {
        next = seen + SEEP_UNLOADS_GENERATION -
               ((seen & SEEP_UNLOADS_ACTIVE) != 0);
        /* Release: pairs with the acquire in seep_objects_epoch(). */
    } while (!atomic_compare_exchange_weak_explicit(
        &seep_objects_unloads, &seen, next, memory_order_release,
        memory_order_relaxed));
}

void seep_objects_after_fork(void)
{
    uint64_t seen = seep_word_load(&seep_objects_unloads);

    snapshot_after_fork();
    if ((seen & SEEP_UNLOADS_ACTIVE) != 0) {
        seep_word_store(&seep_objects_unloads, (seen & ~SEEP_UNLOADS_ACTIVE) +
                                                   SEEP_UNLOADS_GENERATION);
    }
}

void seep_objects_serve(uintptr_t pc)
{
    seep_thread.served_pc = pc;
    seep_thread.serving = pc != 0;
}

bool seep_objects_serves_this_thread(void)
{
    return seep_thread.serving != 0;
}

int seep_objects_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *),
                         void *data)
{
    struct seep_elf_image image;
    struct dl_phdr_info info = {0};

    if (!seep_objects_find(seep_thread.served_pc, &image) ||
        image.headers == NULL) {
        return 0;
    }
    info.dlpi_addr = image.bias;
    info.dlpi_name = image.path;
    info.dlpi_phdr = image.headers;
    info.dlpi_phnum = (ElfW(Half))image.header_count;
    /* A cache keyed by these two must not outlive a dlclose. */
    info.dlpi_adds = seep_objects_epoch();
    info.dlpi_subs = info.dlpi_adds;
    return callback(&info, sizeof(info), data);
}
