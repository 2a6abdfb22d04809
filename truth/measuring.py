"""Before and after, measured in turn on this machine: the ratio of their times and its interval."""

import math
import re
import statistics

from building import Failed
from measure import run

OWN_TIME = re.compile(r"truth: cpu (\d+) ns, wall (\d+) ns")


def once(pair, command, inputs):
    """Seconds of one run by the pair's clock, and what it printed."""
    ran = run(command, cwd=inputs)
    own = OWN_TIME.search(ran["errors"])
    if own:
        seconds = int(own[1 if pair.clock == "cpu" else 2]) / 1e9
    elif pair.source is not None:
        raise Failed(f"{pair.name}: the program does not say what its work took")
    else:
        seconds = ran["cpu_seconds" if pair.clock == "cpu" else "seconds"]
    return seconds, ran["output"]


def measure(pair, commands, inputs, rounds, report=lambda text: None):
    """Round by round, in turn and every second round the other way about: what else the machine does falls on both."""
    seconds = {side: [] for side in commands}
    printed = {}
    for number in range(rounds):
        for side in list(commands) if number % 2 == 0 else reversed(list(commands)):
            report(f"{pair.name}: round {number + 1} of {rounds}, {side}")
            took, printed[side] = once(pair, commands[side], inputs)
            seconds[side].append(took)
        if pair.same_output and printed["before"] != printed["after"]:
            raise Failed(f"{pair.name}: before and after print other results")
    # The start-up's median: its own noise would count twice in each round.
    before_off, after_off = (statistics.median(start_up(seconds, side, [0.0])) for side in ("before", "after"))
    ratios = [
        ratio(before - before_off, after - after_off) for before, after in zip(seconds["before"], seconds["after"])
    ]
    least, most = interval(ratios)
    if not 0 < least <= most < math.inf:
        raise Failed(f"{pair.name}: too many runs took no longer than their start-up: {seconds}")
    return {"ratio": statistics.median(ratios), "least": least, "most": most, "seconds": seconds}


def ratio(before, after):
    """A run that took no longer than its start-up is the shortest there is; its rank among the others still counts."""
    if after <= 0:
        return math.inf
    return max(before, 0.0) / after


def start_up(of, side, otherwise):
    """What is known of a side's start-up: its own, or that of both."""
    return of.get(f"{side} start-up", of.get("start-up", otherwise))


def interval(values, confidence=0.95):
    """Of the median, by order statistics: the innermost pair of values that holds it with at least this confidence."""
    values = sorted(values)
    count = len(values)
    outside, skipped = 0.0, 0
    while skipped < count // 2:
        outside += 2 * math.comb(count, skipped) / 2**count
        if outside > 1 - confidence:
            break
        skipped += 1
    # With fewer than six values not even the outermost pair is enough; it is what there is.
    first = max(skipped - 1, 0)
    return values[first], values[count - 1 - first]
