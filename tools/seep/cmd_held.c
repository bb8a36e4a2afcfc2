/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep held: who holds what a call site keeps.
 *
 * Invariant: what is read of the target process is hostile: it has little
 * memory and time (and a child of its own, main.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "options/option.h"
#include "read/ask.h"
#include "read/follow.h"
#include "read/gather.h"
#include "read/pins.h"
#include "reader/recording/open.h"
#include "run/run.h"
#include "text/page.h"
#include "verbs.h"
#include "words/held.h"
#include "words/units.h"
#include "words/words.h"
#include "json/json.h"

#define BLOCKS_MOST 4096U
#define FREEZE_MOST_MS 10000U
#define GROUPS_SHOWN 4U
#define INDENT 9

struct arguments {
    bool json;
    const char *site_id;
    const char *core_path;
    size_t block_count;
    size_t freeze_ms;
    enum seep_color color;
};

#define AT(member) offsetof(struct arguments, member)

static const struct seep_option table[] = {
    SEEP_OPTION("site", "ID", seep_option_text, AT(site_id),
                "this call site, by the beginning of its id (default: those\n"
                "that may leak, else the one that holds the most)"),
    SEEP_OPTION("blocks", "N", seep_option_number, AT(block_count),
                "ask who holds N of its live blocks (64)"),
    SEEP_OPTION("freeze", "MS", seep_option_number, AT(freeze_ms),
                "stop the process for MS milliseconds at most, where chains\n"
                "move too fast; by default it is not stopped"),
    SEEP_OPTION("core", "FILE", seep_option_text, AT(core_path),
                "of a process that is gone: its core file"),
    SEEP_OPTION("json", NULL, seep_option_set, AT(json),
                "one JSON document (schema seep-held/1)"),
    SEEP_OPTION("color", "WHEN", seep_option_color, AT(color),
                "auto, always or never"),
    {0},
};

static const struct seep_options options = {
    .verb = "held",
    .usage =
        "usage: seep held [OPTIONS] PID|RECORDING\n\n"
        "Show who holds the blocks that a call site keeps: from some of them\n"
        "upwards through the memory of the process, to what has a name. The\n"
        "process is neither stopped nor written to.\n",
    .table = table,
    .exits =
        "exit status: 0 fine, 1 it could not be asked, 2 wrong usage, 4 it cannot be\n"
        "told: too few blocks, or the process has ended\n",
};

/* What a question is asked of: a report, and the process that it is of. */
struct asked {
    char **paths; /* NULL-terminated */
    struct seep_report *report;
    struct seep_rec_header header;
    struct seep_target target;
    bool is_there; /* the process, or its core */
};

static const char *path_of(const struct asked *asked)
{
    return asked->paths[0];
}

/* The recording that @word means: of a process the one that it writes. */
static int find_recording(const char *word, struct asked *asked)
{
    struct seep_refusal refusal;
    int error = seep_follow_find(word, &refusal, &asked->paths);

    if (error < 0) {
        seep_say(word, refusal.reason, refusal.remedy);
        return SEEP_EXIT_FAILED;
    }
    if (asked->paths[0] == NULL) {
        seep_say(word, "holds no recording", "give a .seep file, or a pid");
        return SEEP_EXIT_FAILED;
    }
    if (asked->paths[1] != NULL && !seep_follow_is_pid(word)) {
        seep_say(word, "holds more than one recording", "give one of them");
        return SEEP_EXIT_FAILED;
    }
    return SEEP_EXIT_FINE;
}

static int find_process(struct asked *asked, const struct arguments *arguments)
{
    const char *path = path_of(asked);

    if (!seep_harvest_read_header(path, &asked->header)) {
        seep_say(path, "is not a seep recording",
                 "give a .seep file that `seep run` wrote");
        return SEEP_EXIT_FAILED;
    }
    asked->is_there = arguments->core_path != NULL ||
                      seep_target_find(&asked->header, &asked->target) == 0;
    return SEEP_EXIT_FINE;
}

static int open_report(struct asked *asked, const struct arguments *arguments)
{
    const struct seep_report_options report = {
        .by = SEEP_BY_LINE,
        .symbols = true,
        .site_limit = arguments->site_id != NULL ? 0 : SEEP_ASK_ROWS_MOST,
        .block_limit = arguments->block_count,
    };
    struct seep_refusal refusal;

    if (seep_report_open(path_of(asked), &report, &refusal, &asked->report) <
        0) {
        seep_say(path_of(asked), refusal.reason, refusal.remedy);
        return SEEP_EXIT_FAILED;
    }
    return SEEP_EXIT_FINE;
}

/* Is there something to tell of them? */
static bool has_pins(const struct seep_report *report)
{
    char *text = seep_words_pins(report);
    bool is_told = text != NULL;

    free(text);
    return is_told;
}

/* The rows to ask about. @return how many */
static size_t choose_rows(const struct asked *asked,
                          const struct arguments *arguments,
                          struct seep_json_held_row *rows)
{
    const struct seep_report *report = asked->report;
    const struct seep_report_site *largest = NULL;
    size_t count = 0;

    for (size_t i = 0; i < report->site_count && count < SEEP_ASK_ROWS_MOST;
         i++) {
        const struct seep_report_site *site = &report->sites[i];
        bool wanted = arguments->site_id != NULL
                          ? strncmp(site->id, arguments->site_id,
                                    strlen(arguments->site_id)) == 0
                          : seep_class_may_leak(site->class);

        if (wanted && site->block_count > 0) {
            rows[count++].site = site;
        }
        if (!site->is_start && site->block_count > 0 &&
            (largest == NULL || site->live_bytes > largest->live_bytes)) {
            largest = site;
        }
    }
    if (count == 0 && arguments->site_id == NULL && largest != NULL &&
        !has_pins(report)) {
        rows[count++].site = largest;
    }
    return count;
}

static const char *reason_of(int error)
{
    switch (error) {
    case -ESRCH:
        return "the process has ended meanwhile";
    case -EACCES:
    case -EPERM:
        return seep_words_held_refused();
    case -EXDEV:
        return "names a process that does not write it, which is not stopped";
    case -ENOEXEC:
        return "is not a core file of x86-64";
    default:
        return strerror(-error);
    }
}

static const char *remedy_of(int error)
{
    return error == -EACCES || error == -EPERM
               ? seep_words_held_refused_remedy()
           : error == -EXDEV ? "ask without --freeze"
                             : NULL;
}

static int ask_row(const struct asked *asked, const struct arguments *arguments,
                   struct seep_json_held_row *row, size_t row_count)
{
    const struct seep_ask ask = {
        .pid = asked->target.pid,
        .core_path = arguments->core_path,
        .freeze_ms = (uint32_t)arguments->freeze_ms,
        .share_count = (uint32_t)row_count,
    };
    struct seep_held_answer *answer;
    int error = seep_ask_site(&ask, asked->report, row->site, &answer);

    if (error < 0) {
        seep_say(arguments->core_path != NULL ? arguments->core_path
                                              : path_of(asked),
                 reason_of(error), remedy_of(error));
        return SEEP_EXIT_FAILED;
    }
    row->answer = answer;
    return SEEP_EXIT_FINE;
}

/* Free memory that grows is asked about as well. @param ret_pins  of which
 * the report has it then, @ret_answer in it */
static int ask_pins(const struct asked *asked,
                    const struct arguments *arguments,
                    struct seep_held_kept_pins *ret_pins,
                    struct seep_held_answer **ret_answer)
{
    const struct seep_ask ask = {
        .pid = asked->target.pid,
        .core_path = arguments->core_path,
    };
    int error;

    if (arguments->site_id != NULL || !asked->is_there ||
        !seep_words_pins_are_wanted(asked->report)) {
        return SEEP_EXIT_FINE;
    }
    error =
        seep_pins_ask(&ask, path_of(asked), seep_report_store(asked->report),
                      ret_pins, ret_answer);
    if (error < 0) {
        seep_say(path_of(asked), reason_of(error), remedy_of(error));
        return SEEP_EXIT_FAILED;
    }
    asked->report->pins = ret_pins;
    return SEEP_EXIT_FINE;
}

/* @return whether there is something to tell */
static bool print_pins(struct seep_page *page, const struct seep_report *report)
{
    char *pins = seep_words_pins(report);
    char *held = seep_words_pins_held(report);
    char *advice = seep_words_pins_advice(report);

    if (pins != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "free", INDENT, "%s",
                            pins);
    }
    if (held != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_STRONG, "held by", INDENT, "%s",
                            held);
    }
    if (advice != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "next", INDENT, "%s",
                            advice);
    }
    free(pins);
    free(held);
    free(advice);
    return pins != NULL;
}

