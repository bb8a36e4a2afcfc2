/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Texts put together, and words for a process, for what it holds and for a part
 * of its run; what its memory as a whole shows is in memory.c. Invariant: an
 * enum value that the recording made up gets a word too.
 */
#include "words/words.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "format/layout.h"
#include "words/units.h"

char *seep_words_make(const char *format, ...)
{
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : text;
}

FILE *seep_words_open(struct seep_words_text *text)
{
    text->file = open_memstream(&text->text, &text->size);
    return text->file;
}

char *seep_words_close(struct seep_words_text *text)
{
    if (fclose(text->file) != 0) {
        free(text->text);
        return NULL;
    }
    return text->text;
}

void seep_words_put_rate(FILE *file, double bytes_per_s)
{
    const char *rate = SEEP_UNITS_RATE(bytes_per_s);
    fputs(rate + (*rate == '+'), file);
}

void seep_words_put_growth(FILE *file, const struct seep_interval *bytes_per_s)
{
    seep_words_put_rate(file, bytes_per_s->estimate);
    if (bytes_per_s->low < bytes_per_s->high) {
        fprintf(file, " (%s)", SEEP_UNITS_BOUNDS(bytes_per_s, 60));
    }
}

void seep_words_put_classes(FILE *file,
                            const size_t by_class[SEEP_VERDICT_COUNT])
{
    size_t said = 0;

    for (size_t i = 0; i < SEEP_VERDICT_COUNT; i++) {
        if (by_class[i] > 0) {
            fprintf(file, "%s%zu %s", said++ == 0 ? "" : ", ", by_class[i],
                    seep_verdict_name((enum seep_verdict_class)i));
        }
    }
}

void seep_words_label(const char *name, char label[SEEP_WORDS_LABEL_BYTES])
{
    snprintf(label, SEEP_WORDS_LABEL_BYTES, "%s", name);
    for (char *c = label; *c != '\0'; c++) {
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        *c = *c == '-' ? ' ' : *c;
    }
}

char *seep_words_stack_command(const struct seep_report *report,
                               const struct seep_report_site *site)
{
    bool by_line = report->by == SEEP_BY_LINE; /* as it is without --by */
    char *path = seep_words_quote(report->path);
    char *text = seep_words_make("seep report --stack --site %.*s%s%s %s",
                                 SEEP_WORDS_ID_COLUMNS, site->id,
                                 by_line ? "" : " --by ",
                                 by_line ? "" : seep_grouping_name(report->by),
                                 path == NULL ? "RECORDING" : path);

    free(path);
    return text;
}

size_t seep_words_site_total(const struct seep_report *report)
{
    return report->site_total > report->site_count ? report->site_total
                                                   : report->site_count;
}

/*
 * How a process ended.
 */

/* Of what it held; the reader goes back for less, which does no harm. */
#define TOLD_SHARE 0.1

double seep_words_life_s(const struct seep_report *report)
{
    return fmax(report->life_s, report->duration_s);
}

bool seep_words_end_is_reported(const struct seep_report *report)
{
    double live = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        live += (double)report->spaces[i].live_bytes;
    }
    return report->end.judged_before &&
           report->end.freed_bytes >= TOLD_SHARE * live;
}

void seep_words_put_until(FILE *file, const struct seep_report *report)
{
    if (seep_words_end_is_reported(report)) {
        fprintf(file, ", until it shut down and freed %s",
                SEEP_UNITS_BYTES(report->end.freed_bytes));
    }
}

const char *seep_words_end(const struct seep_report *report,
                           char text[SEEP_WORDS_END_BYTES])
{
    text[0] = '\0';
    if (report->end.unreachable) {
        snprintf(
            text, SEEP_WORDS_END_BYTES,
            "most of its memory was freed before the last samples that are kept: growth before that cannot be judged");
    } else if (seep_words_end_is_reported(report)) {
        snprintf(text, SEEP_WORDS_END_BYTES, "judged up to %s, %s and freed %s",
                 SEEP_UNITS_DURATION(report->end.judged_to_s),
                 report->end.by_exit ? "where it called exit()"
                                     : "before it shut down",
                 SEEP_UNITS_BYTES(report->end.freed_bytes));
    }
    return text;
}

