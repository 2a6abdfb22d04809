"""Hints of compiler-directed page coloring: how long they take for more and more pages, on one core."""

from measure import run, spread, with_spread

PROGRAMS = {
    "even": "stencil, even parts",
    "dealt": "pieces of 4 pages, dealt in turn",
    "single": "pieces of 1 page, dealt in turn",
    "ring": "a ring that fits the caches",
}
PAGES = [62_500, 250_000, 1_000_000, 4_000_000]


def times(release, rounds):
    """Rows and figures: milliseconds of processor time, by program and pages, each in a process of its own."""
    took = {(program, pages): [] for program in PROGRAMS for pages in PAGES}
    for _ in range(rounds):
        for (program, pages), all_rounds in took.items():
            found = run([release / "examples" / "hints_speed", program, str(pages)])
            all_rounds.append(float(found["output"]))
    rows, figures = [], {}
    for (program, pages), all_rounds in took.items():
        figure = spread(all_rounds)
        median = figure["median"]
        growth = "" if pages == PAGES[0] else f"{median / before:.1f}"
        name = f"{PROGRAMS[program]}, {pages:,} pages"
        rows.append([name, with_spread(figure), f"{median * 1e6 / pages:.0f}", growth])
        figures[name] = {"milliseconds": figure}
        before = median
    return rows, figures