static void print_group(struct seep_page *page,
                        const struct seep_held_group *group, size_t asked_count,
                        bool is_first)
{
    char *held = seep_words_held(group);
    char *chain = seep_words_held_chain(group);
    double share = (double)group->block_count / (double)asked_count;

    seep_page_paragraph(page, is_first ? SEEP_STYLE_STRONG : SEEP_STYLE_FAINT,
                        is_first ? "held by" : "", INDENT,
                        "%s (%zu of %zu blocks)", held == NULL ? "?" : held,
                        group->block_count, asked_count);
    if (group->end != SEEP_HELD_END_CYCLE &&
        group->end != SEEP_HELD_END_UNROOTED &&
        group->end != SEEP_HELD_END_LOST && group->step_count > 0 &&
        chain != NULL && share >= 0.1) {
        seep_page_paragraph(page, SEEP_STYLE_FAINT, is_first ? "by way of" : "",
                            INDENT + 2, "%s", chain);
    }
    free(held);
    free(chain);
}

static void print_missing(struct seep_page *page, uint64_t missing_bytes)
{
    if (missing_bytes > 0) {
        seep_page_paragraph(
            page, SEEP_STYLE_WARNING, "core", INDENT,
            "%s of the process's memory are not in the core: what holds the blocks may be there, and nothing is told as lost",
            SEEP_UNITS_BYTES((double)missing_bytes));
    }
}

