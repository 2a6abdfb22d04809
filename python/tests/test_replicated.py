"""Replicated arrays: what is read is what was written, nothing can be changed by accident, and memory lives as long as it is seen."""

import gc
import os
import pickle
import threading
import unittest
import weakref

import numpy

import domicile


class Reading(unittest.TestCase):
    def test_a_copy_is_the_array(self):
        for array in (
            numpy.arange(5000.0).reshape(50, 100),
            numpy.array(7, dtype="int16"),
            numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
            numpy.arange(20)[::3],
            numpy.array([(1, 2.5), (3, 4.5)], dtype=[("number", "i4"), ("value", "f8")]),
        ):
            read = domicile.Replicated(array).read()
            self.assertEqual((read.shape, read.dtype), (array.shape, array.dtype))
            numpy.testing.assert_array_equal(read, array)

    def test_nothing_is_copied_to_be_read(self):
        table = domicile.Replicated(numpy.arange(100_000))
        one, other = table.read(), table.read()
        if table.state().copies == 1:
            self.assertEqual(one.ctypes.data, other.ctypes.data)
        self.assertEqual(one.ctypes.data % 4096, 0)
        self.assertFalse(one.flags.owndata)

    def test_numpy_takes_it_as_an_array(self):
        table = domicile.Replicated(numpy.arange(6, dtype="int32").reshape(2, 3))
        self.assertEqual(numpy.sum(table), 15)
        view = numpy.asarray(table)
        self.assertEqual((view.shape, view.dtype, view.flags.writeable), ((2, 3), numpy.dtype("int32"), False))
        self.assertTrue(numpy.array(table).flags.writeable, "a copy is the caller's own")
        self.assertEqual(numpy.asarray(table, dtype=float).dtype, numpy.dtype(float))
        with self.assertRaisesRegex(ValueError, "is a copy of one"):
            table.__array__(float, copy=False)

    def test_what_is_read_cannot_be_written(self):
        read = domicile.Replicated(numpy.arange(4)).read()
        with self.assertRaises(ValueError):
            read[0] = 1
        with self.assertRaises(ValueError):
            read.flags.writeable = True
        with self.assertRaises(ValueError):
            read.reshape(2, 2)[:1].setflags(write=True)


class Writing(unittest.TestCase):
    def test_who_reads_after_a_write_sees_it_and_who_has_read_does_not(self):
        table = domicile.Replicated(numpy.zeros((3, 4)))
        before = table.read()
        table.write(5, [1, 2.5])
        after = table.read()
        self.assertEqual(before.sum(), 0)
        self.assertEqual(after[1].tolist(), [0, 1, 2.5, 0])
        table.publish(numpy.full((3, 4), 9.0))
        self.assertEqual((table.read().min(), after.max()), (9.0, 2.5))
        self.assertEqual(table.state().writes, 2)

    def test_what_does_not_fit_is_refused_and_changes_nothing(self):
        table = domicile.Replicated(numpy.arange(6).reshape(2, 3))
        for wrong, error in (
            (lambda: table.publish(numpy.zeros((3, 2), dtype=int)), ValueError),
            (lambda: table.publish(numpy.zeros(6, dtype=int)), ValueError),
            (lambda: table.write(5, [1, 2]), IndexError),
            (lambda: table.write(-1, [1]), IndexError),
            (lambda: table.write(0, [1.5]), TypeError),
            (lambda: table.write(0, numpy.array([1.0])), TypeError),
            (lambda: table.write(0, ["one"]), TypeError),
            (lambda: domicile.Replicated(numpy.zeros((0, 3))), ValueError),
            (lambda: domicile.Replicated(numpy.array([object()])), TypeError),
            (lambda: pickle.dumps(table), TypeError),
        ):
            with self.assertRaises(error):
                wrong()
        self.assertEqual(table.read().tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(table.state().writes, 0)

    def test_copies_are_freed_and_made_again(self):
        table = domicile.Replicated(numpy.arange(3000))
        table.collapse()
        state = table.state()
        self.assertEqual((state.copies, state.extra, state.bytes), (1, 0, 24_000))
        self.assertIn("one copy", str(table))
        table.replicate()
        self.assertEqual(table.read()[2999], 2999)

    def test_a_child_of_fork_reads_and_does_not_write(self):
        table = domicile.Replicated(numpy.arange(10))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                table.write(0, [1])
            except domicile.DomicileError:
                status = 0 if table.read()[9] == 9 else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_threads_see_whole_writes_in_their_order(self):
        table = domicile.Replicated(numpy.zeros(3000, dtype="int64"))
        over, wrong = threading.Event(), []

        def reads():
            last = 0
            while not over.is_set():
                read = table.read()
                if read.min() != read.max() or read[0] < last:
                    wrong.append((last, read.min(), read.max()))
                last = read[0]

        readers = [threading.Thread(target=reads) for _ in range(3)]
        for reader in readers:
            reader.start()
        for write in range(1, 101):
            table.publish(numpy.full(3000, write))
            self.assertEqual(table.read()[0], write)
        over.set()
        for reader in readers:
            reader.join()
        self.assertEqual(wrong, [])


class Lifetime(unittest.TestCase):
    def test_a_view_keeps_its_copy(self):
        table = domicile.Replicated(numpy.arange(10_000))
        view = table.read()[5000:].reshape(50, 100)[3]
        table.publish(numpy.zeros(10_000, dtype=int))
        del table
        gc.collect()
        # Were the memory free, the kernel would end this process here.
        self.assertEqual(view.tolist(), list(range(5300, 5400)))

    def test_memory_goes_with_the_last_view(self):
        megabytes = 8
        table = domicile.Replicated(numpy.zeros(megabytes << 17))

        def mapped():
            with open("/proc/self/statm", encoding="ascii") as statm:
                return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") >> 20

        copies = [table.read()]
        memory = mapped()
        for write in range(10):
            table.write(0, [write])
            copies.append(table.read())
        self.assertGreaterEqual(mapped() - memory, 9 * megabytes)
        gone = weakref.ref(copies[-1])
        del copies
        gc.collect()
        self.assertIsNone(gone())
        self.assertLess(mapped() - memory, 3 * megabytes)


if __name__ == "__main__":
    unittest.main()
