# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sites at the edge between two classes.

A limit that is off by one percent changes no class of nearly any site. So one
figure of a site is turned up and down until its class changes, and the two
sites next to the change, a thousandth apart, are held against the reader's.
"""
import cohort_flow
import recorded
import sites

CLOSE = 1.001
FACTORS = (0.05, 0.2, 0.5, 0.8, 0.95, 1.05, 1.25, 2, 5, 20)


def births(told, random, factor):
    """The survivors born in one tenth weigh more, or less."""
    window = random.integers(10)
    return {"weight": [weight * factor if int(birth * 10) == window else weight
                       for birth, weight in zip(told["birth"],
                                                told["weight"])]}


def tail(told, random, factor):
    """Live bytes from somewhere on."""
    start = random.uniform(0.3, 0.95)
    return {name: [value * factor if end > start else value
                   for end, value in zip(told["bucket_end"], told[name])]
            for name in ("live", "low")}


def head(told, random, factor):
    """Live bytes until somewhere."""
    start = random.uniform(0.05, 0.7)
    return {name: [value * factor if end < start else value
                   for end, value in zip(told["bucket_end"], told[name])]
            for name in ("live", "low")}


def floor(told, random, factor):
    """The lows of one tenth."""
    window = random.integers(10)
    return {"low": [value * factor if int(end * 10) == window else value
                    for end, value in zip(told["bucket_end"], told["low"])]}


def deaths(told, random, factor):
    """Old blocks that died, among many or few, and another figure with it."""
    live = int(random.choice([told["live_old"], 10 * told["live_old"], 3000]))
    return {"live_old": live, "died_old": int(live * factor / 20), **random
            .choice([births, floor])(told, random, random.uniform(0.7, 1.4))}


def ageing(told, random, factor):
    """The young survivors, where one old block of five died."""
    window = random.choice([4, 5, 6])
    return {"died_old": told["live_old"] // 4,
            "weight": [weight * factor if birth * 10 >= window else weight
                       for birth, weight in zip(told["birth"],
                                                told["weight"])]}


def cooling(told, _random, factor):
    """More in the second tenth, and then ever less, by a power of age."""
    def weigh(birth):
        if birth < 0.2:
            return 2.2 if birth >= 0.1 else 1
        return (2 * birth) ** (-0.3 * factor)
    return {"weight": [weight * weigh(birth) for birth, weight in zip(
        told["birth"], told["weight"])]}


TURNS = (births, births, tail, head, floor, deaths, ageing, cooling)


def find(told, random):
    """The two sites at a change of class, or none."""
    turn = TURNS[random.integers(len(TURNS))]
    how = random.bit_generator.state

    def turned(factor):
        random.bit_generator.state = how  # the same figure at every factor
        return {**told, **turn(told, random, factor)}

    def class_at(factor):
        return cohort_flow.judge(turned(factor))[0]["class"]

    classes = [class_at(factor) for factor in FACTORS]
    changes = [i for i in range(1, len(FACTORS))
               if classes[i] != classes[i - 1]]
    if not changes:
        return []
    i = int(random.choice(changes))
    low, high = FACTORS[i - 1], FACTORS[i]
    while high > CLOSE * low:
        middle = (low * high) ** 0.5
        if class_at(middle) == classes[i - 1]:
            low = middle
        else:
            high = middle
    return [turned(low), turned(high)]


def simulate(seed, count):
    """About @count sites at edges; most are of sites that keep blocks."""
    for i in range(count):
        kinds = sites.LEAKING if i % 3 else sites.KINDS
        kind = kinds[i // 3 % len(kinds)]
        site, random = sites.make(kind, (seed, i, 1), i % 2)
        told = recorded.observe(site)
        if len(told["birth"]) > 1500:
            continue
        for side, found in enumerate(find(told, random)):
            yield {**found, "id": f"edge {kind} {i} {side}"}
