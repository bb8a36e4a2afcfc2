/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A pack: recordings with their names in one file, compressed, to be read
 * where neither the programs nor their libraries are. docs/pack.md has its
 * layout.
 *
 * Like a recording it is hostile input: its directory is checked whole before
 * any of it is used, and what a part says that it inflates to is bounded
 * before it is inflated.
 *
 * A pack of a folder is read as a folder is: PACK/NAME is the recording NAME
 * in it. A pack of one recording is that recording.
 *
 * Errors: 0 or negative errno; ret_* untouched on failure, save a refusal,
 * which may be NULL. Threads: one at a time.
 */
#ifndef SEEP_READER_RECORDING_PACK_H
#define SEEP_READER_RECORDING_PACK_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "reader/recording/open.h"

/*
 * The file: a header, its parts' places, the names of its recordings, and the
 * parts, each one frame of zstd with a checksum. Little-endian.
 */

#define SEEP_PACK_MAGIC "seeppack"
/* A pack is of the lowest version that has its parts: older readers take it. */
#define SEEP_PACK_VERSION 3U
#define SEEP_PACK_SUFFIX ".seeppack"

#define SEEP_PACK_PROCESSES_MAX 10000U
#define SEEP_PACK_NAME_BYTES 256U /* with its 0 */
/* What a part may become. */
#define SEEP_PACK_RECORDING_BYTES_MAX (UINT64_C(512) << 20)
#define SEEP_PACK_SAMPLES_BYTES_MAX (UINT64_C(64) << 20)
#define SEEP_PACK_NAMES_BYTES_MAX (UINT64_C(256) << 20)
#define SEEP_PACK_HELD_BYTES_MAX (UINT64_C(4) << 20)
#define SEEP_PACK_SOURCE_BYTES_MAX (UINT64_C(16) << 20)
/* And by how much it is stored: zeros become 25,000 times as much, recordings 9
 * to 220 times. */
#define SEEP_PACK_TIMES_MAX 4096U
#define SEEP_PACK_MORE_BYTES (UINT64_C(4) << 20)
#define SEEP_PACK_WINDOW_LOG2 23 /* of the decompressor: 8 MiB */

enum seep_pack_flag {
    SEEP_PACK_IS_FOLDER = 1,
    SEEP_PACK_IS_REDACTED = 2,
};

struct seep_pack_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;   /* SEEP_BYTE_ORDER */
    uint32_t header_bytes; /* of this */
    uint32_t flags;        /* of enum seep_pack_flag */
    uint32_t part_count;
    uint32_t process_count;
    uint64_t names_bytes; /* of all names of recordings, with their 0s */
    uint64_t pack_bytes;  /* of the file */
    uint64_t hash;        /* of all before the first part, this being 0 */
    uint64_t reserved;
};

enum seep_pack_kind {
    SEEP_PACK_RECORDING = 1, /* struct seep_pack_image, extents, their bytes */
    SEEP_PACK_SAMPLES = 2,   /* RECORDING.looks, as text */
    SEEP_PACK_NAMES = 3,     /* reader/symbols/packed.h; of all recordings */
    SEEP_PACK_HELD = 4,      /* RECORDING.held, as text; from version 2 on */
    SEEP_PACK_SOURCE = 5,    /* reader/symbols/packed.h; of all; from 3 on */
};

struct seep_pack_part {
    uint32_t kind;
    uint32_t process; /* its number; UINT32_MAX: of all */
    uint64_t offset_bytes;
    uint64_t stored_bytes;
    uint64_t bytes; /* inflated */
};

/** What a recording does not say itself, and where its bytes go. */
struct seep_pack_image {
    uint64_t file_bytes;
    uint64_t disk_bytes;
    uint64_t now_tick; /* when it was packed; 0: it had ended */
    uint32_t presence; /* then: of the process's enum, below ..._COUNT */
    uint32_t restless_shards;
    uint32_t extent_count;
    uint32_t reserved[3];
};

#define SEEP_PACK_PRESENCE_COUNT 3U

/** Ascending, apart; between them the recording is zero. */
struct seep_pack_extent {
    uint64_t offset_bytes;
    uint64_t bytes;
};

static_assert(sizeof(struct seep_pack_header) == 64, "format");
static_assert(sizeof(struct seep_pack_part) == 32, "format");
static_assert(sizeof(struct seep_pack_image) == 48, "format");
static_assert(sizeof(struct seep_pack_extent) == 16, "format");

struct seep_pack {
    int fd;
    struct seep_pack_header header;
    struct seep_pack_part *parts;
    const char **names;                    /* of its recordings */
    struct seep_pack_directory *directory; /* that these lie in */
};

/** As stat(): of the pack, where @path lies in one. @return 0 or -errno */
int seep_pack_stat(const char *path, struct stat *ret_status);

/** Is @path a file that begins as a pack does? */
bool seep_pack_is(const char *path);
bool seep_pack_begins(int fd);

/**
 * Open the pack that @path is, or lies in.
 *
 * @param ret_process  which of its recordings @path is; 0 where it has one
 * @return -ENOENT, without a refusal: @path is in no pack
 */
int seep_pack_open(const char *path, struct seep_refusal *ret_refusal,
                   struct seep_pack **ret_pack, uint32_t *ret_process);
/** NULL is fine. */
void seep_pack_close(struct seep_pack *pack);

/** The part of @kind, of @process or UINT32_MAX; NULL: there is none. */
const struct seep_pack_part *seep_pack_find(const struct seep_pack *pack,
                                            enum seep_pack_kind kind,
                                            uint32_t process);

/** Add the paths of its recordings. */
int seep_pack_list(const char *path, struct seep_refusal *ret_refusal,
                   struct seep_open_list *list);

/** The reason why a pack cannot be used, for @error. @return @error */
int seep_pack_refuse(struct seep_refusal *ret_refusal, int error);

static inline bool seep_pack_is_zero(const char *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

/*
 * What needs zstd: inflate.c.
 */

/** @return a whole part, with a 0 behind it, to be freed; -EBADMSG */
int seep_pack_inflate(const struct seep_pack *pack,
                      const struct seep_pack_part *part, void **ret_bytes);

/** A recording of a pack, as a file that has no name. */
struct seep_packed {
    struct seep_pack *pack; /* NULL: it is a plain recording */
    uint32_t process;
    struct seep_pack_image image;
};

/**
 * Open the recording at @path: a file, or of a pack.
 *
 * @param ret_packed  give it to seep_packed_fini()
 */
int seep_packed_open(const char *path, struct seep_refusal *ret_refusal,
                     int *ret_fd, uint64_t *ret_size_bytes,
                     struct seep_packed *ret_packed);
void seep_packed_fini(struct seep_packed *packed);

#endif
