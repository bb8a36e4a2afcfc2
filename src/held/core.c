/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of a process that is gone, from its core file: the kernel's, or
 * one that gcore wrote.
 *
 * Invariant: every offset that is used was held against the size of the file,
 * which is mapped privately; who truncates it meanwhile hurts this reader only.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "held/memory.h"
#include "reader/recording/open.h"

#define SEGMENTS_MOST 1000000U
#define THREADS_MOST 4096U
#define NOTES_MOST 200000U /* some ten a thread */
#define RSP_AT 19          /* in elf_gregset_t of x86-64 */

static const uint8_t *bytes_at(const struct seep_held_memory *memory,
                               uint64_t offset, uint64_t bytes)
{
    return offset <= memory->core_bytes && bytes <= memory->core_bytes - offset
               ? memory->core + offset
               : NULL;
}

static int compare_maps(const void *one, const void *other)
{
    const struct seep_held_map *a = one;
    const struct seep_held_map *b = other;

    return (a->start > b->start) - (a->start < b->start);
}

static void add_thread(struct seep_held_memory *memory, const uint8_t *note,
                       uint64_t bytes)
{
    struct elf_prstatus status;
    struct seep_held_thread *thread = &memory->threads[memory->thread_count];

    if (bytes < sizeof(status) || memory->thread_count == THREADS_MOST) {
        return;
    }
    memcpy(&status, note, sizeof(status));
    thread->id = status.pr_pid;
    snprintf(thread->name, sizeof(thread->name), "%d", (int)status.pr_pid);
    thread->stack_pointer = status.pr_reg[RSP_AT];
    memory->thread_count++;
    if (memory->pid == 0) {
        memory->pid = status.pr_pid;
    }
}

/* NT_FILE: count, page size, count of {start, end, page}, the names. */
static void add_files(struct seep_held_memory *memory, const uint8_t *note,
                      uint64_t bytes)
{
    const char *name;
    const char *end = (const char *)note + bytes;
    uint64_t count;
    uint64_t page_bytes;

    if (bytes < 16) {
        return;
    }
    memcpy(&count, note, 8);
    memcpy(&page_bytes, note + 8, 8);
    if (count > (bytes - 16) / 24) {
        return;
    }
    name = (const char *)note + 16 + 24 * count;
    for (uint64_t i = 0; i < count && name < end; i++) {
        uint64_t entry[3];
        size_t length = strnlen(name, (size_t)(end - name));
        struct seep_held_map *map;

        memcpy(entry, note + 16 + 24 * i, sizeof(entry));
        if (name + length == end) {
            break;
        }
        map = seep_held_map_at(memory, entry[0]);
        if (map != NULL && map->start == entry[0]) {
            map->path = name;
            map->file_offset = entry[2] * page_bytes;
        }
        name += length + 1;
    }
}

