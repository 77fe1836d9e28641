"""The command: reads the terms, shows progress, tells the story."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from examples.digits_story.progress import steps
from tacit.errors import TacitError

PICTURE = Path("build/demo/coverage.png")


def main(argv: Sequence[str] | None = None) -> int:
    """Tell the story; 2 if the terms make no sense, 1 if the picture cannot be saved."""
    arguments = _arguments(argv)
    console = Console(highlight=False)
    console.print("[bold]Tacit[/bold]: calibrate a model on labels that nobody discloses\n")
    try:
        return _tell(console, arguments)
    except TacitError as error:
        console.print(f"[bold]These terms do not work.[/bold] {error}")
        return 2


def _tell(console: Console, arguments: argparse.Namespace) -> int:
    with steps(console, total=3) as begin:
        begin("Loading torch, scikit-learn and matplotlib")
        from examples.digits_story import picture, screen, story  # noqa: PLC0415 -- takes seconds

        terms = story.Terms(
            alpha=arguments.alpha,
            delta=arguments.delta,
            epsilon=arguments.epsilon,
            rounds=arguments.rounds,
        )
        begin("Training a small model")
        setting = story.prepare()
        begin("Asking five sites")
        comparison = story.compare(setting.sites, setting.model, terms)
    screen.show(console, comparison, setting)
    path = arguments.picture
    try:
        picture.draw(comparison, setting.true_scores(terms.score), path)
    except OSError as error:
        sentence = f"The picture {path} cannot be saved: {error}."
        console.print(sentence, soft_wrap=True, markup=False)
        return 1
    console.print(f"Picture of the coverage curves: {path}", soft_wrap=True, markup=False)
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="digits.py", description="Tell the library's story on scikit-learn's digits."
    )
    for name, default, meaning in (
        ("--epsilon", 3.0, "how much a report may reveal"),
        ("--alpha", 0.2, "the share of sets that may miss"),
        ("--delta", 0.05, "the risk that L* and S* may take"),
    ):
        parser.add_argument(name, type=float, default=default, help=f"{meaning} ({default})")
    parser.add_argument("--rounds", type=int, default=5, help="questions of S and S* (%(default)s)")
    parser.add_argument("--picture", type=_png, default=PICTURE, help="PNG to write (%(default)s)")
    return parser.parse_args(argv)


def _png(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() != ".png":
        raise argparse.ArgumentTypeError(
            f"The picture's name must end in .png, and {text!r} does not."
        )
    return path
