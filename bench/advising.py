"""The full advice on real programs: how many references it takes in a second, beside counting alone.

The traces are recorded here: a product of matrices, accesses in no order (gathered, hashed, a list), SQLite, and the C
compiler. Counting is `simulate` of the
policy that the advice looks at closely, so that the ratio is what everything beyond totals costs.
"""

import json
import os
import shutil
import subprocess

import prepare
from measure import interleaved, run, spread, with_spread

# Who has other machines than this one can compare figures.
MACHINE = "zen4-genoa"
SQL = "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < {rows}) " \
    "insert into t select x, random() % 1000 from c; select sum(b) from t where a % 7 = 3; create index i on t(b);"
C = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { puts(\"\"); return 0; }\n"


def measure(programs, inputs, rounds, quick, report):
    """Rows and figures of the traces."""
    rows, results = [], {}
    window = "2M" if quick else "20M"
    for name, command in commands(programs, inputs, quick).items():
        trace = inputs / f"advice-{name}.trace"
        if not trace.exists():
            report(f"recording {name}")
            run([programs["domicile"], "record", "-q", "--from", "main", "--window", window, "-o", trace, "--", *command])
        shown = json.loads(run([programs["domicile"], "trace", "info", trace, "--json"])["output"])
        references = shown["references"]
        one = {**os.environ, "RAYON_NUM_THREADS": "1"}
        for cpus in (1, 4):
            model = ["--machine", MACHINE, "--cpus", str(cpus)]
            advise = [programs["domicile"], "advise", trace, *model, "--json"]
            baseline = json.loads(run(advise, env=one)["output"])["baseline"]
            count = [programs["domicile"], "simulate", trace, *model, "--policy", baseline, "--json"]
            contenders = [
                ("count", references, lambda count=count: run(count, env=one)),
                ("detail", references, lambda advise=advise, baseline=baseline: run([*advise, "--policy", baseline], env=one)),
                ("advice", references, lambda advise=advise: run(advise, env=one)),
            ]
            measured = interleaved(contenders, rounds, report)
            seconds = {what: result["seconds"]["all"] for what, result in measured.items()}
            for what, result in measured.items():
                over = spread([a / b for a, b in zip(seconds[what], seconds["count"])])
                label = f"{name}, {cpus} cpus: {what}"
                rows.append([label, with_spread(result["rate"], 1e6, digits=2), with_spread(over, digits=2)])
                results[label] = {**result, "over_counting": over}
    return rows, results


def commands(programs, inputs, quick):
    """What is recorded, of what there is here."""
    matmul = inputs / "advice-matmul"
    source = prepare.BENCH / "programs" / "matmul.c"
    subprocess.run(["gcc", "-O1", "-o", matmul, source], check=True)
    irregular = inputs / "advice-irregular"
    subprocess.run(["gcc", "-O2", "-g", "-o", irregular, prepare.BENCH / "programs" / "irregular.c"], check=True)
    size = "100000" if quick else "1000000"
    found = {
        "matmul": [matmul, "96" if quick else "256"],
        "gather": [irregular, "gather", size, "4"],
        "hash": [irregular, "hash", size, size],
        "list": [irregular, "list", size, "4"],
    }
    if sqlite := shutil.which("sqlite3"):
        found["sqlite3"] = [sqlite, ":memory:", SQL.format(rows=5_000 if quick else 50_000)]
    if compiler := shutil.which("gcc"):
        source = inputs / "advice.c"
        source.write_text(C)
        found["gcc"] = [compiler, "-O2", "-c", "-o", inputs / "advice.o", source]
    return found
