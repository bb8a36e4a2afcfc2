/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file behind a recording; see region.h for the promises. */
#include "record/region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/syscall.h"
#include "base/text.h"
#include "format/layout.h"

#define PATH_BYTES 1024U
#define SEQUENCE_MAX 4096U

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#define CIFS_MAGIC 0xff534d42
#define SMB2_MAGIC 0xfe534d42
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

/* What seep_region_create() holds at the moment, for seep_region_abandon(). */
static struct {
    volatile int fd;
    void *volatile mapping;
    volatile size_t size_bytes;
} held = {.fd = -1};

void seep_region_abandon(void)
{
    if (held.fd >= 0) {
        seep_syscall1(SYS_close, held.fd);
    }
    seep_region_drop(held.mapping, held.size_bytes);
    held.fd = -1;
    held.mapping = NULL;
}

/* Make the name another one, before its ".seep" if it has that. */
static void add_number(struct seep_text *path, uint32_t sequence)
{
    bool has_suffix = path->length > 5 &&
                      seep_text_equal(path->bytes + path->length - 5, ".seep");

    if (has_suffix) {
        path->length -= 5;
        path->bytes[path->length] = '\0';
    }
    seep_text_add_char(path, '.');
    seep_text_add_number(path, sequence);
    seep_text_add(path, has_suffix ? ".seep" : "");
}

/* Replace the placeholders of the pattern. @return false: it did not fit */
static bool expand(const struct seep_region_options *options,
                   const char *pattern, uint32_t sequence,
                   struct seep_text *path)
{
    bool numbered = false;

    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%' || at[1] == '\0') {
            seep_text_add_char(path, *at);
            continue;
        }
        at++;
        switch (*at) {
        case 'p':
            seep_text_add_number(path, options->pid);
            break;
        case 'e':
            seep_text_add(path, options->executable);
            break;
        case 'h':
            seep_text_add(path, options->host);
            break;
        case 't':
            seep_text_add_number(path, options->start_s);
            break;
        case 'n':
            seep_text_add_number(path, sequence);
            numbered = true;
            break;
        default:
            seep_text_add_char(path, *at);
            break;
        }
    }
    if (!numbered && sequence > 0) {
        add_number(path, sequence);
    }
    return !path->cut;
}

/* The folder of @path into @folder. */
static void folder_of(const char *path, char *folder, size_t size)
{
    const char *base = seep_text_base_name(path);
    struct seep_text text;

    seep_text_init(&text, folder, size);
    if (base == path) {
        seep_text_add_char(&text, '.');
        return;
    }
    for (const char *at = path; at < base; at++) {
        seep_text_add_char(&text, *at);
    }
}

/* May others put their files in the place of ours? */
static int check_folder(const char *folder)
{
    struct stat status;
    long result =
        seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)folder, (long)&status, 0);

    if (result < 0) {
        return (int)result;
    }
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
        return -EPERM;
    }
    return 0;
}

/* File systems where reserved bytes can still fail to be written. */
static bool reservation_protects(int fd)
{
    struct statfs status;

    if (seep_syscall2(SYS_fstatfs, fd, (long)&status) < 0) {
        return true;
    }
    switch ((uint32_t)status.f_type) {
    case NFS_SUPER_MAGIC:
    case FUSE_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case CIFS_MAGIC:
    case SMB2_MAGIC:
    case ZFS_MAGIC:
    case BCACHEFS_MAGIC:
        return false;
    default:
        return true;
    }
}

/* A larger file than allowed would be a SIGXFSZ for the worker. */
static int check_limit(uint64_t size)
{
    struct rlimit limit;

    if (seep_syscall4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size) {
        return -EFBIG;
    }
    return 0;
}

/* Away from 0 to 2: a program started with those closed will open its own. */
static int above_standard(int fd)
{
    long moved;

    if (fd < 0 || fd > 2) {
        return fd;
    }
    moved = seep_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    seep_syscall1(SYS_close, fd);
    return (int)moved;
}

/* Reserve and map. The file is complete when this returns 0. */
static int fill(int fd, const struct seep_region_options *options,
                const struct seep_rec_header *header, void **ret_mapping)
{
    uint64_t size = header->file_bytes;
    struct seep_rec_header *mapped;
    long result;

    if (!options->any_filesystem && !reservation_protects(fd)) {
        return -EXDEV;
    }
    result = seep_syscall2(SYS_fchmod, fd, 0600);
    if (result < 0) {
        return (int)result;
    }
    result = seep_syscall4(SYS_fallocate, fd, 0, 0, (long)size);
    if (result < 0) {
        return (int)result;
    }
    result = seep_syscall6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                           MAP_SHARED, fd, 0);
    if (result < 0 && result > -4096) {
        return (int)result;
    }
    mapped = (struct seep_rec_header *)(uintptr_t)result;
    held.size_bytes = size;
    held.mapping = mapped;
    memcpy((void *)mapped, (const void *)header, sizeof(*header));
    seep_layout_start(mapped);
    options->complete(mapped);
    /* Release: all of the above; pairs with the acquire of whoever opens the
     * file once it has a name. */
    atomic_store_explicit(&mapped->ready, SEEP_PUBLISHED, memory_order_release);
    *ret_mapping = mapped;
    return 0;
}

