/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mappings of the files of large objects, from .eh_frame_hdr to the end of its
 * segment.
 *
 * That the file is the object's is known by its first page, which has the sizes
 * of all segments, where the file ends and mostly the build-id. The pages of a
 * file that is mapped are the kernel's, so a mapping costs no memory but for
 * what is looked at; of addresses it costs as much as the tables are long.
 *
 * Invariant: an entry below `count` never changes but for what is atomic in it;
 * one thread at a time adds one, and has the only descriptor open. The
 * addresses of a mapping are ours for ever: what is let go reads as zeros.
 */
#include "capture/native/tables.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/syscall.h"
#include "base/thread.h"
#include "base/word.h"

#define PAGE_BYTES ((uintptr_t)4096)
/* Below that a library is charged for little, and there are many of them. */
#define TABLE_BYTES_LEAST ((uintptr_t)1 << 20)
#define TABLE_BYTES_MOST ((uintptr_t)64 << 20)
#define TABLES_MOST 32U
/* Each may map half a megabyte: a thread that looks so often within a tick of
 * the timeline gives back at once. */
#define LOOKED_MOST 256U
#define PIECE_BYTES 128U

struct tables {
    uintptr_t start; /* of the object */
    uintptr_t end;
    uint64_t digest; /* of its first page */
    uintptr_t mapping;
    uintptr_t mapping_bytes;
    uintptr_t shift; /* of the mapping against the object; 0: none was to be
                        had, and none is asked for again */
    _Atomic uint64_t epoch;  /* when it was this object */
    _Atomic uint64_t listed; /* epoch at which the loader had it last */
    _Atomic uint32_t looked; /* since its pages were given back */
    _Atomic bool gone;       /* its object is; nobody uses it any more */
};

static struct tables tables[TABLES_MOST];
static _Atomic uint32_t count;
/* The thread that adds one, by the address of its own; 0: none. One that is
 * gone is in the way of later ones, which are read in place. */
static _Atomic uintptr_t maker;
static _Atomic long descriptor = -1; /* that it has open */
static _Atomic bool restricted;

static uint64_t digest_of(const struct seep_elf_image *image)
{
    return seep_hash_bytes((const void *)image->start, PAGE_BYTES);
}

/* After a dlclose something else may lie there; it is on a stack now, and stays
 * meanwhile. */
static bool is_still(struct tables *entry, const struct seep_elf_image *image)
{
    uint64_t epoch = seep_objects_epoch();

    if (seep_word_load(&entry->epoch) == epoch) {
        return true;
    }
    if (digest_of(image) != entry->digest) {
        return false;
    }
    if (epoch % 2 == 0) {
        seep_word_store(&entry->epoch, epoch);
    }
    return true;
}

static struct tables *known(const struct seep_elf_image *image)
{
    /* Acquire: the entries; pairs with the release in make(). */
    uint32_t end = atomic_load_explicit(&count, memory_order_acquire);

    for (uint32_t i = 0; i < end; i++) {
        if (tables[i].start == image->start && tables[i].end == image->end &&
            !seep_word_load(&tables[i].gone) && is_still(&tables[i], image)) {
            return &tables[i];
        }
    }
    return NULL;
}

/* Is the first page of the file that of the object? */
static SEEP_NOINLINE bool is_file_of(long fd,
                                     const struct seep_elf_image *image)
{
    uint8_t piece[PIECE_BYTES];

    for (uintptr_t at = 0; at < PAGE_BYTES; at += PIECE_BYTES) {
        if (seep_syscall4(SYS_pread64, fd, (long)piece, PIECE_BYTES,
                          (long)at) != PIECE_BYTES ||
            memcmp(piece, (const uint8_t *)image->start + at, PIECE_BYTES) !=
                0) {
            return false;
        }
    }
    return true;
}

static SEEP_NOINLINE bool is_regular(long fd, uint64_t end)
{
    struct stat status;

    return seep_syscall2(SYS_fstat, fd, (long)&status) == 0 &&
           S_ISREG(status.st_mode) && (uint64_t)status.st_size >= end;
}

/* Addresses are all that a mapping takes of the program, and some have few. */
static bool are_addresses_limited(void)
{
    struct rlimit limit = {0};

    return seep_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit) != 0 ||
           limit.rlim_cur != RLIM_INFINITY;
}

/* Where the process locks whatever is mapped nothing can be given back. */
static bool can_give_back(const struct tables *entry)
{
    return seep_syscall3(SYS_madvise, (long)entry->mapping,
                         (long)entry->mapping_bytes, MADV_DONTNEED) == 0;
}

/* Map @entry, whose pages lie at @offset of the file. */
static void map(struct tables *entry, uintptr_t low, uint64_t offset, long fd,
                const struct seep_elf_image *image)
{
    long mapped;

    if (!is_regular(fd, offset + entry->mapping_bytes) ||
        !is_file_of(fd, image)) {
        return;
    }
    mapped = seep_syscall6(SYS_mmap, 0, (long)entry->mapping_bytes, PROT_READ,
                           MAP_PRIVATE, fd, (long)offset);
    if (seep_syscall_failed(mapped)) {
        return;
    }
    entry->mapping = (uintptr_t)mapped;
    if (!can_give_back(entry)) {
        seep_syscall2(SYS_munmap, mapped, (long)entry->mapping_bytes);
        return;
    }
    entry->shift = entry->mapping - low;
}

