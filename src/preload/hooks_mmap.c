/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mmap and kin, segments of shared memory, the break: anonymous and shared
 * memory is recorded as space `mapped`, files as space `file`, each call, not
 * by samples: there are few, and a system call is dear anyway.
 *
 * Invariant: a mapping is recorded after it was made, an unmapping before it is
 * done. The own mappings of the allocator and of the CUDA driver, and those of
 * devices, are only counted.
 * No sample of the timeline is taken here: the caller may hold locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <linux/shm.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "capture/python/interpreter.h"
#include "cuda/resolve.h"
#include "preload/hooks.h"
#include "preload/life.h"
#include "preload/real.h"
#include "preload/track.h"
#include "record/region.h"

/* <sys/mman.h> declares what is defined here, with other types for 64. Before
 * everything is looked up these hooks are system calls: an allocator in front
 * of us may be in the middle of its own beginning, and dlsym allocates. */

#define FAILED ((void *)-1)
#define DEV_ZERO makedev(1, 5)

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

    if ((flags & MAP_TYPE) == MAP_PRIVATE || (protection & PROT_WRITE) == 0) {
        return false;
    }
    return seep_syscall2(SYS_fstatfs, fd, (long)&status) == 0 &&
           (uint32_t)status.f_type == TMPFS_MAGIC;
}

/*
 * What a mapping with a descriptor is of, by one question to the kernel, which
 * the program itself asked to know the file's size. Devices, rings of the
 * kernel and the like are neither memory nor page cache; /dev/zero is memory
 * under another name. A page of a private mapping that the program writes to
 * becomes memory of its own, and goes on being counted as the file's.
 *
 * Where no question may be asked all of them are files. It is the call by which
 * the loader asks of each object: a filter from before exec allows that.
 */
static bool space_of_file(int protection, int flags, int fd,
                          enum seep_space *ret_space)
{
    static _Atomic bool refused;
    struct stat status;
    long result;

