/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Python frames of the calling thread, from inside a hook, merged with the
 * native ones. CPython 3.8 to 3.15 with the GIL; see src/README.md. Hooks use
 * the last section; the others are what the files of this folder share.
 *
 * Threads: any number at once. Nothing here allocates, locks or makes a
 * Python object; the few functions of the interpreter that are called read a
 * word each. Whatever is not as expected switches Python off for good, with a
 * reason, and stacks are native again.
 *
 * Invariant: no function and no memory of an interpreter that could have been
 * unloaded is touched: one that came by dlopen only from stacks that it is on.
 */
#ifndef SEEP_CAPTURE_PYTHON_INTERPRETER_H
#define SEEP_CAPTURE_PYTHON_INTERPRETER_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "seep/stack.h"

/*
 * Reading of Python's memory: by plain loads where it cannot go away, and the
 * caller vouches for it; else by copies of pieces, which fail where a load
 * would fault. Of those no more than `budget` are made for one stack.
 *
 * Without the GIL only the thread's state and its frames can go away under the
 * thread, when the interpreter ends; a code object cannot: a frame that is
 * never left never gives up its reference. So frames alone are copied
 * (`frames_only`), and then code, names and lines are read by plain loads, with
 * a look whether the end has begun before each code object (`may_end`).
 */

#define SEEP_PYTHON_PIECES 256U

struct seep_python_pages;

struct seep_python_memory {
    struct seep_python_pages *pages; /* NULL: plain loads */
    uintptr_t own_low;               /* the thread's own C stack, by plain */
    uintptr_t own_high;              /* loads always */
    uint32_t budget;                 /* pieces that may still be copied */
    bool spent;                      /* the budget was not enough */
    bool frames_only;                /* no code object is looked at yet */
    bool may_end;                    /* nobody holds the GIL for us */
};

/**
 * Pages for a thread, of a few that all share.
 *
 * @param self  the thread; it gets back what it left behind when a hook of its
 *              own was abandoned
 * @return NULL if all are taken
 */
struct seep_python_pages *seep_python_pages_take(uintptr_t self);
void seep_python_pages_give(struct seep_python_pages *pages);

/** In the child of a fork: those of the other threads are free again. */
void seep_python_pages_after_fork(void);

/**
 * Is a piece copied in one step with the look whether it is there? Where the
 * system call for that is refused (old seccomp profiles, some sandboxes) it is
 * two: enough for memory that only the calling thread could free.
 */
bool seep_python_pages_are_atomic(const struct seep_python_pages *pages);

/** Copy from pages. For seep_python_read() only. */
bool seep_python_read_pages(struct seep_python_memory *memory, void *to,
                            uintptr_t from, size_t bytes);

/** Is it all of the thread's own stack? */
static inline bool seep_python_is_own(const struct seep_python_memory *memory,
                                      uintptr_t from, size_t bytes)
{
    return from >= memory->own_low && from < memory->own_high &&
           bytes <= memory->own_high - from;
}

/** Could an object of Python lie there? */
static inline bool seep_python_is_plausible(uintptr_t address)
{
    return address >= UINT64_C(0x10000) && address < UINT64_C(1) << 56 &&
           address % 8 == 0;
}

/* clang's ASan checks memcpy() in a function that it is to leave alone, too. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SEEP_PYTHON_COPY_BYTEWISE 1
#endif
#endif

/** @return false if it cannot be read: then @to may be partly written */
static inline __attribute__((no_sanitize("address"))) bool
seep_python_read(struct seep_python_memory *memory, void *to, uintptr_t from,
                 size_t bytes)
{
    if (seep_likely(memory->pages == NULL ||
                    seep_python_is_own(memory, from, bytes))) {
#ifdef SEEP_PYTHON_COPY_BYTEWISE
        for (size_t i = 0; i < bytes; i++) {
            ((volatile unsigned char *)to)[i] =
                ((const volatile unsigned char *)from)[i];
        }
#else
        memcpy(to, (const void *)from, bytes);
#endif
        return true;
    }
    return seep_python_read_pages(memory, to, from, bytes);
}

static inline bool seep_python_read_word(struct seep_python_memory *memory,
                                         uintptr_t from, uintptr_t *ret_word)
{
    return seep_python_read(memory, ret_word, from, sizeof(*ret_word));
}

