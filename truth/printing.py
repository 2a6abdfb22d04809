"""The table of a run, as text and as a part of the book."""

import re
import statistics

import spread
from measure import table
from measuring import start_up

HEADS = ["pair", "change", "whose", "set", "measured (95 %)", "predicted", "sign", "within 20 %"]
WHOSE = ["ours", "library", "foreign"]

BEGIN = "<!-- table: truth/run --write-book -->"
END = "<!-- end of table -->"


def verdict(measured, predicted):
    """Whether the sign is right (None: the measurement has none, or nothing is predicted) and the ratio within 20 %."""
    if predicted is None:
        return {"sign": None, "within": None}
    sign = None
    if measured["least"] > 1:
        # What would print as 1.00 predicts no change.
        sign = predicted >= 1.005
    elif measured["most"] < 1:
        sign = predicted <= 0.995
    ratio = predicted / measured["ratio"]
    return {"sign": sign, "within": max(ratio, 1 / ratio) <= 1.2}


def number(value):
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def row(pair, result):
    measured, predicted = result["measured"], result.get("predicted")
    said = result["verdict"]
    cells = [pair.name, pair.kind, f"{pair.whose}: {pair.of}", pair.set]
    cells.append(f"{number(measured['ratio'])} ({number(measured['least'])}-{number(measured['most'])})")
    if predicted is None:
        return [*cells, "-", "-", "-"]
    sign = {None: "none measured", True: "right", False: "WRONG"}[said["sign"]]
    return [*cells, number(predicted["ratio"]), sign, "yes" if said["within"] else "no"]


def totals(results):
    """Lines that sum up: of all, of each half, and of what others wrote."""
    groups = [("all", lambda one: True)]
    groups += [(f"set {name}", lambda one, name=name: one["set"] == name) for name in ("build", "held")]
    groups += [(name, lambda one, name=name: one["whose"] == name) for name in WHOSE]
    lines = []
    for title, wanted in groups:
        some = [one for one in results.values() if wanted(one)]
        predicted = [one["verdict"] for one in some if one.get("predicted")]
        if not some:
            continue
        signs = [one["sign"] for one in predicted if one["sign"] is not None]
        line = f"{title}: {len(some)} pairs"
        if predicted:
            line += f", {len(predicted)} predicted; sign right in {sum(signs)} of {len(signs)} that have one"
            line += f"; ratio within 20 % in {sum(one['within'] for one in predicted)} of {len(predicted)}"
        lines.append(line)
    return lines


def sides(result):
    """Milliseconds of each side, measured and predicted, without its start-up."""
    seconds = {side: statistics.median(times) for side, times in result["measured"]["seconds"].items()}
    predicted = result["predicted"]["time_ns"]
    return {
        side: (
            (seconds[side] - start_up(seconds, side, 0)) * 1e3,
            (predicted[side] - start_up(predicted, side, 0)) / 1e6,
        )
        for side in ("before", "after")
    }


def missed(pairs, results):
    """The pairs whose sign is wrong or whose ratio is not within 20 %."""
    return [pair for pair in pairs if pair.name in results and False in results[pair.name]["verdict"].values()]


def which_side(result):
    """So that a reader sees which side the prediction misses."""
    said = [
        f"{side} {number(measured)} ms, predicted {number(predicted)} ({number(predicted / measured)} times)"
        for side, (measured, predicted) in sides(result).items()
        if measured > 0
    ]
    return "; ".join(said)


def text(pairs, results, about):
    rows = [row(pair, results[pair.name]) for pair in pairs if pair.name in results]
    title = f"Before / after, in time: {about['processor']}, {about['cores']} cpus, {about['date'][:10]}"
    whole = table(title, HEADS, rows) + "\n" + "\n".join(totals(results)) + "\n"
    lines = []
    for pair in missed(pairs, results):
        lines.append(f"{pair.name}: {which_side(results[pair.name])}")
        if pair.explained:
            lines.append(f"    {pair.explained}")
    lines += [f"{name}: failed: {why.splitlines()[0][:200]}" for name, why in about["failed"].items()]
    return whole + ("\nWhat missed, by side:\n" + "\n".join(lines) + "\n" if lines else "")


def chapter_part(pairs, results, about):
    """Markdown between the marks of docs/src/truth.md."""
    lines = [BEGIN, ""]
    lines.append(
        f"Run on {about['date'][:10]} on {about['processor']} with {about['cores']} cpus, Linux {about['kernel']},"
        f" {about['compilers']}, {about['valgrind']}, Domicile {about['commit']}; machine `{about['machine']}`,"
        f" {about['rounds']} rounds{about['load']}."
    )
    lines += ["", "| " + " | ".join(HEADS) + " |", "|" + " --- |" * len(HEADS)]
    lines += ["| " + " | ".join(row(pair, results[pair.name])) + " |" for pair in pairs if pair.name in results]
    lines += ["", *(f"- {line}" for line in totals(results))]
    found = spread.of_results(results)
    lines += [f"- {spread.said(found)}", ""] if found else [""]
    wrong = missed(pairs, results)
    if wrong:
        lines += ["## What missed, and why", ""]
        for pair in wrong:
            why = pair.explained or "Not explained yet."
            lines.append(f"- `{pair.name}`: {which_side(results[pair.name])}. {why}")
        lines.append("")
    if about["failed"]:
        lines += ["## What could not be run", ""]
        lines += [f"- `{name}`: {why.splitlines()[0][:200]}" for name, why in about["failed"].items()]
        lines.append("")
    return "\n".join([*lines, END])


def write_chapter(path, part):
    whole = path.read_text()
    changed, count = re.subn(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: part, whole, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{path}: has no place for the table")
    path.write_text(changed)
