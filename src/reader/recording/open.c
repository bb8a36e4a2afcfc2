/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening what may be a recording: see open.h.
 *
 * Invariant: looking has no effect. A FIFO, a device, a terminal, a socket are
 * refused by their type before they are opened: a FIFO's writer would see a
 * reader come and go, and a device may act on it.
 */
#include "reader/recording/open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/layout.h"
#include "reader/recording/pack.h"
#include "reader/recording/store.h"
#include "reader/report/report.h"

#define VERSION_BYTES 32 /* of a longer one nobody would know the meaning */
#define GIVE_A_RECORDING "give a .seep file written by `seep run` or SEEP_OUT"

static const struct {
    int error;
    const char *reason;
    const char *remedy;
} errno_words[] = {
    {ENOENT, "does not exist",
     "check the path; SEEP_OUT says where recordings are written"},
    {ENOTDIR, "does not exist: a part of its path is not a directory",
     "check the path; SEEP_OUT says where recordings are written"},
    {EACCES, "is not readable by this user",
     "recordings are private: read it as the user who ran the program"},
    {EPERM, "is not readable by this user",
     "recordings are private: read it as the user who ran the program"},
    {EISDIR, "is a directory", "give one of the recordings inside it"},
    {ELOOP, "is a dangling symbolic link", GIVE_A_RECORDING},
    {ENAMETOOLONG, "has a name longer than the system allows",
     "check the path"},
    {ENXIO, "is a socket or a device, not a file", GIVE_A_RECORDING},
    {ENODEV, "is a socket or a device, not a file", GIVE_A_RECORDING},
    {ENOMEM, "does not fit into memory",
     "read it on a machine with more memory free"},
    {EMFILE, "cannot be opened: too many open files",
     "raise the limit (ulimit -n)"},
    {EIO, "cannot be read: the storage reports an error",
     "copy it from where it was recorded, or check the kernel log"},
};

int seep_open_refuse(struct seep_refusal *ret_refusal, int error,
                     const char *reason, const char *remedy)
{
    if (ret_refusal != NULL) {
        ret_refusal->error = error;
        snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s",
                 reason);
        snprintf(ret_refusal->remedy, sizeof(ret_refusal->remedy), "%s",
                 remedy);
    }
    return error;
}

int seep_open_refuse_errno(struct seep_refusal *ret_refusal, int error)
{
    char reason[160];

    for (size_t i = 0; i < sizeof(errno_words) / sizeof(errno_words[0]); i++) {
        if (errno_words[i].error == -error) {
            return seep_open_refuse(ret_refusal, error, errno_words[i].reason,
                                    errno_words[i].remedy);
        }
    }
    snprintf(reason, sizeof(reason), "cannot be read: %s", strerror(-error));
    return seep_open_refuse(ret_refusal, error, reason,
                            "fix the cause that the system reports");
}

static bool is_other_format(enum seep_recording_check result)
{
    return result == SEEP_CHECK_OLDER || result == SEEP_CHECK_NEWER;
}

/* What no time will mend; the rest may be being written or copied. */
static bool is_none(enum seep_recording_check result)
{
    return result == SEEP_CHECK_NOT_A_RECORDING ||
           result == SEEP_CHECK_BYTE_ORDER || is_other_format(result);
}

int seep_open_refuse_read(struct seep_refusal *ret_refusal, int error)
{
    return error == -ENODATA
               ? seep_open_refuse_check(ret_refusal, SEEP_CHECK_TRUNCATED)
               : seep_open_refuse_errno(ret_refusal, error);
}

int seep_open_refuse_check(struct seep_refusal *ret_refusal,
                           enum seep_recording_check result)
{
    return seep_open_refuse(ret_refusal, is_none(result) ? -EPROTO : -EBADMSG,
                            seep_check_reason(result),
                            seep_check_remedy(result));
}

