"""onnxruntime, kept from telling anyone of machines, models and records. Needs the extra `onnx`.

Its official packages report to Microsoft unless they are told not to before they are loaded, from
1.29 on also on Linux and macOS. Import it from here only: nothing leaves a site but what was
randomized.

Its logger writes to standard error by itself: an operator that fails on a record writes there what
the record holds. So it is silent but for what ends the process; what fails is also raised, and
whoever catches that decides what is shown.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime  # reads the variable once, when it is loaded

onnxruntime.disable_telemetry_events()  # of Windows, which does not know the variable

ONLY_FATAL = 4
"""The severity of the logger; a session's own, which it is given too, comes before the default."""
onnxruntime.set_default_logger_severity(ONLY_FATAL)

__all__ = ["ONLY_FATAL", "onnxruntime"]
