/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What keeps free memory apart, and where it was allocated: see pins.h.
 *
 * Invariant: a block is said to be of a call site only where the recording has
 * it at its very address, alive.
 */
#include "read/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/sorted.h"
#include "held/pins.h"
#include "read/members.h"
#include "words/held.h"
#include "words/words.h"

/* Asked again when so many times as much is free. */
#define GROWN_TIMES 4.0

static double free_bytes_of(const struct seep_report *report)
{
    double bytes = report->memory.allocator_overhead.last_bytes;

    return bytes > 0 ? bytes : 0;
}

bool seep_pins_are_due(const struct seep_report *report,
                       const struct seep_held_kept_pins *pins)
{
    return seep_words_pins_are_wanted(report) &&
           (pins == NULL ||
            free_bytes_of(report) >= GROWN_TIMES * (double)pins->free_bytes);
}

#define TAIL_BYTES 8U /* of the next chunk's head, which the block may use */

/* Does the pin have the known block? An aligned one begins later than what
 * malloc took for it; a larger one was there before. */
static bool has(const struct seep_held_pin *pin,
                const struct seep_report_block *block)
{
    return block->address >= pin->address &&
           block->address - pin->address <= pin->bytes &&
           block->bytes <=
               pin->bytes + TAIL_BYTES - (block->address - pin->address);
}

/* Its place in the list; SIZE_MAX: it is not known. */
static size_t known_at(const struct seep_report *report,
                       const struct seep_held_pin *pin)
{
    const struct seep_report_blocks *known = &report->known_blocks;
    size_t low =
        SEEP_SORTED_UP_TO(known->items, known->count, address, pin->address);

    if (low > 0 && has(pin, &known->items[low - 1])) {
        return low - 1;
    }
    return low < known->count && has(pin, &known->items[low]) ? low : SIZE_MAX;
}

struct sum {
    uint32_t row;
    uint64_t pin_count;
    double apart_bytes;
};

static int compare_sums(const void *one, const void *other)
{
    const struct sum *a = one;
    const struct sum *b = other;

    return (a->apart_bytes < b->apart_bytes) -
           (a->apart_bytes > b->apart_bytes);
}

static int name_sites(const struct seep_report *report, struct sum *sums,
                      struct seep_store *store,
                      struct seep_held_kept_pins *pins)
{
    struct seep_held_pin_site *sites =
        seep_store_take(store, SEEP_HELD_PIN_SITES_MOST, sizeof(*sites));
    size_t count = 0;

    if (sites == NULL) {
        return -ENOMEM;
    }
    qsort(sums, report->site_count, sizeof(*sums), compare_sums);
    for (size_t i = 0;
         i < report->site_count && count < SEEP_HELD_PIN_SITES_MOST &&
         sums[i].pin_count > 0;
         i++) {
        const struct seep_report_site *site = &report->sites[sums[i].row];
        char *where = seep_words_where(report, site);

        sites[count] = (struct seep_held_pin_site){
            .site_id = seep_store_text(store, site->id),
            .where = seep_store_text(store, where == NULL ? "" : where),
            .pin_count = sums[i].pin_count,
            .apart_bytes = sums[i].apart_bytes,
        };
        free(where);
        if (sites[count].site_id == NULL || sites[count].where == NULL) {
            return -ENOMEM;
        }
        count++;
    }
    pins->sites = sites;
    pins->site_count = count;
    return 0;
}

/* Whose the pins are. @param ret_others  those that are not known, of which
 * there is room for all */
static int sum_up(const struct seep_report *report,
                  const struct seep_held_pins *found, struct seep_store *store,
                  struct seep_held_kept_pins *pins,
                  struct seep_held_block *ret_others, size_t *ret_count)
{
    struct sum *sums = calloc(report->site_count + 1, sizeof(*sums));
    size_t others = 0;
    int error;

    if (sums == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        sums[i].row = (uint32_t)i;
    }
    for (size_t i = 0; i < found->count; i++) {
        const struct seep_held_pin *pin = &found->items[i];
        size_t at = known_at(report, pin);
        uint32_t row = at == SIZE_MAX ? UINT32_MAX : report->known_rows[at];

        if (at == SIZE_MAX) {
            ret_others[others++] =
                (struct seep_held_block){pin->address, pin->bytes};
            continue;
        }
        pins->known_count++;
        pins->known_apart_bytes += pin->apart_bytes;
        if (row < report->site_count) {
            sums[row].pin_count++;
            sums[row].apart_bytes += pin->apart_bytes;
        }
    }
    *ret_count = others;
    error = name_sites(report, sums, store, pins);
    free(sums);
    return error;
}

