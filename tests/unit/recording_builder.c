/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See recording_builder.h. */
#include "recording_builder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/account.h"
#include "format/layout.h"
#include "format/series.h"

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void begin(struct recording_builder *builder,
                  const struct seep_rec_header *layout)
{
    struct seep_rec_header *header = builder->bytes;

    memcpy(header, layout, sizeof(*header));
    seep_layout_start(header);
    seep_view_init(&builder->view, header);
    builder->fold =
        (struct seep_fold){.view = &builder->view, .thread = 1, .random = 1};
    builder->positions =
        calloc(builder->view.shard_count + 1, sizeof(*builder->positions));
    must(builder->positions != NULL);
    header->start_realtime_ns = UINT64_C(1700000000000000000);
    header->clock_ticks_per_s = 100;
    header->memory_total_bytes = UINT64_C(8) << 30;
    memcpy(header->host, "builder", 8);
    memcpy(header->boot_id, "no such boot", 13);
    header->pid = 4242;
    header->executable = builder_string(builder, "/usr/bin/worker");
    header->arguments = builder_string(builder, "worker");
    builder_string(builder, "--serve");
    header->argument_count = 2;
    header->seep_version = builder_string(builder, "0.1.0");
    atomic_store_explicit(&header->ready, SEEP_PUBLISHED, memory_order_relaxed);
    builder_seal(builder);
}

void builder_init_layout(struct recording_builder *builder,
                         const struct seep_rec_header *layout, int fd)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;

    memset(builder, 0, sizeof(*builder));
    builder->size_bytes = layout->file_bytes;
    must(fd < 0 || ftruncate(fd, (off_t)layout->file_bytes) == 0);
    builder->bytes =
        mmap(NULL, builder->size_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    must(builder->bytes != MAP_FAILED);
    begin(builder, layout);
}

static void init(struct recording_builder *builder, uint64_t size_bytes,
                 bool exact, bool inert, int fd)
{
    struct seep_rec_header layout = {.pid = 0};

    must(seep_layout_make(size_bytes, exact, inert, &layout) == 0);
    builder_init_layout(builder, &layout, fd);
}

void builder_init(struct recording_builder *builder, uint64_t size_bytes,
                  bool exact)
{
    init(builder, size_bytes, exact, false, -1);
}

void builder_init_shared(struct recording_builder *builder, const char *path,
                         uint64_t size_bytes, bool exact)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    must(fd >= 0);
    init(builder, size_bytes, exact, false, fd);
    close(fd);
}

void builder_init_inert(struct recording_builder *builder,
                        enum seep_inert_reason reason)
{
    init(builder, SEEP_LAYOUT_LEAST_BYTES, false, true, -1);
    builder->view.header->inert = reason;
    builder_seal(builder);
}

void builder_fini(struct recording_builder *builder)
{
    munmap(builder->bytes, builder->size_bytes);
    free(builder->positions);
}

void builder_seal(struct recording_builder *builder)
{
    struct seep_rec_header *header = builder->view.header;

    header->fixed_hash = seep_layout_fixed_hash(header);
}

seep_string builder_string(struct recording_builder *builder, const char *text)
{
    struct seep_rec_header *header = builder->view.header;
    size_t bytes = strlen(text) + 1;
    uint64_t at = atomic_fetch_add_explicit(&header->string_bytes_used, bytes,
                                            memory_order_relaxed);

    must(at + bytes < builder->view.string_bytes);
    memcpy(builder->view.strings + at, text, bytes);
    return (seep_string)at;
}

uint32_t builder_module(struct recording_builder *builder, const char *path,
                        uint8_t build_id)
{
    uint32_t index = atomic_fetch_add_explicit(
        &builder->view.header->module_count, 1, memory_order_relaxed);
    struct seep_rec_module *module = &builder->view.modules[index];

    must(index < builder->view.module_capacity);
    module->path = builder_string(builder, path);
    module->build_id_bytes = 20;
    memset(module->build_id, build_id, 20);
    atomic_store_explicit(&module->state, SEEP_PUBLISHED, memory_order_relaxed);
    return index + 1;
}

uint64_t builder_frame(uint32_t module, uint64_t offset)
{
    return (uint64_t)module << SEEP_FRAME_OFFSET_BITS | offset;
}

uint32_t builder_code(struct recording_builder *builder,
                      enum seep_code_kind kind, const char *file,
                      const char *name, uint32_t first_line)
{
    uint32_t index =
        1 + atomic_fetch_add_explicit(&builder->view.header->code_count, 1,
                                      memory_order_relaxed);
    struct seep_rec_code *code = &builder->view.codes[index];

    must(index < builder->view.code_capacity);
    code->kind = kind;
    code->file = file[0] != '\0' ? builder_string(builder, file) : 0;
    code->name = builder_string(builder, name);
    code->first_line = first_line;
    atomic_store_explicit(&code->key, index, memory_order_relaxed);
    atomic_store_explicit(&code->state, SEEP_PUBLISHED, memory_order_relaxed);
    return index;
}

