/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Questions about rows of a report, and what is done with the answers.
 *
 * Invariant: what is attached was read as RECORDING.held is read, also where
 * the process has just been asked: nobody sees an answer that was not checked.
 */
#include "read/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "read/follow.h"
#include "read/members.h"
#include "read/pins.h"
#include "reader/recording/pack.h"
#include "run/run.h"
#include "words/held.h"

#define GIB 1073741824.0
#define CPU_LEAST_S 1.0
#define DATA_BYTES (UINT64_C(700) << 20)
/* What a question takes itself, and some: in a cgroup that is fuller it would
 * be what kills the process. */
#define ROOM_LEAST_BYTES (UINT64_C(256) << 20)
/* Asked again when it has become so many times as large; sooner what was not
 * clear, or had too few blocks, or no room. */
#define GROWN_TIMES 4.0
#define GROWN_TIMES_UNCLEAR 2.0
#define GROWN_TIMES_NO_ROOM 1.1

struct liveness {
    const char *path;
    enum seep_space space;
};

/* Of a space that has its blocks in the memory of the process, all of that. */
static const struct seep_report_blocks *
blocks_of(const struct seep_report *report, enum seep_space space)
{
    return seep_report_is_of_driver(space) ? &report->driver_blocks[space]
                                           : &report->known_blocks;
}

static int compare_addresses(const void *one, const void *other)
{
    const struct seep_report_block *a = one;
    const struct seep_report_block *b = other;

    return (a->address > b->address) - (a->address < b->address);
}

/* Those that were freed meanwhile have no holder, and are no loss. */
static void still_live(void *context, const struct seep_held_block *blocks,
                       size_t count, bool *ret_live)
{
    const struct liveness *liveness = context;
    const struct seep_report_options again = {
        .by = SEEP_BY_STACK,
        .site_limit = 1,
        .block_limit = 1,
    };
    struct seep_refusal refusal;
    const struct seep_report_blocks *known;
    struct seep_report *report;

    if (seep_report_open(liveness->path, &again, &refusal, &report) < 0) {
        return;
    }
    known = blocks_of(report, liveness->space);
    for (size_t i = 0; i < count; i++) {
        const struct seep_report_block key = {blocks[i].address, 0};

        ret_live[i] = bsearch(&key, known->items, known->count, sizeof(key),
                              compare_addresses) != NULL;
    }
    seep_report_close(report);
}

/* What is read of a process is a stranger's: it may have so much, beside what
 * is there and a copy of the recording. A limit of all addresses would be one
 * of the size of a core file. */
bool seep_ask_limit_memory(const struct seep_report *report,
                           struct rlimit *ret_before)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    struct rlimit limit;
    bool is_known =
        file != NULL && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1;

    if (file != NULL) {
        fclose(file);
    }
    if (!is_known || getrlimit(RLIMIT_DATA, &limit) != 0) {
        return false;
    }
    *ret_before = limit;
    limit.rlim_cur =
        pages * (rlim_t)sysconf(_SC_PAGESIZE) + DATA_BYTES + report->most_bytes;
    return limit.rlim_cur < ret_before->rlim_cur &&
           setrlimit(RLIMIT_DATA, &limit) == 0;
}

/* @parts  .blocks, .part_ends and the counts of these
 * @param site  whose memory is as that of all of them */
static int ask_parts(const struct seep_ask *ask,
                     const struct seep_report *report,
                     const struct seep_report_site *site,
                     const struct seep_held_question *parts,
                     struct seep_held_answer **ret_answer)
{
    struct rlimit before;
    bool is_limited;
    int error;
    struct liveness liveness = {report->path, site->space};
    struct stat status;
    struct seep_held_question question = {
        .pid = ask->pid,
        .core_path = ask->core_path,
        .memory_fd = ask->memory_fd,
        .python_version = report->python_version,
        .blocks = parts->blocks,
        .block_count = parts->block_count,
        .part_ends = parts->part_ends,
        .part_count = parts->part_count,
        .known = (const struct seep_held_block *)report->known_blocks.items,
        .known_count = report->known_blocks.count,
        .is_of_driver = seep_report_is_of_driver(site->space),
        .is_cached = site->space == SEEP_SPACE_TENSOR,
        .freeze_ms = ask->freeze_ms,
        .cpu_limit_s = ask->cpu_limit_s,
        .share_count = ask->share_count,
        .context = &liveness,
    };

