/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one lock, the settings, who may call, and what is counted.
 *
 * Invariant: a call that is refused (not initialised, a fork's child, after
 * the end) is counted too, and changes nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#define RESULTS 1024
#define PAGE_BYTES 4096
#define FIRST_ERRNO 1000

struct fake_settings fake_settings;
struct fake_device fake_devices[FAKE_DEVICES_MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t started_by;
/* A word in a page that a fork's child finds empty: to ask who we are at each
 * call would be most of its cost. NULL: ask. */
static _Atomic uint32_t *ours;
static bool ended;
static uint64_t fail_in;
static CUresult fail_result = CUDA_ERROR_OUT_OF_MEMORY;
static uint64_t asked_in_capture;
static int64_t live_bytes[FAKE_TYPES];
static int64_t live_count[FAKE_TYPES];
static _Atomic uint64_t calls[FAKE_ENTRIES];
static _Atomic uint64_t results[RESULTS];

static const char *const entry_names[FAKE_ENTRIES] = {
#define FAKE_ENTRY(name, base, version, twin, parameters) #name,
#include "entry_points.def"
#undef FAKE_ENTRY
};

static const char *const kind_names[SEEP_FAKE_KINDS] = {
    "device",    "managed", "async",    "physical", "pinned", "registered",
    "reserved",  "mapped",  "imported", "external", "array",  "graph",
    "multicast", "code",    "context",  "other",
};

static const enum seep_fake_kind kind_of[FAKE_TYPES] = {
    [FAKE_FREE] = SEEP_FAKE_OTHER,
    [FAKE_CONTEXT] = SEEP_FAKE_CONTEXT,
    [FAKE_STREAM] = SEEP_FAKE_OTHER,
    [FAKE_EVENT] = SEEP_FAKE_OTHER,
    [FAKE_DEVICE] = SEEP_FAKE_DEVICE,
    [FAKE_MANAGED] = SEEP_FAKE_MANAGED,
    [FAKE_ASYNC] = SEEP_FAKE_ASYNC,
    [FAKE_PINNED] = SEEP_FAKE_PINNED,
    [FAKE_REGISTERED] = SEEP_FAKE_REGISTERED,
    [FAKE_RESERVED] = SEEP_FAKE_RESERVED,
    [FAKE_PHYSICAL] = SEEP_FAKE_PHYSICAL,
    [FAKE_HANDLE] = SEEP_FAKE_IMPORTED,
    [FAKE_MAP] = SEEP_FAKE_MAPPED,
    [FAKE_MULTICAST] = SEEP_FAKE_MULTICAST,
    [FAKE_POOL] = SEEP_FAKE_OTHER,
    [FAKE_IPC] = SEEP_FAKE_IMPORTED,
    [FAKE_SHARED] = SEEP_FAKE_IMPORTED,
    [FAKE_EXTERNAL] = SEEP_FAKE_EXTERNAL,
    [FAKE_BUFFER] = SEEP_FAKE_EXTERNAL,
    [FAKE_ARRAY] = SEEP_FAKE_ARRAY,
    [FAKE_MIPMAP] = SEEP_FAKE_ARRAY,
    [FAKE_GRAPH] = SEEP_FAKE_OTHER,
    [FAKE_NODE] = SEEP_FAKE_OTHER,
    [FAKE_MEMORY] = SEEP_FAKE_GRAPH,
    [FAKE_EXEC] = SEEP_FAKE_OTHER,
    [FAKE_MODULE] = SEEP_FAKE_CODE,
    [FAKE_LIBRARY] = SEEP_FAKE_CODE,
};

/* A number with an optional K, M, G or T; `otherwise` when it is none. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
    static const char units[] = "KMGT";
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t value;
    const char *unit;

    if (text == NULL || text[0] == '\0') {
        return otherwise;
    }
    value = strtoull(text, &end, 10);
    unit = *end != '\0' ? strchr(units, *end) : NULL;
    return unit != NULL ? value << (10 * (unit - units + 1)) : value;
}

static void read_settings(void)
{
    struct fake_settings *set = &fake_settings;
    const char *others = getenv("SEEP_FAKE_CUDA_OTHERS");

    set->memory_bytes = setting("SEEP_FAKE_CUDA_MEMORY", UINT64_C(4) << 30);
    set->host_bytes = setting("SEEP_FAKE_CUDA_HOST_MEMORY", UINT64_C(16) << 30);
    set->context_bytes = setting("SEEP_FAKE_CUDA_CONTEXT", UINT64_C(64) << 20);
    set->code_bytes = setting("SEEP_FAKE_CUDA_CODE", UINT64_C(2) << 20);
    set->latency_ns = setting("SEEP_FAKE_CUDA_LATENCY_NS", 0);
    set->devices = (int)setting("SEEP_FAKE_CUDA_DEVICES", 1);
    if (set->devices > FAKE_DEVICES_MOST) {
        set->devices = FAKE_DEVICES_MOST;
    }
    set->version = (int)setting("SEEP_FAKE_CUDA_VERSION", 13000);
    set->distinct = setting("SEEP_FAKE_CUDA_DISTINCT", 0) != 0;
    set->sets_errno = setting("SEEP_FAKE_CUDA_ERRNO", 0) != 0;
    set->host_calls = setting("SEEP_FAKE_CUDA_HOST_CALLS", 0) != 0;
    if (others != NULL && strlen(others) < sizeof(set->others)) {
        strcpy(set->others, others);
    }
    fail_in = setting("SEEP_FAKE_CUDA_FAIL", 0);
}

__attribute__((constructor)) static void begin(void)
{
    read_settings();
}

/* From here on the real driver refuses, too. */
__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&lock);
    ended = true;
    pthread_mutex_unlock(&lock);
}

