/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples of processes and of their families.
 *
 * Invariant: what is not known has no sample; the samples of a metric stand
 * together, and no two have the same labels: one process can have several
 * recordings, by exec, of which the last that has a program of this name
 * counts.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "metrics/metrics.h"
#include "reader/process/cgroup.h"
#include "text/page.h"
#include "words/verdict.h"
#include "words/words.h"

/*
 * Every metric of a process, which has the labels pid and exe, and a function
 * for each: X(symbol, type, "name", "unit", "help"). Names follow Prometheus:
 * seep_ first, base units, the unit last, _total on counters and _info on what
 * is always 1; these two are added by who writes. A unit is only said where the
 * name ends in it.
 */

#define OF_PROCESS(X)                                                         \
    X(verdict, GAUGE, "verdict", "", "1 for what the process has, else 0.")   \
    X(no_leak, GAUGE, "no_leak", "",                                          \
      "1 if \"no leak\" was tested; 0: there is one, or nobody knows yet.")   \
    X(growth, GAUGE, "growth_bytes_per_second", "bytes_per_second",           \
      "Growth that the verdict is about, over the run.")                      \
    X(growth_lower, GAUGE, "growth_bytes_per_second_lower", "",               \
      "Lower bound of that growth, 95 % interval.")                           \
    X(growth_upper, GAUGE, "growth_bytes_per_second_upper", "",               \
      "Upper bound of that growth, 95 % interval.")                           \
    X(oom_eta, GAUGE, "oom_eta_seconds", "seconds",                           \
      "Time until that limit is reached if all goes on as it went.")          \
    X(headroom, GAUGE, "headroom_bytes", "bytes",                             \
      "What is left below that limit, for all that share it.")                \
    X(resident, GAUGE, "resident_bytes", "bytes",                             \
      "Resident memory at the last moment that was recorded.")                \
    X(live, GAUGE, "live_bytes", "bytes",                                     \
      "Bytes of blocks that are live, by what memory they are of.")           \
    X(allocated, COUNTER, "allocated_bytes", "bytes",                         \
      "Bytes of blocks that were handed out.")                                \
    X(freed, COUNTER, "freed_bytes", "bytes",                                 \
      "Bytes of blocks that were given back.")                                \
    X(unexplained, GAUGE, "unexplained_bytes", "bytes",                       \
      "Memory in use that no hook saw; of a device, also that of others.")    \
    X(device_free, GAUGE, "device_free_bytes", "bytes",                       \
      "What the driver told to be free on the device.")                       \
    X(device_total, GAUGE, "device_total_bytes", "bytes",                     \
      "Memory of the device.")                                                \
    X(site_live, GAUGE, "site_live_bytes", "bytes",                           \
      "Live bytes of a call site; the site other is the sum of the rest.")    \
    X(site_growth, GAUGE, "site_growth_bytes_per_second", "bytes_per_second", \
      "Growth of a call site, over the run.")                                 \
    X(units, COUNTER, "units", "", "Units of work that the process told of.") \
    X(events_lost, COUNTER, "events_lost", "",                                \
      "Events that are missing from the figures.")                            \
    X(overhead, GAUGE, "overhead_ratio", "ratio",                             \
      "Time spent in seep, of the time that the process ran.")                \
    X(last_write, GAUGE, "last_write_timestamp_seconds", "seconds",           \
      "When the process last wrote into its recording.")                      \
    X(running, GAUGE, "running", "", "1 while the process lives, else 0.")    \
    X(target, INFO, "target", "",                                             \
      "Whose recording it is, with the labels that it was given.")

#define NS_PER_S 1e9
#define DEVICE_BYTES 16
#define OWN_LABELS 2U
#define SAMPLE_LABELS_MOST 24U /* beside these */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What has samples: a process, or a family of them. */
struct subject {
    struct seep_metrics_label labels[OWN_LABELS]; /* that all of them have */
    enum seep_verdict_class class;
    const struct seep_interval *growth;   /* NULL: not known */
    const struct seep_followed *followed; /* of a process, and its report */
    const struct seep_report *report;
    const struct seep_family *family;   /* NULL: it is a process */
    char pid[SEEP_METRICS_VALUE_BYTES]; /* "4242", "1@pod-7" */
};