    if (stat(report->path, &status) == 0) {
        question.recording_inode = status.st_ino;
    }
    if (ask->core_path == NULL && site->space != SEEP_SPACE_MAPPED) {
        question.still_live = still_live;
    }
    is_limited = seep_ask_limit_memory(report, &before);
    error = seep_held_ask(&question, ret_answer);
    if (is_limited) {
        setrlimit(RLIMIT_DATA, &before);
    }
    if (error == 0) {
        seep_members_name(ask, *ret_answer);
    }
    return error;
}

int seep_ask_site(const struct seep_ask *ask, const struct seep_report *report,
                  const struct seep_report_site *site,
                  struct seep_held_answer **ret_answer)
{
    const struct seep_held_question one = {
        .blocks = (const struct seep_held_block *)site->blocks,
        .block_count = site->block_count,
    };

    return ask_parts(ask, report, site, &one, ret_answer);
}

/* Of so many of one kind of memory, in the same passes. */
static int ask_sites(const struct seep_ask *ask,
                     const struct seep_report *report,
                     const struct seep_report_site *const *sites, size_t count,
                     struct seep_held_answer **ret_answer)
{
    size_t ends[SEEP_ASK_TOGETHER_MOST];
    struct seep_held_question all = {.part_ends = ends, .part_count = count};
    struct seep_held_block *blocks;
    size_t room = 0;
    int error;

    for (size_t i = 0; i < count; i++) {
        room += sites[i]->block_count;
    }
    blocks = calloc(room + 1, sizeof(*blocks));
    if (blocks == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(blocks + all.block_count, sites[i]->blocks,
               sites[i]->block_count * sizeof(*blocks));
        all.block_count += sites[i]->block_count;
        ends[i] = all.block_count;
    }
    all.blocks = blocks;
    error = ask_parts(ask, report, sites[0], &all, ret_answer);
    free(blocks);
    return error;
}

/*
 * Attached.
 */

static struct seep_report_site *site_of(struct seep_report *report, size_t i)
{
    return (struct seep_report_site *)(uintptr_t)&report->sites[i];
}

static bool has_wanted(const struct seep_report *report)
{
    if (seep_words_pins_are_wanted(report)) {
        return true;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        if (seep_words_held_is_wanted(report, &report->sites[i])) {
            return true;
        }
    }
    return false;
}

static void attach(struct seep_report *report,
                   const struct seep_held_book *book)
{
    if (seep_words_pins_are_wanted(report) && book->pins != NULL) {
        report->pins = book->pins;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        struct seep_report_site *site = site_of(report, i);
        const struct seep_held_kept *kept =
            seep_words_held_is_wanted(report, site)
                ? seep_held_book_find(book, site->id)
                : NULL;

        if (kept == NULL && seep_words_held_is_wanted(report, site)) {
            kept = seep_held_book_find(book, site->line_id);
        }
        /* Rows by function, or without symbols, have other ids. */
        if (kept == NULL && seep_words_held_is_wanted(report, site)) {
            kept = seep_held_book_find_stack(book, site->entries,
                                             site->stack_count);
        }
        if (kept != NULL && (kept->answer != NULL || site->held == NULL)) {
            site->held = kept;
        }
    }
}

void seep_ask_attach(struct seep_report *report)
{
    struct seep_packed packed = {.pack = NULL};
    struct seep_held_book book;
    int error;

    if (!has_wanted(report)) {
        return;
    }
    error = seep_pack_open(report->path, NULL, &packed.pack, &packed.process);
    if (error == 0 || error == -ENOENT) {
        error = seep_held_book_read_of(report->path, &packed,
                                       seep_report_store(report), &book);
        if (error == 0) {
            attach(report, &book);
        } else if (error != -ENOENT) {
            report->held_error = error;
        }
    }
    seep_pack_close(packed.pack);
}

