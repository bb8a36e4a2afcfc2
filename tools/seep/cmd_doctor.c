/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep doctor: what works here, what does not, and what to do.
 */
#include <stdbool.h>
#include <stdio.h>

#include "doctor.h"
#include "option.h"
#include "page.h"
#include "say.h"
#include "verbs.h"

static const char help[] =
    "usage: seep doctor [OPTIONS] [-- COMMAND [ARGUMENTS]]\n\n"
    "Say what works here and what does not: a child is recorded and its\n"
    "recording read back, each Python of PATH is tried, and the folder,\n"
    "limits, container, allocator, CUDA driver and debug information are\n"
    "looked at. COMMAND is not run: its file tells if it can be recorded.\n\n"
    "  -o, --out PATTERN where recordings would go, as for `seep run`\n"
    "  --json            one JSON document (schema seep-doctor/1)\n"
    "  --color WHEN      auto, always or never\n"
    "  -h, --help        this\n\n"
    "exit status: 0 it works, perhaps with limits; 3 something essential does\n"
    "not, or COMMAND cannot be recorded; 1 the tool failed, 2 wrong usage\n";

enum { JSON = 256, COLOR };

static const struct option options[] = {
    {"out", required_argument, NULL, 'o'},
    {"json", no_argument, NULL, JSON},
    {"color", required_argument, NULL, COLOR},
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct arguments {
    bool help;
    bool json;
    enum seep_color color;
    struct seep_doctor_options doctor;
};

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int option;

    while ((option = seep_option_next("doctor", argc, argv, "+:o:h",
                                      options)) != -1) {
        switch (option) {
        case 'h':
            arguments->help = true;
            return 0;
        case JSON:
            arguments->json = true;
            break;
        case 'o':
            arguments->doctor.out = optarg;
            if (*optarg == '\0') {
                return seep_say_usage("doctor", "-o", "names no file");
            }
            break;
        case COLOR:
            if (seep_option_color("doctor", optarg, &arguments->color) != 0) {
                return SEEP_EXIT_USAGE;
            }
            break;
        default:
            return SEEP_EXIT_USAGE;
        }
    }
    arguments->doctor.command = optind < argc ? argv + optind : NULL;
    return 0;
}

static int print(const struct arguments *arguments,
                 const struct seep_doctor_facts *facts,
                 const struct seep_doctor *doctor)
{
    struct seep_page page;

    if (arguments->json) {
        return seep_view_doctor_json(stdout, facts, doctor);
    }
    seep_page_init(&page, stdout, arguments->color);
    seep_view_doctor(&page, facts, doctor);
    return 0;
}

int seep_cmd_doctor(int argc, char **argv)
{
    static struct seep_doctor_facts facts; /* large: paths of many Pythons */
    struct arguments arguments = {.color = SEEP_COLOR_AUTO};
    struct seep_doctor doctor = {0};
    int code = parse(argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(help, stdout);
        return SEEP_EXIT_FINE;
    }
    if (code == 0) {
        code = seep_doctor_facts_take(&arguments.doctor, &facts);
    }
    if (code != 0) {
        return code;
    }
    seep_doctor_check(&facts, &doctor);
    code = seep_doctor_count(&doctor, SEEP_DOCTOR_NO) > 0 ? SEEP_EXIT_OVER_LIMIT
                                                          : SEEP_EXIT_FINE;
    if (print(&arguments, &facts, &doctor) < 0 || doctor.failed) {
        seep_say("doctor", "could not tell all of it",
                 "look at the disk, the pipe or the memory");
        code = SEEP_EXIT_FAILED;
    }
    seep_doctor_close(&doctor);
    seep_doctor_facts_close(&facts);
    return code;
}
