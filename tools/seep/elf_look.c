/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A look at an ELF file; see elf_look.h. Invariant: nothing is read outside of
 * the mapped bytes. A file that is cut meanwhile would be a SIGBUS, so it is
 * read, not mapped.
 */
#include "elf_look.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYMBOLS_MOST 200000U
#define SECTIONS_MOST 4096U
#define NAME_BYTES 64U

struct file {
    int fd;
    uint64_t bytes;
    Elf64_Ehdr header;
    uint32_t symbols_left; /* that are read, in all its tables together */
};

static bool read_at(const struct file *file, uint64_t offset, void *to,
                    size_t bytes)
{
    return offset <= file->bytes && bytes <= file->bytes - offset &&
           pread(file->fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* A string of the file; "" if it does not end in time. */
static void read_text(const struct file *file, uint64_t offset, char *to,
                      size_t size)
{
    ssize_t got =
        offset < file->bytes ? pread(file->fd, to, size, (off_t)offset) : -1;

    if (got <= 0 || memchr(to, '\0', (size_t)got) == NULL) {
        to[0] = '\0';
    }
}

static bool is_native(const Elf64_Ehdr *header)
{
    Elf64_Ehdr own = {0};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && read(fd, &own, sizeof(own)) == (ssize_t)sizeof(own);

    if (fd >= 0) {
        close(fd);
    }
    return !known || (header->e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
                      header->e_ident[EI_DATA] == own.e_ident[EI_DATA] &&
                      header->e_machine == own.e_machine);
}

static void take_build_id(const unsigned char *bytes, size_t count,
                          struct seep_elf_look *look)
{
    for (size_t i = 0; i < count && 2 * i + 2 < sizeof(look->build_id); i++) {
        snprintf(look->build_id + 2 * i, 3, "%02x", bytes[i]);
    }
}

static void take_notes(const struct file *file, const Elf64_Phdr *segment,
                       struct seep_elf_look *look)
{
    uint64_t at = segment->p_offset;
    uint64_t end = at + segment->p_filesz;
    unsigned char body[32];
    Elf64_Nhdr note;
    char name[4];

    for (unsigned i = 0; i < 64 && at + sizeof(note) <= end; i++) {
        if (!read_at(file, at, &note, sizeof(note))) {
            return;
        }
        uint64_t name_at = at + sizeof(note);
        uint64_t body_at = name_at + ((note.n_namesz + UINT64_C(3)) & ~3ULL);
        if (note.n_namesz == 4 && read_at(file, name_at, name, sizeof(name))) {
            size_t bytes =
                note.n_descsz < sizeof(body) ? note.n_descsz : sizeof(body);
            look->go = look->go || memcmp(name, "Go", 3) == 0;
            if (memcmp(name, "GNU", 4) == 0 && note.n_type == NT_GNU_BUILD_ID &&
                read_at(file, body_at, body, bytes)) {
                take_build_id(body, bytes, look);
            }
        }
        at = body_at + ((note.n_descsz + UINT64_C(3)) & ~3ULL);
    }
}

static void take_segments(const struct file *file, struct seep_elf_look *look)
{
    for (unsigned i = 0; i < file->header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(file, file->header.e_phoff + i * sizeof(segment), &segment,
                     sizeof(segment))) {
            return;
        }
        if (segment.p_type == PT_INTERP) {
            read_text(file, segment.p_offset, look->loader,
                      sizeof(look->loader));
        } else if (segment.p_type == PT_DYNAMIC) {
            look->dynamic = true;
        } else if (segment.p_type == PT_NOTE) {
            take_notes(file, &segment, look);
        }
    }
}

static void take_symbols(struct file *file, const Elf64_Shdr *table,
                         struct seep_elf_look *look)
{
    Elf64_Shdr strings;
    Elf64_Sym symbol;
    char name[NAME_BYTES];
    uint64_t count = table->sh_size / sizeof(symbol);

    if (!read_at(file, file->header.e_shoff + table->sh_link * sizeof(strings),
                 &strings, sizeof(strings))) {
        return;
    }
    for (uint64_t i = 0; i < count && file->symbols_left > 0; i++) {
        file->symbols_left--;
        if (!read_at(file, table->sh_offset + i * sizeof(symbol), &symbol,
                     sizeof(symbol))) {
            return;
        }
        read_text(file, strings.sh_offset + symbol.st_name, name, sizeof(name));
        look->defines_malloc |=
            symbol.st_shndx != SHN_UNDEF && strcmp(name, "malloc") == 0;
        look->sanitized |= strcmp(name, "__asan_init") == 0 ||
                           strcmp(name, "__tsan_init") == 0 ||
                           strcmp(name, "__msan_init") == 0;
    }
}

static void take_sections(struct file *file, struct seep_elf_look *look)
{
    Elf64_Shdr names;
    char name[NAME_BYTES];

    if (!read_at(file,
                 file->header.e_shoff + file->header.e_shstrndx * sizeof(names),
                 &names, sizeof(names))) {
        return;
    }
    for (unsigned i = 0; i < file->header.e_shnum && i < SECTIONS_MOST; i++) {
        Elf64_Shdr section;
        if (!read_at(file, file->header.e_shoff + i * sizeof(section), &section,
                     sizeof(section))) {
            return;
        }
        read_text(file, names.sh_offset + section.sh_name, name, sizeof(name));
        look->has_lines |= strcmp(name, ".debug_info") == 0 ||
                           strcmp(name, ".zdebug_info") == 0;
        look->go |= strcmp(name, ".go.buildinfo") == 0;
        if (section.sh_type == SHT_DYNSYM) {
            take_symbols(file, &section, look);
        }
    }
}

int seep_elf_look(const char *path, struct seep_elf_look *ret_look)
{
    struct file file = {
        .fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC),
        .symbols_left = SYMBOLS_MOST,
    };
    struct seep_elf_look look = {0};
    struct stat status;
    int result = 0;

    if (file.fd < 0) {
        return -errno;
    }
    if (fstat(file.fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(file.fd);
        return -ENOEXEC;
    }
    file.bytes = (uint64_t)status.st_size;
    if (!read_at(&file, 0, &file.header, sizeof(file.header)) ||
        memcmp(file.header.e_ident, ELFMAG, SELFMAG) != 0) {
        result = -ENOEXEC;
    } else {
        look.native = is_native(&file.header);
        if (look.native) { /* of another class all is laid out otherwise */
            take_segments(&file, &look);
            take_sections(&file, &look);
        }
        *ret_look = look;
    }
    close(file.fd);
    return result;
}
