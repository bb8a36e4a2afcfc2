/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The options of every verb are taken through here, so that what is wrong
 * with one is said alike by all, with the one that was meant.
 */
#ifndef SEEP_TOOL_OPTIONS_OPTION_H
#define SEEP_TOOL_OPTIONS_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "verbs.h"

enum seep_color { SEEP_COLOR_AUTO, SEEP_COLOR_ALWAYS, SEEP_COLOR_NEVER };

/*
 * Which of some words was meant by one that is none of them.
 */

/** The one of @names that is nearest to @word, or NULL if none is near. */
const char *seep_nearest(const char *word, const char *const *names,
                         size_t count);

/*
 * The options of a verb are one table: what the command line is parsed by, and
 * what -h prints. Completion in a shell asks for that, and tests hold the
 * manual to it.
 */

/**
 * Takes @value, NULL for an option that has none, into @target.
 *
 * @return 0, or the exit code after saying what is wrong
 */
typedef int seep_option_taker(const char *verb, const char *value,
                              void *target);

struct seep_option {
    const char *name;     /* after -- */
    const char *argument; /* what help calls its value; NULL: it takes none */
    seep_option_taker *take;
    size_t offset;                   /* of the target in the verb's arguments */
    const char *help;                /* lines, the last without its end */
    char letter;                     /* after -; 0: none */
    const struct seep_option *group; /* a table of several verbs stands here;
                                        its targets begin at .offset */
};

#define SEEP_OPTION(name, argument, take, offset, help) \
    {                                                   \
        name, argument, take, offset, help, '\0', NULL  \
    }

#define SEEP_OPTION_OUT(offset, help)                              \
    {                                                              \
        "out", "PATTERN", seep_option_out, offset, help, 'o', NULL \
    }

/** All have -h, --help as the last. */
struct seep_options {
    const char *verb;
    const char *usage;               /* above the options */
    const char *exits;               /* and below */
    const struct seep_option *table; /* ends with {0} */
    int column; /* where the texts of help begin; 0: the usual one */
    bool leads; /* a command follows, with options of its own */
};

/** The command line asks for help, and nothing in it is wrong. */
#define SEEP_OPTIONS_HELP (-1)

/**
 * Each option of @argv into @arguments; optind is behind them.
 *
 * @return 0; SEEP_OPTIONS_HELP; the exit code after saying what is wrong
 */
int seep_options_parse(const struct seep_options *options, int argc,
                       char **argv, void *arguments);

/** The exit code of a verb that came to @code; help is printed here. */
int seep_options_exit(const struct seep_options *options, int code);

/** bool: true */
seep_option_taker seep_option_set;
/** bool: false */
seep_option_taker seep_option_clear;
/** const char * */
seep_option_taker seep_option_text;
/** size_t, below SIZE_MAX, which may so stand for "none was given" */
seep_option_taker seep_option_number;
/** enum seep_color: auto, always or never */
seep_option_taker seep_option_color;
/** const char *: -o, a pattern that recordings are named by */
seep_option_taker seep_option_out;

/**
 * Which of @names is @text, the value of an option.
 *
 * @return 0; SEEP_EXIT_USAGE after naming them all, and the one that was meant
 */
int seep_option_choose(const char *verb, const char *text,
                       const char *const *names, size_t count,
                       size_t *ret_index);

/*
 * Errors: one line on stderr, the thing, the reason and what to do. Foreign
 * strings in it are cleaned.
 */

/** "seep: THING: REASON; REMEDY"; @remedy may be NULL. */
void seep_say(const char *thing, const char *reason, const char *remedy);

/** "seep: REASON; see `seep VERB -h`"; @return SEEP_EXIT_USAGE */
__attribute__((format(printf, 2, 3))) int
seep_say_usage(const char *verb, const char *format, ...);

/** The same for a value: "invalid value "foo": expected EXPECTED". */
int seep_say_value(const char *verb, const char *value, const char *expected);

/** "seep: KIND "WORD"WHERE; REMEDY"; @return SEEP_EXIT_USAGE */
int seep_say_meant(const char *kind, const char *word, const char *where,
                   const char *remedy);

#endif