struct emit {
    struct seep_metrics_text *text;
    const struct seep_metric *metric;
    const struct subject *of;
    struct seep_metrics_totals *totals;
    size_t site_limit;
    uint64_t available_bytes; /* of this machine; 0: not known */
};

/* A @value that is not known is NAN, and has no sample. */
static void emit_sample(struct emit *emit,
                        const struct seep_metrics_label *labels, size_t count,
                        double value)
{
    struct seep_metrics_label all[OWN_LABELS + SAMPLE_LABELS_MOST];

    memcpy(all, emit->of->labels, sizeof(emit->of->labels));
    for (size_t i = 0; i < count && i < SAMPLE_LABELS_MOST; i++) {
        all[OWN_LABELS + i] = labels[i];
    }
    seep_metrics_text_sample(emit->text, emit->metric, all, OWN_LABELS + count,
                             value);
}

static void emit_labelled(struct emit *emit, const char *name,
                          const char *label, double value)
{
    emit_sample(emit, &(struct seep_metrics_label){name, label}, 1, value);
}

static const char *device_text(int device, char text[DEVICE_BYTES])
{
    *text = '\0';
    if (device >= 0) {
        snprintf(text, DEVICE_BYTES, "%d", device);
    }
    return text;
}

/* With the label @name unless @label is NULL, and device unless it is -1. */
static void emit_at(struct emit *emit, const char *name, const char *label,
                    int device, double value)
{
    char text[DEVICE_BYTES];
    struct seep_metrics_label labels[] = {
        {name, label}, {"device", device_text(device, text)}};

    emit_sample(emit, labels, COUNT(labels), value);
}

/* The most that this counter of the process ever was. */
static double raised(struct emit *emit, enum seep_metrics_total total,
                     size_t at, uint64_t value)
{
    return seep_metrics_totals_raise(emit->totals, emit->of->followed, total,
                                     at, (double)value);
}

static double last_of(const struct seep_report_extent *extent)
{
    return extent->valid ? extent->last_bytes : NAN;
}

static const struct seep_interval *growth_of(const struct emit *emit)
{
    static const struct seep_interval unknown = {NAN, NAN, NAN};

    return emit->of->growth == NULL ? &unknown : emit->of->growth;
}

/* A metric of one sample. */
#define EMIT_ONE(symbol, value)                  \
    static void emit_##symbol(struct emit *emit) \
    {                                            \
        emit_sample(emit, NULL, 0, (value));     \
    }

/* Of a class that reassures, too: beside it something may be open. */
EMIT_ONE(no_leak, emit->of->report->verdict.reassures)
EMIT_ONE(growth, growth_of(emit)->estimate)
EMIT_ONE(growth_lower, growth_of(emit)->low)
EMIT_ONE(growth_upper, growth_of(emit)->high)
EMIT_ONE(resident, last_of(&emit->of->report->memory.rss))
EMIT_ONE(units, emit->of->report->units == 0
                    ? NAN
                    : raised(emit, SEEP_METRICS_TOTAL_UNITS, 0,
                             emit->of->report->units))
EMIT_ONE(events_lost, raised(emit, SEEP_METRICS_TOTAL_LOST, 0,
                             seep_words_lost_events(emit->of->report)))
EMIT_ONE(overhead, emit->of->report->duration_s > 0
                       ? emit->of->report->cost_s / emit->of->report->duration_s
                       : NAN)
EMIT_ONE(last_write,
         round((double)emit->of->report->start_realtime_ns / NS_PER_S +
               emit->of->report->last_event_s))
EMIT_ONE(running, emit->of->followed->ended ? 0 : 1)

