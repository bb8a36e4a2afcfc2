# SPDX-License-Identifier: LGPL-2.1-or-later
"""What reassures must be proved: a second time, see growth_proof.c.

Each class that says that nothing is wrong is a claim, and has a test here on
both clocks; what passes none is suspect or too little. Containers that grow
are told by their steps, though no block of theirs gets old.
"""
import math

import numpy

import second_look

REASSURING = ("plateau", "step", "steady", "sawtooth", "turnover", "aging",
              "warming")
GRID = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
RESTS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)


def ln_binomial(found, count, share):
    """ln P(Bin(count, share) <= found); 0 from the mean on."""
    if not count > 0 or found >= count * share:
        return 0.0
    whole = math.floor(max(0, found))
    terms = [math.lgamma(count + 1) - math.lgamma(i + 1)
             - math.lgamma(count - i + 1) + i * math.log(share)
             + (count - i) * math.log1p(-share)
             for i in range(max(0, whole - 2000), whole + 1)]
    return min(0.0, float(numpy.logaddexp.reduce(terms)))


def dispersion(blocks, clock, begin, end):
    """Of equal stretches, with four degrees of freedom at 1 added."""
    parts = int(min(8, max(2, blocks.sum() / 4)))
    sums = numpy.concatenate([[0], numpy.cumsum(blocks)])
    found = numpy.diff(numpy.interp(numpy.linspace(begin, end, parts + 1),
                                    clock, sums))
    mean = found.mean()
    if not mean > 0:
        return 1.0
    return max(1.0, (((found - mean) ** 2).sum() / mean + 4) / (parts + 3))


class Steps:
    """Containers: .next is when the next step is due, on the work clock."""

    def __init__(self, life):
        self.life, self.next, self.container = life, 0.0, False
        self.certain, self.straight, self.rate = False, False, None
        self.found = life.freed_seen >= max(3, 0.4 * life.born_seen) and (
            self.doubles() or self.rises())

    def doubles(self):
        life = self.life
        live, work = life.live, life.work
        if not 1 <= len(life.ticks) <= 4 or life.born_seen < 4:
            return False
        steps = [i for i in range(1, life.count)
                 if live[i] > 1.1 * live[i - 1] > 0][-4:]
        if len(steps) < 4 or any(live[i] < 0.95 * live[:i].max()
                                 for i in range(steps[0], life.count)):
            return False
        at = [(work[i] + work[i + 1]) / 2 for i in steps]
        gaps = numpy.diff(at)
        factor = [live[i] / live[i - 1] for i in steps]
        blur = 1 / life.count
        if min(gaps) <= 0 or any(
                gaps[i] + blur < 0.7 * factor[i] * (gaps[i - 1] - blur)
                or gaps[i] - blur > 1.4 * factor[i] * (gaps[i - 1] + blur)
                for i in (1, 2)):
            return False
        if at[3] + 1.15 * gaps[2] * factor[3] < 1:
            return False
        self.next = at[3] + gaps[2] * factor[3]
        rate = live[-1] / self.next
        self.rate = (rate, 0.5 * rate, 1.5 * rate)
        return True

    def troughs(self):
        work, found = self.life.work[1:], []
        for k in range(8):
            some = (work > 0.3 + 0.7 * k / 8) & (
                work <= 0.3 + 0.7 * (k + 1) / 8 + 1e-12)
            if not some.any():
                return None
            found.append(self.life.low[some].min())
        return numpy.array(found)

    def half(self, some):
        life = self.life
        held = (life.live * numpy.diff(life.work))[some].sum()
        made, born = life.allocated[some].sum(), life.born[some].sum()
        return held / max(made, 1e-9), made / max(born, 1e-9), born

    def rises(self):
        low, work = self.troughs(), self.life.work[1:]
        if low is None or low[7] < 1.25 * max(low[0], 1e-9) \
                or low[7] < 1.08 * low[3] or any(
                    low[k] < 0.93 * low[:k].max() for k in range(1, 8)):
            return False
        early = self.half((work > 0.3) & (work <= 0.65))
        late = self.half(work > 0.65)
        age, size = late[0] / max(early[0], 1e-9), late[1] / early[1] \
            if early[1] > 0 else math.inf
        line = numpy.polyfit(numpy.arange(8), low, 1)
        off = low - numpy.polyval(line, numpy.arange(8))
        bend = math.sqrt((off ** 2).mean()) / max(low[7] - low[0], 1e-9)
        self.container = bool(size >= 1.4 and bend < 0.1 and age >= 1
                              and late[2] >= 5)
        self.straight = bool(bend < 0.03 and low[0] < 0.45 * low[7])
        self.certain = bool(
            self.container and bend < 0.06 and age >= 1.25 and late[2] >= 8
            and not self.life.is_rising and self.life.clock.kind != "wall")
        rate = line[0] * 8 / 0.7
        self.rate = (rate, 0.7 * rate, 1.3 * rate)
        return self.container or (age >= 1.25 and bend < 0.07
                                  and low[0] < 0.6 * low[7])


