/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ways have in common: groups of blocks that one thing holds.
 *
 * Invariant: each block that still lives is in one group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "held/search.h"

/* How far behind where the step above points to, or its own beginning, is the
 * word of step @i? Where several are told as one nobody points to its first. */
static int64_t hop_bytes_of(const struct seep_held_search *search,
                            const struct seep_held_way *way, size_t i)
{
    const struct seep_held_told *told = &way->steps[i];
    uint64_t at = search->links[told->link].at;
    uint64_t from = search->nodes[told->node].start;

    if (told->step.edge == SEEP_HELD_EDGE_CHAIN) {
        return -1;
    }
    if (told->step.kind == SEEP_HELD_KIND_BLOCK) {
        const struct seep_held_link *above =
            i + 1 < way->count ? &search->links[way->steps[i + 1].link] : NULL;

        if (above == NULL || above->child != told->node) {
            return -1;
        }
        from = above->value;
    }
    return at < from ? -1 : (int64_t)(at - from);
}

static void describe_way(struct seep_held_search *search,
                         struct seep_held_way *way)
{
    for (size_t i = 0; i < way->count; i++) {
        struct seep_held_told *told = &way->steps[i];
        struct seep_held_node *node = &search->nodes[told->node];

        seep_held_describe(search, node, &told->step);
        /* Which of a table's words, where nobody knows where that begins. */
        if (node->rank == SEEP_HELD_RANK_NAMELESS && *node->name == '\0' &&
            node->words == SEEP_HELD_KIND_GLOBAL) {
            told->step.address = search->links[told->link].at;
        }
    }
}

/* What a way says, without addresses and sizes. */
static uint64_t words_of(const struct seep_held_way *way)
{
    uint64_t hash = SEEP_HASH_SEED;

    for (size_t i = 0; i < way->count; i++) {
        const struct seep_held_step *step = &way->steps[i].step;

        hash = seep_hash_add(hash, step->edge);
        hash = seep_hash_add(hash, step->kind);
        hash = seep_held_hash_text(hash, step->name);
        if (step->edge == SEEP_HELD_EDGE_ATTRIBUTE ||
            step->edge == SEEP_HELD_EDGE_LOCAL) {
            hash = seep_held_hash_text(hash, step->edge_name);
        }
    }
    return hash;
}

struct grouping {
    struct seep_held_search *search;
    struct seep_held_way *ways;
    size_t count;
    uint64_t *words; /* what each says */
    uint32_t *tops;  /* what is at its top; of calls of one function the first
                        that has the same variable, for all of them */
    enum seep_held_end *ends;
    bool *is_taken;
    uint32_t *through; /* by node: how many ways left go through it, and */
    uint64_t *places;  /* the sum of how far up it is on them */
    size_t node_count; /* that they have room for */
    struct seep_held_group *groups;
    size_t group_count;
};

/* The driver has blocks without a class for each thing that it gives, which
 * lead on to many a root: a way that begins by two of such is not believed. */
#define DRIVERS_STEPS 2U

static bool is_perhaps_the_drivers(const struct seep_held_search *search,
                                   const struct seep_held_way *way)
{
    size_t first = way->count > 0 && way->steps[0].node == way->asked ? 1 : 0;
    size_t raw = 0;

    for (size_t i = first; i < way->count && raw == i - first; i++) {
        const struct seep_held_node *node = &search->nodes[way->steps[i].node];

        raw += node->kind == SEEP_HELD_RAW && node->type == 0;
    }
    return search->question->is_of_driver && raw >= DRIVERS_STEPS;
}