/* One with a sample for each device, of which @value is. */
#define EMIT_DEVICES(symbol, value)                                           \
    static void emit_##symbol(struct emit *emit)                              \
    {                                                                         \
        const struct seep_report *report = emit->of->report;                  \
                                                                              \
        for (size_t i = 0; i < report->device_count; i++) {                   \
            const struct seep_report_device *device = &report->devices[i];    \
            emit_at(emit, NULL, NULL, (int)device->ordinal, (double)(value)); \
        }                                                                     \
    }

EMIT_DEVICES(device_free, device->free_bytes)
EMIT_DEVICES(device_total, device->total_bytes)
EMIT_DEVICES(device_unexplained, last_of(&device->unexplained))

static void emit_unexplained(struct emit *emit)
{
    emit_sample(emit, NULL, 0, last_of(&emit->of->report->memory.unexplained));
    emit_device_unexplained(emit);
}

/* One with a sample for each space and device. */
#define EMIT_HOLDINGS(symbol, value)                                          \
    static void emit_##symbol(struct emit *emit)                              \
    {                                                                         \
        const struct seep_report *report = emit->of->report;                  \
                                                                              \
        for (size_t i = 0; i < report->holding_count; i++) {                  \
            const struct seep_report_holding *holding = &report->holdings[i]; \
            emit_at(emit, "space", seep_words_space(holding->space),          \
                    holding->device, (double)(value));                        \
        }                                                                     \
    }

EMIT_HOLDINGS(live, holding->live_bytes)
EMIT_HOLDINGS(allocated,
              raised(emit, SEEP_METRICS_TOTAL_ALLOCATED,
                     seep_metrics_totals_at(holding), holding->allocated_bytes))
EMIT_HOLDINGS(freed,
              raised(emit, SEEP_METRICS_TOTAL_FREED,
                     seep_metrics_totals_at(holding), holding->freed_bytes))

static void emit_verdict(struct emit *emit)
{
    for (unsigned i = 0; i < SEEP_VERDICT_COUNT; i++) {
        emit_labelled(emit, "class",
                      seep_verdict_name((enum seep_verdict_class)i),
                      emit->of->class == i ? 1 : 0);
    }
}

static void emit_eta(struct emit *emit,
                     const struct seep_report_forecast *forecast,
                     const char *limit, int device)
{
    /* What would be if a suspect were a leak is no forecast. */
    if (forecast->answer == SEEP_FORECAST_NEVER) {
        emit_at(emit, "limit", limit, device, INFINITY);
    } else if (forecast->answer == SEEP_FORECAST_TIME &&
               !forecast->if_suspect) {
        emit_at(emit, "limit", limit, device, forecast->seconds.estimate);
    }
}

/* The limit that is reached; NULL: none is. */
static const char *limit_of(const struct seep_report_forecast *forecast)
{
    return forecast->answer == SEEP_FORECAST_NEVER ? NULL : forecast->what;
}

static void emit_oom_eta(struct emit *emit)
{
    const struct seep_report *report = emit->of->report;
    const struct seep_report_forecast *forecast = &report->verdict.forecast;

    if (forecast->what == NULL || strcmp(forecast->what, "device") != 0) {
        emit_eta(emit, forecast, limit_of(forecast), -1);
    }
    for (size_t i = 0; i < report->device_count; i++) {
        emit_eta(emit, &report->devices[i].forecast, "device",
                 (int)report->devices[i].ordinal);
    }
}

static void emit_headroom(struct emit *emit)
{
    const struct seep_report_memory *memory = &emit->of->report->memory;
    uint64_t available_bytes = emit->available_bytes;

    if (memory->cgroup.valid && memory->cgroup_limit_bytes > 0) {
        emit_labelled(emit, "limit", "cgroup",
                      fmax(0, (double)memory->cgroup_limit_bytes -
                                  memory->cgroup.last_bytes));
    }
    /* What is available now is asked here; of another machine, or of then, it
     * is known from external samples. */
    if (available_bytes == 0 || emit->of->report->state != SEEP_STATE_RUNNING) {
        available_bytes = memory->available_bytes;
    }
    if (available_bytes > 0) {
        emit_labelled(emit, "limit", "ram", (double)available_bytes);
    }
}

