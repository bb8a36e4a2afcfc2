/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checker: choices, actors, memory; see engine.h.
 *
 * Invariant: what is stored lies in the real memory too, so that whoever looks
 * while no actor runs sees what a file would hold after a kill.
 */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "intercept.h"

#undef clock_gettime
#undef nanosleep

#define STACK_BYTES (256U << 10)
#define WORDS_MOST 512U
#define HASH_SLOTS 4096U
#define CHOICES_MOST 65536U
#define STEPS_MOST 20000U
#define VIEWS_BYTES (64U << 20)

/* Choices: a path through a tree, walked again from its root each time. */

static struct {
    uint16_t taken[CHOICES_MOST];
    uint16_t count[CHOICES_MOST];
    size_t at;
    size_t depth;
} path;

static unsigned choose(unsigned count)
{
    if (count < 2 || path.at == CHOICES_MOST) {
        return 0;
    }
    if (path.at == path.depth) {
        path.taken[path.at] = 0;
        path.count[path.at] = (uint16_t)count;
        path.depth++;
    }
    return path.taken[path.at++];
}

/* @return false: that was the last path */
static bool next_path(void)
{
    while (path.depth > 0 &&
           path.taken[path.depth - 1] + 1 >= path.count[path.depth - 1]) {
        path.depth--;
    }
    if (path.depth == 0) {
        return false;
    }
    path.taken[path.depth - 1]++;
    return true;
}

/* Views: of each word the newest message that one has seen. */

struct view {
    uint16_t seen[WORDS_MOST];
};

struct message {
    uint64_t value;
    const struct view *released; /* NULL: relaxed, by none who released */
};

struct word {
    volatile void *at;
    size_t bytes;
    struct message *messages; /* the first is what it began with */
    uint32_t count;
    uint32_t room;
    uint32_t readers; /* a bit an actor, in any execution of the scenario */
    uint32_t writers;
};

static struct word words[WORDS_MOST];
static uint32_t word_count;
static uint16_t hashed[HASH_SLOTS]; /* index + 1 */
static uint16_t sorted[WORDS_MOST]; /* those of the memory, by address */
static uint32_t sorted_count;
static char *memory;
static size_t memory_bytes;
static char *views;
static size_t views_used;

enum state { READY, WAITING, DONE, DEAD };

struct actor {
    ucontext_t context;
    char *stack;
    void (*body)(void);
    enum state state;
    unsigned flag;
    struct view current;
    struct view acquired;        /* by relaxed loads; an acquire fence's */
    const struct view *released; /* by the last release fence */
};

static struct actor actors[MODEL_ACTORS_MOST];
static unsigned actor_count;
static int running = -1; /* -1: nobody, memory is plain */
static int next_actor = -1;
static ucontext_t scheduler;
static const struct view *flags[MODEL_FLAGS];

static const struct model_scenario *current;
static struct model_bounds left;
static uint32_t steps;
static uint64_t clock_ns;
static bool was_killed;
static bool is_new_word_shared; /* the search must begin again */
static bool is_tracing;
static const char *fault;
static struct model_place *places;

extern char __data_start;
extern char _end;

static struct view *new_view(const struct view *from)
{
    struct view *view = (void *)(views + views_used);

    views_used += sizeof(*view);
    if (views_used > VIEWS_BYTES) {
        abort();
    }
    memcpy(view, from, sizeof(*view));
    return view;
}

static void join(struct view *into, const struct view *from)
{
    for (uint32_t i = 0; from != NULL && i < word_count; i++) {
        if (from->seen[i] > into->seen[i]) {
            into->seen[i] = from->seen[i];
        }
    }
}

static uint64_t plain_load(const volatile void *at, size_t bytes)
{
    return bytes == 4 ? *(const volatile uint32_t *)at
                      : *(const volatile uint64_t *)at;
}

