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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from qabench.data.rows import Json, Row
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.io.tables import quoted
from qabench.llm.client import Caller, ChatClient, Plan, answered, caller_for
from qabench.llm.exchange import ChatOutcome, ChatRequest
from qabench.models.entailment import punkt
from qabench.tasks.prompts import AUTO, OFFICIAL, QABENCH, Prompt, chosen_prompt
from qabench.text.lemmatizers import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, find_spec_of

K = 5  # passages that the authors retrieve. The verdict's prompt shows three of them
SEARCHES_AT_ONCE = 8
EVIDENCE_ENDS_AT = "Passage ID 4"  # three of the five passages are shown
EXPECTED_ATOMIC_CLAIMS = 3  # per claim, in estimates of cost
OWN_BREAK_DOWN: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1000}
OWN_VERDICT: Mapping[str, Any] = {"temperature": 0, "max_tokens": 100}
OFFICIAL_BREAK_DOWN: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 512}
OFFICIAL_VERDICT: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 2048}
UNUSED_PIPES = ["tagger", "parser", "attribute_ruler", "lemmatizer"]

Find = Callable[[str], str]
"""Return the evidence of an atomic claim."""
Unscored = tuple[str, int, str]
"""The id of a line, the number of its claim from 1, and why the claim could not be scored."""


@dataclass(frozen=True)
class FactScorer:
    """A model that splits claims into atomic claims and judges them (see ``fact_scorer``).

    ``entities`` are the name and the function of the spaCy model for the authors' post-processing
    of atomic claims.
    """

    caller: Caller
    official: bool
    verdict_prompt: Prompt
    atomic_model: str
    entities: tuple[str, Entities] | None

    def label(self, with_atomic_claims: bool) -> str:
        """Return what fact scores depend on except the rows, which may have had the atomic claims already."""
        atomic_claims = "given"
        if not with_atomic_claims:
            label = (prompts.atomic_parts() if self.official else prompts.OWN_ATOMIC).label
            sentences = "punkt" if self.official else "none"
            atomic_claims = f"{self.atomic_model}:{label}:{sentences}:{self.entities[0] if self.entities else 'none'}"
        return f"{self.caller.model}/{self.verdict_prompt.label}/{atomic_claims}"

    def sentence(self, claim: str) -> str:
        """Return the part of a claim that is broken down, without marks such as [2], or "" if it states nothing.

        With the authors' prompts it is the first sentence. Raises InputError for a claim too long
        for their rules.
        """
        plain = NUMBER_MARK.sub("", claim).strip()
        if not self.official:
            return plain
        sentence = first_sentence(plain, punkt)
        return sentence if states_facts(sentence) else ""

    def break_down(self, sentence: str) -> ChatRequest:
        """Return the request for the atomic claims of a sentence."""
        if self.official:
            message = ("user", prompts.atomic_prompt(sentence))
            return ChatRequest(self.atomic_model, (message,), OFFICIAL_BREAK_DOWN)
        return ChatRequest(
            self.atomic_model, prompts.OWN_ATOMIC.messages(claim=sentence), OWN_BREAK_DOWN
        )

    def atomic_claims(self, sentence: str, reply: str) -> list[str]:
        """Return the atomic claims in a reply, post-processed.

        Raises InputError for one too long for that.
        """
        if not self.official:
            return prompts.read_list(reply)
        entries = prompts.official_list(reply)
        return post_processed(sentence, entries, self.entities[1]) if self.entities else entries

    def judge(self, atomic_claim: str, evidence: str, field: str) -> ChatRequest:
        """Return the request for a verdict on an atomic claim.

        Evidence is truncated before its fourth passage.
        """
        shown = evidence.partition(EVIDENCE_ENDS_AT)[0].strip()
        if self.official:
            message = ("user", prompts.verdict_prompt(atomic_claim, shown, field))
            return ChatRequest(self.caller.model, (message,), OFFICIAL_VERDICT)
        messages = self.verdict_prompt.messages(
            field=field, evidence=shown, claim=atomic_claim.strip()
        )
        return ChatRequest(self.caller.model, messages, OWN_VERDICT)


