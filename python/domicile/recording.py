"""Recording programs, by the `domicile` command."""

import os
import pathlib
import shutil
import signal
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
    `options`: of `domicile record`, as in ["--from", "main"]. Other arguments (cwd, env, stdin, stdout) go to `subprocess.Popen`; the
    program reads nothing where `stdin` is not given. Ctrl-C ends both.

    Raises DomicileError where it could not be recorded. A program that fails is none: its trace is of what it did.
    """
    if isinstance(program, (str, bytes)) or isinstance(options, (str, bytes)):
        raise DomicileError("give the program and its arguments as a list, as in ['sort', 'big.txt'], and so `options`")
    if other := arguments.keys() - {"cwd", "env", "stdin", "stdout"}:
        raise DomicileError(f"`{sorted(other)[0]}` is none of the arguments cwd, env, stdin and stdout")
    if path is None:
        with tempfile.TemporaryDirectory(prefix="domicile-") as folder:
            file = pathlib.Path(folder) / "program.dtr"
            _record(program, file, options, arguments)
            return Trace._unnamed(file)
    path = os.path.abspath(path)
    if os.path.exists(path):
        raise DomicileError(f"{path} exists: take another name, or remove it")
    _record(program, path, options, arguments)
    return Trace(path)


def _record(program, path, options, arguments):
    words = [command(), "--quiet", "record", *options, "-o", os.fspath(path), "--", *map(os.fspath, program)]
    # A session of its own: the terminal's Ctrl-C comes to us alone, and is sent on once.
    arguments = {"stdin": subprocess.DEVNULL, **arguments}
    with subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True, **arguments) as process:
        try:
            _, said = process.communicate()
        except BaseException:
            # It has a session of its own, so that nobody else ends it.
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            raise
    said = said.decode(errors="replace")
    if not os.path.exists(path):
        raise DomicileError(said.strip().removeprefix("domicile: ") or f"nothing was recorded: {' '.join(words)}")
    # The program's own, and notes of the recorder.
    sys.stderr.write(said)
