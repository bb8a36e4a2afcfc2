/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * A recording, byte by byte: what the preloaded library writes while the
 * worker runs and what every reader reads, live or after its death.
 *
 * The file is one MAP_SHARED mapping of fixed size, most of it a hole: a page
 * is on the disk once something is in it. All numbers are little-endian. The
 * header names where each section lies:
 *
 *   offset   bytes                       what
 *   0        4096                        struct seep_rec_header
 *   each section starts at a multiple of 4096, in this order:
 *   COUNTERS   8 x SEEP_COUNTER_COUNT    losses, totals, own cost
 *   SHARDS     struct seep_rec_shard[]   fold state, one a ring
 *   TIMELINE   struct seep_rec_moment[]  the process, one entry a bucket
 *   STRINGS    bytes                     NUL-terminated strings, append-only
 *   MODULES    struct seep_rec_module[]  loaded objects, append-only
 *   CODES      struct seep_rec_code[]    what other frames name, append-only
 *   FRAMES     uint64_t[]                frames of all stacks, append-only
 *   STACKS     struct seep_rec_stack[]   stack -> frames, append-only
 *   SITES      struct seep_rec_site[]    (stack, space, device) -> totals,
 *                                        append-only
 *   BRIEFS     struct seep_rec_brief[]   bounded pool, short time series
 *   SERIES     struct seep_rec_series[]  bounded pool, a site's time series
 *   DEVICES    struct seep_rec_device[]  what the GPUs have left, as TIMELINE
 *   MARKS      struct seep_rec_mark[]    what the program said, append-only
 *   RINGS      struct seep_rec_event[]   shard_count x ring_slots
 *   LIVE       struct seep_rec_live[]    sum of the shards' live_slots, of each
 *                                        shard the first ones are in use
 *
 * A recording is valid if and only if
 *   1. magic, byte_order and format_major are the ones below;
 *   2. fixed_hash is the hash of the header's first fixed_bytes bytes (with
 *      fixed_hash itself as 0): nothing there changes after creation;
 *   3. file_bytes is not larger than the file, and every section lies inside
 *      it, page-aligned, in order, without overlap, with bytes equal to
 *      entry_bytes x entry_count and the entry_bytes that this header gives;
 *   4. counts that index (shards, slots) are powers of two where the field
 *      says so.
 * A page that was never written reads as zeros: an empty slot, no entry.
 * Everything behind the fixed part is written while a reader looks, and by a
 * process that may have been killed between any two stores. So of it only
 * this is promised, and a reader checks even this:
 *   5. a module, a code, a mark and a site count when .state is
 *      SEEP_PUBLISHED, a stack when .frame_count is not 0: then the other
 *      fixed fields were written before;
 *   6. a site's totals and series are read as one between two equal, even
 *      reads of .lock; an odd one means that a writer is in it, or died in
 *      it: then the last event may be half applied, and is counted as torn;
 *   7. a live entry counts when .address is not 0;
 *   8. an event at ring position p is ready when .state says (p, READY), and
 *      is applied in the order of p, from the shard's .head on.
 *
 * Units: sizes are bytes, times are ticks of 2^20 ns (1.05 ms) since
 * start_monotonic_ns unless the name says _ns. A bucket of a series covers
 * 2^width_log2 ticks; bucket i of every series of one width is the same span.
 * Counts named _q16 carry 16 fractional bits: a sampled block stands for
 * 1/p blocks.
 *
 * Eras: a process that ends frees what it leaked, so how it stood before must
 * be known behind it. Moments to go back to are the edges of eras, which are
 * the same for all sites: every 8th bucket of the narrowest width that holds
 * the tick, and .final_tick, behind which there is no other.
 *
 * Threads: any number of threads of one process write, any number of readers
 * in other processes read. Fields that change are _Atomic and word-sized.
 */
#ifndef SEEP_RECORDING_H
#define SEEP_RECORDING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "seep/counters.h"
#include "seep/stack.h"

#define SEEP_MAGIC "seeprec\n"
#define SEEP_FORMAT_MAJOR 7U
#define SEEP_FORMAT_MINOR 0U
#define SEEP_BYTE_ORDER 0x01020304U
#define SEEP_PAGE_BYTES 4096U

