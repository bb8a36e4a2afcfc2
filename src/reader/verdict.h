/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The verdict on a process: from the classes of its call sites and from what
 * grew outside of them, to one class and the growth that it is about.
 *
 * Invariant: what a class is about is material: by at least the floor over the
 * run at call sites, by a share of resident memory outside of them. Pure; any
 * thread.
 */
#ifndef SEEP_READER_VERDICT_H
#define SEEP_READER_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "reader/balance.h"
#include "reader/forecast.h"
#include "reader/report.h"
#include "reader/sites.h"

struct seep_verdict_input {
    const struct seep_site_work *works; /* .site only; the worst first */
    size_t count;
    /* By place, of all sites in spaces that hold memory. */
    uint64_t live_bytes[SEEP_PLACE_COUNT];
    double duration_s;
    const char *too_short; /* why nothing can be told; NULL */
    /* What private memory grew by over the run, at the rate of its settled
     * part: at least and at most, 0 and INFINITY if it is not known. */
    double least_growth_bytes;
    double most_growth_bytes;
    /* What calls of the process hold of each device grew by at least. */
    double least_device_bytes[SEEP_DEVICES_MAX];
    /* What is charged to no call site grew by at most so much: many things at
     * once, of which the class says nothing. */
    double uncharged_growth_bytes;
    struct seep_balance_outside outside;
    /* That PyTorch's cache of each device grows by, where the tensors in it do
     * not; else 0. */
    struct seep_interval caches[SEEP_DEVICES_MAX];
};

/** Growth at the present rate of work, for the forecast. */
struct seep_verdict_now {
    enum seep_forecast_basis basis;
    struct seep_interval bytes_per_s; /* of memory of the host */
    /* Of the memory of each device: what the class is about of it. */
    struct seep_verdict_pace {
        bool told; /* false: nothing */
        enum seep_forecast_basis basis;
        struct seep_interval bytes_per_s;
    } devices[SEEP_DEVICES_MAX];
    double left_bytes; /* that caches have to fill up to bounds named */
};

/** @param ret_verdict  all but its forecast */
void seep_verdict_decide(const struct seep_verdict_input *input,
                         struct seep_report_verdict *ret_verdict,
                         struct seep_verdict_now *ret_now);

#endif
