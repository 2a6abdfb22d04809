"""Builds the programs of the pairs, one for each source, and makes the inputs of those that others wrote."""

import pathlib
import shlex
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = HERE / "programs"

C = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{PROGRAMS}", f"-I{ROOT / 'capture' / 'valgrind'}"]


# One thread of OpenBLAS, and small pages in numpy, whoever calls them: a pair changes one thing.
FIXED = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "NUMPY_MADVISE_HUGEPAGE": "0"}


def settings(own):
    return [f"{name}={value}" for name, value in {**FIXED, **own}.items()]


class Failed(Exception):
    """A command that makes something did not end well."""


# No command of a pair takes as long on any machine that it is worth running on.
SECONDS_MAX = 1800


def call(command, cwd=None):
    try:
        done = subprocess.run(
            list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{shlex.join(map(str, command))}: not done after {SECONDS_MAX} seconds") from late
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise Failed(f"{shlex.join(map(str, command))}: exit code {done.returncode}: {said}")
    return done.stdout


class Builder:
    def __init__(self, out):
        self.out = out
        self.inputs = out / "inputs"
        self.inputs.mkdir(parents=True, exist_ok=True)
        self.timed = out / "timed.o"
        self.made = {}
        call(["gcc", *C, "-c", PROGRAMS / "timed.c", "-o", self.timed])

    def program(self, pair):
        if pair.source is None:
            return None
        if pair.source not in self.made:
            source = PROGRAMS / pair.source
            program = self.out / (source.stem + ".program")
            call(self.compiling(source, program, pair.libraries))
            self.made[pair.source] = program
        return self.made[pair.source]

    def compiling(self, source, program, libraries):
        flags, link = [], []
        if libraries:
            flags = call(["pkg-config", "--cflags", *libraries]).replace("-I/", "-isystem/").split()
            link = call(["pkg-config", "--libs", *libraries]).split()
        match source.suffix:
            case ".c":
                return ["gcc", *C, *flags, source, self.timed, "-o", program, *link]
            case ".cpp":
                return ["g++", "-std=c++20", *C, *flags, source, self.timed, "-o", program, "-pthread", *link]
            case ".f90":
                return ["gfortran", "-O2", "-g", "-Wall", "-Werror", source, self.timed, "-o", program]
            case ".rs":
                linked = ["-C", f"link-arg={self.timed}"]
                return ["rustc", "--edition", "2024", "-O", "-g", "-D", "warnings", *linked, source, "-o", program]
        raise Failed(f"{source}: not known how to build it")

    def commands(self, pair):
        """The commands of a pair by side: `before`, `after`, and their `start-up`, one each where surroundings differ."""
        program = self.program(pair)
        if pair.prepare:
            call(self.filled(pair.prepare, program), self.inputs)
        sides = {"before": (pair.before, pair.before_env), "after": (pair.after, pair.after_env)}
        if pair.start_up and pair.before_env == pair.after_env:
            sides["start-up"] = (pair.start_up, pair.before_env)
        elif pair.start_up:
            sides |= {f"{side} start-up": (pair.start_up, env) for side, (_, env) in list(sides.items())}
        return {side: ["env", *settings(env), *self.filled(line, program)] for side, (line, env) in sides.items()}

    def filled(self, line, program):
        return [word.replace("{program}", str(program)).replace("{truth}", str(HERE)) for word in line]
