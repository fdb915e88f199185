"""FanOutQA's scores: of answers, for metrics, files and runs alike, and the evaluation of a file of predictions.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116);
``fanoutqa.eval.scorer.Scorer.score``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.answers import UNANSWERED, check_pairs, text_of
from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.benchmarks.fanoutqa.questions import Questions, read_questions, with_answers
from qabench.data.predictions import (
    NO_PREDICTION,
    BadLine,
    Joined,
    Prediction,
    Predictions,
    join,
    some,
)
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Message, Record
from qabench.evaluation.metric import mean_in_order
from qabench.evaluation.signature import digest, signature
from qabench.io.limits import json_of
from qabench.text import Lemmatizer, Normalizer
from qabench.text.normalize import NormalizedTextCache, shared_normalizer

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judge import Judge, Judged

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "acc": ("acc.loose", "acc.strict"),
    "rouge": tuple(f"rouge{n}.{part}" for n in "12L" for part in ("precision", "recall", "fscore")),
    "bleurt": ("bleurt",),
    "judge": ("gpt", "gpt_readable"),
    "evidence": ("evidence.recall", "evidence.precision"),
}
"""Family of scores -> the columns of its scores."""

Bleurt = Callable[[list[str], list[str]], Sequence[float]]
"""References and candidates, two lists of strings, to one score for each pair."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Scorers:
    """The scores to compute: those with a function, and ROUGE, which does not need one."""

    normalizer: Normalizer | None = None
    rouge: bool = True
    bleurt: Bleurt | None = None
    judge: Judge | None = None


def scorers_of(
    families: Sequence[str],
    lemmatizer: str | Lemmatizer = "auto",
    bleurt_model: str | None = None,
    judge: Mapping[str, Any] | None = None,
    threads: bool = False,
) -> Scorers:
    """Return the scorers of families of scores, some of ``COLUMNS``.

    See ``qabench.text.resolve_lemmatizer``, ``qabench.models.bleurt.load_bleurt`` and ``judge_for``
    (with ``judge`` as its arguments). ``threads`` tells that answers are scored in several threads,
    one at a time.
    """
    bleurt = judging = None
    if "bleurt" in families:
        from qabench.models.bleurt import load_bleurt

        bleurt = load_bleurt(model=bleurt_model)
    if "judge" in families:
        from qabench.benchmarks.fanoutqa.judge import judge_from

        judging = judge_from(judge)
    normalizer = None
    if "acc" in families:
        normalizer = (
            shared_normalizer(lemmatizer)
            if threads
            else Normalizer(lemmatizer, NormalizedTextCache.default())
        )
    return Scorers(normalizer, "rouge" in families, bleurt, judging)


@dataclass
class Scores:
    """Scores of each question, by column; see ``COLUMNS``.

    Attributes:
        rows: column -> score, for each question in the order of the input. ``gpt`` is missing if
            the judge's call failed, ``gpt_readable`` if its reply has no readable verdict.
        details: for each question, "found" and "missing" (strings), "verdict", "judge" (its reply),
            "judge_problem".
        signatures: family -> everything that its scores depend on.
        judged: the judge's scores and costs; None without a judge.
    """

    rows: list[dict[str, float]]
    details: list[dict[str, Any]]
    signatures: dict[str, str] = field(default_factory=dict)
    judged: Judged | None = None

    @property
    def absent(self) -> dict[str, str]:
        """Map each missing score to the reason."""
        return {"gpt": self.judged.absent} if self.judged and self.judged.absent else {}


