"""Arrays that have a part of the shared caches to themselves, by page coloring (Ding et al., PPoPP 2011, section 3)."""

import ctypes
import mmap
import os
import threading
import warnings
import weakref

import numpy

from ._domicile import DomicileError
from .library import library

_PRIVATE, _SHARED = 2, 1
_NO_SLOT = ctypes.c_void_p(-1).value

_begun = threading.Lock()
#: The process that began: a forked one has to begin anew.
_process = None


def available_cache():
    """Bytes of all shared caches that are not in private parts yet.

    Raises DomicileError where the caches of this machine cannot be divided, with the reason.
    """
    return 1024 * _ulcc().ULCC_Available_Space_App()


def colored(array, cache_bytes, *, shared=False):
    """A copy of an array whose pages have frames of so many bytes of each shared cache, which no other private part has.

    `shared`: other shared parts may have the same bytes, as for data that is not often used again. `cache_bytes=0`: the data is not worth
    caching, and is confined to the least part. Whole pages have colors: an array is worth it from some pages on. The part is free again when the
    array, and every view of it, is gone.

    Warns where some pages could not be given such frames. Raises DomicileError where the caches of this machine cannot be divided, with
    the reason, or where the part is larger than what is left.
    """
    given = numpy.asarray(array, order="C")
    if given.dtype.hasobject:
        raise TypeError(f"an array of {given.dtype} holds references to objects, whose memory stays where it is; give it numbers")
    if given.size == 0:
        raise ValueError(f"an array of shape {given.shape} has no memory to color")
    if cache_bytes < 0:
        raise ValueError(f"`cache_bytes` is {cache_bytes}: give 0 at least")
    ulcc = _ulcc()
    # Whole pages of its own, none of which a forked process shares.
    pages = -(-given.nbytes // mmap.PAGESIZE)
    memory = (ctypes.c_char * (pages * mmap.PAGESIZE)).from_buffer(
        mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    )
    copy = numpy.frombuffer(memory, dtype=given.dtype, count=given.size).reshape(given.shape)
    copy[...] = given
    slot = None
    if cache_bytes > 0:
        slot = ulcc.ULCC_Cache_Slot(-(-cache_bytes // 1024), _SHARED if shared else _PRIVATE)
        if slot == _NO_SLOT:
            raise _failed(ulcc)
    data = ulcc.ULCC_Data_Set(None)
    # Before the memory goes, which the array and its views hold.
    weakref.finalize(memory, _free, ulcc, os.getpid(), data, slot)
    begin = ctypes.addressof(memory)
    missed = -1 if ulcc.ULCC_More_Data(data, begin, begin + ctypes.sizeof(memory)) else ulcc.ULCC_Allocate(data, slot)
    if missed < 0:
        raise _failed(ulcc)
    if missed > 0:
        warnings.warn(f"{missed} of {pages} pages are in other frames: {_reason(ulcc)}", stacklevel=2)
    return copy


def _ulcc():
    """The library, where the caches can be divided."""
    global _process
    ulcc = library()
    with _begun:
        if _process != os.getpid():
            if ulcc.ULCC_Init(0) != 0:
                raise _failed(ulcc)
            _process = os.getpid()
    return ulcc


def _free(ulcc, process, data, slot):
    # A forked process has a copy of the array, and nothing of its part of the cache.
    if process == os.getpid():
        ulcc.ULCC_Free_Data_Set(data)
        if slot is not None:
            ulcc.ULCC_Free_Slot(slot)


def _failed(ulcc):
    return DomicileError(_reason(ulcc))


def _reason(ulcc):
    return ulcc.ULCC_Error().decode(errors="replace")
