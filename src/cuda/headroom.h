/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * What a device has left: asked of the driver by a thread of the program that
 * has just been served by it, or refused for want of memory, and told to the
 * recorder.
 *
 * Invariant: only what is there is asked. No context is made, none is changed;
 * nothing is asked while a stream may be captured in this context, nor in a
 * mode in which a question could end another thread's capture. The questions
 * take at most a thousandth of the time, whatever one of them costs. errno
 * stays as it was, and of an error only the time of the next try depends.
 *
 * Of pools only a device's default pool is asked: any other could be destroyed
 * by another thread while the driver looks at it.
 */
#ifndef SEEP_CUDA_HEADROOM_H
#define SEEP_CUDA_HEADROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEP_CUDA_DEVICES_MAX 64

/** One device at one moment. What was not told is 0. */
struct seep_cuda_headroom {
    int device;
    uint64_t free_bytes; /* of the device: all processes have their share */
    uint64_t total_bytes;
    /* the default pool of cuMemAllocAsync: reserved less used is its cache */
    uint64_t pool_reserved_bytes;
    uint64_t pool_used_bytes;
    /* memory nodes of all graphs */
    uint64_t graph_reserved_bytes;
    uint64_t graph_used_bytes;
    /* what the program's calls held of it; 0 where that changed meanwhile */
    uint64_t held_bytes;
};

/** The driver's functions, in their exact forms; any may be NULL, but without
 * the first three nothing is asked. */
struct seep_cuda_headroom_driver {
    int (*current_context)(void **context);           /* cuCtxGetCurrent */
    int (*current_device)(int *device);               /* cuCtxGetDevice */
    int (*memory)(size_t *free_bytes, size_t *total); /* cuMemGetInfo_v2 */
    int (*is_capturing)(void *stream, int *status);   /* cuStreamIsCapturing */
    int (*exchange_mode)(int *mode); /* cuThreadExchangeStreamCaptureMode */
    int (*default_pool)(void **pool,
                        int device); /* cuDeviceGetDefaultMemPool */
    int (*pool_attribute)(void *pool, int attribute,
                          void *value); /* cuMemPoolGetAttribute */
    int (*graph_attribute)(int device, int attribute,
                           void *value); /* cuDeviceGetGraphMemAttribute */
};

/** Is it time to ask about @device? Cheap; -1 is never due. */
bool seep_cuda_headroom_due(int device, uint64_t now_ns);

/**
 * Ask about the device of the current context, if it is due, and tell it to
 * the recorder. Called from the outermost wrapper after its real call, and
 * before it leaves (seep_cuda_nest_leave), so that nothing in it is recorded.
 */
void seep_cuda_headroom_ask(const struct seep_cuda_headroom_driver *driver,
                            uint64_t now_ns);

/** Forget when which device was asked: for tests. */
void seep_cuda_headroom_reset(void);

#endif
