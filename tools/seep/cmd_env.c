/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep env: the variables that `seep run` would set, for those who give only
 * an environment: containers, Kubernetes, Triton, Ray.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "json_out.h"
#include "launch.h"
#include "option.h"
#include "say.h"
#include "verbs.h"

static const char help[] =
    "usage: seep env [OPTIONS]\n\n"
    "Print the variables that make a process record itself. In a shell:\n"
    "  eval \"$(seep env -o /data/)\"\n\n"
    "  -o, --out PATTERN where recordings go, a folder or a pattern\n"
    "  --format NAME     shell (default), docker (--env-file) or k8s (env:)\n"
    "  --json            one JSON document (schema "
    "seep-env/1)\n" SEEP_LAUNCH_HELP "  -h, --help        this\n\n"
    "exit status: 0 fine, 1 libseep.so or an allocator was not found, 2 wrong\n"
    "usage\n";

enum { FORMAT = 256, JSON };
enum format { FORMAT_SHELL, FORMAT_DOCKER, FORMAT_K8S };

static const struct option options[] = {
    {"out", required_argument, NULL, SEEP_LAUNCH_OUT},
    {"format", required_argument, NULL, FORMAT},
    {"json", no_argument, NULL, JSON},
    SEEP_LAUNCH_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct arguments {
    enum format format;
    bool has_format;
    bool json;
    bool help;
    struct seep_launch_options launch;
};

static int take_format(const char *text, struct arguments *arguments)
{
    static const char *const names[] = {"shell", "docker", "k8s"};
    size_t index = 0;
    int code = seep_option_choose("env", text, names,
                                  sizeof(names) / sizeof(names[0]), &index);

    arguments->format = (enum format)index;
    arguments->has_format = true;
    return code;
}

static int take_option(int option, struct arguments *arguments)
{
    switch (option) {
    case FORMAT:
        return take_format(optarg, arguments);
    case JSON:
        arguments->json = true;
        return 0;
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return seep_launch_take(option, optarg, &arguments->launch);
    }
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

static void print_text(const struct seep_launch *launch, enum format format)
{
    print_variable("LD_PRELOAD", launch->preload, format);
    for (size_t i = 0; i < launch->count; i++) {
        print_variable(launch->variables[i].name, launch->variables[i].value,
                       format);
    }
}

/* @return 0, or an error of the stream or of memory */
static int print_json(const struct seep_launch *launch)
{
    struct seep_json_out out = {.file = stdout};
    json_t *variables = json_object();
    int failed = json_object_set_new(variables, "LD_PRELOAD",
                                     json_string(launch->preload));

    for (size_t i = 0; i < launch->count; i++) {
        failed |= json_object_set_new(variables, launch->variables[i].name,
                                      json_string(launch->variables[i].value));
    }
    if (failed != 0) {
        json_decref(variables);
        return failed;
    }
    seep_json_out_value(&out, json_pack("{s:s, s:o}", "schema", "seep-env/1",
                                        "variables", variables));
    return seep_json_out_finish(&out);
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int option;
    int code = 0;

    while (code == 0 && (option = seep_option_next("env", argc, argv, ":o:h",
                                                   options)) != -1) {
        code = option == SEEP_OPTION_WRONG ? SEEP_EXIT_USAGE
                                           : take_option(option, arguments);
    }
    if (code == 0 && optind < argc) {
        return seep_say_usage("env", argv[optind], "is not expected here");
    }
    if (code == 0 && arguments->json && arguments->has_format) {
        return seep_say_usage("env", "--format",
                              "prints text, and --json a document");
    }
    return code;
}

int seep_cmd_env(int argc, char **argv)
{
    struct arguments arguments = {.launch.verb = "env"};
    struct seep_launch launch;
    int code = parse(argc, argv, &arguments);

    if (code == 0 && arguments.help) {
        fputs(help, stdout);
        return SEEP_EXIT_FINE;
    }
    if (code == 0) {
        code = seep_launch_prepare(&arguments.launch, &launch);
    }
    if (code != 0) {
        return code;
    }
    if (!arguments.json) {
        print_text(&launch, arguments.format);
    } else if (print_json(&launch) != 0) {
        code = SEEP_EXIT_FAILED;
    }
    seep_launch_close(&launch);
    return code;
}
