/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep env: the variables that `seep run` would set, for those who give only
 * an environment: containers, Kubernetes, Triton, Ray.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options/option.h"
#include "run/launch.h"
#include "verbs.h"
#include "json/json.h"

enum format { FORMAT_SHELL, FORMAT_DOCKER, FORMAT_K8S };

struct arguments {
    enum format format;
    bool has_format;
    bool json;
    struct seep_launch_options launch;
};

static int take_format(const char *verb, const char *value, void *target)
{
    static const char *const names[] = {"shell", "docker", "k8s"};
    struct arguments *arguments = target;
    size_t index = 0;
    int code = seep_option_choose(verb, value, names,
                                  sizeof(names) / sizeof(names[0]), &index);

    arguments->format = (enum format)index;
    arguments->has_format = true;
    return code;
}

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION_OUT(AT(launch.out),
                    "where recordings go, a folder or a pattern"),
    SEEP_OPTION("format", "NAME", take_format, 0,
                "shell (default), docker (--env-file) or k8s (env:)"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-env/1)"),
    {.group = seep_launch_options, .offset = AT(launch)},
    {0},
};

static const struct seep_options options = {
    .verb = "env",
    .usage =
        "usage: seep env [OPTIONS]\n\n"
        "Print the variables that make a process record itself. In a shell:\n"
        "  eval \"$(seep env -o /data/)\"\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 libseep.so or an allocator was not found, 2 wrong\n"
        "usage\n",
};

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
    int code = seep_options_parse(&options, argc, argv, arguments);

    if (code == 0 && optind < argc) {
        return seep_say_usage("env", "unexpected argument \"%s\"",
                              argv[optind]);
    }
    if (code == 0 && arguments->json && arguments->has_format) {
        return seep_say_usage("env", "--format cannot be combined with --json");
    }
    return code;
}

int seep_cmd_env(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct seep_launch launch;
    int code = parse(argc, argv, &arguments);

    if (code == 0) {
        code = seep_launch_prepare(&arguments.launch, &launch);
    }
    if (code != 0) {
        return seep_options_exit(&options, code);
    }
    if (!arguments.json) {
        print_text(&launch, arguments.format);
    } else if (print_json(&launch) != 0) {
        code = SEEP_EXIT_FAILED;
    }
    seep_launch_close(&launch);
    return code;
}