static void plain_store(volatile void *at, size_t bytes, uint64_t value)
{
    if (bytes == 4) {
        *(volatile uint32_t *)at = (uint32_t)value;
    } else {
        *(volatile uint64_t *)at = value;
    }
}

static bool is_shared(const volatile void *at)
{
    const volatile char *byte = at;

    return running >= 0 && ((byte >= memory && byte < memory + memory_bytes) ||
                            (byte >= &__data_start && byte < &_end));
}

static void add_message(struct word *word, uint64_t value,
                        const struct view *released)
{
    if (word->count == word->room) {
        word->room = word->room == 0 ? 8 : 2 * word->room;
        word->messages =
            realloc(word->messages, word->room * sizeof(*word->messages));
        if (word->messages == NULL) {
            abort();
        }
    }
    word->messages[word->count++] = (struct message){value, released};
}

static void sort_in(uint16_t index)
{
    uint32_t i = sorted_count++;

    for (; i > 0 && words[sorted[i - 1]].at > words[index].at; i--) {
        sorted[i] = sorted[i - 1];
    }
    sorted[i] = index;
}

static struct word *word_at(volatile void *at, size_t bytes)
{
    uintptr_t key = (uintptr_t)at / 4;
    uint32_t slot = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 52);
    struct word *word;

    while (hashed[slot] != 0 && words[hashed[slot] - 1].at != at) {
        slot = (slot + 1) % HASH_SLOTS;
    }
    if (hashed[slot] == 0) {
        if (word_count == WORDS_MOST) {
            abort();
        }
        word = &words[word_count++];
        memset(word, 0, sizeof(*word));
        word->at = at;
        word->bytes = bytes;
        add_message(word, plain_load(at, bytes), NULL);
        hashed[slot] = (uint16_t)word_count;
        if ((char *)at >= memory && (char *)at < memory + memory_bytes) {
            sort_in((uint16_t)(word_count - 1));
        }
    }
    return &words[hashed[slot] - 1];
}

static void forget_words(void)
{
    for (uint32_t i = 0; i < word_count; i++) {
        free(words[i].messages);
    }
    word_count = 0;
    sorted_count = 0;
    memset(hashed, 0, sizeof(hashed));
}

static void rewind_words(void)
{
    for (uint32_t i = 0; i < word_count; i++) {
        plain_store(words[i].at, words[i].bytes, words[i].messages[0].value);
        words[i].count = 1;
    }
    views_used = 0;
}

/* Who goes on. */

static void leave(void)
{
    swapcontext(&actors[running].context, &scheduler);
}

static void end_everything(void)
{
    for (unsigned i = 0; i < actor_count; i++) {
        actors[i].state = actors[i].state == DONE ? DONE : DEAD;
    }
    leave();
}

void model_fail(const char *what)
{
    if (fault == NULL) {
        fault = what;
    }
    if (is_tracing) {
        printf("! %s\n", what);
    }
    if (running >= 0) {
        end_everything();
    }
}

static void maybe_kill(void)
{
    if (was_killed || current->kill == MODEL_KILL_NONE ||
        (current->kill == MODEL_KILL_FIRST && running != 0) || choose(2) == 0) {
        return;
    }
    was_killed = true;
    if (is_tracing) {
        printf("%d dies\n", running);
    }
    if (current->kill == MODEL_KILL_PROCESS) {
        end_everything();
    }
    actors[running].state = DEAD;
    leave();
}

static void maybe_switch(void)
{
    unsigned count = 0;
    unsigned taken;

    for (unsigned i = 0; i < actor_count; i++) {
        count += (int)i != running && actors[i].state == READY;
    }
    if (left.preemptions == 0 || count == 0) {
        return;
    }
    taken = choose(count + 1);
    if (taken == 0) {
        return;
    }
    left.preemptions--;
    for (next_actor = 0;; next_actor++) {
        if (next_actor != running && actors[next_actor].state == READY &&
            --taken == 0) {
            break;
        }
    }
    leave();
}

/* Before each operation. A word that only one actor uses orders nobody: to
 * switch there is to switch at the next that is shared. */
