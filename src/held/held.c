/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A question from its beginning to its answer: see held.h.
 *
 * Invariant: a process that was stopped goes on, whatever becomes of the
 * reader: a child of its own sees to that.
 */
#include "held/held.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "held/search.h"
#include "reader/process/cgroup.h"

#define TRIES_MOST 3U
#define LIMIT_LEAST_S 10.0
#define LIMIT_S_A_GIB 4.0 /* a level of dense objects takes 0.4 */
#define GIB 1073741824.0
#define WORDS_SHARE 4 /* of the time, for words of what was found till then */

static double now_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Have all threads of it stopped? One that the kernel has not come to yet moves
 * on, and tells nobody where its stack is. Who was stopped by somebody else
 * stays so: it does not move, either.
 */
static bool is_stopped(pid_t pid)
{
    char path[48];
    DIR *threads;
    const struct dirent *entry;
    bool is_any = false;
    bool is_all = true;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads != NULL && is_all && (entry = readdir(threads)) != NULL) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        struct seep_target target;

        if (thread > 0 && seep_target_read(thread, &target) == 0 &&
            seep_target_is_alive(&target)) {
            is_any = true;
            is_all = target.state == 'T' || target.state == 't';
        }
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return is_any && is_all;
}

/* What was not read of it any more would look as if nobody held anything. */
static bool is_gone(const struct seep_held_question *question)
{
    struct seep_target target;

    return question->core_path == NULL &&
           (seep_target_read(question->pid, &target) < 0 ||
            target.state == 'Z' || target.state == 'X');
}

/* Stop @pid; the child lets it go on after @milliseconds at the latest.
 * @return the child's id, or negative errno */
static pid_t freeze(pid_t pid, uint32_t milliseconds)
{
    pid_t child = fork();

    if (child < 0) {
        return -errno;
    }
    if (child == 0) {
        struct timespec time = {milliseconds / 1000,
                                (long)(milliseconds % 1000) * 1000000};

        /* What ends the reader's group (an interrupt, timeout(1)) must not end
         * who lets the process go on. */
        setsid();
        kill(pid, SIGSTOP);
        nanosleep(&time, NULL);
        kill(pid, SIGCONT);
        _exit(0);
    }
    return child;
}

#define STOP_WAITS_MOST 500U

/* What is read before it has stopped moves. */
static void wait_for_stop(pid_t pid)
{
    static const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < STOP_WAITS_MOST && !is_stopped(pid); i++) {
        nanosleep(&pause, NULL);
    }
}

static void thaw(pid_t pid, pid_t child)
{
    kill(pid, SIGCONT);
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    /* Where it stopped it once more before it was ended. */
    kill(pid, SIGCONT);
}

static void search_fini(struct seep_held_search *search)
{
    seep_held_resolve_fini(search);
    seep_held_graph_fini(search);
    seep_held_scan_fini(&search->scan);
    seep_held_scan_fini(&search->side);
    free(search->dropped);
    free(search->asked);
    free(search->part_ends);
    free(search->front);
    free(search->hops);
}

static size_t count_lost(const struct seep_held_search *search)
{
    size_t count = 0;

    for (size_t i = 0; i < search->asked_count; i++) {
        count += seep_held_is_lost(search, search->asked[i]) ||
                 search->nodes[search->asked[i]].is_below_lost;
    }
    return count;
}

static int search_init(struct seep_held_search *search,
                       const struct seep_held_question *question,
                       struct seep_held_memory *memory,
                       struct seep_store *store)
{
    int error;

    *search = (struct seep_held_search){
        .question = question,
        .memory = memory,
        .store = store,
    };
    error = seep_held_graph_init(search);
    return error == 0 ? seep_held_resolve_init(search) : error;
}

/* By what the process has, not by what it says it may have: that costs nothing
 * to say. */
static double limit_of(const struct seep_held_question *question,
                       const struct seep_held_memory *memory)
{
    double seconds = LIMIT_S_A_GIB * (double)memory->present_bytes / GIB;

    seconds = seconds > LIMIT_LEAST_S ? seconds : LIMIT_LEAST_S;
    return question->share_count > 1 ? seconds / question->share_count
                                     : seconds;
}

static bool are_most(const struct seep_held_search *search, size_t count)
{
    return 10 * count >= 8 * search->asked_count;
}

/* Need it not be asked again? Where pages were passed over that had pointed
 * elsewhere, what holds the blocks may have come there since: only a holder
 * that has a name will do. */
static bool is_known(struct seep_held_search *search, size_t named, size_t lost)
{
    /* A buffer that was elsewhere by the time that it was looked for has no
     * holder, and what once was in it leads far. */
    if (search->was_cut_short && !search->is_deep) {
        return true;
    }
    if (search->scan.has_passed_over) {
        return are_most(search,
                        seep_held_count_named(search, SEEP_HELD_RANK_FRAME));
    }
    /* Of what a rule does not know another try knows no more. */
    return are_most(search, named) || are_most(search, lost) ||
           are_most(search,
                    seep_held_count_nearly_named(search, SEEP_HELD_RANK_NAMED));
}

