"""Execute one notebook with the GoNB kernel: runner.py NOTEBOOK TIMEOUT WRITE.

Progress, the one line that says what failed, or else the seconds that every cell took
go to stdout; the kernel's own log goes to stderr. With WRITE=1 the outputs are written into the notebook.
"""

import os
import re
import signal
import sys
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

# GoNB reports these on stderr and yet calls the cell a success.
SILENT_FAILURE = re.compile(r".*(exit status [1-9]\d*|signal: \w+|unknown or not implemented).*")


def silent_failure(cell):
    """The line that says that a shell command or a magic of the cell failed."""
    if not re.search(r"^\s*(!|%[a-z])", cell.source, re.MULTILINE):
        return None
    text = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr")
    found = SILENT_FAILURE.search(text)
    return found and found.group(0)


def last_lines(error):
    """An error as GoNB prints it, without colours, on few lines."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-8:])[-2000:]


def run(path, timeout, write):
    nb = nbformat.read(path, as_version=4)
    client = NotebookClient(
        nb, kernel_name="gonb", timeout=timeout or None, coalesce_streams=True, record_timing=False,
        resources={"metadata": {"path": os.path.dirname(os.path.abspath(path))}},
    )
    took = []
    code = [i for i, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    with client.setup_kernel():
        for n, i in enumerate(code, 1):
            cell = nb.cells[i]
            print(f"cell {n} of {len(code)}", flush=True)
            begin = time.monotonic()
            try:
                client.execute_cell(cell, i, execution_count=n)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                sys.exit(f"cell {n} of {len(code)}: {last_lines(error)}")
            if failure := silent_failure(cell):
                sys.exit(f"cell {n} of {len(code)}: {failure}")
            took.append(f"{time.monotonic() - begin:.1f}")
    if write:
        save(nb, path)
    print("took", *took)


def save(nb, path):
    """Write the notebook whole or not at all, without what changes from run to run."""
    nb.metadata.get("language_info", {}).pop("version", None)
    for cell in nb.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):  # the SVG beside it is a third of a megabyte
                output["data"].pop("text/html", None)
    nbformat.write(nb, path + ".new")
    os.replace(path + ".new", path)


def interrupted(*_):
    sys.exit("interrupted")  # leaves setup_kernel's block, which ends the kernel


if __name__ == "__main__":
    # The report goes to what was stdout; the kernel inherits stderr for both.
    sys.stdout = sys.stderr = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, interrupted)
    run(sys.argv[1], float(sys.argv[2]), sys.argv[3] == "1")
