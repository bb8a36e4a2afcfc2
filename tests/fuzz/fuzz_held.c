/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer's entry for who holds a block. The first byte says what the rest
 * is: a core file as it is, or what a core's memory is made of: words that know
 * where other words are, which nobody would guess. It has an image with symbols
 * (one of them PyType_Type), a break, a heap of another arena, a stack, pools,
 * and a mapping of which nothing is known.
 *
 * Invariant: every block that was asked about is in one group of the answer,
 * and what is printed of it is JSON.
 */
#include <elf.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "held/held.h"
#include "held/pins.h"
#include "words/held.h"
#include "json/json.h"

#define IS_CORE 'c'
/* Of the second byte, as well. */
#define OF_DRIVER 64U
#define CACHED 128U
#define PAGE UINT64_C(4096)
#define AREA_BYTES (4 * PAGE) /* a pool of CPython's */
#define AREA_WORDS (AREA_BYTES / 8)
#define ASKED_MOST 16U
#define IMAGE_AT UINT64_C(0x555555000000)
#define HELD_LIMIT_S 5

/* What memory there is; of IMAGE the symbols below say what lies where. */
enum area { IMAGE, BREAK, HEAP, STACK, POOLS, OTHER, AREAS };

static const uint64_t starts[AREAS] = {
    [IMAGE] = IMAGE_AT + PAGE,          [BREAK] = UINT64_C(0x555556000000),
    [HEAP] = UINT64_C(0x7f0000000000),  [STACK] = UINT64_C(0x7ffff0000000),
    [POOLS] = UINT64_C(0x7f1000000000), [OTHER] = UINT64_C(0x7f2000000000),
};

static const struct {
    const char *name;
    uint64_t word; /* in IMAGE */
    uint64_t words;
} symbols[] = {
    {"PyType_Type", 0, 64},
    {"_ZTV7Replies", 64, 4},
    {"kept", 128, 16},
    {"_ZN6server5cacheE", 144, 16},
};

#define SYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

static const char *const texts[] = {
    "dict",
    "list",
    "str",
    "tuple",
    "type",
    "module",
    "set",
    "function",
    "code",
    "frame",
    "generator",
    "weakref",
    "__name__",
    "__loader__",
    "__spec__",
    "__main__",
    "__file__",
    "numpy.ndarray",
    "collections.deque",
    "int",
    "bytearray",
    "cell",
    "__module__",
    "a.Model",
    "7Replies",
    "_asyncio.Task",
    "traceback",
    "history",
    "weakref.ReferenceType",
    "",
};

#define TEXTS (sizeof(texts) / sizeof(texts[0]))

static uint64_t memory[AREAS][AREA_WORDS];
static char image_path[64];
static int core_fd = -1;

/* No piece counts for more than it is. */
static void check_pins(const struct seep_held_question *question)
{
    struct seep_held_pins pins = {0};
    uint64_t bytes = 0;

    if (seep_held_pins_find(question, &pins) < 0) {
        return;
    }
    for (size_t i = 0; i < pins.count; i++) {
        bytes += pins.items[i].bytes;
    }
    if (pins.count > pins.pin_count || bytes > pins.pin_bytes ||
        pins.apart_bytes > (double)pins.piece_bytes) {
        abort();
    }
    seep_held_pins_fini(&pins);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int make_file(const char *name)
{
    int fd = memfd_create(name, 0);

    if (fd < 0) {
        abort();
    }
    return fd;
}

static void put(int fd, const void *bytes, size_t count, uint64_t at)
{
    if (pwrite(fd, bytes, count, (off_t)at) != (ssize_t)count) {
        abort();
    }
}

/* The file of IMAGE: two segments, symbols of data, one function. */
static void make_image(void)
{
    char names[512] = "";
    Elf64_Sym table[SYMBOLS + 2] = {{0}};
    Elf64_Phdr segments[3] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = PAGE},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_W,
         .p_vaddr = PAGE,
         .p_memsz = AREA_BYTES},
        {.p_type = PT_TLS, .p_memsz = 64, .p_align = 8},
    };
    Elf64_Shdr sections[3] = {
        {0},
        {.sh_type = SHT_SYMTAB,
         .sh_offset = 1024,
         .sh_size = sizeof(table),
         .sh_entsize = sizeof(Elf64_Sym),
         .sh_link = 2},
        {.sh_type = SHT_STRTAB, .sh_offset = 2048, .sh_size = sizeof(names)},
    };
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phoff = 64,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 3,
        .e_shoff = 512,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
    };
    size_t used = 1;
    int fd = make_file("image");

    for (size_t i = 0; i < SYMBOLS; i++) {
        table[i + 1] = (Elf64_Sym){
            .st_name = (Elf64_Word)used,
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
            .st_shndx = 1,
            .st_value = PAGE + 8 * symbols[i].word,
            .st_size = 8 * symbols[i].words,
        };
        used += (size_t)sprintf(names + used, "%s", symbols[i].name) + 1;
    }
    table[SYMBOLS + 1] = (Elf64_Sym){
        .st_name = (Elf64_Word)used,
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = 1,
        .st_size = PAGE,
    };
    sprintf(names + used, "serve");
    put(fd, &header, sizeof(header), 0);
    put(fd, segments, sizeof(segments), 64);
    put(fd, sections, sizeof(sections), 512);
    put(fd, table, sizeof(table), 1024);
    put(fd, names, sizeof(names), 2048);
    snprintf(image_path, sizeof(image_path), "/proc/self/fd/%d", fd);
}

