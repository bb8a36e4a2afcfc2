/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * RECORDING.held, written and read: see kept.h.
 *
 * Invariant: an answer that was read is one that seep_held_ask() could have
 * given: at least one group where blocks were asked about, no more blocks in
 * the groups than were, a holder that is one of the steps or none.
 */
#include "held/kept.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "reader/process/beside.h"
#include "reader/recording/pack.h"

#define GROUPS_MOST 64U
#define STEPS_MOST 64U
#define BLOCKS_MOST 65536
#define TEXT_BYTES_MOST 1024U
#define BYTES_MOST ((json_int_t)1 << 55)
#define TIME_S_MOST 1e11

static const struct seep_beside_kind kind = {
    .suffix = SEEP_HELD_SUFFIX,
    .schema = "seep-held-kept/1",
    .file_bytes_most = (size_t)16 << 20,
    .line_bytes_most = (size_t)1 << 20,
};

static const char *const edges[] = {
#define EDGE_NAME(symbol, name) name,
    SEEP_HELD_EDGES(EDGE_NAME)
#undef EDGE_NAME
};
static const char *const kinds[] = {
#define KIND_NAME(symbol, name) name,
    SEEP_HELD_KINDS(KIND_NAME)
#undef KIND_NAME
};
static const char *const ends[] = {
#define END_NAME(symbol, name) name,
    SEEP_HELD_ENDS(END_NAME)
#undef END_NAME
};
static const char *const outcomes[] = {
#define OUTCOME_NAME(symbol, name) name,
    SEEP_HELD_OUTCOMES(OUTCOME_NAME)
#undef OUTCOME_NAME
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const char *seep_held_edge_name(enum seep_held_edge edge)
{
    return edges[edge];
}

const char *seep_held_kind_name(enum seep_held_kind thing)
{
    return kinds[thing];
}

const char *seep_held_end_name(enum seep_held_end end)
{
    return ends[end];
}

const char *seep_held_outcome_name(enum seep_held_outcome outcome)
{
    return outcomes[outcome];
}

/* Figures of an answer, and of a step, in the order of the file. */
struct figure {
    const char *key;
    size_t offset;
};

#define PINS(member) offsetof(struct seep_held_kept_pins, member)
#define ANSWER(member) offsetof(struct seep_held_answer, member)
#define STEP(member) offsetof(struct seep_held_step, member)

static const struct figure answer_sizes[] = {
    {"level_bytes", ANSWER(level_bytes)},
    {"swapped_bytes", ANSWER(swapped_bytes)},
    {"failed_bytes", ANSWER(failed_bytes)},
    {NULL, 0},
};
static const struct figure answer_times[] = {
    {"elapsed_s", ANSWER(elapsed_s)},
    {"cpu_s", ANSWER(cpu_s)},
    {"frozen_s", ANSWER(frozen_s)},
    {"cpu_limit_s", ANSWER(cpu_limit_s)},
    {NULL, 0},
};
static const struct figure pins_sizes[] = {
    {"free_bytes", PINS(free_bytes)},
    {"piece_count", PINS(piece_count)},
    {"piece_bytes", PINS(piece_bytes)},
    {"pin_count", PINS(pin_count)},
    {"pin_bytes", PINS(pin_bytes)},
    {"known_count", PINS(known_count)},
    {NULL, 0},
};
static const struct figure step_sizes[] = {
    {"bytes", STEP(bytes)},
    {NULL, 0},
};
static const struct figure step_texts[] = {
    {"by_name", STEP(edge_name)}, {"by_function", STEP(edge_function)},
    {"name", STEP(name)},         {"function", STEP(function)},
    {"file", STEP(file)},         {NULL, 0},
};

#define AT(pointer, type, figure) \
    (*(type *)(void *)((char *)(uintptr_t)(pointer) + (figure)->offset))

/* Written. */

static void put_sizes(json_t *object, const struct figure *figure,
                      const void *from)
{
    for (; figure->key != NULL; figure++) {
        json_object_set_new(
            object, figure->key,
            json_integer((json_int_t)AT(from, uint64_t, figure)));
    }
}

static json_t *make_step(const struct seep_held_step *step)
{
    struct seep_held_step shown = *step;
    char address[24];
    json_t *object;

    if (seep_held_is_data(step)) {
        shown.edge_name = "";
    }
    snprintf(address, sizeof(address), "%" PRIx64, step->address);
    object = json_pack("{s:s, s:s, s:I, s:s}", "by", edges[step->edge], "kind",
                       kinds[step->kind], "offset_bytes",
                       (json_int_t)step->offset_bytes, "address", address);
    for (const struct figure *text = step_texts; text->key != NULL; text++) {
        const char *value = AT(&shown, const char *, text);

        if (*value != '\0') {
            json_object_set_new(object, text->key, seep_beside_text(value));
        }
    }
    put_sizes(object, step_sizes, step);
    if (step->has_items) {
        json_object_set_new(object, "items",
                            json_integer((json_int_t)step->items));
    }
    return object;
}

static json_t *make_group(const struct seep_held_group *group)
{
    json_t *steps = json_array();
    json_t *object =
        json_pack("{s:s, s:I, s:b, s:b}", "end", ends[group->end], "blocks",
                  (json_int_t)group->block_count, "shares_edge",
                  group->shares_edge, "is_object", group->is_object);

    for (size_t i = 0; i < group->step_count; i++) {
        json_array_append_new(steps, make_step(&group->steps[i]));
    }
    json_object_set_new(object, "steps", steps);
    if (group->holder < group->step_count) {
        json_object_set_new(object, "holder_step",
                            json_integer((json_int_t)group->holder));
    }
    if (group->call_count > 1) {
        json_object_set_new(object, "calls",
                            json_integer((json_int_t)group->call_count));
    }
    return object;
}

static void put_answer(json_t *object, const struct seep_held_answer *answer)
{
    json_t *groups = json_array();

    for (size_t i = 0; i < answer->group_count && i < GROUPS_MOST; i++) {
        json_array_append_new(groups, make_group(&answer->groups[i]));
    }
    json_object_set_new(object, "asked",
                        json_integer((json_int_t)answer->asked_count));
    json_object_set_new(object, "groups", groups);
    json_object_set_new(object, "levels", json_integer(answer->level_count));
    json_object_set_new(object, "tries", json_integer(answer->try_count));
    put_sizes(object, answer_sizes, answer);
    for (const struct figure *time = answer_times; time->key != NULL; time++) {
        json_object_set_new(object, time->key,
                            json_real(AT(answer, double, time)));
    }
    json_object_set_new(object, "cut_short",
                        json_boolean(answer->was_cut_short));
    json_object_set_new(object, "out_of_time", json_boolean(answer->was_late));
}

static json_t *make_entry(const struct seep_held_kept *kept)
{
    json_t *object = json_pack(
        "{s:o, s:I, s:f, s:I, s:s}", "site", seep_beside_text(kept->site_id),
        "stack", (json_int_t)kept->stack, "asked_s", kept->asked_s,
        "live_bytes", (json_int_t)kept->live_bytes, "outcome",
        outcomes[kept->outcome]);

    if (kept->answer != NULL) {
        put_answer(object, kept->answer);
    }
    return object;
}

/* In the place of "site" it has "pins", the sites of these. */
static json_t *make_pins(const struct seep_held_kept_pins *pins)
{
    json_t *sites = json_array();
    json_t *object = json_pack("{s:f, s:f, s:f}", "asked_s", pins->asked_s,
                               "apart_bytes", pins->apart_bytes,
                               "known_apart_bytes", pins->known_apart_bytes);

    for (size_t i = 0; i < pins->site_count; i++) {
        const struct seep_held_pin_site *site = &pins->sites[i];

        json_array_append_new(sites,
                              json_pack("{s:o, s:o, s:I, s:f}", "site",
                                        seep_beside_text(site->site_id),
                                        "where", seep_beside_text(site->where),
                                        "blocks", (json_int_t)site->pin_count,
                                        "apart_bytes", site->apart_bytes));
    }
    put_sizes(object, pins_sizes, pins);
    json_object_set_new(object, "pins", sites);
    if (pins->answer != NULL) {
        put_answer(object, pins->answer);
    }
    return object;
}

int seep_held_book_print(FILE *file, const char *recording_path,
                         const struct seep_held_book *book)
{
    int error =
        seep_beside_put_line(file, seep_beside_header(&kind, recording_path));

    for (size_t i = 0; error == 0 && i < book->count; i++) {
        error = seep_beside_put_line(file, make_entry(&book->entries[i]));
    }
    if (error == 0 && book->pins != NULL) {
        error = seep_beside_put_line(file, make_pins(book->pins));
    }
    return error;
}

static int print(FILE *file, const char *recording_path, const void *book)
{
    return seep_held_book_print(file, recording_path, book);
}

int seep_held_book_write(const char *recording_path,
                         const struct seep_held_book *book)
{
    return seep_beside_write(&kind, recording_path, print, book);
}

/* Read. Each takes from @object, and is false for what cannot be. */

static bool take_name(const json_t *object, const char *key,
                      const char *const *names, size_t count, int *ret_value)
{
    const char *name = json_string_value(json_object_get(object, key));

    for (size_t i = 0; name != NULL && i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_value = (int)i;
            return true;
        }
    }
    return false;
}

