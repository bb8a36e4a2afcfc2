# SPDX-License-Identifier: LGPL-2.1-or-later
"""A circuit breaker that listens to seep-probe, and who asks that.

    closed     requests go through; FAILURES in a row, a failed canary or the
               probe's word open it
    open       requests are refused at once; after a pause the probe's word
               makes it half-open
    half-open  one request goes through, the trial: if it succeeds it is
               closed, else open again

Invariant: nobody waits in here. The probe is a process of its own, started by
a thread of its own; a request reads what that has last heard.
"""
import json
import subprocess
import threading
import time

CLOSED, OPEN, HALF_OPEN = 'closed', 'open', 'half-open'
FAILURES = 3
PAUSE_S = 1.0
PROBE_EVERY_S = 0.2
DEADLINE_S = 0.3
# What is in flight when it opens is given back at once: a limit that is the
# same both ways would close it on that.
MORE_TO_CLOSE = 1.5
READY = 0
NOT_READY = (3, 5, 6)  # too little left, grows too fast, stale


class Breaker:
    def __init__(self, clock=time.monotonic):
        self.clock = clock
        self.lock = threading.Lock()
        self.state = OPEN  # until somebody has said that we are well
        self.reason = 'starting'
        self.since = clock() - PAUSE_S
        self.failures = 0
        self.trial = None
        self.history = [OPEN]

    def change(self, state, reason):
        if state != self.state:
            self.history.append(state)
        self.state, self.reason = state, reason
        self.since = self.clock()
        self.failures, self.trial = 0, None

    def tell(self, is_ready, reason):
        """The probe's word, or the canary's."""
        with self.lock:
            if not is_ready:
                self.change(OPEN, reason)
            elif self.state == CLOSED:
                self.reason = reason
            elif self.state == OPEN and self.clock() - self.since >= PAUSE_S:
                self.change(HALF_OPEN, reason)

    def enter(self):
        """A ticket, or None: refused."""
        with self.lock:
            if self.state == OPEN or self.trial is not None:
                return None
            ticket = object()
            if self.state == HALF_OPEN:
                self.trial = ticket
            return ticket

    def leave(self, ticket, is_well, reason=''):
        """How it went with what entered by that ticket."""
        with self.lock:
            if ticket is self.trial:
                self.change(CLOSED if is_well else OPEN,
                            'the trial ' + ('went well' if is_well
                                            else 'failed: ' + reason))
            elif self.state == CLOSED:
                self.failures = 0 if is_well else self.failures + 1
                if self.failures >= FAILURES:
                    self.change(OPEN, reason)

    def retry_after_s(self):
        return max(1, round(self.since + PAUSE_S - self.clock()))


class Prober(threading.Thread):
    """Asks seep-probe again and again, and tells the breaker."""

    def __init__(self, breaker, canary, probe, gpu_free_mib, recordings):
        super().__init__(daemon=True)
        self.breaker = breaker
        self.canary = canary
        self.gpu_free_mib = gpu_free_mib
        self.command = [probe, '--json', '--strict', '--deadline',
                        f'{DEADLINE_S * 1000:.0f}ms', recordings]

    def limit(self):
        more = 1 if self.breaker.state == CLOSED else MORE_TO_CLOSE
        return f'{self.gpu_free_mib * more:.0f}MiB'

    def ask(self):
        """(is it ready, reason), or None: it cannot tell. The probe keeps
        its deadline; ours is for a machine on which nothing starts."""
        try:
            done = subprocess.run([*self.command, '--gpu-free', self.limit()],
                                  stdout=subprocess.PIPE, check=False,
                                  stderr=subprocess.DEVNULL,
                                  timeout=4 * DEADLINE_S)
            reason = json.loads(done.stdout)['reason']
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return None
        if done.returncode in (READY, *NOT_READY):
            return done.returncode == READY, reason
        return None

    def run(self):
        while True:
            # A probe that cannot tell must not be what stops the service.
            self.breaker.tell(*(self.ask() or self.canary()))
            time.sleep(PROBE_EVERY_S)
