#!/usr/bin/env python3
"""`daemon --regions` live: four memlats, two with large working sets and two with small ones, on caches of one cpu each.

Starts: as often as asked from each initial placement, whether the daemon ends with a large one beside a small one on each cache.
Times: processor time of a read of the large ones, under the kernel's own placement, with `taskset` by hand, and with the daemon,
in turn. A run by hand: `bench/regions_live.py DOMICILE MEMLAT [STARTS [ROUNDS]]`; as a group of `bench/run`: `regions_live`.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from measure import spread, with_spread

LARGE, SMALL = 1 << 20, 16 << 10
# More reads than any run lasts for.
ENDLESS = 10**12
READS = 200_000_000
STAY = 1_000_000
# A process is placed after three intervals.
INTERVAL = "250ms"
# The cpu of each of the two large ones and the two small ones at the start.
INITIAL = {"apart": (0, 1, 0, 1), "large together": (0, 0, 1, 1), "all on one": (0, 0, 0, 0), "the kernel's": None}
BY_HAND = (0, 1, 0, 1)


class Four:
    """Four memlats, stopped at the end of the block."""

    def __init__(self, memlat, reads, placement, held):
        sizes = [LARGE, LARGE, SMALL, SMALL]
        self.processes = []
        for at, size in enumerate(sizes):
            words = [memlat, size, 1, STAY, reads if size == LARGE else ENDLESS]
            process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
            self.processes.append(process)
            if placement:
                os.sched_setaffinity(process.pid, {placement[at]})
        if placement and not held:
            time.sleep(0.3)
            for process in self.processes:
                os.sched_setaffinity(process.pid, os.sched_getaffinity(0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def pids(self):
        return ",".join(str(process.pid) for process in self.processes)

    def masks(self):
        return [os.sched_getaffinity(process.pid) for process in self.processes]

    def seconds(self):
        """Processor time of each of the large ones, once they have ended."""
        times = []
        for process in self.processes[:2]:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            times.append(usage.ru_utime + usage.ru_stime)
        return times


def daemon(domicile, four, state, interval):
    command = [domicile, "--json", "daemon", "--regions", "--act", "--pid", four.pids(), "--interval", interval, "--state", state]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def ended(process):
    """The daemon's report, after it was asked to end."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    return json.loads(output)


def right(masks):
    """True where one large and one small one are on each of two cpus."""
    large, small = masks[:2], masks[2:]
    return all(len(mask) == 1 for mask in masks) and large[0] != large[1] and small[0] != small[1]


def starts(domicile, memlat, count):
    """Rows and figures: how often a start from each initial placement ends rightly, and with masks as before."""
    rows, results = [], {}
    for name, placement in INITIAL.items():
        paired, restored, waits = 0, 0, []
        for _ in range(count):
            with tempfile.TemporaryDirectory() as state, Four(memlat, ENDLESS, placement, False) as four:
                before = four.masks()
                watching = daemon(domicile, four, state, INTERVAL)
                began = time.monotonic()
                while not right(four.masks()) and time.monotonic() < began + 5:
                    time.sleep(0.02)
                waits.append(time.monotonic() - began)
                # What was found must stay.
                time.sleep(1.0)
                paired += right(four.masks())
                ended(watching)
                restored += four.masks() == before
        rows.append([f"from {name}: paired rightly", f"{paired} of {count}"])
        rows.append([f"from {name}: seconds until then", with_spread(spread(waits), digits=2)])
        rows.append([f"from {name}: masks as before at the end", f"{restored} of {count}"])
        results[name] = {"starts": count, "paired": paired, "restored": restored, "seconds": spread(waits)}
    return rows, results


def once(domicile, memlat, how):
    """Nanoseconds of processor time for each read of the large ones; the daemon's own share of a cpu."""
    placement = {"taskset": BY_HAND, "taskset, large together": INITIAL["large together"]}.get(how)
    with tempfile.TemporaryDirectory() as state, Four(memlat, READS, placement, True) as four:
        watching = daemon(domicile, four, state, INTERVAL) if how == "daemon" else None
        times = four.seconds()
        report = ended(watching) if watching else None
    share = report["own_ns"] / report["wall_ns"] if report else None
    return [seconds / READS * 1e9 for seconds in times], share


def times(domicile, memlat, rounds, progress=lambda text: None):
    """Rows and figures: a read of the large ones under each placement, in turn."""
    hows = ["the kernel's", "taskset", "taskset, large together", "daemon"]
    reads, shares = {how: [] for how in hows}, []
    for number in range(rounds):
        for how in hows:
            progress(f"round {number + 1} of {rounds}: {how}")
            ns, share = once(domicile, memlat, how)
            reads[how].append(sum(ns) / len(ns))
            shares += [share] if share is not None else []
    rows = [[f"{how}: ns a read of the large ones", with_spread(spread(all), digits=2)] for how, all in reads.items()]
    ratios = [ours / kernel for ours, kernel in zip(reads["daemon"], reads["the kernel's"])]
    by_hand = [ours / hand for ours, hand in zip(reads["daemon"], reads["taskset"])]
    rows.append(["daemon / the kernel's, round by round", with_spread(spread(ratios), digits=2)])
    rows.append(["daemon / taskset, round by round", with_spread(spread(by_hand), digits=2)])
    rows.append(["daemon: % of a cpu", with_spread(spread([share * 100 for share in shares]), digits=2)])
    return rows, {**{how: spread(all) for how, all in reads.items()}, "share": spread(shares)}


def main():
    domicile, memlat, *numbers = sys.argv[1:]
    domicile, memlat = pathlib.Path(domicile).resolve(), pathlib.Path(memlat).resolve()
    count = int(numbers[0]) if numbers else 20
    rounds = int(numbers[1]) if len(numbers) > 1 else 5
    for rows, _ in (starts(domicile, memlat, count), times(domicile, memlat, rounds)):
        for name, value in rows:
            print(f"{name:<52} {value}", flush=True)


if __name__ == "__main__":
    main()
