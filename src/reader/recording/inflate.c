/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a pack, inflated: see pack.h.
 *
 * Invariant: no more comes out than the directory says, which is bounded, and
 * nothing of it is believed before it was checked; a recording goes into memory
 * that only its reader has, where it is read as any other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "format/layout.h"
#include "reader/recording/pack.h"

#define CHUNK_BYTES ((size_t)256 << 10)

struct inflater {
    const struct seep_pack *pack;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    uint64_t at_bytes;     /* of the file, to read next */
    uint64_t stored_bytes; /* that are left there */
    uint64_t left_bytes;   /* to come out */
    bool ended;
    char stored[CHUNK_BYTES];
};

static int begin(const struct seep_pack *pack,
                 const struct seep_pack_part *part,
                 struct inflater **ret_inflater)
{
    struct inflater *inflater = calloc(1, sizeof(*inflater));

    if (inflater == NULL) {
        return -ENOMEM;
    }
    inflater->stream = ZSTD_createDStream();
    if (inflater->stream == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(
            inflater->stream, ZSTD_d_windowLogMax, SEEP_PACK_WINDOW_LOG2))) {
        ZSTD_freeDStream(inflater->stream);
        free(inflater);
        return -ENOMEM;
    }
    inflater->pack = pack;
    inflater->in.src = inflater->stored;
    inflater->at_bytes = part->offset_bytes;
    inflater->stored_bytes = part->stored_bytes;
    inflater->left_bytes = part->bytes;
    *ret_inflater = inflater;
    return 0;
}

static void finish(struct inflater *inflater)
{
    ZSTD_freeDStream(inflater->stream);
    free(inflater);
}

static int refill(struct inflater *inflater)
{
    size_t bytes = inflater->stored_bytes < CHUNK_BYTES
                       ? (size_t)inflater->stored_bytes
                       : CHUNK_BYTES;
    int error;

    if (bytes == 0) {
        return -EBADMSG;
    }
    error = seep_open_read_whole(inflater->pack->fd, inflater->stored,
                                 inflater->at_bytes, bytes);
    inflater->at_bytes += bytes;
    inflater->stored_bytes -= bytes;
    inflater->in.size = bytes;
    inflater->in.pos = 0;
    return error;
}

/* @bytes into @to, exactly. */
static int take(struct inflater *inflater, void *to, size_t bytes)
{
    ZSTD_outBuffer out = {.dst = to, .size = bytes};

    if (bytes > inflater->left_bytes) {
        return -EBADMSG;
    }
    while (out.pos < out.size) {
        size_t before = out.pos;
        size_t result =
            ZSTD_decompressStream(inflater->stream, &out, &inflater->in);

        if (ZSTD_isError(result) || (result == 0 && out.pos < out.size)) {
            return -EBADMSG;
        }
        inflater->ended = result == 0;
        if (out.pos == before && inflater->in.pos == inflater->in.size) {
            int error = refill(inflater);

            if (error != 0) {
                return error;
            }
        }
    }
    inflater->left_bytes -= bytes;
    return 0;
}

/* The checksum stands behind the last byte. */
static int check_end(struct inflater *inflater)
{
    ZSTD_outBuffer none = {.dst = NULL, .size = 0};

    if (inflater->left_bytes != 0) {
        return -EBADMSG;
    }
    while (!inflater->ended) {
        size_t result =
            ZSTD_decompressStream(inflater->stream, &none, &inflater->in);

        if (ZSTD_isError(result)) {
            return -EBADMSG;
        }
        inflater->ended = result == 0;
        if (!inflater->ended) {
            int error = inflater->in.pos == inflater->in.size ? refill(inflater)
                                                              : -EBADMSG;
            if (error != 0) {
                return error;
            }
        }
    }
    return 0;
}

int seep_pack_inflate(const struct seep_pack *pack,
                      const struct seep_pack_part *part, void **ret_bytes)
{
    struct inflater *inflater;
    char *bytes;
    int error = begin(pack, part, &inflater);

    if (error != 0) {
        return error;
    }
    bytes = malloc((size_t)part->bytes + 1);
    error =
        bytes == NULL ? -ENOMEM : take(inflater, bytes, (size_t)part->bytes);
    if (error == 0) {
        error = check_end(inflater);
    }
    finish(inflater);
    if (error != 0) {
        free(bytes);
        return error;
    }
    bytes[part->bytes] = '\0';
    *ret_bytes = bytes;
    return 0;
}

