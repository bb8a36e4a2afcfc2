# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cohort-flow test a second time, to hold the reader's against.

Written from the definition, in plain Python and plain words, slow and short;
the names are those of growth_replay's rows. W is the bytes born in each of
ten windows of equal work and still live, N their blocks, V the sum of their
variances, S the sum of their squared weights. Windows count from 0; "mature"
are those before 8, the last two are guards.

Margins says whether some decision was a matter of the last digits: two
implementations may then differ, and both be right.
"""
import math
import statistics

WINDOWS, SETTLE, MATURE, BLOCKS = 10, 2, 8, 16
STUDENT_975 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571}
EPSILON = 1e-9


class Margins:
    """Comparisons that are remembered if they were close."""

    def __init__(self):
        self.is_close = False

    def look(self, value, limit):
        off = abs(value - limit)
        if 0 < off <= EPSILON * max(abs(value), abs(limit)):
            self.is_close = True

    def least(self, value, limit):
        """value >= limit"""
        self.look(value, limit)
        return value >= limit

    def above(self, value, limit):
        """value > limit"""
        self.look(value, limit)
        return value > limit


# Work.

class Clock:
    """Share of the work done by a tick of the run.

    Work is units told, if at least half of the moments told of some; else
    bytes allocated, no bucket counting for more than three times the median
    of those that are not empty, or half more than nine tenths of them; else
    time.
    """

    def __init__(self, told):
        self.end = told["end_tick"]
        count = len(told.get("units") or told.get("bytes") or [])
        self.width = 16
        while self.end // self.width >= 128:
            self.width *= 2
        count = self.end // self.width + 1
        self.edges = [min(i * self.width, self.end) for i in range(count + 1)]
        units, sizes = told.get("units"), told.get("bytes")
        if units and 2 * sum(unit > 0 for unit in units) >= len(units):
            self.kind, work = "units", units
        elif sizes and sum(sizes) > 0:
            some = sorted(size for size in sizes if size > 0)
            most = max(3 * statistics.median(some),
                       1.5 * some[9 * (len(some) - 1) // 10])
            self.kind, work = "bytes", [min(size, most) for size in sizes]
        else:
            self.kind = "wall"
            work = [after - before for before, after in zip(self.edges,
                                                           self.edges[1:])]
        self.done = [0]
        for one in work:
            self.done.append(self.done[-1] + one)
        self.done = [one / self.done[-1] for one in self.done]

    def at(self, tick):
        if tick >= self.end:
            return 1.0
        i = int(tick // self.width)
        start, end = self.edges[i], self.edges[i + 1]
        return self.done[i] + ((self.done[i + 1] - self.done[i])
                               * (tick - start) / (end - start))

    def is_rising(self):
        """In two tenths of time or more of the last five, 10 % more work
        was done than in any before."""
        done = [self.at(self.end * k / WINDOWS) for k in range(WINDOWS + 1)]
        rates = [after - before for before, after in zip(done, done[1:])]
        return sum(rates[k] > 1.1 * max(rates[:k])
                   for k in range(WINDOWS // 2, WINDOWS)) >= 2


# Order statistics.

def lower_quartile(values):
    return sorted(values)[(len(values) - 1) // 4]


def interpolate(x, ends, values):
    """Linear between points; the first and last value outside of them."""
    if x >= ends[-1]:
        return values[-1]
    if x < ends[0]:
        return values[0]
    low = 0
    high = len(ends)
    while low < high:  # the first end beyond x
        middle = (low + high) // 2
        if ends[middle] <= x:
            low = middle + 1
        else:
            high = middle
    start = ends[low - 1]
    if start == x:
        return values[low - 1]
    slope = (values[low] - values[low - 1]) / (ends[low] - start)
    return slope * (x - start) + values[low - 1]


def orders(count):
    """How many of the orders of @count values have 0, 1, ... inversions."""
    ways = [1]
    for size in range(2, count + 1):
        ways = [sum(ways[max(0, i - size + 1):i + 1])
                for i in range(len(ways) + size - 1)]
    return ways


BLOCK_ORDERS = orders(BLOCKS)


def mann_kendall(values):
    """P(S' >= S) without a trend, S = sum over i < j of sign(x_j - x_i).

    Of all orders of the values those with at most (pairs - S) / 2 inversions.
    With ties S may have the wrong parity; the next lower is conservative.
    """
    pairs = len(values) * (len(values) - 1) // 2
    score = ties = 0
    for j, after in enumerate(values):
        for before in values[:j]:
            score += (after > before) - (after < before)
            ties += after == before
    if ties == pairs:
        return 1.0
    score -= (pairs - score) % 2
    if score < -pairs:
        return 1.0
    return (sum(BLOCK_ORDERS[:(pairs - score) // 2 + 1])
            / math.factorial(len(values)))


def few_deaths(died, total):
    """P(Bin(total, 1/2) <= died); above 1000 by the normal distribution."""
    if total > 1000:
        return 0.5 * math.erfc((total / 2 - died) / math.sqrt(total / 4)
                               / math.sqrt(2))
    return min(1.0, sum(math.comb(total, i) for i in range(died + 1))
               / 2 ** total)


# The test.

def window_of_end(end):
    return min(int((end - EPSILON) * WINDOWS), WINDOWS - 1)


def in_windows(told, name):
    found = [[] for _ in range(WINDOWS)]
    for end, value in zip(told["bucket_end"], told[name]):
        found[window_of_end(end)].append(value)
    return found


def troughs(told):
    """Lower quartile of the lows of each window; none: the live bytes."""
    return [lower_quartile(lows) if lows else
            interpolate((k + 0.5) / WINDOWS, told["bucket_end"], told["live"])
            for k, lows in enumerate(in_windows(told, "low"))]


def onset_of(W, margins):
    """First window of the unbroken chain up to the guards; 9: no chain.

    A window is full that holds at least a fifth of the median of the last
    three mature ones; one hole between two full ones is forgiven.
    """
    late = sorted(W[5:8])[1]
    if late <= 0:
        return 9
    full = [margins.least(bytes_, 0.2 * late) for bytes_ in W]
    filled = [full[k] or (1 <= k < MATURE and full[k - 1] and full[k + 1])
              for k in range(WINDOWS)]
    onset = MATURE
    while onset > SETTLE and filled[onset - 1]:
        onset -= 1
    return onset


def exponent(W, S, first, origin):
    """b of a rate ~ (k + 1/2 - origin)^b over windows first to 7, and its
    standard error: the maximum of Poisson's likelihood, by 12 Newton steps.

    Score: mean of x under W minus its mean under exp(b x); information: the
    variance of x under exp(b x) times the blocks that W is worth,
    (sum W)^2 / sum S.
    """
    x = [math.log(k + 0.5 - origin) for k in range(first, MATURE)]
    w = W[first:MATURE]
    if sum(w) <= 0:
        return 0.0, 9.0
    seen = sum(a * b for a, b in zip(w, x)) / sum(w)
    middle = sum(x) / len(x)
    b = 0.0
    for _ in range(12):
        share = [math.exp(b * (one - middle)) for one in x]
        mean = sum(a * c for a, c in zip(share, x)) / sum(share)
        variance = sum(a * (c - mean) ** 2
                       for a, c in zip(share, x)) / sum(share)
        b += max(-1.0, min(1.0, (seen - mean) / max(variance, 1e-9)))
        b = max(-6.0, min(6.0, b))
    blocks = sum(w) ** 2 / max(sum(S[first:MATURE]), 1e-300)
    return b, 1 / math.sqrt(max(blocks * variance, 1e-9))


class Trial:
    """One site while it is judged; .row is what comes out."""

    def __init__(self, told):
        self.told = told
        self.margins = Margins()
        self.W, self.N, self.V, self.S = ([0.0] * WINDOWS for _ in range(4))
        for birth, weight, variance in zip(told["birth"], told["weight"],
                                           told["variance"]):
            k = min(int(max(0.0, min(1.0, birth)) * WINDOWS), WINDOWS - 1)
            self.W[k] += weight
            self.N[k] += 1
            self.V[k] += variance
            self.S[k] += weight * weight
        self.Q = troughs(told)
        self.onset = onset_of(self.W, self.margins)
        self.detail = {"low_bytes": self.Q}
        self.row = {
            "class": None, "rate": 0.0, "low": 0.0, "high": 0.0,
            "confidence": 0.0, "p": 1.0, "zs": 0.0, "onset": self.onset,
            "growing_block": False, "tested": False, "live_grows": False,
            "mature_count": 0.0, "effective_count": 0.0,
            "window_bytes": self.W,
            "window_count": self.N, "detail": self.detail,
        }

    def unchained(self):
        """No chain: what are the live bytes made of?"""
        margins = self.margins
        mature = self.W[:MATURE]
        live = self.told["live"][-1]
        if live > 0 and margins.above(sum(mature), 0.5 * live):
            two = sum(sorted(mature)[-2:])
            return "step" if margins.least(two, 0.8 * sum(mature)) \
                else "plateau"
        if max(self.Q) > 0 and margins.least(self.swing(), 0.5):
            return "sawtooth"
        return "steady"

    def swing(self):
        """Median over windows of (peak - trough) / peak."""
        swings = []
        for live, low in zip(in_windows(self.told, "live"),
                             in_windows(self.told, "low")):
            peak = max(live) if live else 0
            trough = min(low) if low else 0
            swings.append((peak - trough) / max(peak, 1e-9))
        return statistics.median(swings)

    def measure_rate(self):
        """lam = mean of W over the n mature windows from the onset on;
        half its interval is the wider of 1.96 sqrt(sum S) / n (compound
        Poisson) and of Student's on the scatter of the windows."""
        mature = slice(self.onset, MATURE)
        W = self.W[mature]
        self.n = n = len(W)
        self.lam = lam = sum(W) / n
        squares = sum(self.S[mature])
        scatter = sum((one - lam) ** 2 for one in W)
        count = sum(self.N[mature])
        dispersion = scatter / (n - 1) / max(squares / n, 1e-300)
        poisson = math.sqrt(squares) / n
        between = math.sqrt(scatter / (n - 1) / n)
        half = max(1.96 * poisson, STUDENT_975[n - 1] * between)
        self.exact = not self.margins.above(sum(self.V[mature]),
                                            0.05 * squares)
        self.row.update(
            rate=WINDOWS * lam, low=WINDOWS * (lam - half),
            high=WINDOWS * (lam + half), mature_count=count,
            effective_count=count / max(1.0, dispersion),
            tested=count >= (5 if self.exact else 12))
        self.detail.update(mature_windows=n, dispersion=dispersion,
                           poisson_error=poisson, between_error=between)

    def measure_shape(self):
        """Does the rate fall with age, as a cache's does (-1 is 1 / age)?

        A leak's exponent may be above -1/2 within one standard error; window
        1 is left out only if its warm-up is small, or the rest precise.
        """
        margins, W, S = self.margins, self.W, self.S
        floor = 0.3 if self.exact and self.row["mature_count"] < 30 else 1.0
        factor = min(math.sqrt(max(floor, self.detail["dispersion"])), 2.0)
        if self.onset <= 2:
            b1, e1 = exponent(W, S, 1, 0.0)
            b2, e2 = exponent(W, S, 2, 0.0)
        else:
            b1, e1 = b2, e2 = exponent(W, S, self.onset, self.onset - 0.25)
        e1, e2 = e1 * factor, e2 * factor
        later = margins.above(b2, -0.3) and (
            not margins.above(W[1], 2.5 * self.lam)
            or not margins.above(e2, 0.2))
        self.shape = margins.least(b1 - e1, -0.5) or (
            later and margins.least(b2 - e2, -0.5))
        self.row["zs"] = max((b1 + 0.5) / e1, (b2 + 0.5) / e2 if later else -9)
        self.detail.update(exponent=b1, exponent_error=e1, later_exponent=b2,
                           later_exponent_error=e2)

    def measure_flow(self):
        """Does it go on, do live bytes grow by it, does what is old live?"""
        margins, W, Q, lam = self.margins, self.W, self.Q, self.lam
        half = self.n // 2
        early = sum(W[self.onset:self.onset + half])
        late = sum(W[MATURE - half:MATURE])
        died, left = self.told["died_old"], self.told["live_old"]
        net = (Q[9] - max(Q[:self.onset])) / (lam * (WINDOWS - self.onset))
        tail = (Q[9] - Q[7]) / (2 * lam)
        swing = 1.4826 * statistics.median(
            abs(Q[k + 1] - Q[k] - lam) for k in range(self.onset, MATURE - 1))
        self.detail.update(
            half_ratio=late / early if early > 0 else 9.0, net_growth=net,
            tail_growth=tail, guard_rate_first=W[8] / lam,
            guard_rate_last=W[9] / lam, swing=swing / lam,
            died_share=died / max(1, died + left),
            immortal_p=few_deaths(died, died + left))
        self.trend = (margins.least(net, 0.5) and margins.least(tail, 0.35)
                      and margins.least((Q[9] - Q[8]) / lam, 0))
        self.trend_p = self.trend_of_blocks() if self.trend else 1.0
        self.calm = margins.least(
            tail + 1.5 * swing * math.sqrt(2) / (2 * lam), 0.35)
        self.immortal = (not margins.above(self.detail["died_share"], 0.1)
                         and self.calm
                         and not margins.above(self.detail["immortal_p"],
                                               0.01))

    def trend_of_blocks(self):
        """Mann and Kendall on the troughs of 16 blocks from the onset on."""
        begin = self.onset / WINDOWS
        ends, values, made = self.told["bucket_end"], [], []
        edges = [begin + (1 - begin) * i / BLOCKS for i in range(BLOCKS + 1)]
        for start, end in zip(edges, edges[1:]):
            lows = [low for at, low in zip(ends, self.told["low"])
                    if start < at <= end]
            values.append(lower_quartile(lows) if lows else interpolate(
                (start + end) / 2, ends, self.told["live"]))
            if not lows:  # computed, not read: its last digits are open
                made.append(values[-1])
        for one in made:
            for other in values:
                self.margins.look(one, other)
        return mann_kendall(values)

    def measure_confidence(self):
        self.margins.look(self.trend_p, 0.01)
        self.row["live_grows"] = self.trend and self.trend_p <= 0.01
        p = self.trend_p if self.trend_p <= 0.01 else self.detail["immortal_p"]
        flat = 0.5 * math.erfc(self.row["zs"] / math.sqrt(2))
        self.row.update(p=p, confidence=max(0.0, min(0.999,
                                                     1 - max(flat, p))))

    def chained(self):
        """The first rule that fits."""
        margins, detail = self.margins, self.detail
        first = detail["guard_rate_first"]
        last = detail["guard_rate_last"]
        died = detail["died_share"]
        if not self.shape:
            return "suspect" if margins.least(detail["exponent"], -0.3) \
                else "warming"
        if not (margins.least(first, 0.4) and margins.least(last, 0.3)
                and margins.least(first + last, 1.0)):
            return "plateau"
        if not self.trend and not self.immortal:
            return "turnover" if margins.above(died, 0.1) or not self.calm \
                else "suspect"
        if margins.above(died, 0.25) or (
                margins.above(detail["half_ratio"], 1.35)
                and margins.above(died, 0.15)):
            return "aging"
        if self.onset > 4:
            return "suspect"
        if self.trend and not self.immortal and self.row["p"] > 0.01:
            return "suspect"
        return "leak"

    def block_rate(self):
        """Bytes a window of one block that is reallocated ever larger: it
        grew in each of the last eight windows by a fifth of the mean or
        more, and in their late half by 0.6 of the early one or more."""
        told, margins = self.told, self.margins
        if told["live_count"] > 4 or told["allocations"] < 8:
            return None
        ends, live = [0.0] + told["bucket_end"], [0.0] + told["live"]
        at = [interpolate(k / WINDOWS, ends, live)
              for k in range(SETTLE, WINDOWS + 1)]
        grown = [after - before for before, after in zip(at, at[1:])]
        rate = sum(grown) / len(grown)
        late, early = sum(grown[4:]), sum(grown[:4])
        if rate > 0 and all(margins.least(one, 0.2 * rate)
                            for one in grown) and margins.least(
                                late, 0.6 * early):
            return rate
        return None

    def is_contradiction(self):
        """Blocks survive that the live bytes do not know of, or none do and
        there are live bytes."""
        live = self.told["live"]
        if sum(self.W) <= 0:
            return live[-1] > 1e-6 * max(live)
        return max(live) <= 0 or (
            self.onset <= 5 and self.detail.get("died_share", 0) <= 0.1
            and min(live) == max(live))

    def judge(self):
        if self.onset > 5:
            self.row["class"] = self.unchained()
        else:
            self.measure_rate()
            if not self.row["tested"]:
                self.row["class"] = "insufficient-data"
            else:
                self.measure_shape()
                self.measure_flow()
                self.measure_confidence()
                self.row["class"] = self.chained()
        block = None
        if self.row["class"] != "leak":
            block = self.block_rate()
        if block is not None:
            block *= WINDOWS
            self.row.update({
                "class": "leak", "rate": block, "low": 0.5 * block,
                "high": 1.5 * block, "p": 1e-6, "confidence": 0.9,
                "growing_block": True})
        self.row["contradicts"] = self.is_contradiction()
        if self.row["contradicts"]:
            self.row["class"] = "insufficient-data"
        return self.row


def judge(told):
    """(row, whether a decision was close) of a site as recorded.observe()
    gives it."""
    clock = None
    if "clock" in told:
        clock = Clock(told["clock"])
        told = dict(told, birth=[clock.at(tick) for tick in told["birth"]],
                    bucket_end=[clock.at(tick)
                                for tick in told["bucket_end"]])
    trial = Trial(told)
    row = trial.judge()
    if clock is not None:
        row["clock"] = clock.kind
        row["rising"] = clock.is_rising()
    return row, trial.margins.is_close
