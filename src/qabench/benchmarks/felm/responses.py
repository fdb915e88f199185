"""The details of a response in run logs and reports: its groups, its reference, and the verdicts by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from qabench.benchmarks.felm.claims import FelmClaim
from qabench.benchmarks.felm.replies import as_reply
from qabench.benchmarks.felm.scores import ResponseScore


def groups(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """The groups of a response: its domain, and the types of its errors."""
    return {"domain": [row["domain"]], "error type": sorted({kind for kind in row["type"] if kind})}


def reference(row: Mapping[str, Any]) -> str:
    """The reply that states the human labels."""
    return as_reply(tuple(row["labels"]))


def scored_reply(
    score: ResponseScore, replies: Sequence[str], reply_format: str = "answer", by_claims: bool = False
) -> str:
    """A reply in the format "answer" that gives the same official score, for display and for exports.

    Args:
        score: the score of the response.
        replies: the available replies.
        reply_format: the format of the replies.
        by_claims: whether the replies judge claims instead of segments.
    """
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
    """The ``Record.detail`` of a response.

    Returns:
        ``segments``: for each segment text, label, verdict (True = factual; None if no reply has a verdict, which
        counts as factual), type and comment; ``replies``: the replies, None for a missing one; ``reasons``: for each
        reply without a verdict, the reason; ``claims``: the claims judged, absent if segments were judged.
    """
    n = len(score.labels)
    # A reply can be unreadable and still name a segment officially: an id 0 means the last segment.
    stated = score.readable is not None or not all(score.verdicts)
    columns: dict[str, Sequence[Any]] = {
        "text": row["segmented_response"],
        "label": score.labels,
        "verdict": score.verdicts if stated else (None,) * n,
        "type": row["type"] or (None,) * n,
        "comment": row["comment"],
    }
    segments = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    found: dict[str, Any] = {"segments": segments, "replies": list(replies), "reasons": list(reasons)}
    if claims is not None:
        found["claims"] = [asdict(claim) for claim in claims]
    return found
