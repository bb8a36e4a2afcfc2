/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An answer in one line; see probe.h. Invariant: what is wrong stands before
 * what is not known, and that before what is well; nothing of it is longer than
 * the line.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "probe.h"
#include "units.h"

#define SEPARATOR "; "

struct writer {
    FILE *file;
    const struct seep_probe_answer *answer;
    bool began;
};

static const char *between(struct writer *writer)
{
    const char *text = writer->began ? SEPARATOR : "";

    writer->began = true;
    return text;
}

/* "GPU 0", "the host". */
static const char *place_of(int device, char text[16])
{
    if (device < 0) {
        return "the host";
    }
    snprintf(text, 16, "GPU %d", device);
    return text;
}

static void put_room(struct writer *writer,
                     const struct seep_probe_finding *finding)
{
    char left[SEEP_UNITS_TEXT_BYTES];
    char limit[SEEP_UNITS_TEXT_BYTES];
    char place[16];

    fprintf(writer->file, "%s%s has %s left", between(writer),
            place_of(finding->device, place),
            seep_units_bytes(finding->value.estimate, left));
    if (finding->outcome == SEEP_PROBE_NOT_READY) {
        fprintf(writer->file, ", under %s",
                seep_units_bytes(finding->limit, limit));
    }
}

static void put_growth(struct writer *writer,
                       const struct seep_probe_finding *finding)
{
    char rate[SEEP_UNITS_TEXT_BYTES];
    char bounds[SEEP_UNITS_TEXT_BYTES];
    char limit[SEEP_UNITS_TEXT_BYTES];
    char place[16];

    fprintf(writer->file, "%smemory of %s grows %s (%s)", between(writer),
            place_of(finding->device, place),
            seep_units_rate(finding->value.estimate, rate),
            seep_units_bounds(&finding->value, 60, bounds));
    if (finding->outcome == SEEP_PROBE_NOT_READY) {
        fprintf(writer->file, ", over %s/min",
                seep_units_bytes(finding->limit * 60, limit));
    }
}

static void put_age(struct writer *writer,
                    const struct seep_probe_finding *finding)
{
    const struct seep_vitals *vitals =
        &writer->answer->set->processes[finding->process].vitals;
    char age[SEEP_UNITS_TEXT_BYTES];
    char limit[SEEP_UNITS_TEXT_BYTES];

    seep_units_duration(finding->value.estimate, age);
    if (finding->outcome == SEEP_PROBE_NOT_READY) {
        fprintf(writer->file, "%snothing was written for %s, over %s%s",
                between(writer), age,
                seep_units_duration(finding->limit, limit),
                vitals->stopped ? ", and the process is stopped" : "");
    } else {
        fprintf(writer->file, "%swritten %s ago", between(writer), age);
    }
}

static void put_ended(struct writer *writer,
                      const struct seep_probe_finding *finding)
{
    fprintf(writer->file, "%sno process runs any more: %.0f ended",
            between(writer), finding->value.estimate);
}

static void put_unread(struct writer *writer,
                       const struct seep_probe_finding *finding)
{
    const struct seep_probe_answer *answer = writer->answer;
    char deadline[SEEP_UNITS_TEXT_BYTES];
    const char *begin = between(writer);

    if (finding->process >= 0) {
        const struct seep_probe_process *process =
            &answer->set->processes[finding->process];
        fprintf(writer->file, "%s%s %s", begin, process->path, finding->reason);
    } else if (answer->late) {
        fprintf(writer->file, "%s%s did not answer within %s", begin,
                answer->set->at,
                seep_units_duration(answer->arguments->deadline_s, deadline));
    } else if (answer->signal != 0) {
        fprintf(writer->file, "%sreading %s was ended by signal %d", begin,
                answer->set->at, answer->signal);
    } else {
        fprintf(writer->file, "%smore than %d processes", begin,
                SEEP_PROBE_PROCESSES);
    }
}

static void put_unknown(struct writer *writer,
                        const struct seep_probe_finding *finding)
{
    char seen[SEEP_UNITS_TEXT_BYTES];
    char needed[SEEP_UNITS_TEXT_BYTES];

    switch (finding->kind) {
    case SEEP_PROBE_GPU_FREE:
        fprintf(writer->file, "%sGPU memory: %s", between(writer),
                finding->reason);
        break;
    case SEEP_PROBE_HOST_FREE:
        fprintf(writer->file, "%shost memory: %s", between(writer),
                finding->reason);
        break;
    case SEEP_PROBE_GROWTH:
        fprintf(
            writer->file, "%sgrowth after %s of at least %s", between(writer),
            seep_units_duration(writer->answer->set->processes[finding->process]
                                    .vitals.duration_s,
                                seen),
            seep_units_duration(SEEP_VITALS_GROWTH_S, needed));
        break;
    default:
        put_unread(writer, finding);
        break;
    }
}