/*
 * Where CPython keeps what a stack needs: from the headers of each released
 * version on a 64-bit Linux. From 3.13 on Python says the offsets itself, in
 * _Py_DebugOffsets: they must be the same.
 */

#define SEEP_PYTHON_MINOR_MIN 8U
#define SEEP_PYTHON_MINOR_MAX 15U
#define SEEP_PYTHON_OFFSET_NONE (-1)

/**
 * Of one version. Frames are PyFrameObject to 3.10, _PyInterpreterFrame from
 * 3.11 on.
 */
struct seep_python_offsets {
    unsigned int minor;
    int thread_id;         /* PyThreadState.thread_id, a pthread_t */
    int thread_frame;      /* .frame; 3.11, 3.12: .cframe; .current_frame */
    int cframe_current;    /* _PyCFrame.current_frame (3.11, 3.12) */
    int cframe_previous;   /* _PyCFrame.previous */
    int frame_back;        /* f_back or previous */
    int frame_code;        /* f_code or f_executable */
    int frame_instruction; /* f_lasti; from 3.11 on a pointer into the code */
    int frame_owner;
    int code_filename;
    int code_name;
    int code_qualname;
    int code_first_line;
    int code_lines;        /* co_lnotab; 3.10 and later: co_linetable */
    int code_instructions; /* co_code, a bytes object; 3.11 and later: where
                              they begin, their count is in ob_size */
    int text_header;       /* bytes of a PyASCIIObject */
};

/** The same in every version. */
enum {
    SEEP_PYTHON_OBJECT_TYPE = 8,
    SEEP_PYTHON_OBJECT_SIZE = 16, /* also the length of a str */
    SEEP_PYTHON_BYTES_DATA = 32,
    SEEP_PYTHON_TEXT_STATE = 32,
    SEEP_PYTHON_TYPE_BASIC_SIZE = 32,
    SEEP_PYTHON_TYPE_MEMBERS = 240,
    SEEP_PYTHON_MEMBER_BYTES = 40,
    SEEP_PYTHON_MEMBER_OFFSET = 16,
};

/** How many words of _Py_DebugOffsets are looked at; 0: the version has none */
size_t seep_python_offsets_words(unsigned int minor);

/**
 * The offsets of a version.
 *
 * @param hex    as PY_VERSION_HEX
 * @param words  the first seep_python_offsets_words() of _PyRuntime
 * @return SEEP_PYTHON_ON, or why there are none: then *ret_offsets is untouched
 */
enum seep_python_state
seep_python_offsets_find(uint32_t hex, const uint64_t *words,
                         struct seep_python_offsets *ret_offsets);

/** Is it an object of that type? */
static inline bool seep_python_is_a(struct seep_python_memory *memory,
                                    uintptr_t object, uintptr_t type)
{
    uintptr_t seen;

    return seep_python_is_plausible(object) &&
           seep_python_read_word(memory, object + SEEP_PYTHON_OBJECT_TYPE,
                                 &seen) &&
           seen == type;
}

static inline bool seep_python_read_int(struct seep_python_memory *memory,
                                        uintptr_t from, int32_t *ret_int)
{
    return seep_python_read(memory, ret_int, from, sizeof(*ret_int));
}

/*
 * What an interpreter exports. What is called of it takes no lock and makes no
 * object.
 */

/** A way to look up a name, in one object or in several in their order.
 * @return its address, or 0; @ret_bytes, its size, may be NULL */
typedef uintptr_t seep_python_lookup(const void *data, const char *name,
                                     size_t *ret_bytes);

/** An interpreter: never changed once another thread can see it. */
struct seep_python {
    struct seep_python_offsets offsets;
    uint32_t hex;        /* as PY_VERSION_HEX; 0: see Py_Version */
    uintptr_t version;   /* Py_Version (3.11 and later), or 0 */
    uintptr_t runtime;   /* _PyRuntime */
    uintptr_t code_type; /* PyCode_Type and so on */
    uintptr_t text_type;
    uintptr_t bytes_type;
    uintptr_t frame_type;
    uintptr_t evaluate_low; /* _PyEval_EvalFrameDefault */
    uintptr_t evaluate_high;
    void *(*current_state)(
        void);                /* from 3.12 on of the thread; before that of
                                 whoever holds the GIL: never to be walked */
    void *(*own_state)(void); /* of the thread, with the GIL or without */
    int (*is_finalizing)(void);
    int (*is_initialized)(void);
    uintptr_t start; /* the object it lies in */
    uintptr_t end;
    bool late; /* dlopened after the start: it may be unloaded */
};