#define SEEP_BUCKET_COUNT 128U
#define SEEP_TICK_LOG2_NS 20U
#define SEEP_FIRST_WIDTH_LOG2 4U /* 16 ticks: 128 buckets are 2.1 s */
#define SEEP_ERA_BUCKETS 8U
#define SEEP_ERAS_KEPT 3U
#define SEEP_BRIEF_BUCKETS 6U
#define SEEP_BRIEF_DIED 5U
#define SEEP_SERIES_IS_BRIEF (UINT32_C(1) << 31)
#define SEEP_BUILD_ID_MAX 32U
#define SEEP_STASH_COUNT 16U
#define SEEP_COUNT_ONE (UINT64_C(1) << 16)
#define SEEP_DEVICES_MAX 8U
#define SEEP_MARKS_MAX 1024U

#define SEEP_PUBLISHED 2U

/** Files that `seep run` keeps beside a recording, NAME and this. */
#define SEEP_EXTERNAL_SUFFIX ".looks" /* its process, seen from outside */
#define SEEP_HELD_SUFFIX ".held"      /* who held what leaked */

/**
 * Frames are 64 bits: module id in the upper 16, offset into the module's
 * file image (address minus load bias) in the lower 48. Module id 0 is "no
 * object": the offset is then the absolute address (JIT code, say).
 * Every address is that of the call, not of the return (return address - 1),
 * except a frame that a signal interrupted.
 *
 * With bit 63 set, which no module id has, a frame is none of machine code:
 * bits 24 to 62 are an index in CODES, the lower 24 a line there, 0 if it is
 * not known. A stack has its Python frames where the interpreter ran them, and
 * last, if the thread has a name of its own, that name.
 */
#define SEEP_FRAME_OFFSET_BITS 48U
#define SEEP_FRAME_OFFSET_MASK ((UINT64_C(1) << SEEP_FRAME_OFFSET_BITS) - 1)
#define SEEP_MODULE_NONE 0U
#define SEEP_MODULES_MAX 0x7fffU
#define SEEP_FRAME_IS_CODE (UINT64_C(1) << 63)
#define SEEP_FRAME_LINE_BITS 24U
#define SEEP_FRAME_LINE_MASK ((UINT64_C(1) << SEEP_FRAME_LINE_BITS) - 1)
#define SEEP_CODE_NONE 0U /* entry 0 of CODES: a frame whose name is lost */

/** What an entry of CODES is. */
enum seep_code_kind {
    SEEP_CODE_PYTHON = 1, /* a code object: file, qualified name, first line */
    SEEP_CODE_THREAD = 2, /* the name of a thread; no file, no line */
};

/** What its names say of it, as the target process guesses. */
enum seep_code_trait {
    SEEP_CODE_IS_USERS = 1,    /* its file belongs to no library of Python's */
    SEEP_CODE_IS_IMPORTER = 2, /* Python's import machinery */
    SEEP_CODE_IS_MODULE = 4,   /* the body of a module */
};

/** The spaces a block can live in: X(SYMBOL, value, "name in JSON"). */
#define SEEP_SPACES(X)             \
    X(HEAP, 0, "heap")             \
    X(MAPPED, 1, "mapped")         \
    X(PYTHON, 2, "python")         \
    X(PINNED, 3, "pinned")         \
    X(MANAGED, 4, "managed")       \
    X(DEVICE, 5, "device")         \
    X(TENSOR, 6, "tensor")         \
    X(REGISTERED, 7, "registered") \
    X(RESERVED, 8, "reserved")     \
    X(IMPORTED, 9, "imported")     \
    X(FILE, 10, "file")

enum seep_space {
#define SEEP_SPACE_VALUE(symbol, value, name) SEEP_SPACE_##symbol = (value),
    SEEP_SPACES(SEEP_SPACE_VALUE)
#undef SEEP_SPACE_VALUE
        SEEP_SPACE_COUNT = 11
};

/** Why a process carries us and records nothing: X(SYMBOL, value, words). */
#define SEEP_INERT_REASONS(X)                                            \
    X(NONE, 0, "recording")                                              \
    X(OWN_MALLOC, 1, "the program brings its own malloc")                \
    X(SANITIZER, 2, "the program runs under a sanitizer")                \
    X(VALGRIND, 3, "the program runs under valgrind")                    \
    X(ADDRESSES, 4,                                                      \
      "the limit of address space (ulimit -v) leaves no room to record") \
    X(DATA, 5, "the limit of data (ulimit -d) leaves no room to record") \
    X(COMMIT, 6,                                                         \
      "the machine commits to too little memory (vm.overcommit_memory=2)")