static bool take_integer(const json_t *object, const char *key, json_int_t most,
                         json_int_t *ret_value)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL) {
        *ret_value = 0;
        return true;
    }
    *ret_value = json_integer_value(value);
    return json_is_integer(value) && *ret_value >= 0 && *ret_value <= most;
}

static bool take_sizes(const json_t *object, const struct figure *figure,
                       void *to)
{
    for (; figure->key != NULL; figure++) {
        json_int_t value;

        if (!take_integer(object, figure->key, BYTES_MOST, &value)) {
            return false;
        }
        AT(to, uint64_t, figure) = (uint64_t)value;
    }
    return true;
}

static bool take_time(const json_t *object, const char *key, double *ret_value)
{
    const json_t *value = json_object_get(object, key);

    *ret_value = json_number_value(value);
    return value == NULL || (json_is_number(value) && *ret_value >= 0 &&
                             *ret_value <= TIME_S_MOST);
}

static bool take_texts(const json_t *object, struct seep_held_step *step,
                       struct seep_store *store)
{
    for (const struct figure *text = step_texts; text->key != NULL; text++) {
        const json_t *value = json_object_get(object, text->key);
        const char *copy;

        if (value != NULL && !json_is_string(value)) {
            return false;
        }
        copy = value == NULL
                   ? ""
                   : seep_store_text_most(store, json_string_value(value),
                                          TEXT_BYTES_MOST);
        if (copy == NULL) {
            return false;
        }
        AT(step, const char *, text) = copy;
    }
    return true;
}

