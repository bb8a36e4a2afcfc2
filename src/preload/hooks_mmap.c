/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mmap and kin: anonymous and shared memory is recorded as space `mapped`,
 * each call, not by samples: there are few, and a system call is dear anyway.
 *
 * Invariant: a mapping is told after it was made, an unmapping before it is
 * done. The allocator's own mappings and those of files are only counted.
 * Nothing here takes a moment of the timeline: the caller may hold locks.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/syscall.h"
#include "capture/python.h"
#include "preload/hooks.h"
#include "preload/life.h"
#include "preload/maps.h"
#include "preload/python_wrap.h"
#include "preload/real.h"
#include "preload/track.h"

/* <sys/mman.h> declares what is defined here, with other types for 64. */
#include <linux/magic.h>
#include <linux/mman.h>

#define FAILED ((void *)-1)

static uintptr_t allocator_start;
static uintptr_t allocator_end;

void seep_maps_init(const void *start, const void *end)
{
    allocator_start = (uintptr_t)start;
    allocator_end = (uintptr_t)end;
}

static bool is_allocator(uintptr_t caller)
{
    return caller >= allocator_start && caller < allocator_end;
}

/* Shared memory without a file on a disk behind it: memfd, /dev/shm. */
static bool is_shared_memory(int protection, int flags, int fd)
{
    struct statfs status;

    if ((flags & MAP_TYPE) == MAP_PRIVATE || (protection & 2) == 0 ||
        seep_life_is_restricted()) {
        return false;
    }
    return seep_syscall2(SYS_fstatfs, fd, (long)&status) == 0 &&
           (uint32_t)status.f_type == TMPFS_MAGIC;
}

/*
 * Before everything is looked up these hooks are system calls: an allocator in
 * front of us may be in the middle of its own beginning, and dlsym allocates.
 */
static long as_libc(long result)
{
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static size_t whole_pages(size_t size)
{
    return (size + SEEP_PAGE_BYTES - 1) & ~(size_t)(SEEP_PAGE_BYTES - 1);
}

struct request {
    size_t size;
    int protection;
    int flags;
    int fd;
};

/* A mapping was made. What MAP_FIXED replaced is told first. */
static void mapped(const struct seep_capture_start *start, const void *address,
                   const struct request *request)
{
    size_t size = whole_pages(request->size);

    if ((request->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED) {
        seep_track_range(NULL, SEEP_EVENT_UNMAP, address, size);
    }
    if (is_allocator(start->pc) || seep_python_wrap_is_inside()) {
        seep_track_count(SEEP_COUNT_ALLOCATOR_MAPS, 1);
        seep_track_count(SEEP_COUNT_ALLOCATOR_MAP_BYTES, size);
    } else if ((request->flags & MAP_ANONYMOUS) != 0 ||
               is_shared_memory(request->protection, request->flags,
                                request->fd)) {
        struct seep_capture_start from = *start;

        from.alone = seep_python_is_arena(start->pc, size);
        seep_track_range(&from, SEEP_EVENT_MAP, address, size);
    } else {
        seep_track_count(SEEP_COUNT_FILE_MAPS, 1);
        seep_track_count(SEEP_COUNT_FILE_MAP_BYTES, size);
    }
}

void *mmap(void *address, size_t size, int protection, int flags, int fd,
           off_t offset)
{
    struct request request = {size, protection, flags, fd};
    void *result;

    if (seep_unlikely(seep_real.mmap == NULL)) {
        return (void *)as_libc(seep_syscall6(SYS_mmap, (long)address,
                                             (long)size, protection, flags, fd,
                                             offset));
    }
    result = seep_real.mmap(address, size, protection, flags, fd, offset);
    if (result != FAILED) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        mapped(&start, result, &request);
    }
    return result;
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd,
             off_t offset)
{
    struct request request = {size, protection, flags, fd};
    void *result;

    if (seep_unlikely(seep_real.mmap64 == NULL)) {
        return (void *)as_libc(seep_syscall6(SYS_mmap, (long)address,
                                             (long)size, protection, flags, fd,
                                             offset));
    }
    result = seep_real.mmap64(address, size, protection, flags, fd, offset);
    if (result != FAILED) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        mapped(&start, result, &request);
    }
    return result;
}

int munmap(void *address, size_t size)
{
    struct seep_track_out out = {false, 0};
    int result;

    if (seep_unlikely(seep_real.munmap == NULL)) {
        return (int)as_libc(
            seep_syscall2(SYS_munmap, (long)address, (long)size));
    }
    if (!is_allocator((uintptr_t)__builtin_return_address(0))) {
        out = seep_track_range(NULL, SEEP_EVENT_REMAP_OUT, address,
                               whole_pages(size));
    }
    result = seep_real.munmap(address, size);
    if (result != 0) {
        seep_track_remap_failed(address, out);
    }
    return result;
}

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    struct seep_track_out out = {false, 0};
    bool own = !is_allocator((uintptr_t)__builtin_return_address(0));
    void *fixed = NULL;
    void *result;
    va_list arguments;

    if ((flags & MREMAP_FIXED) != 0) {
        va_start(arguments, flags);
        fixed = va_arg(arguments, void *);
        va_end(arguments);
    }
    if (seep_unlikely(seep_real.mremap == NULL)) {
        return (void *)as_libc(seep_syscall6(SYS_mremap, (long)old,
                                             (long)old_size, (long)size, flags,
                                             (long)fixed, 0));
    }
    own = own && seep_track_knows_range(old, whole_pages(old_size));
    if (own && (flags & MREMAP_DONTUNMAP) == 0) {
        out = seep_track_range(NULL, SEEP_EVENT_REMAP_OUT, old,
                               whole_pages(old_size));
    }
    result = seep_real.mremap(old, old_size, size, flags, fixed);
    if (result == FAILED) {
        seep_track_remap_failed(old, out);
    } else if (own) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        if ((flags & MREMAP_FIXED) != 0) {
            seep_track_range(NULL, SEEP_EVENT_UNMAP, result, whole_pages(size));
        }
        seep_track_range(&start, SEEP_EVENT_MAP, result, whole_pages(size));
    }
    return result;
}
