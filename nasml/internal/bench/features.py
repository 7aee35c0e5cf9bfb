"""The peer of the feature benchmark: the linear models of Khodak+ 2020 by NumPy
and scikit-learn, on the inputs that the benchmark wrote to FOLDER,

    python features.py serve FOLDER FORM

It answers every line on its stdin as peer.py says.

float64, float32   cosines of a product of matrices, then Ridge(solver="lsqr");
                   the code of Khodak+ 2020 computes in float64
LinearSVC          the rows are given
"""

import itertools
import os
import sys

threads = str(os.cpu_count())
os.environ.setdefault("OMP_NUM_THREADS", threads)
os.environ.setdefault("OPENBLAS_NUM_THREADS", threads)

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

import peer


def fourier(x, w, offsets):
    """Random Fourier features, in as few copies as NumPy can."""
    phi = x @ w
    phi += offsets
    np.cos(phi, out=phi)
    phi *= np.sqrt(2 / w.shape[1])
    return phi


def ridge(settings, arrays, dtype):
    x, held = (arrays[name].astype(dtype) for name in ("x", "held"))
    w, offsets = arrays["w"].astype(dtype), arrays["offsets"].astype(dtype)
    y, held_y = (2 * np.eye(settings["classes"], dtype=dtype)[arrays[name]] - 1 for name in ("labels", "held_labels"))

    tols = itertools.chain([settings["compare_tol"]], itertools.repeat(settings["tol"]))

    def train(_):
        factor = dtype(np.sqrt(2 * settings["gamma"]))
        model = Ridge(alpha=0.5, solver="lsqr", tol=next(tols), copy_X=False)
        model.fit(fourier(normalize(x) * factor, w, offsets), y)
        scores = model.predict(fourier(normalize(held) * factor, w, offsets))
        errors = np.sqrt(np.mean((scores - held_y) ** 2, axis=0))
        return np.concatenate([np.linalg.norm(model.coef_, axis=1), errors])

    return train


def svm(settings, arrays, _):
    starts = arrays["starts"]
    rows = sp.csr_matrix((arrays["values"].astype(np.float64), arrays["columns"], starts), (len(starts) - 1, settings["bins"]))
    labels = arrays["labels"]

    def train(_):
        model = LinearSVC(C=1.0, loss="hinge", dual=True, tol=1e-5, random_state=0).fit(rows, labels)
        w, b = model.coef_[0], model.intercept_[0]
        return [(w @ w + b * b) / 2 + np.maximum(0, 1 - labels * (rows @ w + b)).sum()]

    return train


if __name__ == "__main__":
    _, folder, form = sys.argv[1:]
    settings, arrays = peer.load(folder)
    case = {"ridge": ridge, "svm": svm}[settings["case"]]
    train = case(settings, arrays, {"float32": np.float32}.get(form, np.float64))
    arrays.clear()
    peer.serve(sklearn.__version__, lambda: None, train)
