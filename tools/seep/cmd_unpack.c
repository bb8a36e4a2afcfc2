/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep unpack: the plain recordings of a pack, and its names as JSON.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/option.h"
#include "pack/pack.h"
#include "verbs.h"
#include "words/clean.h"

struct arguments {
    const char *folder;
    bool replace;
};

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    {"out", "FOLDER", seep_option_text, AT(folder),
     "where to; it is made if need be; else here", 'o', NULL},
    SEEP_OPTION("replace", NULL, seep_option_set, AT(replace),
                "files that are there already are replaced"),
    {0},
};

static const struct seep_options options = {
    .verb = "unpack",
    .usage =
        "usage: seep unpack [OPTIONS] PACK...\n\n"
        "Write the recordings of a pack as they were, beside them what was seen from\n"
        "outside (NAME.looks, NAME.held), and the names that were found when they\n"
        "were packed (PACK.names.jsonl, a line an address). A plain recording is\n"
        "judged where it is read: give a pack to who has not the programs.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 something could not be unpacked, 2 wrong usage\n",
};

static void say_path(const char *path)
{
    char *shown = seep_clean_for_terminal(path);

    puts(shown != NULL ? shown : "");
    free(shown);
}

static int unpack(const char *path, const struct arguments *arguments)
{
    struct seep_refusal refusal = {0};
    char *failed = NULL;
    int error = seep_pack_unpack(path, arguments->folder, arguments->replace,
                                 say_path, &failed, &refusal);

    if (error != 0 && refusal.reason[0] != '\0') {
        seep_say(path, refusal.reason, refusal.remedy);
    } else if (error != 0) {
        seep_say(failed != NULL ? failed : path,
                 error == -EEXIST ? "exists already" : strerror(-error),
                 error == -EEXIST ? "give another folder (-o), or --replace"
                                  : "check the folder that it goes into");
    }
    free(failed);
    return error != 0 ? SEEP_EXIT_FAILED : SEEP_EXIT_FINE;
}

static int unpack_all(char *const *paths, size_t count,
                      const struct arguments *arguments)
{
    const char *folder = arguments->folder;
    int code = SEEP_EXIT_FINE;

    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        seep_say(folder, strerror(errno), "give a folder that can be made");
        return SEEP_EXIT_FAILED;
    }
    for (size_t i = 0; i < count; i++) {
        code |= unpack(paths[i], arguments);
    }
    return code;
}

int seep_cmd_unpack(int argc, char **argv)
{
    struct arguments arguments = {.folder = "."};
    int code = seep_options_parse(&options, argc, argv, &arguments);

    if (code == 0) {
        code = optind < argc ? unpack_all(argv + optind,
                                          (size_t)(argc - optind), &arguments)
                             : seep_say_usage("unpack", "no pack given");
    }
    return seep_options_exit(&options, code);
}
