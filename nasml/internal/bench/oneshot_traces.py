"""Makes the small traces of NAS-Bench-1Shot1's supernets that are tests of package
trace, in the format of the authors' programs (its type Authors):

    python oneshot_traces.py ../trace/testdata/authors

Each is written by PyTorch in float64, over the networks of darts.py. To be
small, weights and images are coarse, and of weights a trace has prints only.
"""

import itertools
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

import darts
import darts_torch
import supernet

OPS = ["maxpool3x3", "conv3x3-bn-relu", "conv1x1-bn-relu"]
OUTPUT = {1: 2, 2: 3, 3: 2}
PARENTS = {1: [1, 2, 2, 2], 2: [1, 1, 2, 2], 3: [1, 1, 1, 2, 2]}
COMMON = {
    "channels": 4, "layers": 3, "image": 6, "classes": 10, "steps": 2, "learning_rate": 0.025, "momentum": 0.9,
    "weight_decay": 3e-4, "clip": 5.0, "unrolled": False, "arch_rate": 3e-4, "arch_weight_decay": 1e-3,
    "source": "PyTorch " + torch.__version__,
}  # fmt: skip

# Name: settings; the last are of the network.
TRACES = {
    "1shot1-s1-pcdarts": {"method": "pc-darts", "space": 1, "partial": 4, "add_input": True},
    "1shot1-s2-darts": {"method": "darts", "space": 2, "partial": 1, "add_input": True},
    "1shot1-s3-darts-2nd": {"method": "darts", "space": 3, "unrolled": True, "partial": 1, "add_input": True},
    "1shot1-s3-gaea-pcdarts-warmup": {
        "method": "gaea-pc-darts", "space": 3, "arch_rate": 0.1, "edge_rate": 0.05, "steps": 4, "warmup": 2,
        "partial": 4,
    },
}  # fmt: skip


