"""What the peers of the networks of the DARTS space and of NAS-Bench-1Shot1 have
in common: the networks, plainly written over a library's own operations, and
reading what the benchmark wrote.

A peer compares, or is timed as peer.py says:

    python darts_torch.py fill FOLDER FORM OUT
    python darts_torch.py serve FOLDER FORM

OUT is a file of float64: of every step the training loss, the validation loss,
and the gradients of all weights and of the architecture, as they are ordered in
FOLDER; without an architecture only the training loss and the weights'.
"""

import sys

import numpy as np

import peer


def read(folder):
    """The settings, and the arrays: weights and architecture by name."""
    settings, arrays = peer.load(folder)
    dtype = np.float64 if settings["double"] else np.float32
    arrays = {name: a.astype(dtype) if a.dtype == np.float32 else a for name, a in arrays.items()}
    for what in ("weights", "theta"):
        flat, at = arrays.pop(what), 0
        arrays[what] = {}
        for name, dims in settings[what] or []:
            n = int(np.prod(dims))
            arrays[what][name] = flat[at : at + n].reshape(dims)
            at += n
    return settings, arrays


class Net:
    """One forward pass. ops are the library's operations: relu, conv, depthwise,
    norm, max_pool, avg_pool, max2 (with padding or without), join, channels (a
    slice of them), shuffle, later (without the first row and column), mean,
    linear."""

    def __init__(self, settings, ops, w):
        self.s, self.ops, self.w = settings, ops, w

    def norm(self, x, path):
        return self.ops.norm(x, path, self.w.get(path + "/scale"), self.w.get(path + "/bias"))

    def factorized(self, x, path):
        x = self.ops.relu(x)
        halves = [
            self.ops.conv(x, self.w[path + "/conv_1"], 2),
            self.ops.conv(self.ops.later(x), self.w[path + "/conv_2"], 2),
        ]
        return self.norm(self.ops.join(halves), path + "/bn")

    def preprocess(self, x, path, halve):
        if halve:
            return self.factorized(x, path)
        return self.norm(self.ops.conv(self.ops.relu(x), self.w[path + "/conv"], 1), path + "/bn")

    def stage(self, x, path, number, stride, dilation):
        x = self.ops.depthwise(self.ops.relu(x), self.w[f"{path}/depthwise{number}"], stride, dilation)
        return self.norm(self.ops.conv(x, self.w[f"{path}/pointwise{number}"], 1), f"{path}/bn{number}")

    def operation(self, x, op, path, stride, search):
        if op in ("max_pool_3x3", "avg_pool_3x3"):
            y = getattr(self.ops, op[:8])(x, stride)
            return self.norm(y, path + "/bn") if search else y
        if op == "skip_connect":
            return x if stride == 1 else self.factorized(x, path)
        if op.startswith("dil_conv"):
            return self.stage(x, path, "", stride, 2)
        return self.stage(self.stage(x, path, "_1", stride, 1), path, "_2", 1, 1)

    def edge(self, x, path, theta, stride):
        """Σ θ_o·o(x), of a part of the channels in PC-DARTS."""
        k = self.s["partial"]
        width = x.shape[self.ops.axis] // k
        inside = x if k == 1 else self.ops.channels(x, 0, width)
        y = 0
        for o, op in enumerate(self.s["ops"]):
            if op != "none":
                y = y + theta[o] * self.operation(inside, op, f"{path}/{op}", stride, True)
        if k == 1:
            return y
        beside = self.ops.channels(x, width, k * width)
        return self.ops.shuffle(self.ops.join([y, beside if stride == 1 else self.ops.max2(beside)]), k)

    def mixed(self, states, path, reduce, theta):
        kind, e = ("reduce" if reduce else "normal"), 0
        for node in range(2, 6):
            total = 0
            for i in range(node):
                weight = 1 if len(theta) == 2 else theta[f"{kind} edges into {node}"][0, i]
                stride = 2 if reduce and i < 2 else 1
                total = total + weight * self.edge(states[i], f"{path}/{node}<-{i}", theta[kind][e], stride)
                e += 1
            states.append(total)
        return self.ops.join(states[2:])

    def discrete(self, states, path, reduce):
        genes, concat = self.s["genotype"]["reduce" if reduce else "normal"]
        for i in range(0, len(genes), 2):
            node = len(states)
            total = 0
            for j, (op, start) in enumerate(genes[i : i + 2]):
                stride = 2 if reduce and start < 2 else 1
                total = total + self.operation(states[start], op, f"{path}/{i + j}/{node}<-{start}/{op}", stride, False)
            states.append(total)
        return self.ops.join([states[i] for i in concat])

    def logits(self, images, theta):
        cells = self.s["cells"]
        s0 = s1 = self.norm(self.ops.conv(images, self.w["stem/conv"], 1), "stem/bn")
        halved = False
        for i in range(cells):
            path, reduce = f"cells/{i}", i in (cells // 3, 2 * cells // 3)
            states = [self.preprocess(s0, path + "/preprocess0", halved), self.preprocess(s1, path + "/preprocess1", False)]
            y = self.mixed(states, path, reduce, theta) if theta else self.discrete(states, path, reduce)
            s0, s1, halved = s1, y, reduce
        return self.ops.linear(self.ops.mean(s1), self.w["classifier/weight"], self.w["classifier/bias"])


class OneShot(Net):
    """One forward pass of a supernet of NAS-Bench-1Shot1, whose operations stand on
    nodes and whose cells put their projected input beside the nodes or, with
    add_input, add it to them."""

    def block(self, x, path):
        return self.ops.relu(self.norm(self.ops.conv(x, self.w[path + "/conv"], 1), path + "/bn"))

    def operation(self, x, op, path):
        return self.ops.max_pool(x, 1) if op == "maxpool3x3" else self.block(x, path)

    def node(self, x, path, theta):
        """Σ θ_o·o(x), of a part of the channels in PC-DARTS."""
        k = self.s["partial"]
        width = x.shape[self.ops.axis] // k
        inside = x if k == 1 else self.ops.channels(x, 0, width)
        y = sum(theta[o] * self.operation(inside, op, f"{path}/{op}") for o, op in enumerate(self.s["ops"]))
        if k == 1:
            return y
        return self.ops.shuffle(self.ops.join([y, self.ops.channels(x, width, k * width)]), k)

    def cell(self, x, path, theta):
        states = []
        for i, parents in enumerate(self.s["parents"], 1):
            maps = [self.block(x, f"{path}/input_to_{i}"), *states]
            if parents < i:  # it chooses
                maps = [a * u for a, u in zip(theta[f"inputs of node {i}"][0], maps)]
            states.append(self.node(sum(maps), f"{path}/node_{i}", theta["operations"][i - 1]))
        beside = [self.block(x, path + "/input_to_output"), *states]
        beside = [b * s for b, s in zip(theta["output"][0], beside)]
        if self.s.get("add_input"):
            return beside[0] + self.ops.join(beside[1:])
        return self.ops.join(beside)

    def logits(self, images, theta):
        cells = self.s["cells"]
        x = self.block(images, "stem")
        for i in range(cells):
            if i in (cells // 3, 2 * cells // 3):
                x = self.ops.max2(x, 1)
            x = self.cell(x, f"cells/{i}", theta)
        x = self.norm(self.ops.conv(self.ops.relu(x), self.w["postprocess/conv"], 1), "postprocess/bn")
        return self.ops.linear(self.ops.mean(x), self.w["classifier/weight"], self.w["classifier/bias"])


def network(settings, ops, w):
    """The network of the settings' space."""
    return (OneShot if settings.get("parents") else Net)(settings, ops, w)


def main(version, fill, timed):
    """fill(settings, arrays, form) gives the numbers of every step; timed the two
    functions of peer.serve."""
    verb, folder, form, *out = sys.argv[1:]
    settings, arrays = read(folder)
    if verb == "serve":
        peer.serve(version, *timed(settings, arrays, form))
        return
    numbers = [np.asarray(x, np.float64).ravel() for x in fill(settings, arrays, form)]
    np.concatenate(numbers).astype("<f8").tofile(out[0])
