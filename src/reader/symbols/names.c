/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names that are not in a module's own tables: of a JIT's code, as authors
 * wrote them, and remembered from earlier reports.
 *
 * Invariant: inputs are of strangers; what is read, tried and kept of them is
 * bounded.
 */
#include "reader/symbols/names.h"

#include <errno.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "reader/recording/open.h"
#include "reader/symbols/module.h"
#include "reader/symbols/packed.h"

/*
 * Reading a perf map once, whole, into a sorted index.
 *
 * Invariant: names point into the one text that was read; every one ends
 * inside it.
 */

/* Node writes about 100 bytes a function; a hundred megabytes are no map. */
#define TEXT_BYTES_MAX ((size_t)64 << 20)

struct seep_perf_map {
    char *text;
    struct seep_symbolise_index index;
};

static int open_checked(const char *path, size_t *ret_bytes)
{
    struct stat status;
    int fd = seep_open_regular(path, O_NOFOLLOW, &status);

    if (fd < 0) {
        return fd == -ENOTSUP ? -EPERM : fd;
    }
    if (status.st_uid != geteuid() && status.st_uid != 0) {
        close(fd);
        return -EPERM;
    }
    *ret_bytes = (uint64_t)status.st_size < TEXT_BYTES_MAX
                     ? (size_t)status.st_size
                     : TEXT_BYTES_MAX;
    return fd;
}

static bool parse_number(char **at, uint64_t *ret_number)
{
    char *end;

    if (strspn(*at, "0123456789abcdefABCDEF") == 0) {
        return false;
    }
    errno = 0;
    *ret_number = strtoull(*at, &end, 16);
    *at = end + strspn(end, " ");
    return errno == 0 && *end == ' ';
}

/* @sequence: a later line has the lower class and so wins. */
static int parse_line(struct seep_perf_map *map, char *line, uint32_t sequence)
{
    struct seep_symbolise_range range = {.class = UINT32_MAX - sequence};
    uint64_t size_bytes;
    char *at = line;

    if (!parse_number(&at, &range.start) || !parse_number(&at, &size_bytes) ||
        *at == '\0' ||
        __builtin_add_overflow(range.start, size_bytes, &range.end)) {
        return 0;
    }
    range.value = (uint64_t)(at - map->text);
    return seep_symbolise_index_add(&map->index, &range);
}

static int parse(struct seep_perf_map *map, size_t bytes)
{
    char *end = map->text + bytes;
    uint32_t sequence = 0;
    int result = 0;

    for (char *line = map->text; line < end && result == 0;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));

        if (stop == NULL) {
            stop = end;
        }
        *stop = '\0';
        result = parse_line(map, line, sequence++);
        line = stop + 1;
    }
    return result != 0 ? result : seep_symbolise_index_seal(&map->index);
}

int seep_perf_map_open(const char *path, struct seep_perf_map **ret_map)
{
    size_t bytes = 0;
    int fd = open_checked(path, &bytes);
    struct seep_perf_map *map;
    ssize_t got;
    int result;

    if (fd < 0) {
        return fd;
    }
    map = calloc(1, sizeof(*map));
    if (map != NULL) {
        map->text = malloc(bytes + 1);
    }
    if (map == NULL || map->text == NULL) {
        close(fd);
        seep_perf_map_close(map);
        return -ENOMEM;
    }
    /* The file may still grow or be cut: what is there of the size seen first.
     */
    got = seep_open_read(fd, map->text, 0, bytes);
    close(fd);
    result = got < 0 ? (int)got : parse(map, (size_t)got);
    if (result != 0) {
        seep_perf_map_close(map);
        return result;
    }
    *ret_map = map;
    return 0;
}

const char *seep_perf_map_find(const struct seep_perf_map *map,
                               uint64_t address)
{
    const struct seep_symbolise_range *range =
        seep_symbolise_index_find(&map->index, address);

    return range != NULL ? map->text + range->value : NULL;
}

void seep_perf_map_close(struct seep_perf_map *map)
{
    if (map != NULL) {
        seep_symbolise_index_fini(&map->index);
        free(map->text);
        free(map);
    }
}

