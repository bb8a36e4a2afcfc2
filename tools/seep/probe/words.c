/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An answer in one line. Invariant: what is wrong stands before
 * what is not known, and that before what is well; nothing of it is longer than
 * the line.
 */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/probe.h"
#include "words/clean.h"
#include "words/units.h"

#define SEPARATOR "; "

static const char *const kind_names[] = {
#define NAME(symbol, name, code) [SEEP_PROBE_##symbol] = (name),
    SEEP_PROBE_KINDS(NAME)
#undef NAME
};

static const char *const outcome_names[] = {
    [SEEP_PROBE_READY] = "ready",
    [SEEP_PROBE_CANNOT_TELL] = "cannot-tell",
    [SEEP_PROBE_NOT_READY] = "not-ready",
};

struct writer {
    FILE *file;
    const struct seep_probe_answer *answer;
    const char *first; /* before the first thing that is told */
    bool began;
};

/* Begins one more thing that is told. */
__attribute__((format(printf, 2, 3))) static void tell(struct writer *writer,
                                                       const char *format, ...)
{
    va_list arguments;

    fputs(writer->began ? SEPARATOR : writer->first, writer->file);
    writer->began = true;
    va_start(arguments, format);
    vfprintf(writer->file, format, arguments);
    va_end(arguments);
}

static const struct seep_probe_process *
process_of(const struct seep_probe_answer *answer,
           const struct seep_probe_finding *finding)
{
    return &answer->set->processes[finding->process];
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
    char place[16];

    tell(writer, "%s has %s left", place_of(finding->device, place),
         SEEP_UNITS_BYTES(finding->value.estimate));
    if (finding->outcome == SEEP_PROBE_NOT_READY) {
        fprintf(writer->file, ", under %s", SEEP_UNITS_BYTES(finding->limit));
    }
}

static void put_growth(struct writer *writer,
                       const struct seep_probe_finding *finding)
{
    char place[16];

    tell(writer, "memory of %s grows by %s (%s)",
         place_of(finding->device, place),
         SEEP_UNITS_RATE(finding->value.estimate),
         SEEP_UNITS_BOUNDS(&finding->value, 60));
    if (finding->outcome == SEEP_PROBE_NOT_READY) {
        fprintf(writer->file, ", over %s/min",
                SEEP_UNITS_BYTES(finding->limit * 60));
    }
}

static void put_age(struct writer *writer,
                    const struct seep_probe_finding *finding)
{
    const char *age = SEEP_UNITS_DURATION(finding->value.estimate);

    if (finding->outcome == SEEP_PROBE_NOT_READY) {
        tell(writer, "nothing was written for %s, over %s%s", age,
             SEEP_UNITS_DURATION(finding->limit),
             process_of(writer->answer, finding)->vitals.stopped
                 ? ", and the process is stopped"
                 : "");
    } else {
        tell(writer, "written %s ago", age);
    }
}

/* The thing, the reason, what to do. */
static void put_refusal(struct writer *writer,
                        const struct seep_probe_finding *finding)
{
    const struct seep_probe_process *process =
        process_of(writer->answer, finding);
    const char *remedy =
        process->refusal.error == 0 ? "" : process->refusal.remedy;

    tell(writer, "%s%s %s%s%s%s",
         finding->kind == SEEP_PROBE_CONFIGURED ? "nothing can be read: " : "",
         process->path, finding->reason, *remedy == '\0' ? "" : " (", remedy,
         *remedy == '\0' ? "" : ")");
}

static void put_unread(struct writer *writer,
                       const struct seep_probe_finding *finding)
{
    const struct seep_probe_answer *answer = writer->answer;

    if (finding->process >= 0) {
        put_refusal(writer, finding);
    } else if (answer->late) {
        tell(writer, "%s did not answer within %s", answer->set->at,
             SEEP_UNITS_DURATION(answer->arguments->deadline_s));
    } else if (answer->signal != 0) {
        tell(writer, "reading %s was ended by signal %d", answer->set->at,
             answer->signal);
    } else {
        tell(writer, "more than %d processes", SEEP_PROBE_PROCESSES);
    }
}

static void put_unknown(struct writer *writer,
                        const struct seep_probe_finding *finding)
{
    switch (finding->kind) {
    case SEEP_PROBE_GPU_FREE:
        tell(writer, "GPU memory: %s", finding->reason);
        break;
    case SEEP_PROBE_HOST_FREE:
        tell(writer, "host memory: %s", finding->reason);
        break;
    case SEEP_PROBE_GROWTH:
        tell(writer, "growth after %s of at least %s",
             SEEP_UNITS_DURATION(
                 process_of(writer->answer, finding)->vitals.duration_s),
             SEEP_UNITS_DURATION(SEEP_VITALS_GROWTH_S));
        break;
    default:
        put_unread(writer, finding);
        break;
    }
}

