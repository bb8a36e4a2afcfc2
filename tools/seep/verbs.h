/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * The verbs, in the order in which one comes to need them, and what they end
 * with. Each cmd_<verb>.c has its options, its help and its work; a new verb is
 * one file and one line here.
 */
#ifndef SEEP_TOOL_VERBS_H
#define SEEP_TOOL_VERBS_H

/** X(name, "summary") */
#define SEEP_VERBS(X)                                              \
    X(run, "run a command under seep and report when it ends")     \
    X(top, "the same live: processes, memory, call sites")         \
    X(report, "what grew, where, is it a leak, and now what")      \
    X(check, "hold recordings against limits, for CI")             \
    X(diff, "what grows now and did not before, and what is gone") \
    X(digest, "a line a site that grows, for a fleet's database")  \
    X(export, "flame graphs and profiles, for other tools")        \
    X(held, "who holds what a call site keeps")                    \
    X(metrics, "metrics for Prometheus, by HTTP or a file")        \
    X(probe, "ready for requests? one line, for Kubernetes")       \
    X(info, "what a recording holds, its losses, its cost")        \
    X(pack, "recordings with their names, to read anywhere")       \
    X(unpack, "the plain recordings of a pack")                    \
    X(env, "print the variables to put into a container")          \
    X(doctor, "what works here, what does not, what to do")

/** What a verb ends with, the answer for scripts: the numbers are documented
 * and never change. */
enum seep_exit {
    SEEP_EXIT_FINE = 0,
    SEEP_EXIT_FAILED = 1,
    SEEP_EXIT_USAGE = 2,
    SEEP_EXIT_OVER_LIMIT = 3,
    SEEP_EXIT_INSUFFICIENT = 4,
    SEEP_EXIT_CANNOT_RUN = 126,
    SEEP_EXIT_NOT_FOUND = 127,
    SEEP_EXIT_SIGNAL = 128, /* plus the signal */
};

/** @argv[0] is the verb; @return the exit code. */
#define SEEP_VERB_DECLARE(name, summary) \
    int seep_cmd_##name(int argc, char **argv);
SEEP_VERBS(SEEP_VERB_DECLARE)
#undef SEEP_VERB_DECLARE

#endif
