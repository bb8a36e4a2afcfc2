/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings into a pack: see pack.h and reader/recording/pack.h.
 *
 * Invariant: the file is there whole or not at all, and a name that is taken
 * is left alone. One recording is in memory at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "base/text.h"
#include "pack/pack.h"
#include "reader/process/cgroup.h"
#include "reader/recording/pack.h"
#include "reader/recording/snapshot.h"
#include "reader/recording/store.h"
#include "reader/symbols/names.h"

#define LEVEL 9
#define OUT_BYTES ((size_t)256 << 10)

struct writer {
    const struct seep_pack_options *options;
    int fd;
    ZSTD_CCtx *context;
    char *out;
    uint64_t at_bytes; /* where the next part begins */
    struct seep_pack_part *parts;
    uint32_t part_count;
    bool has_held; /* parts that older readers do not know */
    bool has_source;
    char (*names)[SEEP_PACK_NAME_BYTES];
    uint32_t process_count;
    struct seep_store store;       /* of the keys of */
    struct seep_store_table taken; /* names: to the number of the next + 1 */
    struct seep_redaction redaction;
    struct seep_naming *naming;
    struct seep_sourcing sourcing;
    struct seep_symbol_memory *memory;
    bool was_redacted; /* what was packed before */
    struct seep_pack_outcome outcome;
};

/* Parts. */

static int deflate(struct writer *writer, const void *bytes, size_t count,
                   ZSTD_EndDirective how)
{
    ZSTD_inBuffer in = {bytes, count, 0};
    size_t left;
    int error = 0;

    writer->parts[writer->part_count].bytes += count;
    do {
        ZSTD_outBuffer out = {writer->out, OUT_BYTES, 0};

        left = ZSTD_compressStream2(writer->context, &out, &in, how);
        if (ZSTD_isError(left)) {
            return -ENOMEM;
        }
        error =
            seep_open_write(writer->fd, writer->out, writer->at_bytes, out.pos);
        writer->at_bytes += out.pos;
    } while (error == 0 && (how == ZSTD_e_end ? left != 0 : in.pos < in.size));
    return error;
}

static int begin(struct writer *writer, enum seep_pack_kind kind,
                 uint32_t process)
{
    ZSTD_CCtx_reset(writer->context, ZSTD_reset_session_only);
    writer->parts[writer->part_count] = (struct seep_pack_part){
        .kind = kind,
        .process = process,
        .offset_bytes = writer->at_bytes,
    };
    return 0;
}

static int end(struct writer *writer)
{
    struct seep_pack_part *part = &writer->parts[writer->part_count];
    int error = deflate(writer, "", 0, ZSTD_e_end);

    part->stored_bytes = writer->at_bytes - part->offset_bytes;
    writer->part_count++;
    return error;
}

static int put_part(struct writer *writer, enum seep_pack_kind kind,
                    uint32_t process, const void *bytes, size_t count)
{
    int error = begin(writer, kind, process);

    if (error == 0) {
        error = deflate(writer, bytes, count, ZSTD_e_continue);
    }
    return error == 0 ? end(writer) : error;
}

/* A recording. */

static bool is_dead(const struct seep_rec_header *header)
{
    return seep_process_presence_of(header, NULL) == SEEP_PRESENCE_AWAY;
}

/*
 * Which pages of the copy were touched: most of a recording is a hole, and each
 * page of it that is read is one that the system makes, 16,384 of 64 MiB.
 */

#define WINDOW_PAGES 512U
#define TOUCHED_SHIFT 62 /* of an entry of pagemap: it is there, or in swap */

struct touched {
    int fd; /* below 0: it is not known */
    uint64_t page_bytes;
    uint64_t first; /* page of the entries */
    bool is_known;
    uint64_t entries[WINDOW_PAGES];
};

static bool is_touched(struct touched *touched, const void *at)
{
    uint64_t page = (uintptr_t)at / touched->page_bytes;

    if (touched->fd < 0) {
        return true;
    }
    if (touched->first == 0 || page - touched->first >= WINDOW_PAGES) {
        touched->first = page;
        touched->is_known =
            pread(touched->fd, touched->entries, sizeof(touched->entries),
                  (off_t)(page * sizeof(touched->entries[0]))) ==
            (ssize_t)sizeof(touched->entries);
    }
    return !touched->is_known ||
           touched->entries[page - touched->first] >> TOUCHED_SHIFT != 0;
}