def fact_scorer(
    model: str,
    base_url: str | None,
    api_key: str | None = None,
    *,
    prompt: str,
    atomic_model: str | None = None,
    **limits: Any,
) -> FactScorer:
    """Return the scorer that arguments describe.

    See ``caller_for`` for the endpoint and ``**limits``.

    Args:
        model: the model's name at the endpoint. The authors used gpt-3.5-turbo for verdicts.
        prompt: "official": the authors' prompts, temperature 0.7 and token limits. "qabench": this
            project's prompts with temperature 0. "auto": official if the authors' files are
            available.
        atomic_model: breaks claims down. Default: ``model``. The authors' text-davinci-003 was
            withdrawn.
    """
    caller = caller_for(model, base_url, api_key, **limits)
    atomic_model = atomic_model or model
    files = (prompts.ATOMIC, prompts.DEMONSTRATIONS, prompts.VERDICT)
    if chosen_prompt("expertqa", prompt, *files) == QABENCH:
        return FactScorer(caller, False, prompts.OWN_VERDICT, atomic_model, None)
    try:
        entities = load_entities()
    except MissingExtra:
        entities = None
    verdict = Prompt(OFFICIAL, "".join(part.user for part in prompts.verdict_parts()))
    return FactScorer(caller, True, verdict, atomic_model, entities)


def load_entities() -> tuple[str, Entities]:
    """Return the name and version of a spaCy model, and the function that finds dates and numbers with it.

    The model is named by QABENCH_SPACY_MODEL (a package or a folder), or else the authors'
    en_core_web_sm.
    """
    model = os.environ.get(MODEL_VARIABLE) or OFFICIAL_MODEL
    lemmatizer = SpacyLemmatizer(model)  # checks that the model is there, and reads its version
    try:
        import spacy
    except ImportError:
        raise MissingExtra(
            "the authors' post-processing needs spaCy: pip install 'qabench[spacy]'"
        ) from None
    nlp: Any = spacy.load(model if find_spec_of(model) else lemmatizer.folder, exclude=UNUSED_PIPES)

    @cache
    def entities(text: str) -> list[str]:
        return entities_of(text, lambda part: [(span.text, span.label_) for span in nlp(part).ents])

    return lemmatizer.versions.partition("+")[0], entities


def evidence_from(
    corpus: str | None, search: str | None, ranker: str, encoder: str | None
) -> tuple[str | None, Find | None]:
    """Return the name, for labels, and the function that finds evidence, or None without a corpus and a search engine.

    See ``qabench.benchmarks.expertqa.passages`` for the arguments and errors. The ranker "auto" is
    bm25 for a corpus, dense for the web. Raises InputError if both are named, or a ranker without
    either.
    """
    if corpus and search:
        raise InputError("give a corpus or a search engine, not both")
    if corpus:
        passages = load_passages(corpus, ranker=BM25 if ranker == AUTO else ranker, encoder=encoder)
        return f"{Path(corpus).name}:{passages.ranker}", passages_for(passages)
    if search:
        web = load_web(search, DENSE if ranker == AUTO else ranker, encoder)
        return "{web}:{page_ranker}".format(**web.signature()), passages_for(web)
    if ranker != AUTO or encoder:
        raise InputError("a ranker has no effect without --corpus or --search")
    return None, None


def passages_for(source: Evidence) -> Find:
    """Return the function that finds evidence in a corpus or on the web, in the authors' format.

    The atomic claim is the query, and passages are ranked by it. Without evidence, it returns "".
    """

    def find(claim: str) -> str:
        return "\n\n".join(
            prompts.numbered([passage.text for passage in source.find(claim, claim, K).passages])
        )

    return find


def find_all(
    claims: Iterable[str], find: Find, progress: Progress | None = None
) -> dict[str, str | QabenchError]:
    """Return the evidence of each distinct claim, or why it could not be found, from several searches at once."""
    evidence: dict[str, str | QabenchError] = {}
    with ThreadPool(SEARCHES_AT_ONCE) as pool:  # after an interrupt, no further search starts
        results = {claim: pool.apply_async(find, (claim,)) for claim in dict.fromkeys(claims)}
        for claim, result in results.items():
            try:
                evidence[claim] = result.get()
            except QabenchError as error:
                evidence[claim] = error
            if progress:
                progress(len(evidence), len(results))
    return evidence