uint64_t builder_code_frame(uint32_t code, uint32_t line)
{
    return SEEP_FRAME_IS_CODE | (uint64_t)code << SEEP_FRAME_LINE_BITS | line;
}

uint32_t builder_stack(struct recording_builder *builder,
                       const uint64_t *frames, uint32_t count)
{
    struct seep_rec_header *header = builder->view.header;
    uint32_t index = atomic_fetch_add_explicit(&header->stack_count, 1,
                                               memory_order_relaxed);
    struct seep_rec_stack *stack = &builder->view.stacks[index];

    must(index < builder->view.stack_capacity);
    stack->first_frame = (uint32_t)atomic_fetch_add_explicit(
        &header->frames_used, count, memory_order_relaxed);
    must(stack->first_frame + count <= builder->view.frame_capacity);
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&builder->view.frames[stack->first_frame + i],
                              frames[i], memory_order_relaxed);
    }
    atomic_store_explicit(&stack->key, index + 1, memory_order_relaxed);
    atomic_store_explicit(&stack->frame_count, count, memory_order_relaxed);
    return index;
}

uint32_t builder_site(struct recording_builder *builder, uint32_t stack,
                      enum seep_space space)
{
    uint32_t index =
        1 + atomic_fetch_add_explicit(&builder->view.header->site_count, 1,
                                      memory_order_relaxed);
    struct seep_rec_site *site = &builder->view.sites[index];

    must(index < builder->view.site_capacity);
    site->stack = stack;
    site->space = space;
    atomic_store_explicit(&site->key, index, memory_order_relaxed);
    atomic_store_explicit(&site->state, SEEP_PUBLISHED, memory_order_relaxed);
    return index;
}

uint32_t builder_site_of_device(struct recording_builder *builder,
                                uint32_t stack, enum seep_space space,
                                uint32_t ordinal)
{
    uint32_t site = builder_site(builder, stack, space);

    builder->view.sites[site].device = ordinal + 1;
    return site;
}

static void fold_shard(struct recording_builder *builder, uint32_t shard)
{
    _Atomic uint64_t *lock = &builder->view.shards[shard].lock;

    must(seep_fold_try_lock(lock, 1));
    seep_fold_shard(&builder->fold, shard, UINT32_MAX);
    seep_fold_unlock(lock, 1);
}

void builder_push(struct recording_builder *builder, enum seep_event_kind kind,
                  uint64_t address, uint64_t size, uint32_t site, uint32_t tick)
{
    const struct seep_view *view = &builder->view;
    /* A restore with a size is one of a range. */
    bool is_range =
        kind >= SEEP_EVENT_MAP || (kind == SEEP_EVENT_RESTORE && size != 0);
    uint32_t shard =
        is_range ? view->shard_count - 1 : seep_view_shard_of(view, address);
    uint64_t position = builder->positions[shard];
    struct seep_rec_event *slot =
        &seep_view_ring(view, shard)[position & (view->ring_slots - 1)];
    /* Every block is told here, so in an exact recording none was sampled,
     * also once it is being thinned; and what a driver gave never is. */
    uint64_t level = view->header->exact || SEEP_ADDRESS_IS_KEY(address)
                         ? 0
                         : atomic_load_explicit(&view->header->sample_log2,
                                                memory_order_relaxed);

    if (position - atomic_load_explicit(&view->shards[shard].head,
                                        memory_order_relaxed) >=
        view->ring_slots) {
        fold_shard(builder, shard);
    }
    atomic_store_explicit(&slot->address, address, memory_order_relaxed);
    atomic_store_explicit(&slot->size_kind,
                          size | level << SEEP_SIZE_BITS |
                              (uint64_t)kind << (SEEP_SIZE_BITS + 8),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->site, site, memory_order_relaxed);
    atomic_store_explicit(&slot->tick, tick, memory_order_relaxed);
    /* Release: the event's fields; pairs with the acquire of the fold. */
    atomic_store_explicit(&slot->state,
                          seep_view_state(view, position, SEEP_SLOT_READY, 1),
                          memory_order_release);
    builder->positions[shard]++;
    atomic_store_explicit(&view->shards[shard].tail_hint, position + 1,
                          memory_order_relaxed);
}

void builder_alloc(struct recording_builder *builder, uint64_t address,
                   uint64_t size, uint32_t site, uint32_t tick)
{
    builder_push(builder, SEEP_EVENT_ALLOC, address, size, site, tick);
}

