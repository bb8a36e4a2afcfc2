/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which interpreter there is, whether it may be read now, and where each
 * version keeps what is read.
 *
 * Invariant: an interpreter is complete before it is published, and never
 * changes afterwards. The state leaves ON and PROBATION only for good, or for
 * another interpreter when the first one was unloaded.
 */
#include "capture/python/interpreter.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/hash.h"
#include "base/own.h"
#include "base/word.h"
#include "capture/native/elf.h"

/* What it exports; the versions before 3.11 are told apart by what each added.
 */

struct names {
    seep_python_lookup *lookup;
    const void *data;
    bool missing;
};

static uintptr_t look(const struct names *names, const char *name)
{
    return names->lookup(names->data, name, NULL);
}

static uintptr_t need(struct names *names, const char *name, const char *older)
{
    uintptr_t address = look(names, name);

    if (address == 0 && older != NULL) {
        address = look(names, older);
    }
    names->missing |= address == 0;
    return address;
}

/* For 3.8 to 3.10, which say their version only by a function that prints. */
static uint32_t version_by_names(const struct names *names)
{
    static const struct {
        const char *name;
        unsigned int minor;
    } added[] = {
        {"Py_NewRef", 10}, {"PyFrame_GetCode", 9}, {"Py_BytesMain", 8}};

    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        if (look(names, added[i].name) != 0) {
            return 0x030000f0U | added[i].minor << 16;
        }
    }
    return 0x030700f0U;
}

#define TAKE_FUNCTION(field, address) \
    memcpy(&(field), &(uintptr_t){address}, sizeof(field))

enum seep_python_state seep_python_symbols_find(seep_python_lookup *lookup,
                                                const void *data,
                                                struct seep_python *ret_python)
{
    struct names names = {.lookup = lookup, .data = data};
    struct seep_python found = {0};
    size_t bytes = 0;

    found.code_type = look(&names, "PyCode_Type");
    if (found.code_type == 0) {
        return SEEP_PYTHON_NONE;
    }
    found.version = look(&names, "Py_Version");
    if (found.version == 0) {
        found.hex = version_by_names(&names);
        if (found.hex >> 16 == 0x0307) {
            return SEEP_PYTHON_OLD;
        }
    }
    if (look(&names, "_Py_NegativeRefcount") != 0) {
        return SEEP_PYTHON_DEBUG;
    }
    found.runtime = need(&names, "_PyRuntime", NULL);
    found.text_type = need(&names, "PyUnicode_Type", NULL);
    found.bytes_type = need(&names, "PyBytes_Type", NULL);
    found.frame_type = need(&names, "PyFrame_Type", NULL);
    TAKE_FUNCTION(found.current_state,
                  need(&names, "PyThreadState_GetUnchecked",
                       "_PyThreadState_UncheckedGet"));
    TAKE_FUNCTION(found.own_state,
                  need(&names, "PyGILState_GetThisThreadState", NULL));
    TAKE_FUNCTION(found.is_finalizing,
                  need(&names, "Py_IsFinalizing", "_Py_IsFinalizing"));
    TAKE_FUNCTION(found.is_initialized, need(&names, "Py_IsInitialized", NULL));
    if (names.missing) {
        return SEEP_PYTHON_SYMBOLS;
    }
    found.evaluate_low = lookup(data, "_PyEval_EvalFrameDefault", &bytes);
    found.evaluate_high = found.evaluate_low + bytes;
    *ret_python = found;
    return SEEP_PYTHON_ON;
}

/* The one that is in use. */

#define STACKS 64U
#define INTERPRETERS 4U
#define PROBATION_CAPTURES 64
#define STRANGERS_MAX 16
#define PIECES_MAX 1024U
#define PIECES_MAX_PROBATION 8192U
#define OBJECTS_MAX 4096U

static struct seep_python interpreters[INTERPRETERS];
static unsigned int interpreter_count; /* by who holds `looking` */
static const struct seep_python *_Atomic current;
static _Atomic int state;
static _Atomic int probation_left;
static _Atomic int strangers;
static _Atomic bool restricted;
static _Atomic bool looking;
static _Atomic uintptr_t pending; /* an address that came while looking */
static uintptr_t main_thread;

