/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a frame to its caller: all kinds of rules, and frame records where there
 * is no rule.
 *
 * Invariant: a frame's registers are saved in that frame, between its stack
 * pointer and the return address; what a rule says to lie elsewhere is lost.
 * So where a register lies tells which frame saved it.
 */
#include "capture/native/walk.h"

#include "base/compiler.h"
#include "capture/native/bounds.h"
#include "capture/native/cache.h"
#include "capture/native/cfi.h"
#include "capture/native/elf.h"
#include "capture/native/rule.h"

/*
 * Frame records, believed only with reasons.
 *
 * A register that is used as a frame pointer by nobody may hold anything: an
 * outer frame, or a structure with a pointer to a function in it. So a record
 * must lead through ascending records, whose return addresses are near to each
 * other, to code of an object, behind a call as far as its rules can tell; and
 * what lies below the record must not hold a return address into such code:
 * that would be the frame's own, and the record an outer frame's.
 */

#define RECORDS_MAX 8U
#define FRAME_WORDS_MAX 256U
#define CODE_NEAR_BYTES (UINT64_C(1) << 29)
#define LOWEST_CODE 0x10000U

enum code {
    CODE_NONE,   /* no code, or nowhere that a call returns to */
    CODE_NO_ONE, /* of no object: compiled at run time, or no code */
    CODE_BARE,   /* of an object, without rules */
    CODE_RULED,
};

/* What @back would return to. */
static enum code code_at(uintptr_t back)
{
    struct seep_elf_image image;
    struct seep_cfi_entry entry;

    if (back < LOWEST_CODE || back >> 47 != 0) {
        return CODE_NONE;
    }
    if (!seep_objects_find(back - 1, &image)) {
        return CODE_NO_ONE;
    }
    if (!seep_elf_is_code(&image, back - 1)) {
        return CODE_NONE;
    }
    /* Who points to where a function begins points to a function. */
    if (seep_rule_entry(back, &entry) == SEEP_CUT_NONE &&
        entry.pc_low == back) {
        return CODE_NONE;
    }
    return seep_rule_entry(back - 1, &entry) == SEEP_CUT_NONE ? CODE_RULED
                                                              : CODE_BARE;
}

static SEEP_READS_THE_STACK uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

static bool is_record(uintptr_t fp, uintptr_t low, uintptr_t high)
{
    return fp % sizeof(uintptr_t) == 0 && fp >= low && fp < high &&
           high - fp >= 2 * sizeof(uintptr_t);
}

static bool is_near(uintptr_t left, uintptr_t right)
{
    return (left > right ? left - right : right - left) < CODE_NEAR_BYTES;
}

/* Might a call return to @word? It may be a stale one, of an object that is
 * being unloaded: so only of the program itself more is asked. */
static bool may_be_back(uintptr_t word)
{
    struct seep_elf_image image;

    return word >= LOWEST_CODE && word >> 47 == 0 &&
           seep_objects_locate(word - 1, &image) &&
           (image.headers == NULL || code_at(word) == CODE_RULED);
}

/* Is there a return address below the record, so that it is not the frame's? */
static bool hides_a_frame(const struct seep_frame_record *record)
{
    if (record->fp - record->sp > FRAME_WORDS_MAX * sizeof(uintptr_t)) {
        return true;
    }
    for (uintptr_t at = record->sp; at < record->fp; at += sizeof(uintptr_t)) {
        uintptr_t word = word_at(at);

        if ((word < record->sp || word >= record->high) && may_be_back(word)) {
            return true;
        }
    }
    return false;
}

