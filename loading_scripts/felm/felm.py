"""FELM as a Hugging Face dataset. The card, README.md, describes the data and its oddities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qabench.data.rows import Json
from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.felm.parse import read_rows


class FELM(BenchmarkBuilder):
    """Builds FELM's configs.

    The configs are ``all``, one for each domain (wk, science, math, reasoning, writing_rec),
    ``sample`` and ``leaderboard``, each with the split test. In all configs but ``leaderboard``,
    ``segmented_response``, ``labels`` and ``comment`` are lists with one entry per segment, and
    ``type`` is such a list or empty.
    """

    BENCHMARK = "felm"
    DESCRIPTION = (
        "Responses of ChatGPT in five domains, split into segments that people have labeled as factual or not, with "
        "error types, comments and references: a benchmark for programs that judge whether a text is factual."
    )
    HOMEPAGE = "https://hkust-nlp.github.io/felm_website/"
    LICENSE = "cc-by-nc-sa-4.0"

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        return read_rows(path, self.config.name)