enum seep_inert_reason {
#define SEEP_INERT_VALUE(symbol, value, words) SEEP_INERT_##symbol = (value),
    SEEP_INERT_REASONS(SEEP_INERT_VALUE)
#undef SEEP_INERT_VALUE
        SEEP_INERT_COUNT = 7
};

/** The sections, in file order: X(SYMBOL). */
#define SEEP_SECTIONS(X) \
    X(COUNTERS)          \
    X(SHARDS)            \
    X(TIMELINE)          \
    X(STRINGS)           \
    X(MODULES)           \
    X(CODES)             \
    X(FRAMES)            \
    X(STACKS)            \
    X(SITES)             \
    X(BRIEFS)            \
    X(SERIES)            \
    X(DEVICES)           \
    X(MARKS)             \
    X(RINGS)             \
    X(LIVE)

enum seep_section {
#define SEEP_SECTION_VALUE(symbol) SEEP_SECTION_##symbol,
    SEEP_SECTIONS(SEEP_SECTION_VALUE)
#undef SEEP_SECTION_VALUE
        SEEP_SECTION_COUNT
};

struct seep_rec_section {
    uint64_t offset_bytes; /* from the start of the file */
    uint64_t bytes;        /* entry_bytes x entry_count */
    uint32_t entry_bytes;
    uint32_t entry_count;
};

/** Offset of a string in STRINGS; 0 is the empty string. */
typedef uint32_t seep_string;

/** What setrlimit() allows of the addresses of a process, and what it has. */
struct seep_rec_bound {
    _Atomic uint64_t limit_bytes; /* 0: none, or not known */
    _Atomic uint64_t used_bytes;
};

struct seep_rec_header {
    /* fixed part: never changes after creation, covered by fixed_hash */
    char magic[8];
    uint32_t format_major;
    uint32_t format_minor;
    uint32_t byte_order;
    uint32_t header_bytes; /* sizeof(struct seep_rec_header) */
    uint32_t fixed_bytes;  /* offsetof(.., sample_log2) */
    uint32_t elf_machine;  /* EM_X86_64, EM_AARCH64 */
    uint64_t fixed_hash;
    uint64_t file_bytes;
    struct seep_rec_section sections[SEEP_SECTION_COUNT];
    uint64_t start_realtime_ns;   /* CLOCK_REALTIME at creation */
    uint64_t start_monotonic_ns;  /* CLOCK_MONOTONIC_COARSE at creation */
    uint64_t start_cycles;        /* time stamp counter at creation */
    uint64_t process_start_clock; /* field 22 of /proc/self/stat; 0 unknown */
    uint64_t pid_namespace;       /* inode of /proc/self/ns/pid; 0 unknown */
    uint64_t memory_total_bytes;  /* RAM of the machine; 0 unknown */
    char boot_id[40];             /* NUL-terminated; empty if unknown */
    char host[64];                /* NUL-terminated */
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t is_fork;           /* 1: a fork of a recorded process, no exec */
    uint32_t inert;             /* enum seep_inert_reason */
    uint32_t exact;             /* 1: began in exact mode */
    uint32_t unwinder;          /* enum seep_unwinder */
    uint32_t shard_count;       /* heap shards, a power of two; one more, the
                                   last, is for ranges (spaces mapped,
                                   file) */
    uint32_t ring_slots;        /* events a shard, a power of two */
    uint32_t live_slots;        /* live entries a shard, a power of two */
    uint32_t range_slots;       /* live entries of the last shard, ditto */
    uint32_t clock_ticks_per_s; /* of process_start_clock */
    seep_string executable;
    seep_string arguments; /* argument_count strings, one after the other */
    uint32_t argument_count;
    seep_string labels;    /* SEEP_LABELS as it was */
    seep_string allocator; /* path of the object that defines malloc */
    seep_string seep_version;
    seep_string rejected_options; /* SEEP_ variables that were not understood,
                                     a line each: NAME=VALUE, or NAME where it
                                     is no variable of ours */
    uint16_t first_sample_log2;   /* sample_log2 as it began */
    uint16_t settled_sample_log2; /* what seep itself costs may double the mean
                                     up to this; 0: a mean was asked for */
    uint32_t budget; /* of 100,000: what it costs may double the mean further,
                        SEEP_BUDGET; 0: none was given */

