/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A zoo of holders in C: each keeps blocks of a line of its own, and goes on.
 *
 *     holders READY COUNT
 *
 * Each keeper begins with COUNT blocks; then READY is written, a line for each:
 * its name, the number of the line that allocates, how it ends, where the root
 * is and how large, and what the holder must begin with. It goes on until it is
 * ended.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_BYTES 4000U
#define SLOTS (1 << 16)
#define POOL_BYTES (16U << 20)

struct item {
    struct item *next;
    char *data;
};

struct tree {
    struct tree *left;
    struct tree *right;
    char *data;
    int key;
};

struct ring {
    char **slots;
    unsigned first;
    unsigned count;
};

struct callback {
    void (*call)(void *data);
    void *data;
    struct callback *next;
};

/* Not static: a symbol of data stays, whatever the optimiser thinks. */
char *volatile array_of_blocks[SLOTS];
struct item *volatile list_of_items;
struct item *volatile table_of_items[256];
struct tree *volatile root_of_tree;
struct ring ring_of_blocks;
struct {
    int count;
    char **items;
} vector_of_blocks;
char *volatile tagged_blocks[SLOTS];
struct callback *volatile callbacks;
char **volatile pool_of_pointers;
char *volatile aligned_blocks[SLOTS];
char *volatile grown_blocks[SLOTS];
static char *volatile static_blocks[SLOTS];
volatile uintptr_t offsets_of_blocks[SLOTS];
__thread char **of_a_thread;
static pthread_key_t key;
static char *volatile *of_the_stack;

static char *fill(void *block)
{
    return memset(block, 1, BLOCK_BYTES);
}

