/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of a verb, from its table. Invariant: whatever is refused was
 * reported, in one line.
 */
#include "options/option.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "words/clean.h"

/*
 * Errors. Invariant: one error is one line.
 */

/* Takes @text; NULL is one that there was no memory for.
 * @return SEEP_EXIT_USAGE */
static int say(char *text)
{
    fprintf(stderr, "%s\n", text == NULL ? "seep: not enough memory" : text);
    free(text);
    return SEEP_EXIT_USAGE;
}

void seep_say(const char *thing, const char *reason, const char *remedy)
{
    say(seep_clean_format("seep: %s: %s%s%s", *thing == '\0' ? "\"\"" : thing,
                          reason, remedy == NULL || *remedy == '\0' ? "" : "; ",
                          remedy == NULL ? "" : remedy));
}

int seep_say_usage(const char *verb, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = seep_clean_vformat(format, arguments);
    va_end(arguments);
    fprintf(stderr, "seep: %s; see `seep %s -h`\n",
            text == NULL ? "not enough memory" : text, verb);
    free(text);
    return SEEP_EXIT_USAGE;
}

int seep_say_value(const char *verb, const char *value, const char *expected)
{
    return seep_say_usage(verb, "invalid value \"%s\": expected %s", value,
                          expected);
}

int seep_say_meant(const char *kind, const char *word, const char *where,
                   const char *remedy)
{
    return say(
        seep_clean_format("seep: %s \"%s\"%s; %s", kind, word, where, remedy));
}

/*
 * Which word was meant. The distance is Levenshtein's, in one row: no word of
 * ours is longer than it.
 */

#define WORD_MAX 31

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *from, const char *to)
{
    size_t row[WORD_MAX + 1];
    size_t columns = strlen(to);

    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 0; from[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t change = diagonal + (from[i] != to[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(change, least(row[j], row[j + 1]) + 1);
        }
    }
    return row[columns];
}

const char *seep_nearest(const char *word, const char *const *names,
                         size_t count)
{
    const char *nearest = NULL;
    size_t best = 3; /* two slips of the finger, not another word */

    if (strlen(word) > WORD_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t steps = distance(word, names[i]);
        if (steps < best && steps < strlen(names[i])) {
            best = steps;
            nearest = names[i];
        }
    }
    return nearest;
}

/*
 * A wrong option, and the one that was meant.
 */

#define NAMES_MAX 64

static const char *nearest_of(const char *word, const struct option *options)
{
    const char *names[NAMES_MAX];
    size_t count = 0;

    for (; options->name != NULL && count < NAMES_MAX; options++) {
        names[count++] = options->name;
    }
    return seep_nearest(word, names, count);
}

/* "--a, --b", those that begin so. @return how many */
static size_t list_beginning(const char *beginning,
                             const struct option *options, char *text,
                             size_t size)
{
    size_t count = 0;
    size_t used = 0;

    *text = '\0';
    for (; options->name != NULL; options++) {
        if (strncmp(options->name, beginning, strlen(beginning)) == 0 &&
            used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s--%s",
                                     count == 0 ? "" : ", ", options->name);
            count++;
        }
    }
    return count;
}

/* @param found  what getopt_long() returned, '?' or ':'
 * @return SEEP_EXIT_USAGE */
static int say_option(const char *verb, int found, const char *word,
                      const struct option *options)
{
    char name[64] = "";
    char where[64];
    char remedy[256] = "did you mean ";
    size_t length = strlen(remedy);
    const char *nearest;

    if (found == ':') {
        return seep_say_usage(verb, "option \"%s\" needs a value", word);
    }
    if (strncmp(word, "--", 2) == 0) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="),
                 word + 2);
    }
    snprintf(where, sizeof(where), " of \"seep %s\"", verb);
    nearest = *name == '\0' ? NULL : nearest_of(name, options);
    if (nearest != NULL && strcmp(nearest, name) == 0) {
        return seep_say_usage(verb, "option \"--%s\" takes no value", name);
    }
    if (*name != '\0' && list_beginning(name, options, remedy + length,
                                        sizeof(remedy) - length - 1) > 1) {
        strcat(remedy, "?");
    } else if (nearest != NULL) {
        snprintf(remedy + length, sizeof(remedy) - length, "--%s?", nearest);
    } else {
        snprintf(remedy, sizeof(remedy), "see `seep %s -h`", verb);
    }
    return seep_say_meant("unknown option", word, where, remedy);
}

