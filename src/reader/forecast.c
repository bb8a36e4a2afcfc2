/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See forecast.h. */
#include "reader/forecast.h"

#include <math.h>

static double headroom_of(uint64_t limit_bytes, uint64_t used_bytes)
{
    return used_bytes >= limit_bytes ? 0 : (double)(limit_bytes - used_bytes);
}

/* No growth that could be told from none reaches a limit. */
static bool is_growing(const struct seep_interval *rate)
{
    return isfinite(rate->estimate) && rate->estimate > 0 &&
           isfinite(rate->low) && isfinite(rate->high) &&
           rate->high >= rate->estimate && rate->low <= rate->estimate;
}

static struct seep_report_forecast
forecast_of(const struct seep_forecast_limit *limit,
            enum seep_forecast_basis basis)
{
    const struct seep_interval *rate = &limit->bytes_per_s;
    double headroom = headroom_of(limit->limit_bytes, limit->used_bytes);
    struct seep_report_forecast forecast = {
        .answer = SEEP_FORECAST_NEVER,
        .what = limit->what,
        .limit_bytes = limit->limit_bytes,
        .used_bytes = limit->used_bytes,
        .device = -1,
    };

    if (!is_growing(rate) || !isfinite(headroom / rate->estimate)) {
        return forecast;
    }
    forecast.answer = SEEP_FORECAST_TIME;
    forecast.if_suspect = basis == SEEP_FORECAST_SUSPECTED;
    forecast.seconds.low = headroom / rate->high;
    forecast.seconds.estimate = headroom / rate->estimate;
    forecast.seconds.high = 0;
    if (headroom > 0) {
        forecast.seconds.high = rate->low > 0 ? headroom / rate->low : INFINITY;
    }
    return forecast;
}

bool seep_forecast_is_nearer(const struct seep_report_forecast *a,
                             const struct seep_report_forecast *b)
{
    if (b->answer == SEEP_FORECAST_UNKNOWN || a->answer != b->answer) {
        return a->answer > b->answer;
    }
    if (a->answer == SEEP_FORECAST_TIME) {
        return a->seconds.estimate < b->seconds.estimate;
    }
    return headroom_of(a->limit_bytes, a->used_bytes) <
           headroom_of(b->limit_bytes, b->used_bytes);
}

void seep_forecast_make(const struct seep_forecast_limit *limits, size_t count,
                        enum seep_forecast_basis basis,
                        struct seep_report_forecast *ret_forecast)
{
    struct seep_report_forecast nearest = {
        .answer = SEEP_FORECAST_UNKNOWN,
        .what = "",
        .device = -1,
    };

    for (size_t i = 0; basis != SEEP_FORECAST_UNTOLD && i < count; i++) {
        if (limits[i].limit_bytes > 0) {
            struct seep_report_forecast at = forecast_of(&limits[i], basis);

            nearest = seep_forecast_is_nearer(&at, &nearest) ? at : nearest;
        }
    }
    *ret_forecast = nearest;
}
