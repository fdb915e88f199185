"""FELM's scores: the reply protocol, the majority, scores by hand, and real labels against
scikit-learn.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from metric_results import metric_result

import qabench
from qabench.benchmarks.felm.formulas import f1, f1_of_counts
from qabench.benchmarks.felm.scores import Reading, read_reply, response_score
from qabench.data.answers import UNANSWERED
from qabench.errors import InputError

FIGURES = ("f1", "precision", "recall", "balanced_accuracy")


T, F = True, False


@pytest.mark.parametrize(
    ("reply", "official", "readable"),
    [
        ("Answer: 2", (T, F, T), (T, F, T)),
        ("Segment 1 is right. Answer: 3\nAnswer: 1", (F, T, F), (F, T, F)),
        ("Answer: 3, and 4 and 99", (T, T, F), (T, T, F)),
        ("Answer: \u0662", (T, F, T), (T, F, T)),
        ("Answer: ALL_CORRECT", (T, T, T), (T, T, T)),
        # An id 0 is the last segment for the official script.
        ("Answer: 0", (T, T, F), None),
        ("Answer: 0, 1", (F, T, F), (F, T, T)),
        ("Answer: " + "0" * 5000, (T, T, F), None),
        # No verdict: all are correct.
        ("", (T, T, T), None),
        ("1 and 2 are wrong", (T, T, T), None),
        # Only the readable reading knows other forms of the mark.
        ("Answer:2", (T, T, T), (T, F, T)),
        ("**Answer:** 2", (T, T, T), (T, F, T)),
        ("There are 3 segments.\n**answer**: 1, 2", (T, T, T), (F, F, T)),
        ("The answer: none of the 4", (T, T, T), None),
        ("Answer: " + "9" * 5000, (T, T, T), None),
    ],
)
def test_replies(reply: str, official: Any, readable: Any) -> None:
    assert read_reply(reply, 3) == Reading(official, readable)


@pytest.mark.parametrize(
    ("reply", "official", "readable"),
    [
        ("2 is wrong", (T, F), (T, F)),
        (r"ALL\_CORRECT: 1 and 2", (T, T), (T, T)),
        # officially, only the form with the backslash counts
        ("ALL_CORRECT: 1 and 2", (F, F), (T, T)),
        ("0 is wrong", (T, F), None),
    ],
)
def test_replies_of_vicuna(reply: str, official: Any, readable: Any) -> None:
    assert read_reply(reply, 2, "vicuna") == Reading(official, readable)


@pytest.mark.parametrize(
    ("labels", "verdicts", "figures"),
    [
        ([True, False], [True, True], (None, None, 0.0, 0.5)),  # no error predicted
        ([True, True], [True, False], (None, 0.0, None, None)),  # no error there
        ([True, True], [True, True], (None, None, None, None)),
        ([True, False], [False, True], (0.0, 0.0, 0.0, 0.0)),  # both 0: upstream divides by zero
        ([False, False], [False, True], (2 / 3, 1.0, 0.5, None)),  # no true segment
    ],
)
def test_what_is_undefined_is_none(labels: list[bool], verdicts: list[bool], figures: tuple[Any, ...]) -> None:
    result = metric_result("felm_factuality", [labels], [verdicts])
    assert tuple(result[name] for name in FIGURES) == pytest.approx(figures)


def test_replies_without_a_verdict_are_counted() -> None:
    labels = [[True, False]] * 4
    replies = ["Answer: 2", "I cannot say", None, UNANSWERED]
    scores = list(map(response_score, labels, replies))
    assert [response.verdicts for response in scores] == [(True, False)] + [(True, True)] * 3
    assert [response.readable for response in scores] == [(True, False), None, None, None]
    result = metric_result("felm_factuality", labels, replies)
    assert (result["recall"], result["unparsed"], result["unanswered"]) == (1 / 4, 1, 2)
    assert (result["readable"]["recall"], result["readable"]["tn"], result["readable"]["left_out"]) == (1.0, 1, 3)


def test_the_majority_of_sampled_replies() -> None:
    labels = [False, True]
    samples = ["no idea", "Answer: 1", None, "Answer: 2", "Answer: 1"]
    score = response_score(labels, samples)
    # Unreadable replies count as votes for correct: 3 to 2, and 4 to 1.
    assert (score.verdicts, score.readable) == ((True, True), (False, True))
    assert (score.unparsed, score.unanswered) == (1, 1)
    # Of equally frequent verdicts the first one counts.
    for replies, verdicts in ((["?", "Answer: 1"], (True, True)), (["Answer: 1", "?"], (False, True))):
        assert response_score(labels, replies).verdicts == verdicts


@pytest.mark.parametrize(
    ("references", "predictions", "options", "message"),
    [
        ([], [], {}, "nothing to score"),
        ([[True]], [], {}, "0 predictions for 1 references"),
        ([[True], [True, False]], [[True], [True]], {}, r"predictions\[1\]: 1 verdicts for 2 segments"),
        ([[True]], [[]], {}, r"predictions\[0\]: 0 verdicts for 1 segments"),
        ([[True]], [[2]], {}, r"predictions\[0\]: \[2\]; allowed: a list of True and False"),
        ([[True], [2]], [None, None], {}, r"references\[1\]: \[2\]; allowed: a list of True \(factual\) and False"),
        (["True"], [[True]], {}, r"references\[0\]: 'True'"),
        ([[True]], [[True]], {"domains": "wk"}, "domains is 'wk'; allowed: a list of 1 strings"),
        ([[True]], [[True]], {"domains": [None]}, "allowed: a list of 1 strings"),
        ([[True]], [[True]], {"reply_format": "x"}, "unknown reply_format 'x'; allowed: answer, vicuna"),
    ],
)
def test_bad_input_names_the_position(references: Any, predictions: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        qabench.load_metric("felm_factuality").compute(predictions=predictions, references=references, **options)


def check_level(result: dict[str, Any], labels: list[bool], verdicts: list[bool]) -> int:
    """Compares with scikit-learn; returns the number of compared scores."""
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    counts = metrics.confusion_matrix(labels, verdicts, labels=[False, True]).ravel().tolist()
    assert counts == [result["tn"], result["fp"], result["fn"], result["tp"]]
    assert result["precision"] == metrics.precision_score(labels, verdicts, pos_label=False)
    assert result["recall"] == metrics.recall_score(labels, verdicts, pos_label=False)
    # scikit-learn uses another formula, whose last digit differs.
    assert result["f1"] == pytest.approx(metrics.f1_score(labels, verdicts, pos_label=False), rel=1e-15)
    assert result["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(labels, verdicts), rel=1e-15)
    return 8


@pytest.fixture(scope="module")
def rows(mirror: Path) -> list[dict[str, Any]]:
    with (mirror / "hkust-nlp/felm/eval/all.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("agreement", [0.55, 0.8, 0.97])
def test_real_labels_by_sklearn(rows: list[dict[str, Any]], agreement: float, compared: Callable[[str], None]) -> None:
    rng = random.Random(agreement)
    verdicts = [[label if rng.random() < agreement else not label for label in row["labels"]] for row in rows]
    metric = qabench.load_metric("felm_factuality")
    result = metric.compute(
        predictions=verdicts,
        references=[row["labels"] for row in rows],
        domains=[row["domain"] for row in rows],
        per_question=True,
    )
    figures = 0
    for domain in (None, "wk", "science", "math", "reasoning", "writing_rec"):
        chosen = [i for i, row in enumerate(rows) if domain in (None, row["domain"])]
        part = result if domain is None else result["by_domain"][domain]
        segments = [(label, said) for i in chosen for label, said in zip(rows[i]["labels"], verdicts[i], strict=True)]
        figures += check_level(part, [label for label, _ in segments], [said for _, said in segments])
        figures += check_level(
            part["responses"], [all(rows[i]["labels"]) for i in chosen], [all(verdicts[i]) for i in chosen]
        )
    assert (len(rows), result["tp"] + result["fn"], result["tn"] + result["fp"]) == (847, 3639, 787)
    assert [item["verdicts"] for item in result["per_question"]] == verdicts
    compared(f"{figures} figures of {len(rows)} responses, 4426 segments: by scikit-learn")


def test_f1_of_resamples_is_f1_or_its_limit() -> None:
    tp, tn, fp, fn = np.random.default_rng(1).integers(0, 5, (4, 500)).astype(float)
    some = tn + fp + fn > 0
    judged_and_wrong = (tn + fn > 0) & (tn + fp > 0)
    with np.errstate(invalid="ignore"):
        official, resampled = f1(tp, tn, fp, fn), f1_of_counts(tp, tn, fp, fn)
    assert resampled[judged_and_wrong] == pytest.approx(official[judged_and_wrong], rel=1e-15)
    assert not resampled[some & ~judged_and_wrong].any() and not np.isfinite(resampled[~some]).any()


def test_undefined_scores_are_shown_with_the_reason() -> None:
    rows = qabench.load_dataset("felm", "sample", split="test")
    evaluation = qabench.evaluate_predictions(
        "felm", "sample", [{"id": row["index"], "labels": [True] * len(row["labels"])} for row in rows]
    )
    reason = "no segments were judged wrong"
    assert evaluation.undefined()["precision"] == reason and "precision" not in evaluation.scores()
    assert evaluation.as_dict()["undefined"] == evaluation.undefined()
    assert f"undefined (precision, readable_precision): {reason}" in repr(evaluation)
    with pytest.raises(InputError, match=f"no score 'precision': {reason}"):
        evaluation["precision"]


def test_errors_list_no_scores_over_readable_replies() -> None:
    rows = [{"id": qabench.load_dataset("felm", "sample", split="test")[0]["index"], "reply": "ALL_CORRECT"}]
    with pytest.raises(
        InputError, match=r"no score 'readable_f2'.*responses_balanced_accuracy; groups felm$"
    ) as raised:
        qabench.evaluate_predictions("felm", "sample", rows, scores="readable_f2")
    assert "readable_f1" not in str(raised.value)
    found = qabench.evaluate_predictions("felm", "sample", rows, scores="readable_recall,felm_readable")
    assert {spec.group for spec in found.score_specs} == {"felm_readable"}
    with pytest.raises(InputError, match=r"no score 'f2': the scores are recall, .*responses_balanced_accuracy$"):
        qabench.evaluate_predictions("felm", "sample", rows)["f2"]


def felm_file(path: Path, **fields: Any) -> Any:
    """Return the evaluation of a file with these fields for the first response of the sample."""
    first = qabench.load_dataset("felm", "sample", split="test")[0]
    path.write_text(json.dumps({"id": first["index"]} | fields))
    return qabench.evaluate_predictions("felm", "sample", path)


def test_verdicts_may_be_ones_and_zeros(tmp_path: Path) -> None:
    labels = qabench.load_dataset("felm", "sample", split="test")[0]["labels"]
    as_numbers = [int(label) for label in labels]
    named = felm_file(tmp_path / "a.jsonl", labels=labels)
    assert felm_file(tmp_path / "a.jsonl", labels=as_numbers).records == named.records
    metric = qabench.load_metric("felm_factuality")
    (expected,) = [metric.compute(predictions=[labels], references=[labels], per_question=True)["per_question"]]
    for predictions in ([as_numbers], [np.array(as_numbers)]):
        assert (
            metric.compute(predictions=predictions, references=[labels], per_question=True)["per_question"] == expected
        )
    for wrong in ([2] * len(labels), ["true"] * len(labels), [0.5] * len(labels)):
        (problem,) = {record.problem for record in felm_file(tmp_path / "a.jsonl", labels=wrong).records[:1]}
        assert "allowed: a list of true and false, or of 1 and 0" in problem


def test_labels_and_a_reply_must_agree(tmp_path: Path) -> None:
    labels = [False, *[True] * (len(qabench.load_dataset("felm", "sample", split="test")[0]["labels"]) - 1)]
    path = tmp_path / "a.jsonl"
    alone = felm_file(path, labels=labels).records[0]
    for reply in ("Answer: 1", "I cannot say.", None):
        assert felm_file(path, labels=labels, reply=reply).records[0].scores == alone.scores
    record = felm_file(path, labels=labels, reply="Answer: ALL_CORRECT").records[0]
    assert "labels and reply disagree: the labels say 'Answer: 1', and the reply 'ALL_CORRECT'" in record.problem
    assert "give one of the two" in record.problem


def test_the_authors_result_files(tmp_path: Path) -> None:
    """``save_exp`` of eval.py writes a CSV with the ids of responses and replies; of cot-cons, the
    text of a list.
    """
    pandas = pytest.importorskip("pandas")
    rows = list(qabench.load_dataset("felm", "sample", split="test"))
    replies: list[Any] = [f"[1] Reasons.\nAnswer: {i % 2 + 1}" for i, _ in enumerate(rows)]
    replies[1] = ["Answer: 1", "Answer: ALL_CORRECT", "Answer: 1"]
    ids = [row["index"] for row in rows]
    table = {"id": ids, "dataset": [row["domain"] for row in rows], "label": [row["labels"] for row in rows]}
    pandas.DataFrame(table | {"gen": replies, "res": ["x"] * len(rows)}).to_csv(tmp_path / "result.csv")
    lines = [{"id": id, "reply": reply} for id, reply in zip(ids, replies, strict=True)]
    expected = qabench.evaluate_predictions("felm", "sample", lines)
    assert qabench.evaluate_predictions("felm", "sample", tmp_path / "result.csv").records == expected.records


def test_no_internal_message_about_unreadable_replies(tmp_path: Path) -> None:
    evaluation = felm_file(tmp_path / "a.jsonl", reply="I cannot say.")
    text = repr(evaluation)
    assert "no verdict" in text and "readable_" not in "".join(evaluation.problem_sentences())
    assert "declares" not in text and "scorer" not in text


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, lambda labels: np.array(labels, dtype=int)])
def test_verdicts_may_be_arrays(form: Any) -> None:
    rows = list(qabench.load_dataset("felm", "sample", split="test"))
    lines = [{"id": row["index"], "labels": form(row["labels"])} for row in rows]
    evaluation = qabench.evaluate_predictions("felm", "sample", lines)
    assert not evaluation.problems and evaluation["f1"].value == 1
    wrong = [{"id": rows[0]["index"], "labels": np.array([0.5] * len(rows[0]["labels"]))}, *lines[1:]]
    assert "allowed: a list of true and false" in qabench.evaluate_predictions("felm", "sample", wrong).problems[-1]
