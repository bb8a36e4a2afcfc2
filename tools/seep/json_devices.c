/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs as JSON. Invariant: as elsewhere, what is not known is null.
 */
#include "json_devices.h"

#include "json_parts.h"
#include "words.h"

static json_t *extent_of(const struct seep_report_device *device,
                         const struct seep_report_extent *extent)
{
    json_t *object = seep_json_extent(extent);

    if (json_is_object(object) && !seep_words_is_followed(device)) {
        seep_json_put(object, "slope_bytes_per_s", json_null());
        seep_json_put(object, "slope_error_bytes_per_s", json_null());
    }
    return object;
}

static json_t *cache_of(const struct seep_report_device *device,
                        const struct seep_report_extent *reserved,
                        const char *used_name,
                        const struct seep_report_extent *used)
{
    json_t *object = json_object();

    seep_json_put(object, "reserved", extent_of(device, reserved));
    seep_json_put(object, used_name, extent_of(device, used));
    return object;
}

static json_t *device_of(const struct seep_report_device *device)
{
    json_t *object = json_object();
    json_t *tensor = cache_of(device, &device->tensor_reserved, "allocated",
                              &device->tensor_allocated);

    seep_json_put(tensor, "fragments", json_boolean(device->cache_fragments));
    seep_json_put(object, "ordinal", json_integer(device->ordinal));
    seep_json_put(object, "total_bytes", seep_json_count(device->total_bytes));
    seep_json_put(object, "free_bytes", seep_json_count(device->free_bytes));
    seep_json_put(object, "low_free_bytes",
                  seep_json_count(device->low_free_bytes));
    seep_json_put(object, "used", extent_of(device, &device->used));
    seep_json_put(object, "tracked", extent_of(device, &device->tracked));
    seep_json_put(object, "unexplained",
                  extent_of(device, &device->unexplained));
    seep_json_put(
        object, "pool",
        cache_of(device, &device->pool_reserved, "used", &device->pool_used));
    seep_json_put(
        object, "graph",
        cache_of(device, &device->graph_reserved, "used", &device->graph_used));
    seep_json_put(object, "tensor", tensor);
    seep_json_put(object, "forecast", seep_json_forecast(&device->forecast));
    return object;
}

json_t *seep_json_devices(const struct seep_report *report)
{
    json_t *array = json_array();

    for (size_t i = 0; i < report->device_count; i++) {
        json_array_append_new(array, device_of(&report->devices[i]));
    }
    return array;
}