def score_answers(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    scorers: Scorers,
    fields: Mapping[str, Any],
    progress: Progress | None = None,
) -> Scores:
    """Score answers.

    Only the judge needs the texts of the questions. ``fields`` are the first fields of the
    signatures: everything that the scores depend on except the scorers. ``progress`` is called for
    accuracy, and then for the judge. Raises InputError as ``accuracy`` and the judge, or if a
    BLEURT function returns another number of scores.
    """
    check_pairs(references, predictions)
    scores = Scores([{} for _ in references], [{} for _ in references])
    if scorers.normalizer:
        normalize = partial(scorers.normalizer.batch, progress=progress)
        accuracies = accuracy(references, predictions, normalize).per_question
        for row, detail, question in zip(scores.rows, scores.details, accuracies, strict=True):
            row |= {"acc.loose": float(question.loose), "acc.strict": float(question.strict)}
            detail |= {"found": list(question.matches), "missing": list(question.missing)}
        scores.signatures["acc"] = signature(
            "fanout_acc", **fields, **scorers.normalizer.signature()
        )
    if scorers.rouge:
        from qabench.text.rouge import rouge

        rouge_score = rouge(references, predictions)
        for row, kinds in zip(scores.rows, rouge_score.per_question, strict=True):
            for column in COLUMNS["rouge"]:
                kind, part = column.split(".")
                row[column] = float(getattr(kinds[kind], part))
        scores.signatures["rouge"] = signature(
            "fanout_rouge", **fields, rouge=rouge_score.backend, stemmer="porter"
        )
    if bleurt := scorers.bleurt:
        # An unanswered question is the empty string, as upstream.
        values = list(bleurt(list(map(text_of, references)), list(map(text_of, predictions))))
        if len(values) != len(references):
            raise InputError(
                f"the BLEURT function returned {len(values)} scores for {len(references)} questions"
            )
        for row, value in zip(scores.rows, values, strict=True):
            row["bleurt"] = float(value)
        from qabench.models.bleurt import signed_name

        scores.signatures["bleurt"] = signature(
            "fanout_bleurt", **fields, bleurt=signed_name(bleurt)
        )
    if scorers.judge:
        from qabench.benchmarks.fanoutqa.judge import judge_answers

        judged = scores.judged = judge_answers(
            questions, references, predictions, scorers.judge, progress
        )
        if not judged.absent:
            for row, detail, judgment in zip(
                scores.rows, scores.details, judged.per_question, strict=True
            ):
                row |= {} if judgment.score is None else {"gpt": float(judgment.score)}
                row |= (
                    {} if judgment.readable is None else {"gpt_readable": float(judgment.readable)}
                )
                detail |= {
                    "verdict": judgment.verdict,
                    "judge": judgment.reply,
                    "judge_problem": judgment.reason,
                }
        scores.signatures["judge"] = signature(
            "fanout_judge", **fields, **scorers.judge.signature()
        )
    return scores


def add_evidence(
    scores: Scores,
    necessary: Sequence[Sequence[Mapping[str, Any]]],
    pages: Sequence[Any],
    fields: Mapping[str, Any],
    k: int | None = None,
) -> None:
    """Add recall and, if pages were read, precision of the pages of each question; see ``evidence_scores``."""
    from qabench.benchmarks.fanoutqa.evidence_pages import evidence_scores

    for i, score in enumerate(evidence_scores(necessary, pages, k)):
        scores.rows[i] |= score.columns()
        scores.details[i] |= {
            "evidence_read": list(pages[i] or []),
            "evidence_missing": [necessary[i][position]["title"] for position in score.missing],
        }
    scores.signatures["evidence"] = signature("fanout_evidence", **fields, k=k)


