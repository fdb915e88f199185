"""Scoring files of predictions for FanOutQA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.answers import UNANSWERED, text_of
from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.fanoutqa.questions import Questions, groups_of, read_questions, with_answers
from qabench.benchmarks.fanoutqa.scores import Scorers, Scores, score_answers
from qabench.data.predictions import NO_PREDICTION, Joined, Predictions, join, some
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Message, Record
from qabench.evaluation.signature import digest
from qabench.llm.client import Progress
from qabench.llm.endpoint import key_for_typed

DEFAULT_FAMILIES = ("acc", "rouge")


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: str | Path | None = None,
    progress: Progress | None = None,
    only_score_answered: bool = False,
    ignore_unknown: bool = False,
    lemmatizer: Any = "auto",
    bleurt_model: str | None = None,
    judge_model: str | None = None,
    judge_base_url: str | None = None,
    judge_prompt: str = "auto",
    judge_max_calls: int | None = None,
    judge: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Scores the answers of one system, as the official scorer does.

    A question without a prediction is unanswered: it scores 0 in accuracy, ROUGE and judge, and is the empty string
    for BLEURT. A prediction of null is the string "None" for accuracy and the empty string for ROUGE, as upstream.

    Args:
        benchmark: the instance for the evaluation.
        config: the config; by default "dev".
        predictions: objects with "id" and "answer".
        families: some of "acc", "rouge", "bleurt" and "judge"; by default the first two.
        questions: a file of questions in the official format, instead of a config.
        progress: called with the amount of work done, and of all work.
        only_score_answered: average only over the given answers, in their order, as the official option of that name.
        ignore_unknown: with ``only_score_answered``, ignore answers to unknown questions instead of raising an error.
        lemmatizer: see ``qabench.text.resolve_lemmatizer``; only spaCy's ``en_core_web_sm`` is official.
        bleurt_model: see ``qabench.models.bleurt.load_bleurt``.
        judge_model: see ``qabench.benchmarks.fanoutqa.judge.judge_for``, like the other ``judge_`` options.
        judge_base_url: an OpenAI-compatible server.
        judge_prompt: "auto", "official", "qabench" or a file.
        judge_max_calls: the maximum number of calls.
        judge: all other options of ``judge_for``.

    Raises:
        InputError: questions without public answers, or predictions for other questions.
        MissingExtra: the lemmatizer or the BLEURT backend is not installed. QabenchError: BLEURT cannot be loaded.
        SourceError: the questions are not available.
    """
    wanted = tuple(families or DEFAULT_FAMILIES)
    asked = with_answers(read_questions(config, questions))
    joined = _join(asked, predictions, only_score_answered, ignore_unknown)
    server = {"base_url": judge_base_url, "api_key": key_for_typed(judge_base_url)}
    options = {"model": judge_model, "prompt": judge_prompt, "max_calls": judge_max_calls} | server
    scorers = _scorers(wanted, lemmatizer, bleurt_model, options | dict(judge or {}))
    answers = [UNANSWERED if row is None else row.fields.get("answer") for row in joined.rows]
    references = [asked.reference(id) for id in joined.ids]
    signed = {
        "benchmark": "fanoutqa",
        "config": asked.config,
        "data": asked.data_digest,
        "references": digest(references),
        "only_score_answered": only_score_answered,
    }
    texts = [asked.by_id[id]["question"] for id in joined.ids]
    scores = score_answers(texts, references, answers, scorers, signed, progress)
    return benchmark.evaluation(
        predictions,
        asked.config,
        [_record(asked, id, answers[i], references[i], scores, i) for i, id in enumerate(joined.ids)],
        scores.signatures,
        unscored="; ".join(scores.absent.values()) if wanted == ("judge",) and scores.absent else None,
        problems=[*joined.problems(), *_answer_problems(joined, answers), *judge_problems(scores, joined.ids)],
        available=len(asked.rows),
    )


def judge_problems(scores: Scores, ids: Sequence[str]) -> list[str]:
    """Sentences about a missing judge score, failed calls, and replies without a readable verdict."""
    if scores.absent:
        return [f"{name} is absent: {why}" for name, why in scores.absent.items()]
    found: dict[str, list[str]] = {}
    for id, detail, row in zip(ids, scores.details, scores.rows, strict=True):
        if why := detail.get("judge_problem"):
            kind = "no readable verdict of the judge" if "gpt" in row else "the call of the judge failed"
            found.setdefault(f"{kind}: {why}", []).append(id)
    return [f"{len(affected)} x {problem} ({some(affected)})" for problem, affected in found.items()]


def _join(questions: Questions, predictions: Predictions, only_score_answered: bool, ignore_unknown: bool) -> Joined:
    joined = join([row["id"] for row in questions.rows], predictions)
    if not only_score_answered:
        return joined
    if joined.unknown and not ignore_unknown:
        named = some([f"{row.id} (line {row.line})" for row in joined.unknown])
        raise InputError(
            f"{len(joined.unknown)} predictions of {predictions.path} are for unknown questions: {named}. With "
            "only_score_answered the official scorer fails on them: remove the lines, or use ignore_unknown "
            "(--ignore-unknown)"
        )
    # The official order is that of the answers; the last digit of a mean depends on it.
    last = {row.id: row for row in predictions.rows if row.id in questions.by_id}
    return Joined(tuple(last), tuple(last.values()), joined.missing, joined.unknown, joined.repeated, joined.bad_lines)


def _scorers(families: Sequence[str], lemmatizer: Any, bleurt_model: str | None, judge: Mapping[str, Any]) -> Scorers:
    normalizer = bleurt = chosen = None
    if "acc" in families:
        from qabench.text import Normalizer
        from qabench.text.cache import NormalizedTextCache

        normalizer = Normalizer(lemmatizer, NormalizedTextCache.default())
    if "bleurt" in families:
        from qabench.models.bleurt import load_bleurt

        bleurt = load_bleurt(model=bleurt_model)
    if "judge" in families:
        from qabench.benchmarks.fanoutqa.judge import judge_for

        chosen = judge_for(**judge)
    return Scorers(normalizer, "rouge" in families, bleurt, chosen)


def _record(questions: Questions, id: str, answer: Any, reference: Any, scores: Scores, i: int) -> Record:
    row = questions.by_id[id]
    given = answer is not UNANSWERED and answer is not None
    text = text_of(answer) if given else None
    status = ANSWERED if text and text.strip() else EMPTY if given else MISSING
    problem = "the answer is null" if answer is None else NO_PREDICTION if not given else None
    said = [Message("assistant", text)] if text is not None else []
    return Record(
        id=id,
        epoch=1,
        question=row["question"],
        reference=text_of(reference),
        messages=[Message("user", row["question"]), *said],
        answer=text,
        status=status,
        problem=problem,
        scores=scores.rows[i],
        groups=groups_of(row),
        detail=scores.details[i],
    )


def _answer_problems(joined: Joined, answers: Sequence[Any]) -> list[str]:
    pairs = list(zip(joined.ids, answers, strict=True))
    other = [id for id, answer in pairs if answer is not None and not isinstance(answer, str)]
    kinds = (
        ("null answers", [id for id, answer in pairs if answer is None]),
        ("empty answers", [id for id, answer in pairs if isinstance(answer, str) and not answer.strip()]),
        ("answers that are not strings", [id for id in other if id not in joined.missing]),
    )
    return [f"{kind}: {len(ids)} ({some(ids)})" for kind, ids in kinds if ids]
