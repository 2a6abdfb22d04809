"""Who shares what: what the graph of the threads that share data costs beside the plain simulation."""

import re

from measure import run, spread, with_spread

# The goal of the graph: so many times the plain simulation, at most.
GOAL = 1.3


def graphs(release, millions, rounds, folder):
    """Rows and figures: seconds with the graph over seconds without, round by round, on four cpus."""
    program = release / "examples" / "speed"

    def rate(stream, case):
        text = run([program, str(millions), stream, case, folder])["output"]
        return float(re.search(r"([0-9.]+) million references a second", text)[1])

    rows, results = [], {}
    for stream in ("hot", "mixed", "random"):
        for data, plain, graph in (("own data", "four-own", "own-graph"), ("shared data", "four-shared", "shared-graph")):
            ratios = [rate(stream, plain) / rate(stream, graph) for _ in range(rounds)]
            figure = spread(ratios)
            rows.append([f"{stream}, {data}", with_spread(figure, 1, 2), GOAL])
            results[f"{stream}, {data}"] = {"ratio": figure, "goal": GOAL}
    return rows, results