    /* changing part */
    _Atomic uint32_t
        sample_log2;             /* mean sampling interval is 2^this; 0 exact */
    _Atomic uint32_t ready;      /* SEEP_PUBLISHED once everything stands */
    _Atomic uint32_t exited;     /* 1: the exit destructor ran */
    _Atomic uint32_t exit_tick;  /* of its end, or of when `seep run` reaped one
                                    that was killed */
    _Atomic uint32_t has_status; /* 1: `seep run` reaped it; then .status */
    _Atomic uint32_t status;     /* as wait() gives it */
    _Atomic uint32_t module_count;
    _Atomic uint32_t series_count;
    _Atomic uint32_t site_count;
    _Atomic uint32_t stack_count;
    _Atomic uint64_t string_bytes_used;
    _Atomic uint64_t frames_used;
    _Atomic uint64_t progress_units; /* seep_progress() */
    _Atomic uint64_t module_epoch;   /* bumped before and after a dlclose */
    _Atomic uint64_t last_cycles;    /* time stamp counter and clock at the */
    _Atomic uint64_t last_ns;        /* last moment of the timeline */
    _Atomic uint32_t code_count;
    _Atomic uint32_t python_state;   /* enum seep_python_state */
    _Atomic uint32_t python_version; /* as PY_VERSION_HEX; 0 none */
    _Atomic uint32_t python_objects; /* enum seep_python_objects */
    _Atomic uint32_t mark_count;
    _Atomic uint32_t mark_order; /* the last that was given to a mark */
    _Atomic uint32_t final_tick; /* exit() was called then; 0: it was not */
    _Atomic uint32_t brief_count;
    _Atomic uint32_t minor; /* 1: ended within a second in order, and held no
                               call site of 1 MiB */
    _Atomic uint32_t removed_count; /* recordings that went from the folder, as
                                       it was over its bounds (SEEP_KEEP), when
                                       this one began, */
    _Atomic uint64_t removed_bytes; /* and what they took of the disk */
    _Atomic uint32_t title;         /* in STRINGS: what it called itself since
                                       (setproctitle); 0: it is as .arguments */
    _Atomic uint32_t failed_tick;   /* the last allocation that failed */
    _Atomic uint64_t failed_count;
    _Atomic uint64_t failed_bytes;       /* that the last one asked for */
    struct seep_rec_bound address_space; /* RLIMIT_AS, at the last moment */
    struct seep_rec_bound data;          /* RLIMIT_DATA, then */
    _Atomic uint32_t failed_site;        /* of the last one; 0: not known */
    _Atomic uint32_t rose_tick; /* the last time that .sample_log2 rose; 0:
                                   never, or in the first tick */
    _Atomic uint32_t tensor_doublings; /* the mean of tensors is 2^(sample_log2
                                          + this): their cost doubled it */
    _Atomic uint32_t closed_tick; /* its memory was given back to the program
                                     then, which has a limit; 0: it was not */
    _Atomic uint64_t image_stack; /* where the stack of the program began, field
                                     28 of /proc/self/stat, which an exec
                                     changes; 0: not known */
    _Atomic uint64_t processor_ns; /* of all its threads, at the last moment of
                                      the timeline; 0: not known */
    uint8_t reserved[SEEP_PAGE_BYTES - 864];
};

/** One loaded object. Written once, then only .unloaded_tick changes. */
struct seep_rec_module {
    _Atomic uint32_t state;         /* SEEP_PUBLISHED when the rest is valid */
    _Atomic uint32_t unloaded_tick; /* 0: not seen to go */
    uint64_t start;                 /* first mapped address */
    uint64_t end;
    uint64_t bias; /* address minus this is the offset in the file image */
    seep_string path;
    uint32_t build_id_bytes;
    uint8_t build_id[SEEP_BUILD_ID_MAX];
};

/** What a frame with SEEP_FRAME_IS_CODE names. Entry 0 is none. */
struct seep_rec_code {
    _Atomic uint64_t key;   /* hash of the rest; 0: of none */
    _Atomic uint32_t state; /* SEEP_PUBLISHED when the rest is valid */
    uint32_t kind;          /* enum seep_code_kind */
    seep_string file;
    seep_string name;
    uint32_t first_line; /* 0: not known */
    uint32_t traits;     /* of enum seep_code_trait */
};

/**
 * A stack has its inner frames of its own, and its outer ones from another that
 * came before it: the outermost .shared_count of .shared_stack, which may have
 * some of them from a third, and so on, each with at least one of its own.
 */
struct seep_rec_stack {
    _Atomic uint64_t key;         /* hash of the frames; 0: of none */
    _Atomic uint32_t frame_count; /* in all; 0: not published */
    uint32_t first_frame;         /* own ones in FRAMES, innermost first */
    uint32_t shared_stack;        /* index in STACKS */
    uint16_t shared_count;        /* fewer than frame_count */
    uint16_t cut;                 /* enum seep_cut */
};

