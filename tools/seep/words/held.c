/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who holds what; see held.h.
 *
 * Invariant: keys of dicts other than those of modules, classes and instances
 * are never in a text: they are data, and may be secrets.
 */
#include "words/held.h"

#include <stdlib.h>
#include <string.h>

#include "words/units.h"
#include "words/words.h"

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* "__main__" is how the program calls what people know by its file. */
static void put_module(FILE *file, const struct seep_held_step *step)
{
    size_t length = strlen(step->file);

    if (!is(step->name, "__main__") || length == 0) {
        fputs(step->name, file);
    } else if (length > 3 && is(step->file + length - 3, ".py")) {
        fprintf(file, "%.*s", (int)(length - 3), step->file);
    } else {
        fputs(step->file, file);
    }
}

static const char *without_main(const char *name)
{
    return strncmp(name, "__main__.", 9) == 0 ? name + 9 : name;
}

/* A root, as the beginning of an expression. */
static void put_root(FILE *file, const struct seep_held_step *step)
{
    switch (step->kind) {
    case SEEP_HELD_KIND_MODULE:
        put_module(file, step);
        break;
    case SEEP_HELD_KIND_CLASS:
        fputs(without_main(step->name), file);
        break;
    case SEEP_HELD_KIND_GLOBAL:
    case SEEP_HELD_KIND_THREAD_LOCAL:
        if (*step->name != '\0') {
            fputs(step->name, file);
        } else {
            fputs(step->kind == SEEP_HELD_KIND_GLOBAL
                      ? "a global without a name"
                      : "a thread-local without a name",
                  file);
            if (*step->file != '\0') {
                fprintf(file, " of %s", step->file);
            }
        }
        break;
    case SEEP_HELD_KIND_FRAME:
        if (*step->name != '\0') {
            fprintf(file, "%s of running %s()", step->name, step->function);
        } else {
            fprintf(file, "running %s()", step->function);
        }
        break;
    case SEEP_HELD_KIND_STACK:
        fputs("the stack", file);
        if (*step->name != '\0') {
            fprintf(file, " of thread %s", step->name);
        }
        if (*step->function != '\0') {
            fprintf(file, " in %s", step->function);
        }
        break;
    case SEEP_HELD_KIND_MAPPING:
        fprintf(file, "a mapping of %s", SEEP_UNITS_BYTES((double)step->bytes));
        break;
    default:
        break;
    }
}

/* What is had by @step: the rest of an expression. */
static void put_edge(FILE *file, const struct seep_held_step *step)
{
    switch (step->edge) {
    case SEEP_HELD_EDGE_ATTRIBUTE:
        fprintf(file, "%s%s", *step->edge_name == '[' ? "" : ".",
                step->edge_name);
        break;
    case SEEP_HELD_EDGE_KEY:
        if (step->kind == SEEP_HELD_KIND_MODULE && *step->edge_name != '\0') {
            fprintf(file, ".%s", step->edge_name);
        } else {
            fputs("[...]", file);
        }
        break;
    case SEEP_HELD_EDGE_KEY_ITSELF:
    case SEEP_HELD_EDGE_MEMBER:
        fputs("{...}", file);
        break;
    case SEEP_HELD_EDGE_ITEM:
        fputs("[...]", file);
        break;
    case SEEP_HELD_EDGE_LOCAL:
        fprintf(file, ".%s of %s()", step->edge_name, step->edge_function);
        break;
    default:
        break;
    }
}

static bool has_name(const struct seep_held_step *step)
{
    return step->kind == SEEP_HELD_KIND_MODULE ||
           step->kind == SEEP_HELD_KIND_CLASS;
}

/* Of C or C++: a member of a variable, or of an object; a row of pointers has
 * none. */
static bool has_member(const struct seep_held_step *step)
{
    return step->edge == SEEP_HELD_EDGE_ATTRIBUTE &&
           !is(step->edge_name, "[...]") &&
           (step->kind == SEEP_HELD_KIND_GLOBAL ||
            step->kind == SEEP_HELD_KIND_THREAD_LOCAL ||
            step->kind == SEEP_HELD_KIND_CXX_OBJECT ||
            step->kind == SEEP_HELD_KIND_BLOCK);
}

/* The step that the words are about: where a module or a class has all by one
 * name, or a member has, what has that name; SIZE_MAX: below the first step. */
