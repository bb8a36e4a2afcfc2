/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Annotations of GitHub's workflow commands, and a table in Markdown; see
 * text/report.h. Invariant: nothing that is of a recording ends a command, a
 * property or a cell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ci/ci.h"
#include "words/clean.h"

#define ANNOTATIONS_MAX 10 /* of a step GitHub shows no more of a kind */
#define ROWS_MAX 500       /* a summary may have 1 MiB */

/* What a workflow command takes for its own. */
#define IN_DATA "%\r\n"
#define IN_PROPERTY IN_DATA ":,"

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
