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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
)
from qabench.benchmarks.expertqa.passages import BM25, DENSE, Evidence, load_passages, load_web
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.io.tables import quoted
from qabench.llm.client import Answered, Caller, ChatClient, Plan, answered
from qabench.llm.exchange import ChatRequest
from qabench.models.entailment import punkt
from qabench.tasks.prompts import AUTO
from qabench.text.lemmatizers import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, find_spec_of
from qabench.text.tokenizer import with_linear_tokenizer

K = 5  # passages that the authors retrieve. The verdict's prompt shows three of them
SEARCHES_AT_ONCE = 8
EVIDENCE_ENDS_AT = "Passage ID 4"  # three of the five passages are shown
EXPECTED_ATOMIC_CLAIMS = 3  # per claim, in estimates of cost
BREAK_DOWN: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 512}
VERDICT: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 2048}
UNUSED_PIPES = ["tagger", "parser", "attribute_ruler", "lemmatizer"]

Find = Callable[[str], str]
"""Return the evidence of an atomic claim."""
Unscored = tuple[str, int, str]
"""The id of a line, the number of its claim from 1, and why the claim could not be scored."""


@dataclass(frozen=True)
class FactScorer:
    """A model that splits claims into atomic claims and judges them, with the authors' prompts and parameters.

    Attributes:
        caller: the model that judges. The authors used gpt-3.5-turbo.
        atomic_model: breaks claims down, at the same endpoint. The authors' text-davinci-003 was
            withdrawn.
    """

    caller: Caller
    atomic_model: str

    def label(self, with_atomic_claims: bool) -> str:
        """Return what fact scores depend on except the rows, which may have had the atomic claims already."""
        label = f"{self.caller.model}/{prompts.verdict_label()}"
        if with_atomic_claims:
            return f"{label}/given"
        return f"{label}/{self.atomic_model}:{prompts.atomic_parts().label}:punkt:{load_entities()[0]}"

    def break_down(self, sentence: str) -> ChatRequest:
        """Return the request for the atomic claims of a sentence."""
        message = ("user", prompts.atomic_prompt(sentence))
        return ChatRequest(self.atomic_model, (message,), BREAK_DOWN)

    def judge(self, atomic_claim: str, evidence: str, field: str) -> ChatRequest:
        """Return the request for a verdict on an atomic claim.

        Evidence is truncated before its fourth passage.
        """
        shown = evidence.partition(EVIDENCE_ENDS_AT)[0].strip()
        message = ("user", prompts.verdict_prompt(atomic_claim, shown, field))
        return ChatRequest(self.caller.model, (message,), VERDICT)


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
        return f"{corpus.name}:{passages.ranker}", passages_for(passages)
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
class _Part:
    """A claim to score: its position, its copy, and why it cannot be scored (None: no problem so far)."""

    id: str
    number: int
    claim: Json
    field: str
    reason: str | None = None


def score_facts(
    items: Sequence[Item],
    fields: Mapping[str, str | None],
    scorer: FactScorer,
    progress: Progress,
    find: Find | None = None,
) -> tuple[list[Item], list[Unscored]]:
    """Give each claim its fact score, the share of its atomic claims that a model finds true.

    Claims that have atomic_claims keep them. Others are broken down first, their marks such as [2]
    removed. An atomic claim is judged by its own entry of atomic_evidences, where these are aligned
    with the atomic claims, else by what ``find`` returns for it, else by all the evidence of its
    claim. A claim is unscored if a call failed, was refused or returned an empty reply, or if
    ``find``, which is called from several threads, raised a QabenchError. An atomic claim without
    evidence is judged all the same, as upstream. Replies are cached, so that an interrupted run
    continues where it stopped. ``fields`` maps ids to the experts' fields. Otherwise the field is
    the line's, or "general knowledge".

    Return copies of the lines, whose claims have atomic_claims, atomic_evidences and fact_score
    (None without atomic claims, and if unscored), and the claims that could not be scored.
    """
    parts = _parts(items, fields)
    client = scorer.caller.client()
    _break_down(parts, scorer, client, progress)
    _find_evidence(parts, find, progress)
    _judge(parts, scorer, client, progress)
    claims = iter(part.claim for part in parts)
    scored = [{**item, "claims": [next(claims) for _ in item["claims"]]} for item in items]
    return scored, [(part.id, part.number, part.reason) for part in parts if part.reason]


def plan_facts(items: Sequence[Item], fields: Mapping[str, str | None], scorer: FactScorer) -> Plan:
    """Return the calls that ``score_facts`` would make, and their cost. Does not need a key or make calls.

    The number of atomic claims of a claim is unknown before it is split: ``EXPECTED_ATOMIC_CLAIMS``
    is assumed.
    """
    requests: list[ChatRequest] = []
    for part in _parts(items, fields):
        atomic = part.claim["atomic_claims"]
        if atomic is None and (sentence := sentence_of(part.claim["claim"])):
            requests.append(scorer.break_down(sentence))
            atomic = [f"{sentence} ({number})" for number in range(EXPECTED_ATOMIC_CLAIMS)]
        evidences = _evidences(part.claim, atomic or (), {})
        requests += map(scorer.judge, atomic or (), evidences, repeat(part.field))
    return scorer.caller.client().plan(requests)


def _parts(items: Sequence[Item], fields: Mapping[str, str | None]) -> list[_Part]:
    absent = dict.fromkeys(("fact_score", "atomic_claims", "atomic_evidences"))
    parts = []
    for item in items:
        field = fields.get(item["id"]) or item.get("field") or "general knowledge"
        for number, claim in enumerate(item["claims"], start=1):
            parts.append(_Part(item["id"], number, absent | claim, field))
    if not parts:
        raise InputError("nothing to score: no claims")
    return parts


def _break_down(parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress) -> None:
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
    replies = _replies(client, [scorer.break_down(text) for _, text in stating], progress)
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
    if not atomic:
        raise InputError(f"none in the reply {quoted(reply.text, 80)}")
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


def _judge(parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress) -> None:
    """Set the fact scores."""
    judged = [part for part in parts if not part.reason]
    requests: list[ChatRequest] = []
    for part in judged:
        atomic, evidences = part.claim["atomic_claims"], part.claim["atomic_evidences"]
        requests += map(scorer.judge, atomic, evidences or (), repeat(part.field))
    replies = iter(_replies(client, requests, progress))
    for part in parts:
        part.claim["fact_score"] = None
    for part in judged:
        own = [next(replies) for _ in part.claim["atomic_claims"]]
        part.reason = next((reply.reason for reply in own if reply.text is None), None)
        if not part.reason:
            part.claim["fact_score"] = fact_score([reply_is_true(reply.text or "") for reply in own])


def _replies(client: ChatClient, requests: list[ChatRequest], progress: Progress) -> list[Answered]:
    return [answered(outcome) for outcome in client.complete(requests, progress)] if requests else []
