"""Open-book runs that take titles and pages from a ZIM file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")
pytest.importorskip("libzim", reason="needs the extra zim")

from scripted_model import call, run
from zim_files import write_zim

from qabench.benchmarks.fanoutqa.tasks import fanoutqa_open_book

PLANETS = "463f5c17d453c3d3"  # needs the pages Giant planet, Jupiter, Saturn, Uranus and Neptune


@pytest.fixture(autouse=True)
def _own_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)


def test_open_book_by_titles_of_a_zim_file(tmp_path: Path) -> None:
    zim = write_zim(tmp_path / "planets.zim", {"Saturn": "<p>Saturn has rings of ice.</p>"}, {"Ringed": "Saturn"})

    def script(messages: Any, tools: Any) -> Any:
        return call("search", query="Ringed") if len(messages) == 1 else "ice"

    log = run(fanoutqa_open_book("sample", ids=PLANETS, context_length=3000, wiki=str(zim)), script, tmp_path)
    (sample,) = log.samples or []
    assert "rings of ice" in sample.messages[2].text
    assert sample.metadata["signed"]["wikipedia"].startswith("the ZIM file planets (")
