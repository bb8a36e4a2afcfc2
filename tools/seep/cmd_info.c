/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep info: what a recording holds, its losses, its cost.
 */
#include <stdbool.h>
#include <stdio.h>

#include "gather.h"
#include "option.h"
#include "page.h"
#include "say.h"
#include "verbs.h"
#include "view_json.h"
#include "view_text.h"

static const char help[] =
    "usage: seep info [--json] [--color WHEN] RECORDING|DIR...\n\n"
    "Say what a recording holds: the process, how full its tables are, where\n"
    "stacks end and why, what was lost, and what seep itself cost.\n\n"
    "  --json            one JSON document (schema seep-info/1)\n"
    "  --color WHEN      auto, always or never\n"
    "  -h, --help        this\n\n"
    "exit status: 0 fine, 1 something could not be read, 2 wrong usage\n";

enum { JSON = 256, COLOR };

static const struct option options[] = {
    {"json", no_argument, NULL, JSON},
    {"color", required_argument, NULL, COLOR},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int print(const struct seep_gathering *gathering, bool json,
                 enum seep_color color)
{
    struct seep_page page;

    if (json) {
        return seep_view_json_info(
            stdout, (const struct seep_report *const *)gathering->reports,
            gathering->count, gathering->refused_count);
    }
    seep_page_init(&page, stdout, color);
    for (size_t i = 0; i < gathering->count; i++) {
        if (i > 0) {
            seep_page_end_line(&page);
        }
        seep_view_text_info(&page, gathering->reports[i]);
    }
    return 0;
}

int seep_cmd_info(int argc, char **argv)
{
    /* names are not shown: nothing is symbolised */
    struct seep_report_options report = {.symbols = false, .site_limit = 1};
    enum seep_color color = SEEP_COLOR_AUTO;
    struct seep_gathering gathering;
    bool json = false;
    int option;

    while ((option = seep_option_next("info", argc, argv, ":h", options)) !=
           -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return SEEP_EXIT_FINE;
        }
        if (option == SEEP_OPTION_WRONG) {
            return SEEP_EXIT_USAGE;
        }
        if (option == JSON) {
            json = true;
        } else if (seep_option_color("info", optarg, &color) != 0) {
            return SEEP_EXIT_USAGE;
        }
    }
    if (optind == argc) {
        return seep_say_usage("info", "info", "no recording was named");
    }
    seep_gather(argv + optind, (size_t)(argc - optind), &report, &gathering);
    int code = seep_gather_exit(&gathering);
    if (print(&gathering, json, color) < 0) {
        code = SEEP_EXIT_FAILED;
    }
    seep_gather_close(&gathering);
    return code;
}
