"""The official values of the fields of fastbook's signatures (see ``qabench.evaluation.signature``)."""

from __future__ import annotations

from collections.abc import Mapping

from qabench.evaluation.signature import IRRELEVANT, Declaration, Field
from qabench.loading_scripts import dataset_table, file_digest
from qabench.tasks.facts import GENERATE_CONFIG

# the column answer_context of all questions, digested in the dataset's order
REFERENCES = "6d23feba4ae3"


def _is_official_data(value: str) -> bool:
    ((file,),) = dataset_table("fastbook").config("questions").splits.values()
    return value == file_digest("fastbook", file)


_SIZE = "500"  # tokens of the author's chunks
_CHUNKS = "{name}: {value} instead of {official}, which the published results have"
_SCORING: Declaration = {
    "k": Field(("10",), "k: {value} instead of 10, the cutoff of the published results"),
    "repair": Field(
        lambda value: value.startswith("ftfy-6."), "text repair: {value} instead of ftfy 6"
    ),
    "options": Field(("official",), "options: {value}, which official scores do not have"),
    "longest": Field(
        (_SIZE,), "a passage has {value} tokens; the published results have chunks of {official}"
    ),
}
_METRIC: Declaration = {
    "references": Field(
        (REFERENCES,),
        "references: not the answer components of all questions in the dataset's order",
    ),
    **_SCORING,
}
# A run knows how the chapters were split. Of a file, only the longest passage is known.
_CHUNKING: Declaration = {
    "chunk_size": Field((_SIZE,), _CHUNKS, absent=True),
    "overlap": Field(("64",), _CHUNKS, absent=True),
}
# The other fields of a retrieval system do not make its scores unofficial.
_SYSTEM = ("chunker", "corpus", "method", "query", "model")
_ANSWERS = (
    "config",
    "data",
    "prompt",
    "retriever_model",
    "passages",
    "rouge",
    "stemmer",
    *_CHUNKING,
    *_SYSTEM,
    *GENERATE_CONFIG,
)

DECLARATIONS: Mapping[str, Declaration] = {
    "answer_component_mrr": _METRIC,
    "answer_component_recall": _METRIC,
    "fastbook_retrieval": {
        "config": Field(("questions",), "config: {value}, not the benchmark's questions"),
        "data": Field(
            _is_official_data, "data: the questions are not those of the benchmark's repository"
        ),
        **_SCORING,
        **_CHUNKING,
        **dict.fromkeys(_SYSTEM, IRRELEVANT),
    },
    # ROUGE of answers is not a score of the benchmark's authors: its metrics are declared
    # unofficial.
    "fastbook_rouge": dict.fromkeys(_ANSWERS, IRRELEVANT),
}