static enum seep_held_end end_of(const struct seep_held_search *search,
                                 const struct seep_held_way *way)
{
    const struct seep_held_node *root = &search->nodes[way->root];

    if (is_perhaps_the_drivers(search, way)) {
        return SEEP_HELD_END_WEAKLY_NAMED;
    }

    /* A search that went on for too long ends at whatever lay on a stack. */
    return (root->rank <= SEEP_HELD_RANK_FRAME && !search->was_cut_short) ||
                   root->rank <= SEEP_HELD_RANK_NAMELESS ||
                   (!search->was_cut_short &&
                    root->words == SEEP_HELD_KIND_STACK &&
                    *root->function != '\0')
               ? SEEP_HELD_END_HELD
               : SEEP_HELD_END_WEAKLY_NAMED;
}

static bool is_left(const struct grouping *grouping, size_t way)
{
    return !grouping->is_taken[way] &&
           grouping->ways[way].root != SEEP_HELD_NOTHING;
}

/* Words for a way may name things that were not known before. */
static int fit_nodes(struct grouping *grouping)
{
    size_t nodes = grouping->search->node_count + 1;

    if (grouping->node_count < nodes) {
        free(grouping->through);
        free(grouping->places);
        grouping->through = calloc(nodes, sizeof(*grouping->through));
        grouping->places = calloc(nodes, sizeof(*grouping->places));
        grouping->node_count = nodes;
    }
    return grouping->through == NULL || grouping->places == NULL ? -ENOMEM : 0;
}

/* What step @k of way @i is to be counted as. */
static uint32_t thing_at(const struct grouping *grouping, size_t i, size_t k)
{
    const struct seep_held_way *way = &grouping->ways[i];

    return k + 1 == way->count ? grouping->tops[i] : way->steps[k].node;
}

static void count_through(struct grouping *grouping)
{
    for (size_t i = 0; i < grouping->count; i++) {
        for (size_t k = 0; k < grouping->ways[i].count; k++) {
            grouping->through[thing_at(grouping, i, k)] = 0;
            grouping->places[thing_at(grouping, i, k)] = 0;
        }
    }
    for (size_t i = 0; i < grouping->count; i++) {
        for (size_t k = 0; is_left(grouping, i) && k < grouping->ways[i].count;
             k++) {
            grouping->through[thing_at(grouping, i, k)]++;
            grouping->places[thing_at(grouping, i, k)] += k;
        }
    }
}

/* Which is the lower on most ways? On one stray way it may be the other. */
static bool is_lower(const struct grouping *grouping, uint32_t node,
                     uint32_t best)
{
    return best == SEEP_HELD_NOTHING ||
           grouping->places[node] * grouping->through[best] <
               grouping->places[best] * grouping->through[node];
}

/* Of what most ways go through, the lowest that three quarters of them do. */
static uint32_t find_holder(const struct grouping *grouping)
{
    uint32_t most = 0;
    uint32_t best = SEEP_HELD_NOTHING;

    for (size_t i = 0; i < grouping->count; i++) {
        const struct seep_held_way *way = &grouping->ways[i];

        for (size_t k = 0; is_left(grouping, i) && k < way->count; k++) {
            uint32_t through = grouping->through[thing_at(grouping, i, k)];

            most = through > most ? through : most;
        }
    }
    for (size_t i = 0; i < grouping->count; i++) {
        const struct seep_held_way *way = &grouping->ways[i];

        for (size_t k = 0; is_left(grouping, i) && k < way->count; k++) {
            uint32_t node = thing_at(grouping, i, k);

            if (4 * grouping->through[node] >= 3 * most &&
                is_lower(grouping, node, best)) {
                best = node;
            }
        }
    }
    return best;
}

static bool goes_through(const struct grouping *grouping, size_t way,
                         uint32_t node, size_t *ret_step)
{
    for (size_t k = 0; k < grouping->ways[way].count; k++) {
        if (thing_at(grouping, way, k) == node) {
            *ret_step = k;
            return true;
        }
    }
    return false;
}

