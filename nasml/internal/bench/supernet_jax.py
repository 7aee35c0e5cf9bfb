"""The NAS-Bench-201 supernet and a step of DARTS, GAEA and GDAS in JAX with
stock operations: images [B, H, W, C], kernels [H, W, in, out], a step is one
jitted function whose state is donated. supernet.py says how it is called."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import supernet


NAME = f"JAX {jax.__version__}"


def inward(array):
    """From a trace's layout to this one: images and kernels alike."""
    a = np.asarray(array)
    return {4: lambda: a.transpose(0, 2, 3, 1), 5: lambda: a.transpose(0, 1, 3, 4, 2)}.get(a.ndim, lambda: a)()


def kernel_in(array):
    a = np.asarray(array)
    return jnp.array(a.transpose(2, 3, 1, 0) if a.ndim == 4 else a)


def kernel_out(array):
    a = np.asarray(array)
    return a.transpose(3, 2, 0, 1) if a.ndim == 4 else a


def conv(x, kernel, stride=1):
    pad = kernel.shape[0] // 2
    return lax.conv_general_dilated(x, kernel, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def mean_pool(x, size, stride, pad):
    """Mean over the window's part inside the image."""

    def total(a):
        window, strides = (1, size, size, 1), (1, stride, stride, 1)
        return lax.reduce_window(a, 0.0, lax.add, window, strides, [(0, 0), (pad, pad), (pad, pad), (0, 0)])

    return total(x) / total(jnp.ones((1, *x.shape[1:3], 1), x.dtype))


class Net:
    """One forward pass; stats are replaced by the running statistics after it."""

    def __init__(self, settings, w, stats, theta, chosen):
        self.settings, self.w, self.stats = settings, w, dict(stats)
        self.theta, self.chosen = theta, chosen

    def norm(self, x, path):
        mean = x.mean((0, 1, 2))
        variance = ((x - mean) ** 2).mean((0, 1, 2))
        if path + "/mean" in self.stats:
            n = x.size // x.shape[-1]
            for name, new in (("mean", mean), ("variance", variance * n / (n - 1))):
                self.stats[f"{path}/{name}"] = 0.9 * self.stats[f"{path}/{name}"] + 0.1 * lax.stop_gradient(new)
        x = (x - mean) * lax.rsqrt(variance + 1e-5)
        return x * self.w[path + "/scale"] + self.w[path + "/bias"] if path + "/scale" in self.w else x

    def relu_conv_norm(self, x, path, kernel, stride=1):
        x = conv(jax.nn.relu(x), kernel, stride)
        return self.norm(x + self.w[path + "/conv_bias"] if path + "/conv_bias" in self.w else x, path + "/bn")

    def operation(self, x, op, path):
        if op == "none":
            return jnp.zeros_like(x)
        if op == "skip_connect":
            return x
        if op == "avg_pool_3x3":
            return mean_pool(x, 3, 1, 1)
        return self.relu_conv_norm(x, path, self.w[path + "/conv"])

    def edge(self, x, path, e):
        """Σ θ_o·o(x), of all operations or of the chosen one. The others then
        add their θ, which is 0 in value. Every operation is computed, because
        which one is chosen is known only when the program runs; running
        statistics change for the chosen one alone."""
        total = 0
        for o, op in enumerate(self.settings["ops"]):
            before = dict(self.stats)
            y = self.theta[e, o] * self.operation(x, op, f"{path}/{op}")
            if self.chosen is not None:
                here = self.chosen[e] == o
                y = jnp.where(here, y, self.theta[e, o])
                self.stats = {k: jnp.where(here, a, before[k]) for k, a in self.stats.items()}
            total = total + y
        return total

    def cell(self, x, path):
        nodes = [x]
        for j in range(1, 4):
            into = [(e, start) for e, (start, end) in enumerate(supernet.EDGES) if end == j]
            nodes.append(sum(self.edge(nodes[start], f"{path}/{j}<-{start}", e) for e, start in into))
        return nodes[-1]

    def reduction(self, x, path):
        inside = self.relu_conv_norm(x, path + "/conv_a", self.w[path + "/conv_a"], stride=2)
        inside = self.relu_conv_norm(inside, path + "/conv_b", self.w[path + "/conv_b"])
        return conv(mean_pool(x, 2, 2, 0), self.w[path + "/downsample"]) + inside

    def logits(self, x):
        x = self.norm(conv(x, self.w["stem/conv"]), "stem/bn")
        for i, (_, reduction) in enumerate(supernet.widths(self.settings)):
            x = self.reduction(x, f"cells/{i}") if reduction else self.cell(x, f"cells/{i}")
        x = jax.nn.relu(self.norm(x, "last/bn")).mean((1, 2))
        return x @ self.w["classifier/weight"].T + self.w["classifier/bias"]


def relax(settings, a, noise):
    """Weights of the operations, and the sampled ones, of the parameters a."""
    if not supernet.sampled(settings):
        return (jax.nn.softmax(a) if settings["method"] == "darts" else a), None
    logs = jax.nn.log_softmax(a) if settings["method"] == "gdas" else jnp.log(a)
    soft = jax.nn.softmax((logs + noise) / settings["tau"])
    chosen = soft.argmax(-1)
    return jax.nn.one_hot(chosen, soft.shape[-1], dtype=soft.dtype) - lax.stop_gradient(soft) + soft, chosen


def loss(settings, w, a, stats, batch):
    net = Net(settings, w, stats, *relax(settings, a, batch.get("noise")))
    logits = net.logits(batch["images"])
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["labels"][:, None], -1)
    return -chosen.mean(), (logits, net.stats)


