"""Machines, traces, simulation and comparison: the same numbers as the command, and errors that say what to do."""

import collections
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import duckdb
import numpy
import pandas
import polars
import pyarrow

import domicile


def walk(lines, rounds=1, step=64):
    """Reads so many lines in order, so often."""
    return numpy.tile(numpy.arange(lines, dtype=numpy.uint64) * numpy.uint64(step) + numpy.uint64(1 << 20), rounds)


class Machines(unittest.TestCase):
    def test_presets_are_there_and_say_what_they_are(self):
        self.assertIn("zen3-milan", domicile.machines())
        machine = domicile.Machine("zen3-milan", cpus=2)
        self.assertEqual((machine.name, machine.cpus), ("zen3-milan", 2))
        self.assertIn("L3", repr(machine))
        again = domicile.Machine.from_toml(machine.to_toml())
        self.assertEqual(again.to_toml(), machine.to_toml())

    def test_equal_machines_are_equal_and_go_to_other_processes(self):
        machine = domicile.Machine("zen3-milan", cpus=2)
        self.assertEqual(machine, domicile.Machine("zen3-milan", cpus=2))
        self.assertNotEqual(machine, domicile.Machine("zen3-milan"))
        self.assertNotEqual(machine, "zen3-milan")
        again = pickle.loads(pickle.dumps(machine))
        self.assertEqual((again, hash(again)), (machine, hash(machine)))

    def test_an_unknown_name_is_an_error_that_helps(self):
        with self.assertRaisesRegex(domicile.DomicileError, "zen3-milano"):
            domicile.Machine("zen3-milano")
        with self.assertRaisesRegex(domicile.DomicileError, "unknown|line|key"):
            domicile.Machine.from_toml("cups = 3")