    *ret_space = SEEP_SPACE_FILE;
    if (seep_life_is_restricted() || seep_word_load(&refused)) {
        return true;
    }
    result = seep_syscall4(SYS_newfstatat, fd, (long)"", (long)&status,
                           AT_EMPTY_PATH);
    /* Of a filter; not of a file that another thread closed meanwhile. */
    if (result == -EPERM || result == -EACCES || result == -ENOSYS) {
        seep_word_store(&refused, true);
    }
    if (result != 0) {
        return true;
    }
    if (S_ISREG(status.st_mode)) {
        *ret_space = is_shared_memory(protection, flags, fd) ? SEEP_SPACE_MAPPED
                                                             : SEEP_SPACE_FILE;
        return true;
    }
    /* Not tested: another device that can be mapped; few machines have one. */
    if (S_ISCHR(status.st_mode) && status.st_rdev == DEV_ZERO) {
        *ret_space = SEEP_SPACE_MAPPED;
        return true;
    }
    return S_ISBLK(status.st_mode);
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

/* Of a file, a device, or memory that goes by a descriptor. */
static void mapped_file(const struct seep_capture_start *start,
                        const void *address, const struct request *request)
{
    size_t size = whole_pages(request->size);
    enum seep_space space = SEEP_SPACE_FILE;

    if (seep_track_wants_range(size) &&
        space_of_file(request->protection, request->flags, request->fd,
                      &space)) {
        seep_track_mapped(start, space, address, size);
    }
    if (space == SEEP_SPACE_FILE) {
        seep_track_count(SEEP_COUNT_FILE_MAPS, 1);
        seep_track_count(SEEP_COUNT_FILE_MAP_BYTES, size);
    }
}

static void count_own(size_t size)
{
    seep_track_count(SEEP_COUNT_ALLOCATOR_MAPS, 1);
    seep_track_count(SEEP_COUNT_ALLOCATOR_MAP_BYTES, size);
}

/*
 * The CUDA driver sets address space aside for what lies in a device (some 300
 * GiB at its start) and maps devices into it behind our back; and what it maps
 * in a call that is recorded is what that call is recorded for: pinned memory
 * would count twice.
 */
static bool is_drivers_own(const struct seep_capture_start *start,
                           const struct request *request)
{
    return (request->protection == PROT_NONE || seep_thread.in_driver) &&
           seep_cuda_is_driver(start->pc);
}

/* A mapping was made. What MAP_FIXED replaced is recorded first. */
static void mapped(const struct seep_capture_start *start, const void *address,
                   const struct request *request)
{
    size_t size = whole_pages(request->size);
    bool is_anonymous = (request->flags & MAP_ANONYMOUS) != 0;

    if ((request->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED) {
        seep_track_range(SEEP_EVENT_UNMAP, address, size);
    }
    if (is_allocator(start->pc) || seep_track_is_marked() ||
        (is_anonymous && is_drivers_own(start, request))) {
        count_own(size);
    } else if (!is_anonymous) {
        mapped_file(start, address, request);
    } else {
        struct seep_capture_start from = *start;

        from.alone = seep_python_is_arena(start->pc, size);
        seep_track_mapped(&from, SEEP_SPACE_MAPPED, address, size);
    }
}

/* In line in the two hooks: the stack begins at the caller of each. */
SEEP_INLINE void *map(void *(*real)(void *, size_t, int, int, int, off_t),
                      void *address, const struct request *request,
                      off_t offset)
{
    void *result;

    if (seep_unlikely(real == NULL)) {
        return (void *)seep_real_as_libc(seep_syscall_forward(
            SYS_mmap, (long)address, (long)request->size, request->protection,
            request->flags, request->fd, offset));
    }
    result = real(address, request->size, request->protection, request->flags,
                  request->fd, offset);
    if (seep_unlikely(result == FAILED) && errno == ENOMEM &&
        seep_limits_give_way(request->size)) {
        result = real(address, request->size, request->protection,
                      request->flags, request->fd, offset);
    }
    if (result != FAILED) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        mapped(&start, result, request);
    }
    return result;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd,
           off_t offset)
{
    struct request request = {size, protection, flags, fd};

    return map(seep_real.mmap, address, &request, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd,
             off_t offset)
{
    struct request request = {size, protection, flags, fd};

    return map(seep_real.mmap64, address, &request, offset);
}

/* Who unmaps what it did not make, as all that is shared and can be written to,
 * would die at the next allocation: the recording stays, the rest goes. */
static int unmap_beside(char *address, size_t size, char *start, char *end)
{
    char *last = address + whole_pages(size);
    int result = 0;

    if (address < start) {
        result = munmap(address, (size_t)(start - address));
    }
    if (result == 0 && last > end) {
        result = munmap(end, (size_t)(last - end));
    }
    return result;
}

int munmap(void *address, size_t size)
{
    struct seep_track_out out = {false, 0};
    char *start;
    char *end;
    int result;

    if (seep_unlikely(seep_real.munmap == NULL)) {
        return (int)seep_real_as_libc(seep_syscall_forward(
            SYS_munmap, (long)address, (long)size, 0, 0, 0, 0));
    }
    if (seep_unlikely(seep_room_is_in(address, size, &start, &end))) {
        return unmap_beside(address, size, start, end);
    }
    if (!is_allocator((uintptr_t)__builtin_return_address(0))) {
        out =
            seep_track_range(SEEP_EVENT_REMAP_OUT, address, whole_pages(size));
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
    enum seep_space space = SEEP_SPACE_MAPPED;
    void *fixed = NULL;
    uint64_t bytes;
    void *result;
    va_list arguments;

    /* glibc from 2.39 on takes it with both, which may be a wish. */
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
        va_start(arguments, flags);
        fixed = va_arg(arguments, void *);
        va_end(arguments);
    }
    if (seep_unlikely(seep_real.mremap == NULL)) {
        return (void *)seep_real_as_libc(
            seep_syscall_forward(SYS_mremap, (long)old, (long)old_size,
                                 (long)size, flags, (long)fixed, 0));
    }
    own = own &&
          seep_track_knows_range(old, whole_pages(old_size), &space, &bytes);
    if (own && (flags & MREMAP_DONTUNMAP) == 0) {
        out =
            seep_track_range(SEEP_EVENT_REMAP_OUT, old, whole_pages(old_size));
    }
    result = seep_real.mremap(old, old_size, size, flags, fixed);
    if (seep_unlikely(result == FAILED) && errno == ENOMEM && size > old_size &&
        seep_limits_give_way(size - old_size)) {
        result = seep_real.mremap(old, old_size, size, flags, fixed);
    }
    if (result == FAILED) {
        seep_track_remap_failed(old, out);
    } else if (own) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        if ((flags & MREMAP_FIXED) != 0) {
            seep_track_range(SEEP_EVENT_UNMAP, result, whole_pages(size));
        }
        seep_track_mapped(&start, space, result, whole_pages(size));
    }
    return result;
}

/* Of the C library, by another name: before names are looked up an allocator
 * may ask for the break under its own lock, and who looks a name up that is not
 * there allocates. */
extern void *libc_sbrk(intptr_t) __asm__("__sbrk") __attribute__((weak));

static void *sbrk_of_libc(intptr_t increment)
{
    if (libc_sbrk != NULL) {
        return libc_sbrk(increment);
    }
    seep_real_set_errno(ENOMEM);
    return FAILED;
}

/* The program's own use of the break; an allocator's is counted by its blocks.
 */
void *sbrk(intptr_t increment)
{
    bool own = !is_allocator((uintptr_t)__builtin_return_address(0));
    struct seep_track_out out = {false, 0};
    char *end = NULL;
    void *old;

    if (seep_unlikely(seep_real.sbrk == NULL)) {
        return sbrk_of_libc(increment);
    }
    if (own && increment < 0) {
        end = (char *)seep_real.sbrk(0) + increment;
        out = seep_track_range(SEEP_EVENT_REMAP_OUT, end, (size_t)-increment);
    }
    old = seep_real.sbrk(increment);
    if (old == FAILED && end != NULL) {
        seep_track_remap_failed(end, out);
    } else if (own && increment > 0 && old != FAILED) {
        struct seep_capture_start start = SEEP_CAPTURE_START();

        seep_track_mapped(&start, SEEP_SPACE_MAPPED, old, (size_t)increment);
    }
    return old;
}

/* Of a segment, by one question to the kernel, which whoever may attach it may
 * ask. What is only read is another's. @return 0: not to be recorded */
static size_t size_of_segment(int id, int flags)
{
    struct shmid64_ds segment = {.shm_segsz = 0};

    if ((flags & SHM_RDONLY) != 0 || seep_life_is_restricted() ||
        seep_syscall3(SYS_shmctl, id, IPC_STAT, (long)&segment) < 0) {
        return 0;
    }
    return whole_pages(segment.shm_segsz);
}

void *shmat(int id, const void *address, int flags)
{
    void *result;

    if (seep_unlikely(seep_real.shmat == NULL)) {
        return (void *)seep_real_as_libc(
            seep_syscall_forward(SYS_shmat, id, (long)address, flags, 0, 0, 0));
    }
    result = seep_real.shmat(id, address, flags);
    if (result != FAILED) {
        struct seep_capture_start start = SEEP_CAPTURE_START();
        size_t size = size_of_segment(id, flags);

        if (size != 0 && (flags & SHM_REMAP) != 0) {
            seep_track_range(SEEP_EVENT_UNMAP, result, size);
        }
        if (size != 0) {
            seep_track_mapped(&start, SEEP_SPACE_MAPPED, result, size);
        }
    }
    return result;
}

/* The kernel knows how long a segment is, and so does what was recorded. */
int shmdt(const void *address)
{
    struct seep_track_out out = {false, 0};
    enum seep_space space;
    uint64_t bytes = 0;
    int result;

    if (seep_unlikely(seep_real.shmdt == NULL)) {
        return (int)seep_real_as_libc(
            seep_syscall_forward(SYS_shmdt, (long)address, 0, 0, 0, 0, 0));
    }
    if (seep_track_knows_range(address, 1, &space, &bytes) && bytes > 0) {
        out = seep_track_range(SEEP_EVENT_REMAP_OUT, address, bytes);
    }
    result = seep_real.shmdt(address);
    if (result != 0) {
        seep_track_remap_failed(address, out);
    }
    return result;
}
