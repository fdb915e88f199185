"""Recall and precision of the URLs that were read, against those that the annotated claims name."""

from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa.questions import load_questions, named_urls, page_key


def claim(evidence: list[str] | None, revised: list[str] | None, support: str | None = "Complete") -> dict[str, Any]:
    return {"evidence": evidence, "revised_evidence": revised, "support": support}


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://example.org/Light", True),
        ("http://example.org/Light/", True),
        ("HTTPS://WWW.Example.ORG/Light#speed", True),
        ("https://example.org/Light.", True),
        ("https://example.org/Light/#:~:text=The%20speed,is%20high.", True),
        ("https://example.org/light", False),
        ("https://m.example.org/Light", False),
        ("https://example.org/Light?p=2", False),
    ],
)
def test_the_same_page(url: str, same: bool) -> None:
    assert (page_key(url) == "example.org/Light") is same


def test_urls_that_claims_name() -> None:
    answers = [
        {
            "claims": [
                claim(["[1] https://a.org/1\n\nas http://in.text says"], ["[1] https://a.org/1/\n\nText."]),
                claim(["[2] https://a.org/2 "], ["https://b.org/1\n\n[*]https://b.org/2."], "Incomplete"),
            ]
        },
        {"claims": None},
        {
            "claims": [
                claim(["[3] http://www.c.org"], ["."]),
                claim(["https://not.judged"], None, None),
                claim([], [""]),
            ]
        },
    ]
    rows = [{"id": "q", "answers": [answer]} for answer in answers]  # three systems' answers
    assert named_urls([*rows, {"id": "r"}]) == {"q": ["a.org/1", "b.org/1", "b.org/2", "c.org"], "r": []}


def test_scores_computed_by_hand() -> None:
    rows = load_questions("sample")
    named = {row.id: urls for row in rows.rows if (urls := row.row["evidence_urls"])}
    light, bread, *others = named
    assert named[light] == ["example.org/astronomy/speed-of-light", "example.org/astronomy/astronomical-unit"]
    read = [f"http://www.{named[light][0]}/", f"https://{named[light][0]}#c", "https://a.org", "https://b.org/"]
    predictions = [
        {"id": light, "answer": "x", "pages": read},  # 1 of 2 named pages, and 1 of 3 different pages read
        {"id": bread, "answer": "x", "pages": []},
        {"id": others[0], "answer": "x"},  # does not say what was read: left out
        {"id": others[1], "answer": "x", "pages": "https://a.org"},
    ]
    evaluation = qabench.evaluate_predictions("expertqa", "sample", predictions)
    scores = evaluation.scores()
    recall, precision = scores["evidence.recall"], scores["evidence.precision"]
    assert (recall.n, recall.interval.mean) == (len(named) - 1, pytest.approx(0.5 / (len(named) - 1)))
    assert (precision.n, precision.interval.mean) == (1, pytest.approx(1 / 3))
    left_out = f"{len(rows.rows) - len(named) + 1} of {len(rows.rows)} answers are left out"
    assert {"not a score of the benchmark's authors", left_out} <= set(evaluation.deviations(recall))
    assert any("the pages are 'https://a.org'; allowed: a list of URLs" in problem for problem in evaluation.problems)
    first = next(record for record in evaluation.records if record.id == light)
    assert first.detail["evidence_missing"] == named[light][1:]
    assert benchmark("expertqa").prediction(first)["pages"] == read


def test_the_real_claims_name_urls(mirror: Path) -> None:
    for split, questions, urls in (("validation", 214, 943), ("test", 217, 958)):
        named = [row.row["evidence_urls"] for row in load_questions("random", split).rows]
        assert (sum(map(bool, named)), sum(map(len, named))) == (questions, urls)
