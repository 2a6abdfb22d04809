"""Work at the cache of its data: two regions used in turns, by one cpu and shipped; bins of locality threads by stealing and at caches."""

import json
import os
import pathlib
import re
import subprocess

import prepare
from measure import run, spread, with_spread

HEADS = ["", "one cpu, ns", "at the caches, ns", "gain (least-most)"]
# Two regions of so many percent of a cache, in stays of so many microseconds: the first fit into one cache.
REGIONS = [(25, 300), (70, 100), (70, 300), (70, 500)]
# What the example of locality threads does, and KiB.
BINS = [("sor", 700), ("nbody", 700)]


def cache_bytes():
    """The largest cache that not all cpus share; `None`: there is none."""
    cpus = len(os.sched_getaffinity(0))
    private = []
    for cache in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        shared = (cache / "shared_cpu_map").read_text().replace(",", "")
        if (cache / "type").read_text().strip() != "Instruction" and bin(int(shared, 16)).count("1") < cpus:
            private.append(int((cache / "size").read_text().strip().removesuffix("K")) << 10)
    return max(private, default=None)


def measured(rounds, progress=lambda text: None):
    """Rows and figures."""
    examples = [["-p", "domicile-ship", "--example", "regions"], ["-p", "domicile-threads", "--example", "at_caches"]]
    for example in examples:
        subprocess.run(["cargo", "build", "--release", "--quiet", *example], cwd=prepare.ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", prepare.ROOT / "target"))
    programs = target / "release" / "examples"
    rows, results = [], {}
    for percent, stay in REGIONS:
        name = f"two regions of {percent}% of a cache, stays of {stay} us"
        progress(name)
        command = [programs / "regions", cache_bytes() * percent // 100, stay, rounds]
        lines = [json.loads(line) for line in run([str(word) for word in command])["output"].splitlines()]
        one, shipped, gain, cost = (spread([line[key] for line in lines]) for key in ("one_cpu_ns", "shipped_ns", "gain", "hand_over_ns"))
        rows.append([name, with_spread(one, digits=2), with_spread(shipped, digits=2), with_spread(gain, digits=2)])
        bare = spread([line["bare_ns"] for line in lines])
        results[name] = {"one_cpu": one, "shipped": shipped, "gain": gain, "hand_over": cost, "bare": bare}
    ratio = spread([line["bare_ns"] / line["hand_over_ns"] for line in lines])
    rows.append(["a hand-over: a bare one, and ours", with_spread(bare, digits=0), with_spread(cost, digits=0), with_spread(ratio, digits=2)])
    for what, kib in BINS:
        progress(what)
        command = [programs / "at_caches", what, str(kib), "200", str(rounds)]
        found = re.findall(r"stealing ([\d.]+), caches ([\d.]+), chosen ([\d.]+) ns", run([str(word) for word in command])["output"])
        stealing, _, chosen = ([float(value) for value in column] for column in zip(*found))
        gain = spread([one / other for one, other in zip(stealing, chosen)])
        name = f"locality threads, {what} over {kib} KiB: stealing, and as chosen"
        rows.append([name, with_spread(spread(stealing), digits=2), with_spread(spread(chosen), digits=2), with_spread(gain, digits=2)])
        results[name] = {"stealing": spread(stealing), "chosen": spread(chosen), "gain": gain}
    return rows, results