static int take_answer(struct seep_held_search *search,
                       struct seep_held_answer *answer)
{
    if (search->was_late) {
        seep_held_memory_allow(search->memory,
                               answer->cpu_limit_s / WORDS_SHARE);
    }
    answer->level_count = search->level_count;
    answer->was_cut_short = search->was_cut_short;
    answer->was_late = search->was_late;
    return seep_held_paths(search, answer);
}

/* Ask once more where most blocks have no name: it moved meanwhile. A try that
 * passed over pages does not count, and is not better than one that did not. */
static int ask_until_known(const struct seep_held_question *question,
                           struct seep_held_memory *memory,
                           struct seep_held_answer *answer)
{
    size_t best_known = 0;
    uint32_t tries_most = TRIES_MOST;
    bool is_passed_over = true; /* the answer that there is */
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < tries_most; i++) {
        struct seep_held_search search;
        size_t named = 0;
        size_t lost = 0;
        bool is_last = question->core_path != NULL;

        error = search_init(&search, question, memory, answer->store);
        search.scan.may_pass_over = i == 0;
        if (error == 0) {
            error = seep_held_search_run(&search);
        }
        if (error == 0) {
            named = seep_held_count_named(&search, SEEP_HELD_RANK_RUNTIME);
            if (!are_most(&search, named) && !search.scan.has_passed_over) {
                error = seep_held_find_lost(&search);
                lost = count_lost(&search);
            }
            is_last |= is_known(&search, named, lost);
            if (!are_most(&search, named) && is_gone(question)) {
                error = -ESRCH;
            }
        }
        if (error == 0 && named + lost + is_passed_over > best_known) {
            best_known = named + lost;
            is_passed_over = search.scan.has_passed_over;
            error = take_answer(&search, answer);
        }
        tries_most += search.scan.has_passed_over;
        answer->try_count++;
        search_fini(&search);
        if (is_last || error < 0) {
            break;
        }
        error = seep_held_memory_reload(memory);
    }
    return error;
}

static int ask(const struct seep_held_question *question,
               struct seep_held_answer *answer)
{
    const struct seep_held_source source = {
        .pid = question->pid,
        .core_path = question->core_path,
        .memory_fd = question->memory_fd,
        .recording_inode = question->recording_inode,
    };
    struct seep_held_memory memory;
    int error = seep_held_memory_open(&source, &memory);

    if (error < 0) {
        return error;
    }
    answer->cpu_limit_s = question->cpu_limit_s > 0
                              ? question->cpu_limit_s
                              : limit_of(question, &memory);
    seep_held_memory_allow(&memory, answer->cpu_limit_s);
    error = ask_until_known(question, &memory, answer);
    if (memory.stats.scan_count > 0) {
        answer->level_bytes = memory.stats.read_bytes / memory.stats.scan_count;
    }
    answer->swapped_bytes = memory.stats.swapped_bytes;
    answer->failed_bytes = memory.stats.failed_bytes;
    answer->missing_bytes = memory.missing_bytes;
    answer->other_file =
        memory.other_file == NULL
            ? NULL
            : seep_store_text(answer->store, memory.other_file);
    answer->nameless_path =
        memory.nameless_path == NULL
            ? NULL
            : seep_store_text(answer->store, memory.nameless_path);
    answer->nameless_error = memory.nameless_error;
    seep_held_memory_close(&memory);
    return error;
}

int seep_held_ask(const struct seep_held_question *question,
                  struct seep_held_answer **ret_answer)
{
    struct seep_held_answer *answer = calloc(1, sizeof(*answer));
    double start = now_of(CLOCK_MONOTONIC);
    double cpu = now_of(CLOCK_PROCESS_CPUTIME_ID);
    pid_t child = 0;
    int error;

    if (answer == NULL) {
        return -ENOMEM;
    }
    answer->store = calloc(1, sizeof(*answer->store));
    error = answer->store == NULL ? -ENOMEM : 0;
    if (error == 0 && question->freeze_ms > 0 && question->core_path == NULL &&
        !is_stopped(question->pid)) {
        error =
            seep_held_process_writes(question->pid, question->recording_inode);
        error = error < 0 ? error : error == 0 ? -EXDEV : 0;
        child = error < 0 ? 0 : freeze(question->pid, question->freeze_ms);
        error = child < 0 ? (int)child : error;
        if (error == 0) {
            wait_for_stop(question->pid);
        }
    }
    if (error == 0) {
        error = ask(question, answer);
    }
    if (child > 0) {
        double most = question->freeze_ms / 1e3;

        thaw(question->pid, child);
        answer->frozen_s = now_of(CLOCK_MONOTONIC) - start;
        answer->frozen_s = answer->frozen_s < most ? answer->frozen_s : most;
    }
    answer->elapsed_s = now_of(CLOCK_MONOTONIC) - start;
    answer->cpu_s = now_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (error < 0) {
        seep_held_close(answer);
        return error;
    }
    *ret_answer = answer;
    return 0;
}

void seep_held_close(struct seep_held_answer *answer)
{
    if (answer != NULL) {
        if (answer->store != NULL) {
            seep_store_fini(answer->store);
        }
        free(answer->store);
        free(answer);
    }
}
