/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Call sites over the members of a family, and what its children keep.
 *
 * Invariant: a member counts once at a site, however many rows of it are there;
 * growth and live bytes are of members that run together, so that no memory is
 * summed that was never held at one time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/judge/family.h"
#include "reader/judge/sites.h"
#include "reader/judge/verdict.h"

#define NO_CHILD SIZE_MAX
#define IDLE (SIZE_MAX - 1) /* a child that had no work */
#define UNITS_MIN 10.0      /* of work in a child: more than one job */

struct entry {
    const struct seep_report_row *row;
    const struct seep_report_site *site; /* NULL: the row is all there is */
    const struct seep_report *report;
    const char *id;
    size_t member;
    bool is_together;
};

struct member {
    size_t child; /* its number; NO_CHILD or IDLE */
    bool worked;  /* it came to a line that most children keep memory at */
};

struct entries {
    struct entry *list;
    size_t count;
    struct seep_report_row *rows; /* of members that have sites */
    size_t row_count;
    struct member *members;
    double *length; /* of each child */
    double *bytes;  /* that it keeps at a site; of one array with .length */
    struct seep_family_ages *ages;
};

static const char *id_of(const struct seep_report *report,
                         const struct seep_report_site *site)
{
    return report->by == SEEP_BY_STACK && *site->line_id != '\0' ? site->line_id
                                                                 : site->id;
}

static int compare_places(const struct entry *a, const struct entry *b)
{
    int order = strncmp(a->id, b->id, sizeof(a->row->id));

    if (order == 0) {
        order = (int)a->row->space - (int)b->row->space;
    }
    return order != 0 ? order : a->row->device - b->row->device;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    int order = compare_places(left, right);

    return order != 0 ? order
                      : (left->member > right->member) -
                            (left->member < right->member);
}

static bool could_be_child(const struct seep_report *report)
{
    return report->state != SEEP_STATE_RUNNING &&
           report->state != SEEP_STATE_UNKNOWN &&
           report->inert == SEEP_INERT_NONE &&
           seep_verdict_open_reason(&report->verdict) != NULL &&
           report->duration_s > 0;
}

/* Whom the children are told from. */
struct kind {
    bool forks;       /* some are: who forked them is none of them */
    bool long_enough; /* enough lived for more than a moment: a worker that a
                         pool began and had no work for is none of them */
};

static bool is_child(const struct seep_report *report, struct kind kind)
{
    return could_be_child(report) && (!kind.forks || report->is_fork) &&
           !(kind.long_enough && report->duration_s < SEEP_FAMILY_BRIEF_S);
}

static struct kind kind_of(const struct seep_family *family)
{
    struct kind kind = {.forks = false};
    size_t count = 0;

    for (size_t i = 0; i < family->count; i++) {
        kind.forks |=
            could_be_child(family->members[i]) && family->members[i]->is_fork;
    }
    kind.long_enough = true;
    for (size_t i = 0; i < family->count; i++) {
        count += is_child(family->members[i], kind);
    }
    kind.long_enough = count >= SEEP_FAMILY_CHILDREN_MIN;
    return kind;
}

static void count_child(struct seep_family_children *children,
                        const struct seep_report *report)
{
    children->count++;
    children->by_units &= report->units > 0;
    children->least_s = fmin(children->least_s, report->duration_s);
    children->most_s = fmax(children->most_s, report->duration_s);
    children->mean_s += report->duration_s;
    children->mean_units += (double)report->units;
}

/* From the members, whose .child is numbered anew. */
static void describe_children(struct seep_family *family,
                              struct entries *entries)
{
    struct seep_family_children children = {.by_units = true,
                                            .least_s = INFINITY};