SEEP_COLD bool
seep_frame_record_is_sound(const struct seep_frame_record *record)
{
    uintptr_t fp = record->fp;
    uintptr_t low = record->sp;
    uintptr_t near = 0; /* code of no object that this has passed */

    /* While an object goes nothing is asked of words that may be stale. */
    if (!is_record(fp, low, record->high) || seep_objects_epoch() % 2 != 0 ||
        hides_a_frame(record)) {
        return false;
    }
    for (unsigned int i = 0; i < RECORDS_MAX; i++) {
        uintptr_t back;
        enum code code;

        if (!is_record(fp, low, record->high)) {
            return false;
        }
        back = word_at(fp + sizeof(uintptr_t));
        code = code_at(back);
        if (code == CODE_RULED) {
            return true;
        }
        if (code == CODE_NONE || (back >= record->sp && back < record->high)) {
            return false;
        }
        if (code == CODE_NO_ONE) {
            if (near != 0 && !is_near(near, back)) {
                return false;
            }
            near = back;
        }
        low = fp + 2 * sizeof(uintptr_t);
        fp = word_at(fp);
    }
    /* That many records in order are no accident. */
    return true;
}

/* Steps by rule. */

/* A word was read for the frame that @walk stands in. */
static inline void note_word(struct seep_walk *walk, uint64_t slot,
                             uintptr_t value)
{
    struct seep_cached_stack *now;
    uint64_t frame = SEEP_CACHED_BEFORE + walk->count - 1;

    if (walk->cache == NULL) {
        return;
    }
    now = walk->cache->now;
    if (now->note_count < SEEP_NOTES) {
        now->notes[now->note_count].slot = slot | frame
                                                      << SEEP_NOTE_FRAME_SHIFT;
        now->notes[now->note_count].value = value;
    }
    now->note_count += now->note_count <= SEEP_NOTES;
}

static inline enum seep_cut cut_of(uint64_t rule)
{
    return (enum seep_cut)(rule >> 4 & 0xff);
}

/*
 * May the word at @address be read after all, which is not below `high`?
 *
 * Of the thread's own stack it may not; of another, where no bounds are known,
 * pages are proved readable one by one, and `high` is moved.
 */
static SEEP_COLD bool walk_widen(struct seep_walk *walk, uintptr_t address)
{
    return !seep_walk_is_own(walk, walk->sp) &&
           seep_stack_bounds_widen(&walk->high, address);
}

static inline SEEP_READS_THE_STACK enum seep_cut
read_word(struct seep_walk *walk, uintptr_t address, uintptr_t *ret_word)
{
    if (seep_unlikely(address < walk->sp)) {
        return SEEP_CUT_ORDER;
    }
    if (seep_unlikely(address % sizeof(uintptr_t) != 0) ||
        (seep_unlikely(address > walk->high - sizeof(uintptr_t)) &&
         !walk_widen(walk, address))) {
        return SEEP_CUT_BOUNDS;
    }
    *ret_word = *(const uintptr_t *)address;
    return SEEP_CUT_NONE;
}

/* Read the word at @address, which must lie in [sp, high). */
static enum seep_cut walk_word(struct seep_walk *walk, uintptr_t address,
                               uintptr_t *ret_word)
{
    enum seep_cut cut = read_word(walk, address, ret_word);

    if (cut == SEEP_CUT_NONE) {
        note_word(walk, address | SEEP_NOTE_WORD, *ret_word);
    }
    return cut;
}

SEEP_READS_THE_STACK enum seep_cut
seep_walk_register(struct seep_walk *walk, enum seep_walk_register number,
                   uintptr_t *ret_value)
{
    uintptr_t at = walk->at[number];

    if (at == SEEP_WALK_KEPT) {
        *ret_value = walk->kept[number];
        at = 0;
    } else if (at % sizeof(uintptr_t) == 0) {
        *ret_value = *(const uintptr_t *)at;
    } else {
        return SEEP_CUT_REGISTER;
    }
    note_word(walk, at | (uintptr_t)number, *ret_value);
    return SEEP_CUT_NONE;
}

void seep_walk_bar(struct seep_walk *walk)
{
    walk->barrier = walk->count;
}

