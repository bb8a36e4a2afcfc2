/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the hooks stand before, and what the allocator says of itself.
 *
 * Invariant: seep_real.malloc is set last, by one thread; nothing that comes
 * before reads what a relocation fills.
 */
#include "preload/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/syscall.h"
#include "base/text.h"
#include "base/word.h"
#include "capture/native/elf.h"
#include "preload/hooks.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "record/timeline.h"

/* Looking up. */

enum resolve_state { UNRESOLVED, RESOLVING, RESOLVED };

struct seep_real seep_real __attribute__((visibility("hidden")));

bool seep_real_is_behind __attribute__((visibility("hidden")));

static _Atomic int state;

/* Filled by a relocation of this library: not its own address, which code
 * knows without one, until that has happened. */
static const volatile void *const volatile relocated = &relocated;

/* One by one through a table: a look-up is data, not code. */
static const struct {
    const char *name;
    size_t offset;
} entries[] = {
#define SEEP_HOOK(name, result, parameters) \
    {#name, offsetof(struct seep_real, name)},
#include "preload/hooks.def"
#undef SEEP_HOOK
};

/* mmap64 for a libc that has only mmap: never a missing pointer. Not tested:
 * such a libc (musl since 1.2.4). */
static void fill_gaps(void)
{
    if (seep_real.mmap64 == NULL) {
        seep_real.mmap64 = seep_real.mmap;
    }
}

/*
 * Who answers to `malloc`? Addresses cannot tell: a program that is linked at
 * a fixed address has one of its own for every function it points to. So it is
 * called: while we look up, ours answers from the arena.
 */
static bool is_behind(void)
{
    void *(*volatile front)(size_t) = malloc;
    void (*volatile give_back)(void *) = free;
    void *block = front(1);
    bool behind = !seep_arena_owns(block);

    give_back(block);
    return behind;
}

SEEP_COLD static void resolve(void)
{
    void *real_malloc = NULL;

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *symbol;

        /* A name that is missing costs an allocation of the loader's. */
        if (strncmp(entries[i].name, "_Z", 2) == 0 &&
            entries[i].offset != offsetof(struct seep_real, _Znwm) &&
            seep_real._Znwm == NULL) {
            continue;
        }
        symbol = seep_elf_is_defined(entries[i].name)
                     ? dlsym(RTLD_NEXT, entries[i].name)
                     : NULL;
        if (entries[i].offset == offsetof(struct seep_real, malloc)) {
            real_malloc = symbol;
            continue;
        }
        memcpy((char *)&seep_real + entries[i].offset, &symbol, sizeof(symbol));
    }
    fill_gaps();
    seep_real_is_behind = is_behind();
    dlerror(); /* the names that libc lacks left a message for the program */
    atomic_thread_fence(memory_order_seq_cst);
    memcpy(&seep_real.malloc, &real_malloc, sizeof(real_malloc));
    seep_word_store(&state, RESOLVED);
}

static bool is_relocated(void)
{
    return relocated == &relocated;
}

void seep_real_set_errno(int error)
{
    if (is_relocated()) {
        errno = error;
    }
}

long seep_real_as_libc(long result)
{
    if (seep_syscall_failed(result)) {
        seep_real_set_errno((int)-result);
        return -1;
    }
    return result;
}

bool seep_real_resolve(void)
{
    int expected = UNRESOLVED;

    if (!is_relocated()) {
        return false;
    }
    if (seep_word_replace(&state, &expected, RESOLVING)) {
        resolve();
        return true;
    }
    return expected == RESOLVED;
}

void *seep_real_find_cxx(const char *name)
{
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++abi.so.1",
                                           "libc++.so.1"};
    void *symbol = dlsym(RTLD_NEXT, name);
    bool failed = symbol == NULL;

    for (size_t i = 0; symbol == NULL && i < 3; i++) {
        void *handle = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);

        if (handle != NULL) {
            symbol = dlsym(handle, name);
            seep_real.dlclose(handle);
        }
    }
    if (failed) {
        dlerror(); /* ours; a message of the program's stays if it can */
    }
    return symbol;
}

/* The object that @address lies in; an empty one if there is none. */
static struct seep_elf_image object_of(uintptr_t address)
{
    struct seep_elf_image image;

