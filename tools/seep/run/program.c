/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What would be executed. Invariant: nothing is executed, and a kind other
 * than FINE is given only when the file shows it.
 */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"

/*
 * A look at an ELF file. It is read, not mapped: of one that is cut meanwhile
 * that would be a SIGBUS. Invariant: what is read of it is bounded, however
 * large it says that its parts are.
 */

#define SECTIONS_MOST 4096U
#define SYMBOLS_MOST 200000U /* in all its tables together */
#define NOTES_MOST_BYTES 65536U
#define STRINGS_MOST_BYTES (UINT64_C(256) << 20)

/* The linker's name for where this program's own header is loaded. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static bool is_native(const GElf_Ehdr *header)
{
    return header->e_ident[EI_CLASS] == __ehdr_start.e_ident[EI_CLASS] &&
           header->e_ident[EI_DATA] == __ehdr_start.e_ident[EI_DATA] &&
           header->e_machine == __ehdr_start.e_machine;
}

static void take_build_id(const unsigned char *bytes, size_t count,
                          struct seep_elf_look *look)
{
    for (size_t i = 0; i < count && 2 * i + 2 < sizeof(look->build_id); i++) {
        snprintf(look->build_id + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The bytes of a segment, NULL if they are not all there, or too many. */
static Elf_Data *data_of(Elf *elf, const GElf_Phdr *segment, Elf_Type type,
                         uint64_t most_bytes)
{
    return segment->p_filesz <= most_bytes
               ? elf_getdata_rawchunk(elf, (int64_t)segment->p_offset,
                                      segment->p_filesz, type)
               : NULL;
}

static void take_loader(Elf *elf, const GElf_Phdr *segment,
                        struct seep_elf_look *look)
{
    Elf_Data *data =
        data_of(elf, segment, ELF_T_BYTE, sizeof(look->loader) - 1);

    if (data != NULL && data->d_size > 0) {
        memcpy(look->loader, data->d_buf, data->d_size);
        look->loader[data->d_size] = '\0';
    }
}

static void take_notes(Elf *elf, const GElf_Phdr *segment,
                       struct seep_elf_look *look)
{
    Elf_Data *data =
        data_of(elf, segment, segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR,
                NOTES_MOST_BYTES);
    size_t at = 0;
    size_t name_at;
    size_t body_at;
    GElf_Nhdr note;

    while (data != NULL &&
           (at = gelf_getnote(data, at, &note, &name_at, &body_at)) > 0) {
        const unsigned char *bytes = data->d_buf;

        if (note.n_namesz == 4) {
            look->go |= memcmp(bytes + name_at, "Go", 3) == 0;
            if (memcmp(bytes + name_at, "GNU", 4) == 0 &&
                note.n_type == NT_GNU_BUILD_ID) {
                take_build_id(bytes + body_at, note.n_descsz, look);
            }
        }
    }
}

static void take_segments(Elf *elf, struct seep_elf_look *look)
{
    size_t count = 0;
    GElf_Phdr segment;

    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &segment) != NULL;
         i++) {
        if (segment.p_type == PT_INTERP) {
            take_loader(elf, &segment, look);
        } else if (segment.p_type == PT_DYNAMIC) {
            look->dynamic = true;
        } else if (segment.p_type == PT_NOTE) {
            take_notes(elf, &segment, look);
        }
    }
}

/* A string of a section; "" if there is none, or the section is too large. */
static const char *string_of(Elf *elf, size_t section, size_t offset)
{
    GElf_Shdr header;
    const char *text =
        gelf_getshdr(elf_getscn(elf, section), &header) != NULL &&
                header.sh_size <= STRINGS_MOST_BYTES
            ? elf_strptr(elf, section, offset)
            : NULL;

    return text == NULL ? "" : text;
}

