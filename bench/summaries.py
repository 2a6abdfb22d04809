"""Summaries of parallel loops: what it costs to say them, to color by them, and to have them in a program."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess

import prepare
from measure import run, spread

COLORS = "12:4:65536"
PROGRAMS = prepare.BENCH / "programs"


def build(release, out):
    """The programs, linked with the library; two sizes of arrays."""
    cargo = ["cargo", "build", "--release", "--quiet", "-p", "domicile-capi", "-p", "domicile-preload"]
    subprocess.run(cargo, cwd=prepare.ROOT, check=True)
    folder = out / "summaries"
    folder.mkdir(exist_ok=True)
    for name in ("libdomicile.so", "libdomicile.so.0"):
        shutil.copy(release / "libdomicile.so", folder / name)
    built = {}
    headers = prepare.ROOT / "crates/capi/headers"
    for name, loops, pages in (("small", 20, 1), ("large", 20, 1024), ("many", 200, 1)):
        built[name] = folder / name
        link = [f"-L{folder}", "-ldomicile", f"-Wl,-rpath,{folder}"]
        defines = [f"-DLOOPS={loops}", f"-DPAGES={pages}"]
        command = [os.environ.get("CC", "gcc"), "-O2", f"-I{headers}", *defines, PROGRAMS / "loops.c", "-o", built[name], *link]
        subprocess.run(command, check=True)
    return folder, built


def saying(release, out, rounds):
    """Rows and figures: start-up and calls, alone and under `domicile run`."""
    folder, built = build(release, out)
    report = folder / "report.json"
    under = [release / "domicile", "run", "--json", "--force-colors", COLORS, "--policy", "cdpc", "--report", report, "--"]
    env = {**os.environ, "DOMICILE_PRELOAD": str(release / "libdomicile_preload.so"), "DOMICILE_SOCKET": "/nonexistent"}
    env.pop("DOMICILE_COLORS", None)
    alone, known, starts = [], [], {name: [] for name in built}
    for _ in range(rounds):
        alone.append(float(run([built["small"]])["output"]))
        for name, program in built.items():
            calls = float(run([*under, program], env=env)["output"])
            process = json.loads(report.read_text())["processes"][0]
            cdpc = process["cdpc"]
            start = cdpc["start"]
            starts[name].append(
                {
                    "apart_us": process["start_us"] - start["placing_us"],
                    "pages": start["pages"],
                    "pages_per_second": start["pages"] / max(start["placing_us"], 1) * 1e6,
                    "honoured": cdpc["honoured"] / cdpc["pages"],
                }
            )
            if name == "small":
                known.append(calls)
    rows = [["a call, nobody listens, ns", f"{spread(alone)['median']:.1f}"]]
    rows.append(["a call that is known, under domicile run, ns", f"{spread(known)['median']:.0f}"])
    for name, title in (
        ("small", "20 loops of 7 arrays of 1 page: start-up without placement, us"),
        ("many", "200 loops of 7 arrays of 1 page: start-up without placement, us"),
        ("large", "20 loops of 7 arrays of 1,024 pages: start-up without placement, us"),
    ):
        rows.append([title, f"{statistics.median(one['apart_us'] for one in starts[name]):.0f}"])
    large = starts["large"]
    rows.append(["the last: pages placed a second", f"{statistics.median(one['pages_per_second'] for one in large):,.0f}"])
    rows.append(["the last: hints honoured", f"{statistics.median(one['honoured'] for one in large):.4f}"])
    return rows, {"call_ns": spread(alone), "known_call_ns": spread(known), "starts": starts}


def guards(out, rounds):
    """Rows and figures: a fork with and without the guard that the compiler puts before it; None without the compiler."""
    compiler = prepare.ROOT / "compiler/bin/domicile-cc"
    plugin = os.environ.get("DOMICILE_PLUGIN", prepare.ROOT / "build/compiler/libdomicile_compiler.so")
    if not pathlib.Path(plugin).exists() or not shutil.which("clang-19"):
        return None
    folder = out / "summaries"
    env = {**os.environ, "DOMICILE_LIBRARY": str(folder)}
    common = ["-O2", "-fopenmp", PROGRAMS / "forks.c", "-o"]
    with_guard, without, again = folder / "guarded", folder / "unguarded", folder / "unguarded-again"
    subprocess.run([compiler, *common, with_guard], check=True, env=env)
    for program in (without, again):
        subprocess.run([compiler, "--domicile-summary=no", *common, program], check=True, env=env)
    programs = {"with the guard": with_guard, "without": without, "without, once more": again}
    # A team of one: nothing is cheaper to fork, so nothing shows the guard better. In turn, many short runs: what else the
    # machine does falls on all.
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": str(folder)}
    taken = {name: [] for name in programs}
    for _ in range(rounds * 5):
        for name, program in programs.items():
            taken[name].append(float(run([program], env=alone)["output"]))
    rows = [[name, f"{statistics.median(all_):.0f}", f"{min(all_):.0f}"] for name, all_ in taken.items()]
    return rows, {name: spread(all_) for name, all_ in taken.items()}
