/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A stateless model checker: actors are coroutines, every atomic operation on
 * shared memory is a point where another may go on, or everything ends; all
 * choices up to a bound are tried, one execution each.
 *
 * Memory is that of C11 by views (Kang et al. 2017, without promises): a word
 * is the list of what was stored in it, an actor reads any of it that is not
 * older than what it has seen, and an acquire that reads what a release stored
 * sees what the releasing actor had seen. What this leaves out is in README.md.
 *
 * Invariant: an execution is determined by its choices alone.
 */
#ifndef SEEP_TESTS_MODEL_ENGINE_H
#define SEEP_TESTS_MODEL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_ACTORS_MOST 4
#define MODEL_FLAGS 8

struct model_place;

enum model_kill {
    MODEL_KILL_NONE,
    MODEL_KILL_PROCESS, /* everybody, between any two stores of anybody */
    MODEL_KILL_FIRST,   /* the first actor, alone */
};

struct model_bounds {
    unsigned preemptions; /* an actor that could go on does not */
    unsigned stale;       /* reads of what is not the newest */
    uint64_t executions;  /* 0: all */
};

struct model_scenario {
    const char *name;
    const char *says; /* what is asserted, as a sentence */
    void (*start)(void);
    void (*actors[MODEL_ACTORS_MOST])(void);
    enum model_kill kill;
    struct model_bounds bounds; /* of a short run */
    bool (*holds)(void);        /* after each execution */
};

struct model_result {
    uint64_t executions;
    bool is_whole;     /* all within the bounds were tried */
    const char *fault; /* NULL: none */
};

/** What is shared: this memory, and the statics of the program. */
void model_set_memory(void *memory, size_t bytes);

void model_explore(const struct model_scenario *scenario,
                   const struct model_bounds *bounds,
                   struct model_result *ret_result);

/** Print each step of the execution that failed last. */
void model_trace(const struct model_scenario *scenario,
                 const struct model_bounds *bounds);

/** From actors and checks: this must not be. */
void model_fail(const char *fault);

/** Thread id of the actor that runs; of actor @i it is 100 + i. */
uint32_t model_self(void);
bool model_was_killed(void);
bool model_is_dead(uint32_t id);

/** The program's own order between its threads, as by a mutex. Who waits for
 * one that died ends. */
void model_signal(unsigned flag);
void model_await(unsigned flag);

/** What pread() would give of the shared memory, from @offset on. */
void model_read(void *to, uint64_t offset, size_t bytes);

/** All places that were reached; the first of a list. */
struct model_place *model_places(void);

#endif