/* A letter may stand within a word of several, of which getopt() is not
 * through: it alone knows which one it is. A byte that is none of ASCII may be
 * a part of a letter, so that the word is shown. */
static const char *wrong_word(int found, char **argv, const char *shorts,
                              char *letter)
{
    const char *next = argv[optind];

    if (found == '?' && optopt > 0 && optopt < 128 &&
        strchr(shorts, optopt) == NULL) {
        snprintf(letter, 3, "-%c", optopt);
        return letter;
    }
    if (optopt < 0 && next != NULL && strchr(next, optopt) != NULL) {
        return next;
    }
    return argv[optind - 1];
}

/*
 * A table for getopt_long(), which parses by one of its own. The tables of
 * groups are laid out into it.
 */

#define FOUND_FIRST 256 /* above every letter */

struct flat {
    const struct seep_option *options[NAMES_MAX];
    char *targets[NAMES_MAX];
    struct option longs[NAMES_MAX + 2]; /* with help and the end */
    char shorts[2 * NAMES_MAX + 4];
    int count;
};

static bool is_end(const struct seep_option *option)
{
    return option->name == NULL && option->group == NULL;
}

static void add_letter(struct flat *flat, char letter, bool has_value)
{
    size_t length = strlen(flat->shorts);

    snprintf(flat->shorts + length, sizeof(flat->shorts) - length, "%c%s",
             letter, has_value ? ":" : "");
}

static void add_long(struct flat *flat, const char *name, bool has_value,
                     int found)
{
    flat->longs[flat->count] = (struct option){
        name, has_value ? required_argument : no_argument, NULL, found};
}

/* A table that is longer than there is room for fails the tests of its help. */
static void add_table(struct flat *flat, const struct seep_option *option,
                      char *arguments)
{
    for (; !is_end(option) && flat->count < NAMES_MAX; option++) {
        bool has_value = option->argument != NULL;

        if (option->group != NULL) {
            add_table(flat, option->group, arguments + option->offset);
            continue;
        }
        if (option->letter != '\0') {
            add_letter(flat, option->letter, has_value);
        }
        add_long(flat, option->name, has_value, FOUND_FIRST + flat->count);
        flat->options[flat->count] = option;
        flat->targets[flat->count++] = arguments + option->offset;
    }
}

/* @return the index of what getopt_long() found */
static int index_of(const struct flat *flat, int found)
{
    int index = found - FOUND_FIRST;

    if (index < 0) {
        index = 0;
        while (flat->options[index]->letter != found) {
            index++;
        }
    }
    return index;
}

int seep_options_parse(const struct seep_options *options, int argc,
                       char **argv, void *arguments)
{
    struct flat flat = {.shorts = ":"};
    char letter[3];
    bool help = false;
    int code = 0;
    int found;

    snprintf(flat.shorts, sizeof(flat.shorts), options->leads ? "+:" : ":");
    add_table(&flat, options->table, arguments);
    add_letter(&flat, 'h', false);
    add_long(&flat, "help", false, 'h');
    opterr = 0;
    optind = 0; /* another verb's may have been parsed in this process */
    while (code == 0 && (found = getopt_long(argc, argv, flat.shorts,
                                             flat.longs, NULL)) != -1) {
        if (found == 'h') {
            help = true;
            continue;
        }
        if (found == '?' || found == ':') {
            return say_option(options->verb, found,
                              wrong_word(found, argv, flat.shorts, letter),
                              flat.longs);
        }
        int i = index_of(&flat, found);
        code = flat.options[i]->take(options->verb, optarg, flat.targets[i]);
    }
    return code == 0 && help ? SEEP_OPTIONS_HELP : code;
}

