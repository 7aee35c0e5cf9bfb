"""What the two oracles of the NAS-Bench-201 supernet have in common: the list of
its weights, and reading and writing traces. Package trace (nasml/trace) says
what a trace holds.

An oracle fills in what a search step gives,

    python supernet_torch.py fill IN OUT [IN OUT]…

or is timed, answering every line on its stdin as peer.py says:

    python supernet_torch.py serve FOLDER FORM

on the trace FOLDER/timed.npz.
"""

import json
import sys

import numpy as np

import peer

TIMED = "timed.npz"

# Edges of a cell, from node → to node, and operations in the original's order.
EDGES = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
OPERATIONS = ["none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"]

DEFAULTS = {
    "space": "nasbench201",
    "ops": OPERATIONS,
    "affine": False,
    "conv_bias": False,
    "track_stats": False,
    "order": "architecture-first",
    "hypergradient": "first-order",
    "steps": 1,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "nesterov": False,
    "clip": 0.0,
    "clip_covers": "weights",
    "unused": "zero",
    "arch_beta1": 0.0,
    "arch_beta2": 0.0,
    "arch_epsilon": 1e-8,
    "arch_weight_decay": 0.0,
    "tau": 1.0,
}


def kernel(op):
    """Size of a convolution, 0 for another operation."""
    return {"nor_conv_1x1": 1, "nor_conv_3x3": 3}.get(op, 0)


def widths(settings):
    """Channels of every cell, and whether it is a reduction."""
    c, n = settings["channels"], settings["cells"]
    return [(c, False)] * n + [(2 * c, True)] + [(2 * c, False)] * n + [(4 * c, True)] + [(4 * c, False)] * n


def shapes(settings):
    """Shapes of the weights and of the running statistics, by path."""
    weights, stats = {}, {}

    def norm(path, channels, affine):
        if affine:
            weights[path + "/scale"] = weights[path + "/bias"] = (channels,)
        if settings["track_stats"]:
            stats[path + "/mean"] = stats[path + "/variance"] = (channels,)

    c = settings["channels"]
    weights["stem/conv"] = (c, 3, 3, 3)
    norm("stem/bn", c, True)
    before = c
    for i, (width, reduction) in enumerate(widths(settings)):
        if reduction:
            for name, inputs in (("conv_a", before), ("conv_b", width)):
                weights[f"cells/{i}/{name}"] = (width, inputs, 3, 3)
                norm(f"cells/{i}/{name}/bn", width, True)
            weights[f"cells/{i}/downsample"] = (width, before, 1, 1)
        else:
            for start, end in EDGES:
                for op in filter(kernel, settings["ops"]):
                    path = f"cells/{i}/{end}<-{start}/{op}"
                    weights[path + "/conv"] = (width, width, kernel(op), kernel(op))
                    if settings["conv_bias"]:
                        weights[path + "/conv_bias"] = (width,)
                    norm(path + "/bn", width, settings["affine"])
        before = width
    norm("last/bn", before, True)
    weights["classifier/weight"] = (settings["classes"], before)
    weights["classifier/bias"] = (settings["classes"],)
    return weights, stats


def parameter(settings):
    """What the method's architecture parameters are called: θ lies on the
    simplex, α does not."""
    return {"darts": "alpha", "gdas": "alpha", "gaea-darts": "theta", "gaea-gdas": "theta"}[settings["method"]]


def sampled(settings):
    return settings["method"] in ("gdas", "gaea-gdas")


def read(file):
    """The settings, with defaults, and the arrays."""
    with np.load(file, allow_pickle=False) as npz:
        arrays = {name: npz[name] for name in npz.files}
    text = arrays.pop("settings")
    settings = json.loads(text.tobytes() if text.dtype == np.uint8 else str(text))
    return DEFAULTS | settings, arrays


def write(file, settings, arrays):
    np.savez_compressed(file, settings=np.array(json.dumps(settings)), **arrays)


def group(arrays, prefix):
    """The arrays under a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def batch(settings, arrays, step):
    """The arrays of a step, from 0: a leading axis over the steps is optional."""
    ranks = {"images": 4, "labels": 1, "noise": 2}
    out = {}
    for part in ("train", "valid"):
        names = {"images": f"{part}_images", "labels": f"{part}_labels"}
        if sampled(settings):
            names["noise"] = f"noise/{part}"
        found = {key: arrays[name] for key, name in names.items()}
        out[part] = {key: a[step] if a.ndim > ranks[key] else a for key, a in found.items()}
    return out


def at(step, arrays):
    """Names of a step's outputs: those of the first stand without its number."""
    prefix = f"steps/{step + 1}/" if step > 0 else ""
    return {prefix + name: np.asarray(a) for name, a in arrays.items()}


def main(name, fill, timed):
    """name is that of the program and its version. fill(settings, arrays) gives a trace's outputs; timed(settings, arrays,
    form) gives the two functions of peer.serve."""
    verb, *files = sys.argv[1:]
    if verb == "serve":
        folder, form = files
        peer.serve(name.split()[1], *timed(*read(f"{folder}/{TIMED}"), form))
        return
    for start, end in zip(files[::2], files[1::2]):
        settings, arrays = read(start)
        write(end, settings | {"source": name}, arrays | fill(settings, arrays))