/*
 * Asked.
 */

/* A second, and one a GiB that is resident. */
static double cpu_limit_of(pid_t pid)
{
    char text[128];
    unsigned long pages = 0;

    if (seep_proc_text_of(pid, "statm", text, sizeof(text)) > 0) {
        sscanf(text, "%*u %lu", &pages);
    }
    return CPU_LEAST_S + (double)pages * (double)sysconf(_SC_PAGESIZE) / GIB;
}

/* @one as what was kept; nothing of it is the answer's. */
static int take_as_kept(const struct seep_held_book *one,
                        struct seep_store *store,
                        struct seep_held_book *ret_taken)
{
    size_t bytes = 0;
    char *text = NULL;
    FILE *file = open_memstream(&text, &bytes);
    int error;

    if (file == NULL) {
        return -ENOMEM;
    }
    error = seep_held_book_print(file, "", one);
    error = fclose(file) == 0 ? error : -ENOMEM;
    if (error == 0) {
        error = seep_held_book_parse(text, bytes, "", store, ret_taken);
    }
    free(text);
    return error;
}

static void put_answer(struct seep_held_book *book,
                       const struct seep_held_kept *kept,
                       struct seep_store *store)
{
    const struct seep_held_book one = {kept, 1, NULL};
    struct seep_held_book taken;

    if (take_as_kept(&one, store, &taken) == 0 && taken.count == 1) {
        seep_held_book_put(book, &taken.entries[0], store);
    }
}

static void put_pins(struct seep_held_book *book,
                     const struct seep_held_kept_pins *pins,
                     struct seep_store *store)
{
    const struct seep_held_book one = {NULL, 0, pins};
    struct seep_held_book taken;

    if (take_as_kept(&one, store, &taken) == 0) {
        book->pins = taken.pins;
    }
}

static bool is_clear(const struct seep_held_kept *kept)
{
    const struct seep_held_answer *answer = kept->answer;

    return answer != NULL && answer->asked_count >= SEEP_WORDS_HELD_LEAST &&
           answer->groups[0].end != SEEP_HELD_END_UNROOTED &&
           answer->groups[0].end != SEEP_HELD_END_MOVED &&
           seep_words_held_share(answer) >= SEEP_WORDS_HELD_CLEAR;
}

/* Is there more to be learnt of @site than @kept, which may be NULL? */
static bool is_due(const struct seep_report *report,
                   const struct seep_report_site *site,
                   const struct seep_held_kept *kept)
{
    double times;

    if (!seep_words_held_is_wanted(report, site) || kept == NULL) {
        return seep_words_held_is_wanted(report, site);
    }
    if (kept->outcome == SEEP_HELD_OUTCOME_UNCLEAR) {
        return true;
    }
    times = kept->outcome == SEEP_HELD_OUTCOME_NO_ROOM ? GROWN_TIMES_NO_ROOM
            : is_clear(kept)                           ? GROWN_TIMES
                                                       : GROWN_TIMES_UNCLEAR;
    return kept->outcome != SEEP_HELD_OUTCOME_NOT_PERMITTED &&
           (double)site->live_bytes >= times * (double)kept->live_bytes;
}

static bool has_room(void)
{
    char text[4096];
    uint64_t left = 0;
    uint64_t limit = 0;

    if (seep_proc_text("/proc/self/cgroup", text, sizeof(text)) > 0) {
        seep_cgroup_room(text, "/sys/fs/cgroup", &left, &limit);
    }
    return limit == 0 || left >= ROOM_LEAST_BYTES;
}

/* What is asked by whom, and what is known. */
struct asking {
    struct seep_ask *ask;
    const struct seep_report *report;
    struct seep_held_book *book;
    struct seep_store *store;
    double whole_s; /* of .ask's limit, before the first question */
};

/* Of what was asked with others so much has to agree: a search that goes on
 * until nine tenths of the blocks of all are known may leave out all of one. */