/*
 * Help. Invariant: the names of an option and its text have a blank between
 * them, and the text's later lines begin in the usual column.
 */

#define COLUMN 20

static void print_option(const struct seep_option *option, int column)
{
    char letter[5] = "";
    char names[80];

    if (option->letter != '\0') {
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    }
    snprintf(names, sizeof(names), "  %s--%s%s%s", letter, option->name,
             option->argument == NULL ? "" : " ",
             option->argument == NULL ? "" : option->argument);
    printf("%-*s ", column - 1, names);
    for (const char *at = option->help; *at != '\0'; at++) {
        putchar(*at);
        if (*at == '\n') {
            printf("%*s", column, "");
        }
    }
    putchar('\n');
}

static void print_table(const struct seep_option *option, int column)
{
    for (; !is_end(option); option++) {
        if (option->group != NULL) {
            print_table(option->group, column);
        } else {
            print_option(option, column);
        }
    }
}

int seep_options_exit(const struct seep_options *options, int code)
{
    static const struct seep_option help = {
        .letter = 'h', .name = "help", .help = "this"};
    int column = options->column == 0 ? COLUMN : options->column;

    if (code != SEEP_OPTIONS_HELP) {
        return code;
    }
    printf("%s\n", options->usage);
    print_table(options->table, column);
    print_option(&help, column);
    printf("\n%s", options->exits);
    return SEEP_EXIT_FINE;
}

/*
 * What options set. Invariant: a target is untouched by what is refused.
 */

int seep_option_set(const char *verb, const char *value, void *target)
{
    (void)verb;
    (void)value;
    *(bool *)target = true;
    return 0;
}

int seep_option_clear(const char *verb, const char *value, void *target)
{
    (void)verb;
    (void)value;
    *(bool *)target = false;
    return 0;
}

int seep_option_text(const char *verb, const char *value, void *target)
{
    (void)verb;
    *(const char **)target = value;
    return 0;
}

int seep_option_number(const char *verb, const char *value, void *target)
{
    uint64_t number;
    int error = seep_size_parse_number(value, &number);

    if (error < 0 || number >= SIZE_MAX) {
        return seep_say_value(
            verb, value, error == -EINVAL ? "a number" : "a smaller number");
    }
    *(size_t *)target = (size_t)number;
    return 0;
}

int seep_option_color(const char *verb, const char *value, void *target)
{
    static const char *const names[] = {
        [SEEP_COLOR_AUTO] = "auto",
        [SEEP_COLOR_ALWAYS] = "always",
        [SEEP_COLOR_NEVER] = "never",
    };
    size_t index;
    int code = seep_option_choose(verb, value, names, 3, &index);

    if (code == 0) {
        *(enum seep_color *)target = (enum seep_color)index;
    }
    return code;
}

int seep_option_out(const char *verb, const char *value, void *target)
{
    *(const char **)target = value;
    return *value == '\0' ? seep_say_value(verb, value, "a file") : 0;
}

int seep_option_choose(const char *verb, const char *text,
                       const char *const *names, size_t count,
                       size_t *ret_index)
{
    char expected[160] = ": expected ";
    char remedy[64];
    const char *nearest = seep_nearest(text, names, count);

    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(expected);

        if (strcmp(text, names[i]) == 0) {
            *ret_index = i;
            return 0;
        }
        snprintf(expected + length, sizeof(expected) - length, "%s%s",
                 i == 0           ? ""
                 : i == count - 1 ? " or "
                                  : ", ",
                 names[i]);
    }
    if (nearest != NULL) {
        snprintf(remedy, sizeof(remedy), "did you mean %s?", nearest);
    } else {
        snprintf(remedy, sizeof(remedy), "see `seep %s -h`", verb);
    }
    return seep_say_meant("invalid value", text, expected, remedy);
}
