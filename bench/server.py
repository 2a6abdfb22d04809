#!/usr/bin/env python3
"""A server beside two cache-hungry neighbours: redis with one client, whose p50 and p99 are measured alone, with the neighbours where the
kernel places all, with the server on a cache of its own by `taskset`, and the same by `daemon --regions --preferred`.

The neighbours read lines of 1 MiB in random order. Their loss is in the reads of a second. The client has priority, so that the server's
time is measured and not the client's. By hand: `bench/server.py DOMICILE NEIGHBOR [ROUNDS]`; as a group of `bench/run`: `server`.
"""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from measure import spread, with_spread

NEIGHBORS, BYTES = 2, 1 << 20
# The server's data fits a private cache.
KEYS, VALUE = 400, 256
REQUESTS = 100_000
ALONE, KERNEL, TASKSET, PREFERRED = "alone", "together, the kernel's", "together, taskset", "together, preferred"
HOWS = [ALONE, KERNEL, TASKSET, PREFERRED]
INTERVAL = "250ms"


class Server:
    """redis-server on a socket in a folder; stopped at the end of the block."""

    def __init__(self, folder):
        self.socket = os.path.join(folder, "socket")
        words = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", "--dir", folder]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def __enter__(self):
        until = time.monotonic() + 20
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("redis-server does not start")
            time.sleep(0.02)
        self.ask("set", KEYS * 10)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, what, requests):
        """Microseconds of a request: the median, and what 99 of 100 take at most; and requests a second."""
        words = ["redis-benchmark", "-s", self.socket, "-c", "1", "-n", requests, "-r", KEYS, "-d", VALUE, "-t", what, "--csv"]
        first = ["nice", "-n", "-10"] if os.geteuid() == 0 else []
        text = subprocess.run([*first, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout
        row = next(csv.DictReader(text.splitlines()))
        return [float(row[name]) * 1000 for name in ("p50_latency_ms", "p99_latency_ms")] + [float(row["rps"])]


def neighbors(neighbor, how, cpus):
    """The neighbours, running."""
    started = [] if how == ALONE else [subprocess.Popen([neighbor, str(BYTES)], stdout=subprocess.PIPE, text=True) for _ in range(NEIGHBORS)]
    if how == TASKSET:
        for process in started:
            os.sched_setaffinity(process.pid, cpus)
    return started


def daemon(domicile, pids, name, state):
    command = [domicile, "--json", "daemon", "--regions", "--act", "--pid", ",".join(map(str, pids)), "--preferred", name]
    command += ["--interval", INTERVAL, "--state", state]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def masks(process):
    return [os.sched_getaffinity(int(thread)) for thread in os.listdir(f"/proc/{process.pid}/task")]


def once(domicile, neighbor, how):
    """What the server's client sees, and reads a second of the neighbours together; the daemon's share of a cpu."""
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        if how == TASKSET:
            for thread in os.listdir(f"/proc/{server.process.pid}/task"):
                os.sched_setaffinity(int(thread), {cpus[0]})
        running = neighbors(neighbor, how, set(cpus[1:]))
        watching = None
        try:
            if how == PREFERRED:
                watching = daemon(domicile, [server.process.pid, *[of.pid for of in running]], "redis-server", folder)
                # A server that has nothing to do has no place.
                until = time.monotonic() + 20
                while any(len(mask) == len(cpus) for mask in masks(server.process)):
                    if time.monotonic() > until:
                        raise RuntimeError("the daemon does not place redis-server")
                    server.ask("get", 5000)
            server.ask("get", REQUESTS // 10)
            seen = server.ask("get", REQUESTS)
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)
            reads = [float(process.communicate()[0].split()[0]) for process in running]
            if watching:
                watching.send_signal(signal.SIGTERM)
                report = json.loads(watching.communicate()[0])
        share = report["own_ns"] / report["wall_ns"] if watching else None
        return seen, sum(reads), share


def measured(domicile, neighbor, rounds, progress=lambda text: None):
    """Rows and figures of each way, in turns."""
    seen, reads, shares = {how: [] for how in HOWS}, {how: [] for how in HOWS}, []
    for number in range(rounds):
        for at in range(len(HOWS)):
            how = HOWS[(at + number) % len(HOWS)]
            progress(f"round {number + 1} of {rounds}: {how}")
            times, read, share = once(domicile, neighbor, how)
            seen[how].append(times)
            reads[how].append(read / 1e6)
            shares += [share] if share is not None else []
    rows, results = [], {}
    for how in HOWS:
        p50, p99, rate = ([times[at] for times in seen[how]] for at in range(3))
        figures = {"p50_us": spread(p50), "p99_us": spread(p99), "requests_a_second": spread(rate), "neighbours_million_reads_a_second": spread(reads[how])}
        loss = "" if how == ALONE else with_spread(spread(reads[how]), digits=1)
        rows.append([how, with_spread(spread(p50), digits=1), with_spread(spread(p99), digits=1), with_spread(spread(rate), digits=0), loss])
        results[how] = figures
    results["share"] = spread(shares)
    rows.append(["the daemon: % of a cpu", with_spread(spread([share * 100 for share in shares]), digits=2), "", "", ""])
    return rows, results


HEADS = ["redis, one client", "p50 us (least-most)", "p99 us", "requests/s", "neighbours, million reads/s"]


def main():
    domicile, neighbor, *numbers = sys.argv[1:]
    rows, _ = measured(pathlib.Path(domicile).resolve(), pathlib.Path(neighbor).resolve(), int(numbers[0]) if numbers else 5)
    for row in [HEADS, *rows]:
        print("  ".join(f"{cell:<28}" for cell in row).rstrip(), flush=True)


if __name__ == "__main__":
    main()