def modules(s):
    """Of every module in the program's order: our path, its name, the shape of its
    kernel, and whether its batch norm has scale and shift."""
    steps, width = len(PARENTS[s["space"]]), s["channels"]
    yield "stem", "stem.op", (width, 3, 3, 3), True
    last = width
    for i in range(s["layers"]):
        if i in (s["layers"] // 3, 2 * s["layers"] // 3):
            width *= 2
        cell, part = f"cells.{i}.", width // s["partial"]
        for node, o in itertools.product(range(steps), (1, 2)):
            k = 3 if o == 1 else 1
            name = f"{cell}_choice_blocks.{node}.mixed_op._ops.{o}.op.op"
            yield f"cells/{i}/node_{node + 1}/{OPS[o]}", name, (part, part, k, k), True
        wide = steps * width if s.get("add_input") else width
        for j in range(steps + 1):
            to = f"input_to_{j + 1}" if j < steps else "input_to_output"
            yield f"cells/{i}/{to}", f"{cell}_input_projections.{j}.op", (wide if j == steps else width, last, 1, 1), True
        last = wide if s.get("add_input") else (steps + 1) * width
    yield "postprocess", "postprocess.op", (width, last, 1, 1), False


def state(s):
    """[our path, name, shape] of parameters and statistics; statistics end in a
    number, 0 the mean and 1 the variance."""
    out = []
    for path, name, kernel, affine in modules(s):
        c, at = kernel[0], 0 if affine else 1  # post-processing begins with a ReLU
        out.append((path + "/conv", f"{name}.{at}.weight", kernel))
        if affine:
            out += [(path + "/bn/scale", f"{name}.1.weight", (c,)), (path + "/bn/bias", f"{name}.1.bias", (c,))]
        out += [(path + "/bn/0", f"{name}.{at + 1}.running_mean", (c,)), (path + "/bn/1", f"{name}.{at + 1}.running_var", (c,))]
    width = s["channels"] * 4
    classifier = [("classifier/weight", "classifier.weight", (10, width)), ("classifier/bias", "classifier.bias", (10,))]
    return out + classifier


def is_stat(path):
    return path[-2:] in ("/0", "/1")


class Operations(darts_torch.Operations):
    """Batch norm with the momentum of the benchmark."""

    def norm(self, x, path, scale, bias):
        momentum = 0.1 if scale is None else 0.997
        return F.batch_norm(x, *self.stats[path], scale, bias, training=True, momentum=momentum, eps=1e-5)


class Search:
    def __init__(self, settings, start, theta):
        self.s = settings
        self.net = {"ops": OPS, "parents": PARENTS[settings["space"]], "cells": settings["layers"]}
        self.net |= {"partial": settings["partial"], "add_input": settings.get("add_input", False)}
        self.w = {p: torch.tensor(a).requires_grad_() for p, a in start.items() if not is_stat(p)}
        self.stats = {}
        for p in start:
            if p.endswith("/0"):
                self.stats[p[:-2]] = torch.tensor(start[p]), torch.tensor(start[p[:-1] + "1"])
        self.a = {n: torch.tensor(a).requires_grad_() for n, a in theta.items()}
        self.gaea = settings["method"].startswith("gaea")
        self.left = None  # what passes have left in the gradient of θ
        self.sgd = torch.optim.SGD(
            self.w.values(), lr=settings["learning_rate"], momentum=0.9, weight_decay=settings["weight_decay"])  # fmt: skip
        self.adam = torch.optim.Adam(
            self.a.values(), lr=settings["arch_rate"], betas=(0.5, 0.999), weight_decay=settings["arch_weight_decay"])  # fmt: skip

    def loss(self, batch, w=None, keep=True):
        """The loss and the logits; keep says whether running statistics move."""
        ops = Operations()
        ops.stats = self.stats if keep else {p: (m.clone(), v.clone()) for p, (m, v) in self.stats.items()}
        theta = self.a if self.gaea else {n: F.softmax(a, -1) for n, a in self.a.items()}
        w = {p: t.T if p == "classifier/weight" else t for p, t in (w or self.w).items()}
        logits = darts.network(self.net, ops, w).logits(batch[0], theta)
        return F.cross_entropy(logits, batch[1]), logits

    def of_theta(self, loss):
        return torch.autograd.grad(loss, list(self.a.values()), retain_graph=True)

    def unrolled(self, train, valid):
        """Second order by finite differences (Liu+ 2019, equations 7 and 8)."""
        eta, w = self.s["learning_rate"], list(self.w.values())
        of_w = torch.autograd.grad(self.loss(train)[0], w)
        moved = {}
        for (p, x), g in zip(self.w.items(), of_w):
            buffer = self.sgd.state[x].get("momentum_buffer", torch.zeros_like(x))
            moved[p] = (x - eta * (0.9 * buffer + g + self.s["weight_decay"] * x)).detach().requires_grad_()
        loss, logits = self.loss(valid, moved, keep=False)
        grad, v = self.of_theta(loss), torch.autograd.grad(loss, list(moved.values()))
        r = 0.01 / torch.sqrt(sum((x**2).sum() for x in v))
        ends = []
        for sign in (1, -1):
            there = {p: (x + sign * r * d).detach() for (p, x), d in zip(self.w.items(), v)}
            ends.append(self.of_theta(self.loss(train, there)[0]))
        return loss, logits, [g - eta * (a - b) / (2 * r) for g, a, b in zip(grad, *ends)]

    def move(self, train, valid):
        if self.s["unrolled"]:
            loss, logits, grad = self.unrolled(train, valid)
        else:
            loss, logits = self.loss(valid)
            grad = self.of_theta(loss)
        if self.gaea:
            self.loss(valid)  # their program makes the pass twice
            grad = [g + x for g, x in zip(grad, self.left)] if self.left else grad
            self.left = None
            with torch.no_grad():
                for (name, a), g in zip(self.a.items(), grad):
                    rate = self.s["arch_rate"] if name == "operations" else self.s.get("edge_rate", self.s["arch_rate"])
                    moved = torch.clamp(a * torch.exp(-rate * g), min=1e-5)
                    a.copy_(moved / moved.sum(-1, keepdim=True))
        else:
            for a, g in zip(self.a.values(), grad):
                a.grad = g
            self.adam.step()
        return loss, logits, grad

    def step(self, train, valid):
        """All that the trace has of a step, by name."""
        found = {}
        if valid:
            found["valid_loss"], found["valid_logits"], grad = self.move(train, valid)
            found |= {"grad/" + n: g for n, g in zip(self.a, grad)}
        found["loss"], found["logits"] = self.loss(train)
        w = list(self.w.values())
        of_w = torch.autograd.grad(found["loss"], w, retain_graph=True)
        if self.gaea:
            of_a = self.of_theta(found["loss"])
            self.left = [g + x for g, x in zip(of_a, self.left)] if self.left else of_a
        for t, g in zip(w, of_w):
            t.grad = g.clone()
        found["grad_norm"] = torch.nn.utils.clip_grad_norm_(w, self.s["clip"])
        self.sgd.step()
        found["grad_prints"] = np.array([prints(g) for g in of_w])
        found |= {"after/" + n: a for n, a in self.a.items()}
        return {n: x.detach().numpy().copy() if torch.is_tensor(x) else x for n, x in found.items()}

    def value(self, path):
        return self.stats[path[:-2]][int(path[-1])] if is_stat(path) else self.w[path]


def prints(a):
    x = np.asarray(a.detach(), np.float64).ravel()
    return np.array([x.sum(), np.sqrt((x * x).sum()), (x * np.cos(np.arange(x.size))).sum()])


def coarse(a, digits=5):
    return np.round(a * 2**digits) / 2**digits


def start_of(path, shape, rng):
    if path.endswith(("/scale", "/1")):
        return coarse(rng.uniform(0.5, 1.5, shape))
    fan_in = np.prod(shape[1:]) if len(shape) > 1 else 10
    return coarse(rng.uniform(-1.5, 1.5, shape) / np.sqrt(fan_in))


def architecture(s, rng):
    """Parameters by the programs' names."""
    steps = len(PARENTS[s["space"]])
    choosing = [i for i, k in enumerate(PARENTS[s["space"]], 1) if k < i]
    shapes = {"alphas_mixed_op": (steps, 3), "alphas_output": (1, steps + 1)}
    shapes |= {f"alphas_inputs.{j}": (1, node) for j, node in enumerate(choosing)}
    theta = {n: rng.normal(0, 0.5, shape) for n, shape in shapes.items()}
    if s["method"].startswith("gaea"):
        theta = {n: np.exp(a) / np.exp(a).sum(-1, keepdims=True) for n, a in theta.items()}
    ours = ["operations", "output", *(f"inputs of node {i}" for i in choosing)]
    return theta, ours


def trace(s, rng, batch=4):
    names = state(s)
    start = {path: start_of(path, shape, rng) for path, _, shape in names}
    theta, ours = architecture(s, rng)
    arrays = {"start": np.concatenate([a.ravel() for a in start.values()])}
    arrays |= {"start/" + n: a for n, a in theta.items()}
    for part in ("train", "valid"):
        arrays[part + "_images"] = coarse(rng.normal(0, 1, (s["steps"], batch, 3, s["image"], s["image"])), 2)
        arrays[part + "_labels"] = rng.integers(0, 10, (s["steps"], batch))

    def batch_of(part, i):
        return torch.tensor(arrays[part + "_images"][i]), torch.tensor(arrays[part + "_labels"][i])

    search = Search(s, start, dict(zip(ours, theta.values())))
    theirs = dict(zip(ours, theta))
    for i in range(s["steps"]):
        valid = batch_of("valid", i) if i >= s.get("warmup", 0) else None
        found = search.step(batch_of("train", i), valid)
        found["after_prints"] = np.array([prints(search.value(p)) for p, _, _ in names])
        for n, a in found.items():
            family, _, of = n.rpartition("/")
            n = f"{family}/{theirs[of]}" if of in theirs else n
            arrays[n if i == 0 else f"steps/{i + 1}/{n}"] = a
    listed = [[name, list(shape)] for path, name, shape in names]
    parameters = [x for x, (path, _, _) in zip(listed, names) if not is_stat(path)]
    return s | {"state": listed, "parameters": parameters}, arrays


def spec(space, theta):
    """The matrix and operations that NAS-Bench-101 is asked for: edges that lead to
    the output only, and in cells of four nodes a fifth without edges."""
    numbers, steps = PARENTS[space] + [OUTPUT[space]], len(PARENTS[space])
    inputs, parents = theta[2:], [[]]
    for node, k in enumerate(numbers, 1):
        row = theta[1] if node > steps else None if k == node else inputs.pop(0)
        parents.append(range(node) if row is None else np.argsort(-row[0])[:k].tolist())
    size = 7
    matrix, out = np.zeros((size, size), int), size - 1
    todo = [steps + 1]
    while todo:
        node = todo.pop()
        for p in parents[node]:
            matrix[p, out if node > steps else node] = 1
            todo.append(p)
    ops = [OPS[o] for o in theta[0].argmax(-1)]
    ops = ["input", *ops, *[OPS[2]] * (5 - steps), "output"]
    return [matrix.tolist(), ops]


def lookups(rng, each=30):
    """Specs of random architectures, so many a space."""
    specs, arrays = {}, {}
    for space, parents in PARENTS.items():
        steps = len(parents)
        shapes = {"alphas_mixed_op": (steps, 3), "alphas_output": (1, steps + 1)}
        choosing = [i for i, k in enumerate(parents, 1) if k < i]
        shapes |= {f"alphas_inputs.{j}": (1, node) for j, node in enumerate(choosing)}
        for name, shape in shapes.items():
            arrays[f"s{space}/{name}"] = rng.normal(0, 1, (each, *shape))
        specs[f"s{space}"] = [spec(space, [arrays[f"s{space}/{name}"][i] for name in shapes]) for i in range(each)]
    return {"method": "darts", "source": "NumPy " + np.__version__, "specs": specs}, arrays


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, changes) in enumerate(TRACES.items()):
        settings, arrays = trace(COMMON | changes, np.random.default_rng(seed))
        for of_network in ("partial", "add_input", "warmup"):
            settings.pop(of_network, None)
        supernet.write(folder / f"{name}.npz", settings, arrays)
    supernet.write(folder / "1shot1-lookups.npz", *lookups(np.random.default_rng(len(TRACES))))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
