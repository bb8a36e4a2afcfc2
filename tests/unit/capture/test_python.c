/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Python frames of interpreters that are made up, one for each version, and of
 * such that are not what they say.
 */
#include "seep_test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/python/interpreter.h"
#include "python_world.h"

#define MINOR_MIN SEEP_PYTHON_MINOR_MIN
#define MINOR_MAX SEEP_PYTHON_MINOR_MAX
#define FOR_EACH_MINOR(minor) \
    for (unsigned int minor = MINOR_MIN; minor <= MINOR_MAX; minor++)

static void take_native(struct seep_python_stack *stack)
{
    assert_non_null(stack);
    memcpy(stack->pcs, world.pcs, sizeof(world.pcs));
    memcpy(stack->sps, world.sps, sizeof(world.sps));
    stack->native_count = world.native_count;
}

static struct seep_python_stack *capture(void)
{
    struct seep_python_stack *stack = seep_python_stack_take();

    take_native(stack);
    seep_python_stack_fill(stack);
    return stack;
}

static void give(struct seep_python_stack *stack)
{
    seep_python_stack_give(stack);
}

/* Past the captures that are checked with care. */
static void pass_probation(void)
{
    for (int i = 0; i < 64; i++) {
        give(capture());
    }
}

static bool is_native_only(void)
{
    struct seep_python_stack *stack = capture();
    bool is = stack->python == NULL && stack->count == stack->native_count;

    for (size_t i = 0; is && i < stack->count; i++) {
        is = !stack->merged[i].is_python &&
             stack->merged[i].address == world.pcs[i];
    }
    give(stack);
    return is;
}

/* File, line and name of a merged frame. */
static bool is_frame(struct seep_python_stack *stack, size_t index,
                     unsigned int frame)
{
    const struct seep_merged_frame *merged = &stack->merged[index];
    struct seep_python_identity identity;
    char file[64];
    char name[64];
    size_t bytes;
    int32_t line = -1;

    return merged->is_python && merged->address == world.codes[frame] &&
           seep_python_identify(stack->python, &stack->memory, merged->address,
                                &identity) &&
           seep_python_text(stack->python, &stack->memory, merged->address,
                            SEEP_PYTHON_FILE, file, sizeof(file), &bytes) &&
           bytes == strlen(WORLD_FILE) && strcmp(file, WORLD_FILE) == 0 &&
           seep_python_text(stack->python, &stack->memory, merged->address,
                            SEEP_PYTHON_NAME, name, sizeof(name), &bytes) &&
           strcmp(name, python_world_name(frame)) == 0 &&
           seep_python_line_cached(stack->python, &stack->memory, &identity,
                                   merged->instruction, &line) &&
           line == python_world_line(frame);
}

/* Is everything as it was made, each frame in its place? */
static bool is_whole(void)
{
    static const int wanted[] = {-1, 0, 1, -1, 2, -1, 3, 4, 5, -1};
    struct seep_python_stack *stack = capture();
    size_t count = sizeof(wanted) / sizeof(wanted[0]);
    bool whole = stack->python != NULL && stack->count == count;

    for (size_t i = 0; whole && i < count; i++) {
        whole = wanted[i] < 0 ? !stack->merged[i].is_python
                              : is_frame(stack, i, (unsigned int)wanted[i]);
    }
    give(stack);
    return whole;
}

static void use(unsigned int minor)
{
    python_world_make(minor, 1);
    seep_python_use(&world.python);
}

static void every_version_is_read_and_merged(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        use(minor);
        assert_true(is_whole());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_PROBATION);
        pass_probation();
        assert_int_equal(seep_python_state(), SEEP_PYTHON_ON);
        assert_true(is_whole());
        assert_int_equal(seep_python_version() >> 16 & 0xff, minor);
    }
}

/* Shift one field of the offsets. */
static void shift(struct seep_python_offsets *offsets, unsigned int field,
                  int by)
{
    ((int *)(void *)offsets)[1 + field] += by;
}

/*
 * Whatever is shifted: the types disagree, or Python is switched off within
 * its probation, or what is read is right all the same.
 */