def update(s, a, grad, moments):
    """The architecture's step; moments are Adam's two and the steps done."""
    if s["update"] in ("adam", "sgd"):
        grad = grad + s["arch_weight_decay"] * a
        if s["update"] == "sgd":
            return a - s["arch_rate"] * grad, moments
        m = s["arch_beta1"] * moments[0] + (1 - s["arch_beta1"]) * grad
        v = s["arch_beta2"] * moments[1] + (1 - s["arch_beta2"]) * grad**2
        t = moments[2] + 1
        m1, v1 = m / (1 - s["arch_beta1"] ** t), v / -jnp.expm1(t * np.log(s["arch_beta2"]))  # 1 − 0.999 has lost five digits
        return a - s["arch_rate"] * m1 / (jnp.sqrt(v1) + s["arch_epsilon"]), (m, v, t)
    a = a * jnp.exp(-s["arch_rate"] * grad)
    if s["update"] == "eg-clamp-normalize":
        a = a.clip(1e-5)
    a = a / a.sum(-1, keepdims=True)
    return (a.clip(1e-5) if s["update"] == "eg-normalize-clamp" else a), moments


def architecture_step(s, state, batch):
    w, velocity, stats, a, moments, _ = state

    def outer(a):
        inner = w
        if s["hypergradient"] == "unrolled":
            grads = jax.grad(lambda w: loss(s, w, a, stats, batch["train"])[0])(w)
            inner = jax.tree.map(
                lambda w, v, g: w - s["learning_rate"] * (s["momentum"] * v + g + s["weight_decay"] * w), w, velocity, grads)  # fmt: skip
        return loss(s, inner, a, stats, batch["valid"])

    (value, (logits, stats)), grad = jax.value_and_grad(outer, has_aux=True)(a)
    a, moments = update(s, a, grad, moments)
    out = {"valid_loss": value, "valid_logits": logits, "grad/" + supernet.parameter(s): grad}
    return (w, velocity, stats, a, moments, grad), out