static seep_own_table stacks; /* struct seep_python_stack[STACKS] */

static uintptr_t self(void)
{
    return (uintptr_t)pthread_self();
}

enum seep_python_state seep_python_state(void)
{
    return (enum seep_python_state)seep_word_load(&state);
}

static bool is_live(int seen)
{
    return seen == SEEP_PYTHON_ON || seen == SEEP_PYTHON_PROBATION;
}

bool seep_python_is_on(void)
{
    return is_live(seep_word_load(&state));
}

static const struct seep_python *in_use(void)
{
    /* Acquire: pairs with the release in publish(). */
    return atomic_load_explicit(&current, memory_order_acquire);
}

bool seep_python_is_arena(uintptr_t pc, size_t size_bytes)
{
    const struct seep_python *python = in_use();

    return python != NULL && pc >= python->start && pc < python->end &&
           (size_bytes == (python->offsets.minor < 10
                               ? SEEP_PYTHON_ARENA_BYTES_TO_3_9
                               : SEEP_PYTHON_ARENA_BYTES) ||
            (size_bytes == SEEP_PYTHON_ARENA_BYTES_HUGE &&
             python->offsets.minor >= 15));
}

uint32_t seep_python_version(void)
{
    const struct seep_python *python = in_use();

    return python != NULL ? python->hex : 0;
}

/* The program comes before the object, as it does for the loader: it may hold
 * a copy of the object's data. */
struct scope {
    struct seep_elf_symbols program;
    struct seep_elf_symbols object;
};

static uintptr_t look_up(const void *data, const char *name, size_t *ret_bytes)
{
    const struct scope *scope = data;
    uintptr_t found = seep_elf_symbols_find(&scope->program, name, ret_bytes);

    return found != 0 ? found
                      : seep_elf_symbols_find(&scope->object, name, ret_bytes);
}

/* Settle what @python is worth. */
static enum seep_python_state check(struct seep_python *python)
{
    struct seep_python_memory memory = {.budget = PIECES_MAX_PROBATION};
    enum seep_python_state found = SEEP_PYTHON_MEMORY;

    if (seep_word_load(&restricted)) {
        return found;
    }
    memory.pages = seep_python_pages_take(self());
    if (memory.pages == NULL) {
        return found;
    }
    found = seep_python_check_types(python, &memory);
    seep_python_pages_give(memory.pages);
    return found;
}

static void publish(const struct seep_python *python,
                    enum seep_python_state found)
{
    seep_word_store(&probation_left, PROBATION_CAPTURES);
    seep_word_store(&strangers, 0);
    /* Release: pairs with the acquires of `current`. */
    atomic_store_explicit(&current, python, memory_order_release);
    /* Release: pairs with the acquire in readable(). */
    atomic_store_explicit(&state, found, memory_order_release);
}

/* Is the interpreter that was found once still where it was? */
static bool is_there(const struct seep_python *python)
{
    struct seep_elf_image image;

    return !python->late ||
           (seep_objects_find(python->start, &image) &&
            image.start == python->start && image.end == python->end);
}

static bool look_into(uintptr_t address, bool late)
{
    struct seep_python *python = &interpreters[interpreter_count];
    struct seep_elf_image program = {0};
    struct seep_elf_image image;
    struct scope scope = {0};
    enum seep_python_state found;

    if (!seep_objects_find(address, &image) ||
        !seep_elf_symbols_open(&image, &scope.object) ||
        /* A function, of which there are no copies. */
        seep_elf_symbols_find(&scope.object, "PyGILState_GetThisThreadState",
                              NULL) == 0) {
        return false;
    }
    if (seep_objects_find(getauxval(AT_PHDR), &program)) {
        seep_elf_symbols_open(&program, &scope.program);
    }
    found = seep_python_symbols_find(look_up, &scope, python);
    if (found == SEEP_PYTHON_NONE) {
        return false;
    }
    python->start = image.start;
    python->end = image.end;
    python->late = late;
    if (found == SEEP_PYTHON_ON) {
        found = check(python);
    }
    interpreter_count++;
    publish(python, found);
    return true;
}

