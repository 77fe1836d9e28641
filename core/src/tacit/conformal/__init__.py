"""Conformal calibration: from clean, noisy or randomized labels and scores to a threshold.

`split` and `noisy` take labels as they are; `nacp` and `nacp_matrix` undo known label noise;
`nrscp` and `nrescp` calibrate a noise-robust score; `ldp_cp_l` and `CoverageSketch.calibrate` are
LDP-CP-L; `BinarySearch` and `CertifiedSearch` (and `ldp_cp_s`, for records in one place) are
LDP-CP-S.
"""

from tacit.conformal.grid import ScoreGrid
from tacit.conformal.labels import ldp_cp_l
from tacit.conformal.matrix import nacp_matrix
from tacit.conformal.nacp import nacp
from tacit.conformal.questions import Answers, Question, deal
from tacit.conformal.results import Calibration, Guarantee, NotCertifiable
from tacit.conformal.robust import nrescp, nrscp
from tacit.conformal.scores import ldp_cp_s, run
from tacit.conformal.search import BinarySearch, CertifiedSearch
from tacit.conformal.sketch import CoverageSketch
from tacit.conformal.split import noisy, split

__all__ = [
    "Answers",
    "BinarySearch",
    "Calibration",
    "CertifiedSearch",
    "CoverageSketch",
    "Guarantee",
    "NotCertifiable",
    "Question",
    "ScoreGrid",
    "deal",
    "ldp_cp_l",
    "ldp_cp_s",
    "nacp",
    "nacp_matrix",
    "noisy",
    "nrescp",
    "nrscp",
    "run",
    "split",
]
