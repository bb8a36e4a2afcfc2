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

#include "base/thread.h"
#include "format/view.h"

enum seep_life_state {
    SEEP_LIFE_OFF,      /* before the constructor */
    SEEP_LIFE_ARMED,    /* a recording begins when there is something */
    SEEP_LIFE_STARTING, /* one thread is creating it */
    SEEP_LIFE_ON,
    SEEP_LIFE_DONE /* nothing more will be recorded */
};

enum seep_life_state seep_life_state(void);

/** From the constructor: what comes next. */
void seep_life_arm(void);
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

/** This is the child of a fork: nothing of the parent's may be touched. */
void seep_life_forked(struct seep_thread *thread);

/** The hook that @thread was in is gone by a jump. */
void seep_life_abandoned(struct seep_thread *thread);

/** The process restricts itself: no system call of ours from here on. */
void seep_life_restrict(void);
bool seep_life_is_restricted(void);

/** At exit: one flag, if this is still the recorded process. */
void seep_life_exit(void);

#endif