/**
 * What one call stack holds in one space. live = allocated - freed, always.
 * Entry 0 is no call site: what could not be charged to one.
 */
struct seep_rec_site {
    _Atomic uint64_t lock; /* owner's thread id << 32 | sequence */
    _Atomic uint64_t key;  /* hash of (stack, space, device); 0: of none */
    _Atomic uint32_t state;
    uint32_t space; /* enum seep_space */
    uint32_t stack; /* index in STACKS */
    /* index in SERIES + 1, or in BRIEFS + 1 with SEEP_SERIES_IS_BRIEF; 0 none:
     * of one allocation, and a free of all of it, the totals say all */
    _Atomic uint32_t series;
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t freed_bytes;
    _Atomic uint64_t allocated_count_q16;
    _Atomic uint64_t freed_count_q16;
    _Atomic uint64_t peak_bytes;
    _Atomic uint64_t largest_bytes; /* largest single block */
    _Atomic uint32_t first_tick;
    _Atomic uint32_t last_tick;
    _Atomic uint64_t event_count; /* events applied, not weighted */
    uint32_t device;              /* ordinal + 1; 0: none, or not known */
    /* The edge of the era of its last event, and what stood here at that
     * moment; see seep_era_edge(). */
    _Atomic uint32_t edge_tick;
    _Atomic uint64_t edge_allocated_bytes;
    _Atomic uint64_t edge_freed_bytes;
    _Atomic uint64_t edge_live_count_q16;
};

/**
 * One site, one bucket. The bytes born in it are allocated_bytes. The last two
 * are on a grid of ages instead: of the blocks that died at an age of
 * [i, i + 1) widths, whenever that was. Neighbours merge as all else does, so
 * at any end of the run T what died at an age of at least some edge of the
 * grid is known exactly.
 */
struct seep_rec_bucket {
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t freed_bytes;
    _Atomic uint64_t low_bytes; /* lowest live bytes inside the bucket */
    _Atomic uint64_t born_count_q16;
    _Atomic uint64_t born_freed_bytes; /* of those born here, freed since */
    _Atomic uint64_t born_freed_count_q16;
    _Atomic uint64_t died_bytes; /* by age, see above */
    _Atomic uint64_t died_count_q16;
};

/**
 * Of a site in one era, by bucket of birth: what was born before the era's edge
 * and died in the era. So a site as it stood at the edge can be told from what
 * its end made of it: those deaths did not happen, those born since were not.
 * A word is two floats, bytes below and blocks above; 0 is none.
 */
struct seep_rec_era {
    _Atomic uint64_t died[SEEP_BUCKET_COUNT];
};

struct seep_rec_series {
    _Atomic uint32_t site;
    _Atomic uint32_t width_log2; /* ticks */
    _Atomic uint32_t last;       /* last bucket touched */
    _Atomic uint32_t
        first_tick; /* the series begins here, the site maybe not */
    _Atomic uint64_t base_bytes; /* live bytes at first_tick */
    /* Of the last eras with such deaths, the later first. In an era that is not
     * among them, and not before all of them, there were none. */
    _Atomic uint32_t era_edges[SEEP_ERAS_KEPT];
    uint32_t reserved_eras;
    /* Of blocks that the process looked at, see SEEP_TOUCHED_SHIFT, all bytes,
     * and those that were resident or in swap; halved together now and then, so
     * that the last looks count most. For whom the blocks are gone. */
    _Atomic uint64_t looked_bytes;
    _Atomic uint64_t touched_bytes;
    /* Of these, what is not in the page table of this process: pages of shared
     * memory that others wrote. Not of its resident memory. */
    _Atomic uint64_t elsewhere_bytes;
    struct seep_rec_bucket buckets[SEEP_BUCKET_COUNT];
    struct seep_rec_era eras[SEEP_ERAS_KEPT];
};

/**
 * The series of a site that few buckets have anything of: those alone, in any
 * order. It says what a series of the same events would. Once it would need
 * more than it has it becomes one, and stays as an entry that none refers to.
 */
struct seep_rec_brief_died { /* as a word of a seep_rec_era */
    _Atomic uint32_t edge;   /* of the era that it died in */
    _Atomic uint32_t bucket; /* of its birth */
    _Atomic uint64_t died;   /* 0: unused */
};

