"""Runs processes side by side and sums up what they took.

Contenders are run in turn, round after round, so that whatever else the machine does falls on all
of them; a figure is the median of the rounds, with the smallest and largest beside it.
"""

import os
import statistics
import subprocess
import time


class Failed(Exception):
    """A process that was to be measured did not end well."""


def run(command, cwd=None, env=None):
    """Seconds, processor seconds with those of its children, peak resident bytes, standard output and error of one process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # Outputs are a few kilobytes: they fit the pipes, so the order of reading does not matter.
    output = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    if process.returncode != 0:
        text = errors.decode(errors="replace").strip()
        raise Failed(f"{' '.join(map(str, command))}: exit code {process.returncode}: {text[-2000:]}")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_bytes": usage.ru_maxrss * 1024,
        "output": output.decode(),
        "errors": errors.decode(errors="replace"),
    }


def interleaved(contenders, rounds, report=lambda text: None):
    """`contenders`: a list of (name, units of work, function that runs once and returns a run).

    Returns for each name the figures of all rounds and their median, least and most.
    """
    runs = {name: [] for name, _, _ in contenders}
    for number in range(rounds):
        for name, _, once in contenders:
            report(f"round {number + 1} of {rounds}: {name}")
            runs[name].append(once())
    results = {}
    for name, work, _ in contenders:
        seconds = [one["seconds"] for one in runs[name]]
        results[name] = {
            "work": work,
            "seconds": spread(seconds),
            "rate": spread([work / one for one in seconds]),
            "peak_bytes": spread([one["peak_bytes"] for one in runs[name]]),
            "output": runs[name][-1]["output"],
        }
    return results


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "all": values}


def table(title, heads, rows):
    """Text with aligned columns: the first to the left, the others to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = [title, ""]
    for row in [heads, *rows]:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def with_spread(figure, scale=1.0, digits=1):
    """`median (least-most)`."""
    median, least, most = (figure[key] / scale for key in ("median", "least", "most"))
    return f"{median:.{digits}f} ({least:.{digits}f}-{most:.{digits}f})"