static void step_at(struct word *word, bool is_store)
{
    uint32_t me = UINT32_C(1) << running;
    bool was_shared =
        word->writers != 0 && ((word->readers | word->writers) &
                               ((word->readers | word->writers) - 1)) != 0;

    if (is_store) {
        word->writers |= me;
    } else {
        word->readers |= me;
    }
    if (++steps > STEPS_MOST) {
        model_fail("an actor does not come to an end");
    }
    if (is_store) {
        maybe_kill();
    }
    if (was_shared) {
        maybe_switch();
    } else if (word->writers != 0 && ((word->readers | word->writers) &
                                      ((word->readers | word->writers) - 1))) {
        is_new_word_shared = true;
    }
}

static void reach(struct model_place *place, const char *function)
{
    if (place->function == NULL) {
        place->function = function;
        place->next = places;
        places = place;
    }
}

static bool acquires(const struct model_place *place)
{
    return !place->is_weak && (place->order == memory_order_acquire ||
                               place->order == memory_order_acq_rel ||
                               place->order == memory_order_seq_cst);
}

static bool releases(const struct model_place *place)
{
    return !place->is_weak && (place->order == memory_order_release ||
                               place->order == memory_order_acq_rel ||
                               place->order == memory_order_seq_cst);
}

static void trace(const struct model_place *place, const char *what,
                  const struct word *word, uint64_t value)
{
    const volatile char *base = memory;

    if (is_tracing) {
        printf("%d %s:%d %s %s @%tx = %#lx\n", running, place->function,
               place->line, place->kind, what,
               (const volatile char *)word->at - base, (unsigned long)value);
    }
}

/* Message @which of @word was read. */
static uint64_t see(struct word *word, uint32_t which, bool acquire)
{
    struct actor *actor = &actors[running];
    const struct message *message = &word->messages[which];
    uint16_t *seen = &actor->current.seen[word - words];

    *seen = *seen < which ? (uint16_t)which : *seen;
    join(acquire ? &actor->current : &actor->acquired, message->released);
    return message->value;
}

static uint64_t read_any(struct word *word, bool acquire)
{
    uint32_t newest = word->count - 1;
    uint32_t oldest = actors[running].current.seen[word - words];
    unsigned age = left.stale > 0 ? choose(newest - oldest + 1) : 0;

    left.stale -= age != 0;
    return see(word, newest - age, acquire);
}

static void write_new(struct word *word, uint64_t value, bool release,
                      const struct view *carried)
{
    struct actor *actor = &actors[running];
    const struct view *released = actor->released;

    actor->current.seen[word - words] = (uint16_t)word->count;
    if (release) {
        released = new_view(&actor->current);
    }
    if (carried != NULL && released != NULL) {
        struct view *both = new_view(released);

        join(both, carried);
        released = both;
    } else if (carried != NULL) {
        released = carried;
    }
    add_message(word, value, released);
    plain_store(word->at, word->bytes, value);
}

uint64_t model_load(struct model_place *place, const char *function,
                    const volatile void *at, size_t bytes)
{
    struct word *word;
    uint64_t value;

    reach(place, function);
    if (!is_shared(at)) {
        return plain_load(at, bytes);
    }
    word = word_at((volatile void *)at, bytes);
    step_at(word, false);
    value = read_any(word, acquires(place));
    trace(place, value == word->messages[word->count - 1].value ? "" : "stale",
          word, value);
    return value;
}

void model_store(struct model_place *place, const char *function,
                 volatile void *at, size_t bytes, uint64_t value)
{
    struct word *word;

    reach(place, function);
    if (!is_shared(at)) {
        plain_store(at, bytes, value);
        return;
    }
    word = word_at(at, bytes);
    step_at(word, true);
    trace(place, "", word, value);
    write_new(word, value, releases(place), NULL);
}

static uint64_t changed(char operation, uint64_t before, uint64_t value)
{
    return operation == '+'   ? before + value
           : operation == '|' ? before | value
                              : value;
}

