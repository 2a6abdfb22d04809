"""What Python and sweeps cost: a simulation from Python beside the command's, a table of a million rows as Arrow, sweeps on one cpu and on two,
two hundred settings beside one, and a Dask cluster beside none.
"""

import pathlib
import subprocess

import prepare
from measure import interleaved, run, spread, with_spread

MACHINE = "zen3-milan"
NUMA = "flash-cc-numa"
SETTINGS = 200
POINTS = 32

SIMULATE = "import sys, domicile; domicile.simulate(sys.argv[1], sys.argv[2], 'page-coloring')"
# Pages of a run, each a row: a million of them.
ARROW = """
import sys, time, numpy, pyarrow, domicile
rows = int(sys.argv[1])
pages = numpy.arange(rows, dtype=numpy.uint64) * numpy.uint64(4096)
result = domicile.simulate(domicile.Trace.from_arrays(pages), "simos-r4400", "page-coloring", by=["page"])
tables = sorted(result.tables, key=len)
# What pyarrow loads at its first table is not measured.
pyarrow.table(tables[0])
table = tables[-1]
assert len(table) >= rows, len(table)
begun = time.perf_counter()
assert pyarrow.table(table).num_rows == len(table)
print(time.perf_counter() - begun)
"""
CLUSTER = """
import sys, time, distributed, domicile
if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        client.submit(len, "warm").result()
        begun = time.perf_counter()
        domicile.sweep(sys.argv[1], sys.argv[2], dask=client, batch=1)
        print(time.perf_counter() - begun)
"""


def python():
    """The interpreter with the release wheel, and those that take its tables."""
    root = prepare.ROOT
    venv = root / "target" / "oracles" / "python-bench"
    subprocess.run([root / "python" / "wheel", "release"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not (venv / "bin" / "python").exists():
        subprocess.run(["python3", "-m", "venv", venv], check=True)
    pip = [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "numpy", "pyarrow", "distributed==2026.8.0"], check=True)
    [wheel] = (root / "build" / "wheels").glob("domicile-*.whl")
    subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    return venv / "bin" / "python"


def specification(path, trace, policies, settings, fast):
    triggers = ", ".join(str(16 + 4 * number) for number in range(settings))
    path.write_text(
        f"traces = ['{trace}']\nmachines = ['{NUMA}']\npolicies = {policies}\nfast = {str(fast).lower()}\n[set]\n'migrate.trigger' = [{triggers}]\n"
    )
    return path


def measured(domicile, folder, trace, small, references, rounds, quick, report):
    """Rows for the table (what, figure, bound), and all figures."""
    interpreter = python()
    rows, results = [], {}

    def pairs(one, other):
        return spread([a / b for a, b in zip(one["seconds"]["all"], other["seconds"]["all"])])

    def add(name, figure, bound, figures):
        rows.append([name, figure, bound])
        results[name] = figures

    both = interleaved(
        [
            ("python", 1, lambda: run([interpreter, "-c", SIMULATE, trace, MACHINE])),
            ("command", 1, lambda: run([domicile, "simulate", trace, "--machine", MACHINE, "--policy", "page-coloring", "--json"])),
        ],
        rounds,
        report,
    )
    cost = pairs(both["python"], both["command"])
    add(f"`domicile.simulate` beside the command, {references / 1e6:g} million references, times", with_spread(cost, digits=3), "1.05", cost)

    report("Arrow")
    arrow = spread([1000 * float(run([interpreter, "-c", ARROW, str(1_000_000)])["output"]) for _ in range(rounds)])
    add("a table of a million rows as Arrow, ms", with_spread(arrow, digits=1), "50", arrow)

    def swept(spec, *options):
        output = folder / "swept.parquet"
        output.unlink(missing_ok=True)
        return run([domicile, "sweep", spec, "-o", output, *options])

    points = specification(folder / "points.toml", small, ["migrate"], POINTS, False)
    on = interleaved(
        [("two", 1, lambda: swept(points, "--threads", "2")), ("one", 1, lambda: swept(points, "--threads", "1"))], rounds, report
    )
    part = pairs(on["two"], on["one"])
    add(f"{POINTS} points on two cpus beside one, times", with_spread(part, digits=2), "0.6", part)
    # What two cpus of this machine are worth at all: they share its memory, and often a core.
    one = f"'{domicile}' simulate '{small}' --machine {NUMA} --policy migrate --json --quiet"
    alone = interleaved(
        [("at once", 1, lambda: run(["sh", "-c", f"{one} & {one} & wait"])), ("in turn", 1, lambda: run(["sh", "-c", f"{one}; {one}"]))],
        rounds,
        report,
    )
    part = pairs(alone["at once"], alone["in turn"])
    add("two processes that simulate at once beside in turn, times", with_spread(part, digits=2), "", part)

    many = specification(folder / "many.toml", trace, ["migrate"], SETTINGS, True)
    beside = interleaved(
        [
            ("sweep", 1, lambda: swept(many)),
            ("one", 1, lambda: run([domicile, "simulate", trace, "--machine", NUMA, "--policy", "migrate", "--json"])),
        ],
        rounds,
        report,
    )
    times = pairs(beside["sweep"], beside["one"])
    add(f"{SETTINGS} settings (`fast`) beside one run, {references / 1e6:g} million references, times", with_spread(times, digits=2), "8", times)

    script = folder / "cluster.py"
    script.write_text(CLUSTER)
    costs = []
    for number in range(rounds):
        report(f"cluster, round {number + 1}")
        output = folder / "cluster.parquet"
        output.unlink(missing_ok=True)
        there = float(run([interpreter, script, points, output])["output"].split()[-1])
        here = swept(points, "--threads", "1")["seconds"]
        costs.append(1000 * (there - here) / POINTS)
    cluster = spread(costs)
    add("a point on a Dask worker beside one here, ms more", with_spread(cluster, digits=1), "50", cluster)
    return rows, results
