"""FELM's scorer, which compares an evaluator's replies or verdicts with a response's labels."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.felm.official import misread, signatures
from qabench.benchmarks.felm.scores import (
    ResponseScore,
    Verdicts,
    as_reply,
    as_verdicts,
    check_format,
    response_score,
)
from qabench.data.answers import is_list_of
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation
from qabench.evaluation.records import ExtraSection, SectionRow
from qabench.evaluation.scoring import Item, Outcome, Scorer
from qabench.evaluation.signature import digest
from qabench.stats import mean_interval

# The authors' result files contain lists of replies in Python syntax. Longer texts are not parsed.
MAX_LIST_CHARACTERS = 1_000_000
MISREAD = (
    "officially, the reply is not read as the verdict that it states; scores over readable replies "
    "count the stated one"
)
NOTE = (
    "The share of the wrong segments that were judged wrong. A segment for which no reply has a verdict counts as "
    "not found."
)


@dataclass(frozen=True)
class FelmScorer(Scorer):
    """Reads replies, and compares the verdicts on segments with the labels.

    A prediction has ``labels`` (True or 1 = factual, one per segment), or ``reply``: an evaluator's
    reply, or a list of replies, whose majority counts. If it has both, they must agree. Other names
    for ``reply`` are ``answer`` and ``gen``, the column of the authors' result files. If it has
    ``claims`` ({"segment", "text"}), the reply is about these claims. A response without a usable
    prediction counts as "all segments are correct", like an unreadable reply. Solvers also store
    the ``reasons`` why replies have no verdict.

    Attributes:
        reply_format: "answer" or "vicuna". See ``qabench.benchmarks.felm.scores.read_reply``.
        evaluator: the model that wrote the replies. Only Vicuna's are officially read as "vicuna".
    """

    reply_format: str = "answer"
    evaluator: str | None = None

    def __post_init__(self) -> None:
        check_format(self.reply_format)
        if not isinstance(self.evaluator, str | None):
            raise InputError(f"evaluator is {self.evaluator!r:.60}; allowed: the name of a model")

    def outcome(self, item: Item) -> Outcome:
        """Return the counts of a response (see ``ResponseScore.counts``)."""
        row, fields = item.row, item.fields or {}
        # An unusable prediction counts as missing and is reported, but does not stop the others.
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
        # Predictions with ``labels`` have no replies to show.
        replies: list[Any] = []
        if as_verdicts(value) is None:
            replies = value if isinstance(value, list) else [value]
        texts = [reply for reply in replies if isinstance(reply, str)]
        status, problem = _status(replies, texts, score)
        problem = unusable or problem
        # Even an unreadable reply can have a verdict officially: an id 0 means the last segment.
        states_verdict = score.readable is not None or not all(score.verdicts)
        shown_verdicts: Verdicts | None = None
        if states_verdict:
            shown_verdicts = score.verdicts
        reasons: list[Any] = []
        if problem and fields:
            reasons = list(fields.get("reasons", [problem]))
        detail: Json = {
            "segments": _segments(row, shown_verdicts),
            "replies": replies,
            "reasons": reasons,
        }
        if claims is not None:
            detail["claims"] = claims
        is_official_reply = len(texts) == 1 and self.reply_format == "answer" and not claims
        answer: str | None
        if status == MISSING:
            answer = None
        elif is_official_reply or (texts and not states_verdict):
            answer = texts[0]
        else:
            # Show and export a reply that has the same official score.
            answer = as_reply(score.verdicts)
        return Outcome(
            scores=score.columns(),
            detail=detail,
            problem=problem,
            status=status,
            answer=answer,
            texts=texts,
            usable=unusable is None,
            result=score,
        )

    def _check_agreement(self, score: ResponseScore, reply: Any, claims: list[Json] | None) -> None:
        """Raise InputError if a prediction has labels and a reply that disagree."""
        if reply is None:
            return
        by_reply = response_score(score.labels, reply, self.reply_format, claims or None)
        if by_reply.readable is None:
            # A reply without a verdict does not disagree with the labels.
            return
        if score.verdicts not in (by_reply.readable, by_reply.verdicts):
            raise InputError(
                f"labels and reply disagree: the labels say {as_reply(score.verdicts)!r}, and the reply "
                f"{as_reply(by_reply.readable)!r}; give one of the two"
            )

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures of the official scores, and of the scores of readable replies."""
        asked = dict(about)
        data = {}
        for name in ("benchmark", "config", "data"):
            if name in asked:
                data[name] = asked.pop(name)
        model = asked.pop("model", None)
        replies = []
        for item in items:
            if item.fields and item.fields.get("labels") is None:
                replies.append(_reply(item.fields))
        # The authors' script reads sampled replies (cot-cons) after "Answer: ", even Vicuna's.
        all_sampled = all(isinstance(reply, list) for reply in replies)
        read_as = "answer" if all_sampled else self.reply_format
        evaluator = self.evaluator if model is None else str(model)
        system = {
            "evaluator": evaluator,
            "system": misread(read_as, evaluator, sampled=all_sampled),
        }
        if asked:
            return signatures(data | system | asked)
        # How the predictions in a file were made is unknown, except for what they contain.
        read: dict[str, object] = {"by": None, "replies": read_as}
        for item in items:
            if item.fields and item.fields.get("claims"):
                read["by"] = "claims"
        if not replies:
            read["replies"] = "verdicts"
        return signatures(data | read | system)

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the digest of the domains, if the rows have them, and how replies are read."""
        domains = []
        sampled = True
        for item in items:
            if "domain" in item.row:
                domains.append(item.row["domain"])
            fields = item.fields or {}
            if isinstance(fields.get("reply"), str):
                sampled = False
        domains_digest = digest(domains) if domains else None
        return {
            "domains": domains_digest,
            "unparsed": "all_correct",
            "replies": self.reply_format,
            "evaluator": self.evaluator,
            "system": misread(self.reply_format, self.evaluator, sampled=sampled),
        }


def _status(
    replies: Sequence[Any], texts: Sequence[str], score: ResponseScore
) -> tuple[str, str | None]:
    """Return the status of a prediction, and what is wrong with its replies."""
    lacking = score.unparsed + score.unanswered
    if replies and not texts:
        return MISSING, "the prediction has no reply"
    if replies and not any(text.strip() for text in texts):
        return EMPTY, "the reply is empty"
    if lacking and len(replies) == 1:
        return ANSWERED, "the reply has no verdict"
    if score.readable is not None and score.readable != score.verdicts and len(replies) == 1:
        return ANSWERED, MISREAD
    if lacking:
        return ANSWERED, f"{lacking} of {len(replies)} replies have no verdict"
    return ANSWERED, None


def _reply(fields: Mapping[str, Any]) -> Any:
    """Return the reply, or the list of replies, in the first of its fields that is not null."""
    for name in ("reply", "answer", "gen"):
        reply = fields.get(name)
        if reply is not None:
            break
    if name != "gen":
        return reply
    if isinstance(reply, str) and reply.startswith("[") and len(reply) <= MAX_LIST_CHARACTERS:
        try:
            # The authors' script writes lists with str(), so they are Python literals, not JSON.
            replies = literal_eval(reply)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            # The text is a single reply that happens to begin with a bracket.
            return reply
        if is_list_of(replies, str) and replies:
            return replies
    return reply


def _claims(fields: Mapping[str, Any]) -> list[Json] | None:
    claims = fields.get("claims")
    if claims is None:
        return None
    read = []
    try:
        for claim in claims:
            read.append({"segment": int(claim["segment"]), "text": str(claim["text"])})
    except (TypeError, KeyError, ValueError):
        example = '[{"segment": 1, "text": "..."}]'
        raise InputError(f"claims are {claims!r:.80}; allowed: a list such as {example}") from None
    return read


def _verdicts_or_reply(fields: Mapping[str, Any]) -> Any:
    # A table has a column for labels also in the rows that have a reply.
    if fields.get("labels") is not None:
        verdicts = as_verdicts(fields["labels"])
        if verdicts is None:
            raise InputError(
                f"labels are {fields['labels']!r:.80}; allowed: a list of true and false, or of 1 and 0"
            )
        return verdicts
    reply = _reply(fields)
    if as_verdicts(reply) is not None:
        raise InputError(
            f"the reply is {reply!r:.80}; allowed: a string, a list of strings, or null; give verdicts as labels"
        )
    return reply


def _segments(row: Row, verdicts: Verdicts | None) -> list[Json]:
    """Return the segments of ``Record.detail`` (see ``qabench.adapters.inspect_ai``)."""
    nothing = (None,) * len(row["labels"])
    # Rows of metrics have only labels, and in 397 rows of the dataset ``type`` is empty. A column
    # that is missing or empty counts as None for every segment.
    columns = {
        "text": row.get("segmented_response", nothing),
        "label": row["labels"],
        "verdict": verdicts or nothing,
        "type": row.get("type") or nothing,
        "comment": row.get("comment", nothing),
    }
    segments = []
    for values in zip(*columns.values(), strict=True):
        segments.append(dict(zip(columns, values, strict=True)))
    return segments


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """Return the recall of errors by type, the most frequent type first."""
    rows = []
    for label, evaluation in evaluations.items():
        hits_by_type: dict[str, list[tuple[str, float]]] = {}
        for record in evaluation.records:
            for segment in record.detail.get("segments") or ():
                if not segment["label"]:
                    type_of_error = (segment.get("type") or "type not given").replace("_", " ")
                    hit = float(segment.get("verdict") is False)
                    hits_by_type.setdefault(type_of_error, []).append((record.id, hit))
        by_frequency = sorted(hits_by_type.items(), key=lambda item: (-len(item[1]), item[0]))
        for type_of_error, hits in by_frequency:
            # Segments of one response are not independent, so each response is a cluster.
            responses = [id for id, _ in hits]
            values = [hit for _, hit in hits]
            recall = mean_interval(values, clusters=responses)
            rows.append(SectionRow(label, "Recall of errors", type_of_error, recall, len(hits)))
    if not rows:
        return []
    return [ExtraSection("Type of error", "errors", rows, note=NOTE, replaces="error type")]
