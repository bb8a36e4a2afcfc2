/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks that keep free memory apart: see pins.h.
 *
 * Invariant: a run of blocks in use counts if at least as much lies free on
 * both sides of it, half of each piece, as it takes itself; so no piece counts
 * for more than it is.
 */
#include "held/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT_S 20.0 /* of one look, where none is given */
#define RUN_BLOCKS_MOST 4096U
#define PAUSE_NS 100000000L /* between two walks: a request is over by then */

/* A walk over one arena after the other. */
struct course {
    struct seep_held_pins *pins;
    size_t capacity;
    uint64_t free_bytes;   /* of the piece that goes on */
    uint64_t before_bytes; /* of the last one that was large enough, */
    uint64_t run_bytes;    /* and in use since then */
    uint64_t run_count;
    size_t run_first; /* among the pins, which it may become */
    bool is_full;     /* blocks of the run were not kept */
    int error;
};

static bool has_room(struct course *course)
{
    struct seep_held_pins *pins = course->pins;
    size_t wanted = course->capacity == 0 ? 1024 : 2 * course->capacity;
    struct seep_held_pin *items;

    if (pins->count < course->capacity) {
        return true;
    }
    if (wanted > SEEP_HELD_PINS_MOST) {
        return false;
    }
    items = realloc(pins->items, wanted * sizeof(*items));
    if (items == NULL) {
        course->error = -ENOMEM;
        return false;
    }
    pins->items = items;
    course->capacity = wanted;
    return true;
}

/* A run that is too long, or too large, is left out. */
static void add_to_run(struct course *course, uint64_t start, uint64_t bytes)
{
    struct seep_held_pins *pins = course->pins;

    course->run_bytes += bytes;
    course->run_count++;
    course->is_full |= course->run_count > RUN_BLOCKS_MOST;
    if (!course->is_full && has_room(course)) {
        pins->items[pins->count++] = (struct seep_held_pin){start, bytes, 0};
    }
}

/* A run ends at a piece of so many bytes, of which half is on its side; 0: at
 * the end of an arena. */
static void end_run(struct course *course, uint64_t after_bytes)
{
    struct seep_held_pins *pins = course->pins;
    double apart = ((double)course->before_bytes + (double)after_bytes) / 2;

    if (course->run_count > 0 && !course->is_full &&
        apart >= (double)course->run_bytes && apart > 0) {
        pins->pin_count += course->run_count;
        pins->pin_bytes += course->run_bytes;
        pins->apart_bytes += apart;
        for (size_t i = course->run_first; i < pins->count; i++) {
            pins->items[i].apart_bytes = apart / (double)course->run_count;
        }
    } else {
        pins->count = course->run_first;
    }
    course->run_first = pins->count;
    course->run_bytes = 0;
    course->run_count = 0;
    course->is_full = false;
    course->before_bytes = after_bytes;
}

/* What is free next to each other is one piece, whichever list it is in. */
static void end_piece(struct course *course)
{
    if (course->free_bytes >= SEEP_HELD_PIECE_BYTES) {
        course->pins->piece_count++;
        course->pins->piece_bytes += course->free_bytes;
        end_run(course, course->free_bytes);
    }
    course->free_bytes = 0;
}

static void see_chunk(void *context, uint64_t start, uint64_t end, bool is_used)
{
    struct course *course = context;

    if (!is_used) {
        course->free_bytes += end - start;
        return;
    }
    end_piece(course);
    add_to_run(course, start, end - start);
}

int seep_held_pins_walk(const struct seep_held_blocks *blocks,
                        struct seep_held_pins *ret_pins)
{
    struct course course = {.pins = ret_pins};

    for (size_t i = 0; i < blocks->arena_count && course.error == 0; i++) {
        seep_held_blocks_each(blocks, &blocks->arenas[i], see_chunk, &course);
        end_piece(&course);
        end_run(&course, 0);
    }
    ret_pins->was_late = seep_held_memory_is_late(blocks->memory);
    return course.error;
}

void seep_held_pins_fini(struct seep_held_pins *pins)
{
    free(pins->items);
    *pins = (struct seep_held_pins){0};
}

/* What @pins has and @before had not, or with another size, was made or moved
 * meanwhile: it need not stay. */
static void keep_common(struct seep_held_pins *pins,
                        const struct seep_held_pins *before)
{
    size_t count = 0;
    size_t k = 0;

    for (size_t i = 0; i < pins->count; i++) {
        const struct seep_held_pin *pin = &pins->items[i];

        while (k < before->count && before->items[k].address < pin->address) {
            k++;
        }
        if (k < before->count && before->items[k].address == pin->address &&
            before->items[k].bytes == pin->bytes) {
            pins->items[count++] = *pin;
        } else {
            pins->pin_count--;
            pins->pin_bytes -= pin->bytes;
            pins->apart_bytes -= pin->apart_bytes;
        }
    }
    pins->count = count;
}

static int look(const struct seep_held_question *question,
                struct seep_held_memory *memory,
                struct seep_held_blocks *blocks)
{
    const struct seep_held_source source = {
        .pid = question->pid,
        .core_path = question->core_path,
        .memory_fd = question->memory_fd,
        .recording_inode = question->recording_inode,
    };
    int error = seep_held_memory_open(&source, memory);

    if (error < 0) {
        return error;
    }
    seep_held_memory_allow(
        memory, question->cpu_limit_s > 0 ? question->cpu_limit_s : LIMIT_S);
    *blocks = (struct seep_held_blocks){.memory = memory};
    error = seep_held_blocks_init(blocks);
    if (error < 0) {
        seep_held_blocks_fini(blocks);
        seep_held_memory_close(memory);
    }
    return error;
}

static int walk_once(const struct seep_held_question *question,
                     struct seep_held_pins *pins)
{
    struct seep_held_memory memory;
    struct seep_held_blocks blocks;
    int error = look(question, &memory, &blocks);

    if (error == 0) {
        error = seep_held_pins_walk(&blocks, pins);
        seep_held_blocks_fini(&blocks);
        seep_held_memory_close(&memory);
    }
    return error;
}

static double cpu_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int seep_held_pins_find(const struct seep_held_question *question,
                        struct seep_held_pins *ret_pins)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct seep_held_pins before = {0};
    struct seep_held_pins pins = {0};
    double began_s = cpu_now();
    int error = walk_once(question, &pins);

    if (error == 0 && question->core_path == NULL) {
        before = pins;
        pins = (struct seep_held_pins){0};
        nanosleep(&pause, NULL);
        error = walk_once(question, &pins);
        if (error == 0) {
            keep_common(&pins, &before);
        }
    }
    seep_held_pins_fini(&before);
    if (error < 0) {
        seep_held_pins_fini(&pins);
        return error;
    }
    pins.cpu_s = cpu_now() - began_s;
    *ret_pins = pins;
    return 0;
}

void seep_held_pins_still_live(void *context,
                               const struct seep_held_block *blocks,
                               size_t count, bool *ret_live)
{
    struct seep_held_memory memory;
    struct seep_held_blocks found;

    if (look(context, &memory, &found) < 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t start = 0;
        uint64_t end = 0;

        ret_live[i] = seep_held_chunk_at(&found, blocks[i].address, &start,
                                         &end) == SEEP_HELD_CHUNK &&
                      start == blocks[i].address;
    }
    seep_held_blocks_fini(&found);
    seep_held_memory_close(&memory);
}
