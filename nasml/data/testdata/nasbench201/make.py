"""Writes small files in the formats of NATS-Bench and NAS-Bench-201.

    python make.py          # beside this file; needs numpy 1.x, as its authors had

They have the first three architectures with numbers of the real benchmark:
the single trials where those are known, and elsewhere three that have the real
mean. All else (losses, other epochs) is made up. PyTorch is not needed:
torch.save's two formats are written by hand.
"""
import bz2
import gzip
import io
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))

ARCHS = [
    "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|",
    "|avg_pool_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|avg_pool_3x3~0|avg_pool_3x3~1|avg_pool_3x3~2|",
]
PARAMS = [0.129306, 0.802426, 0.559386]  # millions
SECONDS = [1444.2185997962952, 2169.641375541687, 2267.177677154541]  # of 200 epochs

# Percent: 12 epochs, means.
SHORT = [
    {("cifar10-valid", "x-valid"): 63.36399998046875, ("cifar10", "ori-test"): 69.55,
     ("cifar100", "x-valid"): 31.840000003051756, ("cifar100", "x-test"): 31.259999963378906,
     ("ImageNet16-120", "x-valid"): 18.466666661580405, ("ImageNet16-120", "x-test"): 16.999999966939292},
    {("cifar10-valid", "x-valid"): 82.83399999389648, ("cifar10", "ori-test"): 88.22,
     ("cifar100", "x-valid"): 57.79999996948242, ("cifar100", "x-test"): 58.25999995727539,
     ("ImageNet16-120", "x-valid"): 35.433333353678385, ("ImageNet16-120", "x-test"): 33.80000003051758},
    {("cifar10-valid", "x-valid"): 63.55999999633789, ("cifar10", "ori-test"): 69.95,
     ("cifar100", "x-valid"): 29.419999963378906, ("cifar100", "x-test"): 29.920000018310546,
     ("ImageNet16-120", "x-valid"): 18.46666667175293, ("ImageNet16-120", "x-test"): 17.866666646321615},
]
# 200 epochs of NAS-Bench-201, means.
NB201 = [
    {("cifar10-valid", "x-valid"): 81.98266665690103, ("cifar10-valid", "ori-test"): 81.52,
     ("cifar100", "x-valid"): 52.70000000406901, ("cifar100", "x-test"): 52.913333294677734,
     ("ImageNet16-120", "x-valid"): 28.211111075507272, ("ImageNet16-120", "x-test"): 26.633333287556965},
    {("cifar10-valid", "x-valid"): 90.76933332438152, ("cifar10-valid", "ori-test"): 90.51333333333332,
     ("cifar100", "x-valid"): 69.82666660970052, ("cifar100", "x-test"): 70.29333330078126,
     ("ImageNet16-120", "x-valid"): 44.48888875664605, ("ImageNet16-120", "x-test"): 44.033333248562286},
    {("cifar10-valid", "x-valid"): 81.91066666178385, ("cifar10-valid", "ori-test"): 81.83999999999999,
     ("cifar100", "x-valid"): 54.300000000000004, ("cifar100", "x-test"): 54.86666662190755,
     ("ImageNet16-120", "x-valid"): 27.633333302815757, ("ImageNet16-120", "x-test"): 27.25555552842882},
]
# 200 epochs of NATS-Bench: means, and single trials in the order of the seeds.
NATS = [
    {("cifar10", "ori-test"): 85.86333333333334, ("cifar100", "x-test"): 52.913333294677734, ("ImageNet16-120", "x-test"): 26.6333332739936},
    {("cifar10", "ori-test"): 93.66000000000001, ("cifar100", "x-test"): 70.29333326822916, ("ImageNet16-120", "x-test"): 44.03333332316081},
    {("cifar10", "ori-test"): 85.74000000000001, ("cifar100", "x-test"): 54.866666630045565, ("ImageNet16-120", "x-test"): 27.25555556233724},
]
TRIALS = [
    {("cifar10-valid", "x-valid"): [82.09199998291015, 81.61599997314453, 82.24000001464844],
     ("cifar100", "ori-test"): [51.93, 53.38, 53.11],
     ("ImageNet16-120", "ori-test"): [27.683333328247073, 26.56666665140787, 28.016666676839193]},
    {("cifar10-valid", "x-valid"): [90.71199999511718, 90.71599999023438, 90.87999998779297],
     ("cifar100", "ori-test"): [70.64, 69.98, 69.56],
     ("ImageNet16-120", "ori-test"): [45.116666676839195, 44.25, 43.41666668701172]},
    {("cifar10-valid", "x-valid"): [82.2839999975586, 81.85600001220703, 81.59199997558594],
     ("cifar100", "ori-test"): [54.47, 54.51, 54.77],
     ("ImageNet16-120", "ori-test"): [27.583333343505856, 26.866666656494147, 27.883333323160812]},
]
SEEDS = [777, 888, 999]


def spread(mean, n):
    """n trials that have the mean."""
    return [mean] if n == 1 else [mean - 0.5, mean + 0.5] if n == 2 else [mean - 0.25, mean + 0.25, mean]


