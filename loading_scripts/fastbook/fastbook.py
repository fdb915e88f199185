"""fastbook-benchmark as a Hugging Face dataset; see the card, README.md, for the data and its oddities."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import datasets

from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.fastbook.parse import (
    parse_qrels,
    parse_question,
    read_chapter,
    read_keywords,
    read_questions,
)

STRING, INTEGER, BOOL = (datasets.Value(dtype) for dtype in ("string", "int64", "bool"))
NUMBERED = {"chapter": INTEGER, "question_number": INTEGER}
FLAGS = {"explicit_context": BOOL, "extraneous_answer": BOOL}
FEATURES: dict[str, dict[str, Any]] = {
    "questions": {
        "id": STRING,
        **NUMBERED,
        "question_text": STRING,
        "gold_standard_answer": STRING,
        "answer_context": datasets.List(
            {
                "answer_component": datasets.List(STRING),
                "scoring_type": STRING,
                "context": datasets.List(STRING),
                **FLAGS,
            }
        ),
        "question_context": datasets.List({"question_component": STRING, "context": datasets.List(STRING)}),
    },
    "corpus": {
        "chapter": INTEGER,
        "title": STRING,
        "file": STRING,
        "text": STRING,
        "cells": datasets.List({"position": INTEGER, "cell_type": STRING, "source": STRING}),
    },
    "keywords": {"id": STRING, **NUMBERED, "question_text": STRING, "keywords": STRING},
    "qrels": {
        "query_id": STRING,
        **NUMBERED,
        "component_index": INTEGER,
        "context_index": INTEGER,
        "context": STRING,
        **FLAGS,
    },
}


class Fastbook(BenchmarkBuilder):
    """Configs questions, keywords, qrels (split test) and corpus (split corpus), the same of the sample, leaderboard.

    ``id`` ("13-4": chapter and question number) joins questions with keywords and with the qrels' ``query_id``;
    ``chapter`` joins them with the corpus.
    """

    BENCHMARK = "fastbook"
    DESCRIPTION = (
        "191 end-of-chapter questions from seven chapters of the fastai book, with their answers split into "
        "components, and for each component the passages of the chapter that contain it: retrieval with one corpus per "
        "chapter."
    )
    HOMEPAGE = "https://github.com/vishalbakshi/fastbook-benchmark"
    LICENSE = "no license file upstream; book text: see fastai/fastbook"

    def _columns(self) -> dict[str, Any]:
        return FEATURES[self._kind]

    @property
    def _kind(self) -> str:
        """Return the schema of the config: "sample_corpus" has that of "corpus", "sample" that of "questions"."""
        name = str(self.config.name)
        return "questions" if name == "sample" else name.removeprefix("sample_")

    def _rows(self, path: Path, split: str) -> Iterator[dict[str, Any]]:
        if self._kind == "corpus":
            return iter([read_chapter(path)])
        if self._kind == "keywords":
            return read_keywords(path)
        if self._kind == "qrels":
            return chain.from_iterable(map(parse_qrels, read_questions(path)))
        return map(parse_question, read_questions(path))
