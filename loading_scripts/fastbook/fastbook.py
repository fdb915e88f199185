"""fastbook-benchmark as a Hugging Face dataset. The card, README.md, describes the data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from qabench.data.rows import Json
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.fastbook.chunks import cut, doc_id, judgments
from qabench.loading_scripts.fastbook.parse import (
    parse_contexts,
    parse_question,
    read_chapter,
    read_keywords,
    read_questions,
)

NOTEBOOK = ".ipynb"


class Fastbook(BenchmarkBuilder):
    """Builds fastbook's configs.

    The configs corpus and chunks have the split corpus. The configs questions, keywords, contexts,
    qrels and leaderboard have the split test. The sample has the same configs. ``id`` ("13-4":
    chapter and question number) joins questions with keywords, and with ``query_id`` of contexts
    and qrels. ``chapter`` joins them with the corpus. ``doc_id`` joins qrels and chunks.
    """

    BENCHMARK = "fastbook"
    DESCRIPTION = (
        "191 end-of-chapter questions from seven chapters of the fastai book, with their answers split into "
        "components, and for each component the passages of the chapter that contain it: retrieval with one corpus per "
        "chapter."
    )
    HOMEPAGE = "https://github.com/vishalbakshi/fastbook-benchmark"
    LICENSE = "no license file upstream; book text: see fastai/fastbook"

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        match str(self.config.name).removeprefix("sample_"):
            case "corpus":
                return iter([read_chapter(path)])
            case "keywords":
                return read_keywords(path)
            case "chunks":
                return _chunk_rows(read_chapter(path))
            case "qrels":
                return self._judged(path, split)
            case "contexts":
                return chain.from_iterable(map(parse_contexts, read_questions(path)))
        return map(parse_question, read_questions(path))

    def _judged(self, path: Path, split: str) -> Iterator[Json]:
        """Yield the qrels of a file of questions. Reads the split's notebooks for their chunks."""
        if path.suffix == NOTEBOOK:
            return
        files = dataset_table("fastbook").config(self.config.name).splits[split]
        chunks = {}
        for file in files:
            if file.endswith(NOTEBOOK):
                chapter = read_chapter(dataset_table("fastbook").open_path(file))
                chunks[chapter["chapter"]] = cut(chapter["text"])
        for question in map(parse_question, read_questions(path)):
            for document, relevance in judgments(question, chunks[question["chapter"]]):
                yield {"query_id": question["id"], "doc_id": document, "relevance": relevance}


def _chunk_rows(chapter: Json) -> Iterator[Json]:
    for position, text in enumerate(cut(chapter["text"])):
        yield {
            "doc_id": doc_id(chapter["chapter"], position),
            "chapter": chapter["chapter"],
            "text": text,
        }
