"""Arrays in a part of the cache: their frames, their values, and the reason where there is none."""

import os
import subprocess
import sys
import textwrap
import unittest

import domicile

# A color is the lowest four bits of a frame's number, and 64 KiB of a cache of 1 MiB.
FORCED = {"DOMICILE_COLORS": "force:12:4:65536", "DOMICILE_SOCKET": "/nowhere"}

BEGIN = """
import mmap, numpy, domicile

def colors(array):
    first, last = array.ctypes.data // mmap.PAGESIZE, (array.ctypes.data + array.nbytes - 1) // mmap.PAGESIZE
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(8 * first)
        entries = numpy.frombuffer(file.read(8 * (last + 1 - first)), dtype=numpy.uint64)
    frames = entries & numpy.uint64((1 << 55) - 1)
    assert (frames > 0).all(), "frames are hidden"
    return set((frames & numpy.uint64(15)).tolist())
"""


def run(program, **environment):
    words = [sys.executable, "-W", "error", "-c", BEGIN + textwrap.dedent(program)]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, **FORCED, **environment})


@unittest.skipUnless(os.geteuid() == 0, "frames are seen with CAP_SYS_ADMIN")
class Colored(unittest.TestCase):
    def test_pages_have_the_colors_of_their_part(self):
        done = run("""
            given = numpy.arange(64 * 512).reshape(64, 512)
            assert len(colors(given.copy())) > 4
            free = domicile.available_cache()
            hot = domicile.colored(given, 128 << 10)
            assert (hot == given).all() and hot.flags.writeable and len(colors(hot)) == 2, colors(hot)
            assert domicile.available_cache() == free - (128 << 10)
            other = domicile.colored(given, 256 << 10)
            assert len(colors(other)) == 4 and not colors(other) & colors(hot)
            cold = domicile.colored(given, 0)
            assert len(colors(cold)) == 1
            view = hot[3:5]
            del hot
            assert domicile.available_cache() == free - (448 << 10)
            del view
            assert domicile.available_cache() == free - (320 << 10)
            try:
                domicile.colored(given, 1 << 20)
            except domicile.DomicileError as error:
                print(error)
        """)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(done.stdout.strip(), "")

    def test_a_forked_process_begins_anew(self):
        done = run("""
            import os
            hot = domicile.colored(numpy.arange(4096), 128 << 10)
            child = os.fork()
            if child == 0:
                own = domicile.colored(numpy.arange(4096), 128 << 10)
                os._exit(0 if len(colors(own)) == 2 and (hot == numpy.arange(4096)).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert len(colors(hot)) == 2
        """)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_where_caches_cannot_be_divided_it_says_why(self):
        done = run("domicile.available_cache()", DOMICILE_COLORS="none")
        self.assertIn("DomicileError", done.stderr)
        self.assertIn("DOMICILE_COLORS", done.stderr)


class Refused(unittest.TestCase):
    def test_what_cannot_be_colored(self):
        for given, size in (([], 4096), ([object()], 4096), ([1], -1)):
            with self.assertRaises((TypeError, ValueError)):
                domicile.colored(given, size)
