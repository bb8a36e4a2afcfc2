/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts stubs as Triton's Python backend does (its stub_launcher.cc), and
 * does nothing else of it: a trial run without arguments by system(), then
 * bash, which sources an environment and execs env, which execs the stub. Each
 * model has one stub that completes its configuration and one an instance.
 *
 *     tritonserver STUB BACKEND MODEL.PY ACTIVATE SECONDS
 *
 * Invariant: stubs end by SIGKILL, with no chance to write anything.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_BYTES 4096

static void be_child(char **argv, const char *region, const char *name)
{
    char command[COMMAND_BYTES];
    int status;

    snprintf(command, sizeof(command), "%s> /dev/null 2>&1", argv[1]);
    status = system(command);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) {
        _exit(90);
    }
    snprintf(command, sizeof(command),
             "source %s && exec env LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH "
             "%s %s %s 1048576 1048576 %d %s 192 %s",
             argv[4], argv[2], argv[1], argv[3], region, (int)getppid(),
             argv[2], name);
    execlp("bash", "bash", "-c", command, (char *)NULL);
    _exit(91);
}

static int play(char **argv, const char *region, const char *name,
                unsigned seconds)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        be_child(argv, region, name);
    }
    if (child < 0) {
        return 92;
    }
    sleep(seconds);
    kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child) {
        return 93;
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
               ? 0
               : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    int status;

    if (argc != 6) {
        return 2;
    }
    status = play(argv, "complete", "sentiment", 1);
    return status != 0
               ? status
               : play(argv, "serve", "sentiment_0_0", (unsigned)atoi(argv[5]));
}
