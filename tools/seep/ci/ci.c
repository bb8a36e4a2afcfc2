/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a check came to, in the formats of others: GitHub's annotations and
 * summary, JUnit's XML, SARIF; see ci.h. Invariant: nothing that is of a
 * recording ends what it stands in, be it a command, a cell or an element.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ci/ci.h"
#include "words/clean.h"
#include "words/words.h"
#include "json/json.h"

char *seep_ci_escape(const char *text, const char *bytes, bool kept)
{
    char *escaped = malloc(3 * strlen(text) + 1);
    char *out = escaped;

    if (escaped == NULL) {
        return NULL;
    }
    for (; *text != '\0'; text++) {
        if ((strchr(bytes, *text) != NULL) != kept) {
            out += sprintf(out, "%%%02X", (unsigned char)*text);
        } else {
            *out++ = *text;
        }
    }
    *out = '\0';
    return escaped;
}

/*
 * Annotations of GitHub's workflow commands, and a table in Markdown.
 * Invariant: nothing that is of a recording ends a command, a property or a
 * cell.
 */

#define ANNOTATIONS_MAX 10 /* of a step GitHub shows no more of a kind */
#define ROWS_MAX 500       /* a summary may have 1 MiB */

/* What a workflow command takes for its own. */
#define IN_DATA "%\r\n"
#define IN_PROPERTY IN_DATA ":,"

/* Cleaned, then escaped; @text may be NULL. */
static void put(FILE *file, const char *text, const char *taken)
{
    char *clean = seep_clean_for_terminal(text == NULL ? "?" : text);
    char *escaped = clean == NULL ? NULL : seep_ci_escape(clean, taken, false);

    fputs(escaped == NULL ? "?" : escaped, file);
    free(escaped);
    free(clean);
}

/* ::error file=serve.py,line=31,title=seep growth::... */
static void annotate(FILE *file, const struct seep_check_result *result)
{
    char *message = seep_check_message(result);
    char *title = seep_check_title(result->limit);
    unsigned line = 0;
    const char *source = result->site_count > 0
                             ? seep_check_file(result->sites[0], &line)
                             : NULL;

    fputs(result->outcome == SEEP_CHECK_FAIL ? "::error " : "::warning ", file);
    if (source != NULL) {
        fputs("file=", file);
        put(file, source, IN_PROPERTY);
        fprintf(file, ",line=%u,", line);
    }
    fputs("title=seep ", file);
    put(file, title, IN_PROPERTY);
    fputs("::", file);
    put(file, message, IN_DATA);
    fputs("\n", file);
    free(title);
    free(message);
}

/* In a cell: no bar, no HTML, no emphasis. */
static void put_cell(FILE *file, const char *text)
{
    char *clean = seep_clean_for_terminal(text == NULL ? "?" : text);

    for (const char *at = clean; at != NULL && *at != '\0'; at++) {
        if (strchr("\\`*_{}[]<>#|~!&", *at) != NULL) {
            fputc('\\', file);
        }
        fputc(*at, file);
    }
    fputs(" | ", file);
    free(clean);
}

static void put_row(FILE *file, const struct seep_check_result *result)
{
    char *process = seep_check_subject(result);
    char *title = seep_check_title(result->limit);
    char *measured = seep_check_measured(result);
    char *bound = seep_check_bound(result->limit);
    char *site = result->site_count > 0 ? seep_check_place(result, 0) : NULL;

    fputs("| ", file);
    put_cell(file, seep_check_outcome_name(result->outcome));
    put_cell(file, process);
    put_cell(file, title);
    put_cell(file, measured);
    put_cell(file, bound);
    put_cell(file, site == NULL ? result->measure.reason : site);
    fputs("\n", file);
    free(process);
    free(title);
    free(measured);
    free(bound);
    free(site);
}

static int summarise(const char *path, const struct seep_check_set *set)
{
    FILE *file = fopen(path, "ae");
    char *headline;
    int error;

    if (file == NULL) {
        return -errno;
    }
    headline = seep_check_headline(set);
    fprintf(file, "### seep: %s\n\n", headline == NULL ? "?" : headline);
    fputs("| outcome | process | of | measured | limit | where |\n"
          "| --- | --- | --- | --- | --- | --- |\n",
          file);
    for (size_t i = 0; i < set->count && i < ROWS_MAX; i++) {
        put_row(file, &set->results[i]);
    }
    fputs("\n", file);
    error = ferror(file) ? -EIO : 0;
    free(headline);
    return fclose(file) != 0 ? -EIO : error;
}

int seep_ci_github(FILE *file, const char *summary_path,
                   const struct seep_check_set *set)
{
    size_t count = 0;

    for (int pass = 0; pass < 2; pass++) {
        enum seep_check_outcome wanted =
            pass == 0 ? SEEP_CHECK_FAIL : SEEP_CHECK_INSUFFICIENT;

        for (size_t i = 0; i < set->count && count < ANNOTATIONS_MAX; i++) {
            if (set->results[i].outcome == wanted) {
                annotate(file, &set->results[i]);
                count++;
            }
        }
    }
    if (summary_path != NULL && *summary_path != '\0') {
        return summarise(summary_path, set);
    }
    return ferror(file) ? -EIO : 0;
}

/*
 * JUnit's XML. Invariant: what is of a recording is printable UTF-8 before it
 * is written: XML has no way to write a control byte.
 *
 * Not enough data is skipped, not passed: the exit status tells the two apart.
 */

#ifndef SEEP_HAVE_XML

int seep_ci_junit(const char *path, const struct seep_check_set *set)
{
    (void)path;
    (void)set;
    return -ENOTSUP;
}

#else

#include <libxml/xmlwriter.h>

