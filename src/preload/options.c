/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SEEP_* variables: what each may be, and what is none of ours. */
#include "preload/options.h"

#include <string.h>

#include "base/place.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/variables.h"
#include "format/layout.h"
#include "record/sampler.h"

/*
 * What scripts call on their way to the command: not recorded either, unless it
 * is the command itself. One python3 by way of pyenv is six times readlink.
 */
#define SEEP_HELPERS                                                         \
    "readlink:realpath:dirname:basename:uname:id:which:tty:pwd:hostname:"    \
    "mktemp:cat:cut:head:tail:tr:sed:grep:egrep:fgrep:expr:test:true:false:" \
    "getopt:locale:date:ls:mkdir:rmdir:rm:cp:mv:ln:chmod:touch:sleep:tee:"   \
    "wc:stat:getconf:ldd:ldconfig:lsb_release"

#define DEFAULT_PATTERN "seep.%e.%p.%t.seep"
#define VALUE_KEPT_BYTES 64U

struct seep_options seep_options __attribute__((visibility("hidden")));

const char *seep_options_find(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 &&
            (*environment)[length] == '=') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

/* The value of @name; one that is empty is none. */
static const char *take(char *const *environment, const char *name)
{
    const char *value = seep_options_find(environment, name);

    return value == NULL || *value == '\0' ? NULL : value;
}

/* SEEP_OUT as it is; below it if it is a folder. */
static bool copy_pattern(const char *given)
{
    struct seep_text text;
    bool below = given != NULL && seep_place_is_folder(given);

    seep_text_init(&text, seep_options.pattern, sizeof(seep_options.pattern));
    seep_text_add(&text, given != NULL ? given : "");
    if (below && given[strlen(given) - 1] != '/') {
        seep_text_add_char(&text, '/');
    }
    if (below || given == NULL) {
        seep_text_add(&text, DEFAULT_PATTERN);
    }
    return !text.cut;
}

/* @name was not understood, nor @value if that is not NULL: a line each. The
 * value of what is no variable of ours is not ours to tell. */
static void reject(const char *name, size_t name_length, const char *value)
{
    struct seep_text text = {.bytes = seep_options.rejected,
                             .size = sizeof(seep_options.rejected),
                             .length = strlen(seep_options.rejected)};

    seep_text_add_bytes(&text, name, name_length);
    if (value != NULL) {
        size_t length = strcspn(value, "\n");

        seep_text_add_char(&text, '=');
        seep_text_add_bytes(&text, value,
                            length < VALUE_KEPT_BYTES ? length
                                                      : VALUE_KEPT_BYTES);
    }
    seep_text_add_char(&text, '\n');
}

static void reject_value(const char *name, const char *value)
{
    reject(name, strlen(name), value);
}

static bool is_in_list(const char *list, const char *name)
{
    size_t length = strlen(name);

    while (*list != '\0') {
        size_t entry = strcspn(list, ":");

        if (entry == length && length != 0 &&
            strncmp(list, name, length) == 0) {
            return true;
        }
        list += entry + (list[entry] == ':');
    }
    return false;
}

static void read_budget(char *const *environment)
{
    const char *budget = take(environment, "SEEP_BUDGET");

    if (budget != NULL && seep_share_parse(budget, &seep_options.budget) < 0) {
        reject_value("SEEP_BUDGET", budget);
    }
}

static void read_numbers(char *const *environment)
{
    const char *sample = take(environment, "SEEP_SAMPLE");
    const char *size = take(environment, "SEEP_SIZE");
    const char *floor = take(environment, "SEEP_FLOOR");
    const char *keep = take(environment, "SEEP_KEEP");
    uint64_t number;

    seep_options.sample_log2 = SEEP_PACE_SETTLED_LOG2;
    seep_options.paced = sample == NULL;
    if (sample != NULL &&
        (seep_size_parse(sample, &number) < 0 ||
         seep_size_mean_log2(number, &seep_options.sample_log2) < 0)) {
        seep_options.paced = true;
        reject_value("SEEP_SAMPLE", sample);
    }
    seep_options.size_bytes = seep_layout_default_bytes(
        seep_options.paced ? SEEP_LAYOUT_PACED : seep_options.sample_log2);
    if (size != NULL && seep_size_parse(size, &number) == 0 &&
        number >= SEEP_LAYOUT_LEAST_BYTES && number <= SEEP_LAYOUT_MOST_BYTES) {
        seep_options.size_bytes = number;
        seep_options.size_given = true;
    } else if (size != NULL) {
        reject_value("SEEP_SIZE", size);
    }
    read_budget(environment);
    if (floor != NULL && !seep_place_floor_parse(floor, &seep_place_floor)) {
        reject_value("SEEP_FLOOR", floor);
    }
    seep_options.keep = seep_place_keep_default;
    if (keep != NULL && !seep_place_keep_parse(keep, &seep_options.keep)) {
        reject_value("SEEP_KEEP", keep);
    }
}

/* What a word means; the first of @choices is what is taken without one. */
struct choice {
    const char *word;
    int value;
};

