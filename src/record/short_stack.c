/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stacks in short form: which form, by how full the tables of sites and frames
 * are, and what it keeps. Nothing is taken from a stack that is known already,
 * and from Python's objects before others.
 *
 * An import's is short from the start. There are thousands, of memory that is
 * taken once and stays; told whole they fill the tables before the work begins.
 */
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

/* What a short stack keeps, by how full the tables are. */
struct short_form {
    uint32_t eighths; /* of a table, above which it is used */
    uint32_t codes;   /* lines of Python, the innermost; and the user's */
    uint32_t natives; /* other frames, the innermost */
    uint32_t alone;   /* those of a stack without Python */
};

/* Between an allocation of oneDNN's and the function that a pattern asks for
 * are up to 12 frames: so the native ones go last. */
static const struct short_form short_forms[] = {
    {7, 1, 0, 4},
    {6, 2, 8, 8},
    {5, 3, 16, 16},
    {3, SEEP_STACK_FRAMES_MAX, SEEP_STACK_FRAMES_MAX, SEEP_STACK_FRAMES_MAX},
    {0},
};

/* Python's own objects are most of what an exact recording meets, and their
 * native frames are the interpreter's: these go first. A library that makes
 * them in a function of 2,000 lines fills a rung of its own with each line more
 * that is told. */
static const struct short_form python_forms[] = {
    {5, 1, 0, 4},
    {3, SEEP_STACK_FRAMES_MAX, SEEP_STACK_FRAMES_MAX, SEEP_STACK_FRAMES_MAX},
    {0},
};

static bool always_short; /* constant once something is recorded */

void seep_short_stack_always(bool always)
{
    always_short = always;
}

/* Where stacks come by turns each has most of its frames for itself: layers of
 * a model in PyTorch filled FRAMES with 6,700 of 8,192 stacks. */
static bool is_above(const struct seep_view *view, uint32_t eighths)
{
    uint64_t frames = seep_word_load(&view->header->frames_used);

    return seep_word_load(&view->header->site_count) >
               view->site_capacity / 8 * eighths ||
           frames > (uint64_t)view->frame_capacity / 8 * eighths;
}

static const struct short_form *find_form(const struct seep_view *view,
                                          enum seep_space space)
{
    const struct short_form *form =
        space == SEEP_SPACE_PYTHON ? python_forms : short_forms;

    if (always_short) {
        return form;
    }
    while (form->eighths > 0 && !is_above(view, form->eighths)) {
        form++;
    }
    return form->eighths > 0 ? form : NULL;
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

/* From @i on the innermost line that has one of @traits; @count: none. */
static uint32_t find_trait(const struct seep_view *view, const uint64_t *frames,
                           uint32_t i, uint32_t count, uint32_t traits)
{
    while (i < count && (seep_codes_traits(view, frames[i]) & traits) == 0) {
        i++;
    }
    return i;
}

/* Of stacks of an import, by how many sixteenths of the table are such sites.
 * The last has one a line of the user's, and needs no more. */
static const struct import_form {
    uint32_t sixteenths; /* up to so many */
    uint32_t codes;      /* lines of the module at work, the innermost */
    uint32_t natives;
    bool module; /* which module it is */
} import_forms[] = {
    {2, 2, 4, true},
    {3, 0, 0, true},
    {UINT32_MAX, 0, 0, false},
};

/* Where the frames of an import stand. */
struct import {
    uint32_t machinery; /* the innermost of it; count: this is no import */
    uint32_t module;    /* what it runs, or what asks for the next one */
    uint32_t users;     /* the line of the user's that led to it */
};

/* What a line of the user's does inside of an import is no import's. */
static struct import find_import(const struct seep_view *view,
                                 const uint64_t *frames, uint32_t count)
{
    struct import import = {.module = count, .users = count};
    uint32_t i = find_trait(view, frames, 0, count,
                            SEEP_CODE_IS_IMPORTER | SEEP_CODE_IS_USERS);

    if (i == count ||
        (seep_codes_traits(view, frames[i]) & SEEP_CODE_IS_USERS) != 0) {
        import.machinery = count;
        return import;
    }
    import.machinery = i;
    while (i > 0 && (seep_codes_traits(view, frames[i - 1]) &
                     SEEP_CODE_IS_MODULE) == 0) {
        i--;
    }
    import.module = i > 0 ? i - 1
                          : find_trait(view, frames, import.machinery, count,
                                       SEEP_CODE_IS_MODULE);
    import.users =
        find_trait(view, frames, import.machinery, count, SEEP_CODE_IS_USERS);
    return import;
}

/* Which line of the module it is would make one site a line of it. */
static uint64_t without_line(uint64_t frame)
{
    return frame & ~SEEP_FRAME_LINE_MASK;
}

static uint32_t keep_import(const struct import_form *form,
                            const struct import *import, uint64_t *frames,
                            uint32_t count)
{
    uint32_t codes = 0;
    uint32_t natives = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool inner = i < import->machinery && codes < form->codes &&
                     (is_code(frames[i]) || natives < form->natives);

        if (i == import->users) {
            frames[kept++] = frames[i];
        } else if (i == import->machinery ||
                   (i == import->module && form->module)) {
            frames[kept++] = without_line(frames[i]);
        } else if (inner) {
            codes += is_code(frames[i]);
            natives += !is_code(frames[i]);
            frames[kept++] = frames[i];
        }
    }
    return kept;
}

