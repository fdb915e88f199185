"""ExpertQA's fact scores with any model: claims are split into atomic claims, each judged by its evidence.

Evidence is the claim's own, or the best passages of a corpus or of the web pages that a search
engine finds for the atomic claim.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and the scripts
below ``modeling/fact_score`` of its repository, after Min et al., FActScore, EMNLP 2023. Tests
execute them for comparison. See ``qabench.benchmarks.expertqa.factscore`` for the formulas and for
how replies are read.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.claims import NUMBER_MARK, Item
from qabench.benchmarks.expertqa.factscore import (
    Entities,
    entities_of,
    fact_score,
    first_sentence,
    post_processed,
    reply_is_true,
    states_facts,
    states_verdict,
)
from qabench.benchmarks.expertqa.kept import fact_content
from qabench.benchmarks.expertqa.passages import BM25, DENSE, Evidence, load_passages, load_web
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.io.tables import quoted
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Answered, Caller, ChatClient, Plan, Prices, answered, usage_text
from qabench.llm.exchange import ChatRequest
from qabench.models.entailment import punkt
from qabench.tasks.prompts import AUTO
from qabench.text.lemmatizers import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, find_spec_of
from qabench.text.tokenizer import with_linear_tokenizer

K = 5  # passages that the authors retrieve. The verdict's prompt shows three of them
SEARCHES_AT_ONCE = 8
EVIDENCE_ENDS_AT = "Passage ID 4"  # three of the five passages are shown
DEFAULT_FIELD = "general knowledge"  # in the authors' prompts
UNSTATED = "unstated"
# Fields of a claim that are kept together from an earlier output
RESULTS = (*("fact_score", "fact_score_readable", "decisions"), *("atomic_claims", "atomic_evidences"))
EXPECTED_ATOMIC_CLAIMS = 3  # per claim, in estimates of cost
BREAK_DOWN: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 512}
VERDICT: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 2048}
UNUSED_PIPES = ["tagger", "parser", "attribute_ruler", "lemmatizer"]

Find = Callable[[str], str]
"""Return the evidence of an atomic claim."""
Unscored = tuple[str, int, str]
"""A line (id, system, sample), the number of its claim from 1, and why the claim could not be scored."""


@dataclass(frozen=True)
class FactScorer:
    """A model that splits claims into atomic claims and judges them, with the authors' prompts and parameters.

    Attributes:
        caller: the model that judges. The authors used gpt-3.5-turbo.
        atomic_model: breaks claims down, at the same endpoint. The authors' text-davinci-003 was
            withdrawn.
        sampling: parameters of all calls that override the authors'.
        atomic_prices: of ``atomic_model``. None: those of ``caller``.
        cached: whether replies in the user's cache are used and kept.
    """

    caller: Caller
    atomic_model: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    atomic_prices: Prices | None = None
    cached: bool = True

    def label(self, items: Sequence[Item]) -> str:
        """Return what the fact scores of lines depend on except the lines, which may have the atomic claims already."""
        claims = [claim for item in items for claim in item["claims"]]
        label = f"{self.caller.model}/{prompts.verdict_label()}"
        for name, value in sorted(self.sampling.items()):
            label += f"/{name}:{value}"
        given = [item for item in items if any(map(_has_atomic_claims, item["claims"]))]
        if given:
            makers = {str(item.get("atomic_claims_by") or UNSTATED) for item in given}
            label += f"/given:{'+'.join(sorted(makers))}"
        if not claims or not all(map(_has_atomic_claims, claims)):
            label += f"/{self.atomic_label()}"
        return label

    def atomic_label(self) -> str:
        """Return what atomic claims by the model depend on."""
        return f"{self.atomic_model}:{prompts.atomic_parts().label}:punkt:{load_entities()[0]}"

    def client(self) -> ChatClient:
        """Return a client for all calls. Without the user's cache, it keeps replies until the process ends."""
        if self.cached:
            return self.caller.client()
        folder = tempfile.TemporaryDirectory(prefix="qabench-replies-")
        client = self.caller.client(ReplyCache(Path(folder.name) / "replies.sqlite"))
        weakref.finalize(client, folder.cleanup)
        return client

    def break_down(self, sentence: str) -> ChatRequest:
        """Return the request for the atomic claims of a sentence."""
        message = ("user", prompts.atomic_prompt(sentence))
        return ChatRequest(self.atomic_model, (message,), {**BREAK_DOWN, **self.sampling})

    def judge(self, atomic_claim: str, evidence: str, field: str) -> ChatRequest:
        """Return the request for a verdict on an atomic claim.

        Evidence is truncated before its fourth passage.
        """
        shown = evidence.partition(EVIDENCE_ENDS_AT)[0].strip()
        message = ("user", prompts.verdict_prompt(atomic_claim, shown, field))
        return ChatRequest(self.caller.model, (message,), {**VERDICT, **self.sampling})