static int choose(char *const *environment, const char *name,
                  const struct choice *choices)
{
    const char *given = take(environment, name);

    for (size_t i = 0; given != NULL && choices[i].word != NULL; i++) {
        if (strcmp(given, choices[i].word) == 0) {
            return choices[i].value;
        }
    }
    if (given != NULL) {
        reject_value(name, given);
    }
    return choices[0].value;
}

static const struct choice pythons[] = {
    {"frames", SEEP_OPTIONS_PYTHON_FRAMES},
    {"objects", SEEP_OPTIONS_PYTHON_OBJECTS},
    {"1", SEEP_OPTIONS_PYTHON_OBJECTS},
    {"off", SEEP_OPTIONS_PYTHON_OFF},
    {"0", SEEP_OPTIONS_PYTHON_OFF},
    {0},
};
static const struct choice cudas[] = {
    {"tensors", SEEP_OPTIONS_CUDA_TENSORS}, {"1", SEEP_OPTIONS_CUDA_TENSORS},
    {"driver", SEEP_OPTIONS_CUDA_DRIVER},   {"off", SEEP_OPTIONS_CUDA_OFF},
    {"0", SEEP_OPTIONS_CUDA_OFF},           {0},
};
static const struct choice unwinders[] = {
    {"eh_frame", SEEP_UNWINDER_EH_FRAME},
    {"libunwind", SEEP_UNWINDER_LIBUNWIND},
    {0},
};
static const struct choice stacks[] = {{"long", false}, {"short", true}, {0}};
static const struct choice switches[] = {{"0", false}, {"1", true}, {0}};

static void read_words(char *const *environment)
{
    seep_options.unwinder =
        (enum seep_unwinder)choose(environment, "SEEP_UNWINDER", unwinders);
    seep_options.python =
        (enum seep_options_python)choose(environment, "SEEP_PYTHON", pythons);
    seep_options.cuda =
        (enum seep_options_cuda)choose(environment, "SEEP_CUDA", cudas);
    seep_options.short_stacks = choose(environment, "SEEP_STACKS", stacks);
    seep_options.any_filesystem = choose(environment, "SEEP_OUT_ANY", switches);
    seep_options.verbose = choose(environment, "SEEP_VERBOSE", switches);
}

static bool is_name(const char *name, size_t length, const char *known)
{
    return strlen(known) == length && strncmp(name, known, length) == 0;
}

static bool is_known(const char *name, size_t length)
{
#define IS_NAME(known) is_name(name, length, known) ||
#define HAS_PREFIX(prefix) strncmp(name, prefix, sizeof(prefix) - 1) == 0 ||
#define HOLDS(part) memmem(name, length, part, sizeof(part) - 1) != NULL ||
    return SEEP_VARIABLES(IS_NAME) SEEP_VARIABLES_OF_OTHERS(IS_NAME)
        SEEP_VARIABLE_PREFIXES(HAS_PREFIX) SEEP_VARIABLE_PARTS(HOLDS) false;
}

static void reject_unknown(char *const *environment)
{
    for (; environment != NULL && *environment != NULL; environment++) {
        size_t length = strcspn(*environment, "=");

        if (strncmp(*environment, "SEEP_", 5) == 0 &&
            !is_known(*environment, length)) {
            reject(*environment, length, NULL);
        }
    }
}

/* `seep run` says which process its command is. */
static void read_command(const char *given)
{
    uint64_t pid;

    seep_options.role = SEEP_REGION_ANY;
    if (given != NULL && seep_size_parse_number(given, &pid) == 0) {
        seep_options.role = pid == (uint64_t)seep_syscall0(SYS_getpid)
                                ? SEEP_REGION_COMMAND
                                : SEEP_REGION_OTHER;
    }
}

static bool is_skipped(const char *skip, const char *base_name)
{
    if (skip != NULL) {
        return is_in_list(skip, base_name);
    }
    return is_in_list(SEEP_LAUNCHERS, base_name) ||
           (seep_options.role != SEEP_REGION_COMMAND &&
            is_in_list(SEEP_HELPERS, base_name));
}

void seep_options_read(char *const *environment, const char *base_name)
{
    const char *pattern = take(environment, "SEEP_OUT");
    const char *folder = seep_options_find(environment, "TMPDIR");
    const char *labels = seep_options_find(environment, "SEEP_LABELS");
    const char *skip = seep_options_find(environment, "SEEP_SKIP");

    seep_options.rejected[0] = '\0';
    /* A name that is cut short would be another's. */
    seep_options.name_cut = !copy_pattern(pattern);
    seep_options.pattern_given = pattern != NULL;
    if (folder == NULL || folder[0] != '/' ||
        !seep_text_copy(seep_options.fallback_folder,
                        sizeof(seep_options.fallback_folder), folder)) {
        seep_text_copy(seep_options.fallback_folder,
                       sizeof(seep_options.fallback_folder), "/tmp");
    }
    seep_text_copy(seep_options.labels, sizeof(seep_options.labels),
                   labels != NULL ? labels : "");
    read_numbers(environment);
    read_words(environment);
    reject_unknown(environment);
    read_command(take(environment, "SEEP_COMMAND_PID"));
    seep_options.skipped = seep_options.name_cut || is_skipped(skip, base_name);
}
