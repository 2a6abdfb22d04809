"""What the benchmarks need before the clock starts: programs built, peers found, inputs written."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
KINDS = ["hot", "mixed", "random"]


class Missing(Exception):
    """Something that can be installed is not."""


def build(target):
    """Release builds of what is measured; returns the path of each program."""
    cargo = ["cargo", "build", "--release", "--quiet"]
    subprocess.run([*cargo, "-p", "domicile", "--bin", "domicile"], cwd=ROOT, check=True)
    subprocess.run([*cargo, "-p", "domicile-sim", "--example", "synthetic", "--example", "misses"], cwd=ROOT, check=True)
    subprocess.run([*cargo, "-p", "domicile-threads", "--example", "null"], cwd=ROOT, check=True)
    subprocess.run([*cargo, "-p", "domicile-measured", "--example", "measure"], cwd=ROOT, check=True)
    subprocess.run([*cargo, "-p", "domicile-policy", "--example", "slots_speed", "--example", "hints_speed", "--example", "regions_speed"], cwd=ROOT, check=True)
    live = [word for name in ("handover", "recolor", "moves", "watching") for word in ("--example", name)]
    subprocess.run([*cargo, "-p", "domicile-live", *live], cwd=ROOT, check=True)
    subprocess.run([*cargo, "-p", "domicile-replicas", "--example", "lookup"], cwd=ROOT, check=True)
    release = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    plain = target / "plain_loop"
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, "-O2", "-march=native", "-o", plain, BENCH / "plain_loop.c"], check=True)
    return {
        "domicile": release / "domicile",
        "synthetic": release / "examples" / "synthetic",
        "plain_loop": plain,
        "release": release,
    }


def memlat(target):
    """The program of random reads in regions of memory."""
    return built(target, ROOT / "workloads/memlat/memlat.c")


def neighbor(target):
    """The program that reads at random until it is stopped."""
    return built(target, ROOT / "bench/programs/neighbor.c")


def built(target, source):
    program = target / source.stem
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-o", program, source], check=True)
    return program


def synthetic(programs, folder, kind, references, threads=1, sharing="own", raw=False):
    """A made-up trace, and its references in raw form; kept from run to run."""
    name = f"{kind}-{references}-{threads}-{sharing}"
    trace, plain = folder / f"{name}.trace", folder / f"{name}.raw"
    if not trace.exists() or (raw and not plain.exists()):
        half = folder / f"{name}.part"
        command = [programs["synthetic"], kind, str(references), str(threads), sharing, half]
        subprocess.run(command + ([plain] if raw else []), check=True)
        half.rename(trace)
    return trace, plain


def pycachesim():
    """A python with pycachesim, or None."""
    try:
        subprocess.run(["sh", ROOT / "crates/sim/tests/oracles/pycachesim.sh"], check=True)
    except subprocess.CalledProcessError:
        return None
    return ROOT / "target/oracles/pycachesim/bin/python"


def fixed_addresses(command):
    """The same addresses and environment in each run, so that two runs of a program make the same references."""
    clean = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return ["setarch", "-R", *command], clean


def text_input(folder, kibibytes):
    """Text that compresses a little, always the same."""
    path = folder / f"text-{kibibytes}.txt"
    state = 7
    lines = []
    size = 0
    while size < kibibytes << 10:
        state = (state * 1664525 + 1013904223) % (1 << 32)
        line = f"{state:08x} {'abcdefghij'[: (state >> 16) % 10]}\n"
        lines.append(line)
        size += len(line)
    path.write_text("".join(lines))
    return path


def lackey_trace(programs, folder, text):
    """The references, instruction fetches included, of gzip on a text; and how many there are."""
    trace = folder / f"gzip-{text.stem}.trace"
    count = folder / f"gzip-{text.stem}.count"
    if not (trace.exists() and count.exists()):
        if not shutil.which("valgrind"):
            raise Missing("valgrind is not installed")
        log = folder / "lackey.log"
        command = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log}", "gzip", "-c", text]
        command, env = fixed_addresses(command)
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(log, "rb") as lines:
            references = sum(1 for line in lines if line[:3] in (b"I  ", b" L ", b" S ", b" M "))
        subprocess.run(
            [programs["domicile"], "import", "--format", "lackey", log, "-o", trace],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        log.unlink()
        count.write_text(str(references))
    return trace, int(count.read_text())