#define KEEPER(name)                     \
    enum { name##_line = __LINE__ + 2 }; \
    static __attribute__((noinline)) void name(__attribute__((unused)) int i)

KEEPER(in_an_array)
{
    array_of_blocks[i % SLOTS] = fill(malloc(BLOCK_BYTES));
}
KEEPER(in_a_linked_list)
{
    char *block = fill(malloc(BLOCK_BYTES));
    struct item *item = malloc(sizeof(*item));

    *item = (struct item){list_of_items, block};
    list_of_items = item;
}
KEEPER(in_chains_of_a_table)
{
    char *block = fill(malloc(BLOCK_BYTES));
    struct item *item = malloc(sizeof(*item));

    *item = (struct item){table_of_items[i % 256], block};
    table_of_items[i % 256] = item;
}
KEEPER(in_a_tree)
{
    char *block = fill(malloc(BLOCK_BYTES));
    struct tree *node = calloc(1, sizeof(*node));
    struct tree *at = root_of_tree;

    node->data = block;
    node->key = (int)((unsigned)i * 2654435761U);
    while (at != NULL) {
        struct tree **next = node->key < at->key ? &at->left : &at->right;

        if (*next == NULL) {
            *next = node;
            return;
        }
        at = *next;
    }
    root_of_tree = node;
}
KEEPER(in_a_ring)
{
    char *block = fill(malloc(BLOCK_BYTES));

    if (ring_of_blocks.slots == NULL) {
        ring_of_blocks.slots = calloc(SLOTS, sizeof(char *));
    }
    ring_of_blocks
        .slots[(ring_of_blocks.first + ring_of_blocks.count++) % SLOTS] = block;
}
KEEPER(in_a_grown_vector)
{
    char *block = fill(malloc(BLOCK_BYTES));

    vector_of_blocks.items =
        realloc(vector_of_blocks.items,
                (size_t)(vector_of_blocks.count + 1) * sizeof(char *));
    vector_of_blocks.items[vector_of_blocks.count++] = block;
}
KEEPER(by_tagged_pointers)
{
    tagged_blocks[i % SLOTS] = fill(malloc(BLOCK_BYTES)) + 1;
}
KEEPER(by_a_registry)
{
    char *block = fill(malloc(BLOCK_BYTES));
    struct callback *callback = malloc(sizeof(*callback));

    *callback = (struct callback){free, block, callbacks};
    callbacks = callback;
}
KEEPER(in_a_pool_of_its_own)
{
    pool_of_pointers[i % SLOTS] = fill(malloc(BLOCK_BYTES));
}
KEEPER(aligned)
{
    aligned_blocks[i % SLOTS] = fill(aligned_alloc(256, 4096));
}
KEEPER(grown_by_realloc)
{
    grown_blocks[i % SLOTS] = fill(realloc(NULL, BLOCK_BYTES));
}
KEEPER(in_a_static_array)
{
    static_blocks[i % SLOTS] = fill(malloc(BLOCK_BYTES));
}
KEEPER(in_a_thread_local)
{
    of_a_thread[i % SLOTS] = fill(malloc(BLOCK_BYTES));
}
KEEPER(of_a_thread_key)
{
    ((char **)pthread_getspecific(key))[i % SLOTS] = fill(malloc(BLOCK_BYTES));
}
KEEPER(on_the_stack)
{
    ((char *volatile *)of_the_stack)[i % 1024] = fill(malloc(BLOCK_BYTES));
}
KEEPER(by_nobody)
{
    (void)fill(malloc(BLOCK_BYTES));
}
KEEPER(by_offsets)
{
    offsets_of_blocks[i % SLOTS] = (uintptr_t)fill(malloc(BLOCK_BYTES)) >> 4;
}
KEEPER(by_themselves)
{
    char **block = (char **)fill(malloc(BLOCK_BYTES));
    struct item *item = malloc(sizeof(*item));

    *item = (struct item){NULL, (char *)block};
    block[0] = (char *)item;
    __asm__ volatile("" : : "r"(block), "r"(item) : "memory");
}

/* X(keeper, end, root, bytes of it, holder); what has no address: NULL. */
#define KEEPERS(X)                                                         \
    X(in_an_array, "held", array_of_blocks, "array_of_blocks")             \
    X(in_a_linked_list, "held", &list_of_items, "list_of_items")           \
    X(in_chains_of_a_table, "held", table_of_items, "table_of_items")      \
    X(in_a_tree, "held", &root_of_tree, "root_of_tree")                    \
    X(in_a_ring, "held", &ring_of_blocks, "ring_of_blocks")                \
    X(in_a_grown_vector, "held", &vector_of_blocks, "vector_of_blocks")    \
    X(by_tagged_pointers, "held", tagged_blocks, "tagged_blocks")          \
    X(by_a_registry, "held", &callbacks, "callbacks")                      \
    X(in_a_pool_of_its_own, "held", &pool_of_pointers, "pool_of_pointers") \
    X(aligned, "held", aligned_blocks, "aligned_blocks")                   \
    X(grown_by_realloc, "held", grown_blocks, "grown_blocks")              \
    X(in_a_static_array, "held", static_blocks, "static_blocks")           \
    X(in_a_thread_local, "held", &of_a_thread, "of_a_thread")              \
    X(of_a_thread_key, "held", NULL, "")                                   \
    X(on_the_stack, "held", NULL, "the stack of thread keeper")            \
    X(by_nobody, "lost", NULL, "")                                         \
    X(by_offsets, "lost", NULL, "")                                        \
    X(by_themselves, "cycle", NULL, "")

static void step(int i)
{
#define STEP(name, end, root, holder) name(i);
    KEEPERS(STEP)
#undef STEP
}

static void tell(const char *path)
{
    char temporary[4096];
    FILE *file;

    snprintf(temporary, sizeof(temporary), "%s.new", path);
    file = fopen(temporary, "w");
#define TELL(name, end, root, holder)                           \
    fprintf(file, "%s %d %s %lx %s\n", #name, name##_line, end, \
            (unsigned long)(uintptr_t)(root), holder);
    KEEPERS(TELL)
#undef TELL
    fclose(file);
    rename(temporary, path);
}

struct task {
    const char *ready;
    int count;
};

static __attribute__((noinline)) void serve(const struct task *task)
{
    char *volatile local[1024] = {NULL};

    of_the_stack = local;
    of_a_thread = calloc(SLOTS, sizeof(char *));
    pthread_setspecific(key, calloc(SLOTS, sizeof(char *)));
    for (int i = 0; i < task->count; i++) {
        step(i);
    }
    tell(task->ready);
    for (int i = task->count;; i++) {
        usleep(50000);
        step(i);
        free(malloc((size_t)(i % 3000)));
    }
}

static void *keep(void *task)
{
    pthread_setname_np(pthread_self(), "keeper");
    serve(task);
    return NULL;
}

int main(int count, char **arguments)
{
    struct task task = {arguments[1], count > 2 ? atoi(arguments[2]) : 120};
    pthread_t thread;

    pthread_key_create(&key, NULL);
    pool_of_pointers = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pthread_create(&thread, NULL, keep, &task) != 0) {
        return 1;
    }
    pthread_join(thread, NULL);
    return 0;
}
