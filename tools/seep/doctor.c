/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checks one after the other, and what they come to; see doctor.h.
 */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reader/proc_text.h"

static void (*const checks[])(const struct seep_doctor_facts *,
                              struct seep_doctor *) = {
#define CHECK_ENTRY(name) seep_doctor_check_##name,
    SEEP_DOCTOR_CHECKS(CHECK_ENTRY)
#undef CHECK_ENTRY
};

void seep_doctor_check(const struct seep_doctor_facts *facts,
                       struct seep_doctor *doctor)
{
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        checks[i](facts, doctor);
    }
}

void seep_doctor_find(struct seep_doctor *doctor, const char *check,
                      enum seep_doctor_level level, const char *remedy,
                      const char *reason, ...)
{
    struct seep_doctor_finding finding = {.check = check, .level = level};
    struct seep_doctor_finding *grown = reallocarray(
        doctor->findings, doctor->count + 1, sizeof(*doctor->findings));
    va_list arguments;

    va_start(arguments, reason);
    int length = vasprintf(&finding.reason, reason, arguments);
    va_end(arguments);
    finding.remedy = remedy == NULL ? NULL : strdup(remedy);
    doctor->findings = grown == NULL ? doctor->findings : grown;
    if (grown == NULL || length < 0 ||
        (remedy != NULL && finding.remedy == NULL)) {
        free(length < 0 ? NULL : finding.reason);
        free(finding.remedy);
        doctor->failed = true;
        return;
    }
    doctor->findings[doctor->count++] = finding;
}

void seep_doctor_close(struct seep_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        free(doctor->findings[i].reason);
        free(doctor->findings[i].remedy);
    }
    free(doctor->findings);
}

size_t seep_doctor_count(const struct seep_doctor *doctor,
                         enum seep_doctor_level level)
{
    size_t count = 0;

    for (size_t i = 0; i < doctor->count; i++) {
        count += doctor->findings[i].level == level;
    }
    return count;
}

const char *seep_doctor_level_name(enum seep_doctor_level level)
{
    static const char *const names[] = {
        [SEEP_DOCTOR_OK] = "ok",
        [SEEP_DOCTOR_ABSENT] = "absent",
        [SEEP_DOCTOR_WARN] = "warn",
        [SEEP_DOCTOR_NO] = "no",
    };

    return names[level];
}

/* What does not work is said before what does. */
static const struct seep_doctor_finding *
first_no(const struct seep_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        if (doctor->findings[i].level == SEEP_DOCTOR_NO) {
            return &doctor->findings[i];
        }
    }
    return NULL;
}

char *seep_doctor_sentence(const struct seep_doctor_facts *facts,
                           const struct seep_doctor *doctor)
{
    const struct seep_doctor_finding *no = first_no(doctor);
    size_t warn_count = seep_doctor_count(doctor, SEEP_DOCTOR_WARN);
    const char *command = facts->command == NULL ? "" : facts->command[0];
    char limits[48] = "";
    char *text = NULL;
    int length;

    if (warn_count > 0) {
        snprintf(limits, sizeof(limits), ", with %zu limit%s", warn_count,
                 warn_count == 1 ? "" : "s");
    }
    if (no != NULL && strcmp(no->check, "command") == 0) {
        length = asprintf(&text, "seep cannot record it: %s", no->reason);
    } else if (no != NULL) {
        length = asprintf(&text, "seep does not work here: %s", no->reason);
    } else if (*command != '\0') {
        length = asprintf(&text, "seep works here, and can record %s%s",
                          command, limits);
    } else {
        length = asprintf(&text, "seep works here%s", limits);
    }
    return length < 0 ? NULL : text;
}

const char *seep_doctor_path(const struct seep_doctor_facts *facts,
                             const char *path, char text[PATH_MAX])
{
    snprintf(text, PATH_MAX, "%s%s", facts->root, path);
    return text;
}

bool seep_doctor_read(const struct seep_doctor_facts *facts, const char *path,
                      char *text, size_t bytes)
{
    char below[PATH_MAX];

    return seep_proc_text(seep_doctor_path(facts, path, below), text, bytes) >=
           0;
}