/*
 * By call site, and who the process is. Invariant: of a process at most
 * .site_limit sites have samples, and of its labels at most LABELS_MOST; what
 * the others hold is summed.
 */

#define LABELS_MOST 16U
#define NAME_BYTES 64U
#define SHORT_ID 8

static size_t site_count(const struct emit *emit)
{
    size_t count = emit->of->report->site_count;

    return count < emit->site_limit ? count : emit->site_limit;
}

/* The first digits of its id, or all if another site begins with them. Rows
 * that have one id (what is suppressed of a line is a row apart) are numbered.
 */
static void name_site(const struct emit *emit, size_t index,
                      char name[NAME_BYTES])
{
    const struct seep_report_site *sites = emit->of->report->sites;
    int digits = SHORT_ID;
    unsigned before = 0;

    for (size_t i = 0; i < site_count(emit); i++) {
        if (i != index &&
            strncmp(sites[i].id, sites[index].id, SHORT_ID) == 0) {
            digits = (int)sizeof(sites[i].id);
            before += i < index && strcmp(sites[i].id, sites[index].id) == 0;
        }
    }
    snprintf(name, NAME_BYTES, before > 0 ? "%.*s-%u" : "%.*s", digits,
             sites[index].id, before);
}

static void emit_named(struct emit *emit, enum seep_space space, int device,
                       const char *name, const char *where, double value)
{
    char text[DEVICE_BYTES];
    struct seep_metrics_label labels[] = {{"space", seep_words_space(space)},
                                          {"device", device_text(device, text)},
                                          {"site", name},
                                          {"where", where}};

    emit_sample(emit, labels, COUNT(labels), value);
}

static void emit_site(struct emit *emit, size_t index, double value)
{
    const struct seep_report *report = emit->of->report;
    const struct seep_report_site *site = &report->sites[index];
    char *where = seep_words_where(report, site);
    char name[NAME_BYTES];

    name_site(emit, index, name);
    emit_named(emit, site->space, site->device, name, where, value);
    free(where);
}

/* Of a space and device, what the sites that are listed do not hold. */
static double rest_of(const struct emit *emit,
                      const struct seep_report_holding *holding)
{
    const struct seep_report_site *sites = emit->of->report->sites;
    double rest = (double)holding->live_bytes;

    for (size_t i = 0; i < site_count(emit); i++) {
        if (sites[i].space == holding->space &&
            sites[i].device == holding->device) {
            rest -= (double)sites[i].live_bytes;
        }
    }
    return rest;
}

static void emit_site_live(struct emit *emit)
{
    const struct seep_report *report = emit->of->report;

    for (size_t i = 0; i < site_count(emit); i++) {
        emit_site(emit, i, (double)report->sites[i].live_bytes);
    }
    for (size_t i = 0; i < report->holding_count; i++) {
        const struct seep_report_holding *holding = &report->holdings[i];
        double rest = rest_of(emit, holding);

        if (rest > 0) {
            emit_named(emit, holding->space, holding->device, "other", NULL,
                       rest);
        }
    }
}

static void emit_site_growth(struct emit *emit)
{
    const struct seep_report *report = emit->of->report;

    for (size_t i = 0; i < site_count(emit); i++) {
        if (report->sites[i].has_growth) {
            emit_site(emit, i, report->sites[i].growth_bytes_per_s.estimate);
        }
    }
}