static void print_other_file(struct seep_page *page, const char *path)
{
    if (path != NULL) {
        seep_page_paragraph(
            page, SEEP_STYLE_WARNING, "core", INDENT,
            "%s is not the file that the process had: nothing of it was read; give the core where that is",
            path);
    }
}

static void print_nameless(struct seep_page *page, const char *path, int error)
{
    if (path != NULL) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "names", INDENT,
                            "%s %s: what it holds has no names", path,
                            seep_nameless_reason(error));
    }
}

/* Its objects have no names then, which is not to be seen of the answer. */
static void print_unknown_python(struct seep_page *page, uint32_t version)
{
    char text[32];

    if (seep_held_knows_python(version)) {
        return;
    }
    seep_words_python_version(version, text, sizeof(text));
    seep_page_paragraph(
        page, SEEP_STYLE_WARNING, "python", INDENT,
        "objects of Python %s are not known, those of 3.8 to 3.15 are: its blocks have no names",
        text);
}

static void print_effort(struct seep_page *page,
                         const struct seep_held_answer *answer)
{
    char frozen[64] = "the process was not stopped";
    char ended[96] = "";

    if (answer->frozen_s > 0) {
        snprintf(frozen, sizeof(frozen), "the process was stopped for %s",
                 SEEP_UNITS_DURATION(answer->frozen_s));
    }
    if (answer->was_late) {
        snprintf(ended, sizeof(ended),
                 "; the search ended at its limit, %s of the processor",
                 SEEP_UNITS_DURATION(answer->cpu_limit_s));
    } else if (answer->was_cut_short) {
        snprintf(ended, sizeof(ended),
                 "; the search ended before all was seen");
    }
    seep_page_paragraph(page, SEEP_STYLE_FAINT, "read", INDENT,
                        "%s of memory, %u times, in %s; %s%s",
                        SEEP_UNITS_BYTES((double)answer->level_bytes),
                        answer->level_count,
                        SEEP_UNITS_DURATION(answer->elapsed_s), frozen, ended);
    if (answer->swapped_bytes > 0) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "", INDENT,
                            "%s are in swap and were not read",
                            SEEP_UNITS_BYTES((double)answer->swapped_bytes));
    }
}

/* @return whether it was enough to tell */
static bool print_row(struct seep_page *page, const struct asked *asked,
                      const struct seep_json_held_row *row)
{
    const struct seep_report_site *site = row->site;
    const struct seep_held_answer *answer = row->answer;
    char *where = seep_words_where(asked->report, site);
    const char *remedy;
    double share;

    seep_page_paragraph(
        page, SEEP_STYLE_PLAIN, "", 0, "%s (%.8s) keeps %s in %s blocks, %s",
        where == NULL ? site->where : where, site->id,
        SEEP_UNITS_BYTES((double)site->live_bytes),
        SEEP_UNITS_COUNT(site->live_count), seep_words_space(site->space));
    free(where);
    if (answer == NULL) {
        seep_page_paragraph(page, SEEP_STYLE_WARNING, "held by", INDENT, "%s",
                            seep_words_held_gone());
        return false;
    }
    if (answer->asked_count < SEEP_WORDS_HELD_LEAST) {
        seep_page_paragraph(
            page, SEEP_STYLE_WARNING, "held by", INDENT,
            "not known: %zu of its blocks are known and still live, and %u are needed to tell",
            answer->asked_count, SEEP_WORDS_HELD_LEAST);
        return false;
    }
    share = seep_words_held_share(answer);
    if (share < SEEP_WORDS_HELD_CLEAR) {
        seep_page_paragraph(
            page, SEEP_STYLE_WARNING, "", INDENT,
            "not clear: fewer than half of the blocks have one holder");
    }
    for (size_t i = 0; i < answer->group_count && i < GROUPS_SHOWN; i++) {
        print_group(page, &answer->groups[i], answer->asked_count, i == 0);
    }
    remedy =
        answer->missing_bytes > 0 && answer->groups[0].end != SEEP_HELD_END_HELD
            ? "give a core that is whole: it needs room on the disk, `ulimit -c unlimited`, and all of the heap by coredump_filter"
            : seep_words_held_remedy(&answer->groups[0]);
    if (share >= SEEP_WORDS_HELD_CLEAR && *remedy != '\0') {
        seep_page_paragraph(page, SEEP_STYLE_PLAIN, "next", INDENT, "%s",
                            remedy);
    }
    print_unknown_python(page, asked->report->python_version);
    print_missing(page, answer->missing_bytes);
    print_other_file(page, answer->other_file);
    print_nameless(page, answer->nameless_path, answer->nameless_error);
    print_effort(page, answer);
    return true;
}

