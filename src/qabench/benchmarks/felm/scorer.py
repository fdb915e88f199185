"""FELM's scorer: an evaluator's replies, or its verdicts, against the labels of a response."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.answers import is_list_of
from qabench.benchmarks.felm.official import misread, signatures
from qabench.benchmarks.felm.scores import (
    ResponseScore,
    Verdicts,
    as_reply,
    as_verdicts,
    check_format,
    response_score,
)
from qabench.data.rows import Json, Row, grouped
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation
from qabench.evaluation.records import ExtraSection, SectionRow
from qabench.evaluation.scoring import Item, Outcome, Scorer
from qabench.stats import mean_interval

LONGEST_LIST = 1_000_000  # characters of a list of replies in a result file of the authors
MISREAD = (
    "officially, the reply is read as another verdict than it states; readable_f1 counts the stated one"
)
NOTE = (
    "The share of the wrong segments that were judged wrong. A segment for which no reply has a verdict counts as "
    "not found."
)


@dataclass(frozen=True)
class FelmScorer(Scorer):
    """Reads replies, and counts the segments that they judge.

    A prediction has ``labels`` (True or 1 = factual, one per segment), or ``reply``: an evaluator's
    reply, or a list of replies, whose majority counts. With ``claims`` ({"segment", "text"}), the
    reply is about these claims. (``answer`` is another name for ``reply``, and so is ``gen``, the
    column of the authors' result files.) If both are there, they must agree. A response without a
    usable prediction counts as "all segments are correct", like an unreadable reply. Solvers also
    store the ``reasons`` of replies without a verdict.

    Attributes:
        reply_format: "answer" or "vicuna". See ``qabench.benchmarks.felm.scores.read_reply``.
        evaluator: the model that wrote the replies. Only Vicuna's are officially read as "vicuna".
    """

    reply_format: str = "answer"
    evaluator: str | None = None

    def __post_init__(self) -> None:
        check_format(self.reply_format)

    def outcome(self, item: Item) -> Outcome:
        """Return the counts of a response (see ``ResponseScore.counts``)."""
        row, fields = item.row, item.fields or {}
        claims: list[Json] | None = None
        unusable: str | None = None
        try:
            claims = _claims(fields)
            value = _verdicts_or_reply(fields)
            score = response_score(row["labels"], value, self.reply_format, claims or None)
            if fields.get("labels") is not None:
                self._check_agreement(score, _reply(fields), claims)
        except InputError as error:
            value, unusable = None, str(error)
            score = response_score(row["labels"], None)
        replies = value if isinstance(value, list) else [value]
        replies = [] if as_verdicts(value) is not None else replies
        texts = [reply for reply in replies if isinstance(reply, str)]
        problem, status = unusable, ANSWERED
        lacking = score.unparsed + score.unanswered
        if not texts and replies:
            status, problem = MISSING, problem or "the prediction has no reply"
        elif replies and not any(text.strip() for text in texts):
            status, problem = EMPTY, "the reply is empty"
        elif lacking and len(replies) == 1:
            problem = "the reply has no verdict"
        elif score.readable is not None and score.readable != score.verdicts and len(replies) == 1:
            problem = MISREAD
        elif lacking:
            problem = f"{lacking} of {len(replies)} replies have no verdict"
        # A reply can be unreadable and still name a segment officially: an id 0 means the last segment.
        stated = score.readable is not None or not all(score.verdicts)
        is_official_reply = len(texts) == 1 and self.reply_format == "answer" and not claims
        detail: Json = {
            "segments": _segments(row, score.verdicts if stated else None),
            "replies": replies,
            "reasons": list(fields.get("reasons", [problem]) if problem and fields else []),
        }
        # An answer in the format "answer" has the same official score, for display and for exports.
        answer = texts[0] if is_official_reply or (texts and not stated) else as_reply(score.verdicts)
        return Outcome(
            scores={name: float(n) for name, n in score.counts().items()},
            detail=detail if claims is None else detail | {"claims": claims},
            problem=problem,
            status=status,
            answer=None if status == MISSING else answer,
            texts=texts,
            usable=unusable is None,
        )

    def _check_agreement(self, score: ResponseScore, reply: Any, claims: list[Json] | None) -> None:
        """Raise InputError if a reply beside labels says something else. An unreadable one says nothing."""
        if reply is None:
            return
        by_reply = response_score(score.labels, reply, self.reply_format, claims or None)
        if by_reply.readable is not None and score.verdicts not in (
            by_reply.readable,
            by_reply.verdicts,
        ):
            raise InputError(
                f"labels and reply disagree: the labels say {as_reply(score.verdicts)!r}, and the reply "
                f"{as_reply(by_reply.readable)!r}; give one of the two"
            )

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures of the official scores, and of the scores of readable replies."""
        asked = dict(about)
        data = {name: asked.pop(name) for name in ("benchmark", "config", "data") if name in asked}
        model = asked.pop("model", None)
        replies = [_reply(item.fields) for item in items if item.fields and "labels" not in item.fields]
        all_sampled = all(isinstance(reply, list) for reply in replies)
        read_as = "answer" if all_sampled else self.reply_format
        evaluator = self.evaluator if model is None else str(model)
        system = {"evaluator": evaluator, "system": misread(read_as, evaluator, sampled=all_sampled)}
        if asked:
            return signatures(data | system | asked)
        by_claims = any(item.fields.get("claims") for item in items if item.fields)
        read = {"by": "claims" if by_claims else None, "replies": read_as if replies else "verdicts"}
        return signatures(data | read | system)


def _reply(fields: Mapping[str, Any]) -> Any:
    """Return the reply, or the list of replies, which the authors' result files hold as Python's text."""
    reply = fields.get("reply", fields.get("answer", fields.get("gen")))
    if reply is None or "gen" not in fields or reply is not fields["gen"]:
        return reply
    if isinstance(reply, str) and reply.startswith("[") and len(reply) <= LONGEST_LIST:
        try:
            replies = literal_eval(reply)
        except (ValueError, SyntaxError, MemoryError, RecursionError):  # a reply that starts with "["
            return reply
        return replies if is_list_of(replies, str) and replies else reply
    return reply


def _claims(fields: Mapping[str, Any]) -> list[Json] | None:
    claims = fields.get("claims")
    if claims is None:
        return None
    try:
        return [{"segment": int(claim["segment"]), "text": str(claim["text"])} for claim in claims]
    except (TypeError, KeyError, ValueError):
        example = '[{"segment": 1, "text": "..."}]'
        raise InputError(f"claims are {claims!r:.80}; allowed: a list such as {example}") from None


def _verdicts_or_reply(fields: Mapping[str, Any]) -> Any:
    reply = _reply(fields)
    if "labels" in fields and as_verdicts(fields["labels"]) is None:
        raise InputError(
            f"labels are {fields['labels']!r:.80}; allowed: a list of true and false, or of 1 and 0"
        )
    if "labels" not in fields and as_verdicts(reply) is not None:
        raise InputError(
            f"the reply is {reply!r:.80}; allowed: a string, a list of strings, or null; give verdicts as labels"
        )
    return as_verdicts(fields["labels"]) if "labels" in fields else reply


def _segments(row: Row, verdicts: Verdicts | None) -> list[Json]:
    """Return the segments of ``Record.detail`` (see ``qabench.tasks.common``)."""
    nothing = (None,) * len(row["labels"])
    columns = {
        "text": row["segmented_response"],
        "label": row["labels"],
        "verdict": verdicts or nothing,
        "type": row["type"] or nothing,
        "comment": row["comment"],
    }
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in rows]


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """Return the recall of errors by type, the most frequent type first (see ``Benchmark.report_sections``)."""
    rows = []
    for label, evaluation in evaluations.items():
        hits_by_kind = grouped(
            (
                (segment.get("type") or "type not given").replace("_", " "),
                (record.id, float(segment.get("verdict") is False)),
            )
            for record in evaluation.records
            for segment in record.detail.get("segments") or ()
            if not segment["label"]
        )
        for kind, hits in sorted(hits_by_kind.items(), key=lambda item: (-len(item[1]), item[0])):
            recall = mean_interval([value for _, value in hits], clusters=[id for id, _ in hits])
            rows.append(SectionRow(label, "Recall of errors", kind, recall, len(hits)))
    return (
        [ExtraSection("Type of error", "errors", rows, note=NOTE, replaces="error type")] if rows else []
    )
