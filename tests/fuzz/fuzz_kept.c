/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for RECORDING.held: answers that were kept, which anybody
 * may have written.
 *
 * Invariant: what was taken is an answer that could have been given: no more
 * blocks in its groups than were asked about, a holder on the way or none; it
 * is the same when it is written and read again; it has words, and no key of a
 * dict that is data is among them; and of rows that have these answers none is
 * put together twice.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "held/kept.h"
#include "words/common.h"
#include "words/held.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_group(const struct seep_held_group *group)
{
    char *texts[] = {seep_words_held(group), seep_words_holder(group),
                     seep_words_held_chain(group)};

    if (group->holder > group->step_count ||
        group->end >= SEEP_HELD_END_COUNT ||
        seep_words_held_remedy(group) == NULL) {
        abort();
    }
    for (size_t i = 0; i < group->step_count; i++) {
        const struct seep_held_step *step = &group->steps[i];

        if (step->edge >= SEEP_HELD_EDGE_COUNT ||
            step->kind >= SEEP_HELD_KIND_COUNT ||
            (seep_held_is_data(step) && *step->edge_name != '\0')) {
            abort();
        }
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i] == NULL) {
            abort();
        }
        free(texts[i]);
    }
}

static void check_entry(const struct seep_held_kept *kept)
{
    const struct seep_held_answer *answer = kept->answer;
    size_t blocks = 0;

    if ((kept->outcome == SEEP_HELD_OUTCOME_ANSWERED) != (answer != NULL)) {
        abort();
    }
    for (size_t i = 0; answer != NULL && i < answer->group_count; i++) {
        blocks += answer->groups[i].block_count;
        check_group(&answer->groups[i]);
    }
    if (answer != NULL &&
        (blocks > answer->asked_count ||
         (answer->asked_count > 0) != (answer->group_count > 0))) {
        abort();
    }
    free(seep_words_held_line(kept, kept->live_bytes));
    free(seep_words_held_advice(kept));
    json_decref(seep_json_held(answer));
}

/* As if each had come to a row that leaks. */
static void check_together(const struct seep_held_book *book)
{
    static struct seep_report_site sites[SEEP_HELD_KEPT_MOST];
    const struct seep_report report = {.sites = sites,
                                       .site_count = book->count};
    struct seep_words_commons commons;
    size_t count = 0;

    for (size_t i = 0; i < book->count; i++) {
        sites[i] = (struct seep_report_site){.class = SEEP_CLASS_LEAK,
                                             .held = &book->entries[i]};
        snprintf(sites[i].id, sizeof(sites[i].id), "%s",
                 book->entries[i].site_id);
    }
    if (seep_words_commons_make(&report, &commons) != 0) {
        abort();
    }
    for (size_t i = 0; i < commons.count; i++) {
        count += commons.list[i].site_count;
        if (commons.list[i].site_count < 2) {
            abort();
        }
    }
    if (count > book->count) {
        abort();
    }
    seep_words_commons_fini(&commons);
    json_decref(seep_json_held_together(&report));
}

/* As if it had come to a process whose free memory grows. */
static void check_pins(const struct seep_held_book *book)
{
    struct seep_report report = {
        .verdict = {.class = SEEP_VERDICT_RETENTION,
                    .has_growth = true,
                    .device = -1},
        .memory = {.allocator = SEEP_ALLOCATOR_GLIBC},
        .pins = book->pins,
    };
    uint64_t blocks = 0;

    for (size_t i = 0; book->pins != NULL && i < book->pins->site_count; i++) {
        blocks += book->pins->sites[i].pin_count;
    }
    if (book->pins != NULL &&
        (blocks > book->pins->known_count ||
         book->pins->known_count > book->pins->pin_count)) {
        abort();
    }
    json_decref(seep_json_pins(&report));
}

static char *text_of(const struct seep_held_book *book, size_t *length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, length);

    if (file == NULL || seep_held_book_print(file, "", book) != 0 ||
        fclose(file) != 0) {
        abort();
    }
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seep_store store = {0};
    struct seep_held_book book;
    struct seep_held_book again;
    size_t length = 0;
    size_t length_again = 0;
    char *text;
    char *text_again;

    if (seep_held_book_parse((const char *)data, size, "", &store, &book) ==
        0) {
        for (size_t i = 0; i < book.count; i++) {
            check_entry(&book.entries[i]);
        }
        check_together(&book);
        check_pins(&book);
        text = text_of(&book, &length);
        if (seep_held_book_parse(text, length, "", &store, &again) != 0) {
            abort();
        }
        text_again = text_of(&again, &length_again);
        if (length != length_again || memcmp(text, text_again, length) != 0) {
            abort();
        }
        free(text);
        free(text_again);
    }
    seep_store_fini(&store);
    return 0;
}
