/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seep-probe/1; see probe.h. By hand, not by a library: the probe is one file
 * that links libc alone, and its strings are few. Invariant: every string is
 * valid UTF-8 and escaped, every number finite or null.
 */
#include <math.h>
#include <stdlib.h>

#include "clean.h"
#include "probe.h"

static void put_string(FILE *file, const char *text)
{
    char *clean = seep_clean_for_json(text);

    fputc('"', file);
    for (const char *at = clean == NULL ? "" : clean; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            fputc('\\', file);
        }
        if ((unsigned char)*at < 0x20) {
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*at);
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

static void put_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\"%s\":", name);
    put_string(file, text);
}

static void put_growth(FILE *file, const struct seep_vitals_growth *growth)
{
    const struct seep_interval *rate = &growth->bytes_per_s;

    if (growth->known) {
        fprintf(file,
                ",\"growth_bytes_per_s\":{\"estimate\":%.12g,\"low\":%.12g,"
                "\"high\":%.12g}",
                rate->estimate, rate->low, rate->high);
    } else {
        fputs(",\"growth_bytes_per_s\":null", file);
    }
}

static void put_finding(FILE *file, const struct seep_probe_answer *answer,
                        const struct seep_probe_finding *finding)
{
    fputs("{\"check\":", file);
    put_string(file, seep_probe_kind_name(finding->kind));
    put_text(file, "outcome", seep_probe_outcome_name(finding->outcome));
    if (finding->process >= 0) {
        put_text(file, "path", answer->set->processes[finding->process].path);
        put_number(file, "pid",
                   answer->set->processes[finding->process].vitals.pid);
    } else {
        fputs(",\"path\":null,\"pid\":null", file);
    }
    put_number(file, "device",
               finding->device < 0 ? NAN : (double)finding->device);
    put_number(file, "value", finding->value.estimate);
    put_number(file, "low", finding->value.low);
    put_number(file, "high", finding->value.high);
    put_number(file, "limit", finding->limit);
    if (finding->reason != NULL) {
        put_text(file, "reason", finding->reason);
    } else {
        fputs(",\"reason\":null", file);
    }
    fputc('}', file);
}

static void put_devices(FILE *file, const struct seep_vitals *vitals)
{
    const char *separator = "";

    fputs(",\"devices\":[", file);
    for (unsigned i = 0; i < SEEP_DEVICES_MAX; i++) {
        const struct seep_vitals_device *device = &vitals->devices[i];

        if (!device->told && device->live_bytes == 0) {
            continue;
        }
        fprintf(file, "%s{\"ordinal\":%u", separator, i);
        put_number(file, "free_bytes",
                   device->told ? (double)device->free_bytes : NAN);
        put_number(file, "total_bytes",
                   device->told ? (double)device->total_bytes : NAN);
        put_number(file, "told_age_s", device->told ? device->told_age_s : NAN);
        put_number(file, "live_bytes", (double)device->live_bytes);
        put_growth(file, &device->growth);
        fputc('}', file);
        separator = ",";
    }
    fputc(']', file);
}

static void put_room(FILE *file, const struct seep_vitals_room *room)
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
    put_growth(file, &vitals->host_growth);
    put_room(file, &vitals->room);
    put_devices(file, vitals);
    put_number(file, "lost_events", (double)vitals->lost_events);
    fputc('}', file);
}

void seep_probe_json(const struct seep_probe_answer *answer, const char *line,
                     FILE *file)
{
    fputs("{\"schema\":\"seep-probe/1\"", file);
    put_text(file, "verdict", seep_probe_outcome_name(answer->outcome));
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
    put_number(file, "ended",
               atomic_load_explicit(&answer->set->ended, memory_order_relaxed));
    put_number(
        file, "left_out",
        atomic_load_explicit(&answer->set->left_out, memory_order_relaxed));
    fputs("}\n", file);
}