/* The segment of the file that @address is in. */
static const ElfW(Phdr) *
    segment_of(const struct seep_elf_image *image, uintptr_t address)
{
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];

        if (header->p_type == PT_LOAD && (header->p_flags & PF_W) == 0 &&
            address - image->bias - header->p_vaddr < header->p_filesz) {
            return header;
        }
    }
    return NULL;
}

static void fill(struct tables *entry, const struct seep_elf_image *image,
                 const struct seep_cfi_section *section)
{
    const ElfW(Phdr) *segment = segment_of(image, (uintptr_t)section->hdr);
    uintptr_t low = (uintptr_t)section->hdr & ~(PAGE_BYTES - 1);
    uintptr_t behind;
    long fd;

    *entry = (struct tables){.start = image->start,
                             .end = image->end,
                             .digest = digest_of(image),
                             .epoch = seep_objects_epoch(),
                             .listed = seep_objects_epoch()};
    if (segment == NULL || are_addresses_limited()) {
        return;
    }
    behind = low - image->bias - segment->p_vaddr;
    if (behind >= segment->p_filesz ||
        segment->p_filesz - behind > TABLE_BYTES_MOST) {
        return;
    }
    entry->mapping_bytes = segment->p_filesz - behind;
    fd = seep_syscall4(SYS_openat, AT_FDCWD, (long)image->path,
                       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd >= 0) {
        seep_word_store(&descriptor, fd);
        map(entry, low, segment->p_offset + behind, fd, image);
        seep_word_store(&descriptor, -1);
        seep_syscall1(SYS_close, fd);
    }
}

/* The thread was in there already, and left by a jump. */
static void take_over(void)
{
    long fd = seep_word_exchange(&descriptor, -1);

    if (fd >= 0) {
        seep_syscall1(SYS_close, fd);
    }
}

static SEEP_NOINLINE struct tables *make(const struct seep_elf_image *image,
                                         const struct seep_cfi_section *section)
{
    uintptr_t self = (uintptr_t)&seep_thread;
    uintptr_t seen = 0;
    uint32_t index;
    struct tables *entry;

    if (seep_word_load(&restricted) || seep_objects_epoch() % 2 != 0 ||
        seep_word_load(&count) == TABLES_MOST) {
        return NULL;
    }
    /* Acquire: the entries of who came before; pairs with the release below. */
    if (!atomic_compare_exchange_strong_explicit(
            &maker, &seen, self, memory_order_acquire, memory_order_relaxed)) {
        if (seen != self) {
            return NULL;
        }
        take_over();
    }
    entry = known(image);
    index = seep_word_load(&count);
    if (entry == NULL && index < TABLES_MOST) {
        entry = &tables[index];
        fill(entry, image, section);
        /* Release: the entry; pairs with the acquire in known(). */
        atomic_store_explicit(&count, index + 1, memory_order_release);
    }
    /* Release: pairs with the acquire above. */
    atomic_store_explicit(&maker, 0, memory_order_release);
    return entry;
}

static void give_back(struct tables *entry)
{
    if (seep_word_exchange(&entry->looked, 0) != 0) {
        seep_syscall3(SYS_madvise, (long)entry->mapping,
                      (long)entry->mapping_bytes, MADV_DONTNEED);
    }
}

/* Has the loader anything else there by now, or nothing? */
static bool is_gone(struct tables *entry)
{
    uint64_t epoch = seep_objects_epoch();
    struct seep_elf_image image;

    if (epoch % 2 != 0 || seep_word_load(&entry->listed) == epoch) {
        return false;
    }
    seep_word_store(&entry->listed, epoch);
    return !seep_objects_locate(entry->start, &image) ||
           image.start != entry->start || image.end != entry->end;
}

/* Its file, and the file system of that. Who is in there now reads zeros, of
 * which no rule is made. */
static void let_go(struct tables *entry)
{
    seep_word_store(&entry->gone, true);
    seep_syscall6(SYS_mmap, (long)entry->mapping, (long)entry->mapping_bytes,
                  PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void seep_tables_move(const struct seep_elf_image *image,
                      struct seep_cfi_section *section)
{
    struct tables *entry;

    /* The program has no path here, and is read in place. */
    if ((uintptr_t)(section->high - section->hdr) < TABLE_BYTES_LEAST ||
        image->path[0] != '/') {
        return;
    }
    entry = known(image);
    entry = entry != NULL ? entry : make(image, section);
    if (entry == NULL || entry->shift == 0) {
        return;
    }
    if (seep_word_fetch_add(&entry->looked, 1) >= LOOKED_MOST &&
        !seep_word_load(&restricted)) {
        give_back(entry);
    }
    section->shift = entry->shift;
    section->low = (const uint8_t *)entry->mapping;
    section->high = section->low + entry->mapping_bytes;
    section->hdr = (const uint8_t *)((uintptr_t)section->hdr + entry->shift);
}

void seep_tables_give_back(void)
{
    /* Acquire: the entries; pairs with the release in make(). */
    uint32_t end = atomic_load_explicit(&count, memory_order_acquire);

    for (uint32_t i = 0; i < end && !seep_word_load(&restricted); i++) {
        if (tables[i].shift == 0 || seep_word_load(&tables[i].gone)) {
            continue;
        }
        if (is_gone(&tables[i])) {
            let_go(&tables[i]);
        } else if (seep_word_load(&tables[i].looked) != 0) {
            give_back(&tables[i]);
        }
    }
}

/* The descriptor stays: its number may be another's by now, and it goes with
 * the next exec. */
void seep_tables_after_fork(void)
{
    seep_word_store(&descriptor, -1);
    seep_word_store(&maker, 0);
}

void seep_tables_restrict(void)
{
    seep_word_store(&restricted, true);
}
