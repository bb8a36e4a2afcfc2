/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep export: recordings in the formats of other tools.
 *
 * Invariant: a recording is never written to, whatever -o names; and a file
 * that was begun and could not be ended is taken away again.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/export.h"
#include "html/html.h"
#include "options/option.h"
#include "read/gather.h"
#include "seep/recording.h"
#include "verbs.h"
#include "words/units.h"
#include "words/words.h"

#define FORMATS_MOST 16

struct arguments {
    const struct seep_export_format *format;
    enum seep_export_weight weight;
    const char *out; /* NULL: stdout */
    struct seep_span_wish wish;
    struct seep_report_options report;
};

static bool is_page(const struct seep_export_format *format)
{
    return format->add == NULL;
}

static int take_format(const char *verb, const char *value, void *target)
{
    const char *names[FORMATS_MOST];
    size_t count = 0;
    size_t index;
    int code;

    for (; count < FORMATS_MOST && seep_export_format_at(count) != NULL;
         count++) {
        names[count] = seep_export_format_at(count)->name;
    }
    code = seep_option_choose(verb, value, names, count, &index);
    if (code == 0) {
        *(const struct seep_export_format **)target =
            seep_export_format_at(index);
    }
    return code;
}

static int take_weight(const char *verb, const char *value, void *target)
{
    const char *names[SEEP_EXPORT_WEIGHT_COUNT];
    size_t index;
    int code;

    for (unsigned i = 0; i < SEEP_EXPORT_WEIGHT_COUNT; i++) {
        names[i] = seep_export_weight_name((enum seep_export_weight)i);
    }
    code = seep_option_choose(verb, value, names, SEEP_EXPORT_WEIGHT_COUNT,
                              &index);
    if (code == 0) {
        *(enum seep_export_weight *)target = (enum seep_export_weight)index;
    }
    return code;
}

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("format", "NAME", take_format, AT(format),
                "pprof, folded, speedscope, perfetto, csv, jsonl or\nhtml"),
    {"out", "FILE", seep_option_out, AT(out), "write to FILE, not to stdout",
     'o', NULL},
    SEEP_OPTION("what", "WHAT", take_weight, AT(weight),
                "live (default), count, allocated, allocations or\n"
                "growth: what a stack weighs"),
    {.group = seep_when_options, .offset = AT(wish)},
    SEEP_OPTION("no-symbols", NULL, seep_option_clear, AT(report.symbols),
                "modules and offsets only"),
    SEEP_OPTION("debuginfod", NULL, seep_option_set, AT(report.use_debuginfod),
                "ask the servers of DEBUGINFOD_URLS for debug files"),
    SEEP_OPTION("debug-dir", "DIR", seep_option_text, AT(report.debug_folder),
                "look for debug files under DIR first"),
    SEEP_OPTION("sysroot", "DIR", seep_option_text, AT(report.sysroot),
                "look for programs and libraries under DIR"),
    {0},
};

static const struct seep_options options = {
    .verb = "export",
    .usage =
        "usage: seep export [OPTIONS] RECORDING|DIR...\n\n"
        "Write recordings in a format that other tools open. Reading does not\n"
        "disturb a process that is still running.\n",
    .table = table,
    .exits = "exit status: 0 fine, 1 something could not be read or written,\n"
             "2 wrong usage\n",
};

static bool is_recording(const char *path)
{
    char magic[sizeof(SEEP_MAGIC) - 1] = "";
    FILE *file = fopen(path, "re");
    size_t size = file == NULL ? 0 : fread(magic, 1, sizeof(magic), file);

    if (file != NULL) {
        fclose(file);
    }
    return size == sizeof(magic) && memcmp(magic, SEEP_MAGIC, size) == 0;
}

/* A process that still writes to its recording dies if that is cut. Only a
 * regular file is asked what it is: a FIFO would wait for its writer.
 * @return the exit code */
static int open_out(const struct arguments *arguments, FILE **ret_file)
{
    const char *path = arguments->out;
    struct stat status;

    if (path == NULL) {
        *ret_file = stdout;
        return 0;
    }
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        is_recording(path)) {
        seep_say(path, "is a recording, which would be overwritten",
                 "give -o another file");
        return SEEP_EXIT_USAGE;
    }
    *ret_file = fopen(path, "we");
    if (*ret_file == NULL) {
        seep_say(path, strerror(errno), "give -o a file that can be written");
        return SEEP_EXIT_FAILED;
    }
    return 0;
}

/* @return the exit code */
static int close_out(const struct arguments *arguments, FILE *file, int error)
{
    struct stat status;

    if (file != stdout && fclose(file) != 0 && error == 0) {
        error = -errno;
    }
    if (error == 0) {
        return 0;
    }
    if (error == -ENOTSUP) {
        seep_say(arguments->format->name,
                 "this seep was built without what it needs",
                 "build it with -Dpprof=enabled");
    } else {
        seep_say(file == stdout ? "stdout" : arguments->out, strerror(-error),
                 error == -ENOMEM
                     ? "give it more memory, or fewer recordings"
                     : "check the disk or the pipe that it goes to");
    }
    if (file != stdout && stat(arguments->out, &status) == 0 &&
        S_ISREG(status.st_mode)) {
        unlink(arguments->out);
    }
    return SEEP_EXIT_FAILED;
}

/* The export at hand. */
struct work {
    const struct seep_export_format *format;
    const struct seep_span_wish *wish;
    struct seep_export export;
    bool lacks_part; /* a process has no such part of its run */
    int error;       /* the first stays */
};

static void say_no_part(const struct work *work,
                        const struct seep_report *report, int error)
{
    char *reason = seep_words_span_refused(report, work->wish, error);

    seep_say(report->path, reason == NULL ? strerror(-error) : reason, NULL);
    free(reason);
}