static size_t holder_of(const struct seep_held_group *group)
{
    size_t holder = group->holder;

    return holder < group->step_count && group->shares_edge &&
                   (has_name(&group->steps[holder]) ||
                    has_member(&group->steps[holder]))
               ? holder - 1
               : holder;
}

/* A function that runs has its variables in an object up to 3.10, which a stack
 * has, or what the interpreter knows of the thread; and from 3.11 on by itself.
 * @return the step of that object; 0: it is something else */
static size_t running_step(const struct seep_held_group *group)
{
    const struct seep_held_step *steps = group->steps;
    size_t at = group->step_count;

    if (at < 2 || (steps[at - 1].kind != SEEP_HELD_KIND_STACK &&
                   steps[at - 1].kind != SEEP_HELD_KIND_THREAD_LOCAL)) {
        return 0;
    }
    for (at -= 2; at > 0 && steps[at].kind == SEEP_HELD_KIND_BLOCK; at--) {
    }
    return steps[at].edge == SEEP_HELD_EDGE_LOCAL && holder_of(group) < at ? at
                                                                           : 0;
}

char *seep_words_holder(const struct seep_held_group *group)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);
    size_t count = group->step_count;

    if (file == NULL) {
        return NULL;
    }
    if (count > 0 && (group->end == SEEP_HELD_END_HELD ||
                      group->end == SEEP_HELD_END_WEAKLY_NAMED)) {
        size_t running = running_step(group);
        size_t from = running > 0 ? running : count;

        if (running > 0) {
            fprintf(file, "%s of running %s()", group->steps[from].edge_name,
                    group->steps[from].edge_function);
        } else {
            put_root(file, &group->steps[count - 1]);
        }
        for (size_t i = from; i-- > holder_of(group) + 1;) {
            put_edge(file, &group->steps[i]);
        }
    }
    return seep_words_close(&text);
}

static const char *article(const char *name)
{
    return strchr("aeiouAEIOU", *name) != NULL ? "an" : "a";
}

char *seep_words_held_thing(const struct seep_held_step *step)
{
    const char *name = without_main(step->name);

    switch (step->kind) {
    case SEEP_HELD_KIND_OBJECT:
        return step->has_items
                   ? seep_words_make("%s of %s item%s", name,
                                     SEEP_UNITS_COUNT((double)step->items),
                                     step->items == 1 ? "" : "s")
                   : seep_words_make("%s", name);
    case SEEP_HELD_KIND_CXX_OBJECT:
        return seep_words_make("%s", name);
    case SEEP_HELD_KIND_BLOCK:
        return seep_words_make(
            "%s%s of %s", *step->name == '\0' ? "block" : step->name,
            *step->edge_name == '[' && *step->name != '\0' ? "[]" : "",
            SEEP_UNITS_BYTES((double)step->bytes));
    default:
        return seep_words_make("%s", "");
    }
}

/* A step's thing, short: as one link of a chain. */
static void put_thing(FILE *file, const struct seep_held_step *step)
{
    char *thing;

    switch (step->kind) {
    case SEEP_HELD_KIND_MODULE:
        fputs("module ", file);
        put_module(file, step);
        break;
    case SEEP_HELD_KIND_CLASS:
        fprintf(file, "class %s", without_main(step->name));
        break;
    case SEEP_HELD_KIND_GLOBAL:
        fputs(*step->name != '\0' ? "global " : "", file);
        put_root(file, step);
        if (*step->name != '\0' && *step->file != '\0') {
            fprintf(file, " of %s", step->file);
        }
        break;
    case SEEP_HELD_KIND_THREAD_LOCAL:
        fputs(*step->name != '\0' ? "thread-local " : "", file);
        put_root(file, step);
        break;
    case SEEP_HELD_KIND_FRAME:
        put_root(file, step);
        if (*step->file != '\0') {
            fprintf(file, " (%s)", step->file);
        }
        break;
    case SEEP_HELD_KIND_OBJECT:
        fputs(without_main(step->name), file);
        break;
    case SEEP_HELD_KIND_CXX_OBJECT:
    case SEEP_HELD_KIND_BLOCK:
        thing = seep_words_held_thing(step);
        fputs(thing == NULL ? "" : thing, file);
        free(thing);
        break;
    default:
        put_root(file, step);
        break;
    }
}

