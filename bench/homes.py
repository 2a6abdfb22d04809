"""Pages to nodes and copies of them: what decisions, moves, watching, looking up a copy and recording a whole machine take.

Each row has the goal beside the figure. A figure that needs what this machine lacks is left out, with the reason.
"""

import json
import os
import re
import shlex
import subprocess

import prepare
from measure import Failed, run, spread, with_spread

HEADS = ["", "figure (least-most)", "goal"]
# A shell that counts: it goes on for longer than any part of it that is recorded.
COUNTING = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done"


def decisions(release, rounds, quick):
    """Misses a second that policies decide on."""
    misses, settings = (10_000_000, 20) if quick else (100_000_000, 100)
    few = min(misses, 20_000_000)
    alone = json.loads(run([release / "examples" / "misses", str(few), "20000", "1", str(rounds)])["output"])
    rows, results = [], {}
    for policy, rates in alone["policies"].items():
        figure = spread(rates)
        goal = "50 or more" if policy != "first-touch" else ""
        rows.append([f"{policy}: million misses/s on one core", with_spread(figure, 1e6), goal])
        results[policy] = {"misses_per_second": figure}
    swept = json.loads(run([release / "examples" / "misses", str(misses), "20000", str(settings), "1"])["output"])
    rate = misses * swept["settings"] / swept["sweep_seconds"]
    cores = os.cpu_count()
    title = f"{swept['settings']} settings over {misses / 1e6:g} million misses on {cores} cores: million misses/s a core"
    rows.append([title, f"{rate / cores / 1e6:.1f}", "50 or more"])
    rows.append(["the same: seconds", f"{swept['sweep_seconds']:.1f}", ""])
    results["sweep"] = swept
    return rows, results


def lookup(release, rounds):
    """A word of replicated data by handle, against a plain pointer."""
    output = run([release / "examples" / "lookup", str(10 * rounds + 1)])["output"]
    figures = {}
    for name, *numbers in re.findall(r"^(.+): ([\d.]+) ns \(([\d.]+) to ([\d.]+)\)$", output, re.MULTILINE):
        median, least, most = map(float, numbers)
        figures[name] = {"median": median, "least": least, "most": most}
    plain = figures["plain pointer"]
    rows = []
    for name, figure in figures.items():
        rows.append([f"replicas: {name}, ns", with_spread(figure, digits=2), ""])
        if name == "a region for each word, without a guard":
            rows.append(["replicas: that, less the plain pointer, ns", f"{figure['median'] - plain['median']:.2f}", "below 2"])
    return rows, figures


def moves(release, rounds, in_guest):
    """Moving pages as the live host does, against one call of the kernel's for all of them."""
    program = release / "examples" / "moves"
    counts = ["11", "4096"] if in_guest else [str(10 * rounds + 1), "8192"]
    command = [program, *counts]
    if in_guest:
        command = [prepare.ROOT / "guest" / "run", "--nodes", "2", "--", *command]
    output = run(command)["output"]
    figures = json.loads(output[output.index("{") :])
    kernel, ours = spread(figures["kernel"]), spread(figures["ours"])
    ratio = spread([one / other for one, other in zip(figures["ours"], figures["kernel"])])
    where = "in a guest of 2 nodes, emulated" if in_guest else "here"
    if figures["nodes"] == 1:
        where += ", one node: looked at, not copied"
    rows = [
        [f"moves ({where}): move_pages, ns a page", with_spread(kernel, digits=0), ""],
        [f"moves ({where}): ours, ns a page", with_spread(ours, digits=0), ""],
        [f"moves ({where}): ours / move_pages", with_spread(ratio, digits=2), "1.2 or less" if figures["nodes"] > 1 else ""],
    ]
    return rows, {"nodes": figures["nodes"], "kernel_ns": kernel, "ours_ns": ours, "ratio": ratio}


def watching(release, rounds, quick):
    """Processor time of watching a process of 64 MiB that rests, and one that touches all of it all the time."""
    seconds = "5" if quick else "10"
    runs = [json.loads(run([release / "examples" / "watching", seconds])["output"]) for _ in range(min(rounds, 3))]
    rows, results = [], {}
    for what, title, goal in (("rests", "at rest", "below 1"), ("touches", "while sampling", "below 3")):
        source = runs[0][what]["source"]
        own = spread([one[what]["own"] for one in runs])
        kernel = [one[what]["kernel"] for one in runs]
        rows.append([f"watching by {source}, {title}: % of a core", with_spread(own, digits=2), goal])
        if None not in kernel:
            rows.append(["  the kernel's threads beside it", with_spread(spread(kernel), digits=2), ""])
        results[what] = {"source": source, "own_percent": own, "kernel_percent": kernel}
    return rows, results


def whole_system(out, rounds, quick):
    """References a second of a whole machine that are recorded and written to disk."""
    references = 50_000_000 if quick else 200_000_000
    trace = out / "whole-system.dtr"
    command = [prepare.ROOT / "capture" / "qemu" / "run", "-o", trace, "--references", str(references), "--nodes", "1"]
    command += ["--timeout", "200", "--", "/bin/busybox", "sh", "-c", COUNTING]
    rates = []
    for _ in range(1 if quick else min(rounds, 3)):
        rates.append(recorded(command))
        trace.unlink(missing_ok=True)
    figure = spread(rates)
    return [["a whole machine recorded: million references/s", with_spread(figure, 1e6), "30 or more"]], figure


def recorded(command):
    """The rate that the plugin reports. The program in the guest need not come to its end."""
    words = list(map(str, command))
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    report = re.search(r"\{.*\}", done.stderr, re.DOTALL)
    if not report:
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise Failed(f"{shlex.join(words)}: exit code {done.returncode}: {said[0]}")
    report = json.loads(report.group(0))
    return report["references"] / report["seconds"]


def measure(release, out, rounds, quick, progress):
    """All rows, all figures, and what could not be measured with its reason."""
    parts = [
        ("decisions", lambda: decisions(release, rounds, quick)),
        ("lookup", lambda: lookup(release, rounds)),
        ("moves", lambda: moves(release, rounds, False)),
        ("moves in a guest", lambda: moves(release, rounds, True)),
        ("watching", lambda: watching(release, rounds, quick)),
        ("whole system", lambda: whole_system(out, rounds, quick)),
    ]
    rows, results, lacking = [], {}, []
    for name, part in parts:
        progress(name)
        try:
            more, figures = part()
        except (Failed, OSError, ValueError) as failure:
            lacking.append(f"skipped: {name}: {failure}")
            continue
        rows += more
        results[name] = figures
    return rows, results, lacking
