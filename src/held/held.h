/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * Who holds the blocks of a call site: from some of its live blocks upwards,
 * level by level, to what has a name.
 *
 * The target process is not stopped and not written to (unless .freeze_ms is
 * asked for), and no page of it is faulted in. Everything that is read of it is
 * hostile. What comes out is codes, figures and names of the program's own; no
 * content but names of attributes, variables, classes and modules: keys of
 * other dicts may be secrets.
 *
 * Units: bytes, seconds. Errors: 0 or negative errno; ret_* untouched.
 * Ownership: an answer and all its strings live until it is closed.
 * Threads: one at a time.
 */
#ifndef SEEP_HELD_HELD_H
#define SEEP_HELD_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct seep_held_block {
    uint64_t address;
    uint64_t bytes;
};

struct seep_held_question {
    pid_t pid;
    const char *core_path; /* NULL: the living process */
    /* /proc/PID/mem, opened by who may where this process may not (yama lets
     * ancestors); stays the asker's. 0: none */
    int memory_fd;
    uint64_t recording_inode; /* of the file that is read; 0: not known */
    uint32_t python_version;  /* as PY_VERSION_HEX; 0: none */
    const struct seep_held_block *blocks;
    size_t block_count;
    /* Blocks of so many call sites, each behind the other, that are asked about
     * in the same passes; where those of each end. 0: of one. */
    const size_t *part_ends;
    size_t part_count;
    const struct seep_held_block *known; /* live blocks by address; may be
                                            none */
    size_t known_count;
    bool is_of_driver; /* .blocks are of a driver, which gave the addresses:
                          what is there is not looked at */
    bool is_cached;    /* made of what an allocator took from the driver: it
                          knows where they are, and holds none */
    /* Which of the blocks still live, asked at the end; NULL: all. */
    void (*still_live)(void *context, const struct seep_held_block *blocks,
                       size_t count, bool *ret_live);
    void *context;
    uint32_t freeze_ms;   /* stop the process for at most so long; 0: never */
    double cpu_limit_s;   /* of this process's time; 0: by the memory's size, */
    uint32_t share_count; /* shared by so many questions; 0: one */
    bool without_wall;    /* for tests that try many: files of ELF are read in
                             this process */
};

/** How a thing holds the one below it: X(SYMBOL, "name in JSON"). */
#define SEEP_HELD_EDGES(X)                                    \
    X(NONE, "root")             /* a root has it */           \
    X(ITEM, "item")             /* of a list, tuple, deque */ \
    X(KEY, "key")               /* value of a dict's key */   \
    X(KEY_ITSELF, "key_itself") /* as the key */              \
    X(MEMBER, "member")         /* of a set */                \
    X(ATTRIBUTE, "attribute")   /* .name is its name */       \
    X(LOCAL, "local")           /* .name of .function */      \
    X(OPERAND, "operand")       /* of a running function */   \
    X(DATA, "data")             /* its buffer */              \
    X(OFFSET, "offset")         /* .offset_bytes in it */     \
    X(CHAIN, "chain")           /* over others like it */

enum seep_held_edge {
#define SEEP_HELD_EDGE_VALUE(symbol, name) SEEP_HELD_EDGE_##symbol,
    SEEP_HELD_EDGES(SEEP_HELD_EDGE_VALUE)
#undef SEEP_HELD_EDGE_VALUE
        SEEP_HELD_EDGE_COUNT
};

/** What a thing is: X(SYMBOL, "name in JSON"). */
#define SEEP_HELD_KINDS(X)                                           \
    X(BLOCK, "block")           /* no type is known */               \
    X(OBJECT, "object")         /* of CPython: .name is its class */ \
    X(CXX_OBJECT, "cxx_object") /* .name is its class */             \
    X(MODULE, "module")         /* .name */                          \
    X(CLASS, "class")           /* .name */                          \
    X(GLOBAL, "global")         /* .name; .file: of which image */   \
    X(THREAD_LOCAL, "thread_local")                                  \
    X(STACK, "stack") /* .name: the thread; .function */             \
    X(FRAME, "frame") /* .name: the variable; .function, .file */    \
    X(MAPPING, "mapping")

enum seep_held_kind {
#define SEEP_HELD_KIND_VALUE(symbol, name) SEEP_HELD_KIND_##symbol,
    SEEP_HELD_KINDS(SEEP_HELD_KIND_VALUE)
#undef SEEP_HELD_KIND_VALUE
        SEEP_HELD_KIND_COUNT
};

