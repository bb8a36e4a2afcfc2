/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the recorder would not understand. Invariant: what is
 * said not to be understood is none that it takes: names are those of
 * base/variables.h, sizes are read by its parser.
 */
#include "options/variables.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/place.h"
#include "base/text.h"
#include "base/variables.h"
#include "format/layout.h"
#include "options/option.h"
#include "words/units.h"

/*
 * Why nothing can be recorded in a place. Invariant: nothing
 * is made there, and a reason is given only where the system showed it.
 */

#define PUT(field, ...) snprintf(field, sizeof(field), __VA_ARGS__)

/* The mean that the recorder takes. */
static unsigned sample_log2(void)
{
    const char *sample = getenv("SEEP_SAMPLE");
    unsigned log2 = SEEP_LAYOUT_PACED;
    uint64_t bytes;

    if (sample != NULL && seep_size_parse(sample, &bytes) == 0) {
        seep_size_mean_log2(bytes, &log2);
    }
    return log2;
}

/* As the recorder chooses it (preload/identity.c), of a program without an
 * interpreter. */
uint64_t seep_why_recording_bytes(enum seep_own_limit *ret_lacking)
{
    const struct seep_own_limits limits = seep_place_limits();
    const char *size = getenv("SEEP_SIZE");
    struct seep_own_wish wish = {.table_bytes = SEEP_OWN_TABLES_BYTES};
    uint64_t bytes;

    if (size != NULL && seep_size_parse(size, &bytes) == 0 &&
        bytes >= SEEP_LAYOUT_LEAST_BYTES && bytes <= SEEP_LAYOUT_MOST_BYTES) {
        wish.least_bytes = bytes;
    } else {
        bytes = seep_layout_default_bytes(sample_log2());
        wish.least_bytes = SEEP_LAYOUT_LEAST_BYTES;
        if (bytes == SEEP_LAYOUT_DENSE_BYTES && seep_place_is_tight(bytes)) {
            bytes = SEEP_LAYOUT_DEFAULT_BYTES;
        }
    }
    wish.bytes = bytes;
    bytes = seep_own_fit(&limits, &wish, ret_lacking);
    return bytes != 0 ? bytes : wish.least_bytes;
}

uint64_t seep_why_first_bytes(void)
{
    struct seep_rec_header header = {0};
    enum seep_own_limit lacking;

    return seep_layout_make(seep_why_recording_bytes(&lacking),
                            sample_log2() == 0, false, &header) < 0
               ? 0
               : seep_layout_start_bytes(&header);
}

/* @fallback  where a pattern that is not absolute goes, too; may be NULL */
static void look(const char *out, const char *fallback,
                 struct seep_place_found *ret_place)
{
    const char *any = getenv("SEEP_OUT_ANY");
    const char *floor = getenv("SEEP_FLOOR");
    enum seep_own_limit lacking;
    struct seep_place_terms terms = {
        .size_bytes = seep_why_first_bytes(),
        .file_bytes = seep_why_recording_bytes(&lacking),
        .fallback_folder = fallback,
        .any_filesystem = any != NULL && strcmp(any, "1") == 0,
    };

    if (floor != NULL) {
        seep_place_floor_parse(floor, &seep_place_floor);
    }
    seep_place_look(out, &terms, ret_place);
}

void seep_why_look(const char *out, struct seep_place_found *ret_place)
{
    const char *folder = getenv("TMPDIR");

    look(out, folder != NULL && *folder == '/' ? folder : "/tmp", ret_place);
}

/* With what is free and what is to stay so, where that is the reason. */
static void add_room(const struct seep_place_found *place, struct seep_why *why)
{
    size_t length = strlen(why->reason);
    size_t size = sizeof(why->reason) - length;

    const char *left = SEEP_UNITS_BYTES((double)place->free_bytes);
    const char *floor = SEEP_UNITS_BYTES((double)place->floor_bytes);
    if (place->reason == SEEP_PLACE_FULL) {
        snprintf(why->reason + length, size, " (%s free)", left);
    } else if (place->reason == SEEP_PLACE_FLOOR) {
        snprintf(why->reason + length, size, " (%s free, %s must stay free)",
                 left, floor);
    }
}