struct seep_rec_brief {
    _Atomic uint32_t site;
    _Atomic uint32_t width_log2;
    _Atomic uint32_t last;
    _Atomic uint32_t first_tick;
    _Atomic uint64_t base_bytes;
    _Atomic uint64_t numbers; /* of the buckets: a byte each, + 1; 0 unused */
    uint64_t reserved[2];
    struct seep_rec_brief_died died[SEEP_BRIEF_DIED];
    struct seep_rec_bucket buckets[SEEP_BRIEF_BUCKETS];
};

/** The process at one moment, the last one taken inside the bucket. */
struct seep_rec_moment {
    _Atomic uint64_t tick; /* 0: none was taken in this bucket */
    _Atomic uint64_t rss_bytes;
    _Atomic uint64_t shared_bytes; /* of rss: files and shared memory */
    _Atomic uint64_t cgroup_bytes; /* 0: unknown, as below */
    _Atomic uint64_t cgroup_limit_bytes;
    /* What the allocator says of itself, 0: it does not tell. In bytes:
     * allocated  handed out (jemalloc stats.allocated; glibc uordblks + hblkhd)
     * active     in pages that hold at least one block (jemalloc stats.active)
     * resident   that it holds of the system and could be resident (jemalloc
     *            stats.resident; glibc arena + hblkhd)
     * retained   address space kept without memory (jemalloc stats.retained) */
    _Atomic uint64_t allocator_allocated_bytes;
    _Atomic uint64_t allocator_active_bytes;
    _Atomic uint64_t allocator_resident_bytes;
    _Atomic uint64_t allocator_retained_bytes;
    _Atomic uint64_t progress_units;
    _Atomic uint64_t low_rss_bytes; /* lowest of the moments in this bucket */
    _Atomic uint64_t sample_log2;   /* of then: a step marks a thinning */
    _Atomic uint64_t swap_bytes;    /* of the process, in swap; 0 unknown */
    _Atomic uint64_t allocator_free_chunks; /* among which its free bytes are */
    _Atomic uint64_t own_bytes;    /* of shared: this recording; 0 unknown */
    _Atomic uint64_t mapped_bytes; /* resident or in swap, of the mappings that
                                      are live in LIVE; 0: not looked at */
};

/**
 * A device at one moment, the last one taken inside the bucket: entry
 * device * SEEP_BUCKET_COUNT + bucket, on the grid of TIMELINE as a whole: of
 * one width at a time, which is that of the last tick in DEVICES. What the
 * driver did not tell is 0.
 */
struct seep_rec_device {
    _Atomic uint64_t tick;       /* 0: none was taken in this bucket */
    _Atomic uint64_t free_bytes; /* of the device: all processes share it */
    _Atomic uint64_t total_bytes;
    _Atomic uint64_t low_free_bytes; /* lowest of the moments in this bucket */
    _Atomic uint64_t pool_reserved_bytes; /* default pool of the device; less */
    _Atomic uint64_t pool_used_bytes;     /* this, it is the pool's cache */
    _Atomic uint64_t
        graph_reserved_bytes; /* memory nodes of graphs, likewise */
    _Atomic uint64_t graph_used_bytes;
    _Atomic uint64_t tensor_reserved_bytes;  /* segments of PyTorch's cache */
    _Atomic uint64_t tensor_allocated_bytes; /* what it handed out of these */
    _Atomic uint64_t held_bytes; /* by calls of this process then, in space
                                    device: what they did since is known */
    uint64_t reserved[5];
};

enum seep_mark_kind {
    SEEP_MARK_MOMENT = 1, /* seep_mark(): .name; .text is empty */
    SEEP_MARK_LABEL = 2,  /* seep_label(): .name is the key, .text its value */
};

/**
 * What the program said of itself. A label that is given again, with the value
 * that it has there, is the same entry with another tick and a higher order:
 * of the entries of one key the one of the highest order holds.
 */
struct seep_rec_mark {
    _Atomic uint32_t state; /* SEEP_PUBLISHED when the rest is valid */
    uint32_t kind;          /* enum seep_mark_kind */
    _Atomic uint32_t tick;  /* when it was last given, as .order */
    _Atomic uint32_t order; /* from mark_order: who spoke first */
    seep_string name;
    seep_string text;
    uint64_t units; /* of work, told by the time of the first */
};

/**
 * One entry of a shard's live table, open addressing. For ranges (last shard)
 * an entry is one contiguous piece that is still mapped.
 *
 * Windows of SEEP_WINDOW_SLOTS are in use one after the other, and the home of
 * an address is in one of these: linear hashing (Litwin 1980). Its hash chooses
 * among the next power of two of them; of those that are not in use yet it is
 * the one with the highest bit left out.
 */
