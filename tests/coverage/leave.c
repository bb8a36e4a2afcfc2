/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In a build that counts what runs (-Db_coverage=true), counters are written
 * by exit(). A process that leaves by _exit() or becomes another program
 * writes them here: children of tests do, and what only they run would be
 * missing. One that a signal ends counts nothing.
 *
 * Linked into libseep.so and into unit tests, of such a build alone.
 */
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

void __gcov_dump(void);
void __gcov_reset(void);

/* A child of vfork() has its parent's counters: each is written once. */
static void write_counters(void)
{
    __gcov_dump();
    __gcov_reset();
}

SHOWN void _exit(int status)
{
    write_counters();
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

SHOWN void _Exit(int status)
{
    _exit(status);
}

SHOWN int execve(const char *path, char *const argv[], char *const envp[])
{
    write_counters();
    return (int)syscall(SYS_execve, path, argv, envp);
}

SHOWN int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

SHOWN int execvp(const char *file, char *const argv[])
{
    write_counters();
    return execvpe(file, argv, environ);
}
