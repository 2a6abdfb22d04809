"""Sweeps: on a cluster the rows are the same, also where a worker dies; and a search finds the same with one thread and with two."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy
import polars

import domicile

SPEC = """
traces = ["one.dtr"]
machines = ["flash-cc-numa", "simos-r4400"]
policies = ["first-touch", "migrate"]
seeds = [1, 2]
[set]
"migrate.trigger" = [16, 32, 64, 128, 256]
"""


def specified(folder, text=SPEC):
    """A specification, and a trace of four threads that read pages which the first of them touched."""
    count = 1 << 15
    pages = (numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(7)) % numpy.uint64(96)
    lines = (numpy.arange(count, dtype=numpy.uint64) // numpy.uint64(96)) % numpy.uint64(64)
    addresses = (pages + numpy.uint64(16)) * numpy.uint64(4096) + lines * numpy.uint64(64)
    domicile.Trace.from_arrays(addresses, threads=pages % numpy.uint64(4), name="one").save(f"{folder}/one.dtr")
    with open(f"{folder}/sweep.toml", "w", encoding="utf-8") as file:
        file.write(text)
    return f"{folder}/sweep.toml"


class Cluster:
    """A scheduler and two workers, processes of their own."""

    def __enter__(self):
        import distributed

        self.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        return self.cluster

    def __exit__(self, *_):
        self.cluster.close()


class OnDask(unittest.TestCase):
    def setUp(self):
        # Dask leaves sockets to the garbage collector.
        import warnings

        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("ignore", DeprecationWarning)

    def test_rows_are_the_same_also_where_a_worker_is_killed(self):
        import distributed

        with tempfile.TemporaryDirectory() as folder:
            spec = specified(folder)
            here = polars.read_parquet(domicile.sweep(spec, f"{folder}/here.parquet"))
            self.assertEqual(len(here), 24)
            with Cluster() as cluster, distributed.Client(cluster) as client:
                pids = list(client.run(os.getpid).values())
                killed = threading.Event()

                def kill():
                    while not client.who_has() and client.processing() == {}:
                        time.sleep(0.01)
                    os.kill(pids[0], 9)
                    killed.set()

                killer = threading.Thread(target=kill)
                killer.start()
                there = polars.read_parquet(domicile.sweep(spec, f"{folder}/there.parquet", dask=client, batch=2))
                killer.join()
            self.assertTrue(killed.is_set())
            self.assertEqual(there.rows(), here.rows())

    def test_the_command_runs_it_by_an_address(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = specified(folder, SPEC.replace("[1, 2]", "[1]"))
            with Cluster() as cluster:
                words = [domicile.recorder.command(), "sweep", spec, "--dask", cluster.scheduler_address]
                environment = {**os.environ, "DOMICILE_PYTHON": sys.executable}
                done = subprocess.run([*words, "--json"], check=True, capture_output=True, env=environment, text=True)
            rows = polars.read_parquet(f"{folder}/sweep.parquet")
            self.assertEqual(len(rows), 12)
            self.assertEqual([json.loads(line)["time_ns"] for line in done.stdout.splitlines()], rows["time_ns"].to_list())

    def test_traces_come_from_another_storage(self):
        with tempfile.TemporaryDirectory() as folder:
            specified(folder)
            spec = f"{folder}/there.toml"
            with open(spec, "w", encoding="utf-8") as file:
                file.write(f"traces = ['file://{folder}/one.dtr']\nmachines = ['simos-r4400']\npolicies = ['random']\n")
            with Cluster() as cluster:
                rows = polars.read_parquet(domicile.sweep(spec, dask=cluster.scheduler_address))
            self.assertEqual(rows["error"].to_list(), [None])


class Here(unittest.TestCase):
    def test_what_is_refused_leaves_nothing_and_what_fails_is_a_row(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = specified(folder, SPEC.replace("simos-r4400", "nowhere"))
            with self.assertRaisesRegex(domicile.DomicileError, "nowhere"):
                domicile.sweep(spec)
            self.assertFalse(os.path.exists(f"{folder}/sweep.parquet"))
            # The specification is put right, under its own name.
            spec = specified(folder, SPEC.replace("one.dtr", "none.dtr"))
            rows = polars.read_parquet(domicile.sweep(spec))
            self.assertEqual(rows["error"].null_count(), 0)


    def test_an_empty_trace_is_an_error_and_a_part_of_one_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = specified(folder, "traces = ['one.dtr']\nmachines = ['simos-r4400']\npolicies = ['migrate']\n[set]\nmigrate.trigger = 16\n")
            whole = polars.read_parquet(domicile.sweep(spec))
            self.assertEqual((whole["incomplete"].to_list(), whole["error"].to_list()), ([None], [None]))
            with open(f"{folder}/one.dtr", "rb") as file:
                begun = file.read()[:-40]
            with open(f"{folder}/one.dtr", "wb") as file:
                file.write(begun)
            for options in ({}, {"threads": 1}):
                with self.assertWarnsRegex(UserWarning, "one.dtr: the trace ends early, at byte"):
                    rows = polars.read_parquet(domicile.sweep(spec, f"{folder}/{len(options)}.parquet", **options))
                self.assertRegex(rows["incomplete"][0], "ends early")
            domicile.Trace.from_arrays([]).save(f"{folder}/one.dtr")
            rows = polars.read_parquet(domicile.sweep(spec, f"{folder}/empty.parquet"))
            self.assertRegex(rows["error"][0], "there is no reference in it to simulate")
            with self.assertRaisesRegex(domicile.DomicileError, "one.dtr: there is no reference in it to simulate"):
                domicile.simulate(f"{folder}/one.dtr", "simos-r4400")


class Searches(unittest.TestCase):
    def test_parameters_may_be_a_dict_a_text_or_a_list(self):
        with tempfile.TemporaryDirectory() as folder:
            specified(folder)
            found = [
                domicile.minimise(f"{folder}/one.dtr", "flash-cc-numa", "migrate", {"migrate.trigger": (4, 512)}, trials=2, set=fixed)[0]
                for fixed in ({"migrate.hold": 5}, "migrate.hold=5", ["migrate.hold=5"])
            ]
            self.assertEqual(found, found[:1] * 3)

    def test_a_seed_finds_the_same_whatever_the_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            specified(folder)
            found = [
                domicile.minimise(
                    f"{folder}/one.dtr",
                    "flash-cc-numa",
                    "migrate",
                    {"migrate.trigger": (4, 512)},
                    trials=12,
                    batch=4,
                    seed=5,
                    threads=threads,
                )[1].trials_dataframe(attrs=("params", "value"))
                for threads in (1, 2)
            ]
            self.assertTrue(found[0].equals(found[1]))
            self.assertEqual(len(found[0]), 12)
            with self.assertRaisesRegex(domicile.DomicileError, "cannot be minimised"):
                domicile.minimise(f"{folder}/one.dtr", "flash-cc-numa", "migrate", {"migrate.trigger": (4, 512)}, "waits")
            for over, more, says in (
                ({"migrate.trigger": (64, 16)}, {}, "the least and the most"),
                ({"migrate.triger": (1, 16)}, {}, "triger"),
                ({"migrate.trigger": (1, 16)}, {"batch": 0}, "`batch` is 0"),
                ({"migrate.trigger": (1, 16)}, {"threads": 0}, "`threads` is 0"),
            ):
                with self.assertRaisesRegex(domicile.DomicileError, says):
                    domicile.minimise(f"{folder}/one.dtr", "flash-cc-numa", "migrate", over, **more)

    def test_the_command_says_what_was_found(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = specified(folder, 'traces = ["one.dtr"]\nmachines = ["flash-cc-numa"]\npolicies = ["migrate"]\n')
            words = [domicile.recorder.command(), "sweep", spec, "--minimise", "stall", "--over", "trigger=4..512", "--trials", "5"]
            environment = {**os.environ, "DOMICILE_PYTHON": sys.executable}
            done = subprocess.run(words, capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"^stall \d+ ns with --set migrate.trigger=\d+ \(5 settings tried\)$")
            found = json.loads(subprocess.run([*words, "--json"], check=True, capture_output=True, text=True, env=environment).stdout)
            self.assertEqual((found["minimised"], found["trials"], found["seed"]), ("stall", 5, 1))
            setting = f"--set migrate.trigger={found['set']['migrate.trigger']}"
            self.assertEqual(done.stdout, f"stall {found['value_ns']} ns with {setting} (5 settings tried)\n")
            for over in ("nope", "trigger=5..4", "trigger=4.."):
                wrong = subprocess.run([*words[:5], "--over", over], capture_output=True, text=True, env=environment)
                self.assertEqual(wrong.returncode, 2, wrong.stderr)
                self.assertIn("give the least and the most", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
