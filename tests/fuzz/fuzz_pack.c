/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for packs. The first byte says what the rest is: the names
 * of one, inflated; what a recording in it inflates to; or a directory. Of the
 * latter two a whole pack is made, with the hash that it must have: nobody
 * would guess that, nor what zstd makes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "reader/recording/pack.h"
#include "reader/symbols/packed.h"

#define NAMES 'n'
#define IMAGE 'i'
#define NAME "x.seep"
#define DIRECTORY_BYTES 4096U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_names(const uint8_t *data, size_t size)
{
    struct seep_symbol_pack *pack;
    struct seep_packed_name name;
    uint32_t module = 0;
    uint32_t answer = 0;
    char *copy = malloc(size + 1);

    if (copy == NULL) {
        return;
    }
    memcpy(copy, data, size);
    if (seep_symbol_pack_open(copy, size, &pack) != 0) {
        free(copy);
        return;
    }
    for (unsigned i = 0;
         i < 4096 && seep_symbol_pack_next(pack, &module, &answer, &name);
         i++) {
        struct seep_symbol_module asked = {name.path, name.module->build_id,
                                           name.module->build_id_bytes};
        struct seep_symbol_answer found;

        if (name.answer.count == 0 ||
            strlen(name.answer.frames[0].function) >=
                SEEP_PACKED_TEXT_BYTES_MAX ||
            seep_symbol_pack_module(pack, &asked, name.module->is_map != 0) ==
                NULL) {
            abort();
        }
        (void)seep_symbol_pack_find(pack, name.module, name.offset, &found);
    }
    seep_symbol_pack_close(pack);
}

static void write_at(int fd, const void *bytes, size_t count, uint64_t offset)
{
    if (seep_open_write(fd, bytes, offset, count) != 0) {
        abort();
    }
}

/* One part, that what it says is really there. */
static void make_pack(int fd, const uint8_t *data, size_t size)
{
    struct {
        struct seep_pack_header header;
        struct seep_pack_part part;
        char name[sizeof(NAME)];
    } directory = {
        .header = {.magic = SEEP_PACK_MAGIC,
                   .version = SEEP_PACK_VERSION,
                   .byte_order = SEEP_BYTE_ORDER,
                   .header_bytes = sizeof(struct seep_pack_header),
                   .part_count = 1,
                   .process_count = 1,
                   .names_bytes = sizeof(NAME)},
        .part = {.kind = SEEP_PACK_RECORDING,
                 .offset_bytes = DIRECTORY_BYTES,
                 .bytes = size},
        .name = NAME,
    };
    size_t bytes = offsetof(__typeof__(directory), name) + sizeof(NAME);
    size_t most = ZSTD_compressBound(size);
    void *stored = malloc(most);
    size_t stored_bytes = ZSTD_compress(stored, most, data, size, 1);

    if (stored == NULL || ZSTD_isError(stored_bytes)) {
        abort();
    }
    directory.part.stored_bytes = stored_bytes;
    directory.header.pack_bytes = DIRECTORY_BYTES + stored_bytes;
    directory.header.hash = seep_hash_bytes(&directory, bytes);
    write_at(fd, &directory, bytes, 0);
    write_at(fd, stored, stored_bytes, DIRECTORY_BYTES);
    free(stored);
}

/* As it is, but for magic and hash. */
static void mend_pack(int fd, const uint8_t *data, size_t size)
{
    struct seep_pack_header header = {.magic = ""};
    uint64_t bytes;
    char *copy = malloc(size + 1);

    if (copy == NULL || size < sizeof(header)) {
        free(copy);
        return;
    }
    memcpy(copy, data, size);
    memcpy(&header, copy, sizeof(header));
    memcpy(header.magic, SEEP_PACK_MAGIC, sizeof(header.magic));
    header.hash = 0;
    memcpy(copy, &header, sizeof(header));
    bytes = sizeof(header) +
            header.part_count * (uint64_t)sizeof(struct seep_pack_part) +
            header.names_bytes;
    if (bytes <= size) {
        header.hash = seep_hash_bytes(copy, (size_t)bytes);
        memcpy(copy, &header, sizeof(header));
    }
    write_at(fd, copy, size, 0);
    free(copy);
}

static void read_pack(const char *path)
{
    struct seep_open_list list = {.paths = NULL};
    struct seep_refusal refusal = {0};
    struct seep_packed packed;
    uint64_t size_bytes;
    int fd;

    if (seep_pack_list(path, &refusal, &list) != 0 &&
        refusal.reason[0] == '\0' && seep_pack_is(path)) {
        abort(); /* who asks is told why */
    }
    for (size_t i = 0; i < list.count; i++) {
        if (seep_packed_open(list.paths[i], &refusal, &fd, &size_bytes,
                             &packed) == 0) {
            close(fd);
            seep_packed_fini(&packed);
        }
    }
    seep_report_list_free(list.paths);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];

    if (fd < 0) {
        fd = memfd_create("seep-fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (size == 0 || ftruncate(fd, 0) != 0) {
        return 0;
    }
    if (data[0] == NAMES) {
        read_names(data + 1, size - 1);
        return 0;
    }
    if (data[0] == IMAGE && size > 1) {
        make_pack(fd, data + 1, size - 1);
    } else {
        mend_pack(fd, data + 1, size - 1);
    }
    read_pack(path);
    return 0;
}
