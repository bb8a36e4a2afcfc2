/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Variables for a process that records itself. Invariant: libseep.so stands
 * first in LD_PRELOAD, an allocator behind it, and what was there behind both.
 */
#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/layout.h"
#include "locate.h"
#include "option.h"
#include "say.h"
#include "units.h"

static int take_name(const char *verb, const char *value,
                     const char *const *names, size_t count,
                     const char **ret_name)
{
    size_t index;
    int code = seep_option_choose(verb, value, names, count, &index);

    *ret_name = code == 0 ? value : *ret_name;
    return code;
}

static int take_size(const char *verb, const char *text, uint64_t least,
                     uint64_t most, uint64_t *ret_bytes)
{
    uint64_t bytes;
    char reason[160];
    char low[SEEP_UNITS_TEXT_BYTES];
    char high[SEEP_UNITS_TEXT_BYTES];

    if (seep_units_parse_bytes(text, &bytes) < 0) {
        return seep_say_usage(verb, text, "is no size like 512KiB or 24 MB");
    }
    if (bytes < least || bytes > most) {
        snprintf(reason, sizeof(reason), "must be from %s to %s",
                 seep_units_bytes((double)least, low),
                 seep_units_bytes((double)most, high));
        return seep_say_usage(verb, text, reason);
    }
    *ret_bytes = bytes;
    return 0;
}

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

int seep_launch_take(int option, const char *value,
                     struct seep_launch_options *options)
{
    static const char *const allocators[] = {"jemalloc", "tcmalloc", "mimalloc",
                                             "none"};
    static const char *const unwinders[] = {"eh_frame", "libunwind"};
    static const char *const pythons[] = {"objects", "frames", "off"};
    static const char *const cudas[] = {"tensors", "driver", "off"};

    switch (option) {
    case SEEP_LAUNCH_OUT:
        options->out = value;
        return *value == '\0'
                   ? seep_say_usage(options->verb, "-o", "names no file")
                   : 0;
    case SEEP_LAUNCH_EXACT:
        options->sample_bytes = 1;
        return 0;
    case SEEP_LAUNCH_SAMPLE:
        return take_size(options->verb, value, 1, UINT64_C(1) << 40,
                         &options->sample_bytes);
    case SEEP_LAUNCH_SIZE:
        return take_size(options->verb, value, SEEP_LAYOUT_LEAST_BYTES,
                         SEEP_LAYOUT_MOST_BYTES, &options->size_bytes);
    case SEEP_LAUNCH_ALLOCATOR:
        return take_name(options->verb, value, allocators, COUNT(allocators),
                         &options->allocator);
    case SEEP_LAUNCH_UNWINDER:
        return take_name(options->verb, value, unwinders, COUNT(unwinders),
                         &options->unwinder);
    case SEEP_LAUNCH_PYTHON:
        return take_name(options->verb, value, pythons, COUNT(pythons),
                         &options->python);
    case SEEP_LAUNCH_CUDA:
        return take_name(options->verb, value, cudas, COUNT(cudas),
                         &options->cuda);
    default: /* SEEP_OPTION_WRONG */
        return SEEP_EXIT_USAGE;
    }
}

static void put(struct seep_launch *launch, const char *name, char *value)
{
    launch->variables[launch->count++] =
        (struct seep_launch_variable){name, value};
}

static void put_number(struct seep_launch *launch, const char *name,
                       uint64_t value)
{
    char *text;

    if (value != 0 && asprintf(&text, "%llu", (unsigned long long)value) >= 0) {
        put(launch, name, text);
    }
}