#define SURE_SHARE 0.9
/* Of the time that there is; the rest is for what it leaves unclear. In a large
 * process one question takes nearly all, whoever is asked about. */
#define TOGETHER_SHARE 0.6
#define TOGETHER_SHARE_LARGE 0.9
#define LARGE_BYTES (GIB / 2)
#define ALONE_SHARE 0.3 /* with less a question would be cut short */

/* Time for names ends as well. */
static bool has_names(const struct seep_held_group *group)
{
    for (size_t i = 0; i < group->step_count; i++) {
        const struct seep_held_step *step = &group->steps[i];

        if (step->edge == SEEP_HELD_EDGE_ATTRIBUTE ||
            (step->edge == SEEP_HELD_EDGE_KEY &&
             step->kind == SEEP_HELD_KIND_MODULE)) {
            /* What has its name by a dict of names has not been read. */
            if (*step->edge_name == '\0' ||
                strcmp(step->edge_name, "__dict__") == 0) {
                return false;
            }
        }
    }
    return true;
}

static bool is_sure(const struct seep_held_answer *answer)
{
    return answer->asked_count >= SEEP_WORDS_HELD_LEAST &&
           answer->groups[0].end == SEEP_HELD_END_HELD &&
           (!answer->was_late || has_names(&answer->groups[0])) &&
           seep_words_held_share(answer) >= SURE_SHARE;
}

static struct seep_held_kept kept_of(const struct asking *asking,
                                     const struct seep_report_site *site)
{
    return (struct seep_held_kept){
        .site_id = site->id,
        .stack = site->entry,
        .asked_s = asking->report->life_s,
        .live_bytes = site->live_bytes,
    };
}

/* @return of the question */
static int ask_row(struct asking *asking, const struct seep_report_site *site)
{
    struct seep_held_kept kept = kept_of(asking, site);
    struct seep_held_answer *answer = NULL;
    int error = 0;

    if (!has_room()) {
        kept.outcome = SEEP_HELD_OUTCOME_NO_ROOM;
    } else if ((error = seep_ask_site(asking->ask, asking->report, site,
                                      &answer)) == 0) {
        kept.answer = answer;
        asking->ask->cpu_limit_s -= answer->cpu_s;
    } else if (error == -EACCES || error == -EPERM) {
        kept.outcome = SEEP_HELD_OUTCOME_NOT_PERMITTED;
    } else {
        return error;
    }
    put_answer(asking->book, &kept, asking->store);
    seep_held_close(answer);
    return error;
}

/* What came out for one of many sites, at its part of the cost. */
static void put_part(const struct asking *asking,
                     const struct seep_report_site *site,
                     const struct seep_held_answer *answer, size_t i)
{
    const struct seep_held_part *part = &answer->parts[i];
    const struct seep_held_kept *before =
        seep_held_book_find(asking->book, site->id);
    struct seep_held_kept kept = kept_of(asking, site);
    struct seep_held_answer one = *answer;

    one.groups = answer->groups + part->group_first;
    one.group_count = part->group_count;
    one.asked_count = part->asked_count;
    one.cpu_s /= (double)answer->part_count;
    if (is_sure(&one)) {
        kept.answer = &one;
    } else if (before != NULL && before->answer != NULL) {
        return; /* it was clear, and stays due */
    } else {
        kept.outcome = SEEP_HELD_OUTCOME_UNCLEAR;
    }
    put_answer(asking->book, &kept, asking->store);
}

/* A driver's blocks are looked for in another way, and of what is mapped it is
 * not known whether it lives. */
static bool may_be_with_others(const struct seep_report_site *site)
{
    return !seep_report_is_of_driver(site->space) &&
           site->space != SEEP_SPACE_TENSOR &&
           site->space != SEEP_SPACE_MAPPED &&
           site->block_count >= SEEP_WORDS_HELD_LEAST;
}

/* Has it to be asked by itself? So has what such an answer would be the worse
 * of. */
static bool is_alone(const struct seep_held_kept *kept)
{
    return kept != NULL && (kept->outcome == SEEP_HELD_OUTCOME_UNCLEAR ||
                            (kept->answer != NULL && !is_clear(kept)));
}

