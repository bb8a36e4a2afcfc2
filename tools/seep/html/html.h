/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A report as one HTML file that needs nothing else: no server, no network.
 *
 * The page is the folder page/, put together by embed.py when seep is built;
 * its data are the JSON documents, compressed and in base64, so that nothing of
 * a recording is ever read as HTML.
 *
 * Errors: -ENOTSUP where seep was built without d3 or zlib; else as the JSON
 * documents, and -errno of the file. A file that could not be written whole is
 * not left behind.
 */
#ifndef SEEP_TOOL_HTML_HTML_H
#define SEEP_TOOL_HTML_HTML_H

#include <stddef.h>

#include "json/json.h"

/**
 * Can a page be written to @path, of a verb? @return 0, also where @path is
 * NULL; the exit code after saying why not: option @other goes with no page
 * (NULL: none is given), or there is none in this build.
 */
int seep_html_check(const char *verb, const char *path, const char *other);

/** The reports, worst first, with their stacks; to stdout if @path is "-". */
int seep_html_reports(const char *path,
                      const struct seep_report *const *reports, size_t count,
                      size_t refused_count,
                      const struct seep_json_options *options);

/** Two runs: their difference, and the reports of both. */
int seep_html_diff(const char *path, const struct seep_diff_set *set,
                   const struct seep_report *const *before, size_t before_count,
                   const struct seep_report *const *now, size_t now_count);

/** The same to a stream; between these two of the page stands base64. */
int seep_html_write_reports(FILE *file,
                            const struct seep_report *const *reports,
                            size_t count, size_t refused_count,
                            const struct seep_json_options *options);

#endif
