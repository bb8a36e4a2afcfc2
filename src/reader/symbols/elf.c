/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A module's files, opened, and the symbols of its functions.
 *
 * Invariant: a file is believed only where it carries the build-id, or of a
 * debug link the checksum, that it should; every symbol kept starts in a
 * section of code and ends in it.
 */
#include <elfutils/libdwelf.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/recording/open.h"
#include "reader/symbols/module.h"
#include "reader/symbols/wall.h"

/*
 * Opening the files of a module.
 *
 * Invariant: libdwfl is given descriptors that we opened and checked, never a
 * path: every file is regular, was opened without blocking, and carries the
 * build-id that it should. No server is asked unless the user said so.
 */

#define BUILD_ID_BYTES_MAX 64
#define DEBUG_ROOT "/usr/lib/debug"
/* What is linked by name is read whole for its checksum. */
#define LINKED_BYTES_MAX (UINT64_C(1) << 30)

/* Only what a loader maps, or its debug file; no archive, object or core. Cores
 * alone have so many segments that they are counted elsewhere: a file that said
 * that it had 140,000,000 was read whole, 7.7 GB, for its build-id. */
static bool is_image(Elf *elf)
{
    GElf_Ehdr header;

    return elf != NULL && elf_kind(elf) == ELF_K_ELF &&
           gelf_getehdr(elf, &header) != NULL &&
           (header.e_type == ET_DYN || header.e_type == ET_EXEC) &&
           header.e_phnum != PN_XNUM;
}

/* What a compressed section says that it becomes: in its header, or as GNU's
 * older tools have it in .zdebug_*, behind "ZLIB". */
static uint64_t inflated_bytes(Elf_Scn *section)
{
    const Elf_Data *data;
    GElf_Shdr header;
    GElf_Chdr inflated;
    uint64_t bytes = 0;

    if (gelf_getshdr(section, &header) == NULL ||
        header.sh_type == SHT_NOBITS) {
        return 0;
    }
    if ((header.sh_flags & SHF_COMPRESSED) != 0) {
        return gelf_getchdr(section, &inflated) != NULL ? inflated.ch_size : 0;
    }
    data =
        (header.sh_flags & SHF_ALLOC) == 0 ? elf_rawdata(section, NULL) : NULL;
    if (data != NULL && data->d_buf != NULL && data->d_size >= 12 &&
        memcmp(data->d_buf, "ZLIB", 4) == 0) {
        memcpy(&bytes, (const char *)data->d_buf + 4, sizeof(bytes));
    }
    return be64toh(bytes);
}

/* Added up before any of them is inflated. */
static bool is_bomb(Elf *elf)
{
    Elf_Scn *section = NULL;
    uint64_t sum = 0;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        uint64_t bytes = inflated_bytes(section);

        if (bytes > SEEP_WALL_INFLATED_MAX - sum) {
            return true;
        }
        sum += bytes;
    }
    return false;
}

/* @id_bytes: 0: any will do. @return -ENOEXEC: it is no ELF image; -ESTALE: it
 * has not that id; -EFBIG: it would become too large */
static int check_image(int fd, const void *id, size_t id_bytes)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const void *own = NULL;
    int result = -ENOEXEC;

    if (is_image(elf)) {
        ssize_t own_bytes = dwelf_elf_gnu_build_id(elf, &own);
        bool same = id_bytes == 0 || (own_bytes == (ssize_t)id_bytes &&
                                      memcmp(own, id, id_bytes) == 0);

        result = !same ? -ESTALE : is_bomb(elf) ? -EFBIG : 0;
    }
    elf_end(elf);
    return result;
}

static void fill_checksums(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) {
            table[i] =
                (table[i] >> 1) ^ (UINT32_C(0xedb88320) & -(table[i] & 1));
        }
    }
}

/* The checksum of a debug link: CRC-32 as in gzip, over the whole file. */
static bool has_checksum(int fd, uint32_t expected)
{
    uint32_t table[256];
    unsigned char buffer[16384];
    uint32_t crc = UINT32_MAX;
    ssize_t got;

    fill_checksums(table);
    if (lseek(fd, 0, SEEK_SET) != 0) {
        return false;
    }
    while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            crc = (crc >> 8) ^ table[(crc ^ buffer[i]) & 255];
        }
    }
    return got == 0 && ~crc == expected;
}

/* @return its length, 0 if it has none */
static size_t build_id_of(Dwfl_Module *module, const unsigned char **ret_id)
{
    GElf_Addr address = 0;
    int bytes = dwfl_module_build_id(module, ret_id, &address);

    return bytes > 0 ? (size_t)bytes : 0;
}