    family->open_count = 0;
    for (size_t i = 0; i < family->count; i++) {
        const struct seep_report *report = family->members[i];

        if (entries->members[i].child < IDLE) {
            entries->members[i].child = children.count;
            count_child(&children, report);
        } else if (seep_verdict_open_reason(&report->verdict) != NULL &&
                   !seep_family_is_brief(report)) {
            family->open_count += entries->members[i].child == NO_CHILD;
        }
    }
    children.mean_s /= (double)children.count;
    children.mean_units /= (double)children.count;
    if (children.count < SEEP_FAMILY_CHILDREN_MIN) {
        children = (struct seep_family_children){.count = 0};
        family->open_count = family->by_class[SEEP_VERDICT_INSUFFICIENT];
    }
    family->children = children;
}

static void find_children(struct seep_family *family, struct entries *entries)
{
    struct kind kind = kind_of(family);

    for (size_t i = 0; i < family->count; i++) {
        entries->members[i].child =
            is_child(family->members[i], kind) ? 0 : NO_CHILD;
    }
    describe_children(family, entries);
}

bool seep_family_row_of(const struct seep_report *report,
                        const struct seep_report_site *site,
                        struct seep_report_row *ret_row)
{
    if (site->suppressed_by != NULL ||
        !seep_sites_space_is_judged(site->space)) {
        return false;
    }
    *ret_row = (struct seep_report_row){
        .space = site->space,
        .device = site->device,
        .class = site->class,
        .has_growth = site->has_growth,
        .is_pool = site->where == site->pool,
        .live_bytes = site->live_bytes,
        .growth_bytes_per_s = site->growth_bytes_per_s,
        .where = site->where,
        .frame = site->where_frame < site->frame_count
                     ? site->frames[site->where_frame]
                     : NULL,
        .age_levels = site->has_totals_only ? NULL : site->age_levels,
    };
    memcpy(ret_row->id, id_of(report, site), sizeof(ret_row->id));
    return true;
}

static void add_member(const struct seep_report *report, struct entry entry,
                       struct entries *entries)
{
    entry.report = report;
    for (size_t i = 0; i < report->site_count; i++) {
        struct seep_report_row *row = &entries->rows[entries->row_count];

        if (seep_family_row_of(report, &report->sites[i], row)) {
            entry.row = row;
            entry.site = &report->sites[i];
            entry.id = id_of(report, entry.site);
            entries->row_count++;
            entries->list[entries->count++] = entry;
        }
    }
    entry.site = NULL;
    for (size_t i = 0; i < report->row_count; i++) {
        entry.row = &report->rows[i];
        entry.id = entry.row->id;
        entries->list[entries->count++] = entry;
    }
}

static void add_entries(const struct seep_family *family,
                        struct entries *entries)
{
    size_t next = 0; /* of those together, which are in the same order */

    for (size_t i = 0; i < family->count; i++) {
        const struct seep_report *report = family->members[i];
        bool is_together =
            next < family->together_count && family->together[next] == report;

        next += is_together;
        add_member(report,
                   (struct entry){.member = i, .is_together = is_together},
                   entries);
    }
    if (entries->count > 0) {
        qsort(entries->list, entries->count, sizeof(*entries->list),
              compare_entries);
    }
}

static bool is_reported_leak(const struct seep_report_row *row)
{
    return row->class == SEEP_CLASS_LEAK || row->class == SEEP_CLASS_SUSPECT;
}

static bool is_worse(const struct seep_report_row *row,
                     const struct seep_report_row *than)
{
    if (row->class != than->class) {
        return row->class < than->class;
    }
    return row->live_bytes > than->live_bytes;
}

static bool is_finite(const struct seep_interval *rate)
{
    return isfinite(rate->estimate) && isfinite(rate->low) &&
           isfinite(rate->high);
}

/* A site of which no more is told than a row has. */
struct seep_family_face {
    struct seep_report_site site;
    const struct seep_report_frame *frame;
};

