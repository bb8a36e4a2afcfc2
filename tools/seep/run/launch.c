/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Variables for a process that records itself, where they lead, and which calls
 * a filter keeps it from. Invariant: libseep.so stands first in LD_PRELOAD, an
 * allocator behind it, and what was there behind both.
 */
#include "run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/text.h"
#include "format/layout.h"
#include "options/variables.h"
#include "words/units.h"

/*
 * Where files lie that seep is installed with. Invariant: an installation that
 * was moved as a whole, and a build, find their own file before any other. Of
 * data, where a build has it is looked last: from /usr/local/bin that is
 * /usr/share.
 */

/* The loader splits LD_PRELOAD at these and expands $ORIGIN. */
#define FORBIDDEN " :\t\n$"

/* @return 0; -EINVAL if it is there and cannot be taken; negative errno */
typedef int take_file(const char *path, char **ret_path);

static int take_data(const char *path, char **ret_path)
{
    char *copy = access(path, R_OK) == 0 ? strdup(path) : NULL;

    if (copy == NULL) {
        return -errno;
    }
    *ret_path = copy;
    return 0;
}

/* As an absolute path of a file that can be read now, so the loader does not
 * search and does not warn. */
static int take_library(const char *path, char **ret_path)
{
    char *real = realpath(path, NULL);

    if (real == NULL) {
        return -errno;
    }
    if (access(real, R_OK) < 0) {
        free(real);
        return -EACCES;
    }
    if (strpbrk(real, FORBIDDEN) != NULL) {
        free(real);
        return -EINVAL;
    }
    *ret_path = real;
    return 0;
}

/* @names  relative to the folder that this program lies in, up to NULL */
static int take_beside(const char *const *names, take_file *take,
                       char **ret_path)
{
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    int error = -ENOENT;

    folder[length < 0 ? 0 : length] = '\0';
    char *slash =
        strrchr(folder, '/'); /* perhaps none, of a file that is gone */
    for (; slash != NULL && *names != NULL; names++) {
        char path[PATH_MAX];

        *slash = '\0';
        if (snprintf(path, sizeof(path), "%s/%s", folder, *names) < PATH_MAX) {
            error = take(path, ret_path);
        }
        if (error == 0 || error == -EINVAL || error == -ENOMEM) {
            return error;
        }
    }
    return -ENOENT;
}

int seep_launch_find_patterns(char **ret_path)
{
    static const char *const beside[] = {
        "../" SEEP_DATADIR_NAME "/seep/patterns.json",
        "../share/seep/patterns.json",
        "../../share/seep/patterns.json", /* in a build */
        NULL,
    };
    const char *named = getenv("SEEP_PATTERNS");

    if (named != NULL && *named != '\0') {
        char *copy = strdup(named);

        if (copy == NULL) {
            return -ENOMEM;
        }
        *ret_path = copy;
        return 0;
    }
    return take_beside(beside, take_data, ret_path) == 0 ||
                   take_data(SEEP_DATADIR "/seep/patterns.json", ret_path) == 0
               ? 0
               : -ENOENT;
}

int seep_launch_find_preload(char **ret_path)
{
    static const char *const beside[] = {
        "../../src/preload/libseep.so", /* in a build */
        ("../" SEEP_LIBDIR_NAME "/seep/libseep.so"),
        "../lib/seep/libseep.so",
        "../lib64/seep/libseep.so",
        NULL,
    };
    const char *named = getenv("SEEP_PRELOAD");

    if (named != NULL && *named != '\0') {
        return take_library(named, ret_path);
    }
    int error = take_beside(beside, take_library, ret_path);
    return error == 0 || error == -EINVAL || error == -ENOMEM
               ? error
               : take_library(SEEP_LIBDIR "/seep/libseep.so", ret_path);
}