struct input {
    const uint8_t *data;
    size_t left;
};

static unsigned take(struct input *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->data++;
}

static unsigned take_two(struct input *input)
{
    unsigned low = take(input);

    return low | take(input) << 8;
}

struct cursor {
    unsigned area;
    unsigned word;
};

static void write_word(struct cursor *cursor, uint64_t word)
{
    memory[cursor->area][cursor->word] = word;
    cursor->word = (cursor->word + 1) % AREA_WORDS;
}

static void write_text(struct cursor *cursor, const char *text)
{
    char padded[64] = "";

    snprintf(padded, sizeof(padded), "%s", text);
    for (size_t at = 0; at <= strlen(text); at += 8) {
        uint64_t word;

        memcpy(&word, padded + at, sizeof(word));
        write_word(cursor, word);
    }
}

/* One step of making memory. */
static void make_step(struct input *input, struct cursor *cursor,
                      struct seep_held_block *asked, size_t *asked_count)
{
    unsigned kind = take(input);
    unsigned area = kind >> 3 & 7;
    uint64_t word = 0;

    switch (kind & 7) {
    case 0: /* go there */
        cursor->area = area % AREAS;
        cursor->word = take_two(input) % AREA_WORDS;
        break;
    case 1: /* an address */
        write_word(cursor, starts[area % AREAS] + take_two(input));
        break;
    case 2: /* a small number */
        write_word(cursor, take_two(input));
        break;
    case 3: /* any */
        for (unsigned i = 0; i < 8; i++) {
            word |= (uint64_t)take(input) << 8 * i;
        }
        write_word(cursor, word);
        break;
    case 4: /* the last one more times, each so much further */
        word =
            memory[cursor->area][(cursor->word + AREA_WORDS - 1) % AREA_WORDS];
        for (unsigned i = take(input), by = take(input); i > 0; i--) {
            word += by;
            write_word(cursor, word);
        }
        break;
    case 5:
        write_text(cursor, texts[take(input) % TEXTS]);
        break;
    case 6: /* what is asked about begins here */
        if (*asked_count < ASKED_MOST) {
            asked[*asked_count] = (struct seep_held_block){
                starts[cursor->area] + 8 * (uint64_t)cursor->word,
                1 + take_two(input)};
            (*asked_count)++;
        }
        break;
    default: /* leave some out */
        cursor->word = (cursor->word + take(input)) % AREA_WORDS;
        break;
    }
}

#define NOTES_AT 1024U
#define AREAS_AT UINT64_C(8192)

