"""Private conformal calibration: what both sides of a campaign must agree on.

No I/O, no clock, no global state. The rooms: `mechanisms` (randomizers and coins), `scores`
(conformity scores), `conformal` (thresholds and prediction sets), `planning` (how many records).
"""

from importlib.metadata import version

__version__ = version("tacit")