static bool take_step(const json_t *object, struct seep_held_step *step,
                      struct seep_store *store)
{
    const char *address = json_string_value(json_object_get(object, "address"));
    const json_t *offset = json_object_get(object, "offset_bytes");
    json_int_t items;
    int edge;
    int thing;

    if (!take_name(object, "by", edges, COUNT_OF(edges), &edge) ||
        !take_name(object, "kind", kinds, COUNT_OF(kinds), &thing) ||
        !take_integer(object, "items", BYTES_MOST, &items) ||
        !take_sizes(object, step_sizes, step) ||
        !take_texts(object, step, store)) {
        return false;
    }
    step->edge = (enum seep_held_edge)edge;
    step->kind = (enum seep_held_kind)thing;
    step->offset_bytes = json_integer_value(offset);
    step->address = address == NULL ? 0 : strtoull(address, NULL, 16);
    step->items = (uint64_t)items;
    step->has_items = json_object_get(object, "items") != NULL;
    if (seep_held_is_data(step)) {
        step->edge_name = "";
    }
    return true;
}

static bool take_steps(const json_t *array, struct seep_held_group *group,
                       struct seep_store *store)
{
    size_t count = json_array_size(array);
    struct seep_held_step *steps;

    if (!json_is_array(array) || count > STEPS_MOST) {
        return false;
    }
    steps = seep_store_take(store, count + 1, sizeof(*steps));
    for (size_t i = 0; steps != NULL && i < count; i++) {
        if (!take_step(json_array_get(array, i), &steps[i], store)) {
            return false;
        }
    }
    group->steps = steps;
    group->step_count = count;
    return steps != NULL;
}

static bool take_group(const json_t *object, struct seep_held_group *group,
                       struct seep_store *store)
{
    json_int_t blocks;
    json_int_t holder;
    json_int_t calls;
    int end;

    if (!take_name(object, "end", ends, COUNT_OF(ends), &end) ||
        !take_integer(object, "blocks", BLOCKS_MOST, &blocks) ||
        !take_integer(object, "holder_step", STEPS_MOST, &holder) ||
        !take_integer(object, "calls", blocks, &calls) ||
        !take_steps(json_object_get(object, "steps"), group, store)) {
        return false;
    }
    group->end = (enum seep_held_end)end;
    group->block_count = (size_t)blocks;
    group->call_count = (size_t)calls;
    group->shares_edge = json_is_true(json_object_get(object, "shares_edge"));
    group->is_object = json_is_true(json_object_get(object, "is_object"));
    group->holder = group->step_count;
    if (json_object_get(object, "holder_step") != NULL) {
        if ((size_t)holder >= group->step_count) {
            return false;
        }
        group->holder = (size_t)holder;
    }
    return true;
}

static bool take_groups(const json_t *array, struct seep_held_answer *answer,
                        struct seep_store *store)
{
    size_t count = json_array_size(array);
    struct seep_held_group *groups;
    size_t blocks = 0;

