/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a recording goes: file systems, reasons, the floor, folders, limits.
 *
 * What can be made where is decided by judge() alone, for a file that is there
 * and for a folder that is only looked at.
 */
#include "base/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/syscall.h"
#include "base/text.h"

#define GIB (UINT64_C(1) << 30)
#define NAME_BYTES_MAX 255U
#define MEMINFO_BYTES 4096U
#define STATFS_IS_READ_ONLY 1

struct seep_place_floor seep_place_floor __attribute__((visibility("hidden")));
const struct seep_place_keep seep_place_keep_default
    __attribute__((visibility("hidden"))) = {512, 4 * GIB};

/* By type: a name, and why what is reserved there can still fail. A failure to
 * write to a mapping is a SIGBUS, and there is no asking before each. */
static const struct file_system {
    uint32_t type;
    bool is_served; /* by a machine or a program that may not answer */
    const char *name;
    const char *unsafe;
} file_systems[] = {
    {EXT4_SUPER_MAGIC, false, "ext4", NULL},
    {0x58465342, false, "XFS", NULL},
    {TMPFS_MAGIC, false, "tmpfs", NULL},
    {OVERLAYFS_SUPER_MAGIC, false, "overlay", NULL},
    {0xf2f52010, false, "F2FS", NULL},
    {0x9123683e, false, "btrfs", "copy on write"},
    {0x2fc12fc1, false, "ZFS", "copy on write"},
    {0xca451a4e, false, "bcachefs", "copy on write"},
    {0x6969, true, "NFS", "a network"},
    {0xff534d42, true, "CIFS", "a network"},
    {0xfe534d42, true, "SMB", "a network"},
    {0x00c36400, true, "Ceph", "a network"},
    {0x0bd00bd0, true, "Lustre", "a network"},
    {0x01021997, true, "9p", "a network"},
    {0x5346414f, true, "AFS", "a network"},
    {0x65735546, true, "FUSE", "a program"},
};
#define FILE_SYSTEM_COUNT (sizeof(file_systems) / sizeof(file_systems[0]))

static const struct file_system *find_system(uint32_t type)
{
    for (size_t i = 0; i < FILE_SYSTEM_COUNT; i++) {
        if (file_systems[i].type == type) {
            return &file_systems[i];
        }
    }
    return NULL;
}

const char *seep_place_system(uint32_t type)
{
    const struct file_system *system = find_system(type);

    return system == NULL ? NULL : system->name;
}

const char *seep_place_unsafe(uint32_t type)
{
    const struct file_system *system = find_system(type);

    return system == NULL ? NULL : system->unsafe;
}

static const struct reason {
    const char *words;
    const char *remedy;
} reasons[] = {
#define REASON(symbol, value, words, remedy) [value] = {words, remedy},
    SEEP_PLACE_REASONS(REASON)
#undef REASON
};
static_assert(sizeof(reasons) / sizeof(reasons[0]) == SEEP_PLACE_COUNT,
              "every reason has words");

const char *seep_place_words(enum seep_place_reason reason)
{
    return reasons[(unsigned)reason < SEEP_PLACE_COUNT ? reason : 0].words;
}

const char *seep_place_remedy(enum seep_place_reason reason)
{
    return reasons[(unsigned)reason < SEEP_PLACE_COUNT ? reason : 0].remedy;
}

/* Of several for one reason the first is the one that stands for it. */
static const struct error {
    int number;
    enum seep_place_reason reason;
} errors[] = {
    {0, SEEP_PLACE_FINE},
    {ENOENT, SEEP_PLACE_MISSING},
    {ENOTDIR, SEEP_PLACE_NO_FOLDER},
    {EACCES, SEEP_PLACE_FORBIDDEN},
    {EROFS, SEEP_PLACE_READ_ONLY},
    {ENOSPC, SEEP_PLACE_FULL},
    {EDQUOT, SEEP_PLACE_FULL},
    {ENOBUFS, SEEP_PLACE_FLOOR},
    {EFBIG, SEEP_PLACE_FILE_LIMIT},
    {ENAMETOOLONG, SEEP_PLACE_NAME_LONG},
    {EEXIST, SEEP_PLACE_TAKEN},
    {EXDEV, SEEP_PLACE_UNSAFE_SYSTEM},
    {EOPNOTSUPP, SEEP_PLACE_NO_RESERVE},
    {ENOMEM, SEEP_PLACE_NO_MEMORY},
    {EAGAIN, SEEP_PLACE_NO_LOCK},
    {EMFILE, SEEP_PLACE_DESCRIPTORS},
    {ENFILE, SEEP_PLACE_DESCRIPTORS},
    {ELOOP, SEEP_PLACE_LINKS},
    {EPERM, SEEP_PLACE_REFUSED},
};
#define ERROR_COUNT (sizeof(errors) / sizeof(errors[0]))