/*
 * Processes and how they were recorded.
 */

/* Python 3.11: those before have no word that holds their release. */
#define SINCE_VERSION_IS_TOLD 0x030b0000U

#define LOOKUP(names, value)                                               \
    ((size_t)(value) < sizeof(names) / sizeof((names)[0]) ? (names)[value] \
                                                          : "unknown")

const char *seep_words_state_name(enum seep_process_state state)
{
    static const char *const names[] = {
        [SEEP_STATE_RUNNING] = "running", [SEEP_STATE_EXITED] = "exited",
        [SEEP_STATE_KILLED] = "killed",   [SEEP_STATE_GONE] = "gone",
        [SEEP_STATE_UNKNOWN] = "unknown",
    };

    return LOOKUP(names, state);
}

void seep_words_state(const struct seep_report *report, char *text, size_t size)
{
    if (report->has_status && WIFSIGNALED(report->status)) {
        snprintf(text, size, "killed by signal %d", WTERMSIG(report->status));
    } else if (report->has_status && WIFEXITED(report->status)) {
        snprintf(text, size, "exited with status %d",
                 WEXITSTATUS(report->status));
    } else {
        static const char *const words[] = {
            [SEEP_STATE_RUNNING] = "still running",
            [SEEP_STATE_EXITED] = "exited",
            [SEEP_STATE_KILLED] = "killed",
            [SEEP_STATE_GONE] = "gone: killed, or ended by _exit or exec",
            [SEEP_STATE_UNKNOWN] = "recorded elsewhere, maybe still running",
        };
        snprintf(text, size, "%s", LOOKUP(words, report->state));
    }
}

bool seep_words_is_brief(const struct seep_report *report)
{
    return report->verdict.class == SEEP_VERDICT_INSUFFICIENT &&
           report->inert == SEEP_INERT_NONE &&
           report->duration_s < SEEP_WORDS_BRIEF_S;
}

const char *seep_words_mode_name(const struct seep_report *report)
{
    return report->sample_bytes <= 1 ? "exact" : "sampled";
}