bool model_replace(struct model_place *place, const char *function,
                   volatile void *at, size_t bytes, uint64_t *seen,
                   uint64_t value)
{
    struct word *word;
    const struct message *last;

    reach(place, function);
    if (!is_shared(at)) {
        uint64_t found = plain_load(at, bytes);
        bool same = found == *seen;

        plain_store(at, bytes, same ? value : found);
        *seen = found;
        return same;
    }
    word = word_at(at, bytes);
    step_at(word, true);
    last = &word->messages[word->count - 1];
    if (last->value != *seen) {
        *seen = read_any(word, false);
        trace(place, "failed", word, *seen);
        return false;
    }
    if (place->is_split) {
        see(word, word->count - 1, acquires(place));
        step_at(word, true);
        write_new(word, value, releases(place), NULL);
        return true;
    }
    trace(place, "", word, value);
    /* What it replaces goes on to be released by what it writes. */
    see(word, word->count - 1, acquires(place));
    write_new(word, value, releases(place), last->released);
    return true;
}

uint64_t model_update(struct model_place *place, const char *function,
                      volatile void *at, size_t bytes, char operation,
                      uint64_t value)
{
    struct word *word;
    uint64_t before;

    reach(place, function);
    if (!is_shared(at)) {
        before = plain_load(at, bytes);
        plain_store(at, bytes, changed(operation, before, value));
        return before;
    }
    word = word_at(at, bytes);
    step_at(word, true);
    before = see(word, word->count - 1, acquires(place));
    value = changed(operation, before, value);
    if (place->is_split) {
        step_at(word, true);
    }
    trace(place, "", word, value);
    write_new(word, value, releases(place),
              word->messages[word->count - 1].released);
    return before;
}

void model_fence(struct model_place *place, const char *function)
{
    reach(place, function);
    if (running < 0) {
        return;
    }
    if (acquires(place)) {
        join(&actors[running].current, &actors[running].acquired);
    }
    if (releases(place)) {
        actors[running].released = new_view(&actors[running].current);
    }
}

void model_read(void *to, uint64_t offset, size_t bytes)
{
    static struct model_place place = {
        "pread", "", "load", 0, memory_order_relaxed, false, false, NULL};
    const char *start = (const char *)memory + offset;

    memcpy(to, start, bytes);
    if (running < 0) {
        return;
    }
    for (uint32_t i = 0; i < sorted_count; i++) {
        const volatile char *at = words[sorted[i]].at;
        size_t size = words[sorted[i]].bytes;

        if (at >= start && at + size <= start + bytes) {
            plain_store((char *)to + (at - start), size,
                        model_load(&place, "pread", at, size));
        }
    }
}

int model_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    (void)clock;
    clock_ns += UINT64_C(1) << 20;
    ret_now->tv_sec = (time_t)(clock_ns / 1000000000);
    ret_now->tv_nsec = (long)(clock_ns % 1000000000);
    return 0;
}

/* Others first, in turn; that is no preemption. */
int model_nanosleep(const struct timespec *time, struct timespec *ret_left)
{
    (void)time;
    (void)ret_left;
    clock_ns += 10000000;
    for (unsigned i = 1; running >= 0 && i < actor_count; i++) {
        unsigned other = ((unsigned)running + i) % actor_count;

        if (actors[other].state == READY) {
            next_actor = (int)other;
            leave();
            break;
        }
    }
    return 0;
}

uint32_t model_self(void)
{
    return running < 0 ? 99 : 100 + (uint32_t)running;
}

bool model_was_killed(void)
{
    return was_killed;
}

bool model_is_dead(uint32_t id)
{
    return id >= 100 && id < 100 + actor_count &&
           (actors[id - 100].state == DEAD || actors[id - 100].state == DONE);
}

