/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SEEP_* variables; see options.h. */
#include "preload/options.h"

#include <string.h>

#include "base/launchers.h"
#include "base/text.h"
#include "format/layout.h"

#define DEFAULT_PATTERN "seep.%e.%p.%t.seep"
#define DEFAULT_SAMPLE_LOG2 19U
#define SAMPLE_LOG2_MAX 40U

struct seep_options seep_options __attribute__((visibility("hidden")));

static const char *find(char *const *environment, const char *name)
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

/* @return false if it does not fit: then @to is of no use */
static bool copy(char *to, size_t size, const char *from)
{
    struct seep_text text;

    seep_text_init(&text, to, size);
    seep_text_add(&text, from);
    return !text.cut;
}

/* SEEP_OUT as it is; below it if it names a folder by a slash at its end. */
static bool copy_pattern(const char *given)
{
    size_t length = given != NULL ? strlen(given) : 0;
    struct seep_text text;

    seep_text_init(&text, seep_options.pattern, sizeof(seep_options.pattern));
    seep_text_add(&text, length > 0 ? given : "");
    if (length == 0 || given[length - 1] == '/') {
        seep_text_add(&text, DEFAULT_PATTERN);
    }
    return !text.cut;
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

static unsigned floor_log2(uint64_t value)
{
    return value == 0 ? 0 : 63U - (unsigned)__builtin_clzll(value);
}

static uint64_t default_size(unsigned sample_log2)
{
    if (sample_log2 == 0) {
        return SEEP_LAYOUT_EXACT_BYTES;
    }
    return sample_log2 < SEEP_LAYOUT_DENSE_LOG2 ? SEEP_LAYOUT_DENSE_BYTES
                                                : SEEP_LAYOUT_DEFAULT_BYTES;
}

static void read_numbers(char *const *environment)
{
    const char *sample = find(environment, "SEEP_SAMPLE");
    const char *size = find(environment, "SEEP_SIZE");
    uint64_t number;

    seep_options.sample_log2 = DEFAULT_SAMPLE_LOG2;
    if (sample != NULL && seep_text_parse_size(sample, &number) &&
        number != 0 && floor_log2(number) <= SAMPLE_LOG2_MAX) {
        seep_options.sample_log2 = floor_log2(number);
    }
    seep_options.size_bytes = default_size(seep_options.sample_log2);
    if (size != NULL && seep_text_parse_size(size, &number) &&
        number >= SEEP_LAYOUT_LEAST_BYTES && number <= SEEP_LAYOUT_MOST_BYTES) {
        seep_options.size_bytes = number;
    }
}

static enum seep_options_python read_python(const char *given)
{
    if (given == NULL) {
        return SEEP_OPTIONS_PYTHON_FRAMES;
    }
    if (seep_text_equal(given, "objects") || seep_text_equal(given, "1")) {
        return SEEP_OPTIONS_PYTHON_OBJECTS;
    }
    return seep_text_equal(given, "off") || seep_text_equal(given, "0")
               ? SEEP_OPTIONS_PYTHON_OFF
               : SEEP_OPTIONS_PYTHON_FRAMES;
}

static enum seep_options_cuda read_cuda(const char *given)
{
    if (given != NULL &&
        (seep_text_equal(given, "off") || seep_text_equal(given, "0"))) {
        return SEEP_OPTIONS_CUDA_OFF;
    }
    return given != NULL && seep_text_equal(given, "driver")
               ? SEEP_OPTIONS_CUDA_DRIVER
               : SEEP_OPTIONS_CUDA_TENSORS;
}

void seep_options_read(char *const *environment, const char *base_name)
{
    const char *pattern = find(environment, "SEEP_OUT");
    const char *folder = find(environment, "TMPDIR");
    const char *labels = find(environment, "SEEP_LABELS");
    const char *unwinder = find(environment, "SEEP_UNWINDER");
    const char *any = find(environment, "SEEP_OUT_ANY");
    const char *stacks = find(environment, "SEEP_STACKS");
    const char *skip = find(environment, "SEEP_SKIP");

    /* A name that is cut short would be another's. */
    seep_options.skipped = !copy_pattern(pattern);
    seep_options.pattern_given = pattern != NULL && pattern[0] != '\0';
    if (folder == NULL || folder[0] != '/' ||
        !copy(seep_options.fallback_folder,
              sizeof(seep_options.fallback_folder), folder)) {
        copy(seep_options.fallback_folder, sizeof(seep_options.fallback_folder),
             "/tmp");
    }
    copy(seep_options.labels, sizeof(seep_options.labels),
         labels != NULL ? labels : "");
    read_numbers(environment);
    if (unwinder != NULL && seep_text_equal(unwinder, "libunwind")) {
        seep_options.unwinder = SEEP_UNWINDER_LIBUNWIND;
    }
    seep_options.python = read_python(find(environment, "SEEP_PYTHON"));
    seep_options.cuda = read_cuda(find(environment, "SEEP_CUDA"));
    seep_options.any_filesystem = any != NULL && seep_text_equal(any, "1");
    seep_options.short_stacks =
        stacks != NULL && seep_text_equal(stacks, "short");
    seep_options.skipped =
        seep_options.skipped ||
        is_in_list(skip != NULL ? skip : SEEP_LAUNCHERS, base_name);
}