@dataclass
class _Part:
    """A claim to score: its position, its copy, and why it cannot be scored (None: no problem so far)."""

    id: str
    number: int
    claim: Json
    field: str
    sentence: str = ""
    reason: str | None = None


def score_facts(
    items: Sequence[Item],
    fields: Mapping[str, str | None],
    scorer: FactScorer,
    progress: Progress | None = None,
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
        if atomic is None and (sentence := scorer.sentence(part.claim["claim"])):
            requests.append(scorer.break_down(sentence))
            atomic = [f"{sentence} ({number})" for number in range(EXPECTED_ATOMIC_CLAIMS)]
        evidences = _evidences(part.claim, atomic or (), {})
        requests += map(scorer.judge, atomic or (), evidences, repeat(part.field))
    return scorer.caller.client().plan(requests)


def _parts(items: Sequence[Item], fields: Mapping[str, str | None]) -> list[_Part]:
    absent = dict.fromkeys(("fact_score", "atomic_claims", "atomic_evidences"))
    parts = [
        _Part(
            item["id"],
            number,
            absent | claim,
            fields.get(item["id"]) or item.get("field") or "general knowledge",
        )
        for item in items
        for number, claim in enumerate(item["claims"], start=1)
    ]
    if not parts:
        raise InputError("nothing to score: no claims")
    return parts


def _break_down(
    parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress | None
) -> None:
    """Set the atomic claims of the claims that have none."""
    new = [part for part in parts if part.claim["atomic_claims"] is None]
    for part in new:
        part.claim |= {"atomic_claims": [], "atomic_evidences": None}
        with _unscored(part):
            part.sentence = scorer.sentence(part.claim["claim"])
    # a claim that consists of marks states nothing
    stating = [part for part in new if part.sentence]
    outcomes = _complete(client, [scorer.break_down(part.sentence) for part in stating], progress)
    for part, outcome in zip(stating, outcomes, strict=True):
        reply = answered(outcome)
        with _unscored(part):
            if reply.text is None or reply.cut_off:
                raise InputError(reply.reason or "the reply was cut off")
            part.claim["atomic_claims"] = scorer.atomic_claims(part.sentence, reply.text)
            if not part.claim["atomic_claims"] and "NONE" not in reply.text:
                part.reason = f"its atomic claims: none in the reply {quoted(reply.text, 80)}"


@contextmanager
def _unscored(part: _Part) -> Iterator[None]:
    """Record why a claim has no atomic claims."""
    try:
        yield
    except InputError as error:
        part.reason = f"its atomic claims: {error}"
        part.claim["atomic_claims"] = None


def _find_evidence(parts: list[_Part], find: Find | None, progress: Progress | None) -> None:
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


def _has_evidence(claim: Row, atomic: Sequence[str]) -> bool:
    return len(claim["atomic_evidences"] or []) == len(atomic)


def _evidences(claim: Row, atomic: Sequence[str], evidence: Mapping[str, Any]) -> list[Any]:
    """Return those that the claim has, else those in ``evidence``, else all the evidence of the claim for each."""
    if _has_evidence(claim, atomic):
        return list(claim["atomic_evidences"] or [])
    return [evidence.get(text, "\n\n".join(claim["evidence"])) for text in atomic]


def _judge(
    parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress | None
) -> None:
    """Set the fact scores."""
    requests: list[ChatRequest] = []
    for part in parts:
        claim = part.claim
        claim["fact_score"] = None
        if claim["atomic_claims"] and not part.reason:
            requests += map(
                scorer.judge, claim["atomic_claims"], claim["atomic_evidences"], repeat(part.field)
            )
    outcomes = iter(_complete(client, requests, progress))
    for part in parts:
        if not part.reason:
            replies = [answered(next(outcomes)) for _ in part.claim["atomic_claims"]]
            part.reason = next((reply.reason for reply in replies if reply.text is None), None)
            if not part.reason:
                part.claim["fact_score"] = fact_score(
                    [reply_is_true(reply.text or "") for reply in replies]
                )


def _complete(
    client: ChatClient, requests: list[ChatRequest], progress: Progress | None
) -> list[ChatOutcome]:
    return client.complete(requests, progress) if requests else []
