/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a command line to what is read: its paths, what the user knows, and
 * times of a run. Invariant: one file that cannot be read costs one line and
 * the exit code, never the reports of the others.
 */
#include "read/gather.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "options/option.h"
#include "options/variables.h"
#include "read/ask.h"
#include "reader/recording/store.h"
#include "reader/symbols/names.h"
#include "run/launch.h"
#include "words/units.h"
#include "words/words.h"

/* Of a folder of files that are none, the first. */
#define SAID_MOST 10U

/* @return the exit code */
static int refuse(const char *path, const struct seep_refusal *refusal,
                  int error)
{
    bool said = *refusal->reason != '\0';

    seep_say(path, said ? refusal->reason : strerror(-error),
             said ? refusal->remedy : "check that it can be read");
    return SEEP_EXIT_FAILED;
}

/* The same library is in many recordings: what is said of it is said once.
 * Without memory to know it by it is said again. */
static bool is_said(struct seep_gathering *gathering, const char *path)
{
    struct seep_store_entry *entry = seep_store_find(
        &gathering->store, &gathering->said, path, strlen(path));
    bool is_known = entry != NULL && entry->value != NULL;

    if (entry != NULL) {
        entry->value = entry->key;
    }
    return is_known;
}

void seep_gather_say_nameless(const struct seep_report_nameless *nameless)
{
    seep_say(nameless->path, seep_nameless_reason(nameless->error),
             SEEP_NAMELESS_MEANS);
}

static void say_nameless(struct seep_gathering *gathering,
                         const struct seep_report *report)
{
    for (size_t i = 0; i < report->nameless_count; i++) {
        if (!is_said(gathering, report->nameless[i].path) &&
            gathering->nameless_count++ < SAID_MOST) {
            seep_gather_say_nameless(&report->nameless[i]);
        }
    }
}

static void refuse_one(struct seep_gathering *gathering, const char *path,
                       const struct seep_refusal *refusal, int error)
{
    if (gathering->refused_count++ < SAID_MOST) {
        refuse(path, refusal, error);
    }
}

/* How many were not said. */
static void say_more(const char *path, size_t count, const char *what)
{
    char reason[96];

    if (count > SAID_MOST) {
        snprintf(reason, sizeof(reason), "and %s more %s",
                 SEEP_UNITS_COUNT((double)(count - SAID_MOST)), what);
        seep_say(path, reason, NULL);
    }
}

static int open_one(struct seep_gathering *gathering, const char *path,
                    const struct seep_report_options *options,
                    struct seep_refusal *ret_refusal)
{
    struct seep_report *report;
    int error = seep_report_open(path, options, ret_refusal, &report);

    if (error < 0) {
        return error;
    }
    seep_ask_attach(report);
    say_nameless(gathering, report);
    return gathering->take(gathering, report);
}

static int keep(struct seep_gathering *gathering, struct seep_report *report)
{
    const struct seep_report **reports =
        seep_list_grow(gathering->reports, gathering->count, sizeof(*reports));

    if (reports == NULL) {
        seep_report_close(report);
        return -ENOMEM;
    }
    if (gathering->memory != NULL) {
        gathering->memory->shares = gathering->memory->keeps;
    }
    if (gathering->note != NULL) {
        gathering->note(gathering->context, report);
    }
    gathering->reports = reports;
    reports[gathering->count++] = report;
    return 0;
}

static double growth_of(const struct seep_report *report)
{
    return report->verdict.has_growth ? report->verdict.growth_bytes_per_s.low
                                      : 0;
}

static double live_of(const struct seep_report *report)
{
    double live = 0;

    for (size_t i = 0; i < report->space_count; i++) {
        live += (double)report->spaces[i].live_bytes;
    }
    return live;
}

static int descending(double a, double b)
{
    return (a < b) - (a > b);
}