    if (!json_is_array(array) || count > GROUPS_MOST) {
        return false;
    }
    groups = seep_store_take(store, count + 1, sizeof(*groups));
    for (size_t i = 0; groups != NULL && i < count; i++) {
        if (!take_group(json_array_get(array, i), &groups[i], store)) {
            return false;
        }
        blocks += groups[i].block_count;
    }
    answer->groups = groups;
    answer->group_count = count;
    return groups != NULL && blocks <= answer->asked_count &&
           (count > 0) == (answer->asked_count > 0);
}

static bool take_answer(const json_t *object,
                        const struct seep_held_answer **ret_answer,
                        struct seep_store *store)
{
    struct seep_held_answer *answer =
        seep_store_take(store, 1, sizeof(*answer));
    json_int_t asked;
    json_int_t levels;
    json_int_t tries;

    if (answer == NULL || !take_integer(object, "asked", BLOCKS_MOST, &asked) ||
        !take_integer(object, "levels", BLOCKS_MOST, &levels) ||
        !take_integer(object, "tries", BLOCKS_MOST, &tries) ||
        !take_sizes(object, answer_sizes, answer)) {
        return false;
    }
    answer->asked_count = (size_t)asked;
    answer->level_count = (uint32_t)levels;
    answer->try_count = (uint32_t)tries;
    answer->was_cut_short = json_is_true(json_object_get(object, "cut_short"));
    answer->was_late = json_is_true(json_object_get(object, "out_of_time"));
    for (const struct figure *time = answer_times; time->key != NULL; time++) {
        if (!take_time(object, time->key, &AT(answer, double, time))) {
            return false;
        }
    }
    *ret_answer = answer;
    return take_groups(json_object_get(object, "groups"), answer, store);
}

static bool take_entry(const json_t *object, struct seep_held_kept *kept,
                       struct seep_store *store)
{
    const char *site = json_string_value(json_object_get(object, "site"));
    json_int_t live;
    json_int_t stack;
    int outcome;

    if (site == NULL || !take_integer(object, "stack", UINT32_MAX, &stack) ||
        !take_time(object, "asked_s", &kept->asked_s) ||
        !take_integer(object, "live_bytes", BYTES_MOST, &live) ||
        !take_name(object, "outcome", outcomes, COUNT_OF(outcomes), &outcome)) {
        return false;
    }
    kept->site_id = seep_store_text_most(store, site, TEXT_BYTES_MOST);
    kept->stack = (uint32_t)stack;
    kept->live_bytes = (uint64_t)live;
    kept->outcome = (enum seep_held_outcome)outcome;
    return kept->site_id != NULL && (outcome != SEEP_HELD_OUTCOME_ANSWERED ||
                                     take_answer(object, &kept->answer, store));
}

static bool take_bytes(const json_t *object, const char *key, double *ret_value)
{
    const json_t *value = json_object_get(object, key);

    *ret_value = json_number_value(value);
    return json_is_number(value) && *ret_value >= 0 &&
           *ret_value <= (double)BYTES_MOST;
}

static bool take_pin_site(const json_t *object, struct seep_held_pin_site *site,
                          struct seep_store *store)
{
    const char *id = json_string_value(json_object_get(object, "site"));
    const char *where = json_string_value(json_object_get(object, "where"));
    json_int_t blocks;

    if (id == NULL || where == NULL ||
        !take_integer(object, "blocks", BYTES_MOST, &blocks) ||
        !take_bytes(object, "apart_bytes", &site->apart_bytes)) {
        return false;
    }
    site->site_id = seep_store_text_most(store, id, TEXT_BYTES_MOST);
    site->where = seep_store_text_most(store, where, TEXT_BYTES_MOST);
    site->pin_count = (uint64_t)blocks;
    return site->site_id != NULL && site->where != NULL;
}

static bool take_pin_sites(const json_t *array,
                           struct seep_held_kept_pins *pins,
                           struct seep_store *store)
{
    size_t count = json_array_size(array);
    struct seep_held_pin_site *sites;
    uint64_t blocks = 0;

    if (!json_is_array(array) || count > SEEP_HELD_PIN_SITES_MOST) {
        return false;
    }
    sites = seep_store_take(store, count + 1, sizeof(*sites));
    for (size_t i = 0; sites != NULL && i < count; i++) {
        if (!take_pin_site(json_array_get(array, i), &sites[i], store)) {
            return false;
        }
        blocks += sites[i].pin_count;
    }
    pins->sites = sites;
    pins->site_count = count;
    return sites != NULL && blocks <= pins->known_count;
}

