/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep top: what `seep report` says, live.
 */
#include <stdio.h>

#include "say.h"
#include "top_live.h"
#include "top_once.h"
#include "top_options.h"
#include "verbs.h"

static int show(char *const *words, size_t count,
                struct seep_top_arguments *arguments)
{
    int code = seep_knowledge_load(&arguments->knowledge);

    if (code != 0) {
        return code;
    }
    arguments->report.catalogue = arguments->knowledge.catalogue;
    arguments->report.suppressions = arguments->knowledge.suppressions;
    arguments->report.known = arguments->knowledge.known;
    return arguments->once ? seep_top_once(words, count, arguments)
                           : seep_top_live(words, count, arguments);
}

int seep_cmd_top(int argc, char **argv)
{
    struct seep_top_arguments arguments;
    int code = seep_top_options_parse(argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(seep_top_help, stdout);
    } else if (code == 0) {
        code = show(argv + arguments.first, (size_t)(argc - arguments.first),
                    &arguments);
    }
    seep_top_options_fini(&arguments);
    return code;
}