def weights_step(s, state, batch):
    w, velocity, stats, a, moments, stale = state
    both = jax.value_and_grad(functools.partial(loss, s), (0, 1), has_aux=True)
    (value, (logits, stats)), (grads, own) = both(w, a, stats, batch["train"])
    out = {"loss": value, "logits": logits} | {"grad/" + path: g for path, g in grads.items()}
    if s["clip"] > 0:
        squares = sum(jnp.sum(g**2) for g in grads.values())
        if s["clip_covers"] == "weights+architecture":
            squares += jnp.sum((stale + own) ** 2)
        factor = jnp.minimum(1, s["clip"] / (jnp.sqrt(squares) + 1e-6))
        grads = {path: factor * g for path, g in grads.items()}
    grads = {path: g + s["weight_decay"] * w[path] for path, g in grads.items()}
    velocity = {path: s["momentum"] * velocity[path] + g for path, g in grads.items()}
    if s["nesterov"]:
        grads = {path: g + s["momentum"] * velocity[path] for path, g in grads.items()}
    else:
        grads = velocity
    w = {path: t - s["learning_rate"] * grads[path] for path, t in w.items()}
    return (w, velocity, stats, a, moments, stale), out


def step(settings, state, batch):
    turns = [architecture_step, weights_step]
    if settings["order"] == "weights-first":
        turns.reverse()
    outputs = {}
    for turn in turns:
        state, out = turn(settings, state, batch)
        outputs |= out
    return state, outputs


def prepare(settings, arrays):
    """The state before the first step and the batches of all."""
    if arrays["weights/stem/conv"].dtype == np.float64:
        jax.config.update("jax_enable_x64", True)
    if settings["unused"] != "zero":
        raise ValueError("unused weights are not skipped here: in one program for all choices their gradient is 0")
    w = {path: kernel_in(a) for path, a in supernet.group(arrays, "weights/").items()}
    velocity = {path: jnp.zeros_like(a) for path, a in w.items()}
    a = jnp.array(arrays[supernet.parameter(settings)])
    _, shapes = supernet.shapes(settings)
    stats = {path: jnp.full(shape, float(path.endswith("variance")), a.dtype) for path, shape in shapes.items()}
    stats |= {path: jnp.array(s) for path, s in supernet.group(arrays, "stats/").items()}
    moments = (jnp.zeros_like(a), jnp.zeros_like(a), jnp.zeros((), a.dtype))
    steps = [supernet.batch(settings, arrays, s) for s in range(settings["steps"])]
    batches = [{part: {k: jnp.array(inward(x)) for k, x in b.items()} for part, b in s.items()} for s in steps]
    return jax.block_until_ready((w, velocity, stats, a, moments, jnp.zeros_like(a))), batches


def results(settings, state):
    w, _, stats, a, _, _ = state
    out = {"after/" + supernet.parameter(settings): a}
    out |= {"after/weights/" + path: kernel_out(t) for path, t in w.items()}
    return out | {"after/stats/" + path: t for path, t in stats.items()}


def fill(settings, arrays):
    # With jaxlib 0.10.2's fusion emitters on the CPU, gradients of some sizes of
    # this network came out wrong by percents (found with batch norm as
    # x / sqrt(x.var())): an oracle is compiled without them.
    take = jax.jit(functools.partial(step, settings), compiler_options={"xla_cpu_use_fusion_emitters": False})
    state, batches = prepare(settings, arrays)
    out = {}
    for s, batch in enumerate(batches):
        state, outputs = take(state, batch)
        outputs = {name: kernel_out(a) for name, a in outputs.items()}
        out |= supernet.at(s, outputs | results(settings, state))
    return out


def timed(settings, arrays, _):
    @functools.partial(jax.jit, donate_argnums=0)
    def take(state, batch):
        state, outputs = step(settings, state, batch)
        return state, outputs["loss"]

    def train(start):
        state, batches = start
        losses = []
        for batch in batches:
            state, value = take(state, batch)
            losses.append(value)
        jax.block_until_ready(state)
        return losses

    return lambda: prepare(settings, arrays), train


if __name__ == "__main__":
    supernet.main(NAME, fill, timed)
