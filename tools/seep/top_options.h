/* SPDX-License-Identifier: LGPL-2.1-or-later */
/** What the command line of `seep top` asks for. */
#ifndef SEEP_TOOL_TOP_OPTIONS_H
#define SEEP_TOOL_TOP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "knowledge.h"
#include "page.h"
#include "reader/report.h"
#include "top_model.h"

struct seep_top_arguments {
    bool help;
    bool once;
    bool json;
    double interval_s;
    size_t row_limit; /* of --once; 0: all */
    enum seep_top_sort sort;
    const char *filter; /* "": none */
    enum seep_color color;
    struct seep_report_options report;
    struct seep_knowledge knowledge;
    int first; /* of the words that are no options */
};

extern const char seep_top_help[];

/** @return 0, or the exit code after saying what is wrong. Fini in any case. */
int seep_top_options_parse(int argc, char **argv,
                           struct seep_top_arguments *ret_arguments);
void seep_top_options_fini(struct seep_top_arguments *arguments);

#endif