bool seep_why_place(const struct seep_place_found *place,
                    struct seep_why *ret_why)
{
    if (place->reason == SEEP_PLACE_FINE) {
        return false;
    }
    ret_why->is_place = true;
    PUT(ret_why->thing, "%s", place->folder);
    PUT(ret_why->reason, "%s", seep_place_words(place->reason));
    add_room(place, ret_why);
    PUT(ret_why->remedy, "%s", seep_place_remedy(place->reason));
    return true;
}

/* Who reads may do so from a mount that is read-only, without a right to
 * write, and with other limits than the recorder has. */
static bool holds_for_all(enum seep_place_reason reason)
{
    return reason == SEEP_PLACE_FULL || reason == SEEP_PLACE_FLOOR ||
           reason == SEEP_PLACE_UNSAFE_SYSTEM ||
           reason == SEEP_PLACE_NO_RESERVE;
}

static bool is_elsewhere(const char *folder, const char *path)
{
    struct stat wanted;
    struct stat given;

    return stat(folder, &wanted) == 0 &&
           (stat(path, &given) < 0 || wanted.st_dev != given.st_dev ||
            wanted.st_ino != given.st_ino);
}

/* It may be another user who records, and a mount that lets it. */
static void hint_at_user(const struct seep_place_found *place,
                         struct seep_refusal *refusal)
{
    if (place->reason != SEEP_PLACE_FORBIDDEN &&
        place->reason != SEEP_PLACE_READ_ONLY) {
        return;
    }
    PUT(refusal->reason, "contains no recordings, and here %s",
        seep_place_words(place->reason));
    PUT(refusal->remedy,
        "run `seep doctor` where the process runs, as its user");
}

/* Whoever asks with the variables of the process has them say where to look. */
static bool point_elsewhere(const char *path, struct seep_refusal *refusal)
{
    const char *out = getenv("SEEP_OUT");
    char folder[SEEP_PLACE_PATH_BYTES];

    if (out == NULL || *out != '/' ||
        !seep_place_folder(out, folder, sizeof(folder)) ||
        !is_elsewhere(folder, path)) {
        return false;
    }
    PUT(refusal->remedy, "SEEP_OUT is %.128s here: give that", folder);
    return true;
}

void seep_why_refine(const char *path, struct seep_refusal *refusal)
{
    struct seep_place_found place;
    struct seep_why why;

    if (refusal->error != -ENOENT) {
        return;
    }
    look(path, NULL, &place);
    if (!holds_for_all(place.reason) || !seep_why_place(&place, &why)) {
        if (!point_elsewhere(path, refusal)) {
            hint_at_user(&place, refusal);
        }
        return;
    }
    PUT(refusal->reason, "contains no recordings, and %.160s", why.reason);
    PUT(refusal->remedy, "%s", why.remedy);
}

#define WORDS_MOST 6
#define PREFIX "SEEP_"

enum kind { TEXT, WORD, MEAN, SHARE, SIZE, FLOOR, KEEP };

/* Of those whose values are not any text. */
static const struct variable {
    const char *name;
    enum kind kind;
    const char *words[WORDS_MOST]; /* of WORD */
    const char *values;            /* for people */
} checked[] = {
    {"SEEP_SAMPLE", MEAN, {0}, "a size such as 64KiB, or 1 for every block"},
    {"SEEP_BUDGET", SHARE, {0}, "a share such as 1%"},
    {"SEEP_SIZE", SIZE, {0}, "a size such as 16MiB"},
    {"SEEP_FLOOR", FLOOR, {0}, "a size such as 2GiB, or a share such as 5%"},
    {"SEEP_KEEP", KEEP, {0}, "files and bytes such as 500,2GiB, or all"},
    {"SEEP_OUT_ANY", WORD, {"0", "1"}, "0 or 1"},
    {"SEEP_VERBOSE", WORD, {"0", "1"}, "0 or 1"},
    {"SEEP_PYTHON",
     WORD,
     {"objects", "frames", "off", "1", "0"},
     "objects, frames or off"},
    {"SEEP_CUDA",
     WORD,
     {"tensors", "driver", "off", "1", "0"},
     "tensors, driver or off"},
    {"SEEP_UNWINDER", WORD, {"eh_frame", "libunwind"}, "eh_frame or libunwind"},
    {"SEEP_STACKS", WORD, {"short", "long"}, "short or long"},
};