static enum seep_cut find_cfa(struct seep_walk *walk, uint64_t rule,
                              uintptr_t *ret_cfa)
{
    uintptr_t offset = (uintptr_t)seep_rule_offset(rule);
    uintptr_t base = walk->sp;
    enum seep_cut cut = SEEP_CUT_NONE;

    switch (seep_rule_kind(rule)) {
    case SEEP_RULE_RSP:
        break;
    case SEEP_RULE_RBP:
    case SEEP_RULE_LOADED_RBP:
        cut = seep_walk_register(walk, SEEP_WALK_RBP, &base);
        break;
    case SEEP_RULE_RBX:
        cut = seep_walk_register(walk, SEEP_WALK_RBX, &base);
        break;
    case SEEP_RULE_CUT:
        return cut_of(rule);
    default:
        return SEEP_CUT_MALFORMED;
    }
    if (cut == SEEP_CUT_NONE && seep_rule_kind(rule) == SEEP_RULE_LOADED_RBP) {
        return walk_word(walk, base + offset, ret_cfa);
    }
    *ret_cfa = base + offset;
    return cut;
}

/* Where the caller's value of a register lies. What a rule has lost ends the
 * stack only if another needs it. */
static uintptr_t restore(struct seep_walk *walk, uint64_t rule,
                         unsigned int shift, uintptr_t cfa, uintptr_t now)
{
    uintptr_t lost = cfa - sizeof(uintptr_t) + SEEP_WALK_LOST;
    uintptr_t at = cfa;

    switch (seep_rule_place(rule, shift)) {
    case SEEP_RULE_SAME:
        return now;
    case SEEP_RULE_AT_CFA:
        break;
#if defined(__aarch64__)
    case SEEP_RULE_AT_BASE:
        at -= (uintptr_t)seep_rule_offset(rule);
        break;
#else
    case SEEP_RULE_AT_RBP:
        if (seep_walk_register(walk, SEEP_WALK_RBP, &at) != SEEP_CUT_NONE) {
            /* That it is lost here cannot be noted. */
            seep_walk_bar(walk);
            return lost;
        }
        break;
#endif
    default:
        return lost;
    }
    at += (uintptr_t)seep_rule_place_offset(rule, shift);
    if (at < walk->sp || at > cfa - sizeof(uintptr_t) ||
        at % sizeof(uintptr_t) != 0) {
        return lost;
    }
    return at;
}

/* The return address of a frame. */
static enum seep_cut find_back(struct seep_walk *walk, uint64_t rule,
                               uintptr_t cfa, uintptr_t *ret_back)
{
    intptr_t offset = -(intptr_t)sizeof(uintptr_t);

#if defined(__aarch64__)
    enum seep_rule_place place = seep_rule_place(rule, SEEP_RULE_RETURN_SHIFT);

    offset = seep_rule_place_offset(rule, SEEP_RULE_RETURN_SHIFT) -
             seep_rule_offset(rule);
    /* Only code that a signal has interrupted has it in the register still. */
    if (place == SEEP_RULE_SAME) {
        return cfa >= walk->sp && cfa <= walk->high
                   ? seep_walk_register(walk, SEEP_WALK_X30, ret_back)
                   : SEEP_CUT_ORDER;
    }
    if (place != SEEP_RULE_AT_BASE || offset > -(intptr_t)sizeof(uintptr_t)) {
        return SEEP_CUT_EXPRESSION;
    }
#else
    (void)rule;
#endif
    /* That this word lies in the frame says that the CFA ascends. */
    return read_word(walk, cfa + (uintptr_t)offset, ret_back);
}

/* To the caller of a frame with a CFA. */
static enum seep_cut step_call(struct seep_walk *walk, uint64_t rule)
{
    uintptr_t cfa = 0;
    uintptr_t back = 0;
    uintptr_t rbp;
    enum seep_cut cut = find_cfa(walk, rule, &cfa);

    if (cut == SEEP_CUT_NONE) {
        cut = find_back(walk, rule, cfa, &back);
    }
    if (seep_unlikely(cut != SEEP_CUT_NONE)) {
        return cut;
    }
    rbp =
        restore(walk, rule, SEEP_RULE_RBP_SHIFT, cfa, walk->at[SEEP_WALK_RBP]);
#if defined(__aarch64__)
    walk->at[SEEP_WALK_X30] = cfa - sizeof(uintptr_t) + SEEP_WALK_LOST;
#else
    walk->at[SEEP_WALK_RBX] =
        restore(walk, rule, SEEP_RULE_RBX_SHIFT, cfa, walk->at[SEEP_WALK_RBX]);
#endif
    walk->at[SEEP_WALK_RBP] = rbp;
    walk->sp = cfa;
    walk->pc = seep_cfi_code_address(back) - 1;
    return SEEP_CUT_NONE;
}

