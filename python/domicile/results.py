"""Results as objects: of simulations, advice and comparisons."""

import functools
import html
import json

from . import _domicile


class Result:
    """A result: the outcomes of a simulation, an advice, or a comparison.

    `print()` shows one screen of it, a notebook the page of the report. `tables` are its tables, which polars, pandas, DuckDB and
    pyarrow take as they are; `data` is all of it, as `domicile --json` prints it.
    """

    def __init__(self, native):
        self._native = native

    @property
    def kind(self):
        """What it is of: "advice", "outcomes" or "comparison"."""
        return self._native.kind

    @functools.cached_property
    def data(self):
        """All of it, in dicts and lists: of a simulation a list with an outcome for each policy."""
        lines = self._native.to_json().splitlines()
        objects = [json.loads(line) for line in lines]
        return objects if self.kind == "outcomes" else objects[0]

    @functools.cached_property
    def tables(self):
        """Its tables, in the order in which they are shown."""
        return self._native.tables

    def table(self, title):
        """The first table whose title begins so, upper and lower case being the same.

        Raises KeyError, which names the tables that there are.
        """
        for table in self.tables:
            if table.title.lower().startswith(title.lower()):
                return table
        raise KeyError(f"no table begins with {title!r}; there are: {', '.join(repr(table.title) for table in self.tables)}")

    def to_json(self):
        """As the command line writes it: `domicile report` and `read` take it."""
        return self._native.to_json()

    def to_text(self, columns=100):
        """All of it as text."""
        return self._native.to_text(columns)

    def to_html(self):
        """One page that needs nothing else."""
        return self._native.to_html()

    def save(self, path):
        """Writes it as JSON, as the command line does: an outcome a line (JSON Lines) where it has several."""
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.to_json() + "\n")
        except OSError as error:
            raise _domicile.DomicileError(f"{path}: {error.strerror}") from error

    def __str__(self):
        return str(self._native)

    def __eq__(self, other):
        return self.to_json() == other.to_json() if isinstance(other, Result) else NotImplemented

    def __hash__(self):
        return hash(self.to_json())

    def __reduce__(self):
        return _restored, (self.to_json(),)

    def __repr__(self):
        return f"<Result: {self.kind}, {len(self.tables)} tables>"

    def _repr_html_(self):
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def _restored(text):
    return Result(_domicile.Result.from_json(text))


def simulate(trace, machine, policies=None, **options):
    """Simulates a trace on a machine under placement policies: a `Result` with an outcome for each.

    `trace`: a `Trace` or its file. `machine`: a `Machine`, a preset's name, a machine file, or "host". `policies`: a name or several;
    page-coloring where none is given. Options:

    set: parameters of policies, as in {"migrate.trigger": 64} or ["migrate.trigger=64"]
    changes: changes of the program's data, as `domicile simulate --change` takes them
    by: splits the counts, too; any of thread, structure, line, page, time, stack
    seed: of everything that is random
    cpus: gives the machine so many
    classes: whether misses are classified, which takes longer (True)
    """
    return Result(_domicile.simulate(_opened(trace), machine, policies, **lists(options)))


def advise(trace, machine="host", policies=None, **options):
    """Says what to change about a program so that it waits less for memory, and what that would save.

    As `simulate`; options are `set`, `seed`, `cpus`, and `exact` (causes and reuse from all of a long run, and not from samples).
    """
    return Result(_domicile.advise(_opened(trace), machine, policies, **lists(options)))


def compare(before, after, *, policy=None):
    """What is better after a change, and what is worse. `policy`: which outcome is compared, where a result has several."""
    if not (isinstance(before, Result) and isinstance(after, Result)):
        raise _domicile.DomicileError("two results are compared: give what `simulate`, `advise` or `read` returned")
    return Result(_domicile.compare(before._native, after._native, policy=policy))


def read(path):
    """A result that was saved, or that the command line wrote with --json or -o."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise _domicile.DomicileError(f"{path}: {error.strerror}") from error
    try:
        return Result(_domicile.Result.from_json(text))
    except _domicile.DomicileError as error:
        raise _domicile.DomicileError(f"{path}: {error}") from None


def lists(options):
    """One text stands for a list of one, and parameters may be a dict."""
    given = dict(options)
    if isinstance(given.get("set"), dict):
        given["set"] = [f"{name}={value}" for name, value in given["set"].items()]
    return {name: [value] if name in ("set", "by", "changes") and isinstance(value, str) else value for name, value in given.items()}


def _opened(trace):
    return trace if isinstance(trace, _domicile.Trace) else _domicile.Trace(trace)