static void put_holding(FILE *file, const struct seep_held_step *step)
{
    switch (step->edge) {
    case SEEP_HELD_EDGE_ITEM:
        fputs("item of ", file);
        break;
    case SEEP_HELD_EDGE_KEY:
        if (step->kind == SEEP_HELD_KIND_MODULE && *step->edge_name != '\0') {
            fprintf(file, "%s of ", step->edge_name);
        } else {
            fputs("value of ", file);
        }
        break;
    case SEEP_HELD_EDGE_KEY_ITSELF:
        fputs("key of ", file);
        break;
    case SEEP_HELD_EDGE_MEMBER:
        fputs("member of ", file);
        break;
    case SEEP_HELD_EDGE_ATTRIBUTE:
        fprintf(file, "%s of ", step->edge_name);
        break;
    case SEEP_HELD_EDGE_LOCAL:
        fprintf(file, "local %s of %s(), ", step->edge_name,
                step->edge_function);
        break;
    case SEEP_HELD_EDGE_OPERAND:
        fprintf(file, "operand of %s(), ", step->edge_function);
        break;
    case SEEP_HELD_EDGE_DATA:
        fputs("data of ", file);
        break;
    case SEEP_HELD_EDGE_CHAIN:
        fputs("a chain that begins in ", file);
        break;
    case SEEP_HELD_EDGE_OFFSET:
        if (step->bytes <= 4096) {
            fprintf(file, "%+lld in ", (long long)step->offset_bytes);
        } else {
            fputs("in ", file);
        }
        break;
    default:
        break;
    }
}

char *seep_words_held_chain(const struct seep_held_group *group)
{
    struct seep_words_text text;
    FILE *file = seep_words_open(&text);

    if (file == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < group->step_count; i++) {
        fputs(i > 0 ? " <- " : "", file);
        put_holding(file, &group->steps[i]);
        put_thing(file, &group->steps[i]);
    }
    return seep_words_close(&text);
}

/* What they have in common, where no root has it. */
static void put_nobody(FILE *file, const struct seep_held_group *group)
{
    char *chain = seep_words_held_chain(group);

    fputs(group->end == SEEP_HELD_END_CYCLE
              ? "only each other: a cycle that nobody collects, "
          : group->end == SEEP_HELD_END_LOST
              ? "something lost or hidden, with no pointer to it: "
              : "something that no root was found of: ",
          file);
    fputs(chain == NULL ? "" : chain, file);
    free(chain);
}

/* The search ended too early to say even that there is no holder. */
static bool is_unseen(const struct seep_held_group *group)
{
    return group->end == SEEP_HELD_END_UNROOTED && group->step_count == 0;
}

char *seep_words_held(const struct seep_held_group *group)
{
    struct seep_words_text text;
    FILE *file;
    char *holder;
    char *thing;

    if (group->end == SEEP_HELD_END_LOST && group->step_count == 0) {
        return seep_words_make(
            "%s", "nothing that was found: lost, or its pointer is hidden");
    }
    if (group->end == SEEP_HELD_END_MOVED) {
        return seep_words_make(
            "%s", "not known: what points to it had moved before it was read");
    }
    if (is_unseen(group)) {
        return seep_words_make(
            "%s", "not known: the search ended before a holder was found");
    }
    file = seep_words_open(&text);
    if (file == NULL) {
        return NULL;
    }
    if (group->end == SEEP_HELD_END_CYCLE ||
        group->end == SEEP_HELD_END_UNROOTED ||
        group->end == SEEP_HELD_END_LOST) {
        put_nobody(file, group);
        return seep_words_close(&text);
    }
    holder = seep_words_holder(group);
    fputs(holder == NULL ? "" : holder, file);
    if (holder_of(group) < group->step_count) {
        const struct seep_held_step *step = &group->steps[holder_of(group)];

        thing = seep_words_held_thing(step);
        if (thing != NULL && *thing != '\0') {
            fprintf(file, ", %s %s", article(thing), thing);
        }
        free(thing);
    }
    if (group->call_count > 1) {
        fprintf(file, ", in %zu calls or more that have not returned",
                group->call_count);
    }
    free(holder);
    return seep_words_close(&text);
}

