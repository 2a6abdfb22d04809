"""Cache slots: how many requests a second the allocator of colors decides."""

import json

from measure import run, spread, with_spread


def requests(release, rounds):
    """Rows and figures: requests a second of processor time, by mix of requests."""
    program = release / "examples" / "slots_speed"
    runs = [json.loads(run([program, "0.3"])["output"]) for _ in range(rounds)]
    figures = {mix: spread([one[mix] for one in runs]) for mix in runs[0]}
    rows = [[mix, with_spread(figure, 1e6, 2), f"{1e9 / figure['median']:.0f}"] for mix, figure in figures.items()]
    return rows, {mix: {"requests_per_second": figure} for mix, figure in figures.items()}
