"""The coverage curves and where each method put its threshold."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from examples.digits_story.campaigns import Comparison
from tacit.conformal import Calibration

# Okabe and Ito's colours: told apart with every kind of colour vision, and in grey by lightness.
INK, BLUE, ORANGE, GREEN, GREY = "#1b1b1b", "#0072B2", "#D55E00", "#009E73", "#8a8a8a"
COLOURS = {
    "not private": INK,
    "LDP-CP-L": BLUE,
    "LDP-CP-L*": BLUE,
    "LDP-CP-S": GREEN,
    "LDP-CP-S*": GREEN,
}


def draw(comparison: Comparison, true_scores: NDArray[np.float64], path: Path) -> None:
    """Save the picture as a PNG."""
    figure = Figure(figsize=(9, 6.8), layout="constrained")
    curves, strip = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.15])
    for axes in (curves, strip):
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(color=GREY)
    _curves(curves, comparison, true_scores)
    _thresholds(curves, strip, comparison)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)


def _curves(axes: Axes, comparison: Comparison, true_scores: NDArray[np.float64]) -> None:
    channel = comparison.terms.label_mechanism.channel
    curve = comparison.sketch.curve()
    grid = curve.thresholds
    noisy, random = curve.noisy_within / curve.n, curve.all_within / (curve.n * curve.k)
    truth = np.searchsorted(np.sort(true_scores), grid, side="right") / len(true_scores)
    axes.plot(grid, random, color=GREY, lw=1.8, label="$\\hat F^r$  every class alike")
    axes.plot(grid, noisy, color=ORANGE, lw=1.8, label="$\\hat F^n$  reported labels, as they came")
    clean = curve.coverage(channel.beta)
    axes.plot(
        grid, clean, color=BLUE, lw=2.6, label="$\\hat F^c$  true labels, estimated from both"
    )
    axes.plot(grid, truth, color=INK, lw=1.2, ls="--", label="true labels (only a demo can know)")
    goal = float(1 - comparison.terms.alpha)
    axes.axhline(goal, color=INK, lw=0.8, ls=":")
    axes.annotate(f"goal {goal:.0%}", (0, goal), xytext=(4, 4), textcoords="offset points")
    axes.set(xlim=(0, 1), ylim=(0, 1.05), ylabel="share of scores at most t")
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.legend(
        edgecolor="none", framealpha=1, loc="upper left", bbox_to_anchor=(0, 0.75), reverse=True
    )
    title = f"Coverage, from {curve.n:,} labels reported with ε = {channel.epsilon:g}"
    axes.set_title(title, loc="left", pad=10)


def _thresholds(curves: Axes, strip: Axes, comparison: Comparison) -> None:
    results = comparison.results()
    for row, (name, result) in enumerate(results.items()):
        if not isinstance(result, Calibration):
            _beside(strip, 1, row, "not certifiable with so few records")
            continue
        marker = "D" if name.endswith("*") else "o"
        strip.plot(result.threshold, row, marker, color=COLOURS[name], ms=7, clip_on=False)
        _beside(strip, result.threshold, row, f"{result.threshold:.3f}")
        curves.vlines(result.threshold, 0, result.coverage, color=COLOURS[name], lw=0.8)
    strip.set_yticks(range(len(results)), list(results))
    strip.set_ylim(len(results) - 0.4, -0.6)
    strip.grid(axis="y", color=GREY, alpha=0.3)
    strip.tick_params(axis="y", length=0)
    strip.set_xlabel(
        "threshold t on the score (APS): classes with a score of at most t are in the set"
    )


def _beside(strip: Axes, threshold: float, row: int, words: str) -> None:
    strip.annotate(
        words,
        (threshold, row),
        xytext=(-10, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
