"""Our FanOutQA scores equal those of the official package to the last digit, on real questions."""

import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import answer_styles
import official
import pytest

import qabench
from qabench import evaluate_predictions
from qabench.adapters.files import evaluate
from qabench.benchmarks.fanoutqa import BENCHMARK
from qabench.benchmarks.fanoutqa.normalizer import Normalizer
from qabench.data.answers import UNANSWERED
from qabench.data.predictions import read_predictions
from qabench.errors import InputError
from qabench.text.lemmatizers import SpacyLemmatizer
from qabench.text.rouge import COLUMNS, ROUGE_TYPES, by_type, rouge

SAMPLED = 25
# The official scorer takes minutes for each of these.
ALL = bool(os.environ.get("QABENCH_ALL_ANSWERS"))
SEEDS = range(3 if ALL else 1)
GENERATIONS = None if ALL else 1000


@pytest.fixture(scope="module")
def dev(mirror: Path) -> list[dict[str, Any]]:
    path = mirror / "zhudotexe/fanoutqa/fanoutqa/data/fanout-final-dev.json"
    return list(json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture
def lemmatizer(spacy_model: str) -> SpacyLemmatizer:
    return SpacyLemmatizer(spacy_model)


def compare(
    model: str, lemmatizer: Any, questions: list[dict[str, Any]], answers: dict[str, Any], **options: Any
) -> int:
    """Compares aggregates and the scores of all questions; returns the number of questions."""
    rows = [{"id": i, "answer": answer} for i, answer in answers.items()]
    theirs = official.scorer(model, questions, rows, **options)
    acc, acc_raw = theirs.score_accuracy()
    rouges, rouge_raw = theirs.score_rouge()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "questions.json"
        file.write_text(json.dumps(questions), encoding="utf-8")
        ours = evaluate(BENCHMARK, None, read_predictions(rows), questions=file, lemmatizer=lemmatizer, **options)
    result = BENCHMARK.report().official_shape(ours)
    assert result["acc"] == vars(acc)
    assert result["rouge"] == {kind: vars(getattr(rouges, kind)) for kind in ROUGE_TYPES}
    metrics = {name: score.interval.mean for name, score in ours.scores().items()}
    assert (metrics["acc.loose"], metrics["acc.strict"]) == (acc.loose, acc.strict)
    assert all(metrics[f"{kind}.precision"] == getattr(rouges, kind).precision for kind in ROUGE_TYPES)
    references = {question["id"]: question["answer"] for question in questions}
    asked = [record.id for record in ours.records]
    with mock.patch("qabench.text.rouge.backend", lambda: "rouge_score"):
        slow = rouge([references[i] for i in asked], [answers.get(i, UNANSWERED) for i in asked])
    means = {column: sum(row[column] for row in slow) / len(slow) for column in COLUMNS}
    assert by_type(means) == result["rouge"]
    found = official.official(model).eval.string.answer_in_text
    for record in ours.records:
        assert record.scores["acc.loose"] == acc_raw[record.id], record.id
        for kind in ROUGE_TYPES:
            for part in ("precision", "recall", "fscore"):
                assert record.scores[f"{kind}.{part}"] == getattr(getattr(rouge_raw[record.id], kind), part)
        if record.id in answers:
            one = found(references[record.id], answers[record.id])
            assert (bool(record.scores["acc.strict"]), record.detail["missing"]) == (one.found, one.missing), record.id
    return len(ours.records)


def test_a_sample_of_all_styles(
    spacy_model: str, dev: list[dict[str, Any]], lemmatizer: SpacyLemmatizer, compared: Callable[[str], None]
) -> None:
    count = 0
    for style in answer_styles.STYLES:
        questions = random.Random(style.__name__).sample(dev, SAMPLED // len(answer_styles.STYLES) + 1)
        texts = answer_styles.answers(questions, style)
        answers = dict(zip([q["id"] for q in questions], texts, strict=True))
        count += compare(spacy_model, lemmatizer, questions, answers)
    compared(f"{count} answers")


def test_unanswered_and_other_types(spacy_model: str, dev: list[dict[str, Any]], lemmatizer: SpacyLemmatizer) -> None:
    questions = dev[:8]
    ids = [q["id"] for q in questions]
    answers = dict(zip(ids[1:], [None, "", 3, 1.14, True, ["Left", 2], {"a": 1}], strict=True))
    assert compare(spacy_model, lemmatizer, questions, answers) == 8
    assert compare(spacy_model, lemmatizer, questions, answers, only_score_answered=True) == 7


@pytest.mark.slow
@pytest.mark.parametrize("style", answer_styles.STYLES, ids=lambda style: style.__name__)
def test_all_questions(
    style: Any,
    spacy_model: str,
    dev: list[dict[str, Any]],
    lemmatizer: SpacyLemmatizer,
    monkeypatch: pytest.MonkeyPatch,
    compared: Callable[[str], None],
) -> None:
    official.remember_normal_forms(spacy_model, monkeypatch)
    count = 0
    for seed in SEEDS:
        answers = dict(zip([q["id"] for q in dev], answer_styles.answers(dev, style, seed), strict=True))
        count += compare(spacy_model, lemmatizer, dev, answers)
    compared(f"{count} answers, accuracy and ROUGE")


@pytest.mark.slow
def test_normal_forms_of_real_generations(
    spacy_model: str, mirror: Path, lemmatizer: SpacyLemmatizer, compared: Callable[[str], None]
) -> None:
    files = sorted((mirror / "zhudotexe/fanoutqa/leaderboard-submissions").glob("*-generations/*.jsonl"))
    texts = [row.fields["answer"] for file in files for row in read_predictions(file).rows]
    random.Random(0).shuffle(texts)
    texts = texts[:GENERATIONS]
    forms = Normalizer(lemmatizer).batch(texts)
    normalize = official.official(spacy_model).norm.normalize
    different = [text for text in dict.fromkeys(texts) if forms[text] != normalize(text)]
    compared(f"{len(forms)} normal forms of leaderboard answers")
    assert different == []


@pytest.mark.parametrize("empty", [[], {}, [[]], {"a": {}}])
def test_an_own_question_without_a_defined_accuracy(empty: Any, tmp_path: Path) -> None:
    rows = [
        {"id": id, "question": f"{id}?", "answer": answer, "decomposition": [], "categories": []}
        for id, answer in (("a", ["x"]), ("b", empty), ("c", ["y"]))
    ]
    path = tmp_path / "own.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    questions = BENCHMARK.load(None, path)
    assert [question.id for question in questions.rows] == ["a", "b", "c"]
    predictions = [{"id": id, "answer": "x"} for id in "abc"]
    options: dict[str, Any] = {"questions": path, "lemmatizer": "simplemma"}
    both = evaluate_predictions("fanoutqa", None, predictions, ["acc", "rouge"], **options)
    assert (both["acc.loose"].value, both["acc.loose"].n, both["acc.loose"].left_out) == (0.5, 2, 1)
    assert both["rouge1.fscore"].n == 3, "its reference is the empty string"
    (problem,) = [each for each in both.problems if "no accuracy is defined" in each]
    assert problem.endswith("empty list or object: 1 (b)") and not any("unknown" in each for each in both.problems)
    assert "1 of 3 answers are left out" in both.deviations(both["acc.loose"])
    unanswered = evaluate_predictions("fanoutqa", None, predictions[::2], ["acc"], **options)
    assert unanswered["acc.loose"].n == 2, "also without an answer"
    path.write_text(json.dumps(rows[1:2]), encoding="utf-8")
    # In a run, each question is scored alone.
    alone = evaluate_predictions("fanoutqa", None, predictions[1:2], ["acc", "rouge"], **options)
    assert alone["rouge1.fscore"].n == 1 and "acc.loose" not in alone.scores()
    assert any("no accuracy is defined" in each for each in alone.problems)
    with pytest.raises(InputError, match="reference 0 is or contains an empty list or dict"):
        qabench.load_metric("fanout_acc").compute(predictions=["x"], references=[empty], lemmatizer="simplemma")
