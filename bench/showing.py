"""How long it takes to show a result (of SQLite's join): its page, the page in a browser, and profiles for other viewers; and what the samples of call
stacks that profiles need cost a recording.
"""

import pathlib
import re
import tempfile

import prepare
import recording
from measure import interleaved, run, spread, with_spread

MACHINE = "zen3-milan"
FORMS = ["pprof", "folded", "perfetto", "parquet", "callgrind"]


def call_stacks(domicile, folder, rounds, quick, report):
    """Recording with and without samples of call stacks: rows for the table, and all figures by program."""
    rows, results = [], {}
    for name, command, _ in recording.programs(folder, quick):
        trace = folder / f"{name}.dtr"

        def record(*options):
            trace.unlink(missing_ok=True)
            return run([domicile, "record", *options, "-o", trace, "--", *command])

        contenders = [("with", 1, record), ("without", 1, lambda: record("--no-call-stacks"))]
        measured = interleaved(contenders, rounds, lambda text: report(f"{name}, {text}"))
        both = [measured[kind]["seconds"]["all"] for kind in ("with", "without")]
        # Pair by pair: what slowed a round slowed both.
        cost = spread([100 * (a / b - 1) for a, b in zip(*both)])
        rows.append([name, *(with_spread(measured[kind]["seconds"], digits=2) for kind in ("without", "with")), with_spread(cost)])
        results[name] = {**measured, "cost_percent": cost}
        trace.unlink()
    return rows, results


def shown(domicile, folder, rounds, quick, report):
    """A page and profiles of one advice: rows for the table, and all figures."""
    trace, advice, join = (folder / name for name in ("shown.dtr", "shown.json", "shown.sql"))
    join.write_text(recording.JOIN.format(n=5_000 if quick else 60_000))
    for file in (trace, advice):
        file.unlink(missing_ok=True)
    run([domicile, "record", "-o", trace, "--", "sqlite3", ":memory:", f".read {join}"])
    report("advice")
    run([domicile, "advise", trace, "--machine", MACHINE, "-o", advice])
    references = re.search(r'"references":(\d+)', advice.read_text()).group(1)
    with tempfile.TemporaryDirectory() as place:
        page = pathlib.Path(place) / "page.html"
        show = lambda *options: run([domicile, "report", advice, "--force", *options])
        contenders = [("page", 1, lambda: show("--html", page))]
        for form in FORMS:
            contenders.append((form, 1, lambda form=form: show("--format", form, "-o", pathlib.Path(place) / form)))
        measured = interleaved(contenders, rounds, report)
        sizes = {"page": page.stat().st_size, **{form: bytes_of(pathlib.Path(place) / form) for form in FORMS}}
        opened = [once for _ in range(rounds) if (once := opening(page)) is not None]
    rows = [[name, with_spread(measured[name]["seconds"], digits=3), f"{sizes[name] / 1e6:.2f}"] for name in ["page", *FORMS]]
    results = {name: {**measured[name], "bytes": sizes[name]} for name in measured}
    if opened:
        results["opened"] = {"seconds": spread(opened)}
        rows.append(["page, until it is drawn in Chromium", with_spread(spread(opened), digits=3), "-"])
    return int(references), rows, results


def bytes_of(path):
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def opening(page):
    """Seconds from asking for the page until its pictures are drawn; None without a browser."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return None
    options = webdriver.chrome.options.Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.get(page.as_uri())
        # The script of the pictures runs before the page is loaded.
        ended = driver.execute_script("const [of] = performance.getEntriesByType('navigation'); return of.loadEventEnd || of.domComplete")
        drawn = driver.execute_script("return [...document.querySelectorAll('.drawing')].every((of) => of.querySelector('canvas'))")
        return ended / 1000 if drawn else None
    finally:
        driver.quit()