static void no_shifted_field_is_believed(void **state)
{
    static const int shifts[] = {8, -8, 16, -16, 64, 4, 1, 4096};
    unsigned int fields = sizeof(struct seep_python_offsets) / sizeof(int) - 1;
    unsigned int off = 0;

    (void)state;
    for (unsigned int i = 0; i < 7 * fields * 8 * 4; i++) {
        unsigned int field = i / 7 % fields;
        struct seep_python_memory memory = {0};
        struct seep_python shifted;

        python_world_make(MINOR_MIN + i % 7, i / 7 / fields / 8);
        shifted = world.python;
        shift(&shifted.offsets, field, shifts[i / 7 / fields % 8]);
        if (!seep_python_types_agree(&shifted, &memory)) {
            off++;
            continue;
        }
        seep_python_use(&shifted);
        pass_probation();
        if (seep_python_state() == SEEP_PYTHON_ON) {
            struct seep_python_stack *stack = capture();

            /* Fields that this version does not use, or only to merge. */
            assert_int_equal(stack->chain.count, WORLD_FRAMES);
            for (unsigned int j = 0; j < stack->chain.count; j++) {
                assert_true(stack->chain.frames[j].code == world.codes[j]);
            }
            give(stack);
        } else {
            assert_true(is_native_only());
            off++;
        }
    }
    print_message("switched off: %u of %u\n", off, 7 * fields * 8 * 4);
}

static void a_frame_that_is_none_switches_python_off(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        const struct seep_python_offsets *o = &world.python.offsets;

        for (unsigned int i = 0; i < 6; i++) {
            uintptr_t frame;

            use(minor);
            pass_probation();
            frame = world.frames[i % 3];
            *python_world_word(
                frame + (uintptr_t)(i < 3 ? o->frame_code : o->frame_back)) =
                i < 3 ? world.state : UINT64_C(0x7e0000000001);
            assert_true(is_native_only());
            assert_int_equal(seep_python_state(), SEEP_PYTHON_FRAME);
        }
    }
}

static void a_code_object_that_is_none_switches_python_off(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        use(minor);
        *python_world_word(world.codes[4] +
                           (uintptr_t)world.python.offsets.code_lines) =
            world.codes[3];
        assert_true(is_native_only());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_CODE);
    }
}

static void instructions_behind_the_code_switch_python_off(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        uintptr_t at;

        use(minor);
        at =
            world.frames[3] + (uintptr_t)world.python.offsets.frame_instruction;
        *(int32_t *)at += minor == 10 ? 100 : 200;
        assert_true(is_native_only());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_FRAME);
    }
}

static void a_table_of_no_sane_length_switches_python_off(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        uintptr_t lines;

        use(minor);
        lines = *python_world_word(world.codes[2] +
                                   (uintptr_t)world.python.offsets.code_lines);
        *python_world_word(lines + SEEP_PYTHON_OBJECT_SIZE) = UINT64_MAX;
        assert_true(is_native_only());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_CODE);
    }
}

static void an_owner_that_is_not_known_switches_python_off(void **state)
{
    (void)state;
    for (unsigned int minor = 11; minor <= MINOR_MAX; minor++) {
        use(minor);
        *(uint8_t *)(world.frames[1] +
                     (uintptr_t)world.python.offsets.frame_owner) = 5;
        assert_true(is_native_only());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_FRAME);
    }
}

static void code_at_the_same_address_is_told_apart(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        struct seep_python_memory memory = {0};
        struct seep_python_identity before;
        struct seep_python_identity after;
        uintptr_t lines;

        use(minor);
        lines = *python_world_word(world.codes[0] +
                                   (uintptr_t)world.python.offsets.code_lines);
        assert_true(seep_python_identify(&world.python, &memory, world.codes[0],
                                         &before));
        assert_true(seep_python_identify(&world.python, &memory, world.codes[0],
                                         &after));
        assert_memory_equal(&before, &after, sizeof(before));
        ++*(uint8_t *)(lines + SEEP_PYTHON_BYTES_DATA + 1);
        assert_true(seep_python_identify(&world.python, &memory, world.codes[0],
                                         &after));
        assert_memory_not_equal(&before, &after, sizeof(before));
    }
}

