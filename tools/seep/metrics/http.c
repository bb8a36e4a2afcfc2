/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Metrics by HTTP, with libmicrohttpd where it was there.
 *
 * Invariant: a connection in the table is open, for it leaves the table, under
 * the lock, before its descriptor is closed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "metrics/metrics.h"

/*
 * Content negotiation, as far as there are two formats (RFC 9110, 12.5.1).
 */

#define BLANK " \t"

static bool is_type(const char *range, size_t length, const char *type)
{
    return strlen(type) == length && strncasecmp(range, type, length) == 0;
}

/* The weight among the parameters of a range, which end at @end; 1 if none. */
static double weight_of(const char *parameters, const char *end)
{
    while (parameters < end && *parameters == ';') {
        parameters++;
        parameters += strspn(parameters, BLANK);
        if (end - parameters > 2 && strncasecmp(parameters, "q=", 2) == 0) {
            return strtod(parameters + 2, NULL);
        }
        parameters += strcspn(parameters, ",;");
    }
    return 1;
}

enum seep_metrics_format seep_metrics_accept(const char *header)
{
    double text = 0;
    double any = 0;
    double open = 0;

    while (header != NULL && *header != '\0') {
        header += strspn(header, BLANK ",");
        const char *end = header + strcspn(header, ",");
        size_t length = strcspn(header, BLANK ",;");
        const char *parameters = header + length;
        parameters += strspn(parameters, BLANK);
        double weight = weight_of(parameters, end);

        if (is_type(header, length, "application/openmetrics-text")) {
            open = weight > open ? weight : open;
        } else if (is_type(header, length, "text/plain")) {
            text = weight > text ? weight : text;
        } else if (is_type(header, length, "*/*") ||
                   is_type(header, length, "text/*")) {
            any = weight > any ? weight : any;
        }
        header = end;
    }
    text = text > 0 ? text : any;
    return open > 0 && open >= text ? SEEP_METRICS_OPENMETRICS
                                    : SEEP_METRICS_PROMETHEUS;
}

/*
 * The last figures. Invariant: both texts are of one refresh, and the lock is
 * held for a copy at most.
 */

void seep_metrics_page_close(struct seep_metrics_page *page)
{
    free(page->texts[0].text);
    free(page->texts[1].text);
}

void seep_metrics_page_put(struct seep_metrics_page *page,
                           struct seep_metrics_text texts[2])
{
    struct seep_metrics_text old[2];

    pthread_mutex_lock(&page->lock);
    memcpy(old, page->texts, sizeof(old));
    memcpy(page->texts, texts, sizeof(old));
    pthread_mutex_unlock(&page->lock);
    free(old[0].text);
    free(old[1].text);
}

#ifdef SEEP_HAVE_HTTP

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/thread.h"

#define CONNECTIONS_MOST 64
/* So many stay, and who comes beyond them is let in all the same: one of the
 * others goes. The rest of the places is for those that are on their way out.
 */
#define STAYING_MOST 48
#define CONNECTION_S 5 /* without a word */
#define CONNECTION_BYTES (32 << 10)
/* In all for a request and its answer: who sends a byte now and then would
 * hold one of the few places for hours. As long as Prometheus waits. */
#define REQUEST_NS UINT64_C(10000000000)

