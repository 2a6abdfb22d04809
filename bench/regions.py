"""Policy `regions`: touches of closed pages a second, and a run under it against the plain simulation."""

import json

from measure import interleaved, run, spread, with_spread

# Goals of a touch that the policy hears of, and of a run.
TOUCHES = "10 or more"
TIMES = "2 or less"
# Runs are shorter than the paper's, and so are times.
SET = ["period=20000", "share=100", "scan=2000"]


def touches(release, rounds):
    """Rows and figures: millions of touches a second of processor time, and pages that are opened and closed at each."""
    runs = [json.loads(run([release / "examples" / "regions_speed", "0.3"])["output"]) for _ in range(rounds)]
    rows, results = [], {}
    for mix in runs[0]:
        figure = spread([one[mix][0] for one in runs])
        pages = runs[0][mix][1]
        rows.append([f"{mix}: million touches/s", with_spread(figure, 1e6, 2), TOUCHES])
        rows.append([f"{mix}: pages opened and closed a touch", f"{pages:.1f}", ""])
        results[mix] = {"touches_per_second": figure, "pages_per_touch": pages}
    return rows, results


def runs(domicile, traces, machine, rounds, progress):
    """Rows and figures: seconds of a trace under first touch alone, and under `regions` alone."""
    rows, results = [], {}
    for name, references, trace in traces:
        command = [domicile, "simulate", trace, "--machine", machine, "--json", "--no-classes"]
        sets = [word for value in SET for word in ("--set", f"regions.{value}")]
        contenders = [
            (f"{name}: first touch", references, lambda command=command: run([*command, "--policy", "first-touch"])),
            (f"{name}: regions", references, lambda command=command: run([*command, "--policy", "regions", *sets])),
        ]
        measured = interleaved(contenders, rounds, progress)
        plain, ours = (measured[contender[0]]["seconds"]["median"] for contender in contenders)
        for contender in contenders:
            seconds = measured[contender[0]]["seconds"]
            goal = TIMES if contender[0].endswith("regions") else ""
            rows.append([f"{contender[0]}, seconds", with_spread(seconds, digits=2), ""])
            if goal:
                rows.append([f"{name}: regions / first touch", f"{ours / plain:.2f}", goal])
        results.update(measured)
    return rows, results