/* The pages that are not zero. @return how many extents; @ret_bytes in them */
static uint32_t find_extents(const struct seep_snapshot *snapshot,
                             struct seep_pack_extent *extents,
                             uint64_t *ret_bytes)
{
    uint64_t all = snapshot->file_bytes;
    uint32_t count = 0;
    uint64_t end = 0;
    struct touched touched = {
        .fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
    };

    *ret_bytes = 0;
    for (uint64_t at = 0; at < all; at += SEEP_PAGE_BYTES) {
        const char *page = (const char *)snapshot->bytes + at;
        uint64_t bytes =
            all - at < SEEP_PAGE_BYTES ? all - at : SEEP_PAGE_BYTES;

        if (!is_touched(&touched, page) || seep_pack_is_zero(page, bytes)) {
            continue;
        }
        if (count == 0 || end != at) {
            extents[count++] = (struct seep_pack_extent){at, 0};
        }
        extents[count - 1].bytes += bytes;
        *ret_bytes += bytes;
        end = at + bytes;
    }
    if (touched.fd >= 0) {
        close(touched.fd);
    }
    return count;
}

static int put_recording(struct writer *writer,
                         const struct seep_snapshot *snapshot,
                         struct seep_pack_image *image)
{
    size_t most = (size_t)(snapshot->file_bytes / SEEP_PAGE_BYTES / 2 + 1);
    struct seep_pack_extent *extents = calloc(most, sizeof(*extents));
    uint64_t bytes;
    int error;

    if (extents == NULL) {
        return -ENOMEM;
    }
    image->extent_count = find_extents(snapshot, extents, &bytes);
    error = sizeof(*image) + image->extent_count * sizeof(*extents) + bytes >
                    SEEP_PACK_RECORDING_BYTES_MAX
                ? -EFBIG
                : begin(writer, SEEP_PACK_RECORDING, writer->process_count);
    if (error == 0) {
        error = deflate(writer, image, sizeof(*image), ZSTD_e_continue);
    }
    if (error == 0) {
        error = deflate(writer, extents, image->extent_count * sizeof(*extents),
                        ZSTD_e_continue);
    }
    for (uint32_t i = 0; error == 0 && i < image->extent_count; i++) {
        error = deflate(writer,
                        (const char *)snapshot->bytes + extents[i].offset_bytes,
                        (size_t)extents[i].bytes, ZSTD_e_continue);
    }
    free(extents);
    return error == 0 ? end(writer) : error;
}

/* The recording is whole without a file beside it: what nobody can read is left
 * out. @return 0 or -ENOMEM */
static int leave_out(struct writer *writer, const char *path,
                     const char *suffix, int error)
{
    if (error == -ENOMEM) {
        return error;
    }
    if (error != -ENOENT && writer->options->left_out != NULL) {
        writer->options->left_out(path, suffix, error);
        writer->outcome.left_out_count++;
    }
    return 0;
}

static int put_samples(struct writer *writer, const char *path,
                       const struct seep_packed *packed)
{
    struct seep_external_samples samples = {.samples = NULL};
    size_t bytes = 0;
    char *text = NULL;
    FILE *file;
    int error = seep_external_samples_read_of(path, packed, &samples);

    if (error != 0) {
        return leave_out(writer, path, ".looks", error);
    }
    if (writer->options->redact) {
        error = seep_redact_samples(&writer->redaction, &samples);
    }
    file = error == 0 ? open_memstream(&text, &bytes) : NULL;
    if (error == 0 && file == NULL) {
        error = -ENOMEM;
    }
    if (file != NULL) {
        error = seep_external_samples_print(file, "", &samples);
        error = fclose(file) != 0 && error == 0 ? -ENOMEM : error;
    }
    if (error == 0) {
        error = put_part(writer, SEEP_PACK_SAMPLES, writer->process_count, text,
                         bytes);
    }
    free(text);
    seep_external_samples_fini(&samples);
    return error;
}