/* "0.1.0", "1.2.0-rc1" */
static bool is_version(const char *text)
{
    size_t length = strspn(text, "0123456789.");

    return text[0] >= '0' && text[0] <= '9' &&
           memchr(text, '.', length) != NULL &&
           (text[length] == '\0' || text[length] == '-') &&
           strspn(text + length, "-.0123456789abcdefghijklmnopqrstuvwxyz") ==
               strlen(text + length);
}

/* Where this format has it. In another one it need not be there: then what is
 * there does not look like a version. */
static bool read_version(int fd, const struct seep_rec_header *header,
                         char text[VERSION_BYTES])
{
    uint64_t at = header->sections[SEEP_SECTION_STRINGS].offset_bytes;
    ssize_t count;

    if (at > SEEP_LAYOUT_MOST_BYTES) {
        return false;
    }
    count =
        pread(fd, text, VERSION_BYTES - 1, (off_t)(at + header->seep_version));
    text[count > 0 ? count : 0] = '\0';
    return is_version(text);
}

/* Of another format than this reads it says which, and the seep that wrote it
 * if that can be told. */
static int refuse_header(struct seep_refusal *ret_refusal,
                         enum seep_recording_check result, int fd,
                         const struct seep_rec_header *header)
{
    char version[VERSION_BYTES];
    char reason[160];
    bool known;

    if (!is_other_format(result)) {
        return seep_open_refuse_check(ret_refusal, result);
    }
    known = read_version(fd, header, version);
    snprintf(reason, sizeof(reason),
             "has the %s format %" PRIu32 "%s%s; this seep reads format %u",
             result == SEEP_CHECK_OLDER ? "older" : "newer",
             header->format_major, known ? ", of seep " : "",
             known ? version : "", SEEP_FORMAT_MAJOR);
    return seep_open_refuse(ret_refusal, -EPROTO, reason,
                            seep_check_remedy(result));
}

static int refuse_type(struct seep_refusal *ret_refusal, mode_t mode)
{
    if (S_ISDIR(mode)) {
        return seep_open_refuse_errno(ret_refusal, -EISDIR);
    }
    if (S_ISFIFO(mode)) {
        return seep_open_refuse(
            ret_refusal, -ESPIPE, "is a FIFO, not a file",
            "write it to a file first: a recording needs random access");
    }
    return seep_open_refuse_errno(ret_refusal, -ENXIO);
}

int seep_open_regular(const char *path, int flags, struct stat *ret_status)
{
    int all = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | flags;
    int place = open(path, O_PATH | O_CLOEXEC | flags);
    char link[32];
    int fd = -ENOTSUP;

    if (place < 0 || fstat(place, ret_status) != 0) {
        fd = -errno;
    } else if (S_ISREG(ret_status->st_mode)) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
        fd = open(link, all & ~O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) { /* without /proc, or removed */
            fd = open(path, all);
        }
        fd = fd < 0 ? -errno : fd;
    }
    if (place >= 0) {
        close(place);
    }
    return fd;
}

int seep_open_file(const char *path, struct seep_refusal *ret_refusal,
                   int *ret_fd, uint64_t *ret_size_bytes)
{
    struct stat status;
    int fd = seep_open_regular(path, 0, &status);

    if (fd == -ENOTSUP) {
        return refuse_type(ret_refusal, status.st_mode);
    }
    if (fd < 0) {
        return seep_open_refuse_errno(ret_refusal, fd);
    }
    *ret_fd = fd;
    *ret_size_bytes = (uint64_t)status.st_size;
    return 0;
}

bool seep_open_is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Which recordings a path means. */

int seep_open_list_add(struct seep_open_list *list, char *path)
{
    char **paths = seep_list_grow(list->paths, list->count + 1, sizeof(*paths));

    if (paths == NULL) {
        free(path);
        return -ENOMEM;
    }
    paths[list->count] = path;
    list->count += path != NULL;
    paths[list->count] = NULL;
    list->paths = paths;
    return path == NULL ? -ENOMEM : 0;
}

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t end_length = strlen(end);

    return name[0] != '.' && length > end_length &&
           strncmp(name + length - end_length, end, end_length) == 0;
}

