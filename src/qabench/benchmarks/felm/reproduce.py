"""Published numbers of FELM that can be computed from public data."""

from __future__ import annotations

from qabench.benchmarks.published import published
from qabench.benchmarks.reproduction import Known, Reproduction, data_checks

README = "the table of the authors' README differs from the data file that their script scores"
_VALUES = {
    "science, segments": 684,
    "science, errors": 102,
    "math, true": 474,
    "math, errors": 125,
    "reasoning, true": 879,
    "reasoning, errors": 146,
    "writing_rec, segments": 1586,
    "writing_rec, true": 1319,
    "all, segments": 4426,
    "all, true": 3639,
    "all, errors": 787,
}


def known() -> Known:
    """Return the differences between the README's table and the data file."""
    return {f"all: Segments by domain: {what}": (value, README) for what, value in _VALUES.items()}


def reproduce() -> Reproduction:
    """Compare the statistics of the data. The scores of evaluators need their replies, which are not public."""
    reproduction = data_checks("felm", known())
    systems = ", ".join(dict.fromkeys(score.system for score in published("felm")))
    reproduction.notes.append(
        f"The scores of {systems} are not computed: the authors did not publish the replies. `qabench run felm` runs a "
        "model with the authors' prompts."
    )
    return reproduction