/**
 * Find the symbols. Sets all but .offsets, .start, .end and .late.
 *
 * @return SEEP_PYTHON_ON; SEEP_PYTHON_NONE if there is no interpreter at all;
 *         else why this one is not for us
 */
enum seep_python_state seep_python_symbols_find(seep_python_lookup *lookup,
                                                const void *data,
                                                struct seep_python *ret_python);

/*
 * What a code object says of itself. Everything is checked before it is
 * followed (the type of each object, each length), so that a wrong offset ends
 * in `false`. What is copied is valid UTF-8. No pointer of Python's is to be
 * kept past the capture: a code object dies, and its address is used again.
 */

/** Which code object it is, to notice another at the same address. */
struct seep_python_identity {
    uint64_t code;
    uint64_t filename; /* where it lies, and how it ends */
    uint64_t name;     /* the qualified one, where there is one */
    uint64_t lines;
    uint64_t lines_bytes;
    uint64_t lines_head; /* its first and last 8 bytes */
    uint64_t lines_tail;
    int64_t first_line;
    uint64_t hash; /* of the above */
};

/** By products that do not wait for each other: the key of two caches. */
static inline uint64_t
seep_python_identity_hash(const struct seep_python_identity *identity)
{
    return identity->code * UINT64_C(0x9e3779b97f4a7c15) +
           identity->filename * UINT64_C(0xbf58476d1ce4e5b9) +
           identity->name * UINT64_C(0x94d049bb133111eb) +
           identity->lines * UINT64_C(0xd6e8feb86659fd93) +
           identity->lines_bytes * UINT64_C(0xff51afd7ed558ccd) +
           identity->lines_head * UINT64_C(0xc4ceb9fe1a85ec53) +
           identity->lines_tail * UINT64_C(0x87c37b91114253d5) +
           (uint64_t)identity->first_line * UINT64_C(0xa0761d6478bd642f);
}

bool seep_python_identify(const struct seep_python *python,
                          struct seep_python_memory *memory, uintptr_t code,
                          struct seep_python_identity *ret_identity);

/** The words that say which code object it is, as they were read: each group
 * says that the next one may be read. */
struct seep_python_proof {
    const struct seep_python *python; /* of which it is; NULL: nothing proves */
    uint64_t code[5];                 /* type, file, name, lines, first line */
    uint64_t objects[8];              /* of these: types, lengths, states */
    uint64_t parts[6];                /* how they begin or end */
    uintptr_t places[6];              /* of the parts */
};

/** A code object that was identified, and by which capture last. */
struct seep_python_known {
    uint64_t turn;
    uint32_t version; /* another one for another code object; not 0 */
    struct seep_python_proof proof;
    struct seep_python_identity identity;
};

/** Is it the code object that it was? By plain loads, a third of what it takes
 * to identify it. */
bool seep_python_is_proved(const struct seep_python *python, uintptr_t code,
                           const struct seep_python_proof *proof);

/** Note it for the next time, once it was identified. */
void seep_python_prove(const struct seep_python *python, uintptr_t code,
                       const struct seep_python_identity *identity,
                       struct seep_python_proof *ret_proof);

#define SEEP_PYTHON_KNOWN 128U

enum seep_python_text {
    SEEP_PYTHON_FILE, /* too long: its end is kept */
    SEEP_PYTHON_NAME, /* the qualified name from 3.11 on; its beginning is */
};

/**
 * Copy a name, with a NUL.
 *
 * @param size       of @buffer, at least 5
 * @param ret_bytes  without the NUL
 * @return false: @buffer may be partly written
 */
bool seep_python_text(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t code,
                      enum seep_python_text which, char *buffer, size_t size,
                      size_t *ret_bytes);

/*
 * The frames of the calling thread's state. Each has a code object, by its
 * type, or the walk fails as a whole.
 */