/* Recordings. */

/* What is zero needs no memory, whatever it said that it would inflate to. */
static int put_extent(struct inflater *inflater, int fd, char *chunk,
                      const struct seep_pack_extent *extent)
{
    int error = 0;

    for (uint64_t done = 0; error == 0 && done < extent->bytes;) {
        uint64_t left = extent->bytes - done;
        size_t bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;

        error = take(inflater, chunk, bytes);
        if (error == 0 && !seep_pack_is_zero(chunk, bytes)) {
            error =
                seep_open_write(fd, chunk, extent->offset_bytes + done, bytes);
        }
        done += bytes;
    }
    return error;
}

static bool are_extents(const struct seep_pack_image *image,
                        const struct seep_pack_extent *extents)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < image->extent_count; i++) {
        if (extents[i].offset_bytes < end || extents[i].bytes == 0 ||
            extents[i].offset_bytes > image->file_bytes ||
            extents[i].bytes > image->file_bytes - extents[i].offset_bytes) {
            return false;
        }
        end = extents[i].offset_bytes + extents[i].bytes;
    }
    return true;
}

static int put_extents(struct inflater *inflater, int fd,
                       const struct seep_pack_image *image)
{
    struct seep_pack_extent *extents =
        calloc((size_t)image->extent_count + 1, sizeof(*extents));
    char *chunk = malloc(CHUNK_BYTES);
    int error =
        extents == NULL || chunk == NULL
            ? -ENOMEM
            : take(inflater, extents, image->extent_count * sizeof(*extents));

    if (error == 0 && !are_extents(image, extents)) {
        error = -EBADMSG;
    }
    for (uint32_t i = 0; error == 0 && i < image->extent_count; i++) {
        error = put_extent(inflater, fd, chunk, &extents[i]);
    }
    free(extents);
    free(chunk);
    return error;
}

static int put_image(struct inflater *inflater, int fd,
                     struct seep_pack_image *image)
{
    int error = take(inflater, image, sizeof(*image));

    if (error != 0) {
        return error;
    }
    if (image->file_bytes == 0 || image->file_bytes > SEEP_LAYOUT_MOST_BYTES ||
        image->extent_count > image->file_bytes / SEEP_PAGE_BYTES + 1 ||
        image->presence >= SEEP_PACK_PRESENCE_COUNT) {
        return -EBADMSG;
    }
    if (ftruncate(fd, (off_t)image->file_bytes) != 0) {
        return -errno;
    }
    error = put_extents(inflater, fd, image);
    return error == 0 ? check_end(inflater) : error;
}

static int inflate_recording(struct seep_packed *packed, int *ret_fd)
{
    const struct seep_pack_part *part =
        seep_pack_find(packed->pack, SEEP_PACK_RECORDING, packed->process);
    struct inflater *inflater;
    int fd = memfd_create("seep-recording", MFD_CLOEXEC);
    int error;

    if (fd < 0) {
        return -errno;
    }
    error = part == NULL ? -EBADMSG : begin(packed->pack, part, &inflater);
    if (error == 0) {
        error = put_image(inflater, fd, &packed->image);
        finish(inflater);
    }
    if (error != 0) {
        close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

int seep_packed_open(const char *path, struct seep_refusal *ret_refusal,
                     int *ret_fd, uint64_t *ret_size_bytes,
                     struct seep_packed *ret_packed)
{
    struct seep_packed packed = {.pack = NULL};
    int error = seep_open_file(path, NULL, ret_fd, ret_size_bytes);

    if (error == 0 && !seep_pack_begins(*ret_fd)) {
        *ret_packed = packed;
        return 0;
    }
    if (error == 0) {
        close(*ret_fd);
    }
    error = seep_pack_open(path, ret_refusal, &packed.pack, &packed.process);
    if (error == -ENOENT) { /* it is no pack, and no file: once more, why? */
        *ret_packed = packed;
        return seep_open_file(path, ret_refusal, ret_fd, ret_size_bytes);
    }
    if (error != 0) {
        return error;
    }
    error = inflate_recording(&packed, ret_fd);
    if (error != 0) {
        seep_pack_close(packed.pack);
        return seep_pack_refuse(ret_refusal, error);
    }
    *ret_size_bytes = packed.image.file_bytes;
    *ret_packed = packed;
    return 0;
}

void seep_packed_fini(struct seep_packed *packed)
{
    seep_pack_close(packed->pack);
    *packed = (struct seep_packed){.pack = NULL};
}
