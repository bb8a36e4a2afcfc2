/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbols and segments by libelf, and names by the demangler, in a child.
 *
 * Invariant: before a section is read it is known what it may take, and nothing
 * that came through the wall is used before it is checked.
 */
#include "reader/symbols/tables.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/recording/open.h"
#include "reader/symbols/names.h"

#define FILE_BYTES_MOST (UINT64_C(8) << 30)

enum what { SEGMENTS = 1, SYMBOLS, NAME };

/*
 * What is below runs behind the wall.
 */

/* What is answered of symbols: this, the entries of each kind by ascending
 * address, then texts, the last of which ends with a 0. */
struct head {
    uint64_t counts[SEEP_SYMBOL_KINDS];
    uint64_t text_bytes;
};

/* The same as it grows. */
struct answer {
    struct seep_symbol_entry *lists[SEEP_SYMBOL_KINDS];
    uint64_t counts[SEEP_SYMBOL_KINDS];
    char *text;
    uint64_t text_bytes;
    uint64_t left_bytes; /* that it may still take, with what is read for it */
};

static int compare_symbols(const void *one, const void *other)
{
    const struct seep_symbol_entry *a = one;
    const struct seep_symbol_entry *b = other;

    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static bool kind_of(const GElf_Sym *symbol, enum seep_symbol_kind *kind)
{
    if (symbol->st_shndx == SHN_UNDEF) {
        return false;
    }
    switch (GELF_ST_TYPE(symbol->st_info)) {
    case STT_OBJECT:
        *kind = SEEP_SYMBOL_DATA;
        return true;
    case STT_FUNC:
    case STT_GNU_IFUNC:
        *kind = SEEP_SYMBOL_FUNCTION;
        return true;
    case STT_TLS:
        *kind = SEEP_SYMBOL_THREAD_LOCAL;
        return true;
    default:
        return false;
    }
}

/* May it be read, with its names? A symbol is as large here as in the file. */
static bool is_small(struct answer *answer, Elf *elf, const GElf_Shdr *header)
{
    Elf_Scn *names = elf_getscn(elf, header->sh_link);
    GElf_Shdr names_header;
    uint64_t left = answer->left_bytes;

    if (names == NULL || gelf_getshdr(names, &names_header) == NULL ||
        (names_header.sh_flags & SHF_COMPRESSED) != 0 ||
        header->sh_size > left / 3 ||
        names_header.sh_size > left - 3 * header->sh_size) {
        return false;
    }
    answer->left_bytes -= 3 * header->sh_size + names_header.sh_size;
    return true;
}

/* The names of a table of symbols; NULL if they do not end. elf_strptr() looks
 * for that end anew for each symbol, through all of them. */
static const Elf_Data *names_of(Elf *elf, const GElf_Shdr *header)
{
    const Elf_Data *names = elf_getdata(elf_getscn(elf, header->sh_link), NULL);
    const char *text = names == NULL ? NULL : names->d_buf;

    return text != NULL && names->d_size > 0 && text[names->d_size - 1] == '\0'
               ? names
               : NULL;
}

/* Room for all symbols of a table, whichever kind they are. */
static int make_room(struct answer *answer, uint64_t count)
{
    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        struct seep_symbol_entry *list =
            realloc(answer->lists[kind],
                    (size_t)(answer->counts[kind] + count) * sizeof(*list));

        if (list == NULL) {
            return -ENOMEM;
        }
        answer->lists[kind] = list;
    }
    return 0;
}

static int add_symbols(struct answer *answer, Elf *elf, Elf_Scn *section,
                       const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    const Elf_Data *names = names_of(elf, header);
    uint64_t count = data == NULL || names == NULL || header->sh_entsize == 0
                         ? 0
                         : header->sh_size / header->sh_entsize;
    char *text;

    if (count == 0 || count > header->sh_size / sizeof(Elf64_Sym)) {
        return 0;
    }
    text = realloc(answer->text, (size_t)answer->text_bytes + names->d_size);
    if (text == NULL) {
        return -ENOMEM;
    }
    answer->text = text;
    memcpy(text + answer->text_bytes, names->d_buf, names->d_size);
    if (make_room(answer, count) != 0) {
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < count && i < INT_MAX; i++) {
        enum seep_symbol_kind kind;
        GElf_Sym symbol;

        if (gelf_getsym(data, (int)i, &symbol) == NULL ||
            !kind_of(&symbol, &kind) || symbol.st_name >= names->d_size ||
            ((const char *)names->d_buf)[symbol.st_name] == '\0') {
            continue;
        }
        answer->lists[kind][answer->counts[kind]++] =
            (struct seep_symbol_entry){symbol.st_value, symbol.st_size,
                                       answer->text_bytes + symbol.st_name};
    }
    answer->text_bytes += names->d_size;
    return 0;
}

