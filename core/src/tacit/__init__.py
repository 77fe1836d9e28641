"""Private conformal calibration: what both sides of a campaign must agree on.

No clock, no global state, and no I/O but in `save`, `load` and the planning command. The rooms:
`mechanisms` (randomizers and coins), `scores` (conformity scores), `conformal` (thresholds and
prediction sets), `planning` (how many records).
"""

from importlib.metadata import version

__version__ = version("tacit")
