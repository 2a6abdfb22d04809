"""NumPy arrays with a copy on each memory node: see `Replicated`."""

from .library import DomicileError
from .replicated import Replicated, State

__all__ = ["DomicileError", "Replicated", "State"]