struct seep_python_frame {
    uintptr_t code;
    uintptr_t marker; /* an address in the C frame of the call of the evaluator
                         that runs it (3.11 and later); 0: not known */
    int32_t instruction; /* byte offset in the code; below 0: not begun */
    uint32_t version;    /* of .code, for which .word holds; 0: none yet */
    uintptr_t at;        /* where it lies */
    uint64_t word;       /* what the caller has made of code and instruction */
};

/** The last stack of whoever walked: what the next has of it is not walked. */
struct seep_python_kept {
    const struct seep_python *python; /* NULL: none is kept */
    size_t first;                     /* its innermost frame */
    struct seep_python_frame frames[SEEP_STACK_FRAMES_MAX];
    uint8_t numbers[256]; /* by a hash of where they lie, as a guess */
};

void seep_python_kept_forget(struct seep_python_kept *kept);

struct seep_python_chain {
    struct seep_python_frame *frames; /* innermost first; in .room, or .kept */
    struct seep_python_frame *room;
    struct seep_python_kept *kept; /* NULL: walk all of it, and keep nothing */
    size_t capacity;               /* of .room, at most SEEP_STACK_FRAMES_MAX */
    size_t count;
    bool truncated; /* there were more, before the last */
    bool whole;     /* from 3.11 on: it ends where the outermost call began */
};

/** @return false: something was not as the offsets say; chain->count is 0 */
bool seep_python_walk(const struct seep_python *python,
                      struct seep_python_memory *memory, uintptr_t state,
                      struct seep_python_chain *chain);

/** Are all of @chain code objects? To be asked behind a walk of frames only. */
bool seep_python_chain_is_code(const struct seep_python *python,
                               struct seep_python_memory *memory,
                               const struct seep_python_chain *chain);

/*
 * Is Python's memory what the offsets say? To be asked with pages, so that a
 * wrong answer is never a crash.
 */

/**
 * Settle the version and the offsets, and hold them against what the types of
 * the interpreter say of themselves. It need not have been initialised yet.
 *
 * @param python  with its symbols; .hex and .offsets are set
 * @return SEEP_PYTHON_PROBATION, or why Python is off
 */
enum seep_python_state
seep_python_check_types(struct seep_python *python,
                        struct seep_python_memory *memory);

/** Do the types have what python->offsets says? A part of the above. */
bool seep_python_types_agree(const struct seep_python *python,
                             struct seep_python_memory *memory);

/**
 * Check all that is known of the frames of a chain.
 *
 * @return SEEP_PYTHON_ON, or what was not as known
 */
enum seep_python_state
seep_python_check_chain(const struct seep_python *python,
                        struct seep_python_memory *memory,
                        const struct seep_python_chain *chain);

/* Lines, from the three forms of line tables. */

/**
 * The line of an instruction of a code object.
 *
 * @param instruction  byte offset; below 0: the first line
 * @param ret_line     0: the instruction has none
 * @return false if the table is not as expected
 */
bool seep_python_line(const struct seep_python *python,
                      struct seep_python_memory *memory,
                      const struct seep_python_identity *identity,
                      int32_t instruction, int32_t *ret_line);

/** As above, from a cache of lines. */
bool seep_python_line_cached(const struct seep_python *python,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int32_t instruction, int32_t *ret_line);

/** Is the whole table in step, and for @code_bytes of instructions? */
bool seep_python_lines_check(const struct seep_python *python,
                             struct seep_python_memory *memory,
                             const struct seep_python_identity *identity,
                             int64_t code_bytes);

/*
 * One stack of native frames and Python's, in the place where each ran. The
 * order of either kind is kept, and every Python frame is in it unless it is
 * full.
 */

struct seep_merged_frame {
    uintptr_t address; /* a pc as captured, or the code object */
    int32_t instruction;
    uint16_t number; /* of Python's: which frame of the chain */
    bool is_python;
};

struct seep_native_stack {
    const uintptr_t *pcs; /* innermost first */
    const uintptr_t *sps; /* the stack pointer of each */
    size_t count;
};

/**
 * Merge. The C frame of each call of the evaluator that ran the frames of
 * @chain is replaced by them.
 *
 * @param python  NULL: there is no chain
 * @return number of frames in @merged; *ret_full: there were more
 */
size_t seep_python_merge(const struct seep_python *python,
                         const struct seep_native_stack *native,
                         const struct seep_python_chain *chain,
                         struct seep_merged_frame *merged, size_t capacity,
                         bool *ret_full);

