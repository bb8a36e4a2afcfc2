/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry: the input is not a recording but damage to one, so that
 * a few bytes reach far. One byte of flags, then patches of 12 bytes each:
 * which word, and what it becomes.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recording_damage.h"

#define PATCH_BYTES 12
#define FLAG_UNSEALED 1
#define FLAG_SHORTER 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct recording_damage damage;
    size_t kept;

    if (size == 0) {
        return 0;
    }
    if (damage.whole == NULL) {
        recording_damage_init(&damage);
    }
    recording_damage_reset(&damage);
    kept = damage.builder.size_bytes;
    for (size_t at = 1; at + PATCH_BYTES <= size; at += PATCH_BYTES) {
        uint32_t which;
        uint64_t value;

        memcpy(&which, data + at, sizeof(which));
        memcpy(&value, data + at + sizeof(which), sizeof(value));
        if ((which & 0x80000000) != 0) {
            recording_damage_field(
                &damage, (int)(which % RECORDING_DAMAGE_FIELDS), value);
        } else {
            recording_damage_word(&damage, which, value);
        }
    }
    if ((data[0] & FLAG_SHORTER) != 0) {
        kept = kept * (data[0] >> 2) / 64;
    }
    damage.by = data[0] >> 2;
    recording_damage_read(&damage, kept, (data[0] & FLAG_UNSEALED) == 0);
    return 0;
}