/* What it says "all of it at" of, or that it cannot tell yet. */
static bool is_spoken_of(const struct seep_report_verdict *verdict,
                         const struct seep_report_site *site)
{
    return (is(site->id, verdict->first_id) ||
            is(site->id, verdict->open_id)) &&
           site->class <= SEEP_CLASS_INSUFFICIENT &&
           site->class != SEEP_CLASS_MINOR;
}

bool seep_words_held_is_wanted(const struct seep_report *report,
                               const struct seep_report_site *site)
{
    return (site->class == SEEP_CLASS_LEAK ||
            site->class == SEEP_CLASS_SUSPECT ||
            is_spoken_of(&report->verdict, site)) &&
           site->suppressed_by == NULL;
}

double seep_words_held_share(const struct seep_held_answer *answer)
{
    size_t count = answer->groups[0].block_count;

    for (size_t i = 1;
         answer->groups[0].end == SEEP_HELD_END_LOST && i < answer->group_count;
         i++) {
        if (answer->groups[i].end == SEEP_HELD_END_LOST) {
            count += answer->groups[i].block_count;
        }
    }
    return (double)count / (double)answer->asked_count;
}

/* What to look for has no name: where it is allocated leads further. */
static bool is_nameless(const struct seep_held_group *group)
{
    const struct seep_held_step *top;

    if (group->step_count == 0) {
        return true;
    }
    top = &group->steps[group->step_count - 1];
    return (top->kind == SEEP_HELD_KIND_GLOBAL ||
            top->kind == SEEP_HELD_KIND_THREAD_LOCAL) &&
           *top->name == '\0';
}

/* The first group of what is clear; NULL: it is not. */
static const struct seep_held_group *
clear_group_of(const struct seep_held_kept *kept)
{
    const struct seep_held_answer *answer = kept == NULL ? NULL : kept->answer;

    return answer != NULL && answer->asked_count >= SEEP_WORDS_HELD_LEAST &&
                   answer->group_count > 0 &&
                   seep_words_held_share(answer) >= SEEP_WORDS_HELD_CLEAR
               ? &answer->groups[0]
               : NULL;
}

char *seep_words_held_by(const struct seep_held_kept *kept)
{
    const struct seep_held_group *group = clear_group_of(kept);

    return group != NULL && group->end == SEEP_HELD_END_HELD &&
                   !is_nameless(group)
               ? seep_words_holder(group)
               : NULL;
}

bool seep_words_held_by_nothing(const struct seep_held_kept *kept)
{
    const struct seep_held_group *group = clear_group_of(kept);

    return group != NULL && (group->end == SEEP_HELD_END_LOST ||
                             group->end == SEEP_HELD_END_CYCLE);
}

/* Time that ended tells of no root as little as of a cycle. */
static char *late_line_of(const struct seep_held_group *group)
{
    char *chain = seep_words_held_chain(group);
    char *line = seep_words_make(
        "not known: the time for the search was over; so far it is %s",
        chain == NULL ? "?" : chain);

    free(chain);
    return line;
}

/* Of a group that is not all; what holds most of it where that is few. */
static char *line_of(const struct seep_held_answer *answer)
{
    const struct seep_held_group *group = &answer->groups[0];
    double share = seep_words_held_share(answer);
    char *held;
    char *line;

    if (group->end == SEEP_HELD_END_LOST && group->step_count == 0 &&
        group->block_count == answer->asked_count) {
        return seep_words_make(
            "lost or hidden: no pointer to any of %zu blocks",
            answer->asked_count);
    }
    if (answer->was_late && group->end == SEEP_HELD_END_UNROOTED &&
        group->step_count > 0) {
        return late_line_of(group);
    }
    held = seep_words_held(group);
    line = share < SEEP_WORDS_HELD_CLEAR
               ? seep_words_make("not clear; most of all by %s (%s)",
                                 held == NULL ? "?" : held,
                                 SEEP_UNITS_SHARE(share))
               : seep_words_make("%s (%s)", held == NULL ? "?" : held,
                                 SEEP_UNITS_SHARE(share));
    free(held);
    return line;
}

/* What was asked long ago may be held by somebody else by now. */
#define LONG_AGO_TIMES 1.25

