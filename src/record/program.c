/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the program says to its recording, and asks of it (seep/seep.h).
 *
 * Invariant: what was said stands there as it was said, or cut; what is
 * answered is read from the recording alone.
 */
#include "record/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/math.h"
#include "base/word.h"
#include "format/series.h"
#include "record/modules.h"

/* Moments and labels that the program names. A mark is claimed, filled and
 * then published, and of a label that comes again only the time is raised. */

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

/* Never back: who speaks at the same time, and was first, may be slower.
 * Not tested: another thread between the load and the exchange. */
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

/*
 * A process's own figures, from its own recording.
 *
 * What all shards handed out and took back in each bucket is there already;
 * what of it lies on a device is taken off by the series of such sites, which
 * are few. Figures of one moment are read one by one: each is true of a moment
 * close by.
 */

#define GROWTH_BUCKETS_MIN 16U

/* By bucket of the grid that @tick is on: what came less what went. */
struct net {
    double bytes[SEEP_BUCKET_COUNT];
    uint32_t width_log2;
};

/* A narrower grid's buckets fall into those of the common one as a whole. What
 * came since the tick was taken may lie behind the last one. */
static void add_net(struct net *net, uint32_t bucket, uint32_t width_log2,
                    int64_t bytes)
{
    uint32_t shift =
        width_log2 < net->width_log2 ? net->width_log2 - width_log2 : 0;

    bucket >>= shift < 31 ? shift : 31;
    net->bytes[bucket < SEEP_BUCKET_COUNT ? bucket : SEEP_BUCKET_COUNT - 1] +=
        (double)bytes;
}

static void add_shards(struct net *net, const struct seep_view *view)
{
    for (uint32_t i = 0; i < view->shard_count; i++) {
        struct seep_rec_shard *shard = &view->shards[i];
        uint32_t width = seep_word_load(&shard->flow_width_log2);

        for (uint32_t j = 0; j < SEEP_BUCKET_COUNT; j++) {
            add_net(net, j, width,
                    (int64_t)(seep_word_load(&shard->flow[j].allocated_bytes) -
                              seep_word_load(&shard->flow[j].freed_bytes)));
        }
    }
}

static void subtract_series(struct net *net, struct seep_rec_series *series)
{
    uint32_t width = seep_word_load(&series->width_log2);

    add_net(net, seep_word_load(&series->first_tick) >> (width & 31) & 127,
            width, -(int64_t)seep_word_load(&series->base_bytes));
    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        add_net(net, i, width,
                (int64_t)(seep_word_load(&series->buckets[i].freed_bytes) -
                          seep_word_load(&series->buckets[i].allocated_bytes)));
    }
}

static void subtract_brief(struct net *net, const struct seep_rec_brief *brief)
{
    uint32_t width = seep_word_load(&brief->width_log2);

    add_net(net, seep_word_load(&brief->first_tick) >> (width & 31) & 127,
            width, -(int64_t)seep_word_load(&brief->base_bytes));
    for (uint32_t i = 0; i < SEEP_BRIEF_BUCKETS; i++) {
        uint32_t number = seep_word_load(&brief->numbers) >> (8 * i) & 255;

        if (number != 0) {
            add_net(
                net, number - 1, width,
                (int64_t)(seep_word_load(&brief->buckets[i].freed_bytes) -
                          seep_word_load(&brief->buckets[i].allocated_bytes)));
        }
    }
}

/* A site of a device that has no series, having had one event. */
static void subtract_single(struct net *net, const struct seep_rec_site *site)
{
    add_net(net, seep_word_load(&site->first_tick) >> net->width_log2,
            net->width_log2,
            (int64_t)(seep_word_load(&site->freed_bytes) -
                      seep_word_load(&site->allocated_bytes)));
}

static bool is_apart(const struct seep_rec_site *site)
{
    return !seep_view_is_on_host(site->space) && site->space != SEEP_SPACE_FILE;
}

static void subtract_others(struct net *net, const struct seep_view *view)
{
    uint32_t count = seep_word_load(&view->header->site_count);

    /* The first ones are there, but for those that two threads began at once
     * and one has given back. */
    for (uint32_t i = 1; i <= count && i < view->site_capacity; i++) {
        const struct seep_rec_site *site = &view->sites[i];
        uint32_t number = seep_word_load(&site->series);

        if (!is_apart(site)) {
            continue;
        }
        if (number == 0) {
            subtract_single(net, site);
        } else if ((number & SEEP_SERIES_IS_BRIEF) != 0 &&
                   (number & ~SEEP_SERIES_IS_BRIEF) <= view->brief_capacity) {
            subtract_brief(net,
                           &view->briefs[(number & ~SEEP_SERIES_IS_BRIEF) - 1]);
        }
    }
}

