"""Recording programs, by the `domicile` command, and what of a Python program is recorded."""

import contextlib
import os
import pathlib
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
import threading
import warnings

from ._domicile import (
    DomicileError,
    Trace,
    is_recorded,
    lines_begin,
    lines_end,
    lines_heard,
    lines_of_thread,
    recording_begin,
    recording_end,
)


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
    program reads nothing where `stdin` is not given. Ctrl-C ends both: within a second where the trace is not kept, else as soon as it is
    written. A program that ignores it gets SIGTERM after a second, and is killed ten seconds later, where its trace stays unfinished. A second
    Ctrl-C kills it at once.

    Raises DomicileError where it could not be recorded. A program that fails is none: its trace is of what it did.
    """
    if isinstance(program, (str, bytes)) or isinstance(options, (str, bytes)):
        raise DomicileError("give the program and its arguments as a list, as in ['sort', 'big.txt'], and so `options`")
    if other := arguments.keys() - {"cwd", "env", "stdin", "stdout"}:
        raise DomicileError(f"`{sorted(other)[0]}` is none of the arguments cwd, env, stdin and stdout")
    if path is None:
        with tempfile.TemporaryDirectory(prefix="domicile-") as folder:
            file = pathlib.Path(folder) / "program.dtr"
            _record(program, file, options, arguments, patience=0)
            return Trace._unnamed(file)
    path = os.path.abspath(path)
    if os.path.exists(path):
        raise DomicileError(f"{path} exists: take another name, or remove it")
    _record(program, path, options, arguments, patience=10)
    return Trace(path)


def _record(program, path, options, arguments, patience):
    words = [command(), "--quiet", "record", *options, "-o", os.fspath(path), "--", *map(os.fspath, program)]
    # A session of its own: the terminal's Ctrl-C comes to us alone, and is sent on once.
    arguments = {"stdin": subprocess.DEVNULL, **arguments}
    with subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True, **arguments) as process:
        try:
            said = _ended(process)
        except BaseException:
            _end(process, patience)
            raise
    said = said.decode(errors="replace")
    if not os.path.exists(path):
        raise DomicileError(said.strip().removeprefix("domicile: ") or f"nothing was recorded: {' '.join(words)}")
    # The program's own, and notes of the recorder.
    sys.stderr.write(said)


def _end(process, patience):
    """Ends a recording, which has a session of its own, so that nobody else does. `patience`: seconds after SIGTERM."""
    try:
        for number, seconds in ((signal.SIGINT, 0.8), (signal.SIGTERM, patience)):
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                return
    finally:
        # Also after a second Ctrl-C.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ended(process):
    """Waits for the end of a process; its standard error.

    Not in one call of the system: libraries such as Polars take signals so that calls begin again, and Ctrl-C would have no effect.
    """
    while True:
        try:
            return process.communicate(timeout=0.2)[1]
        except subprocess.TimeoutExpired:
            pass


class recording(contextlib.ContextDecorator):
    """The part of this program that `domicile record` is to record, by lines of Python.

    >>> with domicile.recording():
    ...     total = table.sum(axis=0)

    Run it as `domicile record --from domicile_recording -- python program.py`. Recording begins where the first block is entered; what
    comes between blocks is not recorded. What the interpreter and its extensions do at a line, and what they allocate there, has the
    name of that line. In code of the standard library and of installed packages that is the line which called it. Memory that was
    allocated before has its line, too, from `import domicile` on.

    `lines=False` keeps the interpreter's own names: functions and lines of C. `active` says whether somebody records; where nobody
    does, the block costs nothing. Threads that begin within the block have lines, too. It can be a function's decorator.

    Raises DomicileError where a debugger or a measurement of coverage traces the thread already. Warns where one has come within the
    block: lines are those before that.
    """

    def __init__(self, *, lines=True):
        self.active = False
        self._lines = lines
        self._began_lines = []

    def __enter__(self):
        began = False
        if is_recorded():
            if self._lines:
                frame = sys._getframe(1)
                # Of a decorated function, it is the decorator's.
                began = _begin_lines(frame, frame.f_globals.get("__name__") != "contextlib")
            elif _told:
                _end_lines()
        self._began_lines.append(began)
        self.active = recording_begin()
        return self

    def __exit__(self, *_):
        if self.active:
            recording_end()
            if self._lines and _told and not _are_followed():
                warnings.warn(
                    "another trace function took the place of domicile's within the block: what came afterwards has the last line "
                    "before it",
                    stacklevel=2,
                )
        if self._began_lines.pop():
            _end_lines()


# Whether lines are told, and the trace function of new threads before.
_told = False
_before = None


def _begin_lines(frame, is_own):
    """Lines of this thread are told from here on. True where they were not before."""
    global _told, _before
    others = [sys.gettrace(), threading.gettrace()]
    if others[0] is not None or others[1] not in (None, lines_of_thread):
        raise DomicileError(
            "lines cannot be told: a debugger or a measurement of coverage traces this thread; end it, or take `recording(lines=False)`"
        )
    # Again where they are told already: another trace function may have come and gone.
    lines_begin(frame, is_own, _libraries())
    threading.settrace(lines_of_thread)
    if _told:
        return False
    _told, _before = True, others[1]
    return True


def _end_lines():
    global _told
    threading.settrace(_before)
    lines_end()
    _told = False


def _are_followed():
    """Whether the interpreter still calls our trace function: a call is one of the events that it hears of."""
    before = lines_heard()
    (lambda: None)()
    return lines_heard() > before


def _at_import():
    """Lines are told at once where `domicile record --from domicile_recording` says so: what is allocated has its line."""
    if os.environ.get("DOMICILE_LINES") and is_recorded() and sys.gettrace() is None and threading.gettrace() is None:
        _begin_lines(sys._getframe(1), False)


def _libraries():
    """How the names of files begin whose code is not the program's own."""
    paths = sysconfig.get_paths()
    folders = [paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], os.path.dirname(__file__)]
    folders += site.getsitepackages() + [site.getusersitepackages()]
    names = {os.path.join(folder, "") for folder in folders} | {"<frozen "}
    if sys.argv[:1] != ["-c"]:
        # Code that is made of text, as dataclasses make it: the line counts that makes or calls it.
        names.add("<string>")
    return sorted(names)
