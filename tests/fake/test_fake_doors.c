/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ways into the fake driver: versions, twins, what is not found, and who
 * may not come in at all.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_frame.h"

#define TWIN CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static CUdriverProcAddressQueryResult status;

/* The exported symbol of this name, as dlsym gives it. */
static void *symbol(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    assert_non_null(found);
    return found;
}

static void *look_up(const char *base, int version, cuuint64_t flags)
{
    void *found = &status;

    assert_done(cuGetProcAddress_v2(base, &found, version, flags, &status));
    return found;
}

static void a_version_chooses_the_variant(void **state)
{
    (void)state;
    assert_ptr_equal(look_up("cuMemAlloc", 3020, 0), symbol("cuMemAlloc_v2"));
    assert_ptr_equal(look_up("cuMemAlloc", 13000, 0), symbol("cuMemAlloc_v2"));
    assert_ptr_equal(look_up("cuMemAlloc", 2000, 0), symbol("cuMemAlloc"));
    assert_ptr_equal(look_up("cuDevicePrimaryCtxReset", 7000, 0),
                     symbol("cuDevicePrimaryCtxReset"));
    assert_ptr_equal(look_up("cuDevicePrimaryCtxReset", 11000, 0),
                     symbol("cuDevicePrimaryCtxReset_v2"));
    assert_ptr_equal(look_up("cuCtxCreate", 12049, 0),
                     symbol("cuCtxCreate_v3"));
    assert_ptr_equal(look_up("cuGetProcAddress", 11030, 0),
                     symbol("cuGetProcAddress"));
    assert_ptr_equal(look_up("cuGetProcAddress", 12000, 0),
                     symbol("cuGetProcAddress_v2"));
    assert_ptr_equal(look_up("cuCtxGetDevice", 12080, 0),
                     symbol("cuCtxGetDevice"));
    assert_ptr_equal(look_up("cuCtxGetDevice", 13000, 0),
                     symbol("cuCtxGetDevice_v2"));
}

static void the_flag_chooses_the_twin(void **state)
{
    (void)state;
    assert_ptr_equal(look_up("cuMemAllocAsync", 11020, 0),
                     symbol("cuMemAllocAsync"));
    assert_ptr_equal(look_up("cuMemAllocAsync", 11020, TWIN),
                     symbol("cuMemAllocAsync_ptsz"));
    assert_ptr_equal(look_up("cuMemcpy", 7000, TWIN), symbol("cuMemcpy_ptds"));
    assert_ptr_equal(look_up("cuMemFree", 3020, TWIN), symbol("cuMemFree_v2"));
    assert_ptr_equal(
        look_up("cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_LEGACY_STREAM),
        symbol("cuMemAllocAsync"));
}

static void what_is_not_there_is_told_by_the_status(void **state)
{
    void *found = &status;

    (void)state;
    assert_null(look_up("", 0, 0));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(look_up("cuMemAlloc_v2", 13000, 0));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(look_up("cuMemAllocAsync", 11010, 0));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_done(cuGetProcAddress_v2("cuInit", &found, 2000, 0, NULL));
    assert_ptr_equal(found, symbol("cuInit"));
    assert_result(cuGetProcAddress("cuNothing", &found, 12000, 0),
                  CUDA_ERROR_NOT_FOUND);
    assert_result(cuGetProcAddress("cuInit", &found, 13010, 0),
                  CUDA_ERROR_INVALID_VALUE);
    assert_result(cuGetProcAddress(NULL, &found, 12000, 0),
                  CUDA_ERROR_INVALID_VALUE);
    assert_result(cuGetProcAddress("cuInit", &found, 12000, 8),
                  CUDA_ERROR_INVALID_VALUE);
}

static void calls_are_counted_by_the_name_that_was_called(void **state)
{
    uint64_t plain = seep_fake_calls("cuMemFreeAsync");
    uint64_t twin = seep_fake_calls("cuMemFreeAsync_ptsz");
    uint64_t wrong = seep_fake_results(CUDA_ERROR_INVALID_VALUE);

    (void)state;
    assert_result(cuMemFreeAsync_ptsz(4096, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(seep_fake_calls("cuMemFreeAsync"), plain);
    assert_int_equal(seep_fake_calls("cuMemFreeAsync_ptsz"), twin + 1);
    assert_int_equal(seep_fake_results(CUDA_ERROR_INVALID_VALUE), wrong + 1);
}

static void it_says_what_it_is(void **state)
{
    const CUuuid id = {{0}};
    const void *table = NULL;
    const char *text;
    char name[64];
    int version;

    (void)state;
    assert_done(cuDeviceGetName(name, sizeof(name), 0));
    assert_non_null(strstr(name, "test double"));
    assert_done(cuDriverGetVersion(&version));
    assert_int_equal(version, 13000);
    assert_done(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_done(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    assert_result(cuGetErrorName((CUresult)12345, &text),
                  CUDA_ERROR_INVALID_VALUE);
    assert_result(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    assert_null(table);
}

/* The setting is read at the load: by a process of its own. */
static int call_by_another_address(void)
{
    __typeof__(cuDriverGetVersion) *found;
    int version = 0;

    *(void **)(void *)&found = look_up("cuDriverGetVersion", 12000, 0);
    return (void *)(uintptr_t)found != symbol("cuDriverGetVersion") &&
                   found(&version) == CUDA_SUCCESS && version == 13000
               ? 0
               : 1;
}

static void an_address_may_be_another_than_the_symbols(void **state)
{
    int ended = -1;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        setenv("SEEP_FAKE_CUDA_DISTINCT", "1", 1);
        execl("/proc/self/exe", "test_fake_doors", "distinct", (char *)NULL);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

static void a_forks_child_may_not_come_in(void **state)
{
    CUdeviceptr pointer;
    int ended = -1;
    pid_t child;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(cuMemAlloc_v2(&pointer, 8) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

/* Before the group's cuInit. */
static int refused_before_the_start(void **state)
{
    CUdeviceptr pointer;
    int count;

    if (cuMemAlloc_v2(&pointer, 8) != CUDA_ERROR_NOT_INITIALIZED ||
        cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED ||
        cuInit(1) != CUDA_ERROR_INVALID_VALUE) {
        return -1;
    }
    return fake_test_group(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_test(a_version_chooses_the_variant),
        fake_test(the_flag_chooses_the_twin),
        fake_test(what_is_not_there_is_told_by_the_status),
        fake_test(calls_are_counted_by_the_name_that_was_called),
        fake_test(it_says_what_it_is),
        fake_test(an_address_may_be_another_than_the_symbols),
        fake_test(a_forks_child_may_not_come_in),
    };

    if (argc == 2 && strcmp(argv[1], "distinct") == 0) {
        return call_by_another_address();
    }
    return cmocka_run_group_tests(tests, refused_before_the_start, NULL);
}