static void put(struct writer *writer, const struct seep_probe_finding *finding)
{
    if (finding->kind == SEEP_PROBE_CONFIGURED) {
        put_refusal(writer, finding);
    } else if (finding->outcome == SEEP_PROBE_CANNOT_TELL) {
        put_unknown(writer, finding);
    } else if (finding->kind == SEEP_PROBE_GPU_FREE ||
               finding->kind == SEEP_PROBE_HOST_FREE) {
        put_room(writer, finding);
    } else if (finding->kind == SEEP_PROBE_GROWTH) {
        put_growth(writer, finding);
    } else if (finding->kind == SEEP_PROBE_AGE) {
        put_age(writer, finding);
    } else {
        tell(writer, "no process is running any more: %.0f ended",
             finding->value.estimate);
    }
    if (finding->process >= 0 && finding->kind != SEEP_PROBE_READ &&
        finding->kind != SEEP_PROBE_CONFIGURED && writer->answer->count > 1) {
        fprintf(writer->file, " (pid %u)",
                (unsigned)process_of(writer->answer, finding)->vitals.pid);
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

static void write_line(const struct seep_probe_answer *answer, FILE *file)
{
    struct writer writer = {.file = file, .answer = answer, .first = ""};

    if (answer->outcome == SEEP_PROBE_NOT_READY) {
        fputs("not ready: ", file);
        put_all(&writer, SEEP_PROBE_NOT_READY);
        writer.first = "; cannot tell: ";
        writer.began = false;
        put_all(&writer, SEEP_PROBE_CANNOT_TELL);
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
    fit(clean == NULL ? outcome_names[answer->outcome] : clean, line);
    free(clean);
    free(text);
}

/*
 * seep-probe/1. By hand, not by a library: the probe is one file
 * that links libc alone, and its strings are few. Invariant: every string is
 * ASCII and escaped, every number finite or null.
 */

/* @text: a character of valid UTF-8 that is none of ASCII, as JSON has it: a
 * document may end on a terminal. @return its last byte */
static const char *put_character(FILE *file, const char *text)
{
    unsigned char lead = (unsigned char)*text;
    int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t code = lead & (0x3fU >> more);

    for (int i = 0; i < more; i++) {
        code = code << 6 | ((unsigned char)*++text & 0x3fU);
    }
    if (code >= 0x10000) {
        fprintf(file, "\\u%04x", (unsigned)(0xd7c0 + (code >> 10)));
        code = 0xdc00 + (code & 0x3ff);
    }
    fprintf(file, "\\u%04x", (unsigned)code);
    return text;
}

static void put_string(FILE *file, const char *text)
{
    char *clean = seep_clean_for_json(text);

    fputc('"', file);
    for (const char *at = clean == NULL ? "" : clean; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            fputc('\\', file);
        }
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            fprintf(file, "\\u%04x", (unsigned)*at);
        } else if ((unsigned char)*at >= 0x80) {
            at = put_character(file, at);
        } else {
            fputc(*at, file);
        }
    }
    fputc('"', file);
    free(clean);
}

static void put_number(FILE *file, const char *name, double value)
{
    if (isfinite(value)) {
        fprintf(file, ",\"%s\":%.12g", name, value);
    } else {
        fprintf(file, ",\"%s\":null", name);
    }
}

/* @text: NULL is null */
static void put_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\"%s\":%s", name, text == NULL ? "null" : "");
    if (text != NULL) {
        put_string(file, text);
    }
}

static void json_put_growth(FILE *file, const char *name,
                            const struct seep_vitals_growth *growth)
{
    const struct seep_interval *rate = &growth->bytes_per_s;

    if (growth->known) {
        fprintf(file,
                ",\"%s\":{\"estimate\":%.12g,\"low\":%.12g,"
                "\"high\":%.12g}",
                name, rate->estimate, rate->low, rate->high);
    } else {
        fprintf(file, ",\"%s\":null", name);
    }
}

