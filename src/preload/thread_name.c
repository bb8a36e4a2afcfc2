/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The name that a thread was given, as the last frame of its stacks.
 *
 * Invariant: the kernel is asked once a thread and name, and not at all once
 * the process restricts itself.
 */
#include <string.h>
#include <sys/prctl.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "preload/life.h"
#include "preload/track.h"
#include "record/modules.h"

#define NAME_BYTES 17U /* the kernel's 16, and a '*' for a digit at the end */
#define SLOTS 1024U
/* Beside a code, which may be none: the name was asked. */
#define ASKED (UINT64_C(1) << 31)

/* Thread id << 32 | ASKED | code, by id: one word, so that it is never read
 * half written. */
static _Atomic uint64_t names[SLOTS];

/* The main thread's first name, and its last, as two words each. */
static _Atomic uint64_t main_names[2][2];
static const struct seep_thread *main_thread;

static bool read_name(uint64_t words[2])
{
    words[0] = 0;
    words[1] = 0;
    return !seep_life_is_restricted() &&
           seep_syscall2(SYS_prctl, PR_GET_NAME, (long)words) == 0;
}

static void note_main(size_t which, const uint64_t words[2])
{
    seep_word_store(&main_names[which][0], words[0]);
    seep_word_store(&main_names[which][1], words[1]);
}

void seep_thread_name_init(void)
{
    uint64_t words[2];

    main_thread = &seep_thread;
    if (read_name(words)) {
        note_main(0, words);
    }
}

void seep_thread_name_after_fork(void)
{
    main_thread = &seep_thread;
    seep_word_clear(names, SLOTS);
}

void seep_thread_name_changed(const char *name)
{
    uint64_t words[2] = {0, 0};

    if (name != NULL && main_thread == &seep_thread) {
        memcpy(words, name, strnlen(name, sizeof(words) - 1));
        note_main(1, words);
    }
    seep_word_clear(names, SLOTS);
}

static bool is_inherited(const uint64_t words[2])
{
    for (size_t i = 0; i < 2; i++) {
        if (seep_word_load(&main_names[i][0]) == words[0] &&
            seep_word_load(&main_names[i][1]) == words[1]) {
            return true;
        }
    }
    return false;
}

/* "worker-12" -> "worker-*"; a number alone stays. */
static void join_numbered(char *name)
{
    size_t length = strlen(name);
    size_t end = length;

    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') {
        end--;
    }
    if (end > 0 && end < length) {
        name[end] = '*';
        name[end + 1] = '\0';
    }
}

SEEP_COLD static uint32_t ask(const struct seep_view *view)
{
    union {
        uint64_t words[2];
        char text[NAME_BYTES];
    } name;
    struct seep_codes_code code = {
        .kind = SEEP_CODE_THREAD, .file = "", .name = name.text};

    memset(&name, 0, sizeof(name));
    if (!read_name(name.words) || name.text[0] == '\0' ||
        is_inherited(name.words)) {
        return SEEP_CODE_NONE;
    }
    join_numbered(name.text);
    return seep_codes_intern(
        view, seep_hash_bytes(name.text, strlen(name.text)), &code);
}

uint32_t seep_thread_name_code(const struct seep_view *view, bool is_new)
{
    uint32_t id = seep_thread.id;
    _Atomic uint64_t *slot = &names[id % SLOTS];
    uint64_t seen = seep_word_load(slot);
    uint32_t code;

    if (id == view->header->pid) {
        return SEEP_CODE_NONE;
    }
    if (seep_likely(!is_new && seen >> 32 == id && (seen & ASKED) != 0)) {
        return (uint32_t)(seen & (ASKED - 1));
    }
    code = ask(view);
    seep_word_store(slot, (uint64_t)id << 32 | ASKED | code);
    return code;
}