/* Some of all of them, as they lie. */
static size_t thin_out(struct seep_held_block *blocks, size_t count)
{
    size_t some = count < SEEP_ASK_BLOCKS ? count : SEEP_ASK_BLOCKS;

    for (size_t i = 0; i < some; i++) {
        blocks[i] = blocks[i * count / some];
    }
    return some;
}

static int ask_holders(const struct seep_ask *ask,
                       const struct seep_report *report,
                       const struct seep_held_question *whom,
                       const struct seep_held_block *blocks, size_t count,
                       struct seep_held_answer **ret_answer)
{
    struct seep_held_question question = *whom;
    struct rlimit before;
    bool is_limited = seep_ask_limit_memory(report, &before);
    int error;

    question.python_version = report->python_version;
    question.blocks = blocks;
    question.block_count = count;
    question.known = (const struct seep_held_block *)report->known_blocks.items;
    question.known_count = report->known_blocks.count;
    if (ask->core_path == NULL) {
        question.still_live = seep_held_pins_still_live;
        question.context = (void *)(uintptr_t)whom;
    }
    error = seep_held_ask(&question, ret_answer);
    if (error == 0) {
        seep_members_name(ask, *ret_answer);
    }
    if (is_limited) {
        setrlimit(RLIMIT_DATA, &before);
    }
    return error;
}

/* Where hardly one was not recorded, there is nothing to ask. */
static int ask_about(const struct seep_ask *ask,
                     const struct seep_report *report,
                     const struct seep_held_question *whom,
                     const struct seep_held_pins *found,
                     struct seep_store *store, struct seep_held_kept_pins *pins,
                     struct seep_held_answer **ret_answer)
{
    struct seep_held_block *others = calloc(found->count + 1, sizeof(*others));
    size_t count = 0;
    int error = others == NULL
                    ? -ENOMEM
                    : sum_up(report, found, store, pins, others, &count);

    if (error == 0 && count >= SEEP_WORDS_HELD_LEAST &&
        2 * count >= found->count) {
        error = ask_holders(ask, report, whom, others, thin_out(others, count),
                            ret_answer);
    }
    free(others);
    return error;
}

/* The recording is read after the heap: what it says lives was there. */
static int ask_recorded(const struct seep_ask *ask, const char *path,
                        const struct seep_held_question *whom,
                        const struct seep_held_pins *found,
                        struct seep_store *store,
                        struct seep_held_kept_pins *ret_pins,
                        struct seep_held_answer **ret_answer)
{
    const struct seep_report_options all = {
        .by = SEEP_BY_LINE,
        .symbols = true,
        .block_limit = 1,
    };
    struct seep_report *report;
    int error = seep_report_open(path, &all, NULL, &report);

    if (error < 0) {
        return error;
    }
    *ret_pins = (struct seep_held_kept_pins){
        .asked_s = report->life_s,
        .free_bytes = (uint64_t)free_bytes_of(report),
        .piece_count = found->piece_count,
        .piece_bytes = found->piece_bytes,
        .pin_count = found->pin_count,
        .pin_bytes = found->pin_bytes,
        .apart_bytes = found->apart_bytes,
    };
    error = ask_about(ask, report, whom, found, store, ret_pins, ret_answer);
    seep_report_close(report);
    return error;
}

int seep_pins_ask(const struct seep_ask *ask, const char *path,
                  struct seep_store *store,
                  struct seep_held_kept_pins *ret_pins,
                  struct seep_held_answer **ret_answer)
{
    struct seep_held_question whom = {
        .pid = ask->pid,
        .core_path = ask->core_path,
        .memory_fd = ask->memory_fd,
        .cpu_limit_s = ask->cpu_limit_s,
    };
    struct seep_held_kept_pins pins = {0};
    struct seep_held_pins found = {0};
    struct seep_held_answer *answer = NULL;
    struct stat status;
    int error;

    if (stat(path, &status) == 0) {
        whom.recording_inode = status.st_ino;
    }
    error = seep_held_pins_find(&whom, &found);
    if (error == 0) {
        error = ask_recorded(ask, path, &whom, &found, store, &pins, &answer);
    }
    seep_held_pins_fini(&found);
    if (error < 0) {
        seep_held_close(answer);
        return error;
    }
    pins.answer = answer;
    *ret_pins = pins;
    *ret_answer = answer;
    return 0;
}
