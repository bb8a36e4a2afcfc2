/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Start, versions, devices, errors, and the ways to an entry point.
 *
 * Invariant: cuGetProcAddress gives out the exported symbol itself, or where
 * it is told to be distinct a jump to it, of the newest ABI that both the
 * caller's and the claimed version know.
 */
#include <string.h>

#include "fake.h"

struct entry {
    const char *name;
    const char *base;
    int version;
    bool twin;
    void *address, *other;
};

/*
 * A second way to each entry point, for who must not take an address that
 * cuGetProcAddress gave for the one that dlsym gives.
 */
#if defined(__x86_64__)
#define JUMP "endbr64\n\tjmp "
#elif defined(__aarch64__)
#define JUMP "bti c\n\tb "
#else
#error "no jump is known for this architecture"
#endif
#define FAKE_ENTRY(name, base, version, twin, parameters) \
    __asm__(".pushsection .text.other,\"ax\",%progbits\n" \
            "other_" #name ":\n\t" JUMP #name "\n"        \
            ".popsection\n");                             \
    extern char other_##name[] __attribute__((visibility("hidden")));
#include "entry_points.def"
#undef FAKE_ENTRY

static const struct entry entries[] = {
#define FAKE_ENTRY(name, base, version, twin, parameters) \
    {#name, #base, version, twin, (void *)(uintptr_t)name, other_##name},
#include "entry_points.def"
#undef FAKE_ENTRY
};

struct error {
    CUresult result;
    const char *name;
    const char *text;
};

#define ERROR(name, text) \
    {                     \
        name, #name, text \
    }
static const struct error errors[] = {
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS,
          "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
          "cannot set while device is active in this process"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          "part or all of the requested memory range is already mapped"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
          "pointer does not correspond to a registered memory region"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
          "capture was not ended in the same stream as it began"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another "
          "thread"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static const struct error *error_of(CUresult result)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].result == result) {
            return &errors[i];
        }
    }
    return NULL;
}

FAKE_EXPORT CUresult cuInit(unsigned int flags)
{
    CUresult entered = fake_enter(FAKE_INDEX_cuInit, true);

    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    return fake_leave(flags != 0 ? CUDA_ERROR_INVALID_VALUE : fake_start());
}

FAKE_EXPORT CUresult cuDriverGetVersion(int *version)
{
    CUresult entered = fake_enter(FAKE_INDEX_cuDriverGetVersion, true);

    if (entered != CUDA_SUCCESS) {
        return entered;
    }
    if (version == NULL) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    *version = fake_settings.version;
    return fake_leave(CUDA_SUCCESS);
}

