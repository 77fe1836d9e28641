"""Models as functions: from features to the probability of each class, checked.

`tacit.networks.onnx_file` runs single ONNX files, and needs the extra `onnx`.
"""

from tacit.networks.running import (
    Described,
    Network,
    Outputs,
    Predictor,
    one_by_one,
    predictor,
    probe,
    rows_at_once,
    zeros,
)

__all__ = [
    "Described",
    "Network",
    "Outputs",
    "Predictor",
    "one_by_one",
    "predictor",
    "probe",
    "rows_at_once",
    "zeros",
]