/* Of the ways at @members the one that says what most of them say. */
static size_t most_common(const struct grouping *grouping,
                          const size_t *members, size_t count)
{
    size_t best = members[0];
    size_t most = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t words = grouping->words[members[i]];
        size_t same = 0;

        for (size_t k = 0; k < count; k++) {
            same += grouping->words[members[k]] == words;
        }
        if (same > most) {
            most = same;
            best = members[i];
        }
    }
    return best;
}

/* By which words of it do all of @members go up to @holder? */
static int find_edges(const struct grouping *grouping, const size_t *members,
                      size_t count, uint32_t holder,
                      struct seep_held_group *group)
{
    const struct seep_held_search *search = grouping->search;
    uint64_t *offsets =
        seep_store_take(grouping->search->store, count, sizeof(*offsets));
    bool is_same = true;

    if (offsets == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct seep_held_told *told;
        size_t step = 0;

        if (!goes_through(grouping, members[i], holder, &step)) {
            return 0;
        }
        told = &grouping->ways[members[i]].steps[step];
        offsets[i] =
            search->links[told->link].at - search->nodes[told->node].start;
        is_same &= offsets[i] == offsets[0];
    }
    group->shares_edge = is_same;
    group->edge_offsets = offsets;
    group->edge_count = count;
    return 0;
}

/* The last thing on the way. */
static uint32_t top_of(const struct seep_held_way *way)
{
    return way->count == 0 ? way->asked : way->steps[way->count - 1].node;
}

static bool is_same_variable(const struct seep_held_step *a,
                             const struct seep_held_step *b)
{
    return a->kind == SEEP_HELD_KIND_FRAME && b->kind == a->kind &&
           *a->function != '\0' && strcmp(a->function, b->function) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->name, b->name) == 0;
}

/* Threads, greenlets and generators that wait in one function have a call of it
 * each: to people they are one place, and none of them alone is what holds. */
static void find_tops(struct grouping *grouping)
{
    for (size_t i = 0; i < grouping->count; i++) {
        const struct seep_held_way *way = &grouping->ways[i];

        grouping->tops[i] = top_of(way);
        for (size_t k = 0; k < i && way->count > 0; k++) {
            const struct seep_held_way *other = &grouping->ways[k];

            if (other->count > 0 &&
                is_same_variable(&way->steps[way->count - 1].step,
                                 &other->steps[other->count - 1].step)) {
                grouping->tops[i] = grouping->tops[k];
                break;
            }
        }
    }
}

/* How many calls have what @members have at their tops? */
static size_t count_calls(const struct grouping *grouping,
                          const size_t *members, size_t count)
{
    size_t calls = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_new = true;

        for (size_t k = 0; k < i && is_new; k++) {
            is_new = top_of(&grouping->ways[members[k]]) !=
                     top_of(&grouping->ways[members[i]]);
        }
        calls += is_new;
    }
    return calls;
}

static int add_group(struct grouping *grouping, const size_t *members,
                     size_t count, uint32_t holder)
{
    size_t chosen = most_common(grouping, members, count);
    struct seep_held_search *search = grouping->search;
    const struct seep_held_way *way = &grouping->ways[chosen];
    struct seep_held_group *group = &grouping->groups[grouping->group_count];
    struct seep_held_step *steps =
        seep_store_take(search->store, way->count + 1, sizeof(*steps));
    int error = 0;

    if (steps == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < way->count; i++) {
        steps[i] = way->steps[i].step;
        steps[i].hop_bytes = hop_bytes_of(search, way, i);
        seep_held_note_type(search, &search->nodes[way->steps[i].node],
                            &steps[i]);
    }
    *group = (struct seep_held_group){
        .end = grouping->ends[chosen],
        .block_count = count,
        .steps = steps,
        .step_count = way->count,
        .holder = way->count,
        .is_object = search->nodes[top_of(way)].kind == SEEP_HELD_OBJECT,
    };
    if (holder != SEEP_HELD_NOTHING) {
        goes_through(grouping, chosen, holder, &group->holder);
        group->call_count = holder == grouping->tops[chosen]
                                ? count_calls(grouping, members, count)
                                : 0;
        error = find_edges(grouping, members, count, holder, group);
    }
    for (size_t i = 0; i < count; i++) {
        grouping->is_taken[members[i]] = true;
    }
    grouping->group_count++;
    return error;
}

