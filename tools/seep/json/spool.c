/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes of a document, printed in the order in which they were read and
 * copied in that of the document.
 *
 * Invariant: what is not whole in the file is not in the table, and the file
 * has no name.
 */
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "reader/recording/store.h"

#define COPY_BYTES 65536U

struct part {
    off_t at;
    off_t bytes;
};

struct seep_json_spool {
    const struct seep_json_options *options;
    struct seep_json_frame *kept;
    struct seep_store store;
    struct seep_store_table parts; /* by the address of the report */
    FILE *file;
    off_t end;
    bool has_failed;
};

static FILE *make_file(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder != NULL && *folder != '\0' ? folder : "/tmp",
                  O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

    if (file == NULL && fd >= 0) {
        close(fd);
    }
    return file != NULL ? file : tmpfile();
}

struct seep_json_spool *
seep_json_spool_open(const struct seep_json_options *options)
{
    struct seep_json_spool *spool = calloc(1, sizeof(*spool));

    if (spool != NULL) {
        spool->options = options;
        spool->kept = seep_json_site_open();
        spool->file = make_file();
    }
    if (spool != NULL && (spool->kept == NULL || spool->file == NULL)) {
        seep_json_spool_close(spool);
        spool = NULL;
    }
    return spool;
}

void seep_json_spool_close(struct seep_json_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    if (spool->file != NULL) {
        fclose(spool->file);
    }
    seep_json_site_close(spool->kept);
    seep_store_table_fini(&spool->parts);
    seep_store_fini(&spool->store);
    free(spool);
}

bool seep_json_spool_add(struct seep_json_spool *spool,
                         const struct seep_report *report)
{
    struct seep_json_out out = {.file = spool->file};
    struct seep_store_entry *entry;
    struct part *part;

    if (spool->has_failed) {
        return false;
    }
    seep_json_report_print(&out, spool->kept, report, spool->options);
    part = seep_store_take(&spool->store, 1, sizeof(*part));
    entry =
        seep_store_find(&spool->store, &spool->parts, &report, sizeof(report));
    if (out.error < 0 || fflush(spool->file) != 0 || part == NULL ||
        entry == NULL) {
        spool->has_failed = true;
        return false;
    }
    part->at = spool->end;
    spool->end = ftello(spool->file);
    part->bytes = spool->end - part->at;
    entry->value = part;
    return true;
}

static int copy(struct seep_json_spool *spool, const struct part *part,
                FILE *to)
{
    static char bytes[COPY_BYTES];
    off_t left = part->bytes;

    while (left > 0) {
        size_t wanted = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        ssize_t got = pread(fileno(spool->file), bytes, wanted,
                            part->at + part->bytes - left);

        if (got <= 0 || fwrite(bytes, 1, (size_t)got, to) != (size_t)got) {
            return -EIO;
        }
        left -= got;
    }
    return 0;
}

bool seep_json_spool_print(struct seep_json_spool *spool,
                           const struct seep_report *report,
                           struct seep_json_out *out)
{
    const struct seep_store_entry *entry =
        seep_store_find(NULL, &spool->parts, &report, sizeof(report));

    if (entry == NULL || entry->value == NULL) {
        return false;
    }
    if (out->error == 0) {
        out->error = copy(spool, entry->value, out->file);
    }
    return true;
}
