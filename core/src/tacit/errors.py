"""Every error the core raises.

TacitError
├── InvalidEpsilon          ε is not a positive finite number
├── InvalidClassCount       fewer than two classes, or more than a mechanism supports
├── NoInformation           the channel this ε asks for would carry nothing
├── InvalidLabels           labels are not integers from 0 to k-1
├── InvalidBits             bits are not 0 or 1
├── InvalidCoins            keys or record keys of the wrong type or shape
├── InvalidProbabilities    not an (n, k) table of rows that are finite, non-negative and sum to 1
├── InvalidParameter        a level, failure probability, size or other parameter is out of range
├── InvalidNoise            a noise level or a noise matrix cannot be undone
├── IncompatibleSketches    sketches of different scores, classes or grids cannot be added
├── InvalidDocument         a document is not what this class writes
├── InvalidColumn           an array of a message has the wrong type, shape, size or values
├── ModelNotLoadable        a model's file is not one that can be run here
├── ModelMisbehaved         a model did not give finite numbers, one per record and class
├── UpgradeRequired         a document or a request is of a protocol version not spoken here
└── Untrusted               a document is not the one, or not from the one, that was agreed on
    ├── WrongDigest         it is another document
    ├── WrongKey            another key signed it
    └── WrongSignature      the key it names did not sign it

All of them are `ValueError`s too: the value given was wrong, and nothing was done with it.
"""


class TacitError(ValueError):
    """Something given to Tacit was wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class InvalidEpsilon(TacitError):
    """ε must be a positive, finite number."""


class InvalidClassCount(TacitError):
    """The number of classes k must be an integer of at least 2."""


class NoInformation(TacitError):
    """This ε is so small that the channel would carry no information; choose a larger one."""


class InvalidLabels(TacitError):
    """Labels must be integers from 0 to k-1 in a one-dimensional array."""


class InvalidBits(TacitError):
    """Bits must be booleans or the integers 0 and 1 in a one-dimensional array."""


class InvalidCoins(TacitError):
    """A campaign key is 32 bytes; record keys are an (n, 16) array of bytes."""


class InvalidProbabilities(TacitError):
    """Probabilities must be an (n, k) array of finite, non-negative rows that sum to 1."""


class InvalidParameter(TacitError):
    """A parameter is out of its range."""


class InvalidNoise(TacitError):
    """Noise can be undone for a level in [0, 1) or an invertible row-stochastic matrix only."""


class IncompatibleSketches(TacitError):
    """Only sketches of the same score, number of classes and grid can be added."""


class InvalidDocument(TacitError):
    """This is not a document that Tacit has written."""


class InvalidColumn(TacitError):
    """An array of this message has the wrong type, shape, size or values."""


class ModelNotLoadable(TacitError):
    """A model's file cannot be loaded."""


class ModelMisbehaved(TacitError):
    """A model did not give finite numbers, one per record and class."""


class UpgradeRequired(TacitError):
    """This is of a protocol version that is not spoken here; install one that speaks it."""


class Untrusted(TacitError):
    """This document is not the one that was agreed on; do not use it."""


class WrongDigest(Untrusted):
    """This is not the document with the digest agreed on; do not use it, and ask who sent it."""


class WrongKey(Untrusted):
    """This document is signed with another key than the pinned one; do not use it."""


class WrongSignature(Untrusted):
    """The signature of this document is not valid; do not use it."""
