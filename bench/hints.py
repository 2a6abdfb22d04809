"""Hints of compiler-directed page coloring: how long they take for more and more pages, on one core."""

import json

from measure import run, spread, with_spread


def times(release, rounds):
    """Rows and figures: milliseconds of processor time, by program and pages; each four times as many as before."""
    found = json.loads(run([release / "examples" / "hints_speed", str(rounds)])["output"])
    rows, figures = [], {}
    for program, by_pages in found.items():
        before = None
        for pages in sorted(by_pages, key=int):
            took = spread(by_pages[pages])
            median = took["median"]
            growth = f"{median / before:.1f}" if before else ""
            rows.append([f"{program}, {int(pages):,} pages", with_spread(took, digits=1), f"{median * 1e6 / int(pages):.0f}", growth])
            figures[f"{program}, {pages} pages"] = {"milliseconds": took}
            before = median
    return rows, figures
