"""A model that breaks claims down into atomic claims and judges them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa import official_prompts as official
from qabench.benchmarks.expertqa.fact_entities import Entities, load_entities
from qabench.benchmarks.expertqa.fact_post_processing import post_processed
from qabench.benchmarks.expertqa.fact_prompts import (
    ATOMIC_PROMPT,
    VERDICT_PROMPT,
    atomic_prompt,
    official_list,
    read_list,
    verdict_prompt,
)
from qabench.benchmarks.expertqa.fact_sentences import Splitter, first_sentence, states_facts
from qabench.errors import InputError, MissingExtra
from qabench.llm.client import Caller, caller_for, merged
from qabench.llm.exchange import ChatRequest
from qabench.models.entailment import punkt
from qabench.tasks.prompts import Prompt, check_fields, read_prompt

EVIDENCE_ENDS_AT = "Passage ID 4"  # three of the five passages are shown
NUMBER_MARK = re.compile(r"\[\d+\]")
OWN_BREAK_DOWN: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1000}
OWN_VERDICT: Mapping[str, Any] = {"temperature": 0, "max_tokens": 100}
OFFICIAL_BREAK_DOWN: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 512}
OFFICIAL_VERDICT: Mapping[str, Any] = {"temperature": 0.7, "max_tokens": 2048}


@dataclass(frozen=True)
class FactScorer:
    """A model that splits claims into atomic claims and judges them; see ``fact_scorer``."""

    caller: Caller
    official: bool
    verdict_prompt: Prompt
    break_down_parameters: Mapping[str, Any]
    parameters: Mapping[str, Any]
    atomic_model: str
    sentences: tuple[str, Splitter]
    entities: tuple[str, Entities] | None

    def signature(self) -> dict[str, object]:
        """Everything that the fact scores depend on except the rows, for ``qabench.evaluation.signature.signature``."""
        atomic = official.atomic() if self.official else ATOMIC_PROMPT
        return {
            "evaluator": self.caller.model,
            "endpoint": self.caller.endpoint.base_url,
            "prompt": self.verdict_prompt.label,
            "atomic_model": self.atomic_model,
            "atomic_prompt": atomic.label,
            "sentences": self.sentences[0] if self.official else "none",
            "post_processing": self.entities[0] if self.entities else "none",
            **self.parameters,
        }

    def label(self, given: bool) -> str:
        """The same in a few words, for the field ``fact_scores_by`` of files.

        Args:
            given: whether the atomic claims were given.
        """
        about = self.signature()
        made = (
            "given"
            if given
            else ":".join(
                str(about[name]) for name in ("atomic_model", "atomic_prompt", "sentences", "post_processing")
            )
        )
        return f"{self.caller.model}/{self.verdict_prompt.label}/{made}"

    def sentence(self, claim: str) -> str:
        """The part of a claim that is broken down, without marks such as [2]; "" if it states nothing.

        With the authors' prompts it is the first sentence, otherwise the whole claim.
        """
        plain = NUMBER_MARK.sub("", claim).strip()
        if not self.official:
            return plain
        found = first_sentence(plain, self.sentences[1])
        return found if states_facts(found) else ""

    def break_down(self, sentence: str) -> ChatRequest:
        """The request for the atomic claims of a sentence."""
        messages = (("user", atomic_prompt(sentence)),) if self.official else ATOMIC_PROMPT.messages(claim=sentence)
        return ChatRequest(self.atomic_model, messages, self.break_down_parameters)

    def atomic_claims(self, sentence: str, reply: str) -> list[str]:
        """The atomic claims in a reply to ``break_down``, after post-processing."""
        if not self.official:
            return read_list(reply)
        found = official_list(reply)
        return post_processed(sentence, found, self.entities[1]) if self.entities else found

    def judge(self, atomic_claim: str, evidence: str, field: str) -> ChatRequest:
        """The request for a verdict on an atomic claim; evidence is truncated before its fourth passage."""
        shown = evidence.partition(EVIDENCE_ENDS_AT)[0].strip()
        if self.official:
            messages: tuple[tuple[str, str], ...] = (("user", verdict_prompt(atomic_claim, shown, field)),)
        else:
            messages = self.verdict_prompt.messages(field=field, evidence=shown, claim=atomic_claim.strip())
        return ChatRequest(self.caller.model, messages, self.parameters)


def fact_scorer(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    prompt: str | Path = official.AUTO,
    parameters: Mapping[str, Any] | None = None,
    atomic_model: str | None = None,
    sentences: tuple[str, Splitter] = ("punkt", punkt),
    post_processing: str = official.AUTO,
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
        atomic_model: the model that breaks claims down; default: ``model``. The authors used text-davinci-003, which
            was withdrawn.
        sentences: the name and function of the sentence splitter; with the authors' prompts, the first sentence of a
            claim is broken down.
        post_processing: of atomic claims, with the authors' prompts only: "official" (needs a spaCy model with named
            entities), "none", or "auto" (official if the model is installed).
        **limits: see ``caller_for``.

    Raises:
        InputError: an option that is unknown or out of range, or a prompt that cannot be used.
        MissingExtra: the spaCy model for the official post-processing is not installed.
        SourceError: "official", and the authors' files are not available.
    """
    caller = caller_for(model, base_url, api_key, **limits)
    own, given = VERDICT_PROMPT, str(prompt)
    if given not in (official.OFFICIAL, official.QABENCH, official.AUTO):
        if not Path(prompt).is_file():
            raise InputError(f"the prompt is {given!r}; allowed: official, qabench, auto, or a file")
        own, given = check_fields(read_prompt(Path(prompt)), VERDICT_PROMPT.fields()), official.QABENCH
    files = (official.ATOMIC, official.DEMONSTRATIONS, official.VERDICT)
    rest = (atomic_model or model, sentences)
    if official.chosen_prompt(given, *files) == official.OFFICIAL:
        verdict = Prompt(official.OFFICIAL, "".join(part.user for part in official.verdict()))
        asked = (OFFICIAL_BREAK_DOWN, merged(OFFICIAL_VERDICT, parameters))
        return FactScorer(caller, True, verdict, *asked, *rest, _entities(post_processing))
    return FactScorer(caller, False, own, OWN_BREAK_DOWN, merged(OWN_VERDICT, parameters), *rest, None)


def _entities(post_processing: str) -> tuple[str, Entities] | None:
    if post_processing not in (official.OFFICIAL, official.AUTO, "none"):
        raise InputError(f"unknown post-processing {post_processing!r}; allowed: official, auto, none")
    if post_processing == "none":
        return None
    try:
        return load_entities()
    except MissingExtra:
        if post_processing == official.OFFICIAL:
            raise
        return None