/* Open a debug file if it belongs to the module: by id, else by checksum. */
static int try_debug(struct seep_symbolise_file *file, const char *path,
                     uint32_t checksum)
{
    Dwfl_Module *module = file->module;
    const unsigned char *id = NULL;
    size_t id_bytes = build_id_of(module, &id);
    uint64_t size_bytes;
    int result;
    int fd;

    if (seep_open_file(path, NULL, &fd, &size_bytes) != 0) {
        return -1;
    }
    result = id_bytes == 0 && size_bytes > LINKED_BYTES_MAX
                 ? -EFBIG
                 : seep_wall_admit(size_bytes);
    if (result == 0) {
        result = check_image(fd, id, id_bytes);
    }
    if (result == 0 && (id_bytes > 0 || has_checksum(fd, checksum))) {
        return fd;
    }
    if (result == -EFBIG) {
        file->debug_error = result;
    }
    close(fd);
    return -1;
}

/* @folder: that of .build-id, behind @root */
static int find_by_id(struct seep_symbolise_file *file, const char *root,
                      const char *folder)
{
    Dwfl_Module *module = file->module;
    const unsigned char *id = NULL;
    size_t id_bytes = build_id_of(module, &id);
    char path[PATH_MAX];
    int used;

    if (id_bytes < 3 || id_bytes > BUILD_ID_BYTES_MAX) {
        return -1;
    }
    used = snprintf(path, sizeof(path), "%s%s/.build-id/%02x/", root, folder,
                    id[0]);
    if (used < 0 || (size_t)used + 2 * BUILD_ID_BYTES_MAX + 8 > sizeof(path)) {
        return -1;
    }
    for (size_t i = 1; i < id_bytes; i++) {
        used += snprintf(path + used, 3, "%02x", id[i]);
    }
    snprintf(path + used, sizeof(path) - (size_t)used, ".debug");
    return try_debug(file, path, 0);
}

/* Of the user's folder: as in the system's, or the files alone. */
static int find_in_folder(struct seep_symbolise_file *file, const char *link,
                          uint32_t checksum)
{
    const char *root = file->debug_folder;
    const char *name = strrchr(file->path, '/');
    int folder_bytes = name != NULL ? (int)(name - file->path) : 0;
    int fd = find_by_id(file, "", root);

    if (link == NULL || strchr(link, '/') != NULL) {
        return fd;
    }
    for (int i = 0; i < 2 && fd < 0; i++) {
        char path[PATH_MAX];
        int used = snprintf(path, sizeof(path), "%s%.*s/%s", root,
                            i == 0 ? folder_bytes : 0, file->path, link);

        if (used > 0 && (size_t)used < sizeof(path)) {
            fd = try_debug(file, path, checksum);
        }
    }
    return fd;
}

static int find_by_link(struct seep_symbolise_file *file, const char *link,
                        uint32_t checksum)
{
    static const char *const forms[] = {"%s%.*s/%s", "%s%.*s/.debug/%s",
                                        "%s" DEBUG_ROOT "%.*s/%s"};
    const char *name = strrchr(file->path, '/');
    int folder_bytes = name != NULL ? (int)(name - file->path) : 0;
    int fd = -1;

    /* A link is a file name: with a slash it could lead anywhere. */
    if (strchr(link, '/') != NULL) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms) && fd < 0; i++) {
        char path[PATH_MAX];
        int used = snprintf(path, sizeof(path), forms[i], file->sysroot,
                            folder_bytes, file->path, link);

        if (used > 0 && (size_t)used < sizeof(path)) {
            fd = try_debug(file, path, checksum);
        }
    }
    return fd;
}

static int find_debug(Dwfl_Module *module, void **data, const char *name,
                      Dwarf_Addr base, const char *file_name, const char *link,
                      GElf_Word checksum, char **ret_name)
{
    struct seep_symbolise_file *file = *data;
    int fd;

    if (file == NULL) {
        return -1;
    }
    fd = file->debug_folder != NULL ? find_in_folder(file, link, checksum) : -1;
    if (fd < 0) {
        fd = find_by_id(file, file->sysroot, DEBUG_ROOT);
    }
    if (fd < 0 && file->sysroot[0] != '\0') {
        fd = find_by_id(file, "", DEBUG_ROOT);
    }
    if (fd < 0 && link != NULL) {
        fd = find_by_link(file, link, checksum);
    }
    if (fd < 0 && file->use_debuginfod) {
        fd = dwfl_standard_find_debuginfo(module, data, name, base, file_name,
                                          link, checksum, ret_name);
    }
    return fd;
}

/* The file is given, so libdwfl never has to look for one. */
static int find_no_elf(Dwfl_Module *module, void **data, const char *name,
                       Dwarf_Addr base, char **ret_name, Elf **ret_elf)
{
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)ret_name;
    (void)ret_elf;
    return -1;
}