static void subtract_devices(struct net *net, const struct seep_view *view)
{
    uint32_t count = seep_word_load(&view->header->series_count);

    for (uint32_t i = 0; i < count && i < view->series_capacity; i++) {
        struct seep_rec_series *series = &view->series[i];
        uint32_t site = seep_word_load(&series->site);

        if (site != 0 && site < view->site_capacity &&
            is_apart(&view->sites[site])) {
            subtract_series(net, series);
        }
    }
    subtract_others(net, view);
}

static double seconds(uint64_t ticks)
{
    return (double)ticks * (double)(UINT64_C(1) << SEEP_TICK_LOG2_NS) / 1e9;
}

/* The slope of what was live at the ends of the buckets. Apart: half of the
 * stack that is needed. */
static SEEP_NOINLINE void fit(struct net *net, uint32_t tick,
                              struct seep_stats_figures *figures)
{
    double t_s[SEEP_BUCKET_COUNT];
    uint32_t count = (tick >> net->width_log2) + 1;
    struct seep_math_slope slope;
    double live = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        uint64_t end = (uint64_t)(i + 1) << net->width_log2;

        live += net->bytes[i];
        net->bytes[i] = live;
        t_s[i] = seconds(end < tick ? end : tick);
    }
    figures->live_bytes = live > 0 ? (uint64_t)live : 0;
    slope = seep_math_slope(t_s, net->bytes, count,
                            SEEP_MATH_SETTLE * seconds(tick), seconds(tick));
    figures->has_growth = slope.levels != 0 && count >= GROWTH_BUCKETS_MIN;
    figures->growth_bytes_per_s = figures->has_growth ? slope.per_s : 0;
}

static void add_moment(const struct seep_view *view,
                       struct seep_stats_figures *figures)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        struct seep_rec_moment *moment = &view->timeline[i];
        uint64_t tick = seep_word_load(&moment->tick);

        if (tick < last || tick == 0) {
            continue;
        }
        last = tick;
        figures->rss_bytes = seep_word_load(&moment->rss_bytes);
        /* Asked more rarely: 0 in between. */
        if (seep_word_load(&moment->cgroup_bytes) != 0) {
            figures->cgroup_bytes = seep_word_load(&moment->cgroup_bytes);
            figures->cgroup_limit_bytes =
                seep_word_load(&moment->cgroup_limit_bytes);
        }
    }
}

static void add_device(struct seep_rec_device *moments,
                       struct seep_stats_figures *figures)
{
    struct seep_rec_device *last = NULL;

    for (uint32_t i = 0; i < SEEP_BUCKET_COUNT; i++) {
        if (seep_word_load(&moments[i].tick) != 0 &&
            (last == NULL ||
             seep_word_load(&moments[i].tick) >= seep_word_load(&last->tick))) {
            last = &moments[i];
        }
    }
    if (last != NULL &&
        (figures->device_total_bytes == 0 ||
         seep_word_load(&last->free_bytes) < figures->device_free_bytes)) {
        figures->device_total_bytes = seep_word_load(&last->total_bytes);
        figures->device_free_bytes = seep_word_load(&last->free_bytes);
    }
}

void seep_stats_take(const struct seep_view *view, uint32_t tick,
                     struct seep_stats_figures *ret_figures)
{
    struct net net = {.width_log2 = seep_series_width_for(tick)};

    memset(ret_figures, 0, sizeof(*ret_figures));
    add_shards(&net, view);
    subtract_devices(&net, view);
    fit(&net, tick, ret_figures);
    add_moment(view, ret_figures);
    for (uint32_t i = 0; i < view->device_count; i++) {
        struct seep_rec_device *moments =
            &view->devices[(size_t)i * SEEP_BUCKET_COUNT];

        if (seep_view_has(view, moments,
                          SEEP_BUCKET_COUNT * sizeof(*moments))) {
            add_device(moments, ret_figures);
        }
    }
    ret_figures->units = seep_word_load(&view->header->progress_units);
}
