/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of a run. Invariant: nothing is opened for writing but a valid
 * recording of the child, and nothing in it is written but its status.
 */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/check.h"
#include "reader/recording/open.h"

struct identity {
    dev_t device;
    ino_t inode;
};

struct seep_harvest {
    char *glob;
    struct identity *before;
    size_t before_count;
    struct seep_open_list found;
};

char *seep_harvest_glob(const char *pattern)
{
    /* each byte becomes two at most; a taken name gets ".1", ".2" */
    char *text = malloc(strlen(pattern) * 2 + 1);
    char *out = text;

    for (; text != NULL && *pattern != '\0'; pattern++) {
        if (*pattern == '%' && pattern[1] != '\0') {
            pattern++;
            if (strchr("pehtn", *pattern) != NULL) {
                *out++ = '*';
                continue;
            }
        }
        if (strchr("*?[]\\", *pattern) != NULL) {
            *out++ = '\\';
        }
        *out++ = *pattern;
    }
    if (text != NULL) {
        *out = '\0';
    }
    return text;
}

/* What matches the pattern, and with a number behind it. */
static int look(const char *pattern, glob_t *found)
{
    char *numbered = malloc(strlen(pattern) + sizeof(".[0-9]*"));

    if (numbered == NULL) {
        return -ENOMEM;
    }
    strcat(strcpy(numbered, pattern), ".[0-9]*");
    int first = glob(pattern, 0, NULL, found);
    int second = glob(numbered, first == 0 ? GLOB_APPEND : 0, NULL, found);
    free(numbered);
    if (first == GLOB_NOSPACE || second == GLOB_NOSPACE) {
        globfree(found);
        return -ENOMEM;
    }
    return 0;
}

static int compare_identities(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct identity));
}

static bool identify(const char *path, struct identity *ret_identity)
{
    struct stat status;

    if (lstat(path, &status) < 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    memset(ret_identity, 0, sizeof(*ret_identity)); /* compared as bytes */
    ret_identity->device = status.st_dev;
    ret_identity->inode = status.st_ino;
    return true;
}

static int remember(struct seep_harvest *harvest)
{
    glob_t found = {0};
    int error = look(harvest->glob, &found);

    if (error < 0) {
        return error;
    }
    harvest->before = calloc(found.gl_pathc + 1, sizeof(*harvest->before));
    for (size_t i = 0; harvest->before != NULL && i < found.gl_pathc; i++) {
        harvest->before_count += identify(
            found.gl_pathv[i], &harvest->before[harvest->before_count]);
    }
    globfree(&found);
    if (harvest->before == NULL) {
        return -ENOMEM;
    }
    qsort(harvest->before, harvest->before_count, sizeof(*harvest->before),
          compare_identities);
    return 0;
}

int seep_harvest_open(const char *pattern, struct seep_harvest **ret_harvest)
{
    struct seep_harvest *harvest = calloc(1, sizeof(*harvest));

    if (harvest == NULL) {
        return -ENOMEM;
    }
    harvest->glob = seep_harvest_glob(pattern);
    int error = harvest->glob == NULL ? -ENOMEM : remember(harvest);
    if (error < 0) {
        seep_harvest_close(harvest);
        return error;
    }
    *ret_harvest = harvest;
    return 0;
}

void seep_harvest_close(struct seep_harvest *harvest)
{
    if (harvest == NULL) {
        return;
    }
    seep_report_list_free(harvest->found.paths);
    free(harvest->before);
    free(harvest->glob);
    free(harvest);
}

static bool is_new(const struct seep_harvest *harvest, const char *path)
{
    struct identity identity;

    return identify(path, &identity) &&
           bsearch(&identity, harvest->before, harvest->before_count,
                   sizeof(identity), compare_identities) == NULL;
}

/* The header of a valid recording, by pread: of a file that is cut short
 * meanwhile a mapping would be a SIGBUS. A stranger's file under a name of ours
 * is looked at, never written. */
bool seep_harvest_read_header(const char *path,
                              struct seep_rec_header *ret_header)
{
    struct stat status;
    int fd = seep_open_regular(path, O_NOFOLLOW, &status);
    bool valid =
        fd >= 0 &&
        pread(fd, (void *)ret_header, sizeof(*ret_header), 0) ==
            (ssize_t)sizeof(*ret_header) &&
        seep_check(ret_header, (size_t)status.st_size) == SEEP_CHECK_VALID;

    if (fd >= 0) {
        close(fd);
    }
    return valid;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Both globs can name one file: sorted, the second one is dropped. */
int seep_harvest_visit(const struct seep_harvest *harvest,
                       void (*visit)(void *context, const char *path),
                       void *context)
{
    glob_t found = {0};
    int error = look(harvest->glob, &found);

    if (error < 0) {
        return error;
    }
    qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv),
          compare_paths);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        bool again = i > 0 && strcmp(path, found.gl_pathv[i - 1]) == 0;
        if (!again && is_new(harvest, path)) {
            visit(context, path);
        }
    }
    globfree(&found);
    return 0;
}

static void add_path(void *context, const char *path)
{
    struct seep_harvest *harvest = context;
    struct seep_rec_header header;

    if (seep_harvest_read_header(path, &header)) {
        seep_open_list_add(&harvest->found, strdup(path));
    }
}

int seep_harvest_collect(struct seep_harvest *harvest, char ***ret_paths,
                         size_t *ret_count)
{
    int error = seep_harvest_visit(harvest, add_path, harvest);

    if (error == 0) {
        *ret_paths = harvest->found.paths;
        *ret_count = harvest->found.count;
    }
    return error;
}

static bool is_of(const struct seep_rec_header *header,
                  const struct seep_child *child)
{
    struct stat space;

    if (header->pid != (uint32_t)child->pid) {
        return false;
    }
    if (header->pid_namespace != 0 && stat("/proc/self/ns/pid", &space) == 0 &&
        header->pid_namespace != space.st_ino) {
        return false;
    }
    return child->start_clock == 0 || header->process_start_clock == 0 ||
           header->process_start_clock == child->start_clock;
}

static int put_word(int fd, size_t offset, uint32_t word)
{
    ssize_t length = pwrite(fd, &word, sizeof(word), (off_t)offset);

    return length == (ssize_t)sizeof(word) ? 0 : -EIO;
}

static int put_status(const char *path, int status)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return -errno;
    }
    /* A reader that sees the flag must see the status. */
    int error = put_word(fd, offsetof(struct seep_rec_header, status),
                         (uint32_t)status);
    if (error == 0) {
        error = put_word(fd, offsetof(struct seep_rec_header, has_status), 1);
    }
    close(fd);
    return error;
}

int seep_harvest_put_status(char *const *paths, size_t count,
                            const struct seep_child *child)
{
    const char *last = NULL;
    uint64_t newest_ns = 0;

    for (size_t i = 0; i < count; i++) {
        struct seep_rec_header header;
        /* One pid, several images by exec: the last one ended so. */
        if (seep_harvest_read_header(paths[i], &header) &&
            is_of(&header, child) && header.start_realtime_ns >= newest_ns) {
            newest_ns = header.start_realtime_ns;
            last = paths[i];
        }
    }
    return last == NULL ? -ENOENT : put_status(last, child->status);
}
