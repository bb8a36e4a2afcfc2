/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep VERB ...: find the verb and hand over.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clean.h"
#include "nearest.h"
#include "say.h"
#include "verbs.h"

static const struct {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
#define VERB_ENTRY(name, summary) {#name, summary, seep_cmd_##name},
    SEEP_VERBS(VERB_ENTRY)
#undef VERB_ENTRY
};
#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(FILE *file)
{
    fputs("seep finds slow memory leaks: where memory grows, how fast, and\n"
          "whether it is a leak.\n\n"
          "usage: seep VERB [OPTIONS] [ARGUMENTS]\n\n",
          file);
    for (size_t i = 0; i < VERB_COUNT; i++) {
        fprintf(file, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
    }
    fputs("\n`seep help VERB` tells the options of a verb; man seep has it "
          "all.\n"
          "To begin: seep run -- python3 serve.py; where nothing is recorded: "
          "seep doctor\n",
          file);
}

static int refuse_option(const char *word)
{
    static const char *const names[] = {"--help", "--version"};
    const char *nearest = seep_nearest(word, names, 2);
    char remedy[96] = "`seep --help` lists verbs, which have options";

    if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean `seep %s`?", nearest);
    }
    seep_say(word, "is no option of seep", remedy);
    return SEEP_EXIT_USAGE;
}

static int refuse(const char *word)
{
    const char *nearest = seep_verbs_nearest(word);
    char remedy[96] = "`seep --help` lists them";

    if (*word == '-') {
        return refuse_option(word);
    }
    if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean `seep %s`?", nearest);
    }
    seep_say(word, "is no verb of seep", remedy);
    return SEEP_EXIT_USAGE;
}

static int finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        seep_say("stdout", "could not be written",
                 "look at the disk or the pipe that it goes to");
        return code == SEEP_EXIT_FINE ? SEEP_EXIT_FAILED : code;
    }
    return code;
}

/* @argv begins with the verb. */
static int run_verb(int argc, char **argv)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0) {
            return finish(verbs[i].run(argc, argv));
        }
    }
    return refuse(argv[0]);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "help") == 0;
}

/* `seep help VERB` is `seep VERB --help`. */
static int help(const char *verb)
{
    static char option[] = "--help";
    char *words[] = {(char *)verb, option, NULL};

    if (verb == NULL || is_help(verb)) {
        print_help(stdout);
        return finish(SEEP_EXIT_FINE);
    }
    return run_verb(2, words);
}

int main(int argc, char **argv)
{
    seep_clean_init();
    seep_clean_follow_locale();
    if (argc < 2) {
        print_help(stderr);
        return SEEP_EXIT_USAGE;
    }
    if (is_help(argv[1])) {
        return help(argv[2]);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("seep " SEEP_VERSION);
        return finish(SEEP_EXIT_FINE);
    }
    return run_verb(argc - 1, argv + 1);
}
