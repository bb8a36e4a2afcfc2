/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that a process has in open files: memfds, and files of a tmpfs that
 * were unlinked. What is written to them is in no mapping and in no resident
 * memory, and is gone only when the last descriptor is.
 *
 * Invariant: no file is opened, and no file system of somebody's is asked; what
 * is read is bounded in number, and where it was cut nothing is told.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "reader/process/cgroup.h"
#include "reader/process/sample.h"

#define DESCRIPTORS_MOST 4096U
#define FILES_MOST 256U
#define MOUNTS_BYTES ((size_t)256 << 10)
#define BLOCK_BYTES 512U /* of stx_blocks, whatever the file system's are */

struct identity {
    uint32_t major;
    uint32_t minor;
    uint64_t inode;
};

struct files {
    pid_t pid;
    int folder;
    char *mounts; /* NULL: not read yet */
    struct identity seen[FILES_MOST];
    size_t count;
    uint64_t bytes;
    uint64_t largest_bytes;
    char *largest; /* its name, of SEEP_EXTERNAL_FILE_BYTES */
};

/* "/memfd:NAME (deleted)", "/dev/shm/NAME (deleted)" */
static bool is_deleted(char *path)
{
    static const char mark[] = " (deleted)";
    size_t length = strlen(path);

    if (length < sizeof(mark) ||
        strcmp(path + length - (sizeof(mark) - 1), mark) != 0) {
        return false;
    }
    path[length - (sizeof(mark) - 1)] = '\0';
    return true;
}

/* "36 35 0:31 / /dev/shm rw - tmpfs tmpfs rw": of what kind is the file system
 * of that device? A memfd's is mounted nowhere. */
static bool is_memory(struct files *files, const struct statx *status,
                      const char *path)
{
    char device[32];
    const char *line;
    const char *kind;

    if (files->mounts == NULL) {
        files->mounts = calloc(MOUNTS_BYTES, 1);
        if (files->mounts == NULL) {
            return false;
        }
        seep_proc_text_of(files->pid, "mountinfo", files->mounts, MOUNTS_BYTES);
    }
    snprintf(device, sizeof(device), " %u:%u ", status->stx_dev_major,
             status->stx_dev_minor);
    line = strstr(files->mounts, device);
    if (line == NULL) {
        return strncmp(path, "/memfd:", 7) == 0;
    }
    kind = strstr(line, " - ");
    return kind != NULL && strncmp(kind, " - tmpfs ", 9) == 0;
}

static bool is_new(struct files *files, const struct statx *status)
{
    struct identity identity = {status->stx_dev_major, status->stx_dev_minor,
                                status->stx_ino};

    for (size_t i = 0; i < files->count; i++) {
        if (memcmp(&files->seen[i], &identity, sizeof(identity)) == 0) {
            return false;
        }
    }
    files->seen[files->count++] = identity;
    return true;
}

/* By what the kernel knows already: a server that does not answer is not
 * waited for. */
static void take(struct files *files, const char *descriptor)
{
    char path[256];
    struct statx status;
    ssize_t length =
        readlinkat(files->folder, descriptor, path, sizeof(path) - 1);
    uint64_t bytes;

    path[length > 0 ? length : 0] = '\0';
    if (!is_deleted(path) ||
        statx(files->folder, descriptor, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_BASIC_STATS, &status) != 0 ||
        !S_ISREG(status.stx_mode) || status.stx_nlink != 0 ||
        status.stx_dev_major != 0 || !is_memory(files, &status, path) ||
        !is_new(files, &status)) {
        return;
    }
    bytes = status.stx_blocks * BLOCK_BYTES;
    files->bytes += bytes;
    if (bytes > files->largest_bytes) {
        files->largest_bytes = bytes;
        snprintf(files->largest, SEEP_EXTERNAL_FILE_BYTES, "%s",
                 seep_text_base_name(path));
    }
}

int seep_external_files_take(pid_t pid, uint64_t *ret_bytes,
                             char ret_largest[SEEP_EXTERNAL_FILE_BYTES])
{
    struct files files = {.pid = pid, .largest = ret_largest};
    char path[32];
    const struct dirent *entry;
    DIR *folder;
    unsigned count = 0;

    ret_largest[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    if (folder == NULL) {
        return -errno;
    }
    files.folder = dirfd(folder);
    while (count < DESCRIPTORS_MOST && files.count < FILES_MOST &&
           (entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.';
        take(&files, entry->d_name);
    }
    closedir(folder);
    free(files.mounts);
    if (count == DESCRIPTORS_MOST || files.count == FILES_MOST) {
        ret_largest[0] = '\0';
        return -E2BIG;
    }
    *ret_bytes = files.bytes;
    return 0;
}
