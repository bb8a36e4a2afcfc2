/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening the files of a module.
 *
 * Invariant: libdwfl is given descriptors that we opened and checked, never a
 * path: every file is regular, was opened without blocking, and carries the
 * build-id that it should. No server is asked unless the user said so.
 */
#include "reader/symbolise_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#define BUILD_ID_BYTES_MAX 64
#define DEBUG_ROOT "/usr/lib/debug"

struct build_id {
    unsigned char bytes[BUILD_ID_BYTES_MAX];
    size_t size_bytes;
};

static int open_regular(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat status;

    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return -EINVAL;
    }
    return fd;
}

/* Only what a loader maps, or its debug file; no archive, object or core. */
static bool is_image(Elf *elf)
{
    GElf_Ehdr header;

    return elf != NULL && elf_kind(elf) == ELF_K_ELF &&
           gelf_getehdr(elf, &header) != NULL &&
           (header.e_type == ET_DYN || header.e_type == ET_EXEC);
}

/* @return 0 with the id (none: size 0), -ENOEXEC if it is no ELF image */
static int read_build_id(int fd, struct build_id *ret_id)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const void *bytes = NULL;
    ssize_t size = 0;

    if (!is_image(elf)) {
        elf_end(elf);
        return -ENOEXEC;
    }
    size = dwelf_elf_gnu_build_id(elf, &bytes);
    *ret_id = (struct build_id){0};
    if (size > 0 && size <= BUILD_ID_BYTES_MAX) {
        memcpy(ret_id->bytes, bytes, (size_t)size);
        ret_id->size_bytes = (size_t)size;
    }
    elf_end(elf);
    return 0;
}

static bool has_id(int fd, const void *bytes, size_t size_bytes)
{
    struct build_id id;

    return read_build_id(fd, &id) == 0 && id.size_bytes == size_bytes &&
           memcmp(id.bytes, bytes, size_bytes) == 0;
}

/* The checksum of a debug link: CRC-32 as in gzip, over the whole file. */
static bool has_checksum(int fd, uint32_t expected)
{
    unsigned char buffer[16384];
    uint32_t crc = UINT32_MAX;
    ssize_t got;

    if (lseek(fd, 0, SEEK_SET) != 0) {
        return false;
    }
    while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            crc ^= buffer[i];
            for (int bit = 0; bit < 8; bit++) {
                crc = (crc >> 1) ^ (UINT32_C(0xedb88320) & -(crc & 1));
            }
        }
    }
    return got == 0 && ~crc == expected;
}

/* Open a debug file if it belongs to the module: by id, else by checksum. */
static int try_debug(Dwfl_Module *module, const char *path, uint32_t checksum)
{
    const unsigned char *id = NULL;
    GElf_Addr id_address = 0;
    int id_bytes = dwfl_module_build_id(module, &id, &id_address);
    int fd = open_regular(path);
    struct build_id unused;

    if (fd < 0) {
        return -1;
    }
    if (id_bytes > 0
            ? has_id(fd, id, (size_t)id_bytes)
            : read_build_id(fd, &unused) == 0 && has_checksum(fd, checksum)) {
        return fd;
    }
    close(fd);
    return -1;
}

static int find_by_id(Dwfl_Module *module, const char *root)
{
    const unsigned char *id = NULL;
    GElf_Addr id_address = 0;
    int id_bytes = dwfl_module_build_id(module, &id, &id_address);
    char path[PATH_MAX];
    int used;

    if (id_bytes < 3 || id_bytes > BUILD_ID_BYTES_MAX) {
        return -1;
    }
    used = snprintf(path, sizeof(path), "%s" DEBUG_ROOT "/.build-id/%02x/",
                    root, id[0]);
    if (used < 0 || (size_t)used + 2 * BUILD_ID_BYTES_MAX + 8 > sizeof(path)) {
        return -1;
    }
    for (int i = 1; i < id_bytes; i++) {
        used += snprintf(path + used, 3, "%02x", id[i]);
    }
    snprintf(path + used, sizeof(path) - (size_t)used, ".debug");
    return try_debug(module, path, 0);
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
            fd = try_debug(file->module, path, checksum);
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
    fd = find_by_id(module, file->sysroot);
    if (fd < 0 && file->sysroot[0] != '\0') {
        fd = find_by_id(module, "");
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
    struct build_id id;
    int fd;
    int used;
    int result;

    ret_file->sysroot = options->sysroot != NULL ? options->sysroot : "";
    ret_file->path = module->path;
    ret_file->use_debuginfod =
        options->use_debuginfod && servers != NULL && servers[0] != '\0';
    used =
        snprintf(path, sizeof(path), "%s%s", ret_file->sysroot, module->path);
    if (module->path[0] != '/' || used < 0 || (size_t)used >= sizeof(path)) {
        return -ENOENT;
    }
    fd = open_regular(path);
    if (fd < 0) {
        return fd;
    }
    elf_version(EV_CURRENT);
    result = read_build_id(fd, &id);
    if (result == 0 && module->build_id_bytes > 0 &&
        (id.size_bytes != module->build_id_bytes ||
         memcmp(id.bytes, module->build_id, id.size_bytes) != 0)) {
        result = -ESTALE;
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
