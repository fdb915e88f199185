"""Recall and precision of evidence pages: of lists of pages, files, TREC runs, and runs that
search.
"""

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_rows import question_rows

import qabench
from qabench.benchmarks.conversation import TokenCounter
from qabench.benchmarks.fanoutqa import BENCHMARK, evidence
from qabench.benchmarks.fanoutqa.evidence_pages import distinct_pages, evidence_scores, page_keys
from qabench.errors import InputError

PLANETS = "463f5c17d453c3d3"  # needs the pages Giant planet, Jupiter, Saturn, Uranus and Neptune
PAGES = [{"title": f"Page {i}", "pageid": i + 1, "url": f"https://en.wikipedia.org/wiki/Page_{i}"} for i in range(9)]
READ = st.lists(st.sampled_from([*PAGES, *(p["title"] for p in PAGES), *(p["url"] for p in PAGES), "Moon", 77]))


def test_scores_computed_by_hand() -> None:
    planets = [{"title": "Giant planet", "pageid": 5}, {"title": "Saturn"}, {"title": "giant planet"}]
    necessary = [
        [*planets, {"title": "Io (moon)"}],
        [{"title": "Liz Magill", "url": "https://en.wikipedia.org/wiki/M._Elizabeth_Magill#Life"}],
        [{"title": "1984"}],
        [{"title": "Lima"}],
    ]
    read = [
        # 2 of 3, and 2 of 4
        ["saturn", "Saturn", {"pageid": 5}, "https://en.wikipedia.org/wiki/Moon", "Mars"],
        # the title after the redirect is in the URL of the evidence
        [{"title": "M. Elizabeth Magill", "pageid": 9}],
        ["1984"],
        None,
    ]
    scores = evidence_scores(necessary, read)
    assert [(score.recall, score.precision) for score in scores] == [(2 / 3, 0.5), (1, 1), (1, 1), (0, None)]
    assert scores[0].missing == (3,)
    first = evidence_scores(necessary, read, k=1)[0]
    assert (first.recall, first.precision) == (1 / 3, 1)


@pytest.mark.parametrize(
    ("page", "same"),
    [
        ("giant_planet", "Giant planet"),
        ("https://en.wikipedia.org/wiki/S%C3%A3o_Paulo#Demographics", "São Paulo"),
        ("http://en.m.wikipedia.org/w/index.php?title=São_Paulo", "Sa\u0303o Paulo"),
        ("https://en.wikipedia.org/?curid=736", 736),
        ("736", {"pageid": 736}),
        ({"pageid": None, "title": " AC/DC "}, "https://en.wikipedia.org/wiki/AC/DC"),
        ("https://example.org/a", "https://example.org/a"),
    ],
)
def test_the_same_page(page: Any, same: Any) -> None:
    assert page_keys(page) & page_keys(same) and len(distinct_pages([page, same, "Another"])) == 2


@pytest.mark.parametrize("page", [None, "", "_ ", 0, True, 1.5, ["Lima"], {}, {"name": "Lima"}])
def test_not_a_page(page: Any) -> None:
    with pytest.raises(InputError, match=r"is not a page; allowed: a title, a URL, a page id"):
        page_keys(page)


@given(st.lists(st.sampled_from(PAGES), min_size=1), READ)
def test_properties(necessary: list[Any], read: list[Any]) -> None:
    (score,) = evidence_scores([necessary], [read])
    assert 0 <= score.recall <= 1 and (score.precision is None) == (not read)
    # neither order nor repetition matters
    assert evidence_scores([necessary], [read[::-1] + read])[0] == score
    assert evidence_scores([necessary], [necessary])[0].recall == 1
    if read:
        titles = {page["title"] for page in necessary}
        shared = len(titles & {title for page in distinct_pages(read).values() for title in page if title in titles})
        assert score.recall == pytest.approx(shared / len(titles))
        assert score.precision == pytest.approx(shared / len(distinct_pages(read)))
        more = evidence_scores([necessary], [[*read, "Yet another"]])[0]
        assert more.recall == score.recall and more.precision is not None and more.precision <= (score.precision or 0)


