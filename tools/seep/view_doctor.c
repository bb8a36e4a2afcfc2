/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the checks found, for people and for machines: the answer, a row for
 * each finding, the next step.
 */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "json_out.h"
#include "json_parts.h"

#define INDENT 18

static enum seep_ink ink_of(enum seep_doctor_level level)
{
    return level == SEEP_DOCTOR_NO       ? SEEP_INK_BAD
           : level == SEEP_DOCTOR_WARN   ? SEEP_INK_WARNING
           : level == SEEP_DOCTOR_ABSENT ? SEEP_INK_FAINT
                                         : SEEP_INK_PLAIN;
}

static enum seep_doctor_level worst_of(const struct seep_doctor *doctor)
{
    return seep_doctor_count(doctor, SEEP_DOCTOR_NO) > 0     ? SEEP_DOCTOR_NO
           : seep_doctor_count(doctor, SEEP_DOCTOR_WARN) > 0 ? SEEP_DOCTOR_WARN
                                                             : SEEP_DOCTOR_OK;
}

static void print_finding(struct seep_page *page,
                          const struct seep_doctor_finding *finding)
{
    char label[INDENT + 8];

    snprintf(label, sizeof(label), " %-5s %-10s",
             finding->level == SEEP_DOCTOR_ABSENT
                 ? "-"
                 : seep_doctor_level_name(finding->level),
             finding->check);
    seep_page_paragraph(page, ink_of(finding->level), label, INDENT, "%s",
                        finding->reason);
    if (finding->remedy != NULL) {
        seep_page_paragraph(page, SEEP_INK_FAINT, "                  > ",
                            INDENT + 2, "%s", finding->remedy);
    }
}

/* What to do first about what is in the way; else how to begin. */
static void print_next(struct seep_page *page,
                       const struct seep_doctor_facts *facts,
                       const struct seep_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        if (doctor->findings[i].level == SEEP_DOCTOR_NO) {
            seep_page_paragraph(page, SEEP_INK_STRONG, " next", 8, "%s: %s",
                                doctor->findings[i].check,
                                doctor->findings[i].remedy == NULL
                                    ? "see its row"
                                    : doctor->findings[i].remedy);
            return;
        }
    }
    seep_page_paragraph(page, SEEP_INK_STRONG, " next", 8, "seep run -- %s",
                        facts->command == NULL ? "python3 serve.py"
                                               : facts->command[0]);
}

/* The answer itself stands out, what follows it does not. */
static void print_sentence(struct seep_page *page, enum seep_ink ink,
                           const char *sentence)
{
    size_t length = strcspn(sentence, ",:");
    char *answer;

    if (sentence[length] != '\0') {
        length += sentence[length + 1] == ' ' ? 2U : 1U;
    }
    answer = strndup(sentence, length);
    if (answer != NULL) {
        seep_page_paragraph(page, ink, answer, 2, "%s", sentence + length);
        free(answer);
    }
}

void seep_view_doctor(struct seep_page *page,
                      const struct seep_doctor_facts *facts,
                      const struct seep_doctor *doctor)
{
    enum seep_doctor_level worst = worst_of(doctor);
    char *sentence = seep_doctor_sentence(facts, doctor);

    print_sentence(page,
                   worst == SEEP_DOCTOR_OK ? SEEP_INK_GOOD : ink_of(worst),
                   sentence == NULL ? "?" : sentence);
    free(sentence);
    for (size_t i = 0; i < doctor->count; i++) {
        print_finding(page, &doctor->findings[i]);
    }
    print_next(page, facts, doctor);
}

static json_t *finding_of(const struct seep_doctor_finding *finding)
{
    json_t *object = json_object();

    seep_json_put(object, "check", json_string(finding->check));
    seep_json_put(object, "level",
                  json_string(seep_doctor_level_name(finding->level)));
    seep_json_put(object, "reason", seep_json_text(finding->reason));
    seep_json_put(object, "remedy",
                  finding->remedy == NULL ? json_null()
                                          : seep_json_text(finding->remedy));
    return object;
}

int seep_view_doctor_json(FILE *file, const struct seep_doctor_facts *facts,
                          const struct seep_doctor *doctor)
{
    struct seep_json_out out = {.file = file};
    json_t *document = json_object();
    json_t *checks = json_array();
    char *sentence = seep_doctor_sentence(facts, doctor);

    for (size_t i = 0; i < doctor->count; i++) {
        json_array_append_new(checks, finding_of(&doctor->findings[i]));
    }
    seep_json_put(document, "schema", json_string("seep-doctor/1"));
    seep_json_put(document, "version", json_string(SEEP_VERSION));
    seep_json_put(document, "works",
                  json_boolean(worst_of(doctor) != SEEP_DOCTOR_NO));
    seep_json_put(document, "limits",
                  seep_json_count(seep_doctor_count(doctor, SEEP_DOCTOR_WARN)));
    seep_json_put(document, "sentence",
                  sentence == NULL ? json_null() : seep_json_text(sentence));
    seep_json_put(document, "checks", checks);
    seep_json_out_value(&out, document);
    free(sentence);
    return seep_json_out_finish(&out);
}
