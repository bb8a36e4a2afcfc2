/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The directory of a pack: see pack.h.
 *
 * Invariant: of a pack that was opened every part lies behind the directory,
 * in order and apart, and none says that it becomes more than its kind may;
 * each recording has one part and a name that is a file's.
 */
#include "reader/recording/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

#define PACK_IT_AGAIN "copy it again, or pack the recordings again"

int seep_pack_refuse(struct seep_refusal *ret_refusal, int error)
{
    switch (error) {
    case -ENODATA:
        return seep_open_refuse(ret_refusal, error, "is a truncated pack",
                                "copy it again");
    case -EPROTO:
        return seep_open_refuse(
            ret_refusal, error, "is a pack of a newer seep",
            "read it with the seep that packed it, or a newer one");
    case -EBADMSG:
        return seep_open_refuse(ret_refusal, error, "is a damaged pack",
                                PACK_IT_AGAIN);
    default:
        return seep_open_refuse_errno(ret_refusal, error);
    }
}

bool seep_pack_begins(int fd)
{
    char magic[8];

    return seep_open_read_whole(fd, magic, 0, sizeof(magic)) == 0 &&
           memcmp(magic, SEEP_PACK_MAGIC, sizeof(magic)) == 0;
}

/* -ENOTSUP, -ENOENT and so on: it is no pack. */
static int open_file(const char *path, int *ret_fd)
{
    struct stat status;
    int fd = seep_open_regular(path, 0, &status);

    if (fd < 0) {
        return fd;
    }
    if (!seep_pack_begins(fd)) {
        close(fd);
        return -ENOENT;
    }
    *ret_fd = fd;
    return 0;
}

bool seep_pack_is(const char *path)
{
    int fd;
    bool is = open_file(path, &fd) == 0;

    if (is) {
        close(fd);
    }
    return is;
}

static int check_header(const struct seep_pack_header *header,
                        uint64_t size_bytes)
{
    if (header->version == 0 || header->version > SEEP_PACK_VERSION) {
        return header->version > SEEP_PACK_VERSION ? -EPROTO : -EBADMSG;
    }
    if (header->byte_order != SEEP_BYTE_ORDER ||
        header->header_bytes != sizeof(*header) || header->process_count == 0 ||
        header->process_count > SEEP_PACK_PROCESSES_MAX ||
        header->part_count < header->process_count ||
        header->part_count > 3 * header->process_count + 2 ||
        header->names_bytes > header->process_count * SEEP_PACK_NAME_BYTES) {
        return -EBADMSG;
    }
    return header->pack_bytes > size_bytes ? -ENODATA : 0;
}

static uint64_t most_bytes(uint32_t kind)
{
    static const uint64_t most[] = {
        [SEEP_PACK_RECORDING] = SEEP_PACK_RECORDING_BYTES_MAX,
        [SEEP_PACK_SAMPLES] = SEEP_PACK_SAMPLES_BYTES_MAX,
        [SEEP_PACK_NAMES] = SEEP_PACK_NAMES_BYTES_MAX,
        [SEEP_PACK_HELD] = SEEP_PACK_HELD_BYTES_MAX,
        [SEEP_PACK_SOURCE] = SEEP_PACK_SOURCE_BYTES_MAX,
    };

    return kind < sizeof(most) / sizeof(*most) ? most[kind] : 0;
}

/* By process and kind: a table would be one more that a stranger sizes. */
static bool is_in_order(const struct seep_pack_part *before,
                        const struct seep_pack_part *part)
{
    return before->process < part->process ||
           (before->process == part->process && before->kind < part->kind);
}

/* @end_bytes: of what is before it */
static bool is_part(const struct seep_pack *pack, uint32_t i,
                    uint64_t end_bytes)
{
    const struct seep_pack_part *part = &pack->parts[i];
    uint64_t all = pack->header.pack_bytes;
    bool of_one =
        part->kind != SEEP_PACK_NAMES && part->kind != SEEP_PACK_SOURCE;

    return part->bytes > 0 && part->bytes <= most_bytes(part->kind) &&
           (part->bytes <= SEEP_PACK_MORE_BYTES ||
            (part->bytes - SEEP_PACK_MORE_BYTES) / SEEP_PACK_TIMES_MAX <=
                part->stored_bytes) &&
           (of_one ? part->process < pack->header.process_count
                   : part->process == UINT32_MAX) &&
           (i == 0 || is_in_order(&pack->parts[i - 1], part)) &&
           part->offset_bytes >= end_bytes && part->offset_bytes <= all &&
           part->stored_bytes <= all - part->offset_bytes;
}

static bool check_parts(const struct seep_pack *pack, uint64_t end_bytes)
{
    uint32_t recordings = 0;

    for (uint32_t i = 0; i < pack->header.part_count; i++) {
        if (!is_part(pack, i, end_bytes)) {
            return false;
        }
        end_bytes = pack->parts[i].offset_bytes + pack->parts[i].stored_bytes;
        recordings += pack->parts[i].kind == SEEP_PACK_RECORDING;
    }
    return recordings == pack->header.process_count;
}

