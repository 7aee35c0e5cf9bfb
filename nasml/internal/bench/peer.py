"""What the peers have in common: the inputs, and the talk with the benchmark.

A peer is started as `python SCRIPT serve FOLDER FORM` and reads the arrays and
settings that the benchmark wrote to FOLDER. For every line on its stdin it
trains once, from the same initial weights, and answers with one line of JSON:
its version, the seconds that took, by the clock and by all processors, and the
losses, of Figure 2 in the order [epoch, seed, variant].
"""

import json
import pathlib
import sys
import time

import numpy as np


def load(folder):
    """The settings and a dictionary of arrays."""
    folder = pathlib.Path(folder)
    settings = json.loads((folder / "settings.json").read_text())
    return settings, {file.stem: np.load(file) for file in folder.glob("*.npy")}


def serve(version, prepare, train):
    """Answers every line. prepare() makes the weights that train() uses up; the
    clocks run for train() alone, which returns an array of losses."""
    for _ in sys.stdin:
        weights = prepare()
        begin, worked = time.perf_counter(), time.process_time()
        losses = np.asarray(train(weights))
        seconds, worked = time.perf_counter() - begin, time.process_time() - worked
        answer = {"version": version, "seconds": seconds, "processor": worked, "losses": losses.ravel().tolist()}
        print(json.dumps(answer), flush=True)
