/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Does logrotate cut recordings? By copytruncate it truncates files that are
 * being written, and a process whose recording is cut dies by SIGBUS.
 *
 * Invariant: only what would be cut is told; nothing is read but logrotate's
 * configuration.
 */
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define CONFIGURATION_BYTES (1U << 16)
#define BLANKS " \t\r"

/** Where in a configuration we are; see logrotate.conf(5). */
struct rules {
    const char *path; /* of a recording */
    bool in_block;
    bool in_script;
    bool matches;       /* a pattern of the block is of .path */
    bool cuts;          /* copytruncate, in the block */
    bool cuts_unless;   /* the same before all blocks */
    bool cuts_its_path; /* the result */
};

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(*words, word) != 0) {
        words++;
    }
    return *words != NULL;
}

/* A pattern may be in quotes, and the brace may follow it at once. */
static void read_pattern(struct rules *rules, char *word)
{
    size_t length = strlen(word);
    bool opens = length > 0 && word[length - 1] == '{';

    if (opens) {
        word[--length] = '\0';
    }
    if (length > 1 && word[0] == '"' && word[length - 1] == '"') {
        word[length - 1] = '\0';
        word++;
    }
    rules->matches |= word[0] == '/' && fnmatch(word, rules->path,
                                                FNM_PATHNAME | FNM_PERIOD) == 0;
    if (opens) {
        rules->in_block = true;
        rules->cuts = rules->cuts_unless;
    }
}

static void read_directive(struct rules *rules, const char *word)
{
    static const char *const scripts[] = {"prerotate",   "postrotate",
                                          "firstaction", "lastaction",
                                          "preremove",   NULL};
    bool *cuts = rules->in_block ? &rules->cuts : &rules->cuts_unless;

    if (is_one_of(word, scripts)) {
        rules->in_script = true;
    } else if (strcmp(word, "copytruncate") == 0) {
        *cuts = true;
    } else if (strcmp(word, "nocopytruncate") == 0) {
        *cuts = false;
    } else if (strcmp(word, "}") == 0) {
        rules->cuts_its_path |= rules->matches && rules->cuts;
        rules->in_block = false;
        rules->matches = false;
    }
}

static void read_line(struct rules *rules, char *line)
{
    char *state = NULL;
    char *word = strtok_r(line, BLANKS, &state);

    if (word == NULL || word[0] == '#') {
        return;
    }
    if (rules->in_script) {
        rules->in_script = strcmp(word, "endscript") != 0;
    } else if (!rules->in_block && strchr("/\"{", word[0]) != NULL) {
        for (; word != NULL; word = strtok_r(NULL, BLANKS, &state)) {
            read_pattern(rules, word);
        }
    } else {
        read_directive(rules, word);
    }
}

/* One file of the configuration; what it says before all blocks is for those
 * that follow, as logrotate has it. */
static bool cuts(const struct seep_doctor_facts *facts, const char *file,
                 struct rules *rules)
{
    char *text = malloc(CONFIGURATION_BYTES);
    char *state = NULL;

    if (text != NULL &&
        seep_doctor_read(facts, file, text, CONFIGURATION_BYTES)) {
        for (char *line = strtok_r(text, "\n", &state); line != NULL;
             line = strtok_r(NULL, "\n", &state)) {
            read_line(rules, line);
        }
    }
    free(text);
    rules->in_block = false;
    rules->in_script = false;
    rules->matches = false;
    return rules->cuts_its_path;
}

static bool find_file(const struct seep_doctor_facts *facts,
                      struct rules *rules, char file[PATH_MAX])
{
    static const char folder[] = "/etc/logrotate.d";
    char path[PATH_MAX];
    bool found = false;
    const struct dirent *entry;
    DIR *entries;

    snprintf(file, PATH_MAX, "/etc/logrotate.conf");
    if (cuts(facts, file, rules)) {
        return true;
    }
    entries = opendir(seep_doctor_path(facts, folder, path));
    while (entries != NULL && !found && (entry = readdir(entries)) != NULL) {
        found = entry->d_name[0] != '.' &&
                snprintf(file, PATH_MAX, "%s/%s", folder, entry->d_name) <
                    PATH_MAX &&
                cuts(facts, file, rules);
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return found;
}

void seep_doctor_check_rotation(const struct seep_doctor_facts *facts,
                                struct seep_doctor *doctor)
{
    const char *folder = facts->folder.place.folder;
    char path[PATH_MAX];
    char file[PATH_MAX];
    struct rules rules = {.path = path};

    snprintf(path, sizeof(path), "%s/python3.1.seep", folder);
    if (find_file(facts, &rules, file)) {
        seep_doctor_find(
            doctor, "folder", SEEP_DOCTOR_WARN,
            "leave *.seep out of its pattern, or choose another folder with -o",
            "%s cuts what lies in %s (copytruncate): a process whose recording is cut while it is written dies by SIGBUS",
            file, folder);
    }
}
