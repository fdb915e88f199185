"""FELM's scores in Inspect AI: counts of segments by verdict and label, and the figures of their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.felm.claims import FelmClaim, as_reply
from qabench.benchmarks.felm.method import felm_response
from qabench.benchmarks.felm.results import FelmResponse
from qabench.llm.caller import Answered
from qabench.scoring.felm import Confusion, ResponseScore, felm_scores
from qabench.signature import signature
from qabench.tasks.replies import answered

STORE = "felm"
FIGURES = ("f1", "precision", "recall", "balanced_accuracy")
COUNTS = ("tp", "tn", "fp", "fn")
OFFICIAL = "official_"


@metric(scores="unreduced")
def felm_figures(prefix: str = "") -> Metric:
    """F1, precision and recall of errors, and balanced accuracy, of the segments of all responses and epochs together.

    Those that are undefined, such as recall without errors, are left out.
    """

    def value(scores: list[SampleScore]) -> Value:
        return _figures([_confusion(one, prefix) for one in scores])

    return value


@metric(scores="unreduced")
def felm_responses() -> Metric:
    """The same figures of whole responses, which are true when all their segments are."""

    def value(scores: list[SampleScore]) -> Value:
        found = _figures([_response_confusion(one) for one in scores])
        return {f"responses_{name}": figure for name, figure in found.items()}

    return value


@metric(scores="unreduced")
def felm_domains() -> Metric:
    """F1 and balanced accuracy of segments by domain."""

    def value(scores: list[SampleScore]) -> Value:
        domains: dict[str, list[Confusion]] = {}
        for one in scores:
            domains.setdefault((one.sample_metadata or {})["row"]["domain"], []).append(_confusion(one, ""))
        figures = {domain: _figures(of) for domain, of in domains.items()}
        return {f"{domain}_{name}": figures[domain][name] for domain in figures for name in ("f1", "balanced_accuracy")}

    return value


@scorer(name="felm", metrics=[felm_figures(), felm_responses(), felm_domains()])
def felm_scorer(
    reply_format: str = "answer", official_quirks: bool = False, signed: Mapping[str, Any] | None = None
) -> Scorer:
    """Counts of a response's segments: tp, tn, fp, fn; see ``qabench.scoring.felm``.

    A response with no verdict is unscored, and in none of the figures; ``felm_official`` counts it.

    Args:
        reply_format, official_quirks: how replies are read, see ``qabench.benchmarks.felm.evaluators.felm_evaluator``.
        signed: what the signature says of the data: config, data. The task fills it.
    """

    async def score(state: TaskState, target: Target) -> Score:
        response = _response(state, reply_format, official_quirks)
        found = _scored(response, "exclude")
        about = _about(state, signed, "exclude") | {"detail": _detail(state, response, found)}
        if found.verdicts is None:
            answer = next((reply for reply in response.replies if reply), state.output.completion)
            reason = _reason(response)
            return Score.unscored(answer=answer, reason=reason, explanation=response.reasons[0], metadata=about)
        value: dict[str, Any] = asdict(found.segments)
        return Score(value=value, answer=as_reply(found.verdicts), metadata=about)

    return score


@scorer(name="felm_official", metrics=[felm_figures(prefix=OFFICIAL)])
def felm_official(
    reply_format: str = "answer", official_quirks: bool = False, signed: Mapping[str, Any] | None = None
) -> Scorer:
    """The same counts as upstream takes them: a reply without a verdict, or none, counts as "all segments are true"."""

    async def score(state: TaskState, target: Target) -> Score:
        found = _scored(_response(state, reply_format, official_quirks), "correct")
        value: dict[str, Any] = {OFFICIAL + name: count for name, count in asdict(found.segments).items()}
        return Score(
            value=value,
            answer=as_reply(found.verdicts),
            metadata=_about(state, signed, "correct") | {"detail": {}},
        )

    return score


def _response(state: TaskState, reply_format: str, official_quirks: bool) -> FelmResponse:
    # Where another solver ran, its output is the only reply; where a call failed, there is none.
    found = state.store.get(STORE) or {"claims": None, "replies": [asdict(answered(state.output))]}
    replies = [Answered(**reply) for reply in found["replies"]] or [Answered(reason="no reply: a call failed")]
    claims = None if found["claims"] is None else [FelmClaim(**claim) for claim in found["claims"]]
    return felm_response(state.metadata["row"], claims, replies, reply_format, official_quirks)


def _scored(response: FelmResponse, on_unparsed: str) -> ResponseScore:
    (score,) = felm_scores([list(response.labels)], [list(response.readable)], on_unparsed=on_unparsed).per_question
    return score


def _detail(state: TaskState, response: FelmResponse, found: ResponseScore) -> dict[str, Any]:
    row, n = state.metadata["row"], len(response.labels)
    columns = {
        "text": row["segmented_response"],
        "label": response.labels,
        "verdict": found.verdicts or (None,) * n,
        "type": row["type"] or (None,) * n,
        "comment": row["comment"],
    }
    segments = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    replies = [reply or "" for reply in response.replies]
    detail: dict[str, Any] = {"segments": segments, "replies": replies, "reasons": list(response.reasons)}
    if response.claims is not None:
        detail["claims"] = [asdict(claim) for claim in response.claims]
    return detail


def _about(state: TaskState, signed: Mapping[str, Any] | None, unparsed: str) -> dict[str, Any]:
    asking = (state.store.get(STORE) or {}).get("asking", {})
    fields = {"benchmark": "felm", **(signed or {}), "unparsed": unparsed, "evaluator": str(state.model), **asking}
    own = not str(asking.get("prompt", "")).startswith("official-")
    return {
        "signatures": {"felm" if unparsed == "exclude" else "felm_official": signature("felm_factuality", **fields)},
        "unofficial": "FELM's evaluators were asked in other words than its authors'" if own else None,
    }


def _reason(response: FelmResponse) -> str:
    if any(response.replies):
        return "invalid_response_format"
    return "refusal" if "refused" in response.reasons[0] else "no_response"


def _confusion(one: SampleScore, prefix: str) -> Confusion:
    counts = one.score.as_dict()
    return Confusion(*(int(counts[prefix + name] or 0) for name in COUNTS))


def _response_confusion(one: SampleScore) -> Confusion:
    segments = (one.score.metadata or {})["detail"]["segments"]
    return Confusion.of(*([all(segment[name] for segment in segments)] for name in ("verdict", "label")))


def _figures(parts: Sequence[Confusion]) -> dict[str, Any]:
    total = Confusion.total(parts)
    return {name: getattr(total, name) for name in FIGURES}
