/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A zoo of holders in C whose members have names by DWARF alone.
 *
 *     holders_members READY COUNT
 */
#include "holders_members.h"

struct node {
    struct node *next;
    char *payload;
};

struct pool {
    long count;
    union {
        char *text;
        long number;
    } last;
    char *slots[65536];
};

struct owner { /* larger than a node, which else it were one of */
    struct owner *unused[40];
    struct {
        struct pool *pool;
        struct node *waiting;
    } inner;
};

struct pair {
    char *first;
    char *second;
};

struct flexible {
    size_t count;
    char *rows[];
};

struct {
    long count;
    struct node *head;
    struct pool pools[2];
    void *opaque;
    struct flexible *flexible;
} registry;
struct {
    long count;
    struct pair pairs[32768];
} either;
struct owner *owner;
_Thread_local struct kept {
    long count;
    struct node *mine;
} per_thread;
void *opaque_owner;

static struct node *push(struct node *head, char *block)
{
    struct node *node = malloc(sizeof(*node));

    *node = (struct node){head, block};
    return node;
}

static struct pool *of_function(void)
{
    static struct {
        long unused[3];
        struct pool pool;
    } only;

    return &only.pool;
}

#define BLOCK fill(malloc(BLOCK_BYTES))

static struct pool *opaque(void)
{
    return registry.opaque;
}

static struct pool *untyped(void)
{
    return opaque_owner;
}

/* The first and the last are of one member, and others are not. */
static char **of_either(int i)
{
    struct pair *pair = &either.pairs[i % 32768];

    return i % 2 == 0 ? &pair->first : &pair->second;
}

static void put(struct pool *pool, int i, char *block)
{
    pool->slots[i % 65536] = block;
}

#define PUSH(list) list = push(list, BLOCK)
#define INNER owner->inner
#define INNER_SLOTS "owner.inner.pool.slots[...]"
#define POOLS "registry.pools[...].slots[...]"
#define ROWS "registry.flexible.rows[...]"

/* clang-format off */
KEEPER(in_a_list, "registry.head", PUSH(registry.head))
KEEPER(in_an_array, POOLS, put(&registry.pools[1], i, BLOCK))
KEEPER(below_a_pointer, INNER_SLOTS, put(INNER.pool, i, BLOCK))
KEEPER(in_a_list_below, "owner.inner.waiting", PUSH(INNER.waiting))
KEEPER(in_a_thread_local, "per_thread.mine", PUSH(per_thread.mine))
KEEPER(in_a_function, "only.pool.slots[...]", put(of_function(), i, BLOCK))
KEEPER(behind_void, "registry.opaque", put(opaque(), i, BLOCK))
KEEPER(without_a_type, "opaque_owner", put(untyped(), i, BLOCK))
KEEPER(without_an_end, ROWS, registry.flexible->rows[i % 65536] = BLOCK)
KEEPER(in_either_of_two, "either", *of_either(i) = BLOCK)
/* clang-format on */

int main(int count, char **arguments)
{
    static const struct keeper keepers[] = {
#define TOLD(name) {#name, name##_line, name##_holder, name}
        TOLD(in_a_list),        TOLD(in_an_array),       TOLD(below_a_pointer),
        TOLD(in_a_list_below),  TOLD(in_a_thread_local), TOLD(in_a_function),
        TOLD(behind_void),      TOLD(without_a_type),    TOLD(without_an_end),
        TOLD(in_either_of_two),
    };

    (void)count;
    owner = calloc(1, sizeof(*owner));
    owner->inner.pool = calloc(1, sizeof(struct pool));
    registry.opaque = calloc(1, sizeof(struct pool));
    registry.flexible = calloc(1, sizeof(struct flexible) + 65536 * 8);
    opaque_owner = calloc(1, sizeof(struct pool));
    go_on(keepers, sizeof(keepers) / sizeof(*keepers), arguments);
}