/* NT_PRSTATUS of a thread, NT_FILE of the image. */
static uint64_t write_notes(void)
{
    struct __attribute__((packed)) {
        Elf64_Nhdr status_head;
        char status_name[8];
        struct elf_prstatus status;
        Elf64_Nhdr files_head;
        char files_name[8];
        uint64_t files[2 + 2 * 3];
        char paths[2 * sizeof(image_path)];
    } notes = {
        .status_head = {5, sizeof(struct elf_prstatus), NT_PRSTATUS},
        .status_name = "CORE",
        .files_head = {5, 0, NT_FILE},
        .files_name = "CORE",
        .files = {2, PAGE, IMAGE_AT, IMAGE_AT + PAGE, 0, IMAGE_AT + PAGE,
                  IMAGE_AT + PAGE + AREA_BYTES, 1},
    };
    size_t length = strlen(image_path) + 1;

    notes.status.pr_pid = 1;
    notes.status.pr_reg[19] = starts[STACK] + 256;
    memcpy(notes.paths, image_path, length);
    memcpy(notes.paths + length, image_path, length);
    notes.files_head.n_descsz =
        (Elf64_Word)(sizeof(notes.files) + sizeof(notes.paths));
    put(core_fd, &notes, sizeof(notes), NOTES_AT);
    return sizeof(notes);
}

static void write_core(void)
{
    Elf64_Phdr segments[AREAS + 2] = {{0}};
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = EM_X86_64,
        .e_phoff = 64,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = AREAS + 2,
    };

    segments[0] = (Elf64_Phdr){
        .p_type = PT_NOTE, .p_offset = NOTES_AT, .p_filesz = write_notes()};
    segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                               .p_flags = PF_R | PF_X,
                               .p_vaddr = IMAGE_AT,
                               .p_memsz = PAGE};
    for (size_t i = 0; i < AREAS; i++) {
        segments[i + 2] = (Elf64_Phdr){
            .p_type = PT_LOAD,
            .p_flags = PF_R | PF_W,
            .p_offset = AREAS_AT + i * AREA_BYTES,
            .p_vaddr = starts[i],
            .p_filesz = AREA_BYTES,
            .p_memsz = AREA_BYTES,
        };
    }
    put(core_fd, &header, sizeof(header), 0);
    put(core_fd, segments, sizeof(segments), 64);
    put(core_fd, memory, sizeof(memory), AREAS_AT);
}

static void check(const struct seep_held_answer *answer)
{
    json_t *object = seep_json_held(answer);
    char *text = json_dumps(object, JSON_ENCODE_ANY);
    size_t told = 0;

    for (size_t i = 0; i < answer->group_count; i++) {
        told += answer->groups[i].block_count;
    }
    if (text == NULL || told != answer->asked_count ||
        answer->cpu_s > 2 * HELD_LIMIT_S) {
        abort();
    }
    free(text);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t minors[] = {8, 9, 10, 11, 12, 13, 14, 0};
    struct seep_held_block asked[ASKED_MOST] = {{UINT64_C(0x10000), 64}};
    struct input input = {data, size};
    struct seep_held_question question = {
        .blocks = asked,
        .block_count = 1,
        .cpu_limit_s = HELD_LIMIT_S,
        .without_wall = true,
    };
    struct seep_held_answer *answer;
    char path[64];
    unsigned kind = take(&input);
    unsigned version = take(&input);
    unsigned minor = minors[version % sizeof(minors)];

    if (core_fd < 0) {
        core_fd = make_file("core");
        make_image();
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", core_fd);
    question.core_path = path;
    question.is_of_driver = (version & OF_DRIVER) != 0;
    question.is_cached = (version & CACHED) != 0;
    question.python_version = minor == 0 ? 0 : 3U << 24 | minor << 16;
    if (ftruncate(core_fd, 0) != 0) {
        abort();
    }
    if (kind == IS_CORE) {
        put(core_fd, input.data, input.left, 0);
    } else {
        struct cursor cursor = {0, 0};

        memset(memory, 0, sizeof(memory));
        memory[BREAK][1] = 0x291;
        question.block_count = 0;
        while (input.left > 0) {
            make_step(&input, &cursor, asked, &question.block_count);
        }
        write_core();
    }
    check_pins(&question);
    if (seep_held_ask(&question, &answer) == 0) {
        check(answer);
        seep_held_close(answer);
    }
    return 0;
}