static void a_text_at_the_same_address_is_told_apart(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        const struct seep_python_offsets *at = &world.python.offsets;
        int offsets[2];

        use(minor);
        offsets[0] = at->code_filename;
        offsets[1] = minor >= 11 ? at->code_qualname : at->code_name;
        for (size_t i = 0; i < 2; i++) {
            struct seep_python_memory memory = {0};
            struct seep_python_identity before;
            struct seep_python_identity after;
            uintptr_t text =
                *python_world_word(world.codes[0] + (uintptr_t)offsets[i]);
            uintptr_t count =
                *python_world_word(text + SEEP_PYTHON_OBJECT_SIZE);
            uintptr_t header = (uintptr_t)at->text_header;

            if (i == 0) { /* it is not ASCII */
                header += minor < 12 ? 24 : 16;
            }
            assert_true(seep_python_identify(&world.python, &memory,
                                             world.codes[0], &before));
            ++*(uint8_t *)(text + header + count - 1);
            assert_true(seep_python_identify(&world.python, &memory,
                                             world.codes[0], &after));
            assert_int_not_equal(before.hash, after.hash);
        }
    }
}

static void frames_in_a_circle_end(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        struct seep_python_stack *stack;

        use(minor);
        pass_probation();
        *python_world_word(world.frames[1] +
                           (uintptr_t)world.python.offsets.frame_back) =
            world.frames[0];
        stack = capture();
        assert_true(stack->truncated);
        assert_int_equal(stack->chain.count, SEEP_STACK_FRAMES_MAX);
        assert_int_equal(stack->count, SEEP_STACK_FRAMES_MAX);
        give(stack);
    }
}

static void another_threads_state_is_not_walked(void **state)
{
    (void)state;
    use(13);
    pass_probation();
    *python_world_word(world.state +
                       (uintptr_t)world.python.offsets.thread_id) += 64;
    for (int i = 0; i < 100; i++) {
        assert_true(is_native_only());
    }
    assert_int_equal(seep_python_state(), SEEP_PYTHON_ON);
    seep_python_use(&world.python);
    for (int i = 0; i < 100; i++) {
        assert_true(is_native_only());
    }
    assert_int_equal(seep_python_state(), SEEP_PYTHON_THREAD);
}

static void to_3_11_the_holder_of_the_gil_is_not_walked(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        use(minor);
        world.own = 0;
        assert_true(is_native_only());
        world.own = world.state;
        world.now = minor < 12 ? 0x7e0000000008 : 0;
        assert_true(is_whole());
    }
}

static void nothing_is_read_without_the_gil_at_the_end(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        use(minor);
        world.finalizing = true;
        assert_true(is_whole());
        world.now = 0;
        assert_true(is_native_only());
        world.finalizing = false;
        world.initialized = false;
        assert_true(is_native_only());
        world.initialized = true;
        assert_true(is_whole());
    }
}

struct detached {
    bool (*question)(void);
    bool answer;
};

static void *capture_detached(void *detached)
{
    struct detached *it = detached;

    world.now = 0;
    *python_world_word(world.state +
                       (uintptr_t)world.python.offsets.thread_id) =
        (uintptr_t)pthread_self();
    it->answer = it->question();
    return NULL;
}

static bool ask_detached(bool (*question)(void))
{
    pthread_t thread;
    struct detached it = {question, false};

    assert_int_equal(pthread_create(&thread, NULL, capture_detached, &it), 0);
    pthread_join(thread, NULL);
    return it.answer;
}

static bool detached_thread_sees_all(void)
{
    return ask_detached(is_whole);
}

static void without_the_gil_what_is_gone_does_no_harm(void **state)
{
    void *gone =
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    FOR_EACH_MINOR(minor)
    {
        use(minor);
        pass_probation();
        assert_true(detached_thread_sees_all());
        *python_world_word(world.frames[2] +
                           (uintptr_t)world.python.offsets.frame_back) =
            (uintptr_t)gone;
        assert_false(detached_thread_sees_all());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_ON);
    }
    munmap(gone, 4096);
}

