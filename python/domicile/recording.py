"""Recording programs, by the `domicile` command."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from ._domicile import DomicileError, Trace


def command():
    """The `domicile` command: what DOMICILE_COMMAND names, that of this installation, or the one in PATH."""
    named = os.environ.get("DOMICILE_COMMAND")
    installed = pathlib.Path(sysconfig.get_path("scripts")) / "domicile"
    found = named or (str(installed) if installed.is_file() else shutil.which("domicile"))
    if found is None:
        raise DomicileError(
            "there is no `domicile` command: this package was built without it; install Domicile (make install), or name the command in "
            "DOMICILE_COMMAND"
        )
    return found


def record(program, path=None, *, options=(), **arguments):
    """Records which memory a program touches: a `Trace`.

    `program`: the program and its arguments. `path`: where the trace is kept; without it, it is kept as long as the `Trace` is.
    `options`: of `domicile record`, as in ["--from", "main"]. Other arguments (cwd, env, stdin ...) go to `subprocess.run`.

    Raises DomicileError where it could not be recorded. A program that fails is none: its trace is of what it did.
    """
    if path is None:
        with tempfile.TemporaryDirectory(prefix="domicile-") as folder:
            file = pathlib.Path(folder) / "program.dtr"
            _record(program, file, options, arguments)
            return Trace._unnamed(file)
    if os.path.exists(path):
        raise DomicileError(f"{path} exists: take another name, or remove it")
    _record(program, path, options, arguments)
    return Trace(path)


def _record(program, path, options, arguments):
    words = [command(), "--quiet", "record", *options, "-o", os.fspath(path), "--", *map(os.fspath, program)]
    done = subprocess.run(words, stderr=subprocess.PIPE, check=False, **arguments)
    said = done.stderr.decode(errors="replace")
    if not os.path.exists(path):
        raise DomicileError(said.strip().removeprefix("domicile: "))
    # The program's own, and notes of the recorder.
    sys.stderr.write(said)
