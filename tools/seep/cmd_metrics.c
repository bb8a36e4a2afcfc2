/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep metrics: recordings as metrics for Prometheus.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "metrics/metrics.h"
#include "options/option.h"
#include "read/gather.h"
#include "verbs.h"
#include "words/units.h"

#define INTERVAL_S 15.0
#define INTERVAL_LEAST_S 0.1
#define KEEP_S 300.0
#define SITES 10

struct arguments {
    struct seep_metrics_arguments run;
    struct seep_knowledge knowledge;
};

static int take_count(const char *verb, const char *value, size_t least,
                      size_t *ret_count)
{
    uint64_t count;

    if (seep_size_parse_number(value, &count) < 0 || count < least ||
        count > 10000) {
        return seep_say_value(verb, value,
                              least > 0 ? "a number from 1 to 10000"
                                        : "a number from 0 to 10000");
    }
    *ret_count = (size_t)count;
    return 0;
}

static int take_sites(const char *verb, const char *value, void *target)
{
    return take_count(verb, value, 0, target);
}

static int take_processes(const char *verb, const char *value, void *target)
{
    return take_count(verb, value, 1, target);
}

static int take_time(const char *verb, const char *value, double least_s,
                     double *ret_seconds)
{
    if (seep_units_parse_duration(value, ret_seconds) < 0 ||
        *ret_seconds < least_s) {
        return seep_say_value(verb, value, "a time such as 15s or 5m");
    }
    return 0;
}

static int take_interval(const char *verb, const char *value, void *target)
{
    return take_time(verb, value, INTERVAL_LEAST_S, target);
}

static int take_keep(const char *verb, const char *value, void *target)
{
    return take_time(verb, value, 0, target);
}

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("listen", "ADDRESS", seep_option_text, AT(run.address),
                "serve /metrics, /healthz and /-/ready by HTTP, at\n"
                "127.0.0.1:9464, :0 (a free port of 127.0.0.1, which\n"
                "is printed) or unix:/path"),
    SEEP_OPTION("textfile", "FILE", seep_option_text, AT(run.textfile),
                "write FILE, for node_exporter's textfile collector"),
    SEEP_OPTION("interval", "TIME", take_interval, AT(run.interval_s),
                "read the recordings this often (15s)"),
    SEEP_OPTION("once", NULL, seep_option_set, AT(run.once),
                "read them once, write, and exit; without FILE to\n"
                "standard output"),
    SEEP_OPTION("sites", "N", take_sites, AT(run.site_limit),
                "call sites per process (10); the rest is summed up"),
    SEEP_OPTION("processes", "N", take_processes, AT(run.follow.limit),
                "processes, running and recent ones first (64)"),
    SEEP_OPTION("keep", "TIME", take_keep, AT(run.follow.keep_s),
                "how long ended processes are shown (5m); recordings\n"
                "given by name always are"),
    SEEP_OPTION("suppressions", "F", seep_knowledge_take_file,
                AT(knowledge.suppression_files),
                "ignore call sites: a file of lines leak:PATTERN"),
    SEEP_OPTION("known", "SITE=SIZE", seep_knowledge_take_known, AT(knowledge),
                "this call site is a cache of at most SIZE"),
    SEEP_OPTION("no-symbols", NULL, seep_option_clear,
                AT(run.follow.report.symbols), "modules and offsets only"),
    {0},
};

static const struct seep_options options = {
    .verb = "metrics",
    .usage =
        "usage: seep metrics (--listen ADDRESS | --textfile FILE | --once)\n"
        "                    [OPTIONS] RECORDING|DIR|PID...\n\n"
        "Metrics of recorded processes for Prometheus, while they come and go:\n"
        "live bytes, growth with its interval, headroom, call sites that grow.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be read or written, 2 wrong\n"
        "usage\n",
};

static int check(const struct arguments *arguments, int argc)
{
    const struct seep_metrics_arguments *run = &arguments->run;

    if (run->once && run->address != NULL) {
        return seep_say_usage("metrics",
                              "--once cannot be combined with --listen");
    }
    if (!run->once && run->address == NULL && run->textfile == NULL) {
        return seep_say_usage("metrics",
                              "expected --listen, --textfile or --once");
    }
    if (optind == argc) {
        return seep_say_usage("metrics", "no recording or folder given");
    }
    return 0;
}

static int run(int argc, char **argv, struct arguments *arguments)
{
    struct seep_report_options *report = &arguments->run.follow.report;
    int code = seep_knowledge_load(&arguments->knowledge, report);

    if (code != 0) {
        return code;
    }
    report->site_limit = arguments->run.site_limit;
    report->site_limit += report->site_limit == 0; /* 0 is all of them */
    arguments->run.paths = argv + optind;
    arguments->run.path_count = (size_t)(argc - optind);
    return seep_metrics_run(&arguments->run);
}

int seep_cmd_metrics(int argc, char **argv)
{
    struct arguments arguments = {
        .run = {.site_limit = SITES,
                .interval_s = INTERVAL_S,
                .follow = {.keep_s = KEEP_S,
                           .report = {.symbols = true, .by = SEEP_BY_LINE}}},
        .knowledge.no_patterns = true,
    };
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code == 0) {
        code = check(&arguments, argc);
    }
    if (code == 0) {
        code = run(argc, argv, &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return seep_options_exit(&options, code);
}
