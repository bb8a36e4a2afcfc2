/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Phases whose memory is known, with a mark at the begin and the end of each
 * and a pause between them; prints what each line of it holds in each pause.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "seep/seep.h"

#define MIB (1UL << 20)
#define LOAD_COUNT 64
#define BURST_COUNT 200
#define BURST_BYTES (MIB / 4)
#define BUFFER_BYTES (30 * MIB)
#define LEAK_COUNT 100
#define LEAK_BYTES 100000UL
#define CHURN_BYTES 70000UL

static void *loaded[LOAD_COUNT];
static void *burst[BURST_COUNT];
static void *leaked[LEAK_COUNT];
static void *buffer;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static void load(void)
{
    for (int i = 0; i < LOAD_COUNT; i++) {
        loaded[i] = malloc(MIB);
        memset(loaded[i], 1, MIB);
    }
}

static void fill(void)
{
    for (int i = 0; i < BURST_COUNT; i++) {
        burst[i] = malloc(BURST_BYTES);
        memset(burst[i], 1, BURST_BYTES);
    }
}

/* Once: no series is kept of it. */
static void take_buffer(void)
{
    buffer = malloc(BUFFER_BYTES);
    memset(buffer, 1, BUFFER_BYTES);
}

static void empty(void)
{
    for (int i = 0; i < BURST_COUNT; i++) {
        free(burst[i]);
    }
    free(buffer);
}

static void churn(void)
{
    free(malloc(CHURN_BYTES));
}

static void leak(void)
{
    for (int i = 0; i < LEAK_COUNT; i++) {
        leaked[i] = malloc(LEAK_BYTES);
        churn();
        sleep_ms(5);
    }
}

/* What stands from the mark "@name done" to the next. */
static void pause_after(const char *name, bool load_is, bool burst_is,
                        bool leak_is)
{
    char mark[64];

    snprintf(mark, sizeof(mark), "%s done", name);
    seep_mark(mark);
    printf("%s load=%lu fill=%lu take_buffer=%lu leak=%lu\n", name,
           load_is ? LOAD_COUNT * MIB : 0,
           burst_is ? BURST_COUNT * BURST_BYTES : 0,
           burst_is ? BUFFER_BYTES : 0, leak_is ? LEAK_COUNT * LEAK_BYTES : 0);
    sleep_ms(500);
}

int main(void)
{
    sleep_ms(300);
    seep_mark("load");
    load();
    pause_after("load", true, false, false);
    seep_mark("fill");
    fill();
    take_buffer();
    pause_after("fill", true, true, false);
    seep_mark("empty");
    empty();
    pause_after("empty", true, false, false);
    seep_mark("leak");
    leak();
    pause_after("leak", true, false, true);
    printf("churn temporary=%lu\n", LEAK_COUNT * CHURN_BYTES);
    fflush(stdout);
    seep_mark("over");
    leaked[0] = malloc(1); /* a life ends with the last that is recorded */
    _Exit(0);
}