/* What of the frames may be kept by any form, in place: those from the
 * machinery on are but its own, the module's and the user's; of those before it
 * no native one behind the lines that are kept. @return how many */
static uint32_t keep_candidates(const struct import *import, uint64_t *frames,
                                uint32_t count)
{
    uint32_t codes = 0;
    uint32_t end = 0;
    uint32_t kept;
    uint32_t first =
        import->module > import->machinery && import->module < import->users
            ? import->module
            : import->users;
    uint32_t second = first == import->users ? import->module : import->users;

    while (end < import->machinery && codes < import_forms[0].codes) {
        codes += is_code(frames[end]) && end != import->module;
        end++;
    }
    kept = erase_loops(frames, end);
    for (; end < import->machinery; end++) {
        if (is_code(frames[end])) {
            frames[kept++] = frames[end];
        }
    }
    frames[kept++] = frames[import->machinery];
    if (first < count) {
        frames[kept++] = frames[first];
    }
    if (second > first && second < count) {
        frames[kept++] = frames[second];
    }
    return kept;
}

bool seep_short_stack_import(const struct seep_view *view, uint64_t *frames,
                             size_t *count, enum seep_cut *cut)
{
    struct import import = find_import(view, frames, (uint32_t)*count);
    uint64_t name;
    uint32_t kept;

    if (seep_likely(import.machinery == *count)) {
        return false;
    }
    name = frames[*count - 1];
    kept = keep_candidates(&import, frames, (uint32_t)*count);
    import = find_import(view, frames, kept);
    kept =
        keep_import(&import_forms[always_short ? 1 : 0], &import, frames, kept);
    if (is_thread(view, name)) {
        frames[kept++] = name;
    }
    *count = kept;
    *cut = SEEP_CUT_NONE;
    return true;
}

/* Of an import of which seep_short_stack_import() has left the first form.
 * @return how many of the @count frames are left, in place */
static uint32_t make_import(const struct seep_view *view, uint64_t *frames,
                            uint32_t count)
{
    uint64_t used = seep_word_load(&view->counters[SEEP_COUNT_IMPORT_SITES]);
    const struct import_form *form = &import_forms[always_short ? 1 : 0];
    uint64_t name = frames[count - 1];
    bool named = is_thread(view, name);

    count -= named;
    for (;; form++) {
        struct import import = find_import(view, frames, count);

        count = keep_import(form, &import, frames, count);
        if (named) {
            frames[count] = name;
        }
        if (used <= view->site_capacity / 16 * (uint64_t)form->sixteenths ||
            is_known(view, frames, count + named, SEEP_CUT_NONE)) {
            return count + named;
        }
    }
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
    users = find_trait(view, frames, 0, count, SEEP_CODE_IS_USERS);
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

/* What the first rung takes, recursion, is no loss: it is told by its frames.
 *
 * @return how many of the @count frames are left, in place */
static uint32_t make_short(const struct seep_view *view, enum seep_space space,
                           uint64_t *frames, uint32_t count, enum seep_cut cut)
{
    const struct short_form *form = find_form(view, space);
    bool named;
    uint64_t name;
    uint32_t kept;

    if (seep_likely(form == NULL) || is_known(view, frames, count, cut)) {
        return count;
    }
    name = frames[count - 1];
    named = is_thread(view, name);
    kept = keep(view, form, frames, count - named);
    if (named) {
        frames[kept++] = name;
    }
    if (kept < count && form->alone < SEEP_STACK_FRAMES_MAX && !always_short) {
        seep_view_count(view, SEEP_COUNT_STACKS_SHORT, 1);
    }
    return kept;
}

void seep_short_stack_make(const struct seep_view *view, enum seep_space space,
                           bool is_import, uint64_t *frames, uint32_t *count,
                           enum seep_cut *cut)
{
    uint32_t kept;

    if (is_import) {
        *count = make_import(view, frames, *count);
        return;
    }
    kept = *count > 0 ? make_short(view, space, frames, *count, *cut) : 0;
    *cut = kept < *count ? SEEP_CUT_DEPTH : *cut;
    *count = kept;
}