static void read_notes(struct seep_held_memory *memory, uint64_t offset,
                       uint64_t bytes, bool files, uint32_t *note_count)
{
    uint64_t end = offset + bytes;

    while (end - offset >= sizeof(Elf64_Nhdr) && (*note_count)++ < NOTES_MOST) {
        Elf64_Nhdr note;
        uint64_t at;
        const uint8_t *text;

        memcpy(&note, memory->core + offset, sizeof(note));
        at = offset + sizeof(note) +
             ((note.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
        if (at > end || note.n_descsz > end - at) {
            return;
        }
        text = memory->core + at;
        if (!files && note.n_type == NT_PRSTATUS) {
            add_thread(memory, text, note.n_descsz);
        } else if (files && note.n_type == NT_FILE) {
            add_files(memory, text, note.n_descsz);
        }
        at += (note.n_descsz + UINT64_C(3)) & ~UINT64_C(3);
        if (at <= offset || at > end) {
            return;
        }
        offset = at;
    }
}

/* The program's break, by what glibc writes at its beginning: a first chunk of
 * what a thread caches. After a fork it may be in two parts. */
static void find_heap(struct seep_held_memory *memory)
{
    for (size_t i = 0; i < memory->map_count; i++) {
        struct seep_held_map *map = &memory->maps[i];

        if (map->is_writable && *map->path == '\0' &&
            seep_held_word(memory, map->start) == 0 &&
            seep_held_word(memory, map->start + 8) == 0x291) {
            map->path = "[heap]";
            for (; ++i < memory->map_count && map[1].start == map->end &&
                   map[1].is_writable && *map[1].path == '\0';
                 map++) {
                map[1].path = "[heap]";
            }
            return;
        }
    }
}

static int add_segments(struct seep_held_memory *memory,
                        const Elf64_Ehdr *header, uint64_t count)
{
    memory->maps = calloc(count + 1, sizeof(*memory->maps));
    memory->threads = calloc(THREADS_MOST, sizeof(*memory->threads));
    if (memory->maps == NULL || memory->threads == NULL) {
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct seep_held_map *map = &memory->maps[memory->map_count];
        Elf64_Phdr segment;

        memcpy(&segment,
               memory->core + header->e_phoff + i * header->e_phentsize,
               sizeof(segment));
        if (segment.p_type == PT_LOAD &&
            bytes_at(memory, segment.p_offset, segment.p_filesz) == NULL) {
            /* The file ends before: a full disk, or a limit. */
            uint64_t left = segment.p_offset < memory->core_bytes
                                ? memory->core_bytes - segment.p_offset
                                : 0;

            memory->missing_bytes += segment.p_filesz - left;
            segment.p_filesz = left & ~UINT64_C(7);
            segment.p_offset = left == 0 ? 0 : segment.p_offset;
        }
        if (segment.p_type != PT_LOAD || segment.p_offset % 8 != 0 ||
            segment.p_filesz > segment.p_memsz ||
            segment.p_vaddr % SEEP_HELD_PAGE_BYTES != 0 ||
            segment.p_memsz % SEEP_HELD_PAGE_BYTES != 0 ||
            segment.p_vaddr >= SEEP_HELD_ADDRESS_END ||
            segment.p_memsz > SEEP_HELD_ADDRESS_END - segment.p_vaddr) {
            continue;
        }
        *map = (struct seep_held_map){
            .start = segment.p_vaddr,
            .end = segment.p_vaddr + segment.p_memsz,
            .path = "",
            .is_readable = (segment.p_flags & PF_R) != 0,
            .is_writable = (segment.p_flags & PF_W) != 0,
            .is_code = (segment.p_flags & PF_X) != 0,
            .core_at = segment.p_offset,
            .core_bytes = segment.p_filesz,
            .is_own =
                segment.p_filesz >= SEEP_HELD_PAGE_BYTES &&
                (memcmp(memory->core + segment.p_offset, "seeprec\n", 8) == 0 ||
                 seep_own_is_head(memory->core + segment.p_offset)),
        };
        memory->map_count += map->end > map->start;
    }
    qsort(memory->maps, memory->map_count, sizeof(*memory->maps), compare_maps);
    return 0;
}

static int read_core_file(struct seep_held_memory *memory)
{
    Elf64_Ehdr header;
    uint64_t count;
    int error;

    if (memory->core_bytes < sizeof(header)) {
        return -ENOEXEC;
    }
    memcpy(&header, memory->core, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_CORE ||
        header.e_phentsize < sizeof(Elf64_Phdr)) {
        return -ENOEXEC;
    }
    count = header.e_phnum;
    if (count == PN_XNUM &&
        bytes_at(memory, header.e_shoff, sizeof(Elf64_Shdr)) != NULL) {
        Elf64_Shdr first;

        memcpy(&first, memory->core + header.e_shoff, sizeof(first));
        count = first.sh_info;
    }
    if (count > SEGMENTS_MOST ||
        bytes_at(memory, header.e_phoff, count * header.e_phentsize) == NULL) {
        return -ENOEXEC;
    }
    error = add_segments(memory, &header, count);
    for (int pass = 0; error == 0 && pass < 2; pass++) {
        uint32_t note_count = 0;

        for (uint64_t i = 0; i < count; i++) {
            Elf64_Phdr segment;

            memcpy(&segment,
                   memory->core + header.e_phoff + i * header.e_phentsize,
                   sizeof(segment));
            if (segment.p_type == PT_NOTE &&
                bytes_at(memory, segment.p_offset, segment.p_filesz) != NULL) {
                read_notes(memory, segment.p_offset, segment.p_filesz,
                           pass == 1, &note_count);
            }
        }
    }
    return error;
}

/* What was never touched is left out by any kernel; all that has no name, by
 * one that was told so (coredump_filter). */
static void count_left_out(struct seep_held_memory *memory)
{
    uint64_t left_out = 0;

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];

        if (!map->is_writable || *map->path == '/') {
            continue;
        }
        if (map->core_bytes > 0) {
            return;
        }
        left_out += map->end - map->start;
    }
    memory->missing_bytes += left_out;
}

