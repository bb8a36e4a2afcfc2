/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SARIF 2.1.0; see ci.h. Invariant: ids of rules and fingerprints are
 * the same in every run, so that a finding is known again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ci/ci.h"
#include "json/json.h"

/* What stays as it is in a reference of RFC 3986. */
#define URI_BYTES \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~"

static json_t *text_of(const char *text)
{
    return json_pack("{s:o}", "text",
                     seep_json_text(text == NULL ? "?" : text));
}

static json_t *id_of(enum seep_check_kind kind)
{
    return json_sprintf("seep/%s", seep_check_name(kind));
}

static json_t *rules(void)
{
    json_t *array = json_array();

    for (int i = 0; i < SEEP_CHECK_COUNT; i++) {
        enum seep_check_kind kind = (enum seep_check_kind)i;

        json_array_append_new(
            array, json_pack("{s:o,s:o}", "id", id_of(kind), "shortDescription",
                             text_of(seep_check_words(kind))));
    }
    return array;
}

static json_t *uri_of(const char *path)
{
    char *text = seep_ci_escape(path, URI_BYTES, true);
    json_t *value =
        text == NULL
            ? json_null()
            : json_sprintf("%s%s", *path == '/' ? "file://" : "", text);

    free(text);
    return value;
}

/* NULL: it is not known. */
static json_t *location_of(const struct seep_report_site *site)
{
    unsigned line = 0;
    const char *path = seep_check_file(site, &line);

    if (path == NULL) {
        return NULL;
    }
    return json_pack("{s:{s:{s:o,s:s*},s:{s:I}}}", "physicalLocation",
                     "artifactLocation", "uri", uri_of(path), "uriBaseId",
                     *path == '/' ? NULL : "%SRCROOT%", "region", "startLine",
                     (json_int_t)line);
}

static void put_site(json_t *object, const struct seep_report_site *site)
{
    json_t *location = location_of(site);

    seep_json_put(
        object, "partialFingerprints",
        json_pack("{s:o}", "seepSiteId/v1", seep_json_text(site->id)));
    if (location != NULL) {
        seep_json_put(object, "locations", json_pack("[o]", location));
    }
}

/* @param site  NULL: the result is at none */
static json_t *result_of(const struct seep_check_result *result,
                         const struct seep_report_site *site)
{
    bool failed = result->outcome == SEEP_CHECK_FAIL;
    char *message = seep_check_message(result);
    json_t *object = json_object();

    seep_json_put(object, "ruleId", id_of(result->limit->kind));
    seep_json_put(object, "ruleIndex", result->limit->kind);
    /* A kind other than "fail" has no level. */
    seep_json_put(object, "kind", failed ? "fail" : "open");
    seep_json_put(object, "level", failed ? "error" : "none");
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
    json_t *driver = json_pack("{s:s,s:s,s:o}", "name", "seep", "version",
                               SEEP_VERSION, "rules", rules());

    return json_pack("{s:{s:o},s:s,s:o}", "tool", "driver", driver,
                     "columnKind", "unicodeCodePoints", "results",
                     results_of(set));
}

int seep_ci_sarif(const char *path, const struct seep_check_set *set)
{
    FILE *file = fopen(path, "we");
    json_t *document;
    int error;

    if (file == NULL) {
        return -errno;
    }
    document = json_pack("{s:s,s:s,s:[o]}", "$schema",
                         "https://json.schemastore.org/sarif-2.1.0.json",
                         "version", "2.1.0", "runs", run_of(set));
    error = seep_json_print(file, document);
    return fclose(file) != 0 && error == 0 ? -EIO : error;
}