static int print_rows(const struct asked *asked,
                      const struct arguments *arguments,
                      const struct seep_json_held_row *rows, size_t count)
{
    struct seep_page page;
    bool told = false;

    for (size_t i = 0; i < count; i++) {
        told |= rows[i].answer != NULL &&
                rows[i].answer->asked_count >= SEEP_WORDS_HELD_LEAST;
    }
    told |= has_pins(asked->report);
    if (arguments->json) {
        return seep_json_held_rows(stdout, asked->report, rows, count) < 0
                   ? SEEP_EXIT_FAILED
               : told ? SEEP_EXIT_FINE
                      : SEEP_EXIT_INSUFFICIENT;
    }
    seep_page_init(&page, stdout, arguments->color);
    if (print_pins(&page, asked->report)) {
        if (count > 0) {
            seep_page_end_line(&page);
        }
    } else if (count == 0) {
        seep_page_paragraph(&page, SEEP_STYLE_WARNING, "held", INDENT, "%s",
                            seep_words_held_nothing());
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            seep_page_end_line(&page);
        }
        print_row(&page, asked, &rows[i]);
    }
    return told ? SEEP_EXIT_FINE : SEEP_EXIT_INSUFFICIENT;
}

static int held(const char *word, const struct arguments *arguments)
{
    struct seep_json_held_row rows[SEEP_ASK_ROWS_MOST] = {{0}};
    struct seep_held_kept_pins pins;
    struct seep_held_answer *holders = NULL;
    struct asked asked = {0};
    size_t count = 0;
    int code = find_recording(word, &asked);

    code = code == 0 ? find_process(&asked, arguments) : code;
    code = code == 0 ? open_report(&asked, arguments) : code;
    code = code == 0 ? ask_pins(&asked, arguments, &pins, &holders) : code;
    if (code == 0) {
        count = choose_rows(&asked, arguments, rows);
        if (count == 0 && arguments->site_id != NULL) {
            seep_say(arguments->site_id,
                     "no call site of that id holds a block that is known",
                     "see `seep report --sites 0` for the ids");
            code = SEEP_EXIT_FAILED;
        }
    }
    for (size_t i = 0; code == 0 && asked.is_there && i < count; i++) {
        code = ask_row(&asked, arguments, &rows[i], count);
    }
    if (code == 0) {
        code = print_rows(&asked, arguments, rows, count);
    }
    for (size_t i = 0; i < count; i++) {
        seep_held_close((struct seep_held_answer *)(uintptr_t)rows[i].answer);
    }
    seep_held_close(holders);
    if (asked.report != NULL) {
        seep_report_close(asked.report);
    }
    seep_report_list_free(asked.paths);
    return code;
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    int code = seep_options_parse(&options, argc, argv, arguments);

    if (code != 0) {
        return code;
    }
    if (arguments->block_count < SEEP_WORDS_HELD_LEAST ||
        arguments->block_count > BLOCKS_MOST) {
        return seep_say_usage("held", "--blocks must be %u to %u",
                              SEEP_WORDS_HELD_LEAST, BLOCKS_MOST);
    }
    if (arguments->freeze_ms > FREEZE_MOST_MS) {
        return seep_say_usage("held", "--freeze must be %u at most",
                              FREEZE_MOST_MS);
    }
    return optind + 1 == argc
               ? 0
               : seep_say_usage("held", "one process or recording is needed");
}

int seep_cmd_held(int argc, char **argv)
{
    struct arguments arguments = {.block_count = SEEP_ASK_BLOCKS};
    int code = parse(argc, argv, &arguments);

    if (code == 0) {
        code = held(argv[optind], &arguments);
    }
    return seep_options_exit(&options, code);
}