/* Nothing is guessed, so that something may be missing. */
static void say_unknown(const struct seep_span *span)
{
    const struct seep_span_sum *sum = &span->total;
    char reason[160];

    if (sum->unknown_count == 0) {
        return;
    }
    snprintf(reason, sizeof(reason),
             "what stood at %s stacks is not known, at most %s: left out",
             SEEP_UNITS_COUNT((double)sum->unknown_count),
             SEEP_UNITS_BYTES(sum->unknown_bytes));
    seep_say(span->report->path, reason, "a larger SEEP_SIZE keeps more");
}

static int add_part(struct work *work, const struct seep_report *report)
{
    struct seep_span *span;
    int error = seep_span_open(report, work->wish, &span);

    if (error != 0 && error != -ENOMEM) {
        say_no_part(work, report, error);
        work->lacks_part = true;
        return 0;
    }
    if (error == 0) {
        say_unknown(span);
        work->export.span = span;
        error = work->format->add(&work->export, report);
        work->export.span = NULL;
        seep_span_close(span);
    }
    return error;
}

/* What could not be written is no fault of the recording. */
static int add(struct seep_gathering *gathering, struct seep_report *report)
{
    struct work *work = gathering->context;

    if (work->error == 0) {
        work->error = seep_span_is_wished(work->wish)
                          ? add_part(work, report)
                          : work->format->add(&work->export, report);
    }
    seep_report_close(report);
    return 0;
}

/* How many recordings are meant; what cannot be read is said later. */
static size_t count_recordings(char *const *paths, size_t count)
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        char **found;

        if (!seep_report_is_beside(paths, count, i) &&
            seep_report_list(paths[i], NULL, &found) == 0) {
            for (char **each = found; *each != NULL; each++) {
                sum++;
            }
            seep_report_list_free(found);
        }
    }
    return sum;
}

/* @return the exit code */
static int export_all(char *const *paths, size_t count,
                      const struct arguments *arguments, struct work *work)
{
    const struct seep_export_format *format = arguments->format;
    int code = 0;
    int last;

    work->error = format->begin == NULL ? 0 : format->begin(&work->export);
    if (work->error == 0) {
        code = seep_gather_each(paths, count, &arguments->report, add, work);
    }
    last = format->end == NULL ? 0 : format->end(&work->export);
    work->error = work->error == 0 ? last : work->error;
    return work->lacks_part ? SEEP_EXIT_FAILED : code;
}

/* As `report --html` has it: what is known beforehand is known here, too.
 * @return the exit code */
static int export_page(char *const *paths, size_t count,
                       const struct arguments *arguments, struct work *work)
{
    struct seep_report_options wanted = arguments->report;
    struct seep_knowledge knowledge = {.catalogue = NULL};
    struct seep_gathering gathering;
    int code = seep_knowledge_load(&knowledge, &wanted);

    if (code == 0) {
        struct seep_json_options json = {.catalogue = knowledge.catalogue};

        seep_gather(paths, count, &wanted, &gathering);
        code = seep_gather_exit(&gathering);
        work->error = seep_html_write_reports(
            work->export.file, gathering.reports, gathering.count,
            gathering.refused_count, &json);
        seep_gather_close(&gathering);
    }
    seep_knowledge_close(&knowledge);
    return code;
}

static int export(char *const *paths, size_t count,
                  const struct arguments *arguments)
{
    struct work work = {
        .format = arguments->format,
        .wish = &arguments->wish,
        .export = {.weight = arguments->weight,
                   .has_symbols = arguments->report.symbols,
                   .process_count = count_recordings(paths, count)}};
    int code = open_out(arguments, &work.export.file);
    int written;

    if (code != 0) {
        return code;
    }
    code = is_page(arguments->format)
               ? export_page(paths, count, arguments, &work)
               : export_all(paths, count, arguments, &work);
    written = close_out(arguments, work.export.file, work.error);
    return written != 0 ? written : code;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int code = seep_options_parse(&options, argc, argv, arguments);

    if (code != 0) {
        return code;
    }
    if (arguments->format == NULL) {
        return seep_say_usage("export",
                              "no format given: --format folded, ...");
    }
    if (optind >= argc) {
        return seep_say_usage("export", "no recording given");
    }
    if (seep_when_check("export", &arguments->wish) != 0) {
        return SEEP_EXIT_USAGE;
    }
    if (seep_span_is_wished(&arguments->wish) &&
        (!arguments->format->has_stacks || is_page(arguments->format))) {
        return seep_say_usage(
            "export",
            "%s has all times: --at, --since and --until cannot be combined with it",
            arguments->format->name);
    }
    if (arguments->out != NULL && strcmp(arguments->out, "-") == 0) {
        arguments->out = NULL; /* stdout, as other tools have it */
    }
    if (arguments->out == NULL && arguments->format->is_binary &&
        isatty(STDOUT_FILENO)) {
        return seep_say_usage(
            "export",
            "%s is not for a terminal: write it to a file with -o FILE",
            arguments->format->name);
    }
    return is_page(arguments->format) ? seep_html_check("export", "", NULL) : 0;
}

int seep_cmd_export(int argc, char **argv)
{
    struct arguments arguments = {
        .report = {.symbols = true, .by = SEEP_BY_LINE},
    };
    int code = parse(argc, argv, &arguments);

    if (code == 0) {
        if (seep_span_is_wished(&arguments.wish)) {
            arguments.report.by = SEEP_BY_STACK;
        } else {
            arguments.report.stacks = arguments.format->has_stacks;
        }
        code = export(argv + optind, (size_t)(argc - optind), &arguments);
    }
    return seep_options_exit(&options, code);
}
