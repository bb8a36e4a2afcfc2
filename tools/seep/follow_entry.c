/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the process of a recording lives; see follow_entry.h.
 *
 * Invariant: only the header is read here, by pread, so a file that is cut
 * short meanwhile harms nobody; one that has ended stays ended.
 */
#include "follow_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/check.h"
#include "reader/process.h"
#include "seep/recording.h"

#define SECOND_NS UINT64_C(1000000000)
/* A file that is none yet may be in the making. */
#define TRIES 3
/* Of a process that cannot be seen (another container) the last word tells
 * whether it lives. Words come at every bucket at least, while it works: a
 * bucket is at most a 64th of its life. */
#define SILENCE_NS (600 * SECOND_NS)
#define SILENCE_SHARE 32

static uint64_t now_ns(void)
{
    return seep_clock_ns(CLOCK_REALTIME);
}

static bool read_header(const struct seep_follow_entry *entry,
                        struct seep_rec_header *ret_header)
{
    struct stat status;
    bool valid = false;
    int fd = open(entry->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

    if (fd < 0) {
        return false;
    }
    /* The check looks at no more than the header. */
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        pread(fd, (void *)ret_header, sizeof(*ret_header), 0) ==
            (ssize_t)sizeof(*ret_header)) {
        valid =
            seep_check(ret_header, (size_t)status.st_size) == SEEP_CHECK_VALID;
    }
    close(fd);
    return valid;
}

static uint64_t last_word_ns(struct seep_rec_header *header)
{
    uint64_t last_ns =
        atomic_load_explicit(&header->last_ns, memory_order_relaxed);
    uint64_t exit_tick =
        atomic_load_explicit(&header->exit_tick, memory_order_relaxed);
    uint64_t since_ns = exit_tick << SEEP_TICK_LOG2_NS;

    if (atomic_load_explicit(&header->exited, memory_order_relaxed) == 0) {
        since_ns = last_ns > header->start_monotonic_ns
                       ? last_ns - header->start_monotonic_ns
                       : 0;
    }
    return header->start_realtime_ns + since_ns;
}

static bool is_silent(const struct seep_rec_header *header, uint64_t last_ns)
{
    uint64_t now = now_ns();
    uint64_t age_ns =
        now > header->start_realtime_ns ? now - header->start_realtime_ns : 0;
    uint64_t most_ns = age_ns / SILENCE_SHARE > SILENCE_NS
                           ? age_ns / SILENCE_SHARE
                           : SILENCE_NS;

    return now > last_ns && now - last_ns > most_ns;
}

static void judge(struct seep_follow_entry *entry,
                  struct seep_rec_header *header)
{
    uint64_t last_ns = last_word_ns(header);
    enum seep_process_state state =
        seep_process_state_of(header, seep_process_presence_of(header));
    bool lives = state == SEEP_STATE_RUNNING ||
                 (state == SEEP_STATE_UNKNOWN && !is_silent(header, last_ns));

    entry->start_ns = header->start_realtime_ns;
    if (lives) {
        entry->state = SEEP_FOLLOW_LIVE;
    } else if (entry->state != SEEP_FOLLOW_ENDED) {
        uint64_t now = now_ns();

        /* One that was seen to live ended just now, whatever it said last; and
         * none will end in the future. */
        entry->end_ns =
            entry->state == SEEP_FOLLOW_LIVE || last_ns > now ? now : last_ns;
        entry->state = SEEP_FOLLOW_ENDED;
    }
}

/* Forget all that was known of it but its name. */
static void renew(struct seep_follow_entry *entry, const struct stat *status)
{
    entry->device = status->st_dev;
    entry->inode = status->st_ino;
    entry->state = SEEP_FOLLOW_NEW;
    entry->tries = 0;
}

int seep_follow_entry_look(struct seep_follow_entry *entry, bool *ret_renewed)
{
    struct seep_rec_header header;
    struct stat status;

    *ret_renewed = false;
    if (stat(entry->path, &status) != 0) {
        return -ENOENT;
    }
    if (status.st_ino != entry->inode || status.st_dev != entry->device) {
        *ret_renewed = true;
        renew(entry, &status);
    }
    if (entry->state != SEEP_FOLLOW_NEW && entry->state != SEEP_FOLLOW_LIVE) {
        return 0;
    }
    if (!read_header(entry, &header)) {
        entry->tries++;
        if (entry->tries >= TRIES) {
            entry->state = SEEP_FOLLOW_REFUSED;
        }
        return 0;
    }
    if (entry->state == SEEP_FOLLOW_LIVE &&
        header.start_realtime_ns != entry->start_ns) {
        *ret_renewed = true;
        renew(entry, &status);
    }
    entry->tries = 0;
    judge(entry, &header);
    return 0;
}

double seep_follow_entry_ended_s(const struct seep_follow_entry *entry)
{
    uint64_t now = now_ns();

    return entry->state == SEEP_FOLLOW_ENDED && now > entry->end_ns
               ? (double)(now - entry->end_ns) / (double)SECOND_NS
               : 0;
}
