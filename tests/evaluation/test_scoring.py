"""A score needs something that it is computed from: whether a question is answered is said for each
group of scores.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import fastbook_rag
from inspect_ai.log import read_eval_log
from scripted_model import run, text

import qabench
from qabench import evaluate_predictions
from qabench.benchmarks import benchmark
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.comparison import compare
from qabench.evaluation.scoring import Item, outcomes_of
from qabench.runs.export import predictions as exported
from qabench.runs.log import read_run

pytestmark = pytest.mark.quick

PASSAGES, ANSWER = {"passages": ["A passage."]}, {"answer": "An answer."}


def scored(name: str, fields: Callable[[int], Json], **options: Any) -> Evaluation:
    questions = benchmark(name).load("sample").rows
    rows = [{"id": question.id, **fields(number)} for number, question in enumerate(questions)]
    return evaluate_predictions(name, "sample", rows, **options)


def missing(evaluation: Evaluation, score: str) -> list[str]:
    sentences = evaluation.deviations(evaluation.scores()[score])
    return [sentence for sentence in sentences if "have no answer (missing)" in sentence]


def test_answers_alone_have_no_retrieval_score() -> None:
    evaluation = scored("fastbook", lambda number: ANSWER)
    assert {score.spec.group for score in evaluation.scores().values()} == {"rouge"}
    assert 'no scores of retrieval: it needs the field "passages"' in evaluation.problem_sentences()[0]
    with pytest.raises(InputError, match='retrieval cannot be computed: it needs the field "passages"'):
        scored("fastbook", lambda number: ANSWER, scores=("mrr@10",))


def test_texts_of_a_function_are_no_retrieval() -> None:
    evaluation = qabench.run("fastbook", "sample", lambda question, row: "An answer.")
    assert "mrr@10" not in evaluation.scores() and "rouge1.fscore" in evaluation.scores()


def test_rows_without_passages_are_missing() -> None:
    def fields(number: int) -> Json:
        return PASSAGES if number % 2 else ANSWER

    evaluation = scored("fastbook", fields)
    total, answers = len(evaluation.records), len(evaluation.records[::2])
    assert evaluation.counts()["missing"] == answers
    assert missing(evaluation, "mrr@10") == [f"{answers} of {total} questions have no answer (missing)"]
    both = scored("fastbook", fields, scores=("retrieval", "rouge"))
    assert both.counts()["answered"] == total
    assert missing(both, "mrr@10") == [f"{answers} of {total} questions have no answer (missing)"]
    assert missing(both, "rouge1.fscore") == [f"{total - answers} of {total} questions have no answer (missing)"]
    assert any("predictions without anything for retrieval" in each for each in both.problem_sentences())


@pytest.mark.parametrize("scores", [None, ("retrieval", "rouge")])
def test_nothing_retrieved_at_all_is_no_score(scores: Any) -> None:
    evaluation = scored("fastbook", lambda number: {"passages": [], **ANSWER}, scores=scores)
    assert "mrr@10" not in evaluation.scores()
    label = {"a": evaluation}
    assert not compare(label, benchmark("fastbook").score_spec("mrr@10")).systems
    if scores:
        assert "none of the" in evaluation.undefined()["mrr@10"]


def test_an_empty_retrieval_is_official() -> None:
    evaluation = scored("fastbook", lambda number: PASSAGES if number else {"passages": []})
    assert evaluation.counts()["empty"] == 1
    assert missing(evaluation, "mrr@10") == []


def test_pages_alone_have_no_accuracy() -> None:
    options: Any = {"scores": ("acc", "evidence"), "lemmatizer": "simplemma"}
    evaluation = scored("fanoutqa", lambda number: {"pages": ["Moon"]}, **options)
    assert list(evaluation.scores()) == ["evidence.recall", "evidence.precision"]
    assert "acc" in evaluation.undefined()["acc.loose"]


@pytest.mark.parametrize("answer", [0, False, "0", [0]])
def test_zero_is_an_answer(answer: object) -> None:
    scorer = benchmark("fanoutqa").scorer(("acc", "evidence"), lemmatizer="simplemma")
    row = {"id": "1", "question": "?", "answer": "0", "necessary_evidence": [{"title": "Moon"}]}
    (outcome,) = outcomes_of(scorer, [Item(row, {"answer": answer, "pages": ["Moon"]})], "fanoutqa")
    assert (outcome.status, dict(outcome.statuses)) == ("answered", {})


def test_statuses_are_in_logs_and_exports(tmp_path: Path) -> None:
    """An answered question for which nothing was retrieved stays one when its run is read, and is
    not unofficial.
    """
    task = fastbook_rag("sample")
    task.dataset[0].metadata["prediction"] = {"passages": []}  # type: ignore[index]
    log = run(task, lambda messages: text("An answer."), tmp_path)
    (recorded,) = (read_eval_log(log.location).samples or [])[0].scores.values()  # type: ignore[union-attr]
    assert (recorded.metadata or {})["statuses"] == {"retrieval": "empty"}
    evaluation = read_run(log.location)
    assert evaluation.records[0].status_of("retrieval") == "empty"
    assert evaluation.records[0].status_of("rouge") == "answered"
    assert "retrieval" not in evaluation.recorded and missing(evaluation, "mrr@10") == []
    first = json.loads(exported(evaluation).splitlines()[0])
    assert first["passages"] == []
