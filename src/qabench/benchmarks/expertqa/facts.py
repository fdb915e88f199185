"""Compute ExpertQA's fact scores with any model: the share of atomic claims that are true.

A claim is split into atomic claims. A model judges each of them by evidence, which is the evidence
of the claim, or is found by ``fact_evidence``.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and the scripts
below ``modeling/fact_score`` of its repository, after Min et al., FActScore, EMNLP 2023. Tests
execute these scripts for comparison. See ``qabench.benchmarks.expertqa.factscore`` for the formulas
and for how replies are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.benchmarks.expertqa.claims import NUMBER_MARK
from qabench.benchmarks.expertqa.entities import load_entities
from qabench.benchmarks.expertqa.fact_evidence import Find, find_all
from qabench.benchmarks.expertqa.fact_requests import UNSTATED, FactScorer, has_atomic_claims
from qabench.benchmarks.expertqa.factscore import (
    fact_score,
    first_sentence,
    post_processed,
    reply_is_true,
    states_facts,
    states_verdict,
)
from qabench.benchmarks.expertqa.kept import fact_content
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.io.redaction import quoted
from qabench.llm.caller import Prices
from qabench.llm.client import ChatClient, Plan, usage_text
from qabench.llm.exchange import Answered, ChatRequest, answered
from qabench.models.entailment import punkt

# The prompts contain this text if the expert's field is unknown.
DEFAULT_FIELD = "general knowledge"
# The fields of a result belong together: all or none of them are kept from an earlier output.
RESULT_FIELDS = (
    "fact_score",
    "fact_score_readable",
    "decisions",
    "atomic_claims",
    "atomic_evidences",
)
# The number that estimates of cost assume before a claim is split.
EXPECTED_ATOMIC_CLAIMS = 3

Unscored = tuple[str, int, str]
"""An unscored claim: its line (id, system, sample), its number from 1, and why it has no score."""


@dataclass
class Spent:
    """What fact scores have cost so far.

    Attributes:
        calls: calls to the server.
        cached: replies from the cache.
        prompt_tokens: the tokens of prompts, as the server counts them.
        completion_tokens: the tokens of replies, as the server counts them.
        cost: the cost in the currency of the prices, or None if no prices are known.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def __str__(self) -> str:
        plan = Plan(self.calls, self.cached, self.prompt_tokens, self.completion_tokens, self.cost)
        return usage_text(plan, f" ({self.cached:,} replies from the cache)")


@dataclass
class _ClaimToScore:
    """A copy of a claim, to which the results are added, and where the claim is from.

    Attributes:
        line: id, system and sample of the claim's line.
        number: the position of the claim in its line, from 1.
        claim: the copy.
        field: the expert's field, for the prompts.
        reason: why the claim cannot be scored, or None so far.
    """

    line: str
    number: int
    claim: Json
    field: str
    reason: str | None = None

    def judgments(self, scorer: FactScorer, evidences: Sequence[Any]) -> list[ChatRequest]:
        """Return the requests for the verdicts on the claim's atomic claims."""
        requests = []
        atomic_claims = self.claim["atomic_claims"] or ()
        for text, evidence in zip(atomic_claims, evidences, strict=False):
            requests.append(scorer.judge(text, evidence, self.field))
        return requests


def with_fields(lines: Sequence[ClaimsLine], fields: Mapping[str, str | None]) -> list[ClaimsLine]:
    """Return lines with the expert's field, which the prompts contain.

    ``fields`` maps the ids of questions to fields. If it has none for a line, the line's own field
    is used, or else ``DEFAULT_FIELD``.
    """
    completed = []
    for line in lines:
        field = fields.get(line["id"]) or line.get("field") or DEFAULT_FIELD
        completed.append({**line, "field": field})
    return completed


def sentence_of(claim: str) -> str:
    """Return the first sentence of a claim without marks such as [2], or "" if it has no facts.

    Raises:
        InputError: the claim is too long for the authors' rules.
    """
    without_marks = NUMBER_MARK.sub("", claim).strip()
    sentence = first_sentence(without_marks, punkt)
    if not states_facts(sentence):
        return ""
    return sentence