    /* Not tested: without _dl_find_object() (glibc before 2.35), more objects
     * than are remembered. */
    if (!seep_objects_locate(address, &image)) {
        image = (struct seep_elf_image){.path = ""};
    }
    return image;
}

static uintptr_t malloc_address(void)
{
    uintptr_t address;

    memcpy(&address, &seep_real.malloc, sizeof(address));
    return address;
}

void seep_real_allocator(const void **ret_start, const void **ret_end,
                         const char **ret_path)
{
    struct seep_elf_image image = object_of(malloc_address());

    *ret_start = (const void *)image.start;
    *ret_end = (const void *)image.end;
    *ret_path = image.path;
}

bool seep_real_new_is_allocators(void)
{
    struct seep_elf_image image = object_of(malloc_address());
    uintptr_t operator_new;

    memcpy(&operator_new, &seep_real._Znwm, sizeof(operator_new));
    return operator_new >= image.start && operator_new < image.end;
}

/* The allocator's own figures. */

/* What the question itself may need: a thread with less goes unasked. */
#define STACK_LEFT_BYTES 16384U
#define RANGES_MOST 4U

/* As glibc 2.33 has it since; said here so that older headers do. */
struct glibc_info {
    size_t arena;   /* of the system, all arenas */
    size_t ordblks; /* free chunks, all arenas */
    size_t smblks;  /* the same in fast bins */
    size_t hblks;
    size_t hblkhd; /* bytes mapped block by block */
    size_t usmblks;
    size_t fsmblks;
    size_t uordblks; /* handed out, all arenas */
    size_t fordblks;
    size_t keepcost;
};

struct range {
    uintptr_t start;
    uintptr_t end;
};

/* All set by the constructor. */
static struct glibc_info (*glibc_info)(void);
static int (*jemalloc_control)(const char *, void *, size_t *, void *, size_t);
static int (*tcmalloc_number)(const char *, size_t *);

/* Code that may hold the allocator's locks while it calls others. */
static struct range ranges[RANGES_MOST];
static size_t range_count;

/* Weak, for a C library that lacks it. */
extern __typeof__(dladdr1) dladdr1 __attribute__((weak));

static void ask_glibc(struct seep_timeline_figures *figures)
{
    struct glibc_info info = glibc_info();

    figures->allocated_bytes = info.uordblks + info.hblkhd;
    figures->resident_bytes = info.arena + info.hblkhd;
    figures->free_chunks = info.ordblks + info.smblks;
}

static uint64_t jemalloc_number(const char *name)
{
    size_t number = 0;
    size_t size = sizeof(number);

    return jemalloc_control(name, &number, &size, NULL, 0) == 0 ? number : 0;
}

static void ask_jemalloc(struct seep_timeline_figures *figures)
{
    uint64_t epoch = 1;

    jemalloc_control("epoch", NULL, NULL, &epoch, sizeof(epoch));
    figures->allocated_bytes = jemalloc_number("stats.allocated");
    figures->active_bytes = jemalloc_number("stats.active");
    figures->resident_bytes = jemalloc_number("stats.resident");
    figures->retained_bytes = jemalloc_number("stats.retained");
}

static void ask_tcmalloc(struct seep_timeline_figures *figures)
{
    size_t allocated = 0;
    size_t heap = 0;
    size_t unmapped = 0;

    if (tcmalloc_number("generic.current_allocated_bytes", &allocated) != 0 &&
        tcmalloc_number("generic.heap_size", &heap) != 0 &&
        tcmalloc_number("tcmalloc.pageheap_unmapped_bytes", &unmapped) != 0 &&
        unmapped <= heap) {
        figures->allocated_bytes = allocated;
        figures->resident_bytes = heap - unmapped;
        figures->retained_bytes = unmapped;
    }
}

static void ask_any(struct seep_timeline_figures *figures)
{
    if (glibc_info != NULL) {
        ask_glibc(figures);
    } else if (jemalloc_control != NULL) {
        ask_jemalloc(figures);
    } else {
        ask_tcmalloc(figures);
    }
}