/* Rows that are due, as many as may be asked with each other. */
static size_t find_due(const struct asking *asking,
                       const struct seep_report_site **ret_sites)
{
    const struct seep_report *report = asking->report;
    size_t wanted = 0;
    size_t count = 0;

    for (size_t i = 0; i < report->site_count && wanted < SEEP_HELD_KEPT_MOST &&
                       count < SEEP_ASK_TOGETHER_MOST;
         i++) {
        const struct seep_report_site *site = &report->sites[i];
        const struct seep_held_kept *kept =
            seep_held_book_find(asking->book, site->id);

        wanted += seep_words_held_is_wanted(report, site);
        if (is_due(report, site, kept) && may_be_with_others(site) &&
            !is_alone(kept)) {
            ret_sites[count++] = site;
        }
    }
    return count;
}

/*
 * The same passes over memory answer for many rows, which costs little more
 * than one: nearly all of it is reading memory. What is not clear then, as a
 * list whose head moves, is asked about by itself.
 *
 * @return how many were asked about; negative errno
 */
static int ask_together(struct asking *asking)
{
    const struct seep_report_site *sites[SEEP_ASK_TOGETHER_MOST];
    size_t count = find_due(asking, sites);
    struct seep_ask limited = *asking->ask;
    struct seep_held_answer *answer = NULL;
    bool is_large = asking->whole_s > CPU_LEAST_S + LARGE_BYTES / GIB;
    int error;

    if (count < 2 || !has_room()) {
        return 0;
    }
    limited.cpu_limit_s *= is_large ? TOGETHER_SHARE_LARGE : TOGETHER_SHARE;
    error = ask_sites(&limited, asking->report, sites, count, &answer);
    if (error < 0) {
        /* Who may not be asked at all is noted of the first row. */
        return error == -EACCES || error == -EPERM ? 0 : error;
    }
    asking->ask->cpu_limit_s -= answer->cpu_s;
    for (size_t i = 0; i < count; i++) {
        put_part(asking, sites[i], answer, i);
    }
    seep_held_close(answer);
    return (int)count;
}

/* Some rows one by one, while there is time. @param leaves  those that may be
 * asked with others. @return how many; negative errno of the last one */
static int ask_alone(struct asking *asking, bool leaves)
{
    const struct seep_report *report = asking->report;
    size_t wanted = 0;
    size_t asked = 0;
    int error = 0;

    for (size_t i = 0; i < report->site_count && asked < SEEP_ASK_ROWS_MOST &&
                       wanted < SEEP_HELD_KEPT_MOST && error == 0 &&
                       asking->ask->cpu_limit_s > ALONE_SHARE * asking->whole_s;
         i++) {
        const struct seep_report_site *site = &report->sites[i];
        const struct seep_held_kept *kept =
            seep_held_book_find(asking->book, site->id);

        wanted += seep_words_held_is_wanted(report, site);
        if (!is_due(report, site, kept) ||
            (leaves && may_be_with_others(site) && !is_alone(kept))) {
            continue;
        }
        if (site->block_count < SEEP_WORDS_HELD_LEAST) {
            struct seep_held_kept few = kept_of(asking, site);

            few.outcome = SEEP_HELD_OUTCOME_FAILED;
            put_answer(asking->book, &few, asking->store);
            continue;
        }
        error = ask_row(asking, site);
        asked++;
    }
    return error < 0 ? error : (int)asked;
}

/* The same of what keeps free memory apart. @return 1: it was asked */
static int ask_pins(struct asking *asking)
{
    struct seep_held_kept_pins pins;
    struct seep_held_answer *answer = NULL;
    int error;

    if (!seep_pins_are_due(asking->report, asking->book->pins) ||
        asking->ask->cpu_limit_s <= 0 || !has_room()) {
        return 0;
    }
    error = seep_pins_ask(asking->ask, asking->report->path, asking->store,
                          &pins, &answer);
    if (error < 0) {
        return error;
    }
    put_pins(asking->book, &pins, asking->store);
    seep_held_close(answer);
    return 1;
}