/* Give the nameless file behind @fd the name @path. */
static int name_file(int fd, const char *path)
{
    char link_path[48];
    struct seep_text text;

    seep_text_init(&text, link_path, sizeof(link_path));
    seep_text_add(&text, "/proc/self/fd/");
    seep_text_add_number(&text, (uint64_t)fd);
    return (int)seep_syscall6(SYS_linkat, AT_FDCWD, (long)link_path, AT_FDCWD,
                              (long)path, AT_SYMLINK_FOLLOW, 0);
}

/* The file at @path; without a name until it is complete if @nameless. */
static int create_file(const char *path, const char *folder, bool nameless,
                       const struct seep_region_options *options,
                       const struct seep_rec_header *header, void **ret_mapping)
{
    const char *target = nameless ? folder : path;
    int flags = nameless ? O_TMPFILE | O_RDWR | O_CLOEXEC
                         : O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC;
    int fd = above_standard(
        (int)seep_syscall4(SYS_openat, AT_FDCWD, (long)target, flags, 0600));
    void *mapping = NULL;
    int result;

    if (fd < 0) {
        return fd;
    }
    held.fd = fd;
    result = fill(fd, options, header, &mapping);
    if (result == 0 && nameless) {
        result = name_file(fd, path);
    }
    held.mapping = NULL;
    held.fd = -1;
    seep_syscall1(SYS_close, fd);
    if (result == 0) {
        *ret_mapping = mapping;
        return 0;
    }
    seep_region_drop(mapping, header->file_bytes);
    if (!nameless) {
        seep_syscall3(SYS_unlinkat, AT_FDCWD, (long)path, 0);
    }
    return result;
}

/* Nameless first, so that no reader meets a half-made file; where the file
 * system or a missing /proc refuses that, under its name from the start. */
static int create_at(const char *path,
                     const struct seep_region_options *options,
                     const struct seep_rec_header *header, void **ret_mapping)
{
    static char folder[PATH_BYTES]; /* one thread at a time creates */
    struct stat status;
    int result;

    if (seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status,
                      AT_SYMLINK_NOFOLLOW) == 0) {
        return -EEXIST;
    }
    folder_of(path, folder, sizeof(folder));
    result = check_folder(folder);
    if (result < 0) {
        return result;
    }
    result = create_file(path, folder, true, options, header, ret_mapping);
    if (result == -EOPNOTSUPP || result == -EISDIR || result == -EINVAL ||
        result == -ENOENT) {
        result = create_file(path, folder, false, options, header, ret_mapping);
    }
    return result;
}

static int create_by_pattern(const struct seep_region_options *options,
                             const char *folder,
                             const struct seep_rec_header *header,
                             void **ret_mapping)
{
    static char path[PATH_BYTES]; /* one thread at a time creates */
    struct seep_text text;
    int result = -EEXIST;

    for (uint32_t i = 0; i < SEQUENCE_MAX && result == -EEXIST; i++) {
        seep_text_init(&text, path, sizeof(path));
        if (folder != NULL) {
            seep_text_add(&text, folder);
            seep_text_add_char(&text, '/');
        }
        if (!expand(options, options->pattern, i, &text)) {
            return -ENAMETOOLONG;
        }
        result = create_at(path, options, header, ret_mapping);
    }
    return result;
}

int seep_region_create(const struct seep_region_options *options,
                       const struct seep_rec_header *header, void **ret_mapping)
{
    int result = check_limit(header->file_bytes);

    if (result < 0) {
        return result;
    }
    result = create_by_pattern(options, NULL, header, ret_mapping);
    if (result < 0 && result != -ENOSPC && options->pattern[0] != '/' &&
        options->fallback_folder != NULL) {
        result = create_by_pattern(options, options->fallback_folder, header,
                                   ret_mapping);
    }
    return result;
}

void seep_region_drop(void *mapping, size_t size_bytes)
{
    if (mapping != NULL) {
        seep_syscall2(SYS_munmap, (long)mapping, (long)size_bytes);
    }
}

void seep_region_replace(void *mapping, size_t size_bytes)
{
    /* In two steps: mmap over what is there can fail when that is gone. */
    long zeros =
        seep_syscall6(SYS_mmap, 0, (long)size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    long result;

    if (zeros < 0 && zeros > -4096) {
        return;
    }
    result =
        seep_syscall6(SYS_mremap, zeros, (long)size_bytes, (long)size_bytes,
                      MREMAP_MAYMOVE | MREMAP_FIXED, (long)mapping, 0);
    if (result < 0 && result > -4096) {
        seep_syscall2(SYS_munmap, zeros, (long)size_bytes);
    }
}
