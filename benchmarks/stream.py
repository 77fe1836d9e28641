"""Stream records through a coverage sketch: `… RECORDS CLASSES`, prints JSON.

A process of its own, because peak memory is a process's.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run by path, too

from benchmarks.synthetic import make_records
from tacit.conformal import CoverageSketch
from tacit.scores import APS

CHUNK = 100_000


def main() -> None:
    """Make, count and forget one chunk of records after the other; only counting is timed."""
    records, k = int(sys.argv[1]), int(sys.argv[2])
    generator = np.random.default_rng(records)
    sketch = CoverageSketch.empty(APS(), k)
    seconds = 0.0
    while sketch.n < records:
        chunk = make_records(min(CHUNK, records - sketch.n), k, generator)
        start = time.perf_counter()
        sketch = sketch.add(chunk.probabilities, chunk.labels)
        seconds += time.perf_counter() - start
    print(json.dumps({"records_per_second": records / seconds, "peak_bytes": peak_bytes()}))


def peak_bytes() -> int:
    """The most memory this process has had resident; Linux counts it in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
