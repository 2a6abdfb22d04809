"""Sweeps: here, on a Dask cluster, or led by Optuna to the best setting.

`domicile sweep --dask` and `--minimise` run this module.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

from . import _domicile
from ._domicile import DomicileError
from .recorder import command
from .results import lists, simulate

#: Points that are sent to a worker together: they share the decoding of their trace.
BATCH = 8


def sweep(spec, output=None, *, threads=None, dask=None, batch=BATCH):
    """Simulates all combinations that a file (TOML) names, and returns the path of its rows (Parquet), as a text.

    A sweep that was broken off goes on where it was. `output`: the name of the specification with .parquet, where not given.
    `threads`: how many simulate, one for each cpu where not given. `dask`: the address of a scheduler or a `distributed.Client`, whose
    workers simulate, one thread a task; they need this package, and the traces at the same path or at an address that fsspec
    knows (`s3://...`). The rows are the same.

    Raises DomicileError where the specification is wrong. A combination that cannot be simulated is a row with its error. Warns of traces
    that do not have all of their run.
    """
    spec = pathlib.Path(spec)
    output = os.fspath(output) if output is not None else str(spec.with_suffix(".parquet"))
    if dask is None:
        _here(spec, output, threads)
    else:
        _on_cluster(spec, output, dask, batch)
    for trace, what in _domicile.Sweep(_text(spec), _folder(spec), output).incomplete.items():
        warnings.warn(f"{trace}: {what}; the rows are of what is there", stacklevel=2)
    return output


def _text(spec):
    try:
        return spec.read_text(encoding="utf-8")
    except OSError as error:
        raise DomicileError(f"{spec}: {error.strerror}") from error


def _folder(spec):
    return str(spec.parent.resolve())


def _here(spec, output, threads):
    words = [command(), "--quiet", "sweep", os.fspath(spec), "-o", output]
    if threads is not None:
        words += ["--threads", str(threads)]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True)
    said = [line for line in done.stderr.strip().splitlines() if not line.startswith("domicile: note: ")]
    # 1 without a word: there are rows, each with its error.
    if done.returncode != 0 and (done.returncode != 1 or said):
        raise DomicileError("\n".join(said).removeprefix("domicile: "))


def _on_cluster(spec, output, dask, batch):
    import distributed

    text = _text(spec)
    own = not isinstance(dask, distributed.Client)
    try:
        client = distributed.Client(dask) if own else dask
    except (OSError, ValueError) as error:
        raise DomicileError(f"cannot reach the Dask scheduler {dask}: {error}") from error
    folder = _folder(spec)
    rows = _domicile.Sweep(text, folder, output)
    # Nothing is written for a specification that is refused.
    batches = rows.batches(batch)
    try:
        # Dask sends the tasks of a worker that died to another one.
        futures = {client.submit(_points, text, folder, batch_of, pure=False, retries=2): batch_of for batch_of in batches}
        for future in distributed.as_completed(futures):
            error = future.exception()
            if error is None:
                rows.add(future.result())
            else:
                rows.add_failed(futures[future], f"the cluster could not simulate it: {error}")
            future.release()
    finally:
        rows.save()
        if own:
            client.close()


def _points(text, folder, numbers):
    """Simulates points where the traces are, or are brought."""
    traces = _domicile.sweep_traces(text, folder, numbers)
    local = {trace: _brought(trace) for trace in traces if "://" in trace}
    return _domicile.sweep_points(text, folder, numbers, threads=1, local=local)


def _brought(address):
    """A copy of a trace that lies on another storage, kept for the next batch."""
    import fsspec

    kept = os.path.join(tempfile.gettempdir(), f"domicile-traces-{os.getuid()}")
    return fsspec.open_local(f"filecache::{address}", filecache={"cache_storage": kept})


def minimise(trace, machine, policy, over, what="stall", *, trials=64, batch=8, seed=1, threads=None, **options):
    """Looks for the parameters of a policy with which a run waits least, by Optuna: (the best parameters, the study).

    `over`: by parameter (`migrate.trigger`), the least and the most (whole numbers, tried on a logarithmic scale), or a list of values.
    `what`: "stall", "time" or "overhead". `batch`: so many settings are asked for together and told together, so that a `seed`
    finds the same whatever the number of `threads`. Other options are of `simulate`.
    """
    import optuna

    read = {"stall": _stall, "time": lambda of: of["wall"], "overhead": lambda of: of["policy_overhead"]}
    if what not in read:
        raise DomicileError(f"`{what}` cannot be minimised: give one of {', '.join(read)}")
    fixed = list(lists({"set": options.pop("set", ())})["set"])
    _domicile.check_policy(policy, fixed)
    if not isinstance(over, dict) or not over:
        raise DomicileError("`over` names no parameter: give one at least, as in {'migrate.trigger': (16, 1024)}")
    for name, count in (("trials", trials), ("batch", batch), ("threads", 1 if threads is None else threads)):
        if count < 1:
            raise DomicileError(f"`{name}` is {count}: give 1 at least")
    for name, values in over.items():
        if isinstance(values, tuple):
            whole = len(values) == 2 and all(isinstance(value, int) for value in values) and values[0] <= values[1]
            if not whole:
                raise DomicileError(f"`{name}` is {values}: give the least and the most, two whole numbers, or a list of values")
        elif not isinstance(values, list) or not values:
            raise DomicileError(f"`{name}` is {values!r}: give the least and the most in a tuple, or a list of values")
        for value in values:
            _domicile.check_policy(policy, [f"{name}={value}"])
    trace = trace if isinstance(trace, _domicile.Trace) else _domicile.Trace(trace)

    def one(setting):
        [outcome] = simulate(trace, machine, policy, set=fixed + setting, classes=False, **options).data
        return read[what](outcome["time_ns"])

    optuna.logging.disable_default_handler()
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        while len(study.trials) < trials:
            asked = [study.ask() for _ in range(min(batch, trials - len(study.trials)))]
            settings = [[f"{name}={_suggested(trial, name, values)}" for name, values in over.items()] for trial in asked]
            for trial, value in zip(asked, pool.map(one, settings)):
                study.tell(trial, value)
    return study.best_params, study


def _stall(time):
    return sum(time[part] for part in ("cache_stall", "local_stall", "remote_stall", "tlb_stall"))


def _suggested(trial, name, values):
    if isinstance(values, tuple):
        least, most = values
        return trial.suggest_int(name, least, most, log=least > 0)
    return trial.suggest_categorical(name, list(values))


def _minimise_by(spec, what, over, trials, seed):
    """Of a specification with one trace, one machine and one policy: what the command prints, as JSON."""
    import tomllib

    with open(spec, "rb") as file:
        of = tomllib.load(file)
    for axis in ("traces", "machines", "policies"):
        if len(of.get(axis, [])) != 1:
            raise DomicileError(f"{spec}: `{axis}` names {len(of.get(axis, []))}, and --minimise is of one trace, machine and policy")
    [policy] = of["policies"]
    ranges = {}
    for one in over:
        name, _, bounds = one.partition("=")
        least, _, most = bounds.partition("..")
        bounds = (int(least), int(most))
        name = name if "." in name else f"{policy}.{name}"
        if name in ranges:
            raise DomicileError(f"--over names {name} twice")
        ranges[name] = bounds
    fixed = [f"{name}={value}" for name, value in _by_parameter(of.get("set", {})).items() if name not in ranges]
    trace = pathlib.Path(spec).parent / of["traces"][0]
    best, study = minimise(trace, of["machines"][0], policy, ranges, what, trials=trials, seed=seed, set=fixed)
    return {"minimised": what, "value_ns": int(study.best_value), "set": best, "trials": len(study.trials), "seed": seed}


def _by_parameter(tables):
    """`migrate.trigger = 64`, of which TOML makes a table, is `"migrate.trigger" = 64`."""
    found = {}
    for name, value in tables.items():
        own = {f"{name}.{parameter}": of for parameter, of in value.items()} if isinstance(value, dict) else {name: value}
        found.update(own)
    return found


def _main():
    parser = argparse.ArgumentParser(prog="domicile sweep")
    parser.add_argument("spec")
    parser.add_argument("--output")
    parser.add_argument("--dask")
    parser.add_argument("--minimise")
    parser.add_argument("--over", action="append", default=[])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        if given.minimise is not None:
            print(json.dumps(_minimise_by(given.spec, given.minimise, given.over, given.trials, given.seed)))
        else:
            sweep(given.spec, given.output, dask=given.dask)
    except (DomicileError, OSError) as error:
        sys.exit(f"domicile: {error}")
    except ImportError as error:
        sys.exit(f"domicile: {error}; --dask needs the package `distributed`, and --minimise `optuna`: pip install them")


if __name__ == "__main__":
    _main()