char *seep_words_held_line(const struct seep_held_kept *kept,
                           uint64_t live_bytes)
{
    const struct seep_held_answer *answer = kept == NULL ? NULL : kept->answer;
    char *line;
    char *dated;

    if (kept == NULL) {
        return NULL;
    }
    if (kept->outcome == SEEP_HELD_OUTCOME_NOT_PERMITTED) {
        return seep_words_make("not known: %s; %s", seep_words_held_refused(),
                               seep_words_held_refused_remedy());
    }
    if (kept->outcome == SEEP_HELD_OUTCOME_NO_ROOM) {
        return seep_words_make("%s",
                               "not known: its cgroup was too full to look");
    }
    if (answer == NULL || answer->asked_count < SEEP_WORDS_HELD_LEAST ||
        answer->group_count == 0) {
        return NULL;
    }
    line = line_of(answer);
    if (line == NULL ||
        (double)live_bytes < LONG_AGO_TIMES * (double)kept->live_bytes) {
        return line;
    }
    dated = seep_words_make("%s, when it kept %s", line,
                            SEEP_UNITS_BYTES((double)kept->live_bytes));
    free(line);
    return dated;
}

const char *seep_words_held_refused(void)
{
    return "its memory may not be read by this user";
}

const char *seep_words_held_refused_remedy(void)
{
    return "ask as the same user, by `seep run`, or with CAP_SYS_PTRACE";
}

const char *seep_words_held_gone(void)
{
    return "not known: the process is not running here; ask while it runs, or give its core file with --core";
}

const char *seep_words_held_nothing(void)
{
    return "no call site holds a block that is known";
}

/*
 * What usually mends it: the first row of the table that fits.
 */

#define NAMES_MOST 4

struct remedy {
    enum seep_held_end end;          /* COUNT: it has a root */
    const char *on_way[NAMES_MOST];  /* one is the type of a step; '*' at an
                                        end stands for anything */
    bool above;                      /* also of what has the holder: else each
                                        block has one of its own */
    const char *by;                  /* it is had by this attribute */
    const char *holders[NAMES_MOST]; /* the type of what has them all */
    const char *words;
};

static const struct remedy remedies[] = {
    {.end = SEEP_HELD_END_LOST,
     .words =
         "it is never freed and nothing points to it: look for the missing free() behind this call site"},
    {.end = SEEP_HELD_END_MOVED,
     .words =
         "what holds it moves faster than memory is read: ask with --freeze 1000"},
    {.end = SEEP_HELD_END_UNROOTED,
     .words =
         "what holds it may move faster than memory is read: ask with --freeze 1000"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"traceback"},
     .words =
         "a kept exception holds the frames of its traceback: keep its text, or clear it with exception.with_traceback(None)"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"torch::autograd::*", "*Backward0", "*Backward1"},
     .words =
         "a tensor is kept with the graph that made it: keep tensor.detach(), or loss.item() of a loss"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"functools._lru_cache_wrapper"},
     .above = true,
     .words = "give functools.lru_cache a maxsize, or call cache_clear()"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"_asyncio.Task", "_asyncio.TaskObj", "asyncio.tasks.Task"},
     .words = "tasks that never end keep what they hold: await or cancel them"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"logging.LogRecord"},
     .words =
         "a logging handler keeps its records: give it a capacity, flush it, or take it off with removeHandler()"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"queue.*", "asyncio.queues.*", "_queue.SimpleQueue"},
     .above = true,
     .words =
         "the queue is filled faster than it is emptied: give it a maxsize, or more who take from it"},
    {.end = SEEP_HELD_END_COUNT,
     .by = "__defaults__",
     .above = true,
     .words =
         "a default argument lives as long as its function: use None, and make it inside"},
    {.end = SEEP_HELD_END_COUNT,
     .by = "__kwdefaults__",
     .above = true,
     .words =
         "a default argument lives as long as its function: use None, and make it inside"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"cell"},
     .words =
         "a function keeps what its closure has: unregister it, or let it have less, by weakref"},
    {.end = SEEP_HELD_END_COUNT,
     .on_way = {"generator", "async_generator"},
     .words =
         "a generator that has not ended keeps its locals: run it to its end, or close() it"},
    {.end = SEEP_HELD_END_COUNT,
     .holders = {"list"},
     .words =
         "the list only grows: bound it (collections.deque(maxlen=N)) or clear it"},
    {.end = SEEP_HELD_END_COUNT,
     .holders = {"dict", "collections.OrderedDict", "collections.defaultdict"},
     .words = "the dict only grows: remove what is done with, or bound it"},
    {.end = SEEP_HELD_END_COUNT,
     .holders = {"collections.deque"},
     .words = "the deque has no maxlen: give it one, or drain it"},
    {.end = SEEP_HELD_END_COUNT,
     .holders = {"set"},
     .words = "the set only grows: remove what is done with"},
};

