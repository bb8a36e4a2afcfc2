/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep doctor: what works here, what does not, and what to do.
 */
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "options/option.h"
#include "text/page.h"
#include "verbs.h"

struct arguments {
    bool json;
    enum seep_color color;
    const char *out;
};

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION_OUT(AT(out), "where recordings would go, as for `seep run`"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-doctor/1)"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "doctor",
    .leads = true,
    .usage =
        "usage: seep doctor [OPTIONS] [-- COMMAND [ARGUMENTS]]\n\n"
        "Report what works here and what does not: record a child and read its\n"
        "recording back, try each Python in PATH, and check the folder, limits,\n"
        "container, allocator, CUDA driver and debug information. COMMAND is not\n"
        "run: its file shows whether it can be recorded. Where it is Python or a\n"
        "script of it, that Python is tried and no other.\n",
    .table = table,
    .exits =
        "exit status: 0 it works, perhaps with limits; 3 something essential does\n"
        "not, or COMMAND cannot be recorded; 1 the tool failed, 2 wrong usage\n",
};

static int print(const struct arguments *arguments,
                 const struct seep_doctor_facts *facts,
                 const struct seep_doctor *doctor)
{
    struct seep_page page;

    if (arguments->json) {
        return seep_doctor_print_json(stdout, facts, doctor);
    }
    seep_page_init(&page, stdout, arguments->color);
    seep_doctor_print(&page, facts, doctor);
    return 0;
}

int seep_cmd_doctor(int argc, char **argv)
{
    static struct seep_doctor_facts facts; /* large: paths of many Pythons */
    struct arguments arguments = {.color = SEEP_COLOR_AUTO};
    struct seep_doctor doctor = {0};
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code == 0) {
        code = seep_doctor_facts_take(
            arguments.out, optind < argc ? argv + optind : NULL, &facts);
    }
    if (code != 0) {
        return seep_options_exit(&options, code);
    }
    seep_doctor_check(&facts, &doctor);
    code = seep_doctor_count(&doctor, SEEP_DOCTOR_NO) > 0 ? SEEP_EXIT_OVER_LIMIT
                                                          : SEEP_EXIT_FINE;
    if (print(&arguments, &facts, &doctor) < 0 || doctor.failed) {
        seep_say("doctor", "could not print everything",
                 "check the disk, the pipe and memory");
        code = SEEP_EXIT_FAILED;
    }
    seep_doctor_close(&doctor);
    seep_doctor_facts_close(&facts);
    return code;
}