/* @param symbols_left  of all tables */
static void take_symbols(Elf *elf, const GElf_Shdr *table,
                         uint64_t *symbols_left, struct seep_elf_look *look)
{
    uint64_t bytes = *symbols_left * gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    Elf_Data *data = elf_getdata_rawchunk(
        elf, (int64_t)table->sh_offset,
        table->sh_size < bytes ? table->sh_size : bytes, ELF_T_SYM);
    GElf_Sym symbol;

    for (int i = 0; data != NULL && gelf_getsym(data, i, &symbol) != NULL;
         i++) {
        const char *name = string_of(elf, table->sh_link, symbol.st_name);

        --*symbols_left;
        look->defines_malloc |=
            symbol.st_shndx != SHN_UNDEF && strcmp(name, "malloc") == 0;
        look->sanitized |= strcmp(name, "__asan_init") == 0 ||
                           strcmp(name, "__tsan_init") == 0 ||
                           strcmp(name, "__msan_init") == 0;
    }
}

static void take_sections(Elf *elf, struct seep_elf_look *look)
{
    uint64_t symbols_left = SYMBOLS_MOST;
    size_t names = 0;
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    if (elf_getshdrstrndx(elf, &names) < 0) {
        return;
    }
    for (unsigned i = 0;
         i < SECTIONS_MOST && (section = elf_nextscn(elf, section)) != NULL &&
         gelf_getshdr(section, &header) != NULL;
         i++) {
        const char *name = string_of(elf, names, header.sh_name);

        look->has_lines |= strcmp(name, ".debug_info") == 0 ||
                           strcmp(name, ".zdebug_info") == 0;
        look->go |= strcmp(name, ".go.buildinfo") == 0;
        if (header.sh_type == SHT_DYNSYM) {
            take_symbols(elf, &header, &symbols_left, look);
        }
    }
}

/* @return 0; -ENOEXEC if it is no ELF file */
static int look_into(int fd, struct seep_elf_look *ret_look)
{
    struct seep_elf_look look = {0};
    GElf_Ehdr header;

    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf == NULL || elf_kind(elf) != ELF_K_ELF ||
        gelf_getehdr(elf, &header) == NULL) {
        elf_end(elf);
        return -ENOEXEC;
    }
    look.native = is_native(&header);
    if (look.native) {
        take_segments(elf, &look);
        take_sections(elf, &look);
    }
    elf_end(elf);
    *ret_look = look;
    return 0;
}

int seep_elf_look(const char *path, struct seep_elf_look *ret_look)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    int error = -ENOEXEC;

    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        error = look_into(fd, ret_look);
    }
    close(fd);
    return error;
}

#define SCRIPTS_MOST 4 /* that lead from one to the next, as the kernel's */
#define LINE_BYTES 256

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* As execvp() would find @command. @return 0; -ENOENT; -EACCES */
static int program_find(const char *command, const char *folders,
                        char ret_path[PATH_MAX])
{
    char path[PATH_MAX];
    int error = -ENOENT;

    if (strchr(command, '/') != NULL) {
        if (strlen(command) >= PATH_MAX) {
            return -ENAMETOOLONG;
        }
        strcpy(ret_path, command);
        return !is_file(command)            ? -ENOENT
               : access(command, X_OK) == 0 ? 0
                                            : -EACCES;
    }
    folders = folders == NULL ? "/bin:/usr/bin" : folders;
    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");
        int printed = snprintf(path, sizeof(path), "%.*s/%s",
                               length == 0 ? 1 : (int)length,
                               length == 0 ? "." : folders, command);
        if (printed < PATH_MAX && is_file(path)) {
            if (access(path, X_OK) == 0) {
                memcpy(ret_path, path, sizeof(path));
                return 0;
            }
            error = -EACCES;
        }
        folders += length;
        folders += *folders == ':';
    }
    return error;
}

/* The first line behind "#!". @return false if it is no script */
static bool read_script(const char *path, char line[LINE_BYTES + 1])
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char head[LINE_BYTES + 3];
    ssize_t got = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

    if (fd >= 0) {
        close(fd);
    }
    if (got < 2 || head[0] != '#' || head[1] != '!') {
        return false;
    }
    head[got] = '\0';
    snprintf(line, LINE_BYTES + 1, "%.*s", (int)strcspn(head + 2, "\n"),
             head + 2);
    return true;
}