/* Every object that the loader has listed, by its own list. */
static void look_into_all(void)
{
    const struct link_map *map = _r_debug.r_map;

    for (size_t i = 0; map != NULL && i < OBJECTS_MAX; i++, map = map->l_next) {
        if (map->l_ld != NULL && look_into((uintptr_t)map->l_ld, false)) {
            return;
        }
    }
}

void seep_python_init(void)
{
    main_thread = self();
    if (seep_python_state() == SEEP_PYTHON_NONE) {
        look_into_all();
    }
}

static void consider(uintptr_t address)
{
    const struct seep_python *known = seep_word_load(&current);

    if (interpreter_count < INTERPRETERS &&
        (known == NULL || !is_there(known))) {
        look_into(address, true);
    }
}

void seep_python_consider(uintptr_t address)
{
    const struct seep_python *known = in_use();

    if (known != NULL && !known->late) {
        return;
    }
    do {
        /* Acquire: pairs with the release below. */
        if (atomic_exchange_explicit(&looking, true, memory_order_acquire)) {
            seep_word_store(&pending, address);
            return;
        }
        consider(address);
        /* Release: pairs with the acquire above. */
        atomic_store_explicit(&looking, false, memory_order_release);
        address = seep_word_exchange(&pending, 0);
    } while (address != 0);
}

/* Stacks. */

struct seep_python_stack *seep_python_stack_take(void)
{
    struct seep_python_stack *all =
        seep_own_make_guarded(&stacks, STACKS * sizeof(*all));
    uintptr_t thread = self();

    for (size_t i = 0; all != NULL && i < STACKS; i++) {
        /* Thread descriptors lie pages apart. */
        struct seep_python_stack *stack = &all[((thread >> 12) + i) % STACKS];
        uintptr_t owner = seep_word_load(&stack->owner);

        /* Ours already: from a hook that was abandoned by a jump.
         * Acquire: pairs with the release in seep_python_stack_give(). */
        if (owner == thread ||
            (owner == 0 && atomic_compare_exchange_strong_explicit(
                               &stack->owner, &owner, thread,
                               memory_order_acquire, memory_order_relaxed))) {
            stack->python = NULL;
            stack->memory.pages = NULL;
            stack->turn++;
            stack->interrupted = false;
            stack->own_low = 0;
            stack->own_high = 0;
            return stack;
        }
    }
    return NULL;
}

void seep_python_stack_give(struct seep_python_stack *stack)
{
    if (stack->memory.pages != NULL) {
        seep_python_pages_give(stack->memory.pages);
        stack->memory.pages = NULL;
    }
    /* Release: pairs with the acquire in seep_python_stack_take(). */
    atomic_store_explicit(&stack->owner, 0, memory_order_release);
}

/* Off for good, unless another thread was first. */
static void switch_off(enum seep_python_state reason)
{
    int seen = seep_word_load(&state);

    while (is_live(seen) && !seep_word_replace(&state, &seen, reason)) {
    }
}

static void count_probation(void)
{
    int seen = SEEP_PYTHON_PROBATION;

    if (atomic_fetch_sub_explicit(&probation_left, 1, memory_order_relaxed) <=
        1) {
        seep_word_replace(&state, &seen, SEEP_PYTHON_ON);
    }
}

/* @return the interpreter that may be asked on this stack, or NULL */
static const struct seep_python *readable(const struct seep_python_stack *stack,
                                          bool *ret_probation)
{
    /* Acquire: pairs with the release in publish(). */
    int seen = atomic_load_explicit(&state, memory_order_acquire);
    const struct seep_python *python = in_use();

    if (!is_live(seen) || python == NULL) {
        return NULL;
    }
    *ret_probation = seen == SEEP_PYTHON_PROBATION;
    if (!python->late) {
        return python;
    }
    for (size_t i = 0; i < stack->native_count; i++) {
        if (stack->pcs[i] >= python->start && stack->pcs[i] < python->end) {
            return python;
        }
    }
    return NULL;
}