/* All but those that a fault of the thread's own raises. */
static uint64_t signals_to_block(void)
{
    return ~(UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1) |
             UINT64_C(1) << (SIGFPE - 1) | UINT64_C(1) << (SIGILL - 1) |
             UINT64_C(1) << (SIGTRAP - 1) | UINT64_C(1) << (SIGSYS - 1));
}

static int ask(struct seep_timeline_figures *ret_figures)
{
    uint64_t blocked = signals_to_block();
    uint64_t before = 0;
    int saved = errno;

    if (!seep_identity_is_this_process()) {
        return -EAGAIN; /* a vfork child, in its parent's memory */
    }
    if (!seep_identity_is_sound()) {
        return -ENOTSUP;
    }
    if (seep_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&blocked,
                      (long)&before, sizeof(before)) < 0) {
        return -ENOTSUP;
    }
    ask_any(ret_figures);
    seep_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0,
                  sizeof(before));
    errno = saved;
    return 0;
}

static void note_child(void)
{
    if (!seep_life_is_restricted()) {
        seep_identity_note_sound();
    }
}

/* Add the code of libc's @name. @return false if it cannot be told. Not tested:
 * a C library that lacks the name, or does not say how long its code is. */
static bool add_function(const struct seep_elf_symbols *libc, const char *name)
{
    size_t bytes = 0;
    uintptr_t start = seep_elf_symbols_find(libc, name, &bytes);

    if (start == 0) {
        return false;
    }
    ranges[range_count].start = start;
    ranges[range_count].end = start + bytes;
    range_count++;
    return bytes != 0;
}

/* In fork handlers the allocator may be locked; malloc_stats() and
 * malloc_info() print, which may call anything. Not tested: as above. */
static bool add_libc(void)
{
    struct seep_elf_symbols libc;

    return seep_elf_symbols_of_libc(&libc) && add_function(&libc, "fork") &&
           add_function(&libc, "malloc_stats") &&
           add_function(&libc, "malloc_info");
}

static bool starts_with(const char *string, const char *start)
{
    return strncmp(string, start, strlen(start)) == 0;
}

/* @return false unless the allocator itself, and no other object, has it */
static bool find(const char *name, const void *start, const void *end,
                 void *ret_function)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    bool found = (uintptr_t)symbol >= (uintptr_t)start &&
                 (uintptr_t)symbol < (uintptr_t)end;

    if (found) {
        memcpy(ret_function, &symbol, sizeof(symbol));
    }
    return found;
}

/* Whoever lacks what is looked for here is not asked: another C library than
 * glibc, or a renamed allocator. Of those that have the names each is tested.
 * By its name: a look-up in vain would leave the loader a message to keep. */
static bool find_question(const void *start, const void *end, const char *name)
{
    if (starts_with(name, "libc.so") || starts_with(name, "libc-")) {
        return find("mallinfo2", start, end, &glibc_info);
    }
    ranges[0] = (struct range){(uintptr_t)start, (uintptr_t)end};
    range_count = 1;
    if (starts_with(name, "libjemalloc")) {
        return find("mallctl", start, end, &jemalloc_control);
    }
    return starts_with(name, "libtcmalloc") &&
           find("MallocExtension_GetNumericProperty", start, end,
                &tcmalloc_number);
}

/* Not tested: a C library without dladdr1() or __register_atfork(), or without
 * room for one more child's handler. */
void seep_allocator_init(const void *start, const void *end, const char *path)
{
    if (&dladdr1 == NULL ||
        !find_question(start, end, seep_text_base_name(path)) || !add_libc() ||
        seep_life_at_fork(note_child) != 0) {
        return;
    }
    note_child();
    seep_timeline_set_allocator(ask);
}

/* Not tested: a thread on a stack that lies above its own. */
bool seep_allocator_is_outside(const struct seep_capture_start *start,
                               const struct seep_stack_bounds *bounds,
                               const struct seep_capture_end *end,
                               const uintptr_t *pcs, size_t count)
{
    if (end->cut != SEEP_CUT_NONE || end->through_signal ||
        start->sp >= bounds->high || start->sp < bounds->low ||
        start->sp - bounds->low < STACK_LEFT_BYTES) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < range_count; j++) {
            if (pcs[i] >= ranges[j].start && pcs[i] < ranges[j].end) {
                return false;
            }
        }
    }
    return true;
}