def small_steps(life):
    """Rate of one block that is reallocated by less than half each time, as
    the work goes on; None: it is none."""
    live, work, most = life.live, life.work, life.live.max(initial=0)
    if len(life.ticks) > 4 or life.born_seen < 8 or live[-1] <= 0 \
            or live[-1] < 0.999 * most or (numpy.diff(live)
                                           < -0.01 * most).any():
        return None
    steps = numpy.nonzero(live[1:] > 1.01 * live[:-1])[0] + 1
    at = (work[steps] + work[numpy.minimum(steps + 1, life.count)]) / 2
    some = (at >= 0.1) & (live[steps - 1] > 0)
    steps, at = steps[some], at[some]
    if len(steps) < 6:
        return None
    x, y = numpy.log(at), numpy.log(live[steps - 1])
    line = numpy.polyfit(x, y, 1)
    spread = numpy.std(y - numpy.polyval(line, x))
    late = (live[steps] / live[steps - 1])[at >= 0.3]
    factor = numpy.median(late) if len(late) >= 2 else 9.0
    if not 0.75 <= line[0] <= 1.6 or not spread < 0.12 or factor > 1.5 \
            or 1 / at[-1] > factor ** 1.5:
        return None
    return live[steps[-1] - 1] / at[-1]


class Hidden:
    """The largest leak that what is kept of what is old, and live bytes of the
    second half, leave room for: .rate, of the clock that leaves more."""

    def __init__(self, life):
        self.life = life
        work = numpy.array([life.clock.at(tick) for tick in life.ticks])
        by_work = self.by(work, life.work)
        by_time = self.by(life.ticks / life.clock.end, life.time)
        by_work = (second_look.start_share(life) * by_work[0], by_work[1])
        self.rate, self.unit = (by_work if by_work[0][2] >= by_time[0][2]
                                else by_time)

    def by(self, birth, edges):
        """((low, rate, high), bytes of a block) on one clock."""
        rate, unit = self.old(birth)
        live = self.rise(birth, edges)
        return numpy.maximum(
            0, rate if live is None else numpy.minimum(rate, live)), unit

    def born(self, some):
        weight = self.life.weight[some]
        return weight.sum(), (weight ** 2).sum()

    def old(self, birth):
        least = None
        for until in (0.3, 0.4, 0.5):
            bytes_, squares = self.born((birth > 0.1) & (birth <= until))
            total, all_squares = self.born(birth > -math.inf)
            unit = (squares / bytes_ if bytes_ > 0 else
                    all_squares / total if total > 0 else 1.0)
            count = bytes_ / unit
            rate = unit / (until - 0.1) * numpy.array([
                count - 1.64 * math.sqrt(count), count,
                count + 1.64 * math.sqrt(count + 1) + 1.4])
            if least is None or rate[2] < least[0][2]:
                least = rate, unit
        return least

    def rise(self, birth, edges):
        ends, at, means = edges[1:], [], []
        for k in range(8):
            some = (ends > 0.5 + k / 16) & (
                ends <= 0.5 + (k + 1) / 16 + 1e-12)
            if some.any():
                at.append(k / 16)
                means.append(self.life.live[some].mean())
        if len(at) < 4:
            return None
        x, y = at - numpy.mean(at), means - numpy.mean(means)
        slope = (x @ y) / (x @ x)
        off = max(0, y @ y - (x @ y) ** 2 / (x @ x))
        variance = off / (len(at) - 2) / (x @ x)
        chance = math.sqrt(self.born(birth > 0.5)[1]) / 0.4375
        return numpy.array([
            slope - math.sqrt(1.94 ** 2 * variance + 1.96 ** 2 * chance ** 2),
            slope, slope + 1.94 * math.sqrt(variance)])

    def is_large(self):
        return self.rate[2] >= 20 * self.unit


