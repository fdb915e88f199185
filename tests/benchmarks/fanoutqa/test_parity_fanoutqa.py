"""Our FanOutQA scores against the official package's, on real questions: equal to the last digit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import answer_styles
import official
import pytest

from qabench.answers import UNANSWERED
from qabench.generations import Generation, Generations, join, read_generations
from qabench.scoring.accuracy import accuracy
from qabench.scoring.rouge import ROUGE_TYPES, rouge
from qabench.text import Normalizer
from qabench.text.spacy_lemmatizer import SpacyLemmatizer

SAMPLED = 25


@pytest.fixture(scope="module")
def dev(mirror: Path) -> list[dict[str, Any]]:
    path = mirror / "zhudotexe/fanoutqa/fanoutqa/data/fanout-final-dev.json"
    return list(json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture
def normalizer(spacy_model: str) -> Normalizer:
    return Normalizer(SpacyLemmatizer(spacy_model))


def compare(
    model: str, normalizer: Normalizer, questions: list[dict[str, Any]], answers: dict[str, Any], **options: Any
) -> int:
    """Compares aggregates and every question's scores; gives the number of questions compared."""
    rows = [{"id": i, "answer": answer} for i, answer in answers.items()]
    theirs = official.scorer(model, questions, rows, **options)
    acc, acc_raw = theirs.score_accuracy()
    rouges, rouge_raw = theirs.score_rouge()
    generations = Generations("memory", tuple(Generation(n, **row) for n, row in enumerate(rows, 1)))
    joined = join([q["id"] for q in questions], generations, **options)
    references = {q["id"]: q["answer"] for q in questions}
    given = [references[i] for i in joined.ids]
    ours = accuracy(given, joined.predictions, normalizer.batch)
    assert (ours.loose, ours.strict) == (acc.loose, acc.strict)
    for backend in ("rouge_score", "rouge_score_rs"):
        ours_rouge = rouge(given, joined.predictions, backend)
        assert ours_rouge.as_dict() == {kind: vars(getattr(rouges, kind)) for kind in ROUGE_TYPES}
        for question_id, scores in zip(joined.ids, ours_rouge.per_question, strict=True):
            for kind, prf in scores.items():
                part = getattr(rouge_raw[question_id], kind)
                assert (prf.precision, prf.recall, prf.fscore) == (part.precision, part.recall, part.fscore)
    found = official.official(model).eval.string.answer_in_text
    for question_id, reference, prediction, score in zip(
        joined.ids, given, joined.predictions, ours.per_question, strict=True
    ):
        assert score.loose == acc_raw[question_id], question_id
        if prediction is not UNANSWERED:
            result = found(reference, prediction)
            assert (score.strict, list(score.missing)) == (result.found, result.missing), question_id
    return len(joined.ids)


def test_a_sample_of_all_styles(
    spacy_model: str, dev: list[dict[str, Any]], normalizer: Normalizer, compared: Callable[[str], None]
) -> None:
    count = 0
    for style in answer_styles.STYLES:
        questions = random.Random(style.__name__).sample(dev, SAMPLED // len(answer_styles.STYLES) + 1)
        texts = answer_styles.answers(questions, style)
        answers = dict(zip([q["id"] for q in questions], texts, strict=True))
        count += compare(spacy_model, normalizer, questions, answers)
    compared(f"{count} answers")


def test_unanswered_null_and_other_types(spacy_model: str, dev: list[dict[str, Any]], normalizer: Normalizer) -> None:
    questions = dev[:8]
    ids = [q["id"] for q in questions]
    answers = dict(zip(ids[1:], [None, "", 3, 1.14, True, ["Left", 2], {"a": 1}], strict=True))
    assert compare(spacy_model, normalizer, questions, answers) == 8
    assert compare(spacy_model, normalizer, questions, answers, only_score_answered=True) == 7


@pytest.mark.slow
@pytest.mark.parametrize("style", answer_styles.STYLES, ids=lambda style: style.__name__)
def test_all_questions(
    style: Any,
    spacy_model: str,
    dev: list[dict[str, Any]],
    normalizer: Normalizer,
    monkeypatch: pytest.MonkeyPatch,
    compared: Callable[[str], None],
) -> None:
    official.remember_normal_forms(spacy_model, monkeypatch)
    count = 0
    for seed in range(3):
        answers = dict(zip([q["id"] for q in dev], answer_styles.answers(dev, style, seed), strict=True))
        count += compare(spacy_model, normalizer, dev, answers)
    compared(f"{count} answers, accuracy and ROUGE")


@pytest.mark.slow
def test_normal_forms_of_real_generations(
    spacy_model: str, mirror: Path, normalizer: Normalizer, compared: Callable[[str], None]
) -> None:
    files = sorted((mirror / "zhudotexe/fanoutqa/leaderboard-submissions").glob("*-generations/*.jsonl"))
    texts = [generation.answer for file in files for generation in read_generations(file).answers]
    random.Random(0).shuffle(texts)
    forms = normalizer.batch(texts)
    normalize = official.official(spacy_model).norm.normalize
    different = [text for text in dict.fromkeys(texts) if forms[text] != normalize(text)]
    compared(f"{len(forms)} normal forms of leaderboard answers")
    assert different == []