static int is_recording(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t length = strlen(name);
    const char *number = strrchr(name, '.');

    /* "x.seep.1": the name was taken and the pattern has no %n */
    if (number != NULL && number[1] != '\0' &&
        number[1 + strspn(number + 1, "0123456789")] == '\0') {
        length = (size_t)(number - name);
    }
    return ends_with(name, length, ".seep");
}

static int is_pack(const struct dirent *entry)
{
    return ends_with(entry->d_name, strlen(entry->d_name), SEEP_PACK_SUFFIX);
}

static char *join(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    bool ends = length > 0 && folder[length - 1] == '/';
    char *path = NULL;

    return asprintf(&path, "%s%s%s", folder, ends ? "" : "/", name) < 0 ? NULL
                                                                        : path;
}

static int compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Takes @path over. A pack that cannot be opened is refused by who reads it. */
static int add_file(struct seep_open_list *list, char *path)
{
    int error = -ENOMEM;

    if (path != NULL && seep_pack_is(path)) {
        error = seep_pack_list(path, NULL, list);
        if (error == 0) {
            free(path);
            return 0;
        }
    }
    return seep_open_list_add(list, path);
}

/* Recordings are not looked into: there may be many, asked for often. */
static int add_entries(struct seep_open_list *list, const char *path,
                       bool packs)
{
    struct dirent **entries;
    int count =
        scandir(path, &entries, packs ? is_pack : is_recording, compare);
    int error = 0;

    if (count < 0) {
        return -errno;
    }
    for (int i = 0; i < count; i++) {
        if (error == 0) {
            char *entry = join(path, entries[i]->d_name);

            error =
                packs ? add_file(list, entry) : seep_open_list_add(list, entry);
        }
        free(entries[i]);
    }
    free(entries);
    return error;
}

/* Packs count where there is nothing else: beside them lies what they are of.
 */
static int add_folder(struct seep_open_list *list, const char *path)
{
    int error = add_entries(list, path, false);

    return error == 0 && list->count == 0 ? add_entries(list, path, true)
                                          : error;
}

/* What is no file can be in a pack. */
static int list_missing(const char *path, struct seep_refusal *ret_refusal,
                        char ***ret_paths)
{
    struct seep_open_list list = {.paths = NULL};
    int error = -errno;
    uint32_t process;
    struct seep_pack *pack;
    int opened = seep_pack_open(path, ret_refusal, &pack, &process);

    if (opened == -ENOENT) {
        return seep_open_refuse_errno(ret_refusal, error);
    }
    if (opened != 0) {
        return opened;
    }
    seep_pack_close(pack);
    error = seep_open_list_add(&list, strdup(path));
    if (error != 0) {
        seep_report_list_free(list.paths);
        return seep_open_refuse_errno(ret_refusal, error);
    }
    *ret_paths = list.paths;
    return 0;
}

int seep_report_list(const char *path, struct seep_refusal *ret_refusal,
                     char ***ret_paths)
{
    struct seep_open_list list = {.paths = NULL};
    struct stat status;
    int error;

    if (stat(path, &status) != 0) {
        return list_missing(path, ret_refusal, ret_paths);
    }
    error = S_ISDIR(status.st_mode) ? add_folder(&list, path)
                                    : add_file(&list, strdup(path));
    if (error != 0) {
        seep_report_list_free(list.paths);
        return seep_open_refuse_errno(ret_refusal, error);
    }
    if (list.count == 0) {
        return seep_open_refuse(
            ret_refusal, -ENOENT, "contains no recordings",
            "give the directory that SEEP_OUT or `seep run -o` wrote to: recordings end in .seep");
    }
    *ret_paths = list.paths;
    return 0;
}

void seep_report_list_free(char **paths)
{
    for (size_t i = 0; paths != NULL && paths[i] != NULL; i++) {
        free(paths[i]);
    }
    free(paths);
}

