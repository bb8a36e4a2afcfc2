/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep env: the variables that `seep run` would set, for those who give only
 * an environment: containers, Kubernetes, Triton, Ray.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "launch.h"
#include "say.h"
#include "verbs.h"

static const char help[] =
    "usage: seep env [OPTIONS]\n\n"
    "Print the variables that make a process record itself. In a shell:\n"
    "  eval \"$(seep env -o /data/)\"\n\n"
    "  -o, --out PATTERN where recordings go, a folder or a pattern\n"
    "  --format NAME     shell (default), docker (--env-file), k8s "
    "(env:)\n" SEEP_LAUNCH_HELP "  -h, --help        this\n";

enum { FORMAT = 256 };
enum format { FORMAT_SHELL, FORMAT_DOCKER, FORMAT_K8S };

static const struct option options[] = {
    {"out", required_argument, NULL, SEEP_LAUNCH_OUT},
    {"format", required_argument, NULL, FORMAT},
    SEEP_LAUNCH_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_format(const char *text, enum format *ret_format)
{
    static const char *const names[] = {"shell", "docker", "k8s"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_format = (enum format)i;
            return 0;
        }
    }
    return seep_say_usage("env", text, "is none of shell, docker, k8s");
}

/* Between quotes in which only the quote itself means something: sh ends and
 * begins again, YAML doubles it. */
static void print_quoted(const char *value, const char *quote_text)
{
    putchar('\'');
    for (; *value != '\0'; value++) {
        if (*value == '\'') {
            fputs(quote_text, stdout);
        } else {
            putchar(*value);
        }
    }
    putchar('\'');
}

static void print_variable(const char *name, const char *value,
                           enum format format)
{
    switch (format) {
    case FORMAT_SHELL:
        printf("export %s=", name);
        print_quoted(value, "'\\''");
        /* what stands there when the line is run comes behind ours */
        fputs(strcmp(name, "LD_PRELOAD") == 0
                  ? "\"${LD_PRELOAD:+:$LD_PRELOAD}\""
                  : "",
              stdout);
        break;
    case FORMAT_DOCKER:
        printf("%s=%s", name, value);
        break;
    case FORMAT_K8S:
        printf("- name: %s\n  value: ", name);
        print_quoted(value, "''");
        break;
    }
    putchar('\n');
}

int seep_cmd_env(int argc, char **argv)
{
    struct seep_launch_options launch_options = {.verb = "env"};
    struct seep_launch launch;
    enum format format = FORMAT_SHELL;
    int option;

    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return SEEP_EXIT_FINE;
        }
        int code = option == FORMAT
                       ? parse_format(optarg, &format)
                       : seep_launch_take(option, optarg, &launch_options);
        if (code != 0) {
            return code;
        }
    }
    if (optind < argc) {
        return seep_say_usage("env", argv[optind], "is not expected here");
    }
    int code = seep_launch_prepare(&launch_options, &launch);
    if (code != 0) {
        return code;
    }
    print_variable("LD_PRELOAD", launch.preload, format);
    for (size_t i = 0; i < launch.count; i++) {
        print_variable(launch.variables[i].name, launch.variables[i].value,
                       format);
    }
    seep_launch_close(&launch);
    return SEEP_EXIT_FINE;
}