class Traces(unittest.TestCase):
    def test_arrays_become_a_trace(self):
        trace = domicile.Trace.from_arrays(walk(1000), threads=numpy.arange(1000, dtype=numpy.uint64) % numpy.uint64(3))
        self.assertEqual((len(trace), trace.threads, trace.path), (1000, 3, None))

    def test_numbers_of_any_type_are_taken(self):
        exact = domicile.Trace.from_arrays(walk(100), sizes=numpy.full(100, 4, dtype=numpy.uint16))
        for of in (numpy.int64, numpy.int32, numpy.uint32):
            trace = domicile.Trace.from_arrays(walk(100).astype(of), sizes=[4] * 100, kinds=numpy.zeros(100, dtype=int))
            results = [domicile.simulate(each, "zen3-milan").data for each in (exact, trace)]
            self.assertEqual(results[0], results[1])
        self.assertEqual(len(domicile.Trace.from_arrays(walk(100)[::2])), 50)

    def test_traces_and_results_go_to_other_processes(self):
        trace = domicile.Trace.from_arrays(walk(1000))
        again = pickle.loads(pickle.dumps(trace))
        result = domicile.simulate(trace, "zen3-milan")
        self.assertEqual(domicile.simulate(again, "zen3-milan"), result)
        self.assertEqual(pickle.loads(pickle.dumps(result)), result)
        with tempfile.TemporaryDirectory() as folder:
            trace.save(f"{folder}/walk.dtr")
            file = pickle.loads(pickle.dumps(domicile.Trace(f"{folder}/walk.dtr")))
            self.assertEqual(str(file.path), f"{folder}/walk.dtr")
        with self.assertRaisesRegex(domicile.DomicileError, "record it with a `path`"):
            pickle.dumps(domicile.record(["/bin/true"]))

    def test_ctrl_c_ends_a_recording_and_its_program(self):
        self.interrupt_a_recording("", kept=True)

    def test_ctrl_c_ends_a_recording_of_a_program_that_ignores_it(self):
        self.interrupt_a_recording("trap '' INT TERM; ", kept=False)

    def interrupt_a_recording(self, first, *, kept):
        with tempfile.TemporaryDirectory() as folder:
            number = f"{folder}/number"
            waits, keep = os.pipe()

            def interrupt():
                while not (os.path.exists(number) and os.path.getsize(number)):
                    time.sleep(0.01)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

            thread = threading.Thread(target=interrupt, daemon=True)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                # Nobody writes to its input: it waits for ever.
                program = f"{first}echo $$ > {number}.new; mv {number}.new {number}; read line"
                domicile.record(["/bin/sh", "-c", program], f"{folder}/sh.dtr" if kept else None, stdin=waits)
            thread.join()
            os.close(waits)
            os.close(keep)
            with open(number, encoding="utf-8") as file:
                process = int(file.read())
            with self.assertRaises(ProcessLookupError):
                # One that has ended is there until it is waited for, by the recorder or by init.
                for _ in range(1000):
                    os.kill(process, 0)
                    time.sleep(0.01)

    def test_arrays_that_do_not_fit_are_refused(self):
        addresses = walk(10)
        for bad, says in (
            (dict(sizes=numpy.full(9, 8, dtype=numpy.uint16)), "9 elements"),
            (dict(sizes=numpy.zeros(10, dtype=numpy.uint16)), r"sizes\[0\]"),
            (dict(kinds=numpy.full(10, 7, dtype=numpy.uint8)), r"kinds\[0\]` is 7"),
        ):
            with self.assertRaisesRegex(domicile.DomicileError, says):
                domicile.Trace.from_arrays(addresses, **bad)
        for bad, says in (
            (addresses.astype(float), "its type float64"),
            (addresses.reshape(2, 5), r"its shape is \(2, 5\)"),
            ([1, -5, 3], "`addresses` has -5, which is no number of type uint64"),
            (["a"], "whole numbers"),
        ):
            with self.assertRaisesRegex(domicile.DomicileError, says):
                domicile.Trace.from_arrays(bad)
        with self.assertRaisesRegex(domicile.DomicileError, "`sizes` has 70000"):
            domicile.Trace.from_arrays(addresses, sizes=numpy.full(10, 70000))
        with self.assertRaisesRegex(domicile.DomicileError, "address space"):
            domicile.Trace.from_arrays(numpy.array([2**64 - 4], dtype=numpy.uint64))
        # Up to the last byte; NumPy makes floats of such a list.
        self.assertEqual(domicile.Trace.from_arrays([2**63, 64, 2**64 - 8]).references, 3)
        with self.assertRaisesRegex(domicile.DomicileError, "has -1, which"):
            domicile.Trace.from_arrays([-1, 2**63])
        with self.assertRaisesRegex(domicile.DomicileError, "whole numbers"):
            domicile.Trace.from_arrays([2**63, 0.5])

    def test_numbers_out_of_their_range_are_named(self):
        trace = domicile.Trace.from_arrays(walk(10))
        for call, says in (
            (lambda: domicile.Machine("zen3-milan", cpus=-1), "`cpus` is -1"),
            (lambda: domicile.simulate(trace, "zen3-milan", cpus=2**32), "`cpus` is 4294967296"),
            (lambda: domicile.simulate(trace, "zen3-milan", seed=-3), "`seed` is -3"),
        ):
            with self.assertRaisesRegex(domicile.DomicileError, says):
                call()
        with self.assertRaisesRegex(TypeError, "as an integer"):
            domicile.Machine("zen3-milan", cpus="two")
        self.assertEqual(len(domicile.simulate(trace, "zen3-milan", cpus=None, seed=2**64 - 1).data), 1)

    def test_no_file_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(domicile.DomicileError, "/nowhere"):
            domicile.Trace("/nowhere")


