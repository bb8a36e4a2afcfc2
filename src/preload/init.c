/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The beginning and the end: one constructor, one destructor.
 *
 * Invariant: what can fail or allocate is done here, before the program's
 * main; whatever fails leaves the process as it would be without us. The
 * destructor stores one flag.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/text.h"
#include "capture/objects.h"
#include "cuda/resolve.h"
#include "preload/allocator.h"
#include "preload/cuda_events.h"
#include "preload/ending.h"
#include "preload/identity.h"
#include "preload/life.h"
#include "preload/maps.h"
#include "preload/new.h"
#include "preload/options.h"
#include "preload/python_objects.h"
#include "preload/real.h"
#include "preload/stacks.h"

/* Sanitizers and valgrind replace malloc too, and know every byte of it. */
static enum seep_inert_reason find_reason(char *const *environment)
{
    static const char *const marks[] = {"__asan_init", "__tsan_init",
                                        "__msan_init", "__hwasan_init"};
    bool sanitized = false;

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        sanitized = sanitized || dlsym(RTLD_DEFAULT, marks[i]) != NULL;
    }
    dlerror();
    if (sanitized) {
        return SEEP_INERT_SANITIZER;
    }
    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, "LD_PRELOAD=", 11) == 0 &&
            strstr(*environment, "vgpreload") != NULL) {
            return SEEP_INERT_VALGRIND;
        }
    }
    return seep_real_is_behind ? SEEP_INERT_OWN_MALLOC : SEEP_INERT_NONE;
}

static void describe_allocator(void)
{
    const void *start;
    const void *end;
    const char *path;

    seep_real_allocator(&start, &end, &path);
    seep_maps_init(start, end);
    seep_identity_set_allocator(path);
    seep_new_init();
    seep_allocator_init(start, end, path);
}

__attribute__((constructor)) static void begin(int argc, char **argv,
                                               char **environment)
{
    enum seep_inert_reason reason;

    (void)argc;
    (void)argv;
    if (getauxval(AT_SECURE) != 0 || !seep_real_resolve() ||
        seep_identity_init() != 0) {
        seep_life_disarm();
        return;
    }
    /* Also where nothing is recorded: the wrappers stand there all the same,
     * and know what is behind them without asking the loader. */
    seep_objects_init();
    seep_cuda_prepare();
    seep_options_read(environment,
                      seep_text_base_name(seep_identity_executable()));
    reason = find_reason(environment);
    if (reason != SEEP_INERT_NONE || seep_options.skipped) {
        seep_life_disarm();
        if (reason != SEEP_INERT_NONE && seep_options.pattern_given) {
            seep_identity_create_inert(reason);
        }
        return;
    }
    describe_allocator();
    seep_ending_init();
    seep_stacks_init();
    seep_python_objects_init();
    seep_cuda_events_init();
    seep_life_arm();
}

__attribute__((destructor)) static void end(void)
{
    seep_life_exit();
}