def test_files_and_trec_runs(tmp_path: Path) -> None:
    rows = question_rows("sample")
    titles = {row["id"]: [page["title"] for page in row["necessary_evidence"]] for row in rows}
    run = tmp_path / "run.trec"
    lines = [f"{id} Q0 {title.replace(' ', '_')} 1 {-i} x\n" for id in titles for i, title in enumerate(titles[id][:2])]
    run.write_text("".join(lines) + f"{rows[0]['id']} Q0 Moon 3 9 x\n")
    ranked = qabench.evaluate_predictions("fanoutqa", "sample", run)
    assert set(ranked.signatures) == {"evidence"}
    means = {name: score.interval.mean for name, score in ranked.scores().items()}
    assert means["evidence.recall"] == pytest.approx(sum(min(2 / len(set(t)), 1) for t in titles.values()) / 12)
    assert means["evidence.precision"] == pytest.approx((11 + 2 / 3) / 12)
    first = qabench.evaluate_predictions("fanoutqa", "sample", run, evidence_k=1)
    # the moon has the best score
    assert first.records[0].scores == {"evidence.recall": 0.0, "evidence.precision": 0.0}
    (said,) = {tuple(first.deviations(score)) for score in first.scores().values()}
    assert said[0] == "not a score of the benchmark's authors" and "evidence: only the first 1 pages count" in said

    file = tmp_path / "answers.jsonl"
    lines = [json.dumps({"id": id, "answer": "x", "pages": titles[id]}) for id in list(titles)[:9]]
    unusable = zip(list(titles)[9:11], ("x", [0]), strict=True)
    lines += [json.dumps({"id": id, "answer": "x", "pages": pages}) for id, pages in unusable]
    file.write_text("\n".join(lines))
    answered = qabench.evaluate_predictions("fanoutqa", "sample", file, lemmatizer="simplemma")
    assert set(answered.signatures) == {"acc", "rouge", "evidence"}
    scores = answered.scores()
    assert (scores["evidence.recall"].interval.mean, scores["evidence.recall"].n) == (9 / 12, 12)
    assert (scores["evidence.precision"].interval.mean, scores["evidence.precision"].n) == (1, 9)
    assert set(answered.scores_by_group("type")) == {BENCHMARK.question(row).groups["type"][0] for row in rows}
    assert any("(line 10): the pages are not a list: 'x'" in problem for problem in answered.problems)
    assert any("(line 11): 0 is not a page" in problem for problem in answered.problems)
    with pytest.raises(InputError, match='evidence cannot be computed: it needs the field "pages", or a TREC run'):
        qabench.evaluate_predictions("fanoutqa", "sample", [{"id": PLANETS, "answer": "x"}], ["evidence"])


def test_searches_that_found_nothing_have_recall_0() -> None:
    rows = qabench.load_dataset("fanoutqa", "sample", split="validation")
    searched = qabench.evaluate_predictions("fanoutqa", "sample", [{"id": row["id"], "pages": []} for row in rows])
    (recall,) = searched.scores().values()
    assert (recall.spec.name, recall.interval.mean, recall.n) == ("evidence.recall", 0, 12)
    assert not any("no answer has" in note for note in searched.notes)
    missing = qabench.evaluate_predictions("fanoutqa", "sample", [{"id": row["id"], "pages": None} for row in rows])
    assert not missing.scores()


def test_test_questions_have_public_evidence(mirror: Path) -> None:
    rows = question_rows("test")
    predictions = [{"id": row["id"], "pages": [row["necessary_evidence"][0]["url"]]} for row in rows]
    scores = qabench.evaluate_predictions("fanoutqa", "test", predictions).scores()
    assert scores["evidence.precision"].interval.mean == 1 and scores["evidence.recall"].n == 724
    with pytest.raises(InputError, match="not public"):
        qabench.evaluate_predictions("fanoutqa", "test", predictions, ["acc", "evidence"])


@pytest.mark.parametrize(("budget", "problems"), [(5, 0), (4, 1)])
def test_a_prompt_at_the_budget_is_no_problem(budget: int, problems: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def count(text: str) -> int:
        return len(text.split())

    async def counter_of(model: Any) -> TokenCounter:
        return TokenCounter("words", count)

    noted: list[str] = []
    monkeypatch.setattr(evidence, "counters", lambda tokenizer: counter_of)
    monkeypatch.setattr(evidence, "wikipedia", lambda wiki: SimpleNamespace(name=""))
    monkeypatch.setattr(evidence, "rank_evidence", lambda *_: ([], []))
    monkeypatch.setattr(evidence, "prompt_tokens", lambda *_: budget)
    prompt = SimpleNamespace(filled=lambda **fields: "a prompt of five words")
    conversation: Any = SimpleNamespace(
        model=None,
        question="Why?",
        row={"necessary_evidence": []},
        metadata={},
        at_most=lambda count, what: nullcontext(),
        set_prompt=lambda text: None,
        note_problem=noted.append,
        note_prediction=lambda *_, **options: None,
    )
    fill_prompt = evidence.evidence_provided(prompt, None, False, None, None, "simplemma", None)
    asyncio.run(fill_prompt(conversation))
    assert conversation.metadata["evidence"]["tokens"] == 5 and len(noted) == problems


def test_pages_of_a_null_answer_are_scored() -> None:
    ids = [question.id for question in BENCHMARK.load("sample").rows]
    alone = qabench.evaluate_predictions("fanoutqa", "sample", [{"id": id, "pages": ["Jupiter"]} for id in ids])
    rows = [{"id": id, "pages": ["Jupiter"], "answer": None} for id in ids]
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", rows)
    assert evaluation.scores() == alone.scores() and "evidence.recall" in alone.scores()
    # Some answers make all of them count.
    rows[0]["answer"] = "Jupiter"
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", rows, lemmatizer="simplemma")
    assert evaluation.counts()["answered"] == len(ids)
    assert evaluation.scores()["evidence.recall"] == alone.scores()["evidence.recall"]
    # A column of null pages is no search.
    nulls = [{"id": id, "answer": "Jupiter", "pages": None} for id in ids]
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", nulls, lemmatizer="simplemma")
    assert not evaluation.problems and "evidence.recall" not in evaluation.scores()
