/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From recordings to an exit code. Invariant: what was asked
 * for and could not be written is no pass.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ci/ci.h"
#include "cmd_check.h"
#include "options/option.h"
#include "read/gather.h"
#include "reader/judge/family.h"
#include "text/report.h"
#include "json/json.h"

static void say_failed(const char *path, int error)
{
    if (error == -ENOTSUP) {
        seep_say(path, "this seep was built without libxml2",
                 "build it with -Djunit=enabled");
    } else {
        seep_say(path, strerror(-error), "check that it can be written");
    }
}

/* Of what is one document nothing else is on the stream.
 * @return whether all was written */
static bool write_files(const struct seep_check_arguments *arguments,
                        const struct seep_check_set *set, FILE *file)
{
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    int junit =
        arguments->junit == NULL ? 0 : seep_ci_junit(arguments->junit, set);
    int sarif =
        arguments->sarif == NULL ? 0 : seep_ci_sarif(arguments->sarif, set);
    int github =
        arguments->github
            ? seep_ci_github(arguments->json ? stderr : file, summary, set)
            : 0;

    if (junit < 0) {
        say_failed(arguments->junit, junit);
    }
    if (sarif < 0) {
        say_failed(arguments->sarif, sarif);
    }
    if (github < 0) {
        say_failed(summary == NULL ? "stdout" : summary, github);
    }
    return junit == 0 && sarif == 0 && github == 0;
}

static int print(const struct seep_check_arguments *arguments,
                 const struct seep_check_set *set, FILE *file)
{
    struct seep_page page;
    int code = seep_check_exit(set);
    bool written = true;

    if (arguments->json) {
        written = seep_json_check(file, set) == 0;
    } else if (!arguments->quiet) {
        seep_page_init(&page, file, arguments->color);
        seep_view_check(&page, set);
    }
    written &= write_files(arguments, set, file);
    return !written && code != SEEP_EXIT_OVER_LIMIT ? SEEP_EXIT_FAILED : code;
}

static int hold(const struct seep_gathering *gathering,
                const struct seep_gathering *baseline,
                const struct seep_check_arguments *arguments, FILE *file)
{
    const struct seep_report *const *reports = gathering->reports;
    size_t count = seep_gather_held(gathering);
    struct seep_check_options options = {
        .limits = arguments->limits,
        .count = arguments->count,
        .warmup_s = arguments->warmup_s,
        .warmup_mark = arguments->warmup_mark,
        .baseline = baseline->reports,
        .baseline_count = baseline->count,
    };
    struct seep_families families;
    struct seep_check_result *results;
    struct seep_check_set set = {
        .reports = reports,
        .report_count = count,
        .baseline = options.baseline,
        .baseline_count = options.baseline_count,
        .refused_count = gathering->refused_count + baseline->refused_count,
        .warmup_s = arguments->warmup_s,
        .warmup_mark = arguments->warmup_mark,
    };
    int error = seep_families_make(reports, count, &families);

    if (error == 0) {
        options.families = &families;
        error = seep_check_run(&options, reports, count, &results, &set.count);
        if (error < 0) {
            seep_families_fini(&families);
        }
    }
    if (error < 0) {
        seep_say("check", strerror(-error), NULL);
        return SEEP_EXIT_FAILED;
    }
    set.results = results;
    int code = print(arguments, &set, file);
    free(results);
    seep_families_fini(&families);
    return code;
}

int seep_gate(char *const *paths, size_t count,
              struct seep_check_arguments *arguments, FILE *file)
{
    struct seep_report_options options = {.by = SEEP_BY_LINE,
                                          .symbols = !arguments->no_symbols};
    char *old[] = {(char *)arguments->baseline};
    struct seep_gathering gathering;
    struct seep_gathering baseline;
    int code = seep_knowledge_load(&arguments->knowledge, &options);

    if (code != 0) {
        return code;
    }
    seep_gather(paths, count, &options, &gathering);
    seep_gather(old, arguments->baseline != NULL, &options, &baseline);
    code = hold(&gathering, &baseline, arguments, file);
    seep_gather_close(&baseline);
    seep_gather_close(&gathering);
    return code;
}
