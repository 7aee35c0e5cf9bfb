"""The NAS-Bench-201 supernet and a step of DARTS, GAEA and GDAS in PyTorch,
written plainly: images [B, C, H, W], PyTorch's own layers' functions,
gradients and optimizers. supernet.py says how it is called."""

import os

import torch
import torch.nn.functional as F

import supernet


NAME = f"PyTorch {torch.__version__}"


class Net:
    """Weights by path, as leaves; running statistics by path, changed in place."""

    def __init__(self, settings, arrays, layout=torch.contiguous_format):
        self.settings, self.layout = settings, layout
        _, stats = supernet.shapes(settings)
        given = supernet.group(arrays, "stats/")
        self.w = {path: self.tensor(a).requires_grad_() for path, a in supernet.group(arrays, "weights/").items()}
        dtype = self.w["stem/conv"].dtype
        start = {path: torch.full(shape, float(path.endswith("variance")), dtype=dtype) for path, shape in stats.items()}
        self.stats = start | {path: torch.tensor(a) for path, a in given.items()}

    def tensor(self, array):
        t = torch.tensor(array)
        return t.contiguous(memory_format=self.layout) if t.dim() == 4 else t

    def norm(self, x, path, w):
        mean, variance = self.stats.get(path + "/mean"), self.stats.get(path + "/variance")
        return F.batch_norm(x, mean, variance, w.get(path + "/scale"), w.get(path + "/bias"), training=True, momentum=0.1, eps=1e-5)

    def relu_conv_norm(self, x, path, kernel, w, stride=1):
        x = F.conv2d(F.relu(x), kernel, w.get(path + "/conv_bias"), stride, padding=kernel.shape[-1] // 2)
        return self.norm(x, path + "/bn", w)

    def operation(self, x, op, path, w):
        if op == "none":
            return torch.zeros_like(x)
        if op == "skip_connect":
            return x
        if op == "avg_pool_3x3":
            return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)
        return self.relu_conv_norm(x, path, w[path + "/conv"], w)

    def edge(self, x, path, theta, chosen, w):
        """Σ θ_o·o(x), of all operations or of the chosen one. The others then
        add their θ, which is 0 in value."""
        total = 0
        for o, op in enumerate(self.settings["ops"]):
            if chosen is None:
                if op != "none":
                    total = total + theta[o] * self.operation(x, op, f"{path}/{op}", w)
            elif o == chosen:
                total = total + theta[o] * self.operation(x, op, f"{path}/{op}", w)
            else:
                total = total + theta[o]
        return total

    def cell(self, x, path, theta, chosen, w):
        nodes = [x]
        for j in range(1, 4):
            node = 0
            for e, (start, end) in enumerate(supernet.EDGES):
                if end == j:
                    op = None if chosen is None else int(chosen[e])
                    node = node + self.edge(nodes[start], f"{path}/{end}<-{start}", theta[e], op, w)
            nodes.append(node)
        return nodes[-1]

    def reduction(self, x, path, w):
        inside = self.relu_conv_norm(x, path + "/conv_a", w[path + "/conv_a"], w, stride=2)
        inside = self.relu_conv_norm(inside, path + "/conv_b", w[path + "/conv_b"], w)
        return F.conv2d(F.avg_pool2d(x, 2), w[path + "/downsample"]) + inside

    def logits(self, x, theta, chosen, w):
        x = self.norm(F.conv2d(x, w["stem/conv"], padding=1), "stem/bn", w)
        for i, (_, reduction) in enumerate(supernet.widths(self.settings)):
            path = f"cells/{i}"
            x = self.reduction(x, path, w) if reduction else self.cell(x, path, theta, chosen, w)
        x = F.relu(self.norm(x, "last/bn", w)).mean((2, 3))
        return F.linear(x, w["classifier/weight"], w["classifier/bias"])


def relax(settings, a, noise):
    """Weights of the operations, and the sampled ones, of the parameters a."""
    if not supernet.sampled(settings):
        return (F.softmax(a, -1) if settings["method"] == "darts" else a), None
    logs = F.log_softmax(a, -1) if settings["method"] == "gdas" else a.log()
    soft = F.softmax((logs + noise) / settings["tau"], -1)
    chosen = soft.argmax(-1)
    hard = F.one_hot(chosen, soft.shape[-1]).to(soft.dtype)
    return hard - soft.detach() + soft, chosen


