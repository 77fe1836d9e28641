"""Scikit-learn's digits, as a population with a weak classifier."""

from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from tests.support.populations import Population

TRAINING = 300


@cache
def digits() -> Population:
    """The digits that logistic regression on a quarter of the pixels was not trained on."""
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    features, labels = features[order, 1::4] / 16, labels[order]
    model = LogisticRegression(C=0.1, max_iter=500).fit(features[:TRAINING], labels[:TRAINING])
    return Population(model.predict_proba(features[TRAINING:]), np.eye(10)[labels[TRAINING:]])