/* The same of who held what. */
static int put_held(struct writer *writer, const char *path,
                    const struct seep_packed *packed)
{
    struct seep_store store = {NULL};
    struct seep_held_book book;
    size_t bytes = 0;
    char *text = NULL;
    FILE *file = NULL;
    int error = seep_held_book_read_of(path, packed, &store, &book);

    if (error != 0) {
        seep_store_fini(&store);
        return leave_out(writer, path, ".held", error);
    }
    if (writer->options->redact) {
        error = seep_redact_held(&writer->redaction, &book);
    }
    file = error == 0 ? open_memstream(&text, &bytes) : NULL;
    if (error == 0 && file == NULL) {
        error = -ENOMEM;
    }
    if (file != NULL) {
        error = seep_held_book_print(file, "", &book);
        error = fclose(file) != 0 && error == 0 ? -ENOMEM : error;
    }
    if (error == 0) {
        error = put_part(writer, SEEP_PACK_HELD, writer->process_count, text,
                         bytes);
        writer->has_held = true;
    }
    free(text);
    seep_store_fini(&store);
    return error;
}

/* Names of what was packed are in that pack, and so are its lines of source,
 * which are nowhere else. */
static int add_names(struct writer *writer,
                     const struct seep_snapshot *snapshot,
                     const struct seep_packed *packed)
{
    struct seep_symboliser_options wanted = writer->options->symbols;
    struct seep_symbol_pack *pack = NULL;
    uint64_t before = writer->memory->pack_hash;
    int error =
        packed->pack == NULL
            ? 0
            : seep_symbol_pack_share(packed->pack, writer->memory, &pack);

    if (error != 0) {
        return error;
    }
    wanted.memory = writer->memory;
    wanted.pack = pack;
    error = seep_naming_add(writer->naming, &snapshot->view, &wanted,
                            writer->options->nameless);
    if (error == 0 && pack != NULL && !writer->options->redact &&
        before != writer->memory->pack_hash) {
        error = seep_sourcing_add_all(&writer->sourcing,
                                      seep_symbol_pack_sources(pack));
    }
    return error;
}

static struct seep_store_entry *find_name(struct writer *writer,
                                          const char *name)
{
    return seep_store_find(&writer->store, &writer->taken, name, strlen(name));
}

/* Of two recordings of one name, from two folders, the later has a number; of
 * ten thousand each is looked for once. @return 0 or -ENOMEM */
static int name_process(struct writer *writer, const char *name)
{
    char *to = writer->names[writer->process_count];
    char first[SEEP_PACK_NAME_BYTES];
    struct seep_store_entry *entry;
    uintptr_t number;

    snprintf(first, sizeof(first), "%.240s", name);
    strcpy(to, first);
    entry = find_name(writer, to);
    number =
        entry == NULL || entry->value == NULL ? 1 : (uintptr_t)entry->value;
    while (entry != NULL && entry->value != NULL) {
        snprintf(to, SEEP_PACK_NAME_BYTES, "%.240s.%zu", name,
                 (size_t)number++);
        entry = find_name(writer, to);
    }
    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->value = (const void *)(uintptr_t)1;
    entry = find_name(writer, first);
    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->value = (const void *)number;
    return 0;
}

static int put_all(struct writer *writer, const char *path,
                   const struct seep_packed *packed,
                   struct seep_snapshot *snapshot)
{
    struct seep_rec_header *header = snapshot->view.header;
    struct seep_pack_image image = packed->image;
    const char *name = seep_text_base_name(path);
    int error;

