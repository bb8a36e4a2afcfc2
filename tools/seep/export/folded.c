/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Folded stacks, as flamegraph.pl, speedscope, inferno and others read them: a
 * line a stack, frames from the outermost on with ; between, a blank, a weight.
 * The outermost is the space, and before it the process where there are many.
 *
 * Invariant: nothing that is of a recording ends a frame or a line, and a line
 * has no other number at its end than its weight.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "words/clean.h"
#include "words/words.h"

/* Takes @text. A # would begin a comment, ; the next frame. */
static int put(FILE *file, char *text)
{
    char *clean = text == NULL ? NULL : seep_clean_for_terminal(text);

    free(text);
    if (clean == NULL) {
        return -ENOMEM;
    }
    for (char *at = clean; *at != '\0'; at++) {
        if (*at == ';' || *at == '#') {
            *at = *at == ';' ? ':' : '_';
        }
    }
    fputs(*clean == '\0' ? "?" : clean, file);
    free(clean);
    return 0;
}

static int put_stack(struct seep_export *export,
                     const struct seep_report *report,
                     const struct seep_export_stack *stack)
{
    const struct seep_report_site *site = stack->site;
    int error = 0;

    if (export->process_count > 1) {
        error = put(export->file, seep_export_process(report));
        fputc(';', export->file);
    }
    fprintf(export->file, "[%s]", seep_words_space(site->space));
    for (size_t i = site->frame_count; error == 0 && i-- > 0;) {
        fputc(';', export->file);
        error = put(export->file, seep_export_frame(site->frames[i]));
    }
    fprintf(export->file, " %" PRId64 "\n", stack->weights[export->weight]);
    return error;
}

/* What weighs nothing would be nothing of a picture; what shrinks cannot be
 * drawn. */
int seep_folded_add(struct seep_export *export,
                    const struct seep_report *report)
{
    size_t count = seep_export_stack_count(export, report);
    struct seep_export_stack stack;
    int error = 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        seep_export_stack_at(export, report, i, &stack);
        if (stack.weights[export->weight] > 0) {
            error = put_stack(export, report, &stack);
        }
    }
    return error != 0 ? error : ferror(export->file) ? -EIO : 0;
}
