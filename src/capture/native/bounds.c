/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a thread's stack lies, from /proc/self/maps, and which pages of other
 * stacks may be read.
 *
 * Invariant: [low, high) is memory that stays mapped and readable from the
 * thread's stack pointer up, as long as the thread lives.
 */
#include "capture/native/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "base/compiler.h"
#include "base/syscall.h"
#include "base/word.h"

#define READ_BYTES 384U
#define MAIN_STACK_MAX (UINT64_C(1) << 30)
#define GUARD_GAP (UINT64_C(1) << 20)
#define MAIN_STACK_SURE (UINT64_C(1) << 20)
#define PAGE_BYTES 4096U
/* A frame that is larger than that is taken for a step astray. */
#define FRAME_PAGES_MAX 256U

/* Fields of a line: "start-end perms ...\n". */
enum { FIELD_START, FIELD_END, FIELD_ACCESS, FIELD_REST };

/* Set by the loader before anything runs: the stack pointer at the start. */
extern void *__libc_stack_end __attribute__((weak));

static void take_mapping(struct seep_maps_parser *parser)
{
    uintptr_t end = parser->number;

    if (parser->low != 0) {
        /* A stack may be split in several, by mprotect or madvise. */
        if (parser->start == parser->high && parser->writable) {
            parser->high = end;
        } else {
            parser->done = true;
        }
    } else if (parser->wanted >= parser->start && parser->wanted < end) {
        parser->low = parser->start;
        parser->high = end;
    } else if (parser->start > parser->wanted) {
        parser->done = true;
    } else {
        parser->previous_end = end;
    }
}

static void take_byte(struct seep_maps_parser *parser, char byte)
{
    if (byte == '\n') {
        parser->field = FIELD_START;
        parser->number = 0;
    } else if (parser->field == FIELD_START && byte == '-') {
        parser->start = parser->number;
        parser->number = 0;
        parser->field = FIELD_END;
    } else if (parser->field == FIELD_END && byte == ' ') {
        parser->writable = false;
        parser->field = FIELD_ACCESS;
    } else if (parser->field == FIELD_ACCESS && byte == ' ') {
        take_mapping(parser);
        parser->field = FIELD_REST;
    } else if (parser->field == FIELD_ACCESS) {
        parser->writable |= byte == 'w';
    } else if (parser->field < FIELD_ACCESS) {
        unsigned int digit = (unsigned char)byte;

        digit = digit >= 'a' ? digit - 'a' + 10 : digit - '0';
        parser->number = parser->number << 4 | (digit & 15);
    }
}

void seep_maps_feed(struct seep_maps_parser *parser, const char *bytes,
                    size_t size)
{
    for (size_t i = 0; i < size && !parser->done; i++) {
        take_byte(parser, bytes[i]);
    }
}

/* Linux 6.11 tells one mapping without printing all; older headers do not
 * know it. */
struct mapping_query {
    uint64_t size;
    uint64_t flags;
    uint64_t address;
    uint64_t start;
    uint64_t end;
    uint64_t answers[4];
    uint32_t sizes[4];
    uint64_t buffers[2];
};
#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)

static bool ask_mapping(long file, struct seep_maps_parser *parser)
{
    struct mapping_query query = {.size = sizeof(query),
                                  .address = parser->wanted};

    if (seep_syscall3(SYS_ioctl, file, (long)MAPPING_QUERY, (long)&query) !=
        0) {
        return false;
    }
    parser->low = query.start;
    parser->high = query.end;
    return true;
}

/* The control block of this thread, which glibc puts at the top of its stack,
 * lies in the mapping that was found: no other need be known. */
static bool holds_thread(const struct seep_maps_parser *parser)
{
    uintptr_t thread = (uintptr_t)__builtin_thread_pointer();

    return thread > parser->wanted && thread < parser->high;
}