    if (packed->pack == NULL) {
        image.file_bytes = snapshot->file_bytes;
        image.disk_bytes = snapshot->disk_bytes;
        image.presence = (uint32_t)seep_process_presence_of(header, NULL);
        /* of one that has ended none: its pack is always the same */
        image.now_tick = image.presence == SEEP_PRESENCE_AWAY
                             ? 0
                             : seep_process_now_tick(header);
        image.restless_shards = snapshot->restless_shards;
    }
    /* names before paths are gone, which files are found by */
    error = add_names(writer, snapshot, packed);
    if (error == 0 && writer->options->redact) {
        name = seep_redact_recording(&writer->redaction, &snapshot->view);
        error = name == NULL
                    ? -ENOMEM
                    : seep_redact_view(&writer->redaction, &snapshot->view);
    }
    if (error == 0) {
        error = put_recording(writer, snapshot, &image);
    }
    if (error == 0) {
        error = name_process(writer, name);
    }
    if (error == 0) {
        error = put_samples(writer, path, packed);
    }
    if (error == 0) {
        error = put_held(writer, path, packed);
    }
    if (error == 0) {
        writer->was_redacted |=
            packed->pack != NULL &&
            (packed->pack->header.flags & SEEP_PACK_IS_REDACTED) != 0;
        writer->process_count++;
        writer->outcome.recording_bytes += image.disk_bytes;
    }
    return error;
}

/* Why @error hinders one recording alone. @return 0: it hinders them all */
static int refuse(struct seep_refusal *refusal, int error)
{
    switch (error) {
    case -EFBIG:
        return seep_open_refuse(refusal, error,
                                "holds more than 512 MiB, which no pack takes",
                                "copy the recording itself");
    case -ENOSPC:
        return 0;
    case -EBADMSG:
    case -EPROTO:
    case -ENODATA:
        return seep_pack_refuse(refusal, error);
    default:
        return 0;
    }
}

static int pack_one(struct writer *writer, const char *path,
                    struct seep_refusal *refusal)
{
    struct seep_snapshot snapshot;
    struct seep_packed packed;
    uint64_t size_bytes;
    uint32_t part_count = writer->part_count;
    uint64_t at_bytes = writer->at_bytes;
    int fd;
    int error = seep_packed_open(path, refusal, &fd, &size_bytes, &packed);

    if (error != 0) {
        return error;
    }
    error = seep_snapshot_copy(fd, size_bytes, is_dead, refusal, &snapshot);
    close(fd);
    if (error == 0) {
        error = put_all(writer, path, &packed, &snapshot);
        seep_snapshot_fini(&snapshot);
        if (error != 0) {
            refuse(refusal, error);
            writer->part_count = part_count;
            writer->at_bytes = at_bytes;
        }
    }
    seep_packed_fini(&packed);
    return error;
}

/* The whole. */

static int put_names(struct writer *writer)
{
    void *bytes;
    size_t count;
    int error = seep_naming_finish(writer->naming, &bytes, &count);

    if (error != 0) {
        return error;
    }
    error = count > SEEP_PACK_NAMES_BYTES_MAX
                ? -EFBIG
                : put_part(writer, SEEP_PACK_NAMES, UINT32_MAX, bytes, count);
    free(bytes);
    return error;
}

static int put_source(struct writer *writer)
{
    char *text;
    size_t bytes;
    int error = 0;

    if (writer->sourcing.count == 0) {
        return 0;
    }
    error = seep_sourcing_finish(&writer->sourcing, &text, &bytes);
    if (error != 0) {
        return error;
    }
    if (bytes > SEEP_PACK_SOURCE_BYTES_MAX) {
        error = -EFBIG;
    } else if (bytes > 0) {
        error = put_part(writer, SEEP_PACK_SOURCE, UINT32_MAX, text, bytes);
        writer->has_source = true;
    }
    free(text);
    return error;
}

static int put_directory(struct writer *writer)
{
    struct seep_pack_header header = {
        .magic = SEEP_PACK_MAGIC,
        .version = writer->has_source ? 3
                   : writer->has_held ? 2
                                      : 1,
        .byte_order = SEEP_BYTE_ORDER,
        .header_bytes = sizeof(header),
        .flags = (writer->options->is_folder ? SEEP_PACK_IS_FOLDER : 0U) |
                 (writer->options->redact || writer->was_redacted
                      ? SEEP_PACK_IS_REDACTED
                      : 0U),
        .part_count = writer->part_count,
        .process_count = writer->process_count,
        .pack_bytes = writer->at_bytes,
    };
    size_t parts_bytes = writer->part_count * sizeof(*writer->parts);
    char *bytes;
    char *at;
    int error;

    for (uint32_t i = 0; i < writer->process_count; i++) {
        header.names_bytes += strlen(writer->names[i]) + 1;
    }
    bytes = calloc(1, sizeof(header) + parts_bytes + header.names_bytes);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    memcpy(bytes, &header, sizeof(header));
    memcpy(bytes + sizeof(header), writer->parts, parts_bytes);
    at = bytes + sizeof(header) + parts_bytes;
    for (uint32_t i = 0; i < writer->process_count; i++) {
        at = stpcpy(at, writer->names[i]) + 1;
    }
    header.hash = seep_hash_bytes(bytes, (size_t)(at - bytes));
    memcpy(bytes, &header, sizeof(header));
    error = seep_open_write(writer->fd, bytes, 0, (size_t)(at - bytes));
    free(bytes);
    return error;
}

