/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits of memory that the program meets, or sets itself: what we take of them
 * goes before it is refused anything.
 *
 * Invariant: a call that fails here fails without us, too; one that a limit
 * makes fail with us is tried again without. errno is that of the last try.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/real.h"
#include "preload/track.h"
#include "record/region.h"

/* <sys/resource.h> declares what is defined here, with another type. */
#define RLIMIT_DATA 2
#define RLIMIT_AS 9

/* What an allocator asks for beside a block: its head, and the rest of a step
 * of its heap. */
#define BESIDE_BYTES (UINT64_C(256) << 10)
#define STACK_BYTES (UINT64_C(8) << 20)
#define JUST_NS UINT64_C(1000000000)
/* Of a limit that is set so much is to be left, if it would be without us. */
#define LEFT_SHARE 4U

/* What would go, of addresses, and of private memory. */
struct part {
    uint64_t address_bytes;
    uint64_t private_bytes;
};

static struct part ours(void)
{
    struct part part;

    part.address_bytes = seep_region_held_bytes(&part.private_bytes);
    part.address_bytes += seep_own_guarded_bytes();
    part.private_bytes += seep_own_guarded_bytes();
    return part;
}

/* What the process has of both, as its limits count it. */
static bool read_used(struct part *ret_used)
{
    char text[128];
    const char *at = text;

    if (seep_proc_read("/proc/self/statm", text, sizeof(text)) == 0) {
        return false;
    }
    ret_used->address_bytes = seep_proc_number(&at) * SEEP_PAGE_BYTES;
    for (int i = 0; i < 4; i++) {
        seep_proc_number(&at);
    }
    ret_used->private_bytes = seep_proc_number(&at) * SEEP_PAGE_BYTES;
    return true;
}

/* Are @bytes more too much with @ours, and not without? */
static bool is_ours(uint64_t limit_bytes, uint64_t used_bytes, uint64_t ours,
                    uint64_t bytes)
{
    return limit_bytes != UINT64_MAX && bytes <= limit_bytes && ours != 0 &&
           used_bytes + bytes + BESIDE_BYTES > limit_bytes &&
           used_bytes - (ours < used_bytes ? ours : used_bytes) + bytes <=
               limit_bytes;
}

static _Atomic uint64_t given_ns; /* 0: nothing was given back */

static bool give(void)
{
    bool given = seep_life_close();

    if (given) {
        seep_word_store(&given_ns, seep_clock_monotonic_ns() + 1);
    }
    return given;
}

/* While this thread was refused what it asked for? */
static bool was_just_given(void)
{
    uint64_t since = seep_word_load(&given_ns);

    return since != 0 && seep_clock_monotonic_ns() - since < JUST_NS;
}

SEEP_COLD bool seep_limits_give_way(size_t size_bytes)
{
    struct seep_own_limits limits;
    struct part held;
    struct part used;

    if (seep_life_state() < SEEP_LIFE_ON || seep_life_is_restricted() ||
        seep_thread.hook_frame != 0 || !seep_identity_is_ours()) {
        return false;
    }
    limits = seep_own_limits_now();
    held = ours();
    if (held.address_bytes == 0) {
        return was_just_given();
    }
    if ((limits.address_bytes == UINT64_MAX &&
         limits.data_bytes == UINT64_MAX) ||
        !read_used(&used)) {
        return false;
    }
    return (is_ours(limits.address_bytes, used.address_bytes,
                    held.address_bytes, size_bytes) ||
            is_ours(limits.data_bytes, used.private_bytes, held.private_bytes,
                    size_bytes)) &&
           give();
}

/* Is there one thread? A folder has two links, and one for each in it. */
static bool is_alone(void)
{
    struct stat status;

    return seep_syscall4(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task",
                         (long)&status, 0) == 0 &&
           status.st_nlink == 3;
}

/* The program has set itself a limit: it counts on what it has beside it. */
static void limit_was_set(int which)
{
    struct seep_own_limits limits;
    struct part held;
    struct part used;

    if ((which != RLIMIT_AS && which != RLIMIT_DATA) ||
        seep_life_state() != SEEP_LIFE_ON || seep_life_is_restricted() ||
        seep_thread.hook_frame != 0 || !seep_identity_is_ours()) {
        return;
    }
    if (is_alone()) {
        seep_life_count();
    }
    limits = seep_own_limits_now();
    held = ours();
    if (read_used(&used) &&
        (is_ours(limits.address_bytes, used.address_bytes, held.address_bytes,
                 limits.address_bytes / LEFT_SHARE) ||
         is_ours(limits.data_bytes, used.private_bytes, held.private_bytes,
                 limits.data_bytes / LEFT_SHARE))) {
        give();
    }
}

static int set_raw(pid_t pid, int which, const void *limit, void *old)
{
    return (int)seep_real_as_libc(seep_syscall_forward(
        SYS_prlimit64, pid, which, (long)limit, (long)old, 0, 0));
}

#define DEFINE_SET(name)                                                      \
    int name(int which, const void *limit)                                    \
    {                                                                         \
        int result = seep_real.name != NULL ? seep_real.name(which, limit)    \
                                            : set_raw(0, which, limit, NULL); \
                                                                              \
        if (result == 0) {                                                    \
            limit_was_set(which);                                             \
        }                                                                     \
        return result;                                                        \
    }

DEFINE_SET(setrlimit)
DEFINE_SET(setrlimit64)

#define DEFINE_SET_OF(name)                                       \
    int name(pid_t pid, int which, const void *limit, void *old)  \
    {                                                             \
        int result = seep_real.name != NULL                       \
                         ? seep_real.name(pid, which, limit, old) \
                         : set_raw(pid, which, limit, old);       \
                                                                  \
        if (result == 0 && limit != NULL) {                       \
            limit_was_set(which);                                 \
        }                                                         \
        return result;                                            \
    }

DEFINE_SET_OF(prlimit)
DEFINE_SET_OF(prlimit64)

/* libc maps the stack of a thread by itself. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*start)(void *), void *argument)
{
    size_t stack_bytes = STACK_BYTES;
    int error;

    /* Not tested: a thread that an IFUNC resolver makes. */
    if (seep_real.pthread_create == NULL && !seep_real_resolve()) {
        return EAGAIN;
    }
    error = seep_real.pthread_create(thread, attributes, start, argument);
    if (seep_unlikely(error == EAGAIN)) {
        if (attributes != NULL) {
            pthread_attr_getstacksize(attributes, &stack_bytes);
        }
        if (seep_limits_give_way(stack_bytes)) {
            error =
                seep_real.pthread_create(thread, attributes, start, argument);
        }
    }
    return error;
}
