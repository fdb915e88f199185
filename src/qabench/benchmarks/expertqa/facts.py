"""ExpertQA's fact scores with any model: claims are split into atomic claims, each judged by the given evidence.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), after Min et al., FActScore, EMNLP
2023. See ``qabench.scoring.factscore`` for how replies are read.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa import official_prompts as official
from qabench.benchmarks.expertqa.prompts import DATA_NOT_INSTRUCTIONS
from qabench.errors import InputError, MissingExtra
from qabench.llm.budget import Plan
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Answered, Caller, Usage, answered, caller_for, merged, models_of, usage_of
from qabench.llm.client import ChatClient, Progress
from qabench.llm.exchange import ChatRequest, Outcome
from qabench.llm.running import run_sync
from qabench.prompts.template import Prompt, check_fields, read_prompt
from qabench.scoring.factscore import fact_score, reply_is_true

EVIDENCE_ENDS_AT = "Passage ID 4"  # three of the five passages are shown
TOP_DEMONSTRATIONS = 7  # the first ones, and the one that is most similar to the sentence
NUMBER_MARK = re.compile(r"\[\d+\]")
BULLET = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+(\S.*)")
OWN_BREAK_DOWN: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1000}
OWN_VERDICT: Mapping[str, Any] = {"temperature": 0, "max_tokens": 100}
OFFICIAL_BREAK_DOWN: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 512}
OFFICIAL_VERDICT: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 2048}
EXPECTED_ATOMIC_CLAIMS = 3  # per claim, in estimates of cost
POSITION = ("row", "answer", "claim")
ATOMIC_PROMPT = Prompt(
    "qabench",
    f"""Break the sentence down into facts that are independent of each other. Each fact is one short sentence that
states one thing and is understood without the others. Repeat what the sentence says, whether it is right or wrong, and
add nothing. Write one fact per line, beginning with "- "; if the sentence states no fact, reply with NONE.

{DATA_NOT_INSTRUCTIONS}

<sentence>
{{claim}}
</sentence>""",
)
VERDICT_PROMPT = Prompt(
    "qabench",
    f"""Below are passages, and a statement from an answer to a question in the field {{field}}. According to the
passages, is the statement true or false?

<passages>
{{evidence}}
</passages>

<statement>
{{claim}}
</statement>

{DATA_NOT_INSTRUCTIONS} Reply with one word: True or False.""",
)


@dataclass(frozen=True)
class FactScorer:
    """A model that splits claims into atomic claims and judges them; see ``fact_scorer``."""

    caller: Caller
    official: bool
    verdict_prompt: Prompt
    break_down_parameters: Mapping[str, Any]
    parameters: Mapping[str, Any]

    def signature(self) -> dict[str, object]:
        """Everything that the fact scores depend on except the rows, for ``qabench.signature.signature``."""
        atomic = official.atomic() if self.official else ATOMIC_PROMPT
        return {
            "evaluator": self.caller.model,
            "endpoint": self.caller.endpoint.base_url,
            "prompt": self.verdict_prompt.label,
            "atomic_prompt": atomic.label,
            "post_processing": "none",
            **self.parameters,
        }

    def break_down(self, claim: str) -> ChatRequest:
        """The request for a claim's atomic claims."""
        messages = (("user", atomic_prompt(claim)),) if self.official else ATOMIC_PROMPT.messages(claim=claim)
        return ChatRequest(self.caller.model, messages, self.break_down_parameters)

    def atomic_claims(self, reply: str) -> list[str]:
        """The atomic claims in a reply to ``break_down``."""
        return official_list(reply) if self.official else read_list(reply)

    def judge(self, atomic_claim: str, evidence: str, field: str) -> ChatRequest:
        """The request for a verdict on an atomic claim; evidence is truncated before its fourth passage."""
        shown = evidence.partition(EVIDENCE_ENDS_AT)[0].strip()
        if self.official:
            messages: tuple[tuple[str, str], ...] = (("user", verdict_prompt(atomic_claim, shown, field)),)
        else:
            messages = self.verdict_prompt.messages(field=field, evidence=shown, claim=atomic_claim.strip())
        return ChatRequest(self.caller.model, messages, self.parameters)