/* Through the frame of a signal, perhaps back from its stack to our own. */
static SEEP_NOINLINE enum seep_cut step_signal(struct seep_walk *walk)
{
    uintptr_t sp = 0;
    uintptr_t pc = 0;
    uintptr_t high = walk->high;
    uintptr_t rbp = 0;
    uintptr_t rbx = 0;
    enum seep_cut cut = walk_word(walk, walk->sp + SEEP_SIGNAL_SP, &sp);

    if (cut == SEEP_CUT_NONE) {
        cut = walk_word(walk, walk->sp + SEEP_SIGNAL_PC, &pc);
    }
    if (cut != SEEP_CUT_NONE ||
        walk_word(walk, walk->sp + SEEP_SIGNAL_FP, &rbp) != SEEP_CUT_NONE ||
        walk_word(walk, walk->sp + SEEP_SIGNAL_SECOND, &rbx) != SEEP_CUT_NONE) {
        return cut != SEEP_CUT_NONE ? cut : SEEP_CUT_BOUNDS;
    }
    if (seep_walk_is_own(walk, sp)) {
        if (seep_walk_is_own(walk, walk->sp) && sp <= walk->sp) {
            return SEEP_CUT_ORDER;
        }
        high = walk->bounds->high;
    } else if (!seep_stack_bounds_enter(&high, sp)) {
        return SEEP_CUT_BOUNDS;
    }
    walk->kept[SEEP_WALK_RBP] = rbp;
    walk->kept[SEEP_WALK_RBX] = rbx;
    walk->at[SEEP_WALK_RBP] = SEEP_WALK_KEPT;
    walk->at[SEEP_WALK_RBX] = SEEP_WALK_KEPT;
    walk->high = high;
    walk->sp = sp;
    walk->pc = pc; /* the interrupted instruction, no call: not pc - 1 */
    walk->interrupted = walk->count;
    seep_walk_bar(walk);
    return SEEP_CUT_NONE;
}

/* To the caller of code without a rule. What that rests on is not noted, so
 * it is looked at anew each time. */
static SEEP_NOINLINE enum seep_cut step_record(struct seep_walk *walk,
                                               enum seep_cut cut)
{
    struct seep_frame_record record = {
        .pc = walk->pc, .sp = walk->sp, .high = walk->high};
    uintptr_t back = 0;

#if defined(__aarch64__)
    /* There the record does not tell how far its frame goes. */
    return cut;
#endif
    if (walk->interrupted == walk->count - 1 ||
        seep_walk_register(walk, SEEP_WALK_RBP, &record.fp) != SEEP_CUT_NONE ||
        !seep_frame_record_is_sound(&record) ||
        read_word(walk, record.fp + sizeof(uintptr_t), &back) !=
            SEEP_CUT_NONE) {
        return cut;
    }
    walk->sp = record.fp + 2 * sizeof(uintptr_t);
    walk->at[SEEP_WALK_RBP] = record.fp;
    walk->at[SEEP_WALK_RBX] = record.fp + sizeof(uintptr_t) + SEEP_WALK_LOST;
    walk->pc = back - 1;
    seep_walk_bar(walk);
    return SEEP_CUT_NONE;
}

enum seep_cut seep_walk_step(struct seep_walk *walk, uint64_t rule)
{
    if (seep_unlikely(seep_rule_kind(rule) == SEEP_RULE_SIGNAL)) {
        return step_signal(walk);
    }
    if (seep_unlikely(rule == seep_rule_of_cut(SEEP_CUT_NO_OBJECT) ||
                      rule == seep_rule_of_cut(SEEP_CUT_NO_RULE))) {
        return step_record(walk, cut_of(rule));
    }
    return step_call(walk, rule);
}