/* The length of the name that @path lies beside; 0: it is no such name. */
static size_t stem_bytes(const char *path)
{
    static const char *const suffixes[] = {SEEP_EXTERNAL_SUFFIX,
                                           SEEP_HELD_SUFFIX};
    size_t length = strlen(path);

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t suffix = strlen(suffixes[i]);

        if (length > suffix &&
            strcmp(path + length - suffix, suffixes[i]) == 0) {
            return length - suffix;
        }
    }
    return 0;
}

bool seep_report_is_beside(char *const *paths, size_t count, size_t at)
{
    size_t bytes = stem_bytes(paths[at]);

    /* Of names in their order it is the one before, or before that. */
    for (size_t i = 1; bytes > 0 && i < count; i++) {
        const char *path = paths[(at + count - i) % count];

        if (strncmp(path, paths[at], bytes) == 0 && path[bytes] == '\0') {
            return true;
        }
    }
    return false;
}

/* Bytes of a file that may shrink meanwhile. */

#define CHUNK_BYTES (UINT64_C(64) << 20)

ssize_t seep_open_read(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    uint64_t done = 0;

    while (done < bytes) {
        uint64_t left = bytes - done;
        ssize_t got = pread(fd, (char *)to + done,
                            left > CHUNK_BYTES ? CHUNK_BYTES : left,
                            (off_t)(offset + done));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            break;
        }
        done += (uint64_t)got;
    }
    return (ssize_t)done;
}

int seep_open_read_whole(int fd, void *to, uint64_t offset, uint64_t bytes)
{
    ssize_t got = seep_open_read(fd, to, offset, bytes);

    return got < 0 ? (int)got : (uint64_t)got == bytes ? 0 : -ENODATA;
}

int seep_open_write(int fd, const void *from, uint64_t offset, uint64_t bytes)
{
    while (bytes > 0) {
        ssize_t done = pwrite(fd, from, bytes, (off_t)offset);

        if (done < 0 && errno != EINTR) {
            return -errno;
        }
        if (done > 0) {
            from = (const char *)from + done;
            offset += (uint64_t)done;
            bytes -= (uint64_t)done;
        }
    }
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int seep_open_header(int fd, uint64_t size_bytes,
                     struct seep_refusal *ret_refusal, void *bytes,
                     size_t mapped_bytes)
{
    enum seep_recording_check result;
    int error;

    /* What is read ahead, holes and all, comes into the page cache in pieces of
     * up to 2 MiB; and the process that records is charged for a whole piece
     * as soon as it touches any of it. */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    error =
        seep_snapshot_read(fd, bytes, 0, least(size_bytes, SEEP_PAGE_BYTES));
    if (error != 0) {
        return seep_open_refuse_read(ret_refusal, error);
    }
    result = seep_check(bytes, (size_t)least(size_bytes, mapped_bytes));
    return result == SEEP_CHECK_VALID
               ? 0
               : refuse_header(ret_refusal, result, fd, bytes);
}

int seep_open_copy(int fd, uint64_t size_bytes,
                   struct seep_refusal *ret_refusal, void **ret_bytes,
                   size_t *ret_mapped_bytes)
{
    size_t mapped_bytes = (size_t)least(size_bytes, SEEP_LAYOUT_MOST_BYTES);
    void *bytes;
    int error;

    if (size_bytes == 0) {
        return seep_open_refuse_check(ret_refusal, SEEP_CHECK_EMPTY);
    }
    if (mapped_bytes < SEEP_PAGE_BYTES) {
        mapped_bytes = SEEP_PAGE_BYTES;
    }
    bytes = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) {
        return seep_open_refuse_errno(ret_refusal, -errno);
    }
    error = seep_open_header(fd, size_bytes, ret_refusal, bytes, mapped_bytes);
    if (error != 0) {
        munmap(bytes, mapped_bytes);
        return error;
    }
    *ret_bytes = bytes;
    *ret_mapped_bytes = mapped_bytes;
    return 0;
}
