/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep pack: recordings with their names in one file, to be read anywhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/option.h"
#include "pack/pack.h"
#include "read/gather.h"
#include "reader/recording/pack.h"
#include "verbs.h"
#include "words/clean.h"
#include "words/units.h"
#include "words/words.h"

struct arguments {
    const char *out;
    bool replace;
    struct seep_pack_options pack;
};

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    {"out", "FILE", seep_option_text, AT(out),
     "the pack; else RECORDING.seeppack or DIR.seeppack", 'o', NULL},
    SEEP_OPTION("replace", NULL, seep_option_set, AT(replace),
                "a file that is there already is replaced"),
    SEEP_OPTION("redact", NULL, seep_option_set, AT(pack.redact),
                "without folders, arguments, hosts, values of labels,\n"
                "marks and names of threads"),
    SEEP_OPTION("source", NULL, seep_option_set, AT(pack.source),
                "with the lines of source that stacks name"),
    SEEP_OPTION("debuginfod", NULL, seep_option_set,
                AT(pack.symbols.use_debuginfod),
                "ask the servers of DEBUGINFOD_URLS for debug files"),
    SEEP_OPTION("debug-dir", "DIR", seep_option_text,
                AT(pack.symbols.debug_folder),
                "look for debug files under DIR first"),
    SEEP_OPTION("sysroot", "DIR", seep_option_text, AT(pack.symbols.sysroot),
                "look for programs and libraries under DIR"),
    {0},
};

static const struct seep_options options = {
    .verb = "pack",
    .usage =
        "usage: seep pack [OPTIONS] RECORDING|DIR...\n\n"
        "Write recordings with the names of their functions, files and lines into\n"
        "one compressed file. Every verb that reads a recording reads it, and says\n"
        "the same where neither the programs nor their libraries are. A pack of a\n"
        "folder, or of several recordings, is read as a folder is: PACK/NAME is\n"
        "one of them.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be packed, 2 wrong usage\n",
};

static void refuse(const char *path, const struct seep_refusal *refusal)
{
    seep_say(path, refusal->reason, refusal->remedy);
}

static void leave_out(const char *path, const char *suffix, int error)
{
    char *file;

    if (asprintf(&file, "%s%s", path, suffix) >= 0) {
        seep_say(file, seep_words_beside(error),
                 "the pack has its recording without it");
        free(file);
    }
}

/* All that @paths mean. @return the exit code */
static int list(char *const *paths, size_t count, struct seep_open_list *all)
{
    int code = SEEP_EXIT_FINE;

    for (size_t i = 0; i < count; i++) {
        struct seep_refusal refusal = {0};
        char **found;
        int error;

        if (seep_report_is_beside(paths, count, i)) {
            continue;
        }
        error = seep_report_list(paths[i], &refusal, &found);
        if (error != 0) {
            refuse(paths[i], &refusal);
            code = SEEP_EXIT_FAILED;
            continue;
        }
        for (char **path = found; error == 0 && *path != NULL; path++) {
            error = seep_open_list_add(all, strdup(*path));
        }
        seep_report_list_free(found);
        if (error != 0) {
            seep_say(paths[i], strerror(-error), NULL);
            return SEEP_EXIT_FAILED;
        }
    }
    return code;
}

/* "x.seeppack" of "x.seep" and of the folder "x/". */
static char *default_name(const char *path)
{
    size_t length = strlen(path);
    char *name = NULL;

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    if (length > 5 && memcmp(path + length - 5, ".seep", 5) == 0) {
        length -= 5;
    }
    return asprintf(&name, "%.*s" SEEP_PACK_SUFFIX, (int)length, path) < 0
               ? NULL
               : name;
}

static void say_outcome(const char *out,
                        const struct seep_pack_outcome *outcome)
{
    const char *packed = SEEP_UNITS_BYTES((double)outcome->pack_bytes);
    const char *plain = SEEP_UNITS_BYTES((double)outcome->recording_bytes);
    char *quoted = seep_words_quote(out);

    char *made = seep_clean_format(
        "%s: %zu recording%s, %s of %s", out, outcome->packed_count,
        outcome->packed_count == 1 ? "" : "s", packed, plain);
    char *next = seep_clean_format("next: seep report %s",
                                   quoted != NULL ? quoted : out);

    puts(made != NULL ? made : "");
    puts(next != NULL ? next : "");
    free(made);
    free(next);
    free(quoted);
}

/* What is there may be replaced if it is a file: a device or a FIFO that gave
 * way to one would be missed. */
static bool may_replace(const char *out)
{
    struct stat status;

    return lstat(out, &status) != 0 || S_ISREG(status.st_mode) ||
           S_ISLNK(status.st_mode);
}

/* Beside it first, so that what is there stays until the other is whole. */
static int write_pack(const char *out, const struct seep_open_list *all,
                      const struct arguments *arguments)
{
    struct seep_pack_outcome outcome;
    char *beside = NULL;
    int error;

    if (arguments->replace && !may_replace(out)) {
        seep_say(out, "is not a file", "give the name of one with -o");
        return SEEP_EXIT_FAILED;
    }
    if (asprintf(&beside, "%s.%d", out, (int)getpid()) < 0) {
        beside = NULL;
    }
    error = beside == NULL
                ? -ENOMEM
                : seep_pack_write(arguments->replace ? beside : out, all->paths,
                                  all->count, &arguments->pack, &outcome);
    if (error == 0 && arguments->replace && rename(beside, out) != 0) {
        error = -errno;
        unlink(beside);
    }
    free(beside);
    if (error == -ENOENT && outcome.refused_count > 0) {
        return SEEP_EXIT_FAILED; /* said already */
    }
    if (error != 0) {
        seep_say(out, error == -EEXIST ? "exists already" : strerror(-error),
                 error == -EEXIST ? "give another -o, or --replace"
                                  : "nothing was written");
        return SEEP_EXIT_FAILED;
    }
    say_outcome(out, &outcome);
    return outcome.refused_count + outcome.left_out_count > 0 ? SEEP_EXIT_FAILED
                                                              : SEEP_EXIT_FINE;
}

static int pack(char *const *paths, size_t count, struct arguments *arguments)
{
    struct seep_open_list all = {.paths = NULL};
    char *made = arguments->out == NULL ? default_name(paths[0]) : NULL;
    const char *out = arguments->out != NULL ? arguments->out : made;
    int code = list(paths, count, &all);
    int written = SEEP_EXIT_FAILED;

    arguments->pack.is_folder = all.count != 1 || seep_open_is_folder(paths[0]);
    arguments->pack.nameless = seep_gather_say_nameless;
    arguments->pack.refused = refuse;
    arguments->pack.left_out = leave_out;
    if (out == NULL) {
        seep_say(paths[0], strerror(ENOMEM), NULL);
    } else if (all.count > 0) {
        written = write_pack(out, &all, arguments);
    }
    seep_report_list_free(all.paths);
    free(made);
    return code != SEEP_EXIT_FINE ? code : written;
}

int seep_cmd_pack(int argc, char **argv)
{
    struct arguments arguments = {.out = NULL};
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code == 0) {
        code = arguments.pack.source && arguments.pack.redact
                   ? seep_say_usage("pack",
                                    "--source cannot be combined with --redact")
               : optind < argc
                   ? pack(argv + optind, (size_t)(argc - optind), &arguments)
                   : seep_say_usage("pack", "no recording given");
    }
    return seep_options_exit(&options, code);
}