/* The state of this thread, or 0 if it has none that may be read now. */
static uintptr_t find_state(const struct seep_python *python,
                            bool *ret_attached)
{
    uintptr_t own = (uintptr_t)python->own_state();
    uintptr_t now;

    /* A thread that never ran Python must not make its TLS either. */
    if (own == 0) {
        return 0;
    }
    now = (uintptr_t)python->current_state();
    if (python->offsets.minor >= 12) {
        *ret_attached = now != 0;
        own = now != 0 ? now : own;
    } else {
        *ret_attached = own == now;
    }
    if (!*ret_attached &&
        (python->is_finalizing() != 0 || python->is_initialized() == 0)) {
        return 0;
    }
    return seep_python_is_plausible(own) ? own : 0;
}

/*
 * Without the GIL a thread's frames may be freed under it by who ends the
 * interpreter: the main thread, which alone may load them as they are. To 3.10
 * frames are objects as others are, and 3.8 gives up references of theirs.
 *
 * @return false: not to be read at all
 */
static bool choose_memory(struct seep_python_stack *stack,
                          const struct seep_python *python, bool probation)
{
    bool doubtful = probation || stack->interrupted;
    bool careful = doubtful || (!stack->attached &&
                                (python->late || self() != main_thread));

    stack->memory = (struct seep_python_memory){
        .own_low = stack->own_low,
        .own_high = stack->own_high,
        .budget = probation ? PIECES_MAX_PROBATION : PIECES_MAX,
        .frames_only = careful && !doubtful && !python->late &&
                       python->offsets.minor >= 11,
    };
    if (!careful) {
        return true;
    }
    if (seep_word_load(&restricted)) {
        return false;
    }
    stack->memory.pages = seep_python_pages_take(self());
    return stack->memory.pages != NULL &&
           (stack->attached ||
            seep_python_pages_are_atomic(stack->memory.pages));
}

/* A key's value may be left from another thread, and states may be moved. */
static bool is_of_this_thread(const struct seep_python *python,
                              struct seep_python_stack *stack,
                              uintptr_t thread_state, bool probation)
{
    uintptr_t thread;
    uintptr_t at = thread_state + (uintptr_t)python->offsets.thread_id;

    if (seep_python_read_word(&stack->memory, at, &thread) &&
        thread == self()) {
        return true;
    }
    if (probation && !stack->memory.spent && !stack->interrupted &&
        seep_word_fetch_add(&strangers, 1) >= STRANGERS_MAX) {
        switch_off(SEEP_PYTHON_THREAD);
    }
    return false;
}

static bool walk(const struct seep_python *python,
                 struct seep_python_stack *stack, uintptr_t thread_state,
                 bool probation)
{
    enum seep_python_state found = SEEP_PYTHON_ON;

    stack->chain.kept = !probation && !stack->interrupted ? &stack->kept : NULL;
    if (!seep_python_walk(python, &stack->memory, thread_state,
                          &stack->chain)) {
        found = SEEP_PYTHON_FRAME;
    } else if (probation) {
        found = seep_python_check_chain(python, &stack->memory, &stack->chain);
    }
    if (found == SEEP_PYTHON_ON) {
        if (probation && stack->chain.count > 0) {
            count_probation();
        }
        return stack->chain.count > 0;
    }
    /* Without the GIL it may be gone, and with too many pages not be read. */
    if (stack->attached && !stack->memory.spent && !stack->interrupted) {
        switch_off(found);
    }
    return false;
}

/*
 * From copies of the frames to plain loads of what they refer to. That the end
 * has not begun by now says that the copies are of frames as they were, so that
 * each held its code when it was copied, and holds it as long as this thread
 * does not go on.
 */
static bool leave_copies(const struct seep_python *python,
                         struct seep_python_stack *stack)
{
    struct seep_python_memory *memory = &stack->memory;