/* The word of env's @words that is the command: no option, no variable. */
static const char *command_of_env(char *words, char **state)
{
    char *word = strtok_r(words, " \t", state);

    while (word != NULL && (*word == '-' || strchr(word, '=') != NULL)) {
        word = strtok_r(NULL, " \t", state);
    }
    return word;
}

/* From a script to its interpreter. @return 0; an error of finding it; 1: it
 * is no script */
static int follow_script(const char *folders, char path[PATH_MAX])
{
    char line[LINE_BYTES + 1];
    char *rest;

    if (!read_script(path, line)) {
        return 1;
    }
    const char *interpreter = strtok_r(line, " \t", &rest);
    if (interpreter == NULL) {
        return -ENOENT;
    }
    if (strcmp(seep_text_base_name(interpreter), "env") == 0) {
        char *state;
        const char *command = command_of_env(rest, &state);
        return command == NULL ? -ENOENT : program_find(command, folders, path);
    }
    return program_find(interpreter, folders, path);
}

static bool is_privileged(const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 &&
        (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()))) {
        return true;
    }
    return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool is_launcher(const char *path)
{
    const char *name = seep_text_base_name(path);
    size_t length = strlen(name);

    for (const char *at = SEEP_LAUNCHERS; *at != '\0';) {
        size_t entry = strcspn(at, ":");
        if (entry == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += entry;
        at += *at == ':';
    }
    return false;
}

static enum seep_program_kind judge_elf(const char *path,
                                        const struct seep_elf_look *look)
{
    if (!look->native) {
        return SEEP_PROGRAM_FOREIGN;
    }
    if (look->loader[0] == '\0') {
        return look->go ? SEEP_PROGRAM_GO_STATIC : SEEP_PROGRAM_STATIC;
    }
    if (strstr(look->loader, "ld-musl") != NULL) {
        return SEEP_PROGRAM_MUSL;
    }
    if (access(look->loader, F_OK) < 0) {
        return SEEP_PROGRAM_NO_LOADER;
    }
    return look->sanitized        ? SEEP_PROGRAM_SANITIZED
           : look->defines_malloc ? SEEP_PROGRAM_OWN_MALLOC
           : look->go             ? SEEP_PROGRAM_GO
           : is_launcher(path)    ? SEEP_PROGRAM_LAUNCHER
                                  : SEEP_PROGRAM_FINE;
}

static enum seep_program_kind kind_of(const char *command, const char *folders,
                                      char path[PATH_MAX])
{
    struct seep_elf_look look;
    int error = program_find(command, folders, path);

    for (int i = 0; error == 0 && i <= SCRIPTS_MOST; i++) {
        error = follow_script(folders, path);
    }
    if (error < 0) {
        return error == -EACCES ? SEEP_PROGRAM_FORBIDDEN : SEEP_PROGRAM_MISSING;
    }
    if (is_privileged(path)) {
        return SEEP_PROGRAM_PRIVILEGED;
    }
    error = seep_elf_look(path, &look);
    if (error == -EACCES) {
        return SEEP_PROGRAM_FINE; /* it can be executed and not be read */
    }
    return error < 0 ? SEEP_PROGRAM_ODD : judge_elf(path, &look);
}

void seep_program_look(const char *command, const char *folders,
                       struct seep_program *ret_program)
{
    static const struct {
        const char *reason;
        const char *remedy;
    } kinds[] = {
#define KIND_WORDS(symbol, reason, remedy) {reason, remedy},
        SEEP_PROGRAMS(KIND_WORDS)
#undef KIND_WORDS
    };

    ret_program->path[0] = '\0';
    ret_program->kind = kind_of(command, folders, ret_program->path);
    ret_program->reason = kinds[ret_program->kind].reason;
    ret_program->remedy = kinds[ret_program->kind].remedy;
}
