"""Before and after, recorded and simulated: the ratio of the simulated times."""

import json
import re
import threading

from building import Failed, call
from measuring import start_up


class Predictor:
    def __init__(self, domicile, machine, out, keep=False):
        self.domicile = domicile
        self.keep = keep
        self.traces = out / "traces"
        self.traces.mkdir(parents=True, exist_ok=True)
        self.machine = machine
        self.huge = self.traces / "huge-pages.toml"
        self.huge_made = False
        self.one_at_a_time = threading.Lock()

    def predict(self, pair, commands, inputs, report=lambda text: None):
        times, results = {}, {}
        for side, command in commands.items():
            report(f"{pair.name}: records and simulates {side}")
            results[side] = self.one(pair, side, command, inputs)
            times[side] = results[side]["time_ns"]["wall"]
        before, after = (times[side] - start_up(times, side, 0) for side in ("before", "after"))
        if before <= 0 or after <= 0:
            raise Failed(f"{pair.name}: a run is simulated to take no longer than its start-up")
        counts = {name: {side: one[name] for side, one in results.items()} for name in ("references", "instructions")}
        return {"ratio": before / after, "time_ns": times, **counts}

    def one(self, pair, side, command, inputs):
        trace = self.traces / f"{pair.name}-{side.replace(' ', '-')}.dtr"
        prefetches = ["--prefetches"] if pair.prefetches else []
        if not (self.keep and trace.exists()):
            call([self.domicile, "record", *prefetches, "-o", trace, "--", *command], inputs)
        machine = self.with_huge_pages() if pair.huge_pages and side.startswith("after") else self.machine
        window = ["--from-phase", "work", "--to-phase", "rest"] if pair.source else []
        said = call([self.domicile, "simulate", trace, "--machine", machine, "--no-classes", "--json", *window])
        if not self.keep:
            trace.unlink()
        outcome = json.loads(said)
        return {name: outcome[name] for name in ("time_ns", "references", "instructions")}

    def with_huge_pages(self):
        """The machine, all of its pages huge."""
        with self.one_at_a_time:
            if not self.huge_made:
                shown = ["host"] if self.machine == "host" else ["show", self.machine]
                said = call([self.domicile, "machine", *shown])
                text, changed = re.subn(r"(?m)^page_bytes = \d+$", "page_bytes = 2097152", said)
                if changed != 1:
                    raise Failed(f"{self.machine}: no page size to change")
                self.huge.write_text(text)
                self.huge_made = True
        return self.huge