/* Names that are ours, or that Prometheus gives to what it scrapes. */
static bool is_taken(const struct seep_metrics_label *labels, size_t count,
                     const char *name)
{
    static const char *const taken[] = {"pid", "exe", "job", "instance"};

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(labels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes "key=value" apart in place. @return true if it is one of ours now */
static bool take_label(char *text, char name[NAME_BYTES],
                       struct seep_metrics_label *labels, size_t count)
{
    char *value = strchr(text, '=');

    if (value == NULL || value == text) {
        return false;
    }
    seep_metrics_text_name(text, (size_t)(value - text), name, NAME_BYTES);
    if (is_taken(labels, count, name)) {
        return false;
    }
    labels[count] = (struct seep_metrics_label){name, value + 1};
    return true;
}

static void emit_target(struct emit *emit)
{
    const struct seep_report *report = emit->of->report;
    char names[LABELS_MOST][NAME_BYTES];
    char *program = seep_words_program(report);
    char *copy = strdup(report->labels);
    char *rest = copy;
    char *label;
    struct seep_metrics_label labels[LABELS_MOST] = {
        {"host", report->host},
        {"program", program},
        {"mode", seep_words_mode_name(report)},
    };
    size_t count = 3;

    while (count < LABELS_MOST && copy != NULL &&
           (label = strsep(&rest, ",")) != NULL) {
        count += take_label(label, names[count], labels, count);
    }
    emit_sample(emit, labels, count, 1);
    free(copy);
    free(program);
}

/*
 * Families (reader/judge/family.h): one sum where many workers come and go. A
 * family is known by its id; its name is for people. Invariant: no two have one
 * id in a text, whatever their names were made to be.
 */

/* Of a family of processes, which has the labels family and id. */
#define OF_FAMILY(X)                                                       \
    X(verdict, GAUGE, "family_verdict", "",                                \
      "1 for what the processes of a service have together, else 0.")      \
    X(growth, GAUGE, "family_growth_bytes_per_second", "bytes_per_second", \
      "Growth of all processes of a service that run, together.")          \
    X(growth_lower, GAUGE, "family_growth_bytes_per_second_lower", "",     \
      "Lower bound of that growth, 95 % interval.")                        \
    X(growth_upper, GAUGE, "family_growth_bytes_per_second_upper", "",     \
      "Upper bound of that growth, 95 % interval.")                        \
    X(processes, GAUGE, "family_processes", "", "Processes of a service.") \
    X(exhaustion, GAUGE, "family_exhaustion_seconds", "seconds",           \
      "Time until a limit is reached if all of them go on as they went.")

#define FAMILY_NAME_BYTES \
    80U /* of a family: a label is stored with every sample */

static void emit_processes(struct emit *emit)
{
    size_t running = emit->of->family->running_count;

    emit_labelled(emit, "state", "running", (double)running);
    emit_labelled(emit, "state", "ended",
                  (double)(emit->of->family->count - running));
}

static void emit_exhaustion(struct emit *emit)
{
    const struct seep_report_forecast *forecast = &emit->of->family->forecast;

    if (emit->of->family->running_count > 0 && !forecast->if_suspect) {
        emit_eta(emit, forecast, limit_of(forecast), -1);
    }
}

/*
 * All of them. In the order of the list: who lives, then the latest, comes
 * first.
 */

struct row {
    struct seep_metric metric;
    void (*emit)(struct emit *emit);
};

#define ROW(symbol, type, name, unit, help) \
    {{SEEP_METRIC_##type, name, unit, help}, emit_##symbol},
static const struct row of_process[] = {OF_PROCESS(ROW)};
static const struct row of_family[] = {OF_FAMILY(ROW)};
#undef ROW

static void emit_rows(struct emit *emit, const struct row *rows,
                      size_t row_count, const struct subject *subjects,
                      size_t count)
{
    for (size_t i = 0; i < row_count; i++) {
        emit->metric = &rows[i].metric;
        for (size_t j = 0; j < count; j++) {
            emit->of = &subjects[j];
            rows[i].emit(emit);
        }
    }
}

/* One process with several recordings, or two families of one id. */
static bool is_listed(const struct subject *subjects, size_t count,
                      const struct subject *subject)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(subjects[i].pid, subject->pid) == 0 &&
            strcmp(subjects[i].labels[1].value, subject->labels[1].value) ==
                0) {
            return true;
        }
    }
    return false;
}

static void fill_process(const struct seep_followed *followed,
                         struct subject *process)
{
    const struct seep_report *report = followed->report;
    const struct seep_report_verdict *verdict = &report->verdict;

    *process = (struct subject){
        .labels = {{"pid", process->pid},
                   {"exe", seep_text_base_name(report->executable)}},
        .class = verdict->class,
        .growth = verdict->has_growth ? &verdict->growth_bytes_per_s : NULL,
        .followed = followed,
        .report = report,
    };
    /* Where numbers are another's, each container has its process 1. */
    snprintf(process->pid, sizeof(process->pid),
             report->state == SEEP_STATE_UNKNOWN ? "%u@%s" : "%u", report->pid,
             report->host);
}

static struct subject *list_processes(const struct seep_metrics_input *input,
                                      size_t *ret_count)
{
    struct subject *processes = calloc(input->count + 1, sizeof(*processes));
    size_t count = 0;

    for (size_t i = 0; processes != NULL && i < input->count; i++) {
        fill_process(input->list[i], &processes[count]);
        count += !is_listed(processes, count, &processes[count]);
    }
    *ret_count = count;
    return processes;
}

/* Between characters: half of one would be no UTF-8. To be freed. */
static char *family_name(const struct seep_family *family)
{
    char *name = seep_words_family_name(family);

    if (name != NULL) {
        name[seep_clean_cut(name, FAMILY_NAME_BYTES)] = '\0';
    }
    return name;
}

static int emit_families(struct emit *emit,
                         const struct seep_families *families)
{
    struct subject *subjects = calloc(families->count + 1, sizeof(*subjects));
    size_t count = 0;

    for (size_t i = 0; subjects != NULL && i < families->count; i++) {
        const struct seep_family *family = &families->list[i];

        subjects[count] = (struct subject){
            .labels = {{"family", NULL}, {"id", family->id}},
            .class = family->class,
            .growth = family->has_growth ? &family->growth_bytes_per_s : NULL,
            .family = family,
        };
        if (!is_listed(subjects, count, &subjects[count])) {
            subjects[count++].labels[0].value = family_name(family);
        }
    }
    if (subjects == NULL) {
        return -ENOMEM;
    }
    emit_rows(emit, of_family, COUNT(of_family), subjects, count);
    for (size_t i = 0; i < count; i++) {
        free((char *)subjects[i].labels[0].value);
    }
    free(subjects);
    return 0;
}

static int make_families(const struct subject *processes, size_t count,
                         struct emit *emit)
{
    const struct seep_report **reports = calloc(count + 1, sizeof(*reports));
    struct seep_families families;
    int error = -ENOMEM;

    for (size_t i = 0; reports != NULL && i < count; i++) {
        reports[i] = processes[i].report;
    }
    if (reports != NULL) {
        error = seep_families_make(reports, count, &families);
    }
    if (error == 0) {
        error = emit_families(emit, &families);
        seep_families_fini(&families);
    }
    free(reports);
    return error;
}

static uint64_t available_bytes(void)
{
    char text[4096];
    uint64_t bytes = 0;

    if (seep_proc_text("/proc/meminfo", text, sizeof(text)) > 0) {
        seep_proc_find_bytes(text, "\nMemAvailable:", &bytes);
    }
    return bytes;
}

int seep_metrics_emit(const struct seep_metrics_input *input,
                      struct seep_metrics_totals *totals,
                      struct seep_metrics_text *text)
{
    struct emit emit = {
        .text = text,
        .totals = totals,
        .site_limit = input->site_limit,
        .available_bytes = available_bytes(),
    };
    size_t count;
    struct subject *processes = list_processes(input, &count);
    int error = -ENOMEM;

    if (processes != NULL) {
        emit_rows(&emit, of_process, COUNT(of_process), processes, count);
        error = make_families(processes, count, &emit);
    }
    free(processes);
    return error;
}
