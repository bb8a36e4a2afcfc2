/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which frame of a stack belongs to the user, by names alone.
 *
 * Invariant: the tables name only what stands between a program and its memory,
 * never a library that uses memory for itself: that one is the answer.
 */
#include "reader/symbols/where.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

/*
 * Whose a file of Python is. Invariant: nothing here asks the file system, so a
 * recording of another machine reads as one of this.
 */

/* Tails of files, of Python's library and of packages. */
static const struct tail {
    const char *text;
    size_t length;
} dispatchers[] = {
#define TAIL(text)               \
    {                            \
        (text), sizeof(text) - 1 \
    }
    TAIL("asyncio/base_events.py"),
    TAIL("asyncio/events.py"),
    TAIL("asyncio/runners.py"),
    TAIL("concurrent/futures/thread.py"),
    TAIL("concurrent/futures/process.py"),
    TAIL("multiprocessing/process.py"),
    TAIL("multiprocessing/spawn.py"),
    TAIL("multiprocessing/forkserver.py"),
    TAIL("socketserver.py"),
    TAIL("threading.py"),
    TAIL("trio/_core/_run.py"),
    TAIL("anyio/_backends/_asyncio.py"),
    TAIL("gevent/greenlet.py"),
    TAIL("eventlet/greenpool.py"),
#undef TAIL
};

static bool is_any(const char *text, const char *const *table)
{
    /* Nearly all differ in the first character, and there are many of each. */
    while (*table != NULL &&
           (text[0] != (*table)[0] || strcmp(text, *table) != 0)) {
        table++;
    }
    return *table != NULL;
}

/* Behind the last "/NAME/" of @path; NULL if there is none. */
static const char *behind_folder(const char *path, const char *name)
{
    size_t length = strlen(name);
    const char *found = NULL;

    for (const char *at = strstr(path, name); at != NULL;
         at = strstr(at + length, name)) {
        if ((at == path || at[-1] == '/') && at[length] == '/') {
            found = at + length + 1;
        }
    }
    return found;
}

static const char *behind_packages(const char *path)
{
    const char *site = behind_folder(path, "site-packages");
    const char *dist = behind_folder(path, "dist-packages");

    return site == NULL || (dist != NULL && dist > site) ? dist : site;
}

/* "python3.11", "python3.13t", "python311.zip"; of Debian's packages
 * "python3". */
static size_t library_folder_length(const char *at)
{
    size_t length = 7;

    if (strncmp(at, "python3", 7) != 0) {
        return 0;
    }
    length += strspn(at + length, ".0123456789");
    length += at[length] == 't';
    length += strncmp(at + length, "zip", 3) == 0 ? 3 : 0;
    return at[length] == '/' ? length + 1 : 0;
}

/* Behind "lib/python3.11/"; NULL if @path has no such folder. */
static const char *behind_library(const char *path)
{
    static const char *const folders[] = {"lib/", "lib64/"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        size_t length = strlen(folders[i]);

        for (const char *at = strstr(path, folders[i]); at != NULL;
             at = strstr(at + length, folders[i])) {
            size_t folder = library_folder_length(at + length);

            if (folder > 0 && (at == path || at[-1] == '/')) {
                return at + length + folder;
            }
        }
    }
    return NULL;
}

static bool is_python_file(const char *base_name)
{
    const char *dot = strrchr(base_name, '.');

    return dot != NULL && strncmp(dot, ".py", 3) == 0;
}

bool seep_where_python_imports(const char *file)
{
    static const char importer[] = "<frozen importlib";

    return strncmp(file, importer, sizeof(importer) - 1) == 0;
}

enum seep_python_origin seep_where_python_origin(const char *file)
{
    const char *base_name = seep_text_base_name(file);

    if (file[0] == '\0') {
        return SEEP_PYTHON_NAMELESS;
    }
    if (file[0] == '<') {
        return strncmp(file, "<frozen", 7) == 0 ? SEEP_PYTHON_FROZEN
                                                : SEEP_PYTHON_TEXT;
    }
    if (behind_packages(file) != NULL) {
        return SEEP_PYTHON_PACKAGE;
    }
    if (behind_library(file) != NULL) {
        return SEEP_PYTHON_LIBRARY;
    }
    if (base_name - file >= 4 && strncmp(base_name - 4, "bin/", 4) == 0 &&
        !is_python_file(base_name)) {
        return SEEP_PYTHON_COMMAND;
    }
    return SEEP_PYTHON_USER;
}

/* Its base name; with its folder where that is __init__.py or __main__.py. */
static const char *where_python_file(const char *file)
{
    const char *name = seep_text_base_name(file);

    if (strcmp(name, "__init__.py") != 0 && strcmp(name, "__main__.py") != 0) {
        return name;
    }
    name -= name > file; /* the slash */
    while (name > file && name[-1] != '/') {
        name--;
    }
    return name;
}

