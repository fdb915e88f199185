"""The official values of the fields of fastbook's signatures."""

from __future__ import annotations

from collections.abc import Mapping

from qabench.loading_scripts import dataset_table, file_digest
from qabench.official import IRRELEVANT, Declaration, Field


def _is_official_data(value: str) -> bool:
    ((file,),) = dataset_table("fastbook").config("questions").splits.values()
    return value == file_digest("fastbook", file)


# What distinguishes one retrieval system from another does not make its scores unofficial.
_SYSTEM = ("chunker", "chunk_size", "overlap", "corpus", "method", "query", "model")

DECLARATIONS: Mapping[str, Declaration] = {
    "fastbook_retrieval": {
        "config": Field(("questions",), "config: {value}, not the benchmark's questions"),
        "data": Field(_is_official_data, "data: the questions are not those of the benchmark's repository"),
        "k": IRRELEVANT,  # part of the score's name
        "repair": Field(lambda value: value.startswith("ftfy-6."), "text repair: {value} instead of ftfy 6"),
        "options": Field(("official",), "options: {value}, which the official scores do not have"),
        **dict.fromkeys(_SYSTEM, IRRELEVANT),
    },
    # ROUGE of answers is not one of the benchmark's scores, so its metrics are declared unofficial.
    "fastbook_rouge": dict.fromkeys(("config", "data", "rouge", "stemmer", "prompt", "model", "retrieval"), IRRELEVANT),
}