int seep_gather_compare(const struct seep_report *a,
                        const struct seep_report *b)
{
    int order = (int)seep_words_is_brief(a) - (int)seep_words_is_brief(b);

    if (order == 0) {
        order = (a->verdict.class > b->verdict.class) -
                (a->verdict.class < b->verdict.class);
    }
    if (order == 0) {
        order = descending(growth_of(a), growth_of(b));
    }
    if (order == 0) {
        order = descending(live_of(a), live_of(b));
    }
    return order != 0 ? order : strcmp(a->path, b->path);
}

static int compare_pointers(const void *a, const void *b)
{
    return seep_gather_compare(*(const struct seep_report *const *)a,
                               *(const struct seep_report *const *)b);
}

void seep_gather_sort(const struct seep_report **reports, size_t count)
{
    if (count > 1) {
        qsort(reports, count, sizeof(*reports), compare_pointers);
    }
}

static void open_all(struct seep_gathering *gathering, const char *path,
                     const struct seep_report_options *options)
{
    struct seep_refusal refusal = {0};
    char **found;
    int error = seep_report_list(path, &refusal, &found);

    if (error < 0) {
        seep_why_refine(path, &refusal);
        refuse_one(gathering, path, &refusal, error);
        return;
    }
    for (char **each = found; *each != NULL; each++) {
        refusal = (struct seep_refusal){0};
        error = open_one(gathering, *each, options, &refusal);
        if (error < 0) {
            refuse_one(gathering, *each, &refusal, error);
        }
    }
    seep_report_list_free(found);
}

static void open_paths(struct seep_gathering *gathering, char *const *paths,
                       size_t path_count,
                       const struct seep_report_options *options)
{
    struct seep_report_options shared = *options;
    const char *first = path_count > 0 ? paths[0] : "";

    if (seep_symbol_memory_open(&gathering->memory) == 0) {
        gathering->memory->keeps = gathering->take == keep;
        shared.memory = gathering->memory;
    }
    for (size_t i = 0; i < path_count; i++) {
        if (!seep_report_is_beside(paths, path_count, i)) {
            open_all(gathering, paths[i], &shared);
        }
    }
    seep_symbol_memory_rest(gathering->memory);
    say_more(first, gathering->refused_count, "cannot be read");
    say_more(first, gathering->nameless_count, "files have no names");
}

void seep_gather(char *const *paths, size_t path_count,
                 const struct seep_report_options *options,
                 struct seep_gathering *ret_gathering)
{
    seep_gather_noted(paths, path_count, options, NULL, NULL, ret_gathering);
}

void seep_gather_noted(char *const *paths, size_t path_count,
                       const struct seep_report_options *options,
                       seep_gather_note *note, void *context,
                       struct seep_gathering *ret_gathering)
{
    struct seep_gathering gathering = {
        .take = keep, .note = note, .context = context};

    open_paths(&gathering, paths, path_count, options);
    seep_gather_sort(gathering.reports, gathering.count);
    *ret_gathering = gathering;
}

int seep_gather_each(char *const *paths, size_t path_count,
                     const struct seep_report_options *options,
                     seep_gather_taker *take, void *context)
{
    struct seep_gathering gathering = {.take = take, .context = context};
    int code;

    open_paths(&gathering, paths, path_count, options);
    code = seep_gather_exit(&gathering);
    seep_gather_close(&gathering);
    return code;
}

void seep_gather_read_again(struct seep_gathering *gathering, size_t limit,
                            const struct seep_report_options *options)
{
    for (size_t i = 0; i < gathering->count && (limit == 0 || i < limit); i++) {
        struct seep_report *again;

        if (gathering->reports[i]->bucket_count == 0 &&
            seep_report_open(gathering->reports[i]->path, options, NULL,
                             &again) == 0) {
            seep_ask_attach(again);
            seep_report_close(
                (struct seep_report *)(uintptr_t)gathering->reports[i]);
            gathering->reports[i] = again;
        }
    }
}