FAKE_EXPORT CUresult cuGetErrorName(CUresult error, const char **text)
{
    const struct error *found = error_of(error);

    if (text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *text = found != NULL ? found->name : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE_EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    const struct error *found = error_of(error);

    if (text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *text = found != NULL ? found->text : NULL;
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The vendor's private tables are not imitated. */
FAKE_EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    CUresult entered = fake_enter(FAKE_INDEX_cuGetExportTable, true);

    (void)table;
    (void)id;
    return entered != CUDA_SUCCESS ? entered : fake_leave(CUDA_ERROR_NOT_FOUND);
}

/* The entry for a base name; *known says whether any version has it. */
static const struct entry *look_up(const char *base, int version, bool twin,
                                   bool *known)
{
    const struct entry *best = NULL;

    *known = false;
    for (size_t i = 0; i < FAKE_ENTRIES; i++) {
        const struct entry *at = &entries[i];

        if (strcmp(at->base, base) != 0 ||
            at->version > fake_settings.version || (at->twin && !twin)) {
            continue;
        }
        *known = true;
        if (at->version > version) {
            continue;
        }
        if (best == NULL || at->twin > best->twin ||
            (at->twin == best->twin && at->version > best->version)) {
            best = at;
        }
    }
    return best;
}

static CUresult proc_address(const char *base, void **address, int version,
                             cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const cuuint64_t both = CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct entry *found;
    bool known;

    if (base == NULL || address == NULL || version > fake_settings.version ||
        (flags & ~both) != 0 || flags == both) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found =
        look_up(base, version,
                flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    *address = found == NULL            ? NULL
               : fake_settings.distinct ? found->other
                                        : found->address;
    *status = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
              : known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuGetProcAddress(const char *base, void **address,
                                      int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult entered = fake_enter(FAKE_INDEX_cuGetProcAddress, true);

    if (entered == CUDA_SUCCESS) {
        entered = proc_address(base, address, version, flags, &status);
        if (entered == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS) {
            entered = CUDA_ERROR_NOT_FOUND;
        }
        entered = fake_leave(entered);
    }
    return entered;
}

FAKE_EXPORT CUresult cuGetProcAddress_v2(const char *base, void **address,
                                         int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult unused;
    CUresult entered = fake_enter(FAKE_INDEX_cuGetProcAddress_v2, true);

    if (entered == CUDA_SUCCESS) {
        entered = fake_leave(proc_address(base, address, version, flags,
                                          status != NULL ? status : &unused));
    }
    return entered;
}

static bool is_device(CUdevice device)
{
    return device >= 0 && device < fake_settings.devices;
}

static CUresult device_get(CUdevice *device, int ordinal)
{
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(ordinal)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = fake_settings.devices;
    return CUDA_SUCCESS;
}

static CUresult device_text(char *text, int bytes, CUdevice device,
                            const char *from)
{
    if (text == NULL || bytes <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    strncpy(text, from, (size_t)bytes - 1);
    text[bytes - 1] = '\0';
    return CUDA_SUCCESS;
}

static CUresult device_bus(char *text, int bytes, CUdevice device)
{
    char name[] = "0000:00:00.0";

    name[6] = "0123456789abcdef"[(unsigned)device % 16];
    return device_text(text, bytes, device, name);
}

static CUresult device_uuid(CUuuid *uuid, CUdevice device)
{
    if (uuid == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    memcpy(uuid->bytes, "seep fake cuda ", 15);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute,
                                 CUdevice device)
{
    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        *value = 1;
        break;
    default:
        *value = 0;
        break;
    }
    return CUDA_SUCCESS;
}

static CUresult device_memory(size_t *bytes, CUdevice device)
{
    if (bytes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *bytes = fake_settings.memory_bytes;
    return CUDA_SUCCESS;
}

static CUresult device_capability(int *major, int *minor, CUdevice device)
{
    if (major == NULL || minor == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *minor = 0;
    return device_attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                            device);
}

static CUresult device_peer(int *can, CUdevice one, CUdevice other)
{
    if (can == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(one) || !is_device(other)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = one != other;
    return CUDA_SUCCESS;
}

FAKE_DEFINE(cuDeviceGet, (CUdevice * device, int ordinal),
            device_get(device, ordinal))
FAKE_DEFINE(cuDeviceGetCount, (int *count), device_count(count))
FAKE_DEFINE(cuDeviceGetName, (char *name, int bytes, CUdevice device),
            device_text(name, bytes, device,
                        "seep fake CUDA device (test double)"))
FAKE_DEFINE(cuDeviceGetPCIBusId, (char *name, int bytes, CUdevice device),
            device_bus(name, bytes, device))
FAKE_DEFINE(cuDeviceGetAttribute,
            (int *value, CUdevice_attribute attribute, CUdevice device),
            device_attribute(value, attribute, device))
FAKE_DEFINE(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device),
            device_memory(bytes, device))
FAKE_DEFINE(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device),
            device_uuid(uuid, device))
FAKE_DEFINE(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device),
            device_uuid(uuid, device))
FAKE_DEFINE(cuDeviceComputeCapability,
            (int *major, int *minor, CUdevice device),
            device_capability(major, minor, device))
FAKE_DEFINE(cuDeviceCanAccessPeer, (int *can, CUdevice one, CUdevice other),
            device_peer(can, one, other))
