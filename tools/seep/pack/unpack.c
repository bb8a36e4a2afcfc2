/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pack taken apart: see pack.h.
 *
 * Invariant: only what is in the folder that was given is written, and behind
 * no link: a pack says how its files are called, and may come from anyone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "pack/pack.h"
#include "reader/recording/pack.h"
#include "words/clean.h"

#define CHUNK_BYTES ((size_t)256 << 10)

struct unpacking {
    const char *folder;
    bool replace;
    void (*wrote)(const char *path);
    char *at; /* the path that is being written */
    int fd;
};

static int create(struct unpacking *unpacking, const char *name,
                  const char *suffix)
{
    struct stat status;

    free(unpacking->at);
    unpacking->at = NULL;
    if (asprintf(&unpacking->at, "%s/%s%s", unpacking->folder, name, suffix) <
        0) {
        unpacking->at = NULL;
        return -ENOMEM;
    }
    if (unpacking->replace && lstat(unpacking->at, &status) == 0) {
        /* A device or a FIFO that gave way to a file would be missed. */
        if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
            return -EEXIST;
        }
        if (unlink(unpacking->at) != 0) {
            return -errno;
        }
    }
    unpacking->fd =
        open(unpacking->at,
             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return unpacking->fd < 0 ? -errno : 0;
}

/* What is not whole does not stay. @return @error, or one of its own */
static int finish(struct unpacking *unpacking, int error)
{
    if (unpacking->fd >= 0 && close(unpacking->fd) != 0 && error == 0) {
        error = -errno;
    }
    if (unpacking->fd >= 0 && error != 0) {
        unlink(unpacking->at);
    }
    unpacking->fd = -1;
    if (error == 0) {
        unpacking->wrote(unpacking->at);
    }
    return error;
}

/* Holes stay holes. */
static int copy(int from, int to, uint64_t size_bytes)
{
    char *chunk = malloc(CHUNK_BYTES);
    uint64_t at = 0;
    int error = chunk == NULL ? -ENOMEM : 0;

    if (error == 0 && ftruncate(to, (off_t)size_bytes) != 0) {
        error = -errno;
    }
    while (error == 0 && at < size_bytes) {
        off_t data = lseek(from, (off_t)at, SEEK_DATA);
        ssize_t got;

        if (data < 0) {
            error = errno == ENXIO ? 0 : -errno;
            break;
        }
        got = seep_open_read(from, chunk, (uint64_t)data, CHUNK_BYTES);
        error = got < 0
                    ? (int)got
                    : seep_open_write(to, chunk, (uint64_t)data, (uint64_t)got);
        at = (uint64_t)data + (uint64_t)(got > 0 ? got : 0);
    }
    free(chunk);
    return error;
}

/* A part that is the text of a file beside the recording. */
static int unpack_text(struct unpacking *unpacking,
                       const struct seep_packed *packed, const char *name,
                       enum seep_pack_kind kind, const char *suffix)
{
    const struct seep_pack_part *part =
        seep_pack_find(packed->pack, kind, packed->process);
    void *text;
    int error;

    if (part == NULL) {
        return 0;
    }
    error = seep_pack_inflate(packed->pack, part, &text);
    if (error != 0) {
        return error;
    }
    error = create(unpacking, name, suffix);
    if (error == 0) {
        error = finish(unpacking,
                       seep_open_write(unpacking->fd, text, 0, part->bytes));
    }
    free(text);
    return error;
}

static int unpack_one(struct unpacking *unpacking, const char *path,
                      struct seep_refusal *ret_refusal)
{
    struct seep_packed packed;
    const char *name;
    uint64_t size_bytes;
    int fd;
    int error = seep_packed_open(path, ret_refusal, &fd, &size_bytes, &packed);

    if (error != 0) {
        return error;
    }
    name = packed.pack->names[packed.process];
    error = create(unpacking, name, "");
    if (error == 0) {
        error = finish(unpacking, copy(fd, unpacking->fd, size_bytes));
    }
    if (error == 0) {
        error = unpack_text(unpacking, &packed, name, SEEP_PACK_SAMPLES,
                            SEEP_EXTERNAL_SUFFIX);
    }
    if (error == 0) {
        error = unpack_text(unpacking, &packed, name, SEEP_PACK_HELD,
                            SEEP_HELD_SUFFIX);
    }
    close(fd);
    seep_packed_fini(&packed);
    return error;
}