    if (!memory->frames_only) {
        return true;
    }
    /* Acquire: the copies come before the look; pairs with what the thread that
     * ends the interpreter does before it frees anything (locks). */
    atomic_thread_fence(memory_order_acquire);
    if (python->is_finalizing() != 0 ||
        (!stack->chain.whole && !stack->chain.truncated)) {
        return false;
    }
    seep_python_pages_give(memory->pages);
    memory->pages = NULL;
    memory->may_end = true;
    return seep_python_chain_is_code(python, memory, &stack->chain);
}

void seep_python_stack_fill(struct seep_python_stack *stack)
{
    bool probation = false;
    bool full = false;
    const struct seep_python *python = readable(stack, &probation);
    struct seep_native_stack native = {stack->pcs, stack->sps,
                                       stack->native_count};
    uintptr_t thread_state;

    stack->python = NULL;
    stack->truncated = false;
    stack->attached = false;
    stack->chain = (struct seep_python_chain){
        .room = stack->frames, .capacity = SEEP_STACK_FRAMES_MAX};
    thread_state = python != NULL ? find_state(python, &stack->attached) : 0;
    if (thread_state == 0 || !choose_memory(stack, python, probation) ||
        !is_of_this_thread(python, stack, thread_state, probation) ||
        !walk(python, stack, thread_state, probation) ||
        !leave_copies(python, stack)) {
        stack->chain.count = 0;
        stack->chain.truncated = false;
    } else {
        stack->python = python;
    }
    stack->count =
        seep_python_merge(stack->python, &native, &stack->chain, stack->merged,
                          SEEP_STACK_FRAMES_MAX, &full);
    stack->truncated = full || stack->chain.truncated;
}

/* Anew. */
static SEEP_NOINLINE const struct seep_python_known *
identify(struct seep_python_stack *stack, uintptr_t code,
         struct seep_python_known *known)
{
    struct seep_python_identity identity;

    if (!seep_python_identify(stack->python, &stack->memory, code, &identity)) {
        return NULL;
    }
    if (memcmp(&known->identity, &identity, sizeof(identity)) != 0) {
        known->identity = identity;
        stack->versions += stack->versions == UINT32_MAX ? 2 : 1;
        known->version = stack->versions;
    }
    known->proof.python = NULL;
    if (stack->memory.pages == NULL && !stack->memory.may_end) {
        seep_python_prove(stack->python, code, &identity, &known->proof);
    }
    known->turn = stack->turn;
    return known;
}

const struct seep_python_known *
seep_python_stack_know(struct seep_python_stack *stack, uintptr_t code)
{
    struct seep_python_known *known =
        &stack->known[(code >> 4) * SEEP_HASH_SEED >> 57];

    if (seep_likely(known->identity.code == code)) {
        if (seep_likely(known->turn == stack->turn)) {
            return known;
        }
        if (seep_likely(
                stack->memory.pages == NULL && !stack->memory.may_end &&
                seep_python_is_proved(stack->python, code, &known->proof))) {
            known->turn = stack->turn;
            return known;
        }
    }
    return identify(stack, code, known);
}

static void forget_kept(void)
{
    struct seep_python_stack *all = seep_own_get(&stacks);

    for (size_t i = 0; all != NULL && i < STACKS; i++) {
        seep_python_kept_forget(&all[i].kept);
    }
}

bool seep_python_stack_text(struct seep_python_stack *stack, uintptr_t code)
{
    size_t bytes;

    return seep_python_text(stack->python, &stack->memory, code,
                            SEEP_PYTHON_FILE, stack->file, sizeof(stack->file),
                            &bytes) &&
           seep_python_text(stack->python, &stack->memory, code,
                            SEEP_PYTHON_NAME, stack->name, sizeof(stack->name),
                            &bytes);
}

void seep_python_use(const struct seep_python *python)
{
    main_thread = self();
    forget_kept();
    publish(python, SEEP_PYTHON_PROBATION);
}

void seep_python_after_fork(void)
{
    struct seep_python_stack *all = seep_own_get(&stacks);

    main_thread = self();
    seep_word_store(&looking, false);
    for (size_t i = 0; all != NULL && i < STACKS; i++) {
        seep_word_store(&all[i].owner, 0);
    }
    /* What its caller made of them was for another recording. */
    forget_kept();
    seep_python_pages_after_fork();
}