def score_facts(
    lines: Sequence[ClaimsLine],
    scorer: FactScorer,
    progress: Progress,
    find: Find | None = None,
    spent: Spent | None = None,
) -> tuple[list[ClaimsLine], list[Unscored]]:
    """Give each claim its fact score, the share of its atomic claims that a model finds true.

    Claims that have atomic_claims keep them. Other claims are first broken down, without marks such
    as [2]. The evidence of an atomic claim is its entry in atomic_evidences if that list has one
    entry per atomic claim, else what ``find`` returns, else all evidence of the whole claim. As in
    the authors' script, an atomic claim without evidence is judged, too. A claim is unscored if a
    call failed, was refused or returned an empty reply, if the claim is too long, if no atomic
    claim can be read from the reply or is kept, or if ``find`` (which is called from several
    threads) raised a QabenchError. Replies are cached, so an interrupted run continues where it
    stopped. The prompts contain the expert's field of each line (see ``with_fields``). Calls,
    tokens and cost are added to ``spent``, even after an interrupt.

    Returns copies of the lines, and the claims that could not be scored. The claims of the copies
    have the fields atomic_claims, atomic_evidences, fact_score (None if there are no atomic claims,
    or if unscored), fact_score_readable (the score over the verdicts that say true or false), and
    decisions (the verdict on each atomic claim in FActScore's format, with reply and evidence).
    """
    to_score = _claims_to_score(lines)
    client = scorer.client()
    spent = spent or Spent()
    # Each step asks for all claims at once, so that as many calls as allowed are in flight.
    _break_down(to_score, scorer, client, progress, spent)
    _find_evidence(to_score, find, progress)
    _judge(to_score, scorer, client, progress, spent)
    results = iter(to_score)
    scored = []
    for line in lines:
        scored_line = dict(line)
        # In one line, some claims may have been split before, and others now.
        makers = []
        were_split = [has_atomic_claims(claim) for claim in line["claims"]]
        if any(were_split):
            makers.append(line.get("atomic_claims_by") or UNSTATED)
        if not all(were_split):
            makers.append(scorer.atomic_label())
        if makers:
            scored_line["atomic_claims_by"] = "+".join(makers)
        scored_line["claims"] = [next(results).claim for _ in line["claims"]]
        scored.append(scored_line)
    unscored = []
    for target in to_score:
        if target.reason:
            unscored.append((target.line, target.number, target.reason))
    return scored, unscored


def keep_scored(
    lines: Sequence[ClaimsLine], before: Mapping[str, Json]
) -> tuple[list[ClaimsLine], int]:
    """Return lines in which unscored claims have their earlier results, and the number of these.

    ``before`` has the scored claims of an earlier output, by content (see ``kept.fact_content``).
    """
    merged = []
    n_kept = 0
    for line in lines:
        claims = []
        for claim in line["claims"]:
            earlier = before.get(fact_content(claim, line["field"]))
            if claim["fact_score"] is None and earlier is not None:
                claim = dict(claim)
                for name in RESULT_FIELDS:
                    if name in earlier:
                        claim[name] = earlier[name]
                n_kept += 1
            claims.append(claim)
        merged.append({**line, "claims": claims})
    return merged, n_kept


