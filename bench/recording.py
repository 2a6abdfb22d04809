"""Recording, side by side with Valgrind's own tools: the empty one (`none`) and `lackey --trace-mem`.

Each program is run bare, under `none`, and recorded with its trace written and its symbols read, in turn. Lackey is
too slow for whole programs: it gets a small run of the same kind, and its time a reference is compared, the
start-up (lackey on `true`) taken off.
"""

import json
import shutil
import subprocess

import prepare
from measure import interleaved, run, spread

JOIN = """create table a(i integer primary key, x int);
create table b(i integer primary key, y int);
with recursive c(n) as (select 1 union all select n+1 from c where n<{n})
  insert into a select n, (n*7919)%{n} from c;
insert into b select i, (x*31)%{n} from a;
select count(*), sum(a.x*b.y) from a join b on a.x=b.i where b.y%3=0;
"""

VALGRIND = ["valgrind", "-q", "--vgdb=no", "--trace-children=yes"]


def measure(domicile, folder, rounds, quick, report):
    """Rows for the table, and all figures by program."""
    rows, results = [], {}
    for name, command, small in programs(folder, quick):
        trace = folder / f"{name}.dtr"
        record = [domicile, "record", "-o", trace, "--", *command]
        measured = interleaved(
            [
                ("bare", 1, lambda: run(command)),
                ("none", 1, lambda: run([*VALGRIND, "--tool=none", *command])),
                ("record", 1, lambda: run(record)),
            ],
            rounds,
            lambda text: report(f"{name}, {text}"),
        )
        info = json.loads(run([domicile, "trace", "info", trace, "--json"])["output"])
        references, size = info["references"], trace.stat().st_size
        # Pair by pair: what slowed a round slowed both.
        ratio = spread([a / b for a, b in zip(measured["record"]["seconds"]["all"], measured["none"]["seconds"]["all"])])
        seconds = {kind: measured[kind]["seconds"]["median"] for kind in measured}
        lackey = per_reference(folder, small, rounds, report) if small else None
        slower = lackey / (seconds["record"] / references) if lackey else None
        rows.append(
            [
                name,
                *(f"{seconds[kind]:.2f}" for kind in ("bare", "none", "record")),
                f"{ratio['median']:.2f} ({ratio['least']:.2f}-{ratio['most']:.2f})",
                f"{references / seconds['record'] / 1e6:.1f}",
                f"{size / references:.3f}",
                f"{slower:.0f}" if slower else "-",
            ]
        )
        for result in measured.values():
            result.pop("output", None)
        results[name] = {
            **measured,
            "record_to_none": ratio,
            "references": references,
            "trace_bytes": size,
            "lackey_seconds_a_reference": lackey,
            "lackey_to_record": slower,
        }
        trace.unlink()
    return rows, results


def programs(folder, quick):
    """Name, command, and a small run of the same kind for lackey."""
    source = prepare.BENCH / "programs" / "matmul.c"
    for level in ("O1", "O0"):
        subprocess.run(["gcc", f"-{level}", "-o", folder / f"matmul-{level}", source], check=True)
    for name, n in (("join", 10_000 if quick else 40_000), ("join-small", 600)):
        (folder / f"{name}.sql").write_text(JOIN.format(n=n))
    size = "192" if quick else "384"
    found = [
        ("matmul-O1", [folder / "matmul-O1", size], [folder / "matmul-O1", "48"]),
        ("matmul-O0", [folder / "matmul-O0", size], [folder / "matmul-O0", "32"]),
    ]
    if shutil.which("sqlite3"):
        read = lambda name: ["sqlite3", ":memory:", f".read {folder / name}"]
        found.append(("sqlite3-join", read("join.sql"), read("join-small.sql")))
    found.append(("gcc-O2", ["gcc", "-O2", "-c", "-o", folder / "unit.o", source], None))
    return found


def per_reference(folder, command, rounds, report):
    """Lackey's seconds for one reference beyond its start-up."""
    log = folder / "lackey.log"
    lackey = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--vgdb=no", f"--log-file={log}"]
    lines = {}

    def counted(name, what):
        result = run([*lackey, *what])
        with open(log, "rb") as text:
            lines[name] = sum(line.startswith((b" L", b" S", b" M")) for line in text)
        return result

    measured = interleaved(
        [("start", 1, lambda: counted("start", ["true"])), ("run", 1, lambda: counted("run", command))],
        min(rounds, 3),
        lambda text: report(f"lackey, {text}"),
    )
    log.unlink()
    seconds = measured["run"]["seconds"]["median"] - measured["start"]["seconds"]["median"]
    return seconds / (lines["run"] - lines["start"])
