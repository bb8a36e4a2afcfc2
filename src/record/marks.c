/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moments and labels that the program names. A mark is claimed, filled and
 * then published, and of a label that comes again only the time is raised. */
#include "record/marks.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/word.h"
#include "record/modules.h"

#define CLAIMED 1U

struct text {
    char bytes[SEEP_MARKS_TEXT_BYTES + 1];
};

/* A cut never leaves half a character of UTF-8. */
static void copy(struct text *to, const char *from)
{
    size_t length = strnlen(from, SEEP_MARKS_TEXT_BYTES);

    if (from[length] != '\0') {
        while (length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memcpy(to->bytes, from, length);
    to->bytes[length] = '\0';
}

static uint32_t count_of(const struct seep_view *view)
{
    uint32_t count = seep_word_load(&view->header->mark_count);

    return count < view->mark_capacity ? count : view->mark_capacity;
}

/* The mark at @index if it says something of @kind; else NULL. */
static struct seep_rec_mark *published(const struct seep_view *view,
                                       uint32_t index, uint32_t kind)
{
    struct seep_rec_mark *mark = &view->marks[index];

    /* Acquire: the mark's fields; pairs with the release in add(). */
    return atomic_load_explicit(&mark->state, memory_order_acquire) ==
                       SEEP_PUBLISHED &&
                   mark->kind == kind
               ? mark
               : NULL;
}

static bool is(const struct seep_view *view, seep_string string,
               const struct text *text)
{
    return strcmp(seep_view_string(view, string), text->bytes) == 0;
}

/* The string that an earlier mark has, or a new one; 0: no room. */
static seep_string intern(const struct seep_view *view, uint32_t kind,
                          const struct text *text)
{
    uint32_t count = count_of(view);

    for (uint32_t i = 0; i < count; i++) {
        const struct seep_rec_mark *mark = published(view, i, kind);

        if (mark != NULL && is(view, mark->name, text)) {
            return mark->name;
        }
    }
    return seep_modules_string(view, text->bytes);
}

static uint32_t next_order(const struct seep_view *view)
{
    return seep_word_fetch_add(&view->header->mark_order, 1) + 1;
}

static void add(const struct seep_view *view, enum seep_mark_kind kind,
                uint32_t tick, const struct text *name, const struct text *text)
{
    struct seep_rec_mark *mark;
    seep_string name_at;
    seep_string text_at;
    uint32_t most = view->mark_capacity;
    uint32_t index;

    if (kind == SEEP_MARK_MOMENT) {
        most -= most / 4; /* the rest of the room is for labels */
    }
    if (!seep_view_take(view, SEEP_SECTION_MARKS, &view->header->mark_count,
                        most, &index)) {
        seep_view_count(view, SEEP_COUNT_MARKS_FULL, 1);
        return;
    }
    name_at = intern(view, kind, name);
    text_at = seep_modules_string(view, text->bytes);
    if (name_at == 0 || (text_at == 0 && text->bytes[0] != '\0')) {
        seep_view_count(view, SEEP_COUNT_MARKS_FULL, 1);
        return;
    }
    mark = &view->marks[index];
    seep_word_store(&mark->state, CLAIMED);
    mark->kind = kind;
    mark->name = name_at;
    mark->text = text_at;
    mark->units = seep_word_load(&view->header->progress_units);
    seep_word_store(&mark->tick, tick);
    seep_word_store(&mark->order, next_order(view));
    /* Release: the fields above; pairs with the acquire in published(). */
    atomic_store_explicit(&mark->state, SEEP_PUBLISHED, memory_order_release);
}

void seep_marks_moment(const struct seep_view *view, uint32_t tick,
                       const char *name)
{
    static const struct text none = {""};
    struct text copied;

    copy(&copied, name);
    if (copied.bytes[0] != '\0') {
        add(view, SEEP_MARK_MOMENT, tick, &copied, &none);
    }
}

/* Never back: who speaks at the same time, and was first, may be slower. */
static void raise_to(_Atomic uint32_t *word, uint32_t value)
{
    uint32_t seen = seep_word_load(word);

    while (seen < value && !seep_word_replace(word, &seen, value)) {
    }
}

/* A label that was there before comes back: it is the last given again. */
static bool again(const struct seep_view *view, uint32_t tick,
                  const struct text *key, const struct text *value)
{
    uint32_t count = count_of(view);

    for (uint32_t i = 0; i < count; i++) {
        struct seep_rec_mark *mark = published(view, i, SEEP_MARK_LABEL);

        if (mark != NULL && is(view, mark->name, key) &&
            is(view, mark->text, value)) {
            raise_to(&mark->tick, tick);
            raise_to(&mark->order, next_order(view));
            return true;
        }
    }
    return false;
}

void seep_marks_label(const struct seep_view *view, uint32_t tick,
                      const char *key, const char *value)
{
    struct text key_text;
    struct text value_text;

    copy(&key_text, key);
    copy(&value_text, value);
    if (key_text.bytes[0] != '\0' &&
        !again(view, tick, &key_text, &value_text)) {
        add(view, SEEP_MARK_LABEL, tick, &key_text, &value_text);
    }
}