const char *seep_where_python_tail(const char *file)
{
    const char *tail = behind_packages(file);

    if (file[0] == '<') {
        return file;
    }
    tail = tail != NULL ? tail : behind_library(file);
    return tail != NULL && tail[0] != '\0' ? tail : where_python_file(file);
}

int seep_where_python_module(const char *file, char *text, size_t capacity)
{
    const char *tail = seep_where_python_tail(file);
    size_t length = file[0] == '<' ? strlen(tail) : strcspn(tail, "/");

    return snprintf(text, capacity, "%.*s", (int)(length & 0xffff), tail);
}

/*
 * Does @file run whatever was given to it: an event loop, a pool? What lies
 * outside of such a frame did not call what lies inside.
 */
static bool where_python_dispatches(const char *file)
{
    size_t length = strlen(file);

    for (size_t i = 0; i < sizeof(dispatchers) / sizeof(dispatchers[0]); i++) {
        const struct tail *tail = &dispatchers[i];

        /* A tail is the end of its file, which is quicker to look at. */
        if (tail->length <= length &&
            strcmp(file + length - tail->length, tail->text) == 0 &&
            strcmp(seep_where_python_tail(file), tail->text) == 0) {
            return seep_where_python_origin(file) != SEEP_PYTHON_USER;
        }
    }
    return false;
}

bool seep_where_python_runs_task(const char *file, const char *function)
{
    /* Its qualified name is known from 3.11 on. */
    return strcmp(seep_where_python_tail(file), "asyncio/events.py") == 0 &&
           (strcmp(function, "Handle._run") == 0 ||
            strcmp(function, "_run") == 0);
}

/* Beginnings of file names. */
static const char *const module_names[] = {
    /* libc and the loader */
    "libc.so",
    "libc-2",
    "libpthread",
    "libm.so",
    "libdl.so",
    "librt.so",
    "ld-linux",
    "ld-2",
    "ld-musl",
    "linux-vdso",
    "[vdso]",
    /* C++ runtimes */
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libsupc++",
    /* allocators, and us */
    "libseep",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    /* the interpreter */
    "libpython",
    "python3",
    "python2",
    "python.",
    "python-",
    /* CUDA; torch's own are not among them: they keep memory themselves */
    "libcuda",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libnccl",
    "libnvrtc",
    "libnvidia",
    "libnvJitLink",
    "libnvToolsExt",
    "libcupti",
    "libnvml",
    NULL,
};

/* Beginnings of functions, where they are linked into the program. */
static const char *const function_names[] = {
    "operator new",
    "operator delete",
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "boost::container::",
    "PyMem_",
    "_PyMem_",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_",
    "PyObject_Call",
    "PyObject_Vectorcall",
    "_PyEval_",
    "PyEval_",
    "_PyFunction_",
    "_PyGC_",
    "PyVectorcall_",
    "__libc_",
    "__GI_",
    "_dl_",
    "je_",
    "mi_",
    "tc_",
    "alloc::alloc::",
    "alloc::raw_vec::",
    "<alloc::",
    "core::ops::function::",
    "hashbrown::",
    "__rust_alloc",
    "__rust_realloc",
    "__rdl_alloc",
    "__rg_",
    "std::alloc::",
    NULL,
};

static const char *const exact_function_names[] = {
    "malloc",         "calloc",    "realloc",
    "reallocarray",   "memalign",  "aligned_alloc",
    "posix_memalign", "valloc",    "pvalloc",
    "free",           "strdup",    "strndup",
    "xmalloc",        "xcalloc",   "xrealloc",
    "xstrdup",        "g_malloc",  "g_malloc0",
    "g_realloc",      "g_strdup",  "mmap",
    "mmap64",         "mremap",    "__strdup",
    "asprintf",       "vasprintf", NULL,
};

static bool begins_with_any(const char *text, const char *const *table)
{
    while (*table != NULL && (text[0] != (*table)[0] ||
                              strncmp(text, *table, strlen(*table)) != 0)) {
        table++;
    }
    return *table != NULL;
}

/* The last space before the parameters that is not inside angle brackets ends
 * the type. */
const char *seep_where_function_name(const char *function)
{
    const char *name = function;
    int depth = 0;

    for (const char *at = function; *at != '\0'; at++) {
        if (*at == '<') {
            depth++;
        } else if (*at == '>') {
            depth -= depth > 0;
        } else if (depth == 0 && *at == '(' && at != name) {
            break;
        } else if (depth == 0 && *at == ' ') {
            if (strncmp(name, "operator", 8) == 0) {
                break;
            }
            name = at + 1;
        }
    }
    return name;
}

static bool is_plumbing_function(const char *function)
{
    const char *name = seep_where_function_name(function);

    return begins_with_any(name, function_names) ||
           is_any(name, exact_function_names);
}

