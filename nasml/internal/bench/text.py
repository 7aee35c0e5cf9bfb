"""The peer of the text benchmark: n-grams of reviews as hashed features.

    python text.py serve FOLDER FORM

For every line on its stdin it makes the features of all reviews from their
texts: split at punctuation, small letters, n-grams hashed to bins and counted,
Naive Bayes weights, rows of norm one. It answers as peer.py says; its losses
are how many n-grams it has counted.

loop                plain Python around MurmurHash3, then SciPy, as the code of
                    Khodak+ 2020 has it
HashingVectorizer   scikit-learn's, which hashes in compiled code, with a
                    regular expression for the tokens
"""

import re
import sys
from unicodedata import category

import mmh3
import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

import peer

BLOCK = 1000  # texts that one number of the answer is about


def tokens(text):
    for word in text.split():
        signs = [category(c)[0] in "MPS" for c in word]
        start = 0
        for i in range(1, len(word) + 1):
            if i == len(word) or signs[i] != signs[start]:
                yield word[start:i].lower()
                start = i


def loop(texts, order, bins):
    rows, cols = [], []
    for row, text in enumerate(texts):
        words = list(tokens(text))
        for n in range(1, order + 1):
            for i in range(len(words) - n + 1):
                rows.append(row)
                cols.append(mmh3.hash(" ".join(words[i:i + n]), 0, signed=False) % bins)
    ones = np.ones(len(rows), np.float32)
    return sp.coo_matrix((ones, (rows, cols)), (len(texts), bins)).tocsr()


# Letters and digits, with the control characters that some reviews have, and
# what is neither they nor white space.
PATTERN = re.compile(r"(?:[^\W_]|[\x00-\x08\x7f-\x84\x86-\x9f\xad])+|(?:[^\w\s\x00-\x08\x7f-\x84\x86-\x9f\xad]|_)+")


def vectorized(texts, order, bins):
    vectorizer = HashingVectorizer(
        tokenizer=PATTERN.findall, token_pattern=None, ngram_range=(1, order),
        n_features=bins, alternate_sign=False, norm=None, dtype=np.float32)
    return vectorizer.transform(texts)


FORMS = {"loop": loop, "HashingVectorizer": vectorized}


def weigh(counts, labels, alpha):
    p, q = (np.asarray(counts[labels == y].sum(0)).ravel() + alpha for y in (1, -1))
    weights = np.log2(p / p.sum() / (q / q.sum()))
    return normalize(counts @ sp.diags(weights.astype(np.float32)), copy=False)


if __name__ == "__main__":
    _, folder, form = sys.argv[1:]
    settings, _ = peer.load(folder)
    labels = np.array(settings["labels"])

    def train(_):
        counts = FORMS[form](settings["texts"], settings["order"], settings["bins"])
        weigh(counts, labels, settings["alpha"])
        sums = np.asarray(counts.sum(1), np.float64).ravel()
        return np.array([sums[i:i + BLOCK].sum() for i in range(0, len(sums), BLOCK)])

    peer.serve(sklearn.__version__, lambda: None, train)