/* libelf makes room for as many sections and segments as a file says: what says
 * it where only object files of compilers and core files do is not read. */
static bool is_plain(int fd, uint64_t size_bytes)
{
    Elf64_Ehdr header;

    return size_bytes <= FILE_BYTES_MOST &&
           pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
           memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_phnum != PN_XNUM &&
           (header.e_shnum != 0 || header.e_shoff == 0);
}

/* @return 0; -ENOEXEC: it is no file of ELF */
static int open_elf(const char *path, int *ret_fd, Elf **ret_elf)
{
    struct stat status;
    int fd = seep_open_regular(path, 0, &status);
    Elf *elf = NULL;

    if (fd < 0) {
        return fd;
    }
    if (is_plain(fd, (uint64_t)status.st_size)) {
        elf_version(EV_CURRENT);
        elf = elf_begin(fd, ELF_C_READ, NULL);
    }
    if (elf == NULL || elf_kind(elf) != ELF_K_ELF) {
        elf_end(elf);
        close(fd);
        return -ENOEXEC;
    }
    *ret_fd = fd;
    *ret_elf = elf;
    return 0;
}

/* Where it wants to lie, by its segments. */
static void read_segments(Elf *elf, struct seep_symbol_segments *segments)
{
    size_t count = 0;

    *segments = (struct seep_symbol_segments){.lowest = UINT64_MAX};
    if (elf_getphdrnum(elf, &count) != 0) {
        count = 0;
    }
    for (size_t i = 0; i < count && i < INT_MAX; i++) {
        GElf_Phdr segment;

        if (gelf_getphdr(elf, (int)i, &segment) == NULL) {
            continue;
        }
        if (segment.p_type == PT_LOAD) {
            uint64_t stop = segment.p_vaddr + segment.p_memsz;

            segments->lowest = segment.p_vaddr < segments->lowest
                                   ? segment.p_vaddr
                                   : segments->lowest;
            segments->end = stop > segments->end ? stop : segments->end;
        } else if (segment.p_type == PT_TLS) {
            uint64_t align = segment.p_align > 1 ? segment.p_align : 1;

            segments->tls_bytes = (segment.p_memsz + align - 1) / align * align;
        }
    }
}

static int read_symbols(struct answer *answer, Elf *elf)
{
    Elf_Scn *section = NULL;
    int result = 0;

    while (result == 0 && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            (header.sh_flags & SHF_COMPRESSED) == 0 &&
            is_small(answer, elf, &header)) {
            result = add_symbols(answer, elf, section, &header);
        }
    }
    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        if (answer->counts[kind] > 0) {
            qsort(answer->lists[kind], answer->counts[kind],
                  sizeof(**answer->lists), compare_symbols);
        }
    }
    return result;
}

/* In one piece. */
static int join(const struct answer *answer, uint64_t most, void **ret_bytes,
                uint64_t *ret_count)
{
    struct head head = {.text_bytes = answer->text_bytes};
    uint64_t bytes = sizeof(head) + answer->text_bytes;
    char *whole;

    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        head.counts[kind] = answer->counts[kind];
        bytes += answer->counts[kind] * sizeof(**answer->lists);
    }
    whole = bytes > most ? NULL : malloc((size_t)bytes);
    if (whole == NULL) {
        return bytes > most ? -E2BIG : -ENOMEM;
    }
    *ret_bytes = whole;
    *ret_count = bytes;
    memcpy(whole, &head, sizeof(head));
    whole += sizeof(head);
    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        size_t list = (size_t)answer->counts[kind] * sizeof(**answer->lists);

        if (list > 0) {
            memcpy(whole, answer->lists[kind], list);
        }
        whole += list;
    }
    if (answer->text_bytes > 0) {
        memcpy(whole, answer->text, (size_t)answer->text_bytes);
    }
    return 0;
}

static int answer_symbols(Elf *elf, uint64_t most, void **ret_bytes,
                          uint64_t *ret_count)
{
    struct answer answer = {.left_bytes = most};
    int result = read_symbols(&answer, elf);

    if (result == 0) {
        result = join(&answer, most, ret_bytes, ret_count);
    }
    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        free(answer.lists[kind]);
    }
    free(answer.text);
    return result;
}

static int answer_segments(Elf *elf, void **ret_bytes, uint64_t *ret_count)
{
    struct seep_symbol_segments *segments = malloc(sizeof(*segments));

    if (segments == NULL) {
        return -ENOMEM;
    }
    read_segments(elf, segments);
    *ret_bytes = segments;
    *ret_count = sizeof(*segments);
    return 0;
}

static int answer_name(const char *name, void **ret_bytes, uint64_t *ret_count)
{
    char *text = malloc(SEEP_DEMANGLE_TEXT_MAX);

    if (text == NULL) {
        return -ENOMEM;
    }
    if (!seep_demangle(name, text, SEEP_DEMANGLE_TEXT_MAX)) {
        free(text);
        return -ENOENT;
    }
    *ret_bytes = text;
    *ret_count = strlen(text) + 1;
    return 0;
}

