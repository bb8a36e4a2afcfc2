/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that profilers of memory are compared by, each at another's expense.
 *
 *     workloads pair|deep|churn|server AMOUNT OUT
 *
 * pair    malloc and free of one block, 1 frame deep
 * deep    20,000 live blocks of 1,000 stacks, 40 frames deep
 * churn   4 threads, which free what another one allocated
 * server  2 threads that answer requests: headers, a body, a reply that grows,
 *         sessions of which 1,000 are kept
 *
 * Writes to OUT what AMOUNT of it took: nanoseconds by the clock, nanoseconds
 * of the process, and the most KiB that it had.
 * Invariant: what is timed calls the allocator and nothing else of the system.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREAD_LIMIT 4

static double now_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/*
 * pair
 */

static void *run_pairs(void *argument)
{
    long count = *(const long *)argument;

    for (long i = 0; i < count; i++) {
        free(malloc(16 + (size_t)(i * 7919 % 240)));
    }
    return NULL;
}

/*
 * deep: which of two functions calls is a bit of the stack's number.
 */

#define DEEP_FRAMES 40U
#define DEEP_STACKS 1000U
#define DEEP_LIVE 20000U

static void *deep_left(unsigned stack, unsigned frames);
static void *deep_right(unsigned stack, unsigned frames);

static void *descend(unsigned stack, unsigned frames)
{
    if (frames == 0) {
        return malloc(16 + stack % 240);
    }
    return (stack & 1) != 0 ? deep_left(stack >> 1, frames - 1)
                            : deep_right(stack >> 1, frames - 1);
}

static void *deep_left(unsigned stack, unsigned frames)
{
    void *volatile block = descend(stack, frames);
    return block;
}

static void *deep_right(unsigned stack, unsigned frames)
{
    void *volatile block = descend(stack, frames);
    return block;
}

static void *run_deep(void *argument)
{
    static void *live[DEEP_LIVE];
    long count = *(const long *)argument;
    uint32_t random = 1;

    for (long i = 0; i < count; i++) {
        void **place = &live[next_random(&random) % DEEP_LIVE];

        free(*place);
        /* two frames a call: one that is chosen, and descend() */
        *place =
            descend(next_random(&random) % DEEP_STACKS, DEEP_FRAMES / 2 - 1);
    }
    for (unsigned i = 0; i < DEEP_LIVE; i++) {
        free(live[i]);
    }
    return NULL;
}

/*
 * churn: whoever puts a block into a place frees what lay there.
 */

#define PLACES 4096U

static void *run_churn(void *argument)
{
    static _Atomic(void *) places[PLACES];
    long count = *(const long *)argument / THREAD_LIMIT;
    uint32_t random = (uint32_t)(uintptr_t)&random;

    for (long i = 0; i < count; i++) {
        void *block = malloc(16 + next_random(&random) % 240);
        _Atomic(void *) *place = &places[next_random(&random) % PLACES];

        /* acq_rel: with the exchange of who put it there */
        free(atomic_exchange_explicit(place, block, memory_order_acq_rel));
    }
    return NULL;
}

/*
 * server
 */

#define HEADERS 24U
#define SESSIONS 1000U

struct request {
    char *names[HEADERS];
    char *values[HEADERS];
    char *body;
};

struct session {
    char *user;
    char *state;
};

static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

static void parse_headers(struct request *request, uint32_t *random)
{
    static const char text[] =
        "accept-encoding: gzip, deflate, br; q=0.9, text/html, application";

    for (unsigned i = 0; i < HEADERS; i++) {
        size_t length = 4 + next_random(random) % 12;

        request->names[i] = copy_text(text, length);
        request->values[i] = copy_text(text + length, 2 * length);
    }
}

static char *render(const struct request *request, size_t *ret_length)
{
    size_t room = 64;
    size_t length = 0;
    char *reply = malloc(room);

    for (unsigned i = 0; i < HEADERS && reply != NULL; i++) {
        size_t more = strlen(request->values[i]);

        while (length + more >= room) {
            room *= 2;
            reply = realloc(reply, room);
        }
        memcpy(reply + length, request->values[i], more);
        length += more;
    }
    *ret_length = length;
    return reply;
}

static void keep_session(struct session *sessions, uint32_t *random)
{
    struct session *session = &sessions[next_random(random) % SESSIONS];

    free(session->user);
    free(session->state);
    session->user = copy_text("somebody@example.org", 20);
    session->state = calloc(1, 64 + next_random(random) % 192);
}

static void answer(struct session *sessions, uint32_t *random)
{
    struct request request;
    size_t length;
    char *reply;

    parse_headers(&request, random);
    request.body = malloc(4096);
    if (request.body != NULL) {
        memset(request.body, 'x', 4096);
    }
    keep_session(sessions, random);
    reply = render(&request, &length);
    free(reply);
    free(request.body);
    for (unsigned i = 0; i < HEADERS; i++) {
        free(request.names[i]);
        free(request.values[i]);
    }
}

static void *run_server(void *argument)
{
    long count = *(const long *)argument / 2;
    struct session *sessions = calloc(SESSIONS, sizeof(*sessions));
    uint32_t random = 7;

    for (long i = 0; i < count && sessions != NULL; i++) {
        answer(sessions, &random);
    }
    for (unsigned i = 0; i < SESSIONS && sessions != NULL; i++) {
        free(sessions[i].user);
        free(sessions[i].state);
    }
    free(sessions);
    return NULL;
}

static const struct {
    const char *name;
    void *(*run)(void *amount);
    unsigned thread_count;
} kinds[] = {
    {"pair", run_pairs, 1},
    {"deep", run_deep, 1},
    {"churn", run_churn, 4},
    {"server", run_server, 2},
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static int run_threads(unsigned kind, long *amount)
{
    pthread_t threads[THREAD_LIMIT];

    for (unsigned i = 0; i < kinds[kind].thread_count; i++) {
        if (pthread_create(&threads[i], NULL, kinds[kind].run, amount) != 0) {
            return 3;
        }
    }
    for (unsigned i = 0; i < kinds[kind].thread_count; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}

/* Of this program: what getrusage() tells is also of who started it. */
static long most_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = atol(line + 6);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

static int measure(unsigned kind, long amount, const char *path)
{
    double wall = now_ns(CLOCK_MONOTONIC);
    double cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    int code = run_threads(kind, &amount);
    FILE *file;

    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now_ns(CLOCK_MONOTONIC) - wall;
    file = code == 0 ? fopen(path, "w") : NULL;
    if (file == NULL) {
        return 3;
    }
    fprintf(file, "%.0f %.0f %ld\n", wall, cpu, most_kib());
    return fclose(file) == 0 ? 0 : 3;
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 4) {
        return 2;
    }
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        if (strcmp(arguments[1], kinds[i].name) == 0) {
            return measure(i, atol(arguments[2]), arguments[3]);
        }
    }
    return 2;
}