void builder_free(struct recording_builder *builder, uint64_t address,
                  uint32_t tick)
{
    builder_push(builder, SEEP_EVENT_FREE, address, 0, 0, tick);
}

void builder_fold(struct recording_builder *builder)
{
    for (uint32_t i = 0; i < builder->view.shard_count; i++) {
        fold_shard(builder, i);
    }
}

void builder_moment(struct recording_builder *builder, uint32_t index,
                    uint32_t tick, uint64_t rss_bytes, uint64_t units)
{
    struct seep_rec_moment *moment = &builder->view.timeline[index];

    must(index < SEEP_BUCKET_COUNT);
    atomic_store_explicit(&moment->rss_bytes, rss_bytes, memory_order_relaxed);
    atomic_store_explicit(&moment->progress_units, units, memory_order_relaxed);
    atomic_store_explicit(&moment->tick, tick, memory_order_relaxed);
    atomic_store_explicit(&builder->view.header->progress_units, units,
                          memory_order_relaxed);
}

static struct seep_rec_device *device_entry(struct recording_builder *builder,
                                            uint32_t ordinal, uint32_t index)
{
    must(ordinal < builder->view.device_count && index < SEEP_BUCKET_COUNT);
    return &builder->view.devices[(size_t)ordinal * SEEP_BUCKET_COUNT + index];
}

void builder_device(struct recording_builder *builder, uint32_t ordinal,
                    uint32_t index, uint32_t tick, uint64_t total_bytes,
                    uint64_t free_bytes)
{
    struct seep_rec_device *entry = device_entry(builder, ordinal, index);

    atomic_store_explicit(&entry->tick, tick, memory_order_relaxed);
    atomic_store_explicit(&entry->total_bytes, total_bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&entry->free_bytes, free_bytes, memory_order_relaxed);
    atomic_store_explicit(&entry->low_free_bytes, free_bytes,
                          memory_order_relaxed);
}

void builder_cache(struct recording_builder *builder, uint32_t ordinal,
                   uint32_t index, uint64_t reserved_bytes,
                   uint64_t allocated_bytes)
{
    struct seep_rec_device *entry = device_entry(builder, ordinal, index);

    atomic_store_explicit(&entry->tensor_reserved_bytes, reserved_bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&entry->tensor_allocated_bytes, allocated_bytes,
                          memory_order_relaxed);
}

void builder_mark(struct recording_builder *builder, enum seep_mark_kind kind,
                  uint32_t tick, const char *name, const char *text)
{
    struct seep_rec_header *header = builder->view.header;
    uint32_t index =
        atomic_fetch_add_explicit(&header->mark_count, 1, memory_order_relaxed);
    struct seep_rec_mark *mark = &builder->view.marks[index];

    must(index < builder->view.mark_capacity);
    mark->kind = kind;
    mark->name = builder_string(builder, name);
    mark->text = builder_string(builder, text);
    mark->units =
        atomic_load_explicit(&header->progress_units, memory_order_relaxed);
    atomic_store_explicit(&mark->tick, tick, memory_order_relaxed);
    atomic_store_explicit(&mark->order, index + 1, memory_order_relaxed);
    atomic_store_explicit(&mark->state, SEEP_PUBLISHED, memory_order_relaxed);
}

void builder_exit(struct recording_builder *builder, uint32_t tick)
{
    struct seep_rec_header *header = builder->view.header;

    atomic_store_explicit(&header->exit_tick, tick, memory_order_relaxed);
    atomic_store_explicit(&header->exited, 1, memory_order_relaxed);
}

void builder_temporary(char ret_path[BUILDER_PATH_BYTES])
{
    int fd;

    strcpy(ret_path, "/tmp/seep-test-XXXXXX");
    fd = mkstemp(ret_path);
    if (fd < 0) {
        abort();
    }
    close(fd);
}

void builder_write(const struct recording_builder *builder, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const char *at = builder->bytes;
    size_t left = builder->size_bytes;

    must(fd >= 0);
    while (left > 0) {
        ssize_t written = write(fd, at, left);

        must(written > 0);
        at += written;
        left -= (size_t)written;
    }
    must(close(fd) == 0);
}

static uint32_t sample_site(struct recording_builder *builder,
                            const uint32_t *modules, uint64_t offset,
                            enum seep_space space)
{
    const uint64_t frames[] = {
        builder_frame(modules[0], 0x1000),
        builder_frame(modules[1], offset),
        builder_frame(modules[1], 0x2000),
        builder_frame(SEEP_MODULE_NONE, 0x7f0012345678),
        builder_code_frame(1, 31),
        builder_code_frame(2, 0),
    };

    return builder_site(builder, builder_stack(builder, frames, 6), space);
}

