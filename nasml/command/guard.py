"""Run a Python program of which nothing is left at its end: guard.py ARGUMENT..., as for python.

The end is that of the program, a signal, or that of whoever holds the other end of stdin, which comes with any death,
SIGKILL's too. Whatever the program started is ended with it, be it in sessions of its own, and so are the temporary
folders of all of them.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

GRACE = 8  # seconds for the program to stop what it started
CHILD_SUBREAPER = 36  # of prctl(2): what loses its parent becomes a child of this process


def children():
    """The processes whose parent is this one, where the system has /proc."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                    found.append(int(name))
    return found


def sweep():
    """End all that is left, generation after generation."""
    while left := children():
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def end_with_stdin():
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def ended(*_):
    raise SystemExit(1)


def run(arguments, folder):
    program = subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder},
    )
    try:
        return program.wait()
    finally:
        for s in signals:
            signal.signal(s, signal.SIG_IGN)
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(GRACE)
        sweep()


signals = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
if __name__ == "__main__":
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = tempfile.mkdtemp(prefix="nasml-")
    for s in signals:
        signal.signal(s, ended)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    try:
        sys.exit(run(sys.argv[1:], folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