enum seep_place_reason seep_place_reason_of(int error)
{
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (errors[i].number == -error) {
            return errors[i].reason;
        }
    }
    return SEEP_PLACE_REFUSED;
}

int seep_place_error_of(enum seep_place_reason reason)
{
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (errors[i].reason == reason) {
            return -errors[i].number;
        }
    }
    return -EPERM;
}

/* The number that is the first @length characters of @text. */
static bool parse_part(const char *text, size_t length, uint64_t *ret_number)
{
    char digits[32];

    if (length >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    return seep_size_parse_number(digits, ret_number) == 0;
}

bool seep_place_floor_parse(const char *text,
                            struct seep_place_floor *ret_floor)
{
    struct seep_place_floor floor = {.given = true};
    size_t length = strlen(text);
    uint64_t percent = 0;

    if (length > 0 && text[length - 1] == '%'
            ? !parse_part(text, length - 1, &percent) || percent > 100
            : seep_size_parse(text, &floor.bytes) < 0) {
        return false;
    }
    floor.percent = (uint32_t)percent;
    *ret_floor = floor;
    return true;
}

uint64_t seep_place_floor_of(const struct seep_place_floor *floor,
                             uint64_t total_bytes, bool is_tmpfs)
{
    uint64_t quarter = total_bytes / 4;
    uint64_t twentieth = total_bytes / 20;
    uint64_t bytes = twentieth > GIB ? twentieth : GIB;

    if (floor->given) {
        return floor->bytes != 0 ? floor->bytes
                                 : total_bytes / 100 * floor->percent;
    }
    /* A disk of 2 GiB would hold nothing otherwise. */
    return is_tmpfs || bytes > quarter ? quarter : bytes;
}

static uint64_t block_bytes(const struct statfs *status)
{
    return (uint64_t)(status->f_frsize != 0 ? status->f_frsize
                                            : status->f_bsize);
}

static void take_space(const struct statfs *status,
                       struct seep_place_found *place)
{
    place->type = (uint32_t)status->f_type;
    place->total_bytes = (uint64_t)status->f_blocks * block_bytes(status);
    place->free_bytes = (uint64_t)status->f_bavail * block_bytes(status);
    place->floor_bytes = seep_place_floor_of(
        &seep_place_floor, place->total_bytes, place->type == TMPFS_MAGIC);
}

/* A tmpfs without a limit has a size of 0. */
static bool leaves_floor(const struct seep_place_found *place, uint64_t bytes)
{
    return place->total_bytes == 0 ||
           (place->free_bytes >= bytes &&
            place->free_bytes - bytes >= place->floor_bytes);
}

bool seep_place_floor_allows(const struct statfs *status, uint64_t bytes)
{
    struct seep_place_found place;

    take_space(status, &place);
    return leaves_floor(&place, bytes);
}

/* Of an unknown type those on a block device are this machine's own. */
static bool is_local(const char *path)
{
    const struct file_system *system;
    struct statfs status;
    struct stat folder;

    if (seep_syscall2(SYS_statfs, (long)path, (long)&status) < 0) {
        return false;
    }
    system = find_system((uint32_t)status.f_type);
    if (system != NULL) {
        return !system->is_served;
    }
    return seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&folder,
                         0) == 0 &&
           major(folder.st_dev) != 0;
}

bool seep_place_is_local(char *path)
{
    bool local = path[0] == '/' && is_local("/");

    for (char *at = path + 1; local && at[-1] != '\0'; at++) {
        char end = *at;

        if (end == '/' || end == '\0') {
            *at = '\0';
            local = is_local(path);
            *at = end;
        }
    }
    return local;
}

