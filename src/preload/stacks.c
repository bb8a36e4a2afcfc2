/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the caller of a hook to its call site: the capture, the names of what is
 * no machine code, that of the thread among them, the site.
 *
 * Invariant: one capture is one site; where Python cannot be read the stack is
 * native, and where nothing can be walked it is the hook's caller.
 */
#include <string.h>
#include <sys/prctl.h>

#include "base/clear.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"
#include "capture/native/elf.h"
#include "capture/python/interpreter.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/options.h"
#include "preload/real.h"
#include "preload/track.h"
#include "record/modules.h"
#include "record/sites.h"

/*
 * The name that a thread was given, as the last frame of its stacks. A thread
 * without a name of its own (it inherits its parent's) and the main thread have
 * none here.
 *
 * Invariant: the kernel is asked once a thread and name, and not at all once
 * the process restricts itself.
 */

#define NAME_BYTES 17U /* the kernel's 16, and a '*' for a digit at the end */
#define NAME_SLOTS 1024U

/* Thread id << 32 | code, by id: one word, so that it is never read half
 * written. No thread has id 0; a code may be none: the name was asked. */
static _Atomic uint64_t names[NAME_SLOTS];

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

/* What threads inherit from the main one is no name of their own. */
static void start_names(void)
{
    uint64_t words[2];

    main_thread = &seep_thread;
    if (read_name(words)) {
        note_main(0, words);
    }
}

/* Whose main thread this is. */
static void forget_names(void)
{
    main_thread = &seep_thread;
    seep_clear_words(names, NAME_SLOTS);
}

