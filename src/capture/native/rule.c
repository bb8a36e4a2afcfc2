/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows to rules: the common shapes of compiled code, and nothing by halves;
 * and where the tables are read that rows are of.
 *
 * Invariant: what does not fit into a rule exactly becomes a cut (the frame's
 * CFA, its return address) or a lost register (rbp, rbx).
 */
#include "capture/native/rule.h"

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
#include "capture/native/elf.h"

#define OFFSET_UNITS_MAX (INT32_C(1) << 23)
#define PLACE_UNITS_MAX 512

static bool is_packable(int64_t offset)
{
    return offset % 8 == 0 && offset / 8 >= -PLACE_UNITS_MAX &&
           offset / 8 < PLACE_UNITS_MAX;
}

static uint64_t pack_place(const struct seep_cfi_row *row, uint64_t number)
{
    const struct seep_cfi_place *place = seep_cfi_place(row, number);
    int64_t offset = place->offset;
    uint64_t kind = SEEP_RULE_LOST;

    if (place->kind == SEEP_CFI_SAME) {
        return SEEP_RULE_SAME;
    }
#if defined(__aarch64__)
    /* From the register of the CFA on, near which registers are saved. */
    if (place->kind == SEEP_CFI_AT_CFA) {
        kind = SEEP_RULE_AT_BASE;
        offset += row->cfa.offset;
    }
#else
    if (place->kind == SEEP_CFI_AT_CFA) {
        kind = SEEP_RULE_AT_CFA;
    } else if (place->kind == SEEP_CFI_AT_REGISTER &&
               place->base == SEEP_CFI_FP) {
        kind = SEEP_RULE_AT_RBP;
    }
#endif
    if (kind == SEEP_RULE_LOST || !is_packable(offset)) {
        return SEEP_RULE_LOST;
    }
    return kind | ((uint64_t)(offset / 8) & 0x3ff) << 2;
}

#if defined(__aarch64__)
/* The kernel describes its trampoline by the frame record that lies in the
 * signal's frame, which has no pc; beside it lies the whole context. */
static bool is_signal_row(const struct seep_cfi_row *row)
{
    return row->cfa.kind == SEEP_CFI_CFA_REGISTER &&
           row->cfa.base == SEEP_CFI_FP;
}
#else
static bool is_saved_at(const struct seep_cfi_row *row, uint64_t number,
                        int32_t offset)
{
    const struct seep_cfi_place *place = seep_cfi_place(row, number);

    return place->kind == SEEP_CFI_AT_REGISTER && place->base == SEEP_CFI_SP &&
           place->offset == offset;
}

/* The trampoline that a signal handler returns to, as glibc describes it. */
static bool is_signal_row(const struct seep_cfi_row *row)
{
    return row->cfa.kind == SEEP_CFI_CFA_LOADED && row->cfa.added == 0 &&
           row->cfa.base == SEEP_CFI_SP && row->cfa.offset == SEEP_SIGNAL_RSP &&
           is_saved_at(row, SEEP_CFI_RETURN, SEEP_SIGNAL_RIP) &&
           is_saved_at(row, SEEP_CFI_FP, SEEP_SIGNAL_RBP) &&
           is_saved_at(row, SEEP_CFI_RBX, SEEP_SIGNAL_RBX);
}
#endif