static void put(struct writer *writer, const struct seep_probe_finding *finding)
{
    if (finding->outcome == SEEP_PROBE_CANNOT_TELL) {
        put_unknown(writer, finding);
    } else if (finding->kind == SEEP_PROBE_GPU_FREE ||
               finding->kind == SEEP_PROBE_HOST_FREE) {
        put_room(writer, finding);
    } else if (finding->kind == SEEP_PROBE_GROWTH) {
        put_growth(writer, finding);
    } else if (finding->kind == SEEP_PROBE_AGE) {
        put_age(writer, finding);
    } else {
        put_ended(writer, finding);
    }
    if (finding->process >= 0 && finding->kind != SEEP_PROBE_READ &&
        writer->answer->count > 1) {
        fprintf(writer->file, " (pid %u)",
                (unsigned)writer->answer->set->processes[finding->process]
                    .vitals.pid);
    }
}

/* How near to its limit, so that of what is well the nearest is told. */
static double nearness(const struct seep_probe_finding *finding)
{
    return finding->kind == SEEP_PROBE_GPU_FREE ||
                   finding->kind == SEEP_PROBE_HOST_FREE
               ? -finding->value.estimate
               : finding->value.estimate;
}

static void put_nearest(struct writer *writer, enum seep_probe_kind kind)
{
    const struct seep_probe_answer *answer = writer->answer;
    const struct seep_probe_finding *nearest = NULL;

    for (size_t i = 0; i < answer->finding_count; i++) {
        const struct seep_probe_finding *finding = &answer->findings[i];

        if (finding->kind == kind && finding->outcome == SEEP_PROBE_READY &&
            (nearest == NULL || nearness(finding) > nearness(nearest))) {
            nearest = finding;
        }
    }
    if (nearest != NULL) {
        put(writer, nearest);
    }
}

static void put_all(struct writer *writer, enum seep_probe_outcome outcome)
{
    const struct seep_probe_answer *answer = writer->answer;

    for (unsigned kind = 0; kind < SEEP_PROBE_KIND_COUNT; kind++) {
        if (outcome == SEEP_PROBE_READY) {
            put_nearest(writer, (enum seep_probe_kind)kind);
            continue;
        }
        for (size_t i = 0; i < answer->finding_count; i++) {
            if (answer->findings[i].kind == (enum seep_probe_kind)kind &&
                answer->findings[i].outcome == outcome) {
                put(writer, &answer->findings[i]);
            }
        }
    }
}

static bool has(const struct seep_probe_answer *answer,
                enum seep_probe_outcome outcome)
{
    for (size_t i = 0; i < answer->finding_count; i++) {
        if (answer->findings[i].outcome == outcome) {
            return true;
        }
    }
    return false;
}

static void write_line(const struct seep_probe_answer *answer, FILE *file)
{
    struct writer writer = {.file = file, .answer = answer};

    if (answer->outcome == SEEP_PROBE_NOT_READY) {
        fputs("not ready: ", file);
        put_all(&writer, SEEP_PROBE_NOT_READY);
        if (has(answer, SEEP_PROBE_CANNOT_TELL)) {
            fputs("; cannot tell: ", file);
            writer.began = false;
            put_all(&writer, SEEP_PROBE_CANNOT_TELL);
        }
        return;
    }
    if (answer->outcome == SEEP_PROBE_CANNOT_TELL) {
        fputs("cannot tell: ", file);
        put_all(&writer, SEEP_PROBE_CANNOT_TELL);
    } else {
        fputs("ready: ", file);
    }
    put_all(&writer, SEEP_PROBE_READY);
}

/* Whole characters only, and a mark where something is missing. */
static void fit(const char *text, char line[SEEP_PROBE_LINE_BYTES])
{
    const char *mark = seep_clean_ellipsis();
    size_t most = SEEP_PROBE_LINE_BYTES - 2; /* its end of line, and of text */
    size_t length = strlen(text);

    if (length > most) {
        length = most - strlen(mark);
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--;
        }
    } else {
        mark = "";
    }
    snprintf(line, SEEP_PROBE_LINE_BYTES, "%.*s%s", (int)length, text, mark);
}

void seep_probe_line(const struct seep_probe_answer *answer,
                     char line[SEEP_PROBE_LINE_BYTES])
{
    char *text = NULL;
    char *clean = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (file != NULL) {
        write_line(answer, file);
        fclose(file);
        clean = text == NULL ? NULL : seep_clean_for_terminal(text);
    }
    fit(clean == NULL ? seep_probe_outcome_name(answer->outcome) : clean, line);
    free(clean);
    free(text);
}