def plan_facts(lines: Sequence[ClaimsLine], scorer: FactScorer) -> Plan:
    """Return the calls that ``score_facts`` would make, and their cost, without making any call.

    No key is needed. The number of atomic claims is unknown before a claim is split, so
    ``EXPECTED_ATOMIC_CLAIMS`` is assumed, unless the reply is in the cache.
    """
    to_score = _claims_to_score(lines)
    # One model breaks claims down, and another one may judge the resulting atomic claims.
    breaking: list[ChatRequest] = []
    broken_down: list[tuple[_ClaimToScore, str]] = []
    for target in to_score:
        if target.claim["atomic_claims"] is not None:
            continue
        try:
            sentence = sentence_of(target.claim["claim"])
        except InputError:
            # The claim is too long to be broken down, so it costs nothing.
            continue
        if sentence:
            broken_down.append((target, sentence))
            breaking.append(scorer.break_down(sentence))
    client = scorer.client()
    replies = client.cached(breaking)
    for (target, sentence), request in zip(broken_down, breaking, strict=True):
        # The assumed atomic claims are numbered, because equal requests are counted as one call.
        assumed = [f"{sentence} ({number})" for number in range(EXPECTED_ATOMIC_CLAIMS)]
        target.claim["atomic_claims"] = assumed
        outcome = replies.get(request.key(client.endpoint.base_url))
        if outcome:
            # The post-processing of a cached reply needs a spaCy model. Without it, the assumed
            # number stays.
            with suppress(QabenchError):
                target.claim["atomic_claims"] = _planned_atomic_claims(sentence, answered(outcome))
    judging: list[ChatRequest] = []
    for target in to_score:
        evidences = _evidences(target.claim, target.claim["atomic_claims"] or (), {})
        judging += target.judgments(scorer, evidences)
    broken, judged = client.plan(breaking, scorer.atomic_prices), client.plan(judging)
    calls = broken.calls + judged.calls
    # Both models share the limit of calls, but each plan applies it to one model only.
    if scorer.caller.max_calls is not None:
        calls = min(calls, scorer.caller.max_calls)
    cost = None
    # Prices may be known for only one of the two models.
    if broken.cost is not None or judged.cost is not None:
        cost = (broken.cost or 0) + (judged.cost or 0)
    return Plan(
        calls,
        broken.cached + judged.cached,
        broken.prompt_tokens + judged.prompt_tokens,
        broken.completion_tokens + judged.completion_tokens,
        cost,
    )


def _planned_atomic_claims(sentence: str, reply: Answered) -> list[str]:
    try:
        return _atomic_claims(sentence, reply)
    except InputError:
        # The claim cannot be scored, so no verdict will be asked for.
        return []


def _claims_to_score(lines: Sequence[ClaimsLine]) -> list[_ClaimToScore]:
    absent = dict.fromkeys(("fact_score", "atomic_claims", "atomic_evidences"))
    to_score = []
    for line in lines:
        names = []
        for key in ("id", "system", "sample"):
            if line.get(key) is not None:
                names.append(str(line[key]))
        line_name = ", ".join(names)
        field = line.get("field") or DEFAULT_FIELD
        for number, claim in enumerate(line["claims"], start=1):
            to_score.append(_ClaimToScore(line_name, number, absent | claim, field))
    if not to_score:
        raise InputError("nothing to score: no claims")
    return to_score


def _break_down(
    to_score: list[_ClaimToScore],
    scorer: FactScorer,
    client: ChatClient,
    progress: Progress,
    spent: Spent,
) -> None:
    """Set the atomic claims of the claims that have none."""
    broken_down: list[tuple[_ClaimToScore, str]] = []
    for target in to_score:
        if target.claim["atomic_claims"] is not None:
            continue
        try:
            sentence = sentence_of(target.claim["claim"])
        except InputError as error:
            target.reason = f"its atomic claims: {error}"
            continue
        target.claim["atomic_claims"] = []
        target.claim["atomic_evidences"] = None
        # A claim that consists of marks, or is a phrase of an assistant, states no facts.
        if sentence:
            broken_down.append((target, sentence))
    requests = [scorer.break_down(sentence) for _, sentence in broken_down]
    prices = scorer.atomic_prices or scorer.caller.prices
    replies = _replies(client, requests, progress, spent, prices)
    for (target, sentence), reply in zip(broken_down, replies, strict=True):
        try:
            target.claim["atomic_claims"] = _atomic_claims(sentence, reply)
        except InputError as error:
            target.reason = f"its atomic claims: {error}"
            target.claim["atomic_claims"] = None


def _atomic_claims(sentence: str, reply: Answered) -> list[str]:
    if reply.text is None or reply.cut_off:
        raise InputError(reply.reason or "the reply was cut off")
    entries = prompts.official_list(reply.text)
    _, entities = load_entities()
    atomic = post_processed(sentence, entries, entities)
    if not atomic and entries:
        raise InputError(
            f"none of the {len(entries)} in the reply {quoted(reply.text, 80)} is kept: their numbers or dates are "
            "not in the sentence"
        )
    if not atomic:
        raise InputError(f'none in the reply {quoted(reply.text, 80)}: no line begins with "- "')
    return atomic