#define NAME_ENTRY(name) name,
static const char *const names[] = {SEEP_VARIABLES(NAME_ENTRY)};
static const char *const others[] = {SEEP_VARIABLES_OF_OTHERS(NAME_ENTRY)};
static const char *const prefixes[] = {SEEP_VARIABLE_PREFIXES(NAME_ENTRY)};
static const char *const parts[] = {SEEP_VARIABLE_PARTS(NAME_ENTRY)};
#undef NAME_ENTRY

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What other tools call it behind SEEP_, too far from ours for slips of the
 * finger. */
static const struct {
    const char *given;
    const char *meant;
} synonyms[] = {
    {"EXACT", "SEEP_SAMPLE=1"},  {"DIR", "SEEP_OUT"},
    {"FOLDER", "SEEP_OUT"},      {"OUTPUT", "SEEP_OUT"},
    {"PATTERN", "SEEP_OUT"},     {"FILE", "SEEP_OUT"},
    {"RATE", "SEEP_SAMPLE"},     {"INTERVAL", "SEEP_SAMPLE"},
    {"SAMPLING", "SEEP_SAMPLE"}, {"LABEL", "SEEP_LABELS"},
    {"DEBUG", "SEEP_VERBOSE=1"}, {"LOG", "SEEP_VERBOSE=1"},
    {"MAX_SIZE", "SEEP_SIZE"},   {"EXCLUDE", "SEEP_SKIP"},
    {"GPU", "SEEP_CUDA"},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] != NULL && strcmp(name, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_foreign(const char *name)
{
    bool foreign =
        !begins(name, PREFIX) || is_one_of(name, others, COUNT(others));

    for (size_t i = 0; i < COUNT(prefixes); i++) {
        foreign = foreign || begins(name, prefixes[i]);
    }
    for (size_t i = 0; i < COUNT(parts); i++) {
        foreign = foreign || strstr(name, parts[i]) != NULL;
    }
    return foreign;
}

static const struct variable *find(const char *name)
{
    for (size_t i = 0; i < COUNT(checked); i++) {
        if (strcmp(checked[i].name, name) == 0) {
            return &checked[i];
        }
    }
    return NULL;
}

static bool is_understood(const struct variable *variable, const char *value)
{
    struct seep_place_floor floor;
    struct seep_place_keep keep;
    uint64_t bytes;
    uint32_t share;
    unsigned log2;

    switch (variable->kind) {
    case WORD:
        return is_one_of(value, variable->words, WORDS_MOST);
    case MEAN:
        return seep_size_parse(value, &bytes) == 0 &&
               seep_size_mean_log2(bytes, &log2) == 0;
    case SHARE:
        return seep_share_parse(value, &share) == 0;
    case SIZE:
        return seep_size_parse(value, &bytes) == 0 &&
               bytes >= SEEP_LAYOUT_LEAST_BYTES &&
               bytes <= SEEP_LAYOUT_MOST_BYTES;
    case FLOOR:
        return seep_place_floor_parse(value, &floor);
    case KEEP:
        return seep_place_keep_parse(value, &keep);
    default:
        return true;
    }
}

static enum seep_variable_state look_at_mean(const char *value,
                                             struct seep_variable_words *words)
{
    uint64_t bytes = 0;
    unsigned log2 = 0;

    if (seep_size_parse(value, &bytes) < 0 ||
        seep_size_mean_log2(bytes, &log2) < 0 || bytes == UINT64_C(1) << log2) {
        return SEEP_VARIABLE_FINE;
    }
    PUT(words->reason, "rounded down to %s, a power of two",
        SEEP_UNITS_BYTES((double)(UINT64_C(1) << log2)));
    words->remedy[0] = '\0';
    return SEEP_VARIABLE_ROUNDED;
}

static void explain_value(const struct variable *variable, const char *value,
                          struct seep_variable_words *words)
{
    const char *nearest =
        variable->kind != WORD
            ? NULL
            : seep_nearest(value, variable->words,
                           variable->words[2] == NULL ? 2 : 3);

    PUT(words->reason, "invalid value, ignored");
    if (nearest != NULL) {
        PUT(words->remedy, "did you mean %s=%s?", variable->name, nearest);
    } else if (variable->kind == MEAN && strcmp(value, "exact") == 0) {
        PUT(words->remedy, "did you mean SEEP_SAMPLE=1?");
    } else if (variable->kind == SIZE) {
        PUT(words->remedy, "expected a size from %s to %s",
            SEEP_UNITS_BYTES((double)SEEP_LAYOUT_LEAST_BYTES),
            SEEP_UNITS_BYTES((double)SEEP_LAYOUT_MOST_BYTES));
    } else {
        PUT(words->remedy, "expected %s", variable->values);
    }
}

static void explain_name(const char *name, struct seep_variable_words *words)
{
    const char *meant = seep_nearest(name, names, COUNT(names));

    for (size_t i = 0; begins(name, PREFIX) && i < COUNT(synonyms); i++) {
        if (strcmp(synonyms[i].given, name + strlen(PREFIX)) == 0) {
            meant = synonyms[i].meant;
        }
    }
    PUT(words->reason, "unknown variable, without effect");
    if (meant != NULL) {
        PUT(words->remedy, "did you mean %s?", meant);
    } else {
        PUT(words->remedy, "`man seep` lists them");
    }
}

/* @return its value; NULL without one */
static const char *split(const char *entry, char *name, size_t size)
{
    size_t length = strcspn(entry, "=");

    snprintf(name, size, "%.*s", (int)(length < size ? length : size), entry);
    return entry[length] == '=' ? entry + length + 1 : NULL;
}

void seep_variable_explain(const char *entry,
                           struct seep_variable_words *ret_words)
{
    char name[64];
    const char *value = split(entry, name, sizeof(name));
    const struct variable *variable = find(name);

    PUT(ret_words->thing, "%s", entry);
    if (!is_one_of(name, names, COUNT(names))) {
        explain_name(name, ret_words);
    } else if (variable != NULL && value != NULL) {
        explain_value(variable, value, ret_words);
    } else {
        PUT(ret_words->reason, "invalid value, ignored");
        PUT(ret_words->remedy, "see `man seep` for its values");
    }
}

enum seep_variable_state
seep_variable_check(const char *entry, struct seep_variable_words *ret_words)
{
    char name[64];
    const char *value = split(entry, name, sizeof(name));
    const struct variable *variable = find(name);

    if (value == NULL || is_foreign(name)) {
        return SEEP_VARIABLE_FOREIGN;
    }
    if (!is_one_of(name, names, COUNT(names))) {
        seep_variable_explain(entry, ret_words);
        return SEEP_VARIABLE_UNKNOWN;
    }
    if (*value == '\0' || variable == NULL) {
        return SEEP_VARIABLE_FINE;
    }
    if (!is_understood(variable, value)) {
        seep_variable_explain(entry, ret_words);
        return SEEP_VARIABLE_WRONG;
    }
    PUT(ret_words->thing, "%s", entry);
    return variable->kind == MEAN ? look_at_mean(value, ret_words)
                                  : SEEP_VARIABLE_FINE;
}

void seep_variables_visit(
    char *const *environment,
    void (*visit)(void *context, const struct seep_variable_words *words),
    void *context)
{
    for (; *environment != NULL; environment++) {
        struct seep_variable_words words = {0};
        enum seep_variable_state state =
            seep_variable_check(*environment, &words);

        if (state != SEEP_VARIABLE_FINE && state != SEEP_VARIABLE_FOREIGN) {
            visit(context, &words);
        }
    }
}