void seep_thread_name_changed(const char *name)
{
    uint64_t words[2] = {0, 0};

    if (name != NULL && main_thread == &seep_thread) {
        memcpy(words, name, strnlen(name, sizeof(words) - 1));
        note_main(1, words);
    }
    seep_clear_words(names, NAME_SLOTS);
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

/*
 * The calling thread's name in CODES; digits at its end become '*', for the
 * threads of a pool do the same.
 *
 * @param is_new  its first capture: what is known belongs to another
 * @return SEEP_CODE_NONE: it has none
 */
static uint32_t name_code(const struct seep_view *view, bool is_new)
{
    uint32_t id = seep_thread.id;
    _Atomic uint64_t *slot = &names[id % NAME_SLOTS];
    uint64_t seen = seep_word_load(slot);
    uint32_t code;

    if (id == view->header->pid) {
        return SEEP_CODE_NONE;
    }
    if (seep_likely(!is_new && seen >> 32 == id)) {
        return (uint32_t)seen;
    }
    code = ask(view);
    seep_word_store(slot, (uint64_t)id << 32 | code);
    return code;
}

/* The stack. */

/* The highest module id in whose object Python was looked for. */
static _Atomic uint32_t considered;

/* Code address -> its module in the recording: 48 bits of a hash over the id,
 * so that an entry is never read half written. */
#define MODULE_SLOTS 8192U
#define MODULE_MASK UINT64_C(0xffff)
static _Atomic uint64_t modules[MODULE_SLOTS];

void seep_stacks_init(void)
{
    seep_native_init(seep_options.unwinder);
    seep_short_stack_always(seep_options.short_stacks);
    start_names();
    if (seep_options.python != SEEP_OPTIONS_PYTHON_OFF) {
        seep_python_init();
    }
}

void seep_stacks_after_fork(void)
{
    seep_native_after_fork();
    seep_python_after_fork();
    forget_names();
    seep_word_store(&considered, 0);
    if (!seep_life_is_restricted()) { /* else none is asked for any more */
        seep_clear_pages(modules, MODULE_SLOTS);
    }
}

void seep_stacks_restrict(void)
{
    seep_native_restrict();
    seep_python_restrict();
}

static void set(_Atomic uint32_t *word, uint32_t value)
{
    if (seep_unlikely(seep_word_load(word) != value)) {
        seep_word_store(word, value);
    }
}

void seep_stacks_describe(const struct seep_view *view)
{
    set(&view->header->python_state, seep_python_state());
    set(&view->header->python_version, seep_python_version());
    set(&view->header->python_objects, seep_python_objects_state());
}

static uint32_t intern_module(const struct seep_view *view, uint64_t address)
{
    struct seep_elf_image image;
    struct seep_modules_object known;

    if (!seep_objects_find(address, &image)) {
        return SEEP_MODULE_NONE;
    }
    known = (struct seep_modules_object){
        .start = image.start,
        .end = image.end,
        .bias = image.bias,
        .path = image.path[0] != '\0' ? image.path : seep_identity_executable(),
    };
    known.build_id = seep_elf_build_id(&image, &known.build_id_bytes);
    return seep_modules_intern(view, &known);
}

/* The module of @address; what was looked up is kept until a dlclose. */
static uint32_t module_of(const struct seep_view *view, uint64_t address)
{
    uint64_t hash = seep_hash_mix(address ^ seep_objects_epoch() << 48);
    _Atomic uint64_t *slot = &modules[hash % MODULE_SLOTS];
    uint64_t seen = seep_word_load(slot);
    uint32_t id;

    /* Not tested: an empty entry that looks like the address's. Its hash would
     * begin with 48 zeros: that of one or two of all addresses does. */
    if (((seen ^ hash) & ~MODULE_MASK) == 0 && (seen & MODULE_MASK) != 0) {
        return (uint32_t)(seen & MODULE_MASK);
    }
    id = intern_module(view, address);
    if (id != SEEP_MODULE_NONE) {
        seep_word_store(slot, (hash & ~MODULE_MASK) | id);
    }
    return id;
}

static uint64_t frame_of(const struct seep_view *view, uint64_t word)
{
    uint32_t id;

    if ((word & SEEP_FRAME_IS_CODE) != 0) {
        return word;
    }
    id = module_of(view, word);
    if (id > seep_word_load(&considered)) {
        seep_word_store(&considered, id);
        if (seep_options.python != SEEP_OPTIONS_PYTHON_OFF) {
            seep_python_consider(word);
        }
    }
    return seep_modules_frame(view, id, word);
}

/* The name of the thread stands last, in a full stack in place of a frame. */
static void add_thread(const struct seep_view *view,
                       struct seep_sites_stack *stack, size_t capacity,
                       bool is_new)
{
    uint32_t code = name_code(view, is_new);

    if (seep_unlikely(code != SEEP_CODE_NONE)) {
        stack->count -= stack->count == capacity;
        stack->addresses[stack->count++] = seep_codes_frame(code, 0);
    }
}

/* Where no structure is free; more would not fit on a hook's stack. */
#define FRAMES_WITHOUT 32U

/* Walk into @pcs; what it learns of the thread's stack is kept. */
static size_t walk(const struct seep_capture_start *from, uintptr_t *pcs,
                   size_t capacity, struct seep_capture_end *ret_end,
                   bool *may_ask)
{
    struct seep_stack_bounds bounds = {seep_thread.stack_low,
                                       seep_thread.stack_high};
    size_t count = seep_native_capture(from, &bounds, pcs, capacity, ret_end);

    if (seep_unlikely(*may_ask)) {
        *may_ask =
            seep_allocator_is_outside(from, &bounds, ret_end, pcs, count);
    }
    seep_thread.stack_low = bounds.low;
    seep_thread.stack_high = bounds.high;
    return count;
}

static uint32_t native_site(const struct seep_view *view,
                            const struct seep_capture_start *from,
                            struct seep_place place, bool *may_ask,
                            uint64_t *addresses, size_t capacity)
{
    struct seep_sites_stack stack = {
        .addresses = addresses,
        .epoch = seep_objects_epoch(),
    };
    struct seep_capture_end end;
    bool is_new = seep_thread.stack_high == 0;

    stack.count = walk(from, addresses, capacity, &end, may_ask);
    stack.cut = end.cut;
    if (from->alone) {
        stack.count = 1;
        stack.cut = SEEP_CUT_NONE;
    } else {
        add_thread(view, &stack, capacity, is_new);
    }
    /* A thread's name alone makes no import. */
    stack.is_native = true;
    return seep_sites_intern(view, place, &stack, frame_of);
}

static SEEP_NOINLINE uint32_t site_without(
    const struct seep_view *view, const struct seep_capture_start *from,
    struct seep_place place, bool *may_ask)
{
    uint64_t addresses[FRAMES_WITHOUT];

    return native_site(view, from, place, may_ask, addresses, FRAMES_WITHOUT);
}

/* A code object that is met for the first time, or came back. */
static SEEP_NOINLINE uint32_t
intern_code(const struct seep_view *view, struct seep_python_stack *python,
            const struct seep_python_identity *identity, uint64_t hash)
{
    struct seep_codes_code code = {
        .kind = SEEP_CODE_PYTHON,
        .file = python->file,
        .name = python->name,
        .first_line =
            identity->first_line > 0 ? (uint32_t)identity->first_line : 0,
    };

    if (!seep_python_stack_text(python, (uintptr_t)identity->code)) {
        seep_view_count(view, SEEP_COUNT_CODES_FULL, 1);
        return SEEP_CODE_NONE;
    }
    return seep_codes_intern(view, hash, &code);
}

/* As a frame of the recording; @ret_lost: its name is not known, for now. */
static SEEP_NOINLINE uint64_t make_python_frame(
    const struct seep_view *view, struct seep_python_stack *python,
    const struct seep_python_identity *identity, int32_t instruction,
    bool *ret_lost)
{
    uint32_t code = SEEP_CODE_NONE;
    int32_t line = 0;
    uint64_t hash = seep_hash_mix(identity->hash);

    if (!seep_codes_find(hash, &code)) {
        code = intern_code(view, python, identity, hash);
    }
    /* Where a function begins are instructions without a line. */
    if (!seep_python_line_cached(python->python, &python->memory, identity,
                                 instruction, &line) ||
        line == 0) {
        line = (int32_t)identity->first_line;
    }
    *ret_lost = code == SEEP_CODE_NONE;
    return seep_codes_frame(code, line);
}

/* What was made of it for the last stack holds for as long as its code is what
 * it was. */
static inline uint64_t python_frame(const struct seep_view *view,
                                    struct seep_python_stack *python,
                                    struct seep_python_frame *frame)
{
    const struct seep_python_known *known =
        seep_python_stack_know(python, frame->code);
    bool lost;

    if (seep_unlikely(known == NULL)) {
        /* the interpreter began to end since the frame was found */
        seep_view_count(view, SEEP_COUNT_CODES_FULL, 1);
        return seep_codes_frame(SEEP_CODE_NONE, 0);
    }
    if (frame->version != known->version) {
        frame->word = make_python_frame(view, python, &known->identity,
                                        frame->instruction, &lost);
        frame->version = lost ? 0 : known->version;
    }
    return frame->word;
}

/* Of a stack that is too deep to have a line of the user's among its frames the
 * next such line is the last: who called into the library is what people look
 * for. An import has one above 40 calls of Python's, and no other on the way:
 * there the outermost is looked for, which is found at once. */
static SEEP_NOINLINE void end_with_users(const struct seep_view *view,
                                         struct seep_python_stack *python,
                                         struct seep_sites_stack *stack)
{
    uint32_t traits = 0;
    size_t known = 0; /* frames of Python that are in */

    for (size_t i = 0; i < stack->count; i++) {
        traits |= seep_codes_traits(view, stack->addresses[i]);
        known += python->merged[i].is_python;
    }
    if ((traits & SEEP_CODE_IS_USERS) != 0) {
        return;
    }
    for (size_t i = known; i < python->chain.count; i++) {
        size_t at = (traits & SEEP_CODE_IS_IMPORTER) != 0
                        ? python->chain.count - 1 - (i - known)
                        : i;
        uint64_t word = python_frame(view, python, &python->chain.frames[at]);

        if ((seep_codes_traits(view, word) & SEEP_CODE_IS_USERS) != 0) {
            stack->count--; /* the name of the thread has the other's place */
            stack->addresses[stack->count - 1] = word;
            return;
        }
    }
}

/* @python is taken by this thread. */
static uint32_t merged_site(const struct seep_view *view,
                            struct seep_python_stack *python,
                            const struct seep_capture_start *from,
                            struct seep_place place, bool *may_ask)
{
    struct seep_capture_start start = *from;
    struct seep_sites_stack stack = {.epoch = seep_objects_epoch()};
    struct seep_capture_end end;
    bool is_new = seep_thread.stack_high == 0;

    start.sps = python->sps;
    python->native_count =
        walk(&start, python->pcs, SEEP_STACK_FRAMES_MAX, &end, may_ask);
    python->interrupted = end.through_signal;
    seep_python_stack_own(python, from->sp, seep_thread.stack_low,
                          seep_thread.stack_high);
    stack.cut = end.cut;
    seep_python_stack_fill(python);
    /* The pcs have done their work. */
    stack.addresses = python->pcs;
    stack.count = python->count;
    for (size_t i = 0; i < python->count; i++) {
        const struct seep_merged_frame *frame = &python->merged[i];

        stack.addresses[i] =
            frame->is_python
                ? python_frame(view, python,
                               &python->chain.frames[frame->number])
                : frame->address;
    }
    if (seep_unlikely(python->truncated)) {
        end_with_users(view, python, &stack);
        stack.cut = stack.cut == SEEP_CUT_NONE ? SEEP_CUT_DEPTH : stack.cut;
    }
    add_thread(view, &stack, SEEP_STACK_FRAMES_MAX, is_new);
    return seep_sites_intern(view, place, &stack, frame_of);
}

SEEP_NOINLINE uint32_t seep_stacks_site(const struct seep_view *view,
                                        const struct seep_capture_start *from,
                                        struct seep_place place, bool *may_ask)
{
    bool is_on = seep_python_is_on();
    struct seep_python_stack *python;
    uint32_t site;

    if (from->alone) {
        return site_without(view, from, place, may_ask);
    }
    python = seep_python_stack_take();
    if (seep_unlikely(python == NULL)) {
        seep_view_count(view, SEEP_COUNT_PYTHON_BUSY, is_on);
        return site_without(view, from, place, may_ask);
    }
    if (!is_on) {
        site = native_site(view, from, place, may_ask, python->pcs,
                           SEEP_STACK_FRAMES_MAX);
        seep_python_stack_give(python);
        return site;
    }
    site = merged_site(view, python, from, place, may_ask);
    seep_python_stack_give(python);
    set(&view->header->python_state, seep_python_state());
    return site;
}