void seep_words_mode(const struct seep_report *report, char *text, size_t size)
{
    bool denser = report->first_sample_bytes > 1 &&
                  report->first_sample_bytes < report->sample_bytes;

    if (report->exact) {
        snprintf(text, size, "exact");
    } else if (report->sample_bytes <= 1) {
        snprintf(text, size, "exact except for the losses below");
    } else {
        bool has_time = report->sample_rose_s > 0;
        bool sparer = report->tensor_sample_bytes > report->sample_bytes;

        snprintf(text, size, "%ssampled every %s%s%s%s%s%s%s%s%s",
                 report->began_exact ? "began exact, now " : "",
                 SEEP_UNITS_BYTES((double)report->sample_bytes),
                 has_time ? " from " : "",
                 has_time ? SEEP_UNITS_DURATION(report->sample_rose_s) : "",
                 has_time ? " on" : "", denser ? " (" : "",
                 denser ? SEEP_UNITS_BYTES((double)report->first_sample_bytes)
                        : "",
                 denser ? " at first)" : "", sparer ? ", tensors every " : "",
                 sparer ? SEEP_UNITS_BYTES((double)report->tensor_sample_bytes)
                        : "");
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

/* A process that says what it is knows it better than its arguments. */
static bool has_title(const struct seep_report *report)
{
    return report->title != NULL && *report->title != '\0';
}

char *seep_words_command(const struct seep_report *report)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    if (has_title(report)) {
        fputs(report->title, file);
    } else if (report->argument_count == 0) {
        fputs(base_name(report->executable), file);
    }
    for (size_t i = 0; i < report->argument_count && !has_title(report); i++) {
        const char *word = report->arguments[i];
        fprintf(file, "%s%s", i == 0 ? "" : " ",
                i == 0 ? base_name(word) : word);
    }
    return seep_words_close(&text);
}

/* Options of Python that are letters; c is none of them: its word is text. */
#define LETTERS "bBdEhiIOPqsSuvxmXW"

static bool is_interpreter(const char *name)
{
    static const char *const names[] = {"python", "pypy", "node", "ruby",
                                        "perl"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Of Python's options: -X and -W have a word of their own, unless it is behind
 * the letter; the last letter of a word may be m. @return where the script or
 * the module stands; @count: nowhere */
static size_t find_script(const char *const *words, size_t count,
                          bool *ret_is_module)
{
    size_t at = 1;

    *ret_is_module = false;
    while (at < count && words[at][0] == '-' && words[at][1] != '\0') {
        size_t last = strlen(words[at]) - 1;
        char letter = words[at][last];
        bool is_letters =
            words[at][1] != '-' && strspn(words[at] + 1, LETTERS) == last;

        if (!is_letters && strncmp(words[at], "-X", 2) != 0 &&
            strncmp(words[at], "-W", 2) != 0) {
            return count;
        }
        at += is_letters && strchr("XW", letter) != NULL ? 2 : 1;
        if (is_letters && letter == 'm') {
            *ret_is_module = true;
            return at;
        }
    }
    return at;
}

char *seep_words_program(const struct seep_report *report)
{
    const char *const *words = report->arguments;
    size_t count = report->argument_count;
    bool is_module;
    size_t at;
    const char *name = base_name(count == 0 ? report->executable : words[0]);

    if (has_title(report)) {
        return strdup(report->title);
    }
    if (!is_interpreter(name) || count < 2) {
        return strdup(name);
    }
    if (*words[1] == '-' && strncmp(name, "py", 2) != 0) {
        return strdup(name);
    }
    at = find_script(words, count, &is_module);
    return at >= count || strcmp(words[at], "-") == 0 ? strdup(name)
           : is_module ? seep_words_make("%s -m %s", name, words[at])
                       : seep_words_make("%s %s", name, base_name(words[at]));
}

void seep_words_python_version(uint32_t version, char *text, size_t size)
{
    /* as PY_VERSION_HEX has them */
    static const char *const levels[16] = {
        [0xa] = "a", [0xb] = "b", [0xc] = "rc"};
    const char *level = levels[version >> 4 & 15];

    if (version < SINCE_VERSION_IS_TOLD) {
        snprintf(text, size, "%u.%u", (unsigned)(version >> 24),
                 (unsigned)(version >> 16 & 255));
        return;
    }
    int length = snprintf(text, size, "%u.%u.%u", (unsigned)(version >> 24),
                          (unsigned)(version >> 16 & 255),
                          (unsigned)(version >> 8 & 255));

    if (level != NULL && length > 0 && (size_t)length < size) {
        snprintf(text + length, size - (size_t)length, "%s%u", level,
                 (unsigned)(version & 15));
    }
}

bool seep_words_has_python(const struct seep_report *report)
{
    return report->python_version != 0 ||
           report->python_state != SEEP_PYTHON_NONE;
}

bool seep_words_is_without_python(const struct seep_report *report)
{
    return report->python_state != SEEP_PYTHON_NONE &&
           report->python_state != SEEP_PYTHON_ON &&
           report->python_state != SEEP_PYTHON_PROBATION;
}

const char *seep_words_rows(const struct seep_report *report, size_t count)
{
    static const char *const names[][2] = {
        [SEEP_BY_STACK] = {"call sites", "call site"},
        [SEEP_BY_LINE] = {"call sites", "call site"},
        [SEEP_BY_FUNCTION] = {"functions", "function"},
        [SEEP_BY_MODULE] = {"modules", "module"},
        [SEEP_BY_THREAD] = {"threads", "thread"},
        [SEEP_BY_LABEL] = {"call sites", "call site"},
    };

    return report->by < SEEP_GROUPING_COUNT ? names[report->by][count == 1]
                                            : "rows";
}

const char *seep_words_space(enum seep_space space)
{
    static const char *const names[] = {
#define SPACE_NAME(symbol, value, name) [value] = (name),
        SEEP_SPACES(SPACE_NAME)
#undef SPACE_NAME
    };

    return LOOKUP(names, space);
}

const char *seep_words_unwinder(enum seep_unwinder unwinder)
{
    static const char *const names[] = {
        [SEEP_UNWINDER_EH_FRAME] = "eh_frame",
        [SEEP_UNWINDER_LIBUNWIND] = "libunwind",
    };

    return LOOKUP(names, unwinder);
}

const char *seep_words_cut(enum seep_cut cut)
{
    static const char *const names[] = {
#define CUT_WORDS(symbol, value, words) [value] = (words),
        SEEP_CUTS(CUT_WORDS)
#undef CUT_WORDS
    };

    return LOOKUP(names, cut);
}

const char *seep_words_inert(enum seep_inert_reason reason)
{
    static const char *const names[] = {
#define INERT_WORDS(symbol, value, words) [value] = (words),
        SEEP_INERT_REASONS(INERT_WORDS)
#undef INERT_WORDS
    };

    return LOOKUP(names, reason);
}

uint64_t seep_words_counter(const struct seep_report *report, unsigned counter)
{
    return counter < report->counter_count ? report->counters[counter].value
                                           : 0;
}

unsigned long long seep_words_larger_mib(const struct seep_report *report)
{
    uint64_t bytes = SEEP_LAYOUT_LEAST_BYTES;

    /* The sections never take all of what they were given. */
    while (bytes < report->most_bytes && bytes < SEEP_LAYOUT_MOST_BYTES) {
        bytes *= 2;
    }
    return (bytes < SEEP_LAYOUT_MOST_BYTES ? bytes * 2 : bytes) >> 20;
}

void seep_words_cost(const struct seep_report *report, bool in_seconds,
                     char *text, size_t size)
{
    /* A run that is shorter than that has no share. */
    bool has_share = report->cost_s < report->duration_s;
    bool has_time = in_seconds || !has_share;

    snprintf(text, size, "%s%s%s%s%s", report->cost_at_most ? "at most " : "",
             has_time ? SEEP_UNITS_DURATION(report->cost_s) : "",
             has_time && has_share ? ", " : "",
             has_share ? SEEP_UNITS_SHARE(report->cost_s / report->duration_s)
                       : "",
             has_share ? " of the run" : "");
    if (report->budget > 0) {
        size_t length = strlen(text);

        snprintf(text + length, size - length, " (budget %g %%)",
                 report->budget * 100);
    }
}

const char *seep_words_beside(int error)
{
    switch (error) {
    case -EBADMSG:
        return "damaged";
    case -EPROTO:
        return "of another version of seep";
    case -ENOTSUP:
        return "not a regular file";
    default:
        return strerror(-error);
    }
}

uint64_t seep_words_lost_events(const struct seep_report *report)
{
    static const enum seep_counter lost[] = {
        SEEP_COUNT_DROPPED_ALLOCS, SEEP_COUNT_DROPPED_FREES,
        SEEP_COUNT_NESTED,         SEEP_COUNT_TORN,
        SEEP_COUNT_LIVE_FULL,      SEEP_COUNT_RESTORE_LOST,
        SEEP_COUNT_START_MISSED,   SEEP_COUNT_CUDA_FULL,
        SEEP_COUNT_CUDA_BUSY,      SEEP_COUNT_CUDA_SATURATED,
        SEEP_COUNT_CUDA_NEST_FULL, SEEP_COUNT_RANGES_FULL,
    };
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        sum += seep_words_counter(report, lost[i]);
    }
    return sum;
}

char *seep_words_quote(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789/._-+,:@%=";
    char *text = malloc(strlen(path) * 4 + 3); /* each ' becomes '\'' */
    char *out = text;

    if (text == NULL) {
        return NULL;
    }
    if (*path != '\0' && path[strspn(path, plain)] == '\0') {
        return strcpy(text, path);
    }
    *out++ = '\'';
    for (; *path != '\0'; path++) {
        if (*path == '\'') {
            out = stpcpy(out, "'\\'");
        }
        *out++ = *path;
    }
    strcpy(out, "'");
    return text;
}

/*
 * GPUs and what lies on them, in words. Invariant: memory of the host is never
 * called that of a device, nor the other way round.
 */

void seep_words_gpu(int device, char text[SEEP_WORDS_GPU_BYTES])
{
    if (device < 0) {
        snprintf(text, SEEP_WORDS_GPU_BYTES, "a GPU");
    } else {
        snprintf(text, SEEP_WORDS_GPU_BYTES, "GPU %d", device);
    }
}

/* The driver is asked when it has served a call, which may be long ago. */
bool seep_words_is_followed(const struct seep_report_device *device)
{
    return device->forecast.answer != SEEP_FORECAST_UNKNOWN;
}

bool seep_words_is_gpu(enum seep_space space)
{
    return space == SEEP_SPACE_DEVICE || space == SEEP_SPACE_TENSOR ||
           space == SEEP_SPACE_MANAGED;
}

/* What a site holds: "memory of GPU 0", "pinned host memory"; of NULL "host
 * memory". */
static const char *memory_of(const struct seep_report_site *site,
                             char text[SEEP_WORDS_GPU_BYTES])
{
    static const char *const of_one[] = {
        [SEEP_SPACE_MANAGED] = "managed memory of GPU",
        [SEEP_SPACE_DEVICE] = "memory of GPU",
        [SEEP_SPACE_TENSOR] = "tensor memory of GPU",
    };
    static const char *const of_any[SEEP_SPACE_COUNT] = {
        [SEEP_SPACE_PINNED] = "pinned host memory",
        [SEEP_SPACE_MANAGED] = "managed memory",
        [SEEP_SPACE_DEVICE] = "device memory",
        [SEEP_SPACE_TENSOR] = "tensor memory",
        [SEEP_SPACE_REGISTERED] = "registered host memory",
        [SEEP_SPACE_RESERVED] = "reserved address space",
        [SEEP_SPACE_IMPORTED] = "imported memory",
        [SEEP_SPACE_FILE] = "address space mapped from files",
    };

    if (site == NULL || site->space >= SEEP_SPACE_COUNT ||
        of_any[site->space] == NULL) {
        return "host memory";
    }
    if (!seep_words_is_gpu(site->space) || site->device < 0) {
        return of_any[site->space];
    }
    snprintf(text, SEEP_WORDS_GPU_BYTES, "%s %d", of_one[site->space],
             site->device);
    return text;
}

/* Where a site grows: the device, -1 for the host. */
static int place_of(const struct seep_report_site *site)
{
    return seep_words_is_gpu(site->space) ? site->device : -1;
}

/* What is mapped of files is counted apart from memory. */
static bool is_file(const struct seep_report_site *site)
{
    return site->space == SEEP_SPACE_FILE;
}

const char *seep_words_growing(const struct seep_report *report,
                               const struct seep_report_site *first,
                               char text[SEEP_WORDS_GPU_BYTES])
{
    bool elsewhere = false;
    bool host = first == NULL || !seep_words_is_gpu(first->space);
    bool gpu = !host;

    for (size_t i = 0; first != NULL && i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];

        if (site->class == first->class && site->suppressed_by == NULL &&
            !site->backs_tensors && is_file(site) == is_file(first)) {
            host = host || !seep_words_is_gpu(site->space);
            gpu = gpu || seep_words_is_gpu(site->space);
            elsewhere = elsewhere || place_of(site) != place_of(first);
        }
    }
    if (host && gpu) {
        return "memory of the host and of GPUs";
    }
    return elsewhere ? "memory of several GPUs" : memory_of(first, text);
}

static uint64_t live_in(const struct seep_report *report, unsigned spaces)
{
    uint64_t live = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        const struct seep_report_space *space = &report->spaces[i];

        if (space->space < SEEP_SPACE_COUNT &&
            (spaces >> space->space & 1U) != 0) {
            live += space->live_bytes;
        }
    }
    return live;
}

