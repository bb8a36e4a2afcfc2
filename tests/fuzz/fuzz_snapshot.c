/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for a reader's copy: a damaged recording is opened, copied
 * and folded, of a process that is dead or not, and asked for its vitals.
 */
#include <math.h>
#include <stdlib.h>

#include "reader/process/vitals.h"
#include "reader/recording/snapshot.h"
#include "small.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

static bool dead;

static bool is_dead(const struct seep_rec_header *header)
{
    (void)header;
    return dead;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    return small_mutate(data, size, most, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seep_refusal refusal = {.error = 0};
    struct seep_snapshot snapshot;
    struct seep_vitals vitals;
    struct small small;

    if (!small_damage(data, size, &small)) {
        return 0;
    }
    /* Who writes no more is not waited for; that would be what is measured. */
    dead = (small.first & 15) != 1;
    if (seep_snapshot_init(small.fd, small.size_bytes, is_dead, &refusal,
                           &snapshot) == 0) {
        (void)seep_sites_last_tick(&snapshot);
        seep_snapshot_fini(&snapshot);
    } else if (refusal.reason[0] == '\0' || refusal.error == 0) {
        abort();
    }
    if (seep_vitals_read(small.fd, small.size_bytes, false, &refusal,
                         &vitals) == 0 &&
        (!isfinite(vitals.duration_s) || vitals.duration_s < 0)) {
        abort();
    }
    return 0;
}
