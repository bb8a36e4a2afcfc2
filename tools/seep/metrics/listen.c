/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where metrics go: the socket that scrapers connect to, and a file.
 *
 * Invariant: a file is removed only if it is a socket that nobody answers at,
 * or our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "metrics/metrics.h"

/*
 * A file that is replaced at once. The new one is written
 * beside it, under a name that does not end in .prom: the collector reads
 * every file that does.
 */

#define MODE 0644

static int create(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, MODE);

    if (fd < 0 && errno == EEXIST && unlink(path) == 0) {
        fd = open(path, flags, MODE); /* one of our number was killed here */
    }
    return fd < 0 ? -errno : fd;
}

int seep_metrics_file_write(const char *path, const char *text, size_t length)
{
    char *temporary;

    if (asprintf(&temporary, "%s.%d", path, (int)getpid()) < 0) {
        return -ENOMEM;
    }
    int fd = create(temporary);
    int error = fd < 0 ? fd : 0;
    if (error == 0 && dprintf(fd, "%.*s", (int)length, text) < 0) {
        error = -errno;
    }
    if (fd >= 0 && close(fd) < 0 && error == 0) {
        error = -errno;
    }
    if (error == 0 && rename(temporary, path) < 0) {
        error = -errno;
    }
    if (fd >= 0 && error < 0) {
        unlink(temporary);
    }
    free(temporary);
    return error;
}

#define UNIX_PREFIX "unix:"
#define BACKLOG 64

static int open_socket(int family, int flags)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    return fd < 0 ? -errno : fd;
}

static int start(int fd, const struct sockaddr *address, socklen_t length)
{
    if (bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0) {
        return -errno;
    }
    return 0;
}

/* Somebody who was killed could not remove it. */
static int clear_way(const struct sockaddr_un *address)
{
    struct stat status;
    int fd;
    int error = 0;

    if (lstat(address->sun_path, &status) < 0) {
        return 0;
    }
    if (!S_ISSOCK(status.st_mode)) {
        return -EEXIST;
    }
    /* Who lives and does not accept would be waited for. */
    fd = open_socket(AF_UNIX, SOCK_NONBLOCK);
    if (fd < 0) {
        return fd;
    }
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
        errno == EAGAIN) {
        error = -EADDRINUSE;
    } else if (errno == ECONNREFUSED && unlink(address->sun_path) < 0) {
        error = -errno;
    }
    close(fd);
    return error;
}

static int listen_unix(const char *path, const char **ret_reason,
                       struct seep_metrics_socket *ret_socket)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;

    if (*path == '\0' || strlen(path) >= sizeof(address.sun_path)) {
        *ret_reason = "is not a valid socket path";
        return -EINVAL;
    }
    strcpy(address.sun_path, path);
    int error = clear_way(&address);
    int fd = error < 0 ? error : open_socket(AF_UNIX, 0);
    if (fd < 0) {
        *ret_reason = fd == -EEXIST       ? "exists and is not a socket"
                      : fd == -EADDRINUSE ? "is the socket of another process"
                                          : strerror(-fd);
        return fd;
    }
    error = start(fd, (struct sockaddr *)&address, sizeof(address));
    char *copy = strdup(path);
    if (error < 0 || copy == NULL || stat(path, &status) < 0) {
        *ret_reason = error < 0 ? strerror(-error) : "out of memory";
        free(copy);
        close(fd);
        return error < 0 ? error : -ENOMEM;
    }
    *ret_socket = (struct seep_metrics_socket){
        .fd = fd, .path = copy, .inode = status.st_ino, .is_loopback = true};
    snprintf(ret_socket->url, sizeof(ret_socket->url), UNIX_PREFIX "%s", path);
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in = (const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
}

static void name_url(struct seep_metrics_socket *socket)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    char host[96] = "?";
    char port[16] = "0";

    if (getsockname(socket->fd, (struct sockaddr *)&address, &length) == 0) {
        getnameinfo((struct sockaddr *)&address, length, host, sizeof(host),
                    port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    }
    bool is_six = strchr(host, ':') != NULL;
    snprintf(socket->url, sizeof(socket->url), "http://%s%s%s:%s/metrics",
             is_six ? "[" : "", host, is_six ? "]" : "", port);
}

static int listen_at(const struct addrinfo *found, const char **ret_reason,
                     struct seep_metrics_socket *ret_socket)
{
    int one = 1;
    int fd = open_socket(found->ai_family, 0);
    int error = fd < 0 ? fd : 0;

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        error = start(fd, found->ai_addr, found->ai_addrlen);
    }
    if (error < 0) {
        *ret_reason =
            error == -EADDRINUSE ? "is already in use" : strerror(-error);
        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    *ret_socket = (struct seep_metrics_socket){
        .fd = fd, .is_loopback = is_loopback(found->ai_addr)};
    name_url(ret_socket);
    return 0;
}

/* "host:port" in place; a host in brackets loses them. */
static int split(char *address, const char **ret_host, const char **ret_port)
{
    char *colon = strrchr(address, ':');
    char *end;

    if (colon == NULL || colon[1] == '\0' ||
        colon[1 + strspn(colon + 1, "0123456789")] != '\0' ||
        strtoul(colon + 1, &end, 10) > 65535) {
        return -EINVAL;
    }
    *colon = '\0';
    *ret_port = colon + 1;
    *ret_host = *address == '\0' ? "127.0.0.1" : address;
    if (*address == '[' && colon > address + 1 && colon[-1] == ']') {
        colon[-1] = '\0';
        *ret_host = address + 1;
    }
    return 0;
}

static int listen_host(const char *given, const char **ret_reason,
                       struct seep_metrics_socket *ret_socket)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const char *host;
    const char *port;
    char *address = strdup(given);
    int error = address == NULL ? -ENOMEM : split(address, &host, &port);

    *ret_reason = "is not an address such as 127.0.0.1:9464, :0 or unix:/path";
    if (error == 0 && getaddrinfo(host, port, &hints, &found) != 0) {
        *ret_reason = "is not an address of this machine";
        error = -EADDRNOTAVAIL;
    }
    if (error == 0) {
        error = listen_at(found, ret_reason, ret_socket);
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    free(address);
    return error;
}

int seep_metrics_listen(const char *address, const char **ret_reason,
                        struct seep_metrics_socket *ret_socket)
{
    size_t length = strlen(UNIX_PREFIX);

    return strncmp(address, UNIX_PREFIX, length) == 0
               ? listen_unix(address + length, ret_reason, ret_socket)
               : listen_host(address, ret_reason, ret_socket);
}

void seep_metrics_unlink(struct seep_metrics_socket *socket)
{
    struct stat status;

    if (socket->path != NULL && lstat(socket->path, &status) == 0 &&
        S_ISSOCK(status.st_mode) && status.st_ino == socket->inode) {
        unlink(socket->path);
    }
    free(socket->path);
    socket->path = NULL;
}