/* The kernel tells of a thread's end after all that the thread did. */
long model_syscall(long number, long b)
{
    if (number == SYS_madvise) {
        return -EINVAL; /* tables are emptied word by word */
    }
    if (number != SYS_tgkill) {
        return model_nanosleep(NULL, NULL);
    }
    if (!model_is_dead((uint32_t)b)) {
        return 0;
    }
    join(&actors[running].current, &actors[b - 100].current);
    return -ESRCH;
}

void model_signal(unsigned flag)
{
    flags[flag] = new_view(&actors[running].current);
    for (unsigned i = 0; i < actor_count; i++) {
        if (actors[i].state == WAITING && actors[i].flag == flag) {
            actors[i].state = READY;
        }
    }
}

void model_await(unsigned flag)
{
    if (flags[flag] == NULL) {
        actors[running].state = WAITING;
        actors[running].flag = flag;
        leave();
    }
    join(&actors[running].current, flags[flag]);
}

/* One execution, and all. */

static void run_body(void)
{
    actors[running].body();
    actors[running].state = DONE;
    leave();
}

static void start_actors(void)
{
    for (actor_count = 0; actor_count < MODEL_ACTORS_MOST &&
                          current->actors[actor_count] != NULL;
         actor_count++) {
        struct actor *actor = &actors[actor_count];

        if (actor->stack == NULL) {
            actor->stack = malloc(STACK_BYTES);
        }
        memset(&actor->current, 0, sizeof(actor->current));
        memset(&actor->acquired, 0, sizeof(actor->acquired));
        actor->released = NULL;
        actor->state = READY;
        actor->body = current->actors[actor_count];
        getcontext(&actor->context);
        actor->context.uc_stack.ss_sp = actor->stack;
        actor->context.uc_stack.ss_size = STACK_BYTES;
        actor->context.uc_link = NULL;
        makecontext(&actor->context, run_body, 0);
    }
}

static int pick(void)
{
    unsigned ready[MODEL_ACTORS_MOST];
    unsigned count = 0;

    if (next_actor >= 0) {
        return next_actor;
    }
    for (unsigned i = 0; i < actor_count; i++) {
        if (actors[i].state == READY) {
            ready[count++] = i;
        }
    }
    return count == 0 ? -1 : (int)ready[choose(count)];
}

static void execute(const struct model_bounds *bounds)
{
    int actor;

    path.at = 0;
    left = *bounds;
    steps = 0;
    clock_ns = UINT64_C(4) << 20;
    was_killed = false;
    fault = NULL;
    memset(flags, 0, sizeof(flags));
    rewind_words();
    current->start();
    start_actors();
    while ((actor = pick()) >= 0) {
        next_actor = -1;
        running = actor;
        swapcontext(&scheduler, &actors[actor].context);
        running = -1;
    }
    if (fault == NULL && !current->holds()) {
        model_fail("what must hold does not");
    }
}

void model_set_memory(void *shared, size_t bytes)
{
    rewind_words();
    forget_words();
    memory = shared;
    memory_bytes = bytes;
    if (views == NULL) {
        views = malloc(VIEWS_BYTES);
    }
}

void model_explore(const struct model_scenario *scenario,
                   const struct model_bounds *bounds,
                   struct model_result *ret_result)
{
    struct model_result result = {0, true, NULL};
    bool again = true;

    current = scenario;
    path.depth = 0;
    while (again && result.fault == NULL) {
        if (bounds->executions != 0 &&
            result.executions == bounds->executions) {
            result.is_whole = false;
            break;
        }
        is_new_word_shared = false;
        execute(bounds);
        result.executions++;
        result.fault = fault;
        if (is_new_word_shared && fault == NULL) {
            path.depth = 0;
        } else if (fault == NULL) {
            again = next_path();
        }
    }
    *ret_result = result;
}

void model_trace(const struct model_scenario *scenario,
                 const struct model_bounds *bounds)
{
    current = scenario;
    is_tracing = true;
    execute(bounds);
    is_tracing = false;
}

struct model_place *model_places(void)
{
    return places;
}