/*
 * The directory, read once for all recordings of a pack: each is opened by a
 * path of its own, and of 10,000 the directory is half a megabyte. What is kept
 * is of the pack that was opened last, and no descriptor.
 *
 * Invariant: what is used again is of a file that did not change since. A
 * change within the step of a file system's clock could not be told, so that a
 * file that was just written is read each time.
 */

#define SETTLED_S 2

struct seep_pack_directory {
    size_t user_count;
    struct stat status; /* of the file */
    struct seep_pack_header header;
    const char **names;
    const char ***by_name; /* places in .names, in the order of names */
    alignas(8) char bytes[];
};

static struct seep_pack_directory *last;

static void drop(struct seep_pack_directory *directory)
{
    if (directory != NULL && --directory->user_count == 0) {
        free(directory->names);
        free(directory->by_name);
        free(directory);
    }
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_of(const struct seep_pack_directory *directory,
                  const struct seep_pack *pack, const struct stat *status)
{
    return directory->status.st_dev == status->st_dev &&
           directory->status.st_ino == status->st_ino &&
           directory->status.st_size == status->st_size &&
           is_same_time(&directory->status.st_mtim, &status->st_mtim) &&
           is_same_time(&directory->status.st_ctim, &status->st_ctim) &&
           memcmp(&directory->header, &pack->header, sizeof(pack->header)) == 0;
}

static void use(struct seep_pack *pack, struct seep_pack_directory *directory)
{
    directory->user_count++;
    pack->directory = directory;
    pack->parts = (void *)(directory->bytes + sizeof(pack->header));
    pack->names = directory->names;
}

static void keep(struct seep_pack_directory *directory,
                 const struct stat *status)
{
    struct timespec now;

    directory->status = *status;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        now.tv_sec - status->st_ctim.tv_sec >= SETTLED_S) {
        drop(last);
        last = directory;
        last->user_count++;
    }
}

static struct seep_pack_directory *
make_directory(const struct seep_pack_header *header, size_t bytes)
{
    struct seep_pack_directory *directory =
        calloc(1, sizeof(*directory) + bytes);

    if (directory == NULL) {
        return NULL;
    }
    directory->user_count = 1;
    directory->header = *header;
    directory->names = calloc(header->process_count, sizeof(*directory->names));
    directory->by_name =
        calloc(header->process_count, sizeof(*directory->by_name));
    if (directory->names == NULL || directory->by_name == NULL) {
        drop(directory);
        return NULL;
    }
    return directory;
}

/* Of equal names the first comes first. */
static int compare_names(const void *a, const void *b)
{
    const char **left = *(const char **const *)a;
    const char **right = *(const char **const *)b;
    int order = strcmp(*left, *right);

    return order != 0 ? order : (left > right) - (left < right);
}

static bool take_names(struct seep_pack *pack, const char *names)
{
    const char *end = names + pack->header.names_bytes;

    for (uint32_t i = 0; i < pack->header.process_count; i++) {
        size_t length = strnlen(names, (size_t)(end - names));

        if (length == 0 || length >= SEEP_PACK_NAME_BYTES ||
            length == (size_t)(end - names) ||
            memchr(names, '/', length) != NULL || strcmp(names, ".") == 0 ||
            strcmp(names, "..") == 0) {
            return false;
        }
        pack->names[i] = names;
        pack->directory->by_name[i] = &pack->names[i];
        names += length + 1;
    }
    qsort(pack->directory->by_name, pack->header.process_count,
          sizeof(*pack->directory->by_name), compare_names);
    return names == end;
}

static int read_directory(struct seep_pack *pack)
{
    struct seep_pack_header *header = &pack->header;
    size_t parts_bytes = header->part_count * sizeof(*pack->parts);
    size_t bytes = sizeof(*header) + parts_bytes + (size_t)header->names_bytes;
    uint64_t hash = header->hash;
    struct seep_pack_directory *directory = make_directory(header, bytes);
    int error;

    if (directory == NULL) {
        return -ENOMEM;
    }
    use(pack, directory);
    drop(directory); /* it is the pack's */
    error = seep_open_read_whole(pack->fd, directory->bytes, 0, bytes);
    if (error != 0) {
        return error;
    }
    header->hash = 0;
    memcpy(directory->bytes, header, sizeof(*header));
    header->hash = hash;
    return seep_hash_bytes(directory->bytes, bytes) == hash &&
                   check_parts(pack, bytes) &&
                   take_names(pack, (char *)pack->parts + parts_bytes)
               ? 0
               : -EBADMSG;
}

static int fill(struct seep_pack *pack)
{
    struct stat status;
    int error;

    if (fstat(pack->fd, &status) != 0) {
        return -errno;
    }
    error =
        seep_open_read_whole(pack->fd, &pack->header, 0, sizeof(pack->header));
    if (error == 0) {
        error = check_header(&pack->header, (uint64_t)status.st_size);
    }
    if (error == 0 && last != NULL && is_of(last, pack, &status)) {
        use(pack, last);
        return 0;
    }
    error = error == 0 ? read_directory(pack) : error;
    if (error == 0) {
        keep(pack->directory, &status);
    }
    return error;
}

