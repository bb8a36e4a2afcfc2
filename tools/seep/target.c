/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process of a recording; see target.h. */
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reader/proc_text.h"

#define STATE_FIELD 3
#define LAST_FIELD 28

int seep_target_read(pid_t pid, struct seep_target *ret_target)
{
    char path[64];
    char text[1024];
    uint64_t fields[LAST_FIELD + 1] = {0};
    char state = '?';

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    ssize_t length = seep_proc_text(path, text, sizeof(text));
    /* the second field may hold blanks and brackets */
    char *at = length <= 0 ? NULL : strrchr(text, ')');
    for (int i = STATE_FIELD; at != NULL && i <= LAST_FIELD; i++) {
        at = strchr(at, ' ');
        if (at != NULL && i == STATE_FIELD) {
            state = at[1];
        }
        if (at != NULL) {
            fields[i] = strtoull(++at, NULL, 10);
        }
    }
    if (at == NULL) {
        return -ESRCH;
    }
    *ret_target = (struct seep_target){
        .pid = pid,
        .state = state,
        .start_clock = fields[22],
        .start_code = fields[26],
        .start_stack = fields[28],
    };
    return 0;
}

static bool is_alive(const struct seep_target *target)
{
    return target->state != 'Z' && target->state != 'X';
}

static bool is_other_boot(const struct seep_rec_header *header)
{
    char text[64];
    size_t length = strnlen(header->boot_id, sizeof(header->boot_id));

    return length > 0 &&
           seep_proc_text("/proc/sys/kernel/random/boot_id", text,
                          sizeof(text)) > 0 &&
           strncmp(text, header->boot_id, length) != 0;
}

static uint64_t namespace_of(const char *process)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof(path), "/proc/%s/ns/pid", process);
    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* The last number of "NSpid:  4242  17  1": what it calls itself. */
static uint64_t own_pid_of(const char *process)
{
    char path[64];
    char text[4096];

    snprintf(path, sizeof(path), "/proc/%s/status", process);
    if (seep_proc_text(path, text, sizeof(text)) <= 0) {
        return 0;
    }
    char *line = strstr(text, "\nNSpid:");
    if (line == NULL) {
        return 0;
    }
    line++;
    line[strcspn(line, "\n")] = '\0';
    char *last = strrchr(line, '\t');
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
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            strlen(entry->d_name) < 16 &&
            namespace_of(entry->d_name) == header->pid_namespace &&
            own_pid_of(entry->d_name) == header->pid) {
            found = (pid_t)strtol(entry->d_name, NULL, 10);
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

    if (header->process_start_clock == 0 || is_other_boot(header)) {
        return -ESRCH;
    }
    if (header->pid_namespace != 0 &&
        header->pid_namespace != namespace_of("self")) {
        pid = search(header);
    }
    if (pid <= 0 || seep_target_read(pid, &target) < 0 || !is_alive(&target) ||
        target.start_clock != header->process_start_clock) {
        return -ESRCH;
    }
    *ret_target = target;
    return 0;
}

bool seep_target_is_there(const struct seep_target *target)
{
    struct seep_target now;

    return seep_target_read(target->pid, &now) == 0 && is_alive(&now) &&
           now.start_clock == target->start_clock &&
           now.start_code == target->start_code &&
           now.start_stack == target->start_stack;
}
