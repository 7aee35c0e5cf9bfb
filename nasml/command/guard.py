"""Run a Python program of which nothing is left at its end: guard.py ARGUMENT..., as for python.

The end is that of the program, a signal, or that of whoever holds the other end of stdin, which comes with any death,
SIGKILL's too. Whatever the program started is ended with it, be it in sessions of its own, and so are the temporary
folders of all of them.
"""

import contextlib
import ctypes
import os
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


def end_of_stdin():
    while os.read(0, 4096):
        pass


def run(arguments):
    """Run the program to its end or to that of this one, and return the exit status.

    What ends it writes into a pipe and raises nothing, so that no moment is a wrong one.
    """
    woken, wake = os.pipe()

    def ended(*_):
        os.write(wake, b"!")

    def when(done):
        threading.Thread(target=lambda: (done(), ended()), daemon=True).start()

    for s in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(s, ended)
    with tempfile.TemporaryDirectory(prefix="nasml-", ignore_cleanup_errors=True) as folder:
        program = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder},
        )
        when(program.wait)
        when(end_of_stdin)
        os.read(woken, 1)
        status = program.poll()
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(GRACE)
        sweep()
    return 1 if status is None else status


if __name__ == "__main__":
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    sys.exit(run(sys.argv[1:]))