static const struct seep_report_site *face_of(const struct seep_report_row *row,
                                              struct seep_family_face *face)
{
    face->frame = row->frame;
    face->site = (struct seep_report_site){
        .space = row->space,
        .device = row->device,
        .class = row->class,
        .has_growth = row->has_growth,
        .live_bytes = row->live_bytes,
        .growth_bytes_per_s = row->growth_bytes_per_s,
        .where = row->where,
        .pool = row->is_pool ? row->where : NULL,
        .frames = &face->frame,
        .frame_count = row->frame != NULL,
        .age_levels = row->age_levels,
    };
    memcpy(face->site.id, row->id, sizeof(row->id));
    return &face->site;
}

static void sum_up(const struct entry *entries, size_t count,
                   struct seep_family_site *site, struct seep_family_face *face)
{
    const struct entry *worst = entries;
    size_t leaks_in = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];

        site->process_count += i == 0 || entry->member != entries[i - 1].member;
        if (is_reported_leak(entry->row) && leaks_in != entry->member) {
            leaks_in = entry->member;
            site->leak_count++;
        }
        worst = is_worse(entry->row, worst->row) ? entry : worst;
        if (entry->is_together) {
            site->live_bytes += entry->row->live_bytes;
            if (entry->row->has_growth && is_reported_leak(entry->row) &&
                is_finite(&entry->row->growth_bytes_per_s)) {
                site->has_growth = true;
                seep_family_add_rate(&site->growth_bytes_per_s,
                                     &entry->row->growth_bytes_per_s);
            }
        }
    }
    site->site = worst->site != NULL ? worst->site : face_of(worst->row, face);
    site->report = worst->report;
    site->id = worst->id;
    seep_family_finish_rate(&site->growth_bytes_per_s);
}

/* What each child keeps of @entries, which are of one site. */
static void read_kept(const struct entries *all, const struct entry *entries,
                      size_t count, size_t child_count)
{
    memset(all->bytes, 0, child_count * sizeof(*all->bytes));
    for (size_t i = 0; i < child_count; i++) {
        all->ages[i] = (struct seep_family_ages){.life_s = all->ages[i].life_s};
    }
    for (size_t i = 0; i < count; i++) {
        const struct seep_report_site bare = {.age_levels =
                                                  entries[i].row->age_levels};
        size_t child = all->members[entries[i].member].child;

        if (child < IDLE) {
            all->bytes[child] += (double)entries[i].row->live_bytes;
            seep_family_age_add(
                entries[i].site != NULL ? entries[i].site : &bare,
                entries[i].report->duration_s, &all->ages[child]);
        }
    }
}

static void read_whole(const struct seep_family *family,
                       const struct entries *all, bool private)
{
    for (size_t i = 0; i < family->count; i++) {
        const struct seep_report *report = family->members[i];
        size_t child = all->members[i].child;

        if (child >= IDLE) {
            continue;
        }
        all->ages[child].life_s = report->duration_s;
        all->length[child] = family->children.by_units ? (double)report->units
                                                       : report->duration_s;
        all->bytes[child] = private && report->memory.anonymous.valid
                                ? report->memory.anonymous.last_bytes
                                : 0;
        for (size_t k = 0; !private && k < report->space_count; k++) {
            if (seep_sites_space_holds(report->spaces[k].space)) {
                all->bytes[child] += (double)report->spaces[k].live_bytes;
            }
        }
    }
}

static double sum_of(const double *bytes, size_t count, size_t *ret_above)
{
    double sum = 0;

    *ret_above = 0;
    for (size_t i = 0; i < count; i++) {
        sum += bytes[i];
        *ret_above += bytes[i] > 0;
    }
    return sum;
}

static size_t next_of(const struct entries *all, size_t first)
{
    size_t next = first + 1;

    while (next < all->count &&
           compare_places(&all->list[first], &all->list[next]) == 0) {
        next++;
    }
    return next;
}

/* Does most of the children keep something here that is worth a word? */
static bool is_kept(const struct seep_family_children *children,
                    const double *bytes, double floor_bytes)
{
    size_t above;

    return sum_of(bytes, children->count, &above) >= floor_bytes &&
           2 * above > children->count;
}