def trial(arch, dataset, seed, epochs, last):
    """The state of one ResultsCount; last has the accuracy of each set after the last epoch."""
    classes = {"cifar100": 100, "ImageNet16-120": 120}.get(dataset, 10)
    sets = sorted(last)
    state = {
        "name": dataset, "net_state_dict": None,
        "train_acc1es": OrderedDict((e, 50.0) for e in range(epochs)), "train_acc5es": None,
        "train_losses": OrderedDict((e, 1.0) for e in range(epochs)),
        "train_times": OrderedDict((e, SECONDS[arch] / 200) for e in range(epochs)),
        "arch_config": {"channel": 16, "num_cells": 5, "arch_str": ARCHS[arch], "class_num": classes},
        "params": numpy.float64(PARAMS[arch]), "flop": 15.64737, "seed": seed, "epochs": epochs,
        "latency": [0.01418, 0.01419], "eval_names": sets, "eval_acc1es": {}, "eval_times": {}, "eval_losses": {},
    }
    for name in sets:
        for e in range(epochs):
            key = "{:}@{:}".format(name, e)
            state["eval_acc1es"][key] = last[name] if e == epochs - 1 else 10.0
            state["eval_losses"][key], state["eval_times"][key] = 2.0, 0.5
    return state


def arch_state(arch, epochs, trials):
    """The state of one ArchResults; trials: {(dataset, set): [accuracies by seed]}."""
    results, seeds = {}, {}
    for dataset in ["cifar10-valid", "cifar10", "cifar100", "ImageNet16-120"]:
        mine = {name: xs for (d, name), xs in trials.items() if d == dataset}
        if not mine:
            continue
        n = len(next(iter(mine.values())))
        for i in reversed(range(n)):  # not in the order of the seeds: readers have to sort
            results[dataset, SEEDS[i]] = trial(arch, dataset, SEEDS[i], epochs, {name: xs[i] for name, xs in mine.items()})
        seeds[dataset] = SEEDS[:n]
    return {"arch_index": arch, "arch_str": ARCHS[arch], "all_results": results, "dataset_seed": seeds, "clear_net_done": True}


def short(arch):
    return arch_state(arch, 12, {key: spread(mean, 2 if key[0] == "cifar10-valid" else 1) for key, mean in SHORT[arch].items()})


def nats(arch):
    trials = {key: spread(mean, 3) for key, mean in NATS[arch].items()}
    trials.update(TRIALS[arch])
    return OrderedDict({"12": short(arch), "200": arch_state(arch, 200, trials)})


def nb201(arch):
    trials = {key: spread(mean, 3) for key, mean in NB201[arch].items()}
    return {"full": arch_state(arch, 200, trials), "less": short(arch)}


def zipped_pickle(path, value):
    with bz2.BZ2File(path, "wb") as f:
        pickle.dump(value, f, protocol=4)


class Evil:
    def __reduce__(self):
        return os.system, ("touch ran-a-pickle",)


def main():
    folder = os.path.join(HERE, "NATS-tss-v1_0-tiny-simple")
    os.makedirs(folder, exist_ok=True)
    everything = list(range(len(ARCHS)))
    zipped_pickle(os.path.join(folder, "meta.pickle.pbz2"), {"meta_archs": ARCHS, "total_archs": len(ARCHS), "arch2infos": None, "evaluated_indexes": set()})
    for arch in everything:
        zipped_pickle(os.path.join(folder, "{:06d}.pickle.pbz2".format(arch)), nats(arch))
    zipped_pickle(os.path.join(HERE, "NATS-tss-v1_0-tiny.pickle.pbz2"),
                  {"meta_archs": ARCHS, "total_archs": 3, "arch2infos": {a: nats(a) for a in everything}, "evaluated_indexes": set(everything)})
    zipped_pickle(os.path.join(HERE, "evil.pickle.pbz2"), {"meta_archs": Evil()})

    benchmark = {"meta_archs": ARCHS, "total_archs": 3, "arch2infos": {a: nb201(a) for a in everything}, "evaluated_indexes": set(everything)}
    legacy = io.BytesIO()
    for head in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}):
        pickle.dump(head, legacy, protocol=2)
    pickle.dump(benchmark, legacy, protocol=2)
    pickle.dump([], legacy, protocol=2)  # the keys of no tensors
    with open(os.path.join(HERE, "legacy.pth.gz"), "wb") as f:
        f.write(gzip.compress(legacy.getvalue(), mtime=0))

    since16 = io.BytesIO()
    with zipfile.ZipFile(since16, "w", zipfile.ZIP_STORED) as z:
        z.writestr(zipfile.ZipInfo("archive/data.pkl"), pickle.dumps(benchmark, protocol=2))
        z.writestr(zipfile.ZipInfo("archive/version"), "3\n")
    with open(os.path.join(HERE, "zip.pth.gz"), "wb") as f:
        f.write(gzip.compress(since16.getvalue(), mtime=0))


if __name__ == "__main__":
    main()
