/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JUnit's XML; see ci.h. Invariant: what is of a recording is
 * printable UTF-8 before it is written: XML has no way to write a control byte.
 *
 * Not enough data is skipped, not passed: the exit status tells the two apart.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ci/ci.h"
#include "words/clean.h"
#include "words/words.h"

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

static void note(struct xml *xml, int written)
{
    xml->failed |= written < 0;
}

static void begin(struct xml *xml, const char *name)
{
    note(xml, xmlTextWriterStartElement(xml->writer, BAD_CAST name));
}

static void end(struct xml *xml)
{
    note(xml, xmlTextWriterEndElement(xml->writer));
}

/* @text is cleaned. */
static void put(struct xml *xml, const char *name, const char *text)
{
    char *clean = text == NULL ? NULL : seep_clean_for_terminal(text);

    xml->failed |= clean == NULL;
    if (clean != NULL) {
        note(xml, xmlTextWriterWriteAttribute(xml->writer, BAD_CAST name,
                                              BAD_CAST clean));
    }
    free(clean);
}

static void put_count(struct xml *xml, const char *name, size_t count)
{
    note(xml, xmlTextWriterWriteFormatAttribute(xml->writer, BAD_CAST name,
                                                "%zu", count));
}

static void put_property(struct xml *xml, const char *name, double value)
{
    begin(xml, "property");
    put(xml, "name", name);
    note(xml, xmlTextWriterWriteFormatAttribute(xml->writer, BAD_CAST "value",
                                                "%.12g", value));
    end(xml);
}

static void put_properties(struct xml *xml,
                           const struct seep_check_result *result)
{
    const struct seep_interval *value = &result->measure.value;

    if (!result->measure.valid) {
        return;
    }
    begin(xml, "properties");
    put_property(xml, "estimate", value->estimate);
    put_property(xml, "low", value->low);
    put_property(xml, "high", value->high);
    put_property(xml, "limit", result->limit->value);
    end(xml);
}

/* A case is known again by its names in the next run: no pid is in them. */
static void put_case(struct xml *xml, const struct seep_check_result *result,
                     const char *program)
{
    char *title = seep_check_title(result->limit);
    char *message = seep_check_message(result);
    bool failed = result->outcome == SEEP_CHECK_FAIL;

    begin(xml, "testcase");
    put(xml, "classname", program);
    put(xml, "name", title);
    put(xml, "time", "0");
    put_properties(xml, result);
    if (result->outcome != SEEP_CHECK_PASS) {
        begin(xml, failed ? "failure" : "skipped");
        if (failed) {
            put(xml, "type", seep_check_name(result->limit->kind));
        }
        put(xml, "message", message);
        end(xml);
    }
    end(xml);
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

    begin(xml, "testsuite");
    put(xml, "name", process);
    put_count(xml, "tests", count);
    put_count(xml, "failures", seep_check_tally(&part, SEEP_CHECK_FAIL));
    put_count(xml, "errors", 0);
    put_count(xml, "skipped", seep_check_tally(&part, SEEP_CHECK_INSUFFICIENT));
    for (size_t i = 0; i < count; i++) {
        put_case(xml, &results[i], program == NULL ? "seep" : program);
    }
    end(xml);
    free(program);
    free(process);
}

static void put_all(struct xml *xml, const struct seep_check_set *set)
{
    size_t last;

    note(xml, xmlTextWriterSetIndent(xml->writer, 1));
    note(xml, xmlTextWriterStartDocument(xml->writer, NULL, "UTF-8", NULL));
    begin(xml, "testsuites");
    put(xml, "name", "seep check");
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
    end(xml);
    note(xml, xmlTextWriterEndDocument(xml->writer));
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