bool seep_where_is_plumbing(const char *module)
{
    const char *name = seep_text_base_name(module);

    /* "python" alone is the interpreter, "pythonic" is not. */
    return begins_with_any(name, module_names) || strcmp(name, "python") == 0;
}

/* A name without a file is one whose file was lost. */
static enum seep_python_origin origin_of(const struct seep_report_frame *frame)
{
    if (!frame->python) {
        return SEEP_PYTHON_NAMELESS;
    }
    return frame->file[0] == '\0' && frame->function[0] != '\0'
               ? SEEP_PYTHON_TEXT
               : seep_where_python_origin(frame->file);
}

/*
 * Allocators inside of libraries. Invariant: of a library that has symbols, a
 * mapping is its allocator's only if a function of that asked for it: the stack
 * of a coroutine is none.
 */

static const struct {
    const char *library;  /* the beginning of its file name; "" of any */
    const char *function; /* the beginning of a name of its allocator's */
    struct seep_where_pool pool;
} pools[] = {
    {"_polars_runtime", "_rjem_", {"polars", "jemalloc"}},
    {"polars.", "_rjem_", {"polars", "jemalloc"}},
    {"libarrow.so", "arrow_mi_", {"pyarrow", "mimalloc"}},
    {"libarrow.so", "mi_", {"pyarrow", "mimalloc"}},
    {"libarrow.so", "_mi_", {"pyarrow", "mimalloc"}},
    {"libarrow.so", "je_arrow_", {"pyarrow", "jemalloc"}},
    {"_duckdb", "duckdb_je_", {"duckdb", "jemalloc"}},
    {"duckdb.", "duckdb_je_", {"duckdb", "jemalloc"}},
    {"libduckdb", "duckdb_je_", {"duckdb", "jemalloc"}},
    {"", "_rjem_", {"", "jemalloc"}},
    {"", "je_", {"", "jemalloc"}},
    {"", "mi_", {"", "mimalloc"}},
    {"", "_mi_", {"", "mimalloc"}},
    {"", "tcmalloc::", {"", "tcmalloc"}},
    {"", "rpmalloc", {"", "rpmalloc"}},
    {"", "snmalloc::", {"", "snmalloc"}},
};

static bool names_pool(const struct seep_report_frame **run, size_t count,
                       const char *function)
{
    bool named = false;

    for (size_t i = 0; i < count; i++) {
        if (run[i]->function[0] != '\0') {
            named = true;
            if (strncmp(run[i]->function, function, strlen(function)) == 0) {
                return true;
            }
        }
    }
    return !named;
}

bool seep_where_is_pool(const struct seep_report_frame **frames, size_t count,
                        struct seep_where_pool *ret_pool)
{
    const char *object;
    size_t first = 0;
    size_t end;

    while (first < count && !frames[first]->python &&
           seep_where_is_plumbing(frames[first]->module)) {
        first++;
    }
    if (first == count || frames[first]->python ||
        frames[first]->module[0] == '\0') {
        return false;
    }
    end = first + 1;
    while (end < count &&
           strcmp(frames[end]->module, frames[first]->module) == 0) {
        end++;
    }
    object = seep_text_base_name(frames[first]->module);
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        const char *library = pools[i].library;

        if (strncmp(object, library, strlen(library)) == 0 &&
            (library[0] != '\0' || frames[first]->function[0] != '\0') &&
            names_pool(&frames[first], end - first, pools[i].function)) {
            *ret_pool = pools[i].pool;
            if (ret_pool->library[0] == '\0') {
                ret_pool->library = object;
            }
            return true;
        }
    }
    return false;
}

bool seep_where_is_cache_of_tensors(const char *module)
{
    static const char name[] = "libc10_cuda";

    return strncmp(seep_text_base_name(module), name, sizeof(name) - 1) == 0;
}

bool seep_where_is_user(const struct seep_report_frame *frame)
{
    const char *module = seep_text_base_name(frame->module);

    if (frame->python) {
        return origin_of(frame) >= SEEP_PYTHON_PACKAGE;
    }
    if (module[0] == '\0' && frame->function[0] == '\0') {
        return false;
    }
    return !seep_where_is_plumbing(module) &&
           !is_plumbing_function(frame->function);
}

/* Of what a library made by exec(): "__init__" of a dataclass, "<lambda>" of a
 * namedtuple. */
static bool is_generated_name(const struct seep_report_frame *frame)
{
    const char *dot = strrchr(frame->function, '.');
    const char *name = dot != NULL ? dot + 1 : frame->function;

    return strcmp(frame->file, "<string>") == 0 &&
           (strncmp(name, "__", 2) == 0 || strcmp(name, "<lambda>") == 0);
}