def official_shape(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return the mean scores of questions in the shape of the official result.

    Returns:
        {"acc": {"loose", "strict"}, "rouge": {"rouge1": {"precision", "recall", "fscore"},
        "rouge2": ..., "rougeL": ...}, "bleurt": float, "gpt": float}, without families that have no
        scores.
    """
    means = {
        name: mean_in_order([row[name] for row in rows if name in row])
        for name in dict.fromkeys(name for row in rows for name in row)
    }
    shape: dict[str, Any] = {}
    if "acc.loose" in means:
        shape["acc"] = {"loose": means["acc.loose"], "strict": means["acc.strict"]}
    for column in COLUMNS["rouge"]:
        if column in means:
            kind, part = column.split(".")
            shape.setdefault("rouge", {}).setdefault(kind, {})[part] = means[column]
    return shape | {name: means[name] for name in ("bleurt", "gpt") if name in means}


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
    lemmatizer: str | Lemmatizer = "auto",
    bleurt_model: str | None = None,
    judge_model: str | None = None,
    judge_base_url: str | None = None,
    judge_prompt: str = "auto",
    judge_max_calls: int | None = None,
    judge_prices: str | None = None,
    judge: str | Mapping[str, Any] | None = None,
    evidence_k: int | None = None,
) -> Evaluation:
    """Score the answers of one system, as the official scorer does, and the pages that it read.

    A question without a prediction is unanswered: it scores 0 in accuracy, ROUGE and judge, and is
    the empty string for BLEURT. A prediction of null is the string "None" for accuracy and the
    empty string for ROUGE, as upstream.

    Args:
        benchmark: the instance for the evaluation.
        config: the config; by default "dev".
        predictions: objects with "id", and "answer", "pages" or both; the pages are titles, URLs,
            page ids, or objects with "title", "url" and "pageid".
        families: some of ``COLUMNS``; by default "acc" and "rouge" of answers, and "evidence" of
            pages.
        questions: a file of questions in the official format, instead of a config.
        only_score_answered: average only over the answered questions, in the order of the answers.
        judge: all options of ``judge_for``, as a mapping or in JSON. For the others see
            ``FanOutQA.options``.

    Raises:
        InputError: questions without public answers (which only "evidence" does not need),
            predictions for other questions, or "evidence" of predictions without pages.
        SourceError: the questions are not available. See also ``scorers_of``.
    """
    dataset = read_questions(config, questions)
    families = tuple(families or _default_families(benchmark, dataset, predictions))
    if set(families) != {"evidence"}:
        with_answers(dataset)
    if "evidence" in families:
        predictions = _with_pages(predictions)
    joined = _joined(dataset, predictions, only_score_answered, ignore_unknown)
    options: dict[str, Any] = {
        "model": judge_model,
        "base_url": judge_base_url,
        "prompt": judge_prompt,
    }
    options |= {"max_calls": judge_max_calls, "prices": _prices(judge_prices)}
    if judge_base_url:
        from qabench.llm.endpoint import key_for_typed

        options["api_key"] = key_for_typed(judge_base_url)
    options |= _judge_options(judge)
    answers = [
        UNANSWERED if row is None else row.fields.get("answer", UNANSWERED) for row in joined.rows
    ]
    references = [dataset.references[id] if dataset.public else "" for id in joined.ids]
    fields = {
        "benchmark": "fanoutqa",
        "config": dataset.config,
        "data": dataset.data_digest,
        "references": digest(references) if dataset.public else None,
        "only_score_answered": only_score_answered,
    }
    texts = [dataset.by_id[id]["question"] for id in joined.ids]
    scorers = scorers_of(families, lemmatizer, bleurt_model, options)
    scores = score_answers(texts, references, answers, scorers, fields, progress)
    if "evidence" in families:
        pages = [row.fields.get("pages") if row else None for row in joined.rows]
        add_evidence(
            scores,
            [dataset.by_id[id]["necessary_evidence"] for id in joined.ids],
            pages,
            fields,
            evidence_k,
        )
    return benchmark.evaluation(
        predictions,
        dataset.config,
        [
            _record(dataset, id, joined.rows[i], references[i], scores, i)
            for i, id in enumerate(joined.ids)
        ],
        scores.signatures,
        unscored=scores.absent["gpt"] if families == ("judge",) and scores.absent else None,
        problems=[
            *joined.problems(),
            *_answer_problems(joined, answers),
            *_judge_problems(scores, joined.ids),
        ],
        available=len(dataset.rows),
        notes=scores.judged.notes() if scores.judged else (),
    )


def _prices(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        of_prompts, of_replies = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"judge_prices is {text!r}; allowed: the prices per million prompt tokens and reply tokens, such as 2.5,10"
        ) from None
    return of_prompts, of_replies


def _judge_options(judge: str | Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        return dict(json_of(judge) if isinstance(judge, str) else judge or {})
    except (TypeError, ValueError) as error:
        raise InputError(
            f"judge is {judge!r:.80}; allowed: a JSON object of the judge's options ({error})"
        ) from None


def _joined(
    questions: Questions, predictions: Predictions, only_score_answered: bool, ignore_unknown: bool
) -> Joined:
    joined = join([row["id"] for row in questions.rows], predictions)
    if not only_score_answered:
        return joined
    if joined.unknown and not ignore_unknown:
        examples = some([f"{row.id} (line {row.line})" for row in joined.unknown])
        raise InputError(
            f"{len(joined.unknown)} predictions of {predictions.path} are for unknown questions: {examples}. With "
            "only_score_answered the official scorer fails on them: remove the lines, or use ignore_unknown "
            "(--ignore-unknown)"
        )
    # The official order is that of the answers; the last digit of a mean depends on it.
    last = {row.id: row for row in predictions.rows if row.id in questions.by_id}
    return Joined(
        tuple(last),
        tuple(last.values()),
        joined.missing,
        joined.unknown,
        joined.repeated,
        joined.bad_lines,
    )


def _default_families(
    benchmark: Benchmark, dataset: Questions, predictions: Predictions
) -> list[str]:
    fields = {name for row in predictions.rows for name in row.fields}
    has_evidence = "pages" in fields and all(row["necessary_evidence"] for row in dataset.rows)
    of_answers = benchmark.default_families if "answer" in fields or not has_evidence else ()
    return [*of_answers, *(["evidence"] if has_evidence else [])]


def _with_pages(predictions: Predictions) -> Predictions:
    """Return the predictions; those whose pages cannot be read become bad lines.

    Raises InputError without pages.
    """
    from qabench.benchmarks.fanoutqa.evidence_pages import distinct_pages

    if not any("pages" in row.fields for row in predictions.rows):
        raise InputError(
            f'{predictions.path} has no pages to score: "evidence" needs the field "pages", or a TREC run'
        )
    rows, bad = [], list(predictions.bad_lines)
    for row in predictions.rows:
        pages = row.fields.get("pages")
        try:
            if pages is not None and not isinstance(pages, list | tuple):
                raise InputError(f"the pages are not a list: {pages!r:.60}")
            distinct_pages(pages or ())
            rows.append(row)
        except InputError as error:
            bad.append(BadLine(row.line, str(error)))
    return replace(predictions, rows=tuple(rows), bad_lines=tuple(bad))


def _record(
    questions: Questions, id: str, row: Prediction | None, reference: Any, scores: Scores, i: int
) -> Record:
    question = questions.by_id[id]
    messages = [Message("user", question["question"])]
    answer = row.fields.get("answer") if row else None
    text, status, problem = None, MISSING, None if row else NO_PREDICTION
    if answer is not None:
        text = text_of(answer)
        status = ANSWERED if text.strip() else EMPTY
        messages.append(Message("assistant", text))
    elif row and "answer" in row.fields:
        problem = "the answer is null"
    elif row and "evidence.recall" in scores.rows[i]:
        status = ANSWERED if row.fields.get("pages") else EMPTY
    return Record(
        id=id,
        epoch=1,
        question=question["question"],
        reference=text_of(reference),
        messages=messages,
        answer=text,
        status=status,
        problem=problem,
        scores=scores.rows[i],
        groups=questions.groups[id],
        detail=scores.details[i],
    )


def _answer_problems(joined: Joined, answers: Sequence[Any]) -> list[str]:
    """Count answers that the leaderboard would not accept."""
    pairs = [
        (id, answer)
        for id, answer in zip(joined.ids, answers, strict=True)
        if answer is not UNANSWERED
    ]
    kinds = {
        "null answers": [id for id, answer in pairs if answer is None],
        "empty answers": [
            id for id, answer in pairs if isinstance(answer, str) and not answer.strip()
        ],
        "answers that are not strings": [
            id for id, answer in pairs if not isinstance(answer, str | None)
        ],
    }
    return [f"{kind}: {len(ids)} ({some(ids)})" for kind, ids in kinds.items() if ids]


def _judge_problems(scores: Scores, ids: Sequence[str]) -> list[str]:
    """Describe a missing judge score, failed calls, and replies without a readable verdict."""
    if scores.absent:
        return [f"gpt is absent: {scores.absent['gpt']}"]
    ids_by_problem: dict[str, list[str]] = {}
    for id, detail, row in zip(ids, scores.details, scores.rows, strict=True):
        if reason := detail.get("judge_problem"):
            kind = (
                "no readable verdict of the judge"
                if "gpt" in row
                else "the call of the judge failed"
            )
            ids_by_problem.setdefault(f"{kind}: {reason}", []).append(id)
    return [
        f"{len(affected)} x {problem} ({some(affected)})"
        for problem, affected in ids_by_problem.items()
    ]