static bool fits(const char *name, const char *pattern)
{
    size_t name_length = strlen(name);
    size_t length = strlen(pattern) - 1;

    if (*pattern == '*') {
        return name_length >= length &&
               is(name + name_length - length, pattern + 1);
    }
    return pattern[length] == '*' ? strncmp(name, pattern, length) == 0
                                  : is(name, pattern);
}

static bool has_type(const struct seep_held_step *step,
                     const char *const *patterns)
{
    if (step->kind != SEEP_HELD_KIND_OBJECT &&
        step->kind != SEEP_HELD_KIND_CXX_OBJECT) {
        return false;
    }
    for (size_t i = 0; i < NAMES_MOST && patterns[i] != NULL; i++) {
        if (fits(step->name, patterns[i])) {
            return true;
        }
    }
    return false;
}

static bool is_for(const struct remedy *remedy,
                   const struct seep_held_group *group)
{
    bool is_rooted = group->end == SEEP_HELD_END_HELD ||
                     group->end == SEEP_HELD_END_WEAKLY_NAMED;
    size_t end = remedy->above || group->holder >= group->step_count
                     ? group->step_count
                     : group->holder + 1;

    if (remedy->end != SEEP_HELD_END_COUNT) {
        return group->end == remedy->end;
    }
    if (remedy->holders[0] != NULL) {
        return is_rooted && group->holder < group->step_count &&
               has_type(&group->steps[group->holder], remedy->holders);
    }
    for (size_t i = 0; is_rooted && i < end; i++) {
        const struct seep_held_step *step = &group->steps[i];

        if (remedy->by == NULL ? has_type(step, remedy->on_way)
                               : step->edge == SEEP_HELD_EDGE_ATTRIBUTE &&
                                     is(step->edge_name, remedy->by)) {
            return true;
        }
    }
    return false;
}

static bool has_objects(const struct seep_held_group *group)
{
    bool has = group->is_object;

    for (size_t i = 0; i < group->step_count; i++) {
        has |= group->steps[i].kind == SEEP_HELD_KIND_OBJECT;
    }
    return has;
}

const char *seep_words_held_remedy(const struct seep_held_group *group)
{
    if (group->end == SEEP_HELD_END_LOST && group->is_object) {
        return "it is an object of Python to which nothing points: what is called here took a reference to it, and does not give it back (Py_DECREF)";
    }
    if (group->end == SEEP_HELD_END_CYCLE) {
        return has_objects(group)
                   ? "break the cycle, or use weakref for one side; gc.collect() frees it only where gc sees all of it, which an extension's type without tp_traverse hides"
                   : "break the cycle: one side has to be weak (std::weak_ptr), or is to be let go by hand";
    }
    if (is_unseen(group)) {
        return "ask about fewer blocks: --blocks 8";
    }
    if (group->call_count > 1) {
        return "each call keeps what it has until it returns: see what they wait for, and give that a timeout";
    }
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
        if (is_for(&remedies[i], group)) {
            return remedies[i].words;
        }
    }
    return "";
}

char *seep_words_held_advice(const struct seep_held_kept *kept)
{
    const struct seep_held_group *group = clear_group_of(kept);
    const char *remedy;
    char *holder;
    char *advice;

    if (group == NULL) {
        return NULL;
    }
    if (kept->answer->was_late && group->end == SEEP_HELD_END_UNROOTED) {
        return seep_words_make(
            "the search for what holds it had too little time: ask while it runs, with `seep held PID`, which takes longer");
    }
    holder = seep_words_holder(group);
    remedy = seep_words_held_remedy(group);
    if (*remedy == '\0' && is_nameless(group)) {
        advice = NULL;
    } else if (holder == NULL || *holder == '\0') {
        advice = *remedy == '\0' ? NULL : seep_words_make("%s", remedy);
    } else {
        advice = *remedy == '\0'
                     ? seep_words_make("find why %s keeps it", holder)
                     : seep_words_make("%s: %s", holder, remedy);
    }
    free(holder);
    return advice;
}
