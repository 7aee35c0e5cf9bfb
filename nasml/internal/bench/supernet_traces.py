"""Makes the small traces that are tests of package trace:

    python supernet_traces.py ../trace/testdata

Each is written by one oracle. To be small, weights and images are coarse, and
a trace keeps only some of the outputs.
"""

import pathlib
import sys

import numpy as np

import supernet
import supernet_jax
import supernet_torch

COMMON = {
    "channels": 2, "cells": 1, "image": 8, "classes": 10, "method": "darts",
    "learning_rate": 0.025, "momentum": 0.9, "weight_decay": 5e-4, "clip": 5.0,
    "update": "adam", "arch_rate": 3e-4, "arch_beta1": 0.5, "arch_beta2": 0.999, "arch_weight_decay": 1e-3,
}  # fmt: skip
AUTODL = {"order": "weights-first", "nesterov": True, "clip": 1.0, "clip_covers": "weights+architecture", "tau": 10.0}
NO_NONE = supernet.OPERATIONS[1:]

# Name: oracle, settings, what is kept beside the losses and the architecture.
TRACES = {
    "darts": (supernet_torch, {}, ("logits", "valid_logits", "grad/", "after/weights/stem")),
    "darts-unrolled": (supernet_torch, {"hypergradient": "unrolled", "steps": 2, "ops": NO_NONE}, ("logits", "valid_logits")),
    "gaea-darts": (
        supernet_torch,
        {"method": "gaea-darts", "steps": 10, "update": "eg", "arch_rate": 0.1, "ops": NO_NONE},
        ("logits", "steps/10/logits", "steps/10/after/weights/cells/2/", "steps/10/after/weights/stem"),
    ),
    "gdas": (
        supernet_torch,
        AUTODL | {"method": "gdas", "steps": 2, "affine": True, "conv_bias": True},
        ("logits", "grad/stem", "grad/cells/0/", "steps/2/after/weights/cells/0/3"),
    ),
    "gaea-gdas-jax": (
        supernet_jax,
        {"method": "gaea-gdas", "steps": 3, "track_stats": True, "tau": 5.0, "update": "eg-normalize-clamp", "arch_rate": 0.1},
        ("logits", "valid_logits", "steps/3/after/stats/", "steps/3/after/weights/cells/1/"),
    ),
}  # fmt: skip


def inputs(settings, batch, rng, digits=6):
    """Arrays of a search's start, float32 with so many binary digits."""

    def coarse(a):
        return (np.round(np.asarray(a) * 2**digits) / 2**digits).astype(np.float32)

    arrays = {}
    for path, shape in supernet.shapes(settings)[0].items():
        if "/bn/" in path:
            a = rng.normal(float(path.endswith("scale")), 0.1, shape)
        else:
            a = rng.uniform(-1, 1, shape) / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 10)
        arrays["weights/" + path] = coarse(a)
    size = (len(supernet.EDGES), len(settings["ops"]))
    a = rng.normal(0, 0.3, size)
    if supernet.parameter(settings) == "theta":
        a = np.exp(a) / np.exp(a).sum(-1, keepdims=True)
    arrays[supernet.parameter(settings)] = a.astype(np.float32)
    steps = settings["steps"]
    for part in ("train", "valid"):
        images = (steps, batch, 3, settings["image"], settings["image"])
        arrays[part + "_images"] = (np.round(rng.normal(0, 1, images) * 4) / 4).astype(np.float32)
        arrays[part + "_labels"] = rng.integers(0, settings["classes"], (steps, batch), dtype=np.int32)
        if supernet.sampled(settings):
            arrays["noise/" + part] = rng.gumbel(0, 1, (steps, *size)).astype(np.float32)
    return arrays


def wanted(name, prefixes):
    small = ("loss", "valid_loss", "after/alpha", "after/theta", "grad/alpha", "grad/theta")
    return name.startswith(prefixes) or name.endswith(small)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, (oracle, changes, kept)) in enumerate(TRACES.items()):
        settings = supernet.DEFAULTS | COMMON | changes
        arrays = inputs(settings, 4, np.random.default_rng(seed))
        outputs = {n: a for n, a in oracle.fill(settings, arrays).items() if wanted(n, kept)}
        supernet.write(folder / f"{name}.npz", settings | {"source": oracle.NAME}, arrays | outputs)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
