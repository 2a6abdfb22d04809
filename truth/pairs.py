"""The pairs, as `pairs.toml` gives them, and which half each belongs to."""

import dataclasses
import hashlib
import tomllib


class Wrong(Exception):
    """What `pairs.toml` says is no pair."""


@dataclasses.dataclass(frozen=True)
class Pair:
    name: str
    kind: str
    whose: str  # "ours", "library" (the work is done by code of others, our driver calls it), "foreign" (all of it)
    of: str  # in words: a language, or whose code it is
    before: list[str]
    after: list[str]
    source: str | None = None  # in programs/; {program} is what is built from it
    libraries: list[str] = dataclasses.field(default_factory=list)  # pkg-config's names
    prepare: list[str] | None = None  # run once, before anything is measured
    start_up: list[str] | None = None  # its time is taken off both, measured and predicted
    before_env: dict[str, str] = dataclasses.field(default_factory=dict)
    after_env: dict[str, str] = dataclasses.field(default_factory=dict)
    huge_pages: bool = False  # `after` has them: it is simulated with pages of 2 MiB
    prefetches: bool = False  # its software prefetches are recorded
    clock: str = "cpu"  # or "wall", for several threads
    same_output: bool = True  # before and after print the same
    explained: str = ""  # why the prediction misses, where that was found out

    @property
    def set(self):
        """`build` or `held`: a rule that nobody chose pair by pair (README.md)."""
        return "held" if hashlib.sha256(self.name.encode()).digest()[0] % 2 else "build"


def read(path):
    try:
        given = tomllib.loads(path.read_text())["pair"]
        pairs = [Pair(**one) for one in given]
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise Wrong(f"{path}: {error}") from error
    names = [pair.name for pair in pairs]
    for pair in pairs:
        if names.count(pair.name) > 1:
            raise Wrong(f"{path}: two pairs are called {pair.name}")
        if pair.whose not in ("ours", "library", "foreign") or pair.clock not in ("cpu", "wall"):
            raise Wrong(f"{path}: {pair.name}: whose is ours, library or foreign; clock is cpu or wall")
        if (pair.source is None) != (pair.whose == "foreign"):
            raise Wrong(f"{path}: {pair.name}: only a foreign program has no source here")
    return pairs
