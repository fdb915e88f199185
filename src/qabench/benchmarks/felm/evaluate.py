"""Scoring a file of predictions: an evaluator's replies, or its verdicts, on FELM's responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.felm.official import misread, signatures
from qabench.benchmarks.felm.scores import FelmClaim, ResponseScore, as_reply, check_format, response_score
from qabench.data.predictions import NO_PREDICTION, Joined, Prediction, Predictions, join, some
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Message, Record
from qabench.evaluation.evaluation import ExtraSection, SectionRow
from qabench.loading_scripts import LEADERBOARD, custom_digest, dataset_table, file_digest, open_path
from qabench.loading_scripts.felm.parse import read_rows
from qabench.stats import bootstrap_mean

NOTE = (
    "The share of the wrong segments that were judged wrong. A segment for which no reply has a verdict counts as "
    "not found."
)


@dataclass(frozen=True, slots=True)
class Responses:
    """The responses of a config, and the digest of the file they come from."""

    config: str
    rows: Sequence[Mapping[str, Any]]
    digest: str


def load_responses(config: str | None, questions: Path | None = None) -> Responses:
    """Return the responses of a config, also from a file in the format of the authors' ``eval/all.jsonl``.

    Raises InputError if the config or the file cannot be read, and SourceError if the data is not available.
    """
    table = dataset_table("felm").config(config)
    if table.name == LEADERBOARD:
        raise InputError(f"the config {LEADERBOARD} of FELM has no responses, only published scores")
    ((file,),) = table.splits.values()
    digest = custom_digest(questions) if questions else file_digest("felm", file)
    return Responses(table.name, list(read_rows(questions or open_path("felm", file), table.name)), digest)


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: object = None,
    reply_format: str = "answer",
    evaluator: str | None = None,
) -> Evaluation:
    """Return the evaluation of a file of predictions.

    A prediction has ``labels`` (True = factual, one per segment), or ``reply``: an evaluator's reply, or a list of
    replies, whose majority counts; with ``claims`` ({"segment", "text"}), the reply is about these claims.
    (``answer`` is another name for ``reply``.) ``evaluator`` is the model that wrote the replies: only Vicuna's are
    officially read with ``reply_format="vicuna"``. A response without a usable prediction counts as "all segments are
    correct", like an unreadable reply. ``progress`` is not used.

    Raises:
        InputError: an unknown config or format, or no prediction belongs to the config.
        SourceError: the data is not available.
    """
    check_format(reply_format)
    responses = load_responses(config, questions)
    joined = join([row["index"] for row in responses.rows], predictions)
    records, unusable = [], []
    for row, prediction in zip(responses.rows, joined.rows, strict=True):
        record, problem = _record(row, prediction, reply_format)
        records.append(record)
        if problem and prediction:
            unusable.append(f"{prediction.id} (line {prediction.line}): {problem}")
    problems = joined.problems()
    if unusable:
        problems.append(f"unusable predictions: {len(unusable)} ({some(unusable)})")
    by_claims = any(row.fields.get("claims") for row in joined.rows if row)
    read_as = _read_as(joined, reply_format)
    fields = {
        "config": responses.config,
        "data": responses.digest,
        "by": "claims" if by_claims else None,
        "replies": read_as,
        "evaluator": evaluator,
        "system": misread(read_as, evaluator, sampled=_all_sampled(joined)),
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
    if not _replies(joined):
        return "verdicts"
    return "answer" if _all_sampled(joined) else reply_format


def _all_sampled(joined: Joined) -> bool:
    return all(isinstance(reply, list) for reply in _replies(joined))


def _replies(joined: Joined) -> list[Any]:
    return [_reply(row.fields) for row in joined.rows if row and "labels" not in row.fields]


def _record(row: Mapping[str, Any], prediction: Prediction | None, reply_format: str) -> tuple[Record, str | None]:
    """Return the record of a response, and why its prediction cannot be used, or None."""
    fields = prediction.fields if prediction else {}
    unusable = None
    try:
        value = _verdicts_or_reply(fields)
        score = response_score(row["labels"], value, reply_format, _claims(fields) or None)
    except InputError as error:
        value, unusable = None, str(error)
        score = response_score(row["labels"], None)
    replies = value if isinstance(value, list) else [value]
    texts = [reply for reply in replies if isinstance(reply, str)]
    answered = _are_verdicts(value) or any(text.strip() for text in texts)
    status = ANSWERED if answered else EMPTY if texts else MISSING
    problem = unusable or (_problem(status, score, len(replies)) if prediction else NO_PREDICTION)
    record = Record(
        id=row["index"],
        epoch=1,
        question=row["prompt"],
        reference=reference(row),
        messages=[Message("assistant", text) for text in texts],
        answer=None if status == MISSING else scored_reply(score, texts, reply_format),
        status=status,
        problem=problem,
        scores=score.columns(),
        groups=groups(row),
        detail=detail(row, score, texts, [problem] if problem else []),
    )
    return record, unusable


def _claims(fields: Mapping[str, Any]) -> list[FelmClaim]:
    try:
        return [FelmClaim(int(claim["segment"]), str(claim["text"])) for claim in fields.get("claims") or ()]
    except (TypeError, KeyError, ValueError):
        example = '[{"segment": 1, "text": "..."}]'
        raise InputError(f"claims are {fields['claims']!r:.80}; allowed: a list such as {example}") from None


def _reply(fields: Mapping[str, Any]) -> Any:
    return fields.get("reply", fields.get("answer"))


def _verdicts_or_reply(fields: Mapping[str, Any]) -> Any:
    reply = _reply(fields)
    if "labels" in fields and not _are_verdicts(fields["labels"]):
        raise InputError(f"labels are {fields['labels']!r:.80}; allowed: a list of true and false")
    if "labels" not in fields and _are_verdicts(reply):
        raise InputError(f"the reply is {reply!r:.80}; allowed: a string, a list of strings, or null")
    return fields.get("labels", reply)


def _are_verdicts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, bool) for item in value)


def _problem(status: str, score: ResponseScore, n_replies: int) -> str | None:
    if status != ANSWERED:
        return "the reply is empty" if status == EMPTY else "the prediction has no reply"
    if not score.unparsed:
        return None
    return "the reply has no verdict" if n_replies == 1 else f"{score.unparsed} of {n_replies} replies have no verdict"


def groups(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the groups of a response: its domain, and the types of its errors."""
    return {"domain": [row["domain"]], "error type": sorted({kind for kind in row["type"] if kind})}


