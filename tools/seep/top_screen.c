/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ncurses. Invariant: nothing of a line goes out but whole characters that
 * were cleaned, and colours; the terminal's modes are changed by ncurses
 * alone, which puts them back.
 */
#include "top_screen.h"

#include <errno.h>
#include <stdio.h>

#ifndef SEEP_HAVE_NCURSES

int seep_top_screen_open(bool color, struct seep_refusal *ret_refusal)
{
    (void)color;
    *ret_refusal = (struct seep_refusal){
        -ENOSYS, "was built without ncurses",
        "`seep top --once` prints one frame; or build seep with -Dtop=enabled"};
    return -ENOSYS;
}

void seep_top_screen_close(void)
{
}
void seep_top_screen_fit(struct seep_top_size *ret_size)
{
    ret_size->columns = 80;
    ret_size->lines = 24;
}
void seep_top_screen_draw(const struct seep_top_frame *frame)
{
    (void)frame;
}
int seep_top_screen_key(void)
{
    return -EAGAIN;
}
void seep_top_screen_suspend(void)
{
}
void seep_top_screen_resume(void)
{
}

#else

/* Functions, not macros, and characters of more than one byte. */
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

/* term.h has names for the terminal's own that are ours as well */
#undef columns
#undef lines

#define ESCAPE_WAIT_MS 40 /* until an escape is taken for the key */

enum pair { PAIR_BAD = 1, PAIR_WARNING, PAIR_GOOD };

static SCREEN *screen; /* NULL: closed */

static int refuse(struct seep_refusal *ret_refusal, const char *reason)
{
    ret_refusal->error = -ENOTTY;
    snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s", reason);
    snprintf(ret_refusal->remedy, sizeof(ret_refusal->remedy),
             "`seep top --once` prints one frame as plain text");
    return -ENOTTY;
}

/* Asked before anything is sent to it: can the cursor be put somewhere? */
static int check_terminal(struct seep_refusal *ret_refusal)
{
    int error;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return refuse(ret_refusal, "needs a terminal for a live view");
    }
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK) {
        return refuse(ret_refusal, "knows no terminal named as TERM says");
    }
    bool usable = cursor_address != NULL && clear_screen != NULL;
    del_curterm(cur_term);
    return usable ? 0
                  : refuse(ret_refusal,
                           "cannot draw on the terminal that TERM names");
}

int seep_top_screen_open(bool color, struct seep_refusal *ret_refusal)
{
    int error = check_terminal(ret_refusal);

    if (error < 0) {
        return error;
    }
    use_tioctl(TRUE);
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        return refuse(ret_refusal, "could not set up the terminal");
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_WAIT_MS);
    curs_set(0);
    if (color && has_colors() && start_color() == OK) {
        short behind = use_default_colors() == OK ? -1 : COLOR_BLACK;
        init_pair(PAIR_BAD, COLOR_RED, behind);
        init_pair(PAIR_WARNING, COLOR_YELLOW, behind);
        init_pair(PAIR_GOOD, COLOR_GREEN, behind);
    }
    return 0;
}

void seep_top_screen_close(void)
{
    if (screen != NULL) {
        endwin();
        delscreen(screen);
        screen = NULL;
    }
}

void seep_top_screen_fit(struct seep_top_size *ret_size)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        size.ws_col > 0 && is_term_resized(size.ws_row, size.ws_col)) {
        resizeterm(size.ws_row, size.ws_col);
    }
    ret_size->columns = (size_t)getmaxx(stdscr);
    ret_size->lines = (size_t)getmaxy(stdscr);
}

static attr_t attributes_of(enum seep_ink ink)
{
    bool colors = has_colors() && COLOR_PAIRS > PAIR_GOOD;

    switch (ink) {
    case SEEP_INK_STRONG:
        return A_BOLD;
    case SEEP_INK_FAINT:
        return A_DIM;
    case SEEP_INK_BAD:
        return A_BOLD | (colors ? (attr_t)COLOR_PAIR(PAIR_BAD) : 0);
    case SEEP_INK_WARNING:
        return A_BOLD | (colors ? (attr_t)COLOR_PAIR(PAIR_WARNING) : 0);
    case SEEP_INK_GOOD:
        return A_BOLD | (colors ? (attr_t)COLOR_PAIR(PAIR_GOOD) : 0);
    default:
        return A_NORMAL;
    }
}

static void draw_line(int row, const char *line)
{
    wmove(stdscr, row, 0);
    wattrset(stdscr, A_NORMAL);
    while (*line != '\0') {
        struct seep_top_piece piece = seep_top_frame_piece(line);

        if (piece.bytes == 0) {
            break;
        }
        if (piece.is_ink) {
            wattrset(stdscr, (int)attributes_of(piece.ink));
        } else {
            waddnstr(stdscr, line, (int)piece.bytes);
        }
        line += piece.bytes;
    }
    wattrset(stdscr, A_NORMAL);
}

static void mark_line(size_t row)
{
    if (row < (size_t)getmaxy(stdscr)) {
        mvwchgat(stdscr, (int)row, 0, -1, A_REVERSE, 0, NULL);
    }
}

void seep_top_screen_draw(const struct seep_top_frame *frame)
{
    werase(stdscr);
    for (size_t i = 0; i < frame->count && i < (size_t)getmaxy(stdscr); i++) {
        draw_line((int)i, frame->lines[i]);
    }
    mark_line(frame->selected);
    mark_line(frame->process);
    wrefresh(stdscr);
}

static int key_of(wint_t key)
{
    switch (key) {
    case KEY_UP:
        return SEEP_TOP_KEY_UP;
    case KEY_DOWN:
        return SEEP_TOP_KEY_DOWN;
    case KEY_LEFT:
        return SEEP_TOP_KEY_LEFT;
    case KEY_RIGHT:
        return SEEP_TOP_KEY_RIGHT;
    case KEY_PPAGE:
        return SEEP_TOP_KEY_PAGE_UP;
    case KEY_NPAGE:
        return SEEP_TOP_KEY_PAGE_DOWN;
    case KEY_HOME:
        return SEEP_TOP_KEY_HOME;
    case KEY_END:
        return SEEP_TOP_KEY_END;
    case KEY_BTAB:
        return SEEP_TOP_KEY_BACK_TAB;
    case KEY_ENTER:
        return SEEP_TOP_KEY_ENTER;
    case KEY_BACKSPACE:
        return SEEP_TOP_KEY_BACKSPACE;
    default:
        return 0; /* means nothing */
    }
}

int seep_top_screen_key(void)
{
    wint_t key;
    int kind = wget_wch(stdscr, &key);

    if (kind == KEY_CODE_YES) {
        return key_of(key);
    }
    return kind == OK && key <= 0x10ffff ? (int)key : -EAGAIN;
}

void seep_top_screen_suspend(void)
{
    endwin();
}

void seep_top_screen_resume(void)
{
    reset_prog_mode();
    clearok(curscr, TRUE);
    wrefresh(stdscr);
}

#endif