/* The end comes behind the first look, before what a frame refers to is read
 * by plain loads: the frames may be gone by now, and what was copied of them
 * be another's. */
static void what_ends_while_frames_are_copied_is_not_read(void **state)
{
    (void)state;
    for (unsigned int minor = 11; minor <= MINOR_MAX; minor++) {
        use(minor);
        pass_probation();
        world.finalizing_after = 1;
        assert_true(ask_detached(is_native_only));
        assert_int_equal(seep_python_state(), SEEP_PYTHON_ON);
    }
}

/* And behind the second: names may go, code objects stay. */
static void what_ends_while_names_are_read_is_told_without_them(void **state)
{
    (void)state;
    for (unsigned int minor = 11; minor <= MINOR_MAX; minor++) {
        use(minor);
        pass_probation();
        world.finalizing_after = 2;
        assert_false(detached_thread_sees_all());
        assert_int_equal(seep_python_state(), SEEP_PYTHON_ON);
    }
}

static void without_the_gil_code_that_is_none_is_not_followed(void **state)
{
    (void)state;
    for (unsigned int minor = 11; minor <= MINOR_MAX; minor++) {
        use(minor);
        pass_probation();
        *python_world_word(world.codes[3] + SEEP_PYTHON_OBJECT_TYPE) ^= 64;
        assert_true(ask_detached(is_native_only));
        assert_int_equal(seep_python_state(), SEEP_PYTHON_ON);
    }
}

static void the_threads_own_stack_needs_no_copies(void **state)
{
    static uintptr_t elsewhere = 7;
    uintptr_t here[2] = {5, 6};
    uintptr_t word = 0;
    struct seep_python_memory memory = {
        .pages = seep_python_pages_take((uintptr_t)pthread_self()),
        .own_low = (uintptr_t)here,
        .own_high = (uintptr_t)&here[2],
    };

    (void)state;
    assert_non_null(memory.pages);
    assert_true(seep_python_read_word(&memory, (uintptr_t)&here[1], &word));
    assert_int_equal(word, 6);
    assert_false(seep_python_read(&memory, &word, (uintptr_t)&here[1] + 1, 8));
    assert_false(seep_python_read_word(&memory, (uintptr_t)&elsewhere, &word));
    assert_true(memory.spent);
    seep_python_pages_give(memory.pages);
}

/* A read with so many copies. @return whether it was there, with @wanted */
static bool reads(uint32_t budget, const uintptr_t *from, uintptr_t wanted)
{
    struct seep_python_memory memory = {
        .pages = seep_python_pages_take((uintptr_t)pthread_self()),
        .budget = budget,
        .frames_only = true,
    };
    uintptr_t word = 0;
    bool last = seep_python_read_word(&memory, (uintptr_t)&from[511], &word);
    bool first = seep_python_read_word(&memory, (uintptr_t)from, &word);

    seep_python_pages_give(memory.pages);
    return last && first && word == wanted;
}

static void
frames_of_a_page_are_copied_together_and_for_each_stack(void **state)
{
    uintptr_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    page[0] = 5;
    assert_true(reads(1, page, 5));
    page[0] = 6;
    assert_true(reads(0, page, 6)); /* it is known what will be asked for */
    munmap(page, 4096);
    assert_false(reads(256, page, 6));
}

static void an_arena_is_of_a_size_that_its_version_has(void **state)
{
    static const struct {
        uintptr_t bytes;
        unsigned int first;
        unsigned int last;
    } cases[] = {{256 << 10, 8, 9}, {1 << 20, 10, 15}, {2 << 20, 15, 15}};

    (void)state;
    FOR_EACH_MINOR(minor)
    {
        use(minor);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(
                seep_python_is_arena(world.python.start, cases[i].bytes),
                minor >= cases[i].first && minor <= cases[i].last);
            assert_false(
                seep_python_is_arena(world.python.end, cases[i].bytes));
        }
    }
}

static void one_that_may_be_unloaded_must_be_on_the_stack(void **state)
{
    (void)state;
    python_world_make(12, 1);
    world.python.late = true;
    seep_python_use(&world.python);
    assert_true(is_whole());
    world.python.end = world.python.start;
    assert_true(is_native_only());
}

