/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facts about this machine, this user and this installation; see doctor.h.
 *
 * Invariant: what could end this process is tried in a child.
 */
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "doctor.h"
#include "doctor_trial.h"
#include "format/layout.h"
#include "launch.h"
#include "locate.h"
#include "say.h"
#include "units.h"

#define TRIAL_LIMIT_S 10.0

static char own_path[PATH_MAX]; /* argv of a child is not const */

static const char *variable(const char *name)
{
    return getenv(name);
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;

    return getrlimit((__rlimit_resource_t)resource, &limit) < 0 ||
                   limit.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX
               : limit.rlim_cur;
}

static int take_libc(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    if (strncmp(seep_text_base_name(info->dlpi_name), "libc.so", 7) == 0) {
        snprintf(path, PATH_MAX, "%s", info->dlpi_name);
        return 1;
    }
    return 0;
}

static bool has_flag(const char *path, unsigned long flag)
{
    struct statvfs status;

    return statvfs(path, &status) == 0 && (status.f_flag & flag) != 0;
}

/* In a child: a filter may end who calls it. */
static int try_vm_readv(void)
{
    uint64_t from = 42;
    uint64_t to = 0;
    struct iovec local = {&to, sizeof(to)};
    struct iovec remote = {&from, sizeof(from)};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        _exit(got == (ssize_t)sizeof(to) && to == from ? 0
              : errno < 128                            ? errno
                                                       : EIO);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return 0;
    }
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECANCELED;
}

/* As the preload would take it, without --size and --exact. */
static uint64_t size_of_recording(void)
{
    const char *given = getenv("SEEP_SIZE");
    uint64_t bytes;

    return given != NULL && seep_units_parse_bytes(given, &bytes) == 0 &&
                   bytes >= SEEP_LAYOUT_LEAST_BYTES &&
                   bytes <= SEEP_LAYOUT_MOST_BYTES
               ? bytes
               : SEEP_LAYOUT_DEFAULT_BYTES;
}

static void take_trial(struct seep_doctor_facts *facts)
{
    static char option[] = "--version";
    ssize_t length = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    char *argv[] = {own_path, option, NULL};

    own_path[length < 0 ? 0 : length] = '\0';
    if (facts->library != NULL) {
        facts->library_noexec = has_flag(facts->library, ST_NOEXEC);
        seep_doctor_try(argv, facts->library, "1", TRIAL_LIMIT_S,
                        &facts->trial);
    }
}

int seep_doctor_facts_take(const struct seep_doctor_options *options,
                           struct seep_doctor_facts *ret_facts)
{
    static char libc_path[PATH_MAX];
    char *library = NULL;
    char *out;

    *ret_facts = (struct seep_doctor_facts){
        .root = "",
        .variable = variable,
        .command = options->command,
        .size_bytes = size_of_recording(),
        .glibc = gnu_get_libc_version(),
        .libc_path = libc_path,
        .file_limit_bytes = limit_of(RLIMIT_FSIZE),
        .memory_limit_bytes = limit_of(RLIMIT_AS),
        .root_read_only = has_flag("/", ST_RDONLY),
    };
    out = seep_launch_out(options->out);
    if (out == NULL) {
        seep_say("current folder", strerror(errno), "name one with -o");
        return SEEP_EXIT_FAILED;
    }
    ret_facts->library_error = seep_locate_preload(&library);
    ret_facts->library = library;
    dl_iterate_phdr(take_libc, libc_path);
    seep_doctor_folder_take(out, ret_facts->size_bytes,
                            ret_facts->file_limit_bytes, &ret_facts->folder);
    free(out);
    ret_facts->vm_readv_error = try_vm_readv();
    take_trial(ret_facts);
    seep_doctor_python_take(ret_facts);
    return 0;
}

void seep_doctor_facts_close(struct seep_doctor_facts *facts)
{
    free((char *)(uintptr_t)facts->library);
}