struct seep_rec_live {
    _Atomic uint64_t address; /* 0: empty */
    /* size in 48 bits | sample_log2 << 48 | touched << SEEP_TOUCHED_SHIFT |
     * SEEP_LIVE_FRAGMENT */
    _Atomic uint64_t size_level;
    _Atomic uint32_t site;
    _Atomic uint32_t birth_tick;
};

#define SEEP_WINDOW_SLOTS 64U
/** Blocks of the same 256 bytes have neighbouring homes (format/live.c). */
#define SEEP_LIVE_GROUP_LOG2 8U

/** What is no address of the process, but names a thing of the CUDA driver: its
 * upper byte is not 0. All of these are recorded, none is sampled or thinned.
 */
#define SEEP_ADDRESS_IS_KEY(address) ((uint64_t)(address) >> 56 != 0)

/** The upper byte of such a key: by what the thing is known. The rest of it is
 * that value, of a SEEP_CUDA_HANDLE shifted by 4; or with SEEP_KEY_IS_OTHER the
 * number of a second thing that has the same. */
enum seep_cuda_kind {
    SEEP_CUDA_POINTER = 1, /* CUdeviceptr: alloc, pitch, managed, async, pool,
                              imported from a pool, buffer of an external */
    SEEP_CUDA_HOST = 2,    /* pinned: cuMemHostAlloc, cuMemAllocHost */
    SEEP_CUDA_REGISTERED = 3, /* cuMemHostRegister: no new memory */
    SEEP_CUDA_ARRAY = 4,      /* CUarray */
    SEEP_CUDA_MIPMAP = 5,     /* CUmipmappedArray */
    SEEP_CUDA_HANDLE = 6,     /* physical memory, imported too; multicast */
    SEEP_CUDA_MAP = 7,        /* a range where a handle is mapped */
    SEEP_CUDA_RESERVED = 8,   /* cuMemAddressReserve */
    SEEP_CUDA_IPC = 9,        /* cuIpcOpenMemHandle: counts its opens */
    SEEP_CUDA_EXTERNAL = 10,  /* CUexternalMemory */
    SEEP_CUDA_TENSOR = 11     /* a block of PyTorch's cache; not in the table */
};

#define SEEP_KEY_KIND_SHIFT 56U
#define SEEP_KEY_IS_OTHER UINT64_C(0x80)
#define SEEP_KEY_VALUE_MASK ((UINT64_C(1) << SEEP_KEY_KIND_SHIFT) - 1)

/** A piece of a range that was cut in two: counts as no block of its own. */
#define SEEP_LIVE_FRAGMENT (UINT64_C(1) << 63)
/**
 * Of a mapping, or a block of the heap of SEEP_TOUCHED_LEAST_BYTES: how much of
 * it was resident or in swap when it was last looked at, in parts of
 * SEEP_TOUCHED_ALL, plus 1; 0: it was not. Set without the shard's lock, so it
 * may get lost.
 */
#define SEEP_TOUCHED_SHIFT 54U
#define SEEP_TOUCHED_ALL 254U
#define SEEP_TOUCHED_LEAST_BYTES (UINT64_C(256) << 10)
#define SEEP_TOUCHED_MASK (UINT64_C(255) << SEEP_TOUCHED_SHIFT)
/** Of a stashed entry only: the site's series saw it go. */
#define SEEP_STASHED_IN_SERIES (UINT64_C(1) << 62)

enum seep_event_kind {
    SEEP_EVENT_ALLOC = 1,
    SEEP_EVENT_FREE = 2,
    SEEP_EVENT_REALLOC_OUT = 3, /* a free that may be taken back */
    SEEP_EVENT_RESTORE = 4,     /* takes back an OUT of the same address; its
                                   tick is that of the OUT */
    SEEP_EVENT_MAP = 5,         /* a range; replaces what it covers */
    SEEP_EVENT_UNMAP = 6,       /* a range, maybe part of one or several */
    SEEP_EVENT_REMAP_OUT = 7,   /* an UNMAP that may be taken back */
};

enum seep_slot_state {
    SEEP_SLOT_FREE = 0,
    SEEP_SLOT_CLAIMED = 1,
    SEEP_SLOT_READY = 2,
};

