/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why there is no recording. Invariant: a reason is given only when the file
 * shows it; else what is most likely, said as such.
 */
#include "absent.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HEAD_BYTES 4096

/* As execvp() would find it. */
static bool find_program(const char *command, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");

    if (strchr(command, '/') != NULL) {
        snprintf(path, PATH_MAX, "%s", command);
        return access(path, X_OK) == 0;
    }
    folders = folders == NULL ? "/bin:/usr/bin" : folders;
    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");
        snprintf(path, PATH_MAX, "%.*s/%s", length == 0 ? 1 : (int)length,
                 length == 0 ? "." : folders, command);
        if (access(path, X_OK) == 0) {
            return true;
        }
        folders += length;
        folders += *folders == ':';
    }
    return false;
}

static ssize_t read_head(const char *path, char head[HEAD_BYTES + 1])
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, head, HEAD_BYTES);

    if (fd >= 0) {
        close(fd);
    }
    head[length < 0 ? 0 : length] = '\0';
    return length;
}

/* The interpreter of a script is what runs. */
static void follow_script(char path[PATH_MAX], char head[HEAD_BYTES + 1])
{
    char interpreter[PATH_MAX];

    if (strncmp(head, "#!", 2) == 0 &&
        sscanf(head + 2, " %4095s", interpreter) == 1) {
        memcpy(path, interpreter, sizeof(interpreter));
        read_head(path, head);
    }
}

static bool is_native(const Elf64_Ehdr *header)
{
    Elf64_Ehdr own = {0};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && read(fd, &own, sizeof(own)) == (ssize_t)sizeof(own);

    if (fd >= 0) {
        close(fd);
    }
    return !known || (header->e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
                      header->e_machine == own.e_machine);
}

static bool is_static(const char *head, size_t length, const Elf64_Ehdr *header)
{
    for (size_t i = 0; i < header->e_phnum; i++) {
        size_t at = header->e_phoff + i * sizeof(Elf64_Phdr);
        Elf64_Phdr program;
        if (header->e_phoff > length || at + sizeof(program) > length) {
            return false; /* not to be seen from here */
        }
        memcpy(&program, head + at, sizeof(program));
        if (program.p_type == PT_INTERP) {
            return false;
        }
    }
    return true;
}

static bool is_privileged(const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 &&
        (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()))) {
        return true;
    }
    return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool is_folder_refused(const char *out)
{
    char folder[PATH_MAX];
    const char *end = strchr(out, '%');
    size_t length = end == NULL ? strlen(out) : (size_t)(end - out);

    while (length > 1 && out[length - 1] != '/') {
        length--;
    }
    snprintf(folder, sizeof(folder), "%.*s", (int)length, out);
    return access(folder, W_OK | X_OK) < 0;
}

struct seep_absent seep_absent_explain(const char *command, const char *out)
{
    char path[PATH_MAX];
    char head[HEAD_BYTES + 1];
    Elf64_Ehdr header;

    if (find_program(command, path)) {
        ssize_t length = read_head(path, head);
        follow_script(path, head);
        memcpy(&header, head, sizeof(header));
        if (is_privileged(path)) {
            return (struct seep_absent){
                "is set-uid or has capabilities: the loader ignores LD_PRELOAD",
                "run it as its owner"};
        }
        if (length >= (ssize_t)sizeof(header) &&
            memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
            if (!is_native(&header)) {
                return (struct seep_absent){
                    "is of another architecture than libseep.so",
                    "build seep for that one"};
            }
            if (is_static(head, sizeof(head) - 1, &header)) {
                return (struct seep_absent){
                    "is a static program: no loader, no LD_PRELOAD",
                    "link it dynamically"};
            }
        }
    }
    if (is_folder_refused(out)) {
        return (struct seep_absent){"could not write into the folder of -o",
                                    "name one where it may"};
    }
    return (struct seep_absent){
        "left no recording: it allocated too little to be sampled, or its "
        "folder refused the file (full, or not a local one)",
        "try --exact, or -o with a folder on tmpfs"};
}
