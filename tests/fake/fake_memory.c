/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that stands for the devices' and for pinned host memory: one
 * sparse memory file, with a section and an account for each.
 *
 * Invariant: an address is given out again as soon as it is free, newest first,
 * as that is hardest on whoever keeps books by address. Address space is asked
 * of libc, as the driver does it, and what lies in it of the kernel; nobody is
 * told when it goes.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

#define SPARSE 16 /* address space for each byte of memory */
#define CLASSES (16 * 64)
#define PAGE_BYTES 4096
#define ADDRESSED_BYTES (UINT64_C(32) << 20)
#define BOOKS_BYTES (1U << 16)
#define PUNCHED_BYTES (UINT64_C(1) << 20)
#define NAME_MAGIC UINT64_C(0x65656b6166706573)

struct section {
    uint64_t base, start_bytes, next_bytes, end_bytes;
    uint64_t used_bytes, total_bytes, addressed_bytes;
    uint64_t freed[CLASSES]; /* offset + 1 of the newest free block */
};

/* Section 0 is the host's. */
static struct section *sections;
static int file = -1;

static void *raw_map(uint64_t at, uint64_t bytes, int protection, int flags,
                     int fd, uint64_t offset)
{
    long got = syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);

    return got == -1 ? NULL : (void *)got;
}