/* The header Content-Type of @format. */
static const char *content_type_of(enum seep_metrics_format format)
{
    return format == SEEP_METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

/*
 * A copy of the last text, to be freed.
 *
 * @return -EAGAIN: there is none yet; -ENOMEM
 */
static int take_page(struct seep_metrics_page *page,
                     enum seep_metrics_format format, char **ret_text,
                     size_t *ret_length)
{
    int error = -EAGAIN;

    pthread_mutex_lock(&page->lock);
    const struct seep_metrics_text *text = &page->texts[format];
    if (text->text != NULL) {
        *ret_text = strdup(text->text);
        *ret_length = text->length;
        error = *ret_text == NULL ? -ENOMEM : 0;
    }
    pthread_mutex_unlock(&page->lock);
    return error;
}

struct connection {
    bool is_open;
    bool is_leaving; /* it was shut down, and is not closed yet */
    int fd;
    uint64_t since_ns;   /* when it began, or the last request was done */
    uint64_t address[2]; /* 0: of this machine */
};

struct seep_metrics_http {
    struct MHD_Daemon *daemon;
    struct seep_metrics_page *page;
    pthread_mutex_t lock; /* of the table */
    struct connection connections[CONNECTIONS_MOST];
};

/* Where it is in the table; NULL: there was no place. */
static struct connection *place_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

/* All of IPv4, 64 bits of IPv6, where one host has all of the others. */
static void read_address(struct MHD_Connection *connection, uint64_t to[2])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *from = info == NULL ? NULL : info->client_addr;

    if (from != NULL && from->sa_family == AF_INET) {
        to[1] =
            ((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr;
    } else if (from != NULL && from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)from;
        bool is_four = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);

        memcpy(&to[is_four], six->sin6_addr.s6_addr + 8 * is_four, 8);
    }
}

static void shut(struct connection *place)
{
    shutdown(place->fd, SHUT_RDWR); /* the server closes it */
    place->is_leaving = true;
}

static size_t count_from(const struct seep_metrics_http *http,
                         const uint64_t *address)
{
    size_t count = 0;

    for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
        const struct connection *place = &http->connections[i];

        count += place->is_open && !place->is_leaving &&
                 (address == NULL ||
                  memcmp(place->address, address, sizeof(place->address)) == 0);
    }
    return count;
}

/*
 * Who came last is let in: an answer takes no time, so who has been there long
 * says nothing, or a byte now and then. Of the address with the most it is the
 * oldest that goes. A limit for an address would shut out all who come through
 * one proxy, or from this machine.
 */
static void make_room(struct seep_metrics_http *http)
{
    struct connection *worst = NULL;
    size_t most = 0;

    if (count_from(http, NULL) <= STAYING_MOST) {
        return;
    }
    for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
        struct connection *place = &http->connections[i];
        size_t count = place->is_open && !place->is_leaving
                           ? count_from(http, place->address)
                           : 0;

        if (count > most || (worst != NULL && count == most &&
                             place->since_ns < worst->since_ns)) {
            worst = place;
            most = count;
        }
    }
    shut(worst);
}

static void enter(struct seep_metrics_http *http,
                  struct MHD_Connection *connection, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    for (size_t i = 0; info != NULL && i < CONNECTIONS_MOST; i++) {
        struct connection *place = &http->connections[i];

        if (!place->is_open) {
            *place =
                (struct connection){.is_open = true,
                                    .fd = info->connect_fd,
                                    .since_ns = seep_clock_ns(CLOCK_MONOTONIC)};
            read_address(connection, place->address);
            *socket_context = place;
            make_room(http);
            return;
        }
    }
}

static void come_or_go(void *context, struct MHD_Connection *connection,
                       void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct seep_metrics_http *http = context;
    struct connection *place = *socket_context;

    pthread_mutex_lock(&http->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        enter(http, connection, socket_context);
    } else if (place != NULL) {
        place->is_open = false;
    }
    pthread_mutex_unlock(&http->lock);
}

static void complete(void *context, struct MHD_Connection *connection,
                     void **request, enum MHD_RequestTerminationCode code)
{
    struct seep_metrics_http *http = context;
    struct connection *place = place_of(connection);

    (void)request;
    (void)code;
    pthread_mutex_lock(&http->lock);
    if (place != NULL) {
        place->since_ns = seep_clock_ns(CLOCK_MONOTONIC);
    }
    pthread_mutex_unlock(&http->lock);
}