class Search:
    """A search: a step changes the weights, the statistics and the architecture."""

    def __init__(self, settings, arrays, layout=torch.contiguous_format):
        self.settings, self.net = settings, Net(settings, arrays, layout)
        self.a = torch.tensor(arrays[supernet.parameter(settings)]).requires_grad_()
        self.sgd = torch.optim.SGD(
            self.net.w.values(), lr=settings["learning_rate"], momentum=settings["momentum"],
            weight_decay=settings["weight_decay"], nesterov=settings["nesterov"])  # fmt: skip
        rate, decay = settings["arch_rate"], settings["arch_weight_decay"]
        if settings["update"] == "adam":
            betas = settings["arch_beta1"], settings["arch_beta2"]
            self.moves = torch.optim.Adam([self.a], lr=rate, betas=betas, eps=settings["arch_epsilon"], weight_decay=decay)
        elif settings["update"] == "sgd":
            self.moves = torch.optim.SGD([self.a], lr=rate, weight_decay=decay)
        self.stale = torch.zeros_like(self.a)  # the architecture's last gradient
        steps = [supernet.batch(settings, arrays, s) for s in range(settings["steps"])]
        self.batches = [{part: {k: self.net.tensor(a) for k, a in b.items()} for part, b in s.items()} for s in steps]

    def loss(self, batch, w):
        theta, chosen = relax(self.settings, self.a, batch.get("noise"))
        logits = self.net.logits(batch["images"], theta, chosen, w)
        return F.cross_entropy(logits, batch["labels"].long()), logits

    def step(self, s):
        """Takes step s and returns its outputs by name."""
        turns = [self.architecture_step, self.weights_step]
        if self.settings["order"] == "weights-first":
            turns.reverse()
        return {name: t.detach() for turn in turns for name, t in turn(self.batches[s]).items()}

    def architecture_step(self, batch):
        w = self.net.w
        if self.settings["hypergradient"] == "unrolled":
            w = self.unrolled(batch["train"])
        loss, logits = self.loss(batch["valid"], w)
        self.stale, = torch.autograd.grad(loss, [self.a])
        out = {"valid_loss": loss, "valid_logits": logits, "grad/" + supernet.parameter(self.settings): self.stale}
        self.update(self.stale.clone())
        return out

    def unrolled(self, batch):
        """w − η(μv + ∇G + λw), as a function of the architecture."""
        s, w = self.settings, self.net.w
        grads = torch.autograd.grad(self.loss(batch, w)[0], list(w.values()), create_graph=True, materialize_grads=True)
        out = {}
        for (path, t), g in zip(w.items(), grads):
            velocity = self.sgd.state[t].get("momentum_buffer", 0) if t in self.sgd.state else 0
            out[path] = t - s["learning_rate"] * (s["momentum"] * velocity + g + s["weight_decay"] * t)
        return out

    def update(self, grad):
        update = self.settings["update"]
        if update in ("adam", "sgd"):
            self.a.grad = grad
            self.moves.step()
            return
        with torch.no_grad():
            a = self.a * torch.exp(-self.settings["arch_rate"] * grad)
            if update == "eg-clamp-normalize":
                a = a.clamp(min=1e-5)
            a = a / a.sum(-1, keepdim=True)
            if update == "eg-normalize-clamp":
                a = a.clamp(min=1e-5)
            self.a.copy_(a)

    def weights_step(self, batch):
        s, w = self.settings, self.net.w
        loss, logits = self.loss(batch["train"], w)
        *grads, own = torch.autograd.grad(loss, [*w.values(), self.a], allow_unused=True)
        if s["unused"] == "zero":
            grads = [torch.zeros_like(t) if g is None else g for t, g in zip(w.values(), grads)]
        out = {"loss": loss, "logits": logits}
        clipped = list(w.values())
        for path, t, g in zip(w, clipped, grads):
            t.grad = g
            out["grad/" + path] = torch.zeros_like(t) if g is None else g.clone()
        if s["clip_covers"] == "weights+architecture":
            self.a.grad = self.stale + own
            clipped.append(self.a)
        if s["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(clipped, s["clip"])
        self.sgd.step()
        return out

    def state(self):
        out = {"after/" + supernet.parameter(self.settings): self.a}
        out |= {"after/weights/" + path: t for path, t in self.net.w.items()}
        out |= {"after/stats/" + path: t for path, t in self.net.stats.items()}
        return {name: t.detach().clone() for name, t in out.items()}


def fill(settings, arrays):
    torch.set_num_threads(1)  # in small networks, threads only wait for each other
    search, out = Search(settings, arrays), {}
    for s in range(settings["steps"]):
        out |= supernet.at(s, search.step(s) | search.state())
    return out


def timed(settings, arrays, form):
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    layout = torch.channels_last if form == "channels-last" else torch.contiguous_format

    def train(search):
        return [search.step(s)["loss"] for s in range(settings["steps"])]

    return lambda: Search(settings, arrays, layout), train


if __name__ == "__main__":
    supernet.main(NAME, fill, timed)
