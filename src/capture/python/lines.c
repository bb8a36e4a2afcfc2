/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Line tables: co_lnotab to 3.9, co_linetable of 3.10, location tables from
 * 3.11 on.
 *
 * Invariant: a table is read in small pieces, and what is no table in step is
 * found out; reading past the end gives 0 and sets `failed`. A word of the
 * cache holds both what is asked and the answer, so no reader sees one without
 * the other.
 */
#include <stdatomic.h>

#include "base/hash.h"
#include "base/word.h"
#include "capture/python/interpreter.h"

#define PIECE_BYTES 64U
#define CACHE_SLOTS (UINT32_C(1) << 13)
#define LINE_BITS 24U
#define LINE_MASK ((UINT64_C(1) << LINE_BITS) - 1)

static _Atomic uint64_t cache[CACHE_SLOTS]; /* hash above, line + 1 below */

struct table {
    struct seep_python_memory *memory;
    uintptr_t at;      /* of the next piece */
    size_t left_bytes; /* from there on */
    uint32_t used;
    uint32_t filled;
    bool failed;
    uint8_t piece[PIECE_BYTES];
};

/* One run of instructions with one line. */
struct run {
    int64_t end; /* first byte behind it */
    int64_t line;
    bool has_line;
};

static bool is_empty(const struct table *table)
{
    return table->used == table->filled && table->left_bytes == 0;
}

static uint8_t next(struct table *table)
{
    if (table->used == table->filled) {
        size_t bytes =
            table->left_bytes < PIECE_BYTES ? table->left_bytes : PIECE_BYTES;

        if (bytes == 0 ||
            !seep_python_read(table->memory, table->piece, table->at, bytes)) {
            table->failed = true;
            table->left_bytes = 0;
            return 0;
        }
        table->at += bytes;
        table->left_bytes -= bytes;
        table->used = 0;
        table->filled = (uint32_t)bytes;
    }
    return table->piece[table->used++];
}

static uint32_t next_unsigned(struct table *table)
{
    uint32_t value = 0;
    uint8_t byte;
    unsigned int shift = 0;

    do {
        byte = next(table);
        if (shift < 32) {
            value |= (uint32_t)(byte & 63) << shift;
        }
        shift += 6;
    } while ((byte & 64) != 0 && !table->failed);
    return value;
}

static int64_t next_signed(struct table *table)
{
    uint32_t value = next_unsigned(table);

    return (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int next_delta(struct table *table)
{
    return (next(table) ^ 0x80) - 0x80;
}

/* 3.11 and later: an entry's first byte has bit 7, a kind, a length. */
static void step_location(struct table *table, struct run *run)
{
    uint8_t first = next(table);
    unsigned int kind = first >> 3 & 15;

    if ((first & 128) == 0) {
        table->failed = true;
        return;
    }
    run->end += ((first & 7) + 1) * 2;
    run->has_line = kind != 15;
    switch (kind) {
    case 15:
        break;
    case 14: /* line, end line, column, end column */
        run->line += next_signed(table);
        next_unsigned(table);
        next_unsigned(table);
        next_unsigned(table);
        break;
    case 13:
        run->line += next_signed(table);
        break;
    case 10:
    case 11:
    case 12:
        run->line += kind - 10;
        next(table);
        next(table);
        break;
    default:
        next(table);
        break;
    }
}

/* 3.10: pairs of bytes and a line delta, of which -128 means no line. */
static void step_delta(struct table *table, struct run *run)
{
    int delta;

    run->end += next(table);
    delta = next_delta(table);
    run->has_line = delta != -128;
    run->line += run->has_line ? delta : 0;
}

/* To 3.9: the delta of a pair is that of the instructions behind it. The run
 * ends where the next pair begins to count; the last one has no end. */
static void step_lnotab(struct table *table, struct run *run,
                        int64_t *pending_line)
{
    run->line = *pending_line;
    run->has_line = true;
    if (is_empty(table)) {
        run->end = INT64_MAX;
        return;
    }
    run->end += next(table);
    *pending_line = run->line + next_delta(table);
}

static void step(const struct seep_python *python, struct table *table,
                 struct run *run, int64_t *pending_line)
{
    if (python->offsets.minor >= 11) {
        step_location(table, run);
    } else if (python->offsets.minor == 10) {
        step_delta(table, run);
    } else {
        step_lnotab(table, run, pending_line);
    }
}

static void begin(struct table *table, struct seep_python_memory *memory,
                  const struct seep_python_identity *identity)
{
    table->memory = memory;
    table->at = identity->lines + SEEP_PYTHON_BYTES_DATA;
    table->left_bytes = identity->lines_bytes;
    table->used = 0;
    table->filled = 0;
    table->failed = false;
}

bool seep_python_line(const struct seep_python *python,
                      struct seep_python_memory *memory,
                      const struct seep_python_identity *identity,
                      int32_t instruction, int32_t *ret_line)
{
    struct table table;
    struct run run = {.line = identity->first_line};
    int64_t pending_line = identity->first_line;

    if (instruction < 0) {
        *ret_line = (int32_t)identity->first_line;
        return true;
    }
    begin(&table, memory, identity);
    while (run.end <= instruction) {
        if (is_empty(&table) && python->offsets.minor >= 10) {
            run.has_line = false;
            break;
        }
        step(python, &table, &run, &pending_line);
        if (table.failed) {
            return false;
        }
    }
    *ret_line = run.has_line && run.line > 0 && run.line < INT32_MAX
                    ? (int32_t)run.line
                    : 0;
    return true;
}

bool seep_python_line_cached(const struct seep_python *python,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int32_t instruction, int32_t *ret_line)
{
    uint64_t hash = seep_hash_mix(identity->hash ^ (uint32_t)instruction);
    _Atomic uint64_t *slot = &cache[hash % CACHE_SLOTS];
    uint64_t seen = seep_word_load(slot);

    if ((seen ^ hash) >> LINE_BITS == 0 && (seen & LINE_MASK) != 0) {
        *ret_line = (int32_t)(seen & LINE_MASK) - 1;
        return true;
    }
    if (!seep_python_line(python, memory, identity, instruction, ret_line)) {
        return false;
    }
    if ((uint64_t)*ret_line < LINE_MASK) {
        seep_word_store(slot, (hash & ~LINE_MASK) | ((uint64_t)*ret_line + 1));
    }
    return true;
}

bool seep_python_lines_check(const struct seep_python *python,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int64_t code_bytes)
{
    struct table table;
    struct run run = {.line = identity->first_line};
    int64_t pending_line = identity->first_line;

    begin(&table, memory, identity);
    while (!is_empty(&table)) {
        step(python, &table, &run, &pending_line);
        if (table.failed || run.end > code_bytes ||
            (run.has_line && (run.line < 0 || run.line > INT32_MAX))) {
            return false;
        }
    }
    return python->offsets.minor < 10 || run.end == code_bytes;
}