void seep_gather_close(struct seep_gathering *gathering)
{
    for (size_t i = 0; i < gathering->count; i++) {
        seep_report_close((struct seep_report *)gathering->reports[i]);
    }
    free(gathering->reports);
    seep_store_table_fini(&gathering->said);
    seep_store_fini(&gathering->store);
    seep_symbol_memory_close(gathering->memory);
}

int seep_gather_exit(const struct seep_gathering *gathering)
{
    return gathering->refused_count > 0 ? SEEP_EXIT_FAILED : SEEP_EXIT_FINE;
}

size_t seep_gather_held(const struct seep_gathering *gathering)
{
    size_t count = 0;

    while (count < gathering->count &&
           !seep_words_is_brief(gathering->reports[count])) {
        count++;
    }
    return count > 0 ? count : gathering->count;
}

/*
 * What the user knows. Invariant: a file that was named and cannot be used
 * ends the command, since a report without it would be another one; only the
 * installed patterns may be missing.
 */

int seep_knowledge_take_file(const char *verb, const char *value, void *target)
{
    (void)verb;
    if (seep_open_list_add(target, strdup(value)) < 0) {
        seep_say(value, strerror(ENOMEM), NULL);
        return SEEP_EXIT_FAILED;
    }
    return 0;
}

/* The last = parts them: a function may be called operator==. */
int seep_knowledge_take_known(const char *verb, const char *value, void *target)
{
    struct seep_knowledge *knowledge = target;
    const char *equals = strrchr(value, '=');
    uint64_t bound;

    if (equals == NULL || equals == value) {
        return seep_say_value(verb, value, "SITE=SIZE, such as 3f9a=512MiB");
    }
    if (seep_size_parse(equals + 1, &bound) < 0 || bound == 0) {
        return seep_say_value(verb, equals + 1,
                              "a size such as 512KiB or 24 MB");
    }
    char *site = strndup(value, (size_t)(equals - value));
    int error =
        site == NULL ? -ENOMEM : seep_known_add(&knowledge->known, site, bound);
    free(site);
    if (error < 0) {
        seep_say(value, strerror(-error), "see `man seep` for SITE=SIZE");
        return error == -EINVAL ? SEEP_EXIT_USAGE : SEEP_EXIT_FAILED;
    }
    return 0;
}

#define AT(member) offsetof(struct seep_knowledge, member)

const struct seep_option seep_knowledge_options[] = {
    SEEP_OPTION("suppressions", "F", seep_knowledge_take_file,
                AT(suppression_files),
                "ignore call sites: a file of lines leak:PATTERN,\n"
                "as for LeakSanitizer"),
    SEEP_OPTION("known", "SITE=SIZE", seep_knowledge_take_known, 0,
                "this call site is a cache of at most SIZE; SITE\n"
                "is the beginning of an id or a pattern for frames"),
    SEEP_OPTION("patterns", "F", seep_knowledge_take_file, AT(pattern_files),
                "more known patterns, before the installed ones"),
    SEEP_OPTION("no-patterns", NULL, seep_option_set, AT(no_patterns),
                "no hints from the installed patterns"),
    {0},
};

static int load_suppressions(struct seep_knowledge *knowledge, const char *path)
{
    struct seep_refusal refusal = {0};
    int error =
        seep_suppressions_add_file(&knowledge->suppressions, path, &refusal);

    return error < 0 ? refuse(path, &refusal, error) : 0;
}

static int load_patterns(struct seep_knowledge *knowledge, const char *path)
{
    struct seep_refusal refusal = {0};
    int error = seep_catalogue_add_file(&knowledge->catalogue, path, &refusal);

    return error < 0 ? refuse(path, &refusal, error) : 0;
}

/* A list of files, as PATH is one of folders. */
static int load_environment(struct seep_knowledge *knowledge)
{
    const char *list = getenv("SEEP_SUPPRESSIONS");
    char *copy = list == NULL ? NULL : strdup(list);
    char *rest = copy;
    char *path;
    int code = 0;

    while (code == 0 && copy != NULL && (path = strsep(&rest, ":")) != NULL) {
        code = *path == '\0' ? 0 : load_suppressions(knowledge, path);
    }
    free(copy);
    return code;
}