void seep_python_restrict(void)
{
    seep_word_store(&restricted, true);
}

/*
 * The table of offsets, and what _Py_DebugOffsets must say.
 *
 * Invariant: a version is known if and only if it has a row.
 */

#define NONE SEEP_PYTHON_OFFSET_NONE
#define COOKIE UINT64_C(0x7970677562656478) /* "xdebugpy" */

/* What versions have in common: 3.8 to 3.10, and 3.12 and later. */
#define FRAME_OBJECTS                                                \
    .thread_id = 176, .thread_frame = 24, .cframe_current = NONE,    \
    .cframe_previous = NONE, .frame_back = 24, .frame_code = 32,     \
    .frame_owner = NONE, .code_filename = 104, .code_name = 112,     \
    .code_qualname = NONE, .code_first_line = 40, .code_lines = 120, \
    .code_instructions = 48, .text_header = 48
#define INTERPRETER_FRAMES                                        \
    .frame_back = 8, .frame_code = 0, .frame_instruction = 56,    \
    .code_filename = 112, .code_name = 120, .code_qualname = 128, \
    .code_first_line = 68, .code_lines = 136, .text_header = 40
#define WITHOUT_CFRAMES \
    .thread_frame = 72, .cframe_current = NONE, .cframe_previous = NONE

static const struct seep_python_offsets rows[] = {
    {.minor = 8, .frame_instruction = 104, FRAME_OBJECTS},
    {.minor = 9, .frame_instruction = 104, FRAME_OBJECTS},
    {.minor = 10, .frame_instruction = 96, FRAME_OBJECTS},
    {
        .minor = 11,
        .thread_id = 152,
        .thread_frame = 56,
        .cframe_current = 8,
        .cframe_previous = 16,
        .frame_back = 48,
        .frame_code = 32,
        .frame_instruction = 56,
        .frame_owner = 69,
        .code_filename = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_first_line = 72,
        .code_lines = 136,
        .code_instructions = 184,
        .text_header = 48,
    },
    {
        .minor = 12,
        .thread_id = 136,
        .thread_frame = 56,
        .cframe_current = 0,
        .cframe_previous = 8,
        .frame_owner = 70,
        .code_instructions = 192,
        INTERPRETER_FRAMES,
    },
    {
        .minor = 13,
        .thread_id = 152,
        .frame_owner = 70,
        .code_instructions = 200,
        INTERPRETER_FRAMES,
        WITHOUT_CFRAMES,
    },
    {
        .minor = 14,
        .thread_id = 152,
        .frame_owner = 74,
        .code_instructions = 208,
        INTERPRETER_FRAMES,
        WITHOUT_CFRAMES,
    },
    {
        .minor = 15,
        .thread_id = 176,
        .frame_owner = 74,
        .code_instructions = 208,
        INTERPRETER_FRAMES,
        WITHOUT_CFRAMES,
    },
};

/* The groups of _Py_DebugOffsets that are looked at: their first words, which
 * are their sizes. They stand where they do only within a released version. */
struct groups {
    unsigned int minor;
    unsigned int thread;
    unsigned int thread_id; /* this word, within the group */
    unsigned int frame;
    unsigned int code;
    unsigned int object;
    unsigned int bytes;
    unsigned int text;
    unsigned int total;
};

static const struct groups groups[] = {
    {13, 19, 5, 28, 34, 44, 64, 67, 71},
    {14, 22, 5, 31, 39, 50, 74, 77, 81},
    {15, 22, 8, 39, 47, 58, 86, 89, 93},
};

/* And the words in each, counted from the first. */
enum {
    THREAD_CURRENT_FRAME = 4,
    FRAME_PREVIOUS = 1,
    FRAME_EXECUTABLE = 2,
    FRAME_INSTR_PTR = 3,
    FRAME_OWNER = 5,
    CODE_FILENAME = 1,
    CODE_NAME = 2,
    CODE_QUALNAME = 3,
    CODE_LINETABLE = 4,
    CODE_FIRSTLINENO = 5,
    CODE_ADAPTIVE = 9, /* co_code_adaptive */
    OBJECT_TYPE = 1,
    BYTES_SIZE = 1,
    BYTES_DATA = 2,
    TEXT_STATE = 1,
    TEXT_LENGTH = 2,
    TEXT_ASCII_BYTES = 3,
};

