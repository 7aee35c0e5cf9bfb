"""Networks of the DARTS space and of NAS-Bench-1Shot1 in PyTorch: images [B, C, H, W], PyTorch's own
functions, gradients and optimizers. darts.py says how it is called."""

import os

import numpy as np
import torch
import torch.nn.functional as F

import darts


class Operations:
    axis = 1
    relu = staticmethod(F.relu)

    def __init__(self):
        self.stats = {}

    def norm(self, x, path, scale, bias):
        if path not in self.stats:
            self.stats[path] = torch.zeros(x.shape[1], dtype=x.dtype), torch.ones(x.shape[1], dtype=x.dtype)
        return F.batch_norm(x, *self.stats[path], scale, bias, training=True, momentum=0.1, eps=1e-5)

    def conv(self, x, w, stride):
        return F.conv2d(x, w, stride=stride, padding=w.shape[-1] // 2)

    def depthwise(self, x, w, stride, dilation):
        pad = dilation * (w.shape[-1] // 2)
        return F.conv2d(x, w, stride=stride, padding=pad, dilation=dilation, groups=x.shape[1])

    def max_pool(self, x, stride):
        return F.max_pool2d(x, 3, stride, 1)

    def avg_pool(self, x, stride):
        return F.avg_pool2d(x, 3, stride, 1, count_include_pad=False)

    def max2(self, x, pad=0):
        return F.max_pool2d(x, 2, padding=pad)

    def join(self, maps):
        return torch.cat(maps, 1)

    def channels(self, x, start, end):
        return x[:, start:end]

    def shuffle(self, x, groups):
        b, c, h, w = x.shape
        return x.view(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)

    def later(self, x):
        return x[:, :, 1:, 1:]

    def mean(self, x):
        return x.mean((2, 3))

    def linear(self, x, w, b):
        return x @ w + b


def foreign(w, layout):
    """A weight as PyTorch has it: kernels [out, in, height, width]."""
    t = torch.tensor(w)
    if t.dim() == 4:
        t = t.permute(3, 2, 0, 1).contiguous(memory_format=layout)
    return t


class Search:
    """A search or training: a step changes weights, statistics, architecture."""

    def __init__(self, settings, arrays, layout):
        s = self.s = settings
        self.w = {path: foreign(w, layout).requires_grad_() for path, w in arrays["weights"].items()}
        self.a = {name: torch.tensor(a).requires_grad_() for name, a in arrays["theta"].items()}
        self.ops = Operations()
        self.sgd = torch.optim.SGD(
            self.w.values(), lr=s["learning_rate"], momentum=s["momentum"], weight_decay=s["weight_decay"])  # fmt: skip
        if self.a and not s.get("update"):
            self.adam = torch.optim.Adam(
                self.a.values(), lr=s["arch_rate"], betas=(0.5, 0.999), weight_decay=s["arch_weight_decay"])  # fmt: skip

        def images(a):
            return torch.tensor(a).permute(0, 3, 1, 2).contiguous(memory_format=layout)

        self.batches = [
            {part: (images(arrays[part + "_images"][i]), torch.tensor(arrays[part + "_labels"][i]).long())
             for part in ("train", "valid")} for i in range(s["steps"])]  # fmt: skip

    def loss(self, batch, w=None):
        """The loss of a batch with weights w, a list; None: as they are."""
        theta = {name: a if self.s.get("update") else F.softmax(a, -1) for name, a in self.a.items()}
        net = darts.network(self.s, self.ops, self.w if w is None else dict(zip(self.w, w)))
        return F.cross_entropy(net.logits(batch[0], theta), batch[1])

    def of_architecture(self, loss):
        return torch.autograd.grad(loss, list(self.a.values()), materialize_grads=True, retain_graph=True)

    def ahead(self, train, graph):
        """The weights after a step of SGD with momentum, not clipped."""
        s, w = self.s, list(self.w.values())
        slopes = torch.autograd.grad(self.loss(train), w, create_graph=graph)
        speeds = [self.sgd.state[x].get("momentum_buffer", 0) for x in w]
        return [
            x - s["learning_rate"] * (s["momentum"] * v + g + s["weight_decay"] * x)
            for x, g, v in zip(w, slopes, speeds)
        ]

    def hypergradient(self, train, valid):
        """The loss of the architecture's batch, and its gradient: of first order,
        through one step of the weights, or the same by differences."""
        kind = self.s.get("hypergradient")
        if not kind:
            loss = self.loss(valid)
            return loss, self.of_architecture(loss)
        if kind == "unrolled":
            loss = self.loss(valid, self.ahead(train, True))
            return loss, self.of_architecture(loss)
        ahead = [x.detach().requires_grad_() for x in self.ahead(train, False)]
        loss = self.loss(valid, ahead)
        direct, v = self.of_architecture(loss), torch.autograd.grad(loss, ahead)
        epsilon = 0.01 / torch.sqrt(sum((x**2).sum() for x in v))
        plus, minus = (
            self.of_architecture(self.loss(train, [x.detach() + e * d for x, d in zip(self.w.values(), v)]))
            for e in (epsilon, -epsilon)
        )
        rate = self.s["learning_rate"]
        return loss, [d - rate * (p - m) / (2 * epsilon) for d, p, m in zip(direct, plus, minus)]

    def move(self, of_a):
        """A step of the architecture."""
        if self.s.get("update"):  # exponentiated gradient
            with torch.no_grad():
                for a, g in zip(self.a.values(), of_a):
                    a.copy_(F.softmax(torch.log(a) - self.s["arch_rate"] * g, -1))
            return
        for a, g in zip(self.a.values(), of_a):
            a.grad = g
        self.adam.step()

    def step(self, i):
        """The losses and gradients of a step."""
        found = []
        if self.a:
            train = self.batches[i]["train"]
            valid, of_a = self.hypergradient(train, train if self.s.get("erm") else self.batches[i]["valid"])
            self.move(of_a)
        w = list(self.w.values())
        train = self.loss(self.batches[i]["train"])
        of_w = torch.autograd.grad(train, w)
        for t, g in zip(w, of_w):
            t.grad = g.clone()
        torch.nn.utils.clip_grad_norm_(w, self.s["clip"])
        self.sgd.step()
        found = [train, *([valid] if self.a else []), *of_w, *(of_a if self.a else [])]
        return [t.detach() for t in found]


LAYOUTS = {"channels-last": torch.channels_last, "contiguous": torch.contiguous_format}


def fill(settings, arrays, form):
    search, out = Search(settings, arrays, LAYOUTS[form]), []
    for i in range(settings["steps"]):
        for t in search.step(i):
            out.append(np.asarray(t.permute(2, 3, 1, 0) if t.dim() == 4 else t))
    return out


def timed(settings, arrays, form):
    torch.set_num_threads(len(os.sched_getaffinity(0)))

    def train(search):
        return [search.step(i)[0] for i in range(settings["steps"])]

    return lambda: Search(settings, arrays, LAYOUTS[form]), train


if __name__ == "__main__":
    darts.main(torch.__version__, fill, timed)
