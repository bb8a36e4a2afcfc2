/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep metrics: recordings as metrics for Prometheus.
 */
#include <stdio.h>
#include <stdlib.h>

#include "knowledge.h"
#include "metrics_run.h"
#include "option.h"
#include "say.h"
#include "units.h"
#include "verbs.h"

#define INTERVAL_S 15.0
#define INTERVAL_LEAST_S 0.1
#define KEEP_S 300.0
#define SITES 10

static const char help[] =
    "usage: seep metrics (--listen ADDRESS | --textfile FILE | --once)\n"
    "                    [OPTIONS] RECORDING|DIR|PID...\n\n"
    "Metrics of recorded processes for Prometheus, while they come and go:\n"
    "live bytes, growth with its interval, headroom, call sites that grow.\n\n"
    "  --listen ADDRESS  serve /metrics, /healthz and /-/ready by HTTP, at\n"
    "                    127.0.0.1:9464, :0 (a free port of 127.0.0.1, which\n"
    "                    is printed) or unix:/path\n"
    "  --textfile FILE   write FILE, for node_exporter's textfile collector\n"
    "  --interval TIME   read the recordings so often (15s)\n"
    "  --once            read them once, write, and end; without FILE to\n"
    "                    standard output\n"
    "  --sites N         call sites of each process (10); the rest is summed\n"
    "  --processes N     processes, those that live and are young first (64)\n"
    "  --keep TIME       how long those that ended are shown (5m); a "
    "recording\n"
    "                    that is named itself always is\n"
    "  --suppressions F  call sites that do not count: lines leak:PATTERN\n"
    "  --known SITE=SIZE a call site is a cache of that size at most\n"
    "  --no-symbols      modules and offsets only\n"
    "  -h, --help        this\n\n"
    "exit status: 0 fine, 1 something could not be read or written, 2 wrong\n"
    "usage\n";

enum {
    LISTEN = 256,
    TEXTFILE,
    INTERVAL,
    ONCE,
    SITES_MOST,
    PROCESSES,
    KEEP,
    NO_SYMBOLS
};

static const struct option options[] = {
    {"listen", required_argument, NULL, LISTEN},
    {"textfile", required_argument, NULL, TEXTFILE},
    {"interval", required_argument, NULL, INTERVAL},
    {"once", no_argument, NULL, ONCE},
    {"sites", required_argument, NULL, SITES_MOST},
    {"processes", required_argument, NULL, PROCESSES},
    {"keep", required_argument, NULL, KEEP},
    {"suppressions", required_argument, NULL, SEEP_KNOWLEDGE_SUPPRESSIONS},
    {"known", required_argument, NULL, SEEP_KNOWLEDGE_KNOWN},
    {"no-symbols", no_argument, NULL, NO_SYMBOLS},
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct arguments {
    struct seep_metrics_arguments run;
    struct seep_knowledge knowledge;
    bool help;
};

static int take_count(size_t least, size_t *ret_count)
{
    char *end;
    unsigned long count = strtoul(optarg, &end, 10);

    if (*optarg < '0' || *optarg > '9' || *end != '\0' || count < least ||
        count > 10000) {
        return seep_say_usage("metrics", optarg,
                              least > 0 ? "is no number from 1 to 10000"
                                        : "is no number from 0 to 10000");
    }
    *ret_count = count;
    return 0;
}

static int take_time(double least_s, double *ret_seconds)
{
    if (seep_units_parse_duration(optarg, ret_seconds) < 0 ||
        *ret_seconds < least_s) {
        return seep_say_usage("metrics", optarg, "is no time like 15s or 5m");
    }
    return 0;
}

static int take_option(int option, struct arguments *arguments)
{
    struct seep_metrics_arguments *run = &arguments->run;

    switch (option) {
    case LISTEN:
        run->address = optarg;
        return 0;
    case TEXTFILE:
        run->textfile = optarg;
        return 0;
    case INTERVAL:
        return take_time(INTERVAL_LEAST_S, &run->interval_s);
    case ONCE:
        run->once = true;
        return 0;
    case SITES_MOST:
        return take_count(0, &run->site_limit);
    case PROCESSES:
        return take_count(1, &run->follow.limit);
    case KEEP:
        return take_time(0, &run->follow.keep_s);
    case NO_SYMBOLS:
        run->follow.report.symbols = false;
        return 0;
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return seep_knowledge_take(option, optarg, &arguments->knowledge);
    }
}

static int check(const struct arguments *arguments, int argc)
{
    const struct seep_metrics_arguments *run = &arguments->run;

    if (arguments->help) {
        return 0;
    }
    if (run->once && run->address != NULL) {
        return seep_say_usage("metrics", "--once",
                              "ends, and --listen goes on");
    }
    if (!run->once && run->address == NULL && run->textfile == NULL) {
        return seep_say_usage("metrics", "metrics",
                              "one of --listen, --textfile, --once is needed");
    }
    if (optind == argc) {
        return seep_say_usage("metrics", "metrics",
                              "no recording or folder was named");
    }
    return 0;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int option;
    int code = 0;

    while (code == 0 && (option = seep_option_next("metrics", argc, argv, ":h",
                                                   options)) != -1) {
        code = option == SEEP_OPTION_WRONG ? SEEP_EXIT_USAGE
                                           : take_option(option, arguments);
    }
    return code == 0 ? check(arguments, argc) : code;
}

static int run(int argc, char **argv, struct arguments *arguments)
{
    struct seep_report_options *report = &arguments->run.follow.report;
    int code = seep_knowledge_load(&arguments->knowledge);

    if (code != 0) {
        return code;
    }
    report->suppressions = arguments->knowledge.suppressions;
    report->known = arguments->knowledge.known;
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
        .knowledge = {.verb = "metrics", .no_patterns = true},
    };
    int code = parse(argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(help, stdout);
    } else if (code == 0) {
        code = run(argc, argv, &arguments);
    }
    seep_knowledge_close(&arguments.knowledge);
    return code;
}