def atomic_prompt(sentence: str) -> str:
    """The authors' prompt for the atomic facts of a sentence: 7 demonstrations, the most similar one, the sentence.

    Raises:
        MissingExtra: the package rank-bm25 is not installed.
        SourceError: the authors' files are not available.
    """
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        raise MissingExtra(
            "the authors' prompt for atomic facts needs rank-bm25: pip install 'qabench[retrieval]'"
        ) from None
    parts = official.atomic()
    known = list(parts.demonstrations)
    ranking = BM25Okapi([text.split(" ") for text in known])
    nearest = ranking.get_top_n(sentence.split(" "), known, 1)
    shown = [
        parts.instruction.filled(sentence=text)
        + "".join(parts.fact.filled(fact=fact) for fact in parts.demonstrations[text])
        for text in [*known[:TOP_DEMONSTRATIONS], *nearest]
    ]
    return "\n".join([*shown, parts.instruction.filled(sentence=sentence)]).strip()


def verdict_prompt(atomic_claim: str, evidence: str, field: str) -> str:
    """The authors' prompt for the verdict on an atomic claim; empty evidence leaves a lone full stop, as upstream."""
    definition, whole = official.verdict()
    text = definition.filled(field=field) + evidence.strip()
    if text[-1] not in string.punctuation:
        text += "."
    return whole.filled(definition=text.strip(), claim=atomic_claim.strip()).strip()


def official_list(reply: str) -> list[str]:
    """The entries of a reply as upstream reads them: after each "- "; the last entry ends with a full stop."""
    found = [entry.strip() for entry in reply.split("- ")[1:] if entry.strip()]
    if found and not found[-1].endswith("."):
        found[-1] += "."
    return found


def read_list(reply: str) -> list[str]:
    """The entries of a bulleted or numbered list, without repetitions; other lines are ignored."""
    entries = (found[1].strip() for line in reply.splitlines() if (found := BULLET.match(line)))
    return list(dict.fromkeys(entries))


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


def fact_scorer(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    prompt: str | Path = official.AUTO,
    parameters: Mapping[str, Any] | None = None,
    **limits: Any,
) -> FactScorer:
    """The scorer given by arguments.

    Args:
        model: the model's name at the endpoint; the authors used gpt-3.5-turbo for verdicts.
        base_url: see ``caller_for``.
        api_key: see ``caller_for``.
        prompt: "official": the authors' prompts, temperature 0.7 and token limits; "qabench": this project's prompts
            with temperature 0; "auto": official if the authors' files are available; or a file for verdicts with
            {field}, {evidence} and {claim} (see ``read_prompt``).
        parameters: added to the parameters for verdicts; None as a value removes one.
        **limits: see ``caller_for``.

    Raises:
        InputError: an option that is unknown or out of range, or a prompt that cannot be used.
        SourceError: "official", and the authors' files are not available.
    """
    caller = caller_for(model, base_url, api_key, **limits)
    own, given = VERDICT_PROMPT, str(prompt)
    if given not in (official.OFFICIAL, official.QABENCH, official.AUTO):
        if not Path(prompt).is_file():
            raise InputError(f"the prompt is {given!r}; allowed: official, qabench, auto, or a file")
        own, given = check_fields(read_prompt(Path(prompt)), VERDICT_PROMPT.fields()), official.QABENCH
    files = (official.ATOMIC, official.DEMONSTRATIONS, official.VERDICT)
    if official.chosen_prompt(given, *files) == official.OFFICIAL:
        verdict = Prompt(official.OFFICIAL, "".join(part.user for part in official.verdict()))
        return FactScorer(caller, True, verdict, OFFICIAL_BREAK_DOWN, merged(OFFICIAL_VERDICT, parameters))
    return FactScorer(caller, False, own, OWN_BREAK_DOWN, merged(OWN_VERDICT, parameters))


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
) -> FactScoreRun:
    """Gives each claim of dataset rows its fact score, the share of its atomic claims that a model finds true.

    Claims with atomic_claims keep them; others are split first, without marks such as [2]. An atomic claim is judged by
    its entry of atomic_evidences if these are aligned with the atomic claims, else by all evidence of its claim. The
    returned rows can be scored by ``expertqa_factscore_agreement``. A claim is unscored (fact_score None) if a call
    failed, was refused or returned an empty reply. An atomic claim without evidence is judged, too, as upstream.
    Replies are cached, so an interrupted run continues where it stopped.

    Args:
        rows: rows with ``answers`` (a list, as in the dataset) and metadata.
        scorer: see ``fact_scorer``.
        cache: the cache of replies; default: the user's.
        progress: called with the number of replies received and the total, in each of the two steps.

    Raises:
        InputError: no rows, or a row in another format.
        MissingExtra: calls are needed and the openai package is not installed.
    """
    scored = [deepcopy(dict(row)) for row in rows]
    parts = _parts(scored)
    client = scorer.caller.client(cache)
    outcomes = _break_down(parts, scorer, client, progress)
    outcomes += _judge(parts, scorer, client, progress)
    return FactScoreRun(
        scored,
        [dict(zip(POSITION, part.position, strict=True)) | {"reason": part.reason} for part in parts if part.reason],
        sum(part.claim["fact_score"] is not None for part in parts),
        scorer.signature(),
        usage_of(scorer.caller, client, outcomes),
        models_of(outcomes),
    )


