/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop of the live view. Invariant: signals that end or stop the process
 * are read here, one at a time, never handled in the middle of something; so
 * the terminal is given back before any of them takes effect.
 */
#include "top_live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "follow_find.h"
#include "harvest.h"
#include "say.h"
#include "top_frame.h"
#include "top_screen.h"
#include "top_source.h"

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

static int refuse(const char *word, const struct seep_refusal *refusal,
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
        return refuse(word, &refusal, error);
    }
    seep_report_list_free(paths);
    if (seep_follow_is_folder(word) || seep_follow_is_pid(word) ||
        seep_harvest_read_header(word, &header)) {
        return 0;
    }
    error = seep_report_open(word, &asked->report, &refusal, &report);
    if (error < 0) {
        return refuse(word, &refusal, error);
    }
    seep_report_close(report);
    return 0;
}

static void draw(struct live *live)
{
    struct seep_top_frame frame;

    seep_top_screen_fit(&live->size);
    if (seep_top_frame_make(&live->model, &live->size, &frame) == 0) {
        if (live->model.scroll > frame.scroll_most) {
            live->model.scroll = frame.scroll_most;
        }
        seep_top_screen_draw(&frame);
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

/* As the terminal does it to any other program: stop, with the terminal as it
 * was, until somebody continues us. */
static void stop(void)
{
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    seep_top_screen_suspend();
    signal(SIGTSTP, SIG_DFL); /* ncurses has put a handler of its own there */
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    seep_top_screen_resume();
}

static void attend_signal(struct live *live)
{
    struct signalfd_siginfo info;

    if (read(live->signal_fd, &info, sizeof(info)) != sizeof(info)) {
        return;
    }
    switch ((int)info.ssi_signo) {
    case SIGTSTP:
        stop();
        break;
    case SIGCONT:
        seep_top_screen_resume();
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
        while (!live->quits && (key = seep_top_screen_key()) >= 0) {
            press(live, key);
        }
    }
    if ((fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
        live->ended_by = SIGHUP; /* the terminal is gone */
    }
}

static int run(struct live *live, bool color)
{
    struct seep_refusal refusal = {0};
    int error = seep_top_screen_open(color, &refusal);

    if (error < 0) {
        return refuse("top", &refusal, error);
    }
    draw(live);
    while (!live->quits && live->ended_by == 0) {
        attend(live);
        if (!live->quits && live->ended_by == 0) {
            draw(live);
        }
    }
    seep_top_screen_close();
    return SEEP_EXIT_FINE;
}

/* Die as of it, now that all is as it was. */
static void end_by(int number)
{
    sigset_t only;

    signal(number, SIG_DFL);
    raise(number);
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
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
    int error = seep_top_source_open(words, count, &arguments->report,
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

int seep_top_live(char *const *words, size_t count,
                  const struct seep_top_arguments *arguments)
{
    struct live live = {.size = {.target = words[0], .waiting = true}};
    struct seep_page page;
    sigset_t before;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = check_word(words[i], arguments);
    }
    if (code != 0) {
        return code;
    }
    seep_page_init(&page, stdout, arguments->color);
    seep_top_model_init(&live.model, arguments->interval_s);
    live.model.sort = arguments->sort;
    snprintf(live.model.filter, sizeof(live.model.filter), "%s",
             arguments->filter);
    live.signal_fd = open_signals(&before);
    if (live.signal_fd < 0) {
        seep_say("top", strerror(errno), NULL);
        code = SEEP_EXIT_FAILED;
    } else {
        code = watch(&live, words, count, arguments, page.color);
        close(live.signal_fd);
    }
    if (live.ended_by != 0) {
        end_by(live.ended_by);
    }
    if (live.stuck) {
        fflush(stdout);
        _exit(code);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
