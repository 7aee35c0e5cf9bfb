"""What SciPy's LSQR, scikit-learn's Ridge and LinearSVC find on small problems.

    python linear.py > linear.json

The problems are formulas, so that the tests have the same numbers without a
file of them. A test with the peers' environment runs this anew.
"""

import json

import numpy as np
import scipy
import scipy.sparse
import sklearn
from scipy.sparse.linalg import lsqr
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC


def matrix(n, d, decay):
    """Columns of falling size: sin(1 + 12.9898 i + 78.233 j + i j)/(1 + j)^decay."""
    i, j = np.arange(n)[:, None], np.arange(d)[None, :]
    return np.sin(1 + 12.9898 * i + 78.233 * j + i * j) / (1 + j) ** decay


def targets(n, k):
    i, j = np.arange(n)[:, None], np.arange(k)[None, :]
    return np.cos(3 + 4.1414 * i + 1.7 * j + 0.1 * i * j) + 0.5 * j


def rounded(x):
    return [float(f"{v:.12g}") for v in x]


def solves():
    for n, d, decay in [(40, 15, 0.0), (30, 30, 1.0), (15, 40, 0.5), (60, 20, 2.0)]:
        a, y = matrix(n, d, decay), targets(n, 3)
        # Where the condition number is large, rounding decides how many iterations are taken.
        for damp in [0.0, 0.5**0.5, 3.0][decay >= 1 :]:
            for tol in [1e-3, 1e-4, 1e-10]:
                runs = [lsqr(a, column, damp=damp, atol=tol, btol=tol) for column in y.T]
                yield {
                    "n": n, "d": d, "decay": decay, "damp": damp, "tol": tol,
                    "iterations": [int(r[2]) for r in runs], "stop": [int(r[1]) for r in runs],
                    "residual": [float(r[4]) for r in runs], "gradient": [float(r[7]) for r in runs],
                    "x": [rounded(r[0]) for r in runs],
                }


def ridges():
    for n, d, decay in [(40, 15, 0.0), (15, 40, 0.5), (1, 3, 0.0), (5, 1, 0.0)]:
        a, y = matrix(n, d, decay) + 0.3, targets(n, 3)
        for alpha in [0.5, 10.0]:
            for tol in [1e-3, 1e-4, 1e-12]:
                m = Ridge(alpha=alpha, solver="lsqr", tol=tol).fit(a, y)
                yield {
                    "n": n, "d": d, "decay": decay, "alpha": alpha, "tol": tol,
                    "iterations": [int(i) for i in m.n_iter_],
                    "weights": [rounded(w) for w in m.coef_.reshape(3, d)], "intercept": np.atleast_1d(m.intercept_).tolist(),
                }


def machines():
    for n, d in [(60, 8), (40, 80), (200, 30)]:
        a = matrix(n, d, 0.0).astype(np.float32).astype(np.float64)
        a[np.abs(a) < 0.6] = 0
        y = np.where(np.cos(5 + 2.3 * np.arange(n) + a[:, 0]) + a[:, 1] > 0, 1, -1)
        for loss in ["hinge", "squared_hinge"]:
            for c in [0.1, 1.0, 20.0]:
                for intercept in [True, False]:
                    m = LinearSVC(C=c, loss=loss, dual=True, tol=1e-9, max_iter=10**6, fit_intercept=intercept, random_state=0)
                    m.fit(scipy.sparse.csr_matrix(a), y)
                    w, b = m.coef_[0], float(np.atleast_1d(m.intercept_)[0])
                    losses = np.maximum(0, 1 - y * (a @ w + b)) ** (2 if loss == "squared_hinge" else 1)
                    yield {
                        "n": n, "d": d, "loss": loss.replace("_", "-"), "c": c, "intercept": intercept,
                        "objective": (w @ w + b * b) / 2 + c * losses.sum(), "w": rounded(w), "b": b,
                    }


print(json.dumps({
    "scipy": scipy.__version__, "scikit-learn": sklearn.__version__,
    "lsqr": list(solves()), "ridge": list(ridges()), "svm": list(machines()),
}))