void *fake_zeroed(uint64_t bytes)
{
    return raw_map(0, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static bool open_sections(void)
{
    struct section *made;
    uint64_t at = 0;
    uint64_t base;

    if (sections != NULL) {
        return true;
    }
    made = fake_zeroed(sizeof(*made) * (FAKE_DEVICES_MOST + 1));
    file = (int)syscall(SYS_memfd_create, "seep fake cuda", 1U);
    if (made == NULL || file < 0) {
        return false;
    }
    for (int i = 0; i <= fake_settings.devices; i++) {
        made[i].total_bytes =
            i == 0 ? fake_settings.host_bytes : fake_settings.memory_bytes;
        made[i].start_bytes = at;
        made[i].next_bytes = at;
        at +=
            fake_rounded(made[i].total_bytes, FAKE_GRANULARITY_BYTES) * SPARSE;
        made[i].end_bytes = at;
    }
    if (syscall(SYS_ftruncate, file, at) != 0) {
        return false;
    }
    base = fake_map_space(at, FAKE_GRANULARITY_BYTES, 0);
    if (base == 0 || !fake_map_file(base, at, file, 0, true)) {
        return false;
    }
    for (int i = 0; i <= fake_settings.devices; i++) {
        made[i].base = base;
    }
    sections = made;
    return true;
}

uint64_t fake_rounded(uint64_t bytes, uint64_t unit)
{
    return bytes > UINT64_MAX - unit ? UINT64_MAX - unit + 1
                                     : (bytes + unit - 1) / unit * unit;
}

/* What other processes hold of the device, as the test has last written it. */
static uint64_t others_bytes(int device)
{
    static int others = -1;
    uint64_t bytes = 0;

    if (fake_settings.others[0] == '\0') {
        return 0;
    }
    if (others < 0) {
        others = (int)syscall(SYS_openat, AT_FDCWD, fake_settings.others,
                              O_RDONLY | O_CLOEXEC);
    }
    if (syscall(SYS_pread64, others, &bytes, sizeof(bytes),
                (uint64_t)device * sizeof(bytes)) != sizeof(bytes)) {
        return 0;
    }
    return bytes;
}

uint64_t fake_free_bytes(int device)
{
    uint64_t used = fake_devices[device].used_bytes;
    uint64_t left = fake_settings.memory_bytes - used;
    uint64_t others = others_bytes(device);

    return left > others ? left - others : 0;
}

/* What a device gives has addresses in the process, in pieces; and the driver
 * keeps books of it, in memory that is no more the caller's. */
static void address(struct section *section)
{
    if (section->addressed_bytes == 0) {
        (void)mmap(NULL, BOOKS_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    while (section->addressed_bytes < section->used_bytes) {
        (void)mmap(NULL, ADDRESSED_BYTES, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        section->addressed_bytes += ADDRESSED_BYTES;
    }
}

bool fake_charge(int device, uint64_t bytes)
{
    struct section *section;

    if (!open_sections()) {
        return false;
    }
    section = &sections[device + 1];
    if (bytes > (device >= 0 ? fake_free_bytes(device)
                             : section->total_bytes - section->used_bytes)) {
        return false;
    }
    section->used_bytes += bytes;
    if (device >= 0) {
        fake_devices[device].used_bytes = section->used_bytes;
    }
    address(section);
    return true;
}

void fake_discharge(int device, uint64_t bytes)
{
    sections[device + 1].used_bytes -= bytes;
    if (device >= 0) {
        fake_devices[device].used_bytes = sections[device + 1].used_bytes;
    }
}

/* Eight classes a doubling. */
static unsigned class_of(uint64_t bytes, uint64_t *class_bytes)
{
    unsigned doublings = 0;
    uint64_t step = FAKE_BLOCK_BYTES;
    uint64_t steps = (bytes + step - 1) / step;

    while (steps > 15) {
        doublings++;
        step *= 2;
        steps = (bytes + step - 1) / step;
    }
    steps = steps == 0 ? 1 : steps;
    *class_bytes = steps * step;
    return doublings * 16 + (unsigned)steps;
}

static uint64_t *next_of(struct section *section, uint64_t offset)
{
    return (uint64_t *)(uintptr_t)(section->base + offset);
}

uint64_t fake_take(int device, uint64_t bytes, uint64_t *offset)
{
    struct section *section;
    uint64_t class_bytes;
    unsigned class;
    uint64_t unit;

    if (!open_sections()) {
        return 0;
    }
    section = &sections[device + 1];
    class = class_of(bytes, &class_bytes);
    if (section->freed[class] != 0) {
        *offset = section->freed[class] - 1;
        section->freed[class] = *next_of(section, *offset);
        return section->base + *offset;
    }
    unit = class_bytes >= FAKE_GRANULARITY_BYTES ? FAKE_GRANULARITY_BYTES
           : class_bytes >= 4096                 ? 4096
                                                 : FAKE_BLOCK_BYTES;
    *offset = fake_rounded(section->next_bytes, unit);
    if (*offset + class_bytes > section->end_bytes) {
        return 0;
    }
    section->next_bytes = *offset + class_bytes;
    return section->base + *offset;
}

void fake_give(int device, uint64_t offset, uint64_t bytes)
{
    struct section *section = &sections[device + 1];
    uint64_t class_bytes;
    unsigned class = class_of(bytes, &class_bytes);

    if (class_bytes >= PUNCHED_BYTES) {
        syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                offset, class_bytes);
    }
    *next_of(section, offset) = section->freed[class];
    section->freed[class] = offset + 1;
}

uint64_t fake_map_space(uint64_t bytes, uint64_t align, uint64_t hint)
{
    void *mapped = mmap((void *)(uintptr_t)hint, bytes + align, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t got = (uint64_t)(uintptr_t)mapped;
    uint64_t address;

    if (mapped == MAP_FAILED) {
        return 0;
    }
    address = fake_rounded(got, align);
    if (address > got) {
        fake_unmap_space(got, address - got);
    }
    fake_unmap_space(address + bytes, got + align - address);
    return address;
}

void fake_unmap_space(uint64_t address, uint64_t bytes)
{
    if (bytes != 0) {
        syscall(SYS_munmap, address, bytes);
    }
}

bool fake_map_file(uint64_t address, uint64_t bytes, int fd, uint64_t offset,
                   bool accessible)
{
    return raw_map(address, bytes,
                   accessible ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, offset) != NULL;
}

void fake_map_nothing(uint64_t address, uint64_t bytes)
{
    raw_map(address, bytes, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void fake_protect(uint64_t address, uint64_t bytes, CUmemAccess_flags flags)
{
    int protection = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                         ? PROT_READ | PROT_WRITE
                     : flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                              : PROT_NONE;

    syscall(SYS_mprotect, address, bytes, protection);
}

int fake_memory_file(void)
{
    return open_sections() ? file : -1;
}

void fake_name_write(void *to, const struct fake_object *object)
{
    struct fake_name name = {
        .magic = NAME_MAGIC,
        .pid = getpid(),
        .fd = fake_memory_file(),
        .offset_bytes = object->offset_bytes,
        .size_bytes = object->size_bytes,
        .number = fake_number(object),
        .device = object->device,
    };

    memcpy(to, &name, sizeof(name));
}

bool fake_name_read(const void *from, struct fake_name *name)
{
    memcpy(name, from, sizeof(*name));
    return name->magic == NAME_MAGIC;
}

bool fake_name_is_ours(const struct fake_name *name)
{
    return name->pid == getpid();
}

/* The other process's memory file, by its place in /proc. */
int fake_name_open(const struct fake_name *name)
{
    char path[64] = "/proc/";
    char *at = path + strlen(path);
    int32_t numbers[2] = {name->pid, name->fd};

    for (int i = 0; i < 2; i++) {
        char digits[12];
        int count = 0;

        do {
            digits[count++] = (char)('0' + numbers[i] % 10);
            numbers[i] /= 10;
        } while (numbers[i] > 0);
        while (count > 0) {
            *at++ = digits[--count];
        }
        memcpy(at, i == 0 ? "/fd/" : "", i == 0 ? 5 : 1);
        at += i == 0 ? 4 : 0;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
}

int fake_name_file(const struct fake_object *object)
{
    unsigned char bytes[64] = {0};
    int fd = (int)syscall(SYS_memfd_create, "seep fake cuda handle", 1U);

    fake_name_write(bytes, object);
    if (fd >= 0 && syscall(SYS_pwrite64, fd, bytes, sizeof(bytes), 0) !=
                       (long)sizeof(bytes)) {
        syscall(SYS_close, fd);
        fd = -1;
    }
    return fd;
}

bool fake_name_from_file(int fd, struct fake_name *name)
{
    unsigned char bytes[64] = {0};

    return syscall(SYS_pread64, fd, bytes, sizeof(bytes), 0) ==
               (long)sizeof(bytes) &&
           fake_name_read(bytes, name);
}

uint64_t fake_name_map(const struct fake_name *name)
{
    bool ours = fake_name_is_ours(name);
    int fd = ours ? fake_memory_file() : fake_name_open(name);
    uint64_t in_page = name->offset_bytes % PAGE_BYTES;
    uint64_t bytes = fake_rounded(in_page + name->size_bytes, PAGE_BYTES);
    uint64_t address = fd >= 0 ? fake_map_space(bytes, PAGE_BYTES, 0) : 0;

    if (address != 0 && !fake_map_file(address, bytes, fd,
                                       name->offset_bytes - in_page, true)) {
        fake_unmap_space(address, bytes);
        address = 0;
    }
    if (!ours && fd >= 0) {
        syscall(SYS_close, fd);
    }
    return address != 0 ? address + in_page : 0;
}
