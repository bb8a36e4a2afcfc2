/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sparklines. Invariant: a text has as many columns as cells were asked for.
 */
#include "spark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 8
#define STEP_BYTES 3 /* of U+2581 to U+2588 in UTF-8 */
#define CELLS_MOST 512

char *seep_spark(const double *values, size_t count)
{
    char *text = malloc(count * STEP_BYTES + 1);
    char *out = text;
    double most = 0;

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        most = isfinite(values[i]) && values[i] > most ? values[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) || values[i] < 0) {
            *out++ = ' ';
            continue;
        }
        double share = most > 0 ? values[i] / most : 0;
        int step = (int)ceil(share * STEPS);
        step = step < 1 ? 1 : step > STEPS ? STEPS : step;
        *out++ = '\xe2';
        *out++ = '\x96';
        *out++ = (char)(0x80 + step);
    }
    *out = '\0';
    return text;
}

/* Cells without a value of their own are as the one before. */
static void fill_gaps(double *cells, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (isnan(cells[i])) {
            cells[i] = cells[i - 1];
        }
    }
}

/* The cell in which @at_s lies, or @count if in none. */
static size_t cell_of(double at_s, double duration_s, size_t count)
{
    double at = at_s / duration_s * (double)count;

    if (!(at >= 0) || !(duration_s > 0)) {
        return count;
    }
    return at < (double)count ? (size_t)at : count - 1;
}

static void clear(double *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cells[i] = NAN;
    }
}

char *seep_spark_site(const struct seep_report_site *site, double duration_s,
                      size_t cells)
{
    double values[CELLS_MOST];

    cells = cells > CELLS_MOST ? CELLS_MOST : cells;
    clear(values, cells);
    for (size_t i = 0; i < site->point_count && cells > 0; i++) {
        const struct seep_report_point *point = &site->series[i];
        size_t cell =
            cell_of(point->start_s + point->width_s / 2, duration_s, cells);
        if (cell < cells) {
            values[cell] = (double)point->live_bytes;
        }
    }
    fill_gaps(values, cells);
    return seep_spark(values, cells);
}

char *seep_spark_held(const struct seep_report *report, size_t cells)
{
    const struct seep_report_memory *memory = &report->memory;
    double values[CELLS_MOST];

    cells = cells > CELLS_MOST ? CELLS_MOST : cells;
    clear(values, cells);
    for (size_t i = 0; i < memory->moment_count && cells > 0; i++) {
        const struct seep_report_moment *moment = &memory->moments[i];
        size_t cell = cell_of(moment->t_s, report->duration_s, cells);
        if (cell < cells && moment->held_bytes >= 0) {
            values[cell] = moment->held_bytes;
        }
    }
    fill_gaps(values, cells);
    return seep_spark(values, cells);
}
