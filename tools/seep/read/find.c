/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a word to recordings.
 *
 * Invariant: of a process id only what that very process recorded is found,
 * not what an earlier process of that number left behind. A process tells by
 * its environment where its recordings go: the mapping's name does not, since
 * the file was linked to its name after it had been mapped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/follow.h"
#include "reader/recording/open.h"
#include "run/launch.h"
#include "run/run.h"

/* The last number of "NSpid:  4242  17  1": what it calls itself. */
static uint64_t own_pid_of(pid_t process)
{
    char text[4096];
    char *line;
    char *last;

    seep_proc_text_of(process, "status", text, sizeof(text));
    line = strstr(text, "\nNSpid:");
    if (line == NULL) {
        return 0;
    }
    line[1 + strcspn(line + 1, "\n")] = '\0';
    last = strrchr(line, '\t');
    return last == NULL ? 0 : strtoull(last + 1, NULL, 10);
}

/* Which of all is @header's, in its own namespace? */
static pid_t search(const struct seep_rec_header *header)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    while (processes != NULL && found == 0 &&
           (entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0 &&
            seep_process_namespace(entry->d_name) == header->pid_namespace &&
            own_pid_of(pid) == header->pid) {
            found = pid;
        }
    }
    if (processes != NULL) {
        closedir(processes);
    }
    return found;
}

int seep_target_find(const struct seep_rec_header *header,
                     struct seep_target *ret_target)
{
    struct seep_target target;
    pid_t pid = (pid_t)header->pid;

    if (header->process_start_clock == 0 || seep_process_boot_of(header) < 0) {
        return -ESRCH;
    }
    if (header->pid_namespace != 0 &&
        header->pid_namespace != seep_process_namespace("self")) {
        pid = search(header);
    }
    if (pid <= 0 || seep_target_read(pid, &target) < 0 ||
        !seep_target_is_alive(&target) || !seep_target_is_of(&target, header)) {
        return -ESRCH;
    }
    *ret_target = target;
    return 0;
}

bool seep_target_is_there(const struct seep_target *target)
{
    struct seep_target now;

    return seep_target_read(target->pid, &now) == 0 &&
           seep_target_is_alive(&now) &&
           now.start_clock == target->start_clock &&
           now.start_code == target->start_code &&
           now.start_stack == target->start_stack;
}

#define ENVIRONMENT_MOST (1U << 20)
#define PID_DIGITS_MOST 10U

bool seep_follow_is_pid(const char *word)
{
    struct stat status;
    size_t digits = strspn(word, "0123456789");

    return digits > 0 && digits <= PID_DIGITS_MOST && word[digits] == '\0' &&
           stat(word, &status) != 0;
}

/* NUL-terminated strings, and one more NUL; NULL if it may not be read. */
static char *read_environment(pid_t pid)
{
    char path[48];
    char *text = NULL;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        text = calloc(ENVIRONMENT_MOST + 2, 1);
        if (text != NULL) {
            seep_open_read(fd, text, 0, ENVIRONMENT_MOST);
        }
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
                     bare ? SEEP_LAUNCH_PATTERN : "") < 0) {
            ret_patterns[0] = NULL;
        }
        if (length == 0 && asprintf(&ret_patterns[1], "%s/%s",
                                    *temporary != '\0' ? temporary : "/tmp",
                                    SEEP_LAUNCH_PATTERN) < 0) {
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

/* Add those of @found that are @pid's. */
static int take(const struct seep_open_list *found, pid_t pid,
                struct seep_open_list *list)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < found->count; i++) {
        if (is_of(found->paths[i], pid)) {
            error = seep_open_list_add(list, strdup(found->paths[i]));
        }
    }
    return error;
}

static int find_by_pattern(const char *pattern, pid_t pid,
                           struct seep_open_list *list)
{
    char *text = pattern == NULL ? NULL : seep_harvest_glob(pattern);
    int error = 0;

    for (size_t i = 0; text != NULL && error == 0 && list->count == 0 && i < 2;
         i++) {
        char root[48] = "";
        char *whole = NULL;
        struct seep_open_list found = {.paths = NULL};

        if (i == 1) { /* of another container: seen through its root */
            snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
        }
        /* a name that was taken has a number behind it */
        if (asprintf(&whole, "%s%s*", root, text) < 0) {
            error = -ENOMEM;
            break;
        }
        error = seep_harvest_match(whole, &found);
        if (error == 0) {
            error = take(&found, pid, list);
        }
        seep_report_list_free(found.paths);
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
    struct seep_open_list list = {.paths = NULL};

    if (seep_target_read(pid, &target) < 0) {
        return seep_open_refuse(ret_refusal, -ESRCH, "no such process",
                                "give the recording itself, or its folder");
    }
    make_patterns(pid, patterns);
    int error = find_by_pattern(patterns[0], pid, &list);
    if (error == 0 && list.count == 0) {
        error = find_by_pattern(patterns[1], pid, &list);
    }
    free(patterns[0]);
    free(patterns[1]);
    if (error == 0 && list.count == 0) {
        error = seep_open_refuse(
            ret_refusal, -ENOENT, "no recording of this process found",
            "start it with `seep run`, or give the recording");
    }
    if (error < 0) {
        seep_report_list_free(list.paths);
        return error;
    }
    *ret_paths = list.paths;
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
    if (error == -ENOENT && seep_open_is_folder(word)) {
        *ret_paths = calloc(1, sizeof(**ret_paths));
        return *ret_paths == NULL ? -ENOMEM : 0;
    }
    return error;
}