/* Segments that tensors lie in, and what the driver says of the device. */
static void sample_device(struct recording_builder *builder,
                          const uint32_t *modules)
{
    uint32_t tensor = sample_site(builder, modules, 0x5000, SEEP_SPACE_TENSOR);
    uint32_t segment = sample_site(builder, modules, 0x6000, SEEP_SPACE_DEVICE);
    uint64_t next = UINT64_C(1) << 56;

    builder->view.sites[tensor].device = 1;
    builder->view.sites[segment].device = 1;
    for (uint32_t step = 0; step < 100; step++) {
        uint32_t tick = step * BUILDER_TICKS_PER_S;

        builder_alloc(builder, next, 1 << 20, tensor, tick);
        if (step % 2 == 0) {
            builder_alloc(builder, next + 0x10000, 2 << 20, segment, tick);
        }
        builder_device(builder, 0, step, tick + 1, UINT64_C(4) << 30,
                       (UINT64_C(4) << 30) - (step << 20));
        builder_cache(builder, 0, step, (step / 2 + 1) << 21, step << 20);
        next += 0x100000;
    }
}

void builder_init_sample(struct recording_builder *builder)
{
    uint32_t modules[2];
    uint32_t sites[4];
    uint64_t next = 0x10000;

    builder_init(builder, SEEP_LAYOUT_LEAST_BYTES, true);
    modules[0] = builder_module(builder, "/usr/lib/libc.so.6", 0x11);
    modules[1] = builder_module(builder, "/usr/bin/worker", 0x22);
    builder_code(builder, SEEP_CODE_PYTHON, "/srv/serve.py", "handle", 30);
    builder_code(builder, SEEP_CODE_THREAD, "", "worker-3", 0);
    for (uint32_t i = 0; i < 3; i++) {
        sites[i] = sample_site(builder, modules, 0x3000 + i, SEEP_SPACE_HEAP);
    }
    sites[3] = sample_site(builder, modules, 0x4000, SEEP_SPACE_MAPPED);
    for (uint32_t step = 0; step < 1000; step++) {
        uint32_t tick = step * BUILDER_TICKS_PER_S / 10;

        builder_alloc(builder, next, 4096, sites[0], tick); /* the leak */
        builder_alloc(builder, next + 0x4000, 2048, sites[1], tick);
        if (step >= 50) { /* the cache holds fifty */
            builder_free(builder, next + 0x4000 - 50 * UINT64_C(0x10000), tick);
        }
        builder_alloc(builder, next + 0x8000, 100000, sites[2], tick);
        builder_free(builder, next + 0x8000, tick);
        if (step % 100 == 0) {
            builder_push(builder, SEEP_EVENT_MAP,
                         (next << 16) + (UINT64_C(1) << 40), 65536, sites[3],
                         tick);
            builder_moment(builder, step / 10, tick + 1,
                           (UINT64_C(100) << 20) + step * UINT64_C(4096), step);
        }
        next += 0x10000;
    }
    sample_device(builder, modules);
    builder_fold(builder);
    builder_alloc(builder, next, 4096, sites[0], 95200); /* pending */
    atomic_store_explicit(&builder->view.sites[sites[1]].lock, 1,
                          memory_order_relaxed);
    atomic_store_explicit(&builder->view.counters[SEEP_COUNT_EVENTS], 4000,
                          memory_order_relaxed);
    builder_exit(builder, 100 * BUILDER_TICKS_PER_S);
    builder_mark(builder, SEEP_MARK_MOMENT, 20 * BUILDER_TICKS_PER_S,
                 "warm-up done", "");
    builder_mark(builder, SEEP_MARK_LABEL, 30 * BUILDER_TICKS_PER_S, "model",
                 "bert-13");
    builder_mark(builder, SEEP_MARK_LABEL, 60 * BUILDER_TICKS_PER_S, "model",
                 "bert-14");
}

const struct seep_rec_series *builder_series(const struct seep_view *view,
                                             uint32_t site,
                                             struct seep_rec_series *scratch)
{
    uint32_t number =
        atomic_load_explicit(&view->sites[site].series, memory_order_relaxed);
    struct seep_rec_brief brief;

    memset((void *)&brief, 0, sizeof(brief));
    memset((void *)scratch, 0, sizeof(*scratch));
    if (number != 0 && (number & SEEP_SERIES_IS_BRIEF) == 0) {
        return &view->series[number - 1];
    }
    if (number != 0) {
        seep_brief_expand(&view->briefs[(number & ~SEEP_SERIES_IS_BRIEF) - 1],
                          scratch);
        return scratch;
    }
    if (site == 0 || !seep_account_is_whole(&view->sites[site])) {
        return NULL;
    }
    seep_account_tell(view, site, &brief);
    seep_brief_expand(&brief, scratch);
    return scratch;
}