void seep_metrics_http_sweep(struct seep_metrics_http *http)
{
    uint64_t now_ns = seep_clock_ns(CLOCK_MONOTONIC);

    pthread_mutex_lock(&http->lock);
    for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
        struct connection *place = &http->connections[i];

        if (place->is_open && now_ns - place->since_ns > REQUEST_NS) {
            shut(place);
        }
    }
    pthread_mutex_unlock(&http->lock);
}

/* @text is given back by the server where @mode says so. */
static enum MHD_Result answer(struct MHD_Connection *connection,
                              unsigned status, const char *type, char *text,
                              size_t length, enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, text, mode);
    enum MHD_Result result = MHD_NO;

    if (response == NULL) {
        if (mode == MHD_RESPMEM_MUST_FREE) {
            free(text);
        }
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                            "no-store");
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status,
                           const char *words)
{
    /* Static text: the server only reads it. */
    return answer(connection, status, "text/plain; charset=utf-8",
                  (char *)(uintptr_t)words, strlen(words),
                  MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result serve_metrics(struct seep_metrics_http *http,
                                     struct MHD_Connection *connection)
{
    enum seep_metrics_format format =
        seep_metrics_accept(MHD_lookup_connection_value(
            connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
    char *text;
    size_t length;
    int error = take_page(http->page, format, &text, &length);

    if (error < 0) {
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "the recordings have not been read yet\n");
    }
    return answer(connection, MHD_HTTP_OK, content_type_of(format), text,
                  length, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result serve_ready(struct seep_metrics_http *http,
                                   struct MHD_Connection *connection)
{
    char *text = NULL;
    size_t length;

    if (take_page(http->page, SEEP_METRICS_PROMETHEUS, &text, &length) < 0) {
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "not yet\n");
    }
    free(text);
    return say(connection, MHD_HTTP_OK, "ok\n");
}

static enum MHD_Result serve(void *context, struct MHD_Connection *connection,
                             const char *url, const char *method,
                             const char *version, const char *upload,
                             size_t *upload_bytes, void **request)
{
    struct seep_metrics_http *http = context;

    (void)version;
    (void)upload;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                   "only GET and HEAD\n");
    }
    if (*request == NULL) { /* only its header has come: to answer now would
                               close the connection */
        *request = http;
        return MHD_YES;
    }
    if (*upload_bytes > 0) { /* nobody asked for it */
        *upload_bytes = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/metrics") == 0) {
        return serve_metrics(http, connection);
    }
    if (strcmp(url, "/healthz") == 0) {
        return say(connection, MHD_HTTP_OK, "ok\n");
    }
    if (strcmp(url, "/-/ready") == 0) {
        return serve_ready(http, connection);
    }
    return say(connection, MHD_HTTP_NOT_FOUND,
               "seep serves /metrics, /healthz and /-/ready\n");
}

int seep_metrics_http_open(int fd, struct seep_metrics_page *page,
                           struct seep_metrics_http **ret_http)
{
    struct seep_metrics_http *http = calloc(1, sizeof(*http));

    if (http == NULL) {
        return -ENOMEM;
    }
    http->page = page;
    pthread_mutex_init(&http->lock, NULL);
    /* Its own messages would be about what clients do wrong. */
    http->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, serve,
        http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CONNECTION_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, come_or_go,
        http, MHD_OPTION_NOTIFY_COMPLETED, complete, http, MHD_OPTION_END);
    if (http->daemon == NULL) {
        free(http);
        return -EIO;
    }
    *ret_http = http;
    return 0;
}

void seep_metrics_http_close(struct seep_metrics_http *http)
{
    if (http != NULL) {
        MHD_stop_daemon(http->daemon);
        free(http);
    }
}

#else

int seep_metrics_http_open(int fd, struct seep_metrics_page *page,
                           struct seep_metrics_http **ret_http)
{
    (void)fd;
    (void)page;
    (void)ret_http;
    return -ENOSYS;
}

void seep_metrics_http_sweep(struct seep_metrics_http *http)
{
    (void)http;
}

void seep_metrics_http_close(struct seep_metrics_http *http)
{
    (void)http;
}

#endif