/* The writer says by a negative number that it failed; the first one stays. */
struct xml {
    xmlTextWriterPtr writer;
    bool failed;
};

static void note_written(struct xml *xml, int written)
{
    xml->failed |= written < 0;
}

static void begin_element(struct xml *xml, const char *name)
{
    note_written(xml, xmlTextWriterStartElement(xml->writer, BAD_CAST name));
}

static void end_element(struct xml *xml)
{
    note_written(xml, xmlTextWriterEndElement(xml->writer));
}

/* @text is cleaned. */
static void put_attribute(struct xml *xml, const char *name, const char *text)
{
    char *clean = text == NULL ? NULL : seep_clean_for_terminal(text);

    xml->failed |= clean == NULL;
    if (clean != NULL) {
        note_written(xml, xmlTextWriterWriteAttribute(
                              xml->writer, BAD_CAST name, BAD_CAST clean));
    }
    free(clean);
}

static void put_count(struct xml *xml, const char *name, size_t count)
{
    note_written(xml, xmlTextWriterWriteFormatAttribute(
                          xml->writer, BAD_CAST name, "%zu", count));
}

static void put_property(struct xml *xml, const char *name, double value)
{
    begin_element(xml, "property");
    put_attribute(xml, "name", name);
    note_written(xml, xmlTextWriterWriteFormatAttribute(
                          xml->writer, BAD_CAST "value", "%.12g", value));
    end_element(xml);
}

static void put_properties(struct xml *xml,
                           const struct seep_check_result *result)
{
    const struct seep_interval *value = &result->measure.value;

    if (!result->measure.valid) {
        return;
    }
    begin_element(xml, "properties");
    put_property(xml, "estimate", value->estimate);
    put_property(xml, "low", value->low);
    put_property(xml, "high", value->high);
    put_property(xml, "limit", result->limit->value);
    end_element(xml);
}

/* A case is known again by its names in the next run: no pid is in them. */
static void put_case(struct xml *xml, const struct seep_check_result *result,
                     const char *program)
{
    char *title = seep_check_title(result->limit);
    char *message = seep_check_message(result);
    bool failed = result->outcome == SEEP_CHECK_FAIL;

    begin_element(xml, "testcase");
    put_attribute(xml, "classname", program);
    put_attribute(xml, "name", title);
    put_attribute(xml, "time", "0");
    put_properties(xml, result);
    if (result->outcome != SEEP_CHECK_PASS) {
        begin_element(xml, failed ? "failure" : "skipped");
        if (failed) {
            put_attribute(xml, "type", seep_check_name(result->limit->kind));
        }
        put_attribute(xml, "message", message);
        end_element(xml);
    }
    end_element(xml);
    free(title);
    free(message);
}

static void put_suite(struct xml *xml, const struct seep_check_result *results,
                      size_t count)
{
    const struct seep_check_set part = {.results = results, .count = count};
    const struct seep_report *report = results[0].report;
    char *process = seep_check_subject(&results[0]);
    char *program = report == NULL ? NULL : seep_words_program(report);

    begin_element(xml, "testsuite");
    put_attribute(xml, "name", process);
    put_count(xml, "tests", count);
    put_count(xml, "failures", seep_check_tally(&part, SEEP_CHECK_FAIL));
    put_count(xml, "errors", 0);
    put_count(xml, "skipped", seep_check_tally(&part, SEEP_CHECK_INSUFFICIENT));
    for (size_t i = 0; i < count; i++) {
        put_case(xml, &results[i], program == NULL ? "seep" : program);
    }
    end_element(xml);
    free(program);
    free(process);
}

static void put_all(struct xml *xml, const struct seep_check_set *set)
{
    size_t last;

    note_written(xml, xmlTextWriterSetIndent(xml->writer, 1));
    note_written(xml,
                 xmlTextWriterStartDocument(xml->writer, NULL, "UTF-8", NULL));
    begin_element(xml, "testsuites");
    put_attribute(xml, "name", "seep check");
    put_count(xml, "tests", set->count);
    put_count(xml, "failures", seep_check_tally(set, SEEP_CHECK_FAIL));
    for (size_t first = 0; first < set->count; first = last) {
        for (last = first + 1; last < set->count &&
                               seep_check_is_same_subject(&set->results[last],
                                                          &set->results[first]);
             last++) {
        }
        put_suite(xml, &set->results[first], last - first);
    }
    end_element(xml);
    note_written(xml, xmlTextWriterEndDocument(xml->writer));
}

/* libxml2 prints what goes wrong with a file that it writes itself. */
static int write_file(const char *path, const xmlBuffer *buffer)
{
    FILE *file = fopen(path, "we");
    size_t size = (size_t)xmlBufferLength(buffer);
    int error = 0;

    if (file == NULL) {
        return -errno;
    }
    if (fwrite(xmlBufferContent(buffer), 1, size, file) != size) {
        error = -EIO;
    }
    return fclose(file) != 0 ? -EIO : error;
}

int seep_ci_junit(const char *path, const struct seep_check_set *set)
{
    xmlBufferPtr buffer = xmlBufferCreate();
    struct xml xml = {
        .writer = buffer == NULL ? NULL : xmlNewTextWriterMemory(buffer, 0)};
    int error = -ENOMEM;

    if (xml.writer != NULL) {
        put_all(&xml, set);
        xmlFreeTextWriter(xml.writer); /* flushes into the buffer */
        error = xml.failed ? -ENOMEM : write_file(path, buffer);
    }
    xmlBufferFree(buffer);
    return error;
}

#endif

/*
 * SARIF 2.1.0. Invariant: ids of rules and fingerprints are the same in every
 * run, so that a finding is known again.
 */

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