/* Those that a holder has, most first; then those that none has, by words. */
static int group_ways(struct grouping *grouping)
{
    size_t *members = calloc(grouping->count + 1, sizeof(*members));
    int error = members == NULL ? -ENOMEM : 0;

    for (size_t first = 0; error == 0 && first < grouping->count;) {
        uint32_t holder;
        size_t count = 0;
        size_t step;

        if (grouping->is_taken[first]) {
            first++;
            continue;
        }
        count_through(grouping);
        holder = find_holder(grouping);
        for (size_t i = 0; i < grouping->count; i++) {
            bool same = holder != SEEP_HELD_NOTHING
                            ? grouping->ways[i].root != SEEP_HELD_NOTHING &&
                                  goes_through(grouping, i, holder, &step)
                            : grouping->ends[i] == grouping->ends[first] &&
                                  grouping->words[i] == grouping->words[first];

            if (same && !grouping->is_taken[i]) {
                members[count++] = i;
            }
        }
        error = add_group(grouping, members, count, holder);
    }
    free(members);
    return error;
}

static int compare_groups(const void *one, const void *other)
{
    const struct seep_held_group *a = one;
    const struct seep_held_group *b = other;

    return (a->block_count < b->block_count) -
           (a->block_count > b->block_count);
}

/* A block without a class is the driver's where something else has the tensor;
 * where nothing has, it is what there is to tell. */
static void link_raw_word(struct seep_held_search *search, uint32_t asked)
{
    uint64_t at = search->nodes[asked].raw_word;
    uint32_t holder;

    if (at == 0 || search->nodes[asked].up != 0) {
        return;
    }
    holder = seep_held_resolve(search, at);
    if (holder < SEEP_HELD_ALLOCATOR && holder != asked) {
        seep_held_link_add(search, asked, holder, at,
                           search->nodes[asked].start);
    }
}

/* How each way ends, and words for its steps. */
static int finish_ways(struct grouping *grouping)
{
    struct seep_held_search *search = grouping->search;
    int error = 0;

    for (size_t i = 0; error == 0 && i < grouping->count; i++) {
        struct seep_held_way *way = &grouping->ways[i];
        bool is_cycle = false;

        if (way->root != SEEP_HELD_NOTHING) {
            grouping->ends[i] = end_of(search, way);
        } else {
            link_raw_word(search, way->asked);
            error = seep_held_tell_unrooted(search, way, &is_cycle);
            grouping->ends[i] =
                way->count == 0 && search->nodes[way->asked].is_moving
                    ? SEEP_HELD_END_MOVED
                : way->count == 0 && seep_held_is_lost(search, way->asked)
                    ? SEEP_HELD_END_LOST
                : search->nodes[way->asked].is_below_lost ? SEEP_HELD_END_LOST
                : is_cycle                                ? SEEP_HELD_END_CYCLE
                           : SEEP_HELD_END_UNROOTED;
        }
        describe_way(search, way);
        grouping->words[i] = words_of(way);
    }
    find_tops(grouping);
    return error;
}

/* Which of the blocks still live, of all that were asked about. To be freed;
 * NULL without memory. */
static bool *find_live(struct seep_held_search *search)
{
    const struct seep_held_question *question = search->question;
    struct seep_held_block *blocks =
        calloc(search->asked_count + 1, sizeof(*blocks));
    bool *is_live = calloc(search->asked_count + 1, sizeof(*is_live));

    for (size_t i = 0;
         blocks != NULL && is_live != NULL && i < search->asked_count; i++) {
        blocks[i].address = search->nodes[search->asked[i]].start;
        is_live[i] = true;
    }
    if (blocks != NULL && is_live != NULL && question->still_live != NULL) {
        question->still_live(question->context, blocks, search->asked_count,
                             is_live);
    }
    free(blocks);
    return is_live;
}

