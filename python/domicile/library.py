"""The calls of domicile/domicile.h and domicile/ulcc.h that are used here. They are in the compiled module, too."""

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_long, c_size_t, c_uint32, c_uint64, c_void_p

from . import _domicile

OK = 0


class StateOfC(ctypes.Structure):
    """`domicile_replicated_state`."""

    _fields_ = [
        ("size", c_size_t),
        ("mode", c_uint32),
        ("copies", c_uint32),
        ("without", c_uint32),
        ("readers_pay", c_uint32),
        ("bytes", c_uint64),
        ("memory", c_uint64),
        ("extra", c_uint64),
        ("writes", c_uint64),
    ]


# Result and arguments of each call, as the header has them.
CALLS = {
    "domicile_replicated_create": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "domicile_replicated_destroy": (c_int, [c_void_p]),
    "domicile_replicated_keep": (c_int, [c_void_p, POINTER(c_void_p)]),
    "domicile_replicated_kept_start": (c_void_p, [c_void_p]),
    "domicile_replicated_kept_destroy": (c_int, [c_void_p]),
    "domicile_replicated_write": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "domicile_replicated_collapse": (c_int, [c_void_p]),
    "domicile_replicated_replicate": (c_int, [c_void_p]),
    "domicile_replicated_ask": (c_int, [c_void_p, POINTER(StateOfC)]),
    "domicile_replicated_means": (c_char_p, [c_void_p]),
    "domicile_replicated_message": (c_char_p, []),
    "ULCC_Init": (c_int, [c_int]),
    "ULCC_Available_Space_App": (c_long, []),
    "ULCC_Cache_Slot": (c_void_p, [c_long, c_int]),
    "ULCC_Data_Set": (c_void_p, [c_void_p]),
    "ULCC_More_Data": (c_int, [c_void_p, c_void_p, c_void_p]),
    "ULCC_Allocate": (c_int, [c_void_p, c_void_p]),
    "ULCC_Free_Data_Set": (c_int, [c_void_p]),
    "ULCC_Free_Slot": (c_int, [c_void_p]),
    "ULCC_Error": (c_char_p, []),
}


@functools.lru_cache(maxsize=None)
def library():
    """The library, loaded once: the compiled module, or what DOMICILE_LIBRARY names."""
    name = os.environ.get("DOMICILE_LIBRARY", _domicile.__file__)
    try:
        loaded = ctypes.CDLL(name)
        for call, (result, arguments) in CALLS.items():
            function = getattr(loaded, call)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise ImportError(f"libdomicile cannot be used: {error}; set DOMICILE_LIBRARY to another, or unset it") from error
    return loaded


def call(name, *arguments):
    """Calls what returns a `domicile_error`."""
    code = getattr(library(), name)(*arguments)
    if code != OK:
        text = library().domicile_replicated_message().decode(errors="replace")
        raise _domicile.DomicileError(text)
