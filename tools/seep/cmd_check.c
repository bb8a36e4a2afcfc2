/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep check: recordings against limits, for CI.
 */
#include <stdio.h>

#include "check_options.h"
#include "gate.h"
#include "say.h"
#include "verbs.h"

int seep_cmd_check(int argc, char **argv)
{
    struct seep_check_arguments arguments;
    int code = seep_check_options_parse("check", argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(seep_check_help, stdout);
    } else if (code == 0 && arguments.first == argc) {
        code = seep_say_usage("check", "check", "no recording was named");
    } else if (code == 0) {
        code = seep_gate(argv + arguments.first,
                         (size_t)(argc - arguments.first), &arguments, stdout);
    }
    seep_check_options_close(&arguments);
    return code;
}