/*
 * Demangling by libiberty, the one library that knows C++ and both manglings
 * of Rust. Its callback form is used: it allocates nothing, so that it can be
 * left in the middle.
 *
 * Invariant: the output is bounded. A few hundred bytes of substitutions can
 * stand for gigabytes of text; printing is left by longjmp once the caller's
 * buffer is full.
 */

struct output {
    char *text;
    size_t capacity_bytes;
    size_t used_bytes;
    jmp_buf full;
};

static void append(const char *piece, size_t piece_bytes, void *opaque)
{
    struct output *output = opaque;
    size_t room_bytes = output->capacity_bytes - 1 - output->used_bytes;
    size_t taken_bytes = piece_bytes < room_bytes ? piece_bytes : room_bytes;

    if (taken_bytes > 0) { /* of nothing there is no address */
        memcpy(output->text + output->used_bytes, piece, taken_bytes);
    }
    output->used_bytes += taken_bytes;
    if (taken_bytes < piece_bytes) {
        longjmp(output->full, 1);
    }
}

/*
 * Rust first: its legacy mangling is valid C++ too. libiberty's own limit of
 * recursion refuses C++ names over 1,024 bytes, which templates reach; the
 * cap on the input bounds the recursion as well, so it is lifted there.
 */
static bool print(const char *mangled, struct output *output)
{
    int options = DMGL_PARAMS | DMGL_ANSI;

    if (setjmp(output->full) != 0) {
        return true;
    }
    if (rust_demangle_callback(mangled, options, append, output) != 0) {
        return true;
    }
    output->used_bytes = 0;
    return strncmp(mangled, "_Z", 2) == 0 &&
           cplus_demangle_v3_callback(mangled, options | DMGL_NO_RECURSE_LIMIT,
                                      append, output) != 0;
}

bool seep_demangle(const char *mangled, char *ret_text, size_t text_bytes)
{
    char text[SEEP_DEMANGLE_TEXT_MAX];
    struct output output = {.text = text, .capacity_bytes = sizeof(text)};

    if (text_bytes == 0 || mangled[0] != '_' ||
        strnlen(mangled, SEEP_DEMANGLE_INPUT_MAX + 1) >
            SEEP_DEMANGLE_INPUT_MAX) {
        return false;
    }
    if (text_bytes < output.capacity_bytes) {
        output.capacity_bytes = text_bytes;
    }
    if (!print(mangled, &output)) {
        return false;
    }
    memcpy(ret_text, text, output.used_bytes);
    ret_text[output.used_bytes] = '\0';
    return true;
}

/* Names of addresses. Invariant: an answer points into .store only. */

int seep_symbol_memory_open(struct seep_symbol_memory **ret_memory)
{
    struct seep_symbol_memory *memory = calloc(1, sizeof(*memory));

    if (memory == NULL) {
        return -ENOMEM;
    }
    *ret_memory = memory;
    return 0;
}

void seep_symbol_memory_fini(struct seep_symbol_memory *memory)
{
    seep_store_fini(&memory->store);
    seep_store_table_fini(&memory->texts);
    seep_store_table_fini(&memory->runs);
    seep_store_table_fini(&memory->functions);
    seep_store_table_fini(&memory->answers);
    seep_store_table_fini(&memory->failures);
    seep_store_table_fini(&memory->modules);
    seep_store_table_fini(&memory->codes);
    seep_store_table_fini(&memory->stacks);
}

void seep_symbol_memory_close(struct seep_symbol_memory *memory)
{
    if (memory != NULL) {
        seep_symbol_house_close(memory->house);
        seep_symbol_pack_close(memory->pack);
        seep_symbol_memory_fini(memory);
        free(memory);
    }
}

uint64_t seep_symbol_memory_key(const struct seep_symbol_module *module)
{
    uint64_t key;

    if (module->build_id_bytes == 0) {
        return 0;
    }
    key = seep_hash_bytes(module->build_id, module->build_id_bytes);
    if (module->path != NULL) {
        key = seep_hash_add(
            key, seep_hash_bytes(module->path, strlen(module->path)));
    }
    return key + (key == 0);
}

static const char *find_or_add(struct seep_symbol_memory *memory,
                               struct seep_store_table *table,
                               const void *bytes, size_t count)
{
    const struct seep_store_entry *entry =
        seep_store_find(&memory->store, table, bytes, count);

    return entry != NULL ? entry->key : NULL;
}

