"""Figure 2 in PyTorch on the CPU. Two forms: "loop" trains one network after
the other, which keeps a small one in the processor's cache, and gathers the
batches once for the variants of a seed; "vmap" trains all at once by
torch.func.vmap over seeds and variants."""

import sys

import torch
import torch.nn.functional as F
from torch.func import grad_and_value, vmap

import peer

_, folder, form = sys.argv[1:]
settings, arrays = peer.load(folder)
layers = sum(name.startswith("w") and name != "weight" for name in arrays)
torch.set_num_threads(settings["threads"])
x, y, v = (torch.from_numpy(arrays[name]) for name in ("x", "y", "v"))
alpha, weight = torch.from_numpy(arrays["alpha"]), torch.from_numpy(arrays["weight"])
order = torch.from_numpy(arrays["order"]).long()
initial = [torch.from_numpy(arrays[f"w{i}"]) for i in range(layers)]
epochs, steps, seeds, _ = order.shape
rate = settings["rate"]


def sigma(alpha, z):
    return (1 - alpha) * F.relu(z) + alpha * torch.sigmoid(z)


def loss_of_one(weights, alpha, x, y, weight):
    """The loss of one network: weights [out, in], x [B, d], y and weight [B]."""
    z = F.linear(x, weights[0])
    if settings["panel"] == "a":
        f = sigma(alpha, z) @ v
    else:
        for w in weights[1:]:
            z = F.linear(sigma(alpha, z), w)
        f = (sigma(alpha, z) if settings["output"] else z)[:, 0]
    return (weight * (f - y) ** 2).sum()


def train_loop(weights):
    losses = torch.zeros(epochs, *alpha.shape)
    for s in range(seeds):
        for e in range(epochs):
            batches = [(x[rows], y[rows], w) for rows, w in zip(order[e, :, s], weight)]
            for i in range(alpha.shape[1]):
                own = [w[s, i].requires_grad_() for w in weights]
                losses[e, s, i] = train_epoch(own, alpha[s, i].item(), batches)
    return losses


def train_epoch(weights, alpha, batches):
    total = 0
    for xb, yb, wb in batches:
        loss = loss_of_one(weights, alpha, xb, yb, wb)
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, g in zip(weights, grads):
                w.sub_(g, alpha=rate)
        total += loss.detach()
    return total / len(batches)


variants = vmap(grad_and_value(loss_of_one), in_dims=(0, 0, None, None, None))
gradients = vmap(variants, in_dims=(0, 0, 0, 0, None))


def train_vmap(weights):
    losses = torch.zeros(epochs, *alpha.shape)
    for e in range(epochs):
        for rows, w in zip(order[e], weight):
            grads, loss = gradients(weights, alpha, x[rows], y[rows], w)
            for wl, g in zip(weights, grads):
                wl.sub_(g, alpha=rate)
            losses[e] += loss
    return losses / steps


def prepare():
    return [w.clone() for w in initial]


peer.serve(torch.__version__, prepare, {"loop": train_loop, "vmap": train_vmap}[form])
