"""ExpertQA as a Hugging Face dataset. The card, README.md, describes the data and its oddities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qabench.data.rows import Json, read_json_lines
from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.expertqa.parse import parser_of


class ExpertQA(BenchmarkBuilder):
    """Builds ExpertQA's configs.

    The configs main, all_evidences, autoais, factscores, questions, six ``answers_*`` and sample
    have the split train. The configs ``random``, ``domain``, lfqa_random and lfqa_domain have the
    splits train, validation and test. The column ``answers`` is a list of structs, each with the
    name of its system. The config ``questions`` and the ``lfqa`` configs lack this column.
    """

    BENCHMARK = "expertqa"
    DESCRIPTION = (
        "Questions by experts from 32 fields, answers of six systems split into claims, and the experts' judgment of "
        "each claim: its support, correctness, relevance, need for a citation, and the reliability of its source."
    )
    HOMEPAGE = "https://github.com/chaitanyamalaviya/ExpertQA"
    LICENSE = "mit"

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        # All files are JSON Lines, including the lfqa files, whose names end in ".json".
        return map(parser_of(self.config.name), read_json_lines(path))