/*
 * A child that does one job keeps more of a larger one, and takes longer: that
 * is no leak. Where each does many units of work, what stays of each unit is.
 */
static void test_kept(const struct seep_family_children *children,
                      const struct entries *all, double floor_bytes,
                      struct seep_family_kept *ret_kept)
{
    seep_family_kept_test(all->length, all->bytes, children->count,
                          children->line_count + 2, floor_bytes, ret_kept);
    if (ret_kept->trend == SEEP_FAMILY_GROWS &&
        !(children->by_units && children->mean_units >= UNITS_MIN)) {
        ret_kept->trend = SEEP_FAMILY_MAY_GROW;
    }
}

/* Who grows with age leaks, whatever larger jobs need. */
static void test_age(const struct seep_family_children *children,
                     const struct entries *all, double floor_bytes,
                     struct seep_family_kept *kept)
{
    seep_family_age_test(all->ages, children->count, children->line_count + 2,
                         floor_bytes, &kept->age);
    if (kept->age.trend < kept->trend && kept->age.trend < SEEP_FAMILY_UNTOLD) {
        kept->trend = kept->age.trend;
    }
}

/* Blocks that no row is of, and memory that no hook saw, are held to be once
 * only if private memory is too. */
static void test_whole(struct seep_family *family, const struct entries *all,
                       double floor_bytes)
{
    struct seep_family_children *children = &family->children;
    struct seep_family_kept private;
    bool is_once;

    read_whole(family, all, true);
    test_kept(children, all, floor_bytes, &private);
    is_once =
        private.count < children->count || private.trend == SEEP_FAMILY_ONCE;
    read_whole(family, all, false);
    test_kept(children, all, floor_bytes, &children->held);
    if (children->held.trend < children->trend) {
        children->trend = children->held.trend;
    }
    if (children->trend == SEEP_FAMILY_ONCE && !is_once) {
        children->trend = SEEP_FAMILY_UNTOLD;
    }
}

/* Who came to none of the lines that most keep memory at had no work: a worker
 * that a pool began in vain. @return whether there is one */
static bool drop_idle(struct seep_family *family, struct entries *all,
                      double floor_bytes)
{
    struct seep_family_children *children = &family->children;
    bool dropped = false;
    size_t next;

    for (size_t first = 0; first < all->count; first = next) {
        next = next_of(all, first);
        read_kept(all, &all->list[first], next - first, children->count);
        if (is_kept(children, all->bytes, floor_bytes)) {
            children->line_count++;
            for (size_t i = first; i < next; i++) {
                all->members[all->list[i].member].worked = true;
            }
        }
    }
    read_whole(family, all, false);
    for (size_t i = 0; children->line_count > 0 && i < family->count; i++) {
        size_t child = all->members[i].child;

        if (child < IDLE && !all->members[i].worked &&
            all->bytes[child] < floor_bytes) {
            all->members[i].child = IDLE;
            dropped = true;
        }
    }
    return dropped;
}

static void test_lines(struct seep_family *family, const struct entries *all,
                       double floor_bytes)
{
    struct seep_family_children *children = &family->children;
    size_t site = 0;
    size_t next;

    children->trend = SEEP_FAMILY_ONCE;
    for (size_t first = 0; first < all->count; first = next, site++) {
        struct seep_family_kept *kept = &family->sites[site].kept;

        next = next_of(all, first);
        read_kept(all, &all->list[first], next - first, children->count);
        if (is_kept(children, all->bytes, floor_bytes)) {
            test_kept(children, all, floor_bytes, kept);
            test_age(children, all, floor_bytes, kept);
            children->trend =
                kept->trend < children->trend ? kept->trend : children->trend;
        }
    }
}