/* btrfs is the only one that counts no inodes at all, and what lies above it
 * tells its counts. */
static bool is_unsafe(const struct statfs *status)
{
    return seep_place_unsafe((uint32_t)status->f_type) != NULL ||
           ((uint32_t)status->f_type == OVERLAYFS_SUPER_MAGIC &&
            status->f_files == 0);
}

static bool is_below(int which, uint64_t bytes)
{
    struct rlimit limit;

    return seep_syscall4(SYS_prlimit64, 0, which, 0, (long)&limit) == 0 &&
           limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes;
}

/* A larger file than allowed would be a SIGXFSZ for the process. */
static bool is_over_limit(uint64_t bytes)
{
    return is_below(RLIMIT_FSIZE, bytes);
}

bool seep_place_is_tight(uint64_t bytes)
{
    return is_over_limit(bytes) || is_below(RLIMIT_AS, 16 * bytes);
}

/* "CommitLimit:    1234 kB"; 0 if there is no such line. */
static uint64_t bytes_behind(const char *text, const char *key)
{
    const char *line = strstr(text, key);

    if (line == NULL) {
        return 0;
    }
    line += strlen(key);
    return seep_proc_number(&line) << 10;
}

uint64_t seep_place_commit_left(const char *mode, const char *meminfo)
{
    uint64_t most = bytes_behind(meminfo, "\nCommitLimit:");
    uint64_t used = bytes_behind(meminfo, "\nCommitted_AS:");

    if (mode[0] != '2' || most == 0) {
        return UINT64_MAX;
    }
    return used < most ? most - used : 0;
}

struct seep_own_limits seep_place_limits(void)
{
    static char meminfo[MEMINFO_BYTES]; /* one thread at a time reads */
    struct seep_own_limits limits = seep_own_limits_now();
    char mode[4] = "";

    if (seep_proc_read("/proc/sys/vm/overcommit_memory", mode, sizeof(mode)) !=
            0 &&
        mode[0] == '2') {
        meminfo[0] = '\0';
        seep_proc_read("/proc/meminfo", meminfo, sizeof(meminfo));
        limits.commit_bytes = seep_place_commit_left(mode, meminfo);
    }
    return limits;
}

static enum seep_place_reason judge(const struct statfs *status,
                                    const struct seep_place_terms *terms,
                                    struct seep_place_found *place)
{
    take_space(status, place);
    if ((status->f_flags & STATFS_IS_READ_ONLY) != 0) {
        return SEEP_PLACE_READ_ONLY;
    }
    if (!terms->any_filesystem && is_unsafe(status)) {
        return SEEP_PLACE_UNSAFE_SYSTEM;
    }
    if (is_over_limit(terms->file_bytes > terms->size_bytes
                          ? terms->file_bytes
                          : terms->size_bytes)) {
        return SEEP_PLACE_FILE_LIMIT;
    }
    if (leaves_floor(place, terms->size_bytes)) {
        return SEEP_PLACE_FINE;
    }
    return place->free_bytes < terms->size_bytes ? SEEP_PLACE_FULL
                                                 : SEEP_PLACE_FLOOR;
}

enum seep_place_reason seep_place_judge(int fd,
                                        const struct seep_place_terms *terms,
                                        struct seep_place_found *ret_place)
{
    struct statfs status = {0}; /* where it is not told there is no limit */

    seep_syscall2(SYS_fstatfs, fd, (long)&status);
    ret_place->reason = judge(&status, terms, ret_place);
    return ret_place->reason;
}

bool seep_place_is_folder(const char *pattern)
{
    size_t length = strlen(pattern);
    struct stat status;

    return (length > 0 && pattern[length - 1] == '/') ||
           (seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)pattern,
                          (long)&status, 0) == 0 &&
            S_ISDIR(status.st_mode));
}

static bool is_placeholder(const char *at)
{
    return at[0] == '%' && at[1] != '\0' && strchr("pehtn", at[1]) != NULL;
}