def sentence_of(claim: str) -> str:
    """Return the first sentence of a claim without marks such as [2], or "" if it states nothing.

    Raises InputError for a claim too long for the authors' rules.
    """
    sentence = first_sentence(NUMBER_MARK.sub("", claim).strip(), punkt)
    return sentence if states_facts(sentence) else ""


def load_entities() -> tuple[str, Entities]:
    """Return the name and version of a spaCy model, and the function that finds dates and numbers with it.

    The model is named by QABENCH_SPACY_MODEL (a package or a folder), or else the authors'
    en_core_web_sm.
    """
    return _entities_by(os.environ.get(MODEL_VARIABLE) or OFFICIAL_MODEL)


@cache
def _entities_by(model: str) -> tuple[str, Entities]:
    lemmatizer = SpacyLemmatizer(model)  # checks that the model is there, and reads its version
    import spacy

    nlp: Any = spacy.load(model if find_spec_of(model) else lemmatizer.folder, exclude=UNUSED_PIPES)
    with_linear_tokenizer(nlp)

    @cache
    def entities(text: str) -> list[str]:
        return entities_of(text, lambda part: [(span.text, span.label_) for span in nlp(part).ents])

    return lemmatizer.versions.partition("+")[0], entities


def evidence_from(
    corpus: Path | None, search: str | None, ranker: str
) -> tuple[str | None, Find | None]:
    """Return the name, for labels, and the function that finds evidence, or None without a corpus and a search engine.

    See ``passages_for`` for the function, and ``qabench.benchmarks.expertqa.passages`` for the arguments. The
    ranker "auto" is bm25 for a corpus, dense for the web. Raises InputError if both are named, or a
    ranker without either.
    """
    if (corpus and search) or (ranker != AUTO and not (corpus or search)):
        raise InputError("give either --corpus or --search, and --ranker only with one of them")
    if corpus:
        passages = load_passages(str(corpus), BM25 if ranker == AUTO else ranker)
        return f"{passages.name}:{passages.ranker}", passages_for(passages)
    if search:
        web = load_web(search, DENSE if ranker == AUTO else ranker)
        return "{web}:{page_ranker}".format(**web.signature()), passages_for(web)
    return None, None


def passages_for(source: Evidence) -> Find:
    """Return the function that finds evidence in a corpus or on the web, in the authors' format.

    The atomic claim is the query, and passages are ranked by it. Without evidence, it returns "".
    """

    def find(claim: str) -> str:
        passages = source.find(claim, claim, K).passages
        return "\n\n".join(prompts.numbered([passage.text for passage in passages]))

    return find


def find_all(claims: Iterable[str], find: Find, progress: Progress) -> dict[str, str | QabenchError]:
    """Return the evidence of each distinct claim, or why it could not be found, from several searches at once."""

    def attempt(claim: str) -> str | QabenchError:
        try:
            return find(claim)
        except QabenchError as error:
            return error

    evidence: dict[str, str | QabenchError] = {}
    distinct = list(dict.fromkeys(claims))
    with ThreadPool(SEARCHES_AT_ONCE) as pool:  # after an interrupt, no further search starts
        for claim, text in zip(distinct, pool.imap(attempt, distinct), strict=True):
            evidence[claim] = text
            progress(len(evidence), len(distinct))
    return evidence


