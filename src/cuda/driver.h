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
#include <stddef.h>
#include <stdint.h>

/** X(NAME, PARAMETERS, ARGUMENTS). */
#define SEEP_CUDA_QUESTIONS(X)                                                 \
    X(cuCtxGetCurrent, (void **context), (context))                            \
    X(cuCtxGetDevice, (int *device), (device))                                 \
    X(cuPointerGetAttribute, (void *value, int attribute, uint64_t pointer),   \
      (value, attribute, pointer))                                             \
    X(cuMemGetAddressRange_v2,                                                 \
      (uint64_t * start, size_t * size_bytes, uint64_t pointer),               \
      (start, size_bytes, pointer))                                            \
    X(cuStreamIsCapturing, (void *stream, int *status), (stream, status))      \
    X(cuStreamIsCapturing_ptsz, (void *stream, int *status), (stream, status)) \
    X(cuDevicePrimaryCtxGetState,                                              \
      (int device, unsigned int *flags, int *is_active),                       \
      (device, flags, is_active))                                              \
    X(cuDevicePrimaryCtxRetain, (void **context, int device),                  \
      (context, device))                                                       \
    X(cuDevicePrimaryCtxRelease, (int device), (device))                       \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes),            \
      (free_bytes, total_bytes))                                               \
    X(cuDeviceGetDefaultMemPool, (void **pool, int device), (pool, device))    \
    X(cuThreadExchangeStreamCaptureMode, (int *mode), (mode))                  \
    X(cuMemPoolGetAttribute, (void *pool, int attribute, void *value),         \
      (pool, attribute, value))                                                \
    X(cuDeviceGetGraphMemAttribute, (int device, int attribute, void *value),  \
      (device, attribute, value))

enum seep_cuda_question {
#define SEEP_CUDA_QUESTION(name, parameters, arguments) SEEP_CUDA_ASK_##name,
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

/*
 * What a device has left: asked of the driver by a thread of the program that
 * has just been served by it, or refused for want of memory, and told to the
 * recorder.
 *
 * Invariant: only what is there is asked. No context is made, none is changed;
 * nothing is asked while a stream may be captured in this context, nor in a
 * mode in which a question could end another thread's capture. The questions
 * take at most a thousandth of the time, whatever one of them costs. Of an
 * error only the time of the next try depends.
 *
 * Of pools only a device's default pool is asked: any other could be destroyed
 * by another thread while the driver looks at it.
 */
#define SEEP_CUDA_DEVICES_MAX 64

/** Is it time to ask about @device? Cheap; -1 is never due. */
bool seep_cuda_headroom_due(int device, uint64_t now_ns);

/**
 * Ask about the device of the current context, if it is due, and tell it to
 * the recorder. Called from the outermost wrapper after its real call, and
 * before it leaves (seep_cuda_nest_leave), so that nothing in it is recorded.
 */
void seep_cuda_headroom_ask(uint64_t now_ns);

/** Forget when which device was asked: for tests. */
void seep_cuda_headroom_reset(void);

#endif