/* For hooks: which interpreter there is, and one capture. */

/** Look for an interpreter among what is loaded; from the constructor only. */
void seep_python_init(void);

/**
 * An object was seen for the first time: is it an interpreter? From inside a
 * hook, with @address on the calling thread's stack.
 */
void seep_python_consider(uintptr_t address);

enum seep_python_state seep_python_state(void);

/** Are Python frames to be had, as far as is known? */
bool seep_python_is_on(void);

/** Arenas of Python's own allocator, pymalloc; from 3.15 on it may have been
 * built for huge pages. */
#define SEEP_PYTHON_ARENA_BYTES_TO_3_9 (UINT64_C(256) << 10)
#define SEEP_PYTHON_ARENA_BYTES (UINT64_C(1) << 20)
#define SEEP_PYTHON_ARENA_BYTES_HUGE (UINT64_C(2) << 20)

/** Does Python's own allocator map an arena there, of that size? Who needs the
 * next one need not be who keeps objects in it. */
bool seep_python_is_arena(uintptr_t pc, size_t size_bytes);

/** As PY_VERSION_HEX; 0: none was found. */
uint32_t seep_python_version(void);

#define SEEP_PYTHON_FILE_BYTES 1024U
#define SEEP_PYTHON_NAME_BYTES 256U

/** One capture under way, with all that is too large for a hook's stack. What
 * each capture writes, also one without Python, is in its first line. */
struct seep_python_stack {
    _Alignas(64) _Atomic uintptr_t owner;
    uint64_t turn;                    /* which capture this is */
    const struct seep_python *python; /* NULL: native frames only */
    size_t native_count;
    uintptr_t own_low; /* by seep_python_stack_own() */
    uintptr_t own_high;
    /* A signal came to one of these: Python may be in the middle of changing
     * its chain, so that is read with care, and proves nothing. */
    bool interrupted;
    bool truncated; /* frames of either kind are missing */
    bool attached;  /* the thread holds the GIL */
    struct seep_python_memory memory;

    /* Filled by the caller: a native capture. */
    uintptr_t pcs[SEEP_STACK_FRAMES_MAX];
    uintptr_t sps[SEEP_STACK_FRAMES_MAX];

    /* Filled by seep_python_stack_fill(). */
    size_t count;
    struct seep_merged_frame merged[SEEP_STACK_FRAMES_MAX];
    struct seep_python_chain chain;
    struct seep_python_frame frames[SEEP_STACK_FRAMES_MAX];

    /* From one capture to the next. */
    struct seep_python_kept kept;
    struct seep_python_known known[SEEP_PYTHON_KNOWN];
    uint32_t versions; /* that were given to .known */

    /* Filled by seep_python_stack_text(). */
    char file[SEEP_PYTHON_FILE_BYTES];
    char name[SEEP_PYTHON_NAME_BYTES];
};

/** Take one of a few. @return NULL if all are in use: native only */
struct seep_python_stack *seep_python_stack_take(void);
void seep_python_stack_give(struct seep_python_stack *stack);

/** What may be read of the thread's own stack, which is [@low, @high): nothing
 * below @sp, nor anything while @sp is on another one. */
static inline void seep_python_stack_own(struct seep_python_stack *stack,
                                         uintptr_t sp, uintptr_t low,
                                         uintptr_t high)
{
    bool is_on_it = sp >= low && sp < high;

    stack->own_low = is_on_it ? sp : 0;
    stack->own_high = is_on_it ? high : 0;
}

/** Add the Python frames, if there are any, to the native ones. */
void seep_python_stack_fill(struct seep_python_stack *stack);

/** The file and the name of a code object, cut to what fits. */
bool seep_python_stack_text(struct seep_python_stack *stack, uintptr_t code);

/**
 * Identify a code object, once a capture: as long as its frames hold it, it is
 * what it is.
 *
 * @return NULL: it cannot be read any more
 */
const struct seep_python_known *
seep_python_stack_know(struct seep_python_stack *stack, uintptr_t code);

/** Use an interpreter that is made up, on probation. For tests. */
void seep_python_use(const struct seep_python *python);

/** In the child of a fork: other threads hold nothing any more. */
void seep_python_after_fork(void);

/** System calls are no longer welcome (seccomp): make none from now on. */
void seep_python_restrict(void);

#endif