uint64_t seep_words_host_bytes(const struct seep_report *report)
{
    return live_in(report, 1U << SEEP_SPACE_HEAP | 1U << SEEP_SPACE_MAPPED |
                               1U << SEEP_SPACE_PYTHON |
                               1U << SEEP_SPACE_PINNED);
}

/* Tensors lie in memory of devices, if that was recorded. */
uint64_t seep_words_gpu_bytes(const struct seep_report *report)
{
    uint64_t driver =
        live_in(report, 1U << SEEP_SPACE_DEVICE | 1U << SEEP_SPACE_MANAGED);
    uint64_t tensors = live_in(report, 1U << SEEP_SPACE_TENSOR);

    return driver > tensors ? driver : tensors;
}

/* Devices that the driver was not asked about have sites all the same. */
static bool has_several(const struct seep_report *report)
{
    bool several = report->device_count > 1;
    int first = -1;

    for (size_t i = 0; i < report->site_count && !several; i++) {
        int device = place_of(&report->sites[i]);

        if (device >= 0) {
            several = first >= 0 && device != first;
            first = device;
        }
    }
    return several;
}

const char *seep_words_place(const struct seep_report *report,
                             const struct seep_report_site *site,
                             char text[SEEP_WORDS_GPU_BYTES])
{
    const char *name = seep_words_space(site->space);

    if (place_of(site) < 0 || !has_several(report)) {
        return name;
    }
    snprintf(text, SEEP_WORDS_GPU_BYTES, "%s %d", name, site->device);
    return text;
}

