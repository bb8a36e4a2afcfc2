/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a word to recordings; see follow_find.h.
 *
 * Invariant: of a process id only what that very process recorded is found,
 * not what an earlier process of that number left behind. A process tells by
 * its environment where its recordings go: the mapping's name does not, since
 * the file was linked to its name after it had been mapped.
 */
#include "follow_find.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harvest.h"
#include "target.h"

#define ENVIRONMENT_MOST (1U << 20)
#define PID_DIGITS_MOST 10U
#define DEFAULT_NAME "seep.%e.%p.%t.seep"

bool seep_follow_is_pid(const char *word)
{
    struct stat status;
    size_t digits = strspn(word, "0123456789");

    return digits > 0 && digits <= PID_DIGITS_MOST && word[digits] == '\0' &&
           stat(word, &status) != 0;
}

bool seep_follow_is_folder(const char *word)
{
    struct stat status;

    return stat(word, &status) == 0 && S_ISDIR(status.st_mode);
}

static int refuse(struct seep_refusal *ret_refusal, int error,
                  const char *reason, const char *remedy)
{
    if (ret_refusal != NULL) {
        ret_refusal->error = error;
        snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s",
                 reason);
        snprintf(ret_refusal->remedy, sizeof(ret_refusal->remedy), "%s",
                 remedy);
    }
    return error;
}

/* NUL-terminated strings, and one more NUL; NULL if it may not be read. */
static char *read_environment(pid_t pid)
{
    char path[48];
    char *text = NULL;
    size_t length = 0;
    ssize_t got = 1;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        text = calloc(ENVIRONMENT_MOST + 2, 1);
    }
    while (text != NULL && got > 0 && length < ENVIRONMENT_MOST) {
        got = read(fd, text + length, ENVIRONMENT_MOST - length);
        length += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return text;
}

static const char *find_variable(const char *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment != '\0'; environment += strlen(environment) + 1) {
        if (strncmp(environment, name, length) == 0 &&
            environment[length] == '=') {
            return environment + length + 1;
        }
    }
    return "";
}

static char *folder_of(pid_t pid)
{
    char path[48];
    char *folder = calloc(PATH_MAX, 1);

    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    if (folder != NULL && readlink(path, folder, PATH_MAX - 1) <= 0) {
        *folder = '\0';
    }
    return folder;
}

/* The patterns that recordings of @pid are named by; the second, for who has
 * no SEEP_OUT and may not write where it is, can be NULL. */
static void make_patterns(pid_t pid, char *ret_patterns[2])
{
    char *environment = read_environment(pid);
    char *folder = folder_of(pid);

    ret_patterns[0] = NULL;
    ret_patterns[1] = NULL;
    if (environment != NULL && folder != NULL) {
        const char *out = find_variable(environment, "SEEP_OUT");
        const char *temporary = find_variable(environment, "TMPDIR");
        size_t length = strlen(out);
        bool bare = length == 0 || out[length - 1] == '/';

        if (asprintf(&ret_patterns[0], "%s%s%s%s", *out == '/' ? "" : folder,
                     *out == '/' ? "" : "/", out,
                     bare ? DEFAULT_NAME : "") < 0) {
            ret_patterns[0] = NULL;
        }
        if (length == 0 && asprintf(&ret_patterns[1], "%s/%s",
                                    *temporary != '\0' ? temporary : "/tmp",
                                    DEFAULT_NAME) < 0) {
            ret_patterns[1] = NULL;
        }
    }
    free(environment);
    free(folder);
}

static bool is_of(const char *path, pid_t pid)
{
    struct seep_rec_header header;
    struct seep_target target;

    return seep_harvest_read_header(path, &header) &&
           seep_target_find(&header, &target) == 0 && target.pid == pid;
}

/* Move those of @found that are @pid's to the end of @paths. */
static int take(const glob_t *found, pid_t pid, char ***paths, size_t *count)
{
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (!is_of(found->gl_pathv[i], pid)) {
            continue;
        }
        char **grown = reallocarray(*paths, *count + 2, sizeof(*grown));
        if (grown == NULL) {
            return -ENOMEM;
        }
        *paths = grown;
        grown[*count] = strdup(found->gl_pathv[i]);
        if (grown[*count] == NULL) {
            return -ENOMEM;
        }
        grown[++*count] = NULL;
    }
    return 0;
}

static int find_by_pattern(const char *pattern, pid_t pid, char ***paths,
                           size_t *count)
{
    char *text = pattern == NULL ? NULL : seep_harvest_glob(pattern);
    int error = 0;

    for (size_t i = 0; text != NULL && error == 0 && *count == 0 && i < 2;
         i++) {
        char root[48] = "";
        char *whole = NULL;
        glob_t found = {0};

        if (i == 1) { /* of another container: seen through its root */
            snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
        }
        /* a name that was taken has a number behind it */
        if (asprintf(&whole, "%s%s*", root, text) < 0) {
            error = -ENOMEM;
            break;
        }
        if (glob(whole, 0, NULL, &found) == 0) {
            error = take(&found, pid, paths, count);
        }
        globfree(&found);
        free(whole);
    }
    free(text);
    return error;
}

static int find_of_process(pid_t pid, struct seep_refusal *ret_refusal,
                           char ***ret_paths)
{
    struct seep_target target;
    char *patterns[2];
    char **paths = NULL;
    size_t count = 0;

    if (seep_target_read(pid, &target) < 0) {
        return refuse(ret_refusal, -ESRCH, "is no process that runs",
                      "give the recording itself, or its folder");
    }
    make_patterns(pid, patterns);
    int error = find_by_pattern(patterns[0], pid, &paths, &count);
    if (error == 0 && count == 0) {
        error = find_by_pattern(patterns[1], pid, &paths, &count);
    }
    free(patterns[0]);
    free(patterns[1]);
    if (error == 0 && count == 0) {
        error = refuse(ret_refusal, -ENOENT,
                       "is a process without a recording that can be found",
                       "start it with `seep run`, or give the recording");
    }
    if (error < 0) {
        seep_report_list_free(paths);
        return error;
    }
    *ret_paths = paths;
    return 0;
}

int seep_follow_find(const char *word, struct seep_refusal *ret_refusal,
                     char ***ret_paths)
{
    if (seep_follow_is_pid(word)) {
        return find_of_process((pid_t)strtol(word, NULL, 10), ret_refusal,
                               ret_paths);
    }
    int error = seep_report_list(word, ret_refusal, ret_paths);
    if (error == -ENOENT && seep_follow_is_folder(word)) {
        *ret_paths = calloc(1, sizeof(**ret_paths));
        return *ret_paths == NULL ? -ENOMEM : 0;
    }
    return error;
}
