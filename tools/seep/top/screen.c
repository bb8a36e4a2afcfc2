/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ncurses. Invariant: nothing of a line goes out but whole characters that
 * were cleaned, and colours; the terminal's modes are changed by ncurses
 * alone, which puts them back.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/option.h"
#include "read/follow.h"
#include "reader/recording/open.h"
#include "run/run.h"
#include "top/top.h"

static int refuse_word(const char *word, const struct seep_refusal *refusal,
                       int error)
{
    seep_say(word,
             *refusal->reason != '\0' ? refusal->reason : strerror(-error),
             *refusal->remedy != '\0' ? refusal->remedy : NULL);
    return SEEP_EXIT_FAILED;
}

/* What means nothing is said before the screen is taken. An empty folder, and
 * a process that ends while it is watched, are no errors. */
static int check_word(const char *word, const struct seep_top_arguments *asked)
{
    struct seep_refusal refusal = {0};
    struct seep_rec_header header;
    struct seep_report *report;
    char **paths;
    int error = seep_follow_find(word, &refusal, &paths);

    if (error < 0) {
        return refuse_word(word, &refusal, error);
    }
    seep_report_list_free(paths);
    if (seep_open_is_folder(word) || seep_follow_is_pid(word) ||
        seep_harvest_read_header(word, &header)) {
        return 0;
    }
    error = seep_report_open(word, &asked->report, &refusal, &report);
    if (error < 0) {
        return refuse_word(word, &refusal, error);
    }
    seep_report_close(report);
    return 0;
}

#ifndef SEEP_HAVE_NCURSES

static int show_live(char *const *words, size_t count,
                     const struct seep_top_arguments *arguments)
{
    (void)words;
    (void)count;
    (void)arguments;
    seep_say(
        "top", "was built without ncurses",
        "`seep top --once` prints one frame; or build seep with -Dtop=enabled");
    return SEEP_EXIT_FAILED;
}

#else

/* Functions, not macros, and characters of more than one byte. */
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <sys/ioctl.h>
#include <term.h>

/* term.h has names for the terminal's own that are ours as well */
#undef columns
#undef lines

#define ESCAPE_WAIT_MS 40 /* until an escape is taken for the key */

enum pair { PAIR_BAD = 1, PAIR_WARNING, PAIR_GOOD };

static SCREEN *screen; /* NULL: closed */

static int refuse(const char *reason)
{
    seep_say("top", reason, "`seep top --once` prints one frame as plain text");
    return SEEP_EXIT_FAILED;
}

/* Asked before anything is sent to it: can the cursor be put somewhere? */
static int check_terminal(void)
{
    int error;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return refuse("needs a terminal for a live view");
    }
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK) {
        return refuse("does not know the terminal type in TERM");
    }
    bool usable = cursor_address != NULL && clear_screen != NULL;
    del_curterm(cur_term);
    return usable ? 0 : refuse("cannot draw on the terminal that TERM names");
}

/* Take the terminal of stdin and stdout. @return 0; the exit code after saying
 * why not */
static int screen_open(bool color)
{
    int code = check_terminal();

    if (code != 0) {
        return code;
    }
    use_tioctl(TRUE);
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        return refuse("could not set up the terminal");
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

static void screen_close(void)
{
    if (screen != NULL) {
        endwin();
        delscreen(screen);
        screen = NULL;
    }
}

/* Follow the terminal's size. @ret_size has it; only .columns and .lines. */
static void screen_fit(struct seep_top_size *ret_size)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        size.ws_col > 0 && is_term_resized(size.ws_row, size.ws_col)) {
        resizeterm(size.ws_row, size.ws_col);
    }
    ret_size->columns = (size_t)getmaxx(stdscr);
    ret_size->lines = (size_t)getmaxy(stdscr);
}

