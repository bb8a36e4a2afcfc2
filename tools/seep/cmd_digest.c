/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep digest: recordings as lines for a database of a fleet.
 *
 * Invariant: a recording is closed before the next is opened.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "options/option.h"
#include "read/gather.h"
#include "verbs.h"
#include "json/json.h"

struct arguments {
    struct seep_report_options report;
    struct seep_knowledge knowledge;
};

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    {.group = seep_knowledge_options, .offset = AT(knowledge)},
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
    .verb = "digest",
    .usage =
        "usage: seep digest [OPTIONS] RECORDING|DIR...\n\n"
        "Print one line of JSON (schema seep-digest/1) for each call site that\n"
        "grows, and one for each process in which none does: to be collected from\n"
        "many machines and merged by a database.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be read, 2 wrong usage\n",
};

static int print(struct seep_gathering *gathering, struct seep_report *report)
{
    int *error = gathering->context;

    if (*error == 0) {
        *error = seep_json_digest(stdout, report);
    }
    seep_report_close(report);
    return 0;
}

static int digest(char *const *paths, size_t count, struct arguments *arguments)
{
    int error = 0;
    int code = seep_knowledge_load(&arguments->knowledge, &arguments->report);

    if (code != 0) {
        return code;
    }
    code = seep_gather_each(paths, count, &arguments->report, print, &error);
    if (error == -ENOMEM) {
        seep_say("digest", "not enough memory: a line is missing", NULL);
    }
    return error != 0 ? SEEP_EXIT_FAILED : code;
}

int seep_cmd_digest(int argc, char **argv)
{
    struct arguments arguments = {
        .report = {.symbols = true, .by = SEEP_BY_LINE},
    };
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code == 0 && optind == argc) {
        code = seep_say_usage("digest", "no recording given");
    }
    if (code == 0) {
        code = digest(argv + optind, (size_t)(argc - optind), &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return seep_options_exit(&options, code);
}