/* Into @path what stands before the first placeholder, "%%" being a "%". */
static size_t copy_fixed(const char *pattern, struct seep_text *path)
{
    size_t slash = 0;

    for (const char *at = pattern; *at != '\0' && !is_placeholder(at); at++) {
        at += at[0] == '%' && at[1] != '\0';
        seep_text_add_char(path, *at);
        if (*at == '/') {
            slash = path->length;
        }
    }
    return slash;
}

bool seep_place_folder(const char *pattern, char *folder, size_t size)
{
    struct seep_text path;
    size_t end;

    if (seep_place_is_folder(pattern)) {
        return seep_text_copy(folder, size, pattern);
    }
    seep_text_init(&path, folder, size);
    end = copy_fixed(pattern, &path);
    if (end == 0) {
        return seep_text_copy(folder, size, ".");
    }
    if (!path.cut) {
        folder[end == 1 ? 1 : end - 1] = '\0';
    }
    return !path.cut;
}

/* May others who can write to this folder move what is not theirs in it? */
static bool is_open(const struct stat *status)
{
    return (status->st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
           (status->st_mode & S_ISVTX) == 0;
}

/* The folder is in @place. */
static enum seep_place_reason look(const struct seep_place_terms *terms,
                                   struct seep_place_found *place)
{
    long path = (long)place->folder;
    struct stat status;
    struct statfs system;
    long result =
        seep_syscall4(SYS_newfstatat, AT_FDCWD, path, (long)&status, 0);

    if (result == 0 && !S_ISDIR(status.st_mode)) {
        result = -ENOTDIR;
    }
    if (result == 0) {
        place->others_may_move = is_open(&status);
        /* By the real user: who has the rights of another is not recorded. */
        result = seep_syscall3(SYS_faccessat, AT_FDCWD, path, W_OK | X_OK);
    }
    if (result == 0) {
        result = seep_syscall2(SYS_statfs, path, (long)&system);
    }
    place->error = (int)result;
    return result < 0 ? seep_place_reason_of((int)result)
                      : judge(&system, terms, place);
}

/* Is the name, as far as it stands, longer than a name can be? */
static bool is_too_long(const char *pattern)
{
    return strlen(pattern) >= SEEP_PLACE_PATH_BYTES ||
           (!seep_place_is_folder(pattern) &&
            strlen(seep_text_base_name(pattern)) > NAME_BYTES_MAX);
}

enum seep_place_reason seep_place_look(const char *pattern,
                                       const struct seep_place_terms *terms,
                                       struct seep_place_found *ret_place)
{
    memset(ret_place, 0, sizeof(*ret_place));
    if (!seep_place_folder(pattern, ret_place->folder,
                           sizeof(ret_place->folder)) ||
        is_too_long(pattern)) {
        ret_place->reason = SEEP_PLACE_NAME_LONG;
        return ret_place->reason;
    }
    ret_place->reason = look(terms, ret_place);
    if (ret_place->reason != SEEP_PLACE_FINE && pattern[0] != '/' &&
        ret_place->reason != SEEP_PLACE_FULL &&
        ret_place->reason != SEEP_PLACE_FLOOR &&
        terms->fallback_folder != NULL) {
        seep_text_copy(ret_place->folder, sizeof(ret_place->folder),
                       terms->fallback_folder);
        ret_place->is_fallback = true;
        ret_place->reason = look(terms, ret_place);
    }
    return ret_place->reason;
}

bool seep_place_keep_parse(const char *text, struct seep_place_keep *ret_limits)
{
    struct seep_place_keep limits = {0};
    size_t first = strcspn(text, ",");

    if (strcmp(text, "all") == 0) {
        *ret_limits = limits;
        return true;
    }
    if (text[first] == '\0'
            ? seep_size_parse_number(text, &limits.file_count) < 0 &&
                  seep_size_parse(text, &limits.bytes) < 0
            : !parse_part(text, first, &limits.file_count) ||
                  seep_size_parse(text + first + 1, &limits.bytes) < 0 ||
                  limits.bytes == 0) {
        return false;
    }
    if (limits.file_count == 0 && limits.bytes == 0) {
        return false; /* who wants none kept wants none made */
    }
    *ret_limits = limits;
    return true;
}