static int make_groups(struct grouping *grouping, struct seep_held_part *part)
{
    int error = finish_ways(grouping);

    error = error == 0 ? fit_nodes(grouping) : error;
    if (error == 0) {
        error = group_ways(grouping);
    }
    if (error == 0) {
        qsort(grouping->groups, grouping->group_count,
              sizeof(*grouping->groups), compare_groups);
        part->group_count = grouping->group_count;
        part->asked_count = grouping->count;
    }
    return error;
}

/*
 * A table that was replaced when it grew leaves its words behind, and who has
 * its place now seems to have those blocks: some of them, since the newest were
 * never there. Where most blocks have such a holder, and another block of raw
 * memory that others of them have has all of these as well, that one explains
 * them all.
 */

#define ALL_SHARE 0.95 /* at least; one may have gone meanwhile */

/* The word by which a way leaves its block, from raw memory, or NULL. */
static struct seep_held_link *first_raw_link(const struct grouping *grouping,
                                             const struct seep_held_ways *ways,
                                             size_t way)
{
    struct seep_held_search *search = grouping->search;
    uint32_t number = ways->link[grouping->ways[way].asked];
    struct seep_held_link *link;

    if (grouping->ways[way].root == SEEP_HELD_NOTHING ||
        number == SEEP_HELD_NO_LINK) {
        return NULL;
    }
    link = &search->links[number];
    return search->nodes[link->holder].kind == SEEP_HELD_RAW &&
                   !search->nodes[link->holder].is_asked
               ? link
               : NULL;
}

static bool has_directly(const struct seep_held_search *search, uint32_t holder,
                         uint32_t child)
{
    for (uint32_t i = search->nodes[child].up; i != 0;
         i = search->links[i - 1].next_up) {
        if (search->links[i - 1].holder == holder &&
            !search->links[i - 1].is_stale) {
            return true;
        }
    }
    return false;
}

/* Which ways go through the holder of most; @return how many, 0: there is no
 * such holder, or it has all. */
static size_t find_some(struct grouping *grouping, bool *ret_is_member)
{
    uint32_t holder;
    size_t count = 0;
    size_t step;

    for (size_t i = 0; i < grouping->count; i++) {
        grouping->tops[i] = top_of(&grouping->ways[i]);
    }
    count_through(grouping);
    holder = find_holder(grouping);
    for (size_t i = 0; holder != SEEP_HELD_NOTHING && i < grouping->count;
         i++) {
        ret_is_member[i] =
            is_left(grouping, i) && goes_through(grouping, i, holder, &step);
        count += ret_is_member[i];
    }
    return count < grouping->count ? count : 0;
}

/* Does @holder have as good as all of the members? */
static bool has_them_all(const struct grouping *grouping, const bool *is_member,
                         size_t member_count, uint32_t holder)
{
    size_t had = 0;

    for (size_t i = 0; i < grouping->count; i++) {
        had += is_member[i] &&
               has_directly(grouping->search, holder, grouping->ways[i].asked);
    }
    return (double)had >= ALL_SHARE * (double)member_count;
}