static int read_file(void *context, const char *path, uint32_t what,
                     uint64_t most, void **ret_bytes, uint64_t *ret_count)
{
    int result;
    Elf *elf;
    int fd;

    (void)context;
    if (what == NAME) {
        return answer_name(path, ret_bytes, ret_count);
    }
    result = open_elf(path, &fd, &elf);
    if (result != 0) {
        return result;
    }
    result = what == SEGMENTS ? answer_segments(elf, ret_bytes, ret_count)
                              : answer_symbols(elf, most, ret_bytes, ret_count);
    elf_end(elf);
    close(fd);
    return result;
}

/*
 * Before it.
 */

struct seep_wall seep_symbol_tables_wall(void)
{
    return (struct seep_wall){.read = read_file};
}

static int ask(struct seep_wall *wall, const struct seep_wall_request *request,
               enum what what, struct seep_wall_spent *spent, void **ret_bytes,
               uint64_t *ret_count)
{
    struct seep_wall_request asked = *request;

    asked.what = what;
    return seep_wall_request(wall, &asked, spent, ret_bytes, ret_count);
}

/* Are these entries in order, with names that are there? */
static bool are_sound(const struct seep_symbol_entry *entries, uint64_t count,
                      uint64_t text_bytes)
{
    for (uint64_t i = 0; i < count; i++) {
        if (entries[i].name >= text_bytes ||
            (i > 0 && entries[i].address < entries[i - 1].address)) {
            return false;
        }
    }
    return true;
}

/* Someone else may have made it. */
static int check(struct seep_symbol_table *table)
{
    struct head head;
    const char *at = table->bytes;
    uint64_t left = table->byte_count;

    if (left < sizeof(head)) {
        return -EBADMSG;
    }
    memcpy(&head, at, sizeof(head));
    at += sizeof(head);
    left -= sizeof(head);
    if (head.text_bytes > left ||
        (head.text_bytes > 0 && at[left - 1] != '\0')) {
        return -EBADMSG;
    }
    left -= head.text_bytes;
    for (int kind = 0; kind < SEEP_SYMBOL_KINDS; kind++) {
        const struct seep_symbol_entry *entries =
            (const struct seep_symbol_entry *)(const void *)at;
        uint64_t count = head.counts[kind];

        if (count > left / sizeof(*entries) ||
            !are_sound(entries, count, head.text_bytes)) {
            return -EBADMSG;
        }
        table->entries[kind] = entries;
        table->counts[kind] = (size_t)count;
        at += count * sizeof(*entries);
        left -= count * sizeof(*entries);
    }
    table->texts = at;
    return left == 0 ? 0 : -EBADMSG;
}

int seep_symbol_table_ask(struct seep_wall *wall,
                          const struct seep_wall_request *request,
                          struct seep_wall_spent *spent,
                          struct seep_symbol_table *ret_table)
{
    struct seep_symbol_table table = {0};
    int result =
        ask(wall, request, SYMBOLS, spent, &table.bytes, &table.byte_count);

    if (result == 0) {
        result = check(&table);
    }
    if (result != 0) {
        free(table.bytes);
        return result;
    }
    *ret_table = table;
    return 0;
}

void seep_symbol_table_fini(struct seep_symbol_table *table)
{
    free(table->bytes);
    *table = (struct seep_symbol_table){0};
}

int seep_symbol_segments_ask(struct seep_wall *wall,
                             const struct seep_wall_request *request,
                             struct seep_wall_spent *spent,
                             struct seep_symbol_segments *ret_segments)
{
    struct seep_wall_request asked = *request;
    void *bytes = NULL;
    uint64_t count = 0;
    int result;

    asked.most_bytes = sizeof(*ret_segments);
    result = ask(wall, &asked, SEGMENTS, spent, &bytes, &count);
    if (result == 0 && count != sizeof(*ret_segments)) {
        result = -EBADMSG;
    }
    if (result == 0) {
        memcpy(ret_segments, bytes, sizeof(*ret_segments));
    }
    free(bytes);
    return result;
}

int seep_symbol_name_ask(struct seep_wall *wall,
                         const struct seep_wall_request *request,
                         struct seep_wall_spent *spent, char *ret_text,
                         size_t capacity)
{
    struct seep_wall_request asked = *request;
    void *bytes = NULL;
    uint64_t count = 0;
    int result;

    asked.most_bytes = SEEP_DEMANGLE_TEXT_MAX;
    result = ask(wall, &asked, NAME, spent, &bytes, &count);
    if (result == 0) {
        snprintf(ret_text, capacity, "%.*s", (int)count, (const char *)bytes);
    }
    free(bytes);
    return result;
}
