/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Metrics by HTTP: GET and HEAD of /metrics, /healthz and /-/ready.
 *
 * A request is answered from the page at once. Connections are bounded in
 * number, time and memory.
 */
#ifndef SEEP_TOOL_METRICS_HTTP_H
#define SEEP_TOOL_METRICS_HTTP_H

#include "metrics_page.h"

struct seep_metrics_http;

/**
 * Serve @page on the listening socket @fd, which is the server's from now on,
 * from a thread of its own. Signals that the caller blocks are blocked in it.
 *
 * @return -ENOSYS: seep was built without libmicrohttpd
 */
int seep_metrics_http_open(int fd, struct seep_metrics_page *page,
                           struct seep_metrics_http **ret_http);
/** End connections whose request takes too long; to be called now and then. */
void seep_metrics_http_sweep(struct seep_metrics_http *http);

void seep_metrics_http_close(struct seep_metrics_http *http);

#endif
