"""Figure 2 in JAX: an epoch is one jitted scan over its batches, the weights
are donated. Two forms: "vmap" maps the gradient of one network's loss over
seeds and variants, "batched" writes the products of all networks as einsums."""

import functools
import sys

import jax
import jax.numpy as jnp

import peer

_, folder, form = sys.argv[1:]
settings, arrays = peer.load(folder)
layers = sum(name.startswith("w") and name != "weight" for name in arrays)
x, y, v = (jnp.asarray(arrays[name]) for name in ("x", "y", "v"))
alpha, order, weight = (jnp.asarray(arrays[name]) for name in ("alpha", "order", "weight"))
initial = [arrays[f"w{i}"] for i in range(layers)]


def sigma(alpha, z):
    return (1 - alpha) * jax.nn.relu(z) + alpha * jax.nn.sigmoid(z)


def loss_of_one(weights, alpha, x, y, weight):
    """The loss of one network: weights [out, in], x [B, d], y and weight [B]."""
    z = x @ weights[0].T
    if settings["panel"] == "a":
        f = sigma(alpha, z) @ v
    else:
        for w in weights[1:]:
            z = sigma(alpha, z) @ w.T
        f = (sigma(alpha, z) if settings["output"] else z)[:, 0]
    return jnp.sum(weight * (f - y) ** 2)


def losses_of_all(weights, alpha, x, y, weight):
    """The losses [S, V] of all networks: weights [S, V, out, in], x [S, B, d]."""
    a = alpha[:, :, None, None]
    z = jnp.einsum("svkd,sbd->svkb", weights[0], x)
    if settings["panel"] == "a":
        f = jnp.einsum("svkb,k->svb", sigma(a, z), v)
    else:
        for w in weights[1:]:
            z = jnp.einsum("svlk,svkb->svlb", w, sigma(a, z))
        f = (sigma(a, z) if settings["output"] else z)[:, :, 0]
    return jnp.sum(weight * (f - y[:, None]) ** 2, axis=-1)


def gradients_vmap(weights, alpha, x, y, weight):
    one = jax.value_and_grad(loss_of_one)
    variants = jax.vmap(one, in_axes=(0, 0, None, None, None))
    return jax.vmap(variants, in_axes=(0, 0, 0, 0, None))(weights, alpha, x, y, weight)


def gradients_batched(weights, *inputs):
    def total(weights):
        losses = losses_of_all(weights, *inputs)
        return jnp.sum(losses), losses

    grads, losses = jax.grad(total, has_aux=True)(weights)
    return losses, grads


gradients = {"vmap": gradients_vmap, "batched": gradients_batched}[form]


@functools.partial(jax.jit, donate_argnums=0)
def epoch(weights, x, y, alpha, order, weight):
    def step(weights, batch):
        rows, weight = batch
        losses, grads = gradients(weights, alpha, x[rows], y[rows], weight)
        return [w - settings["rate"] * g for w, g in zip(weights, grads)], losses

    weights, losses = jax.lax.scan(step, weights, (order, weight))
    return weights, jnp.mean(losses, axis=0)


def prepare():
    return jax.block_until_ready([jnp.array(w) for w in initial])


def train(weights):
    losses = []
    for rows in order:
        weights, mean = epoch(weights, x, y, alpha, rows, weight)
        losses.append(mean)
    jax.block_until_ready(weights)
    return jnp.stack(losses)


peer.serve(jax.__version__, prepare, train)
