"""Evidence of the dataset, of the source and of the official package as pages."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qabench.errors import InputError
from qabench.loading_scripts.fanoutqa.parse import read_rows
from qabench.retrieval.wiki.page import PageMissing, WikiPage, wikipedia_url


@pytest.mark.parametrize(
    ("pageid", "revid", "expected"),
    [
        (38930, 1185, (38930, 1185)),
        (None, None, (None, None)),
        ("###TBD###", "###TBD###", (None, None)),
        (38930, "###TBD###", (38930, None)),
        (0, 0, (None, None)),
        (True, -3, (None, None)),
    ],
)
def test_ids(pageid: Any, revid: Any, expected: tuple[int | None, int | None]) -> None:
    row = {"title": "Jupiter", "pageid": pageid, "revid": revid, "url": "https://en.wikipedia.org/wiki/Jupiter"}
    for evidence in (row, SimpleNamespace(**row)):
        page = WikiPage.of(evidence)
        assert (page.pageid, page.revid) == expected
        assert (page.title, page.url) == ("Jupiter", row["url"])
        assert page.key == (expected[0] or "Jupiter")
        assert WikiPage.of(page) is page


def test_a_lazy_revision_is_not_looked_up() -> None:
    """The official package's search results send a request when their ``revid`` is read."""
    models = pytest.importorskip("fanoutqa.wiki", reason="needs the extra parity")
    assert WikiPage.of(models.LazyEvidence("Jupiter", 38930)).revid is None


@pytest.mark.parametrize("evidence", [{}, {"title": " "}, {"title": None, "pageid": "###TBD###"}, "Jupiter", None])
def test_no_page(evidence: Any) -> None:
    with pytest.raises(InputError, match="does not identify a page"):
        WikiPage.of(evidence)


def test_a_missing_page_says_which_and_pickles() -> None:
    error = pickle.loads(pickle.dumps(PageMissing(WikiPage("Jupiter", 38930), "no such id")))
    assert str(error) == "no text for the Wikipedia page 'Jupiter' (page id 38930): no such id"
    assert error.page == WikiPage("Jupiter", 38930)


def test_url() -> None:
    assert wikipedia_url("Björk & co?") == "https://en.wikipedia.org/wiki/Bj%C3%B6rk_%26_co%3F"


@pytest.mark.parametrize(("split", "without_page", "without_revision"), [("dev", 82, 83), ("test", 199, 199)])
def test_every_evidence_of_the_real_questions(
    mirror: Path, split: str, without_page: int, without_revision: int
) -> None:
    path = mirror / f"zhudotexe/fanoutqa/fanoutqa/data/fanout-final-{split}.json"
    rows = [page for row in read_rows(path, split) for page in row["necessary_evidence"]]
    pages = [WikiPage.of(row) for row in rows]
    assert sum(page.pageid is None for page in pages) == without_page
    assert sum(page.revid is None for page in pages) == without_revision
    assert all(page.title for page in pages)