bool seep_words_is_rounded(const struct seep_report_site *site)
{
    double requested = (double)site->requested.live_bytes;

    return requested > 0 && (double)site->live_bytes >= 1.1 * requested;
}

bool seep_words_is_wanted(const struct seep_report_site *site,
                          const char *site_id)
{
    size_t length = site_id == NULL ? 0 : strlen(site_id);

    return length == 0 || strncmp(site->id, site_id, length) == 0 ||
           strncmp(site->line_id, site_id, length) == 0;
}

const char *seep_words_next_rejected(const char *at,
                                     char entry[SEEP_WORDS_ENTRY_BYTES])
{
    size_t length = strcspn(at, "\n");

    if (*at == '\0') {
        return NULL;
    }
    snprintf(entry, SEEP_WORDS_ENTRY_BYTES, "%.*s",
             (int)(length < SEEP_WORDS_ENTRY_BYTES
                       ? length
                       : SEEP_WORDS_ENTRY_BYTES - 1),
             at);
    return at + length + (at[length] == '\n');
}

/*
 * Why a recording has not the part of a run that was asked for. Invariant: it
 * names what is there, so that the next try can be right.
 */

#define MARKS_SAID 5 /* of those that there are */

static bool is_there(const struct seep_report *report, const char *name)
{
    for (size_t i = 0; name != NULL && i < report->mark_count; i++) {
        if (strcmp(report->marks[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The mark that is not there. */
static const char *missing_mark(const struct seep_report *report,
                                const struct seep_span_wish *wish)
{
    const char *names[] = {wish->at.mark, wish->since.mark, wish->until.mark};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i] != NULL && !is_there(report, names[i])) {
            return names[i];
        }
    }
    return "";
}

/* Each once. */
static void put_marks(FILE *file, const struct seep_report *report)
{
    size_t said = 0;

    for (size_t i = 0; i < report->mark_count && said <= MARKS_SAID; i++) {
        struct seep_report before = *report;

        before.mark_count = i;
        if (is_there(&before, report->marks[i].name)) {
            continue;
        }
        if (said++ == MARKS_SAID) {
            fputs(", ...", file);
        } else {
            fprintf(file, "%s%s", said == 1 ? "; its marks are " : ", ",
                    report->marks[i].name);
        }
    }
}

char *seep_words_span_refused(const struct seep_report *report,
                              const struct seep_span_wish *wish, int error)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    if (error == -ENOENT) {
        fprintf(file, "no time, and no mark of this recording, is named \"%s\"",
                missing_mark(report, wish));
        put_marks(file, report);
    } else if (error == -ERANGE) {
        fprintf(file, "the run ended before that, after %s",
                SEEP_UNITS_DURATION(report->duration_s));
    } else if (error == -EINVAL) {
        fputs("it would end before it begins", file);
    } else {
        fputs("not enough memory", file);
    }
    return seep_words_close(&text);
}