const char *seep_symbol_memory_text(struct seep_symbol_memory *memory,
                                    const char *text)
{
    return find_or_add(memory, &memory->texts, text, strlen(text));
}

const char *seep_symbol_memory_keep(struct seep_symbol_memory *memory,
                                    struct seep_store *store, const char *text,
                                    size_t most)
{
    return memory == NULL || !memory->shares
               ? seep_store_text_most(store, text, most)
               : find_or_add(memory, &memory->texts, text, strnlen(text, most));
}

const void *seep_symbol_memory_keep_run(struct seep_symbol_memory *memory,
                                        struct seep_store *store,
                                        const void *frames, size_t bytes)
{
    void *copy;

    if (memory != NULL && memory->shares) {
        return find_or_add(memory, &memory->runs, frames, bytes);
    }
    copy = seep_store_take(store, bytes, 1);
    return copy != NULL ? memcpy(copy, frames, bytes) : NULL;
}

uint64_t seep_symbol_memory_number(struct seep_symbol_memory *memory,
                                   struct seep_store_table *table,
                                   const char *const pair[2])
{
    struct seep_store_entry *entry =
        seep_store_find(&memory->store, table, pair, 2 * sizeof(*pair));

    if (entry == NULL) {
        return 0;
    }
    if (entry->value == NULL) {
        entry->value = (void *)(uintptr_t)table->count;
    }
    return (uintptr_t)entry->value;
}

const struct seep_symbol_answer *
seep_symbol_memory_find(struct seep_symbol_memory *memory, uint64_t key,
                        uint64_t offset)
{
    const uint64_t words[] = {key, offset};
    const struct seep_store_entry *entry =
        seep_store_find(NULL, &memory->answers, words, sizeof(words));

    return entry != NULL ? entry->value : NULL;
}

int seep_symbol_memory_set(struct seep_symbol_memory *memory, uint64_t key,
                           uint64_t offset, struct seep_symbol_answer answer)
{
    const uint64_t words[] = {key, offset};
    struct seep_symbol_answer *kept =
        seep_store_take(&memory->store, 1, sizeof(*kept));
    struct seep_store_entry *entry =
        seep_store_find(&memory->store, &memory->answers, words, sizeof(words));

    if (kept == NULL || entry == NULL) {
        return -ENOMEM;
    }
    *kept = answer;
    entry->value = kept;
    return 0;
}

const struct seep_symbol_frame *
seep_symbol_memory_copy(struct seep_symbol_memory *memory,
                        const struct seep_symbol_answer *answer)
{
    struct seep_symbol_frame *copy =
        seep_store_take(&memory->store, answer->count, sizeof(*copy));

    for (size_t i = 0; copy != NULL && i < answer->count; i++) {
        copy[i] = answer->frames[i];
        copy[i].function = seep_symbol_memory_text(memory, copy[i].function);
        copy[i].file = seep_symbol_memory_text(memory, copy[i].file);
        if (copy[i].function == NULL || copy[i].file == NULL) {
            return NULL;
        }
    }
    return copy;
}

void seep_symbol_memory_put(struct seep_symbol_memory *memory, uint64_t key,
                            uint64_t offset, struct seep_symbol_answer answer)
{
    if (memory->answers.count >= SEEP_SYMBOL_MEMORY_MOST && !memory->keeps) {
        seep_symbol_memory_fini(memory);
    }
    answer.frames = seep_symbol_memory_copy(memory, &answer);
    if (answer.frames != NULL) {
        (void)seep_symbol_memory_set(memory, key, offset, answer);
    }
}

void seep_symbol_memory_fail(struct seep_symbol_memory *memory, uint64_t key,
                             int error)
{
    int *kept = seep_store_take(&memory->store, 1, sizeof(*kept));
    struct seep_store_entry *entry =
        seep_store_find(&memory->store, &memory->failures, &key, sizeof(key));

    if (kept != NULL && entry != NULL) {
        *kept = error;
        entry->value = kept;
    }
}

int seep_symbol_memory_failure(struct seep_symbol_memory *memory, uint64_t key)
{
    const struct seep_store_entry *entry =
        seep_store_find(NULL, &memory->failures, &key, sizeof(key));

    return entry != NULL ? *(const int *)entry->value : 0;
}
