"""Answers for the tests of package features: NLTK, mmh3 and scikit-learn.

Reads a question from standard input and writes the answers:

    python oracle.py < question.json > answers.json

A question has texts with labels (-1 or 1), configurations, the number of each
text's configuration, the number of bins and the list of stop words. The answers
are, for each text, its tokens, small letters, the hashes of its n-grams and the
row that scikit-learn's HashingVectorizer makes, and the weighted features of
all texts, as the code of Khodak+ 2020 defines them.
"""

import json
import sys
from unicodedata import category

import mmh3
import numpy as np
from nltk.tokenize import TreebankWordTokenizer
from nltk.util import ngrams
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

SEED, ORDER = 20200715, 3


def sign(char):
    return category(char)[0] in "MPS"


def custom(text):
    for word in text.split():
        start = 0
        for i in range(1, len(word) + 1):
            if i == len(word) or sign(word[i]) != sign(word[start]):
                yield word[start:i]
                start = i


def simple(text):
    for word in text.split():
        word = "".join(c for c in word if not sign(c))
        if word:
            yield word


TOKENIZERS = {
    "whitespace": str.split,
    "simple": simple,
    "custom": custom,
    "treebank": TreebankWordTokenizer().tokenize,
}


def grams(tokens, order):
    return [" ".join(g) for n in range(1, order + 1) for g in ngrams(tokens, n)]


def stop_words(words):
    """Each word, capitalised, and without its punctuation."""
    stops = set(words) | {word.capitalize() for word in words}
    return stops | {"".join(c for c in word if not sign(c)) for word in words}


def bag(text, config, bins, stops):
    tokens = list(TOKENIZERS[config["Tokenizer"]](text))
    if config["StopWords"]:
        tokens = [t for t in tokens if t not in stops]
    if config["Lower"]:
        tokens = [t.lower() for t in tokens]
    row = np.zeros(bins)
    for gram in grams(tokens, config["Order"]):
        row[mmh3.hash(gram, config["HashSeed"], signed=False) % bins] += 1
    return np.sign(row) if config["Binary"] else row


def weighted(raw, config, p, q):
    alpha, row = config["Alpha"], raw.copy()
    if config["Weighting"] == "nb":
        row *= np.log2((p + alpha) / (p + alpha).sum() / ((q + alpha) / (q + alpha).sum()))
    elif config["Weighting"] == "sif":
        total = (p + q).sum()
        row *= total * alpha / (total * alpha + p + q)
    if config["Preprocess"] == "average":
        row /= raw.sum() or 1
    elif config["Preprocess"] == "normalize":
        row = normalize(row[None])[0]
    return row


def features(question):
    """All texts, the first `train` of which are counted, mixed as they are."""
    configs = [question["configs"][k] for k in question["of"]]
    stops, bins = stop_words(question["stops"]), question["bins"]
    raw = np.array([bag(t, c, bins, stops) for t, c in zip(question["texts"], configs)])
    y, n = np.array(question["labels"]), question["train"]
    p, q = (raw[:n][y[:n] == label].sum(0) for label in (1, -1))
    rows = [weighted(r, c, p, q) for r, c in zip(raw, configs)]
    return [[np.flatnonzero(r).tolist(), r[r != 0].tolist()] for r in rows]


def columns(text, bins):
    """scikit-learn's columns and values, n-grams of words, seed 0."""
    vectorizer = HashingVectorizer(
        tokenizer=str.split, token_pattern=None, lowercase=False, norm=None,
        alternate_sign=False, ngram_range=(1, ORDER), n_features=bins)
    row = vectorizer.transform([text])
    row.sort_indices()
    return [row.indices.tolist(), row.data.tolist()]


def answer(text, bins):
    tokens = {name: list(cut(text)) for name, cut in TOKENIZERS.items()}
    return {
        "tokens": tokens,
        "small": [t.lower() for t in tokens["whitespace"]],
        "hashes": [mmh3.hash(g, SEED, signed=False) for g in grams(tokens["custom"], ORDER)],
        "columns": columns(text, bins),
    }


if __name__ == "__main__":
    question = json.load(sys.stdin)
    answers = [answer(text, question["bins"]) for text in question["texts"]]
    json.dump({"texts": answers, "features": features(question)}, sys.stdout)