class Proof:
    def __init__(self, life, row, is_fitted):
        self.life, self.row = life, row
        old = life.old if life.old is not None else life.bucket_at(0.3)
        self.births = second_look.Births(life, old)
        births = self.births
        self.total = births.total
        squares = births.squares.sum()
        self.unit = squares / self.total if self.total > 0 else 1.0
        self.count = self.total / self.unit if self.total > 0 else 0.0
        self.blocks = births.bytes / self.unit
        self.clocks = (births.work, births.time)
        if len(life.ticks) == 0:
            return
        if row["class"] in REASSURING + ("suspect", "insufficient-data"):
            self.prove()
        elif row["class"] == "leak" and is_fitted and (
                self.hardly_moved() or self.is_silent()):
            self.suspect()

    def suspect(self, rate=None):
        row = self.row
        row["class"] = "suspect"
        if rate is not None:
            row["rate"], row["low"], row["high"] = rate
        if not row["high"] > row["low"] and self.total > 0:
            half = 1.96 * math.sqrt(self.total * self.unit)
            row.update(rate=self.total, high=self.total + half,
                       low=max(0.0, self.total - half),
                       kept_time=self.kept_time())

    def kept_time(self):
        """The share of the run in which it was kept, if it began late."""
        births = self.births
        first = int(numpy.searchsorted(numpy.cumsum(births.bytes),
                                       0.05 * self.total, side="right"))
        begun = births.time[first] * self.life.time[births.count]
        return 1 - min(begun, 0.75) if begun > 0.2 else 1

    def grow(self, steps):
        self.suspect(steps.rate)
        self.row["in_steps"] = steps.next > 0

    def confirm(self, classes, otherwise):
        if self.row["class"] not in classes:
            self.row["class"] = otherwise

    def prove(self):
        steps = Steps(self.life)
        is_container = steps.found and (steps.container or steps.next > 0)
        if steps.found and steps.certain:
            self.grow(steps)
            self.row["class"] = "leak"
            self.row["by_life"] = True
        elif self.row["class"] not in REASSURING:
            if is_container:
                self.grow(steps)
        elif self.gives_back():
            if steps.found:
                self.grow(steps)
            elif not self.rose() and not Hidden(self.life).is_large():
                self.confirm(("steady", "sawtooth", "turnover"), "turnover")
            else:
                self.judge_kept(True)
        elif is_container or (steps.found and steps.straight):
            self.grow(steps)
        else:
            self.judge_kept(False)

    def judge_kept(self, is_replaced):
        is_flat = self.hardly_moved()
        if is_flat and not Hidden(self.life).is_large():
            self.row["flat"] = True
            self.confirm(("steady", "turnover", "step", "plateau"),
                         "turnover")
        elif self.is_one_event():
            self.row["class"] = "step"
        elif max(self.silence(clock)
                 for clock in self.clocks) <= math.log(0.012):
            self.confirm(("plateau", "step"), "plateau")
        elif self.is_filling():
            self.row["class"] = "warming"
        elif self.count >= 12 and self.effective() >= 5:
            if is_flat or is_replaced:
                self.row["class"] = "suspect"
                low, rate, high = Hidden(self.life).rate
                self.row.update(rate=rate, low=low, high=high)
            else:
                self.suspect()
        else:
            self.row["class"] = "insufficient-data"

    def gives_back(self):
        life = self.life
        return life.freed_seen >= 8 and all(
            ln_binomial(died, died + left, 0.5) >= math.log(0.06)
            for died, left in ((life.died[first:].sum(),
                                life.left[first:].sum())
                               for first in map(life.bucket_at, GRID)))

    def rose(self):
        work = self.life.work[1:]
        return bool((work <= 0.5).any() and self.life.low[work > 0.75].min()
                    > 1.3 * self.life.live[work <= 0.5].max())

    def hardly_moved(self):
        if self.count < 16:
            return False
        for clock in (self.life.work, self.life.time):
            ends, means = clock[1:], []
            for k in range(8):
                some = (ends > 0.5 + k / 16) & (
                    ends <= 0.5 + (k + 1) / 16 + 1e-12)
                if some.any():
                    means.append(self.life.live[some].mean())
            late = self.births.bytes[clock[:self.births.count] >= 0.5].sum()
            moved = max(means, default=0) - min(means, default=0)
            if (len(means) < 4 or moved > 0.35 * self.total
                    or moved > 0.5 * late):
                return False
        return True

    def is_one_event(self):
        births, groups = self.births, []
        for i in numpy.nonzero(births.bytes > 0.02 * self.total)[0]:
            if groups and i - groups[-1][0] <= 3:
                groups[-1][1] = i + 1
            else:
                groups.append([i, i + 1])
        if not 1 <= len(groups) <= 2:
            return False
        end = groups[-1][1]
        tail = min(1 - clock[end] for clock in self.clocks)
        since = births.bytes[end:]
        if (tail < 0.1 or since.sum() > 0.05 * self.total
                or (since > 0).sum() >= 4):
            return False
        if len(groups) == 2 and tail < max(
                clock[groups[1][0]] - clock[groups[0][1]]
                for clock in self.clocks):
            return False
        return bool(self.count >= 3 * len(groups)
                    or 1 - births.time[end] >= 0.9)

    def arrivals(self, clock):
        """Buckets that blocks came in, and the silences between them."""
        came = numpy.nonzero(self.blocks > 0.25)[0]
        return came, clock[came[1:]] - clock[came[:-1] + 1]

    def silence(self, clock):
        came, gaps = self.arrivals(clock)
        sums = numpy.concatenate([[0], numpy.cumsum(self.blocks)])
        least = 0.0
        for rest in RESTS:
            before = numpy.interp(1 - rest, clock, sums)
            found = sums[-1] - before
            most = (found + 1.64 * math.sqrt(found + 1) + 1.4) / rest
            earlier = came[clock[came] <= 1 - rest]
            going_on = min(0.25 * sums[-1], max(31, 0.1 * sums[-1]))
            if before < 3 or most > going_on or not len(earlier):
                continue
            longest = gaps[clock[came[1:]] <= 1 - rest].max(initial=0)
            if rest < 1.5 * longest:
                continue
            last = clock[earlier[-1] + 1]
            some = int(numpy.searchsorted(clock, last - 1e-12))
            spread = dispersion(self.blocks[:some], clock[:some + 1], 0,
                                last) if last > 0.02 else 1.0
            least = min(least, ln_binomial(found / spread, sums[-1] / spread,
                                           rest))
        return least

    def is_filling(self):
        for clock in self.clocks:
            fits = [second_look.Fit(self.births, clock, start, 0.0)
                    for start in (0.05, 0.1, 0.2)]
            fits = [fit for fit in fits if fit.count is not None
                    and fit.count >= 12 * fit.spread]
            if not fits or fits[-1].b > -0.15 or min(
                    fit.b / fit.error for fit in fits) > -2.1:
                return False
        return True

    def effective(self):
        first = int(numpy.nonzero(self.births.bytes > 0)[0][0])
        return self.count / min(
            dispersion(self.blocks[first:], clock[first:], clock[first], 1)
            for clock in self.clocks)

    def is_silent(self):
        births = self.births
        came, gaps = self.arrivals(births.time)
        if len(came) < 4:
            return False
        end = came[-1] + 1
        return bool(1 - births.time[end] >= 0.12
                    and 1 - births.work[end] >= 0.02
                    and 1 - births.time[end] >= 2 * gaps.max())


def look_again(life, row):
    """Both looks at a site that the first test has judged; @row changes."""
    if row["growing_block"] or row["contradicts"]:
        return
    factor = second_look.start_share(life)
    row.update(rate=factor * row["rate"], low=factor * row["low"],
               high=factor * row["high"])
    container = None if row["class"] == "leak" else small_steps(life)
    if container is not None:
        row.update({"class": "leak", "rate": container, "p": 1e-6,
                    "low": 0.7 * container, "high": 1.3 * container,
                    "confidence": 0.9, "growing_block": True})
        return
    look = second_look.Look(life, row)
    Proof(life, row, look.is_fitted)