/* Names. */

static json_t *make_text(const char *text)
{
    char *valid = seep_clean_for_json(text);
    json_t *value = json_string(valid != NULL ? valid : "");

    free(valid);
    return value;
}

static json_t *make_frames(const struct seep_symbol_answer *answer)
{
    json_t *frames = json_array();

    for (size_t i = 0; i < answer->count; i++) {
        const struct seep_symbol_frame *frame = &answer->frames[i];

        json_array_append_new(frames,
                              json_pack("{s:o, s:o, s:I, s:b}", "function",
                                        make_text(frame->function), "file",
                                        make_text(frame->file), "line",
                                        (json_int_t)frame->line, "inlined",
                                        frame->inlined));
    }
    return frames;
}

static int put_name(FILE *file, const struct seep_packed_name *name)
{
    char id[2 * SEEP_BUILD_ID_MAX + 1] = "";
    char offset[24];
    json_t *line;
    int error = 0;

    for (uint32_t i = 0; i < name->module->build_id_bytes; i++) {
        snprintf(id + 2 * i, 3, "%02x", name->module->build_id[i]);
    }
    snprintf(offset, sizeof(offset), "0x%" PRIx64, name->offset);
    line = json_pack("{s:o, s:s, s:s, s:o}", "module", make_text(name->path),
                     "build_id", id, "offset", offset, "frames",
                     make_frames(&name->answer));
    if (line == NULL || json_dumpf(line, file, JSON_COMPACT) != 0 ||
        fputc('\n', file) == EOF) {
        error = -ENOSPC;
    }
    json_decref(line);
    return error;
}

static int put_names(struct unpacking *unpacking, struct seep_symbol_pack *pack)
{
    struct seep_packed_name name;
    FILE *file = fdopen(unpacking->fd, "w");
    uint32_t module = 0;
    uint32_t answer = 0;
    int error = 0;

    if (file == NULL) {
        return -errno;
    }
    while (error == 0 && seep_symbol_pack_next(pack, &module, &answer, &name)) {
        error = put_name(file, &name);
    }
    unpacking->fd = dup(unpacking->fd); /* fclose() takes the other */
    return fclose(file) != 0 && error == 0 ? -errno : error;
}

static int unpack_names(struct unpacking *unpacking,
                        const struct seep_pack *pack, const char *path)
{
    struct seep_symbol_pack *names;
    int error = seep_symbol_pack_load(pack, &names);

    if (error != 0) {
        return error;
    }
    error = create(unpacking, seep_text_base_name(path), ".names.jsonl");
    if (error == 0) {
        error = finish(unpacking, put_names(unpacking, names));
    }
    seep_symbol_pack_close(names);
    return error;
}

static int unpack_all(struct unpacking *unpacking, const char *path,
                      struct seep_refusal *ret_refusal)
{
    struct seep_open_list list = {.paths = NULL};
    struct seep_pack *pack;
    int error = seep_pack_open(path, ret_refusal, &pack, NULL);

    if (error == -ENOENT) {
        return seep_open_refuse(ret_refusal, error, "is not a pack",
                                "give a file that `seep pack` wrote");
    }
    if (error != 0) {
        return error;
    }
    error = seep_pack_list(path, ret_refusal, &list);
    for (size_t i = 0; error == 0 && i < list.count; i++) {
        error = unpack_one(unpacking, list.paths[i], ret_refusal);
    }
    if (error == 0) {
        error = unpack_names(unpacking, pack, path);
    }
    if (error == 0) {
        error = unpack_text(
            unpacking,
            &(struct seep_packed){.pack = pack, .process = UINT32_MAX},
            seep_text_base_name(path), SEEP_PACK_SOURCE, ".source.txt");
    }
    seep_report_list_free(list.paths);
    seep_pack_close(pack);
    return error;
}

int seep_pack_unpack(const char *path, const char *folder, bool replace,
                     void (*wrote)(const char *path), char **ret_failed,
                     struct seep_refusal *ret_refusal)
{
    struct unpacking unpacking = {
        .folder = folder, .replace = replace, .wrote = wrote, .fd = -1};
    int error = unpack_all(&unpacking, path, ret_refusal);

    if (error != 0) {
        *ret_failed = unpacking.at;
    } else {
        free(unpacking.at);
    }
    return error;
}
