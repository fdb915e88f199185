"""Scoring a file of predictions: an evaluator's replies, or its verdicts, on FELM's responses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.felm.claims import FelmClaim, on_segments
from qabench.benchmarks.felm.metrics import columns
from qabench.benchmarks.felm.official import signatures
from qabench.benchmarks.felm.replies import REPLY_FORMATS, read_reply
from qabench.benchmarks.felm.responses import detail, groups, reference, scored_reply
from qabench.benchmarks.felm.scores import ResponseScore, of_readings, response_score
from qabench.data.predictions import NO_PREDICTION, Joined, Prediction, Predictions, join, some
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Message, Record
from qabench.loading_scripts import dataset_table, file_digest, open_path
from qabench.loading_scripts.felm.parse import read_rows
from qabench.loading_scripts.published import LEADERBOARD


@dataclass(frozen=True, slots=True)
class Responses:
    """The responses of a config, and the digest of the file they come from."""

    config: str
    rows: Sequence[Mapping[str, Any]]
    digest: str


def load_responses(config: str | None, questions: Path | None = None) -> Responses:
    """The responses of a config.

    Args:
        benchmark: the instance for the evaluation.
        config: such as "wk"; None for the default.
        questions: a file in the format of the authors' ``eval/all.jsonl`` to read instead; only the responses of the
            config are used.

    Raises:
        InputError: the config does not exist, or the file cannot be read.
        SourceError: the data is not available.
    """
    table = dataset_table("felm").config(config)
    if table.name == LEADERBOARD:
        raise InputError(f"the config {LEADERBOARD} of FELM has no responses, only published scores")
    if questions is not None:
        try:
            digest = hashlib.sha256(questions.read_bytes()).hexdigest()[:12]
        except OSError as error:
            raise InputError(f"cannot read the questions {questions}: {error.strerror or error}") from None
        return Responses(table.name, list(read_rows(questions, table.name)), digest)
    ((file,),) = table.splits.values()
    return Responses(table.name, list(read_rows(open_path("felm", file), table.name)), file_digest("felm", file))


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    reply_format: str = "answer",
) -> Evaluation:
    """The evaluation of a file of predictions.

    A prediction has ``labels`` (True = factual, one per segment), or ``reply``: an evaluator's reply, or a list of
    replies, whose majority counts; with ``claims`` ({"segment", "text"}), the reply is about these claims.
    (``answer`` is another name for ``reply``.) A response without a usable prediction counts as "all segments are
    correct", like an unreadable reply.

    Args:
        config: "all", a domain, or "sample"; None for the default.
        predictions: see ``qabench.data.predictions.read_predictions``.
        families: unused; there is one.
        questions: see ``load_responses``.
        progress: called with the number of scored responses, and of all responses.
        reply_format: "answer" or "vicuna"; see ``qabench.benchmarks.felm.replies.read_reply``.

    Raises:
        InputError: an unknown config or format, or no prediction belongs to the config.
        SourceError: the data is not available.
    """
    if reply_format not in REPLY_FORMATS:
        raise InputError(f"unknown reply_format {reply_format!r}; allowed: {', '.join(REPLY_FORMATS)}")
    responses = load_responses(config, questions)
    joined = join([row["index"] for row in responses.rows], predictions)
    records, unusable = [], []
    for i, (row, prediction) in enumerate(zip(responses.rows, joined.rows, strict=True), start=1):
        record, problem = _record(row, prediction, reply_format)
        records.append(record)
        if problem and prediction:
            unusable.append(f"{prediction.id} (line {prediction.line}): {problem}")
        if progress:
            progress(i, len(responses.rows))
    problems = joined.problems()
    if unusable:
        problems.append(f"unusable predictions: {len(unusable)} ({some(unusable)})")
    by_claims = any(row.fields.get("claims") for row in joined.rows if row)
    fields = {
        "config": responses.config,
        "data": responses.digest,
        "by": "claims" if by_claims else None,
        "replies": _read_as(joined, reply_format),
    }
    return benchmark.evaluation(
        predictions,
        responses.config,
        records,
        signatures(fields),
        arguments={"reply_format": reply_format},
        problems=problems,
    )


def _read_as(joined: Joined, reply_format: str) -> str:
    """Return the format in which the replies are read: lists of replies (cot-cons) always as "answer"."""
    replies = [
        row.fields.get("reply", row.fields.get("answer")) for row in joined.rows if row and "labels" not in row.fields
    ]
    if not replies:
        return "verdicts"
    return "answer" if all(isinstance(reply, list) for reply in replies) else reply_format


def _record(row: Mapping[str, Any], prediction: Prediction | None, reply_format: str) -> tuple[Record, str | None]:
    """The record of a response, and why its prediction cannot be used, or None."""
    unusable = None
    given = None
    try:
        given = None if prediction is None else _given(prediction.fields)
        claims = _claims(prediction.fields) if prediction else ()
        score = _score(row, given, claims, reply_format)
    except InputError as error:
        given, unusable = None, str(error)
        score = response_score(row["labels"], None)
    replies = given if isinstance(given, list) else [given]
    texts = [reply for reply in replies if isinstance(reply, str)]
    answered = _are_verdicts(given) or any(text.strip() for text in texts)
    status = ANSWERED if answered else EMPTY if texts else MISSING
    problem = unusable or _problem(prediction, status, score, len(replies))
    answer = None if status == MISSING else scored_reply(score, texts, reply_format)
    record = Record(
        id=row["index"],
        epoch=1,
        question=row["prompt"],
        reference=reference(row),
        messages=[Message("assistant", text) for text in texts],
        answer=answer,
        status=status,
        problem=problem,
        scores=columns(score),
        groups=groups(row),
        detail=detail(row, score, texts, [problem] if problem else []),
    )
    return record, unusable


def _score(row: Mapping[str, Any], given: Any, claims: Sequence[FelmClaim], reply_format: str) -> ResponseScore:
    """Return the score of verdicts, or of replies; replies about claims are read into verdicts on segments."""
    if not claims:
        return response_score(row["labels"], given, reply_format)
    replies, read_as = (given, "answer") if isinstance(given, list) else ([given], reply_format)
    readings = [read_reply(reply, len(claims), read_as) for reply in replies]
    return of_readings(row["labels"], [on_segments(one, claims, len(row["labels"])) for one in readings])


def _claims(fields: Mapping[str, Any]) -> list[FelmClaim]:
    try:
        return [FelmClaim(int(claim["segment"]), str(claim["text"])) for claim in fields.get("claims") or ()]
    except (TypeError, KeyError, ValueError):
        example = '[{"segment": 1, "text": "..."}]'
        raise InputError(f"claims are {fields['claims']!r:.80}; allowed: a list such as {example}") from None


def _given(fields: Mapping[str, Any]) -> Any:
    if "labels" in fields:
        if not _are_verdicts(fields["labels"]):
            raise InputError(f"labels are {fields['labels']!r:.80}; allowed: a list of true and false")
        return fields["labels"]
    given = fields.get("reply", fields.get("answer"))
    if given == [] or (given and _are_verdicts(given)):
        raise InputError(f"the reply is {given!r:.80}; allowed: a string, a list of strings, or null")
    return given


def _are_verdicts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(item, bool) for item in given)


def _problem(prediction: Prediction | None, status: str, score: ResponseScore, n_replies: int) -> str | None:
    if prediction is None:
        return NO_PREDICTION
    if status == MISSING:
        return "the prediction has no reply"
    if status == EMPTY:
        return "the reply is empty"
    if not score.unparsed:
        return None
    return "the reply has no verdict" if n_replies == 1 else f"{score.unparsed} of {n_replies} replies have no verdict"
