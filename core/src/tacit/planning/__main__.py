"""`python -m tacit.planning`: Δ, the records it takes, and which method, as a table."""

import argparse
import sys
from collections.abc import Sequence
from itertools import product

from tacit.command import forgiving_stdout, whole_number
from tacit.errors import TacitError
from tacit.planning.recommendation import recommend
from tacit.planning.table import as_json, as_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; a value out of range is a sentence on stderr and exit code 2."""
    terms = _parser().parse_args(arguments)
    try:
        recommendations = [
            recommend(
                n,
                k,
                epsilon,
                terms.alpha,
                terms.delta,
                tau=terms.tau,
                width=terms.width,
                features_may_leave=not terms.features_stay,
            )
            for k, epsilon, n in product(terms.k, terms.epsilon, terms.n)
        ]
    except TacitError as error:
        print(f"tacit.planning: {error}", file=sys.stderr)
        return 2
    print(as_json(recommendations) if terms.json else as_text(recommendations))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tacit.planning",
        description="Plan a campaign: what n records are worth at a privacy ε, and which method.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--n",
        type=_whole_number,
        nargs="+",
        default=[1_000, 10_000, 100_000],
        help="calibration records",
    )
    parser.add_argument("--k", type=_whole_number, nargs="+", default=[10, 100], help="classes")
    parser.add_argument(
        "--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0], help="privacy per record"
    )
    parser.add_argument("--alpha", type=float, default=0.1, help="1 - the wanted coverage")
    parser.add_argument("--delta", type=float, default=0.05, help="probability to miss it")
    parser.add_argument(
        "--tau", type=float, default=0.001, help="width of scores at which S stops halving"
    )
    parser.add_argument(
        "--width", type=float, default=1.0, help="width of the score's range (1 for HPS and APS)"
    )
    parser.add_argument(
        "--features-stay", action="store_true", help="features may not leave their site"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _whole_number(text: str) -> int:
    try:
        return whole_number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


if __name__ == "__main__":
    with forgiving_stdout():
        sys.exit(main())
