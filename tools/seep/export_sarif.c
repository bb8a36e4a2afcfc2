/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SARIF 2.1.0; see view_check.h. Invariant: ids of rules and fingerprints are
 * the same in every run, so that a finding is known again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_out.h"
#include "json_parts.h"
#include "view_check.h"

static json_t *text_of(const char *text)
{
    json_t *object = json_object();

    seep_json_put(object, "text", seep_json_text(text == NULL ? "?" : text));
    return object;
}

static json_t *array_of(json_t *value)
{
    json_t *array = json_array();

    json_array_append_new(array, value);
    return array;
}

static json_t *rules(void)
{
    json_t *array = json_array();

    for (int i = 0; i < SEEP_CHECK_COUNT; i++) {
        enum seep_check_kind kind = (enum seep_check_kind)i;
        json_t *rule = json_object();
        char name[64];

        snprintf(name, sizeof(name), "seep/%s", seep_check_name(kind));
        seep_json_put(rule, "id", json_string(name));
        seep_json_put(rule, "shortDescription",
                      text_of(seep_check_words(kind)));
        json_array_append_new(array, rule);
    }
    return array;
}

static bool is_plain(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || strchr("/._-~", byte) != NULL;
}

/* A path as a reference of RFC 3986. */
static json_t *uri_of(const char *path)
{
    char *text = malloc(3 * strlen(path) + sizeof("file://"));
    char *out = text;
    json_t *value;

    if (text == NULL) {
        return NULL;
    }
    *out = '\0';
    if (*path == '/') {
        out = stpcpy(out, "file://");
    }
    for (; *path != '\0'; path++) {
        if (is_plain(*path)) {
            *out++ = *path;
        } else {
            out += sprintf(out, "%%%02X", (unsigned char)*path);
        }
    }
    *out = '\0';
    value = json_string(text);
    free(text);
    return value;
}

/* NULL: it is not known. */
static json_t *location_of(const struct seep_report_site *site)
{
    unsigned line = 0;
    const char *path = seep_check_file(site, &line);
    json_t *artifact;
    json_t *region;
    json_t *physical;
    json_t *location;

    if (path == NULL) {
        return NULL;
    }
    artifact = json_object();
    region = json_object();
    physical = json_object();
    location = json_object();
    seep_json_put(artifact, "uri", uri_of(path));
    if (*path != '/') {
        seep_json_put(artifact, "uriBaseId", json_string("%SRCROOT%"));
    }
    seep_json_put(region, "startLine", json_integer(line));
    seep_json_put(physical, "artifactLocation", artifact);
    seep_json_put(physical, "region", region);
    seep_json_put(location, "physicalLocation", physical);
    return location;
}

static void put_site(json_t *object, const struct seep_report_site *site)
{
    json_t *prints = json_object();
    json_t *location = location_of(site);

    seep_json_put(prints, "seepSiteId/v1", seep_json_text(site->id));
    seep_json_put(object, "partialFingerprints", prints);
    if (location != NULL) {
        seep_json_put(object, "locations", array_of(location));
    }
}

/* @param site  NULL: the result is at none */
static json_t *result_of(const struct seep_check_result *result,
                         const struct seep_report_site *site)
{
    bool failed = result->outcome == SEEP_CHECK_FAIL;
    char *message = seep_check_message(result);
    json_t *object = json_object();
    char rule[64];

    snprintf(rule, sizeof(rule), "seep/%s",
             seep_check_name(result->limit->kind));
    seep_json_put(object, "ruleId", json_string(rule));
    seep_json_put(object, "ruleIndex",
                  json_integer((json_int_t)result->limit->kind));
    /* A kind other than "fail" has no level. */
    seep_json_put(object, "kind", json_string(failed ? "fail" : "open"));
    seep_json_put(object, "level", json_string(failed ? "error" : "none"));
    seep_json_put(object, "message", text_of(message));
    if (site != NULL) {
        put_site(object, site);
    }
    free(message);
    return object;
}

static json_t *results_of(const struct seep_check_set *set)
{
    json_t *array = json_array();

    for (size_t i = 0; i < set->count; i++) {
        const struct seep_check_result *result = &set->results[i];

        if (result->outcome == SEEP_CHECK_PASS) {
            continue;
        }
        for (size_t k = 0; k < result->site_count; k++) {
            json_array_append_new(array, result_of(result, result->sites[k]));
        }
        if (result->site_count == 0) {
            json_array_append_new(array, result_of(result, NULL));
        }
    }
    return array;
}

static json_t *run_of(const struct seep_check_set *set)
{
    json_t *driver = json_object();
    json_t *tool = json_object();
    json_t *run = json_object();

    seep_json_put(driver, "name", json_string("seep"));
    seep_json_put(driver, "version", json_string(SEEP_VERSION));
    seep_json_put(driver, "rules", rules());
    seep_json_put(tool, "driver", driver);
    seep_json_put(run, "tool", tool);
    seep_json_put(run, "columnKind", json_string("unicodeCodePoints"));
    seep_json_put(run, "results", results_of(set));
    return run;
}

int seep_export_sarif(const char *path, const struct seep_check_set *set)
{
    struct seep_json_out out = {.file = fopen(path, "we")};
    json_t *document;
    int error;

    if (out.file == NULL) {
        return -errno;
    }
    document = json_object();
    seep_json_put(document, "$schema",
                  json_string("https://json.schemastore.org/sarif-2.1.0.json"));
    seep_json_put(document, "version", json_string("2.1.0"));
    seep_json_put(document, "runs", array_of(run_of(set)));
    seep_json_out_value(&out, document);
    error = seep_json_out_finish(&out);
    return fclose(out.file) != 0 && error == 0 ? -EIO : error;
}