static bool take_pins(const json_t *object, struct seep_store *store,
                      const struct seep_held_kept_pins **ret_pins)
{
    struct seep_held_kept_pins *pins = seep_store_take(store, 1, sizeof(*pins));

    if (pins == NULL || !take_time(object, "asked_s", &pins->asked_s) ||
        !take_bytes(object, "apart_bytes", &pins->apart_bytes) ||
        !take_bytes(object, "known_apart_bytes", &pins->known_apart_bytes) ||
        !take_sizes(object, pins_sizes, pins) ||
        pins->known_count > pins->pin_count ||
        !take_pin_sites(json_object_get(object, "pins"), pins, store)) {
        return false;
    }
    *ret_pins = pins;
    return json_object_get(object, "asked") == NULL ||
           take_answer(object, &pins->answer, store);
}

int seep_held_book_parse(const char *bytes, size_t length,
                         const char *recording_path, struct seep_store *store,
                         struct seep_held_book *ret_book)
{
    struct seep_beside_lines lines = {bytes, bytes + length};
    struct seep_held_kept *entries =
        seep_store_take(store, SEEP_HELD_KEPT_MOST, sizeof(*entries));
    const struct seep_held_kept_pins *pins = NULL;
    size_t count = 0;
    json_t *object;
    int error = entries == NULL
                    ? -ENOMEM
                    : seep_beside_check(&kind, &lines, recording_path);

    while (error == 0 &&
           (error = seep_beside_next(&kind, &lines, &object)) > 0) {
        bool is_fine;

        if (json_object_get(object, "pins") != NULL) {
            is_fine = pins == NULL && take_pins(object, store, &pins);
        } else {
            is_fine = count < SEEP_HELD_KEPT_MOST &&
                      take_entry(object, &entries[count], store);
            count++;
        }
        error = is_fine ? 0 : -EBADMSG;
        json_decref(object);
    }
    if (error < 0) {
        return error;
    }
    *ret_book = (struct seep_held_book){entries, count, pins};
    return 0;
}

int seep_held_book_read(const char *recording_path, struct seep_store *store,
                        struct seep_held_book *ret_book)
{
    char *bytes = NULL;
    size_t length = 0;
    int error = seep_beside_read(&kind, recording_path, &bytes, &length);

    if (error == 0) {
        error = seep_held_book_parse(bytes, length, recording_path, store,
                                     ret_book);
    }
    free(bytes);
    return error;
}

int seep_held_book_read_of(const char *recording_path,
                           const struct seep_packed *packed,
                           struct seep_store *store,
                           struct seep_held_book *ret_book)
{
    const struct seep_pack_part *part;
    void *text;
    int error;

    if (packed->pack == NULL) {
        return seep_held_book_read(recording_path, store, ret_book);
    }
    part = seep_pack_find(packed->pack, SEEP_PACK_HELD, packed->process);
    error =
        part == NULL ? -ENOENT : seep_pack_inflate(packed->pack, part, &text);
    if (error == 0) {
        error = seep_held_book_parse(text, part->bytes, "", store, ret_book);
        free(text);
    }
    return error;
}

/* What is known. */

const struct seep_held_kept *
seep_held_book_find(const struct seep_held_book *book, const char *site_id)
{
    for (size_t i = 0; *site_id != '\0' && i < book->count; i++) {
        if (strcmp(book->entries[i].site_id, site_id) == 0) {
            return &book->entries[i];
        }
    }
    return NULL;
}

const struct seep_held_kept *
seep_held_book_find_stack(const struct seep_held_book *book,
                          const uint32_t *stacks, size_t stack_count)
{
    for (size_t i = 0; i < book->count; i++) {
        for (size_t k = 0; book->entries[i].stack != 0 && k < stack_count;
             k++) {
            if (book->entries[i].stack == stacks[k]) {
                return &book->entries[i];
            }
        }
    }
    return NULL;
}

int seep_held_book_put(struct seep_held_book *book,
                       const struct seep_held_kept *kept,
                       struct seep_store *store)
{
    struct seep_held_kept *entries =
        seep_store_take(store, SEEP_HELD_KEPT_MOST, sizeof(*entries));
    size_t count = 0;
    size_t first = 0;

    if (entries == NULL) {
        return -ENOMEM;
    }
    if (seep_held_book_find(book, kept->site_id) == NULL &&
        book->count == SEEP_HELD_KEPT_MOST) {
        first = 1;
    }
    for (size_t i = first; i < book->count; i++) {
        if (strcmp(book->entries[i].site_id, kept->site_id) != 0) {
            entries[count++] = book->entries[i];
        }
    }
    entries[count++] = *kept;
    book->entries = entries;
    book->count = count;
    return 0;
}
