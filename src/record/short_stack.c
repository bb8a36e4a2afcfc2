/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stacks in short form: which form, by how full the table of sites is, and
 * what it keeps. Nothing is taken from a stack that is known already. */
#include "base/compiler.h"
#include "base/hash.h"
#include "base/word.h"
#include "record/modules.h"
#include "record/sites.h"

static bool is_code(uint64_t frame)
{
    return (frame & SEEP_FRAME_IS_CODE) != 0;
}

static bool is_thread(const struct seep_view *view, uint64_t frame)
{
    uint64_t code = (frame & ~SEEP_FRAME_IS_CODE) >> SEEP_FRAME_LINE_BITS;

    return is_code(frame) && code < view->code_capacity &&
           view->codes[code].kind == SEEP_CODE_THREAD;
}

static bool is_known(const struct seep_view *view, const uint64_t *frames,
                     uint32_t count, enum seep_cut cut)
{
    return seep_index_has(view, SEEP_INDEX_STACKS,
                          seep_hash_words(cut, frames, count));
}

/* What a short stack keeps, by how full the table of sites is. */
struct short_form {
    uint32_t quarters; /* of the table, above which it is used */
    uint32_t codes;    /* lines of Python, the innermost; and the user's */
    uint32_t natives;  /* other frames, the innermost */
    uint32_t alone;    /* those of a stack without Python */
};

/* The imports of numpy and asyncio have 153,000 stacks with Python's objects,
 * 38,000 by two lines and 11,000 by one. */
static const struct short_form short_forms[] = {
    {3, 1, 0, 4},
    {2, 3, 4, 16},
    {1, SEEP_STACK_FRAMES_MAX, SEEP_STACK_FRAMES_MAX, SEEP_STACK_FRAMES_MAX},
};

static bool always_short; /* constant once something is recorded */

void seep_short_stack_always(bool always)
{
    always_short = always;
}

static const struct short_form *find_form(const struct seep_view *view)
{
    uint32_t used = seep_word_load(&view->header->site_count);

    if (always_short) {
        return &short_forms[0];
    }
    for (size_t i = 0; i < sizeof(short_forms) / sizeof(short_forms[0]); i++) {
        if (used > view->site_capacity / 4 * short_forms[i].quarters) {
            return &short_forms[i];
        }
    }
    return NULL;
}

/* Native recursion between two frames of Python, as deep as data is nested:
 * what lies between a frame and its return goes. @return the frames left */
static uint32_t erase_loops(uint64_t *frames, uint32_t count)
{
    uint32_t left = 0;
    uint32_t run = 0; /* where the native frames at hand begin */

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = run;

        if (is_code(frames[i])) {
            frames[left++] = frames[i];
            run = left;
            continue;
        }
        while (at < left && frames[at] != frames[i]) {
            at++;
        }
        frames[at] = frames[i];
        left = at + 1;
    }
    return left;
}

/* The innermost line that is of no library: the one that people look for. */
static uint32_t find_users(const struct seep_view *view, const uint64_t *frames,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_code(frames[i]) && seep_codes_is_users(view, frames[i])) {
            return i;
        }
    }
    return count;
}

static bool has_code(const uint64_t *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_code(frames[i])) {
            return true;
        }
    }
    return false;
}

/* @return how many of the @count frames are left, in place */
static uint32_t keep(const struct seep_view *view,
                     const struct short_form *form, uint64_t *frames,
                     uint32_t count)
{
    uint32_t codes = 0;
    uint32_t natives = 0;
    uint32_t kept = 0;
    uint32_t users;

    /* How it recurses may be all that tells native call sites apart. */
    if (!has_code(frames, count)) {
        return count < form->alone ? count : form->alone;
    }
    count = erase_loops(frames, count);
    users = find_users(view, frames, count);
    for (uint32_t i = 0; i < count; i++) {
        if (is_code(frames[i])
                ? codes < form->codes || i == users
                : codes < form->codes && natives < form->natives) {
            codes += is_code(frames[i]);
            natives += !is_code(frames[i]);
            frames[kept++] = frames[i];
        }
    }
    return kept;
}

uint32_t seep_short_stack_make(const struct seep_view *view, uint64_t *frames,
                               uint32_t count, enum seep_cut cut)
{
    const struct short_form *form = find_form(view);
    bool named;
    uint64_t name;
    uint32_t kept;

    if (seep_likely(form == NULL) || count == 0 ||
        is_known(view, frames, count, cut)) {
        return count;
    }
    name = frames[count - 1];
    named = is_thread(view, name);
    kept = keep(view, form, frames, count - named);
    if (named) {
        frames[kept++] = name;
    }
    if (kept < count && !always_short) {
        seep_view_count(view, SEEP_COUNT_STACKS_SHORT, 1);
    }
    return kept;
}
