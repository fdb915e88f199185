"""ExpertQA's fact scores with any model: claims are split into atomic claims, each judged by the given evidence.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and the scripts below
``modeling/fact_score`` of its repository, after Min et al., FActScore, EMNLP 2023; tests execute them for comparison.
See ``qabench.benchmarks.expertqa.factscore`` for how replies are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.expertqa.fact_evidence import Find, found_for
from qabench.benchmarks.expertqa.fact_scorer import FactScorer
from qabench.benchmarks.expertqa.factscore import fact_score, reply_is_true
from qabench.errors import InputError, QabenchError
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Answered, ChatClient, Plan, Progress, Usage, answered, models_of, run_sync
from qabench.llm.exchange import ChatRequest, Outcome

EXPECTED_ATOMIC_CLAIMS = 3  # per claim, in estimates of cost
POSITION = ("row", "answer", "claim")


@dataclass(frozen=True)
class FactScoreRun:
    """Rows with fact scores, and how they were computed.

    Attributes:
        rows: copies of the rows; each claim has atomic_claims, atomic_evidences and fact_score. A fact score is None
            for claims without atomic claims, and for unscored claims.
        unscored: {"row", "answer", "claim", "reason"} for each claim that could not be scored: its position and the
            reason.
        about: the scorer's signature.
        models: the models that the server reports.
    """

    rows: list[dict[str, Any]]
    unscored: list[dict[str, Any]]
    scored: int
    about: Mapping[str, object]
    usage: Usage
    models: list[str]


@dataclass
class _Part:
    """A claim to score: its position, its copy, and why it cannot be scored (None: no problem so far)."""

    position: tuple[int, int, int]
    claim: dict[str, Any]
    field: str
    reason: str | None = None


def score_facts(
    rows: Sequence[Mapping[str, Any]],
    scorer: FactScorer,
    cache: ReplyCache | None = None,
    progress: Progress | None = None,
    evidence: Find | None = None,
) -> FactScoreRun:
    """Gives each claim of dataset rows its fact score, the share of its atomic claims that a model finds true.

    Claims that have atomic_claims keep them; others are broken down first, their marks such as [2] removed. An atomic
    claim is judged by its own entry of atomic_evidences, where these are aligned with the atomic claims, else by what
    ``evidence`` finds for it, else by all the evidence of its claim. The rows that come back can be scored by
    ``expertqa_factscore_agreement``. A claim is unscored if a call failed, was refused or returned an empty reply:
    fact_score None. An atomic claim without evidence is judged all the same, as upstream. Replies are cached, so that
    an interrupted run continues where it stopped.

    Args:
        rows: rows with ``answers`` (a list, as in the dataset) and metadata.
        scorer: see ``fact_scorer``.
        cache: the cache of replies; default: the user's.
        progress: called with the number done and the total, in each step: atomic claims, evidence, verdicts.
        evidence: finds the evidence of an atomic claim in a corpus or on the web; see ``evidence_from``. It is called
            from several threads. A claim whose evidence it cannot find, with a QabenchError, is unscored.

    Raises:
        InputError: no rows, or a row in another format.
        MissingExtra: calls are needed and the openai package is not installed.
    """
    scored = [deepcopy(dict(row)) for row in rows]
    parts = _parts(scored)
    client = scorer.caller.client(cache)
    outcomes = _break_down(parts, scorer, client, progress)
    outcomes += _judge(parts, scorer, client, progress, evidence)
    return FactScoreRun(
        scored,
        [dict(zip(POSITION, part.position, strict=True)) | {"reason": part.reason} for part in parts if part.reason],
        sum(part.claim["fact_score"] is not None for part in parts),
        scorer.signature(),
        client.usage(outcomes),
        models_of(outcomes),
    )


def plan_facts(rows: Sequence[Mapping[str, Any]], scorer: FactScorer, cache: ReplyCache | None = None) -> Plan:
    """The calls that ``score_facts`` would make, and their cost. Does not need a key or make calls.

    The number of atomic claims of a claim is unknown before it is split: ``EXPECTED_ATOMIC_CLAIMS`` is assumed.
    """
    requests: list[ChatRequest] = []
    for part in _parts([deepcopy(dict(row)) for row in rows]):
        atomic = part.claim.get("atomic_claims")
        if atomic is None and (sentence := scorer.sentence(part.claim["claim_string"])):
            requests.append(scorer.break_down(sentence))
            atomic = [f"{sentence} ({number})" for number in range(EXPECTED_ATOMIC_CLAIMS)]
        evidences = _evidences(part.claim, atomic or (), {})
        requests += [scorer.judge(text, shown, part.field) for text, shown in zip(atomic or (), evidences, strict=True)]
    return scorer.caller.client(cache).plan(requests)


def _parts(rows: list[dict[str, Any]]) -> list[_Part]:
    if not rows:
        raise InputError("nothing to score: no rows")
    parts = []
    for i, row in enumerate(rows):
        try:
            field = row["metadata"]["field"]
            for j, answer in enumerate(row["answers"]):
                for k, claim in enumerate(answer["claims"] or ()):
                    claim["claim_string"], claim["evidence"]
                    parts.append(_Part((i, j, k), claim, field))
        except (KeyError, TypeError) as error:
            raise InputError(f"rows[{i}] is not a row of expertqa with answers: {error!r:.80}") from None
    return parts


def _break_down(parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress | None) -> list[Outcome]:
    new = [part for part in parts if part.claim.get("atomic_claims") is None]
    sentences = {id(part): scorer.sentence(part.claim["claim_string"]) for part in new}
    asked = [part for part in new if sentences[id(part)]]  # a claim of marks alone states nothing
    requests = [scorer.break_down(sentences[id(part)]) for part in asked]
    outcomes = _complete(client, requests, progress)
    for part in new:
        part.claim["atomic_claims"], part.claim["atomic_evidences"] = [], None
    for part, outcome in zip(asked, outcomes, strict=True):
        reply = answered(outcome)
        if reply.text is None or reply.cut_off:
            part.reason = f"its atomic claims: {reply.reason or 'the reply was cut off'}"
            part.claim["atomic_claims"] = None
        else:
            part.claim["atomic_claims"] = scorer.atomic_claims(sentences[id(part)], reply.text)
            if not part.claim["atomic_claims"] and "NONE" not in reply.text:
                part.reason = f"its atomic claims: none in the reply {reply.text!r:.80}"
    return outcomes


def _judge(
    parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress | None, evidence: Find | None
) -> list[Outcome]:
    _find_evidence(parts, evidence, progress)
    requests: list[ChatRequest] = []
    for part in parts:
        part.claim["fact_score"] = None
        if part.claim["atomic_claims"] and not part.reason:
            shown = zip(part.claim["atomic_claims"], part.claim["atomic_evidences"], strict=True)
            requests += [scorer.judge(text, evidence, part.field) for text, evidence in shown]
    outcomes = _complete(client, requests, progress)
    remaining = iter(outcomes)
    for part in parts:
        if not part.reason:
            _score(part, [answered(next(remaining)) for _ in part.claim["atomic_claims"]])
    return outcomes


def _find_evidence(parts: list[_Part], evidence: Find | None, progress: Progress | None) -> None:
    """Sets atomic_evidences, or the reason why there are none."""
    parts = [part for part in parts if part.claim["atomic_claims"] and not part.reason]
    without = [text for part in parts if not _has_evidence(part.claim) for text in part.claim["atomic_claims"]]
    found = found_for(without, evidence, progress) if evidence else {}
    for part in parts:
        failed = [one for text in part.claim["atomic_claims"] if isinstance(one := found.get(text), QabenchError)]
        if failed and not _has_evidence(part.claim):
            part.reason = f"its evidence: {failed[0]}"
        else:
            part.claim["atomic_evidences"] = _evidences(part.claim, part.claim["atomic_claims"], found)


def _has_evidence(claim: Mapping[str, Any]) -> bool:
    return len(claim.get("atomic_evidences") or []) == len(claim["atomic_claims"])


def _evidences(claim: Mapping[str, Any], atomic: Sequence[str], found: Mapping[str, Any]) -> list[str]:
    """Those that the claim has, else those that were found, else all the evidence of the claim for each."""
    own = claim.get("atomic_evidences") or []
    if len(own) == len(atomic):
        return list(own)
    return [found.get(text, "\n\n".join(claim["evidence"] or ())) for text in atomic]


def _score(part: _Part, replies: list[Answered]) -> None:
    verdicts = [reply_is_true(reply.text) for reply in replies if reply.text is not None]
    part.reason = next((reply.reason for reply in replies if reply.text is None), None)
    part.claim["fact_score"] = None if part.reason else fact_score(verdicts)


def _complete(client: ChatClient, requests: list[ChatRequest], progress: Progress | None) -> list[Outcome]:
    return run_sync(client.complete(requests, progress)) if requests else []
