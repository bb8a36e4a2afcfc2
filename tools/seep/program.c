/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What would be executed. Invariant: nothing is executed, and a kind other
 * than FINE is given only when the file shows it.
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/launchers.h"
#include "base/text.h"
#include "elf_look.h"

#define SCRIPTS_MOST 4 /* that lead from one to the next, as the kernel's */
#define LINE_BYTES 256

static const struct {
    const char *reason;
    const char *remedy;
} kinds[] = {
#define KIND_WORDS(symbol, reason, remedy) {reason, remedy},
    SEEP_PROGRAMS(KIND_WORDS)
#undef KIND_WORDS
};

const char *seep_program_reason(enum seep_program_kind kind)
{
    return kinds[kind].reason;
}

const char *seep_program_remedy(enum seep_program_kind kind)
{
    return kinds[kind].remedy;
}

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

int seep_program_find(const char *command, const char *folders,
                      char ret_path[PATH_MAX])
{
    char path[PATH_MAX];
    int error = -ENOENT;

    if (strchr(command, '/') != NULL) {
        if (strlen(command) >= PATH_MAX) {
            return -ENAMETOOLONG;
        }
        strcpy(ret_path, command);
        return !is_file(command)            ? -ENOENT
               : access(command, X_OK) == 0 ? 0
                                            : -EACCES;
    }
    folders = folders == NULL ? "/bin:/usr/bin" : folders;
    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");
        int printed = snprintf(path, sizeof(path), "%.*s/%s",
                               length == 0 ? 1 : (int)length,
                               length == 0 ? "." : folders, command);
        if (printed < PATH_MAX && is_file(path)) {
            if (access(path, X_OK) == 0) {
                memcpy(ret_path, path, sizeof(path));
                return 0;
            }
            error = -EACCES;
        }
        folders += length;
        folders += *folders == ':';
    }
    return error;
}

/* The first line behind "#!". @return false if it is no script */
static bool read_script(const char *path, char line[LINE_BYTES + 1])
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char head[LINE_BYTES + 3];
    ssize_t got = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

    if (fd >= 0) {
        close(fd);
    }
    if (got < 2 || head[0] != '#' || head[1] != '!') {
        return false;
    }
    head[got] = '\0';
    snprintf(line, LINE_BYTES + 1, "%.*s", (int)strcspn(head + 2, "\n"),
             head + 2);
    return true;
}

/* The word of env's @words that is the command: no option, no variable. */
static const char *command_of_env(char *words, char **state)
{
    char *word = strtok_r(words, " \t", state);

    while (word != NULL && (*word == '-' || strchr(word, '=') != NULL)) {
        word = strtok_r(NULL, " \t", state);
    }
    return word;
}

/* From a script to its interpreter. @return 0; an error of finding it; 1: it
 * is no script */
static int follow_script(const char *folders, char path[PATH_MAX])
{
    char line[LINE_BYTES + 1];
    char *rest;

    if (!read_script(path, line)) {
        return 1;
    }
    const char *interpreter = strtok_r(line, " \t", &rest);
    if (interpreter == NULL) {
        return -ENOENT;
    }
    if (strcmp(seep_text_base_name(interpreter), "env") == 0) {
        char *state;
        const char *command = command_of_env(rest, &state);
        return command == NULL ? -ENOENT
                               : seep_program_find(command, folders, path);
    }
    return seep_program_find(interpreter, folders, path);
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

static bool is_launcher(const char *path)
{
    const char *name = seep_text_base_name(path);
    size_t length = strlen(name);

    for (const char *at = SEEP_LAUNCHERS; *at != '\0';) {
        size_t entry = strcspn(at, ":");
        if (entry == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += entry;
        at += *at == ':';
    }
    return false;
}

static enum seep_program_kind judge_elf(const char *path,
                                        const struct seep_elf_look *look)
{
    if (!look->native) {
        return SEEP_PROGRAM_FOREIGN;
    }
    if (look->loader[0] == '\0') {
        return look->go ? SEEP_PROGRAM_GO_STATIC : SEEP_PROGRAM_STATIC;
    }
    if (strstr(look->loader, "ld-musl") != NULL) {
        return SEEP_PROGRAM_MUSL;
    }
    if (access(look->loader, F_OK) < 0) {
        return SEEP_PROGRAM_NO_LOADER;
    }
    return look->sanitized        ? SEEP_PROGRAM_SANITIZED
           : look->defines_malloc ? SEEP_PROGRAM_OWN_MALLOC
           : look->go             ? SEEP_PROGRAM_GO
           : is_launcher(path)    ? SEEP_PROGRAM_LAUNCHER
                                  : SEEP_PROGRAM_FINE;
}

static enum seep_program_kind kind_of(const char *command, const char *folders,
                                      char path[PATH_MAX])
{
    struct seep_elf_look look;
    int error = seep_program_find(command, folders, path);

    for (int i = 0; error == 0 && i <= SCRIPTS_MOST; i++) {
        error = follow_script(folders, path);
    }
    if (error < 0) {
        return error == -EACCES ? SEEP_PROGRAM_FORBIDDEN : SEEP_PROGRAM_MISSING;
    }
    if (is_privileged(path)) {
        return SEEP_PROGRAM_PRIVILEGED;
    }
    error = seep_elf_look(path, &look);
    if (error == -EACCES) {
        return SEEP_PROGRAM_FINE; /* it can be executed and not be read */
    }
    return error < 0 ? SEEP_PROGRAM_ODD : judge_elf(path, &look);
}

void seep_program_look(const char *command, const char *folders,
                       struct seep_program *ret_program)
{
    ret_program->path[0] = '\0';
    ret_program->kind = kind_of(command, folders, ret_program->path);
}
