/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Every metric, once. Names follow Prometheus: seep_ first, base units, the
 * unit last, _total on counters and _info on what is always 1; these two are
 * added by who writes. A unit is only said where the name ends in it.
 *
 * Of a process, which has the labels pid and exe: X(SYMBOL, type, "name",
 * "unit", "help").
 */
#ifndef SEEP_TOOL_METRICS_TABLE_H
#define SEEP_TOOL_METRICS_TABLE_H

#define SEEP_METRICS_OF_PROCESS(X)                                            \
    X(verdict, GAUGE, "verdict", "", "1 for what the process has, else 0.")   \
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

/** Of the exporter itself. */
#define SEEP_METRICS_OF_EXPORTER(X)                                           \
    X(BUILD, INFO, "build", "", "What computed these metrics.")               \
    X(RECORDINGS, GAUGE, "recordings", "",                                    \
      "Recordings by what is done with them; left_out are beyond the limit.") \
    X(FORGOTTEN, COUNTER, "recordings_forgotten", "",                         \
      "Recordings that were followed and no longer are.")                     \
    X(REFRESH, GAUGE, "refresh_duration_seconds", "seconds",                  \
      "How long the last reading of all recordings took.")                    \
    X(REFRESHED, GAUGE, "refresh_timestamp_seconds", "seconds",               \
      "When these figures were read.")

enum seep_metric_type {
    SEEP_METRIC_GAUGE,
    SEEP_METRIC_COUNTER,
    SEEP_METRIC_INFO,
};

struct seep_metric {
    enum seep_metric_type type;
    const char *name; /* without seep_ and without _total or _info */
    const char *unit; /* "" if none is said */
    const char *help;
};

#endif
