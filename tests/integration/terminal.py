# SPDX-License-Identifier: LGPL-2.1-or-later
"""A command in a terminal: what is on the screen (tmux), and what it does to
the terminal itself (a pty).

Invariant: whatever is started here is ended by whoever started it, and waits
for nothing longer than its limit.
"""
import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time

LIMIT_S = 20
TMUX = shutil.which("tmux")


def wait_until(found, what, limit_s=LIMIT_S):
    """Ask again and again; @found is called, and its answer given back."""
    end = time.monotonic() + limit_s
    while True:
        answer = found()
        if answer:
            return answer
        assert time.monotonic() < end, what()
        time.sleep(0.05)


class Screen:
    """A command on a screen of its own; its status is shown after its end."""

    def __init__(self, folder, columns, lines, words, env):
        self._socket = str(folder / "tmux")
        command = shlex.join(map(str, words)) + "; echo status $?; sleep 60"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns),
                   "-y", str(lines), "sh", "-c", command, env=env)

    def _tmux(self, *words, env=None):
        done = subprocess.run([TMUX, "-S", self._socket, *words], env=env,
                              capture_output=True, timeout=LIMIT_S,
                              check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def press(self, *keys):
        """Names of tmux: Enter, Down, q."""
        self._tmux("send-keys", *keys)

    def resize(self, columns, lines):
        """Give the window another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def lines(self):
        """What is on the screen now."""
        return self._tmux("capture-pane", "-p").split("\n")

    def with_colors(self):
        """The same with the escapes of its colours."""
        return self._tmux("capture-pane", "-p", "-e")

    def text(self):
        """The same in one."""
        return "\n".join(self.lines())

    def wait(self, *parts):
        """Until all of @parts are on it; gives its lines."""
        wait_until(lambda: all(part in self.text() for part in parts),
                   lambda: f"no {parts} on\n{self.text()}")
        return self.lines()

    def wait_for(self, holds):
        """Until it is as it should be."""
        wait_until(holds, lambda: f"not so on\n{self.text()}")

    def wait_without(self, part):
        """Until @part is no longer on it."""
        wait_until(lambda: part not in self.text(),
                   lambda: f"still {part} on\n{self.text()}")
        return self.lines()

    def close(self):
        """End whatever runs there."""
        subprocess.run([TMUX, "-S", self._socket, "kill-server"],
                       capture_output=True, timeout=LIMIT_S, check=False)


def take_terminal():
    """In the child: the terminal is its own, and ^C and ^\\ end it, also where
    a shell in the background started the tests with both ignored."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """A command that has a pty for its own, and all bytes that it wrote."""

    def __init__(self, words, env, columns=80, lines=24):
        self.master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(self._slave)
        self.output = b""
        self.process = subprocess.Popen(
            list(map(str, words)), stdin=self._slave, stdout=self._slave,
            stderr=self._slave, env=env, start_new_session=True,
            preexec_fn=take_terminal)

    def modes(self):
        """What stty -a would tell."""
        return termios.tcgetattr(self._slave)

    def read(self, seconds=0.05):
        """Take what was written meanwhile."""
        while select.select([self.master], [], [], seconds)[0]:
            try:
                got = os.read(self.master, 65536)
            except OSError:
                return self.output
            self.output += got
            seconds = 0
        return self.output

    def wait(self, part, since=0):
        """Until @part was written, after byte @since."""
        wait_until(lambda: part in self.read()[since:],
                   lambda: f"no {part} in {self.output[-2000:]}")

    def send(self, data):
        """Type it."""
        os.write(self.master, data)

    def end(self):
        """Wait for it; @return its status, below 0 if of a signal."""
        def ended():
            self.read(0.01)
            return self.process.poll() is not None
        wait_until(ended, lambda: f"it runs on, {self.output[-500:]}")
        self.read()
        return self.process.returncode

    def hang_up(self):
        """Take the terminal away."""
        os.close(self.master)
        os.close(self._slave)
        self.master = -1

    def close(self):
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(LIMIT_S)
        if self.master >= 0:
            self.hang_up()