static attr_t attributes_of(enum seep_style style)
{
    static const struct {
        attr_t attributes;
        int pair; /* 0: none */
    } styles[] = {
        [SEEP_STYLE_PLAIN] = {A_NORMAL, 0},
        [SEEP_STYLE_STRONG] = {A_BOLD, 0},
        [SEEP_STYLE_FAINT] = {A_DIM, 0},
        [SEEP_STYLE_BAD] = {A_BOLD, PAIR_BAD},
        [SEEP_STYLE_WARNING] = {A_BOLD, PAIR_WARNING},
        [SEEP_STYLE_GOOD] = {A_BOLD, PAIR_GOOD},
    };
    bool colors = has_colors() && COLOR_PAIRS > PAIR_GOOD;

    return styles[style].attributes |
           (colors ? (attr_t)COLOR_PAIR(styles[style].pair) : 0);
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
        if (piece.is_style) {
            wattrset(stdscr, (int)attributes_of(piece.style));
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

static void screen_draw(const struct seep_top_frame *frame)
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
    static const struct {
        wint_t theirs;
        enum seep_top_key ours;
    } keys[] = {
        {KEY_UP, SEEP_TOP_KEY_UP},
        {KEY_DOWN, SEEP_TOP_KEY_DOWN},
        {KEY_LEFT, SEEP_TOP_KEY_LEFT},
        {KEY_RIGHT, SEEP_TOP_KEY_RIGHT},
        {KEY_PPAGE, SEEP_TOP_KEY_PAGE_UP},
        {KEY_NPAGE, SEEP_TOP_KEY_PAGE_DOWN},
        {KEY_HOME, SEEP_TOP_KEY_HOME},
        {KEY_END, SEEP_TOP_KEY_END},
        {KEY_BTAB, SEEP_TOP_KEY_BACK_TAB},
        {KEY_ENTER, SEEP_TOP_KEY_ENTER},
        {KEY_BACKSPACE, SEEP_TOP_KEY_BACKSPACE},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].theirs == key) {
            return (int)keys[i].ours;
        }
    }
    return 0; /* means nothing */
}

/*
 * A key that was pressed, without waiting.
 *
 * @return a character or one of enum seep_top_key; -EAGAIN: none
 */
static int screen_key(void)
{
    wint_t key;
    int kind = wget_wch(stdscr, &key);

    if (kind == KEY_CODE_YES) {
        return key_of(key);
    }
    return kind == OK && key <= 0x10ffff ? (int)key : -EAGAIN;
}

/* Take the terminal back as it was left. */
static void screen_resume(void)
{
    reset_prog_mode();
    clearok(curscr, TRUE);
    wrefresh(stdscr);
}

/*
 * The loop of the live view. Invariant: signals that end or stop the process
 * are read here, one at a time, never handled in the middle of something; so
 * the terminal is given back before any of them takes effect.
 */

struct live {
    struct seep_top_model model;
    struct seep_top_size size;
    struct seep_top_source *source;
    int signal_fd;
    int ended_by; /* a signal; 0: none */
    bool stuck;   /* the source reads on, and cannot be closed */
    bool quits;
};

static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                              SIGTSTP, SIGCONT, SIGWINCH};

static void draw(struct live *live)
{
    struct seep_top_frame frame;

    screen_fit(&live->size);
    if (seep_top_frame_make(&live->model, &live->size, &frame) == 0) {
        if (live->model.scroll > frame.scroll_most) {
            live->model.scroll = frame.scroll_most;
        }
        screen_draw(&frame);
        seep_top_frame_fini(&frame);
    }
}

static void take(struct live *live)
{
    const struct seep_top_shot *shot = seep_top_source_take(live->source);

    if (shot != NULL) {
        live->size.notice = *shot->notice == '\0' ? NULL : shot->notice;
        live->size.waiting = false;
        seep_top_model_take(&live->model, shot->reports, shot->count);
    }
}

