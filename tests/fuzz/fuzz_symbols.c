/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for names and lines: the input is an object file, asked for
 * as many addresses as a report has of one library, for members of some classes
 * and variables, and for all its symbols. libdw itself is not instrumented:
 * what is found in it is found by its crash, or its memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader/symbols/members.h"
#include "reader/symbols/module.h"
#include "reader/symbols/tables.h"

#define ASKED 24U
#define TABLE_BYTES_MOST (UINT64_C(1) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the corpus has of classes, and where its variables lie. */
static void ask_members(const struct seep_symbolise_dwarf *dwarf)
{
    static const char *const classes[] = {"4Base", "3BoxI4nodeE", "", ""};
    static const uint64_t variables[] = {0, 0, 0x17e0, 0x1820};
    struct seep_symbolise_members members = {.entries = NULL};
    struct seep_symbolise_member found[SEEP_SYMBOL_HOPS_MOST];

    for (size_t i = 0; i < 4; i++) {
        for (uint64_t offset = 0; offset < 64; offset += 8) {
            const struct seep_symbol_thing thing = {
                .class_symbol = classes[i],
                .address = variables[i],
                .hops = {{offset, 64}, {8, 64}, {24, 1000}},
                .hop_count = 3,
            };

            if (seep_symbolise_members_find(&members, dwarf, &thing, found) ==
                    0 &&
                (strnlen(found[0].path, sizeof(found[0].path)) ==
                     sizeof(found[0].path) ||
                 strnlen(found[2].type, sizeof(found[2].type)) ==
                     sizeof(found[2].type))) {
                abort();
            }
        }
    }
    seep_symbolise_members_fini(&members);
}

static void ask(struct seep_symbolise_file *file)
{
    struct seep_symbolise_elf elf = {.symbols = {.ranges = NULL}};
    struct seep_symbolise_dwarf dwarf = {.dwarf = NULL};
    struct seep_symbolise_place places[SEEP_SYMBOLISE_PLACES_MAX];

    if (seep_symbolise_elf_init(file->module, &elf) == 0 &&
        seep_symbolise_dwarf_init(file->module, &dwarf) == 0) {
        for (uint64_t i = 0; i < ASKED; i++) {
            size_t count = 0;

            (void)seep_symbolise_elf_find(&elf, 0x1000 + i * 9);
            if (seep_symbolise_dwarf_find(&dwarf, 0x1000 + i * 9, places,
                                          &count) == 0 &&
                count > SEEP_SYMBOLISE_PLACES_MAX) {
                abort();
            }
        }
        if (dwarf.dwarf != NULL) {
            ask_members(&dwarf);
        }
    }
    seep_symbolise_dwarf_fini(&dwarf);
    seep_symbolise_elf_fini(&elf);
}

/* What the wall would answer, and its check of it. */
static void ask_tables(const char *path)
{
    struct seep_wall wall = seep_symbol_tables_wall();
    const struct seep_wall_request request = {.path = path,
                                              .most_bytes = TABLE_BYTES_MOST};
    struct seep_wall_spent spent = {0};
    struct seep_symbol_segments segments;
    struct seep_symbol_table table;
    int error;

    wall.is_absent = true;
    (void)seep_symbol_segments_ask(&wall, &request, &spent, &segments);
    error = seep_symbol_table_ask(&wall, &request, &spent, &table);
    if (error == -EBADMSG ||
        (error == 0 && table.byte_count > TABLE_BYTES_MOST)) {
        abort();
    }
    if (error == 0) {
        seep_symbol_table_fini(&table);
    }
    seep_wall_fini(&wall);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    const struct seep_symboliser_options options = {.perf_map = NULL};
    const struct seep_symbol_module module = {.path = path};
    struct seep_symbolise_file file = {.dwfl = NULL};

    if (fd < 0) {
        fd = memfd_create("seep-fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) {
        abort();
    }
    if (seep_symbolise_file_init(&module, &options, &file) == 0) {
        ask(&file);
    }
    seep_symbolise_file_fini(&file);
    ask_tables(path);
    return 0;
}
