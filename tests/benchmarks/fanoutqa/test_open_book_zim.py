"""Open-book runs that take titles, pages and passages from a ZIM file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")
pytest.importorskip("libzim", reason="needs the extra zim")

from scripted_model import call, run
from zim_files import write_zim

from qabench.benchmarks.fanoutqa.tasks import fanoutqa_open_book
from qabench.errors import InputError
from qabench.retrieval.wiki.zim_index import index_zim

PLANETS = "463f5c17d453c3d3"  # needs the pages Giant planet, Jupiter, Saturn, Uranus and Neptune


@pytest.fixture(autouse=True)
def _own_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)


@pytest.mark.parametrize("search", ["tools", "text"])
def test_open_book_over_the_passages_of_a_zim_file(tmp_path: Path, search: str) -> None:
    pages = {name: f"<p>{name} is a planet.</p>" * 200 for name in ("Jupiter", "Mars", "Venus")}
    zim = write_zim(tmp_path / "planets.zim", pages | {"Saturn": "<p>Saturn has rings of ice.</p>"})
    index_zim(zim, tmp_path / "index", workers=1)

    def script(messages: Any, tools: Any) -> Any:
        if len(messages) > 1:
            return "ice"
        return call("search", query="rings ice") if tools else "<search>rings ice</search>"

    options: dict[str, Any] = {"ids": PLANETS, "context_length": 3000, "search": search, "find": "bm25"}
    log = run(fanoutqa_open_book("sample", wiki=str(tmp_path / "index"), **options), script, tmp_path)
    (sample,) = log.samples or []
    result = next(message.text for message in sample.messages[2:])
    assert result.startswith("From Wikipedia, for 'rings ice':\n\n[Saturn]\nSaturn has rings of ice.")
    assert sample.metadata["signed"]["wikipedia"].endswith("bm25+") and sample.metadata["signed"]["find"] == "bm25"
    with pytest.raises(InputError, match="find=bm25 needs wiki=DIR, a folder written by `qabench wiki index`"):
        fanoutqa_open_book("sample", wiki=str(zim), find="bm25")
    with pytest.raises(InputError, match="find is 'x'; allowed: title, bm25"):
        fanoutqa_open_book("sample", wiki=str(zim), find="x")


def test_open_book_by_titles_of_a_zim_file(tmp_path: Path) -> None:
    zim = write_zim(tmp_path / "planets.zim", {"Saturn": "<p>Saturn has rings of ice.</p>"}, {"Ringed": "Saturn"})

    def script(messages: Any, tools: Any) -> Any:
        return call("search", query="Ringed") if len(messages) == 1 else "ice"

    log = run(fanoutqa_open_book("sample", ids=PLANETS, context_length=3000, wiki=str(zim)), script, tmp_path)
    (sample,) = log.samples or []
    assert "rings of ice" in sample.messages[2].text
    assert sample.metadata["signed"]["wikipedia"].startswith("the ZIM file planets (")