class Simulations(unittest.TestCase):
    def test_misses_are_those_of_the_walk(self):
        # Each 64 bytes of 256 KiB, twice: more than L1 holds, so that all miss. L2 holds them, in lines of 128 bytes.
        trace = domicile.Trace.from_arrays(walk(4096, rounds=2))
        [outcome] = domicile.simulate(trace, "simos-r4400", "page-coloring", cpus=1).data
        self.assertEqual(outcome["references"], 8192)
        self.assertEqual({cache["name"]: cache["misses"] for cache in outcome["caches"]}, {"L1I": 0, "L1D": 8192, "L2": 2048})

    def test_it_says_what_the_command_says(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = domicile.record(["/bin/true"], f"{folder}/true.dtr")
            ours = domicile.simulate(trace, "zen3-milan", ["page-coloring", "bin-hopping"], by=["structure"], seed=3)
            words = [domicile.recorder.command(), "--json", "simulate", f"{folder}/true.dtr", "--machine", "zen3-milan"]
            words += ["--policy", "page-coloring", "--policy", "bin-hopping", "--by", "structure", "--seed", "3"]
            theirs = subprocess.run(words, capture_output=True, check=True, text=True).stdout
            self.assertEqual(ours.data, [json.loads(line) for line in theirs.splitlines()])

    def test_a_wrong_policy_or_parameter_is_refused(self):
        trace = domicile.Trace.from_arrays(walk(10))
        for arguments, says in (
            (dict(policies="page-colouring"), "page-colouring"),
            (dict(policies="page-coloring", set=["random.seed=1"]), "random.seed=1"),
            (dict(by=["functions"]), "functions"),
            (dict(changes=["stretch"]), "stretch"),
        ):
            with self.assertRaisesRegex(domicile.DomicileError, says):
                domicile.simulate(trace, "zen3-milan", **arguments)

    def test_ctrl_c_ends_it_soon(self):
        trace = domicile.Trace.from_arrays(walk(1 << 20, rounds=40))
        timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            domicile.simulate(trace, "zen3-milan")
        # The whole takes many times as long; this bounds how long an interrupted call goes on, and is no measurement.
        self.assertLess(time.monotonic() - begun, 10)
        # The next one is not concerned.
        self.assertEqual(len(domicile.simulate(domicile.Trace.from_arrays(walk(10)), "zen3-milan").data), 1)

    def test_other_threads_run_meanwhile(self):
        trace = domicile.Trace.from_arrays(walk(1 << 18, rounds=8))
        counted, ended = [0], threading.Event()

        def count():
            while not ended.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        domicile.simulate(trace, "zen3-milan")
        ended.set()
        thread.join()
        self.assertGreater(counted[0], 3)


class FirstNode:
    """All pages on node 1."""

    def place(self, touch, world):
        assert world["nodes"] > 1 and touch["page"][0] == 0
        return {"node": 1}


class Mover:
    """Moves each page to the node of whoever misses, as far as it is asked."""

    interest = {"cache_misses": 4}

    def __init__(self):
        self.kinds = set()

    def place(self, touch, world):
        return {"node": 0}

    def observe(self, seen, world):
        self.kinds.add(seen["kind"])
        node = seen["cpu"] * world["cpu_nodes"] // world["cpus"]
        return [{"action": "move", "page": seen["page"], "node": node}] if seen["served_by"] != node else None


class PoliciesInPython(unittest.TestCase):
    def setUp(self):
        count = 1 << 14
        threads = numpy.arange(count, dtype=numpy.uint64) % numpy.uint64(4)
        self.trace = domicile.Trace.from_arrays(walk(count // 4, rounds=4, step=4096), threads=threads)

    def test_pages_go_where_it_says(self):
        ours, theirs = domicile.simulate(self.trace, "flash-cc-numa", [FirstNode(), "first-touch"], cpus=4).data
        self.assertEqual((ours["policy"], theirs["policy"]), ("FirstNode", "first-touch"))
        self.assertGreater(ours["memory"]["remote"], theirs["memory"]["remote"])

    def test_it_acts_on_misses(self):
        mover = Mover()
        [outcome] = domicile.simulate(self.trace, "flash-cc-numa", mover, cpus=4).data
        self.assertEqual(mover.kinds, {"cache_miss"})
        self.assertGreater(outcome["memory"]["migrations"], 0)

    def test_what_it_raises_is_raised(self):
        class Broken:
            def place(self, touch, world):
                raise ZeroDivisionError("in the policy")

        with self.assertRaisesRegex(ZeroDivisionError, "in the policy"):
            domicile.simulate(self.trace, "flash-cc-numa", Broken())

        class NoSuchNode:
            def place(self, touch, world):
                return {"node": 99}

        with self.assertRaisesRegex(domicile.DomicileError, "no node 99"):
            domicile.simulate(self.trace, "flash-cc-numa", NoSuchNode())

        class Mistyped:
            def place(self, touch, world):
                return {"colour": 0}

        with self.assertRaisesRegex(domicile.DomicileError, "colour"):
            domicile.simulate(self.trace, "flash-cc-numa", Mistyped())

        class Wrong:
            def place(self, touch, world):
                return 3

        with self.assertRaisesRegex(domicile.DomicileError, "a place is"):
            domicile.simulate(self.trace, "flash-cc-numa", Wrong())
        with self.assertRaisesRegex(domicile.DomicileError, "neither the name"):
            domicile.simulate(self.trace, "flash-cc-numa", [7])

        class NeverAsked:
            def observe(self, seen, world):
                return None

        with self.assertRaisesRegex(domicile.DomicileError, "`interest` says when"):
            domicile.simulate(self.trace, "flash-cc-numa", NeverAsked())

    def test_a_thread_moves_that_has_touched_no_page_first(self):
        addresses = numpy.tile(numpy.arange(4096, dtype=numpy.uint64) * numpy.uint64(256), 5)
        trace = domicile.Trace.from_arrays(addresses, threads=numpy.arange(len(addresses)) % 4)
        moved = set()

        class Following:
            interest = {"tlb_misses": 1}

            def observe(self, seen, world):
                moved.add(seen["thread"])
                return [{"action": "move_thread", "thread": seen["thread"], "cpu": seen["cpu"]}]

        domicile.simulate(trace, "flash-cc-numa", Following())
        self.assertEqual(moved, {0, 1, 2, 3})

    def test_a_forked_child_simulates_and_advises(self):
        domicile.advise(self.trace, "zen3-milan")
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                domicile.simulate(self.trace, "zen3-milan", ["page-coloring", "random"])
                domicile.advise(self.trace, "zen3-milan")
                failed = 0
            finally:
                os._exit(failed)
        # A child that waits for ever is ended.
        until = time.monotonic() + 120
        ended = 0
        while not ended and time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.05)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self.fail("the child waits for ever")
        self.assertEqual(status, 0)

    def test_an_answer_that_is_none_names_the_policy_and_what_it_gave(self):
        class Acting:
            interest = {"cache_misses": 1}
            answer = None

            def observe(self, seen, world):
                return self.answer(seen)

        policy = Acting()
        for answer, says in (
            (lambda seen: 7, "None, or a list of actions"),
            (lambda seen: [7], "an action is a dict"),
            (lambda seen: [{"page": seen["page"]}], "lacks `action`"),
            (lambda seen: [{"action": "jump"}], "`jump` is none of the actions"),
            (lambda seen: [{"action": "move", "node": 1}], "lacks `page`"),
            (lambda seen: [{"action": "move", "page": (0, 1 << 40), "node": 1}], r"no page \(0, \d+\) yet"),
            (lambda seen: [{"action": "move", "page": 5, "node": 1}], "no page 5 yet"),
            (lambda seen: [{"action": "move", "page": seen["page"], "node": -1}], "no node -1: there are 8"),
            (lambda seen: [{"action": "copy", "page": seen["page"]}], "lacks `node`"),
            (lambda seen: [{"action": "copy", "page": seen["page"], "node": 0, "cpu": 1}], "`cpu` is none of node, page, action"),
            (lambda seen: [{"action": "move_thread", "thread": 99, "cpu": 0}], "no thread 99 yet"),
            (lambda seen: [{"action": "move_thread", "thread": seen["thread"]}], "lacks `cpu`"),
            (lambda seen: [{"action": "allow", "thread": seen["thread"]}], "lacks `cpus`"),
            (lambda seen: [{"action": "allow", "thread": seen["thread"], "cpus": [77]}], "no cpu 77"),
        ):
            policy.answer = answer
            with self.assertRaisesRegex(domicile.DomicileError, f"Acting: `observe` gave .*{says}"):
                domicile.simulate(self.trace, "flash-cc-numa", policy)
        for interest, says in (
            ({"cache_misses": -1}, "-1 is no number for `cache_misses`"),
            ({"misses": 1}, "`misses` is none of"),
            (5, "a dict from"),
        ):
            policy.interest = interest
            with self.assertRaisesRegex(domicile.DomicileError, f"Acting: `interest` is .*{says}"):
                domicile.simulate(self.trace, "flash-cc-numa", policy)
        with self.assertRaisesRegex(domicile.DomicileError, "is a class: give an object of it"):
            domicile.simulate(self.trace, "flash-cc-numa", Acting)

    def test_what_one_does_not_decide_falls_to_first_touch_and_page_coloring(self):
        class Watching:
            interest = {"cache_misses": 1}

            def observe(self, seen, world):
                return None

        class NoOpinion:
            observe = None

            def place(self, touch, world):
                return None

        class OnlyNode:
            def place(self, touch, world):
                return {"node": touch["cpu"] * world["cpu_nodes"] // world["cpus"]}

        class OnlyColor:
            def place(self, touch, world):
                return {"color": touch["page"][1] % world["colors"]}

        # Each of four threads reads 64 pages of its own again and again: they fit its cache, but not one color of it.
        lines = walk(4 * 64 * 64, rounds=4)
        trace = domicile.Trace.from_arrays(lines, threads=(lines - lines[0]) // numpy.uint64(64 * 4096))
        policies = ["first-touch", Watching(), NoOpinion(), OnlyNode(), OnlyColor()]
        times = [outcome["time_ns"] for outcome in domicile.simulate(trace, "flash-cc-numa", policies).data]
        for ours in times[1:]:
            self.assertEqual(ours, times[0])

        class OneColor:
            def place(self, touch, world):
                return {"color": 0}

        [crowded] = domicile.simulate(trace, "flash-cc-numa", OneColor()).data
        self.assertGreater(crowded["time_ns"]["wall"], times[0]["wall"])


class WholeRuns(unittest.TestCase):
    def test_a_program_that_crashes_is_no_whole_run(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertWarnsRegex(UserWarning, "not a whole run: .*signal"):
                trace = domicile.record(["sh", "-c", "kill -SEGV $$"], f"{folder}/crash.dtr")
            self.assertEqual(len(trace.notes), 1)
            self.assertIn("Not a whole run", str(domicile.advise(trace, "zen3-milan")))
            with open(f"{folder}/crash.dtr", "rb") as file:
                half = file.read()
            with open(f"{folder}/half.dtr", "wb") as file:
                file.write(half[: len(half) // 2])
            with self.assertWarnsRegex(UserWarning, "ends early"):
                domicile.Trace(f"{folder}/half.dtr")

    def test_arguments_that_are_none_are_refused(self):
        for arguments, says in (
            ((["true"], None, "--from main"), "as a list"),
            (("ls",), "as a list"),
        ):
            with self.assertRaisesRegex(domicile.DomicileError, says):
                domicile.record(*arguments[:2], **({"options": arguments[2]} if len(arguments) > 2 else {}))
        with self.assertRaisesRegex(domicile.DomicileError, "`shell` is none"):
            domicile.record(["true"], shell=True)


class Comparisons(unittest.TestCase):
    def test_what_is_better_is_told(self):
        before, after = (
            domicile.simulate(domicile.Trace.from_arrays(walk(1 << 16, step=step)), "zen3-milan") for step in (4096, 64)
        )
        comparison = domicile.compare(before, after)
        self.assertEqual(comparison.kind, "comparison")
        self.assertLess(comparison.data["time"]["change"], -0.3)


class Tables(unittest.TestCase):
    def setUp(self):
        trace = domicile.Trace.from_arrays(walk(1 << 14, rounds=2))
        self.result = domicile.simulate(trace, "zen3-milan", ["page-coloring", "bin-hopping"], by=["thread"])

    def test_everybody_takes_them(self):
        for table in self.result.tables:
            arrow = pyarrow.table(table)
            self.assertEqual(arrow.column_names, table.columns)
            self.assertEqual(arrow.num_rows, len(table))
            self.assertEqual(polars.DataFrame(table).columns, table.columns)
            frame = pandas.DataFrame.from_arrow(table) if hasattr(pandas.DataFrame, "from_arrow") else arrow.to_pandas()
            self.assertEqual(list(frame.columns), table.columns)
            self.assertEqual(duckdb.from_arrow(arrow).columns, table.columns)

    def test_arrow_has_the_exact_values_and_types_that_do_not_depend_on_them(self):
        pages = numpy.arange(300, dtype=numpy.uint64) * numpy.uint64(4096) + numpy.uint64(1 << 20)
        addresses = numpy.concatenate([pages, pages[:100]])
        threads = numpy.arange(len(addresses)) % 3
        result = domicile.simulate(domicile.Trace.from_arrays(addresses, threads=threads), "simos-r4400", by=["page", "line"])
        of_pages = result.data[0]["pages"]
        rows = pyarrow.table(result.table("pages")).to_pylist()
        self.assertEqual(sorted(row["page"] for row in rows), pages.tolist())
        time = result.data[0]["time_ns"]
        stall = sum(time[part] for part in ("cache_stall", "local_stall", "remote_stall", "tlb_stall"))
        for row, page in zip(rows, of_pages, strict=True):
            self.assertEqual(row["page"], page["page"])
            self.assertAlmostEqual(row["stall"], page["stall_ns"] / stall)
            for level in (1, 2):
                caches = [cache["misses"] for cache in page["caches"] if cache["level"] == level]
                self.assertEqual(row[f"L{level} misses"], sum(caches))
        types = {str(of) for table in result.tables for of in pyarrow.table(table).schema.types}
        self.assertLessEqual(types, {"string", "uint64", "double"})
        kinds = pyarrow.table(result.table("pages")).schema
        self.assertEqual([str(kinds.field(name).type) for name in ("stall", "L1 misses", "page", "mostly of")], ["double", "uint64", "uint64", "string"])

    def test_a_table_is_found_by_how_its_title_begins(self):
        title = self.result.tables[0].title
        self.assertEqual(self.result.table(title[:4].upper()).title, title)
        with self.assertRaisesRegex(KeyError, "no table begins"):
            self.result.table("nothing of the kind")

    def test_a_saved_result_is_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            self.result.save(f"{folder}/result.json")
            again = domicile.read(f"{folder}/result.json")
            for call in (lambda: self.result.save(f"{folder}/none/result.json"), lambda: domicile.read(f"{folder}/none.json")):
                with self.assertRaisesRegex(domicile.DomicileError, "none.*: No such file or directory"):
                    call()
        self.assertEqual(again.data, self.result.data)
        self.assertEqual(str(again), str(self.result))

    def test_notebooks_show_the_page(self):
        self.assertIn("srcdoc", self.result._repr_html_())
        self.assertIn("<table", self.result.tables[0]._repr_html_())
        self.assertNotIn("\x1b", str(self.result))


class Sweeps(unittest.TestCase):
    def test_rows_are_a_table(self):
        with tempfile.TemporaryDirectory() as folder:
            domicile.record(["/bin/true"], f"{folder}/true.dtr")
            spec = "traces = ['true.dtr']\nmachines = ['flash-cc-numa', 'simos-r4400']\npolicies = ['random', 'page-coloring']\n"
            with open(f"{folder}/sweep.toml", "w", encoding="utf-8") as file:
                file.write(spec)
            rows = polars.read_parquet(domicile.sweep(f"{folder}/sweep.toml"))
            self.assertEqual(rows["policy"].to_list(), ["random", "page-coloring"] * 2)
            self.assertEqual(rows["error"].null_count(), 4)
            with self.assertRaisesRegex(domicile.DomicileError, "nowhere.toml"):
                domicile.sweep(f"{folder}/nowhere.toml")


class Advice(unittest.TestCase):
    def test_a_program_is_recorded_and_advised(self):
        trace = domicile.record(["/bin/echo", "hello"], stdout=subprocess.DEVNULL)
        self.assertGreater(trace.references, 1000)
        self.assertIsNone(trace.path)
        advice = domicile.advise(trace, "zen3-milan")
        self.assertEqual(advice.kind, "advice")
        self.assertIn("echo", str(advice))

    def test_a_program_that_is_not_there_is_an_error(self):
        with self.assertRaisesRegex(domicile.DomicileError, "no-such-program"):
            domicile.record(["no-such-program"])


PROGRAM = """
import sys, threading
import domicile
import numpy

table = numpy.zeros((2000, 100))


def by_columns():
    return sum(table[:, column].sum() for column in range(100))


def by_rows():
    return table.sum(axis=1).sum()


def several():
    return numpy.ones((100, 2000))


lines = sys.argv[1] == "lines"
numpy.sort(table[0])
with domicile.recording(lines=lines) as recording:
    by_columns()
numpy.random.random(100000)
with domicile.recording(lines=lines):
    other = several()
    thread = threading.Thread(target=by_rows)
    thread.start()
    thread.join()
print("recorded" if recording.active else "not recorded")
"""


class Lines(unittest.TestCase):
    def recorded(self, how):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/axis.py", "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            with open(f"{folder}/said", "w+", encoding="utf-8") as said:
                program = [sys.executable, "-W", "error", f"{folder}/axis.py", how]
                trace = domicile.record(program, options=["--from", "domicile_recording"], stdout=said)
                said.seek(0)
                self.assertEqual(said.read(), "recorded\n")
        return trace

    def test_what_python_code_does_has_its_line(self):
        trace = self.recorded("lines")
        [outcome] = domicile.simulate(trace, "zen3-milan", by=["structure", "line"]).data
        # A line has a row for each function: a generator's is one of its own.
        lines = collections.Counter()
        for line in outcome["source_lines"]:
            place = os.path.basename(line["file"] or ""), line["line"]
            lines[place] += next(of["misses"] for of in line["caches"] if of["name"] == "L1D")
        misses = [lines["axis.py", 10], lines["axis.py", 14]]
        # A column has a line of cache for each element, a row for each eight.
        self.assertGreater(misses[0], 2000 * 100)
        self.assertGreater(misses[0], 4 * misses[1])
        self.assertGreater(misses[1], 2000 * 100 // 8)
        names = [structure["name"] for structure in outcome["structures"]]
        # Memory that was there before, and what was allocated within.
        self.assertIn("heap: <module> (axis.py:6)", names)
        self.assertIn("heap: several (axis.py:18)", names)
        # What lies between the blocks is not recorded: random numbers, and sorting.
        self.assertFalse({("axis.py", 22), ("axis.py", 25)} & lines.keys(), lines.keys())
        advice = domicile.advise(trace, "zen3-milan")
        self.assertIn("axis.py:10", str(advice))
        self.assertNotIn("_multiarray_umath", str(advice))

    def test_without_lines_it_is_the_interpreters_own_work(self):
        trace = self.recorded("plain")
        [outcome] = domicile.simulate(trace, "zen3-milan", by=["line"]).data
        self.assertFalse([line for line in outcome["source_lines"] if (line["file"] or "").endswith("axis.py")])

    def test_where_nobody_records_it_does_nothing(self):
        with domicile.recording() as recording:
            self.assertIsNone(sys.gettrace())
            self.assertFalse(recording.active)

    def test_where_nobody_records_a_debugger_does_not_matter(self):
        before = sys.gettrace()
        sys.settrace(lambda *_: None)
        try:
            with domicile.recording() as recording:
                self.assertFalse(recording.active)
        finally:
            sys.settrace(before)

    def test_another_trace_function_is_refused_or_told(self):
        program = """
import sys, threading, warnings
import domicile, numpy

def other(*_):
    return other

@domicile.recording()
def decorated():
    return numpy.ones(20000).sum()

sys.settrace(other)
try:
    decorated()
except domicile.DomicileError as error:
    assert "lines=False" in str(error), error
else:
    raise AssertionError("not refused")
sys.settrace(None)
decorated()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    with domicile.recording():
        sys.settrace(other)
    sys.settrace(None)
    with domicile.recording():
        numpy.ones(30000).sum()
assert ["another trace function" in str(each.message) for each in said] == [True], said
made = eval("lambda: numpy.ones(40000).sum()")
with domicile.recording():
    thread = threading.Thread(target=made)
    thread.start()
    thread.join()
"""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/other.py", "w", encoding="utf-8") as file:
                file.write(program)
            trace = domicile.record([sys.executable, f"{folder}/other.py"], options=["--from", "domicile_recording"])
        [outcome] = domicile.simulate(trace, "zen3-milan", by=["structure", "line"]).data
        names = [structure["name"] for structure in outcome["structures"]]
        # The last is allocated by code without a file, in a thread: the line that started it has it.
        for name in ("decorated (other.py:10)", "<module> (other.py:27)", "<module> (other.py:32)"):
            self.assertIn(f"heap: {name}", names)
        files = {line["file"] for line in outcome["source_lines"] if line["caches"][1]["misses"] > 100}
        self.assertEqual({os.path.basename(file or "") for file in files}, {"other.py"})


if __name__ == "__main__":
    unittest.main()
