"""Answers for the tests of package features, from NLTK, mmh3 and scikit-learn.

Reads a JSON list of texts from standard input and writes, for each text, the
tokens of every tokenizer, the hashes of their n-grams, and the columns that
scikit-learn's HashingVectorizer has for its words:

    python oracle.py < texts.json > answers.json
"""

import json
import sys
from unicodedata import category

import mmh3
from nltk.tokenize import TreebankWordTokenizer
from nltk.util import ngrams
from sklearn.feature_extraction.text import HashingVectorizer

SEED, BINS, ORDER = 20200715, 2**20, 3


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


def hashes(tokens):
    return [
        mmh3.hash(" ".join(gram), SEED, signed=False)
        for n in range(1, ORDER + 1)
        for gram in ngrams(tokens, n)
    ]


def answer(text):
    tokens = {name: list(cut(text)) for name, cut in TOKENIZERS.items()}
    return {
        "tokens": tokens,
        "lower": [t.lower() for t in tokens["whitespace"]],
        "hashes": hashes(tokens["custom"]),
        "columns": columns(text),
    }


def columns(text):
    """HashingVectorizer's columns and values, unigrams to trigrams, seed 0."""
    vectorizer = HashingVectorizer(
        tokenizer=str.split, token_pattern=None, lowercase=False, norm=None,
        alternate_sign=False, ngram_range=(1, ORDER), n_features=BINS)
    row = vectorizer.transform([text])
    row.sort_indices()
    return [row.indices.tolist(), row.data.tolist()]


if __name__ == "__main__":
    texts = json.load(sys.stdin)
    json.dump([answer(text) for text in texts], sys.stdout)
