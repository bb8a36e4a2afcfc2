/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the allocator says of itself; see allocator.h. */
#include "preload/allocator.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>

#include "base/syscall.h"
#include "base/text.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/real.h"
#include "record/timeline.h"

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

/* Add the code of libc's @name. @return false if it cannot be told */
static bool add_function(void *libc, const char *name)
{
    Dl_info info;
    void *symbol = NULL;
    const ElfW(Sym) * entry;
    void *address = dlsym(libc, name);

    if (address == NULL ||
        dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) == 0 ||
        symbol == NULL) {
        return false;
    }
    entry = symbol;
    ranges[range_count].start = (uintptr_t)info.dli_saddr;
    ranges[range_count].end = (uintptr_t)info.dli_saddr + entry->st_size;
    range_count++;
    return entry->st_size != 0;
}

/* In fork handlers the allocator may be locked; malloc_stats() and
 * malloc_info() print, which may call anything. */
static bool add_libc(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    bool found = libc != NULL && add_function(libc, "fork") &&
                 add_function(libc, "malloc_stats") &&
                 add_function(libc, "malloc_info");

    if (libc != NULL && seep_real.dlclose != NULL) {
        seep_real.dlclose(libc);
    }
    return found;
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

/* By its name: a look-up in vain would leave the loader a message to keep. */
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

void seep_allocator_init(const void *start, const void *end, const char *path)
{
    if (&dladdr1 == NULL || path == NULL ||
        !find_question(start, end, seep_text_base_name(path)) || !add_libc() ||
        seep_life_at_fork(note_child) != 0) {
        return;
    }
    note_child();
    seep_timeline_set_allocator(ask);
}

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