static void a_cut_native_stack_keeps_all_python_frames(void **state)
{
    (void)state;
    FOR_EACH_MINOR(minor)
    {
        for (size_t native = 1; native < 7; native++) {
            struct seep_python_stack *stack;
            unsigned int next = 0;

            use(minor);
            world.native_count = native;
            stack = capture();
            for (size_t i = 0; i < stack->count; i++) {
                if (stack->merged[i].is_python) {
                    assert_true(is_frame(stack, i, next++));
                }
            }
            assert_int_equal(next, WORLD_FRAMES);
            give(stack);
        }
    }
}

static void stacks_that_all_threads_hold_are_not_to_be_had(void **state)
{
    struct seep_python_stack *mine = seep_python_stack_take();

    (void)state;
    /* Only from a hook of this thread that was abandoned. */
    assert_ptr_equal(seep_python_stack_take(), mine);
    give(mine);
}

/* As under an old profile of a container. */
static int refuse_copies(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
               ? 0
               : -1;
}

static int child_without_copies(void)
{
    uintptr_t back;

    if (refuse_copies() != 0) {
        return 77;
    }
    use(13);
    if (!is_whole()) {
        return 1;
    }
    pass_probation();
    if (seep_python_state() != SEEP_PYTHON_ON || !is_whole() ||
        detached_thread_sees_all()) {
        return 2;
    }
    use(13);
    back = world.frames[1] + (uintptr_t)world.python.offsets.frame_back;
    *python_world_word(back) = UINT64_C(0x7ffffffff000);
    return is_native_only() && seep_python_state() == SEEP_PYTHON_FRAME ? 0 : 3;
}

/* First: whether copies work is found out once. */
static void where_copies_are_refused_the_gil_is_enough(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        _exit(child_without_copies());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_system_calls_only_plain_loads_are_left(void **state)
{
    (void)state;
    use(13);
    pass_probation();
    seep_python_restrict();
    assert_true(is_whole());
    assert_false(detached_thread_sees_all());
    use(13);
    assert_true(is_native_only());
    assert_int_equal(seep_python_state(), SEEP_PYTHON_PROBATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_copies_are_refused_the_gil_is_enough),
        cmocka_unit_test(every_version_is_read_and_merged),
        cmocka_unit_test(no_shifted_field_is_believed),
        cmocka_unit_test(a_frame_that_is_none_switches_python_off),
        cmocka_unit_test(a_code_object_that_is_none_switches_python_off),
        cmocka_unit_test(instructions_behind_the_code_switch_python_off),
        cmocka_unit_test(a_table_of_no_sane_length_switches_python_off),
        cmocka_unit_test(an_owner_that_is_not_known_switches_python_off),
        cmocka_unit_test(code_at_the_same_address_is_told_apart),
        cmocka_unit_test(a_text_at_the_same_address_is_told_apart),
        cmocka_unit_test(frames_in_a_circle_end),
        cmocka_unit_test(another_threads_state_is_not_walked),
        cmocka_unit_test(to_3_11_the_holder_of_the_gil_is_not_walked),
        cmocka_unit_test(nothing_is_read_without_the_gil_at_the_end),
        cmocka_unit_test(without_the_gil_what_is_gone_does_no_harm),
        cmocka_unit_test(what_ends_while_frames_are_copied_is_not_read),
        cmocka_unit_test(what_ends_while_names_are_read_is_told_without_them),
        cmocka_unit_test(without_the_gil_code_that_is_none_is_not_followed),
        cmocka_unit_test(the_threads_own_stack_needs_no_copies),
        cmocka_unit_test(
            frames_of_a_page_are_copied_together_and_for_each_stack),
        cmocka_unit_test(an_arena_is_of_a_size_that_its_version_has),
        cmocka_unit_test(one_that_may_be_unloaded_must_be_on_the_stack),
        cmocka_unit_test(a_cut_native_stack_keeps_all_python_frames),
        cmocka_unit_test(stacks_that_all_threads_hold_are_not_to_be_had),
        /* Last: it cannot be undone. */
        cmocka_unit_test(without_system_calls_only_plain_loads_are_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
