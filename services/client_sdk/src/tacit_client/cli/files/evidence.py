"""Probabilities, logits and features: which columns they are, and in which order."""

from collections.abc import Sequence

import numpy as np

from tacit.protocol import Features, Model
from tacit.scores import softmax
from tacit.scores.probabilities import ROW_SUM_TOLERANCE
from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.identifiers import find
from tacit_client.cli.files.layout import EvidenceLayout, Layout, names_in
from tacit_client.cli.files.source import Array, Source


def probability_table(source: Source, layout: EvidenceLayout, classes: Sequence[str]) -> Array:
    """The (n, k) probabilities of the file, made from logits where it holds those."""
    names = _named(source, layout.probabilities, layout.probabilities_prefix, classes)
    if names:
        return _probabilities(source, names, len(classes))
    names = _named(source, layout.logits, layout.logits_prefix, classes)
    if names:
        return softmax(_wide(source, names, len(classes)))
    if found := _unnamed(source, "probabilities", "p_", classes):
        return _probabilities(source, found, len(classes))
    if found := _unnamed(source, "logits", "logit_", classes):
        return softmax(_wide(source, found, len(classes)))
    raise BadFile(
        f"{source.path.name} has no probabilities: no {source.column} named probabilities, and"
        f" none that begin with p_. It has: {source.listing()}. Name them with --probabilities,"
        " --probabilities-prefix, --logits or --logits-prefix."
    )


def has_features(source: Source, layout: Layout) -> bool:
    """Whether options name features, or the file has some and no probabilities or logits."""
    if layout.features or layout.features_prefix is not None:
        return True
    others = (
        layout.probabilities,
        layout.probabilities_prefix,
        layout.logits,
        layout.logits_prefix,
    )
    if any(other is not None for other in others):
        return False
    names = ("probabilities", "logits")
    usual = any(name in source.names for name in names)
    if usual or _suffixes(source, "p_") or _suffixes(source, "logit_"):
        return False
    return "features" in source.names or bool(_suffixes(source, "x_"))


def usual_evidence(source: Source) -> list[str]:
    """The columns that have the usual names of probabilities, logits or features."""
    names, prefixes = ("probabilities", "logits", "features"), ("p_", "logit_", "x_")
    return [name for name in source.names if name in names or name.startswith(prefixes)]


def feature_array(source: Source, layout: Layout, asked: Features | Model) -> Array:
    """The features of the file, in the type and shape that the campaign asks for."""
    names = _feature_names(source, layout)
    found = source.numbers(names)
    if found.shape[1:] == (1,) and asked.shape == ():
        found = found[:, 0]
    if found.shape[1:] != asked.shape:
        raise BadFile(
            f"The features of one record must have the shape {list(asked.shape)}, not"
            f" {list(found.shape[1:])}. Write features of several axes as one array into an NPZ"
            " file."
        )
    return _cast(source, found, np.dtype(asked.dtype))


def _feature_names(source: Source, layout: Layout) -> list[str]:
    if layout.features:
        return names_in(layout.features)
    if layout.features_prefix is None and (name := find(source, "features")):
        return [name]
    prefix = "x_" if layout.features_prefix is None else layout.features_prefix
    suffixes = _suffixes(source, prefix)
    if not suffixes:
        raise BadFile(
            f"{source.path.name} has no features: no {source.column} named features, and none that"
            f" begin with {prefix}. It has: {source.listing()}. Name them with --features or"
            " --features-prefix."
        )
    if sorted(suffixes) != sorted(str(number) for number in range(len(suffixes))):
        raise BadFile(
            f"The columns that begin with {prefix} must be numbered from 0 to {len(suffixes) - 1}."
            " List them in the model's order with --features."
        )
    return [prefix + str(number) for number in range(len(suffixes))]


def _cast(source: Source, found: Array, dtype: np.dtype[np.generic]) -> Array:
    """The numbers in the campaign's type, where they are the same numbers in it.

    Only numbers written as text, which have no type of their own, are rounded to it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        cast: Array = found.astype(dtype)
        rounded = dtype.kind == "f" and not source.typed
        wrong = ~np.isfinite(cast) if rounded else cast.astype(np.float64) != found
    rows = wrong.reshape(len(found), -1).any(axis=1)
    if rows.any():
        raise BadFile(
            f"The features in {source.place(int(rows.argmax()))} of {source.path.name} do not fit"
            f" the campaign's type, {dtype}. Convert them as for the model's training; nothing is"
            " rounded here."
        )
    return cast


def _named(
    source: Source, listed: str | None, prefix: str | None, classes: Sequence[str]
) -> list[str]:
    """The columns that options name, if they do."""
    if listed:
        return names_in(listed)
    return [] if prefix is None else _by_prefix(source, prefix, classes)


def _unnamed(source: Source, name: str, prefix: str, classes: Sequence[str]) -> list[str]:
    """The columns with the usual names, if they are there."""
    if name in source.names:
        return [name]
    return _by_prefix(source, prefix, classes) if _suffixes(source, prefix) else []


def _by_prefix(source: Source, prefix: str, classes: Sequence[str]) -> list[str]:
    """The columns prefix + class name, or prefix + class number, in the order of the classes."""
    suffixes = set(_suffixes(source, prefix))
    for expected in (classes, [str(number) for number in range(len(classes))]):
        if suffixes == set(expected):
            return [prefix + suffix for suffix in expected]
    raise BadFile(
        f"{source.path.name} has {len(suffixes)} columns that begin with {prefix}; what follows"
        f" must be the names of the {len(classes)} classes or the numbers 0 to {len(classes) - 1}."
        f" It has: {source.listing()}."
    )


def _suffixes(source: Source, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in source.names if name.startswith(prefix)]


def _wide(source: Source, names: Sequence[str], k: int) -> Array:
    found = source.numbers(names)
    if found.ndim != 2 or found.shape[1] != k:
        raise BadFile(
            f"Probabilities and logits must have one column for each of the {k} classes;"
            f" {source.path.name} has them in shape {list(found.shape)}."
        )
    return found


def _probabilities(source: Source, names: Sequence[str], k: int) -> Array:
    """A table whose rows are probabilities; where they are not, the file's own line is named."""
    found = _wide(source, names, k)
    wrong = (np.abs(found.sum(axis=1, dtype=np.float64) - 1) > ROW_SUM_TOLERANCE) | (
        found.min(axis=1) < 0
    )
    if wrong.any():
        raise BadFile(
            f"The probabilities in {source.place(int(wrong.argmax()))} of {source.path.name} are"
            f" negative or do not sum to 1 within {ROW_SUM_TOLERANCE:g}. If they are logits, name"
            " them with --logits; if they are rounded, write more decimals."
        )
    return found