static SEEP_NOINLINE bool read_file(long file, struct seep_maps_parser *parser)
{
    char bytes[READ_BYTES];
    long size;

    do {
        size = seep_syscall3(SYS_read, file, (long)bytes, sizeof(bytes));
        if (size > 0) {
            seep_maps_feed(parser, bytes, (size_t)size);
        }
    } while (size > 0 && !parser->done);
    return size >= 0 && parser->low != 0;
}

static bool read_maps(struct seep_maps_parser *parser)
{
    uintptr_t wanted = parser->wanted;
    long file = seep_syscall4(SYS_openat, AT_FDCWD, (long)"/proc/self/maps",
                              O_RDONLY | O_CLOEXEC, 0);
    bool found;

    if (file < 0) {
        return false;
    }
    found = ask_mapping(file, parser) && holds_thread(parser);
    if (!found) {
        *parser = (struct seep_maps_parser){.wanted = wanted};
        found = read_file(file, parser);
    }
    seep_syscall1(SYS_close, file);
    return found;
}

/* The kernel lets the first thread's stack grow down to its limit; below what
 * is mapped now nothing else comes to lie so near. */
static uintptr_t main_stack_low(uintptr_t high, uintptr_t previous_end)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    uintptr_t low = previous_end + GUARD_GAP;
    uint64_t most = MAIN_STACK_MAX;

    seep_syscall4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit);
    if (limit.rlim_cur < most) {
        most = limit.rlim_cur;
    }
    return high > most && high - most > low ? high - most : low;
}

static uintptr_t main_stack_high(void)
{
    return &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
}

void seep_stack_bounds_find(struct seep_stack_bounds *bounds, uintptr_t sp,
                            bool may_call)
{
    struct seep_maps_parser parser = {.wanted = sp};
    uintptr_t top = main_stack_high();

    bounds->low = 1;
    bounds->high = 1;
    if (!may_call || !read_maps(&parser)) {
        /* So near below the top of the first thread's stack nothing else can
         * lie, and the kernel maps what is touched there. */
        if (top > sp && top - sp < MAIN_STACK_SURE) {
            bounds->low = top - MAIN_STACK_SURE;
            bounds->high = top;
        }
        return;
    }
    if (top > sp && top <= parser.high) {
        uintptr_t low = main_stack_low(top, parser.previous_end);

        bounds->low = low < parser.low ? low : parser.low;
        bounds->high = top;
        return;
    }
    /* Another stack, a coroutine's say, may go while the thread lives. What is
     * mapped above the control block is not the thread's. */
    if (holds_thread(&parser)) {
        bounds->low = parser.low;
        bounds->high = (uintptr_t)__builtin_thread_pointer();
    }
}

static _Atomic bool restricted;

void seep_stack_bounds_restrict(void)
{
    seep_word_store(&restricted, true);
}

/* The kernel reads a signal mask there before it finds that it knows no such
 * operation. Where it is not allowed to, nothing is asked again. */
bool seep_page_is_readable(uintptr_t page)
{
    long answer;

    if (page == 0 || seep_word_load(&restricted)) {
        return false;
    }
    answer = seep_syscall4(SYS_rt_sigprocmask, -1, (long)page, 0, 8);
    if (answer == -EPERM || answer == -ENOSYS) {
        seep_stack_bounds_restrict();
    }
    return answer == -EINVAL;
}

SEEP_COLD bool seep_stack_bounds_widen(uintptr_t *high, uintptr_t address)
{
    uintptr_t end = seep_stack_bounds_page_end(address);
    uintptr_t page = *high;

    if (address % sizeof(uintptr_t) != 0 || end <= page ||
        (end - page) / PAGE_BYTES > FRAME_PAGES_MAX) {
        return false;
    }
    for (; page != end; page += PAGE_BYTES) {
        if (!seep_page_is_readable(page)) {
            return false;
        }
        *high = page + PAGE_BYTES;
    }
    return true;
}

SEEP_COLD bool seep_stack_bounds_enter(uintptr_t *high, uintptr_t sp)
{
    uintptr_t end = seep_stack_bounds_page_end(sp);

    if (!seep_page_is_readable(end - PAGE_BYTES)) {
        return false;
    }
    *high = end;
    return true;
}
