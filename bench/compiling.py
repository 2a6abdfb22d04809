"""How much longer the compiler takes with the passes: domicile-fc and domicile-cc beside flang and clang."""

import os
import re
import shutil
import statistics
import subprocess
import sys

import prepare
from measure import run, spread

WORKLOADS = prepare.ROOT / "workloads"
COMMANDS = prepare.ROOT / "compiler" / "bin"
PASSES = {
    "summaries": ["--domicile-align=no"],
    "summaries, alignment": [],
    "and prefetches": ["--domicile-prefetch"],
}


class Missing(Exception):
    """What there is nothing to measure with."""


def fortran():
    """The programs in Fortran, each with its files in the order of their modules, as the Makefile has them."""
    lists = dict(re.findall(r"^(\w+)\s*=\s*([\w ]+)$", (WORKLOADS / "Makefile").read_text(), re.MULTILINE))
    for program in lists["STEPPED"].split():
        files = [WORKLOADS / program / f"{name}.f90" for name in lists[program].split()]
        yield program, [WORKLOADS / "frame" / "stepped.f90", *files]


def c():
    """The programs in C with OpenMP."""
    for name in ("cg", "lu"):
        yield name, sorted((WORKLOADS / name).glob("*.c"))


def measure(folder, rounds, report):
    """Rows and figures: processor seconds for all files of a program to objects, and how many times plain that is."""
    flang = os.environ.get("DOMICILE_FLANG", "flang-new-19")
    clang = os.environ.get("DOMICILE_CLANG", "clang-19")
    for tool in (flang, clang, "llvm-config-19"):
        if not shutil.which(tool):
            raise Missing(f"there is no {tool}")
    subprocess.run(["make", "-s", "-C", prepare.ROOT / "compiler"], check=True, stdout=sys.stderr)
    include = [WORKLOADS / "frame", prepare.ROOT / "capture/valgrind", prepare.ROOT / "crates/capi/include"]
    programs = [(name, flang, COMMANDS / "domicile-fc", ["-cpp"], files) for name, files in fortran()]
    programs += [(name, clang, COMMANDS / "domicile-cc", [f"-I{each}" for each in include], files) for name, files in c()]
    rows, figures, all_ratios = [], {}, {name: [] for name in PASSES}
    for name, plain, ours, options, files in programs:
        objects = folder / "compiled" / name
        objects.mkdir(parents=True, exist_ok=True)
        options = [*options, "-O2", "-fopenmp", "-c", *files]
        contenders = {"plain": [plain, *options], **{key: [ours, *more, *options] for key, more in PASSES.items()}}
        seconds = {key: [] for key in contenders}
        for number in range(rounds + 1):
            for key, command in contenders.items():
                report(f"round {number} of {rounds}: {name}, {key}")
                took = run(command, cwd=objects)["cpu_seconds"]
                # The first round brings compilers and sources into memory.
                if number:
                    seconds[key].append(took)
        row = [f"{name} ({'Fortran' if plain == flang else 'C'})", f"{statistics.median(seconds['plain']):.2f}"]
        figures[name] = {"plain": {"cpu_seconds": spread(seconds["plain"])}}
        for key in PASSES:
            ratio = spread([one / other for one, other in zip(seconds[key], seconds["plain"])])
            figures[name][key] = {"cpu_seconds": spread(seconds[key]), "ratio": ratio}
            all_ratios[key].append(ratio["median"])
            row.append(f"{ratio['median']:.2f} ({ratio['least']:.2f}-{ratio['most']:.2f})")
        rows.append(row)
    rows.append(["median of all", "", *(f"{statistics.median(ratios):.2f}" for ratios in all_ratios.values())])
    return rows, figures
