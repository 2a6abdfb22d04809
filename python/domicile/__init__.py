"""Domicile: see, predict and improve the memory locality of programs.

>>> import domicile
>>> trace = domicile.record(["./sort", "big.txt"])
>>> print(domicile.advise(trace, "host"))
>>> domicile.simulate(trace, "zen3-milan", by=["structure"]).tables
"""

import importlib

from ._domicile import DomicileError, Machine, Table, Trace, __version__, machines
from .recorder import _at_import, record, recording
from .results import Result, advise, compare, read, simulate
from .sweeps import minimise, sweep

__all__ = [
    "DomicileError",
    "Machine",
    "Replicated",
    "Result",
    "State",
    "Table",
    "Trace",
    "__version__",
    "advise",
    "available_cache",
    "colored",
    "compare",
    "machines",
    "minimise",
    "read",
    "record",
    "recording",
    "simulate",
    "sweep",
]


def __getattr__(name):
    # NumPy is loaded where its arrays are used.
    if name in ("Replicated", "State"):
        from . import replicated

        return getattr(replicated, name)
    if name in ("available_cache", "colored"):
        # The function takes the place of the module, which has its name.
        module = importlib.import_module(".colored", __name__)
        globals().update(available_cache=module.available_cache, colored=module.colored)
        return globals()[name]
    raise AttributeError(f"module 'domicile' has no attribute '{name}'")


_at_import()