static bool is_folder(const char *path)
{
    struct stat status;
    size_t length = strlen(path);

    return (length > 0 && path[length - 1] == '/') ||
           (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

/* @folder stands for itself: a % in it is no placeholder. */
static char *escape_percent(const char *folder)
{
    char *text = malloc(strlen(folder) * 2 + 1);
    char *out = text;

    for (; text != NULL && *folder != '\0'; folder++) {
        *out++ = *folder;
        if (*folder == '%') {
            *out++ = '%';
        }
    }
    if (text != NULL) {
        *out = '\0';
    }
    return text;
}

/* Where recordings go when nothing says it: here, else in $TMPDIR. */
static char *default_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    char *here = getcwd(NULL, 0);

    if (here != NULL && access(here, W_OK | X_OK) == 0) {
        return here;
    }
    free(here);
    return strdup(temporary != NULL && *temporary == '/' ? temporary : "/tmp");
}

char *seep_launch_out(const char *given)
{
    const char *before = getenv("SEEP_OUT");

    if (given == NULL && before != NULL && *before != '\0') {
        given = before;
    }
    const char *pattern = given == NULL ? SEEP_LAUNCH_PATTERN : given;
    char *folder = NULL;
    char *out = NULL;
    bool below = given != NULL && is_folder(given);
    int length;

    if (*pattern != '/') {
        char *base = given == NULL ? default_folder() : getcwd(NULL, 0);
        folder = base == NULL ? NULL : escape_percent(base);
        free(base);
        if (folder == NULL) {
            return NULL;
        }
    }
    length =
        asprintf(&out, "%s%s%s%s%s", folder == NULL ? "" : folder,
                 folder == NULL || strcmp(folder, "/") == 0 ? "" : "/", pattern,
                 below && pattern[strlen(pattern) - 1] != '/' ? "/" : "",
                 below ? SEEP_LAUNCH_PATTERN : "");
    free(folder);
    return length < 0 ? NULL : out;
}

static int find_preload(struct seep_launch *launch,
                        const struct seep_launch_options *options)
{
    char *seep = NULL;
    char *allocator = NULL;
    int error = seep_locate_preload(&seep);

    if (error < 0) {
        seep_say("libseep.so",
                 error == -EINVAL
                     ? "lies at a path with a blank, a colon or a dollar sign, "
                       "which LD_PRELOAD cannot hold"
                     : "was not found beside this program",
                 "set SEEP_PRELOAD to its path");
        return SEEP_EXIT_FAILED;
    }
    if (options->allocator != NULL && strcmp(options->allocator, "none") != 0) {
        error = seep_locate_allocator(options->allocator, &allocator);
    }
    if (error < 0) {
        free(seep);
        seep_say(options->allocator, "its library was not found",
                 "install it, or give its folder in LD_LIBRARY_PATH");
        return SEEP_EXIT_FAILED;
    }
    int length =
        asprintf(&launch->preload, "%s%s%s", seep, allocator == NULL ? "" : ":",
                 allocator == NULL ? "" : allocator);
    free(seep);
    free(allocator);
    return length < 0 ? SEEP_EXIT_FAILED : 0;
}

/* What the environment says already stays, unless an option says more. */
static const char *choose(const char *option, const char *variable,
                          const char *otherwise)
{
    const char *before = getenv(variable);

    if (option != NULL) {
        return option;
    }
    return before == NULL || *before == '\0' ? otherwise : before;
}

int seep_launch_prepare(const struct seep_launch_options *options,
                        struct seep_launch *ret_launch)
{
    struct seep_launch launch = {0};
    int code = find_preload(&launch, options);

    if (code != 0) {
        return code;
    }
    launch.out = seep_launch_out(options->out);
    char *copy = launch.out == NULL ? NULL : strdup(launch.out);
    if (copy == NULL) {
        seep_launch_close(&launch);
        seep_say("current folder", strerror(errno), "name one with -o");
        return SEEP_EXIT_FAILED;
    }
    put(&launch, "SEEP_OUT", copy);
    put_number(&launch, "SEEP_SAMPLE", options->sample_bytes);
    put_number(&launch, "SEEP_SIZE", options->size_bytes);
    if (options->unwinder != NULL) {
        put(&launch, "SEEP_UNWINDER", strdup(options->unwinder));
    }
    put(&launch, "SEEP_PYTHON",
        strdup(choose(options->python, "SEEP_PYTHON", "objects")));
    put(&launch, "SEEP_CUDA",
        strdup(choose(options->cuda, "SEEP_CUDA", "tensors")));
    *ret_launch = launch;
    return 0;
}

void seep_launch_close(struct seep_launch *launch)
{
    for (size_t i = 0; i < launch->count; i++) {
        free(launch->variables[i].value);
    }
    free(launch->out);
    free(launch->preload);
}

int seep_launch_make_folders(const struct seep_launch *launch)
{
    char path[PATH_MAX];
    const char *end = strchr(launch->out, '%');
    size_t length =
        end == NULL ? strlen(launch->out) : (size_t)(end - launch->out);

    if (length >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    for (size_t i = 1; i < length; i++) {
        if (launch->out[i] == '/') {
            memcpy(path, launch->out, i);
            path[i] = '\0';
            if (mkdir(path, 0700) < 0 && errno != EEXIST &&
                access(path, F_OK) < 0) {
                return -errno;
            }
        }
    }
    return 0;
}

int seep_launch_apply(const struct seep_launch *launch)
{
    const char *before = getenv("LD_PRELOAD");
    char *preload;

    if (asprintf(&preload, "%s%s%s", launch->preload,
                 before == NULL || *before == '\0' ? "" : ":",
                 before == NULL ? "" : before) < 0) {
        return -ENOMEM;
    }
    int failed = setenv("LD_PRELOAD", preload, 1);
    free(preload);
    for (size_t i = 0; i < launch->count; i++) {
        failed |= launch->variables[i].value == NULL ||
                  setenv(launch->variables[i].name, launch->variables[i].value,
                         1) != 0;
    }
    return failed ? -ENOMEM : 0;
}