static void test_children(struct seep_family *family, struct entries *all)
{
    double floor_bytes;
    size_t above;

    read_whole(family, all, false);
    floor_bytes = (double)seep_sites_floor_bytes((uint64_t)fmin(
        sum_of(all->bytes, family->children.count, &above), 1e18));
    if (drop_idle(family, all, floor_bytes)) {
        size_t line_count = family->children.line_count;

        describe_children(family, all);
        family->children.line_count = line_count;
    }
    if (family->children.count > 0) {
        read_whole(family, all, false);
        test_lines(family, all, floor_bytes);
        test_whole(family, all, floor_bytes);
    }
}

static int trend_order(const struct seep_family_site *site)
{
    return site->kept.count > 0 ? (int)site->kept.trend
                                : (int)SEEP_FAMILY_TREND_COUNT;
}

/* What leaks, most first; what children keep; what is held. */
static int compare_sites(const void *a, const void *b)
{
    const struct seep_family_site *left = a;
    const struct seep_family_site *right = b;
    double order = (right->has_growth ? right->growth_bytes_per_s.low : 0) -
                   (left->has_growth ? left->growth_bytes_per_s.low : 0);

    if ((left->leak_count > 0) != (right->leak_count > 0)) {
        return left->leak_count > 0 ? -1 : 1;
    }
    if (left->site->class != right->site->class && left->leak_count > 0) {
        return left->site->class < right->site->class ? -1 : 1;
    }
    if (order == 0) {
        order = trend_order(left) - trend_order(right);
    }
    if (order == 0) {
        order = right->kept.bytes - left->kept.bytes;
    }
    if (order == 0) {
        order = (double)right->live_bytes - (double)left->live_bytes;
    }
    return order < 0 ? -1 : order > 0 ? 1 : strcmp(left->id, right->id);
}

static int take_room(const struct seep_family *family, struct entries *entries)
{
    size_t sites = 1;
    size_t rows = 0;

    for (size_t i = 0; i < family->count; i++) {
        sites += family->members[i]->site_count;
        rows += family->members[i]->row_count;
    }
    entries->rows = calloc(sites, sizeof(*entries->rows));
    entries->list = calloc(sites + rows, sizeof(*entries->list));
    entries->members = calloc(family->count, sizeof(*entries->members));
    entries->length = calloc(2 * family->count, sizeof(*entries->length));
    entries->ages = calloc(family->count, sizeof(*entries->ages));
    if (entries->rows == NULL || entries->list == NULL ||
        entries->members == NULL || entries->length == NULL ||
        entries->ages == NULL) {
        return -ENOMEM;
    }
    entries->bytes = entries->length + family->count;
    return 0;
}

static int add_sites(struct seep_family *family, struct entries *entries)
{
    size_t next;

    add_entries(family, entries);
    for (size_t first = 0; first < entries->count;
         first = next_of(entries, first)) {
        family->site_count++;
    }
    family->sites = calloc(family->site_count + 1, sizeof(*family->sites));
    family->faces = entries->row_count < entries->count
                        ? calloc(family->site_count, sizeof(*family->faces))
                        : NULL;
    if (family->sites == NULL ||
        (family->faces == NULL && entries->row_count < entries->count)) {
        return -ENOMEM;
    }
    family->site_count = 0;
    for (size_t first = 0; first < entries->count; first = next) {
        next = next_of(entries, first);
        sum_up(&entries->list[first], next - first,
               &family->sites[family->site_count],
               family->faces == NULL ? NULL
                                     : &family->faces[family->site_count]);
        family->site_count++;
    }
    find_children(family, entries);
    if (family->children.count > 0) {
        test_children(family, entries);
    }
    qsort(family->sites, family->site_count, sizeof(*family->sites),
          compare_sites);
    return 0;
}

int seep_family_add_sites(struct seep_family *family)
{
    struct entries entries = {.count = 0};
    int error = take_room(family, &entries);

    if (error == 0) {
        error = add_sites(family, &entries);
    }
    free(entries.list);
    free(entries.rows);
    free(entries.members);
    free(entries.length);
    free(entries.ages);
    return error;
}