/* @return whether words were struck out, so that ways are others */
static bool strike_left_over(struct grouping *grouping,
                             const struct seep_held_ways *ways)
{
    bool *is_member = calloc(grouping->count + 1, sizeof(*is_member));
    size_t members = is_member == NULL ? 0 : find_some(grouping, is_member);
    uint32_t tried = SEEP_HELD_NOTHING;
    bool found = false;

    for (size_t i = 0; members > 0 && !found && i < grouping->count; i++) {
        const struct seep_held_link *link =
            is_member[i] ? NULL : first_raw_link(grouping, ways, i);

        /* Who has no name explains nothing. */
        if (link != NULL && end_of(grouping->search, &grouping->ways[i]) !=
                                SEEP_HELD_END_HELD) {
            continue;
        }

        if (link != NULL && link->holder != tried) {
            tried = link->holder;
            found = has_them_all(grouping, is_member, members, tried);
        }
    }
    for (size_t i = 0; found && i < grouping->count; i++) {
        struct seep_held_link *link =
            is_member[i] ? first_raw_link(grouping, ways, i) : NULL;

        if (link != NULL &&
            has_directly(grouping->search, tried, grouping->ways[i].asked)) {
            link->is_stale = true;
        }
    }
    free(is_member);
    return found;
}

static void grouping_fini(struct grouping *grouping, size_t asked_count)
{
    for (size_t i = 0; grouping->ways != NULL && i < asked_count; i++) {
        free(grouping->ways[i].steps);
    }
    free(grouping->ways);
    free(grouping->words);
    free(grouping->tops);
    free(grouping->ends);
    free(grouping->is_taken);
    free(grouping->through);
    free(grouping->places);
}

/* The blocks of one call site: of .asked from @from up to @to, into @groups,
 * which has room for as many. */
static int tell_part(struct seep_held_search *search, const bool *is_live,
                     size_t from, size_t to, struct seep_held_group *groups,
                     struct seep_held_part *part)
{
    struct seep_held_ways ways;
    size_t asked = to - from + 1;
    struct grouping grouping = {
        .search = search,
        .ways = calloc(asked, sizeof(struct seep_held_way)),
        .words = calloc(asked, sizeof(uint64_t)),
        .tops = calloc(asked, sizeof(uint32_t)),
        .ends = calloc(asked, sizeof(enum seep_held_end)),
        .is_taken = calloc(asked, sizeof(bool)),
        .groups = groups,
    };
    int error = seep_held_ways_open(search, &ways);

    if (grouping.ways == NULL || grouping.ends == NULL ||
        grouping.is_taken == NULL || grouping.words == NULL ||
        grouping.tops == NULL || fit_nodes(&grouping) < 0) {
        error = -ENOMEM;
    }
    for (size_t i = from; error == 0 && i < to; i++) {
        if (is_live[i]) {
            grouping.ways[grouping.count++].asked = search->asked[i];
        }
    }
    error = error == 0
                ? seep_held_tell_all(&ways, grouping.ways, grouping.count)
                : error;
    if (error == 0 && strike_left_over(&grouping, &ways)) {
        error = seep_held_tell_all(&ways, grouping.ways, grouping.count);
    }
    if (error == 0) {
        error = make_groups(&grouping, part);
    }
    seep_held_ways_close(&ways);
    grouping_fini(&grouping, asked);
    return error;
}

int seep_held_paths(struct seep_held_search *search,
                    struct seep_held_answer *answer)
{
    struct seep_held_group *groups = seep_store_take(
        search->store, search->asked_count + 1, sizeof(*groups));
    struct seep_held_part *parts =
        seep_store_take(search->store, search->part_count, sizeof(*parts));
    bool *is_live = find_live(search);
    int error = 0;
    size_t asked_count = 0;
    size_t group_count = 0;
    size_t from = 0;

    if (groups == NULL || parts == NULL || is_live == NULL) {
        error = -ENOMEM;
    }
    for (size_t i = 0; error == 0 && i < search->part_count; i++) {
        parts[i].group_first = group_count;
        error = tell_part(search, is_live, from, search->part_ends[i],
                          groups + group_count, &parts[i]);
        group_count += parts[i].group_count;
        asked_count += parts[i].asked_count;
        from = search->part_ends[i];
    }
    if (error == 0) {
        answer->groups = groups;
        answer->group_count = group_count;
        answer->asked_count = asked_count;
        answer->parts = parts;
        answer->part_count = search->part_count;
    }
    free(is_live);
    return error;
}
