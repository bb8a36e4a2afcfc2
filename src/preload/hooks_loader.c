/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loaded objects that go, processes that restrict themselves and that end,
 * threads that are named.
 *
 * Invariant: all of these are forwarded unchanged; what is noted is noted
 * before the thing happens, so that we are never late; only that a thread has a
 * name is noted behind it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/syscall.h"
#include "capture/native/elf.h"
#include "cuda/resolve.h"
#include "preload/hooks.h"
#include "preload/life.h"
#include "preload/real.h"
#include "preload/track.h"

/* The end of the run. */

/* Reads one word of the runtime's state: no GIL, no lock, at any time. */
static int (*is_finalizing)(void);

void seep_ending_init(void)
{
    /* CPython 3.13 and later; 3.7 to 3.12. */
    static const char *const names[] = {"Py_IsFinalizing", "_Py_IsFinalizing"};
    void *symbol = NULL;

    for (size_t i = 0; i < 2 && symbol == NULL; i++) {
        symbol = seep_elf_is_defined(names[i]) ? dlsym(RTLD_DEFAULT, names[i])
                                               : NULL;
    }
    memcpy(&is_finalizing, &symbol, sizeof(is_finalizing));
}

bool seep_ending_has_begun(void)
{
    return is_finalizing != NULL && is_finalizing() != 0;
}

int dlclose(void *handle)
{
    int result;

    /* Not tested: an IFUNC resolver with a handle; glibc aborts at a dlopen()
     * so early. */
    if (seep_real.dlclose == NULL && !seep_real_resolve()) {
        return -1;
    }
    seep_track_count(SEEP_COUNT_UNLOADS, 1);
    seep_objects_unload_begin();
    result = seep_real.dlclose(handle);
    seep_objects_unload_end();
    seep_cuda_forget_unloaded();
    return result;
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *),
                    void *data)
{
    if (seep_objects_serves_this_thread()) {
        return seep_objects_iterate(callback, data);
    }
    if (seep_real.dl_iterate_phdr == NULL && !seep_real_resolve()) {
        return 0;
    }
    return seep_real.dl_iterate_phdr(callback, data);
}

/* syscall() before libc's is looked up: by an allocator in front of us, in
 * the middle of its beginning, when dlsym could not be asked. */
static long raw_syscall(long number, ...)
{
    long argument[6];
    va_list arguments;

    va_start(arguments, number);
    for (int i = 0; i < 6; i++) {
        argument[i] = va_arg(arguments, long);
    }
    va_end(arguments);
    return seep_real_as_libc(
        seep_syscall_forward(number, argument[0], argument[1], argument[2],
                             argument[3], argument[4], argument[5]));
}

int prctl(int option, ...)
{
    unsigned long argument[4];
    int result;
    va_list arguments;

    va_start(arguments, option);
    for (int i = 0; i < 4; i++) {
        argument[i] = va_arg(arguments, unsigned long);
    }
    va_end(arguments);
    if (option == PR_SET_SECCOMP || option == PR_SET_TSC) {
        seep_life_restrict();
    }
    if (seep_unlikely(seep_real.prctl == NULL)) {
        return (int)raw_syscall(SYS_prctl, option, argument[0], argument[1],
                                argument[2], argument[3], 0);
    }
    result = seep_real.prctl(option, argument[0], argument[1], argument[2],
                             argument[3]);
    if (option == PR_SET_NAME && result == 0) {
        seep_thread_name_changed((const char *)argument[0]);
    }
    return result;
}

/* Before any handler or destructor: they free what was leaked. From an IFUNC
 * resolver nothing of libc's exit() is there to be done. Not tested: who ends
 * so early counts no branches; exit_early and odd_first (test_odd_calls) do. */
void exit(int status)
{
    seep_life_exiting();
    if (seep_unlikely(seep_real.exit == NULL) &&
        (!seep_real_resolve() || seep_real.exit == NULL)) {
        seep_syscall_forward(SYS_exit_group, status, 0, 0, 0, 0, 0);
    }
    seep_real.exit(status);
}

int pthread_setname_np(pthread_t thread, const char *name)
{
    int error;

    /* Not tested: a C library without it. */
    if (seep_real.pthread_setname_np == NULL &&
        (!seep_real_resolve() || seep_real.pthread_setname_np == NULL)) {
        return ENOSYS;
    }
    error = seep_real.pthread_setname_np(thread, name);
    if (error == 0) {
        seep_thread_name_changed(thread == pthread_self() ? name : NULL);
    }
    return error;
}

long (*seep_restrict_syscall(long number, long operation))(long, ...)
{
    /* The operations after SET_MODE_FILTER are questions. */
    if (number == SYS_seccomp && operation <= SECCOMP_SET_MODE_FILTER) {
        seep_life_restrict();
    }
    return seep_likely(seep_real.syscall != NULL) ? seep_real.syscall
                                                  : raw_syscall;
}
