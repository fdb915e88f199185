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
# A run knows how the chapters were split. Of a file, only the longest passage is known. The other
# fields of a retrieval system do not make its scores unofficial.
_SYSTEM = _DECLARED["chunking"] | _DECLARED["system"]

DECLARATIONS: Mapping[str, Declaration] = {
    "answer_component_mrr": _METRIC,
    "answer_component_recall": _METRIC,
    "fastbook_retrieval": _DECLARED["run"] | _DECLARED["scoring"] | _SYSTEM,
    # ROUGE of answers is not a score of the benchmark's authors: its metrics are declared
    # unofficial.
    "fastbook_rouge": _DECLARED["answers"]
    | dict.fromkeys(_SYSTEM, IRRELEVANT)
    | _DECLARED["generation"],
}