/* Of what had too little time the first time: as much as a person is given who
 * asks. The pause after it is as much longer. */
#define AGAIN_TIMES 4.0

static double times_of(const struct seep_report *report,
                       const struct seep_held_book *book)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct seep_report_site *site = &report->sites[i];
        const struct seep_held_kept *kept = seep_held_book_find(book, site->id);

        if (kept != NULL && kept->answer != NULL && kept->answer->was_late &&
            !is_clear(kept) && is_due(report, site, kept)) {
            return AGAIN_TIMES;
        }
    }
    return 1;
}

/* Ask about the rows of @report that are due by @book, and note it there.
 * @return how many; negative errno of the last one */
static int ask_rows(struct seep_ask *ask, const struct seep_report *report,
                    struct seep_held_book *book, struct seep_store *store)
{
    struct asking asking = {ask, report, book, store, cpu_limit_of(ask->pid)};
    int together;
    int alone;
    int pins;

    asking.whole_s *= times_of(report, book);
    ask->cpu_limit_s = asking.whole_s;
    together = ask_together(&asking);
    alone = together < 0 ? together : ask_alone(&asking, together > 0);
    if (alone < 0) {
        return alone;
    }
    pins = ask_pins(&asking);
    return pins < 0 ? pins : together + alone + pins;
}

/* A second report has the blocks, which are too much to have them always. */
static void ask_process(const struct seep_report *report,
                        const struct seep_report_options *options,
                        struct seep_held_book *book, struct seep_store *store)
{
    struct seep_report_options with_blocks = *options;
    struct seep_ask ask = {.pid = 0};
    struct seep_rec_header header;
    struct seep_target target;
    struct seep_report *asked;

    if (!seep_harvest_read_header(report->path, &header) ||
        seep_target_find(&header, &target) != 0) {
        return;
    }
    with_blocks.block_limit = SEEP_ASK_BLOCKS;
    if (seep_report_open(report->path, &with_blocks, NULL, &asked) < 0) {
        return;
    }
    ask.pid = target.pid;
    setpriority(PRIO_PROCESS, 0, 19);
    ask_rows(&ask, asked, book, store);
    seep_report_close(asked);
}

void seep_ask_living(struct seep_report *report,
                     const struct seep_report_options *options)
{
    struct seep_held_book book = {NULL, 0, NULL};

    if (has_wanted(report)) {
        ask_process(report, options, &book, seep_report_store(report));
        attach(report, &book);
    }
}

static struct seep_ask_known *known_of(struct seep_ask_memory *memory,
                                       const char *path)
{
    struct seep_ask_known *known;

    for (size_t i = 0; i < memory->count; i++) {
        if (strcmp(memory->known[i].path, path) == 0) {
            return &memory->known[i];
        }
    }
    if (memory->count == SEEP_ASK_KNOWN_MOST) {
        return NULL;
    }
    known = &memory->known[memory->count];
    known->path = seep_store_text(&memory->store, path);
    memory->count += known->path != NULL;
    return known->path == NULL ? NULL : known;
}

void seep_ask_again(struct seep_ask_memory *memory, struct seep_report *report,
                    const struct seep_report_options *options)
{
    struct seep_ask_known *known =
        has_wanted(report) ? known_of(memory, report->path) : NULL;
    size_t rows = 0;
    bool due = known != NULL && seep_pins_are_due(report, known->book.pins);

    for (size_t i = 0;
         known != NULL && i < report->site_count && rows < SEEP_ASK_ROWS_MOST;
         i++) {
        const struct seep_report_site *site = &report->sites[i];

        rows += seep_words_held_is_wanted(report, site);
        due |=
            is_due(report, site, seep_held_book_find(&known->book, site->id));
    }
    if (due && report->state == SEEP_STATE_RUNNING) {
        ask_process(report, options, &known->book, &memory->store);
    }
    if (known != NULL) {
        attach(report, &known->book);
    }
}

void seep_ask_memory_fini(struct seep_ask_memory *memory)
{
    seep_store_fini(&memory->store);
    memory->count = 0;
}