int seep_held_core_open(struct seep_held_memory *memory, const char *path)
{
    struct stat status;
    void *bytes;
    int fd = seep_open_regular(path, 0, &status);
    int error;

    if (fd < 0) {
        return fd;
    }
    bytes = status.st_size > 0 ? mmap(NULL, (size_t)status.st_size, PROT_READ,
                                      MAP_PRIVATE, fd, 0)
                               : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED) {
        return -ENOEXEC;
    }
    memory->core = bytes;
    memory->core_bytes = (size_t)status.st_size;
    memory->present_bytes = (uint64_t)status.st_blocks * 512;
    memory->pid = 0;
    error = read_core_file(memory);
    if (error == 0) {
        find_heap(memory);
        count_left_out(memory);
    }
    return error;
}

bool seep_held_core_agrees(struct seep_held_memory *memory, const char *path,
                           int fd)
{
    uint8_t first[SEEP_HELD_PAGE_BYTES];

    for (size_t i = 0; i < memory->map_count; i++) {
        const struct seep_held_map *map = &memory->maps[i];

        if (map->file_offset != 0 || map->core_bytes < sizeof(first) ||
            strcmp(map->path, path) != 0) {
            continue;
        }
        if (pread(fd, first, sizeof(first), 0) == (ssize_t)sizeof(first) &&
            memcmp(first, memory->core + map->core_at, sizeof(first)) == 0) {
            return true;
        }
        memory->other_file = map->path;
        return false;
    }
    return true;
}

bool seep_held_core_read_page(struct seep_held_memory *memory, uint64_t page,
                              void *to)
{
    const struct seep_held_map *map = seep_held_map_at(memory, page);
    uint64_t offset = map == NULL ? 0 : page - map->start;
    struct stat status;
    bool is_read = false;
    int fd;

    if (map == NULL) {
        return false;
    }
    if (offset < map->core_bytes) {
        const uint8_t *bytes =
            bytes_at(memory, map->core_at + offset, SEEP_HELD_PAGE_BYTES);

        if (bytes != NULL) {
            memcpy(to, bytes, SEEP_HELD_PAGE_BYTES);
        }
        return bytes != NULL;
    }
    fd = *map->path == '/' ? seep_open_regular(map->path, 0, &status) : -1;
    if (fd < 0) {
        return false;
    }
    if (seep_held_core_agrees(memory, map->path, fd)) {
        memset(to, 0, SEEP_HELD_PAGE_BYTES);
        is_read = pread(fd, to, SEEP_HELD_PAGE_BYTES,
                        (off_t)(map->file_offset + offset)) > 0;
    }
    close(fd);
    return is_read;
}

void seep_held_core_let_go(struct seep_held_memory *memory)
{
    madvise((void *)(uintptr_t)memory->core, memory->core_bytes, MADV_DONTNEED);
}

void seep_held_core_close(struct seep_held_memory *memory)
{
    munmap((void *)(uintptr_t)memory->core, memory->core_bytes);
    memory->core = NULL;
}