/* Each folder of a list that the loader would search, too. */
static int take_from_list(const char *folders, const char *soname,
                          char **ret_path)
{
    char path[PATH_MAX];

    while (*folders != '\0') {
        size_t length = strcspn(folders, ":");
        if (length > 0) {
            snprintf(path, sizeof(path), "%.*s/%s", (int)length, folders,
                     soname);
            if (take_library(path, ret_path) == 0) {
                return 0;
            }
        }
        folders += length;
        folders += *folders == ':';
    }
    return -ENOENT;
}

/* The library of allocator @name. @return -ENOENT if it is not installed */
static int locate_allocator(const char *name, char **ret_path)
{
    static const struct {
        const char *name;
        const char *soname;
    } allocators[] = {
        {"jemalloc", "libjemalloc.so.2"},
        {"jemalloc", "libjemalloc.so.1"},
        {"tcmalloc", "libtcmalloc.so.4"},
        {"tcmalloc", "libtcmalloc_minimal.so.4"},
        {"mimalloc", "libmimalloc.so.2"},
        {"mimalloc", "libmimalloc.so.3"},
    };
    const char *path = getenv("LD_LIBRARY_PATH");

    for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++) {
        const char *soname = allocators[i].soname;

        if (strcmp(allocators[i].name, name) == 0 &&
            ((path != NULL && take_from_list(path, soname, ret_path) == 0) ||
             take_from_list(SEEP_LIBDIR
                            ":/usr/local/lib:/usr/lib/" SEEP_TRIPLET
                            ":/usr/lib64:/usr/lib:/lib/" SEEP_TRIPLET
                            ":/lib64:/lib",
                            soname, ret_path) == 0)) {
            return 0;
        }
    }
    return -ENOENT;
}

static int take_name(const char *verb, const char *value,
                     const char *const *names, size_t count, void *target)
{
    size_t index;
    int code = seep_option_choose(verb, value, names, count, &index);

    if (code == 0) {
        *(const char **)target = value;
    }
    return code;
}

/* One of a few names, into a const char *. */
#define TAKE_NAME(taker, ...)                                                  \
    static int taker(const char *verb, const char *value, void *target)        \
    {                                                                          \
        static const char *const names[] = {__VA_ARGS__};                      \
                                                                               \
        return take_name(verb, value, names, sizeof(names) / sizeof(names[0]), \
                         target);                                              \
    }

TAKE_NAME(take_allocator, "jemalloc", "tcmalloc", "mimalloc", "none")
TAKE_NAME(take_unwinder, "eh_frame", "libunwind")
TAKE_NAME(take_python, "objects", "frames", "off")
TAKE_NAME(take_cuda, "tensors", "driver", "off")

static int take_bytes(const char *verb, const char *text, uint64_t least,
                      uint64_t most, uint64_t *ret_bytes)
{
    uint64_t bytes;
    char expected[160];

    if (seep_size_parse(text, &bytes) < 0) {
        return seep_say_value(verb, text, "a size such as 512KiB or 24 MB");
    }
    if (bytes < least || bytes > most) {
        snprintf(expected, sizeof(expected), "a size from %s to %s",
                 SEEP_UNITS_BYTES((double)least),
                 SEEP_UNITS_BYTES((double)most));
        return seep_say_value(verb, text, expected);
    }
    *ret_bytes = bytes;
    return 0;
}

static int take_exact(const char *verb, const char *value, void *target)
{
    (void)verb;
    (void)value;
    *(uint64_t *)target = 1;
    return 0;
}

/* What the recorder will take of it is what is told and handed on. */
static int take_sample(const char *verb, const char *value, void *target)
{
    uint64_t *bytes = target;
    char reason[96];
    unsigned log2 = 0;
    int code = take_bytes(verb, value, 1,
                          UINT64_C(1) << SEEP_SIZE_MEAN_LOG2_MAX, bytes);

    if (code != 0 || seep_size_mean_log2(*bytes, &log2) < 0 ||
        *bytes == UINT64_C(1) << log2) {
        return code;
    }
    *bytes = UINT64_C(1) << log2;
    snprintf(reason, sizeof(reason), "rounded down to %s, a power of two",
             SEEP_UNITS_BYTES((double)*bytes));
    seep_say(value, reason, NULL);
    return 0;
}