static const struct groups *groups_of(unsigned int minor)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (groups[i].minor == minor) {
            return &groups[i];
        }
    }
    return NULL;
}

size_t seep_python_offsets_words(unsigned int minor)
{
    const struct groups *found = groups_of(minor);

    return found != NULL ? found->total : 0;
}

static bool agrees(const struct seep_python_offsets *row,
                   const struct groups *at, const uint64_t *words)
{
    const struct {
        unsigned int index;
        int value;
    } wanted[] = {
        {at->thread + THREAD_CURRENT_FRAME, row->thread_frame},
        {at->thread + at->thread_id, row->thread_id},
        {at->frame + FRAME_PREVIOUS, row->frame_back},
        {at->frame + FRAME_EXECUTABLE, row->frame_code},
        {at->frame + FRAME_INSTR_PTR, row->frame_instruction},
        {at->frame + FRAME_OWNER, row->frame_owner},
        {at->code + CODE_FILENAME, row->code_filename},
        {at->code + CODE_NAME, row->code_name},
        {at->code + CODE_QUALNAME, row->code_qualname},
        {at->code + CODE_LINETABLE, row->code_lines},
        {at->code + CODE_FIRSTLINENO, row->code_first_line},
        {at->code + CODE_ADAPTIVE, row->code_instructions},
        {at->object + OBJECT_TYPE, SEEP_PYTHON_OBJECT_TYPE},
        {at->bytes + BYTES_SIZE, SEEP_PYTHON_OBJECT_SIZE},
        {at->bytes + BYTES_DATA, SEEP_PYTHON_BYTES_DATA},
        {at->text + TEXT_STATE, SEEP_PYTHON_TEXT_STATE},
        {at->text + TEXT_LENGTH, SEEP_PYTHON_OBJECT_SIZE},
        {at->text + TEXT_ASCII_BYTES, row->text_header},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (words[wanted[i].index] != (uint64_t)wanted[i].value) {
            return false;
        }
    }
    return true;
}

static enum seep_python_state check_words(uint32_t hex, const uint64_t *words,
                                          const struct seep_python_offsets *row)
{
    const struct groups *at = groups_of(row->minor);

    if (at == NULL) {
        return SEEP_PYTHON_ON;
    }
    if (words[0] != COOKIE || words[1] >> 16 != hex >> 16 || words[2] > 1) {
        return SEEP_PYTHON_OFFSETS;
    }
    if (words[2] == 1) {
        return SEEP_PYTHON_FREE_THREADED;
    }
    return agrees(row, at, words) ? SEEP_PYTHON_ON : SEEP_PYTHON_OFFSETS;
}

enum seep_python_state
seep_python_offsets_find(uint32_t hex, const uint64_t *words,
                         struct seep_python_offsets *ret_offsets)
{
    unsigned int minor = hex >> 16 & 0xff;
    enum seep_python_state found;

    if (hex >> 24 < 3 || (hex >> 24 == 3 && minor < SEEP_PYTHON_MINOR_MIN)) {
        return SEEP_PYTHON_OLD;
    }
    if (hex >> 24 > 3 || minor > SEEP_PYTHON_MINOR_MAX) {
        return SEEP_PYTHON_NEW;
    }
    /* The betas of a version had other layouts; a candidate has its own. */
    if ((hex >> 4 & 0xf) < 0xc) {
        return SEEP_PYTHON_UNFINISHED;
    }
    found = check_words(hex, words, &rows[minor - SEEP_PYTHON_MINOR_MIN]);
    if (found == SEEP_PYTHON_ON) {
        *ret_offsets = rows[minor - SEEP_PYTHON_MINOR_MIN];
    }
    return found;
}