@dataclass
class Spent:
    """What fact scores have cost so far: calls, replies from the cache, tokens as the server counts them, the cost.

    The cost is None without prices.
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
class _Part:
    """A claim to score: its position, its copy, and why it cannot be scored (None: no problem so far)."""

    line: str
    number: int
    claim: Json
    field: str
    reason: str | None = None


def with_fields(items: Sequence[Item], fields: Mapping[str, str | None]) -> list[Item]:
    """Return lines with the field of expertise that the prompts name: the question's, else the line's own."""
    return [
        {**item, "field": fields.get(item["id"]) or item.get("field") or DEFAULT_FIELD} for item in items
    ]


def score_facts(
    items: Sequence[Item],
    scorer: FactScorer,
    progress: Progress,
    find: Find | None = None,
    spent: Spent | None = None,
) -> tuple[list[Item], list[Unscored]]:
    """Give each claim its fact score, the share of its atomic claims that a model finds true.

    Claims that have atomic_claims keep them. Others are broken down first, their marks such as [2]
    removed. An atomic claim is judged by its own entry of atomic_evidences, where these are aligned
    with the atomic claims, else by what ``find`` returns for it, else by all the evidence of its
    claim. A claim is unscored if a call failed, was refused or returned an empty reply, or if
    ``find``, which is called from several threads, raised a QabenchError. An atomic claim without
    evidence is judged all the same, as upstream. Replies are cached, so that an interrupted run
    continues where it stopped. The prompts name the expert's field of each line (see ``with_fields``).
    Calls, tokens and cost are added to ``spent``, also if it is interrupted.

    Return copies of the lines, whose claims have atomic_claims, atomic_evidences, fact_score (None
    without atomic claims, and if unscored), fact_score_readable (the same over the verdicts that
    say true or false) and decisions, the verdict on each atomic claim in the format of FActScore
    with the reply and the evidence. Also return the claims that could not be scored.
    """
    parts = _parts(items)
    client = scorer.client()
    spent = spent or Spent()
    _break_down(parts, scorer, client, progress, spent)
    _find_evidence(parts, find, progress)
    _judge(parts, scorer, client, progress, spent)
    claims = iter(part.claim for part in parts)
    scored = []
    for item in items:
        makers = (
            [item.get("atomic_claims_by") or UNSTATED]
            if any(map(_has_atomic_claims, item["claims"]))
            else []
        )
        if not all(map(_has_atomic_claims, item["claims"])):
            makers.append(scorer.atomic_label())
        by = {"atomic_claims_by": "+".join(makers)} if makers else {}
        scored.append({**item, **by, "claims": [next(claims) for _ in item["claims"]]})
    return scored, [(part.line, part.number, part.reason) for part in parts if part.reason]


def keep_scored(items: Sequence[Item], before: Mapping[str, Json]) -> tuple[list[Item], int]:
    """Return lines whose unscored claims have their earlier results, and the number of these claims.

    ``before`` has the scored claims of an earlier output, by their content (see ``kept.fact_content``).
    """
    merged, n_kept = [], 0
    for item in items:
        claims = []
        for claim in item["claims"]:
            earlier = before.get(fact_content(claim, item["field"]))
            if claim["fact_score"] is None and earlier is not None:
                claim = {**claim, **{name: earlier[name] for name in RESULTS if name in earlier}}
                n_kept += 1
            claims.append(claim)
        merged.append({**item, "claims": claims})
    return merged, n_kept


def plan_facts(items: Sequence[Item], scorer: FactScorer) -> Plan:
    """Return the calls that ``score_facts`` would make, and their cost. Does not need a key or make calls.

    The number of atomic claims of a claim is unknown before it is split: ``EXPECTED_ATOMIC_CLAIMS``
    is assumed, unless the reply is in the cache.
    """
    parts = _parts(items)
    breaking: list[ChatRequest] = []
    stating: list[tuple[_Part, str]] = []
    judging: list[ChatRequest] = []
    for part in parts:
        if part.claim["atomic_claims"] is None and (sentence := _stated(part)):
            stating.append((part, sentence))
            breaking.append(scorer.break_down(sentence))
    client = scorer.client()
    replies = client.cached(breaking)
    for (part, sentence), request in zip(stating, breaking, strict=True):
        assumed = [f"{sentence} ({number})" for number in range(EXPECTED_ATOMIC_CLAIMS)]
        part.claim["atomic_claims"] = assumed
        if outcome := replies.get(request.key(client.endpoint.base_url)):
            # Without the model of the post-processing, the number of atomic claims is assumed.
            with suppress(QabenchError):
                part.claim["atomic_claims"] = _planned_atomic_claims(sentence, answered(outcome))
    for part in parts:
        atomic = part.claim["atomic_claims"] or ()
        evidences = _evidences(part.claim, atomic, {})
        judging += map(scorer.judge, atomic, evidences, repeat(part.field))
    plans = client.plan(breaking, scorer.atomic_prices), client.plan(judging)
    costs = [plan.cost for plan in plans if plan.cost is not None]
    calls = sum(plan.calls for plan in plans)
    if scorer.caller.max_calls is not None:
        calls = min(calls, scorer.caller.max_calls)
    return Plan(
        calls,
        sum(plan.cached for plan in plans),
        sum(plan.prompt_tokens for plan in plans),
        sum(plan.completion_tokens for plan in plans),
        sum(costs) if costs else None,
    )


def _planned_atomic_claims(sentence: str, reply: Answered) -> list[str]:
    try:
        return _atomic_claims(sentence, reply)
    except InputError:
        return []  # the claim cannot be scored: no verdict is asked for


def _stated(part: _Part) -> str:
    """Return the sentence that is broken down, or "" if there is none."""
    try:
        return sentence_of(part.claim["claim"])
    except InputError:
        return ""


def _has_atomic_claims(claim: Mapping[str, Any]) -> bool:
    return claim.get("atomic_claims") is not None


def _parts(items: Sequence[Item]) -> list[_Part]:
    absent = dict.fromkeys(("fact_score", "atomic_claims", "atomic_evidences"))
    parts = []
    for item in items:
        named = [str(item[key]) for key in ("id", "system", "sample") if item.get(key) is not None]
        for number, claim in enumerate(item["claims"], start=1):
            field = item.get("field") or DEFAULT_FIELD
            parts.append(_Part(", ".join(named), number, absent | claim, field))
    if not parts:
        raise InputError("nothing to score: no claims")
    return parts


def _break_down(
    parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress, spent: Spent
) -> None:
    """Set the atomic claims of the claims that have none."""
    stating: list[tuple[_Part, str]] = []
    for part in parts:
        if part.claim["atomic_claims"] is not None:
            continue
        try:
            sentence = sentence_of(part.claim["claim"])
        except InputError as error:
            part.reason = f"its atomic claims: {error}"
            continue
        part.claim |= {"atomic_claims": [], "atomic_evidences": None}
        if sentence:  # a claim that consists of marks states nothing
            stating.append((part, sentence))
    requests = [scorer.break_down(text) for _, text in stating]
    prices = scorer.atomic_prices or scorer.caller.prices
    replies = _replies(client, requests, progress, spent, prices)
    for (part, sentence), reply in zip(stating, replies, strict=True):
        try:
            part.claim["atomic_claims"] = _atomic_claims(sentence, reply)
        except InputError as error:
            part.reason = f"its atomic claims: {error}"
            part.claim["atomic_claims"] = None


def _atomic_claims(sentence: str, reply: Answered) -> list[str]:
    if reply.text is None or reply.cut_off:
        raise InputError(reply.reason or "the reply was cut off")
    entries = prompts.official_list(reply.text)
    atomic = post_processed(sentence, entries, load_entities()[1])
    if not atomic and entries:
        raise InputError(
            f"none of the {len(entries)} in the reply {quoted(reply.text, 80)} is kept: their numbers or dates are "
            "not in the sentence"
        )
    if not atomic:
        raise InputError(f'none in the reply {quoted(reply.text, 80)}: no line begins with "- "')
    return atomic


def _find_evidence(parts: list[_Part], find: Find | None, progress: Progress) -> None:
    """Set atomic_evidences, or the reason why there are none."""
    parts = [part for part in parts if part.claim["atomic_claims"] and not part.reason]
    lacking = [
        text
        for part in parts
        if not _has_evidence(part.claim, part.claim["atomic_claims"])
        for text in part.claim["atomic_claims"]
    ]
    evidence = find_all(lacking, find, progress) if find else {}
    for part in parts:
        evidences = _evidences(part.claim, part.claim["atomic_claims"], evidence)
        errors = [error for error in evidences if isinstance(error, QabenchError)]
        if errors:
            part.reason = f"its evidence: {errors[0]}"
        else:
            part.claim["atomic_evidences"] = evidences


def _has_evidence(claim: Json, atomic: Sequence[str]) -> bool:
    return len(claim["atomic_evidences"] or []) == len(atomic)


def _evidences(claim: Json, atomic: Sequence[str], evidence: Mapping[str, Any]) -> list[Any]:
    """Return those that the claim has, else those in ``evidence``, else all the evidence of the claim for each."""
    if _has_evidence(claim, atomic):
        return list(claim["atomic_evidences"] or [])
    return [evidence.get(text, "\n\n".join(claim["evidence"])) for text in atomic]


def _judge(
    parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress, spent: Spent
) -> None:
    """Set the fact scores."""
    judged = [part for part in parts if not part.reason]
    requests: list[ChatRequest] = []
    for part in judged:
        atomic, evidences = part.claim["atomic_claims"], part.claim["atomic_evidences"]
        requests += map(scorer.judge, atomic, evidences or (), repeat(part.field))
    replies = iter(_replies(client, requests, progress, spent, scorer.caller.prices))
    for part in parts:
        part.claim |= {"fact_score": None, "fact_score_readable": None, "decisions": []}
    for part in judged:
        atomic, evidences = part.claim["atomic_claims"], part.claim["atomic_evidences"]
        own = [next(replies) for _ in atomic]
        part.reason = next((reply.reason for reply in own if reply.text is None), None)
        if part.reason:
            continue
        texts = [reply.text or "" for reply in own]
        verdicts = [reply_is_true(text) for text in texts]
        readable = [states_verdict(text) for text in texts]
        part.claim["decisions"] = [
            {
                "atom": atom,
                "is_supported": verdict,
                "readable": says,
                "reply": text,
                "evidence": evidence,
            }
            for atom, verdict, says, text, evidence in zip(
                atomic, verdicts, readable, texts, evidences or (), strict=True
            )
        ]
        part.claim["fact_score"] = fact_score(verdicts)
        part.claim["fact_score_readable"] = fact_score(
            [verdict for verdict, says in zip(verdicts, readable, strict=True) if says]
        )


def _replies(
    client: ChatClient,
    requests: list[ChatRequest],
    progress: Progress,
    spent: Spent,
    prices: Prices | None,
) -> list[Answered]:
    """Return the replies to requests of one model, with these prices, and add what they cost."""
    if not requests:
        return []
    calls, prompts, completions = client.calls, client.prompt_tokens, client.completion_tokens
    try:
        outcomes = client.complete(requests, progress, first_alone=True)
        # Equal requests have one outcome.
        spent.cached += len({id(outcome) for outcome in outcomes if outcome.cached})
    finally:
        new_prompts = client.prompt_tokens - prompts
        new_completions = client.completion_tokens - completions
        spent.calls += client.calls - calls
        spent.prompt_tokens += new_prompts
        spent.completion_tokens += new_completions
        if prices:
            spent.cost = (spent.cost or 0) + prices.cost(new_prompts, new_completions)
    return [answered(outcome) for outcome in outcomes]
