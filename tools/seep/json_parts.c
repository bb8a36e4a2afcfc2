/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values of the JSON documents. Invariant: every string is valid UTF-8 and
 * every number finite, so that every parser takes it.
 */
#include "json_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"

void seep_json_put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value == NULL ? json_null() : value);
}

json_t *seep_json_text(const char *text)
{
    char *clean = seep_clean_for_json(text);
    json_t *value = clean == NULL ? NULL : json_string(clean);

    free(clean);
    return value;
}

json_t *seep_json_text_or_null(const char *text)
{
    return text == NULL || *text == '\0' ? json_null() : seep_json_text(text);
}

json_t *seep_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *seep_json_count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *seep_json_address(uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
    return json_string(text);
}

json_t *seep_json_interval(const struct seep_interval *interval, double scale)
{
    json_t *object = json_object();

    seep_json_put(object, "estimate",
                  seep_json_real(interval->estimate * scale));
    seep_json_put(object, "low", seep_json_real(interval->low * scale));
    seep_json_put(object, "high", seep_json_real(interval->high * scale));
    return object;
}

json_t *seep_json_extent(const struct seep_report_extent *extent)
{
    json_t *object;

    if (!extent->valid) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "first_bytes", seep_json_real(extent->first_bytes));
    seep_json_put(object, "last_bytes", seep_json_real(extent->last_bytes));
    seep_json_put(object, "slope_bytes_per_s",
                  seep_json_real(extent->slope_bytes_per_s));
    seep_json_put(object, "slope_error_bytes_per_s",
                  seep_json_real(extent->slope_error));
    return object;
}

json_t *seep_json_forecast(const struct seep_report_forecast *forecast)
{
    static const char *const answers[] = {
        [SEEP_FORECAST_UNKNOWN] = "unknown",
        [SEEP_FORECAST_NEVER] = "never",
        [SEEP_FORECAST_TIME] = "time",
    };
    json_t *object;

    if (forecast->answer == SEEP_FORECAST_UNKNOWN &&
        forecast->limit_bytes == 0) {
        return json_null();
    }
    object = json_object();
    seep_json_put(object, "answer", json_string(answers[forecast->answer % 3]));
    seep_json_put(object, "what", seep_json_text_or_null(forecast->what));
    seep_json_put(object, "device",
                  forecast->device < 0 ? json_null()
                                       : json_integer(forecast->device));
    seep_json_put(object, "limit_bytes",
                  seep_json_count(forecast->limit_bytes));
    seep_json_put(object, "used_bytes", seep_json_count(forecast->used_bytes));
    seep_json_put(object, "if_suspect", json_boolean(forecast->if_suspect));
    seep_json_put(object, "seconds",
                  forecast->answer == SEEP_FORECAST_TIME
                      ? seep_json_interval(&forecast->seconds, 1)
                      : json_null());
    return object;
}