static int pack_all(struct writer *writer, char *const *paths, size_t count)
{
    int error = 0;

    for (size_t i = 0; i < count; i++) {
        struct seep_refusal refusal = {0};

        error = pack_one(writer, paths[i], &refusal);
        if (error != 0 && refusal.reason[0] == '\0') {
            return error; /* of the pack, not of the recording */
        }
        if (error != 0) {
            writer->outcome.refused_count++;
            writer->options->refused(paths[i], &refusal);
        }
    }
    error = writer->process_count == 0 ? -ENOENT : put_names(writer);
    error = error == 0 ? put_source(writer) : error;
    if (error == 0) {
        error = put_directory(writer);
    }
    writer->outcome.packed_count = writer->process_count;
    writer->outcome.pack_bytes = writer->at_bytes;
    return error;
}

static int init(struct writer *writer, const char *to, size_t count)
{
    size_t directory_bytes =
        sizeof(struct seep_pack_header) +
        count * (3 * sizeof(*writer->parts) + SEEP_PACK_NAME_BYTES) +
        2 * sizeof(*writer->parts);
    int error;

    if (count > SEEP_PACK_PROCESSES_MAX) {
        return -E2BIG;
    }
    writer->context = ZSTD_createCCtx();
    writer->out = malloc(OUT_BYTES);
    writer->parts = calloc(3 * count + 2, sizeof(*writer->parts));
    writer->names = calloc(count + 1, sizeof(*writer->names));
    writer->at_bytes = directory_bytes;
    if (writer->context == NULL || writer->out == NULL ||
        writer->parts == NULL || writer->names == NULL ||
        seep_symbol_memory_open(&writer->memory) != 0) {
        return -ENOMEM;
    }
    writer->memory->keeps = true;
    ZSTD_CCtx_setParameter(writer->context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(writer->context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(writer->context, ZSTD_c_windowLog,
                           SEEP_PACK_WINDOW_LOG2);
    error = seep_naming_open(
        writer->options->redact ? &writer->redaction : NULL,
        writer->options->source ? &writer->sourcing : NULL, &writer->naming);
    if (error != 0) {
        return error;
    }
    writer->fd =
        open(to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return writer->fd < 0 ? -errno : 0;
}

static void fini(struct writer *writer)
{
    ZSTD_freeCCtx(writer->context);
    free(writer->out);
    free(writer->parts);
    free(writer->names);
    seep_store_table_fini(&writer->taken);
    seep_store_fini(&writer->store);
    seep_naming_close(writer->naming);
    seep_sourcing_fini(&writer->sourcing);
    seep_symbol_memory_close(writer->memory);
    seep_redaction_fini(&writer->redaction);
}

int seep_pack_write(const char *to, char *const *paths, size_t count,
                    const struct seep_pack_options *options,
                    struct seep_pack_outcome *ret_outcome)
{
    struct writer writer = {.options = options, .fd = -1};
    int error = init(&writer, to, count);

    if (error == 0) {
        error = pack_all(&writer, paths, count);
    }
    if (writer.fd >= 0) {
        if (error == 0 && (ftruncate(writer.fd, (off_t)writer.at_bytes) != 0 ||
                           fsync(writer.fd) != 0)) {
            error = -errno;
        }
        if (close(writer.fd) != 0 && error == 0) {
            error = -errno;
        }
        if (error != 0) {
            unlink(to);
        }
    }
    fini(&writer);
    *ret_outcome = writer.outcome;
    return error;
}
