/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The life of a recording in its process: when it begins, when it ends, and
 * what a fork, a jump or a seccomp does to it.
 *
 * Invariant: at most one thread creates a recording; the state only goes
 * forward, but for a forked child, which is armed anew.
 */
#ifndef SEEP_PRELOAD_LIFE_H
#define SEEP_PRELOAD_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "format/view.h"

enum seep_life_state {
    SEEP_LIFE_OFF,      /* before the constructor */
    SEEP_LIFE_WAITING,  /* a child of a fork, which may end at once */
    SEEP_LIFE_ARMED,    /* a recording begins when there is something */
    SEEP_LIFE_STARTING, /* one thread is creating it */
    SEEP_LIFE_ON,
    SEEP_LIFE_DONE /* nothing more will be recorded */
};

enum seep_life_state seep_life_state(void);

/** Has a child waited long enough? */
bool seep_life_has_waited(void);

/** While it waited it has allocated @bytes more. */
void seep_life_waited(uint64_t bytes);

/** Is there something to record, or may there be? */
static inline bool seep_life_is_open(void)
{
    enum seep_life_state state = seep_life_state();

    return state != SEEP_LIFE_OFF && state != SEEP_LIFE_DONE &&
           (state != SEEP_LIFE_WAITING || seep_life_has_waited());
}

/** From the constructor: what comes next. */
void seep_life_arm(bool is_exact);
void seep_life_disarm(void);

/** The recording if there is one and its run is not over, else NULL. */
const struct seep_view *seep_life_current(void);

/** The same, begun now if it is time to. Inside the guard only. */
const struct seep_view *seep_life_recording(void);

/** Events that other threads had while the recording was being created, since
 * the last call. */
uint64_t seep_life_take_missed(void);

/**
 * Have @child called in the child of every fork that the C library makes.
 *
 * @return 0, or not if that cannot be had
 */
int seep_life_at_fork(void (*child)(void));

/**
 * The constructor's first act: which system calls would an inherited filter
 * kill this process for? They are not made from here on (base/syscall.h).
 *
 * @return NULL; why nothing can be recorded: then hardly any is made
 */
const char *seep_filter_settle(char *const *environment);

/** The process restricts itself: no system call of ours from here on. */
void seep_life_restrict(void);
bool seep_life_is_restricted(void);

/** Who is inside of a hook is counted from now on: there is one thread, and it
 * is in none. */
void seep_life_count(void);

/**
 * The program needs the memory that the recording takes, which ends with that.
 * May wait, 20 ms, for those that are inside.
 *
 * @return it was given back
 */
bool seep_life_close(void);

/** A recording that was closed is told of one more allocation that failed. */
void seep_life_count_failed(uint64_t size_bytes);

/** exit() was called: nothing of the end has happened yet. */
void seep_life_exiting(void);

/** At exit: one flag, if this is still the recorded process. */
void seep_life_exit(void);

/*
 * A thread is inside seep at most once.
 *
 * Invariant: an entry from a deeper frame (a signal handler's) passes through
 * and is counted; an entry from a shallower one knows that the earlier hook was
 * left by a jump, and cleans up after it.
 */

/** Of the function that this stands in. */
#define SEEP_GUARD_FRAME ((uintptr_t)__builtin_frame_address(0))

/** @param frame  of the hook. @return NULL if this entry has to pass through */
struct seep_thread *seep_guard_enter(uintptr_t frame);

void seep_guard_leave(struct seep_thread *thread);

/**
 * The recording, begun now if it is time to, inside of the guard. A child of a
 * fork waits no longer: who comes here has more to tell than a sample.
 *
 * @return NULL: there is none, and the guard is left already
 */
const struct seep_view *
seep_guard_enter_recording(uintptr_t frame, struct seep_thread **ret_thread);

/*
 * SEEP_VERBOSE=1: one line on stderr, where the recording goes or why there is
 * none. Without it nothing of ours is ever written there.
 *
 * Invariant: at most one line a process, by one write to what stderr was at the
 * start; never a signal, never a wait.
 */

/** It was created, with @header; or refused with @error, a negative errno. */
void seep_verbose_created(int error, const struct seep_rec_header *header);
/** Nothing will be recorded. */
void seep_verbose_inert(enum seep_inert_reason reason);

#endif