static int report(struct seep_symbolise_file *file, const char *path, int fd)
{
    void **data = NULL;

    file->callbacks = (Dwfl_Callbacks){
        .find_elf = find_no_elf,
        .find_debuginfo = find_debug,
        .section_address = dwfl_offline_section_address,
    };
    file->dwfl = dwfl_begin(&file->callbacks);
    if (file->dwfl == NULL) {
        close(fd);
        return -ENOMEM;
    }
    dwfl_report_begin(file->dwfl);
    file->module = dwfl_report_elf(file->dwfl, "module", path, fd, 0, true);
    dwfl_report_end(file->dwfl, NULL, NULL);
    if (file->module == NULL) {
        close(fd);
        return -ENOEXEC;
    }
    dwfl_module_info(file->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
    *data = file;
    return 0;
}

int seep_symbolise_file_init(const struct seep_symbol_module *module,
                             const struct seep_symboliser_options *options,
                             struct seep_symbolise_file *ret_file)
{
    const char *servers = getenv("DEBUGINFOD_URLS");
    char path[PATH_MAX];
    uint64_t size_bytes;
    int fd;
    int used;
    int result;

    ret_file->sysroot = options->sysroot != NULL ? options->sysroot : "";
    ret_file->path = module->path;
    ret_file->debug_folder = options->debug_folder;
    ret_file->use_debuginfod =
        options->use_debuginfod && servers != NULL && servers[0] != '\0';
    used =
        snprintf(path, sizeof(path), "%s%s", ret_file->sysroot, module->path);
    if (module->path[0] != '/' || used < 0 || (size_t)used >= sizeof(path)) {
        return -ENOENT;
    }
    result = seep_open_file(path, NULL, &fd, &size_bytes);
    if (result != 0) {
        return result;
    }
    elf_version(EV_CURRENT);
    result = seep_wall_admit(size_bytes);
    if (result == 0) {
        result = check_image(fd, module->build_id, module->build_id_bytes);
    }
    if (result != 0) {
        close(fd);
        return result;
    }
    return report(ret_file, path, fd);
}

void seep_symbolise_file_fini(struct seep_symbolise_file *file)
{
    if (file->dwfl != NULL) {
        dwfl_end(file->dwfl);
    }
    *file = (struct seep_symbolise_file){0};
}

/*
 * Symbols, sorted once: libdwfl's own look-up walks the whole table for each
 * address. By class, which to believe where several hold one.
 */
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

/* Does @image have all symbols that it was linked with? */
static bool has_all_symbols(Elf *image)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while (image != NULL && (section = elf_nextscn(image, section)) != NULL) {
        if (gelf_getshdr(section, &header) != NULL &&
            header.sh_type == SHT_SYMTAB) {
            return true;
        }
    }
    return false;
}

/* @labels: of a file that has all symbols. In a stripped one what follows a
 * label may be another function, whose symbol is gone. */
static int add_symbol(struct seep_symbolise_elf *elf, const char *name,
                      const GElf_Sym *symbol, GElf_Addr address, bool labels)
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
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
        (symbol->st_size == 0 && !labels)) {
        return 0;
    }
    range.class = symbol->st_size == 0 ? CLASS_LABEL
                  : type == STT_NOTYPE ? CLASS_SIZED
                                       : CLASS_FUNCTION;
    range.end = section->end;
    if (symbol->st_size != 0 && symbol->st_size <= section->end - address) {
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

static int add_symbols(struct seep_symbolise_elf *elf, Dwfl_Module *module)
{
    int count = dwfl_module_getsymtab(module);
    Elf *last = NULL;
    bool labels = false;
    int result = 0;

    for (int i = 1; i < count && result == 0; i++) {
        GElf_Sym symbol;
        GElf_Addr address = 0;
        GElf_Word section = 0;
        Elf *of = NULL;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address,
                                                   &section, &of, NULL);

        if (name == NULL || section == SHN_UNDEF || section == SHN_ABS) {
            continue;
        }
        labels = of == last ? labels : has_all_symbols(of);
        last = of;
        result = add_symbol(elf, name, &symbol, address, labels);
    }
    return result;
}

int seep_symbolise_elf_init(Dwfl_Module *module,
                            struct seep_symbolise_elf *ret_elf)
{
    Dwarf_Addr bias = 0;
    Elf *image = dwfl_module_getelf(module, &bias);
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
    if (result == 0) {
        result = add_symbols(ret_elf, module);
    }
    if (result != 0) {
        return result;
    }
    end_labels(&ret_elf->symbols);
    return seep_symbolise_index_seal(&ret_elf->symbols);
}

const char *seep_symbolise_elf_find(const struct seep_symbolise_elf *elf,
                                    uint64_t address)
{
    const struct seep_symbolise_range *symbol =
        seep_symbolise_index_find(&elf->symbols, address);

    return symbol != NULL ? (const char *)(uintptr_t)symbol->value : NULL;
}

void seep_symbolise_elf_fini(struct seep_symbolise_elf *elf)
{
    seep_symbolise_index_fini(&elf->symbols);
    seep_symbolise_index_fini(&elf->sections);
}
