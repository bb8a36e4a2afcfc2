/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who holds what, as a document. Invariant: as in words/held.c, no key of a
 * dict that is data.
 */
#include <stdlib.h>
#include <string.h>

#include "held/kept.h"
#include "words/held.h"
#include "words/words.h"
#include "json/json.h"

static void put_freed(json_t *object, const char *key, char *text)
{
    seep_json_put_text_or_null(object, key, text == NULL ? "" : text);
    free(text);
}

static json_t *step_of(const struct seep_held_step *step)
{
    json_t *object = json_object();
    seep_json_put(object, "by", seep_held_edge_name(step->edge));
    seep_json_put_text_or_null(object, "by_name",
                               seep_held_is_data(step) ? "" : step->edge_name);
    seep_json_put_text_or_null(object, "by_function", step->edge_function);
    seep_json_put(object, "offset_bytes", (double)step->offset_bytes);
    seep_json_put(object, "kind", seep_held_kind_name(step->kind));
    seep_json_put_text_or_null(object, "name", step->name);
    seep_json_put_text_or_null(object, "function", step->function);
    seep_json_put_text_or_null(object, "file", step->file);
    seep_json_put(object, "address", seep_json_address(step->address));
    seep_json_put(object, "bytes", step->bytes);
    if (step->has_items) {
        seep_json_put(object, "items", step->items);
    } else {
        seep_json_put(object, "items", json_null());
    }
    return object;
}

static json_t *group_of(const struct seep_held_group *group, size_t asked_count)
{
    json_t *object = json_object();
    json_t *steps = json_array();

    seep_json_put(object, "end", seep_held_end_name(group->end));
    seep_json_put(object, "blocks", group->block_count);
    seep_json_put(object, "share",
                  (double)group->block_count / (double)asked_count);
    put_freed(object, "sentence", seep_words_held(group));
    put_freed(object, "holder", seep_words_holder(group));
    put_freed(object, "chain", seep_words_held_chain(group));
    seep_json_put_text_or_null(object, "remedy", seep_words_held_remedy(group));
    for (size_t i = 0; i < group->step_count; i++) {
        json_array_append_new(steps, step_of(&group->steps[i]));
    }
    seep_json_put(object, "steps", steps);
    if (group->holder < group->step_count) {
        seep_json_put(object, "holder_step", group->holder);
    } else {
        seep_json_put(object, "holder_step", json_null());
    }
    return object;
}

json_t *seep_json_held(const struct seep_held_answer *answer)
{
    json_t *object;
    json_t *groups;

    if (answer == NULL) {
        return json_null();
    }
    object = json_object();
    groups = json_array();
    seep_json_put(object, "asked", answer->asked_count);
    for (size_t i = 0; i < answer->group_count; i++) {
        json_array_append_new(
            groups, group_of(&answer->groups[i], answer->asked_count));
    }
    seep_json_put(object, "groups", groups);
    seep_json_put(object, "levels", answer->level_count);
    seep_json_put(object, "level_bytes", answer->level_bytes);
    seep_json_put(object, "swapped_bytes", answer->swapped_bytes);
    seep_json_put(object, "failed_bytes", answer->failed_bytes);
    seep_json_put(object, "elapsed_s", answer->elapsed_s);
    seep_json_put(object, "cpu_s", answer->cpu_s);
    seep_json_put(object, "frozen_s", answer->frozen_s);
    seep_json_put(object, "cpu_limit_s", answer->cpu_limit_s);
    seep_json_put(object, "cut_short", answer->was_cut_short);
    seep_json_put(object, "out_of_time", answer->was_late);
    return object;
}

json_t *seep_json_kept(const struct seep_report_site *site)
{
    const struct seep_held_kept *kept = site->held;
    json_t *object;

    if (kept == NULL) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "outcome", seep_held_outcome_name(kept->outcome));
    put_freed(object, "line", seep_words_held_line(kept, site->live_bytes));
    seep_json_put(object, "asked_s", kept->asked_s);
    seep_json_put(object, "asked_live_bytes", kept->live_bytes);
    seep_json_put(object, "answer", seep_json_held(kept->answer));
    return object;
}

int seep_json_held_rows(FILE *file, const struct seep_report *report,
                        const struct seep_json_held_row *rows, size_t count)
{
    json_t *document = json_object();
    json_t *sites = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct seep_report_site *site = rows[i].site;
        json_t *object = json_object();

        SEEP_JSON_COPY(object, site, id, where, live_bytes);
        seep_json_put(object, "space", seep_words_space(site->space));
        seep_json_put(object, "class", seep_class_name(site->class));
        seep_json_put(object, "blocks_known", site->block_total);
        seep_json_put(object, "held", seep_json_held(rows[i].answer));
        json_array_append_new(sites, object);
    }
    seep_json_put(document, "schema", "seep-held/1");
    seep_json_put(document, "pid", report->pid);
    seep_json_put(document, "recording", report->path);
    seep_json_put(document, "sites", sites);
    return seep_json_print(file, document);
}
