/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The socket that scrapers connect to: "127.0.0.1:9464", ":0" (loopback, a port
 * that the system chooses), "[::1]:9464", "name:9464", "unix:/path".
 */
#ifndef SEEP_TOOL_METRICS_LISTEN_H
#define SEEP_TOOL_METRICS_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

struct seep_metrics_socket {
    int fd;
    char *path; /* of a unix socket; else NULL */
    ino_t inode;
    bool is_loopback; /* nobody else can reach it */
    char url[160];    /* "http://127.0.0.1:9464/metrics" */
};

/**
 * @param ret_reason  what is wrong, in words; static
 * @return 0; -EINVAL if @address is none; negative errno
 */
int seep_metrics_listen(const char *address, const char **ret_reason,
                        struct seep_metrics_socket *ret_socket);

/** Remove a unix socket, if it is still ours. Does not close .fd. */
void seep_metrics_unlink(struct seep_metrics_socket *socket);

#endif