def plan_facts(rows: Sequence[Mapping[str, Any]], scorer: FactScorer, cache: ReplyCache | None = None) -> Plan:
    """The calls that ``score_facts`` would make, and their cost. Does not need a key or make calls.

    The number of atomic claims of a claim is unknown before it is split: ``EXPECTED_ATOMIC_CLAIMS`` is assumed.
    """
    requests: list[ChatRequest] = []
    for part in _parts([deepcopy(dict(row)) for row in rows]):
        atomic = part.claim.get("atomic_claims")
        if atomic is None and _plain(part):
            requests.append(scorer.break_down(_plain(part)))
            atomic = [f"{_plain(part)} ({number})" for number in range(EXPECTED_ATOMIC_CLAIMS)]
        evidences = _evidences(part.claim, len(atomic or ()))
        requests += [scorer.judge(text, shown, part.field) for text, shown in zip(atomic or (), evidences, strict=True)]
    return scorer.caller.client(cache).plan(requests, scorer.caller.prices)


def _parts(rows: list[dict[str, Any]]) -> list[_Part]:
    if not rows:
        raise InputError("nothing to score: there are no rows")
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
    asked = [part for part in new if _plain(part)]  # a claim may consist of marks only
    requests = [scorer.break_down(_plain(part)) for part in asked]
    outcomes = _complete(client, requests, progress)
    for part in new:
        part.claim["atomic_claims"], part.claim["atomic_evidences"] = [], None
    for part, outcome in zip(asked, outcomes, strict=True):
        reply = answered(outcome)
        if reply.text is None or reply.cut_off:
            part.reason = f"its atomic claims: {reply.reason or 'the reply was cut off'}"
            part.claim["atomic_claims"] = None
        else:
            part.claim["atomic_claims"] = scorer.atomic_claims(reply.text)
            if not part.claim["atomic_claims"] and "NONE" not in reply.text:
                part.reason = f"its atomic claims: none in the reply {reply.text!r:.80}"
    return outcomes


def _judge(parts: list[_Part], scorer: FactScorer, client: ChatClient, progress: Progress | None) -> list[Outcome]:
    requests: list[ChatRequest] = []
    for part in parts:
        part.claim["fact_score"] = None
        atomic = part.claim["atomic_claims"] or []
        evidences = _evidences(part.claim, len(atomic))
        if atomic and not part.reason:
            part.claim["atomic_evidences"] = evidences
            requests += [scorer.judge(text, shown, part.field) for text, shown in zip(atomic, evidences, strict=True)]
    outcomes = _complete(client, requests, progress)
    remaining = iter(outcomes)
    for part in parts:
        if not part.reason:
            _score(part, [answered(next(remaining)) for _ in part.claim["atomic_claims"]])
    return outcomes


def _plain(part: _Part) -> str:
    return NUMBER_MARK.sub("", part.claim["claim_string"]).strip()


def _evidences(claim: Mapping[str, Any], n_atomic: int) -> list[str]:
    own = claim.get("atomic_evidences") or []
    return list(own) if len(own) == n_atomic else ["\n\n".join(claim["evidence"] or ())] * n_atomic


def _score(part: _Part, replies: list[Answered]) -> None:
    verdicts = [reply_is_true(reply.text) for reply in replies if reply.text is not None]
    part.reason = next((reply.reason for reply in replies if reply.text is None), None)
    part.claim["fact_score"] = None if part.reason else fact_score(verdicts)


def _complete(client: ChatClient, requests: list[ChatRequest], progress: Progress | None) -> list[Outcome]:
    return run_sync(client.complete(requests, progress)) if requests else []
