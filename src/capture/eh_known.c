/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where stacks are switched, and the kernel's trampoline.
 *
 * Invariant: as in eh_known.h; code is read only inside a segment of an object
 * that the walk stands in.
 */
#include "capture/eh_known.h"

#include <string.h>

#include "base/compiler.h"
#include "capture/eh_rule.h"
#include "capture/elf_symbols.h"
#include "capture/object_map.h"

static void no_caller(struct seep_eh_row *row)
{
    *row = (struct seep_eh_row){0};
    row->places[seep_eh_place_index(SEEP_EH_RETURN)].kind = SEEP_EH_UNDEFINED;
}

/* No call returns to where a function begins, with none before it: such an
 * address was put there for the first function of a coroutine to return to. */
static bool is_put_there(uintptr_t back, struct seep_eh_entry *entry)
{
    return seep_rule_entry(back, entry) == SEEP_CUT_NONE &&
           entry->pc_low == back;
}

#if defined(__aarch64__)
/* The kernel's trampoline has no rule since Linux 5.8, because its row cannot
 * tell the pc: it is known by its code, mov x8, 139; svc 0. */
static bool is_trampoline(uintptr_t back)
{
    static const uint32_t code[] = {0xd2801168, 0xd4000001};
    struct seep_elf_image image;

    return back % sizeof(code[0]) == 0 && seep_object_map_find(back, &image) &&
           seep_elf_is_code(&image, back) &&
           seep_elf_is_code(&image, back + sizeof(code) - 1) &&
           memcmp((const void *)back, code, sizeof(code)) == 0;
}
#endif

SEEP_COLD bool seep_known_row(uintptr_t pc, struct seep_eh_entry *scratch,
                              struct seep_eh_row *ret_row,
                              bool *ret_signal_frame)
{
    if (is_put_there(pc + 1, scratch)) {
        no_caller(ret_row);
        *ret_signal_frame = false;
        return true;
    }
#if defined(__aarch64__)
    if (is_trampoline(pc + 1)) {
        *ret_row = (struct seep_eh_row){
            .cfa = {.kind = SEEP_EH_CFA_REGISTER, .base = SEEP_EH_FP}};
        *ret_signal_frame = true;
        return true;
    }
#endif
    return false;
}

/* greenlet 2 and 3 by what the first C++ function on a greenlet's stack is
 * called there. */
static const char *const greenlet_names[] = {
    "_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenlet"
    "I9_greenletXadL_ZNS1_15GreenletCheckerEPvEEEERNS1_14OwnedReference"
    "I7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE",
    "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object",
};

static bool is_greenlet(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    return slash != NULL && strncmp(slash, "/_greenlet.", 11) == 0;
}

/* A greenlet's frames are put back on the thread's stack wherever it goes on.
 * Where its first function would return to is of who switched to it first;
 * what lies there now is of who did last. */
SEEP_COLD bool seep_known_end(const struct seep_eh_entry *entry,
                              struct seep_eh_row *ret_row)
{
    struct seep_elf_image image;
    struct seep_elf_symbols symbols;
    uintptr_t address = 0;
    size_t bytes;

    if (!seep_object_map_find(entry->pc_low, &image) ||
        !is_greenlet(image.path) || !seep_elf_symbols_open(&image, &symbols)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(greenlet_names) / sizeof(greenlet_names[0]);
         i++) {
        if (seep_elf_symbols_find(&symbols, greenlet_names[i], &address,
                                  &bytes) &&
            address == entry->pc_low) {
            no_caller(ret_row);
            return true;
        }
    }
    return false;
}