static void put_finding(FILE *file, const struct seep_probe_answer *answer,
                        const struct seep_probe_finding *finding)
{
    const struct seep_probe_process *process =
        finding->process < 0 ? NULL : process_of(answer, finding);

    fputs("{\"check\":", file);
    put_string(file, kind_names[finding->kind]);
    put_text(file, "outcome", outcome_names[finding->outcome]);
    put_text(file, "path", process == NULL ? NULL : process->path);
    put_number(file, "pid",
               process == NULL ? NAN : (double)process->vitals.pid);
    put_number(file, "device",
               finding->device < 0 ? NAN : (double)finding->device);
    put_number(file, "value", finding->value.estimate);
    put_number(file, "low", finding->value.low);
    put_number(file, "high", finding->value.high);
    put_number(file, "limit", finding->limit);
    put_text(file, "reason", finding->reason);
    fputc('}', file);
}

static void put_devices(FILE *file, const struct seep_vitals *vitals)
{
    const char *separator = "";

    fputs(",\"devices\":[", file);
    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        const struct seep_vitals_device *device = &vitals->devices[i];

        if (!device->reported && device->live_bytes == 0) {
            continue;
        }
        fprintf(file, "%s{\"ordinal\":%u", separator, i);
        put_number(file, "free_bytes",
                   device->reported ? (double)device->free_bytes : NAN);
        put_number(file, "total_bytes",
                   device->reported ? (double)device->total_bytes : NAN);
        put_number(file, "told_age_s",
                   device->reported ? device->reported_age_s : NAN);
        put_number(file, "live_bytes", (double)device->live_bytes);
        json_put_growth(file, "growth_bytes_per_s", &device->growth);
        fputc('}', file);
        separator = ",";
    }
    fputc(']', file);
}

static void json_put_room(FILE *file, const struct seep_vitals_room *room)
{
    if (room->kind == SEEP_ROOM_UNKNOWN) {
        fputs(",\"room\":null", file);
        return;
    }
    fprintf(file, ",\"room\":{\"of\":\"%s\"",
            room->kind == SEEP_ROOM_CGROUP ? "cgroup" : "ram");
    put_number(file, "left_bytes", (double)room->left_bytes);
    put_number(file, "limit_bytes", (double)room->limit_bytes);
    fprintf(file, ",\"recorded\":%s}", room->recorded ? "true" : "false");
}

static void put_process(FILE *file, const struct seep_probe_process *process)
{
    const struct seep_vitals *vitals = &process->vitals;

    fputs("{\"path\":", file);
    put_string(file, process->path);
    if (process->refusal.error != 0) {
        put_text(file, "error", process->refusal.reason);
        fputc('}', file);
        return;
    }
    put_number(file, "pid", vitals->pid);
    put_text(file, "exe", vitals->executable);
    put_text(file, "state",
             process->replaced                     ? "replaced"
             : vitals->stopped                     ? "stopped"
             : vitals->state == SEEP_STATE_RUNNING ? "running"
                                                   : "unknown");
    put_number(file, "duration_s", vitals->duration_s);
    put_number(file, "age_s", vitals->age_s);
    put_number(file, "live_bytes", (double)vitals->host_bytes);
    json_put_growth(file, "growth_bytes_per_s", &vitals->host_growth);
    json_put_growth(file, "private_growth_bytes_per_s",
                    &vitals->private_growth);
    json_put_room(file, &vitals->room);
    put_devices(file, vitals);
    put_number(file, "lost_events", (double)vitals->lost_events);
    fputc('}', file);
}

void seep_probe_json(const struct seep_probe_answer *answer, const char *line,
                     FILE *file)
{
    fputs("{\"schema\":\"seep-probe/1\"", file);
    put_text(file, "verdict", outcome_names[answer->outcome]);
    put_number(file, "code", answer->code);
    put_text(file, "reason", line);
    put_number(file, "deadline_s", answer->arguments->deadline_s);
    put_number(file, "elapsed_s", answer->elapsed_s);
    fprintf(file, ",\"late\":%s,\"strict\":%s", answer->late ? "true" : "false",
            answer->arguments->strict ? "true" : "false");
    fputs(",\"checks\":[", file);
    for (size_t i = 0; i < answer->finding_count; i++) {
        fputs(i == 0 ? "" : ",", file);
        put_finding(file, answer, &answer->findings[i]);
    }
    fputs("],\"processes\":[", file);
    for (uint32_t i = 0; i < answer->count; i++) {
        fputs(i == 0 ? "" : ",", file);
        put_process(file, &answer->set->processes[i]);
    }
    fputs("]", file);
    put_number(file, "ended", seep_word_load(&answer->set->ended));
    put_number(file, "left_out", seep_word_load(&answer->set->left_out));
    fputs("}\n", file);
}
