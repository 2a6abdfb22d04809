"""Arrays that are read on all memory nodes and rarely written, with a copy on each."""

import ctypes
import typing
import weakref

import numpy

from .library import StateOfC, call, library


class State(typing.NamedTuple):
    """How replicated data stands."""

    #: How many copies there are, at least 1.
    copies: int
    #: How many nodes with cpus have none.
    without: int
    #: Bytes of the array, once.
    bytes: int
    #: Bytes of memory of all present copies: whole pages.
    memory: int
    #: Of these, what one copy would not take.
    extra: int
    #: How often the array was written.
    writes: int


class Replicated:
    """An array with a copy on each memory node that has cpus, as far as nodes have memory. Shape and type never change.

    Any thread may call at any time. A process that was forked reads, and does not write.
    """

    def __init__(self, array):
        array = numpy.asarray(array, order="C")
        if array.dtype.hasobject:
            raise TypeError(f"an array of {array.dtype} holds references to objects, which cannot be copied; give it numbers")
        if array.size == 0:
            raise ValueError(f"an array of shape {array.shape} has no elements, and none can be added later")
        self.shape, self.dtype = array.shape, array.dtype
        handle = ctypes.c_void_p()
        call("domicile_replicated_create", array.ctypes.data, array.nbytes, ctypes.byref(handle))
        self._handle = handle
        # Arrays that were read keep their copies by themselves.
        weakref.finalize(self, library().domicile_replicated_destroy, handle)

    def read(self):
        """The copy of the node that this thread is on, as it is now: a read-only array, of which nothing is copied.

        What is written afterwards is not seen in it. Its memory is in use until the array, and every view of it, is gone.
        """
        kept = ctypes.c_void_p()
        call("domicile_replicated_keep", self._handle, ctypes.byref(kept))
        start = library().domicile_replicated_kept_start(kept)
        size = self.dtype.itemsize * int(numpy.prod(self.shape, dtype=numpy.int64))
        memory = (ctypes.c_char * size).from_address(start)
        # Each view holds what it is a view of, and so at last this.
        weakref.finalize(memory, library().domicile_replicated_kept_destroy, kept)
        array = numpy.frombuffer(memoryview(memory).toreadonly(), dtype=self.dtype)
        return array.reshape(self.shape)

    def __array__(self, dtype=None, copy=None):
        """NumPy's functions take it as what `read` returns; `numpy.asarray` copies nothing."""
        array = self.read()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"an array of {numpy.dtype(dtype)} is a copy of one of {self.dtype}")
            return array.astype(dtype)
        return array.copy() if copy else array

    def write(self, first, elements):
        """Puts elements in the place of those from number `first` on, counted through the array in C's order, in all copies.

        Who reads after this sees them. Nobody sees a part of a write.
        """
        elements = self._fitting(elements)
        size = int(numpy.prod(self.shape, dtype=numpy.int64))
        first = int(first)
        if first < 0 or first + elements.size > size:
            raise IndexError(f"elements {first} to {first + elements.size} of an array that has {size}")
        offset = first * self.dtype.itemsize
        call("domicile_replicated_write", self._handle, offset, elements.ctypes.data, elements.nbytes)

    def publish(self, array):
        """Puts another array of the same shape in the place of this one, in all copies."""
        array = self._fitting(array)
        if array.shape != self.shape:
            raise ValueError(f"an array of shape {array.shape} in the place of one of shape {self.shape}; shapes never change")
        call("domicile_replicated_write", self._handle, 0, array.ctypes.data, array.nbytes)

    def collapse(self):
        """Frees all copies but one."""
        call("domicile_replicated_collapse", self._handle)

    def replicate(self):
        """Makes a copy on each node with cpus that has none."""
        call("domicile_replicated_replicate", self._handle)

    def state(self):
        """How it stands, as `State`."""
        state = StateOfC(size=ctypes.sizeof(StateOfC))
        call("domicile_replicated_ask", self._handle, ctypes.byref(state))
        return State(state.copies, state.without, state.bytes, state.memory, state.extra, state.writes)

    def _fitting(self, elements):
        """The elements as ours are. What would lose something is refused, as by NumPy."""
        given = numpy.asarray(elements)
        if isinstance(elements, numpy.ndarray):
            fits = numpy.can_cast(given.dtype, self.dtype, casting="same_kind")
        else:
            # Python's own numbers have no type of their own: what counts is that none becomes another.
            numbers = given.dtype.kind in "biufc" and self.dtype.kind in "biufc"
            fits = given.dtype == self.dtype or (numbers and numpy.array_equal(given.astype(self.dtype), given))
        if not fits:
            raise TypeError(f"elements of {given.dtype} cannot be written to an array of {self.dtype}")
        return numpy.ascontiguousarray(given, dtype=self.dtype).reshape(given.shape)

    def __str__(self):
        """Which mode there is, which copies, what they cost, and why a node has none."""
        return library().domicile_replicated_means(self._handle).decode(errors="replace")

    def __reduce__(self):
        raise TypeError("replicated data is of one process; give others its array, `read()`")
