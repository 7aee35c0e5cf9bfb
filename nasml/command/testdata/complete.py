"""Ask the GoNB kernel what Tab and Shift+Tab ask: complete.py SECONDS.

It prints as JSON what completes a string of a field, asked first, and "p.Wi", what notebook.Export
is, and how long the answers took once there was one. For the first SECONDS at most the kernel may
answer nothing to the latter: the language server starts with it and reads the module.
"""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel

CELL = """import (
	"github.com/nasml/lab/nasml/notebook"
	"github.com/nasml/lab/nasml/oymak2021"
)

%%
p := oymak2021.Figure2Quick
p.Wi
notebook.Export(notebook.Run(oymak2021.Figure2, p), "figures", "pdf")
"""


def until(ask, good, seconds):
    """The first good answer, and how long that one took."""
    end = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        answer = ask()
        if good(answer) or time.monotonic() > end:
            return answer, time.monotonic() - begin
        time.sleep(1)


def main(seconds):
    manager, client = start_new_kernel(kernel_name="gonb", startup_timeout=120)
    try:
        begin = time.monotonic()
        cell = CELL.replace("p.Wi", 'p.Activations = [2]string{"α", "si"}')
        names = client.complete(cell, cell.index('"}'), reply=True, timeout=60)["content"]
        first = time.monotonic() - begin
        at = CELL.index("p.Wi") + len("p.Wi")
        matches, tab = until(
            lambda: client.complete(CELL, at, reply=True, timeout=60)["content"].get("matches", []),
            bool, float(seconds))
        at = CELL.index("Export") + 2
        found, shift_tab = until(
            lambda: client.inspect(CELL, at, reply=True, timeout=60)["content"].get("data", {}),
            bool, float(seconds))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(json.dumps({
        "matches": matches, "tab": tab, "doc": found.get("text/markdown") or found.get("text/plain", ""),
        "shiftTab": shift_tab,
        "names": names["matches"], "replaced": cell[names["cursor_start"]:names["cursor_end"]], "first": first,
    }))


main(*sys.argv[1:])