static int load_installed(struct seep_knowledge *knowledge)
{
    char *path = NULL;
    int code = 0;

    if (!knowledge->no_patterns && seep_launch_find_patterns(&path) == 0) {
        code = load_patterns(knowledge, path);
    }
    free(path);
    return code;
}

int seep_knowledge_load(struct seep_knowledge *knowledge,
                        struct seep_report_options *ret_report)
{
    int code = load_environment(knowledge);

    for (size_t i = 0; code == 0 && i < knowledge->suppression_files.count;
         i++) {
        code =
            load_suppressions(knowledge, knowledge->suppression_files.paths[i]);
    }
    code = code == 0 ? load_installed(knowledge) : code;
    for (size_t i = 0; code == 0 && i < knowledge->pattern_files.count; i++) {
        code = load_patterns(knowledge, knowledge->pattern_files.paths[i]);
    }
    ret_report->catalogue = knowledge->catalogue;
    ret_report->suppressions = knowledge->suppressions;
    ret_report->known = knowledge->known;
    return code;
}

void seep_knowledge_close(struct seep_knowledge *knowledge)
{
    seep_rules_close(knowledge->suppressions);
    seep_rules_close(knowledge->known);
    seep_catalogue_close(knowledge->catalogue);
    seep_report_list_free(knowledge->suppression_files.paths);
    seep_report_list_free(knowledge->pattern_files.paths);
}

/*
 * Times of a run on the command line. Invariant: what begins with "mark:" is a
 * mark, whatever its name is.
 */

static int parse_mark(const char *name, struct seep_span_time *ret_time)
{
    if (*name == '\0') {
        return -EINVAL;
    }
    *ret_time = (struct seep_span_time){.when = SEEP_SPAN_MARK, .mark = name};
    return 0;
}

int seep_when_parse(const char *text, struct seep_span_time *ret_time)
{
    static const char mark[] = "mark:";
    bool before = *text == '-';
    struct seep_span_time time = {.when = before ? SEEP_SPAN_BEFORE
                                                 : SEEP_SPAN_TIME};

    if (strncmp(text, mark, strlen(mark)) == 0) {
        return parse_mark(text + strlen(mark), ret_time);
    }
    if (seep_units_parse_duration(text + before, &time.seconds) == 0) {
        *ret_time = time;
        return 0;
    }
    if (strcmp(text, "peak") == 0 || strcmp(text, "end") == 0) {
        *ret_time = (struct seep_span_time){
            .when = *text == 'p' ? SEEP_SPAN_PEAK : SEEP_SPAN_END};
        return 0;
    }
    return parse_mark(text, ret_time);
}

int seep_when_take(const char *verb, const char *value, void *target)
{
    return seep_when_parse(value, target) == 0
               ? 0
               : seep_say_value(verb, value, SEEP_WHEN_EXPECTED);
}

const struct seep_option seep_when_options[] = {
    SEEP_OPTION("since", "TIME", seep_when_take,
                offsetof(struct seep_span_wish, since),
                "only what happened since: 90s, 1h30m, -5m (before the\n"
                "end), peak, end, or the name of a mark"),
    SEEP_OPTION("until", "TIME", seep_when_take,
                offsetof(struct seep_span_wish, until),
                "only what happened until then"),
    SEEP_OPTION("at", "TIME", seep_when_take,
                offsetof(struct seep_span_wish, at), "what stood then"),
    {0},
};

int seep_when_check(const char *verb, const struct seep_span_wish *wish)
{
    return wish->at.when == SEEP_SPAN_NONE ||
                   (wish->since.when == SEEP_SPAN_NONE &&
                    wish->until.when == SEEP_SPAN_NONE)
               ? 0
               : seep_say_usage(
                     verb, "--at cannot be combined with --since or --until");
}