/* @member: the name of one of its recordings; NULL: the only one */
static int find_process(const struct seep_pack *pack, const char *member,
                        uint32_t *ret_process)
{
    bool is_folder = (pack->header.flags & SEEP_PACK_IS_FOLDER) != 0;
    const char ***by_name = pack->directory->by_name;
    uint32_t low = 0;
    uint32_t high = pack->header.process_count;

    if (member == NULL) {
        *ret_process = 0;
        return is_folder ? -EISDIR : 0;
    }
    while (is_folder && low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (strcmp(*by_name[middle], member) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (!is_folder || low == pack->header.process_count ||
        strcmp(*by_name[low], member) != 0) {
        return -ENOENT;
    }
    *ret_process = (uint32_t)(by_name[low] - pack->names);
    return 0;
}

/* Takes @fd over. */
static int open_pack(int fd, struct seep_pack **ret_pack)
{
    struct seep_pack *pack = calloc(1, sizeof(*pack));
    int error = -ENOMEM;

    if (pack == NULL) {
        close(fd);
        return error;
    }
    pack->fd = fd;
    error = fill(pack);
    if (error != 0) {
        seep_pack_close(pack);
        return error;
    }
    *ret_pack = pack;
    return 0;
}

/* The path of the file that @path, which is none, would lie in, to be freed;
 * NULL: of none. */
static char *path_around(const char *path, const char **ret_member)
{
    const char *slash = strrchr(path, '/');
    struct stat status;

    if (slash == NULL || slash == path || slash[1] == '\0' ||
        stat(path, &status) == 0 || errno != ENOTDIR) {
        return NULL;
    }
    *ret_member = slash + 1;
    return strndup(path, (size_t)(slash - path));
}

int seep_pack_stat(const char *path, struct stat *ret_status)
{
    const char *member;
    int error = stat(path, ret_status) != 0 ? -errno : 0;
    char *around = error == -ENOTDIR ? path_around(path, &member) : NULL;

    if (around != NULL) {
        error = stat(around, ret_status) != 0 ? -errno : 0;
    }
    free(around);
    return error;
}

static int open_around(const char *path, const char **ret_member, int *ret_fd)
{
    char *around = path_around(path, ret_member);
    int error = around == NULL ? -ENOENT : open_file(around, ret_fd);

    free(around);
    return error;
}

int seep_pack_open(const char *path, struct seep_refusal *ret_refusal,
                   struct seep_pack **ret_pack, uint32_t *ret_process)
{
    const char *member = NULL;
    struct seep_pack *pack;
    uint32_t process;
    int fd;
    int error = open_file(path, &fd);

    if (error != 0) {
        error = open_around(path, &member, &fd);
    }
    if (error != 0) {
        return -ENOENT;
    }
    error = open_pack(fd, &pack);
    if (error != 0) {
        return seep_pack_refuse(ret_refusal, error);
    }
    error = find_process(pack, member, &process);
    if (error == -EISDIR && ret_process == NULL) {
        error = 0;
    }
    if (error != 0) {
        seep_pack_close(pack);
        return seep_open_refuse(
            ret_refusal, error == -EISDIR ? error : -ENXIO,
            error == -EISDIR ? "is a pack of several recordings"
                             : "is not in the pack",
            "`seep info PACK` names the recordings in it: give PACK/NAME");
    }
    *ret_pack = pack;
    if (ret_process != NULL) {
        *ret_process = process;
    }
    return 0;
}

void seep_pack_close(struct seep_pack *pack)
{
    if (pack != NULL) {
        close(pack->fd);
        drop(pack->directory);
        free(pack);
    }
}

const struct seep_pack_part *seep_pack_find(const struct seep_pack *pack,
                                            enum seep_pack_kind kind,
                                            uint32_t process)
{
    const struct seep_pack_part wanted = {.kind = kind, .process = process};
    const struct seep_pack_part *parts = pack->parts;
    uint32_t low = 0;
    uint32_t high = pack->header.part_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (is_in_order(&parts[middle], &wanted)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < pack->header.part_count && parts[low].kind == kind &&
                   parts[low].process == process
               ? &parts[low]
               : NULL;
}

int seep_pack_list(const char *path, struct seep_refusal *ret_refusal,
                   struct seep_open_list *list)
{
    struct seep_pack *pack;
    int error = seep_pack_open(path, ret_refusal, &pack, NULL);

    if (error != 0) {
        return error;
    }
    if ((pack->header.flags & SEEP_PACK_IS_FOLDER) == 0) {
        error = seep_open_list_add(list, strdup(path));
    }
    for (uint32_t i = 0; error == 0 && i < pack->header.process_count &&
                         (pack->header.flags & SEEP_PACK_IS_FOLDER) != 0;
         i++) {
        char *member = NULL;

        error = asprintf(&member, "%s/%s", path, pack->names[i]) < 0
                    ? -ENOMEM
                    : seep_open_list_add(list, member);
    }
    seep_pack_close(pack);
    return error == 0 ? 0 : seep_pack_refuse(ret_refusal, error);
}