def _find_evidence(to_score: list[_ClaimToScore], find: Find | None, progress: Progress) -> None:
    """Set atomic_evidences of each claim, or the reason why its evidence could not be found."""
    with_atomic = []
    lacking: list[str] = []
    for target in to_score:
        atomic_claims = target.claim["atomic_claims"]
        if not atomic_claims or target.reason:
            continue
        with_atomic.append(target)
        if not _has_evidence(target.claim, atomic_claims):
            lacking += atomic_claims
    evidence: Mapping[str, str | QabenchError] = {}
    if find:
        evidence = find_all(lacking, find, progress)
    for target in with_atomic:
        evidences = _evidences(target.claim, target.claim["atomic_claims"], evidence)
        errors = [text for text in evidences if isinstance(text, QabenchError)]
        if errors:
            target.reason = f"its evidence: {errors[0]}"
        else:
            target.claim["atomic_evidences"] = evidences


def _has_evidence(claim: Json, atomic: Sequence[str]) -> bool:
    return len(claim["atomic_evidences"] or []) == len(atomic)


def _evidences(claim: Json, atomic: Sequence[str], evidence: Mapping[str, Any]) -> list[Any]:
    """Return the evidence of each atomic claim.

    This is its entry in the claim's atomic_evidences, else its entry in ``evidence``, else all
    evidence of the whole claim.
    """
    if _has_evidence(claim, atomic):
        return list(claim["atomic_evidences"] or [])
    whole = "\n\n".join(claim["evidence"])
    return [evidence.get(text, whole) for text in atomic]


def _judge(
    to_score: list[_ClaimToScore],
    scorer: FactScorer,
    client: ChatClient,
    progress: Progress,
    spent: Spent,
) -> None:
    """Set the fact scores of all claims that have no problem so far."""
    judged = [target for target in to_score if not target.reason]
    requests: list[ChatRequest] = []
    for target in judged:
        requests += target.judgments(scorer, target.claim["atomic_evidences"] or ())
    replies = iter(_replies(client, requests, progress, spent, scorer.caller.prices))
    # Claims that cannot be scored get these fields, too, so that all lines have the same fields.
    for target in to_score:
        target.claim |= {"fact_score": None, "fact_score_readable": None, "decisions": []}
    for target in judged:
        atomic = target.claim["atomic_claims"]
        own_replies = [next(replies) for _ in atomic]
        failures = [reply.reason for reply in own_replies if reply.text is None]
        if failures:
            target.reason = failures[0]
            continue
        decisions = []
        verdicts = []
        readable_verdicts = []
        evidences = target.claim["atomic_evidences"] or ()
        for text, reply, evidence in zip(atomic, own_replies, evidences, strict=True):
            reply_text = reply.text or ""
            is_supported = reply_is_true(reply_text)
            # The official script counts most replies without a verdict, such as "Yes", as true.
            is_readable = states_verdict(reply_text)
            verdicts.append(is_supported)
            if is_readable:
                readable_verdicts.append(is_supported)
            decisions.append(
                {
                    "atom": text,
                    "is_supported": is_supported,
                    "readable": is_readable,
                    "reply": reply_text,
                    "evidence": evidence,
                }
            )
        target.claim["decisions"] = decisions
        target.claim["fact_score"] = fact_score(verdicts)
        target.claim["fact_score_readable"] = fact_score(readable_verdicts)


def _replies(
    client: ChatClient,
    requests: list[ChatRequest],
    progress: Progress,
    spent: Spent,
    prices: Prices | None,
) -> list[Answered]:
    """Return the replies of one model to requests, and add their cost at these prices to ``spent``."""
    if not requests:
        return []
    calls, prompts, completions = client.calls, client.prompt_tokens, client.completion_tokens
    try:
        outcomes = client.complete(requests, progress, first_alone=True)
        # Equal requests share one outcome object, which counts as one reply from the cache.
        ids_of_cached = set()
        for outcome in outcomes:
            if outcome.cached:
                ids_of_cached.add(id(outcome))
        spent.cached += len(ids_of_cached)
    finally:
        new_prompts = client.prompt_tokens - prompts
        new_completions = client.completion_tokens - completions
        spent.calls += client.calls - calls
        spent.prompt_tokens += new_prompts
        spent.completion_tokens += new_completions
        if prices:
            spent.cost = (spent.cost or 0) + prices.cost(new_prompts, new_completions)
    return [answered(outcome) for outcome in outcomes]