static int take_budget(const char *verb, const char *value, void *target)
{
    uint32_t share;

    if (seep_share_parse(value, &share) < 0) {
        return seep_say_value(verb, value, "a share such as 1%");
    }
    *(const char **)target = value;
    return 0;
}

static int take_size(const char *verb, const char *value, void *target)
{
    return take_bytes(verb, value, SEEP_LAYOUT_LEAST_BYTES,
                      SEEP_LAYOUT_MOST_BYTES, target);
}

static int take_keep(const char *verb, const char *value, void *target)
{
    struct seep_place_keep keep;

    if (!seep_place_keep_parse(value, &keep)) {
        return seep_say_value(verb, value, "500, 2GiB, 500,2GiB or all");
    }
    *(const char **)target = value;
    return 0;
}

/* It holds for what this process asks of a place, too. */
static int take_floor(const char *verb, const char *value, void *target)
{
    if (!seep_place_floor_parse(value, &seep_place_floor)) {
        return seep_say_value(verb, value, "a size such as 2GiB or 10%");
    }
    *(const char **)target = value;
    return 0;
}

#define AT(member) offsetof(struct seep_launch_options, member)

const struct seep_option seep_launch_options[] = {
    SEEP_OPTION("exact", NULL, take_exact, AT(sample_bytes),
                "record every block (default: a sample)"),
    SEEP_OPTION("sample", "BYTES", take_sample, AT(sample_bytes),
                "mean bytes between samples (default: 16KiB at\n"
                "first, to 512KiB as its cost demands)"),
    SEEP_OPTION("budget", "PERCENT", take_budget, AT(budget),
                "what seep may cost of the run: the mean doubles to\n"
                "8MiB to keep to it (default: to 512KiB, for 1%)"),
    SEEP_OPTION("size", "BYTES", take_size, AT(size_bytes),
                "most that a recording may grow to (default 64MiB,\n"
                "exact 256MiB)"),
    SEEP_OPTION("keep", "BOUNDS", take_keep, AT(keep),
                "most that the folder may hold: FILES, BYTES or both\n"
                "(default 512,4GiB), or all"),
    SEEP_OPTION("floor", "BYTES", take_floor, AT(floor),
                "least to leave free on its file system, or a share\n"
                "such as 10% (default 1GiB, at least 5%)"),
    SEEP_OPTION("allocator", "NAME", take_allocator, AT(allocator),
                "jemalloc, tcmalloc, mimalloc or none (default):\n"
                "the allocator below seep"),
    SEEP_OPTION("unwinder", "NAME", take_unwinder, AT(unwinder),
                "eh_frame (default) or libunwind"),
    SEEP_OPTION("python", "WHAT", take_python, AT(python),
                "objects (default), frames or off: Python's own\n"
                "objects and lines, lines only, or neither"),
    SEEP_OPTION("cuda", "WHAT", take_cuda, AT(cuda),
                "tensors (default), driver or off: what the driver\n"
                "gives and what PyTorch makes of it, or no tensors"),
    {0},
};

static void put(struct seep_launch *launch, const char *name, char *value)
{
    if (value == NULL) {
        launch->short_of_memory = true;
        return;
    }
    launch->variables[launch->count++] =
        (struct seep_launch_variable){name, value};
}

static void put_text(struct seep_launch *launch, const char *name,
                     const char *value)
{
    if (value != NULL) {
        put(launch, name, strdup(value));
    }
}

