"""ExpertQA as a Hugging Face dataset.

See the card, README.md, for the data and its oddities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from qabench.data.rows import Json, read_json_lines
from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.expertqa.parse import (
    ANSWER_KEYS,
    CLAIM_KEYS,
    LARGEST,
    OPTIONAL_KEYS,
    TEXTS,
    parser_of,
)

TEXT = datasets.Value("string")


def _feature(key: str) -> Any:
    if key in TEXTS:
        return datasets.List(TEXT)
    return datasets.Value("float64") if key in LARGEST else TEXT


CLAIM = {
    **{key: _feature(key) for key in CLAIM_KEYS},
    "revised_evidence_is_text": datasets.Value("bool"),
    **{key: _feature(key) for key in OPTIONAL_KEYS},
    "optional_fields": datasets.List(TEXT),
}
ANSWER = (
    {"system": TEXT}
    | {key: _feature(key) for key in ANSWER_KEYS}
    | {"claims": datasets.List(CLAIM)}
)
METADATA = {
    "question_type": datasets.List(TEXT),
    "question_type_text": TEXT,
    "field": TEXT,
    "specific_field": TEXT,
}
QUESTION = {"id": TEXT, "question": TEXT, "annotator_id": TEXT, "metadata": METADATA}
LFQA = {
    "id": TEXT,
    "example_id": datasets.Value("int64"),
    "context": TEXT,
    "question": TEXT,
    "answer": TEXT,
}


class ExpertQA(BenchmarkBuilder):
    """Configs main, all_evidences, autoais, factscores, questions, six ``answers_*`` and sample
    (split train). ``random``, ``domain``, lfqa_random and lfqa_domain (splits train, validation,
    test).

    ``answers`` is a list of structs with the system's name. ``questions`` and the ``lfqa`` configs
    do not have it.
    """

    BENCHMARK = "expertqa"
    DESCRIPTION = (
        "Questions by experts from 32 fields, answers of six systems split into claims, and the experts' judgment of "
        "each claim: its support, correctness, relevance, need for a citation, and the reliability of its source."
    )
    HOMEPAGE = "https://github.com/chaitanyamalaviya/ExpertQA"
    LICENSE = "mit"

    def _columns(self) -> dict[str, Any]:
        if self.config.name.startswith("lfqa_"):
            return LFQA
        return (
            QUESTION
            if self.config.name == "questions"
            else QUESTION | {"answers": datasets.List(ANSWER)}
        )

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        return map(parser_of(self.config.name), read_json_lines(path))