/* A package's dataclass is the package's, not code that a user gave. */
static bool is_of_package(const struct seep_report_frame **frames, size_t count,
                          size_t i)
{
    if (!is_generated_name(frames[i])) {
        return false;
    }
    while (i < count &&
           (!frames[i]->python || strcmp(frames[i]->file, "<string>") == 0)) {
        i++;
    }
    return i < count && origin_of(frames[i]) == SEEP_PYTHON_PACKAGE;
}

/* The innermost Python frame of the best origin; @count if none has a name. */
static size_t pick_python(const struct seep_report_frame **frames, size_t count,
                          enum seep_python_origin least)
{
    enum seep_python_origin best = SEEP_PYTHON_NAMELESS;
    size_t picked = count;

    for (size_t i = 0; i < count; i++) {
        enum seep_python_origin origin = origin_of(frames[i]);

        if (origin > best && origin >= least &&
            !(origin == SEEP_PYTHON_TEXT && is_of_package(frames, count, i))) {
            best = origin;
            picked = i;
        }
    }
    return picked;
}

/* Innermost frame of an event loop or a pool; @count if there is none. */
static size_t find_dispatcher(const struct seep_report_frame **frames,
                              size_t count)
{
    size_t i = 0;

    while (i < count &&
           !(frames[i]->python && where_python_dispatches(frames[i]->file))) {
        i++;
    }
    return i;
}

/*
 * Where a package's event loop runs a package's handler, the user's line that
 * started the loop says nothing: then it is the package's own line.
 */
static size_t pick_python_line(const struct seep_report_frame **frames,
                               size_t count)
{
    size_t inside = find_dispatcher(frames, count);
    size_t picked = pick_python(frames, inside, SEEP_PYTHON_PACKAGE);

    return picked < inside ? picked
                           : pick_python(frames, count, SEEP_PYTHON_FROZEN);
}

size_t seep_where_pick(const struct seep_report_frame **frames, size_t count)
{
    size_t line = pick_python_line(frames, count);

    if (line < count) {
        return line;
    }
    for (size_t i = 0; i < count; i++) {
        if (seep_where_is_user(frames[i])) {
            return i;
        }
    }
    /* the interpreter's own, or libc's: what asked for the memory tells more
     * than what handed it out */
    for (size_t i = 0; i < count; i++) {
        if (frames[i]->function[0] != '\0' &&
            !is_plumbing_function(frames[i]->function)) {
            return i;
        }
    }
    /* of Python's whose names were lost nothing is known, not even a module */
    for (size_t i = 0; i < count; i++) {
        if (!frames[i]->python) {
            return i;
        }
    }
    return 0;
}

/* "__init__.py" alone is any package's. */
static const char *file_of(const struct seep_report_frame *frame)
{
    return frame->python ? where_python_file(frame->file)
                         : seep_text_base_name(frame->file);
}

int seep_where_format(const struct seep_report_frame *frame, char *text,
                      size_t capacity)
{
    const char *module = seep_text_base_name(frame->module);

    module = module[0] != '\0' ? module : "?";
    if (frame->python) {
        module = frame->file[0] != '\0' ? file_of(frame) : "Python";
    }
    if (frame->file[0] != '\0' && frame->line != 0) {
        return snprintf(text, capacity, "%s:%u%s%s", file_of(frame),
                        frame->line, frame->function[0] != '\0' ? " " : "",
                        frame->function);
    }
    if (frame->function[0] != '\0' || frame->python) {
        return snprintf(text, capacity, "%s %s", module,
                        frame->function[0] != '\0' ? frame->function : "?");
    }
    return snprintf(text, capacity, "%s+0x%llx", module,
                    (unsigned long long)frame->offset);
}

/* Threads. */

void seep_where_thread_without_numbers(const char *name,
                                       char text[SEEP_WHERE_THREAD_BYTES])
{
    size_t length = 0;

    while (*name != '\0' && length + 1 < SEEP_WHERE_THREAD_BYTES) {
        size_t digits = strspn(name, "0123456789");

        text[length++] = digits > 0 ? '*' : *name;
        name += digits > 0 ? digits : 1;
    }
    text[length] = '\0';
}

bool seep_where_thread_is_redacted(const char *name)
{
    size_t length = strlen(SEEP_WHERE_THREAD);

    return strncmp(name, SEEP_WHERE_THREAD, length) == 0 &&
           strspn(name + length, "0123456789abcdef") == 16 &&
           name[length + 16] == '\0';
}

uint64_t seep_where_thread_hash(const char *name)
{
    char text[SEEP_WHERE_THREAD_BYTES];

    if (seep_where_thread_is_redacted(name)) {
        return strtoull(name + strlen(SEEP_WHERE_THREAD), NULL, 16);
    }
    seep_where_thread_without_numbers(name, text);
    return seep_hash_bytes(text, strlen(text));
}
