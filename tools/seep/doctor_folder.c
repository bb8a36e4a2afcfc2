/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where recordings go: can a file be made there, reserved and mapped, and does
 * what is reserved hold?
 *
 * Invariant: the trial leaves no file, and writes no more than one page.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor.h"
#include "format/layout.h"
#include "units.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

/* What the preload refuses (record/region.c), and what is worth a word. */
static const struct file_system {
    uint32_t type;
    const char *name;
    const char *refused; /* why; NULL: it is not */
} file_systems[] = {
    {NFS_SUPER_MAGIC, "NFS", "a network"},
    {FUSE_SUPER_MAGIC, "FUSE", "a program"},
    {0xff534d42, "CIFS", "a network"},
    {0xfe534d42, "SMB", "a network"},
    {BTRFS_SUPER_MAGIC, "btrfs", "copy on write"},
    {0x2fc12fc1, "ZFS", "copy on write"},
    {0xca451a4e, "bcachefs", "copy on write"},
    {TMPFS_MAGIC, "tmpfs", NULL},
    {OVERLAYFS_SUPER_MAGIC, "overlay", NULL},
    {EXT4_SUPER_MAGIC, "ext4", NULL},
    {XFS_SUPER_MAGIC, "xfs", NULL},
};

static const struct file_system *system_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]);
         i++) {
        if (file_systems[i].type == type) {
            return &file_systems[i];
        }
    }
    return NULL;
}

/* The nearest folder above the pattern's first placeholder that exists: what
 * lies between is created by `seep run`. */
static void find_folder(const char *out, char path[PATH_MAX])
{
    size_t length = strcspn(out, "%");
    struct stat status;

    snprintf(path, PATH_MAX, "%.*s", (int)length, out);
    do {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path) {
            snprintf(path, PATH_MAX, "/");
            return;
        }
        *slash = '\0';
    } while (stat(path, &status) < 0 && errno == ENOENT);
}

static int open_nameless(const char *folder)
{
    char path[PATH_MAX + 32];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL &&
                    errno != ENOENT)) {
        return fd;
    }
    snprintf(path, sizeof(path), "%s/.seep-doctor-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

static int try_file(const char *folder, uint64_t size_bytes,
                    const char **ret_step)
{
    int fd = open_nameless(folder);
    int error = fd < 0 ? -errno : 0;

    *ret_step = "be created";
    if (error == 0) {
        *ret_step = "be reserved";
        error = fallocate(fd, 0, 0, (off_t)size_bytes) < 0 ? -errno : 0;
        if (error == -EOPNOTSUPP) { /* the preload writes zeros then */
            error = ftruncate(fd, (off_t)size_bytes) < 0 ? -errno : 0;
        }
    }
    if (error == 0) {
        *ret_step = "be mapped";
        char *mapping =
            mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapping == MAP_FAILED) {
            error = -errno;
        } else {
            munmap(mapping, size_bytes);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

void seep_doctor_folder_take(const char *out, uint64_t size_bytes,
                             uint64_t file_limit_bytes,
                             struct seep_doctor_folder *ret_folder)
{
    struct seep_doctor_folder folder = {.step = "be created"};
    struct statvfs space;
    struct statfs kind;
    struct stat status;

    find_folder(out, folder.path);
    if (statfs(folder.path, &kind) == 0) {
        folder.type = (uint32_t)kind.f_type;
    }
    if (statvfs(folder.path, &space) == 0) {
        folder.free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    }
    if (stat(folder.path, &status) == 0) {
        folder.unsafe =
            (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
    }
    /* beyond the limit it would be a SIGXFSZ for us; that row tells it */
    if (file_limit_bytes < size_bytes) {
        size_bytes = file_limit_bytes & ~UINT64_C(4095);
    }
    if (size_bytes > 0) {
        folder.error = try_file(folder.path, size_bytes, &folder.step);
    }
    *ret_folder = folder;
}

static void find_failed(const struct seep_doctor_facts *facts,
                        struct seep_doctor *doctor)
{
    const struct seep_doctor_folder *folder = &facts->folder;
    const char *remedy =
        folder->error == -ENOSPC || folder->error == -EDQUOT
            ? "make room, name another folder with -o, or --size 2MiB"
        : folder->error == -EROFS
            ? "mount a volume, and name it with -o or SEEP_OUT"
            : "name another folder with -o or SEEP_OUT";

    seep_doctor_find(doctor, "folder", SEEP_DOCTOR_NO, remedy,
                     "in %s a recording cannot %s: %s", folder->path,
                     folder->step, strerror(-folder->error));
}

static void find_refused(const struct seep_doctor_facts *facts,
                         struct seep_doctor *doctor,
                         const struct file_system *system)
{
    bool allowed = facts->variable("SEEP_OUT_ANY") != NULL;

    seep_doctor_find(
        doctor, "folder", allowed ? SEEP_DOCTOR_WARN : SEEP_DOCTOR_NO,
        allowed ? "name a folder on a local disk or a tmpfs with -o"
                : "name a folder on a local disk or a tmpfs with -o; or "
                  "SEEP_OUT_ANY=1 if a worker may die of it",
        "%s is %s: what is reserved there can still fail to be written (%s), "
        "which kills the worker",
        facts->folder.path, system->name, system->refused);
}

static void find_fine(const struct seep_doctor_facts *facts,
                      struct seep_doctor *doctor,
                      const struct file_system *system)
{
    const struct seep_doctor_folder *folder = &facts->folder;
    const char *name = system == NULL ? "a local file system" : system->name;
    char text[SEEP_UNITS_TEXT_BYTES];
    const char *left = seep_units_bytes((double)folder->free_bytes, text);

    if (folder->free_bytes < SEEP_LAYOUT_EXACT_BYTES) {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_WARN,
                         "make room, or name another folder with -o",
                         "%s (%s) has %s free: a recording of the exact mode "
                         "takes 256 MiB",
                         folder->path, name, left);
    } else if (folder->type == (uint32_t)TMPFS_MAGIC) {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_WARN,
                         "mind it in the memory limit, or name a disk with -o",
                         "%s is a tmpfs, %s free: recordings there count as "
                         "memory, and are gone after a reboot",
                         folder->path, left);
    } else if (folder->type == (uint32_t)OVERLAYFS_SUPER_MAGIC) {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_WARN,
                         "name a volume with -o or SEEP_OUT",
                         "%s is an overlay, %s free: recordings there go when "
                         "the container goes",
                         folder->path, left);
    } else {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_OK, NULL,
                         "%s (%s), %s free: a recording was reserved there",
                         folder->path, name, left);
    }
}

void seep_doctor_check_folder(const struct seep_doctor_facts *facts,
                              struct seep_doctor *doctor)
{
    const struct seep_doctor_folder *folder = &facts->folder;
    const struct file_system *system = system_of(folder->type);

    if (folder->error < 0) {
        find_failed(facts, doctor);
    } else if (folder->unsafe) {
        seep_doctor_find(doctor, "folder", SEEP_DOCTOR_NO,
                         "chmod o-w it, or chmod +t",
                         "%s can be written by everybody and has no sticky "
                         "bit: no recording is made there",
                         folder->path);
    } else if (system != NULL && system->refused != NULL) {
        find_refused(facts, doctor, system);
    } else {
        find_fine(facts, doctor, system);
    }
}