/**
 * state = lap << 24 | slot state << 22 | claimer's thread id, low bits, where
 * lap is the position less the slot's own index: a ring of zeros is one at its
 * start, and no page of it is touched before it is used.
 * FREE(p) -> CLAIMED(p) -> READY(p) -> FREE(p + ring_slots). The other fields
 * stay as they were when the slot is free again: the last events before death
 * can be read.
 */
#define SEEP_SLOT_THREAD_BITS 22U
#define SEEP_SLOT_POSITION_SHIFT 24U
struct seep_rec_event {
    _Atomic uint64_t state;
    _Atomic uint64_t address;
    _Atomic uint64_t size_kind; /* size 48 | sample_log2 8 | kind 8 */
    _Atomic uint32_t site;
    _Atomic uint32_t tick;
};

struct seep_rec_stashed {
    _Atomic uint64_t address; /* of the realloc that took the block out */
    struct seep_rec_live live;
};

/**
 * Per shard: bytes allocated and freed by all sites, and the fold's state. But
 * for space file: what is mapped of a file is neither memory that was handed
 * out nor work that was done.
 */
struct seep_rec_flow {
    _Atomic uint64_t allocated_bytes;
    _Atomic uint64_t freed_bytes;
};

struct seep_rec_shard {
    _Atomic uint64_t tail_hint; /* alone in its line: written by every push */
    uint64_t reserved_tail[7];
    _Atomic uint64_t head; /* next position to fold */
    _Atomic uint64_t lock; /* owner's thread id << 32 | sequence */
    _Atomic uint64_t live_count;
    _Atomic uint64_t live_bytes; /* unweighted, of entries that are no keys */
    _Atomic uint64_t move;       /* 0, or (from + 1) << 32 | (to + 1) */
    _Atomic uint32_t thin_level; /* sample_log2 that the table is thinned to */
    _Atomic uint32_t thin_cursor;
    _Atomic uint64_t dropped_allocs;
    _Atomic uint64_t dropped_frees;
    _Atomic uint32_t stash_next;
    _Atomic uint32_t flow_width_log2;
    uint64_t live_first;        /* index in LIVE of this shard's first entry */
    uint64_t live_slots;        /* the most it may use; a power of two */
    _Atomic uint64_t key_count; /* of live_count: see SEEP_ADDRESS_IS_KEY */
    _Atomic uint32_t live_windows; /* of these in use, from the first on */
    _Atomic uint32_t live_end;     /* windows, from which on all is empty */
    uint32_t live_group_log2;      /* SEEP_LIVE_GROUP_LOG2; 0 in files of
                                      before, which had groups of 1 KiB */
    uint32_t reserved_group;
    _Atomic uint64_t out_told; /* position + 1 of the last REMAP_OUT: what of
                                  the stash is of its address is of it */
    uint64_t reserved;
    struct seep_rec_stashed stash[SEEP_STASH_COUNT];
    struct seep_rec_flow flow[SEEP_BUCKET_COUNT];
};

#define SEEP_SIZE_BITS 48U
#define SEEP_SIZE_MASK ((UINT64_C(1) << SEEP_SIZE_BITS) - 1)

static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would live in one process");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "a lock would live in one process");
static_assert(sizeof(_Atomic uint64_t) == 8, "atomics are plain words");
static_assert(sizeof(struct seep_rec_section) == 24, "format");
static_assert(sizeof(struct seep_rec_header) == SEEP_PAGE_BYTES, "format");
static_assert(sizeof(struct seep_rec_module) == 72, "format");
static_assert(sizeof(struct seep_rec_code) == 32, "format");
static_assert(sizeof(struct seep_rec_stack) == 24, "format");
static_assert(sizeof(struct seep_rec_site) == 128, "format");
static_assert(sizeof(struct seep_rec_bucket) == 64, "format");
static_assert(sizeof(struct seep_rec_series) == 64 + (64 + 3 * 8) * 128,
              "format");
static_assert(sizeof(struct seep_rec_brief) == 512, "format");
static_assert(SEEP_BRIEF_BUCKETS <= 8, "their numbers are in a word");
static_assert(sizeof(struct seep_rec_moment) == 128, "format");
static_assert(sizeof(struct seep_rec_device) == 128, "format");
static_assert(sizeof(struct seep_rec_mark) == 32, "format");
static_assert(sizeof(struct seep_rec_live) == 24, "format");
static_assert(sizeof(struct seep_rec_event) == 32, "format");
static_assert(sizeof(struct seep_rec_shard) % 64 == 0, "no shared lines");

#endif