static void put_number(struct seep_launch *launch, const char *name,
                       uint64_t value)
{
    char *text = NULL;

    if (value != 0) {
        put(launch, name,
            asprintf(&text, "%llu", (unsigned long long)value) < 0 ? NULL
                                                                   : text);
    }
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

/* Is it of @folder itself that no recording can be made there? */
static bool is_bad(const char *folder)
{
    const char *any = getenv("SEEP_OUT_ANY");
    const struct seep_place_terms terms = {
        .size_bytes = SEEP_LAYOUT_LEAST_BYTES,
        .any_filesystem = any != NULL && strcmp(any, "1") == 0,
    };
    struct seep_place_found place;

    switch (seep_place_look(folder, &terms, &place)) {
    case SEEP_PLACE_MISSING:
    case SEEP_PLACE_FORBIDDEN:
    case SEEP_PLACE_READ_ONLY:
    case SEEP_PLACE_UNSAFE_SYSTEM:
        return true;
    default:
        return false;
    }
}

/* Where recordings go when nothing says it: here, else in $TMPDIR. A full disk
 * is no reason: what is elsewhere may be memory. */
static char *default_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    char *here = getcwd(NULL, 0);

    if (here != NULL && !is_bad(here)) {
        return here;
    }
    if (here == NULL && errno == ENOMEM) {
        return NULL; /* not for that elsewhere */
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
    bool below = given != NULL && seep_place_is_folder(given);
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

/*
 * Where recordings go: can a file be made there, reserved and mapped, and does
 * what is reserved hold?
 *
 * Invariant: the trial leaves no file, and writes no more than one page.
 */

/* What lies between it and @folder is created by `seep run`. */
static void go_up_to_what_exists(char folder[SEEP_PLACE_PATH_BYTES])
{
    struct stat status;

    while (stat(folder, &status) < 0 && errno == ENOENT) {
        char *slash = strrchr(folder, '/');

        if (slash == NULL || slash == folder) {
            strcpy(folder, "/");
            return;
        }
        *slash = '\0';
    }
}

static int open_nameless(const char *folder)
{
    char path[PATH_MAX + 32];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL &&
                    errno != ENOENT)) {
        return fd;
    }
    snprintf(path, sizeof(path), "%s/.seep-doctor-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

static int try_file(const char *folder, uint64_t size_bytes,
                    const char **ret_step)
{
    int fd = open_nameless(folder);
    int error = fd < 0 ? -errno : 0;

    *ret_step = "be created";
    if (error == 0) {
        *ret_step = "be reserved";
        error = fallocate(fd, 0, 0, (off_t)size_bytes) < 0 ? -errno : 0;
        if (error == -EOPNOTSUPP) { /* the preload writes zeros then */
            error = ftruncate(fd, (off_t)size_bytes) < 0 ? -errno : 0;
        }
    }
    if (error == 0) {
        *ret_step = "be mapped";
        char *mapping =
            mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapping == MAP_FAILED) {
            error = -errno;
        } else {
            munmap(mapping, size_bytes);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

static void look_at(const char *out, struct seep_launch_trial *folder)
{
    char path[SEEP_PLACE_PATH_BYTES + 1];

    seep_why_look(out, &folder->place);
    if (folder->place.reason != SEEP_PLACE_MISSING) {
        return;
    }
    memcpy(folder->missing, folder->place.folder, sizeof(folder->missing));
    go_up_to_what_exists(folder->place.folder);
    snprintf(path, sizeof(path), "%s/",
             strcmp(folder->place.folder, "/") == 0 ? ""
                                                    : folder->place.folder);
    seep_why_look(path, &folder->place);
}

void seep_launch_try(const char *out, uint64_t file_limit_bytes,
                     struct seep_launch_trial *ret_folder)
{
    struct seep_launch_trial folder = {.step = "be created"};
    uint64_t size_bytes = seep_why_first_bytes();

    look_at(out, &folder);
    /* beyond the limit it would be a SIGXFSZ for us; that row tells it */
    if (file_limit_bytes < size_bytes) {
        size_bytes = file_limit_bytes & ~UINT64_C(4095);
    }
    if (folder.place.reason == SEEP_PLACE_FINE && size_bytes > 0) {
        folder.error = try_file(folder.place.folder, size_bytes, &folder.step);
    }
    *ret_folder = folder;
}

char *seep_launch_join(const char *front, const char *back)
{
    bool alone = back == NULL || *back == '\0';
    char *text;

    return asprintf(&text, "%s%s%s", front, alone ? "" : ":",
                    alone ? "" : back) < 0
               ? NULL
               : text;
}

static int find_preload(struct seep_launch *launch,
                        const struct seep_launch_options *options)
{
    char *seep = NULL;
    char *allocator = NULL;
    int error = seep_launch_find_preload(&seep);

    if (error == -ENOMEM) {
        seep_say("libseep.so", strerror(ENOMEM), NULL);
        return SEEP_EXIT_FAILED;
    }
    if (error < 0) {
        seep_say(
            "libseep.so",
            error == -EINVAL
                ? "lies at a path with a blank, a colon or a dollar sign, which LD_PRELOAD cannot hold"
                : "was not found beside this program",
            "set SEEP_PRELOAD to its path");
        return SEEP_EXIT_FAILED;
    }
    if (options->allocator != NULL && strcmp(options->allocator, "none") != 0) {
        error = locate_allocator(options->allocator, &allocator);
    }
    if (error < 0) {
        free(seep);
        seep_say(options->allocator, "its library was not found",
                 "install it, or give its folder in LD_LIBRARY_PATH");
        return SEEP_EXIT_FAILED;
    }
    launch->preload = seep_launch_join(seep, allocator);
    free(seep);
    free(allocator);
    return launch->preload == NULL ? SEEP_EXIT_FAILED : 0;
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
    int code;

    if (options->budget != NULL && options->sample_bytes == 1) {
        seep_say("--budget", "--exact leaves nothing out to keep to it",
                 "give a --sample, or no budget");
        return SEEP_EXIT_USAGE;
    }
    code = find_preload(&launch, options);
    if (code != 0) {
        return code;
    }
    launch.out = seep_launch_out(options->out);
    char *copy = launch.out == NULL ? NULL : strdup(launch.out);
    if (copy == NULL) {
        seep_launch_close(&launch);
        seep_say("current folder", strerror(errno), "choose one with -o");
        return SEEP_EXIT_FAILED;
    }
    put(&launch, "SEEP_OUT", copy);
    put_number(&launch, "SEEP_SAMPLE", options->sample_bytes);
    put_text(&launch, "SEEP_BUDGET", options->budget);
    put_number(&launch, "SEEP_SIZE", options->size_bytes);
    put_text(&launch, "SEEP_KEEP", options->keep);
    put_text(&launch, "SEEP_FLOOR", options->floor);
    put_text(&launch, "SEEP_UNWINDER", options->unwinder);
    put_text(&launch, "SEEP_PYTHON",
             choose(options->python, "SEEP_PYTHON", "objects"));
    put_text(&launch, "SEEP_CUDA",
             choose(options->cuda, "SEEP_CUDA", "tensors"));
    if (launch.short_of_memory) {
        seep_launch_close(&launch);
        return SEEP_EXIT_FAILED;
    }
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

/* Of the pattern up to its first placeholder. */
static size_t fixed_bytes(const struct seep_launch *launch)
{
    return strcspn(launch->out, "%");
}

int seep_launch_make_folders(struct seep_launch *launch)
{
    char path[PATH_MAX];
    size_t length = fixed_bytes(launch);

    if (length >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    for (size_t i = 1; i < length; i++) {
        if (launch->out[i] == '/') {
            memcpy(path, launch->out, i);
            path[i] = '\0';
            int error = mkdir(path, 0700) < 0 ? -errno : 0;
            if (error == 0 && launch->made_bytes == 0) {
                launch->made_bytes = i;
            }
            if (error < 0 && error != -EEXIST && access(path, F_OK) < 0) {
                return error;
            }
        }
    }
    return 0;
}

void seep_launch_drop_folders(const struct seep_launch *launch)
{
    char path[PATH_MAX];
    size_t length = fixed_bytes(launch);

    if (launch->made_bytes == 0 || length >= sizeof(path)) {
        return;
    }
    memcpy(path, launch->out, length);
    for (size_t i = length; i-- > launch->made_bytes;) {
        path[i + 1] = '\0';
        if (path[i] == '/') {
            path[i] = '\0';
            if (rmdir(path) < 0 && errno != ENOENT) {
                return;
            }
        }
    }
    path[launch->made_bytes] = '\0';
    rmdir(path);
}

int seep_launch_apply(const struct seep_launch *launch)
{
    char *preload = seep_launch_join(launch->preload, getenv("LD_PRELOAD"));
    int failed = preload == NULL || setenv("LD_PRELOAD", preload, 1) != 0;

    free(preload);
    for (size_t i = 0; i < launch->count; i++) {
        failed |= launch->variables[i].value == NULL ||
                  setenv(launch->variables[i].name, launch->variables[i].value,
                         1) != 0;
    }
    return failed ? -ENOMEM : 0;
}

/*
 * Which of the recorder's system calls an inherited filter kills for: a child
 * of ours makes each.
 *
 * Invariant: without a filter no child is made.
 */

#define MODE_FILTER 2

static const struct {
    const char *name;
    long number;
    long first;
    long second;
} calls[] = {
#define CALL(name, need, first, second) {#name, SYS_##name, first, second},
    SEEP_CALLS(CALL)
#undef CALL
};

/* No core file of it: but the limit is set only where that may be done. */
static bool kills(size_t index, bool may_limit)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (may_limit) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        }
        /* a mask of 8 bytes, a file system's no path: each ends in an error */
        seep_syscall_forward(calls[index].number, calls[index].first,
                             calls[index].second, 0, 0, 0, 0);
        _exit(0);
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid || WIFSIGNALED(status);
}

struct calls_tried {
    uint64_t denied;       /* a set as in base/syscall.h */
    unsigned filter_count; /* 0: this kernel does not say */
};

static long number_behind(const char *text, const char *key)
{
    const char *line = strstr(text, key);

    return line == NULL ? 0 : strtol(line + strlen(key), NULL, 10);
}

/* Let children try each of the recorder's system calls: 20 ms.
 * @return false: there is no filter, and nothing was tried */
static bool try_calls(struct calls_tried *ret_calls)
{
    struct calls_tried found = {0};
    static char status[1 << 19]; /* with up to 65,536 groups */
    FILE *file = fopen("/proc/self/status", "re");
    size_t length =
        file == NULL ? 0 : fread(status, 1, sizeof(status) - 1, file);

    if (file != NULL) {
        fclose(file);
    }
    status[length] = '\0';
    found.filter_count =
        (unsigned)number_behind(status, "\nSeccomp_filters:\t");
    if (number_behind(status, "\nSeccomp:\t") != MODE_FILTER) {
        return false;
    }
    bool may_limit = !kills(SEEP_CALL_INDEX_prlimit64, false);
    for (size_t i = 0; i < SEEP_CALL_COUNT; i++) {
        found.denied |= kills(i, may_limit) ? UINT64_C(1) << i : 0;
    }
    *ret_calls = found;
    return true;
}

void seep_launch_name_calls(uint64_t denied, char *text, size_t size)
{
    size_t length = 0;

    *text = '\0';
    for (size_t i = 0; i < SEEP_CALL_COUNT && length < size; i++) {
        if ((denied >> i & 1) != 0) {
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       length == 0 ? "" : ", ", calls[i].name);
        }
    }
}

int seep_launch_put_filter(uint64_t *ret_denied)
{
    struct calls_tried tried;
    char value[48];

    unsetenv("SEEP_FILTER"); /* of a run around this one */
    *ret_denied = 0;
    if (!try_calls(&tried)) {
        return 0;
    }
    *ret_denied = tried.denied;
    seep_calls_denied = tried.denied;
    snprintf(value, sizeof(value), "%u:%llx", tried.filter_count,
             (unsigned long long)tried.denied);
    return setenv("SEEP_FILTER", value, 1) == 0 ? 0 : -errno;
}
