/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frame records, believed only with reasons.
 *
 * A register that is used as a frame pointer by nobody may hold anything: an
 * outer frame, or a structure with a pointer to a function in it. So a record
 * must lead through ascending records, whose return addresses are near to each
 * other, to code of an object, behind a call as far as its rules can tell; and
 * what lies below the record must not hold a return address into such code:
 * that would be the frame's own, and the record an outer frame's.
 */
#include "capture/eh_chain.h"

#include <stddef.h>

#include "base/compiler.h"
#include "capture/eh_rule.h"
#include "capture/elf_image.h"
#include "capture/object_map.h"
#include "capture/objects.h"

#define RECORDS_MAX 8U
#define FRAME_WORDS_MAX 256U
#define CODE_NEAR_BYTES (UINT64_C(1) << 29)
#define LOWEST_CODE 0x10000U

enum code {
    CODE_NONE,   /* no code, or nowhere that a call returns to */
    CODE_NO_ONE, /* of no object: compiled at run time, or no code */
    CODE_BARE,   /* of an object, without rules */
    CODE_RULED,
};

/* What @back would return to. */
static enum code code_at(uintptr_t back)
{
    struct seep_elf_image image;
    struct seep_eh_entry entry;

    if (back < LOWEST_CODE || back >> 47 != 0) {
        return CODE_NONE;
    }
    if (!seep_object_map_find(back - 1, &image)) {
        return CODE_NO_ONE;
    }
    if (!seep_elf_is_code(&image, back - 1)) {
        return CODE_NONE;
    }
    /* Who points to where a function begins points to a function. */
    if (seep_rule_entry(back, &entry) == SEEP_CUT_NONE &&
        entry.pc_low == back) {
        return CODE_NONE;
    }
    return seep_rule_entry(back - 1, &entry) == SEEP_CUT_NONE ? CODE_RULED
                                                              : CODE_BARE;
}

static __attribute__((no_sanitize("address", "thread", "undefined"))) uintptr_t
word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

static bool is_record(uintptr_t fp, uintptr_t low, uintptr_t high)
{
    return fp % sizeof(uintptr_t) == 0 && fp >= low && fp < high &&
           high - fp >= 2 * sizeof(uintptr_t);
}

static bool is_near(uintptr_t left, uintptr_t right)
{
    return (left > right ? left - right : right - left) < CODE_NEAR_BYTES;
}

/* Might a call return to @word? It may be a stale one, of an object that is
 * being unloaded: so only of the program itself more is asked. */
static bool may_be_back(uintptr_t word)
{
    struct seep_elf_image image;

    return word >= LOWEST_CODE && word >> 47 == 0 &&
           seep_object_map_locate(word - 1, &image) &&
           (image.headers == NULL || code_at(word) == CODE_RULED);
}

/* Is there a return address below the record, so that it is not the frame's? */
static bool hides_a_frame(const struct seep_chain *chain)
{
    if (chain->fp - chain->sp > FRAME_WORDS_MAX * sizeof(uintptr_t)) {
        return true;
    }
    for (uintptr_t at = chain->sp; at < chain->fp; at += sizeof(uintptr_t)) {
        uintptr_t word = word_at(at);

        if ((word < chain->sp || word >= chain->high) && may_be_back(word)) {
            return true;
        }
    }
    return false;
}

SEEP_COLD bool seep_chain_is_sound(const struct seep_chain *chain)
{
    uintptr_t fp = chain->fp;
    uintptr_t low = chain->sp;
    uintptr_t near = 0; /* code of no object that this has passed */

    /* While an object goes nothing is asked of words that may be stale. */
    if (!is_record(fp, low, chain->high) || seep_objects_epoch() % 2 != 0 ||
        hides_a_frame(chain)) {
        return false;
    }
    for (unsigned int i = 0; i < RECORDS_MAX; i++) {
        uintptr_t back;
        enum code code;

        if (!is_record(fp, low, chain->high)) {
            return false;
        }
        back = word_at(fp + sizeof(uintptr_t));
        code = code_at(back);
        if (code == CODE_RULED) {
            return true;
        }
        if (code == CODE_NONE || (back >= chain->sp && back < chain->high)) {
            return false;
        }
        if (code == CODE_NO_ONE) {
            if (near != 0 && !is_near(near, back)) {
                return false;
            }
            near = back;
        }
        low = fp + 2 * sizeof(uintptr_t);
        fp = word_at(fp);
    }
    /* That many records in order are no accident. */
    return true;
}