/*
 * In a child.
 */

/* Does anything grow? Asked without names, which are dear. */
static bool may_leak(const char *path)
{
    const struct seep_report_options options = {.by = SEEP_BY_STACK,
                                                .site_limit = 1};
    struct seep_report *report;
    bool may;

    if (seep_report_open(path, &options, NULL, &report) < 0) {
        return false;
    }
    /* By stack no row may be named that is one by line. */
    may = has_wanted(report) || report->verdict.class == SEEP_VERDICT_LEAK ||
          report->verdict.class == SEEP_VERDICT_SUSPECT;
    seep_report_close(report);
    return may;
}

static enum seep_ask_exit keep(const char *path, struct seep_ask *ask)
{
    const struct seep_report_options options = {
        .by = SEEP_BY_LINE,
        .symbols = true,
        .site_limit = SEEP_ASK_ROWS_MOST,
        .block_limit = SEEP_ASK_BLOCKS,
    };
    struct seep_held_book book = {NULL, 0, NULL};
    struct seep_report *report;
    int asked;

    if (!may_leak(path)) {
        return SEEP_ASK_EXIT_FINE;
    }
    if (seep_report_open(path, &options, NULL, &report) < 0) {
        return SEEP_ASK_EXIT_FAILED;
    }
    seep_held_book_read(path, seep_report_store(report), &book);
    asked = ask_rows(ask, report, &book, seep_report_store(report));
    if (asked != 0 && (book.count > 0 || book.pins != NULL)) {
        sigset_t ending;

        sigemptyset(&ending);
        sigaddset(&ending, SIGTERM);
        /* A half-written file would stay; and whoever sees the file may end
         * the run, which then says what this exits with. */
        sigprocmask(SIG_BLOCK, &ending, NULL);
        asked =
            seep_held_book_write(path, &book) < 0 && asked > 0 ? -EIO : asked;
    }
    seep_report_close(report);
    return asked >= 0                            ? SEEP_ASK_EXIT_FINE
           : asked == -EACCES || asked == -EPERM ? SEEP_ASK_EXIT_REFUSED
                                                 : SEEP_ASK_EXIT_FAILED;
}

/* Behind everybody else, for memory as well; and whatever it prints, or holds
 * open, is nobody's. */
static void stand_back(double cpu_s)
{
    const struct rlimit cpu = {(rlim_t)cpu_s, (rlim_t)cpu_s + 1};
    const struct rlimit none = {0, 0};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    sigset_t ending;

    for (int i = 0; null >= 0 && i < 3; i++) {
        dup2(null, i);
    }
    if (score >= 0) {
        if (write(score, "1000", 4) < 0) {
            /* then it is as likely to be chosen as who runs it */
        }
        close(score);
    }
    setpriority(PRIO_PROCESS, 0, 19);
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_CPU, &cpu);
    sigaction(SIGTERM, &standard, NULL);
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &ending, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Names may take ten seconds of it themselves, in a child of their own. */
#define CPU_BESIDE_S 20.0

pid_t seep_ask_start(const char *path, const struct seep_target *target)
{
    pid_t parent = getpid();
    char memory[48];
    pid_t child;
    int fd;

    /* Of who may read it only because it runs it: an ancestor, as yama has it,
     * which its child is not. */
    snprintf(memory, sizeof(memory), "/proc/%d/mem", (int)target->pid);
    fd = open(memory, O_RDONLY | O_CLOEXEC);
    child = fork();
    if (child == 0) {
        struct seep_ask ask = {.pid = target->pid,
                               .memory_fd = fd > 0 ? fd : 0};

        stand_back(CPU_BESIDE_S + 2 * AGAIN_TIMES * cpu_limit_of(target->pid));
        if (getppid() != parent || !seep_target_is_there(target)) {
            _exit(SEEP_ASK_EXIT_FAILED);
        }
        _exit((int)keep(path, &ask));
    }
    child = child < 0 ? -errno : child;
    if (fd >= 0) {
        close(fd);
    }
    return child;
}
