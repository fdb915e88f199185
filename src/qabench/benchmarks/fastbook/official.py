"""The official values of the fields of fastbook's signatures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qabench.evaluation.signature import IRRELEVANT, Declaration, read_declarations
from qabench.loading_scripts import pinned_digests

_DECLARED = read_declarations(
    Path(__file__).with_name("official.json"), {"data": pinned_digests("fastbook", "questions")}
)
_METRIC = _DECLARED["metric"] | _DECLARED["scoring"]
# A run records how the chapters were split. For a file of predictions, only the longest passage is
# known. Fields about the retrieval system itself do not make scores unofficial.
_SYSTEM = _DECLARED["chunking"] | _DECLARED["system"]

DECLARATIONS: Mapping[str, Declaration] = {
    "answer_component_mrr": _METRIC,
    "answer_component_recall": _METRIC,
    "fastbook_retrieval": _DECLARED["run"] | _DECLARED["scoring"] | _SYSTEM,
    # The benchmark's author does not score answers, so the ROUGE scores are declared unofficial.
    "fastbook_rouge": _DECLARED["answers"]
    | dict.fromkeys(_SYSTEM, IRRELEVANT)
    | _DECLARED["generation"],
}