/** One step of a chain: a thing, and how it has the one before it. */
struct seep_held_step {
    enum seep_held_edge edge;
    const char *edge_name;     /* "" if it has none */
    const char *edge_function; /* of a local */
    int64_t offset_bytes;
    enum seep_held_kind kind;
    const char *name; /* "" if not known */
    const char *function;
    const char *file;
    uint64_t address;
    uint64_t bytes; /* of a block; 0: not known */
    uint64_t items; /* of a container */
    bool has_items;
    /* What may be asked of its type, which is not done here; of what was kept
     * nothing: */
    const char *type_file;   /* the library or program that has it; NULL or "":
                                none is known, */
    const char *type_symbol; /* of it the class by its type information, or ""
                                for a variable, */
    uint64_t type_address;   /* and in it the variable, of a class some code */
    int64_t hop_bytes; /* from where the next step up points to, or from its
                          beginning, to its own word; < 0: not known */
};

/** How a group of blocks is held: X(SYMBOL, "name in JSON"). */
#define SEEP_HELD_ENDS(X)                                            \
    X(HELD, "held")            /* by a root that has a name */       \
    X(WEAKLY_NAMED, "unclear") /* a stack, a mapping, the runtime */ \
    X(UNROOTED, "unrooted")    /* there are holders, and no root */  \
    X(CYCLE, "cycle")          /* they hold only each other */       \
    X(MOVED, "moved")          /* what points to it had moved on */  \
    X(LOST, "lost")            /* no pointer was found: to it, or to \
                                  what the steps end at */

enum seep_held_end {
#define SEEP_HELD_END_VALUE(symbol, name) SEEP_HELD_END_##symbol,
    SEEP_HELD_ENDS(SEEP_HELD_END_VALUE)
#undef SEEP_HELD_END_VALUE
        SEEP_HELD_END_COUNT
};

/** Blocks that one thing holds. */
struct seep_held_group {
    enum seep_held_end end;
    bool is_object; /* what the way ends at is an object of CPython */
    size_t block_count;
    const struct seep_held_step *steps; /* from the block up to the root */
    size_t step_count;
    size_t holder; /* the step that all of them share first; step_count: none */
    size_t call_count; /* > 1: that is a variable of a function that runs so
                          many times at once, and each call has some of them */
    bool shares_edge;  /* and the holder has all of them by the same word, or
                          else by these, from its beginning: */
    const uint64_t *edge_offsets;
    size_t edge_count; /* of each block, if it is not 0 */
};

/** What came out for one of several call sites. */
struct seep_held_part {
    size_t asked_count;
    size_t group_first;
    size_t group_count;
};

struct seep_held_answer {
    size_t asked_count; /* blocks that were looked for and still lived */
    const struct seep_held_group *groups; /* most blocks first; of several call
                                             sites those of each */
    size_t group_count;
    const struct seep_held_part *parts; /* as many as were asked for */
    size_t part_count;
    uint32_t level_count;
    uint32_t try_count;
    uint64_t level_bytes; /* read, a level */
    uint64_t swapped_bytes;
    uint64_t failed_bytes;
    double elapsed_s;
    double cpu_s;
    double frozen_s;
    double cpu_limit_s;
    bool was_cut_short;     /* by a limit of time, levels or memory */
    bool was_late;          /* by that of time */
    uint64_t missing_bytes; /* of a core that is not whole: nothing is told as
                               lost */
    const char *other_file; /* of a core: at a path is another file than the
                               process had, which was not read; NULL: none */
    const char *nameless_path; /* the first file whose names could not be read,
                                  and why, as of the wall; NULL: none */
    int nameless_error;
    struct seep_store *store;
};

/** Are objects of this version known, as PY_VERSION_HEX? 0: there is no Python.
 * Of others blocks alone are told. */
bool seep_held_knows_python(uint32_t version);

/**
 * Ask. @return 0; -ESRCH: the process is gone; -EACCES or -EPERM: this user may
 * not read it; -EXDEV: it is to be stopped, and does not write the recording;
 * -ENOEXEC: no core file; -ENOMEM
 */
int seep_held_ask(const struct seep_held_question *question,
                  struct seep_held_answer **ret_answer);

/** NULL is fine. */
void seep_held_close(struct seep_held_answer *answer);

#endif
