/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ways in which a program calls exit(), with handlers that allocate, free
 * and call it again.
 *
 *     exit_cases return|main|twice|signal|thread|fork|vfork|quick
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 100

static void *kept[BLOCKS];
static int again;

static void free_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        free(kept[i]);
    }
    puts("freed");
    if (again) {
        exit(9);
    }
}

static void allocate(void)
{
    void *volatile block = malloc(5000000);

    free(block);
    puts("allocated");
}

static void handle(int signal_number)
{
    (void)signal_number;
    exit(5);
}

static void *leave(void *unused)
{
    (void)unused;
    exit(6);
}

static void wait_for(pid_t child)
{
    int status = 0;

    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
}

static void leave_as(const char *how)
{
    pthread_t thread;

    if (strcmp(how, "main") == 0 || strcmp(how, "twice") == 0) {
        exit(4);
    } else if (strcmp(how, "signal") == 0) {
        signal(SIGTERM, handle);
        raise(SIGTERM);
    } else if (strcmp(how, "thread") == 0) {
        pthread_create(&thread, NULL, leave, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "fork") == 0) {
        pid_t child = fork();

        if (child == 0) {
            exit(7);
        }
        wait_for(child);
    } else if (strcmp(how, "vfork") == 0) {
        pid_t child = vfork();

        if (child == 0) {
            execl("/bin/false", "false", (char *)NULL);
            _exit(8);
        }
        wait_for(child);
    } else if (strcmp(how, "quick") == 0) {
        quick_exit(10);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";

    for (int i = 0; i < BLOCKS; i++) {
        kept[i] = malloc(1000);
    }
    again = strcmp(how, "twice") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(free_all);
    atexit(allocate);
    leave_as(how);
    return 3;
}