def reference(row: Mapping[str, Any]) -> str:
    """Return the reply that states the human labels."""
    return as_reply(tuple(row["labels"]))


def scored_reply(
    score: ResponseScore, replies: Sequence[str], reply_format: str = "answer", by_claims: bool = False
) -> str:
    """Return a reply in the format "answer" that gives the same official score, for display and for exports."""
    if len(replies) == 1 and reply_format == "answer" and not by_claims:
        return replies[0]
    if score.readable is None and all(score.verdicts) and replies:
        return replies[0]
    return as_reply(score.verdicts)


def detail(
    row: Mapping[str, Any],
    score: ResponseScore,
    replies: Sequence[str | None],
    reasons: Sequence[str],
    claims: Sequence[FelmClaim] | None = None,
) -> dict[str, Any]:
    """Return the ``Record.detail`` of a response; see ``qabench.tasks``."""
    nothing = (None,) * len(score.labels)
    # A reply can be unreadable and still name a segment officially: an id 0 means the last segment.
    stated = score.readable is not None or not all(score.verdicts)
    columns: dict[str, Sequence[Any]] = {
        "text": row["segmented_response"],
        "label": score.labels,
        "verdict": score.verdicts if stated else nothing,
        "type": row["type"] or nothing,
        "comment": row["comment"],
    }
    segments = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    details: dict[str, Any] = {"segments": segments, "replies": list(replies), "reasons": list(reasons)}
    return details if claims is None else details | {"claims": [asdict(claim) for claim in claims]}


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """Return the recall of errors by type, the most frequent type first; see ``Benchmark.report_sections``."""
    rows = []
    for label, evaluation in evaluations.items():
        hits_by_kind: dict[str, list[tuple[str, float]]] = {}
        for record in evaluation.records:
            for segment in record.detail.get("segments", ()):
                if not segment["label"]:
                    kind = (segment["type"] or "type not given").replace("_", " ")
                    hits_by_kind.setdefault(kind, []).append((record.id, float(segment["verdict"] is False)))
        for kind, hits in sorted(hits_by_kind.items(), key=lambda item: (-len(item[1]), item[0])):
            recall = bootstrap_mean([value for _, value in hits], clusters=[id for id, _ in hits])
            rows.append(SectionRow(label, "Recall of errors", kind, recall, len(hits)))
    return [ExtraSection("Type of error", "errors", rows, note=NOTE, replaces="error type")] if rows else []