static uint64_t pack_cfa_kind(const struct seep_cfi_cfa *cfa)
{
    if (cfa->kind == SEEP_CFI_CFA_LOADED) {
        return cfa->base == SEEP_CFI_FP && cfa->added == 0
                   ? SEEP_RULE_LOADED_RBP
                   : seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (cfa->kind != SEEP_CFI_CFA_REGISTER) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    if (cfa->base == SEEP_CFI_SP) {
        return SEEP_RULE_RSP;
    }
    if (cfa->base == SEEP_CFI_FP) {
        return SEEP_RULE_RBP;
    }
#if defined(__x86_64__)
    if (cfa->base == SEEP_CFI_RBX) {
        return SEEP_RULE_RBX;
    }
#endif
    return seep_rule_of_cut(SEEP_CUT_REGISTER);
}

static uint64_t pack_cfa(const struct seep_cfi_cfa *cfa)
{
    uint64_t kind = pack_cfa_kind(cfa);
    int32_t units = cfa->offset / 8;

    if (seep_rule_kind(kind) == SEEP_RULE_CUT) {
        return kind;
    }
    if (cfa->offset % 8 != 0 || units < -OFFSET_UNITS_MAX ||
        units >= OFFSET_UNITS_MAX) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    return kind | ((uint64_t)units & 0xffffff) << 4;
}

/* The caller's stack pointer is the CFA unless a row says otherwise. */
static bool is_usual_sp(const struct seep_cfi_place *sp)
{
    return sp->kind == SEEP_CFI_SAME ||
           (sp->kind == SEEP_CFI_IS_CFA && sp->offset == 0);
}

/* The other register of a rule. @return false: that row is beyond rules */
static bool pack_second(const struct seep_cfi_row *row, uint64_t *ret_place)
{
    const struct seep_cfi_place *back = seep_cfi_place(row, SEEP_CFI_RETURN);

#if defined(__aarch64__)
    *ret_place = pack_place(row, SEEP_CFI_RETURN) << SEEP_RULE_RETURN_SHIFT;
    return back->kind == SEEP_CFI_SAME ||
           (*ret_place >> SEEP_RULE_RETURN_SHIFT & 3) == SEEP_RULE_AT_BASE;
#else
    *ret_place = pack_place(row, SEEP_CFI_RBX) << SEEP_RULE_RBX_SHIFT;
    return back->kind == SEEP_CFI_AT_CFA && back->offset == -8;
#endif
}

uint64_t seep_rule_pack(const struct seep_cfi_row *row, bool signal_frame)
{
    const struct seep_cfi_place *back = seep_cfi_place(row, SEEP_CFI_RETURN);
    uint64_t second;
    uint64_t rule;

    if (back->kind == SEEP_CFI_UNDEFINED) {
        return SEEP_RULE_END;
    }
    if (signal_frame) {
        return is_signal_row(row) ? SEEP_RULE_SIGNAL
                                  : seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
#if defined(__x86_64__)
    if (back->kind == SEEP_CFI_SAME) {
        return seep_rule_of_cut(SEEP_CUT_REGISTER);
    }
#endif
    if (!pack_second(row, &second) ||
        !is_usual_sp(seep_cfi_place(row, SEEP_CFI_SP))) {
        return seep_rule_of_cut(SEEP_CUT_EXPRESSION);
    }
    rule = pack_cfa(&row->cfa);
    if (seep_rule_kind(rule) == SEEP_RULE_CUT) {
        return rule;
    }
    return rule | second | pack_place(row, SEEP_CFI_FP) << SEEP_RULE_RBP_SHIFT;
}

/*
 * The unwind tables of large objects, in mappings of our own that are given
 * back: of their files, from .eh_frame_hdr to the end of its segment.
 *
 * A fault in a table maps up to 16 pages around it, and the process is charged
 * for them: 27 MiB of torch's libraries, for rules that the caches hold by
 * then. Pages of the object's own cannot be given back: somebody may have
 * written there, and at the address of an object that has just gone there may
 * be anything.
 *
 * That the file is the object's is known by its first page, which has the sizes
 * of all segments, where the file ends and mostly the build-id. The pages of a
 * file that is mapped are the kernel's, so a mapping costs no memory but for
 * what is looked at; of addresses it costs as much as the tables are long.
 *
 * Invariant: of an object with a mapping here nothing is touched but its first
 * page. A mapping is read only, never written to and never unmapped, so that
 * what is given back is its pages and nobody else's; of an object that was
 * unloaded the file goes, and the addresses stay ours for ever and read as
 * zeros. An entry below `table_count` never changes but for what is atomic in
 * it; one thread at a time adds one, and has the only descriptor open.
 */

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
static _Atomic uint32_t table_count;
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
    uint32_t end = atomic_load_explicit(&table_count, memory_order_acquire);

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
        seep_word_load(&table_count) == TABLES_MOST) {
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
    index = seep_word_load(&table_count);
    if (entry == NULL && index < TABLES_MOST) {
        entry = &tables[index];
        fill(entry, image, section);
        /* Release: the entry; pairs with the acquire in known(). */
        atomic_store_explicit(&table_count, index + 1, memory_order_release);
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

/* Have the tables of @image read in a mapping of ours, if there is one.
 * @section is that of the object itself, .shift 0; it may be moved. */
static void move(const struct seep_elf_image *image,
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
        seep_word_fetch_add(&entry->looked, 1); /* what is read now */
    }
    section->shift = entry->shift;
    section->low = (const uint8_t *)entry->mapping;
    section->high = section->low + entry->mapping_bytes;
    section->hdr = (const uint8_t *)((uintptr_t)section->hdr + entry->shift);
}

void seep_tables_give_back(void)
{
    /* Acquire: the entries; pairs with the release in make(). */
    uint32_t end = atomic_load_explicit(&table_count, memory_order_acquire);

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

/* From the tables to the row of a pc. */

/* Where to read the entry of @pc. In steps, here and below, so that the stack
 * of the first is free in the second. */
static SEEP_COLD SEEP_NOINLINE enum seep_cut
find_section(uintptr_t pc, struct seep_cfi_section *ret_section)
{
    struct seep_elf_image image;
    uintptr_t low;
    uintptr_t high;

    if (!seep_objects_find(pc, &image)) {
        return SEEP_CUT_NO_OBJECT;
    }
    if (image.eh_frame_hdr == NULL) {
        return SEEP_CUT_NO_RULE;
    }
    if (!seep_elf_segment(&image, (uintptr_t)image.eh_frame_hdr, &low, &high)) {
        return SEEP_CUT_MALFORMED;
    }
    *ret_section = (struct seep_cfi_section){
        .hdr = image.eh_frame_hdr,
        .low = (const uint8_t *)low,
        .high = (const uint8_t *)high,
    };
    move(&image, ret_section);
    return SEEP_CUT_NONE;
}

SEEP_COLD SEEP_NOINLINE enum seep_cut
seep_rule_entry(uintptr_t pc, struct seep_cfi_entry *ret_entry)
{
    struct seep_cfi_section section;
    enum seep_cut cut = find_section(pc, &section);

    return cut == SEEP_CUT_NONE ? seep_cfi_find(&section, pc, ret_entry) : cut;
}

/*
 * Code whose rows are missing or not true, known by other means: where stacks
 * are switched, and the kernel's trampoline.
 *
 * Invariant: what is not known for sure is answered false; code is read only
 * inside a segment of an object that the walk stands in.
 */

static void no_caller(struct seep_cfi_row *row)
{
    *row = (struct seep_cfi_row){0};
    row->places[seep_cfi_place_index(SEEP_CFI_RETURN)].kind =
        SEEP_CFI_UNDEFINED;
}

/* No call returns to where a function begins, with none before it: such an
 * address was put there for the first function of a coroutine to return to. */
static bool is_put_there(uintptr_t back, struct seep_cfi_entry *entry)
{
    return seep_rule_entry(back, entry) == SEEP_CUT_NONE &&
           entry->pc_low == back;
}

#if defined(__aarch64__)
/* The kernel's trampoline has no rule since Linux 5.8, because its row cannot
 * tell the pc: it is known by its code, mov x8, 139; svc 0. */
static bool is_trampoline(uintptr_t back)
{
    static const uint32_t code[] = {0xd2801168, 0xd4000001};
    struct seep_elf_image image;

    return back % sizeof(code[0]) == 0 && seep_objects_find(back, &image) &&
           seep_elf_is_code(&image, back) &&
           seep_elf_is_code(&image, back + sizeof(code) - 1) &&
           memcmp((const void *)back, code, sizeof(code)) == 0;
}
#endif

/*
 * The row at @pc, where the sections have none.
 *
 * @param scratch  room to look for other entries in
 */
SEEP_COLD static bool known_row(uintptr_t pc, struct seep_cfi_entry *scratch,
                                struct seep_cfi_row *ret_row,
                                bool *ret_signal_frame)
{
    if (is_put_there(pc + 1, scratch)) {
        no_caller(ret_row);
        *ret_signal_frame = false;
        return true;
    }
#if defined(__aarch64__)
    if (is_trampoline(pc + 1)) {
        *ret_row = (struct seep_cfi_row){
            .cfa = {.kind = SEEP_CFI_CFA_REGISTER, .base = SEEP_CFI_FP}};
        *ret_signal_frame = true;
        return true;
    }
#endif
    return false;
}

/* greenlet 2 and 3 by what the first C++ function on a greenlet's stack is
 * called there. */
static const char *const greenlet_names[] = {
    "_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenlet"
    "I9_greenletXadL_ZNS1_15GreenletCheckerEPvEEEERNS1_14OwnedReference"
    "I7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE",
    "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object",
};

static bool is_greenlet(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && strncmp(slash, "/_greenlet.", 11) == 0;
}

/* A greenlet's frames are put back on the thread's stack wherever it goes on.
 * Where its first function would return to is of who switched to it first;
 * what lies there now is of who did last. */
SEEP_COLD static bool known_end(const struct seep_cfi_entry *entry,
                                struct seep_cfi_row *ret_row)
{
    struct seep_elf_image image;
    struct seep_elf_symbols symbols;

    if (!seep_objects_find(entry->pc_low, &image) || !is_greenlet(image.path) ||
        !seep_elf_symbols_open(&image, &symbols)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(greenlet_names) / sizeof(greenlet_names[0]);
         i++) {
        if (seep_elf_symbols_find(&symbols, greenlet_names[i], NULL) ==
            entry->pc_low) {
            no_caller(ret_row);
            return true;
        }
    }
    return false;
}

/*
 * How far programs were run. One of a function that calls thousands, as where a
 * library fills its tables when it is loaded, has as many instructions, and
 * would be run from its beginning for each call: 300 instructions on the
 * average under `import torch`, 0.4 s of 200,000 rules.
 *
 * Invariant: one at a time has an entry, which is of an object that is there
 * still. Who never comes back costs it.
 */
#define STOPS_LOG2 6U

static struct stop {
    _Atomic bool busy;
    uint64_t epoch; /* of the loaded objects, + 1; 0: there is nothing here */
    struct seep_cfi_entry entry;
    struct seep_cfi_machine machine;
} stops[1U << STOPS_LOG2];

/* 0 while an object goes. */
static uint64_t epoch_now(void)
{
    uint64_t epoch = seep_objects_epoch();

    return epoch % 2 == 0 ? epoch + 1 : 0;
}

static struct stop *take_stop(const struct seep_cfi_entry *entry)
{
    uint64_t hash = (uintptr_t)entry->own.at * SEEP_HASH_SEED;
    struct stop *stop = &stops[hash >> (64 - STOPS_LOG2)];

    /* Acquire: pairs with the release in give_stop(). */
    return atomic_exchange_explicit(&stop->busy, true, memory_order_acquire)
               ? NULL
               : stop;
}

static void give_stop(struct stop *stop)
{
    /* Release: pairs with the acquire in take_stop(). */
    atomic_store_explicit(&stop->busy, false, memory_order_release);
}

/* Does the program of @entry stand at @pc there, or before it? */
static bool is_before(const struct stop *stop,
                      const struct seep_cfi_entry *entry, uintptr_t pc)
{
    return stop->epoch != 0 && stop->epoch == epoch_now() &&
           stop->entry.own.at == entry->own.at &&
           stop->entry.own.end == entry->own.end &&
           stop->entry.common.at == entry->common.at &&
           stop->entry.shift == entry->shift &&
           stop->entry.pc_low == entry->pc_low && stop->machine.pc <= pc;
}

/* As seep_cfi_run(), from where @stop stands if that is before. */
static bool run_on(struct stop *stop, const struct seep_cfi_entry *entry,
                   uintptr_t pc, struct seep_cfi_row *ret_row)
{
    struct seep_cfi_machine *machine = &stop->machine;

    if (!is_before(stop, entry, pc)) {
        stop->entry = *entry;
        stop->epoch = epoch_now();
        if (!seep_cfi_begin(machine, &stop->entry, pc)) {
            stop->epoch = 0;
            return false;
        }
    }
    if (!seep_cfi_go_on(machine, pc)) {
        stop->epoch = 0;
        return false;
    }
    *ret_row = machine->row;
    if (machine->by_target) {
        stop->epoch = 0;
    }
    return true;
}

static SEEP_NOINLINE enum seep_cut run(const struct seep_cfi_entry *entry,
                                       uintptr_t pc,
                                       struct seep_cfi_row *ret_row)
{
    struct stop *stop = take_stop(entry);
    bool fine;

    if (stop == NULL) {
        return seep_cfi_run(entry, pc, ret_row);
    }
    fine = run_on(stop, entry, pc, ret_row);
    give_stop(stop);
    return fine ? SEEP_CUT_NONE : SEEP_CUT_MALFORMED;
}

SEEP_COLD enum seep_cut seep_rule_row(uintptr_t pc,
                                      struct seep_cfi_row *ret_row,
                                      bool *ret_signal_frame)
{
    struct seep_cfi_entry entry;
    enum seep_cut cut = seep_rule_entry(pc, &entry);

    *ret_signal_frame = false;
    if (cut == SEEP_CUT_NO_RULE &&
        known_row(pc, &entry, ret_row, ret_signal_frame)) {
        return SEEP_CUT_NONE;
    }
    if (cut != SEEP_CUT_NONE || known_end(&entry, ret_row)) {
        return cut;
    }
    *ret_signal_frame = entry.signal_frame;
    return run(&entry, pc, ret_row);
}

SEEP_COLD uint64_t seep_rule_compile(uintptr_t pc)
{
    struct seep_cfi_row row;
    bool signal_frame;
    enum seep_cut cut = seep_rule_row(pc, &row, &signal_frame);

    if (cut != SEEP_CUT_NONE) {
        return seep_rule_of_cut(cut);
    }
    return seep_rule_pack(&row, signal_frame);
}