static void press(struct live *live, int key)
{
    double interval_s = live->model.interval_s;
    bool paused = live->model.paused;
    enum seep_top_answer answer = seep_top_model_press(&live->model, key);

    live->quits = live->quits || answer == SEEP_TOP_QUIT;
    if (answer == SEEP_TOP_READ || interval_s < live->model.interval_s ||
        interval_s > live->model.interval_s || paused != live->model.paused) {
        seep_top_source_set(live->source, live->model.interval_s,
                            live->model.paused, answer == SEEP_TOP_READ);
    }
}

/* What the signal does to any other program, now that the terminal is as it
 * was: ncurses may have put a handler of its own there. */
static void suffer(int number)
{
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
}

static void attend_signal(struct live *live)
{
    struct signalfd_siginfo info;

    if (read(live->signal_fd, &info, sizeof(info)) != sizeof(info)) {
        return;
    }
    switch ((int)info.ssi_signo) {
    case SIGTSTP:
        endwin();
        suffer(SIGTSTP); /* until somebody continues us */
        screen_resume();
        break;
    case SIGCONT:
        screen_resume();
        break;
    case SIGWINCH:
        break; /* it is drawn anew in any case */
    default:
        live->ended_by = (int)info.ssi_signo;
    }
}

/* Until something happens; then everything that has happened. */
static void attend(struct live *live)
{
    struct pollfd fds[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = live->signal_fd, .events = POLLIN},
        {.fd = seep_top_source_fd(live->source), .events = POLLIN},
    };
    int key;

    if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0) {
        live->quits = errno != EINTR;
        return;
    }
    if (fds[1].revents != 0) {
        attend_signal(live);
    }
    if (fds[2].revents != 0) {
        take(live);
    }
    if ((fds[0].revents & POLLIN) != 0) {
        while (!live->quits && (key = screen_key()) >= 0) {
            press(live, key);
        }
    }
    if ((fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        live->ended_by = SIGHUP; /* the terminal is gone */
    }
}

static int run(struct live *live, bool color)
{
    int code = screen_open(color);

    if (code != 0) {
        return code;
    }
    draw(live);
    while (!live->quits && live->ended_by == 0) {
        attend(live);
        if (!live->quits && live->ended_by == 0) {
            draw(live);
        }
    }
    screen_close();
    return SEEP_EXIT_FINE;
}

static int open_signals(sigset_t *ret_before)
{
    struct sigaction action;
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (sigaction(signals[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN) { /* as under nohup: it stays so */
            sigaddset(&set, signals[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int watch(struct live *live, char *const *words, size_t count,
                 const struct seep_top_arguments *arguments, bool color)
{
    int error =
        seep_top_source_open(words, count, &arguments->report, arguments->asks,
                             arguments->interval_s, &live->source);
    if (error < 0) {
        seep_say("top", strerror(-error), NULL);
        return SEEP_EXIT_FAILED;
    }
    int code = run(live, color);
    seep_top_model_fini(&live->model);
    live->stuck = seep_top_source_close(live->source) < 0;
    return code;
}

static int show_live(char *const *words, size_t count,
                     const struct seep_top_arguments *arguments)
{
    struct live live = {.size = {.target = words[0], .waiting = true}};
    struct seep_page page;
    sigset_t before;
    int code = SEEP_EXIT_FAILED;

    seep_page_init(&page, stdout, arguments->color);
    seep_top_model_init(&live.model, arguments->interval_s);
    live.model.sort = arguments->sort;
    snprintf(live.model.filter, sizeof(live.model.filter), "%s",
             arguments->filter);
    live.signal_fd = open_signals(&before);
    if (live.signal_fd < 0) {
        seep_say("top", strerror(errno), NULL);
    } else {
        code = watch(&live, words, count, arguments, page.color);
        close(live.signal_fd);
    }
    if (live.ended_by != 0) {
        suffer(live.ended_by);
    }
    if (live.stuck) {
        fflush(stdout);
        _exit(code);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

#endif

int seep_top_live(char *const *words, size_t count,
                  const struct seep_top_arguments *arguments)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = check_word(words[i], arguments);
    }
    return code != 0 ? code : show_live(words, count, arguments);
}
