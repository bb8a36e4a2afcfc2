/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What we ask of the driver ourselves: cheap questions, after a call of the
 * program's that succeeded.
 *
 * Invariant: every function was found by its exact name and form, at a look-up
 * of the program's own or at the first call of a directly linked one, never
 * later: a question takes no lock of the loader's. Any may be missing, any may
 * fail; then the answer is the one that says "not known". Nothing is asked
 * that could create a context or disturb the capture of a stream.
 */
#ifndef SEEP_CUDA_DRIVER_H
#define SEEP_CUDA_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

/** X(NAME, PARAMETERS). */
#define SEEP_CUDA_QUESTIONS(X)                                   \
    X(cuCtxGetCurrent, (void **))                                \
    X(cuCtxGetDevice, (int *))                                   \
    X(cuPointerGetAttribute, (void *, int, uint64_t))            \
    X(cuMemGetAddressRange_v2, (uint64_t *, size_t *, uint64_t)) \
    X(cuStreamIsCapturing, (void *, int *))                      \
    X(cuStreamIsCapturing_ptsz, (void *, int *))                 \
    X(cuDevicePrimaryCtxGetState, (int, unsigned int *, int *))  \
    X(cuDevicePrimaryCtxRetain, (void **, int))                  \
    X(cuDevicePrimaryCtxRelease, (int))                          \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                     \
    X(cuDeviceGetDefaultMemPool, (void **, int))                 \
    X(cuThreadExchangeStreamCaptureMode, (int *))                \
    X(cuMemPoolGetAttribute, (void *, int, void *))              \
    X(cuDeviceGetGraphMemAttribute, (int, int, void *))

enum seep_cuda_question {
#define SEEP_CUDA_QUESTION(name, parameters) SEEP_CUDA_ASK_##name,
    SEEP_CUDA_QUESTIONS(SEEP_CUDA_QUESTION)
#undef SEEP_CUDA_QUESTION
        SEEP_CUDA_QUESTION_COUNT
};

/** The function behind @which; 0 if it is not there. */
uintptr_t seep_cuda_driver_function(enum seep_cuda_question which);

/** By the driver's exported name. @return 0 if there is none */
typedef uintptr_t seep_cuda_by_name(void *how, const char *name);

/** Find every function, once. */
void seep_cuda_driver_learn(seep_cuda_by_name *find, void *how);

/** The same at the start of a program that is linked with the driver, so that
 * the above has not to look: nothing begins. */
void seep_cuda_driver_prepare(seep_cuda_by_name *find, void *how);

/** The driver is gone. */
void seep_cuda_driver_forget(void);

/** The thread's context; NULL: none, or not known. */
const void *seep_cuda_driver_context(void);

/** The device of the thread's context; -1: not known. */
int seep_cuda_driver_device(void);

/** The device that @pointer lies on; -1: not known. */
int seep_cuda_driver_device_of(uint64_t pointer);

/** The size of the allocation at @pointer; 0: not known. */
uint64_t seep_cuda_driver_size_of(uint64_t pointer);

/** Is what is asked of @stream written into a graph, and not done? */
bool seep_cuda_driver_is_capturing(void *stream, bool per_thread);

/** If it is time to, have it told what the current device, which is @device,
 * has left. From an outermost wrapper, after its real call, or from a report
 * of PyTorch's, which may come for hours without a call of the driver. */
void seep_cuda_driver_look(int device);

/** Is there a primary context on @device? */
bool seep_cuda_driver_has_primary(int device);

/** The primary context of @device, if there is one; NULL: not known. */
const void *seep_cuda_driver_primary(int device);

#endif
