# SPDX-License-Identifier: LGPL-2.1-or-later
"""The second look a second time, to hold the reader's against.

What a recording keeps of a site beside its survivors is a life table: how many
blocks died at each age, and how old the survivors are. Young ones count with
the chance that they get old; the rate of what is kept is fitted by bucket on
both clocks; and each end of the run is asked whether growth has stopped. See
growth_second.c for what it is for, cohort_flow.py for the names of a row.
"""
import math

import numpy

TENTHS = 10
AGES = (0.2, 0.3, 0.4)
STARTS = {0.05: 1.1, 0.1: 1.3, 0.2: 1.6, 0.3: 1.9}  # start-up: margin
ENDS = (0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
BY_WORK, BY_TIME = -0.5, -0.3  # exponents of a cache
STUDENT_975 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571}


class Life:
    """One site of a run, with both clocks."""

    def __init__(self, site, clock, told, died, is_rising):
        self.clock, self.told, self.site = clock, told, site
        self.ticks = numpy.array(site["birth"], int)
        self.weight = numpy.array(site["weight"], float)
        self.variance = numpy.array(site["variance"], float)
        self.count = len(told["live"])
        self.live = numpy.array(told["live"], float)
        self.low = numpy.minimum(told["low"], self.live)
        self.allocated = numpy.array(site["allocated"], float)
        self.born = numpy.array(site["born_count"], float)
        self.died = died
        self.born_seen = site["allocated_count"]
        self.freed_seen = site["allocated_count"] - len(self.ticks)
        self.work = numpy.array(clock.done)
        self.time = numpy.array(clock.edges) / clock.end
        self.is_rising = is_rising
        self.left = numpy.bincount(self.age(), minlength=self.count)
        reach = numpy.cumsum((self.died + self.left)[::-1])[::-1]
        falls = 1 - numpy.minimum(1, self.died / numpy.maximum(
            reach - self.left / 2, 0.5))
        self.share = numpy.concatenate([[1], numpy.cumprod(falls)])
        self.old = self.find_old()

    def age(self):
        return numpy.minimum((self.clock.end - self.ticks)
                             // self.clock.width, self.count - 1)

    def bucket_at(self, share):
        return min(math.ceil(share * self.clock.end / self.clock.width),
                   self.count)

    def find_old(self):
        """The age, in buckets, from which on blocks hardly die."""
        for age in AGES:
            first = self.bucket_at(age)
            died = self.died[first:].sum()
            both = died + self.left[first:].sum()
            if died <= 0.1 * max(1, both) and half_died(
                    round(died), round(both)) <= 0.01:
                return first
        return None


def half_died(died, total):
    """P(Bin(total, 1/2) <= died); above 1000 by the normal distribution."""
    if total > 1000:
        return 0.5 * math.erfc((total / 2 - died) / math.sqrt(total / 4)
                               / math.sqrt(2))
    return min(1.0, sum(math.comb(total, i) for i in range(died + 1))
               / 2 ** total)


class Births:
    """Bytes that get old, by bucket of birth; clocks end with them, at 1."""

    def __init__(self, life, old):
        age = life.age()
        chance = numpy.where(age >= old, 1, numpy.minimum(
            1, life.share[old] / numpy.maximum(life.share[age], 1e-12)))
        kept = life.weight * chance
        born = numpy.minimum(life.ticks // life.clock.width, life.count - 1)
        unseen = [i + 1 for i in range(old) if life.share[i]
                  > 1.25 * max(life.share[i + 1], 1e-12)]
        whole = min(life.count, (life.clock.end + 1) // life.clock.width)
        self.count = max(0, whole - unseen[-1]) if unseen else life.count
        self.bytes = numpy.bincount(born, kept, life.count)[:self.count]
        self.squares = numpy.bincount(born, kept * kept,
                                      life.count)[:self.count]
        self.work = life.work[:self.count + 1] / max(life.work[self.count],
                                                     1e-12)
        self.time = life.time[:self.count + 1] / life.time[self.count]
        self.total = self.bytes.sum()
        self.exact = life.variance.sum() <= 0.05 * (life.weight ** 2).sum()

    def blocks(self, some):
        """Of @some buckets, in blocks of equal weight; None: there are none"""
        total = self.bytes[some].sum()
        if not total > 0:
            return None
        return self.bytes[some] / (self.squares[some].sum() / total)


def power(found, flat, log_age):
    """(b, variance of ln age, share) of a rate ~ flat * age^b."""
    seen = (found * log_age).sum() / found.sum()
    off = log_age - log_age.mean()
    b = 0.0

    def fitted():
        share = flat * numpy.exp(b * off)
        share = share / share.sum()
        mean = (share * log_age).sum()
        return share, mean, (share * (log_age - mean) ** 2).sum()
    for _ in range(12):
        _, mean, variance = fitted()
        b += max(-1.0, min(1.0, (seen - mean) / max(variance, 1e-9)))
        b = max(-6.0, min(6.0, b))
    share, _, variance = fitted()
    return b, variance, share


class Fit:
    """What comes from @start on; .count is None where there is too little."""

    def __init__(self, births, clock, start, origin):
        width = numpy.diff(clock)
        some = (clock[:-1] >= start - 1e-9) & (width > 1e-9)
        found = births.blocks(some) if some.sum() >= 6 else None
        self.count, self.start = None, start
        if found is None:
            return
        middle = ((clock[1:] + clock[:-1]) / 2)[some]
        self.b, variance, share = power(found, width[some], numpy.log(
            numpy.maximum(middle - origin, 1e-4)))
        self.count = found.sum()
        self.spread = self.dispersion(found, share, middle, clock[:-1][some][0])
        self.error = math.sqrt(self.spread) / math.sqrt(
            max(self.count * variance, 1e-9))

    def dispersion(self, found, share, middle, first):
        """Pearson's over equal stretches, with four degrees at 1 added."""
        stretches = int(min(8, max(3, self.count / 3)))
        into = numpy.minimum(((middle - first) / (1 - first)
                              * stretches).astype(int), stretches - 1)
        seen = numpy.bincount(into, found, stretches)
        expected = numpy.bincount(into, self.count * share, stretches)
        some = expected > 0
        square = ((seen - expected)[some] ** 2 / expected[some]).sum()
        freedom = max(1, some.sum() - 2)
        return max(1.0, (square + 4) / (freedom + 4))

    def is_enough(self, births, onset):
        blocks = self.count / self.spread
        regular = births.exact and self.spread < 2 and self.start < 0.2
        return blocks >= (8 if regular else 12) and (onset < 4
                                                     or blocks >= 20)


def shape(births, clock, onset, limit):
    """The best of the fits from several ends of the start-up, or None."""
    best = None
    for start, margin in STARTS.items():
        if onset > 2:
            start, margin = onset / 10, 1.3
            fit = Fit(births, clock, start, start - 0.025)
            fit.start = 0.1
        else:
            fit = Fit(births, clock, start, 0.0)
        if fit.count is not None and fit.is_enough(births, onset):
            fit.margin = (-8.0 if fit.b - fit.error > 1.5
                          else (fit.b - limit) / fit.error - margin)
            if best is None or fit.margin > best.margin:
                best = fit
        if onset > 2:
            break
    return best


def onset_of(births, clock):
    """The first tenth from which on all keep some; 9 or 10: none."""
    total = numpy.concatenate([[0], numpy.cumsum(births.bytes)])
    kept = numpy.diff(numpy.interp(numpy.arange(11) / 10, clock, total))
    late = sorted(kept[5:])[2]
    if late <= 0:
        return 9
    full = [one >= 0.2 * late for one in kept]
    onset = TENTHS
    while onset > 0:
        k = onset - 1
        if not (full[k] or (k > 0 and full[k - 1]
                            and (k == 9 or full[k + 1]))):
            break
        onset -= 1
    return onset


def by_time_over_work(births):
    """ln likelihood, each clock with an exponent of its own."""
    some = (births.work[:-1] >= 0.05) & (births.time[:-1] >= 0.05)
    found = births.blocks(some) if some.sum() >= 10 else None
    if found is None:
        return 0.0
    fits = []
    for clock in (births.work, births.time):
        middle = ((clock[1:] + clock[:-1]) / 2)[some]
        share = power(found, numpy.maximum(numpy.diff(clock)[some],
                                           0.02 / 128),
                      numpy.log(numpy.maximum(middle, 1e-3)))[2]
        fits.append((found[found > 0]
                     * numpy.log(share[found > 0])).sum())
    return fits[1] - fits[0]


def ln_poisson(found, expected):
    """ln P(Poisson(expected) <= found), linear between whole numbers."""
    def whole(k):
        terms = [i * math.log(expected) - expected - math.lgamma(i + 1)
                 for i in range(max(0, k - 2000), k + 1)]
        return float(numpy.logaddexp.reduce(terms))
    low, high = whole(int(found)), whole(int(found) + 1)
    return min(0.0, low + (high - low) * (found - int(found)))


def stopped(births, clock, onset):
    """(the least ln p of an end, on which so little was found; from where)"""
    begin = max(0.1, 0 if onset <= 2 else onset / 10)
    first = int(numpy.searchsorted(clock[:-1], begin - 1e-9))
    total = births.bytes[first:].sum()
    if not total > 0:
        return -99.0, begin
    unit = births.squares[first:].sum() / total
    sums = numpy.concatenate([[0], numpy.cumsum(births.bytes / unit)])
    begin, least, since = clock[first], 0.0, -1.0

    def at(x):
        return numpy.interp(x, clock, sums)
    for rest in ENDS:
        end = 1 - rest
        rates = [(at(end) - at(start)) / (end - start) for start in (
            begin, begin + 0.25 * (1 - begin), begin + 0.4 * (1 - begin))
            if end > start + 0.15]
        if end < begin + 0.2 or not rates:
            continue
        expected, found = min(rates) * rest, at(1.0) - at(end)
        parts = int(min(6, max(2, (at(end) - at(begin)) / 4)))
        seen = numpy.diff(at(numpy.linspace(begin, end, parts + 1)))
        mean = seen.sum() / parts
        spread = (((seen - mean) ** 2).sum() / mean if mean > 0
                  else parts - 1)
        spread = max(1.0, (spread + 4) / (parts - 1 + 4))
        if expected / spread < 3 or found >= 0.5 * expected:
            continue
        if rest <= 0.2:
            ends = numpy.arange(begin + rest, end + 1e-9,
                                max(rest / 4, 0.01))
            low = (at(ends) - at(ends - rest)).min() if len(ends) \
                else expected
            if found >= 0.67 * low and low < 0.5 * expected:
                continue
        ln_p = ln_poisson(found / spread, expected / spread)
        if ln_p < least:
            least, since = ln_p, end
    return least, since


def net_growth(life, births, onset):
    """Bytes that live bytes grow by for a byte kept, other allocations held
    fixed: least squares."""
    some = births.work[1:] >= max(0.05, 0 if onset <= 2 else onset / 10)
    if some.sum() < 8:
        return 1.0
    other = numpy.convolve(life.allocated[:births.count] - births.bytes,
                           numpy.ones(3) / 3, "same")[some]
    kept = numpy.cumsum(births.bytes)[some]
    live = life.live[:births.count][some]
    before = (other ** 2).sum()
    other, kept = other - other.mean(), kept - kept.mean()
    if (other ** 2).sum() > 1e-16 * before:
        kept = kept - other * (other @ kept) / (other @ other)
    return (kept @ live) / (kept @ kept) if (kept @ kept) > 0 else 0.0


def follows(life, births, fit, limit):
    """Does it keep only where the load sets records?"""
    done = numpy.diff(life.work)
    if life.clock.kind == "bytes":
        near = numpy.concatenate([done[:1], done, done[-1:]])
        if births.count < len(done):
            near[births.count + 1] = near[births.count]
        done = numpy.median([near[:-2], near[1:-1], near[2:]], axis=0)
    done = done[:births.count]
    most = numpy.maximum.accumulate(numpy.concatenate([[0], done[:-1]]))
    some = life.work[:births.count] >= 0.1
    record = some & (done >= 0.9 * most)
    kept = births.bytes[some].sum()
    if not kept > 0:
        return False
    work = done[record].sum() / max(done[some].sum(), 1e-12)
    part = births.bytes[record].sum() / kept
    share = max(0.001, min(0.999, work))
    z = (part - share) / math.sqrt(share * (1 - share) / max(
        1, kept * kept / births.squares[some].sum() / fit.spread))
    if work < 0.9 and part >= 0.9 and z > 3:
        return True
    return bool(life.is_rising and (fit.b - limit) / fit.error < 5
                and (z > 1 or work > 0.8 or life.clock.kind == "bytes"))


def ends_idle(births):
    last = int(numpy.nonzero(births.bytes > 0)[0][-1]) + 1
    return ((births.count - last) / births.count > 0.15
            and 1 - births.work[last] < 0.05)


def start_share(life):
    """By the clock of bytes a start-up is more than its part of the work."""
    first = life.count // 16
    if life.clock.kind != "bytes" or not (
            life.work[first] > 1.5 * first / life.count):
        return 1.0
    return (1 - life.work[first]) / (1 - first / life.count)


def rate_of(life, onset, is_by_time):
    """(rate, low, high, blocks, effective) of windows @onset to 7."""
    births = life.ticks / life.clock.end if is_by_time \
        else numpy.array([life.clock.at(tick) for tick in life.ticks])
    window = numpy.minimum((births * 10).astype(int), 9)
    count = 8 - onset
    kept = numpy.bincount(window, life.weight, 10)[onset:8]
    squares = numpy.bincount(window, life.weight ** 2, 10)[onset:8].sum()
    rate = kept.sum() / count
    scatter = ((kept - rate) ** 2).sum() / (count - 1)
    half = max(1.96 * math.sqrt(squares) / count,
               STUDENT_975[count - 1] * math.sqrt(scatter / count))
    blocks = float(((window >= onset) & (window < 8)).sum())
    factor = 1.0 if is_by_time else start_share(life)
    return {"rate": 10 * factor * rate, "low": 10 * factor * (rate - half),
            "high": 10 * factor * (rate + half), "mature_count": blocks,
            "effective_count": blocks / max(1.0, scatter / max(
                squares / count, 1e-300))}


class Look:
    """One look: .row is changed in place, .is_fitted says how far it got."""

    def __init__(self, life, row):
        self.life, self.row, self.is_fitted = life, row, False
        if len(life.ticks) < 5 or life.old is None:
            self.doubt()
            return
        self.births = Births(life, life.old)
        self.fit_both()
        row["class"] = self.judge()

    def doubt(self):
        if self.row["class"] == "leak":
            self.row["class"] = "suspect"

    def fit_both(self):
        births = self.births
        self.onset_by_work = self.onset = onset_of(births, births.work)
        self.ratio = by_time_over_work(births)
        self.fit = shape(births, births.work, self.onset, BY_WORK)
        self.limit, self.by = BY_WORK, births.work
        spread = min(25.0, self.fit.spread) if self.fit else 1.0
        self.is_by_time = self.ratio > 8 * spread
        if self.is_by_time:
            self.onset = onset_of(births, births.time)
            self.fit = shape(births, births.time, self.onset, BY_TIME)
            self.limit, self.by = BY_TIME, births.time
        self.is_fitted = self.fit is not None

    def judge(self):
        row, fit, births = self.row, self.fit, self.births
        was = row["class"]
        if self.onset > 5 or fit is None:
            return "suspect" if was == "leak" else was
        if fit.margin < -7:
            return "turnover"
        if fit.margin < 0:
            return "warming" if fit.b < -0.3 else "suspect"
        net = net_growth(self.life, births, self.onset_by_work)
        if net < 0.5 and (net < 0.2 or not row["live_grows"]):
            return "turnover"
        ln_p = stopped(births, self.by, self.onset)[0]
        if not self.is_by_time and self.ratio > -4 * fit.spread:
            ln_p = min(ln_p, stopped(births, births.time, onset_of(
                births, births.time))[0])
        if ln_p < -8:
            return "plateau"
        if ends_idle(births) or follows(self.life, births, fit, self.limit):
            return "suspect"
        return self.call_leak(was)

    def call_leak(self, was):
        row, fit = self.row, self.fit
        z = (fit.b - self.limit) / fit.error
        if self.is_by_time or not row["tested"] or not (
                row["high"] > row["low"]):
            given = rate_of(self.life, max(2, self.onset), self.is_by_time)
            if given["rate"] > 0:
                row.update(given)
        if was in ("warming", "plateau", "turnover", "aging", "step") \
                and fit.margin < 0.3:
            return "suspect"
        flat = 0.5 * math.erfc(z / math.sqrt(2))
        row["confidence"] = max(row["confidence"], min(0.999, 1 - flat))
        row["p"] = min(row["p"], flat)
        row["by_life"] = True
        return "leak"
