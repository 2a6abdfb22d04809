"""Locality threads: what one costs beside other libraries' tasks, and what the order gains on four programs.

Costs are of a null thread, forked and run, in processor time. Programs are those of workloads/, in the same
versions as the paper's, each with its data larger than the cache that a process really gets here.
"""

import json
import os
import pathlib
import subprocess

import prepare
from measure import interleaved, run, spread, with_spread

# Program, options for all versions, the version that the others are compared with, and the others: version, workers.
PROGRAMS = [
    ("matmul", ["--n", "2048"], "interchanged", [("transposed", 1), ("tiled", 1), ("threaded", 1), ("threaded", 2), ("gcc", 1), ("polly", 1), ("dgemm", 1)]),
    ("matmul", ["--n", "1024"], "interchanged", [("threaded", 1), ("threaded", 2)]),
    ("pde", [], "regular", [("conscious", 1), ("threaded", 1), ("skewed", 1), ("parallel", 1), ("parallel", 2)]),
    ("sor", ["--columns", "4"], "untiled", [("threaded", 1), ("skewed", 1), ("parallel", 1), ("parallel", 2)]),
    ("sor", [], "untiled", [("tiled", 1), ("threaded", 1)]),
    ("nbody", [], "unthreaded", [("threaded", 1), ("threaded", 2)]),
]
SMALL = {"matmul": ["--n", "512"], "pde": ["--n", "1025"], "sor": ["--n", "1001"], "nbody": ["--n", "16000"]}


def costs(release, folder, rounds):
    """Rows and figures of null threads and tasks, and of the memory miss that they are measured by."""
    output = run(pinned([release / "examples" / "null", str(rounds), "--json"]))["output"]
    figures = {line["item"]: line for line in map(json.loads, output.splitlines())}
    miss = json.loads(run(pinned([release / "examples" / "measure", "quick", "--json"]))["output"])["memory_ns"]
    tasks = task_group(folder, rounds)
    if tasks:
        figures["oneTBB task_group"] = {"item": "oneTBB task_group", "cpu_ns": tasks["median"], "cpu_ns_min": tasks["least"]}
    base = figures["in order, all"]["cpu_ns"]
    rows = []
    for name, figure in figures.items():
        if "cpu_ns" in figure:
            ns = figure["cpu_ns"]
            rows.append([name, f"{ns:.1f}", f"{figure['cpu_ns_min']:.1f}", f"{ns / base:.1f}", f"{ns / miss:.2f}"])
        else:
            rows.append([name, f"{figure['bytes_per_thread']:.2f} bytes", "", "", ""])
    figures["memory miss"] = {"item": "memory miss", "cpu_ns": miss}
    rows.append(["a load from memory", f"{miss:.1f}", "", f"{miss / base:.1f}", "1.00"])
    return rows, figures


def task_group(folder, rounds):
    """Nanoseconds a null task of oneTBB, or None where it is not installed."""
    program = folder / "null_task_group"
    source = prepare.BENCH / "null_task_group.cpp"
    built = subprocess.run(["g++", "-O2", "-march=native", "-o", program, source, "-ltbb"], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print("skipped: oneTBB's task_group (install libtbb-dev)")
        return None
    lines = run(pinned([program, str(rounds)]))["output"].splitlines()
    return spread([float(line.split()[1]) for line in lines if line.startswith("warm")])


def programs(rounds, quick, report):
    """Rows and figures of the four programs: seconds of the measured part, and how many times as fast as the first."""
    built = pathlib.Path(prepare.ROOT / "workloads" / "build" / "time")
    rows, results = [], {}
    for program, options, first, others in PROGRAMS:
        chosen = SMALL[program] if quick else options
        versions = [(first, 1), *((version, workers) for version, workers in others if (built / f"{program}-{version}").exists())]
        contenders = []
        for version, workers in versions:
            words = [built / f"{program}-{version}", *chosen]
            if workers > 1:
                words += ["--workers", str(workers)]
            contenders.append((named(version, workers), 1, lambda words=words, workers=workers: inner(words, workers)))
        title = f"{program} {' '.join(chosen)}".strip()
        measured = interleaved(contenders, rounds, lambda text, title=title: report(f"{title}, {text}"))
        base = measured[first]["seconds"]["all"]
        for name, result in measured.items():
            gain = spread([a / b for a, b in zip(base, result["seconds"]["all"])])
            rows.append([f"{title}: {name}", with_spread(result["seconds"], digits=2), with_spread(gain, digits=2)])
            results[f"{title}: {name}"] = {"seconds": result["seconds"], "gain": gain}
    return rows, results


def named(version, workers):
    return version if workers == 1 else f"{version}, {workers} workers"


def inner(words, workers):
    """One run, with the seconds that the program reports of its measured part in place of the process's."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    result = run(pinned(words) if workers == 1 else words, env=env)
    return {**result, "seconds": json.loads(result["output"].splitlines()[-1])["seconds"]}


def pinned(words):
    """On the last cpu: the first ones serve most interrupts."""
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), *words]
