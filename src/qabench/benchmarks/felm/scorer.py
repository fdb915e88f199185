"""FELM's scores in Inspect AI: counts of segments by verdict and label, and the scores of their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite, nan
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.felm.claims import FelmClaim
from qabench.benchmarks.felm.counts import COUNTS
from qabench.benchmarks.felm.method import Judged, judged
from qabench.benchmarks.felm.metrics import READABLE, RESPONSES, columns
from qabench.benchmarks.felm.official import DECLARATIONS, SCORE, signatures
from qabench.benchmarks.felm.responses import detail, scored_reply
from qabench.benchmarks.felm.scores import Confusion
from qabench.evaluation.official import deviations
from qabench.llm.caller import Answered
from qabench.tasks.replies import answered

STORE = "felm"


@metric(scores="unreduced")
def felm_scores() -> Metric:
    """The official scores over the segments of all responses and epochs; with the prefix ``responses_`` over whole
    responses, with the prefix ``readable_`` over the segments of responses with a readable reply.

    Scores that are undefined, such as recall without errors, are left out.
    """

    def value(scores: list[SampleScore]) -> Value:
        return {
            prefix + name: found
            for prefix in ("", RESPONSES, READABLE)
            for name, found in _total(scores, prefix).scores().items()
            if found is not None
        }

    return value


@metric(scores="unreduced")
def felm_domains() -> Metric:
    """The official F1 and balanced accuracy of segments by domain."""

    def value(scores: list[SampleScore]) -> Value:
        domains: dict[str, list[SampleScore]] = {}
        for one in scores:
            domains.setdefault((one.sample_metadata or {})["row"]["domain"], []).append(one)
        found = {domain: _total(of, "").scores() for domain, of in domains.items()}
        return {
            f"{domain}_{name}": score
            for domain, by_name in found.items()
            for name in ("f1", "balanced_accuracy")
            if (score := by_name[name]) is not None
        }

    return value


@scorer(name="felm", metrics=[felm_scores(), felm_domains()])
def felm_scorer(reply_format: str = "answer", signed: Mapping[str, Any] | None = None) -> Scorer:
    """The counts of a response; see ``qabench.benchmarks.felm.metrics.columns``.

    A reply that is missing, refused, empty or unreadable counts as "all segments are correct", as in the authors'
    script; the ``readable_`` counts are NaN if no reply is readable.

    Args:
        reply_format: "answer" or "vicuna"; see ``qabench.benchmarks.felm.replies.read_reply``.
        signed: the fields of the signature for the data. The task fills it.
    """

    async def score(state: TaskState, target: Target) -> Score:
        found = _judged(state, reply_format)
        absent = {READABLE + name: nan for name in COUNTS}
        asking = (state.store.get(STORE) or {}).get("asking", {})
        lines = signatures({**(signed or {}), "evaluator": str(state.model), **asking})
        by_claims = found.claims is not None
        texts = [reply for reply in found.replies if reply is not None]
        return Score(
            value=absent | columns(found.score),
            answer=scored_reply(found.score, texts, reply_format, by_claims) if texts else state.output.completion,
            metadata={
                "detail": detail(state.metadata["row"], found.score, found.replies, found.reasons, found.claims),
                "signatures": lines,
                "deviations": deviations(lines["felm"], DECLARATIONS[SCORE]),
            },
        )

    return score


def _judged(state: TaskState, reply_format: str) -> Judged:
    # Without the store, another solver has run, and its output is the only reply.
    found = state.store.get(STORE) or {"claims": None, "replies": [asdict(answered(state.output))]}
    # If a call failed, there is no reply.
    replies = [Answered(**reply) for reply in found["replies"]] or [Answered(reason="no reply: a call failed")]
    claims = None if found["claims"] is None else [FelmClaim(**claim) for claim in found["claims"]]
    return judged(state.metadata["row"], replies, reply_format, claims)


def _total(scores: Sequence[SampleScore], prefix: str) -> Confusion:
    rows = [[one.score.as_dict().get(prefix + name) for name in COUNTS] for one in scores]
    having = [[n for n in row if isinstance(n, int | float) and isfinite(n)] for row in rows]
    return Confusion.total(Confusion(*map(int, row)) for row in having if len(row) == len(COUNTS))