static void be_slow(void)
{
    struct timespec wait = {
        .tv_sec = (time_t)(fake_settings.latency_ns / 1000000000),
        .tv_nsec = (long)(fake_settings.latency_ns % 1000000000),
    };

    if (fake_settings.latency_ns != 0) {
        nanosleep(&wait, NULL);
    }
    if (fake_settings.host_calls) {
        free(malloc(96));
    }
}

static CUresult refuse(CUresult why)
{
    atomic_fetch_add_explicit(&results[why], 1, memory_order_relaxed);
    return why;
}

static void mark_ours(void)
{
    long page = syscall(SYS_mmap, NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    started_by = getpid();
    if (page != -1 &&
        syscall(SYS_madvise, page, PAGE_BYTES, MADV_WIPEONFORK) == 0) {
        ours = (_Atomic uint32_t *)page;
        atomic_store_explicit(ours, 1, memory_order_relaxed);
    }
}

static bool is_child(void)
{
    if (started_by == 0) {
        return false;
    }
    return ours != NULL ? atomic_load_explicit(ours, memory_order_relaxed) == 0
                        : started_by != getpid();
}

CUresult fake_enter(enum fake_entry entry, bool before_init)
{
    int kept = fake_settings.sets_errno ? FIRST_ERRNO + (int)entry : errno;

    atomic_fetch_add_explicit(&calls[entry], 1, memory_order_relaxed);
    be_slow();
    /* A child's copy of the lock may be held by a thread that it has not. */
    if (is_child()) {
        errno = kept;
        return refuse(CUDA_ERROR_NOT_INITIALIZED);
    }
    pthread_mutex_lock(&lock);
    errno = kept;
    if (ended) {
        return fake_leave(CUDA_ERROR_DEINITIALIZED);
    }
    if (started_by == 0 && !before_init) {
        return fake_leave(CUDA_ERROR_NOT_INITIALIZED);
    }
    return CUDA_SUCCESS;
}

CUresult fake_leave(CUresult result)
{
    pthread_mutex_unlock(&lock);
    if (result < RESULTS) {
        atomic_fetch_add_explicit(&results[result], 1, memory_order_relaxed);
    }
    return result;
}

CUresult fake_start(void)
{
    if (fake_settings.devices <= 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    if (started_by == 0) {
        mark_ours();
    }
    return CUDA_SUCCESS;
}

CUresult fake_fault(void)
{
    if (fail_in != 0 && --fail_in == 0) {
        return fail_result;
    }
    return CUDA_SUCCESS;
}

void fake_asked(void)
{
    if (fake_capturing()) {
        asked_in_capture++;
    }
}

void fake_live(enum fake_type type, int64_t bytes, int count)
{
    live_bytes[type] += bytes;
    live_count[type] += count;
}

static uint64_t live_sum(const int64_t *of, enum seep_fake_kind kind)
{
    int64_t sum = 0;

    pthread_mutex_lock(&lock);
    for (int type = 0; type < FAKE_TYPES; type++) {
        if (kind_of[type] == kind) {
            sum += of[type];
        }
    }
    pthread_mutex_unlock(&lock);
    return (uint64_t)sum;
}

FAKE_EXPORT uint64_t seep_fake_live_bytes(enum seep_fake_kind kind)
{
    return live_sum(live_bytes, kind);
}

FAKE_EXPORT uint64_t seep_fake_live_count(enum seep_fake_kind kind)
{
    return live_sum(live_count, kind);
}

FAKE_EXPORT const char *seep_fake_kind_name(enum seep_fake_kind kind)
{
    return kind < SEEP_FAKE_KINDS ? kind_names[kind] : "?";
}

FAKE_EXPORT uint64_t seep_fake_device_used(int device)
{
    uint64_t used = 0;

    pthread_mutex_lock(&lock);
    if (device >= 0 && device < FAKE_DEVICES_MOST) {
        used = fake_devices[device].used_bytes;
    }
    pthread_mutex_unlock(&lock);
    return used;
}

FAKE_EXPORT uint64_t seep_fake_calls(const char *exported_name)
{
    uint64_t sum = 0;

    for (int i = 0; i < FAKE_ENTRIES; i++) {
        if (exported_name == NULL ||
            strcmp(exported_name, entry_names[i]) == 0) {
            sum += atomic_load_explicit(&calls[i], memory_order_relaxed);
        }
    }
    return sum;
}

FAKE_EXPORT uint64_t seep_fake_results(int result)
{
    uint64_t sum = 0;

    for (int i = 0; i < RESULTS; i++) {
        if (i == result || (result == -1 && i != CUDA_SUCCESS)) {
            sum += atomic_load_explicit(&results[i], memory_order_relaxed);
        }
    }
    return sum;
}

FAKE_EXPORT uint64_t seep_fake_asked_in_capture(void)
{
    uint64_t count;

    pthread_mutex_lock(&lock);
    count = asked_in_capture;
    pthread_mutex_unlock(&lock);
    return count;
}

FAKE_EXPORT void seep_fake_fail(uint64_t count, int result)
{
    pthread_mutex_lock(&lock);
    fail_in = count;
    fail_result = (CUresult)result;
    pthread_mutex_unlock(&lock);
}

FAKE_EXPORT void seep_fake_latency(uint64_t latency_ns)
{
    pthread_mutex_lock(&lock);
    fake_settings.latency_ns = latency_ns;
    pthread_mutex_unlock(&lock);
}
