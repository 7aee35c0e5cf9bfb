"""Networks of the DARTS space and of NAS-Bench-1Shot1 in JAX: images [B, H, W, C], a step is one jitted
function whose state is donated. Form "stock" has XLA's own operations,
"shifted" depthwise convolutions and pools as sums and maxima of shifted maps
with gradients of their own. darts.py says how it is called."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import darts

DIMS = ("NHWC", "HWIO", "NHWC")


def window(x, start, fold, k, stride, pad):
    return lax.reduce_window(x, start, fold, (1, k, k, 1), (1, stride, stride, 1), [(0, 0), (pad, pad), (pad, pad), (0, 0)])


class Stock:
    axis = 3
    relu = staticmethod(jax.nn.relu)

    def __init__(self, stats):
        self.stats, self.next = stats, {}

    def norm(self, x, path, scale, bias):
        n = x.size // x.shape[-1]
        mean = x.mean((0, 1, 2))
        variance = ((x - mean) ** 2).mean((0, 1, 2))
        old = self.stats.get(path, (jnp.zeros_like(mean), jnp.ones_like(mean)))
        new = lax.stop_gradient((mean, variance * n / (n - 1)))
        self.next[path] = tuple(0.9 * a + 0.1 * b for a, b in zip(old, new))
        x = (x - mean) * lax.rsqrt(variance + 1e-5)
        return x if scale is None else x * scale + bias

    def conv(self, x, w, stride):
        pad = w.shape[0] // 2
        return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=DIMS)

    def depthwise(self, x, w, stride, dilation):
        pad = dilation * (w.shape[0] // 2)
        return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2, rhs_dilation=(dilation, dilation),
                                        dimension_numbers=DIMS, feature_group_count=x.shape[-1])  # fmt: skip

    def max_pool(self, x, stride):
        return window(x, -jnp.inf, lax.max, 3, stride, 1)

    def avg_pool(self, x, stride):
        ones = jnp.ones((1, *x.shape[1:3], 1), x.dtype)
        return window(x, 0.0, lax.add, 3, stride, 1) / window(ones, 0.0, lax.add, 3, stride, 1)

    def max2(self, x, pad=0):
        return window(x, -jnp.inf, lax.max, 2, 2, pad)

    def join(self, maps):
        return jnp.concatenate(maps, -1)

    def channels(self, x, start, end):
        return x[..., start:end]

    def shuffle(self, x, groups):
        *d, c = x.shape
        return x.reshape(*d, groups, c // groups).swapaxes(-1, -2).reshape(*d, c)

    def later(self, x):
        return x[:, 1:, 1:]

    def mean(self, x):
        return x.mean((1, 2))

    def linear(self, x, w, b):
        return x @ w + b


def taps(x, k, stride, dilation, fill):
    """What outputs see of x at each place of their window."""
    b, h, w, c = x.shape
    pad = dilation * (k // 2)
    x = jnp.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=fill)
    rows, columns = -(-h // stride), -(-w // stride)
    for i in range(k):
        for j in range(k):
            top, left = i * dilation, j * dilation
            end = (b, top + (rows - 1) * stride + 1, left + (columns - 1) * stride + 1, c)
            yield i, j, lax.slice(x, (0, top, left, 0), end, (1, stride, stride, 1))


def spaced(v, stride, like, fill=0.0):
    """v with its pixels stride places apart, in the size of like."""
    if stride == 1:
        return v
    h, w = like.shape[1:3]
    ends = [(0, n - (m - 1) * stride - 1, stride - 1) for n, m in ((h, v.shape[1]), (w, v.shape[2]))]
    return lax.pad(v, jnp.asarray(fill, v.dtype), ((0, 0, 0), *ends, (0, 0, 0)))


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def depthwise(x, w, stride, dilation):
    return sum(t * w[i, j, 0] for i, j, t in taps(x, w.shape[0], stride, dilation, 0.0))


def depthwise_back(stride, dilation, saved, v):
    x, w = saved
    k, c = w.shape[0], x.shape[-1]
    dx = depthwise(spaced(v, stride, x), w[::-1, ::-1], 1, dilation)
    rows = [(t * v).sum(1).reshape(-1, c) for _, _, t in taps(x, k, stride, dilation, 0.0)]
    dw = jnp.stack([jnp.ones((1, r.shape[0]), x.dtype) @ r for r in rows])
    return dx, dw.reshape(w.shape)


depthwise.defvjp(lambda x, w, s, d: (depthwise(x, w, s, d), (x, w)), depthwise_back)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def max_pool(x, stride):
    return functools.reduce(jnp.maximum, (t for _, _, t in taps(x, 3, stride, 1, -jnp.inf)))


def max_pool_back(stride, saved, v):
    """The first of equal pixels, which are many behind a ReLU, takes the gradient."""
    x, y = saved
    first = jnp.full(y.shape, 9)
    for i, j, t in reversed(list(taps(x, 3, stride, 1, -jnp.inf))):
        first = jnp.where(t == y, 3 * i + j, first)
    first, v = spaced(first, stride, x, 9), spaced(v, stride, x)
    seen = zip(taps(first, 3, 1, 1, 9), taps(v, 3, 1, 1, 0.0))
    return (sum(jnp.where(a[2] == 8 - 3 * a[0] - a[1], b[2], 0) for a, b in seen),)


max_pool.defvjp(lambda x, s: (lambda y: (y, (x, y)))(max_pool(x, s)), max_pool_back)


class Shifted(Stock):
    def depthwise(self, x, w, stride, dilation):
        return depthwise(x, w, stride, dilation)

    def max_pool(self, x, stride):
        return max_pool(x, stride)

    def avg_pool(self, x, stride):
        def total(x):
            return sum(t for _, _, t in taps(x, 3, stride, 1, 0.0))

        return total(x) / total(jnp.ones((1, *x.shape[1:3], 1), x.dtype))


def loss(s, kind, w, a, stats, batch):
    theta = {name: x if s.get("update") else jax.nn.softmax(x) for name, x in a.items()}
    ops = kind(stats)
    logits = darts.network(s, ops, w).logits(batch[0], theta)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch[1][:, None], -1)
    return -chosen.mean(), ops.next


def adam(s, a, grad, moments):
    m, v, t = moments
    grad = jax.tree.map(lambda g, x: g + s["arch_weight_decay"] * x, grad, a)
    m = jax.tree.map(lambda m, g: 0.5 * m + 0.5 * g, m, grad)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grad)
    t = t + 1
    c1, c2 = 1 - 0.5**t, -jnp.expm1(t * np.log(0.999))

    def move(x, m, v):
        return x - s["arch_rate"] * (m / c1) / (jnp.sqrt(v / c2) + 1e-8)

    return jax.tree.map(move, a, m, v), (m, v, t)


def exponentiated(s, a, grad, moments):
    return jax.tree.map(lambda x, g: jax.nn.softmax(jnp.log(x) - s["arch_rate"] * g), a, grad), moments


def hypergradient(s, kind, w, velocity, a, stats, train, valid):
    """The loss of the architecture's batch with the next statistics, and its gradient:
    of first order, through one step of the weights, or the same by differences."""

    def inner(w, a):
        return loss(s, kind, w, a, stats, train)[0]

    def ahead(a):
        slopes = jax.grad(inner)(w, a)
        return {
            k: x - s["learning_rate"] * (s["momentum"] * velocity[k] + slopes[k] + s["weight_decay"] * x)
            for k, x in w.items()
        }

    def outer(w, a):
        return loss(s, kind, w, a, stats, valid)

    way = s.get("hypergradient")
    if not way:
        return jax.value_and_grad(lambda a: outer(w, a), has_aux=True)(a)
    if way == "unrolled":
        return jax.value_and_grad(lambda a: outer(ahead(a), a), has_aux=True)(a)
    found, (v, direct) = jax.value_and_grad(outer, argnums=(0, 1), has_aux=True)(ahead(a), a)
    epsilon = 0.01 / jnp.sqrt(sum(jnp.sum(x**2) for x in v.values()))
    plus, minus = (
        jax.grad(inner, argnums=1)({k: x + e * v[k] for k, x in w.items()}, a) for e in (epsilon, -epsilon)
    )
    rate = s["learning_rate"]
    return found, jax.tree.map(lambda d, p, m: d - rate * (p - m) / (2 * epsilon), direct, plus, minus)


def step(s, kind, state, train, valid):
    w, velocity, stats, a, moments = state
    found = []
    if a:
        seen = train if s.get("erm") else valid
        (valid_loss, stats), of_a = hypergradient(s, kind, w, velocity, a, stats, train, seen)
        a, moments = (exponentiated if s.get("update") else adam)(s, a, of_a, moments)
    inner = jax.value_and_grad(lambda w: loss(s, kind, w, a, stats, train), has_aux=True)
    (train_loss, stats), of_w = inner(w)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in of_w.values()))
    factor = jnp.minimum(1, s["clip"] / (norm + 1e-6))
    velocity = {k: s["momentum"] * velocity[k] + factor * of_w[k] + s["weight_decay"] * w[k] for k in w}
    moved = {k: w[k] - s["learning_rate"] * velocity[k] for k in w}
    found = [train_loss, *([valid_loss] if a else [])]  # in the settings' order, dictionaries in JAX have their own
    found += [of_w[k] for k, _ in s["weights"]] + [of_a[k] for k, _ in s["theta"] or []]
    return (moved, velocity, stats, a, moments), found


FORMS = {"stock": Stock, "shifted": Shifted}


def prepare(s, arrays, form):
    w = {k: jnp.array(x) for k, x in arrays["weights"].items()}
    a = {k: jnp.array(x) for k, x in arrays["theta"].items()}

    def zeros(tree):
        return {k: jnp.zeros_like(x) for k, x in tree.items()}

    batches = [
        [(jnp.array(arrays[p + "_images"][i]), jnp.array(arrays[p + "_labels"][i])) for p in ("train", "valid")]
        for i in range(s["steps"])
    ]
    shapes = jax.eval_shape(lambda w, a, x: loss(s, FORMS[form], w, a, {}, x)[1], w, a, batches[0][0])
    stats = {k: (jnp.zeros(m.shape, m.dtype), jnp.ones(v.shape, v.dtype)) for k, (m, v) in shapes.items()}
    state = w, zeros(w), stats, a, (zeros(a), zeros(a), jnp.zeros((), arrays["train_images"].dtype))
    return jax.block_until_ready(state), batches


def fill(s, arrays, form):
    if s["double"]:
        jax.config.update("jax_enable_x64", True)
    # as in supernet_jax.py: an oracle is compiled without the fusion emitters
    take = jax.jit(functools.partial(step, s, FORMS[form]), compiler_options={"xla_cpu_use_fusion_emitters": False})
    state, batches = prepare(s, arrays, form)
    out = []
    for batch in batches:
        state, found = take(state, *batch)
        out += found
    return out


def timed(s, arrays, form):
    @functools.partial(jax.jit, donate_argnums=0)
    def take(state, train, valid):
        state, found = step(s, FORMS[form], state, train, valid)
        return state, found[0]

    def train(start):
        state, batches = start
        losses = []
        for batch in batches:
            state, value = take(state, *batch)
            losses.append(value)
        jax.block_until_ready(state)
        return losses

    return lambda: prepare(s, arrays, form), train


if __name__ == "__main__":
    darts.main(jax.__version__, fill, timed)
